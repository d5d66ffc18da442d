"""Tables and sentences on a judge, and on two judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from mast_tui.counts import counted
from mast_tui.figures.jackknife import MANY
from mast_tui.figures.judge.compare import JudgeComparison
from mast_tui.figures.judge.report import JudgeReport
from mast_tui.figures.judge.suggestions import BINS, bin_name
from mast_tui.figures.judge.thresholds import Thresholds
from mast_tui.figures.record import STATISTICS, Figure, FigureTable
from mast_tui.gold.model import gold_name, gold_words
from mast_tui.reports.model import (
    CODE,
    MODE,
    Cell,
    Column,
    KeyFact,
    Kind,
    Note,
    ReportSection,
    Row,
    Table,
    columns,
    existing_parts,
    figure_cell,
    figure_cells,
)
from mast_tui.reports.sentences import (
    WILSON,
    applicable,
    fact,
    in_words,
    intervals_note,
    joined_names,
    macro_note,
    p_words,
    paradox_mark,
    paradox_note,
    why_undefined,
    withheld_notes,
)
from mast_tui.reports.span_agreement import BIAS_CORRECTED
from mast_tui.taxonomy.model import Mode

_N, *_RATES = columns("""
    n                  | n         | count  | compared (n)             | 94
    true_positive_rate | TPR       | number | true positive rate (TPR) | 100
    true_negative_rate | TNR       | number | true negative rate (TNR) | 99
    precision          | precision | number |                          | 48
    f1                 | F1        | number |                          | 47
""")
# Raw agreement and AC1 are never shown without κ, because for rare modes they are high even for a
# useless judge.
_CHANCE: Final = columns("""
    cohen_kappa   | κ   | number | Cohen's κ     | 100
    gwet_ac1      | AC1 | number | Gwet's AC1    | 48
    raw_agreement | raw | number | raw agreement | 47
""")
_ERRORS: Final = columns("""
    mcnemar_p_adjusted | McNemar     | p_value | McNemar's p, adjusted over the modes | 60
    counts | TP/FP/FN/TN | text | true and false positives, false and true negatives | 20
""")
_JUDGES: Final = (
    *columns("""
        judge  | judge  | text  |                 | 102
        traces | traces | count | traces compared | 95
        n      | n      | count | traces × modes  | 94
    """),
    *_RATES,
    *_CHANCE,
    *columns("left_out | excluded | text | | 20"),
)
_COMPARED: Final = """
    n                             | n           | count  | compared (n)                       | 94
    only_first_right              | only 1      | count  | only {first} is correct            | 80
    only_second_right             | only 2      | count  | only {second} is correct           | 80
    true_positive_rate:difference | Δ TPR       | number | difference of true positive rates  | 60
    true_negative_rate:difference | Δ TNR       | number | difference of true negative rates  | 58
    precision:difference          | Δ precision | number | difference of precisions           | 45
    cohen_kappa:difference        | Δ κ         | number | difference of Cohen's κ            | 62
    p                             | p           | p_value | p, one judge is correct more often | 75
"""
_CALIBRATION: Final = columns("""
    confidence            | confidence | text  |                           | 102
    n                     | n          | count | findings                  | 98
    mean_confidence#value | mean       | share | mean confidence           | 97
    right                 | correct    | share | share of correct findings | 99
""")
_ANSWERS: Final = columns("""
    name     | answers       | text  |                          | 102
    n        | n             | count | answers                  | 98
    accept   | accepted      | count |                          | 90
    edit     | edited        | count |                          | 89
    reject   | rejected      | count |                          | 91
    accepted | accepted as is | share | share accepted unchanged | 95
    taken    | accepted or edited | share | share accepted or edited | 99
""")
_LOCALISATION: Final = """
    n            | its labels    | count | labels of the judge                               | 90
    right_place  | correct place | share | share of the judge's labels in a correct place    | 99
    places       | places        | count | places of {against}                               | 89
    places_found | found         | share | share of the places of {against} found by the judge | 98
"""
_PREVALENCE: Final = columns("""
    n_unlabelled | n           | count | traces with a verdict of the judge     | 97
    apparent     | uncorrected | share | share of present verdicts of the judge | 98
    corrected    | corrected   | share | corrected for the errors of the judge  | 99
""")
_OVERALL: Final = columns("""
    n_labelled         | labelled       | count  | traces with a verdict of people     | 96
    unresolved         | unresolved     | count  | traces on which people disagree     | 61
    people             | people alone   | share  | share of present verdicts of people | 97
    these              | these traces   | share  | prevalence in these traces only     | 62
    powered            | with judge     | share  | prediction-powered estimate         | 99
    judge_weight#value | λ              | number | weight of the judge's verdicts      | 60
    more_labels        | more for ± 3   | count  | traces to label for ± 3 points      | 95
""")
_EFFECT: Final = columns("""
    name       |            | text   | measure                | 102
    shown      | shown      | number | with suggestions shown | 98
    withheld   | without    | number | without suggestions    | 97
    difference | difference | number |                        | 99
