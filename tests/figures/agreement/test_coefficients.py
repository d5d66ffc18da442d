"""Coefficients beside published values and other libraries, and undefined ones."""

from __future__ import annotations

from collections.abc import Callable

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from mast_tui.figures.agreement.coefficients import MISSING, Coefficient, Ratings, mean_of_defined
from tests.figures.agreement.reference import (
    cohen_kappa,
    cohen_kappa_pairs,
    complete_units,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    raw_agreement,
    specific_agreement,
)


def rows(*lines: str) -> Ratings:
    """Return ratings from lines of categories, ``·`` for missing."""
    return np.array([[MISSING if c == "·" else int(c) for c in line.split()] for line in lines])


def from_counts(table: list[str]) -> Ratings:
    """Return ratings with these counts per unit, in arbitrary order of raters."""
    units = [[c for c, n in enumerate(row) for _ in range(int(n))] for row in table]
    return np.array(units).T


def from_confusion(matrix: list[list[int]]) -> Ratings:
    """Return the ratings of two raters from a confusion matrix."""
    pairs = [
        (a, b) for a, row in enumerate(matrix) for b, count in enumerate(row) for _ in range(count)
    ]
    return np.array(pairs).T


def two_by_two(both: int, only_a: int, only_b: int, neither: int) -> Ratings:
    """Return the ratings of two raters, 1 for present and 0 for absent."""
    return from_confusion([[neither, only_b], [only_a, both]])


def holds(coefficient: Coefficient, printed: str) -> bool:
    """Return whether the value is the printed one to half a unit of its last digit."""
    assert coefficient.value is not None
    digits = len(printed.partition(".")[2])
    half_a_unit: float = 0.5 * 10**-digits
    return abs(coefficient.value - float(printed)) <= half_a_unit


KRIPPENDORFF = rows(
    "1 2 3 3 2 1 4 1 2 · · ·",
    "1 2 3 3 2 2 4 1 2 5 · 3",
    "· 3 3 3 2 3 4 2 2 5 1 ·",
    "1 2 3 3 2 4 4 1 2 5 1 ·",
)
BINARY = rows("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0")
THREE_BY_FIFTEEN = rows(
    "· · · · · 3 4 1 2 1 1 3 3 · 3",
    "1 · 2 1 3 3 4 3 · · · · · · ·",
    "· · 2 1 3 4 4 · 2 1 1 3 3 · 4",
)
FLEISS_COUNTS = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""
FLEISS = from_counts(FLEISS_COUNTS.split())
COHEN = from_confusion([[88, 14, 18], [10, 40, 10], [2, 6, 12]])


OF_TWO: dict[tuple[int, int, int, int], dict[Callable[..., Coefficient], str]] = {
    (20, 5, 10, 15): {cohen_kappa: "0.4"},
    (45, 15, 25, 15): {cohen_kappa: "0.130435"},
    (25, 35, 5, 35): {cohen_kappa: "0.259259"},
    (40, 9, 6, 45): {cohen_kappa: "0.699519", gwet_ac1: "0.700748"},
    (80, 10, 5, 5): {cohen_kappa: "0.318182", gwet_ac1: "0.808"},
    (118, 5, 2, 0): {
        cohen_kappa: "-0.023392", gwet_ac1: "0.940776", krippendorff_alpha: "-0.024691"
    },
    (6, 13, 33, 106): {cohen_kappa: "0.0539", gwet_ac1: "0.584", raw_agreement: "0.709"},
}  # fmt: skip
PUBLISHED: list[tuple[Ratings, dict[Callable[..., Coefficient], str]]] = [
    (KRIPPENDORFF, {
        krippendorff_alpha: "0.743421", gwet_ac1: "0.77544", fleiss_kappa: "0.76117"
    }),
    (BINARY, {krippendorff_alpha: "0.095238"}),
    (THREE_BY_FIFTEEN, {krippendorff_alpha: "0.691358"}),
    (FLEISS, {fleiss_kappa: "0.430245", krippendorff_alpha: "0.433410", gwet_ac1: "0.447885"}),
    (COHEN, {cohen_kappa: "0.491525"}),
    *((two_by_two(*cells), figures) for cells, figures in OF_TWO.items()),
]  # fmt: skip


