"""Looking at every span of a trace behind the screen, for all that timeline and overview show."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import nan
from typing import Final

from rich.cells import cell_len

from mast_tui.safe_text import one_line
from mast_tui.traces.model import (
    STATUSES,
    Role,
    Shape,
    Span,
    SpanColumns,
    SpanKind,
    SpanStatus,
    Trace,
)
from mast_tui.ui.trace_view.repeats import RepeatFinder
from mast_tui.ui.trace_view.sub_agents import SubAgentFinder

MOST_AGENTS: Final = 1000
"""Of more agents the names are not kept."""


@dataclass(frozen=True, slots=True)
class TraceFacts:
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

    @property
    def duration(self) -> float | None:
        """Seconds from the first to the last known time, or None where no span has a time."""
        return None if self.start is None else self.total


class FactFinder:
    """Looks at every span once, in order, in slices; a thread may do so while others read."""

    def __init__(self) -> None:
        self.facts = TraceFacts()
        self._start: float | None = None
        self._total = 0.0
        self._agents: dict[str, None] = {}
        self._cells = 0
        self._told: Sequence[Shape] = ()
        self._met: set[int] = set()

    def take(self, found: SpanColumns) -> None:
        """Look at the spans that follow those looked at."""
        self._look_at_times(found.starts, found.ends)
        self._look_at_shapes(found)
        agents = self.facts.agents
        if len(agents) != len(self._agents):
            agents = tuple(self._agents)
        seen = self.facts.seen + len(found)
        self.facts = TraceFacts(seen, self._start, self._total, agents, self._cells)

    def peek(self, span: Span) -> None:
        """Take in the times of a span further on, such as the last one."""
        if self._start is not None and span.start is not None:
            self._look_at_times((span.start,), (nan if span.end is None else span.end,))
            known = self.facts
            self.facts = TraceFacts(
                known.seen, self._start, self._total, known.agents, known.name_cells
            )

    def _look_at_times(self, starts: Sequence[float], ends: Sequence[float]) -> None:
        # What is unknown is NaN, which equals nothing. A step without a beginning has no time.
        if self._start is None:
            self._start = next((start for start in starts if start == start), None)
        if self._start is not None:
            last = max(
                (
                    end if end == end else start
                    for start, end in zip(starts, ends, strict=True)
                    if start == start
                ),
                default=self._start,
            )
            self._total = max(self._total, last - self._start)

    def _look_at_shapes(self, found: SpanColumns) -> None:
        told, shapes = found.told, found.shapes
        if told is not self._told:
            self._told, self._met = told, set()
        new = set(shapes) - self._met
        for number in sorted(new, key=shapes.index):
            self._met.add(number)
            _kind, role, agent, _name = told[number]
            if role is Role.AGENT and agent not in self._agents and len(self._agents) < MOST_AGENTS:
                self._agents[agent] = None
                self._cells = max(self._cells, cell_len(one_line(agent)))


MOST_BUCKETS: Final = 1024
"""How many stretches are counted apart; when there would be more, each two become one."""


class Matter(Enum):
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


KINDS: Final = (Matter.USER, Matter.AGENT, Matter.TOOL, Matter.OTHER)
"""What is counted in each stretch; of equally many the first is shown."""

_ERROR: Final = STATUSES.index(SpanStatus.ERROR)


def kind_of(kind: SpanKind, role: Role) -> Matter:
    """On whose account a span of this kind and role goes."""
    if kind in (SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT):
        return Matter.TOOL
    if role is Role.USER:
        return Matter.USER
    if role is Role.AGENT:
        return Matter.AGENT
    return Matter.OTHER


@dataclass(frozen=True, slots=True)
class Buckets:
    """For each of ``KINDS`` how many spans there are in each stretch of ``1 << shift`` spans."""

    shift: int
    counts: tuple[array[int], ...]

    def halved(self) -> Buckets:
        """The same in stretches of twice the length."""
        pairs = (zip(counts[::2], counts[1::2], strict=True) for counts in self.counts)
        return Buckets(self.shift + 1, tuple(array("I", map(sum, each)) for each in pairs))


class RunCounts:
    """Counts of the spans looked at so far, which are given in order.

    Kinds are counted in at most ``MOST_BUCKETS`` stretches of 1, 2, 4, … spans. Of spans that are
    errors the index is kept, so that one can go from one to the next. One thread may ``take``
    while others ask.
    """

    # Whoever asks meanwhile reads arrays that only grow, or ``buckets``, which is replaced as a
    # whole; ``seen`` is set last, when what it counts is there.

    def __init__(self) -> None:
        self.seen = 0
        self.errors: array[int] = array("I")
        self.buckets = Buckets(0, tuple(array("I") for _ in KINDS))
        self._told: Sequence[Shape] = ()
        self._kinds = bytearray()  # for each shape that was told the place of its kind in KINDS

    def take(self, found: SpanColumns) -> None:
        """Count the spans that follow those counted."""
        kinds = self._kinds_of(found)
        size, place = len(kinds), 0
        while place < size:
            at = self.seen + place
            buckets = self.buckets
            if at >> buckets.shift == MOST_BUCKETS:
                buckets = self.buckets = buckets.halved()
            bucket = at >> buckets.shift
            end = min(size, place + ((bucket + 1) << buckets.shift) - at)
            for number, counts in enumerate(buckets.counts):
                if bucket == len(counts):
                    counts.append(0)
                counts[bucket] += kinds.count(number, place, end)
            place = end
        statuses = found.statuses
        error = statuses.find(_ERROR)
        while error >= 0:
            self.errors.append(self.seen + error)
            error = statuses.find(_ERROR, error + 1)
        self.seen += size

    def _kinds_of(self, found: SpanColumns) -> bytes:
        told = found.told
        if told is not self._told:
            self._told, self._kinds = told, bytearray()
        for kind, role, *_ in told[len(self._kinds) :]:
            self._kinds.append(KINDS.index(kind_of(kind, role)))
        return bytes(map(self._kinds.__getitem__, found.shapes))

    def kinds_in(self, first: int, end: int) -> list[int]:
        """How many spans of each kind there are; stretches that reach in are counted whole."""
        buckets = self.buckets
        low, high = first >> buckets.shift, ((end - 1) >> buckets.shift) + 1
        return [sum(counts[low:high]) for counts in buckets.counts]

    def kind_in(self, first: int, end: int) -> Matter:
        """Which kind is the most frequent; stretches that reach in are counted whole."""
        sums = self.kinds_in(first, end)
        most = max(sums)
        return KINDS[sums.index(most)] if most else Matter.UNSEEN

    def errors_in(self, first: int, end: int) -> int:
        """How many of these spans are errors."""
        low = bisect_left(self.errors, first)
        return bisect_left(self.errors, end, low) - low

    def error_from(self, index: int, step: int) -> int | None:
        """The next error behind span ``index``, or with a negative step before it."""
        errors = self.errors
        if step > 0:
            place = bisect_right(errors, index)
            return errors[place] if place < len(errors) else None
        place = bisect_left(errors, index)
        return errors[place - 1] if place else None


READ_BYTES: Final = 32 * 1024
"""How much of a file is read in one step: a key waits for the end of one."""

SPANS: Final = 1024
"""How many spans are glanced at in one step."""

COMPARED: Final = 24
"""How many spans are compared with those before them in one step: their texts may be read."""


class _Glanced:
    """What is known of the first spans from their columns alone."""

    def __init__(self) -> None:
        self.facts = FactFinder()
        self.counts = RunCounts()

    def take(self, trace: Trace, most: int) -> None:
        found = trace.columns(self.counts.seen, self.counts.seen + most)
        self.facts.take(found)
        self.counts.take(found)


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
        found = self._repeats_anew is None and self.repeats.seen >= len(trace)
        return not self._grew and (not self.wanted or found)

    def peek(self, trace: Trace) -> None:
        """Take in the time of the last span of a trace that is known to its end."""
        self._glanced.facts.peek(trace.span(len(trace) - 1))

    def look_again(self) -> None:
        """More may be known of spans that were looked at."""
        self._grew, self._again = True, _Glanced()
        self._repeats_anew = RepeatFinder()

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
        self._glanced.take(trace, most)
        self.sub_agents.take_up_to(trace, self.counts.seen)

    def _look_again(self, trace: Trace, most: int) -> None:
        self._again.take(trace, most)
        if self._again.counts.seen >= len(trace):
            self._glanced, self._again, self._grew = self._again, _Glanced(), False


def look_on(trace: Trace, background: BackgroundIndex, *, reads: bool) -> Iterator[bool]:
    """Do all that can be done behind the screen, in small steps; with ``reads`` read the trace on.

    Tells after each step whether that is worth showing at once. Where no further step is asked for,
    nobody waits for what another process may be reading.
    """
    reading = reads and not trace.loaded.complete
    try:
        while reading:
            trace.read_aside()
            reading = trace.advance(READ_BYTES)
            yield not reading
            while background.behind(trace) >= SPANS and background.step(trace):
                yield False
    finally:
        trace.stop_waiting()
    while background.step(trace):
        yield False
