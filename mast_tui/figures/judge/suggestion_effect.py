"""The effect of a judge's suggestions on the labels of annotators.

A study that shows suggestions may hide them on a share of the traces, chosen at random. The
difference between both kinds of passes is the effect of the suggestions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from mast_tui.figures.agreement.coefficients import Coefficient
from mast_tui.figures.bootstrap import interval, ratio, resampled_sums
from mast_tui.figures.judge.input import AssistedPass, JudgeInput
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.two_by_two import TableFormula, Tables, Values, cohen_kappa, raw_agreement
from mast_tui.labels import VerdictValue

_DEFINITE: Final = (VerdictValue.PRESENT, VerdictValue.ABSENT)

_LEAST_TRACES: Final = 50
"""Traces below which the percentiles of resamples are too narrow."""

# The columns of one kind of passes: the table of judge and annotator, then these.
_PASSES: Final = 4
_LABELS: Final = 5
_PRESENT: Final = 6
_VERDICTS: Final = 7
_COLUMNS: Final = 8


@dataclass(frozen=True, slots=True)
class _EffectSums:
    """Sums over passes, (shown, withheld) × columns.

    Attributes:
        total: The sums over all traces.
        resampled: The sums in each resample.
        traces: The number of traces.
    """

    total: Tables
    resampled: Tables
    traces: int


def with_both_kinds(judge_input: JudgeInput) -> tuple[str, ...] | None:
    """Return the annotators who have passes with suggestions and passes without, sorted.

    Return None if no study hides suggestions.
    """
    if not any(assisted.withheld for assisted in judge_input.passes):
        return None
    comparable = _comparable_passes(judge_input)
    without_suggestions = {assisted.annotator for assisted in comparable if assisted.withheld}
    with_suggestions = {assisted.annotator for assisted in comparable if not assisted.withheld}
    return tuple(sorted(without_suggestions & with_suggestions))


def _comparable_passes(judge_input: JudgeInput) -> list[AssistedPass]:
    """Return the passes on traces that the judge has judged and that are not in its prompt."""
    judged = {trace for trace, _ in judge_input.verdicts} - judge_input.examples
    return [assisted for assisted in judge_input.passes if assisted.trace_id in judged]


def effect_figures(judge_input: JudgeInput, *, rounds: int, seed: int) -> Iterator[Figure]:
    """Yield figures of passes with suggestions and without, by the same annotators.

    Each figure has the conditions ``shown``, ``withheld`` and ``difference``. Nothing is yielded if
    no study hides suggestions. In passes that do not hide them, suggestions count as shown even if
    the annotator did not look at them, because only hiding was randomised.

    Args:
        judge_input: The judge and the passes of annotators.
        rounds: The number of resamples of the traces.
        seed: The seed of the resamples.
    """
    names = with_both_kinds(judge_input)
    if names is None:
        return
    judged_traces = {trace for trace, _ in judge_input.verdicts}
    examples = judge_input.examples & judged_traces
    passes = [
        assisted for assisted in _comparable_passes(judge_input) if assisted.annotator in names
    ]
    withheld_count = sum(assisted.withheld for assisted in passes)
    slugs = judge_input.slugs
    cells = _cells_of_passes(judge_input, passes)
    flat_cells = cells.reshape(len(cells), len(slugs) * 2 * _COLUMNS)
    resampled = resampled_sums(flat_cells, rounds, seed).reshape(-1, len(slugs), 2, _COLUMNS)
    total_cells = cells.sum(axis=0)
    scope = judge_input.scope("effect", slugs)
    yield scope.number("traces", len(cells))
    yield scope.number("passes", len(passes) - withheld_count, condition="shown")
    yield scope.number("passes", withheld_count, condition="withheld")
    on_screen = sum(assisted.judge_seen and not assisted.withheld for assisted in passes)
    yield scope.number("on_screen", on_screen)
    not_judged = sum(assisted.trace_id not in judged_traces for assisted in judge_input.passes)
    yield scope.number("not_judged", not_judged)
    yield scope.number(
        "examples", sum(assisted.trace_id in examples for assisted in judge_input.passes)
    )
    # Over all modes, a pass counts once and not once for each mode.
    scale = np.ones(_COLUMNS)
    scale[_PASSES] = 1 / max(1, len(slugs))
    sums_of_all = _EffectSums(
        total_cells.sum(axis=0) * scale, resampled.sum(axis=1) * scale, len(cells)
    )
    yield from _effects_on_statistics(scope, sums_of_all)
    for number, (slug, code, _) in enumerate(judge_input.modes):
        sums = _EffectSums(total_cells[number], resampled[:, number], len(cells))
        yield from _effects_on_statistics(judge_input.scope("effect_mode", [slug], mode=code), sums)


def _cells_of_passes(judge_input: JudgeInput, passes: Sequence[AssistedPass]) -> Tables:
    """Return the sums of each trace's passes, traces × modes × (shown, withheld) × columns."""
    slugs = judge_input.slugs
    traces = sorted({assisted.trace_id for assisted in passes})
    row_by_trace = {trace: sums for sums, trace in enumerate(traces)}
    cells = np.zeros((len(row_by_trace), len(slugs), 2, _COLUMNS))
    for assisted in passes:
        sums = cells[row_by_trace[assisted.trace_id], :, int(assisted.withheld)]
        sums[:, _PASSES] += 1
        for column, slug in enumerate(slugs):
            sums[column, _LABELS] += assisted.labels.get(slug, 0)
            value = assisted.verdicts.get(slug)
            if value not in _DEFINITE:
                continue
            sums[column, _PRESENT] += value is VerdictValue.PRESENT
            sums[column, _VERDICTS] += 1
            judge_verdict = judge_input.verdicts.get((assisted.trace_id, slug))
            if judge_verdict in _DEFINITE:
                # True and false positives, then false and true negatives.
                is_absent = value is VerdictValue.ABSENT
                sums[column, 2 * (judge_verdict is VerdictValue.ABSENT) + is_absent] += 1
    return cells


