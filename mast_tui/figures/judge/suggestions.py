"""The suggestions of a judge: calibration, answers, places, and their effect on annotators' labels.

A study may hide suggestions on a random share of the traces. The difference between passes with and
without suggestions is their effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from mast_tui.figures.bootstrap import Floats, Resampling, interval, ratio, resampled_sums
from mast_tui.figures.intervals import share_figure
from mast_tui.figures.judge.confusion import DEFINITE, ComparedUnits
from mast_tui.figures.judge.input import AssistedPass, JudgeInput, Reference, Unit
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.two_by_two import TableFormula, Tables, cohen_kappa, raw_agreement
from mast_tui.gold.overlaps import Order, overlap
from mast_tui.labels import Label, Review, ReviewAnswer, Target, VerdictValue

_Outcome = TypeVar("_Outcome", bool, ReviewAnswer)

BINS: Final = 10
"""The number of equal parts of [0, 1]. A bin includes its lower end, and the last one also 1."""


def bin_name(number: int) -> str:
    """Return the name of a bin of confidence, such as ``0.3–0.4``."""
    return f"{number / BINS:.1f}–{(number + 1) / BINS:.1f}"


def calibration(judge_input: JudgeInput, units: ComparedUnits) -> Iterator[Figure]:
    """Yield how well a judge's confidence agrees with the share of units on which it is right.

    The cases are the units (trace × mode) that the judge calls present, with the highest confidence
    of their suggestions. The expected calibration error is the mean, weighted by cases, of the
    difference between a bin's mean confidence and its share of right cases (Naeini et al. 2015).

    Args:
        judge_input: The suggestions of the judge.
        units: The verdicts of the judge and of the reference.
    """
    is_right_by_unit: dict[Unit, bool] = {
        unit: units.reference[unit] for unit, calls_present in units.judge.items() if calls_present
    }
    highest = highest_confidence(judge_input.suggestions)
    case_by_unit = {
        unit: (highest[unit], is_right)
        for unit, is_right in is_right_by_unit.items()
        if unit in highest
    }
    cases = list(case_by_unit.values())
    slugs = judge_input.slugs
    scope = judge_input.scope("calibration", slugs)
    yield from _calibration_figures(scope, cases)
    yield scope.figure("expected_calibration_error", _calibration_error(cases))
    yield scope.number("without_confidence", len(is_right_by_unit) - len(case_by_unit))
    for bin_number, bin_cases in enumerate(_cases_by_bin(cases)):
        group = bin_name(bin_number)
        yield from _calibration_figures(
            judge_input.scope("calibration_bin", slugs, group=group), bin_cases
        )
    for mode in judge_input.modes:
        mode_cases = [case for (_, slug), case in case_by_unit.items() if slug == mode.slug]
        scope = judge_input.scope("calibration_mode", [mode.slug], mode=mode.code)
        yield from _calibration_figures(scope, mode_cases)
        yield scope.figure("expected_calibration_error", _calibration_error(mode_cases))


def acceptance(judge_input: JudgeInput) -> Iterator[Figure]:
    """Yield the numbers of annotators' answers to the judge's suggestions.

    An answer accepts, edits or rejects a suggestion. An annotator's last answer to each suggestion
    counts. Answers on examples in the judge's prompt are left out.
    """
    suggestions = {label.id: label for label in judge_input.suggestions}
    last_reviews: dict[tuple[str, str], Review] = {}
    for review in sorted(judge_input.reviews, key=lambda review: review.pass_number):
        suggestion = suggestions.get(review.suggestion)
        if suggestion is not None and suggestion.trace_id not in judge_input.examples:
            last_reviews[review.annotator, review.suggestion] = review
    answers = [(suggestions[review.suggestion], review) for review in last_reviews.values()]
    answers_with_confidence = [
        (suggestion.confidence, review.answer)
        for suggestion, review in answers
        if suggestion.confidence is not None
    ]
    slugs = judge_input.slugs
    scope = judge_input.scope("answers", slugs)
    yield from _answer_figures(scope, [review.answer for _, review in answers])
    yield scope.number("without_confidence", len(answers) - len(answers_with_confidence))
    for bin_number, bin_answers in enumerate(_cases_by_bin(answers_with_confidence)):
        bin_scope = judge_input.scope("answers_bin", slugs, group=bin_name(bin_number))
        yield from _answer_figures(bin_scope, [answer for _, answer in bin_answers])
    for mode in judge_input.modes:
        mode_answers = [
            review.answer for suggestion, review in answers if suggestion.mode == mode.slug
        ]
        yield from _answer_figures(
            judge_input.scope("answers_mode", [mode.slug], mode=mode.code), mode_answers
        )
    for name in sorted({review.annotator for _, review in answers}):
        annotator_answers = [review.answer for _, review in answers if review.annotator == name]
        yield from _answer_figures(
            replace(scope, name="answers_annotator", subject=(name,)), annotator_answers
        )


def highest_confidence(suggestions: Iterable[Label]) -> Mapping[Unit, float]:
    """Return the highest confidence of the suggestions on each unit."""
    highest: dict[Unit, float] = {}
    for label in suggestions:
        if label.confidence is not None:
            unit = (label.trace_id, label.mode)
            highest[unit] = max(label.confidence, highest.get(unit, 0.0))
    return highest


def _cases_by_bin(cases: Iterable[tuple[float, _Outcome]]) -> list[list[tuple[float, _Outcome]]]:
    """Divide cases of (confidence, outcome) into ``BINS`` bins."""
    bins: list[list[tuple[float, _Outcome]]] = [[] for _ in range(BINS)]
    for confidence, outcome in cases:
        # A confidence of 1 belongs to the last bin.
        bins[min(BINS - 1, int(confidence * BINS))].append((confidence, outcome))
    return bins


def _mean_confidence(cases: Sequence[tuple[float, bool]]) -> float | None:
    return sum(confidence for confidence, _ in cases) / len(cases) if cases else None


def _calibration_figures(
    scope: FigureScope, cases: Sequence[tuple[float, bool]]
) -> Iterator[Figure]:
    """Yield the number of cases (confidence, is right), their mean confidence and share right."""
    yield scope.number("n", len(cases))
    yield scope.number("mean_confidence", _mean_confidence(cases))
    yield share_figure(scope, "right", sum(is_right for _, is_right in cases), len(cases))


def _calibration_error(cases: Sequence[tuple[float, bool]]) -> Figure:
    """Return the expected calibration error of cases (confidence, is right)."""
    if not cases:
        return Figure(reason="no_overlap")
    weighted_differences = 0.0
    for bin_cases in _cases_by_bin(cases):
        mean_confidence = _mean_confidence(bin_cases)
        if mean_confidence is not None:
            right_count = sum(is_right for _, is_right in bin_cases)
            weighted_differences += abs(mean_confidence * len(bin_cases) - right_count)
    return Figure(value=weighted_differences / len(cases))


def _answer_figures(scope: FigureScope, answers: Sequence[ReviewAnswer]) -> Iterator[Figure]:
    """Yield the number of answers of each kind, and the shares of accepted suggestions.

    ``accepted`` counts suggestions without changes, ``taken`` also edited ones.
    """
    answer_count = len(answers)
    accepted_count = answers.count(ReviewAnswer.ACCEPT)
    edited_count = answers.count(ReviewAnswer.EDIT)
    counts = {
        "n": answer_count,
        "accept": accepted_count,
        "edit": edited_count,
        "reject": answers.count(ReviewAnswer.REJECT),
    }
    yield from scope.counts(counts)
    yield share_figure(scope, "accepted", accepted_count, answer_count)
    yield share_figure(scope, "taken", accepted_count + edited_count, answer_count)


@dataclass(frozen=True, slots=True)
class _LocatedCase:
    """A mode in a trace that judge and reference both call present.

    Attributes:
        mode: The slug of the mode.
        labels: For each label of the judge, whether it overlaps a place of the reference.
        places: For each place of the reference, whether a label overlaps it.
        without_order: The number of labels that overlap no place, perhaps because the order of
            spans is unknown.
        merged: The number of places that join different places of several annotators.
    """

    mode: str
    labels: tuple[bool, ...]
    places: tuple[bool, ...]
    without_order: int
    merged: int


def localisation(judge_input: JudgeInput, units: ComparedUnits) -> Iterator[Figure]:
    """Yield the share of the judge's labels in a right place, and of places that the judge found.

    Units (trace × mode) count if both the judge and the reference call them present. A label of the
    judge is in a right place if it overlaps one of the reference's labels of the same mode. Ranges
    of spans are compared by the order of the spans, quotes in one span by their characters.

    Args:
        judge_input: The suggestions of the judge, and the places of the reference.
        units: The verdicts of the judge and of the reference.
    """
    targets_by_unit: dict[Unit, list[Target]] = {}
    whole_trace_count = 0
    no_places_count = 0
    for label in judge_input.suggestions:
        unit = (label.trace_id, label.mode)
        if not (units.judge.get(unit) and units.reference[unit]):
            continue
        if label.target.is_whole:
            whole_trace_count += 1
        elif not judge_input.reference.places.get(unit):
            no_places_count += 1
        else:
            targets_by_unit.setdefault(unit, []).append(label.target)
    cases = [
        _located_case(
            (trace_id, mode), targets, judge_input.reference, judge_input.order_of(trace_id)
        )
        for (trace_id, mode), targets in targets_by_unit.items()
    ]
    scope = judge_input.scope("localisation", judge_input.slugs)
    yield from _location_figures(scope, cases)
    yield scope.number("whole_trace", whole_trace_count)
    yield scope.number("no_places", no_places_count)
    for mode in judge_input.modes:
        mode_cases = [case for case in cases if case.mode == mode.slug]
        yield from _location_figures(
            judge_input.scope("localisation_mode", [mode.slug], mode=mode.code), mode_cases
        )


def _located_case(
    unit: Unit, labels: Sequence[Target], reference: Reference, order: Order
) -> _LocatedCase:
    """Compare the places of a judge's labels with the places of the reference in one unit."""
    places = reference.places[unit]
    # A row for each label, a column for each place.
    overlaps = [[overlap(label, place, order) for place in places] for label in labels]
    # These labels overlap no place, perhaps because the order of some spans is unknown.
    without_order = [
        not any(row) and any(_is_unordered(target, order) for target in (label, *places))
        for label, row in zip(labels, overlaps, strict=True)
    ]
    _, mode = unit
    return _LocatedCase(
        mode,
        labels=tuple(any(row) for row in overlaps),
        places=tuple(any(column) for column in zip(*overlaps, strict=True)),
        without_order=sum(without_order),
        merged=len(reference.merged.get(unit, ())),
    )