""")

_UNDEFINED: Final = {
    "no_variance": "the judge or the reference gave equal verdicts on all traces",
    "no_overlap": "no trace has verdicts by both",
    "single_rater": "only the judge or only the reference gave verdicts",
    "single_trace": "chance agreement cannot be estimated from a single trace",
}
_NO_VARIANCE: Final = {
    "true positive rate (TPR)": "the reference has no present verdict",
    "true negative rate (TNR)": "the reference has no absent verdict",
    "precision": "the judge has no present verdict",
    "F1": "neither has a present verdict",
}
_NOT_CORRECTED: Final = {
    "no_unlabelled": "every judged trace was finished by someone",
    "no_positives": "the reference has no present verdict, so the share it misses is unknown",
    "no_negatives": "the reference has no absent verdict, so its false findings are unknown",
    "no_better_than_chance": "TPR + TNR ≤ 1, so the judge is no better than chance",
}
_LEFT_OUT: Final = {
    "judge_seen": "labelled with suggestions on screen",
    "unsure_judge": "on which the judge is unsure",
    "unsure_reference": "on which the reference is unsure",
    "unresolved": "not adjudicated yet",
}
_SEEN_COUNTED: Final = Note("Verdicts given with suggestions on screen are included.", "judge_seen")
_BLIND: Final = Note(
    "Its verdicts on traces that no one has finished are hidden from blind annotators.", "blind"
)
_NO_CONFIDENCE: Final = Note(
    "No calibration: no compared finding of the judge has a confidence.", "no_confidence"
)
_NO_ANSWERS: Final = Note("No one has answered a suggestion of this judge.", "no_answers")
_NOT_WITHHELD: Final = Note(
    "The effect of suggestions on people cannot be estimated: no study hides suggestions on a "
    "random share of the traces (set up with mast-tui study).",
    "not_withheld",
)
_BETTER_JUDGE: Final = Note(
    "p tests whether one judge is correct more often. Per mode: McNemar's exact test, "
    "adjusted over the modes (Benjamini and Hochberg). Pooled: a randomisation test that "
    "exchanges the judges on whole traces, because the modes of a trace are correlated.",
    "p_value",
)
_EFFECTS: Final = (
    "present_rate", "labels_per_pass", "agreement_with_judge", "kappa_with_judge",
)  # fmt: skip
_CELLS: Final = ("true_positives", "false_positives", "false_negatives", "true_negatives")


def judge_section(
    report: JudgeReport,
    comparison: JudgeComparison | None = None,
) -> ReportSection:
    """Make the section on a judge.

    Args:
        report: The figures of the judge.
        comparison: The judge's comparison with another judge; None without one.
    """
    return ReportSection(
        "judge",
        "Judge",
        existing_parts(
            _rates_table(report),
            _chance_table(report),
            _calibration_table(report),
            _answers_table(report),
            _localisation_table(report),
            _prevalence_table(report),
            _overall_table(report),
            _effect_table(report),
            None if comparison is None else compared_table(comparison),
        ),
        _pooled_facts(report),
        tuple(_page_notes(report)),
    )


def judges_section(reports: Mapping[str, JudgeReport]) -> ReportSection:
    """Make the section with a table of several judges: a row for each, over all modes.

    Args:
        reports: The figures by judge, all against the same reference.
    """
    pooled_figures = {name: report.table("judge_pooled") for name, report in reports.items()}
    rows = [
        Row(
            name,
            {
                "judge": name,
                "traces": report.count("compared"),
                **figure_cells(pooled_figures[name], (_N, *_RATES, *_CHANCE)),
                "left_out": ", ".join(_left_out_parts(report)) or "nothing",
            },
        )
        for name, report in reports.items()
    ]
    table = Table(
        "judges",
        "Judges, all modes pooled",
        _JUDGES,
        (tuple(rows),),
        notes=withheld_notes(*pooled_figures.values()),
    )
    return ReportSection("judges", "Judges", (table,))


def compared_table(comparison: JudgeComparison) -> Table:
    """Make the table that compares two judges on the same units (traces × modes)."""
    first, second = comparison.judges
    table_columns = columns(_COMPARED, first=first, second=second)
    pooled = comparison.table("judges_pooled")
    figures_by_code = comparison.index.figures_by_key("judges_mode", subject=comparison.judges)
    rows = [
        Row(
            mode.slug,
            {
                "code": mode.code,
                "name": mode.name,
                **figure_cells(figures_by_code[mode.code], table_columns),
                "p": figures_by_code[mode.code].value("p_adjusted"),
            },
        )
        for mode in comparison.modes
    ]
    total_cells: dict[str, Cell] = {"name": "pooled", **figure_cells(pooled, table_columns)}
    total_row = Row("pooled", {**total_cells, "p": pooled.value("p_value")})
    trace_count = comparison.table("judges").count("traces")
    return Table(
        "judges_compared",
        f"{first} (1) and {second} (2) against {comparison.against}",
        (CODE, MODE, *table_columns),
        (tuple(rows), (total_row,)),
        f"{counted(trace_count, 'trace')} (taxonomy {comparison.taxonomy}). "
        f"{intervals_note(comparison.resampling, trace_count, BIAS_CORRECTED)} Differences of "
        "rates per mode: Newcombe's paired interval.",
        (
            _compared_units_note(comparison),
            _BETTER_JUDGE,
            *withheld_notes(*figures_by_code.values(), pooled),
            *_judged_by_one_note(comparison),
        ),
    )


def _compared_units_note(comparison: JudgeComparison) -> Note:
    """Return the note on the units on which two judges are compared, and on their columns."""
    first, second = comparison.judges
    unit_count = comparison.table("judges").count("units")
    return Note(
        f"Both judges are compared on the same {counted(unit_count, 'unit')} "
        f"(traces × modes). only 1: only {first} agrees with {comparison.against}; only 2: only "
        f"{second} agrees. Differences are judge 1 minus judge 2, with paired intervals.",
        "n",
    )


def _judged_by_one_note(comparison: JudgeComparison) -> tuple[Note, ...]:
    """Return a note on the units that only one of two judges has judged."""
    first, second = comparison.judges
    counts = comparison.table("judges")
    only_by_first = counts.count("judged_by_one", "first")
    only_by_second = counts.count("judged_by_one", "second")
    excluded = (
        f"Excluded: traces × modes judged by one of them only ({first} {only_by_first}, {second} "
        f"{only_by_second})."
    )
    return applicable((only_by_first or only_by_second, Note(excluded, "left_out")))


def against_words(report: JudgeReport) -> str:
    """Return the name of a judge's reference.

    Gold of a single annotator has that annotator's name.
    """
    return report.against if report.gold is None else gold_name(report.gold)


def _pooled_facts(report: JudgeReport) -> tuple[KeyFact, ...]:
    """Return the facts for the head of the page: pooled rates and κ."""
    pooled = report.table("judge_pooled")
    return (
        KeyFact("pooled over", f"{pooled.count('n'):,}", "traces × modes"),
        fact("TPR", pooled["true_positive_rate"]),
        fact("TNR", pooled["true_negative_rate"]),
        fact("κ", pooled["cohen_kappa"]),
    )


def _rates_table(report: JudgeReport) -> Table:
    """Make the table of the judge's rates against the reference."""
    against = against_words(report)
    present_column = Column(
        "present", "present", Kind.TEXT, f"present verdicts of the judge / {against}", priority=70
    )
    return Table(
        "judge",
        f"{report.judge} against {against}",
        (CODE, MODE, _N, present_column, *_RATES),
        _row_groups(report, estimate_columns=_RATES, has_details=True),
        _caption_text(report),
        (
            Note(
                f"present: number of present verdicts, judge / {against}. TPR: share of the "
                f"present verdicts of {against} that the judge finds. TNR: the same for absent.",
                "n",
            ),
            *applicable(
                (
                    len(_judged_modes(report)) < len(report.modes),
                    Note("Modes without a row have no verdict of the judge.", "no_verdict"),
                )
            ),
            _macro_note(report, _RATES),
            *withheld_notes(*_figures_of(report, _RATES)),
        ),
    )


