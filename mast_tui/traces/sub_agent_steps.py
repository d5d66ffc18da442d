"""The steps of sub-agents in a trace: where each sub-agent begins and ends."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from threading import Lock

from mast_tui.traces.model import Role, Span, SpanKind, Trace


class SubAgentFinder:
    """Looks at every span once, in order, and keeps where each sub-agent's steps begin and end.

    A sub-agent that another one began stands within the other's steps. One thread may ``take``
    while another asks.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._before = ""
        self._open: list[tuple[str, int]] = []
        self._lock = Lock()
        self._firsts = array("I")
        self._ends = array("I")  # 0 while it may go on

    def take(self, spans: Iterable[Span]) -> None:
        """Look at the spans that follow those looked at."""
        for span in spans:
            self._look(self.seen, span)
            self.seen += 1

    def take_up_to(self, trace: Trace, end: int) -> None:
        """Look at the spans that follow up to ``end`` (exclusive).

        Within one thread no sub-agent begins or ends, so its spans are passed over.
        """
        first = self.seen
        if trace.one_thread(first, end):
            self._look(first, trace.span(first))
            self._before = trace.span(end - 1).key
            self.seen = end
        else:
            self.take(trace.span(index) for index in range(first, end))

    def beginning_at(self, index: int) -> tuple[int, int] | None:
        """First and end (exclusive) of the sub-agent's steps that begin with span ``index``."""
        with self._lock:
            place = bisect_left(self._firsts, index)
            if place == len(self._firsts) or self._firsts[place] != index:
                return None
            return index, self._ends[place] or self.seen

    def _look(self, index: int, span: Span) -> None:
        thread = _prefix(span.key)
        # A sub-agent goes on until its spawner does.
        depth = len(self._open)
        while depth and self._open[depth - 1][0] != thread:
            depth -= 1
        begins = not depth and bool(thread) and _begins(span, thread, self._before)
        if begins:
            depth = self._depth_of(_prefix(span.parent or ""))
        if depth < len(self._open) or begins:
            with self._lock:
                for _, place in self._open[depth:]:
                    self._ends[place] = index
                del self._open[depth:]
                if begins:
                    self._open.append((thread, len(self._firsts)))
                    self._firsts.append(index)
                    self._ends.append(0)
        self._before = span.key

    def _depth_of(self, thread: str) -> int:
        """How many of the sub-agents at work go on while one that ``thread`` began is at work."""
        for depth in range(len(self._open), 0, -1):
            if self._open[depth - 1][0] == thread:
                return depth
        return 0


def _prefix(key: str) -> str:
    return key.partition("/")[0] if "/" in key else ""


def _begins(span: Span, thread: str, before: str) -> bool:
    """Whether a sub-agent begins here, and not just another part of one record."""
    if span.kind is SpanKind.TOOL_RESULT or before == thread or _prefix(before) == thread:
        return False
    parent = span.parent
    if parent is not None:
        return parent != thread and _prefix(parent) != thread
    # A sub-agent's own file is named before the place in it.
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
