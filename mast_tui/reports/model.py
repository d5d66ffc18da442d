"""The parts of a report: sections with tables, charts and notes.

A report is made once from its figures (``agreement.py``, ``signatures.py``), as texts and typed
cells. Renderers (``render/``, the report screen) lay these out without knowing the meaning of a
figure, so that a new column or row appears in all of them.

Names in a report are not escaped. A renderer escapes them for its language, a terminal by
``safe_text``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from mast_tui.figures.record import Figure, FigureTable, Sources


class Kind(StrEnum):
    """The kind of the values in a column, which determines their format and alignment."""

    TEXT = "text"
    """A text, aligned to the left."""
    COUNT = "count"
    """A whole number."""
    NUMBER = "number"
    """A coefficient or mean, with two digits and its interval."""
    SHARE = "share"
    """A share from 0 to 1 with its interval, shown in percent and as a bar where there is room."""
    POINTS = "points"
    """A difference of shares, from -1 to 1, shown in percentage points with its sign."""
    P_VALUE = "p_value"
    """A probability, never shown as if it were 0."""


Cell = str | int | float | Figure | None
"""A value; None is an empty cell, which means that the column does not apply to the row."""


def figure_cell(figure: Figure, n: int | None = None) -> Figure:
    """Return a figure as a cell.

    Args:
        figure: The figure.
        n: The number of cases that the cell shows with it; by default none.
    """
    return replace(figure, n=n)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        key: The key of its cells in a row; ``figure_cells`` reads from it the name of a figure.
        title: A short heading: ``κ``.
        kind: The kind of its cells.
        name: The full name for details and captions: ``Cohen's κ``; empty for the title.
        priority: If space is short, intervals are dropped first, then the columns with the lowest
            priority.
        interval: Whether intervals are shown if there is space.
    """

    key: str
    title: str
    kind: Kind = Kind.NUMBER
    name: str = ""
    priority: int = 50
    interval: bool = True


def figure_cells(
    figures: FigureTable,
    columns: Iterable[Column],
    shown_n: Callable[[Figure], int | None] = lambda _figure: None,
) -> dict[str, Cell]:
    """Make the cells of a row from its figures, by the keys of the columns.

    The key of a column names the figure that it shows: ``statistic`` or ``statistic:condition``. A
    count is shown as its value, any other figure with its interval. If the key ends in ``#count``,
    ``#n``, ``#value``, ``#low`` or ``#high``, only this field of the figure is shown.

    Args:
        figures: The figures of the row.
        columns: The columns; a column without a figure gets no cell.
        shown_n: Returns the n that is shown with a figure; by default none.
    """
    cells: dict[str, Cell] = {}
    for column in columns:
        figure_key, _, field_name = column.key.partition("#")
        statistic, _, condition = figure_key.partition(":")
        figure = figures.get(statistic, condition)
        if figure is None:
            continue
        if field_name or column.kind is Kind.COUNT:
            cells[column.key] = getattr(figure, field_name or "value")
        else:
            cells[column.key] = figure_cell(figure, shown_n(figure))
    return cells


def columns(lines: str, **replacements: str) -> tuple[Column, ...]:
    """Read columns from a text with a line for each.

    Args:
        lines: The lines: ``key | title | kind | name | priority``. Parts that are empty, or left
            out at the end, get the defaults of ``Column``.
        replacements: The texts that replace placeholders such as ``{arm}`` in titles and names.
    """
    parsed_columns = []
    for line in lines.strip().splitlines():
        parts = [part.strip() for part in line.split("|")]
        parts += [""] * (5 - len(parts))
        key, title, kind, name, priority = parts
        parsed_columns.append(
            Column(
                key,
                title.format(**replacements),
                Kind(kind or "number"),
                name.format(**replacements),
                int(priority or 50),
            )
        )
    return tuple(parsed_columns)


