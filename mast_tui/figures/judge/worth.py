"""How much people's labels of a trace would tell about prevalences, by what a judge says of it."""

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
"""This part of a trace's worth is the same for all, as the judge's errors are known by estimate."""


def worth(given: JudgeInput, traces: Collection[str], modes: Collection[str]) -> dict[str, float]:
    """Tell how much labels of traces would tell, on average 1.

    A trace on which people are as likely to say the one thing as the other tells most. How likely
    they are to call a mode present follows from the judge's word w on it, and from what they have
    said of other traces with that word: p = (k + ½)/(n + 1). Chances in proportion to
    √Σ p(1 − p) over the modes make the sum of the variances of their prevalences least (Neyman
    1934, Journal of the Royal Statistical Society 97:558-625; Zrnic and Candès 2024,
    arXiv 2403.03208).

    Args:
        given: What the judge said, and what people did.
        traces: The ids of the traces.
        modes: Of which modes, by slug.
    """
    found = compared(given)
    said: Counter[tuple[str, VerdictValue | None]] = Counter()
    present: Counter[tuple[str, VerdictValue | None]] = Counter()
    for (trace, mode), there in found.reference.items():
        said[mode, given.verdicts[trace, mode]] += 1
        present[mode, given.verdicts[trace, mode]] += there

    def spread(trace: str) -> float:
        total = 0.0
        for mode in modes:
            word = mode, given.verdicts.get((trace, mode))
            p = (present[word] + 0.5) / (said[word] + 1)
            total += p * (1 - p)
        return sqrt(total)

    own = {trace: spread(trace) for trace in traces}
    mean = fmean(own.values()) if own else 1.0
    return {trace: (1 - _EVEN) * one / mean + _EVEN for trace, one in own.items()}
