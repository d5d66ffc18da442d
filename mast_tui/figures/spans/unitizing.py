"""Krippendorff's α_U: agreement on the positions and kinds of units on a continuum.

Krippendorff, On the reliability of unitizing continuous data, Sociological Methodology 25 (1995),
and Measuring the reliability of qualitative text analysis data, Quality & Quantity 38 (2004).

For each category, a rater divides the continuum into units and gaps between them. A section g of
one rater and a section h of another, with beginnings b and lengths l, differ by

- (b_g - b_h)² + (b_g + l_g - b_h - l_h)² if both are units and overlap,
- l² if one is a unit of length l that lies completely in the other, a gap,
- 0 otherwise.

The observed disagreement is the mean over the sections of the raters. The expected disagreement is
the mean over all ways in which the same sections can coincide. α_U = 1 - Σ observed / Σ expected
over the categories.

Several continua are concatenated, but no unit or gap crosses their ends. For one continuum, or many
with the same raters, the figures are Krippendorff's. If raters miss some, the number of compared
pairs of positions replaces m (m - 1) L², and the number of rated positions replaces m L.

All figures are computed from lengths and from sums over continua, so that resampling is one product
with the weights of the continua.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Floats, ratio

Section = tuple[int, int]
"""The begin and the end (exclusive) of a unit or a gap, in positions from 0."""


# Columns of the sums. After them, each length of unit has a column of units, then one of positions
# for such a unit in the gaps.
_OBSERVED: Final = 0
_COMPARED: Final = 1
_POSITIONS: Final = 2
_LENGTH: Final = 3
_UNITS: Final = 4
_OVERLAPS: Final = 5
_WITHIN: Final = 6
_GAPS: Final = 7
_RATERS: Final = 8
_COLUMNS: Final = 9


@dataclass(frozen=True, slots=True)
class Continuum:
    """The marks of raters for one category on a line of positions.

    Attributes:
        length: The number of positions.
        units: The units of each rater, in order and not overlapping; they may touch.

    Raises:
        ValueError: There are fewer than two raters, no positions, or units that overlap.
    """

    length: int
    units: tuple[tuple[Section, ...], ...]

    def __post_init__(self) -> None:
        if self.length < 1 or len(self.units) < 2:
            raise ValueError("a continuum has at least one position and two raters")
        for rater_units in self.units:
            previous_end = 0
            for first, after in rater_units:
                if not previous_end <= first < after <= self.length:
                    raise ValueError(f"({first}, {after}) overlaps, is empty or lies outside")
                previous_end = after

    def gaps(self, rater: int) -> list[Section]:
        """Return the gaps before, between and after the units of a rater, by the rater's index."""
        gaps = []
        previous_end = 0
        end_of_line = (self.length, self.length)
        for first, after in (*self.units[rater], end_of_line):
            if first > previous_end:
                gaps.append((previous_end, first))
            previous_end = after
        return gaps


