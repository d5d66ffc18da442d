"""The whole text of one span, wrapped, of which only what is on screen is ever made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mast_tui.ui.text.layout import UNWRAPPED, Row, ShownText, TextLayout
from mast_tui.ui.textual_internals import (
    set_virtual_size_undrawn,
    show_titles_undrawn,
    titles_of,
)
from mast_tui.ui.widgets.virtual_lines import VirtualLines

SIDE_CELLS: Final = 8
"""How far a key scrolls to the side."""

TITLE_FRAME: Final = 5
"""Cells of a border's line before and behind its title that go with it."""


@dataclass(frozen=True, slots=True)
class Highlight:
    """A part of the text in another style; offsets are code points, ``end`` exclusive."""

    start: int
    end: int
    style: str


class SpanView(VirtualLines):
    """The text of a span. Highlights are drawn in order, later ones over earlier ones.

    With ``sets_out_json`` a text that is JSON is shown set out in lines. All offsets that are
    taken and given are those of the text itself, however it is shown.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "span-view--evidence",
        "span-view--own",
        "span-view--match",
        "span-view--selection",
        "span-view--empty",
    }

    class Quoted(Message):
        """A part of the text was marked with the mouse."""

        def __init__(self, view: SpanView, start: int, end: int) -> None:
            super().__init__()
            self.view = view
            self.start = start
            self.end = end

        @property
        def control(self) -> SpanView:
            return self.view

    def __init__(
        self,
        *,
        id: str | None = None,
        classes: str | None = None,
        sets_out_json: bool = False,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._sets_out_json = sets_out_json
        self._shown = ShownText("", set_out=False)
        self.text = ""
        self.empty = ""
        self.highlights: Sequence[Highlight] = ()
        self.wrapped = True
        self._layout = TextLayout("", 20)
        self._top = 0
        self._shift = 0
        self._drag_from: int | None = None

    @property
    def row_count(self) -> int:
        """How many rows there are; an estimate while not all of a long text was laid out."""
        return self._layout.rows

    def show_text(
        self, text: str, highlights: Sequence[Highlight] = (), *, empty: str = ""
    ) -> None:
        """Show another text from its beginning, or from the first highlight.

        ``empty`` is what to say where the text is empty. Only lines that look different then are
        sent to the terminal.
        """
        before = self._lines_on_screen()
        self.text = text
        self.empty = empty
        self.highlights = highlights
        self._top = self._shift = 0
        self._shown = ShownText(text, set_out=self._sets_out_json)
        self._lay_out()
        if highlights:
            self.reveal(highlights[0].start, highlights[0].end)
        self._redraw_changed(before)

    def show_highlights(self, highlights: Sequence[Highlight]) -> None:
        """Change what is highlighted, without moving."""
        if list(highlights) == list(self.highlights):
            return
        before = self._lines_on_screen()
        self.highlights = highlights
        self._cache.clear()
        self._redraw_changed(before)

    def show_titles(self, title: Text | None, subtitle: Text | None = None) -> None:
        """Name what is shown in the border; of the box only the border's lines are drawn anew."""
        top = None if title is None else Content.from_rich_text(title)
        bottom = None if subtitle is None else Content.from_rich_text(subtitle)
        edge = self.gutter
        # Textual's own setter draws the whole box anew.
        old_top, old_bottom = titles_of(self)
        if top != old_top:
            self._redraw_edge(-edge.top, self.styles.border_title_align, old_top, top)
        if bottom != old_bottom:
            below = self.outer_size.height - edge.top - 1
            self._redraw_edge(below, self.styles.border_subtitle_align, old_bottom, bottom)
        show_titles_undrawn(self, top, bottom)

    def _redraw_edge(self, y: int, aligned: str, old: Content | None, new: Content | None) -> None:
        """Draw a line of the border; on the left side as far as a title goes, or went."""
        longest = max(0 if text is None else text.cell_length for text in (old, new))
        width = self.outer_size.width
        if aligned == "left":
            width = min(width, longest + TITLE_FRAME)
        self.refresh(Region(-self.gutter.left, y, width, 1))

    def _lines_on_screen(self) -> list[Strip]:
        return [self.render_line(y) for y in range(self.lines_area.height)]

    def _redraw_changed(self, before: Sequence[Strip]) -> None:
        """Draw the lines that look different from ``before``."""
        now = self._lines_on_screen()
        if len(now) != len(before):
            self.refresh()
            return
        width = self.lines_area.width
        for y, (old, new) in enumerate(zip(before, now, strict=True)):
            if old != new:
                self.refresh(Region(0, y, width, 1))

    def toggle_raw(self) -> bool:
        """Show JSON set out in lines, or as it is; False where the text cannot be set out."""
        first = self.first_offset_on_screen
        other = ShownText(self.text, set_out=self.raw)
        if self.raw and other.pretty is None:
            return False
        self._shown, self._sets_out_json = other, other.pretty is not None
        self._top = self._shift = 0
        self._lay_out()
        self._shown.set_out_until(self._layout, first)
        self._top = self._shown.to_shown(first) if first else 0
        self._cache.clear()
        self._keep_place()
        self.refresh()
        return True

    @property
    def raw(self) -> bool:
        """Whether the text is shown as it is."""
        return self._shown.pretty is None

    def reveal(self, start: int, end: int) -> None:
        """Scroll so that this part of the text is on screen."""
        layout = self._layout
        if self._shown.set_out_until(layout, end):
            self._cache.clear()
        start, end = self._shown.range_to_shown(start, end)
        ends = (start, max(start, end - 1))
        for offset in ends:
            layout.row_of(offset)
        self._keep_place()
        first, last = (layout.row_of(offset) for offset in ends)
        height, top = self._height, round(self.scroll_y)
        if not (top <= first and last < top + height):
            self._go(layout.step(start, -(height // 4)))
        if not self.wrapped:
            self._reveal_sideways(start, end)

    def _reveal_sideways(self, start: int, end: int) -> None:
        row = self._layout.row_at(start)
        part = row.slice_of(start, min(end, row.end))
        if part is not None:
            left, right = (cell_len(row.shown[:place]) for place in part)
            if left < self._shift or right > self._shift + self._text_width:
                self._scroll_sideways(left - self._text_width // 4)

    def toggle_wrap(self) -> None:
        """Break long lines at the width of the view, or let them run on to the side."""
        self.wrapped = not self.wrapped
        self._shift = 0
        self.rows_changed()

    def move_sideways(self, step: int) -> bool:
        """Scroll to the right (negative: to the left) where lines run on; False elsewhere."""
        if self.wrapped:
            return False
        longest = max(cell_len(self._layout.row(row).shown) for row in self.rows_on_screen())
        most = max(0, longest - self._text_width)
        self._scroll_sideways(min(self._shift + step * SIDE_CELLS, max(most, self._shift)))
        return True

    def _scroll_sideways(self, shift: int) -> None:
        shift = max(0, shift)
        if shift != self._shift:
            before = self._lines_on_screen()
            self._shift = shift
            self._cache.clear()
            self._redraw_changed(before)

    def rows_changed(self) -> None:
        """Lay the text out anew where the width has changed; the first row stays the first."""
        old = self.virtual_size
        if self.is_mounted:
            if self._layout.width != self._width:
                self._lay_out()
            else:
                self._keep_place()
        super().rows_changed()
        if self.virtual_size != old and self.styles.auto_dimensions:
            self.refresh(layout=True)

    @property
    def _text_width(self) -> int:
        return max(4, self.lines_area.width - 1)

    @property
    def _width(self) -> int:
        return self._text_width if self.wrapped else UNWRAPPED

    @property
    def _height(self) -> int:
        return max(1, self.lines_area.height)

    def _lay_out(self) -> None:
        self._layout = TextLayout(self._shown.readable, self._width)
        self._cache.clear()
        self._keep_place()
        if self._shown.is_counted(self._layout):
            self.call_later(self._count_on, self._layout)

    def _count_on(self, layout: TextLayout) -> None:
        """Work out some more of a text, so that the number of its rows becomes exact."""
        if layout is self._layout and self.is_mounted and self._shown.is_counted(layout):
            self._shown.count_on(layout)
            self._cache.clear()
            self._keep_place()
            self.call_later(self._count_on, layout)

    def _keep_place(self) -> None:
        """Work out what is on screen, and give the row at the top the number that it has now.

        Nothing is drawn: what is on screen stays the same.
        """
        layout = self._layout
        if self._shown.set_out_on(layout, self._top, 2 * self._height):
            self._cache.clear()
        bottom = layout.step(self._top, self._height - 1)
        # Near its end the text stays at the lower edge.
        self._top = layout.step(bottom, 1 - self._height)
        number = layout.row_of(self._top)
        # Setting these as usual would draw and lay out the screen anew.
        size = Size(self.lines_area.width, self.row_count)
        if size != self.virtual_size:
            set_virtual_size_undrawn(self, size)
        if number != self.scroll_y:
            self._cache.clear()
            self.set_reactive(Widget.scroll_y, float(number))
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.position = number
        self.set_reactive(Widget.scroll_target_y, float(number))

    def _go(self, offset: int) -> None:
        """Put the row of this code point at the top, and draw what has changed."""
        before = self._lines_on_screen()
        self._place(offset)
        self._redraw_changed(before)

    def _place(self, offset: int) -> None:
        self._top = self._layout.step(offset, 0)
        self._cache.clear()
        self._keep_place()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the wheel and the scroll bar."""
        row, was = round(new_value), round(old_value)
        if row != was and self.is_mounted:
            near = abs(row - was) <= self._height
            layout = self._layout
            self._place(layout.step(self._top, row - was) if near else layout.row(row).start)
        super().watch_scroll_y(old_value, self.scroll_y)

    def move_by(self, delta: int) -> None:
        """Scroll by ``delta`` rows; a text has no row cursor."""
        self._go(self._layout.step(self._top, delta))

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Scroll to ``row``; to the last one or beyond means the end of the text."""
        at_end = row >= self.row_count - 1
        self._go(len(self._shown.readable) if at_end else self._layout.row(max(0, row)).start)

    def move_page(self, delta: int) -> None:
        """Scroll by ``delta`` screens, keeping one row of what was there."""
        self.move_by(delta * max(1, self._height - 1))

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines for this width: the first frame is drawn before one hears of any size."""
        if self._layout.width != self._width:
            rows = self.row_count
            self._lay_out()
            if rows != self.row_count and self.styles.auto_dimensions:
                self.call_later(self.refresh, layout=True)
        return super().render_lines(crop)

    def render_row(self, row: int, width: int) -> Strip:
        """One row of the text with its highlights."""
        base = self.rich_style
        if not self.text:
            style = base + self.get_component_rich_style("span-view--empty", partial=True)
            return Strip([Segment(f" {self.empty}", style)]).adjust_cell_length(width, base)
        strip = Strip(self._segments(self._layout.row(row), base))
        if self._shift:
            strip = strip.crop(self._shift)
        strip = strip.adjust_cell_length(width - 1, base)
        return Strip([Segment(" ", base), *strip], width)

    def _segments(self, row: Row, base: Style) -> list[Segment]:
        styles = [base] * len(row.shown)
        touched = False
        for highlight in self.highlights:
            part = row.slice_of(*self._shown.range_to_shown(highlight.start, highlight.end))
            if part is None:
                continue
            touched = True
            style = base + self.get_component_rich_style(
                f"span-view--{highlight.style}", partial=True
            )
            styles[part[0] : part[1]] = [style] * (part[1] - part[0])
        if not touched:
            return [Segment(row.shown, base)]
        segments = []
        start = 0
        for at in range(1, len(row.shown) + 1):
            if at == len(row.shown) or styles[at] is not styles[start]:
                segments.append(Segment(row.shown[start:at], styles[start]))
                start = at
        return segments

    def offset_at(self, x: int, y: int) -> int | None:
        """The code point of the text at a cell of the widget, or None below the text."""
        row = y + round(self.scroll_y)
        if not self.text or not 0 <= row < self.row_count:
            return None
        found = self._layout.row(row)
        column = found_column(found.shown, x - 1 + self._shift)
        return self._shown.to_source(found.offset_at(column))

    @property
    def first_offset_on_screen(self) -> int:
        """The first code point of the text that is on screen."""
        return self._shown.to_source(self._top)

    def vertical_neighbour(self, offset: int, rows: int) -> int:
        """The code point ``rows`` further down (negative: up), near the same column."""
        offset = self._shown.to_shown(offset)
        column = offset - self._layout.step(offset, 0)
        found = self._layout.row_at(self._layout.step(offset, rows))
        return self._shown.to_source(min(found.start + column, max(found.start, found.end - 1)))

    def on_click(self, event: events.Click) -> None:
        """A click has no row to choose here."""
        event.stop()
        event.prevent_default()  # the handler of lists would run as well, and scroll

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to mark a quote."""
        offset = event.get_content_offset(self)
        self._drag_from = None if offset is None else self.offset_at(offset.x, offset.y)
        if self._drag_from is not None:
            self.capture_mouse()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End the quote that was marked with the mouse."""
        self.release_mouse()
        start, self._drag_from = self._drag_from, None
        offset = event.get_content_offset(self)
        if start is None or offset is None:
            return
        end = self.offset_at(offset.x, offset.y)
        if end is not None and end != start:
            self.post_message(self.Quoted(self, min(start, end), max(start, end) + 1))


def found_column(shown: str, cell: int) -> int:
    """The code point of a shown line that covers this cell."""
    column = 0
    used = 0
    for column, char in enumerate(shown):
        used += cell_len(char)
        if used > cell:
            return column
    return column
