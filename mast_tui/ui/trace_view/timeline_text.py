"""The words in a row of the timeline, and how many cells each column has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size

from mast_tui.safe_text import one_line
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.ui import clock
from mast_tui.ui.trace_view.folding import Fold, Run, Steps
from mast_tui.ui.trace_view.trace_facts import TraceFacts

BAR_CELLS: Final = 8
BAR_FROM_WIDTH: Final = 64
"""Narrower timelines show no time bar."""

SHELLS: Final = frozenset({"shell", "exec_command", "local_shell", "bash", "terminal"})
"""Tools whose name says nothing beside the command that they run."""

MAX_AGENT_CELLS: Final = 14

KIND_WORDS: Final[Mapping[SpanKind, str]] = {
    SpanKind.MESSAGE: "says",
    SpanKind.REASONING: "thinks",
    SpanKind.TOOL_CALL: "tool",
    SpanKind.TOOL_RESULT: "result",
    SpanKind.LOG: "log",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Cells of number, time, bar and who; 0 where a column is left out."""

    number: int
    time: int
    bar: int
    who: int

    @classmethod
    def of(cls, spans: int, facts: TraceFacts, width: int) -> Columns:
        """The columns for this many spans on a timeline of ``width`` cells."""
        time = 0
        if facts.start is not None:
            time = max(5, len(clock.offset(facts.total)))
        who = 7
        if len(facts.agents) > 1:
            most = MAX_AGENT_CELLS if width >= BAR_FROM_WIDTH else 9
            who += 1 + min(most, facts.name_cells)
        return cls(
            max(3, len(str(spans))),
            time,
            BAR_CELLS + 2 if time and width >= BAR_FROM_WIDTH else 0,
            who,
        )

    @property
    def lead(self) -> int:
        """Cells up to where it is told who acts."""
        time = self.time + 1 if self.time else 0
        bar = self.bar + 1 if self.bar else 0
        return 1 + self.number + 1 + time + bar

    def room(self, width: int, tail: int) -> int:
        """Cells for the text beside a tail of this many cells."""
        return max(4, width - self.lead - self.who - 1 - tail - 1)


def kind_word(span: Span) -> str:
    """The word for a step in a run of one agent."""
    if span.kind is SpanKind.TOOL_RESULT and span.status is SpanStatus.ERROR:
        return "error"
    if span.kind is SpanKind.MESSAGE:
        return {Role.USER: "user", Role.SYSTEM: "system"}.get(span.role, "agent")
    return KIND_WORDS[span.kind]


def who_words(span: Span, facts: TraceFacts, cells: int) -> str:
    """Who acts, and how; the kind alone where one agent does everything."""
    word = kind_word(span)
    if len(facts.agents) <= 1:
        return set_cell_size(word, cells)
    short = one_line(span.agent)
    room = cells - 8
    if cell_len(short) > room:
        short = set_cell_size(short, room - 1) + "…"
    return set_cell_size(short, room) + " " + set_cell_size(word, 7)


def time_words(span: Span, facts: TraceFacts) -> str:
    """When the step began, from the beginning of the run."""
    if span.start is None or facts.start is None:
        return ""
    return clock.offset(span.start - facts.start)


def bar_words(span: Span, facts: TraceFacts) -> str:
    """The step's stretch of the run's time, as a bar."""
    if span.start is None or facts.start is None:
        return f"▕{' ' * BAR_CELLS}▏"
    end = span.start if span.end is None else span.end
    start = span.start - facts.start
    return f"▕{clock.time_bar(start, end - facts.start, facts.total, BAR_CELLS)}▏"


def whole_words(span: Span) -> str:
    """What the row would say of the step if it were wide enough."""
    text = one_line(span.preview)
    if span.kind is SpanKind.TOOL_CALL and span.name and span.name not in SHELLS:
        return f"{one_line(span.name)} {text}"
    return text


def words_within(text: str, cells: int) -> str:
    """The text in exactly so many cells."""
    if cell_len(text) > cells:
        text = set_cell_size(text, max(1, cells - 1)) + "…"
    return set_cell_size(text, cells)


def fold_words(fold: Fold, trace: Trace) -> str:
    """What a fold's line says of the steps that it hides."""
    places = f"(#{fold.hidden_from + 1} to #{fold.end})"
    if isinstance(fold, Run):
        first = trace.span(fold.first)
        again = f"×{fold.times - 1} {'nearly ' if fold.near else ''}the same again"
        return f"{again}: {one_line(first.name or kind_word(first))} {places}"
    return f"{steps_words(fold.end - fold.first)} of {one_line(fold.agent)} {places}"


def under_words(fold: Fold) -> str:
    """What the row of a step says of those folded under it."""
    words = f"⋮ {steps_words(fold.end - fold.hidden_from)}"
    return (
        f"{words} of {one_line(fold.agent, 20)}"
        if isinstance(fold, Steps) and fold.agent
        else words
    )


def steps_words(count: int) -> str:
    """So many steps, in words."""
    return "1 step" if count == 1 else f"{count} steps"
