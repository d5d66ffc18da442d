"""The tables of a report's page, one below the other, with a cursor over their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip

from mast_tui.reports.model import Behind, Chart, Kind, Part, Row, Table, Text
from mast_tui.reports.render.cells import NONE
from mast_tui.safe_text import one_line
from mast_tui.ui.reports.cells import (
    bar,
    figure_of,
    interval_words,
    value_words,
)
from mast_tui.ui.reports.fitting import INTERVAL_TITLE, LEAD, Fitted, Layout, choosable, fitted
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.virtual_lines import SMALL, VirtualLines

RULE: Final = "─"
FOLDED: Final = "▸"
UNFOLDED: Final = "▾"
WIDEST_TEXT: Final = 100
"""Cells beyond which lines of text are hard to read."""


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

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "report-lines--cursor",
        "report-lines--name",
        "report-lines--quiet",
        "report-lines--figure",
        "report-lines--title",
        "report-lines--mark",
        "report-lines--bar",
        "report-lines--text",
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.parts: Sequence[Part] = ()
        self.pending = False
        self._lines: list[Line] = []
        self._layouts: dict[str, Layout] = {}
        self._chosen: dict[str, str] = {}
        self._unfolded: set[str] = set()

    # What is shown

    @property
    def row_count(self) -> int:
        """The lines of all tables."""
        return len(self._lines)

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self._lines[self.cursor].row if self._lines else None

    @property
    def table(self) -> Table | None:
        """The table under the cursor."""
        return self._lines[self.cursor].table if self._lines else None

    @property
    def folds(self) -> Table | Text | None:
        """What Enter folds or unfolds, where the cursor stands on such a title."""
        return self._lines[self.cursor].folds if self._lines else None

    @property
    def place(self) -> tuple[str, str] | None:
        """The ids of the table and the row under the cursor."""
        return self._lines[self.cursor].place if self._lines else None

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of all tables."""
        return [line.row for line in self._lines if line.row is not None]

    @property
    def chosen(self) -> str | None:
        """The column of the cell under the cursor, None where a row is one thing."""
        return None if self.table is None else self._chosen_in(self.table)

    @property
    def behind(self) -> Behind | None:
        """The traces behind what is under the cursor: the cell's, else the row's."""
        row, chosen = self.row, self.chosen
        if row is None:
            return None
        # Where other cells have traces of their own, those of the row are not the chosen cell's.
        return row.behind_cells.get(chosen or "") if row.behind_cells else row.behind

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
        width = self.scrollable_content_region.width
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
        if self.folds is None:
            return False
        self._unfolded ^= {self.folds.id}
        self.rows_changed()
        self.show_row(self.cursor)
        return True

    def move_across(self, delta: int) -> bool:
        """Choose another column; False where there is none to choose."""
        table = self.table
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

    def on_focus(self) -> None:
        """Keys move this cursor."""
        self.redraw_row(self.cursor)

    def on_blur(self) -> None:
        """Keys move another one; the row stays marked."""
        self.redraw_row(self.cursor)

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
        return Strip(parts).adjust_cell_length(width, base)

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"report-lines--{name}", partial=True)


def _cells(one: Fitted, row: Row, *, pending: bool) -> list[tuple[str, str]]:
    """The texts of a column in a row, of its width together, with their styles."""
    cell, kind = row.cells.get(one.column.key), one.column.kind
    text = value_words(cell, kind)
    if one.is_text:
        if cell_len(text) > one.values:
            text = set_cell_size(text, one.values - 1) + "…"
        return [(set_cell_size(text, one.values), "quiet" if text == NONE else "figure")]
    quiet = text == NONE or figure_of(cell) is None or kind is Kind.P_VALUE
    if kind is Kind.COUNT:
        # A count that leads to traces is what the table is about, another what it rests on.
        quiet = one.column.key not in row.behind_cells
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
