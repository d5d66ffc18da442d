"""Figures of a judge beside a reference, as functions of the four counts of their table.

A table is an array whose last axis holds TRUE POSITIVES, FALSE POSITIVES, FALSE NEGATIVES and TRUE
NEGATIVES, the reference's word being the true one. Every function takes any number of tables at
once and gives NaN where its figure is undefined, so that the estimate and all its resamples are
the same function of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import Coefficient
from mast_tui.figures.bootstrap import ratio
from mast_tui.figures.jackknife import (
    Scale,
    Support,
    least_over_chance,
    spread_coefficient,
    why_no_interval,
)

Tables = NDArray[np.float64]
Values = NDArray[np.float64]
TableFormula = Callable[[Tables], Values]


def raw_agreement(tables: Tables) -> Values:
    """Return the share of units on which both agree."""
    return ratio(tables[..., 0] + tables[..., 3], tables.sum(axis=-1))


def true_positive_rate(tables: Tables) -> Values:
    """Return the share of the reference's presents that the judge calls present (sensitivity)."""
    return ratio(tables[..., 0], tables[..., 0] + tables[..., 2])


def true_negative_rate(tables: Tables) -> Values:
    """Return the share of the reference's absents that the judge calls absent (specificity)."""
    return ratio(tables[..., 3], tables[..., 3] + tables[..., 1])


def precision(tables: Tables) -> Values:
    """Return the share of the judge's presents that the reference calls present."""
    return ratio(tables[..., 0], tables[..., 0] + tables[..., 1])


def f1(tables: Tables) -> Values:
    """Return 2·TP / (2·TP + FP + FN), which is also the positive agreement."""
    return ratio(2 * tables[..., 0], 2 * tables[..., 0] + tables[..., 1] + tables[..., 2])


def cohen_kappa(tables: Tables) -> Values:
    """Return Cohen's κ (1960)."""
    n, agreed, by_chance = _agreement_counts(tables)
    return ratio(n * agreed - by_chance, n * n - by_chance)


def least_kappa(tables: Tables) -> Values:
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


def gwet_ac1(tables: Tables) -> Values:
    """Return Gwet's AC1 (2008) of present and absent, NaN if only one of them occurs."""
    n, agreed, _ = _agreement_counts(tables)
    # The presents of both sides.
    present = 2 * tables[..., 0] + tables[..., 1] + tables[..., 2]
    # Agreement by chance is 2·q·(1 - q) with q = present / 2n. All terms are multiplied by 2n², so
    # that they are whole numbers.
    by_chance = present * (2 * n - present)
    return ratio(
        np.where(by_chance == 0, 0, 2 * n * agreed - by_chance),
        np.where(by_chance == 0, 0, 2 * n * n - by_chance),
    )


def _agreement_counts(tables: Tables) -> tuple[Values, Values, Values]:
    """Return the number n of units, that of equal answers, and n² times the share by chance."""
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
"""The figures of a judge by their names in the report."""


def coefficient(
    figure: TableFormula, table: Tables, resampled: Tables, left_out: Tables | None = None
) -> Coefficient:
    """Return a figure of one table with its interval.

    Args:
        figure: The formula of the figure, one of ``FIGURES``.
        table: The counts TP, FP, FN, TN.
        resampled: The counts in the resamples, rounds × 4; empty if no interval is needed.
        left_out: The counts without each trace in turn, traces × 4; None if no interval is needed.

    Returns:
        The figure. It is undefined without units (``no_overlap``), for agreement beyond chance on
        one unit (``single_trace``), or if the formula has no value (``no_variance``).
    """
    value = float(figure(table))
    if not table.sum():
        return Coefficient(undefined="no_overlap")
    if table.sum() == 1 and figure in (cohen_kappa, gwet_ac1):
        return Coefficient(undefined="single_trace")
    if np.isnan(value):
        return Coefficient(undefined="no_variance")
    if left_out is None or not len(resampled):
        return Coefficient(value)
    name = next(name for name, formula in FIGURES.items() if formula is figure)
    trace_tables = table - left_out
    support = _support_of_table(table, trace_tables)
    withheld = why_no_interval(name, support)
    if withheld is not None:
        return Coefficient(value, withheld=withheld)
    return spread_coefficient(
        value,
        figure(resampled),
        figure(left_out),
        _scale_of_figure(name, table, support, trace_tables),
    )


def _support_of_table(table: Tables, trace_tables: Tables) -> Support:
    """Return the numbers of traces, units and answers on which a table rests.

    ``table`` has the counts TP, FP, FN, TN, and ``trace_tables`` those of each trace in a row.
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
    """Count the traces with a unit in one of the given cells of their tables."""
    return int((trace_tables[:, cells].sum(axis=-1) > 0).sum())


def _scale_of_figure(name: str, table: Tables, support: Support, trace_tables: Tables) -> Scale:
    """Return the range of possible values of a figure, with the number of cases behind the figure.

    The number of cases is 0 (unknown) if traces have several units, which are not independent. F1
    and κ rest on the traces with one of the two answers.
    """
    has_one_unit_per_trace = support.units == support.traces
    if name == "cohen_kappa":
        lowest = float(least_kappa(table))
        return Scale(
            lowest,
            traces=support.rare_traces if has_one_unit_per_trace and lowest < 0 else 0,
            on_one_answer=True,
        )
    if name == "f1":
        return Scale(
            lowest=0.0,
            traces=_traces_with(trace_tables, _WITH_PRESENT) if has_one_unit_per_trace else 0,
            on_one_answer=True,
        )
    if name == "gwet_ac1":
        share = support.present / support.units
        by_chance = 2 * share * (1 - share)
        return Scale(least_over_chance(by_chance), support.traces if has_one_unit_per_trace else 0)
    return Scale(0.0, support.traces if has_one_unit_per_trace and name == "raw_agreement" else 0)
