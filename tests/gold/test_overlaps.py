"""Overlaps and covers of targets, and items of labels."""

from __future__ import annotations

import pytest

from mast_tui.gold.overlaps import cover, item_id, items_of_mode, no_order, overlap
from mast_tui.labels import WHOLE_TRACE, Target
from tests.gold.build import MODE, label, order, quote, target


def test_overlap_without_an_order_and_of_whole_traces() -> None:
    assert overlap(target(3, 9), target(3, 9), no_order)
    assert not overlap(target(3, 9), target(4, 8), no_order)
    assert overlap(target(3), quote(3, 4, "quick"), no_order)
    assert not overlap(quote(3, 0, "the "), quote(3, 4, "quick"), no_order), "they touch"
    assert overlap(WHOLE_TRACE, WHOLE_TRACE, order)
    assert not overlap(WHOLE_TRACE, target(3), order)
    assert overlap(target(9, 5), target(6), order), "a range written backwards"


def test_items_are_in_reading_order_after_the_whole_trace_and_before_lost_places() -> None:
    lost = Target("lost", "lost")
    labels = [
        label("a", label_target) for label_target in (lost, target(10), WHOLE_TRACE, target(2, 3))
    ]
    items = items_of_mode(labels, order)
    assert [item.target for item in items] == [WHOLE_TRACE, target(2, 3), target(10), lost]


def test_overlapping_ranges_chain_into_one_item() -> None:
    labels = [label("a", target(1, 4)), label("b", target(4, 6)), label("a", target(6, 9))]
    (item,) = items_of_mode(labels, order)
    assert item.target == target(1, 9)
    assert set(item.annotators) == {"a", "b"}


def test_cover_of_quotes_and_ranges() -> None:
    for places, expected in (
        ([quote(3, 4, "quick brown"), quote(3, 10, "brown fox")], quote(3, 4, "quick brown fox")),
        ([Target("k3", "k3", "quick", 4, 99), quote(3, 10, "brown")], target(3)),  # a wrong end
        ([quote(3, 4, "quick"), target(2, 5)], target(2, 5)),
        ([target(9, 5), target(7, 11)], target(5, 11)),
    ):
        assert cover(places, order) == expected
    with pytest.raises(ValueError, match="the order of"):
        cover([target(1, 3), target(2, 5)], no_order)
    with pytest.raises(ValueError, match="no targets"):
        cover([])


def test_id_of_an_item_tells_its_mode_and_place() -> None:
    ids = {
        item_id(mode, label_target)
        for mode in (MODE, "other")
        for label_target in (
            WHOLE_TRACE,
            target(3),
            target(3, 4),
            quote(3, 0, "the"),
            Target("k3", "k3", "the"),
        )
    }
    assert len(ids) == 10
