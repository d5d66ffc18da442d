"""The library's table: one row a trace, columns that give way on narrow screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.cache import LRUCache
from textual.strip import Strip

from mast_tui.safe_text import one_line
from mast_tui.ui.library.rows import GLYPHS, LibraryRow, State
from mast_tui.ui.services.trace_catalog import FileProblem
from mast_tui.ui.widgets.virtual_lines import VirtualLines, row_strip
from mast_tui.ui.wording import name_within, shortened


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, how wide it may become, and from which screen width on it is shown."""

    name: str
    title: str
    most: int
    from_width: int = 0
    right: bool = False
    told_of: float = 0.0
    """It is left out where less than this share of the traces has anything in it."""


COLUMNS: Final = (
    Column("name", "trace", 44),
    Column("task_id", "task", 16, 90, told_of=0.25),
    Column("trial", "trial", 5, 90, right=True, told_of=0.25),
    Column("model", "model", 18),
    Column("system", "system", 14, 90),
    Column("outcome", "outcome", 9),
    Column("spans", "spans", 7, right=True),
    Column("labels", "labels", 6, right=True),
    Column("waiting", "sugg.", 5, right=True),
    Column("finished", "finished by", 24, 90),
)

SAME: Final = " ≡"
"""Stands behind the name of a trace that is the same run as another."""

NARROWED: Final = (
    *(("finished", 8), ("task_id", 6), ("name", 32)),
    *(("model", 8), ("name", 12), ("finished", 5)),
)
"""Columns that give way where there is no room, one after the other, and how narrow they become."""

DROPPED: Final = ("finished", "task_id", "trial", "system", "model", "waiting", "outcome", "labels")
"""Columns that go one after the other where the narrowed ones still have no room."""

WIDENED: Final = ("name", "model", "system", "task_id", "finished")
"""Columns that become wider than they should where there is room, in this order."""

SAMPLED: Final = 400
"""How many rows are measured for the widths of the columns."""


def cell(row: LibraryRow, column: Column) -> str:
    """What stands in a column."""
    if column.name == "name" and row.same_as:
        return f"{one_line(row.name)}{SAME}"
    if column.name == "spans":
        return f"{row.spans}{'' if row.complete else '+'}"
    if column.name == "labels":
        return f"●{row.labels}" if row.labels else ""
    if column.name == "waiting":
        return f"◌{row.waiting}" if row.waiting else ""
    if column.name == "finished":
        return one_line(", ".join(row.finished_by))
    return one_line(str(getattr(row, column.name)))


