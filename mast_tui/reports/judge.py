"""How good a judge is, as a section of the report on agreement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mast_tui.counts import counted
from mast_tui.gold.sources import gold_name, gold_words
from mast_tui.reports.model import (
    CODE,
    MODE,
    Behind,
    Cell,
    Column,
    Estimate,
    Kind,
    Note,
    Row,
    Section,
    Table,
    columns,
    figure_cells,
)
from mast_tui.reports.sentences import (
    PARADOX,
    Values,
    fact,
    in_words,
    intervals_note,
    is_kappa_paradox,
    joined,
    macro_note,
    p_words,
    percent,
    resampled_note,
    why_undefined,
    withheld_notes,
)
from mast_tui.reports.span_agreement import BIAS_CORRECTED

_N, *_RATES = columns("""
    n                  | n         | count  | compared (n)             | 94
    true_positive_rate | TPR       | number | true positive rate (TPR) | 100
    true_negative_rate | TNR       | number | true negative rate (TNR) | 99
    precision          | precision | number |                          | 48
    f1                 | F1        | number |                          | 47
""")
# Raw agreement and AC1 look fine on a judge that is of no use where a mode is rare, so that
# neither is shown without κ beside it.
_BESIDE: Final = columns("""
    cohen_kappa   | κ   | number | Cohen's κ     | 100
    gwet_ac1      | AC1 | number | Gwet's AC1    | 48
    raw_agreement | raw | number | raw agreement | 47
""")
_ERRORS: Final = columns("""
    mcnemar_p_adjusted | McNemar     | p_value | McNemar's p, corrected over the modes | 60
    counts | TP/FP/FN/TN | text | true and false positives, false and true negatives | 20
""")
_JUDGES: Final = (
    *columns("""
        judge  | judge  | text  |                 | 102
        traces | traces | count | traces compared | 95
        n      | n      | count | traces × modes  | 94
    """),
    *_RATES,
    *_BESIDE,
    *columns("left_out | left out | text | | 20"),
)
_DIFFERENCES: Final = columns("""
    true_positive_rate | Δ TPR       | number | difference of true positive rates | 60
    true_negative_rate | Δ TNR       | number | difference of true negative rates | 58
    precision          | Δ precision | number | difference of precisions          | 45
    cohen_kappa        | Δ κ         | number | difference of Cohen's κ           | 62
""")
_CALIBRATION: Final = columns("""
    confidence      | confidence | text  |                         | 102
    n               | n          | count | findings                | 98
    mean_confidence | mean       | share | mean confidence         | 97
    right           | right      | share | share of right findings | 99
""")
_ANSWERS: Final = columns("""
    name     | answers      | text  |                             | 102
    n        | n            | count | answers                     | 98
    accept   | accepted     | count |                             | 90
    edit     | edited       | count |                             | 89
    reject   | rejected     | count |                             | 91
    accepted | as it stands | share | share accepted as it stands | 95
    taken    | taken        | share | share accepted or edited    | 99
""")
_LOCALISATION: Final = """
    n            | its labels  | count | labels of the judge                         | 90
    right_place  | right place | share | share of its labels in a right place        | 99
    places       | places      | count | places of {against}                         | 89
    places_found | found       | share | share of the places of {against} that it finds | 98
"""
_PREVALENCE: Final = columns("""
    n_unlabelled | n              | count | traces with its verdict  | 97
    apparent     | the judge says | share | called present           | 98
    corrected    | corrected      | share | corrected for its errors | 99
""")
_OVERALL: Final = columns("""
    n_labelled   | labelled       | count  | traces with people's verdict   | 96
    unresolved   | unresolved     | count  | traces on which people differ  | 61
    people       | people alone   | share  | people call present            | 97
    these        | of these       | share  | of these traces alone          | 62
    powered      | with the judge | share  | prediction-powered             | 99
    judge_weight | λ              | number | weight of the judge's word     | 60
    more_labels  | for ± 3        | count  | traces to label for ± 3 points | 95
