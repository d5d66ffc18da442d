"""Where a text of any length breaks into rows, worked out around what is looked at."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from itertools import accumulate
from typing import Final

from mast_tui.ui.text.rows import (
    BLOCK_CHARS,
    REACH,
    Readable,
    Row,
    block_at,
    cut_block,
    make_row,
)

CHUNK_CHARS: Final = 4 * BLOCK_CHARS
"""Rows are worked out for about this many code points at a time."""

_KEPT_CHUNKS: Final = 16

UNWRAPPED: Final = 1 << 20
"""The width of a layout that breaks no line; longer ones than a block still go on below."""


class TextLayout:
    """A text wrapped to a width in cells, in chunks of which only those asked for are worked out.

    Of a chunk that was not looked at yet the number of rows is an estimate, so that the number of
    a row may change when a chunk above it is worked out; offsets never do. Beside the text itself
    the memory is a few machine words a chunk, and the rows of some chunks.
    """

    def __init__(self, text: Readable, width: int) -> None:
        self.text = text
        self.width = max(4, width)
        self._kept: OrderedDict[int, array[int]] = OrderedDict()
        self._begins: dict[int, int] = {}
        self._before: list[int] | None = None
        chunks = self._chunks()
        self._counts = array("L", [1]) * chunks
        self._known = bytearray(chunks)
        self._unknown = chunks
        self._next = 0
        usual = len(self._starts(0))
        for chunk in range(1, chunks):
            self._counts[chunk] = usual
        self._before = None

    @property
    def rows(self) -> int:
        """How many rows there are: exact when the layout is complete, else an estimate."""
        return self._sums()[-1]

    def changed_from(self, offset: int) -> None:
        """From this code point on the text reads otherwise; before it rows stay where they are."""
        first = max(0, offset - 2 * REACH) // CHUNK_CHARS
        for chunk in [chunk for chunk in self._kept if chunk >= first]:
            del self._kept[chunk]
        for chunk in [chunk for chunk in self._begins if chunk >= first]:
            del self._begins[chunk]
        usual = self._counts[0]
        chunks = self._chunks()
        self._counts = self._counts[:first] + array("L", [usual]) * max(1, chunks - first)
        self._known = self._known[:first] + bytearray(len(self._counts) - first)
        self._unknown = self._known.count(0)
        self._next = min(self._next, first)
        self._before = None

    def _chunks(self) -> int:
        chunks = max(1, -(-len(self.text) // CHUNK_CHARS))
        last = chunks > 1 and self._begin(chunks - 1) >= len(self.text)
        return chunks - 1 if last else chunks

    @property
    def complete(self) -> bool:
        """Whether the number of rows is exact."""
        return not self._unknown

    def extend(self, until: int) -> None:
        """Work out chunks from the top on until ``until`` rows are known, or all."""
        while self._unknown and (self._first_unknown() == 0 or self._sums()[self._next] < until):
            self._starts(self._next)

    def work_out_next(self) -> None:
        """Work out the first chunk that is not known yet."""
        if self._unknown:
            self._starts(self._first_unknown())

    def row(self, index: int) -> Row:
        """The row that has this number once its chunk is worked out."""
        while True:
            chunk = bisect_right(self._sums(), index) - 1
            if chunk >= len(self._counts):
                chunk = len(self._counts) - 1
            if self._known[chunk]:
                return self._row(chunk, index - self._sums()[chunk])
            self._starts(chunk)

    def row_of(self, offset: int) -> int:
        """The number of the row in which the code point at ``offset`` stands."""
        chunk, place = self._place_of(offset)
        return self._sums()[chunk] + place

    def row_at(self, offset: int) -> Row:
        """The row in which the code point at ``offset`` stands."""
        return self._row(*self._place_of(offset))

    def step(self, offset: int, rows: int) -> int:
        """Where the row begins that is ``rows`` below that of ``offset`` (negative: above).

        At the ends of the text it is the first or last row. Only the chunks between are worked
        out.
        """
        chunk, place = self._place_of(offset)
        place += rows
        while place < 0 and chunk > 0:
            chunk -= 1
            place += len(self._starts(chunk))
        while place >= (count := len(self._starts(chunk))) and chunk + 1 < len(self._counts):
            place -= count
            chunk += 1
        starts = self._starts(chunk)
        return starts[max(0, min(place, len(starts) - 1))]

    def _place_of(self, offset: int) -> tuple[int, int]:
        """The chunk of a code point, and the number of its row in it."""
        offset = max(0, min(offset, len(self.text)))
        chunk = min(offset // CHUNK_CHARS, len(self._counts) - 1)
        if self._begin(chunk) > offset:
            chunk -= 1
        return chunk, max(0, bisect_right(self._starts(chunk), offset) - 1)

    def _row(self, chunk: int, place: int) -> Row:
        starts = self._starts(chunk)
        start = starts[min(place, len(starts) - 1)]
        end = starts[place + 1] if place + 1 < len(starts) else self._end(chunk)
        return make_row(self.text, start, end)

    def _begin(self, chunk: int) -> int:
        """Where the first block begins that begins in this chunk's part of the text."""
        offset = chunk * CHUNK_CHARS
        if offset == 0 or offset >= len(self.text):
            return min(offset, len(self.text))
        begin = self._begins.get(chunk)
        if begin is None:
            start, end = block_at(self.text, offset)
            begin = self._begins[chunk] = start if start == offset else end
        return begin

    def _end(self, chunk: int) -> int:
        return len(self.text) if chunk + 1 == len(self._counts) else self._begin(chunk + 1)

    def _starts(self, chunk: int) -> array[int]:
        """Where the rows of a chunk begin."""
        starts = self._kept.get(chunk)
        if starts is not None:
            self._kept.move_to_end(chunk)
            return starts
        starts = self._work_out(self._begin(chunk), self._end(chunk))
        self._kept[chunk] = starts
        if len(self._kept) > _KEPT_CHUNKS:
            self._kept.popitem(last=False)
        if not self._known[chunk]:
            self._known[chunk] = 1
            self._unknown -= 1
            if self._counts[chunk] != len(starts):
                self._counts[chunk] = len(starts)
                self._before = None
        return starts

    def _work_out(self, start: int, end: int) -> array[int]:
        text, starts = self.text, array("Q")
        at = start
        while at < end:
            # Most lines are short and whole: they need no look at what is around them.
            newline = text.find("\n", at, at + BLOCK_CHARS + 2)
            if newline >= 0 and (at == 0 or text[at - 1] == "\n"):
                stop = newline + 1
            else:
                stop = block_at(text, at)[1]
            cut_block(text, at, stop, self.width, starts)
            at = stop
        if end >= len(text) and (not text or text.endswith("\n")):
            starts.append(len(text))
        return starts

    def _first_unknown(self) -> int:
        while self._next < len(self._known) and self._known[self._next]:
            self._next += 1
        return self._next

    def _sums(self) -> list[int]:
        """How many rows stand before each chunk, and at the end how many there are."""
        if self._before is None:
            self._before = list(accumulate(self._counts, initial=0))
        return self._before
