"""Lists of any number of rows, with or without columns; only the visible rows are drawn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Final, Generic, TypeVar

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Static

from mast_tui.columns import ColumnWidth, Row, TableColumn, fit, text_lengths
from mast_tui.ui.textual_internals import RenderCache, SizedScrollView, set_virtual_size_undrawn

SMALL_HEIGHT: Final = 4
"""The largest height at which a list shows no context around the cursor."""

SCROLL_DIVISOR: Final = 3
"""A list scrolls by its height divided by this number when the cursor reaches its edge."""


def row_strip(parts: Iterable[Segment], width: int, style: Style) -> Strip:
    """Return a row of an exact width. Cut text ends with an ellipsis.

    Args:
        parts: The texts of the row.
        width: The cells of the row.
        style: The style of the ellipsis and of the space after the text.
    """
    strip = Strip(parts)
    if width > 0 and strip.cell_length > width:
        visible_text = strip.crop(0, width).text
        if strip.text.rstrip() != visible_text.rstrip():
            strip = Strip.join([strip.crop(0, width - 1), Strip([Segment("…", style)])])
    return strip.adjust_cell_length(width, style)


class VirtualLines(SizedScrollView, RenderCache, can_focus=True, inherit_bindings=False):
    """Rows with a height of one cell and a cursor, drawn on demand.

    Subclasses implement ``row_count`` and ``render_row``, and call ``rows_changed`` when rows have
    changed. A move of the cursor draws only two rows.
    """

    BINDINGS: ClassVar[list[BindingType]] = []
    tells_focus: ClassVar[bool] = False
    """True if the cursor looks different while the list has no focus."""
    tells_size: ClassVar[bool] = False
    """True to post ``Resized`` when the size changes."""

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
    class OfLines(Message):
        """A message of these lines."""

        lines: VirtualLines

        @property
        def control(self) -> VirtualLines:
            return self.lines

    @dataclass
    class Moved(OfLines):
        """The report that the cursor moved to another row."""

        row: int

    @dataclass
    class Chosen(OfLines):
        """The report that the row of the cursor was clicked, or chosen by a key."""

        row: int

    class Resized(Message):
        """The report that the list has another size."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        """Begin with the cursor on the first row."""
        super().__init__(id=id, classes=classes)
        self.cursor = 0
        self._cache: LRUCache[tuple[int, int], Strip] = LRUCache(512)
        self._area: Size | None = None
        """The cached ``lines_area``."""
        self._area_key: tuple[Size, bool] | None = None
        """The size and the visibility of the scroll bar for which ``_area`` was computed."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The number of rows."""

    @abstractmethod
    def render_row(self, row: int, width: int) -> Strip:
        """Draw a row.

        Args:
            row: The row.
            width: The exact width of the result in cells.
        """

    def shows_cursor(self, row: int) -> bool:
        """Check if a row looks like that of the cursor.

        With ``tells_focus`` no row does while the list has no focus.
        """
        return row == self.cursor and (self.has_focus or not self.tells_focus)

    def row_style(self, row: int) -> Style:
        """Return the style of a row; the cursor's row is highlighted."""
        if self.shows_cursor(row):
            return self.rich_style + self._part("cursor")
        return self.rich_style

    @property
    def lines_area(self) -> Size:
        """The width and the number of the visible rows.

        It is cached, because it is read for every line and Textual would compute it each time.
        """
        area_key = (self.outer_size, self.show_vertical_scrollbar)
        # A widget that appears again has a size before it has a position. Until then its area is
        # empty.
        if not self._area or area_key != self._area_key:
            self._area = self.scrollable_content_region.size
            self._area_key = area_key
        return self._area

    @property
    def row_width(self) -> int:
        """The width of a row.

        Before the list receives its first size, this is the expected width: that of the screen
        without the scroll bar.
        """
        bar_width = self.styles.scrollbar_size_vertical
        expected_width = max(0, self.screen.size.width - bar_width)
        return self.scrollable_content_region.width or expected_width

    def notify_style_update(self) -> None:
        """Forget drawn rows and sizes, because they depend on the styles."""
        self._area = None
        self._cache.clear()
        super().notify_style_update()

    def on_mount(self) -> None:
        """Adapt the scroll bar to the rows."""
        self.rows_changed()

    def on_resize(self, event: events.Resize) -> None:
        """Draw the rows for the new width."""
        self.rows_changed()
        if self.tells_size:
            self.post_message(self.Resized())

    def on_focus(self) -> None:
        """Show that keys move this cursor."""
        if self.tells_focus:
            self.redraw_rows(self.cursor)

    def on_blur(self) -> None:
        """Show that keys do not move this cursor any more."""
        if self.tells_focus:
            self.redraw_rows(self.cursor)

    def rows_changed(self) -> None:
        """Forget drawn rows and measure again."""
        self._cache.clear()
        self.virtual_size = Size(self.lines_area.width, self.row_count)
        self.cursor = max(0, min(self.cursor, self.row_count - 1))
        self.refresh()

    def rows_grown(self, previous_count: int) -> None:
        """Draw the rows that were added after the first ``previous_count`` rows."""
        size = Size(self.lines_area.width, self.row_count)
        if self.show_vertical_scrollbar:
            set_virtual_size_undrawn(self, size)  # only the scroll bar depends on it
        else:
            self.virtual_size = size
        self.redraw_rows(*(row for row in self.rows_on_screen() if row >= previous_count))

    def redraw_where(self, has_changed: Callable[[int], bool], cells: int | None = None) -> None:
        """Draw the visible rows that have changed, and forget the invisible rows.

        Args:
            has_changed: Checks if a visible row has changed.
            cells: The number of cells to draw from the left; None for the whole row.
        """
        visible_rows = self.rows_on_screen()
        for row, width in list(self._cache.keys()):
            if row not in visible_rows:
                self._cache.discard((row, width))
        self.redraw_rows(*filter(has_changed, visible_rows), cells=cells)

    def redraw_rows(self, *rows: int, cells: int | None = None) -> None:
        """Draw rows again, as far as they are visible.

        Args:
            rows: The rows.
            cells: The number of cells to draw from the left; None for whole rows.
        """
        area = self.lines_area
        for row in rows:
            self._cache.discard((row, area.width))
        # Each call of ``refresh`` costs about as much as drawing a row.
        lines = [row - round(self.scroll_y) for row in rows]
        regions = [Region(0, y, cells or area.width, 1) for y in lines if 0 <= y < area.height]
        if regions:
            self.refresh(*regions)

    def move_to(self, row: int, *, in_upper_third: bool = False) -> None:
        """Put the cursor on a row and make it visible.

        Args:
            row: The row; it is limited to the rows that exist.
            in_upper_third: True to put a row that was not visible a third below the top.
        """
        if self.row_count == 0:
            return
        row = max(0, min(row, self.row_count - 1))
        previous_row = self.cursor
        self.cursor = row
        if row != previous_row:
            self.redraw_rows(previous_row, row)
        self.show_row(row, in_upper_third=in_upper_third)
        if row != previous_row:
            self.post_message(self.Moved(self, row))

    def show_row(self, row: int, *, in_upper_third: bool = False) -> None:
        """Scroll so that a row is visible, with one row of context.

        Scrolling also shows a third of the height beyond the row, so that the next moves need no
        scrolling. That saves bytes sent to the terminal.

        Args:
            row: The row.
            in_upper_third: True to put a row that was not visible a third below the top.
        """
        height = self.lines_area.height
        if height <= 0:
            return
        top = round(self.scroll_y)
        is_small = height <= SMALL_HEIGHT
        context = 0 if is_small else 1
        rows_ahead = 0 if is_small else height // SCROLL_DIVISOR
        is_above = row < top + context
        is_below = row >= top + height - context
        if not is_above and not is_below:
            return
        if in_upper_third:
            new_top = row - height // SCROLL_DIVISOR
        elif is_above:
            new_top = row - rows_ahead
        else:
            new_top = row - height + 1 + rows_ahead
        self.scroll_to(y=max(0, min(new_top, self.row_count - height)), animate=False, force=True)

    def move_by(self, delta: int) -> None:
        """Move the cursor by ``delta`` rows."""
        self.move_to(self.cursor + delta)

    def move_to_end(self) -> None:
        """Move the cursor to the last row."""
        self.move_to(self.row_count - 1)

    def move_page(self, delta: int) -> None:
        """Move the cursor by ``delta`` screens."""
        self.move_by(delta * max(1, self.lines_area.height - 1))

    def move_half(self, delta: int) -> None:
        """Move the cursor by ``delta`` half screens."""
        self.move_by(delta * max(1, self.lines_area.height // 2))

    def render_line(self, y: int) -> Strip:
        """Draw line ``y`` of the widget."""
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
        """Move the cursor to the clicked row, or choose the row if the cursor is on it."""
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
        """Return the visible rows."""
        top = round(self.scroll_y)
        return range(top, min(self.row_count, top + self.lines_area.height))


Item = TypeVar("Item")


class StyledRow(Struct, Generic[Item], frozen=True):
    """A row of ``StyledRows``.

    Attributes:
        parts: The texts with the names of their styles.
        item: The item that the row shows; None for a row that never looks like that of the cursor.
    """

    parts: Sequence[tuple[str, str]]
    item: Item | None = None


class StyledRows(VirtualLines, Generic[Item]):
    """Rows of texts. A subclass makes them anew for each width."""

    edge_part: ClassVar[str]
    """The style of the sign at the row of the cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without rows."""
        super().__init__(id=id)
        self.rows: Sequence[StyledRow[Item]] = ()

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def item(self) -> Item | None:
        """The item of the row under the cursor, or None."""
        return self.rows[self.cursor].item if self.rows else None

    def shows_cursor(self, row: int) -> bool:
        """Check if a row looks like that of the cursor; False for a row without an item."""
        return self.rows[row].item is not None and super().shows_cursor(row)

    def render_row(self, row: int, width: int) -> Strip:
        """Draw the texts of a row, after the sign of the cursor or a blank.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        base_style = self.row_style(row)
        edge = "▌" if self.shows_cursor(row) else " "
        segments = [
            Segment(text, base_style + self._part(part))
            for text, part in ((edge, self.edge_part), *self.rows[row].parts)
        ]
        return Strip(segments).adjust_cell_length(width, base_style)


LEAST_NAME: Final = 12
"""The least cells of a column of names."""

ANY_FILLED: Final = 0.0
"""The share of filled rows from which a column is shown. At 0, one filled row is enough."""

EMPTY_FIGURES: Final = frozenset(("0", "—", "hidden"))
"""The texts of figures without information."""


def name_width(drop_rank: float = inf) -> ColumnWidth:
    """Return the width of a column of names, which are cut before any column is dropped.

    Args:
        drop_rank: The rank at which the column is dropped on a short line.
    """
    return ColumnWidth(drop_rank, cuts=((0, LEAST_NAME),), filled=ANY_FILLED)


def figure_column(
    title: str,
    cell: Callable[[Row], str],
    drop_rank: float,
    style: str = "figure",
) -> TableColumn[Row]:
    """Return a column of figures. Figures without information are drawn quietly.

    Args:
        title: The heading.
        cell: Returns the figure of a row.
        drop_rank: The rank at which the column is dropped on a short line.
        style: The style of figures with information.
    """
    return TableColumn(
        title,
        cell,
        lambda row: "quiet" if cell(row) in EMPTY_FIGURES else style,
        ColumnWidth(drop_rank, filled=ANY_FILLED),
        right=True,
    )


def sign_column(
    cell: Callable[[Row], str], style: str | Callable[[Row], str] = "quiet"
) -> TableColumn[Row]:
    """Return the column of the signs before the rows.

    Args:
        cell: Returns the sign of a row, one cell wide.
        style: The style of the signs.
    """
    return TableColumn(" ", cell, style, ColumnWidth(gap=1))


class ColumnTable(VirtualLines, Generic[Row]):
    """Rows in columns, with a cursor.

    The screen places ``heading_line`` above them.
    """

    css_prefix = "column-table"
    tells_focus = True
    css_parts: ClassVar[tuple[str, ...]] = ("cursor", "name", "quiet", "figure", "total", "doubt")

    def __init__(
        self,
        key: Callable[[Row], object],
        columns: Sequence[TableColumn[Row]] = (),
        *,
        id: str | None = None,
    ) -> None:
        """Begin without rows.

        Args:
            key: Returns the identity of a row, by which the cursor finds it again.
            columns: The columns, which may be set later.
            id: The widget's id.
        """
        super().__init__(id=id)
        self.heading_line = Static(id=f"{id}-heading", classes="heading", markup=False)
        self.rows: Sequence[Row] = ()
        self.columns = columns
        self._key = key
        self._fitted_columns: Sequence[tuple[TableColumn[Row], int]] = ()
        """The visible columns with their cells."""
        self._fitted_width = 0
        """The width of the list for which the columns were fitted."""

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def row(self) -> Row | None:
        """The row under the cursor, or None."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def show(self, rows: Sequence[Row]) -> None:
        """Replace the rows. The cursor stays on its row, or goes to the first row."""
        current_key = None if self.row is None else self._key(self.row)
        self.rows = rows
        positions = (position for position, row in enumerate(rows) if self._key(row) == current_key)
        self.cursor = next(positions, 0)
        self.rows_changed()
        self.show_row(self.cursor)

    def on_resize(self, event: events.Resize) -> None:
        """Keep the cursor on screen."""
        event.prevent_default()  # so that the list has its new size before the cursor is shown
        super().on_resize(event)
        self.show_row(self.cursor)

    def rows_changed(self) -> None:
        """Fit the columns to the rows."""
        self._fit_columns(self.row_width)
        self.heading_line.update(Content(self.heading()))
        super().rows_changed()

    def lengths(self) -> Sequence[Sequence[int]]:
        """Return the cells of the texts that determine the widths, by row and column."""
        return [text_lengths(self.columns, row) for row in self.rows]

    def _fit_columns(self, width: int) -> None:
        self._fitted_width = width
        cells_by_index = fit(self.columns, self.lengths(), width - 1)
        self._fitted_columns = [
            (self.columns[index], cells) for index, cells in cells_by_index.items()
        ]

    def heading(self) -> str:
        """Return the headings of the columns in one line."""
        headings = [
            column.heading(cells) + " " * column.width.gap for column, cells in self._fitted_columns
        ]
        return f" {''.join(headings)}".rstrip()

    def render_row(self, row: int, width: int) -> Strip:
        """Draw one row.

        Args:
            row: The number of the row.
            width: The width of the row in cells.
        """
        if width != self._fitted_width:
            self._fit_columns(width)
        record = self.rows[row]
        base_style = self.row_style(row)
        segments = [Segment("▌" if row == self.cursor else " ", base_style + self._part("name"))]
        for column, cells in self._fitted_columns:
            style = base_style + self._part(column.style_of(record))
            segments.append(Segment(column.text(record, cells), style))
            segments.append(Segment(" " * column.width.gap, base_style))
        # The last segment is the gap after the last column.
        return row_strip(segments[:-1], width, base_style)
