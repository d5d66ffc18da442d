"""The steps of sub-agents in a trace: where each sub-agent begins and ends."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from threading import Lock

from mast_tui.traces.model import Role, Span, SpanKind, Trace


class SubAgentFinder:
    """The first and last steps of each sub-agent, found by reading every span once, in order.

    A sub-agent may begin another one, whose steps lie within its own. One thread may call ``read``
    and ``read_until`` while others call ``beginning_at``.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._previous_key = ""
        self._open: list[tuple[str, int]] = []
        self._lock = Lock()
        self._firsts = array("I")
        self._ends = array("I")  # 0 while the sub-agent may continue

    def read(self, spans: Iterable[Span]) -> None:
        """Read the spans that follow the last one read."""
        for span in spans:
            self._read_span(self.seen, span)
            self.seen += 1

    def read_until(self, trace: Trace, end: int) -> None:
        """Read the spans up to ``end`` (exclusive).

        Spans of a single thread are skipped, because no sub-agent begins or ends among them.

        Args:
            trace: The trace; always the same one.
            end: The first span that is not read yet.
        """
        first = self.seen
        if trace.one_thread(first, end):
            self._read_span(first, trace.span(first))
            self._previous_key = trace.span(end - 1).key
            self.seen = end
        else:
            self.read(trace.span(index) for index in range(first, end))

    def beginning_at(self, index: int) -> tuple[int, int] | None:
        """Return the steps of the sub-agent that begins with a span, as first and end (exclusive).

        Returns None if no sub-agent begins there. For one that may continue, the end is the last
        span read.
        """
        with self._lock:
            position = bisect_left(self._firsts, index)
            if position == len(self._firsts) or self._firsts[position] != index:
                return None
            return index, self._ends[position] or self.seen

    def _read_span(self, index: int, span: Span) -> None:
        thread = _prefix(span.key)
        # A sub-agent ends with the next step of the agent that began it.
        depth = len(self._open)
        while depth and self._open[depth - 1][0] != thread:
            depth -= 1
        begins = not depth and bool(thread) and _begins(span, thread, self._previous_key)
        if begins:
            depth = self._depth_of(_prefix(span.parent or ""))
        if depth < len(self._open) or begins:
            with self._lock:
                for _, position in self._open[depth:]:
                    self._ends[position] = index
                del self._open[depth:]
                if begins:
                    self._open.append((thread, len(self._firsts)))
                    self._firsts.append(index)
                    self._ends.append(0)
        self._previous_key = span.key

    def _depth_of(self, thread: str) -> int:
        """Return how many open sub-agents stay open when ``thread`` begins another one."""
        for depth in range(len(self._open), 0, -1):
            if self._open[depth - 1][0] == thread:
                return depth
        return 0


def _prefix(key: str) -> str:
    return key.partition("/")[0] if "/" in key else ""


def _begins(span: Span, thread: str, previous_key: str) -> bool:
    """Check if a span begins a sub-agent, and not just another part of one record."""
    if (
        span.kind is SpanKind.TOOL_RESULT
        or previous_key == thread
        or _prefix(previous_key) == thread
    ):
        return False
    parent = span.parent
    if parent is not None:
        return parent != thread and _prefix(parent) != thread
    # The place of a span in a sub-agent's own file begins with the name of that file.
    return not span.place.startswith(("line ", "/"))


def acting_agent(trace: Trace, first: int, end: int) -> str:
    """Return the name of the agent of a sub-agent's steps, or else the id of its thread.

    Args:
        trace: The trace.
        first: The first of the steps.
        end: The span after the last.
    """
    spans = (trace.span(index) for index in range(first, end))
    agents = (span.agent for span in islice(spans, 16) if span.role is Role.AGENT)
    return next(agents, _prefix(trace.span(first).key))
