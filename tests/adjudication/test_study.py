"""What a study changes in adjudication: order, names, boundaries, the judge, who takes what on."""

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
    resolves_conflict,
    take_on,
    take_on_as_study_says,
    trace_disagreement,
    words_by_trace,
)
from mast_tui.gold import Resolution, gold_of_trace
from mast_tui.gold.choice import NOBODY, take_all, take_side
from mast_tui.labels import Finding, PassKind, TraceWork, VerdictValue
from mast_tui.study.model import Study
from mast_tui.workspace import store_judgement
from tests.adjudication.office import TAXONOMY, Office, overrule, taken_over
from tests.gold.build import ABSENT, MODE, MODES, OTHER, PRESENT, UNSURE, at, order, side

JUDGE = "judge:rules@1"


def study(**fields: object) -> Study:
    """A study of ann and bob with cat as its adjudicator."""
    given = {"annotators": ("ann", "bob"), "adjudicators": ("cat",), **fields}
    return Study(TAXONOMY.ref, **given)  # type: ignore[arg-type]


class TestDisagreement:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ((PRESENT, ABSENT), 1.0),
            ((PRESENT, ABSENT, ABSENT), 2 / 3),
            ((PRESENT, PRESENT, ABSENT, ABSENT), 1.0),
            ((PRESENT, ABSENT, ABSENT, ABSENT), 0.5),
            ((PRESENT, ABSENT, UNSURE), 1.0),
        ],
    )
    def test_the_more_evenly_the_sides_split_the_greater(
        self, values: tuple[VerdictValue, ...], expected: float
    ) -> None:
        sides = [
            TraceWork(f"p{i}", "t1", TAXONOMY.ref, verdicts={MODE: value})
            for i, value in enumerate(values)
        ]
        (conflict,) = gold_of_trace(sides, (), MODES, order).conflicts
        assert disagreement(ConflictGroup((conflict,))) == pytest.approx(expected)

    def test_places_count_by_who_marked_the_same(self) -> None:
        sides = [side("ann", at(3)), side("bob", at(3), at(9)), side("cat", at(3), at(9))]
        (conflict,) = gold_of_trace(sides, (), MODES, order).conflicts
        assert disagreement(ConflictGroup((conflict,))) == pytest.approx(2 / 3)

    def test_the_places_of_a_mode_are_one_disagreement(self) -> None:
        sides = [side("ann", at(3), at(20)), side("bob", at(9)), side("cat", at(9))]
        conflicts = gold_of_trace(sides, (), MODES, order).conflicts
        assert len(conflicts) == 3
        assert trace_disagreement(conflicts) == pytest.approx(2 / 3)

    def test_the_queue_has_most_disagreement_first_and_then_goes_by_trace(self) -> None:
        office = Office("t1", "t2", "t3", "t4")
        for trace, marks in (("t1", (at(3),)), ("t2", (at(3),)), ("t3", (at(9),)), ("t4", ())):
            office.finish("ann", *marks, trace=trace, value=None if marks else ABSENT)
        for trace in ("t1", "t3", "t4"):
            office.finish("bob", value=ABSENT, trace=trace)
        office.finish("bob", value=ABSENT, trace="t2", others={OTHER: PRESENT})
        entries = queue(office.workspace, TAXONOMY, "ann", order_of=lambda _: order)
        assert [entry.trace_id for entry in entries] == ["t2", "t1", "t3", "t4"]
        left = [entry.gold.conflicts for entry in entries if entry.gold is not None]
        assert [trace_disagreement(conflicts) for conflicts in left] == [2, 1, 1, 0]

    def test_a_conflict_that_was_decided_is_told_from_what_was_agreed(self) -> None:
        office = Office()
        office.finish("ann", at(3))
        office.finish("bob", value=ABSENT)
        work = Adjudication(office.workspace, TAXONOMY, "t1", "ann", order=order)
        assert resolves_conflict(work.decide(work.gold.conflicts[0], NOBODY))
        assert not resolves_conflict(taken_over(work, OTHER, at(4)))
        assert not resolves_conflict(overrule(work, OTHER, NOBODY))


class TestLetters:
    def test_everybody_has_a_letter_and_it_stays(self) -> None:
        found = letters("t1", ["bob", "ann", "cat"], 7)
        assert sorted(found) == ["ann", "bob", "cat"]
        assert list(found.values()) == ["A", "B", "C"]
        assert letters("t1", ["cat", "ann", "bob"], 7) == found

    def test_nobody_is_always_the_first(self) -> None:
        first = Counter(next(iter(letters(f"t{i}", ["ann", "bob"]))) for i in range(200))
        assert all(60 <= count <= 140 for count in first.values())
        assert len(first) == 2

    def test_another_seed_mixes_them_anew(self) -> None:
        mixed = {tuple(letters("t1", ["ann", "bob", "cat"], seed)) for seed in range(20)}
        assert len(mixed) > 1

    def test_there_are_letters_for_more_than_the_alphabet(self) -> None:
        names = [f"p{i}" for i in range(60)]
        assert len(set(letters("t1", names).values())) == 60


@pytest.fixture
def office() -> Office:
    """ann and bob mark overlapping places; all else is absent."""
    office = Office()
    office.finish("ann", at(3, 5))
    office.finish("bob", at(4, 8))
    return office


