"""Runs of equal steps, and the rows of a timeline in which some of them are folded away."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.model import Span, SpanKind

MAX_PERIOD: Final = 4
"""Longest cycle of steps that counts as a repetition, in spans."""

MAX_REACH: Final = 2000
"""How far to each side a run is followed, in spans."""


@dataclass(frozen=True, slots=True)
class Run:
    """Equal steps: spans ``first`` to ``end`` (exclusive), in cycles of ``period`` spans."""

    first: int
    end: int
    period: int

    @property
    def times(self) -> int:
        """How often the cycle occurs."""
        return (self.end - self.first) // self.period


def step_signature(span: Span) -> Hashable:
    """What makes two steps look equal; answers may differ, the question counts."""
    if span.kind is SpanKind.TOOL_RESULT:
        return (span.kind, span.agent, span.name)
    return (span.kind, span.agent, span.name, span.preview)


def run_at(index: int, length: int, signature: Callable[[int], Hashable]) -> Run | None:
    """The run of equal steps in which span ``index`` stands, or None.

    The shortest cycle wins, and a run holds it at least twice, whole. At most ``MAX_REACH`` spans
    to each side are looked at.
    """
    low, high = max(0, index - MAX_REACH), min(length, index + MAX_REACH + 1)
    for period in range(1, MAX_PERIOD + 1):
        run = _run_of_period(index, period, low, high, signature)
        if run is not None:
            return run
    return None


def _run_of_period(
    index: int, period: int, low: int, high: int, signature: Callable[[int], Hashable]
) -> Run | None:
    def comes_again(step: int) -> bool:
        return low <= step < high - period and signature(step) == signature(step + period)

    place = index
    while place >= index - period:
        if not comes_again(place):
            place -= 1
            continue
        first, end = place, place + 1
        while comes_again(first - 1):
            first -= 1
        while comes_again(end):
            end += 1
        end += period
        odd = (end - first) % period
        if (end - first) // period >= 2:
            # What is no whole cycle stays outside, at the end that is further from the cursor.
            return (
                Run(first, end - odd, period)
                if index < end - odd
                else Run(first + odd, end, period)
            )
        place = first - 1
    return None


class FoldedRows:
    """Which span each row shows, where runs are folded to their first cycle and one line more."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._starts: list[int] = []
        self._rows: list[int] = []

    @property
    def runs(self) -> tuple[Run, ...]:
        """The folded runs, in order."""
        return tuple(self._runs)

    def fold(self, run: Run) -> None:
        """Fold this run; runs that it overlaps are unfolded."""
        kept = [other for other in self._runs if other.end <= run.first or other.first >= run.end]
        self._set(sorted([*kept, run], key=lambda item: item.first))

    def unfold(self, run: Run) -> None:
        """Show all spans of this run again."""
        self._set([other for other in self._runs if other != run])

    def clear(self) -> None:
        """Show everything."""
        self._set([])

    def folded_at(self, index: int) -> Run | None:
        """The folded run in which span ``index`` stands."""
        place = bisect_right([run.first for run in self._runs], index) - 1
        if place >= 0 and index < self._runs[place].end:
            return self._runs[place]
        return None

    def count(self, spans: int) -> int:
        """How many rows there are for this many spans."""
        return spans - sum(self._hidden(run) - 1 for run in self._runs)

    def row_of(self, index: int) -> int:
        """The row that shows span ``index``, or the fold it is in."""
        place = bisect_right(self._starts, index) - 1
        if place < 0:
            return index
        run = self._runs[place]
        row = self._rows[place]
        return row if index < run.end else row + 1 + index - run.end

    def span_at(self, row: int) -> tuple[int, Run | None]:
        """The span that a row shows, and the run where the row is its fold line."""
        place = bisect_right(self._rows, row) - 1
        if place < 0:
            return row, None
        run = self._runs[place]
        if row == self._rows[place]:
            return self._starts[place], run
        return run.end + row - self._rows[place] - 1, None

    @staticmethod
    def _hidden(run: Run) -> int:
        return run.end - run.first - run.period

    def _set(self, runs: list[Run]) -> None:
        self._runs = runs
        self._starts = [run.first + run.period for run in runs]
        self._rows = []
        shift = 0
        for run, start in zip(runs, self._starts, strict=True):
            self._rows.append(start - shift)
            shift += self._hidden(run) - 1
