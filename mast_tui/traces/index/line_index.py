"""The offsets of the lines of a big file, found slice by slice, and the lines read on demand."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from codecs import BOM_UTF8
from collections.abc import Sequence
from itertools import accumulate, count
from operator import add
from typing import Final, Protocol

from mast_tui.traces.index.blocks import extended_column
from mast_tui.traces.io.decoding import WIDE_MARKS, as_utf8
from mast_tui.traces.io.opened_file import OpenedFile
from mast_tui.traces.io.source import Source

READ_BYTES: Final = 4 << 20
"""The bytes of a very long text that are read in one step."""

_PIECE_BYTES: Final = 256 * 1024
"""The bytes of the content that are read and split into lines in one step."""

_AHEAD_BYTES: Final = 128 * 1024
"""The bytes that are read in advance for lines that are requested in order."""

_MOST_NARROW: Final = (1 << 32) - 1


class Content(Protocol):
    """A source of bytes that can be read in pieces."""

    def read(self, offset: int, length: int, /) -> bytes:
        """Read a part of the content; less at the end of the content.

        Args:
            offset: The first byte.
            length: The most bytes to read.
        """


class MemoryContent:
    """A content that is in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, offset: int, length: int, /) -> bytes:
        """Return a part of the content.

        Args:
            offset: The first byte.
            length: The most bytes to return.
        """
        return self._data[offset : offset + length]


