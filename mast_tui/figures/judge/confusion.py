"""Which words of a judge and its reference can be compared, and what had to be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import Coefficient, CoefficientJson, mean_of_defined
from mast_tui.figures.bootstrap import ratio, resampled_sums
from mast_tui.figures.intervals import share
from mast_tui.figures.jackknife import scale_of_mean, spread_coefficient, why_no_mean_interval
from mast_tui.figures.judge.input import JudgeInput, Unit
from mast_tui.figures.significance import benjamini_hochberg, mcnemar
from mast_tui.figures.two_by_two import FIGURES, Tables, coefficient
from mast_tui.labels import VerdictValue

_DEFINITE: Final = (VerdictValue.PRESENT, VerdictValue.ABSENT)


@dataclass(frozen=True, slots=True)
class Compared:
    """The units (trace × mode) on which judge and reference have said present or absent.

    Values say present. ``left_out`` counts by mode, under the reason: ``judge_seen`` verdicts of
    the reference came about with a judge on screen, ``unsure_judge`` and ``unsure_reference`` are
    no verdicts, ``unresolved`` nobody has settled yet; ``doubtful`` has the judge's word on these.
    ``examples`` counts traces that stood in the judge's prompt.
    """

    judge: Mapping[Unit, bool]
    reference: Mapping[Unit, bool]
    left_out: Mapping[str, Counter[str]] = field(default_factory=dict)
    examples: int = 0
    doubtful: Mapping[Unit, bool] = field(default_factory=dict)

    @property
    def traces(self) -> list[str]:
        """The traces with any such unit, sorted."""
        return sorted({trace for trace, _ in self.judge})

    def resolved_as(self, present: bool) -> Compared:
        """Return the same with all that is unresolved taken for present, or for absent."""
        return replace(
            self,
            judge={**self.judge, **self.doubtful},
            reference={**self.reference, **dict.fromkeys(self.doubtful, present)},
        )


REASONS: Final = ("judge_seen", "unsure_judge", "unsure_reference", "unresolved")


def compared(given: JudgeInput, *, with_seen: bool = False) -> Compared:
    """Tell what can be compared.

    Args:
        given: What the judge said, and what it is measured by.
        with_seen: Whether verdicts of the reference count that came about with a judge on screen.
    """
    left_out: dict[str, Counter[str]] = {reason: Counter() for reason in REASONS}
    unresolved = given.reference.unresolved & given.verdicts.keys()
    left_out["unresolved"].update(
        mode for trace_id, mode in unresolved if trace_id not in given.examples
    )
    doubtful = {
        unit: given.verdicts[unit] is VerdictValue.PRESENT
        for unit in unresolved
        if unit[0] not in given.examples and given.verdicts[unit] in _DEFINITE
    }
    judge: dict[Unit, bool] = {}
    reference: dict[Unit, bool] = {}
    examples: set[str] = set()
    for unit, true in given.reference.verdicts.items():
        trace_id, mode = unit
        said = given.verdicts.get(unit)
        if said is None:
            continue
        if trace_id in given.examples:
            examples.add(trace_id)
        elif unit in given.reference.seen and not with_seen:
            left_out["judge_seen"][mode] += 1
        elif true not in _DEFINITE:
            left_out["unsure_reference"][mode] += 1
        elif said not in _DEFINITE:
            left_out["unsure_judge"][mode] += 1
        else:
            judge[unit] = said is VerdictValue.PRESENT
            reference[unit] = true is VerdictValue.PRESENT
    return Compared(judge, reference, left_out, len(examples), doubtful)


def features(found: Compared, modes: Sequence[str]) -> NDArray[np.float64]:
    """Give for each unit the one table that it adds to.

    Args:
        found: What was compared.
        modes: Slugs, in the order of the columns.

    Returns:
        Zeros and ones, traces × modes × (TP, FP, FN, TN), the traces as ``found.traces``.
    """
    rows = {trace: i for i, trace in enumerate(found.traces)}
    columns = {mode: i for i, mode in enumerate(modes)}
    cells = np.zeros((len(rows), len(columns), 4))
    for (trace, mode), said in found.judge.items():
        if mode in columns:
            cell = 3 - 2 * said - found.reference[trace, mode]
            cells[rows[trace], columns[mode], cell] = 1
    return cells


@dataclass(frozen=True, slots=True)
class TraceSums:
    """The tables of all modes, in their order, summed over traces; the last axis is a table.

    ``total`` is modes × 4; ``resampled`` rounds × modes × 4, the sums in each resample, none
    without rounds; ``without`` traces × modes × 4, the sums with each trace left out in turn, None
    without rounds.
    """

    total: NDArray[np.float64]
    resampled: NDArray[np.float64]
    without: NDArray[np.float64] | None

    def mode(self, place: int) -> TraceSums:
        """The one table of a mode."""
        without = None if self.without is None else self.without[:, place]
        return TraceSums(self.total[place], self.resampled[:, place], without)

    def pooled(self) -> TraceSums:
        """One table of all modes together."""
        without = None if self.without is None else self.without.sum(axis=1)
        return TraceSums(self.total.sum(axis=0), self.resampled.sum(axis=1), without)


def trace_sums(found: Compared, modes: Sequence[str], *, rounds: int, seed: int) -> TraceSums:
    """Sum the tables of what was compared over traces.

    Args:
        found: What was compared.
        modes: Slugs, in the order of the tables.
        rounds: How many resamples of the traces; none gives no sums without each trace either.
        seed: What they are drawn from.
    """
    cells = features(found, modes)
    total = cells.sum(axis=0)
    flat = resampled_sums(cells.reshape(len(cells), total.size), rounds, seed)
    resampled = flat.reshape(-1, *total.shape)
    return TraceSums(total, resampled, total - cells if len(resampled) else None)


SHARES: Final[Mapping[str, tuple[list[int], list[int]]]] = {
    "true_positive_rate": ([0], [2]),
    "true_negative_rate": ([3], [1]),
    "precision": ([0], [1]),
    "raw_agreement": ([0, 3], [1, 2]),
}
"""Of which counts of a table (TP, FP, FN, TN) a rate is a share: its hits, and the rest."""

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


def figures_by_mode(
    found: Compared, sums: TraceSums, modes: Sequence[tuple[str, str, str]]
) -> dict[str, JudgeModeJson]:
    """Give the figures of each mode, by its code.

    Args:
        found: What was compared.
        sums: Its sums; without resamples there are no intervals but those of shares.
        modes: The slug, code and name of each mode.
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
    return by_mode


