"""Failed against successful traces within each model, put together after Mantel and Haenszel.

Over several models at once a mode may look harmful, or harmless, only because one model fails more
often and shows the mode more often too (Simpson's paradox). Here traces are compared with those of
their own model alone.

The risk ratio is Mantel and Haenszel's with the variance of its logarithm after Greenland and
Robins (Biometrics 41, 1985, 55-68). The risk difference has the same weights, with the score
interval of Miettinen and Nurminen (Statistics in Medicine 4, 1985, 213-226): all common
differences that the score test does not reject, whose variance is that under the difference
tested. Unlike Sato's it holds in two or three strata of 20 traces as well as in many sparse ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log, pi, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import LEAST_OF_DIFFERENCE, Z, to_resolve, why_no_difference
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.signatures.model import ALL, FAILED, SUCCEEDED, Flags, SignatureInput
from mast_tui.figures.signatures.modes import Counts

_HALVINGS: Final = 40

Floats = NDArray[np.float64]

Stratum = tuple[int, int, int, int]
"""Failed traces that show the mode, failed ones judged on it, and both of the successful ones."""


def stratified(
    inputs: SignatureInput, chosen: Flags, scopes: Sequence[FigureScope]
) -> list[Figure]:
    """Return the stratified figures of the ``chosen`` traces.

    There are none where fewer than two models are known, or groups are what tells traces apart.

    Args:
        inputs: The input of the report.
        chosen: Which traces count.
        scopes: What the figures of each mode are about.
    """
    if inputs.by != ALL or inputs.stratum is None or len(inputs.stratum_names) < 2:
        return []
    sides: list[tuple[Counts, Counts]] = []
    for stratum in range(len(inputs.stratum_names)):
        in_stratum = chosen & (inputs.stratum == stratum)
        failed, succeeded = (
            in_stratum & (inputs.outcome == outcome) for outcome in (FAILED, SUCCEEDED)
        )
        sides.append(
            (
                Counts.from_verdicts(inputs.verdicts[failed]),
                Counts.from_verdicts(inputs.verdicts[succeeded]),
            )
        )
    figures = []
    for i, scope in enumerate(scopes):
        strata = [(f.present[i], f.judged[i], s.present[i], s.judged[i]) for f, s in sides]
        unresolved = sum(f.unresolved[i] + s.unresolved[i] for f, s in sides)
        needs = to_resolve(unresolved, sum(f.judged[i] + s.judged[i] for f, s in sides))
        figures += mantel_haenszel(strata, scope, needs=needs)
    left_out = int(np.count_nonzero(chosen & (inputs.stratum < 0)))
    figures.append(replace(scopes[0], mode="").number("unknown_model", left_out))
    return figures


def mantel_haenszel(
    strata: Sequence[Stratum], scope: FigureScope, *, needs: int = 0
) -> list[Figure]:
    """Return the common risk difference and risk ratio of one mode, the first less the second.

    A stratum without traces on either side tells nothing and is left out.

    Args:
        strata: The counts of each stratum.
        scope: What the figures are about.
        needs: How many disagreements to resolve before the figures have intervals.
    """
    used = [stratum for stratum in strata if stratum[1] and stratum[3]]
    n = sum(cases + cases_b for _, cases, _, cases_b in used)
    number = scope.number("strata", len(used), n=n)
    if not used:
        missing = "no_strata"
        return [
            number,
            scope.figure("difference", None, n=n, reason=missing),
            scope.figure("risk_ratio", None, n=n, reason=missing),
        ]
    value, ends = _difference(used)
    sizes = (sum(cases for _, cases, _, _ in used), sum(cases_b for *_, cases_b in used))
    why = why_no_difference(sum(a + b for a, _, b, _ in used), sizes)
    least = LEAST_OF_DIFFERENCE if why else None
    if needs:
        why = "unresolved"
        least = needs
    difference = scope.figure(
        "difference", value, interval=None if why else ends, n=n, reason=why or "", needs=least
    )
    first = sum(a * cases_b / (cases + cases_b) for a, cases, _, cases_b in used)
    second = sum(b * cases / (cases + cases_b) for _, cases, b, cases_b in used)
    missing = "" if first and second else "none_in_failed" if second else "none_in_succeeded"
    if not first and not second:
        missing = "never_seen"
    ratio_ends = None
    if first and second and not why:
        spread = sum(
            (cases * cases_b * (a + b) - a * b * (cases + cases_b)) / (cases + cases_b) ** 2
            for a, cases, b, cases_b in used
        ) / (first * second)
        middle = log(first / second)
        half = Z * sqrt(spread)
        ratio_ends = (exp(middle - half), exp(middle + half))
    ratio = scope.figure(
        "risk_ratio",
        first / second if second else None,
        interval=ratio_ends,
        n=n,
        reason=(why or missing) if second else missing,
        needs=least if second else None,
    )
    return [number, difference, ratio]


def _difference(used: Sequence[Stratum]) -> tuple[float, Interval]:
    """Return the common difference with its score interval, between -1 and 1."""
    a, n, b, cases_b = np.array(used, dtype=np.float64).T
    weights = n * cases_b / (n + cases_b)
    value = float((weights * (a / n - b / cases_b)).sum() / weights.sum())

    def rejected(difference: float) -> bool:
        p, q = _restricted(a, n, b, cases_b, difference)
        variance = (p * (1 - p) / n + q * (1 - q) / cases_b) * (n + cases_b) / (n + cases_b - 1)
        error = sqrt(float((weights**2 * variance).sum())) / float(weights.sum())
        return abs(value - difference) > Z * error

    return value, (_edge(value, -1.0, rejected), _edge(value, 1.0, rejected))


def _edge(inside: float, limit: float, rejected: Callable[[float], bool]) -> float:
    """Return the last value on the way to the limit that is not rejected."""
    if not rejected(limit):
        return limit
    outside = limit
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside


def _restricted(
    a: Floats, n: Floats, b: Floats, cases_b: Floats, difference: float
) -> tuple[Floats, Floats]:
    """Return the likeliest shares of both sides with a given difference, for each stratum.

    The likelihood's slope is a cubic polynomial in the second share, with a root in closed form
    (Farrington and Manning 1990, Statistics in Medicine 9:1447-1454).
    """
    both = n + cases_b
    square = (n + 2 * cases_b) * difference - both - a - b
    linear = (cases_b * difference - both - 2 * b) * difference + a + b
    constant = b * difference * (1 - difference)
    shift = square / (3 * both)
    q = shift**3 - linear * square / (6 * both**2) + constant / (2 * both)
    size = np.sqrt(np.maximum(shift**2 - linear / (3 * both), 0)) * np.where(q >= 0, 1, -1)
    cosine = np.divide(q, size**3, out=np.zeros_like(q), where=size != 0)
    angle = (pi + np.arccos(np.clip(cosine, -1, 1))) / 3
    second = np.clip(2 * size * np.cos(angle) - shift, 0, 1)
    return np.clip(second + difference, 0, 1), second
