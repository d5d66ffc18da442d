"""Modes against the length of runs: their share in runs of each length, and their hazard by step.

Runs are put into bins by how many spans they have, at the quartiles of their lengths. The hazard of
a mode in a range of steps is the share of runs in which it sets on there, of those that came so far
without it (a life table: Cutler and Ederer 1958, Journal of Chronic Diseases 8:699-712).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.intervals import rate
from mast_tui.figures.record import Figure
from mast_tui.figures.signatures.model import (
    ABSENT,
    PRESENT,
    Flags,
    GroupScope,
    SignatureInput,
    Whole,
)
from mast_tui.figures.signatures.onset import Onsets
from mast_tui.figures.significance import benjamini_hochberg, cochran_armitage

LEAST_RUNS: Final = 20
"""Runs with a known length from which on they are put into bins."""

_BINS: Final = 4


def length_figures(
    inputs: SignatureInput, all_onsets: Onsets, in_group: Flags, group: GroupScope
) -> Iterator[Figure]:
    """Yield the share and the hazard of each mode by the length of the runs of a group.

    The scope ``length`` has the share, with a bin of lengths such as ``13-25`` as its condition,
    and the test for a trend over the bins. The scope ``hazard`` has the hazard, with a range of
    steps. Nothing is yielded for fewer than ``LEAST_RUNS`` runs, or if all have the same length.

    Args:
        inputs: The input of the report.
        all_onsets: The first span of each mode, for all traces.
        in_group: The mask of the traces of the group.
        group: The group.
    """
    is_counted = in_group & (inputs.spans > 0)
    spans = inputs.spans[is_counted]
    if len(spans) < LEAST_RUNS:
        return
    last_lengths = np.unique(
        np.ceil(np.quantile(spans, np.arange(1, _BINS + 1) / _BINS)).astype(np.int64)
    )
    if len(last_lengths) < 2:
        return
    first_lengths = np.concatenate([[spans.min()], last_lengths[:-1] + 1])
    names = [
        f"{low}-{high}"
        for low, high in zip(first_lengths.tolist(), last_lengths.tolist(), strict=True)
    ]
    bin_of_run = np.searchsorted(last_lengths, spans)
    first_spans = np.full(inputs.verdicts.shape, -1, dtype=np.int64)
    first_spans[all_onsets.trace, all_onsets.mode] = all_onsets.first
    tests: list[Figure] = []
    for column, mode in enumerate(inputs.modes):
        verdicts = inputs.verdicts[is_counted, column]
        scope = group.scope("length", mode.code, mode.code)
        hits = [
            int(((verdicts == PRESENT) & (bin_of_run == bin_number)).sum())
            for bin_number in range(len(last_lengths))
        ]
        is_judged = (verdicts == PRESENT) | (verdicts == ABSENT)
        cases = [
            int((is_judged & (bin_of_run == bin_number)).sum())
            for bin_number in range(len(last_lengths))
        ]
        for name, count, n in zip(names, hits, cases, strict=True):
            yield rate(scope, name, count, n)
        trend = cochran_armitage(hits, cases)
        reason = "" if trend is not None else "no_variance"
        p_value = None if trend is None else trend.p_value
        tests.append(scope.number("p_value", p_value, reason=reason))
        yield from _hazard_figures(
            first_spans[is_counted, column], verdicts, spans, last_lengths, group, mode.code
        )
    adjusted = benjamini_hochberg([test.value for test in tests])
    for test, adjusted_value in zip(tests, adjusted, strict=True):
        yield test
        yield replace(test, statistic="p_adjusted", value=adjusted_value)


def _hazard_figures(
    first_spans: Whole,
    verdicts: NDArray[np.uint8],
    spans: Whole,
    range_ends: Whole,
    group: GroupScope,
    code: str,
) -> Iterator[Figure]:
    """Yield the hazard of a mode by ranges of steps.

    The hazard is the number of runs in which the mode begins in the range, divided by the number of
    runs that reach the range without it. Runs with the mode at an unknown span are left out.
    """
    scope = group.scope("hazard", code, code, placed="yes")
    is_usable = (verdicts == ABSENT) | ((verdicts == PRESENT) & (first_spans >= 0))
    onset_span = np.where(verdicts == PRESENT, first_spans, np.iinfo(np.int64).max)
    range_start = 0
    for range_end in range_ends.tolist():
        at_risk = is_usable & (spans > range_start) & (onset_span >= range_start)
        events = int((at_risk & (onset_span < range_end)).sum())
        yield rate(scope, f"{range_start + 1}-{range_end}", events, int(at_risk.sum()))
        range_start = range_end