def _chance_table(report: JudgeReport) -> Table | None:
    """Make the table of chance-corrected agreement and of the kinds of errors."""
    if not report.table("judge_pooled").count("n"):
        return None
    return Table(
        "judge_chance",
        f"{report.judge} against {against_words(report)}: chance-corrected agreement and errors",
        (CODE, MODE, *_CHANCE, *_ERRORS),
        _row_groups(report, estimate_columns=_CHANCE, has_details=False),
        _caption_text(report),
        (
            _macro_note(report, _CHANCE),
            *paradox_note(
                _figures_by_name(report),
                ", because nearly all verdicts are equal. AC1 can be high even for a useless "
                "judge: read TPR and TNR.",
            ),
            *_biased_notes(report),
            *withheld_notes(*_figures_of(report, _CHANCE)),
        ),
    )


def _judged_modes(report: JudgeReport) -> tuple[Mode, ...]:
    """Return the modes on which the report has verdicts of the judge; without any, all modes."""
    judged_modes = tuple(
        mode
        for mode in report.modes
        if report.table("judge_mode", mode=mode.code).count("n")
        or report.table("prevalence", mode=mode.code).count("n_unlabelled")
        or _left_out_texts(report.table("judge_mode_left_out", mode=mode.code))
    )
    return judged_modes or report.modes


