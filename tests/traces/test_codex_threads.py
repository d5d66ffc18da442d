"""Threads of Codex: sub-agents, their parents, and repeated histories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, SpanKind, Thread, Trace
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.checks import spans_of
from tests.traces.rollouts import (
    Record,
    call,
    event,
    message,
    meta,
    output,
    record,
    trace_of,
    turn_item,
    write,
)

CHILD = "01a2b3c4-aaaa-7000-8000-00000000000c"
PARENT = "01a2b3c4-bbbb-7000-8000-00000000000a"


def read_report(path: Path) -> FileReport:
    return READER.read(Source(path))


def spawn(call_id: str = "s") -> Record:
    """Return a call that starts a sub-agent."""
    arguments = json.dumps({"message": "Look at the pods."})
    payload = {
        "type": "function_call",
        "name": "spawn_agent",
        "arguments": arguments,
        "call_id": call_id,
    }
    return record("response_item", payload)


def spawned(trace: Trace) -> dict[str, str]:
    return dict(trace.spawned)


def test_the_parent_of_a_thread_can_be_in_its_source(tmp_path: Path) -> None:
    spawn_fields = {"parent_thread_id": PARENT, "depth": 1, "agent_nickname": "Ada"}
    header = meta(CHILD, source={"subagent": {"thread_spawn": spawn_fields}})
    path = write(tmp_path, header, message("assistant", "ok"))
    assert read_report(path).thread == Thread(CHILD, PARENT)
    assert trace_of(path).span(0).agent == "Ada"


@pytest.mark.parametrize("source", ["cli", {"subagent": "review"}, {"subagent": {"other": "x"}}, 3])
def test_other_sources_name_no_parent(tmp_path: Path, source: object) -> None:
    assert read_report(write(tmp_path, meta(CHILD, source=source))).thread == Thread(CHILD)


def test_the_result_of_a_spawn_call_names_the_child(tmp_path: Path) -> None:
    answer = json.dumps({"agent_id": CHILD, "nickname": "Ada"})
    trace = trace_of(write(tmp_path, meta(), spawn(), call("x"), output("s", answer)))
    assert spawned(trace) == {CHILD: "s:result"}


@pytest.mark.parametrize("answer", ["{}", "no", '{"agent_id": 7}', "[1]", '{"agent_id": "'])
def test_a_spawn_result_without_a_thread_has_no_child(tmp_path: Path, answer: str) -> None:
    assert spawned(trace_of(write(tmp_path, meta(), spawn(), output("s", answer)))) == {}


def test_other_calls_begin_no_thread(tmp_path: Path) -> None:
    answer = json.dumps({"agent_id": CHILD})
    assert spawned(trace_of(write(tmp_path, meta(), call("a"), output("a", answer)))) == {}


STARTED = {"agent_thread_id": CHILD, "agent_path": "/root/pods", "kind": "started"}
PATHS_ONLY = json.dumps({"task_name": "/root/pods"})


@pytest.mark.parametrize(
    "child_event",
    [
        event("sub_agent_activity", 0, event_id="s", **STARTED),
        turn_item("SubAgentActivity", 0, id="s", **STARTED),
        event("collab_agent_spawn_end", call_id="s", new_thread_id=CHILD),
        turn_item("CollabAgentToolCall", id="s", tool="spawnAgent", receiver_thread_ids=[CHILD]),
    ],
)
@pytest.mark.parametrize("answered_first", [True, False])
def test_newer_builds_name_the_child_in_an_event(
    tmp_path: Path, child_event: Record, answered_first: bool
) -> None:
    pair = [child_event, output("s", PATHS_ONLY)]
    path = write(tmp_path, meta(), spawn(), *(reversed(pair) if answered_first else pair))
    trace = trace_of(path)
    assert spawned(trace) == {CHILD: "s:result"}
    assert [span.key for span in spans_of(trace) if span.kind is not SpanKind.LOG] == [
        "s:call",
        "s:result",
    ]


def test_the_spawning_key_of_a_sub_agent_has_its_thread(tmp_path: Path) -> None:
    header = meta(CHILD, parent_thread_id=PARENT)
    answer = json.dumps({"agent_id": "grandchild"})
    trace = trace_of(write(tmp_path, header, spawn(), output("s", answer)))
    assert spawned(trace) == {"grandchild": f"{CHILD}/s:result"}
