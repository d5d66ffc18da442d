"""A report as Markdown, with all texts escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mast_tui.reports.model import Chart, KeyFact, Note, Report, ReportSection, Table, Text
from mast_tui.reports.render.cells import as_sentence, is_numeric, written_cell
from mast_tui.safe_text import one_line

_MARKS: Final = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>#|~$&"})
_STARTS: Final = re.compile(r"(\s*\d*)([-+=.)])")
"""The start of a line that Markdown reads as a list item or as the underline of a heading."""


def plain(text: str) -> str:
    """Return a text on one line, escaped so that it has no Markdown markup."""
    return one_line(text).translate(_MARKS)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool] = ()
) -> list[str]:
    """Return the lines of a table in Markdown.

    Args:
        heads: The headings, escaped for Markdown.
        rows: The cells of each row, escaped for Markdown.
        right: Whether each column is aligned to the right; by default none is.
    """
    are_right = right or [False] * len(heads)
    rule = "".join("---:|" if is_right else "---|" for is_right in are_right)
    lines = [f"| {' | '.join(heads)} |", f"|{rule}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


def render_markdown(report: Report, *, level: int = 1) -> str:
    """Return a report as Markdown: tables with their captions and notes, without charts.

    Args:
        report: The report.
        level: The level of the report's heading; above 1 inside another text.
    """
    marks = "#" * level
    blocks = [
        f"{marks} {plain(report.title)}",
        _escaped_paragraph(report.about),
        _facts_list(report.facts),
        *_note_blocks(report.warnings),
    ]
    for section in report.sections:
        section_blocks = [block for block in _section_blocks(section, f"{marks}##") if block]
        if section_blocks and len(report.sections) > 1:
            blocks.append(f"{marks}# {plain(section.title)}")
        blocks += section_blocks
    blocks += _note_blocks(report.remarks)
    if report.methods:
        blocks += [f"{marks}# Methods", _escaped_paragraph(report.methods)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _section_blocks(section: ReportSection, marks: str) -> Iterator[str]:
    """Yield the blocks of a section: facts, warnings, tables and texts, then its other notes."""
    yield _facts_list(section.facts)
    yield from _note_blocks(section.warnings)
    for part in section.parts:
        if isinstance(part, Table):
            yield from _table_blocks(part)
        elif isinstance(part, Text):
            yield from _text_blocks(part, marks)
        else:
            assert isinstance(part, Chart)  # charts are left out
    yield from _note_blocks(section.remarks)


def _table_blocks(part: Table) -> Iterator[str]:
    """Yield the blocks of a table: warnings, caption, the table, then its other notes."""
    columns = part.visible_columns
    yield from _note_blocks(part.warnings)
    yield f"Table: {plain(as_sentence(part.title))} {plain(part.caption)}".rstrip()
    rows = []
    for row in part.rows:
        cells = [plain(written_cell(row, column).whole) for column in columns]
        cells[0] = plain(row.mark) + cells[0]
        rows.append(cells)
    yield "\n".join(
        table(
            [plain(column.title) for column in columns],
            rows,
            [is_numeric(column) for column in columns],
        )
    )
    yield from _note_blocks(part.remarks)


def _text_blocks(part: Text, marks: str) -> Iterator[str]:
    yield f"{marks} {plain(part.title)}"
    yield from map(_escaped_paragraph, part.paragraphs)
    for text, address in part.links:
        yield f"- {plain(text)}: {plain(address)}"


def _facts_list(facts: Sequence[KeyFact]) -> str:
    return "\n".join(
        f"- {plain(name)}: {plain(value)}{f' ({plain(more)})' if more else ''}"
        for name, value, more in facts
    )


def _note_blocks(notes: Iterable[Note]) -> Iterator[str]:
    for note in notes:
        yield f"**Note:** {plain(note.text)}" if note.warning else _escaped_paragraph(note.text)


def _escaped_paragraph(text: str) -> str:
    """Return a paragraph, escaped so that it does not begin a list."""
    return _STARTS.sub(r"\1\\\2", plain(text), count=1) if _STARTS.match(text) else plain(text)
