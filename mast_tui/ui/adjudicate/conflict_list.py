"""The queue of an adjudicator: traces, and under each what its annotators differ on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip

from mast_tui.safe_text import one_line
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import words_within


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

LEAST_WHAT: Final = 17
LEAST_WHO: Final = 20
"""Cells under which a column is not worth showing."""


@dataclass(frozen=True, slots=True)
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


class ConflictList(VirtualLines):
    """Rows of the queue; the cursor stands on any of them."""

    css_prefix = "conflict-list"
    css_parts = ("cursor", "trace", "code", "name", "what", "open", "decided", "quiet")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[QueueRow] = ()
        self._code = 3
        self._longest = (1, 1, 0)

    @property
    def row_count(self) -> int:
        """Traces and items."""
        return len(self.rows)

    @property
    def row(self) -> QueueRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def show(self, rows: Sequence[QueueRow]) -> None:
        """Show other rows; the cursor stays on its item where it is still listed."""
        current = self.row
        self.rows = rows
        items = [row for row in rows if row.item is not None]
        self._code = max((cell_len(row.code) for row in items), default=3)
        self._longest = (
            max((cell_len(row.name) for row in items), default=1),
            max((cell_len(row.what) for row in items), default=1),
            max((cell_len(row.who) for row in items), default=0),
        )
        if current is not None:
            place = self.place_of(current.trace_id, current.item)
            if place is None:
                place = self.place_of(current.trace_id, None)
            self.cursor = place if place is not None else min(self.cursor, max(0, len(rows) - 1))
        self.rows_changed()
        self.show_row(self.cursor)

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
        """A trace's row, or one item with what differs."""
        item = self.rows[row]
        base = self.rich_style
        at_cursor = row == self.cursor
        if at_cursor:
            base += self._part("cursor")
        bar = Segment("▌" if at_cursor else " ", base + self._part("code"))
        if item.item is None:
            return self._trace_row(item, width, bar, base)
        quiet = item.state in (RowState.AGREED, RowState.DECIDED)
        glyph = {RowState.CHANGED: "open", RowState.AGREED: "quiet"}.get(item.state, item.state)
        name_cells, what_cells, who_cells = self._columns(width)
        parts = (
            (f" {GLYPHS[item.state]} ", glyph),
            (set_cell_size(item.code, self._code), "code"),
            (" ", None),
            (words_within(item.name, name_cells), "quiet" if quiet else "name"),
            ("  ", None),
            (words_within(item.what, what_cells), "quiet" if quiet else "what"),
            ("  " if who_cells else "", None),
            (words_within(item.who, who_cells), "quiet"),
        )
        cells = [Segment(text, base + self._part(part) if part else base) for text, part in parts]
        return Strip([bar, *cells]).adjust_cell_length(width, base)

    def _trace_row(self, item: QueueRow, width: int, bar: Segment, base: Style) -> Strip:
        glyph = GLYPHS[item.state].strip()
        room = max(4, width - 3 - cell_len(glyph) - cell_len(item.what))
        return Strip(
            [
                bar,
                Segment(f"{glyph} " if glyph else "", base + self._part("quiet")),
                Segment(
                    words_within(one_line(item.name or item.trace_id), room),
                    base + self._part("trace"),
                ),
                Segment(f" {item.what}", base + self._part("quiet")),
            ]
        ).adjust_cell_length(width, base)

    def _columns(self, width: int) -> tuple[int, int, int]:
        """Cells of the mode's name, of what differs, and of who says what (0 for none)."""
        room = width - 5 - self._code - 2
        name, what, who = self._longest
        what = min(what, max(LEAST_WHAT, room - name))
        name = min(name, room - what)
        rest = room - name - what - 2
        if who and rest >= LEAST_WHO:
            return name, what, min(rest, who)
        return max(name, 1), max(room - name, 1), 0
