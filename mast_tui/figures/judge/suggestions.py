"""A judge's suggestions: whether their confidence means what it says, whether people go by it, and
whether one that names the right mode names the right place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict, TypeVar

from mast_tui.figures.agreement.coefficients import Coefficient, CoefficientJson
from mast_tui.figures.intervals import share
from mast_tui.figures.judge.confusion import Compared
from mast_tui.figures.judge.input import JudgeInput, Reference, Unit
from mast_tui.gold.overlaps import Order, overlap
from mast_tui.labels import Answer, Label, Review, Target

_Said = TypeVar("_Said", bool, Answer)

BINS: Final = 10
"""Equal parts of [0, 1]; a bin holds its lower end, and the last one 1 as well."""


class BinJson(TypedDict):
    """Suggestions of like confidence, between ``low`` and ``high``.

    ``right`` is the share whose mode the reference calls present.
    """

    low: float
    high: float
    n: int
    mean_confidence: float | None
    right: CoefficientJson


class CalibratedJson(TypedDict):
    """How far confidence and truth lie apart: n, the means of both, and the expected error."""

    n: int
    mean_confidence: float | None
    right: CoefficientJson
    expected_calibration_error: CoefficientJson


class CalibrationJson(CalibratedJson):
    """Calibration over all modes, its bins, and by mode code.

    ``without_confidence`` counts the units whose suggestions have none.
    """

    without_confidence: int
    bins: list[BinJson]
    modes: dict[str, CalibratedJson]


class AnswersJson(TypedDict):
    """People's answers: ``accepted`` as they stand, ``taken`` with or without edits."""

    n: int
    accept: int
    edit: int
    reject: int
    accepted: CoefficientJson
    taken: CoefficientJson


class AnswerBinJson(AnswersJson):
    """The answers to suggestions of like confidence, between ``low`` and ``high``."""

    low: float
    high: float


class AcceptanceJson(AnswersJson):
    """People's answers over all, by confidence, by mode code and by person.

    ``without_confidence`` counts answers to suggestions that have none; no bin holds them.
    """

    without_confidence: int
    bins: list[AnswerBinJson]
    modes: dict[str, AnswersJson]
    annotators: dict[str, AnswersJson]


def calibration(given: JudgeInput, found: Compared) -> CalibrationJson:
    """Confidence beside truth, over the units that the judge calls present.

    A unit is trace × mode, with the confidence of its surest suggestion: several suggestions of
    one mode in a trace are right or wrong together, and would make the figure look surer than it
    is. The expected calibration error is the mean distance of the bins' mean confidence and share
    right, weighted by n (Naeini et al. 2015).
    """
    claims: dict[Unit, bool] = {
        unit: found.reference[unit] for unit, said in found.judge.items() if said
    }
    sure = surest(given.suggestions)
    rated = {unit: (sure[unit], right) for unit, right in claims.items() if unit in sure}
    return {
        **_calibrated(list(rated.values())),
        "without_confidence": len(claims) - len(rated),
        "bins": [_bin(i, cases) for i, cases in enumerate(_binned(list(rated.values())))],
        "modes": {
            code: _calibrated([case for (_, mode), case in rated.items() if mode == slug])
            for slug, code, _ in given.modes
        },
    }


def acceptance(given: JudgeInput) -> AcceptanceJson:
    """People's answers to the judge's suggestions, each person's last to each of them.

    Answers on traces that stood in the judge's prompt are left out.
    """
    suggestions = {label.id: label for label in given.suggestions}
    last: dict[tuple[str, str], Review] = {}
    for review in sorted(given.reviews, key=lambda one: one.pass_number):
        asked = suggestions.get(review.suggestion)
        if asked is not None and asked.trace_id not in given.examples:
            last[review.annotator, review.suggestion] = review
    answers = [(suggestions[review.suggestion], review) for review in last.values()]
    rated = [(one.confidence, said.answer) for one, said in answers if one.confidence is not None]
    names = sorted({review.annotator for _, review in answers})
    return {
        **_answers([review.answer for _, review in answers]),
        "without_confidence": len(answers) - len(rated),
        "bins": [
            {"low": i / BINS, "high": (i + 1) / BINS, **_answers([answer for _, answer in said])}
            for i, said in enumerate(_binned(rated))
        ],
        "modes": {
            code: _answers([review.answer for label, review in answers if label.mode == slug])
            for slug, code, _ in given.modes
        },
        "annotators": {
            name: _answers([review.answer for _, review in answers if review.annotator == name])
            for name in names
        },
    }


def surest(suggestions: Iterable[Label]) -> Mapping[Unit, float]:
    """The highest confidence that was given on each unit."""
    found: dict[Unit, float] = {}
    for label in suggestions:
        if label.confidence is not None:
            unit = (label.trace_id, label.mode)
            found[unit] = max(label.confidence, found.get(unit, 0.0))
    return found


def _binned(cases: Iterable[tuple[float, _Said]]) -> list[list[tuple[float, _Said]]]:
    """Cases by their confidence, which comes first in each."""
    bins: list[list[tuple[float, _Said]]] = [[] for _ in range(BINS)]
    for case in cases:
        bins[min(BINS - 1, int(case[0] * BINS))].append(case)
    return bins


