"""The totals of a trace's spans: times, agents, numbers of spans of each kind, errors."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import nan
from typing import Final, NamedTuple

from mast_tui.traces.index.blocks import Block, Column
from mast_tui.traces.model import STATUSES, Role, Shape, Span, SpanColumns, SpanKind, SpanStatus

MOST_AGENTS: Final = 1000
"""The most agents whose names are kept."""

MOST_BUCKETS: Final = 1024
"""The most buckets; when more are needed, each two neighbours are joined."""

USER, AGENT, TOOL, OTHER = KINDS = range(4)
"""The kinds of spans that are counted. If a bucket has equally many spans of several kinds, the
first of these kinds is shown."""

_ERROR: Final = STATUSES.index(SpanStatus.ERROR)


def kind_of(kind: SpanKind, role: Role) -> int:
    """Return the kind by which a span is counted.

    Args:
        kind: The kind of the span.
        role: The side that acts.
    """
    if kind in (SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT):
        return TOOL
    if role is Role.USER:
        return USER
    return AGENT if role is Role.AGENT else OTHER


class Buckets(NamedTuple):
    """The number of spans of each kind in each bucket of ``1 << shift`` consecutive spans.

    ``counts`` has a column of buckets for each index in ``KINDS``.
    """

    shift: int
    counts: tuple[array[int], ...]

    def halved(self) -> Buckets:
        """Return the counts in half as many buckets; the number of buckets must be even."""
        halved_counts = (
            array("I", map(sum, zip(counts[::2], counts[1::2], strict=True)))
            for counts in self.counts
        )
        return Buckets(self.shift + 1, tuple(halved_counts))


class SpanTotals:
    """The totals of the first spans of a trace.

    One thread may call ``add`` while other threads read.

    Attributes:
        span_count: The number of spans counted.
        start: The first known time, in Unix seconds.
        duration: The seconds from ``start`` to the last known time.
        agents: The agents in order of appearance.
        errors: The indices of the spans that are errors.
        buckets: The counts of kinds in at most ``MOST_BUCKETS`` buckets of 1, 2, 4, … spans.
    """

    # Other threads read arrays that only grow, or ``buckets``, which is replaced in one step.
    # ``span_count`` is set last, when all that it counts is there.

    def __init__(self) -> None:
        self.span_count = 0
        self.start: float | None = None
        self.duration = 0.0
        self.agents: dict[str, None] = {}
        self.errors: array[int] = array("I")
        self.buckets = Buckets(0, tuple(array("I") for _ in KINDS))
        self._shape_list: Sequence[Shape] = ()
        self._seen_shapes: set[int] = set()
        """The numbers of the shapes whose agents were added."""
        self._kinds = bytearray()
        """The index in ``KINDS`` of the kind of each shape."""

    def add(self, columns: SpanColumns) -> None:
        """Count the next spans, which must follow those that were counted before."""
        # Another list has other numbers of shapes.
        if columns.shape_list is not self._shape_list:
            self._shape_list = columns.shape_list
            self._seen_shapes = set()
            self._kinds = bytearray()
        self._extend_times(columns.starts, columns.ends)
        self._add_agents(columns)
        self._count_kinds_and_errors(columns)
        self.span_count += len(columns)

    def peek(self, span: Span) -> None:
        """Extend ``duration`` to the time of a later span, without counting the span."""
        if self.start is not None and span.start is not None:
            self._extend_times((span.start,), (nan if span.end is None else span.end,))

    def _extend_times(self, starts: Sequence[float], ends: Sequence[float]) -> None:
        """Set ``start`` to the first known start, and ``duration`` to the time since then."""
        # Unknown times are NaN, which does not equal itself. An end without a start is ignored.
        if self.start is None:
            self.start = next((start for start in starts if start == start), None)
        if self.start is not None:
            last_times = (
                end if end == end else start
                for start, end in zip(starts, ends, strict=True)
                if start == start
            )
            last_time = max(last_times, default=self.start)
            self.duration = max(self.duration, last_time - self.start)

    def _add_agents(self, columns: SpanColumns) -> None:
        """Add the agents of the shapes (kind, role, agent, name) that no earlier span had."""
        shapes = columns.shapes
        new_shapes = set(shapes) - self._seen_shapes
        # Keep the agents in order of appearance.
        for number in sorted(new_shapes, key=shapes.index):
            self._seen_shapes.add(number)
            _kind, role, agent, _name = columns.shape_list[number]
            if role is Role.AGENT and len(self.agents) < MOST_AGENTS:
                self.agents[agent] = None

    def _count_kinds_and_errors(self, columns: SpanColumns) -> None:
        """Count the spans of each kind in each bucket, and add the indices of errors."""
        new_shapes = columns.shape_list[len(self._kinds) :]
        for span_kind, role, _agent, _name in new_shapes:
            self._kinds.append(kind_of(span_kind, role))
        # Bytes, because their ``count`` and ``find`` are far faster than a loop over spans.
        kinds = bytes(map(self._kinds.__getitem__, columns.shapes))
        size = len(kinds)
        position = 0
        while position < size:
            index = self.span_count + position
            buckets = self.buckets
            if index >> buckets.shift == MOST_BUCKETS:  # all are full, so they must be longer
                buckets = buckets.halved()
                self.buckets = buckets
            bucket = index >> buckets.shift
            end = min(size, position + ((bucket + 1) << buckets.shift) - index)
            for kind, counts in zip(KINDS, buckets.counts, strict=True):
                if bucket == len(counts):
                    counts.append(0)
                counts[bucket] += kinds.count(kind, position, end)
            position = end
        statuses = columns.statuses
        error_position = statuses.find(_ERROR)
        while error_position >= 0:
            self.errors.append(self.span_count + error_position)
            error_position = statuses.find(_ERROR, error_position + 1)

    def kinds_in(self, first: int, end: int) -> list[int]:
        """Return the number of spans of each kind in the buckets that a range of spans touches.

        Spans of these buckets outside the range are included.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        buckets = self.buckets
        low = first >> buckets.shift
        high = ((end - 1) >> buckets.shift) + 1
        return [sum(counts[low:high]) for counts in buckets.counts]

    def errors_in(self, first: int, end: int) -> int:
        """Return the number of errors in a range of spans.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        low = bisect_left(self.errors, first)
        return bisect_left(self.errors, end, low) - low

    def error_from(self, index: int, step: int) -> int | None:
        """Return the index of the next error; None if there is none.

        Args:
            index: The index of the span from which to search.
            step: Positive for errors after the span, negative for errors before it.
        """
        errors = self.errors
        if step > 0:
            position = bisect_right(errors, index)
            return errors[position] if position < len(errors) else None
        position = bisect_left(errors, index)
        return errors[position - 1] if position else None

    def copy(self) -> SpanTotals:
        """Return a copy to which more spans can be added."""
        return self.of_block(self.block())

    def block(self) -> Block:
        """Return all totals as a block, for ``of_block``."""
        facts = {
            "span_count": self.span_count,
            "start": self.start,
            "duration": self.duration,
            "agents": list(self.agents),
            "shift": self.buckets.shift,
        }
        columns: dict[str, Column] = {"errors": self.errors}
        for number, counts in enumerate(self.buckets.counts):
            columns[f"kind {number}"] = counts
        return Block(facts, columns)

    @classmethod
    def of_block(cls, block: Block) -> SpanTotals:
        """Return the totals of a block from ``block``, with copies of its columns."""
        facts, columns = block
        totals = cls()
        totals.start = facts["start"]
        totals.duration = facts["duration"]
        totals.agents = dict.fromkeys(facts["agents"])
        totals.errors = columns["errors"][:]
        counts = tuple(columns[f"kind {number}"][:] for number in KINDS)
        totals.buckets = Buckets(facts["shift"], counts)
        totals.span_count = facts["span_count"]
        return totals
