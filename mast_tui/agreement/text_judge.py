"""The report on a judge as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from mast_tui.agreement.figure_table import (
    NONE,
    Cell,
    FigureTable,
    Row,
    cell,
    in_words,
    interval_of,
    number,
    withheld_notes,
)
from mast_tui.agreement.text_table import interval_method
from mast_tui.gold.sources import gold_name, gold_words

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson
    from mast_tui.figures.judge.quality import FiguresJson, JudgeTableJson
    from mast_tui.figures.judge.report import JudgeReport

# Raw agreement and AC1 look fine on a judge that is of no use where a mode is rare, so that
# neither is shown without κ beside it.
_RATES: Final = (
    ("true_positive_rate", "TPR"),
    ("true_negative_rate", "TNR"),
    ("precision", "precision"),
)
_BESIDE: Final = (
    ("cohen_kappa", "κ"),
    ("f1", "F1"),
    ("gwet_ac1", "AC1"),
    ("raw_agreement", "raw"),
)

_LEFT_OUT: Final = {
    "judge_seen": "settled with a judge on screen",
    "unsure_judge": "the judge unsure",
    "unsure_reference": "the reference unsure",
    "unresolved": "not settled yet",
}

_PULL: Final = (
    ("present_rate", "share of present"),
    ("labels_per_pass", "labels per trace"),
    ("agreement_with_judge", "raw agreement with the judge"),
    ("kappa_with_judge", "κ with the judge"),
)


def against_words(report: JudgeReport) -> str:
    """What the judge is held against; gold that is one person's word bears their name."""
    return report["against"] if report["gold"] is None else gold_name(report["gold"])


def judge_tables(report: JudgeReport, width: int | None) -> list[str]:
    """Everything on the judge in tables; ``judge_notes`` says what they rest on."""
    title = f"{report['judge']} against {against_words(report)}"
    rates = _table(report, ("n", "present"), _RATES, width, (2, 1))
    beside = _table(report, (), _BESIDE, width, (3, 1, 2))
    lines = [title, *rates, "", *beside]
    for part in (_calibration(report), _prevalence(report, width), _withheld(report, width)):
        if part:
            lines += ["", *part]
    return lines


def _table(
    report: JudgeReport,
    words: tuple[str, ...],
    columns: Sequence[tuple[str, str]],
    width: int | None,
    gives_way: tuple[int, ...],
) -> list[str]:
    counted = bool(words)
    modes = [
        Row((code, one["name"], *(_counts(one) if counted else ())), _cells(one, columns))
        for code, one in report["modes"].items()
    ]
    pooled = report["pooled"]
    totals = [
        Row(("", "macro", *(("", "") if counted else ())), _cells(report["macro"], columns)),
        Row(("", "pooled", *(_counts(pooled) if counted else ())), _cells(pooled, columns)),
    ]
    table = FigureTable(
        ("", "mode", *words),
        tuple(title for _, title in columns),
        [modes, totals],
        gives_way=gives_way,
    )
    return table.lines(width)


def _counts(table: JudgeTableJson) -> tuple[str, str]:
    """n, and how many of them either calls present: the judge / the reference."""
    tp, fp, fn = (
        table["true_positives"],
        table["false_positives"],
        table["false_negatives"],
    )
    return str(table["n"]), f"{tp + fp}/{tp + fn}"


def _cells(figures: FiguresJson, columns: Sequence[tuple[str, str]]) -> tuple[Cell, ...]:
    by_name = cast("Mapping[str, CoefficientJson]", figures)
    return tuple(cell(by_name[key]) for key, _ in columns)


def _calibration(report: JudgeReport) -> list[str]:
    """Confidence beside truth and beside people's answers, by confidence."""
    truth, answers = report["calibration"], report["answers"]
    rows = [
        Row(
            (
                f"{right['low']:.1f}–{right['high']:.1f}",
                str(right["n"]),
                _mean(right["mean_confidence"]),
                str(said["n"]),
            ),
            (cell(right["right"]), cell(said["accepted"])),
        )
        for right, said in zip(truth["bins"], answers["bins"], strict=True)
        if right["n"] or said["n"]
    ]
    if not rows:
        return []
    heads = ("confidence", "n", "mean", "answered")
    table = FigureTable(heads, ("right", "accepted"), [rows], left=1)
    return ["Calibration: confidence beside truth, and beside people's answers", *table.lines(None)]


def _mean(value: float | None) -> str:
    return NONE if value is None else number(value)


def _prevalence(report: JudgeReport, width: int | None) -> list[str]:
    """How often a mode shows on the traces that only the judge saw; nothing without any."""
    if not report["traces"]["unlabelled"] or not report["prevalence"]:
        return []
    rows = [
        Row(
            (code, report["modes"][code]["name"], str(one["n_unlabelled"])),
            (cell(one["apparent"]), cell(one["corrected"])),
        )
        for code, one in report["prevalence"].items()
    ]
    table = FigureTable(("", "mode", "n"), ("the judge says", "corrected"), [rows])
    return [
        f"Prevalence on {report['traces']['unlabelled']} traces that only the judge has judged",
        *table.lines(width),
    ]


