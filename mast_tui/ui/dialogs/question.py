"""A question with a few answers, each given by one key."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mast_tui.ui.dialogs.dialog import Dialog
from mast_tui.ui.wording import plain_lines, plain_title


@runtime_checkable
class TakesAnswers(Protocol):
    """A question that one of its answers can be given to."""

    def answered(self, key: str) -> None: ...


class Answer(Static):
    """One answer with its key; a click gives it."""

    def __init__(self, key: str, words: str, *, default: bool) -> None:
        marked = f"{words}  ↵" if default else words
        super().__init__(Content.assemble((f" {key} ", "bold"), f" {marked}"), classes="answer")
        self._key = key

    def on_click(self) -> None:
        """Give this answer."""
        if isinstance(self.screen, TakesAnswers):
            self.screen.answered(self._key)


class Ask(Dialog[str]):
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
        self._default = default

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
                yield Answer(key, words, default=key == self._default)

    def on_key(self, event: events.Key) -> None:
        """Take the answer; Enter takes the default."""
        keys = {key for key, _ in self._answers}
        if event.character in keys:
            event.stop()
            self.dismiss(event.character)
        elif event.key == "enter" and self._default is not None:
            event.stop()
            self.dismiss(self._default)

    def answered(self, key: str) -> None:
        """Take an answer by its key."""
        self.dismiss(key)
