"""The queue of an adjudicator: traces, and under each what its annotators differ on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from mast_tui.columns import ColumnWidth, TableColumn, padded, text_lengths
from mast_tui.safe_text import one_line
from mast_tui.ui.widgets.column_table import ColumnTable


class RowState(StrEnum):
    """How a row of the queue stands."""

    OPEN = "open"
    DECIDED = "decided"
    CHANGED = "changed"
    AGREED = "agreed"
    LOCKED = "locked"
    TRACE = "trace"


GLYPHS: Final = {
    RowState.OPEN: "≠",
    RowState.DECIDED: "✓",
    RowState.CHANGED: "!",
    RowState.AGREED: "=",
    RowState.LOCKED: "○",
    RowState.TRACE: " ",
}
"""``!`` is a decision after which a side has said something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One row: a trace, or an item of one. ``item`` is None for a trace's own row.

    ``code`` and ``name`` are the mode's, or ``name`` what the trace goes by; ``what`` says what
    differs or how it was settled, and ``who`` the same by names, where there is room.
    """

    trace_id: str
    item: str | None
    state: RowState
    code: str
    name: str
    what: str
    who: str = ""


QUIET: Final = frozenset((RowState.AGREED, RowState.DECIDED))


def _text_style(style: str) -> Callable[[QueueRow], str]:
    return lambda row: "quiet" if row.state in QUIET else style


SIGN_STYLES: Final[Mapping[RowState, str]] = {
    RowState.CHANGED: "open",
    RowState.AGREED: "quiet",
    RowState.LOCKED: "quiet",
}

COLUMNS: Final[Sequence[TableColumn[QueueRow]]] = (
    TableColumn(
        "  ",
        lambda row: f" {GLYPHS[row.state]}",
        lambda row: SIGN_STYLES.get(row.state, row.state),
        ColumnWidth(gap=1),
    ),
    TableColumn("", lambda row: row.code, "name", ColumnWidth(gap=1)),
    TableColumn("", lambda row: row.name, _text_style("figure"), ColumnWidth(cuts=((4, 1),))),
    TableColumn("", lambda row: row.what, _text_style("what"), ColumnWidth(cuts=((3, 17), (5, 1)))),
    TableColumn("", lambda row: row.who, "quiet", ColumnWidth(2, cuts=((1, 20),), filled=0.0)),
)
"""The columns of an item. Where there is little room, who says what is left out first."""


class ConflictList(ColumnTable[QueueRow]):
    """Rows of the queue; the cursor stands on any of them."""

    css_prefix = "conflict-list"
    tells_focus = False
    css_parts = ("cursor", "trace", "name", "figure", "what", "open", "decided", "quiet")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(attrgetter("trace_id", "item"), COLUMNS, id=id)

    def show(self, rows: Sequence[QueueRow]) -> None:
        """Show other rows; the cursor stays on its item, or on its trace, where that is listed."""
        current = self.row
        self.rows = rows
        if current is not None:
            place = self.place_of(current.trace_id, current.item)
            if place is None:
                place = self.place_of(current.trace_id, None)
            self.cursor = place if place is not None else min(self.cursor, max(0, len(rows) - 1))
        self.rows_changed()
        self.show_row(self.cursor)

    def lengths(self) -> Sequence[Sequence[int]]:
        """Return the cells of the texts of items; those of traces have a line of their own."""
        return [text_lengths(COLUMNS, row) for row in self.rows if row.item is not None]

    def on_resize(self, event: events.Resize) -> None:
        """Keep the cursor on screen."""
        event.prevent_default()  # it is called here, before the cursor is looked for
        super().on_resize(event)
        self.show_row(self.cursor)

    def place_of(self, trace_id: str, item: str | None) -> int | None:
        """The row of an item, or of a trace."""
        for place, row in enumerate(self.rows):
            if row.trace_id == trace_id and row.item == item:
                return place
        return None

    def next_open(
        self, start: int, step: int = 1, *, but: Callable[[QueueRow], bool] = lambda _: False
    ) -> int | None:
        """Find the next item that is left to decide, around the end.

        Args:
            start: Behind which row.
            step: -1 goes back.
            but: Which items are passed over while there is another.

        Returns:
            Its row, None where all are decided.
        """
        total, left = len(self.rows), None
        for distance in range(1, total + 1):
            place = (start + step * distance) % total
            if self.rows[place].state in (RowState.OPEN, RowState.CHANGED):
                if not but(self.rows[place]):
                    return place
                left = place if left is None else left
        return left

    def next_trace(self, start: int, step: int = 1) -> int | None:
        """The row of the next trace, or None at the end."""
        place = start + step
        if step < 0:
            here = self.rows[start].trace_id if self.rows else ""
            own = self.place_of(here, None)
            place = (own if own is not None else start) - 1
        while 0 <= place < len(self.rows):
            if self.rows[place].item is None:
                return place
            place += step
        return None

    def first_in_trace(self, place: int) -> int:
        """The first open item of the trace in row ``place``; else its first item, else itself."""
        end = place + 1
        while end < len(self.rows) and self.rows[end].item is not None:
            if self.rows[end].state in (RowState.OPEN, RowState.CHANGED):
                return end
            end += 1
        return place + 1 if end > place + 1 else place

    def render_row(self, row: int, width: int) -> Strip:
        """Return a trace's row, or one item with what differs."""
        item = self.rows[row]
        if item.item is not None:
            return super().render_row(row, width)
        base = self.row_style(row)
        glyph = GLYPHS[item.state].strip()
        room = max(4, width - 3 - cell_len(glyph) - cell_len(item.what))
        parts = [
            Segment("▌" if row == self.cursor else " ", base + self._part("name")),
            Segment(f"{glyph} " if glyph else "", base + self._part("quiet")),
            Segment(padded(one_line(item.name or item.trace_id), room), base + self._part("trace")),
            Segment(f" {item.what}", base + self._part("quiet")),
        ]
        return Strip(parts).adjust_cell_length(width, base)
