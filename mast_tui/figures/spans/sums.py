"""The sums of each trace for the figures on spans, for two annotators or more.

A unit of Krippendorff's α over spans is a span that two raters or more have read. Its value is
whether a rater's mark covers it. Sums are counted by stretches without a change, so that many spans
cost little.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Final

import numpy as np

from mast_tui.figures.bootstrap import Floats, ratio
from mast_tui.figures.spans.input import (
    LEVELS,
    LabelRange,
    SharedTrace,
    Stretch,
    TraceMarks,
    covered_stretches,
    matched_pair_counts,
    merged_stretches,
    touches,
)
from mast_tui.figures.spans.unitizing import Continuum, Section, UnitSums

COVERAGE_COLUMNS: Final = 4
"""The number of sums of a trace: spans, ratings, marked ratings, disagreement."""


def _rater_counts(stretches_by_rater: Iterable[Sequence[Stretch]]) -> Iterator[tuple[int, int]]:
    """Yield each span index at which the number of raters changes, and the new number."""
    changes: Counter[int] = Counter()
    for first, after in chain.from_iterable(stretches_by_rater):
        changes[first] += 1
        changes[after] -= 1
    indices = sorted(changes)
    yield from zip(indices, accumulate(changes[index] for index in indices), strict=True)


class ReadBy:
    """The number of raters who have read each span of a trace, from their read stretches."""

    def __init__(self, stretches_by_rater: Sequence[Sequence[Stretch]]) -> None:
        # Three lists with an entry for each change of the number of raters: the span index, the new
        # number, and how many spans before the index were read by 0, 1, 2 … raters.
        self._change_indices = [0]
        self._rater_counts = [0]
        self._span_counts = [(0,) * (len(stretches_by_rater) + 1)]
        for index, rater_count in _rater_counts(stretches_by_rater):
            self._span_counts.append(self.up_to(index))
            self._change_indices.append(index)
            self._rater_counts.append(rater_count)

    def up_to(self, index: int) -> tuple[int, ...]:
        """Return how many spans before an index were read by 0, 1, 2 … raters."""
        # The spans after the last change have equal counts.
        change_number = bisect_right(self._change_indices, index) - 1
        rater_count = self._rater_counts[change_number]
        counts = self._span_counts[change_number]
        further_spans = index - self._change_indices[change_number]
        return (
            *counts[:rater_count],
            counts[rater_count] + further_spans,
            *counts[rater_count + 1 :],
        )

    @property
    def in_all(self) -> tuple[int, ...]:
        """The counts over all spans up to the last one that was read."""
        return self.up_to(self._change_indices[-1])


def coverage_sums(
    read_by: ReadBy, stretches_by_rater: Iterable[Sequence[Stretch]]
) -> tuple[float, float, float, float]:
    """Return the sums of one trace for α: spans, ratings, marked ratings, disagreement.

    A rater who has read a span has rated it, as marked or not. A span with r ratings, k of them
    marked, adds the disagreement 2 k (r - k) / (r - 1) (Krippendorff 2011). Spans with a single
    rating add nothing.

    Args:
        read_by: The number of raters who have read each span.
        stretches_by_rater: For each rater, the marked stretches, in order and disjoint.
    """
    # The number of spans with 0, 1, 2 … ratings.
    span_counts = read_by.in_all
    compared_spans = sum(span_counts[2:])
    ratings = sum(rated_by * spans for rated_by, spans in enumerate(span_counts) if rated_by > 1)
    marked_ratings = 0
    disagreement = 0.0
    for first, after, marked_by in _marked_stretches(stretches_by_rater):
        counts = zip(read_by.up_to(first), read_by.up_to(after), strict=True)
        for rated_by, (up_to_first, up_to_after) in enumerate(counts):
            if rated_by > 1:
                spans = up_to_after - up_to_first
                marked_ratings += marked_by * spans
                disagreement += 2 * marked_by * (rated_by - marked_by) / (rated_by - 1) * spans
    return compared_spans, ratings, marked_ratings, disagreement


def coverage_alpha(sums: Floats) -> Floats:
    """Return α from sums of the columns of ``coverage_sums``, which are the last axis.

    α is 1 - D_o / D_e (Krippendorff 2011); NaN if undefined. D_o is the disagreement. D_e is 2 p (n
    - p) / (n - 1) for n ratings, p of them marked.
    """
    _, ratings, marked_ratings, disagreement = np.moveaxis(sums, -1, 0)
    expected = 2 * marked_ratings * (ratings - marked_ratings)
    return np.asarray(1 - ratio(disagreement * (ratings - 1), expected))


def _marked_stretches(
    stretches_by_rater: Iterable[Sequence[Stretch]],
) -> Iterator[tuple[int, int, int]]:
    """Yield each marked stretch as (first, after, number of raters who marked all of it)."""
    for (first, rater_count), (after, _) in pairwise(_rater_counts(stretches_by_rater)):
        if rater_count:
            yield first, after, rater_count


# Columns of findings: the compared places, the places left out, the pairs at each level of overlap.
MARKS: Final = 0
LEFT_OUT: Final = 1
PAIRS: Final = 2


class PreparedMarks:
    """The marks of one annotator in a trace, prepared for several figures.

    Modes that the annotator never places in any trace count as unanswered.

    Attributes:
        trace_marks: The marks themselves.
        seen: The stretches of spans that the annotator has read.
    """

    def __init__(
        self, marks: TraceMarks, spans: int, never_placed: frozenset[str] = frozenset()
    ) -> None:
        self.trace_marks = marks
        # A span without a mark may have such a mode.
        self._modes_unknown_if_unmarked = marks.unanswered | marks.unplaced | never_placed
        self.seen = marks.seen(spans)
        self._covered = {mode: covered_stretches(places) for mode, places in marks.places.items()}
        # Places that only touch stay two units, because they were marked separately.
        self._units = {
            mode: merged_stretches(
                ((label_range.first, label_range.last + 1) for label_range in places),
                join_touching=False,
            )
            for mode, places in marks.places.items()
        }

    def answers(self, mode: str) -> bool:
        """Return whether a span without a mark of the mode counts as absent."""
        return mode not in self._modes_unknown_if_unmarked

    def places(self, mode: str) -> tuple[LabelRange, ...]:
        """Return the different places marked with the mode."""
        return self.trace_marks.places.get(mode, ())

    def covered(self, mode: str) -> tuple[Stretch, ...]:
        """Return the stretches of spans that the places of a mode cover."""
        return self._covered.get(mode, ())

    def units(self, mode: str) -> tuple[Stretch, ...]:
        """Return the places of a mode as units; overlapping places are one unit."""
        return self._units.get(mode, ())


@dataclass(frozen=True, slots=True)
class PreparedTrace:
    """A trace with the prepared marks of its annotators by name."""

    spans: int
    marks_by_name: Mapping[str, PreparedMarks]

    @classmethod
    def from_trace(
        cls, trace: SharedTrace, never_placed: Mapping[str, frozenset[str]]
    ) -> PreparedTrace:
        """Prepare the marks of a trace.

        Args:
            trace: The trace.
            never_placed: The modes that each annotator never places in any trace.
        """
        all_marks = {
            name: PreparedMarks(marks, trace.spans, never_placed.get(name, frozenset()))
            for name, marks in trace.marks_by_name.items()
        }
        return cls(trace.spans, all_marks)

    def marks_of(self, names: Sequence[str]) -> list[PreparedMarks]:
        """Return the marks of some annotators, without those who have none in the trace."""
        return [self.marks_by_name[name] for name in names if name in self.marks_by_name]

    def unplaced(self, names: Sequence[str]) -> frozenset[str]:
        """Return the modes that any of these annotators calls present without a place."""
        return frozenset().union(*(marks.trace_marks.unplaced for marks in self.marks_of(names)))


def never_placed_modes(
    traces: Sequence[SharedTrace], modes: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Return by annotator the modes that the annotator calls present but never places.

    An annotator who calls modes present and never places any gets all modes. Otherwise only absent
    verdicts would be compared, which can never agree with a place.

    Args:
        traces: The traces with their marks.
        modes: The slugs of all modes.
    """
    placed_modes: dict[str, set[str]] = {}
    unplaced_modes: dict[str, set[str]] = {}
    for trace in traces:
        for name, marks in trace.marks_by_name.items():
            with_places = (mode for mode, places in marks.places.items() if places)
            placed_modes.setdefault(name, set()).update(with_places)
            unplaced_modes.setdefault(name, set()).update(marks.unplaced)
    return {
        name: frozenset(unplaced - placed_modes[name] if placed_modes[name] else modes)
        for name, unplaced in unplaced_modes.items()
        if unplaced
    }


