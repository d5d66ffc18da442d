"""How good a judge is beside a reference, per mode, over all, and as the mean over the modes.

Rates of one mode have Wilson intervals. All other intervals are by resampling traces, jointly for
all modes, since the modes of a trace are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict, cast

import numpy as np

from mast_tui.figures.agreement.coefficients import Coefficient, CoefficientJson, mean_of_defined
from mast_tui.figures.intervals import share
from mast_tui.figures.jackknife import lowest_of, spread_interval, withheld_of_mean
from mast_tui.figures.judge.confusion import REASONS, Compared, TraceSums
from mast_tui.figures.significance import benjamini_hochberg, mcnemar
from mast_tui.figures.two_by_two import FIGURES, Tables, coefficient

# Of which counts of a table (TP, FP, FN, TN) a rate is a share, its hits first, then the rest.
_SHARES: Final[Mapping[str, tuple[list[int], list[int]]]] = {
    "true_positive_rate": ([0], [2]),
    "true_negative_rate": ([3], [1]),
    "precision": ([0], [1]),
    "raw_agreement": ([0, 3], [1, 2]),
}

_NONE: Final = np.empty((0, 4))
"""No resamples."""


class FiguresJson(TypedDict):
    """Every figure of one table of a judge and its reference."""

    raw_agreement: CoefficientJson
    true_positive_rate: CoefficientJson
    true_negative_rate: CoefficientJson
    precision: CoefficientJson
    f1: CoefficientJson
    cohen_kappa: CoefficientJson
    gwet_ac1: CoefficientJson


class JudgeTableJson(FiguresJson):
    """One table: its n units and four counts, how often each says present, and the figures.

    ``mcnemar_p`` is whether the judge says 'present' more or less often than the reference, None
    for no unit. ``left_out`` are verdicts that could not be counted, by the reason.
    """

    n: int
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    prevalence: dict[str, float | None]
    mcnemar_p: float | None
    left_out: dict[str, int]


class JudgeModeJson(JudgeTableJson):
    """One mode, with what it is called; ``mcnemar_p_adjusted`` is corrected over the modes."""

    slug: str
    name: str
    mcnemar_p_adjusted: float | None


class JudgeMacroJson(FiguresJson):
    """Means over the modes where a figure is defined, and how many modes those are."""

    modes_defined: dict[str, int]


@dataclass(frozen=True, slots=True)
class Quality:
    """The figures of a judge: by mode code, as means over the modes, and of all units together."""

    modes: dict[str, JudgeModeJson]
    macro: JudgeMacroJson
    pooled: JudgeTableJson


def quality(found: Compared, sums: TraceSums, modes: Sequence[tuple[str, str, str]]) -> Quality:
    """The figures of what was compared; ``sums`` are of the ``modes`` (slug, code, name).

    Without resamples there are no intervals but those of shares.
    """
    by_mode: dict[str, JudgeModeJson] = {}
    for i, (slug, code, name) in enumerate(modes):
        own = sums.mode(i)
        left = {reason: found.left_out[reason][slug] for reason in REASONS}
        table = _table(own.total, figures_of_mode(own), left)
        by_mode[code] = {"slug": slug, "name": name, **table, "mcnemar_p_adjusted": None}
    adjusted = benjamini_hochberg([mode["mcnemar_p"] for mode in by_mode.values()])
    for mode, p in zip(by_mode.values(), adjusted, strict=True):
        mode["mcnemar_p_adjusted"] = p
    every = sums.pooled()
    left = {reason: found.left_out[reason].total() for reason in REASONS}
    return Quality(by_mode, _macro(sums), _table(every.total, figures_of(every), left))


def figures_of(sums: TraceSums) -> dict[str, Coefficient]:
    """Give every figure of one table, with intervals by resampling traces."""
    return {
        name: coefficient(figure, sums.total, sums.resampled, sums.without)
        for name, figure in FIGURES.items()
    }


def figures_of_mode(sums: TraceSums) -> dict[str, Coefficient]:
    """Give every figure of the table of one mode.

    There every unit is a trace of its own, so that rates are shares, with Wilson intervals.
    """
    table, figures = sums.total, figures_of(sums)
    for name, (hits, rest) in _SHARES.items():
        if figures[name].value is not None:
            figures[name] = share(int(table[hits].sum()), int(table[hits + rest].sum()))
    return figures


def _table(
    table: Tables, figures: Mapping[str, Coefficient], left: dict[str, int]
) -> JudgeTableJson:
    tp, fp, fn, tn = (int(count) for count in table)
    n = tp + fp + fn + tn
    return {
        "n": n,
        "true_positives": tp,
        "false_positives": fp,
        "false_negatives": fn,
        "true_negatives": tn,
        "prevalence": {
            "judge": (tp + fp) / n if n else None,
            "reference": (tp + fn) / n if n else None,
        },
        **_json(figures),
        "mcnemar_p": mcnemar(fp, fn) if n else None,
        "left_out": left,
    }


def _macro(sums: TraceSums) -> JudgeMacroJson:
    """Means over the modes; in each resample over those where the figure is defined there."""
    means: dict[str, Coefficient] = {}
    defined: dict[str, int] = {}
    for name, figure in FIGURES.items():
        of_modes = [coefficient(figure, table, _NONE) for table in sums.total]
        mean, defined[name] = mean_of_defined(of_modes)
        if mean.value is not None and sums.without is not None:
            rest = _row_means(figure(sums.without))
            values = _row_means(figure(sums.resampled))
            withheld = withheld_of_mean(name, len(rest), 2)
            ci = None
            if withheld is None:
                ci = spread_interval(mean.value, values, rest, lowest=lowest_of(name))
            mean = Coefficient(mean.value, ci=ci, withheld=withheld)
        means[name] = mean
    return {**_json(means), "modes_defined": defined}


def _row_means(values: Tables) -> Tables:
    """The mean of each row's defined values, NaN where there is none."""
    defined = ~np.isnan(values)
    counts = defined.sum(axis=1)
    sums = np.where(defined, values, 0).sum(axis=1)
    means: Tables = np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)
    return means


def _json(figures: Mapping[str, Coefficient]) -> FiguresJson:
    return cast("FiguresJson", {name: one.to_json() for name, one in figures.items()})
