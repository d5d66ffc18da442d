"""Confidence intervals of shares, of their differences and of their ratios, by formula.

A share is a count ``hits`` divided by a count ``n``. ``bootstrap`` and ``jackknife`` compute
intervals by resampling.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import atan, ceil, cos, exp, floor, log, pi, sin, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

from mast_tui.figures.bootstrap import LEVEL, Interval
from mast_tui.figures.record import Figure, FigureScope


def bisected(
    low: float, high: float, is_low: Callable[[float], bool], halvings: int
) -> tuple[float, float]:
    """Narrow the range around a limit by bisection, and return its ends.

    Args:
        low: The end on the low side; it may be the greater number.
        high: The other end.
        is_low: The test whether a number is on the low side of the limit.
        halvings: The number of times that the range is halved.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        if is_low(middle):
            low = middle
        else:
            high = middle
    return low, high


MARGIN: Final = 0.03
"""Half the width that an interval should have, when the missing labels are counted."""


_HALVINGS: Final = 80

_MANY_DEGREES: Final = 1_000
"""The degrees of freedom from which an expansion replaces the series of ``student_mass``.

The cost of the series grows with the degrees. From this number, the expansion has 11 correct
digits.
"""

LEAST_CASES: Final = 5
"""The fewest cases or clusters for an interval.

The interval of a difference also needs as many hits and as many misses in both shares together.
"""


def why_no_difference(hits: int, sizes: tuple[int, int]) -> str | None:
    """Return the reason why the difference of two shares has no interval; None if it has one.

    Args:
        hits: The number of hits of both shares together.
        sizes: The number of cases of each share.

    Returns:
        ``few_traces`` if a share has too few cases, ``rare_mode`` if there are so few hits or
        misses that every interval would contain 0.
    """
    if min(sizes) < LEAST_CASES:
        return "few_traces"
    misses = sum(sizes) - hits
    return "rare_mode" if min(hits, misses) < LEAST_CASES else None


Z: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""The z-value of the normal distribution for ``LEVEL``, two-sided."""


def wilson(hits: float, n: float) -> Interval | None:
    """Return the score interval of a share (Wilson 1927, JASA 22:209-212); None for n = 0.

    Args:
        hits: The number of hits.
        n: The number of cases; a fraction if they are weighted.

    Raises:
        ValueError: The hits are below 0 or above the number of cases.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is not a share")
    if n == 0:
        return None
    centre = (hits + Z * Z / 2) / (n + Z * Z)
    half_width = Z / (n + Z * Z) * sqrt(hits * (n - hits) / n + Z * Z / 4)
    # Subtraction alone leaves a rounding error at a share of 0 or 1.
    return (0.0 if hits == 0 else centre - half_width), (1.0 if hits == n else centre + half_width)


def wilson_of(share: float, n: float) -> Interval:
    """Return the score interval of a share (Wilson 1927).

    Args:
        share: The share, between 0 and 1.
        n: The effective number of independent cases; it may be a fraction.
    """
    centre = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half_width = Z / (1 + Z * Z / n) * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    # Subtraction alone leaves a rounding error at a share of 0 or 1.
    return (0.0 if share <= 0 else centre - half_width), (
        1.0 if share >= 1 else centre + half_width
    )


def wilson_with_student(share: float, n: float, degrees: int) -> Interval:
    """Return the score interval of a share, widened by Student's t.

    Wilson's formula uses the normal quantile, so the number of cases is lowered for the same width.

    Args:
        share: The share, between 0 and 1.
        n: The effective number of independent cases, estimated from a variance.
        degrees: The degrees of freedom of the variance, 1 or more.
    """
    return wilson_of(share, n * (Z / student_t(degrees)) ** 2)


@cache
def student_t(degrees: int) -> float:
    """Return the t of Student's distribution with ``LEVEL`` of its mass between -t and t.

    For many degrees, it is the expansion of Abramowitz and Stegun 1964, 26.7.5.

    Args:
        degrees: The degrees of freedom, 1 or more.

    Raises:
        ValueError: ``degrees`` is below 1.
    """
    if degrees < 1:
        raise ValueError(f"Student's t needs at least one degree of freedom, not {degrees}")
    if degrees >= _MANY_DEGREES:
        return _expanded_student_t(degrees)
    high = 1.0
    while student_mass(high, degrees) < LEVEL:
        high *= 2
    # The upper end, so that the interval is never too narrow.
    return bisected(0.0, high, lambda t: student_mass(t, degrees) < LEVEL, _HALVINGS)[1]


