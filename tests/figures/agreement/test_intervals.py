"""Score intervals, McNemar's test, resamples, and corrected percentiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_elsewhere

from mast_tui.figures.bootstrap import Resampling, interval, resampled_sums, resamples
from mast_tui.figures.intervals import wilson
from mast_tui.figures.significance import mcnemar

COUNTS = st.integers(0, 400)


def test_published_score_intervals() -> None:
    assert wilson(81, 263) == pytest.approx((0.25529, 0.36621), abs=5e-6)
    assert wilson(0, 20) == pytest.approx((0, 0.16113), abs=5e-6)


@given(COUNTS, COUNTS)
def test_mcnemar_is_that_of_statsmodels(first: int, second: int) -> None:
    table = [[0, first], [second, 0]]
    expected = mcnemar_elsewhere(table, exact=True).pvalue if first + second else 1
    assert mcnemar(first, second) == pytest.approx(min(1, expected), rel=1e-9)


def test_mcnemar_is_exact_for_large_counts() -> None:
    assert 0 < mcnemar(400, 700) < 1e-15
    assert mcnemar(0, 3000) == 0


def test_resamples_do_not_depend_on_what_is_summed() -> None:
    features = np.arange(60, dtype=np.float64).reshape(30, 2) % 7
    sums = resampled_sums(features, Resampling(40, 5))
    weights = np.concatenate(list(resamples(30, Resampling(40, 5))))
    assert (weights.sum(axis=1) == 30).all()
    assert (sums == weights @ features).all()
    assert (resampled_sums(features, Resampling(10, 5)) == sums[:10]).all()
    assert (resampled_sums(features, Resampling(40, 6)) != sums).any()
    assert resampled_sums(features[:0], Resampling(40, 5)).shape == (0, 2)


Values = NDArray[np.float64]


def means_of(data: Values) -> tuple[float, Values, Values]:
    """Return the mean, its values in resamples, and those without each number."""
    resampled = resampled_sums(data[:, None], Resampling(2000, 1))[:, 0] / data.size
    return float(data.mean()), resampled, (data.sum() - data) / (data.size - 1)


def test_interval_of_a_skewed_figure_moves_towards_the_long_tail() -> None:
    skewed = np.array([1, 1, 1, 2, 2, 3, 4, 6, 12, 40], dtype=np.float64)
    estimate, resampled, left_out = means_of(skewed)
    plain = interval(estimate, resampled)
    moved = interval(estimate, resampled, left_out=left_out)
    assert plain is not None
    assert moved is not None
    assert moved[0] > plain[0]
    assert moved[1] > plain[1]
    mirrored = interval(-estimate, -resampled, left_out=-left_out)
    assert mirrored == pytest.approx((-moved[1], -moved[0]), rel=0.02)
    estimate, resampled, left_out = means_of(np.arange(-20.0, 21.0))
    symmetric = np.concatenate((resampled, -resampled))
    assert interval(estimate, symmetric, left_out=left_out) == pytest.approx(
        interval(estimate, symmetric), abs=1e-9
    )


def test_interval_needs_different_values_in_more_than_half_of_the_resamples() -> None:
    assert interval(1.0, np.ones(50), left_out=np.ones(9)) is None
    values = np.array([0.1, 0.2, np.nan, np.nan])
    assert interval(0.2, values) is None
    assert interval(0.2, values[:3]) == pytest.approx((0.1025, 0.2))
    assert interval(0.5, values[:3]) == pytest.approx((0.1025, 0.5))
