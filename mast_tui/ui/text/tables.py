"""Tables in Markdown with aligned columns: the cells are padded, no line is broken.

Only the drawn text changes: each padding belongs to a code point of the line, so that offsets stay
those of the text. The table of a line is found from the lines around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    """The range of the lines of a table, and the width and the alignment of each column.

    Without columns the lines are not aligned.
    """

    start: int
    end: int
    widths: Sequence[int] = ()
    sides: Sequence[str] = ()


class _Filling(NamedTuple):
    """Characters that are inserted at an offset of a line.

    They belong to the character before that offset, or to the one at it.
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
        self._last: _TableExtent | None = None

    def forget(self) -> None:
        """Forget the last table, as the text has changed."""
        self._last = None

    def filled(
        self, start: int, shown: str, columns: Sequence[int] | None
    ) -> tuple[str, Sequence[int] | None]:
        """Pad the cells of a line if it is a row of a table that fits.

        Args:
            start: The offset of the line in the text.
            shown: The line, safe for display.
            columns: The offset in ``shown`` of each code point; None if they are equal.

        Returns:
            The padded line, and the offset in it of each code point; both unchanged for other
            lines.
        """
        if not _is_row(shown):
            return shown, columns
        table = self._last
        if table is None or not table.start <= start < table.end:
            table = self._last = self._around(start)
        if not table.widths:
            return shown, columns
        fillings = list(_fillings(shown, table))
        parts: list[str] = []
        done = 0
        for filling in fillings:
            parts += (shown[done : filling.offset], filling.characters)
            done = filling.offset
        parts.append(shown[done:])
        moved: list[int] = []
        inserted = 0
        number = 0
        for column in range(len(shown) + 1) if columns is None else columns:
            while number < len(fillings) and (
                fillings[number].offset + (not fillings[number].after_previous) <= column
            ):
                inserted += len(fillings[number].characters)
                number += 1
            moved.append(column + inserted)
        return "".join(parts), moved

    def _around(self, start: int) -> _TableExtent:
        """Return the table of the line that begins here."""
        text = self._text
        first = start
        last = start
        lines: list[str] = []
        while first > 0 and start - first <= MOST_CHARS:
            begin = text.rfind("\n", max(0, first - 1 - MOST_CHARS), first - 1) + 1
            if begin == 0 and first - 1 > MOST_CHARS:
                break
            line = _shown(text[begin:first])
            if not _is_row(line):
                break
            lines.append(line)
            first = begin
        lines.reverse()
        while last < len(text) and last - start <= MOST_CHARS:
            newline = text.find("\n", last, last + MOST_CHARS)
            end = newline + 1 if newline >= 0 else min(len(text), last + MOST_CHARS)
            line = _shown(text[last:end])
            if not _is_row(line):
                break
            lines.append(line)
            last = end
        table = _TableExtent(first, last)
        if last - first > MOST_CHARS or len(lines) < 2 or _RULE.match(lines[1]) is None:
            return table
        rows = [_cells(line) for line in lines]
        count = max(map(len, rows))
        widths = [
            max(cell_len(cell) for row in rows for cell in row[column : column + 1])
            for column in range(count)
        ]
        table = _TableExtent(first, last, widths, [_side(cell) for cell in rows[1]])
        widest = max(
            cell_len(line) + sum(cell_len(filling.characters) for filling in _fillings(line, table))
            for line in lines
        )
        return table if widest <= self._width else _TableExtent(first, last)


def _shown(line: str) -> str:
    return safe_line_map(line.rstrip("\r\n"), drops_colours=True)[0]


def _is_row(line: str) -> bool:
    return line.lstrip()[:1] == "|" and line.count("|") > 1


def _cells(line: str) -> list[str]:
    """Return the texts between the bars of a row."""
    bars = [bar.start() for bar in _BAR.finditer(line)]
    return [line[left + 1 : right] for left, right in pairwise(bars)]


def _side(cell: str) -> str:
    """Return the alignment of a column from its cell in the line under the titles."""
    cell = cell.strip()
    if cell.endswith(":"):
        return "both" if cell.startswith(":") else "right"
    return "left"


def _fillings(line: str, table: _TableExtent) -> Iterator[_Filling]:
    """Yield the padding of the cells of a row, next to its bars; in a rule, after the last dash."""
    is_rule = _RULE.match(line) is not None
    bars = [bar.start() for bar in _BAR.finditer(line)]
    for column, (left, right) in enumerate(pairwise(bars)):
        room = table.widths[column] - cell_len(line[left + 1 : right])
        side = table.sides[column] if column < len(table.sides) else "left"
        if room <= 0:
            continue
        if is_rule:
            yield _Filling(line.rindex("-", left, right) + 1, "-" * room, True)
            continue
        left_room = {"left": 0, "right": room, "both": room // 2}[side]
        if left_room:
            yield _Filling(left + 1, " " * left_room, True)
        if room > left_room:
            yield _Filling(right, " " * (room - left_room), False)