class LibraryList(VirtualLines):
    """Traces. The first line of the widget is no row; titles stand in ``heading``."""

    css_prefix = "library-list"
    tells_size = True
    css_parts = ("cursor", "quiet", "failed", "succeeded", "own", "waiting", "done", "name")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[LibraryRow] = ()
        self.troubles: Sequence[FileProblem] = ()
        self._widths: list[tuple[Column, int]] = []
        self._fitted_width = 0
        self._lengths: LRUCache[str, tuple[LibraryRow, Mapping[str, int]]] = LRUCache(4 * SAMPLED)

    @property
    def row_count(self) -> int:
        """The traces listed, and under a line of their own the files that could not be read."""
        return len(self.rows) + (1 + len(self.troubles) if self.troubles else 0)

    @property
    def row(self) -> LibraryRow | None:
        """The trace under the cursor; None where there is none."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def trouble(self) -> FileProblem | None:
        """The unreadable file under the cursor; None where there is none."""
        place = self.cursor - len(self.rows) - 1
        return self.troubles[place] if 0 <= place < len(self.troubles) else None

    def show(
        self,
        rows: Sequence[LibraryRow],
        troubles: Sequence[FileProblem] = (),
        *,
        still: bool = False,
    ) -> None:
        """List other rows; the cursor stays on its trace, or at the head of the queue.

        With ``still`` nothing on screen moves that need not: the trace under the cursor stays on
        its line, or where the cursor is out of sight, the first trace that is on screen.
        """
        top = round(self.scroll_y)
        in_sight = self.cursor in self.rows_on_screen()
        held = self.cursor if in_sight else top
        before, cursor = self.rows, self.cursor
        self.rows, self.troubles = rows, tuple(troubles)
        places = {row.trace_id: place for place, row in enumerate(rows)}

        def place_now(place: int) -> int | None:
            if place >= len(before):
                return place - len(before) + len(rows) if self.troubles else None
            return places.get(before[place].trace_id)

        found = place_now(cursor) if cursor else 0
        self.cursor = found if found is not None else cursor if still else 0
        self.rows_changed()
        if not still:
            self.show_row(self.cursor)
            return
        place = place_now(held) if held else None
        if place is not None and place != held:
            self.scroll_to(y=top + place - held, animate=False, force=True, immediate=True)
        if in_sight:
            self.show_row(self.cursor)

    def rows_changed(self) -> None:
        """Fit the columns to what is listed."""
        self._fit(self.row_width)
        super().rows_changed()

    def _fit(self, width: int) -> None:
        """Choose the columns for rows of this width, and how wide each is."""
        self._fitted_width = width
        # The first few hundred rows settle the widths well enough, and cost little.
        sample = [self._measured(row) for row in self.rows[:SAMPLED]]
        longest = {c.name: max((one[c.name] for one in sample), default=0) for c in COLUMNS}
        shown = [
            c
            for c in COLUMNS
            if width >= c.from_width
            and sum(one[c.name] > 0 for one in sample) >= c.told_of * len(sample)
            # Who has finished stands at the end of the queue, beyond the sample.
            and (c.name != "finished" or any(row.finished_by for row in self.rows))
        ]
        widths = {c.name: min(c.most, max(cell_len(c.title), longest[c.name])) for c in shown}
        spare = width - 3 - sum(widths.values()) - 2 * (len(shown) - 1)
        for name, least in NARROWED:
            if spare < 0 and name in widths:
                cut = min(-spare, max(0, widths[name] - least))
                widths[name] -= cut
                spare += cut
        # A screen too narrow for all columns loses whole ones: a cut number is another number.
        for name in DROPPED:
            if spare < 0 and name in widths:
                spare += widths.pop(name) + 2
        shown = [column for column in shown if column.name in widths]
        if spare < 0:
            widths["name"] = max(1, widths["name"] + spare)
        # What is cut takes the room that others leave.
        for name in WIDENED:
            if spare > 0 and name in widths:
                more = min(spare, max(0, longest[name] - widths[name]))
                widths[name] += more
                spare -= more
        if spare > 0:
            widths["name"] += min(spare, 12)
        self._widths = [(column, widths[column.name]) for column in shown]

    def _measured(self, row: LibraryRow) -> Mapping[str, int]:
        """How wide each cell of a row is; measured once."""
        known = self._lengths.get(row.trace_id)
        if known is None or known[0] is not row:
            known = (row, {column.name: cell_len(cell(row, column)) for column in COLUMNS})
            self._lengths[row.trace_id] = known
        return known[1]

    def heading(self) -> str:
        """The titles over the columns."""
        parts = [
            column.title[:size].rjust(size) if column.right else column.title[:size].ljust(size)
            for column, size in self._widths
        ]
        return "   " + "  ".join(parts)

    def render_row(self, row: int, width: int) -> Strip:
        """One trace, or one file that could not be read."""
        if width != self._fitted_width:
            self._fit(width)
        if row >= len(self.rows):
            return self._render_trouble(row, width)
        item = self.rows[row]
        base = self.row_style(row)
        done = item.state is State.FINISHED
        glyph = base + self._part(
            "done" if done else "own" if item.state is State.OPEN else "quiet"
        )
        parts = [
            Segment("▌" if row == self.cursor else " ", base),
            Segment(GLYPHS[item.state], glyph),
        ]
        for column, size in self._widths:
            text = cell(item, column)
            if cell_len(text) > size:
                if column.name == "name":
                    mark = SAME if item.same_as else ""
                    text = name_within(one_line(item.name), size - len(mark)) + mark
                else:
                    text = shortened(text, size)
            gap = " " * (size - cell_len(text))
            shown = gap + text if column.right else text + gap
            lead = " " if len(parts) == 2 else "  "
            parts.append(Segment(lead, base))
            parts.append(Segment(shown, base + self._part(self._kind(item, column, done))))
        return row_strip(parts, width, base)

    def _render_trouble(self, row: int, width: int) -> Strip:
        base = self.rich_style
        place = row - len(self.rows) - 1
        if place < 0:
            n = len(self.troubles)
            text = f"   {n} file{'' if n == 1 else 's'} could not be read"
            parts = [Segment(text, base + self._part("quiet"))]
        else:
            base = self.row_style(row)
            trouble = self.troubles[place]
            name = one_line(trouble.path)
            message = shortened(one_line(trouble.message), max(1, width - 5 - cell_len(name)))
            parts = [
                Segment("▌" if row == self.cursor else " ", base),
                Segment("✗ ", base + self._part("failed")),
                Segment(name, base),
                Segment(f"  {message}", base + self._part("quiet")),
            ]
        return row_strip(parts, width, base)

    @staticmethod
    def _kind(item: LibraryRow, column: Column, done: bool) -> str:
        if column.name == "outcome" and item.outcome in ("failed", "succeeded"):
            return item.outcome
        if column.name == "labels":
            return "own"
        if column.name == "waiting":
            return "waiting"
        if column.name == "name" and not done:
            return "name"
        return "quiet"
