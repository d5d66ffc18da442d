"""The parts of a report: sections with tables, charts and notes.

A report is made once of its figures (``agreement.py``, ``signatures.py``), in words and typed
cells. Renderers (``render/``, the report screen) lay these out; none of them knows what a figure
means, so that a new column or row shows in all of them.

Names in a report are written as they are. Whoever shows them escapes them for the place: a renderer
for its language, a terminal by ``safe_text``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mast_tui.figures.record import Figure, FigureTable, JsonForm, Sources


class Kind(StrEnum):
    """The kind of the values in a column, which determines their format and alignment."""

    TEXT = "text"
    """Words, aligned to the left."""
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval, or the reason why there is none.

    ``value`` is None where the figure is undefined, and ``undefined`` says why by name
    (``no_variance``). ``ci`` is a 95 % interval. Where one would not hold, ``withheld`` says why by
    name (``few_traces``). ``n`` is what this figure rests on, where that is told beside it.
    ``bounds`` are shown in the place of an interval where disagreements are unresolved.
    """

    value: float | None
    ci: tuple[float, float] | None = None
    undefined: str | None = None
    withheld: str | None = None
    n: int | None = None
    bounds: tuple[float, float] | None = None

    @classmethod
    def from_figure(cls, figure: Figure | Mapping[str, Any], row_n: int | None = None) -> Estimate:
        """Make the estimate of a figure, or of a coefficient of a JSON document.

        Args:
            figure: The figure.
            row_n: The n of its row; the figure's own is shown where it is another.
        """
        if isinstance(figure, Figure):
            own_n = None if row_n is None or figure.n in (None, row_n) else figure.n
            return cls(
                figure.value,
                figure.interval,
                figure.undefined,
                figure.withheld,
                own_n,
                bounds=figure.bounds,
            )
        own_n = figure.get("n", row_n)
        return cls(
            figure["value"],
            _pair(figure.get("ci")),
            None if figure["value"] is not None else str(figure.get("undefined", "undefined")),
            figure.get("ci_withheld"),
            None if row_n is None or own_n == row_n else own_n,
            bounds=_pair(figure.get("bounds")),
        )


def _pair(ends: Sequence[float] | None) -> tuple[float, float] | None:
    return None if ends is None else (float(ends[0]), float(ends[1]))


Cell = str | int | float | Estimate | None
"""A value; None is an empty cell, which means that the column does not apply to the row."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        key: The name of the statistic, as the JSON document has it; a row's cells are by key.
        title: A short heading: ``κ``.
        kind: What its cells hold.
        name: The statistic in words, for detail and captions: ``Cohen's κ``; else the title.
        keeps: Where there is little room, columns with low numbers go first, after their intervals.
        interval: Whether intervals are shown beside the figures where there is room.
    """

    key: str
    title: str
    kind: Kind = Kind.NUMBER
    name: str = ""
    keeps: int = 50
    interval: bool = True


def figure_cells(figures: Mapping[str, Any], columns: Iterable[Column]) -> dict[str, Cell]:
    """Make the cells of a part of a JSON document, under those columns whose keys it has.

    Args:
        figures: Coefficients with what belongs to them, counts and words.
        columns: The columns of a table.
    """
    there = {one.key: figures[one.key] for one in columns if one.key in figures}
    row_n = figures.get("n")
    return {
        key: Estimate.from_figure(cell, row_n) if isinstance(cell, Mapping) else cell
        for key, cell in there.items()
    }


def estimates(
    table: FigureTable, columns: Iterable[Column], row_n: int | None = None
) -> dict[str, Cell]:
    """Make the cells of a row from its figures, under those columns that have one.

    Args:
        table: The figures of the row.
        columns: The columns; the key of each is the name of a statistic.
        row_n: The n of the row; the n of a figure is shown where it is another.
    """
    cells: dict[str, Cell] = {}
    for column in columns:
        figure = table.get(column.key)
        if figure is None:
            continue
        if figure.definition.form is JsonForm.ESTIMATE:
            cells[column.key] = Estimate.from_figure(figure, row_n)
        elif column.kind is Kind.COUNT and figure.value is not None:
            cells[column.key] = int(figure.value)
        else:
            cells[column.key] = figure.value
    return cells


