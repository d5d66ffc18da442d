"""Intervals, tests and corrections against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact as scipy_fisher
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from mast_tui.figures.intervals import katz, newcombe, rate, wilson
from mast_tui.figures.record import FigureScope
from mast_tui.figures.significance import LogFactorials, benjamini_hochberg, fisher_exact

Table = tuple[int, int, int, int]


def tables(least: int = 1) -> st.SearchStrategy[Table]:
    """Draw hits and cases of two sides, as ``count, n, other, m``."""
    side = st.integers(least, 120).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
    return st.tuples(side, side).map(lambda pair: (*pair[0], *pair[1]))


@given(tables())
@settings(max_examples=60, deadline=None)
def test_intervals_of_shares_and_differences_are_those_of_statsmodels(table: Table) -> None:
    count, n, other, m = table
    assert wilson(count, n) == pytest.approx(proportion_confint(count, n, method="wilson"))
    expected = confint_proportions_2indep(count, n, other, m, compare="diff", method="newcomb")
    assert newcombe(count, n, other, m) == pytest.approx(expected, abs=1e-12)


@given(tables())
@settings(max_examples=60, deadline=None)
@example((33_400, 66_000, 16_700, 34_000))
def test_ratios_and_exact_tests_are_those_of_statsmodels_and_scipy(table: Table) -> None:
    count, n, other, m = table
    ends = katz(count, n, other, m)
    if not count or not other:
        assert ends is None
    else:
        expected = confint_proportions_2indep(
            count, n, other, m, compare="ratio", method="log", correction=False
        )
        assert ends == pytest.approx(expected)
    with_logarithms = fisher_exact(count, n, other, m, LogFactorials(n + m))
    if n + m < 1000:
        p_value = scipy_fisher([[count, n - count], [other, m - other]]).pvalue
        assert with_logarithms == pytest.approx(p_value, rel=1e-9)
    assert fisher_exact(count, n, other, m) == pytest.approx(with_logarithms, rel=1e-6)


@given(st.lists(st.none() | st.floats(0, 1), max_size=20))
@settings(max_examples=60, deadline=None)
def test_p_values_are_adjusted_as_by_statsmodels_and_missing_ones_kept(
    values: list[float | None],
) -> None:
    adjusted = benjamini_hochberg(values)
    assert [p is None for p in adjusted] == [p is None for p in values]
    defined = [p for p in values if p is not None]
    if defined:
        expected = np.asarray(multipletests(defined, method="fdr_bh")[1]).tolist()
        assert [p for p in adjusted if p is not None] == pytest.approx(expected)


def test_no_cases_have_no_share_interval_or_test() -> None:
    nothing = rate(FigureScope("mode"), "", 0, 0)
    assert (nothing.value, nothing.interval, nothing.undefined) == (None, None, "no_traces")
    assert newcombe(1, 2, 0, 0) is None
    assert fisher_exact(0, 0, 1, 2, LogFactorials(2)) is None
    with pytest.raises(ValueError, match="not a share"):
        wilson(3, 2)
