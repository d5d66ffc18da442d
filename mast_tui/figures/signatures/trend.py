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
    """Return the groups with a known value in their order, versions by their numbers.

    Returns:
        The axis; None if the groups have no order or there are fewer than two.
    """
    if inputs.by not in ORDERED:
        return None
    names = [name for name in inputs.group_names if name != NO_VALUE]
    groups = sorted(names, key=natural_order)
    if len(groups) < 2:
        return None
    if inputs.by != "date":
        return TrendAxis(tuple(groups), tuple(range(len(groups))), "step")
    days = [date.fromisoformat(name).toordinal() for name in groups]
    return TrendAxis(tuple(groups), tuple(day - days[0] for day in days), "day")


def trend_figures(inputs: SignatureInput, axis: TrendAxis) -> Iterator[Figure]:
    """Yield the trend of each mode along the groups, over the failed traces and over all.

    Args:
        inputs: The input of the report.
        axis: The groups.
    """
    groups = [inputs.group == inputs.group_names.index(name) for name in axis.groups]
    without_group = len(inputs.traces) - sum(int(group.sum()) for group in groups)
    yield FigureScope("trend", inputs.taxonomy_ref).number("no_group", without_group)
    failed = inputs.outcome == FAILED
    yield from _mode_trends(inputs, "trend_failed", [group & failed for group in groups], axis)
    yield from _mode_trends(inputs, "trend_all", groups, axis)


def natural_order(version: str) -> list[tuple[int, int, str]]:
    """Return a sort key of a version that compares numbers by size, so that 1.9 is before 1.10."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", version)
    return [
        (0, int(piece), "") if piece.isascii() and piece.isdigit() else (1, 0, piece)
        for piece in pieces
    ]


def _mode_trends(
    inputs: SignatureInput, name: str, groups: list[Flags], axis: TrendAxis
) -> Iterator[Figure]:
    """Yield for each mode its rate in each group, its slope and the Cochran-Armitage test."""
    counts_by_group = [Counts.from_verdicts(inputs.verdicts[group]) for group in groups]
    tests = [
        cochran_armitage(
            [counts.present[mode_index] for counts in counts_by_group],
            [counts.judged[mode_index] for counts in counts_by_group],
            axis.scores,
        )
        for mode_index in range(len(inputs.modes))
    ]
    adjusted_p_values = benjamini_hochberg(
        [None if test is None else test.p_value for test in tests]
    )
    for mode_index, mode in enumerate(inputs.modes):
        for group_name, counts in zip(axis.groups, counts_by_group, strict=True):
            yield counts.rate(
                mode_index, FigureScope(name, inputs.taxonomy_ref, group_name, mode.code)
            )
        scope = FigureScope(name, inputs.taxonomy_ref, mode=mode.code)
        cases = [counts.judged[mode_index] for counts in counts_by_group]
        test = tests[mode_index]
        few_groups_reason = "not_judged" if sum(n > 0 for n in cases) < 2 else ""
        reason = few_groups_reason or ("no_variance" if test is None else "")
        hits = [counts.present[mode_index] for counts in counts_by_group]
        slope = None if few_groups_reason else _weighted_slope(hits, cases, axis.scores)
        yield scope.number("slope", slope, reason=few_groups_reason)
        yield scope.number("z", None if test is None else test.z, reason=reason)
        yield scope.number(
            "p_value",
            None if test is None else test.p_value,
            condition="" if test is None else test.method,
            reason=reason,
        )
        yield scope.number("p_adjusted", adjusted_p_values[mode_index], reason=reason)


def _weighted_slope(hits: Sequence[int], cases: Sequence[int], scores: Sequence[int]) -> float:
    """Return the slope of the shares over the scores, by weighted least squares."""
    hit_counts = np.array(hits)
    case_counts = np.array(cases)
    score_values = np.array(scores)
    mean_score = (case_counts * score_values).sum() / case_counts.sum()
    return float(
        (hit_counts * (score_values - mean_score)).sum()
        / (case_counts * (score_values - mean_score) ** 2).sum()
    )
