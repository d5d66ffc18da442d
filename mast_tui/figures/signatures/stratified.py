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
from math import exp, log, pi, sqrt
from typing import Final, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import LEAST_OF_DIFFERENCE, Z, to_resolve, why_no_difference
from mast_tui.figures.signatures.model import ALL, FAILED, SUCCEEDED, Flags, SignatureInput
from mast_tui.figures.signatures.modes import Counts

_HALVINGS: Final = 40

Floats = NDArray[np.float64]

Stratum = tuple[int, int, int, int]
"""Failed traces that show the mode, failed ones judged on it, and both of the successful ones."""


class StratifiedModeJson(TypedDict):
    """One mode over ``strata`` models with failed and successful traces, ``n`` traces in all.

    What cannot be had is null, and ``undefined`` says why by its name: ``no_strata``, or no
    successful (``none_in_succeeded``) or no failed trace (``none_in_failed``) shows it, or none at
    all (``never_seen``). ``ci_withheld`` says why there are no intervals, with ``ci_needs``.
    """

    strata: int
    n: int
    difference_pp: float | None
    difference_ci_pp: list[float] | None
    risk_ratio: float | None
    risk_ratio_ci: list[float] | None
    undefined: NotRequired[str]
    ci_withheld: NotRequired[str]
    ci_needs: NotRequired[int]


class StratifiedJson(TypedDict):
    """All modes, stratified ``by`` model; traces whose model is not known are ``left_out``.

    ``reversed`` are the modes whose difference has another sign over all traces at once.
    """

    by: str
    strata: list[str]
    left_out: int
    modes: dict[str, StratifiedModeJson]
    reversed: list[str]


def stratified(
    given: SignatureInput, chosen: Flags, crude: dict[str, float | None]
) -> StratifiedJson | None:
    """The stratified figures of the ``chosen`` traces.

    Args:
        given: The input of the report.
        chosen: Which traces count.
        crude: By mode code the difference over all of them at once, in points.

    Returns:
        The figures, or None where there are not several known models, or groups are what tells
        traces apart.
    """
    if given.by != ALL or given.stratum is None or len(given.stratum_names) < 2:
        return None
    sides: list[tuple[Counts, Counts]] = []
    for place in range(len(given.stratum_names)):
        here = chosen & (given.stratum == place)
        failed, succeeded = (here & (given.outcome == one) for one in (FAILED, SUCCEEDED))
        sides.append((Counts.of(given.verdicts[failed]), Counts.of(given.verdicts[succeeded])))
    modes = {}
    for i, mode in enumerate(given.modes):
        modes[mode.code] = mantel_haenszel(
            [(f.present[i], f.judged[i], s.present[i], s.judged[i]) for f, s in sides]
        )
        unresolved = sum(f.unresolved[i] + s.unresolved[i] for f, s in sides)
        needs = to_resolve(unresolved, sum(f.judged[i] + s.judged[i] for f, s in sides))
        if needs and modes[mode.code]["difference_pp"] is not None:
            modes[mode.code] |= {
                "difference_ci_pp": None,
                "risk_ratio_ci": None,
                "ci_withheld": "unresolved",
                "ci_needs": needs,
            }
    other_sign = [
        code
        for code, one in modes.items()
        if (one["difference_pp"] or 0) * (crude.get(code) or 0) < 0
    ]
    return {
        "by": "model",
        "strata": list(given.stratum_names),
        "left_out": int(np.count_nonzero(chosen & (given.stratum < 0))),
        "modes": modes,
        "reversed": other_sign,
    }


def mantel_haenszel(strata: Sequence[Stratum]) -> StratifiedModeJson:
    """The common risk difference and risk ratio of one mode; the first side less the second.

    A stratum without traces on either side tells nothing and is left out.
    """
    used = [one for one in strata if one[1] and one[3]]
    found: StratifiedModeJson = {
        "strata": len(used),
        "n": sum(n + of for _, n, _, of in used),
        "difference_pp": None,
        "difference_ci_pp": None,
        "risk_ratio": None,
        "risk_ratio_ci": None,
    }
    if not used:
        found["undefined"] = "no_strata"
        return found
    difference, ends = _difference(used)
    found["difference_pp"] = 100 * difference
    sides = (sum(n for _, n, _, _ in used), sum(of for *_, of in used))
    withheld = why_no_difference(sum(a + b for a, _, b, _ in used), sides)
    if withheld is not None:
        found["ci_withheld"] = withheld
        found["ci_needs"] = LEAST_OF_DIFFERENCE
    else:
        found["difference_ci_pp"] = [100 * end for end in ends]
    first = sum(a * of / (n + of) for a, n, _, of in used)
    second = sum(b * n / (n + of) for _, n, b, of in used)
    if second:
        found["risk_ratio"] = first / second
    if first and second and withheld is None:
        spread = sum(
            (n * of * (a + b) - a * b * (n + of)) / (n + of) ** 2 for a, n, b, of in used
        ) / (first * second)
        middle, half = log(first / second), Z * sqrt(spread)
        found["risk_ratio_ci"] = [exp(middle - half), exp(middle + half)]
    if not first and not second:
        found["undefined"] = "never_seen"
    elif not first or not second:
        found["undefined"] = "none_in_failed" if second else "none_in_succeeded"
    return found


def _difference(used: Sequence[Stratum]) -> tuple[float, Interval]:
    """Return the common difference with its score interval, between -1 and 1."""
    a, n, b, of = np.array(used, dtype=np.float64).T
    weights = n * of / (n + of)
    value = float((weights * (a / n - b / of)).sum() / weights.sum())

    def rejected(difference: float) -> bool:
        p, q = _restricted(a, n, b, of, difference)
        variance = (p * (1 - p) / n + q * (1 - q) / of) * (n + of) / (n + of - 1)
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
    a: Floats, n: Floats, b: Floats, of: Floats, difference: float
) -> tuple[Floats, Floats]:
    """Return by stratum the likeliest shares of both sides that lie this difference apart.

    The likelihood's slope is a cubic polynomial in the second share, with a root in closed form
    (Farrington and Manning 1990, Statistics in Medicine 9:1447-1454).
    """
    both = n + of
    square = (n + 2 * of) * difference - both - a - b
    linear = (of * difference - both - 2 * b) * difference + a + b
    constant = b * difference * (1 - difference)
    shift = square / (3 * both)
    q = shift**3 - linear * square / (6 * both**2) + constant / (2 * both)
    size = np.sqrt(np.maximum(shift**2 - linear / (3 * both), 0)) * np.where(q >= 0, 1, -1)
    cosine = np.divide(q, size**3, out=np.zeros_like(q), where=size != 0)
    angle = (pi + np.arccos(np.clip(cosine, -1, 1))) / 3
    second = np.clip(2 * size * np.cos(angle) - shift, 0, 1)
    return np.clip(second + difference, 0, 1), second
