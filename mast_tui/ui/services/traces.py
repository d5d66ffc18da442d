"""The traces of the app: looking for them, those that were found, and going through them."""

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
    TOLD_SECONDS,
    CachedTraces,
    FilesRead,
    Found,
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
        return self._path.name + ("" if process is None else f": {process.progress.description}")

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


LOOK_PATIENCE: Final = 0.3
"""Seconds for which the first frame waits for what was kept of the last look at a folder: it tells
at once even that there is nothing, so that only a disk that hangs is not waited for."""


@runtime_checkable
class ListsTraces(Protocol):
    """A screen that lists what was found."""

    def refresh_rows(self) -> None:
        """Take in what has come, changed or gone."""


@runtime_checkable
class HearsReading(Protocol):
    """A screen that tells how far the reading of a big document has come."""

    def still_reading(self, words: str) -> None:
        """Show these words."""


class TraceService:
    """Looks under the paths that were given, and keeps what was found."""

    def __init__(self, app: MastApp, options: AppOptions) -> None:
        """Begin to read a single file at once; a folder waits for ``begin``.

        Args:
            app: Whom to tell.
            options: Where to look.
        """
        self.prefetch = Prefetch(options)
        self._app = app
        self._options = options

    @cached_property
    def catalog(self) -> Catalog:
        """The traces that were found, none at first."""
        # Start-up: the first spans are shown without it.
        from mast_tui.ui.services.trace_catalog import Catalog

        return Catalog()

    def begin(self) -> None:
        """Take in what is there already, for the first frame; read on beside it.

        That is the trace of a single file, or the first traces of the last look at a folder.
        """
        early = self.prefetch.first_spans(0)  # the first frame has waited for it
        if early is not None:
            early = self.prefetch.report(LOOK_PATIENCE)
        if early is not None and len(early.traces) == 1:
            self.take(FilesRead([early], True))
            return
        looking = ScanThread(self._look, self._take_later)
        self._app.call_after_refresh(looking.go_on)
        self._app.run_worker(_until_over(looking), group="read", exclusive=True)
        first = looking.first(LOOK_PATIENCE)
        if isinstance(first, CachedTraces):
            self.take(first)

    def _take_later(self, found: Found) -> None:
        self._app.call_later(self.take, found)

    def _look(self, stopped: Callable[[], bool]) -> Iterator[Found]:
        """What is found, in a thread of its own."""
        if not self.prefetch.single:
            # Start-up: who opens a single file needs neither last looks nor a walk.
            from mast_tui.ui.services.folder_scan import scan_paths

            yield from scan_paths(self._options.paths, stopped, self._take_later)
            return
        yield CachedTraces(())
        while self.prefetch.report(TOLD_SECONDS) is None and self.prefetch.under_way:
            yield StillReading(self.prefetch.words)
        # There is no report only where reading broke: here it breaks where it is seen.
        report = self.prefetch.report() or read_file(self._options.paths[0], named=True)
        yield FilesRead([report], True)

    def take(self, found: Found) -> None:
        """Take in what was found, and have the screens show it."""
        catalog = self.catalog
        match found:
            case StillReading(words):
                catalog.being_read = words
                for screen in self._app.screen_stack:
                    if isinstance(screen, HearsReading):
                        screen.still_reading(words)
            case CachedTraces(traces):
                if traces:
                    catalog.checking = True
                    catalog.add_traces(traces)
                    self._app.traces_found()
            case FilesRead():
                self._files_read(found)

    def _files_read(self, found: FilesRead) -> None:
        catalog = self.catalog
        catalog.being_read = ""
        catalog.remove(found.gone)
        for report in found.reports:
            catalog.add(report)
        catalog.looked_at += found.same
        catalog.total = max(catalog.total, found.total)
        if found.done:
            catalog.complete, catalog.checking = True, False
            self._app.writes.do(self._app.trace_queue.count_finished, HeldKeys.NOTHING)
        self._app.traces_found()


async def _until_over(looking: ScanThread) -> None:
    """Wait until everything has been looked at; leaving ends it."""
    try:
        await wrap_future(looking.over)
    finally:
        looking.stop()


class TraceQueue:
    """Goes on from trace to trace, as the library lists them and as a study has it."""

    def __init__(self, traces: TraceService, workspace: WorkspaceService) -> None:
        self.ids: list[str] = []
        """Ids of the traces that one goes through, as the library lists them."""
        self._traces = traces
        self._workspace = workspace
        self._finished: Set[str] = frozenset()
        self._own: Set[str] | None = None

    def neighbour(self, trace: Trace | None, step: int) -> Trace | None:
        """The trace ``step`` places on in the queue, or None where there is no other."""
        if trace is None:
            return None
        here, known = trace.identity.trace_id, self._traces.catalog.traces
        queue = self.ids if here in self.ids else list(known)
        if here not in queue or len(queue) < 2:
            return None
        return known[queue[(queue.index(here) + step) % len(queue)]]

    async def count_finished(self) -> None:
        """Count anew how many of their traces the annotator has finished."""
        opened = self._workspace.opened
        if opened is None:
            return
        found = await self._workspace.carry_out(lambda: (opened.finished(), opened.own_traces()))
        if found is not None:
            self._finished, self._own = found

    @property
    def all_finished(self) -> bool:
        """Whether the annotator has finished all of their traces, and all of these are known."""
        wanted = self._wanted
        known = self._own is not None or self._traces.catalog.complete
        return known and bool(wanted) and wanted <= self._finished

    @property
    def _wanted(self) -> Set[str]:
        """The traces here, or under a study those of the annotator."""
        return self._traces.catalog.traces.keys() if self._own is None else self._own

    def finished_words(self) -> str:
        """Return how many of the traces here, or of the annotator's in a study, are finished."""
        wanted = self._wanted
        return f"{len(wanted & self._finished)} of {len(wanted)} finished"
