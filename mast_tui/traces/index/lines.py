"""Spans on lines of a file: indexed slice by slice, read on demand."""

from __future__ import annotations

import io
import pickle
from abc import abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import gt
from threading import Lock
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.blocks import Block
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.index.span_totals import SpanTotals
from mast_tui.traces.model import (
    Candidates,
    Loaded,
    Problem,
    Span,
    SpanColumns,
    SpanKind,
    Spans,
    TraceMeta,
)
from mast_tui.traces.preview import call_preview, preview

_TABLE: Final = "table"
_OURS: Final = "mast_tui.traces."


def state_of(parser: LineParser) -> bytes:
    """Return the pickled state of a parser without its table."""
    table = parser.table
    buffer = io.BytesIO()

    class WithoutTable(pickle.Pickler):
        def persistent_id(self, value: object, /) -> str | None:
            return _TABLE if value is table else None

    WithoutTable(buffer, protocol=5).dump(parser)
    return buffer.getvalue()


def parser_in(state: bytes, table: SpanTable) -> LineParser:
    """Restore a parser on another table.

    Args:
        state: The state as ``state_of`` returned it.
        table: The table that the parser is to fill.

    Raises:
        pickle.UnpicklingError: The state names something that is no part of a parser.
    """

    class WithTable(pickle.Unpickler):
        def persistent_load(self, _name: str, /) -> SpanTable:
            return table

        def find_class(self, module: str, name: str, /) -> Any:
            if (module, name) == ("collections", "OrderedDict"):
                return OrderedDict
            if module.startswith(_OURS) and "." not in name:
                class_ = super().find_class(module, name)
                # What a module of ours has only imported is no part of a parser.
                if isinstance(class_, type) and class_.__module__ == module:
                    return class_
            raise pickle.UnpicklingError(f"no part of a parser: {module}.{name}")

    parser: LineParser = WithTable(io.BytesIO(state)).load()
    return parser


Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Values by the index of their span; what was asked for longest ago goes first.

    ``room`` is how much is kept, in what ``size`` counts; without it each value counts as one. The
    last value is kept however big it is. Any thread may ask and add.
    """

    def __init__(self, room: int, size: Callable[[Value], int] = lambda _value: 1) -> None:
        self._room = room
        self._size = size
        self._used = 0
        self._values: OrderedDict[int, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, index: int) -> Value | None:
        """Return the value, or None if it is not kept."""
        with self._lock:
            value = self._values.get(index)
            if value is not None:
                self._values.move_to_end(index)
            return value

    def add(self, index: int, value: Value) -> None:
        """Keep a value, and drop the least recently used ones that no longer fit.

        Args:
            index: The key of the value.
            value: The value.
        """
        with self._lock:
            old = self._values.pop(index, None)
            self._used += self._size(value) - (0 if old is None else self._size(old))
            self._values[index] = value
            while self._used > self._room and len(self._values) > 1:
                _index, dropped = self._values.popitem(last=False)
                self._used -= self._size(dropped)


FIRST_SLICE: Final = 128 * 1024
"""The bytes of a file that are read before its trace is returned: enough for a screen."""

_CACHED_CHARS: Final = 8 << 20
_CACHED_PREVIEWS: Final = 8192
_PREVIEWED_BYTES: Final = 64 * 1024
"""The bytes that are read for the preview of a text of many lines."""

_FIRST_BLOCK: Final = 1 << 20
_MOST_BLOCK: Final = 16 << 20
"""The bytes of a file that the first and the longest blocks cover."""

_SPANS_AT_ONCE: Final = 4096
_STRIDE: Final = 32


class LineParser(Protocol):
    """Makes spans of the lines of one file, which it is given once and in order."""

    @property
    def table(self) -> SpanTable: ...
    @property
    def meta(self) -> TraceMeta: ...
    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Parse a line.

        Args:
            number: The number of the line, from 1 on.
            line: The line without its line feed.
            cut_off: Whether it is a last line without a line feed.
        """

    def finish(self) -> None:
        """End the parsing, after the last line."""

    def text(self, data: bytes, kind: SpanKind, index: int, /) -> str:
        """Return the text of a span.

        Args:
            data: The content of its lines; of a span of many lines perhaps only the beginning.
            kind: The kind of the span.
            index: The index of the span.

        Raises:
            OSError: The lines hold no span, so the file has changed.
        """


