"""How many modes a failed trace shows on average, with an interval by resampling traces."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import LEVEL, Interval
from mast_tui.figures.intervals import normal_quantile
from mast_tui.figures.signatures.model import ABSENT, PRESENT

MOST_PATTERNS: Final = 1000
"""Beyond so many different traces the interval is that of the standard error, which then says the
same in a hundredth of the time."""

_LEAST_DEFINED: Final = 0.5
"""The share of resamples in which a figure must be defined for its interval to mean anything."""

Values = NDArray[np.float64]


def modes_per_trace(verdicts: NDArray[np.uint8]) -> float | None:
    """The sum over the modes of the share of traces that show it, among those judged on it.

    Where every trace was judged on every mode this is the mean number of modes. None where no
    mode was judged.
    """
    present, judged = (verdicts == PRESENT).sum(axis=0), _judged(verdicts).sum(axis=0)
    seen = judged > 0
    return float((present[seen] / judged[seen]).sum()) if seen.any() else None


def resampled(verdicts: NDArray[np.uint8], rounds: int, seed: int) -> Values:
    """``modes_per_trace`` in so many resamples of the traces; NaN where one leaves a mode unjudged.

    Traces that are alike are drawn together, which is the same and takes less. Empty where there
    are too many different ones.
    """
    judged = _judged(verdicts)
    used = judged.any(axis=0)
    features, counts = _alike(verdicts[:, used], complete=bool(judged[:, used].all()))
    if not len(features) or len(features) > MOST_PATTERNS:
        return np.empty(0)
    total = int(counts.sum())
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, size=rounds)
    sums = drawn @ features
    present, of = np.split(sums, 2, axis=1)
    shares = np.divide(present, of, out=np.full(present.shape, np.nan), where=of > 0)
    found: Values = shares.sum(axis=1)
    return found


def interval(verdicts: NDArray[np.uint8], values: Values) -> Interval | None:
    """The interval of ``modes_per_trace``: the percentiles of its resampled values.

    Without those it is the estimate and so many standard errors. None where half of the resamples
    or more leave it undefined, and of fewer than two traces.
    """
    estimate = modes_per_trace(verdicts)
    if estimate is None or len(verdicts) < 2:
        return None
    if not len(values):
        half = normal_quantile() * standard_error(verdicts)
        return max(0.0, estimate - half), estimate + half
    defined = values[~np.isnan(values)]
    if defined.size <= _LEAST_DEFINED * values.size:
        return None
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return min(float(low), estimate), max(float(high), estimate)


def standard_error(verdicts: NDArray[np.uint8]) -> float:
    """The standard error of ``modes_per_trace`` by what each trace adds to it."""
    judged = _judged(verdicts)
    of = np.maximum(judged.sum(axis=0), 1)
    shares = (verdicts == PRESENT).sum(axis=0) / of
    pulls = (judged * ((verdicts == PRESENT) - shares) / of).sum(axis=1)
    return float(np.sqrt((pulls**2).sum()))


def _alike(verdicts: NDArray[np.uint8], *, complete: bool) -> tuple[Values, NDArray[np.int64]]:
    """Per kind of trace what it adds to the sums (present, judged), and how many there are."""
    if complete:
        # Only the number of modes matters then.
        numbers, counts = np.unique((verdicts == PRESENT).sum(axis=1), return_counts=True)
        ones = np.ones_like(numbers)
        return np.stack([numbers, ones], axis=1).astype(np.float64), counts
    kinds, counts = np.unique(verdicts, axis=0, return_counts=True)
    features = np.concatenate([kinds == PRESENT, _judged(kinds)], axis=1)
    return features.astype(np.float64), counts


def _judged(verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    judged: NDArray[np.bool_] = (verdicts == PRESENT) | (verdicts == ABSENT)
    return judged
