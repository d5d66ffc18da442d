"""What all dialogs share, those that each key answers, and those that show a text to scroll."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from mast_tui.ui.base_screen import MovesLines
from mast_tui.ui.styles import DIALOGS
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import plain_lines, plain_title

Result = TypeVar("Result")


class Dialog(ModalScreen[Result | None]):
    """A dialog that Escape leaves without an answer."""

    CSS_PATH = DIALOGS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def action_leave(self) -> None:
        """No answer."""
        self.dismiss(None)

    def say_below(self, words: str, *, error: bool = False) -> None:
        """Put other words on the lines of hints."""
        hint = self.query_one(".hint", Static)
        hint.update(plain_lines(words))
        hint.set_class(error, "-error")


class KeyDialog(Dialog[Result]):
    """A dialog that keys answer; a click on the row of a key is that key."""

    default: str | None = None
    """The key that Enter stands for."""

    @abstractmethod
    def take(self, key: str) -> bool:
        """Do what a key is for; False where it is for nothing."""

    def on_key(self, event: events.Key) -> None:
        """Take a key."""
        key = self.default if event.key == "enter" else event.character
        if key is not None and self.take(key):
            event.stop()


class KeyRow(Static):
    """A row of such a dialog, with its key."""

    def __init__(self, key: str, words: str = "", *, classes: str = "answer") -> None:
        """Show a key.

        Args:
            key: The key.
            words: What it does.
            classes: Its names in the styles.
        """
        super().__init__(classes=classes)
        self.key = key
        self.show(words)

    def show(self, *words: str | tuple[str, str]) -> None:
        """Say behind the key what it does, or what it is about; parts may have a style."""
        self.update(Content.assemble((f" {self.key} ", "bold"), *words))

    def on_click(self) -> None:
        """Do what the key does."""
        if isinstance(self.screen, KeyDialog):
            self.screen.take(self.key)


class LinesDialog(MovesLines, Dialog[None]):
    """Lines to scroll, by the keys that move on every screen."""

    lines: VirtualLines
    """What is scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,Q", "close", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown,space,d", "move_page(1)", show=False),
        Binding("pageup,b", "move_page(-1)", show=False),
        Binding("ctrl+d", "move_half(1)", show=False),
        Binding("ctrl+u", "move_half(-1)", show=False),
        Binding("g,home", "move_to_start", show=False),
        Binding("G,end", "move_to_end", show=False),
    ]

    @property
    def pane(self) -> VirtualLines:
        """The lines."""
        return self.lines

    def action_close(self) -> None:
        """Close, whatever is looked for."""
        self.dismiss(None)


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
