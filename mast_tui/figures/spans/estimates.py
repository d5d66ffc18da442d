"""Figures that follow from sums over traces, with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import Coefficient, Undefined, Withheld
from mast_tui.figures.bootstrap import resamples
from mast_tui.figures.jackknife import spread_interval

Floats = NDArray[np.float64]

LEAST_MEETS: Final = 3
"""Traces in which places of two meet, from which on an interval of α holds, by simulation."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Some figures that are functions of the same sums.

    ``features`` are traces × columns, ``of`` makes figures (resamples × figures, NaN where
    undefined) of sums of the columns (resamples × columns), and ``reasons`` says for each figure
    why it is undefined where it is. ``lowest`` is where their scale begins. ``needs`` are how many
    traces each takes for an interval, and ``meets`` in how many places of two meet; an interval
    takes some of these, None where it does not.
    """

    features: Floats
    of: Callable[[Floats], Floats]
    reasons: Sequence[Undefined]
    lowest: float
    needs: Sequence[int]
    meets: Sequence[int | None]


def estimated(several: Sequence[Figures], rounds: int, seed: int) -> list[list[Coefficient]]:
    """The figures of each with a 95 % interval: by the jackknife of few traces, of many by BCa.

    The latter is from ``rounds`` resamples of the traces. All have the same traces, and each
    resample serves all of them. There is no interval without rounds, nor where every resample
    gives the same figure: resampling what is all alike tells nothing of what else there may be.
    Traces of which all columns are zero cost nothing.
    """
    drawn: list[list[Floats]] = [[] for _ in several]
    telling = [np.flatnonzero(one.features.any(axis=1)) for one in several]
    for block in resamples(len(several[0].features), rounds, seed):
        weights = block.astype(np.float64)
        for figures, rows, kept in zip(several, telling, drawn, strict=True):
            kept.append(figures.of(weights[:, rows] @ figures.features[rows]))
    return [
        _coefficients(figures, np.concatenate(kept) if kept else None)
        for figures, kept in zip(several, drawn, strict=True)
    ]


def _coefficients(figures: Figures, resampled: Floats | None) -> list[Coefficient]:
    """The figures themselves, with intervals from what they are in the resamples."""
    total = figures.features.sum(axis=0)
    values = figures.of(total[None, :])[0]
    left_out = None if resampled is None else figures.of(total - figures.features)
    found = []
    of_each = zip(values, figures.reasons, figures.needs, figures.meets, strict=True)
    for place, (value, reason, needs, meets) in enumerate(of_each):
        if np.isnan(value):
            found.append(Coefficient(undefined=reason))
        elif resampled is None or left_out is None:
            found.append(Coefficient(float(value)))
        elif (withheld := _withheld(len(figures.features), needs, meets)) is not None:
            found.append(Coefficient(float(value), withheld=withheld))
        else:
            ci = spread_interval(
                float(value), resampled[:, place], left_out[:, place], lowest=figures.lowest
            )
            found.append(Coefficient(float(value), ci=ci))
    return found


def _withheld(traces: int, needs: int, meets: int | None) -> tuple[Withheld, int] | None:
    if traces < needs:
        return "few_traces", needs
    return ("few_places", LEAST_MEETS) if meets is not None and meets < LEAST_MEETS else None
