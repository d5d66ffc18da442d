"""How the rows of a timeline are drawn: a span each, or the line of a fold."""

from __future__ import annotations

from collections.abc import Container, Sequence, Set
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.strip import Strip

from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.ui.trace_view.background_index import Survey
from mast_tui.ui.trace_view.gutter import NO_MARKS, Mark, MarkKind, Marks
from mast_tui.ui.trace_view.timeline_rows import TimelineRows
from mast_tui.ui.trace_view.timeline_text import (
    Columns,
    bar_words,
    fold_words,
    time_words,
    under_words,
    who_words,
    whole_words,
    words_within,
)
from mast_tui.ui.trace_view.trace_facts import TraceFacts
from mast_tui.ui.widgets.virtual_lines import VirtualLines


def _with_room(marks: Sequence[Mark]) -> list[Mark]:
    """At most two marks, and how many more there are."""
    if len(marks) > 2:
        return [*marks[:2], Mark(f"+{len(marks) - 2}", MarkKind.MORE)]
    return list(marks)


REMEMBERED: Final = 1024
"""Rows of which it is kept that they showed a whole text: more than are kept as drawn."""

WORTH_FOLDING: Final = 2
"""From how many steps out of sight on a run says in its first row that it can be folded."""


class TimelineLines(VirtualLines):
    """Draws the spans of a trace with their marks; what it shows is set from outside."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "timeline--cursor",
        "timeline--range",
        "timeline--unread",
        "timeline--quiet",
        "timeline--text",
        "timeline--reasoning",
        "timeline--tool",
        "timeline--user",
        "timeline--agent",
        "timeline--error",
        "timeline--own",
        "timeline--suggestion",
        "timeline--other",
        "timeline--match",
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trace: Trace | None = None
        self.rows = TimelineRows()
        self.marks = NO_MARKS
        self.read: Set[str] = frozenset()
        self.range: tuple[int, int] | None = None
        self.matches: Container[int] = frozenset()
        self.facts = TraceFacts()
        self.survey = Survey()
        self._shown_unread: set[int] = set()
        self._shown_found: dict[int, tuple[str, str]] = {}
        self._shown_whole: LRUCache[int, str] = LRUCache(REMEMBERED)
        self._columns_for: tuple[int, TraceFacts, int] | None = None
        self._columns_known = Columns(0, 0, 0, 0)

    @property
    def row_count(self) -> int:
        """One row a span, less what is folded or not shown."""
        return len(self.rows)

    def show_marks(self, marks: Marks) -> None:
        """Show these marks; only rows on screen whose marks changed are rendered again."""
        old, self.marks = self.marks, marks
        self.redraw_where(lambda row: self._marks_of(row, old) != self._marks_of(row, marks))

    def show_read(self, read: Set[str]) -> None:
        """Show which spans were read, by key; the set is held, not copied.

        Only rows on screen that look different by now are rendered again.
        """
        self.read = read
        number = 1 + self._columns().number
        self.redraw_where(lambda row: (row in self._shown_unread) != self._unread(row), number)

    def show_found(self) -> None:
        """Show what was found behind the screen: how long the run is, and where steps repeat."""
        self.redraw_where(lambda row: self._shown_found.get(row) != self._found(row))

    def show_range(self, span_range: tuple[int, int] | None) -> None:
        """Show which spans are marked for a label."""
        old, self.range = self.range, span_range
        if old != span_range:
            self.redraw_where(
                lambda row: (
                    _in_range(self.rows.index_at(row), old)
                    != _in_range(self.rows.index_at(row), span_range)
                )
            )

    def rows_changed(self) -> None:
        """Forget rendered rows and measure anew."""
        self._shown_unread.clear()
        self._shown_found.clear()
        self._shown_whole.clear()
        super().rows_changed()

    def fully_shown(self) -> list[str]:
        """Keys of the spans on screen whose whole text stands in their row, as it was drawn."""
        known = (self._shown_whole.get(row) for row in self.rows_on_screen())
        return [key for key in known if key is not None]

    def _columns(self) -> Columns:
        # The trace may have grown meanwhile: rows of one screen have the same columns all the same.
        asked = (self.rows.spans, self.facts, self.lines_area.width)
        if asked != self._columns_for:
            self._columns_for, self._columns_known = asked, Columns.of(*asked)
        return self._columns_known

    def _unread(self, row: int) -> bool:
        index, fold = self.rows.at(row)
        assert self.trace is not None
        return fold is None and self.trace.span(index).key not in self.read

    def _marks_of(self, row: int, marks: Marks) -> tuple[Mark, ...]:
        """The marks on what a row stands for."""
        index, fold = self.rows.at(row)
        if fold is not None:
            return marks.within(fold.hidden_from, fold.end)
        under = self.rows.folded_under(index)
        if under is None:
            return marks.at(index)
        both = dict.fromkeys((*marks.at(index), *marks.within(under.hidden_from, under.end)))
        return tuple(sorted(both, key=lambda mark: list(MarkKind).index(mark.kind)))

    def _tag(self, row: int) -> str:
        """What is said at the end of a row of what is folded under it, or could be folded."""
        index, fold = self.rows.at(row)
        if fold is not None or self.rows.filtered:
            return ""
        under = self.rows.folded_under(index)
        if under is not None:
            return under_words(under)
        run = self.survey.repeats.run_at(index)
        if run is None or run.first != index or run.end - run.hidden_from < WORTH_FOLDING:
            return ""
        return "" if self.rows.folded_at(index) else f"×{run.times}"

    def _found(self, row: int, span: Span | None = None) -> tuple[str, str]:
        """What of a row rests on what is found behind the screen."""
        index, fold = self.rows.at(row)
        assert self.trace is not None
        bar = fold is None and self._columns().bar
        if not bar:
            return self._tag(row), ""
        return self._tag(row), bar_words(span or self.trace.span(index), self.facts)

    def _tail(self, row: int) -> list[Mark]:
        return _with_room(self._marks_of(row, self.marks))

    def _tail_cells(self, row: int) -> int:
        tag = self._tag(row)
        return _cells_of(self._tail(row)) + (cell_len(tag) + 1 if tag else 0)

    def render_row(self, row: int, width: int) -> Strip:
        """One span, or the line of a fold."""
        trace = self.trace
        assert trace is not None
        index, fold = self.rows.at(row)
        at_cursor, in_range = row == self.cursor, _in_range(index, self.range)
        base = self.rich_style
        if at_cursor:
            base += self._style("cursor")
        elif in_range:
            base += self._style("range")
        edge = "▌" if at_cursor else "┃" if in_range and fold is None else " "
        # A change of style costs more bytes than all the blanks of a row.
        parts = [Segment(edge, base + self._style("quiet" if edge == " " else "agent"))]
        tail, tag = self._tail(row), self._tag(row)
        span = trace.span(index)
        self._shown_found[row] = self._found(row, span)
        if fold is None:
            parts += self._span_parts(row, span, width, self._tail_cells(row), base)
            if tag:
                parts.append(Segment(f" {tag}", base + self._style("quiet")))
        else:
            lead = self._columns().lead
            room = max(4, width - lead - _cells_of(tail) - 1)
            quiet = base + self._style("quiet")
            parts.append(Segment(f"{'⋮':>{self._columns().number}} ".ljust(lead - 1), quiet))
            parts.append(Segment(words_within(fold_words(fold, trace), room), quiet))
        for mark in tail:
            parts += [Segment(" ", base), Segment(mark.shown, base + self._mark_style(mark))]
        return Strip(parts).adjust_cell_length(width, base).simplify()

    def _span_parts(
        self, row: int, span: Span, width: int, tail: int, base: Style
    ) -> list[Segment]:
        columns, quiet = self._columns(), base + self._style("quiet")
        if span.key in self.read:
            self._shown_unread.discard(row)
            number = quiet
        else:
            self._shown_unread.add(row)
            number = base + self._style("unread")
        parts = [Segment(f"{span.index + 1:>{columns.number}} ", number)]
        if columns.time:
            parts.append(Segment(f"{time_words(span, self.facts):>{columns.time}} ", quiet))
        if columns.bar:
            parts.append(Segment(f"{bar_words(span, self.facts)} ", quiet))
        who = who_words(span, self.facts, columns.who)
        whole, room = whole_words(span), columns.room(width, tail)
        if span.whole and cell_len(whole) <= room:
            self._shown_whole[row] = span.key
        else:
            self._shown_whole.discard(row)
        text = words_within(whole, room)
        if not tail and span.index not in self.matches:
            text = set_cell_size(text, cell_len(text) + 1)
        return [
            *parts,
            Segment(f"{who} ", base + self._who_style(span)),
            Segment(text, base + self._text_style(span)),
        ]

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"timeline--{name}", partial=True)

    def _who_style(self, span: Span) -> Style:
        if span.status is SpanStatus.ERROR:
            return self._style("error")
        if span.kind is SpanKind.TOOL_CALL:
            return self._style("tool")
        if span.kind is SpanKind.MESSAGE:
            return self._style("user" if span.role is Role.USER else "agent")
        return self._style("quiet")

    def _text_style(self, span: Span) -> Style:
        if span.index in self.matches:
            return self._style("match")
        if span.status is SpanStatus.ERROR:
            return self._style("error")
        if span.kind is SpanKind.REASONING:
            return self._style("reasoning")
        if span.kind in (SpanKind.TOOL_RESULT, SpanKind.LOG):
            return self._style("quiet")
        return self._style("text")

    def _mark_style(self, mark: Mark) -> Style:
        return self._style(
            {
                MarkKind.OWN: "own",
                MarkKind.SUGGESTION: "suggestion",
            }.get(mark.kind, "other")
        )


def _in_range(index: int, span_range: tuple[int, int] | None) -> bool:
    return span_range is not None and min(span_range) <= index <= max(span_range)


def _cells_of(marks: Sequence[Mark]) -> int:
    return sum(cell_len(mark.shown) + 1 for mark in marks)