def _expanded_student_t(degrees: int) -> float:
    """Return the t of Student's distribution as a series in 1 / degrees around the normal z."""
    first = (Z**3 + Z) / 4
    second = (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96
    third = (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384
    return Z + first / degrees + second / degrees**2 + third / degrees**3


def student_mass(t: float, degrees: int) -> float:
    """Return the mass of Student's distribution between -t and t.

    The series is from Abramowitz and Stegun 1964, 26.7.3 (odd degrees) and 26.7.4 (even degrees).

    Args:
        t: The upper end of the range.
        degrees: The degrees of freedom, 1 or more.
    """
    angle = atan(t / sqrt(degrees))
    is_odd = degrees % 2 == 1
    term = cos(angle) if is_odd else 1.0
    series_sum = term if degrees > 1 else 0.0
    for factor in range(3 if is_odd else 2, degrees - 1, 2):
        term *= cos(angle) ** 2 * (factor - 1) / factor
        series_sum += term
    return 2 / pi * (angle + sin(angle) * series_sum) if is_odd else sin(angle) * series_sum


def share_of_all(hits: int, n: int, trace_count: int) -> Interval:
    """Return the interval of the share of hits among N traces, of which n were drawn at random.

    It is Wilson's for n(N - 1)/(N - n) cases, which have the variance of a sample without
    replacement (Cochran 1977, Sampling Techniques). It is limited to the shares that are possible:
    from no hit among the other traces to only hits.

    Args:
        hits: The number of hits among the drawn traces.
        n: The number of drawn traces.
        trace_count: The number N of all traces, greater than ``n``.
    """
    undrawn = trace_count - n
    low, high = wilson_of(hits / n, n * (trace_count - 1) / undrawn)
    return max(low, hits / trace_count), min(high, (hits + undrawn) / trace_count)


def cases_for(share: float, margin: float) -> int:
    """Return the fewest cases for a Wilson interval of a share that is ± ``margin`` wide or less.

    Args:
        share: The share, between 0 and 1.
        margin: Half of the requested width, above 0.
    """

    def is_too_wide(cases: int) -> bool:
        low, high = wilson_of(share, cases)
        return high - low > 2 * margin

    enough = 1
    while is_too_wide(enough):
        enough *= 2
    # Half as many cases are too few.
    return bisect_left(
        range(enough), True, lo=enough // 2 + 1, key=lambda cases: not is_too_wide(cases)
    )


def more_for(hits: float, n: float, margin: float, *, each: float = 1.0) -> int | None:
    """Return the number of further cases that narrow a Wilson interval to ± ``margin``.

    Args:
        hits: The number of hits.
        n: The number of cases.
        margin: Half of the requested width, above 0.
        each: The effective number of cases that each further case adds.

    Returns:
        The number if the share stays the same; None without cases.
    """
    return max(0, ceil((cases_for(hits / n, margin) - n) / each)) if n else None


def share(hits: int, n: int) -> Figure:
    """Return the share of hits with its Wilson interval; undefined (``no_overlap``) without cases.

    Args:
        hits: The number of hits.
        n: The number of cases.

    Raises:
        ValueError: The hits are below 0 or above the number of cases.
    """
    if n == 0:
        return Figure(reason="no_overlap")
    return Figure(value=hits / n, interval=wilson(hits, n))


def newcombe(hits: float, n: float, other_hits: float, other_n: float) -> Interval | None:
    """Return the interval of a difference of two independent shares.

    It is method 10 of Newcombe 1998, Statistics in Medicine 17:873-890.

    Args:
        hits: The hits of the first share.
        n: The cases of the first share.
        other_hits: The hits of the second share.
        other_n: The cases of the second share.

    Returns:
        Both ends of ``hits/n - other_hits/other_n``, between -1 and 1; None if a share has no case.
    """
    return _interval_of_difference(hits, n, other_hits, other_n, phi=0.0)


def newcombe_paired(
    hits_of_both: int, only_first: int, only_second: int, neither: int
) -> Interval | None:
    """Return the interval of a difference of two shares of the same cases.

    It is method 10 of Newcombe 1998, Statistics in Medicine 17:2635-2650: both Wilson intervals are
    joined by the correlation φ of the two answers, with φ corrected for continuity.

    Args:
        hits_of_both: The cases that are hits on both sides.
        only_first: The hits of the first side alone.
        only_second: The hits of the second side alone.
        neither: The cases that are hits on neither.

    Returns:
        Both ends of the first share less the second, between -1 and 1; None without cases.
    """
    n = hits_of_both + only_first + only_second + neither
    first_hits = hits_of_both + only_first
    second_hits = hits_of_both + only_second
    variance_product = first_hits * (n - first_hits) * second_hits * (n - second_hits)
    covariance = float(hits_of_both * neither - only_first * only_second)
    if covariance > 0:
        covariance = max(covariance - n / 2, 0)
    phi = covariance / sqrt(variance_product) if variance_product else 0.0
    return _interval_of_difference(first_hits, n, second_hits, n, phi)


def _interval_of_difference(
    hits: float, n: float, other_hits: float, other_n: float, phi: float
) -> Interval | None:
    """Return the interval of a difference of two shares by Newcombe's method 10.

    ``phi`` is the correlation of the shares. The result is None if a share has no case.
    """
    ends = wilson(hits, n)
    other_ends = wilson(other_hits, other_n)
    if ends is None or other_ends is None:
        return None

    def joint_distance(a: float, b: float) -> float:
        # Rounding may bring a square below 0.
        return sqrt(max(a * a - 2 * phi * a * b + b * b, 0.0))

    share = hits / n
    other_share = other_hits / other_n
    low, high = ends
    other_low, other_high = other_ends
    down = joint_distance(share - low, other_high - other_share)
    up = joint_distance(high - share, other_share - other_low)
    return share - other_share - down, share - other_share + up


def katz(hits: float, n: float, other_hits: float, other_n: float) -> Interval | None:
    """Return the interval of the ratio of two shares (Katz and others 1978, Biometrics 34:469-474).

    Args:
        hits: The hits of the first share.
        n: The cases of the first share.
        other_hits: The hits of the second share.
        other_n: The cases of the second share.

    Returns:
        Both ends of ``(hits/n) / (other_hits/other_n)``; None if a share has no hit.
    """
    if not hits or not other_hits:
        return None
    log_ratio = log(hits / n) - log(other_hits / other_n)
    half_width = Z * sqrt(1 / hits - 1 / n + 1 / other_hits - 1 / other_n)
    return exp(log_ratio - half_width), exp(log_ratio + half_width)


Effective = tuple[float, float]
"""The effective numbers of hits and of all cases: those of independent cases of equal weight."""


class WeightSums(NamedTuple):
    """The number of cases, the sum of their weights, and the sum of the squared weights."""

    n: int
    weight_sum: float
    square_sum: float


def effective_cases(hits: WeightSums, misses: WeightSums) -> Effective:
    """Return the number of cases of equal weight that would be as precise as the weighted cases.

    The effective number is p(1 − p)/Var p. p is the weighted share of hits, and Var p the variance
    of p as a ratio of sums of weights (Korn and Graubard 1998, Survey Methodology 24:193-201). If
    all cases are hits or all are misses, the number is (Σw)²/Σw² (Kish 1965, Survey Sampling).

    Args:
        hits: The number and the weights of the cases that are hits.
        misses: The number and the weights of all other cases.

    Returns:
        The effective number of hits, and the effective number of all cases.
    """
    n = hits.n + misses.n
    is_unweighted = (hits.weight_sum, misses.weight_sum) == (hits.n, misses.n)
    if is_unweighted:
        return hits.n, n
    weight_sum = hits.weight_sum + misses.weight_sum
    share = hits.weight_sum / weight_sum
    weighted_variance = hits.square_sum * (1 - share) ** 2 + misses.square_sum * share**2
    if hits.n and misses.n:
        cases = share * (1 - share) * weight_sum**2 / weighted_variance
    else:
        cases = weight_sum**2 / (hits.square_sum + misses.square_sum)
    cases = min(float(n), cases)
    return share * cases, cases


MOST_UNRESOLVED: Final = 0.02
"""The share of unresolved verdicts above which a share has bounds and no interval."""


def decisions_needed(unresolved: int, n: int) -> int:
    """Return the number of disagreements to resolve before a share has an interval.

    Args:
        unresolved: The number of unresolved disagreements.
        n: The number of other verdicts.
    """
    return max(0, unresolved - floor(MOST_UNRESOLVED * (n + unresolved)))


def share_figure(scope: FigureScope, statistic: str, count: int, n: int) -> Figure:
    """Return the share of ``count`` in ``n`` as a figure with its Wilson interval.

    Args:
        scope: The scope of the figure.
        statistic: The name of the statistic.
        count: The number of hits.
        n: The number of units.

    Raises:
        ValueError: There are more hits than units.
    """
    return replace(scope.figure(statistic, share(count, n), n=n), count=count)


class UnresolvedShare(NamedTuple):
    """The number of unresolved verdicts of a share, and the bounds of the share.

    The lower bound counts them as absent, the upper one as present.
    """

    trace_count: int
    bounds: Interval


def rate(
    scope: FigureScope,
    condition: str,
    count: int,
    n: int,
    effective: Effective | None = None,
    unresolved: UnresolvedShare | None = None,
) -> Figure:
    """Return the figure ``rate``: the share of hits with its Wilson interval.

    If more than 2 % of the traces are unresolved, the figure has bounds instead of an interval, and
    ``needs`` is the number of traces to resolve.

    Args:
        scope: The scope of the figure.
        condition: The name of the traces that the share is over, such as ``failed``.
        count: The number of hits.
        n: The number of traces.
        effective: The effective hits and traces; None if traces have no weights.
        unresolved: The number of unresolved traces and the bounds; None if there are none.

    Raises:
        ValueError: There are more hits than cases.
    """
    hits, cases = effective or (count, n)
    wilson_ends = wilson(hits, cases)
    unresolved_count = 0 if unresolved is None else unresolved.trace_count
    needed_count = decisions_needed(unresolved_count, n)
    reason = "unresolved" if needed_count else ""
    return scope.figure(
        "rate",
        Figure(
            value=None if wilson_ends is None else hits / cases,
            interval=None if needed_count else wilson_ends,
            bounds=unresolved.bounds if unresolved is not None and needed_count else None,
            count=count,
            n=n,
            unresolved=unresolved_count or None,
            reason="no_traces" if wilson_ends is None else reason,
            needs=needed_count or None,
        ),
        condition=condition,
    )
