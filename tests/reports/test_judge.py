"""The section of the report on a judge: chance, tilt, prevalence, confidence, suggestions."""

from __future__ import annotations

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.report import judge_report
from mast_tui.labels import VerdictValue
from mast_tui.reports.judge import judge_section
from mast_tui.reports.model import ReportSection
from tests.figures.agreement.build_judge import assisted, counted, judge_with, suggestion, votes
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, UNSURE, target
from tests.reports.reading import all_notes, detail, estimate, note, reasons, row, table

USELESS = (6, 13, 33, 106)


def of_counts(tp: int, fp: int, fn: int, tn: int) -> ReportSection:
    return judge_section(judge_report(counted(tp, fp, fn, tn), Resampling(200)))


def test_useless_judge_is_called_no_better_than_chance() -> None:
    report = judge_report(counted(*USELESS), Resampling(200))
    page = judge_section(report)
    warning = note(page, "not_better_than_chance")
    assert warning.warning
    assert warning.text.startswith("Not shown to be better than chance: 1.3, pooled ")
    chance = table(page, "judge_chance")
    assert [column.key for column in chance.columns[2:5]] == [
        "cohen_kappa", "gwet_ac1", "raw_agreement",
    ]  # fmt: skip
    mode = row(table(page, "judge"), MODE)
    rate = estimate(mode, "true_positive_rate")
    assert rate.value is not None
    assert round(rate.value, 2) == 0.15
    assert rate.interval == report.table("judge_mode", mode="1.3")["true_positive_rate"].interval
    assert mode.cells["present"] == "19/39"
    assert row(chance, MODE).cells["counts"] == "6/13/33/106"
    assert "only by the judge in 13, only by gold in 33" in detail(mode)
    assert "present less often than gold" in detail(mode)
    assert mode.sources is not None
    assert mode.sources.part == "judge"
    assert "not_better_than_chance" not in reasons(of_counts(40, 5, 5, 100))


def test_judge_on_few_traces_is_not_shown_to_be_better_than_chance() -> None:
    page = of_counts(4, 1, 1, 6)
    assert "better than chance: 1.3, pooled " in all_notes(page)
    assert estimate(row(table(page, "judge_chance"), MODE), "cohen_kappa").withheld == "few_traces"
    assert "it needs 16 " in all_notes(page)


def test_modes_called_present_too_often_are_named() -> None:
    page = of_counts(20, 15, 1, 60)
    assert note(page, "tilted").text.startswith("The judge says present more often than gold")
    assert note(page, "tilted").text.endswith("Hochberg): 1.3 (p < 0.001).")
    # A tilt is named by the adjusted test only.
    judge = votes("1" * 6 + "0" * 6) | votes("0101", OTHER)
    report = judge_report(judge_with(judge, votes("0" * 12) | votes("1010", OTHER)), Resampling(0))
    mode = report.table("judge_mode", mode="1.3")
    adjusted = mode.value("mcnemar_p_adjusted")
    assert (mode.value("mcnemar_p") or 1) < 0.05 < (adjusted or 0)
    page = judge_section(report)
    assert "tilted" not in reasons(page)
    shown = row(table(page, "judge_chance"), MODE).cells["mcnemar_p_adjusted"]
    assert shown == adjusted


def test_kappa_paradox_and_left_out_verdicts_are_noted() -> None:
    page = of_counts(1, 3, 4, 92)
    assert row(table(page, "judge_chance"), MODE).mark == "†"
    assert "read TPR and TNR" in note(page, "kappa_paradox").text
    gold = votes("1010")
    given = judge_with(votes("1100"), gold | {("t3", MODE): UNSURE}, seen=frozenset({("t0", MODE)}))
    page = judge_section(judge_report(given, Resampling(0)))
    assert (
        "1 labelled with suggestions on screen, 1 on which the reference is unsure"
        in note(page, "left_out").text
    )
    mode = row(table(of_counts(0, 2, 0, 5), "judge"), MODE)
    assert estimate(mode, "true_positive_rate").undefined == "no_variance"
    assert "the reference has no present verdict" in detail(mode)


