"""The cells of a report as a terminal shows them, and a row in words, made from its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

from mast_tui.reports.model import Cell, Column, Estimate, Kind, Note, Row, Table
from mast_tui.reports.render.cells import NONE, WITHHELD, naming, number
from mast_tui.safe_text import display_lines, one_line

PENDING: Final = "…"
"""What stands for an interval that is still being counted."""

SURE: Final = "█"
BELOW: Final = "▓"
ABOVE: Final = "░"
LEGEND: Final = f"Bars: {SURE}{BELOW} share, {BELOW}{ABOVE} 95 % interval."

MOST_TOLD: Final = 3
"""Columns to choose from that are all told."""


def figure_of(cell: Cell) -> float | None:
    """The number in a cell, None where there is none."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return None if isinstance(value, str) else value


def value_words(cell: Cell, kind: Kind) -> str:
    """A value in one line, without its interval; nothing for an empty cell."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return one_line(cell)
    value = figure_of(cell)
    return NONE if value is None else number(value, kind)


def interval_words(cell: Cell, kind: Kind, *, pending: bool) -> str:
    """The interval beside a value, or what stands for it; nothing where it has none."""
    if not isinstance(cell, Estimate) or cell.value is None:
        return ""
    if cell.ci is not None:
        low, high = (number(end, kind).removesuffix("%") for end in cell.ci)
        return f"[{low}, {high}]"
    if cell.withheld is not None:
        return WITHHELD
    return PENDING if pending else ""


def bar(cell: Cell, width: int) -> str:
    """A share as a bar of which ``width`` cells are the whole; legible without colours.

    It is full up to its interval, lighter up to the share, and light up to the interval's end.
    """
    value = figure_of(cell)
    if value is None:
        return ""
    low, high = (value, value)
    if isinstance(cell, Estimate) and cell.ci is not None:
        low, high = cell.ci
    first, middle, last = (round(end * width) for end in (low, value, high))
    if value > 0:
        # What was seen at all shows, however rare it is.
        middle = max(1, middle)
    last = max(last, middle)
    return SURE * min(first, middle) + BELOW * max(0, middle - first) + ABOVE * (last - middle)


def choosable(table: Table) -> tuple[str, ...]:
    """The columns among which a cell can be chosen: those with traces of their own behind them."""
    with_sources = {key for row in table.rows for key in row.cell_sources}
    return tuple(column.key for column in table.columns if column.key in with_sources)


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
