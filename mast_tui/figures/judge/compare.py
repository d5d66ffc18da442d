"""Two judges against each other, on the same units.

    first, second = (judge_input_from_workspace(workspace, taxonomy, name, gold) for name in …)
    comparison = judges_compared(first, second)

A unit (trace × mode) counts if the reference and both judges say present or absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import RESAMPLING, Floats, Resampling
from mast_tui.figures.intervals import newcombe_paired
from mast_tui.figures.jackknife import Scale, Spread, scale_of_mean
from mast_tui.figures.judge.confusion import (
    SHARES,
    ComparedUnits,
    compared_units,
    figures_of,
    figures_of_mode,
    trace_sums,
    unit_cells,
)
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.figures.record import (
    Figure,
    FigureIndex,
    FigureScope,
    FigureTable,
    insert_figures,
    renamed_figures,
    scope_paths,
)
from mast_tui.figures.significance import benjamini_hochberg, sign_flips
from mast_tui.figures.two_by_two import FIGURES, JudgeTables, Tables
from mast_tui.taxonomy.model import Mode

_PATHS: Final = scope_paths("""
    judges        | judges              | no n | no subject
    judges_mode   | judges.modes.{mode} | no n | no subject
    judges_pooled | judges.pooled       | no n | no subject
""")

_SHARES_OF_SAME_CASES: Final = ("true_positive_rate", "true_negative_rate", "raw_agreement")
"""The figures that are shares of the same cases for both judges."""

_RIGHT: Final = (0, 3)
"""The cells (TP and TN) in which a judge agrees with the reference."""

_JOINT_COUNTS: Final = ("both_right", "only_first_right", "only_second_right", "neither_right")


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Two judges against one reference.

    ``p_value`` tests whether one judge is right more often. In one mode it is McNemar's exact test.
    Over several modes, the signs of whole traces are flipped, because the modes of a trace depend
    on each other. The figures of judges have the conditions ``first``, ``second`` and
    ``difference``.
    """

    taxonomy: str
    judges: tuple[str, str]
    against: str
    resampling: Resampling
    modes: tuple[Mode, ...]
    index: FigureIndex

    def table(self, scope: str) -> FigureTable:
        """Return the figures of a scope over all modes, such as ``judges_pooled``."""
        return self.index.table(scope, subject=self.judges)

    def renamed(self, names: Mapping[str, str]) -> JudgeComparison:
        """Return the comparison with other names for annotators."""
        index = FigureIndex(renamed_figures(self.index.figures, names))
        return replace(self, against=names.get(self.against, self.against), index=index)


def comparison_json(comparison: JudgeComparison) -> dict[str, Any]:
    """Return a comparison of judges as the part ``judges`` of the document of ``agree --json``.

    ``left_out`` has the number of units that only the first judge has judged, then of those that
    only the second has judged.
    """
    # Figures replace the zeros and empty objects later.
    document: dict[str, Any] = {
        "taxonomy": comparison.taxonomy,
        "judges": list(comparison.judges),
        "against": comparison.against,
        "judge_seen_counted": False,
        "bootstrap": comparison.resampling.to_json(),
        "traces": 0,
        "units": 0,
        "left_out": {},
        "modes": {mode.code: {"slug": mode.slug, "name": mode.name} for mode in comparison.modes},
        "pooled": {},
    }
    insert_figures(comparison.index.figures, _PATHS, {"judges": document})
    # The figures were inserted under the keys "first" and "second".
    document["left_out"] = list(document["left_out"].values())
    return document


def judges_compared(
    first: JudgeInput,
    second: JudgeInput,
    resampling: Resampling = RESAMPLING,
) -> JudgeComparison:
    """Compare two judges with the same reference, on the units that both have judged.

    Differences of the rates of one mode have Newcombe's paired interval. Other differences have
    intervals from the jackknife and resamples of traces.

    Args:
        first: The verdicts of one judge and of the reference.
        second: The verdicts of another judge and of the same reference.
        resampling: The resamples; none for no intervals by resampling.

    Raises:
        ValueError: The judges are the same, or their taxonomies or references differ.
    """
    if first.judge == second.judge:
        raise ValueError(f"{first.judge!r} cannot be compared with itself")
    if first.taxonomy_ref != second.taxonomy_ref or first.reference.name != second.reference.name:
        raise ValueError("both judges need the same taxonomy and the same reference")
    return JudgeComparison(
        taxonomy=first.taxonomy_ref,
        judges=(first.judge, second.judge),
        against=first.reference.name,
        resampling=resampling,
        modes=first.modes,
        index=FigureIndex(_comparison_figures(first, second, resampling)),
    )


def _comparison_figures(
    first: JudgeInput, second: JudgeInput, resampling: Resampling
) -> Iterator[Figure]:
    """Yield the figures on the units that both judges have judged."""
    units_by_judge = (compared_units(first), compared_units(second))
    first_units, second_units = units_by_judge
    shared_units = [unit for unit in first_units.judge if unit in second_units.judge]
    shared_by_judge = [
        ComparedUnits({unit: units.judge[unit] for unit in shared_units}, units.reference)
        for units in units_by_judge
    ]
    slugs = first.slugs
    # Traces × modes × judges × the four cells of a table.
    cells = np.stack([unit_cells(judge_units, slugs) for judge_units in shared_by_judge], axis=2)
    # The same traces give the same resamples.
    sums = [trace_sums(judge_units, slugs, resampling) for judge_units in shared_by_judge]
    total_scope = _scope_of_both(first, second, "judges", slugs)
    yield total_scope.number("traces", len(cells))
    yield total_scope.number("units", len(shared_units))
    for condition, units in zip(("first", "second"), units_by_judge, strict=True):
        yield total_scope.number(
            "judged_by_one", len(units.judge) - len(shared_units), condition=condition
        )
    p_values = [_p_value(cells[:, [mode_index]]) for mode_index in range(len(slugs))]
    adjusted = benjamini_hochberg(p_values)
    for mode_index, mode in enumerate(first.modes):
        mode_scope = _scope_of_both(first, second, "judges_mode", [mode.slug], mode.code)
        mode_sums = [judge_sums.mode(mode_index) for judge_sums in sums]
        yield from _figures_of_both(
            mode_scope, mode_sums, cells[:, [mode_index]], p_values[mode_index]
        )
        yield mode_scope.number("p_adjusted", adjusted[mode_index])
    pooled_sums = [judge_sums.pooled() for judge_sums in sums]
    pooled_scope = _scope_of_both(first, second, "judges_pooled", slugs)
    yield from _figures_of_both(pooled_scope, pooled_sums, cells, _p_value(cells))


