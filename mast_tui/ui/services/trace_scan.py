"""A scan of the named files, in a thread that does not delay the end of the app."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final

from msgspec import Struct

from mast_tui.traces.model import FileReport, Trace

REPORT_SECONDS: Final = 0.25
"""Seconds between two progress reports on a big document."""


class FilesRead(Struct):
    """A report that more files were read.

    Attributes:
        reports: The results of new or changed files.
        done: Whether the scan is at its end.
        total: The number of files known so far.
        same: The number of files without a change.
        gone: The ids of traces that no longer exist.
    """

    reports: list[FileReport]
    done: bool
    total: int = 0
    same: int = 0
    gone: list[str] = []


class CachedTraces(Struct):
    """A report of the traces of the last scan."""

    traces: Sequence[Trace]


class StillReading(Struct):
    """A progress report on a big document that another process reads."""

    progress: str


ScanNews = FilesRead | CachedTraces | StillReading
"""A report of a scan."""


class ScanThread:
    """A scan in a thread that ends with the process.

    The thread pauses after its first report until ``go_on``. It passes all reports to ``take``,
    except a first report that ``first`` has returned.
    """

    def __init__(
        self,
        scan: Callable[[Callable[[], bool]], Iterator[ScanNews]],
        take: Callable[[ScanNews], object],
    ) -> None:
        """Start the thread.

        Args:
            scan: Yields the reports; its argument is a function that returns whether to stop.
            take: Receives the reports in the thread.
        """
        self.has_ended: Future[None] = Future()
        self._scan = scan
        self._take = take
        self._first_report: SimpleQueue[ScanNews] = SimpleQueue()
        """The first report, until ``first`` or the thread takes it."""
        self._continue_event = Event()
        self._stop_event = Event()
        Thread(target=copy_context().run, args=(self._run_scan,), name="read", daemon=True).start()

    def first(self, patience: float) -> ScanNews | None:
        """Return the first report, or None if it takes more than ``patience`` seconds.

        A returned report is not passed to ``take``.
        """
        with suppress(Empty):
            return self._first_report.get(timeout=patience)
        return None

    def go_on(self) -> None:
        """Let the scan continue, because the first frame is on screen."""
        self._continue_event.set()

    def stop(self) -> None:
        """End the scan before its next report."""
        self._stop_event.set()
        self._continue_event.set()

    def _run_scan(self) -> None:
        """Run the scan, and put None or its error into ``has_ended``."""
        self.has_ended.set_running_or_notify_cancel()
        try:
            self._pass_on_reports(self._scan(self._stop_event.is_set))
        except BaseException as error:
            self.has_ended.set_exception(error)
            raise
        self.has_ended.set_result(None)

    def _pass_on_reports(self, scan: Iterator[ScanNews]) -> None:
        """Pass the reports of the scan on to ``_take``.

        The first report is held until ``go_on``, and skipped if ``first`` has returned it.
        """
        for index, report in enumerate(scan):
            if index:
                self._take(report)
            else:
                self._first_report.put(report)
                self._continue_event.wait()
                with suppress(Empty):  # ``first`` has returned the report
                    self._take(self._first_report.get_nowait())
            if self._stop_event.is_set():
                return
