"""The tables of a report's page, one below the other, with a cursor on their rows.

Columns are fitted to the width: intervals are dropped first, numbers are never cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip

from mast_tui.columns import padded
from mast_tui.figures.record import Figure, Sources
from mast_tui.reports.model import Cell, Chart, Column, Kind, Note, Part, Row, Table, Text
from mast_tui.reports.render.cells import (
    NONE,
    WITHHELD,
    name_column_count,
    number,
    undefined_words,
)
from mast_tui.reports.sentences import joined_names, why_no_interval
from mast_tui.safe_text import display_lines, one_line
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.virtual_lines import SMALL_HEIGHT, VirtualLines, row_strip
from mast_tui.ui.wording import ABOVE, BELOW, SURE, name_within

PENDING: Final = "…"
"""The text in place of an interval that is still being computed."""

LEGEND: Final = f"Bars: the share ends after {BELOW}; {BELOW} and {ABOVE} are its 95 % interval."

MOST_CHOICES: Final = 3
"""The most choosable columns that are all described beside a row."""


def number_in(cell: Cell) -> float | None:
    """Return the number in a cell; None without a number."""
    value = cell.value if isinstance(cell, Figure) else cell
    return None if isinstance(value, str) else value


def value_text(cell: Cell, kind: Kind) -> str:
    """Return a value on one line, without its interval; empty for an empty cell.

    Args:
        cell: The cell.
        kind: The kind of its column.
    """
    if cell is None:
        return ""
    if isinstance(cell, str):
        return one_line(cell)
    value = number_in(cell)
    return NONE if value is None else number(value, kind)


def interval_text(cell: Cell, kind: Kind, *, intervals_pending: bool) -> str:
    """Return the interval of a cell, or a sign that it is missing or being computed.

    Args:
        cell: The cell.
        kind: The kind of its column.
        intervals_pending: Whether the interval is still being computed.
    """
    if not isinstance(cell, Figure) or cell.value is None:
        return ""
    if cell.interval is not None:
        low, high = (number(end, kind).removesuffix("%") for end in cell.interval)
        return f"[{low}, {high}]"
    if cell.withheld is not None:
        return WITHHELD
    return PENDING if intervals_pending else ""


def bar(cell: Cell, width: int) -> str:
    """Return a share as a bar that is legible without colours.

    The bar has three shades: up to the start of the interval, from there to the share, and from the
    share to the end of the interval.

    Args:
        cell: The cell.
        width: The length of a bar for 100 %, in characters.
    """
    value = number_in(cell)
    if value is None:
        return ""
    low = high = value
    if isinstance(cell, Figure) and cell.interval is not None:
        low, high = cell.interval
    low_end, value_end, high_end = (round(share * width) for share in (low, value, high))
    if value > 0:
        # Even the smallest share above 0 is visible.
        value_end = max(1, value_end)
    high_end = max(high_end, value_end)
    sure = SURE * min(low_end, value_end)
    return sure + BELOW * max(0, value_end - low_end) + ABOVE * (high_end - value_end)


def choosable_columns(table: Table) -> tuple[str, ...]:
    """Return the keys of the choosable columns: those with source traces for each cell."""
    keys_with_sources = {key for row in table.rows for key in row.cell_sources}
    return tuple(column.key for column in table.columns if column.key in keys_with_sources)


def row_title(table: Table, row: Row) -> str:
    """Return the title of a row: the texts of the columns that name it.

    Args:
        table: The table.
        row: The row.
    """
    columns = table.columns[: name_column_count(table.columns)]
    names = (value_text(row.cells.get(column.key), column.kind) for column in columns)
    return " ".join(name for name in names if name)


def row_text(
    table: Table,
    row: Row,
    *,
    chosen_column: str | None = None,
    intervals_pending: bool = False,
    notes: Sequence[Note] = (),
) -> str:
    """Return a row's values with their intervals, its own sentences, and the notes of its table.

    Args:
        table: The table of the row.
        row: The row.
        chosen_column: The key of the chosen column. If more than ``MOST_CHOICES`` columns can be
            chosen, the others are left out.
        intervals_pending: Whether intervals are still being computed.
        notes: Notes of the page.
    """
    choices = choosable_columns(table)
    omitted = (
        {key for key in choices if key != chosen_column} if len(choices) > MOST_CHOICES else set()
    )
    value_columns = table.columns[name_column_count(table.columns) :]
    columns = [column for column in value_columns if column.key not in omitted]
    values = [*_titles_and_values(columns, row, intervals_pending=intervals_pending)]
    title_width = max((cell_len(title) for title, _ in values), default=0)
    lines = [f"{set_cell_size(title, title_width)}  {value}" for title, value in values]
    for sentence in (*row.detail_cells.get(chosen_column or "", ()), *row.detail):
        lines += display_lines(sentence)
    last_lines = note_lines(table, notes=notes)
    return "\n".join([*lines, "", *last_lines] if last_lines else lines)


def note_lines(table: Table, *, notes: Sequence[Note] = ()) -> list[str]:
    """Return the warnings of a table and the page, the legend, other notes and the caption.

    Args:
        table: The table.
        notes: Notes of the page.
    """
    has_bars = any(column.kind is Kind.SHARE for column in table.columns)
    legend = (Note(LEGEND, "legend"),) if has_bars else ()
    all_notes = [*legend, *table.notes, *(note for note in notes if note not in table.notes)]
    all_notes.sort(key=lambda note: not note.warning)
    lines: list[str] = []
    for note in all_notes:
        lines += display_lines(f"! {note.text}" if note.warning else note.text)
    if table.caption:
        lines += display_lines(table.caption)
    return lines


def _titles_and_values(
    columns: Sequence[Column], row: Row, *, intervals_pending: bool
) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each column with a value in the row."""
    for column in columns:
        cell = row.cells.get(column.key)
        if cell is None or cell == "":
            continue
        yield one_line(column.name or column.title), _cell_text(cell, column, intervals_pending)


