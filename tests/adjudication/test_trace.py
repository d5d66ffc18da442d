"""Decisions on one trace: recording, undo, second looks, access, and judges."""

from __future__ import annotations

import pytest

from mast_tui.adjudication import AdjudicationError, read_work_by_trace, take_on
from mast_tui.adjudication.conflicts import (
    ABSENT_CHOICE,
    UNSURE,
    Choice,
    choice_of_all_places,
    choice_of_own_place,
    choice_of_side,
)
from mast_tui.gold import Resolution
from mast_tui.labels import AnnotatorKind, Finding, PassKind
from mast_tui.study import Study
from tests.adjudication.office import (
    JUDGE,
    TAXONOMY,
    THIRD,
    Office,
    adjudication,
    changed_since,
    only,
    overrule,
    taken_over,
    two_who_differ,
)
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, at, order
from tests.gold.build import UNSURE as UNSURE_VALUE


@pytest.fixture
def office() -> Office:
    return two_who_differ()


def test_decision_is_recorded_for_everyone(office: Office) -> None:
    work = adjudication(office)
    decision = work.decide(only(work), choice_of_side(only(work), "ann"), reason="seen it too")
    again = adjudication(office, "bob")
    assert again.decisions == (decision,)
    assert again.gold.conflicts == ()
    verdict = again.gold.verdict(MODE)
    assert (verdict.value, verdict.source) == (PRESENT, Resolution.ADJUDICATED)
    assert (verdict.decided_by, verdict.reason) == ("ann", "seen it too")
    assert [mark.target for mark in again.gold.labels] == [at(3, 5)]
    kinds = [p.kind for p in office.workspace.passes(annotator="ann", trace_id="t1")]
    assert kinds == [PassKind.BLIND, PassKind.ADJUDICATION]
    # An adjudication is no reading of the trace, so the sides are the same.
    assert set(work.trace_sides.passes) == {"ann", "bob"}
    assert again.undo() == (), "decisions of others are not undone"
    assert adjudication(office).decisions == (decision,)


@pytest.mark.slow
@pytest.mark.parametrize("choice", [ABSENT_CHOICE, UNSURE, Choice(PRESENT, (at(9),))])
def test_undo_and_redo_work_after_a_restart(office: Office, choice: Choice) -> None:
    work = adjudication(office)
    before = work.gold
    work.decide(only(work), choice)
    after = work.gold
    assert adjudication(office).undo() == (MODE,)
    assert adjudication(office).gold == before
    assert adjudication(office).undo() == ()
    assert adjudication(office).redo() == (MODE,)
    assert adjudication(office).gold == after
    assert adjudication(office).redo() == ()


def test_undo_goes_back_step_by_step_and_a_new_decision_ends_redo(office: Office) -> None:
    work = adjudication(office)
    conflict = only(work)
    first = work.decide(conflict, ABSENT_CHOICE)
    work.decide(conflict, UNSURE)
    before = adjudication(office).gold
    office.workspace.rebuild()
    assert adjudication(office).gold == before
    work.undo()
    assert work.decisions == (first,)
    work.undo()
    assert not work.decisions
    work.redo()
    work.decide(conflict, choice_of_side(conflict, "ann"))
    assert work.redo() == ()
    work.undo()
    assert work.decisions == (first,)
    work.undo()
    assert not work.decisions
    assert work.undo() == ()


def test_later_of_two_adjudicators_stands_until_it_is_undone(office: Office) -> None:
    work = adjudication(office)
    other = adjudication(office, "bob")
    conflict = only(work)
    mine = work.decide(conflict, ABSENT_CHOICE)
    theirs = other.decide(conflict, choice_of_all_places(conflict, order) or ABSENT_CHOICE)
    work.refresh()
    assert work.decisions == (theirs,)
    other.undo()
    work.refresh()
    assert work.decisions == (mine,)


def test_places_are_decided_one_by_one() -> None:
    office = Office()
    office.finish("ann", at(3), at(20))
    office.finish("bob", at(3), at(40))
    work = adjudication(office)
    first, second = work.gold.conflicts
    work.decide(first, choice_of_own_place(first, at(19, 21), order))
    assert work.gold.conflicts == (second,)
    work.decide(second, choice_of_side(second, "ann"))
    assert [mark.target for mark in work.gold.labels] == [at(3), at(19, 21)]


def test_majority_and_boundaries_are_options() -> None:
    office = Office()
    office.finish("ann", at(3, 5))
    office.finish("bob", at(4, 8))
    office.finish("cat", value=ABSENT)
    work = adjudication(office)
    assert only(work).id == MODE
    assert work.trace_sides.gold(TAXONOMY, order, majority=True).conflicts == ()
    office.study(Study(TAXONOMY.ref, ("ann", "bob", "cat"), boundaries=True))
    work.refresh()
    assert len(work.trace_sides.gold(TAXONOMY, order, majority=True).conflicts) == 1


