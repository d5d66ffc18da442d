"""What the timeline must know of all spans together: when they began and ended, and who acted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Final

from rich.cells import cell_len

from mast_tui.safe_text import one_line
from mast_tui.traces.glances import Glances, Shape
from mast_tui.traces.model import Role, Span

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

    def take(self, found: Glances) -> None:
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

    def _look_at_shapes(self, found: Glances) -> None:
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
