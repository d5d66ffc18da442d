"""The layout of a text of any length in rows.

Line breaks depend only on the text near a position, so that the rows at any position of a long text
are computed without reading all text before it.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Protocol

from rich.cells import cell_len, set_cell_size

from mast_tui.safe_text import safe_line_map
from mast_tui.ui.text.tables import MarkdownTables

_WORD: Final = re.compile(r"\w+|[^\w\s]+")
_REACH: Final = 1 << 16
"""The code points within which a neighbouring word is searched."""


def word_at(text: str, offset: int) -> tuple[int, int] | None:
    """Return the range of the word at an offset, or of the next word, or None at the end.

    Args:
        text: The text.
        offset: The offset of a code point.
    """
    start = max(0, min(offset, len(text)))
    low = max(0, start - 256)
    for match in _WORD.finditer(text, low, min(len(text), start + _REACH)):
        if match.end() > start:
            return match.span()
    return None


def next_word(text: str, end: int) -> tuple[int, int] | None:
    """Return the range of the first word after an offset, or None.

    Args:
        text: The text.
        end: The offset.
    """
    match = _WORD.search(text, end, min(len(text), end + _REACH))
    return match.span() if match else None


def previous_word(text: str, start: int) -> tuple[int, int] | None:
    """Return the range of the last word before an offset, or None.

    Args:
        text: The text.
        start: The offset.
    """
    window = 256
    while True:
        low = max(0, start - window)
        word = None
        for match in _WORD.finditer(text, low, start):
            if match.start() > low or low == 0:
                word = match.span()
        if word is not None or low == 0 or window > _REACH:
            return word
        window *= 4


@dataclass(frozen=True, slots=True)
class QuoteCursor:
    """A quote from the word ``anchor`` to the word ``head`` under the cursor.

    Until the anchor is ``fixed`` a motion moves the quote of one word; then it extends the quote.
    """

    anchor: tuple[int, int]
    head: tuple[int, int]
    fixed: bool = False

    @property
    def start(self) -> int:
        """The first code point of the quote."""
        return min(self.anchor[0], self.head[0])

    @property
    def end(self) -> int:
        """The code point after the quote."""
        return max(self.anchor[1], self.head[1])

    def at(self, word: tuple[int, int] | None) -> QuoteCursor:
        """Return the quote with the cursor on another word."""
        if word is None:
            return self
        return QuoteCursor(self.anchor if self.fixed else word, word, self.fixed)

    def fix(self) -> QuoteCursor:
        """Return a quote that begins at the cursor."""
        return QuoteCursor(self.head, self.head, True)


BLOCK_CHARS: Final = 4096
"""The approximate code points of a block, into which longer lines are cut, so that a line of 10 MB
costs no more at a time than a short one."""

MAX_CLUSTER: Final = 32
"""The most code points of a cluster, in which each code point joins the one before it."""

_LEAST_BLOCK: Final = 64
"""The fewest code points between the begin of a line and its first cut."""

REACH: Final = 2 * BLOCK_CHARS
"""The code points around a position on which the ends of its block depend."""

_ZERO_WIDTH_JOINER: Final = "\u200d"


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row: the shown text, and the range of the original that it shows.

    ``columns`` holds the offset in ``shown`` of each code point between ``start`` and ``end``; it
    is None if the two are equal. The row is drawn ``indent`` cells from the left, so that the rows
    of a line are aligned with its first word.
    """

    shown: str
    start: int
    end: int
    columns: tuple[int, ...] | None
    indent: int = 0

    def slice_of(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the range in ``shown`` of a range of the original, or None if it is not shown.

        Args:
            start: The first code point of the range.
            end: The code point after the range.
        """
        first = self._column(start)
        stop = self._column(end)
        return (first, stop) if first < stop else None

    def _column(self, offset: int) -> int:
        number = max(0, offset - self.start)
        if self.columns is None:
            return min(number, len(self.shown))
        return self.columns[min(number, len(self.columns) - 1)]

    def offset_at(self, column: int) -> int:
        """Return the code point of the original at an offset of ``shown``."""
        number = column
        if self.columns is not None:
            number = bisect_right(self.columns, column) - 1
        return max(self.start, min(self.start + number, self.end - 1))


class Readable(Protocol):
    """The interface of texts that are read in parts; ``str`` is one."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int | slice, /) -> str: ...
    def find(self, part: str, begin: int, end: int, /) -> int: ...
    def rfind(self, part: str, begin: int, end: int, /) -> int: ...
    def endswith(self, part: str, /) -> bool: ...


def block_at(text: Readable, offset: int) -> tuple[int, int]:
    """Return the range of the block around an offset, with its line break.

    A block is a line, or a part of a line that is longer than ``BLOCK_CHARS``.

    Args:
        text: The text.
        offset: The offset of a code point.
    """
    begin: int | None = text.rfind("\n", max(0, offset - REACH), offset) + 1
    if begin == 0 and offset > REACH:
        begin = None
    end: int | None = text.find("\n", offset, offset + REACH) + 1
    if end == 0:
        end = len(text) if offset + REACH >= len(text) else None
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
    """Return the offset of the cut near a multiple of the block size, or None near a line's end."""
    if not 0 < grid < len(text):
        return None
    cut = _break_before(text, grid - MAX_CLUSTER + 1, grid)
    return None if "\n" in text[cut - _LEAST_BLOCK : cut + 2] else cut


def make_row(text: Readable, start: int, end: int, *, rendered: bool = False) -> TextRow:
    """Return the row for a range of a text.

    Args:
        text: The text.
        start: The first code point of the row.
        end: The code point after the row and its line break.
        rendered: Whether to leave out the sequences for colours.
    """
    line = _without_break(text[start:end])
    shown, columns = safe_line_map(line, drops_colours=rendered)
    return TextRow(shown, start, end, None if columns is None else tuple(columns))


def cut_block(
    text: Readable, start: int, end: int, width: int, starts: array[int], *, rendered: bool = False
) -> None:
    """Append the starts of the rows of a block.

    Args:
        text: The text.
        start: The first code point of the block.
        end: The code point after the block.
        width: The cells of a row.
        starts: The list to extend.
        rendered: Whether to align the rows of a line with its first word, and to leave out the
            sequences for colours.
    """
    starts.append(start)
    block = _without_break(text[start:end])
    shown, columns = safe_line_map(block, drops_colours=rendered)
    if columns is None and len(block) <= width and block.isascii():
        return
    ascii_only = shown.isascii()
    origin = position = 0
    room = width
    while True:
        if ascii_only:
            fits = position + room
        else:
            fits = position + _fitting(shown[position : position + room], room)
        if fits >= len(shown):
            return
        space = shown.rfind(" ", position + room // 2, fits + 1)
        origin = _row_begin(block, columns, origin, space + 1 if space > 0 else fits)
        position = origin if columns is None else columns[origin]
        if position >= len(shown):
            return
        if rendered and room == width:
            room -= hanging_indent(text, start, end, width)
        starts.append(start + origin)


_HANGING: Final = re.compile(r"(?:[-+>|] *|[*•] +|\d{1,3}[.)] +)*")
_INDENT_SEEN: Final = 100


def hanging_indent(text: Readable, start: int, end: int, width: int) -> int:
    """Return the indent, in cells, of the rows of a block after the first.

    They are aligned with the text after a bullet or the sign of a diff; those of an indented line
    are indented two cells more. Blocks that do not begin a line have no indent.

    Args:
        text: The text.
        start: The first code point of the block.
        end: The code point after the block.
        width: The cells of a row, of which the indent is at most a third.
    """
    if start > 0 and text[start - 1] != "\n":
        return 0
    line = _without_break(text[start : min(end, start + _INDENT_SEEN)])
    shown, _ = safe_line_map(line, drops_colours=True)
    words = shown.lstrip(" ")
    spaces = len(shown) - len(words)
    match = _HANGING.match(words)
    signs = 0 if match is None else match.end()
    indent = spaces + signs if signs else spaces + 2 * bool(spaces)
    return min(indent, width // 3)


def _without_break(line: str) -> str:
    """Remove the line break; a stray carriage return stays, and is shown."""
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line


def _row_begin(block: str, columns: list[int] | None, origin: int, cut: int) -> int:
    """Return the code point at which the row after a cut of the shown text begins.

    Args:
        block: The block.
        columns: The offset in the shown text of each code point, or None if they are equal.
        origin: The begin of the previous row, which keeps at least one shown code point.
        cut: The offset of the cut in the shown text.
    """
    if columns is None:
        least = origin + 1
        begin = cut
    else:
        least = bisect_right(columns, columns[origin])
        begin = max(least, bisect_right(columns, cut) - 1)
    return _break_before(block, least, begin) if begin < len(block) else begin


def _break_before(text: Readable, least: int, most: int) -> int:
    """Return the last offset from ``least`` to ``most`` at which a row may begin.

    A cluster longer than ``MAX_CLUSTER`` is broken: foreign text may hold nothing else.
    """
    for offset in range(most, max(least - 1, most - MAX_CLUSTER), -1):
        if not _joins(text[offset]) and text[offset - 1] != _ZERO_WIDTH_JOINER:
            return offset
    return most


def _joins(char: str) -> bool:
    """Check whether a code point belongs to the one before it."""
    return (
        char == _ZERO_WIDTH_JOINER
        or unicodedata.category(char)[0] == "M"
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
    )


def _fitting(text: str, width: int) -> int:
    """Return the number of code points, at least one, that fit into a number of cells."""
    if cell_len(text) <= width:
        return len(text)
    low = 1
    high = len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if cell_len(text[:middle]) <= width:
            low = middle
        else:
            high = middle - 1
    return low


CHUNK_CHARS: Final = 4 * BLOCK_CHARS
"""The approximate code points whose rows are computed at a time."""

_CACHED_CHUNKS: Final = 16

UNWRAPPED: Final = 1 << 20
"""The width of a layout without line breaks, except between the blocks of a very long line."""


class TextLayout:
    """A text wrapped to a width in cells, in chunks that are computed on demand.

    The number of rows of a chunk is an estimate until it is computed. The number of a row may
    therefore change when a chunk above it is computed; offsets never change. Memory: a few machine
    words a chunk, and the rows of some chunks.
    """

    def __init__(self, text: Readable, width: int, *, rendered: bool = False) -> None:
        """Compute the first chunk.

        Args:
            text: The text.
            width: The cells of a row.
            rendered: Whether to align the rows of a line with its first word, to leave out the
                sequences for colours, and to align the columns of tables.
        """
        self.text = text
        self.width = max(4, width)
        self._rendered = rendered
        self._tables = MarkdownTables(text, self.width)
        self._cached_starts: OrderedDict[int, array[int]] = OrderedDict()
        self._begins: dict[int, int] = {}
        self._row_sums: list[int] | None = None
        chunks = self._chunks()
        self._counts = array("L", [1]) * chunks
        self._known = bytearray(chunks)
        self._unknown = chunks
        self._next = 0
        usual = len(self._starts(0))
        for chunk in range(1, chunks):
            self._counts[chunk] = usual
        self._row_sums = None

    @property
    def rows(self) -> int:
        """The number of rows, an estimate until the layout is complete."""
        return self._sums()[-1]

    def changed_from(self, offset: int) -> None:
        """Compute the rows again from a code point on, as the text has changed there."""
        self._tables.forget()
        first = max(0, offset - 2 * REACH) // CHUNK_CHARS
        for chunk in [chunk for chunk in self._cached_starts if chunk >= first]:
            del self._cached_starts[chunk]
        for chunk in [chunk for chunk in self._begins if chunk >= first]:
            del self._begins[chunk]
        usual = self._counts[0]
        chunks = self._chunks()
        self._counts = self._counts[:first] + array("L", [usual]) * max(1, chunks - first)
        self._known = self._known[:first] + bytearray(len(self._counts) - first)
        self._unknown = self._known.count(0)
        self._next = min(self._next, first)
        self._row_sums = None

    def _chunks(self) -> int:
        chunks = max(1, -(-len(self.text) // CHUNK_CHARS))
        last = chunks > 1 and self._begin(chunks - 1) >= len(self.text)
        return chunks - 1 if last else chunks

    @property
    def complete(self) -> bool:
        """True if the number of rows is exact."""
        return not self._unknown

    def extend(self, until: int) -> None:
        """Compute chunks from the top until a number of rows is known."""
        while self._unknown and (self._first_unknown() == 0 or self._sums()[self._next] < until):
            self._starts(self._next)

    def work_out_next(self) -> None:
        """Compute the first unknown chunk."""
        if self._unknown:
            self._starts(self._first_unknown())

    def row(self, index: int) -> TextRow:
        """Compute the chunk of a row, and return the row."""
        while True:
            chunk = bisect_right(self._sums(), index) - 1
            if chunk >= len(self._counts):
                chunk = len(self._counts) - 1
            if self._known[chunk]:
                return self._row(chunk, index - self._sums()[chunk])
            self._starts(chunk)

    def row_of(self, offset: int) -> int:
        """Return the number of the row with a code point."""
        chunk, number = self._position_of(offset)
        return self._sums()[chunk] + number

    def row_at(self, offset: int) -> TextRow:
        """Return the row with a code point."""
        return self._row(*self._position_of(offset))

    def step(self, offset: int, rows: int) -> int:
        """Return the begin of the row a number of rows below or above a code point.

        Only the chunks between the two rows are computed.

        Args:
            offset: The offset of the code point.
            rows: The number of rows, negative for rows above.

        Returns:
            The begin of the row; that of the first or last row if there are fewer rows.
        """
        chunk, number = self._position_of(offset)
        number += rows
        while number < 0 and chunk > 0:
            chunk -= 1
            number += len(self._starts(chunk))
        while number >= (count := len(self._starts(chunk))) and chunk + 1 < len(self._counts):
            number -= count
            chunk += 1
        starts = self._starts(chunk)
        return starts[max(0, min(number, len(starts) - 1))]

    def _position_of(self, offset: int) -> tuple[int, int]:
        """Return the chunk of a code point, and the number of its row in the chunk."""
        offset = max(0, min(offset, len(self.text)))
        chunk = min(offset // CHUNK_CHARS, len(self._counts) - 1)
        if self._begin(chunk) > offset:
            chunk -= 1
        return chunk, max(0, bisect_right(self._starts(chunk), offset) - 1)

    def _row(self, chunk: int, number: int) -> TextRow:
        starts = self._starts(chunk)
        start = starts[min(number, len(starts) - 1)]
        end = starts[number + 1] if number + 1 < len(starts) else self._end(chunk)
        row = make_row(self.text, start, end, rendered=self._rendered)
        if not self._rendered:
            return row
        if start == 0 or self.text[start - 1] == "\n":
            if end < len(self.text) and self.text[end - 1] != "\n":
                return row
            shown, columns = self._tables.filled(start, row.shown, row.columns)
            return replace(row, shown=shown, columns=None if columns is None else tuple(columns))
        block, stop = block_at(self.text, start)
        if block == start:
            return row
        return replace(row, indent=hanging_indent(self.text, block, stop, self.width))

    def _begin(self, chunk: int) -> int:
        """Return the begin of the first block of a chunk."""
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
        """Return the starts of the rows of a chunk."""
        starts = self._cached_starts.get(chunk)
        if starts is not None:
            self._cached_starts.move_to_end(chunk)
            return starts
        starts = self._compute(self._begin(chunk), self._end(chunk))
        self._cached_starts[chunk] = starts
        if len(self._cached_starts) > _CACHED_CHUNKS:
            self._cached_starts.popitem(last=False)
        if not self._known[chunk]:
            self._known[chunk] = 1
            self._unknown -= 1
            if self._counts[chunk] != len(starts):
                self._counts[chunk] = len(starts)
                self._row_sums = None
        return starts

    def _compute(self, start: int, end: int) -> array[int]:
        text = self.text
        starts = array("Q")
        offset = start
        while offset < end:
            # Fast path: most lines are short, and each is one block.
            newline = text.find("\n", offset, offset + BLOCK_CHARS + 2)
            if newline >= 0 and (offset == 0 or text[offset - 1] == "\n"):
                stop = newline + 1
            else:
                stop = block_at(text, offset)[1]
            cut_block(text, offset, stop, self.width, starts, rendered=self._rendered)
            offset = stop
        if end >= len(text) and (not text or text.endswith("\n")):
            starts.append(len(text))
        return starts

    def _first_unknown(self) -> int:
        while self._next < len(self._known) and self._known[self._next]:
            self._next += 1
        return self._next

    def _sums(self) -> list[int]:
        """Return the number of rows before each chunk, and the number of all rows at the end."""
        if self._row_sums is None:
            self._row_sums = list(accumulate(self._counts, initial=0))
        return self._row_sums


MOST_WRAPPED: Final = 12
"""The most rows of a quote or a note; a longer one ends in an ellipsis."""


def wrapped(text: str, cells: int, most: int = MOST_WRAPPED) -> list[str]:
    """Wrap a text into rows that are safe for display.

    Args:
        text: The text.
        cells: The width of a row.
        most: The most rows; a longer text ends in an ellipsis.
    """
    if not text:
        return []
    layout = TextLayout(text, cells)
    layout.extend(most + 1)
    rows = [layout.row(i).shown for i in range(min(layout.rows, most))]
    if layout.rows > most:
        rows[-1] = set_cell_size(rows[-1], min(cells - 1, cell_len(rows[-1]))) + "…"
    return rows
