"""The coefficients against published values, against other libraries, and where undefined."""

from __future__ import annotations

import json
import math
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

CHANCE_CORRECTED = (cohen_kappa_pairs, fleiss_kappa, krippendorff_alpha, gwet_ac1)


def rows(*lines: str) -> Ratings:
    """Ratings from lines of categories, ``·`` for missing."""
    return np.array([[MISSING if c == "·" else int(c) for c in line.split()] for line in lines])


def from_counts(table: list[str]) -> Ratings:
    """Ratings whose counts per unit are these; who gave which is arbitrary."""
    units = [[c for c, n in enumerate(row) for _ in range(int(n))] for row in table]
    return np.array(units).T


def from_confusion(matrix: list[list[int]]) -> Ratings:
    """The ratings of two raters behind a confusion matrix."""
    pairs = [
        (a, b) for a, row in enumerate(matrix) for b, count in enumerate(row) for _ in range(count)
    ]
    return np.array(pairs).T


def two_by_two(both: int, only_a: int, only_b: int, neither: int) -> Ratings:
    """Present (1) and absent (0) of two raters."""
    return from_confusion([[neither, only_b], [only_a, both]])


def holds(coefficient: Coefficient, printed: str) -> bool:
    """Whether the value is the printed one to half a unit of its last digit."""
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


def test_krippendorff_2011() -> None:
    assert holds(krippendorff_alpha(KRIPPENDORFF), "0.743421")
    assert holds(gwet_ac1(KRIPPENDORFF), "0.77544")
    assert holds(fleiss_kappa(KRIPPENDORFF), "0.76117")
    assert holds(krippendorff_alpha(BINARY), "0.095238")


def test_three_raters_with_much_missing() -> None:
    assert holds(krippendorff_alpha(THREE_BY_FIFTEEN), "0.691358")


def test_fleiss_1971() -> None:
    assert holds(fleiss_kappa(FLEISS), "0.430245")
    assert holds(krippendorff_alpha(FLEISS), "0.433410")
    assert holds(gwet_ac1(FLEISS), "0.447885")


def test_cohen_1960() -> None:
    assert holds(cohen_kappa(COHEN), "0.491525")


@pytest.mark.parametrize(
    ("cells", "kappa"),
    [
        ((20, 5, 10, 15), "0.4"),
        ((45, 15, 25, 15), "0.130435"),
        ((25, 35, 5, 35), "0.259259"),
        ((40, 9, 6, 45), "0.699519"),
        ((80, 10, 5, 5), "0.318182"),
        ((118, 5, 2, 0), "-0.023392"),
        ((6, 13, 33, 106), "0.0539"),
    ],
)
def test_kappa_of_two_by_two_tables(cells: tuple[int, int, int, int], kappa: str) -> None:
    assert holds(cohen_kappa(two_by_two(*cells)), kappa)


@pytest.mark.parametrize(
    ("cells", "ac1"),
    [
        ((40, 9, 6, 45), "0.700748"),
        ((80, 10, 5, 5), "0.808"),
        ((118, 5, 2, 0), "0.940776"),
        ((6, 13, 33, 106), "0.584"),
    ],
)
def test_ac1_of_two_by_two_tables(cells: tuple[int, int, int, int], ac1: str) -> None:
    assert holds(gwet_ac1(two_by_two(*cells), categories=2), ac1)


def test_alpha_and_raw_of_two_by_two_tables() -> None:
    assert holds(krippendorff_alpha(two_by_two(118, 5, 2, 0)), "-0.024691")
    assert holds(raw_agreement(two_by_two(6, 13, 33, 106)), "0.709")


def test_specific_agreement_is_the_textbook_formula() -> None:
    table = two_by_two(80, 10, 5, 5)
    assert specific_agreement(table, 1).value == pytest.approx(160 / 175)
    assert specific_agreement(table, 0).value == pytest.approx(10 / 25)


def test_specific_agreement_of_three_raters_counts_pairs() -> None:
    ratings = rows("1 1 0", "1 0 0", "1 0 ·")
    # Pairs within units: 111 gives 3 agreeing on present; 100 gives 1 agreeing on absent and 2
    # mixed; 00 gives 1 agreeing on absent.
    assert specific_agreement(ratings, 1).value == pytest.approx(2 * 3 / (2 * 3 + 2))
    assert specific_agreement(ratings, 0).value == pytest.approx(2 * 2 / (2 * 2 + 2))


# Small tables meet the degenerate cases often, and large ones the usual.
def tables(raters: tuple[int, int], missing: bool) -> st.SearchStrategy[Ratings]:
    lowest = MISSING if missing else 0

    def shape(sizes: tuple[int, int, int]) -> st.SearchStrategy[Ratings]:
        people, units, highest = sizes
        cell = st.integers(lowest, highest)
        row = st.lists(cell, min_size=units, max_size=units)
        return st.lists(row, min_size=people, max_size=people).map(np.array)

    return st.tuples(st.integers(*raters), st.integers(1, 30), st.integers(1, 4)).flatmap(shape)