def columns(table: str, **words: str) -> tuple[Column, ...]:
    """Read columns from a table of text.

    Args:
        table: A line for each column: ``key | title | kind | name | keeps``. What is left out at
            the end, or empty, is as ``Column`` has it.
        words: What ``{word}`` in titles and names stands for.
    """
    found = []
    for line in table.strip().splitlines():
        parts = [part.strip() for part in line.split("|")]
        key, title, kind, name, keeps = (*parts, "", "", "")[:5]
        found.append(
            Column(
                key,
                title.format(**words),
                Kind(kind or "number"),
                name.format(**words),
                int(keeps or 50),
            )
        )
    return tuple(found)


CODE, MODE = columns("""
    code |      | text | code | 101
    name | mode | text | mode | 102
""")
"""What names the row of a mode."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Args:
        id: Unique in its table; where a screen's cursor stands, across counts.
        cells: By the keys of the columns; a key that is missing is an empty cell.
        mark: A sign before the row that a note explains (``†``).
        detail: Sentences on this row alone, which a screen shows beside it and pages leave out.
        sources: The query for the traces of the row, None where there is no list.
        cell_sources: The queries for the traces of single cells, by key.
        detail_cells: Sentences on single cells, by key, which a screen shows with the cell that is
            chosen.
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
    """A sentence on what figures rest on, what was left out, or how to read them.

    ``reason`` is a name for scripts and tests (``few_traces``, ``left_out``, ``identical_blocks``);
    a ``warning`` is told before the figures, not below them.
    """

    text: str
    reason: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns.

    Args:
        id: Unique in its report, fit for file names, labels and anchors: ``modes``.
        title: What it shows, without a full stop: ``Agreement on whole traces``.
        columns: Its columns. The first columns of text name a row.
        groups: Rows with a rule between the groups (modes, categories, totals).
        caption: Sentences for a paper: whose labels, which pass, n, seed, resamples.
        notes: What stands under it.
        folded: Whether a page shows it folded, and a text leaves it to other renderers.
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

    def shown(self) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        """Part the columns that hold something from those that are empty everywhere."""
        cells = [row.cells for row in self.rows]
        there = {key for row in cells for key, cell in row.items() if cell not in (None, "")}
        kept = tuple(column for column in self.columns if column.key in there)
        return kept, tuple(column for column in self.columns if column.key not in there)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing in user units, with its words; ``render/svg.py`` writes it.

    ``id`` is what its file is called, without an ending. ``note`` is its caption: n, whose labels,
    which taxonomy, and what is drawn. A ``folded`` one is drawn like others where it is a file, and
    a page shows it folded.
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
    """Paragraphs, such as what helps against a mode, with links as (words, address)."""

    id: str
    title: str
    paragraphs: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    folded: bool = False


Part = Table | Chart | Text


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A page of a report: ``id`` is fit for anchors, ``title`` is what its page is called.

    ``facts`` are numbers that stand at its head, as (name, value, more).
    """

    id: str
    title: str
    parts: tuple[Part, ...] = ()
    facts: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables among its parts."""
        return tuple(part for part in self.parts if isinstance(part, Table))


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report.

    Args:
        id: ``agreement`` or ``signatures``.
        title: What it is called.
        about: One sentence: taxonomy, whose labels, which pass, how many traces.
        sections: Its pages.
        notes: What holds for all of it.
        document: The figures as ``--json`` prints them; ``render/csv.py`` makes rows of them.
        methods: A paragraph for the methods section of a paper, which pages and Markdown show.
    """

    id: str
    title: str
    about: str
    sections: tuple[ReportSection, ...]
    notes: tuple[Note, ...] = ()
    facts: tuple[tuple[str, str, str], ...] = ()
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
