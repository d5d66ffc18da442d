"""Krippendorff's α_U: agreement on where units lie on a continuum, and of what kind they are.

Krippendorff, On the reliability of unitizing continuous data, Sociological Methodology 25 (1995),
and Measuring the reliability of qualitative text analysis data, Quality & Quantity 38 (2004).

Per category each rater cuts the continuum into units and the gaps between them. Two sections, g
of one rater and h of another, with beginnings b and lengths l differ by

- (b_g - b_h)² + (b_g + l_g - b_h - l_h)² where both are units and overlap,
- l² where one is a unit of length l that lies wholly in the other, a gap,
- nothing otherwise.

Observed disagreement is the mean over what raters did, expected disagreement that over every way
in which the same sections could fall on one another; α_U = 1 - Σ observed / Σ expected over the
categories.

Several continua are put one after the other, but nothing is joined across their ends: a unit lies
in one of them, and so does a gap. For one continuum, or many with the same raters, the figures are
Krippendorff's; where raters miss some, the pairs of positions that were compared take the place of
m (m - 1) L² and the positions that were rated that of m L.

All is computed from lengths, never position by position, and from sums over continua, so that
resampling continua is one product with how often each counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import ratio

Section = tuple[int, int]
"""The begin and the end (exclusive) of a unit or a gap, in positions from 0."""

Floats = NDArray[np.float64]

# Columns of the sums; after them one per length of unit, first its units, then its room in gaps.
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
        features: Continua × columns. The columns can be added up over any continua, with weights.
    """

    lengths: Floats
    features: Floats

    @classmethod
    def from_continua(cls, continua: Sequence[Continuum | None]) -> UnitSums:
        """Return what each continuum, a line of positions with marks, adds to the sums for α_U.

        None stands for a continuum without a comparison, which adds nothing.
        """
        compared = [
            (row, continuum) for row, continuum in enumerate(continua) if continuum is not None
        ]
        # The units of all raters, then their gaps, as (row of the continuum, length).
        units = np.array(
            [
                (row, after - first)
                for row, continuum in compared
                for rater_units in continuum.units
                for first, after in rater_units
            ],
            dtype=np.int64,
        ).reshape(-1, 2)
        gaps = np.array(
            [
                (row, after - first)
                for row, continuum in compared
                for rater in range(len(continuum.units))
                for first, after in continuum.gaps(rater)
            ],
            dtype=np.int64,
        ).reshape(-1, 2)
        lengths = np.unique(units[:, 1]).astype(np.float64)

        features = np.zeros((len(continua), _COLUMNS + 2 * len(lengths)))
        for row, continuum in compared:
            raters = len(continuum.units)
            features[row, _OBSERVED] = _observed_difference(continuum)
            features[row, _COMPARED] = raters * (raters - 1) * continuum.length
            features[row, _POSITIONS] = raters * continuum.length
            features[row, _LENGTH] = continuum.length
            features[row, _RATERS] = raters
        unit_lengths = units[:, 1].astype(np.float64)
        features[:, _UNITS] = _sums_by_continuum(units, np.ones_like(unit_lengths), len(continua))
        # In the expected disagreement, a unit of length l adds 2 l³ - 3 l² + l where it may fall on
        # other units.
        features[:, _OVERLAPS] = _sums_by_continuum(
            units, 2 * unit_lengths**3 - 3 * unit_lengths**2 + unit_lengths, len(continua)
        )
        # The ordered pairs of positions in one unit, which are not compared.
        features[:, _WITHIN] = _sums_by_continuum(
            units, unit_lengths * (unit_lengths - 1), len(continua)
        )
        features[:, _GAPS] = _sums_by_continuum(gaps, np.ones(len(gaps)), len(continua))
        # For each length: its number of units, and the number of positions for one in the gaps.
        for column, length in enumerate(lengths, start=_COLUMNS):
            gap_positions = np.maximum(gaps[:, 1] - length + 1, 0)
            features[:, column] = _sums_by_continuum(units, unit_lengths == length, len(continua))
            features[:, column + len(lengths)] = _sums_by_continuum(
                gaps, gap_positions, len(continua)
            )
        return cls(lengths, features)

    @property
    def units(self) -> int:
        """The number of units."""
        return int(self.features[:, _UNITS].sum())

    @property
    def positions(self) -> int:
        """The joint length of the continua."""
        return int(self.features[:, _LENGTH].sum())

    def disagreement(self, sums: Floats) -> Disagreement:
        """Return the disagreement of each resample, and whether its marks vary at all.

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
        # Then there are no gaps, and one unit for each rater and continuum.
        units_fill_everything = (sums[:, _GAPS] == 0) & (sums[:, _UNITS] == sums[:, _RATERS])
        return Disagreement(
            ratio(sums[:, _OBSERVED], length_sum * sums[:, _COMPARED], 0.0),
            ratio(2 * expected_sum, length_sum * position_pairs, 0.0),
            (sums[:, _UNITS] > 0) & ~units_fill_everything,
        )


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Observed and expected disagreement of each resample.

    ``varied`` is True if something is marked, and not everything as one unit by every rater.
    """

    observed: Floats
    expected: Floats
    varied: NDArray[np.bool_]


def alpha_u(categories: Sequence[Disagreement]) -> Floats:
    """Return α_U over categories for each resample; NaN if no category varied in it."""
    observed = np.sum([category.observed for category in categories], axis=0)
    expected = np.sum([category.expected for category in categories], axis=0)
    varied = np.any([category.varied for category in categories], axis=0)
    return np.asarray(1 - ratio(observed, np.where(varied, expected, 0)))


def _observed_difference(continuum: Continuum) -> int:
    """Return the sum of the differences of units over all ordered pairs of raters.

    Both orders of a pair have the same sum, so one is computed and doubled. In it, the units of
    each rater are compared with those of the other; overlaps would be found by both comparisons,
    so only the first adds them.
    """
    return 2 * sum(
        _difference_of_units(ours, theirs, adds_overlaps=True)
        + _difference_of_units(theirs, ours, adds_overlaps=False)
        for ours, theirs in combinations(continuum.units, 2)
    )


def _difference_of_units(
    units: Sequence[Section], other_units: Sequence[Section], *, adds_overlaps: bool
) -> int:
    """Return the sum of the differences of one rater's units from the other rater's units.

    A unit that overlaps none of the other units adds its squared length. With ``adds_overlaps``,
    each pair of overlapping units adds the squared differences of their ends.
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


def _sums_by_continuum(
    sections: NDArray[np.int64], values: NDArray[np.generic], continuum_count: int
) -> Floats:
    """Return for each continuum, a line of positions, the sum of the values of its sections.

    ``sections`` are (row of the continuum, length); ``values`` has a value for each.
    """
    sums = np.bincount(sections[:, 0], weights=values, minlength=continuum_count)
    return sums.astype(np.float64)
