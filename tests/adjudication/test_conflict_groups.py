"""Groups of conflicts: the disputed places of a mode, decided in one step."""

from __future__ import annotations

import pytest

from mast_tui.adjudication import (
    Adjudication,
    AdjudicationCase,
    ConflictGroup,
    cases_of,
    conflict_groups,
    conflicts_by_trace,
    queue,
)
from mast_tui.adjudication.conflicts import ABSENT_CHOICE, Choice, choice_of_side
from mast_tui.gold import ConflictKind, no_order
from mast_tui.labels import WHOLE_TRACE, AnnotatorKind, Finding, PassKind, Target
from mast_tui.study.model import Study
from mast_tui.workspace.events.types import Decided
from tests.adjudication.annotated_workspace import (
    JUDGE,
    TAXONOMY,
    THIRD,
    AnnotatedWorkspace,
    adjudication,
    decide_place,
)
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, UNSURE, order, quote, target


def office_of(**places: tuple[Target, ...]) -> AnnotatedWorkspace:
    """Return an office in which people have marked these places and finished."""
    annotated = AnnotatedWorkspace()
    for name, targets in places.items():
        annotated.finish(name, *targets)
    return annotated


def group_of(work: Adjudication) -> ConflictGroup:
    """Return the only open group."""
    (group,) = conflict_groups(work.gold.conflicts)
    return group


def case_of(work: Adjudication) -> AdjudicationCase:
    """Return the only case of the trace."""
    (case,) = cases_of(work.gold.conflicts, work.decisions)
    return case


def places(work: Adjudication) -> list[Target]:
    return [label.target for label in work.gold.labels]


@pytest.fixture
def annotated() -> AnnotatedWorkspace:
    """Agreement of ann and bob on #3, and other places of each."""
    return office_of(ann=(target(3), target(12), target(40, 42)), bob=(target(3), target(9)))


def targets_by_side(group: ConflictGroup) -> dict[str, tuple[Target, ...]]:
    return {side.annotator: side.targets for side in group.answers}


def test_group_has_all_disputed_places_of_each_side(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated)
    assert len(work.gold.conflicts) == 3
    group = group_of(work)
    assert group.kind is ConflictKind.PLACE
    assert targets_by_side(group) == {"ann": (target(12), target(40, 42)), "bob": (target(9),)}
    assert group.first_place == target(9)
    groups_by_trace = conflicts_by_trace(annotated.workspace, TAXONOMY, order_of=lambda _: order)
    assert [len(groups) for groups in groups_by_trace.values()] == [1]
    assert case_of(work).is_open
    with pytest.raises(KeyError):
        group.take_side("cat")


def test_group_of_three_sides_quotes_and_whole_traces() -> None:
    first = quote(4, 0, "again")
    second = quote(4, 20, "and again")
    for places_of, expected in (
        (
            {"ann": (target(3), target(9)), "bob": (target(3),), "cat": (target(3), target(20))},
            {"ann": (target(9),), "bob": (), "cat": (target(20),)},
        ),
        ({"ann": (first,), "bob": (second,)}, {"ann": (first,), "bob": (second,)}),
    ):
        assert targets_by_side(group_of(adjudication(office_of(**places_of)))) == expected
    work = adjudication(
        office_of(ann=(WHOLE_TRACE, target(12)), bob=(target(9),), cat=(WHOLE_TRACE,))
    )
    assert targets_by_side(group_of(work)) == {"ann": (target(12),), "bob": (target(9),)}
    work.decide_together(group_of(work).take_side("bob"))
    assert places(work) == [WHOLE_TRACE, target(9)]


def test_group_has_different_ends_if_the_study_says_so() -> None:
    annotated = office_of(ann=(target(3, 5), target(20)), bob=(target(4, 8),))
    annotated.study(Study(TAXONOMY.ref, ("ann", "bob"), boundaries=True))
    work = adjudication(annotated)
    assert targets_by_side(group_of(work)) == {
        "ann": (target(3, 5), target(20)),
        "bob": (target(4, 8),),
    }
    work.decide_together(group_of(work).take_side("bob"))
    assert places(work) == [target(4, 8)]


def test_named_judge_is_a_side_of_the_group(annotated: AnnotatedWorkspace) -> None:
    annotated.workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    annotated.judge(MODE, findings=[Finding(MODE, "k20", "k20", "again", 0.9)])
    names = ("ann", "bob", JUDGE)
    groups_by_trace = conflicts_by_trace(
        annotated.workspace, TAXONOMY, annotators=names, order_of=lambda _: order
    )
    (group,) = groups_by_trace["t1"]
    assert targets_by_side(group)[JUDGE] == (target(20),)
    assert targets_by_side(group_of(adjudication(annotated))).keys() == {"ann", "bob"}


def test_verdict_and_places_of_another_mode_are_two_groups() -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3), other_verdicts={OTHER: UNSURE})
    annotated.finish("bob", target(9), other_verdicts={OTHER: ABSENT})
    groups = conflict_groups(adjudication(annotated).gold.conflicts)
    expected = [(ConflictKind.VERDICT, OTHER), (ConflictKind.PLACE, MODE)]
    assert [(group.kind, group.mode) for group in groups] == expected


def test_group_can_be_decided_for_a_side_all_none_or_another_place(
    annotated: AnnotatedWorkspace,
) -> None:
    work = adjudication(annotated)
    group = group_of(work)
    decisions = work.decide_together(group.take_side("ann"), reason="so")
    assert {decision.reason for decision in work.decisions} == {"so"}
    assert places(work) == [target(3), target(12), target(40, 42)]
    assert [(decision.item, decision.value) for decision in decisions] == [
        (f"{MODE}@k9", ABSENT),
        (f"{MODE}@k12", PRESENT),
        (f"{MODE}@k40..k42", PRESENT),
    ]
    assert work.gold.conflicts == ()
    assert not case_of(work).is_open
    work.decide_together(group.take_all(order) or ())
    assert places(work) == [target(3), target(9), target(12), target(40, 42)]
    work.decide_together(group.take_same(ABSENT_CHOICE))
    assert places(work) == [target(3)]
    work.decide_together(group.take_own_place(target(8, 13), order))
    (label,) = (label for label in work.gold.labels if label.target == target(8, 13))
    assert label.annotators == ("ann", "bob")


def test_deciding_one_place_leaves_the_others_open(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated)
    alone = group_of(work).at_place(target(12))
    assert alone is not None
    work.decide_together(alone.take_same(ABSENT_CHOICE))
    assert group_of(work).at_place(target(3)) is None  # all agree on it
    assert targets_by_side(group_of(work)) == {"ann": (target(40, 42),), "bob": (target(9),)}
    row = case_of(work)
    assert (row.is_open, len(row.decisions)) == (True, 1)
    work.decide_together(group_of(work).take_all(order) or ())
    assert places(work) == [target(3), target(9), target(40, 42)]


def test_group_is_undone_and_redone_in_one_step(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated)
    old_gold = work.gold
    work.decide_another_mode(group_of(work).conflicts, THIRD)
    moved = [(THIRD, target(9)), (THIRD, target(12)), (THIRD, target(40, 42))]
    assert [(x.mode, x.target) for x in work.gold.labels] == [(MODE, target(3)), *moved]
    assert len(work.undo()) == 4
    assert work.decisions == ()
    decided = work.decide_together(group_of(work).take_side("ann"))
    work.explain([decision.item for decision in decided], "so")
    new_gold = work.gold
    facts = [e for e in annotated.workspace.events() if isinstance(e.fact, Decided)]
    assert len({event.action for event in facts[-3:]}) == 1
    assert len(adjudication(annotated).undo()) == 3
    assert adjudication(annotated).gold == old_gold
    assert adjudication(annotated).undo() == ()
    assert len(adjudication(annotated).redo()) == 3
    assert adjudication(annotated).gold == new_gold
    assert {decision.reason for decision in adjudication(annotated).decisions} == {"so"}


def test_single_decisions_are_kept_or_replaced_by_one_on_the_group(
    annotated: AnnotatedWorkspace,
) -> None:
    work = adjudication(annotated)
    first = group_of(work).conflicts[0]
    kept_decision = work.decide(first, choice_of_side(first, "bob"))
    assert targets_by_side(group_of(work)) == {"ann": (target(12), target(40, 42)), "bob": ()}
    work.decide_together(group_of(work).take_side("ann"))
    assert places(work) == [target(3), target(9), target(12), target(40, 42)]
    assert kept_decision in work.decisions
    row = case_of(work)
    assert (row.is_open, row.resolves_conflict, len(row.decisions)) == (False, True, 3)
    group = row.in_question(work.trace_sides.sides, order)
    assert targets_by_side(group) == {"ann": (target(12), target(40, 42)), "bob": (target(9),)}
    work.decide_together(group.take_side("bob"))
    assert places(work) == [target(3), target(9)]
    # An added place is a case of its own.
    decide_place(work, MODE, target(60))
    rows = cases_of(work.gold.conflicts, [d for d in work.decisions if d.mode == MODE])
    assert [row.resolves_conflict for row in rows] == [True, False]
    group = rows[0].in_question(work.trace_sides.sides, order)
    work.decide_together(group.take_same(ABSENT_CHOICE))
    assert places(work) == [target(3), target(60)]


def test_second_look_changes_the_case_until_it_is_confirmed(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated, "bob")
    work.decide_together(group_of(work).take_side("ann"))
    annotated.finish("ann", target(3), number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    changed = case_of(work).outdated_decisions(work.trace_sides.sides, order)
    assert case_of(work).has_changed(work.trace_sides.sides, order)
    assert [decision.item for decision in changed] == [f"{MODE}@k12", f"{MODE}@k40..k42"]
    work.confirm(*(decision.item for decision in changed))
    assert not any(
        decision.has_changed(work.trace_sides.sides, order)
        for decision in cases_of(work.gold.conflicts, work.decisions)
    )
    work.undo()
    assert case_of(work).has_changed(work.trace_sides.sides, order)


def test_new_place_reopens_the_case_and_keeps_decisions(annotated: AnnotatedWorkspace) -> None:
    work = adjudication(annotated, "bob")
    work.decide_together(group_of(work).take_side("bob"))
    marks = (target(3), target(12), target(40, 42), target(70))
    annotated.finish("ann", *marks, number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    row = case_of(work)
    assert (row.is_open, row.has_changed(work.trace_sides.sides, order)) == (True, False)
    assert targets_by_side(row.in_question(work.trace_sides.sides, order)) == {
        "ann": (target(70),),
        "bob": (),
    }


def test_joined_places_and_later_sides_can_be_taken() -> None:
    annotated = office_of(ann=(target(12),), bob=(target(9),))
    work = adjudication(annotated, "ann")
    work.decide_together(group_of(work).take_all(order) or ())
    annotated.finish("bob", target(9, 12), number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    group = case_of(work).in_question(work.trace_sides.sides, order)
    work.decide_together(group.take_side("bob"))
    assert places(work) == [target(9, 12)]
    annotated = office_of(ann=(target(12),), bob=(target(9),))
    work = adjudication(annotated)
    work.decide_together(group_of(work).take_side("ann"))
    annotated.finish("cat", target(9))
    work.refresh()
    group = case_of(work).in_question(work.trace_sides.sides, order)
    work.decide_together(group.take_side("cat"))
    assert places(work) == [target(9)]


def test_queue_counts_a_changed_case_once() -> None:
    annotated = AnnotatedWorkspace("t1", "t2")
    for trace in ("t1", "t2"):
        annotated.finish("ann", target(3), target(20), trace=trace)
        annotated.finish("bob", target(9), target(40), trace=trace)
        work = Adjudication(annotated.workspace, TAXONOMY, trace, "bob", order=order)
        work.decide_together(group_of(work).take_side("ann"))
    annotated.finish("ann", target(21), trace="t2", number=2, kind=PassKind.SECOND_LOOK)
    entries = queue(annotated.workspace, TAXONOMY, "bob", order_of=lambda _: order)
    assert [entry.trace_id for entry in entries] == ["t2", "t1"]


def test_trace_without_an_order_has_one_group() -> None:
    annotated = office_of(ann=(target(3, 5),), bob=(target(4, 8),))
    work = Adjudication(annotated.workspace, TAXONOMY, "t1", "ann", order=no_order)
    assert targets_by_side(group_of(work)) == {"ann": (target(3, 5),), "bob": (target(4, 8),)}
    work.decide_together(group_of(work).take_own_place(target(3, 8)))
    assert places(work) == [target(3, 8)]
    first, second = adjudication(office_of(ann=(target(12),), bob=(target(9),))).gold.conflicts
    work = adjudication(office_of(ann=(target(12),), bob=(target(9),)))
    work.decide(first, Choice(PRESENT, (target(9, 10),), ("bob",)))
    work.decide(second, ABSENT_CHOICE)
    (label,) = work.gold.labels
    assert (label.target, label.annotators) == (target(9, 10), ("bob",))
