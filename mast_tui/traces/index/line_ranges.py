"""Lines of a big file, digested by other processes in ranges, and parsed in order by this process.

A digest is the part of the parsing that depends on one line alone, and takes most of the time. The
parser does the rest, one line after the other. So the result does not depend on the ranges.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from errno import ESTALE
from io import BufferedReader
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol, runtime_checkable

from mast_tui.gc_tuning import uncollected
from mast_tui.parallel import LOST, LostItem, Workers
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import LineParser, feed_lines
from mast_tui.traces.io.regular_files import open_regular

RANGE_BYTES: Final = 1 << 20
"""The bytes of a file that one process digests at a time."""

_WAIT_SECONDS: Final = 0.02
"""The seconds of waiting for another process, after which this process parses lines itself."""

_OWN_BYTES: Final = 4 << 20
"""The bytes that this process parses itself before the next wait."""


@runtime_checkable
class DigestingParser(LineParser, Protocol):
    """A parser that also accepts the digest of a line: an extract that another process has made."""

    @property
    def digest(self) -> Callable[[bytes], Any]:
        """A function of a module that returns the digest of a line, or a line unchanged."""

    def take(self, number: int, digest: Any, /) -> bool:
        """Parse a line by its digest; return False if the line itself is needed.

        Args:
            number: The number of the line, from 1 on.
            digest: The digest of the line.
        """


class Range(NamedTuple):
    """The range of the lines of a file that begin from ``begin`` on and before ``end``."""

    begin: int
    end: int


class _DigestedLines(NamedTuple):
    """The digested lines of a range.

    Attributes:
        begin: The offset of the first line.
        ends: The offset at which each line ends.
        digests: The digest of each line, or the line itself.
    """

    begin: int
    ends: array[int]
    digests: Sequence[Any]


@dataclass(frozen=True, slots=True)
class DigestLines:
    """A function that digests the lines in ranges of a file, in a form to send to other processes.

    Attributes:
        path: The file.
        digest: Returns the digest of a line.
        typecode: The type of the array of line ends.
    """

    path: Path
    digest: Callable[[bytes], Any]
    typecode: str

    def __call__(self, ranges: Sequence[Range]) -> list[_DigestedLines]:
        """Digest the lines in each range."""
        with uncollected(), BufferedReader(open_regular(self.path)) as file:
            return [self._digested_lines(*_lines_in(file, byte_range)) for byte_range in ranges]

    def _digested_lines(self, begin: int, lines: Sequence[bytes]) -> _DigestedLines:
        ends = accumulate((len(line) + 1 for line in lines), initial=begin)
        next(ends)
        return _DigestedLines(begin, array(self.typecode, ends), [*map(self.digest, lines)])


def _lines_in(file: IO[bytes], byte_range: Range) -> tuple[int, list[bytes]]:
    """Return the offset of the first line that begins in a range, and all lines that begin there.

    The lines have no line feeds. The last one is read to its end, also beyond the range.
    """
    # The byte before the range shows whether a line begins with the range.
    data_begin = max(0, byte_range.begin - 1)
    file.seek(data_begin)
    *lines, remainder = file.read(byte_range.end - data_begin).split(b"\n")
    begin = byte_range.begin
    if begin and not lines:  # the whole range is the middle of a line
        return byte_range.end, []
    if begin:
        earlier_line = lines.pop(0)
        begin = data_begin + len(earlier_line) + 1
    if remainder:
        lines.append(remainder + file.readline().removesuffix(b"\n"))
    return begin, lines


class DigestFeed:
    """A function that feeds a parser with the lines of a file, which workers have digested.

    The first call divides the rest of the file into ranges. All lines must end with a line feed.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._ranges: Iterator[Range] = iter(())
        """The ranges that are not fed yet."""
        self._results: Iterator[_DigestedLines | LostItem | None] | None = None
        """The lines of each range, once its worker is done; None while a worker is waited for."""

    def __call__(self, index: LineIndex, parser: LineParser, max_bytes: int) -> None:
        """Feed about ``max_bytes`` of lines to the parser, as digests if there are any.

        If a worker is not ready in time, the lines are parsed here.

        Raises:
            OSError: The file cannot be read, or has changed.
        """
        if not isinstance(parser, DigestingParser) or index.path is None:
            feed_lines(index, parser, max_bytes)
            return
        if self._results is None:
            begins = range(index.done, index.size, RANGE_BYTES)
            ranges = [Range(begin, min(begin + RANGE_BYTES, index.size)) for begin in begins]
            self._ranges = iter(ranges)
            work = DigestLines(index.path, parser.digest, index.typecode)
            batches = [[byte_range] for byte_range in ranges]
            self._results = self._workers.map(work, batches, _WAIT_SECONDS)
        end = min(index.done + max_bytes, index.size)
        while index.done < end:
            result = next(self._results, LOST)
            index.check()
            if result is None:
                feed_lines(index, parser, min(_OWN_BYTES, end - index.done))
            else:
                self._feed_range(index, parser, result)

    def _feed_range(
        self, index: LineIndex, parser: DigestingParser, result: _DigestedLines | LostItem
    ) -> None:
        """Feed the lines of the next range, as digests if there are any."""
        byte_range = next(self._ranges, None)
        if byte_range is None:
            raise OSError(ESTALE, "the file has changed")
        if isinstance(result, _DigestedLines) and result.digests and index.done <= result.begin:
            _feed_digests(index, parser, result)
        elif index.done < byte_range.end:  # its worker failed, or it was partly read here
            feed_lines(index, parser, byte_range.end - index.done)


def _feed_digests(index: LineIndex, parser: DigestingParser, digested: _DigestedLines) -> None:
    """Add lines to an index, and feed their digests to its parser."""
    if digested.begin != index.done:
        raise OSError(ESTALE, "the file has changed")
    lines_before = len(index)
    index.append_lines(digested.ends, lines_before)
    for number, digest_or_line in enumerate(digested.digests, lines_before + 1):
        if type(digest_or_line) is bytes:  # a line without a digest
            parser.feed(number, digest_or_line, False)
        elif not parser.take(number, digest_or_line):  # the digest is not enough
            parser.feed(number, index.read(number, number), False)
