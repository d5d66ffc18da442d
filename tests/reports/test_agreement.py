"""Agreement of people as a report: its tables, what is marked, and what it tells besides."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mast_tui.figures.agreement.report import Agreement, StudyInput
from mast_tui.figures.agreement.report import agreement_figures as figures_of
from mast_tui.figures.record import COEFFICIENTS, STATISTICS, Figure, FigureIndex, Sources
from mast_tui.figures.spans.input import LabelRange
from mast_tui.figures.spans.report import SpanAgreement, span_figures
from mast_tui.labels import VerdictValue
from mast_tui.reports.agreement import agreement_report, missed_table
from mast_tui.reports.model import Estimate, Report
from mast_tui.reports.sentences import is_kappa_paradox
from mast_tui.reports.span_agreement import places_section
from tests.figures.agreement.build_reports import DEGENERATE, whole
from tests.figures.agreement.tables import retest_table, rotating_lines, verdict_table
from tests.figures.agreement.test_spans import reading
from tests.figures.agreement.test_spans import study as places_of
from tests.figures.agreement.test_study import MODES
from tests.figures.agreement.test_study import study as study_of
from tests.reports.documents import agreement
from tests.reports.reading import (
    detail,
    estimate,
    keys,
    note,
    notes,
    reasons,
    row,
    section,
    table,
    told,
)

CELLS = {"both": (1, 1), "first": (1, 0), "second": (0, 1), "neither": (0, 0)}
VALUES = (VerdictValue.ABSENT, VerdictValue.PRESENT)


def study(*tables: tuple[int, int, int, int], name: str = "Step repetition") -> StudyInput:
    """One mode per two-by-two table of ann and bob."""
    modes = tuple((f"m{i}", f"1.{i + 1}", name) for i in range(len(tables)))
    verdicts = {}
    for (slug, _, _), counts in zip(modes, tables, strict=True):
        answers = [pair for pair, n in zip(CELLS.values(), counts, strict=True) for _ in range(n)]
        for i, (first, second) in enumerate(answers):
            verdicts["ann", f"t{i}", slug] = VALUES[first]
            verdicts["bob", f"t{i}", slug] = VALUES[second]
    traces = frozenset(f"t{i}" for i in range(max(sum(t) for t in tables)))
    finished = {"ann": traces, "bob": traces}
    table = verdict_table(modes, finished, verdicts)
    return StudyInput("mast@3", modes, ("ann", "bob"), "1", table, finished)


def of_tables(*tables: tuple[int, int, int, int]) -> Report:
    """The report on one mode per two-by-two table."""
    return agreement_report(figures_of(study(*tables), rounds=50))


def many(said: dict[str, str]) -> StudyInput:
    """A study of one mode by a letter per trace: ``1``, ``0`` and ``·`` for not finished."""
    verdicts = {
        (name, f"t{i}", "m"): VALUES[int(letter)]
        for name, letters in said.items()
        for i, letter in enumerate(letters)
        if letter != "·"
    }
    finished = {
        name: frozenset(f"t{i}" for i, letter in enumerate(letters) if letter != "·")
        for name, letters in said.items()
    }
    modes = (("m", "1.1", "Mode"),)
    table = verdict_table(modes, finished, verdicts)
    return StudyInput("mast@3", modes, tuple(said), "1", table, finished)


def of_words(said: dict[str, str]) -> Report:
    return agreement_report(figures_of(many(said), rounds=20))


def of_two(ann: str, bob: str) -> Report:
    slug = MODES[0][0]
    given = study_of({("ann", slug): ann, ("bob", slug): bob})
    return agreement_report(figures_of(given, rounds=50))


def test_a_row_has_the_figures_of_its_mode_with_intervals_and_the_traces_behind() -> None:
    document = figures_of(study((20, 5, 10, 15)), rounds=50)
    report = agreement_report(document)
    mode = row(table(report, "modes"), "m0")
    kappa = document.index.table("mode", mode="1.1")["cohen_kappa"]
    assert estimate(mode, "cohen_kappa").value == kappa.value
    assert estimate(mode, "cohen_kappa").ci == kappa.interval
    assert kappa.sources is not None
    assert kappa.sources.modes == ("m0",)
    assert (mode.cells["n"], mode.cells["prevalence"]) == (50, "0.50/0.60")
    assert "ann in 50 % and bob in 60 % say present" in detail(mode)
    assert mode.sources == Sources("people", ("m0",))
    assert report.document["modes"]["1.1"]["cohen_kappa"]["value"] == kappa.value


def test_totals_come_last_with_all_modes_behind_them() -> None:
    modes = table(of_two("10", "11"), "modes")
    assert [one.id for one in modes.groups[-1]] == ["macro", "pooled"]
    behind = [one.sources.modes for one in modes.rows if one.sources is not None]
    assert [len(slugs) for slugs in behind] == [1, 1, 2, 2]


def test_every_coefficient_is_a_column_with_its_name() -> None:
    report = of_words({"ann": "1100", "bob": "1110", "cat": "1000"})
    modes = table(report, "modes")
    assert set(keys(modes)) >= {name for name in COEFFICIENTS if STATISTICS[name].priority}
    names = {column.key: column.name for column in modes.columns}
    assert names["gwet_ac1"] == "Gwet's AC1"
    assert "fleiss_kappa" not in keys(table(of_two("10", "11"), "modes"))


def test_raw_agreement_and_ac1_never_stay_without_kappa() -> None:
    keeps = {column.key: column.keeps for column in table(of_two("10", "11"), "modes").columns}
    assert keeps["cohen_kappa"] > max(keeps["raw_agreement"], keeps["gwet_ac1"])


def test_undefined_is_an_estimate_with_its_reason_and_a_sentence() -> None:
    mode = row(table(of_two("000", "000"), "modes"), MODES[0][0])
    for key in ("positive_agreement", "cohen_kappa", "krippendorff_alpha", "gwet_ac1"):
        assert estimate(mode, key) == Estimate(None, undefined="no_variance")
    assert estimate(mode, "raw_agreement").value == 1
    assert "Undefined: positive agreement, as no one said present." in detail(mode)
    assert "as all verdicts are the same" in detail(mode)
    alone = row(table(of_two("010", "..."), "modes"), MODES[0][0])
    assert "only one person" in detail(alone)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_studies_have_reasons_and_no_number_in_their_place(name: str) -> None:
    said, why = DEGENERATE[name]
    report = agreement_report(whole(said, (0, 0, 0, 0)))
    rows = table(report, "modes").groups[0]
    assert {estimate(one, "cohen_kappa").undefined for one in rows} == why
    text = " ".join([told(report), *(detail(one) for one in table(report, "modes").rows)])
    assert re.search(r"\bnan\b", text, re.IGNORECASE) is None


@pytest.mark.parametrize(
    ("counts", "paradox"),
    [
        ((118, 5, 2, 0), True),
        ((2, 3, 3, 92), True),
        ((8, 3, 3, 86), False),  # as rare, but κ is 0.69
        ((20, 5, 10, 15), False),
        ((45, 5, 5, 45), False),
        ((0, 0, 0, 30), False),
    ],
)
def test_kappa_paradox_is_marked_only_at_extreme_prevalence(
    counts: tuple[int, int, int, int], paradox: bool
) -> None:
    document = figures_of(study(counts), rounds=0)
    report = agreement_report(document)
    figures = document.index.table("mode", mode="1.1")
    assert is_kappa_paradox(figures) is paradox
    assert row(table(report, "modes"), "m0").mark == ("†" if paradox else "")
    assert ("kappa_paradox" in reasons(report)) is paradox


def test_three_annotators_get_the_range_of_prevalence_and_a_matrix() -> None:
    report = of_words({"ann": "1100", "bob": "1110", "cat": "1000"})
    mode = row(table(report, "modes"), "m")
    assert mode.cells["prevalence"] == "0.25–0.75"
    assert "ann and cat" in detail(mode)
    matrix = table(report, "pairs_kappa")
    assert [column.title for column in matrix.columns] == ["κ", "ann", "bob"]
    cat = row(matrix, "cat")
    pairs = report.document["pooled"]["pairs"]
    for other in ("ann", "bob"):
        found = estimate(cat, f"with {other}")
        assert found.value == pairs[f"{other}|cat"]["cohen_kappa"]["value"]
        sources = cat.cell_sources[f"with {other}"]
        assert sources is not None
        assert (sources.part, sources.subject) == ("people", (other, "cat"))
    assert row(table(report, "pairs"), "ann|cat").cells["n"] == 4


def test_two_people_have_no_page_of_pairs() -> None:
    assert [one.id for one in of_two("10", "11").sections] == ["modes"]


def test_a_pair_has_a_folded_table_by_mode() -> None:
    report = of_words({"ann": "1100", "bob": "1110", "cat": "1000"})
    folded = [one for one in section(report, "pairs").tables if one.folded]
    assert [one.title for one in folded] == [
        "ann and bob, by mode", "ann and cat, by mode", "bob and cat, by mode",
    ]  # fmt: skip
    mode = row(folded[1], "m")
    assert mode.sources is not None
    assert mode.sources.modes == ("m",)
    assert mode.sources.subject == ("ann", "cat")


def test_a_pair_that_shares_nothing_says_so() -> None:
    report = of_words({"ann": "1100··", "bob": "1010··", "cat": "····10"})
    cat = row(table(report, "pairs_kappa"), "cat")
    assert estimate(cat, "with ann").undefined == "no_overlap"
    assert "no trace was judged by all of them" in note(report, "n_complete").text
    assert "fleiss_kappa" not in keys(table(report, "modes"))


def test_what_was_left_out_is_told_by_annotator() -> None:
    given = replace(
        many({"ann": "110·", "bob": "1011"}),
        unfinished={"ann": 3},
        not_in_study={"eve": 2},
        examples={"bob": 4},
    )
    report = agreement_report(figures_of(given, rounds=0))
    words = note(report, "left_out").text
    assert "traces begun and not finished (ann 3)" in words
    assert "traces that no one else has finished (bob 1)" in words
    assert "examples in the judge's prompt (bob 4)" in words
    assert "eve 2 traces" in note(report, "not_in_study").text
    assert "no rounds of resampling" in table(report, "modes").caption
    everything = agreement_report(figures_of(many({"ann": "110", "bob": "101"}), rounds=0))
    assert note(everything, "left_out").text == "Nothing was left out."


def test_unsure_and_open_verdicts_are_told() -> None:
    report = of_two("?10", "010")
    assert "counted as missing: ann 1" in detail(row(table(report, "modes"), MODES[0][0]))
    words = note(report, "left_out").text
    assert "verdicts 'unsure' (ann 1)" in words
    assert "modes left open in finished traces (ann 3, bob 3)" in words


def test_more_traces_that_would_halve_an_interval_are_named_by_mode() -> None:
    report = of_tables((20, 5, 10, 15), (0, 0, 0, 30))
    words = note(report, "halving").text
    assert words.endswith("κ: about 150 for 1.1; unknown for 1.2 (no variance).")
    assert "About 150 more traces" in detail(row(table(report, "modes"), "m0"))


def copied() -> Report:
    """Return a report in which six traces have the same block of verdicts."""
    modes = tuple((f"m{number}", f"1.{number}", f"Mode {number}") for number in range(8))
    copied_block = "10110100"
    verdicts = {}
    for trace in range(12):
        block = copied_block if trace < 6 else f"{trace * 37 % 256:08b}"
        for name in ("ann", "bob"):
            for (slug, _, _), letter in zip(modes, block, strict=True):
                verdicts[name, f"t{trace:02}", slug] = VALUES[int(letter)]
    traces = frozenset(f"t{number:02}" for number in range(12))
    finished = {"ann": traces, "bob": traces}
    table = verdict_table(modes, finished, verdicts)
    study = StudyInput("m@1", modes, ("ann", "bob"), "1", table, finished)
    return agreement_report(figures_of(study, rounds=0))


def test_copied_blocks_are_a_warning_before_any_figure() -> None:
    report = copied()
    summary, one, *_ = report.notes
    assert summary.warning
    assert summary.text.startswith("6 traces share 1 block of verdicts")
    assert "t00, t01, t02, t03, t04, t05" in one.text
    pooled = row(table(report, "modes"), "pooled")
    assert pooled.mark.startswith("!")
    assert "Was one copied? t00, t01" in detail(pooled)
    assert "identical_blocks" not in reasons(of_two("10", "11"))


def test_rounds_and_retests_have_tables_of_their_own() -> None:
    study_input = study((6, 2, 1, 6))
    halves = {"1": frozenset({"t0", "t1", "t2", "t13"}), "2": frozenset({"t3", "t14"})}
    again = {("t0", "m0"): VALUES[1], ("t9", "m0"): VALUES[0]}
    both = retest_table(study_input.modes, ("t0", "t9"), again, again)
    report = agreement_report(
        figures_of(replace(study_input, rounds=halves, retests={"ann": both}), rounds=20)
    )
    rounds = table(report, "rounds")
    assert [(one.id, one.cells["traces"]) for one in rounds.rows] == [("1", 4), ("2", 2)]
    retest = row(table(report, "retests"), "ann")
    assert (retest.cells["traces"], retest.cells["n"]) == (2, 2)
    kappa = estimate(retest, "cohen_kappa")
    assert (kappa.ci, kappa.withheld) == (None, "few_traces")
    assert "which needs 3" in told(section(report, "modes"))


def test_sets_of_modes_have_a_row_with_both_distances() -> None:
    sets = table(of_words({"ann": "1100", "bob": "1110"}), "sets")
    assert sets.rows[0].cells["n"] == 4
    assert keys(sets)[2:] == ["krippendorff_alpha_jaccard", "krippendorff_alpha_masi"]


def test_a_caption_tells_a_paper_what_stands_behind_the_figures() -> None:
    caption = table(of_two("10", "11"), "modes").caption
    for part in ("ann and bob", "2 traces by both", "mast@3", "first pass", "[a, b]"):
        assert part in caption
    large = agreement_report(figures_of(study((950, 50, 50, 950)), rounds=30, seed=7))
    assert "(percentiles of 30 resamples of the traces, seed 7)" in table(large, "modes").caption


def test_an_interval_that_would_not_hold_has_a_note_with_its_reason() -> None:
    report = of_two("10" * 7, "11" + "10" * 6)
    mode = row(table(report, "modes"), MODES[0][0])
    assert estimate(mode, "gwet_ac1").withheld == "few_traces"
    assert "which needs 16, for some figures 50" in note(report, "few_traces").text


def test_one_person_sight_is_a_warning_with_what_it_leaves_out() -> None:
    document = figures_of(many({"ann": "110", "bob": "101"}), rounds=0)
    report = agreement_report(
        document, visibility={"annotator": "ann", "blind": True, "left_out": 3}
    )
    found = note(report, "only_seen_by")
    assert found.warning
    assert found.text == (
        "Only traces that ann has finished or adjudicates count; 3 others left out."
    )
    assert report.document["sight"]["left_out"] == 3


@pytest.fixture(scope="module")
def rotating() -> Agreement:
    given = {(name, MODES[0][0]): line for name, line in rotating_lines().items()}
    return figures_of(study_of(given), rounds=50)


def test_alpha_leads_where_pairs_share_few_traces(rotating: Agreement) -> None:
    report = agreement_report(rotating)
    modes = table(report, "modes")
    shown = keys(modes)
    ordered = [key for key in keys(table(of_two("10", "11"), "modes")) if key in shown]
    assert [key for key in shown if key in ordered] == ordered, "columns keep their order"
    assert report.facts[1][0] == "α"
    titles = {column.key: column.title for column in modes.columns}
    assert titles["cohen_kappa"] == "mean κ"
    keeps = {column.key: column.keeps for column in modes.columns}
    assert keeps["krippendorff_alpha"] > keeps["gwet_ac1"] > keeps["cohen_kappa"]
    shared = "ann and bob 20, ann and cat 20, bob and cat 20"
    assert any(shared in one.text for one in notes(report) if one.reason == "few_shared_traces")
    assert "mean κ, as two of them share too few" in told(report)
    assert row(table(report, "pairs"), "ann|bob").cells["traces"] == 20


def test_mean_kappa_leads_where_all_label_all() -> None:
    line = "10" * 40
    said = {"ann": line, "bob": "11" + line[2:], "cat": "00" + line[2:]}
    study_input = study_of({(name, MODES[0][0]): words for name, words in said.items()})
    shown = keys(table(agreement_report(figures_of(study_input, rounds=50)), "modes"))
    assert shown.index("cohen_kappa") < shown.index("krippendorff_alpha")


def test_what_fleiss_rests_on_is_told_where_others_rest_on_more() -> None:
    report = of_words({"ann": "11001010", "bob": "1110101·", "cat": "100·····"})
    assert "what all of them judged: n 3 (1.1, pooled)" in note(report, "n_complete").text
    modes = table(report, "modes")
    for id in ("m", "macro", "pooled"):
        cells = row(modes, id).cells
        assert isinstance(cells["fleiss_kappa"], Estimate)
        assert cells["fleiss_kappa"].n == 3
        assert isinstance(cells["krippendorff_alpha"], Estimate)
        assert cells["krippendorff_alpha"].n is None
    assert "8 traces" not in report.about
    assert "7 traces by two or more, 3 of them by all" in report.about


def test_a_figure_over_chance_takes_two_traces() -> None:
    # All three have judged one trace, so Fleiss' κ has none; two of each pair would not do either.
    report = of_words({"ann": "1100101", "bob": "1·10101", "cat": "0······"})
    assert "only one trace was judged by all" in note(report, "n_complete").text
    assert "fleiss_kappa" not in keys(table(report, "modes"))
    mode = report.document["modes"]["1.1"]
    assert mode["fleiss_kappa"] == {"value": None, "undefined": "single_trace", "n": 1}
    assert mode["pairs"]["ann|cat"]["cohen_kappa"]["undefined"] == "single_trace"
    one_trace_each = of_words({"ann": "10·", "bob": "1·0", "cat": "·10"}).document
    assert one_trace_each["pooled"]["cohen_kappa"]["undefined"] == "single_trace"


def test_why_nobody_can_be_compared_is_a_warning() -> None:
    assert note(of_words({"ann": "110"}), "few_annotators").warning
    assert note(of_words({"ann": "11··", "bob": "··10"}), "nothing_shared").warning
    assert not reasons(of_two("10", "11")) & {"few_annotators", "nothing_shared"}


def test_categories_are_a_page_of_their_own() -> None:
    report = agreement_report(whole({"ann": "1101", "bob": "1001"}, (1, 1, 1, 1)))
    both = row(table(report, "categories"), "c")
    assert both.sources is not None
    assert both.sources.modes == ("m0", "m1")
    assert [one.id for one in report.sections] == ["modes", "categories", "spans", "judge"]


def test_what_was_not_asked_for_is_said() -> None:
    report = of_two("10", "11")
    assert {"no_spans", "no_judge"} <= reasons(report)
    away = whole({"ann": "1101", "bob": "1001"}, (1, 1, 1, 1))
    spans = section(agreement_report(away), "spans")
    assert spans.parts == ()
    assert "order of the spans of the 2 traces" in note(spans, "not_at_hand").text


def placed() -> SpanAgreement:
    same = {"ann": reading(("a", LabelRange(1, 1))), "bob": reading(("a", LabelRange(1, 1)))}
    somewhere = {"ann": reading(("a", LabelRange(3, 4))), "bob": reading(unplaced=("a", "b"))}
    return span_figures(places_of(same, somewhere), rounds=0)


def test_places_have_rows_by_mode_and_for_finding_and_naming() -> None:
    marked = {
        "ann": reading(("a", LabelRange(1, 4)), ("b", LabelRange(7, 7))),
        "bob": reading(("a", LabelRange(2, 4)), ("b", LabelRange(8, 8))),
    }
    found = span_figures(places_of(marked), rounds=0)
    by_mode = table(places_section(found), "spans")
    assert [one.id for one in by_mode.rows] == ["a", "b", "finding", "finding_and_naming"]
    first = row(by_mode, "a")
    assert (first.cells["places"], estimate(first, "f1_exact").value) == (2, 0.0)
    assert estimate(first, "f1_overlap_0.5").value == 1.0
    assert "1.00 at 0.1 to 0.7, 0.00 at 0.8 to 1.0" in detail(first)
    assert first.sources is not None
    assert first.sources.part == "spans"
    sweep = table(places_section(found), "spans_overlap")
    assert estimate(row(sweep, "finding_and_naming"), "f1_overlap_0.7").value == 0.5


def test_who_says_present_and_not_where_is_told() -> None:
    words = told(places_section(placed()))
    assert "In 2 traces × modes somebody says present and not where" in words
    assert "bob never says where 1.2 shows" in words


def changed(found: Agreement, values: dict[tuple[str, str], float]) -> Agreement:
    """The same with other values, by scope and statistic."""

    def new(figure: Figure) -> Figure:
        value = values.get((figure.scope, figure.statistic), figure.value)
        return replace(figure, value=value)

    return replace(found, index=FigureIndex(map(new, found.index.figures)))


def test_missed_failures_are_told_with_what_they_take_for_granted() -> None:
    found = agreement()
    table = next(one for one in agreement_report(found).tables if one.id == "missed")
    assert table.rows[-1].cells["missed"] == "0 [0, 4]"
    assert [note.reason for note in table.notes] == ["missed", "independence"]
    alike = changed(found, {("missed_together", "p_value"): 0.001})
    warned = missed_table(replace(alike, finders_dependent=True, finders_alike=True))
    assert warned is not None
    assert "more was found by several than chance has it" in warned.notes[1].text
    nothing = {("missed_pooled", "n"): 0.0, ("missed_pooled", "found"): 0.0}
    seen = {("missed_left_out", "with_suggestions"): 3.0}
    untold = agreement_report(changed(found, nothing | seen))
    assert "missed" not in [one.id for one in untold.tables]
    assert "missed_untold" in [note.reason for note in untold.sections[0].notes]
