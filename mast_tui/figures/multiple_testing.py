"""The correction of p-values for many tests at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values adjusted for their number (Benjamini and Hochberg 1995); None stays None."""
    places = [i for i, p in enumerate(p_values) if p is not None]
    given = np.array([p for p in p_values if p is not None], dtype=np.float64)
    order = np.argsort(given, kind="stable")
    many = len(given)
    raised = given[order] * many / np.arange(1, many + 1)
    lowest = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    adjusted: list[float | None] = [None] * len(p_values)
    for place, value in zip(order.tolist(), lowest.tolist(), strict=True):
        adjusted[places[place]] = value
    return adjusted
