"""Looking at the files that were named, in a thread that keeps nobody from leaving."""

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

TOLD_SECONDS: Final = 0.25
"""How often is told how far the reading of a big document has come."""


@dataclass
class FilesRead:
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
class CachedTraces:
    """Traces that were there at the last look; what has become of them will be seen."""

    traces: Sequence[Trace]


@dataclass
class StillReading:
    """Another process reads a big document; ``words`` say which one, and how far it is."""

    words: str


Found = FilesRead | CachedTraces | StillReading
"""What a look at files tells."""


class ScanThread:
    """A look at files in a thread, which ends with the process whatever it is at.

    ``look`` gives what is found, and is told whether to stop. The first is kept for ``first``; the
    thread goes on, and gives all of it to ``take``, when the first frame is on screen.
    """

    def __init__(
        self,
        look: Callable[[Callable[[], bool]], Iterator[Found]],
        take: Callable[[Found], object],
    ) -> None:
        self.over: Future[None] = Future()
        self._look = look
        self._take = take
        self._first: SimpleQueue[Found] = SimpleQueue()
        self._going_on = Event()
        self._stopped = Event()
        Thread(target=copy_context().run, args=(self._run,), name="read", daemon=True).start()

    def first(self, patience: float) -> Found | None:
        """What was found first, which nobody else is given then; None where it takes too long."""
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

    def _go_through(self, look: Iterator[Found]) -> None:
        for number, found in enumerate(look):
            if number:
                self._take(found)
            else:
                self._first.put(found)
                self._going_on.wait()
                with suppress(Empty):
                    self._take(self._first.get_nowait())
            if self._stopped.is_set():
                return
