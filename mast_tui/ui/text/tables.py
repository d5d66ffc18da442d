"""Tables in Markdown with aligned columns: the cells are padded, no line is broken.

Only the drawn text changes: each padding belongs to a code point of the line, so that offsets stay
those of the text. The table of a line is found from the lines around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len

from mast_tui.safe_text import safe_line_map

if TYPE_CHECKING:
    from mast_tui.ui.text.layout import Readable

MOST_CHARS: Final = 1 << 13
"""The most code points of a table that is aligned, as its widths depend on all of its cells."""

_BAR: Final = re.compile(r"(?<!\\)\|")
_RULE: Final = re.compile(r"\s*\|(?:[ \t]*:?-+:?[ \t]*\|)+\s*$")


@dataclass(frozen=True, slots=True)
class _TableExtent:
    """A table in a text.

    Attributes:
        start: The offset of its first line.
        end: The offset after its last line.
        widths: The width of each column; empty if the table is not aligned.
        sides: The alignment of each column: ``left``, ``right`` or ``both``.
    """

    start: int
    end: int
    widths: Sequence[int] = ()
    sides: Sequence[str] = ()


class _Filling(NamedTuple):
    """Characters that are inserted into a line.

    Attributes:
        offset: The offset in the line.
        characters: The characters.
        after_previous: True if they belong to the character before the offset, False if to the
            character at the offset.
    """

    offset: int
    characters: str
    after_previous: bool


class MarkdownTables:
    """The alignment of the tables of a text that fit the width."""

    def __init__(self, text: Readable, width: int) -> None:
        """Prepare a text.

        Args:
            text: The text.
            width: The cells of a line.
        """
        self._text = text
        self._width = width
        self._last_table: _TableExtent | None = None

    def forget(self) -> None:
        """Forget the last table, because the text has changed."""
        self._last_table = None

    def filled(
        self, start: int, shown: str, columns: Sequence[int] | None
    ) -> tuple[str, Sequence[int] | None]:
        """Pad the cells of a line if it is a row of a table that fits.

        Args:
            start: The offset of the line in the text.
            shown: The line, safe for display.
            columns: The offset in ``shown`` of each code point; None if these are the same.

        Returns:
            The padded line, and the offset in it of each code point. If the line is not padded,
            both are unchanged.
        """
        if not _is_row(shown):
            return shown, columns
        table = self._last_table
        if table is None or not table.start <= start < table.end:
            table = self._table_around(start)
            self._last_table = table
        if not table.widths:
            return shown, columns
        fillings = list(_row_fillings(shown, table))
        parts: list[str] = []
        copied_until = 0
        for filling in fillings:
            parts += (shown[copied_until : filling.offset], filling.characters)
            copied_until = filling.offset
        parts.append(shown[copied_until:])
        old_columns = range(len(shown) + 1) if columns is None else columns
        return "".join(parts), _moved_columns(old_columns, fillings)

    def _table_around(self, start: int) -> _TableExtent:
        """Return the extent of the table around the line that begins at an offset.

        If the table is too large, has no rule under its titles, or does not fit the width, its
        extent has no widths, so that it is not aligned.
        """
        table_start, rows_before = self._rows_before(start)
        table_end, rows_after = self._rows_from(start)
        rows = [*rows_before, *rows_after]
        unaligned_table = _TableExtent(table_start, table_end)
        is_too_large = table_end - table_start > MOST_CHARS
        if is_too_large or len(rows) < 2 or _RULE.match(rows[1]) is None:  # below the titles
            return unaligned_table
        cells_by_row = [_cell_texts(row) for row in rows]
        widths = [0] * max(map(len, cells_by_row))
        for cells in cells_by_row:
            for column, cell in enumerate(cells):
                widths[column] = max(widths[column], cell_len(cell))
        sides = [_side_of(cell) for cell in cells_by_row[1]]
        table = _TableExtent(table_start, table_end, widths, sides)
        for row in rows:
            filled_cells = sum(
                cell_len(filling.characters) for filling in _row_fillings(row, table)
            )
            if cell_len(row) + filled_cells > self._width:
                return unaligned_table
        return table

    def _rows_before(self, start: int) -> tuple[int, list[str]]:
        """Return the offset of the first row of a table, and its rows up to an offset, in order."""
        text = self._text
        rows: list[str] = []
        first = start
        while first > 0 and start - first <= MOST_CHARS:
            line_start = text.rfind("\n", max(0, first - 1 - MOST_CHARS), first - 1) + 1
            if line_start == 0 and first - 1 > MOST_CHARS:
                break
            line = _shown_line(text[line_start:first])
            if not _is_row(line):
                break
            rows.append(line)
            first = line_start
        rows.reverse()
        return first, rows

    def _rows_from(self, start: int) -> tuple[int, list[str]]:
        """Return the rows of a table from an offset on, and the offset after the last row."""
        text = self._text
        rows: list[str] = []
        end = start
        while end < len(text) and end - start <= MOST_CHARS:
            newline = text.find("\n", end, end + MOST_CHARS)
            line_end = newline + 1 if newline >= 0 else min(len(text), end + MOST_CHARS)
            line = _shown_line(text[end:line_end])
            if not _is_row(line):
                break
            rows.append(line)
            end = line_end
        return end, rows


def _moved_columns(columns: Iterable[int], fillings: Sequence[_Filling]) -> list[int]:
    """Return the columns of code points after fillings were inserted before them."""
    moved_columns: list[int] = []
    inserted_length = 0
    number = 0
    for column in columns:
        while number < len(fillings):
            filling = fillings[number]
            first_moved = filling.offset if filling.after_previous else filling.offset + 1
            if first_moved > column:
                break
            inserted_length += len(filling.characters)
            number += 1
        moved_columns.append(column + inserted_length)
    return moved_columns


def _shown_line(line: str) -> str:
    shown, _columns = safe_line_map(line.rstrip("\r\n"), drops_colours=True)
    return shown


def _is_row(line: str) -> bool:
    return line.lstrip()[:1] == "|" and line.count("|") > 1


def _cell_texts(line: str) -> list[str]:
    """Return the texts between the bars of a row."""
    bars = [bar.start() for bar in _BAR.finditer(line)]
    return [line[left + 1 : right] for left, right in pairwise(bars)]


def _side_of(cell: str) -> str:
    """Return the alignment of a column from its cell in the rule: ``left``, ``right``, ``both``."""
    cell = cell.strip()
    if cell.endswith(":"):
        return "both" if cell.startswith(":") else "right"
    return "left"


def _row_fillings(line: str, table: _TableExtent) -> Iterator[_Filling]:
    """Yield the padding of the cells of a row, next to its bars; in a rule, after the last dash."""
    is_rule = _RULE.match(line) is not None
    bars = [bar.start() for bar in _BAR.finditer(line)]
    for column, (left_bar, right_bar) in enumerate(pairwise(bars)):
        missing_cells = table.widths[column] - cell_len(line[left_bar + 1 : right_bar])
        side = table.sides[column] if column < len(table.sides) else "left"
        if missing_cells <= 0:
            continue
        if is_rule:
            last_dash = line.rindex("-", left_bar, right_bar)
            yield _Filling(last_dash + 1, "-" * missing_cells, after_previous=True)
            continue
        cells_at_left = {"left": 0, "right": missing_cells, "both": missing_cells // 2}[side]
        cells_at_right = missing_cells - cells_at_left
        if cells_at_left:
            yield _Filling(left_bar + 1, " " * cells_at_left, after_previous=True)
        if cells_at_right:
            yield _Filling(right_bar, " " * cells_at_right, after_previous=False)