def _withheld(report: JudgeReport, width: int | None) -> list[str]:
    """What people said with and without suggestions on screen; nothing where none were withheld."""
    pull = report["withheld"]
    if pull is None:
        return []
    rows = []
    for key, name in _PULL:
        one = cast("Mapping[str, Mapping[str, CoefficientJson]]", pull)[key]
        rows.append(
            Row((name,), tuple(cell(one[part]) for part in ("shown", "withheld", "difference")))
        )
    table = FigureTable(("",), ("shown", "withheld", "difference"), [rows], left=1)
    passes = pull["passes"]
    left = [
        f"{n} {what}"
        for n, what in (
            (pull["not_judged"], "passes on traces that the judge has not judged"),
            (pull["examples"], "on examples in its prompt"),
        )
        if n
    ]
    return [
        "Suggestions shown, and withheld at random",
        *table.lines(width),
        f"{passes['shown']} passes with suggestions ({pull['on_screen']} had some on screen), "
        f"{passes['withheld']} without, by {', '.join(pull['annotators']) or 'nobody with both'}."
        + (f" Left out: {', '.join(left)}." if left else ""),
    ]


def judge_notes(report: JudgeReport) -> Iterator[str]:
    """What the judge's figures rest on, what was left out, and where it is of no use."""
    traces, against = report["traces"], against_words(report)
    yield (
        f"{traces['compared']} of {traces['judged']} judged traces can be compared. present: the "
        f"judge / {against}. TPR: of what {against} calls present the share "
        "that the judge finds. TNR: the same of absent. Rates of one mode have Wilson intervals, "
        "all else is from "
        f"{interval_method(report['bootstrap'], traces['compared'], 'percentiles of')}."
    )
    yield from withheld_notes(report)
    if report["gold"] is not None and traces["compared"]:
        yield f"What it is measured by: {gold_words(report['gold'])}."
    yield _left_out(report)
    yield from _useless(report)
    yield from _tilted(report)
    yield _confidence(report)
    yield from _localisation(report)
    yield from _corrected(report)


def _left_out(report: JudgeReport) -> str:
    counts = report["left_out"]
    parts = [f"{counts[key]} {what}" for key, what in _LEFT_OUT.items() if counts[key]]
    told = f"{', '.join(parts)} (traces × modes)" if parts else ""
    if counts["examples"]:
        told += f"{', ' if told else ''}{counts['examples']} traces that were in its prompt"
    return f"Left out: {told}." if told else "Nothing was left out."


def _useless(report: JudgeReport) -> Iterator[str]:
    """The modes in which the judge's word could be chance."""
    tables: list[tuple[str, JudgeTableJson]] = [*report["modes"].items()]
    if len(report["modes"]) > 1:
        tables.append(("pooled", report["pooled"]))
    found = [name for name, one in tables if _may_be_chance(one["cohen_kappa"])]
    if found:
        yield (
            "Not shown to be better than chance (there is too little for an interval of κ, κ is at "
            "most 0, or its interval reaches 0): "
            f"{', '.join(found)}. Raw agreement and AC1 may look fine there all the same, "
            "most of all where a mode is rare; they say nothing for the judge."
        )


def _may_be_chance(kappa: CoefficientJson) -> bool:
    value = kappa["value"]
    if value is None:
        return False
    ends = interval_of(kappa)
    return value <= 0 or "ci_withheld" in kappa or (ends is not None and ends[0] <= 0)


def p_words(p: float) -> str:
    """A p-value as it is written; never as if it were 0."""
    return "p < 0.001" if p < 0.001 else f"p {number(p, 3)}"


def _tilted(report: JudgeReport) -> Iterator[str]:
    """The modes that the judge calls present too often, or too rarely."""
    often: list[str] = []
    rarely: list[str] = []
    for code, one in report["modes"].items():
        p = one["mcnemar_p_adjusted"]
        if p is not None and p < 0.05:
            more = one["false_positives"] > one["false_negatives"]
            (often if more else rarely).append(f"{code} ({p_words(p)})")
    for what, codes in (("more often", often), ("less often", rarely)):
        if codes:
            yield (
                f"Calls present {what} than {against_words(report)} does (McNemar, p corrected "
                f"over the modes after Benjamini and Hochberg): {', '.join(codes)}."
            )


def _confidence(report: JudgeReport) -> str:
    truth, answers = report["calibration"], report["answers"]
    if not truth["n"]:
        told = "Confidence: none of its findings that can be compared has one."
    else:
        told = (
            f"Confidence: {_mean(truth['mean_confidence'])} on average, right "
            f"{in_words(truth['right'])} of {truth['n']}; expected calibration error "
            f"{in_words(truth['expected_calibration_error'])}."
        )
    if truth["without_confidence"] and truth["n"]:
        told += f" {truth['without_confidence']} findings have none."
    return (
        f"{told} People's answers: {answers['n']}, {answers['accept']} accepted, "
        f"{answers['edit']} edited, {answers['reject']} rejected."
    )


def _localisation(report: JudgeReport) -> Iterator[str]:
    places = report["localisation"]
    beside = [
        f"{n} {what}"
        for n, what in (
            (places["whole_trace"], "suggestions name no place"),
            (places["no_places"], f"stand where {against_words(report)} names none"),
            (places["without_order"], "count as wrong without the file of their trace"),
        )
        if n
    ]
    rest = f" {', '.join(beside)}." if beside else ""
    if not places["n"]:
        yield f"Places: none of its places can be compared.{rest}"
        return
    yield (
        f"Places, where both call the mode present: {in_words(places['right_place'])} of its "
        f"{places['n']} places are right; it finds {in_words(places['places_found'])} of the "
        f"{places['places']}.{rest}"
    )


def _corrected(report: JudgeReport) -> Iterator[str]:
    if not report["traces"]["unlabelled"]:
        return
    if not report["prevalence"]:
        yield "What it says of traces that nobody has finished is kept from who labels blind."
        return
    yield (
        "corrected: for how the judge errs (Rogan and Gladen); it holds where the traces that "
        "people labelled are a random sample of all."
    )