def _row_groups(
    report: JudgeReport, *, estimate_columns: Sequence[Column], has_details: bool
) -> tuple[tuple[Row, ...], ...]:
    """Return the rows of the modes, and those of the totals: macro mean and pooled.

    With ``has_details`` rows have sentences, otherwise the mark of the κ paradox.
    """

    def make_row(ident: str, names: dict[str, Cell], figures: FigureTable) -> Row:
        cells = {**names, **_count_cells(figures), **figure_cells(figures, estimate_columns)}
        if figures.mode:
            cells["mcnemar_p_adjusted"] = figures.value("mcnemar_p_adjusted")
        sentences_of = _mode_sentences if figures.mode else _count_sentences
        return Row(
            ident,
            cells,
            mark="" if has_details else paradox_mark(figures),
            detail=tuple(sentences_of(report, figures)) if has_details else (),
            sources=figures.sources,
        )

    figures_by_mode = report.figures_by_mode("judge_mode")
    rows = [
        make_row(mode.slug, {"code": mode.code, "name": mode.name}, figures_by_mode[mode.code])
        for mode in _judged_modes(report)
    ]
    macro = report.table("judge_macro")
    macro_cells: dict[str, Cell] = {"name": "macro mean", **figure_cells(macro, estimate_columns)}
    totals = (
        Row("macro", macro_cells, sources=macro.sources),
        make_row("pooled", {"name": "pooled"}, report.table("judge_pooled")),
    )
    return tuple(rows), totals


def _mode_rows(
    report: JudgeReport,
    figures_by_mode: Mapping[str, FigureTable],
    columns: Sequence[Column],
    detail: Callable[[FigureTable], Iterable[str]] = lambda _table: (),
) -> tuple[Row, ...]:
    """Return a row for each mode with figures; ``detail`` returns the sentences of a row."""
    return tuple(
        Row(
            mode.slug,
            {"code": mode.code, "name": mode.name}
            | figure_cells(figures_by_mode[mode.code], columns),
            detail=tuple(detail(figures_by_mode[mode.code])),
        )
        for mode in _judged_modes(report)
        if mode.code in figures_by_mode
    )


def _calibration_table(report: JudgeReport) -> Table | None:
    """Make the table of the share of correct findings by confidence; None without findings."""
    total = report.table("calibration")
    if not total.count("n"):
        return None
    # The lower end of the range, such as ``0.5``, is the id of a row.
    rows = [
        Row(range_text[:3], {"confidence": range_text} | figure_cells(figures, _CALIBRATION))
        for range_text, figures in _filled_bins(report, "calibration_bin")
    ]
    error_text = in_words(total["expected_calibration_error"])
    without_confidence = total.count("without_confidence")
    excluded = f"Excluded: {counted(without_confidence, 'finding')} without a confidence."
    return Table(
        "judge_calibration",
        "Calibration: confidence and share of correct findings",
        _CALIBRATION,
        (tuple(rows), (Row("all", {"confidence": "all"} | figure_cells(total, _CALIBRATION)),)),
        f"Findings of {report.judge}. {WILSON}",
        (
            Note(
                "A finding is trace × mode, with the confidence of its most confident suggestion. "
                "correct: the verdict of the reference is present. Expected calibration error: "
                f"{error_text}.",
                "calibration",
            ),
            *applicable((without_confidence, Note(excluded, "without_confidence"))),
        ),
    )


def _filled_bins(report: JudgeReport, scope: str) -> Iterator[tuple[str, FigureTable]]:
    """Yield the ranges of confidence with findings or answers, and their figures."""
    for number in range(BINS):
        range_text = bin_name(number)
        figures = report.table(scope, group=range_text)
        if figures.count("n"):
            yield range_text, figures


def _answers_table(report: JudgeReport) -> Table | None:
    """Make the table of annotators' answers to the judge's suggestions; None without answers."""
    total = report.table("answers")
    if not total.count("n"):
        return None

    def make_row(ident: str, name: str, figures: FigureTable) -> Row:
        return Row(ident, {"name": name} | figure_cells(figures, _ANSWERS))

    bin_rows = [
        make_row(range_text[:3], f"{range_text} confidence", figures)
        for range_text, figures in _filled_bins(report, "answers_bin")
    ]
    annotator_rows = [
        make_row(f"by {name}", f"by {name}", figures)
        for name, figures in _answers_by_annotator(report)
    ]
    return Table(
        "judge_answers",
        "Answers of people to the judge's suggestions",
        _ANSWERS,
        (
            tuple(bin_rows),
            tuple(annotator_rows) if len(annotator_rows) > 1 else (),
            (make_row("all", "all", total),),
        ),
        f"Suggestions of {report.judge}. {WILSON}",
    )


def _answers_by_annotator(report: JudgeReport) -> Iterator[tuple[str, FigureTable]]:
    """Yield each annotator with the figures of their answers."""
    figures = report.index.table("answers_annotator").figures
    for name in dict.fromkeys(name for figure in figures for name in figure.subject):
        yield name, report.index.table("answers_annotator", subject=(name,))


