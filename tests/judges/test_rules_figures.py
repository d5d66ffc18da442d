"""The rules find what a rule can see in the samples, and leave the hard negatives alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    script = ROOT / "scripts" / "rules_figures.py"
    done = subprocess.run(
        [sys.executable, str(script), "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_at_least_four_in_five_mechanical_plants_are_found(figures: dict[str, Any]) -> None:
    tally = figures["mechanical"]
    assert tally["n"] >= 20
    assert tally["hit"] >= 0.8 * tally["n"]


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
