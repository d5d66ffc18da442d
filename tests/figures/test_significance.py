"""Tests for trends and clusters, and paired intervals, beside complete enumeration."""

from __future__ import annotations

from itertools import combinations, product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.stats.contingency_tables import Table

from mast_tui.figures.intervals import newcombe_paired, wilson
from mast_tui.figures.significance import cochran_armitage, group_permutations, mcnemar, sign_flips
from scripts.simulate_teaching import claims

groups = st.lists(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=2,
    max_size=6,
)


@given(groups, st.lists(st.integers(1, 200), min_size=6, max_size=6))
@settings(max_examples=60, deadline=None)
def test_trend_statistic_is_that_of_statsmodels(
    rows: list[tuple[int, int]], steps: list[int]
) -> None:
    hits = [x for x, _ in rows]
    cases = [n for _, n in rows]
    scores = np.cumsum(steps)[: len(rows)]
    trend_test = cochran_armitage(hits, cases, scores.tolist())
    if sum(hits) in (0, sum(cases)):
        assert trend_test is None
        return
    assert trend_test is not None
    table = np.array([[n - x, x] for x, n in rows])
    expected = Table(table, shift_zeros=False).test_ordinal_association(
        row_scores=scores, col_scores=np.array([0, 1])
    )
    # The library uses the variance of the hypergeometric distribution, with N - 1 for N.
    total = sum(cases)
    assert trend_test.z * sqrt((total - 1) / total) == pytest.approx(expected.zscore)


@pytest.mark.parametrize(
    ("hits", "cases", "times"),
    [
        ([0, 1, 3], [3, 3, 4], None),
        ([2, 0, 1, 0], [2, 3, 2, 3], None),
        ([3, 2], [4, 5], None),
        ([4, 4, 1], [5, 4, 3], None),
        ([0, 1, 3], [3, 3, 4], [10, 11, 161]),
        ([2, 0, 1, 0], [2, 3, 2, 3], [0, 14, 21, 70]),
    ],
)
def test_exact_trend_counts_every_placement_of_the_hits(
    hits: list[int], cases: list[int], times: list[int] | None
) -> None:
    times = times or list(range(len(cases)))
    scores = [t for t, n in zip(times, cases, strict=True) for _ in range(n)]
    expected = sum(scores) * sum(hits) / sum(cases)
    observed = abs(sum(t * x for t, x in zip(times, hits, strict=True)) - expected)
    deviations = [abs(sum(scores[i] for i in chosen) - expected)
            for chosen in combinations(range(len(scores)), sum(hits))]  # fmt: skip
    trend_test = cochran_armitage(hits, cases, times)
    assert trend_test is not None
    extreme = sum(deviation >= observed - 1e-9 for deviation in deviations)
    assert trend_test.p_value == pytest.approx(extreme / len(deviations))


def test_exact_and_normal_trend_are_close() -> None:
    exact = cochran_armitage([8, 12, 22], [400, 400, 400])
    normal = cochran_armitage([80, 120, 220], [4000, 4000, 4000])
    assert exact is not None
    assert normal is not None
    assert (exact.method, normal.method) == ("exact", "normal")
    assert exact.p_value == pytest.approx(2 * norm.sf(abs(exact.z)), rel=0.3)


def test_no_variance_or_groups_give_no_trend() -> None:
    assert cochran_armitage([0, 0, 0], [5, 5, 5]) is None
    assert cochran_armitage([5, 5], [5, 5]) is None
    assert cochran_armitage([2, 0], [5, 0]) is None


@given(st.lists(st.integers(-4, 4), max_size=9))
@settings(max_examples=60, deadline=None)
def test_sign_test_counts_every_flip(differences: list[int]) -> None:
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    expected = sum(flipped >= abs(sum(differences)) for flipped in sums) / len(sums)
    assert sign_flips(differences) == pytest.approx(expected)


def test_sign_test_of_single_cases_is_mcnemars() -> None:
    for a, b in ((0, 0), (1, 0), (3, 9), (20, 35)):
        assert sign_flips([1] * a + [-1] * b + [0] * 4) == pytest.approx(mcnemar(a, b))
    many = [1] * 3000 + [-1] * 2800
    assert sign_flips(many * 2) == pytest.approx(mcnemar(6000, 5600), rel=0.05)


cases = st.lists(st.integers(-4, 4), min_size=1, max_size=6)


@given(cases, cases)
@settings(max_examples=60, deadline=None)
def test_permutation_test_counts_every_division(first: list[int], second: list[int]) -> None:
    values = first + second
    total = sum(values)
    n = len(values)
    size = len(first)
    distances = [
        abs(n * sum(values[i] for i in group) - size * total)
        for group in combinations(range(n), size)
    ]
    observed = abs(n * sum(first) - size * total)
    expected = sum(distance >= observed for distance in distances) / len(distances)
    p_value = group_permutations(np.array(first), np.array(second))
    assert p_value == pytest.approx(expected)


def test_permutation_test_of_many_cases_is_nearly_normal() -> None:
    random = np.random.default_rng(1)
    few = [random.binomial(1, rate, 300) for rate in (0.3, 0.4)]
    many = [np.concatenate([group, group]) for group in few]
    exact = group_permutations(few[0], few[1])
    normal = group_permutations(many[0], many[1])
    assert norm.isf(normal / 2) == pytest.approx(norm.isf(exact / 2) * sqrt(2), rel=0.05)


def test_paired_interval_is_that_computed_by_hand() -> None:
    # 6 both, 5 only the first, 1 only the second, 8 neither.
    low, high = newcombe_paired(6, 5, 1, 8) or (0, 0)
    l1, u1 = wilson(11, 20) or (0, 0)
    l2, u2 = wilson(7, 20) or (0, 0)
    phi = (6 * 8 - 5 * 1 - 10) / sqrt(11 * 9 * 7 * 13)
    p = 0.55
    q = 0.35
    down = (p - l1) ** 2 - 2 * phi * (p - l1) * (u2 - q) + (u2 - q) ** 2
    up = (u1 - p) ** 2 - 2 * phi * (u1 - p) * (q - l2) + (q - l2) ** 2
    assert (low, high) == pytest.approx((0.2 - sqrt(down), 0.2 + sqrt(up)))
    assert newcombe_paired(6, 1, 5, 8) == pytest.approx((-high, -low))
    assert newcombe_paired(0, 0, 0, 0) is None


@pytest.mark.parametrize(("gain", "least", "most"), [(0.0, 0, 25), (0.6, 470, 500)])
def test_judge_is_called_better_about_as_often_as_it_is(gain: float, least: int, most: int) -> None:
    """``scripts/simulate_teaching.py`` has more designs; this one has its 500 loops."""
    rng = np.random.default_rng((0, 30, 8))
    results = [claims(rng, traces=30, shared=0.8, gain=gain) for _ in range(500)]
    assert least <= sum(better for better, _ in results) <= most
    if not gain:
        assert sum(better_in_a_mode for _, better_in_a_mode in results) <= most
