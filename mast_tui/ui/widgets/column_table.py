"""A list of rows in columns, some of which are dropped on a narrow screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Final, Generic

from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from mast_tui.columns import ColumnWidth, Row, TableColumn, fit, text_lengths
from mast_tui.ui.widgets.virtual_lines import VirtualLines, row_strip

LEAST_NAME: Final = 12
"""The cells to which a column of names is cut if others need its space."""

SOME: Final = 0.0
"""The share of filled rows from which a column is shown: any filled row is enough."""

NOTHING: Final = frozenset(("0", "—", "hidden"))
"""The texts of figures without information."""


def name_width(keeps: float = inf) -> ColumnWidth:
    """Return the width of a column whose texts are cut before any column is dropped.

    Args:
        keeps: The rank at which the column is dropped on a short line.
    """
    return ColumnWidth(keeps, cuts=((0, LEAST_NAME),), filled=SOME)


def figure_column(
    title: str,
    cell: Callable[[Row], str],
    keeps: float,
    style: str = "figure",
) -> TableColumn[Row]:
    """Return a column of figures; figures without information are drawn quietly.

    Args:
        title: The heading.
        cell: Returns the figure of a row.
        keeps: The rank at which the column is dropped on a short line.
        style: The style of figures with information.
    """
    return TableColumn(
        title,
        cell,
        lambda row: "quiet" if cell(row) in NOTHING else style,
        ColumnWidth(keeps, filled=SOME),
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

    The screen shows ``heading`` above the list, and updates it when ``ColumnsFitted`` arrives.
    """

    css_prefix = "column-table"
    tells_focus = True
    css_parts: ClassVar[tuple[str, ...]] = ("cursor", "name", "quiet", "figure", "total", "doubt")

    @dataclass
    class ColumnsFitted(Message):
        """The report that the columns may have other widths."""

        table: ColumnTable[Any]

    def __init__(
        self,
        key: Callable[[Row], object],
        columns: Sequence[TableColumn[Row]] = (),
        *,
        id: str | None = None,
    ) -> None:
        """Begin without rows.

        Args:
            key: Returns the identity of a row. The cursor finds its row again by it.
            columns: The columns, which may be set later.
            id: The widget's id.
        """
        super().__init__(id=id)
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
        """Show other rows; the cursor stays on its row, or goes to the first if its row is gone."""
        current_key = None if self.row is None else self._key(self.row)
        self.rows = rows
        positions = (position for position, row in enumerate(rows) if self._key(row) == current_key)
        self.cursor = next(positions, 0)
        self.rows_changed()
        self.show_row(self.cursor)

    def rows_changed(self) -> None:
        """Fit the columns to the rows."""
        self._fit_columns(self.row_width)
        self.post_message(self.ColumnsFitted(self))
        super().rows_changed()

    def lengths(self) -> Sequence[Sequence[int]]:
        """Return the cells of the texts that determine the widths, by row and column."""
        return [text_lengths(self.columns, row) for row in self.rows]

    def _fit_columns(self, width: int) -> None:
        """Choose the visible columns and their widths for a width of the list."""
        self._fitted_width = width
        self._fitted_columns = fit(self.columns, self.lengths(), width - 1)

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
        edge = "▌" if row == self.cursor else " "
        segments = [Segment(edge, base_style + self._part("name"))]
        for column, cells in self._fitted_columns:
            style = base_style + self._part(column.style_of(record))
            segments.append(Segment(column.text(record, cells), style))
            segments.append(Segment(" " * column.width.gap, base_style))
        return row_strip(segments[:-1], width, base_style)
