"""Spans that were read, stored as keys and runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.session.pass_state import SHORT_RANGE, ReadSpans
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.types import SpanRange, SpansRead
from tests.session.build import Desk
from tests.workspace.build import MAST, TRACE, trace_of

SPANS = 30
AFTER = ("a trace of thirty spans", *(f"step {number}" for number in range(1, SPANS)))

indices = st.integers(0, SPANS - 1)
stretches = st.tuples(indices, indices).map(lambda ends: range(min(ends), max(ends) + 1))


def indices_in(found: Sequence[range]) -> list[int]:
    return [index for one in found for index in one]


@given(st.lists(indices), st.lists(stretches, max_size=4))
def test_runs_and_keys_are_equal_to_all_keys(single: list[int], runs: list[range]) -> None:
    read = ReadSpans(trace_of(*AFTER))
    read.add(SpansRead(tuple(f"k{index}" for index in single)))
    for run in runs:
        read.add(SpansRead((), (SpanRange(f"k{run.start}", f"k{run.stop - 1}"),)))
    expected = sorted({*single, *indices_in(runs)})
    assert indices_in(read.read_ranges()) == expected
    assert indices_in(read.unread()) == [i for i in range(SPANS) if i not in expected]
    assert (set(read), len(read)) == ({f"k{index}" for index in expected}, len(expected))
    assert [f"k{i}" in read for i in range(SPANS)] == [i in expected for i in range(SPANS)]
    for one in (read.read_ranges(), read.unread()):
        assert all(a.stop < b.start for a, b in pairwise(one))


def test_unknown_spans_count_once_known() -> None:
    read = ReadSpans(trace_of("one"))
    read.add(SpansRead(("later",), (SpanRange("k0", "k9"),)))
    assert "later" in read
    assert "k0" not in read
    assert (read.read_ranges(), read.unread()) == ([], (range(1),))


def test_long_runs_are_written_by_their_ends() -> None:
    desk = Desk(Workspace.open(":memory:"), trace_of(*AFTER))
    session = desk.open()
    session.mark_read(["k2"], [range(2), range(5, 6 + SHORT_RANGE)])
    written = desk.workspace.reads("alice", TRACE, MAST.ref, 1)
    assert written == SpansRead(("k0", "k1", "k2"), (SpanRange("k5", f"k{5 + SHORT_RANGE}"),))
    before = len(list(desk.workspace.events()))
    session.mark_read(["k7"], [range(6, 6 + SHORT_RANGE)])
    assert len(list(desk.workspace.events())) == before
    again = desk.open()
    assert set(again.read) == set(session.read)
    assert again.unread() == (range(3, 5), range(6 + SHORT_RANGE, SPANS))
    desk.workspace.close()
