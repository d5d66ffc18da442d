"""The traces of the app: reading and scanning files, and going from trace to trace."""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Callable, Iterator, Set
from functools import cached_property
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from mast_tui.traces.library import read_file
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.big_documents import BIG_DOCUMENTS
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.trace_scan import (
    REPORT_SECONDS,
    CachedTraces,
    FilesRead,
    ScanNews,
    ScanThread,
    StillReading,
)
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.traces.scan.document_process import DocumentProcess
    from mast_tui.ui.context import MastApp
    from mast_tui.ui.services.trace_catalog import Catalog
    from mast_tui.ui.services.workspace import WorkspaceService


class Prefetch:
    """The report on a single file, read in a thread that does not delay the end of the app.

    A small file is read before the first frame, which shows its spans. The first frame needs the
    first spans and the totals only; the rest of the cache is loaded after it was drawn.
    """

    def __init__(self, options: AppOptions) -> None:
        self._report: FileReport | None = None
        self._process: DocumentProcess | None = None
        self._stopped = False
        self._first = Event()
        self._drawn = Event()
        self._thread: Thread | None = None
        if len(options.paths) == 1 and options.paths[0].is_file():
            self._path = options.paths[0]
            self._thread = Thread(target=self._read, name="read-ahead", daemon=True)
            self._thread.start()

    @property
    def single(self) -> bool:
        """True if a single file was named."""
        return self._thread is not None

    @property
    def is_reading(self) -> bool:
        """True while the file is being read."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def description(self) -> str:
        """The name of the file and, for a big document, how much of it was read."""
        process = self._process
        return self._path.name + ("" if process is None else f": {process.progress.description}")

    def first_spans(self, patience: float) -> FileReport | None:
        """Return the report without the rest of the cache, or None if it takes longer than
        ``patience`` seconds.
        """
        if self._thread is not None:
            self._first.wait(patience)
        return self._report

    def load_cache(self) -> None:
        """Load the rest of the cache: the first frame was drawn, or there will be none."""
        self._drawn.set()

    def report(self, patience: float | None = None) -> FileReport | None:
        """Return the report.

        Args:
            patience: The seconds to wait for it; None for no limit.

        Returns:
            The report, or None if it takes longer.
        """
        self.load_cache()
        if self._thread is not None:
            self._thread.join(patience)
        return None if self.is_reading else self._report

    def stop(self) -> None:
        """End the process that reads a big document; the report says so."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.stop()

    def _read(self) -> None:
        """Read the file, and load the rest of its cache once the first frame was drawn."""
        try:
            self._read_first()
        finally:
            self._first.set()
        self._drawn.wait()
        for trace in () if self._report is None else self._report.traces:
            trace.spans.load_cached()

    def _read_first(self) -> None:
        """Read the file and its cached totals; a big document is read by another process."""
        process = self._process = BIG_DOCUMENTS.begin(self._path)
        if process is not None:
            if self._stopped:  # stopped before the process began
                process.stop()
            process.wait()
            if process.failed is not None:
                self._report = FileReport(self._path, failed=process.failed)
                return
        report = read_file(self._path, named=True)
        try:
            for trace in report.traces:
                trace.spans.load_totals()
        finally:  # a broken cache must not hide the trace
            self._report = report


LOOK_PATIENCE: Final = 0.3
"""Seconds for which the first frame waits for the cached traces of a folder.

The cache answers at once, even if it is empty; only a disk that hangs takes longer.
"""


@runtime_checkable
class ListsTraces(Protocol):
    """A screen that lists traces."""

    def refresh_rows(self) -> None:
        """Show traces that were added, changed or removed."""


@runtime_checkable
class HearsReading(Protocol):
    """A screen that shows how much of a big document was read."""

    def still_reading(self, progress: str) -> None:
        """Show a progress report."""


