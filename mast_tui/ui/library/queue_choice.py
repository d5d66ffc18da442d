"""Choosing a queue of the library: each is one key, with how many traces it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from mast_tui.errors import MastError
from mast_tui.ui.library.queues import Counts, QueueName, count_queues, count_words
from mast_tui.ui.styles import DIALOGS
from mast_tui.ui.titles import plain_lines, plain_title

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace

KEYS: Final[Mapping[QueueName, tuple[str, str]]] = {
    QueueName.ALL: ("a", "all traces"),
    QueueName.MINE: ("m", "mine to do"),
    QueueName.DISAGREEMENTS: ("d", "disagreements with others"),
    QueueName.JUDGE: ("j", "the judge against me"),
    QueueName.UNSURE: ("u", "unsure"),
    QueueName.SAMPLE: ("s", "a random sample"),
}
"""By queue its key and what it is called here."""

_NAME_CELLS: Final = 28


class QueueRow(Static):
    """One queue with its key; a click chooses it."""

    def __init__(self, name: QueueName, *, current: bool) -> None:
        super().__init__(classes="answer")
        self.queue = name
        self._current = current

    def show(self, counted: str) -> None:
        """Show how many it holds."""
        key, words = KEYS[self.queue]
        mark = "  ↵" if self._current else ""
        self.update(
            Content.assemble((f" {key} ", "bold"), f" {words:<{_NAME_CELLS}}{counted}{mark}")
        )

    def on_click(self) -> None:
        """Choose it."""
        if isinstance(self.screen, QueueChoice):
            self.screen.dismiss(self.queue)


class QueueChoice(ModalScreen[QueueName | None]):
    """Gives back the queue, or None after Escape. ``shown`` are sizes that were shown before."""

    CSS_PATH = DIALOGS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    @dataclass
    class Counted(Message):
        """The counts, or why there are none."""

        counts: Counts | None
        problem: str = ""

    def __init__(
        self,
        opened: OpenWorkspace,
        known: Sequence[str],
        current: QueueName,
        shown: Mapping[QueueName, int],
    ) -> None:
        super().__init__()
        self._opened = opened
        self._known = known
        self._current = current
        self._looked_at = shown

    def compose(self) -> ComposeResult:
        """A row for each queue."""
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Which traces?")
            for name in KEYS:
                yield QueueRow(name, current=name is self._current)
            yield Static(
                plain_lines(
                    "> and < go through the chosen ones, in their order. Disagreements, also with "
                    "the judge, are told of traces that you have finished; these finishes stand "
                    "then."
                ),
                classes="hint",
            )

    def on_mount(self) -> None:
        """Count in the background."""
        self._show(None)
        self._count()

    @work(thread=True, group="queues", exclusive=True)
    def _count(self) -> None:

        try:
            counts = count_queues(self._opened, self._known)
        except MastError as error:
            self.post_message(self.Counted(None, str(error)))
            return
        self.post_message(self.Counted(counts))

    def on_queue_choice_counted(self, message: Counted) -> None:
        """Show the counts."""
        self._show(message.counts)
        if message.problem:
            hint = self.query_one(".hint", Static)
            hint.update(plain_lines(message.problem))
            hint.add_class("-error")

    def _show(self, counts: Counts | None) -> None:
        for row in self.query(QueueRow):
            row.show(count_words(row.queue, counts, self._looked_at))

    def on_key(self, event: events.Key) -> None:
        """Take the queue of this key; Enter stays with the one that is shown."""
        name = next((name for name, (key, _) in KEYS.items() if key == event.character), None)
        if event.key == "enter":
            name = self._current
        if name is not None:
            event.stop()
            self.dismiss(name)

    def action_leave(self) -> None:
        """Nothing chosen."""
        self.dismiss(None)
