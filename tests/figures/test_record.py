"""The record of a figure: how it is looked up, renamed and placed in a JSON document."""

from __future__ import annotations

import json

import pytest

from mast_tui.figures.agreement.coefficients import Coefficient
from mast_tui.figures.record import (
    STATISTICS,
    Figure,
    FigureIndex,
    Scope,
    Sources,
    nested_json,
    record_json,
    renamed,
    scope_paths,
)

PATHS = scope_paths("""
    mode   | modes.{mode}
    pair   | modes.{mode}.pairs.{subject}
    macro  | macro | no n
    plan   | halving.{mode}
""")
MODE = Scope("mode", "mast@3", mode="1.1", sources=Sources("people", ("m0",)))
PAIR = Scope("pair", mode="1.1", subject=("ann", "b.ob"))
FIGURES = (
    MODE.number("n", 4),
    *MODE.numbers("prevalence", {"ann": 0.5, "b.ob": None}),
    MODE.estimate("cohen_kappa", Coefficient(0.4, ci=(0.1, 0.7), n=4)),
    PAIR.number("prevalence", 0.25, condition="b.ob"),
    PAIR.estimate("cohen_kappa", Coefficient(0.3, withheld=("few_traces", 16), n=4)),
    Scope("macro").estimate("cohen_kappa", Coefficient(undefined="no_variance"), n=2),
    Scope("plan", mode="1.1").number("more_traces", None, reason="no_interval"),
    Scope("nowhere").number("n", 1),
)


def test_a_document_is_made_from_records_by_the_paths_of_their_scopes() -> None:
    document = nested_json(FIGURES, PATHS, {"modes": {"1.1": {"slug": "m0"}}})
    assert document == {
        "modes": {
            "1.1": {
                "slug": "m0",
                "n": 4,
                "prevalence": {"ann": 0.5, "b.ob": None},
                "cohen_kappa": {"value": 0.4, "ci": [0.1, 0.7], "n": 4},
                "pairs": {
                    "ann|b.ob": {
                        "prevalence": {"b.ob": 0.25},
                        "cohen_kappa": {
                            "value": 0.3,
                            "ci": None,
                            "ci_withheld": "few_traces",
                            "ci_needs": 16,
                            "n": 4,
                        },
                    }
                },
            }
        },
        "macro": {"cohen_kappa": {"value": None, "undefined": "no_variance"}},
        "halving": {"1.1": {"more_traces": None, "undefined": "no_interval"}},
    }


def test_figures_are_looked_up_by_what_they_are_about() -> None:
    index = FigureIndex(FIGURES)
    mode = index.table("mode", mode="1.1")
    assert mode.values("prevalence") == {"ann": 0.5, "b.ob": None}
    assert (mode.count("n"), mode["cohen_kappa"].interval) == (4, (0.1, 0.7))
    pair = index.table("pair", mode="1.1", subject=("ann", "b.ob"))
    assert pair.values("prevalence") == {"b.ob": 0.25}
    assert pair["cohen_kappa"].withheld == "few_traces"
    assert index.table("macro")["cohen_kappa"].undefined == "no_variance"
    assert "cohen_kappa" not in index.table("mode", mode="1.2")


def test_new_names_stand_in_every_field_and_order_the_pair() -> None:
    letters = {"ann": "B", "b.ob": "A"}
    pairs = [one for one in renamed(FIGURES, letters) if one.scope == "pair"]
    assert {one.subject for one in pairs} == {("A", "B")}
    assert pairs[0].condition == "A"
    assert "ann" not in json.dumps([record_json(one) for one in renamed(FIGURES, letters)])


def test_a_statistic_is_registered_with_its_formula() -> None:
    with pytest.raises(ValueError, match="'kapa' is not in the registry"):
        Figure(statistic="kapa", scope="mode")
    assert all(one.label and one.title and one.formula for one in STATISTICS.values())
    estimates = [one for one in STATISTICS.values() if one.interval]
    assert all(one.withheld and one.undefined for one in estimates)
