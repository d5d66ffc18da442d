"""The report of ``agree``: units, shape, and values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.figures.agreement.counting import numbered_rows
from mast_tui.figures.agreement.drill_down import source_traces
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.record import COEFFICIENTS
from mast_tui.labels import VerdictValue
from tests.figures.agreement.build_judge import MODES
from tests.figures.agreement.tables import agreement_document, verdict_table

LETTERS = {"1": VerdictValue.PRESENT, "0": VerdictValue.ABSENT, "?": VerdictValue.UNSURE}


def study(
    lines: Mapping[tuple[str, str], str], finished: Mapping[str, int] | None = None
) -> StudyInput:
    """Return a study of the verdicts by annotator and mode, a character per trace.

    ``1`` is present, ``0`` absent, ``?`` unsure, ``.`` open; ``finished`` is the number of first
    traces that an annotator has finished, by default all.
    """
    annotators = tuple(dict.fromkeys(name for name, _ in lines))
    length = max((len(line) for line in lines.values()), default=0)
    counts = dict.fromkeys(annotators, length) | dict(finished or {})
    done = {name: frozenset(f"t{i}" for i in range(n)) for name, n in counts.items()}
    verdicts = {
        (name, f"t{i}", slug): LETTERS[letter]
        for (name, slug), line in lines.items()
        for i, letter in enumerate(line)
        if letter != "."
    }
    table = verdict_table(MODES, done, verdicts)
    return StudyInput("mast@3", MODES, annotators, "1", table, done)


def of_one_mode(**lines: str) -> dict[str, Any]:
    return agreement_document(study({(name, "step_repetition"): s for name, s in lines.items()}))


def test_figures_of_a_known_table() -> None:
    report = of_one_mode(ann="1" * 25 + "0" * 25, bob="1" * 20 + "0" * 5 + "1" * 10 + "0" * 15)
    mode = report["modes"]["1.3"]
    assert mode["n"] == 50
    assert mode["raw_agreement"]["value"] == pytest.approx(0.7)
    assert mode["prevalence"] == {"ann": pytest.approx(0.5), "bob": pytest.approx(0.6)}
    assert mode["cohen_kappa"]["value"] == pytest.approx(0.4)
    assert mode["positive_agreement"]["value"] == pytest.approx(40 / 55)
    assert mode["negative_agreement"]["value"] == pytest.approx(30 / 45)
    assert mode["pairs"]["ann|bob"]["cohen_kappa"] == mode["cohen_kappa"]


def test_document_has_the_documented_fields() -> None:
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


def test_open_unsure_and_unfinished_verdicts_are_missing() -> None:
    slug = "step_repetition"
    report = agreement_document(study({("ann", slug): "01101", ("bob", slug): "01100"}, {"bob": 3}))
    assert report["traces"] == {"finished_by_all": 3, "finished_by_two": 3}
    assert report["modes"]["1.3"]["n"] == 3
    assert report["modes"]["1.3"]["raw_agreement"]["value"] == 1.0
    mode = of_one_mode(ann="01?0.", bob="010?1")["modes"]["1.3"]
    assert (mode["n"], mode["unsure"]) == (2, {"ann": 1, "bob": 1})
    report = agreement_document(study({("ann", slug): "??11", ("bob", slug): "0111"}, {"ann": 1}))
    assert report["modes"]["1.3"]["unsure"] == {"ann": 1, "bob": 0}
    empty = agreement_document(study({}))
    assert empty["traces"] == {"finished_by_all": 0, "finished_by_two": 0}
    assert empty["pooled"]["gwet_ac1"] == {"value": None, "undefined": "single_rater", "n": 0}


NOTHING = verdict_table(MODES, {}, {})


def test_doubled_names_and_codes_are_refused() -> None:
    with pytest.raises(ValueError, match="named twice"):
        StudyInput("mast@3", MODES, ("ann", "ann"), "1", NOTHING, {})
    with pytest.raises(ValueError, match="same code"):
        StudyInput("mast@3", (MODES[0], replace(MODES[1], code="1.3")), ("ann",), "1", NOTHING, {})


REASONS = {"no_variance", "no_overlap", "single_rater", "single_trace"}
PEOPLE = ("ann", "bob", "cat", "dan")


@given(
    st.integers(0, 4).flatmap(
        lambda people: st.fixed_dictionaries(
            {
                (name, mode.slug): st.text("10?.", max_size=12)
                for name in PEOPLE[:people]
                for mode in MODES
            }
        )
    )
)
def test_any_study_gives_json_without_nan_and_values_in_range(
    lines: dict[tuple[str, str], str],
) -> None:
    report = agreement_document(study(lines), rounds=20)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    modes = report["modes"].values()
    pooled = report["pooled"]
    pairs = [pair for table in (*modes, pooled) for pair in table["pairs"].values()]
    for table in (*modes, pooled, *pairs, report["macro"]):
        figures = cast("Mapping[str, dict[str, Any]]", table)
        for name in COEFFICIENTS:
            coefficient = figures[name]
            if coefficient["value"] is None:
                assert coefficient["undefined"] in REASONS
            else:
                assert -1 - 1e-9 <= coefficient["value"] <= 1 + 1e-9
                low, high = coefficient["ci"] or (coefficient["value"],) * 2
                assert low <= coefficient["value"] <= high


SLUG = "step_repetition"


def test_source_traces_have_disagreements_first() -> None:
    lines = {("ann", SLUG): "0110?1", ("bob", SLUG): "0100.1", ("cat", SLUG): "00.1.0"}
    study_of_one_mode = study(lines, finished={"cat": 5})
    mode = agreement_document(study_of_one_mode, rounds=0)["modes"]["1.3"]
    sources = source_traces(study_of_one_mode, SLUG)
    assert [trace.trace_id for trace in sources] == ["t2", "t1", "t3", "t5", "t0"]
    assert [trace.disagreement for trace in sources] == pytest.approx([1, 2 / 3, 2 / 3, 0, 0])
    assert len(sources) == mode["n"]
    verdicts = {trace.trace_id: trace.verdicts for trace in sources}
    assert verdicts["t2"] == {"ann": LETTERS["1"], "bob": LETTERS["0"], "cat": None}
    assert set(verdicts["t5"]) == {"ann", "bob"}, "cat has not finished it"
    of_pair = source_traces(study_of_one_mode, SLUG, ("cat", "bob"))
    assert [trace.trace_id for trace in of_pair] == ["t1", "t3", "t0"]
    assert set(of_pair[0].verdicts) == {"cat", "bob"}
    assert mode["pairs"]["bob|cat"]["n"] == len(of_pair)
    other = MODES[1].slug
    two_modes = study(lines | {("ann", other): "11.1", ("bob", other): "1111"})
    complete = source_traces(two_modes, SLUG, complete=True)
    assert [trace.trace_id for trace in complete] == ["t1", "t3", "t0"]


@given(
    st.integers(0, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(-3, 2), min_size=width, max_size=width), min_size=1, max_size=25
        )
    )
)
def test_equal_rows_share_a_number(rows: list[list[int]]) -> None:
    numbers = numbered_rows(np.array(rows, dtype=np.int8)).tolist()
    assert len(set(zip(numbers, map(tuple, rows), strict=True))) == len(set(numbers))
    assert set(numbers) == set(range(len(set(map(tuple, rows)))))
