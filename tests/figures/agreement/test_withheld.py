"""Labels with and without suggestions on screen."""

from __future__ import annotations

import pytest

from tests.figures.agreement.build_judge import assisted, judge_document, judge_with, votes
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, UNSURE

YES = {MODE: PRESENT}
NO = {MODE: ABSENT}


def test_nothing_is_compared_without_withheld_suggestions() -> None:
    assert judge_document(judge_with({}, {}), rounds=10)["withheld"] is None
    passes = (assisted("ann", "t0", False, YES),)
    assert judge_document(judge_with(votes("1"), {}, passes=passes), rounds=10)["withheld"] is None


def test_passes_with_and_without_suggestions_of_the_same_people_are_compared() -> None:
    passes = (
        assisted("ann", "t0", False, YES, [MODE, MODE]),
        assisted("ann", "t1", False, YES, [MODE]),
        assisted("ann", "t2", False, NO),
        assisted("ann", "t3", True, NO),
        assisted("ann", "t4", True, YES, [MODE]),
        assisted("ann", "t5", True, {MODE: UNSURE}),
        assisted("bob", "t0", False, YES),
        assisted("ann", "t8", True, YES),
        assisted("ann", "t9", False, YES),
    )
    judge_input = judge_with(votes("110101···1"), {}, passes=passes, examples=frozenset({"t9"}))
    withheld = judge_document(judge_input, rounds=400)["withheld"]
    assert withheld["annotators"] == ["ann"]
    assert withheld["passes"] == {"shown": 3, "withheld": 3}
    assert withheld["on_screen"] == 3
    assert (withheld["not_judged"], withheld["examples"], withheld["traces"]) == (1, 1, 6)
    rate = withheld["modes"]["1.3"]["present_rate"]
    assert rate["shown"]["value"] == pytest.approx(2 / 3)
    assert rate["withheld"]["value"] == 0.5
    assert rate["difference"]["value"] == pytest.approx(2 / 3 - 1 / 2)
    labels = withheld["labels_per_pass"]
    assert labels["shown"]["value"] == pytest.approx(1.0)
    assert labels["withheld"]["value"] == pytest.approx(1 / 3)
    agreement = withheld["modes"]["1.3"]["agreement_with_judge"]
    assert agreement["shown"]["value"] == 1.0
    assert agreement["withheld"]["value"] == 0.0
    assert agreement["difference"]["value"] == 1.0
    other = withheld["modes"]["3.1"]["present_rate"]
    assert other["shown"] == {"value": None, "undefined": "no_overlap"}
    assert other["difference"] == {"value": None, "undefined": "no_overlap"}


def test_strong_pull_has_an_interval_above_zero() -> None:
    passes = tuple(
        assisted("ann", f"t{i}", i >= 40, YES if i < 30 or i >= 75 else NO) for i in range(80)
    )
    judge_input = judge_with(votes("1" * 80), {}, passes=passes)
    withheld = judge_document(judge_input, rounds=400)["withheld"]
    low, high = withheld["present_rate"]["difference"]["ci"]
    assert 0 < low < 30 / 40 - 5 / 40 < high
    assert withheld["kappa_with_judge"]["shown"]["value"] == 0.0
    assert withheld["modes"]["1.3"]["present_rate"] == withheld["present_rate"]
    constant = tuple(assisted("ann", f"t{i}", bool(i), {OTHER: ABSENT}) for i in range(2))
    judge_input = judge_with(votes("00", OTHER), {}, passes=constant)
    mode = judge_document(judge_input, rounds=20)["withheld"]["modes"]["3.1"]
    assert mode["agreement_with_judge"]["difference"]["value"] == 0.0
    assert mode["kappa_with_judge"]["shown"] == {"value": None, "undefined": "no_variance"}
