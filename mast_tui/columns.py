"""The columns of a list, and how many cells of a line each of them gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import inf
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

Row = TypeVar("Row")
"""The record of a row."""

GAP: Final = 2
"""The cells between two columns."""

_ROWS_AT_ONCE: Final = 1000


def shortened(text: str, cells: int) -> str:
    """Shorten a text to a number of cells; an ellipsis marks the cut.

    Args:
        text: The text, fit for display.
        cells: The most cells of the result; with 0 it is empty.
    """
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1) + "…" if cells > 0 else ""


def padded(text: str, cells: int) -> str:
    """Shorten a text, or add spaces after it, so that it fills a number of cells.

    Args:
        text: The text, fit for display.
        cells: The number of cells of the result.
    """
    return set_cell_size(shortened(text, cells), cells)


def wrapped_lines(text: str, cells: int | None) -> list[str]:
    """Break a text into lines at spaces; words longer than a line are not broken.

    Args:
        text: The text, fit for display.
        cells: The cells of a line; None for any number.
    """
    if not text:
        return []
    if cells is None or cell_len(text) <= cells:
        return [text]
    lines = [""]
    for word in text.split(" "):
        extended = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and cell_len(extended) > cells:
            lines.append(word)
        else:
            lines[-1] = extended
    return lines


class ColumnWidth(Struct, frozen=True):
    """The width of a column, and the steps by which it gets narrower on a short line.

    Each step has a rank. On a short line, the steps with the lowest ranks are taken first.

    Args:
        drop_rank: The rank of leaving the column out; infinite if it always stays.
        cuts: The rank of each step that cuts the texts, and the cells that it keeps.
        most: The most cells of the column, unless the line has room left.
        spare: The cells that the column gets beyond its texts, if the line has room left.
        gap: The cells between this column and the next one.
        least_line: The cells of the shortest line that shows the column.
        filled: The share of rows that must have a text for the column to be shown; at least one row
            must have one. None always shows the column.
    """

    drop_rank: float = inf
    cuts: tuple[tuple[float, int], ...] = ()
    most: float = inf
    spare: int = 0
    gap: int = GAP
    least_line: int = 0
    filled: float | None = None


class TableColumn(Struct, Generic[Row], frozen=True):
    """One column of a list of records.

    Args:
        title: Its heading.
        cell: Returns the text of a row, fit for display.
        style: The style of its texts, or a function from a row to the style of its text.
        width: The width of the column.
        right: True if the texts are aligned to the right, as numbers are.
        cut: Shortens a text to a number of cells.
    """

    title: str
    cell: Callable[[Row], str]
    style: str | Callable[[Row], str] = "figure"
    width: ColumnWidth = ColumnWidth()
    right: bool = False
    cut: Callable[[str, int], str] = shortened

    def heading(self, cells: int) -> str:
        """Return the title, cut or aligned to a number of cells."""
        return self.aligned(set_cell_size(self.title, min(cells, cell_len(self.title))), cells)

    def text(self, row: Row, cells: int) -> str:
        """Return the text of a row in this column, cut or aligned to the column's width.

        Args:
            row: The record of the row.
            cells: The width of the column in cells of the terminal.
        """
        return self.fitted(self.cell(row), cells)

    def fitted(self, text: str, cells: int) -> str:
        """Cut or align a text to a number of cells.

        Args:
            text: The text, fit for display.
            cells: The cells of the column.
        """
        return self.aligned(text if cell_len(text) <= cells else self.cut(text, cells), cells)

    def style_of(self, row: Row) -> str:
        """Return the style of a row's text."""
        return self.style if isinstance(self.style, str) else self.style(row)

    def aligned(self, text: str, cells: int) -> str:
        """Add spaces before or after a text to fill the column.

        Args:
            text: The text, which is no longer than the column.
            cells: The cells of the column.
        """
        space = " " * (cells - cell_len(text))
        return space + text if self.right else text + space


def key_column(
    key: str, title: str | None = None, *, right: bool = False, drop_rank: float = inf
) -> TableColumn[Mapping[str, Any]]:
    """Make a column that shows the value under a key of each row.

    Args:
        key: The key.
        title: The heading; None for the key.
        right: True if it is aligned to the right, as numbers are.
        drop_rank: The rank of leaving the column out; infinite if it always stays.
    """
    return TableColumn(
        key if title is None else title,
        lambda row: str(row[key]),
        width=ColumnWidth(drop_rank),
        right=right,
    )


def text_lengths(columns: Sequence[TableColumn[Row]], row: Row) -> tuple[int, ...]:
    """Return the number of cells of each text of a row, by column.

    Args:
        columns: The columns.
        row: The record of the row.
    """
    return tuple(cell_len(column.cell(row)) for column in columns)


