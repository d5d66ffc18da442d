"""Differences and ratios within models."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from statsmodels.stats.contingency_tables import StratifiedTable

from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.signatures.modes import Stratum, mantel_haenszel
from mast_tui.reports.sentences import why_no_interval

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
