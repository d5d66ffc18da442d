"""A scan of folders: the cached traces of the last scan, and the changes since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from mast_tui.traces.io.regular_files import is_folder
from mast_tui.traces.library import scan as walk
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.library_cache import LibraryCache, ScannedTrace, library_cache_path
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
    """The differences between a scan and the last scan."""

    def __init__(self, named_files: Iterable[str] = ()) -> None:
        self._named_files = frozenset(named_files)
        """The files that the user named. They are read differently from files in a folder."""
        self._unseen_cached: dict[str, Trace] = {}
        """The cached traces that were not found yet in this scan, by id."""
        self._cached_id_by_place: dict[tuple[str, int | None], str] = {}
        """The ids of the cached traces, by file and number of the record."""
        self._gone_ids: list[str] = []
        self.has_differences = False
        """True if there is a difference."""

    def add_cached(self, traces: Sequence[Trace]) -> None:
        """Add traces of the last scan."""
        for trace in traces:
            trace_id = _id_of(trace)
            self._unseen_cached[trace_id] = trace
            self._cached_id_by_place[trace.file, trace.record] = trace_id

    def news_in(self, report: FileReport) -> FileReport | None:
        """Return the report without unchanged traces, or None if no trace or message is left."""
        changed_traces = [trace for trace in report.traces if self._note_change(trace)]
        if changed_traces:
            self.has_differences = True
        has_messages = report.problems or report.skipped is not None or report.failed is not None
        if not changed_traces and not has_messages:
            return None
        return report._replace(traces=tuple(changed_traces))

    def take_gone(self) -> list[str]:
        """Return the ids of the traces that have disappeared since the last call."""
        gone_ids = self._gone_ids
        self._gone_ids = []
        return gone_ids

    def finish(self) -> None:
        """End the scan. Traces that were not found have disappeared."""
        self._gone_ids += self._unseen_cached
        self.has_differences = self.has_differences or bool(self._unseen_cached)
        self._unseen_cached = {}

    def _note_change(self, trace: Trace) -> bool:
        """Record a found trace, and return whether it is new or has changed.

        A cached trace with another id at the same place of the file has disappeared.
        """
        cached = self._unseen_cached.pop(_id_of(trace), None)
        if cached is not None:
            return trace.file in self._named_files or not _is_unchanged(cached, trace)
        replaced_id = self._cached_id_by_place.get((trace.file, trace.record))
        if replaced_id is not None and self._unseen_cached.pop(replaced_id, None) is not None:
            self._gone_ids.append(replaced_id)
        return True


def _id_of(trace: Trace) -> str:
    return trace.summary.trace_id


def _is_unchanged(cached: Trace, trace: Trace) -> bool:
    """Return whether a trace is displayed like its cached trace."""
    return (
        cached.summary == trace.summary
        and cached.record == trace.record
        and cached.file == trace.file
    )


BATCH_SECONDS: Final = 0.1
"""Seconds between two reports of files."""

BATCH_FILES: Final = 500
"""The most files in one report, so that keys need not wait long for its listing."""


def scan_paths(
    paths: Sequence[Path], stopped: Callable[[], bool], take: Callable[[ScanNews], object]
) -> Iterator[FilesRead | CachedTraces]:
    """Scan paths: yield the cached traces of the last scan, then the changes since.

    The first item is always ``CachedTraces``, which may be empty. The cache is written if there are
    changes.

    Args:
        paths: The paths.
        stopped: Returns whether to stop.
        take: Receives the changes found before a big document is read, and then the progress of
            reading that document.
    """
    with LibraryCache(library_cache_path()) as library:
        differences = Differences(str(path) for path in paths if not is_folder(path))
        cached_parts = library.cached_traces(paths)
        first_part = next(cached_parts, ())
        for traces in chain((first_part,), cached_parts):
            yield CachedTraces(traces)
            differences.add_cached(traces)
        # The walk imports much, so the first traces are shown before it.
        yield from _Walk(paths, library, differences, stopped, take).changes()


class _Walk:
    """A walk over paths that collects the changes since the last scan in batches."""

    def __init__(
        self,
        paths: Sequence[Path],
        library: LibraryCache,
        differences: Differences,
        stopped: Callable[[], bool],
        take: Callable[[ScanNews], object],
    ) -> None:
        self._paths = paths
        self._library = library
        self._differences = differences
        self._stopped = stopped
        self._take = take
        self._scan = walk(paths, library=library, keep_spans=False, wait=self._wait_for_document)
        self._scanned_traces: list[ScannedTrace] = []
        self._batch = FilesRead([], done=False)

    def changes(self) -> Iterator[FilesRead]:
        """Yield the changes until the walk is stopped. Write the cache at the end if needed."""
        due_time = monotonic() + BATCH_SECONDS
        for report in self._scan:
            if self._stopped():
                return
            self._add(report)
            if monotonic() > due_time or len(self._batch.reports) >= BATCH_FILES:
                yield self._take_batch()
                due_time = monotonic() + BATCH_SECONDS
        self._differences.finish()  # traces that the scan has not found are gone
        self._batch.done = True
        yield self._take_batch()
        if self._differences.has_differences:
            name_of = names_under(self._paths)
            self._scanned_traces.sort(key=lambda scanned: natural(name_of(scanned[0])))
            self._library.keep_traces(self._paths, self._scanned_traces)

    def _add(self, report: FileReport) -> None:
        """Add the report of a file to the batch, and record that its traces were found."""
        for trace in report.traces:
            self._scanned_traces.append((trace, self._scan.members.get(str(trace.path), ())))
        changes = self._differences.news_in(report)
        if changes is None:
            self._batch.same += 1
        else:
            self._batch.reports.append(changes)

    def _take_batch(self) -> FilesRead:
        """Return the present batch, and begin another one."""
        batch = self._batch
        self._batch = FilesRead([], done=False)
        batch.total = self._scan.total
        batch.gone = self._differences.take_gone()
        return batch

    def _wait_for_document(self, process: DocumentProcess) -> None:
        """Report the changes so far, then the progress of a big document until its end."""
        self._take(self._take_batch())
        while not process.wait(REPORT_SECONDS):
            if self._stopped():
                process.stop()
            self._take(StillReading(f"{process.path.name}: {process.progress.description}"))
