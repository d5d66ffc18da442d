"""The first and last steps of each sub-agent in a trace."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from threading import Lock
from typing import Final

from mast_tui.traces.model import Role, Span, SpanKind, Trace

_NAMING_STEPS: Final = 16
"""The most steps of a sub-agent that are searched for the name of its agent."""


class SubAgentFinder:
    """A finder of the first and last steps of each sub-agent; it reads every span once, in order.

    The steps of a sub-agent may enclose those of another one. One thread may call ``read`` and
    ``read_until`` while others call ``beginning_at``.
    """

    def __init__(self) -> None:
        self.span_count = 0
        self._previous_key = ""
        self._running_sub_agents: list[tuple[str, int]] = []
        """The thread of each sub-agent that may continue, and its position in ``_first_steps``."""
        self._lock = Lock()
        self._first_steps = array("I")
        self._ends = array("I")  # 0 while the sub-agent may continue

    def read(self, spans: Iterable[Span]) -> None:
        """Read the spans that follow the last one read."""
        for span in spans:
            self._read_span(self.span_count, span)
            self.span_count += 1

    def read_until(self, trace: Trace, end: int) -> None:
        """Read the spans up to ``end`` (exclusive).

        If all of them surely belong to one agent, only the first is examined.

        Args:
            trace: The trace; always the same one.
            end: The index after the last span to read.
        """
        first = self.span_count
        if trace.has_one_thread(first, end):
            self._read_span(first, trace.span(first))
            self._previous_key = trace.span(end - 1).key
            self.span_count = end
        else:
            self.read(trace.span(index) for index in range(first, end))

    def beginning_at(self, index: int) -> tuple[int, int] | None:
        """Return the range of spans of the sub-agent that begins at a span, if any.

        The end is exclusive. While the sub-agent may continue, the range ends with the last span
        read.
        """
        with self._lock:
            position = bisect_left(self._first_steps, index)
            if position == len(self._first_steps) or self._first_steps[position] != index:
                return None
            return index, self._ends[position] or self.span_count

    def _read_span(self, index: int, span: Span) -> None:
        """End the running sub-agents that a span ends, and begin one at its first span."""
        thread = _thread_of(span.key)
        # Running sub-agents are nested. The span ends those that are deeper than its own thread.
        depth = self._depth_of(thread)
        # The main thread (empty id) and running sub-agents (depth above 0) do not begin.
        begins_sub_agent = (
            depth == 0 and bool(thread) and _is_beginning(span, thread, self._previous_key)
        )
        if begins_sub_agent:
            depth = self._depth_of(_thread_of(span.parent or ""))
        if depth < len(self._running_sub_agents) or begins_sub_agent:
            with self._lock:
                for _, position in self._running_sub_agents[depth:]:
                    self._ends[position] = index
                del self._running_sub_agents[depth:]
                if begins_sub_agent:
                    self._running_sub_agents.append((thread, len(self._first_steps)))
                    self._first_steps.append(index)
                    self._ends.append(0)
        self._previous_key = span.key

    def _depth_of(self, thread: str) -> int:
        """Return the depth of a running sub-agent, from 1; 0 if it does not run."""
        for depth in range(len(self._running_sub_agents), 0, -1):
            running_thread, _ = self._running_sub_agents[depth - 1]
            if running_thread == thread:
                return depth
        return 0


def _thread_of(key: str) -> str:
    """Return the id of the sub-agent's thread in a span key; empty for the main thread."""
    return key.partition("/")[0] if "/" in key else ""


def _is_beginning(span: Span, thread: str, previous_key: str) -> bool:
    """Return whether a span begins a sub-agent.

    ``thread`` is the part of the span's key before the slash: a sub-agent's thread, or the key of a
    record with several spans.
    """
    continues = previous_key == thread or _thread_of(previous_key) == thread
    if continues or span.kind is SpanKind.TOOL_RESULT:
        return False
    parent = span.parent
    if parent is not None:  # the parent of a sub-agent's first span is outside its thread
        return parent != thread and _thread_of(parent) != thread
    # In a sub-agent's own file, the place of a span begins with the name of the file.
    return not span.place.startswith(("line ", "/"))


def acting_agent(trace: Trace, first: int, end: int) -> str:
    """Return the name of the agent of a sub-agent's steps, or else the id of its thread.

    Args:
        trace: The trace.
        first: The index of the first step.
        end: The index after the last step.
    """
    spans = (trace.span(index) for index in range(first, min(end, first + _NAMING_STEPS)))
    agents = (span.agent for span in spans if span.role is Role.AGENT)
    return next(agents, _thread_of(trace.span(first).key))