def _is_unordered(target: Target, order: Order) -> bool:
    """Return whether the position of either end of a target is unknown."""
    return any(key is not None and order(key) is None for key in (target.first, target.last))


def _location_figures(scope: FigureScope, cases: Sequence[_LocatedCase]) -> Iterator[Figure]:
    """Yield the share of a judge's labels in a right place, and the share of places it found."""
    label_hits = [is_right for case in cases for is_right in case.labels]
    place_hits = [is_found for case in cases for is_found in case.places]
    yield scope.number("n", len(label_hits))
    yield share_figure(scope, "right_place", sum(label_hits), len(label_hits))
    yield scope.number("places", len(place_hits))
    yield share_figure(scope, "places_found", sum(place_hits), len(place_hits))
    yield scope.number("without_order", sum(case.without_order for case in cases))
    yield scope.number("merged_places", sum(case.merged for case in cases))


_LEAST_TRACES: Final = 50
"""The fewest traces for which the percentiles of resamples are wide enough."""

# The columns: the table (TP, FP, FN, TN) of judge and annotator, then counts.
_TABLE_COLUMNS: Final = slice(0, 4)
_PASSES_COLUMN: Final = 4
_LABELS_COLUMN: Final = 5
_PRESENT_COLUMN: Final = 6
_VERDICTS_COLUMN: Final = 7
_EFFECT_COLUMNS: Final = 8


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