def _cell_text(cell: Cell, column: Column, intervals_pending: bool) -> str:
    """Return a value with its count, and with its interval or the reason for none."""
    text = value_text(cell, column.kind)
    if not isinstance(cell, Figure):
        return text
    if cell.value is None and cell.undefined is not None:
        text = undefined_words(cell.undefined, column.key)
    count = "" if cell.n is None else f"n {cell.n:,}"
    interval = _interval_or_reason(cell, column, intervals_pending)
    # Only the count after an interval needs a comma: ``0.5 n 9``, but ``0.5 [0.2, 0.8], n 9``.
    separator = ", " if interval else " "
    return separator.join(filter(None, (f"{text} {interval}".rstrip(), count)))


def _interval_or_reason(cell: Figure, column: Column, intervals_pending: bool) -> str:
    """Return the interval of a figure, or why there is none; empty if none is expected."""
    if cell.value is None:
        return ""
    if cell.withheld is not None:
        return why_no_interval(cell)
    if cell.interval is not None:
        return interval_text(cell, column.kind, intervals_pending=intervals_pending)
    return "its interval is being computed …" if intervals_pending and column.interval else ""


RULE: Final = "─"
"""The text of a line that is drawn as a rule."""

FOLDED: Final = "▸"
UNFOLDED: Final = "▾"
WIDEST_TEXT_CELLS: Final = 100
"""The cells of the widest lines of text, because longer lines are hard to read."""
LEAD_CELLS: Final = 3
"""The cells of the cursor and the mark before the first column."""

GAP_CELLS: Final = 2
LEAST_NAME_CELLS: Final = 12
"""The fewest cells of a cut name."""

LEAST_BAR: Final = 10
MOST_BAR: Final = 32
INTERVAL_TITLE: Final = "[95 % CI]"

