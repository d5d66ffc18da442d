"""The lists of the adjudicate screen: traces with disputed modes, and sides of a conflict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from operator import attrgetter
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from mast_tui.columns import ColumnWidth, TableColumn, padded, text_lengths
from mast_tui.labels import Target
from mast_tui.safe_text import one_line
from mast_tui.ui.context import context_of
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.virtual_lines import ColumnTable, StyledRow, StyledRows


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
"""The signs of rows. ``!`` means that a side has changed its answer after the decision."""

PLACES_DIFFER: Final = "≈"
"""The sign of an open conflict between sides that all say present, at different places."""

ONE_SIDE: Final = "·"
"""The sign of a verdict from one side only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A row for a trace, or for a case in it.

    Attributes:
        trace_id: The id of the trace.
        case_id: The id of the case; None for a trace.
        state: The state of the row.
        code: The code of the mode; empty for a trace.
        name: The name of the mode, or of the trace.
        summary: The difference or the decision.
        sides: The answers of the sides, shown if there is room.
        sign: The sign of the row; empty for the sign of the state.
    """

    trace_id: str
    case_id: str | None
    state: RowState
    code: str
    name: str
    summary: str
    sides: str = ""
    sign: str = ""

    @property
    def glyph(self) -> str:
        """The sign of the row."""
        return self.sign or GLYPHS[self.state]


STATES_TO_DECIDE: Final = frozenset((RowState.OPEN, RowState.CHANGED))
QUIET_STATES: Final = frozenset((RowState.AGREED, RowState.DECIDED))


def _text_style(style: str) -> Callable[[QueueRow], str]:
    return lambda row: "quiet" if row.state in QUIET_STATES else style


SIGN_STYLES: Final[Mapping[RowState, str]] = {
    RowState.CHANGED: "open",
    RowState.AGREED: "quiet",
    RowState.LOCKED: "quiet",
}

COLUMNS: Final[Sequence[TableColumn[QueueRow]]] = (
    TableColumn(
        "  ",
        lambda row: f" {row.glyph}",
        lambda row: SIGN_STYLES.get(row.state, row.state),
        ColumnWidth(gap=1),
    ),
    TableColumn("", lambda row: row.code, "name", ColumnWidth(gap=1)),
    TableColumn("", lambda row: row.name, _text_style("figure"), ColumnWidth(cuts=((4, 1),))),
    TableColumn(
        "", lambda row: row.summary, _text_style("what"), ColumnWidth(cuts=((3, 22), (5, 1)))
    ),
    TableColumn("", lambda row: row.sides, "quiet", ColumnWidth(1, filled=0.0)),
)
"""The columns of a case. The answers of the sides are dropped first on a narrow screen."""


class ConflictList(ColumnTable[QueueRow]):
    """The rows of the queue, with a cursor."""

    css_prefix = "conflict-list"
    tells_focus = False
    css_parts = ("cursor", "trace", "name", "figure", "what", "open", "decided", "quiet")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(attrgetter("trace_id", "case_id"), COLUMNS, id=id)

    def show(self, rows: Sequence[QueueRow]) -> None:
        """Replace the rows. The cursor stays on its case, or else on its trace."""
        current_row = self.row
        self.rows = rows
        if current_row is not None:
            position = self.position_of(current_row.trace_id, current_row.case_id)
            if position is None:
                position = self.position_of(current_row.trace_id, None)
            if position is None:
                position = min(self.cursor, max(0, len(rows) - 1))
            self.cursor = position
        self.rows_changed()
        self.show_row(self.cursor)

    def lengths(self) -> Sequence[Sequence[int]]:
        """Return the widths of the columns of each case. Rows of traces have no columns."""
        return [text_lengths(COLUMNS, row) for row in self.rows if row.case_id is not None]

    def position_of(self, trace_id: str, case_id: str | None) -> int | None:
        """Return the position of a row, or None.

        Args:
            trace_id: The id of the trace.
            case_id: The id of the case; None for the row of the trace.
        """
        positions = (
            position
            for position, row in enumerate(self.rows)
            if (row.trace_id, row.case_id) == (trace_id, case_id)
        )
        return next(positions, None)

    def next_open(
        self, start: int, step: int = 1, *, postpone: Callable[[QueueRow], bool] = lambda _: False
    ) -> int | None:
        """Return the position of the next open or changed case, continuing at the other end.

        Args:
            start: The position before the first row to look at.
            step: 1 for the next case, -1 for the previous one.
            postpone: Tells which cases come last.

        Returns:
            The position, or None.
        """
        total = len(self.rows)
        positions = [(start + step * distance) % total for distance in range(1, total + 1)]
        open_positions = [n for n in positions if self.rows[n].state in STATES_TO_DECIDE]
        preferred = (n for n in open_positions if not postpone(self.rows[n]))
        return next(preferred, open_positions[0] if open_positions else None)

    def next_trace(self, start: int, step: int = 1) -> int | None:
        """Return the position of the row of the next trace, or None.

        Args:
            start: The position of any row of the current trace.
            step: 1 for the next trace, -1 for the previous one.
        """
        position = start + step
        if step < 0 and self.rows:
            # Upwards, the first heading is that of the current trace.
            heading = self.position_of(self.rows[start].trace_id, None)
            if heading is not None:
                position = heading - 1
        while 0 <= position < len(self.rows):
            if self.rows[position].case_id is None:  # the heading of a trace
                return position
            position += step
        return None

    def first_in_trace(self, heading: int) -> int:
        """Return the position of the first open or changed case of a trace.

        Without any, return the position of its first case, or of the heading.

        Args:
            heading: The position of the row of the trace.
        """
        positions = range(heading + 1, len(self.rows))
        in_trace = list(takewhile(lambda n: self.rows[n].case_id is not None, positions))
        to_decide = (n for n in in_trace if self.rows[n].state in STATES_TO_DECIDE)
        return next(to_decide, in_trace[0] if in_trace else heading)

    def render_row(self, row: int, width: int) -> Strip:
        """Draw the row of a trace or of a case.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        queue_row = self.rows[row]
        if queue_row.case_id is not None:
            return super().render_row(row, width)
        base = self.row_style(row)
        glyph = queue_row.glyph.strip()
        name = one_line(queue_row.name or queue_row.trace_id)
        name_width = max(4, width - 3 - cell_len(glyph) - cell_len(queue_row.summary))
        parts = [
            Segment("▌" if row == self.cursor else " ", base + self._part("name")),
            Segment(f"{glyph} " if glyph else "", base + self._part("quiet")),
            Segment(padded(name, name_width), base + self._part("trace")),
            Segment(f" {queue_row.summary}", base + self._part("quiet")),
        ]
        return Strip(parts).adjust_cell_length(width, base)


