"""The whole run beside the timeline, in the height of the screen."""

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
from mast_tui.ui.trace_view.gutter import NO_MARKS, GutterMark, GutterMarks, MarkKind

MARKS: Final[Mapping[CellContent, MarkKind]] = {
    CellContent.OWN: MarkKind.OWN,
    CellContent.SUGGESTION: MarkKind.SUGGESTION,
}
"""The marks that are shown, the weightiest first."""

FEW: Final = 0.25
"""Errors in no larger a share of the cells are few, and each of these cells shows them."""

STANDS_OUT: Final = 1.5
"""Where they are many, those cells show them whose share of errors is so many times the run's."""


class Cell(NamedTuple):
    """A stretch of spans, ``first`` to ``end`` (exclusive), and what matters most there.

    ``errors`` says that some of them are errors, whatever the cell shows.
    """

    first: int
    end: int
    matter: CellContent
    errors: bool = False


def stretch(cell: int, height: int, total: int) -> tuple[int, int]:
    """The spans of a cell, where ``total`` spans fill ``height`` cells; the second is exclusive.

    Where there are more cells than spans each span has one, and the cells below have none.
    """
    if total <= height:
        return min(cell, total), min(cell + 1, total)
    return cell * total // height, (cell + 1) * total // height


def cell_of(index: int, height: int, total: int) -> int:
    """The cell in which a span is."""
    if total <= height:
        return index
    return ((index + 1) * height - 1) // total


class Cells:
    """The run in at most ``height`` cells; ``matches`` are indices in order.

    Working them out costs no more for a long run than for a short one, but for its marks.
    """

    def __init__(self, totals: SpanTotals, marks: GutterMarks, matches: Sequence[int] = ()) -> None:
        self._totals = totals
        self._marks = marks
        self._matches = matches

    def of(self, height: int, total: int) -> list[Cell]:
        """The cells from the top; ``total`` is how many spans the run has."""
        height = min(height, total)
        seen = self._totals.seen
        stretches = [stretch(number, height, total) for number in range(height)]
        errors = [self._totals.errors_in(first, end) for first, end in stretches]
        each = total <= height
        few = sum(map(bool, errors)) <= FEW * height
        least = STANDS_OUT * sum(errors) / max(1, seen)
        cells = []
        for (first, end), count in zip(stretches, errors, strict=True):
            looked_at = min(end, seen) - first
            shown = count > 0 and (each or few or count >= least * looked_at)
            cells.append(Cell(first, end, self._matter(first, end, shown), count > 0))
        return cells

    def _matter(self, first: int, end: int, errors: bool) -> CellContent:
        if _any_within(self._matches, first, end):
            return CellContent.MATCH
        begins = _matter_of(mark for _, mark in self._marks.beginning_in(first, end))
        if begins is not None:
            return begins
        # What goes on from further up must not hide what is here.
        if errors:
            return CellContent.ERROR
        goes_on = _matter_of(self._marks.within(first, end))
        if goes_on is not None:
            return goes_on
        if first >= self._totals.seen:
            return CellContent.UNSEEN
        counts = self._totals.kinds_in(first, end)
        most = max(counts)
        return KINDS[counts.index(most)] if most else CellContent.UNSEEN

    def place_in(self, cell: Cell) -> int:
        """The first span of a cell that is what the cell shows; for a kind, and for a mark that
        goes on from further up, the cell's first."""
        if cell.matter is CellContent.ERROR:
            errors = self._totals.errors
            return errors[bisect_left(errors, cell.first)]
        if cell.matter is CellContent.MATCH:
            return self._matches[bisect_left(self._matches, cell.first)]
        if cell.matter in MARKS:
            begins = self._marks.beginning_in(cell.first, cell.end)
            places = (index for index, mark in begins if MARKS[cell.matter] is mark.kind)
            return min(places, default=cell.first)
        return cell.first


def _matter_of(marks: Iterable[GutterMark]) -> CellContent | None:
    """What matters most of these marks."""
    kinds = {mark.kind for mark in marks}
    return next((matter for matter, kind in MARKS.items() if kind in kinds), None)


def _any_within(indices: Sequence[int], first: int, end: int) -> bool:
    place = bisect_left(indices, first)
    return place < len(indices) and indices[place] < end


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


