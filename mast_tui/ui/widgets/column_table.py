"""A table of plain cells: on narrow screens some columns shrink, and then some give way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from mast_tui.ui.widgets.virtual_lines import VirtualLines, row_strip
from mast_tui.ui.wording import shortened

GAP: Final = 2
LEAD: Final = 3
"""Cells before the first column: cursor and glyph."""

LEAST_NAME: Final = 12
"""Cells that a column which shrinks keeps."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``keeps`` orders what stays on a narrow screen: the least goes first.

    ``figure`` aligns it to the right; ``shrinks`` says that its texts may be cut for others.
    """

    name: str
    title: str
    figure: bool = False
    keeps: int = 100
    shrinks: bool = False


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: the ``id`` of what it is about, its cells by column, and their styles.

    Cells are fit for display. ``glyph`` is the state's sign; a style is a name without the
    table's prefix, ``figure`` where none is given.
    """

    id: str
    cells: Mapping[str, str]
    glyph: str = " "
    styles: Mapping[str, str] = field(default_factory=dict)


class ColumnTable(VirtualLines):
    """Rows of cells with a cursor. The titles, ``heading``, stand in a line of their own above,
    which ``Fitted`` is for."""

    css_prefix = "column-table"
    tells_focus = True
    css_parts = ("cursor", "glyph", "name", "quiet", "figure", "total", "doubt")

    @dataclass
    class Fitted(Message):
        """The columns have other widths now."""

        table: ColumnTable

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[TableRow] = ()
        self._columns = tuple(columns)
        self._shown: tuple[Column, ...] = tuple(columns)
        self._widths: dict[str, int] = {}
        self._gap = GAP
        self._fitted_width = 0

    @property
    def row_count(self) -> int:
        """The rows."""
        return len(self.rows)

    @property
    def row(self) -> TableRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def show(self, rows: Sequence[TableRow], columns: Sequence[Column] | None = None) -> None:
        """Show other rows; the cursor stays on its row where it is still there."""
        current = self.row.id if self.row else None
        if columns is not None:
            self._columns = tuple(columns)
        self.rows = rows
        self.cursor = next((i for i, row in enumerate(rows) if row.id == current), 0)
        self.rows_changed()
        self.show_row(self.cursor)

    def rows_changed(self) -> None:
        """Fit the columns anew."""
        self._fit(self.row_width)
        self.post_message(self.Fitted(self))
        super().rows_changed()

    def _fit(self, width: int) -> None:
        """Give columns what they need; where that is too much, one shrinks, then some go."""
        self._fitted_width = width
        filled = [c for c in self._columns if any(row.cells.get(c.name) for row in self.rows)]
        for column in filled:
            longest = max(
                (cell_len(row.cells.get(column.name, "")) for row in self.rows), default=0
            )
            self._widths[column.name] = max(cell_len(column.title), longest)
        needed = {c.name: min(self._widths[c.name], LEAST_NAME) if c.shrinks else 0 for c in filled}
        while len(filled) > 1:
            least = sum(needed[c.name] or self._widths[c.name] for c in filled)
            if LEAD + least + self._gap * (len(filled) - 1) <= width:
                break
            filled.remove(min(filled, key=lambda c: c.keeps))
        self._shown = tuple(filled)
        fixed = sum(self._widths[c.name] for c in filled if not c.shrinks)
        room = width - LEAD - self._gap * (len(filled) - 1) - fixed
        room -= sum(needed[c.name] for c in filled)
        for column in (c for c in filled if c.shrinks):
            more = max(0, min(self._widths[column.name] - needed[column.name], room))
            self._widths[column.name] = needed[column.name] + more
            room -= more

    def heading(self) -> str:
        """The titles over the columns."""
        parts = []
        for column in self._shown:
            gap = " " * (self._widths[column.name] - cell_len(column.title))
            parts.append(gap + column.title if column.figure else column.title + gap)
        return " " * LEAD + (" " * self._gap).join(parts)

    def render_row(self, row: int, width: int) -> Strip:
        """One row."""
        if width != self._fitted_width:
            self._fit(width)
        item = self.rows[row]
        base = self.row_style(row)
        parts = [
            Segment("▌" if row == self.cursor else " ", base + self._part("name")),
            Segment(
                set_cell_size(item.glyph, LEAD - 1),
                base + self._part(item.styles.get("glyph", "quiet")),
            ),
        ]
        for place, column in enumerate(self._shown):
            size = self._widths[column.name]
            text = shortened(item.cells.get(column.name, ""), size)
            gap = " " * (size - cell_len(text))
            style = base + self._part(item.styles.get(column.name, "figure"))
            parts.append(Segment(" " * self._gap if place else "", base))
            parts.append(Segment(gap + text if column.figure else text + gap, style))
        return row_strip(parts, width, base)
