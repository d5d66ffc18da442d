"""A report as aligned lines of text, within a width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import Final

from rich.cells import cell_len, set_cell_size

from mast_tui.columns import padded, wrapped_lines
from mast_tui.reports.model import (
    Chart,
    Column,
    KeyFact,
    Kind,
    Note,
    Report,
    ReportSection,
    Table,
    Text,
)
from mast_tui.reports.render.cells import (
    NONE,
    WITHHELD,
    Written,
    is_numeric,
    name_column_count,
    written_cell,
)
from mast_tui.safe_text import one_line

GAP: Final = "  "
SHORTEST_NAME: Final = 12
"""The least width of a cut name."""

_JOINED_END: Final = f" {NONE}"
"""The end of a reason that extends over several columns."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_BAR: Final = 6
_LOW: Final = 50
"""The priority below which columns lose their intervals before names are cut."""


def render_text(report: Report, width: int | None) -> list[str]:
    """Return a report as lines: warnings first, then its tables, each with its notes.

    Folded parts and charts are left out.

    Args:
        report: The report.
        width: The greatest width of a line; None for any width. If space is short, intervals are
            dropped, names are cut, and columns are left out. Numbers are never cut.
    """
    report = _without_repeated_texts(report)
    lines = [
        *_wrapped_lines(report.title, width),
        *_wrapped_lines(report.about, width),
        *_fact_lines(report.facts, width),
        *_note_lines(report.warnings, width),
    ]
    has_headings = len(report.sections) > 1
    for section in report.sections:
        section_lines = _section_lines(section, width)
        if not has_headings:
            lines.append("")
        elif section_lines:
            lines += ["", _heading_rule(section.title, width)]
        lines += section_lines
    note_lines = _note_lines(report.remarks, width)
    return [*lines, "", *note_lines] if note_lines else lines


def _without_repeated_texts(report: Report) -> Report:
    """Return the report without folded parts, and with each caption and note only once."""
    earlier_texts: set[str] = set()

    def is_new(text: str) -> bool:
        """Return whether a text occurs for the first time, and record it."""
        is_repeated = text in earlier_texts
        earlier_texts.add(text)
        return not is_repeated

    def new_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
        return tuple(note for note in notes if is_new(note.text))

    def shortened_table(table: Table) -> Table:
        return replace(
            table,
            caption=table.caption if is_new(table.caption) else "",
            notes=new_notes(table.notes),
        )

    def shortened_section(section: ReportSection) -> ReportSection:
        open_parts = (part for part in section.parts if isinstance(part, Chart) or not part.folded)
        parts = tuple(
            shortened_table(part) if isinstance(part, Table) else part for part in open_parts
        )
        return replace(section, parts=parts, notes=new_notes(section.notes))

    return replace(
        report,
        sections=tuple(map(shortened_section, report.sections)),
        notes=new_notes(report.notes),
    )


def _section_lines(section: ReportSection, width: int | None) -> list[str]:
    """Return the lines of a section: facts, warnings, tables and texts, then its other notes."""
    blocks = [[*_fact_lines(section.facts, width), *_note_lines(section.warnings, width)]]
    for part in section.parts:
        if isinstance(part, Table):
            blocks.append(_table_lines(part, width))
        elif isinstance(part, Text):
            blocks.append(_text_lines(part, width))
    blocks.append(_note_lines(section.remarks, width))
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += ["", *block] if lines else block
    return lines


def _heading_rule(title: str, width: int | None) -> str:
    """Return a heading: a horizontal line with the title near its start; a long title is cut."""
    heading = f"── {one_line(title)} "
    width = cell_len(heading) + 8 if width is None else width
    if cell_len(heading) > width:
        return padded(heading, width)
    return heading + "─" * (width - cell_len(heading))


def _fact_lines(facts: Iterable[KeyFact], width: int | None) -> list[str]:
    sentences = [f"{name} {value}{f' ({more})' if more else ''}" for name, value, more in facts]
    return _wrapped_lines("; ".join(sentences), width)


def _note_lines(notes: Iterable[Note], width: int | None) -> list[str]:
    return [line for note in notes for line in _wrapped_lines(note.text, width)]


def _text_lines(part: Text, width: int | None) -> list[str]:
    links = (f"{title}: {url}" for title, url in part.links)
    return [
        line
        for paragraph in [part.title, *part.paragraphs, *links]
        for line in _wrapped_lines(paragraph, width)
    ]


def _wrapped_lines(text: str, width: int | None) -> list[str]:
    return wrapped_lines(one_line(text), width)