def compared_places(
    marks: PreparedMarks, others: Sequence[PreparedMarks], mode: str
) -> list[LabelRange]:
    """Return the places of one annotator that are compared with those of others.

    A place is compared with an annotator if both gave an answer on its mode, and the other
    annotator has seen at least one of its spans.

    Args:
        marks: The annotator's marks in a trace.
        others: The marks of the others in the same trace.
        mode: The slug of the mode.
    """
    if not marks.answers(mode):
        return []
    seen_by_others = [other.seen for other in others if other.answers(mode)]
    return [
        label_range
        for label_range in marks.places(mode)
        if any(touches(label_range, seen) for seen in seen_by_others)
    ]


def finding_sums(
    traces: Sequence[PreparedTrace], pair: tuple[str, str], modes: Sequence[str]
) -> Floats:
    """Count the places of two annotators that are compared, left out, and matched.

    Args:
        traces: The traces.
        pair: The two annotators.
        modes: The slugs of the modes.

    Returns:
        Traces × (any mode, then each mode) × columns: the compared places, the places left out,
        then (from ``PAIRS`` on) the matching pairs at each level of overlap.
    """
    sums = np.zeros((len(traces), 1 + len(modes), PAIRS + LEVELS))
    for row, trace in enumerate(traces):
        all_marks = trace.marks_of(pair)
        if len(all_marks) == 2 and any(marks.trace_marks.places for marks in all_marks):
            sums[row] = _findings_of_pair(all_marks[0], all_marks[1], modes)
    return sums


