"""The table of the library: a row for each trace, with fewer columns on narrow screens."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.cache import LRUCache
from textual.strip import Strip

from mast_tui.columns import ColumnWidth, TableColumn, shortened, text_lengths
from mast_tui.safe_text import one_line
from mast_tui.ui.library.rows import GLYPHS, LibraryRow, WorkState
from mast_tui.ui.services.trace_catalog import FileProblem
from mast_tui.ui.widgets.column_table import ColumnTable, sign_column
from mast_tui.ui.widgets.virtual_lines import row_strip
from mast_tui.ui.wording import counted, name_within

SAME_RUN_MARK: Final = " ≡"
"""The mark after the name of a trace that is the same run as another."""

WIDE: Final = 89
"""The cells of the shortest line that shows everything about a trace."""

OFTEN: Final = 0.25
"""The share of rows that must have a value in a column so that the column is shown."""

MEASURED_ROWS: Final = 400
"""The number of rows from which the widths of the columns are computed."""

REMEMBERED: Final = 4 * MEASURED_ROWS
"""The number of rows whose widths are cached."""


def _marked_name(row: LibraryRow) -> str:
    return one_line(row.name) + (SAME_RUN_MARK if row.same_as else "")


def _short_name(name: str, cells: int) -> str:
    if not name.endswith(SAME_RUN_MARK):
        return name_within(name, cells)
    short_name = name_within(name.removesuffix(SAME_RUN_MARK), cells - len(SAME_RUN_MARK))
    return short_name + SAME_RUN_MARK


def _sign_style(row: LibraryRow) -> str:
    return {WorkState.FINISHED: "done", WorkState.OPEN: "own", WorkState.UNTOUCHED: "quiet"}[
        row.state
    ]


def _name_style(row: LibraryRow) -> str:
    return "quiet" if row.state is WorkState.FINISHED else "name"


def _outcome_style(row: LibraryRow) -> str:
    return row.outcome if row.outcome in ("failed", "succeeded") else "quiet"


COLUMNS: Final[Sequence[TableColumn[LibraryRow]]] = (
    sign_column(lambda row: GLYPHS[row.state], _sign_style),
    TableColumn(
        "trace",
        _marked_name,
        _name_style,
        ColumnWidth(cuts=((3, 32), (5, 12), (20, 1)), most=44, spare=12),
        cut=_short_name,
    ),
    TableColumn(
        "task",
        lambda row: one_line(row.task_id),
        "quiet",
        ColumnWidth(12, cuts=((2, 6),), most=16, least_line=WIDE, filled=OFTEN),
    ),
    TableColumn(
        "trial",
        lambda row: one_line(row.trial),
        "quiet",
        ColumnWidth(13, most=5, least_line=WIDE, filled=OFTEN),
        right=True,
    ),
    TableColumn(
        "model",
        lambda row: one_line(row.model),
        "quiet",
        ColumnWidth(15, cuts=((4, 8),), most=18),
    ),
    TableColumn(
        "system",
        lambda row: one_line(row.system),
        "quiet",
        ColumnWidth(14, most=14, least_line=WIDE),
    ),
    TableColumn("outcome", lambda row: row.outcome, _outcome_style, ColumnWidth(17)),
    TableColumn(
        "spans",
        lambda row: f"{row.spans}{'' if row.complete else '+'}",
        "quiet",
        right=True,
    ),
    TableColumn(
        "look",
        lambda row: "" if row.look_here is None else f"┊{row.look_here}",
        "quiet",
        ColumnWidth(10, filled=OFTEN),
        right=True,
    ),
    TableColumn(
        "labels",
        lambda row: f"●{row.labels}" if row.labels else "",
        "own",
        ColumnWidth(18),
        right=True,
    ),
    TableColumn(
        "sugg.",
        lambda row: f"◌{row.waiting}" if row.waiting else "",
        "waiting",
        ColumnWidth(16),
        right=True,
    ),
    TableColumn(
        "finished by",
        lambda row: one_line(", ".join(row.finished_by)),
        "quiet",
        ColumnWidth(11, cuts=((1, 8), (6, 5)), most=24, least_line=WIDE),
    ),
)
"""The columns. On narrow screens those of the lowest rank are dropped first."""


class LibraryList(ColumnTable[LibraryRow]):
    """The traces, and below them the files that could not be read."""

    css_prefix = "library-list"
    tells_focus = False
    css_parts = ("cursor", "quiet", "failed", "succeeded", "own", "waiting", "done", "name")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(attrgetter("trace_id"), COLUMNS, id=id)
        self.troubles: Sequence[FileProblem] = ()
        self._lengths_by_trace: LRUCache[str, tuple[LibraryRow, Sequence[int]]] = LRUCache(
            REMEMBERED
        )

    @property
    def row_count(self) -> int:
        """The number of traces, and of unreadable files with the heading above them."""
        return len(self.rows) + (1 + len(self.troubles) if self.troubles else 0)

    @property
    def trouble(self) -> FileProblem | None:
        """The unreadable file under the cursor, or None."""
        index = self.cursor - len(self.rows) - 1
        return self.troubles[index] if 0 <= index < len(self.troubles) else None

    def show(
        self,
        rows: Sequence[LibraryRow],
        troubles: Sequence[FileProblem] = (),
        *,
        still: bool = False,
    ) -> None:
        """List other rows; the cursor stays on its trace.

        A cursor on the first row stays on the first row. If its trace is gone, the cursor keeps its
        position with ``still``, else it moves to the first row.

        Args:
            rows: The traces.
            troubles: The files that could not be read.
            still: Whether to scroll so that the trace under the cursor keeps its line on screen. If
                the cursor is not on screen, the first trace on screen keeps its line.
        """
        top = round(self.scroll_y)
        is_cursor_on_screen = self.cursor in self.rows_on_screen()
        anchor = self.cursor if is_cursor_on_screen else top
        previous_rows = self.rows
        previous_cursor = self.cursor
        self.rows = rows
        self.troubles = tuple(troubles)
        # Traces that are finished are at the end of the queue, beyond those that are measured.
        self.columns = COLUMNS if any(row.finished_by for row in rows) else COLUMNS[:-1]
        position_by_id = {row.trace_id: position for position, row in enumerate(rows)}

        def new_position(position: int) -> int | None:
            if position >= len(previous_rows):
                return position - len(previous_rows) + len(rows) if self.troubles else None
            return position_by_id.get(previous_rows[position].trace_id)

        new_cursor = new_position(previous_cursor) if previous_cursor else 0
        if new_cursor is None:
            new_cursor = previous_cursor if still else 0
        self.cursor = new_cursor
        self.rows_changed()
        if not still:
            self.show_row(self.cursor)
            return
        new_anchor = new_position(anchor) if anchor else None
        if new_anchor is not None and new_anchor != anchor:
            self.scroll_to(y=top + new_anchor - anchor, animate=False, force=True, immediate=True)
        if is_cursor_on_screen:
            self.show_row(self.cursor)

    def lengths(self) -> Sequence[Sequence[int]]:
        """Return the widths of the texts of the first ``MEASURED_ROWS`` rows."""
        return [self._text_lengths(row) for row in self.rows[:MEASURED_ROWS]]

    def _text_lengths(self, row: LibraryRow) -> Sequence[int]:
        """Return the widths of the texts of a row; they are cached until the row changes."""
        cached_row, lengths = self._lengths_by_trace.get(row.trace_id, (None, ()))
        if cached_row is not row:
            lengths = text_lengths(COLUMNS, row)
            self._lengths_by_trace[row.trace_id] = (row, lengths)
        return lengths

    def render_row(self, row: int, width: int) -> Strip:
        """Render a trace, the heading of the unreadable files, or an unreadable file.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        if row < len(self.rows):
            return super().render_row(row, width)
        base = self.rich_style
        file_index = row - len(self.rows) - 1
        if file_index < 0:
            text = f"   {counted(len(self.troubles), 'file')} could not be read"
            return row_strip([Segment(text, base + self._part("quiet"))], width, base)
        base = self.row_style(row)
        trouble = self.troubles[file_index]
        name = one_line(trouble.path)
        message = shortened(one_line(trouble.message), max(1, width - 5 - cell_len(name)))
        parts = [
            Segment("▌" if row == self.cursor else " ", base),
            Segment("✗ ", base + self._part("failed")),
            Segment(name, base),
            Segment(f"  {message}", base + self._part("quiet")),
        ]
        return row_strip(parts, width, base)
