"""What a timeline can fold away: runs of equal steps, and steps that belong to another one."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

from mast_tui.traces.model import Span, SpanKind, Trace
from mast_tui.traces.sub_agent_steps import SubAgentFinder, acting_agent

MAX_PERIOD: Final = 4
"""Longest cycle of steps that counts as a repetition, in spans."""

MAX_REACH: Final = 2000
"""How far to each side a run is followed, in spans."""


class FoldedRun(NamedTuple):
    """Equal steps: spans ``first`` to ``end`` (exclusive), in cycles of ``period`` spans.

    ``near`` says that some of them are only nearly equal. Folded, the first cycle stays in sight.
    """

    first: int
    end: int
    period: int
    near: bool = False

    @property
    def times(self) -> int:
        """How often the cycle occurs."""
        return (self.end - self.first) // self.period

    @property
    def hidden_from(self) -> int:
        """The first span that is out of sight when the run is folded."""
        return self.first + self.period

    @property
    def head(self) -> int | None:
        """A run has a line of its own for what it hides."""
        return None


class FoldedSteps(NamedTuple):
    """Spans ``first`` to ``end`` (exclusive) that belong together: a sub-agent's, or a step's own.

    Folded, they are one line that tells of ``agent``; or, where ``head`` is the step that they
    belong to, no line but that step's.
    """

    first: int
    end: int
    agent: str = ""
    head: int | None = None

    @property
    def hidden_from(self) -> int:
        """The first span that is out of sight when they are folded: all of them are."""
        return self.first


Fold = FoldedRun | FoldedSteps


def step_signature(span: Span) -> Hashable:
    """What makes two steps look equal; answers may differ, the question counts."""
    if span.kind is SpanKind.TOOL_RESULT:
        return (span.kind, span.agent, span.name)
    return (span.kind, span.agent, span.name, span.preview)


def run_at(index: int, length: int, signature: Callable[[int], Hashable]) -> FoldedRun | None:
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
) -> FoldedRun | None:
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
                FoldedRun(first, end - odd, period)
                if index < end - odd
                else FoldedRun(first + odd, end, period)
            )
        place = first - 1
    return None


class TimelineRows:
    """Rows and spans of a trace that may grow; what is kept is the folds, not the spans.

    While only some spans are shown nothing is folded; the folds come back with the others. Going
    from a row to its span or back costs the logarithm of the number of folds.
    """

    def __init__(self) -> None:
        self._spans = 0
        self._folds: list[Fold] = []
        self._under: dict[int, Fold] = {}
        # What folds hide, sorted and apart: from, to (exclusive), and the row where that would be.
        self._starts = array("Q")
        self._ends = array("Q")
        self._rows = array("Q")
        self._removed = 0
        self._only: Sequence[int] | None = None
        self._only_count = 0

    def __len__(self) -> int:
        if self._only is not None:
            return self._only_count
        return max(0, self._spans - self._removed)

    @property
    def spans(self) -> int:
        """How many spans the trace had when that was told last."""
        return self._spans

    @property
    def folds(self) -> tuple[Fold, ...]:
        """What is folded, in the order of what it hides."""
        return tuple(self._folds)

    @property
    def filtered(self) -> bool:
        """Whether only some spans are shown."""
        return self._only is not None

    def grow(self, spans: int) -> None:
        """The trace has this many spans now."""
        self._spans = spans

    def clear(self) -> None:
        """Another trace, of which nothing is known yet."""
        self._spans = 0
        self._only, self._only_count = None, 0
        self._set([])

    def show_only(self, indices: Sequence[int] | None) -> None:
        """Show these spans only (sorted); None shows all again.

        The sequence is not copied: what is added to its end counts once it is given again.
        """
        self._only = indices
        self._only_count = 0 if indices is None else len(indices)

    def fold(self, fold: Fold) -> None:
        """Fold this away; what overlaps it is unfolded."""
        kept = [other for other in self._folds if not _overlap(other, fold)]
        self._set(sorted([*kept, fold], key=lambda item: item.hidden_from))

    def unfold(self, fold: Fold) -> None:
        """Show all of it again."""
        self._set([other for other in self._folds if other != fold])

    def shows(self, index: int) -> bool:
        """Whether the row of span ``index`` is its own."""
        if self._only is not None:
            row = self._nearest(self._only, index)
            return row < self._only_count and self._only[row] == index
        return 0 <= index < self._spans and self.hiding(index) is None

    def hiding(self, index: int) -> Fold | None:
        """The fold that span ``index`` is out of sight in."""
        if self._only is not None:
            return None
        place = bisect_right(self._starts, index) - 1
        if place >= 0 and index < self._ends[place]:
            return self._folds[place]
        return None

    def folded_under(self, index: int) -> Fold | None:
        """What is folded under the step ``index``, of those that have no line of their own."""
        return None if self._only is not None else self._under.get(index)

    def folded_at(self, index: int) -> Fold | None:
        """The fold that span ``index`` is a part of, in sight or not."""
        if index in self._under:
            return self._under[index]
        place = bisect_right(self._starts, index) - 1
        if place >= 0 and index < self._ends[place]:
            return self._folds[place]
        # The first cycle of a run stands right before what the run hides.
        place += 1
        if place < len(self._folds) and self._folds[place].first <= index:
            return self._folds[place]
        return None

    def row_of(self, index: int) -> int:
        """The row that shows span ``index``, or the fold that it is hidden in.

        While only some are shown it is the row of the nearest one; 0 where there is none.
        """
        if self._only is not None:
            return self._nearest(self._only, index)
        place = bisect_right(self._starts, index) - 1
        if place < 0:
            return index
        head = self._folds[place].head
        if index >= self._ends[place]:
            return self._rows[place] + (head is None) + index - self._ends[place]
        return self._rows[place] if head is None else self.row_of(head)

    def at(self, row: int) -> tuple[int, Fold | None]:
        """The span that a row shows; and, where the row is the line of a fold, that fold.

        A fold's line goes by the first span that it hides.
        """
        if self._only is not None:
            return (self._only[row] if 0 <= row < self._only_count else 0), None
        place = bisect_right(self._rows, row) - 1
        if place < 0:
            return row, None
        fold = self._folds[place]
        if fold.head is None and row == self._rows[place]:
            return self._starts[place], fold
        return self._ends[place] + row - self._rows[place] - (fold.head is None), None

    def index_at(self, row: int) -> int:
        """The span that a row shows; for a fold's line the first one that it hides."""
        return self.at(row)[0]

    def _nearest(self, only: Sequence[int], index: int) -> int:
        place = min(bisect_left(only, index, 0, self._only_count), self._only_count - 1)
        if place > 0 and abs(only[place - 1] - index) < abs(only[place] - index):
            return place - 1
        return max(0, place)

    def _set(self, folds: list[Fold]) -> None:
        self._folds = folds
        self._under = {fold.head: fold for fold in folds if fold.head is not None}
        self._starts = array("Q", (fold.hidden_from for fold in folds))
        self._ends = array("Q", (fold.end for fold in folds))
        self._rows = array("Q")
        removed = 0
        for fold in folds:
            self._rows.append(fold.hidden_from - removed)
            removed += fold.end - fold.hidden_from - (fold.head is None)
        self._removed = removed


