"""Runs of equal or nearly equal steps, found as the spans of a trace become known."""

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
"""From how many per cent on two texts count as nearly equal."""

COMPARED_CHARS: Final = 200

TWIN_REACH: Final = 500
"""How far back a step's twin is looked for, in spans."""

_GLANCED: Final = 256
"""How many spans are glanced at in one go."""

_LOOKED_BACK: Final = 2 * MAX_PERIOD
"""So many spans back a run may begin that is not known of yet."""

_NUMBER: Final = re.compile(r"\d+")
_NO_QUOTES: Final = dict.fromkeys(map(ord, "\"'`‘’“”"))
_LAST_PART: Final = re.compile(r"""(?<=[\w.~-]/)[^\s/"'`,;:)\]}]+(?=$|[\s"'`,;:)\]}])""")


class StepLook:
    """What two steps are compared by. Answers may differ: for a tool's result its tool counts."""

    def __init__(self, span: Span) -> None:
        self.head = (span.kind, span.agent, span.name)
        self.answer = span.kind is SpanKind.TOOL_RESULT
        self.text = "" if self.answer else span.preview

    @cached_property
    def normal(self) -> str:
        """The text with numbers, quotes and the last parts of paths left out of account."""
        text = self.text[:COMPARED_CHARS]
        if "/" in text:
            text = _LAST_PART.sub("*", text)
        return _NUMBER.sub("0", text.translate(_NO_QUOTES))

    def equals(self, other: StepLook) -> bool:
        """Whether the two look the same."""
        return self.head == other.head and self.text == other.text

    def resembles(self, other: StepLook) -> bool:
        """Whether the two are nearly the same: alike but for details of what is asked."""
        if self.head != other.head:
            return False
        if self.normal == other.normal:
            return True
        # The first spans are shown before anything heavy is imported.
        from rapidfuzz import fuzz

        return fuzz.ratio(self.normal, other.normal, score_cutoff=ALIKE) > 0


class _Scan:
    """Finds where steps are like those ``period`` before them for so long that it may be a run.

    Of so many steps that follow each other each must be; so most of them need not be looked at.
    """

    def __init__(self, period: int) -> None:
        self.period = period
        self._start = period  # no step before this one is in a streak that is still to be found
        self._end = 0  # behind the streak that begins there; 0 for none

    def go(
        self, end: int, same_head: Callable[[int, int], bool], alike: Callable[[int, int], bool]
    ) -> Iterator[tuple[int, int]]:
        """The stretches before ``end`` that may hold runs; the last may be told again, longer."""
        period = self.period
        while True:
            if self._end:
                while self._end < end and alike(self._end, period):
                    self._end += 1
                yield self._start - period, self._end
                if self._end == end:
                    return
                self._start, self._end = self._end + 1, 0
            if self._start + period > end:
                return
            unlike = self._last_unlike(same_head)
            if unlike is None:
                unlike = self._last_unlike(alike)
            if unlike is None:
                self._end = self._start + period
            else:
                self._start = unlike + 1

    def _last_unlike(self, alike: Callable[[int, int], bool]) -> int | None:
        """The last of the next ``period`` steps that is not like the one before it."""
        for place in range(self._start + self.period - 1, self._start - 1, -1):
            if not alike(place, self.period):
                return place
        return None


class _Heads:
    """Numbers for what must be the same of steps that are alike: kind, agent and name."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[SpanKind, str, str | None], int] = {}
        self._told: Sequence[Shape] = ()
        self._of_shape: list[int] = []
        self._first = 0
        self._window: list[int] = []
        self._answers: set[int] = set()

    def knows(self, first: int, end: int) -> bool:
        """Whether the heads of these spans are known."""
        return self._first <= first and end <= self._first + len(self._window)

    def show(self, found: SpanColumns) -> None:
        """Know the heads of these spans, and no others."""
        if found.shape_list is not self._told:
            self._told, self._of_shape = found.shape_list, []
        for kind, _role, agent, name in found.shape_list[len(self._of_shape) :]:
            number = self._numbers.setdefault((kind, agent, name), len(self._numbers))
            self._of_shape.append(number)
            if kind is SpanKind.TOOL_RESULT:
                self._answers.add(number)
        self._first = found.first
        self._window = [self._of_shape[number] for number in found.shapes]

    def same(self, index: int, period: int) -> bool:
        """Whether a step has the head of the one ``period`` before it."""
        place = index - self._first
        return self._window[place] == self._window[place - period]

    def is_answer(self, index: int) -> bool:
        """Whether a step is a tool's result."""
        return self._window[index - self._first] in self._answers


