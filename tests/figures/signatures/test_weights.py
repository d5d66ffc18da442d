"""Weighted shares: a trace counts as often as its weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.figures.intervals import wilson_of
from mast_tui.study import Draw, Study
from tests.adjudication.annotated_workspace import TAXONOMY, AnnotatedWorkspace
from tests.figures.signatures.build_input import document_of, input_of
from tests.figures.signatures.test_from_workspace import read
from tests.gold.build import ABSENT, PRESENT, target

LETTERS = st.sampled_from(["00", "01", "10", "11", "?1"])
TRACES = st.lists(
    st.tuples(st.sampled_from("FS?"), LETTERS, st.integers(1, 5)), min_size=1, max_size=8
)


def shares(document: Any) -> Mapping[str, Any]:
    """Return every share, difference and mean of the group."""
    group = document["groups"]["gpt"]
    values = {
        f"{code} {key}": mode[key]
        for code, mode in group["modes"].items()
        for key in ("difference_pp", "risk_ratio")
    }
    for code, mode in group["modes"].items():
        rates = {key: mode[key] for key in ("all", "failed", "succeeded")} | mode["success_given"]
        values |= {f"{code} {key}": rate["rate"] for key, rate in rates.items()}
    for name, category in group["categories"].items():
        values[name] = category["share"]
        for side in ("failed", "succeeded"):
            values[f"{name} {side}"] = category[side]["share"]
            values[f"{name} {side} traces"] = category[side]["traces"]["rate"]
    return values | {"modes": group["modes_per_failed_trace"]["value"]}


@settings(deadline=None, max_examples=25)
@given(TRACES)
def test_weighted_traces_count_like_repeated_ones(traces: list[tuple[str, str, int]]) -> None:
    labelled = [f"gpt - {outcome} {letters}" for outcome, letters, _ in traces]
    repeats = [f"gpt - {outcome} {letters}" for outcome, letters, n in traces for _ in range(n)]
    weights = np.array([float(weight) for *_, weight in traces])
    of_part = document_of(input_of(*labelled, weights=weights), rounds=0)
    assert of_part["weighted"]
    assert shares(of_part) == pytest.approx(shares(document_of(input_of(*repeats), rounds=0)))
    for mode in of_part["groups"]["gpt"]["modes"].values():
        share = mode["all"]
        if share["ci"] is not None and share["rate"] is not None:
            equal_weights = wilson_of(share["rate"], share["n"])
            assert share["ci"][1] - share["ci"][0] >= equal_weights[1] - equal_weights[0] - 1e-9


def test_uneven_weights_widen_the_interval_of_the_mean() -> None:
    rows = ["gpt - F 11", "gpt - F 00", "gpt - F 11", "gpt - F 00"] * 5
    equal, uneven = (
        document_of(input_of(*rows, weights=weights), rounds=400)["groups"]["gpt"]
        for weights in (None, np.array([9.0, 9.0, 1.0, 1.0] * 5))
    )
    wide, narrow = (group["modes_per_failed_trace"]["ci"] for group in (uneven, equal))
    assert wide is not None
    assert narrow is not None
    assert wide[0] < narrow[0] < 1 < narrow[1] < wide[1]


def drawn_study(annotated: AnnotatedWorkspace, *draws: Draw) -> None:
    study = Study(TAXONOMY.ref, ("ann",), per_trace=1, batches=(("t1", "t2"), ("t3",)), draws=draws)
    annotated.study(study)
    for trace, value in (("t1", ABSENT), ("t2", ABSENT), ("t3", None), ("t4", None)):
        annotated.finish("ann", *([target(1)] if value is None else []), trace=trace, value=value)


def test_labels_of_a_study_are_weighted_by_chances_of_drawing() -> None:
    annotated = AnnotatedWorkspace("t1", "t2", "t3", "t4")
    drawn_study(annotated, Draw(0, 10, (), 0), Draw(1, 8, (), 0, (0.5,), "judge:j"))
    for labels in ("gold", "ann"):
        signatures = read(annotated, labels, by="all")
        # t4 was never drawn.
        assert signatures.traces == ("t1", "t2", "t3")
        assert signatures.weights is not None
        report = document_of(signatures, rounds=0)
        mode = report["groups"]["all"]["modes"]["1.3"]
        assert (mode["count"], mode["n"]) == (1, 3)
        assert mode["all"]["rate"] == pytest.approx(
            signatures.weights[2] / signatures.weights.sum()
        )
        assert signatures.weights[2] < signatures.weights[0]
        assert mode["more_labels"] is not None
    runs = read(annotated, by="all", with_unlabelled=True)
    assert (len(runs.traces), runs.weights, runs.has_unknown_weights) == (4, None, True)


def test_draws_from_different_wholes_have_no_weights() -> None:
    annotated = AnnotatedWorkspace("t1", "t2", "t3", "t4")
    drawn_study(annotated, Draw(0, 10, (), 0))
    signatures = read(annotated, by="all")
    assert (signatures.weights, len(signatures.traces)) == (None, 4)
    assert "not samples of one population" in document_of(signatures, rounds=0)["cannot_say"][0]
    annotated.finish("eve", trace="t1", value=PRESENT)
    assert not read(annotated, "eve", by="all").has_unknown_weights
