"""Markdown's tables with their columns under one another: cells are filled up, nothing is broken.

Only what is drawn gets wider: each sign that is put in belongs to a code point of the line, so that
offsets stay those of the text. A table is found by what is around one of its lines.
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
"""Longer tables stay as they are: the width of a column is that of its widest cell."""

_BAR: Final = re.compile(r"(?<!\\)\|")
_RULE: Final = re.compile(r"\s*\|(?:[ \t]*:?-+:?[ \t]*\|)+\s*$")


@dataclass(frozen=True, slots=True)
class _TableExtent:
    """Where lines stand that may be a table, and the width and the side of each column.

    Without columns they stay as they are.
    """

    start: int
    end: int
    widths: Sequence[int] = ()
    sides: Sequence[str] = ()


class _Filling(NamedTuple):
    """Signs that are put in at a place of a line.

    They belong to what stands before that place, or to the sign that stands there.
    """

    place: int
    signs: str
    of_before: bool


class MarkdownTables:
    """Fills up lines of a text that are rows of a table which fits the width."""

    def __init__(self, text: Readable, width: int) -> None:
        """Begin with no table known.

        Args:
            text: What the lines are of.
            width: How many cells a line has.
        """
        self._text = text
        self._width = width
        self._last: _TableExtent | None = None

    def forget(self) -> None:
        """Take it that the text reads otherwise now."""
        self._last = None

    def filled(
        self, start: int, shown: str, columns: Sequence[int] | None
    ) -> tuple[str, Sequence[int] | None]:
        """Return what is drawn of a whole line, and where each of its code points stands in it.

        Args:
            start: Where the line begins in the text.
            shown: The line, fit for display.
            columns: Where each of its code points stands in ``shown``; None where the two are the
                same.

        Returns:
            The same again where the line is no row of a table that fits.
        """
        if not _is_row(shown):
            return shown, columns
        table = self._last
        if table is None or not table.start <= start < table.end:
            table = self._last = self._around(start)
        if not table.widths:
            return shown, columns
        fillings = list(_fillings(shown, table))
        places = range(len(shown) + 1) if columns is None else columns
        parts, done = list[str](), 0
        for filling in fillings:
            parts += (shown[done : filling.place], filling.signs)
            done = filling.place
        moved, added, place = list[int](), 0, 0
        for column in places:
            while place < len(fillings) and (
                fillings[place].place + (not fillings[place].of_before) <= column
            ):
                added += len(fillings[place].signs)
                place += 1
            moved.append(column + added)
        return "".join([*parts, shown[done:]]), moved

    def _around(self, start: int) -> _TableExtent:
        """The table that holds the line which begins here."""
        text = self._text
        first, last = start, start
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
            found = text.find("\n", last, last + MOST_CHARS)
            end = found + 1 if found >= 0 else min(len(text), last + MOST_CHARS)
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
            cell_len(line) + sum(cell_len(one.signs) for one in _fillings(line, table))
            for line in lines
        )
        return table if widest <= self._width else _TableExtent(first, last)


def _shown(line: str) -> str:
    return safe_line_map(line.rstrip("\r\n"), drops_colours=True)[0]


def _is_row(line: str) -> bool:
    return line.lstrip()[:1] == "|" and line.count("|") > 1


def _cells(line: str) -> list[str]:
    """What stands between the bars of a row."""
    bars = [bar.start() for bar in _BAR.finditer(line)]
    return [line[one + 1 : other] for one, other in pairwise(bars)]


def _side(cell: str) -> str:
    """On which side of a column its words stand, as the line under its title says."""
    cell = cell.strip()
    if cell.endswith(":"):
        return "both" if cell.startswith(":") else "right"
    return "left"


def _fillings(line: str, table: _TableExtent) -> Iterator[_Filling]:
    """What fills up the cells of a row; it belongs to the bars, in the rule to its last dash."""
    ruled = _RULE.match(line) is not None
    bars = [bar.start() for bar in _BAR.finditer(line)]
    for column, (one, other) in enumerate(pairwise(bars)):
        room = table.widths[column] - cell_len(line[one + 1 : other])
        side = table.sides[column] if column < len(table.sides) else "left"
        if room <= 0:
            continue
        if ruled:
            yield _Filling(line.rindex("-", one, other) + 1, "-" * room, True)
            continue
        before = {"left": 0, "right": room, "both": room // 2}[side]
        if before:
            yield _Filling(one + 1, " " * before, True)
        if room > before:
            yield _Filling(other, " " * (room - before), False)
