"""Traces of which everything is known but their spans, which are read later."""

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

_PATIENCE: Final = 0.1
"""Seconds for which ``advance`` waits for the process that reads a big document."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Reading:
    """One reading of a file."""

    report: FileReport


class FileToRead:
    """A file that is read when a trace of it is opened, with those of its sub-agents.

    Traces of one file that are open together share one reading; with the last it is gone from
    memory.
    """

    __slots__ = ("_last", "_read", "members", "path", "was_named")

    def __init__(
        self,
        path: str,
        members: Sequence[str],
        read: Callable[[], FileReport],
        *,
        was_named: bool = False,
    ) -> None:
        """Describe how a file is read.

        Args:
            path: The file, or a folder that holds one run.
            members: The files of its sub-agents.
            read: Reads it.
            was_named: Whether the user named the file.
        """
        self.path = path
        self.members = tuple(members)
        self.was_named = was_named
        self._read = read
        self._last: ReferenceType[_Reading] | None = None

    def read(self) -> _Reading:
        """Read the file, unless a trace of it is still open and it has not changed since."""
        reading = None if self._last is None else self._last()
        if reading is None or any(map(_is_old, reading.report.traces[:1])):
            reading = _Reading(self._read())
            self._last = ref(reading)
        return reading


def _is_old(trace: Trace) -> bool:
    """Return whether the file has changed or grown since it was read."""
    try:
        return trace.changed() is not None or trace.has_grown()
    except OSError:
        return True


class UnreadFile(UnreadSpans):
    """The spans of a file that is read when it is asked to ``advance``.

    A big document that is not kept is read by another process meanwhile: ``advance`` looks how far
    that is.
    """

    __slots__ = ("_file", "_lost", "_opened", "_process", "_reading", "_record", "_summary")

    def __init__(self, file: FileToRead, record: int | None, summary: TraceSummary) -> None:
        self._file = file
        self._record = record
        self._summary = summary
        self._lost: str | None = None
        self._process: DocumentProcess | None = None
        self._reading: _Reading | None = None
        self._opened: Trace | None = None

    def unread_again(self, summary: TraceSummary, /) -> UnreadFile:
        """Return the spans as they were before anything was read."""
        return UnreadFile(self._file, self._record, summary)

    @property
    def was_named(self) -> bool:
        """True if the user named the file."""
        return self._file.was_named

    @property
    def opened(self) -> Trace | None:
        """The trace that was there when the file was read."""
        return self._opened

    @property
    def problems(self) -> Sequence[Problem]:
        """The reason why the file cannot be read any more."""
        if self._lost is None:
            return ()
        return (Problem("whole file", f"cannot be read any more: {self._lost}"),)

    @property
    def loaded(self) -> Loaded:
        """The progress of another process that reads the file; else nothing is read."""
        if self._lost is not None:
            return Loaded(0, 0, complete=True)
        summary = self._summary
        process = self._process
        if process is not None:
            progress = process.progress
            return Loaded(progress.done, progress.total, False, summary.spans, summary.all_spans)
        return Loaded(0, summary.total, False, summary.spans, summary.all_spans)

    def __len__(self) -> int:
        return 0

    def span(self, index: int, /) -> Span:
        """Raise ``IndexError``, as there is no span yet."""
        raise IndexError(index)

    def text(self, index: int, /) -> str:
        """Raise ``IndexError``, as there is no span yet."""
        raise IndexError(index)

    def columns(self, first: int, _end: int, /) -> SpanColumns:
        """Raise ``IndexError``, as there are no spans yet.

        Args:
            first: The first span.
            end: The span after the last.
        """
        raise IndexError(first)

    def index_of(self, _key: str, /) -> int | None:
        """Return None, as no span is known yet."""
        return None

    def advance(self, _max_bytes: int, /) -> bool:
        """Read the file; ``opened`` is the trace in it from then on."""
        if self._lost is not None:
            return False
        process = self._process or BIG_DOCUMENTS.begin(trace_path(self._file.path))
        self._process = process
        if process is not None:
            if not process.wait(_PATIENCE):
                return True
            self._process = None
            if process.failed is not None:
                self._lost = process.failed
                return False
        self._reading = self._file.read()
        report = self._reading.report
        trace = next(
            (candidate for candidate in report.traces if candidate.record == self._record), None
        )
        if trace is None:
            self._lost = report.failed or report.skipped or "it holds other traces now"
            return False
        self._opened = trace
        return not trace.loaded.complete

    @property
    def waiting(self) -> str | None:
        """The progress of another process that reads the file, in words; None if none does."""
        process = self._process
        return None if process is None else process.progress.description

    def stop_background_read(self) -> None:
        """End the process that reads the file; the next ``advance`` begins another.

        To be called from the thread that advances, as that is what waits.
        """
        process = self._process
        self._process = None
        if process is not None:
            process.stop()
            process.wait()


def unread_trace(file: FileToRead, record: int | None, summary: TraceSummary) -> Trace:
    """Return a trace known from an earlier reading, whose file is read by ``advance``.

    Args:
        file: The file.
        record: The number of the trace in the file; None if the file is one trace.
        summary: The facts from the earlier reading.
    """
    return Trace.unread(summary, file.path, record, UnreadFile(file, record, summary))


def without_spans(report: FileReport, file: FileToRead) -> FileReport:
    """Return a report with traces that keep nothing of the file in memory until they are read.

    Args:
        report: The report.
        file: The file of the report.
    """
    traces = tuple(
        trace if trace.is_unread else unread_trace(file, trace.record, trace.summary)
        for trace in report.traces
    )
    return report._replace(traces=traces)
