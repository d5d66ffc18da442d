"""Shares and their differences with intervals; a figure that cannot be had has a reason instead."""

from __future__ import annotations

from math import exp, log, sqrt
from statistics import NormalDist
from typing import Final, NotRequired, TypedDict

LEVEL: Final = 0.95

Interval = tuple[float, float]


class RateJson(TypedDict):
    """``count`` of ``n`` traces, as a share between 0 and 1 with its Wilson interval.

    Of no traces there is no share: ``undefined`` says ``no_traces``.
    """

    count: int
    n: int
    rate: float | None
    ci: list[float] | None
    undefined: NotRequired[str]


def rate(count: int, n: int) -> RateJson:
    """The share ``count`` / ``n``."""
    ends = wilson(count, n)
    if ends is None:
        return {"count": count, "n": n, "rate": None, "ci": None, "undefined": "no_traces"}
    return {"count": count, "n": n, "rate": count / n, "ci": list(ends)}


def wilson(count: int, n: int) -> Interval | None:
    """The score interval of a share (Wilson 1927), None of nothing.

    Raises ``ValueError`` for more hits than cases, or fewer than none.
    """
    if not 0 <= count <= n:
        raise ValueError(f"{count} of {n} is no share")
    if n == 0:
        return None
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    middle = (count + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(count * (n - count) / n + z * z / 4)
    # At either end the interval ends there; subtraction alone leaves a rounding error.
    return (0.0 if count == 0 else middle - half), (1.0 if count == n else middle + half)


def newcombe(count: int, n: int, other: int, of: int) -> Interval | None:
    """The interval of ``count/n - other/of`` from both Wilson intervals (Newcombe 1998, no. 10)."""
    ends, ends_of_other = wilson(count, n), wilson(other, of)
    if ends is None or ends_of_other is None:
        return None
    p, q = count / n, other / of
    down = sqrt((p - ends[0]) ** 2 + (ends_of_other[1] - q) ** 2)
    up = sqrt((ends[1] - p) ** 2 + (q - ends_of_other[0]) ** 2)
    return p - q - down, p - q + up


def katz(count: int, n: int, other: int, of: int) -> Interval | None:
    """The interval of the ratio ``(count/n) / (other/of)`` by its logarithm (Katz 1978).

    None where either is seen nowhere: the logarithm has no spread then.
    """
    if not count or not other:
        return None
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    middle = log(count / n) - log(other / of)
    half = z * sqrt(1 / count - 1 / n + 1 / other - 1 / of)
    return exp(middle - half), exp(middle + half)
