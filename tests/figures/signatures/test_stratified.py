"""x"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from statsmodels.stats.contingency_tables import StratifiedTable

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.intervals import rate, wilson_of
from mast_tui.figures.record import Figure, FigureScope, rate_json
from mast_tui.figures.signatures.model import SignatureInput
from mast_tui.figures.signatures.modes import Stratum, mantel_haenszel
from mast_tui.figures.signatures.report import natural_order, signature_report
from mast_tui.figures.significance import cochran_armitage
from mast_tui.reports.render.text import render_text
from mast_tui.reports.sentences import why_no_interval
from mast_tui.reports.signatures import signatures_report
from mast_tui.study import Draw, Study
from tests.adjudication.annotated_workspace import TAXONOMY, AnnotatedWorkspace
from tests.figures.signatures.build_input import document_of, input_of
from tests.figures.signatures.test_from_workspace import read
from tests.gold.build import ABSENT, PRESENT, target

sides = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
strata = st.lists(
    st.tuples(sides, sides).map(lambda two: (*two[0], *two[1])), min_size=1, max_size=6
)


def common(tables: list[Stratum]) -> tuple[Figure, Figure]:
    strata = [Stratum(*table) for table in tables]
    _, difference, ratio = mantel_haenszel(strata, FigureScope("stratified"))
    return difference, ratio


@given(strata)
@settings(max_examples=60, deadline=None)
def test_risk_ratio_is_that_of_statsmodels(tables: list[Stratum]) -> None:
    _, ratio = common(tables)
    if ratio.value is None:
        assert not any(b for _, _, b, _ in tables)
        return
    expected = StratifiedTable([np.array([[a, n - a], [b, m - b]]) for a, n, b, m in tables])
    assert ratio.value == pytest.approx(expected.riskratio_pooled, rel=1e-9)


@given(sides, sides)
@example((5, 5), (0, 5))
@settings(max_examples=60, deadline=None)
def test_figures_of_one_stratum_are_the_plain_ones(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    (a, n), (b, m) = first, second
    difference, ratio = common([Stratum(a, n, b, m)])
    assert difference.value == pytest.approx(a / n - b / m)
    few = min(n, m) < 5
    if few or min(a + b, n + m - a - b) < 5:
        assert (difference.interval, ratio.interval) == (None, None)
        assert difference.withheld == ("few_traces" if few else "rare_mode")
        assert ("needs 5 traces in each group" in why_no_interval(difference)) == few
        return
    if a and b:
        # Greenland and Robins' interval of one stratum is Katz's.
        half = 1.959963984540054 * sqrt(1 / a - 1 / n + 1 / b - 1 / m)
        ends = [np.log(end) for end in ratio.interval or ()]
        assert ends == pytest.approx([np.log(a * m / n / b) - half, np.log(a * m / n / b) + half])


@pytest.mark.parametrize(
    "tables",
    [
        [(12, 20, 5, 25)],
        [(3, 40, 9, 35)],
        [(1, 10, 4, 12)],
        [(7, 9, 2, 30), (3, 12, 2, 8), (0, 5, 1, 6)],
    ],
)
def test_ends_of_the_difference_have_the_score_of_the_quantile(tables: list[Stratum]) -> None:
    """The likeliest shares under a difference are found by search."""
    ends = common(tables)[0].interval or ()
    assert len(ends) == 2
    weights = [n * m / (n + m) for _, n, _, m in tables]
    for difference in ends:
        distance = variance = 0.0
        for weight, (a, n, b, m) in zip(weights, tables, strict=True):

            def unlikely(q: float, a: int = a, n: int = n, b: int = b, m: int = m) -> float:
                p = q + difference  # noqa: B023
                return -float(xlogy(a, p) + xlogy(n - a, 1 - p) + xlogy(b, q) + xlogy(m - b, 1 - q))

            limits = (max(0.0, -difference), min(1.0, 1 - difference))
            q = minimize_scalar(unlikely, bounds=limits, options={"xatol": 1e-10}).x
            p = q + difference
            distance += weight * (a / n - b / m - difference)
            each = p * (1 - p) / n + q * (1 - q) / m
            variance += weight**2 * each * (n + m) / (n + m - 1)
        assert abs(distance) / sqrt(variance) == pytest.approx(1.959964, abs=1e-3)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ([], "no_strata"),
        ([(1, 4, 0, 0), (0, 0, 2, 5)], "no_strata"),
        ([(0, 4, 0, 5)], "never_seen"),
        ([(2, 5, 0, 5)], "none_in_succeeded"),
        ([(0, 4, 2, 5)], "none_in_failed"),
    ],
)
def test_undefined_figures_have_their_reason(tables: list[Stratum], reason: str) -> None:
    difference, ratio = common(tables)
    assert ratio.interval is None
    assert (difference.value is None) is (reason == "no_strata")
    if reason == "none_in_failed":
        assert ratio.value == 0
    else:
        assert ratio.undefined == reason


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


def text_of(signatures: SignatureInput, **options: Any) -> list[str]:
    report = signature_report(signatures, Resampling(0), **options)
    return render_text(signatures_report(report), None)


def share(count: int, n: int) -> dict[str, Any]:
    return rate_json(rate(FigureScope("mode"), "", count, n))


def test_success_is_counted_with_and_without_a_mode() -> None:
    rows = [*["g - S 10"] * 3, *["g - F 10"] * 5, *["g - S 00"] * 6]
    signatures = input_of(*rows, "g - F 0?", "g - ? 11")
    mode = document_of(signatures, rounds=0)["groups"]["g"]["modes"]
    assert mode["1.3"]["success_given"] == {"present": share(3, 8), "absent": share(6, 7)}
    assert mode["3.1"]["success_given"] == {"present": share(0, 0), "absent": share(9, 14)}


VERSIONS = ("1.2", "1.9", "1.10")


def over_versions(*hit_counts: int, trace_count: int = 10) -> list[str]:
    """Return the traces of each version, of which this many show the mode."""
    return [
        f"{version} - {'FS'[number % 2]} {int(number < hits)}0"
        for version, hits in zip(VERSIONS, hit_counts, strict=True)
        for number in range(trace_count)
    ]


def test_growing_mode_has_a_trend_over_versions() -> None:
    signatures = input_of(*over_versions(1, 3, 6), "(unknown) - F 10", by="version")
    report = document_of(signatures, rounds=0)
    trend = report["trend"]
    assert trend is not None
    assert trend["groups"] == ["1.2", "1.9", "1.10"]
    assert trend["left_out"] == 1
    loop = trend["modes"]["all"]["1.3"]
    tested = cochran_armitage([1, 3, 6], [10, 10, 10])
    assert tested is not None
    assert (loop["z"], loop["p_value"], loop["method"]) == tested
    assert loop["slope_pp"] == pytest.approx(25)
    assert [row["count"] for row in loop["rates"]] == [1, 3, 6]
    assert [row["count"] for row in trend["modes"]["failed"]["1.3"]["rates"]] == [1, 2, 3]
    stop = trend["modes"]["all"]["3.1"]
    assert (stop["undefined"], stop["p_adjusted"], stop["slope_pp"]) == ("no_variance", None, 0)
    assert loop["p_adjusted"] == loop["p_value"]


def test_dates_are_apart_by_their_days() -> None:
    days = {"1.2": "2026-01-01", "1.9": "2026-01-02", "1.10": "2026-06-01"}
    signatures = input_of(*over_versions(1, 3, 6), by="version")
    names = tuple(days.get(name, name) for name in signatures.group_names)
    signatures = replace(signatures, by="date", group_names=names, group_parts=())
    trend = document_of(signatures, rounds=0)["trend"]
    assert trend is not None
    assert (trend["groups"], trend["unit"]) == (list(days.values()), "day")
    assert trend["scores"] == [0, 1, 151]
    loop = trend["modes"]["all"]["1.3"]
    tested = cochran_armitage([1, 3, 6], [10, 10, 10], [0, 1, 151])
    assert tested is not None
    assert (loop["z"], loop["p_value"], loop["method"]) == tested
    slope, _ = np.polyfit([0, 1, 151], [10, 30, 60], 1)
    assert loop["slope_pp"] == pytest.approx(slope)
    text = " ".join(text_of(signatures))
    assert "in 151 days" in text
    assert "Dates are scaled in days." in text
    by_version = text_of(input_of(*over_versions(1, 3, 6), by="version"))
    assert "Versions count as equal steps" in " ".join(by_version)


def test_other_groups_and_single_versions_have_no_trend() -> None:
    signatures = input_of(*over_versions(1, 3, 6), by="system")
    assert document_of(signatures, rounds=0)["trend"] is None
    assert document_of(input_of("1.2 - F 10", by="version"), rounds=0)["trend"] is None


def test_versions_are_sorted_by_their_numbers() -> None:
    versions = ["v2", "v10", "1.10.0", "1.9", "1.9-rc2", "2026-03-01", "2025-12-31"]
    assert sorted(versions, key=natural_order) == [
        "1.9", "1.9-rc2", "1.10.0", "2025-12-31", "2026-03-01", "v2", "v10",
    ]  # fmt: skip


def test_groups_have_their_fields_as_parts() -> None:
    signatures = input_of("x - F 10", "y - F 10")
    assert document_of(signatures, rounds=0)["groups"]["y"]["parts"] == {"model": "y"}
    names = ("a · q", "b · q")
    parts = (("a", "q"), ("b", "q"))
    two_fields = replace(signatures, by="model,benchmark", group_names=names, group_parts=parts)
    report = document_of(two_fields, rounds=0)
    assert report["by"] == "model,benchmark"
    assert report["groups"]["b · q"]["parts"] == {"model": "b", "benchmark": "q"}
    one_group = replace(signatures, by="all", group_names=("all",), group=signatures.group * 0)
    assert document_of(one_group, rounds=0)["groups"]["all"]["parts"] == {}
