"""The suggestions of a judge: calibration, annotators' answers, and the places that they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from mast_tui.figures.agreement.coefficients import Coefficient
from mast_tui.figures.intervals import share_figure
from mast_tui.figures.judge.confusion import Compared
from mast_tui.figures.judge.input import JudgeInput, Reference, Unit
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.gold.overlaps import Order, overlap
from mast_tui.labels import Label, Review, ReviewAnswer, Target

_Outcome = TypeVar("_Outcome", bool, ReviewAnswer)

BINS: Final = 10
"""Equal parts of [0, 1]; a bin holds its lower end, and the last one 1 as well."""


def bin_name(number: int) -> str:
    """Return the name of a bin of confidence, the group of its figures: ``0.3–0.4``."""
    return f"{number / BINS:.1f}–{(number + 1) / BINS:.1f}"


def calibration(judge_input: JudgeInput, units: Compared) -> Iterator[Figure]:
    """Yield how confidence and truth differ, over the units that the judge calls present.

    A unit is trace × mode, with the highest confidence of its suggestions: several suggestions of
    one mode in a trace are right or wrong together, and would make the figure look surer than it
    is. The expected calibration error is the mean distance of the bins' mean confidence and share
    right, weighted by n (Naeini et al. 2015).

    Args:
        judge_input: The suggestions of the judge.
        units: Its verdicts beside the reference.
    """
    claims: dict[Unit, bool] = {
        unit: units.reference[unit] for unit, present in units.judge.items() if present
    }
    highest = highest_confidence(judge_input.suggestions)
    rated = {unit: (highest[unit], right) for unit, right in claims.items() if unit in highest}
    cases = list(rated.values())
    slugs = judge_input.slugs
    scope = judge_input.scope("calibration", slugs)
    yield from _calibrated(scope, cases)
    yield scope.estimate("expected_calibration_error", _calibration_error(cases))
    yield scope.number("without_confidence", len(claims) - len(rated))
    for number, in_bin in enumerate(_binned(cases)):
        group = bin_name(number)
        yield from _calibrated(judge_input.scope("calibration_bin", slugs, group=group), in_bin)
    for slug, code, _ in judge_input.modes:
        of_mode = [case for (_, mode), case in rated.items() if mode == slug]
        scope = judge_input.scope("calibration_mode", [slug], mode=code)
        yield from _calibrated(scope, of_mode)
        yield scope.estimate("expected_calibration_error", _calibration_error(of_mode))


def acceptance(judge_input: JudgeInput) -> Iterator[Figure]:
    """Yield annotators' answers to the judge's suggestions, the last of each to each suggestion.

    Answers on traces in the judge's prompt are left out.
    """
    suggestions = {label.id: label for label in judge_input.suggestions}
    last: dict[tuple[str, str], Review] = {}
    for review in sorted(judge_input.reviews, key=lambda review: review.pass_number):
        suggestion = suggestions.get(review.suggestion)
        if suggestion is not None and suggestion.trace_id not in judge_input.examples:
            last[review.annotator, review.suggestion] = review
    answers = [(suggestions[review.suggestion], review) for review in last.values()]
    rated = [
        (suggestion.confidence, review.answer)
        for suggestion, review in answers
        if suggestion.confidence is not None
    ]
    slugs = judge_input.slugs
    scope = judge_input.scope("answers", slugs)
    yield from _answers(scope, [review.answer for _, review in answers])
    yield scope.number("without_confidence", len(answers) - len(rated))
    for number, in_bin in enumerate(_binned(rated)):
        bin_scope = judge_input.scope("answers_bin", slugs, group=bin_name(number))
        yield from _answers(bin_scope, [answer for _, answer in in_bin])
    for slug, code, _ in judge_input.modes:
        of_mode = [review.answer for suggestion, review in answers if suggestion.mode == slug]
        yield from _answers(judge_input.scope("answers_mode", [slug], mode=code), of_mode)
    for name in sorted({review.annotator for _, review in answers}):
        of_annotator = [review.answer for _, review in answers if review.annotator == name]
        yield from _answers(replace(scope, name="answers_annotator", subject=(name,)), of_annotator)


def highest_confidence(suggestions: Iterable[Label]) -> Mapping[Unit, float]:
    """Return the highest confidence of the suggestions on each unit."""
    highest: dict[Unit, float] = {}
    for label in suggestions:
        if label.confidence is not None:
            unit = (label.trace_id, label.mode)
            highest[unit] = max(label.confidence, highest.get(unit, 0.0))
    return highest


def _binned(cases: Iterable[tuple[float, _Outcome]]) -> list[list[tuple[float, _Outcome]]]:
    """Return cases by their confidence, which is the first part of each."""
    bins: list[list[tuple[float, _Outcome]]] = [[] for _ in range(BINS)]
    for case in cases:
        bins[min(BINS - 1, int(case[0] * BINS))].append(case)
    return bins


def _mean_confidence(cases: Sequence[tuple[float, bool]]) -> float | None:
    return sum(confidence for confidence, _ in cases) / len(cases) if cases else None


def _calibrated(scope: FigureScope, cases: Sequence[tuple[float, bool]]) -> Iterator[Figure]:
    yield scope.number("n", len(cases))
    yield scope.number("mean_confidence", _mean_confidence(cases))
    yield share_figure(scope, "right", sum(right for _, right in cases), len(cases))


def _calibration_error(cases: Sequence[tuple[float, bool]]) -> Coefficient:
    if not cases:
        return Coefficient(undefined="no_overlap")
    distance = 0.0
    for in_bin in _binned(cases):
        mean = _mean_confidence(in_bin)
        if mean is not None:
            distance += abs(mean * len(in_bin) - sum(right for _, right in in_bin))
    return Coefficient(distance / len(cases))


def _answers(scope: FigureScope, answers: Sequence[ReviewAnswer]) -> Iterator[Figure]:
    n = len(answers)
    accept = answers.count(ReviewAnswer.ACCEPT)
    edit = answers.count(ReviewAnswer.EDIT)
    yield scope.number("n", n)
    yield scope.number("accept", accept)
    yield scope.number("edit", edit)
    yield scope.number("reject", answers.count(ReviewAnswer.REJECT))
    yield share_figure(scope, "accepted", accept, n)
    yield share_figure(scope, "taken", accept + edit, n)


@dataclass(frozen=True, slots=True)
class _Case:
    """One mode in one trace that both call present.

    ``labels`` tells which labels of the judge meet a place of the reference, ``places`` which of
    these a label meets. ``without_order`` counts labels that met no place while the order of the
    spans was unknown, ``merged`` the places that cover those of several annotators.
    """

    mode: str
    labels: tuple[bool, ...]
    places: tuple[bool, ...]
    without_order: int
    merged: int


def localisation(judge_input: JudgeInput, units: Compared) -> Iterator[Figure]:
    """Yield the share of the judge's labels in a right place, on modes that both call present.

    A place is right if it overlaps one of the reference's of the same mode, by the rule of gold:
    ranges by the order of the spans, quotes in one span by their characters, and with an unknown
    order only in the same span.

    Args:
        judge_input: The suggestions of the judge, and the places of the reference.
        units: The verdicts of both.
    """
    by_unit: dict[Unit, list[Target]] = {}
    whole_trace = 0
    no_places = 0
    for label in judge_input.suggestions:
        unit = (label.trace_id, label.mode)
        if not (units.judge.get(unit) and units.reference[unit]):
            continue
        if label.target.is_whole:
            whole_trace += 1
        elif not judge_input.reference.places.get(unit):
            no_places += 1
        else:
            by_unit.setdefault(unit, []).append(label.target)
    cases = [
        _case(unit, targets, judge_input.reference, judge_input.order_of(unit[0]))
        for unit, targets in by_unit.items()
    ]
    scope = judge_input.scope("localisation", judge_input.slugs)
    yield from _located(scope, cases)
    yield scope.number("whole_trace", whole_trace)
    yield scope.number("no_places", no_places)
    for slug, code, _ in judge_input.modes:
        of_mode = [case for case in cases if case.mode == slug]
        yield from _located(judge_input.scope("localisation_mode", [slug], mode=code), of_mode)


def _case(unit: Unit, labels: Sequence[Target], reference: Reference, order: Order) -> _Case:
    places = reference.places[unit]
    meet = [[overlap(label, target, order) for target in places] for label in labels]
    without_order = [
        not any(row) and any(_is_unordered(target, order) for target in (label, *places))
        for label, row in zip(labels, meet, strict=True)
    ]
    return _Case(
        unit[1],
        tuple(any(row) for row in meet),
        tuple(any(column) for column in zip(*meet, strict=True)),
        sum(without_order),
        len(reference.merged.get(unit, ())),
    )


def _is_unordered(target: Target, order: Order) -> bool:
    """Return whether the index of either end of a target in the trace is unknown."""
    return any(key is not None and order(key) is None for key in (target.first, target.last))


def _located(scope: FigureScope, cases: Sequence[_Case]) -> Iterator[Figure]:
    labels = [right for case in cases for right in case.labels]
    places = [met for case in cases for met in case.places]
    yield scope.number("n", len(labels))
    yield share_figure(scope, "right_place", sum(labels), len(labels))
    yield scope.number("places", len(places))
    yield share_figure(scope, "places_found", sum(places), len(places))
    yield scope.number("without_order", sum(case.without_order for case in cases))
    yield scope.number("merged_places", sum(case.merged for case in cases))
