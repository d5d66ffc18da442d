"""The queue that the library shows: choosing one, and reading it in a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import work
from textual.message import Message
from textual.screen import Screen
from textual.worker import get_current_worker

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.ui.context import AppContext, context_of
from mast_tui.ui.library.queues import (
    EVERYTHING,
    QueueName,
    QueueRead,
    Wanted,
    read_queue,
    sample_from,
)
from mast_tui.ui.widgets.hint_bar import HintBar

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace


class Queueing(Screen[None]):
    """Shows one queue at a time. A study's annotators begin with what is theirs to do."""

    @dataclass
    class Read(Message):
        """What the queue holds, or why it could not be read; ``asked`` by a key."""

        read: QueueRead | None
        asked: bool = False
        problem: str = ""

    _wanted: Wanted | None = None
    _read: QueueRead = EVERYTHING

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[QueueName, int] = {}

    @property
    def mast(self) -> AppContext:
        """The app, with what it shares."""
        return context_of(self)

    @property
    def queue_read(self) -> QueueRead:
        """What is shown."""
        return self._read

    def queue_shown(self, read: QueueRead, *, asked: bool) -> None:
        """Show what the queue holds now."""
        raise NotImplementedError

    def begin_anew(self) -> None:
        """A study was set up: begin with what is to do, where no other queue was chosen."""
        if self._read.wanted.name in (QueueName.ALL, QueueName.MINE):
            self._wanted = None
        self.queue_changed()

    def queue_changed(self) -> None:
        """Something was finished, or set up: read the queue anew."""
        opened = self.mast.opened
        if opened is not None and self.is_mounted:
            self.read_queue(opened, self._wanted, list(self.mast.catalog.traces))

    @work(thread=True, group="queue", exclusive=True)
    def read_queue(
        self,
        opened: OpenWorkspace,
        wanted: Wanted | None,
        known: Sequence[str],
        *,
        asked: bool = False,
    ) -> None:
        """Read a queue, or the one to begin with; ``known`` are the ids of the traces here."""

        worker = get_current_worker()
        try:
            read = read_queue(opened, wanted, known)
        except MastError as error:
            self.post_message(self.Read(None, asked, str(error)))
            return
        if not worker.is_cancelled:
            self.post_message(self.Read(read, asked))

    def on_queueing_read(self, message: Read) -> None:
        """Show the queue."""
        read = message.read
        if read is None:
            self.query_one(HintBar).say(one_line(message.problem), error=True)
            return
        if self._wanted is not None and read.wanted != self._wanted:
            return  # another one was chosen meanwhile
        self._wanted, self._read = read.wanted, read
        if read.trace_ids is not None:
            self._sizes[read.wanted.name] = len(read.trace_ids)
        self.queue_shown(read, asked=message.asked)

    def action_queue(self) -> None:
        """Choose another queue."""
        if self.mast.refused is not None:
            self.query_one(HintBar).say("No workspace is open, so all traces are shown", error=True)
            return
        self.mast.when_ready(self._choose)

    def _choose(self, opened: OpenWorkspace) -> None:
        from mast_tui.ui.library.queue_choice import QueueChoice

        def chosen(name: QueueName | None) -> None:
            if name is QueueName.SAMPLE:
                self._ask_for_sample(opened)
            elif name is not None:
                self._want(opened, Wanted(name))

        known = list(self.mast.catalog.traces)
        current = self._read.wanted.name
        self.app.push_screen(QueueChoice(opened, known, current, self._sizes), chosen)

    def _ask_for_sample(self, opened: OpenWorkspace) -> None:
        from mast_tui.ui.dialogs.note import NoteScreen

        before = self._read.wanted
        seed = "" if before.seed is None else f" {before.seed}"

        def checked(text: str) -> str:
            sample_from(text)
            return text

        def written(text: str | None) -> None:
            if text is not None:
                self._want(opened, sample_from(text))

        self.app.push_screen(
            NoteScreen(
                "A random sample",
                f"{before.n}{seed}",
                question="How many traces? A second number is the seed of another draw; the same "
                "seed always draws the same traces.",
                hint="Enter draws · Esc leaves it as it was",
                check=checked,
                offered=True,
            ),
            written,
        )

    def _want(self, opened: OpenWorkspace, wanted: Wanted) -> None:
        self._wanted = wanted
        self.read_queue(opened, wanted, list(self.mast.catalog.traces), asked=True)
