"""The texts of a report's cells and rows in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

from mast_tui.reports.model import Cell, Column, Estimate, Kind, Note, Row, Table
from mast_tui.reports.render.cells import NONE, WITHHELD, naming, number
from mast_tui.safe_text import display_lines, one_line

PENDING: Final = "…"
"""The text in place of an interval that is still being computed."""

SURE: Final = "█"
"""A part of a bar below the 95 % interval."""

BELOW: Final = "▓"
"""A part of a bar from the start of the interval to the share."""

ABOVE: Final = "░"
"""A part of a bar from the share to the end of the interval."""

LEGEND: Final = f"Bars: {SURE}{BELOW} share, {BELOW}{ABOVE} 95 % interval."

MOST_CHOICES: Final = 3
"""The most columns to choose from that are all described beside a row."""


def figure_of(cell: Cell) -> float | None:
    """Return the number in a cell, or None if it has none."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return None if isinstance(value, str) else value


def value_text(cell: Cell, kind: Kind) -> str:
    """Return a value in one line, without its interval; an empty text for an empty cell.

    Args:
        cell: The cell.
        kind: The kind of its column.
    """
    if cell is None:
        return ""
    if isinstance(cell, str):
        return one_line(cell)
    value = figure_of(cell)
    return NONE if value is None else number(value, kind)


def interval_text(cell: Cell, kind: Kind, *, pending: bool) -> str:
    """Return the interval of a cell, or the sign in its place.

    The text is empty if the cell has no interval.

    Args:
        cell: The cell.
        kind: The kind of its column.
        pending: Whether the interval is still being computed.
    """
    if not isinstance(cell, Estimate) or cell.value is None:
        return ""
    if cell.ci is not None:
        low, high = (number(end, kind).removesuffix("%") for end in cell.ci)
        return f"[{low}, {high}]"
    if cell.withheld is not None:
        return WITHHELD
    return PENDING if pending else ""


def bar(cell: Cell, width: int) -> str:
    """Return a share as a bar that is legible without colours.

    The bar is full up to the interval, lighter up to the share, and light up to the end of the
    interval.

    Args:
        cell: The cell.
        width: The characters of a bar for 100 %.
    """
    value = figure_of(cell)
    if value is None:
        return ""
    low = high = value
    if isinstance(cell, Estimate) and cell.ci is not None:
        low, high = cell.ci
    low_end, value_end, high_end = (round(share * width) for share in (low, value, high))
    if value > 0:
        # A share above zero is visible, however small it is.
        value_end = max(1, value_end)
    high_end = max(high_end, value_end)
    sure = SURE * min(low_end, value_end)
    return sure + BELOW * max(0, value_end - low_end) + ABOVE * (high_end - value_end)


def choosable(table: Table) -> tuple[str, ...]:
    """Return the keys of the columns whose cells have source traces of their own.

    The user can choose these cells.
    """
    keys_with_sources = {key for row in table.rows for key in row.cell_sources}
    return tuple(column.key for column in table.columns if column.key in keys_with_sources)


def row_title(table: Table, row: Row) -> str:
    """Return the title of a row: the texts of the columns that name it.

    Args:
        table: The table.
        row: The row.
    """
    columns = table.columns[: naming(table.columns)]
    names = (value_text(row.cells.get(column.key), column.kind) for column in columns)
    return " ".join(name for name in names if name)


def row_text(
    table: Table,
    row: Row,
    *,
    chosen: str | None = None,
    pending: bool = False,
    notes: Sequence[Note] = (),
) -> str:
    """Return a row's values with their intervals, its own sentences, and the notes of its table.

    Args:
        table: The table of the row.
        row: The row.
        chosen: The key of the chosen column. If more than ``MOST_CHOICES`` columns can be chosen,
            the others are left out.
        pending: Whether intervals are still being computed.
        notes: Notes of the page.
    """
    choices = choosable(table)
    omitted = {key for key in choices if key != chosen} if len(choices) > MOST_CHOICES else set()
    value_columns = table.columns[naming(table.columns) :]
    columns = [column for column in value_columns if column.key not in omitted]
    values = [*_titles_and_values(columns, row, pending=pending)]
    title_width = max((cell_len(title) for title, _ in values), default=0)
    lines = [f"{set_cell_size(title, title_width)}  {value}" for title, value in values]
    for sentence in (*row.detail_cells.get(chosen or "", ()), *row.detail):
        lines += display_lines(sentence)
    last_lines = note_lines(table, notes=notes)
    return "\n".join([*lines, "", *last_lines] if last_lines else lines)


def note_lines(table: Table, *, notes: Sequence[Note] = ()) -> list[str]:
    """Return the notes of a table and the page, warnings first, then a legend and the caption.

    Args:
        table: The table.
        notes: Notes of the page.
    """
    all_notes = [*table.notes, *(note for note in notes if note not in table.notes)]
    all_notes.sort(key=lambda note: not note.warning)
    lines: list[str] = []
    for note in all_notes:
        lines += display_lines(f"! {note.text}" if note.warning else note.text)
    if any(column.kind is Kind.SHARE for column in table.columns):
        lines.append(LEGEND)
    if table.caption:
        lines += display_lines(table.caption)
    return lines


def _titles_and_values(
    columns: Sequence[Column], row: Row, *, pending: bool
) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each column with a value in the row."""
    for column in columns:
        cell = row.cells.get(column.key)
        if cell is None or cell == "":
            continue
        yield one_line(column.name or column.title), _cell_text(cell, column, pending)


def _cell_text(cell: Cell, column: Column, pending: bool) -> str:
    """Return a value with its count, and with its interval or the reason why there is none."""
    text = value_text(cell, column.kind)
    if not isinstance(cell, Estimate):
        return text
    parts = [text]
    if cell.value is None:
        if cell.undefined is not None:
            parts = [f"{NONE} undefined ({_reason_text(cell.undefined)})"]
    elif cell.withheld is not None:
        parts.append(f"no interval ({_reason_text(cell.withheld)})")
    elif cell.ci is not None:
        parts.append(interval_text(cell, column.kind, pending=pending))
    elif pending and column.interval:
        parts.append("its interval is being computed …")
    if cell.n is not None:
        parts.append(f"n {cell.n:,}")
    return ", ".join([" ".join(parts[:2]), *parts[2:]])


def _reason_text(name: str) -> str:
    return name.replace("_", " ")
