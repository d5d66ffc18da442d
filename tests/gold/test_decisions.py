"""What an adjudicator's decision does to the gold, and how long it holds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mast_tui.gold import Decision, Resolution, Said
from mast_tui.gold.overlaps import item_id
from mast_tui.labels import VerdictValue
from tests.gold.build import ABSENT, MODE, PRESENT, UNSURE, at, decide, gold, places, side


class TestDecisions:
    def test_taking_a_side_settles_the_verdict_and_brings_its_places(self) -> None:
        sides = [side("ann", at(3)), side("bob", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        result = gold(sides, decide(conflict, PRESENT, at(3), sides=("ann",)))
        verdict = result.verdict(MODE)
        assert (verdict.value, verdict.source) == (PRESENT, Resolution.ADJUDICATED)
        assert (verdict.decided_by, verdict.changed) == ("judy", False)
        (mark,) = result.labels
        assert (mark.target, mark.source) == (at(3), Resolution.ADJUDICATED)
        assert mark.annotators == ("ann",)
        assert result.conflicts == ()

    def test_only_the_labels_of_the_side_taken_stand_behind_a_decided_place(self) -> None:
        sides = [side("ann", at(3)), side("bob", at(3, 4)), side("cat", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        (mark,) = gold(sides, decide(conflict, PRESENT, at(3), sides=("ann",))).labels
        assert mark.annotators == ("ann",)

    @pytest.mark.parametrize("value", [ABSENT, UNSURE])
    def test_absent_or_unsure_leaves_no_label(self, value: VerdictValue) -> None:
        sides = [side("ann", at(3)), side("bob", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        result = gold(sides, decide(conflict, value))
        assert (result.verdict(MODE).value, result.labels) == (value, ())
        assert result.conflicts == ()

    def test_only_the_decided_item_is_settled(self) -> None:
        sides = [side("ann", at(20)), side("bob", at(40))]
        first, second = gold(sides).conflicts
        result = gold(sides, decide(first, PRESENT, at(19, 21), sides=("ann",)))
        assert places(result) == [(at(19, 21), Resolution.ADJUDICATED, False)]
        assert result.conflicts == (second,)
        result = gold(sides, decide(first, ABSENT), decide(second, PRESENT, at(40)))
        assert places(result) == [(at(40), Resolution.ADJUDICATED, False)]
        assert result.verdict(MODE).source is Resolution.UNANIMOUS

    def test_the_last_decision_on_an_item_holds(self) -> None:
        sides = [side("ann", at(3)), side("bob", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        result = gold(sides, decide(conflict, PRESENT, at(3)), decide(conflict, ABSENT))
        assert (result.verdict(MODE).value, result.labels) == (ABSENT, ())

    def test_an_adjudicator_may_add_what_nobody_marked(self) -> None:
        sides = [side("ann", value=ABSENT), side("bob", value=ABSENT)]
        said = (Said("ann", ABSENT), Said("bob", ABSENT))
        added = Decision(MODE, MODE, PRESENT, (at(7),), (), said, "judy", "now")
        result = gold(sides, added)
        assert result.verdict(MODE).source is Resolution.ADJUDICATED
        assert not result.verdict(MODE).changed
        assert places(result) == [(at(7), Resolution.ADJUDICATED, False)]

    def test_an_adjudicator_may_add_a_place_to_what_all_found(self) -> None:
        sides = [side("ann", at(3)), side("bob", at(3))]
        added = Decision(MODE, item_id(MODE, at(7)), PRESENT, (at(7),), (), (), "judy", "now")
        assert places(gold(sides, added)) == [
            (at(3), Resolution.UNANIMOUS, False),
            (at(7), Resolution.ADJUDICATED, False),
        ]
        assert not any(mark.changed for mark in gold(sides, added).labels)

    def test_a_decision_outlasts_a_changed_verdict_and_says_so(self) -> None:
        sides = [side("ann", at(3)), side("bob", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        decision = decide(conflict, ABSENT)
        changed = gold([side("ann", at(3)), side("bob", at(3))], decision).verdict(MODE)
        assert (changed.value, changed.changed) == (ABSENT, True)
        third = gold([*sides, side("cat", value=ABSENT)], decision).verdict(MODE)
        assert third.changed

    def test_a_decision_goes_with_an_item_whose_labels_moved_and_says_so(self) -> None:
        sides = [side("ann", at(20)), side("bob", at(40))]
        conflict = gold(sides).conflicts[0]
        decision = decide(conflict, PRESENT, at(20), sides=("ann",))
        result = gold([side("ann", at(18, 21)), side("bob", at(40))], decision)
        (mark,) = result.labels
        assert (mark.target, mark.changed) == (at(20), True)
        assert [c.where for c in result.conflicts] == [at(40)]

    def test_a_dropped_item_stays_dropped_when_its_label_is_moved_a_little(self) -> None:
        sides = [side("ann", at(20)), side("bob", at(40))]
        decision = decide(gold(sides).conflicts[0], ABSENT)
        result = gold([side("ann", at(20, 21)), side("bob", at(40))], decision)
        assert result.labels == ()
        assert [c.where for c in result.conflicts] == [at(40)]

    def test_a_moved_boundary_after_a_decided_verdict_holds(self) -> None:
        sides = [side("ann", at(3, 5)), side("bob", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        taken = decide(conflict, PRESENT, at(3, 5), sides=("ann",))
        moved = Decision(
            MODE, item_id(MODE, at(3, 5)), PRESENT, (at(3, 4),), ("ann",), (), "judy", "now"
        )
        assert places(gold(sides, taken, moved)) == [(at(3, 4), Resolution.ADJUDICATED, False)]
        assert places(gold(sides, moved, taken)) == [(at(3, 5), Resolution.ADJUDICATED, False)]

    def test_an_added_place_outlasts_a_later_verdict_on_other_places(self) -> None:
        sides = [side("ann", at(3)), side("bob", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        added = Decision(MODE, item_id(MODE, at(7)), PRESENT, (at(7),), (), (), "judy", "now")
        waiting = gold(sides, added)
        assert waiting.conflicts == (conflict,)
        assert waiting.labels == ()
        assert places(gold(sides, added, decide(conflict, PRESENT, at(3)))) == [
            (at(3), Resolution.ADJUDICATED, False),
            (at(7), Resolution.ADJUDICATED, False),
        ]

    def test_a_decision_made_in_sight_of_a_judge_is_marked(self) -> None:
        sides = [side("ann", at(3)), side("bob", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        result = gold(sides, decide(conflict, PRESENT, at(3), judge_seen=True))
        assert result.verdict(MODE).judge_seen
        assert result.labels[0].judge_seen

    def test_decisions_on_other_modes_and_taxonomies_do_not_count(self) -> None:
        sides = [side("ann", at(3)), side("bob", value=ABSENT)]
        (conflict,) = gold(sides).conflicts
        other = replace(decide(conflict, PRESENT, at(3)), mode="of_another", item="of_another")
        assert gold(sides, other) == gold(sides)
