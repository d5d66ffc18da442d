"""The parts of a report: sections with tables, charts and notes.

A report is made once from its figures, as texts and typed cells. Renderers (``render/``, the report
screen) lay it out without knowing any figure, so that a new column or row appears everywhere.

Names in a report are not escaped. Each renderer escapes them, a terminal with ``safe_text``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

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
    """A share from 0 to 1 with its interval, in percent and as a bar if there is room."""
    POINTS = "points"
    """A difference of shares, from -1 to 1, in percentage points with its sign."""
    P_VALUE = "p_value"
    """A probability, never rounded to 0."""


Cell = str | int | float | Figure | None
"""A value; None is an empty cell."""


def figure_cell(figure: Figure, n: int | None = None) -> Figure:
    """Return a figure as a cell.

    Args:
        figure: The figure.
        n: The n that the cell shows; None for no n.
    """
    return replace(figure, n=n)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        key: The key of its cells in a row, which also names a figure for ``figure_cells``.
        title: A short heading, such as ``κ``.
        kind: The kind of its cells.
        name: The full name for details and captions, such as ``Cohen's κ``; empty for the title.
        priority: The priority if space is short: intervals are dropped first, then the columns with
            the lowest priority.
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

    The key of a column names its figure: ``statistic`` or ``statistic:condition``. The ending
    ``#count``, ``#n``, ``#value``, ``#low`` or ``#high`` selects one field of the figure.

    Args:
        figures: The figures of the row.
        columns: The columns; those without a figure get no cell.
        shown_n: Returns the n to show with a figure; by default none.
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
        lines: The lines: ``key | title | kind | name | priority``. Empty or missing parts get the
            defaults of ``Column``.
        replacements: The values of placeholders such as ``{arm}`` in titles and names.
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
        id: The id, unique in its table. A screen keeps its cursor on the same id.
        cells: The cells by column key; a missing key is an empty cell.
        mark: A sign before the row, explained by a note, such as ``†``.
        detail: Sentences on the row, which a screen shows with it.
        sources: The query for the traces of the row; None without a list of traces.
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
    """A sentence on the data of figures, on excluded data, or on how to read the figures.

    ``reason`` is a name for scripts and tests. A ``warning`` is shown above the figures.
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
        """The notes that are shown above the figures."""
        return (note for note in self.notes if note.warning)

    @property
    def remarks(self) -> Iterator[Note]:
        """The notes that are shown below the figures."""
        return (note for note in self.notes if not note.warning)


@dataclass(frozen=True, slots=True)
class Table(_Noted):
    """Rows under columns.

    Args:
        id: The id, unique in its report and fit for file names, labels and anchors.
        title: The title, without a full stop.
        columns: The columns; the first columns of text name a row.
        groups: Groups of rows with a rule between them (modes, categories, totals).
        caption: Sentences for a paper, on the labels and the method.
        notes: The notes below the table.
        folded: Whether a page shows the table folded, and plain text leaves it out.
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
        """Return the columns with at least one value, and the empty ones."""
        filled_keys = {
            key for row in self.rows for key, cell in row.cells.items() if cell not in (None, "")
        }
        filled = tuple(column for column in self.columns if column.key in filled_keys)
        empty = tuple(column for column in self.columns if column.key not in filled_keys)
        return filled, empty


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing in user units, which ``render/svg.py`` writes.

    ``id`` is the name of its file, without a suffix. ``note`` is its caption. A page shows a
    ``folded`` chart folded.
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
_Part = TypeVar("_Part", bound=Part)


def existing_parts(*parts: _Part | None) -> tuple[_Part, ...]:
    """Return the parts that are not None."""
    return tuple(part for part in parts if part is not None)


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
        about: A sentence on the taxonomy, the source of the labels, the pass and the traces.
        sections: Its pages.
        notes: The notes on the whole report.
        facts: The numbers at its head.
        document: The figures as ``--json`` prints them.
        methods: A paragraph for the methods section of a paper.
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
