"""Reading the one file that was named while the app is still being set up."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

from mast_tui.traces.library import read_file
from mast_tui.traces.model import FileReport
from mast_tui.traces.scan.big_documents import BIG_DOCUMENTS
from mast_tui.ui.options import AppOptions

if TYPE_CHECKING:
    from mast_tui.traces.scan.document_process import DocumentProcess


class Prefetch:
    """The report on a single file, read in a thread that keeps nobody from leaving.

    A small trace is there before the first frame, which then shows its spans; for a big or slow
    one nobody waits. The first frame does with the first spans of a trace and its totals. What else
    an earlier reading has kept takes longer: that is taken in when the frame has been drawn.
    """

    def __init__(self, options: AppOptions) -> None:
        self._report: FileReport | None = None
        self._process: DocumentProcess | None = None
        self._stopped = False
        self._first, self._drawn = Event(), Event()
        self._thread: Thread | None = None
        if len(options.paths) == 1 and options.paths[0].is_file():
            self._path = options.paths[0]
            self._thread = Thread(target=self._read, name="read-ahead", daemon=True)
            self._thread.start()

    @property
    def single(self) -> bool:
        """Whether it is a single file that was named."""
        return self._thread is not None

    @property
    def under_way(self) -> bool:
        """Whether it is still being read."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def words(self) -> str:
        """What is being read, and how far that is where another process does it."""
        process = self._process
        return self._path.name + ("" if process is None else f": {process.progress.words}")

    def first_spans(self, patience: float) -> FileReport | None:
        """The report, without all that was kept; None where it is not there after so many
        seconds."""
        if self._thread is not None:
            self._first.wait(patience)
        return self._report

    def drawn(self) -> None:
        """The first frame has been drawn, or there is none: take in what was kept."""
        self._drawn.set()

    def report(self, patience: float | None = None) -> FileReport | None:
        """The report, or None where it is not there after ``patience`` seconds (None: any)."""
        self.drawn()
        if self._thread is not None:
            self._thread.join(patience)
        return None if self.under_way else self._report

    def stop(self) -> None:
        """End the process that reads a big document; the report says so."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.stop()

    def _read(self) -> None:
        try:
            self._read_first()
        finally:
            self._first.set()
        self._drawn.wait()
        for trace in () if self._report is None else self._report.traces:
            trace.spans.load_cached()

    def _read_first(self) -> None:
        process = self._process = BIG_DOCUMENTS.begin(self._path)
        if process is not None:
            if self._stopped:  # before there was a process to stop
                process.stop()
            process.wait()
            if process.failed is not None:
                self._report = FileReport(self._path, failed=process.failed)
                return
        report = read_file(self._path, named=True)
        try:
            for trace in report.traces:
                trace.spans.load_totals()
        finally:  # the trace can be shown whatever is wrong with what was kept
            self._report = report
