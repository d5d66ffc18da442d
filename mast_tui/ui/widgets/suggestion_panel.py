"""The suggestion under the cursor: its mode, who suggests it, why, and what it quotes."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from mast_tui.safe_text import one_line
from mast_tui.ui.titles import plain_title


class SuggestionPanel(Static):
    """Shows one suggestion, or how many wait and how to get to them."""

    def show(self, title: str, mode: str, source: str, body: str) -> None:
        """Show a suggestion; everything is foreign text."""
        self.border_title = plain_title(title)
        self.border_subtitle = plain_title("a accept  x reject  e edit")
        head = Content.styled(one_line(mode), "bold")
        self.update(
            Content("").join([head, Content(f"  {one_line(source)}\n"), Content(one_line(body))])
        )
        self.set_class(False, "-idle")

    def idle(self, title: str, words: str) -> None:
        """Say what there is when no suggestion is under the cursor."""
        self.border_title = plain_title(title)
        self.border_subtitle = None
        self.update(Content(one_line(words)))
        self.set_class(True, "-idle")
