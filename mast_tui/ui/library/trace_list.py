"""The table of the library: its rows with the facts of each trace, their order, and the columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs
from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from mast_tui.columns import ColumnWidth, TableColumn, shortened, text_lengths
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Outcome, Trace
from mast_tui.ui.services.trace_catalog import FileProblem
from mast_tui.ui.widgets.virtual_lines import ColumnTable, row_strip, sign_column
from mast_tui.ui.wording import counted, name_within, natural

if TYPE_CHECKING:
    from mast_tui.session import LibraryEntry


class WorkState(StrEnum):
    """The annotator's progress on a trace."""

    OPEN = "open"
    UNTOUCHED = "untouched"
    FINISHED = "finished"


RETEST_GLYPH: Final = "↻"

GLYPHS: Final = {WorkState.OPEN: "◐", WorkState.UNTOUCHED: "○", WorkState.FINISHED: "✓"}


class LibraryRow(Struct, frozen=True, kw_only=True, dict=True):
    """A trace in the library. Facts that are hidden from the annotator are empty.

    Keys for sorting and filtering are computed once, when first needed.
    """

    trace_id: str
    name: str
    system: str = ""
    model: str = ""
    benchmark: str = ""
    outcome: str = ""
    spans: int = 0
    complete: bool = True
    state: WorkState = WorkState.UNTOUCHED
    finished_by: tuple[str, ...] = ()
    waiting: int = 0
    labels: int = 0
    look_here: int | None = None
    """The number of spans that probably contain the decisive step."""
    task_id: str = ""
    trial: str = ""
    same_as: tuple[str, ...] = ()
    """The names of traces that are the same run."""
    is_retest: bool = False
    problems: int = 0
    """The number of parts of the trace that could not be read."""

    @cached_property
    def natural(self) -> str:
        """A sort key that puts ``2.json`` before ``10.json``."""
        return natural(self.name)

    @cached_property
    def by_task(self) -> tuple[bool, str, int]:
        """A sort key by task, then by trial. Traces without a task come last."""
        task = natural(self.task_id) if self.task_id else ""
        return not self.task_id, task, int(self.trial or 0)

    @cached_property
    def haystack(self) -> str:
        """The text that a filter searches."""
        parts = [self.name, self.system, self.model, self.benchmark, self.outcome, self.state]
        parts += [self.task_id, f"trial {self.trial}"] if self.trial else [self.task_id]
        parts += [condition for condition, is_true in self._filter_conditions if is_true]
        return " ".join([*parts, *self.finished_by]).casefold()

    @property
    def _filter_conditions(self) -> tuple[tuple[str, bool], ...]:
        """The conditions that a filter may name, each with its truth for this trace."""
        return (
            ("unread", self.state is WorkState.UNTOUCHED),
            ("with suggestions", self.waiting > 0),
            ("labelled", self.labels > 0),
            ("same run", bool(self.same_as)),
            ("retest", self.is_retest),
        )


class Sort(StrEnum):
    """The orders of the library; the first is the order of the queue, if it has one."""

    QUEUE = "progress"
    NAME = "name"
    TASK = "task"
    MODEL = "model"
    OUTCOME = "outcome"
    SPANS = "spans"
    WAITING = "suggestions"
    LOOK_HERE = "spans to look at"

    def following(self) -> Sort:
        """Return the next order."""
        orders = list(Sort)
        return orders[(orders.index(self) + 1) % len(orders)]


_STATE_RANKS: Final = {state: rank for rank, state in enumerate(WorkState)}

_SORT_KEYS: Final[Mapping[Sort, Callable[[LibraryRow], Any]]] = {
    Sort.QUEUE: lambda row: _STATE_RANKS[row.state],
    Sort.NAME: attrgetter("natural"),
    Sort.TASK: attrgetter("by_task"),
    Sort.MODEL: lambda row: (row.model.casefold(), row.system.casefold()),
    Sort.OUTCOME: lambda row: row.outcome or "~",
    Sort.SPANS: lambda row: -row.spans,
    Sort.WAITING: lambda row: -row.waiting,
    Sort.LOOK_HERE: lambda row: inf if row.look_here is None else row.look_here,
}


