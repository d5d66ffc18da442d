"""Overlaps and covers of targets, and items of labels."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.gold.overlaps import cover, item_id, items_of_mode, no_order, overlap
from mast_tui.labels import WHOLE_TRACE, Target
from tests.gold.build import MODE, at, label, order, quote

TEXT = "the quick brown fox jumps over the lazy dog"


@st.composite
def targets(draw: st.DrawFn) -> Target:
    kind = draw(st.sampled_from(["whole", "range", "range", "range", "quote", "loose"]))
    if kind == "whole":
        return WHOLE_TRACE
    first = draw(st.integers(0, 12))
    if kind == "range":
        return at(first, draw(st.integers(first, 14)))
    start = draw(st.integers(0, 30))
    text = TEXT[start : start + draw(st.integers(1, 12))]
    if kind == "loose":
        return Target(f"k{first}", f"k{first}", text)
    return quote(first, start, text)


def cells(target: Target) -> set[tuple[int, int]]:
    """Return the characters that a target covers if each span is TEXT; none for the whole."""
    if target.first is None or target.last is None:
        return set()
    spans = range(int(target.first[1:]), int(target.last[1:]) + 1)
    if target.char_start is not None and target.char_end is not None:
        return {(s, c) for s in spans for c in range(target.char_start, target.char_end)}
    return {(s, c) for s in spans for c in range(len(TEXT))}


@given(targets(), targets())
def test_overlap_is_sharing_a_character_and_symmetric(a: Target, b: Target) -> None:
    expected = a == b or bool(cells(a) & cells(b))
    assert overlap(a, b, order) is expected
    assert overlap(b, a, order) is expected


@given(targets(), targets())
def test_overlap_without_an_order_holds_with_it(a: Target, b: Target) -> None:
    if overlap(a, b, no_order):
        assert overlap(a, b, order)


def test_overlap_without_an_order_and_of_whole_traces() -> None:
    assert overlap(at(3, 9), at(3, 9), no_order)
    assert not overlap(at(3, 9), at(4, 8), no_order)
    assert overlap(at(3), quote(3, 4, "quick"), no_order)
    assert not overlap(quote(3, 0, "the"), quote(3, 4, "quick"), no_order)
    assert overlap(WHOLE_TRACE, WHOLE_TRACE, order)
    assert not overlap(WHOLE_TRACE, at(3), order)
    assert overlap(at(9, 5), at(6), order), "a range written backwards"


@given(st.lists(targets(), min_size=1, max_size=8))
def test_every_label_is_in_one_item_whose_target_covers_it(marks: list[Target]) -> None:
    labels = [label(f"a{i}", target) for i, target in enumerate(marks)]
    items = items_of_mode(labels, order)
    assert sorted(x.id for item in items for x in item.labels) == sorted(x.id for x in labels)
    assert len({item.id for item in items}) == len(items)
    for item in items:
        for mark in item.labels:
            assert cells(mark.target) <= cells(item.target)
    for one in items:
        for other in items:
            if one is not other:
                assert not any(overlap(a, b, order) for a in one.targets for b in other.targets)


@given(st.lists(targets(), min_size=1, max_size=8), st.randoms())
def test_items_and_ids_do_not_depend_on_the_order_of_labels(
    marks: list[Target], rng: random.Random
) -> None:
    labels = [label(f"a{i}", target) for i, target in enumerate(marks)]
    shuffled = list(labels)
    rng.shuffle(shuffled)
    assert {item.id for item in items_of_mode(labels, order)} == {
        item.id for item in items_of_mode(shuffled, order)
    }


def test_items_are_in_reading_order_after_the_whole_trace_and_before_lost_places() -> None:
    lost = Target("lost", "lost")
    labels = [label("a", target) for target in (lost, at(10), WHOLE_TRACE, at(2, 3))]
    items = items_of_mode(labels, order)
    assert [item.target for item in items] == [WHOLE_TRACE, at(2, 3), at(10), lost]


def test_overlapping_ranges_chain_into_one_item() -> None:
    labels = [label("a", at(1, 4)), label("b", at(4, 6)), label("a", at(6, 9))]
    (item,) = items_of_mode(labels, order)
    assert item.target == at(1, 9)
    assert set(item.annotators) == {"a", "b"}


def test_cover_of_quotes_and_ranges() -> None:
    for places, expected in (
        ([quote(3, 4, "quick brown"), quote(3, 10, "brown fox")], quote(3, 4, "quick brown fox")),
        ([Target("k3", "k3", "quick", 4, 99), quote(3, 10, "brown")], at(3)),  # a wrong end
        ([quote(3, 4, "quick"), at(2, 5)], at(2, 5)),
        ([at(9, 5), at(7, 11)], at(5, 11)),
    ):
        assert cover(places, order) == expected
    with pytest.raises(ValueError, match="the order of"):
        cover([at(1, 3), at(2, 5)], no_order)
    with pytest.raises(ValueError, match="no targets"):
        cover([])


def test_id_of_an_item_tells_its_mode_and_place() -> None:
    ids = {
        item_id(mode, target)
        for mode in (MODE, "other")
        for target in (WHOLE_TRACE, at(3), at(3, 4), quote(3, 0, "the"), Target("k3", "k3", "the"))
    }
    assert len(ids) == 10