class _Streak:
    """How long the steps have been like those ``period`` before them."""

    def __init__(self, period: int, near: bool) -> None:
        self.period = period
        self.near = near
        self.length = 0
        self.differs = False

    def run(self, end: int) -> FoldedRun | None:
        """The whole cycles of the streak, which ends before ``end``; nothing below two."""
        first = end - self.length - self.period
        times = (self.length + self.period) // self.period
        if not self.length or times < 2 or (self.near and not self.differs):
            return None
        return FoldedRun(first, first + times * self.period, self.period, self.near)


class RepeatFinder:
    """Looks at the spans in order, and keeps only where runs are.

    The texts of steps are compared only where the heads of enough steps in a row come again, and
    of those only until one differs. Runs never overlap; of two that would, the one that folds away
    more stays, and equal steps count twice as much as nearly equal ones. One thread may ``take``
    while another asks.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.closed = False
        """Whether the trace was known to its end when that was looked at: no run goes on there."""
        periods = range(1, MAX_PERIOD + 1)
        self._heads = _Heads()
        self._looks: dict[int, StepLook] = {}
        self._scans = [_Scan(period) for period in periods]
        # Stretches that may hold runs, in order; up to ``_settled`` they have been gone through.
        self._likely: list[tuple[int, int]] = []
        self._settled = 0
        self._recent: deque[StepLook] = deque(maxlen=MAX_PERIOD)
        self._streaks = [_Streak(p, near) for near in (False, True) for p in periods]
        self._asked_last = -1
        self._open: FoldedRun | None = None
        self._lock = Lock()
        self._firsts = array("I")
        self._ends = array("I")
        self._periods = array("b")  # negative: nearly equal

    def take(self, trace: Trace, end: int) -> None:
        """StepLook at the spans up to ``end`` (exclusive); at the last of all runs are closed."""
        end = max(self.seen, min(end, len(trace)))
        first = max(0, self.seen - _LOOKED_BACK)
        if not self._heads.knows(first, end):
            self._heads.show(trace.columns(first, max(end, first + _GLANCED)))

        def alike(index: int, period: int) -> bool:
            if not self._heads.same(index, period):
                return False
            if self._heads.is_answer(index):
                return True
            return self._look(trace, index).resembles(self._look(trace, index - period))

        for scan in self._scans:
            self._likely += scan.go(end, self._heads.same, alike)
        self.seen = end
        over = trace.loaded.complete and end >= len(trace)
        # What a scan has not settled yet begins no further back.
        self._settle(trace, end if over else max(self._settled, end - _LOOKED_BACK))
        self.closed = over
        if over:
            self._leave(end)
            self._open = None
        else:
            runs = [self._worthy(streak, self._settled) for streak in self._streaks]
            self._open = max((run for run in runs if run), key=_weight, default=None)

    def _look(self, trace: Trace, index: int) -> StepLook:
        look = self._looks.get(index)
        if look is None:
            look = self._looks[index] = StepLook(trace.span(index))
        return look

    def _settle(self, trace: Trace, limit: int) -> None:
        """Go through what is likely before ``limit``, and forget what lies further back."""
        for first, end in sorted(self._likely):
            if first >= limit:
                break
            first, end = max(first, self._settled), min(end, limit)
            if first > self._settled:
                self._leave(self._settled)
            for index in range(first, end):
                self._go_on(index, self._look(trace, index))
            self._settled = max(self._settled, end)
        if self._settled < limit:
            self._leave(self._settled)
            self._settled = limit
        self._likely = [place for place in self._likely if place[1] > limit]
        self._looks = {i: look for i, look in self._looks.items() if i >= limit - MAX_PERIOD}

    def run_at(self, index: int) -> FoldedRun | None:
        """The run that holds span ``index``, as far as is known."""
        with self._lock:
            place = bisect_right(self._firsts, index) - 1
            found = self._at(place) if place >= 0 and index < self._ends[place] else None
        last = self._open
        if last is not None and last.first <= index < last.end and _weight(last) > _weight(found):
            return last
        return found

    def runs(self) -> tuple[FoldedRun, ...]:
        """All runs that are over, in order."""
        with self._lock:
            return tuple(self._at(place) for place in range(len(self._firsts)))

    def _go_on(self, index: int, look: StepLook) -> None:
        for streak in self._streaks:
            period = streak.period
            if len(self._recent) < period:
                continue
            before = self._recent[-period]
            equal = look.equals(before)
            if equal or (streak.near and look.resembles(before)):
                streak.length += 1
                streak.differs = streak.differs or not equal
            else:
                self._close(streak, index)
        if not look.answer:
            self._asked_last = index
        self._recent.append(look)

    def _leave(self, end: int) -> None:
        """No streak goes on beyond ``end``."""
        for streak in self._streaks:
            self._close(streak, end)
        self._recent.clear()

    def _worthy(self, streak: _Streak, end: int) -> FoldedRun | None:
        """The streak's run, unless it is made of answers only, which may all be different."""
        run = streak.run(end)
        return run if run is not None and self._asked_last >= run.first else None

    def _close(self, streak: _Streak, end: int) -> None:
        run = self._worthy(streak, end)
        streak.length, streak.differs = 0, False
        if run is not None:
            with self._lock:
                self._offer(run)

    def _offer(self, run: FoldedRun) -> None:
        """Keep a run if it folds away more than those that it overlaps."""
        count = len(self._firsts)
        place = count
        while place > 0 and self._ends[place - 1] > run.first:
            place -= 1
        later = [self._at(other) for other in range(place, count)]
        overlapped = [other for other in later if other.first < run.end]
        behind = [other for other in later if other.first >= run.end]
        if overlapped and _weight(run) <= sum(map(_weight, overlapped)):
            # What comes behind the others may still be a run.
            kept = [*overlapped, _cut(run, overlapped[-1].end, run.end)]
        elif overlapped:
            before = _cut(overlapped[0], overlapped[0].first, run.first)
            after = _cut(overlapped[-1], run.end, overlapped[-1].end)
            kept = [before, run, after]
        else:
            kept = [run]
        for part in (self._firsts, self._ends, self._periods):
            del part[place:]
        for one in (*kept, *behind):
            if one is not None:
                self._append(one)

    def _append(self, run: FoldedRun) -> None:
        self._firsts.append(run.first)
        self._ends.append(run.end)
        self._periods.append(-run.period if run.near else run.period)

    def _at(self, place: int) -> FoldedRun:
        period = self._periods[place]
        return FoldedRun(self._firsts[place], self._ends[place], abs(period), period < 0)


def _cut(run: FoldedRun, first: int, end: int) -> FoldedRun | None:
    """The whole cycles of a run between two places; nothing below two."""
    first += -(first - run.first) % run.period if first > run.first else 0
    times = (end - first) // run.period
    return (
        FoldedRun(first, first + times * run.period, run.period, run.near) if times >= 2 else None
    )


def _weight(run: FoldedRun | None) -> int:
    if run is None:
        return 0
    hidden = run.end - run.hidden_from
    return hidden if run.near else 2 * hidden


def twin_of(trace: Trace, index: int) -> int | None:
    """The nearest step before ``index`` that is equal to it, else the nearest that is nearly so.

    At most ``TWIN_REACH`` steps are looked at.
    """
    look = StepLook(trace.span(index))
    near: int | None = None
    for before in range(index - 1, max(-1, index - 1 - TWIN_REACH), -1):
        other = StepLook(trace.span(before))
        if other.head != look.head:
            continue
        if look.equals(other):
            return before
        if near is None and look.resembles(other):
            near = before
    return near
