"""The tables of a report as LaTeX with booktabs, for ``\\input`` in a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
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
    # Control characters, which are in the text as their pictures.
    **{chr(0x2400 + code): rf"$\langle$U+{code:04X}$\rangle$" for code in range(0x20)},
    "␡": r"$\langle$U+007F$\rangle$",
}
_ANY: Final = re.compile(f"[{re.escape(''.join(_SPECIAL))}]")
_LIGATURE: Final = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")
"""The positions between two signs that fonts would join to another sign."""

_LETTERS_IN_TEXT_SIZE: Final = 72
"""The letters of a line that fit into the text width in the size of the text."""

_LETTERS_IN_SMALL_SIZE: Final = 96
"""The letters of a line that fit into the text width in a smaller size."""

_MOST_ROWS: Final = 40
"""Rows of a table that fit on a page, with its caption and notes."""

_LONG_WORDS: Final = 40
"""Letters from which on a column of text is broken into lines."""


def escaped(text: str) -> str:
    """Return the text in one line, with everything escaped that LaTeX would read as a command."""
    separated = _LIGATURE.sub("\0", one_line(text))
    return _ANY.sub(lambda match: _SPECIAL[match[0]], separated).replace("\0", "{}")


def render_latex(report: Report) -> str:
    """Return the tables of a report as LaTeX, with their captions, labels and notes.

    The notes on the report and on its sections are quotations above the tables (warnings) and below
    them (others). An empty column is left out, and the caption says so. A table that is too wide or
    too long for a page is split into several, each with the columns that name its rows. Charts and
    texts are left out.
    """
    blocks = [
        f"% {one_line(report.title)}: {one_line(report.about)}\n{_HEAD}".rstrip(),
        *_notes_quotation(report.title, (note for note in report.notes if note.warning)),
    ]
    for section in report.sections:
        blocks += _section_blocks(report, section)
    blocks += _notes_quotation(report.title, (note for note in report.notes if not note.warning))
    return "\n\n".join(blocks) + "\n"


def _section_blocks(report: Report, section: ReportSection) -> Iterator[str]:
    """Yield the LaTeX texts of a section: warnings, its tables, then its other notes."""
    if section.tables:
        yield f"% {one_line(section.title)}"
    yield from _notes_quotation(section.title, (note for note in section.notes if note.warning))
    for table in section.tables:
        label = f"tab:{_label_text(report.id)}-{_label_text(table.id)}"
        parts = [
            (groups, part_columns)
            for groups in _pages_of_rows(table)
            for part_columns in _column_parts(table)
        ]
        for number, (groups, columns) in enumerate(parts):
            part = replace(table, groups=groups)
            caption = _caption_text(table) if number == 0 else ""
            yield "\n".join(_table_lines(part, label, columns, caption, number, len(parts)))
    yield from _notes_quotation(section.title, (note for note in section.notes if not note.warning))


def _notes_quotation(title: str, notes: Iterable[Note]) -> Iterator[str]:
    """Yield one quotation with a title and all notes; nothing without notes."""
    paragraphs = [escaped(note.text) for note in notes]
    if paragraphs:
        heading = rf"\textbf{{{escaped(as_sentence(title))}}} "
        text = "\\par\n".join(paragraphs)
        yield f"\\begin{{quote}}\\footnotesize\n{heading}{text}\n\\end{{quote}}"


def _pages_of_rows(table: Table) -> Iterator[tuple[tuple[Row, ...], ...]]:
    """Split the rows of a table into parts that fit on a page, and yield each part's groups.

    If there are several parts, each is one group.
    """
    if len(table.rows) <= _MOST_ROWS:
        yield table.groups
        return
    for start in range(0, len(table.rows), _MOST_ROWS):
        yield (table.rows[start : start + _MOST_ROWS],)


def _column_parts(table: Table) -> Iterator[Sequence[Column]]:
    """Split the columns of a table into parts that fit into the width of a page.

    Each part begins with the columns that name the rows.
    """
    columns = table.split_columns()[0] or table.columns  # without the empty columns
    name_columns = columns[: name_column_count(columns)]
    part = list(name_columns)
    for column in columns[len(name_columns) :]:
        is_too_wide = _letter_count(table, [*part, column]) > _LETTERS_IN_SMALL_SIZE
        if len(part) > len(name_columns) and is_too_wide:
            yield part
            part = list(name_columns)
        part.append(column)
    yield part


def _label_text(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")


def _table_lines(
    table: Table,
    label: str,
    columns: Sequence[Column],
    caption_end: str,
    part_number: int,
    part_count: int,
) -> Iterator[str]:
    """Yield the lines of one part of a table.

    Args:
        table: The table with the rows of the part.
        label: The label of the first part; the others get its number too.
        columns: The columns of the part.
        caption_end: The text of the caption after the title.
        part_number: The number of the part, from 0.
        part_count: The number of all parts.
    """
    is_first = part_number == 0
    is_last = part_number == part_count - 1
    with_interval = {
        column.key
        for column in columns
        if any(written_cell(row, column).interval for row in table.rows)
    }
    letter_count = _letter_count(table, columns)
    title = table.title if part_count == 1 else f"{table.title} ({part_number + 1} of {part_count})"
    caption = f"{escaped(as_sentence(title))} {caption_end}".rstrip()
    yield r"\begin{table}[tbp]"
    yield r"\centering"
    yield rf"\caption[{{{escaped(title)}}}]{{{caption}}}"
    yield rf"\label{{{label if is_first else f'{label}-{part_number + 1}'}}}"
    for note in table.notes:
        if note.warning and is_first:
            yield rf"{{\footnotesize\textbf{{Note.}} {escaped(note.text)}\par\smallskip}}"
    if letter_count > _LETTERS_IN_SMALL_SIZE:
        yield r"\resizebox{\linewidth}{!}{%"
    elif letter_count > _LETTERS_IN_TEXT_SIZE:
        yield r"\footnotesize\setlength{\tabcolsep}{4pt}%"
    column_specs = "".join(
        _column_spec(table, column, column.key in with_interval) for column in columns
    )
    yield rf"\begin{{tabular}}{{@{{}}{column_specs}@{{}}}}"
    yield r"\toprule"
    yield _table_line(_heading_cell(column, column.key in with_interval) for column in columns)
    for group in filter(None, table.groups):
        yield r"\midrule"
        for row in group:
            mark = escaped(row.mark)
            cells = [_table_cell(row, column, column.key in with_interval) for column in columns]
            yield _table_line([mark + cells[0], *cells[1:]])
    yield r"\bottomrule"
    yield r"\end{tabular}" + ("}" if letter_count > _LETTERS_IN_SMALL_SIZE else "")
    notes_below = [escaped(note.text) for note in table.notes if not note.warning and is_last]
    if notes_below:
        text = r"\par ".join(notes_below)
        yield rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize\raggedright {text}}}"
    yield r"\end{table}"


def _caption_text(table: Table) -> str:
    """Return the text of a caption after the title; it names the columns without values."""
    paragraphs = [escaped(table.caption)]
    columns, empty = table.split_columns()
    if columns and empty:
        names = ", ".join(column.name or column.title for column in empty)
        paragraphs.append(f"Without values: {escaped(names)}.")
    return " ".join(filter(None, paragraphs))


def _letter_count(table: Table, columns: Sequence[Column]) -> int:
    """Return the approximate width of a line in letters."""
    return sum(2 + min(_longest_cell(table, column), _LONG_WORDS) for column in columns)


def _longest_cell(table: Table, column: Column) -> int:
    return max(len(column.title), *(len(written_cell(row, column).whole) for row in table.rows), 0)


def _column_spec(table: Table, column: Column, has_interval: bool) -> str:
    if not is_numeric(column):
        return "p{16em}" if _longest_cell(table, column) > _LONG_WORDS else "l"
    return r"r@{\hspace{0.4em}}l" if has_interval else "r"


def _heading_cell(column: Column, has_interval: bool) -> str:
    title = escaped(column.title)
    return rf"\multicolumn{{2}}{{c}}{{{title}}}" if has_interval else title


def _table_cell(row: Row, column: Column, has_interval: bool) -> str:
    """Return the LaTeX text of a cell.

    A column with intervals is two columns in LaTeX, of numbers and of intervals.
    """
    cell = written_cell(row, column)
    if not is_numeric(column):
        return escaped(cell.whole)
    if not has_interval:
        return _escaped_numbers(cell.whole)
    if cell.reason:
        return rf"\multicolumn{{2}}{{l}}{{{escaped(cell.reason)}}}"
    return f"{_escaped_numbers(cell.text)} & {_escaped_numbers(cell.interval)}"


def _escaped_numbers(text: str) -> str:
    return escaped(text).replace("-", "$-$")


def _table_line(cells: Iterable[str]) -> str:
    line = " & ".join(cells)
    # After a rule or the end of a row, [ and * would begin an argument.
    return ("{}" if line.lstrip().startswith(("[", "*")) else "") + line + r" \\"
