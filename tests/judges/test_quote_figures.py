"""Shares of honest and altered quotes that are distinguished."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.traces.checks import CORPUS, SAMPLES, needs_corpus

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "quote_figures.py"


def figures(folder: Path) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", "--per-kind", "10", "--corpus", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    document: dict[str, Any] = json.loads(process.stdout)
    assert document["half"] == "held-out"
    return document


@pytest.mark.parametrize("folder", [SAMPLES, pytest.param(CORPUS, marks=needs_corpus)])
def test_honest_and_altered_quotes_are_distinguished(folder: Path) -> None:
    groups = figures(folder)["groups"]
    sizes = {
        name: sum(kind["n"] for kind in group["kinds"].values()) for name, group in groups.items()
    }
    assert sizes["honest"] >= 150
    assert sizes["altered"] >= 150
    assert groups["honest"]["found_share"] >= 0.95
    assert groups["altered"]["found_share"] <= 0.05
    assert groups["stitched"]["found_share"] <= 0.05
    # Honest omissions are distinguished from quoted text, and their quotes are still located.
    parts = groups["parts"]["kinds"]
    assert sum(kind["in_parts"] for kind in parts.values()) >= 0.9 * sizes["parts"] > 0
    # Two words may be next to the other part elsewhere; then nothing was left out there.
    long_parts = [kind for name, kind in parts.items() if "two words" not in name]
    assert sum(kind["found"] for kind in long_parts) == 0
    for name, kind in groups["altered"]["kinds"].items():
        if kind["n"] >= 8:
            assert kind["found"] <= 0.25 * kind["n"], name
    right = sum(kind["right"] for kind in groups["honest"]["kinds"].values())
    assert right >= 0.95 * sizes["honest"]