class Overview(RenderCache):
    """A column of cells, each for a stretch of spans, with the cursor and what is on screen.

    Two cells wide the left one marks the cursor and what the timeline has on screen; one cell
    wide both show in the style of the only one. A kind is underlined where there are errors too.
    """

    css_prefix = "overview"
    css_parts = ("cursor", "edge", "here", "errors", *(matter.value for matter in CellContent))

    DEFAULT_CSS = """
    Overview { width: 2; height: 1fr; }
    """

    @dataclass
    class CellChosen(Message):
        """A cell was clicked; ``index`` is the span that it leads to."""

        index: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trace: Trace | None = None
        self.background = BackgroundIndex()
        self._marks = NO_MARKS
        self._matches: Sequence[int] = ()
        self.cells: list[Cell] = []
        """The cells as they were worked out last."""
        self._cursor = 0
        self._on_screen = (0, 0)
        self._lines: list[Strip] = []

    @property
    def totals(self) -> SpanTotals:
        """What the index has counted so far."""
        return self.background.totals

    @property
    def complete(self) -> bool:
        """Whether all spans were looked at that the trace has so far."""
        return self.trace is None or self.totals.seen >= len(self.trace)

    def show_trace(self, trace: Trace, background: BackgroundIndex) -> None:
        """Show another run, as far as ``background`` tells of it."""
        self.trace, self.background = trace, background
        self._marks, self._matches = NO_MARKS, ()
        self._cursor, self._on_screen = 0, (0, 0)
        self.grown()

    def grown(self) -> None:
        """Take in what the index has found meanwhile."""
        self._work_out()

    def show_marks(self, marks: GutterMarks) -> None:
        """Show where there are labels and suggestions."""
        self._marks = marks
        self._work_out()

    def show_matches(self, matches: Sequence[int]) -> None:
        """Show where a search has found something: indices of spans, in order."""
        if matches or self._matches:
            self._matches = matches
            self._work_out()

    def show_place(self, cursor: int, first: int, last: int) -> None:
        """Show where the cursor is, and that ``first`` to ``last`` are on screen."""
        before = self._places()
        self._cursor, self._on_screen = cursor, (first, last)
        now = self._places()
        if before != now:
            (old_cursor, old), (new_cursor, new) = before, now
            self._draw({old_cursor, new_cursor} | set(old) ^ set(new))

    def _places(self) -> tuple[int, range]:
        """The cell of the cursor, and those of what is on screen."""
        height, total = self.size.height, self._total
        cursor, first, last = (
            cell_of(index, height, total) for index in (self._cursor, *self._on_screen)
        )
        return cursor, range(first, last + 1)

    def on_resize(self, event: events.Resize) -> None:
        """Share the run out among another number of cells."""
        self._work_out()
        self.refresh()

    @property
    def _total(self) -> int:
        """How many spans the column stands for: as many as an earlier look has found, if more."""
        trace = self.trace
        return 0 if trace is None else max(len(trace), trace.loaded.spans)

    def _work_out(self) -> None:
        self.cells = self._worked_out.of(self.size.height, self._total)
        self._draw()

    @property
    def _worked_out(self) -> Cells:
        return Cells(self.totals, self._marks, self._matches)

    def _draw(self, numbers: Container[int] | None = None) -> None:
        """Draw the cells that look different now; only these may, where numbers are given."""
        old, (cursor, on_screen) = self._lines, self._places()
        line = cache(self._line)  # most cells look like others
        self._lines = [
            line(cell.matter, cell.errors, number == cursor, number in on_screen)
            if numbers is None or number in numbers or number >= len(old)
            else old[number]
            for number, cell in enumerate(self.cells)
        ]
        for y in range(max(len(old), len(self._lines))):
            before = list(old[y]) if y < len(old) else []
            now = list(self._lines[y]) if y < len(self._lines) else []
            if before != now:
                # Where only the edge is another, what stands right of it need not be sent.
                only_edge = len(before) == len(now) == 2 and before[1] == now[1]
                self.refresh(Region(0, y, 1 if only_edge else self.size.width, 1))

    def _line(self, matter: CellContent, errors: bool, at_cursor: bool, here: bool) -> Strip:
        base = self.rich_style
        style = base + self._part(matter.value)
        if errors and matter in KINDS:
            style += self._part("errors")
        glyph = GLYPHS[matter]
        if self.size.width == 1:
            if here:
                style += self._part("here")
            if at_cursor:
                style += Style(reverse=True)
            return Strip([Segment(glyph, style)])
        edge = CURSOR if at_cursor else ON_SCREEN if here else " "
        edge_style = base + self._part("cursor" if at_cursor else "edge")
        return Strip([Segment(edge, edge_style), Segment(glyph, style)])

    def render_line(self, y: int) -> Strip:
        """One cell of the column."""
        if y < len(self._lines):
            return self._lines[y].adjust_cell_length(self.size.width, self.rich_style)
        return Strip.blank(self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Go to what the clicked cell shows."""
        event.stop()
        if 0 <= event.y < len(self.cells):
            index = self._worked_out.place_in(self.cells[event.y])
            self.post_message(self.CellChosen(index))