def _means(cases: Sequence[tuple[float, bool]]) -> tuple[float | None, int]:
    """The mean confidence of some cases, and how many of them are right."""
    sure = sum(confidence for confidence, _ in cases) / len(cases) if cases else None
    return sure, sum(right for _, right in cases)


def _bin(place: int, cases: Sequence[tuple[float, bool]]) -> BinJson:
    sure, right = _means(cases)
    return {
        "low": place / BINS,
        "high": (place + 1) / BINS,
        "n": len(cases),
        "mean_confidence": sure,
        "right": share(right, len(cases)).to_json(),
    }


def _calibrated(cases: Sequence[tuple[float, bool]]) -> CalibratedJson:
    sure, right = _means(cases)
    error = Coefficient(undefined="no_overlap")
    if cases:
        apart = 0.0
        for held in _binned(cases):
            mean, hits = _means(held)
            apart += 0.0 if mean is None else abs(mean * len(held) - hits)
        error = Coefficient(apart / len(cases))
    return {
        "n": len(cases),
        "mean_confidence": sure,
        "right": share(right, len(cases)).to_json(),
        "expected_calibration_error": error.to_json(),
    }


def _answers(said: Sequence[Answer]) -> AnswersJson:
    accept, edit, reject = (
        sum(one is answer for one in said) for answer in (Answer.ACCEPT, Answer.EDIT, Answer.REJECT)
    )
    return {
        "n": len(said),
        "accept": accept,
        "edit": edit,
        "reject": reject,
        "accepted": share(accept, len(said)).to_json(),
        "taken": share(accept + edit, len(said)).to_json(),
    }


class LocatedJson(TypedDict):
    """Of n labels of the judge the share in a right place, and of the places the share found.

    ``without_order`` of the n met no place while the order of the trace's spans was unknown:
    they count as wrong, though ranges might have met. ``merged_places`` of the places cover
    different ones of several annotators, so that a label anywhere in them is right.
    """

    n: int
    right_place: CoefficientJson
    places: int
    places_found: CoefficientJson
    without_order: int
    merged_places: int


class LocalisationJson(LocatedJson):
    """Localisation over all modes, and by mode code.

    ``whole_trace`` counts labels of the judge that name no place, ``no_places`` those on modes
    that the reference calls present without saying where; neither is among the n.
    """

    whole_trace: int
    no_places: int
    modes: dict[str, LocatedJson]


@dataclass(frozen=True, slots=True)
class _Case:
    """One mode in one trace that both call present: which of either side's places meet."""

    mode: str
    labels: tuple[bool, ...]
    places: tuple[bool, ...]
    without_order: int
    merged: int


def localisation(given: JudgeInput, found: Compared) -> LocalisationJson:
    """Right places among the judge's labels on modes that the reference calls present.

    A place is right where it overlaps one of the reference's of the same mode, as in the gold:
    ranges by the order of the spans, quotes in one span by their characters, and where the order
    is unknown only in the same span.
    """
    named: dict[Unit, list[Target]] = {}
    whole = nowhere = 0
    for label in given.suggestions:
        unit = (label.trace_id, label.mode)
        if not (found.judge.get(unit) and found.reference[unit]):
            continue
        if label.target.is_whole:
            whole += 1
        elif not given.reference.places.get(unit):
            nowhere += 1
        else:
            named.setdefault(unit, []).append(label.target)
    cases = [
        _case(unit, targets, given.reference, given.order_of(unit[0]))
        for unit, targets in named.items()
    ]
    return {
        **_located(cases),
        "whole_trace": whole,
        "no_places": nowhere,
        "modes": {
            code: _located([case for case in cases if case.mode == slug])
            for slug, code, _ in given.modes
        },
    }


def _case(unit: Unit, labels: Sequence[Target], reference: Reference, order: Order) -> _Case:
    places = reference.places[unit]
    meet = [[overlap(label, place, order) for place in places] for label in labels]
    lost = [
        not any(row) and any(_unknown(target, order) for target in (label, *places))
        for label, row in zip(labels, meet, strict=True)
    ]
    return _Case(
        unit[1],
        tuple(any(row) for row in meet),
        tuple(any(column) for column in zip(*meet, strict=True)),
        sum(lost),
        len(reference.merged.get(unit, ())),
    )


def _unknown(target: Target, order: Order) -> bool:
    """Whether the place of either end of a target in the trace is not known."""
    return any(key is not None and order(key) is None for key in (target.first, target.last))


def _located(cases: Sequence[_Case]) -> LocatedJson:
    labels = [right for case in cases for right in case.labels]
    places = [met for case in cases for met in case.places]
    return {
        "n": len(labels),
        "right_place": share(sum(labels), len(labels)).to_json(),
        "places": len(places),
        "places_found": share(sum(places), len(places)).to_json(),
        "without_order": sum(case.without_order for case in cases),
        "merged_places": sum(case.merged for case in cases),
    }
