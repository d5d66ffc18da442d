"""An overview of the whole run, as a column of cells beside the timeline."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from mast_tui.traces.index.span_totals import SpanTotals
from mast_tui.traces.model import Trace
from mast_tui.ui.textual_internals import RenderCache
from mast_tui.ui.trace_view.background_index import KINDS, BackgroundIndex, CellContent
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
"""The kind of mark for a content, the most important first."""

FEW: Final = 0.25
"""Up to this share of cells with errors, each of them shows its errors."""

STANDS_OUT: Final = 1.5
"""With more, a cell shows its errors if their share is so many times that of the whole run."""


class Cell(NamedTuple):
    """The spans ``first`` to ``end`` (exclusive), and the most important content there.

    ``errors`` is true if some of them are errors, whatever the cell shows.
    """

    first: int
    end: int
    content: CellContent
    errors: bool = False


def spans_of_cell(cell: int, height: int, total: int) -> tuple[int, int]:
    """Return the first and last span (exclusive) of a cell.

    With fewer spans than cells each span has a cell, and the cells below have none.

    Args:
        cell: The number of the cell.
        height: The number of cells.
        total: The number of spans.
    """
    if total <= height:
        return min(cell, total), min(cell + 1, total)
    return cell * total // height, (cell + 1) * total // height


def cell_of(index: int, height: int, total: int) -> int:
    """Return the number of the cell that holds a span.

    Args:
        index: The span.
        height: The number of cells.
        total: The number of spans.
    """
    if total <= height:
        return index
    return ((index + 1) * height - 1) // total


class Cells:
    """The cells of a run. Their computation takes no longer for a long run than for a short one."""

    def __init__(self, totals: SpanTotals, marks: GutterMarks, matches: Sequence[int] = ()) -> None:
        self._totals = totals
        self._marks = marks
        self._matches = matches

    def compute(self, height: int, total: int) -> list[Cell]:
        """Return the cells from the top.

        Args:
            height: The number of cells; fewer are returned if the run has fewer spans.
            total: The number of spans of the run.
        """
        height = min(height, total)
        seen = self._totals.seen
        stretches = [spans_of_cell(number, height, total) for number in range(height)]
        errors = [self._totals.errors_in(first, end) for first, end in stretches]
        each = total <= height
        few = sum(map(bool, errors)) <= FEW * height
        least = STANDS_OUT * sum(errors) / max(1, seen)
        cells = []
        for (first, end), count in zip(stretches, errors, strict=True):
            indexed = min(end, seen) - first
            shows_errors = count > 0 and (each or few or count >= least * indexed)
            cells.append(Cell(first, end, self._content(first, end, shows_errors), count > 0))
        return cells

    def _content(self, first: int, end: int, errors: bool) -> CellContent:
        """Return the most important content of the spans ``first`` to ``end`` (exclusive)."""
        if any_within(self._matches, first, end):
            return CellContent.MATCH
        beginning = _content_of(mark for _, mark in self._marks.beginning_in(first, end))
        if beginning is not None:
            return beginning
        # A mark that begins further up must not hide the errors of the cell.
        if errors:
            return CellContent.ERROR
        continued = _content_of(self._marks.marks_within(first, end))
        if continued is not None:
            return continued
        if first >= self._totals.seen:
            return CellContent.UNSEEN
        counts = self._totals.kinds_in(first, end)
        most = max(counts)
        return KINDS[counts.index(most)] if most else CellContent.UNSEEN

    def span_to_show(self, cell: Cell) -> int:
        """Return the first span with the content of a cell.

        For a kind, and for a mark that begins before the cell, that is the first span of the cell.
        """
        if cell.content is CellContent.ERROR:
            errors = self._totals.errors
            return errors[bisect_left(errors, cell.first)]
        if cell.content is CellContent.MATCH:
            return self._matches[bisect_left(self._matches, cell.first)]
        if cell.content in MARKS:
            begins = self._marks.beginning_in(cell.first, cell.end)
            marked = (index for index, mark in begins if MARKS[cell.content] is mark.kind)
            return min(marked, default=cell.first)
        return cell.first


def _content_of(marks: Iterable[GutterMark]) -> CellContent | None:
    """Return the most important content that these marks make, or None."""
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
"""The edge of a visible cell with spans to look at."""


class Overview(RenderCache):
    """A column of cells for the stretches of a run, with the cursor and the visible part of the
    timeline.

    With two columns the left one shows the cursor and the visible part. With a single column, its
    style does. A kind is underlined in a cell with errors.
    """

    css_prefix = "overview"
    css_parts = ("cursor", "edge", "here", "errors", *(content.value for content in CellContent))

    DEFAULT_CSS = """
    Overview { width: 2; height: 1fr; }
    """

    @dataclass
    class CellChosen(Message):
        """The report that a cell was clicked; ``index`` is the span that it leads to."""

        index: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trace: Trace | None = None
        self.background = BackgroundIndex()
        self._marks = NO_MARKS
        self._matches: Sequence[int] = ()
        self._look_here: Sequence[int] = ()
        self.cells: list[Cell] = []
        """The cells as computed last."""
        self._cursor = 0
        self._on_screen = (0, 0)
        self._lines: list[Strip] = []

    @property
    def totals(self) -> SpanTotals:
        """The kinds and errors of the spans indexed so far."""
        return self.background.totals

    @property
    def complete(self) -> bool:
        """True if all spans that the trace has so far are indexed."""
        return self.trace is None or self.totals.seen >= len(self.trace)

    def show_trace(self, trace: Trace, background: BackgroundIndex) -> None:
        """Show another run.

        Args:
            trace: The trace.
            background: Its index.
        """
        self.trace = trace
        self.background = background
        self._marks = NO_MARKS
        self._matches = ()
        self._look_here = ()
        self._cursor = 0
        self._on_screen = (0, 0)
        self.show_new_spans()

    def show_new_spans(self) -> None:
        """Show what the index has gained."""
        self._compute()

    def show_marks(self, marks: GutterMarks) -> None:
        """Show the labels and suggestions of the run."""
        self._marks = marks
        self._compute()

    def show_matches(self, matches: Sequence[int]) -> None:
        """Show the spans that match a search, given in order."""
        if matches or self._matches:
            self._matches = matches
            self._compute()

    def show_look_here(self, indices: Sequence[int]) -> None:
        """Mark the spans that probably contain the decisive step, given in order."""
        if indices != self._look_here:
            self._look_here = indices
            self._draw()

    def show_position(self, cursor: int, first: int, last: int) -> None:
        """Show the cursor and the visible part of the timeline.

        Args:
            cursor: The span under the cursor.
            first: The first visible span.
            last: The last visible span.
        """
        old_cursor, old_visible = self._position_cells()
        self._cursor = cursor
        self._on_screen = (first, last)
        new_cursor, new_visible = self._position_cells()
        if (old_cursor, old_visible) != (new_cursor, new_visible):
            self._draw({old_cursor, new_cursor} | set(old_visible) ^ set(new_visible))

    def _position_cells(self) -> tuple[int, range]:
        """Return the cell of the cursor, and those of the visible spans."""
        height = self.size.height
        total = self._total
        cursor, first, last = (
            cell_of(index, height, total) for index in (self._cursor, *self._on_screen)
        )
        return cursor, range(first, last + 1)

    def on_resize(self, event: events.Resize) -> None:
        """Divide the run among another number of cells."""
        self._compute()
        self.refresh()

    @property
    def _total(self) -> int:
        """The number of spans of the run, including those that an earlier reading found."""
        trace = self.trace
        return 0 if trace is None else max(len(trace), trace.loaded.spans)

    def _compute(self) -> None:
        self.cells = self._cells_now.compute(self.size.height, self._total)
        self._draw()

    @property
    def _cells_now(self) -> Cells:
        return Cells(self.totals, self._marks, self._matches)

    def _draw(self, numbers: Container[int] | None = None) -> None:
        """Draw the changed cells, or only those of ``numbers`` that have changed."""
        old = self._lines
        cursor, on_screen = self._position_cells()
        line = cache(self._line)  # most cells look like others
        self._lines = [
            line(
                cell.content,
                cell.errors,
                number == cursor,
                number in on_screen,
                any_within(self._look_here, cell.first, cell.end),
            )
            if numbers is None or number in numbers or number >= len(old)
            else old[number]
            for number, cell in enumerate(self.cells)
        ]
        for y in range(max(len(old), len(self._lines))):
            old_line = list(old[y]) if y < len(old) else []
            new_line = list(self._lines[y]) if y < len(self._lines) else []
            if old_line != new_line:
                # If only the left column changes, the right one need not be sent.
                only_edge = len(old_line) == len(new_line) == 2 and old_line[1] == new_line[1]
                self.refresh(Region(0, y, 1 if only_edge else self.size.width, 1))

    def _line(
        self, content: CellContent, errors: bool, at_cursor: bool, visible: bool, look_here: bool
    ) -> Strip:
        """Draw a cell with its edge; a single column has no edge for the spans to look at."""
        base = self.rich_style
        style = base + self._part(content.value)
        if errors and content in KINDS:
            style += self._part("errors")
        glyph = GLYPHS[content]
        if self.size.width == 1:
            if visible:
                style += self._part("here")
            if at_cursor:
                style += Style(reverse=True)
            return Strip([Segment(glyph, style)])
        edge = " "
        if at_cursor:
            edge = CURSOR
        elif visible:
            edge = BOTH if look_here else ON_SCREEN
        elif look_here:
            edge = LOOK_HERE
        edge_style = base + self._part("cursor" if at_cursor else "edge")
        return Strip([Segment(edge, edge_style), Segment(glyph, style)])

    def render_line(self, y: int) -> Strip:
        """Draw one cell."""
        if y < len(self._lines):
            return self._lines[y].adjust_cell_length(self.size.width, self.rich_style)
        return Strip.blank(self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Go to the span that the clicked cell shows."""
        event.stop()
        if 0 <= event.y < len(self.cells):
            index = self._cells_now.span_to_show(self.cells[event.y])
            self.post_message(self.CellChosen(index))
