"""The rules find what a rule can see in the samples, and leave the hard negatives alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def printed(*options: str | Path) -> str:
    script = ROOT / "scripts" / "rules_figures.py"
    done = subprocess.run(
        [sys.executable, str(script), *map(str, options)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return done.stdout


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(printed("--json"))
    return document


@pytest.mark.slow
def test_at_least_four_in_five_mechanical_plants_are_found(figures: dict[str, Any]) -> None:
    tally = figures["mechanical"]
    assert tally["n"] >= 20
    assert tally["hit"] >= 0.8 * tally["n"]


@pytest.mark.slow
def test_at_most_one_in_ten_hard_negatives_is_hit(figures: dict[str, Any]) -> None:
    for name in ("clean", "clean looked at"):
        tally = figures[name]
        assert tally["n"] >= 20
        assert tally["hit"] <= 0.1 * tally["n"]


def test_the_comparison_with_people_covers_every_trace(figures: dict[str, Any]) -> None:
    if figures["people"] is None:
        pytest.skip("the corpus is not here")
    for code, cells in figures["people"].items():
        assert sum(cells.values()) == 10, code


def test_the_readme_tells_what_the_script_prints_of_people(figures: dict[str, Any]) -> None:
    if figures["people"] is None:
        pytest.skip("the corpus is not here")
    readme = (ROOT / "README.md").read_text("utf-8")
    told = figures["against_people"]
    for name in ("precision", "recall"):
        low, high = told[name]["ci"]
        assert f"{name} {told[name]['value']:.2f} [{low:.2f}, {high:.2f}]" in readme
    assert f"hold {told['distinct_blocks']} distinct blocks" in readme
    assert f"their {told['answers']} answers" in readme
    assert told["answers_that_differ"] == 0


def study(folder: Path, yes: list[list[bool]]) -> Path:
    """A folder with records of one mode that no rule finds there, by what three people say."""
    people = folder / "mast-human"
    people.mkdir(parents=True)
    traces = [
        {"index": i, "round": "Round 1", "mas_name": "AG2", "trace_text": f"{folder.name}: run {i}"}
        for i in range(len(yes))
    ]
    heading = "4.1 Step repetition\n\nThe same step again."
    labels = [
        {
            "trace_id": f"hf_{i}",
            "hf_annotations": {heading: {f"annotator_{k}": word for k, word in enumerate(words)}},
        }
        for i, words in enumerate(yes)
    ]
    (people / "iaa_a.json").write_text(json.dumps(traces), "utf-8")
    (people / "annotations_a.json").write_text(json.dumps(labels), "utf-8")
    return folder


@pytest.mark.slow
def test_the_records_of_several_folders_are_counted_together(tmp_path: Path) -> None:
    first = study(tmp_path / "first", [[True, True, False], [False] * 3, [False] * 3])
    second = study(tmp_path / "second", [[True] * 3])
    found = json.loads(printed("--json", "--corpus", first, second))
    told = found["against_people"]
    assert found["people"]["1.3"] == {"people 1 rules 0": 2, "people 0 rules 0": 2}
    assert (told["records"], told["distinct_blocks"]) == (4, 3)
    assert (told["answers"], told["answers_that_differ"]) == (4, 1)
    assert told["recall"]["value"] == 0
    assert told["precision"] == {"value": None, "undefined": "no_overlap"}
    text = printed("--corpus", first, second)
    assert "on 4 records" in text
    assert "recall 0.00 [0.00, 0.66] (0 of 2)" in text
