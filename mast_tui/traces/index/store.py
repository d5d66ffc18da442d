"""The file of spans of a document, which stores the result of reading the document.

For each trace the file has its texts, one line a span, and then a block of columns. After all
traces come the facts of the document and of each trace, then the offset and the checksum of the
facts. An incomplete file lacks them.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from errno import EIO
from io import FileIO
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from weakref import finalize
from zlib import crc32

from mast_tui.traces.index.blocks import (
    Block,
    block_at,
    from_json,
    to_json,
    write_block,
)
from mast_tui.traces.index.document import Step, StepSpans
from mast_tui.traces.index.lazy_span import relocated_span
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import IndexedSpans
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.index.span_totals import SpanTotals
from mast_tui.traces.io.private_files import PART
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Loaded,
    Outcome,
    Problem,
    Span,
    Thread,
    Trace,
    TraceIdentity,
    TraceMeta,
)

FORMAT: Final = 6
"""The version of this format; new facts only need another reading version of the cache."""

BEFORE_TEXT: Final = b',"text":'
"""The separator in a line, unique because quotes within a JSON string are escaped."""

_END: Final = b"%020d %08x end of mast-tui spans\n"
_OFFSET_DIGITS: Final = 20
END_BYTES: Final = len(_END % (0, 0))


def write_cached(file: IO[bytes], report: FileReport | None) -> Iterator[int]:
    """Write the result of reading a document as a file of spans; yield the percentage written.

    Args:
        file: The file.
        report: The report with complete traces; None if no reader knows the document.

    Raises:
        OSError: The file cannot be written, or a text cannot be read.
    """
    traces = () if report is None else report.traces
    total = sum(map(len, traces))
    spans_per_percent = max(1, total // 100)
    written_count = 0
    begin = 0
    heads = []
    for trace in traces:
        spans = _spans_of(trace)
        text_ends = array("Q")
        text_bytes = 0
        for line in _text_lines(trace, spans):
            file.write(line)
            text_bytes += len(line)
            text_ends.append(text_bytes)
            written_count += 1
            if written_count % spans_per_percent == 0:
                yield written_count * 100 // total
        column_bytes = write_block(file, _column_block(spans, text_ends))
        heads.append(_trace_head(trace, begin, text_bytes, column_bytes))
        begin += text_bytes + column_bytes
    write_end(file, begin, {"report": _report_facts(report), "traces": heads})


def write_end(file: IO[bytes], begin: int, facts: Mapping[str, object]) -> None:
    """Write the facts after the spans, and the mark of a complete file.

    Args:
        file: The file.
        begin: The offset at which the facts begin.
        facts: The facts.
    """
    data = json.dumps(facts).encode()
    file.write(data)
    file.write(_END % (begin, crc32(data)))


def facts_at_end(file: IO[bytes]) -> tuple[Mapping[str, Any], int] | None:
    """Return the facts at the end of a file of spans, and their offset.

    Return None if the file is incomplete.
    """
    size = os.fstat(file.fileno()).st_size
    end = os.pread(file.fileno(), END_BYTES, max(0, size - END_BYTES))
    offset_digits = end[:_OFFSET_DIGITS]
    if not offset_digits.isdigit():
        return None
    begin = min(int(offset_digits), size)
    data = os.pread(file.fileno(), max(0, size - END_BYTES - begin), begin)
    if _END % (begin, crc32(data)) != end:
        return None
    return json.loads(data), begin


def _spans_of(trace: Trace) -> Sequence[Step | Span]:
    """Return the steps of a document, or the spans of any other trace."""
    spans = trace.spans
    if isinstance(spans, StepSpans):
        return spans.steps
    return [trace.span(index) for index in range(len(trace))]


def _text_lines(trace: Trace, spans: Sequence[Step | Span]) -> Iterator[bytes]:
    """Yield for each span a line of JSON with its preview and its text."""
    for index, span in enumerate(spans):
        if isinstance(span, Step):
            text = span.text
            preview, is_complete = span.row()
        else:
            text = trace.text(index)
            preview = span.preview
            is_complete = span.preview_is_complete
        yield to_json({"preview": preview, "whole": is_complete, "text": text}) + b"\n"


def _column_block(spans: Sequence[Step | Span], text_ends: array[int]) -> Block:
    """Return the columns and totals of all spans of a trace as one block."""
    table = _table_of_spans(spans)
    totals = SpanTotals()
    totals.add(table.columns(0, len(table)))
    places = [
        b"" if span.place == span.key else span.place.encode("utf-8", "surrogatepass")
        for span in spans
    ]
    table_block = table.whole()
    totals_block = totals.block()
    facts = {
        "table": table_block.facts,
        "later_parents": _later_parents(spans),
        "totals": totals_block.facts,
    }
    columns = {
        **table_block.columns,
        **totals_block.columns,
        "text_ends": text_ends,
        "places": bytearray().join(places),
        "place_ends": array("Q", accumulate(map(len, places))),
        "thread_changes": _thread_changes(spans),
    }
    return Block(facts, columns)


def _table_of_spans(spans: Sequence[Step | Span]) -> SpanTable:
    """Return the spans as a table, one line each, without parents that follow their children."""
    table = SpanTable()
    for line, span in enumerate(spans, 1):
        parent = None if span.parent is None else table.index_of(span.parent)
        shape = (span.kind, span.role, span.agent, span.name)
        index = table.add(line, line, shape, span.key, parent, span.start, span.status)
        table.set_end(index, span.end)
        if span.tokens is not None:
            table.set_counts(index, *span.tokens)
    return table


def _later_parents(spans: Iterable[Step | Span]) -> list[tuple[int, str]]:
    """Return the spans whose parent comes later or is unknown, each with the parent's key."""
    later_parents = []
    earlier_keys = set()
    for index, span in enumerate(spans):
        if span.parent is not None and span.parent not in earlier_keys:
            later_parents.append((index, span.parent))
        earlier_keys.add(span.key)
    return later_parents