def _rows_in_order(rows: Iterable[LibraryRow], sort: Sort) -> list[LibraryRow]:
    """Return the rows in an order. Equal rows are in the order of their names."""
    return sorted(sorted(rows, key=attrgetter("natural")), key=_SORT_KEYS[sort])


def _letters_in_order(word: str) -> re.Pattern[str]:
    """Return a pattern for texts with the letters of a word in order."""
    # Possessive quantifiers keep the search fast in a text without a letter.
    return re.compile("".join(f"[^{letter}]*+{letter}" for letter in map(re.escape, word)))


class TraceListing:
    """The rows of all traces. Sorted rows are cached for the next key."""

    def __init__(self) -> None:
        self._rows: dict[str, LibraryRow] = {}
        self._sorted_rows: list[LibraryRow] | None = None
        """The sorted rows of the queue; None after a change."""
        self._sort = Sort.QUEUE
        self._queue_ids: tuple[str, ...] | None = None
        self._keeps_queue_order = False
        """True if ``Sort.QUEUE`` keeps the order of ``_queue_ids`` instead of sorting by state."""
        self.similar_only = False
        """True if the listed rows do not contain the needle, but its letters in order."""
        self.matches_elsewhere = 0
        """The number of matching rows outside of the queue; counted only if none in the queue
        matches.
        """

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[LibraryRow]:
        return iter(self._rows.values())

    def differ_by(self, sort: Sort) -> bool:
        """Return whether the traces differ in what an order compares."""
        return len(set(map(_SORT_KEYS[sort], self))) > 1

    def put(self, rows: Iterable[LibraryRow]) -> None:
        """Add rows. A row replaces the row of the same trace."""
        self._rows.update((row.trace_id, row) for row in rows)
        self._sorted_rows = None

    def drop(self, trace_ids: Iterable[str]) -> None:
        """Remove the rows of some traces."""
        for trace_id in trace_ids:
            self._rows.pop(trace_id, None)
        self._sorted_rows = None

    def narrow(self, trace_ids: Sequence[str] | None, *, keeps_order: bool) -> None:
        """Restrict the rows to a queue.

        Args:
            trace_ids: The ids of the traces in the queue; None for all traces.
            keeps_order: Whether ``Sort.QUEUE`` keeps the order of these ids.
        """
        queue_ids = None if trace_ids is None else tuple(trace_ids)
        if (queue_ids, keeps_order) != (self._queue_ids, self._keeps_queue_order):
            self._queue_ids = queue_ids
            self._keeps_queue_order = keeps_order
            self._sorted_rows = None

    def _sorted_queue_rows(self, sort: Sort) -> list[LibraryRow]:
        """Return the sorted rows of the queue, or of all traces without a queue."""
        if self._queue_ids is None:
            return _rows_in_order(self, sort)
        rows = [self._rows[trace_id] for trace_id in self._queue_ids if trace_id in self._rows]
        if sort is Sort.QUEUE and self._keeps_queue_order:
            return rows
        return _rows_in_order(rows, sort)

    def arranged(self, needle: str, sort: Sort) -> list[LibraryRow]:
        """Return the sorted rows of the queue that contain every word of the needle.

        Without any, count matching rows of other traces in ``matches_elsewhere``. Without these,
        return rows with the letters of each word in order, and set ``similar_only``.

        Args:
            needle: The typed text.
            sort: The order of the rows.
        """
        if self._sorted_rows is None or self._sort is not sort:
            self._sorted_rows = self._sorted_queue_rows(sort)
            self._sort = sort
        terms = needle.casefold().split()
        matches = self._sorted_rows
        for term in terms:
            matches = [row for row in matches if term in row.haystack]
        self.matches_elsewhere = 0 if matches else self._count_outside_queue(terms)
        self.similar_only = False
        if not matches and not self.matches_elsewhere:
            patterns = [_letters_in_order(term) for term in terms]
            matches = [
                row
                for row in self._sorted_rows
                if all(pattern.match(row.haystack) for pattern in patterns)
            ]
            self.similar_only = bool(matches)
        return matches

    def _count_outside_queue(self, terms: Sequence[str]) -> int:
        """Return the number of rows of all traces with all words; 0 without a queue."""
        if self._queue_ids is None:
            return 0
        return sum(all(term in row.haystack for term in terms) for row in self)


