"""Whether modes grow more or less frequent along versions or dates."""

from __future__ import annotations

import re
from datetime import date
from typing import Final, Literal, NotRequired, TypedDict

import numpy as np

from mast_tui.figures.intervals import RateJson
from mast_tui.figures.signatures.model import FAILED, NO_VALUE, Flags, SignatureInput
from mast_tui.figures.signatures.modes import Counts
from mast_tui.figures.significance import Method, benjamini_hochberg, cochran_armitage

ORDERED: Final = ("version", "date")
"""Fields whose values have an order of their own."""

Unit = Literal["day", "step"]
"""The unit of the distances between groups: dates lie days apart, versions a step each."""


class TrendModeJson(TypedDict):
    """One mode along the groups.

    ``rates`` are the shares of traces that show it, group by group. ``slope_pp`` is by how many
    points the share rises in a unit of the scores, by least squares weighted with the cases;
    ``z`` and ``p_value`` are those of the test of Cochran and Armitage (``method`` says whether the
    p-value was counted or is the normal distribution's), ``p_adjusted`` corrected over the modes
    (Benjamini and Hochberg). They are null where fewer than two groups were judged on the mode
    (``not_judged``), or every trace shows it, or none (``no_variance``): ``undefined`` says which.
    """

    name: str
    rates: list[RateJson]
    slope_pp: float | None
    z: float | None
    p_value: float | None
    p_adjusted: float | None
    method: Method | None
    undefined: NotRequired[str]


class TrendByOutcome(TypedDict):
    """The modes over the failed traces, and over all, each by code."""

    failed: dict[str, TrendModeJson]
    all: dict[str, TrendModeJson]


class TrendJson(TypedDict):
    """The trend over ``groups`` in their order.

    Their ``scores`` are the days since the first date, or 0, 1, 2, … of versions, as ``unit`` says.
    ``left_out`` counts the traces of no group among these, such as those of unknown date.
    """

    by: str
    groups: list[str]
    scores: list[int]
    unit: Unit
    left_out: int
    modes: TrendByOutcome


def trend(given: SignatureInput) -> TrendJson | None:
    """Test each mode for a trend along all known groups, versions by the size of their numbers.

    Returns:
        The document; None where the groups have no order, or are fewer than two.
    """
    known = [name for name in given.group_names if name != NO_VALUE]
    groups = sorted(known, key=natural_order) if given.by in ORDERED else []
    if len(groups) < 2:
        return None
    scores = list(range(len(groups)))
    unit: Unit = "step"
    if given.by == "date":
        days = [date.fromisoformat(name).toordinal() for name in groups]
        scores = [day - days[0] for day in days]
        unit = "day"
    flags = [given.group == given.group_names.index(name) for name in groups]
    failed = given.outcome == FAILED
    return {
        "by": given.by,
        "groups": groups,
        "scores": scores,
        "unit": unit,
        "left_out": len(given.traces) - sum(int(one.sum()) for one in flags),
        "modes": {
            "failed": _of_modes(given, [one & failed for one in flags], scores),
            "all": _of_modes(given, flags, scores),
        },
    }


def natural_order(version: str) -> list[tuple[int, int, str]]:
    """Give what to sort versions by: runs of digits by their size, so that 1.9 is before 1.10."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", version)
    return [(0, int(one), "") if one.isascii() and one.isdigit() else (1, 0, one) for one in pieces]


def _of_modes(
    signatures: SignatureInput, groups: list[Flags], scores: list[int]
) -> dict[str, TrendModeJson]:
    counts = [Counts.of(signatures.verdicts[one]) for one in groups]
    found = [
        _of_mode(mode.name, [one.rate(i) for one in counts], scores)
        for i, mode in enumerate(signatures.modes)
    ]
    adjusted = benjamini_hochberg([one["p_value"] for one in found])
    for one, p in zip(found, adjusted, strict=True):
        one["p_adjusted"] = p
    return {mode.code: one for mode, one in zip(signatures.modes, found, strict=True)}


def _of_mode(name: str, rates: list[RateJson], scores: list[int]) -> TrendModeJson:
    hits = [rate["count"] for rate in rates]
    cases = [rate["n"] for rate in rates]
    tested = cochran_armitage(hits, cases, scores)
    found: TrendModeJson = {
        "name": name,
        "rates": rates,
        "slope_pp": None,
        "z": None,
        "p_value": None,
        "p_adjusted": None,
        "method": None,
    }
    if sum(n > 0 for n in cases) < 2:
        found["undefined"] = "not_judged"
        return found
    found["slope_pp"] = 100 * _slope(hits, cases, scores)
    if tested is None:
        found["undefined"] = "no_variance"
    else:
        found["z"], found["p_value"], found["method"] = tested
    return found


def _slope(hits: list[int], cases: list[int], scores: list[int]) -> float:
    """Return the slope of the shares over the scores, by weighted least squares."""
    x = np.array(hits)
    n = np.array(cases)
    score = np.array(scores)
    middle = (n * score).sum() / n.sum()
    return float((x * (score - middle)).sum() / (n * (score - middle) ** 2).sum())
