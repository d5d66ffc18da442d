"""A judge in words: one of no use looks so, and what was left out is said."""

from __future__ import annotations

from rich.cells import cell_len

from mast_tui.agreement.text_judge import judge_notes, judge_tables
from mast_tui.figures.judge.report import JudgeReport, judge_report
from mast_tui.labels import VerdictValue
from tests.figures.agreement.build_judge import (
    as_printed,
    assisted,
    counted,
    given_words,
    said,
    suggestion,
)
from tests.gold.build import MODE, OTHER, UNSURE, at

USELESS = (6, 13, 33, 106)


def shown(report: JudgeReport, width: int = 100) -> tuple[list[str], str]:
    """The tables' lines, and all notes in one text."""
    return judge_tables(report, width), " ".join(judge_notes(report))


def test_a_judge_of_no_use_looks_it_though_raw_and_ac1_look_fine() -> None:
    lines, notes = shown(judge_report(counted(*USELESS), rounds=200))
    assert "Not shown to be better than chance" in notes
    assert notes.split("reaches 0): ")[1].startswith("1.3, pooled. Raw agreement and AC1")
    heads = [line.split() for line in lines if "AC1" in line.split() or "raw" in line.split()]
    assert heads
    assert all("κ" in head for head in heads)
    assert "0.15 [" in next(line for line in lines if line.startswith("1.3"))


def test_a_good_judge_is_not_called_useless() -> None:
    notes = shown(judge_report(counted(40, 5, 5, 100), rounds=200))[1]
    assert "better than chance" not in notes


def test_what_it_calls_present_too_often_is_named() -> None:
    notes = shown(judge_report(counted(20, 15, 1, 60), rounds=0))[1]
    assert "Calls present more often than gold does (McNemar, p corrected over" in notes
    assert "Hochberg): 1.3 (p < 0.001)." in notes


def test_what_only_an_uncorrected_test_would_tell_is_not_said() -> None:
    judge = said("1" * 6 + "0" * 6) | said("0101", OTHER)
    report = judge_report(given_words(judge, said("0" * 12) | said("1010", OTHER)), rounds=0)
    mode = as_printed(report)["modes"]["1.3"]
    assert mode["mcnemar_p"] < 0.05 < mode["mcnemar_p_adjusted"]
    assert "1.3 (p" not in shown(report)[1]


def test_what_was_left_out_is_counted_in_words() -> None:
    judge, gold = said("1100"), said("1010")
    given = given_words(judge, gold | {("t3", MODE): UNSURE}, seen=frozenset({("t0", MODE)}))
    notes = shown(judge_report(given, rounds=0))[1]
    assert "1 settled with a judge on screen, 1 the reference unsure" in notes


def test_without_anything_to_compare_the_reasons_stand_there() -> None:
    lines, notes = shown(judge_report(given_words({}, {}), rounds=20), 80)
    rows = [line for line in lines if line.startswith(("1.3", "3.1"))]
    assert len(rows) == 4
    assert all(row.endswith("— no overlap") for row in rows)
    assert "none of its findings that can be compared" in notes
    assert all(cell_len(line) <= 80 for line in lines)


def test_corrected_prevalence_says_why_it_is_refused() -> None:
    judge = said("1" * 6 + "0" * 4) | said("1" * 5, prefix="u")
    alone = frozenset(f"u{i}" for i in range(5))
    given = given_words(judge, said("1" * 3 + "0" * 3 + "1" * 2 + "0" * 2), unlabelled=alone)
    lines = shown(judge_report(given, rounds=20))[0]
    rows = [line for line in lines if line.startswith("1.3")]
    assert rows[-1].endswith("— no better than chance")
    report = judge_report(given, rounds=0)
    report["prevalence"] = {}
    assert "kept from who labels blind" in shown(report)[1]


def test_confidence_stands_beside_truth() -> None:
    suggestions = tuple(
        suggestion(f"t{i}", at(1), confidence) for i, confidence in enumerate((0.95, 0.95, 0.25))
    )
    given = given_words(said("111"), said("110"), suggestions=suggestions)
    lines, notes = shown(judge_report(given, rounds=0))
    assert next(line for line in lines if line.startswith("0.9–1.0")).split()[1:3] == ["2", "0.95"]
    assert "Confidence: 0.72 on average" in notes


def test_the_pull_of_suggestions_has_a_table() -> None:
    passes = tuple(
        assisted("ann", f"t{i}", i % 2 == 0, {MODE: VerdictValue.PRESENT}) for i in range(4)
    )
    given = given_words(said("1100"), said("1100"), passes=passes)
    lines, _ = shown(judge_report(given, rounds=20))
    start = next(i for i, line in enumerate(lines) if line.startswith("Suggestions shown"))
    assert "share of present" in lines[start + 3]
    assert "2 passes with suggestions (2 had some on screen), 2 without, by ann." in lines[-1]
