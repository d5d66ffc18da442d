"""Two groups against each other, mode by mode."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from mast_tui.figures.bootstrap import LEVEL
from mast_tui.figures.signatures.groups import GroupFigures
from mast_tui.figures.signatures.model import FAILED, SignatureInput
from mast_tui.figures.signatures.modes import Counts, DifferenceJson, differences
from mast_tui.figures.signatures.rates import RateJson


class ComparedModeJson(DifferenceJson):
    """One mode among the failed traces of two groups: the first less the second."""

    name: str
    first: RateJson
    second: RateJson


class ComparedMeansJson(TypedDict):
    """The modes per failed trace of both groups, and the first less the second."""

    first: float | None
    second: float | None
    difference: float | None
    ci: list[float] | None


class ComparisonJson(TypedDict):
    """Two groups of one report, over their failed traces; p-values are adjusted over the modes."""

    groups: list[str]
    over: str
    modes_per_failed_trace: ComparedMeansJson
    modes: dict[str, ComparedModeJson]


def comparison(
    given: SignatureInput, names: tuple[str, str], figures: dict[str, GroupFigures]
) -> ComparisonJson:
    """Compare two groups over their failed traces.

    Args:
        given: The input of the report.
        names: The names of both groups.
        figures: What was counted of each group, by its name.

    Raises:
        KeyError: A name is no group's.
    """
    sides = _failed(given, names[0]), _failed(given, names[1])
    found = differences(*sides, ("first", "second"))
    return {
        "groups": list(names),
        "over": "failed",
        "modes_per_failed_trace": _means(figures[names[0]], figures[names[1]]),
        "modes": {
            mode.code: {
                "name": mode.name,
                "first": sides[0].rate(i),
                "second": sides[1].rate(i),
                **found[i],
            }
            for i, mode in enumerate(given.modes)
        },
    }


def _failed(given: SignatureInput, name: str) -> Counts:
    here = given.group == given.group_names.index(name)
    return Counts.of(given.verdicts[here & (given.outcome == FAILED)])


def _means(first: GroupFigures, second: GroupFigures) -> ComparedMeansJson:
    p = first.table["modes_per_failed_trace"]["value"]
    q = second.table["modes_per_failed_trace"]["value"]
    found: ComparedMeansJson = {
        "first": p,
        "second": q,
        "difference": None if p is None or q is None else p - q,
        "ci": None,
    }
    if found["difference"] is not None and len(first.per_failed) and len(second.per_failed):
        apart = first.per_failed - second.per_failed
        apart = apart[~np.isnan(apart)]
        if len(apart):
            ends = np.quantile(apart, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            found["ci"] = [float(end) for end in ends]
    return found
