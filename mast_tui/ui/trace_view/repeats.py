"""Runs of equal or nearly equal steps, found while the spans of a trace are read."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import Final

from mast_tui.traces.model import Shape, Span, SpanColumns, SpanKind, Trace
from mast_tui.ui.trace_view.folding import MAX_PERIOD, FoldedRun

ALIKE: Final = 90
"""The similarity in per cent from which two texts count as nearly equal."""

COMPARED_CHARS: Final = 200

EARLIER_REACH: Final = 500
"""The number of earlier spans that are searched for a repetition of a step."""

_WINDOW: Final = 256
"""The number of spans whose kinds, agents and names are read at once."""

_LOOKBACK: Final = 2 * MAX_PERIOD
"""A run that no scan has reported yet begins at most so many spans before the last one scanned."""

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

        return fuzz.ratio(self.normal, other.normal, score_cutoff=ALIKE) > 0


class _Scan:
    """A search for stretches of steps that may repeat with one period.

    In such a stretch each step is like the one ``period`` steps before it. A run needs at least
    ``period`` such steps in a row, so the scan skips most steps without comparing them.
    """

    def __init__(self, period: int) -> None:
        self.period = period
        self._start = period  # all stretches before this step have been reported
        self._end = 0  # the end (exclusive) of the stretch that begins there; 0 for none

    def candidates(
        self, end: int, same_head: Callable[[int, int], bool], alike: Callable[[int, int], bool]
    ) -> Iterator[tuple[int, int]]:
        """Yield the first and last span (exclusive) of each stretch before ``end``.

        The next call yields the last stretch again, longer, if it continues.

        Args:
            end: The first span that is not read yet.
            same_head: Checks if a step has the kind, agent and name of the one so many steps before
                it.
            alike: Checks if a step also has nearly the same text.
        """
        period = self.period
        while True:
            if self._end:
                while self._end < end and alike(self._end, period):
                    self._end += 1
                yield self._start - period, self._end
                if self._end == end:
                    return
                self._start = self._end + 1
                self._end = 0
            if self._start + period > end:
                return
            different = self._last_different(same_head)
            if different is None:
                different = self._last_different(alike)
            if different is None:
                self._end = self._start + period
            else:
                self._start = different + 1

    def _last_different(self, alike: Callable[[int, int], bool]) -> int | None:
        """Return the last of the next ``period`` steps that is not like its predecessor."""
        for index in range(self._start + self.period - 1, self._start - 1, -1):
            if not alike(index, self.period):
                return index
        return None


class _Heads:
    """A number for each combination of kind, agent and name, for a window of spans."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[SpanKind, str, str | None], int] = {}
        self._shapes: Sequence[Shape] = ()
        self._number_of_shape: list[int] = []
        self._first = 0
        self._window: list[int] = []
        self._result_numbers: set[int] = set()

    def contains(self, first: int, end: int) -> bool:
        """Check if the window holds all these spans."""
        return self._first <= first and end <= self._first + len(self._window)

    def load(self, columns: SpanColumns) -> None:
        """Replace the window by these spans."""
        if columns.shape_list is not self._shapes:
            self._shapes = columns.shape_list
            self._number_of_shape = []
        for kind, _role, agent, name in columns.shape_list[len(self._number_of_shape) :]:
            number = self._numbers.setdefault((kind, agent, name), len(self._numbers))
            self._number_of_shape.append(number)
            if kind is SpanKind.TOOL_RESULT:
                self._result_numbers.add(number)
        self._first = columns.first
        self._window = [self._number_of_shape[number] for number in columns.shapes]

    def same(self, index: int, period: int) -> bool:
        """Check if a step has the kind, agent and name of the one ``period`` steps before it."""
        position = index - self._first
        return self._window[position] == self._window[position - period]

    def is_result(self, index: int) -> bool:
        """Check if a step is a tool's result."""
        return self._window[index - self._first] in self._result_numbers


