"""The table of judge runs; columns give way on narrow screens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from mast_tui.ui.run_rows import RunRow
from mast_tui.ui.widgets.table_lines import TableLines

COLUMNS: Final = (
    ("judge", "judge", False),
    ("when", "when", False),
    ("traces", "traces", True),
    ("suggestions", "found", True),
    ("accepted", "accepted", True),
    ("rejected", "rejected", True),
    ("waiting", "waiting", True),
)
"""Fields of a row, their titles, and whether they are figures."""

GAP: Final = 2
LEAD: Final = 3
"""Cells before the first column: cursor and state."""

LEAST_JUDGE: Final = 12
HIDDEN: Final = "hidden"


def cell(row: RunRow, name: str) -> str:
    """What stands in a column."""
    value = getattr(row, name)
    return HIDDEN if value is None else str(value)


class RunList(TableLines):
    """Runs, the latest first. Titles stand in ``heading``."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "run-list--cursor",
        "run-list--judge",
        "run-list--quiet",
        "run-list--figure",
        "run-list--waiting",
        "run-list--unfinished",
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[RunRow] = ()
        self._widths: dict[str, int] = {}

    @property
    def row_count(self) -> int:
        """The runs."""
        return len(self.rows)

    @property
    def row(self) -> RunRow | None:
        """The run under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def show(self, rows: Sequence[RunRow]) -> None:
        """Show other runs; the cursor stays on its run where it is still listed."""
        current = self.row.run_id if self.row else None
        self.rows = rows
        self.cursor = next((i for i, row in enumerate(rows) if row.run_id == current), 0)
        self.rows_changed()

    def fit(self, width: int) -> None:
        """Figures get what they need, the judge's name what is left."""
        for name, title, _ in COLUMNS:
            longest = max((cell_len(cell(row, name)) for row in self.rows), default=0)
            self._widths[name] = max(cell_len(title), longest)
        others = sum(self._widths.values()) - self._widths["judge"]
        room = width - LEAD - GAP * (len(COLUMNS) - 1) - others
        self._widths["judge"] = max(LEAST_JUDGE, min(self._widths["judge"], room))

    def heading(self) -> str:
        """The titles over the columns."""
        parts = [
            f"{title:>{self._widths[name]}}" if right else f"{title:<{self._widths[name]}}"
            for name, title, right in COLUMNS
        ]
        return " " * LEAD + (" " * GAP).join(parts)

    def render_row(self, row: int, width: int) -> Strip:
        """One run."""
        item = self.rows[row]
        base = self.rich_style
        if row == self.cursor:
            base += self._part("cursor")
        glyph = "!" if item.problems else "●" if item.finished else "◐"
        kind = "quiet" if glyph == "●" else "unfinished"
        parts = [
            Segment("▌" if row == self.cursor else " ", base + self._part("judge")),
            Segment(f"{glyph} ", base + self._part(kind)),
        ]
        for place, (name, _, right) in enumerate(COLUMNS):
            text, size = cell(item, name), self._widths[name]
            if cell_len(text) > size:
                text = set_cell_size(text, size - 1) + "…"
            gap = " " * (size - cell_len(text))
            parts.append(Segment(" " * GAP if place else "", base))
            parts.append(
                Segment(gap + text if right else text + gap, base + self._part(_kind(item, name)))
            )
        return Strip(parts).adjust_cell_length(width, base)

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"run-list--{name}", partial=True)


def _kind(item: RunRow, name: str) -> str:
    if name == "judge":
        return "judge"
    if name == "waiting" and item.waiting:
        return "waiting"
    if name == "when" or getattr(item, name) in (None, 0):
        return "quiet"
    return "figure"
