"""The list of an adjudicator's queue: traces, and the disputed modes of each."""

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
    """The state of a row of the queue."""

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
"""``!`` marks a decision after which a side has changed its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One row: a trace, or a dispute or agreed verdict in it.

    Attributes:
        trace_id: The id of the trace.
        item: The id of the dispute or agreed verdict; None in the row of a trace.
        state: The state of the row.
        code: The code of the mode; empty in the row of a trace.
        name: The name of the mode, or of the trace.
        summary: The difference or the decision.
        sides: The answer of each side, shown if there is room.
    """

    trace_id: str
    item: str | None
    state: RowState
    code: str
    name: str
    summary: str
    sides: str = ""


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
    TableColumn(
        "", lambda row: row.summary, _text_style("what"), ColumnWidth(cuts=((3, 17), (5, 1)))
    ),
    TableColumn("", lambda row: row.sides, "quiet", ColumnWidth(2, cuts=((1, 20),), filled=0.0)),
)
"""The columns of an item. On a narrow screen the answers of the sides are dropped first."""


class ConflictList(ColumnTable[QueueRow]):
    """The rows of the queue, with a cursor."""

    css_prefix = "conflict-list"
    tells_focus = False
    css_parts = ("cursor", "trace", "name", "figure", "what", "open", "decided", "quiet")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(attrgetter("trace_id", "item"), COLUMNS, id=id)

    def show(self, rows: Sequence[QueueRow]) -> None:
        """Show other rows; keep the cursor on its item, or else on its trace."""
        current_row = self.row
        self.rows = rows
        if current_row is not None:
            position = self.position_of(current_row.trace_id, current_row.item)
            if position is None:
                position = self.position_of(current_row.trace_id, None)
            if position is None:
                position = min(self.cursor, max(0, len(rows) - 1))
            self.cursor = position
        self.rows_changed()
        self.show_row(self.cursor)

    def lengths(self) -> Sequence[Sequence[int]]:
        """Return the widths of the columns of each item; a trace's row has no columns."""
        return [text_lengths(COLUMNS, row) for row in self.rows if row.item is not None]

    def on_resize(self, event: events.Resize) -> None:
        """Keep the cursor on screen."""
        event.prevent_default()  # so that the list has its new size before the cursor is shown
        super().on_resize(event)
        self.show_row(self.cursor)

    def position_of(self, trace_id: str, item: str | None) -> int | None:
        """Return the position of a row, or None if it is not listed.

        Args:
            trace_id: The id of the trace.
            item: The id of the item; None for the row of the trace.
        """
        for position, row in enumerate(self.rows):
            if row.trace_id == trace_id and row.item == item:
                return position
        return None

    def next_open(
        self, start: int, step: int = 1, *, postpone: Callable[[QueueRow], bool] = lambda _: False
    ) -> int | None:
        """Return the position of the next open or changed item, continuing at the other end.

        Args:
            start: The position after which the search begins.
            step: 1 for the next item, -1 for the previous one.
            postpone: Tells which items are returned only if there is no other.

        Returns:
            The position, or None if no item is open or changed.
        """
        total = len(self.rows)
        postponed = None
        for distance in range(1, total + 1):
            position = (start + step * distance) % total
            if self.rows[position].state not in (RowState.OPEN, RowState.CHANGED):
                continue
            if not postpone(self.rows[position]):
                return position
            if postponed is None:
                postponed = position
        return postponed

    def next_trace(self, start: int, step: int = 1) -> int | None:
        """Return the position of the row of the next trace, or None if there is none.

        Args:
            start: The position of a row of the current trace.
            step: 1 for the next trace, -1 for the previous one.
        """
        position = start + step
        if step < 0 and self.rows:
            heading = self.position_of(self.rows[start].trace_id, None)
            if heading is not None:
                position = heading - 1
        while 0 <= position < len(self.rows):
            if self.rows[position].item is None:
                return position
            position += step
        return None

    def first_in_trace(self, heading: int) -> int:
        """Return the position of a trace's first open or changed item.

        If there is none, return the position of its first item, or of the heading if the trace has
        no items.

        Args:
            heading: The position of the row of the trace.
        """
        position = heading + 1
        while position < len(self.rows) and self.rows[position].item is not None:
            if self.rows[position].state in (RowState.OPEN, RowState.CHANGED):
                return position
            position += 1
        return heading + 1 if position > heading + 1 else heading

    def render_row(self, row: int, width: int) -> Strip:
        """Render the row of a trace, or of an item.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        queue_row = self.rows[row]
        if queue_row.item is not None:
            return super().render_row(row, width)
        base = self.row_style(row)
        glyph = GLYPHS[queue_row.state].strip()
        name = one_line(queue_row.name or queue_row.trace_id)
        name_width = max(4, width - 3 - cell_len(glyph) - cell_len(queue_row.summary))
        parts = [
            Segment("▌" if row == self.cursor else " ", base + self._part("name")),
            Segment(f"{glyph} " if glyph else "", base + self._part("quiet")),
            Segment(padded(name, name_width), base + self._part("trace")),
            Segment(f" {queue_row.summary}", base + self._part("quiet")),
        ]
        return Strip(parts).adjust_cell_length(width, base)
