"""The first line of every screen: what is open on the left, the annotator on the right."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from mast_tui.columns import shortened
from mast_tui.safe_text import one_line
from mast_tui.ui.textual_internals import RenderCache

SEPARATOR = " · "

MIN_FIRST_CELLS: Final = 24
"""The cells to which the first part is cut before later parts are dropped."""

_ASSISTED: Final = "suggestions shown"
_SHORTER: Final = (
    (" finished", ""),  # ``3 of 16`` is clear without it
    (_ASSISTED, "sugg. shown"),  # the heading in the library
)
"""Shorter texts for the right side, applied in this order until all parts fit."""


ADJUDICATOR: Final = "adjudicator"


def sight_words(*, blind: bool) -> str:
    """Return how the annotator works: blind or with suggestions."""
    return "blind" if blind else _ASSISTED


class TitleBar(RenderCache):
    """Two groups of parts, joined by dots.

    If they do not fit, the right side is shortened first, then the first part on the left; then the
    last parts on the left are dropped.
    """

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
        """Show these parts.

        Args:
            left: What is open; foreign text.
            right: Who works, and how; foreign text.
        """
        left = tuple(one_line(part, 120) for part in left)
        right = tuple(one_line(part, 64) for part in right)
        if (left, right) != (self._left, self._right):
            self._left = left
            self._right = right
            self.refresh()

    def _least(self, left: list[str]) -> int:
        """Return the cells of the left side with its first part cut as far as possible."""
        first, *later = map(cell_len, left)
        return min(first, MIN_FIRST_CELLS) + sum(later) + len(SEPARATOR) * len(later)

    def render_line(self, y: int) -> Strip:
        """Draw the bar."""
        width = self.size.width
        base = self.rich_style
        first_style = base + self._part("first")
        other_style = base + self._part("rest")
        right = list(self._right)
        # The right side may take more than half of the bar if the left side needs less.
        right_limit = max(width // 2, width - 4 - cell_len(SEPARATOR.join(self._left)))
        needed = cell_len(SEPARATOR.join(self._left))
        for long, short in _SHORTER:
            length = cell_len(SEPARATOR.join(right))
            if length <= min(right_limit, width - 4 - needed):
                break
            right = [
                part.removesuffix(long) + short if part.endswith(long) else part for part in right
            ]
            needed = self._least(list(self._left)) if self._left else 0
        while len(right) > 1 and cell_len(SEPARATOR.join(right)) > right_limit:
            right.pop()
        tail = SEPARATOR.join(right)
        left_cells = max(0, width - cell_len(tail) - 4)
        left = list(self._left)
        while len(left) > 1 and self._least(left) > left_cells:
            left.pop()
        later = "".join(SEPARATOR + part for part in left[1:])
        head = shortened(left[0] if left else "", left_cells - cell_len(later))
        gap = width - 2 - cell_len(head) - cell_len(later) - cell_len(tail)
        return Strip(
            [
                Segment(" ", base),
                Segment(head, first_style),
                Segment(later, other_style),
                Segment(" " * max(1, gap), base),
                Segment(tail, other_style),
            ]
        ).adjust_cell_length(width, base)