def _is_right(cells: Tables) -> NDArray[np.bool_]:
    """Return whether a judge agrees with the reference; the last axis has (TP, FP, FN, TN)."""
    return np.asarray(cells[..., _RIGHT].sum(axis=-1) > 0)


def _p_value(cells: Tables) -> float | None:
    """Return the p-value of the test whether one judge is right more often; None without units."""
    is_right = _is_right(cells).astype(np.int64)
    by_trace = (is_right[..., 0] - is_right[..., 1]).sum(axis=1)
    return sign_flips(by_trace.tolist()) if cells.any() else None


def _joint_counts(is_right: NDArray[np.bool_]) -> list[int]:
    """Count the units on which both judges are right, only the first, only the second, neither.

    The last axis has the two judges.
    """
    first = is_right[..., 0]
    second = is_right[..., 1]
    masks = (first & second, first & ~second, ~first & second, ~first & ~second)
    return [int(mask.sum()) for mask in masks]


def _scope_of_both(
    first: JudgeInput, second: JudgeInput, name: str, modes: Sequence[str], code: str = ""
) -> FigureScope:
    """Return a scope whose subject is both judges."""
    return replace(first.scope(name, modes, mode=code), subject=(first.judge, second.judge))


def _figures_of_both(
    scope: FigureScope, sums_of_both: Sequence[JudgeTables], cells: Tables, p_value: float | None
) -> Iterator[Figure]:
    """Yield the figures of both judges and their differences, for one mode or all modes pooled.

    ``cells`` are traces × modes × judges × (TP, FP, FN, TN). A scope without a mode is for all
    modes.
    """
    is_mode = bool(scope.mode)
    is_judged = cells[..., 0, :].any(axis=-1)  # the same units for both judges
    counts = _joint_counts(_is_right(cells[is_judged]))
    yield scope.number("n", int(is_judged.sum()))
    yield from scope.counts(dict(zip(_JOINT_COUNTS, counts, strict=True)))
    yield scope.number("p_value", p_value)
    figures_from_sums = figures_of_mode if is_mode else figures_of
    first_figures, second_figures = map(figures_from_sums, sums_of_both)
    differences = {
        name: _figure_difference(name, sums_of_both, (first_figures[name], second_figures[name]))
        for name in FIGURES
    }
    if is_mode:
        only_mode = 0  # ``cells`` has one mode here
        differences |= _differences_of_shares(differences, cells[:, only_mode])
    for name in FIGURES:
        yield scope.figure(name, first_figures[name], condition="first")
        yield scope.figure(name, second_figures[name], condition="second")
        yield scope.figure(name, differences[name], condition="difference")


def _figure_difference(
    name: str, sums_of_both: Sequence[JudgeTables], figures_of_both: tuple[Figure, Figure]
) -> Figure:
    """Return a figure of the first judge less that of the second, with an interval."""
    first, second = figures_of_both
    if first.value is None or second.value is None:
        return Figure(reason=first.undefined or second.undefined or "")
    value = first.value - second.value
    withheld = [figure for figure in figures_of_both if figure.withheld is not None]
    if withheld:
        # Report the reason that needs more cases.
        most_needed = max(withheld, key=lambda figure: figure.needs or 0)
        return replace(most_needed, value=value, n=None)
    first_spread, second_spread = (sums.spread for sums in sums_of_both)
    if first_spread is None or second_spread is None:
        return Figure(value=value)
    formula = FIGURES[name]
    # Coefficients from -1 to 1 may differ by 2, but the jackknife needs a scale from -1 to 1.
    width = 1 - scale_of_mean(name).lowest
    scaled_spread = Spread(
        (formula(first_spread.resampled) - formula(second_spread.resampled)) / width,
        (formula(first_spread.left_out) - formula(second_spread.left_out)) / width,
    )
    scaled = scaled_spread.coefficient(value / width, Scale(lowest=-1.0))
    interval = scaled.interval and (width * scaled.interval[0], width * scaled.interval[1])
    return replace(scaled, value=value, interval=interval)


def _differences_of_shares(differences: Mapping[str, Figure], cells: Floats) -> dict[str, Figure]:
    """Return the differences of the shares of one mode, with Newcombe's paired intervals.

    The reference alone decides the cases of such a share, so both judges have the same cases.
    ``cells`` are traces × judges × (TP, FP, FN, TN).
    """
    with_intervals: dict[str, Figure] = {}
    for name in _SHARES_OF_SAME_CASES:
        hit_cells, other_cells = SHARES[name]
        value = differences[name].value
        if value is None:
            continue
        # The second judge has the same cases.
        in_share = cells[:, 0, [*hit_cells, *other_cells]].sum(axis=-1) > 0
        counts = _joint_counts(_is_right(cells[in_share]))
        with_intervals[name] = Figure(value=value, interval=newcombe_paired(*counts))
    return with_intervals
