"""Gold of one trace: what is taken over, what is a conflict, and what a decision does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.gold import ConflictKind, Decision, Resolution, Said, gold_of_trace, no_order
from mast_tui.labels import WHOLE_TRACE, AnnotatorKind, Severity, Target, TraceWork, VerdictValue
from tests.gold.build import (
    ABSENT,
    MODE,
    MODES,
    OTHER,
    PRESENT,
    UNSURE,
    at,
    decide,
    gold,
    label,
    order,
    places,
    quote,
    side,
)


class TestVerdicts:
    @pytest.mark.parametrize("value", [PRESENT, ABSENT, UNSURE])
    def test_equal_ones_are_unanimous(self, value: VerdictValue) -> None:
        result = gold([side("ann", value=value), side("bob", value=value)])
        verdict = result.verdict(MODE)
        assert (verdict.value, verdict.source) == (value, Resolution.UNANIMOUS)
        assert verdict.sides == {"ann": value, "bob": value}
        assert result.conflicts == ()

    def test_one_annotator_is_single(self) -> None:
        verdict = gold([side("ann", value=ABSENT)]).verdict(MODE)
        assert (verdict.value, verdict.source) == (ABSENT, Resolution.SINGLE)

    def test_open_disagrees_with_nobody(self) -> None:
        result = gold([side("ann", at(3)), side("bob")])
        assert result.verdict(MODE).source is Resolution.SINGLE
        assert places(result) == [(at(3), Resolution.SINGLE, False)]
        assert result.conflicts == ()

    def test_a_mode_that_nobody_judged_has_no_verdict_and_nothing_to_decide(self) -> None:
        result = gold([side("ann"), side("bob")])
        assert result.verdict(MODE).value is None
        assert result.verdict(MODE).source is Resolution.UNRESOLVED
        assert result.conflicts == ()

    @pytest.mark.parametrize("other", [ABSENT, UNSURE])
    def test_different_ones_are_a_conflict(self, other: VerdictValue) -> None:
        result = gold([side("ann", at(3)), side("bob", value=other)])
        assert result.verdict(MODE).value is None
        assert result.labels == ()
        (conflict,) = result.conflicts
        assert (conflict.kind, conflict.mode) == (ConflictKind.VERDICT, MODE)
        assert conflict.said == (Said("ann", PRESENT, (at(3),)), Said("bob", other))
        assert conflict.where == at(3)

    def test_a_label_is_a_verdict_of_its_own(self) -> None:
        assert side("ann", at(3), value=ABSENT).verdict(MODE) is PRESENT

    def test_majority_only_on_request(self) -> None:
        sides = [side("ann", at(3)), side("bob", at(3)), side("cat", value=ABSENT)]
        assert gold(sides).verdict(MODE).source is Resolution.UNRESOLVED
        result = gold(sides, majority=True)
        assert (result.verdict(MODE).value, result.verdict(MODE).source) == (
            PRESENT,
            Resolution.MAJORITY,
        )
        assert places(result) == [(at(3), Resolution.UNANIMOUS, False)]
        assert result.conflicts == ()

    @pytest.mark.parametrize(
        "values", [(PRESENT, ABSENT), (UNSURE, UNSURE, PRESENT), (PRESENT, PRESENT, ABSENT, ABSENT)]
    )
    def test_no_majority_where_no_answer_has_more_than_half(
        self, values: tuple[VerdictValue, ...]
    ) -> None:
        sides = [side(f"a{i}", value=value) for i, value in enumerate(values)]
        assert gold(sides, majority=True).verdict(MODE).source is Resolution.UNRESOLVED

    def test_judge_seen_is_that_of_sides_with_a_verdict(self) -> None:
        blind = side("ann", value=ABSENT)
        assert not gold([blind, side("bob", value=ABSENT)]).verdict(MODE).judge_seen
        assert gold([blind, side("bob", value=ABSENT, judge_seen=True)]).verdict(MODE).judge_seen
        assert not gold([blind, side("bob", judge_seen=True)]).verdict(MODE).judge_seen
        saw = side("bob", labels=[label("bob", at(3), saw=True)])
        assert gold([saw]).verdict(MODE).judge_seen
        judge = replace(side("judge:rules@1", value=ABSENT), author_kind=AnnotatorKind.JUDGE)
        assert gold([judge]).verdict(MODE).judge_seen


class TestPlaces:
    def test_equal_targets_are_taken_over(self) -> None:
        result = gold([side("ann", at(3, 5)), side("bob", at(3, 5))])
        (mark,) = result.labels
        assert (mark.target, mark.source, mark.merged) == (at(3, 5), Resolution.UNANIMOUS, False)
        assert mark.annotators == ("ann", "bob")
        assert len(mark.labels) == 2

    def test_overlapping_ones_give_the_span_that_covers_both(self) -> None:
        sides = [side("ann", at(3, 5)), side("bob", at(4, 8))]
        assert places(gold(sides)) == [(at(3, 8), Resolution.UNANIMOUS, True)]

    @pytest.mark.parametrize("majority", [False, True])
    @pytest.mark.parametrize(
        "sides",
        [
            [side("ann", at(0, 9)), side("bob", at(1), at(8))],
            [side("ann", at(0, 2), at(4, 6)), side("bob", at(2, 4), at(6, 8))],
            [side("ann", at(0, 9)), side("bob", at(1), at(8)), side("cat", at(0, 9))],
        ],
        ids=["a wide place", "a chain", "two wide places"],
    )
    def test_places_of_one_annotator_are_not_joined_by_anothers(
        self, sides: list[TraceWork], majority: bool
    ) -> None:
        result = gold(sides, majority=majority)
        assert result.labels == ()
        (conflict,) = result.conflicts
        assert conflict.kind is ConflictKind.PLACE
        assert {said.annotator: said.targets for said in conflict.said} == {
            one.annotator: tuple(label.target for label in one.labels.values()) for one in sides
        }
        decided = gold(sides, decide(conflict, PRESENT, at(1), at(8), sides=("bob",)))
        assert places(decided) == [
            (at(1), Resolution.ADJUDICATED, False),
            (at(8), Resolution.ADJUDICATED, False),
        ]

    def test_places_of_one_annotator_that_touch_are_one(self) -> None:
        sides = [side("ann", at(0, 9)), side("bob", at(1, 4), at(3, 6))]
        assert places(gold(sides)) == [(at(0, 9), Resolution.UNANIMOUS, True)]

    @pytest.mark.parametrize(
        ("severities", "severity", "source"),
        [
            (["fatal", "fatal"], "fatal", Resolution.UNANIMOUS),
            (["fatal", None], "fatal", Resolution.SINGLE),
            (["fatal", "fatal", None], "fatal", Resolution.MAJORITY),
            (["fatal", "benign"], None, None),
            ([None, None], None, None),
            (["fatal"], "fatal", Resolution.SINGLE),
        ],
    )
    def test_a_severity_says_how_many_gave_it(
        self, severities: list[str | None], severity: str | None, source: Resolution | None
    ) -> None:
        sides = [
            side(
                f"a{i}",
                labels=[label(f"a{i}", at(3), severity=None if word is None else Severity(word))],
            )
            for i, word in enumerate(severities)
        ]
        (mark,) = gold(sides).labels
        assert (mark.severity and mark.severity.value, mark.severity_source) == (severity, source)

    def test_boundaries_are_a_conflict_only_where_asked_for(self) -> None:
        sides = [side("ann", at(3, 5)), side("bob", at(4, 8)), side("cat", at(3, 5))]
        result = gold(sides, boundaries=True)
        assert result.labels == ()
        (conflict,) = result.conflicts
        assert conflict.kind is ConflictKind.PLACE
        assert conflict.where == at(3, 8)
        same = [side("ann", at(3, 5)), side("bob", at(3, 5))]
        assert places(gold(same, boundaries=True)) == [(at(3, 5), Resolution.UNANIMOUS, False)]

    def test_one_annotators_labels_stand_as_they_are(self) -> None:
        mine = (at(3, 5), quote(4, 0, "again"))
        result = gold([side("ann", *mine)])
        assert {(t, s) for t, s, _ in places(result)} == {(t, Resolution.SINGLE) for t in mine}

    def test_a_place_that_only_one_of_two_marked_is_a_conflict(self) -> None:
        result = gold([side("ann", at(3), at(20)), side("bob", at(3), at(40))])
        assert result.verdict(MODE).source is Resolution.UNANIMOUS
        assert places(result) == [(at(3), Resolution.UNANIMOUS, False)]
        first, second = result.conflicts
        assert first.kind is second.kind is ConflictKind.PLACE
        assert first.said == (Said("ann", PRESENT, (at(20),)), Said("bob", PRESENT))
        assert second.said == (Said("ann", PRESENT), Said("bob", PRESENT, (at(40),)))

    def test_a_side_that_names_no_place_is_not_asked_about_places(self) -> None:
        for other in (side("bob", WHOLE_TRACE), side("bob", value=PRESENT)):
            result = gold([side("ann", at(3)), other])
            assert result.verdict(MODE).source is Resolution.UNANIMOUS
            assert (at(3), Resolution.SINGLE, False) in places(result)
            assert result.conflicts == ()

    def test_majority_takes_and_drops_places(self) -> None:
        sides = [
            side("ann", at(3), at(9)),
            side("bob", at(3, 4), at(40)),
            side("cat", at(3), at(9)),
        ]
        result = gold(sides, majority=True)
        assert places(result) == [
            (at(3, 4), Resolution.UNANIMOUS, True),
            (at(9), Resolution.MAJORITY, False),
        ]
        assert result.conflicts == ()

    def test_majority_drops_one_sides_own_overlapping_marks_without_asking_about_them(self) -> None:
        sides = [side("ann", at(3)), side("bob", at(3)), side("cat", at(3), at(8, 9), at(9, 10))]
        result = gold(sides, majority=True, boundaries=True)
        assert places(result) == [(at(3), Resolution.UNANIMOUS, False)]
        assert result.conflicts == ()

    def test_an_absent_mode_has_no_places(self) -> None:
        result = gold([side("ann", value=ABSENT), side("bob", value=ABSENT)])
        assert result.labels == ()

    def test_notes_are_kept_and_severity_only_where_all_agree(self) -> None:
        def marked(name: str, severity: Severity | None) -> TraceWork:
            return side(name, labels=[label(name, at(3), note=f"by {name}", severity=severity)])

        (mark,) = gold([marked("ann", Severity.FATAL), marked("bob", None)]).labels
        assert mark.notes == (("ann", "by ann"), ("bob", "by bob"))
        assert mark.severity is Severity.FATAL
        (mark,) = gold([marked("ann", Severity.FATAL), marked("bob", Severity.BENIGN)]).labels
        assert mark.severity is None

    def test_without_the_trace_only_equal_targets_are_one_item(self) -> None:
        sides = [side("ann", at(3, 5), at(9, 10)), side("bob", at(4, 8), at(9, 10))]
        result = gold_of_trace(sides, (), MODES, no_order)
        assert places(result) == [(at(9, 10), Resolution.UNANIMOUS, False)]
        assert len(result.conflicts) == 2


def test_verdict_conflicts_come_before_place_conflicts() -> None:
    sides = [side("ann", at(3), others={OTHER: ABSENT}), side("bob", at(9), others={OTHER: UNSURE})]
    found = gold_of_trace(sides, (), MODES, order).conflicts
    assert [(c.kind, c.mode) for c in found] == [
        (ConflictKind.VERDICT, OTHER),
        (ConflictKind.PLACE, MODE),
        (ConflictKind.PLACE, MODE),
    ]


def test_an_annotator_who_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        gold([side("ann"), side("ann")])


STRETCHES = st.builds(at, st.integers(0, 6), st.none()) | st.builds(
    lambda first, more: at(first, first + more), st.integers(0, 6), st.integers(0, 3)
)
PLACES = st.lists(STRETCHES | st.just(WHOLE_TRACE), max_size=3, unique=True)
WORDS = st.tuples(PLACES, st.sampled_from([None, PRESENT, ABSENT, UNSURE]))


def sides_of(words: Sequence[tuple[list[Target], VerdictValue | None]]) -> list[TraceWork]:
    return [side(f"a{i}", *targets, value=value) for i, (targets, value) in enumerate(words)]


@given(st.lists(WORDS, max_size=4), st.booleans(), st.booleans())
def test_deciding_every_conflict_leaves_none_and_keeps_every_settled_label(
    words: list[tuple[list[Target], VerdictValue | None]], majority: bool, boundaries: bool
) -> None:
    sides = sides_of(words)
    decisions: list[Decision] = []
    for _ in range(20):
        before = gold(sides, *decisions, majority=majority, boundaries=boundaries)
        if not before.conflicts:
            break
        conflict = before.conflicts[0]
        marked = tuple(dict.fromkeys(t for said in conflict.said for t in said.targets))
        decisions.append(decide(conflict, PRESENT, *marked))
        after = gold(sides, *decisions, majority=majority, boundaries=boundaries)
        assert conflict.id not in {c.id for c in after.conflicts}
        assert set(before.labels) <= set(after.labels)
    assert not gold(sides, *decisions, majority=majority, boundaries=boundaries).conflicts


@given(st.lists(WORDS, max_size=4), st.booleans(), st.booleans())
def test_gold_never_holds_what_nobody_marked_and_no_order_of_sides_matters(
    words: list[tuple[list[Target], VerdictValue | None]], majority: bool, boundaries: bool
) -> None:
    sides = sides_of(words)
    result = gold(sides, majority=majority, boundaries=boundaries)
    turned = gold(sides[::-1], majority=majority, boundaries=boundaries)
    assert places(result) == places(turned)
    assert {c.id for c in result.conflicts} == {c.id for c in turned.conflicts}
    assert result.verdict(MODE).value is turned.verdict(MODE).value
    if result.labels or any(c.kind is ConflictKind.PLACE for c in result.conflicts):
        assert result.verdict(MODE).value is PRESENT
    for mark in result.labels:
        assert mark.labels
        assert mark.source not in (Resolution.ADJUDICATED, Resolution.UNRESOLVED)
