"""The rows of the library: filters, orders, and names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.traces.file_places import distinct_name
from mast_tui.ui.library.trace_list import GLYPHS, LibraryRow, Sort, TraceListing, WorkState
from mast_tui.ui.wording import names_under
from tests.ui.build import SmallTrace

filter_words = st.text(st.sampled_from("abcAB7-"), max_size=5)
rows = st.builds(
    LibraryRow,
    trace_id=st.uuids().map(str),
    name=filter_words,
    system=filter_words,
    model=filter_words,
    outcome=st.sampled_from(["failed", "succeeded", ""]),
    spans=st.integers(0, 9),
    state=st.sampled_from(WorkState),
    finished_by=st.lists(filter_words, max_size=2).map(tuple),
    waiting=st.integers(0, 3),
)
listings = st.lists(rows, max_size=12, unique_by=lambda row: row.trace_id)
sorts = st.sampled_from(Sort)


def arrange(rows: list[LibraryRow], needle: str, sort: Sort) -> list[LibraryRow]:
    listing = TraceListing()
    listing.put(rows)
    return listing.arranged(needle, sort)


@given(listings, st.lists(filter_words.filter(bool), min_size=1, max_size=2), sorts)
def test_rows_with_every_word_are_listed(
    rows: list[LibraryRow], needles: list[str], sort: Sort
) -> None:
    assert Counter(arrange(rows, "  ", sort)) == Counter(rows)
    matches = arrange(rows, " ".join(needles), sort)
    holding = [row for row in rows if all(word.casefold() in row.haystack for word in needles)]
    if holding:
        assert Counter(matches) == Counter(holding)
    for row in matches:
        for needle in needles:
            letters = iter(row.haystack)
            assert all(letter in letters for letter in needle.casefold())


def row(name: str, **fields: Any) -> LibraryRow:
    return replace(LibraryRow(trace_id=name, name=name), **fields)


def names(rows: list[LibraryRow], needle: str = "", sort: Sort = Sort.QUEUE) -> list[str]:
    return [row.name for row in arrange(rows, needle, sort)]


def test_the_queue_is_ordered_by_state() -> None:
    rows = [
        row("d", state=WorkState.FINISHED),
        row("c", state=WorkState.UNTOUCHED),
        row("b", state=WorkState.OPEN),
        row("A", state=WorkState.UNTOUCHED),
    ]
    assert names(rows) == ["b", "A", "c", "d"]
    assert len(set(GLYPHS.values())) == len(WorkState)


def test_rows_are_sorted() -> None:
    rows = [
        row("a", spans=3, waiting=0, model="m2", outcome=""),
        row("b", spans=9, waiting=5, model="m1", outcome="failed"),
        row("c", spans=5, waiting=1, model="m1", outcome="succeeded"),
    ]
    for sort in (Sort.SPANS, Sort.WAITING, Sort.MODEL, Sort.OUTCOME):
        assert names(rows, sort=sort) == ["b", "c", "a"]
    assert names(rows, sort=Sort.NAME) == ["a", "b", "c"]
    tasks = (("10", "0"), ("9", "10"), ("", ""), ("9", "2"))
    rows = [row(f"{task}/{trial}", task_id=task, trial=trial) for task, trial in tasks]
    assert names(rows, sort=Sort.TASK) == ["9/2", "9/10", "10/0", "/"]
    sort = Sort.QUEUE
    seen = []
    for _ in Sort:
        seen.append(sort)
        sort = sort.following()
    assert (sort, set(seen)) == (Sort.QUEUE, set(Sort))


def test_states_labels_and_tasks_are_filtered() -> None:
    rows = [
        row("a", waiting=2, state=WorkState.OPEN),
        row("b"),
        row("c", state=WorkState.FINISHED, labels=1, same_as=("b.json",)),
        row("d", state=WorkState.OPEN, task_id="airline-7", trial="2"),
    ]
    for needle, expected in (
        ("unread", "b"),
        ("with suggestions", "a"),
        ("labelled", "c"),
        ("same run", "c"),
        ("airline-7 trial 2", "d"),
    ):
        assert names(rows, needle, Sort.NAME) == [expected]


def test_similar_names_are_listed_if_no_name_contains_the_text() -> None:
    listing = TraceListing()
    listing.put([row("4ebbc1d.json"), row("e0b1b2c31.json")])
    assert listing.arranged("ebbc1", Sort.NAME) == [row("4ebbc1d.json")]
    assert not listing.similar_only
    listing.narrow(("e0b1b2c31.json",), keeps_order=False)
    assert (listing.arranged("ebbc1", Sort.NAME), listing.matches_elsewhere) == ([], 1)
    assert listing.arranged("ebbc31", Sort.NAME) == [row("e0b1b2c31.json")]
    assert listing.similar_only
    assert listing.matches_elsewhere == 0
    listing.arranged("", Sort.NAME)
    assert not listing.similar_only


def test_rows_are_replaced_and_dropped() -> None:
    listing = TraceListing()
    listing.put([row("a"), row("b", state=WorkState.FINISHED)])
    listing.put([row("a", state=WorkState.FINISHED)])
    assert len(listing) == 2
    listing.drop(["b", "no such trace"])
    assert ([row.name for row in listing.arranged("", Sort.NAME)], len(listing)) == (["a"], 1)


@pytest.mark.parametrize(
    ("roots", "path", "name"),
    [
        (["runs"], "runs/a/b.json", "a/b.json"),
        (["runs", "runs/a"], "runs/a/b.json", "b.json"),
        (["."], "a/b.json", "a/b.json"),
        (["."], "/a/b.json", "b.json"),
        (["runs"], "runs-2/b.json", "b.json"),
        (["/"], "/a/b.json", "a/b.json"),
        (["a/b.json"], "a/b.json", "b.json"),
    ],
)
def test_names_are_relative_to_the_opened_folder(roots: list[str], path: str, name: str) -> None:
    trace = SmallTrace("x")
    trace.file = path
    name_of = names_under([Path(root) for root in roots])
    assert name_of(trace) == name
    trace.record = 3
    assert name_of(trace) == f"{name}#3"


@pytest.mark.parametrize(
    ("path", "other_paths", "name"),
    [
        ("runs/q1/run.json", [], "run"),
        ("runs/q1/run.json", ["runs/q2/other.json", "runs/q2/a-run.json"], "run"),
        ("runs/q1/run.json", ["runs/q1/run.json", "runs/q2/run.json"], "q1/run"),
        ("runs/q1/a/run.json", ["runs/q2/a/run.json", "runs/q1/b/run.json"], "q1/a/run"),
        ("run.json", ["q1/run.json"], "run"),
    ],
)
def test_titles_distinguish_files_of_one_name(path: str, other_paths: list[str], name: str) -> None:
    def trace_in(file: str) -> SmallTrace:
        trace = SmallTrace("x")
        trace.file = file
        return trace

    trace = trace_in(path)
    assert distinct_name(trace, map(trace_in, other_paths)) == name
    trace.record = 3
    assert distinct_name(trace, map(trace_in, other_paths)) == f"{name}#3"
