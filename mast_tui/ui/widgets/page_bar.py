"""One line that names the pages of a room, each with its key; the open one is marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from mast_tui.ui.textual_internals import RenderCache


class PageBar(RenderCache):
    """Pages can be clicked. The open one is in brackets, so that it shows without colours."""

    css_prefix = "page-bar"
    css_parts = ("open", "other")

    DEFAULT_CSS = """
    PageBar { height: 1; width: 1fr; }
    """

    @dataclass
    class Chosen(Message):
        """A page was clicked."""

        page: str

    def __init__(self, keys: Mapping[str, str]) -> None:
        """Show the first page as the open one.

        Args:
            keys: The key that opens a page, by the title of the page.
        """
        super().__init__()
        self._keys = keys
        self._open = next(iter(keys))
        self._spans: list[tuple[int, int, str]] = []

    def show(self, page: str) -> None:
        """Mark another page as the open one."""
        self._open = page
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The pages."""
        base = self.rich_style
        segments, used = [Segment(" ", base)], 1
        self._spans = []
        for page, key in self._keys.items():
            here = page == self._open
            text = f"[{key} {page}]" if here else f" {key} {page} "
            segments.append(Segment(text, base + self._part("open" if here else "other")))
            self._spans.append((used, used + cell_len(text), page))
            used += cell_len(text)
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Open the page that was clicked."""
        for start, end, page in self._spans:
            if start <= event.x < end:
                self.post_message(self.Chosen(page))
                return