@dataclass(frozen=True, slots=True)
class UnitSums:
    """The sums of each continuum for the figures of one category: continua × columns.

    Attributes:
        lengths: The different lengths of the units.
        features: Continua × columns, which can be added up over continua.
    """

    lengths: Floats
    features: Floats

    @classmethod
    def from_continua(cls, continua: Sequence[Continuum | None]) -> UnitSums:
        """Return the sums of each continuum for α_U; None is a continuum without a comparison."""
        compared = [
            (row, continuum) for row, continuum in enumerate(continua) if continuum is not None
        ]
        units = _rows_and_lengths(
            (row, unit)
            for row, continuum in compared
            for rater_units in continuum.units
            for unit in rater_units
        )
        gaps = _rows_and_lengths(
            (row, gap)
            for row, continuum in compared
            for rater in range(len(continuum.units))
            for gap in continuum.gaps(rater)
        )
        lengths = np.unique(units[:, 1]).astype(np.float64)

        features = np.zeros((len(continua), _COLUMNS + 2 * len(lengths)))
        for row, continuum in compared:
            raters = len(continuum.units)
            features[row, _OBSERVED] = _observed_difference(continuum)
            features[row, _COMPARED] = raters * (raters - 1) * continuum.length
            features[row, _POSITIONS] = raters * continuum.length
            features[row, _LENGTH] = continuum.length
            features[row, _RATERS] = raters
        sums_of = partial(_sums_by_continuum, continuum_count=len(continua))
        unit_lengths = units[:, 1].astype(np.float64)
        features[:, _UNITS] = sums_of(units, np.ones_like(unit_lengths))
        # The part 2 l³ - 3 l² + l of a unit of length l in the expected disagreement with other
        # units.
        features[:, _OVERLAPS] = sums_of(
            units, 2 * unit_lengths**3 - 3 * unit_lengths**2 + unit_lengths
        )
        # The ordered pairs of positions within a unit, which are not compared.
        features[:, _WITHIN] = sums_of(units, unit_lengths * (unit_lengths - 1))
        features[:, _GAPS] = sums_of(gaps, np.ones(len(gaps)))
        # For each length: the number of units, and the number of positions for a unit in the gaps.
        for column, length in enumerate(lengths, start=_COLUMNS):
            features[:, column] = sums_of(units, unit_lengths == length)
            gap_positions = np.maximum(gaps[:, 1] - length + 1, 0)
            features[:, column + len(lengths)] = sums_of(gaps, gap_positions)
        return cls(lengths, features)

    @property
    def units(self) -> int:
        """The number of units."""
        return int(self.features[:, _UNITS].sum())

    @property
    def positions(self) -> int:
        """The total length of the continua."""
        return int(self.features[:, _LENGTH].sum())

    def disagreement(self, sums: Floats) -> Disagreement:
        """Return the disagreement of each resample.

        ``sums`` has the sums of ``features`` over the continua, resamples × columns.
        """
        length_sum = sums[:, _LENGTH]
        units_by_length = sums[:, _COLUMNS : _COLUMNS + len(self.lengths)]
        positions_by_length = sums[:, _COLUMNS + len(self.lengths) :]
        # At random positions, units differ from other units (first term) and gaps (second term).
        expected_sum = (sums[:, _UNITS] - 1) / 3 * sums[:, _OVERLAPS] + (
            units_by_length * positions_by_length
        ) @ self.lengths**2
        rated_positions = sums[:, _POSITIONS]
        position_pairs = rated_positions * (rated_positions - 1) - sums[:, _WITHIN]
        # Without gaps, and with one unit for each rater and continuum.
        units_fill_everything = (sums[:, _GAPS] == 0) & (sums[:, _UNITS] == sums[:, _RATERS])
        return Disagreement(
            ratio(sums[:, _OBSERVED], length_sum * sums[:, _COMPARED], 0.0),
            ratio(2 * expected_sum, length_sum * position_pairs, 0.0),
            (sums[:, _UNITS] > 0) & ~units_fill_everything,
        )


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The observed and expected disagreement of each resample.

    ``varied`` is False if nothing is marked, or if every rater marked everything as one unit.
    """

    observed: Floats
    expected: Floats
    varied: NDArray[np.bool_]


def alpha_u(categories: Sequence[Disagreement]) -> Floats:
    """Return α_U over categories for each resample; NaN if no category varied."""
    observed = np.sum([category.observed for category in categories], axis=0)
    expected = np.sum([category.expected for category in categories], axis=0)
    varied = np.any([category.varied for category in categories], axis=0)
    return np.asarray(1 - ratio(observed, np.where(varied, expected, 0)))


def _observed_difference(continuum: Continuum) -> int:
    """Return the sum of the differences of units over all ordered pairs of raters."""
    # Both orders of a pair have the same sum. Only the first comparison adds overlaps, because both
    # would find them.
    return 2 * sum(
        _difference_of_units(ours, theirs, adds_overlaps=True)
        + _difference_of_units(theirs, ours, adds_overlaps=False)
        for ours, theirs in combinations(continuum.units, 2)
    )


def _difference_of_units(
    units: Sequence[Section], other_units: Sequence[Section], *, adds_overlaps: bool
) -> int:
    """Return the sum of the differences of one rater's units from the other rater's units.

    A unit that overlaps no other unit adds its squared length. With ``adds_overlaps``, each pair of
    overlapping units adds the squared differences of their ends.
    """
    difference = 0
    first_overlap = 0
    for first, after in units:
        while first_overlap < len(other_units) and other_units[first_overlap][1] <= first:
            first_overlap += 1
        index = first_overlap
        while index < len(other_units) and other_units[index][0] < after:
            if adds_overlaps:
                other_first, other_after = other_units[index]
                difference += (first - other_first) ** 2 + (after - other_after) ** 2
            index += 1
        if index == first_overlap:
            difference += (after - first) ** 2
    return difference


def _rows_and_lengths(sections: Iterable[tuple[int, Section]]) -> NDArray[np.int64]:
    """Return (row of the continuum, length) of sections, from their rows and the sections."""
    rows = [(row, after - first) for row, (first, after) in sections]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _sums_by_continuum(
    sections: NDArray[np.int64], values: NDArray[np.generic], continuum_count: int
) -> Floats:
    """Return for each continuum the sum of the values of its sections.

    ``sections`` are (row of the continuum, length), with a value for each in ``values``.
    """
    return np.bincount(sections[:, 0], weights=values, minlength=continuum_count).astype(np.float64)
