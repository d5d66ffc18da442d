"""Titles and paragraphs that are never markup."""

from __future__ import annotations

from rich.text import Text
from textual.content import Content

from mast_tui.safe_text import display_lines, one_line


def plain_title(text: str) -> Text:
    """A border title: one line, control characters made visible, brackets as they are."""
    return Text(one_line(text), end="")


def plain_lines(text: str) -> Content:
    """A text of some lines: control characters made visible, brackets as they are."""
    return Content("\n".join(display_lines(text)))
