"""The first line of every screen: what is open on the left, who works on the right."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.strip import Strip

from mast_tui.safe_text import one_line
from mast_tui.ui.textual_internals import RenderCache

SEPARATOR = " · "

_SHOWN: Final = "suggestions shown"
_SHORTER: Final = {_SHOWN: "◌ shown"}
"""What stands for a part on the right where there is no room for everything; ``◌`` is the mark of
a suggestion everywhere."""


def sight_words(*, blind: bool) -> str:
    """How somebody works, in the words of the bar."""
    return "blind" if blind else _SHOWN


class TitleBar(RenderCache):
    """Parts joined by dots; where there is no room the right side is shortened, then the left side
    gives way from its end."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"title-bar--first", "title-bar--rest"}

    DEFAULT_CSS = """
    TitleBar { dock: top; height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left: tuple[str, ...] = ()
        self._right: tuple[str, ...] = ()

    def show(self, left: tuple[str, ...], right: tuple[str, ...]) -> None:
        """Show these parts, made fit for display."""
        left = tuple(one_line(part, 120) for part in left)
        right = tuple(one_line(part, 64) for part in right)
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The bar."""
        width = self.size.width
        base = self.rich_style
        first = base + self.get_component_rich_style("title-bar--first", partial=True)
        rest = base + self.get_component_rich_style("title-bar--rest", partial=True)
        right = list(self._right)
        length = cell_len(SEPARATOR.join(right))
        if length > min(width // 2, width - 4 - cell_len(SEPARATOR.join(self._left))):
            right = [_SHORTER.get(part, part) for part in right]
        while len(right) > 1 and cell_len(SEPARATOR.join(right)) > width // 2:
            right.pop()
        tail = SEPARATOR.join(right)
        room = max(0, width - cell_len(tail) - 4)
        left = list(self._left)
        while len(left) > 1 and cell_len(SEPARATOR.join(left)) > room:
            left.pop()
        head = left[0] if left else ""
        if cell_len(head) > room:
            head = set_cell_size(head, max(1, room - 1)) + "…"
        others = "".join(SEPARATOR + part for part in left[1:])
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
