"""Where the steps of sub-agents stand, and what belongs under a step."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from threading import Lock
from typing import Final

from mast_tui.traces.model import Role, Span, SpanKind, Trace
from mast_tui.ui.trace_view.folding import Steps

FIRST_CHILD_WITHIN: Final = 64
"""How far behind a step its first child is looked for: calls made at once stand together."""

MOST_CHILDREN: Final = 2000
"""How many direct children are followed."""


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


def steps_of_sub_agent(trace: Trace, first: int, end: int) -> Steps:
    """The steps of a sub-agent as a fold with its name."""
    spans = (trace.span(index) for index in range(first, end))
    acting = (span.agent for span in islice(spans, 16) if span.role is Role.AGENT)
    return Steps(first, end, next(acting, _prefix(trace.span(first).key)))


def steps_under(trace: Trace, index: int, finder: SubAgentFinder) -> Steps | None:
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
    return Steps(first, place, agent, index)
