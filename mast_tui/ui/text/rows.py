"""The rows of one line of text: where it is cut, and what is shown of each.

All of it is decided by the text near a place alone, so that the rows at any place of a long text
are found without looking at what is before it.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, Protocol

from rich.cells import cell_len

from mast_tui.safe_text import safe_line_map

BLOCK_CHARS: Final = 4096
"""Longer physical lines are cut into blocks of about this many code points, so that one line of
10 MB costs no more at a time than a short one."""

MAX_CLUSTER: Final = 32
"""Most code points that are kept together because each joins the one before it."""

_LEAST_BLOCK: Final = 64
"""A line is not cut nearer to its beginning than this."""

REACH: Final = 2 * BLOCK_CHARS
"""Where blocks begin and end is told by what is no further away than this."""

_ZERO_WIDTH_JOINER: Final = "\u200d"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the shown text, and which code points of the original it stands for.

    ``columns`` holds, for each code point of the original between ``start`` and ``end``, its
    offset in ``shown``; it is None where the two are the same.
    """

    shown: str
    start: int
    end: int
    columns: tuple[int, ...] | None

    def slice_of(self, start: int, end: int) -> tuple[int, int] | None:
        """The part of ``shown`` that stands for the original's ``start`` to ``end``, or None.

        Line breaks, and what is dropped for display, stand for nothing.
        """
        first, stop = self._column(start), self._column(end)
        return (first, stop) if first < stop else None

    def _column(self, offset: int) -> int:
        place = max(0, offset - self.start)
        if self.columns is None:
            return min(place, len(self.shown))
        return self.columns[min(place, len(self.columns) - 1)]

    def offset_at(self, column: int) -> int:
        """The code point of the original that stands at this offset of ``shown``."""
        place = column
        if self.columns is not None:
            place = bisect_right(self.columns, column) - 1
        return max(self.start, min(self.start + place, self.end - 1))


class Readable(Protocol):
    """A text of which only parts are ever looked at; ``str`` is one."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int | slice, /) -> str: ...
    def find(self, part: str, begin: int, end: int, /) -> int: ...
    def rfind(self, part: str, begin: int, end: int, /) -> int: ...
    def endswith(self, part: str, /) -> bool: ...


def block_at(text: Readable, offset: int) -> tuple[int, int]:
    """The block in which the code point at ``offset`` stands: start and end, with its line break.

    A block is a physical line, or a part of one that is longer than ``BLOCK_CHARS``.
    """
    found = text.rfind("\n", max(0, offset - REACH), offset)
    begin = found + 1 if found >= 0 else 0 if offset <= REACH else None
    found = text.find("\n", offset, offset + REACH)
    end = found + 1 if found >= 0 else len(text) if offset + REACH >= len(text) else None
    if begin is not None and end is not None and end - begin <= BLOCK_CHARS + 2:
        return begin, end
    grid = (offset // BLOCK_CHARS + 1) * BLOCK_CHARS
    cuts = (_cut_near(text, grid - back * BLOCK_CHARS) for back in range(3))
    start = next((cut for cut in cuts if cut is not None and cut <= offset), begin or 0)
    if begin is not None:
        start = max(start, begin)
    grid = start // BLOCK_CHARS * BLOCK_CHARS + BLOCK_CHARS
    while end is None or grid - MAX_CLUSTER < end:
        cut = _cut_near(text, grid)
        if cut is not None and cut > start:
            return start, cut if end is None else min(cut, end)
        grid += BLOCK_CHARS
    return start, end


def _cut_near(text: Readable, grid: int) -> int | None:
    """Where a long line is cut at this place; None where it begins or ends too near."""
    if not 0 < grid < len(text):
        return None
    at = _break_before(text, grid - MAX_CLUSTER + 1, grid)
    return None if "\n" in text[at - _LEAST_BLOCK : at + 2] else at


def make_row(text: Readable, start: int, end: int) -> Row:
    """The row that stands for the code points ``start`` to ``end``."""
    shown, columns = safe_line_map(_without_break(text[start:end]))
    return Row(shown, start, end, None if columns is None else tuple(columns))


def cut_block(text: Readable, start: int, end: int, width: int, starts: array[int]) -> None:
    """Append where the rows of a block begin, each ``width`` cells wide at most."""
    starts.append(start)
    block = _without_break(text[start:end])
    shown, columns = safe_line_map(block)
    if columns is None and len(block) <= width and block.isascii():
        return
    ascii_only = shown.isascii()
    origin = position = 0
    while True:
        if ascii_only:
            fits = position + width
        else:
            fits = position + _fitting(shown[position : position + width], width)
        if fits >= len(shown):
            return
        space = shown.rfind(" ", position + width // 2, fits + 1)
        origin = _row_begin(block, columns, origin, space + 1 if space > 0 else fits)
        position = origin if columns is None else columns[origin]
        if position >= len(shown):
            return
        starts.append(start + origin)


def _without_break(line: str) -> str:
    """A line without the break that ends it; a stray carriage return is shown, and stays."""
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line


def _row_begin(block: str, columns: list[int] | None, origin: int, cut: int) -> int:
    """The code point at which a row begins that should begin at ``cut`` of the shown text.

    ``origin`` is where the row before begins; at least one shown code point stays in that one.
    """
    if columns is None:
        at, least = cut, origin + 1
    else:
        least = bisect_right(columns, columns[origin])
        at = max(least, bisect_right(columns, cut) - 1)
    return _break_before(block, least, at) if at < len(block) else at


def _break_before(text: Readable, least: int, at: int) -> int:
    """The last place from ``least`` to ``at`` (inside ``text``) where a row may begin.

    A cluster longer than ``MAX_CLUSTER`` is broken: foreign text may hold nothing else.
    """
    for place in range(at, max(least - 1, at - MAX_CLUSTER), -1):
        if not _joins(text[place]) and text[place - 1] != _ZERO_WIDTH_JOINER:
            return place
    return at


def _joins(char: str) -> bool:
    """Whether a row may not begin with this code point: it belongs to the one before."""
    return (
        char == _ZERO_WIDTH_JOINER
        or unicodedata.category(char)[0] == "M"
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
    )


def _fitting(text: str, width: int) -> int:
    """How many code points of ``text``, one at least, fit into ``width`` cells."""
    if cell_len(text) <= width:
        return len(text)
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if cell_len(text[:middle]) <= width:
            low = middle
        else:
            high = middle - 1
    return low