CHOSEN_RANK: Final = 90
"""The rank of the chosen column. Other choosable columns rank lower by their distance."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page: a row of a table, the titles of a table's columns, or a text.

    A text is a title, a line of a paragraph, or a rule.
    """

    table: Table | None = None
    row: Row | None = None
    text: str | None = None
    style: str = "text"

    foldable_part: Table | Text | None = None
    """The table or text that Enter on this title folds or unfolds."""

    @property
    def row_key(self) -> tuple[str, str] | None:
        """The ids of the table and the row, or None if the cursor skips the line.

        The row id of a title is empty.
        """
        if self.foldable_part is not None:
            return (self.foldable_part.id, "")
        return None if self.table is None or self.row is None else (self.table.id, self.row.id)

    @property
    def is_stop(self) -> bool:
        """True if the cursor can be on the line."""
        return self.row is not None or self.foldable_part is not None


class ReportLines(VirtualLines):
    """The tables and texts of one page, with a cursor on rows and on foldable titles.

    The titles of columns stay on screen while their table is scrolled. If the cells of a table have
    their own source traces, one column is chosen and its cell is highlighted.
    """

    css_prefix = "report-lines"
    tells_focus = True
    css_parts = ("cursor", "name", "quiet", "figure", "title", "mark", "bar", "text")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.parts: Sequence[Part] = ()
        self.intervals_pending = False
        self._lines: list[Line] = []
        self._layouts: dict[str, LineLayout] = {}
        self._chosen_by_table: dict[str, str] = {}
        self._unfolded: set[str] = set()

    @property
    def row_count(self) -> int:
        """The number of lines of all tables and texts."""
        return len(self._lines)

    @property
    def line(self) -> Line:
        """The line under the cursor, or an empty one."""
        return self._lines[self.cursor] if self._lines else Line()

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.line.row

    @property
    def row_key(self) -> tuple[str, str] | None:
        """The ids of the table and the row under the cursor."""
        return self.line.row_key

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of all tables."""
        return [line.row for line in self._lines if line.row is not None]

    @property
    def chosen_column(self) -> str | None:
        """The column of the cell under the cursor; None if cells cannot be chosen."""
        return None if self.line.table is None else self._chosen_column(self.line.table)

    @property
    def sources(self) -> Sources | None:
        """The query for the traces of the chosen cell, or of the row if its cells have none."""
        row = self.row
        if row is None:
            return None
        return row.cell_sources.get(self.chosen_column or "") if row.cell_sources else row.sources

    @property
    def sources_title(self) -> str:
        """The title of the source traces under the cursor.

        An example is ``1.3 Step repetition, failed traces``. The name of the row is followed by the
        pair of annotators, the outcome or the column. The title is empty without source traces.
        """
        table = self.line.table
        row = self.line.row
        sources = self.sources
        if table is None or row is None or sources is None:
            return ""
        cells = [
            row.cells.get(column.key)
            for column in table.columns[: name_column_count(table.columns)]
        ]
        row_name = " ".join(cell for cell in cells if isinstance(cell, str) and cell)
        if len(sources.subject) > 1:
            pair_text = joined_names(sources.subject)
            is_named_by_pair = row_name in (*sources.subject, pair_text)
            return pair_text if is_named_by_pair else f"{row_name}, {pair_text}"
        outcome = dict(sources.where).get("outcome")
        column = next(
            (column for column in table.columns if column.key == self.chosen_column), None
        )
        if outcome is not None and len(sources.modes) < 2:
            return f"{row_name}, {'successful' if outcome == 'succeeded' else outcome} traces"
        return row_name if column is None else f"{row_name}, {column.name or column.title}"

    def show(
        self,
        parts: Sequence[Part],
        *,
        intervals_pending: bool = False,
        row_key: tuple[str, str] | None = None,
    ) -> None:
        """Replace the tables.

        Args:
            parts: Tables and texts; charts are left out.
            intervals_pending: Whether intervals are still being computed.
            row_key: The row for the cursor; None to keep it on its row if possible.
        """
        row_key = row_key or self.row_key
        self.parts = parts
        self.intervals_pending = intervals_pending
        self.rows_changed()
        self.cursor = self._line_of(row_key)
        self.show_row(self.cursor)
        self.redraw_rows(self.cursor)

    def rows_changed(self) -> None:
        """Fit the tables to the width and rebuild their lines; the cursor keeps its row."""
        row_key = self.row_key
        width = self.row_width
        tables = [part for part in self.parts if isinstance(part, Table)]
        self._layouts = {
            table.id: fit_columns(
                table,
                width,
                chosen_column=self._chosen_column(table),
                intervals_pending=self.intervals_pending,
            )
            for table in tables
        }
        self._lines = _lines_of(self.parts, min(width, WIDEST_TEXT_CELLS), self._unfolded)
        self.cursor = self._line_of(row_key)
        super().rows_changed()

    def _line_of(self, row_key: tuple[str, str] | None) -> int:
        """Return the number of the line for the cursor.

        It is the line of the row, or else of a row with the same id in the first table (the same
        mode on another page), or else the first line for the cursor.
        """
        stops = [number for number, line in enumerate(self._lines) if line.is_stop]
        if row_key is None or not stops:
            return next(iter(stops), 0)
        lines = {self._lines[stop].row_key: stop for stop in reversed(stops)}
        first_table = self._lines[stops[0]].table
        namesake = ("" if first_table is None else first_table.id, row_key[1])
        return lines.get(row_key, lines.get(namesake, stops[0]))

    def _chosen_column(self, table: Table) -> str | None:
        """Return the key of the chosen column of a table; None if no cell can be chosen."""
        choices = choosable_columns(table)
        if not choices:
            return None
        key = self._chosen_by_table.get(table.id)
        return key if key in choices else choices[0]

    def move_to(self, row: int, *, in_upper_third: bool = False) -> None:
        """Move the cursor to a line, or else to the nearest line that it can be on.

        Lines in the direction of the movement are preferred.

        Args:
            row: The number of the line.
            in_upper_third: Whether to scroll an invisible line to a third below the top.
        """
        if not self._lines:
            return
        row = max(0, min(row, len(self._lines) - 1))
        directions = [range(row, len(self._lines)), range(row, -1, -1)]
        if row < self.cursor:
            directions.reverse()
        candidates = (number for direction in directions for number in direction)
        stop = next((number for number in candidates if self._lines[number].is_stop), None)
        if stop is not None:
            super().move_to(stop, in_upper_third=in_upper_third)

    def show_row(self, row: int, *, in_upper_third: bool = False) -> None:
        """Scroll to a line, or to the top of the page for the first possible line of the cursor.

        Args:
            row: The number of the line.
            in_upper_third: Whether to scroll an invisible line to a third below the top.
        """
        if not any(line.is_stop for line in self._lines[:row]):
            self.scroll_to(y=0, animate=False, force=True)
        else:
            super().show_row(row, in_upper_third=in_upper_third)

    def toggle_fold(self) -> bool:
        """Fold or unfold the part under the cursor; return False if it is not foldable."""
        part = self.line.foldable_part
        if part is None:
            return False
        self._unfolded ^= {part.id}
        self.rows_changed()
        self.show_row(self.cursor)
        return True

    def move_across(self, delta: int) -> bool:
        """Choose the column ``delta`` columns to the right; return False if there is no other."""
        table = self.line.table
        choices = () if table is None else choosable_columns(table)
        if table is None or len(choices) < 2:
            return False
        position = choices.index(self._chosen_column(table) or choices[0]) + delta
        self._choose_column(table, choices[max(0, min(position, len(choices) - 1))])
        return True

    def _choose_column(self, table: Table, key: str) -> None:
        """Choose a column of a table, fit the columns again, and post that the cursor moved."""
        if key != self._chosen_column(table):
            self._chosen_by_table[table.id] = key
            self.rows_changed()
            self.post_message(self.Moved(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Choose the cell that was clicked.

        A click on the chosen cell opens its row, by the handler of the base class.
        """
        offset = event.get_content_offset(self)
        number = -1 if offset is None else offset.y + round(self.scroll_y)
        if offset is None or not 0 <= number < len(self._lines):
            return
        line = self._lines[number]
        if not line.is_stop or self._is_sticky_heading(offset.y):
            event.prevent_default()
            return
        if line.row is None or line.table is None:
            return
        key = self._layouts[line.table.id].column_at(offset.x)
        if key in choosable_columns(line.table) and key != self._chosen_column(line.table):
            self._choose_column(line.table, key)
            self.move_to(number)
            event.prevent_default()

    def render_line(self, y: int) -> Strip:
        """Render a line of the widget; the first keeps the column titles of a scrolled table."""
        if self._is_sticky_heading(y):
            table = self._lines[round(self.scroll_y)].table
            assert table is not None
            return self._heading_strip(table, self.lines_area.width)
        return super().render_line(y)

    def _is_sticky_heading(self, y: int) -> bool:
        """Return whether the line ``y`` of the widget keeps the column titles of a table."""
        # A small screen has no room for titles that stay.
        top = round(self.scroll_y)
        if y or not 0 < top < len(self._lines) or self.lines_area.height <= SMALL_HEIGHT:
            return False
        return self._lines[top].table is not None

    def render_row(self, row: int, width: int) -> Strip:
        """Render one line.

        Args:
            row: The number of the line.
            width: The cells of the line.
        """
        line = self._lines[row]
        if line.text is not None or line.table is None:
            return self._text_line(row, line, width)
        if line.row is None:
            return self._heading_strip(line.table, width)
        strip = self._row_strip(row, line.table, line.row, width)
        chosen_key = self._chosen_column(line.table) if row == self.cursor else None
        edges = None if chosen_key is None else self._layouts[line.table.id].edges(chosen_key)
        if edges is None or line.row.cells.get(chosen_key or "") in (None, ""):
            return strip
        cell_start, cell_end = edges
        cell = strip.crop(cell_start, cell_end).apply_style(Style(reverse=True))
        return Strip.join([strip.crop(0, cell_start), cell, strip.crop(cell_end, width)])

    def _text_line(self, line_number: int, line: Line, width: int) -> Strip:
        """Render a title, a paragraph or a rule."""
        base = self.row_style(line_number)
        text = RULE * (width - LEAD_CELLS) if line.text == RULE else line.text or ""
        edge = "▌" if line_number == self.cursor else " "
        lead = Segment(edge.ljust(LEAD_CELLS), base + self._part("name"))
        return Strip([lead, Segment(text, base + self._part(line.style))]).adjust_cell_length(
            width, base
        )

    def _heading_strip(self, table: Table, width: int) -> Strip:
        """Render the titles of the columns of a table."""
        layout = self._layouts[table.id]
        text = " " * LEAD_CELLS
        for position, column in enumerate(layout.columns):
            text += " " * layout.gap if position else ""
            if column.is_text or column.bar_cells:
                text += set_cell_size(column.title, column.width)
            else:  # right-aligned like its figures
                text += " " * (column.value_cells - cell_len(column.title)) + column.title
                if column.interval_cells:
                    title = (
                        INTERVAL_TITLE if column.interval_cells >= cell_len(INTERVAL_TITLE) else ""
                    )
                    text += f" {set_cell_size(title, column.interval_cells)}"
        style = self.rich_style + self._part("quiet")
        return Strip([Segment(text, style)]).adjust_cell_length(width, self.rich_style)

    def _row_strip(self, line_number: int, table: Table, row: Row, width: int) -> Strip:
        """Render a row of a table on the line ``line_number`` of the report."""
        base = self.row_style(line_number)
        parts = [
            Segment("▌" if line_number == self.cursor else " ", base + self._part("name")),
            Segment(set_cell_size(one_line(row.mark), LEAD_CELLS - 1), base + self._part("mark")),
        ]
        layout = self._layouts[table.id]
        for position, column in enumerate(layout.columns):
            # If the first two columns are texts, the first has the names.
            is_name = position == 0 and len(layout.columns) > 1 and layout.columns[1].is_text
            parts.append(Segment(" " * layout.gap if position else "", base))
            parts += [
                Segment(text, base + self._part("name" if is_name else style))
                for text, style in _cell_segments(
                    column, row, intervals_pending=self.intervals_pending
                )
            ]
        return row_strip(parts, width, base)


