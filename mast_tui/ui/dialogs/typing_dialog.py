"""A dialog in which one types: keys that come before its line has the focus are not lost."""

from __future__ import annotations

from textual import events
from textual.screen import ModalScreen
from textual.widgets import Input

from mast_tui.ui.styles import DIALOGS


class TypingDialog(ModalScreen[str | None]):
    """A dialog with one line to type on, which Escape leaves without an answer."""

    CSS_PATH = DIALOGS

    def on_key(self, event: events.Key) -> None:
        """Take characters that were typed before the line was there."""
        line = self.query_one(Input)
        if event.is_printable and event.character and self.focused is not line:
            event.stop()
            line.insert_text_at_cursor(event.character)
            self.set_focus(line)

    def action_leave(self) -> None:
        """No answer."""
        self.dismiss(None)