def test_empty_comparison_gives_its_reasons() -> None:
    page = judge_section(judge_report(judge_with({}, {}), Resampling(20)))
    (rates,) = page.tables
    assert {estimate(mode, "true_positive_rate").undefined for mode in rates.groups[0]} == {
        "no_overlap"
    }
    assert "Nothing to compare" in detail(row(table(page, "judge"), MODE))
    assert note(page, "nothing_compared").warning
    assert {"no_confidence", "no_answers", "no_places", "not_withheld"} <= reasons(page)


def test_refused_correction_of_prevalence_has_its_reason() -> None:
    judge = votes("1" * 6 + "0" * 4) | votes("1" * 5, prefix="u")
    alone = frozenset(f"u{i}" for i in range(5))
    judge_input = judge_with(judge, votes("1" * 3 + "0" * 3 + "1" * 2 + "0" * 2), unlabelled=alone)
    page = judge_section(judge_report(judge_input, Resampling(20)))
    (mode,) = table(page, "judge_prevalence").groups[0]  # no row of a mode without a verdict
    assert estimate(mode, "corrected").undefined == "no_better_than_chance"
    assert "TPR + TNR ≤ 1" in detail(mode)
    report = judge_report(judge_input, Resampling(0)).without_prevalence()
    assert "hidden from blind annotators" in note(judge_section(report), "blind").text


def test_prevalence_is_corrected_for_errors_of_the_judge() -> None:
    labelled = counted(9, 3, 1, 17)
    alone = {(f"u{i}", MODE): PRESENT if i < 6 else ABSENT for i in range(10)}
    judge_input = judge_with(
        {**labelled.verdicts, **alone},
        labelled.reference.verdicts,
        unlabelled=frozenset(t for t, _ in alone),
    )
    report = judge_report(judge_input, Resampling(100))
    page = judge_section(report)
    mode = row(table(page, "judge_prevalence"), MODE)
    corrected = estimate(mode, "corrected")
    assert corrected.value == report.table("prevalence", mode="1.3").value("corrected")
    assert corrected.interval is not None
    assert "Rogan and Gladen" in note(page, "corrected").text
    words = detail(row(table(page, "judge"), MODE))
    assert "In 10 traces that no one has finished, the judge finds the mode in 0.60" in words


def test_calibration_compares_confidence_with_gold() -> None:
    suggestions = tuple(
        suggestion(f"t{i}", target(1), confidence)
        for i, confidence in enumerate((0.95, 0.95, 0.25))
    )
    judge_input = judge_with(votes("111"), votes("110"), suggestions=suggestions)
    page = judge_section(judge_report(judge_input, Resampling(0)))
    calibration = table(page, "judge_calibration")
    surest = row(calibration, "0.9")
    assert (surest.cells["n"], surest.cells["mean_confidence#value"]) == (2, 0.95)
    assert estimate(surest, "right").value == 1
    assert row(calibration, "all").cells["n"] == 3
    assert "Expected calibration error: 0.1" in note(page, "calibration").text


def test_passes_with_and_without_suggestions_are_compared() -> None:
    passes = tuple(
        assisted("ann", f"t{i}", i % 2 == 0, {MODE: VerdictValue.PRESENT}) for i in range(4)
    )
    judge_input = judge_with(votes("1100"), votes("1100"), passes=passes)
    page = judge_section(judge_report(judge_input, Resampling(20)))
    pull = table(page, "judge_withheld")
    share = row(pull, "present_rate")
    assert [estimate(share, key).value for key in ("shown", "withheld", "difference")] == [1, 1, 0]
    words = note(page, "passes").text
    assert "2 times with suggestions (2 with at least one on screen) and 2 without" in words
    assert words.endswith("by ann.")