CODE, MODE = columns("""
    code |      | text | code | 101
    name | mode | text | mode | 102
""")
"""The columns that name the row of a mode."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Args:
        id: Unique in its table; a screen keeps its cursor on the row by it when figures change.
        cells: The cells by column key; a missing key is an empty cell.
        mark: A sign before the row that a note explains (``†``).
        detail: Sentences on this row, which a screen shows with it and pages leave out.
        sources: The query for the traces of the row; None if there is no list of them.
        cell_sources: The queries for the traces of single cells, by key.
        detail_cells: Sentences on single cells, by key, which a screen shows with the selected
            cell.
    """

    id: str
    cells: Mapping[str, Cell]
    mark: str = ""
    detail: tuple[str, ...] = ()
    sources: Sources | None = None
    cell_sources: Mapping[str, Sources | None] = field(default_factory=dict)
    detail_cells: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence on the data of figures, on what was left out, or on how to read them.

    ``reason`` is a name for scripts and tests (``few_traces``, ``left_out``, ``identical_blocks``).
    A ``warning`` is shown before the figures, not below them.
    """

    text: str
    reason: str
    warning: bool = False


class _Noted:
    """A part of a report that has notes."""

    __slots__ = ()
    notes: tuple[Note, ...]

    @property
    def warnings(self) -> Iterator[Note]:
        """The notes that are shown before the figures."""
        return (note for note in self.notes if note.warning)

    @property
    def remarks(self) -> Iterator[Note]:
        """The notes that are shown below the figures."""
        return (note for note in self.notes if not note.warning)


@dataclass(frozen=True, slots=True)
class Table(_Noted):
    """Rows under columns.

    Args:
        id: Unique in its report, fit for file names, labels and anchors: ``modes``.
        title: The title, without a full stop: ``Agreement on whole traces``.
        columns: Its columns. The first columns of text name a row.
        groups: Groups of rows with a rule between them (modes, categories, totals).
        caption: Sentences for a paper: source of the labels, pass, n, seed, resamples.
        notes: The notes below the table.
        folded: Whether a page shows it folded, and a plain text leaves it out.
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    groups: tuple[tuple[Row, ...], ...]
    caption: str = ""
    notes: tuple[Note, ...] = ()
    folded: bool = False

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all groups."""
        return tuple(row for group in self.groups for row in group)

    @property
    def visible_columns(self) -> tuple[Column, ...]:
        """The columns with at least one value; all columns if the table has no value."""
        return self.split_columns()[0] or self.columns

    def split_columns(self) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        """Return the columns with at least one value, and those that are empty in every row."""
        filled_keys = {
            key for row in self.rows for key, cell in row.cells.items() if cell not in (None, "")
        }
        filled = tuple(column for column in self.columns if column.key in filled_keys)
        empty = tuple(column for column in self.columns if column.key not in filled_keys)
        return filled, empty


def existing_tables(*tables: Table | None) -> tuple[Table, ...]:
    """Return the tables without None, which stands for a table that has no data."""
    return tuple(table for table in tables if table is not None)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing in user units; ``render/svg.py`` writes it.

    ``id`` is the name of its file, without a suffix. ``note`` is its caption: n, source of the
    labels, taxonomy, and content. A page shows a ``folded`` chart folded; its file is like others.
    """

    id: str
    title: str
    note: str
    width: float
    height: float
    parts: tuple[str, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Paragraphs, such as the remedies of a mode, with links as (text, address)."""

    id: str
    title: str
    paragraphs: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    folded: bool = False


Part = Table | Chart | Text


class KeyFact(NamedTuple):
    """A number at the head of a page, as texts; the comment may be an interval."""

    name: str
    value: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ReportSection(_Noted):
    """A page of a report; ``id`` is fit for anchors."""

    id: str
    title: str
    parts: tuple[Part, ...] = ()
    facts: tuple[KeyFact, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables among its parts."""
        return tuple(part for part in self.parts if isinstance(part, Table))


@dataclass(frozen=True, slots=True)
class Report(_Noted):
    """A whole report.

    Args:
        id: ``agreement`` or ``signatures``.
        title: Its title.
        about: One sentence: taxonomy, source of the labels, pass, number of traces.
        sections: Its pages.
        notes: The notes on the whole report.
        facts: The numbers at its head.
        document: The figures as ``--json`` prints them, from which ``render/csv.py`` makes rows.
        methods: A paragraph for the methods section of a paper, which pages and Markdown show.
    """

    id: str
    title: str
    about: str
    sections: tuple[ReportSection, ...]
    notes: tuple[Note, ...] = ()
    facts: tuple[KeyFact, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict)
    methods: str = ""

    @property
    def tables(self) -> Sequence[Table]:
        """The tables of all sections."""
        return [table for section in self.sections for table in section.tables]

    @property
    def charts(self) -> Sequence[Chart]:
        """The charts of all sections."""
        return [
            part for section in self.sections for part in section.parts if isinstance(part, Chart)
        ]
