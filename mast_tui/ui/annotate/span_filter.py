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
    """A filter for spans. All conditions must hold, but any of the kinds and any of the agents
    suffices.

    Without kinds every kind passes, and without agents every agent. ``no_logs`` excludes log
    records. ``slow`` are steps that took long, and results that came long after the step before
    them; ``idle`` are other steps before which nothing happened for long.
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
        changed: dict[str, Any] = {flag: not getattr(self, flag)}
        return replace(self, **changed)

    @property
    def description(self) -> str:
        """The conditions in a few words; empty without any."""
        parts = [name for kind, name in KIND_NAMES.items() if kind in self.kinds]
        conditions = [" or ".join(parts)] if parts else []
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
    """The spans in some ranges. A query looks only at the ranges that it needs."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._first = array("Q")
        self._last = array("Q")
        for first, last in sorted(ranges):
            if self._last and first <= self._last[-1] + 1:
                self._last[-1] = max(self._last[-1], last)
            else:
                self._first.append(first)
                self._last.append(last)

    def within(self, first: int, end: int, /) -> Sequence[int]:
        """Return the spans of the ranges between two spans.

        Args:
            first: The first span.
            end: The span after the last one.
        """
        indices: list[int] = []
        position = bisect_left(self._last, first)
        while position < len(self._first) and self._first[position] < end:
            indices += range(max(first, self._first[position]), min(end, self._last[position] + 1))
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

    The first ``seen`` spans have been checked; spans that the trace gains later follow.
    """

    def __init__(self, trace: Trace, chosen: SpanFilter, marked: MarkedSpans) -> None:
        self.trace = trace
        self.chosen = chosen
        conditions = (
            (chosen.labelled, marked.labelled),
            (chosen.suggested, marked.suggested),
            (chosen.matches, marked.matches),
        )
        self._required = [indices for required, indices in conditions if required]
        self._by_shape = bool(chosen.kinds or chosen.agents or chosen.no_logs)
        self._by_time = chosen.slow or chosen.idle
        self._by_column = self._by_shape or self._by_time or chosen.errors
        self._latest = -inf
        """The latest time of the spans that have been checked."""
        self.seen = 0

    def step(self, limit: int) -> array[int]:
        """Check up to ``limit`` more spans, and return those that pass."""
        first = self.seen
        end = min(len(self.trace), self.seen + limit)
        self.seen = max(first, end)
        indices: Sequence[int] = range(first, end)
        for number, marked in enumerate(self._required):
            in_slice = marked.within(first, end)
            indices = in_slice if number == 0 else sorted({*indices} & {*in_slice})
        if self._by_time or (indices and self._by_column):
            indices = self._matching(self.trace.columns(first, end), indices)
        return array("Q", indices)

    def _matching(self, columns: SpanColumns, indices: Sequence[int]) -> Sequence[int]:
        """Return the spans that pass by kind, agent and status."""
        first = columns.first
        if self._by_time:
            slow_or_idle = self._slow_or_idle(columns)
            indices = [index for index in indices if index in slow_or_idle]
        if self.chosen.errors:
            statuses = columns.statuses
            indices = [index for index in indices if statuses[index - first] == _ERROR]
        if self._by_shape:
            passing = {
                number
                for number, shape in enumerate(columns.shape_list)
                if self._passes_shape(shape)
            }
            shapes = columns.shapes
            indices = [index for index in indices if shapes[index - first] in passing]
        return indices

    def _slow_or_idle(self, columns: SpanColumns) -> set[int]:
        """Return the spans that are slow, or before which the run was idle, as far as chosen."""
        indices: set[int] = set()
        for row, (start, end) in enumerate(zip(columns.starts, columns.ends, strict=True)):
            if isnan(start):
                continue
            kind, *_ = columns.shape_list[columns.shapes[row]]
            gap = start - self._latest if self._latest > -inf else 0.0
            is_result = kind is SpanKind.TOOL_RESULT
            took = 0.0 if isnan(end) else end - start
            slow = took >= SLOW_SECONDS or (is_result and gap >= SLOW_SECONDS)
            idle = not is_result and gap >= IDLE_SECONDS
            if (self.chosen.slow and slow) or (self.chosen.idle and idle):
                indices.add(columns.first + row)
            self._latest = max(self._latest, start if isnan(end) else end)
        return indices

    def _passes_shape(self, shape: Shape) -> bool:
        kind, _role, agent, _name = shape
        kinds = self.chosen.kinds
        agents = self.chosen.agents
        if kind is SpanKind.LOG and self.chosen.no_logs:
            return False
        return (not kinds or kind in kinds) and (not agents or agent in agents)
