"""The report on a judge as rows: how good per mode, and what else there is to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from mast_tui.agreement.text_judge import against_words, p_words
from mast_tui.agreement.text_table import is_kappa_paradox
from mast_tui.safe_text import one_line
from mast_tui.ui.agreement_cells import (
    PARADOX_MARK,
    PageRow,
    counted,
    figure_cell,
    figure_words,
    interval_cell,
    share_cell,
    styled,
    why_undefined,
    without_interval,
)
from mast_tui.ui.agreement_judge_words import (
    answers_words,
    calibration_words,
    localisation_words,
    prevalence_words,
    withheld_words,
)
from mast_tui.ui.widgets.column_table import Column, TableRow

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson
    from mast_tui.figures.agreement.report import TableJson
    from mast_tui.figures.judge.quality import JudgeModeJson, JudgeTableJson
    from mast_tui.figures.judge.report import JudgeReport

COLUMNS: Final = (
    Column("code", "", keeps=101),
    Column("name", "mode", shrinks=True, keeps=102),
    Column("n", "n", figure=True, keeps=94),
    Column("present", "present", figure=True, keeps=70),
    Column("true_positive_rate", "TPR", figure=True, keeps=100),
    Column("true_negative_rate", "TNR", figure=True, keeps=99),
    Column("precision", "prec", figure=True, keeps=97),
    Column("f1", "F1", figure=True, keeps=96),
    Column("cohen_kappa", "κ", figure=True, keeps=98),
    Column("ci", "95 %", keeps=40),
    Column("gwet_ac1", "AC1", figure=True, keeps=95),
    Column("corrected", "corrected", figure=True, keeps=60),
)

NAMES: Final[tuple[tuple[str, str], ...]] = (
    ("true_positive_rate", "TPR"),
    ("true_negative_rate", "TNR"),
    ("precision", "precision"),
    ("f1", "F1"),
    ("cohen_kappa", "κ"),
    ("gwet_ac1", "AC1"),
)

_REASONS: Final = {
    "no_variance": "undefined, since one of the two says the same of all traces",
    "no_overlap": "undefined, since there is no trace to divide by",
    "single_rater": "undefined, since only one of the two has said anything",
}
_OWN: Final = {
    "TPR": "undefined, since nothing is present by the reference",
    "TNR": "undefined, since nothing is absent by the reference",
    "precision": "undefined, since the judge calls nothing present",
    "F1": "undefined, since neither calls anything present",
}

LEFT_OUT: Final[Mapping[str, str]] = {
    "judge_seen": "settled with a judge on screen",
    "unsure_judge": "the judge was unsure",
    "unsure_reference": "the reference is unsure",
    "unresolved": "not settled yet",
    "examples": "traces in the judge's prompt",
}


def judge_rows(report: JudgeReport, *, pending: bool, hidden: int) -> tuple[PageRow, ...]:
    """A row per mode and the totals, then confidence, answers, places and withheld suggestions.

    ``hidden`` traces that only the judge saw are left out, as this annotator may not know what
    it says of them.
    """
    every = tuple(mode["slug"] for mode in report["modes"].values())
    rows = [_mode_row(report, code, pending, hidden) for code in report["modes"]]
    macro = cast("Mapping[str, CoefficientJson]", report["macro"])
    cells = {"name": "Mean over modes", **_cells(macro, pending)}
    words = [
        f"  {figure_words(name, macro[key], pending=pending)}, "
        f"{report['macro']['modes_defined'][key]} of {len(report['modes'])} modes"
        for key, name in NAMES
    ]
    words.insert(0, "The mean over the modes for which a figure is defined:")
    rows.append(_total("macro", cells, "\n".join(words), every))
    pooled = report["pooled"]
    cells = {"name": "Pooled", **_table_cells(pooled, pending)}
    words = [
        _counts_words(report, pooled),
        *_figures_words(pooled, pending),
        *_rests_on(report),
    ]
    rows.append(_total("pooled", cells, "\n".join(words), every))
    return (*rows, *_sections(report, pending))


def _mode_row(report: JudgeReport, code: str, pending: bool, hidden: int) -> PageRow:
    mode = report["modes"][code]
    cells = {
        "code": one_line(code, 12),
        "name": one_line(mode["name"]),
        **_table_cells(mode, pending),
    }
    corrected = report["prevalence"].get(code)
    if corrected is not None and corrected["n_unlabelled"]:
        cells["corrected"] = share_cell(corrected["corrected"]["value"])
    styles = styled(cells, ("n", "present", "ci", "corrected")) | {"code": "name"}
    lines = [_counts_words(report, mode), *_figures_words(mode, pending)]
    lines += prevalence_words(report, code, pending=pending, hidden=hidden)
    lines += _of_mode(report, code)
    lines += _left_out(mode["left_out"])
    title = f"{code} {mode['name']}"
    return PageRow(
        TableRow(mode["slug"], cells, " ", styles), title, "\n".join(lines), (mode["slug"],)
    )


def _total(ident: str, cells: dict[str, str], words: str, modes: tuple[str, ...]) -> PageRow:
    styles = styled(cells, ("n", "present", "ci")) | {"name": "total"}
    return PageRow(TableRow(ident, cells, " ", styles), cells["name"], words, modes)


def _sections(report: JudgeReport, pending: bool) -> list[PageRow]:
    calibration, answers, places = report["calibration"], report["answers"], report["localisation"]
    sections = [
        ("confidence", "Confidence", calibration["n"], calibration_words(report)),
        ("answers", "Answers", answers["n"], answers_words(report)),
        ("places", "Right place", places["n"], localisation_words(report, pending)),
    ]
    held = report["withheld"]
    passes = sum(held["passes"].values()) if held is not None else 0
    sections.append(("withheld", "Withheld", passes, withheld_words(report, pending)))
    rows = []
    for ident, name, n, words in sections:
        cells = {"name": name, "n": str(n)}
        styles = styled(cells, ("n",))
        rows.append(PageRow(TableRow(ident, cells, " ", styles), name, words))
    return rows


def _cells(figures: Mapping[str, CoefficientJson], pending: bool) -> dict[str, str]:
    cells = {key: figure_cell(figures[key]) for key, _ in NAMES}
    cells["ci"] = interval_cell(figures["cohen_kappa"], pending=pending)
    return cells


def _table_cells(table: JudgeTableJson, pending: bool) -> dict[str, str]:
    shares = table["prevalence"]
    own, true = shares.get("judge"), shares.get("reference")
    cells = _cells(cast("Mapping[str, CoefficientJson]", table), pending)
    if is_kappa_paradox(cast("TableJson", table)):
        cells["cohen_kappa"] += PARADOX_MARK
    return {**cells, "n": str(table["n"]), "present": f"{share_cell(own)}/{share_cell(true)}"}


def _counts_words(report: JudgeReport, table: JudgeTableJson | JudgeModeJson) -> str:
    if not table["n"]:
        return f"Nothing to compare: no trace in which the judge and {against_words(report)} spoke."
    return (
        f"n {table['n']}: both say present in {table['true_positives']}, only the judge in "
        f"{table['false_positives']}, only {against_words(report)} in {table['false_negatives']}, "
        f"neither in {table['true_negatives']}."
    )


def _figures_words(table: JudgeTableJson | JudgeModeJson, pending: bool) -> list[str]:
    figures = cast("Mapping[str, CoefficientJson]", table)
    known = [
        figure_words(name, figures[key], pending=pending)
        for key, name in NAMES
        if figures[key]["value"] is not None
    ]
    lines = [f"With 95 % intervals: {', '.join(known)}."] if known else []
    lines += without_interval([figures[key] for key, _ in NAMES], pending=pending)
    if is_kappa_paradox(cast("TableJson", table)):
        lines.append(
            f"{PARADOX_MARK} κ is low although raw agreement is high: one answer is nearly always "
            "given. AC1 looks fine on a useless judge too: read TPR and TNR."
        )
    if table["n"]:
        lines += why_undefined([(name, figures[key]) for key, name in NAMES], _REASONS, _OWN)
    of_mode = cast("Mapping[str, float | None]", table)
    p = of_mode.get("mcnemar_p_adjusted", table["mcnemar_p"])
    if p is not None and p < 0.05:
        more = table["false_positives"] > table["false_negatives"]
        over = ", corrected over the modes" if "mcnemar_p_adjusted" in table else ""
        lines.append(
            f"The judge says present {'more' if more else 'less'} often than the reference "
            f"(McNemar, {p_words(p)}{over})."
        )
    return lines


def _of_mode(report: JudgeReport, code: str) -> list[str]:
    """How people answered, and whether its places are right, on one mode."""
    answers, places = report["answers"]["modes"][code], report["localisation"]["modes"][code]
    lines = []
    if answers["n"]:
        lines.append(
            f"{counted(answers['n'], 'answer')} to its suggestions: "
            f"{figure_words('accepted', answers['accepted'], pending=False)}, "
            f"{answers['edit']} edited, {answers['reject']} rejected."
        )
    if places["n"]:
        lines.append(
            f"{figure_words('In the right place', places['right_place'], pending=False)} of its "
            f"{counted(places['n'], 'label')} where both say present."
        )
    return lines


def _left_out(counts: Mapping[str, int]) -> list[str]:
    some = [f"{LEFT_OUT.get(reason, reason)} {n:,}" for reason, n in counts.items() if n]
    return [f"Left out: {', '.join(some)}."] if some else []


def _rests_on(report: JudgeReport) -> list[str]:
    traces = report["traces"]
    lines = [
        f"{counted(traces['judged'], 'trace')} judged, {traces['compared']:,} compared, "
        f"{traces['unlabelled']:,} that nobody has labelled."
    ]
    if report["judge_seen_counted"]:
        lines.append("Verdicts that came about with a judge on screen are counted too (s).")
    return [*lines, *_left_out(report["left_out"])]