def annotators_in_both_conditions(judge_input: JudgeInput) -> tuple[str, ...] | None:
    """Return the sorted names of annotators with passes with suggestions and passes without.

    The result is None if suggestions were never hidden.
    """
    if not any(study_pass.withheld for study_pass in judge_input.passes):
        return None
    passes = _comparable_passes(judge_input)
    without_suggestions = {study_pass.annotator for study_pass in passes if study_pass.withheld}
    with_suggestions = {study_pass.annotator for study_pass in passes if not study_pass.withheld}
    return tuple(sorted(without_suggestions & with_suggestions))


def _comparable_passes(judge_input: JudgeInput) -> list[AssistedPass]:
    """Return the passes on traces that the judge has judged and that are not in its prompt."""
    judged = {trace for trace, _ in judge_input.verdicts} - judge_input.examples
    return [study_pass for study_pass in judge_input.passes if study_pass.trace_id in judged]


def effect_figures(judge_input: JudgeInput, resampling: Resampling) -> Iterator[Figure]:
    """Yield the effect of suggestions: passes with suggestions against passes without.

    Both kinds of passes are by the same annotators. Each statistic has the conditions ``shown``,
    ``withheld`` and ``difference``. A pass counts as ``shown`` even if the annotator did not look
    at the suggestions, because only hiding was randomised.

    Args:
        judge_input: The judge and the passes of annotators.
        resampling: The resamples of the traces.
    """
    compared_names = annotators_in_both_conditions(judge_input)
    if compared_names is None:
        return
    passes = [
        study_pass
        for study_pass in _comparable_passes(judge_input)
        if study_pass.annotator in compared_names
    ]
    slugs = judge_input.slugs
    # Traces × modes × (shown, withheld) × columns.
    cells = _cells_of_passes(judge_input, passes)
    resampled = resampled_sums(cells, resampling)
    total_cells = cells.sum(axis=0)
    scope = judge_input.scope("effect", slugs)
    yield scope.number("traces", len(cells))
    yield from _pass_counts(judge_input, passes, scope)
    # Each mode counts all passes, so the sum of passes is divided by the number of modes.
    column_factors = np.ones(_EFFECT_COLUMNS)
    column_factors[_PASSES_COLUMN] = 1 / max(1, len(slugs))
    sums_of_all = _EffectSums(
        total_cells.sum(axis=0) * column_factors, resampled.sum(axis=1) * column_factors, len(cells)
    )
    yield from _effects_on_statistics(scope, sums_of_all)
    for mode_index, mode in enumerate(judge_input.modes):
        sums = _EffectSums(total_cells[mode_index], resampled[:, mode_index], len(cells))
        yield from _effects_on_statistics(
            judge_input.scope("effect_mode", [mode.slug], mode=mode.code), sums
        )


