"""What each trace adds to the figures on spans, for two annotators or more.

Of Krippendorff's α over spans a unit is a span that two raters or more have read; what they say of
it is whether a mark of theirs covers it. A trace gives a few sums, counted by stretches between two
places where anything changes, so that neither many spans nor many traces cost much.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import ratio
from mast_tui.figures.spans.input import (
    LEVELS,
    Place,
    Reading,
    Stretch,
    TraceReadings,
    covered,
    matched,
    merged,
    touches,
)
from mast_tui.figures.spans.unitizing import Continuum, Section, UnitSums

Floats = NDArray[np.float64]

COVERAGE_COLUMNS: Final = 4
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
    """What the spans of one trace add to the sums, ``COVERAGE_COLUMNS`` of them.

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
    figures: Floats = 1 - ratio(disagreement * (said - 1), 2 * marked * (said - marked))
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


# Columns of the findings: the places that are compared, those left out, and from there on how
# many pairs there are at each level of overlap.
MARKS: Final = 0
LEFT_OUT: Final = 1
PAIRS: Final = 2


class Look:
    """One annotator's reading of a trace, with what several figures need of it.

    ``silent`` are the modes of which they never say where they show.
    """

    def __init__(self, reading: Reading, spans: int, silent: frozenset[str] = frozenset()) -> None:
        self.reading = reading
        self._silent = reading.unanswered | reading.unplaced | silent
        self.seen = reading.seen(spans)
        self._covered = {mode: covered(places) for mode, places in reading.places.items()}
        self._units = {
            mode: merged(((p.first, p.last + 1) for p in places), touching=False)
            for mode, places in reading.places.items()
        }

    def answers(self, mode: str) -> bool:
        """Whether a span without a mark of the mode says that it does not show there."""
        return mode not in self._silent

    def places(self, mode: str) -> tuple[Place, ...]:
        """The different places marked with the mode."""
        return self.reading.places.get(mode, ())

    def covered(self, mode: str) -> tuple[Stretch, ...]:
        """The spans that these touch."""
        return self._covered.get(mode, ())

    def units(self, mode: str) -> tuple[Stretch, ...]:
        """The same, where places that overlap are one unit and those that only touch are two."""
        return self._units.get(mode, ())


@dataclass(frozen=True, slots=True)
class Looked:
    """A trace with everybody's look at it."""

    spans: int
    looks: Mapping[str, Look]

    @classmethod
    def at(cls, trace: TraceReadings, silent: Mapping[str, frozenset[str]]) -> Looked:
        """Who looked at a trace, and who never says where which modes show."""
        looks = {
            name: Look(reading, trace.spans, silent.get(name, frozenset()))
            for name, reading in trace.readings.items()
        }
        return cls(trace.spans, looks)

    def by(self, names: Sequence[str]) -> list[Look]:
        """Those of some annotators."""
        return [self.looks[name] for name in names if name in self.looks]

    def unplaced(self, names: Sequence[str]) -> frozenset[str]:
        """The modes that any of some annotators calls present here without saying where."""
        return frozenset().union(*(look.reading.unplaced for look in self.by(names)))


def never_placed(
    traces: Sequence[TraceReadings], modes: Sequence[str]
) -> dict[str, frozenset[str]]:
    """The modes of which each annotator never says where they show, though they call them present.

    All modes where nothing that they call present has a place. Their 'absent' is then no word on
    places either: with the traces left out that they call present, where theirs could meet the
    places of others, only those would be left where they cannot.
    """
    placed: dict[str, set[str]] = {}
    unplaced: dict[str, set[str]] = {}
    for trace in traces:
        for name, reading in trace.readings.items():
            placed.setdefault(name, set()).update(m for m, p in reading.places.items() if p)
            unplaced.setdefault(name, set()).update(reading.unplaced)
    return {
        name: frozenset(never - placed[name] if placed[name] else modes)
        for name, never in unplaced.items()
        if never
    }


def finding_sums(traces: Sequence[Looked], pair: tuple[str, str], modes: Sequence[str]) -> Floats:
    """What two annotators found: traces × (finding at all, then each mode) × columns.

    A place is compared where both gave an answer on its mode and the other has seen one of its
    spans at least; else it is left out. Nothing is said of a trace that only one has read.
    """
    sums = np.zeros((len(traces), 1 + len(modes), PAIRS + LEVELS))
    for row, trace in enumerate(traces):
        looks = trace.by(pair)
        if len(looks) == 2 and any(look.reading.places for look in looks):
            sums[row] = _found(looks[0], looks[1], modes)
    return sums


