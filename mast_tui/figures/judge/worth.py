"""The information that annotators' labels of a trace would add, given a judge's verdicts on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from math import sqrt
from statistics import fmean
from typing import Final

from mast_tui.figures.judge.confusion import compared_units
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.labels import VerdictValue

_EVEN: Final = 0.2
"""The part that is the same for all traces, because the judge's errors are only estimated."""


def worth(
    judge_input: JudgeInput, traces: Collection[str], modes: Collection[str]
) -> dict[str, float]:
    """Return the information that labels of each trace would add; the mean is 1.

    A trace adds most if present and absent are equally likely. The probability p of present follows
    from the traces of the reference with the same verdict of the judge: with k of n present it is
    (k + ½)/(n + 1). Chances in proportion to √Σ p(1 − p) over the modes minimise the sum of the
    variances of the prevalences (Neyman 1934, Journal of the Royal Statistical Society 97:558-625;
    Zrnic and Candès 2024, arXiv 2403.03208).

    Args:
        judge_input: The verdicts of the judge and of its reference.
        traces: The ids of the traces.
        modes: The slugs of the modes.
    """
    unit_counts: Counter[tuple[str, VerdictValue | None]] = Counter()
    present_counts: Counter[tuple[str, VerdictValue | None]] = Counter()
    for (trace, mode), is_present in compared_units(judge_input).reference.items():
        key = (mode, judge_input.verdicts[trace, mode])
        unit_counts[key] += 1
        present_counts[key] += is_present

    def spread_of(trace: str) -> float:
        """Return how unsure it is what people say on a trace after the judge's verdicts."""
        variance = 0.0
        for mode in modes:
            key = (mode, judge_input.verdicts.get((trace, mode)))
            present_share = (present_counts[key] + 0.5) / (unit_counts[key] + 1)
            variance += present_share * (1 - present_share)
        return sqrt(variance)

    spread_by_trace = {trace: spread_of(trace) for trace in traces}
    mean = fmean(spread_by_trace.values()) if spread_by_trace else 1.0
    return {trace: (1 - _EVEN) * value / mean + _EVEN for trace, value in spread_by_trace.items()}
