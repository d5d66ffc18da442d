"""The offsets of the lines of a big file, found slice by slice; lines are read again on demand."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, count
from operator import add
from typing import Final, Protocol

from mast_tui.traces.index.blocks import extended_column
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.opened_file import OpenedFile
from mast_tui.traces.io.source import Source

READ_BYTES: Final = 4 << 20
"""The bytes read at once of a very long text."""

_PIECE_BYTES: Final = 256 * 1024
"""The bytes read at once to find lines in them."""

_AHEAD_BYTES: Final = 128 * 1024
"""The bytes read at once for lines that are requested in order."""

_MOST_NARROW: Final = (1 << 32) - 1
_WIDE_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


class Content(Protocol):
    """Bytes that can be read in pieces; bytes after the end are missing from the result."""

    def read(self, offset: int, length: int, /) -> bytes:
        """Read a part of the content.

        Args:
            offset: The first byte.
            length: The most bytes to read.
        """


class MemoryContent:
    """Bytes that are in memory already."""

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
    """The places of the lines of some content, split at ``\\n`` only; lines count from 1.

    The index grows by ``advance``, called from one thread; ``read`` may be called from others.
    It covers the content as long as it was at the beginning: what is appended later is not read.
    """

    # The file is read in pieces of a fixed size, so that small slices cost as little as big ones,
    # and no single step keeps other threads waiting for long.

    def __init__(self, content: Content, size: int) -> None:
        self._content = content
        self._starts = array("I" if size <= _MOST_NARROW else "Q", [0])
        self._piece_lines: list[bytes] = []  # the lines of the last piece, some of them returned
        self._returned = 0
        self._carry: list[bytes] = []  # the part read of the line after those
        self._read_to = 0
        self._ahead = (0, b"")  # an offset, and the bytes read ahead from it on
        self.path = content.local_path if isinstance(content, OpenedFile) else None
        """The file itself, to which lines may come; None if the content is in memory."""
        self._last_read_end = size
        self.size = size
        self.done = 0
        self.ends_open = False

    @classmethod
    def of_source(cls, source: Source) -> LineIndex:
        """Return the index of a file; one in UTF-16 or UTF-32, or compressed, is held in memory."""
        if source.packing is not None or source.head.startswith(_WIDE_MARKS):
            data = as_utf8(source.data)
            return cls(MemoryContent(data), len(data))
        opened = source.opened
        opened.let_grow()
        return cls(opened, opened.size)

    def __len__(self) -> int:
        return self._returned

    @property
    def typecode(self) -> str:
        """The type of the array of offsets."""
        return self._starts.typecode

    @property
    def complete(self) -> bool:
        """True if every line has been found."""
        return self.done >= self.size

    def advance(self, max_bytes: int) -> Sequence[bytes]:
        """Return the next lines of about ``max_bytes`` in all, without their line feeds.

        A line is never cut: there is at least one, however long, until the end is reached.
        ``ends_open`` is true once the last line turned out to have no line feed. ``OSError`` from
        the file system comes through and leaves the index as it was.
        """
        end = self.done + max(max_bytes, 1)
        lines = self._next_lines(max_bytes)
        while self.done < end and not self.complete:
            try:
                self._read_lines()
            except OSError:
                if lines:
                    break  # It is reported when no line is left to return.
                raise
            lines += self._next_lines(end - self.done)
        return lines

    def _read_lines(self) -> None:
        """Read on until there are whole lines to return, or the content is at its end."""
        self._piece_lines = []
        while not self._piece_lines and self._read_to < self.size:
            length = min(_PIECE_BYTES, self.size - self._read_to)
            piece = self._content.read(self._read_to, length)
            if not piece:  # The file has become shorter since it was opened.
                self.size = self._read_to
                break
            self._read_to += len(piece)
            self._add_lines(piece)
        if not self._piece_lines and self._carry:
            self.ends_open = True
            self._piece_lines = [b"".join(self._carry)]
            self._starts.append(self._read_to)
            self._carry = []
        elif not self._piece_lines:
            self.done = self.size

    def _add_lines(self, piece: bytes) -> None:
        lines = piece.split(b"\n")
        remainder = lines.pop()
        if lines and self._carry:
            lines[0] = b"".join((*self._carry, lines[0]))
            self._carry = []
        if remainder:
            self._carry.append(remainder)
        lengths = accumulate(map(len, lines))
        self._starts.extend(map(add, lengths, count(self._starts[-1] + 1)))
        self._piece_lines = lines

    def _next_lines(self, max_bytes: int) -> list[bytes]:
        """Return the next of the lines that were found, about ``max_bytes`` of them."""
        first = self._returned
        count = len(self._starts) - 1
        if first == count:
            return []
        end = bisect_left(self._starts, self.done + max_bytes, first + 1, count)
        lines = self._piece_lines[first - count : end - count or None]
        self._returned = end
        self.done = self._starts[end]
        return lines

    def ends_since(self, lines: int) -> array[int]:
        """Return the ends of the lines after the first ``lines`` that were returned."""
        return self._starts[lines + 1 : self._returned + 1]

    def append_lines(self, ends: array[int], lines_before: int) -> None:
        """Append lines whose ends are known, as if they had been returned.

        Args:
            ends: The offsets at which the lines end.
            lines_before: The number of lines before them: none, or all that were returned.
        """
        begins = self._starts
        if len(begins) > lines_before + 1:
            begins = begins[: lines_before + 1]
        self._piece_lines = []
        self._carry = []
        self._starts = extended_column(begins, ends)
        self._returned = len(self._starts) - 1
        self.done = self._read_to = self._starts[-1]
        self.size = max(self.size, self.done)

    def check(self) -> None:
        """Raise ``OSError`` where the content is not what it was."""
        self._content.read(self.done, 0)

    def whole_lines(self) -> int:
        """Return the byte up to which all lines are ended.

        Raises:
            OSError: from the file system.
        """
        end = self.size
        while end > self.done:
            begin = max(self.done, end - _PIECE_BYTES)
            feed = self._content.read(begin, end - begin).rfind(b"\n")
            if feed >= 0:
                return begin + feed + 1
            end = begin
        return self.done

    def resume(self, size: int, *, keep_tail: bool) -> None:
        """Continue in content that has grown to ``size`` bytes; all lines were found.

        Args:
            size: The new length in bytes.
            keep_tail: Whether a last line without a line feed was whole, as the first new byte ends
                it. Else it is returned once more.
        """
        if size > _MOST_NARROW and self._starts.typecode == "I":
            self._starts = array("Q", self._starts)
        if self.ends_open:
            if keep_tail:
                self._read_to += 1
                self._starts[-1] = self._read_to
            else:
                self._starts.pop()
                self._returned -= 1
                self._read_to = self._starts[-1]
            self.done = self._read_to
            self.ends_open = False
        self._piece_lines = []
        self.size = size

    def tail_is_ended(self) -> bool | None:
        """Return whether new bytes end a last line that had no line feed.

        Returns:
            None if nothing can be added.

        Raises:
            OSError: from the file system.
        """
        return self._content.read(self.size, 1) == b"\n" if self.path is not None else None

    def read(self, first: int, last: int, most: int | None = None) -> bytes:
        """Read lines, without the last line feed. Lines that are read in order are read ahead.

        Args:
            first: The number of the first line, from 1 on.
            last: The number of the last line.
            most: The most bytes to read; None for all.

        Raises:
            OSError: from the file system.
        """
        begin, end = self.range_of(first, last)
        if most is not None and most < end - begin:
            return self.read_range(begin, begin + most)
        offset, ahead = self._ahead
        if not offset <= begin <= end <= offset + len(ahead):
            follows = 0 <= begin - self._last_read_end <= _AHEAD_BYTES
            self._last_read_end = end
            stop = min(begin + _AHEAD_BYTES, self._starts[-1]) if follows else end
            offset = begin
            ahead = self.read_range(begin, max(stop, end))
            self._ahead = (offset, ahead) if follows and stop > end else (0, b"")
        return ahead[begin - offset : end - offset].removesuffix(b"\n")

    def range_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the byte at which lines begin, and the byte after their end.

        Args:
            first: The number of the first line, from 1 on.
            last: The number of the last line.
        """
        return self._starts[first - 1], self._starts[last]

    def line_at(self, offset: int) -> int:
        """Return the line that holds the byte at ``offset``; after the last known line the next."""
        return bisect_right(self._starts, offset)

    def read_range(self, begin: int, end: int) -> bytes:
        """Read bytes of the content.

        Args:
            begin: The first byte.
            end: The byte after the last.

        Raises:
            OSError: from the file system.
        """
        return self._content.read(begin, end - begin)
