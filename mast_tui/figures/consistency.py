"""How steady judges are, which needs no truth: over readings of their own, and beside each other.

A judge that says something else when nothing that matters has changed (another reading, smaller
windows, another order of the modes) cannot be right both times. All figures are over traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import CoefficientJson
from mast_tui.figures.jackknife import share_of_traces


@dataclass(frozen=True, slots=True)
class Beside:
    """What two judges say of one trace.

    ``both``, ``first``, ``second`` and ``neither`` count the modes that they call present, of those
    on which both have decided. Of ``both`` the places meet in ``meet`` and differ in ``apart``.
    ``same_step`` is whether they name the same decisive step, None where neither names one.
    """

    both: int
    first: int
    second: int
    neither: int
    meet: int
    apart: int
    same_step: bool | None = None


class SamplesJson(TypedDict):
    """``again``: of what one reading finds, the share that another finds too. ``always``: of all
    that is found, the share that every reading finds."""

    samples: int
    traces: int
    found: int
    again: CoefficientJson
    always: CoefficientJson


class BesideJson(TypedDict):
    """``verdicts``: the share of verdicts that are the same. ``modes``: of what either calls
    present, the share on which the other agrees (positive agreement). ``places``: where both do,
    how often their places overlap. ``step``: how often they name the same decisive step, of the
    traces in which either names one."""

    n: int
    verdicts: CoefficientJson
    modes: CoefficientJson
    places: CoefficientJson
    step: CoefficientJson


def samples_figures(
    found: Sequence[Sequence[float]], samples: int, *, rounds: int, seed: int
) -> SamplesJson:
    """Tell how often readings of one trace agree.

    Args:
        found: By trace the share of its readings that saw each finding.
        samples: How often each trace was read, two or more.
        rounds: How many resamples of the traces; 0 leaves out the intervals.
        seed: What they are drawn from.

    Raises:
        ValueError: There was one reading only.
    """
    if samples < 2:
        raise ValueError(f"{samples} reading tells nothing of agreement")
    rows = []
    for shares in found:
        counts = [round(share * samples) for share in shares]
        rows.append(
            (
                sum(count * (count - 1) for count in counts),
                sum(count * (samples - 1) for count in counts),
                sum(count == samples for count in counts),
                len(counts),
            )
        )
    table = _table(rows, 4)
    return {
        "samples": samples,
        "traces": len(found),
        "found": int(table[:, 3].sum()),
        "again": share_of_traces(table[:, :2], rounds=rounds, seed=seed),
        "always": share_of_traces(table[:, 2:], rounds=rounds, seed=seed),
    }


def beside_figures(traces: Sequence[Beside], *, rounds: int, seed: int) -> BesideJson:
    """Tell how alike two judges are on the traces that both have judged.

    Args:
        traces: What they say, trace by trace.
        rounds: How many resamples of the traces; 0 leaves out the intervals.
        seed: What they are drawn from.
    """
    table = _table(
        [
            (
                one.both + one.neither,
                one.both + one.neither + one.first + one.second,
                2 * one.both,
                2 * one.both + one.first + one.second,
                one.meet,
                one.meet + one.apart,
                one.same_step is True,
                one.same_step is not None,
            )
            for one in traces
        ],
        8,
    )
    verdicts, modes, places, step = (
        share_of_traces(table[:, place : place + 2], rounds=rounds, seed=seed)
        for place in (0, 2, 4, 6)
    )
    return {
        "n": len(traces),
        "verdicts": verdicts,
        "modes": modes,
        "places": places,
        "step": step,
    }


def _table(rows: Sequence[tuple[int, ...]], width: int) -> NDArray[np.float64]:
    return np.array(rows, dtype=np.float64).reshape(-1, width)