def _thread_changes(spans: Iterable[Step | Span]) -> array[int]:
    """Return the indices of the spans with another thread than the previous span."""
    changes = array("I")
    previous_thread = ""
    for index, span in enumerate(spans):
        prefix, slash, _suffix = span.key.partition("/")
        thread = prefix if slash else ""
        if thread != previous_thread:
            changes.append(index)
        previous_thread = thread
    return changes


def _trace_head(trace: Trace, begin: int, text_bytes: int, column_bytes: int) -> dict[str, object]:
    """Return the facts of a trace, with the offsets and lengths of its texts and columns."""
    return {
        "identity": trace.identity._asdict(),
        "record": trace.record,
        "meta": trace.meta._asdict() | {"answer_key": trace.meta.answer_key._asdict()},
        "problems": [(problem.place, problem.message) for problem in trace.problems],
        "spawned": dict(trace.spawned),
        "total": trace.loaded.total,
        "spans": len(trace),
        "texts": (begin, text_bytes),
        "columns": (begin + text_bytes, column_bytes),
    }


def _report_facts(report: FileReport | None) -> dict[str, object] | None:
    """Return the facts of a report without its traces; None if no reader knows the document."""
    if report is None:
        return None
    thread = report.thread
    return {
        "format": report.format,
        "problems": [(problem.place, problem.message) for problem in report.problems],
        "skipped": report.skipped,
        "failed": report.failed,
        "thread": None if thread is None else tuple(thread),
    }


def path_of_part(cache_path: Path, process: int) -> Path:
    """Return the path of an incomplete file of spans, while a process writes it.

    Args:
        cache_path: The path of the complete file.
        process: The id of the process.
    """
    return cache_path.with_name(f"{cache_path.name}.{process}{PART}")


_PREVIEW_BYTES: Final = 4096
"""The most bytes of a line before its text, which include the preview."""

BROKEN: Final = (KeyError, TypeError, ValueError, OverflowError, RecursionError)
"""The errors of reading a file of spans with unexpected content."""

