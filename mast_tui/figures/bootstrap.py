"""Confidence intervals by resampling traces.

A figure is a function of sums over traces. A resample is the number of times that each trace
counts, so ``weights @ features`` gives the sums of many resamples at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LEVEL: Final = 0.95

_CELLS_AT_ONCE: Final = 4_000_000
"""The most weights in memory at a time: sixteen megabytes."""

_CELLS_NEAR: Final = 1 << 16
"""The most weights that are drawn at a time, so that their counts fit the processor's cache."""

LEAST_DEFINED: Final = 0.5
"""The least share of resamples in which a figure must be defined to have an interval."""

_ROUNDING: Final = 1e-12

Floats = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Resampling:
    """The resamples of traces from which intervals are computed.

    Attributes:
        count: The number of resamples; 0 for none.
        seed: The seed; the same seed and number of traces give the same resamples.
    """

    count: int = 2000
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the settings and the level of intervals as a JSON object."""
        return {"rounds": self.count, "seed": self.seed, "level": LEVEL, "unit": "trace"}


RESAMPLING: Final = Resampling()
"""The default resamples of reports."""

NO_RESAMPLING: Final = Resampling(0)
"""No resamples, for figures without intervals."""


def ratio(numerators: Floats, denominators: Floats, default: float = np.nan) -> Floats:
    """Divide two arrays element by element.

    Args:
        numerators: The numerators.
        denominators: The denominators.
        default: The result for each denominator of 0 or less.
    """
    quotients: Floats = np.full(
        np.broadcast_shapes(np.shape(numerators), np.shape(denominators)), default
    )
    np.divide(numerators, denominators, out=quotients, where=denominators > 0)
    return quotients


def resamples(units: int, resampling: Resampling) -> Iterator[NDArray[np.float32]]:
    """Yield how often each unit is drawn in each resample, with replacement.

    Args:
        units: The number of units.
        resampling: The number and the seed of the resamples.

    Yields:
        The counts of several resamples at a time, as resamples × units.
    """
    if units < 1:
        return
    random = np.random.default_rng(resampling.seed)
    resamples_at_once = max(1, _CELLS_AT_ONCE // units)
    for start in range(0, resampling.count, resamples_at_once):
        row_count = min(resamples_at_once, resampling.count - start)
        weights = np.empty((row_count, units), dtype=np.float32)
        _draw_weights(weights, random)
        yield weights


def _draw_weights(weights: NDArray[np.float32], random: np.random.Generator) -> None:
    """Fill each row of ``weights`` with how often each unit (column) is drawn."""
    units = weights.shape[1]
    # The counts of a few rows fit the processor's cache.
    rows_at_once = max(1, _CELLS_NEAR // units)
    for start in range(0, len(weights), rows_at_once):
        rows = weights[start : start + rows_at_once]
        drawn_units = random.integers(0, units, size=rows.shape, dtype=np.int64)
        # Each row gets its own range of unit numbers, so that one call counts all rows.
        drawn_units += np.arange(len(rows), dtype=np.int64)[:, None] * units
        rows[:] = np.bincount(drawn_units.ravel(), minlength=rows.size).reshape(rows.shape)


def resampled_sums(features: Floats, resampling: Resampling) -> Floats:
    """Return the sums over the units of each resample.

    Args:
        features: Units × columns, where columns may be several axes. The values are whole numbers
            whose sums stay below 2^24, so that single precision is exact.
        resampling: The number and the seed of the resamples.

    Returns:
        Resamples × columns; no rows without units.
    """
    column_axes = features.shape[1:]
    single_precision = features.reshape(len(features), prod(column_axes)).astype(np.float32)
    parts = [weights @ single_precision for weights in resamples(len(features), resampling)]
    sums = np.concatenate(parts) if parts else single_precision[:0]
    return sums.astype(np.float64).reshape(len(sums), *column_axes)


def mean_of_defined_values(values: Floats, axis: int) -> Floats:
    """Return the mean over an axis of the values that are not NaN; NaN if all are.

    Args:
        values: The values.
        axis: The axis.
    """
    defined = ~np.isnan(values)
    counts = defined.sum(axis=axis).astype(np.float64)
    return ratio(np.where(defined, values, 0).sum(axis=axis), counts)


def interval(
    estimate: float,
    values: Floats,
    *,
    left_out: Floats | None = None,
) -> Interval | None:
    """Return the interval of a figure from its values in the resamples.

    Args:
        estimate: The figure of all units.
        values: The figure in each resample; NaN if undefined.
        left_out: The figure without each unit in turn; NaN if undefined. If present, the
            percentiles are corrected for bias and skewness (BCa, Efron 1987), which matters with
            few units.

    Returns:
        The percentiles of the defined values (Efron 1979), widened to include the estimate. None if
        the figure is undefined in half of the resamples or more, or if all values are the same.
    """
    defined_values = values[~np.isnan(values)]
    if not varies(defined_values):
        return None
    if left_out is None:
        return percentiles(estimate, values)
    tails = _corrected_tails(estimate, defined_values, left_out[~np.isnan(left_out)])
    return percentiles(estimate, values, tails)


_TAILS: Final = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
"""The percentiles of an interval, as shares."""


def percentiles(estimate: float, values: Floats, tails: Interval = _TAILS) -> Interval | None:
    """Return the percentiles of the defined values, widened to include the estimate.

    Args:
        estimate: The figure of all units.
        values: The figure in each resample; NaN if undefined.
        tails: The percentiles, as shares.

    Returns:
        The interval; None if the figure is undefined in half of the resamples or more.
    """
    defined_values = values[~np.isnan(values)]
    if defined_values.size <= LEAST_DEFINED * values.size:
        return None
    low, high = np.quantile(defined_values, tails)
    return min(float(low), estimate), max(float(high), estimate)


def varies(values: Floats) -> bool:
    """Return whether values differ by more than rounding."""
    return values.size > 0 and float(np.ptp(values)) > _ROUNDING


def _corrected_tails(estimate: float, values: Floats, left_out: Floats) -> Interval:
    """Return the percentiles that replace ``_TAILS`` in BCa intervals (Efron 1987).

    ``values`` has the figure in each resample, and ``left_out`` the figure without each unit. Both
    have no NaN.
    """
    # Ties count half, because few units give few different values.
    share_below = float((values < estimate).mean() + (values <= estimate).mean()) / 2
    if not 0 < share_below < 1:
        return _TAILS
    normal = NormalDist()
    bias = normal.inv_cdf(share_below)
    influences = left_out.mean() - left_out if left_out.size else left_out
    square_sum = float((influences**2).sum())
    acceleration = float((influences**3).sum()) / (6 * square_sum**1.5) if square_sum > 0 else 0.0

    def corrected_tail(tail: float) -> float:
        step = bias + normal.inv_cdf(tail)
        divisor = 1 - acceleration * step
        # The correction is valid only while the divisor is above 0.
        return normal.cdf(bias + step / divisor) if divisor > 0 else tail

    low, high = _TAILS
    return corrected_tail(low), corrected_tail(high)