def _cell_segments(
    column: FittedColumn, row: Row, *, intervals_pending: bool
) -> list[tuple[str, str]]:
    """Return the bar, value and interval of a cell with their styles, as wide as its column."""
    cell = row.cells.get(column.key)
    kind = column.column.kind
    text = value_text(cell, kind)
    if column.is_text:
        # The end of a trace's name tells it from its neighbours.
        shown = name_within(text, column.value_cells) if column.key == "trace" else text
        return [(padded(shown, column.value_cells), "quiet" if text == NONE else "figure")]
    is_quiet = text == NONE or number_in(cell) is None or kind is Kind.P_VALUE
    if kind is Kind.COUNT:
        # A count without source traces is only the base of a figure.
        is_quiet = column.key not in row.cell_sources
    parts = []
    if column.bar_cells:
        parts.append((set_cell_size(bar(cell, column.bar_cells), column.bar_cells + 1), "bar"))
    right_aligned = " " * (column.value_cells - cell_len(text)) + text
    parts.append((right_aligned, "quiet" if is_quiet else "figure"))
    if column.interval_cells:
        interval = interval_text(cell, kind, intervals_pending=intervals_pending)
        parts.append((" " + set_cell_size(interval, column.interval_cells), "quiet"))
    return parts


def _lines_of(parts: Sequence[Part], width: int, unfolded: Collection[str]) -> list[Line]:
    """Return the lines of a page, without charts. A table that is the only part has no title.

    ``width`` is the width of a line of text, and ``unfolded`` has the ids of unfolded parts.
    """
    visible_parts = [part for part in parts if not isinstance(part, Chart)]
    lines: list[Line] = []
    for part in visible_parts:
        title = one_line(part.title)
        is_folded = part.folded and part.id not in unfolded
        # Folded parts follow each other without an empty line.
        if lines and not (is_folded and lines[-1].foldable_part):
            lines.append(Line())
        if part.folded:
            sign = FOLDED if is_folded else UNFOLDED
            lines.append(Line(text=f"{sign} {title}", style="title", foldable_part=part))
        elif len(visible_parts) > 1 or isinstance(part, Text):
            lines.append(Line(text=title, style="title"))
        if not is_folded:
            lines += _text_lines(part, width) if isinstance(part, Text) else _table_lines(part)
    return lines


