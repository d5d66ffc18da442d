"""Overlaps of places, matched places of two annotators, and merged stretches."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.spans.input import (
    LabelRange,
    label_range_of,
    matched_pair_counts,
    merged_stretches,
    overlap_level,
)
from mast_tui.labels import WHOLE_TRACE
from tests.gold.build import order, quote, target


@pytest.mark.parametrize(
    ("a", "b", "tenths"),
    [
        (LabelRange(2, 5), LabelRange(2, 5), 10),
        (LabelRange(2, 5), LabelRange(6, 8), 0),
        (LabelRange(0, 9), LabelRange(0, 2), 3),
        (LabelRange(0, 3), LabelRange(2, 5), 3),
        (LabelRange(4, 4), LabelRange(0, 99), 0),
        (LabelRange(1, 1, (0, 10), 40), LabelRange(1, 1, (5, 15), 40), 3),
        (LabelRange(1, 1, (0, 10), 40), LabelRange(1, 1, (10, 20), 40), 0),
        (LabelRange(1, 1, (0, 10), 40), LabelRange(2, 2, (0, 10), 40), 0),
        (LabelRange(1, 1, (0, 10), 40), LabelRange(1, 1), 2),
        (LabelRange(1, 1, (0, 40), 40), LabelRange(1, 1), 10),
        (LabelRange(1, 1, (0, 20), 40), LabelRange(0, 1), 2),
        # Quotes in a text of unknown length
        (LabelRange(1, 1, (0, 10)), LabelRange(1, 1), 9),
        (LabelRange(1, 1, (0, 10)), LabelRange(0, 3), 2),
        (LabelRange(1, 1, (0, 10)), LabelRange(1, 1, (0, 10)), 10),
        (LabelRange(1, 1, (0, 10)), LabelRange(1, 1, (0, 5)), 5),
    ],
)
def test_overlap_is_intersection_over_union_in_tenths(
    a: LabelRange, b: LabelRange, tenths: int
) -> None:
    assert overlap_level(a, b) == overlap_level(b, a) == tenths


def test_targets_become_ranges_of_spans() -> None:
    assert (
        label_range_of(target(3, 7), order)
        == label_range_of(target(7, 3), order)
        == LabelRange(3, 7)
    )
    assert label_range_of(WHOLE_TRACE, order) is None
    assert label_range_of(target(3), lambda key: None) is None
    assert label_range_of(quote(2, 4, "pods"), order, {"k2": 20}.get) == LabelRange(
        2, 2, (4, 8), 20
    )
    assert label_range_of(quote(2, 4, "pods"), order) == LabelRange(2, 2, (4, 8))
    assert label_range_of(quote(2, 4, "pods"), order, {"k2": 6}.get) == LabelRange(2, 2), (
        "beyond the end"
    )


@st.composite
def some_places(draw: st.DrawFn) -> LabelRange:
    """Draw a range of spans, or a quote in one span, whose text has a length or none."""
    first = draw(st.integers(0, 6))
    if draw(st.booleans()):
        return LabelRange(first, first + draw(st.integers(0, 3)))
    start = draw(st.integers(0, 8))
    text_length = {0: 12, 1: None}.get(first % 3, 15)
    return LabelRange(first, first, (start, start + draw(st.integers(1, 3))), text_length)


PLACES = st.lists(some_places(), max_size=4, unique=True)


@given(PLACES, PLACES)
def test_matching_of_places_has_the_most_pairs(
    first: list[LabelRange], second: list[LabelRange]
) -> None:
    few, many = sorted((first, second), key=len)
    for tenths, pairs in enumerate(matched_pair_counts(first, second), start=1):
        assert pairs == max(
            sum(overlap_level(a, b) >= tenths for a, b in zip(few, chosen, strict=True))
            for chosen in permutations(many, len(few))
        )


def test_long_chain_of_overlaps_is_matched_completely() -> None:
    # Each place overlaps one of the other's on either side: only one way pairs all of them.
    first = [LabelRange(4 * i, 4 * i + 3) for i in range(300)]
    second = [LabelRange(4 * i + 2, 4 * i + 5) for i in range(300)]
    assert matched_pair_counts(first, second)[0] == 300
    assert matched_pair_counts(first[1:], second)[0] == 299


STRETCHES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=6)


@given(STRETCHES)
def test_merged_stretches_hold_the_same_spans_in_order(stretches: list[tuple[int, int]]) -> None:
    spans = sorted({i for first, after in stretches for i in range(first, after)})
    for touching in (True, False):
        merged = merged_stretches(stretches, join_touching=touching)
        assert [i for first, after in merged for i in range(first, after)] == spans


def test_touching_stretches_are_merged_on_request() -> None:
    assert merged_stretches([(3, 5), (0, 3), (4, 6)], join_touching=True) == ((0, 6),)
    assert merged_stretches([(3, 5), (0, 3), (4, 6)], join_touching=False) == ((0, 3), (3, 6))
