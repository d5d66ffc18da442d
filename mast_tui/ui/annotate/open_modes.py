"""The question before a trace is finished of which not everything was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.cells import set_cell_size
from textual.app import ComposeResult
from textual.containers import Grid, Vertical
from textual.widgets import Static

from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode
from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
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


class FinishScreen(KeyDialog[str]):
    """Gives back the key of an answer, None after Escape; what a mode's key says is said at once.

    One may be labelled as well: Escape goes back to where that is done.
    """

    default = "o"
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
        self._count = len(modes)
        self._modes = dict(zip(LETTERS, modes, strict=False))
        self._mode_rows = {key: KeyRow(key) for key in self._modes}
        self._verdict = verdict
        self._say = say

    def compose(self) -> ComposeResult:
        """What was not read, the open modes, and the answers."""
        more = self._count - len(self._modes)
        with Vertical(classes="dialog finish") as box:
            box.border_title = plain_title(self._title)
            yield Static(plain_lines(self._unread))
            if self._modes:
                named = f", {more} of them without a key" if more > 0 else ""
                words = f"{counted(self._count, 'mode')} without a verdict{named}:"
                yield Static(words, classes="heading")
                with Grid():
                    yield from self._mode_rows.values()
                words = "Its key: absent, then unsure, then open · Esc: back, to label one"
                yield Static(words, classes="hint")
            with Vertical(classes="answers"):
                for key, words in ANSWERS:
                    yield KeyRow(key, f" {words}{'  ↵' * (key == self.default)}")

    def on_mount(self) -> None:
        """Show what stands."""
        self.show()

    def show(self) -> None:
        """Show what stands of each mode."""
        for key, mode in self._modes.items():
            name = one_line(f"{mode.code} {mode.name}")
            if len(name) > NAME_CELLS:
                name = set_cell_size(name, NAME_CELLS - 1) + "…"
            value = self._verdict(mode.slug)
            said = (value.value, "bold") if value else "open"
            self._mode_rows[key].show(f" {set_cell_size(name, NAME_CELLS)} ", said)

    def take(self, key: str) -> bool:
        """Take an answer, or say the next thing of a mode."""
        mode = self._modes.get(key)
        if mode is not None:
            self._say(mode, AFTER.get(self._verdict(mode.slug)), self.show)
        elif key in dict(ANSWERS):
            self.dismiss(key)
        else:
            return False
        return True
