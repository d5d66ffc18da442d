"""The tables of a report as LaTeX with booktabs, for ``\\input`` in a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from mast_tui.reports.model import Column, Note, Report, Row, Section, Table
from mast_tui.reports.render.cells import is_right, written
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
    # Control characters, which stand here as their pictures.
    **{chr(0x2400 + code): rf"$\langle$U+{code:04X}$\rangle$" for code in range(0x20)},
    "␡": r"$\langle$U+007F$\rangle$",
}
_ANY: Final = re.compile(f"[{re.escape(''.join(_SPECIAL))}]")
_LIGATURE: Final = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")
"""Between two signs that fonts would make one of another meaning."""

_ROOM, _SMALL_ROOM = 72, 96
"""Letters of a line that fit in common text width, and in a smaller size."""

_LONG_WORDS: Final = 40
"""Letters from which on a column of words is broken into lines."""


def escaped(text: str) -> str:
    """The text in one line, with nothing in it that LaTeX would take for a command."""
    apart = _LIGATURE.sub("\0", one_line(text))
    return _ANY.sub(lambda found: _SPECIAL[found[0]], apart).replace("\0", "{}")


def render_latex(report: Report) -> str:
    """Write the tables of a report as LaTeX, with their captions, labels and notes.

    What the whole report and its sections tell stands in paragraphs around them. A column that is
    empty everywhere is left out, and the caption says so. Drawings and texts are left out.
    """
    blocks = [
        f"% {one_line(report.title)}: {one_line(report.about)}\n{_HEAD}".rstrip(),
        *_paragraphs(note for note in report.notes if note.warning),
    ]
    for section in report.sections:
        blocks += _section(report, section)
    blocks += _paragraphs(note for note in report.notes if not note.warning)
    return "\n\n".join(blocks) + "\n"


def _section(report: Report, section: Section) -> Iterator[str]:
    if section.tables:
        yield f"% {one_line(section.title)}"
    yield from _paragraphs(note for note in section.notes if note.warning)
    for table in section.tables:
        yield "\n".join(_table(table, f"tab:{_label(report.id)}-{_label(table.id)}"))
    yield from _paragraphs(note for note in section.notes if not note.warning)


def _paragraphs(notes: Iterable[Note]) -> Iterator[str]:
    for note in notes:
        words = rf"\textbf{{Note.}} {escaped(note.text)}" if note.warning else escaped(note.text)
        yield rf"\noindent {words}\par"


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")


def _table(table: Table, label: str) -> Iterator[str]:
    columns, empty = table.shown()
    columns, empty = (columns, empty) if columns else (table.columns, ())
    beside = {one.key for one in columns if any(written(row, one).interval for row in table.rows)}
    title, letters = escaped(table.title), _letters(table, columns)
    yield r"\begin{table}[tbp]"
    yield r"\centering"
    yield rf"\caption[{{{title}}}]{{{_caption(table, empty)}}}"
    yield rf"\label{{{label}}}"
    for note in table.notes:
        if note.warning:
            yield rf"{{\footnotesize\textbf{{Note.}} {escaped(note.text)}\par\smallskip}}"
    if letters > _SMALL_ROOM:
        yield r"\resizebox{\linewidth}{!}{%"
    elif letters > _ROOM:
        yield r"\footnotesize\setlength{\tabcolsep}{4pt}%"
    spec = "".join(_spec(table, one, one.key in beside) for one in columns)
    yield rf"\begin{{tabular}}{{@{{}}{spec}@{{}}}}"
    yield r"\toprule"
    yield _line(_head(one, one.key in beside) for one in columns)
    for group in filter(None, table.groups):
        yield r"\midrule"
        for row in group:
            mark = escaped(row.mark)
            cells = [_cell(row, one, one.key in beside) for one in columns]
            yield _line([mark + cells[0], *cells[1:]])
    yield r"\bottomrule"
    yield r"\end{tabular}" + ("}" if letters > _SMALL_ROOM else "")
    below = [escaped(note.text) for note in table.notes if not note.warning]
    if below:
        words = r"\par ".join(below)
        yield rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize\raggedright {words}}}"
    yield r"\end{table}"


def _caption(table: Table, empty: tuple[Column, ...]) -> str:
    told = [f"{escaped(table.title)}.", escaped(table.caption)]
    if empty:
        told.append(
            f"Without values: {escaped(', '.join(one.name or one.title for one in empty))}."
        )
    return " ".join(filter(None, told))


def _letters(table: Table, columns: tuple[Column, ...]) -> int:
    """How wide a line is in letters, roughly."""
    return sum(2 + min(_longest(table, one), _LONG_WORDS) for one in columns)


def _longest(table: Table, column: Column) -> int:
    return max(len(column.title), *(len(written(row, column).whole) for row in table.rows), 0)


def _spec(table: Table, column: Column, has_interval: bool) -> str:
    if not is_right(column):
        return "p{16em}" if _longest(table, column) > _LONG_WORDS else "l"
    return r"r@{\hspace{0.4em}}l" if has_interval else "r"


def _head(column: Column, has_interval: bool) -> str:
    title = escaped(column.title)
    return rf"\multicolumn{{2}}{{c}}{{{title}}}" if has_interval else title


def _cell(row: Row, column: Column, has_interval: bool) -> str:
    cell = written(row, column)
    if not is_right(column):
        return escaped(cell.whole)
    if not has_interval:
        return _numbers(cell.whole)
    if cell.reason:
        return rf"\multicolumn{{2}}{{l}}{{{escaped(cell.reason)}}}"
    return f"{_numbers(cell.text)} & {_numbers(cell.interval)}"


def _numbers(text: str) -> str:
    return escaped(text).replace("-", "$-$")


def _line(cells: Iterable[str]) -> str:
    line = " & ".join(cells)
    # After a rule or the end of a row, these would be an argument.
    return ("{}" if line.lstrip().startswith(("[", "*")) else "") + line + r" \\"
