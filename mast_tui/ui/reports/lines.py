"""The tables of a report's page, one below the other, with a cursor over their rows.

Their columns are fitted to the width: intervals go first, numbers are never cut.
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
from mast_tui.figures.record import Sources
from mast_tui.reports.model import Chart, Column, Kind, Part, Row, Table, Text
from mast_tui.reports.render.cells import NONE, naming
from mast_tui.reports.sentences import joined
from mast_tui.safe_text import one_line
from mast_tui.ui.reports.cells import bar, choosable, figure_of, interval_words, value_words
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.virtual_lines import SMALL, VirtualLines, row_strip

RULE: Final = "─"
FOLDED: Final = "▸"
UNFOLDED: Final = "▾"
WIDEST_TEXT: Final = 100
"""Cells beyond which lines of text are hard to read."""
LEAD: Final = 3
"""Cells before the first column: cursor and mark."""

GAP: Final = 2
LEAST_NAME: Final = 12
"""Cells that a name keeps which is cut for figures."""

LEAST_BAR: Final = 10
MOST_BAR: Final = 32
INTERVAL_TITLE: Final = "95 %"

NEAR: Final = 90
"""What the chosen column keeps, where there are many to choose from."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a row of a table, its columns' titles, or words (a title, a paragraph, a rule)."""

    table: Table | None = None
    row: Row | None = None
    words: str | None = None
    style: str = "text"

    folds: Table | Text | None = None
    """What Enter on this title folds or unfolds."""

    @property
    def place(self) -> tuple[str, str] | None:
        """The ids of its table and its row, of which a title has none; None for what is no stop."""
        if self.folds is not None:
            return self.folds.id, ""
        return None if self.table is None or self.row is None else (self.table.id, self.row.id)

    @property
    def is_stop(self) -> bool:
        """Whether the cursor stands on it."""
        return self.row is not None or self.folds is not None


