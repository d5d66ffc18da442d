"""A question with a few answers, each given by one key."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.wording import plain_lines, plain_title


class Ask(KeyDialog[str]):
    """Gives back the key of the answer, or None after Escape. Texts are never markup."""

    def __init__(
        self,
        title: str,
        question: str,
        answers: tuple[tuple[str, str], ...],
        *,
        default: str | None = None,
    ) -> None:
        super().__init__()
        self._title = title
        self._question = question
        self._answers = answers
        self.default = default

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The answers, and how to give none."""
        return (*self._answers, ("Esc", "leaves"))

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title(self._title)
            yield Static(plain_lines(self._question), classes="question")
            for key, words in self._answers:
                yield KeyRow(key, f" {words}{'  ↵' * (key == self.default)}")

    def take(self, key: str) -> bool:
        """Give an answer back."""
        known = key in dict(self._answers)
        if known:
            self.dismiss(key)
        return known
