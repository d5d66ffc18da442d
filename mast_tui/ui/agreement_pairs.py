"""Every two annotators: κ between them as a matrix, and a cell of it in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_tui.safe_text import one_line
from mast_tui.ui.agreement_cells import LOOK_MARK, figure_cell, styled
from mast_tui.ui.agreement_words import table_words
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import Report

SELF: Final = "·"
"""What stands where a name meets itself."""

WIDEST: Final = 10
"""Cells of a name over its column."""


def matrix_columns(report: Report) -> tuple[Column, ...]:
    """A column per annotator, behind the one that names the rows."""
    names = report["annotators"]
    return (
        Column("name", "κ, all modes", shrinks=True, keeps=200),
        *(
            Column(f"with {place}", one_line(name, WIDEST), figure=True, keeps=100)
            for place, name in enumerate(names)
        ),
    )


def matrix_rows(report: Report) -> tuple[TableRow, ...]:
    """A row per annotator: κ with each other one over all modes pooled."""
    names = report["annotators"]
    rows = []
    for name in names:
        cells = {"name": one_line(name)}
        for place, other in enumerate(names):
            cells[f"with {place}"] = _cell(report, name, other)
        rows.append(TableRow(name, cells, styles=styled(cells) | {"name": "name"}))
    return tuple(rows)


def _cell(report: Report, name: str, other: str) -> str:
    pair = pair_of(report, name, other)
    if pair is None:
        return SELF
    return figure_cell(report["pooled"]["pairs"][pair]["cohen_kappa"])


def pair_of(report: Report, name: str, other: str) -> str | None:
    """The key of two annotators in the report, None for one with themselves."""
    known = report["pooled"]["pairs"]
    return next((key for key in (f"{name}|{other}", f"{other}|{name}") if key in known), None)


def pair_names(report: Report, pair: str) -> tuple[str, str]:
    """The two names behind a key of the report."""
    names = report["annotators"]
    return next((a, b) for a in names for b in names if f"{a}|{b}" == pair)


def cell_words(report: Report, name: str, other: str, *, pending: bool) -> str:
    """What a cell of the matrix rests on."""
    pair = pair_of(report, name, other)
    if pair is None:
        again = report["retests"].get(name)
        if again is None:
            return f"{name} with themselves. Choose another column for two people."
        return (
            f"{name} with themselves, on {again['n_traces']} traces labelled once more: "
            f"κ {figure_cell(again['cohen_kappa'])}. See the row '{name} again' on page 1."
        )
    words = table_words(
        report, report["pooled"]["pairs"][pair], pending=pending, about="All modes in one table: "
    )
    copied = [
        block for block in report["identical_blocks"] if {name, other} <= set(block["annotators"])
    ]
    if copied:
        traces = sum(len(block["traces"]) for block in copied)
        words = f"{LOOK_MARK} {traces} traces share blocks of verdicts, see Pooled.\n{words}"
    return words
