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


def lengths(
    inputs: SignatureInput, all_onsets: Onsets, chosen: Flags, group: GroupScope
) -> Iterator[Figure]:
    """Yield the share and the hazard of each mode by the length of the runs of a group.

    ``length`` has the share with a bin as its condition, such as ``13-25`` spans, and the test for
    a trend over the bins; ``hazard`` has the hazard with a range of steps. There are none of fewer
    than ``LEAST_RUNS`` runs, or where all are of one length.

    Args:
        inputs: The input of the report.
        all_onsets: The first span of each mode, for all traces.
        chosen: The mask of the traces of the group.
        group: The group.
    """
    counted = chosen & (inputs.spans > 0)
    spans = inputs.spans[counted]
    if len(spans) < LEAST_RUNS:
        return
    edges = np.unique(np.ceil(np.quantile(spans, np.arange(1, _BINS + 1) / _BINS)).astype(np.int64))
    if len(edges) < 2:
        return
    lows = np.concatenate([[spans.min()], edges[:-1] + 1])
    names = [f"{low}-{high}" for low, high in zip(lows.tolist(), edges.tolist(), strict=True)]
    bins = np.searchsorted(edges, spans)
    first = np.full(inputs.verdicts.shape, -1, dtype=np.int64)
    first[all_onsets.trace, all_onsets.mode] = all_onsets.first
    tests: list[Figure] = []
    for i, mode in enumerate(inputs.modes):
        verdicts = inputs.verdicts[counted, i]
        scope = group.scope("length", mode.code, mode.code)
        hits = [int(((verdicts == PRESENT) & (bins == b)).sum()) for b in range(len(edges))]
        judged = (verdicts == PRESENT) | (verdicts == ABSENT)
        cases = [int((judged & (bins == b)).sum()) for b in range(len(edges))]
        for name, count, n in zip(names, hits, cases, strict=True):
            yield rate(scope, name, count, n)
        trend = cochran_armitage(hits, cases)
        reason = "" if trend is not None else "no_variance"
        p_value = None if trend is None else trend.p_value
        tests.append(scope.number("p_value", p_value, reason=reason))
        yield from _hazard(first[counted, i], verdicts, spans, edges, group, mode.code)
    adjusted = benjamini_hochberg([test.value for test in tests])
    for test, p in zip(tests, adjusted, strict=True):
        yield test
        yield replace(test, statistic="p_adjusted", value=p)


def _hazard(
    first: Whole,
    verdicts: NDArray[np.uint8],
    spans: Whole,
    edges: Whole,
    group: GroupScope,
    code: str,
) -> Iterator[Figure]:
    """Yield the hazard of a mode; runs with the mode but without a span of it are left out."""
    scope = group.scope("hazard", code, code, placed="yes")
    placed = (verdicts == ABSENT) | ((verdicts == PRESENT) & (first >= 0))
    onset = np.where(verdicts == PRESENT, first, np.iinfo(np.int64).max)
    low = 0
    for high in edges.tolist():
        at_risk = placed & (spans > low) & (onset >= low)
        events = int((at_risk & (onset < high)).sum())
        yield rate(scope, f"{low + 1}-{high}", events, int(at_risk.sum()))
        low = high
