"""The suggestion under the cursor: its mode, who suggests it, why, and what it quotes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mast_tui.safe_text import one_line
from mast_tui.ui.suggestion_words import Line
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_view.span_view import Highlight, SpanView


class SuggestionPanel(SpanView):
    """Shows one suggestion, or how many wait and how to get to them.

    It takes the focus only where it holds more than it can show at once.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"span-view--head", "span-view--warning"}

    def show(self, title: str, mode: str, source: str, warnings: Sequence[Line], body: str) -> None:
        """Show a suggestion, with what to know before trusting it; all but that is foreign text."""
        mode = one_line(mode)
        self.show_titles(plain_title(title), plain_title("a accept  x reject  e edit"))
        head = f"{mode}  {one_line(source)}"
        marked = [Highlight(0, len(mode), "head")]
        for line in warnings:
            begin = len(head) + 1
            if line.warns:
                marked.append(Highlight(begin, begin + len(line.text), "warning"))
            marked += [Highlight(begin + start, begin + end, "match") for start, end in line.lit]
            head = f"{head}\n{line.text}"
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