def row_of(
    trace: Trace,
    name: str,
    entry: LibraryEntry | None,
    *,
    outcomes_visible: bool,
    same_as: tuple[str, ...] = (),
) -> LibraryRow:
    """Return the row of a trace, without the facts that are hidden from the annotator.

    Args:
        trace: The trace.
        name: Its name in the list.
        entry: The annotator's entry of the trace, or None.
        outcomes_visible: Whether to show the outcome without an entry.
        same_as: The names of traces that are the same run.
    """
    facts = trace.summary
    is_outcome_visible = entry.outcome_visible if entry is not None else outcomes_visible
    row = LibraryRow(
        trace_id=facts.trace_id,
        name=name,
        system=facts.system or "",
        model=facts.model or "",
        benchmark=facts.benchmark or "",
        outcome=facts.outcome if is_outcome_visible and tells_outcome(trace) else "",
        spans=facts.spans,
        complete=facts.all_spans,
        task_id=facts.task_id or "",
        trial="" if facts.trial is None else str(facts.trial),
        same_as=same_as,
        problems=len(facts.problems),
    )
    if entry is None:
        return row
    return structs.replace(
        row,
        state=WorkState(entry.state),
        finished_by=entry.finished_by,
        waiting=entry.waiting,
        labels=entry.own_labels,
        look_here=entry.look_here,
        is_retest=entry.is_retest,
    )


def tells_outcome(trace: Trace) -> bool:
    """Return whether a trace has an outcome.

    Its row then depends on who may see the outcome.
    """
    return trace.summary.outcome != Outcome.UNKNOWN


SAME_RUN_MARK: Final = " ≡"
"""The mark after the name of a trace that is the same run as another."""

WIDE_LINE: Final = 89
"""The least cells of a line that shows everything about a trace."""

OFTEN_FILLED: Final = 0.25
"""The least share of filled rows at which some columns are shown."""

MEASURED_ROWS: Final = 400
"""The number of rows that decide the widths of the columns."""


def _short_name(name: str, cells: int) -> str:
    if not name.endswith(SAME_RUN_MARK):
        return name_within(name, cells)
    short_name = name_within(name.removesuffix(SAME_RUN_MARK), cells - len(SAME_RUN_MARK))
    return short_name + SAME_RUN_MARK


_SIGN_STYLES: Final = {
    WorkState.FINISHED: "done",
    WorkState.OPEN: "own",
    WorkState.UNTOUCHED: "quiet",
}

COLUMNS: Final[Sequence[TableColumn[LibraryRow]]] = (
    sign_column(
        lambda row: RETEST_GLYPH if row.is_retest else GLYPHS[row.state],
        lambda row: _SIGN_STYLES[row.state],
    ),
    TableColumn(
        "trace",
        lambda row: one_line(row.name) + (SAME_RUN_MARK if row.same_as else ""),
        lambda row: "quiet" if row.state is WorkState.FINISHED else "name",
        # The longest names lose letters in the middle, so they are cut first.
        ColumnWidth(cuts=((0, 28), (5, 12), (20, 1)), most=44, spare=12),
        cut=_short_name,
    ),
    TableColumn(
        "task",
        lambda row: one_line(row.task_id),
        "quiet",
        ColumnWidth(12, cuts=((2, 6),), most=16, least_line=WIDE_LINE, filled=OFTEN_FILLED),
    ),
    TableColumn(
        "trial",
        lambda row: one_line(row.trial),
        "quiet",
        ColumnWidth(13, most=5, least_line=WIDE_LINE, filled=OFTEN_FILLED),
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
        ColumnWidth(14, most=14, least_line=WIDE_LINE),
    ),
    TableColumn(
        "outcome",
        lambda row: row.outcome,
        lambda row: row.outcome if row.outcome in ("failed", "succeeded") else "quiet",
        ColumnWidth(17, filled=0.0),
    ),
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
        ColumnWidth(10, filled=OFTEN_FILLED),
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
        ColumnWidth(16, filled=0.0),
        right=True,
    ),
    TableColumn(
        "finished by",
        lambda row: one_line(", ".join(row.finished_by)),
        "quiet",
        ColumnWidth(11, cuts=((1, 8), (6, 5)), most=24, least_line=WIDE_LINE),
    ),
)
"""The columns. On narrow screens columns of low rank are dropped first."""


