"""A look at folders: what was there the last time, what is there now, and the differences."""

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
    TOLD_SECONDS,
    CachedTraces,
    FilesRead,
    Found,
    StillReading,
)
from mast_tui.ui.wording import names_under, natural

if TYPE_CHECKING:
    from mast_tui.traces.scan.document_process import DocumentProcess


class Differences:
    """Holds what a walk finds against the last look, whose traces are shown already."""

    def __init__(self) -> None:
        self._unseen: dict[str, Trace] = {}
        self._at: dict[tuple[str, int | None], str] = {}
        self._gone: list[str] = []
        self.any = False

    def expect(self, traces: Sequence[Trace]) -> None:
        """The last look has found these too."""
        for trace in traces:
            trace_id = _id_of(trace)
            self._unseen[trace_id] = trace
            self._at[trace.file, trace.record] = trace_id

    def of(self, report: FileReport) -> FileReport | None:
        """The report without traces that are as they were; None where that is all it tells."""
        changed = [trace for trace in report.traces if self._is_news(trace)]
        if changed:
            self.any = True
        told = report.problems or report.skipped is not None or report.failed is not None
        if not changed and not told:
            return None
        return report._replace(traces=tuple(changed))

    def gone(self) -> list[str]:
        """Ids of traces that turned out to be no more, since this was asked before."""
        gone, self._gone = self._gone, []
        return gone

    def end(self) -> None:
        """The walk is over: what it has not met is gone."""
        self._gone += self._unseen
        self.any = self.any or bool(self._unseen)
        self._unseen = {}

    def _is_news(self, trace: Trace) -> bool:
        trace_id = _id_of(trace)
        was = self._unseen.pop(trace_id, None)
        if was is not None:
            return not _same(was, trace)
        before = self._at.get((trace.file, trace.record))
        if before is not None and self._unseen.pop(before, None) is not None:
            self._gone.append(before)
        return True


def _id_of(trace: Trace) -> str:
    return trace.summary.trace_id


def _same(was: Trace, trace: Trace) -> bool:
    """Whether all that is shown of the two is the same, and both are read in the same way."""
    if trace.as_told:
        return False
    return was.summary == trace.summary and was.record == trace.record and was.file == trace.file


BATCH_SECONDS: Final = 0.1
"""How long files are gathered before the screen hears of them."""

BATCH_FILES: Final = 500
"""How many are gathered at most, so that no key waits until they are listed."""


def scan_paths(
    paths: Sequence[Path], stopped: Callable[[], bool], take: Callable[[Found], object]
) -> Iterator[FilesRead | CachedTraces]:
    """What was under the paths the last time, and then what is there now, as it is found.

    The first tells of the last time, even where nothing is known of it. While a big
    document is read, what is known so far and how far that has come is given to ``take``.
    """
    with LibraryCache(library_cache_path()) as library:
        news = Differences()
        parts = library.cached_traces(paths, read_again)
        for traces in chain((next(parts, ()),), parts):
            yield CachedTraces(traces)
            news.expect(traces)
        # The walk imports what it needs only now, when the first traces are on screen.
        found: list[Looked] = []
        batch = FilesRead([], False)

        def wait(process: DocumentProcess) -> None:
            nonlocal batch
            batch.total, batch.gone = scan.total, news.gone()
            take(batch)
            batch = FilesRead([], False)
            while not process.wait(TOLD_SECONDS):
                if stopped():
                    process.stop()
                take(StillReading(f"{process.path.name}: {process.progress.description}"))

        scan = walk(paths, library=library, keep_spans=False, wait=wait)
        due = monotonic() + BATCH_SECONDS
        for report in scan:
            if stopped():
                return
            for trace in report.traces:
                found.append((trace, scan.members.get(str(trace.path), ())))
            told = news.of(report)
            if told is None:
                batch.same += 1
            else:
                batch.reports.append(told)
            if monotonic() > due or len(batch.reports) >= BATCH_FILES:
                batch.total, batch.gone = scan.total, news.gone()
                yield batch
                batch, due = FilesRead([], False), monotonic() + BATCH_SECONDS
        news.end()
        batch.done, batch.total, batch.gone = True, scan.total, news.gone()
        yield batch
        if news.any:
            name_of = names_under(paths)
            found.sort(key=lambda looked: natural(name_of(looked[0])))
            library.keep_traces(paths, found)
