"""Times with and without suggestions, and the pull of suggestions."""

from __future__ import annotations

import pytest

from mast_tui.figures.judge.input import AssistedPass
from mast_tui.figures.time_study import time_study
from mast_tui.taxonomy.model import Mode
from tests.gold.build import ABSENT, PRESENT

MODES = (Mode("repeat", "1.3", "Repetition", "1"), Mode("stop", "3.1", "Stop", "3"))


def timed(
    name: str, trace: int, minutes: float | None, *, withheld: bool, present: bool = False
) -> AssistedPass:
    """Return a pass on a trace in which a judge suggests the first mode."""
    verdicts = {"repeat": PRESENT if present else ABSENT, "stop": ABSENT}
    suggested = frozenset(["repeat"])
    labels = {"repeat": 2}
    return AssistedPass(name, f"t{trace}", withheld, False, verdicts, labels, 1, minutes, suggested)


def test_difference_is_that_within_annotators() -> None:
    passes = [timed("slow", n, 20, withheld=True) for n in range(8)]
    passes += [timed("slow", n, 18, withheld=False) for n in range(8, 12)]
    passes += [timed("fast", n, 4, withheld=True) for n in range(4)]
    passes += [timed("fast", n, 2, withheld=False) for n in range(4, 12)]
    document = time_study(passes, MODES)
    assert document["minutes_difference"]["value"] == pytest.approx(-2)
    assert document["annotators"] == ["fast", "slow"]
    assert document["shown"]["passes"] == document["withheld"]["passes"] == 12
    assert document["shown"]["minutes_per_label"]["value"] == pytest.approx(
        (4 * 18 + 8 * 2) / (12 * 2)
    )


def test_pull_is_of_suggested_modes_only() -> None:
    passes = [timed("a", n, None, withheld=True, present=n < 5) for n in range(20)]
    passes += [timed("a", n, None, withheld=False, present=n < 35) for n in range(20, 40)]
    document = time_study(passes, MODES)
    pull = document["modes"]["1.3"]
    assert pull["suggested"]["value"] == pytest.approx(15 / 20 - 5 / 20)
    assert (pull["units"], pull["other_units"]) == (40, 0)
    assert pull["other"] == {"value": None, "undefined": "no_overlap"}
    elsewhere = document["modes"]["3.1"]
    assert (elsewhere["units"], elsewhere["other"]["value"]) == (0, 0)
    assert document["minutes_difference"]["value"] is None
    assert document["shown"]["timed"] == 0


def test_annotators_of_one_condition_and_few_traces_have_no_interval() -> None:
    passes = [timed("a", n, 5, withheld=False) for n in range(12)]
    passes += [timed("b", n, 9, withheld=True) for n in range(12)]
    document = time_study(passes, MODES)
    assert document["annotators"] == []
    assert document["minutes_difference"]["value"] is None
    assert document["withheld"]["minutes_per_trace"]["value"] == 9
    passes = [timed("a", n, 5 + n, withheld=n % 2 == 0) for n in range(9)]
    figure = time_study(passes, MODES)["minutes_difference"]
    assert (figure["ci"], figure["ci_withheld"]) == (None, "few_traces")