Feed = Callable[[LineIndex, LineParser, int], None]
"""Gives a parser the next lines of an index, about so many bytes of them."""


class BackgroundReader(Protocol):
    """The blocks of an index that another process makes of a file, or made earlier."""

    @property
    def over(self) -> bool:
        """True if no more blocks follow."""

    def next(self, *, wait: bool) -> Block | None:
        """Return the next block; None if it is not there yet or nothing follows.

        With ``wait`` it is waited for, but only for a moment.
        """

    def stop(self, *, complete: bool) -> None:
        """Stop the other process; ``complete`` says that all of its blocks were read."""


class IndexedSpans(Spans):
    """Spans on lines of a file, known up to some line; a text is read on demand.

    A preview is made when its span is first looked at. Where the file has gone or changed, ``text``
    raises ``OSError``, and the preview is a note in brackets.
    """

    def __init__(self, index: LineIndex, table: SpanTable) -> None:
        self._index = index
        self._table = table
        self._finished = False
        self._totals: SpanTotals | None = None
        self._texts: LruCache[str] = LruCache(_CACHED_CHARS, len)
        self._last_text = (-1, "")
        self._previews: LruCache[tuple[str, bool]] = LruCache(_CACHED_PREVIEWS)

    @abstractmethod
    def _text_of(self, index: int, data: bytes, /) -> str:
        """Return the text of the span at ``index``, whose lines hold these bytes.

        Raises:
            OSError: They hold no text.
        """

    def _preview_of_lines(self, index: int, first: int, last: int, /) -> tuple[str, bool]:
        """Return the preview of the span at ``index``, and whether that is all of its text.

        Of a span of very many lines only the beginning is read. ``OSError`` comes through.
        """
        begin, end = self._index.range_of(first, last)
        if last > first and end - begin > _PREVIEWED_BYTES:
            text = self._text_of(index, self._index.read(first, last, _PREVIEWED_BYTES))
            if text.strip():
                return preview(text)[0], False
        number, text = self._last_text
        if number != index:
            text = self._texts.get(index) or self._read(index)
        call = self._table.kind_of(index) is SpanKind.TOOL_CALL
        return call_preview(text) if call else preview(text)

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of the lines read so far."""
        return tuple(self._table.problems)

    @property
    def spawned(self) -> Mapping[str, str]:
        """The keys of the spans before which sub-agents began, by thread id, so far."""
        return self._table.spawned

    @property
    def totals(self) -> SpanTotals | None:
        """A copy of the totals that an earlier reading has kept; None if there are none."""
        return None if self._totals is None else self._totals.copy()

    def __len__(self) -> int:
        return len(self._table)

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``; for its preview its line is read once that is looked at."""
        return self._table.span(index, partial(self._preview, index))

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``, from the file or from a small cache."""
        cached = self._texts.get(index)
        return self._read(index) if cached is None else cached

    def source_lines(self, index: int, /) -> bytes | None:
        """Return the lines that hold the span."""
        return self._index.read(*self._table.lines_of(index))

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """Return the texts that may hold a needle; a text that cannot be read holds none.

        Rows are searched with the texts where possible, as previews are not at hand.

        Args:
            prefilter: The filter for the needle; None for all texts.
            begin: The first span.
            limit: The span after the last.
            max_bytes: About how much of the source to read.
        """
        lines = Lines(self._index, *self._table.lines)
        rows_to_check = (
            _no_others if prefilter is None else partial(self._table.rows_to_check, prefilter)
        )
        try:
            end, matches = lines.candidates(prefilter, begin, limit, max_bytes, rows_to_check)
        except OSError:
            return Candidates(limit, ())
        return Candidates(end, self._candidates(matches), rows=True)

    def _candidates(self, matches: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
        for index, data in matches:
            try:
                text = self._text_of(index, data)
            except OSError:
                continue
            self._last_text = index, text  # its row is asked for next, if it is
            yield index, text
        self._last_text = -1, ""

    def one_thread(self, first: int, end: int, /) -> bool:
        """Return whether the keys of the spans name one thread or none.

        Args:
            first: The first span.
            end: The span after the last.
        """
        return self._table.one_thread(first, end)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return columns of spans.

        Args:
            first: The first span.
            end: The span after the last.
        """
        return self._table.columns(first, end)

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key, or None if no such span is known (yet)."""
        return self._table.index_of(key)

    def _read(self, index: int) -> str:
        data = self._index.read(*self._table.lines_of(index))
        text = self._text_of(index, data)
        self._texts.add(index, text)
        return text

    def _preview(self, index: int) -> tuple[str, bool]:
        """Return the preview of the span at ``index``, and whether it is the entire text."""
        cached = self._previews.get(index)
        if cached is not None:
            return cached
        try:
            cached = self._preview_of_lines(index, *self._table.lines_of(index))
        except OSError as error:
            return preview(f"[cannot be read any more: {error.strerror or error}]")
        self._previews.add(index, cached)
        return cached


class LineSpans(IndexedSpans):
    """Spans that a parser makes of the lines of an opened file.

    Line feeds end lines; nothing else does.
    """

    def __init__(self, index: LineIndex, parser: LineParser) -> None:
        super().__init__(index, parser.table)
        self._parser = parser
        self._at_end = self._table.state
        self.begin_background_read: Callable[[bool], BackgroundReader | None] | None = None
        """Returns the index of an earlier reading, or of another process that it starts where
        that is worth it."""
        self._background: BackgroundReader | None = None
        self._counted_to = 0  # up to which byte of the file the totals reach
        self._settle()

    @property
    def meta(self) -> TraceMeta:
        """The metadata of the run, as far as it is read."""
        return self._parser.meta

    @property
    def loaded(self) -> Loaded:
        """The progress of the index."""
        done = self._index.done
        size = self._index.size
        totals = self._totals
        if totals is None or totals.seen <= len(self):
            return Loaded(done, size, self._finished)
        return Loaded(done, size, self._finished, totals.seen, self._counted_to == size)

    def advance(self, max_bytes: int, /) -> bool:
        """Read about ``max_bytes`` more; False when nothing is left.

        An error of the file system ends the trace there and becomes a problem.
        """
        if self._finished:
            return False
        number = len(self._index)
        try:
            if self._background is None or not self._take_from_background(self._background):
                feed_lines(self._index, self._parser, max_bytes)
        except OSError as error:
            reason = error.strerror or str(error)
            self._table.add_problem(number + 1, f"the rest of the file cannot be read: {reason}")
            self._finish()
            return False
        self._settle()
        return not self._finished

    def load_totals(self) -> None:
        """Take in what an earlier reading has counted."""
        self._begin_background(False)
        if self._background is not None:
            block = self._background.next(wait=False)
            if block is not None:
                self.append_block(block)

    def load_cached(self) -> None:
        """Take in what an earlier reading has kept."""
        self._begin_background(False)
        if self._background is not None:
            self.advance(0)

    def read_in_background(self) -> None:
        """Have the rest read by another process, where that is worth it."""
        self._begin_background(True)
        if self._background is None and not self._finished:
            self.begin_background_read = None

    def _begin_background(self, begins: bool) -> None:
        begin = self.begin_background_read
        if begin is not None and self._background is None and not self._finished:
            self._background = begin(begins)

    def stop_background_read(self) -> None:
        """Stop the other process; the rest is read here."""
        background = self._background
        self._background = None
        if background is not None:
            background.stop(complete=self._finished)

    def _take_from_background(self, background: BackgroundReader) -> bool:
        """Take in what has come, if anything; False if all that follows is to be read here."""
        block = background.next(wait=True)
        if block is None and not background.over:
            return True
        self._index.check()  # what came is of the file that is in this place now
        if block is None or not self.append_block(block):
            self.begin_background_read = self._totals = None
            self.stop_background_read()
            return False
        while (more := background.next(wait=False)) is not None and self.append_block(more):
            pass
        return True

    def append_block(self, block: Block) -> bool:
        """Append a block of the index; return False if it does not follow on what is here.

        A block that is here already is passed over.
        """
        facts, columns = block
        if "totals" in facts:
            self._totals = SpanTotals.of_block(Block(facts["totals"], columns))
            self._counted_to = facts["read_to"]
            return True
        read_so_far = len(self._index), len(self._table)
        lines, spans = facts["behind"]
        if facts["lines"] <= read_so_far[0]:
            return True
        whole = lines == 0
        if not whole and (lines, spans) != read_so_far:
            return False
        table = type(self._table)() if whole else self._table
        self._index.append_lines(columns["lines"], lines)
        table.append_block(Block(facts["table"], columns))
        self._parser = parser_in(bytes(columns["parser"]), table)
        self._table = table
        return True

    def blocks(self, later_feed: Feed | None = None) -> Iterator[Block]:
        """Read the file on, as far as its lines are ended, and yield the index in blocks.

        A block says no less than a parser that has read so far would know.

        Args:
            later_feed: Feeds the parser with the lines after the first block; None for
                ``feed_lines``.

        Raises:
            OSError: from the file system.
        """
        index = self._index
        table = self._table
        most = _FIRST_BLOCK
        index.size = index.whole_lines()
        table.begin_block()
        feed: Feed = feed_lines
        while not index.complete:
            lines = len(index)
            spans = len(table)
            feed(index, self._parser, most)
            yield self._block((lines, spans), table.block())
            most = min(2 * most, _MOST_BLOCK)
            feed = later_feed or feed_lines

    def whole(self) -> tuple[Block, Block]:
        """Return the totals of all spans, and the whole index from the first line on."""
        totals = SpanTotals()
        totals.take(self.columns(0, len(self)))
        facts, columns = totals.block()
        totals_block = Block({"totals": facts, "read_to": self._index.done}, columns)
        return totals_block, self._block((0, 0), self._table.whole())

    def _block(self, sizes_before: tuple[int, int], table_block: Block) -> Block:
        facts = {"behind": sizes_before, "lines": len(self._index), "table": table_block.facts}
        state = bytearray(state_of(self._parser))
        ends = self._index.ends_since(sizes_before[0])
        return Block(facts, {**table_block.columns, "lines": ends, "parser": state})

    @property
    def in_file(self) -> bool:
        """True if its lines are read from the file itself, to which lines may be added."""
        return self._index.path is not None

    @property
    def read_to(self) -> int:
        """The byte up to which the lines are known."""
        return self._index.done

    def resume(self, size: int, /) -> bool:
        """Continue where the file has grown, if its old end caused nothing but problems."""
        index = self._index
        table = self._table
        ended = index.tail_is_ended()
        at_tail = table.at_tail
        at_end = self._at_end
        now = table.state
        if not self._finished or ended is None or at_end.differs(now):
            return False
        keeps = at_end
        if index.ends_open and at_tail is not None:
            broken = at_tail.problems < at_end.problems
            if (broken and at_tail.differs(at_end)) or not (broken or ended):
                return False
            keeps = at_tail if broken else at_end
            index.resume(size, keep_tail=not broken)
        else:
            index.resume(size, keep_tail=True)
        del table.problems[keeps.problems :]
        self._finished = False
        return True

    def _settle(self) -> None:
        if self._index.complete:
            self._finish()

    def _finish(self) -> None:
        self._at_end = self._table.state
        self._parser.finish()
        self._finished = True

    def _text_of(self, index: int, data: bytes, /) -> str:
        return self._parser.text(data, self._table.kind_of(index), index)


def feed_lines(index: LineIndex, parser: LineParser, max_bytes: int) -> None:
    """Feed the next lines of an index to a parser.

    Args:
        index: The index of the file.
        parser: The parser.
        max_bytes: About how many bytes of lines to feed.
    """
    number = len(index) + 1
    lines = index.advance(max_bytes)
    feed = parser.feed
    last = len(lines) if index.ends_open else -1
    for offset, line in enumerate(lines):
        if offset + 1 == last:
            parser.table.at_tail = parser.table.state
        feed(number + offset, line, offset + 1 == last)


def _no_others(_first: int, _end: int) -> Sequence[int]:
    return ()


class Lines(NamedTuple):
    """The lines that hold the text of each span, from the first to the last."""

    line_index: LineIndex
    first: array[int]
    last: array[int]

    def candidates(
        self,
        prefilter: Prefilter | None,
        begin: int,
        limit: int,
        max_bytes: int,
        extra_spans: Callable[[int, int], Sequence[int]] = _no_others,
    ) -> tuple[int, Iterator[tuple[int, bytes]]]:
        """Find the spans of a slice of the file that may hold a needle.

        Args:
            prefilter: The filter for the needle; None for all spans.
            begin: The first span.
            limit: The span after the last.
            max_bytes: About how many bytes to read.
            extra_spans: Returns the spans of a range that are candidates in any case.

        Returns:
            The end of the slice, and the index and the bytes of each candidate.

        Raises:
            OSError: from the file system.
        """
        end, start, stop = self._slice(begin, limit, max_bytes)
        if prefilter is None:
            return end, self._cut(self.line_index.read_range(start, stop), start, range(begin, end))
        extra = extra_spans(begin, end)
        if (
            stop - start > max_bytes
            and not extra
            and not self._any(prefilter, start, stop, max_bytes)
        ):
            return end, iter(())
        block = self.line_index.read_range(start, stop)
        hits = self._spans_hit(prefilter.hits(block), start, begin, end)
        return end, self._cut(block, start, sorted({*hits, *extra}) if extra else hits)

    def _slice(self, begin: int, limit: int, max_bytes: int) -> tuple[int, int, int]:
        """Return the end of a range of spans on consecutive lines, and the bytes they lie in."""
        line = self.first[begin]
        start, stop = self.line_index.range_of(line, self.last[begin])
        beyond = self.line_index.line_at(start + max_bytes)
        end = begin + 1
        most = min(limit, begin + _SPANS_AT_ONCE)
        while end < most:
            firsts = self.first[end : min(most, end + _STRIDE)]
            last_line = max(self.last[end : end + len(firsts)])
            if last_line >= beyond or firsts[0] < line or any(map(gt, firsts, firsts[1:])):
                break
            stop = max(stop, self.line_index.range_of(line, last_line)[1])
            line = firsts[-1]
            end += len(firsts)
        most = min(most, end + _STRIDE)
        while end < most and line <= self.first[end] and self.last[end] < beyond:
            line = self.first[end]
            stop = max(stop, self.line_index.range_of(line, self.last[end])[1])
            end += 1
        return end, start, stop

    def _any(self, prefilter: Prefilter, start: int, stop: int, max_bytes: int) -> bool:
        """Return whether a very long line may hold the needle; it is read piece by piece."""
        length = max(max_bytes, 2 * prefilter.overlap)
        while start < stop:
            piece = self.line_index.read_range(start, min(stop, start + length))
            if not piece or prefilter.hits(piece):
                return bool(piece)
            start += length - prefilter.overlap
        return False

    def _spans_hit(self, hits: Sequence[int], start: int, begin: int, end: int) -> list[int]:
        """Return the spans on whose lines there is a hit; hits count from byte ``start`` on."""
        indices: list[int] = []
        if not hits:
            return indices
        first = self.first[begin:end]
        last = self.last[begin:end]
        if first == last:
            for line in dict.fromkeys(self.line_index.line_at(start + hit) for hit in hits):
                low = bisect_left(first, line)
                indices += range(begin + low, begin + bisect_right(first, line, low))
            return indices
        for index in range(begin, end):
            low, high = self.line_index.range_of(self.first[index], self.last[index])
            position = bisect_left(hits, low - start)
            if position < len(hits) and hits[position] < high - start:
                indices.append(index)
        return indices

    def _cut(self, block: bytes, start: int, spans: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for index in spans:
            low, high = self.line_index.range_of(self.first[index], self.last[index])
            yield index, block[low - start : high - start].removesuffix(b"\n")
