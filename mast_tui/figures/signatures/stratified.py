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


def stratified_figures(
    inputs: SignatureInput, is_counted: Flags, scopes: Sequence[FigureScope]
) -> list[Figure]:
    """Return the figures within models of some traces.

    The result is empty if fewer than two models are known, or if the report has groups.

    Args:
        inputs: The input of the report.
        is_counted: A mask of the traces that count.
        scopes: The scope of the figures of each mode.
    """
    if inputs.by != ALL or inputs.stratum is None or len(inputs.stratum_names) < 2:
        return []
    counts_by_stratum: list[tuple[Counts, Counts]] = []
    for stratum in range(len(inputs.stratum_names)):
        in_stratum = is_counted & (inputs.stratum == stratum)
        failed, succeeded = (
            in_stratum & (inputs.outcome == outcome) for outcome in (FAILED, SUCCEEDED)
        )
        counts_by_stratum.append(
            (
                Counts.from_verdicts(inputs.verdicts[failed]),
                Counts.from_verdicts(inputs.verdicts[succeeded]),
            )
        )
    figures = []
    for mode, scope in enumerate(scopes):
        strata = [
            (
                failed_counts.present[mode],
                failed_counts.judged[mode],
                succeeded_counts.present[mode],
                succeeded_counts.judged[mode],
            )
            for failed_counts, succeeded_counts in counts_by_stratum
        ]
        unresolved = sum(
            failed_counts.unresolved[mode] + succeeded_counts.unresolved[mode]
            for failed_counts, succeeded_counts in counts_by_stratum
        )
        needs = to_resolve(
            unresolved,
            sum(
                failed_counts.judged[mode] + succeeded_counts.judged[mode]
                for failed_counts, succeeded_counts in counts_by_stratum
            ),
        )
        figures += mantel_haenszel(strata, scope, needs=needs)
    left_out = int(np.count_nonzero(is_counted & (inputs.stratum < 0)))
    figures.append(replace(scopes[0], mode="").number("unknown_model", left_out))
    return figures


def mantel_haenszel(
    strata: Sequence[Stratum], scope: FigureScope, *, needs: int = 0
) -> list[Figure]:
    """Return the risk difference and the risk ratio of one mode that strata have in common.

    The difference is the first share less the second. Strata without traces on one side are left
    out.

    Args:
        strata: The counts of each stratum.
        scope: The scope of the figures.
        needs: The number of disagreements to resolve before the figures have intervals.
    """
    compared_strata = [
        (hits, cases, other_hits, other_cases)
        for hits, cases, other_hits, other_cases in strata
        if cases and other_cases
    ]
    n = sum(cases + other_cases for _, cases, _, other_cases in compared_strata)
    strata_figure = scope.number("strata", len(compared_strata), n=n)
    if not compared_strata:
        ratio_reason = "no_strata"
        return [
            strata_figure,
            scope.figure("difference", None, n=n, reason=ratio_reason),
            scope.figure("risk_ratio", None, n=n, reason=ratio_reason),
        ]
    value, difference_interval = _common_difference(compared_strata)
    sizes = (
        sum(cases for _, cases, _, _ in compared_strata),
        sum(other_cases for *_, other_cases in compared_strata),
    )
    interval_reason = why_no_difference(
        sum(hits + other_hits for hits, _, other_hits, _ in compared_strata), sizes
    )
    needed_count = LEAST_OF_DIFFERENCE if interval_reason else None
    if needs:
        interval_reason = "unresolved"
        needed_count = needs
    difference = scope.figure(
        "difference",
        value,
        interval=None if interval_reason else difference_interval,
        n=n,
        reason=interval_reason or "",
        needs=needed_count,
    )
    first_weight = sum(
        hits * other_cases / (cases + other_cases)
        for hits, cases, _, other_cases in compared_strata
    )
    second_weight = sum(
        other_hits * cases / (cases + other_cases)
        for _, cases, other_hits, other_cases in compared_strata
    )
    ratio_reason = ""
    if not first_weight and not second_weight:
        ratio_reason = "never_seen"
    elif not first_weight:
        ratio_reason = "none_in_failed"
    elif not second_weight:
        ratio_reason = "none_in_succeeded"
    ratio_interval = None
    if first_weight and second_weight and not interval_reason:
        log_variance = sum(
            (cases * other_cases * (hits + other_hits) - hits * other_hits * (cases + other_cases))
            / (cases + other_cases) ** 2
            for hits, cases, other_hits, other_cases in compared_strata
        ) / (first_weight * second_weight)
        log_ratio = log(first_weight / second_weight)
        half_width = Z * sqrt(log_variance)
        ratio_interval = (exp(log_ratio - half_width), exp(log_ratio + half_width))
    ratio = scope.figure(
        "risk_ratio",
        first_weight / second_weight if second_weight else None,
        interval=ratio_interval,
        n=n,
        reason=(interval_reason or ratio_reason) if second_weight else ratio_reason,
        needs=needed_count if second_weight else None,
    )
    return [strata_figure, difference, ratio]


