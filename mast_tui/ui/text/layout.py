"""The layout of a text of any length in rows, with aligned tables in Markdown.

Line breaks depend only on nearby text. So rows at any position are computed without reading all
text before it. Aligning a table changes only the drawn text, not its offsets.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, Protocol

from msgspec import Struct, structs
from rich.cells import cell_len, set_cell_size

from mast_tui.safe_text import safe_line_map

_WORD: Final = re.compile(r"\w+|[^\w\s]+")
_WORD_REACH_CHARS: Final = 1 << 16
"""The distance in code points within which a neighbouring word is searched."""

_WORD_WINDOW: Final = 256
"""The distance in code points that is searched first for the beginning of a word."""


def word_at(text: str, offset: int) -> tuple[int, int] | None:
    """Return the range of the word at an offset, or of the next word near it, or None.

    Args:
        text: The text.
        offset: The offset of a code point.
    """
    start = max(0, min(offset, len(text)))
    search_start = max(0, start - _WORD_WINDOW)
    matches = _WORD.finditer(text, search_start, min(len(text), start + _WORD_REACH_CHARS))
    return next((match.span() for match in matches if match.end() > start), None)


def next_word(text: str, offset: int) -> tuple[int, int] | None:
    """Return the range of the first word after an offset, or None if none is near.

    Args:
        text: The text.
        offset: The offset.
    """
    match = _WORD.search(text, offset, min(len(text), offset + _WORD_REACH_CHARS))
    return match.span() if match else None


def previous_word(text: str, start: int) -> tuple[int, int] | None:
    """Return the range of the last word before an offset, or None if none is near.

    Args:
        text: The text.
        start: The offset.
    """
    window = _WORD_WINDOW
    while True:
        window_start = max(0, start - window)
        word = None
        for match in _WORD.finditer(text, window_start, start):
            # A word at the edge of the window may begin before the edge.
            if match.start() > window_start or window_start == 0:
                word = match.span()
        if word is not None or window_start == 0 or window > _WORD_REACH_CHARS:
            return word
        window *= 4


class QuoteCursor(Struct, frozen=True):
    """A quote of whole words; one end of it follows the cursor.

    Attributes:
        anchor: The range of the word where the quote begins.
        head: The range of the word under the cursor, before or after the anchor.
        extends: True if a move of the cursor extends the quote. False if it moves a quote of one
            word.
    """

    anchor: tuple[int, int]
    head: tuple[int, int]
    extends: bool = False

    @property
    def start(self) -> int:
        """The first code point of the quote."""
        return min(self.anchor[0], self.head[0])

    @property
    def end(self) -> int:
        """The code point after the quote."""
        return max(self.anchor[1], self.head[1])

    def at(self, word: tuple[int, int] | None) -> QuoteCursor:
        """Return the quote with the cursor on another word, or the same quote for None."""
        if word is None:
            return self
        return QuoteCursor(self.anchor if self.extends else word, word, self.extends)

    def begun_at_cursor(self) -> QuoteCursor:
        """Return a quote that begins at the cursor."""
        return QuoteCursor(self.head, self.head, extends=True)


BLOCK_CHARS: Final = 4096
"""The approximate size of a block in code points.

Longer lines are cut into blocks, so that a line of 10 MB is laid out in parts.
"""

MAX_CLUSTER: Final = 32
"""The most code points of a cluster: code points that are displayed together."""

_LEAST_BLOCK: Final = 64
"""The fewest code points between the beginning of a line and a cut."""

REACH_CHARS: Final = 2 * BLOCK_CHARS
"""The distance in code points at which text may change the ends of a block."""

_ZERO_WIDTH_JOINER: Final = "\u200d"


class TextRow(Struct, frozen=True):
    """One row of a text.

    Attributes:
        shown: The text of the row as it is displayed.
        start: The first code point of the original text in the row.
        end: The code point of the original text after the row.
        columns: For each code point from ``start`` on, its offset in ``shown``; None if the offsets
            are equal.
        indent: The blank cells at the left of the row.
    """

    shown: str
    start: int
    end: int
    columns: tuple[int, ...] | None
    indent: int = 0

    def slice_of(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the range in ``shown`` of a range of the original, or None if nothing of it is
        shown.

        Args:
            start: The first code point of the range.
            end: The code point after the range.
        """
        first_column = self._column_of(start)
        end_column = self._column_of(end)
        return (first_column, end_column) if first_column < end_column else None

    def _column_of(self, offset: int) -> int:
        """Return the offset in ``shown`` of a code point of the original, limited to the row."""
        position = max(0, offset - self.start)
        if self.columns is None:
            return min(position, len(self.shown))
        return self.columns[min(position, len(self.columns) - 1)]

    def offset_at(self, column: int) -> int:
        """Return the offset in the original of a code point of ``shown``, limited to the row.

        Args:
            column: The offset of the code point in ``shown``.
        """
        position_in_row = column
        if self.columns is not None:
            position_in_row = bisect_right(self.columns, column) - 1
        return max(self.start, min(self.start + position_in_row, self.end - 1))


