"""Looking at every span of a trace behind the screen, for all that timeline and overview show."""

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
    """What the first ``seen`` spans of a trace tell.

    ``start`` is the first time that is known, in Unix seconds; ``total`` the seconds from there to
    the last one. ``agents`` are those who acted, in order of appearance, and ``name_cells`` is the
    width of the longest of their names.
    """

    seen: int = 0
    start: float | None = None
    total: float = 0.0
    agents: tuple[str, ...] = ()
    name_cells: int = 0


class CellContent(Enum):
    """What a cell of the overview shows, the weightiest first; ``UNSEEN`` was not looked at yet.

    What is looked for now comes before what stays, and what fails often after what is rare.
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


KINDS: Final = (CellContent.USER, CellContent.AGENT, CellContent.TOOL, CellContent.OTHER)
"""What the kinds are that ``SpanTotals`` counts."""

READ_BYTES: Final = 32 * 1024
"""How much of a file is read in one step: a key waits for the end of one."""

SPANS: Final = 1024
"""How many spans are glanced at in one step."""

COMPARED: Final = 24
"""How many spans are compared with those before them in one step: their texts may be read."""


class BackgroundIndex:
    """What was found of the spans: times, names, kinds, errors, sub-agents, repeated steps.

    One thread takes ``step`` after step; others may ask meanwhile for what was found. Repeated
    steps are looked for once that is ``wanted`` and the trace is known to its end: it needs what
    the first screen should not wait for.
    """

    def __init__(self) -> None:
        self.sub_agents = SubAgentFinder()
        self.repeats = RepeatFinder()
        self._repeats_anew: RepeatFinder | None = None
        self.wanted = False
        self.totals = SpanTotals()
        """Kinds and errors, as far as is known."""
        self.facts = TraceFacts()
        """Times and names, as far as is known."""
        # What is written on a later line may tell that a step has failed, or when it was over. So
        # the columns of a trace that has grown are looked at once more when they are whole.
        self._grew = False
        self._again = SpanTotals()

    def behind(self, trace: Trace) -> int:
        """How many spans the trace has that were not looked at."""
        return len(trace) - self.totals.seen

    def _counted(self, trace: Trace) -> int:
        """How many spans were looked at that the trace has: totals may be there before them."""
        return min(self.totals.seen, len(trace))

    def complete(self, trace: Trace) -> bool:
        """Whether all was done that can be done as far as the trace is known."""
        if self.behind(trace) > 0 or self.sub_agents.seen < self._counted(trace):
            return False
        if not trace.loaded.complete:
            return True
        found = self._repeats_anew is None and self.repeats.seen >= len(trace)
        return not self._grew and (not self.wanted or found)

    def peek(self, trace: Trace) -> None:
        """Take in the time of the last span of a trace that is known to its end."""
        self.totals.peek(trace.span(len(trace) - 1))
        self._tell()

    def look_again(self) -> None:
        """More may be known of spans that were looked at."""
        self._grew, self._again = True, SpanTotals()
        self._repeats_anew = RepeatFinder()

    def step(self, trace: Trace, spans: int = SPANS) -> bool:
        """Look at a few spans more; False where there are none to look at for now."""
        if self.complete(trace):
            return False
        if self.behind(trace) > 0:
            self._grew = self._grew or not trace.loaded.complete
            self._look(trace, spans)
        elif self.sub_agents.seen < self._counted(trace):
            self._look_for_sub_agents(trace, spans)
        elif self._grew:
            self._look_again(trace, spans)
        else:
            self._find_repeats(trace)
        return True

    def _find_repeats(self, trace: Trace) -> None:
        """Compare a few steps more; what was found before a trace has grown stays until then."""
        if self.repeats.closed and self._repeats_anew is None:
            self._repeats_anew = RepeatFinder()
        finder = self._repeats_anew or self.repeats
        finder.take(trace, finder.seen + COMPARED)
        if finder is self._repeats_anew and finder.closed:
            self.repeats, self._repeats_anew = finder, None

    def _look(self, trace: Trace, most: int) -> None:
        seen = self.totals.seen
        kept = trace.totals if seen + most < max(len(trace), trace.loaded.spans) else None
        if kept is not None and kept.seen > seen:
            self.totals, self._grew = kept, not trace.loaded.complete
        else:
            self.totals.take(trace.columns(seen, seen + most))
        self._look_for_sub_agents(trace, most)
        self._tell()

    def _look_for_sub_agents(self, trace: Trace, most: int) -> None:
        first, end = self.sub_agents.seen, self._counted(trace)
        if end - first > most and not trace.one_thread(first, end):
            end = first + most
        self.sub_agents.take_up_to(trace, end)

    def _look_again(self, trace: Trace, most: int) -> None:
        seen = self._again.seen
        self._again.take(trace.columns(seen, seen + most))
        if self._again.seen >= len(trace):
            self.totals, self._again, self._grew = self._again, SpanTotals(), False
            self._tell()

    def _tell(self) -> None:
        """Have ``facts`` say what the totals do."""
        totals, known = self.totals, self.facts
        agents, cells = known.agents, known.name_cells
        if len(agents) != len(totals.agents):
            agents = tuple(totals.agents)
            cells = max(map(cell_len, map(one_line, agents)))
        self.facts = TraceFacts(
            seen=totals.seen,
            start=totals.start,
            total=totals.lasted,
            agents=agents,
            name_cells=cells,
        )


def index_more(trace: Trace, background: BackgroundIndex, *, reads: bool) -> Iterator[bool]:
    """Do all that can be done behind the screen, in small steps; with ``reads`` read the trace on.

    Tells after each step whether that is worth showing at once. Where no further step is asked for,
    nobody waits for what another process may be reading.
    """
    reading = reads and not trace.loaded.complete
    try:
        while reading:
            trace.spans.read_in_background()
            reading = trace.advance(READ_BYTES)
            yield False
            while background.behind(trace) >= SPANS and background.step(trace):
                yield False
            if not reading:
                yield True
        while background.step(trace):
            yield False
    finally:
        trace.spans.stop_background_read()