""")
_WITHHELD: Final = columns("""
    name       |            | text   | what people said       | 102
    shown      | shown      | number | with suggestions shown | 98
    withheld   | without    | number | without suggestions    | 97
    difference | difference | number |                        | 99
""")

_UNDEFINED: Final = {
    "no_variance": "one of the two says the same of all traces",
    "no_overlap": "there is no trace to divide by",
    "single_rater": "only one of the two has said anything",
}
_OWN: Final = {
    "true positive rate (TPR)": "nothing is present by the reference",
    "true negative rate (TNR)": "nothing is absent by the reference",
    "precision": "the judge calls nothing present",
    "F1": "neither calls anything present",
}
_REFUSED: Final = {
    "no_unlabelled": "there is no trace that only the judge has judged",
    "no_positives": "the reference calls the mode present nowhere, so its TPR is not known",
    "no_negatives": "the reference calls the mode absent nowhere, so its TNR is not known",
    "no_better_than_chance": "TPR and TNR add up to 1 or less: its word says nothing of the truth",
}
_LEFT_OUT: Final = {
    "judge_seen": "settled with a judge on screen",
    "unsure_judge": "the judge unsure",
    "unsure_reference": "the reference unsure",
    "unresolved": "not settled yet",
}
_WILSON: Final = "In brackets Wilson's 95 % intervals."
_PULL: Final = (
    ("present_rate", "share of present"),
    ("labels_per_pass", "labels per trace"),
    ("agreement_with_judge", "raw agreement with the judge"),
    ("kappa_with_judge", "κ with the judge"),
)


def judge_section(
    judge: Values, judges: Values | None = None, *, sight: Values | None = None
) -> Section:
    """Make the page of a judge.

    Args:
        judge: The part ``judge`` of the document.
        judges: The part ``judges``, where another one stands beside it.
        sight: As ``agreement_report`` takes it.
    """
    tables = (
        _rates(judge),
        _beside_chance(judge),
        _calibration(judge),
        _answers(judge),
        _localisation(judge),
        _prevalence(judge, sight),
        _overall(judge),
        _withheld(judge),
        None if judges is None else compared_table(judges),
    )
    kept = tuple(table for table in tables if table is not None)
    return Section("judge", "Judge", kept, _facts(judge), tuple(_notes(judge, sight)))


def judges_section(judges: Values) -> Section:
    """Make a table of several judges, a row for each over all modes.

    Args:
        judges: By name the part ``judge`` of a document, all held against the same.
    """
    rows = [
        Row(
            name,
            {
                "judge": name,
                "traces": one["traces"]["compared"],
                **figure_cells(one["pooled"], (_N, *_RATES, *_BESIDE)),
                "left_out": ", ".join(_left_out_parts(one["left_out"])) or "nothing",
            },
        )
        for name, one in judges.items()
    ]
    table = Table(
        "judges",
        "Judges, all modes pooled",
        _JUDGES,
        (tuple(rows),),
        notes=withheld_notes(*(one["pooled"] for one in judges.values())),
    )
    return Section("judges", "Judges", (table,))


def compared_table(judges: Values) -> Table:
    """Make a table of two judges on the same units: who is right where the other errs.

    Args:
        judges: The part ``judges`` of the document.
    """
    first, second = judges["judges"]
    modes = [
        Row(
            mode["slug"],
            {"code": code, "name": mode["name"], **_compared_cells(mode),
             "p": mode["p_adjusted"]},
        )
        for code, mode in judges["modes"].items()
    ]  # fmt: skip
    pooled = judges["pooled"]
    total = Row("pooled", {"name": "pooled", **_compared_cells(pooled), "p": pooled["p_value"]})
    notes = [
        Note(
            f"The same {counted(judges['units'], 'unit')} (traces × modes) for both. only 1: "
            f"{first} says what {judges['against']} says and {second} does not; only 2: the other "
            "way round. Differences are the first judge minus the second, with paired intervals.",
            "n",
        ),
        Note(
            "p: whether one is right more often. Of a mode McNemar's exact test, corrected over "
            "the modes after Benjamini and Hochberg; of all modes a test that turns whole traces "
            "round, as the modes of a trace hang together.",
            "p_value",
        ),
        *withheld_notes(judges["modes"], pooled),
    ]
    if any(judges["left_out"]):
        own, other = judges["left_out"]
        notes.append(
            Note(
                f"Left out: what only one of them has judged ({first} {own}, {second} {other} "
                "traces × modes).",
                "left_out",
            )
        )
    return Table(
        "judges_compared",
        f"{first} (1) and {second} (2) against {judges['against']}",
        (
            CODE,
            MODE,
            _N,
            Column("only_first", "only 1", Kind.COUNT, f"only {first} is right", keeps=80),
            Column("only_second", "only 2", Kind.COUNT, f"only {second} is right", keeps=80),
            *_DIFFERENCES,
            Column("p", "p", Kind.P_VALUE, "p of one being right more often", keeps=75),
        ),
        (tuple(modes), (total,)),
        f"{counted(judges['traces'], 'trace')} (taxonomy {judges['taxonomy']}). "
        f"{intervals_note(judges['bootstrap'], judges['traces'], BIAS_CORRECTED)} Differences of "
        "rates of one mode have Newcombe's paired ones.",
        tuple(notes),
    )


def _compared_cells(table: Values) -> dict[str, Cell]:
    return {
        "n": table["n"],
        "only_first": table["only_first_right"],
        "only_second": table["only_second_right"],
        **{one.key: Estimate.of(table[one.key]["difference"]) for one in _DIFFERENCES},
    }


def against_words(judge: Values) -> str:
    """Name what the judge is held against; gold that is one person's word bears their name."""
    return str(judge["against"]) if judge["gold"] is None else gold_name(judge["gold"])


