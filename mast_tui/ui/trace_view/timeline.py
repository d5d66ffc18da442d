"""The trace as a timeline: one row for each span, with its time, its actor and its marks."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.cache import LRUCache
from textual.message import Message
from textual.strip import Strip
from textual.worker import get_current_worker

from mast_tui.columns import padded
from mast_tui.counts import offset
from mast_tui.safe_text import COLOUR_SEQUENCE, one_line
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.ui.services.input_queue import QueuedInputApp
from mast_tui.ui.trace_view.background_index import BackgroundIndex, TraceFacts, index_more
from mast_tui.ui.trace_view.folding import (
    Fold,
    FoldedRun,
    FoldedSteps,
    TimelineRows,
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
from mast_tui.ui.trace_view.repeats import run_near
from mast_tui.ui.widgets.virtual_lines import VirtualLines

MAX_TRAIL: Final = 200
"""The number of positions that a trail keeps."""


class Trail:
    """The spans from which the cursor has jumped, for going back and forward.

    A move to a neighbouring span is no jump.
    """

    def __init__(self) -> None:
        """Begin without positions."""
        self._span_indices: list[int] = []
        """The spans, the oldest first."""
        self._position = 0
        """The position in ``_span_indices`` that the cursor has gone back to; else its length."""

    def record_jump(self, current_index: int, target_index: int) -> None:
        """Record a move of the cursor from one span to another, unless they are neighbours.

        The spans that ``forward`` could return are forgotten.

        Args:
            current_index: The span that the cursor leaves.
            target_index: The span that the cursor goes to.
        """
        if abs(current_index - target_index) < 2:
            return
        del self._span_indices[self._position :]
        self._add_position(current_index)

    def back(self, current_index: int) -> int | None:
        """Return the span to go back to, or None.

        The first time also record the span under the cursor, so that ``forward`` can return to it.
        """
        if self._position == len(self._span_indices):
            self._add_position(current_index)
            self._position -= 1
        return self._move_position(current_index, -1)

    def forward(self, current_index: int) -> int | None:
        """Return the span that the cursor went back from, or None if there is none."""
        return self._move_position(current_index, 1)

    def _add_position(self, index: int) -> None:
        """Add a span at the end, and put the position behind it.

        At most ``MAX_TRAIL`` spans are kept.
        """
        if self._span_indices[-1:] != [index]:
            self._span_indices.append(index)
        del self._span_indices[:-MAX_TRAIL]
        self._position = len(self._span_indices)

    def _move_position(self, current_index: int, step: int) -> int | None:
        """Move to the next position whose span is not under the cursor, and return the span.

        If there is none in this direction, return None and do not move.
        """
        position = self._position + step
        while 0 <= position < len(self._span_indices):
            if self._span_indices[position] != current_index:
                self._position = position
                return self._span_indices[position]
            position += step
        return None


BAR_CELLS: Final = 8
BAR_FROM_WIDTH: Final = 64
"""The least width with a time bar, in cells."""

SHELL_TOOLS: Final = frozenset({"shell", "exec_command", "local_shell", "bash", "terminal"})
"""The tools without their name in a row, because the command is enough."""

MIN_NUMBER_CELLS: Final = 3
MIN_TIME_CELLS: Final = 5
MIN_TEXT_CELLS: Final = 4

KIND_CELLS: Final = 7
"""The cells of the kind of a span in the column of the actor."""

NARROW_AGENT_CELLS: Final = 9
"""The most cells for an agent's name in a timeline too narrow for a time bar."""

MAX_AGENT_CELLS: Final = 14
AGENTS_FROM_WIDTH: Final = 44
"""The least width in cells at which agents' names are shown."""

_KIND_LABELS: Final[Mapping[SpanKind, str]] = {
    SpanKind.REASONING: "thinks",
    SpanKind.TOOL_CALL: "tool",
    SpanKind.TOOL_RESULT: "result",
    SpanKind.LOG: "log",
}


class Columns(NamedTuple):
    """The widths of the columns in cells; 0 for a column that is left out."""

    number: int
    time: int
    bar: int
    actor: int

    @property
    def before_actor(self) -> int:
        """The cells before the column of the actor."""
        time_cells = self.time + 1 if self.time else 0
        bar_cells = self.bar + 1 if self.bar else 0
        return 1 + self.number + 1 + time_cells + bar_cells

    @property
    def agent(self) -> int:
        """The cells of the agent's name in the column of the actor; negative without a name."""
        return self.actor - KIND_CELLS - 1

    def text_cells(self, width: int, tail: int) -> int:
        """Return the cells for the text of a row.

        Args:
            width: The width of the timeline in cells.
            tail: The cells of the marks and the tag after the text.
        """
        blanks = 2  # after the actor and at the end
        return max(MIN_TEXT_CELLS, width - self.before_actor - self.actor - tail - blanks)