class ReportLines(VirtualLines):
    """Tables and texts of one page. The cursor stands on rows only.

    The titles of columns stay in sight while their table is scrolled. In a table whose cells have
    traces of their own behind them one column is chosen, and its cell stands out.
    """

    css_prefix = "report-lines"
    tells_focus = True
    css_parts = ("cursor", "name", "quiet", "figure", "title", "mark", "bar", "text")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.parts: Sequence[Part] = ()
        self.pending = False
        self._lines: list[Line] = []
        self._layouts: dict[str, LineLayout] = {}
        self._chosen: dict[str, str] = {}
        self._unfolded: set[str] = set()

    # What is shown

    @property
    def row_count(self) -> int:
        """The lines of all tables."""
        return len(self._lines)

    @property
    def line(self) -> Line:
        """The line under the cursor, an empty one where there is none."""
        return self._lines[self.cursor] if self._lines else Line()

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.line.row

    @property
    def place(self) -> tuple[str, str] | None:
        """The ids of the table and the row under the cursor."""
        return self.line.place

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of all tables."""
        return [line.row for line in self._lines if line.row is not None]

    @property
    def chosen(self) -> str | None:
        """The column of the cell under the cursor, None where a row is one thing."""
        return None if self.line.table is None else self._chosen_in(self.line.table)

    @property
    def sources(self) -> Sources | None:
        """The query for the traces of the cell under the cursor, or of the row."""
        row, chosen = self.row, self.chosen
        if row is None:
            return None
        # Where other cells have traces of their own, those of the row are not the chosen cell's.
        return row.cell_sources.get(chosen or "") if row.cell_sources else row.sources

    @property
    def sources_title(self) -> str:
        """The title of the traces under the cursor: ``1.3 Step repetition, failed traces``."""
        table = self.line.table
        row = self.line.row
        sources = self.sources
        if table is None or row is None or sources is None:
            return ""
        cells = [row.cells.get(column.key) for column in table.columns[: naming(table.columns)]]
        name = " ".join(cell for cell in cells if isinstance(cell, str) and cell)
        if len(sources.subject) > 1:
            pair = joined(sources.subject)
            return pair if name in (*sources.subject, pair) else f"{name}, {pair}"
        outcome = dict(sources.where).get("outcome")
        chosen = [column for column in table.columns if column.key == self.chosen]
        if outcome is not None and len(sources.modes) < 2:
            name += f", {'successful' if outcome == 'succeeded' else outcome} traces"
        elif chosen:
            name += f", {chosen[0].name or chosen[0].title}"
        return name

    def show(
        self,
        parts: Sequence[Part],
        *,
        pending: bool = False,
        place: tuple[str, str] | None = None,
    ) -> None:
        """Show other tables.

        Args:
            parts: Tables and texts; charts are for paper.
            pending: Whether intervals are still to come.
            place: Where the cursor goes, else it stays on its row where that is still there.
        """
        stood = place or self.place
        self.parts, self.pending = parts, pending
        self.rows_changed()
        self._stand(stood)

    def rows_changed(self) -> None:
        """Fit the tables to the width and make their lines anew; the cursor keeps its row."""
        stood = self.place
        width = self.row_width
        tables = [part for part in self.parts if isinstance(part, Table)]
        self._layouts = {
            table.id: fitted(table, width, chosen=self._chosen_in(table), pending=self.pending)
            for table in tables
        }
        self._lines = _lines_of(self.parts, min(width, WIDEST_TEXT), self._unfolded)
        self.cursor = self._line_of(stood)
        super().rows_changed()

    def _stand(self, place: tuple[str, str] | None) -> None:
        self.cursor = self._line_of(place)
        self.show_row(self.cursor)
        self.redraw_row(self.cursor)

    def _line_of(self, place: tuple[str, str] | None) -> int:
        """The line of a row, else of one with its id in another table, else the first row's."""
        stops = [number for number, line in enumerate(self._lines) if line.is_stop]
        alike = None
        for number in stops:
            here = self._lines[number].place
            if place is None or here == place:
                return number
            if alike is None and here is not None and here[1] and here[1] == place[1]:
                alike = number
        return alike if alike is not None else next(iter(stops), 0)

    def _chosen_in(self, table: Table) -> str | None:
        choices = choosable(table)
        if not choices:
            return None
        chosen = self._chosen.get(table.id)
        return chosen if chosen in choices else choices[0]

    # The cursor

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on a row at or beyond this line, else on the last one before it."""
        if not self._lines:
            return
        row = max(0, min(row, len(self._lines) - 1))
        back = row < self.cursor
        beyond = range(row, -1, -1) if back else range(row, len(self._lines))
        other = range(row, len(self._lines)) if back else range(row, -1, -1)
        found = next((n for n in (*beyond, *other) if self._lines[n].is_stop), None)
        if found is not None:
            super().move_to(found, centre=centre)

    def show_row(self, row: int, *, centre: bool = False) -> None:
        """Bring a row on screen; with the first one all that stands above it."""
        if not any(line.is_stop for line in self._lines[:row]):
            self.scroll_to(y=0, animate=False, force=True)
            return
        super().show_row(row, centre=centre)

    def unfold(self) -> bool:
        """Fold or unfold the table whose title the cursor stands on; False elsewhere."""
        folds = self.line.folds
        if folds is None:
            return False
        self._unfolded ^= {folds.id}
        self.rows_changed()
        self.show_row(self.cursor)
        return True

    def move_across(self, delta: int) -> bool:
        """Choose another column; False where there is none to choose."""
        table = self.line.table
        choices = () if table is None else choosable(table)
        if table is None or len(choices) < 2:
            return False
        place = choices.index(self._chosen_in(table) or choices[0]) + delta
        self._choose(table, choices[max(0, min(place, len(choices) - 1))])
        return True

    def _choose(self, table: Table, key: str) -> None:
        if key != self._chosen_in(table):
            self._chosen[table.id] = key
            self.rows_changed()
            self.post_message(self.Moved(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """A click chooses the cell, and one on the chosen cell opens it."""
        offset = event.get_content_offset(self)
        number = -1 if offset is None else offset.y + round(self.scroll_y)
        if offset is None or not 0 <= number < len(self._lines):
            return
        line = self._lines[number]
        if not line.is_stop or self._sticks(offset.y):
            event.prevent_default()
            return
        if line.row is None or line.table is None:
            return
        key = self._layouts[line.table.id].column_at(offset.x)
        if key in choosable(line.table) and key != self._chosen_in(line.table):
            self._choose(line.table, key)
            self.move_to(number)
            event.prevent_default()

    # Drawing

    def render_line(self, y: int) -> Strip:
        """The strip for a line of the widget; the first one keeps the titles of columns."""
        if self._sticks(y):
            table = self._lines[round(self.scroll_y)].table
            assert table is not None
            return self._heading(table, self.lines_area.width)
        return super().render_line(y)

    def _sticks(self, y: int) -> bool:
        top = round(self.scroll_y)
        if y or not 0 < top < len(self._lines) or self.lines_area.height <= SMALL:
            return False
        line = self._lines[top]
        return line.table is not None

    def render_row(self, row: int, width: int) -> Strip:
        """One line."""
        line = self._lines[row]
        if line.words is not None or line.table is None:
            return self._words(line, width, under=row == self.cursor)
        if line.row is None:
            return self._heading(line.table, width)
        strip = self._row(line.table, line.row, width, under=row == self.cursor)
        chosen = self._chosen_in(line.table) if row == self.cursor else None
        edges = None if chosen is None else self._layouts[line.table.id].edges(chosen)
        if edges is None or line.row.cells.get(chosen or "") in (None, ""):
            return strip
        left, right = edges
        cell = strip.crop(left, right).apply_style(Style(reverse=True))
        return Strip.join([strip.crop(0, left), cell, strip.crop(right, width)])

    def _words(self, line: Line, width: int, *, under: bool) -> Strip:
        base = self.rich_style
        if under and self.has_focus:
            base += self._part("cursor")
        words = line.words or ""
        text = words * (width - LEAD) if words == RULE else words
        lead = Segment(("▌" if under else " ").ljust(LEAD), base + self._part("name"))
        return Strip([lead, Segment(text, base + self._part(line.style))]).adjust_cell_length(
            width, base
        )

    def _heading(self, table: Table, width: int) -> Strip:
        layout = self._layouts[table.id]
        text = " " * LEAD
        for place, one in enumerate(layout.columns):
            text += " " * layout.gap if place else ""
            if one.is_text or one.bar:
                text += set_cell_size(one.title, one.width)
            else:
                text += " " * (one.values - cell_len(one.title)) + one.title
                text += f" {set_cell_size(INTERVAL_TITLE, one.interval)}" if one.interval else ""
        style = self.rich_style + self._part("quiet")
        return Strip([Segment(text, style)]).adjust_cell_length(width, self.rich_style)

    def _row(self, table: Table, row: Row, width: int, *, under: bool) -> Strip:
        base = self.rich_style
        if under and self.has_focus:
            base += self._part("cursor")
        parts = [
            Segment("▌" if under else " ", base + self._part("name")),
            Segment(set_cell_size(one_line(row.mark), LEAD - 1), base + self._part("mark")),
        ]
        layout = self._layouts[table.id]
        for place, one in enumerate(layout.columns):
            first = place == 0 and len(layout.columns) > 1 and layout.columns[1].is_text
            parts.append(Segment(" " * layout.gap if place else "", base))
            parts += [
                Segment(text, base + self._part("name" if first else style))
                for text, style in _cells(one, row, pending=self.pending)
            ]
        return row_strip(parts, width, base)


def _cells(one: Fitted, row: Row, *, pending: bool) -> list[tuple[str, str]]:
    """The texts of a column in a row, of its width together, with their styles."""
    cell, kind = row.cells.get(one.column.key), one.column.kind
    text = value_words(cell, kind)
    if one.is_text:
        return [(padded(text, one.values), "quiet" if text == NONE else "figure")]
    quiet = text == NONE or figure_of(cell) is None or kind is Kind.P_VALUE
    if kind is Kind.COUNT:
        # A count that leads to traces is what the table is about, another what it rests on.
        quiet = one.column.key not in row.cell_sources
    found = []
    if one.bar:
        found.append((set_cell_size(bar(cell, one.bar), one.bar + 1), "bar"))
    found.append((" " * (one.values - cell_len(text)) + text, "quiet" if quiet else "figure"))
    if one.interval:
        words = interval_words(cell, kind, pending=pending)
        found.append((" " + set_cell_size(words, one.interval), "quiet"))
    return found


def _lines_of(parts: Sequence[Part], width: int, unfolded: Collection[str]) -> list[Line]:
    """The lines of a page; titles stand over tables where there are several parts."""
    shown = [part for part in parts if not isinstance(part, Chart)]
    lines: list[Line] = []
    for part in shown:
        title, folded = one_line(part.title), part.folded and part.id not in unfolded
        if lines and not (folded and lines[-1].folds):
            lines.append(Line())
        if part.folded:
            sign = FOLDED if folded else UNFOLDED
            lines.append(Line(words=f"{sign} {title}", style="title", folds=part))
        elif len(shown) > 1 or isinstance(part, Text):
            lines.append(Line(words=title, style="title"))
        if not folded:
            lines += _text_lines(part, width) if isinstance(part, Text) else _table_lines(part)
    return lines


def _text_lines(part: Text, width: int) -> Iterator[Line]:
    for paragraph in (*part.paragraphs, *(f"{name}: {address}" for name, address in part.links)):
        for text in wrapped(paragraph, max(8, width - LEAD)):
            yield Line(words=text)


def _table_lines(table: Table) -> Iterator[Line]:
    yield Line(table)
    for place, group in enumerate(group for group in table.groups if group):
        if place:
            yield Line(table, words=RULE, style="quiet")
        for row in group:
            yield Line(table, row)


# Columns fitted to a width


@dataclass(frozen=True, slots=True)
class Fitted:
    """One column with its cells: of a bar, of the values, and of their intervals; 0 is none."""

    column: Column
    values: int
    interval: int = 0
    bar: int = 0

    @property
    def width(self) -> int:
        """The cells of all of it."""
        return self.values + (self.interval and self.interval + 1) + (self.bar and self.bar + 1)

    @property
    def title(self) -> str:
        """The heading, fit for display."""
        return one_line(self.column.title, 40)

    @property
    def is_text(self) -> bool:
        """Whether words stand in it."""
        return self.column.kind is Kind.TEXT


@dataclass(frozen=True, slots=True)
class LineLayout:
    """The columns that are shown, and the cells between them."""

    columns: tuple[Fitted, ...]
    gap: int = GAP

    @property
    def width(self) -> int:
        """The cells of a line."""
        between = self.gap * max(0, len(self.columns) - 1)
        return LEAD + between + sum(one.width for one in self.columns)

    def with_in_place(self, one: Fitted, others: tuple[Fitted, ...]) -> LineLayout:
        """The layout with ``others`` where one column was."""
        place = self.columns.index(one)
        return replace(self, columns=(*self.columns[:place], *others, *self.columns[place + 1 :]))

    def edges(self, key: str) -> tuple[int, int] | None:
        """Where the values of a column begin and end, None where it is not shown."""
        begin = LEAD
        for one in self.columns:
            if one.column.key == key:
                values = begin + (one.bar and one.bar + 1)
                return values, values + one.values
            begin += one.width + self.gap
        return None

    def column_at(self, x: int) -> str | None:
        """The key of the column that stands over a cell."""
        begin = LEAD
        for one in self.columns:
            end = begin + one.width + self.gap
            if begin <= x < end:
                return one.column.key
            begin = end
        return None


def fitted(table: Table, width: int, *, chosen: str | None = None, pending: bool) -> LineLayout:
    """Fit a table's columns to a width.

    Names are cut to a quarter of the width before intervals go, those of the columns that keep
    least first; then names are cut further, columns stand closer, and columns and bars go.

    Args:
        table: What is shown.
        width: Cells of a line.
        chosen: The column under the cursor; of many to choose from those near it stay.
        pending: Whether intervals are still to come.
    """
    measured = [_measured(table, column, pending) for column in table.shown()[0]]
    keeps = _keeps(table, measured, chosen)
    natural = {one.column.key: one.values for one in measured}
    layout = LineLayout(_cut(measured, max(LEAST_NAME, width // 4)))
    bare = sorted((one for one in measured if one.interval), key=lambda one: keeps[one.column.key])
    for one in bare:
        if layout.width <= width:
            break
        kept = next(this for this in layout.columns if this.column is one.column)
        layout = layout.with_in_place(kept, (replace(kept, interval=0),))
    if layout.width > width:
        layout = _narrowed(LineLayout(_cut(layout.columns, LEAST_NAME), gap=1), width, keeps)
    return _widened(layout, width, natural)


def _cut(columns: Iterable[Fitted], most: int) -> tuple[Fitted, ...]:
    """Cut texts to so many cells."""
    return tuple(
        replace(one, values=min(one.values, most)) if one.is_text else one for one in columns
    )


def _narrowed(layout: LineLayout, width: int, keeps: Mapping[str, float]) -> LineLayout:
    """Let bars and columns go, those that keep least first, each bar before its column."""
    while layout.width > width and len(layout.columns) > 1:
        one = min(layout.columns, key=lambda one: keeps[one.column.key])
        less = (replace(one, bar=0, values=max(cell_len(one.title), one.values)),)
        layout = layout.with_in_place(one, less if one.bar else ())
    return layout


def _measured(table: Table, column: Column, pending: bool) -> Fitted:
    cells = [row.cells.get(column.key) for row in table.rows]
    values = max((cell_len(value_words(cell, column.kind)) for cell in cells), default=0)
    is_share = column.kind is Kind.SHARE
    interval = 0
    if column.interval and not is_share:
        words = (interval_words(cell, column.kind, pending=pending) for cell in cells)
        interval = max((cell_len(one) for one in words), default=0)
        interval = interval and max(interval, cell_len(INTERVAL_TITLE))
    one = Fitted(column, values, interval, LEAST_BAR if is_share else 0)
    over = cell_len(one.title) - (one.width if is_share else values)
    return replace(one, values=values + max(0, over))


def _keeps(table: Table, measured: Sequence[Fitted], chosen: str | None) -> Mapping[str, float]:
    """What each column keeps: the first one stays whatever goes."""
    keeps: dict[str, float] = {one.column.key: one.column.keeps for one in measured}
    if measured:
        keeps[measured[0].column.key] = inf
    choices = choosable(table)
    if chosen in choices and len(choices) > 2:
        here = choices.index(chosen)
        for place, key in enumerate(choices):
            keeps[key] = NEAR - abs(place - here)
    return keeps


def _widened(layout: LineLayout, width: int, natural: Mapping[str, int]) -> LineLayout:
    """Give names what they need of the room that is left, then bars."""
    room = width - layout.width
    columns = list(layout.columns)
    for place, one in enumerate(columns):
        if one.is_text:
            more = max(0, min(natural[one.column.key] - one.values, room))
            columns[place] = replace(one, values=one.values + more)
            room -= more
    bars = [place for place, one in enumerate(columns) if one.bar]
    if bars:
        more = min(MOST_BAR - LEAST_BAR, max(0, room) // len(bars))
        for place in bars:
            columns[place] = replace(columns[place], bar=columns[place].bar + more)
    return replace(layout, columns=tuple(columns))
