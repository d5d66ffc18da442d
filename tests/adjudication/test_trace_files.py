"""Traces of a workspace from their files, and where their spans stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.adjudication.trace_files import SpanOrders, traces_from_files
from mast_tui.figures.source.spans import UnknownSpan
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord
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
    ids = [office.workspace.register_trace(TraceRecord.of(trace)) for trace in traces]
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
    ids = [office.workspace.register_trace(TraceRecord.of(one)) for one in (known, *others)]
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
        office.workspace.register_trace(TraceRecord.of(trace))
        for trace in read_file(conversations, named=True).traces
    ]
    conversations.write_text(
        json.dumps({"messages": [{"role": "user", "content": "something else"}] * 3}) + "\n",
        encoding="utf-8",
    )
    trace_of = traces_from_files(office.workspace)
    found: list[Trace | None] = [trace_of(trace_id) for trace_id in ids]
    assert found == [None] * 3