def _findings_of_pair(ours: PreparedMarks, theirs: PreparedMarks, modes: Sequence[str]) -> Floats:
    """Return the sums of one trace for ``finding_sums``: (any mode, then each mode) × columns."""
    sums = np.zeros((1 + len(modes), PAIRS + LEVELS))
    # For "any mode", places of different modes with the same spans are one place.
    all_our_places: dict[LabelRange, None] = {}
    all_their_places: dict[LabelRange, None] = {}
    for block_number, mode in enumerate(modes, start=1):
        place_count = len(ours.places(mode)) + len(theirs.places(mode))
        if not place_count:
            continue
        our_places = compared_places(ours, [theirs], mode)
        their_places = compared_places(theirs, [ours], mode)
        left_out = place_count - len(our_places) - len(their_places)
        sums[block_number] = _compared_sums(our_places, their_places, left_out)
        all_our_places |= dict.fromkeys(our_places)
        all_their_places |= dict.fromkeys(their_places)
    sums[0] = _compared_sums(
        list(all_our_places), list(all_their_places), int(sums[1:, LEFT_OUT].sum())
    )
    return sums


def _compared_sums(
    ours: Sequence[LabelRange], theirs: Sequence[LabelRange], left_out: int
) -> list[int]:
    return [len(ours) + len(theirs), left_out, *matched_pair_counts(ours, theirs)]