@lru_cache(maxsize=8)
def columns_fitting(
    span_count: int, facts: TraceFacts, width: int, *, shows_bar: bool = True
) -> Columns:
    """Return the columns of a timeline.

    Args:
        span_count: The number of spans.
        facts: Times and names of the spans.
        width: The width of the timeline in cells.
        shows_bar: True to show a time bar if there is space.
    """
    time_cells = 0
    if facts.start is not None:
        time_cells = max(MIN_TIME_CELLS, len(offset(facts.total)))
    bar_cells = 0
    if shows_bar and time_cells and width >= BAR_FROM_WIDTH:
        bar_cells = BAR_CELLS + 2
    actor_cells = KIND_CELLS
    if len(facts.agents) > 1 and width >= AGENTS_FROM_WIDTH:
        max_name_cells = MAX_AGENT_CELLS if width >= BAR_FROM_WIDTH else NARROW_AGENT_CELLS
        actor_cells += 1 + min(max_name_cells, facts.name_cells)
    return Columns(
        number=max(MIN_NUMBER_CELLS, len(str(span_count))),
        time=time_cells,
        bar=bar_cells,
        actor=actor_cells,
    )


def kind_label(kind: SpanKind, role: Role, status: SpanStatus) -> str:
    """Return the kind of a span as its row shows it: ``tool``, ``error``, ``user`` …

    Args:
        kind: The kind of the span.
        role: The side that acts in it.
        status: Its result.
    """
    if status is SpanStatus.ERROR and kind in (SpanKind.TOOL_RESULT, SpanKind.LOG):
        return "error"
    if kind is SpanKind.MESSAGE:
        return {Role.USER: "user", Role.SYSTEM: "system"}.get(role, "agent")
    return _KIND_LABELS[kind]


@lru_cache(maxsize=8)
def distinct_names(names: tuple[str, ...], cells: int) -> Mapping[str, str]:
    """Return a shortened name for each name, different from the others where possible.

    If shortened names would be equal, the middle of each name is cut out instead of its end:
    ``code_executor_success`` becomes ``code_e…success``.

    Args:
        names: The names.
        cells: The most cells of a shortened name.

    Returns:
        The shortened names by the full names.
    """
    lines = {name: one_line(name) for name in names}
    shortened_names = {name: padded(line, cells).rstrip() for name, line in lines.items()}
    names_by_short: dict[str, list[str]] = {}
    for name, short_name in shortened_names.items():
        names_by_short.setdefault(short_name, []).append(name)
    for group in names_by_short.values():
        if len(group) < 2:
            continue
        texts = _without_middles([lines[name] for name in group], cells)
        shortened_names.update(zip(group, texts, strict=True))
    return shortened_names


def _without_middles(lines: Sequence[str], cells: int) -> list[str]:
    """Cut the middle out of names that begin alike, so that their ends stay.

    ``cells`` is the most cells of a result.
    """
    letters = zip(*lines, strict=False)
    prefix_length = len(list(takewhile(lambda same: len(set(same)) == 1, letters)))
    # If possible, the part that is kept begins with a whole word.
    word_start = max(lines[0].rfind(separator, 0, prefix_length) + 1 for separator in "_-. /:")
    tail_start = word_start or prefix_length
    tail_cells = min(cells - 2, max(cell_len(line[tail_start:]) for line in lines))
    return [
        f"{set_cell_size(line, cells - 1 - tail_cells).rstrip()}…"
        f"{padded(line[tail_start:], tail_cells).rstrip()}"
        for line in lines
    ]


def actor_text(span: Span, name: str | None, cells: int) -> str:
    """Return the name of the agent and the kind of a span, padded to a width.

    Args:
        span: The span.
        name: The shortened name; None to show the kind only.
        cells: The width of the column.
    """
    kind = kind_label(span.kind, span.role, span.status)
    # An agent may be called ``user`` or ``system``, like a kind. The word is shown once.
    if name is None:
        return set_cell_size(kind, cells)
    if name.rstrip() == kind:
        name = ""
    return f"{set_cell_size(name, cells - KIND_CELLS - 1)} {set_cell_size(kind, KIND_CELLS)}"


def _time_text(span: Span, facts: TraceFacts) -> str:
    """Return the time from the beginning of the run to a span; empty if it is unknown."""
    if span.start is None or facts.start is None:
        return ""
    return offset(span.start - facts.start)


