"""Border titles that are never markup."""

from __future__ import annotations

from rich.text import Text

from mast_tui.safe_text import one_line


def plain_title(text: str) -> Text:
    """A border title: one line, control characters made visible, brackets as they are."""
    return Text(one_line(text), end="")
