"""A filter for the spans of a trace by kind, agent and marks, and its application."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan
from typing import Any, Final, Protocol

from mast_tui.traces.model import STATUSES, Shape, SpanColumns, SpanKind, SpanStatus, Trace

KIND_NAMES: Final[Mapping[SpanKind, str]] = {
    SpanKind.MESSAGE: "messages",
    SpanKind.REASONING: "reasoning",
    SpanKind.TOOL_CALL: "tool calls",
    SpanKind.TOOL_RESULT: "tool results",
    SpanKind.LOG: "log records",
}
"""The name of several spans of a kind."""

FLAG_NAMES: Final[Mapping[str, str]] = {
    "no_logs": "no log records",
    **{flag: flag for flag in ("errors", "slow", "idle", "labelled", "suggested", "matches")},
}
"""The other conditions of a filter with their names."""

SLOW_SECONDS: Final = 10.0
"""The seconds from which on a step is slow."""

IDLE_SECONDS: Final = 60.0
"""The seconds without any step from which on the run was idle before the next one."""

_ERROR: Final = STATUSES.index(SpanStatus.ERROR)


@dataclass(frozen=True, slots=True)
class SpanFilter:
    """A filter for spans; a span passes if it meets all conditions.

    Attributes:
        kinds: The span has one of these kinds; if empty, any kind.
        agents: The span is of one of these agents; if empty, of any agent.
        no_logs: The span is not a log record.
        errors: The span has failed.
        labelled: The span has a label.
        suggested: The span has a suggestion without an answer.
        matches: The span matches the search.
        slow: The span took long, or is a result that came long after the step before it.
        idle: The span is not a result, and nothing happened for long before it.
    """

    kinds: frozenset[SpanKind] = frozenset()
    agents: frozenset[str] = frozenset()
    no_logs: bool = False
    errors: bool = False
    labelled: bool = False
    suggested: bool = False
    matches: bool = False
    slow: bool = False
    idle: bool = False

    @property
    def shows_all(self) -> bool:
        """True if every span passes."""
        return self == EVERYTHING

    def with_kind(self, kind: SpanKind) -> SpanFilter:
        """Return the filter with this kind added, or removed if it had it."""
        return replace(self, kinds=self.kinds ^ {kind})

    def with_agent(self, agent: str) -> SpanFilter:
        """Return the filter with this agent added, or removed if it had it."""
        return replace(self, agents=self.agents ^ {agent})

    def toggled(self, flag: str) -> SpanFilter:
        """Return the filter with a condition of ``FLAG_NAMES`` switched on or off."""
        changes: dict[str, Any] = {flag: not getattr(self, flag)}
        return replace(self, **changes)

    @property
    def description(self) -> str:
        """The conditions in a few words; empty if there are none."""
        conditions = []
        if self.kinds:
            kind_names = [name for kind, name in KIND_NAMES.items() if kind in self.kinds]
            conditions.append(" or ".join(kind_names))
        if self.agents:
            conditions.append(f"by {' or '.join(sorted(self.agents))}")
        conditions += [name for flag, name in FLAG_NAMES.items() if getattr(self, flag)]
        return ", ".join(conditions)


EVERYTHING: Final = SpanFilter()


class Indices(Protocol):
    """Sorted indices of spans."""

    def within(self, first: int, end: int, /) -> Sequence[int]:
        """Return the indices in a range of spans.

        Args:
            first: The first span.
            end: The span after the last one.
        """


class SpanRanges:
    """The spans in some ranges (first and last index of each), joined where they touch."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """Sort the ranges of first and last spans, and join ranges that touch or overlap."""
        self._starts = array("Q")
        self._lasts = array("Q")
        for first, last in sorted(ranges):
            if self._lasts and first <= self._lasts[-1] + 1:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._starts.append(first)
                self._lasts.append(last)

    def within(self, first: int, end: int, /) -> Sequence[int]:
        """Return the indices of the ranges that are between two spans.

        Args:
            first: The first span.
            end: The span after the last one.
        """
        indices: list[int] = []
        position = bisect_left(self._lasts, first)
        while position < len(self._starts) and self._starts[position] < end:
            range_end = self._lasts[position] + 1
            indices += range(max(first, self._starts[position]), min(end, range_end))
            position += 1
        return indices


_NONE: Final = SpanRanges()


@dataclass(frozen=True, slots=True)
class MarkedSpans:
    """The spans with labels, with suggestions, and with matches of the search."""

    labelled: Indices = _NONE
    suggested: Indices = _NONE
    matches: Indices = _NONE


class FilterScan:
    """The application of a filter to a trace, slice by slice.

    Attributes:
        trace: The trace; it may gain spans meanwhile.
        span_filter: The filter.
        seen: The number of spans that have been checked, from the first one on.
    """

    def __init__(self, trace: Trace, span_filter: SpanFilter, marked_spans: MarkedSpans) -> None:
        """Begin at the first span."""
        self.trace = trace
        self.span_filter = span_filter
        conditions = (
            (span_filter.labelled, marked_spans.labelled),
            (span_filter.suggested, marked_spans.suggested),
            (span_filter.matches, marked_spans.matches),
        )
        self._required_indices = [indices for is_required, indices in conditions if is_required]
        """For each kind of mark that a span must have, the spans that have it."""
        self._needs_shapes = bool(span_filter.kinds or span_filter.agents or span_filter.no_logs)
        self._needs_times = span_filter.slow or span_filter.idle
        self._needs_columns = self._needs_shapes or self._needs_times or span_filter.errors
        self._latest_time = -inf
        """The latest time of the spans that have been checked."""
        self.seen = 0

    def step(self, limit: int) -> array[int]:
        """Check up to ``limit`` more spans, and return the spans that pass."""
        first = self.seen
        end = min(len(self.trace), self.seen + limit)
        self.seen = max(first, end)
        indices: Sequence[int] = range(first, end)
        for number, marked_indices in enumerate(self._required_indices):
            marked_in_slice = marked_indices.within(first, end)
            if number == 0:
                indices = marked_in_slice
            else:
                indices = sorted({*indices} & {*marked_in_slice})
        # Times are compared with those of the spans before, so that no slice may be left out.
        if self._needs_times or (indices and self._needs_columns):
            indices = self._passing_indices(self.trace.columns(first, end), indices)
        return array("Q", indices)

    def _passing_indices(self, columns: SpanColumns, indices: Sequence[int]) -> Sequence[int]:
        """Return the spans among ``indices`` that pass by time, status, kind and agent."""
        first = columns.first
        if self._needs_times:
            slow_or_idle = self._slow_or_idle_indices(columns)
            indices = [index for index in indices if index in slow_or_idle]
        if self.span_filter.errors:
            statuses = columns.statuses
            indices = [index for index in indices if statuses[index - first] == _ERROR]
        if self._needs_shapes:
            passing_shapes = {
                number
                for number, shape in enumerate(columns.shape_list)
                if self._is_shape_chosen(shape)
            }
            shapes = columns.shapes
            indices = [index for index in indices if shapes[index - first] in passing_shapes]
        return indices

    def _slow_or_idle_indices(self, columns: SpanColumns) -> set[int]:
        """Return the spans that are slow or idle, whichever the filter asks for.

        Also records the latest time, which the next columns are compared with.
        """
        indices: set[int] = set()
        for row, (start, end) in enumerate(zip(columns.starts, columns.ends, strict=True)):
            if isnan(start):
                continue
            kind, *_ = columns.shape_list[columns.shapes[row]]
            gap = start - self._latest_time if self._latest_time > -inf else 0.0
            is_result = kind is SpanKind.TOOL_RESULT
            seconds = 0.0 if isnan(end) else end - start
            is_slow = seconds >= SLOW_SECONDS or (is_result and gap >= SLOW_SECONDS)
            is_idle = not is_result and gap >= IDLE_SECONDS
            if (self.span_filter.slow and is_slow) or (self.span_filter.idle and is_idle):
                indices.add(columns.first + row)
            self._latest_time = max(self._latest_time, start if isnan(end) else end)
        return indices

    def _is_shape_chosen(self, shape: Shape) -> bool:
        """Check if the filter lets spans of a kind and agent pass."""
        kind, _role, agent, _name = shape
        kinds = self.span_filter.kinds
        agents = self.span_filter.agents
        if kind is SpanKind.LOG and self.span_filter.no_logs:
            return False
        return (not kinds or kind in kinds) and (not agents or agent in agents)