def time_bar(start: float, end: float, total: float, cells: int) -> str:
    """Draw the time of a span as a part of the run.

    Args:
        start: The seconds from the beginning of the run to the beginning of the span.
        end: The seconds from the beginning of the run to the end of the span.
        total: The seconds that the run took.
        cells: The width of the bar.

    Returns:
        Full blocks in the cells of the span. A span within one cell has a full, half or thin block,
        according to its share of the cell. Blanks if ``total`` is 0.
    """
    if total <= 0:
        return " " * cells
    first_cell = min(cells - 1, max(0, int(start / total * cells)))
    last_cell = min(cells - 1, max(first_cell, int(end / total * cells)))
    blocks = "█" * (last_cell - first_cell + 1)
    if first_cell == last_cell:
        part_of_cell = (end - start) / total * cells
        if part_of_cell < 0.3:
            blocks = "▏"
        elif part_of_cell < 0.75:
            blocks = "▌"
    return " " * first_cell + blocks + " " * (cells - last_cell - 1)


def _bar_text(span: Span, facts: TraceFacts) -> str:
    if span.start is None or facts.start is None:
        return f"▕{' ' * BAR_CELLS}▏"
    end = span.start if span.end is None else span.end
    return f"▕{time_bar(span.start - facts.start, end - facts.start, facts.total, BAR_CELLS)}▏"


def row_text(span: Span) -> str:
    """Return the uncut text for the row of a span."""
    text = span.preview
    if "\x1b" in text:
        text = COLOUR_SEQUENCE.sub("", text)
    text = one_line(text)
    tool = span.name if span.kind is SpanKind.TOOL_CALL else None
    if not tool or tool in SHELL_TOOLS or tool == text.partition(" ")[0]:
        return text
    return f"{one_line(tool)} {text}"


def _fold_text(fold: Fold, trace: Trace) -> str:
    span_numbers = f"(#{fold.hidden_from + 1} to #{fold.end})"
    if isinstance(fold, FoldedRun):
        first_step = trace.span(fold.first)
        step_kind = kind_label(first_step.kind, first_step.role, first_step.status)
        step_name = one_line(first_step.name or step_kind)
        repetitions = f"×{fold.times - 1} {'nearly ' if fold.nearly_equal else ''}the same again"
        return f"{repetitions}: {step_name} {span_numbers}"
    return f"{steps_text(fold.end - fold.hidden_from)} of {one_line(fold.agent)} {span_numbers}"


def folded_steps_text(fold: Fold) -> str:
    """Return the text about folded steps for the row of the step that they belong to."""
    text = f"⋮ {steps_text(fold.end - fold.hidden_from)}"
    if isinstance(fold, FoldedSteps) and fold.agent:
        return f"{text} of {one_line(fold.agent, 20)}"
    return text


def steps_text(count: int) -> str:
    """Return a number of steps with its noun."""
    return "1 step" if count == 1 else f"{count} steps"


MAX_MARKS: Final = 2
"""The number of marks that a row shows."""


def _shortened_marks(marks: Sequence[GutterMark]) -> list[GutterMark]:
    if len(marks) > MAX_MARKS:
        return [*marks[:MAX_MARKS], GutterMark(f"+{len(marks) - MAX_MARKS}", MarkKind.MORE)]
    return list(marks)


MAX_UNCUT_ROWS: Final = 1024
"""The number of rows that are remembered as uncut. It is larger than the number of cached rows."""

WORTH_FOLDING: Final = 2
"""The least number of steps that a run must hide for a tag in its first row."""


