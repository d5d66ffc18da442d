"""A text of any length as rows: where it breaks, and what is shown of each row.

All of it is decided by the text near a place alone, so that the rows at any place of a long text
are found without looking at what is before it.
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
"""How far a neighbouring word is looked for, in code points."""


def word_at(text: str, offset: int) -> tuple[int, int] | None:
    """Start and end of the word at ``offset``, or of the next one, or None at the text's end."""
    start = max(0, min(offset, len(text)))
    low = max(0, start - 256)
    for match in _WORD.finditer(text, low, min(len(text), start + _REACH)):
        if match.end() > start:
            return match.span()
    return None


def next_word(text: str, end: int) -> tuple[int, int] | None:
    """The word after ``end``, or None."""
    match = _WORD.search(text, end, min(len(text), end + _REACH))
    return match.span() if match else None


def previous_word(text: str, start: int) -> tuple[int, int] | None:
    """The word before ``start``, or None."""
    window = 256
    while True:
        low = max(0, start - window)
        found = None
        for match in _WORD.finditer(text, low, start):
            if match.start() > low or low == 0:
                found = match.span()
        if found is not None or low == 0 or window > _REACH:
            return found
        window *= 4


@dataclass(frozen=True, slots=True)
class QuoteCursor:
    """A word under the cursor, and the word where the quote was begun.

    Before ``fixed`` a motion moves the one-word quote; afterwards it stretches it.
    """

    anchor: tuple[int, int]
    head: tuple[int, int]
    fixed: bool = False

    @property
    def start(self) -> int:
        """First code point of the quote."""
        return min(self.anchor[0], self.head[0])

    @property
    def end(self) -> int:
        """Code point after the quote's last."""
        return max(self.anchor[1], self.head[1])

    def at(self, word: tuple[int, int] | None) -> QuoteCursor:
        """The quote after the cursor has gone to ``word``."""
        if word is None:
            return self
        return QuoteCursor(self.anchor if self.fixed else word, word, self.fixed)

    def fix(self) -> QuoteCursor:
        """The quote begins where the cursor is."""
        return QuoteCursor(self.head, self.head, True)


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
class TextRow:
    """One row: the shown text, and which code points of the original it stands for.

    ``columns`` holds, for each code point of the original between ``start`` and ``end``, its
    offset in ``shown``; it is None where the two are the same. The row is drawn ``indent`` cells
    from the left: rows of a line hang under where its words begin.
    """

    shown: str
    start: int
    end: int
    columns: tuple[int, ...] | None
    indent: int = 0

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


def make_row(text: Readable, start: int, end: int, *, rendered: bool = False) -> TextRow:
    """Return the row that stands for the code points ``start`` to ``end``.

    Args:
        text: What it is a row of.
        start: Where it begins.
        end: Where it ends, behind its line break if it has one.
        rendered: Whether rows of a line hang under its words, and colours are left out.
    """
    line = _without_break(text[start:end])
    shown, columns = safe_line_map(line, drops_colours=rendered)
    return TextRow(shown, start, end, None if columns is None else tuple(columns))


def cut_block(
    text: Readable, start: int, end: int, width: int, starts: array[int], *, rendered: bool = False
) -> None:
    """Append where the rows of a block begin.

    Args:
        text: What it is a block of.
        start: Where it begins.
        end: Where it ends.
        width: How many cells a row has.
        starts: What to append to.
        rendered: Whether rows of a line hang under its words, and colours are left out.
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
    """Return how far the further rows of a block stand from the left.

    They hang under the words behind a bullet or the sign of a diff; under what is itself indented
    a little further. Blocks that do not begin a line have no indent.

    Args:
        text: What it is a block of.
        start: Where it begins.
        end: Where it ends.
        width: How many cells a row has, of which at most a third is left free.
    """
    if start > 0 and text[start - 1] != "\n":
        return 0
    line = _without_break(text[start : min(end, start + _INDENT_SEEN)])
    shown, _ = safe_line_map(line, drops_colours=True)
    words = shown.lstrip(" ")
    spaces = len(shown) - len(words)
    found = _HANGING.match(words)
    signs = 0 if found is None else found.end()
    indent = spaces + signs if signs else spaces + 2 * bool(spaces)
    return min(indent, width // 3)


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

    def __init__(self, text: Readable, width: int, *, rendered: bool = False) -> None:
        """Begin with the first chunk.

        Args:
            text: What to lay out.
            width: Cells of a row.
            rendered: Whether rows of a line hang under its words, sequences that only set
                colours are left out, and columns of tables stand under one another.
        """
        self.text = text
        self.width = max(4, width)
        self._rendered = rendered
        self._tables = MarkdownTables(text, self.width)
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
        self._tables.forget()
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

    def row(self, index: int) -> TextRow:
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

    def row_at(self, offset: int) -> TextRow:
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

    def _row(self, chunk: int, place: int) -> TextRow:
        starts = self._starts(chunk)
        start = starts[min(place, len(starts) - 1)]
        end = starts[place + 1] if place + 1 < len(starts) else self._end(chunk)
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
            cut_block(text, at, stop, self.width, starts, rendered=self._rendered)
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


MOST_WRAPPED: Final = 12
"""Rows that a quote or a note may take before it ends in an ellipsis."""


def wrapped(text: str, cells: int, most: int = MOST_WRAPPED) -> list[str]:
    """Wrap a text into rows, fit for display.

    Args:
        text: What to wrap.
        cells: The width of a row.
        most: How many rows there may be; a longer text ends in an ellipsis.
    """
    if not text:
        return []
    layout = TextLayout(text, cells)
    layout.extend(most + 1)
    rows = [layout.row(i).shown for i in range(min(layout.rows, most))]
    if layout.rows > most:
        rows[-1] = set_cell_size(rows[-1], min(cells - 1, cell_len(rows[-1]))) + "…"
    return rows
