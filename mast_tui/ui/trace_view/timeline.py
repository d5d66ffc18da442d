"""The trace as a timeline: one row for each span, with its time, its actor and its marks."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import get_current_worker

from mast_tui.columns import padded
from mast_tui.counts import offset
from mast_tui.safe_text import COLOUR_SEQUENCE, one_line
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.ui.context import HasInputQueue
from mast_tui.ui.trace_view.background_index import BackgroundIndex, TraceFacts, index_more
from mast_tui.ui.trace_view.folding import (
    Fold,
    FoldedRun,
    FoldedSteps,
    TimelineRows,
    run_at,
    step_signature,
    steps_of_sub_agent,
    steps_under,
)
from mast_tui.ui.trace_view.gutter import (
    LOOK_HERE,
    NO_MARKS,
    GutterMark,
    GutterMarks,
    MarkKind,
    any_within,
)
from mast_tui.ui.widgets.virtual_lines import VirtualLines

MAX_TRAIL: Final = 200
"""The number of positions that a trail keeps."""


class Trail:
    """The spans from which the cursor jumped, for going back and forward. One step is no jump."""

    def __init__(self) -> None:
        """Begin without positions."""
        self._positions: list[int] = []
        self._current = 0
        """The position that the cursor went back to; the number of positions if it did not."""

    def record_jump(self, current: int, target: int) -> None:
        """Record that the cursor moves from one span to another, unless that is a single step.

        Args:
            current: The span that it leaves.
            target: The span that it goes to.
        """
        if abs(current - target) < 2:
            return
        del self._positions[self._current :]
        self._add(current)

    def back(self, current: int) -> int | None:
        """Return the previous position, or None; ``forward`` returns to ``current``."""
        if self._current == len(self._positions):
            self._add(current)
            self._current -= 1
        return self._step(current, -1)

    def forward(self, current: int) -> int | None:
        """Return the position that the cursor went back from, or None."""
        return self._step(current, 1)

    def _add(self, index: int) -> None:
        if self._positions[-1:] != [index]:
            self._positions.append(index)
        del self._positions[:-MAX_TRAIL]
        self._current = len(self._positions)

    def _step(self, current: int, step: int) -> int | None:
        """Move along the positions until one differs from the cursor, and return it."""
        position = self._current + step
        while 0 <= position < len(self._positions):
            if self._positions[position] != current:
                self._current = position
                return self._positions[position]
            position += step
        return None


BAR_CELLS: Final = 8
BAR_FROM_WIDTH: Final = 64
"""The least width with a time bar, in cells."""

SHELL_TOOLS: Final = frozenset({"shell", "exec_command", "local_shell", "bash", "terminal"})
"""Tools whose rows show only the command, because their name adds nothing to it."""

MAX_AGENT_CELLS: Final = 14
AGENTS_FROM_WIDTH: Final = 44
"""The least width with agents' names; a timeline beside a drawer is narrower."""

KIND_LABELS: Final[Mapping[SpanKind, str]] = {
    SpanKind.MESSAGE: "says",
    SpanKind.REASONING: "thinks",
    SpanKind.TOOL_CALL: "tool",
    SpanKind.TOOL_RESULT: "result",
    SpanKind.LOG: "log",
}


class Columns(NamedTuple):
    """The widths of number, time, bar and actor in cells; 0 for a column that is left out."""

    number: int
    time: int
    bar: int
    actor: int

    @classmethod
    def fitting(cls, spans: int, facts: TraceFacts, width: int, *, bar: bool = True) -> Columns:
        """Return the columns of a timeline.

        Args:
            spans: The number of spans.
            facts: Times and names of the spans.
            width: The width of the timeline in cells.
            bar: Whether to show a time bar if there is space.
        """
        time = 0
        if facts.start is not None:
            time = max(5, len(offset(facts.total)))
        actor = 7
        if len(facts.agents) > 1 and width >= AGENTS_FROM_WIDTH:
            max_name = MAX_AGENT_CELLS if width >= BAR_FROM_WIDTH else 9
            actor += 1 + min(max_name, facts.name_cells)
        return cls(
            max(3, len(str(spans))),
            time,
            BAR_CELLS + 2 if bar and time and width >= BAR_FROM_WIDTH else 0,
            actor,
        )

    @property
    def before_actor(self) -> int:
        """The cells before the column of the actor."""
        time = self.time + 1 if self.time else 0
        bar = self.bar + 1 if self.bar else 0
        return 1 + self.number + 1 + time + bar

    def text_cells(self, width: int, tail: int) -> int:
        """Return the cells for the text of a row.

        Args:
            width: The width of the timeline in cells.
            tail: The cells of what follows the text.
        """
        return max(4, width - self.before_actor - self.actor - 1 - tail - 1)