def _facts(judge: Values) -> tuple[tuple[str, str, str], ...]:
    pooled = judge["pooled"]
    return (
        ("pooled over", f"{pooled['n']:,}", "traces × modes"),
        fact("TPR", pooled["true_positive_rate"]),
        fact("TNR", pooled["true_negative_rate"]),
        fact("κ", pooled["cohen_kappa"]),
    )


# Tables


def _rates(judge: Values) -> Table:
    against, traces = against_words(judge), judge["traces"]
    present = Column(
        "present", "present", Kind.TEXT, f"called present by the judge / {against}", keeps=70
    )
    return Table(
        "judge",
        f"{judge['judge']} against {against}",
        (CODE, MODE, _N, present, *_RATES),
        _groups(judge, _RATES, detail=True),
        f"{counted(traces['compared'], 'trace')} (taxonomy {judge['taxonomy']}). "
        f"{_intervals(judge)}",
        (
            Note(
                f"present: how often the judge / {against} say so. TPR: of what {against} calls "
                "present the share that the judge finds. TNR: the same of absent.",
                "n",
            ),
            _macro_note(judge, _RATES),
            *withheld_notes(*_only(judge, _RATES)),
        ),
    )


def _beside_chance(judge: Values) -> Table:
    return Table(
        "judge_chance",
        f"{judge['judge']} against {against_words(judge)}, beside chance",
        (CODE, MODE, *_BESIDE, *_ERRORS),
        _groups(judge, _BESIDE, detail=False),
        f"{counted(judge['traces']['compared'], 'trace')} (taxonomy {judge['taxonomy']}). "
        f"{_intervals(judge)}",
        (
            _macro_note(judge, _BESIDE),
            *_paradox_note(judge),
            *_tilted(judge),
            *withheld_notes(*_only(judge, _BESIDE)),
        ),
    )