class TimelineLines(VirtualLines):
    """The rows of a timeline. Its owner sets the trace, the folds and the marks."""

    css_prefix = "timeline"
    css_parts = (
        *("cursor", "range", "unread", "quiet", "text", "reasoning", "tool", "user", "agent"),
        *("error", "own", "suggestion", "other", "match"),
    )

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without a trace."""
        super().__init__(id=id)
        self._begin_trace(None)
        self._rows_drawn_unread: set[int] = set()
        """The rows drawn with an unread span."""
        self._indexed_parts_by_row: dict[int, tuple[str, str]] = {}
        """The parts of each drawn row that come from the background index."""
        self._uncut_keys_by_row: LRUCache[int, str] = LRUCache(MAX_UNCUT_ROWS)
        """The keys of the spans with their complete text in their row."""
        self._shows_bar = True

    def _begin_trace(self, trace: Trace | None) -> None:
        """Begin with a trace, without showing a span or drawing anything."""
        self.trace = trace
        self.rows = TimelineRows()
        self.marks = NO_MARKS
        self.read_keys: Set[str] = frozenset()
        """The keys of the spans that were read."""
        self.range: tuple[int, int] | None = None
        """The first and last span of the marked range."""
        self.look_here: Sequence[int] = ()
        """The spans that probably contain the decisive step, in order."""
        self.matches: Container[int] = frozenset()
        """The spans that match the search."""
        self.facts = TraceFacts()
        self.background_index = BackgroundIndex()

    @property
    def row_count(self) -> int:
        """The number of rows; spans that are folded away or filtered out have none."""
        return len(self.rows)

    @property
    def open_trace(self) -> Trace:
        """The trace, for callers that know that there is one."""
        assert self.trace is not None
        return self.trace

    def show_marks(self, marks: GutterMarks) -> None:
        """Show these marks."""
        previous_marks = self.marks
        self.marks = marks
        self.redraw_where(
            lambda row: self._marks_of(row, previous_marks) != self._marks_of(row, marks)
        )

    def show_read(self, read_keys: Set[str]) -> None:
        """Show which spans the annotator has read.

        Args:
            read_keys: The keys of these spans. The set is not copied, so later changes count too.
        """
        self.read_keys = read_keys
        # An unread span differs only in the style of its number.
        self.redraw_where(
            lambda row: (row in self._rows_drawn_unread) != self._is_unread(row),
            cells=1 + self._columns().number,
        )

    def show_bar(self, visible: bool) -> None:
        """Show or hide the time bar."""
        if visible != self._shows_bar:
            self._shows_bar = visible
            self.rows_changed()

    def redraw_indexed(self) -> None:
        """Draw the visible rows with a changed tag or time bar."""
        self.redraw_where(
            lambda row: self._indexed_parts_by_row.get(row) != self._indexed_parts(row)
        )

    def show_range(self, span_range: tuple[int, int] | None) -> None:
        """Show the range of spans that is marked for a label."""
        previous_range = self.range
        self.range = span_range
        if previous_range != span_range:
            self.redraw_where(
                lambda row: (
                    _is_in_range(self.rows.index_at(row), previous_range)
                    != _is_in_range(self.rows.index_at(row), span_range)
                )
            )

    def show_look_here(self, indices: Sequence[int]) -> None:
        """Mark the spans that probably contain the decisive step; their indices are sorted."""
        previous_indices = self.look_here
        self.look_here = indices
        if previous_indices != indices:
            self.redraw_where(
                lambda row: (
                    self._has_any_span(row, previous_indices) != self._has_any_span(row, indices)
                ),
                cells=1,
            )

    def _has_any_span(self, row: int, indices: Sequence[int]) -> bool:
        """Check if a row shows or hides one of these spans. Their indices are sorted."""
        index, fold = self.rows.span_and_fold(row)
        if fold is not None:
            return any_within(indices, fold.hidden_from, fold.end)
        return any_within(indices, index, index + 1)

    def rows_changed(self) -> None:
        """Forget how the rows were drawn, and measure again."""
        self._rows_drawn_unread.clear()
        self._indexed_parts_by_row.clear()
        self._uncut_keys_by_row.clear()
        super().rows_changed()

    def fully_visible_keys(self) -> list[str]:
        """Return the keys of the visible spans with their complete text in their row."""
        keys = (self._uncut_keys_by_row.get(row) for row in self.rows_on_screen())
        return [key for key in keys if key is not None]

    def _columns(self) -> Columns:
        return columns_fitting(
            self.rows.spans, self.facts, self.lines_area.width, shows_bar=self._shows_bar
        )

    def _agent_names(self, cells: int) -> Mapping[str, str]:
        if len(self.facts.agents) > 1 and cells > 1:
            return distinct_names(self.facts.agents, cells)
        return {}

    def _agent_name(self, span: Span, columns: Columns) -> str | None:
        """Return the shortened name of a span's agent; None if the trace has only one agent."""
        if not self._agent_names(columns.agent):
            return None
        # A span that is not indexed yet may have another agent.
        unknown_name = padded(one_line(span.agent), columns.agent)
        return self._agent_names(columns.agent).get(span.agent, unknown_name)

    def _is_unread(self, row: int) -> bool:
        """Check if a row shows an unread span; False for the row of a fold."""
        index, fold = self.rows.span_and_fold(row)
        return fold is None and self.open_trace.span(index).key not in self.read_keys

    def _marks_of(self, row: int, marks: GutterMarks) -> tuple[GutterMark, ...]:
        """Return the marks on the spans that a row shows or hides, in the order of their kinds."""
        index, fold_of_row = self.rows.span_and_fold(row)
        if fold_of_row is not None:
            return marks.marks_within(fold_of_row.hidden_from, fold_of_row.end)
        fold_under = self.rows.folded_under(index)
        if fold_under is None:
            return marks.marks_on(index)
        if fold_under.hidden_from == index + 1:
            # The row's span and the hidden spans are one range, so the marks are sorted already.
            return marks.marks_within(index, fold_under.end)
        hidden_marks = marks.marks_within(fold_under.hidden_from, fold_under.end)
        distinct_marks = dict.fromkeys((*marks.marks_on(index), *hidden_marks))
        return tuple(sorted(distinct_marks, key=lambda mark: list(MarkKind).index(mark.kind)))

    def _tag_text(self, row: int) -> str:
        """Return the tag at the end of a row, or an empty text.

        The tag counts the steps that are folded into the row, or the repetitions that begin there.
        """
        index, fold = self.rows.span_and_fold(row)
        if fold is not None or self.rows.is_filtered:
            return ""
        fold_under = self.rows.folded_under(index)
        if fold_under is not None:
            return folded_steps_text(fold_under)
        run = self.background_index.repeats.run_at(index)
        if run is None or run.first != index or run.end - run.hidden_from < WORTH_FOLDING:
            return ""
        if self.rows.folded_at(index):  # the row of the fold has the tag
            return ""
        are_calls_at_once = (
            run.period == 1 and self.open_trace.span(index).kind is SpanKind.TOOL_CALL
        )
        return f"{run.times} calls at once" if are_calls_at_once else f"{run.times}× in a row"

    def _indexed_parts(self, row: int, span: Span | None = None) -> tuple[str, str]:
        """Return the tag and the time bar of a row; both come from the background index.

        The bar is empty in a row without one. ``span`` spares looking up the row's span.
        """
        index, fold = self.rows.span_and_fold(row)
        tag = self._tag_text(row)
        if fold is not None or not self._columns().bar:
            return tag, ""
        return tag, _bar_text(span or self.open_trace.span(index), self.facts)

    def render_row(self, row: int, width: int) -> Strip:
        """Draw the row of a span or of a fold.

        The parts from the background index are stored, so that ``redraw_indexed`` can compare them.
        """
        index, fold = self.rows.span_and_fold(row)
        base_style = self.row_style(row)
        if row != self.cursor and _is_in_range(index, self.range):
            base_style += self._part("range")
        span = self.open_trace.span(index)
        tag, bar = self._indexed_parts(row, span)
        self._indexed_parts_by_row[row] = (tag, bar)
        tail = self._tail_segments(row, tag, base_style)
        tail_cells = sum(segment.cell_length for segment in tail)
        if tag and self._columns().text_cells(width, 0) - tail_cells < MIN_TEXT_CELLS:
            tail = tail[1:]  # without the tag, as the marks matter more
            tail_cells -= cell_len(tag) + 1
        segments = [self._edge_segment(row, base_style)]
        if fold is None:
            segments += self._span_segments(row, span, width, tail_cells, base_style)
        else:
            fold_text = self._fold_row_text(fold, width - tail_cells)
            segments.append(Segment(fold_text, base_style + self._part("quiet")))
        segments += tail
        return Strip(segments).adjust_cell_length(width, base_style).simplify()

    def _tail_segments(self, row: int, tag: str, base_style: Style) -> list[Segment]:
        segments = []
        if tag:
            segments.append(Segment(f" {tag}", base_style + self._part("quiet")))
        for mark in _shortened_marks(self._marks_of(row, self.marks)):
            segments.append(Segment(" ", base_style))
            segments.append(Segment(mark.text, base_style + self._mark_style(mark)))
        return segments

    def _fold_row_text(self, fold: Fold, cells: int) -> str:
        """Return the text of a fold's row after its edge.

        ``cells`` is the width of the row with its edge.
        """
        columns = self._columns()
        dots = f"{'⋮':>{columns.number}} ".ljust(columns.before_actor - 1)
        text_cells = max(MIN_TEXT_CELLS, cells - columns.before_actor - 1)
        return dots + padded(_fold_text(fold, self.open_trace), text_cells)

    def _edge_segment(self, row: int, base_style: Style) -> Segment:
        """Return the sign at the left of a row: cursor, range, likely decisive step, or blank."""
        index, fold = self.rows.span_and_fold(row)
        if row == self.cursor:
            return Segment("▌", base_style + self._part("agent"))
        if fold is None and _is_in_range(index, self.range):
            return Segment("┃", base_style + self._part("agent"))
        edge = LOOK_HERE if self._has_any_span(row, self.look_here) else " "
        # A blank has the style of the signs: a second style for blanks would cost more bytes.
        return Segment(edge, base_style + self._part("quiet"))

    def _span_segments(
        self, row: int, span: Span, width: int, tail_cells: int, base_style: Style
    ) -> list[Segment]:
        """Return number, time, bar, actor and text of a span's row.

        Also record if the text is complete. ``tail_cells`` is the width of the tag and the marks
        after the text.
        """
        columns = self._columns()
        quiet_style = base_style + self._part("quiet")
        number_style = base_style + self._part(self._read_state(row, span))
        segments = [Segment(f"{span.index + 1:>{columns.number}} ", number_style)]
        if columns.time:
            time = f"{_time_text(span, self.facts):>{columns.time}} "
            segments.append(Segment(time, quiet_style))
        if columns.bar:
            segments.append(Segment(f"{_bar_text(span, self.facts)} ", quiet_style))
        actor = actor_text(span, self._agent_name(span, columns), columns.actor)
        segments.append(Segment(f"{actor} ", base_style + self._actor_style(span)))
        full_text = row_text(span)
        text_cells = columns.text_cells(width, tail_cells)
        if span.preview_is_complete and cell_len(full_text) <= text_cells:
            self._uncut_keys_by_row[row] = span.key
        else:
            self._uncut_keys_by_row.discard(row)
        text = padded(full_text, text_cells)
        if not tail_cells and span.index not in self.matches:
            # The blank at the end belongs to the text, which saves a change of style.
            text = set_cell_size(text, cell_len(text) + 1)
        segments.append(Segment(text, base_style + self._text_style(span)))
        return segments

    def _read_state(self, row: int, span: Span) -> str:
        """Return the name of the style for read or unread spans, and record an unread row."""
        if span.key in self.read_keys:
            self._rows_drawn_unread.discard(row)
            return "quiet"
        self._rows_drawn_unread.add(row)
        return "unread"

    def _actor_style(self, span: Span) -> Style:
        if span.status is SpanStatus.ERROR:
            return self._part("error")
        if span.kind is SpanKind.TOOL_CALL:
            return self._part("tool")
        if span.kind is SpanKind.MESSAGE:
            return self._part("user" if span.role is Role.USER else "agent")
        return self._part("quiet")

    def _text_style(self, span: Span) -> Style:
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
        has_own_style = mark.kind in (MarkKind.OWN, MarkKind.SUGGESTION)
        return self._part(mark.kind.value if has_own_style else "other")


