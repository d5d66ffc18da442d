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
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from mast_tui.traces.index.blocks import Block
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.span_table import SpanTable, TableState
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

if TYPE_CHECKING:
    from mast_tui.traces.byte_prefilter import Prefilter

_TABLE: Final = "table"
_OWN_MODULES: Final = "mast_tui.traces."


def state_of(parser: LineParser) -> bytes:
    """Pickle a parser without its table, which is stored separately."""
    table = parser.table
    buffer = io.BytesIO()

    class WithoutTable(pickle.Pickler):
        def persistent_id(self, value: object, /) -> str | None:
            return _TABLE if value is table else None

    WithoutTable(buffer, protocol=5).dump(parser)
    return buffer.getvalue()


def parser_in(state: bytes, table: SpanTable) -> LineParser:
    """Restore a parser with another table.

    Args:
        state: The result of ``state_of``.
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
            if module.startswith(_OWN_MODULES) and "." not in name:
                class_ = super().find_class(module, name)
                # A class that the module has only imported is no part of a parser.
                if isinstance(class_, type) and class_.__module__ == module:
                    return class_
            raise pickle.UnpicklingError(f"no part of a parser: {module}.{name}")

    parser: LineParser = WithTable(io.BytesIO(state)).load()
    return parser


Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """A cache of values by the index of their span, which drops the least recently used values.

    Any thread may use it.

    Args:
        room: The greatest sum of the sizes of all values; the last value is always kept.
        size: Returns the size of a value; by default 1.
    """

    def __init__(self, room: int, size: Callable[[Value], int] = lambda _value: 1) -> None:
        self._room = room
        self._size = size
        self._total_size = 0
        self._values: OrderedDict[int, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, index: int) -> Value | None:
        """Return the value of a span; None if it is not in the cache."""
        with self._lock:
            value = self._values.get(index)
            if value is not None:
                self._values.move_to_end(index)
            return value

    def add(self, index: int, value: Value) -> None:
        """Add a value, and drop the least recently used values that no longer fit.

        Args:
            index: The index of the span.
            value: The value.
        """
        with self._lock:
            replaced_value = self._values.pop(index, None)
            if replaced_value is not None:
                self._total_size -= self._size(replaced_value)
            self._total_size += self._size(value)
            self._values[index] = value
            while self._total_size > self._room and len(self._values) > 1:
                _index, dropped_value = self._values.popitem(last=False)
                self._total_size -= self._size(dropped_value)


FIRST_SLICE: Final = 128 * 1024
"""The bytes of a file that are read before its trace is returned, enough for one screen."""

_CACHED_CHARS: Final = 8 << 20
_CACHED_PREVIEWS: Final = 8192
_PREVIEWED_BYTES: Final = 64 * 1024
"""The bytes that are read for the preview of a text of many lines."""

_FIRST_BLOCK: Final = 1 << 20
_MOST_BLOCK: Final = 16 << 20
"""The bytes of a file that the longest block covers."""

_SPANS_AT_ONCE: Final = 4096
_STRIDE: Final = 32


class LineParser(Protocol):
    """A parser that makes the spans of a file from its lines, each passed once and in order."""

    @property
    def table(self) -> SpanTable: ...
    @property
    def meta(self) -> TraceMeta: ...
    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Parse a line.

        Args:
            number: The number of the line, from 1 on.
            line: The line without its line feed.
            cut_off: True for a last line without a line feed.
        """

    def finish(self) -> None:
        """End the parsing after the last line."""

    def text(self, data: bytes, kind: SpanKind, index: int, /) -> str:
        """Return the text of a span.

        Args:
            data: The content of its lines; for many lines perhaps only the beginning.
            kind: The kind of the span.
            index: The index of the span.

        Raises:
            OSError: The lines hold no span, so the file has changed.
        """


Feed = Callable[[LineIndex, LineParser, int], None]
"""A function that feeds the next lines of an index to a parser, about so many bytes."""