INDENT: Final = 4

MOST_SIDE_KEYS: Final = 9
"""The number of sides with a key."""


@dataclass(frozen=True, slots=True)
class SidePlace:
    """A target that a side has marked.

    Attributes:
        target: The target.
        words: The target as text.
        quote: The quoted text.
        note: The note on the label.
        extra: Further text after ``words``.
    """

    target: Target
    words: str
    quote: str = ""
    note: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True)
class SideView:
    """A side on screen.

    Attributes:
        number: The number that chooses the side, or None.
        name: The name of the annotator or judge.
        verdict: The text of the verdict.
        places: The marked targets.
        remark: Further text after the verdict.
        note: The note on the verdict.
        is_judge: True for a judge.
    """

    number: int | None
    name: str
    verdict: str
    places: tuple[SidePlace, ...] = ()
    remark: str = ""
    note: str = ""
    is_judge: bool = False


_StyledText = tuple[str, str]
"""A text and the name of its style."""


class PlaceOfSide(NamedTuple):
    """A side and the target of a row; None for a row about the verdict only."""

    side: SideView
    side_place: SidePlace | None


_SideRow = StyledRow[PlaceOfSide]


class SidesPanel(StyledRows[PlaceOfSide]):
    """The rows of all sides. The evidence shows the target under the cursor.

    If they do not fit, quotes and notes are cut to the row of their target, so that every side
    stays visible. With the focus, the panel shows them in full.
    """

    css_prefix = "sides-panel"
    tells_focus = True
    css_parts = ("cursor", "number", "name", "verdict", "place", "quote", "note", "quiet")
    edge_part = "number"

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without sides."""
        super().__init__(id=id)
        self.sides: Sequence[SideView] = ()
        self.empty_text = ""

    @property
    def side(self) -> SideView | None:
        """The side under the cursor."""
        return None if self.item is None else self.item.side

    @property
    def place(self) -> SidePlace | None:
        """The target under the cursor."""
        return None if self.item is None else self.item.side_place

    def show(self, sides: Sequence[SideView], *, empty_text: str = "") -> None:
        """Replace the sides, with the cursor on the first.

        Args:
            sides: The answers of the annotators on a case.
            empty_text: The message if there are none.
        """
        self.sides = sides
        self.empty_text = empty_text
        self.cursor = 0
        self.scroll_to(y=0, animate=False, force=True)
        self.rows_changed()

    def rows_changed(self) -> None:
        """Wrap the texts of the sides to the present width.

        Without the focus, texts are cut if they do not fit.
        """
        width = self.scrollable_content_region.width
        place_at_cursor = self.place
        self.rows = self._side_rows(width)
        if not self.has_focus and len(self.rows) > self._most_rows():
            self.rows = self._side_rows(width, cut_texts=True)
        if place_at_cursor is not None:
            positions = (
                n
                for n, row in enumerate(self.rows)
                if row.item and row.item.side_place == place_at_cursor
            )
            self.cursor = next(positions, 0)
        if not self.rows:
            texts = wrapped(self.empty_text, max(8, width - 2))
            self.rows = [StyledRow([(text, "quiet")]) for text in texts]
        super().rows_changed()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Show the texts in full while the panel has the focus."""
        super().watch_has_focus(has_focus)
        self.rows_changed()

    def _side_rows(self, width: int, *, cut_texts: bool = False) -> list[_SideRow]:
        rows: list[_SideRow] = []
        for side in self.sides:
            rows += _rows_of(self._with_hint(side), self._key_of(side), width, cut_texts=cut_texts)
        return rows

    def _most_rows(self) -> int:
        max_height = self.styles.max_height
        if max_height is None:
            return len(self.rows)
        return int(max_height.value) - self.gutter.height

    def _with_hint(self, side: SideView) -> SideView:
        """Return a side. If it has a number but no key, add a hint on how to choose it."""
        if side.number is None or side.number <= MOST_SIDE_KEYS:
            return side
        key_of = context_of(self).key_of
        hint = (
            f"{key_of('adjudicate.pane')}, {key_of('adjudicate.down')} to here, "
            f"{key_of('adjudicate.enter')} takes it"
        )
        return replace(side, remark=" · ".join(filter(None, (side.remark, hint))))

    def _key_of(self, side: SideView) -> str:
        """Return the key that chooses a side, or else its number or a blank."""
        if side.number is None:
            return " "
        if side.number > MOST_SIDE_KEYS:
            return str(side.number)
        return context_of(self).key_of(f"adjudicate.side_{side.number}")

    def on_click(self, event: events.Click) -> None:
        """Choose a side by a click on its number, or show the clicked target."""
        event.stop()
        event.prevent_default()  # or the handler of the base class runs as well
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = offset.y + round(self.scroll_y)
        if not 0 <= row < len(self.rows) or not self.sides:
            return
        self.move_to(row)
        _text, first_style = self.rows[row].parts[0]
        if first_style == "number" and offset.x < INDENT - 1:
            self.post_message(self.Chosen(self, row))
        else:
            self.post_message(self.Moved(self, row))