def _groups(
    judge: Values, columns: Sequence[Column], *, detail: bool
) -> tuple[tuple[Row, ...], ...]:
    """Make a row per mode, then the totals; with ``detail`` or marked."""
    slugs = tuple(mode["slug"] for mode in judge["modes"].values())

    def cells(table: Values) -> dict[str, Cell]:
        return {**_counts(table), **figure_cells(table, columns)}

    modes = [
        Row(
            mode["slug"],
            {"code": code, "name": mode["name"], **cells(mode),
             "mcnemar_p_adjusted": mode["mcnemar_p_adjusted"]},
            mark=PARADOX if not detail and _is_paradox(mode) else "",
            detail=tuple(_mode_detail(judge, code)) if detail else (),
            behind=_behind(f"{code} {mode['name']}", (mode["slug"],)),
        )
        for code, mode in judge["modes"].items()
    ]  # fmt: skip
    pooled = judge["pooled"]
    totals = (
        Row("macro", {"name": "macro mean", **figure_cells(judge["macro"], columns)},
            behind=_behind("Mean over modes", slugs)),
        Row("pooled", {"name": "pooled", **cells(pooled)},
            mark=PARADOX if not detail and _is_paradox(pooled) else "",
            detail=tuple(_table_detail(judge, pooled)) if detail else (),
            behind=_behind("All modes pooled", slugs)),
    )  # fmt: skip
    return tuple(modes), totals


def _calibration(judge: Values) -> Table | None:
    """Confidence beside truth."""
    found = judge["calibration"]
    if not found["n"]:
        return None

    bins = [
        Row(
            f"{one['low']:.1f}",
            {"confidence": f"{one['low']:.1f}–{one['high']:.1f}"} | figure_cells(one, _CALIBRATION),
        )
        for one in found["bins"]
        if one["n"]
    ]
    every = Row("all", {"confidence": "all"} | figure_cells(found, _CALIBRATION))
    error = in_words(found["expected_calibration_error"])
    notes = [
        Note(
            "A finding is trace × mode, with its surest suggestion; right: the reference says "
            f"present too. Expected calibration error: {error}.",
            "calibration",
        )
    ]
    if found["without_confidence"]:
        notes.append(
            Note(
                f"{counted(found['without_confidence'], 'finding')} without a confidence: in no "
                "row.",
                "without_confidence",
            )
        )
    return Table(
        "judge_calibration",
        "Calibration: how sure the judge was, and how often right",
        _CALIBRATION,
        (tuple(bins), (every,)),
        f"Findings of {judge['judge']}. {_WILSON}",
        (*notes, *withheld_notes(found)),
    )


def _answers(judge: Values) -> Table | None:
    """What people answered to its suggestions."""
    found = judge["answers"]
    if not found["n"]:
        return None

    def row(ident: str, name: str, one: Values) -> Row:
        return Row(ident, {"name": name} | figure_cells(one, _ANSWERS))

    bins = [
        row(f"{one['low']:.1f}", f"confidence {one['low']:.1f}–{one['high']:.1f}", one)
        for one in found["bins"]
        if one["n"]
    ]
    people = [row(f"by {name}", f"by {name}", one) for name, one in found["annotators"].items()]
    return Table(
        "judge_answers",
        "People's answers to its suggestions",
        _ANSWERS,
        (tuple(bins), tuple(people) if len(people) > 1 else (), (row("all", "all", found),)),
        f"Suggestions of {judge['judge']}. {_WILSON}",
        withheld_notes(found),
    )


def _localisation(judge: Values) -> Table | None:
    """Whether a judge that names the right mode names the right place."""
    found = judge["localisation"]
    if not found["n"]:
        return None
    against = against_words(judge)

    shown = columns(_LOCALISATION, against=against)

    def row(ident: str, code: str, name: str, one: Values) -> Row:
        return Row(ident, {"code": code, "name": name} | figure_cells(one, shown))

    modes = [
        row(judge["modes"][code]["slug"], code, judge["modes"][code]["name"], one)
        for code, one in found["modes"].items()
        if one["n"]
    ]
    return Table(
        "judge_places",
        "Places, where both call the mode present",
        (CODE, MODE, *shown),
        (tuple(modes), (row("all", "", "all modes", found),)),
        f"Places of {judge['judge']} beside those of {against}. {_WILSON}",
        withheld_notes(found),
    )


