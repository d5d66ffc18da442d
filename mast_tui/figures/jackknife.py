"""Confidence intervals by the jackknife: from a figure with each trace left out in turn.

With few traces the percentiles of resamples are too narrow: with 5 traces, the interval of pooled κ
holds the true value in four of five studies. The jackknife (Tukey 1958) estimates the variance of
the figure. Wilson's interval for that variance stays within the figure's possible values.
``scripts/simulate_study.py`` tests these intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from mast_tui.figures.bootstrap import (
    Floats,
    Interval,
    Resampling,
    interval,
    ratio,
    resampled_sums,
)
from mast_tui.figures.intervals import wilson_of, wilson_with_student
from mast_tui.figures.record import STATISTICS, Basis, Figure, NoInterval

FEWEST: Final = 3
"""The fewest traces for an interval."""

MANY: Final = 2000
"""The number of traces from which resampling replaces the jackknife.

From there resampling costs less, and its percentiles hold.
"""

FEWEST_RARE_TRACES: Final = 2
"""The fewest traces with the rarer answer. Without its only such trace, a figure is undefined."""

# The least data for which an interval holds in simulations.
_LEAST_UNITS: Final = 16
_LEAST_ANSWERS: Final = 5
_LEAST_TRACES_OF_STEADY_MEAN: Final = 10
_LEAST_TRACES_OF_MEAN: Final = 25
"""The number of traces for each rating of a unit: more ratings lower the spread, not the bias.
"""

_ALIKE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Scale:
    """The range from ``lowest`` to 1 of a figure's possible values, with its number of cases.

    Attributes:
        lowest: The least possible value.
        traces: The number of traces that are cases of the figure; 0 if a trace has several units,
            which are not independent.
        on_one_answer: Whether the figure is agreement on one answer: 2J / (1 + J), where J is the
            share of agreement in the ``traces`` in which the answer occurs.
        caps_cases: Whether ``cases`` limits the number of cases of an interval.
    """

    lowest: float
    traces: int = 0
    on_one_answer: bool = False
    caps_cases: bool = False

    def cases(self, position: float) -> float:
        """Return the number of cases of a figure at a position between 0 (``lowest``) and 1."""
        # From the variance of 2J / (1 + J), where J is a share of ``traces``.
        return 2 * self.traces / (2 - position) ** 2 if self.on_one_answer else float(self.traces)


def scale_of_mean(name: str) -> Scale:
    """Return the scale of a mean over modes."""
    return Scale(STATISTICS[name].lowest)


def least_over_chance(by_chance: float) -> float:
    """Return (observed - by chance) / (1 - by chance) for no observed agreement."""
    return -by_chance / (1 - by_chance)


@dataclass(frozen=True, slots=True)
class Support:
    """The data on which a figure of one table rests.

    Attributes:
        traces: The number of traces in which two or more annotators rated a unit, without copies.
        units: The number of rated traces × modes.
        present: The mean number of presents of an annotator.
        absent: The mean number of absents of an annotator.
        rare_traces: The number of traces in which the rarer answer occurs.
        has_copies: Whether there were copies of traces.
    """

    traces: int
    units: int
    present: float
    absent: float
    rare_traces: int
    has_copies: bool = False

    def answers(self, name: str) -> float | None:
        """Return the number of answers that decide a figure; None if all do."""
        counts = {
            Basis.PRESENT: self.present,
            Basis.ABSENT: self.absent,
            Basis.RARER: min(self.present, self.absent),
        }
        return counts.get(STATISTICS[name].basis)


def why_no_interval(name: str, support: Support) -> NoInterval | None:
    """Return the reason why a figure of one table has no interval, and the number that it needs.

    If there are too few traces, this is a number of traces.

    Args:
        name: The name of the figure in the report.
        support: The numbers of traces, units and answers on which the figure rests.

    Returns:
        The reason and the needed number; None if the figure has an interval.
    """
    # The number of traces that have enough units, if each has as many as now.
    traces_with_units = ceil(_LEAST_UNITS * support.traces / max(1, support.units))
    least_traces = max(FEWEST, traces_with_units)
    if support.traces < least_traces:
        return NoInterval("copied_blocks" if support.has_copies else "few_traces", least_traces)
    answers = support.answers(name)
    if answers is not None and answers < _LEAST_ANSWERS:
        return NoInterval("rare_answer", _LEAST_ANSWERS)
    # A figure that is not linear is undefined without the rarer answer.
    if not STATISTICS[name].linear and support.rare_traces < FEWEST_RARE_TRACES:
        return NoInterval("single_trace", FEWEST_RARE_TRACES)
    return None


def why_no_mean_interval(name: str, traces: int, ratings: float) -> NoInterval | None:
    """Return the reason why a mean over modes has no interval, and the traces that it needs.

    With few traces, rare modes make such a mean too low. A steady statistic is hardly affected.

    Args:
        name: The name of the figure in the report.
        traces: The number of traces in which two annotators or more rated a unit.
        ratings: The mean number of ratings of a unit.

    Returns:
        The reason and the needed number; None if the mean has an interval.
    """
    least_traces = (
        _LEAST_TRACES_OF_STEADY_MEAN
        if STATISTICS[name].steady
        else ceil(_LEAST_TRACES_OF_MEAN * max(2.0, ratings))
    )
    return NoInterval("few_traces", least_traces) if traces < least_traces else None


def share_of_traces(counts: ArrayLike, resampling: Resampling) -> Figure:
    """Return the share of hits among the cases of all traces, with its interval over the traces.

    Args:
        counts: Traces × (hits, cases).
        resampling: The resamples of the traces; none for no interval.
    """
    table = np.asarray(counts, dtype=np.float64).reshape(-1, 2)
    table = table[table[:, 1] > 0]
    if not len(table):
        return Figure(reason="no_overlap")
    total = table.sum(axis=0)
    value = float(total[0] / total[1])
    spread = spread_of_traces(table, resampling)
    if spread is None or len(table) < FEWEST:
        return Figure(value=value)
    spread_of_share = spread.of(lambda sums: ratio(sums[:, 0], sums[:, 1]))
    return spread_of_share.coefficient(value, Scale(lowest=0.0))


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure in each resample and without each trace, or the sums for that figure.

    Attributes:
        resampled: A row for each resample of the traces; NaN if the figure is undefined.
        left_out: A row for each left-out trace; NaN if the figure is undefined.
    """

    resampled: Floats
    left_out: Floats

    def of(self, figure: Callable[[Floats], Floats]) -> Spread:
        """Return the values of a figure that is computed from these sums."""
        return Spread(figure(self.resampled), figure(self.left_out))

    def coefficient(
        self, estimate: float, scale: Scale, withheld: NoInterval | None = None
    ) -> Figure:
        """Return a figure with its interval: by the jackknife for few traces, by BCa for many.

        Args:
            estimate: The figure of all traces.
            scale: The values that the figure can take.
            withheld: The reason for no interval; None if the figure may have one.
        """
        if withheld is not None:
            return Figure(value=estimate, reason=withheld.reason, needs=withheld.needs)
        if self.left_out.size < MANY or np.isnan(self.left_out).any():
            return jackknifed_coefficient(estimate, self.left_out, scale)
        return Figure(
            value=estimate, interval=interval(estimate, self.resampled, left_out=self.left_out)
        )


