"""The base classes of dialogs, dialogs that one key answers, and dialogs of lines to scroll."""

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
    """A dialog that Escape closes without an answer."""

    CSS_PATH = DIALOGS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def action_leave(self) -> None:
        """Close the dialog without an answer."""
        self.dismiss(None)

    def say_below(self, text: str, *, error: bool = False) -> None:
        """Replace the text of the hint.

        Args:
            text: The text.
            error: Whether it is an error.
        """
        hint = self.query_one(".hint", Static)
        hint.update(plain_lines(text))
        hint.set_class(error, "-error")


class KeyDialog(Dialog[Result]):
    """A dialog that a key answers; a click on the row of a key has the same effect."""

    default: str | None = None
    """The key that Enter stands for."""

    @abstractmethod
    def take(self, key: str) -> bool:
        """Use a key as the answer; return False if the key is no answer."""

    def on_key(self, event: events.Key) -> None:
        """Answer with the key."""
        key = self.default if event.key == "enter" else event.character
        if key is not None and self.take(key):
            event.stop()


class KeyRow(Static):
    """A row of a ``KeyDialog`` with its key."""

    def __init__(self, key: str, text: str = "", *, classes: str = "answer") -> None:
        """Make a row.

        Args:
            key: The key.
            text: Its effect.
            classes: The CSS classes.
        """
        super().__init__(classes=classes)
        self.key = key
        self.show(text)

    def show(self, *parts: str | tuple[str, str]) -> None:
        """Show the effect of the key; parts of the text may have a style."""
        self.update(Content.assemble((f" {self.key} ", "bold"), *parts))

    def on_click(self) -> None:
        """Answer with the key."""
        if isinstance(self.screen, KeyDialog):
            self.screen.take(self.key)


class LinesDialog(MovesLines, Dialog[None]):
    """A dialog with lines to scroll, by the same keys as on every screen."""

    lines: VirtualLines
    """The lines to scroll."""

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
        """Close the dialog, also during a search."""
        self.dismiss(None)


class Ask(KeyDialog[str]):
    """A question that returns the key of the answer, or None after Escape."""

    def __init__(
        self,
        title: str,
        question: str,
        answers: tuple[tuple[str, str], ...],
        *,
        default: str | None = None,
    ) -> None:
        """Make the question.

        Args:
            title: The title.
            question: The text of the question.
            answers: The key and the text of each answer.
            default: The key of the answer that Enter chooses; None if Enter does nothing.
        """
        super().__init__()
        self._title = title
        self._question = question
        self._answers = answers
        self.default = default

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys of the answers, and the key that closes the dialog."""
        return (*self._answers, ("Esc", "leaves"))

    def compose(self) -> ComposeResult:
        """Yield the question and its answers."""
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title(self._title)
            yield Static(plain_lines(self._question), classes="question")
            for key, answer in self._answers:
                default_mark = "  ↵" if key == self.default else ""
                yield KeyRow(key, f" {answer}{default_mark}")

    def take(self, key: str) -> bool:
        """Close the dialog with a key; return False if the key is no answer."""
        is_answer = key in dict(self._answers)
        if is_answer:
            self.dismiss(key)
        return is_answer
