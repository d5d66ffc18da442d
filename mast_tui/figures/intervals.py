"""Shares with their Wilson intervals, and the exact test of McNemar."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from mast_tui.figures.agreement.coefficients import Coefficient
from mast_tui.figures.bootstrap import LEVEL, Interval


def wilson(hits: int, n: int, *, level: float = LEVEL) -> Interval | None:
    """The score interval of a share ``hits`` / ``n`` (Wilson 1927), None for n = 0.

    Raises ``ValueError`` where there are more hits than cases, or fewer than none.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no share")
    if n == 0:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(hits * (n - hits) / n + z * z / 4)
    # At either end the interval ends there; subtraction alone leaves a rounding error.
    low = 0.0 if hits == 0 else middle - half
    high = 1.0 if hits == n else middle + half
    return low, high


def share(hits: int, n: int, *, level: float = LEVEL) -> Coefficient:
    """A share with its Wilson interval; ``no_overlap`` of nothing."""
    if n == 0:
        return Coefficient(undefined="no_overlap")
    return Coefficient(hits / n, ci=wilson(hits, n, level=level))


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p of McNemar's test: whether one says 'present' more often.

    ``only_first`` and ``only_second`` count the units that one alone calls present. Of a fair coin
    thrown as often, twice the chance of so few or fewer of the rarer (1 where that is more).
    """
    n = only_first + only_second
    term = total = 1
    for k in range(min(only_first, only_second)):
        term = term * (n - k) // (k + 1)
        total += term
    return min(1.0, 2 * total / 2**n) if n else 1.0
