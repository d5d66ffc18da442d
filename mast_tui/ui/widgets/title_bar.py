"""The first line of every screen: what is open on the left, who works on the right."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from mast_tui.columns import shortened
from mast_tui.safe_text import one_line
from mast_tui.ui.textual_internals import RenderCache

SEPARATOR = " · "

LEAST_OF_FIRST: Final = 24
"""Cells of a long first part before what stands behind it gives way."""

_SHOWN: Final = "suggestions shown"
_SHORTER: Final = (
    (" finished", ""),  # ``3 of 16`` says it too
    (_SHOWN, "sugg. shown"),  # as the library's column is headed
)
"""What stands for words on the right where there is no room for everything, in this order."""


ADJUDICATOR: Final = "adjudicator"


def sight_words(*, blind: bool) -> str:
    """How somebody works, in the words of the bar."""
    return "blind" if blind else _SHOWN


class TitleBar(RenderCache):
    """Parts joined by dots; where there is no room the right side is shortened, then the first part
    on the left, then the left side gives way from its end."""

    css_prefix = "title-bar"
    css_parts = ("first", "rest")

    DEFAULT_CSS = """
    TitleBar { dock: top; height: 1; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._left: tuple[str, ...] = ()
        self._right: tuple[str, ...] = ()

    def show(self, left: tuple[str, ...], right: tuple[str, ...]) -> None:
        """Show these parts, made fit for display."""
        left = tuple(one_line(part, 120) for part in left)
        right = tuple(one_line(part, 64) for part in right)
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def _least(self, left: list[str]) -> int:
        """Cells that the left side takes where the first part is cut as far as it may be."""
        first, *others = map(cell_len, left)
        return min(first, LEAST_OF_FIRST) + sum(others) + len(SEPARATOR) * len(others)

    def render_line(self, y: int) -> Strip:
        """The bar."""
        width = self.size.width
        base = self.rich_style
        first = base + self._part("first")
        rest = base + self._part("rest")
        right = list(self._right)
        # The right side may take more than half of the bar if the left side needs less.
        most = max(width // 2, width - 4 - cell_len(SEPARATOR.join(self._left)))
        needed = cell_len(SEPARATOR.join(self._left))
        for words, shorter in _SHORTER:
            length = cell_len(SEPARATOR.join(right))
            if length <= min(most, width - 4 - needed):
                break
            right = [
                part.removesuffix(words) + shorter if part.endswith(words) else part
                for part in right
            ]
            needed = self._least(list(self._left)) if self._left else 0
        while len(right) > 1 and cell_len(SEPARATOR.join(right)) > most:
            right.pop()
        tail = SEPARATOR.join(right)
        room = max(0, width - cell_len(tail) - 4)
        left = list(self._left)
        while len(left) > 1 and self._least(left) > room:
            left.pop()
        others = "".join(SEPARATOR + part for part in left[1:])
        head = shortened(left[0] if left else "", room - cell_len(others))
        gap = width - 2 - cell_len(head) - cell_len(others) - cell_len(tail)
        return Strip(
            [
                Segment(" ", base),
                Segment(head, first),
                Segment(others, rest),
                Segment(" " * max(1, gap), base),
                Segment(tail, rest),
            ]
        ).adjust_cell_length(width, base)
