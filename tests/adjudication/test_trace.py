"""Decisions on one trace: recording, undo, access, judges, changed sides, and imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.adjudication import Adjudication, AdjudicationError, read_work_by_trace, take_on
from mast_tui.adjudication.conflicts import (
    ABSENT_CHOICE,
    UNSURE,
    Choice,
    choice_of_all_places,
    choice_of_own_place,
    choice_of_side,
)
from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.csv_labels import read_csv_long
from mast_tui.gold import Resolution
from mast_tui.labels import AnnotatorKind, Finding, PassKind
from mast_tui.study import Study
from tests.adjudication.annotated_workspace import (
    JUDGE,
    TAXONOMY,
    THIRD,
    AnnotatedWorkspace,
    adjudication,
    decide_place,
    decide_verdict,
    has_changed_since,
    only_conflict,
    with_one_conflict,
)
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, order, target
from tests.gold.build import UNSURE as UNSURE_VALUE


@pytest.fixture
def annotated() -> AnnotatedWorkspace:
    return with_one_conflict()


def test_decision_is_recorded_for_everyone(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated)
    decision = work.decide(
        only_conflict(work), choice_of_side(only_conflict(work), "ann"), reason="seen it too"
    )
    reopened = adjudication(annotated, "bob")
    assert reopened.decisions == (decision,)
    assert reopened.gold.conflicts == ()
    verdict = reopened.gold.verdict(MODE)
    assert (verdict.value, verdict.source) == (PRESENT, Resolution.ADJUDICATED)
    assert (verdict.decided_by, verdict.reason) == ("ann", "seen it too")
    assert [mark.target for mark in reopened.gold.labels] == [target(3, 5)]
    kinds = [p.kind for p in annotated.workspace.passes(annotator="ann", trace_id="t1")]
    assert kinds == [PassKind.BLIND, PassKind.ADJUDICATION]
    # An adjudication is no reading of the trace, so the sides are the same.
    assert set(work.trace_sides.passes) == {"ann", "bob"}
    assert reopened.undo() == (), "decisions of others are not undone"
    assert adjudication(annotated).decisions == (decision,)


@pytest.mark.slow
@pytest.mark.parametrize("choice", [ABSENT_CHOICE, UNSURE, Choice(PRESENT, (target(9),))])
def test_undo_and_redo_work_after_a_restart(annotated: AnnotatedWorkspace, choice: Choice) -> None:
    work = adjudication(annotated)
    old_gold = work.gold
    work.decide(only_conflict(work), choice)
    new_gold = work.gold
    assert adjudication(annotated).undo() == (MODE,)
    assert adjudication(annotated).gold == old_gold
    assert adjudication(annotated).undo() == ()
    assert adjudication(annotated).redo() == (MODE,)
    assert adjudication(annotated).gold == new_gold
    assert adjudication(annotated).redo() == ()


def test_undo_goes_back_step_by_step_and_a_new_decision_ends_redo(
    annotated: AnnotatedWorkspace,
) -> None:
    work = adjudication(annotated)
    conflict = only_conflict(work)
    first = work.decide(conflict, ABSENT_CHOICE)
    work.decide(conflict, UNSURE)
    old_gold = adjudication(annotated).gold
    annotated.workspace.rebuild()
    assert adjudication(annotated).gold == old_gold
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


def test_later_of_two_adjudicators_stands_until_it_is_undone(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated)
    other = adjudication(annotated, "bob")
    conflict = only_conflict(work)
    mine = work.decide(conflict, ABSENT_CHOICE)
    theirs = other.decide(conflict, choice_of_all_places(conflict, order) or ABSENT_CHOICE)
    work.refresh()
    assert work.decisions == (theirs,)
    other.undo()
    work.refresh()
    assert work.decisions == (mine,)


def test_places_are_decided_one_by_one() -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3), target(20))
    annotated.finish("bob", target(3), target(40))
    work = adjudication(annotated)
    first, second = work.gold.conflicts
    work.decide(first, choice_of_own_place(first, target(19, 21), order))
    assert work.gold.conflicts == (second,)
    work.decide(second, choice_of_side(second, "ann"))
    assert [mark.target for mark in work.gold.labels] == [target(3), target(19, 21)]


def test_majority_and_boundaries_are_options() -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3, 5))
    annotated.finish("bob", target(4, 8))
    annotated.finish("cat", value=ABSENT)
    work = adjudication(annotated)
    assert only_conflict(work).id == MODE
    assert work.trace_sides.gold(TAXONOMY, order, majority=True).conflicts == ()
    annotated.study(Study(TAXONOMY.ref, ("ann", "bob", "cat"), boundaries=True))
    work.refresh()
    assert len(work.trace_sides.gold(TAXONOMY, order, majority=True).conflicts) == 1


def test_another_mode_takes_the_place_over(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated)
    work.decide_another_mode([only_conflict(work)], THIRD)
    assert work.gold.verdict(MODE).value is ABSENT
    assert work.gold.verdict(THIRD).value is PRESENT
    assert [(x.mode, x.target) for x in work.gold.labels] == [(THIRD, target(3, 5))]
    assert set(work.undo()) == {MODE, THIRD}
    assert work.decisions == ()
    with pytest.raises(AdjudicationError, match="in conflict"):
        work.decide_another_mode([only_conflict(work)], MODE)
    with pytest.raises(AdjudicationError, match="no mode"):
        work.decide_another_mode([only_conflict(work)], "not_in_here")
    assert work.decisions == ()
    # A mode that is open itself stays open.
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3), target(9), other_verdicts={THIRD: UNSURE_VALUE})
    annotated.finish("bob", value=ABSENT)
    work = adjudication(annotated)
    work.decide_another_mode([work.gold.conflicts[0]], THIRD)
    open_conflict = only_conflict(work)
    assert open_conflict.id == THIRD
    work.decide(open_conflict, Choice(PRESENT))
    moved = [(THIRD, target(3)), (THIRD, target(9))]  # every place, not only the first
    assert [(x.mode, x.target) for x in work.gold.labels] == moved


def test_unmarked_places_can_be_added_and_agreed_ones_moved_or_overruled() -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3))
    annotated.finish("bob", target(3))
    work = adjudication(annotated)
    decide_place(work, OTHER, target(9))
    decide_place(work, MODE, target(30))
    assert [(x.mode, x.target) for x in work.gold.labels] == [
        (MODE, target(3)),
        (MODE, target(30)),
        (OTHER, target(9)),
    ]
    decide_verdict(work, MODE, ABSENT_CHOICE)
    assert work.gold.verdict(MODE).value is ABSENT
    assert not any(has_changed_since(work, decision) for decision in work.decisions)
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3, 5))
    annotated.finish("bob", target(3, 5))
    work = adjudication(annotated)
    decide_place(work, MODE, target(4, 6))
    (mark,) = work.gold.labels
    assert (mark.target, mark.source) == (target(4, 6), Resolution.ADJUDICATED)
    assert (mark.annotators, mark.changed) == (("ann", "bob"), False)


def test_only_finished_readers_and_those_who_take_it_on_adjudicate(
    annotated: AnnotatedWorkspace,
) -> None:
    annotated.start("cat")
    annotated.mark("cat", verdicts={MODE: ABSENT})
    with pytest.raises(AdjudicationError, match="finish it first, then"):
        adjudication(annotated, "cat")
    with pytest.raises(AdjudicationError, match="take it on"):
        adjudication(annotated, "judy")
    assert take_on(annotated.workspace, TAXONOMY, "judy", ["t1"]) == ("t1",)
    work = adjudication(annotated, "judy")
    work.decide(only_conflict(work), ABSENT_CHOICE)
    kinds = [p.kind for p in annotated.workspace.passes(annotator="judy")]
    assert kinds == [PassKind.ADJUDICATION]


def test_opening_an_adjudication_reveals_the_trace_once(annotated: AnnotatedWorkspace) -> None:
    def revealed(name: str) -> bool:
        (own_pass,) = annotated.workspace.passes(annotator=name, trace_id="t1")
        return own_pass.revealed_at is not None

    assert not revealed("ann")
    adjudication(annotated)
    assert (revealed("ann"), revealed("bob")) == (True, False)
    events = len(list(annotated.workspace.events()))
    adjudication(annotated)
    assert len(list(annotated.workspace.events())) == events


@pytest.fixture
def judged(annotated: AnnotatedWorkspace) -> AnnotatedWorkspace:
    annotated.workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    annotated.judge(MODE, OTHER, findings=[Finding(MODE, "k3", "k5", "the same thrice", 0.9)])
    return annotated


def test_judge_is_a_side_only_if_it_is_named(judged: AnnotatedWorkspace) -> None:
    assert {side.annotator for side in adjudication(judged).trace_sides.sides} == {"ann", "bob"}
    named = read_work_by_trace(judged.workspace, TAXONOMY, annotators=["ann", JUDGE])["t1"]
    assert {side.annotator for side in named.sides} == {"ann", JUDGE}
    assert named.gold(TAXONOMY, order).verdict(MODE).judge_seen


def test_judge_is_hidden_until_a_decision_and_seen_in_the_next(judged: AnnotatedWorkspace) -> None:
    work = adjudication(judged)
    conflict = only_conflict(work)
    assert work.judge_answers(MODE) == ()
    work.decide(conflict, ABSENT_CHOICE)
    (answer,) = work.judge_answers(MODE)
    assert [label.annotator for label in answer.labels] == [JUDGE]
    assert not work.gold.verdict(MODE).judge_seen
    work.undo()
    later = adjudication(judged)
    assert later.decide(conflict, UNSURE).judge_seen
    assert not decide_place(later, OTHER).judge_seen


def test_annotator_who_saw_the_judge_decides_in_its_sight() -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3), kind=PassKind.ASSISTED, saw_suggestions=True)
    annotated.finish("bob", value=ABSENT)
    work = adjudication(annotated)
    assert work.decide(only_conflict(work), ABSENT_CHOICE).judge_seen
    assert not decide_place(adjudication(annotated, "bob"), OTHER).judge_seen


def reasons(work: Adjudication) -> list[str]:
    return [decision.reason for decision in work.decisions]


def test_reason_is_added_and_undone_with_its_decision(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated)
    with pytest.raises(AdjudicationError, match="nothing is decided"):
        work.explain([MODE], "so")
    made = work.decide(only_conflict(work), ABSENT_CHOICE)
    with pytest.raises(AdjudicationError, match="ann decided this"):
        adjudication(annotated, "bob").explain([MODE], "so")
    work.explain([MODE], " retries do not count ")
    (decision,) = work.decisions
    assert decision.reason == "retries do not count"
    assert (decision.value, decision.decided_at) == (made.value, made.decided_at)
    assert work.gold.verdict(MODE).reason == "retries do not count"
    assert work.undo() == (MODE,)
    assert not work.decisions
    assert work.redo() == (MODE,)
    assert work.decisions == (decision,)
    assert adjudication(annotated).undo() == (MODE,)
    assert not adjudication(annotated).decisions


def test_changed_reason_is_a_step_and_the_same_reason_is_none(
    annotated: AnnotatedWorkspace,
) -> None:
    work = adjudication(annotated)
    work.decide(only_conflict(work), ABSENT_CHOICE)
    work.explain([MODE], "first")
    events = len(list(annotated.workspace.events()))
    work.explain([MODE], "first")
    assert len(list(annotated.workspace.events())) == events
    work.explain([MODE], "")
    assert reasons(work) == [""]
    work.undo()
    assert reasons(work) == ["first"]
    work.undo()
    assert not work.decisions


def test_undoing_a_late_reason_keeps_later_decisions(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated)
    work.decide(only_conflict(work), ABSENT_CHOICE)
    decide_place(work, OTHER, target(7))
    work.explain([MODE], "late")
    work.undo()
    assert {d.mode: d.reason for d in work.decisions} == {MODE: "", OTHER: "", THIRD: ""}


def test_confirmed_decision_is_unchanged_until_a_side_changes_again(
    annotated: AnnotatedWorkspace,
) -> None:
    with pytest.raises(AdjudicationError, match="nothing is decided"):
        adjudication(annotated).confirm(MODE)
    work = adjudication(annotated)
    made = work.decide(only_conflict(work), choice_of_side(only_conflict(work), "ann"), reason="so")
    annotated.finish("bob", target(9), number=2, kind=PassKind.SECOND_LOOK)
    work = adjudication(annotated, "bob")
    assert [has_changed_since(work, d) for d in work.decisions] == [True]
    (confirmed,) = work.confirm(MODE)
    for field in ("value", "targets", "sides", "reason"):
        assert getattr(confirmed, field) == getattr(made, field)
    assert confirmed.decided_by == "bob"
    assert not has_changed_since(work, confirmed)
    assert not work.gold.verdict(MODE).changed
    annotated.finish("bob", value=ABSENT, number=4, kind=PassKind.SECOND_LOOK)
    work.refresh()
    assert has_changed_since(work, confirmed)


@pytest.mark.parametrize("take", [ABSENT_CHOICE, None])
def test_decision_on_a_place_changes_if_a_side_removes_it(take: Choice | None) -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3))
    annotated.finish("bob", target(3), target(9))
    work = adjudication(annotated)
    choice = take or choice_of_all_places(only_conflict(work), order)
    assert choice is not None
    decision = work.decide(only_conflict(work), choice)
    assert not has_changed_since(work, decision)
    annotated.finish("bob", target(3), number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    assert has_changed_since(work, decision)
    assert not any(has_changed_since(work, d) for d in work.confirm(decision.item))


def test_import_does_not_change_a_decision(annotated: AnnotatedWorkspace, tmp_path: Path) -> None:
    work = adjudication(annotated)
    decision = work.decide(only_conflict(work), choice_of_side(only_conflict(work), "ann"))
    path = tmp_path / "labels.csv"
    path.write_text(
        "trace_id,annotator,mode,value,span_first,span_last,taxonomy\n"
        f"t1,dan,{MODE},absent,,,{TAXONOMY.ref}\n"
        f"t1,dan,,finished,,,{TAXONOMY.ref}\n",
        "utf-8",
    )
    incoming = read_csv_long([path], taxonomy=TAXONOMY, find_taxonomy=lambda _: TAXONOMY)
    assert apply_incoming(incoming, annotated.workspace, source="labels.csv").written
    work.refresh()
    assert [side.annotator for side in work.trace_sides.sides] == ["ann", "bob", "dan"]
    assert work.decisions == (decision,)
    assert work.gold.verdict(MODE).value is PRESENT
    assert has_changed_since(work, decision)