def pooled_table(found: Compared, sums: TraceSums) -> JudgeTableJson:
    """Give the figures of all units together; see ``figures_by_mode``."""
    every = sums.pooled()
    left = {reason: found.left_out[reason].total() for reason in REASONS}
    return _table(every.total, figures_of(every), left)


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
    for name, (hits, rest) in SHARES.items():
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


def macro_means(sums: TraceSums) -> JudgeMacroJson:
    """Means over the modes; in each resample over those where the figure is defined there."""
    means: dict[str, Coefficient] = {}
    defined: dict[str, int] = {}
    for name, figure in FIGURES.items():
        of_modes = [coefficient(figure, table, _NONE) for table in sums.total]
        mean, defined[name] = mean_of_defined(of_modes)
        if mean.value is not None and sums.without is not None:
            rest = _row_means(figure(sums.without))
            values = _row_means(figure(sums.resampled))
            withheld = why_no_mean_interval(name, len(rest), 2)
            value = mean.value
            if withheld is not None:
                mean = Coefficient(value, withheld=withheld)
            else:
                mean = spread_coefficient(value, values, rest, scale_of_mean(name))
        means[name] = mean
    return {**_json(means), "modes_defined": defined}


def _row_means(values: Tables) -> Tables:
    """The mean of each row's defined values, NaN where there is none."""
    defined = ~np.isnan(values)
    counts = defined.sum(axis=1).astype(np.float64)
    return ratio(np.where(defined, values, 0).sum(axis=1), counts)


def _json(figures: Mapping[str, Coefficient]) -> FiguresJson:
    return cast("FiguresJson", {name: one.to_json() for name, one in figures.items()})
