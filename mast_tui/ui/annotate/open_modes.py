"""The question before a trace is finished of which not everything was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.cells import set_cell_size
from textual import events
from textual.app import ComposeResult
from textual.containers import Grid, Vertical
from textual.content import Content
from textual.widgets import Static

from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode
from mast_tui.ui.dialogs.dialog import Dialog
from mast_tui.ui.dialogs.question import Answer
from mast_tui.ui.wording import counted, plain_lines, plain_title

ANSWERS: Final = (
    ("o", "finish: what is open stays so, and counts in no figure"),
    ("j", "I have judged the whole trace: set what is open absent"),
    ("g", "go to the first unread span"),
)
LETTERS: Final = "abcdefhiklmnpqrstuvwxyz"
"""Keys of modes: no key of an answer is among them."""

NAME_CELLS: Final = 22
AFTER: Final[dict[VerdictValue | None, VerdictValue | None]] = {
    None: VerdictValue.ABSENT,
    VerdictValue.ABSENT: VerdictValue.UNSURE,
    VerdictValue.UNSURE: None,
}
"""What a mode's key says of it, after what stands."""


class ModeRow(Static):
    """An open mode with its key, and what was said of it meanwhile; a click is the key."""

    def __init__(self, key: str, mode: Mode) -> None:
        super().__init__(classes="answer")
        self.key, self.mode = key, mode

    def show(self, value: VerdictValue | None) -> None:
        """Tell what stands of the mode now."""
        name = one_line(f"{self.mode.code} {self.mode.name}")
        if len(name) > NAME_CELLS:
            name = set_cell_size(name, NAME_CELLS - 1) + "…"
        said = (value.value, "bold") if value else ("open", "")
        self.update(
            Content.assemble(
                (f" {self.key} ", "bold"), f" {set_cell_size(name, NAME_CELLS)} ", said
            )
        )

    def on_click(self) -> None:
        """Say what the key says."""
        if isinstance(self.screen, FinishScreen):
            self.screen.turn(self)


class FinishScreen(Dialog[str]):
    """Gives back the key of an answer, None after Escape; what a mode's key says is said at once.

    One may be labelled as well: Escape goes back to where that is done.
    """

    dialog_keys: ClassVar = (
        *(("o", "finishes"), ("j", "all judged"), ("g", "goes to the unread")),
        ("Esc", "back"),
    )

    def __init__(
        self,
        title: str,
        unread: str,
        modes: Sequence[Mode],
        verdict: Callable[[str], VerdictValue | None],
        say: Callable[[Mode, VerdictValue | None, Callable[[], None]], None],
    ) -> None:
        """Begin.

        Args:
            title: How much was read.
            unread: What was not.
            modes: Those that have no verdict.
            verdict: Gives what stands of a mode (a slug).
            say: Writes down that a mode is absent, unsure or open, and calls when it is done.
        """
        super().__init__()
        self._title = title
        self._unread = unread
        self._modes = modes
        self._verdict = verdict
        self._say = say

    def compose(self) -> ComposeResult:
        """What was not read, the open modes, and the answers."""
        more = len(self._modes) - len(LETTERS)
        with Vertical(classes="dialog finish") as box:
            box.border_title = plain_title(self._title)
            yield Static(plain_lines(self._unread))
            if self._modes:
                named = f", {more} of them without a key" if more > 0 else ""
                words = f"{counted(len(self._modes), 'mode')} without a verdict{named}:"
                yield Static(words, classes="heading")
                with Grid():
                    for key, mode in zip(LETTERS, self._modes, strict=False):
                        yield ModeRow(key, mode)
                words = "Its key: absent, then unsure, then open · Esc: back, to label one"
                yield Static(words, classes="hint")
            with Vertical(classes="answers"):
                for key, words in ANSWERS:
                    yield Answer(key, words, default=key == "o")

    def on_mount(self) -> None:
        """Show what stands."""
        self.show()

    def show(self) -> None:
        """Show what stands of each mode."""
        for row in self.query(ModeRow):
            row.show(self._verdict(row.mode.slug))

    def turn(self, row: ModeRow) -> None:
        """Say the next thing of a mode."""
        self._say(row.mode, AFTER.get(self._verdict(row.mode.slug)), self.show)

    def on_key(self, event: events.Key) -> None:
        """Take an answer, or the key of a mode; Enter leaves the open modes open."""
        row = next((row for row in self.query(ModeRow) if row.key == event.character), None)
        if event.character in dict(ANSWERS):
            event.stop()
            self.dismiss(event.character)
        elif event.key == "enter":
            event.stop()
            self.dismiss("o")
        elif row is not None:
            event.stop()
            self.turn(row)

    def answered(self, key: str) -> None:
        """Take an answer by its key."""
        self.dismiss(key)
