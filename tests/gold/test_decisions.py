"""Decisions of adjudicators: their effect on the gold, and changes since."""

from __future__ import annotations

from msgspec.structs import replace

from mast_tui.gold import Conflict, Decision, Resolution, SideAnswer
from mast_tui.gold.overlaps import item_id
from mast_tui.labels import Target, TraceWork
from tests.gold.build import ABSENT, MODE, PRESENT, UNSURE, decide, gold, places, side, target

ADJUDICATED = Resolution.ADJUDICATED
UNANIMOUS = Resolution.UNANIMOUS

VERDICT_SIDES = [side("ann", target(3)), side("bob", value=ABSENT)]
PLACE_SIDES = [side("ann", target(20)), side("bob", target(40))]


def only_conflict(sides: list[TraceWork]) -> Conflict:
    (conflict,) = gold(sides).conflicts
    return conflict


def added(target: Target, item: str = "", answers: tuple[SideAnswer, ...] = ()) -> Decision:
    """Return a decision for a place that nobody marked."""
    return Decision(
        MODE, item or item_id(MODE, target), PRESENT, (target,), (), answers, "judy", "now"
    )


def test_decided_verdict_brings_the_places_and_labels_of_the_side_taken() -> None:
    sides = [side("ann", target(3)), side("bob", target(3, 4)), side("cat", value=ABSENT)]
    conflict = only_conflict(sides)
    result = gold(sides, decide(conflict, PRESENT, target(3), sides=("ann",)))
    verdict = result.verdict(MODE)
    assert (verdict.value, verdict.source) == (PRESENT, ADJUDICATED)
    assert (verdict.decided_by, verdict.changed) == ("judy", False)
    (mark,) = result.labels
    assert (mark.target, mark.source, mark.annotators) == (target(3), ADJUDICATED, ("ann",))
    assert not mark.judge_seen
    assert result.conflicts == ()
    seen = gold(sides, decide(conflict, PRESENT, target(3), judge_seen=True))
    assert seen.verdict(MODE).judge_seen
    assert seen.labels[0].judge_seen


def test_absent_or_unsure_leaves_no_label_and_the_last_decision_holds() -> None:
    conflict = only_conflict(VERDICT_SIDES)
    for value in (ABSENT, UNSURE):
        result = gold(VERDICT_SIDES, decide(conflict, PRESENT, target(3)), decide(conflict, value))
        assert (result.verdict(MODE).value, result.labels, result.conflicts) == (value, (), ())
    other = replace(decide(conflict, PRESENT, target(3)), mode="of_another", item="of_another")
    assert gold(VERDICT_SIDES, other) == gold(VERDICT_SIDES)


def test_only_the_decided_item_is_settled() -> None:
    first, second = gold(PLACE_SIDES).conflicts
    result = gold(PLACE_SIDES, decide(first, PRESENT, target(19, 21), sides=("ann",)))
    assert places(result) == [(target(19, 21), ADJUDICATED, False)]
    assert result.conflicts == (second,)
    result = gold(PLACE_SIDES, decide(first, ABSENT), decide(second, PRESENT, target(40)))
    assert places(result) == [(target(40), ADJUDICATED, False)]
    assert result.verdict(MODE).source is UNANIMOUS


def test_adjudicator_may_add_what_nobody_marked() -> None:
    absent = [side("ann", value=ABSENT), side("bob", value=ABSENT)]
    answers = (SideAnswer("ann", ABSENT), SideAnswer("bob", ABSENT))
    result = gold(absent, added(target(7), MODE, answers))
    assert result.verdict(MODE).source is ADJUDICATED
    assert not result.verdict(MODE).changed
    assert places(result) == [(target(7), ADJUDICATED, False)]
    agreed = gold([side("ann", target(3)), side("bob", target(3))], added(target(7)))
    assert places(agreed) == [(target(3), UNANIMOUS, False), (target(7), ADJUDICATED, False)]
    assert not any(mark.changed for mark in agreed.labels)
    # An added place waits for the verdict, and outlasts one on other places.
    conflict = only_conflict(VERDICT_SIDES)
    waiting = gold(VERDICT_SIDES, added(target(7)))
    assert (waiting.conflicts, waiting.labels) == ((conflict,), ())
    assert places(gold(VERDICT_SIDES, added(target(7)), decide(conflict, PRESENT, target(3)))) == [
        (target(3), ADJUDICATED, False),
        (target(7), ADJUDICATED, False),
    ]


def test_decision_stands_and_is_marked_if_verdicts_change() -> None:
    decision = decide(only_conflict(VERDICT_SIDES), ABSENT)
    for sides in (
        [side("ann", target(3)), side("bob", target(3))],
        [*VERDICT_SIDES, side("cat", value=ABSENT)],
    ):
        verdict = gold(sides, decision).verdict(MODE)
        assert (verdict.value, verdict.changed) == (ABSENT, True)


def test_decision_on_a_place_follows_labels_that_move() -> None:
    conflict = gold(PLACE_SIDES).conflicts[0]
    decision = decide(conflict, PRESENT, target(20), sides=("ann",))
    result = gold([side("ann", target(18, 21)), side("bob", target(40))], decision)
    (mark,) = result.labels
    assert (mark.target, mark.changed) == (target(20), True)
    assert [c.first_place for c in result.conflicts] == [target(40)]
    dropped = gold([side("ann", target(20, 21)), side("bob", target(40))], decide(conflict, ABSENT))
    assert dropped.labels == ()
    assert [c.first_place for c in dropped.conflicts] == [target(40)]


def test_later_of_a_verdict_and_a_moved_boundary_holds() -> None:
    sides = [side("ann", target(3, 5)), side("bob", value=ABSENT)]
    decided_for_ann = decide(only_conflict(sides), PRESENT, target(3, 5), sides=("ann",))
    decided_new_place = replace(added(target(3, 4), item_id(MODE, target(3, 5))), sides=("ann",))
    assert places(gold(sides, decided_for_ann, decided_new_place)) == [
        (target(3, 4), ADJUDICATED, False)
    ]
    assert places(gold(sides, decided_new_place, decided_for_ann)) == [
        (target(3, 5), ADJUDICATED, False)
    ]
