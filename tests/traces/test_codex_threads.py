"""Threads of Codex: sub-agents, their parents, and repeated histories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role, SpanKind, Thread, Trace
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.checks import check_sound, spans_of, texts_of
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


def report(path: Path) -> FileReport:
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


def with_ordinals(*records: Record) -> list[Record]:
    return [{**rollout_record, "ordinal": number} for number, rollout_record in enumerate(records)]


@pytest.mark.parametrize(
    ("fields", "agent"),
    [
        ({"agent_nickname": "Ada", "agent_role": "explorer"}, "Ada"),
        ({"agent_role": "explorer"}, "explorer"),
        ({"agent_path": "/root/review"}, "review"),
        ({}, "codex 01a2b3c4"),
        ({"agent_nickname": 7, "agent_role": {"a": 1}, "agent_path": []}, "codex 01a2b3c4"),
    ],
)
def test_a_sub_agent_has_its_name_and_keys_of_its_own(
    tmp_path: Path, fields: dict[str, object], agent: str
) -> None:
    first = meta(CHILD, 0, parent_thread_id=PARENT, **fields)
    path = write(tmp_path, first, message("user", "go"), call("a"), output("a"))
    trace = trace_of(path)
    assert report(path).thread == Thread(CHILD, PARENT)
    assert [(span.key, span.agent) for span in spans_of(trace)] == [
        (f"{CHILD}/line 2", "user"),
        (f"{CHILD}/a:call", agent),
        (f"{CHILD}/a:result", agent),
    ]
    assert trace.span(2).parent == f"{CHILD}/a:call"
    assert trace.identity.trace_id == CHILD


def test_the_parent_of_a_thread_can_be_in_its_source(tmp_path: Path) -> None:
    born = {"parent_thread_id": PARENT, "depth": 1, "agent_nickname": "Ada"}
    first = meta(CHILD, source={"subagent": {"thread_spawn": born}})
    path = write(tmp_path, first, message("assistant", "ok"))
    assert report(path).thread == Thread(CHILD, PARENT)
    assert trace_of(path).span(0).agent == "Ada"


@pytest.mark.parametrize("source", ["cli", {"subagent": "review"}, {"subagent": {"other": "x"}}, 3])
def test_other_sources_name_no_parent(tmp_path: Path, source: object) -> None:
    assert report(write(tmp_path, meta(CHILD, source=source))).thread == Thread(CHILD)


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
    "told",
    [
        event("sub_agent_activity", 0, event_id="s", **STARTED),
        turn_item("SubAgentActivity", 0, id="s", **STARTED),
        event("collab_agent_spawn_end", call_id="s", new_thread_id=CHILD),
        turn_item("CollabAgentToolCall", id="s", tool="spawnAgent", receiver_thread_ids=[CHILD]),
    ],
)
@pytest.mark.parametrize("answered_first", [True, False])
def test_newer_builds_name_the_child_in_an_event(
    tmp_path: Path, told: Record, answered_first: bool
) -> None:
    pair = [told, output("s", PATHS_ONLY)]
    path = write(tmp_path, meta(), spawn(), *(reversed(pair) if answered_first else pair))
    trace = trace_of(path)
    assert spawned(trace) == {CHILD: "s:result"}
    assert [span.key for span in spans_of(trace) if span.kind is not SpanKind.LOG] == [
        "s:call",
        "s:result",
    ]


def test_a_sub_agents_own_sub_agents_belong_before_its_own_keys(tmp_path: Path) -> None:
    first = meta(CHILD, parent_thread_id=PARENT)
    answer = json.dumps({"agent_id": "grandchild"})
    trace = trace_of(write(tmp_path, first, spawn(), output("s", answer)))
    assert spawned(trace) == {"grandchild": f"{CHILD}/s:result"}


@pytest.mark.parametrize("kind", ["agent_message", "inter_agent_communication", "envelope"])
def test_messages_between_agents_have_their_author(tmp_path: Path, kind: str) -> None:
    letter = {"author": "/root/pods", "recipient": "/root"}
    part = {"type": "input_text", "text": "All pods run."}
    one = {
        "agent_message": record(
            "response_item", {"type": "agent_message", "content": [part], **letter}
        ),
        "inter_agent_communication": record(
            "inter_agent_communication", {"content": "All pods run.", **letter}
        ),
        "envelope": message(
            "assistant", json.dumps({**letter, "content": "All pods run.", "trigger_turn": False})
        ),
    }[kind]
    trace = trace_of(write(tmp_path, meta(), call("a"), one, message("assistant", "Good.")))
    span = trace.span(1)
    assert (span.kind, span.role, span.agent) == (SpanKind.MESSAGE, Role.AGENT, "/root/pods")
    assert texts_of(trace)[1:] == ["All pods run.", "Good."]


@pytest.mark.parametrize("event_first", [True, False])
def test_a_message_between_agents_recorded_twice_is_shown_once(
    tmp_path: Path, event_first: bool
) -> None:
    letter = {"author": "/root/pods", "recipient": "/root", "content": "All pods run."}
    records = [
        record("inter_agent_communication", letter),
        record("response_item", {"type": "agent_message", **letter}),
    ]
    ordered = records if event_first else reversed(records)
    assert texts_of(trace_of(write(tmp_path, meta(), *ordered))) == ["All pods run."]


HISTORY = [
    message("user", "the parent's task", 0.01),
    message("assistant", "the parent's answer", 0.02),
    event("token_count", 0.02, info=None),
]
OWN = [message("user", "the child's task", 0.2), message("assistant", "the child's answer", 9)]


def test_a_sub_agent_that_is_no_fork_shows_its_whole_history(tmp_path: Path) -> None:
    first = meta(CHILD, parent_thread_id=PARENT)
    assert len(texts_of(trace_of(write(tmp_path, first, *HISTORY, *OWN)))) == 4


def test_a_fork_of_the_users_is_a_run_of_its_own(tmp_path: Path) -> None:
    first = meta(CHILD, forked_from_id=PARENT)
    path = write(tmp_path, first, meta(PARENT, 0.01), *HISTORY, *OWN)
    trace = trace_of(path)
    assert report(path).thread == Thread(CHILD)
    assert texts_of(trace)[1:] == ["the child's task", "the child's answer"]
    assert [span.key for span in spans_of(trace)] == ["line 2", "line 6", "line 7"]


def test_a_fork_can_name_its_first_own_record(tmp_path: Path) -> None:
    first = meta(
        CHILD, parent_thread_id=PARENT, forked_from_id=PARENT, subagent_history_start_ordinal=5
    )
    late = [message("assistant", "an answer of the parent's, written late", 0.9)]
    own = [message("developer", "Your own context.", 0.9), *OWN]
    path = write(tmp_path, *with_ordinals(first, meta(PARENT), *HISTORY[:2], *late, *own))
    assert texts_of(trace_of(path))[1:] == [
        "Your own context.",
        "the child's task",
        "the child's answer",
    ]


def test_a_first_own_record_past_the_end_hides_only_the_history(tmp_path: Path) -> None:
    fields: dict[str, object] = {"parent_thread_id": PARENT, "subagent_history_start_ordinal": 99}
    first = meta(CHILD, 0, forked_from_id=PARENT, **fields)
    path = write(tmp_path, *with_ordinals(first, meta(PARENT), *HISTORY, *OWN))
    assert texts_of(trace_of(path))[1:] == ["the child's task", "the child's answer"]
    guardian = write(tmp_path, *with_ordinals(meta(CHILD, 0, **fields), *HISTORY, *OWN))
    assert len(texts_of(trace_of(guardian))) == 4


def test_a_history_of_more_than_a_second_is_left_out(tmp_path: Path) -> None:
    long = [message("assistant", f"old {number}", number / 10) for number in range(30)]
    path = write(
        tmp_path,
        meta(CHILD, forked_from_id=PARENT),
        meta(PARENT),
        *long,
        message("user", "the child's task", 3),
        message("assistant", "the child's answer", 9),
    )
    assert texts_of(trace_of(path))[1:] == ["the child's task", "the child's answer"]


def test_a_history_in_the_parents_file_hides_nothing(tmp_path: Path) -> None:
    base = {"thread_id": PARENT, "end_ordinal_exclusive": 7, "end_byte_offset": 900}
    first = meta(CHILD, forked_from_id=PARENT, history_base=base, history_mode="paginated")
    trace = trace_of(write(tmp_path, *with_ordinals(first, *HISTORY, *OWN)))
    assert len(texts_of(trace)) == 4
    check_sound(trace)