def _found(ours: Look, theirs: Look, modes: Sequence[str]) -> Floats:
    sums = np.zeros((1 + len(modes), PAIRS + LEVELS))
    all_ours: dict[Place, None] = {}
    all_theirs: dict[Place, None] = {}
    for block, mode in enumerate(modes, start=1):
        marked = len(ours.places(mode)) + len(theirs.places(mode))
        if not marked:
            continue
        one: list[Place] = []
        other: list[Place] = []
        if ours.answers(mode) and theirs.answers(mode):
            one = [place for place in ours.places(mode) if touches(place, theirs.seen)]
            other = [place for place in theirs.places(mode) if touches(place, ours.seen)]
        sums[block] = _compared(one, other, marked - len(one) - len(other))
        all_ours |= dict.fromkeys(one)
        all_theirs |= dict.fromkeys(other)
    sums[0] = _compared(list(all_ours), list(all_theirs), int(sums[1:, LEFT_OUT].sum()))
    return sums


def _compared(ours: Sequence[Place], theirs: Sequence[Place], left_out: int) -> list[int]:
    return [len(ours) + len(theirs), left_out, *matched(ours, theirs)]


@dataclass(frozen=True, slots=True)
class SpanSums:
    """What traces add to the figures on spans of some annotators.

    ``coverage`` are the sums for α (traces × modes × columns), ``units`` those for α_U by mode.
    ``answered`` counts the traces in which two or more gave an answer on each mode, ``rated_by``
    the annotators who gave any span there an answer on it.
    """

    coverage: Floats
    units: tuple[UnitSums, ...]
    answered: tuple[int, ...]
    rated_by: tuple[int, ...]


def span_sums(traces: Sequence[Looked], names: Sequence[str], modes: Sequence[str]) -> SpanSums:
    """The sums over what the annotators in ``names`` said of the spans of these traces."""
    coverage = np.zeros((len(traces), len(modes), COVERAGE_COLUMNS))
    continua: list[list[Continuum | None]] = [[] for _ in modes]
    answered = [0] * len(modes)
    rated_by: list[set[str]] = [set() for _ in modes]
    for row, trace in enumerate(traces):
        there = [(name, trace.looks[name]) for name in names if name in trace.looks]
        shared: dict[tuple[str, ...], _Shared] = {}
        for place, mode in enumerate(modes):
            sides = [(name, look) for name, look in there if look.answers(mode)]
            rated_by[place].update(name for name, look in sides if look.seen)
            answered[place] += len(sides) > 1
            who = tuple(name for name, _ in sides)
            if who not in shared:
                shared[who] = _Shared([look for _, look in sides])
            coverage[row, place] = shared[who].coverage(mode)
            continua[place].append(shared[who].continuum(mode))
    return SpanSums(
        coverage,
        tuple(UnitSums.of(one) for one in continua),
        tuple(answered),
        tuple(map(len, rated_by)),
    )


class _Shared:
    """What the same annotators say of one trace on one mode after the other."""

    def __init__(self, looks: Sequence[Look]) -> None:
        self._looks = looks
        self._read_by = ReadBy([look.seen for look in looks])
        self._nothing_marked = coverage_sums(self._read_by, ())
        length = self._read_by.in_all[-1]
        none_for_each: tuple[tuple[Section, ...], ...] = ((),) * len(looks)
        self._empty = Continuum(length, none_for_each) if length and len(looks) > 1 else None

    def coverage(self, mode: str) -> tuple[float, float, float, float]:
        """The trace's sums for α."""
        marked = [look.covered(mode) for look in self._looks]
        return coverage_sums(self._read_by, marked) if any(marked) else self._nothing_marked

    def continuum(self, mode: str) -> Continuum | None:
        """The spans that all have read, put side by side, with the units on them."""
        units = [look.units(mode) for look in self._looks]
        if self._empty is None or not any(units):
            return self._empty
        return Continuum(self._empty.length, tuple(map(self._moved, units)))

    def _moved(self, units: Sequence[Stretch]) -> tuple[Section, ...]:
        """Where units stand once what somebody has not read is taken out."""
        before = self._read_by.before
        moved = ((before(first)[-1], before(after)[-1]) for first, after in units)
        return tuple((first, after) for first, after in moved if first < after)
