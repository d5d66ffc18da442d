"""Short ways to look into a report."""

from __future__ import annotations

from mast_tui.reports.model import Estimate, Note, Report, ReportSection, Row, Table


def section(report: Report, ident: str) -> ReportSection:
    return next(one for one in report.sections if one.id == ident)


def table(where: Report | ReportSection, ident: str) -> Table:
    return next(one for one in where.tables if one.id == ident)


def row(of: Table, ident: str) -> Row:
    return next(one for one in of.rows if one.id == ident)


def estimate(of: Row, key: str) -> Estimate:
    found = of.cells[key]
    assert isinstance(found, Estimate)
    return found


def keys(of: Table) -> list[str]:
    """The keys of the columns that hold something."""
    return [column.key for column in of.split_columns()[0]]


def notes(where: Report | ReportSection) -> list[Note]:
    """Every note there, of all its parts."""
    inside = where.sections if isinstance(where, Report) else ()
    found = [*where.notes, *(note for one in inside for note in one.notes)]
    return [*found, *(note for one in where.tables for note in one.notes)]


def told(where: Report | ReportSection) -> str:
    """All notes in one text."""
    return " ".join(note.text for note in notes(where))


def note(where: Report | ReportSection, reason: str) -> Note:
    return next(one for one in notes(where) if one.reason == reason)


def reasons(where: Report | ReportSection) -> set[str]:
    return {one.reason for one in notes(where)}


def detail(of: Row) -> str:
    return " ".join(of.detail)
