"""Agreement on sets of modes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.agreement.counting import MISSING, Ratings, VerdictArray
from mast_tui.figures.agreement.sets import (
    Distance,
    Members,
    jaccard_distance,
    masi_distance,
    set_agreement,
    set_alphas,
)
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.record import Figure, FigureTable
from tests.figures.agreement.reference import krippendorff_alpha

LETTERS = "ABC"
PAIRS = ("|", "A|", "A|A", "A|B", "AB|A", "AB|AC", "ABC|ABC", "C|AC", "C|AC")


def verdicts_of(pairs: Sequence[str]) -> VerdictArray:
    """Return sets of letters of two annotators as annotators × traces × modes."""
    sides = zip(*(pair.split("|") for pair in pairs), strict=True)
    cells = [[[int(x in letters) for x in LETTERS] for letters in side] for side in sides]
    return np.array(cells, dtype=np.int8)


def test_alpha_of_sets_with_both_distances() -> None:
    figures = FigureTable(set_agreement(verdicts_of(PAIRS), Resampling(0)))
    assert figures.value("krippendorff_alpha_jaccard") == pytest.approx(0.315620, abs=5e-7)
    assert figures.value("krippendorff_alpha_masi") == pytest.approx(0.273081, abs=5e-7)
    assert figures.count("n") == len(PAIRS)


@pytest.mark.parametrize(
    ("sizes", "jaccard", "masi"),
    [
        ((0, 0, 0), 0, 0),
        ((0, 0, 2), 1, 1),
        ((2, 2, 2), 0, 0),
        ((1, 1, 2), 1 / 2, 1 - 1 / 2 * 2 / 3),
        ((1, 2, 2), 2 / 3, 1 - 1 / 3 * 1 / 3),
        ((0, 1, 1), 1, 1),
    ],
)
def test_distances_of_sets(sizes: tuple[int, int, int], jaccard: float, masi: float) -> None:
    shared, size, other = (np.array([float(n)]) for n in sizes)
    assert jaccard_distance(shared, size, other)[0] == pytest.approx(jaccard)
    assert masi_distance(shared, size, other)[0] == pytest.approx(masi)


def test_open_or_unsure_mode_leaves_no_set() -> None:
    verdicts = verdicts_of(PAIRS)
    gaps = np.concatenate((verdicts, verdicts[:, :2]), axis=1)
    gaps[0, -1, 2] = -1
    gaps[1, -2, 0] = -2
    assert set_agreement(gaps, Resampling(0)) == set_agreement(verdicts, Resampling(0))


def reasons(verdicts: np.ndarray) -> tuple[str | None, str | None]:
    figures = FigureTable(set_agreement(verdicts, Resampling(9)))
    jaccard = figures["krippendorff_alpha_jaccard"]
    return jaccard.undefined, figures["krippendorff_alpha_masi"].undefined


def test_undefined_agreement_on_sets_has_its_reason() -> None:
    assert reasons(verdicts_of(["A|A", "A|A"])) == ("no_variance", "no_variance")
    apart = verdicts_of(["A|B", "C|B"])
    apart[0, 0] = apart[1, 1] = MISSING
    assert reasons(apart) == ("no_overlap", "no_overlap")
    apart[1] = MISSING
    assert reasons(apart) == ("single_rater", "single_rater")
    assert reasons(apart[:1]) == ("single_rater", "single_rater")


def nominal(shared: np.ndarray, size: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the distance 1 of different sets."""
    return np.where((shared == size) & (shared == other), 0.0, 1.0)


@given(
    st.integers(2, 4).flatmap(
        lambda people: st.lists(
            st.lists(st.integers(MISSING, 3), min_size=people, max_size=people),
            min_size=2,
            max_size=20,
        )
    )
)
def test_alpha_with_nominal_distance_is_the_nominal_alpha(units: list[list[int]]) -> None:
    ratings: Ratings = np.array(units).T
    (ours,) = set_alphas(ratings, np.eye(4, dtype=bool), [nominal])
    theirs = krippendorff_alpha(ratings)
    if ((ratings != MISSING).sum(axis=0) > 1).sum() == 1:
        theirs = Figure(reason="single_trace")
    assert ours.undefined == theirs.undefined
    if theirs.value is not None:
        assert ours.value == pytest.approx(theirs.value, abs=1e-12)


def by_hand(sets: Ratings, members: Members, distance: Distance) -> float:
    """Return α of two raters without gaps from all distances."""
    drawn = members[sets.ravel()]
    sizes = drawn.sum(axis=1).astype(float)
    shared = (drawn[:, None] & drawn[None]).sum(axis=2).astype(float)
    distances = distance(shared, sizes[:, None], sizes[None])
    units = sets.shape[1]
    observed = np.diagonal(distances, units).mean()
    expected = distances.sum() / (2 * units * (2 * units - 1))
    return float(1 - observed / expected)


@pytest.mark.slow
def test_many_different_sets_have_the_exact_figure_and_its_interval() -> None:
    random = np.random.default_rng(5)
    members = np.unique(random.random((900, 12)) < 0.4, axis=0)
    first = random.permutation(len(members))
    sets = np.stack((first, np.where(random.random(len(first)) < 0.5, first, first[::-1])))
    (alpha,) = set_alphas(sets, members, [masi_distance], resampling=Resampling(300, 2))
    assert len(members) > 512
    assert alpha.value == pytest.approx(by_hand(sets, members, masi_distance), abs=1e-9)
    assert alpha.interval is not None
    # The figure is close to the share of equal pairs, whose standard error is known.
    error = 0.5 / np.sqrt(len(first))
    assert alpha.interval[1] - alpha.interval[0] == pytest.approx(2 * 1.96 * error, rel=0.3)
