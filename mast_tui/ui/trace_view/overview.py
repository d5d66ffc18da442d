"""An overview of the whole run, as a column of cells beside the timeline."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from mast_tui.traces.index.span_totals import SpanTotals
from mast_tui.traces.model import Trace
from mast_tui.ui.textual_internals import RenderCache
from mast_tui.ui.trace_view.background_index import COUNTED_KINDS, BackgroundIndex, CellContent
from mast_tui.ui.trace_view.gutter import (
    LOOK_HERE,
    NO_MARKS,
    GutterMark,
    GutterMarks,
    MarkKind,
    any_within,
)

MARKS: Final[Mapping[CellContent, MarkKind]] = {
    CellContent.OWN: MarkKind.OWN,
    CellContent.SUGGESTION: MarkKind.SUGGESTION,
}
"""The kind of mark for each content of a cell that is a mark, the most important first."""

FEW_ERRORS: Final = 0.25
"""The largest share of cells with errors at which all of them show their errors."""

STANDS_OUT: Final = 1.5
"""The least ratio of a cell's share of errors to that of the whole run.

In a run with errors in more cells than ``FEW_ERRORS``, only cells with this ratio show their
errors.
"""


class Cell(Struct, frozen=True):
    """A part of a run.

    Attributes:
        first: The first span.
        end: The span after the last one.
        content: The most important content of the spans.
        errors: True if a span is an error, whatever the content.
    """

    first: int
    end: int
    content: CellContent
    errors: bool = False


def spans_of_cell(cell: int, height: int, total: int) -> tuple[int, int]:
    """Return the first and last span (exclusive) of a cell of the overview.

    If there are fewer spans than cells, each span has its own cell, and the last cells are empty.

    Args:
        cell: The number of the cell.
        height: The number of cells.
        total: The number of spans.
    """
    if total <= height:
        return min(cell, total), min(cell + 1, total)
    return cell * total // height, (cell + 1) * total // height


def cell_of(index: int, height: int, total: int) -> int:
    """Return the number of the overview's cell that contains a span.

    Args:
        index: The index of the span.
        height: The number of cells.
        total: The number of spans.
    """
    if total <= height:
        return index
    # The last cell that begins at or before the span, by the division in ``spans_of_cell``.
    return ((index + 1) * height - 1) // total


class Cells(Struct, frozen=True):
    """The cells of a run.

    Their computation takes no longer for a long run than for a short one.
    """

    totals: SpanTotals
    marks: GutterMarks
    matches: Sequence[int] = ()

    def compute(self, height: int, total: int) -> list[Cell]:
        """Return the cells from the top.

        If a run has errors almost everywhere, only cells with a high share of errors show them.

        Args:
            height: The number of cells; fewer are returned if the run has fewer spans.
            total: The number of spans of the run.
        """
        height = min(height, total)
        indexed_total = self.totals.span_count
        ranges = [spans_of_cell(number, height, total) for number in range(height)]
        error_counts = [self.totals.errors_in(first, end) for first, end in ranges]
        has_cell_per_span = total <= height
        cells_with_errors = sum(1 for count in error_counts if count)
        all_show_errors = has_cell_per_span or cells_with_errors <= FEW_ERRORS * height
        # Cells show errors if their share of errors is well above the average.
        least_share = STANDS_OUT * sum(error_counts) / max(1, indexed_total)
        cells = []
        for (first, end), error_count in zip(ranges, error_counts, strict=True):
            indexed_count = min(end, indexed_total) - first
            stands_out = error_count >= least_share * indexed_count
            shows_errors = error_count > 0 and (all_show_errors or stands_out)
            content = self._content_of_range(first, end, shows_errors)
            cells.append(Cell(first, end, content, errors=error_count > 0))
        return cells

    def _content_of_range(self, first: int, end: int, shows_errors: bool) -> CellContent:
        """Return the most important content of the spans ``first`` to ``end`` (exclusive).

        The order of importance is:

        - a match of the search
        - a mark that begins in the range
        - an error, if ``shows_errors``
        - a mark that begins before the range
        - the most frequent kind of span
        """
        if any_within(self.matches, first, end):
            return CellContent.MATCH
        marks = self.marks.marks_within(first, end)
        if marks:
            new_marks = (mark for _, mark in self.marks.beginning_in(first, end))
            new_mark_content = _content_of_marks(new_marks)
            if new_mark_content is not None:
                return new_mark_content
        if shows_errors:
            return CellContent.ERROR
        mark_content = _content_of_marks(marks)
        if mark_content is not None:
            return mark_content
        if first >= self.totals.span_count:
            return CellContent.UNSEEN
        kind_counts = self.totals.kinds_in(first, end)
        highest_count = max(kind_counts)
        return (
            COUNTED_KINDS[kind_counts.index(highest_count)] if highest_count else CellContent.UNSEEN
        )

    def span_to_show(self, cell: Cell) -> int:
        """Return the span that a click on a cell leads to.

        This is the first span with the error, match or mark that the cell shows. For any other
        content it is the first span of the cell.
        """
        if cell.content is CellContent.ERROR:
            errors = self.totals.errors
            return errors[bisect_left(errors, cell.first)]
        if cell.content is CellContent.MATCH:
            return self.matches[bisect_left(self.matches, cell.first)]
        if cell.content in MARKS:
            new_marks = self.marks.beginning_in(cell.first, cell.end)
            indices = (index for index, mark in new_marks if mark.kind is MARKS[cell.content])
            return min(indices, default=cell.first)
        return cell.first


def _content_of_marks(marks: Iterable[GutterMark]) -> CellContent | None:
    """Return the most important of the marks that a cell can show, or None."""
    kinds = {mark.kind for mark in marks}
    return next((content for content, kind in MARKS.items() if kind in kinds), None)


GLYPHS: Final[Mapping[CellContent, str]] = {
    CellContent.MATCH: "◆",
    CellContent.OWN: "●",
    CellContent.SUGGESTION: "◌",
    CellContent.ERROR: "✗",
    CellContent.USER: "▓",
    CellContent.AGENT: "▒",
    CellContent.TOOL: "░",
    CellContent.OTHER: "·",
    CellContent.UNSEEN: " ",
}
CURSOR: Final = "▶"
ON_SCREEN: Final = "▏"
BOTH: Final = "┇"
"""The edge of a visible cell with a span that probably contains the decisive step."""


class _CellLook(Struct, frozen=True):
    """The facts on which the look of a cell depends.

    Attributes:
        content: The content of the cell.
        has_errors: True if a span of the cell is an error.
        is_at_cursor: True if the cursor is in the cell.
        is_visible: True if the timeline shows a span of the cell.
        is_to_look_at: True if a span of the cell probably contains the decisive step.
    """

    content: CellContent
    has_errors: bool
    is_at_cursor: bool
    is_visible: bool
    is_to_look_at: bool

    @property
    def glyph(self) -> tuple[CellContent, bool]:
        """The facts on which the right column of the cell depends."""
        return self.content, self.has_errors

    @property
    def edge(self) -> str:
        """The sign at the left of the cell."""
        if self.is_at_cursor:
            return CURSOR
        if self.is_visible:
            return BOTH if self.is_to_look_at else ON_SCREEN
        return LOOK_HERE if self.is_to_look_at else " "


class Overview(RenderCache):
    """A column of cells for the parts of a run, with the position of the timeline.

    The left column shows the cursor and the visible part of the timeline. An underlined kind means
    that the cell has errors.
    """

    css_prefix = "overview"
    css_parts = ("cursor", "edge", "errors", *(content.value for content in CellContent))

    DEFAULT_CSS = """
    Overview { width: 2; height: 1fr; }
    """

    @dataclass
    class CellChosen(Message):
        """The report that a cell was clicked.

        ``index`` is the span to go to.
        """

        index: int

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without a trace."""
        super().__init__(id=id)
        self._begin_trace(None, BackgroundIndex())
        self.cells: list[Cell] = []
        """The cells as computed last."""
        self._looks: list[_CellLook] = []
        """The looks of the cells as drawn last."""

    def _begin_trace(self, trace: Trace | None, background_index: BackgroundIndex) -> None:
        """Begin with a trace, without drawing anything."""
        self.trace = trace
        self.background_index = background_index
        self._marks = NO_MARKS
        self._matches: Sequence[int] = ()
        self._look_here: Sequence[int] = ()
        """The spans that probably contain the decisive step, in order."""
        self._cursor = 0
        """The span under the cursor of the timeline."""
        self._on_screen = (0, 0)
        """The first and last visible span of the timeline."""

    @property
    def totals(self) -> SpanTotals:
        """The kinds and errors of the spans indexed so far."""
        return self.background_index.totals

    @property
    def complete(self) -> bool:
        """True if all spans that the trace has so far are indexed."""
        return self.trace is None or self.totals.span_count >= len(self.trace)

    def show_trace(self, trace: Trace, background_index: BackgroundIndex) -> None:
        """Show another run.

        Args:
            trace: The trace.
            background_index: Its index.
        """
        self._begin_trace(trace, background_index)
        self.update_cells()

    def show_marks(self, marks: GutterMarks) -> None:
        """Show the labels and suggestions of the run."""
        self._marks = marks
        self.update_cells()

    def show_matches(self, matches: Sequence[int]) -> None:
        """Show the spans that match a search, given in order."""
        if matches or self._matches:
            self._matches = matches
            self.update_cells()

    def show_look_here(self, indices: Sequence[int]) -> None:
        """Mark the spans that probably contain the decisive step, given in order."""
        if indices != self._look_here:
            self._look_here = indices
            self._draw_cells()

    def show_position(self, cursor: int, first: int, last: int) -> None:
        """Show the cursor and the visible part of the timeline.

        Args:
            cursor: The span under the cursor.
            first: The first visible span.
            last: The last visible span.
        """
        previous_cells = self._position_cells()
        self._cursor = cursor
        self._on_screen = (first, last)
        if self._position_cells() != previous_cells:
            self._draw_cells()

    def _position_cells(self) -> tuple[int, range]:
        height = self.size.height
        total = self._span_count
        first, last = self._on_screen
        visible_cells = range(cell_of(first, height, total), cell_of(last, height, total) + 1)
        return cell_of(self._cursor, height, total), visible_cells

    def on_resize(self, event: events.Resize) -> None:
        """Divide the run among another number of cells."""
        self.update_cells()
        self.refresh()

    @property
    def _span_count(self) -> int:
        """The number of spans of the run, including those known from an earlier reading."""
        trace = self.trace
        return 0 if trace is None else max(len(trace), trace.loaded.spans)

    def update_cells(self) -> None:
        """Divide the run into cells anew, because the index has grown or something else changed."""
        self.cells = self._present_cells.compute(self.size.height, self._span_count)
        self._draw_cells()

    @property
    def _present_cells(self) -> Cells:
        return Cells(self.totals, self._marks, self._matches)

    def _draw_cells(self) -> None:
        """Draw the cells that look different now."""
        previous_looks = self._looks
        cursor_cell, visible_cells = self._position_cells()
        self._looks = [
            _CellLook(
                cell.content,
                has_errors=cell.errors,
                is_at_cursor=number == cursor_cell,
                is_visible=number in visible_cells,
                is_to_look_at=any_within(self._look_here, cell.first, cell.end),
            )
            for number, cell in enumerate(self.cells)
        ]
        width = self.size.width
        changed_regions = [
            # If only the left column changes, the right column is not sent.
            Region(0, y, 1 if before and after and before.glyph == after.glyph else width, 1)
            for y, (before, after) in enumerate(zip_longest(previous_looks, self._looks))
            if before != after
        ]
        if changed_regions:
            self.refresh(*changed_regions)

    def _draw_cell(self, look: _CellLook) -> Strip:
        """Draw a cell with its edge."""
        base_style = self.rich_style
        style = base_style + self._part(look.content.value)
        if look.has_errors and look.content in COUNTED_KINDS:
            style += self._part("errors")
        edge_style = base_style + self._part("cursor" if look.is_at_cursor else "edge")
        return Strip([Segment(look.edge, edge_style), Segment(GLYPHS[look.content], style)])

    def render_line(self, y: int) -> Strip:
        """Draw one cell."""
        if y < len(self._looks):
            return self._draw_cell(self._looks[y]).adjust_cell_length(self.size.width)
        return Strip.blank(self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Go to the span that the clicked cell shows."""
        event.stop()
        if 0 <= event.y < len(self.cells):
            index = self._present_cells.span_to_show(self.cells[event.y])
            self.post_message(self.CellChosen(index))