def _prevalence(judge: Values, sight: Values | None) -> Table | None:
    """How often a mode shows on the traces that only the judge saw."""
    alone = judge["traces"]["unlabelled"]
    if not alone or not judge["prevalence"]:
        return None
    rows = [
        Row(
            judge["modes"][code]["slug"],
            {"code": code, "name": judge["modes"][code]["name"]} | figure_cells(one, _PREVALENCE),
            detail=tuple(_refused(one)),
        )
        for code, one in judge["prevalence"].items()
    ]
    notes = [
        Note(
            "corrected: for how the judge errs (Rogan and Gladen); it holds where the traces that "
            "people labelled are a random sample of all.",
            "corrected",
        )
    ]
    hidden = (sight or {}).get("unlabelled", 0)
    if hidden:
        notes.append(
            Note(
                f"{counted(hidden, 'unlabelled trace')} left out: what judges say of them is "
                f"hidden from {(sight or {})['annotator']}.",
                "hidden",
            )
        )
    return Table(
        "judge_prevalence",
        f"Prevalence on {counted(alone, 'trace')} that only the judge has judged",
        (CODE, MODE, *_PREVALENCE),
        (tuple(rows),),
        f"As {judge['judge']} says, and corrected for its errors (Rogan and Gladen 1978), for "
        "traces like these. In brackets 95 % intervals: Wilson's, and of the corrected ones Lang "
        "and Reiczigel's (2014).",
        (*notes, *withheld_notes(*(one["corrected"] for one in judge["prevalence"].values()))),
    )


def _overall(judge: Values) -> Table | None:
    """How often a mode shows over all traces, by people on a part and the judge on all."""
    alone = judge["traces"]["unlabelled"]
    if not alone or not judge["prevalence"]:
        return None
    rows = [
        Row(
            judge["modes"][code]["slug"],
            {"code": code, "name": judge["modes"][code]["name"]} | figure_cells(found, _OVERALL),
            detail=tuple(width_words(found)),
        )
        for code, mode in judge["prevalence"].items()
        for found in (mode["overall"],)
    ]
    figures = {code: mode["overall"] for code, mode in judge["prevalence"].items()}
    counted_traces = [mode["n"] for mode in figures.values() if mode["n_labelled"]] or [0]
    fewest = min(counted_traces)
    most = max(counted_traces)
    judged = judge["traces"]["judged"]
    over = f"all {counted(judged, 'trace')}"
    if fewest < judged:
        over = f"{fewest:,}" + (f" to {most:,}" if fewest < most else "") + f" of {judged:,} traces"
    return Table(
        "judge_overall",
        f"Prevalence over {over}: people on a part, the judge on all",
        (CODE, MODE, *_OVERALL),
        (tuple(rows),),
        f"What people say of the traces that they labelled, and the same joined with what "
        f"{judge['judge']} says of all (prediction-powered inference, PPI++: Angelopoulos, Duchi "
        "and Zrnic 2023). The intervals are Wilson's. Both are estimates for traces like these; "
        "'of these' is the share of these traces alone, with the interval of a sample of so many.",
        (_powered_note(figures), *_left_to_label(figures), *withheld_notes(figures)),
    )


def _powered_note(figures: Values) -> Note:
    decided = "; traces on which people differ are in neither until somebody decides"
    if any(one.get("weighted") for one in figures.values()):
        return Note(
            "Both are weighted by one over the chances with which traces were drawn, so that they "
            f"hold for all traces, however the judge errs{decided}.",
            "weighted",
        )
    return Note(
        "with the judge: it holds where the traces with people's verdict are a random sample of "
        f"all, however the judge errs{decided}.",
        "powered",
    )


def _left_to_label(figures: Values) -> Iterator[Note]:
    """Say of which modes too few traces are left for an interval of ± 3 points."""
    short = [code for code, mode in figures.items() if _falls_short(mode)]
    if short:
        yield Note(
            f"for ± 3: not with these traces, as fewer are left, in {', '.join(short)}.",
            "too_few_left",
        )


def _falls_short(overall: Values) -> bool:
    more = overall["more_labels"]
    return more is not None and more > overall["n"] - overall["n_labelled"]


