"""Gold of one trace: agreed verdicts and places, and conflicts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.gold import ConflictKind, Decision, Resolution, SideAnswer, gold_of_trace, no_order
from mast_tui.labels import WHOLE_TRACE, AnnotatorKind, Severity, Target, TraceWork, VerdictValue
from tests.gold.build import (
    ABSENT,
    MODE,
    MODES,
    OTHER,
    PRESENT,
    UNSURE,
    decide,
    gold,
    label,
    order,
    places,
    quote,
    side,
    target,
)

UNANIMOUS = Resolution.UNANIMOUS
SINGLE = Resolution.SINGLE
UNRESOLVED = Resolution.UNRESOLVED
ADJUDICATED = Resolution.ADJUDICATED
MAJORITY = Resolution.MAJORITY


@pytest.mark.parametrize("value", [PRESENT, ABSENT, UNSURE])
def test_equal_verdicts_are_unanimous(value: VerdictValue) -> None:
    result = gold([side("ann", value=value), side("bob", value=value)])
    verdict = result.verdict(MODE)
    assert (verdict.value, verdict.source) == (value, UNANIMOUS)
    assert verdict.sides == {"ann": value, "bob": value}
    assert (result.conflicts, result.labels) == ((), ())


def test_verdicts_of_one_or_no_annotator_are_no_conflict() -> None:
    alone = gold([side("ann", value=ABSENT)]).verdict(MODE)
    assert (alone.value, alone.source) == (ABSENT, SINGLE)
    result = gold([side("ann", target(3)), side("bob")])
    assert result.verdict(MODE).source is SINGLE
    assert places(result) == [(target(3), SINGLE, False)]
    assert result.conflicts == ()
    nobody = gold([side("ann"), side("bob")])
    assert (nobody.verdict(MODE).value, nobody.verdict(MODE).source) == (None, UNRESOLVED)
    assert nobody.conflicts == ()
    assert side("ann", target(3), value=ABSENT).verdict(MODE) is PRESENT


@pytest.mark.parametrize("other", [ABSENT, UNSURE])
def test_different_verdicts_are_a_conflict(other: VerdictValue) -> None:
    result = gold([side("ann", target(3)), side("bob", value=other)])
    assert result.verdict(MODE).value is None
    assert result.labels == ()
    (conflict,) = result.conflicts
    assert (conflict.kind, conflict.mode) == (ConflictKind.VERDICT, MODE)
    assert conflict.answers == (SideAnswer("ann", PRESENT, (target(3),)), SideAnswer("bob", other))
    assert conflict.first_place == target(3)


def test_majority_decides_verdicts_only_on_request_and_above_half() -> None:
    sides = [side("ann", target(3)), side("bob", target(3)), side("cat", value=ABSENT)]
    assert gold(sides).verdict(MODE).source is UNRESOLVED
    result = gold(sides, majority=True)
    assert (result.verdict(MODE).value, result.verdict(MODE).source) == (PRESENT, MAJORITY)
    assert places(result) == [(target(3), UNANIMOUS, False)]
    assert result.conflicts == ()
    for values in (
        (PRESENT, ABSENT),
        (UNSURE, UNSURE, PRESENT),
        (PRESENT, PRESENT, ABSENT, ABSENT),
    ):
        sides = [side(f"a{i}", value=value) for i, value in enumerate(values)]
        assert gold(sides, majority=True).verdict(MODE).source is UNRESOLVED


def test_judge_seen_is_that_of_sides_with_a_verdict() -> None:
    blind = side("ann", value=ABSENT)
    saw = side("bob", labels=[label("bob", target(3), saw_suggestions=True)])
    judge = replace(side("judge:rules@1", value=ABSENT), author_kind=AnnotatorKind.JUDGE)
    for sides, judge_seen in (
        ([blind, side("bob", value=ABSENT)], False),
        ([blind, side("bob", value=ABSENT, judge_seen=True)], True),
        ([blind, side("bob", judge_seen=True)], False),
        ([saw], True),
        ([judge], True),
    ):
        assert gold(sides).verdict(MODE).judge_seen is judge_seen


PLACES_OF: dict[str, tuple[list[TraceWork], list[tuple[Target, Resolution, bool]]]] = {
    "overlapping places give their cover": (
        [side("ann", target(3, 5)), side("bob", target(4, 8))],
        [(target(3, 8), UNANIMOUS, True)],
    ),
    "places of one annotator that touch are one": (
        [side("ann", target(0, 9)), side("bob", target(1, 4), target(3, 6))],
        [(target(0, 9), UNANIMOUS, True)],
    ),
    "labels of one annotator stand as they are": (
        [side("ann", target(3, 5), quote(4, 0, "again"))],
        [(target(3, 5), SINGLE, False), (quote(4, 0, "again"), SINGLE, False)],
    ),
    "a verdict without a place asks for no places": (
        [side("ann", target(3)), side("bob", value=PRESENT)],
        [(target(3), SINGLE, False)],
    ),
    "a label on the whole trace asks for no places": (
        [side("ann", target(3)), side("bob", WHOLE_TRACE)],
        [(WHOLE_TRACE, SINGLE, False), (target(3), SINGLE, False)],
    ),
}


@pytest.mark.parametrize("name", PLACES_OF)
def test_agreed_places_are_taken_over(name: str) -> None:
    sides, expected = PLACES_OF[name]
    result = gold(sides)
    assert places(result) == expected
    assert result.conflicts == ()


def test_equal_places_keep_all_labels_and_notes() -> None:
    notes = {name: label(name, target(3, 5), note=f"by {name}") for name in ("ann", "bob")}
    result = gold([side(name, labels=[note]) for name, note in notes.items()])
    (mark,) = result.labels
    assert (mark.target, mark.source, mark.merged) == (target(3, 5), UNANIMOUS, False)
    assert mark.annotators == ("ann", "bob")
    assert len(mark.labels) == 2
    assert mark.notes == (("ann", "by ann"), ("bob", "by bob"))


@pytest.mark.parametrize("majority", [False, True])
@pytest.mark.parametrize(
    "sides",
    [
        [side("ann", target(0, 9)), side("bob", target(1), target(8))],
        [side("ann", target(0, 2), target(4, 6)), side("bob", target(2, 4), target(6, 8))],
        [side("ann", target(0, 9)), side("bob", target(1), target(8)), side("cat", target(0, 9))],
    ],
    ids=["a wide place", "a chain", "two wide places"],
)
def test_places_of_one_annotator_are_not_joined_by_those_of_another(
    sides: list[TraceWork], majority: bool
) -> None:
    result = gold(sides, majority=majority)
    assert result.labels == ()
    (conflict,) = result.conflicts
    assert conflict.kind is ConflictKind.PLACE
    assert {answer.annotator: answer.targets for answer in conflict.answers} == {
        work.annotator: tuple(label.target for label in work.labels.values()) for work in sides
    }
    decided = gold(sides, decide(conflict, PRESENT, target(1), target(8), sides=("bob",)))
    assert places(decided) == [(target(1), ADJUDICATED, False), (target(8), ADJUDICATED, False)]


@pytest.mark.parametrize(
    ("severities", "severity", "source"),
    [
        (["fatal", "fatal"], "fatal", UNANIMOUS),
        (["fatal", None], "fatal", SINGLE),
        (["fatal", "fatal", None], "fatal", MAJORITY),
        (["fatal", "benign"], None, None),
        ([None, None], None, None),
        (["fatal"], "fatal", SINGLE),
    ],
)
def test_severity_has_the_source_of_those_who_gave_it(
    severities: list[str | None], severity: str | None, source: Resolution | None
) -> None:
    marks = [
        label(f"a{i}", target(3), severity=None if value is None else Severity(value))
        for i, value in enumerate(severities)
    ]
    (mark,) = gold([side(mark.annotator, labels=[mark]) for mark in marks]).labels
    assert (mark.severity and mark.severity.value, mark.severity_source) == (severity, source)


def test_boundaries_are_a_conflict_only_on_request() -> None:
    sides = [side("ann", target(3, 5)), side("bob", target(4, 8)), side("cat", target(3, 5))]
    result = gold(sides, boundaries=True)
    assert result.labels == ()
    (conflict,) = result.conflicts
    assert (conflict.kind, conflict.first_place) == (ConflictKind.PLACE, target(3, 8))
    same = [side("ann", target(3, 5)), side("bob", target(3, 5))]
    assert places(gold(same, boundaries=True)) == [(target(3, 5), UNANIMOUS, False)]


def test_place_of_one_of_two_annotators_is_a_conflict() -> None:
    result = gold([side("ann", target(3), target(20)), side("bob", target(3), target(40))])
    assert result.verdict(MODE).source is UNANIMOUS
    assert places(result) == [(target(3), UNANIMOUS, False)]
    first, second = result.conflicts
    assert first.kind is second.kind is ConflictKind.PLACE
    assert first.answers == (SideAnswer("ann", PRESENT, (target(20),)), SideAnswer("bob", PRESENT))
    assert second.answers == (SideAnswer("ann", PRESENT), SideAnswer("bob", PRESENT, (target(40),)))


def test_majority_takes_and_drops_places() -> None:
    ann, cat = (side(name, target(3), target(9)) for name in ("ann", "cat"))
    result = gold([ann, side("bob", target(3, 4), target(40)), cat], majority=True)
    assert places(result) == [(target(3, 4), UNANIMOUS, True), (target(9), MAJORITY, False)]
    assert result.conflicts == ()
    # Overlapping places of one side alone are dropped without a conflict.
    sides = [
        side("ann", target(3)),
        side("bob", target(3)),
        side("cat", target(3), target(8, 9), target(9, 10)),
    ]
    result = gold(sides, majority=True, boundaries=True)
    assert places(result) == [(target(3), UNANIMOUS, False)]
    assert result.conflicts == ()


def test_without_an_order_only_equal_places_are_one_item() -> None:
    sides = [side("ann", target(3, 5), target(9, 10)), side("bob", target(4, 8), target(9, 10))]
    result = gold_of_trace(sides, (), MODES, no_order)
    assert places(result) == [(target(9, 10), UNANIMOUS, False)]
    assert len(result.conflicts) == 2


def test_verdict_conflicts_come_before_place_conflicts() -> None:
    sides = [
        side("ann", target(3), other_verdicts={OTHER: ABSENT}),
        side("bob", target(9), other_verdicts={OTHER: UNSURE}),
    ]
    conflicts = gold_of_trace(sides, (), MODES, order).conflicts
    assert [(c.kind, c.mode) for c in conflicts] == [
        (ConflictKind.VERDICT, OTHER),
        (ConflictKind.PLACE, MODE),
        (ConflictKind.PLACE, MODE),
    ]


def test_annotator_with_two_sides_is_refused() -> None:
    with pytest.raises(ValueError, match="two sides"):
        gold([side("ann"), side("ann")])


STRETCHES = st.builds(target, st.integers(0, 6), st.none()) | st.builds(
    lambda first, more: target(first, first + more), st.integers(0, 6), st.integers(0, 3)
)
PLACES = st.lists(STRETCHES | st.just(WHOLE_TRACE), max_size=3, unique=True)
SIDES = st.tuples(PLACES, st.sampled_from([None, PRESENT, ABSENT, UNSURE]))


def sides_of(drawn: Sequence[tuple[list[Target], VerdictValue | None]]) -> list[TraceWork]:
    return [side(f"a{i}", *targets, value=value) for i, (targets, value) in enumerate(drawn)]


@given(st.lists(SIDES, max_size=4), st.booleans(), st.booleans())
def test_deciding_every_conflict_leaves_none_and_keeps_every_settled_label(
    drawn: list[tuple[list[Target], VerdictValue | None]], majority: bool, boundaries: bool
) -> None:
    sides = sides_of(drawn)
    decisions: list[Decision] = []
    for _ in range(20):
        previous = gold(sides, *decisions, majority=majority, boundaries=boundaries)
        if not previous.conflicts:
            break
        conflict = previous.conflicts[0]
        marked = tuple(dict.fromkeys(t for said in conflict.answers for t in said.targets))
        decisions.append(decide(conflict, PRESENT, *marked))
        after = gold(sides, *decisions, majority=majority, boundaries=boundaries)
        assert conflict.id not in {c.id for c in after.conflicts}
        assert set(previous.labels) <= set(after.labels)
    assert not gold(sides, *decisions, majority=majority, boundaries=boundaries).conflicts


@given(st.lists(SIDES, max_size=4), st.booleans(), st.booleans())
def test_gold_holds_only_marked_places_in_any_order_of_sides(
    drawn: list[tuple[list[Target], VerdictValue | None]], majority: bool, boundaries: bool
) -> None:
    sides = sides_of(drawn)
    result = gold(sides, majority=majority, boundaries=boundaries)
    reversed_result = gold(sides[::-1], majority=majority, boundaries=boundaries)
    assert places(result) == places(reversed_result)
    assert {c.id for c in result.conflicts} == {c.id for c in reversed_result.conflicts}
    assert result.verdict(MODE).value is reversed_result.verdict(MODE).value
    if result.labels or any(c.kind is ConflictKind.PLACE for c in result.conflicts):
        assert result.verdict(MODE).value is PRESENT
    for mark in result.labels:
        assert mark.labels
        assert mark.source not in (Resolution.ADJUDICATED, Resolution.UNRESOLVED)
