"""An input line that is safe for foreign text, such as imported notes and pasted text."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import Input

from mast_tui.safe_text import safe_line


class TextLine(Input):
    """An ``Input`` that keeps its value unchanged and displays it with ``safe_line``.

    Textual's ``Input`` sends an escape character in its value to the terminal.
    """

    def render_line(self, y: int) -> Strip:
        """Draw the line with visible control characters."""
        strip = super().render_line(y)
        safe_strip = Strip([Segment(safe_line(text), style) for text, style, _ in strip])
        if safe_strip.text == strip.text:
            return strip
        return safe_strip.adjust_cell_length(strip.cell_length, self.rich_style)
