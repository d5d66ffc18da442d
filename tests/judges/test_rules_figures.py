"""Recall and false alarms of the rules on the samples, and their published figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.judges.rules import DEFAULT, RULES
from scripts.pages import csv_text
from scripts.rules_figures import (
    CORPUS,
    FIGURES,
    PAGE,
    FigureRow,
    JudgedTraces,
    figure_rows,
    labelled,
    on_corpus,
    on_samples,
    rule_table,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def judged() -> JudgedTraces:
    return JudgedTraces()


def test_rules_find_mechanical_failures_and_spare_hard_negatives(judged: JudgedTraces) -> None:
    tally = on_samples(judged, RULES)[0]["mechanical"]
    assert tally.total >= 20
    assert tally.hit >= 0.5 * tally.total
    tallies = on_samples(judged, RULES)[0]
    for name in ("clean", "clean looked at"):
        assert tallies[name].total >= 20
        assert tallies[name].hit <= 0.1 * tallies[name].total
    assert on_samples(judged, DEFAULT)[0]["clean"].hit == 0


def test_page_and_file_have_the_script_s_figures(judged: JudgedTraces) -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    page = PAGE.read_text("utf-8")
    half = page.split("rules_figures.py --half ")[1].split()[0]
    halves = ("seen", "unseen") if half == "both" else (half,)
    cases = labelled(judged, CORPUS)
    table = page.split("<!-- rules figures -->")[1].split("<!-- /rules figures -->")[0]
    assert table.strip() == rule_table(cases, halves)
    rows = figure_rows(judged, cases, halves)
    assert FIGURES.read_text("utf-8") == csv_text(FigureRow._fields, rows)


def write_study(folder: Path, votes: list[list[bool]]) -> Path:
    """Write a corpus with one mode that no rule finds, labelled by three annotators."""
    people = folder / "mast-human"
    people.mkdir(parents=True)
    traces = [
        {"index": i, "round": "Round 1", "mas_name": "AG2", "trace_text": f"{folder.name}: run {i}"}
        for i in range(len(votes))
    ]
    heading = "4.1 Step repetition\n\nThe same step again."
    labels = [
        {
            "trace_id": f"hf_{i}",
            "hf_annotations": {heading: {f"annotator_{k}": vote for k, vote in enumerate(answers)}},
        }
        for i, answers in enumerate(votes)
    ]
    (people / "iaa_a.json").write_text(json.dumps(traces), "utf-8")
    (people / "annotations_a.json").write_text(json.dumps(labels), "utf-8")
    return folder


def test_the_two_halves_of_the_corpus_are_disjoint(judged: JudgedTraces, tmp_path: Path) -> None:
    corpus = write_study(tmp_path, [[True, True, False], [False] * 3, [True] * 3, [False] * 3] * 3)
    cases = labelled(judged, corpus)
    both, seen = (on_corpus(cases, halves)[0] for halves in (("seen", "unseen"), ("seen",)))
    assert {half for _, half in seen} == {"seen"}
    counts = [both["all", half]["mast-human"] for half in ("seen", "unseen")]
    assert sum(count.marked for count in counts) == 6
    assert all(count.recalled == 0 for count in counts)
    assert both["all", "seen"] == seen["all", "seen"]
