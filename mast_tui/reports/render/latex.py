"""The tables of a report as LaTeX with booktabs, for ``\\input`` in a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from mast_tui.reports.model import Column, Note, Report, ReportSection, Row, Table
from mast_tui.reports.render.cells import as_sentence, is_numeric, name_column_count, written_cell
from mast_tui.safe_text import one_line

_HEAD: Final = r"""% Needs in the preamble:
%   \usepackage[T1]{fontenc}
%   \usepackage{booktabs}
%   \usepackage{graphicx}
%   \usepackage{amssymb}
% Names in other scripts than Latin need XeLaTeX or LuaLaTeX, and a font that has them.
"""

_SPECIAL: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\textellipsis{}",
    "·": r"\textperiodcentered{}",
    "›": r"\guilsinglright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "\u00a0": "~",
    "×": r"$\times$",
    "−": "$-$",
    "⁻": "$^{-}$",
    "⁺": "$^{+}$",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "⏎": r"$\hookleftarrow$",
    "⟨": r"$\langle$",
    "⟩": r"$\rangle$",
    "∞": r"$\infty$",
    "²": "$^{2}$",
    "∩": r"$\cap$",
    "∪": r"$\cup$",
    "Σ": r"$\Sigma$",
    "▲": r"$\blacktriangle$",
    "○": r"$\circ$",
    "●": r"$\bullet$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "Δ": r"$\Delta$",
    "ε": r"$\varepsilon$",
    "θ": r"$\theta$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "φ": r"$\varphi$",
    "χ": r"$\chi$",
    "ω": r"$\omega$",
    # The pictures of control characters.
    **{chr(0x2400 + code): rf"$\langle$U+{code:04X}$\rangle$" for code in range(0x20)},
    "␡": r"$\langle$U+007F$\rangle$",
}
_ANY: Final = re.compile(f"[{re.escape(''.join(_SPECIAL))}]")
_LIGATURE: Final = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")
"""The positions between two characters that fonts would join."""

_LETTERS_IN_TEXT_SIZE: Final = 72
"""The letters of a line in the size of the text."""

_LETTERS_IN_SMALL_SIZE: Final = 96
"""The letters of a line in a smaller size."""

_MOST_ROWS: Final = 40
"""The most rows of a table that fit on a page, with its caption and notes."""

_LONG_WORDS: Final = 40
"""The most letters of a column of text without line breaks."""


def escaped(text: str) -> str:
    """Return a text on one line, with all LaTeX commands escaped."""
    separated = _LIGATURE.sub("\0", one_line(text))
    return _ANY.sub(lambda match: _SPECIAL[match[0]], separated).replace("\0", "{}")


def render_latex(report: Report) -> str:
    """Return the tables of a report as LaTeX, with their captions, labels and notes.

    The notes on the report and on its sections are quotations above the tables (warnings) and below
    them (others). A table that is too large for a page is split. Charts and texts are left out.
    """
    blocks = [
        f"% {one_line(report.title)}: {one_line(report.about)}\n{_HEAD}".rstrip(),
        *_notes_quotation(report.title, report.warnings),
    ]
    for section in report.sections:
        blocks += _section_blocks(report, section)
    blocks += _notes_quotation(report.title, report.remarks)
    return "\n\n".join(blocks) + "\n"


def _section_blocks(report: Report, section: ReportSection) -> Iterator[str]:
    """Yield the LaTeX texts of a section: warnings, its tables, then its other notes."""
    if section.tables:
        yield f"% {one_line(section.title)}"
    yield from _notes_quotation(section.title, section.warnings)
    for table in section.tables:
        label = f"tab:{_label_text(report.id)}-{_label_text(table.id)}"
        for part in _parts_of(table):
            yield "\n".join(_part_lines(part, label))
    yield from _notes_quotation(section.title, section.remarks)


def _notes_quotation(title: str, notes: Iterable[Note]) -> Iterator[str]:
    """Yield one quotation with a title and all notes; nothing without notes."""
    paragraphs = [escaped(note.text) for note in notes]
    if paragraphs:
        heading = rf"\textbf{{{escaped(as_sentence(title))}}} "
        text = "\\par\n".join(paragraphs)
        yield f"\\begin{{quote}}\\footnotesize\n{heading}{text}\n\\end{{quote}}"


@dataclass(frozen=True)
class _Part:
    """A part of a table that fits on a page.

    Attributes:
        table: The whole table.
        groups: The groups of rows of the part.
        columns: The columns of the part.
        number: The number of the part, from 1.
        count: The number of all parts.
    """

    table: Table
    groups: tuple[tuple[Row, ...], ...]
    columns: Sequence[Column]
    number: int
    count: int

    @property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return [row for group in self.groups for row in group]

    @property
    def title(self) -> str:
        """The title of the table, with the number of the part if there are several."""
        title = self.table.title
        return title if self.count == 1 else f"{title} ({self.number} of {self.count})"

    @cached_property
    def letter_count(self) -> int:
        """The approximate width of a line in letters."""
        return _letter_count(self.rows, self.columns)

    @cached_property
    def keys_with_interval(self) -> frozenset[str]:
        """The keys of columns with intervals, which are two columns in LaTeX."""
        return frozenset(
            column.key
            for column in self.columns
            if any(written_cell(row, column).interval for row in self.rows)
        )

    def column_spec(self, column: Column) -> str:
        """Return the specification of a column in the argument of ``tabular``."""
        if not is_numeric(column):
            return "p{16em}" if _longest_cell(self.rows, column) > _LONG_WORDS else "l"
        return r"r@{\hspace{0.4em}}l" if column.key in self.keys_with_interval else "r"

    def heading(self, column: Column) -> str:
        """Return the LaTeX text of a column's heading."""
        title = escaped(column.title)
        return (
            rf"\multicolumn{{2}}{{c}}{{{title}}}"
            if column.key in self.keys_with_interval
            else title
        )

    def cell(self, row: Row, column: Column) -> str:
        """Return the LaTeX text of a cell.

        Args:
            row: The row of the cell.
            column: Its column.
        """
        cell = written_cell(row, column)
        if not is_numeric(column):
            return escaped(cell.whole)
        if column.key not in self.keys_with_interval:
            return _escaped_numbers(cell.whole)
        if cell.reason:
            return rf"\multicolumn{{2}}{{l}}{{{escaped(cell.reason)}}}"
        return f"{_escaped_numbers(cell.text)} & {_escaped_numbers(cell.interval)}"