def _localisation_table(report: JudgeReport) -> Table | None:
    """Make the table that compares places of the judge with those of the reference.

    It is about modes that both call present; None without any.
    """
    total = report.table("localisation")
    if not total.count("n"):
        return None
    against = against_words(report)
    place_columns = columns(_LOCALISATION, against=against)
    compared_figures = {
        code: figures
        for code, figures in report.figures_by_mode("localisation_mode").items()
        if figures.count("n")
    }
    rows = _mode_rows(report, compared_figures, place_columns)
    total_row = Row("all", {"code": "", "name": "all modes"} | figure_cells(total, place_columns))
    return Table(
        "judge_places",
        "Places of modes that both call present",
        (CODE, MODE, *place_columns),
        (rows, (total_row,)),
        f"Places of {report.judge} compared with those of {against}. {WILSON}",
    )


def _prevalence_table(report: JudgeReport) -> Table | None:
    """Make the table of prevalences on traces that no person has labelled; None without any."""
    figures_by_mode = report.figures_by_mode("prevalence")
    judged_count = report.count("unlabelled")
    if not judged_count or not figures_by_mode:
        return None
    return Table(
        "judge_prevalence",
        f"Prevalence in {counted(judged_count, 'trace')} that no one has finished",
        (CODE, MODE, *_PREVALENCE),
        (_mode_rows(report, figures_by_mode, _PREVALENCE, _correction_sentences),),
        f"Share of present verdicts of {report.judge}, and the prevalence corrected for its errors "
        "(Rogan and Gladen 1978), for the population of the traces. [a, b] is a 95 % confidence "
        "interval: Wilson's for the uncorrected share, Lang and Reiczigel's (2014) for the "
        "corrected one.",
        (
            Note(
                "corrected: for the errors of the judge (Rogan and Gladen). This is valid if the "
                "traces that people labelled are a random sample of all.",
                "corrected",
            ),
            *withheld_notes(*(figures["corrected"] for figures in figures_by_mode.values())),
        ),
    )


def _overall_table(report: JudgeReport) -> Table | None:
    """Make the table of prevalences on all traces, of which people labelled a part."""
    figures_by_mode = report.figures_by_mode("prevalence_overall")
    with_labels = [figures for figures in figures_by_mode.values() if figures.count("n_labelled")]
    if not report.count("unlabelled") or not with_labels:
        return None
    trace_counts = [figures.count("n") for figures in with_labels]
    least = min(trace_counts)
    greatest = max(trace_counts)
    judged_count = report.count("judged")
    traces_text = f"all {counted(judged_count, 'trace')}"
    if least < judged_count:
        range_text = f"{least:,} to {greatest:,}" if least < greatest else f"{least:,}"
        traces_text = f"{range_text} of {judged_count:,} traces"
    return Table(
        "judge_overall",
        f"Prevalence in {traces_text}: people labelled some of them, the judge all",
        (CODE, MODE, *_OVERALL),
        (_mode_rows(report, figures_by_mode, _OVERALL, width_words),),
        "people alone: estimate from the traces that people labelled. with judge: the same "
        f"combined with the verdicts of {report.judge} on all traces (prediction-powered "
        "inference, PPI++: Angelopoulos, Duchi and Zrnic 2023). Both estimate the prevalence in "
        "the population of the traces, with Wilson's interval. these traces: prevalence in these "
        "traces only, with the interval of a sample from a finite population.",
        (
            _validity_note(figures_by_mode),
            *_too_few_left_note(figures_by_mode),
            *withheld_notes(*figures_by_mode.values()),
        ),
    )


def _validity_note(figures_by_mode: Mapping[str, FigureTable]) -> Note:
    """Return a note on the condition under which the prevalence by people and judge is valid."""
    unresolved_text = (
        " Left out for a mode: traces where the judge is unsure, and labelled traces where people "
        "are unsure, disagree (until adjudicated) or left the mode open."
    )
    if any(figures.value("weighted") for figures in figures_by_mode.values()):
        return Note(
            "Estimates are weighted by the inverse probability with which traces were drawn, so "
            f"they are valid for all traces, whatever the errors of the judge.{unresolved_text}",
            "weighted",
        )
    return Note(
        "with judge: valid if the traces that people labelled are a random sample of all, "
        f"whatever the errors of the judge.{unresolved_text}",
        "powered",
    )


def _too_few_left_note(figures_by_mode: Mapping[str, FigureTable]) -> tuple[Note, ...]:
    """Return a note on the modes with too few traces left for an interval of ± 3 points."""
    codes = [code for code, table in figures_by_mode.items() if _needs_more_than_left(table)]
    text = f"more for ± 3: for {', '.join(codes)}, labelling all traces is not enough."
    return applicable((codes, Note(text, "too_few_left")))


def _unlabelled_count(overall: FigureTable) -> int:
    return overall.count("n") - overall.count("n_labelled")


def _needs_more_than_left(overall: FigureTable) -> bool:
    return overall.count("more_labels") > _unlabelled_count(overall)


