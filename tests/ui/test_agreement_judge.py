"""The report on a judge as rows and in words."""

from __future__ import annotations

import re

from mast_tui.figures.judge.report import JudgeReport, judge_report
from mast_tui.labels import Target
from mast_tui.ui.agreement_cells import PageRow
from mast_tui.ui.agreement_figures import JudgeFigures
from mast_tui.ui.agreement_judge import judge_rows
from mast_tui.ui.screens.agreement_counting import nothing_of_judge
from tests.figures.agreement.build_judge import assisted, counted, given_words, said, suggestion
from tests.gold.build import ABSENT, MODE, PRESENT


def rows_of(report: JudgeReport, *, pending: bool = False, hidden: int = 0) -> dict[str, PageRow]:
    return {one.shown.id: one for one in judge_rows(report, pending=pending, hidden=hidden)}


def test_rates_stand_in_the_cells_and_their_intervals_in_words() -> None:
    report = judge_report(counted(6, 13, 33, 106), rounds=200)
    row = rows_of(report)[MODE]
    assert row.shown.cells["true_positive_rate"] == "0.15"
    assert row.shown.cells["true_negative_rate"] == "0.89"
    assert row.shown.cells["gwet_ac1"] == "0.58"
    ends = report["modes"]["1.3"]["true_positive_rate"].get("ci")
    assert ends is not None
    assert f"TPR 0.15 [{ends[0]:.2f}, {ends[1]:.2f}]" in row.words
    assert "only the judge in 13, only gold in 33" in row.words
    assert "less often than the reference" in row.words


def test_what_nothing_can_be_divided_by_is_a_dash_with_its_reason() -> None:
    row = rows_of(judge_report(counted(0, 2, 0, 5), rounds=0))[MODE]
    assert row.shown.cells["true_positive_rate"] == "—"
    assert "nothing is present by the reference" in row.words


def test_confidence_is_told_as_bars_with_a_mark_at_the_mean() -> None:
    given = given_words(
        said("1111"),
        said("1110"),
        suggestions=tuple(
            suggestion(f"t{i}", Target(f"k{i}", f"k{i}"), sure)
            for i, sure in enumerate((0.95, 0.95, 0.55, 0.55))
        ),
    )
    words = rows_of(judge_report(given, rounds=0))["confidence"].words
    bars = dict(re.findall(r"(0\.\d) to .* ([█░│]+)$", words, re.MULTILINE))
    assert set(bars) == {"0.5", "0.9"}
    assert bars["0.9"].count("█") == 19
    assert bars["0.9"].index("│") == 19
    assert bars["0.5"].startswith("█" * 10 + "░│")


def test_a_prevalence_is_corrected_or_it_is_told_why_not() -> None:
    told = counted(9, 3, 1, 17)
    alone = {(f"u{i}", MODE): PRESENT if i < 6 else ABSENT for i in range(10)}
    given = given_words(
        {**told.verdicts, **alone},
        told.reference.verdicts,
        unlabelled=frozenset(t for t, _ in alone),
    )
    report = judge_report(given, rounds=100)
    value = report["prevalence"]["1.3"]["corrected"]["value"]
    row = rows_of(report)[MODE]
    assert row.shown.cells["corrected"] == f"{value:.2f}"
    assert "On 10 traces that nobody has labelled the judge says present in 0.60" in row.words
    assert f"corrected for its errors it is {value:.2f} [" in row.words

    useless = given_words(
        {**said("1010"), **alone}, said("1100"), unlabelled=frozenset(t for t, _ in alone)
    )
    row = rows_of(judge_report(useless, rounds=0))[MODE]
    assert row.shown.cells["corrected"] == "—"
    assert "add up to 1 or less" in row.words
    assert "hidden from you" in rows_of(judge_report(useless, rounds=0), hidden=3)[MODE].words


def test_the_pull_of_suggestions_is_told_only_where_a_study_kept_some_back() -> None:
    nothing = rows_of(judge_report(counted(1, 1, 1, 1), rounds=0))["withheld"].words
    assert "No study here keeps suggestions back" in nothing
    passes = tuple(
        assisted("ann", f"t{i}", i % 2 == 0, {MODE: PRESENT if i % 2 else ABSENT}) for i in range(6)
    )
    given = given_words(said("111111"), said("111111"), passes=passes)
    words = rows_of(judge_report(given, rounds=0))["withheld"].words
    assert "3 passes with suggestions" in words
    present = next(line for line in words.splitlines() if line.startswith("says present"))
    assert present.split()[2:4] == ["1.00", "0.00"]


def test_a_judge_without_anything_to_compare_is_told_in_words_also_where_a_study_keeps_back() -> (
    None
):
    # One person who worked with suggestions withheld alone: their pull cannot be measured.
    passes = tuple(assisted("ann", f"t{i}", True, {MODE: PRESENT}) for i in range(3))
    report = judge_report(given_words({}, {}, passes=passes), rounds=0)
    assert report["withheld"] is not None
    words = nothing_of_judge(JudgeFigures(report, judges=("judge:rules@1",)))
    assert "cannot be held against" in words
    assert not nothing_of_judge(
        JudgeFigures(judge_report(counted(1, 0, 0, 1), rounds=0), judges=("judge:rules@1",))
    )
