"""Comparison of two judges on the same units."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.intervals import newcombe_paired
from mast_tui.figures.judge.compare import comparison_json, judges_compared
from mast_tui.figures.judge.input import JudgeInput, Unit
from mast_tui.figures.significance import mcnemar, sign_flips
from mast_tui.labels import VerdictValue
from tests.figures.agreement.build_judge import judge_document, judge_with, votes
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT

OTHER_JUDGE = "judge:large@56ef78ab"
GOLD = "1111111111" + "0000000000"
FIRST = "1111111100" + "0000000011"
SECOND = "1111100000" + "0000001100"


def judges(
    first: dict[Unit, VerdictValue],
    second: dict[Unit, VerdictValue],
    gold: dict[Unit, VerdictValue],
) -> tuple[JudgeInput, JudgeInput]:
    """Return the inputs of two judges beside the same gold."""
    return judge_with(first, gold), replace(judge_with(second, gold), judge=OTHER_JUDGE)


def comparison(first: JudgeInput, second: JudgeInput, rounds: int = 2000) -> Any:
    """Return the comparison of two judges, read back from strict JSON."""
    document = comparison_json(judges_compared(first, second, Resampling(rounds)))
    return json.loads(json.dumps(document, allow_nan=False))


def test_figures_of_a_mode_are_those_computed_by_hand() -> None:
    document = comparison(*judges(votes(FIRST), votes(SECOND), votes(GOLD)), rounds=0)
    mode = document["modes"]["1.3"]
    assert [mode[k] for k in ("n", "both_right", "only_first_right", "only_second_right")] == [
        20, 11, 5, 2,
    ]  # fmt: skip
    assert mode["neither_right"] == 2
    assert mode["p_value"] == pytest.approx(mcnemar(5, 2))
    rate = mode["true_positive_rate"]
    assert (rate["first"]["value"], rate["second"]["value"]) == (0.8, 0.5)
    assert rate["difference"]["value"] == pytest.approx(0.3)
    # Of the ten that show it both find five, the first alone three, neither two.
    assert rate["difference"]["ci"] == pytest.approx(newcombe_paired(5, 3, 0, 2))
    assert mode["true_negative_rate"]["difference"]["ci"] == pytest.approx(
        newcombe_paired(6, 2, 2, 0)
    )
    assert mode["raw_agreement"]["difference"]["ci"] == pytest.approx(newcombe_paired(11, 5, 2, 2))
    assert mode["precision"]["difference"]["value"] == pytest.approx(8 / 10 - 5 / 7)
    assert mode["f1"]["difference"]["value"] == pytest.approx(16 / 20 - 10 / 17)
    assert mode["cohen_kappa"]["difference"]["value"] == pytest.approx(0.6 - 0.3)
    assert mode["p_adjusted"] == mode["p_value"]
    assert document["modes"]["3.1"]["p_value"] is None
    no_overlap = {"value": None, "undefined": "no_overlap"}
    assert document["modes"]["3.1"]["f1"]["difference"] == no_overlap


def test_each_judge_has_the_figures_of_its_own_report() -> None:
    first, second = judges(votes(FIRST), votes(SECOND), votes(GOLD))
    document = comparison(first, second, rounds=200)
    for side, judge_input in (("first", first), ("second", second)):
        report = judge_document(judge_input, rounds=200)
        for part, expected in (
            (document["modes"]["1.3"], report["modes"]["1.3"]),
            (document["pooled"], report["pooled"]),
        ):
            for name in ("true_positive_rate", "precision", "cohen_kappa", "gwet_ac1"):
                assert part[name][side] == expected[name]


def test_only_units_of_both_judges_count() -> None:
    first, second = judges(votes("11110·?1"), votes("1111·011"), votes("1100000?"))
    document = comparison(first, second, rounds=0)
    assert (document["traces"], document["units"], document["left_out"]) == (4, 4, [1, 2])
    assert document["modes"]["1.3"]["n"] == 4
    assert document["judges"] == [first.judge, OTHER_JUDGE]


def test_verdicts_made_with_a_judge_on_screen_do_not_count() -> None:
    seen = frozenset({("t0", MODE), ("t1", MODE)})
    first, second = (
        replace(judge_with(votes(letters), votes("1100"), seen=seen), judge=name)
        for letters, name in (("1111", "judge:small@12ab34cd"), ("1010", OTHER_JUDGE))
    )
    document = comparison(first, second, rounds=0)
    assert document["judge_seen_counted"] is False
    assert (document["traces"], document["units"], document["modes"]["1.3"]["n"]) == (2, 2, 2)


def test_exchanging_the_judges_negates_the_differences() -> None:
    rng = np.random.default_rng(4)
    first, second = judges(*_drawn(rng, 40, 0.85, 0.7))
    forward = comparison(first, second)
    backward = comparison(second, first)
    for name in ("true_positive_rate", "cohen_kappa", "f1", "precision"):
        value, low, high = _difference(backward["pooled"], name)
        assert _difference(forward["pooled"], name) == pytest.approx((-value, -high, -low))
    assert forward["pooled"]["p_value"] == pytest.approx(backward["pooled"]["p_value"])


def _difference(table: Any, name: str) -> tuple[float, float, float]:
    difference = table[name]["difference"]
    return (difference["value"], *(difference.get("ci") or (0.0, 0.0)))


def test_pooled_test_exchanges_whole_traces() -> None:
    gold = {**votes("11111"), **votes("11111", OTHER)}
    first = dict(gold)
    second = {**votes("00011"), **votes("00111", OTHER)}
    document = comparison(*judges(first, second, gold), rounds=0)
    assert document["pooled"]["p_value"] == pytest.approx(sign_flips([2, 2, 1, 0, 0]))
    assert document["pooled"]["only_first_right"] == 5


def test_same_judge_and_different_references_are_refused() -> None:
    first, second = judges(votes(FIRST), votes(SECOND), votes(GOLD))
    with pytest.raises(ValueError, match="itself"):
        judges_compared(first, first)
    other = replace(second, reference=replace(second.reference, name="ann"))
    with pytest.raises(ValueError, match="same reference"):
        judges_compared(first, other)


def test_equal_judges_differ_by_zero_without_an_interval() -> None:
    document = comparison(*judges(votes(FIRST), votes(FIRST), votes(GOLD)), rounds=200)
    mode = document["modes"]["1.3"]
    assert mode["p_value"] == 1.0
    assert mode["cohen_kappa"]["difference"] == {"value": 0.0, "ci": None}


Verdicts = dict[Unit, VerdictValue]


def _drawn(
    rng: np.random.Generator, traces: int, first: float, second: float
) -> tuple[Verdicts, Verdicts, Verdicts]:
    """Draw verdicts of two judges with these rates and gold; hard traces are hard for both."""
    verdicts: tuple[Verdicts, Verdicts, Verdicts] = ({}, {}, {})
    for i in range(traces):
        hard = rng.random() < 0.3
        for mode in (MODE, OTHER):
            truth = bool(rng.random() < 0.4)
            unit = (f"t{i:03d}", mode)
            verdicts[2][unit] = PRESENT if truth else ABSENT
            for index, right in enumerate((first, second)):
                is_present = truth if rng.random() < right - 0.2 * hard else not truth
                verdicts[index][unit] = PRESENT if is_present else ABSENT
    return verdicts
