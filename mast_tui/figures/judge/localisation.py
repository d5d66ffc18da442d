"""Whether a judge that names the right mode names the right place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from mast_tui.figures.agreement.coefficients import CoefficientJson
from mast_tui.figures.intervals import share
from mast_tui.figures.judge.confusion import Compared
from mast_tui.figures.judge.input import JudgeInput, Unit
from mast_tui.gold.places import Order, overlap
from mast_tui.labels import Target


class LocatedJson(TypedDict):
    """Of n labels of the judge the share in a right place, and of the places the share found.

    ``without_order`` of the n met no place while the order of the trace's spans was not at hand:
    they count as wrong, though ranges might have met.
    """

    n: int
    right_place: CoefficientJson
    places: int
    places_found: CoefficientJson
    without_order: int


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


def localisation(given: JudgeInput, found: Compared) -> LocalisationJson:
    """Right places among the judge's labels on modes that the reference calls present.

    A place is right where it overlaps one of the reference's of the same mode, as in the gold:
    ranges by the order of the spans, quotes in one span by their characters, and where the order
    is not at hand only in the same span.
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
        _case(unit[1], targets, given.reference.places[unit], given.order_of(unit[0]))
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


def _case(mode: str, labels: Sequence[Target], places: Sequence[Target], order: Order) -> _Case:
    meet = [[overlap(label, place, order) for place in places] for label in labels]
    lost = [
        not any(row) and any(_unknown(target, order) for target in (label, *places))
        for label, row in zip(labels, meet, strict=True)
    ]
    return _Case(
        mode,
        tuple(any(row) for row in meet),
        tuple(any(column) for column in zip(*meet, strict=True)),
        sum(lost),
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
    }