def _text_lines(part: Text, width: int) -> Iterator[Line]:
    for paragraph in (*part.paragraphs, *(f"{name}: {address}" for name, address in part.links)):
        for text in wrapped(paragraph, max(8, width - LEAD_CELLS)):
            yield Line(text=text)


def _table_lines(table: Table) -> Iterator[Line]:
    """Yield the lines of a table: its heading, its rows, and rules between groups."""
    yield Line(table)
    for position, group in enumerate(group for group in table.groups if group):
        if position:
            yield Line(table, text=RULE, style="quiet")
        for row in group:
            yield Line(table, row)


@dataclass(frozen=True, slots=True)
class FittedColumn:
    """A column of a table, fitted to a width.

    Attributes:
        column: The column.
        value_cells: The cells of its values.
        interval_cells: The cells of its intervals; 0 without intervals.
        bar_cells: The cells of its bars; 0 without bars.
    """

    column: Column
    value_cells: int
    interval_cells: int = 0
    bar_cells: int = 0

    @property
    def width(self) -> int:
        """The cells of the whole column."""
        interval_width = self.interval_cells + 1 if self.interval_cells else 0
        return self.bar_width + self.value_cells + interval_width

    @property
    def bar_width(self) -> int:
        """The cells of the bar and the space after it; 0 without a bar."""
        return self.bar_cells + 1 if self.bar_cells else 0

    @property
    def key(self) -> str:
        """The key of the column in the rows."""
        return self.column.key

    @property
    def title(self) -> str:
        """The heading, safe to display."""
        return one_line(self.column.title, 40)

    @property
    def is_text(self) -> bool:
        """True if the column holds texts."""
        return self.column.kind is Kind.TEXT