class BackgroundReader(Protocol):
    """The blocks of a file's index from another process or from an earlier reading."""

    @property
    def over(self) -> bool:
        """True if no more blocks follow."""

    def next(self, *, wait: bool) -> Block | None:
        """Return the next block; None if it has not arrived or nothing follows.

        Args:
            wait: True to wait a moment for the block.
        """

    def stop(self, *, complete: bool) -> None:
        """Stop the process that makes the index.

        Args:
            complete: True if all of its blocks were read.
        """


class IndexedSpans(Spans):
    """Spans on lines of a file, with texts and previews that are read on demand.

    If the file is missing or has changed, ``text`` raises ``OSError``, and the preview is a note in
    brackets.
    """

    def __init__(self, index: LineIndex, table: SpanTable) -> None:
        self._index = index
        self._table = table
        self._finished = False
        self._totals: SpanTotals | None = None
        self._texts: LruCache[str] = LruCache(_CACHED_CHARS, len)
        self._last_text = (-1, "")
        """The index and text of the last candidate; -1 if there is none."""
        self._previews: LruCache[tuple[str, bool]] = LruCache(_CACHED_PREVIEWS)

    @abstractmethod
    def _text_of(self, index: int, data: bytes, /) -> str:
        """Return the text of the span at ``index``, from the bytes of its lines.

        Raises:
            OSError: The bytes hold no text.
        """

    def _preview_of_lines(self, index: int, first: int, last: int, /) -> tuple[str, bool]:
        """Return the preview of the span at ``index``, and True if it is the entire text.

        Of very many lines only the beginning is read, unless it is blank.

        Raises:
            OSError: The lines cannot be read.
        """
        begin, end = self._index.range_of(first, last)
        if last > first and end - begin > _PREVIEWED_BYTES:
            text = self._text_of(index, self._index.read(first, last, _PREVIEWED_BYTES))
            if text.strip():
                line, _is_complete = preview(text)
                return line, False
        # A search has just read the text of this span.
        last_index, text = self._last_text
        if last_index != index:
            text = self.text(index)
        is_call = self._table.kind_of(index) is SpanKind.TOOL_CALL
        return call_preview(text) if is_call else preview(text)

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of the lines read so far."""
        return tuple(self._table.problems)

    @property
    def spawned(self) -> Mapping[str, str]:
        """By the thread id of each sub-agent, the key of the span before which it began, so far."""
        return self._table.spawned

    @property
    def totals(self) -> SpanTotals | None:
        """A copy of the totals that an earlier reading has stored; None if there are none."""
        return None if self._totals is None else self._totals.copy()

    def __len__(self) -> int:
        return len(self._table)

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``, with its preview read on first use."""
        return self._table.span(index, partial(self._cached_preview, index))

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``, from the file or from a small cache."""
        text = self._texts.get(index)
        if text is None:
            text = self._text_of(index, self._index.read(*self._table.lines_of(index)))
            self._texts.add(index, text)
        return text

    def source_lines(self, index: int, /) -> bytes | None:
        """Return the lines that hold the span."""
        return self._index.read(*self._table.lines_of(index))

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """Return the texts in a slice of spans that may match a search; leave out unreadable texts.

        Spans that match only by their tool's name are included.

        Args:
            prefilter: The filter for the searched text; None for all texts.
            begin: The index of the first span of the slice.
            limit: The greatest index at which the slice may end.
            max_bytes: The approximate number of bytes to read.
        """
        lines = LinesOfSpans(self._index, *self._table.lines)
        try:
            part = lines.slice(begin, limit, max_bytes)
            if prefilter is None:
                matches = lines.read(part, range(begin, part.end))
            else:
                extra_spans = self._table.rows_to_check(prefilter, begin, part.end)
                matches = lines.read_candidates(part, prefilter, extra_spans, max_bytes)
        except OSError:
            return Candidates(limit, ())
        return Candidates(part.end, self._candidate_texts(matches))

    def _candidate_texts(self, matches: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
        """Yield the index and text of each span with a readable text."""
        for index, data in matches:
            try:
                text = self._text_of(index, data)
            except OSError:
                continue
            self._last_text = index, text  # the caller may need the preview of this span next
            yield index, text
        self._last_text = -1, ""

    def has_one_thread(self, first: int, end: int, /) -> bool:
        """Return whether all spans surely belong to one agent, the main agent or one sub-agent.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return self._table.has_one_thread(first, end)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return the shapes, statuses and times of a range of spans as columns.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return self._table.columns(first, end)

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key; None if no such span is known yet."""
        return self._table.index_of(key)

    def _cached_preview(self, index: int) -> tuple[str, bool]:
        """Return the preview of the span at ``index``, and True if it is the entire text.

        If the lines cannot be read, the preview is a note that says so.
        """
        cached = self._previews.get(index)
        if cached is not None:
            return cached
        try:
            new_preview = self._preview_of_lines(index, *self._table.lines_of(index))
        except OSError as error:
            return preview(f"[can no longer be read: {error.strerror or error}]")
        self._previews.add(index, new_preview)
        return new_preview


class LineSpans(IndexedSpans):
    """Spans that a parser makes from the lines of an opened file; only line feeds end lines."""

    def __init__(self, index: LineIndex, parser: LineParser) -> None:
        super().__init__(index, parser.table)
        self._parser = parser
        self._state_at_end = self._table.state
        self.begin_background_read: Callable[[bool], BackgroundReader | None] | None = None
        """A function that returns the stored index of an earlier reading, if there is one.

        Without one, if its argument is True and the rest is long, it starts another process and
        returns the index from that process.
        """
        self._background: BackgroundReader | None = None
        self._totals_end = 0
        """The offset in the file up to which ``_totals`` counts."""
        self._finish_if_complete()

    @property
    def meta(self) -> TraceMeta:
        """The facts of the run from the lines read so far."""
        return self._parser.meta

    @property
    def loaded(self) -> Loaded:
        """The progress of reading the lines."""
        done = self._index.done
        size = self._index.size
        totals = self._totals
        if totals is None or totals.span_count <= len(self):
            return Loaded(done, size, self._finished)
        # An earlier reading has counted more spans than are known now.
        counted_all = self._totals_end == size
        return Loaded(done, size, self._finished, totals.span_count, counted_all)

    def advance(self, max_bytes: int, /) -> bool:
        """Read about ``max_bytes`` more; return False if nothing is left.

        An error of the file system becomes a problem and ends the trace.
        """
        if self._finished:
            return False
        line_count = len(self._index)
        try:
            if self._background is None or not self._take_from_background(self._background):
                feed_lines(self._index, self._parser, max_bytes)
        except OSError as error:
            reason = error.strerror or str(error)
            message = f"the rest of the file cannot be read: {reason}"
            self._table.add_problem(line_count + 1, message)
            self._finish_parsing()
            return False
        self._finish_if_complete()
        return not self._finished

    def load_totals(self) -> None:
        """Load the stored totals of an earlier reading, if there are any."""
        self._begin_background(may_start_process=False)
        if self._background is not None:
            first_block = self._background.next(wait=False)  # a stored index begins with the totals
            if first_block is not None:
                self.append_block(first_block)

    def load_cached(self) -> None:
        """Load the stored index of an earlier reading, if there is one."""
        self._begin_background(may_start_process=False)
        if self._background is not None:
            self.advance(0)  # appends the stored blocks, and reads no lines

    def read_in_background(self) -> None:
        """Start another process that reads the rest, if the rest is long."""
        self._begin_background(may_start_process=True)
        if self._background is None and not self._finished:
            self.begin_background_read = None

    def _begin_background(self, *, may_start_process: bool) -> None:
        """Set ``_background`` to a stored index, or to that of a new process if one may start."""
        begin = self.begin_background_read
        if begin is not None and self._background is None and not self._finished:
            self._background = begin(may_start_process)

    def stop_background_read(self) -> None:
        """Stop the other process; ``advance`` then reads the rest."""
        background = self._background
        self._background = None
        if background is not None:
            background.stop(complete=self._finished)

    def _take_from_background(self, background: BackgroundReader) -> bool:
        """Append the blocks that have come from the background reader.

        If the reader has ended, or its block does not continue the index, stop it and return False.
        """
        block = background.next(wait=True)
        if block is None and not background.over:
            return True
        self._index.check()  # the block must be of the file that is at the path now
        if block is None or not self.append_block(block):
            # From now on ``advance`` reads the rest itself, and the reader's totals are invalid.
            self.begin_background_read = None
            self._totals = None
            self.stop_background_read()
            return False
        next_block = background.next(wait=False)
        while next_block is not None and self.append_block(next_block):
            next_block = background.next(wait=False)
        return True

    def append_block(self, block: Block) -> bool:
        """Append a block of the index; return False if it does not begin at the end of the index.

        Blocks of known lines are skipped. A block of totals only sets the totals.
        """
        facts, columns = block
        if "totals" in facts:
            self._totals = SpanTotals.of_block(Block(facts["totals"], columns))
            self._totals_end = facts["totals_end"]
            return True
        if facts["lines_after"] <= len(self._index):
            return True
        lines_before = facts["lines_before"]
        table = self._table
        if lines_before == 0:  # the first block replaces what was read before
            table = type(table)()
        elif (lines_before, facts["spans_before"]) != (len(self._index), len(table)):
            return False
        self._index.append_lines(columns["line_ends"], lines_before)
        table.append_block(Block(facts["table"], columns))
        self._parser = parser_in(bytes(columns["parser"]), table)
        self._table = table
        return True

    def blocks(self, later_feed: Feed | None = None) -> Iterator[Block]:
        """Read the rest of the file up to the last line feed, and yield the index in blocks.

        Each block has the state of the parser after its lines, so that reading can continue there.

        Args:
            later_feed: Feeds the lines after the first block to the parser; None for
                ``feed_lines``.

        Raises:
            OSError: The file cannot be read.
        """
        index = self._index
        table = self._table
        block_bytes = _FIRST_BLOCK
        index.size = index.end_of_whole_lines()  # a last line may be incomplete
        table.begin_block()
        feed: Feed = feed_lines
        while not index.complete:
            lines_before = len(index)
            spans_before = len(table)
            feed(index, self._parser, block_bytes)
            yield self._block(table.block(), lines_before, spans_before)
            block_bytes = min(2 * block_bytes, _MOST_BLOCK)
            feed = later_feed or feed_lines

    def whole(self) -> tuple[Block, Block]:
        """Return the totals of all spans as a block, and the whole index as a block."""
        totals = SpanTotals()
        totals.add(self.columns(0, len(self)))
        facts, columns = totals.block()
        totals_block = Block({"totals": facts, "totals_end": self._index.done}, columns)
        return totals_block, self._block(self._table.whole(), lines_before=0, spans_before=0)

    def _block(self, spans: Block, lines_before: int, spans_before: int) -> Block:
        """Return a block of spans with their line ends and the current state of the parser."""
        facts = {
            "table": spans.facts,
            "lines_before": lines_before,
            "lines_after": len(self._index),
            "spans_before": spans_before,
        }
        line_ends = self._index.ends_since(lines_before)
        state = bytearray(state_of(self._parser))
        return Block(facts, {**spans.columns, "line_ends": line_ends, "parser": state})

    @property
    def in_file(self) -> bool:
        """True if the lines are read from the file itself, which may grow, not from memory."""
        return self._index.path is not None

    @property
    def read_to(self) -> int:
        """The offset up to which the lines are known."""
        return self._index.done

    def resume(self, size: int, /) -> bool:
        """Prepare ``advance`` to continue in a file that has grown to ``size`` bytes.

        Return False if the longer file would change spans that were already made. A last line that
        was incomplete and could not be parsed is read again, and its problem is removed.
        """
        last_line_is_complete = self._index.grew_by_line_feed()
        if not self._finished or last_line_is_complete is None:  # None: in memory
            return False
        valid_state = self._last_valid_state(last_line_is_complete=last_line_is_complete)
        if valid_state is None:
            return False
        self._index.resume(size, keep_tail=valid_state is self._state_at_end)
        del self._table.problems[valid_state.problems :]
        self._finished = False
        return True

    def _last_valid_state(self, *, last_line_is_complete: bool) -> TableState | None:
        """Return the state of the table at the end, or before an open line that failed to parse.

        Return None if the table has spans or changes that a longer file would not have.
        """
        state_at_end = self._state_at_end
        if state_at_end.differs(self._table.state):  # the end of the parsing has changed spans
            return None
        state_before = self._table.state_before_open_line if self._index.ends_open else None
        if state_before is None:
            return state_at_end
        if state_at_end.problems == state_before.problems:  # the open line was parsed
            return state_at_end if last_line_is_complete else None
        return None if state_before.differs(state_at_end) else state_before

    def _finish_if_complete(self) -> None:
        if self._index.complete:
            self._finish_parsing()

    def _finish_parsing(self) -> None:
        self._state_at_end = self._table.state
        self._parser.finish()
        self._finished = True

    def _text_of(self, index: int, data: bytes, /) -> str:
        return self._parser.text(data, self._table.kind_of(index), index)


def feed_lines(index: LineIndex, parser: LineParser, max_bytes: int) -> None:
    """Feed the next lines of an index to a parser.

    Before a last line without a line feed, the state of the parser's table is stored, so that the
    line can be read again when the file has grown.

    Args:
        index: The index of the file.
        parser: The parser.
        max_bytes: The approximate number of bytes to feed.
    """
    first_number = len(index) + 1
    lines = index.advance(max_bytes)
    feed = parser.feed
    open_line = len(index) if index.ends_open else None
    for number, line in enumerate(lines, first_number):
        is_open = number == open_line
        if is_open:
            parser.table.state_before_open_line = parser.table.state
        feed(number, line, is_open)


class SpanSlice(NamedTuple):
    """A range of spans, and the range of bytes with their lines; both ends are exclusive."""

    begin: int
    end: int
    first_byte: int
    end_byte: int


class LinesOfSpans(NamedTuple):
    """The lines with the texts of the spans.

    Attributes:
        line_index: The index of the lines.
        first: The first line of each span.
        last: The last line of each span.
    """

    line_index: LineIndex
    first: array[int]
    last: array[int]

    def slice(self, begin: int, limit: int, max_bytes: int) -> SpanSlice:
        """Return a slice of spans from ``begin`` on, with lines of about ``max_bytes`` bytes.

        The first lines of the spans in a slice never decrease.

        Args:
            begin: The index of the first span.
            limit: The greatest index at which the slice may end.
            max_bytes: The approximate number of bytes of the lines.
        """
        first_line = self.first[begin]
        first_byte, _end = self.line_index.range_of(first_line, first_line)
        line_limit = self.line_index.line_at(first_byte + max_bytes)
        end = self._end_of_slice(begin, min(limit, begin + _SPANS_AT_ONCE), line_limit)
        return SpanSlice(
            begin, end, *self.line_index.range_of(first_line, max(self.last[begin:end]))
        )

    def _end_of_slice(self, begin: int, limit: int, line_limit: int) -> int:
        """Return the end of a slice: ``limit``, or the first span that reaches ``line_limit``.

        The slice also ends before a span whose first line precedes that of the previous span.
        """
        # For speed, spans are added many at a time, and at the end one by one.
        end = begin + 1
        while end < limit:
            stride_end = min(limit, end + _STRIDE)
            first_lines = self.first[end - 1 : stride_end]
            decreases = any(map(gt, first_lines, first_lines[1:]))
            if decreases or max(self.last[end:stride_end]) >= line_limit:
                break
            end = stride_end
        limit = min(limit, end + _STRIDE)
        while (
            end < limit and self.first[end - 1] <= self.first[end] and self.last[end] < line_limit
        ):
            end += 1
        return end

    def read_candidates(
        self, part: SpanSlice, prefilter: Prefilter, extra_spans: Sequence[int], max_bytes: int
    ) -> Iterator[tuple[int, bytes]]:
        """Return the index and the bytes of each span whose lines may hold the searched text.

        Args:
            part: The spans to search.
            prefilter: The filter for the searched text.
            extra_spans: The spans that are always returned.
            max_bytes: The length above which a first search reads the lines in pieces, because a
                single span may be long.

        Raises:
            OSError: The file cannot be read.
        """
        is_long = part.end_byte - part.first_byte > max_bytes
        if is_long and not extra_spans and not self._may_have_match(prefilter, part, max_bytes):
            return iter(())
        data = self.line_index.read_range(part.first_byte, part.end_byte)
        spans = self._spans_with_hits(prefilter.hits(data), part)
        if extra_spans:
            spans = sorted({*spans, *extra_spans})
        return self._bytes_of_spans(data, part, spans)

    def read(self, part: SpanSlice, spans: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Return the index and the bytes of some spans of a slice.

        Args:
            part: The slice.
            spans: The indices of the spans.

        Raises:
            OSError: The file cannot be read.
        """
        data = self.line_index.read_range(part.first_byte, part.end_byte)
        return self._bytes_of_spans(data, part, spans)

    def _may_have_match(self, prefilter: Prefilter, part: SpanSlice, piece_bytes: int) -> bool:
        """Return whether the lines of a slice may hold the searched text, reading them in pieces.

        The pieces overlap, so that no match is lost.
        """
        length = max(piece_bytes, 2 * prefilter.overlap)
        piece_begin = part.first_byte
        while piece_begin < part.end_byte:
            piece_end = min(part.end_byte, piece_begin + length)
            piece = self.line_index.read_range(piece_begin, piece_end)
            if not piece:
                return False
            if prefilter.hits(piece):
                return True
            piece_begin += length - prefilter.overlap
        return False

    def _spans_with_hits(self, hits: Sequence[int], part: SpanSlice) -> list[int]:
        """Return the spans of a slice with a hit on their lines.

        The hits are sorted offsets in the bytes of the slice.
        """
        indices: list[int] = []
        if not hits:
            return indices
        begin, end, first_byte, _end_byte = part
        first_lines = self.first[begin:end]
        last_lines = self.last[begin:end]
        if first_lines == last_lines:  # each span is on one line
            hit_lines = dict.fromkeys(self.line_index.line_at(first_byte + hit) for hit in hits)
            for line in hit_lines:
                low = bisect_left(first_lines, line)
                indices += range(begin + low, begin + bisect_right(first_lines, line, low))
            return indices
        for index in range(begin, end):
            low, high = self.line_index.range_of(self.first[index], self.last[index])
            position = bisect_left(hits, low - first_byte)
            if position < len(hits) and hits[position] < high - first_byte:
                indices.append(index)
        return indices

    def _bytes_of_spans(
        self, data: bytes, part: SpanSlice, spans: Iterable[int]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the index of each span with its lines, from the bytes of a slice."""
        for index in spans:
            low, high = self.line_index.range_of(self.first[index], self.last[index])
            yield index, data[low - part.first_byte : high - part.first_byte].removesuffix(b"\n")