def kind_label(span: Span) -> str:
    """Return the kind of a span as its row shows it: ``tool``, ``error``, ``user`` …"""
    failed = span.status is SpanStatus.ERROR
    if failed and span.kind in {SpanKind.TOOL_RESULT, SpanKind.LOG}:
        return "error"
    if span.kind is SpanKind.MESSAGE:
        return {Role.USER: "user", Role.SYSTEM: "system"}.get(span.role, "agent")
    return KIND_LABELS[span.kind]


def distinct_names(names: Sequence[str], cells: int) -> dict[str, str]:
    """Shorten names to a width so that no two become the same.

    Names with the same beginning keep it, and the part in which they differ: ``code_e…success`` and
    ``code_e…error``.

    Args:
        names: The names.
        cells: The width of the longest result.

    Returns:
        The shortened name of each name.
    """
    whole = {name: one_line(name) for name in names}
    cut = {name: padded(text, cells).rstrip() for name, text in whole.items()}
    alike: dict[str, list[str]] = {}
    for name, text in cut.items():
        alike.setdefault(text, []).append(name)
    for group in alike.values():
        if len(group) < 2:
            continue
        texts = [whole[name] for name in group]
        same = _common_prefix(texts)
        # The part that differs begins with a whole word, if there is one.
        same = max(texts[0].rfind(sign, 0, same) + 1 for sign in "_-. /:") or same
        tail = min(cells - 2, max(cell_len(text[same:]) for text in texts))
        for name, text in zip(group, texts, strict=True):
            head = set_cell_size(text, cells - 1 - tail).rstrip()
            cut[name] = f"{head}…{padded(text[same:], tail).rstrip()}"
    return cut


def _common_prefix(texts: Sequence[str]) -> int:
    """Return how many letters at the beginning are the same in all texts."""
    for position, letters in enumerate(zip(*texts, strict=False)):
        if len(set(letters)) > 1:
            return position
    return min(map(len, texts))


def actor_text(span: Span, name: str | None, cells: int) -> str:
    """Return the name of the agent and the kind of a span, in so many cells.

    Args:
        span: The span.
        name: The shortened name; None to show the kind only.
        cells: The width of the column.
    """
    kind = kind_label(span)
    if name is None or name.rstrip() == kind:
        return set_cell_size(kind, cells)
    return set_cell_size(name, cells - 8) + " " + set_cell_size(kind, 7)


def time_text(span: Span, facts: TraceFacts) -> str:
    """Return the time from the beginning of the run to a span, or nothing if it is unknown.

    Args:
        span: The span.
        facts: The times of the run.
    """
    if span.start is None or facts.start is None:
        return ""
    return offset(span.start - facts.start)


def time_bar(start: float, end: float, total: float, cells: int) -> str:
    """Draw the time that a span took as a part of the run.

    Args:
        start: The begin of the span, in seconds from that of the run.
        end: Its end.
        total: The seconds that the run took.
        cells: The width of the bar.

    Returns:
        Blocks in the cells that the span touches; for a span within one cell a mark as wide as it.
    """
    if total <= 0:
        return " " * cells
    first = min(cells - 1, max(0, int(start / total * cells)))
    last = min(cells - 1, max(first, int(end / total * cells)))
    if first == last:
        part = (end - start) / total * cells
        glyph = "▏"
        if part >= 0.75:
            glyph = "█"
        elif part >= 0.3:
            glyph = "▌"
        return " " * first + glyph + " " * (cells - first - 1)
    return " " * first + "█" * (last - first + 1) + " " * (cells - last - 1)


