"""The report on agreement beside coefficients: intervals, rounds, retests, left-out verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from mast_tui.figures.agreement.counting import VerdictTable
from mast_tui.figures.agreement.report import more_traces
from mast_tui.figures.bootstrap import Resampling, resamples
from mast_tui.figures.record import COEFFICIENTS, Figure, FigureScope
from mast_tui.taxonomy.model import Group
from tests.figures.agreement.build_judge import MODES
from tests.figures.agreement.reference import cohen_kappa
from tests.figures.agreement.tables import agreement_document, retest_table
from tests.figures.agreement.test_study import LETTERS, study

REPETITION, TERMINATION = (mode.slug for mode in MODES)
ANN = "1101001011" * 4
BOB = "1100101001" * 4


def two(rounds: int = 200, seed: int = 0, **changes: object) -> dict[str, Any]:
    lines = {("ann", REPETITION): ANN, ("bob", REPETITION): BOB}
    lines |= {("ann", TERMINATION): "0" * 40, ("bob", TERMINATION): "0" * 39 + "1"}
    return agreement_document(replace(study(lines), **changes), rounds=rounds, seed=seed)  # type: ignore[arg-type]


def many(rounds: int = 200, seed: int = 0) -> dict[str, Any]:
    lines = {("ann", REPETITION): ANN * 50, ("bob", REPETITION): BOB * 50}
    return agreement_document(study(lines), rounds=rounds, seed=seed)


def test_intervals_of_many_traces_are_percentiles_of_resamples() -> None:
    report = many(rounds=300, seed=4)
    drawn = np.concatenate(list(resamples(2000, Resampling(300, 4)))).astype(int)
    # The report goes through its traces in the order of their ids.
    order = sorted(range(2000), key=lambda n: f"t{n}")
    ratings = np.array([[int(c) for c in line * 50] for line in (ANN, BOB)])[:, order]
    values = [cohen_kappa(np.repeat(ratings, weights, axis=1)).value for weights in drawn]
    low, high = np.quantile([value for value in values if value is not None], (0.025, 0.975))
    assert report["modes"]["1.3"]["cohen_kappa"].get("ci") == pytest.approx([low, high])


def test_report_depends_only_on_the_seed() -> None:
    assert many(seed=1) == many(seed=1)
    first = many(seed=1)
    second = many(seed=2)
    assert first["pooled"]["gwet_ac1"] != second["pooled"]["gwet_ac1"]
    assert first["pooled"]["gwet_ac1"]["value"] == second["pooled"]["gwet_ac1"]["value"]
    assert first["bootstrap"] == {"rounds": 200, "seed": 1, "level": 0.95, "unit": "trace"}


def test_report_without_rounds_has_no_intervals() -> None:
    report = two(rounds=0)
    for table in (report["modes"]["1.3"], report["macro"], report["pooled"]):
        figures = cast("Mapping[str, dict[str, Any]]", table)
        assert {figures[name].get("ci", "undefined") for name in COEFFICIENTS} <= {None}
    assert report["sets"]["krippendorff_alpha_masi"].get("ci") is None
    assert report["halving"]["1.3"] == {"more_traces": None, "undefined": "no_interval"}


def test_categories_pool_their_modes() -> None:
    late = Group("late", "Late", (TERMINATION, "gone"))
    report = two(categories=(Group("all", "All", (REPETITION, TERMINATION)), late))
    everything = report["categories"]["all"]
    assert everything["name"] == "All"
    assert everything["modes"] == ["1.3", "3.1"]
    assert everything["cohen_kappa"] == report["pooled"]["cohen_kappa"]
    assert everything["pairs"] == report["pooled"]["pairs"]
    late = report["categories"]["late"]
    assert late["modes"] == ["3.1"]
    assert late["gwet_ac1"] == report["modes"]["3.1"]["gwet_ac1"]


def test_rounds_are_counted_separately() -> None:
    rounds = {"1": frozenset({"t0", "t1", "t2"}), "2": frozenset(f"t{n}" for n in range(3, 40))}
    assert two(rounds=9)["rounds"] == {}
    answers_by_unit = {("ann", REPETITION): ANN, ("bob", REPETITION): BOB}
    split = agreement_document(replace(study(answers_by_unit), rounds=rounds), rounds=50)["rounds"]
    assert {name: table["traces"] for name, table in split.items()} == {"1": 3, "2": 37}
    first = agreement_document(
        study({("ann", REPETITION): ANN[:3], ("bob", REPETITION): BOB[:3]}), rounds=50
    )
    assert split["1"]["pooled"]["raw_agreement"] == first["pooled"]["raw_agreement"]
    assert split["1"]["pooled"]["n"] == 3


def retest(first: str, second: str) -> VerdictTable:
    """Return the table of two readings of one annotator; each letter is a verdict on a trace."""
    readings = [
        {(f"t{n}", REPETITION): LETTERS[c] for n, c in enumerate(line) if c != "."}
        for line in (first, second)
    ]
    return retest_table(MODES, (f"t{n}" for n in range(len(first))), *readings)


def test_retest_is_compared_with_the_first_pass_only() -> None:
    without = two(rounds=50)
    report = two(rounds=50, retests={"ann": retest("0110?", "01011"), "eve": retest("1", "1")})
    assert report["pooled"] == without["pooled"]
    assert set(report["retests"]) == {"ann"}
    ann = report["retests"]["ann"]
    assert ann["n_traces"] == 5
    assert ann["n"] == 4
    assert ann["raw_agreement"]["value"] == pytest.approx(0.5)
    assert ann["cohen_kappa"]["value"] == pytest.approx(0)
    assert ann["prevalence"] == {"first": 0.5, "retest": 0.5}


def test_number_of_traces_that_halves_an_interval() -> None:
    report = two()
    plan = report["halving"]["1.3"]
    low, high = report["modes"]["1.3"]["cohen_kappa"]["ci"]
    assert plan == {"more_traces": 120, "width": pytest.approx(high - low)}
    scope = FigureScope("halving")
    (undefined,) = more_traces(scope, Figure(reason="no_variance"), 9)
    assert (undefined.value, undefined.undefined) == (None, "no_variance")
    (no_interval,) = more_traces(scope, Figure(value=1.0, interval=(1.0, 1.0)), 9)
    assert (no_interval.value, no_interval.undefined) == (None, "no_interval")


def test_left_out_verdicts_are_counted() -> None:
    answers_by_unit = {("ann", REPETITION): "01?0.", ("bob", REPETITION): "01100"}
    some = replace(
        study(answers_by_unit, finished={"bob": 4}),
        unfinished={"bob": 1, "eve": 7},
        open_codes={"ann": 2},
    )
    report = agreement_document(some, rounds=0)
    assert report["left_out"] == {
        "unfinished": {"ann": 0, "bob": 1},
        "examples": {"ann": 0, "bob": 0},
        "alone": {"ann": 1, "bob": 0},
        "unsure": {"ann": 1, "bob": 0},
        # Both left the other mode open in the four traces that both have finished.
        "open": {"ann": 4, "bob": 4},
        "not_in_study": {},
        "open_codes": {"ann": 2, "bob": 0},
    }


def test_category_is_present_if_any_of_its_modes_is() -> None:
    answers_by_unit = {
        ("ann", REPETITION): "1100?0.0",
        ("ann", TERMINATION): "01000.00",
        ("bob", REPETITION): "00000000",
        ("bob", TERMINATION): "11000000",
    }
    groups = (Group("all", "All", (REPETITION, TERMINATION)),)
    with_level = replace(study(answers_by_unit), levels={"area": groups})
    level = agreement_document(with_level, rounds=0)["levels"]["area"]
    everything = level["categories"]["all"]
    # ann: 1 1 0 0 ? . . 0; the modes of the last two that are open could be present.
    assert (everything["n"], everything["unsure"]) == (5, {"ann": 1, "bob": 0})
    assert everything["raw_agreement"].get("value") == 1.0
    assert everything["modes"] == ["1.3", "3.1"]
    assert level["pooled"]["cohen_kappa"].get("value") == 1.0
    assert "levels" not in agreement_document(study(answers_by_unit), rounds=0)
