"""Answers to conflicts."""

from __future__ import annotations

import pytest

from mast_tui.adjudication.conflicts import (
    Choice,
    choice_of_all_places,
    choice_of_own_place,
    choice_of_side,
)
from mast_tui.gold import Conflict, gold_of_trace
from mast_tui.labels import TraceWork
from tests.gold.build import ABSENT, MODES, PRESENT, UNSURE, order, side, target


def conflict_of(*sides: TraceWork) -> Conflict:
    return gold_of_trace(sides, (), MODES, order).conflicts[0]


def test_side_of_a_verdict_brings_its_places() -> None:
    conflict = conflict_of(side("ann", target(3), target(9)), side("bob", value=UNSURE))
    assert choice_of_side(conflict, "ann") == Choice(PRESENT, (target(3), target(9)), ("ann",))
    assert choice_of_side(conflict, "bob") == Choice(UNSURE, (), ("bob",))
    with pytest.raises(KeyError):
        choice_of_side(conflict, "cat")


def test_side_that_did_not_mark_a_place_drops_it() -> None:
    conflict = conflict_of(side("ann", target(3)), side("bob", target(9)))
    assert choice_of_side(conflict, "ann") == Choice(PRESENT, (target(3),), ("ann",))
    assert choice_of_side(conflict, "bob") == Choice(ABSENT, (), ("bob",))


def test_taking_all_covers_every_marked_place() -> None:
    bob = side("bob", target(4, 8))
    conflict = conflict_of(side("ann", target(3, 5), target(20)), bob, side("cat", value=ABSENT))
    assert choice_of_all_places(conflict, order) == Choice(
        PRESENT, (target(3, 8), target(20)), ("ann", "bob")
    )
    unmarked = conflict_of(side("ann", value=ABSENT), side("bob", value=UNSURE))
    assert choice_of_all_places(unmarked, order) is None


def test_place_elsewhere_has_the_sides_that_it_touches() -> None:
    conflict = conflict_of(side("ann", target(3, 5)), side("bob", value=ABSENT))
    assert choice_of_own_place(conflict, target(5, 6), order) == Choice(
        PRESENT, (target(5, 6),), ("ann",)
    )
    assert choice_of_own_place(conflict, target(9), order) == Choice(PRESENT, (target(9),), ())