def width_words(overall: Values) -> Iterator[str]:
    """Say how wide the interval over all traces is, and what it takes: ``± 4.1 points, 37 …``."""
    ends, more = overall["powered"].get("ci"), overall["more_labels"]
    if ends is not None:
        sentence = f"{more:,} more for ± 3" if more else "no more are needed for ± 3"
        if _falls_short(overall):
            sentence += f", not with the {overall['n'] - overall['n_labelled']:,} left"
        yield f"± {(ends[1] - ends[0]) * 50:.1f} points, {sentence}"


def widest_words(prevalence: Values) -> str:
    """Say how wide the widest of the intervals over all traces is, and of which mode."""
    widths = {
        code: ends[1] - ends[0]
        for code, one in prevalence.items()
        if (ends := one["overall"]["powered"].get("ci")) is not None
    }
    if not widths:
        return ""
    code = max(widths, key=lambda one: widths[one])
    return f"{code} {next(width_words(prevalence[code]['overall']))}"


def _refused(one: Values) -> Iterator[str]:
    reason = one["corrected"].get("undefined")
    if reason is not None:
        yield f"It cannot be corrected: {_REFUSED.get(reason, reason.replace('_', ' '))}."
    if one["n_unsure"]:
        yield f"{counted(one['n_unsure'], 'trace')} left out, of which the judge is unsure."


def _withheld(judge: Values) -> Table | None:
    """How people's labels differ with and without its suggestions on screen."""
    pull = judge["withheld"]
    if pull is None:
        return None
    rows = [Row(key, {"name": name} | figure_cells(pull[key], _WITHHELD)) for key, name in _PULL]
    passes = pull["passes"]
    left = [
        told
        for n, told in (
            (pull["not_judged"], "on traces that the judge has not judged"),
            (pull["examples"], "on examples in its prompt"),
        )
        if n
        for told in [f"{counted(n, 'pass', 'passes')} {told}"]
    ]
    notes = [
        Note(
            f"{counted(passes['shown'], 'pass', 'passes')} with suggestions ({pull['on_screen']} "
            f"had some on screen), {passes['withheld']} without, chosen at random, by "
            f"{joined(pull['annotators']) or 'nobody with both'}.",
            "passes",
        )
    ]
    if left:
        notes.append(Note(f"Left out: {'; '.join(left)}.", "left_out"))
    return Table(
        "judge_withheld",
        "What people said with suggestions shown, and without",
        _WITHHELD,
        (tuple(rows),),
        f"The same people, with and without suggestions of {judge['judge']}, over "
        f"{counted(pull['traces'], 'trace')}. {resampled_note(judge['bootstrap'])}",
        (*notes, *withheld_notes(pull)),
    )


# Cells


def _counts(table: Values) -> dict[str, Cell]:
    four = [table[f"{sign}_{what}"] for sign, what in (
        ("true", "positives"), ("false", "positives"), ("false", "negatives"), ("true", "negatives")
    )]  # fmt: skip
    tp, fp, fn, _ = four
    return {
        "n": table["n"],
        "present": f"{tp + fp}/{tp + fn}",
        "counts": "/".join(map(str, four)),
    }


def _only(judge: Values, columns: Sequence[Column]) -> list[object]:
    """The figures of these columns in all rows."""
    tables = (*judge["modes"].values(), judge["macro"], judge["pooled"])
    return [{column.key: table.get(column.key) for column in columns} for table in tables]


def _behind(title: str, modes: tuple[str, ...]) -> Behind:
    return Behind(title, modes, (("page", "judge"),))


# Sentences


def _table_detail(judge: Values, table: Values) -> Iterator[str]:
    against = against_words(judge)
    if not table["n"]:
        yield f"Nothing to compare: no trace on which the judge and {against} both spoke."
        return
    yield (
        f"Both say present in {table['true_positives']} of {table['n']}, only the judge in "
        f"{table['false_positives']}, only {against} in {table['false_negatives']}, neither in "
        f"{table['true_negatives']}."
    )
    figures = [(one.name or one.title, table[one.key]) for one in (*_RATES, *_BESIDE)]
    yield from why_undefined(figures, _UNDEFINED, _OWN)


