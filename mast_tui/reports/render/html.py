"""A report as a single HTML page without external resources.

The page's policy allows no script but its own. All texts are escaped, and control characters are
visible.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mast_tui.figures.record import Figure
from mast_tui.reports.model import Chart, Column, Kind, Report, Row, Table, Text
from mast_tui.reports.render.cells import Written, is_numeric, unit, written_cell
from mast_tui.reports.render.svg import DARK, LIGHT, figure_style, inline_svg
from mast_tui.safe_text import display_lines, one_line

_TEMPLATES: Final = Path(__file__).with_name("templates")
_PAGE_COLOURS: Final = (
    {"link": "#24548f", "soft": "#f4f6f8", "shade": "#c3cad2", "bar": "#b9cbe4"},
    {"link": "#8fb7ee", "soft": "#1d2228", "shade": "#000000", "bar": "#35506f"},
)
_SHORT: Final = 24
"""The most letters of a text that stays on one line in a table."""

_USED: Final = ("paper", "ink", "muted", "grid")


def render_html(report: Report) -> str:
    """Return a report as an HTML page: contents, then sections with tables, charts and texts."""
    environment = page_environment(_TEMPLATES)
    environment.filters.update(
        anchor=lambda name: re.sub(r"[^A-Za-z0-9._-]+", "-", name), display_lines=display_lines
    )
    environment.tests.update(
        table=lambda part: isinstance(part, Table),
        chart=lambda part: isinstance(part, Chart),
        text=lambda part: isinstance(part, Text),
        page=lambda address: address.startswith(("https://", "http://")),
    )
    return environment.get_template("report.html.j2").render(
        report=report,
        columns=_page_columns,
        groups=_cell_groups,
        drawing=lambda chart: Markup(inline_svg(chart)),
        style=Markup(_style_sheet()),
        **own_script(_TEMPLATES / "report.js"),
    )


def page_environment(templates: Path) -> Environment:
    """Return Jinja's environment for a folder of templates.

    Templates escape texts for HTML and make invisible characters visible.
    """
    return Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_with_visible_characters,
    )


def own_script(path: Path) -> dict[str, object]:
    """Return the script of a page, and its SHA-256 for the page's policy."""
    script = path.read_text("utf-8")
    return {
        "script": Markup(script),
        "digest": b64encode(sha256(script.encode("utf-8")).digest()).decode(),
    }


def colour_variables() -> str:
    """Return CSS variables of the colours, with values for the light and the dark scheme."""
    light = {name: LIGHT[name] for name in _USED} | _PAGE_COLOURS[0]
    dark = {name: DARK[name] for name in _USED} | _PAGE_COLOURS[1]
    colours = (f"--{name}: light-dark({light[name]}, {dark[name]});" for name in light)
    return f":root {{ {' '.join(colours)} }}"


def _with_visible_characters(value: object) -> object:
    """Return a text on one line and without control characters; other values are unchanged."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _style_sheet() -> str:
    """Return the style sheet of a page, with the colours of the light and the dark scheme."""
    light, dark = (
        ":root { "
        + " ".join(f"--{name}: {colours[name]};" for name in _USED)
        + " ".join(f" --{name}: {colour};" for name, colour in page_colours.items())
        + " }\n"
        + figure_style(colours)
        for colours, page_colours in zip((LIGHT, DARK), _PAGE_COLOURS, strict=True)
    )
    # Printed pages always use the light scheme.
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n" + (
        _TEMPLATES / "report.css"
    ).read_text("utf-8")


@dataclass(frozen=True, slots=True)
class _PageColumn:
    """A column of a table on the page.

    Attributes:
        column: The column.
        tip: Its full name and unit, the tooltip of its heading.
        css_class: The CSS class of its cells.
        has_interval: Whether a cell has an interval.
        text_length: The length of its longest text, without intervals.
    """

    column: Column
    tip: str
    css_class: str
    has_interval: bool
    text_length: int


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell, with its full numbers for sorting and for copies.

    Attributes:
        content: The written cell.
        mark: The mark of the row if this is its first cell.
        column: The column of the cell.
        ends: The ends of the interval; None without one.
        share: The length of the bar in percent; None without one.
    """

    content: Written
    mark: str
    column: _PageColumn
    ends: tuple[float, float] | None
    share: float | None


def _page_columns(table: Table) -> list[_PageColumn]:
    """Return the visible columns of a table."""
    return [
        _PageColumn(
            column,
            tip=", ".join(filter(None, (column.name, unit(column)))),
            css_class=_css_class(table, column),
            has_interval=any(_interval_ends(row, column) for row in table.rows),
            text_length=max((len(written_cell(row, column).text) for row in table.rows), default=0),
        )
        for column in table.visible_columns
    ]


def _css_class(table: Table, column: Column) -> str:
    """Return a column's CSS class.

    It is ``n`` for numbers with intervals or bars, ``n r`` for other numbers, ``s`` for short
    texts, and empty for longer texts.
    """
    if not is_numeric(column):
        longest = max((len(written_cell(row, column).whole) for row in table.rows), default=0)
        return "s" if longest <= _SHORT else ""
    has_interval = any(written_cell(row, column).interval for row in table.rows)
    return "n" if has_interval or column.kind is Kind.SHARE else "n r"


def _cell_groups(table: Table) -> list[list[list[_Cell]]]:
    """Return the cells of a table, as groups of rows of cells."""
    columns = _page_columns(table)
    return [
        [
            [
                _table_cell(row, column, row.mark if index == 0 else "")
                for index, column in enumerate(columns)
            ]
            for row in group_rows
        ]
        for group_rows in table.groups
    ]


def _table_cell(row: Row, column: _PageColumn, mark: str) -> _Cell:
    """Return a cell for the template, with the length of its bar in percent."""
    content = written_cell(row, column.column)
    bar_length = None
    if column.column.kind is Kind.SHARE and content.value is not None:
        bar_length = round(100 * min(max(content.value, 0), 1), 2)
    return _Cell(content, mark, column, _interval_ends(row, column.column), bar_length)


def _interval_ends(row: Row, column: Column) -> tuple[float, float] | None:
    cell = row.cells.get(column.key)
    return cell.interval if isinstance(cell, Figure) and cell.value is not None else None
