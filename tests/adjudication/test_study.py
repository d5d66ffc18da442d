"""Adjudication in a study: order, letters, boundaries, judges, and taking on."""

from __future__ import annotations

from collections import Counter

import pytest

from mast_tui.adjudication import (
    Access,
    Adjudication,
    AdjudicationError,
    ConflictGroup,
    conflicts_by_trace,
    disagreement,
    letters,
    queue,
    read_work_by_trace,
    resolves_conflict,
    take_on,
    take_on_as_study_says,
    trace_disagreement,
)
from mast_tui.adjudication.conflicts import ABSENT_CHOICE, choice_of_all_places, choice_of_side
from mast_tui.gold import Conflict, Resolution, gold_of_trace
from mast_tui.labels import Finding, PassKind, TraceWork
from mast_tui.study.model import Study
from tests.adjudication.annotated_workspace import (
    JUDGE,
    TAXONOMY,
    AnnotatedWorkspace,
    adjudication,
    decide_place,
    decide_verdict,
    only_conflict,
    with_one_conflict,
)
from tests.gold.build import ABSENT, MODE, MODES, OTHER, PRESENT, UNSURE, order, side, target


def study(**fields: object) -> Study:
    """Return a study of ann and bob with cat as its adjudicator."""
    people = {"annotators": ("ann", "bob"), "adjudicators": ("cat",)}
    return Study(TAXONOMY.ref, **(people | fields))  # type: ignore[arg-type]


def conflicts_of(*sides: TraceWork) -> tuple[Conflict, ...]:
    return gold_of_trace(sides, (), MODES, order).conflicts


def test_disagreement_grows_with_an_even_split_of_sides() -> None:
    for values, expected in (
        ((PRESENT, ABSENT), 1.0),
        ((PRESENT, ABSENT, ABSENT), 2 / 3),
        ((PRESENT, PRESENT, ABSENT, ABSENT), 1.0),
        ((PRESENT, ABSENT, ABSENT, ABSENT), 0.5),
        ((PRESENT, ABSENT, UNSURE), 1.0),
    ):
        verdicts = [side(f"p{i}", value=value) for i, value in enumerate(values)]
        (conflict,) = conflicts_of(*verdicts)
        assert disagreement(ConflictGroup((conflict,))) == pytest.approx(expected)
    places = [
        side("ann", target(3)),
        side("bob", target(3), target(9)),
        side("cat", target(3), target(9)),
    ]
    (conflict,) = conflicts_of(*places)
    assert disagreement(ConflictGroup((conflict,))) == pytest.approx(2 / 3)
    # The places of a mode are one disagreement.
    conflicts = conflicts_of(
        side("ann", target(3), target(20)), side("bob", target(9)), side("cat", target(9))
    )
    assert len(conflicts) == 3
    assert trace_disagreement(conflicts) == pytest.approx(2 / 3)


def test_queue_has_most_disagreement_first_and_then_goes_by_trace() -> None:
    annotated = AnnotatedWorkspace("t1", "t2", "t3", "t4")
    for trace, marks in (
        ("t1", (target(3),)),
        ("t2", (target(3),)),
        ("t3", (target(9),)),
        ("t4", ()),
    ):
        annotated.finish("ann", *marks, trace=trace, value=None if marks else ABSENT)
    for trace in ("t1", "t3", "t4"):
        annotated.finish("bob", value=ABSENT, trace=trace)
    annotated.finish("bob", value=ABSENT, trace="t2", other_verdicts={OTHER: PRESENT})
    entries = queue(annotated.workspace, TAXONOMY, "ann", order_of=lambda _: order)
    assert [entry.trace_id for entry in entries] == ["t2", "t1", "t3", "t4"]
    conflicts_left = [entry.gold.conflicts for entry in entries if entry.gold is not None]
    assert [trace_disagreement(conflicts) for conflicts in conflicts_left] == [2, 1, 1, 0]


def test_decisions_on_conflicts_differ_from_those_on_agreed_verdicts() -> None:
    work = adjudication(with_one_conflict())
    assert resolves_conflict(work.decide(only_conflict(work), ABSENT_CHOICE))
    assert not resolves_conflict(decide_place(work, OTHER, target(4)))
    assert not resolves_conflict(decide_verdict(work, OTHER, ABSENT_CHOICE))


def test_letters_hide_names_in_a_fixed_random_order() -> None:
    by_name = letters("t1", ["bob", "ann", "cat"], 7)
    assert sorted(by_name) == ["ann", "bob", "cat"]
    assert list(by_name.values()) == ["A", "B", "C"]
    assert letters("t1", ["cat", "ann", "bob"], 7) == by_name
    first = Counter(next(iter(letters(f"t{i}", ["ann", "bob"]))) for i in range(200))
    assert all(60 <= count <= 140 for count in first.values())
    assert len(first) == 2
    assert len({tuple(letters("t1", ["ann", "bob", "cat"], seed)) for seed in range(20)}) > 1
    names = [f"p{i}" for i in range(60)]
    assert len(set(letters("t1", names).values())) == 60


@pytest.fixture
def annotated() -> AnnotatedWorkspace:
    """ann and bob mark overlapping places; all else is absent."""
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3, 5))
    annotated.finish("bob", target(4, 8))
    return annotated