def _effects_on_statistics(scope: FigureScope, sums: _EffectSums) -> Iterator[Figure]:
    """Yield the effect of suggestions on verdicts, labels, and agreement with the judge."""
    yield from _effect_on_statistic(scope, "present_rate", _share_of(_PRESENT, _VERDICTS), sums)
    yield from _effect_on_statistic(scope, "labels_per_pass", _share_of(_LABELS, _PASSES), sums)
    for statistic, formula in (
        ("agreement_with_judge", raw_agreement),
        ("kappa_with_judge", cohen_kappa),
    ):
        yield from _effect_on_statistic(scope, statistic, _of_table(formula), sums)


def _share_of(numerator: int, denominator: int) -> TableFormula:
    return lambda cells: ratio(cells[..., numerator], cells[..., denominator])


def _of_table(formula: TableFormula) -> TableFormula:
    return lambda cells: formula(cells[..., :4])


def _effect_on_statistic(
    scope: FigureScope, statistic: str, formula: TableFormula, sums: _EffectSums
) -> Iterator[Figure]:
    """Yield a figure of both kinds of passes and their difference, from the same resamples."""
    with_suggestions, without_suggestions = formula(sums.total)
    resampled = formula(sums.resampled)
    # With units that both judged, only a figure corrected for chance can be undefined.
    compared = sums.total[..., :4].sum(axis=-1) > 0
    for condition, value, resampled_values, has_units in (
        ("shown", with_suggestions, resampled[:, 0], compared[0]),
        ("withheld", without_suggestions, resampled[:, 1], compared[1]),
        (
            "difference",
            with_suggestions - without_suggestions,
            resampled[:, 0] - resampled[:, 1],
            compared.all(),
        ),
    ):
        coefficient = _resampled_coefficient(
            float(value), resampled_values, bool(has_units), sums.traces
        )
        yield scope.estimate(statistic, coefficient, condition=condition)


def _resampled_coefficient(
    value: float, resampled: Values, has_units: bool, traces: int
) -> Coefficient:
    """Return a value with its interval from resamples; none with few traces."""
    if np.isnan(value):
        return Coefficient(undefined="no_variance" if has_units else "no_overlap")
    if len(resampled) and traces < _LEAST_TRACES:
        return Coefficient(value, withheld=("few_traces", _LEAST_TRACES))
    return Coefficient(value, ci=interval(value, resampled) if len(resampled) else None)
