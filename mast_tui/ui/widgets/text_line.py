"""A line to type on that is fit for foreign text: notes that were imported, or what was pasted."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import Input

from mast_tui.safe_text import safe_line


class TextLine(Input):
    """An ``Input`` that keeps its value as it is and shows it as ``safe_text`` makes it.

    Textual sends an escape character in the value of an ``Input`` to the terminal.
    """

    def render_line(self, y: int) -> Strip:
        """The line, its control characters made visible."""
        strip = super().render_line(y)
        shown = [Segment(safe_line(text), style) for text, style, _ in strip]
        if all(new.text == old.text for new, old in zip(shown, strip, strict=True)):
            return strip
        return Strip(shown).adjust_cell_length(strip.cell_length, self.rich_style)
