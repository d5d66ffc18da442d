"""The rows of the library as a queue: filtered and sorted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.ui.library.trace_list import GLYPHS, LibraryRow, Sort, TraceListing, WorkState

words = st.text(st.sampled_from("abcAB7-"), max_size=5)
rows = st.builds(
    LibraryRow,
    trace_id=st.uuids().map(str),
    name=words,
    system=words,
    model=words,
    outcome=st.sampled_from(["failed", "succeeded", ""]),
    spans=st.integers(0, 9),
    state=st.sampled_from(WorkState),
    finished_by=st.lists(words, max_size=2).map(tuple),
    waiting=st.integers(0, 3),
)
listings = st.lists(rows, max_size=12, unique_by=lambda row: row.trace_id)
sorts = st.sampled_from(Sort)


def arrange(given_rows: list[LibraryRow], needle: str, sort: Sort) -> list[LibraryRow]:
    """What a listing of these rows shows."""
    listing = TraceListing()
    listing.put(given_rows)
    return listing.arranged(needle, sort)


@given(listings, sorts)
def test_nothing_is_left_out_where_nothing_is_looked_for(
    given_rows: list[LibraryRow], sort: Sort
) -> None:
    assert Counter(arrange(given_rows, "  ", sort)) == Counter(given_rows)


@given(listings, st.lists(words.filter(bool), min_size=1, max_size=2), sorts)
def test_rows_that_hold_every_word_are_listed_and_only_they_where_there_are_any(
    given_rows: list[LibraryRow], needles: list[str], sort: Sort
) -> None:
    found = arrange(given_rows, " ".join(needles), sort)
    holding = [
        row for row in given_rows if all(word.casefold() in row.haystack for word in needles)
    ]
    if holding:
        assert Counter(found) == Counter(holding)
    for row in found:
        for needle in needles:
            letters = iter(row.haystack)
            assert all(letter in letters for letter in needle.casefold())


def row(name: str, **fields: Any) -> LibraryRow:
    return replace(LibraryRow(trace_id=name, name=name), **fields)


def names(given_rows: list[LibraryRow], needle: str = "", sort: Sort = Sort.QUEUE) -> list[str]:
    return [found.name for found in arrange(given_rows, needle, sort)]


def test_the_queue_begins_with_what_was_begun_and_ends_with_what_is_finished() -> None:
    given_rows = [
        row("d", state=WorkState.FINISHED),
        row("c", state=WorkState.UNTOUCHED),
        row("b", state=WorkState.OPEN),
        row("A", state=WorkState.UNTOUCHED),
    ]
    assert names(given_rows) == ["b", "A", "c", "d"]


def test_letters_in_order_are_enough_where_no_row_holds_the_words() -> None:
    given_rows = [row("checkout-latency"), row("cart-valkey")]
    assert names(given_rows, "ckltn") == ["checkout-latency"]
    assert names(given_rows, "zzz") == []


def test_orders_put_what_matters_first() -> None:
    given_rows = [
        row("a", spans=3, waiting=0, model="m2", outcome=""),
        row("b", spans=9, waiting=5, model="m1", outcome="failed"),
        row("c", spans=5, waiting=1, model="m1", outcome="succeeded"),
    ]
    assert names(given_rows, sort=Sort.SPANS) == ["b", "c", "a"]
    assert names(given_rows, sort=Sort.WAITING) == ["b", "c", "a"]
    assert names(given_rows, sort=Sort.MODEL) == ["b", "c", "a"]
    assert names(given_rows, sort=Sort.OUTCOME) == ["b", "c", "a"]
    assert names(given_rows, sort=Sort.NAME) == ["a", "b", "c"]


def test_every_order_is_reached_by_one_key() -> None:
    sort, seen = Sort.QUEUE, []
    for _ in Sort:
        seen.append(sort)
        sort = sort.following()
    assert sort is Sort.QUEUE
    assert set(seen) == set(Sort)


def test_states_differ_by_more_than_colour() -> None:
    assert len(set(GLYPHS.values())) == len(WorkState)


def test_a_filter_knows_what_is_unread_or_has_suggestions() -> None:
    rows = [
        LibraryRow(trace_id="a", name="a.json", waiting=2, state=WorkState.OPEN),
        LibraryRow(trace_id="b", name="b.json"),
        LibraryRow(
            trace_id="c", name="c.json", state=WorkState.FINISHED, labels=1, same_as=("b.json",)
        ),
        LibraryRow(
            trace_id="d", name="d.json", state=WorkState.OPEN, task_id="airline-7", trial="2"
        ),
    ]
    for needle, found in (
        ("unread", "b"),
        ("with suggestions", "a"),
        ("labelled", "c"),
        ("same run", "c"),
        ("airline-7 trial 2", "d"),
    ):
        assert [row.trace_id for row in arrange(rows, needle, Sort.NAME)] == [found]


def test_tasks_are_sorted_by_their_numbers_and_trials() -> None:
    rows = [
        LibraryRow(trace_id=f"{task}/{trial}", name="x", task_id=task, trial=trial)
        for task, trial in (("10", "0"), ("9", "10"), ("", ""), ("9", "2"))
    ]
    assert [row.trace_id for row in arrange(rows, "", Sort.TASK)] == ["9/2", "9/10", "10/0", "/"]


def test_where_a_row_holds_the_text_only_such_rows_are_listed() -> None:
    listing = TraceListing()
    listing.put(
        [
            LibraryRow(trace_id="a", name="4ebbc1d.json"),
            LibraryRow(trace_id="b", name="e0b1b2c31.json"),
        ]
    )
    assert [one.trace_id for one in listing.arranged("ebbc1", Sort.NAME)] == ["a"]
    assert not listing.similar_only
    listing.narrow(("b",), in_order=False)
    assert listing.arranged("ebbc1", Sort.NAME) == []
    assert listing.matches_elsewhere == 1
    assert [one.trace_id for one in listing.arranged("ebbc31", Sort.NAME)] == ["b"]
    assert listing.similar_only
    assert listing.matches_elsewhere == 0
    listing.arranged("", Sort.NAME)
    assert not listing.similar_only
