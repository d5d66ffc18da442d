"""The time that people take with and without suggestions, and the pull of the suggestions.

A study that shows suggestions may hide them on a share of each annotator's traces, chosen at
random. Differences between these traces and the others are due to the suggestions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import CoefficientJson, Withheld
from mast_tui.figures.bootstrap import ratio
from mast_tui.figures.jackknife import student_t
from mast_tui.labels import VerdictValue

LEAST_TRACES: Final = 10
"""The traces below which a figure has no interval."""

_DECIDED: Final = (VerdictValue.PRESENT, VerdictValue.ABSENT)

Amount = tuple[float, float]
"""The number of units of a pass, and their sum."""


@dataclass(frozen=True, slots=True)
class TimedPass:
    """An annotator's finished first pass in a study that shows suggestions.

    ``withheld`` is true if suggestions were hidden. ``minutes`` is None if the time is unknown.
    ``labels`` counts labels. ``suggested`` are the modes that a judge suggests in the trace; None
    if no judge has judged it.
    """

    annotator: str
    trace_id: str
    withheld: bool
    minutes: float | None
    labels: int
    verdicts: Mapping[str, VerdictValue]
    suggested: frozenset[str] | None


class ConditionJson(TypedDict):
    """The time of passes with, or without, suggestions."""

    passes: int
    timed: int
    traces: int
    median_minutes: float | None
    minutes_per_trace: CoefficientJson
    minutes_per_label: CoefficientJson


class AnchoringJson(TypedDict):
    """The difference in how often annotators say present, with suggestions less without.

    ``suggested`` is over verdicts on modes that a judge suggests in the trace, ``other`` over all
    other verdicts; ``units`` and ``other_units`` count both.
    """

    suggested: CoefficientJson
    units: int
    other: CoefficientJson
    other_units: int


class TimeStudyJson(TypedDict):
    """The document of a time study.

    Differences are with suggestions less without, within annotators who worked both ways.
    """

    annotators: list[str]
    shown: ConditionJson
    withheld: ConditionJson
    minutes_difference: CoefficientJson
    anchoring: AnchoringJson
    modes: dict[str, AnchoringJson]


def time_study(passes: Sequence[TimedPass], modes: Sequence[tuple[str, str, str]]) -> TimeStudyJson:
    """Compare passes with and without suggestions.

    Args:
        passes: The passes.
        modes: The slug, code and name of each mode.
    """
    both = {p.annotator for p in passes if p.withheld} & {
        p.annotator for p in passes if not p.withheld
    }
    paired = [each for each in passes if each.annotator in both]

    def minutes(each: TimedPass) -> Amount:
        return (0, 0) if each.minutes is None else (1, each.minutes)

    return {
        "annotators": sorted(both),
        "shown": _condition([each for each in passes if not each.withheld]),
        "withheld": _condition([each for each in passes if each.withheld]),
        "minutes_difference": difference(paired, minutes),
        "anchoring": _anchoring(paired, [slug for slug, _, _ in modes]),
        "modes": {code: _anchoring(paired, [slug]) for slug, code, _ in modes},
    }


def _condition(passes: Sequence[TimedPass]) -> ConditionJson:
    timed = [each for each in passes if each.minutes is not None]
    minutes = [each.minutes or 0.0 for each in timed]
    traces = sorted({each.trace_id for each in timed})
    sums = np.zeros((len(traces), 3))
    for each in timed:
        sums[traces.index(each.trace_id)] += (1, each.minutes or 0.0, each.labels)
    return {
        "passes": len(passes),
        "timed": len(timed),
        "traces": len({each.trace_id for each in passes}),
        "median_minutes": median(minutes) if minutes else None,
        "minutes_per_trace": _jackknifed(sums, lambda s: ratio(s[..., 1], s[..., 0])),
        "minutes_per_label": _jackknifed(sums, lambda s: ratio(s[..., 1], s[..., 2])),
    }


def _anchoring(passes: Sequence[TimedPass], modes: Sequence[str]) -> AnchoringJson:
    def present(*, suggested: bool) -> Callable[[TimedPass], Amount]:
        def amount(each: TimedPass) -> Amount:
            if each.suggested is None:
                return 0, 0
            verdicts = [
                each.verdicts[mode]
                for mode in modes
                if (mode in each.suggested) is suggested and each.verdicts.get(mode) in _DECIDED
            ]
            return len(verdicts), verdicts.count(VerdictValue.PRESENT)

        return amount

    of_suggested = present(suggested=True)
    of_others = present(suggested=False)
    return {
        "suggested": difference(passes, of_suggested),
        "units": int(sum(of_suggested(each)[0] for each in passes)),
        "other": difference(passes, of_others),
        "other_units": int(sum(of_others(each)[0] for each in passes)),
    }


def difference(
    passes: Sequence[TimedPass], amount: Callable[[TimedPass], Amount]
) -> CoefficientJson:
    """Return a mean over passes with suggestions less that over passes without.

    The difference d of each annotator counts with the weight m·n/(m + n), where m and n are the
    units with and without suggestions (Cochran 1954, Biometrics 10:417-451), so that differences
    between slow and fast annotators cancel out. Its interval is by the jackknife over traces, with
    Student's t.

    Args:
        passes: The passes of annotators who worked both ways.
        amount: Returns the units of a pass and their sum.
    """
    names = sorted({each.annotator for each in passes})
    traces = sorted({each.trace_id for each in passes})
    rows = {trace_id: row for row, trace_id in enumerate(traces)}
    sums = np.zeros((len(traces), len(names), 2, 2))
    for each in passes:
        cell = sums[rows[each.trace_id], names.index(each.annotator), int(each.withheld)]
        cell += amount(each)

    def weighted(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        assisted = totals[..., 0, :]
        unassisted = totals[..., 1, :]
        both = (assisted[..., 0] > 0) & (unassisted[..., 0] > 0)
        means = ratio(assisted[..., 1], assisted[..., 0]) - ratio(
            unassisted[..., 1], unassisted[..., 0]
        )
        weights = np.where(
            both,
            ratio(assisted[..., 0] * unassisted[..., 0], assisted[..., 0] + unassisted[..., 0]),
            0.0,
        )
        return ratio((np.where(both, means, 0.0) * weights).sum(axis=-1), weights.sum(axis=-1))

    return _jackknifed(sums, weighted)


def _jackknifed(
    sums: NDArray[np.float64], figure: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> CoefficientJson:
    """Return a figure of sums over traces, with its interval."""
    value = float(figure(sums.sum(axis=0)))
    if np.isnan(value):
        return {"value": None, "undefined": "no_overlap"}
    counted = sums[sums.reshape(len(sums), -1).any(axis=1)]
    without = figure(counted.sum(axis=0) - counted)
    traces = len(counted)
    if traces < LEAST_TRACES or bool(np.isnan(without).any()):
        return _without_interval(value, "few_traces")
    error = float(np.sqrt((traces - 1) / traces * ((without - without.mean()) ** 2).sum()))
    if error == 0:
        return _without_interval(value, "rare_answer")
    reach = student_t(traces - 1) * error
    return {"value": value, "ci": [value - reach, value + reach]}


def _without_interval(value: float, reason: Withheld) -> CoefficientJson:
    return {"value": value, "ci": None, "ci_withheld": reason, "ci_needs": LEAST_TRACES}
