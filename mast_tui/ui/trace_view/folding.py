"""Folds of a timeline: runs of equal steps, and steps that belong to another one."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from mast_tui.traces.model import Trace
from mast_tui.traces.sub_agent_steps import SubAgentFinder, acting_agent

MAX_PERIOD: Final = 4
"""The longest cycle of steps that counts as a repetition, in spans."""


class FoldedRun(NamedTuple):
    """A run of equal steps in cycles.

    Folding hides all cycles but the first.

    Attributes:
        first: The first span.
        end: The span after the last one.
        period: The number of spans of a cycle.
        nearly_equal: True if some cycles are only nearly equal.
    """

    first: int
    end: int
    period: int
    nearly_equal: bool = False

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
    """Spans that belong together: the steps of a sub-agent, or those under another step.

    Folding hides all of them.

    Attributes:
        first: The first span.
        end: The span after the last one.
        agent: The agent that the row of the fold names.
        head: The step that the spans belong to. Its row says how many are hidden. None if the fold
            has its own row.
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


class TimelineRows:
    """The rows of a timeline: one for each span that is neither folded away nor filtered out.

    Only the folds are stored. Finding the span of a row, or the row of a span, takes logarithmic
    time in the number of folds. While a filter is set, folds have no effect.
    """

    def __init__(self) -> None:
        """Begin without spans."""
        self._span_count = 0
        self._folds: list[Fold] = []
        self._fold_by_head: dict[int, Fold] = {}
        self._hidden_starts = array("Q")
        """For each fold the first span that it hides."""
        self._hidden_ends = array("Q")
        """For each fold the span after the last one that it hides."""
        self._fold_rows = array("Q")
        """For each fold the number of its row. For a fold with a head, this is the row after the
        head.
        """
        self._removed_row_count = 0
        """The number of rows that the folds save."""
        self.filter: Sequence[int] | None = None
        """The indices of the spans that have a row; None without a filter."""
        self._filter_count = 0
        """The number of indices at the beginning of the filter that are shown."""

    def __len__(self) -> int:
        if self.filter is not None:
            return self._filter_count
        return max(0, self._span_count - self._removed_row_count)

    @property
    def spans(self) -> int:
        """The number of spans of the trace."""
        return self._span_count

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The folds, in the order of the spans that they hide."""
        return tuple(self._folds)

    @property
    def is_filtered(self) -> bool:
        """True if only some spans have a row."""
        return self.filter is not None

    def grow(self, span_count: int) -> None:
        """Set the number of spans of the trace."""
        self._span_count = span_count

    def set_filter(self, indices: Sequence[int] | None) -> None:
        """Show only some spans.

        Args:
            indices: The sorted indices of the spans; None to show all spans. The sequence is not
                copied. Call again to show spans added to its end.
        """
        self.filter = indices
        self._filter_count = 0 if indices is None else len(indices)

    def fold(self, fold: Fold) -> None:
        """Fold these steps; unfold the folds that overlap them."""
        remaining_folds = [
            other_fold for other_fold in self._folds if not _do_overlap(other_fold, fold)
        ]
        self._replace_folds(sorted([*remaining_folds, fold], key=lambda item: item.hidden_from))

    def unfold(self, fold: Fold) -> None:
        """Show the steps of a fold again."""
        self._replace_folds([other for other in self._folds if other != fold])

    def shows(self, index: int) -> bool:
        """Check if a span has a row of its own."""
        if self.filter is not None:
            row = self._nearest_row(self.filter, index)
            return row < self._filter_count and self.filter[row] == index
        return 0 <= index < self._span_count and self.fold_that_hides(index) is None

    def fold_that_hides(self, index: int) -> Fold | None:
        """Return the fold that hides a span; None if the span is visible or a filter is set."""
        if self.filter is not None:
            return None
        position = bisect_right(self._hidden_starts, index) - 1
        if position >= 0 and index < self._hidden_ends[position]:
            return self._folds[position]
        return None

    def folded_under(self, index: int) -> Fold | None:
        """Return the fold whose head is a step, or None.

        With a filter return None.
        """
        return None if self.filter is not None else self._fold_by_head.get(index)

    def folded_at(self, index: int) -> Fold | None:
        """Return the fold that a span belongs to, or None.

        A fold contains the spans that it hides, its head, and the visible first cycle of a run.
        """
        if index in self._fold_by_head:
            return self._fold_by_head[index]
        next_position = bisect_right(self._hidden_starts, index)
        if next_position > 0 and index < self._hidden_ends[next_position - 1]:
            return self._folds[next_position - 1]
        # The visible first cycle of a run is right before the hidden cycles.
        if next_position < len(self._folds) and self._folds[next_position].first <= index:
            return self._folds[next_position]
        return None

    def row_of(self, index: int) -> int:
        """Return the row that shows a span, or the row of the fold that hides it.

        With a filter, return the row of the nearest span that it shows, or 0.
        """
        if self.filter is not None:
            return self._nearest_row(self.filter, index)
        position = bisect_right(self._hidden_starts, index) - 1
        if position < 0:
            return index
        fold = self._folds[position]
        if index >= self._hidden_ends[position]:
            rows_after_fold = index - self._hidden_ends[position]
            return self._fold_rows[position] + _own_row_count(fold) + rows_after_fold
        # A fold with a head has no row of its own: the row of its head says what is hidden.
        return self._fold_rows[position] if fold.head is None else self.row_of(fold.head)

    def span_and_fold(self, row: int) -> tuple[int, Fold | None]:
        """Return the span that a row shows, and None.

        For the row of a fold, return the first hidden span and the fold.
        """
        if self.filter is not None:
            index = self.filter[row] if 0 <= row < self._filter_count else 0
            return index, None
        position = bisect_right(self._fold_rows, row) - 1
        if position < 0:
            return row, None
        fold = self._folds[position]
        rows_after_fold = row - self._fold_rows[position] - _own_row_count(fold)
        if rows_after_fold < 0:
            return self._hidden_starts[position], fold
        return self._hidden_ends[position] + rows_after_fold, None

    def index_at(self, row: int) -> int:
        """Return the span of a row; for the row of a fold, its first hidden span."""
        index, _fold = self.span_and_fold(row)
        return index

    def _nearest_row(self, indices: Sequence[int], index: int) -> int:
        """Return the row of the filtered span nearest to ``index``, or 0."""
        row = min(bisect_left(indices, index, 0, self._filter_count), self._filter_count - 1)
        if row > 0 and abs(indices[row - 1] - index) < abs(indices[row] - index):
            return row - 1
        return max(0, row)

    def _replace_folds(self, folds: list[Fold]) -> None:
        self._folds = folds
        self._fold_by_head = {fold.head: fold for fold in folds if fold.head is not None}
        self._hidden_starts = array("Q", (fold.hidden_from for fold in folds))
        self._hidden_ends = array("Q", (fold.end for fold in folds))
        self._fold_rows = array("Q")
        removed_row_count = 0
        # Earlier folds remove rows, so the first hidden span of a fold moves up by as many rows.
        for fold in folds:
            self._fold_rows.append(fold.hidden_from - removed_row_count)
            removed_row_count += fold.end - fold.hidden_from - _own_row_count(fold)
        self._removed_row_count = removed_row_count


def _own_row_count(fold: Fold) -> int:
    return 1 if fold.head is None else 0


def _do_overlap(fold: Fold, other: Fold) -> bool:
    """Check if two folds share a span or a head, or if one hides the head of the other."""
    return (
        (fold.head is not None and fold.head == other.head)
        or (fold.first < other.end and other.first < fold.end)
        or (fold.head is not None and other.hidden_from <= fold.head < other.end)
        or (other.head is not None and fold.hidden_from <= other.head < fold.end)
    )


FIRST_CHILD_WITHIN: Final = 64
"""The number of spans after a step that are searched for its first child.