class LibraryList(ColumnTable[LibraryRow]):
    """The traces, and below them the files that could not be read."""

    css_prefix = "library-list"
    tells_focus = False
    css_parts = ("cursor", "quiet", "failed", "succeeded", "own", "waiting", "done", "name")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(attrgetter("trace_id"), COLUMNS, id=id)
        self.troubles: Sequence[FileProblem] = ()

    def on_hide(self, event: events.Hide) -> None:
        """Keep the focus while no trace matches the filter.

        Textual would give it to the filter.
        """
        event.prevent_default()

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
        keeps_position: bool = False,
    ) -> None:
        """List other rows. The cursor stays on its trace.

        A cursor on the first row stays there. If its trace is gone, the cursor goes to the first
        row, or keeps its position with ``keeps_position``.

        Args:
            rows: The traces.
            troubles: The files that could not be read.
            keeps_position: Whether the trace under the cursor keeps its line on screen. If the
                cursor is not on screen, the first visible trace does.
        """
        top = round(self.scroll_y)
        is_cursor_on_screen = self.cursor in self.rows_on_screen()
        anchor = self.cursor if is_cursor_on_screen else top
        new_anchor = self._position_among(rows, troubles, anchor) if anchor else None
        new_cursor = self._position_among(rows, troubles, self.cursor) if self.cursor else 0
        if new_cursor is None:
            new_cursor = self.cursor if keeps_position else 0
        self.rows = rows
        self.troubles = tuple(troubles)
        # The last column is “finished by”. Finished traces are last in a queue, so the measured
        # rows do not show if the column is empty.
        self.columns = COLUMNS if any(row.finished_by for row in rows) else COLUMNS[:-1]
        self.cursor = new_cursor
        self.rows_changed()
        if not keeps_position:
            self.show_row(self.cursor)
            return
        if new_anchor is not None and new_anchor != anchor:
            self.scroll_to(y=top + new_anchor - anchor, animate=False, force=True, immediate=True)
        if is_cursor_on_screen:
            self.show_row(self.cursor)

    def go_to(self, trace_id: str) -> None:
        """Move the cursor to a trace, if it is listed."""
        for position, row in enumerate(self.rows):
            if row.trace_id == trace_id:
                self.move_to(position)

    def _position_among(
        self, rows: Sequence[LibraryRow], troubles: Sequence[FileProblem], position: int
    ) -> int | None:
        """Return the position among other rows of a present row, or None if that is gone."""
        # Unreadable files are listed below the traces.
        if position >= len(self.rows):
            return position - len(self.rows) + len(rows) if troubles else None
        trace_id = self.rows[position].trace_id
        return next((index for index, row in enumerate(rows) if row.trace_id == trace_id), None)

    def lengths(self) -> Sequence[Sequence[int]]:
        """Return the widths of the texts of the first ``MEASURED_ROWS`` rows."""
        return [text_lengths(COLUMNS, row) for row in self.rows[:MEASURED_ROWS]]

    def render_row(self, row: int, width: int) -> Strip:
        """Draw a trace, an unreadable file, or the heading of unreadable files.

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
        # 5 cells: the edge, the sign and the blanks.
        message = shortened(one_line(trouble.message), max(1, width - 5 - cell_len(name)))
        parts = [
            Segment("▌" if row == self.cursor else " ", base),
            Segment("✗ ", base + self._part("failed")),
            Segment(name, base),
            Segment(f"  {message}", base + self._part("quiet")),
        ]
        return row_strip(parts, width, base)
