"""Looking at every span of a trace behind the screen, for all that timeline and overview show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mast_tui.traces.awaited import stop_waiting
from mast_tui.traces.glances import glances
from mast_tui.traces.model import Trace
from mast_tui.ui.trace_view.repeats import RepeatFinder
from mast_tui.ui.trace_view.span_counts import RunCounts
from mast_tui.ui.trace_view.sub_agents import SubAgentFinder
from mast_tui.ui.trace_view.trace_facts import FactFinder, TraceFacts

READ_BYTES: Final = 32 * 1024
"""How much of a file is read in one step: a key waits for the end of one."""

SPANS: Final = 256
"""How many spans are glanced at in one step."""

COMPARED: Final = 24
"""How many spans are compared with those before them in one step: their texts may be read."""


class _Glanced:
    """What is known of the first spans from their columns alone."""

    def __init__(self) -> None:
        self.facts = FactFinder()
        self.counts = RunCounts()

    def take(self, trace: Trace, most: int) -> None:
        found = glances(trace, self.counts.seen, self.counts.seen + most)
        self.facts.take(found)
        self.counts.take(found)


class Survey:
    """What was found of the spans: times, names, kinds, errors, sub-agents, repeated steps.

    One thread takes ``step`` after step; others may ask meanwhile for what was found. Repeated
    steps are looked for once that is ``wanted`` and the trace is known to its end: it needs what
    the first screen should not wait for.
    """

    def __init__(self) -> None:
        self.sub_agents = SubAgentFinder()
        self.repeats = RepeatFinder()
        self.wanted = False
        self._glanced = _Glanced()
        # What is written on a later line may tell that a step has failed, or when it was over. So
        # the columns of a trace that has grown are looked at once more when they are whole.
        self._grew = False
        self._again = _Glanced()

    @property
    def facts(self) -> TraceFacts:
        """Times and names, as far as is known."""
        return self._glanced.facts.facts

    @property
    def counts(self) -> RunCounts:
        """Kinds and errors, as far as is known."""
        return self._glanced.counts

    def behind(self, trace: Trace) -> int:
        """How many spans the trace has that were not looked at."""
        return len(trace) - self.counts.seen

    def complete(self, trace: Trace) -> bool:
        """Whether all was done that can be done as far as the trace is known."""
        if self.behind(trace) > 0:
            return False
        if not trace.loaded.complete:
            return True
        return not self._grew and (not self.wanted or self.repeats.seen >= len(trace))

    def peek(self, trace: Trace) -> None:
        """Take in the time of the last span of a trace that is known to its end."""
        self._glanced.facts.peek(trace.span(len(trace) - 1))

    def step(self, trace: Trace, spans: int = SPANS) -> bool:
        """Look at a few spans more; False where there are none to look at for now."""
        if self.complete(trace):
            return False
        if self.behind(trace) > 0:
            self._grew = self._grew or not trace.loaded.complete
            self._look(trace, spans)
        elif self._grew:
            self._look_again(trace, spans)
        else:
            self.repeats.take(trace, self.repeats.seen + COMPARED)
        return True

    def _look(self, trace: Trace, most: int) -> None:
        self._glanced.take(trace, most)
        self.sub_agents.take_up_to(trace, self.counts.seen)

    def _look_again(self, trace: Trace, most: int) -> None:
        self._again.take(trace, most)
        if self._again.counts.seen >= len(trace):
            self._glanced, self._again, self._grew = self._again, _Glanced(), False


def look_on(trace: Trace, survey: Survey, *, reads: bool) -> Iterator[bool]:
    """Do all that can be done behind the screen, in small steps; with ``reads`` read the trace on.

    Tells after each step whether that is worth showing at once. Where no further step is asked for,
    nobody waits for what another process may be reading.
    """
    reading = reads and not trace.loaded.complete
    try:
        while reading:
            reading = trace.advance(READ_BYTES)
            yield not reading
            while survey.behind(trace) >= SPANS and survey.step(trace):
                yield False
    finally:
        stop_waiting(trace)
    while survey.step(trace):
        yield False
