"""The first line of every screen: what is open on the left, the annotator on the right."""

from __future__ import annotations

from collections.abc import Sequence
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

FRAME_CELLS: Final = 4
"""The cells around and between the two sides."""

_ASSISTED: Final = "suggestions shown"
_SHORTER: Final = (
    (" finished", ""),  # ``3 of 16`` is clear without it
    (_ASSISTED, "sugg. shown"),  # the heading in the library
)
"""Shorter texts for the right side, applied in this order until all parts fit."""


ADJUDICATOR: Final = "adjudicator"


def sight_words(*, blind: bool) -> str:
    """Return the text of the condition: blind, or with suggestions."""
    return "blind" if blind else _ASSISTED


class TitleBar(RenderCache):
    """Two groups of parts, joined by dots.

    If they do not fit, these steps are taken until they do:

    - The parts on the right are shortened.
    - The first part on the left is cut.
    - The last parts on the left are dropped.
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
            left: The parts that name what is open; they may be foreign text.
            right: The annotator and the condition; they may be foreign text.
        """
        left = tuple(one_line(part, 120) for part in left)
        right = tuple(one_line(part, 64) for part in right)
        if (left, right) != (self._left, self._right):
            self._left = left
            self._right = right
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the bar."""
        width = self.size.width
        right_text = self._right_text(width)
        left_cells = max(0, width - cell_len(right_text) - FRAME_CELLS)
        left = list(self._left)
        while len(left) > 1 and _least_cells(left) > left_cells:
            left.pop()
        later_text = "".join(SEPARATOR + part for part in left[1:])
        first_text = shortened(left[0] if left else "", left_cells - cell_len(later_text))
        gap = width - 2 - cell_len(first_text) - cell_len(later_text) - cell_len(right_text)
        base_style = self.rich_style
        rest_style = base_style + self._part("rest")
        return Strip(
            [
                Segment(" ", base_style),
                Segment(first_text, base_style + self._part("first")),
                Segment(later_text, rest_style),
                Segment(" " * max(1, gap), base_style),
                Segment(right_text, rest_style),
            ]
        ).adjust_cell_length(width, base_style)

    def _right_text(self, width: int) -> str:
        """Return the right side, with its parts shortened or dropped so far as needed.

        It may be wider than half of the bar if the left side needs less.
        """
        right = list(self._right)
        needed_left_cells = cell_len(SEPARATOR.join(self._left))
        max_cells = max(width // 2, width - FRAME_CELLS - needed_left_cells)
        for long_end, short_end in _SHORTER:
            right_cells = cell_len(SEPARATOR.join(right))
            if right_cells <= min(max_cells, width - FRAME_CELLS - needed_left_cells):
                break
            right = [
                part.removesuffix(long_end) + short_end if part.endswith(long_end) else part
                for part in right
            ]
            needed_left_cells = _least_cells(self._left)
        while len(right) > 1 and cell_len(SEPARATOR.join(right)) > max_cells:
            right.pop()
        return SEPARATOR.join(right)


def _least_cells(left: Sequence[str]) -> int:
    """Return the cells of the left side if its first part is cut as far as allowed."""
    if not left:
        return 0
    first_cells, *later_cells = map(cell_len, left)
    separator_cells = len(SEPARATOR) * len(later_cells)
    return min(first_cells, MIN_FIRST_CELLS) + sum(later_cells) + separator_cells
