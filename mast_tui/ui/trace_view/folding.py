"""Folds of a timeline: runs of equal steps, and steps that belong to another one."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

from mast_tui.traces.model import Span, SpanKind, Trace
from mast_tui.traces.sub_agent_steps import SubAgentFinder, acting_agent

MAX_PERIOD: Final = 4
"""The longest cycle of steps that counts as a repetition, in spans."""

MAX_REACH: Final = 2000
"""The number of spans on each side that are searched for the ends of a run."""


class FoldedRun(NamedTuple):
    """Equal steps: spans ``first`` to ``end`` (exclusive), in cycles of ``period`` spans.

    ``near`` is true if some of them are only nearly equal. Folding hides all cycles but the first.
    """

    first: int
    end: int
    period: int
    near: bool = False

    @property
    def times(self) -> int:
        """The number of cycles."""
        return (self.end - self.first) // self.period

    @property
    def hidden_from(self) -> int:
        """The first span that folding hides."""
        return self.first + self.period

    @property
    def head(self) -> int | None:
        """None: a folded run has a row of its own."""
        return None


class FoldedSteps(NamedTuple):
    """Spans ``first`` to ``end`` (exclusive) that belong together: a sub-agent's, or a step's own.

    Folding hides all of them. In their place is one row that names ``agent``, unless they belong to
    the step ``head``: then that step's row says what is hidden.
    """

    first: int
    end: int
    agent: str = ""
    head: int | None = None

    @property
    def hidden_from(self) -> int:
        """The first span that folding hides."""
        return self.first


Fold = FoldedRun | FoldedSteps


def step_signature(span: Span) -> Hashable:
    """Return a value that is the same for steps that count as equal.

    The text of a tool's result is left out, because the results of equal calls may differ.
    """
    if span.kind is SpanKind.TOOL_RESULT:
        return (span.kind, span.agent, span.name)
    return (span.kind, span.agent, span.name, span.preview)


def run_at(index: int, length: int, signature: Callable[[int], Hashable]) -> FoldedRun | None:
    """Find the run of equal steps around a span.

    The shortest cycle wins. A run holds its cycle at least twice, whole.

    Args:
        index: The span.
        length: The number of spans in the trace.
        signature: Returns the same value for spans that count as equal.

    Returns:
        The run, or None if there is none within ``MAX_REACH`` spans on each side.
    """
    low = max(0, index - MAX_REACH)
    high = min(length, index + MAX_REACH + 1)
    for period in range(1, MAX_PERIOD + 1):
        run = _run_of_period(index, period, low, high, signature)
        if run is not None:
            return run
    return None


def _run_of_period(
    index: int, period: int, low: int, high: int, signature: Callable[[int], Hashable]
) -> FoldedRun | None:
    """Return the run around a span with one length of its cycle, or None."""

    def repeats(step: int) -> bool:
        return low <= step < high - period and signature(step) == signature(step + period)

    start = index
    while start >= index - period:
        if not repeats(start):
            start -= 1
            continue
        first = start
        end = start + 1
        while repeats(first - 1):
            first -= 1
        while repeats(end):
            end += 1
        end += period
        incomplete = (end - first) % period
        if (end - first) // period >= 2:
            # An incomplete cycle is cut off at the end that is further from ``index``.
            return (
                FoldedRun(first, end - incomplete, period)
                if index < end - incomplete
                else FoldedRun(first + incomplete, end, period)
            )
        start = first - 1
    return None


class TimelineRows:
    """The rows of a timeline: one for each span, less those that are folded away or filtered out.

    Only the folds are stored, so finding the span of a row, or the row of a span, takes logarithmic
    time in the number of folds. A filter replaces the folds while it is set.
    """

    def __init__(self) -> None:
        self._spans = 0
        self._folds: list[Fold] = []
        self._by_head: dict[int, Fold] = {}
        # The hidden spans of each fold in order: first, end (exclusive), and the row of the first.
        self._starts = array("Q")
        self._ends = array("Q")
        self._rows = array("Q")
        self._removed = 0
        self._filter: Sequence[int] | None = None
        self._filter_count = 0

    def __len__(self) -> int:
        if self._filter is not None:
            return self._filter_count
        return max(0, self._spans - self._removed)

    @property
    def spans(self) -> int:
        """The number of spans of the trace."""
        return self._spans

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The folds, in the order of the spans that they hide."""
        return tuple(self._folds)

    @property
    def filtered(self) -> bool:
        """True if only some spans have a row."""
        return self._filter is not None

    def grow(self, spans: int) -> None:
        """Set the number of spans of the trace."""
        self._spans = spans

    def clear(self) -> None:
        """Remove all spans, folds and the filter."""
        self._spans = 0
        self._filter = None
        self._filter_count = 0
        self._replace_folds([])

    def set_filter(self, indices: Sequence[int] | None) -> None:
        """Show these spans only, which must be sorted; None shows all again.

        The sequence is not copied. Spans that are added to its end later are shown after the next
        call.
        """
        self._filter = indices
        self._filter_count = 0 if indices is None else len(indices)

    def fold(self, fold: Fold) -> None:
        """Fold these steps; folds that overlap them are unfolded."""
        remaining = [other for other in self._folds if not _overlap(other, fold)]
        self._replace_folds(sorted([*remaining, fold], key=lambda item: item.hidden_from))

    def unfold(self, fold: Fold) -> None:
        """Show the steps of a fold again."""
        self._replace_folds([other for other in self._folds if other != fold])

    def shows(self, index: int) -> bool:
        """Check if a span has a row of its own."""
        if self._filter is not None:
            row = self._nearest(self._filter, index)
            return row < self._filter_count and self._filter[row] == index
        return 0 <= index < self._spans and self.hiding(index) is None

    def hiding(self, index: int) -> Fold | None:
        """Return the fold that hides a span, or None."""
        if self._filter is not None:
            return None
        position = bisect_right(self._starts, index) - 1
        if position >= 0 and index < self._ends[position]:
            return self._folds[position]
        return None

    def folded_under(self, index: int) -> Fold | None:
        """Return the steps that are folded into the row of a step, or None."""
        return None if self._filter is not None else self._by_head.get(index)

    def folded_at(self, index: int) -> Fold | None:
        """Return the fold that a span belongs to, visible or not, or None."""
        if index in self._by_head:
            return self._by_head[index]
        position = bisect_right(self._starts, index) - 1
        if position >= 0 and index < self._ends[position]:
            return self._folds[position]
        # The visible first cycle of a run comes right before the hidden ones.
        position += 1
        if position < len(self._folds) and self._folds[position].first <= index:
            return self._folds[position]
        return None

    def row_of(self, index: int) -> int:
        """Return the row that shows a span, or the fold that hides it.

        With a filter it is the row of the nearest span that passes; 0 where none does.
        """
        if self._filter is not None:
            return self._nearest(self._filter, index)
        position = bisect_right(self._starts, index) - 1
        if position < 0:
            return index
        head = self._folds[position].head
        if index >= self._ends[position]:
            return self._rows[position] + (head is None) + index - self._ends[position]
        return self._rows[position] if head is None else self.row_of(head)

    def span_and_fold(self, row: int) -> tuple[int, Fold | None]:
        """Return the span of a row and, if the row stands for a fold, that fold.

        For a fold the span is the first one that it hides.
        """
        if self._filter is not None:
            return (self._filter[row] if 0 <= row < self._filter_count else 0), None
        position = bisect_right(self._rows, row) - 1
        if position < 0:
            return row, None
        fold = self._folds[position]
        if fold.head is None and row == self._rows[position]:
            return self._starts[position], fold
        return self._ends[position] + row - self._rows[position] - (fold.head is None), None

    def index_at(self, row: int) -> int:
        """Return the span of a row; for a fold the first one that it hides."""
        return self.span_and_fold(row)[0]

    def _nearest(self, indices: Sequence[int], index: int) -> int:
        position = min(bisect_left(indices, index, 0, self._filter_count), self._filter_count - 1)
        if position > 0 and abs(indices[position - 1] - index) < abs(indices[position] - index):
            return position - 1
        return max(0, position)

    def _replace_folds(self, folds: list[Fold]) -> None:
        """Replace the folds, and compute the rows that they hide."""
        self._folds = folds
        self._by_head = {fold.head: fold for fold in folds if fold.head is not None}
        self._starts = array("Q", (fold.hidden_from for fold in folds))
        self._ends = array("Q", (fold.end for fold in folds))
        self._rows = array("Q")
        removed = 0
        for fold in folds:
            self._rows.append(fold.hidden_from - removed)
            removed += fold.end - fold.hidden_from - (fold.head is None)
        self._removed = removed