def bar_text(span: Span, facts: TraceFacts) -> str:
    """Draw the bar of a span, with its frame; an empty one if its time is unknown.

    Args:
        span: The span.
        facts: The times of the run.
    """
    if span.start is None or facts.start is None:
        return f"▕{' ' * BAR_CELLS}▏"
    end = span.start if span.end is None else span.end
    start = span.start - facts.start
    return f"▕{time_bar(start, end - facts.start, facts.total, BAR_CELLS)}▏"


def row_text(span: Span) -> str:
    """Return the text that the row of a span shows if it is wide enough."""
    text = span.preview
    if "\x1b" in text:
        text = COLOUR_SEQUENCE.sub("", text)
    text = one_line(text)
    named = span.kind is SpanKind.TOOL_CALL and span.name and span.name not in SHELL_TOOLS
    if not named or span.name == text.partition(" ")[0]:
        return text
    return f"{one_line(span.name or '')} {text}"


def fold_text(fold: Fold, trace: Trace) -> str:
    """Return the text of a fold's row: how many steps it hides, and which.

    Args:
        fold: The fold.
        trace: The trace.
    """
    numbers = f"(#{fold.hidden_from + 1} to #{fold.end})"
    if isinstance(fold, FoldedRun):
        first = trace.span(fold.first)
        repetitions = f"×{fold.times - 1} {'nearly ' if fold.near else ''}the same again"
        return f"{repetitions}: {one_line(first.name or kind_label(first))} {numbers}"
    return f"{steps_text(fold.end - fold.first)} of {one_line(fold.agent)} {numbers}"


def folded_steps_text(fold: Fold) -> str:
    """Return the text that the row of a step shows for the steps folded into it."""
    text = f"⋮ {steps_text(fold.end - fold.hidden_from)}"
    if isinstance(fold, FoldedSteps) and fold.agent:
        return f"{text} of {one_line(fold.agent, 20)}"
    return text


def steps_text(count: int) -> str:
    """Return a number of steps with its noun."""
    return "1 step" if count == 1 else f"{count} steps"


def _shortened(marks: Sequence[GutterMark]) -> list[GutterMark]:
    """Return the first two marks, and one that counts the others."""
    if len(marks) > 2:
        return [*marks[:2], GutterMark(f"+{len(marks) - 2}", MarkKind.MORE)]
    return list(marks)


MAX_WHOLE_ROWS: Final = 1024
"""The number of rows whose text is known to be wholly visible; more than the rows kept as drawn."""

WORTH_FOLDING: Final = 2
"""The least number of steps that a run hides for its first row to say that it can be folded."""


