"""Figures of a judge against a reference, computed from their 2 × 2 table.

The last axis of a table has the counts TP, FP, FN and TN; the reference's answers are the true
ones. Every function accepts any number of tables and returns NaN for an undefined figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from mast_tui.figures.bootstrap import Floats, ratio
from mast_tui.figures.jackknife import (
    Scale,
    Spread,
    Support,
    least_over_chance,
    why_no_interval,
)
from mast_tui.figures.record import STATISTICS, Figure

Tables = Floats
TableFormula = Callable[[Tables], Floats]


def raw_agreement(tables: Tables) -> Floats:
    """Return the share of units on which both agree."""
    return ratio(tables[..., 0] + tables[..., 3], tables.sum(axis=-1))


def true_positive_rate(tables: Tables) -> Floats:
    """Return the share of the reference's presents that the judge calls present (sensitivity)."""
    return ratio(tables[..., 0], tables[..., 0] + tables[..., 2])


def true_negative_rate(tables: Tables) -> Floats:
    """Return the share of the reference's absents that the judge calls absent (specificity)."""
    return ratio(tables[..., 3], tables[..., 3] + tables[..., 1])


def precision(tables: Tables) -> Floats:
    """Return the share of the judge's presents that the reference calls present."""
    return ratio(tables[..., 0], tables[..., 0] + tables[..., 1])


def f1(tables: Tables) -> Floats:
    """Return 2·TP / (2·TP + FP + FN), which is also the positive agreement."""
    return ratio(2 * tables[..., 0], 2 * tables[..., 0] + tables[..., 1] + tables[..., 2])


def cohen_kappa(tables: Tables) -> Floats:
    """Return Cohen's κ (1960)."""
    n, agreed, by_chance = _agreement_counts(tables)
    return ratio(n * agreed - by_chance, n * n - by_chance)


def least_kappa(tables: Tables) -> Floats:
    """Return the least possible value of Cohen's κ with the margins of each table.

    κ is least if judge and reference never give the rarer answer on the same unit. It is 0 if one
    of them gives only one answer, and NaN if all answers are the same.
    """
    n = tables.sum(axis=-1)
    # The number of rarer answers of the judge and of the reference.
    present = np.stack((tables[..., 0] + tables[..., 1], tables[..., 0] + tables[..., 2]))
    rarer = np.where(present.sum(axis=0) > n, n - present, present)
    product = rarer.prod(axis=0)
    return -ratio(2 * product, n * rarer.sum(axis=0) - 2 * product)


def gwet_ac1(tables: Tables) -> Floats:
    """Return Gwet's AC1 (2008) of present and absent, NaN if only one of them occurs."""
    n, agreed, _ = _agreement_counts(tables)
    # The presents of both sides.
    present = 2 * tables[..., 0] + tables[..., 1] + tables[..., 2]
    # Chance agreement is 2·q·(1 - q) with q = present / 2n. All terms are multiplied by 2n² to have
    # whole numbers.
    by_chance = present * (2 * n - present)
    return ratio(
        np.where(by_chance == 0, 0, 2 * n * agreed - by_chance),
        np.where(by_chance == 0, 0, 2 * n * n - by_chance),
    )


def _agreement_counts(tables: Tables) -> tuple[Floats, Floats, Floats]:
    """Return the numbers of units n and of equal answers, and n² times the chance agreement."""
    tp, fp, fn, tn = np.moveaxis(tables, -1, 0)
    by_chance = (tp + fp) * (tp + fn) + (tn + fn) * (tn + fp)
    return tables.sum(axis=-1), tp + tn, by_chance


FIGURES: Final[Mapping[str, TableFormula]] = {
    "raw_agreement": raw_agreement,
    "true_positive_rate": true_positive_rate,
    "true_negative_rate": true_negative_rate,
    "precision": precision,
    "f1": f1,
    "cohen_kappa": cohen_kappa,
    "gwet_ac1": gwet_ac1,
}
"""The formulas of a judge's figures, by their names in the report."""


