"""The agreement report as aligned lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, cast

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from mast_tui.agreement.coefficients import CoefficientJson
    from mast_tui.agreement.study import CoefficientsJson, Report, TableJson

# Where κ is called low although raw agreement is high because one answer is nearly always given.
# The bounds are this project's own: κ under 0.4 is what Landis and Koch call at most 'fair'.
_LOW_KAPPA = 0.4
_HIGH_RAW = 0.8
_EXTREME_PREVALENCE = 0.2

_GAP = "  "
_PARADOX_MARK = "*"
_SHORTEST_NAME = 12


def undefined_in_words(reason: str) -> str:
    """Why there is no figure, as shown in its place: ``— no variance``."""
    return f"— {reason.replace('_', ' ')}"


def is_kappa_paradox(figures: TableJson) -> bool:
    """Whether κ is low only because nearly all verdicts are the same (Feinstein, Cicchetti 1990).

    That is: raw agreement of 0.8 or more, κ under 0.4, and on average 'present' in at most a
    fifth, or at least four fifths, of the verdicts.
    """
    kappa, raw = figures["cohen_kappa"]["value"], figures["raw_agreement"]["value"]
    shares = [p for p in figures["prevalence"].values() if p is not None]
    if kappa is None or raw is None or not shares:
        return False
    mean = sum(shares) / len(shares)
    return kappa < _LOW_KAPPA and raw >= _HIGH_RAW and min(mean, 1 - mean) <= _EXTREME_PREVALENCE


def render_table(report: Report, width: int | None = None) -> list[str]:
    """The report as lines: a table of one row per mode, then macro and pooled, then notes.

    ``width`` is how many cells a line of the table should not exceed; mode names are cut for it,
    figures never. Names are written as they are: whoever shows the lines passes them through
    ``safe_text``.
    """
    many = len(report["annotators"]) > 2
    columns = _columns(many)
    rows = [
        _Row((code, mode["name"], str(mode["n"]), _prevalence(mode)), _cells(mode, columns, mode))
        for code, mode in report["modes"].items()
    ]
    pooled, macro = report["pooled"], report["macro"]
    totals = [
        _Row(("", "macro", "", ""), _cells(macro, columns)),
        _Row(("", "  of modes", "", ""), tuple(str(macro["modes_defined"][k]) for k, _ in columns)),
        _Row(
            ("", "pooled", str(pooled["n"]), _prevalence(pooled)), _cells(pooled, columns, pooled)
        ),
    ]
    head = _Row(("", "mode", "n", "present"), tuple(title for _, title in columns))
    lines = _aligned(head, [rows, totals], width)
    notes = _notes(report, many)
    if width is not None:
        notes = [line for note in notes for line in wrap(note, width)]
    return [*lines, "", *notes]


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of the table: code, name, n and prevalence, and a cell per coefficient."""

    words: tuple[str, str, str, str]
    figures: tuple[str, ...]


def _columns(many: bool) -> tuple[tuple[str, str], ...]:
    fleiss = (("fleiss_kappa", "Fleiss κ"),) if many else ()
    return (
        ("raw_agreement", "raw"),
        ("negative_agreement", "Pneg"),
        ("positive_agreement", "Ppos"),
        ("cohen_kappa", "mean κ" if many else "κ"),
        *fleiss,
        ("krippendorff_alpha", "α"),
        ("gwet_ac1", "AC1"),
    )


def _cells(
    figures: CoefficientsJson,
    columns: Sequence[tuple[str, str]],
    marked: TableJson | None = None,
) -> tuple[str, ...]:
    by_name = cast("Mapping[str, CoefficientJson]", figures)
    paradox = marked is not None and is_kappa_paradox(marked)
    cells = []
    for key, _ in columns:
        value = by_name[key]["value"]
        if value is None:
            cells.append(undefined_in_words(by_name[key].get("undefined", "undefined")))
        else:
            mark = _PARADOX_MARK if paradox and key == "cohen_kappa" else ""
            cells.append(f"{value:.3f}{mark}")
    return tuple(cells)


