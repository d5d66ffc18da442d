"""Runs of equal or nearly equal steps, found while the spans of a trace are read."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from math import ceil
from operator import attrgetter
from threading import Lock
from typing import Final

from msgspec import Struct

from mast_tui.traces.model import Shape, Span, SpanColumns, SpanKind, Trace
from mast_tui.ui.trace_view.folding import MAX_PERIOD, FoldedRun

LEAST_SIMILARITY: Final = 90
"""The similarity in per cent at which two texts are nearly equal."""

COMPARED_CHARS: Final = 200

NEAR_REACH: Final = 1000
"""The number of spans on each side of a step that are searched for the ends of its run."""

EARLIER_REACH: Final = 500
"""The number of earlier spans that are searched for a repetition of a step."""

_WINDOW_SPANS: Final = 256
"""The number of spans read at once for their kinds, agents and names."""

_LOOKBACK_SPANS: Final = 2 * MAX_PERIOD
"""The number of spans before the last searched span in which an unreported run may begin."""

_NUMBER: Final = re.compile(r"\d+")
_NO_QUOTES: Final = dict.fromkeys(map(ord, "\"'`‘’“”"))
_LAST_PART: Final = re.compile(r"""(?<=[\w.~-]/)[^\s/"'`,;:)\]}]+(?=$|[\s"'`,;:)\]}])""")


class StepFeatures:
    """The features by which two steps are compared.

    The text of a tool's result is not compared, because the results of equal calls may differ.
    """

    def __init__(self, span: Span) -> None:
        self.head = (span.kind, span.agent, span.name)
        self.is_result = span.kind is SpanKind.TOOL_RESULT
        self.text = "" if self.is_result else span.preview

    @cached_property
    def normal(self) -> str:
        """The text without numbers, quotation marks and the last parts of paths."""
        text = self.text[:COMPARED_CHARS]
        if "/" in text:
            text = _LAST_PART.sub("*", text)
        return _NUMBER.sub("0", text.translate(_NO_QUOTES))

    def equals(self, other: StepFeatures) -> bool:
        """Check if two steps have the same kind, agent, name and text."""
        return self.head == other.head and self.text == other.text

    def resembles(self, other: StepFeatures) -> bool:
        """Check if two steps have the same kind, agent and name, and nearly the same text."""
        if self.head != other.head:
            return False
        if self.normal == other.normal:
            return True
        # The first spans are shown before anything heavy is imported.
        from rapidfuzz import fuzz

        return fuzz.ratio(self.normal, other.normal, score_cutoff=LEAST_SIMILARITY) > 0


class _StretchSearch:
    """A search for stretches of steps that may repeat with one period.

    The predecessor of a step is the step ``period`` steps before it. In a stretch each step is like
    its predecessor. A run needs at least ``period`` such steps in a row, so the search skips most
    steps.
    """

    def __init__(self, period: int, first: int) -> None:
        """Begin at the first step with a predecessor at or after the step ``first``."""
        self.period = period
        self._stretch_start = first + period
        """The start of the next stretch. Stretches before it have been reported."""
        self._stretch_end = 0
        """The end (exclusive) of the open stretch; 0 without an open stretch."""

    def candidates(
        self,
        end: int,
        has_same_head: Callable[[int, int], bool],
        is_similar: Callable[[int, int], bool],
    ) -> Iterator[tuple[int, int]]:
        """Yield each stretch before ``end``: its first step, and the step after its last.

        A stretch includes the first period, which the other steps repeat. A stretch that reaches
        ``end`` is yielded again by the next call.

        Args:
            end: The first step that is not read yet.
            has_same_head: Takes a step and the period, and checks if the step has the same kind,
                agent and name as its predecessor.
            is_similar: Checks if these two steps also have nearly the same text.
        """
        while self._stretch_end or self._begin_stretch(end, has_same_head, is_similar):
            while self._stretch_end < end and is_similar(self._stretch_end, self.period):
                self._stretch_end += 1
            yield self._stretch_start - self.period, self._stretch_end
            if self._stretch_end == end:
                return
            self._stretch_start = self._stretch_end + 1
            self._stretch_end = 0

    def _begin_stretch(
        self,
        end: int,
        has_same_head: Callable[[int, int], bool],
        is_similar: Callable[[int, int], bool],
    ) -> bool:
        """Begin the next stretch before ``end``; return False if there is none."""
        while self._stretch_start + self.period <= end:
            # A stretch needs ``period`` similar steps in a row, so it begins after the last
            # different step. Heads are compared first, because comparing texts is slow.
            different_step = self._last_different_step(has_same_head)
            if different_step is None:
                different_step = self._last_different_step(is_similar)
            if different_step is None:
                self._stretch_end = self._stretch_start + self.period
                return True
            self._stretch_start = different_step + 1
        return False

    def _last_different_step(self, is_similar: Callable[[int, int], bool]) -> int | None:
        """Return the last of the next ``period`` steps that differs from its predecessor.

        Return None if none differs.
        """
        next_steps = range(self._stretch_start, self._stretch_start + self.period)
        for index in reversed(next_steps):
            if not is_similar(index, self.period):
                return index
        return None


class _Heads:
    """The heads (kind, agent and name) of a window of spans, as numbers."""

    def __init__(self) -> None:
        """Begin with an empty window."""
        self._number_by_head: dict[tuple[SpanKind, str, str | None], int] = {}
        self._shapes: Sequence[Shape] = ()
        """The list of shapes of the loaded columns."""
        self._number_of_shape: list[int] = []
        """For each shape the number of its head."""
        self._first = 0
        """The first span of the window."""
        self._window: list[int] = []
        """For each span of the window the number of its head."""
        self._result_numbers: set[int] = set()
        """The numbers of the heads of tools' results."""

    def contains(self, first: int, end: int) -> bool:
        """Check if the window contains the spans from ``first`` to ``end`` (exclusive)."""
        return self._first <= first and end <= self._first + len(self._window)

    def load(self, columns: SpanColumns) -> None:
        """Replace the window by the spans of some columns."""
        # A new list of shapes numbers them anew.
        if columns.shape_list is not self._shapes:
            self._shapes = columns.shape_list
            self._number_of_shape = []
        for kind, _role, agent, name in columns.shape_list[len(self._number_of_shape) :]:
            head = (kind, agent, name)
            number = self._number_by_head.setdefault(head, len(self._number_by_head))
            self._number_of_shape.append(number)
            if kind is SpanKind.TOOL_RESULT:
                self._result_numbers.add(number)
        self._first = columns.first
        self._window = [self._number_of_shape[shape] for shape in columns.shapes]

    def is_same(self, index: int, period: int) -> bool:
        """Check if a step has the same head as the step ``period`` steps before it."""
        position = index - self._first
        return self._window[position] == self._window[position - period]

    def is_result(self, index: int) -> bool:
        """Check if a step is a tool's result."""
        return self._window[index - self._first] in self._result_numbers


class _Streak(Struct):
    """The number of steps in a row that are like the steps ``period`` steps before them.

    Attributes:
        period: The number of steps between two steps that are compared.
        counts_nearly_equal: True if nearly equal steps count too.
        length: The number of these steps.
        has_unequal_steps: True if some of these steps are only nearly equal.
    """

    period: int
    counts_nearly_equal: bool
    length: int = 0
    has_unequal_steps: bool = False

    def run(self, end: int) -> FoldedRun | None:
        """Return the complete cycles of the streak as a run, or None for fewer than two cycles.

        Also return None if nearly equal steps count but all steps are equal. Another streak has the
        same run then.
        """
        step_count = self.period + self.length  # the first cycle is before the streak
        first = end - step_count
        cycle_count = step_count // self.period
        is_repeated_elsewhere = self.counts_nearly_equal and not self.has_unequal_steps
        if not self.length or cycle_count < 2 or is_repeated_elsewhere:
            return None
        return FoldedRun(
            first,
            first + cycle_count * self.period,
            self.period,
            nearly_equal=self.counts_nearly_equal,
        )


class RepeatFinder:
    """The runs of repeated steps in a trace, found while its spans are read.

    Runs never overlap. Of two runs that would overlap, the run that hides more steps stays. Equal
    steps count twice. One thread may call ``read_until`` while other threads ask for runs.
    """

    def __init__(self, first: int = 0) -> None:
        """Begin to search at the span ``first``."""
        self.seen = first
        """The first span that has not been read."""
        self.closed = False
        """True if the trace has been read to its end, so that no run can continue."""
        periods = range(1, MAX_PERIOD + 1)
        self._heads = _Heads()
        self._features_by_index: dict[int, StepFeatures] = {}
        """The features of the steps that may be compared again."""
        self._searches = [_StretchSearch(period, first) for period in periods]
        self._candidates: list[tuple[int, int]] = []
        """The stretches that searches have reported: first and last span (exclusive)."""
        self._compared_until = first
        """The span up to which (exclusive) candidates have been compared."""
        self._recent_features: deque[StepFeatures] = deque(maxlen=MAX_PERIOD)
        """The features of the steps that were compared last."""
        self._streaks = [
            _Streak(period, counts_nearly_equal)
            for counts_nearly_equal in (False, True)
            for period in periods
        ]
        self._last_non_result = -1
        """The last compared step that is not a tool's result; -1 if there is none."""
        self._unfinished_run: FoldedRun | None = None
        """The largest run that the next step may extend."""
        self._lock = Lock()
        self._finished_runs: list[FoldedRun] = []
        """The runs that no later step can extend, in order."""

    def read_until(self, trace: Trace, end: int, *, is_last: bool = False) -> None:
        """Read the spans up to ``end`` (exclusive). The end of the trace closes all runs.

        Searches compare few steps and report candidates: stretches in which steps may repeat. Only
        the steps of candidates are all compared. Similar steps in a row are a streak, and the
        cycles of a streak are a run.

        Args:
            trace: The trace, the same at each call.
            end: The span before which reading stops.
            is_last: True to close all runs because no more spans will be read.
        """
        end = max(self.seen, min(end, len(trace)))
        first = max(0, self.seen - _LOOKBACK_SPANS)
        if not self._heads.contains(first, end):
            self._heads.load(trace.columns(first, max(end, first + _WINDOW_SPANS)))
        is_similar = partial(self._is_similar, trace)
        for search in self._searches:
            self._candidates += search.candidates(end, self._heads.is_same, is_similar)
        self.seen = end
        is_at_end = is_last or (trace.loaded.complete and end >= len(trace))
        if is_at_end:
            self._compare_steps(trace, end)
            self._close_all_streaks(end)
            self._unfinished_run = None
        else:
            # A candidate that begins less than ``_LOOKBACK_SPANS`` before the end may still be
            # reported.
            self._compare_steps(trace, max(self._compared_until, end - _LOOKBACK_SPANS))
            runs = [self._run_of_streak(streak, self._compared_until) for streak in self._streaks]
            open_runs = (run for run in runs if run is not None)
            self._unfinished_run = max(open_runs, key=_weight_of, default=None)
        self.closed = is_at_end

    def _is_similar(self, trace: Trace, index: int, period: int) -> bool:
        """Check if a step is nearly equal to the step ``period`` steps before it."""
        if not self._heads.is_same(index, period):
            return False
        if self._heads.is_result(index):
            return True
        return self._features_of(trace, index).resembles(self._features_of(trace, index - period))

    def _features_of(self, trace: Trace, index: int) -> StepFeatures:
        features = self._features_by_index.get(index)
        if features is None:
            features = StepFeatures(trace.span(index))
            self._features_by_index[index] = features
        return features

    def _compare_steps(self, trace: Trace, limit: int) -> None:
        """Compare the steps of the candidates before ``limit`` with the steps before them.

        A step between two candidates ends all streaks. Candidates that end before ``limit`` are
        dropped.
        """
        for candidate_first, candidate_end in sorted(self._candidates):
            if candidate_first >= limit:
                break
            first = max(candidate_first, self._compared_until)
            end = min(candidate_end, limit)
            if first > self._compared_until:
                self._close_all_streaks(self._compared_until)
            for index in range(first, end):
                self._compare_step(index, self._features_of(trace, index))
            self._compared_until = max(self._compared_until, end)
        if self._compared_until < limit:
            self._close_all_streaks(self._compared_until)
            self._compared_until = limit
        self._candidates = [(first, end) for first, end in self._candidates if end > limit]
        # Later steps are compared with these only.
        self._features_by_index = {
            index: features
            for index, features in self._features_by_index.items()
            if index >= limit - MAX_PERIOD
        }

    def run_at(self, index: int) -> FoldedRun | None:
        """Return the larger of the finished and the unfinished run with span ``index``, or None."""
        with self._lock:
            position = bisect_right(self._finished_runs, index, key=attrgetter("first")) - 1
            finished_run = None
            if position >= 0 and index < self._finished_runs[position].end:
                finished_run = self._finished_runs[position]
        unfinished_run = self._unfinished_run
        if unfinished_run is None or not unfinished_run.first <= index < unfinished_run.end:
            return finished_run
        is_unfinished_larger = _weight_of(unfinished_run) > _weight_of(finished_run)
        return unfinished_run if is_unfinished_larger else finished_run

    def runs(self) -> tuple[FoldedRun, ...]:
        """Return the runs that no later step can extend, in order."""
        with self._lock:
            return tuple(self._finished_runs)

    def _compare_step(self, index: int, features: StepFeatures) -> None:
        """Extend each streak by the next step, or close the streak if the step does not fit."""
        for streak in self._streaks:
            period = streak.period
            if len(self._recent_features) < period:
                continue
            predecessor = self._recent_features[-period]
            is_equal = features.equals(predecessor)
            if is_equal or (streak.counts_nearly_equal and features.resembles(predecessor)):
                streak.length += 1
                streak.has_unequal_steps = streak.has_unequal_steps or not is_equal
            else:
                self._close_streak(streak, index)
        if not features.is_result:
            self._last_non_result = index
        self._recent_features.append(features)

    def _close_all_streaks(self, end: int) -> None:
        """Close every streak before ``end``, and forget the recent steps."""
        for streak in self._streaks:
            self._close_streak(streak, end)
        self._recent_features.clear()

    def _run_of_streak(self, streak: _Streak, end: int) -> FoldedRun | None:
        """Return the run of a streak that ends before ``end``, or None.

        A run of nothing but tools' results does not count, because their texts are not compared.
        """
        run = streak.run(end)
        if run is None or self._last_non_result < run.first:
            return None
        return run

    def _close_streak(self, streak: _Streak, end: int) -> None:
        """End a streak before ``end``, and add its run to the finished runs."""
        run = self._run_of_streak(streak, end)
        streak.length = 0
        streak.has_unequal_steps = False
        if run is not None:
            with self._lock:
                self._add_if_larger(run)

    def _add_if_larger(self, run: FoldedRun) -> None:
        """Add a run if it hides more steps than the finished runs that it overlaps.

        Overlapped runs then keep the cycles outside of the run. If the run is not larger, only its
        cycles after the overlapped runs are added.
        """
        runs = self._finished_runs
        position = len(runs)
        while position > 0 and runs[position - 1].end > run.first:
            position -= 1
        later_runs = runs[position:]
        overlapped_runs = [other for other in later_runs if other.first < run.end]
        following_runs = [other for other in later_runs if other.first >= run.end]
        if overlapped_runs and _weight_of(run) <= sum(map(_weight_of, overlapped_runs)):
            remaining_runs = [*overlapped_runs, _cut_run(run, overlapped_runs[-1].end, run.end)]
        elif overlapped_runs:
            cycles_before = _cut_run(overlapped_runs[0], overlapped_runs[0].first, run.first)
            cycles_after = _cut_run(overlapped_runs[-1], run.end, overlapped_runs[-1].end)
            remaining_runs = [cycles_before, run, cycles_after]
        else:
            remaining_runs = [run]
        runs[position:] = [*filter(None, remaining_runs), *following_runs]


def _cut_run(run: FoldedRun, first: int, end: int) -> FoldedRun | None:
    """Return the complete cycles of a run between two spans, or None for fewer than two cycles."""
    skipped_cycles = max(0, ceil((first - run.first) / run.period))
    cut_first = run.first + skipped_cycles * run.period
    cycle_count = (end - cut_first) // run.period
    if cycle_count < 2:
        return None
    return FoldedRun(cut_first, cut_first + cycle_count * run.period, run.period, run.nearly_equal)


def _weight_of(run: FoldedRun | None) -> int:
    """Return the number of steps that folding a run hides; each equal step counts twice."""
    if run is None:
        return 0
    hidden_count = run.end - run.hidden_from
    return hidden_count if run.nearly_equal else 2 * hidden_count


def run_near(trace: Trace, index: int) -> FoldedRun | None:
    """Return the run of repeated steps around a step, within ``NEAR_REACH`` spans on each side.

    Args:
        trace: The trace.
        index: The index of the step's span.
    """
    finder = RepeatFinder(max(0, index - NEAR_REACH))
    finder.read_until(trace, index + NEAR_REACH + 1, is_last=True)
    return finder.run_at(index)


def earlier_repetition(trace: Trace, index: int) -> int | None:
    """Return the nearest earlier step that equals a step, or else the nearest similar step.

    Results of tools are not compared. For a result, the earlier step is the result of the earlier
    equal or similar call.

    Args:
        trace: The trace.
        index: The index of the step.

    Returns:
        The index of the earlier step, or None if there is none among the ``EARLIER_REACH`` spans
        before the step.
    """
    span = trace.span(index)
    if span.kind is SpanKind.TOOL_RESULT:
        return _earlier_result(trace, span)
    features = StepFeatures(span)
    similar_index: int | None = None
    for earlier_index in range(index - 1, max(-1, index - 1 - EARLIER_REACH), -1):
        earlier_features = StepFeatures(trace.span(earlier_index))
        if earlier_features.head != features.head:
            continue
        if features.equals(earlier_features):
            return earlier_index
        if similar_index is None and features.resembles(earlier_features):
            similar_index = earlier_index
    return similar_index


def _earlier_result(trace: Trace, result: Span) -> int | None:
    """Return the result of the earlier call that this result's call repeats, or None."""
    call_index = None if result.parent is None else trace.index_of(result.parent)
    earlier_call_index = None if call_index is None else earlier_repetition(trace, call_index)
    if earlier_call_index is None:
        return None
    earlier_call_key = trace.span(earlier_call_index).key
    for index in range(earlier_call_index + 1, result.index):
        span = trace.span(index)
        if span.kind is SpanKind.TOOL_RESULT and span.parent == earlier_call_key:
            return index
    return None