@dataclass(frozen=True, slots=True)
class LineLayout:
    """The visible columns of a table, and the cells between them."""

    columns: tuple[FittedColumn, ...]
    gap: int = GAP_CELLS

    @property
    def width(self) -> int:
        """The cells of a line."""
        gaps_width = self.gap * max(0, len(self.columns) - 1)
        return LEAD_CELLS + gaps_width + sum(column.width for column in self.columns)

    def replace_column(
        self, column: FittedColumn, replacement: tuple[FittedColumn, ...]
    ) -> LineLayout:
        """Return a layout in which a column is replaced.

        Args:
            column: The column to replace.
            replacement: The column in its place; empty to drop the column.
        """
        index = self.columns.index(column)
        return replace(
            self, columns=(*self.columns[:index], *replacement, *self.columns[index + 1 :])
        )

    def edges(self, key: str) -> tuple[int, int] | None:
        """Return the first cell of a column's values in a line, and the cell after them.

        The result is None for a hidden column.

        Args:
            key: The key of the column.
        """
        column_start = LEAD_CELLS
        for column in self.columns:
            if column.key == key:
                values_start = column_start + column.bar_width
                return values_start, values_start + column.value_cells
            column_start += column.width + self.gap
        return None

    def column_at(self, x: int) -> str | None:
        """Return the key of the column at a cell of the line; None without a column."""
        start = LEAD_CELLS
        for column in self.columns:
            end = start + column.width + self.gap
            if start <= x < end:
                return column.key
            start = end
        return None


