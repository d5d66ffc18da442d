"""Confidence intervals for few traces: Student's t over a figure with each trace left out in turn.

The percentiles of resamples are too narrow where there are few traces: at 5 the interval of pooled
κ holds the truth in four studies of five. The jackknife (Tukey 1958) with Student's t, on a scale
without ends, holds from three traces on; ``scripts/simulate_study.py designs`` shows where.
"""

from __future__ import annotations

from functools import cache
from math import atan, ceil, cos, exp, log, pi, sin, sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mast_tui.figures.agreement.coefficients import Coefficient, CoefficientJson, Withheld
from mast_tui.figures.bootstrap import (
    LEAST_DEFINED,
    LEVEL,
    Interval,
    interval,
    ratio,
    resampled_sums,
)

FEWEST: Final = 3
"""Traces below which no interval holds."""

MANY: Final = 300
"""Traces from which on the percentiles of resamples hold what they say."""

SHARES: Final = frozenset(
    {
        *("raw_agreement", "positive_agreement", "negative_agreement"),
        *("true_positive_rate", "true_negative_rate", "precision", "f1"),
    }
)
"""The figures between 0 and 1; the others go down to -1."""

_STEADY: Final = frozenset(
    {"raw_agreement", "negative_agreement", "true_negative_rate", "gwet_ac1"}
)
"""The figures that a rare answer does not pull far off."""

# From how much on an interval holds, by simulation.
_LEAST_UNITS: Final = 20
_LEAST_UNITS_OF_KAPPA: Final = 16
_LEAST_SAID: Final = 8
_LEAST_TRACES_OF_STEADY_MEAN: Final = 10
_LEAST_TRACES_OF_MEAN: Final = 25
"""For each rating that a unit has: with more of them the spread is less, and not the bias."""

_ALIKE: Final = 1e-12
_HALVINGS: Final = 80


def scale_minimum(name: str) -> float:
    """Where the scale of a figure begins, by its name in the report."""
    return 0.0 if name in SHARES else -1.0


def why_no_interval(name: str, traces: int, units: int, said: float) -> tuple[Withheld, int] | None:
    """Why no interval of a figure of one table would hold, with how many it takes.

    Args:
        name: The figure's name in the report.
        traces: In how many traces two or more rated a unit.
        units: How many units (traces × modes) they rated.
        said: How often each annotator of a unit gave the rarer answer, on average.

    Returns:
        None where an interval holds.
    """
    if traces < FEWEST:
        return "few_traces", FEWEST
    if name in SHARES or name == "gwet_ac1":
        return ("few_traces", _LEAST_UNITS) if units < _LEAST_UNITS else None
    if units < _LEAST_UNITS_OF_KAPPA:
        return "few_traces", _LEAST_UNITS_OF_KAPPA
    return ("rare_answer", _LEAST_SAID) if said < _LEAST_SAID else None


def why_no_mean_interval(name: str, traces: int, ratings: float) -> tuple[Withheld, int] | None:
    """Tell the same of a mean over modes, which rare modes pull down where there are few traces.

    Args:
        name: The figure's name in the report.
        traces: In how many traces two or more rated a unit.
        ratings: How many ratings each unit has, on average.
    """
    least = _LEAST_TRACES_OF_STEADY_MEAN
    if name not in _STEADY:
        least = ceil(_LEAST_TRACES_OF_MEAN * max(2.0, ratings))
    return ("few_traces", least) if traces < least else None


def share_of_traces(counts: ArrayLike, *, rounds: int, seed: int) -> CoefficientJson:
    """Give a share over all traces together, with its interval over the traces.

    Args:
        counts: By trace the hits, and of how many. A trace with none to hit tells nothing, and is
            no trace for the interval.
        rounds: How many resamples of the traces; 0 leaves out the interval.
        seed: What they are drawn from.
    """
    table = np.asarray(counts, dtype=np.float64).reshape(-1, 2)
    table = table[table[:, 1] > 0]
    if not len(table):
        return Coefficient(undefined="no_overlap").to_json()
    total = table.sum(axis=0)
    value = float(total[0] / total[1])
    ci = None
    if rounds and len(table) >= FEWEST:
        drawn, without = resampled_sums(table, rounds, seed), total - table
        ci = spread_interval(
            value, ratio(drawn[:, 0], drawn[:, 1]), ratio(without[:, 0], without[:, 1]), lowest=0.0
        )
    return Coefficient(value, ci=ci).to_json()


def spread_interval(
    estimate: float,
    resampled: NDArray[np.float64],
    left_out: NDArray[np.float64],
    *,
    lowest: float,
) -> Interval | None:
    """Give the interval of a figure: by the jackknife of few traces, of many by BCa.

    Args:
        estimate: The figure of all traces.
        resampled: The figure in each resample.
        left_out: The figure with each trace left out in turn.
        lowest: Where the figure's scale begins: -1 for a coefficient, 0 for a share.
    """
    if left_out.size < MANY:
        return jackknife_interval(estimate, left_out, lowest=lowest)
    return interval(estimate, resampled, left_out=left_out)


def jackknife_interval(
    estimate: float,
    left_out: NDArray[np.float64],
    *,
    lowest: float,
) -> Interval | None:
    """The interval of a figure between ``lowest`` and 1 from what it is without each trace.

    Args:
        estimate: The figure of all traces.
        left_out: The figure with each trace left out in turn, NaN where it is undefined.
        lowest: Where the figure's scale begins: -1 for a coefficient, 0 for a share.

    Returns:
        The figure ± Student's t times the jackknife's standard error, on the scale of the logit
        of its place between the ends (twice Fisher's arctanh, for a coefficient). None where half
        of the traces or more leave the figure undefined when they are left out, where all give the
        same one, and at either end of the scale, which leaves nothing to tell a spread from.
    """
    traces = left_out.size
    defined = left_out[~np.isnan(left_out)]
    if defined.size < FEWEST or defined.size <= LEAST_DEFINED * traces:
        return None
    error = sqrt((traces - 1) * float(((defined - defined.mean()) ** 2).mean()))
    width = 1 - lowest
    place = (estimate - lowest) / width
    if error <= _ALIKE or not _ALIKE < place < 1 - _ALIKE:
        return None
    middle = log(place / (1 - place))
    half = student_t(traces - 1) * error / (width * place * (1 - place))
    return lowest + width * _back(middle - half), lowest + width * _back(middle + half)


def _back(logit: float) -> float:
    """The share of a logit; where it is far below, without leaving the range of numbers."""
    return 1 / (1 + exp(-logit)) if logit > 0 else exp(logit) / (1 + exp(logit))


@cache
def student_t(degrees: int, level: float = LEVEL) -> float:
    """The t within which Student's distribution holds ``level`` of its mass, on both sides of 0.

    Raises ``ValueError`` where there is no degree of freedom.
    """
    if degrees < 1:
        raise ValueError(f"Student's t has one degree of freedom or more, not {degrees}")
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return high


def _within(t: float, degrees: int) -> float:
    """The mass between -t and t (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term = cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