def _mode_detail(judge: Values, code: str) -> Iterator[str]:
    mode = judge["modes"][code]
    yield from _table_detail(judge, mode)
    p = mode["mcnemar_p_adjusted"]
    if p is not None and p < 0.05:
        often = "more" if mode["false_positives"] > mode["false_negatives"] else "less"
        yield (
            f"The judge says present {often} often than {against_words(judge)} (McNemar, "
            f"{p_words(p)}, corrected over the modes)."
        )
    yield from _prevalence_detail(judge["prevalence"].get(code))
    answers, places = judge["answers"]["modes"].get(code), judge["localisation"]["modes"].get(code)
    if answers is not None and answers["n"]:
        yield (
            f"{counted(answers['n'], 'answer')} to its suggestions: {answers['accept']} accepted, "
            f"{answers['edit']} edited, {answers['reject']} rejected."
        )
    if places is not None and places["n"]:
        yield (
            f"In a right place, where both say present: {in_words(places['right_place'])} of "
            f"{counted(places['n'], 'label')}."
        )
    left = [f"{what} {mode['left_out'][key]:,}" for key, what in _LEFT_OUT.items()
            if mode["left_out"].get(key)]  # fmt: skip
    if left:
        yield f"Left out: {', '.join(left)}."


def _prevalence_detail(found: Values | None) -> Iterator[str]:
    if found is None or not found["n_unlabelled"]:
        return
    says = (
        f"On {counted(found['n_unlabelled'], 'trace')} that nobody has labelled the judge says "
        f"present in {percent(found['apparent']['value'])}"
    )
    corrected = found["corrected"]
    if corrected["value"] is None:
        reason = corrected["undefined"]
        yield f"{says}; that cannot be corrected: {_REFUSED.get(reason, reason)}."
    else:
        yield (
            f"{says}; corrected for its errors it is {in_words(corrected)}, as far as it errs "
            "there as it does here."
        )


def _notes(judge: Values, sight: Values | None) -> Iterator[Note]:
    """What holds for all of the page; warnings first."""
    traces, gold = judge["traces"], judge["gold"]
    if not judge["pooled"]["n"]:
        against = against_words(judge)
        yield Note(
            f"{judge['judge']} cannot be held against {against} yet: that needs traces that it has "
            f"judged and that may be seen, with a verdict of {against} that counts.",
            "nothing_compared",
            warning=True,
        )
    yield from _useless(judge)
    if gold is not None and traces["compared"]:
        words = gold_words(gold)
        yield Note(f"What it is measured by: {words}.", "gold", warning="no gold" in words)
    yield Note(
        f"{traces['compared']:,} of {counted(traces['judged'], 'judged trace')} can be compared.",
        "compared",
    )
    if judge["judge_seen_counted"]:
        yield Note("Verdicts that came about with a judge on screen are counted too.", "judge_seen")
    yield _left_out(judge)
    yield from _without_tables(judge)
    if traces["unlabelled"] and not judge["prevalence"]:
        yield Note(
            "What it says of traces that nobody has finished is kept from who labels blind.",
            "blind",
        )


def _left_out(judge: Values) -> Note:
    told = _left_out_parts(judge["left_out"])
    return Note(f"Left out: {'; '.join(told)}." if told else "Nothing was left out.", "left_out")


def _left_out_parts(counts: Values) -> list[str]:
    parts = [f"{counts[key]:,} {what}" for key, what in _LEFT_OUT.items() if counts.get(key)]
    told = [f"{', '.join(parts)} (traces × modes)"] if parts else []
    if counts.get("examples"):
        told.append(f"{counted(counts['examples'], 'trace')} in its prompt")
    if counts.get("unfinished"):
        told.append(f"{counted(counts['unfinished'], 'trace')} that it has not finished")
    return told


