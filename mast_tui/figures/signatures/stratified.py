"""Failed against successful traces within each model, put together after Mantel and Haenszel.

Over several models at once a mode may look harmful, or harmless, only because one model fails more
often and shows the mode more often too (Simpson's paradox). Here traces are compared with those of
their own model alone.

The risk ratio is Mantel and Haenszel's with the variance of its logarithm after Greenland and
Robins (Biometrics 41, 1985, 55-68); the risk difference has the same weights, with the variance
after Sato (Biometrics 45, 1989, 1323-1324), which holds for few large strata and for many sparse
ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import NotRequired, TypedDict

import numpy as np

from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import Z
from mast_tui.figures.signatures.model import ALL, FAILED, SUCCEEDED, Flags, SignatureInput
from mast_tui.figures.signatures.modes import Counts

Stratum = tuple[int, int, int, int]
"""Failed traces that show the mode, failed ones judged on it, and both of the successful ones."""


class StratifiedModeJson(TypedDict):
    """One mode over ``strata`` models with failed and successful traces, ``n`` traces in all.

    What cannot be had is null, and ``undefined`` says why by its name: ``no_strata``, or no
    successful (``none_in_succeeded``) or no failed trace (``none_in_failed``) shows it, or none at
    all (``never_seen``).
    """

    strata: int
    n: int
    difference_pp: float | None
    difference_ci_pp: list[float] | None
    risk_ratio: float | None
    risk_ratio_ci: list[float] | None
    undefined: NotRequired[str]


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
    modes = {
        mode.code: mantel_haenszel(
            [(f.present[i], f.judged[i], s.present[i], s.judged[i]) for f, s in sides]
        )
        for i, mode in enumerate(given.modes)
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
    found["difference_ci_pp"] = [100 * end for end in ends]
    first = sum(a * of / (n + of) for a, n, _, of in used)
    second = sum(b * n / (n + of) for _, n, b, of in used)
    if second:
        found["risk_ratio"] = first / second
    if first and second:
        spread = sum(
            (n * of * (a + b) - a * b * (n + of)) / (n + of) ** 2 for a, n, b, of in used
        ) / (first * second)
        middle, half = log(first / second), Z * sqrt(spread)
        found["risk_ratio_ci"] = [exp(middle - half), exp(middle + half)]
    elif not first and not second:
        found["undefined"] = "never_seen"
    else:
        found["undefined"] = "none_in_failed" if second else "none_in_succeeded"
    return found


def _difference(used: Sequence[Stratum]) -> tuple[float, Interval]:
    """The common difference with its interval, between -1 and 1."""
    weight = sum(n * of / (n + of) for _, n, _, of in used)
    value = sum((a * of - b * n) / (n + of) for a, n, b, of in used) / weight
    p = sum(
        (n * n * b - of * of * a + n * of * (of - n) / 2) / (n + of) ** 2 for a, n, b, of in used
    )
    q = sum((a * (of - b) + b * (n - a)) / (2 * (n + of)) for a, n, b, of in used)
    half = Z * sqrt(max(0.0, value * p + q)) / weight
    return value, (max(-1.0, value - half), min(1.0, value + half))
