"""Decisions afterwards: reasons, changed sides, confirmation, and imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.adjudication import Adjudication, AdjudicationError
from mast_tui.adjudication.conflicts import (
    ABSENT_CHOICE,
    Choice,
    choice_of_all_places,
    choice_of_side,
)
from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.csv_labels import read_csv_long
from mast_tui.labels import PassKind
from tests.adjudication.annotated_workspace import (
    TAXONOMY,
    THIRD,
    AnnotatedWorkspace,
    adjudication,
    decide_place,
    has_changed_since,
    only_conflict,
    with_one_conflict,
)
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, order, target


@pytest.fixture
def annotated() -> AnnotatedWorkspace:
    return with_one_conflict()


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
