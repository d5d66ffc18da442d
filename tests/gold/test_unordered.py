"""Labels whose order matters for the gold and is unknown."""

from __future__ import annotations

from mast_tui.gold import Decision, Order, no_order
from mast_tui.gold.overlaps import unordered_labels
from mast_tui.labels import WHOLE_TRACE, Target, TraceWork, VerdictValue
from tests.gold.build import MODE, MODES, OTHER, label, order, quote, side, target


def count(
    *sides: TraceWork, order_of: Order = no_order, decisions: tuple[Decision, ...] = ()
) -> int:
    return len(unordered_labels(sides, decisions, MODES, order_of))


def decided(*targets: Target) -> Decision:
    return Decision(MODE, MODE, VerdictValue.PRESENT, targets, (), (), "cho", "2026-01-01")


def test_different_places_of_two_sides_need_an_order() -> None:
    assert count(side("ann", target(2, 4)), side("bob", target(3))) == 2
    assert count(side("ann", target(2, 4)), side("bob", target(3)), order_of=order) == 0


def test_place_with_an_unknown_end_needs_an_order() -> None:
    lost = Target("k2", "lost")
    assert (
        count(side("ann", lost), side("bob", target(3)), side("cho", target(3)), order_of=order)
        == 3
    )
    assert count(side("ann", lost), side("bob", lost), order_of=order) == 0


def test_single_spans_and_whole_traces_need_no_order() -> None:
    assert count(side("ann", target(2)), side("bob", target(3))) == 0
    assert count(side("ann", quote(3, 0, "a")), side("bob", quote(3, 5, "b"))) == 0
    assert count(side("ann", quote(3, 0, "a")), side("bob", target(3))) == 0
    assert count(side("ann", WHOLE_TRACE), side("bob", target(3))) == 0


def test_one_side_and_other_modes_need_no_order() -> None:
    assert count(side("ann", target(2, 4), target(3))) == 0
    other = side("bob", labels=[label("bob", target(3), OTHER)])
    assert count(side("ann", target(2, 4)), other) == 0
    # Modes that the taxonomy lacks are no part of the gold.
    strange = [
        side(name, labels=[label(name, target(n), "strange")]) for n, name in enumerate("ab")
    ]
    assert count(*strange) == 0


def test_decided_place_is_compared_with_labels() -> None:
    assert count(side("ann", target(2, 4)), decisions=(decided(target(3, 5)),)) == 1
    assert count(side("ann", target(2, 4)), decisions=(decided(target(3, 5)),), order_of=order) == 0
    assert count(side("ann", target(2, 4)), decisions=(decided(target(2, 4)),)) == 0
