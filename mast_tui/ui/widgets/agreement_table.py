"""Agreement per mode as a table: figures right, names give way, a cursor over the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from mast_tui.safe_text import one_line
from mast_tui.ui.agreement_rows import NO_FIGURE, AgreementRow, RowKind, columns_of, rows_of
from mast_tui.ui.widgets.table_lines import TableLines

if TYPE_CHECKING:
    from mast_tui.agreement.study import Report

LEAST_NAME: Final = 12
GAP: Final = 2


class AgreementTable(TableLines):
    """One row a mode, and two rows of totals. Titles stand in ``heading``."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "agreement-table--cursor",
        "agreement-table--code",
        "agreement-table--name",
        "agreement-table--total",
        "agreement-table--figure",
        "agreement-table--quiet",
        "agreement-table--doubtful",
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: tuple[AgreementRow, ...] = ()
        self._columns: tuple[tuple[str, str], ...] = ()
        self._widths: dict[str, int] = {}
        self._code_cells = 3
        self._name_cells = LEAST_NAME
        self._gap = GAP

    @property
    def row_count(self) -> int:
        """Modes and totals."""
        return len(self.rows)

    @property
    def row(self) -> AgreementRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def show(self, report: Report) -> None:
        """Show other figures; the cursor stays where it is."""
        self.rows = rows_of(report)
        self._columns = columns_of(report)
        self.rows_changed()

    def fit(self, width: int) -> None:
        """Figures get what they need, names what is left."""
        self._code_cells = max((cell_len(row.code) for row in self.rows), default=3)
        for key, title in self._columns:
            longest = max((cell_len(row.cells.get(key, "")) for row in self.rows), default=0)
            self._widths[key] = max(cell_len(title), longest)
        longest_name = max((cell_len(one_line(row.name)) for row in self.rows), default=LEAST_NAME)
        for self._gap in (GAP, 1):
            used = sum(self._widths[key] + self._gap for key, _ in self._columns)
            room = width - 2 - self._code_cells - self._gap - used
            if room >= min(longest_name, LEAST_NAME + 8):
                break
        self._name_cells = max(LEAST_NAME, min(room, longest_name))

    def heading(self) -> str:
        """The titles over the columns."""
        parts = [" " * (1 + self._code_cells + self._gap), set_cell_size("mode", self._name_cells)]
        parts += [f"{'':{self._gap}}{title:>{self._widths[key]}}" for key, title in self._columns]
        return "".join(parts)

    def render_row(self, row: int, width: int) -> Strip:
        """One mode, or a row of totals."""
        item = self.rows[row]
        base = self.rich_style
        if row == self.cursor:
            base += self._part("cursor")
        total = item.kind is not RowKind.MODE
        name = one_line(item.name)
        if cell_len(name) > self._name_cells:
            name = set_cell_size(name, self._name_cells - 1) + "…"
        parts = [
            Segment("▌" if row == self.cursor else " ", base + self._part("code")),
            Segment(
                set_cell_size(one_line(item.code), self._code_cells), base + self._part("code")
            ),
            Segment(" " * self._gap, base),
            Segment(
                set_cell_size(name, self._name_cells),
                base + self._part("total" if total else "name"),
            ),
        ]
        for key, _ in self._columns:
            text = item.cells.get(key, "")
            gap = " " * (self._gap + self._widths[key] - cell_len(text))
            parts.append(Segment(gap, base))
            parts.append(Segment(text, base + self._part(self._kind(item, key, text))))
        return Strip(parts).adjust_cell_length(width, base)

    @staticmethod
    def _kind(item: AgreementRow, key: str, text: str) -> str:
        if text.strip() == NO_FIGURE or key in ("n", "prevalence"):
            return "quiet"
        if key == "cohen_kappa" and item.doubtful:
            return "doubtful"
        return "figure"

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"agreement-table--{name}", partial=True)