_DAMAGED_TEXT: Final = "its stored index is damaged; open it again to rebuild it"


class CachedDocument(NamedTuple):
    """The result of reading a document, from its file of spans; None if no reader knows it."""

    report: FileReport | None


def open_cached(cache_path: Path, path: Path) -> CachedDocument | None:
    """Open the file of spans of a document; read the spans at once if it has a single trace.

    Args:
        cache_path: The path of the file of spans.
        path: The path of the document.

    Returns:
        The result of reading the document; None if the file is incomplete.

    Raises:
        OSError: The file cannot be read.
        Exception: One of ``BROKEN``; the file has unexpected content.
    """
    span_file = _SpanFile(open_regular(cache_path))
    end_facts = facts_at_end(span_file.file)
    if end_facts is None:
        return None
    facts, _begin = end_facts
    if facts["report"] is None:  # no reader knows the document
        return CachedDocument(None)
    traces = tuple(_trace_of_head(path, span_file, head) for head in facts["traces"])
    if len(traces) == 1:
        traces[0].advance()
    return CachedDocument(_report_of_facts(path, facts["report"], traces))


def _report_of_facts(path: Path, facts: Mapping[str, Any], traces: tuple[Trace, ...]) -> FileReport:
    """Return the report from the result of ``_report_facts`` and its traces."""
    return FileReport(
        path,
        format=facts["format"],
        traces=traces,
        problems=_problems_of(facts["problems"]),
        skipped=facts["skipped"],
        failed=facts["failed"],
        thread=None if facts["thread"] is None else Thread(*facts["thread"]),
    )


def _problems_of(pairs: Sequence[tuple[str, str]]) -> tuple[Problem, ...]:
    return tuple(Problem(location, message) for location, message in pairs)


class _SpanFile:
    """An open file of spans, which stays readable after its removal from its folder."""

    def __init__(self, file: FileIO) -> None:
        self.file = file
        finalize(self, file.close)

    def drop(self) -> None:
        """Delete the damaged file, so that its document is read again."""
        with suppress(OSError):
            os.unlink(self.file.name)  # noqa: PTH108

    def read(self, offset: int, length: int, /) -> bytes:
        """Read a part of the file.

        Args:
            offset: The first byte.
            length: The most bytes to read.
        """
        data = os.pread(self.file.fileno(), length, offset)
        if 0 < len(data) < length:  # the system reads at most 2 GB at once
            return data + self.read(offset + len(data), length - len(data))
        return data


class _FileSection(NamedTuple):
    """A section of a file of spans, from an offset on, as a content of lines."""

    span_file: _SpanFile
    begin: int

    def read(self, offset: int, length: int, /) -> bytes:
        """Read bytes of the section.

        Args:
            offset: The first byte, counted from the beginning of the section.
            length: The most bytes to read.
        """
        return self.span_file.read(self.begin + offset, length)


def _trace_of_head(path: Path, span_file: _SpanFile, head: Mapping[str, Any]) -> Trace:
    """Return the trace with these facts, still without its columns."""
    return Trace(
        TraceIdentity(**head["identity"]),
        path,
        CachedSpans(span_file, head),
        record=head["record"],
        meta=_meta_of_facts(head["meta"]),
        problems=_problems_of(head["problems"]),
    )