class _Streak:
    """The steps up to the current one that are like those ``period`` steps before them."""

    def __init__(self, period: int, near: bool) -> None:
        self.period = period
        self.near = near
        self.length = 0
        self.differs = False

    def run(self, end: int) -> FoldedRun | None:
        """Return the whole cycles of the streak, which ends before ``end``.

        Returns None for fewer than two cycles, and for a streak of nearly equal steps in which all
        are equal: the streak of equal steps has it.
        """
        first = end - self.length - self.period
        times = (self.length + self.period) // self.period
        if not self.length or times < 2 or (self.near and not self.differs):
            return None
        return FoldedRun(first, first + times * self.period, self.period, self.near)


class RepeatFinder:
    """The runs of repeated steps in a trace, found step by step.

    Texts are compared only where kind, agent and name of enough steps in a row repeat, and only up
    to the first text that differs. Runs never overlap: of two that would, the one that hides more
    steps stays, and equal steps count twice as much as nearly equal ones. One thread may call
    ``read_until`` while others ask for runs.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.closed = False
        """Whether the trace has been read to its end, so that no run can continue."""
        periods = range(1, MAX_PERIOD + 1)
        self._heads = _Heads()
        self._features: dict[int, StepFeatures] = {}
        self._scans = [_Scan(period) for period in periods]
        # Stretches that may hold runs. Before span ``_compared`` their steps have been compared.
        self._candidates: list[tuple[int, int]] = []
        self._compared = 0
        self._recent: deque[StepFeatures] = deque(maxlen=MAX_PERIOD)
        self._streaks = [_Streak(p, near) for near in (False, True) for p in periods]
        self._last_non_result = -1
        self._unfinished: FoldedRun | None = None
        self._lock = Lock()
        self._firsts = array("I")
        self._ends = array("I")
        self._periods = array("b")  # negative for nearly equal steps

    def read_until(self, trace: Trace, end: int) -> None:
        """Read the spans up to ``end`` (exclusive); the end of the trace closes all runs.

        Args:
            trace: The trace; always the same one.
            end: The first span that is not read yet.
        """
        end = max(self.seen, min(end, len(trace)))
        first = max(0, self.seen - _LOOKBACK)
        if not self._heads.contains(first, end):
            self._heads.load(trace.columns(first, max(end, first + _WINDOW)))

        def alike(index: int, period: int) -> bool:
            if not self._heads.same(index, period):
                return False
            if self._heads.is_result(index):
                return True
            return self._features_of(trace, index).resembles(
                self._features_of(trace, index - period)
            )

        for scan in self._scans:
            self._candidates += scan.candidates(end, self._heads.same, alike)
        self.seen = end
        at_end = trace.loaded.complete and end >= len(trace)
        # A scan may still report a stretch that begins so many spans back.
        self._compare_until(trace, end if at_end else max(self._compared, end - _LOOKBACK))
        self.closed = at_end
        if at_end:
            self._close_all(end)
            self._unfinished = None
        else:
            runs = [self._run_of(streak, self._compared) for streak in self._streaks]
            self._unfinished = max((run for run in runs if run), key=_weight, default=None)

    def _features_of(self, trace: Trace, index: int) -> StepFeatures:
        features = self._features.get(index)
        if features is None:
            features = self._features[index] = StepFeatures(trace.span(index))
        return features

    def _compare_until(self, trace: Trace, limit: int) -> None:
        """Compare the steps of the candidates before ``limit``, and forget earlier steps."""
        for first, end in sorted(self._candidates):
            if first >= limit:
                break
            first = max(first, self._compared)
            end = min(end, limit)
            if first > self._compared:
                self._close_all(self._compared)
            for index in range(first, end):
                self._compare(index, self._features_of(trace, index))
            self._compared = max(self._compared, end)
        if self._compared < limit:
            self._close_all(self._compared)
            self._compared = limit
        self._candidates = [candidate for candidate in self._candidates if candidate[1] > limit]
        self._features = {
            index: features
            for index, features in self._features.items()
            if index >= limit - MAX_PERIOD
        }

    def run_at(self, index: int) -> FoldedRun | None:
        """Return the run that holds span ``index`` as far as the trace was read, or None."""
        with self._lock:
            position = bisect_right(self._firsts, index) - 1
            inside = position >= 0 and index < self._ends[position]
            finished = self._run(position) if inside else None
        last = self._unfinished
        if last is None or not last.first <= index < last.end:
            return finished
        return last if _weight(last) > _weight(finished) else finished

    def runs(self) -> tuple[FoldedRun, ...]:
        """Return all runs that no later step can extend, in order."""
        with self._lock:
            return tuple(self._run(position) for position in range(len(self._firsts)))

    def _compare(self, index: int, features: StepFeatures) -> None:
        """Extend or close each streak with the next step."""
        for streak in self._streaks:
            period = streak.period
            if len(self._recent) < period:
                continue
            earlier = self._recent[-period]
            equal = features.equals(earlier)
            if equal or (streak.near and features.resembles(earlier)):
                streak.length += 1
                streak.differs = streak.differs or not equal
            else:
                self._close(streak, index)
        if not features.is_result:
            self._last_non_result = index
        self._recent.append(features)

    def _close_all(self, end: int) -> None:
        """Close every streak before ``end``."""
        for streak in self._streaks:
            self._close(streak, end)
        self._recent.clear()

    def _run_of(self, streak: _Streak, end: int) -> FoldedRun | None:
        """Return the run of a streak, or None if it consists of tools' results only.

        Results count as equal whatever they say.
        """
        run = streak.run(end)
        return run if run is not None and self._last_non_result >= run.first else None

    def _close(self, streak: _Streak, end: int) -> None:
        run = self._run_of(streak, end)
        streak.length = 0
        streak.differs = False
        if run is not None:
            with self._lock:
                self._keep_if_larger(run)

    def _keep_if_larger(self, run: FoldedRun) -> None:
        """Add a run if it hides more steps than the runs that it overlaps."""
        count = len(self._firsts)
        position = count
        while position > 0 and self._ends[position - 1] > run.first:
            position -= 1
        later = [self._run(number) for number in range(position, count)]
        overlapped = [other for other in later if other.first < run.end]
        following = [other for other in later if other.first >= run.end]
        if overlapped and _weight(run) <= sum(map(_weight, overlapped)):
            # The cycles after the overlapped runs may still be a run.
            remaining = [*overlapped, _cut(run, overlapped[-1].end, run.end)]
        elif overlapped:
            head = _cut(overlapped[0], overlapped[0].first, run.first)
            tail = _cut(overlapped[-1], run.end, overlapped[-1].end)
            remaining = [head, run, tail]
        else:
            remaining = [run]
        for column in (self._firsts, self._ends, self._periods):
            del column[position:]
        for part in (*remaining, *following):
            if part is not None:
                self._append(part)

    def _append(self, run: FoldedRun) -> None:
        self._firsts.append(run.first)
        self._ends.append(run.end)
        self._periods.append(-run.period if run.near else run.period)

    def _run(self, position: int) -> FoldedRun:
        period = self._periods[position]
        return FoldedRun(self._firsts[position], self._ends[position], abs(period), period < 0)


def _cut(run: FoldedRun, first: int, end: int) -> FoldedRun | None:
    """Return the whole cycles of a run between two spans, or None for fewer than two."""
    first += -(first - run.first) % run.period if first > run.first else 0
    times = (end - first) // run.period
    return (
        FoldedRun(first, first + times * run.period, run.period, run.near) if times >= 2 else None
    )


def _weight(run: FoldedRun | None) -> int:
    """Return how much folding a run hides; equal steps count twice."""
    if run is None:
        return 0
    hidden = run.end - run.hidden_from
    return hidden if run.near else 2 * hidden


def earlier_repetition(trace: Trace, index: int) -> int | None:
    """Return the nearest earlier step that equals a step, or else the nearest similar one.

    Args:
        trace: The trace.
        index: The index of the step.

    Returns:
        The index of the earlier step, or None if none of the ``EARLIER_REACH`` spans before it is.
    """
    features = StepFeatures(trace.span(index))
    near: int | None = None
    for earlier in range(index - 1, max(-1, index - 1 - EARLIER_REACH), -1):
        other = StepFeatures(trace.span(earlier))
        if other.head != features.head:
            continue
        if features.equals(other):
            return earlier
        if near is None and features.resembles(other):
            near = earlier
    return near