def _pass_counts(
    judge_input: JudgeInput, passes: Sequence[AssistedPass], scope: FigureScope
) -> Iterator[Figure]:
    """Yield the numbers of compared passes, and of passes left out.

    ``on_screen`` counts the compared passes in which suggestions were on screen.
    """
    judged_traces = {trace for trace, _ in judge_input.verdicts}
    judged_examples = judge_input.examples & judged_traces
    traces_of_passes = [study_pass.trace_id for study_pass in judge_input.passes]
    shown_passes = [study_pass for study_pass in passes if not study_pass.withheld]
    yield scope.number("passes", len(shown_passes), condition="shown")
    yield scope.number("passes", len(passes) - len(shown_passes), condition="withheld")
    yield from scope.counts(
        {
            "on_screen": sum(study_pass.judge_seen for study_pass in shown_passes),
            "not_judged": sum(trace not in judged_traces for trace in traces_of_passes),
            "examples": sum(trace in judged_examples for trace in traces_of_passes),
        }
    )


def _cells_of_passes(judge_input: JudgeInput, passes: Sequence[AssistedPass]) -> Tables:
    """Count the passes, labels and verdicts of each trace, and compare them with the judge.

    The result is traces × modes × (suggestions shown, withheld) × columns.
    """
    slugs = judge_input.slugs
    traces = sorted({study_pass.trace_id for study_pass in passes})
    row_by_trace = {trace: row for row, trace in enumerate(traces)}
    cells = np.zeros((len(row_by_trace), len(slugs), 2, _EFFECT_COLUMNS))
    for study_pass in passes:
        trace_cells = cells[row_by_trace[study_pass.trace_id], :, int(study_pass.withheld)]
        trace_cells[:, _PASSES_COLUMN] += 1
        for mode_index, slug in enumerate(slugs):
            trace_cells[mode_index, _LABELS_COLUMN] += study_pass.labels.get(slug, 0)
            value = study_pass.verdicts.get(slug)
            if value not in DEFINITE:
                continue
            trace_cells[mode_index, _PRESENT_COLUMN] += value is VerdictValue.PRESENT
            trace_cells[mode_index, _VERDICTS_COLUMN] += 1
            judge_verdict = judge_input.verdicts.get((study_pass.trace_id, slug))
            if judge_verdict in DEFINITE:
                # ``_TABLE_COLUMNS``: TP, FP, FN, TN, with the annotator as the reference.
                judge_says_absent = judge_verdict is VerdictValue.ABSENT
                column = 2 * judge_says_absent + (value is VerdictValue.ABSENT)
                trace_cells[mode_index, column] += 1
    return cells


