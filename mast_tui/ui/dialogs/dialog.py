"""The base classes of dialogs: those answered by a key or a typed line, and those to scroll."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final, TypeVar

from textual import events, on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mast_tui.errors import MastError
from mast_tui.ui.actions.registry import key_text
from mast_tui.ui.base_screen import BackgroundWork, KeepsTypedTexts, MovesLines
from mast_tui.ui.services.external_programs import edited_text, editor_command
from mast_tui.ui.styles import DIALOGS
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import plain_lines, plain_title

Result = TypeVar("Result")

HELP_KEYS: Final = ("question_mark", "f1")
"""The keys of the help on main screens."""

_ARROWS: Final = ("up", "down", "left", "right")


class Dialog(KeepsTypedTexts, ModalScreen[Result | None]):
    """A dialog that Escape closes without an answer. Typed texts need Escape twice."""

    CSS_PATH = DIALOGS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, title: str = "", *, kind: str = "", subtitle: str | None = None) -> None:
        """Make the box of the dialog.

        Args:
            title: The title in the upper border.
            kind: Further CSS classes.
            subtitle: The text in the lower border, read as markup. It must not contain texts of
                traces or users.
        """
        super().__init__()
        self.work = BackgroundWork(self, partial(self.say_below, error=True))
        self.box = Vertical(classes=f"dialog {kind}")
        self.box.border_title = plain_title(title)
        self._subtitle = subtitle
        self.box.border_subtitle = subtitle

    def compose(self) -> ComposeResult:
        """Yield the box with its rows."""
        with self.box:
            yield from self.compose_rows()

    @abstractmethod
    def compose_rows(self) -> ComposeResult:
        """Yield the rows of the box."""

    def action_leave(self) -> None:
        """Close the dialog without an answer. Before typed texts are lost, ask for Escape again."""
        if self.may_drop_texts("Esc"):
            self.dismiss(None)

    def say_below(self, text: str, *, error: bool = False) -> None:
        """Show a text in the hint below the content of the dialog.

        Args:
            text: The text.
            error: True if the text reports an error.
        """
        hint = self.query_one(".hint", Static)
        hint.update(plain_lines(text))
        hint.set_class(error, "-error")


class KeyDialog(Dialog[Result]):
    """A dialog answered by a key, or by a click on the row of the key."""

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
            self.box.border_subtitle = self._subtitle
        elif event.key in HELP_KEYS:
            self.box.border_subtitle = "All keys are in this box and in the last line"
        elif key is not None and key.strip() and event.is_printable:
            self.box.border_subtitle = plain_title(f"{key} does nothing here")
        elif self.focused is None and event.key in _ARROWS:
            self.box.border_subtitle = plain_title(f"{key_text(event.key)} does nothing here")


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
        """Show the effect of the key. A part of the text may have a style."""
        self.update(Content.assemble((f" {self.key} ", "bold"), *parts))

    def on_click(self) -> None:
        """Answer with the key."""
        if isinstance(self.screen, KeyDialog):
            self.screen.take(self.key)


class LinesDialog(MovesLines, Dialog[None]):
    """A dialog with lines to scroll."""

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


class AnswersDialog(KeyDialog[Result]):
    """A question with a row for each answer."""

    def __init__(
        self,
        title: str,
        question: str,
        answers: Sequence[tuple[str, str]],
        *,
        default: str | None = None,
        hint: str = "",
    ) -> None:
        """Make the question.

        Args:
            title: The title.
            question: The question; empty if the title is the question.
            answers: The key and the text of each answer.
            default: The key that Enter stands for; None if Enter does nothing.
            hint: The text below the answers; empty for none.
        """
        super().__init__(title)
        self._question = question
        self.answers = dict(answers)
        self.default = default
        self._hint = hint
        self._row_by_key = {key: KeyRow(key) for key in self.answers}
        self.show_answers(self.answers)

    def show_answers(self, answers: Mapping[str, str]) -> None:
        """Replace the texts of answers by key, and mark the answer for Enter."""
        for key, text in answers.items():
            self._row_by_key[key].show(f" {text}{'  ↵' if key == self.default else ''}")

    def compose_rows(self) -> ComposeResult:
        """Yield the question, its answers and the hint."""
        if self._question:
            yield Static(plain_lines(self._question), classes="question")
        yield from self._row_by_key.values()
        if self._hint:
            yield Static(plain_lines(self._hint), classes="hint")


class Ask(AnswersDialog[str]):
    """A question that returns the key of the answer, or None after Escape."""

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys of the answers, and the key that closes the dialog."""
        return (*self.answers.items(), ("Esc", "cancels"))

    def take(self, key: str) -> bool:
        """Close the dialog with a key; return False if the key is no answer."""
        is_answer = key in self.answers
        if is_answer:
            self.dismiss(key)
        return is_answer