def test_another_mode_takes_the_place_over(office: Office) -> None:
    work = adjudication(office)
    work.decide_another_mode([only(work)], THIRD)
    assert work.gold.verdict(MODE).value is ABSENT
    assert work.gold.verdict(THIRD).value is PRESENT
    assert [(x.mode, x.target) for x in work.gold.labels] == [(THIRD, at(3, 5))]
    assert set(work.undo()) == {MODE, THIRD}
    assert work.decisions == ()
    with pytest.raises(AdjudicationError, match="in conflict"):
        work.decide_another_mode([only(work)], MODE)
    with pytest.raises(AdjudicationError, match="no mode"):
        work.decide_another_mode([only(work)], "not_in_here")
    assert work.decisions == ()
    # A mode that is open itself stays open.
    office = Office()
    office.finish("ann", at(3), others={THIRD: UNSURE_VALUE})
    office.finish("bob", value=ABSENT)
    work = adjudication(office)
    work.decide_another_mode([work.gold.conflicts[0]], THIRD)
    left = only(work)
    assert left.id == THIRD
    work.decide(left, Choice(PRESENT))
    assert [(x.mode, x.target) for x in work.gold.labels] == [(THIRD, at(3))]


def test_unmarked_places_can_be_added_and_agreed_ones_moved_or_overruled() -> None:
    office = Office()
    office.finish("ann", at(3))
    office.finish("bob", at(3))
    work = adjudication(office)
    taken_over(work, OTHER, at(9))
    taken_over(work, MODE, at(30))
    assert [(x.mode, x.target) for x in work.gold.labels] == [
        (MODE, at(3)),
        (MODE, at(30)),
        (OTHER, at(9)),
    ]
    overrule(work, MODE, ABSENT_CHOICE)
    assert work.gold.verdict(MODE).value is ABSENT
    assert not any(changed_since(work, decision) for decision in work.decisions)
    office = Office()
    office.finish("ann", at(3, 5))
    office.finish("bob", at(3, 5))
    work = adjudication(office)
    taken_over(work, MODE, at(4, 6))
    (mark,) = work.gold.labels
    assert (mark.target, mark.source) == (at(4, 6), Resolution.ADJUDICATED)
    assert (mark.annotators, mark.changed) == (("ann", "bob"), False)


def test_only_finished_readers_and_those_who_take_it_on_adjudicate(office: Office) -> None:
    office.start("cat")
    with pytest.raises(AdjudicationError, match="finish it first"):
        adjudication(office, "cat")
    with pytest.raises(AdjudicationError, match="take it on"):
        adjudication(office, "judy")
    assert take_on(office.workspace, TAXONOMY, "judy", ["t1"]) == ("t1",)
    work = adjudication(office, "judy")
    work.decide(only(work), ABSENT_CHOICE)
    kinds = [p.kind for p in office.workspace.passes(annotator="judy")]
    assert kinds == [PassKind.ADJUDICATION]


def test_opening_an_adjudication_reveals_the_trace_once(office: Office) -> None:
    def revealed(name: str) -> bool:
        (own,) = office.workspace.passes(annotator=name, trace_id="t1")
        return own.revealed_at is not None

    assert not revealed("ann")
    adjudication(office)
    assert (revealed("ann"), revealed("bob")) == (True, False)
    events = len(list(office.workspace.events()))
    adjudication(office)
    assert len(list(office.workspace.events())) == events


@pytest.fixture
def judged(office: Office) -> Office:
    office.workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    office.judge(MODE, OTHER, findings=[Finding(MODE, "k3", "k5", "the same thrice", 0.9)])
    return office


def test_judge_is_a_side_only_if_it_is_named(judged: Office) -> None:
    assert {side.annotator for side in adjudication(judged).trace_sides.sides} == {"ann", "bob"}
    named = read_work_by_trace(judged.workspace, TAXONOMY, annotators=["ann", JUDGE])["t1"]
    assert {side.annotator for side in named.sides} == {"ann", JUDGE}
    assert named.gold(TAXONOMY, order).verdict(MODE).judge_seen


def test_judge_is_hidden_until_a_decision_and_seen_in_the_next(judged: Office) -> None:
    work = adjudication(judged)
    conflict = only(work)
    assert work.judge_answers(MODE) == ()
    work.decide(conflict, ABSENT_CHOICE)
    (word,) = work.judge_answers(MODE)
    assert [label.annotator for label in word.labels] == [JUDGE]
    assert not work.gold.verdict(MODE).judge_seen
    work.undo()
    later = adjudication(judged)
    assert later.decide(conflict, UNSURE).judge_seen
    assert not taken_over(later, OTHER).judge_seen


def test_annotator_who_saw_the_judge_decides_in_its_sight() -> None:
    office = Office()
    office.finish("ann", at(3), kind=PassKind.ASSISTED, saw=True)
    office.finish("bob", value=ABSENT)
    work = adjudication(office)
    assert work.decide(only(work), ABSENT_CHOICE).judge_seen
    assert not taken_over(adjudication(office, "bob"), OTHER).judge_seen
