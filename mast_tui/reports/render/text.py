"""A report as aligned lines of text, within a width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Final

from rich.cells import cell_len, set_cell_size

from mast_tui.columns import padded
from mast_tui.reports.model import Chart, Column, Kind, Note, Report, ReportSection, Table, Text
from mast_tui.reports.render.cells import WITHHELD, Written, is_right, naming, written
from mast_tui.safe_text import one_line

GAP: Final = "  "
SHORTEST_NAME: Final = 12
"""The least width to which the names of rows are cut."""

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_BAR: Final = 6
_LOW: Final = 50
"""Columns with a lower ``keeps`` lose their intervals before names are cut."""


def render_text(report: Report, width: int | None) -> list[str]:
    """Write a report as lines: warnings first, then its tables, each with its notes.

    Folded parts and charts are left to other renderers. A caption or note is written once only,
    because lines are read from top to bottom.

    Args:
        report: The report.
        width: The number of cells that a line should not exceed, None for any length. Numbers are
            never cut: first columns with a low ``keeps`` lose their intervals, then names are cut,
            then whole columns are left out.
    """
    report = _once(report)
    lines = [
        *_wrapped(report.title, width),
        *_wrapped(report.about, width),
        *_facts(report.facts, width),
        *_notes((note for note in report.notes if note.warning), width),
    ]
    for section in report.sections:
        inside = _section(section, width)
        if inside and len(report.sections) > 1:
            lines += ["", _rule(section.title, width)]
        lines += inside if len(report.sections) > 1 else ["", *inside]
    below = _notes((note for note in report.notes if not note.warning), width)
    return [*lines, "", *below] if below else lines


def _once(report: Report) -> Report:
    """Leave out captions and notes that repeat those of a part above."""
    written_texts: set[str] = set()

    def first(text: str) -> bool:
        is_new = text not in written_texts
        written_texts.add(text)
        return is_new

    def table(part: Table) -> Table:
        caption = part.caption if first(part.caption) else ""
        return replace(part, caption=caption, notes=notes(part.notes))

    def notes(all_notes: Iterable[Note]) -> tuple[Note, ...]:
        return tuple(note for note in all_notes if first(note.text))

    def section(whole: ReportSection) -> ReportSection:
        open_parts = (part for part in whole.parts if isinstance(part, Chart) or not part.folded)
        parts = tuple(table(part) if isinstance(part, Table) else part for part in open_parts)
        return replace(whole, parts=parts, notes=notes(whole.notes))

    sections = tuple(map(section, report.sections))
    return replace(report, sections=sections, notes=notes(report.notes))


def _section(section: ReportSection, width: int | None) -> list[str]:
    warnings = (note for note in section.notes if note.warning)
    parts = [[*_facts(section.facts, width), *_notes(warnings, width)]]
    for part in section.parts:
        if isinstance(part, Chart):
            continue
        parts.append(_table(part, width) if isinstance(part, Table) else _text(part, width))
    parts.append(_notes((note for note in section.notes if not note.warning), width))
    lines: list[str] = []
    for part_lines in filter(None, parts):
        lines += ["", *part_lines] if lines else part_lines
    return lines


def _rule(title: str, width: int | None) -> str:
    head = f"── {one_line(title)} "
    width = cell_len(head) + 8 if width is None else width
    return padded(head, width) if cell_len(head) > width else head + "─" * (width - cell_len(head))


def _facts(facts: Iterable[tuple[str, str, str]], width: int | None) -> list[str]:
    sentences = [f"{name} {value}{f' ({more})' if more else ''}" for name, value, more in facts]
    return _wrapped("; ".join(sentences), width)


def _notes(notes: Iterable[Note], width: int | None) -> list[str]:
    return [line for note in notes for line in _wrapped(note.text, width)]


def _text(part: Text, width: int | None) -> list[str]:
    links = (f"{title}: {url}" for title, url in part.links)
    paragraphs = [part.title, *part.paragraphs, *links]
    return [line for paragraph in paragraphs for line in _wrapped(paragraph, width)]


def _wrapped(text: str, width: int | None) -> list[str]:
    """Break a sentence at spaces; a word that is longer than a line has a line of its own."""
    text = one_line(text)
    if not text:
        return []
    if width is None:
        return [text]
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and cell_len(joined) > width:
            lines.append(word)
        else:
            lines[-1] = joined
    return lines


def _table(table: Table, width: int | None) -> list[str]:
    shape = _Shape.from_table(table)
    for smaller in shape.smaller():
        if width is None or shape.width() <= width:
            break
        shape = smaller
    if width is not None:
        shape = shape.named_within(width)
    lines = [*_wrapped(table.title, width), *_notes(_warnings(table), width), *shape.lines()]
    with_values, _ = table.split_columns()
    left_out = [
        column.name or column.title for column in with_values if column not in shape.columns
    ]
    if left_out:
        lines += _wrapped(f"No room for: {', '.join(left_out)}.", width)
    bare = [column.title for column in shape.columns if shape.has_bared(column)]
    if bare:
        lines += _wrapped(f"No room for the intervals of: {', '.join(bare)}.", width)
    below = [*_wrapped(table.caption, width)]
    below += _notes((note for note in table.notes if not note.warning), width)
    return [*lines, "", *below] if below else lines


def _warnings(table: Table) -> Iterator[Note]:
    return (note for note in table.notes if note.warning)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A table of which some columns may have lost their bar or interval.

    Args:
        table: The table.
        cells: Its written cells, by row and by the keys of the columns.
        columns: The columns that are left.
        barred: The keys of columns with a bar.
        bare: The keys of columns without intervals.
        name: The most cells of a row's last name, and of a heading over narrower cells; None for
            any number.
    """

    table: Table
    cells: Sequence[Mapping[str, Written]]
    columns: tuple[Column, ...]
    barred: frozenset[str]
    bare: frozenset[str] = frozenset()
    name: int | None = None

    @classmethod
    def from_table(cls, table: Table) -> _Shape:
        """Return the shape of a whole table."""
        columns = table.split_columns()[0] or table.columns
        cells = [
            {column.key: _safe(written(row, column)) for column in columns} for row in table.rows
        ]
        shares = frozenset(column.key for column in columns if column.kind is Kind.SHARE)
        return cls(table, cells, columns, shares)

    def smaller(self) -> Iterator[_Shape]:
        """Yield ever narrower shapes: first without bars, then in the order of ``keeps``."""
        shape = replace(self, barred=frozenset())
        yield shape
        by_worth = sorted(self.columns[naming(self.columns) :], key=lambda column: column.keeps)
        low = [column for column in by_worth if column.keeps < _LOW]
        for column in low:
            shape = replace(shape, bare=shape.bare | {column.key})
            yield shape
        shape = replace(shape, name=SHORTEST_NAME)
        yield shape
        for column in by_worth[len(low) :]:
            shape = replace(shape, bare=shape.bare | {column.key})
            yield shape
        for column in by_worth[:-1]:
            remaining = tuple(other for other in shape.columns if other is not column)
            shape = replace(shape, columns=remaining)
            yield shape

    def named_within(self, width: int) -> _Shape:
        """Return the shape with the longest names that fit."""
        if self.name is None:
            return self
        return replace(self, name=self.name + max(0, width - self.width()))

    def has_bared(self, column: Column) -> bool:
        """Return whether a column has lost an interval."""
        return column.key in self.bare and any(
            written(row, column).interval not in ("", WITHHELD) for row in self.table.rows
        )

    def width(self) -> int:
        """Return the width of a line."""
        return self._total(self._widths())

    def lines(self) -> list[str]:
        """Return the heading, and the rows with a rule before each group."""
        widths = self._widths()
        number_widths = self._number_widths()
        heads = []
        for column, width in zip(self.columns, widths, strict=True):
            title = one_line(column.title)
            if is_right(column):
                # A heading is over the numbers, not over their intervals.
                title = " " * (number_widths[column.key] - cell_len(title)) + title
            heads.append(padded(title, width))
        lines = [(" " * self._marks() + GAP.join(heads)).rstrip()]
        rows = zip(self.table.rows, self.cells, strict=True)
        for group in filter(None, self.table.groups):
            lines.append("─" * self._total(widths))
            for row, cells in islice(rows, len(group)):
                mark = set_cell_size(one_line(row.mark), self._marks())
                lines.append(mark + self._line(cells, widths, number_widths))
        return lines

    def _line(
        self,
        cells: Mapping[str, Written],
        widths: Sequence[int],
        number_widths: Mapping[str, int],
    ) -> str:
        parts = []
        for start, end in self._runs(cells):
            column = self.columns[start]
            room = sum(widths[start:end]) + len(GAP) * (end - start - 1)
            cell = cells[column.key]
            text = cell.reason or self._cell_text(cell, column, number_widths[column.key])
            parts.append(padded(text, room))
        return GAP.join(parts).rstrip()

    def _cell_text(self, cell: Written, column: Column, number_width: int) -> str:
        """Write a cell with its bar and its interval, the number aligned to the right."""
        if not is_right(column) or not cell.text:
            return cell.text
        bar = self._bar(cell, column)
        room = number_width - cell_len(bar)
        interval = f" {cell.interval}" if cell.interval and column.key not in self.bare else ""
        return bar + " " * (room - cell_len(cell.text)) + cell.text + interval

    def _bar(self, cell: Written, column: Column) -> str:
        if column.key not in self.barred or cell.value is None:
            return ""
        full, eighths = divmod(round(min(max(cell.value, 0), 1) * _BAR * 8), 8)
        return ("█" * full + (_EIGHTHS[eighths] if eighths else "")).ljust(_BAR) + " "

    def _number_widths(self) -> dict[str, int]:
        """Return the width of bars and numbers of each column, without their intervals."""
        widths = {}
        for column in self.columns:
            cells = [row[column.key] for row in self.cells]
            texts = (self._bar(cell, column) + cell.text for cell in cells)
            wide = max(map(cell_len, texts), default=0)
            if column.key in self.bare or not any(cell.interval for cell in cells):
                wide = max(wide, self._head(column, wide))
            widths[column.key] = wide
        return widths

    def _head(self, column: Column, wide: int) -> int:
        """Return the width of a column's heading over cells of some width."""
        head = cell_len(one_line(column.title))
        return head if self.name is None else min(head, max(wide, SHORTEST_NAME))

    def _marks(self) -> int:
        return max((cell_len(one_line(row.mark)) for row in self.table.rows), default=0)

    def _total(self, widths: Sequence[int]) -> int:
        return self._marks() + sum(widths) + len(GAP) * (len(widths) - 1)

    def _widths(self) -> list[int]:
        """Return the widths of the columns; each reason fits over the cells that share it."""
        number_widths = self._number_widths()
        last_name = naming(self.columns) - 1
        widths = []
        for index, column in enumerate(self.columns):
            texts = (
                self._cell_text(cells[column.key], column, number_widths[column.key])
                for cells in self.cells
            )
            wide = max(map(cell_len, texts), default=0)
            if self.name is not None and index == last_name:
                wide = min(wide, self.name)
            widths.append(max(wide, self._head(column, wide)))
        for cells in self.cells:
            for start, end in self._runs(cells):
                room = sum(widths[start:end]) + len(GAP) * (end - start - 1)
                reason = cells[self.columns[start].key].reason
                widths[end - 1] += max(0, cell_len(reason) - room)
        return widths

    def _runs(self, cells: Mapping[str, Written]) -> list[tuple[int, int]]:
        """Return the ranges of neighbours with the same reason; any other cell is alone."""
        reasons = [cells[column.key].reason for column in self.columns]
        starts = [
            index
            for index, reason in enumerate(reasons)
            if not (index and reason and reasons[index - 1] == reason)
        ]
        return list(pairwise([*starts, len(reasons)]))


def _safe(cell: Written) -> Written:
    return replace(cell, text=one_line(cell.text), reason=one_line(cell.reason))
