"""Lines of a big file digested by other processes, range by range, and read in their order here.

Other processes find what follows from a line alone, which takes most of the time. What depends on
earlier lines is the parser's, which reads one line after the other; so the result is the same,
however the file was cut.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from errno import ESTALE
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from mast_tui.gc_tuning import uncollected
from mast_tui.parallel import LOST, LostItem, Workers
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import LineParser, feed_lines
from mast_tui.traces.io.regular_files import open_regular

RANGE_BYTES: Final = 1 << 20
"""The bytes of a file that one process digests at a time."""

_PATIENCE: Final = 0.02
"""The seconds of waiting for another process, after which the file is read on here."""

_READ_HERE: Final = 4 << 20
"""The bytes that are read here before the next wait; digests of them by others are not used."""

_BEYOND_BYTES: Final = 16 * 1024
"""The bytes read at once after a range whose last line reaches over the end."""


@runtime_checkable
class DigestingParser(LineParser, Protocol):
    """A parser of lines that also takes what others have made of one."""

    @property
    def digest(self) -> Callable[[bytes], Any]:
        """A function of a module that returns the digest of a line, or the line itself."""

    def take(self, number: int, digest: Any, /) -> bool:
        """Read the digest of a line.

        Args:
            number: The number of the line, from 1 on.
            digest: The digest that another process made of the line.

        Returns:
            False if the line itself is needed.
        """


class Range(NamedTuple):
    """The lines of a file that begin from ``begin`` on and before ``end``."""

    begin: int
    end: int


class _Lines(NamedTuple):
    """The lines in a range: where the first begins and each ends, and what each comes down to."""

    begin: int
    ends: array[int]
    lines: Sequence[Any]


@dataclass(frozen=True, slots=True)
class DigestLines:
    """Looks at the lines in ranges of a file; it can be sent to other processes.

    Attributes:
        path: The file.
        digest: Returns the digest of a line.
        typecode: The type of the array of line ends.
    """

    path: Path
    digest: Callable[[bytes], Any]
    typecode: str

    def __call__(self, ranges: Sequence[Range]) -> list[_Lines]:
        """Digest the lines in each range."""
        with uncollected(), open_regular(self.path) as file:
            return [
                self._digest_lines(*_lines_in(file.fileno(), byte_range)) for byte_range in ranges
            ]

    def _digest_lines(self, begin: int, lines: Sequence[bytes]) -> _Lines:
        ends = accumulate((len(line) + 1 for line in lines), initial=begin)
        next(ends)
        return _Lines(begin, array(self.typecode, ends), [*map(self.digest, lines)])


def _lines_in(file: int, byte_range: Range) -> tuple[int, list[bytes]]:
    """Return the offset of the first line in a range, and all lines without their line feeds."""
    data_begin = max(0, byte_range.begin - 1)
    data = _read_range(file, data_begin, byte_range.end)
    *lines, remainder = data.split(b"\n")
    begin = byte_range.begin
    if begin and not lines:  # a line goes on here that begins before
        return byte_range.end, []
    if begin:
        begin = data_begin + len(lines.pop(0)) + 1
    if remainder:
        lines.append(remainder + _rest_of_line(file, data_begin + len(data)))
    return begin, lines


def _rest_of_line(file: int, begin: int) -> bytes:
    pieces = []
    while more := _read_range(file, begin, begin + _BEYOND_BYTES):
        piece, feed, _ = more.partition(b"\n")
        pieces.append(piece)
        if feed:
            break
        begin += len(more)
    return b"".join(pieces)


def _read_range(file: int, begin: int, end: int) -> bytes:
    data = os.pread(file, end - begin, begin)
    while data and begin + len(data) < end:  # the system may give less
        more = os.pread(file, end - begin - len(data), begin + len(data))
        if not more:
            break
        data += more
    return data


class DigestFeed:
    """Gives a parser what others make of the lines of a file, all of which are ended.

    Where it is called for the first time the file is cut into ranges from there on.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._ranges: Iterator[Range] = iter(())
        self._digested: Iterator[_Lines | LostItem | None] | None = None

    def __call__(self, index: LineIndex, parser: LineParser, max_bytes: int) -> None:
        """Feed about ``max_bytes`` of lines to the parser.

        Raises:
            OSError: from the file system, or the file has changed.
        """
        if not isinstance(parser, DigestingParser) or index.path is None:
            feed_lines(index, parser, max_bytes)
            return
        if self._digested is None:
            work = DigestLines(index.path, parser.digest, index.typecode)
            begins = range(index.done, index.size, RANGE_BYTES)
            ranges = [Range(begin, min(begin + RANGE_BYTES, index.size)) for begin in begins]
            self._ranges = iter(ranges)
            self._digested = self._workers.map(
                work, [[byte_range] for byte_range in ranges], _PATIENCE
            )
        end = min(index.done + max_bytes, index.size)
        while index.done < end:
            digested = next(self._digested, LOST)
            index.check()
            if digested is None:
                feed_lines(index, parser, min(_READ_HERE, end - index.done))
                continue
            byte_range = next(self._ranges, None)
            if byte_range is None:
                raise OSError(ESTALE, "the file has changed")
            if isinstance(digested, _Lines) and digested.lines and index.done <= digested.begin:
                _feed_digests(index, parser, digested)
            elif index.done < byte_range.end:  # it was lost, or a part of it was read here
                feed_lines(index, parser, byte_range.end - index.done)


def _feed_digests(index: LineIndex, parser: DigestingParser, digested: _Lines) -> None:
    if digested.begin != index.done:
        raise OSError(ESTALE, "the file has changed")
    lines_before = len(index)
    index.append_lines(digested.ends, lines_before)
    for number, digest in enumerate(digested.lines, lines_before + 1):
        if type(digest) is bytes:
            parser.feed(number, digest, False)
        elif not parser.take(number, digest):
            parser.feed(number, index.read(number, number), False)
