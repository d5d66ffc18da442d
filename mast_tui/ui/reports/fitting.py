"""The columns of a report's table, fitted to a width: intervals go first, numbers are never cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from rich.cells import cell_len

from mast_tui.reports.model import Column, Kind, Table
from mast_tui.safe_text import one_line
from mast_tui.ui.reports.cells import interval_words, value_words

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
class Layout:
    """The columns that are shown, and the cells between them."""

    columns: tuple[Fitted, ...]
    gap: int = GAP

    @property
    def width(self) -> int:
        """The cells of a line."""
        between = self.gap * max(0, len(self.columns) - 1)
        return LEAD + between + sum(one.width for one in self.columns)

    def with_in_place(self, one: Fitted, others: tuple[Fitted, ...]) -> Layout:
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


def choosable(table: Table) -> tuple[str, ...]:
    """The columns among which a cell can be chosen: those with traces of their own behind them."""
    behind = {key for row in table.rows for key in row.behind_cells}
    return tuple(column.key for column in table.columns if column.key in behind)


def fitted(table: Table, width: int, *, chosen: str | None = None, pending: bool) -> Layout:
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
    layout = Layout(_cut(measured, max(LEAST_NAME, width // 4)))
    bare = sorted((one for one in measured if one.interval), key=lambda one: keeps[one.column.key])
    for one in bare:
        if layout.width <= width:
            break
        kept = next(this for this in layout.columns if this.column is one.column)
        layout = layout.with_in_place(kept, (replace(kept, interval=0),))
    if layout.width > width:
        layout = _narrowed(Layout(_cut(layout.columns, LEAST_NAME), gap=1), width, keeps)
    return _widened(layout, width, natural)


def _cut(columns: Iterable[Fitted], most: int) -> tuple[Fitted, ...]:
    """Cut texts to so many cells."""
    return tuple(
        replace(one, values=min(one.values, most)) if one.is_text else one for one in columns
    )


def _narrowed(layout: Layout, width: int, keeps: Mapping[str, float]) -> Layout:
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


def _widened(layout: Layout, width: int, natural: Mapping[str, int]) -> Layout:
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
