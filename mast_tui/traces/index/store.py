"""A document that was read once, as a file of spans that can be read again by offset.

The file holds for each trace its texts, one line a span, and after them a block of columns.
After them all come the facts of the document and of each trace, and at the very end the offset
of the facts and their checksum, so that a file that was not written to its end is recognised.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
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

FORMAT: Final = 4
"""Changes with everything that changes in such files."""

BEFORE_TEXT: Final = b',"text":'
"""The separator in a line; quotes within a JSON string are escaped, so it occurs only once."""

_END: Final = b"%020d %08x end of mast-tui spans\n"
END_BYTES: Final = len(_END % (0, 0))

Tell = Callable[[int, int], None]
"""Hears how many of how many spans have been written."""

_REPORT_EVERY: Final = 100
"""The number of spans written between two reports of progress."""


def write_cached(file: IO[bytes], report: FileReport | None, tell: Tell) -> None:
    """Write the result of reading a document as a file of spans.

    Args:
        file: The file.
        report: The report, all of its traces complete; None says that no reader knows the document.
        tell: Called with the number of spans written, and the number of all.

    Raises:
        OSError: from the file system.
    """
    traces = () if report is None else report.traces
    total = sum(map(len, traces))
    done = 0
    begin = 0
    heads = []
    for trace in traces:
        spans = _spans_of(trace)
        texts = array("Q", [0])
        for (preview, whole), text in _previews_and_texts(trace, spans):
            line = to_json({"preview": preview, "whole": whole, "text": text}) + b"\n"
            file.write(line)
            texts.append(texts[-1] + len(line))
            done += 1
            if done % _REPORT_EVERY == 0:
                tell(done, total)
        rows = write_block(file, _columns(spans, texts[1:]))
        heads.append(_trace_head(trace, begin, texts[-1], rows))
        begin += texts[-1] + rows
    write_end(file, begin, {"report": _report_facts(report), "traces": heads})


def write_end(file: IO[bytes], begin: int, facts: Mapping[str, object]) -> None:
    """Write the facts after the spans, and the mark that makes the file whole.

    Args:
        file: The file.
        begin: The offset at which the facts begin.
        facts: The facts.
    """
    data = json.dumps(facts).encode()
    file.write(data)
    file.write(_END % (begin, crc32(data)))


def facts_at_end(file: IO[bytes]) -> tuple[Mapping[str, Any], int] | None:
    """Return the facts after the spans of a file, and their offset.

    Returns:
        None for a file that was not written to its end.
    """
    size = os.fstat(file.fileno()).st_size
    end = os.pread(file.fileno(), END_BYTES, max(0, size - END_BYTES))
    if not end[:20].isdigit():
        return None
    begin = min(int(end[:20]), size)
    data = os.pread(file.fileno(), max(0, size - END_BYTES - begin), begin)
    return (json.loads(data), begin) if _END % (begin, crc32(data)) == end else None


def _spans_of(trace: Trace) -> Sequence[Step | Span]:
    """Return the steps of a document, or the spans of any other trace."""
    spans = trace.spans
    if isinstance(spans, StepSpans):
        return spans.steps
    return [trace.span(index) for index in range(len(trace))]


def _previews_and_texts(
    trace: Trace, spans: Sequence[Step | Span]
) -> Iterator[tuple[tuple[str, bool], str]]:
    """Yield the preview of each span, with whether that is the entire text, and the text."""
    for index, span in enumerate(spans):
        if isinstance(span, Step):
            yield span.row(), span.text
        else:
            yield (span.preview, span.preview_is_complete), trace.text(index)


def _columns(spans: Sequence[Step | Span], text_ends: array[int]) -> Block:
    """Return the columns of all spans of a trace.

    Args:
        spans: The spans or their steps.
        text_ends: The offsets at which the texts end.
    """
    table = SpanTable()
    odd_parents = table.fill(spans)
    places = [
        b"" if span.place == span.key else span.place.encode("utf-8", "surrogatepass")
        for span in spans
    ]
    turns = array("I")  # spans whose thread is not that of the one before
    thread = ""
    for index, span in enumerate(spans):
        thread_name, slash, _suffix = span.key.partition("/")
        if (thread_name if slash else "") != thread:
            thread = thread_name if slash else ""
            turns.append(index)
    facts, columns = table.whole()
    more = {
        "text_ends": text_ends,
        "places": bytearray().join(places),
        "place_ends": array("Q", accumulate(map(len, places))),
        "turns": turns,
    }
    totals = SpanTotals()
    totals.take(table.columns(0, len(table)))
    totals_facts, counted = totals.block()
    odd = list(odd_parents.items())
    return Block(
        {"table": facts, "odd_parents": odd, "totals": totals_facts}, {**columns, **more, **counted}
    )


def _trace_head(trace: Trace, begin: int, texts: int, rows: int) -> dict[str, object]:
    return {
        "identity": trace.identity._asdict(),
        "record": trace.record,
        "meta": trace.meta._asdict() | {"answer_key": trace.meta.answer_key._asdict()},
        "problems": [(problem.place, problem.message) for problem in trace.problems],
        "spawned": dict(trace.spawned),
        "total": trace.loaded.total,
        "spans": len(trace),
        "texts": (begin, texts),
        "rows": (begin + texts, rows),
    }


def _report_facts(report: FileReport | None) -> dict[str, object] | None:
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
    """Return the path at which a process writes a file of spans before it is whole.

    Args:
        cache_path: The path of the whole file.
        process: The id of the process.
    """
    return cache_path.with_name(f"{cache_path.name}.{process}.part")


_PREVIEW_BYTES: Final = 4096
"""The most bytes of a line up to the text, which include the preview."""

BROKEN: Final = (KeyError, TypeError, ValueError, OverflowError, RecursionError)
"""The errors of reading a file of spans with unexpected content."""

_DAMAGED: Final = "what was kept of it is damaged; open it again to have it read anew"


class CachedDocument(NamedTuple):
    """The result of reading a document, from its file of spans; None if no reader knows it."""

    report: FileReport | None


def open_cached(cache_path: Path, path: Path) -> CachedDocument | None:
    """Open the file of spans of a document.

    Args:
        cache_path: The path of the file of spans.
        path: The path of the document.

    Returns:
        The result of reading the document; None if the file is not whole.

    Raises:
        OSError: from the file system.
        Exception: one of ``BROKEN``, where it holds something else than it should.
    """
    spans = _SpanFile(open_regular(cache_path))
    end = facts_at_end(spans.file)
    if end is None:
        return None
    facts, _begin = end
    report_facts = facts["report"]
    if report_facts is None:
        return CachedDocument(None)
    traces = tuple(_trace(path, spans, head) for head in facts["traces"])
    if len(traces) == 1:
        traces[0].advance()
    report = FileReport(
        path,
        format=report_facts["format"],
        traces=traces,
        problems=_problems(report_facts["problems"]),
        skipped=report_facts["skipped"],
        failed=report_facts["failed"],
        thread=None if report_facts["thread"] is None else Thread(*report_facts["thread"]),
    )
    return CachedDocument(report)


def _problems(pairs: Sequence[tuple[str, str]]) -> tuple[Problem, ...]:
    return tuple(Problem(location, message) for location, message in pairs)


class _SpanFile:
    """An open file of spans; it can be read even when it has been removed from its folder."""

    def __init__(self, file: FileIO) -> None:
        self.file = file
        finalize(self, file.close)

    def drop(self) -> None:
        """Remove it from its folder: it is damaged, and its document must be read again."""
        with suppress(OSError):
            os.unlink(self.file.name)  # noqa: PTH108

    def read(self, offset: int, length: int, /) -> bytes:
        """Read a part of the file, even beyond 2 GB.

        Args:
            offset: The first byte.
            length: The most bytes to read.
        """
        data = os.pread(self.file.fileno(), length, offset)
        if 0 < len(data) < length:
            return data + self.read(offset + len(data), length - len(data))
        return data


class _Part:
    """A part of a file of spans."""

    def __init__(self, spans: _SpanFile, begin: int) -> None:
        self._spans = spans
        self._begin = begin

    def read(self, offset: int, length: int, /) -> bytes:
        """Read a section of the part.

        Args:
            offset: The first byte, counted from the beginning of the part.
            length: The most bytes to read.
        """
        return self._spans.read(self._begin + offset, length)


def _trace(path: Path, spans: _SpanFile, head: Mapping[str, Any]) -> Trace:
    return Trace(
        TraceIdentity(**head["identity"]),
        path,
        CachedSpans(spans, head),
        record=head["record"],
        meta=_meta(head["meta"]),
        problems=_problems(head["problems"]),
    )


class CachedSpans(IndexedSpans):
    """Spans whose columns are read at once and whose texts are read on demand.

    They are equal to those that were read from the document itself.
    """

    def __init__(self, spans: _SpanFile, head: Mapping[str, Any]) -> None:
        begin, size = head["texts"]
        super().__init__(LineIndex(_Part(spans, begin), size), SpanTable())
        self._file = spans
        self._total = head["total"]
        self._spans = head["spans"]
        self._rows = head["rows"][0]
        self._places = bytearray()
        self._place_ends = array("Q")
        self._turns = array("I")
        self._odd_parents: Mapping[int, str] = {}
        self._table.spawned.update(head["spawned"])

    @property
    def loaded(self) -> Loaded:
        """The progress: nothing, or all once the columns are read; with the number of spans."""
        if self._finished:
            return Loaded(self._total, self._total, complete=True)
        return Loaded(0, self._total, False, self._spans, True)

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``; its preview is read when that is looked at."""
        span = super().span(index)
        parent = self._odd_parents.get(index, span.parent)
        encoded_location = self._places[
            self._place_ends[index - 1] if index else 0 : self._place_ends[index]
        ]
        return relocated_span(
            span, index, encoded_location.decode("utf-8", "surrogatepass") or span.key, parent
        )

    def source_lines(self, _index: int, /) -> bytes | None:
        """Return None: the lines of this file are not those of the document."""
        return None

    def one_thread(self, first: int, end: int, /) -> bool:
        """Return whether the keys of the spans name one thread or none.

        Args:
            first: The first span.
            end: The span after the last.
        """
        position = bisect_right(self._turns, first)
        return position == len(self._turns) or self._turns[position] >= end

    def advance(self, _max_bytes: int, /) -> bool:
        """Take in all columns; False.

        An error of the file system leaves no spans and becomes a problem.
        """
        if not self._finished:
            try:
                self._read_columns()
            except OSError as error:
                self._lose(error.strerror or str(error))
            except BROKEN:
                self._file.drop()
                self._lose(_DAMAGED)
            self._finished = True
        return False

    def _lose(self, reason: str) -> None:
        self._table.problems.append(Problem("whole file", f"it cannot be read: {reason}"))

    def _read_columns(self) -> None:
        block = block_at(self._file.file.fileno(), self._rows)
        if block is None:
            raise ValueError("there are no columns")
        facts, columns = block[0]
        self._index.append_lines(columns["text_ends"], 0)
        self._places = columns["places"]
        self._place_ends = columns["place_ends"]
        self._turns = columns["turns"]
        self._odd_parents = dict(facts["odd_parents"])
        self._totals = SpanTotals.of_block(Block(facts["totals"], columns))
        # The last, as it makes the spans known:
        self._table.append_block(Block(facts["table"], columns))

    def _text_of(self, _index: int, data: bytes, /) -> str:
        try:
            text = from_json(data.partition(BEFORE_TEXT)[2][:-1])
            if not isinstance(text, str):
                raise TypeError("a line of a file of spans holds no text")
        except BROKEN as error:
            self._file.drop()
            raise OSError(EIO, _DAMAGED) from error
        return text

    def _preview_of_lines(self, _index: int, first: int, last: int, /) -> tuple[str, bool]:
        """Return the preview of a span, which is before its text."""
        head = self._index.read(first, last, _PREVIEW_BYTES)
        try:
            value = from_json(head.partition(BEFORE_TEXT)[0] + b"}")
            return str(value["preview"]), bool(value["whole"])
        except BROKEN as error:
            raise OSError(EIO, _DAMAGED) from error


def _meta(value: Mapping[str, Any]) -> TraceMeta:
    sections = {
        name: tuple((one, text) for one, text in section)
        for name, section in value["answer_key"].items()
    }
    fields = {**value, "outcome": Outcome(value["outcome"]), "answer_key": AnswerKey(**sections)}
    return TraceMeta(**fields)
