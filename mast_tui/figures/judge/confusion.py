"""The units on which a judge and its reference can be compared, and their figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from mast_tui.figures.bootstrap import Floats, Resampling, mean_of_defined_values
from mast_tui.figures.intervals import share
from mast_tui.figures.jackknife import scale_of_mean, spread_of_traces, why_no_mean_interval
from mast_tui.figures.judge.input import JudgeInput, Unit
from mast_tui.figures.record import Figure, FigureScope, mean_of_defined
from mast_tui.figures.significance import benjamini_hochberg, mcnemar
from mast_tui.figures.two_by_two import FIGURES, JudgeTables, Tables, coefficient
from mast_tui.labels import VerdictValue

DEFINITE: Final = (VerdictValue.PRESENT, VerdictValue.ABSENT)
"""The verdicts that are compared."""


@dataclass(frozen=True, slots=True)
class ComparedUnits:
    """The units (trace × mode) on which judge and reference both say present or absent.

    Attributes:
        judge: The judge's verdict on each unit: True for present.
        reference: The reference's verdict on each unit: True for present.
        left_out: The number of other units by reason, then by mode; the reasons are ``REASONS``.
        examples: The number of traces left out because they are in the judge's prompt.
        doubtful: The judge's verdicts on units with an unresolved disagreement: True for present.
    """

    judge: Mapping[Unit, bool]
    reference: Mapping[Unit, bool]
    left_out: Mapping[str, Counter[str]] = field(default_factory=dict)
    examples: int = 0
    doubtful: Mapping[Unit, bool] = field(default_factory=dict)

    @property
    def traces(self) -> list[str]:
        """The sorted ids of the traces with a compared unit."""
        return sorted({trace for trace, _ in self.judge})

    def resolved_as(self, *, present: bool) -> ComparedUnits:
        """Return a copy that also compares the unresolved units, as present or as absent."""
        return replace(
            self,
            judge={**self.judge, **self.doubtful},
            reference={**self.reference, **dict.fromkeys(self.doubtful, present)},
        )


REASONS: Final = ("judge_seen", "unsure_judge", "unsure_reference", "unresolved")
"""The reasons for which units are left out.