def _common_difference(strata: Sequence[Stratum]) -> tuple[float, Interval]:
    """Return the common difference with its score interval, between -1 and 1."""
    hits, cases, other_hits, other_cases = np.array(strata, dtype=np.float64).T
    weights = cases * other_cases / (cases + other_cases)
    value = float((weights * (hits / cases - other_hits / other_cases)).sum() / weights.sum())

    def is_rejected(difference: float) -> bool:
        shares, other_shares = _restricted_shares(hits, cases, other_hits, other_cases, difference)
        variance = (
            (shares * (1 - shares) / cases + other_shares * (1 - other_shares) / other_cases)
            * (cases + other_cases)
            / (cases + other_cases - 1)
        )
        standard_error = sqrt(float((weights**2 * variance).sum())) / float(weights.sum())
        return abs(value - difference) > Z * standard_error

    return value, (_interval_end(value, -1.0, is_rejected), _interval_end(value, 1.0, is_rejected))


def _interval_end(accepted: float, limit: float, is_rejected: Callable[[float], bool]) -> float:
    """Return the value nearest to the limit that the test does not reject, by bisection."""
    if not is_rejected(limit):
        return limit
    rejected = limit
    for _ in range(_HALVINGS):
        candidate = (accepted + rejected) / 2
        if is_rejected(candidate):
            rejected = candidate
        else:
            accepted = candidate
    return accepted


def _restricted_shares(
    hits: Floats, cases: Floats, other_hits: Floats, other_cases: Floats, difference: float
) -> tuple[Floats, Floats]:
    """Return the most likely shares of both sides with a given difference, for each stratum.

    The second share is the root of a cubic polynomial (Farrington and Manning 1990, Statistics in
    Medicine 9:1447-1454).

    Args:
        hits: The hits of the first side.
        cases: The cases of the first side.
        other_hits: The hits of the second side.
        other_cases: The cases of the second side.
        difference: The first share less the second.
    """
    all_cases = cases + other_cases
    square = (cases + 2 * other_cases) * difference - all_cases - hits - other_hits
    linear = (
        (other_cases * difference - all_cases - 2 * other_hits) * difference + hits + other_hits
    )
    constant = other_hits * difference * (1 - difference)
    shift = square / (3 * all_cases)
    offset = shift**3 - linear * square / (6 * all_cases**2) + constant / (2 * all_cases)
    radius = np.sqrt(np.maximum(shift**2 - linear / (3 * all_cases), 0)) * np.where(
        offset >= 0, 1, -1
    )
    cosine = np.divide(offset, radius**3, out=np.zeros_like(offset), where=radius != 0)
    angle = (pi + np.arccos(np.clip(cosine, -1, 1))) / 3
    other_shares = np.clip(2 * radius * np.cos(angle) - shift, 0, 1)
    return np.clip(other_shares + difference, 0, 1), other_shares