def width_words(figures: FigureTable) -> Iterator[str]:
    """Yield half the width of the interval of ``powered``, and the labels needed for ± 3 points.

    ``figures`` are those of the prevalence of a mode on all traces.
    """
    ends = figures["powered"].interval
    if ends is None:
        return
    more_labels = figures.count("more_labels")
    sentence = f"{counted(more_labels, 'more trace') if more_labels else 'no more'} for ± 3"
    if _needs_more_than_left(figures):
        sentence += f" (only {_unlabelled_count(figures):,} are left)"
    low, high = ends
    half_width = 100 * (high - low) / 2
    yield f"± {half_width:.1f} points, {sentence}"


def widest_words(report: JudgeReport) -> str:
    """Describe the mode with the widest interval of its prevalence on all traces.

    The text is empty without any interval.
    """
    with_interval = [
        figures
        for figures in report.figures_by_mode("prevalence_overall").values()
        if figures["powered"].interval is not None
    ]
    if not with_interval:
        return ""

    def width(figures: FigureTable) -> float:
        low, high = figures["powered"].interval or (0.0, 0.0)
        return high - low

    widest = max(with_interval, key=width)
    return f"{widest.mode} {next(width_words(widest))}"


def _correction_sentences(figures: FigureTable) -> Iterator[str]:
    """Yield why a prevalence cannot be corrected, and the number of excluded traces."""
    reason = figures["corrected"].undefined
    explanation = _NOT_CORRECTED.get(reason or "", (reason or "").replace("_", " "))
    unsure_count = figures.count("n_unsure")
    yield from applicable(
        (reason, f"Cannot be corrected: {explanation}."),
        (unsure_count, f"{counted(unsure_count, 'trace')} excluded: the judge is unsure."),
    )


def _effect_table(report: JudgeReport) -> Table | None:
    """Make the table of the effect of suggestions on annotators; None if no study measures it."""
    if report.annotators_in_both_conditions is None:
        return None
    effect = report.table("effect")
    rows = [
        Row(
            statistic,
            {
                "name": STATISTICS[statistic].label,
                **{
                    condition: figure_cell(figure)
                    for condition, figure in effect.by_name(statistic).items()
                },
            },
        )
        for statistic in _EFFECTS
    ]
    withheld = withheld_notes(effect, *report.figures_by_mode("effect_mode").values())
    return Table(
        "judge_withheld",
        "Labels of people with and without suggestions",
        _EFFECT,
        (tuple(rows),),
        f"Suggestions of {report.judge}; the same people in both conditions; "
        f"{counted(effect.count('traces'), 'trace')}. {intervals_note(report.resampling, MANY)}",
        (*_passes_notes(effect, report.annotators_in_both_conditions), *withheld),
    )


def _passes_notes(effect: FigureTable, annotators: Sequence[str]) -> Iterator[Note]:
    """Yield notes on the passes with and without suggestions, and on excluded passes."""
    yield Note(
        f"Traces labelled {counted(effect.count('passes', 'shown'), 'time')} with suggestions "
        f"({effect.count('on_screen')} with at least one on screen) and "
        f"{effect.count('passes', 'withheld')} without, assigned at random, "
        f"by {joined_names(annotators) or 'no one with both'}.",
        "passes",
    )
    left_out = [
        f"{effect.count(statistic)} {description}"
        for statistic, description in (
            ("not_judged", "on traces that the judge has not judged"),
            ("examples", "in the judge's prompt, or chosen for errors of an earlier version"),
        )
        if effect.count(statistic)
    ]
    yield from applicable((left_out, Note(f"Excluded: {'; '.join(left_out)}.", "left_out")))


def _count_cells(figures: FigureTable) -> dict[str, Cell]:
    """Return the cells of n, of both sides' present verdicts, and of the 2 × 2 table."""
    tp, fp, fn, tn = (figures.count(statistic) for statistic in _CELLS)
    return {
        "n": figures.count("n"),
        "present": f"{tp + fp}/{tp + fn}",
        "counts": f"{tp}/{fp}/{fn}/{tn}",
    }


def _figures_by_name(report: JudgeReport) -> dict[str, FigureTable]:
    """Return the figures of the modes by code, and of all modes together."""
    return {**report.figures_by_mode("judge_mode"), "pooled": report.table("judge_pooled")}


def _figures_of(report: JudgeReport, columns: Iterable[Column]) -> list[Figure]:
    """Return the figures of some columns in all rows."""
    return [
        table[column.key]
        for table in (*_figures_by_name(report).values(), report.table("judge_macro"))
        for column in columns
    ]


def _count_sentences(report: JudgeReport, figures: FigureTable) -> Iterator[str]:
    """Yield how often judge and reference say present, then why figures are undefined."""
    against = against_words(report)
    if not figures.count("n"):
        yield (
            f"Nothing to compare: no counted trace has verdicts of both the judge and {against}."
        )
        return
    yield (
        f"Called present by both in {figures.count('true_positives')} of {figures.count('n')}, "
        f"only by the judge in {figures.count('false_positives')}, only by {against} in "
        f"{figures.count('false_negatives')}, by neither in {figures.count('true_negatives')}."
    )
    named_figures = [
        (column.name or column.title, figures[column.key]) for column in (*_RATES, *_CHANCE)
    ]
    yield from why_undefined(named_figures, _UNDEFINED, _NO_VARIANCE)