A judge was on screen (``judge_seen``), the judge or the reference is unsure (``unsure_judge``,
``unsure_reference``), or annotators differ and no one has decided (``unresolved``).
"""


def compared_units(judge_input: JudgeInput, *, with_seen: bool = False) -> ComparedUnits:
    """Return the units on which a judge and its reference can be compared.

    Args:
        judge_input: The verdicts of the judge and of its reference.
        with_seen: Whether to count reference verdicts that were made with a judge on screen.

    Returns:
        The compared units, and the numbers of other units by reason.
    """
    reference = judge_input.reference
    left_out: dict[str, Counter[str]] = {reason: Counter() for reason in REASONS}
    unresolved = {
        (trace_id, mode)
        for trace_id, mode in reference.unresolved & judge_input.verdicts.keys()
        if trace_id not in judge_input.examples
    }
    left_out["unresolved"].update(mode for _, mode in unresolved)
    doubtful_verdicts = {
        unit: judge_input.verdicts[unit] is VerdictValue.PRESENT
        for unit in unresolved
        if judge_input.verdicts[unit] in DEFINITE
    }
    # True for present.
    judge_says: dict[Unit, bool] = {}
    reference_says: dict[Unit, bool] = {}
    example_traces: set[str] = set()
    for unit, reference_verdict in reference.verdicts.items():
        trace_id, mode = unit
        judge_verdict = judge_input.verdicts.get(unit)
        if judge_verdict is None:
            continue
        # The judge's prompt shows the labels of its examples.
        if trace_id in judge_input.examples:
            example_traces.add(trace_id)
        elif unit in reference.seen and not with_seen:
            left_out["judge_seen"][mode] += 1
        elif reference_verdict not in DEFINITE:
            left_out["unsure_reference"][mode] += 1
        elif judge_verdict not in DEFINITE:
            left_out["unsure_judge"][mode] += 1
        else:
            judge_says[unit] = judge_verdict is VerdictValue.PRESENT
            reference_says[unit] = reference_verdict is VerdictValue.PRESENT
    return ComparedUnits(
        judge=judge_says,
        reference=reference_says,
        left_out=left_out,
        examples=len(example_traces),
        doubtful=doubtful_verdicts,
    )


def unit_cells(units: ComparedUnits, modes: Sequence[str]) -> Floats:
    """Return the cell of the 2 × 2 table of judge and reference to which each unit belongs.

    Args:
        units: The compared units.
        modes: The slugs of the modes.

    Returns:
        Zeros and ones as ``units.traces`` × ``modes`` × (TP, FP, FN, TN).
    """
    row_by_trace = {trace: row for row, trace in enumerate(units.traces)}
    column_by_mode = {mode: column for column, mode in enumerate(modes)}
    cells = np.zeros((len(row_by_trace), len(column_by_mode), 4))
    for (trace, mode), judge_says_present in units.judge.items():
        if mode in column_by_mode:
            reference_says_present = units.reference[trace, mode]
            # 0 is TP, 1 FP, 2 FN, 3 TN.
            cell = 2 * (not judge_says_present) + (not reference_says_present)
            cells[row_by_trace[trace], column_by_mode[mode], cell] = 1
    return cells


def trace_sums(units: ComparedUnits, modes: Sequence[str], resampling: Resampling) -> JudgeTables:
    """Sum the tables of all modes over all traces, over resamples, and without each trace in turn.

    Args:
        units: The compared units.
        modes: The slugs of the modes, in the order of the tables.
        resampling: The resamples of the traces.
    """
    cells = unit_cells(units, modes)
    return JudgeTables(cells.sum(axis=0), spread_of_traces(cells, resampling))


SHARES: Final[Mapping[str, tuple[list[int], list[int]]]] = {
    "true_positive_rate": ([0], [2]),
    "true_negative_rate": ([3], [1]),
    "precision": ([0], [1]),
    "raw_agreement": ([0, 3], [1, 2]),
}
"""The cells (TP, FP, FN, TN) that each rate is a share of: its hits, and the rest."""


def judge_figures(
    judge_input: JudgeInput, units: ComparedUnits, sums: JudgeTables
) -> Iterator[Figure]:
    """Yield the figures of each mode, their means over the modes, and those of all units pooled.

    Args:
        judge_input: The judge and the modes.
        units: The verdicts of the judge and its reference by unit (trace × mode).
        sums: The true and false positives and negatives by mode; without resamples, only shares
            have intervals.
    """
    mode_tables = [sums.mode(mode_index) for mode_index in range(len(judge_input.modes))]
    p_values = [_mcnemar_p(table.total) for table in mode_tables]
    adjusted = benjamini_hochberg(p_values)
    for mode_index, mode in enumerate(judge_input.modes):
        left_out = {reason: units.left_out[reason][mode.slug] for reason in REASONS}
        scope = judge_input.scope("judge_mode", [mode.slug], mode=mode.code)
        table = mode_tables[mode_index]
        yield from _table_figures(scope, table.total, figures_of_mode(table), left_out)
        yield scope.number("mcnemar_p_adjusted", adjusted[mode_index])
    slugs = judge_input.slugs
    yield from _macro_figures(judge_input.scope("judge_macro", slugs), sums)
    pooled = sums.pooled()
    left_out = {reason: units.left_out[reason].total() for reason in REASONS}
    scope = judge_input.scope("judge_pooled", slugs)
    yield from _table_figures(scope, pooled.total, figures_of(pooled), left_out)


def figures_of(sums: JudgeTables) -> dict[str, Figure]:
    """Return every figure of one table by name, with intervals by resampling traces."""
    return {name: coefficient(name, sums) for name in FIGURES}


def figures_of_mode(sums: JudgeTables) -> dict[str, Figure]:
    """Return every figure of the table of one mode by name.

    Each unit is a different trace, so a rate has Wilson's interval.
    """
    table = sums.total
    figures = figures_of(sums)
    for name, (hits, misses) in SHARES.items():
        if figures[name].value is not None:
            # ``hits`` and ``misses`` are lists of cells.
            figures[name] = share(int(table[hits].sum()), int(table[hits + misses].sum()))
    return figures


def _mcnemar_p(table: Tables) -> float | None:
    """Return McNemar's p of a table; None without units."""
    return mcnemar(int(table[1]), int(table[2])) if table.sum() else None


_CELLS: Final = ("true_positives", "false_positives", "false_negatives", "true_negatives")


def _table_figures(
    scope: FigureScope,
    table: Tables,
    figures: Mapping[str, Figure],
    left_out: Mapping[str, int],
) -> Iterator[Figure]:
    """Yield the counts, prevalences and figures of a table, then the units left out by reason."""
    tp, fp, fn, tn = (int(count) for count in table)
    unit_count = tp + fp + fn + tn
    yield scope.number("n", unit_count)
    yield from scope.counts(dict(zip(_CELLS, (tp, fp, fn, tn), strict=True)))
    for side, present_count in (("judge", tp + fp), ("reference", tp + fn)):
        share_present = present_count / unit_count if unit_count else None
        reason = "" if unit_count else "no_overlap"
        yield scope.number("prevalence", share_present, condition=side, n=unit_count, reason=reason)
    for name, figure in figures.items():
        yield scope.figure(name, figure)
    yield scope.number("mcnemar_p", _mcnemar_p(table))
    yield from replace(scope, name=f"{scope.name}_left_out").counts(left_out)


def _macro_figures(scope: FigureScope, sums: JudgeTables) -> Iterator[Figure]:
    """Yield the mean of each figure over the modes, then the number of modes with the figure.

    In each resample, the mean is over the modes with a defined figure in that resample.
    """
    modes_defined: dict[str, int] = {}
    for name, formula in FIGURES.items():
        mode_coefficients = [coefficient(name, JudgeTables(table)) for table in sums.total]
        mean, modes_defined[name] = mean_of_defined(mode_coefficients)
        value = mean.value
        if value is not None and sums.spread is not None:
            withheld = why_no_mean_interval(name, len(sums.spread.left_out), ratings=2)
            means = sums.spread.of(formula).of(partial(mean_of_defined_values, axis=1))
            mean = means.coefficient(value, scale_of_mean(name), withheld)
        yield scope.figure(name, mean)
    for name, mode_count in modes_defined.items():
        yield scope.number("modes_defined", mode_count, condition=name)
