"""Rows of many traces: what a key press looks at, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest

from mast_tui.ui.library import trace_list as library_rows
from mast_tui.ui.library.trace_list import LibraryRow, Sort, TraceListing, WorkState
from mast_tui.ui.wording import distinct_name, names_under, natural


def row(name: str, **fields: object) -> LibraryRow:
    return replace(LibraryRow(trace_id=name, name=name), **fields)  # type: ignore[arg-type]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often a filter looks at rows, and how often sorting keys are made."""
    counts: Counter[str] = Counter()
    haystack, key = LibraryRow.haystack, natural

    def counted_haystack(self: LibraryRow) -> str:
        counts["looked at"] += 1
        assert isinstance(haystack, cached_property)
        return str(haystack.func(self))

    def counted_key(name: str) -> str:
        counts["keys made"] += 1
        return key(name)

    monkeypatch.setattr(LibraryRow, "haystack", property(counted_haystack))
    monkeypatch.setattr(library_rows, "natural", counted_key)
    return counts


def test_a_needle_that_grows_is_looked_for_only_in_what_it_matched(
    looked_at: Counter[str],
) -> None:
    listing = TraceListing()
    listing.put(row(f"run-{number}") for number in range(1000))
    for needle, found, looks_at in (
        ("run-9", 111, 1000),
        ("run-99", 11, 111),
        ("run-99 ", 11, 11),
        ("run-99 7", 1, 22),
        ("run-98", 11, 1000),
    ):
        looked_at.clear()
        assert len(listing.arranged(needle, Sort.NAME)) == found
        assert looked_at["looked at"] == looks_at


def test_letters_in_order_are_looked_for_only_where_words_are_nowhere(
    looked_at: Counter[str],
) -> None:
    listing = TraceListing()
    listing.put(row(f"run-{number}") for number in range(1000))
    assert len(listing.arranged("rn99", Sort.NAME)) == 19 + 9
    assert looked_at["looked at"] == 2000
    looked_at.clear()
    assert listing.arranged("rn997", Sort.NAME) == [row("run-997")]
    assert looked_at["looked at"] == 28


@pytest.mark.parametrize("sort", Sort)
def test_a_grown_needle_finds_what_it_finds_at_once(sort: Sort) -> None:
    rows = [row(f"a{n}b{n % 7}", model=f"m{n % 3}", spans=n % 5) for n in range(60)]
    listing = TraceListing()
    listing.put(rows)
    for needle in ("a", "a1", "a1b", "a1b3", "ab3", "ab3 m", "ab3 m1", "m1 a1", "", "zz", "z"):
        fresh = TraceListing()
        fresh.put(rows)
        assert listing.arranged(needle, sort) == fresh.arranged(needle, sort)


def test_sorting_keys_are_made_once_a_row(looked_at: Counter[str]) -> None:
    listing = TraceListing()
    listing.put(row(f"run-{number}") for number in range(100))
    for sort in (*Sort, *Sort):
        listing.arranged("", sort)
    listing.put([row("run-7", state=WorkState.OPEN)])
    assert listing.arranged("", Sort.QUEUE)[0].name == "run-7"
    assert looked_at["keys made"] == 101


def test_rows_that_are_put_and_dropped_are_counted() -> None:
    listing = TraceListing()
    listing.put([row("a"), row("b", state=WorkState.FINISHED)])
    listing.put([row("a", state=WorkState.FINISHED)])
    assert len(listing) == 2
    listing.drop(["b", "no such trace"])
    assert [one.name for one in listing.arranged("", Sort.NAME)] == ["a"]
    assert len(listing) == 1


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
def test_names_are_told_from_the_folder_that_was_opened(
    roots: list[str], path: str, name: str
) -> None:
    from tests.ui.build import SmallTrace

    trace = SmallTrace("x")
    trace.file = path
    name_of = names_under([Path(root) for root in roots])
    assert name_of(trace) == name
    trace.record = 3
    assert name_of(trace) == f"{name}#3"


@pytest.mark.parametrize(
    ("path", "others", "name"),
    [
        ("runs/q1/run.json", [], "run"),
        ("runs/q1/run.json", ["runs/q2/other.json", "runs/q2/a-run.json"], "run"),
        ("runs/q1/run.json", ["runs/q1/run.json", "runs/q2/run.json"], "q1/run"),
        ("runs/q1/a/run.json", ["runs/q2/a/run.json", "runs/q1/b/run.json"], "q1/a/run"),
        ("run.json", ["q1/run.json"], "run"),
    ],
)
def test_a_title_tells_files_of_one_name_apart(path: str, others: list[str], name: str) -> None:
    from tests.ui.build import SmallTrace

    def trace_in(file: str) -> SmallTrace:
        trace = SmallTrace("x")
        trace.file = file
        return trace

    trace = trace_in(path)
    assert distinct_name(trace, map(trace_in, others)) == name
    trace.record = 3
    assert distinct_name(trace, map(trace_in, others)) == f"{name}#3"
