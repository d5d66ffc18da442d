"""The suggestion under the cursor: its mode, who suggests it, why, and what it quotes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mast_tui.safe_text import one_line
from mast_tui.ui.titles import plain_title
from mast_tui.ui.widgets.span_view import Highlight, SpanView


class SuggestionPanel(SpanView):
    """Shows one suggestion, or how many wait and how to get to them.

    It takes the focus only where it holds more than it can show at once.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"span-view--head", "span-view--warning"}

    def show(self, title: str, mode: str, source: str, warnings: Sequence[str], body: str) -> None:
        """Show a suggestion, with what to know before trusting it; everything is foreign text."""
        mode, lines = one_line(mode), [one_line(warning) for warning in warnings]
        self.show_titles(plain_title(title), plain_title("a accept  x reject  e edit"))
        head = f"{mode}  {one_line(source)}"
        marked = [Highlight(0, len(mode), "head")]
        for line in lines:
            marked.append(Highlight(len(head) + 1, len(head) + 1 + len(line), "warning"))
            head = f"{head}\n{line}"
        self._fill(f"{head}\n{body}", marked)
        self.set_class(False, "-idle")

    def idle(self, title: str, words: str) -> None:
        """Say what there is when no suggestion is under the cursor."""
        self.show_titles(plain_title(title))
        self._fill(words)
        self.set_class(True, "-idle")

    @property
    def overflows(self) -> bool:
        """Whether there is more than is on screen."""
        return self.row_count > self.scrollable_content_region.height

    def _fill(self, text: str, marked: Sequence[Highlight] = ()) -> None:
        if text != self.text:
            rows = self.row_count
            self.show_text(text, marked)
            if self.row_count != rows:
                self.refresh(layout=True)