@pytest.mark.parametrize(("ratings", "figures"), PUBLISHED)
def test_published_values(ratings: Ratings, figures: dict[Callable[..., Coefficient], str]) -> None:
    for figure, printed in figures.items():
        assert holds(figure(ratings), printed), figure


def test_specific_agreement_counts_pairs() -> None:
    table = two_by_two(80, 10, 5, 5)
    assert specific_agreement(table, 1).value == pytest.approx(160 / 175)
    assert specific_agreement(table, 0).value == pytest.approx(10 / 25)
    # 111 gives 3 pairs on present; 100 one on absent and 2 mixed; 00 one on absent.
    ratings = rows("1 1 0", "1 0 0", "1 0 ·")
    assert specific_agreement(ratings, 1).value == pytest.approx(2 * 3 / (2 * 3 + 2))
    assert specific_agreement(ratings, 0).value == pytest.approx(2 * 2 / (2 * 2 + 2))


# Small tables meet the degenerate cases often, and large ones the usual.
def tables(raters: tuple[int, int], missing: bool) -> st.SearchStrategy[Ratings]:
    """Draw annotators × units of ratings, with missing ones if requested."""
    lowest = MISSING if missing else 0

    def shape(sizes: tuple[int, int, int]) -> st.SearchStrategy[Ratings]:
        people, units, highest = sizes
        cell = st.integers(lowest, highest)
        row = st.lists(cell, min_size=units, max_size=units)
        return st.lists(row, min_size=people, max_size=people).map(np.array)

    return st.tuples(st.integers(*raters), st.integers(1, 30), st.integers(1, 4)).flatmap(shape)


@given(tables((2, 2), missing=True))
def test_cohens_kappa_is_that_of_scikit_learn_and_statsmodels(ratings: Ratings) -> None:
    ours = cohen_kappa(ratings)
    assume(ours.value is not None)
    first, second = complete_units(ratings).tolist()
    assert ours.value == pytest.approx(cohen_kappa_score(first, second), abs=1e-9)
    size = int(ratings.max()) + 1
    confusion = np.zeros((size, size))
    np.add.at(confusion, (first, second), 1)
    theirs = inter_rater.cohens_kappa(confusion, return_results=False)
    assert ours.value == pytest.approx(theirs, abs=1e-9)


@given(tables((2, 6), missing=False))
def test_fleiss_kappa_is_that_of_statsmodels(ratings: Ratings) -> None:
    ours = fleiss_kappa(ratings)
    assume(ours.value is not None)
    counts, _ = inter_rater.aggregate_raters(ratings.T)
    assert ours.value == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-9)


@given(tables((2, 5), missing=True))
def test_alpha_is_that_of_the_library_krippendorff(ratings: Ratings) -> None:
    ours = krippendorff_alpha(ratings)
    assume(ours.value is not None)
    with_nan = np.where(ratings == MISSING, np.nan, ratings)
    theirs = krippendorff.alpha(with_nan, level_of_measurement="nominal")
    assert ours.value == pytest.approx(theirs, abs=1e-9)


def test_constant_raters_who_differ_have_kappa_0() -> None:
    ratings = np.array([[0, 0, 0], [1, 1, 1]])
    assert cohen_kappa(ratings).value == raw_agreement(ratings).value == 0.0


def test_means_leave_out_undefined_coefficients() -> None:
    # a|b is defined; c shares no unit with a or b.
    ratings = rows("0 1 1 0 ·", "0 1 0 0 ·", "· · · · 1")
    assert cohen_kappa_pairs(ratings) == cohen_kappa(ratings[:2])
    reasons = [Coefficient(undefined="single_rater"), Coefficient(undefined="no_variance")]
    assert mean_of_defined(reasons) == (Coefficient(undefined="no_variance"), 0)
    assert mean_of_defined([*reasons, Coefficient(0.5)]) == (Coefficient(0.5), 1)


def test_coefficient_has_either_a_value_or_a_reason() -> None:
    with pytest.raises(ValueError, match="either"):
        Coefficient()
    with pytest.raises(ValueError, match="either"):
        Coefficient(0.5, undefined="no_variance")