class Readable(Protocol):
    """A text that is read in parts, such as a ``str``."""

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
    line_start, line_end = _line_around(text, offset)
    # A line break of up to two code points does not make a line long.
    if line_start is not None and line_end is not None and line_end - line_start <= BLOCK_CHARS + 2:
        return line_start, line_end
    # The line is long, and is cut near multiples of the block size. The block lies between the last
    # cut before the offset and the next cut. Three multiples are tried for its start: the cut near
    # the first may be just before the offset, and the cut near the second is missing at an end of
    # the line.
    multiple = (offset // BLOCK_CHARS + 1) * BLOCK_CHARS
    cuts = (_cut_near(text, multiple - blocks * BLOCK_CHARS) for blocks in range(3))
    start = next((cut for cut in cuts if cut is not None and cut <= offset), line_start or 0)
    if line_start is not None:
        start = max(start, line_start)
    multiple = start // BLOCK_CHARS * BLOCK_CHARS + BLOCK_CHARS
    while line_end is None or multiple - MAX_CLUSTER < line_end:
        cut = _cut_near(text, multiple)
        if cut is not None and cut > start:
            return start, cut if line_end is None else min(cut, line_end)
        multiple += BLOCK_CHARS
    return start, line_end


def _line_around(text: Readable, offset: int) -> tuple[int | None, int | None]:
    """Return the range of the line around an offset.

    An end more than ``REACH_CHARS`` away is None.
    """
    line_start: int | None = text.rfind("\n", max(0, offset - REACH_CHARS), offset) + 1
    if line_start == 0 and offset > REACH_CHARS:
        line_start = None
    line_end: int | None = text.find("\n", offset, offset + REACH_CHARS) + 1
    if line_end == 0:
        line_end = len(text) if offset + REACH_CHARS >= len(text) else None
    return line_start, line_end


def _cut_near(text: Readable, multiple: int) -> int | None:
    """Return the offset of the cut near a multiple of the block size.

    Return None near an end of a line, where lines are not cut, and outside the text.
    """
    if not 0 < multiple < len(text):
        return None
    cut = _break_before(text, multiple - MAX_CLUSTER + 1, multiple)
    return None if "\n" in text[cut - _LEAST_BLOCK : cut + 2] else cut


def make_row(text: Readable, start: int, end: int, *, rendered: bool = False) -> TextRow:
    """Return the row for a range of a text.

    Args:
        text: The text.
        start: The first code point of the row.
        end: The code point after the row, including its line break.
        rendered: True to leave out colour sequences.
    """
    shown, columns = safe_line_map(_without_break(text[start:end]), drops_colours=rendered)
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
        starts: The array that the starts are appended to.
        rendered: True to leave out colour sequences, and to indent the rows of a line after its
            first.
    """
    starts.append(start)
    block = _without_break(text[start:end])
    # For each code point of the block its offset in ``shown``; None if the offsets are equal.
    shown, columns = safe_line_map(block, drops_colours=rendered)
    if columns is None and len(block) <= width and block.isascii():
        return
    is_ascii = shown.isascii()
    row_start = 0  # in the block
    shown_start = 0  # in the shown text
    row_width = width
    while True:
        cut = _row_cut(shown, shown_start, row_width, is_ascii=is_ascii)
        if cut is None:
            return
        row_start = _next_row_start(block, columns, row_start, cut)
        shown_start = row_start if columns is None else columns[row_start]
        if shown_start >= len(shown):
            return
        if rendered and row_width == width:  # after the first row
            row_width -= hanging_indent(text, start, end, width)
        starts.append(start + row_start)


def _row_cut(text: str, row_start: int, width: int, *, is_ascii: bool) -> int | None:
    """Return the offset at which a row ends, or None if the rest of the text fits.

    The row ends after a space in its second half, else at its width.
    """
    if is_ascii:
        cut = row_start + width
    else:
        cut = row_start + _fitting_length(text[row_start : row_start + width], width)
    if cut >= len(text):
        return None
    space = text.rfind(" ", row_start + width // 2, cut + 1)
    return space + 1 if space > 0 else cut


_HANGING: Final = re.compile(r"(?:[-+>|] *|[*•] +|\d{1,3}[.)] +)*")
"""Bullets, numbers, signs of citations and signs of diffs at the beginning of a line."""

_INDENT_CHARS: Final = 100
"""The code points at the beginning of a line that decide its indent."""


def hanging_indent(text: Readable, start: int, end: int, width: int) -> int:
    """Return the indent, in cells, of the rows of a block after the first row.

    - If the line begins with a bullet or the sign of a diff, the indent ends where its text begins.
    - If the line is indented, the indent is two cells more.
    - If the block does not begin a line, there is no indent.

    Args:
        text: The text.
        start: The first code point of the block.
        end: The code point after the block.
        width: The cells of a row. The indent is at most a third of it.
    """
    if start > 0 and text[start - 1] != "\n":
        return 0
    line = _without_break(text[start : min(end, start + _INDENT_CHARS)])
    shown, _ = safe_line_map(line, drops_colours=True)
    unindented = shown.lstrip(" ")
    indent = len(shown) - len(unindented)
    bullet = _HANGING.match(unindented)
    if bullet is not None and bullet.end() > 0:
        indent += bullet.end()
    elif indent:
        indent += 2
    return min(indent, width // 3)


def _without_break(line: str) -> str:
    """Remove the line break. A stray carriage return stays visible."""
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line


def _next_row_start(block: str, columns: list[int] | None, row_start: int, cut: int) -> int:
    """Return the code point at which the next row begins, at a cut or a little before it.

    Args:
        block: The block of text that is broken into rows.
        columns: For each code point its offset in the shown text; None if the offsets are equal.
        row_start: The start of the present row, which keeps at least one code point.
        cut: The offset of the cut in the shown text.
    """
    if columns is None:
        earliest_start = row_start + 1
        next_start = cut
    else:
        earliest_start = bisect_right(columns, columns[row_start])
        next_start = max(earliest_start, bisect_right(columns, cut) - 1)
    if next_start >= len(block):
        return next_start
    return _break_before(block, earliest_start, next_start)


def _break_before(text: Readable, earliest: int, latest: int) -> int:
    """Return the last offset from ``earliest`` to ``latest`` at which a row may begin.

    Clusters are kept together, unless they are longer than ``MAX_CLUSTER``.
    """
    for offset in range(latest, max(earliest - 1, latest - MAX_CLUSTER), -1):
        if not _belongs_to_previous(text[offset]) and text[offset - 1] != _ZERO_WIDTH_JOINER:
            return offset
    return latest


def _belongs_to_previous(char: str) -> bool:
    """Check if a code point is displayed together with the code point before it."""
    return (
        char == _ZERO_WIDTH_JOINER
        or unicodedata.category(char)[0] == "M"
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
    )


def _fitting_length(text: str, width: int) -> int:
    """Return the number of code points, at least one, that fit into ``width`` cells."""
    if cell_len(text) <= width:
        return len(text)
    lengths = range(1, len(text) + 1)
    return max(1, bisect_right(lengths, width, key=lambda length: cell_len(text[:length])))


CHUNK_CHARS: Final = 4 * BLOCK_CHARS
"""The approximate number of code points in a chunk. The rows of a chunk are computed together."""

_CACHED_CHUNKS: Final = 16

UNWRAPPED_WIDTH: Final = 1 << 20
"""The width of a layout in which only very long lines are broken."""


class TextLayout:
    """A text wrapped to a width in cells, in chunks that are computed on demand.

    The row count of a chunk is an estimate until the chunk is computed. Computing a chunk may
    therefore change the row numbers below it. Offsets never change.
    """

    def __init__(self, text: Readable, width: int, *, rendered: bool = False) -> None:
        """Compute the rows of the first chunk, and estimate as many rows for each other chunk.

        Args:
            text: The text.
            width: The cells of a row.
            rendered: True to leave out colour sequences, to indent continued lines, and to align
                tables.
        """
        self.text = text
        self.width = max(4, width)
        self._rendered = rendered
        self._tables = MarkdownTables(text, self.width)
        self._cached_starts: OrderedDict[int, array[int]] = OrderedDict()
        """The starts of the rows of the chunks that were used last."""
        self._chunk_starts: dict[int, int] = {}
        """The starts of chunks that were computed."""
        chunk_count = self._chunk_count()
        self._row_counts = array("L", [1]) * chunk_count
        """The number of rows of each chunk, or an estimate."""
        self._is_exact = bytearray(chunk_count)
        """For each chunk 1 if its row count is exact, else 0."""
        self._estimated_chunk_count = chunk_count
        """The number of chunks with an estimated row count."""
        self._first_estimated_chunk = 0
        """The first chunk that may have an estimated row count."""
        self._cached_row_sums: list[int] | None = None
        self._row_counts = array("L", [len(self._starts_in(0))]) * chunk_count

    @property
    def rows(self) -> int:
        """The number of rows, an estimate until the layout is complete."""
        return self._row_sums()[-1]

    def changed_from(self, offset: int) -> None:
        """Forget the rows from a code point on, because the text has changed there."""
        self._tables.forget()
        # A change affects blocks up to REACH_CHARS before it, and such a block begins up to
        # REACH_CHARS earlier.
        first = max(0, offset - 2 * REACH_CHARS) // CHUNK_CHARS
        for chunk in range(first, len(self._row_counts)):
            self._cached_starts.pop(chunk, None)
        self._chunk_starts = {
            chunk: start for chunk, start in self._chunk_starts.items() if chunk < first
        }
        # As many rows are expected in each chunk as in the first.
        estimates = array("L", [self._row_counts[0]]) * max(1, self._chunk_count() - first)
        self._row_counts = self._row_counts[:first] + estimates
        self._is_exact = self._is_exact[:first] + bytearray(len(estimates))
        self._estimated_chunk_count = self._is_exact.count(0)
        self._first_estimated_chunk = min(self._first_estimated_chunk, first)
        self._cached_row_sums = None

    def _chunk_count(self) -> int:
        """Return the number of chunks that the text has now. No chunk is empty."""
        count = max(1, math.ceil(len(self.text) / CHUNK_CHARS))
        is_last_empty = count > 1 and self._chunk_start(count - 1) >= len(self.text)
        return count - 1 if is_last_empty else count

    @property
    def complete(self) -> bool:
        """True if the number of rows is exact."""
        return not self._estimated_chunk_count

    def extend(self, until: int) -> None:
        """Compute chunks from the top until they have ``until`` rows, or to the end."""
        while self._estimated_chunk_count:
            chunk = self._first_chunk_to_compute()
            if chunk > 0 and self._row_sums()[chunk] >= until:
                return
            self._starts_in(chunk)

    def work_out_next(self) -> None:
        """Compute the first chunk with an estimated row count."""
        if self._estimated_chunk_count:
            self._starts_in(self._first_chunk_to_compute())

    def row(self, index: int) -> TextRow:
        """Return the row with a number."""
        while True:
            chunk = min(bisect_right(self._row_sums(), index), len(self._row_counts)) - 1
            if self._is_exact[chunk]:
                return self._row_in(chunk, index - self._row_sums()[chunk])
            # The exact row count of this chunk may move the row into another chunk.
            self._starts_in(chunk)

    def row_of(self, offset: int) -> int:
        """Return the number of the row with a code point."""
        chunk, row_in_chunk = self._position_of(offset)
        return self._row_sums()[chunk] + row_in_chunk

    def row_at(self, offset: int) -> TextRow:
        """Return the row with a code point."""
        chunk, row_in_chunk = self._position_of(offset)
        return self._row_in(chunk, row_in_chunk)

    def step(self, offset: int, rows: int) -> int:
        """Return the start of the row that is some rows below or above a code point.

        Only the chunks between the two rows are computed.

        Args:
            offset: The offset of the code point.
            rows: The number of rows, negative for rows above.

        Returns:
            The start of the row, limited to the first and the last row.
        """
        chunk, row_in_chunk = self._position_of(offset)
        row_in_chunk += rows
        while row_in_chunk < 0 and chunk > 0:
            chunk -= 1
            row_in_chunk += len(self._starts_in(chunk))
        starts = self._starts_in(chunk)
        while row_in_chunk >= len(starts) and chunk + 1 < len(self._row_counts):
            row_in_chunk -= len(starts)
            chunk += 1
            starts = self._starts_in(chunk)
        return starts[max(0, min(row_in_chunk, len(starts) - 1))]

    def _position_of(self, offset: int) -> tuple[int, int]:
        """Return the chunk of a code point, and the number of its row in that chunk."""
        offset = max(0, min(offset, len(self.text)))
        chunk = min(offset // CHUNK_CHARS, len(self._row_counts) - 1)
        if self._chunk_start(chunk) > offset:
            chunk -= 1
        return chunk, max(0, bisect_right(self._starts_in(chunk), offset) - 1)

    def _row_in(self, chunk: int, row_in_chunk: int) -> TextRow:
        """Return a row of a chunk by its number in the chunk.

        In a rendered text, tables are aligned, and continued rows are indented.
        """
        text = self.text
        starts = self._starts_in(chunk)
        start = starts[min(row_in_chunk, len(starts) - 1)]
        is_last = row_in_chunk + 1 >= len(starts)
        end = self._chunk_end(chunk) if is_last else starts[row_in_chunk + 1]
        row = make_row(text, start, end, rendered=self._rendered)
        if not self._rendered:
            return row
        if start == 0 or text[start - 1] == "\n":
            is_complete_line = end >= len(text) or text[end - 1] == "\n"
            if not is_complete_line:
                return row
            shown, columns = self._tables.filled(start, row.shown, row.columns)
            return structs.replace(
                row, shown=shown, columns=None if columns is None else tuple(columns)
            )
        block_start, block_end = block_at(text, start)
        if block_start == start:
            return row
        return structs.replace(row, indent=hanging_indent(text, block_start, block_end, self.width))

    def _chunk_start(self, chunk: int) -> int:
        offset = chunk * CHUNK_CHARS
        if offset == 0 or offset >= len(self.text):
            return min(offset, len(self.text))
        chunk_start = self._chunk_starts.get(chunk)
        if chunk_start is None:
            block_start, block_end = block_at(self.text, offset)
            # A block belongs to the chunk in which it begins.
            chunk_start = block_start if block_start == offset else block_end
            self._chunk_starts[chunk] = chunk_start
        return chunk_start

    def _chunk_end(self, chunk: int) -> int:
        is_last = chunk + 1 == len(self._row_counts)
        return len(self.text) if is_last else self._chunk_start(chunk + 1)

    def _starts_in(self, chunk: int) -> array[int]:
        """Return the starts of the rows of a chunk, and record that its row count is exact."""
        starts = self._cached_starts.get(chunk)
        if starts is not None:
            self._cached_starts.move_to_end(chunk)
            return starts
        starts = self._compute_starts(self._chunk_start(chunk), self._chunk_end(chunk))
        self._cached_starts[chunk] = starts
        if len(self._cached_starts) > _CACHED_CHUNKS:
            self._cached_starts.popitem(last=False)
        if not self._is_exact[chunk]:
            self._is_exact[chunk] = 1
            self._estimated_chunk_count -= 1
            if self._row_counts[chunk] != len(starts):
                self._row_counts[chunk] = len(starts)
                self._cached_row_sums = None
        return starts

    def _compute_starts(self, start: int, end: int) -> array[int]:
        """Return the starts of the rows of all blocks from ``start`` to ``end`` (exclusive)."""
        text = self.text
        starts = array("Q")
        block_start = start
        while block_start < end:
            # Most lines are short blocks, so look for a near line break first.
            newline = text.find("\n", block_start, block_start + BLOCK_CHARS + 2)
            if newline >= 0 and (block_start == 0 or text[block_start - 1] == "\n"):
                block_end = newline + 1
            else:
                _, block_end = block_at(text, block_start)
            cut_block(text, block_start, block_end, self.width, starts, rendered=self._rendered)
            block_start = block_end
        if end >= len(text) and (not text or text.endswith("\n")):
            starts.append(len(text))
        return starts

    def _first_chunk_to_compute(self) -> int:
        """Return the first chunk with an estimated row count, or the chunk count."""
        while (
            self._first_estimated_chunk < len(self._is_exact)
            and self._is_exact[self._first_estimated_chunk]
        ):
            self._first_estimated_chunk += 1
        return self._first_estimated_chunk

    def _row_sums(self) -> list[int]:
        """Return the number of rows before each chunk, and at the end that of all rows."""
        if self._cached_row_sums is None:
            self._cached_row_sums = list(accumulate(self._row_counts, initial=0))
        return self._cached_row_sums


MOST_WRAPPED: Final = 12
"""The most rows of a wrapped quote or note."""


def wrapped(text: str, cells: int, most_rows: int = MOST_WRAPPED) -> list[str]:
    """Wrap a text into rows that are safe for display.

    Args:
        text: The text.
        cells: The width of a row.
        most_rows: The most rows; a longer text ends in an ellipsis.
    """
    if not text:
        return []
    layout = TextLayout(text, cells)
    layout.extend(most_rows + 1)
    rows = [layout.row(index).shown for index in range(min(layout.rows, most_rows))]
    if layout.rows > most_rows:
        last_row = rows[-1]
        rows[-1] = set_cell_size(last_row, min(cells - 1, cell_len(last_row))) + "…"
    return rows


MOST_TABLE_CHARS: Final = 1 << 13
"""The longest table, in code points, that is aligned.

Aligning a table reads all of it.
"""

_CELL_BAR: Final = re.compile(r"(?<!\\)\|")
_TABLE_RULE: Final = re.compile(r"\s*\|(?:[ \t]*:?-+:?[ \t]*\|)+\s*$")


class _TableExtent(Struct, frozen=True):
    """The range and the columns of a table in a text.

    Attributes:
        start: The offset of its first line.
        end: The offset after its last line.
        widths: The width of each column; empty for a table that is not aligned.
        alignments: The alignment of each column: ``left``, ``right`` or ``center``.
    """

    start: int
    end: int
    widths: Sequence[int] = ()
    alignments: Sequence[str] = ()


class _Filling(NamedTuple):
    """Characters inserted into a line to pad a cell of a table.

    Attributes:
        offset: The offset in the line.
        characters: The characters.
        after_previous: True if they belong to the character before the offset. False if they belong
            to the character at the offset.
    """

    offset: int
    characters: str
    after_previous: bool


class MarkdownTables:
    """The tables of a text, aligned if they fit the width."""

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
        """Pad the cells of a line if it is a row of an aligned table.

        Args:
            start: The offset of the line in the text.
            shown: The line, safe for display.
            columns: For each code point its offset in ``shown``; None if the offsets are equal.

        Returns:
            The line and the offset in it of each code point, both unchanged if the line is not
            padded.
        """
        if not _is_row(shown):
            return shown, columns
        table = self._last_table
        if table is None or not table.start <= start < table.end:
            table = self._table_around(start)
            self._last_table = table
        if not table.widths:  # too large or too wide to be aligned
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

        A table that is too large, too wide or without a rule below its titles has no widths.
        """
        table_start, rows_before = self._rows_before(start)
        table_end, rows_after = self._rows_from(start)
        rows = [*rows_before, *rows_after]
        unaligned_table = _TableExtent(table_start, table_end)
        is_too_large = table_end - table_start > MOST_TABLE_CHARS
        if is_too_large or len(rows) < 2 or _TABLE_RULE.match(rows[1]) is None:  # below the titles
            return unaligned_table
        cells_by_row = [_cell_texts(row) for row in rows]
        widths = [0] * max(map(len, cells_by_row))
        for cells in cells_by_row:
            for column, cell in enumerate(cells):
                widths[column] = max(widths[column], cell_len(cell))
        alignments = [_alignment_of(cell) for cell in cells_by_row[1]]
        table = _TableExtent(table_start, table_end, widths, alignments)
        for row in rows:
            filled_cells = sum(
                cell_len(filling.characters) for filling in _row_fillings(row, table)
            )
            if cell_len(row) + filled_cells > self._width:
                return unaligned_table
        return table

    def _rows_before(self, start: int) -> tuple[int, list[str]]:
        """Return the offset of the first row of a table, and the rows before ``start`` in order.

        ``start`` is the beginning of a line of the table.
        """
        text = self._text
        rows: list[str] = []
        first = start
        while first > 0 and start - first <= MOST_TABLE_CHARS:
            # The character before ``first`` is the line break of the row.
            line_start = text.rfind("\n", max(0, first - 1 - MOST_TABLE_CHARS), first - 1) + 1
            if line_start == 0 and first - 1 > MOST_TABLE_CHARS:
                break  # the line begins too far away
            line = _shown_line(text[line_start:first])
            if not _is_row(line):
                break
            rows.append(line)
            first = line_start
        rows.reverse()
        return first, rows

    def _rows_from(self, start: int) -> tuple[int, list[str]]:
        """Return the offset after the last row of a table, and its rows from ``start`` on."""
        text = self._text
        rows: list[str] = []
        end = start
        while end < len(text) and end - start <= MOST_TABLE_CHARS:
            newline = text.find("\n", end, end + MOST_TABLE_CHARS)
            line_end = newline + 1 if newline >= 0 else min(len(text), end + MOST_TABLE_CHARS)
            line = _shown_line(text[end:line_end])
            if not _is_row(line):
                break
            rows.append(line)
            end = line_end
        return end, rows


def _moved_columns(columns: Iterable[int], fillings: Sequence[_Filling]) -> list[int]:
    """Return the columns of code points in a line after fillings were inserted.

    Columns and fillings are in ascending order.
    """
    moved_columns: list[int] = []
    inserted_length = 0
    filling_index = 0
    for column in columns:
        while filling_index < len(fillings):
            filling = fillings[filling_index]
            # Padding before a bar moves the bar, but not the column at which it is inserted.
            first_moved = filling.offset if filling.after_previous else filling.offset + 1
            if first_moved > column:
                break
            inserted_length += len(filling.characters)
            filling_index += 1
        moved_columns.append(column + inserted_length)
    return moved_columns


def _shown_line(line: str) -> str:
    shown, _columns = safe_line_map(line.rstrip("\r\n"), drops_colours=True)
    return shown


def _is_row(line: str) -> bool:
    return line.lstrip()[:1] == "|" and line.count("|") > 1


def _cell_texts(line: str) -> list[str]:
    bars = [bar.start() for bar in _CELL_BAR.finditer(line)]
    return [line[left + 1 : right] for left, right in pairwise(bars)]


def _alignment_of(cell: str) -> str:
    cell = cell.strip()
    if cell.endswith(":"):
        return "center" if cell.startswith(":") else "right"
    return "left"


def _row_fillings(line: str, table: _TableExtent) -> Iterator[_Filling]:
    """Yield the padding of each cell of a row, next to its bars.

    In the rule below the titles, padding follows the last dash.
    """
    is_rule = _TABLE_RULE.match(line) is not None
    bars = [bar.start() for bar in _CELL_BAR.finditer(line)]
    for column, (left_bar, right_bar) in enumerate(pairwise(bars)):
        missing_cells = table.widths[column] - cell_len(line[left_bar + 1 : right_bar])
        alignment = table.alignments[column] if column < len(table.alignments) else "left"
        if missing_cells <= 0:
            continue
        if is_rule:
            last_dash = line.rindex("-", left_bar, right_bar)
            yield _Filling(last_dash + 1, "-" * missing_cells, after_previous=True)
            continue
        cells_at_left = {"left": 0, "right": missing_cells, "center": missing_cells // 2}[alignment]
        cells_at_right = missing_cells - cells_at_left
        if cells_at_left:
            yield _Filling(left_bar + 1, " " * cells_at_left, after_previous=True)
        if cells_at_right:
            yield _Filling(right_bar, " " * cells_at_right, after_previous=False)
