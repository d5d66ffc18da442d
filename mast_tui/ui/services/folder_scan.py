"""A scan of folders: the traces of the last scan, those of now, and the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from mast_tui.traces.library import read_again
from mast_tui.traces.library import scan as walk
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.library_cache import LibraryCache, Looked, library_cache_path
from mast_tui.ui.services.trace_scan import (
    REPORT_SECONDS,
    CachedTraces,
    FilesRead,
    ScanNews,
    StillReading,
)
from mast_tui.ui.wording import names_under, natural

if TYPE_CHECKING:
    from mast_tui.traces.scan.document_process import DocumentProcess


class Differences:
    """The differences between a scan and the last one, whose traces are shown already."""

    def __init__(self) -> None:
        self._unseen: dict[str, Trace] = {}
        self._id_at: dict[tuple[str, int | None], str] = {}
        self._gone: list[str] = []
        self.any = False

    def add_cached(self, traces: Sequence[Trace]) -> None:
        """Add traces of the last scan."""
        for trace in traces:
            trace_id = _id_of(trace)
            self._unseen[trace_id] = trace
            self._id_at[trace.file, trace.record] = trace_id

    def news_in(self, report: FileReport) -> FileReport | None:
        """Return the report without unchanged traces, or None if nothing else is in it."""
        changed = [trace for trace in report.traces if self._is_news(trace)]
        if changed:
            self.any = True
        has_messages = report.problems or report.skipped is not None or report.failed is not None
        if not changed and not has_messages:
            return None
        return report._replace(traces=tuple(changed))

    def take_gone(self) -> list[str]:
        """Return the ids of the traces that were found to be gone since the last call."""
        gone = self._gone
        self._gone = []
        return gone

    def finish(self) -> None:
        """End the scan: traces that it has not found are gone."""
        self._gone += self._unseen
        self.any = self.any or bool(self._unseen)
        self._unseen = {}

    def _is_news(self, trace: Trace) -> bool:
        """Check if a trace is new or has changed; note a cached trace that it replaces."""
        trace_id = _id_of(trace)
        cached = self._unseen.pop(trace_id, None)
        if cached is not None:
            return not _same(cached, trace)
        replaced = self._id_at.get((trace.file, trace.record))
        if replaced is not None and self._unseen.pop(replaced, None) is not None:
            self._gone.append(replaced)
        return True


def _id_of(trace: Trace) -> str:
    return trace.summary.trace_id


def _same(cached: Trace, trace: Trace) -> bool:
    """Check if a trace is shown and read in the same way as its cached one."""
    if trace.was_named:
        return False
    return (
        cached.summary == trace.summary
        and cached.record == trace.record
        and cached.file == trace.file
    )


BATCH_SECONDS: Final = 0.1
"""Seconds for which files are collected before they are reported."""

BATCH_FILES: Final = 500
"""The most files in one report, so that no key waits until they are listed."""


def scan_paths(
    paths: Sequence[Path], stopped: Callable[[], bool], take: Callable[[ScanNews], object]
) -> Iterator[FilesRead | CachedTraces]:
    """Yield the traces of the last scan under some paths, and then the news of this one.

    The first report always has cached traces, even if there are none.

    Args:
        paths: The paths.
        stopped: Returns whether to stop.
        take: Receives the news before a big document is read, and the progress of reading it.
    """
    with LibraryCache(library_cache_path()) as library:
        news = Differences()
        parts = library.cached_traces(paths, read_again)
        for traces in chain((next(parts, ()),), parts):
            yield CachedTraces(traces)
            news.add_cached(traces)
        # The walk imports what it needs only now, when the first traces are on screen.
        scanned: list[Looked] = []
        batch = FilesRead([], False)

        def wait(process: DocumentProcess) -> None:
            nonlocal batch
            batch.total = scan.total
            batch.gone = news.take_gone()
            take(batch)
            batch = FilesRead([], False)
            while not process.wait(REPORT_SECONDS):
                if stopped():
                    process.stop()
                take(StillReading(f"{process.path.name}: {process.progress.description}"))

        scan = walk(paths, library=library, keep_spans=False, wait=wait)
        due = monotonic() + BATCH_SECONDS
        for report in scan:
            if stopped():
                return
            for trace in report.traces:
                scanned.append((trace, scan.members.get(str(trace.path), ())))
            changes = news.news_in(report)
            if changes is None:
                batch.same += 1
            else:
                batch.reports.append(changes)
            if monotonic() > due or len(batch.reports) >= BATCH_FILES:
                batch.total = scan.total
                batch.gone = news.take_gone()
                yield batch
                batch = FilesRead([], False)
                due = monotonic() + BATCH_SECONDS
        news.finish()
        batch.done = True
        batch.total = scan.total
        batch.gone = news.take_gone()
        yield batch
        if news.any:
            name_of = names_under(paths)
            scanned.sort(key=lambda looked: natural(name_of(looked[0])))
            library.keep_traces(paths, scanned)