def _effects_on_statistics(scope: FigureScope, sums: _EffectSums) -> Iterator[Figure]:
    """Yield the effect of suggestions on verdicts, labels, and agreement with the judge."""
    for statistic, formula in _EFFECT_FORMULAS.items():
        yield from _effect_on_statistic(scope, statistic, formula, sums)


def _share_of(numerator: int, denominator: int) -> TableFormula:
    return lambda cells: ratio(cells[..., numerator], cells[..., denominator])


_EFFECT_FORMULAS: Final[Mapping[str, TableFormula]] = {
    "present_rate": _share_of(_PRESENT_COLUMN, _VERDICTS_COLUMN),
    "labels_per_pass": _share_of(_LABELS_COLUMN, _PASSES_COLUMN),
    "agreement_with_judge": lambda cells: raw_agreement(cells[..., _TABLE_COLUMNS]),
    "kappa_with_judge": lambda cells: cohen_kappa(cells[..., _TABLE_COLUMNS]),
}
"""Statistics of passes, as functions of the columns of ``_cells_of_passes``."""


def _effect_on_statistic(
    scope: FigureScope, statistic: str, formula: TableFormula, sums: _EffectSums
) -> Iterator[Figure]:
    """Yield a statistic of passes with suggestions, of those without, and their difference."""
    with_suggestions, without_suggestions = formula(sums.total)
    resampled = formula(sums.resampled)
    # (With suggestions, without): True if there are units that the judge has judged too.
    has_units = sums.total[..., _TABLE_COLUMNS].sum(axis=-1) > 0
    for condition, value, resampled_values, can_compare in (
        ("shown", with_suggestions, resampled[:, 0], has_units[0]),
        ("withheld", without_suggestions, resampled[:, 1], has_units[1]),
        (
            "difference",
            with_suggestions - without_suggestions,
            resampled[:, 0] - resampled[:, 1],
            has_units.all(),
        ),
    ):
        coefficient = _resampled_coefficient(
            float(value), resampled_values, bool(can_compare), sums.traces
        )
        yield scope.figure(statistic, coefficient, condition=condition)


def _resampled_coefficient(
    value: float, resampled: Floats, has_units: bool, trace_count: int
) -> Figure:
    """Return a value with its interval from resamples, or with the reason for none."""
    if np.isnan(value):
        return Figure(reason="no_variance" if has_units else "no_overlap")
    if len(resampled) and trace_count < _LEAST_TRACES:
        return Figure(value=value, reason="few_traces", needs=_LEAST_TRACES)
    return Figure(value=value, interval=interval(value, resampled) if len(resampled) else None)