Other spans may lie between a call and its result, because calls made at once follow each other.
"""

MAX_CHILDREN: Final = 2000
"""The most direct children of a step that are folded."""


def steps_of_sub_agent(trace: Trace, first: int, end: int) -> FoldedSteps:
    """Return the steps of a sub-agent as a fold with its name.

    Args:
        trace: The trace.
        first: The first step of the sub-agent.
        end: The step after its last one.
    """
    return FoldedSteps(first, end, acting_agent(trace, first, end))


def steps_under(trace: Trace, index: int, finder: SubAgentFinder) -> FoldedSteps | None:
    """Return the steps that belong to a step: its results, and the sub-agents that it began.

    Args:
        trace: The trace.
        index: The step.
        finder: The sub-agents of the trace.

    Returns:
        The steps as a fold, or None if there are none.
    """
    head = trace.span(index)
    search_range = range(index + 1, min(len(trace), index + 1 + FIRST_CHILD_WITHIN))
    first = next((i for i in search_range if trace.span(i).parent == head.key), None)
    if first is None:
        return None
    parent_keys = {head.key}
    agent = ""
    end = first
    for _ in range(MAX_CHILDREN):
        if end >= len(trace) or trace.span(end).parent not in parent_keys:
            break
        sub_agent_range = finder.beginning_at(end)
        if sub_agent_range is None:
            parent_keys.add(trace.span(end).key)
            end += 1
        else:
            agent = agent or acting_agent(trace, *sub_agent_range)
            _, end = sub_agent_range
    return FoldedSteps(first, end, agent, index)