def spread_of_traces(features: Floats, resampling: Resampling) -> Spread | None:
    """Return the sums of each resample and without each trace; None without resamples.

    Args:
        features: The whole numbers that each trace adds to the sums, as traces × columns.
        resampling: The resamples of the traces.
    """
    if not resampling.count or not len(features):
        return None
    return Spread(resampled_sums(features, resampling), features.sum(axis=0) - features)


def jackknifed_coefficient(estimate: float, left_out: Floats, scale: Scale) -> Figure:
    """Return a figure with its interval by the jackknife.

    There is no interval if the figure is undefined without one of the traces.

    Args:
        estimate: The figure of all traces.
        left_out: The figure without each trace in turn; NaN if undefined.
        scale: The values that the figure can take."""
    if np.isnan(left_out).any():
        return Figure(value=estimate, reason="single_trace", needs=FEWEST_RARE_TRACES)
    return Figure(value=estimate, interval=jackknife_interval(estimate, left_out, scale))


def jackknife_interval(estimate: float, left_out: Floats, scale: Scale) -> Interval | None:
    """Return the interval of a figure from its values without each trace in turn.

    It is Wilson's interval for p(1 - p)/Var p cases (Korn and Graubard 1998). p is the figure's
    position between the ends of its scale, and Var p is the jackknife's variance. If traces have
    several units, Student's t widens the interval.

    Args:
        estimate: The figure of all traces.
        left_out: The figure without each trace in turn; NaN if undefined.
        scale: The values that the figure can take.

    Returns:
        The interval. None with too few traces, if a value is NaN, or if the values show no
        variance.
    """
    trace_count = left_out.size
    if trace_count < FEWEST or bool(np.isnan(left_out).any()):
        return None
    width = 1 - scale.lowest
    position = min(1.0, max(0.0, (float(estimate) - scale.lowest) / width))
    mean_square = float(((left_out - left_out.mean()) ** 2).mean())
    standard_error = sqrt((trace_count - 1) * mean_square) / width
    is_at_end = not _ALIKE < position < 1 - _ALIKE
    if is_at_end and scale.traces:
        # The jackknife shows no variance, but the number of cases gives an interval.
        end = float(round(position))
        ends = wilson_of(end, scale.cases(end))
    elif is_at_end or standard_error <= _ALIKE:
        return None
    else:
        ends = _interval_of_position(position, standard_error, trace_count, scale)
    low, high = ends
    # Rounding may move an end past the figure.
    lowest = min(float(estimate), scale.lowest + width * low)
    return lowest, max(float(estimate), scale.lowest + width * high)


def _interval_of_position(
    position: float, standard_error: float, trace_count: int, scale: Scale
) -> Interval:
    """Return the interval of a position from 0 to 1 on the scale."""
    cases = position * (1 - position) / standard_error**2
    if not scale.traces:
        return wilson_with_student(position, cases, trace_count - 1)
    # The variance of a share of n cases is p(1 - p)/n; the jackknife's is p(1 - p)/(n - 1).
    cases = cases * trace_count / (trace_count - 1)
    return wilson_of(position, min(cases, scale.cases(position)) if scale.caps_cases else cases)
