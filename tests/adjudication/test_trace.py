"""Deciding what is open on one trace: what is recorded, undone, shown and hidden."""

from __future__ import annotations

import pytest

from mast_tui.adjudication import AdjudicationError, take_on, words_by_trace
from mast_tui.adjudication.conflicts import NOBODY, UNSURE, Choice, elsewhere, take_all, take_side
from mast_tui.gold import Resolution
from mast_tui.labels import AnnotatorKind, Finding, PassKind, Target
from mast_tui.study import Study
from mast_tui.workspace import store_judgement
from mast_tui.workspace.events.types import Decided
from tests.adjudication.office import (
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

JUDGE = "judge:rules@1"


@pytest.fixture
def office() -> Office:
    return two_who_differ()


def test_a_decision_is_there_for_whoever_opens_the_trace_next(office: Office) -> None:
    work = adjudication(office)
    decision = work.decide(only(work), take_side(only(work), "ann"), reason="seen it too")
    again = adjudication(office, "bob")
    assert again.decisions == (decision,)
    assert again.gold.conflicts == ()
    verdict = again.gold.verdict(MODE)
    assert (verdict.value, verdict.source, verdict.decided_by, verdict.reason) == (
        PRESENT,
        Resolution.ADJUDICATED,
        "ann",
        "seen it too",
    )
    assert [mark.target for mark in again.gold.labels] == [at(3, 5)]


def test_an_annotator_who_adjudicates_is_recorded_as_such(office: Office) -> None:
    work = adjudication(office)
    work.decide(only(work), NOBODY)
    kinds = [p.kind for p in office.workspace.passes(annotator="ann", trace_id="t1")]
    assert kinds == [PassKind.BLIND, PassKind.ADJUDICATION]
    # It is no reading of the trace, so what ann said there stands.
    assert set(work.words.passes) == {"ann", "bob"}


@pytest.mark.slow
@pytest.mark.parametrize("choice", [NOBODY, UNSURE, Choice(PRESENT, (at(9),))])
def test_undo_and_redo_reach_over_a_restart(office: Office, choice: Choice) -> None:
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
    first = work.decide(conflict, NOBODY)
    work.decide(conflict, UNSURE)
    work.undo()
    assert work.decisions == (first,)
    work.undo()
    assert not work.decisions
    work.redo()
    work.decide(conflict, take_side(conflict, "ann"))
    assert work.redo() == ()
    work.undo()
    assert work.decisions == (first,)
    work.undo()
    assert not work.decisions
    assert work.undo() == ()


def test_undo_touches_only_the_adjudicators_own_decisions(office: Office) -> None:
    work = adjudication(office)
    work.decide(only(work), NOBODY)
    assert adjudication(office, "bob").undo() == ()
    assert adjudication(office).decisions != ()


def test_of_two_adjudicators_the_later_one_stands_and_undo_brings_back_the_other(
    office: Office,
) -> None:
    work, other = adjudication(office), adjudication(office, "bob")
    conflict = only(work)
    mine = work.decide(conflict, NOBODY)
    theirs = other.decide(conflict, take_all(conflict, order) or NOBODY)
    work.refresh()
    assert work.decisions == (theirs,)
    other.undo()
    work.refresh()
    assert work.decisions == (mine,)


def test_places_are_decided_one_by_one(office: Office) -> None:
    office = Office()
    office.finish("ann", at(3), at(20))
    office.finish("bob", at(3), at(40))
    work = adjudication(office)
    first, second = work.gold.conflicts
    work.decide(first, elsewhere(first, at(19, 21), order))
    assert work.gold.conflicts == (second,)
    work.decide(second, take_side(second, "ann"))
    assert [mark.target for mark in work.gold.labels] == [at(3), at(19, 21)]


def test_a_majority_settles_where_it_is_asked_for_and_boundaries_where_a_study_says_so() -> None:
    office = Office()
    office.finish("ann", at(3, 5))
    office.finish("bob", at(4, 8))
    office.finish("cat", value=ABSENT)
    work = adjudication(office)
    assert only(work).id == MODE
    assert work.words.gold(TAXONOMY, order, majority=True).conflicts == ()
    office.study(Study(TAXONOMY.ref, ("ann", "bob", "cat"), boundaries=True))
    work.refresh()
    assert len(work.words.gold(TAXONOMY, order, majority=True).conflicts) == 1


def test_another_mode_takes_the_place_over(office: Office) -> None:
    work = adjudication(office)
    work.another_mode([only(work)], THIRD)
    assert work.gold.verdict(MODE).value is ABSENT
    assert work.gold.verdict(THIRD).value is PRESENT
    assert [(x.mode, x.target) for x in work.gold.labels] == [(THIRD, at(3, 5))]
    assert set(work.undo()) == {MODE, THIRD}
    assert work.decisions == ()
    with pytest.raises(AdjudicationError, match="in question"):
        work.another_mode([only(work)], MODE)
    with pytest.raises(AdjudicationError, match="no mode"):
        work.another_mode([only(work)], "not_in_here")
    assert work.decisions == ()


def test_another_mode_that_is_open_itself_stays_to_be_decided() -> None:
    office = Office()
    office.finish("ann", at(3), others={THIRD: UNSURE_VALUE})
    office.finish("bob", value=ABSENT)
    work = adjudication(office)
    work.another_mode([work.gold.conflicts[0]], THIRD)
    left = only(work)
    assert left.id == THIRD
    work.decide(left, Choice(PRESENT))
    assert [(x.mode, x.target) for x in work.gold.labels] == [(THIRD, at(3))]


def test_what_nobody_marked_can_be_added_and_what_all_agree_on_overruled() -> None:
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
    overrule(work, MODE, NOBODY)
    assert work.gold.verdict(MODE).value is ABSENT
    assert not any(changed_since(work, decision) for decision in work.decisions)


def test_an_agreed_place_can_be_moved() -> None:
    office = Office()
    office.finish("ann", at(3, 5))
    office.finish("bob", at(3, 5))
    work = adjudication(office)
    taken_over(work, MODE, at(4, 6))
    (mark,) = work.gold.labels
    assert (mark.target, mark.source) == (at(4, 6), Resolution.ADJUDICATED)
    assert (mark.annotators, mark.changed) == (("ann", "bob"), False)


@pytest.mark.parametrize("target", [at(3, 4), at(30)])
def test_a_second_look_after_the_decision_shows(office: Office, target: Target) -> None:
    work = adjudication(office, "bob")
    decision = work.decide(only(work), take_side(only(work), "ann"))
    assert not changed_since(work, decision)
    office.finish("ann", target, number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    assert changed_since(work, decision)
    assert work.gold.verdict(MODE).changed
    assert [mark.target for mark in work.gold.labels] == [at(3, 5)]


def test_a_moved_place_shows_too() -> None:
    office = Office()
    office.finish("ann", at(20))
    office.finish("bob", at(40))
    work = adjudication(office, "bob")
    decision = work.decide(work.gold.conflicts[0], NOBODY)
    assert not changed_since(work, decision)
    office.finish("ann", at(21, 22), number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    assert changed_since(work, decision)


class TestSight:
    def test_nobody_adjudicates_what_they_are_still_reading(self, office: Office) -> None:
        office.start("cat")
        with pytest.raises(AdjudicationError, match="finish it first"):
            adjudication(office, "cat")

    def test_who_has_not_read_it_takes_it_on_first(self, office: Office) -> None:
        with pytest.raises(AdjudicationError, match="take it on"):
            adjudication(office, "judy")
        assert take_on(office.workspace, TAXONOMY, "judy", ["t1"]) == ("t1",)
        work = adjudication(office, "judy")
        work.decide(only(work), NOBODY)
        assert [p.kind for p in office.workspace.passes(annotator="judy")] == [
            PassKind.ADJUDICATION
        ]

    def test_after_looking_ones_own_finish_is_marked_as_revealed(self, office: Office) -> None:
        def revealed(name: str) -> bool:
            (own,) = office.workspace.passes(annotator=name, trace_id="t1")
            return own.revealed_at is not None

        assert not revealed("ann")
        adjudication(office)
        assert revealed("ann")
        assert not revealed("bob")

    def test_looking_twice_records_nothing_new(self, office: Office) -> None:
        adjudication(office)
        events = len(list(office.workspace.events()))
        adjudication(office)
        assert len(list(office.workspace.events())) == events


class TestJudge:
    @pytest.fixture
    def judged(self, office: Office) -> Office:
        office.workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
        store_judgement(
            office.workspace,
            judge=JUDGE,
            taxonomy=TAXONOMY.ref,
            trace_id="t1",
            looks_at=[MODE, OTHER],
            findings=[Finding(MODE, "k3", "k5", "the same thrice", 0.9)],
        )
        return office

    def test_it_is_no_side_unless_it_is_named(self, judged: Office) -> None:
        assert {side.annotator for side in adjudication(judged).words.sides} == {"ann", "bob"}
        named = words_by_trace(judged.workspace, TAXONOMY, annotators=["ann", JUDGE])["t1"]
        assert {side.annotator for side in named.sides} == {"ann", JUDGE}
        assert named.gold(TAXONOMY, order).verdict(MODE).judge_seen

    def test_it_is_hidden_until_the_item_is_decided(self, judged: Office) -> None:
        work = adjudication(judged)
        assert work.judge_words(MODE) == ()
        work.decide(only(work), NOBODY)
        (word,) = work.judge_words(MODE)
        assert [label.annotator for label in word.labels] == [JUDGE]
        assert not work.gold.verdict(MODE).judge_seen

    def test_what_is_decided_again_in_its_sight_is_marked(self, judged: Office) -> None:
        work = adjudication(judged)
        conflict = only(work)
        work.decide(conflict, NOBODY)
        work.judge_words(MODE)
        work.undo()
        later = adjudication(judged)
        assert later.decide(conflict, UNSURE).judge_seen
        assert not taken_over(later, OTHER).judge_seen

    def test_a_study_can_show_it_and_says_so(self, judged: Office) -> None:
        judged.study(Study(TAXONOMY.ref, ("ann", "bob"), judge_first=True))
        work = adjudication(judged)
        assert [len(word.labels) for word in work.judge_words(MODE)] == [1]
        assert work.decide(only(work), NOBODY).judge_seen

    def test_who_labelled_in_its_sight_decides_in_its_sight(self) -> None:
        office = Office()
        office.finish("ann", at(3), kind=PassKind.ASSISTED, saw=True)
        office.finish("bob", value=ABSENT)
        work = adjudication(office)
        assert work.decide(only(work), NOBODY).judge_seen
        assert not taken_over(adjudication(office, "bob"), OTHER).judge_seen


def test_decisions_can_be_made_anew_from_the_events(office: Office) -> None:
    work = adjudication(office)
    conflict = only(work)
    work.decide(conflict, NOBODY)
    work.decide(conflict, UNSURE)
    before = adjudication(office).gold
    office.workspace.rebuild()
    assert adjudication(office).gold == before
    assert sum(isinstance(e.fact, Decided) for e in office.workspace.events()) == 2
