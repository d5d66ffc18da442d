"""Which targets overlap, what covers them, and which labels are one item."""

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
    """The characters that a target covers, each span having those of TEXT; {} for the whole."""
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
def test_without_the_order_nothing_is_claimed_that_does_not_hold(a: Target, b: Target) -> None:
    if overlap(a, b, no_order):
        assert overlap(a, b, order)


def test_without_the_order_equal_targets_and_those_in_one_span_still_match() -> None:
    assert overlap(at(3, 9), at(3, 9), no_order)
    assert not overlap(at(3, 9), at(4, 8), no_order)
    assert overlap(at(3), quote(3, 4, "quick"), no_order)
    assert not overlap(quote(3, 0, "the"), quote(3, 4, "quick"), no_order)


def test_the_whole_trace_is_no_place() -> None:
    assert overlap(WHOLE_TRACE, WHOLE_TRACE, order)
    assert not overlap(WHOLE_TRACE, at(3), order)


@given(st.lists(targets(), min_size=1, max_size=8))
def test_every_label_is_in_one_item_whose_target_covers_it(marks: list[Target]) -> None:
    labels = [label(f"a{i}", target) for i, target in enumerate(marks)]
    items = items_of_mode(labels, order)
    assert sorted(x.id for item in items for x in item.labels) == sorted(x.id for x in labels)
    for item in items:
        for mark in item.labels:
            assert cells(mark.target) <= cells(item.target)
    for one in items:
        for other in items:
            if one is not other:
                assert not any(overlap(a, b, order) for a in one.targets for b in other.targets)


@given(st.lists(targets(), min_size=1, max_size=8), st.randoms())
def test_items_and_their_ids_do_not_depend_on_who_labelled_first(
    marks: list[Target], rng: random.Random
) -> None:
    labels = [label(f"a{i}", target) for i, target in enumerate(marks)]
    shuffled = list(labels)
    rng.shuffle(shuffled)
    assert {item.id for item in items_of_mode(labels, order)} == {
        item.id for item in items_of_mode(shuffled, order)
    }


@given(st.lists(targets(), min_size=1, max_size=6))
def test_different_items_have_different_ids(marks: list[Target]) -> None:
    items = items_of_mode([label(f"a{i}", t) for i, t in enumerate(marks)], order)
    assert len({item.id for item in items}) == len(items)


def test_items_come_in_reading_order_with_the_whole_trace_first_and_lost_places_last() -> None:
    lost = Target("lost", "lost")
    labels = [label("a", target) for target in (lost, at(10), WHOLE_TRACE, at(2, 3))]
    items = items_of_mode(labels, order)
    assert [item.target for item in items] == [WHOLE_TRACE, at(2, 3), at(10), lost]


def test_overlapping_ranges_chain_into_one_item() -> None:
    labels = [label("a", at(1, 4)), label("b", at(4, 6)), label("a", at(6, 9))]
    (item,) = items_of_mode(labels, order)
    assert item.target == at(1, 9)
    assert set(item.annotators) == {"a", "b"}


def test_quotes_of_one_span_join_into_the_text_that_covers_them() -> None:
    joined = cover([quote(3, 4, "quick brown"), quote(3, 10, "brown fox")], order)
    assert joined == quote(3, 4, "quick brown fox")


def test_a_quote_whose_text_does_not_fit_its_place_gives_the_span() -> None:
    crooked = Target("k3", "k3", "quick", 4, 99)
    assert cover([crooked, quote(3, 10, "brown")], order) == at(3)


def test_a_quote_and_a_range_give_the_range() -> None:
    assert cover([quote(3, 4, "quick"), at(2, 5)], order) == at(2, 5)


def test_ranges_written_backwards_are_read_forwards() -> None:
    assert overlap(at(9, 5), at(6), order)
    assert cover([at(9, 5), at(7, 11)], order) == at(5, 11)


def test_what_nothing_is_known_to_cover_is_refused() -> None:
    with pytest.raises(ValueError, match="cover"):
        cover([at(1, 3), at(2, 5)], no_order)
    with pytest.raises(ValueError, match="no targets"):
        cover([])


def test_an_item_is_named_after_its_mode_and_place() -> None:
    names = {
        item_id(mode, target)
        for mode in (MODE, "other")
        for target in (WHOLE_TRACE, at(3), at(3, 4), quote(3, 0, "the"), Target("k3", "k3", "the"))
    }
    assert len(names) == 10