class CachedSpans(IndexedSpans):
    """Spans from a file of spans: all columns are read at once, the texts on demand.

    The spans are equal to those of the document.
    """

    def __init__(self, span_file: _SpanFile, head: Mapping[str, Any]) -> None:
        """Create the spans from the result of ``_trace_head``; ``advance`` reads their columns."""
        begin, size = head["texts"]
        super().__init__(LineIndex(_FileSection(span_file, begin), size), SpanTable())
        self._file = span_file
        self._total = head["total"]
        self._span_count = head["spans"]
        self._columns_begin, _size = head["columns"]
        self._places = bytearray()
        self._place_ends = array("Q")
        self._thread_changes = array("I")
        self._later_parents: Mapping[int, str] = {}
        self._table.spawned.update(head["spawned"])

    @property
    def loaded(self) -> Loaded:
        """The progress: 0 until the columns are read, then everything."""
        if self._finished:
            return Loaded(self._total, self._total, complete=True)
        return Loaded(0, self._total, False, self._span_count, True)

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``, with its preview read on first use."""
        span = super().span(index)
        parent = self._later_parents.get(index, span.parent)
        begin = self._place_ends[index - 1] if index else 0
        location = self._places[begin : self._place_ends[index]].decode("utf-8", "surrogatepass")
        return relocated_span(span, index, location or span.key, parent)

    def source_lines(self, _index: int, /) -> bytes | None:
        """Return None, because the lines of this file are not the lines of the document."""
        return None

    def has_one_thread(self, first: int, end: int, /) -> bool:
        """Return whether all spans belong to one agent, the main agent or one sub-agent.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        position = bisect_right(self._thread_changes, first)
        return position == len(self._thread_changes) or self._thread_changes[position] >= end

    def advance(self, _max_bytes: int, /) -> bool:
        """Read all columns, and return False, because nothing is left.

        If they cannot be read, there are no spans, and the error becomes a problem.
        """
        if not self._finished:
            try:
                self._read_columns()
            except OSError as error:
                self._add_read_problem(error.strerror or str(error))
            except BROKEN:
                self._file.drop()
                self._add_read_problem(_DAMAGED_TEXT)
            self._finished = True
        return False

    def _add_read_problem(self, reason: str) -> None:
        self._table.problems.append(Problem("whole file", f"it cannot be read: {reason}"))

    def _read_columns(self) -> None:
        """Read the columns and totals of all spans.

        Raises:
            ValueError: There is no block of columns.
        """
        block_and_size = block_at(self._file.file.fileno(), self._columns_begin)
        if block_and_size is None:
            raise ValueError("there are no columns")
        (facts, columns), _size = block_and_size
        self._index.append_lines(columns["text_ends"], 0)
        self._places = columns["places"]
        self._place_ends = columns["place_ends"]
        self._thread_changes = columns["thread_changes"]
        self._later_parents = dict(facts["later_parents"])
        self._totals = SpanTotals.of_block(Block(facts["totals"], columns))
        # This comes last, because it makes the spans known:
        self._table.append_block(Block(facts["table"], columns))

    def _text_of(self, _span: int, data: bytes, /) -> str:
        """Return the text in a line of the file; if the line is damaged, delete the file.

        Raises:
            OSError: The line is damaged.
        """
        try:
            _preview, _mark, text_json = data.removesuffix(b"}").partition(BEFORE_TEXT)
            text = from_json(text_json)
            if not isinstance(text, str):
                raise TypeError("a line of a file of spans holds no text")
        except BROKEN as error:
            self._file.drop()
            raise OSError(EIO, _DAMAGED_TEXT) from error
        return text

    def _preview_of_lines(self, _span: int, first: int, last: int, /) -> tuple[str, bool]:
        """Return the preview of a span, and True if the preview is the entire text.

        Only the beginning of the line is read, which has the preview before the text.

        Raises:
            OSError: The line is damaged, or cannot be read.
        """
        data = self._index.read(first, last, _PREVIEW_BYTES)
        try:
            preview_json, _mark, _text = data.partition(BEFORE_TEXT)
            value = from_json(preview_json + b"}")
            return str(value["preview"]), bool(value["whole"])
        except BROKEN as error:
            raise OSError(EIO, _DAMAGED_TEXT) from error


def _meta_of_facts(facts: Mapping[str, Any]) -> TraceMeta:
    """Return the facts of a run from the JSON object that ``_trace_head`` made."""
    sections = {
        section: tuple((name, text) for name, text in entries)
        for section, entries in facts["answer_key"].items()
    }
    fields = {**facts, "outcome": Outcome(facts["outcome"]), "answer_key": AnswerKey(**sections)}
    return TraceMeta(**fields)
