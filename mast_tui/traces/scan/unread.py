"""Traces with facts from an earlier reading, whose spans are read later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import ReferenceType, ref

from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.model import (
    FileReport,
    Loaded,
    Problem,
    Span,
    SpanColumns,
    Trace,
    TraceSummary,
    UnreadSpans,
)
from mast_tui.traces.scan.big_documents import BIG_DOCUMENTS

if TYPE_CHECKING:
    from mast_tui.traces.scan.document_process import DocumentProcess

_WAIT_SECONDS: Final = 0.1
"""The seconds for which ``advance`` waits for the process that reads a big document."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _FileReading:
    """The result of one reading of a file, shared by the traces in it."""

    report: FileReport


class FileToRead:
    """A file with its sub-agents' files, which is read when a trace in it is opened.

    All open traces in the file share one reading, which memory holds as long as they do.
    """

    __slots__ = ("_last_reading", "_read", "path")

    def __init__(self, path: str, read: Callable[[], FileReport]) -> None:
        """Store the function that reads a file.

        Args:
            path: The file, or a folder that holds one run.
            read: Reads the file and the files of its sub-agents.
        """
        self.path = path
        self._read = read
        self._last_reading: ReferenceType[_FileReading] | None = None

    def read(self) -> _FileReading:
        """Return the last reading of the file if it is in memory and valid, else a new one."""
        reading = None if self._last_reading is None else self._last_reading()
        # The first trace shows for all of them whether the file has changed.
        if reading is None or any(map(_has_changed, reading.report.traces[:1])):
            reading = _FileReading(self._read())
            self._last_reading = ref(reading)
        return reading


def _has_changed(trace: Trace) -> bool:
    """Return whether the file has changed or grown since it was read, or cannot be read."""
    try:
        return trace.change_reason() is not None or trace.has_grown()
    except OSError:
        return True


class UnreadFile(UnreadSpans):
    """The spans of a file that the first call of ``advance`` reads.

    Another process reads a big document. Then each ``advance`` waits a moment for the process.
    """

    __slots__ = ("_failure", "_file", "_opened", "_process", "_reading", "_record", "_summary")

    def __init__(self, file: FileToRead, record: int | None, summary: TraceSummary) -> None:
        self._file = file
        self._record = record
        self._summary = summary
        self._failure: str | None = None
        """The reason why the trace cannot be read any more."""
        self._process: DocumentProcess | None = None
        """The process that reads the file, if it is a big document."""
        self._reading: _FileReading | None = None
        """The reading of the file, kept so that the other traces in it share it."""
        self._opened: Trace | None = None

    def unread_again(self, summary: TraceSummary, /) -> UnreadFile:
        """Return new unread spans of the same file, with the facts of a newer summary."""
        return UnreadFile(self._file, self._record, summary)

    @property
    def opened(self) -> Trace | None:
        """The trace in the file, once the file was read; else None."""
        return self._opened

    @property
    def problems(self) -> Sequence[Problem]:
        """The problem that the file cannot be read any more, if that is so."""
        if self._failure is None:
            return ()
        return (Problem("whole file", f"can no longer be read: {self._failure}"),)

    @property
    def loaded(self) -> Loaded:
        """The progress of another process that reads the file; without one nothing is read."""
        if self._failure is not None:
            return Loaded(0, 0, complete=True)  # there is nothing to wait for
        summary = self._summary
        unstarted = Loaded(0, summary.total, False, summary.spans, summary.all_spans)
        process = self._process
        if process is None:
            return unstarted
        progress = process.progress
        return unstarted._replace(done=progress.done, total=progress.total)

    def __len__(self) -> int:
        return 0

    def span(self, index: int, /) -> Span:
        """Raise ``IndexError``, because there is no span yet."""
        raise IndexError(index)

    def text(self, index: int, /) -> str:
        """Raise ``IndexError``, because there is no span yet."""
        raise IndexError(index)

    def columns(self, first: int, _end: int, /) -> SpanColumns:
        """Raise ``IndexError``, because there are no spans yet.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        raise IndexError(first)

    def index_of(self, _key: str, /) -> int | None:
        """Return None, because no span is known yet."""
        return None

    def advance(self, _max_bytes: int, /) -> bool:
        """Read the file, or wait a moment for the process that reads it; then set ``opened``.

        Return False if nothing is left to read, or the trace is no longer in the file.
        """
        if self._failure is not None:
            return False
        process = self._process or BIG_DOCUMENTS.begin(trace_path(self._file.path))
        self._process = process
        if process is not None:
            if not process.wait(_WAIT_SECONDS):
                return True
            self._process = None
            if process.failed is not None:
                self._failure = process.failed
                return False
        self._reading = self._file.read()
        report = self._reading.report
        trace = next(
            (candidate for candidate in report.traces if candidate.record == self._record), None
        )
        if trace is None:
            self._failure = report.failed or report.skipped or "it contains other traces now"
            return False
        self._opened = trace
        return not trace.loaded.complete

    @property
    def waiting(self) -> str | None:
        """The progress of another process that reads the file, in words; None without one."""
        process = self._process
        return None if process is None else process.progress.description

    def stop_background_read(self) -> None:
        """End the process that reads the file; the next ``advance`` starts another process.

        Only the thread that calls ``advance`` may call it.
        """
        process = self._process
        self._process = None
        if process is not None:
            process.stop()
            process.wait()


def unread_trace(file: FileToRead, record: int | None, summary: TraceSummary) -> Trace:
    """Return a trace known from an earlier reading, whose file ``advance`` reads.

    Args:
        file: The file.
        record: The number of the trace in the file; None if the file is one trace.
        summary: The facts from the earlier reading.
    """
    return Trace.unread(summary, file.path, record, UnreadFile(file, record, summary))


def without_spans(report: FileReport, file: FileToRead) -> FileReport:
    """Return a report with unread traces, which keep no spans in memory.

    Args:
        report: The report.
        file: The file of the report.
    """
    traces = tuple(
        trace if trace.is_unread else unread_trace(file, trace.record, trace.summary)
        for trace in report.traces
    )
    return report._replace(traces=traces)
