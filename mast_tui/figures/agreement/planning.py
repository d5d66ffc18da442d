"""How much more labelling would make a figure as sharp as one wants it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mast_tui.figures.agreement.coefficients import Coefficient, Undefined

NoPlan = Undefined | Literal["no_interval"]


@dataclass(frozen=True, slots=True)
class Halving:
    """About how many more traces, labelled twice, would halve an interval, or why none is told.

    ``width`` is that of the interval as it is.
    """

    more_traces: int | None = None
    width: float | None = None
    undefined: NoPlan | None = None


def halving(kappa: Coefficient, n: int) -> Halving:
    """What would halve the interval of a figure that rests on ``n`` traces labelled twice.

    An interval shrinks with one over the square root of the traces, so half of it takes four
    times as many: three times as many more. That holds where the new traces are like the ones
    there are; it is a rule of thumb for planning, not a promise. Undefined for the figure's own
    reason, or with ``no_interval`` where the interval is missing or has no width to halve.
    """
    if kappa.undefined is not None:
        return Halving(undefined=kappa.undefined)
    if kappa.ci is None or kappa.ci[1] <= kappa.ci[0]:
        return Halving(undefined="no_interval")
    return Halving(3 * n, kappa.ci[1] - kappa.ci[0])
