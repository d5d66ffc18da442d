"""The reasons for which an agreement coefficient has no value or no interval.

Ratings are an integer array raters × units: any number from 0 is a category, ``MISSING`` (-1) is no
rating. No coefficient is ever NaN.

A coefficient is undefined for the first of these reasons that holds:

- ``single_rater``: fewer than two raters, or only one of them has ratings.
- ``no_overlap``: no unit has ratings by two raters (for Fleiss' κ: by all raters).
- ``single_trace``: all shared units are in one trace, so that chance cannot be estimated. Raw,
  positive and negative agreement are defined nevertheless.
- ``no_variance``: all ratings of shared units are of one category, so that chance agreement is
  total. This includes Gwet's AC1: with a fixed number of categories its formula would give 1,
  without evidence of agreement on a category that never occurred. Raw agreement is defined.

Positive and negative agreement are undefined (``no_variance``) only if their category never occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.record import Figure

Ratings = NDArray[np.int_]
Undefined = Literal[
    "no_variance",
    "no_overlap",
    "single_trace",
    "single_rater",
    "no_unlabelled",
    "no_positives",
    "no_negatives",
    "no_better_than_chance",
]
"""The reasons why a figure is undefined.

The last four are about prevalences that cannot be corrected: no trace was judged by the judge
alone; the reference never calls the mode present, or never absent; or TPR + TNR ≤ 1, so that the
judge is no better than chance.
"""
Withheld = Literal[
    "few_traces",
    "rare_answer",
    "few_shared_traces",
    "few_places",
    "few_found_twice",
    "dependent_finders",
    "single_trace",
    "copied_blocks",
    "unresolved",
]
"""The reasons why a figure has no interval.

- ``few_traces``: it rests on too few traces, or traces × modes.
- ``rare_answer``: present or absent is too rare.
- ``few_shared_traces``: it is a mean over pairs of annotators, and a pair shares too few traces.
- ``few_places``: places of two annotators overlap in too few traces.
- ``few_found_twice``: too few failures were found by several finders.
- ``dependent_finders``: finders depend on each other, which capture and recapture does not allow.
- ``single_trace``: the rarer answer occurs in one trace, or the figure is undefined without one.
- ``copied_blocks``: there are too few traces if copies of a block of verdicts count once.
- ``unresolved``: too many verdicts of the gold are unresolved disagreements.
"""

MISSING = -1

# The most informative reason comes first.
_REASONS: tuple[Undefined, ...] = ("no_variance", "single_trace", "no_overlap")


class NoInterval(NamedTuple):
    """The reason for no interval, and the number of traces, units or answers that it needs."""

    reason: Withheld
    needs: int


def mean_of_defined(coefficients: Sequence[Figure]) -> tuple[Figure, int]:
    """Return the mean of the defined coefficients, and their number.

    If none is defined, the reason of the mean is the first one in ``_REASONS`` that a coefficient
    has.
    """
    values = [c.value for c in coefficients if c.value is not None]
    if values:
        return Figure(value=sum(values) / len(values)), len(values)
    reasons = {c.undefined for c in coefficients}
    reason: Undefined = next((reason for reason in _REASONS if reason in reasons), "single_rater")
    return Figure(reason=reason), 0
