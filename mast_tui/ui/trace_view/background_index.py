"""An index of every span of a trace, made in the background for timeline and overview."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from rich.cells import cell_len

from mast_tui.safe_text import one_line
from mast_tui.traces.index.span_totals import SpanTotals
from mast_tui.traces.model import Trace
from mast_tui.traces.sub_agent_steps import SubAgentFinder
from mast_tui.ui.trace_view.repeats import RepeatFinder


class TraceFacts(NamedTuple):
    """Times and agents of the first spans of a trace.

    Attributes:
        seen: The number of these spans.
        start: The first known time in Unix seconds.
        total: The seconds from the first to the last known time.
        agents: The agents in order of appearance.
        name_cells: The width of the longest name of an agent.
    """

    seen: int = 0
    start: float | None = None
    total: float = 0.0
    agents: tuple[str, ...] = ()
    name_cells: int = 0


class CellContent(Enum):
    """The content of a cell of the overview, the most important first.

    ``UNSEEN`` is for spans that are not indexed yet.
    """

    MATCH = "match"
    OWN = "own"
    SUGGESTION = "suggestion"
    ERROR = "error"
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    OTHER = "other"
    UNSEEN = "unseen"


COUNTED_KINDS: Final = (CellContent.USER, CellContent.AGENT, CellContent.TOOL, CellContent.OTHER)
"""The kinds that ``SpanTotals`` counts, in its order."""

READ_BYTES: Final = 32 * 1024
"""The bytes of a file that one step reads."""

SPANS_PER_STEP: Final = 1024
"""The number of spans that one step indexes."""

COMPARISONS_PER_STEP: Final = 24
"""The number of spans that one step compares."""


class BackgroundIndex:
    """An index of a trace: times, names, kinds, errors, sub-agents and repeated steps.

    One thread calls ``step`` repeatedly, while other threads may read the results. Repeated steps
    are searched for once ``search_repeats`` is set and the trace has been read to its end.
    """

    def __init__(self) -> None:
        """Begin with nothing indexed."""
        self.sub_agents = SubAgentFinder()
        self.repeats = RepeatFinder()
        self._new_repeats: RepeatFinder | None = None
        """The search that will replace ``repeats`` when it ends, or None."""
        # It is set after the first screen, because the search imports one more module.
        self.search_repeats = False
        self.totals = SpanTotals()
        """Kinds and errors of the spans indexed so far."""
        self.facts = TraceFacts()
        """Times and names of the spans indexed so far."""
        # Later lines of a growing file may change spans that are indexed already. So a trace that
        # has grown is indexed once more when it is complete.
        self._must_index_again = False
        self._new_totals = SpanTotals()
        """The totals of the second indexing. At its end they replace ``totals``."""

    def remaining(self, trace: Trace) -> int:
        """Return the number of spans that are not indexed."""
        return len(trace) - self.totals.span_count

    def _indexed_count(self, trace: Trace) -> int:
        """Return the number of indexed spans that the trace has.

        Stored totals may count more spans than were read.
        """
        return min(self.totals.span_count, len(trace))

    def complete(self, trace: Trace) -> bool:
        """Check if everything that has been read of the trace is indexed."""
        if self.remaining(trace) > 0 or self.sub_agents.span_count < self._indexed_count(trace):
            return False
        if not trace.loaded.complete:
            return True  # the other steps wait for the end of the trace
        if self._must_index_again:
            return False
        is_search_repeated = self._new_repeats is not None
        has_all_repeats = not is_search_repeated and self.repeats.seen >= len(trace)
        return has_all_repeats or not self.search_repeats

    def include_last_time(self, trace: Trace) -> None:
        """Include the time of the last span before that span is indexed.

        The trace must be complete.
        """
        self.totals.peek(trace.span(len(trace) - 1))
        self._update_facts()

    def reread(self) -> None:
        """Index all spans again in the next steps, because the file was read again."""
        self._must_index_again = True
        self._new_totals = SpanTotals()
        self._new_repeats = RepeatFinder()

    def step(self, trace: Trace, spans: int = SPANS_PER_STEP) -> bool:
        """Index a few more spans.

        Args:
            trace: The trace, the same at each call.
            spans: The number of spans.

        Returns:
            False if there was nothing to index.
        """
        if self.complete(trace):
            return False
        if self.remaining(trace) > 0:
            if not trace.loaded.complete:  # Later lines may still change these spans.
                self._must_index_again = True
            self._index_spans(trace, spans)
        elif self.sub_agents.span_count < self._indexed_count(trace):
            self._index_sub_agents(trace, spans)
        elif self._must_index_again:
            self._index_spans_again(trace, spans)
        else:
            self._index_repeats(trace)
        return True

    def _index_repeats(self, trace: Trace) -> None:
        """Compare a few more steps in the search for repeated steps.

        If the trace has grown since a search ended (``closed``), begin a new search. Keep the
        previous result until the new search ends.
        """
        if self.repeats.closed and self._new_repeats is None:
            self._new_repeats = RepeatFinder()
        finder = self._new_repeats or self.repeats
        finder.read_until(trace, finder.seen + COMPARISONS_PER_STEP)
        if finder is self._new_repeats and finder.closed:
            self.repeats = finder
            self._new_repeats = None

    def _index_spans(self, trace: Trace, limit: int) -> None:
        """Index up to ``limit`` more spans, or take over the totals that an earlier run stored."""
        indexed_count = self.totals.span_count
        span_count = max(len(trace), trace.loaded.spans)
        # If this step reaches the last span, reading stored totals would save nothing.
        stored_totals = trace.totals if indexed_count + limit < span_count else None
        if stored_totals is not None and stored_totals.span_count > indexed_count:
            self.totals = stored_totals
            # Later lines of a growing file may still change the spans counted so far.
            self._must_index_again = not trace.loaded.complete
        else:
            self.totals.add(trace.columns(indexed_count, indexed_count + limit))
        self._index_sub_agents(trace, limit)
        self._update_facts()

    def _index_sub_agents(self, trace: Trace, limit: int) -> None:
        first = self.sub_agents.span_count
        end = self._indexed_count(trace)
        if end - first > limit and not trace.has_one_thread(first, end):
            end = first + limit
        self.sub_agents.read_until(trace, end)

    def _index_spans_again(self, trace: Trace, limit: int) -> None:
        """Index the next spans of a complete trace again, and replace the totals at its end."""
        indexed_count = self._new_totals.span_count
        self._new_totals.add(trace.columns(indexed_count, indexed_count + limit))
        if self._new_totals.span_count >= len(trace):
            self.totals = self._new_totals
            self._new_totals = SpanTotals()
            self._must_index_again = False
            self._update_facts()

    def _update_facts(self) -> None:
        totals = self.totals
        agents = self.facts.agents
        name_cells = self.facts.name_cells
        if len(agents) != len(totals.agents):
            agents = tuple(totals.agents)
            name_cells = max(cell_len(one_line(agent)) for agent in agents)
        self.facts = TraceFacts(
            seen=totals.span_count,
            start=totals.start,
            total=totals.duration,
            agents=agents,
            name_cells=name_cells,
        )


def index_more(trace: Trace, index: BackgroundIndex, *, reads_to_end: bool) -> Iterator[bool]:
    """Read and index a trace in small steps.

    Closing the iterator stops the process that reads the trace.

    Args:
        trace: The trace.
        index: The index of the trace.
        reads_to_end: False to index only the spans read so far.

    Yields:
        After each step, True if the trace has become complete, so that this is shown at once.
    """
    is_reading = reads_to_end and not trace.loaded.complete
    try:
        while is_reading:
            trace.spans.read_in_background()
            is_reading = trace.advance(READ_BYTES)
            yield False
            while index.remaining(trace) >= SPANS_PER_STEP and index.step(trace):
                yield False
            if not is_reading:
                yield True
        while index.step(trace):
            yield False
    finally:
        trace.spans.stop_background_read()