def _prevalence(figures: TableJson) -> str:
    """Each annotator's share of 'present'; of three or more the lowest and the highest."""
    shares = list(figures["prevalence"].values())
    if len(shares) > 2:
        known = [p for p in shares if p is not None]
        return f"{min(known):.2f}–{max(known):.2f}" if known else "—"
    return "/".join("—" if p is None else f"{p:.2f}" for p in shares)


def _aligned(head: _Row, groups: Sequence[Sequence[_Row]], width: int | None) -> list[str]:
    rows = [head, *(row for group in groups for row in group)]
    words = [max(cell_len(row.words[i]) for row in rows) for i in range(len(head.words))]
    figures = _figure_widths(rows)
    total = sum(words) + sum(figures) + len(_GAP) * (len(words) + len(figures) - 1)
    if width is not None and total > width:
        words[1] = max(_SHORTEST_NAME, words[1] - (total - width))
    rule = "─" * (sum(words) + sum(figures) + len(_GAP) * (len(words) + len(figures) - 1))
    lines = [_line(head, words, figures)]
    for group in groups:
        lines += [rule, *(_line(row, words, figures) for row in group)]
    return lines


def _figure_widths(rows: Sequence[_Row]) -> list[int]:
    """A width per column, such that a reason fits over the neighbours that share it."""
    widths = [0] * len(rows[0].figures)
    for row in rows:
        for start, end in _runs(row.figures):
            if end - start == 1:
                widths[start] = max(widths[start], cell_len(row.figures[start]))
    for row in rows:
        for start, end in _runs(row.figures):
            room = sum(widths[start:end]) + len(_GAP) * (end - start - 1)
            widths[end - 1] += max(0, cell_len(row.figures[start]) - room)
    return widths


def _runs(cells: Sequence[str]) -> list[tuple[int, int]]:
    """Stretches of neighbouring cells with one and the same reason; any other cell is its own."""
    runs: list[tuple[int, int]] = []
    for place, cell in enumerate(cells):
        if runs and cell.startswith("—") and cells[runs[-1][0]] == cell:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _line(row: _Row, words: Sequence[int], figures: Sequence[int]) -> str:
    code, name, n, prevalence = row.words
    if cell_len(name) > words[1]:
        name = set_cell_size(name, words[1] - 1) + "…"
    parts = [
        set_cell_size(code, words[0]),
        set_cell_size(name, words[1]),
        _right(n, words[2]),
        _right(prevalence, words[3]),
    ]
    for start, end in _runs(row.figures):
        room = sum(figures[start:end]) + len(_GAP) * (end - start - 1)
        cell = row.figures[start]
        parts.append(set_cell_size(cell, room) if cell.startswith("—") else _right(cell, room))
    return _GAP.join(parts).rstrip()


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _notes(report: Report, many: bool) -> list[str]:
    people = report["annotators"]
    notes = [
        f"{report['taxonomy']}, pass {report['pass']}, {', '.join(people) or 'nobody'}; "
        f"finished by all: {report['traces']['finished_by_all']} traces.",
        "n: traces in which two or more have a verdict on the mode. present: the share of that "
        + ("verdict, lowest and highest." if many else f"verdict, {' / '.join(people)}."),
        "macro: the mean over the modes where it is defined. pooled: traces × modes in one table.",
    ]
    unsure = {name: n for name, n in report["pooled"]["unsure"].items() if n}
    if unsure:
        counts = ", ".join(f"{name} {n}" for name, n in unsure.items())
        notes.append(f"unsure, counted as missing: {counts}.")
    examples = report["traces"].get("examples_left_out", {})
    if examples:
        counts = ", ".join(f"{name} {n}" for name, n in examples.items())
        notes.append(f"left out, as they were examples in the judge's prompt: {counts} traces.")
    marked = [code for code, mode in report["modes"].items() if is_kappa_paradox(mode)]
    if is_kappa_paradox(report["pooled"]):
        marked.append("pooled")
    if marked:
        notes.append(
            f"{_PARADOX_MARK} {', '.join(marked)}: κ is low although raw agreement is high. Nearly "
            "all verdicts are the same there, so almost all agreement counts as chance: "
            "read AC1, Ppos and Pneg beside it."
        )
    return notes