def _table_lines(table: Table, width: int | None) -> list[str]:
    """Return the lines of a table in the widest shape that fits, with its caption and notes."""
    shape = _Shape.fitting(table, width)
    lines = [
        *_wrapped_lines(table.title, width),
        *_note_lines(table.warnings, width),
        *shape.lines(),
    ]
    for sentence in shape.omissions():
        lines += _wrapped_lines(sentence, width)
    lines_below = [*_wrapped_lines(table.caption, width), *_note_lines(table.remarks, width)]
    return [*lines, "", *lines_below] if lines_below else lines


@dataclass(frozen=True, slots=True)
class _Shape:
    """A table, of which some columns may have lost their bar or interval.

    Args:
        table: The table.
        cells: Its written cells, by row and by the keys of the columns.
        columns: The remaining columns.
        with_bar: The keys of columns with a bar.
        without_interval: The keys of columns without intervals.
        name_width: The greatest width of the last column of names, and of headings wider than their
            cells; None for any width.
    """

    table: Table
    cells: Sequence[Mapping[str, Written]]
    columns: tuple[Column, ...]
    with_bar: frozenset[str]
    without_interval: frozenset[str] = frozenset()
    name_width: int | None = None

    @classmethod
    def fitting(cls, table: Table, width: int | None) -> _Shape:
        """Return the widest shape of a table that fits, or else the narrowest.

        Args:
            table: The table.
            width: The greatest width of a line; None for any width.
        """
        columns = table.visible_columns
        cells = [
            {column.key: _safe_cell(written_cell(row, column)) for column in columns}
            for row in table.rows
        ]
        shares = frozenset(column.key for column in columns if column.kind is Kind.SHARE)
        widest = shape = cls(table, cells, columns, shares)
        if width is None:
            return widest
        for shape in chain([widest], widest.narrower_shapes()):
            if shape.width() <= width:
                break
        return shape.named_within(width)

    def narrower_shapes(self) -> Iterator[_Shape]:
        """Yield narrower and narrower shapes.

        They lose, in this order:

        - the bars,
        - the intervals of columns with a low ``priority``, one after the other,
        - the ends of long names,
        - the intervals of other columns, one after the other,
        - whole columns, the lowest ``priority`` first.
        """
        shape = replace(self, with_bar=frozenset())
        yield shape
        by_priority = sorted(
            self.columns[name_column_count(self.columns) :], key=lambda column: column.priority
        )
        low_columns = [column for column in by_priority if column.priority < _LOW]
        for column in low_columns:
            shape = replace(shape, without_interval=shape.without_interval | {column.key})
            yield shape
        shape = replace(shape, name_width=SHORTEST_NAME)
        yield shape
        for column in by_priority[len(low_columns) :]:
            shape = replace(shape, without_interval=shape.without_interval | {column.key})
            yield shape
        for dropped in by_priority[:-1]:
            shape = replace(
                shape, columns=tuple(column for column in shape.columns if column is not dropped)
            )
            yield shape

    def named_within(self, width: int) -> _Shape:
        """Return the shape with the longest names that fit."""
        if self.name_width is None:
            return self
        return replace(self, name_width=self.name_width + max(0, width - self.width()))

    def omissions(self) -> Iterator[str]:
        """Yield sentences on the columns and intervals left out for lack of room."""
        with_values, _ = self.table.split_columns()
        dropped = [
            column.name or column.title for column in with_values if column not in self.columns
        ]
        if dropped:
            yield f"Columns left out (the window is too narrow): {', '.join(dropped)}."
        titles = [column.title for column in self.columns if self._has_dropped_interval(column)]
        if titles:
            yield f"Intervals left out (the window is too narrow): {', '.join(titles)}."

    def _has_dropped_interval(self, column: Column) -> bool:
        return column.key in self.without_interval and any(
            written_cell(row, column).interval not in ("", WITHHELD) for row in self.table.rows
        )

    def width(self) -> int:
        """Return the width of a line."""
        return self._total_width(self._column_widths())

    def lines(self) -> list[str]:
        """Return the line of headings, and the rows, with a horizontal line before each group."""
        widths = self._column_widths()
        text_widths = self._text_widths()
        heads = []
        for column, width in zip(self.columns, widths, strict=True):
            title = one_line(column.title)
            if is_numeric(column):
                # The heading ends with the numbers, before their intervals.
                title = " " * (text_widths[column.key] - cell_len(title)) + title
            heads.append(padded(title, width))
        lines = [(" " * self._mark_width() + GAP.join(heads)).rstrip()]
        rows = zip(self.table.rows, self.cells, strict=True)
        for group in filter(None, self.table.groups):
            lines.append("─" * self._total_width(widths))
            # The iterator runs over the rows of all groups.
            for row, cells in islice(rows, len(group)):
                lines.append(
                    set_cell_size(one_line(row.mark), self._mark_width())
                    + self._row_line(cells, widths, text_widths)
                )
        return lines

    def _row_line(
        self,
        cells: Mapping[str, Written],
        widths: Sequence[int],
        text_widths: Mapping[str, int],
    ) -> str:
        """Return the line of a row; cells of a joined range have one text."""
        parts = []
        for start, end in self._joined_ranges(cells):
            column = self.columns[start]
            range_width = sum(widths[start:end]) + len(GAP) * (end - start - 1)
            cell = cells[column.key]
            text = cell.reason or self._cell_text(cell, column, text_widths[column.key])
            if cell.reason and end - start > 1:
                text = f"{padded(text, range_width - len(_JOINED_END))}{_JOINED_END}"
            parts.append(padded(text, range_width))
        return GAP.join(parts).rstrip()

    def _cell_text(self, cell: Written, column: Column, text_width: int) -> str:
        """Return the text of a cell: its bar, its number aligned to the right, and its interval.

        ``text_width`` is the width of the column's bar and text together, without intervals.
        """
        if not is_numeric(column) or not cell.text:
            return cell.text
        bar = self._bar_text(cell, column)
        text_room = text_width - cell_len(bar)
        interval = (
            f" {cell.interval}" if cell.interval and column.key not in self.without_interval else ""
        )
        return bar + " " * (text_room - cell_len(cell.text)) + cell.text + interval

    def _bar_text(self, cell: Written, column: Column) -> str:
        """Return a bar for a share, in eighths of a cell; empty for a column without bars."""
        if column.key not in self.with_bar or cell.value is None:
            return ""
        full, eighths = divmod(round(min(max(cell.value, 0), 1) * _BAR * 8), 8)
        return ("█" * full + (_EIGHTHS[eighths] if eighths else "")).ljust(_BAR) + " "

    def _text_widths(self) -> dict[str, int]:
        """Return the width of each column's bars and texts, without intervals, by key."""
        widths = {}
        for column in self.columns:
            cells = [row[column.key] for row in self.cells]
            widest = max(
                map(cell_len, (self._bar_text(cell, column) + cell.text for cell in cells)),
                default=0,
            )
            # A heading may extend over intervals. Without intervals, the texts need its width.
            if column.key in self.without_interval or not any(cell.interval for cell in cells):
                widest = max(widest, self._heading_width(column, widest))
            widths[column.key] = widest
        return widths

    def _heading_width(self, column: Column, cell_width: int) -> int:
        """Return the width of a column's heading.

        If names are cut, headings are cut to the width of the cells.
        """
        title_width = cell_len(one_line(column.title))
        if self.name_width is None:
            return title_width
        return min(title_width, max(cell_width, SHORTEST_NAME))

    def _mark_width(self) -> int:
        return max((cell_len(one_line(row.mark)) for row in self.table.rows), default=0)

    def _total_width(self, widths: Sequence[int]) -> int:
        return self._mark_width() + sum(widths) + len(GAP) * (len(widths) - 1)

    def _column_widths(self) -> list[int]:
        """Return the widths of the columns, with room for the reasons in joined ranges."""
        text_widths = self._text_widths()
        last_name_index = name_column_count(self.columns) - 1
        widths = []
        for index, column in enumerate(self.columns):
            texts = (
                self._cell_text(cells[column.key], column, text_widths[column.key])
                for cells in self.cells
            )
            widest = max(map(cell_len, texts), default=0)
            if self.name_width is not None and index == last_name_index:
                widest = min(widest, self.name_width)
            widths.append(max(widest, self._heading_width(column, widest)))
        for cells in self.cells:
            for start, end in self._joined_ranges(cells):
                range_width = sum(widths[start:end]) + len(GAP) * (end - start - 1)
                reason = cells[self.columns[start].key].reason
                end_width = len(_JOINED_END) if reason and end - start > 1 else 0
                widths[end - 1] += max(0, cell_len(reason) + end_width - range_width)
        return widths

    def _joined_ranges(self, cells: Mapping[str, Written]) -> list[tuple[int, int]]:
        """Join neighbouring cells of a row that have no value for the same reason.

        The result has ranges of columns as (start, end); any other cell is a range of its own.
        """
        reasons = [cells[column.key].reason for column in self.columns]
        starts = [
            index
            for index, reason in enumerate(reasons)
            if index == 0 or not reason or reason != reasons[index - 1]
        ]
        return list(pairwise([*starts, len(reasons)]))


def _safe_cell(cell: Written) -> Written:
    return replace(cell, text=one_line(cell.text), reason=one_line(cell.reason))