def _overlap(one: Fold, other: Fold) -> bool:
    """Whether the two share a span or a step above them, or one hides the other's."""
    return (
        (one.head is not None and one.head == other.head)
        or (one.first < other.end and other.first < one.end)
        or (one.head is not None and other.hidden_from <= one.head < other.end)
        or (other.head is not None and one.hidden_from <= other.head < one.end)
    )


FIRST_CHILD_WITHIN: Final = 64
"""How far behind a step its first child is looked for: calls made at once stand together."""

MOST_CHILDREN: Final = 2000
"""How many direct children are followed."""


def steps_of_sub_agent(trace: Trace, first: int, end: int) -> FoldedSteps:
    """The steps of a sub-agent as a fold with its name."""
    return FoldedSteps(first, end, acting_agent(trace, first, end))


def steps_under(trace: Trace, index: int, finder: SubAgentFinder) -> FoldedSteps | None:
    """What belongs under a step: answers, and the sub-agents that it began; None for nothing."""
    head = trace.span(index)
    last = min(len(trace), index + 1 + FIRST_CHILD_WITHIN)
    first = next((i for i in range(index + 1, last) if trace.span(i).parent == head.key), None)
    if first is None:
        return None
    inside = {head.key}
    agent = ""
    place = first
    for _ in range(MOST_CHILDREN):
        if place >= len(trace):
            break
        span = trace.span(place)
        if span.parent not in inside:
            break
        block = finder.beginning_at(place)
        if block is not None:
            agent = agent or steps_of_sub_agent(trace, *block).agent
            place = block[1]
        else:
            inside.add(span.key)
            place += 1
    return FoldedSteps(first, place, agent, index)
