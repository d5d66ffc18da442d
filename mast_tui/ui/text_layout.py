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
        """The part of ``shown`` that stands for the original's ``start`` to ``end``, or None."""
        start, end = max(start, self.start), min(end, self.end)
        if start >= end:
            return None
        if self.columns is None:
            return start - self.start, end - self.start
        last = end - self.start
        stop = self.columns[last] if last < len(self.columns) else len(self.shown)
        return self.columns[start - self.start], stop

    def offset_at(self, column: int) -> int:
        """The code point of the original that stands at this offset of ``shown``."""
        if self.columns is None:
            return min(self.start + column, max(self.start, self.end - 1))
        return self.start + max(0, bisect_right(self.columns, column) - 1)


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
        shown_end = end
        if shown_end > start and self.text[shown_end - 1] == "\n":
            shown_end -= 1
            if shown_end > start and self.text[shown_end - 1] == "\r":
                shown_end -= 1
        shown, columns = safe_line_map(self.text[start:shown_end])
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
        newline = text.find("\n", start, start + BLOCK_CHARS)
        if newline >= 0:
            end = newline + 1
        else:
            end = min(len(text), start + BLOCK_CHARS)
            while end < len(text) and end > start + 1 and _joins(text[end]):
                end -= 1
        self._cut(start, end)
        self._next = end
        if end >= len(text):
            self._done = True
            if text.endswith("\n"):
                self._starts.append(len(text))

    def _cut(self, start: int, end: int) -> None:
        block = self.text[start:end].rstrip("\r\n")
        shown, columns = safe_line_map(block)
        if columns is None and len(block) <= self.width and block.isascii():
            self._starts.append(start)
            return
        position = 0
        while True:
            self._starts.append(start + _original(position, columns))
            if shown.isascii():
                fits = position + self.width
            else:
                fits = position + _fitting(shown[position : position + self.width], self.width)
            if fits >= len(shown):
                return
            space = shown.rfind(" ", position + self.width // 2, fits + 1)
            cut = space + 1 if space > 0 else fits
            while cut > position + 1 and _joins(shown[cut]):
                cut -= 1
            if columns is not None:
                cut = _boundary(cut, position, columns)
            position = cut


def _original(shown: int, columns: list[int] | None) -> int:
    return shown if columns is None else max(0, bisect_right(columns, shown) - 1)


def _boundary(cut: int, position: int, columns: list[int]) -> int:
    """The place at or before ``cut`` where an original code point begins, after ``position``."""
    at = columns[bisect_right(columns, cut) - 1]
    if at > position:
        return at
    following = bisect_right(columns, position)
    return columns[following] if following < len(columns) else cut


def _joins(char: str) -> bool:
    """Whether a row may not begin with this code point: it belongs to the one before."""
    return char == _ZERO_WIDTH_JOINER or unicodedata.combining(char) != 0


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
