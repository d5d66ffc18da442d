"""Where a long text breaks into rows of a given width, worked out no further than needed."""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len

from mast_tui.safe_text import safe_line_map

BLOCK_CHARS: Final = 4096
"""Longer physical lines are laid out in blocks of this many code points, so that one line of
10 MB costs no more at a time than a short one."""

MAX_CLUSTER: Final = 32
"""Most code points that are kept together because each joins the one before it."""

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


class TextLayout:
    """A text wrapped to a width in cells; rows are found in order and remembered as offsets.

    ``extend`` works out more rows; ``rows`` is how many are known and ``complete`` whether that is
    all. Memory is two machine words a row, beside the text itself.
    """

    def __init__(self, text: str, width: int) -> None:
        self.text = text
        self.width = max(4, width)
        self._starts = array("Q")
        self._next = 0
        self._done = not text
        if not text:
            self._starts.append(0)

    @property
    def rows(self) -> int:
        """How many rows are known so far."""
        return len(self._starts)

    @property
    def complete(self) -> bool:
        """Whether all rows are known."""
        return self._done

    def extend(self, until: int) -> None:
        """Work out rows until there are ``until`` of them or the text ends."""
        while not self._done and len(self._starts) < until:
            self._lay_out_block()

    def row(self, index: int) -> Row:
        """The row at ``index``, which must be known."""
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else self._known_end()
        shown, columns = safe_line_map(_without_break(self.text[start:end]))
        return Row(shown, start, end, None if columns is None else tuple(columns))

    def row_of(self, offset: int) -> int:
        """The row in which the code point at ``offset`` stands; works out rows up to there."""
        while not self._done and self._next <= offset:
            self._lay_out_block()
        return max(0, bisect_right(self._starts, offset) - 1)

    def _known_end(self) -> int:
        return len(self.text) if self._done else self._next

    def _lay_out_block(self) -> None:
        start = self._next
        text = self.text
        # A line break just behind a full block belongs to it, else it would make an empty row.
        newline = text.find("\n", start, start + BLOCK_CHARS + 2)
        if newline >= 0:
            end = newline + 1
        else:
            end = min(len(text), start + BLOCK_CHARS)
            if end < len(text):
                end = _break_before(text, start + 1, end)
        self._cut(start, end)
        self._next = end
        if end >= len(text):
            self._done = True
            if text.endswith("\n"):
                self._starts.append(len(text))

    def _cut(self, start: int, end: int) -> None:
        self._starts.append(start)
        block = _without_break(self.text[start:end])
        shown, columns = safe_line_map(block)
        if columns is None and len(block) <= self.width and block.isascii():
            return
        ascii_only = shown.isascii()
        origin = position = 0
        while True:
            if ascii_only:
                fits = position + self.width
            else:
                fits = position + _fitting(shown[position : position + self.width], self.width)
            if fits >= len(shown):
                return
            space = shown.rfind(" ", position + self.width // 2, fits + 1)
            origin = _row_begin(block, columns, origin, space + 1 if space > 0 else fits)
            position = origin if columns is None else columns[origin]
            if position >= len(shown):
                return
            self._starts.append(start + origin)


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


def _break_before(text: str, least: int, at: int) -> int:
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
