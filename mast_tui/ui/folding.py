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

    The shortest cycle wins. At most ``MAX_REACH`` spans to each side are looked at.
    """
    low, high = max(0, index - MAX_REACH), min(length, index + MAX_REACH)
    for period in range(1, MAX_PERIOD + 1):
        first = index
        while (
            first - 1 >= low
            and first - 1 + period < high
            and (signature(first - 1) == signature(first - 1 + period))
        ):
            first -= 1
        end = index + period if index + period <= high else index
        if end == index:
            continue
        base = first
        end = base + period
        while end < high and signature(end) == signature(end - period):
            end += 1
        end -= (end - base) % period
        if (end - base) // period >= 2 and base <= index < end:
            return Run(base, end, period)
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
