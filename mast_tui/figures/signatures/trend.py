"""The trend of the frequency of modes along versions or dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

import numpy as np

from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.signatures.model import FAILED, NO_VALUE, Flags, SignatureInput
from mast_tui.figures.signatures.modes import Counts
from mast_tui.figures.significance import benjamini_hochberg, cochran_armitage

ORDERED: Final = ("version", "date")
"""Fields whose values have an order of their own."""

Unit = Literal["day", "step"]
"""The unit of the distances between groups: dates lie days apart, versions a step each."""


@dataclass(frozen=True, slots=True)
class TrendAxis:
    """The groups along which modes are tested for a trend, in their order.

    ``scores`` are the days since the first date, or 0, 1, 2, … of versions, as ``unit`` says.
    """

    groups: tuple[str, ...]
    scores: tuple[int, ...]
    unit: Unit


def trend_axis(inputs: SignatureInput) -> TrendAxis | None:
    """Return the known groups in their order, versions by the size of their numbers.

    Returns:
        The axis; None where the groups have no order, or are fewer than two.
    """
    known = [name for name in inputs.group_names if name != NO_VALUE]
    groups = sorted(known, key=natural_order) if inputs.by in ORDERED else []
    if len(groups) < 2:
        return None
    if inputs.by != "date":
        return TrendAxis(tuple(groups), tuple(range(len(groups))), "step")
    days = [date.fromisoformat(name).toordinal() for name in groups]
    return TrendAxis(tuple(groups), tuple(day - days[0] for day in days), "day")


def trend(inputs: SignatureInput, axis: TrendAxis) -> Iterator[Figure]:
    """Yield how each mode develops along the groups, over the failed traces and over all.

    Args:
        inputs: The input of the report.
        axis: The groups.
    """
    flags = [inputs.group == inputs.group_names.index(name) for name in axis.groups]
    left_out = len(inputs.traces) - sum(int(one.sum()) for one in flags)
    yield FigureScope("trend", inputs.taxonomy_ref).number("no_group", left_out)
    failed = inputs.outcome == FAILED
    yield from _of_modes(inputs, "trend_failed", [one & failed for one in flags], axis)
    yield from _of_modes(inputs, "trend_all", flags, axis)


def natural_order(version: str) -> list[tuple[int, int, str]]:
    """Give what to sort versions by: runs of digits by their size, so that 1.9 is before 1.10."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", version)
    return [(0, int(one), "") if one.isascii() and one.isdigit() else (1, 0, one) for one in pieces]


def _of_modes(
    inputs: SignatureInput, name: str, groups: list[Flags], axis: TrendAxis
) -> Iterator[Figure]:
    counts = [Counts.of(inputs.verdicts[one]) for one in groups]
    tested = [
        cochran_armitage(
            [one.present[i] for one in counts], [one.judged[i] for one in counts], axis.scores
        )
        for i in range(len(inputs.modes))
    ]
    adjusted = benjamini_hochberg([None if test is None else test.p_value for test in tested])
    for i, mode in enumerate(inputs.modes):
        for group, one in zip(axis.groups, counts, strict=True):
            yield one.rate(i, FigureScope(name, inputs.taxonomy_ref, group, mode.code))
        scope = FigureScope(name, inputs.taxonomy_ref, mode=mode.code)
        cases = [one.judged[i] for one in counts]
        test = tested[i]
        few = "not_judged" if sum(n > 0 for n in cases) < 2 else ""
        reason = few or ("no_variance" if test is None else "")
        hits = [one.present[i] for one in counts]
        slope = None if few else _slope(hits, cases, axis.scores)
        yield scope.number("slope", slope, reason=few)
        yield scope.number("z", None if test is None else test.z, reason=reason)
        yield scope.number(
            "p_value",
            None if test is None else test.p_value,
            condition="" if test is None else test.method,
            reason=reason,
        )
        yield scope.number("p_adjusted", adjusted[i], reason=reason)


def _slope(hits: Sequence[int], cases: Sequence[int], scores: Sequence[int]) -> float:
    """Return the slope of the shares over the scores, by weighted least squares."""
    x = np.array(hits)
    n = np.array(cases)
    score = np.array(scores)
    middle = (n * score).sum() / n.sum()
    return float((x * (score - middle)).sum() / (n * (score - middle) ** 2).sum())