def keys_of_hint(hint: str) -> tuple[tuple[str, str], ...]:
    """Return each key of a hint such as ``Enter keeps · Esc cancels``, with its effect."""
    parts = [part.partition(" ") for part in hint.split(" · ")]
    return tuple((key, effect) for key, _, effect in parts)


class TypingDialog(Dialog[str]):
    """A dialog with one line to type on. Escape gives no answer."""

    def on_key(self, event: events.Key) -> None:
        """Insert a character that was typed before the line had the focus."""
        line = self.query_one(Input)
        if event.is_printable and event.character and self.focused is not line:
            event.stop()
            line.insert_text_at_cursor(event.character)
            self.set_focus(line)


class NoteScreen(TypingDialog):
    """A dialog that returns the text, or None after Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g,f2", "editor", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        value: str = "",
        *,
        question: str = "",
        hint: str = "Enter saves · Esc cancels",
        check: Callable[[str], str] = str,
        typing_replaces: bool = False,
        in_editor: bool = False,
    ) -> None:
        """Make the dialog.

        Args:
            title: The title.
            value: The text to begin with.
            question: The question above the line.
            hint: The keys and their effects, shown below the line.
            check: Returns the text in its final form, or raises ``MastError``.
            typing_replaces: Whether typing replaces the initial text instead of continuing it.
            in_editor: Whether several lines can be written in the user's editor.
        """
        super().__init__(title)
        self.first_text = value
        """The text to begin with; a changed text that could not be saved, if that was tried."""
        self._value = value
        self._question = question
        self._keys = hint
        self._in_editor = in_editor
        self._check = check
        self._typing_replaces = typing_replaces

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys in the hint."""
        editor_keys = (("^g", "in your editor"),) if self._in_editor else ()
        return (*keys_of_hint(self._keys), *editor_keys)

    def compose_rows(self) -> ComposeResult:
        """Yield the question and the line."""
        if self._question:
            yield Static(plain_lines(self._question), classes="question")
        yield TextLine(self.first_text, id="text", select_on_focus=self._typing_replaces)
        hint = f"{self._keys} · ^g or F2: in your editor" if self._in_editor else self._keys
        yield Static(Content(hint), classes="hint")

    @property
    def typed_texts(self) -> str | None:
        """The text, if the user has changed it."""
        text = self.query_one(TextLine).value
        return None if text == self._value else text

    def on_mount(self) -> None:
        """Show the end of the text, unless typing replaces it."""
        if not self._typing_replaces:
            self.call_after_refresh(self._show_end)

    def _show_end(self) -> None:
        line = self.query_one(TextLine)
        # Textual scrolls only when the cursor moves, and after the line has its width.
        line.cursor_position = 0
        line.cursor_position = len(line.value)

    @on(Input.Submitted)
    def _text_submitted(self, event: Input.Submitted) -> None:
        self._check_and_return(event.value)

    def _check_and_return(self, text: str) -> None:
        """Close the dialog with the text, or show why it is refused."""
        try:
            self.dismiss(self._check(text))
        except MastError as error:
            self.say_below(str(error), error=True)

    def action_editor(self) -> None:
        """Open the text in the user's editor if this is allowed, and close with the result."""
        if not self._in_editor:
            return
        try:
            with self.app.suspend():
                text = edited_text(self.query_one(TextLine).value, editor_command(os.environ))
        except SuspendNotSupported:
            self.say_below("This terminal cannot open an editor; write on this line", error=True)
        except MastError as error:
            self.say_below(str(error), error=True)
        else:
            self._check_and_return(text)
