"""Krippendorff's α over spans: is each span that was read marked or not.

A unit is a span that two raters or more have read; what they say of it is whether a mark of theirs
covers it. A trace gives a few sums, counted by stretches between two places where anything
changes, so that neither many spans nor many traces cost much.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.spans.places import Stretch

Floats = NDArray[np.float64]

COLUMNS: Final = 4
"""Sums of a trace: units, what was said of them, how often that was 'marked', disagreement."""


class ReadBy:
    """How many of some raters have read the spans of a trace, from the stretches of each."""

    def __init__(self, read: Sequence[Sequence[Stretch]]) -> None:
        self.raters = len(read)
        changes: Counter[int] = Counter()
        for stretches in read:
            for first, after in stretches:
                changes[first] += 1
                changes[after] -= 1
        # Between two of these places nothing changes; what was counted before each of them.
        self._places: list[int] = []
        self._rated: list[int] = []
        self._before: list[tuple[int, ...]] = []
        counts = [0] * (self.raters + 1)
        rated = last = 0
        for place, change in sorted({0: 0, **changes}.items()):
            counts[rated] += place - last
            rated, last = rated + change, place
            self._places.append(place)
            self._rated.append(rated)
            self._before.append(tuple(counts))

    def before(self, index: int) -> tuple[int, ...]:
        """Of the spans before one: how many were read by nobody, by one rater, by two …"""
        piece = bisect_right(self._places, index) - 1
        rated = self._rated[piece]
        counts = self._before[piece]
        more = index - self._places[piece]
        return (*counts[:rated], counts[rated] + more, *counts[rated + 1 :])

    @property
    def in_all(self) -> tuple[int, ...]:
        """The same of all spans that anybody has read."""
        return self.before(self._places[-1])


def coverage_sums(
    read_by: ReadBy, marked: Iterable[Sequence[Stretch]]
) -> tuple[float, float, float, float]:
    """What the spans of one trace add to the sums of ``COLUMNS``.

    ``marked`` are the spans that each rater marked, in order and disjoint, among those that they
    have read. Disagreement is that of Krippendorff (2011): 2 k (r - k) / (r - 1) of a span that r
    raters have read and k of them marked.
    """
    in_all = read_by.in_all
    units = sum(in_all[2:])
    said = sum(rated * spans for rated, spans in enumerate(in_all) if rated > 1)
    covered, disagreement = 0, 0.0
    for first, after, present in _pieces(marked):
        counts = zip(read_by.before(first), read_by.before(after), strict=True)
        for rated, (before, until) in enumerate(counts):
            if rated > 1:
                covered += present * (until - before)
                disagreement += 2 * present * (rated - present) / (rated - 1) * (until - before)
    return units, said, covered, disagreement


def coverage_alpha(sums: Floats) -> Floats:
    """α from sums of the columns (any shape, the columns last), NaN where it is undefined.

    1 - D_o / D_e of binary values (Krippendorff 2011): with n values, p of them 'marked', D_e is
    2 p (n - p) / (n - 1).
    """
    said, marked, disagreement = sums[..., 1], sums[..., 2], sums[..., 3]
    by_chance = 2 * marked * (said - marked)
    figures: Floats = 1 - np.divide(
        disagreement * (said - 1), by_chance, out=np.full_like(said, np.nan), where=by_chance > 0
    )
    return figures


def _pieces(marked: Iterable[Sequence[Stretch]]) -> Iterator[tuple[int, int, int]]:
    """The stretches (first, after) that so many raters marked."""
    changes: Counter[int] = Counter()
    for stretches in marked:
        for first, after in stretches:
            changes[first] += 1
            changes[after] -= 1
    present = begin = 0
    for place in sorted(changes):
        if present:
            yield begin, place, present
        present += changes[place]
        begin = place