def _overlap(fold: Fold, other: Fold) -> bool:
    """Check if two folds share a span or their head, or one hides the head of the other."""
    return (
        (fold.head is not None and fold.head == other.head)
        or (fold.first < other.end and other.first < fold.end)
        or (fold.head is not None and other.hidden_from <= fold.head < other.end)
        or (other.head is not None and fold.hidden_from <= other.head < fold.end)
    )


FIRST_CHILD_WITHIN: Final = 64
"""The number of spans after a step that are searched for its first child.

There may be other spans between them, because calls made at once come one after another."""

MAX_CHILDREN: Final = 2000
"""The number of direct children that are followed."""


def steps_of_sub_agent(trace: Trace, first: int, end: int) -> FoldedSteps:
    """Return the steps of a sub-agent as a fold with its name.

    Args:
        trace: The trace.
        first: The first step of the sub-agent.
        end: The step after its last one.
    """
    return FoldedSteps(first, end, acting_agent(trace, first, end))


def steps_under(trace: Trace, index: int, finder: SubAgentFinder) -> FoldedSteps | None:
    """Return the steps that belong to a step: answers, and the sub-agents that it began.

    Args:
        trace: The trace.
        index: The step.
        finder: The sub-agents of the trace.

    Returns:
        The steps as a fold, or None if there are none.
    """
    head = trace.span(index)
    last = min(len(trace), index + 1 + FIRST_CHILD_WITHIN)
    first = next((i for i in range(index + 1, last) if trace.span(i).parent == head.key), None)
    if first is None:
        return None
    parent_keys = {head.key}
    agent = ""
    end = first
    for _ in range(MAX_CHILDREN):
        if end >= len(trace):
            break
        span = trace.span(end)
        if span.parent not in parent_keys:
            break
        block = finder.beginning_at(end)
        if block is not None:
            agent = agent or steps_of_sub_agent(trace, *block).agent
            end = block[1]
        else:
            parent_keys.add(span.key)
            end += 1
    return FoldedSteps(first, end, agent, index)
