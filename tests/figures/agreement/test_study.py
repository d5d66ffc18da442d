"""The report of ``agree``: its units, its shape, and what it never says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.agreement.coefficients import CoefficientJson
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.record import COEFFICIENTS
from mast_tui.labels import VerdictValue
from tests.figures.agreement.tables import agreement_document, verdict_table

MODES = (
    ("step_repetition", "1.3", "Step repetition"),
    ("premature_termination", "3.1", "Premature termination"),
)
LETTERS = {"1": VerdictValue.PRESENT, "0": VerdictValue.ABSENT, "?": VerdictValue.UNSURE}


def study(
    said: Mapping[tuple[str, str], str], finished: Mapping[str, int] | None = None
) -> StudyInput:
    """A study of what each annotator said of each mode, a character per trace.

    ``1`` present, ``0`` absent, ``?`` unsure, ``.`` open; ``finished`` are the first so many
    traces, by default all.
    """
    annotators = tuple(dict.fromkeys(name for name, _ in said))
    length = max((len(line) for line in said.values()), default=0)
    counts = dict.fromkeys(annotators, length) | dict(finished or {})
    done = {name: frozenset(f"t{i}" for i in range(n)) for name, n in counts.items()}
    verdicts = {
        (name, f"t{i}", slug): LETTERS[letter]
        for (name, slug), line in said.items()
        for i, letter in enumerate(line)
        if letter != "."
    }
    table = verdict_table(MODES, done, verdicts)
    return StudyInput("mast@3", MODES, annotators, "1", table, done)


def of_one_mode(**lines: str) -> dict[str, Any]:
    return agreement_document(study({(name, "step_repetition"): s for name, s in lines.items()}))


def test_two_annotators_on_a_table_with_known_figures() -> None:
    """The 20/5/10/15 table, for which κ is 0.4."""
    report = of_one_mode(ann="1" * 25 + "0" * 25, bob="1" * 20 + "0" * 5 + "1" * 10 + "0" * 15)
    mode = report["modes"]["1.3"]
    assert mode["n"] == 50
    assert mode["raw_agreement"]["value"] == pytest.approx(0.7)
    assert mode["prevalence"] == {"ann": pytest.approx(0.5), "bob": pytest.approx(0.6)}
    assert mode["cohen_kappa"]["value"] == pytest.approx(0.4)
    assert mode["positive_agreement"]["value"] == pytest.approx(40 / 55)
    assert mode["negative_agreement"]["value"] == pytest.approx(30 / 45)
    assert mode["pairs"]["ann|bob"]["cohen_kappa"] == mode["cohen_kappa"]


def test_the_shape_is_the_agreed_one() -> None:
    report = of_one_mode(ann="0110", bob="0100")
    assert list(report) == [
        *("taxonomy", "annotators", "pass", "traces", "modes", "macro", "pooled"),
        *("spans", "judge", "bootstrap", "categories", "sets", "blocks", "identical_blocks"),
        *("rounds", "retests", "agents", "halving", "missed", "left_out"),
    ]
    assert list(report["modes"]) == ["1.3", "3.1"]
    assert report["modes"]["1.3"].keys() >= {*COEFFICIENTS} | {"n", "prevalence", "pairs", "unsure"}
    assert report["macro"].keys() == {*COEFFICIENTS} | {"modes_defined", "units"}
    assert report["pooled"].keys() >= {*COEFFICIENTS} | {"n", "prevalence", "pairs"}
    withheld = {"value", "ci", "ci_withheld", "ci_needs"}
    assert report["modes"]["1.3"]["cohen_kappa"].keys() == withheld | {"n"}
    assert report["modes"]["3.1"]["cohen_kappa"].keys() == {"value", "undefined", "n"}


def test_only_traces_that_both_finished_count() -> None:
    answers_by_unit = {("ann", "step_repetition"): "01101", ("bob", "step_repetition"): "01100"}
    report = agreement_document(study(answers_by_unit, finished={"bob": 3}))
    assert report["traces"] == {"finished_by_all": 3, "finished_by_two": 3}
    assert report["modes"]["1.3"]["n"] == 3
    assert report["modes"]["1.3"]["raw_agreement"]["value"] == 1.0


def test_open_and_unsure_are_missing_and_unsure_is_counted() -> None:
    mode = of_one_mode(ann="01?0.", bob="010?1")["modes"]["1.3"]
    assert mode["n"] == 2
    assert mode["unsure"] == {"ann": 1, "bob": 1}


def test_a_trace_that_only_one_finished_is_no_missing_verdict_of_the_other() -> None:
    said = {("ann", "step_repetition"): "??11", ("bob", "step_repetition"): "0111"}
    report = agreement_document(study(said, finished={"ann": 1}))
    assert report["modes"]["1.3"]["unsure"] == {"ann": 1, "bob": 0}


def test_a_study_of_nobody_is_a_report_all_the_same() -> None:
    report = agreement_document(study({}))
    assert report["traces"] == {"finished_by_all": 0, "finished_by_two": 0}
    assert report["pooled"]["gwet_ac1"] == {"value": None, "undefined": "single_rater", "n": 0}


NOTHING = verdict_table(MODES, {}, {})


def test_names_given_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="named twice"):
        StudyInput("mast@3", MODES, ("ann", "ann"), "1", NOTHING, {})
    with pytest.raises(ValueError, match="same code"):
        StudyInput("mast@3", (("a", "1.1", "A"), ("b", "1.1", "B")), ("ann",), "1", NOTHING, {})


PEOPLE = ("ann", "bob", "cat", "dan")


@given(
    st.integers(0, 4).flatmap(
        lambda people: st.fixed_dictionaries(
            {
                (name, slug): st.text("10?.", max_size=12)
                for name in PEOPLE[:people]
                for slug, _, _ in MODES
            }
        )
    )
)
def test_any_study_is_json_without_nan_and_every_coefficient_has_its_form(
    said: dict[tuple[str, str], str],
) -> None:
    report = agreement_document(study(said), rounds=20)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    modes, pooled = report["modes"].values(), report["pooled"]
    pairs = [pair for table in (*modes, pooled) for pair in table["pairs"].values()]
    for table in (*modes, pooled, *pairs, report["macro"]):
        figures = cast("Mapping[str, CoefficientJson]", table)
        for name in COEFFICIENTS:
            coefficient = figures[name]
            if coefficient["value"] is None:
                assert coefficient["undefined"] in {
                    "no_variance",
                    "no_overlap",
                    "single_rater",
                    "single_trace",
                }
            else:
                assert -1 - 1e-9 <= coefficient["value"] <= 1 + 1e-9
                low, high = coefficient["ci"] or (coefficient["value"],) * 2
                assert low <= coefficient["value"] <= high
