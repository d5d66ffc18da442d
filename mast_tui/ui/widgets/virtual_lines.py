"""A list of lines of any length, of which only those on screen are ever made."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mast_tui.ui.textual_internals import RenderCache

SMALL: Final = 4
"""Lists of no more rows than this show no context beside the cursor."""

AHEAD: Final = 3
"""What part of the screen comes into view when the cursor runs against its edge."""


def row_strip(parts: Iterable[Segment], width: int, style: Style) -> Strip:
    """Return a row of exactly so many cells; one that is cut ends with an ellipsis.

    Args:
        parts: The texts of the row.
        width: The cells of the row.
        style: The style of the ellipsis and of the space after the texts.
    """
    strip = Strip(parts)
    if (
        width > 0
        and strip.cell_length > width
        and strip.text.rstrip() != strip.crop(0, width).text.rstrip()
    ):
        strip = Strip.join([strip.crop(0, width - 1), Strip([Segment("…", style)])])
    return strip.adjust_cell_length(width, style)


class VirtualLines(ScrollView, RenderCache, can_focus=True, inherit_bindings=False):
    """Rows of one cell's height, with a cursor, rendered on demand.

    Subclasses give ``row_count`` and ``render_row``; they call ``rows_changed`` when the number of
    rows or what they show has changed. A cursor move redraws the two rows that it touches.
    """

    BINDINGS: ClassVar[list[BindingType]] = []
    tells_focus: ClassVar[bool] = False
    """Whether the cursor's row looks otherwise where keys do not move it."""
    tells_size: ClassVar[bool] = False
    """Whether something follows its size, and so is told of it by ``Resized``."""

    DEFAULT_CSS = """
    VirtualLines {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        scrollbar-gutter: stable;
    }
    """

    @dataclass
    class OfRow(Message):
        """Something about a row."""

        lines: VirtualLines
        row: int

        @property
        def control(self) -> VirtualLines:
            return self.lines

    class Moved(OfRow):
        """The cursor stands on another row."""

    class Chosen(OfRow):
        """A row was clicked while the cursor stood on it, or chosen by a key."""

    class Resized(Message):
        """The rows have another size; what stands above their columns, or beside them, follows."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.cursor = 0
        self._cache: LRUCache[tuple[int, int], Strip] = LRUCache(512)
        self._area: Size | None = None
        self._area_for: tuple[Size, bool] | None = None

    @property
    @abstractmethod
    def row_count(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def render_row(self, row: int, width: int) -> Strip:
        """The row as a strip of exactly ``width`` cells."""

    def row_style(self, row: int) -> Style:
        """The style of a row that is rendered: another one where the cursor is."""
        at_cursor = row == self.cursor and (self.has_focus or not self.tells_focus)
        return self.rich_style + self._part("cursor") if at_cursor else self.rich_style

    @property
    def lines_area(self) -> Size:
        """How many cells wide the rows are, and how many there is room for.

        Textual works this out anew each time that it is asked, which is for every line.
        """
        asked = (self.outer_size, self.show_vertical_scrollbar)
        # A widget that comes back on screen has its size before it has its place.
        if not self._area or asked != self._area_for:
            self._area, self._area_for = self.scrollable_content_region.size, asked
        return self._area

    @property
    def row_width(self) -> int:
        """How many cells wide a row is; before the first layout, what the screen will leave.

        A list that comes on screen is drawn before it hears of its size.
        """
        bar = self.styles.scrollbar_size_vertical
        return self.scrollable_content_region.width or max(0, self.screen.size.width - bar)

    def notify_style_update(self) -> None:
        """Rows may have other colours, and another border or gutter may leave another room."""
        self._area = None
        self._cache.clear()
        super().notify_style_update()

    def on_mount(self) -> None:
        """Size the scroll bar to the rows that are there."""
        self.rows_changed()

    def on_resize(self, event: events.Resize) -> None:
        """Make the rows anew for another width."""
        self.rows_changed()
        if self.tells_size:
            self.post_message(self.Resized())

    def on_focus(self) -> None:
        """Show that keys move this cursor."""
        if self.tells_focus:
            self.redraw_row(self.cursor)

    def on_blur(self) -> None:
        """Show that keys move another one."""
        if self.tells_focus:
            self.redraw_row(self.cursor)

    def rows_changed(self) -> None:
        """Forget rendered rows and measure anew."""
        self._cache.clear()
        self.virtual_size = Size(self.lines_area.width, self.row_count)
        self.cursor = max(0, min(self.cursor, self.row_count - 1))
        self.refresh()

    def rows_grown(self, old: int) -> None:
        """Rows have come behind the first ``old`` ones, which show what they did."""
        self.virtual_size = Size(self.lines_area.width, self.row_count)
        for row in self.rows_on_screen():
            if row >= old:
                self.redraw_row(row)

    def redraw_where(self, changed: Callable[[int], bool], cells: int | None = None) -> None:
        """Render the rows again that have changed, or only so many of their first cells.

        Only rows on screen are asked for.
        """
        on_screen = self.rows_on_screen()
        for row, width in list(self._cache.keys()):
            if row not in on_screen:
                self._cache.discard((row, width))
        for row in on_screen:
            if changed(row):
                self.redraw_row(row, cells)

    def redraw_row(self, row: int, cells: int | None = None) -> None:
        """Render one row again, where it is on screen; or only so many of its first cells."""
        area = self.lines_area
        self._cache.discard((row, area.width))
        line = row - round(self.scroll_y)
        if 0 <= line < area.height:
            self.refresh(Region(0, line, cells or area.width, 1))

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on ``row`` (clamped) and bring it on screen."""
        if self.row_count == 0:
            return
        row = max(0, min(row, self.row_count - 1))
        old, self.cursor = self.cursor, row
        if row != old:
            self.redraw_row(old)
            self.redraw_row(row)
        self.show_row(row, centre=centre)
        if row != old:
            self.post_message(self.Moved(self, row))

    def show_row(self, row: int, *, centre: bool = False) -> None:
        """Scroll so that ``row`` is on screen, with a line of context where there is room.

        Where that takes scrolling, a third of the screen comes into view beyond the row: one sees
        what follows, and the next keys move the cursor only, which sends a sixth of the bytes.
        """
        height = self.lines_area.height
        if height <= 0:
            return
        top = round(self.scroll_y)
        context, ahead = (1, height // AHEAD) if height > SMALL else (0, 0)
        if centre and not top + context <= row < top + height - context:
            target = row - height // AHEAD
        elif row < top + context:
            target = row - ahead
        elif row > top + height - 1 - context:
            target = row - height + 1 + ahead
        else:
            return
        self.scroll_to(y=max(0, min(target, self.row_count - height)), animate=False, force=True)

    def move_by(self, delta: int) -> None:
        """Move the cursor by ``delta`` rows."""
        self.move_to(self.cursor + delta)

    def move_to_end(self) -> None:
        """Move the cursor to the last row that is known."""
        self.move_to(self.row_count - 1)

    def move_page(self, delta: int) -> None:
        """Move the cursor by ``delta`` screens."""
        self.move_by(delta * max(1, self.lines_area.height - 1))

    def move_half(self, delta: int) -> None:
        """Move the cursor by ``delta`` half screens."""
        self.move_by(delta * max(1, self.lines_area.height // 2))

    def render_line(self, y: int) -> Strip:
        """The strip for line ``y`` of the widget."""
        width = self.lines_area.width
        row = y + round(self.scroll_y)
        if not 0 <= row < self.row_count:
            return Strip.blank(width, self.rich_style)
        strip = self._cache.get((row, width))
        if strip is None:
            strip = self.render_row(row, width)
            self._cache[(row, width)] = strip
        return strip

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row; a click on the cursor's row chooses it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = offset.y + round(self.scroll_y)
        if not 0 <= row < self.row_count:
            return
        if row == self.cursor:
            self.post_message(self.Chosen(self, row))
        else:
            self.move_to(row)

    def rows_on_screen(self) -> range:
        """The rows that are on screen now."""
        top = round(self.scroll_y)
        return range(top, min(self.row_count, top + self.lines_area.height))