class TraceService:
    """The traces under the paths of the command line."""

    def __init__(self, app: MastApp, options: AppOptions) -> None:
        """Begin to read a single file at once; a folder waits for ``begin``.

        Args:
            app: The app, which shows the traces.
            options: The paths.
        """
        self.prefetch = Prefetch(options)
        self._app = app
        self._options = options

    @cached_property
    def catalog(self) -> Catalog:
        """The traces that were found so far."""
        # Start-up: not needed for the first spans.
        from mast_tui.ui.services.trace_catalog import Catalog

        return Catalog()

    def begin(self) -> None:
        """Show what is read already, for the first frame, and read the rest in the background.

        That is the trace of a single file, or the first cached traces of a folder.
        """
        early = self.prefetch.first_spans(0)  # the first frame waited for it
        if early is not None:
            early = self.prefetch.report(LOOK_PATIENCE)
        if early is not None and len(early.traces) == 1:
            self.take(FilesRead([early], True))
            return
        scan = ScanThread(self._scan, self._take_later)
        self._app.call_after_refresh(scan.go_on)
        self._app.run_worker(_wait_for_scan(scan), group="read", exclusive=True)
        first = scan.first(LOOK_PATIENCE)
        if isinstance(first, CachedTraces):
            self.take(first)

    def _take_later(self, news: ScanNews) -> None:
        self._app.call_later(self.take, news)

    def _scan(self, stopped: Callable[[], bool]) -> Iterator[ScanNews]:
        """Yield the results of reading, in a thread of its own."""
        if not self.prefetch.single:
            # Start-up: not needed for a single file.
            from mast_tui.ui.services.folder_scan import scan_paths

            yield from scan_paths(self._options.paths, stopped, self._take_later)
            return
        yield CachedTraces(())
        while self.prefetch.report(REPORT_SECONDS) is None and self.prefetch.is_reading:
            yield StillReading(self.prefetch.description)
        # Without a report, reading has raised an error: raise it again here.
        report = self.prefetch.report() or read_file(self._options.paths[0], named=True)
        yield FilesRead([report], True)

    def take(self, news: ScanNews) -> None:
        """Store news of the scan, and have the screens show it."""
        catalog = self.catalog
        match news:
            case StillReading(progress):
                catalog.being_read = progress
                for screen in self._app.screen_stack:
                    if isinstance(screen, HearsReading):
                        screen.still_reading(progress)
            case CachedTraces(traces):
                if traces:
                    catalog.checking = True
                    catalog.add_traces(traces)
                    self._app.show_new_traces()
            case FilesRead():
                self._files_read(news)

    def _files_read(self, news: FilesRead) -> None:
        """Update the catalog, and show the traces."""
        catalog = self.catalog
        catalog.being_read = ""
        catalog.remove(news.gone)
        for report in news.reports:
            catalog.add(report)
        catalog.looked_at += news.same
        catalog.total = max(catalog.total, news.total)
        if news.done:
            catalog.complete = True
            catalog.checking = False
            self._app.writes.do(self._app.trace_queue.count_finished, HeldKeys.NOTHING)
        self._app.show_new_traces()


async def _wait_for_scan(scan: ScanThread) -> None:
    """Wait for the end of a scan; stop it if the wait is cancelled."""
    try:
        await wrap_future(scan.over)
    finally:
        scan.stop()


class TraceQueue:
    """The order in which the user goes from trace to trace: that of the library, or of a study."""

    def __init__(self, traces: TraceService, workspace: WorkspaceService) -> None:
        self.ids: list[str] = []
        """The ids of the traces in the order of the library."""
        self._traces = traces
        self._workspace = workspace
        self._finished: Set[str] = frozenset()
        self._assigned_ids: Set[str] | None = None

    def neighbour(self, trace: Trace | None, step: int) -> Trace | None:
        """Return the trace some positions after another one in the queue; it is a ring.

        Args:
            trace: The trace to start from.
            step: The number of positions; negative for backwards.

        Returns:
            The trace, or None if the queue has no other one.
        """
        if trace is None:
            return None
        trace_id = trace.identity.trace_id
        traces = self._traces.catalog.traces
        queue = self.ids if trace_id in self.ids else list(traces)
        if trace_id not in queue or len(queue) < 2:
            return None
        return traces[queue[(queue.index(trace_id) + step) % len(queue)]]

    async def count_finished(self) -> None:
        """Count again how many traces the annotator has finished."""
        opened = self._workspace.opened
        if opened is None:
            return
        sets = await self._workspace.carry_out(lambda: (opened.finished(), opened.own_traces()))
        if sets is not None:
            self._finished, self._assigned_ids = sets

    @property
    def all_finished(self) -> bool:
        """True if the annotator has finished all of their traces, and all of them are known."""
        assigned = self._assigned
        all_known = self._assigned_ids is not None or self._traces.catalog.complete
        return all_known and bool(assigned) and assigned <= self._finished

    @property
    def _assigned(self) -> Set[str]:
        """The traces in the library, or under a study those of the annotator."""
        return (
            self._traces.catalog.traces.keys() if self._assigned_ids is None else self._assigned_ids
        )

    def finished_words(self) -> str:
        """Return how many of these traces are finished, as text."""
        assigned = self._assigned
        return f"{len(assigned & self._finished)} of {len(assigned)} finished"