def _rows_of(side: SideView, key: str, width: int, *, cut_texts: bool) -> list[_SideRow]:
    """Return the rows of a side: the verdict with the first place, then the other places.

    Quotes and notes are below the row of their place. With ``cut_texts`` they are in that row, cut
    to the width.
    """
    # The edge of a row needs one cell. In a panel that is too narrow for 8 more, rows are cut.
    cells = max(8, width - 1 - INDENT)
    head: list[_StyledText] = [
        (f"{key} ", "number"),
        (one_line(side.name, 32), "name"),
        (f"  {side.verdict}" if side.verdict else "", "verdict"),
    ]
    remark = [(f"  {one_line(side.remark)}", "quiet")] if side.remark else []
    indent = " " * (sum(cell_len(text) for text, _ in head) + 2)
    rows: list[_SideRow] = []
    for side_place in side.places or (None,):
        item = PlaceOfSide(side, side_place)
        texts = _place_texts(side_place)
        if rows:  # below the first place
            parts = _place_parts(side_place, indent)
        else:
            parts = [*head, *_place_parts(side_place, "  "), *remark]
            texts.insert(0, (side.note, "note"))
        if not cut_texts and sum(cell_len(text) for text, _ in parts) >= width:
            facts = [(text.strip(), style) for text, style in parts if style == "quiet"]
            texts = [*facts, *texts]
            parts = [part for part in parts if part[1] != "quiet"]
        if cut_texts:
            parts += [(f"  {one_line(text)}", style) for text, style in texts if text]
        rows.append(StyledRow(_cut_parts(parts, width - 1), item))
        if not cut_texts:
            rows += [
                StyledRow([(" " * INDENT + line, style)], item)
                for text, style in texts
                for line in wrapped(text, cells)
            ]
    return rows


def _place_texts(side_place: SidePlace | None) -> list[_StyledText]:
    """Return the quote and the note of a place; texts may be empty."""
    if side_place is None:
        return []
    quote = f"“{side_place.quote}”" if side_place.quote else ""
    return [(quote, "quote"), (side_place.note, "note")]


def _place_parts(side_place: SidePlace | None, indent: str) -> list[_StyledText]:
    if side_place is None:
        return []
    extra = [(f"  {side_place.extra}", "quiet")] if side_place.extra else []
    return [(f"{indent}{side_place.words}", "place"), *extra]


def _cut_parts(parts: Sequence[_StyledText], width: int) -> list[_StyledText]:
    """Return the parts that fit the width. Cut parts end in an ellipsis."""
    cut_parts: list[_StyledText] = []
    free_cells = max(1, width)
    for number, (text, style_name) in enumerate(parts):
        is_last = number + 1 == len(parts)
        # Before further parts, a cell is left for the ellipsis.
        needed_cells = cell_len(text) if is_last else cell_len(text) + 1
        if needed_cells > free_cells:
            cut_parts.append((set_cell_size(text, free_cells - 1) + "…", style_name))
            break
        cut_parts.append((text, style_name))
        free_cells -= cell_len(text)
    return cut_parts