def test_boundaries_are_conflicts_where_the_study_says_so(office: Office) -> None:
    def places() -> list[int]:
        (entry,) = queue(office.workspace, TAXONOMY, "ann", order_of=lambda _: order)
        work = Adjudication(office.workspace, TAXONOMY, "t1", "ann", order=order)
        words = words_by_trace(office.workspace, TAXONOMY)["t1"].gold(TAXONOMY, order)
        left = conflicts_by_trace(office.workspace, TAXONOMY, order_of=lambda _: order)
        assert entry.gold is not None
        return [
            len(entry.gold.conflicts),
            len(work.gold.conflicts),
            len(words.conflicts),
            len(left["t1"]),
        ]

    assert places() == [0, 0, 0, 0]
    office.study(study(boundaries=True))
    assert places() == [1, 1, 1, 1]
    work = Adjudication(office.workspace, TAXONOMY, "t1", "ann", order=order)
    (conflict,) = work.gold.conflicts
    work.decide(conflict, take_side(conflict, "bob"))
    (mark,) = words_by_trace(office.workspace, TAXONOMY)["t1"].gold(TAXONOMY, order).labels
    assert (mark.target, mark.source, mark.annotators) == (
        at(4, 8),
        Resolution.ADJUDICATED,
        ("bob",),
    )
    work.undo()
    work.decide(conflict, take_all(conflict, order) or NOBODY)
    assert [label.target for label in work.gold.labels] == [at(3, 8)]


@pytest.mark.parametrize("first", [True, False])
def test_the_judge_comes_first_only_where_the_study_says_so(first: bool) -> None:
    office = Office()
    office.finish("ann", at(3))
    office.finish("bob", value=ABSENT)
    store_judgement(
        office.workspace,
        judge=JUDGE,
        taxonomy=TAXONOMY.ref,
        trace_id="t1",
        looks_at=(MODE, OTHER),
        findings=[Finding(MODE, "k3", "k3", "twice", 0.8)],
    )
    office.study(study(judge_first=first))
    work = Adjudication(office.workspace, TAXONOMY, "t1", "ann", order=order)
    (conflict,) = work.gold.conflicts
    words = work.judge_words(MODE)
    assert [word.judge for word in words] == ([JUDGE] if first else [])
    assert work.judge_shown(MODE) is first
    assert work.decide(conflict, NOBODY).judge_seen is first
    (word,) = work.judge_words(MODE)
    assert (word.value, [label.mode for label in word.labels]) == (PRESENT, [MODE])


def test_a_judge_that_found_nothing_has_spoken_too() -> None:
    office = Office()
    office.finish("ann", at(3))
    office.finish("bob", value=ABSENT)
    store_judgement(
        office.workspace, judge=JUDGE, taxonomy=TAXONOMY.ref, trace_id="t1",
        looks_at=(MODE,), findings=[],
    )  # fmt: skip
    work = Adjudication(office.workspace, TAXONOMY, "t1", "ann", order=order)
    (conflict,) = work.gold.conflicts
    assert not work.decide(conflict, NOBODY).judge_seen
    (word,) = work.judge_words(MODE)
    assert (word.value, word.labels) == (ABSENT, ())
    assert work.decide(conflict, NOBODY).judge_seen
    assert work.judge_words(OTHER) == ()
    assert not work.judge_shown(OTHER)


class TestTakingOn:
    def test_a_studys_adjudicator_takes_on_what_two_have_finished(self) -> None:
        office = Office("t1", "t2", "t3")
        for trace in ("t1", "t3"):
            office.finish("ann", at(3), trace=trace)
            office.finish("bob", value=ABSENT, trace=trace)
        office.finish("ann", at(3), trace="t2")
        office.study(study(batches=(("t1", "t2"),)))
        assert take_on_as_study_says(office.workspace, TAXONOMY, "cat") == ("t1",)
        assert take_on_as_study_says(office.workspace, TAXONOMY, "cat") == ()
        entries = queue(office.workspace, TAXONOMY, "cat", order_of=lambda _: order)
        assert {e.trace_id: e.access for e in entries} == {"t1": Access.OPEN, "t3": Access.HIDDEN}
        kinds = [one.kind for one in office.workspace.passes(annotator="cat")]
        assert kinds == [PassKind.ADJUDICATION]

    @pytest.mark.parametrize("who", ["dan", "ann"])
    def test_nobody_else_does(self, who: str) -> None:
        office = Office()
        office.finish("bob", value=ABSENT)
        office.finish("eve", at(3))
        office.study(study(adjudicators=("cat", "ann"), batches=(("t1",),)))
        assert take_on_as_study_says(office.workspace, TAXONOMY, who) == ()

    def test_a_trace_that_is_to_be_labelled_once_more_is_hidden_till_then_or_taken_on(self) -> None:
        office = Office("t1", "t2")
        for trace in ("t1", "t2"):
            office.finish("ann", at(3), trace=trace)
            office.finish("bob", value=ABSENT, trace=trace)
        office.study(study(adjudicators=("ann",), batches=(("t1", "t2"),), retests=1.0))

        def seen() -> dict[str, tuple[Access, int]]:
            entries = queue(office.workspace, TAXONOMY, "ann", order_of=lambda _: order)
            return {
                entry.trace_id: (entry.access, len(entry.gold.conflicts) if entry.gold else 0)
                for entry in entries
            }

        assert seen() == {"t1": (Access.AGAIN, 0), "t2": (Access.AGAIN, 0)}
        assert all(one.revealed_at is None for one in office.workspace.passes(annotator="ann"))
        with pytest.raises(AdjudicationError, match="labelled again"):
            Adjudication(office.workspace, TAXONOMY, "t1", "ann", order=order)
        assert take_on(office.workspace, TAXONOMY, "ann", ["t1"]) == ("t1",)
        assert seen() == {"t1": (Access.OPEN, 1), "t2": (Access.AGAIN, 0)}
        office.start("ann", "t2", number=2, kind=PassKind.RETEST)
        assert seen()["t2"] == (Access.UNFINISHED, 0)
        assert take_on(office.workspace, TAXONOMY, "ann", ["t2"]) == ()
        office.end("ann", "t2", number=2)
        assert seen()["t2"] == (Access.OPEN, 1)
