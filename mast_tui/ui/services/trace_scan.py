"""Looking at the files that were named, in a thread that keeps nobody from leaving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.message import Message

from mast_tui.traces.library import read_again
from mast_tui.traces.model import FileReport, Trace

if TYPE_CHECKING:
    from mast_tui.traces.index.document_process import DocumentProcess

BATCH_SECONDS: Final = 0.1
"""How long files are gathered before the screen hears of them."""

TOLD_SECONDS: Final = 0.25
"""How often is told how far the reading of a big document has come."""

BATCH_FILES: Final = 500
"""How many are gathered at most, so that no key waits until they are listed."""


@dataclass
class FilesRead(Message):
    """More files were looked at.

    ``reports`` tell what is new since the last look, ``same`` counts files of which there is
    nothing new; ``gone`` are the ids of traces that are no more. ``total`` is how many files there
    are, as far as is known.
    """

    reports: list[FileReport]
    done: bool
    total: int = 0
    same: int = 0
    gone: list[str] = field(default_factory=list)


@dataclass
class LastLook(Message):
    """Traces that were there at the last look; what has become of them will be seen."""

    traces: Sequence[Trace]


@dataclass
class StillReading(Message):
    """Another process reads a big document; ``words`` say which one, and how far it is."""

    words: str


def look_at(
    paths: Sequence[Path], stopped: Callable[[], bool], post: Callable[[Message], object]
) -> Iterator[FilesRead | LastLook]:
    """What was under the paths the last time, and then what is there now, as it is found.

    The first message tells of the last time, even where nothing is known of it. While a big
    document is read, what is known so far and how far that has come is given to ``post``.
    """
    # Who opens a single file needs neither.
    from mast_tui.traces.index.library_cache import Shelf, shelf_path
    from mast_tui.traces.scan.scan_diff import Differences, Looked

    with Shelf(shelf_path()) as shelf:
        news = Differences()
        parts = shelf.last_look(paths, read_again)
        for traces in chain((next(parts, ()),), parts):
            yield LastLook(traces)
            news.expect(traces)
        # Whatever the walk needs is imported only now, when the first traces are on screen.
        from mast_tui.traces.scan.scanning import Scan
        from mast_tui.ui.trace_names import names_under, natural

        found: list[Looked] = []
        batch = FilesRead([], False)

        def wait(process: DocumentProcess) -> None:
            nonlocal batch
            batch.total, batch.gone = scan.total, news.gone()
            post(batch)
            batch = FilesRead([], False)
            while not process.wait(TOLD_SECONDS):
                if stopped():
                    process.stop()
                post(StillReading(f"{process.path.name}: {process.progress.words}"))

        scan = Scan(paths, shelf=shelf, keep_spans=False, wait=wait)
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
            shelf.keep_look(paths, found)


class Looking:
    """A look at files in a thread, which ends with the process whatever it is at.

    ``look`` gives messages, and is told whether to stop. The first one is kept for ``first``; the
    thread goes on, and posts them all, when the first frame is on screen.
    """

    def __init__(
        self,
        look: Callable[[Callable[[], bool]], Iterator[Message]],
        post: Callable[[Message], object],
    ) -> None:
        self.over: Future[None] = Future()
        self._look = look
        self._post = post
        self._first: SimpleQueue[Message] = SimpleQueue()
        self._going_on = Event()
        self._stopped = Event()
        Thread(target=copy_context().run, args=(self._run,), name="read", daemon=True).start()

    def first(self, patience: float) -> Message | None:
        """The first message, which is then posted no more; None where it takes too long."""
        with suppress(Empty):
            return self._first.get(timeout=patience)
        return None

    def go_on(self) -> None:
        """The first frame is on screen."""
        self._going_on.set()

    def stop(self) -> None:
        """Nobody wants to know any more."""
        self._stopped.set()
        self._going_on.set()

    def _run(self) -> None:
        self.over.set_running_or_notify_cancel()
        try:
            self._go_through(self._look(self._stopped.is_set))
        except BaseException as error:
            self.over.set_exception(error)
            raise
        self.over.set_result(None)

    def _go_through(self, messages: Iterator[Message]) -> None:
        for number, message in enumerate(messages):
            if number:
                self._post(message)
            else:
                self._first.put(message)
                self._going_on.wait()
                with suppress(Empty):
                    self._post(self._first.get_nowait())
            if self._stopped.is_set():
                return
