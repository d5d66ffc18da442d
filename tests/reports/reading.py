"""Look-ups of sections, tables, rows, cells and notes in a report."""

from __future__ import annotations

from mast_tui.figures.record import Figure
from mast_tui.reports.model import Note, Report, ReportSection, Row, Table


def section(report: Report, ident: str) -> ReportSection:
    return next(one for one in report.sections if one.id == ident)


def table(where: Report | ReportSection, ident: str) -> Table:
    return next(one for one in where.tables if one.id == ident)


def row(of: Table, ident: str) -> Row:
    return next(one for one in of.rows if one.id == ident)


def estimate(of: Row, key: str) -> Figure:
    cell = of.cells[key]
    assert isinstance(cell, Figure)
    return cell


def keys(of: Table) -> list[str]:
    """Return the keys of the columns that have a cell."""
    return [column.key for column in of.split_columns()[0]]


def notes(where: Report | ReportSection) -> list[Note]:
    """Return all notes, of all parts."""
    sections = where.sections if isinstance(where, Report) else ()
    return [note for part in (where, *sections, *where.tables) for note in part.notes]


def all_notes(where: Report | ReportSection) -> str:
    """Return all notes as one text."""
    return " ".join(note.text for note in notes(where))


def note(where: Report | ReportSection, reason: str) -> Note:
    return next(one for one in notes(where) if one.reason == reason)


def reasons(where: Report | ReportSection) -> set[str]:
    return {one.reason for one in notes(where)}


def detail(of: Row) -> str:
    return " ".join(of.detail)
