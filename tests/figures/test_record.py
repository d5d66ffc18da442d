"""Records of figures: look-up, new names, and JSON documents."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mast_tui.figures import record
from mast_tui.figures.agreement.coefficients import Coefficient
from mast_tui.figures.record import (
    STATISTICS,
    Figure,
    FigureIndex,
    FigureScope,
    JsonForm,
    Sources,
    Statistic,
    insert_figures,
    record_json,
    renamed_figures,
    scope_paths,
)

PATHS = scope_paths("""
    mode   | modes.{mode}
    pair   | modes.{mode}.pairs.{subject}
    macro  | macro | no n
    plan   | halving.{mode}
""")
MODE = FigureScope("mode", "mast@3", mode="1.1", sources=Sources("people", ("m0",)))
PAIR = FigureScope("pair", mode="1.1", subject=("ann", "b.ob"))
FIGURES = (
    MODE.number("n", 4),
    *MODE.numbers("prevalence", {"ann": 0.5, "b.ob": None}),
    MODE.estimate("cohen_kappa", Coefficient(0.4, ci=(0.1, 0.7), n=4)),
    PAIR.number("prevalence", 0.25, condition="b.ob"),
    PAIR.estimate("cohen_kappa", Coefficient(0.3, withheld=("few_traces", 16), n=4)),
    FigureScope("macro").estimate("cohen_kappa", Coefficient(undefined="no_variance"), n=2),
    FigureScope("plan", mode="1.1").number("more_traces", None, reason="no_interval"),
    FigureScope("nowhere").number("n", 1),
)


def test_records_are_placed_by_the_paths_of_their_scopes() -> None:
    document = insert_figures(FIGURES, PATHS, {"modes": {"1.1": {"slug": "m0"}}})
    withheld = {"value": 0.3, "ci": None, "ci_withheld": "few_traces", "ci_needs": 16, "n": 4}
    mode = {
        "slug": "m0",
        "n": 4,
        "prevalence": {"ann": 0.5, "b.ob": None},
        "cohen_kappa": {"value": 0.4, "ci": [0.1, 0.7], "n": 4},
        "pairs": {"ann|b.ob": {"prevalence": {"b.ob": 0.25}, "cohen_kappa": withheld}},
    }
    assert document == {
        "modes": {"1.1": mode},
        "macro": {"cohen_kappa": {"value": None, "undefined": "no_variance"}},
        "halving": {"1.1": {"more_traces": None, "undefined": "no_interval"}},
    }


def test_rates_and_numbers_with_reasons_have_forms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    definitions = {
        "rate": Statistic("rate", "rate", "rate", "count / n", form=JsonForm.RATE),
        "ratio": Statistic(
            "ratio", "RR", "risk ratio", "p / q",
            form=JsonForm.NUMBER_OR_REASONS, interval_key="ratio_ci", bounds_key="ratio_bounds",
        ),
    }  # fmt: skip
    monkeypatch.setattr(record, "STATISTICS", definitions)
    rate = Figure(statistic="rate", scope="mode", group="gpt", mode="1.1")
    figures = [
        replace(rate, condition="failed", count=2, n=8, value=0.25, low=0.1, high=0.6),
        replace(rate, condition="all", count=0, n=0, reason="no_traces"),
        replace(rate, scope="sides", statistic="ratio", reason="no_failed"),
    ]
    paths = scope_paths("""
        mode  | groups.{group}.{mode}.{condition}
        sides | groups.{group}.{mode}
    """)
    assert insert_figures(figures, paths, {})["groups"]["gpt"]["1.1"] == {
        "failed": {"count": 2, "n": 8, "rate": 0.25, "ci": [0.1, 0.6]},
        "all": {"count": 0, "n": 0, "rate": None, "ci": None, "undefined": "no_traces"},
        "ratio": None,
        "ratio_ci": None,
        "undefined": {"ratio": "no_failed"},
    }


def test_figures_are_looked_up_by_scope() -> None:
    index = FigureIndex(FIGURES)
    mode = index.table("mode", mode="1.1")
    assert mode.values("prevalence") == {"ann": 0.5, "b.ob": None}
    assert (mode.count("n"), mode["cohen_kappa"].interval) == (4, (0.1, 0.7))
    pair = index.table("pair", mode="1.1", subject=("ann", "b.ob"))
    assert pair.values("prevalence") == {"b.ob": 0.25}
    assert pair["cohen_kappa"].withheld == "few_traces"
    assert index.table("macro")["cohen_kappa"].undefined == "no_variance"
    assert "cohen_kappa" not in index.table("mode", mode="1.2")


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
