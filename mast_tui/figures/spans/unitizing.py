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
    """The marks of raters for one category on ``length`` positions.

    ``units`` are those of each rater, in order and not overlapping; they may touch. Raises
    ``ValueError`` for fewer than two raters, no positions, or units that overlap.
    """

    length: int
    units: tuple[tuple[Section, ...], ...]

    def __post_init__(self) -> None:
        if self.length < 1 or len(self.units) < 2:
            raise ValueError("a continuum has at least one position and two raters")
        for units in self.units:
            end = 0
            for first, after in units:
                if not end <= first < after <= self.length:
                    raise ValueError(f"({first}, {after}) overlaps, is empty or lies outside")
                end = after

    def gaps(self, rater: int) -> list[Section]:
        """Return the gaps between the units of a rater."""
        gaps = []
        end = 0
        for first, after in (*self.units[rater], (self.length, self.length)):
            if first > end:
                gaps.append((end, first))
            end = after
        return gaps


@dataclass(frozen=True, slots=True)
class UnitSums:
    """The sums of each continuum for the figures of one category: continua × columns.

    ``lengths`` are the different lengths of its units. The columns can be added up over any
    continua, each as often as it counts.
    """

    lengths: Floats
    features: Floats

    @classmethod
    def from_continua(cls, continua: Sequence[Continuum | None]) -> UnitSums:
        """Return the sums of continua in order; None is a continuum without a comparison."""
        compared = [
            (row, continuum) for row, continuum in enumerate(continua) if continuum is not None
        ]
        units = np.array(
            [
                (row, after - first)
                for row, continuum in compared
                for of_rater in continuum.units
                for first, after in of_rater
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
            features[row, _OBSERVED] = _observed(continuum)
            features[row, _COMPARED] = raters * (raters - 1) * continuum.length
            features[row, _POSITIONS] = raters * continuum.length
            features[row, _LENGTH] = continuum.length
            features[row, _RATERS] = raters
        long = units[:, 1].astype(np.float64)
        features[:, _UNITS] = _per_row(units, np.ones_like(long), len(continua))
        features[:, _OVERLAPS] = _per_row(units, 2 * long**3 - 3 * long**2 + long, len(continua))
        features[:, _WITHIN] = _per_row(units, long * (long - 1), len(continua))
        features[:, _GAPS] = _per_row(gaps, np.ones(len(gaps)), len(continua))
        for column, length in enumerate(lengths, start=_COLUMNS):
            room = np.maximum(gaps[:, 1] - length + 1, 0)
            features[:, column] = _per_row(units, long == length, len(continua))
            features[:, column + len(lengths)] = _per_row(gaps, room, len(continua))
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
        """Return the disagreements of sums of the columns, resamples × columns."""
        total = sums[:, _LENGTH]
        held = sums[:, _COLUMNS : _COLUMNS + len(self.lengths)]
        room = sums[:, _COLUMNS + len(self.lengths) :]
        fallen = (sums[:, _UNITS] - 1) / 3 * sums[:, _OVERLAPS] + (held * room) @ self.lengths**2
        rated = sums[:, _POSITIONS]
        pairs = rated * (rated - 1) - sums[:, _WITHIN]
        from_end_to_end = (sums[:, _GAPS] == 0) & (sums[:, _UNITS] == sums[:, _RATERS])
        return Disagreement(
            ratio(sums[:, _OBSERVED], total * sums[:, _COMPARED], 0.0),
            ratio(2 * fallen, total * pairs, 0.0),
            (sums[:, _UNITS] > 0) & ~from_end_to_end,
        )


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Observed and expected disagreement, and whether anything varied, one for each resample."""

    observed: Floats
    expected: Floats
    varied: NDArray[np.bool_]


def alpha_u(categories: Sequence[Disagreement]) -> Floats:
    """Return α_U over categories for each resample, NaN where nothing varied."""
    observed = np.sum([category.observed for category in categories], axis=0)
    expected = np.sum([category.expected for category in categories], axis=0)
    varied = np.any([category.varied for category in categories], axis=0)
    figures: Floats = 1 - ratio(observed, np.where(varied, expected, 0))
    return figures


def _observed(continuum: Continuum) -> int:
    """Return the sum of the differences over ordered pairs of raters."""
    return 2 * sum(
        _one_way(ours, theirs, shared=True) + _one_way(theirs, ours, shared=False)
        for ours, theirs in combinations(continuum.units, 2)
    )


def _one_way(ours: Sequence[Section], theirs: Sequence[Section], *, shared: bool) -> int:
    """Return the differences of our units from their gaps and, with ``shared``, from their units.

    A unit that meets no unit of the other rater is inside a gap, since gaps end only at units.
    """
    difference = 0
    begin = 0
    for first, after in ours:
        while begin < len(theirs) and theirs[begin][1] <= first:
            begin += 1
        end = begin
        while end < len(theirs) and theirs[end][0] < after:
            if shared:
                difference += (first - theirs[end][0]) ** 2 + (after - theirs[end][1]) ** 2
            end += 1
        if end == begin:
            difference += (after - first) ** 2
    return difference


def _per_row(sections: NDArray[np.int64], values: NDArray[np.generic], rows: int) -> Floats:
    """Return the sum of the sections' values for each continuum."""
    sums = np.bincount(sections[:, 0], weights=values, minlength=rows)
    return sums.astype(np.float64)
