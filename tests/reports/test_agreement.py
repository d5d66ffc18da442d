"""The report on agreement of people: tables, marks, notes and warnings."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mast_tui.figures.agreement.report import Agreement, StudyInput
from mast_tui.figures.agreement.report import agreement_figures as figures_of
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.record import COEFFICIENTS, STATISTICS, Figure, FigureIndex, Sources
from mast_tui.figures.spans.input import LabelRange
from mast_tui.figures.spans.report import span_figures
from mast_tui.labels import VerdictValue
from mast_tui.reports.agreement import HiddenTraces, agreement_report, missed_table
from mast_tui.reports.model import Report
from mast_tui.reports.sentences import is_kappa_paradox
from mast_tui.reports.span_agreement import places_section
from mast_tui.taxonomy.model import Mode
from tests.figures.agreement.build_judge import MODES
from tests.figures.agreement.build_reports import DEGENERATE, full_report, study_by_modes
from tests.figures.agreement.tables import retest_table, rotating_lines
from tests.figures.agreement.test_spans import reading
from tests.figures.agreement.test_spans import study as places_of
from tests.figures.agreement.test_study import study as study_of
from tests.reports.documents import agreement
from tests.reports.reading import (
    all_notes,
    detail,
    estimate,
    keys,
    note,
    notes,
    reasons,
    row,
    section,
    table,
)

VALUES = {"0": VerdictValue.ABSENT, "1": VerdictValue.PRESENT}
THREE = {"ann": "1100", "bob": "1110", "cat": "1000"}


def study(*tables: tuple[int, int, int, int]) -> StudyInput:
    """Return a study of ann and bob with a mode for each two-by-two table.

    A table counts traces in which both, only ann, only bob, and neither say present.
    """
    modes = tuple(Mode(f"m{i}", f"1.{i + 1}", "Step repetition", "1") for i in range(len(tables)))
    letters = {}
    for mode, (both, first, second, neither) in zip(modes, tables, strict=True):
        letters["ann", mode.slug] = "1" * (both + first) + "0" * (second + neither)
        letters["bob", mode.slug] = "1" * both + "0" * first + "1" * second + "0" * neither
    return study_by_modes(modes, letters)


def study_of_one_mode(lines: dict[str, str]) -> StudyInput:
    letters = {(name, "m"): line for name, line in lines.items()}
    return study_by_modes((Mode("m", "1.1", "Mode", "1"),), letters)


def of_tables(*tables: tuple[int, int, int, int]) -> Report:
    return agreement_report(figures_of(study(*tables), Resampling(50)))


def of_lines(lines: dict[str, str]) -> Report:
    return agreement_report(figures_of(study_of_one_mode(lines), Resampling(20)))


def of_two(ann: str, bob: str) -> Report:
    slug = MODES[0].slug
    given = study_of({("ann", slug): ann, ("bob", slug): bob})
    return agreement_report(figures_of(given, Resampling(50)))


def test_row_of_a_mode_has_its_figures_intervals_and_traces() -> None:
    document = figures_of(study((20, 5, 10, 15)), Resampling(50))
    report = agreement_report(document)
    mode = row(table(report, "modes"), "m0")
    kappa = document.index.table("mode", mode="1.1")["cohen_kappa"]
    assert estimate(mode, "cohen_kappa").value == kappa.value
    assert estimate(mode, "cohen_kappa").interval == kappa.interval
    assert kappa.sources is not None
    assert kappa.sources.modes == ("m0",)
    assert (mode.cells["n"], mode.cells["prevalence"]) == (50, "0.50/0.60")
    assert "ann 50 % and bob 60 %" in detail(mode)
    assert mode.sources == Sources("people", ("m0",))
    assert report.document["modes"]["1.1"]["cohen_kappa"]["value"] == kappa.value


def test_report_on_two_people_has_one_section_with_totals_last() -> None:
    report = of_two("10", "11")
    assert [part.id for part in report.sections] == ["modes"]
    modes = table(report, "modes")
    assert [total.id for total in modes.groups[-1]] == ["macro", "pooled"]
    sources = [mode.sources.modes for mode in modes.rows if mode.sources is not None]
    assert [len(slugs) for slugs in sources] == [1, 1, 2, 2]
    # Raw agreement and AC1 are never shown without kappa.
    priorities = {column.key: column.priority for column in modes.columns}
    assert priorities["cohen_kappa"] > max(priorities["raw_agreement"], priorities["gwet_ac1"])
    assert "fleiss_kappa" not in keys(modes)
    assert "no_spans" in reasons(report)
    assert not reasons(report) & {"few_annotators", "nothing_shared", "identical_blocks"}
    for part in ("ann and bob", "2 traces finished by both", "mast@3", "first finish", "[a, b]"):
        assert part in modes.caption
    large = agreement_report(figures_of(study((950, 50, 50, 950)), Resampling(30, 7)))
    assert "30 resamples, seed 7" in table(large, "modes").caption


def test_undefined_figures_have_a_reason_and_a_sentence() -> None:
    mode = row(table(of_two("000", "000"), "modes"), MODES[0].slug)
    for key in ("positive_agreement", "cohen_kappa", "krippendorff_alpha", "gwet_ac1"):
        assert estimate(mode, key).undefined == "no_variance"
    assert estimate(mode, "raw_agreement").value == 1
    assert ": positive agreement, because" in detail(mode)
    assert "all verdicts are equal" in detail(mode)
    alone = row(table(of_two("010", "..."), "modes"), MODES[0].slug)
    assert "only one annotator" in detail(alone)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_studies_have_reasons_instead_of_numbers(name: str) -> None:
    lines, undefined = DEGENERATE[name]
    report = agreement_report(full_report(lines, (0, 0, 0, 0)))
    rows = table(report, "modes").groups[0]
    assert {estimate(one, "cohen_kappa").undefined for one in rows} == undefined
    text = " ".join([all_notes(report), *(detail(one) for one in table(report, "modes").rows)])
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
    document = figures_of(study(counts), Resampling(0))
    report = agreement_report(document)
    figures = document.index.table("mode", mode="1.1")
    assert is_kappa_paradox(figures) is paradox
    assert row(table(report, "modes"), "m0").mark == ("†" if paradox else "")
    assert ("kappa_paradox" in reasons(report)) is paradox


def test_three_annotators_have_ranges_and_tables_of_pairs() -> None:
    report = of_lines(THREE)
    modes = table(report, "modes")
    assert set(keys(modes)) >= {name for name in COEFFICIENTS if STATISTICS[name].priority}
    names = {column.key: column.name for column in modes.columns}
    assert names["gwet_ac1"] == "Gwet's AC1"
    mode = row(modes, "m")
    assert mode.cells["prevalence"] == "0.25–0.75"
    assert "ann and cat" in detail(mode)
    matrix = table(report, "pairs_kappa")
    assert [column.title for column in matrix.columns] == ["κ", "ann", "bob"]
    cat = row(matrix, "cat")
    pairs = report.document["pooled"]["pairs"]
    for other in ("ann", "bob"):
        kappa = estimate(cat, f"with {other}")
        assert kappa.value == pairs[f"{other}|cat"]["cohen_kappa"]["value"]
        sources = cat.cell_sources[f"with {other}"]
        assert sources is not None
        assert (sources.part, sources.subject) == ("people", (other, "cat"))
    assert row(table(report, "pairs"), "ann|cat").cells["n"] == 4
    folded = [part for part in section(report, "pairs").tables if part.folded]
    assert [part.title for part in folded] == [
        "ann and bob, by mode", "ann and cat, by mode", "bob and cat, by mode",
    ]  # fmt: skip
    sources = row(folded[1], "m").sources
    assert sources is not None
    assert (sources.modes, sources.subject) == (("m",), ("ann", "cat"))
    sets = table(report, "sets")
    assert sets.rows[0].cells["n"] == 4
    assert keys(sets)[2:] == ["krippendorff_alpha_jaccard", "krippendorff_alpha_masi"]


def test_missing_people_and_shared_traces_are_told() -> None:
    report = of_lines({"ann": "1100··", "bob": "1010··", "cat": "····10"})
    cat = row(table(report, "pairs_kappa"), "cat")
    assert estimate(cat, "with ann").undefined == "no_overlap"
    assert "no trace has verdicts by all" in note(report, "n_complete").text
    assert "fleiss_kappa" not in keys(table(report, "modes"))
    assert note(of_lines({"ann": "110"}), "few_annotators").warning
    assert note(of_lines({"ann": "11··", "bob": "··10"}), "nothing_shared").warning


def test_left_out_traces_are_counted_by_annotator() -> None:
    given = replace(
        study_of_one_mode({"ann": "110·", "bob": "1011"}),
        unfinished={"ann": 3},
        not_in_study={"eve": 2},
        examples={"bob": 4},
    )
    report = agreement_report(figures_of(given, Resampling(0)))
    text = note(report, "left_out").text
    assert "begun but not finished (ann 3)" in text
    assert "no other annotator has finished (bob 1)" in text
    assert "chosen for errors of an earlier version (bob 4)" in text
    assert "eve 2 traces" in note(report, "not_in_study").text
    assert "No intervals" in table(report, "modes").caption
    assert note(of_lines({"ann": "110", "bob": "101"}), "left_out").text == "Nothing was excluded."
    report = of_two("?10", "010")
    assert "counted as missing: ann 1" in detail(row(table(report, "modes"), MODES[0].slug))
    text = note(report, "left_out").text
    assert "verdicts 'unsure' (ann 1)" in text
    assert "open modes in finished traces (ann 3, bob 3)" in text


def test_number_of_traces_that_halves_an_interval_is_told_by_mode() -> None:
    report = of_tables((20, 5, 10, 15), (0, 0, 0, 30))
    text = note(report, "halving").text
    assert text.endswith("κ: about 150 for 1.1; unknown for 1.2 (no variance).")
    assert "About 150 more traces" in detail(row(table(report, "modes"), "m0"))


def test_identical_blocks_of_verdicts_are_a_warning_before_any_figure() -> None:
    modes = tuple(Mode(f"m{number}", f"1.{number}", f"Mode {number}", "1") for number in range(8))
    blocks = ["10110100" if trace < 6 else f"{trace * 37 % 256:08b}" for trace in range(12)]
    lines = {
        (name, mode.slug): "".join(block[place] for block in blocks)
        for name in ("ann", "bob")
        for place, mode in enumerate(modes)
    }
    report = agreement_report(figures_of(study_by_modes(modes, lines), Resampling(0)))
    summary, first, *_ = report.notes
    assert summary.warning
    assert summary.text.startswith("6 traces share 1 set of verdicts")
    assert "t0, t1, t2, t3, t4, t5" in first.text
    pooled = row(table(report, "modes"), "pooled")
    assert pooled.mark.startswith("!")
    assert "ann gave the same verdicts on all 6 of these traces, and so did bob: t0, t1" in detail(
        pooled
    )


def test_rounds_and_retests_have_tables() -> None:
    study_input = study((6, 2, 1, 6))
    halves = {"1": frozenset({"t0", "t1", "t2", "t13"}), "2": frozenset({"t3", "t14"})}
    again = {("t0", "m0"): VALUES["1"], ("t9", "m0"): VALUES["0"]}
    both = retest_table(study_input.modes, ("t0", "t9"), again, again)
    report = agreement_report(
        figures_of(replace(study_input, rounds=halves, retests={"ann": both}), Resampling(20))
    )
    rounds = table(report, "rounds")
    assert [(one.id, one.cells["traces"]) for one in rounds.rows] == [("1", 4), ("2", 2)]
    retest = row(table(report, "retests"), "ann")
    assert (retest.cells["traces"], retest.cells["n"]) == (2, 2)
    kappa = estimate(retest, "cohen_kappa")
    assert (kappa.interval, kappa.withheld) == (None, "few_traces")
    assert "it needs 16 " in all_notes(section(report, "modes"))


def test_withheld_interval_has_a_note_with_its_reason() -> None:
    report = of_two("10" * 7, "11" + "10" * 6)
    mode = row(table(report, "modes"), MODES[0].slug)
    assert estimate(mode, "gwet_ac1").withheld == "few_traces"
    assert "it needs 16 " in note(report, "few_traces").text


def test_report_for_one_person_warns_of_traces_left_out() -> None:
    document = figures_of(study_of_one_mode({"ann": "110", "bob": "101"}), Resampling(0))
    report = agreement_report(document, hidden=HiddenTraces("ann", 3))
    warning = note(report, "only_seen_by")
    assert warning.warning
    assert warning.text == (
        "You are ann here: only traces that ann has finished or adjudicates are included; "
        "3 others excluded."
    )


def test_alpha_comes_first_if_pairs_share_few_traces() -> None:
    lines = {(name, MODES[0].slug): line for name, line in rotating_lines().items()}
    report = agreement_report(figures_of(study_of(lines), Resampling(50)))
    modes = table(report, "modes")
    shown = keys(modes)
    ordered = [key for key in keys(table(of_two("10", "11"), "modes")) if key in shown]
    assert [key for key in shown if key in ordered] == ordered, "columns keep their order"
    assert report.facts[1].name == "α"
    titles = {column.key: column.title for column in modes.columns}
    assert titles["cohen_kappa"] == "mean κ"
    priorities = {column.key: column.priority for column in modes.columns}
    assert priorities["krippendorff_alpha"] > priorities["gwet_ac1"] > priorities["cohen_kappa"]
    shared = "ann and bob 20, ann and cat 20, bob and cat 20"
    assert any(shared in one.text for one in notes(report) if one.reason == "few_shared_traces")
    assert "shared by each pair of annotators" in all_notes(report)
    assert row(table(report, "pairs"), "ann|bob").cells["traces"] == 20


def test_mean_kappa_comes_first_if_all_label_all() -> None:
    line = "10" * 40
    lines = {"ann": line, "bob": "11" + line[2:], "cat": "00" + line[2:]}
    study_input = study_of({(name, MODES[0].slug): text for name, text in lines.items()})
    shown = keys(table(agreement_report(figures_of(study_input, Resampling(50))), "modes"))
    assert shown.index("cohen_kappa") < shown.index("krippendorff_alpha")


def test_traces_behind_fleiss_kappa_are_told_if_fewer() -> None:
    report = of_lines({"ann": "11001010", "bob": "1110101·", "cat": "100·····"})
    assert "n 3 (1.1, pooled)" in note(report, "n_complete").text
    modes = table(report, "modes")
    for ident in ("m", "macro", "pooled"):
        cells = row(modes, ident).cells
        assert isinstance(cells["fleiss_kappa"], Figure)
        assert cells["fleiss_kappa"].n == 3
        assert isinstance(cells["krippendorff_alpha"], Figure)
        assert cells["krippendorff_alpha"].n is None
    assert "8 traces" not in report.about
    assert "7 traces finished by two or more, 3 by all" in report.about


def test_chance_corrected_figures_take_two_traces() -> None:
    report = of_lines({"ann": "1100101", "bob": "1·10101", "cat": "0······"})
    assert "only one trace has verdicts by all" in note(report, "n_complete").text
    assert "fleiss_kappa" not in keys(table(report, "modes"))


def test_categories_and_places_without_files_have_sections() -> None:
    report = agreement_report(full_report({"ann": "1101", "bob": "1001"}, (1, 1, 1, 1)))
    assert [part.id for part in report.sections] == ["modes", "categories", "spans", "judge"]
    category = row(table(report, "categories"), "c")
    assert category.sources is not None
    assert category.sources.modes == ("m0", "m1")
    spans = section(report, "spans")
    assert spans.parts == ()
    assert "files of the 2 traces" in note(spans, "not_at_hand").text


def test_places_have_rows_by_mode_and_for_finding_and_naming() -> None:
    marked = {
        "ann": reading(("a", LabelRange(1, 4)), ("b", LabelRange(7, 7))),
        "bob": reading(("a", LabelRange(2, 4)), ("b", LabelRange(8, 8))),
    }
    places = places_section(span_figures(places_of(marked), Resampling(0)))
    by_mode = table(places, "spans")
    assert [one.id for one in by_mode.rows] == ["a", "b", "finding", "finding_and_naming"]
    first = row(by_mode, "a")
    assert (first.cells["places"], estimate(first, "f1_exact").value) == (2, 0.0)
    assert estimate(first, "f1_overlap:0.5").value == 1.0
    assert "1.00 at 0.1 to 0.7, 0.00 at 0.8 to 1.0" in detail(first)
    assert first.sources is not None
    assert first.sources.part == "spans"
    sweep = table(places, "spans_overlap")
    assert estimate(row(sweep, "finding_and_naming"), "f1_overlap:0.7").value == 0.5


def test_present_verdicts_without_a_place_are_counted() -> None:
    same = {"ann": reading(("a", LabelRange(1, 1))), "bob": reading(("a", LabelRange(1, 1)))}
    unplaced = {"ann": reading(("a", LabelRange(3, 4))), "bob": reading(unplaced=("a", "b"))}
    sentences = all_notes(places_section(span_figures(places_of(same, unplaced), Resampling(0))))
    assert "2 traces × modes" in sentences
    assert "bob gave no places for 1.2" in sentences


def changed(found: Agreement, values: dict[tuple[str, str], float]) -> Agreement:
    """Return the figures with other values, by scope and statistic."""

    def new(figure: Figure) -> Figure:
        value = values.get((figure.scope, figure.statistic), figure.value)
        return replace(figure, value=value)

    return replace(found, index=FigureIndex(map(new, found.index.figures)))


def test_missed_failures_are_told_with_their_assumptions() -> None:
    found = agreement()
    table = next(one for one in agreement_report(found).tables if one.id == "missed")
    assert table.rows[-1].cells["missed"] == "0 [0, 4]"
    assert [note.reason for note in table.notes] == ["missed", "independence"]
    alike = changed(found, {("missed_together", "p_value"): 0.001})
    warned = missed_table(replace(alike, finders_dependent=True, finders_alike=True))
    assert warned is not None
    assert "more often than expected by chance" in warned.notes[1].text
    nothing = {("missed_pooled", "n"): 0.0, ("missed_pooled", "found"): 0.0}
    seen = {("missed_left_out", "with_suggestions"): 3.0}
    untold = agreement_report(changed(found, nothing | seen))
    assert "missed" not in [one.id for one in untold.tables]
    assert "missed_untold" in [note.reason for note in untold.sections[0].notes]