def table_lines(
    columns: Sequence[TableColumn[Row]],
    rows: Iterable[Row],
    display: Callable[[str], str] = str,
    line_cells: int | None = None,
) -> Iterator[str]:
    """Yield the line of headings and the lines of a table.

    Rows are read and measured in batches. A column is as wide as its widest text so far. On a short
    line, columns are cut or left out in the order of their steps, then the widest columns of texts
    are cut. A column that was left out stays left out. A last line names these columns.

    Args:
        columns: The columns.
        rows: The rows.
        display: Makes a heading and the text of a cell fit for display.
        line_cells: The cells of a line; None for any number.
    """
    titles = [column.title for column in columns]
    lines = chain([titles], ([column.cell(row) for column in columns] for row in rows))
    widths = [0] * len(columns)
    cells_by_index = dict.fromkeys(range(len(columns)), 0)
    while batch := [[display(text) for text in line] for line in islice(lines, _ROWS_AT_ONCE)]:
        for index, texts in enumerate(zip(*batch, strict=True)):
            widths[index] = max(widths[index], *map(cell_len, texts))
        cells_by_index = {
            index: cells
            for index, cells in _fitted_widths(columns, widths, line_cells).items()
            if index in cells_by_index
        }
        for line in batch:
            texts_of_line = (
                columns[index].fitted(line[index], cells) for index, cells in cells_by_index.items()
            )
            yield (" " * GAP).join(texts_of_line).rstrip()
    left_out = [title for index, title in enumerate(titles) if index not in cells_by_index]
    if left_out:
        yield f"Columns left out (the window is too narrow): {', '.join(left_out)}."


_LEAST_TEXT: Final = 8
"""The cells that every column of texts keeps when a table is cut to its line."""


def _fitted_widths(
    columns: Sequence[TableColumn[Row]], widths: Sequence[int], line_cells: int | None
) -> dict[int, int]:
    """Return the cells of each shown column, by its index."""
    if line_cells is None:
        return dict(enumerate(widths))
    cells_by_index = fit(columns, [widths], line_cells)
    text_columns = [index for index in cells_by_index if not columns[index].right]
    gap_cells = GAP * (len(cells_by_index) - 1)
    while text_columns and sum(cells_by_index.values()) + gap_cells > line_cells:
        widest = max(text_columns, key=cells_by_index.__getitem__)
        if cells_by_index[widest] <= _LEAST_TEXT:
            break
        cells_by_index[widest] -= 1
    return cells_by_index


def fit(
    columns: Sequence[TableColumn[Row]], lengths: Sequence[Sequence[int]], line: int
) -> dict[int, int]:
    """Fit columns to a line.

    - While the line is too short, texts are cut and columns are left out in the order of the ranks.
    - Free cells go to columns with cut texts, then to columns with ``spare`` cells.

    Args:
        columns: All columns.
        lengths: The cells of the texts of each row, by column.
        line: The number of cells of the line.

    Returns:
        The cells of each column that is shown, by its index.
    """
    needed = [
        max([cell_len(column.title), *(row[index] for row in lengths)])
        for index, column in enumerate(columns)
    ]
    cells = {
        index: int(min(column.width.most, needed[index]))
        for index, column in enumerate(columns)
        if line >= column.width.least_line and _is_filled(index, column.width.filled, lengths)
    }
    _shrink(columns, cells, line)
    # Leaving a column out may have freed more cells than needed.
    for index in sorted(cells, key=lambda index: -columns[index].width.drop_rank):
        cut_cells = needed[index] - cells[index]
        cells[index] += max(0, min(_free_cells(columns, cells, line), cut_cells))
    for index in cells:
        spare_cells = columns[index].width.spare
        cells[index] += max(0, min(_free_cells(columns, cells, line), spare_cells))
    return cells


def _is_filled(index: int, share: float | None, lengths: Sequence[Sequence[int]]) -> bool:
    """Return whether the share of rows with a text in a column is large enough."""
    if share is None:
        return True
    filled_count = sum(row[index] > 0 for row in lengths)
    return filled_count > 0 and filled_count >= share * len(lengths)


def _free_cells(columns: Sequence[TableColumn[Row]], cells: Mapping[int, int], line: int) -> int:
    """Return the free cells of a line; negative if the columns are too wide."""
    gaps = [columns[index].width.gap for index in cells]
    return line - sum(gaps[:-1]) - sum(cells.values())


def _shrink(columns: Sequence[TableColumn[Row]], cells: dict[int, int], line: int) -> None:
    """Cut columns or leave them out, in the order of their steps, until they fit a line."""
    for step in _shrink_steps(columns):
        missing_cells = -_free_cells(columns, cells, line)
        if missing_cells <= 0:
            return
        if step.least_cells is None:
            cells.pop(step.column_index, None)
        elif step.column_index in cells:
            present_cells = cells[step.column_index]
            cut_cells = max(step.least_cells, present_cells - missing_cells)
            cells[step.column_index] = min(present_cells, cut_cells)


class _ShrinkStep(Struct, frozen=True):
    """A step that cuts a column to ``least_cells``, or leaves it out if that is None."""

    rank: float
    column_index: int
    least_cells: int | None


def _shrink_steps(columns: Sequence[TableColumn[Row]]) -> list[_ShrinkStep]:
    """Return the steps that narrow columns, sorted by rank."""
    steps = [
        _ShrinkStep(rank, index, least_cells)
        for index, column in enumerate(columns)
        for rank, least_cells in (*column.width.cuts, (column.width.drop_rank, None))
        if rank < inf
    ]
    return sorted(
        steps,
        key=lambda step: (
            step.rank,
            columns[step.column_index].width.drop_rank,
            -step.column_index,
        ),
    )
