"""A row of a report in words, made from its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

from mast_tui.reports.model import Cell, Column, Estimate, Kind, Note, Row, Table
from mast_tui.reports.render.cells import NONE, naming
from mast_tui.safe_text import display_lines, one_line
from mast_tui.ui.reports.cells import LEGEND, interval_words, value_words
from mast_tui.ui.reports.fitting import choosable

MOST_TOLD: Final = 3
"""Columns to choose from that are all told."""


def row_title(table: Table, row: Row) -> str:
    """What a row is called: the texts of the columns that name it."""
    columns = table.columns[: naming(table.columns)]
    names = (value_words(row.cells.get(column.key), column.kind) for column in columns)
    return " ".join(name for name in names if name)


def row_words(
    table: Table,
    row: Row,
    *,
    chosen: str | None = None,
    pending: bool = False,
    notes: Sequence[Note] = (),
) -> str:
    """A row's values with their intervals, its own sentences, and what they rest on.

    Args:
        table: The table in which it stands.
        row: The row.
        chosen: The column under the cursor; of many such columns only this one is told.
        pending: Whether intervals are still to come.
        notes: What holds beyond the table.
    """
    choices = choosable(table)
    others = {key for key in choices if key != chosen} if len(choices) > MOST_TOLD else set()
    told = table.columns[naming(table.columns) :]
    columns = [column for column in told if column.key not in others]
    values = [*_values(columns, row, pending=pending)]
    widest = max((cell_len(name) for name, _ in values), default=0)
    lines = [f"{set_cell_size(name, widest)}  {words}" for name, words in values]
    for sentence in (*row.detail_cells.get(chosen or "", ()), *row.detail):
        lines += display_lines(sentence)
    below = notes_words(table, notes=notes)
    return "\n".join([*lines, "", *below] if below else lines)


def notes_words(table: Table, *, notes: Sequence[Note] = ()) -> list[str]:
    """Tell what the figures of a table rest on: warnings first, then notes and its caption.

    Args:
        table: The table.
        notes: What holds beyond it.
    """
    beside = [*table.notes, *(note for note in notes if note not in table.notes)]
    beside.sort(key=lambda note: not note.warning)
    lines: list[str] = []
    for note in beside:
        lines += display_lines(f"! {note.text}" if note.warning else note.text)
    if any(column.kind is Kind.SHARE for column in table.columns):
        lines.append(LEGEND)
    if table.caption:
        lines += display_lines(table.caption)
    return lines


def _values(columns: Sequence[Column], row: Row, *, pending: bool) -> Iterator[tuple[str, str]]:
    for column in columns:
        cell = row.cells.get(column.key)
        if cell is None or cell == "":
            continue
        yield one_line(column.name or column.title), _cell_words(cell, column, pending)


def _cell_words(cell: Cell, column: Column, pending: bool) -> str:
    words = value_words(cell, column.kind)
    if not isinstance(cell, Estimate):
        return words
    parts = [words]
    if cell.value is None:
        if cell.undefined is not None:
            parts = [f"{NONE} undefined ({_reason(cell.undefined)})"]
    elif cell.withheld is not None:
        parts.append(f"no interval ({_reason(cell.withheld)})")
    elif cell.ci is not None:
        parts.append(interval_words(cell, column.kind, pending=pending))
    elif pending and column.interval:
        parts.append("its interval is being counted …")
    if cell.n is not None:
        parts.append(f"n {cell.n:,}")
    return ", ".join([" ".join(parts[:2]), *parts[2:]])


def _reason(name: str) -> str:
    return name.replace("_", " ")