def fit_columns(
    table: Table, width: int, *, chosen_column: str | None = None, intervals_pending: bool
) -> LineLayout:
    """Fit the columns of a table to a width.

    These steps are done in order until the columns fit:

    - Cut names to a quarter of the width.
    - Drop intervals, lowest rank of the column first.
    - Cut names further, and shrink the gaps.
    - Drop bars and columns, lowest rank first.

    Free cells then go to cut names and to bars.

    Args:
        table: The table.
        width: The cells of a line.
        chosen_column: The chosen column, which raises the ranks of columns near it.
        intervals_pending: Whether intervals are still being computed.
    """
    visible_columns, *_ = table.split_columns()
    columns = [_measured_column(table, column, intervals_pending) for column in visible_columns]
    ranks = _rank_by_column(table, columns, chosen_column)
    natural_widths = {column.key: column.value_cells for column in columns}
    cut_columns = _with_cut_texts(columns, max(LEAST_NAME_CELLS, width // 4))
    layout = _without_intervals_to_width(LineLayout(cut_columns), width, ranks)
    if layout.width > width:
        layout = _dropped_to_width(
            LineLayout(_with_cut_texts(layout.columns, LEAST_NAME_CELLS), gap=1), width, ranks
        )
    return _widened_to_width(layout, width, natural_widths)


def _with_cut_texts(columns: Iterable[FittedColumn], most_cells: int) -> tuple[FittedColumn, ...]:
    """Return the columns, with texts cut to a number of cells."""
    return tuple(
        replace(column, value_cells=min(column.value_cells, most_cells))
        if column.is_text
        else column
        for column in columns
    )


def _without_intervals_to_width(
    layout: LineLayout, width: int, ranks: Mapping[str, float]
) -> LineLayout:
    """Return the layout without the intervals that do not fit; the lowest rank is dropped first."""
    columns = [column for column in layout.columns if column.interval_cells]
    for column in sorted(columns, key=lambda column: ranks[column.key]):
        if layout.width <= width:
            break
        layout = layout.replace_column(column, (replace(column, interval_cells=0),))
    return layout


def _dropped_to_width(layout: LineLayout, width: int, ranks: Mapping[str, float]) -> LineLayout:
    """Return the layout without the bars and columns that do not fit.

    The lowest rank is dropped first, a bar before its column. One column always remains.
    """
    while layout.width > width and len(layout.columns) > 1:
        column = min(layout.columns, key=lambda column: ranks[column.key])
        # The title of a column may extend over the bar.
        without_bar = replace(
            column, bar_cells=0, value_cells=max(cell_len(column.title), column.value_cells)
        )
        layout = layout.replace_column(column, (without_bar,) if column.bar_cells else ())
    return layout


def _measured_column(table: Table, column: Column, intervals_pending: bool) -> FittedColumn:
    """Return a column with the cells that its texts need."""
    values = [row.cells.get(column.key) for row in table.rows]
    value_cells = max((cell_len(value_text(value, column.kind)) for value in values), default=0)
    is_share = column.kind is Kind.SHARE
    interval = 0
    if column.interval and not is_share:
        texts = {
            interval_text(value, column.kind, intervals_pending=intervals_pending)
            for value in values
        }
        interval = max((cell_len(text) for text in texts), default=0)
        if texts - {"", WITHHELD}:  # at least one interval
            interval = max(interval, cell_len(INTERVAL_TITLE))
    fitted = FittedColumn(column, value_cells, interval, LEAST_BAR if is_share else 0)
    # The title of a share may extend over its bar.
    title_excess = cell_len(fitted.title) - (fitted.width if is_share else value_cells)
    return replace(fitted, value_cells=value_cells + max(0, title_excess))


def _rank_by_column(
    table: Table, columns: Sequence[FittedColumn], chosen_column: str | None
) -> Mapping[str, float]:
    """Return the rank of each column by its key; a short line drops the lowest ranks.

    The first column has the highest rank. Columns that can be chosen rank by their distance from
    the chosen column.
    """
    ranks: dict[str, float] = {column.key: column.column.priority for column in columns}
    if columns:
        ranks[columns[0].key] = inf
    choices = choosable_columns(table)
    if chosen_column in choices and len(choices) > 2:
        chosen_index = choices.index(chosen_column)
        for index, key in enumerate(choices):
            ranks[key] = CHOSEN_RANK - abs(index - chosen_index)
    return ranks


def _widened_to_width(
    layout: LineLayout, width: int, natural_widths: Mapping[str, int]
) -> LineLayout:
    """Return the layout with the free cells given first to cut names, then to bars."""
    free_cells = width - layout.width
    columns = list(layout.columns)
    for index, column in enumerate(columns):
        if column.is_text:
            added_cells = max(0, min(natural_widths[column.key] - column.value_cells, free_cells))
            columns[index] = replace(column, value_cells=column.value_cells + added_cells)
            free_cells -= added_cells
    bar_indices = [index for index, column in enumerate(columns) if column.bar_cells]
    if bar_indices:
        added_cells = min(MOST_BAR - LEAST_BAR, max(0, free_cells) // len(bar_indices))
        for index in bar_indices:
            columns[index] = replace(
                columns[index], bar_cells=columns[index].bar_cells + added_cells
            )
    return replace(layout, columns=tuple(columns))
