"""The columns of a list, and how many cells of a line each of them gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import inf
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from rich.cells import cell_len, set_cell_size

Row = TypeVar("Row")
"""The record of a row."""

GAP: Final = 2
"""The cells between two columns."""

_ROWS_AT_ONCE: Final = 1000


def shortened(text: str, cells: int) -> str:
    """Return a text that is cut to so many cells and then ends with an ellipsis.

    Args:
        text: The text, fit for display.
        cells: The cells that it may take at most.
    """
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1) + "…" if cells > 0 else ""


def padded(text: str, cells: int) -> str:
    """Return a text in exactly so many cells, cut as by ``shortened`` or followed by spaces.

    Args:
        text: The text, fit for display.
        cells: The cells that it takes.
    """
    return set_cell_size(shortened(text, cells), cells)


@dataclass(frozen=True, slots=True)
class ColumnWidth:
    """The room that a column asks for, and how it makes room for the others on a short line.

    Ranks order what happens on a line that is too short: the lowest comes first.

    Args:
        keeps: The rank at which the column is left out; without one it always stays.
        cuts: Ranks at which the texts may be cut, each with the cells that are kept.
        most: The cells that it takes at most, unless the others leave some.
        spare: The cells that it takes beyond its texts where the others leave some.
        gap: The cells between this column and the next one.
        least_line: The cells of the shortest line that shows it.
        filled: It is left out where fewer rows than this share have a text in it, and where none
            has; without a share it is shown always.
    """

    keeps: float = inf
    cuts: tuple[tuple[float, int], ...] = ()
    most: float = inf
    spare: int = 0
    gap: int = GAP
    least_line: int = 0
    filled: float | None = None


@dataclass(frozen=True, slots=True)
class TableColumn(Generic[Row]):
    """One column of a list whose rows are records of any kind.

    Args:
        title: Its heading.
        cell: Returns the text of a row, fit for display.
        style: The style of its texts, or what returns that of a row.
        width: The room that it asks for.
        right: Whether it is aligned to the right, as numbers are.
        cut: Shortens a text to so many cells.
    """

    title: str
    cell: Callable[[Row], str]
    style: str | Callable[[Row], str] = "figure"
    width: ColumnWidth = ColumnWidth()
    right: bool = False
    cut: Callable[[str, int], str] = shortened

    def heading(self, cells: int) -> str:
        """Return the title in exactly so many cells."""
        return self.aligned(set_cell_size(self.title, min(cells, cell_len(self.title))), cells)

    def text(self, row: Row, cells: int) -> str:
        """Return the text of a row in exactly so many cells.

        Args:
            row: The record of the row.
            cells: The cells of the column.
        """
        text = self.cell(row)
        return self.aligned(text if cell_len(text) <= cells else self.cut(text, cells), cells)

    def style_of(self, row: Row) -> str:
        """Return the style of a row's text."""
        return self.style if isinstance(self.style, str) else self.style(row)

    def aligned(self, text: str, cells: int) -> str:
        """Return a text with spaces before or after it.

        Args:
            text: The text, which is no longer than the column.
            cells: The cells of the column.
        """
        space = " " * (cells - cell_len(text))
        return space + text if self.right else text + space


def key_column(
    key: str, title: str | None = None, *, right: bool = False
) -> TableColumn[Mapping[str, Any]]:
    """Return a column of what documents have under a key.

    Args:
        key: The key.
        title: The heading; None: the key.
        right: Whether it is aligned to the right, as numbers are.
    """
    return TableColumn(key if title is None else title, lambda row: str(row[key]), right=right)


def text_lengths(columns: Sequence[TableColumn[Row]], row: Row) -> tuple[int, ...]:
    """Return how many cells each column of a row needs.

    Args:
        columns: The columns.
        row: The record of the row.
    """
    return tuple(cell_len(column.cell(row)) for column in columns)


def table_lines(
    columns: Sequence[TableColumn[Row]],
    rows: Iterable[Row],
    display: Callable[[str], str] = str,
) -> Iterator[str]:
    """Yield the headings and the rows of a table as wide as its texts.

    Args:
        columns: The columns.
        rows: Rows are taken and measured many at a time; columns only grow wider.
        display: Makes a heading and the text of a cell fit for display.
    """
    titles = [column.title for column in columns]
    lines = chain([titles], ([column.cell(row) for column in columns] for row in rows))
    widths = [0] * len(columns)
    while batch := [[display(text) for text in line] for line in islice(lines, _ROWS_AT_ONCE)]:
        for index, texts in enumerate(zip(*batch, strict=True)):
            widths[index] = max(widths[index], *map(cell_len, texts))
        for line in batch:
            yield (" " * GAP).join(map(TableColumn.aligned, columns, line, widths)).rstrip()


def fit(
    columns: Sequence[TableColumn[Row]], lengths: Sequence[Sequence[int]], line: int
) -> list[tuple[TableColumn[Row], int]]:
    """Fit columns to a line: cut texts, then leave out columns, then widen what was cut.

    Args:
        columns: All columns.
        lengths: The cells of the texts of each row, by column.
        line: The cells of the line.

    Returns:
        The columns that are shown, each with its cells.
    """
    needed = [
        max(cell_len(column.title), *(row[index] for row in lengths))
        if lengths
        else cell_len(column.title)
        for index, column in enumerate(columns)
    ]
    cells = {
        index: int(min(column.width.most, needed[index]))
        for index, column in enumerate(columns)
        if line >= column.width.least_line and _is_filled(index, column.width.filled, lengths)
    }

    def free_cells() -> int:
        gaps = sum(columns[index].width.gap for index in list(cells)[:-1])
        return line - gaps - sum(cells.values())

    for index, least in _concessions(columns):
        free = free_cells()
        if free >= 0:
            break
        if least is None:
            cells.pop(index, None)
        elif index in cells:
            cells[index] = max(min(cells[index], least), cells[index] + free)
    for index in sorted(cells, key=lambda index: -columns[index].width.keeps):
        cells[index] += max(0, min(free_cells(), needed[index] - cells[index]))
    for index in cells:
        cells[index] += max(0, min(free_cells(), columns[index].width.spare))
    return [(columns[index], size) for index, size in cells.items()]


def _is_filled(index: int, share: float | None, lengths: Sequence[Sequence[int]]) -> bool:
    """Return whether at least one row, and a share of the rows, has a text in a column."""
    if share is None:
        return True
    filled = sum(row[index] > 0 for row in lengths)
    return filled > 0 and filled >= share * len(lengths)


def _concessions(columns: Sequence[TableColumn[Row]]) -> Iterator[tuple[int, int | None]]:
    """Yield columns by rank, each with the cells that it keeps; None where it is left out.

    Of equal ranks the column that is left out first comes first, then the one further right.
    """
    steps: list[tuple[tuple[float, float], tuple[int, int | None]]] = []
    for index in reversed(range(len(columns))):
        width = columns[index].width
        for rank, least in (*width.cuts, (width.keeps, None)):
            steps.append(((rank, width.keeps), (index, least)))
    for (rank, _), step in sorted(steps, key=itemgetter(0)):
        if rank < inf:
            yield step
