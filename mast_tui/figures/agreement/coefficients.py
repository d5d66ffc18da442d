"""The reasons for which an agreement coefficient has no value or no interval.

Ratings are an integer array raters × units: any number from 0 is a category, ``MISSING`` (-1) is
no rating. No coefficient is ever NaN, and none is 0 or 1 where its formula has no answer.

When a coefficient is undefined, in this order:

- ``single_rater``: fewer than two raters, or only one of them rated anything.
- ``no_overlap``: no unit has ratings by two raters (for Fleiss' κ over complete units: by all).
- ``single_trace``: all that is compared is of one trace, which tells nothing of chance. Raw,
  positive and negative agreement are plain shares and stay defined.
- ``no_variance``: every rating in the units that two raters share is of one category. Chance
  agreement is then total, and nothing can be told from chance. That holds for Gwet's AC1 too:
  with a fixed number of categories its formula would say 1, which is no evidence of agreement
  on a thing that never occurred. Raw agreement is a plain share and stays defined.

Positive and negative agreement are shares of the ratings of their category, and undefined
(``no_variance``) only where nobody gave that category at all.
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
"""Why a figure is undefined; the last four are of prevalences that cannot be corrected.

No trace was seen by the judge alone; the reference calls the mode present, or absent, nowhere; or
TPR + TNR ≤ 1, so that the judge's word says nothing of the truth.
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
"""Why a figure has no interval: one would not hold what it says.

- ``few_traces``: it rests on too few traces, or traces × modes.
- ``rare_answer``: present or absent was said too rarely.
- ``few_shared_traces``: a mean over pairs of annotators of whom two share too few traces.
- ``few_places``: in too few traces do places of two annotators meet.
- ``few_found_twice``: too few failures were found by two or more.
- ``dependent_finders``: finders were found to be dependent, which capture and recapture forbids.
- ``single_trace``: the rarer answer occurs in one trace, or the figure is undefined without one.
- ``copied_blocks``: too few traces are left where copies of one block of verdicts count once.
- ``unresolved``: too many verdicts of the gold are disagreements that nobody has decided.
"""

MISSING = -1

# From the reason nearest to a figure to the one farthest from it.
_REASONS: tuple[Undefined, ...] = ("no_variance", "single_trace", "no_overlap")


class NoInterval(NamedTuple):
    """The reason for no interval, with the number of traces, units or answers that it needs."""

    reason: Withheld
    needs: int


def mean_of_defined(coefficients: Sequence[Figure]) -> tuple[Figure, int]:
    """Return the mean of the defined coefficients, and their number.

    If no coefficient is defined, the mean is undefined too. Its reason is the first one in
    ``_REASONS`` that a coefficient has, or ``single_rater`` if there are no coefficients.
    """
    values = [c.value for c in coefficients if c.value is not None]
    if values:
        return Figure(value=sum(values) / len(values)), len(values)
    reasons = {c.undefined for c in coefficients}
    reason: Undefined = next((reason for reason in _REASONS if reason in reasons), "single_rater")
    return Figure(reason=reason), 0
