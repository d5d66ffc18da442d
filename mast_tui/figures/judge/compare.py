"""Two judges against each other, on the units that both can be compared on.

    first, second = (judge_input_from_workspace(workspace, taxonomy, name, gold=gold) for name in …)
    document["judges"] = judges_compared(first, second)

A unit (trace × mode) counts where the reference and both judges have said present or absent. So
both are measured by the same cases, and what is hard about a case weighs on both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import Coefficient, CoefficientJson, Withheld
from mast_tui.figures.bootstrap import ROUNDS, BootstrapJson, bootstrap_json
from mast_tui.figures.intervals import newcombe_paired
from mast_tui.figures.jackknife import Scale, scale_of_mean, spread_coefficient
from mast_tui.figures.judge.confusion import (
    SHARES,
    Compared,
    TraceSums,
    compared,
    features,
    figures_of,
    figures_of_mode,
    trace_sums,
)
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.figures.significance import benjamini_hochberg, sign_flips
from mast_tui.figures.two_by_two import FIGURES, Tables

_SHARES_OF_SAME: Final = ("true_positive_rate", "true_negative_rate", "raw_agreement")
"""Figures that are shares of the same cases for both judges."""

_RIGHT: Final = (0, 3)
"""The cells in which a judge says what the reference says."""


class ComparedFigureJson(TypedDict):
    """A figure of both judges over the same units, and the first less the second."""

    first: CoefficientJson
    second: CoefficientJson
    difference: CoefficientJson


class JudgesTableJson(TypedDict):
    """Both judges over ``n`` units, by who says what the reference says, and their figures.

    ``p_value`` is whether one is right more often: McNemar's exact test where every unit is a trace
    of its own, and over several modes the test by turning round the signs of whole traces, as the
    modes of a trace hang together. None for no unit.
    """

    n: int
    both_right: int
    only_first_right: int
    only_second_right: int
    neither_right: int
    p_value: float | None
    raw_agreement: ComparedFigureJson
    true_positive_rate: ComparedFigureJson
    true_negative_rate: ComparedFigureJson
    precision: ComparedFigureJson
    f1: ComparedFigureJson
    cohen_kappa: ComparedFigureJson
    gwet_ac1: ComparedFigureJson


class JudgesModeJson(JudgesTableJson):
    """One mode; ``p_adjusted`` is corrected over the modes (Benjamini and Hochberg)."""

    slug: str
    name: str
    p_adjusted: float | None


class JudgesComparedJson(TypedDict):
    """Two judges beside one reference.

    ``traces`` are those with a unit of both, ``units`` the units; ``left_out`` counts the units of
    the first and of the second alone. ``judge_seen_counted`` is always False: verdicts that came
    about with a judge on screen never count here.
    """

    taxonomy: str
    judges: list[str]
    against: str
    judge_seen_counted: bool
    bootstrap: BootstrapJson
    traces: int
    units: int
    left_out: list[int]
    modes: dict[str, JudgesModeJson]
    pooled: JudgesTableJson


def judges_compared(
    first: JudgeInput,
    second: JudgeInput,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> JudgesComparedJson:
    """Compare two judges on the same units.

    Differences of rates of one mode, which are shares of the same traces, have Newcombe's paired
    interval; all others are by leaving out and resampling traces, in both judges at once.

    Args:
        first: One judge beside the reference.
        second: Another one beside the same reference.
        rounds: How many resamples; 0 leaves out the intervals that need them.
        seed: What the resamples are drawn from.

    Returns:
        The document, ready for any JSON writer.

    Raises:
        ValueError: Both are one judge, or their taxonomies or references differ.
    """
    if first.judge == second.judge:
        raise ValueError(f"{first.judge!r} cannot be compared with itself")
    if first.taxonomy_ref != second.taxonomy_ref or first.reference.name != second.reference.name:
        raise ValueError("two judges are compared under one taxonomy, beside one reference")
    found = compared(first), compared(second)
    shared = [unit for unit in found[0].judge if unit in found[1].judge]
    sides = [Compared({unit: one.judge[unit] for unit in shared}, one.reference) for one in found]
    slugs = [slug for slug, _, _ in first.modes]
    # Traces × modes × judges × the four cells of a table.
    cells = np.stack([features(one, slugs) for one in sides], axis=2)
    # Both have the same traces, and so the same resamples.
    sums = [trace_sums(one, slugs, rounds=rounds, seed=seed) for one in sides]
    modes: dict[str, JudgesModeJson] = {}
    for i, (slug, code, name) in enumerate(first.modes):
        pair = [one.mode(i) for one in sums]
        modes[code] = {
            "slug": slug,
            "name": name,
            **_table(pair, cells[:, [i]], of_mode=True),
            "p_adjusted": None,
        }
    adjusted = benjamini_hochberg([mode["p_value"] for mode in modes.values()])
    for mode, p in zip(modes.values(), adjusted, strict=True):
        mode["p_adjusted"] = p
    return {
        "taxonomy": first.taxonomy_ref,
        "judges": [first.judge, second.judge],
        "against": first.reference.name,
        "judge_seen_counted": False,
        "bootstrap": bootstrap_json(rounds, seed),
        "traces": len(cells),
        "units": len(shared),
        "left_out": [len(one.judge) - len(shared) for one in found],
        "modes": modes,
        "pooled": _table([one.pooled() for one in sums], cells, of_mode=False),
    }


def _table(pair: Sequence[TraceSums], cells: Tables, *, of_mode: bool) -> JudgesTableJson:
    """The figures of both; ``cells`` are traces × modes × judges × 4, of the modes meant."""
    told = cells.sum(axis=-1)[..., 0] > 0
    right = cells[..., _RIGHT].sum(axis=-1) > 0
    one, other = right[..., 0] & told, right[..., 1] & told
    each = (one.astype(np.int64) - other).sum(axis=1)
    n = int(told.sum())
    figures = figures_of_mode if of_mode else figures_of
    firsts, seconds = figures(pair[0]), figures(pair[1])
    differences = {name: _difference(name, pair, (firsts[name], seconds[name])) for name in FIGURES}
    if of_mode:
        differences |= _of_shares(differences, cells[:, 0])
    return cast(
        "JudgesTableJson",
        {
            "n": n,
            "both_right": int((one & other).sum()),
            "only_first_right": int((one & ~other).sum()),
            "only_second_right": int((other & ~one).sum()),
            "neither_right": int((told & ~one & ~other).sum()),
            "p_value": sign_flips(each.tolist()) if n else None,
            **{
                name: {
                    "first": firsts[name].to_json(),
                    "second": seconds[name].to_json(),
                    "difference": differences[name].to_json(),
                }
                for name in FIGURES
            },
        },
    )


def _difference(
    name: str, pair: Sequence[TraceSums], both: tuple[Coefficient, Coefficient]
) -> Coefficient:
    """A figure of the first judge less that of the second, by resampling traces."""
    first, second = both
    if first.value is None or second.value is None:
        return Coefficient(undefined=first.undefined or second.undefined)
    value = first.value - second.value
    withheld = _withheld(both)
    if withheld is not None:
        return Coefficient(value, withheld=withheld)
    if pair[0].without is None or pair[1].without is None:
        return Coefficient(value)
    figure = FIGURES[name]
    # The interval is made on a scale from -1 to 1, and coefficients may lie 2 apart.
    width = 1 - scale_of_mean(name).lowest
    half = spread_coefficient(
        value / width,
        (figure(pair[0].resampled) - figure(pair[1].resampled)) / width,
        (figure(pair[0].without) - figure(pair[1].without)) / width,
        Scale(-1.0),
    )
    ends = half.ci
    return Coefficient(
        value,
        ci=None if ends is None else (width * ends[0], width * ends[1]),
        withheld=half.withheld,
    )


def _withheld(both: tuple[Coefficient, Coefficient]) -> tuple[Withheld, int] | None:
    """Why no interval of a difference would hold: it would not for one of the figures."""
    reasons = [one.withheld for one in both if one.withheld is not None]
    return max(reasons, key=lambda reason: reason[1]) if reasons else None


def _of_shares(
    differences: Mapping[str, Coefficient], cells: NDArray[np.float64]
) -> dict[str, Coefficient]:
    """Differences of rates of one mode with Newcombe's paired interval.

    ``cells`` are traces × judges × 4. Which of them a rate is of hangs on the reference alone, so
    it is of the same traces for both judges.
    """
    found: dict[str, Coefficient] = {}
    for name in _SHARES_OF_SAME:
        hit_cells, other_cells = SHARES[name]
        of = [*hit_cells, *other_cells]
        value = differences[name].value
        if value is None:
            continue
        here = cells[:, 0, of].sum(axis=-1) > 0
        hits = cells[here][..., _RIGHT].sum(axis=-1) > 0
        one, other = hits[:, 0], hits[:, 1]
        counts = [int(x.sum()) for x in (one & other, one & ~other, ~one & other, ~one & ~other)]
        found[name] = Coefficient(value, ci=newcombe_paired(*counts))
    return found
