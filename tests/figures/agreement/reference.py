"""Agreement on present (1) and absent (0) by definition, and α by the library ``krippendorff``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import krippendorff
import numpy as np

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
    return Coefficient(undefined=reason) if reason else Coefficient(_observed(_units(ratings)))


def specific_agreement(ratings: Ratings, category: int) -> Coefficient:
    """Return the share of agreeing ratings among all ratings of a category that have a partner.

    For two raters 2a / (2a + b + c); for more, the sums over all pairs of ratings of a unit
    (Cicchetti and Feinstein 1990; Fleiss 1981).
    """
    reason = _no_pairs(ratings)
    if reason:
        return Coefficient(undefined=reason)
    chosen = [(unit.count(category), len(unit) - 1) for unit in _units(ratings)]
    possible = sum(count * others for count, others in chosen)
    if possible == 0:
        return Coefficient(undefined="no_variance")
    return Coefficient(sum(count * (count - 1) for count, _ in chosen) / possible)


def cohen_kappa(ratings: Ratings) -> Coefficient:
    """Return Cohen's κ (1960) of two raters over the units that both rated."""
    reason = _undefined(ratings)
    if reason:
        return Coefficient(undefined=reason)
    first, second = complete_units(ratings)
    ours, theirs = first.mean(), second.mean()
    return _over_chance(float((first == second).mean()), ours * theirs + (1 - ours) * (1 - theirs))


def cohen_kappa_pairs(ratings: Ratings) -> Coefficient:
    """Return the mean of Cohen's κ over the pairs for which it is defined (Light 1971)."""
    pairs = combinations(range(len(ratings)), 2)
    return mean_of_defined([cohen_kappa(ratings[list(pair)]) for pair in pairs])[0]


def fleiss_kappa(ratings: Ratings) -> Coefficient:
    """Return Fleiss' κ (1971)."""
    reason = _undefined(ratings)
    if reason:
        return Coefficient(undefined=reason)
    units = _units(ratings)
    present = _present(units)
    return _over_chance(_observed(units), present**2 + (1 - present) ** 2)


def gwet_ac1(ratings: Ratings) -> Coefficient:
    """Return Gwet's AC1 (2008; with missing ratings 2014, chapter 2)."""
    reason = _undefined(ratings)
    if reason:
        return Coefficient(undefined=reason)
    units = _units(ratings)
    present = _present(units)
    return _over_chance(_observed(units), 2 * present * (1 - present))


def krippendorff_alpha(ratings: Ratings) -> Coefficient:
    """Return Krippendorff's nominal α of any categories."""
    reason = _undefined(ratings)
    if reason:
        return Coefficient(undefined=reason)
    with_nan = np.where(ratings == MISSING, np.nan, ratings)
    return Coefficient(float(krippendorff.alpha(with_nan, level_of_measurement="nominal")))


def complete_units(ratings: Ratings) -> Ratings:
    """Return the units that every rater rated."""
    complete: Ratings = ratings[:, (ratings != MISSING).all(axis=0)]
    return complete


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
    said = {rating for unit in _units(ratings) if len(unit) > 1 for rating in unit}
    return "no_variance" if len(said) == 1 else None


def _units(ratings: Ratings) -> list[list[int]]:
    """Return the ratings of each rated unit."""
    units = [column[column != MISSING].tolist() for column in ratings.T]
    return [unit for unit in units if unit]


def _observed(units: Sequence[Sequence[int]]) -> float:
    """Return the mean share of agreeing pairs over the units with two ratings or more."""
    shares = [
        np.mean([one == other for one, other in combinations(unit, 2)])
        for unit in units
        if len(unit) > 1
    ]
    return float(np.mean(shares))


def _present(units: Sequence[Sequence[int]]) -> float:
    """Return the mean over units of the share of present."""
    return float(np.mean([np.mean(unit) for unit in units]))


def _over_chance(observed: float, by_chance: float) -> Coefficient:
    return Coefficient((observed - by_chance) / (1 - by_chance))
