"""The traces of the app: reading and scanning files, and going from trace to trace."""

from __future__ import annotations

import os
from asyncio import wrap_future
from collections.abc import Callable, Iterator, Set
from contextlib import closing
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from mast_tui.counts import counted
from mast_tui.safe_text import one_line
from mast_tui.traces.library import read_file
from mast_tui.traces.model import FileReport, Trace, TraceMasks
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


class Prefetch:
    """The report on a single file, read in a thread that ends with the process.

    A small file is read before the first frame. The first frame needs only the first spans and the
    totals, so the rest of the cache is loaded after it.
    """

    def __init__(self, options: AppOptions) -> None:
        self._report: FileReport | None = None
        self._process: DocumentProcess | None = None
        self._stopped = False
        self._first_spans_read = Event()
        self._first_frame_drawn = Event()
        self._thread: Thread | None = None
        if len(options.paths) == 1 and options.paths[0].is_file():
            self._path = options.paths[0]
            self._thread = Thread(target=self._read_all, name="read-ahead", daemon=True)
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
        """The name of the file, and the progress of reading a big document."""
        process = self._process
        return self._path.name + ("" if process is None else f": {process.progress.description}")

    def first_spans(self, patience: float) -> FileReport | None:
        """Return the report once the first spans are read, or None after ``patience`` seconds.

        The other spans of a cached document are read after ``load_cache``.
        """
        if self._thread is not None:
            self._first_spans_read.wait(patience)
        return self._report

    def load_cache(self) -> None:
        """Let the thread load the rest of the cache, because the first frame was drawn."""
        self._first_frame_drawn.set()

    def report(self, patience: float | None = None) -> FileReport | None:
        """Return the report once the whole file is read.

        Args:
            patience: The longest wait in seconds; None for no limit.

        Returns:
            The report, or None after the longest wait.
        """
        self.load_cache()
        if self._thread is not None:
            self._thread.join(patience)
        return None if self.is_reading else self._report

    def stop(self) -> None:
        """Stop reading a big document. The report then says that it was stopped."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.stop()

    def _read_all(self) -> None:
        """Read the file. After the first frame, load the cached spans of its traces."""
        try:
            self._read_file_and_totals()
        finally:
            self._first_spans_read.set()
        self._first_frame_drawn.wait()
        if self._report is not None:
            for trace in self._report.traces:
                trace.spans.load_cached()

    def _read_file_and_totals(self) -> None:
        """Read the file and its cached totals, a big document in another process."""
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
"""Seconds that the first frame waits for the cached traces of a folder.

The cache usually answers at once. It takes longer only on a disk that hangs.
"""


_WORKSPACE: Final = Path(".mast-tui", "workspace.db")
"""The path of the default workspace, also defined in ``workspace.paths``."""


def _may_mask_texts(options: AppOptions) -> bool:
    """Return whether the workspace may have a study that masks texts.

    The file is read without SQLAlchemy, which is slow to import. A server may have such a study.
    """
    if options.samples:
        return False
    if options.on_server:
        return True
    path = _workspace_file(options)
    if path is None:
        return False
    # The import delays the start, and is needed only with a workspace.
    import sqlite3

    query = "SELECT 1 FROM studies WHERE json_extract(document, '$.redact') LIMIT 1"
    # SQLite would leave a log beside a file that cannot be written, unless it is immutable.
    immutable = "" if os.access(path, os.W_OK) else "&immutable=1"
    address = f"{path.absolute().as_uri()}?mode=ro{immutable}"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return connection.execute(query).fetchone() is not None
    except sqlite3.OperationalError as error:
        return "no such table" not in str(error)  # a locked file may have such a study
    except sqlite3.DatabaseError:  # opening the workspace reports it
        return False


def _workspace_file(options: AppOptions) -> Path | None:
    """Return the file of the workspace, or None if it does not exist."""
    if options.workspace is not None:
        paths = [Path(options.workspace).expanduser()]
    else:
        paths = [folder / _WORKSPACE for folder in (Path.cwd(), *Path.cwd().parents)]
    return next((path for path in paths if path.is_file()), None)


class TraceService:
    """The traces under the paths of the command line.

    If a study may mask texts, no trace is shown before ``mask`` is called.
    """

    def __init__(self, app: MastApp) -> None:
        """Begin to read a single file. Folders wait for ``begin``."""
        self.prefetch = Prefetch(app.options)
        self.awaits_masks = _may_mask_texts(app.options)
        """True until it is known if a study masks the texts of traces."""
        self._app = app

    @cached_property
    def catalog(self) -> Catalog:
        """The traces that were found so far."""
        # The first spans do not need the catalog, so importing it would delay the start.
        from mast_tui.ui.services.trace_catalog import Catalog

        return Catalog()

    def mask(self, masks: TraceMasks | None) -> None:
        """Mask the texts of all traces as the study asks, and begin to read if that was waiting."""
        if masks is not None or self.catalog.masks is not None:
            self.catalog.mask(masks)
            self._app.masks_changed()
        if self.awaits_masks:
            self.awaits_masks = False
            self.begin()

    def begin(self) -> None:
        """Show the traces read for the first frame, and read the rest in the background.

        Do nothing while masks are awaited.
        """
        if self.awaits_masks:
            return
        report = self.prefetch.first_spans(0)  # the first frame waited for it
        # ``report`` also lets the prefetch load the rest of a cached document.
        if report is not None:
            report = self.prefetch.report(LOOK_PATIENCE)
        if report is not None and len(report.traces) == 1:
            self.take(FilesRead([report], done=True))
            return
        scan = ScanThread(self._scan_news, self._take_later)
        self._app.call_after_refresh(scan.go_on)
        self._app.run_worker(_wait_for_scan(scan), group="read", exclusive=True)
        first_news = scan.first(LOOK_PATIENCE)
        if isinstance(first_news, CachedTraces):
            self.take(first_news)

    def _take_later(self, news: ScanNews) -> None:
        self._app.call_later(self.take, news)

    def _scan_news(self, stopped: Callable[[], bool]) -> Iterator[ScanNews]:
        """Yield the results of reading the paths, in the thread of the scan."""
        if not self.prefetch.single:
            # A single file does not need this import, which would delay the start.
            from mast_tui.ui.services.folder_scan import scan_paths

            yield from scan_paths(self._app.options.paths, stopped, self._take_later)
            return
        # A single file has no cached traces. This first report lets the first frame appear.
        yield CachedTraces(())
        while self.prefetch.report(REPORT_SECONDS) is None and self.prefetch.is_reading:
            yield StillReading(self.prefetch.description)
        # Without a report, reading the file has failed: read it again to raise the error here.
        report = self.prefetch.report() or read_file(self._app.options.paths[0], named=True)
        yield FilesRead([report], done=True)

    def take(self, news: ScanNews) -> None:
        """Take over the news of the scan, and let the screens show it."""
        catalog = self.catalog
        match news:
            case StillReading(progress):
                catalog.being_read = progress
                for screen in self._app.main_screens:
                    screen.still_reading(progress)
            case CachedTraces(traces):
                if traces:
                    catalog.checking = True
                    catalog.add_traces(traces)
                    self._app.show_new_traces()
            case FilesRead():
                self._update_catalog(news)

    def _update_catalog(self, news: FilesRead) -> None:
        """Add the files to the catalog, and show the traces.

        At the end of the scan, count the finished traces again.
        """
        catalog = self.catalog
        catalog.being_read = ""
        catalog.remove(news.gone)
        for report in news.reports:
            catalog.add(report)  # This counts the file.
        catalog.looked_at += news.same
        catalog.total = max(catalog.total, news.total)
        if news.done:
            catalog.complete = True
            catalog.checking = False
            self._app.writes.do(self._app.trace_queue.count_finished, HeldKeys.NOTHING)
        self._app.show_new_traces()


async def _wait_for_scan(scan: ScanThread) -> None:
    """Wait for the end of a scan. If the wait is cancelled, stop the scan."""
    try:
        await wrap_future(scan.has_ended)
    finally:
        scan.stop()


class TraceQueue:
    """The order in which the user goes from trace to trace."""

    def __init__(self, app: MastApp) -> None:
        self.ids: list[str] = []
        """The ids of the traces in the order of the library."""
        self.filter_text = ""
        """The filter of the library, which hides other traces; empty without one."""
        self.left_trace_id: str | None = None
        """The id of the trace for the cursor of the library when it is shown again, or None."""
        self.sort = ""
        """The order of the library that was left; empty before."""
        self._app = app
        self._opened_ids: list[str] = []
        """The ids of the traces that were opened one from another, in the order of opening."""
        self._finished: Set[str] = frozenset()
        self._retests: Set[str] = frozenset()
        self._assigned_ids: Set[str] | None = None

    def note_opened(self, trace: Trace, *, from_trace: bool) -> None:
        """Record that a trace was opened.

        Args:
            trace: The trace.
            from_trace: True if it was opened from another trace, False if from another screen.
        """
        trace_id = self.left_trace_id = trace.identity.trace_id
        if not from_trace:
            self._opened_ids = [trace_id]
        elif trace_id not in self._opened_ids:
            self._opened_ids.append(trace_id)

    def neighbour(self, trace: Trace | None, step: int) -> Trace | None:
        """Return the next or previous trace in the queue.

        The first trace follows the last one. A trace that has left the queue, because it was
        finished, is between the traces that were opened before and after it. After the last of
        these, the queue begins. Any other trace outside of the queue has the order of the catalog.

        Args:
            trace: The trace to start from.
            step: 1 for the next trace, -1 for the previous one.

        Returns:
            The trace, or None if there is no other trace.
        """
        if trace is None:
            return None
        trace_id = trace.identity.trace_id
        traces = self._app.catalog.traces
        opened_ids = [opened_id for opened_id in self._opened_ids if opened_id in traces]
        for first_id, next_id in pairwise(opened_ids[::step]):
            leads_back = step < 0 and next_id not in self.ids
            if first_id == trace_id and (leads_back or first_id not in self.ids):
                return traces[next_id]
        queue = self.ids if trace_id in self.ids else list(traces)
        if step > 0 and queue is not self.ids and self.ids and trace_id in opened_ids[1:]:
            return traces[self.ids[0]]
        if trace_id not in queue or len(queue) < 2:
            return None
        return traces[queue[(queue.index(trace_id) + step) % len(queue)]]

    def end_text(self) -> str:
        """Return why there is no other trace, and the key that changes this."""
        key_of = self._app.key_of
        if self.filter_text:
            return (
                f"No other trace matches the filter “{one_line(self.filter_text, 30)}” · "
                f"{key_of('everywhere.library')}, then {key_of('everywhere.back')} removes it"
            )
        key = key_of("library.queue")
        return f"No other trace is in the queue · {key} in the library chooses another queue"

    async def count_finished(self) -> None:
        """Read again which traces the annotator has finished, and which a study assigns."""
        opened = self._app.opened
        if opened is None:
            return
        id_sets = await self._app.workspace.carry_out(
            lambda: (opened.finished(), opened.retests(), opened.own_traces())
        )
        if id_sets is not None:
            self._finished, self._retests, self._assigned_ids = id_sets

    @property
    def has_finished(self) -> bool:
        """True if the annotator has finished a trace."""
        return bool(self._finished)

    @property
    def of_study(self) -> bool:
        """True if a study assigns the traces, to each annotator in another order."""
        return self._assigned_ids is not None

    @property
    def all_finished(self) -> bool:
        """True if the annotator has finished all of their traces.

        False as long as more traces may be found.
        """
        assigned_ids = self._assigned_traces
        are_all_known = self._assigned_ids is not None or self._app.catalog.complete
        return are_all_known and bool(assigned_ids) and assigned_ids <= self._finished

    @property
    def last_retests(self) -> int:
        """The number of retests if nothing else is left to do; otherwise 0."""
        retest_ids = self._assigned_traces & self._retests
        return len(retest_ids) if self._assigned_traces <= self._finished | self._retests else 0

    @property
    def _assigned_traces(self) -> Set[str]:
        """The ids of the traces that the study assigns to the annotator, or of all traces."""
        return self._app.catalog.traces.keys() if self._assigned_ids is None else self._assigned_ids

    def finished_parts(self) -> tuple[str, ...]:
        """Return parts of a title, such as ``6 of 6 finished`` and ``2 retests to do``."""
        if self._assigned_ids is not None and not self._assigned_ids:
            return ("no traces to label",)
        assigned_ids = self._assigned_traces
        retest_ids = assigned_ids & self._retests
        finished_count = len(assigned_ids & self._finished) + len(retest_ids)
        finished_text = f"{finished_count:,} of {len(assigned_ids):,} finished"
        retests_text = f"{counted(len(retest_ids), 'retest')} to do"
        return (finished_text, retests_text) if retest_ids else (finished_text,)