class TimelineLines(VirtualLines):
    """The rows of a timeline. Its owner sets the trace, the folds and the marks."""

    css_prefix = "timeline"
    css_parts = (
        *("cursor", "range", "unread", "quiet", "text", "reasoning", "tool", "user", "agent"),
        *("error", "own", "suggestion", "other", "match"),
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trace: Trace | None = None
        self.rows = TimelineRows()
        self.marks = NO_MARKS
        self.read: Set[str] = frozenset()
        self.range: tuple[int, int] | None = None
        self.look_here: Sequence[int] = ()
        self.matches: Container[int] = frozenset()
        self.facts = TraceFacts()
        self.background = BackgroundIndex()
        self._drawn_unread: set[int] = set()
        self._drawn_indexed: dict[int, tuple[str, str]] = {}
        self._drawn_whole: LRUCache[int, str] = LRUCache(MAX_WHOLE_ROWS)
        self._columns_key: tuple[int, TraceFacts, int] | None = None
        self._bar = True
        self._names_key: tuple[tuple[str, ...], int] | None = None
        self._shortened_names: Mapping[str, str] = {}
        self._column_widths = Columns(0, 0, 0, 0)

    @property
    def row_count(self) -> int:
        """The number of spans, less those that are folded away or filtered out."""
        return len(self.rows)

    def show_marks(self, marks: GutterMarks) -> None:
        """Show these marks; draw only the visible rows whose marks changed."""
        old = self.marks
        self.marks = marks
        self.redraw_where(lambda row: self._marks_of(row, old) != self._marks_of(row, marks))

    def show_read(self, read: Set[str]) -> None:
        """Show which spans were read, by key; draw only the visible rows that change.

        The set is not copied.
        """
        self.read = read
        number = 1 + self._columns().number
        self.redraw_where(lambda row: (row in self._drawn_unread) != self._unread(row), number)

    def show_bar(self, visible: bool) -> None:
        """Show the time bar, or leave its cells to the text."""
        if visible != self._bar:
            self._bar = visible
            self._columns_key = None
            self.rows_changed()

    def redraw_indexed(self) -> None:
        """Draw the visible rows whose time bar or repetition has changed in the index."""
        self.redraw_where(lambda row: self._drawn_indexed.get(row) != self._indexed_parts(row))

    def show_range(self, span_range: tuple[int, int] | None) -> None:
        """Show the range of spans that is marked for a label."""
        old = self.range
        self.range = span_range
        if old != span_range:
            self.redraw_where(
                lambda row: (
                    _in_range(self.rows.index_at(row), old)
                    != _in_range(self.rows.index_at(row), span_range)
                )
            )

    def show_look_here(self, indices: Sequence[int]) -> None:
        """Mark the spans that probably contain the decisive step, given in order."""
        old = self.look_here
        self.look_here = indices
        if old != indices:
            self.redraw_where(
                lambda row: self._looks_at(row, old) != self._looks_at(row, indices), 1
            )

    def _looks_at(self, row: int, indices: Sequence[int]) -> bool:
        """Return whether one of these spans is in a row."""
        index, fold = self.rows.span_and_fold(row)
        if fold is not None:
            return any_within(indices, fold.hidden_from, fold.end)
        return any_within(indices, index, index + 1)

    def rows_changed(self) -> None:
        """Forget the drawn rows and measure again."""
        self._drawn_unread.clear()
        self._drawn_indexed.clear()
        self._drawn_whole.clear()
        super().rows_changed()

    def fully_visible_keys(self) -> list[str]:
        """Return the keys of the visible spans whose whole text is in their row."""
        keys = (self._drawn_whole.get(row) for row in self.rows_on_screen())
        return [key for key in keys if key is not None]

    def _columns(self) -> Columns:
        # Computed only if something changed, so that all rows on screen have the same columns.
        measures = (self.rows.spans, self.facts, self.lines_area.width)
        if measures != self._columns_key:
            self._columns_key = measures
            self._column_widths = Columns.fitting(*measures, bar=self._bar)
        return self._column_widths

    def _names(self, cells: int) -> Mapping[str, str]:
        """Return the shortened name of each agent; empty if there is only one agent."""
        names_key = (self.facts.agents, cells)
        if names_key != self._names_key:
            self._names_key = names_key
            self._shortened_names = {}
            if len(self.facts.agents) > 1 and cells > 1:
                self._shortened_names = distinct_names(self.facts.agents, cells)
        return self._shortened_names

    def _name_of(self, span: Span, cells: int) -> str | None:
        names = self._names(cells)
        # A span that the index has not reached yet may have another agent.
        return names.get(span.agent, padded(one_line(span.agent), cells)) if names else None

    def _unread(self, row: int) -> bool:
        index, fold = self.rows.span_and_fold(row)
        assert self.trace is not None
        return fold is None and self.trace.span(index).key not in self.read

    def _marks_of(self, row: int, marks: GutterMarks) -> tuple[GutterMark, ...]:
        """Return the marks on the spans that a row stands for."""
        index, fold = self.rows.span_and_fold(row)
        if fold is not None:
            return marks.marks_within(fold.hidden_from, fold.end)
        under = self.rows.folded_under(index)
        if under is None:
            return marks.marks_on(index)
        if under.hidden_from == index + 1:
            return marks.marks_within(index, under.end)
        both = dict.fromkeys(
            (*marks.marks_on(index), *marks.marks_within(under.hidden_from, under.end))
        )
        return tuple(sorted(both, key=lambda mark: list(MarkKind).index(mark.kind)))

    def _tag(self, row: int) -> str:
        """Return the end of a row: the steps folded into it, or a run that could be folded."""
        index, fold = self.rows.span_and_fold(row)
        if fold is not None or self.rows.filtered:
            return ""
        under = self.rows.folded_under(index)
        if under is not None:
            return folded_steps_text(under)
        run = self.background.repeats.run_at(index)
        if run is None or run.first != index or run.end - run.hidden_from < WORTH_FOLDING:
            return ""
        if self.rows.folded_at(index):
            return ""
        assert self.trace is not None
        at_once = run.period == 1 and self.trace.span(index).kind is SpanKind.TOOL_CALL
        return f"{run.times} calls at once" if at_once else f"repeated {run.times}×"

    def _indexed_parts(self, row: int, span: Span | None = None) -> tuple[str, str]:
        """Return the parts of a row that come from the background index: tag and time bar."""
        index, fold = self.rows.span_and_fold(row)
        assert self.trace is not None
        bar = fold is None and self._columns().bar
        if not bar:
            return self._tag(row), ""
        return self._tag(row), bar_text(span or self.trace.span(index), self.facts)

    def render_row(self, row: int, width: int) -> Strip:
        """Draw the row of a span or of a fold."""
        trace = self.trace
        assert trace is not None
        index, fold = self.rows.span_and_fold(row)
        at_cursor = row == self.cursor
        in_range = _in_range(index, self.range)
        base = self.rich_style
        if at_cursor:
            base += self._part("cursor")
        elif in_range:
            base += self._part("range")
        edge = " "
        if at_cursor:
            edge = "▌"
        elif in_range and fold is None:
            edge = "┃"
        elif self._looks_at(row, self.look_here):
            edge = LOOK_HERE
        # A change of style costs more bytes than all the blanks of a row.
        parts = [Segment(edge, base + self._part("agent" if edge in "▌┃" else "quiet"))]
        span = trace.span(index)
        marks = _shortened(self._marks_of(row, self.marks))
        indexed = self._indexed_parts(row, span)
        self._drawn_indexed[row] = indexed
        tag = indexed[0]
        cells = _cells_of(marks)
        if fold is None:
            with_tag = cells + (cell_len(tag) + 1 if tag else 0)
            parts += self._span_parts(row, span, width, with_tag, base)
            if tag:
                parts.append(Segment(f" {tag}", base + self._part("quiet")))
        else:
            before_actor = self._columns().before_actor
            text_cells = max(4, width - before_actor - cells - 1)
            quiet = base + self._part("quiet")
            parts.append(
                Segment(f"{'⋮':>{self._columns().number}} ".ljust(before_actor - 1), quiet)
            )
            parts.append(Segment(padded(fold_text(fold, trace), text_cells), quiet))
        for mark in marks:
            parts += [Segment(" ", base), Segment(mark.text, base + self._mark_style(mark))]
        return Strip(parts).adjust_cell_length(width, base).simplify()

    def _span_parts(
        self, row: int, span: Span, width: int, tail: int, base: Style
    ) -> list[Segment]:
        """Return the texts of a span's row: number, time, bar, actor, text."""
        columns = self._columns()
        quiet = base + self._part("quiet")
        if span.key in self.read:
            self._drawn_unread.discard(row)
            number = quiet
        else:
            self._drawn_unread.add(row)
            number = base + self._part("unread")
        parts = [Segment(f"{span.index + 1:>{columns.number}} ", number)]
        if columns.time:
            parts.append(Segment(f"{time_text(span, self.facts):>{columns.time}} ", quiet))
        if columns.bar:
            parts.append(Segment(f"{bar_text(span, self.facts)} ", quiet))
        actor = actor_text(span, self._name_of(span, columns.actor - 8), columns.actor)
        whole = row_text(span)
        room = columns.text_cells(width, tail)
        if span.preview_is_complete and cell_len(whole) <= room:
            self._drawn_whole[row] = span.key
        else:
            self._drawn_whole.discard(row)
        text = padded(whole, room)
        if not tail and span.index not in self.matches:
            text = set_cell_size(text, cell_len(text) + 1)
        return [
            *parts,
            Segment(f"{actor} ", base + self._actor_style(span)),
            Segment(text, base + self._text_style(span)),
        ]

    def _actor_style(self, span: Span) -> Style:
        """Return the style of the actor, which depends on kind and status."""
        if span.status is SpanStatus.ERROR:
            return self._part("error")
        if span.kind is SpanKind.TOOL_CALL:
            return self._part("tool")
        if span.kind is SpanKind.MESSAGE:
            return self._part("user" if span.role is Role.USER else "agent")
        return self._part("quiet")

    def _text_style(self, span: Span) -> Style:
        """Return the style of the text, which depends on matches, status and kind."""
        if span.index in self.matches:
            return self._part("match")
        if span.status is SpanStatus.ERROR:
            return self._part("error")
        if span.kind is SpanKind.REASONING:
            return self._part("reasoning")
        if span.kind in (SpanKind.TOOL_RESULT, SpanKind.LOG):
            return self._part("quiet")
        return self._part("text")

    def _mark_style(self, mark: GutterMark) -> Style:
        own_style = mark.kind in (MarkKind.OWN, MarkKind.SUGGESTION)
        return self._part(mark.kind.value if own_style else "other")


def _in_range(index: int, span_range: tuple[int, int] | None) -> bool:
    return span_range is not None and min(span_range) <= index <= max(span_range)


def _cells_of(marks: Sequence[GutterMark]) -> int:
    return sum(cell_len(mark.text) + 1 for mark in marks)


INDEXED_AT_ONCE: Final = 256
"""The number of spans that are indexed before the first paint: as many as a screen may hold."""

REPORT_EVERY: Final = 0.25
"""Seconds between two reports of the background index."""

REPORT_EVERY_BETWEEN_KEYS: Final = 1.0
"""The same while keys arrive: a key that comes with a report waits until that is drawn."""


class Timeline(TimelineLines):
    """The timeline of a trace, with a cursor, folds and a filter.

    A thread indexes the spans and, if asked, reads the trace to its end. It reports a few times a
    second with ``IndexGrown``.
    """

    tells_size = True

    @dataclass
    class IndexGrown(Message):
        """A report of the background index; ``done`` is true if nothing is left to index."""

        trace: Trace
        facts: TraceFacts
        done: bool

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._reads = False
        self._indexing = False
        self._index_lock = Lock()
        self._last_index = 0
        self._filter: Sequence[int] | None = None
        self._followed_since: int | None = None
        self.trail = Trail()
        """The spans from which the cursor jumped."""

    def on_resize(self, event: events.Resize) -> None:
        """Keep the row of the cursor visible."""
        self.show_row(self.cursor, centre=True)

    @property
    def index(self) -> int:
        """The span under the cursor; for a fold the first span that it hides."""
        return self.rows.index_at(self.cursor) if len(self.rows) else self._last_index

    @property
    def fold_at_cursor(self) -> Fold | None:
        """The fold whose row the cursor is on, or None."""
        return self.rows.span_and_fold(self.cursor)[1]

    @property
    def filtered(self) -> bool:
        """True if only some spans have a row."""
        return self.rows.filtered

    def set_filter(self, indices: Sequence[int] | None) -> None:
        """Show these spans only, which must be sorted; None shows all again, with the folds as
        before.

        The cursor stays on its span, or goes to the nearest visible one and posts ``Moved``. If no
        span is visible, ``index`` stays the span that the cursor was on. The sequence is not
        copied: the caller may add spans to its end and pass it again.
        """
        previous = self.index
        line = self.cursor - round(self.scroll_y)
        self._last_index = previous
        rows = len(self.rows)
        extended = self.filtered and indices is self._filter and rows > 0
        self._filter = indices
        self.rows.set_filter(indices)
        if extended:
            self.rows_grown(rows)
            return
        self._restore_cursor(previous, line)
        if self.index != previous:
            self.post_message(self.Moved(self, self.cursor))

    def _restore_cursor(self, index: int, line: int) -> None:
        """Put the cursor on a span, on the same line of the screen, after rows have changed."""
        self.cursor = max(0, min(self.rows.row_of(index), len(self.rows) - 1))
        self.rows_changed()
        self.scroll_to(y=max(0, self.cursor - line), animate=False, force=True)
        self.show_row(self.cursor)

    def show_trace(self, trace: Trace, *, reads: bool = False) -> None:
        """Show another trace, from its first span.

        Args:
            trace: The trace.
            reads: Whether to read it to its end in the background.
        """
        self.workers.cancel_group(self, "look")
        self.trace = trace
        self._reads = reads
        self.rows.clear()
        self.marks = NO_MARKS
        self.read = frozenset()
        self.range = None
        self.look_here = ()
        self.matches = frozenset()
        self.facts = TraceFacts()
        self.background = BackgroundIndex()
        self._indexing = False
        self._filter = self._followed_since = None
        self.trail = Trail()
        self.cursor = self._last_index = 0
        self.scroll_to(y=0, animate=False, force=True)
        if len(trace):
            self.background.step(trace, INDEXED_AT_ONCE)
            if trace.loaded.complete:
                self.background.peek(trace)
        self.grown()
        self.rows_changed()

    def grown(self) -> None:
        """Show the spans that the trace has gained, and index them in the background."""
        self._update(self.background.facts)

    def look_for_repeats(self) -> None:
        """Search for runs of repeated steps in the background from now on."""
        self.background.search_repeats = True
        self._continue_indexing()

    def on_timeline_index_grown(self, message: IndexGrown) -> None:
        """Draw the rows that the report of the index changes."""
        if message.trace is not self.trace:
            message.stop()
            return
        self._indexing = self._indexing and not message.done
        if self.app.screen is not self.screen and not message.done:
            # Under a dialog every change draws the whole screen; this one can wait.
            message.stop()
            return
        self._update(message.facts)
        self.redraw_indexed()

    def _update(self, facts: TraceFacts) -> None:
        """Show the present spans and facts, and index further ones."""
        trace = self.trace
        if trace is None:
            return
        columns = self._columns()
        rows = len(self.rows)
        names = self._names(columns.actor - 8)
        self.rows.grow(len(trace))
        self.facts = facts
        if (
            columns != self._columns()
            or not names.items() <= self._names(columns.actor - 8).items()
        ):
            self.rows_changed()
        elif rows != len(self.rows):
            self.rows_grown(rows)
        self._follow_end(trace)
        self._continue_indexing()

    def rows_grown(self, old: int) -> None:
        """Draw the rows that were added after the first ``old`` ones, which are unchanged."""
        if not self.show_vertical_scrollbar:
            super().rows_grown(old)
            return
        # Setting the size in the usual way lays out the whole screen; only the scroll bar depends
        # on it.
        self.set_reactive(Widget.virtual_size, Size(self.virtual_size.width, self.row_count))
        self.vertical_scrollbar.window_virtual_size = self.row_count
        for row in self.rows_on_screen():
            if row >= old:
                self.redraw_row(row)

    # Reading and indexing in the background

    def pause_reading(self) -> bool:
        """Stop background reading of a complete trace until ``resume_reading``.

        Returns False if it is being read or indexed right now.
        """
        trace = self.trace
        if trace is None or self._indexing or not self._reads or not trace.loaded.complete:
            return False
        self._indexing = True
        return True

    def resume_reading(self) -> None:
        """Allow background reading again."""
        self._indexing = False

    def reread(self) -> None:
        """Index all spans again after the file was read again."""
        self.background.reread()
        self.grown()

    def _continue_indexing(self) -> None:
        """Start the thread that reads and indexes, unless it runs or has nothing to do."""
        trace = self.trace
        if trace is None or self._indexing:
            return
        unread = self._reads and not trace.loaded.complete
        if unread or not self.background.complete(trace):
            self._indexing = True
            # Two threads that compute slow each other down, so the screen is drawn first.
            self.call_after_refresh(self._start_indexing, trace)

    def _start_indexing(self, trace: Trace) -> None:
        if trace is self.trace and self.is_attached:
            self._index_in_background(trace, self.background)

    @work(thread=True, group="look", exclusive=True)
    def _index_in_background(self, trace: Trace, background: BackgroundIndex) -> None:
        """Read and index the trace in a worker thread, with a report now and then."""
        worker = get_current_worker()
        reported = monotonic()
        # Only one thread may read a trace, and the previous one may not have ended.
        with self._index_lock:
            for worth_showing in index_more(trace, background, reads=self._reads):
                if worker.is_cancelled:
                    return
                now = monotonic()
                pause = REPORT_EVERY_BETWEEN_KEYS if self._keys_come() else REPORT_EVERY
                if worth_showing or now - reported > pause:
                    reported = now
                    self.post_message(self.IndexGrown(trace, background.facts, False))
        self.post_message(self.IndexGrown(trace, background.facts, True))

    # The end of a trace that is still being read

    @property
    def follows_end(self) -> bool:
        """True if the cursor stays on the last span while the trace is read."""
        trace = self.trace
        return self._followed_since is not None and not (trace is None or trace.loaded.complete)

    def move_to_end(self) -> None:
        """Go to the last span, and follow new spans until the next key or click."""
        self.move_to(self.row_count - 1)
        self.stay_at_end()

    def stay_at_end(self) -> None:
        """Keep the cursor on the last span while more arrive, if it is there now."""
        if self.cursor == self.row_count - 1 and not self.filtered:
            self._followed_since = self._inputs_delivered()

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on a row, the last one if there are fewer, and make it visible."""
        self._followed_since = None
        super().move_to(row, centre=centre)

    def _follow_end(self, trace: Trace) -> None:
        """Move the cursor to the new last span, unless the user has done something since."""
        since = self._followed_since
        if since is None:
            return
        stays = self._inputs_delivered() == since and self.cursor in self.rows_on_screen()
        self._followed_since = None
        if stays and not self.filtered:
            if self.cursor != self.row_count - 1:
                self.move_to(self.row_count - 1)
            self._followed_since = since

    def _keys_come(self) -> bool:
        app = self.app
        return isinstance(app, HasInputQueue) and app.keys_come

    def _inputs_delivered(self) -> int:
        app = self.app
        return app.input_delivered if isinstance(app, HasInputQueue) else 0

    def go_to(self, index: int) -> None:
        """Put the cursor on a span and record the jump in ``trail``.

        Unfolds a fold that hides the span, and removes a filter that excludes it.
        """
        self.trail.record_jump(self.index, index)
        self.move_to_span(index)

    def go_to_named(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; return False if there is none."""
        trace = self.trace
        number = text.strip().removeprefix("#")
        if trace is None:
            return False
        if number.isdecimal() and 1 <= int(number) <= len(trace):
            index: int | None = int(number) - 1
        else:
            index = trace.index_of(text.strip())
        if index is not None:
            self.go_to(index)
        return index is not None

    def move_to_span(self, index: int) -> None:
        """Put the cursor on a span as ``go_to`` does, without recording the jump."""
        hiding = self.rows.hiding(index)
        if self.rows.filtered and not self.rows.shows(index):
            self.rows.set_filter(None)
            hiding = self.rows.hiding(index)
            self.rows_changed()
        if hiding is not None and index != self.rows.index_at(self.rows.row_of(index)):
            self.rows.unfold(hiding)
            self.rows_changed()
        self.move_to(self.rows.row_of(index), centre=True)

    def toggle_fold(self) -> Fold | None:
        """Fold the steps at the cursor, or unfold them.

        The first step of a sub-agent folds all of its steps, a repeated step folds its run, and any
        other step folds the steps that belong to it.

        Returns:
            The fold, or None if there is nothing to fold.
        """
        trace = self.trace
        if trace is None or not len(trace) or self.filtered:
            return None
        index = self.index
        line = self.cursor - round(self.scroll_y)
        fold = self.rows.folded_at(index)
        if fold is not None:
            self.rows.unfold(fold)
        else:
            fold = self._foldable(trace, index)
            if fold is None:
                return None
            self.rows.fold(fold)
        self._restore_cursor(index, line)
        return fold

    def _foldable(self, trace: Trace, index: int) -> Fold | None:
        """Return the steps that a fold at a span would hide, or None."""
        steps = self.background.sub_agents.beginning_at(index)
        if steps is not None and steps[1] - steps[0] > 1:
            return steps_of_sub_agent(trace, *steps)
        return (
            self.background.repeats.run_at(index)
            or run_at(index, len(trace), lambda i: step_signature(trace.span(i)))
            or steps_under(trace, index, self.background.sub_agents)
        )
