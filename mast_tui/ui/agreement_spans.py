"""The report on spans as rows, and in words: finding, naming, overlap, and what was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mast_tui.agreement.text_spans import without_places
from mast_tui.safe_text import one_line
from mast_tui.ui.agreement_cells import (
    PageRow,
    counted,
    figure_cell,
    figure_words,
    interval_cell,
    styled,
    why_undefined,
    without_interval,
)
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson
    from mast_tui.figures.spans.report import F1Json, ModeSpansJson, SpanReport

COLUMNS: Final = (
    Column("code", "", keeps=101),
    Column("name", "mode", shrinks=True, keeps=102),
    Column("places", "places", figure=True, keeps=80),
    Column("exact", "F1 exact", figure=True, keeps=99),
    Column("ci", "95 %", keeps=40),
    Column("half", "F1 half", figure=True, keeps=96),
    Column("any", "F1 any", figure=True, keeps=90),
    Column("alpha", "α", figure=True, keeps=98),
    Column("alpha_u", "α_U", figure=True, keeps=97),
)

FINDING: Final = "finding"
NAMING: Final = "naming"

_REASONS: Final = {
    "no_variance": "undefined, since nobody has marked anything, or everybody all of it",
    "no_overlap": "undefined, since no span was read by two people who say where the mode shows",
    "single_rater": "undefined, since only one person has marked or read anything",
}


def span_rows(report: SpanReport, *, pending: bool) -> tuple[PageRow, ...]:
    """A row per mode, then all modes: finding a place at all, and finding and naming it."""
    everybody = report["all"]
    rows = [_mode_row(report, code, mode, pending) for code, mode in everybody["modes"].items()]
    slugs = tuple(mode["slug"] for mode in everybody["modes"].values())
    alpha_u = everybody["krippendorff_alpha_u"]
    for ident, name, f1 in (
        (FINDING, "Finding, any mode", everybody["finding"]),
        (NAMING, "Finding and naming", everybody["finding_and_naming"]),
    ):
        cells = {"name": name, **_f1_cells(f1, pending)}
        if ident == NAMING:
            cells["alpha_u"] = figure_cell(alpha_u)
        styles = styled(cells, ("places", "ci")) | {"name": "total"}
        words = _total_words(report, f1, naming=ident == NAMING, pending=pending)
        rows.append(PageRow(TableRow(ident, cells, " ", styles), name, words, slugs))
    return tuple(rows)


def _mode_row(report: SpanReport, code: str, mode: ModeSpansJson, pending: bool) -> PageRow:
    cells = {
        "code": one_line(code, 12),
        "name": one_line(mode["name"]),
        **_f1_cells(mode["f1"], pending),
        "alpha": figure_cell(mode["krippendorff_alpha"]),
        "alpha_u": figure_cell(mode["krippendorff_alpha_u"]),
    }
    styles = styled(cells, ("places", "ci")) | {"code": "name"}
    title = f"{code} {mode['name']}"
    words = _mode_words(mode, pending)
    return PageRow(TableRow(mode["slug"], cells, " ", styles), title, words, (mode["slug"],))


def _f1_cells(f1: F1Json, pending: bool) -> dict[str, str]:
    return {
        "places": str(f1["places"]),
        "exact": figure_cell(f1["exact"]),
        "ci": interval_cell(f1["exact"], pending=pending),
        "half": figure_cell(f1["overlap"]["0.5"]),
        "any": figure_cell(f1["overlap"]["0.1"]),
    }


def _mode_words(mode: ModeSpansJson, pending: bool) -> str:
    alpha, alpha_u = mode["krippendorff_alpha"], mode["krippendorff_alpha_u"]
    lines = _f1_words(mode["f1"], pending)
    lines.append(
        f"{figure_words('α', alpha, pending=pending)}, over {counted(mode['spans'], 'span')} that "
        f"two or more have read in {counted(mode['traces'], 'trace')}; "
        f"{mode['spans_left_out']:,} not read by two are left out."
    )
    if mode["no_places"]:
        lines.append(
            f"{counted(mode['no_places'], 'trace')} left out, where somebody says present and not "
            "where."
        )
    lines.append(
        f"{figure_words('α_U', alpha_u, pending=pending)}, over {counted(mode['units'], 'place')} "
        f"on {counted(mode['positions'], 'span')} that all have read."
    )
    figures = [("F1", mode["f1"]["exact"]), ("α", alpha), ("α_U", alpha_u)]
    lines += without_interval([figure for _, figure in figures], pending=pending)
    return "\n".join([*lines, *why_undefined(figures, _REASONS)])


def _total_words(report: SpanReport, f1: F1Json, *, naming: bool, pending: bool) -> str:
    lines = [
        "The same place with the same mode."
        if naming
        else "The same place, whichever mode was named for it.",
        *_f1_words(f1, pending),
    ]
    alpha_u = report["all"]["krippendorff_alpha_u"]
    figures: list[tuple[str, CoefficientJson]] = [("F1", f1["exact"])]
    if naming:
        lines.append(f"{figure_words('α_U over all modes', alpha_u, pending=pending)}.")
        figures.append(("α_U", alpha_u))
    lines += why_undefined(figures, _REASONS)
    if len(report["pairs"]) > 1:
        for names, pair in report["pairs"].items():
            first, _, second = names.partition("|")
            found = pair["finding_and_naming"] if naming else pair["finding"]
            lines.append(
                f"  {first} and {second}: {figure_words('F1', found['exact'], pending=pending)}, "
                f"half {figure_cell(found['overlap']['0.5'])}, {counted(pair['traces'], 'trace')}"
            )
    return "\n".join([*lines, *_rests_on(report)])


def _f1_words(f1: F1Json, pending: bool) -> list[str]:
    """F1 with how it changes with the overlap that is asked for, as a small table."""
    lines = [
        f"{figure_words('F1 of exact places', f1['exact'], pending=pending)}, "
        f"{counted(f1['places'], 'place')} of both sides; {f1['left_out']:,} left out, where the "
        "other side has not read or not answered."
    ]
    if f1["exact"]["value"] is not None:
        lines += _sweep(f1["overlap"])
    return lines


def _sweep(overlap: Mapping[str, CoefficientJson]) -> list[str]:
    asked = "".join(f"{threshold:>6}" for threshold in overlap)
    found = "".join(f"{figure_cell(figure):>6}" for figure in overlap.values())
    return [f"overlap ≥{asked}", f"F1       {found}"]


def _rests_on(report: SpanReport) -> list[str]:
    traces = report["traces"]
    lines = [f"{counted(traces['compared'], 'trace')} compared."]
    if traces["not_at_hand"]:
        lines.append(
            f"{counted(traces['not_at_hand'], 'trace')} left out, whose files are not here."
        )
    for name, one in report["annotators"].items():
        words = [f"{counted(one['places'], 'place')} in {counted(one['traces'], 'trace')}"]
        unknown = one["traces"] - one["reading_recorded"]
        if unknown:
            words.append(f"{unknown} without a record of what was read, counted as read through")
        if one["whole_trace"]:
            words.append(f"{counted(one['whole_trace'], 'label')} on a whole trace, not counted")
        if one["not_found"]:
            words.append(f"{counted(one['not_found'], 'label')} on spans that are not there")
        lines.append(f"  {name}: {'; '.join(words)}.")
    return [*lines, *without_places(report)]