@given(tables((2, 2), missing=True))
def test_kappa_is_that_of_scikit_learn_and_statsmodels(ratings: Ratings) -> None:
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
def test_fleiss_is_that_of_statsmodels(ratings: Ratings) -> None:
    ours = fleiss_kappa(ratings)
    assume(ours.value is not None)
    counts, _ = inter_rater.aggregate_raters(ratings.T)
    assert ours.value == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-9)


@given(tables((2, 5), missing=True))
def test_alpha_is_that_of_krippendorff(ratings: Ratings) -> None:
    ours = krippendorff_alpha(ratings)
    assume(ours.value is not None)
    with_nan = np.where(ratings == MISSING, np.nan, ratings)
    theirs = krippendorff.alpha(with_nan, level_of_measurement="nominal")
    assert ours.value == pytest.approx(theirs, abs=1e-9)


@given(tables((1, 5), missing=True))
def test_no_table_yields_nan_or_leaves_the_range(ratings: Ratings) -> None:
    figures = [f(ratings) for f in CHANCE_CORRECTED]
    figures += [raw_agreement(ratings), specific_agreement(ratings, 1)]
    for figure in figures:
        json.dumps(figure.to_json(), allow_nan=False)
        assert figure.value is None or (math.isfinite(figure.value) and figure.value <= 1 + 1e-9)


@given(tables((2, 4), missing=True))
def test_coefficients_do_not_depend_on_the_order_of_raters_or_units(ratings: Ratings) -> None:
    turned = ratings[::-1, ::-1]
    for coefficient in (*CHANCE_CORRECTED, raw_agreement):
        ours, theirs = coefficient(ratings), coefficient(turned)
        assert ours.undefined == theirs.undefined
        if ours.value is not None:
            assert ours.value == pytest.approx(theirs.value, abs=1e-9)


@pytest.mark.parametrize("coefficient", CHANCE_CORRECTED)
@pytest.mark.parametrize("category", [0, 1])
def test_all_the_same_is_no_variance_while_raw_agreement_shows(
    coefficient: Callable[[Ratings], Coefficient], category: int
) -> None:
    ratings = np.full((2, 12), category)
    assert coefficient(ratings) == Coefficient(undefined="no_variance")
    assert raw_agreement(ratings).value == 1.0


def test_specific_agreement_is_undefined_only_for_a_category_nobody_gave() -> None:
    all_absent = np.zeros((2, 5), dtype=int)
    assert specific_agreement(all_absent, 1) == Coefficient(undefined="no_variance")
    assert specific_agreement(all_absent, 0).value == 1.0


def test_two_constant_raters_who_differ_disagree_by_value() -> None:
    ratings = np.array([[0, 0, 0], [1, 1, 1]])
    assert cohen_kappa(ratings).value == 0.0
    assert raw_agreement(ratings).value == 0.0


def test_variance_in_unshared_units_does_not_count() -> None:
    ratings = rows("0 0 0 1", "0 0 0 ·")
    for coefficient in CHANCE_CORRECTED:
        assert coefficient(ratings).undefined == "no_variance"


@pytest.mark.parametrize("coefficient", [*CHANCE_CORRECTED, raw_agreement])
def test_no_shared_unit_and_single_raters_are_told_apart(
    coefficient: Callable[[Ratings], Coefficient],
) -> None:
    apart, alone, one_silent = rows("0 1 · ·", "· · 0 1"), rows("0 1 0"), rows("0 1 0", "· · ·")
    assert coefficient(apart) == Coefficient(undefined="no_overlap")
    assert coefficient(alone) == Coefficient(undefined="single_rater")
    assert coefficient(one_silent) == Coefficient(undefined="single_rater")
    assert coefficient(np.empty((2, 0), dtype=int)) == Coefficient(undefined="no_overlap")


def test_mean_over_pairs_leaves_out_the_undefined() -> None:
    # a|b is defined; c shares no unit with a or b.
    ratings = rows("0 1 1 0 ·", "0 1 0 0 ·", "· · · · 1")
    assert cohen_kappa_pairs(ratings) == cohen_kappa(ratings[:2])


def test_mean_of_nothing_defined_says_the_reason_nearest_to_a_figure() -> None:
    reasons = [Coefficient(undefined="single_rater"), Coefficient(undefined="no_variance")]
    assert mean_of_defined(reasons) == (Coefficient(undefined="no_variance"), 0)
    assert mean_of_defined([*reasons, Coefficient(0.5)]) == (Coefficient(0.5), 1)


def test_a_coefficient_has_a_value_or_a_reason() -> None:
    with pytest.raises(ValueError, match="either"):
        Coefficient()
    with pytest.raises(ValueError, match="either"):
        Coefficient(0.5, undefined="no_variance")


def test_ratings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="two raters"):
        cohen_kappa(np.zeros((3, 4), dtype=int))
    with pytest.raises(ValueError, match="dimensions"):
        raw_agreement(np.zeros(4, dtype=int))
    with pytest.raises(ValueError, match="categories occur"):
        gwet_ac1(rows("0 1 2", "0 1 1"), categories=2)