def _is_in_range(index: int, span_range: tuple[int, int] | None) -> bool:
    return span_range is not None and min(span_range) <= index <= max(span_range)


INDEXED_AT_ONCE: Final = 256
"""The number of spans indexed before the first paint, as many as a screen may show."""

REPORT_EVERY: Final = 0.25
"""Seconds between two reports of the background index."""

REPORT_EVERY_BETWEEN_KEYS: Final = 1.0
"""Seconds between two reports while keys arrive. A key has to wait until a report is drawn."""


class Timeline(TimelineLines):
    """The timeline of a trace, with a cursor, folds and a filter.

    A thread indexes the spans and may read the trace to its end. It reports with ``IndexGrown`` a
    few times a second.
    """

    tells_size = True

    @dataclass
    class IndexGrown(Message):
        """A report of the background index; ``done`` is true if nothing is left to index."""

        trace: Trace
        facts: TraceFacts
        done: bool

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without a trace."""
        super().__init__(id=id)
        self._reads_to_end = False
        """True if the background thread reads the trace to its end."""
        self._index_lock = Lock()

    def _begin_trace(self, trace: Trace | None) -> None:
        """Begin with a trace, without drawing anything."""
        super()._begin_trace(trace)
        self._is_busy_or_paused = False
        """True while the background thread runs or is paused. No other may start then."""
        self._last_index = 0
        """The span under the cursor before a filter hid all spans."""
        self._followed_since: int | None = None
        """The number of inputs when the cursor began to follow the end; None if it does not follow.
        """
        self.trail = Trail()
        """The spans from which the cursor jumped."""

    def on_resize(self, event: events.Resize) -> None:
        """Keep the row of the cursor visible."""
        self.show_row(self.cursor, in_upper_third=True)

    @property
    def index(self) -> int:
        """The span under the cursor; in the row of a fold, its first hidden span."""
        return self.rows.index_at(self.cursor) if len(self.rows) else self._last_index

    @property
    def fold_at_cursor(self) -> Fold | None:
        """The fold whose row the cursor is on, or None."""
        _, fold = self.rows.span_and_fold(self.cursor)
        return fold

    @property
    def is_filtered(self) -> bool:
        """True if only some spans have a row."""
        return self.rows.is_filtered

    def set_filter(self, indices: Sequence[int] | None) -> None:
        """Show only some spans.

        The cursor stays on its span, or goes to the nearest visible span and posts ``Moved``. If no
        span is visible, ``index`` stays the same.

        Args:
            indices: The sorted indices of the spans; None to show all spans. The sequence is not
                copied. The caller may add spans to its end and pass it again.
        """
        self._last_index = self.index
        screen_line = self.cursor - round(self.scroll_y)
        previous_row_count = len(self.rows)
        is_extension = self.is_filtered and indices is self.rows.filter and previous_row_count > 0
        self.rows.set_filter(indices)
        if is_extension:
            self.rows_grown(previous_row_count)
            return
        self._restore_cursor(self._last_index, screen_line)
        if self.index != self._last_index:
            self.post_message(self.Moved(self, self.cursor))

    def _restore_cursor(self, index: int, screen_line: int) -> None:
        """Put the cursor back on a span and on a line of the screen, after rows have changed."""
        self.cursor = max(0, min(self.rows.row_of(index), len(self.rows) - 1))
        self.rows_changed()
        self.scroll_to(y=max(0, self.cursor - screen_line), animate=False, force=True)
        self.show_row(self.cursor)

    def show_trace(self, trace: Trace, *, reads_to_end: bool = False) -> None:
        """Show another trace, from its first span.

        Args:
            trace: The trace.
            reads_to_end: True to read the trace to its end in the background.
        """
        self.workers.cancel_group(self, "look")
        self._begin_trace(trace)
        self._reads_to_end = reads_to_end
        self.cursor = 0
        self.scroll_to(y=0, animate=False, force=True)
        if len(trace):
            self.background_index.step(trace, INDEXED_AT_ONCE)
            if trace.loaded.complete:
                self.background_index.include_last_time(trace)
        self.show_new_spans()
        self.rows_changed()

    def show_new_spans(self) -> None:
        """Show the spans that the trace has gained, and index them in the background."""
        self._update_rows(self.background_index.facts)

    def look_for_repeats(self) -> None:
        """Search for runs of repeated steps in the background from now on."""
        self.background_index.search_repeats = True
        self._continue_indexing()

    def on_timeline_index_grown(self, message: IndexGrown) -> None:
        """Draw the rows that the report of the index changes."""
        is_for_this_trace = message.trace is self.trace
        if is_for_this_trace and message.done:
            self._is_busy_or_paused = False
        # Under a dialog every change draws the whole screen, so all but the last one wait.
        may_draw = self.app.screen is self.screen or message.done
        if not is_for_this_trace or not may_draw:
            message.stop()
            return
        self._update_rows(message.facts)
        self.redraw_indexed()

    def _update_rows(self, facts: TraceFacts) -> None:
        """Show new spans and facts, follow the end, and continue to index."""
        trace = self.trace
        if trace is None:
            return
        columns = self._columns()
        previous_row_count = len(self.rows)
        names = self._agent_names(columns.agent)
        self.rows.grow(len(trace))
        self.facts = facts
        new_names = self._agent_names(columns.agent)
        has_renamed_agents = any(new_names.get(agent) != name for agent, name in names.items())
        if has_renamed_agents or columns != self._columns():
            self.rows_changed()
        elif previous_row_count != len(self.rows):
            self.rows_grown(previous_row_count)
        self._follow_end(trace)
        self._continue_indexing()

    def pause_reading(self) -> bool:
        """Stop background reading until ``resume_reading``, and return True.

        Return False if the trace is incomplete, is being indexed, or is not read in the background.
        """
        trace = self.trace
        is_read = self._reads_to_end and trace is not None and trace.loaded.complete
        if self._is_busy_or_paused or not is_read:
            return False
        self._is_busy_or_paused = True  # so that the thread does not start
        return True

    def resume_reading(self) -> None:
        """Continue to read in the background."""
        self._is_busy_or_paused = False
        self._continue_indexing()

    def reread(self) -> None:
        """Index all spans again after the file was read again."""
        self.background_index.reread()
        self.show_new_spans()

    def _continue_indexing(self) -> None:
        """Start the thread that reads and indexes, unless it has nothing to do."""
        trace = self.trace
        if trace is None or self._is_busy_or_paused:
            return
        must_read = self._reads_to_end and not trace.loaded.complete
        if must_read or not self.background_index.complete(trace):
            self._is_busy_or_paused = True
            # The screen is drawn first, because two busy threads slow each other down.
            self.call_after_refresh(self._start_indexing, trace)

    def _start_indexing(self, trace: Trace) -> None:
        if trace is self.trace and self.is_attached:
            self._index_in_background(trace, self.background_index)

    @work(thread=True, group="look", exclusive=True)
    def _index_in_background(self, trace: Trace, background_index: BackgroundIndex) -> None:
        """Read and index the trace in a worker thread, and post reports."""
        worker = get_current_worker()
        report_time = monotonic()
        # Only one thread may read a trace, and the previous thread may still run.
        with self._index_lock:
            for is_worth_showing in index_more(
                trace, background_index, reads_to_end=self._reads_to_end
            ):
                if worker.is_cancelled:
                    return
                now = monotonic()
                pause = REPORT_EVERY_BETWEEN_KEYS if self._do_keys_arrive() else REPORT_EVERY
                if is_worth_showing or now - report_time > pause:
                    report_time = now
                    self.post_message(self.IndexGrown(trace, background_index.facts, done=False))
        self.post_message(self.IndexGrown(trace, background_index.facts, done=True))

    # The end of a trace that is still being read

    @property
    def follows_end(self) -> bool:
        """True if the cursor stays on the last span while the trace is read."""
        trace = self.trace
        return self._followed_since is not None and not (trace is None or trace.loaded.complete)

    def move_to_end(self) -> None:
        """Go to the last span, and follow new spans until the next input."""
        self.move_to(self.row_count - 1)
        self.stay_at_end()

    def stay_at_end(self) -> None:
        """Keep the cursor at the end while spans arrive, if it is on the last row now."""
        if self.cursor == self.row_count - 1 and not self.is_filtered:
            self._followed_since = self._inputs_delivered()

    def move_to(self, row: int, *, in_upper_third: bool = False) -> None:
        """Put the cursor on a row, or on the last row for a larger number."""
        self._followed_since = None
        super().move_to(row, in_upper_third=in_upper_third)

    def _follow_end(self, trace: Trace) -> None:
        """Move the cursor to the new last span if it follows the end.

        An input, a filter, or scrolling the cursor off screen ends this.
        """
        input_count = self._followed_since
        if input_count is None:
            return
        is_undisturbed = self._inputs_delivered() == input_count and not self.is_filtered
        still_follows = is_undisturbed and self.cursor in self.rows_on_screen()
        if still_follows and self.cursor != self.row_count - 1:
            self.move_to(self.row_count - 1)
        # Moving the cursor has ended the following.
        self._followed_since = input_count if still_follows else None

    def _do_keys_arrive(self) -> bool:
        return isinstance(self.app, QueuedInputApp) and self.app.input_queue.keys_come

    def _inputs_delivered(self) -> int:
        app = self.app
        return app.input_queue.delivered_count if isinstance(app, QueuedInputApp) else 0

    def go_to(self, index: int) -> None:
        """Put the cursor on a span, and record the jump in ``trail``.

        A fold that hides the span is unfolded. A filter that excludes it is removed.
        """
        self.trail.record_jump(self.index, index)
        self.move_to_span(index)

    def go_to_named(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; return False if there is none."""
        trace = self.trace
        if trace is None:
            return False
        index = trace.index_of(text.strip())
        number_text = text.strip().removeprefix("#")
        if number_text.isdecimal() and 1 <= int(number_text) <= len(trace):
            index = int(number_text) - 1
        if index is None:
            return False
        self.go_to(index)
        return True

    def move_to_span(self, index: int) -> None:
        """Put the cursor on a span like ``go_to``, without recording the jump."""
        if self.rows.is_filtered and not self.rows.shows(index):
            self.rows.set_filter(None)
            self.rows_changed()
        hiding_fold = self.rows.fold_that_hides(index)
        # The row of a fold stands for its first hidden span.
        if hiding_fold is not None and index != self.rows.index_at(self.rows.row_of(index)):
            self.rows.unfold(hiding_fold)
            self.rows_changed()
        self.move_to(self.rows.row_of(index), in_upper_third=True)

    def toggle_fold(self) -> Fold | None:
        """Fold the steps at the cursor, or unfold them.

        - The first step of a sub-agent folds all steps of the sub-agent.
        - A repeated step folds its run of repetitions.
        - Any other step folds the steps that belong to it.

        Returns:
            The fold, or None if there is nothing to fold.
        """
        trace = self.trace
        if trace is None or not len(trace) or self.is_filtered:
            return None
        index = self.index
        screen_line = self.cursor - round(self.scroll_y)
        fold = self.rows.folded_at(index)
        if fold is not None:
            self.rows.unfold(fold)
        else:
            fold = self._possible_fold(trace, index)
            if fold is None:
                return None
            self.rows.fold(fold)
        self._restore_cursor(index, screen_line)
        return fold

    def _possible_fold(self, trace: Trace, index: int) -> Fold | None:
        """Return the fold that a span begins or is part of, or None."""
        sub_agent_range = self.background_index.sub_agents.beginning_at(index)
        if sub_agent_range is not None:
            first, end = sub_agent_range
            if end - first > 1:  # a single step has nothing to fold
                return steps_of_sub_agent(trace, first, end)
        repeats = self.background_index.repeats
        run = repeats.run_at(index)
        if run is None and not repeats.closed:  # the search for repeats may not be here yet
            run = run_near(trace, index)
        return run or steps_under(trace, index, self.background_index.sub_agents)