def _parts_of(table: Table) -> Iterator[_Part]:
    """Split a table into parts that fit on a page."""
    parts = [
        (groups, columns) for groups in _pages_of_rows(table) for columns in _column_parts(table)
    ]
    for number, (groups, columns) in enumerate(parts, start=1):
        yield _Part(table, groups, columns, number, len(parts))


def _pages_of_rows(table: Table) -> Iterator[tuple[tuple[Row, ...], ...]]:
    """Split the rows of a table into parts that fit on a page; yield the groups of each part."""
    if len(table.rows) <= _MOST_ROWS:
        yield table.groups
        return
    # Each of several parts is one group.
    for start in range(0, len(table.rows), _MOST_ROWS):
        yield (table.rows[start : start + _MOST_ROWS],)


def _column_parts(table: Table) -> Iterator[Sequence[Column]]:
    """Split the columns of a table into parts that fit into the width of a page.

    Each part begins with the columns that name the rows.
    """
    columns = table.visible_columns
    name_columns = columns[: name_column_count(columns)]
    part = list(name_columns)
    for column in columns[len(name_columns) :]:
        is_too_wide = _letter_count(table.rows, [*part, column]) > _LETTERS_IN_SMALL_SIZE
        if len(part) > len(name_columns) and is_too_wide:
            yield part
            part = list(name_columns)
        part.append(column)
    yield part


def _label_text(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")


def _part_lines(part: _Part, label: str) -> Iterator[str]:
    """Yield the lines of a part of a table; the first part has the caption, the last the remarks.

    ``label`` is the label of the first part; other parts add their number.
    """
    table = part.table
    is_first = part.number == 1
    caption = escaped(as_sentence(part.title))
    if is_first:
        caption = f"{caption} {_caption_text(table)}".rstrip()
    yield r"\begin{table}[tbp]"
    yield r"\centering"
    yield rf"\caption[{{{escaped(part.title)}}}]{{{caption}}}"
    yield rf"\label{{{label if is_first else f'{label}-{part.number}'}}}"
    if is_first:
        for note in table.warnings:
            yield rf"{{\footnotesize\textbf{{Note.}} {escaped(note.text)}\par\smallskip}}"
    yield from _tabular_lines(part)
    remarks = [escaped(note.text) for note in table.remarks]
    if remarks and part.number == part.count:
        text = r"\par ".join(remarks)
        yield rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize\raggedright {text}}}"
    yield r"\end{table}"


def _tabular_lines(part: _Part) -> Iterator[str]:
    """Yield the headings and rows of a part, in a smaller size for long lines."""
    is_scaled = part.letter_count > _LETTERS_IN_SMALL_SIZE
    if is_scaled:
        yield r"\resizebox{\linewidth}{!}{%"
    elif part.letter_count > _LETTERS_IN_TEXT_SIZE:
        yield r"\footnotesize\setlength{\tabcolsep}{4pt}%"
    yield rf"\begin{{tabular}}{{@{{}}{''.join(map(part.column_spec, part.columns))}@{{}}}}"
    yield r"\toprule"
    yield _table_line(map(part.heading, part.columns))
    for group in filter(None, part.groups):
        yield r"\midrule"
        for row in group:
            first, *others = (part.cell(row, column) for column in part.columns)
            yield _table_line([escaped(row.mark) + first, *others])
    yield r"\bottomrule"
    yield r"\end{tabular}" + ("}" if is_scaled else "")


def _caption_text(table: Table) -> str:
    """Return the text of a caption after the title, with the names of empty columns."""
    paragraphs = [escaped(table.caption)]
    columns, empty = table.split_columns()
    if columns and empty:
        names = ", ".join(column.name or column.title for column in empty)
        paragraphs.append(f"Without values: {escaped(names)}.")
    return " ".join(filter(None, paragraphs))


def _letter_count(rows: Sequence[Row], columns: Sequence[Column]) -> int:
    """Return the approximate width of a line in letters."""
    return sum(2 + min(_longest_cell(rows, column), _LONG_WORDS) for column in columns)


def _longest_cell(rows: Sequence[Row], column: Column) -> int:
    return max(len(column.title), *(len(written_cell(row, column).whole) for row in rows), 0)


def _escaped_numbers(text: str) -> str:
    return escaped(text).replace("-", "$-$")


def _table_line(cells: Iterable[str]) -> str:
    line = " & ".join(cells)
    # LaTeX would read [ or * at the start of a row as an argument.
    return ("{}" if line.lstrip().startswith(("[", "*")) else "") + line + r" \\"