def test_boundaries_are_conflicts_if_the_study_says_so(annotated: AnnotatedWorkspace) -> None:
    def places() -> list[int]:
        (entry,) = queue(annotated.workspace, TAXONOMY, "ann", order_of=lambda _: order)
        work = adjudication(annotated)
        gold = read_work_by_trace(annotated.workspace, TAXONOMY)["t1"].gold(TAXONOMY, order)
        conflicts_left = conflicts_by_trace(annotated.workspace, TAXONOMY, order_of=lambda _: order)
        assert entry.gold is not None
        conflicts = (
            entry.gold.conflicts,
            work.gold.conflicts,
            gold.conflicts,
            conflicts_left["t1"],
        )
        return [len(group) for group in conflicts]

    assert places() == [0, 0, 0, 0]
    annotated.study(study(boundaries=True))
    assert places() == [1, 1, 1, 1]
    work = adjudication(annotated)
    conflict = only_conflict(work)
    work.decide(conflict, choice_of_side(conflict, "bob"))
    (mark,) = read_work_by_trace(annotated.workspace, TAXONOMY)["t1"].gold(TAXONOMY, order).labels
    assert (mark.target, mark.annotators) == (target(4, 8), ("bob",))
    assert mark.source is Resolution.ADJUDICATED
    work.undo()
    work.decide(conflict, choice_of_all_places(conflict, order) or ABSENT_CHOICE)
    assert [label.target for label in work.gold.labels] == [target(3, 8)]


@pytest.mark.parametrize("first", [True, False])
def test_judge_is_shown_first_only_if_the_study_says_so(first: bool) -> None:
    annotated = with_one_conflict()
    annotated.judge(MODE, OTHER, findings=[Finding(MODE, "k3", "k3", "twice", 0.8)])
    annotated.study(study(judge_first=first))
    work = adjudication(annotated)
    assert [word.judge for word in work.judge_answers(MODE)] == ([JUDGE] if first else [])
    assert work.judge_shown(MODE) is first
    assert work.decide(only_conflict(work), ABSENT_CHOICE).judge_seen is first
    (word,) = work.judge_answers(MODE)
    assert (word.value, [label.mode for label in word.labels]) == (PRESENT, [MODE])


def test_judge_without_findings_has_a_verdict() -> None:
    annotated = with_one_conflict()
    annotated.judge(MODE)
    work = adjudication(annotated)
    conflict = only_conflict(work)
    assert not work.decide(conflict, ABSENT_CHOICE).judge_seen
    (word,) = work.judge_answers(MODE)
    assert (word.value, word.labels) == (ABSENT, ())
    assert work.decide(conflict, ABSENT_CHOICE).judge_seen
    assert work.judge_answers(OTHER) == ()
    assert not work.judge_shown(OTHER)


def test_adjudicator_of_a_study_takes_on_what_two_have_finished() -> None:
    annotated = AnnotatedWorkspace("t1", "t2", "t3")
    for trace in ("t1", "t3"):
        annotated.finish("ann", target(3), trace=trace)
        annotated.finish("bob", value=ABSENT, trace=trace)
    annotated.finish("ann", target(3), trace="t2")
    annotated.study(study(batches=(("t1", "t2"),)))
    assert take_on_as_study_says(annotated.workspace, TAXONOMY, "cat") == ("t1",)
    assert take_on_as_study_says(annotated.workspace, TAXONOMY, "cat") == ()
    entries = queue(annotated.workspace, TAXONOMY, "cat", order_of=lambda _: order)
    assert {e.trace_id: e.access for e in entries} == {"t1": Access.OPEN, "t3": Access.HIDDEN}
    kinds = [annotator_pass.kind for annotator_pass in annotated.workspace.passes(annotator="cat")]
    assert kinds == [PassKind.ADJUDICATION]


@pytest.mark.parametrize("annotator", ["dan", "ann"])
def test_others_take_nothing_on(annotator: str) -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("bob", value=ABSENT)
    annotated.finish("eve", target(3))
    annotated.study(study(adjudicators=("cat", "ann"), batches=(("t1",),)))
    assert take_on_as_study_says(annotated.workspace, TAXONOMY, annotator) == ()


def test_retest_trace_is_hidden_until_it_is_labelled_or_taken_on() -> None:
    annotated = AnnotatedWorkspace("t1", "t2")
    for trace in ("t1", "t2"):
        annotated.finish("ann", target(3), trace=trace)
        annotated.finish("bob", value=ABSENT, trace=trace)
    annotated.study(study(adjudicators=("ann",), batches=(("t1", "t2"),), retests=1.0))

    def seen() -> dict[str, tuple[Access, int]]:
        entries = queue(annotated.workspace, TAXONOMY, "ann", order_of=lambda _: order)
        return {
            entry.trace_id: (entry.access, len(entry.gold.conflicts) if entry.gold else 0)
            for entry in entries
        }

    assert seen() == {"t1": (Access.AGAIN, 0), "t2": (Access.AGAIN, 0)}
    assert all(
        annotator_pass.revealed_at is None
        for annotator_pass in annotated.workspace.passes(annotator="ann")
    )
    with pytest.raises(AdjudicationError, match="is to label t1 again"):
        Adjudication(annotated.workspace, TAXONOMY, "t1", "ann", order=order)
    assert take_on(annotated.workspace, TAXONOMY, "ann", ["t1"]) == ("t1",)
    assert seen() == {"t1": (Access.OPEN, 1), "t2": (Access.AGAIN, 0)}
    annotated.start("ann", "t2", number=2, kind=PassKind.RETEST)
    assert seen()["t2"] == (Access.UNFINISHED, 0)
    assert take_on(annotated.workspace, TAXONOMY, "ann", ["t2"]) == ()
    annotated.end("ann", "t2", number=2)
    assert seen()["t2"] == (Access.OPEN, 1)