@dataclass(frozen=True, slots=True)
class SpanSums:
    """The sums of traces for the figures on spans of some annotators.

    ``coverage`` has the sums for α (traces × modes × columns), ``units`` the sums for α_U by mode.
    ``answered`` has, by mode, the number of traces with answers of two annotators or more.
    ``rated_by`` has the number of annotators who gave an answer on any span.
    """

    coverage: Floats
    units: tuple[UnitSums, ...]
    answered: tuple[int, ...]
    rated_by: tuple[int, ...]


def span_sums(
    traces: Sequence[PreparedTrace], names: Sequence[str], modes: Sequence[str]
) -> SpanSums:
    """Return the sums over traces from which Krippendorff's α and α_U are computed.

    Args:
        traces: The traces.
        names: The names of the annotators.
        modes: The slugs of the modes.
    """
    coverage = np.zeros((len(traces), len(modes), COVERAGE_COLUMNS))
    continua: list[list[Continuum | None]] = [[] for _ in modes]
    answered = [0] * len(modes)
    rated_by: list[set[str]] = [set() for _ in modes]
    for row, trace in enumerate(traces):
        all_marks = [
            (name, trace.marks_by_name[name]) for name in names if name in trace.marks_by_name
        ]
        # Modes with answers by the same annotators share a part of the computation.
        answers_by_raters: dict[tuple[str, ...], _SharedAnswers] = {}
        for mode_index, mode in enumerate(modes):
            answering = [(name, marks) for name, marks in all_marks if marks.answers(mode)]
            # Only spans that an annotator has read are compared.
            rated_by[mode_index].update(name for name, marks in answering if marks.seen)
            answered[mode_index] += len(answering) > 1
            raters = tuple(name for name, _ in answering)
            if raters not in answers_by_raters:
                answers_by_raters[raters] = _SharedAnswers([marks for _, marks in answering])
            coverage[row, mode_index] = answers_by_raters[raters].coverage(mode)
            continua[mode_index].append(answers_by_raters[raters].continuum(mode))
    return SpanSums(
        coverage,
        tuple(map(UnitSums.from_continua, continua)),
        tuple(answered),
        tuple(map(len, rated_by)),
    )


class _SharedAnswers:
    """The answers of the same annotators on one trace, for several modes."""

    def __init__(self, all_marks: Sequence[PreparedMarks]) -> None:
        self._marks = all_marks
        self._read_by = ReadBy([marks.seen for marks in all_marks])
        # The results for a mode that no one has marked.
        self._nothing_marked = coverage_sums(self._read_by, ())
        # The number of spans that all annotators have read.
        read_by_all = self._read_by.in_all[-1]
        no_units: tuple[tuple[Section, ...], ...] = ((),) * len(all_marks)
        self._without_units = (
            Continuum(read_by_all, no_units) if read_by_all and len(all_marks) > 1 else None
        )

    def coverage(self, mode: str) -> tuple[float, float, float, float]:
        """Return the sums of the trace for α."""
        marked = [marks.covered(mode) for marks in self._marks]
        return coverage_sums(self._read_by, marked) if any(marked) else self._nothing_marked

    def continuum(self, mode: str) -> Continuum | None:
        """Return the line of the spans that all annotators have read, with each annotator's units.

        A unit is a marked range of spans. The result is None without such spans or with one
        annotator.
        """
        units = [marks.units(mode) for marks in self._marks]
        if self._without_units is None or not any(units):
            return self._without_units
        return Continuum(self._without_units.length, tuple(map(self._sections_among_read, units)))

    def _sections_among_read(self, units: Sequence[Stretch]) -> tuple[Section, ...]:
        """Return units by their positions among the spans that all annotators have read."""
        up_to = self._read_by.up_to
        moved = ((up_to(first)[-1], up_to(after)[-1]) for first, after in units)
        return tuple((first, after) for first, after in moved if first < after)
