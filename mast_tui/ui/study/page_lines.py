"""A page to read: headings, paragraphs, and entries that keys work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from mast_tui.safe_text import display_lines
from mast_tui.ui.study.guideline_blocks import Block, BlockKind
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.virtual_lines import VirtualLines

INDENT: Final = 2
MOST_LINES: Final = 200
"""Rows that one paragraph may take."""

WIDEST: Final = 100
"""Cells beyond which lines are hard to read."""

_GLYPHS: Final = {BlockKind.GUIDELINE: "• ", BlockKind.CASE: "→ "}


@dataclass(frozen=True, slots=True)
class _Row:
    """One row: its block, None between two of them, and what it shows."""

    block: Block | None
    text: str
    style: str


class PageLines(VirtualLines):
    """Blocks wrapped to the width; the cursor stands on a row, keys work on its entry."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "page-lines--cursor",
        "page-lines--heading",
        "page-lines--text",
        "page-lines--guideline",
        "page-lines--case",
        "page-lines--below",
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.blocks: Sequence[Block] = ()
        self._rows: list[_Row] = []

    @property
    def row_count(self) -> int:
        """Rows of all blocks."""
        return len(self._rows)

    @property
    def block(self) -> Block | None:
        """The block under the cursor."""
        return self._rows[self.cursor].block if self._rows else None

    def show(self, blocks: Sequence[Block], *, stay: bool) -> None:
        """Show a page; with ``stay`` the cursor keeps its row, else it begins at the top."""
        self.blocks = blocks
        if not stay:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, force=True)
        self.rows_changed()
        self.show_row(self.cursor)

    def rows_changed(self) -> None:
        """Wrap the texts to the width."""
        width = min(WIDEST, self.lines_area.width)
        rows: list[_Row] = []
        for block in self.blocks:
            if rows and block.kind is BlockKind.HEADING:
                rows.append(_Row(None, "", "text"))
            rows += _rows_of(block, width)
        self._rows = rows
        super().rows_changed()

    def next_entry(self) -> bool:
        """Put the cursor on the next guideline or case, around the end; False for none."""
        here = self.block
        for distance in range(1, len(self._rows) + 1):
            row = (self.cursor + distance) % len(self._rows)
            block = self._rows[row].block
            if block is not None and block is not here and block.kind in _GLYPHS:
                self.move_to(row)
                return True
        return False

    def render_row(self, row: int, width: int) -> Strip:
        """One row of the page."""
        line = self._rows[row]
        base = self.rich_style
        if row == self.cursor:
            base += self._part("cursor")
        bar = Segment("▌" if row == self.cursor else " ", base + self._part("case"))
        text = Segment(line.text, base + self._part(line.style))
        return Strip([bar, text]).adjust_cell_length(width, base)

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"page-lines--{name}", partial=True)


def _rows_of(block: Block, width: int) -> list[_Row]:
    style = block.kind.value
    glyph = _GLYPHS.get(block.kind, "")
    if block.kind is BlockKind.HEADING:
        return [_Row(block, block.text, style)]
    cells = max(8, width - 1 - INDENT)
    rows = []
    for line in block.text.split("\n"):
        rows += [
            _Row(block, f"  {part}", style) for part in wrapped(line, cells, MOST_LINES) or [""]
        ]
    if glyph and rows:
        rows[0] = _Row(block, glyph + rows[0].text[INDENT:], style)
    for words in block.below:
        for line in display_lines(words):
            rows += [_Row(block, f"  {part}", "below") for part in wrapped(line, cells, MOST_LINES)]
    return rows
