"""The traces of the app: those that were found, and how the looking for them goes on."""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Callable, Coroutine, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from textual.message import Message

from mast_tui.traces.library import read_file
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.prefetch import Prefetch
from mast_tui.ui.services.trace_scan import (
    TOLD_SECONDS,
    CachedTraces,
    FilesRead,
    ScanThread,
    StillReading,
)

if TYPE_CHECKING:
    from mast_tui.ui.services.trace_catalog import Catalog
    from mast_tui.ui.services.trace_queue import TraceQueue

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


class TracesApp(Protocol):
    """What looking for traces asks of the app."""

    def post_message(self, message: Message) -> bool:
        """Tell the app what was found; it is given back to ``files_read`` and the others."""

    def call_after_refresh(self, callback: Callable[..., object]) -> bool:
        """Call this when the next frame is on screen."""

    def run_worker(self, work: Coroutine[Any, Any, None], *, group: str, exclusive: bool) -> object:
        """Run this beside everything else; leaving the app ends it."""

    def traces_found(self) -> None:
        """More traces are in the catalog."""

    @property
    def trace_queue(self) -> TraceQueue:
        """The traces that one goes through, whose finished ones are counted at the end."""


class TraceService:
    """Looks under the paths that were given, and keeps what was found."""

    def __init__(self, app: TracesApp, options: AppOptions) -> None:
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
            self.files_read(FilesRead([early], True))
            return
        looking = ScanThread(self._look, self._app.post_message)
        self._app.call_after_refresh(looking.go_on)
        self._app.run_worker(_until_over(looking), group="read", exclusive=True)
        first = looking.first(LOOK_PATIENCE)
        if isinstance(first, CachedTraces):
            self.cached_traces_found(first)

    def _look(self, stopped: Callable[[], bool]) -> Iterator[Message]:
        """What is found, in a thread of its own."""
        if not self.prefetch.single:
            # Start-up: who opens a single file needs neither last looks nor a walk.
            from mast_tui.ui.services.folder_scan import scan_paths

            yield from scan_paths(self._options.paths, stopped, self._app.post_message)
            return
        yield CachedTraces(())
        while self.prefetch.report(TOLD_SECONDS) is None and self.prefetch.under_way:
            yield StillReading(self.prefetch.words)
        # There is no report only where reading broke: here it breaks where it is seen.
        report = self.prefetch.report() or read_file(self._options.paths[0], named=True)
        yield FilesRead([report], True)

    def cached_traces_found(self, message: CachedTraces) -> None:
        """Take in what was there at the last look."""
        if message.traces:
            self.catalog.checking = True
            self.catalog.add_traces(message.traces)
            self._app.traces_found()

    def files_read(self, message: FilesRead) -> None:
        """Take in what was found."""
        catalog = self.catalog
        catalog.being_read = ""
        catalog.remove(message.gone)
        for report in message.reports:
            catalog.add(report)
        catalog.looked_at += message.same
        catalog.total = max(catalog.total, message.total)
        if message.done:
            catalog.complete, catalog.checking = True, False
            self._app.trace_queue.count_finished()
        self._app.traces_found()


async def _until_over(looking: ScanThread) -> None:
    """Wait until everything has been looked at; leaving ends it."""
    try:
        await wrap_future(looking.over)
    finally:
        looking.stop()
