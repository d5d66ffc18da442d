"""Agreement coefficients by their definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import (
    MISSING,
    Coefficient,
    Ratings,
    Undefined,
    mean_of_defined,
)


def raw_agreement(ratings: Ratings) -> Coefficient:
    """Return the mean share of agreeing pairs over units with two ratings or more."""
    reason = _no_pairs(ratings)
    if reason:
        return Coefficient(undefined=reason)
    return Coefficient(_observed(_counts(ratings)))


def specific_agreement(ratings: Ratings, category: int) -> Coefficient:
    """Return the share of agreeing pairs among those with a rating of the category.

    For two raters 2a / (2a + b + c); for more, the sums over all pairs of ratings of a unit
    (Cicchetti and Feinstein 1990; Fleiss 1981). With category 1 for 'present' this is the
    positive agreement, with 0 the negative.
    """
    reason = _no_pairs(ratings)
    if reason:
        return Coefficient(undefined=reason)
    given = ratings != MISSING
    others = given.sum(axis=0) - 1
    chosen = (ratings == category).sum(axis=0)
    possible = int((chosen * others).sum())
    if possible == 0:
        return Coefficient(undefined="no_variance")
    return Coefficient(int((chosen * (chosen - 1)).sum()) / possible)


def cohen_kappa(ratings: Ratings) -> Coefficient:
    """Return Cohen's κ (1960) of two raters over the units that both rated, unweighted."""
    reason = _undefined(ratings)
    if reason:
        return Coefficient(undefined=reason)
    first, second = ratings[:, (ratings != MISSING).all(axis=0)]
    n = len(first)
    agreed = int((first == second).sum())
    by_chance = sum(
        int((first == c).sum()) * int((second == c).sum()) for c in np.unique(first).tolist()
    )
    return Coefficient((n * agreed - by_chance) / (n * n - by_chance))


def cohen_kappa_pairs(ratings: Ratings) -> Coefficient:
    """Return the mean of Cohen's κ over the pairs for which it is defined (Light 1971)."""
    pairs = combinations(range(len(ratings)), 2)
    return mean_of_defined([cohen_kappa(ratings[list(pair)]) for pair in pairs])[0]


def fleiss_kappa(ratings: Ratings) -> Coefficient:
    """Return Fleiss' κ (1971), with missing ratings as in Gwet (2014, chapter 2).

    With nothing missing it is Fleiss' own, and with two raters Scott's π. A unit with a single
    rating counts for the categories' shares only.
    """
    reason = _undefined(ratings)
    if reason:
        return Coefficient(undefined=reason)
    counts = _counts(ratings)
    shares = _shares(counts)
    by_chance = float((shares**2).sum())
    return Coefficient((_observed(counts) - by_chance) / (1 - by_chance))


def complete_units(ratings: Ratings) -> Ratings:
    """Return the units that every rater rated."""
    complete: Ratings = ratings[:, (ratings != MISSING).all(axis=0)]
    return complete


def krippendorff_alpha(ratings: Ratings) -> Coefficient:
    """Return Krippendorff's nominal α with missing ratings (Krippendorff 2011).

    1 - D_o / D_e from the coincidences within units with two ratings or more.
    """
    reason = _undefined(ratings)
    if reason:
        return Coefficient(undefined=reason)
    counts = _counts(ratings)
    per_unit = counts.sum(axis=1)
    counts, per_unit = counts[per_unit > 1], per_unit[per_unit > 1]
    n = int(per_unit.sum())
    per_category = counts.sum(axis=0)
    matching = float(((counts * (counts - 1)).sum(axis=1) / (per_unit - 1)).sum())
    disagreement = n - matching
    expected = (n * n - int((per_category**2).sum())) / (n - 1)
    return Coefficient(1 - disagreement / expected)


def gwet_ac1(ratings: Ratings, categories: int | None = None) -> Coefficient:
    """Return Gwet's AC1 (2008; with missing ratings 2014, chapter 2) of any number of raters.

    ``categories`` is their number, by default that of those that occur. A unit with a single rating
    counts for the categories' shares only.
    """
    reason = _undefined(ratings)
    if reason:
        return Coefficient(undefined=reason)
    counts = _counts(ratings)
    occurring = counts.shape[1]
    shares = _shares(counts)
    by_chance = float((shares * (1 - shares)).sum()) / ((categories or occurring) - 1)
    return Coefficient((_observed(counts) - by_chance) / (1 - by_chance))


def _no_pairs(ratings: Ratings) -> Undefined | None:
    """Return the reason if no two ratings can be compared."""
    given = ratings != MISSING
    if len(ratings) < 2 or int(given.any(axis=1).sum()) == 1:
        return "single_rater"
    if not (given.sum(axis=0) > 1).any():
        return "no_overlap"
    return None


def _undefined(ratings: Ratings) -> Undefined | None:
    """Return the reason if nothing can be corrected for chance."""
    reason = _no_pairs(ratings)
    if reason:
        return reason
    given = ratings != MISSING
    shared = ratings[given & (given.sum(axis=0) > 1)]
    return "no_variance" if (shared == shared[0]).all() else None


def _counts(ratings: Ratings) -> NDArray[np.int_]:
    """Return the ratings of each rated unit × occurring category."""
    categories = np.unique(ratings[ratings != MISSING])
    counts: NDArray[np.int_] = (ratings[:, :, None] == categories).sum(axis=0)
    rated: NDArray[np.int_] = counts[counts.sum(axis=1) > 0]
    return rated


def _observed(counts: NDArray[np.int_]) -> float:
    """Return the mean share of agreeing pairs over the units with two ratings or more."""
    per_unit = counts.sum(axis=1)
    counts, per_unit = counts[per_unit > 1], per_unit[per_unit > 1]
    agreeing = (counts * (counts - 1)).sum(axis=1)
    return float((agreeing / (per_unit * (per_unit - 1))).mean())


def _shares(counts: NDArray[np.int_]) -> NDArray[np.float64]:
    """Return the mean over units of each category's share."""
    shares: NDArray[np.float64] = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares
