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
from tests.adjudication.office import JUDGE, TAXONOMY, THIRD, Office, adjudication, taken_over
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, UNSURE, at, order, quote


def office_of(**places: tuple[Target, ...]) -> Office:
    """Return an office in which people have marked these places and finished."""
    office = Office()
    for name, targets in places.items():
        office.finish(name, *targets)
    return office


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
def office() -> Office:
    """Agreement of ann and bob on #3, and other places of each."""
    return office_of(ann=(at(3), at(12), at(40, 42)), bob=(at(3), at(9)))


def said(group: ConflictGroup) -> dict[str, tuple[Target, ...]]:
    return {side.annotator: side.targets for side in group.said}


def test_group_has_all_disputed_places_of_each_side(office: Office) -> None:
    work = adjudication(office)
    assert len(work.gold.conflicts) == 3
    group = group_of(work)
    assert group.kind is ConflictKind.PLACE
    assert said(group) == {"ann": (at(12), at(40, 42)), "bob": (at(9),)}
    assert group.where == at(9)
    left = conflicts_by_trace(office.workspace, TAXONOMY, order_of=lambda _: order)
    assert [len(groups) for groups in left.values()] == [1]
    assert case_of(work).is_open
    with pytest.raises(KeyError):
        group.take_side("cat")


def test_group_of_three_sides_quotes_and_whole_traces() -> None:
    first = quote(4, 0, "again")
    second = quote(4, 20, "and again")
    for places_of, expected in (
        (
            {"ann": (at(3), at(9)), "bob": (at(3),), "cat": (at(3), at(20))},
            {"ann": (at(9),), "bob": (), "cat": (at(20),)},
        ),
        ({"ann": (first,), "bob": (second,)}, {"ann": (first,), "bob": (second,)}),
    ):
        assert said(group_of(adjudication(office_of(**places_of)))) == expected
    work = adjudication(office_of(ann=(WHOLE_TRACE, at(12)), bob=(at(9),), cat=(WHOLE_TRACE,)))
    assert said(group_of(work)) == {"ann": (at(12),), "bob": (at(9),)}
    work.decide_together(group_of(work).take_side("bob"))
    assert places(work) == [WHOLE_TRACE, at(9)]


def test_group_has_different_ends_if_the_study_says_so() -> None:
    office = office_of(ann=(at(3, 5), at(20)), bob=(at(4, 8),))
    office.study(Study(TAXONOMY.ref, ("ann", "bob"), boundaries=True))
    work = adjudication(office)
    assert said(group_of(work)) == {"ann": (at(3, 5), at(20)), "bob": (at(4, 8),)}
    work.decide_together(group_of(work).take_side("bob"))
    assert places(work) == [at(4, 8)]


def test_named_judge_is_a_side_of_the_group(office: Office) -> None:
    office.workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    office.judge(MODE, findings=[Finding(MODE, "k20", "k20", "again", 0.9)])
    names = ("ann", "bob", JUDGE)
    left = conflicts_by_trace(
        office.workspace, TAXONOMY, annotators=names, order_of=lambda _: order
    )
    (group,) = left["t1"]
    assert said(group)[JUDGE] == (at(20),)
    assert said(group_of(adjudication(office))).keys() == {"ann", "bob"}


def test_verdict_and_places_of_another_mode_are_two_groups() -> None:
    office = Office()
    office.finish("ann", at(3), others={OTHER: UNSURE})
    office.finish("bob", at(9), others={OTHER: ABSENT})
    groups = conflict_groups(adjudication(office).gold.conflicts)
    expected = [(ConflictKind.VERDICT, OTHER), (ConflictKind.PLACE, MODE)]
    assert [(group.kind, group.mode) for group in groups] == expected


def test_group_can_be_decided_for_a_side_all_none_or_another_place(office: Office) -> None:
    work = adjudication(office)
    group = group_of(work)
    decisions = work.decide_together(group.take_side("ann"), reason="so")
    assert {one.reason for one in work.decisions} == {"so"}
    assert places(work) == [at(3), at(12), at(40, 42)]
    assert [(one.item, one.value) for one in decisions] == [
        (f"{MODE}@k9", ABSENT),
        (f"{MODE}@k12", PRESENT),
        (f"{MODE}@k40..k42", PRESENT),
    ]
    assert work.gold.conflicts == ()
    assert not case_of(work).is_open
    work.decide_together(group.take_all(order) or ())
    assert places(work) == [at(3), at(9), at(12), at(40, 42)]
    work.decide_together(group.take_same(ABSENT_CHOICE))
    assert places(work) == [at(3)]
    work.decide_together(group.take_own_place(at(8, 13), order))
    (label,) = (label for label in work.gold.labels if label.target == at(8, 13))
    assert label.annotators == ("ann", "bob")


def test_deciding_one_place_leaves_the_others_open(office: Office) -> None:
    work = adjudication(office)
    alone = group_of(work).at_place(at(12))
    assert alone is not None
    work.decide_together(alone.take_same(ABSENT_CHOICE))
    assert group_of(work).at_place(at(3)) is None  # all agree on it
    assert said(group_of(work)) == {"ann": (at(40, 42),), "bob": (at(9),)}
    row = case_of(work)
    assert (row.is_open, len(row.decisions)) == (True, 1)
    work.decide_together(group_of(work).take_all(order) or ())
    assert places(work) == [at(3), at(9), at(40, 42)]


def test_group_is_undone_and_redone_in_one_step(office: Office) -> None:
    work = adjudication(office)
    before = work.gold
    work.decide_another_mode(group_of(work).conflicts, THIRD)
    moved = [(THIRD, at(9)), (THIRD, at(12)), (THIRD, at(40, 42))]
    assert [(x.mode, x.target) for x in work.gold.labels] == [(MODE, at(3)), *moved]
    assert len(work.undo()) == 4
    assert work.decisions == ()
    decided = work.decide_together(group_of(work).take_side("ann"))
    work.explain([one.item for one in decided], "so")
    after = work.gold
    facts = [e for e in office.workspace.events() if isinstance(e.fact, Decided)]
    assert len({event.action for event in facts[-3:]}) == 1
    assert len(adjudication(office).undo()) == 3
    assert adjudication(office).gold == before
    assert adjudication(office).undo() == ()
    assert len(adjudication(office).redo()) == 3
    assert adjudication(office).gold == after
    assert {one.reason for one in adjudication(office).decisions} == {"so"}


def test_single_decisions_are_kept_or_replaced_by_one_on_the_group(office: Office) -> None:
    work = adjudication(office)
    first = group_of(work).conflicts[0]
    kept = work.decide(first, choice_of_side(first, "bob"))
    assert said(group_of(work)) == {"ann": (at(12), at(40, 42)), "bob": ()}
    work.decide_together(group_of(work).take_side("ann"))
    assert places(work) == [at(3), at(9), at(12), at(40, 42)]
    assert kept in work.decisions
    row = case_of(work)
    assert (row.is_open, row.resolves_conflict, len(row.decisions)) == (False, True, 3)
    again = row.in_question(work.trace_sides.sides, order)
    assert said(again) == {"ann": (at(12), at(40, 42)), "bob": (at(9),)}
    work.decide_together(again.take_side("bob"))
    assert places(work) == [at(3), at(9)]
    # An added place is a case of its own.
    taken_over(work, MODE, at(60))
    rows = cases_of(work.gold.conflicts, [d for d in work.decisions if d.mode == MODE])
    assert [row.resolves_conflict for row in rows] == [True, False]
    again = rows[0].in_question(work.trace_sides.sides, order)
    work.decide_together(again.take_same(ABSENT_CHOICE))
    assert places(work) == [at(3), at(60)]


def test_second_look_changes_the_case_until_it_is_confirmed(office: Office) -> None:
    work = adjudication(office, "bob")
    work.decide_together(group_of(work).take_side("ann"))
    office.finish("ann", at(3), number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    changed = case_of(work).outdated_decisions(work.trace_sides.sides, order)
    assert case_of(work).has_changed(work.trace_sides.sides, order)
    assert [one.item for one in changed] == [f"{MODE}@k12", f"{MODE}@k40..k42"]
    work.confirm(*(one.item for one in changed))
    assert not any(
        one.has_changed(work.trace_sides.sides, order)
        for one in cases_of(work.gold.conflicts, work.decisions)
    )
    work.undo()
    assert case_of(work).has_changed(work.trace_sides.sides, order)


def test_new_place_reopens_the_case_and_keeps_decisions(office: Office) -> None:
    work = adjudication(office, "bob")
    work.decide_together(group_of(work).take_side("bob"))
    marks = (at(3), at(12), at(40, 42), at(70))
    office.finish("ann", *marks, number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    row = case_of(work)
    assert (row.is_open, row.has_changed(work.trace_sides.sides, order)) == (True, False)
    assert said(row.in_question(work.trace_sides.sides, order)) == {"ann": (at(70),), "bob": ()}


def test_joined_places_and_later_sides_can_be_taken() -> None:
    office = office_of(ann=(at(12),), bob=(at(9),))
    work = adjudication(office, "ann")
    work.decide_together(group_of(work).take_all(order) or ())
    office.finish("bob", at(9, 12), number=2, kind=PassKind.SECOND_LOOK)
    work.refresh()
    again = case_of(work).in_question(work.trace_sides.sides, order)
    work.decide_together(again.take_side("bob"))
    assert places(work) == [at(9, 12)]
    office = office_of(ann=(at(12),), bob=(at(9),))
    work = adjudication(office)
    work.decide_together(group_of(work).take_side("ann"))
    office.finish("cat", at(9))
    work.refresh()
    again = case_of(work).in_question(work.trace_sides.sides, order)
    work.decide_together(again.take_side("cat"))
    assert places(work) == [at(9)]


def test_queue_counts_a_changed_case_once() -> None:
    office = Office("t1", "t2")
    for trace in ("t1", "t2"):
        office.finish("ann", at(3), at(20), trace=trace)
        office.finish("bob", at(9), at(40), trace=trace)
        work = Adjudication(office.workspace, TAXONOMY, trace, "bob", order=order)
        work.decide_together(group_of(work).take_side("ann"))
    office.finish("ann", at(21), trace="t2", number=2, kind=PassKind.SECOND_LOOK)
    entries = queue(office.workspace, TAXONOMY, "bob", order_of=lambda _: order)
    assert [entry.trace_id for entry in entries] == ["t2", "t1"]


def test_trace_without_an_order_has_one_group() -> None:
    office = office_of(ann=(at(3, 5),), bob=(at(4, 8),))
    work = Adjudication(office.workspace, TAXONOMY, "t1", "ann", order=no_order)
    assert said(group_of(work)) == {"ann": (at(3, 5),), "bob": (at(4, 8),)}
    work.decide_together(group_of(work).take_own_place(at(3, 8)))
    assert places(work) == [at(3, 8)]
    first, second = adjudication(office_of(ann=(at(12),), bob=(at(9),))).gold.conflicts
    work = adjudication(office_of(ann=(at(12),), bob=(at(9),)))
    work.decide(first, Choice(PRESENT, (at(9, 10),), ("bob",)))
    work.decide(second, ABSENT_CHOICE)
    (label,) = work.gold.labels
    assert (label.target, label.annotators) == (at(9, 10), ("bob",))
