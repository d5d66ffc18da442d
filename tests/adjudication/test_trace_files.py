"""Traces of a workspace from their files, and where their spans stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.adjudication.trace_files import SpanOrders, keep_missing_indices, traces_from_files
from mast_tui.figures.source.spans import UnknownSpan
from mast_tui.labels import Target
from mast_tui.session import register_open_trace
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord, WorkspaceError
from mast_tui.workspace.records import SpanIndex
from tests.adjudication.office import Office

TURNS = (("user", "look"), ("assistant", "I see pods"), ("user", "and?"))


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    """A file of three traces, one a line."""
    path = tmp_path / "conversations.jsonl"
    lines = [
        {"messages": [{"role": r, "content": f"{text} {line}"} for r, text in TURNS]}
        for line in range(3)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_each_trace_of_a_file_is_found_by_its_id(conversations: Path) -> None:
    office = Office()
    traces = read_file(conversations, named=True).traces
    ids = [office.workspace.register_trace(TraceRecord.from_trace(trace)) for trace in traces]
    assert len(ids) == 3
    orders = SpanOrders(office.workspace)
    for line, trace_id in enumerate(ids):
        found = orders.spans_of(trace_id)
        assert found is not None
        index_of, spans = found
        keys = [traces[line].span(i).key for i in range(spans)]
        assert [index_of(key) for key in keys] == [0, 1, 2]
        assert orders.length_of(trace_id, keys[1]) == len(f"I see pods {line}")
        assert orders.length_of(trace_id, "no such span") is None


def test_what_is_gone_or_unknown_is_not_at_hand(conversations: Path) -> None:
    office = Office()
    known, *others = read_file(conversations, named=True).traces
    ids = [office.workspace.register_trace(TraceRecord.from_trace(one)) for one in (known, *others)]
    conversations.unlink()
    orders = SpanOrders(office.workspace, [known])
    at_hand = orders.spans_of(ids[0])
    assert at_hand is not None
    assert at_hand[1] == 3
    assert orders.spans_of("t9") is None
    for trace_id in (ids[1], "t1", "t9"):
        assert orders(trace_id)("k1") is None
        assert orders.length_of(trace_id, "k1") is None
    lost = orders.spans_of(ids[1])
    assert lost is not None
    with pytest.raises(UnknownSpan):
        lost[0]("k1")


def test_another_trace_in_the_same_place_is_not_it(conversations: Path) -> None:
    office = Office()
    ids = [
        office.workspace.register_trace(TraceRecord.from_trace(trace))
        for trace in read_file(conversations, named=True).traces
    ]
    conversations.write_text(
        json.dumps({"messages": [{"role": "user", "content": "something else"}] * 3}) + "\n",
        encoding="utf-8",
    )
    trace_of = traces_from_files(office.workspace)
    found: list[Trace | None] = [trace_of(trace_id) for trace_id in ids]
    assert found == [None] * 3


def labelled(office: Office, conversations: Path) -> tuple[str, Trace]:
    """A trace with labels of two people that was never read with the labels at hand."""
    trace = read_file(conversations, named=True).traces[0]
    trace_id = office.workspace.register_trace(TraceRecord.from_trace(trace))
    office.finish("ann", Target(trace.span(0).key, trace.span(1).key), trace=trace_id)
    office.finish("bob", Target(trace.span(1).key, trace.span(2).key), trace=trace_id)
    return trace_id, trace


def test_what_a_file_tells_is_kept_for_the_time_when_it_is_gone(conversations: Path) -> None:
    office = Office()
    trace_id, trace = labelled(office, conversations)
    keys = [trace.span(index).key for index in range(3)]
    assert office.workspace.span_indices() == {}
    assert SpanOrders(office.workspace)(trace_id)(keys[0]) == 0
    conversations.unlink()
    orders = SpanOrders(office.workspace)
    assert [orders(trace_id)(key) for key in keys] == [0, 1, 2]
    assert [orders.kept(trace_id)(key) for key in keys] == [0, 1, 2]
    spans = orders.spans_of(trace_id)
    assert spans is not None
    assert spans[1] == 3


def test_indices_kept_meanwhile_are_found(conversations: Path) -> None:
    office = Office()
    trace_id, trace = labelled(office, conversations)
    conversations.unlink()
    orders = SpanOrders(office.workspace).load()
    office.workspace.refresh_span_indices(trace_id, trace)
    assert orders(trace_id)(trace.span(2).key) == 2


def test_opening_a_trace_corrects_what_is_kept(conversations: Path) -> None:
    office = Office()
    trace_id, trace = labelled(office, conversations)
    wrong = {trace.span(0).key: SpanIndex(7), trace.span(2).key: SpanIndex(None)}
    office.workspace.keep_span_indices({trace_id: wrong})
    assert register_open_trace(office.workspace, trace) == trace_id
    kept = office.workspace.span_indices(trace_id)[trace_id]
    assert [kept[trace.span(index).key] for index in range(3)] == [SpanIndex(i) for i in range(3)]


def test_a_key_that_is_not_in_the_whole_trace_has_no_index(conversations: Path) -> None:
    office = Office()
    trace_id, trace = labelled(office, conversations)
    office.finish("cat", Target("gone", "gone"), trace=trace_id)
    office.workspace.keep_span_indices({trace_id: {"gone": SpanIndex(1)}})
    register_open_trace(office.workspace, trace)
    assert office.workspace.span_indices(trace_id)[trace_id]["gone"] == SpanIndex(None)
    assert SpanOrders(office.workspace)(trace_id)("gone") is None


def test_a_workspace_that_cannot_be_written_is_read_all_the_same(
    conversations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office()
    trace_id, trace = labelled(office, conversations)

    def refuse(*_: object, **__: object) -> None:
        raise WorkspaceError("the disk is full")

    monkeypatch.setattr(office.workspace, "keep_span_indices", refuse)
    orders = SpanOrders(office.workspace)
    assert [orders(trace_id)(trace.span(index).key) for index in range(3)] == [0, 1, 2]


def test_missing_indices_of_all_files_are_read_at_once(conversations: Path) -> None:
    office = Office()
    trace_id, trace = labelled(office, conversations)
    told: list[tuple[int, int]] = []
    read = keep_missing_indices(office.workspace, tell=lambda *count: told.append(count))
    # The other traces of the file have no labels.
    assert (read, told) == (1, [(1, 1)])
    assert set(office.workspace.span_indices()) == {trace_id}
    assert keep_missing_indices(office.workspace) == 0
    assert office.workspace.span_indices(trace_id)[trace_id][trace.span(2).key] == SpanIndex(2)
