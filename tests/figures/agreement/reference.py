"""Agreement on present (1) and absent (0) by definition, and α by the library ``krippendorff``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import krippendorff
import numpy as np

from mast_tui.figures.agreement.counting import MISSING, Ratings
from mast_tui.figures.record import Figure, Undefined, mean_of_defined


def raw_agreement(ratings: Ratings) -> Figure:
    """Return the mean share of agreeing pairs over units with two ratings or more."""
    reason = _no_pairs(ratings)
    return Figure(reason=reason) if reason else Figure(value=_observed(_units(ratings)))


def specific_agreement(ratings: Ratings, category: int) -> Figure:
    """Return the share of agreeing ratings among all ratings of a category that have a partner.

    For two raters 2a / (2a + b + c); for more, the sums over all pairs of ratings of a unit
    (Cicchetti and Feinstein 1990; Fleiss 1981).
    """
    reason = _no_pairs(ratings)
    if reason:
        return Figure(reason=reason)
    counts = [(unit.count(category), len(unit) - 1) for unit in _units(ratings)]
    possible = sum(count * partners for count, partners in counts)
    if possible == 0:
        return Figure(reason="no_variance")
    return Figure(value=sum(count * (count - 1) for count, _ in counts) / possible)


def cohen_kappa(ratings: Ratings) -> Figure:
    """Return Cohen's κ (1960) of two raters over the units that both rated."""
    reason = _undefined(ratings)
    if reason:
        return Figure(reason=reason)
    first, second = complete_units(ratings)
    first_rate = first.mean()
    second_rate = second.mean()
    by_chance = first_rate * second_rate + (1 - first_rate) * (1 - second_rate)
    return _over_chance(float((first == second).mean()), by_chance)


def cohen_kappa_pairs(ratings: Ratings) -> Figure:
    """Return the mean of Cohen's κ over the pairs for which it is defined (Light 1971)."""
    pairs = combinations(range(len(ratings)), 2)
    return mean_of_defined([cohen_kappa(ratings[list(pair)]) for pair in pairs])[0]


def fleiss_kappa(ratings: Ratings) -> Figure:
    """Return Fleiss' κ (1971)."""
    reason = _undefined(ratings)
    if reason:
        return Figure(reason=reason)
    units = _units(ratings)
    present = _present(units)
    return _over_chance(_observed(units), present**2 + (1 - present) ** 2)


def gwet_ac1(ratings: Ratings) -> Figure:
    """Return Gwet's AC1 (2008; with missing ratings 2014, chapter 2)."""
    reason = _undefined(ratings)
    if reason:
        return Figure(reason=reason)
    units = _units(ratings)
    present = _present(units)
    return _over_chance(_observed(units), 2 * present * (1 - present))


def krippendorff_alpha(ratings: Ratings) -> Figure:
    """Return Krippendorff's nominal α of any categories."""
    reason = _undefined(ratings)
    if reason:
        return Figure(reason=reason)
    with_nan = np.where(ratings == MISSING, np.nan, ratings)
    return Figure(value=float(krippendorff.alpha(with_nan, level_of_measurement="nominal")))


def complete_units(ratings: Ratings) -> Ratings:
    complete: Ratings = ratings[:, (ratings != MISSING).all(axis=0)]
    return complete


def _no_pairs(ratings: Ratings) -> Undefined | None:
    """Return the reason if no two ratings can be compared."""
    is_rated = ratings != MISSING
    if len(ratings) < 2 or int(is_rated.any(axis=1).sum()) == 1:
        return "single_rater"
    if not (is_rated.sum(axis=0) > 1).any():
        return "no_overlap"
    return None


def _undefined(ratings: Ratings) -> Undefined | None:
    """Return the reason if nothing can be corrected for chance."""
    reason = _no_pairs(ratings)
    if reason:
        return reason
    categories = {rating for unit in _units(ratings) if len(unit) > 1 for rating in unit}
    return "no_variance" if len(categories) == 1 else None


def _units(ratings: Ratings) -> list[list[int]]:
    """Return the ratings of each rated unit."""
    units = [column[column != MISSING].tolist() for column in ratings.T]
    return [unit for unit in units if unit]


def _observed(units: Sequence[Sequence[int]]) -> float:
    """Return the mean share of agreeing pairs over the units with two ratings or more."""
    shares = [
        np.mean([first == second for first, second in combinations(unit, 2)])
        for unit in units
        if len(unit) > 1
    ]
    return float(np.mean(shares))


def _present(units: Sequence[Sequence[int]]) -> float:
    """Return the mean over units of the share of present."""
    return float(np.mean([np.mean(unit) for unit in units]))


def _over_chance(observed: float, by_chance: float) -> Figure:
    return Figure(value=(observed - by_chance) / (1 - by_chance))
