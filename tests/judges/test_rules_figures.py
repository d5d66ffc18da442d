"""The rules find what a rule can see in the samples, and leave the hard negatives alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

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


def test_at_least_four_in_five_mechanical_plants_are_found(figures: dict[str, Any]) -> None:
    tally = figures["samples"]["all"]["mechanical"]
    assert tally["n"] >= 20
    assert tally["hit"] >= 0.8 * tally["n"]


def test_at_most_one_in_ten_hard_negatives_is_hit(figures: dict[str, Any]) -> None:
    for name in ("clean", "clean looked at"):
        tally = figures["samples"]["all"][name]
        assert tally["n"] >= 20
        assert tally["hit"] <= 0.1 * tally["n"]
    assert figures["samples"]["on"]["clean"]["hit"] == 0


def test_the_page_has_the_script_s_tables_whole() -> None:
    page = (ROOT / "docs" / "judge.md").read_text("utf-8")
    shown = printed("--half", page.split("rules_figures.py --half ")[1].split("`")[0])
    if "No corpus" in shown:
        pytest.skip("the corpus is not here")
    assert page.split("<!-- rules figures -->")[1].split("<!-- /rules figures -->")[0].strip() == (
        shown.strip()
    )


def study(folder: Path, yes: list[list[bool]]) -> Path:
    """A corpus with records of one mode that no rule finds there, by what three people say."""
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


def test_the_halves_are_apart_and_together_the_whole(tmp_path: Path) -> None:
    corpus = study(tmp_path, [[True, True, False], [False] * 3, [True] * 3, [False] * 3] * 3)
    both = json.loads(printed("--json", "--half", "both", "--corpus", corpus))["corpus"]
    seen = json.loads(printed("--json", "--corpus", corpus))["corpus"]
    assert {name.split("/")[1] for name in seen} == {"seen"}
    missed = [both[f"all/{half}"]["mast-human"]["recall"] for half in ("seen", "unseen")]
    assert sum(one["n"] for one in missed) == 6
    assert all(one["value"] == 0 for one in missed)
    assert both["all/seen"] == seen["all/seen"]