def _useless(judge: Values) -> Iterator[Note]:
    """The modes in which the judge's word could be chance."""
    tables = list(judge["modes"].items())
    if len(tables) > 1:
        tables.append(("pooled", judge["pooled"]))
    found = [name for name, one in tables if _may_be_chance(one["cohen_kappa"])]
    if found:
        yield Note(
            f"Not shown to be better than chance: {', '.join(found)}. There κ is at most 0, its "
            "interval reaches 0, or there is too little for an interval. Raw agreement and AC1 may "
            "look fine there all the same, most of all where a mode is rare; they say nothing for "
            "the judge.",
            "not_better_than_chance",
            warning=True,
        )


def _may_be_chance(kappa: Values) -> bool:
    value, ends = kappa["value"], kappa.get("ci")
    if value is None:
        return False
    return value <= 0 or "ci_withheld" in kappa or (ends is not None and ends[0] <= 0)


def _tilted(judge: Values) -> Iterator[Note]:
    """The modes that the judge calls present too often, or too rarely."""
    by: dict[str, list[str]] = {"more": [], "less": []}
    for code, one in judge["modes"].items():
        p = one["mcnemar_p_adjusted"]
        if p is not None and p < 0.05:
            more = one["false_positives"] > one["false_negatives"]
            by["more" if more else "less"].append(f"{code} ({p_words(p)})")
    for often, codes in by.items():
        if codes:
            yield Note(
                f"Calls present {often} often than {against_words(judge)} does (McNemar, p "
                f"corrected over the modes after Benjamini and Hochberg): {', '.join(codes)}.",
                "tilted",
            )


def _without_tables(judge: Values) -> Iterator[Note]:
    """Why there is no table of confidence, answers, places or withheld suggestions."""
    against, places = against_words(judge), judge["localisation"]
    if not judge["calibration"]["n"]:
        yield Note(
            "Confidence: none of its findings that can be compared has one.", "no_confidence"
        )
    if not judge["answers"]["n"]:
        yield Note("Nobody has answered a suggestion of this judge.", "no_answers")
    if not places["n"]:
        yield Note(f"Places: none of its places can be compared with {against}'s.", "no_places")
    beside = [
        f"{counted(n, 'label')} {what}"
        for n, what in (
            (places["whole_trace"], "on a whole trace, not counted"),
            (places["no_places"], f"where {against} says present without a place, not counted"),
            (places["without_order"], "counted as wrong, as the order of the spans is unknown"),
        )
        if n
    ]  # fmt: skip
    if beside:
        yield Note(f"Places of the judge: {'; '.join(beside)}.", "places_beside")
    if places["merged_places"]:
        yield Note(
            f"{counted(places['merged_places'], 'place')} of {places['places']} of {against} cover "
            "different places of several annotators; a label anywhere in them counts as right.",
            "merged_places",
        )
    if judge["withheld"] is None:
        yield Note(
            "No study keeps suggestions back on a share of the traces, so nothing tells how far "
            "they move people; mast-tui study sets that up.",
            "not_withheld",
        )


def _macro_note(judge: Values, columns: Sequence[Column]) -> Note:
    return macro_note(judge["macro"]["modes_defined"], len(judge["modes"]), columns)


def _is_paradox(table: Values) -> bool:
    return is_kappa_paradox(
        table["cohen_kappa"]["value"],
        table["raw_agreement"]["value"],
        table["prevalence"].values(),
    )


def _paradox_note(judge: Values) -> Iterator[Note]:
    tables = {**judge["modes"], "pooled": judge["pooled"]}
    marked = [name for name, table in tables.items() if _is_paradox(table)]
    if marked:
        yield Note(
            f"{PARADOX} {', '.join(marked)}: κ is low although raw agreement is high, as one "
            "answer is nearly always given. AC1 looks fine on a useless judge too: read TPR and "
            "TNR.",
            "kappa_paradox",
        )


def _intervals(judge: Values) -> str:
    told = intervals_note(judge["bootstrap"], judge["traces"]["compared"], BIAS_CORRECTED)
    return f"{told} Rates of one mode have Wilson's."
