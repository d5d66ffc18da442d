"""A scan of the named files, in a thread that does not delay the end of the app."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final

from mast_tui.traces.model import FileReport, Trace

REPORT_SECONDS: Final = 0.25
"""Seconds between two progress reports on a big document."""


@dataclass
class FilesRead:
    """More files were read.

    ``reports`` have what is new since the last scan; ``same`` counts files without news. ``gone``
    are the ids of traces that do not exist any more. ``total`` is the number of files known so far.
    """

    reports: list[FileReport]
    done: bool
    total: int = 0
    same: int = 0
    gone: list[str] = field(default_factory=list)


@dataclass
class CachedTraces:
    """Traces of the last scan; later reports say which of them have changed."""

    traces: Sequence[Trace]


@dataclass
class StillReading:
    """A progress report on a big document that another process reads."""

    progress: str


ScanNews = FilesRead | CachedTraces | StillReading
"""A report of a scan."""


class ScanThread:
    """A scan in a thread, which ends with the process.

    The first report is kept for ``first``. After ``go_on`` the thread passes all reports to
    ``take``.
    """

    def __init__(
        self,
        scan: Callable[[Callable[[], bool]], Iterator[ScanNews]],
        take: Callable[[ScanNews], object],
    ) -> None:
        self.over: Future[None] = Future()
        self._scan = scan
        self._take = take
        self._first: SimpleQueue[ScanNews] = SimpleQueue()
        self._continue = Event()
        self._stopped = Event()
        Thread(target=copy_context().run, args=(self._run,), name="read", daemon=True).start()

    def first(self, patience: float) -> ScanNews | None:
        """Return the first report, which ``take`` does not get then; None if it takes too long."""
        with suppress(Empty):
            return self._first.get(timeout=patience)
        return None

    def go_on(self) -> None:
        """Continue: the first frame is on screen."""
        self._continue.set()

    def stop(self) -> None:
        """End the scan: no one needs its reports."""
        self._stopped.set()
        self._continue.set()

    def _run(self) -> None:
        """Run the scan, and store its end or its error in ``over``."""
        self.over.set_running_or_notify_cancel()
        try:
            self._go_through(self._scan(self._stopped.is_set))
        except BaseException as error:
            self.over.set_exception(error)
            raise
        self.over.set_result(None)

    def _go_through(self, scan: Iterator[ScanNews]) -> None:
        """Keep the first report, and pass on all others after ``go_on``."""
        for number, news in enumerate(scan):
            if number:
                self._take(news)
            else:
                self._first.put(news)
                self._continue.wait()
                with suppress(Empty):
                    self._take(self._first.get_nowait())
            if self._stopped.is_set():
                return