@dataclass(frozen=True, slots=True)
class JudgeTables:
    """Tables (TP, FP, FN, TN), summed over traces.

    Attributes:
        total: The sums over all traces; the last axis has the four cells.
        spread: The sums in resamples and without each trace; None for no intervals.
    """

    total: Tables
    spread: Spread | None = None

    def mode(self, mode_index: int) -> JudgeTables:
        """Return the table of one mode; the sums must have a table for each mode."""
        spread = self.spread and self.spread.of(lambda sums: sums[:, mode_index])
        return JudgeTables(self.total[mode_index], spread)

    def pooled(self) -> JudgeTables:
        """Return one table of all modes together."""
        spread = self.spread and self.spread.of(lambda sums: sums.sum(axis=1))
        return JudgeTables(self.total.sum(axis=0), spread)


def coefficient(name: str, sums: JudgeTables) -> Figure:
    """Return a figure of one table with its interval.

    Args:
        name: The name of the figure, one of ``FIGURES``.
        sums: The table; without a spread there is no interval.

    Returns:
        The figure. It is undefined without units (``no_overlap``), for agreement over chance on one
        unit (``single_trace``), or if the formula has no value (``no_variance``).
    """
    table = sums.total
    figure = FIGURES[name]
    value = float(figure(table))
    if not table.sum():
        return Figure(reason="no_overlap")
    if table.sum() == 1 and STATISTICS[name].over_chance:
        return Figure(reason="single_trace")
    if np.isnan(value):
        return Figure(reason="no_variance")
    if sums.spread is None:
        return Figure(value=value)
    trace_tables = table - sums.spread.left_out
    support = _support_of_table(table, trace_tables)
    scale = _scale_of_figure(name, table, support, trace_tables)
    return sums.spread.of(figure).coefficient(value, scale, why_no_interval(name, support))


def _support_of_table(table: Tables, trace_tables: Tables) -> Support:
    """Return the numbers of traces, units and answers on which a table rests.

    ``table`` has the counts TP, FP, FN, TN, and ``trace_tables`` has a row of these for each trace.
    """
    unit_count = int(table.sum())
    present = float(2 * table[0] + table[1] + table[2]) / 2  # the mean of judge and reference
    return Support(
        traces=int((trace_tables != 0).any(axis=-1).sum()),
        units=unit_count,
        present=present,
        absent=unit_count - present,
        # The traces with the rarer answer.
        rare_traces=min(
            _traces_with(trace_tables, cells) for cells in (_WITH_PRESENT, _WITH_ABSENT)
        ),
    )


_WITH_PRESENT: Final = slice(0, 3)
"""The cells of a table with at least one present."""
_WITH_ABSENT: Final = slice(1, 4)
"""The cells of a table with at least one absent."""


def _traces_with(trace_tables: Tables, cells: slice) -> int:
    """Count the traces with a unit in any of the cells of their tables."""
    return int((trace_tables[:, cells].sum(axis=-1) > 0).sum())


def _scale_of_figure(name: str, table: Tables, support: Support, trace_tables: Tables) -> Scale:
    """Return the range of possible values of a figure, with its number of cases.

    The number of cases is 0 (unknown) if traces have several units, which are not independent. F1
    and κ rest on the traces with one of the two answers.
    """
    if support.units == support.traces:
        all_traces = support.traces
        rare_traces = support.rare_traces
        traces_with_present = _traces_with(trace_tables, _WITH_PRESENT)
    else:
        all_traces = rare_traces = traces_with_present = 0
    if name == "raw_agreement":
        return Scale(0.0, all_traces)
    if name == "f1":
        return Scale(0.0, traces_with_present, on_one_answer=True)
    if name == "cohen_kappa":
        lowest = float(least_kappa(table))
        return Scale(lowest, rare_traces if lowest < 0 else 0, on_one_answer=True)
    if name == "gwet_ac1":
        share = support.present / support.units
        return Scale(least_over_chance(2 * share * (1 - share)), all_traces)
    return Scale(0.0)
