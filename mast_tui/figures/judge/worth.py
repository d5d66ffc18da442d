"""The information that annotators' labels of a trace would add, given a judge's verdicts on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from math import sqrt
from statistics import fmean
from typing import Final

from mast_tui.figures.judge.confusion import compared
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.labels import VerdictValue

_EVEN: Final = 0.2
"""The part that is the same for all traces, because the judge's errors are only estimated."""


def worth(
    judge_input: JudgeInput, traces: Collection[str], modes: Collection[str]
) -> dict[str, float]:
    """Return by trace how much information its labels would add, on average 1.

    A trace adds most if present and absent are equally likely. The probability of present follows
    from the judge's verdict on the trace, and from the reference on the n other traces with that
    verdict, k of them present: p = (k + ½)/(n + 1). Chances in proportion to √Σ p(1 − p) over the
    modes make the sum of the variances of their prevalences least (Neyman 1934, Journal of the
    Royal Statistical Society 97:558-625; Zrnic and Candès 2024, arXiv 2403.03208).

    Args:
        judge_input: The verdicts of the judge and of its reference.
        traces: The ids of the traces.
        modes: The slugs of the modes.
    """
    units: Counter[tuple[str, VerdictValue | None]] = Counter()
    present: Counter[tuple[str, VerdictValue | None]] = Counter()
    for (trace, mode), is_present in compared(judge_input).reference.items():
        key = (mode, judge_input.verdicts[trace, mode])
        units[key] += 1
        present[key] += is_present

    def spread(trace: str) -> float:
        variance = 0.0
        for mode in modes:
            key = (mode, judge_input.verdicts.get((trace, mode)))
            p = (present[key] + 0.5) / (units[key] + 1)
            variance += p * (1 - p)
        return sqrt(variance)

    spreads = {trace: spread(trace) for trace in traces}
    mean = fmean(spreads.values()) if spreads else 1.0
    return {trace: (1 - _EVEN) * value / mean + _EVEN for trace, value in spreads.items()}
