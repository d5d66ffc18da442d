"""Records of figures: new names, and the registry of statistics."""

from __future__ import annotations

import json

import pytest

from mast_tui.figures.record import (
    STATISTICS,
    Figure,
    FigureScope,
    Sources,
    record_json,
    renamed_figures,
)

MODE = FigureScope("mode", "mast@3", mode="1.1", sources=Sources("people", ("m0",)))
PAIR = FigureScope("pair", mode="1.1", subject=("ann", "b.ob"))
FIGURES = (
    MODE.number("n", 4),
    *MODE.numbers("prevalence", {"ann": 0.5, "b.ob": None}),
    MODE.figure("cohen_kappa", Figure(value=0.4, interval=(0.1, 0.7), n=4)),
    PAIR.number("prevalence", 0.25, condition="b.ob"),
    PAIR.figure("cohen_kappa", Figure(value=0.3, reason="few_traces", needs=16, n=4)),
)


def test_new_names_replace_old_ones_in_every_field() -> None:
    letters = {"ann": "B", "b.ob": "A"}
    pairs = [figure for figure in renamed_figures(FIGURES, letters) if figure.scope == "pair"]
    assert {pair.subject for pair in pairs} == {("A", "B")}
    assert pairs[0].condition == "A"
    judge = FigureScope("pair", subject=("ann", "judge:x"))
    shares = [judge.number("prevalence", 0.1, condition=name) for name in ("judge:x", "ann")]
    conditions = [figure.condition for figure in renamed_figures(shares, {"ann": "B"})]
    assert conditions == ["B", "judge:x"]
    records = [record_json(figure) for figure in renamed_figures(FIGURES, letters)]
    assert "ann" not in json.dumps(records)


def test_statistics_are_registered_with_their_formula() -> None:
    with pytest.raises(ValueError, match="'kapa' is not in the registry"):
        Figure(statistic="kapa", scope="mode")
    assert all(
        statistic.label and statistic.title and statistic.formula
        for statistic in STATISTICS.values()
    )
    estimates = [statistic for statistic in STATISTICS.values() if statistic.interval]
    assert all(estimate.withheld and estimate.undefined for estimate in estimates)
