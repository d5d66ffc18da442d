"""Traces of a workspace from their files, and kept indices of spans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.adjudication.trace_files import SpanOrders, keep_missing_indices, traces_from_files
from mast_tui.figures.source.agreement import UnknownSpan
from mast_tui.labels import Target
from mast_tui.session import register_opened_trace
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord, WorkspaceError
from mast_tui.workspace.records import SpanIndex
from tests.adjudication.annotated_workspace import AnnotatedWorkspace

TURNS = (("user", "look"), ("assistant", "I see pods"), ("user", "and?"))


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    """A file of three traces, one in a line."""
    path = tmp_path / "conversations.jsonl"
    lines = [
        {"messages": [{"role": r, "content": f"{text} {line}"} for r, text in TURNS]}
        for line in range(3)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_traces_of_a_file_are_found_by_id_until_it_is_gone(conversations: Path) -> None:
    annotated = AnnotatedWorkspace()
    traces = read_file(conversations, named=True).traces
    ids = [annotated.workspace.register_trace(TraceRecord.from_trace(trace)) for trace in traces]
    assert len(ids) == 3
    orders = SpanOrders(annotated.workspace)
    for line, trace_id in enumerate(ids):
        spans = orders.spans_of(trace_id)
        assert spans is not None
        keys = [traces[line].span(i).key for i in range(spans[1])]
        assert [spans[0](key) for key in keys] == [0, 1, 2]
        assert orders(trace_id)("no such span") is None
        assert orders.length_of(trace_id, keys[1]) == len(f"I see pods {line}")
        assert orders.length_of(trace_id, "no such span") is None
    # Another trace in the same place is not taken for it.
    other = {"messages": [{"role": "user", "content": "something else"}] * 3}
    conversations.write_text(json.dumps(other) + "\n", encoding="utf-8")
    trace_of = traces_from_files(annotated.workspace)
    traces_by_id: list[Trace | None] = [trace_of(trace_id) for trace_id in ids]
    assert traces_by_id == [None] * 3
    conversations.unlink()
    orders = SpanOrders(annotated.workspace, [traces[0]])
    spans = orders.spans_of(ids[0])
    assert spans is not None
    assert spans[1] == 3
    assert orders.spans_of("t9") is None
    for trace_id in (ids[1], "t1", "t9"):
        assert orders(trace_id)("k1") is None
        assert orders.length_of(trace_id, "k1") is None
    spans = orders.spans_of(ids[1])
    assert spans is not None
    with pytest.raises(UnknownSpan):
        spans[0]("k1")


def labelled(annotated: AnnotatedWorkspace, conversations: Path) -> tuple[str, Trace]:
    """Return a trace with labels of two people, whose indices are not kept yet."""
    trace = read_file(conversations, named=True).traces[0]
    trace_id = annotated.workspace.register_trace(TraceRecord.from_trace(trace))
    annotated.finish("ann", Target(trace.span(0).key, trace.span(1).key), trace=trace_id)
    annotated.finish("bob", Target(trace.span(1).key, trace.span(2).key), trace=trace_id)
    return trace_id, trace


def test_indices_are_kept_after_the_file_is_gone(conversations: Path) -> None:
    annotated = AnnotatedWorkspace()
    trace_id, trace = labelled(annotated, conversations)
    keys = [trace.span(index).key for index in range(3)]
    assert annotated.workspace.span_indices() == {}
    assert SpanOrders(annotated.workspace)(trace_id)(keys[0]) == 0
    conversations.unlink()
    orders = SpanOrders(annotated.workspace)
    assert [orders(trace_id)(key) for key in keys] == [0, 1, 2]
    assert [orders.stored_order(trace_id)(key) for key in keys] == [0, 1, 2]
    spans = orders.spans_of(trace_id)
    assert spans is not None
    assert spans[1] == 3


def test_indices_kept_meanwhile_are_found(conversations: Path) -> None:
    annotated = AnnotatedWorkspace()
    trace_id, trace = labelled(annotated, conversations)
    conversations.unlink()
    orders = SpanOrders(annotated.workspace).load()
    annotated.workspace.refresh_span_indices(trace_id, trace)
    assert orders(trace_id)(trace.span(2).key) == 2


def test_opening_a_trace_corrects_kept_indices(conversations: Path) -> None:
    annotated = AnnotatedWorkspace()
    trace_id, trace = labelled(annotated, conversations)
    annotated.finish("cat", Target("gone", "gone"), trace=trace_id)
    keys = [trace.span(index).key for index in range(3)]
    wrong = {keys[0]: SpanIndex(7), keys[2]: SpanIndex(None), "gone": SpanIndex(1)}
    annotated.workspace.keep_span_indices({trace_id: wrong})
    assert register_opened_trace(annotated.workspace, trace) == trace_id
    indices = annotated.workspace.span_indices(trace_id)[trace_id]
    assert [indices[key] for key in keys] == [SpanIndex(index) for index in range(3)]
    assert indices["gone"] == SpanIndex(None)
    assert SpanOrders(annotated.workspace)(trace_id)("gone") is None


def test_indices_are_read_if_they_cannot_be_kept(
    conversations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotated = AnnotatedWorkspace()
    trace_id, trace = labelled(annotated, conversations)

    def refuse(*_: object, **__: object) -> None:
        raise WorkspaceError("the disk is full")

    monkeypatch.setattr(annotated.workspace, "keep_span_indices", refuse)
    orders = SpanOrders(annotated.workspace)
    assert [orders(trace_id)(trace.span(index).key) for index in range(3)] == [0, 1, 2]


def test_missing_indices_of_all_files_are_kept_at_once(conversations: Path) -> None:
    annotated = AnnotatedWorkspace()
    trace_id, trace = labelled(annotated, conversations)
    progress: list[tuple[int, int]] = []
    read = keep_missing_indices(annotated.workspace, tell=lambda *count: progress.append(count))
    # The other traces of the file have no labels.
    assert (read, progress) == (1, [(1, 1)])
    assert set(annotated.workspace.span_indices()) == {trace_id}
    assert keep_missing_indices(annotated.workspace) == 0
    assert annotated.workspace.span_indices(trace_id)[trace_id][trace.span(2).key] == SpanIndex(2)