def _is_biased(table: FigureTable) -> bool:
    """Return whether McNemar's test shows that the judge says present too often or too rarely."""
    p_value = table.value("mcnemar_p_adjusted")
    return p_value is not None and p_value < 0.05


def _bias_word(table: FigureTable) -> str:
    """Return ``more`` or ``less``: how often the judge, unlike the reference, says present."""
    return "more" if table.count("false_positives") > table.count("false_negatives") else "less"


def _mode_sentences(report: JudgeReport, figures: FigureTable) -> Iterator[str]:
    """Yield the sentences of a mode's detail: counts, prevalence, answers, places, exclusions."""
    yield from _count_sentences(report, figures)
    code = figures.mode
    answers = report.table("answers_mode", mode=code)
    places = report.table("localisation_mode", mode=code)
    left_out = _left_out_texts(report.table("judge_mode_left_out", mode=code))
    if _is_biased(figures):
        yield (
            f"The judge says present {_bias_word(figures)} often than {against_words(report)} "
            f"(McNemar, {p_words(figures.value('mcnemar_p_adjusted') or 0.0)}, adjusted over the "
            "modes)."
        )
    yield from _prevalence_sentences(report.table("prevalence", mode=code))
    yield from applicable(
        (
            answers.count("n"),
            f"{counted(answers.count('n'), 'answer')} to the judge's suggestions: "
            f"{answers.count('accept')} accepted, {answers.count('edit')} edited, "
            f"{answers.count('reject')} rejected.",
        ),
        (
            places.count("n"),
            f"Share in a correct place: {in_words(places['right_place'])} of "
            f"{counted(places.count('n'), 'label')} with modes that both call present.",
        ),
        (left_out, f"Excluded: {', '.join(left_out)}."),
    )


def _prevalence_sentences(figures: FigureTable) -> Iterator[str]:
    """Yield a sentence on the share of unlabelled traces with a mode: as judged, and corrected."""
    unlabelled_count = figures.count("n_unlabelled")
    if not unlabelled_count:
        return
    apparent_text = (
        f"In {counted(unlabelled_count, 'trace')} that no one has finished, the judge finds the "
        f"mode in {in_words(figures['apparent'])}"
    )
    corrected = figures["corrected"]
    if corrected.undefined is not None:
        reason = _NOT_CORRECTED.get(corrected.undefined, corrected.undefined)
        yield f"{apparent_text}. This cannot be corrected for its errors: {reason}."
    else:
        yield (
            f"{apparent_text}; corrected for its errors: {in_words(corrected)}, if it makes the "
            "same errors on these traces as on the labelled ones."
        )


def _page_notes(report: JudgeReport) -> Iterator[Note]:
    """Yield the notes on the whole page, warnings first."""
    compared_traces = report.count("compared")
    if not report.table("judge_pooled").count("n"):
        yield _nothing_compared_note(report)
    yield from _chance_warning(report)
    if report.gold is not None:
        description = gold_words(report.gold)
        yield Note(
            f"Reference: {description}. Gold has the final verdicts: unanimous (two or more "
            "annotators agree), adjudicated, or single (one annotator alone).",
            "gold",
            warning="no gold" in description,
        )
    judged = counted(report.count("judged"), "judged trace")
    left_out = _left_out_parts(report)
    excluded = f"Excluded: {'; '.join(left_out)}." if left_out else "Nothing was excluded."
    # If there are unlabelled traces, there are figures on them, unless these were removed from the
    # report because the annotator is blind (``JudgeReport.without_prevalence``).
    is_blind = report.count("unlabelled") and not report.figures_by_mode("prevalence")
    yield Note(f"{compared_traces:,} of {judged} can be compared.", "compared")
    if report.thresholds is not None:
        yield _thresholds_note(report.thresholds)
    yield from applicable((report.judge_seen_counted, _SEEN_COUNTED))
    yield from applicable((left_out or compared_traces, Note(excluded, "left_out")))
    yield from _missing_table_notes(report)
    yield from applicable((is_blind, _BLIND))


def _thresholds_note(thresholds: Thresholds) -> Note:
    """Return the note on the confidences above which the judge's findings count."""
    limit_texts = [
        f"{code} above {threshold.value:g}"
        for code, threshold in thresholds.modes.items()
        if threshold.value > 0
    ]
    return Note(
        f"Thresholds {thresholds.hash}, fitted on "
        f"{counted(thresholds.calibration_traces, 'calibration trace')}, which are left out: "
        f"{', '.join(limit_texts) or 'every finding counts'}.",
        "thresholds",
    )


def _nothing_compared_note(report: JudgeReport) -> Note:
    """Return a warning that the judge has no verdict to compare with the reference, and why."""
    against = against_words(report)
    reason = (
        f"no judged trace that you may see has a verdict of {against}"
        if not report.table("judge_left_out").count("judge_seen")
        else "all verdicts of people on the judged traces were given with suggestions on screen"
    )
    return Note(
        f"{report.judge} cannot be compared with {against} yet: {reason}.",
        "nothing_compared",
        warning=True,
    )