class LineIndex:
    """The offsets of the lines of a content, split at ``\\n`` only; lines count from 1.

    The index grows by ``advance``, called from one thread; other threads may call ``read``. It
    covers the original length of the content, until ``resume`` is called.

    Attributes:
        path: The path of the file, which may grow; None if the content is in memory.
        size: The length of the content in bytes.
        done: The offset after the last line that was returned.
        ends_open: True if the last line has no line feed.
    """

    # The file is read in pieces of a fixed size, so that no step keeps other threads waiting for
    # long.

    def __init__(self, content: Content, size: int, begin: int = 0) -> None:
        """Create the index of a content of ``size`` bytes, with the first line at ``begin``."""
        self._content = content
        self._line_starts = array("I" if size <= _MOST_NARROW else "Q", [begin])
        """The offset of each line that was found, and the end of the last one."""
        self._piece_lines: list[bytes] = []
        """The lines of the last piece; some of them may have been returned."""
        self._returned_count = 0
        """The number of lines that were returned."""
        self._open_line_parts: list[bytes] = []
        """The known parts of the incomplete line after ``_piece_lines``."""
        self._read_to = begin
        self._ahead_cache = (0, b"")
        """An offset, and the bytes that were read in advance from there."""
        self.path = content.local_path if isinstance(content, OpenedFile) else None
        self._last_read_end = size  # no line begins there, so the first read is not sequential
        self.size = size
        self.done = 0
        self.ends_open = False

    @classmethod
    def of_source(cls, source: Source) -> LineIndex:
        """Return the index of a file; a compressed, UTF-16 or UTF-32 file is held in memory."""
        if source.packing is not None or source.head.startswith(WIDE_MARKS):
            data = as_utf8(source.data)
            return cls(MemoryContent(data), len(data))
        opened = source.opened
        opened.let_grow()  # a running agent may append lines
        begin = len(BOM_UTF8) if source.head.startswith(BOM_UTF8) else 0
        return cls(opened, opened.size, begin)

    def __len__(self) -> int:
        return self._returned_count

    @property
    def typecode(self) -> str:
        """The type of the array of offsets."""
        return self._line_starts.typecode

    @property
    def complete(self) -> bool:
        """True if every line has been found."""
        return self.done >= self.size

    def advance(self, max_bytes: int) -> Sequence[bytes]:
        """Return the next lines of about ``max_bytes`` in total, without their line feeds.

        At least one line is returned, however long it is, and none at the end. A last line without
        a line feed sets ``ends_open``.

        Raises:
            OSError: The content cannot be read, and no line is left to return.
        """
        end = self.done + max(max_bytes, 1)
        lines = self._take_lines(max_bytes)
        while self.done < end and not self.complete:
            try:
                self._read_lines()
            except OSError:
                if lines:
                    break  # the next call reports it
                raise
            lines += self._take_lines(end - self.done)
        return lines

    def _read_lines(self) -> None:
        """Read pieces until there is a complete line to return, or the content ends.

        At the end, a line without a line feed is complete, too.
        """
        self._piece_lines = []
        while not self._piece_lines and self._read_to < self.size:
            length = min(_PIECE_BYTES, self.size - self._read_to)
            piece = self._content.read(self._read_to, length)
            if not piece:  # The file has become shorter since it was opened.
                self.size = self._read_to
                break
            self._read_to += len(piece)
            self._add_piece_lines(piece)
        if not self._piece_lines and self._open_line_parts:
            self.ends_open = True
            self._piece_lines = [b"".join(self._open_line_parts)]
            self._line_starts.append(self._read_to)
            self._open_line_parts = []
        elif not self._piece_lines:  # the content has ended
            self.done = self.size

    def _add_piece_lines(self, piece: bytes) -> None:
        """Split the next piece of the content into lines, and add the lines that end in it."""
        lines = piece.split(b"\n")
        remainder = lines.pop()
        if lines and self._open_line_parts:
            lines[0] = b"".join((*self._open_line_parts, lines[0]))
            self._open_line_parts = []
        if remainder:
            self._open_line_parts.append(remainder)
        # ``count`` adds the start of the first line, and one byte for each line feed.
        text_ends = accumulate(map(len, lines))
        self._line_starts.extend(map(add, text_ends, count(self._line_starts[-1] + 1)))
        self._piece_lines = lines

    def _take_lines(self, max_bytes: int) -> list[bytes]:
        """Return about ``max_bytes`` of the lines that were found and not yet returned, in order.

        Return at least one line, if there is one.
        """
        first = self._returned_count
        line_count = len(self._line_starts) - 1
        if first == line_count:
            return []
        end = bisect_left(self._line_starts, self.done + max_bytes, first + 1, line_count)
        # ``_piece_lines`` holds only the last of the found lines.
        earlier_count = line_count - len(self._piece_lines)
        lines = self._piece_lines[first - earlier_count : end - earlier_count]
        self._returned_count = end
        self.done = self._line_starts[end]
        return lines

    def ends_since(self, lines: int) -> array[int]:
        """Return the offsets of the ends of lines that were returned after the first ``lines``."""
        return self._line_starts[lines + 1 : self._returned_count + 1]

    def append_lines(self, ends: array[int], lines_before: int) -> None:
        """Append lines with known ends, as if ``advance`` had returned them.

        Lines that were found but not returned are dropped.

        Args:
            ends: The offsets at which the lines end.
            lines_before: The number of returned lines to keep: the number of all, or 0 to replace
                them.
        """
        line_starts = self._line_starts
        if len(line_starts) > lines_before + 1:
            line_starts = line_starts[: lines_before + 1]
        self._piece_lines = []
        self._open_line_parts = []
        self._line_starts = extended_column(line_starts, ends)
        self._returned_count = len(self._line_starts) - 1
        self._read_to = self._line_starts[-1]
        self.done = self._read_to
        self.size = max(self.size, self.done)

    def check(self) -> None:
        """Raise ``OSError`` if the content has changed."""
        self._content.read(self.done, 0)

    def end_of_whole_lines(self) -> int:
        """Return the offset after the last line feed.

        Raises:
            OSError: The content cannot be read.
        """
        end = self.size
        while end > self.done:
            begin = max(self.done, end - _PIECE_BYTES)
            position = self._content.read(begin, end - begin).rfind(b"\n")
            if position >= 0:
                return begin + position + 1
            end = begin
        return self.done

    def resume(self, size: int, *, keep_tail: bool) -> None:
        """Continue in content that has grown to ``size`` bytes, after all lines were found.

        Args:
            size: The new length in bytes.
            keep_tail: True if the first new byte ends the open last line. If False, ``advance``
                returns this line again.
        """
        if size > _MOST_NARROW and self._line_starts.typecode == "I":
            self._line_starts = array("Q", self._line_starts)
        if self.ends_open:
            if keep_tail:
                self._read_to += 1
                self._line_starts[-1] = self._read_to
            else:
                self._line_starts.pop()
                self._returned_count -= 1
                self._read_to = self._line_starts[-1]
            self.done = self._read_to
            self.ends_open = False
        self._piece_lines = []
        self.size = size

    def grew_by_line_feed(self) -> bool | None:
        """Return whether a line feed follows the old end; None for content in memory.

        Raises:
            OSError: The content cannot be read.
        """
        if self.path is None:
            return None
        return self._content.read(self.size, 1) == b"\n"

    def read(self, first: int, last: int, most: int | None = None) -> bytes:
        """Read lines, without the last line feed.

        If lines are requested in order, the following bytes are read in advance.

        Args:
            first: The number of the first line, from 1 on.
            last: The number of the last line.
            most: The most bytes to read; None for all.

        Raises:
            OSError: The content cannot be read.
        """
        begin, end = self.range_of(first, last)
        if most is not None and most < end - begin:
            return self.read_range(begin, begin + most)
        cache_begin, data = self._ahead_cache
        if not cache_begin <= begin <= end <= cache_begin + len(data):
            is_sequential = 0 <= begin - self._last_read_end <= _AHEAD_BYTES
            self._last_read_end = end
            ahead_end = min(begin + _AHEAD_BYTES, self._line_starts[-1]) if is_sequential else end
            cache_begin = begin
            data = self.read_range(begin, max(ahead_end, end))
            self._ahead_cache = (cache_begin, data) if ahead_end > end else (0, b"")
        return data[begin - cache_begin : end - cache_begin].removesuffix(b"\n")

    def range_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the offset at which lines begin, and the offset after their end.

        Args:
            first: The number of the first line, from 1 on.
            last: The number of the last line.
        """
        return self._line_starts[first - 1], self._line_starts[last]

    def line_at(self, offset: int) -> int:
        """Return the number of the line with the byte at ``offset``, or of the next new line."""
        return bisect_right(self._line_starts, offset)

    def read_range(self, begin: int, end: int) -> bytes:
        """Read bytes of the content.

        Args:
            begin: The first byte.
            end: The byte after the last.

        Raises:
            OSError: The content cannot be read.
        """
        return self._content.read(begin, end - begin)
