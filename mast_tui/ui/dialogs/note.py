"""Dialogs with a line to type on: a note, a reason, a name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from mast_tui.errors import MastError
from mast_tui.ui.dialogs.dialog import Dialog
from mast_tui.ui.services.external_programs import edited_text, editor_command
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.wording import plain_lines, plain_title


class TypingDialog(Dialog[str]):
    """A dialog with one line to type on, which Escape closes without an answer."""

    def on_key(self, event: events.Key) -> None:
        """Insert characters that were typed before the line had the focus."""
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
        hint: str = "Enter keeps · Esc leaves it as it was",
        check: Callable[[str], str] = str,
        offered: bool = False,
        in_editor: bool = False,
    ) -> None:
        """Make the dialog.

        Args:
            title: The title.
            value: The text to begin with.
            question: The question above the line.
            hint: The keys and their effects.
            check: Returns the text in its final form, or raises ``MastError`` to refuse it.
            offered: Whether typing replaces the text to begin with, instead of continuing it.
            in_editor: Whether the text can be written in the user's editor, in several lines.
        """
        super().__init__()
        self._title = title
        self._value = value
        self._question = question
        self._keys = hint
        self._hint = f"{hint} · ^g or F2: in your editor" if in_editor else hint
        self._in_editor = in_editor
        self._check = check
        self._offered = offered

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys in the hint."""
        hint_parts = [part.partition(" ") for part in self._keys.split(" · ")]
        editor_keys = (("^g", "in your editor"),) if self._in_editor else ()
        return (*((key, effect) for key, _, effect in hint_parts), *editor_keys)

    def compose(self) -> ComposeResult:
        """Yield the question and the line."""
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title(self._title)
            if self._question:
                yield Static(plain_lines(self._question), classes="question")
            yield TextLine(self._value, id="text", select_on_focus=self._offered)
            yield Static(Content(self._hint), classes="hint")

    def on_mount(self) -> None:
        """Show the end of a text that typing continues."""
        if not self._offered:
            self.call_after_refresh(self._show_end)

    def _show_end(self) -> None:
        line = self.query_one(TextLine)
        # Textual scrolls only if the cursor moves, and not before the line has its width.
        line.cursor_position = 0
        line.cursor_position = len(line.value)

    @on(Input.Submitted)
    def _text_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._check_and_return(event.value)

    def _check_and_return(self, text: str) -> None:
        """Close the dialog with the text, or show why it is refused."""
        try:
            self.dismiss(self._check(text))
        except MastError as error:
            self.say_below(str(error), error=True)

    def action_editor(self) -> None:
        """Open the text in the user's editor, and close the dialog with the result."""
        if not self._in_editor:
            return
        previous_text = self.query_one(TextLine).value
        try:
            with self.app.suspend():
                text = edited_text(previous_text, editor_command(os.environ))
        except SuspendNotSupported:
            self.say_below(
                "This terminal cannot be lent to an editor; write on this line", error=True
            )
        except MastError as error:
            self.say_below(str(error), error=True)
        else:
            self._check_and_return(text)