def _left_out_texts(left_out: FigureTable) -> list[str]:
    """Return a text for each reason for which units were left out."""
    return [
        f"{left_out.count(statistic):,} {reason}"
        for statistic, reason in _LEFT_OUT.items()
        if left_out.count(statistic)
    ]


def _left_out_parts(report: JudgeReport) -> tuple[str, ...]:
    """Return texts on the units, examples in the prompt and unfinished traces left out."""
    left_out = report.table("judge_left_out")
    unit_texts = _left_out_texts(left_out)
    example_count = left_out.count("examples")
    unfinished_count = left_out.count("unfinished")
    return applicable(
        (unit_texts, f"{', '.join(unit_texts)} (traces × modes)"),
        (
            example_count,
            f"{counted(example_count, 'trace')} in the judge's prompt, or chosen for errors "
            "of an earlier version",
        ),
        (unfinished_count, f"{counted(unfinished_count, 'trace')} that the judge has not finished"),
    )


def _chance_warning(report: JudgeReport) -> Iterator[Note]:
    """Yield a warning that names the modes in which the judge may be no better than chance."""
    # With only one mode, the pooled figures are those of the mode.
    figures_by_name = (
        _figures_by_name(report) if len(report.modes) > 1 else report.figures_by_mode("judge_mode")
    )
    names = [
        name
        for name, figures in figures_by_name.items()
        if _may_be_at_chance(figures["cohen_kappa"])
    ]
    if names:
        yield Note(
            f"Not shown to be better than chance: {', '.join(names)} (κ is at most 0, or its "
            "interval includes 0, or data are too few for an interval). Raw agreement and AC1 can "
            "be high even so, above all for rare modes; they are no evidence for the judge.",
            "not_better_than_chance",
            warning=True,
        )


def _may_be_at_chance(kappa: Figure) -> bool:
    """Return whether κ is at most 0, has no interval, or has an interval that reaches 0."""
    # An undefined κ is no evidence.
    if kappa.value is None:
        return False
    interval_reaches_0 = kappa.low is not None and kappa.low <= 0
    return kappa.value <= 0 or kappa.withheld is not None or interval_reaches_0


def _biased_notes(report: JudgeReport) -> Iterator[Note]:
    """Yield notes on the modes that the judge calls present too often or too rarely."""
    biased_figures = {
        code: figures
        for code, figures in report.figures_by_mode("judge_mode").items()
        if _is_biased(figures)
    }
    for bias_word in ("more", "less"):
        codes = [
            f"{code} ({p_words(figures.value('mcnemar_p_adjusted') or 0.0)})"
            for code, figures in biased_figures.items()
            if _bias_word(figures) == bias_word
        ]
        if codes:
            yield Note(
                f"The judge says present {bias_word} often than "
                f"{against_words(report)} (McNemar's test, p adjusted over the modes, Benjamini "
                f"and Hochberg): {', '.join(codes)}.",
                "tilted",
            )


def _missing_table_notes(report: JudgeReport) -> tuple[Note, ...]:
    """Return notes on missing tables, and on labels left out of the table of places."""
    against = against_words(report)
    places = report.table("localisation")
    count_texts = [
        f"{counted(places.count(statistic), 'label')} {description}"
        for statistic, description in (
            ("whole_trace", "on a whole trace (excluded)"),
            ("no_places", f"on which {against} gave no place (excluded)"),
            ("without_order", "with an unknown order of spans (counted as incorrect)"),
        )
        if places.count(statistic)
    ]
    merged_count = places.count("merged_places")
    no_places = f"No places of the judge can be compared with places of {against}."
    merged = (
        f"{merged_count:,} of {counted(places.count('places'), 'place')} of {against} merge "
        "different places of several annotators; a label anywhere in them counts as correct."
    )
    return applicable(
        (not report.table("calibration").count("n"), _NO_CONFIDENCE),
        (not report.table("answers").count("n"), _NO_ANSWERS),
        (not places.count("n"), Note(no_places, "no_places")),
        (count_texts, Note(f"Labels of the judge: {'; '.join(count_texts)}.", "places_beside")),
        (merged_count, Note(merged, "merged_places")),
        (report.annotators_in_both_conditions is None, _NOT_WITHHELD),
    )


def _macro_note(report: JudgeReport, columns: Sequence[Column]) -> Note:
    return macro_note(
        report.table("judge_macro").values("modes_defined"), len(report.modes), columns
    )


def _caption_text(report: JudgeReport) -> str:
    """Return the caption of a table: traces, taxonomy, and the methods of the intervals."""
    trace_count = report.count("compared")
    return (
        f"{counted(trace_count, 'trace')} (taxonomy {report.taxonomy}). "
        f"{intervals_note(report.resampling, trace_count, BIAS_CORRECTED)} Rates per mode: "
        "Wilson's interval."
    )
