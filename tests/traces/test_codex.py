"""Codex rollouts: spans, pairs of calls and results, repeated texts and forks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.model import SpanKind, SpanStatus
from tests.traces.checks import spans_of, texts_of
from tests.traces.rollouts import (
    SESSION,
    call,
    event,
    message,
    meta,
    output,
    reasoning,
    record,
    trace_of,
    write,
)


def test_a_run_from_its_first_prompt_to_its_answer(tmp_path: Path) -> None:
    trace = trace_of(
        write(
            tmp_path,
            meta(base_instructions={"text": "You are Codex."}),
            event("task_started"),
            message("developer", "Sandbox: read only."),
            message("user", "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>"),
            message("user", "Why is checkout slow?"),
            event("user_message", message="Why is checkout slow?"),
            record("turn_context", {"model": "gpt-oss-120b", "cwd": "/srv"}),
            reasoning("Look at the pods.", second=2),
            call("c1", '{"command": ["kubectl", "get", "pods"]}', second=2.5),
            output("c1", "NAME  READY", second=4),
            message("assistant", "The pods are fine.", 6),
            event("agent_message", message="The pods are fine."),
            event("token_count", info=None),
            event("task_complete", last_agent_message="The pods are fine."),
        )
    )
    assert [(span.kind.value, span.agent, span.key) for span in spans_of(trace)] == [
        ("message", "system", "line 1"),
        ("message", "system", "line 3"),
        ("message", "system", "line 4"),
        ("message", "user", "line 5"),
        ("reasoning", "codex", "line 8"),
        ("tool_call", "codex", "c1:call"),
        ("tool_result", "codex", "c1:result"),
        ("message", "codex", "line 11"),
    ]
    assert texts_of(trace)[5:7] == ['{"command": ["kubectl", "get", "pods"]}', "NAME  READY"]
    assert trace.meta.task == "Why is checkout slow?"
    assert (trace.meta.system, trace.meta.model) == ("codex", "gpt-oss-120b")
    assert (trace.identity.trace_id, trace.identity.native) == (SESSION, True)


def test_a_result_belongs_to_the_call_with_its_id_even_when_several_are_open(
    tmp_path: Path,
) -> None:
    path = write(
        tmp_path,
        meta(),
        call("a", second=1),
        call("b", second=2),
        output("b", second=3),
        output("a", second=5),
    )
    trace = trace_of(path)
    a, b, result_b, result_a = spans_of(trace)
    assert (result_a.parent, result_b.parent) == (a.key, b.key) == ("a:call", "b:call")
    assert result_a.name == "shell"
    assert a.start is not None
    assert b.start is not None
    assert (a.end, b.end) == (a.start + 4, b.start + 1)


def test_a_call_or_a_result_may_be_missing(tmp_path: Path) -> None:
    call_span, result = spans_of(trace_of(write(tmp_path, meta(), call("a"), output("b"))))
    assert (call_span.end, result.parent, result.name) == (None, None, None)


def test_a_result_finds_its_call_however_many_were_made_in_between(tmp_path: Path) -> None:
    ids = [f"call_{number}" for number in range(1000)]
    records = [meta(), *map(call, ids), call("call_7"), *map(output, ids)]
    spans = spans_of(trace_of(write(tmp_path, *records)))
    assert [span.parent for span in spans[1001:]] == [
        "call_7:call~2" if name == "call_7" else f"{name}:call" for name in ids
    ]


@pytest.mark.parametrize("event_first", [True, False])
def test_texts_that_events_repeat_are_shown_once(tmp_path: Path, event_first: bool) -> None:
    pairs = [
        (event("agent_reasoning", text="First"), reasoning("First")),
        (event("agent_message", message="Hello"), message("assistant", "Hello")),
        (event("agent_message", message="Hello"), message("assistant", "Hello")),
    ]
    records = [one for pair in pairs for one in (pair if event_first else reversed(pair))]
    assert texts_of(trace_of(write(tmp_path, meta(), *records))) == ["First", "Hello", "Hello"]


def test_a_text_of_an_event_alone_is_shown_in_its_place(tmp_path: Path) -> None:
    trace = trace_of(
        write(
            tmp_path,
            meta(),
            message("user", "go"),
            event("agent_reasoning", text="Cut short"),
            event("turn_aborted", reason="interrupted"),
            message("user", "go on"),
            event("agent_message", message="The last words"),
            event("task_complete"),
        )
    )
    assert texts_of(trace) == [
        "go",
        "Cut short",
        "turn aborted: interrupted",
        "go on",
        "The last words",
    ]
    aborted = trace.span(2)
    assert (aborted.kind, aborted.status) == (SpanKind.LOG, SpanStatus.ERROR)
    assert trace.span(1).key == "line 3"


def test_a_text_that_an_item_may_still_repeat_is_a_problem(tmp_path: Path) -> None:
    records = [meta(), message("user", "go"), event("agent_reasoning", text="Cut short")]
    trace = trace_of(write(tmp_path, *records))
    assert texts_of(trace) == ["go"]
    (problem,) = trace.problems
    assert problem.place == "line 3"
    assert "Cut short" in problem.message
    assert texts_of(trace_of(write(tmp_path, *records, reasoning("Cut short")))) == [
        "go",
        "Cut short",
    ]


def test_a_rollout_of_events_alone_is_shown_whole(tmp_path: Path) -> None:
    records = [event("user_message", message="go"), event("agent_message", message="ok")]
    assert texts_of(trace_of(write(tmp_path, meta(), *records))) == ["go", "ok"]


LONG = "x" * 500 + '"},"metadata":{"exit_code":1}}'
WRAPPED = [
    (json.dumps(wrapping, separators=separators), LONG, status)
    for separators in ((",", ":"), (", ", ": "))
    for code, status in ((0, "ok"), (1, "error"), (-9, "error"), (None, "unknown"))
    for wrapping in (
        {"output": LONG, "metadata": {"exit_code": code, "duration_seconds": 0.1}},
        {"output": LONG, "metadata": {"exit_code": code}, "x": [1]},
        {"output": LONG, "metadata": {"x": "}", "exit_code": code}},
    )
]


@pytest.mark.parametrize(
    ("text", "shown", "status"),
    [
        ('{"output": "a\\nb", "metadata": {"exit_code": 0}}', "a\nb", SpanStatus.OK),
        ('{"output": "", "metadata": {"exit_code": 137}}', "", SpanStatus.ERROR),
        *WRAPPED,
        ('{"output": "a file of JSON"}', '{"output": "a file of JSON"}', SpanStatus.UNKNOWN),
        ("Exit code: 1\nWall time: 2 s", "Exit code: 1\nWall time: 2 s", SpanStatus.ERROR),
        ("Chunk ID: 7\nWall time: 1 s\nProcess exited with code 0\nOutput:\nx", None, "ok"),
        ("it printed\nProcess running\n" * 40 + "Process exited with code 1", None, "unknown"),
        ("failed in sandbox: exit code: 1, stdout: ", None, SpanStatus.ERROR),
        ("Traceback (most recent call last):", None, SpanStatus.ERROR),
        ({"content": "no", "success": False}, "no", SpanStatus.ERROR),
        ([{"type": "input_text", "text": "seen"}], "seen", SpanStatus.UNKNOWN),
        (None, "", SpanStatus.UNKNOWN),
    ],
)
def test_outputs_have_their_text_and_status(
    tmp_path: Path, text: object, shown: str | None, status: str
) -> None:
    trace = trace_of(write(tmp_path, meta(), call("a"), output("a", text)))
    assert trace.text(1) == (text if shown is None else shown)
    assert trace.span(1).status == status


def test_other_tools_are_calls_too(tmp_path: Path) -> None:
    patch = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "p", "input": "*** x"}
    done = {"type": "custom_tool_call_output", "call_id": "p", "output": "Done"}
    web = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}}
    items = [record("response_item", item) for item in (patch, done, web)]
    spans = spans_of(trace_of(write(tmp_path, meta(), *items)))
    assert [(span.kind.value, span.name, span.key) for span in spans] == [
        ("tool_call", "apply_patch", "p:call"),
        ("tool_result", "apply_patch", "p:result"),
        ("tool_call", "web_search", "ws_1:call"),
    ]


def test_items_of_the_first_era_have_no_envelope(tmp_path: Path) -> None:
    first = {"id": SESSION, "timestamp": "2025-05-07T17:24:21Z", "instructions": "Be brief."}
    items = [one["payload"] for one in (message("user", "go"), call("a"), output("a"))]
    trace = trace_of(write(tmp_path, first, *items, {"record_type": "state"}))
    assert [span.kind.value for span in spans_of(trace)] == [
        "message",
        "message",
        "tool_call",
        "tool_result",
    ]
    assert trace.identity.trace_id == SESSION


def test_a_fork_leaves_out_the_history_of_its_parent(tmp_path: Path) -> None:
    trace = trace_of(
        write(
            tmp_path,
            meta("child", forked_from_id="parent"),
            meta("parent", 0.01),
            message("user", "the parent's task", 0.01),
            message("assistant", "the parent's answer", 0.02),
            call("spawn", second=0.02),
            message("user", "the child's task", 0.2),
            event("user_message", 0.2, message="the child's task"),
            message("assistant", "the child's answer", 9),
        )
    )
    assert texts_of(trace)[1:] == ["the child's task", "the child's answer"]
    assert "parent" in trace.text(0)
    assert trace.span(0).kind is SpanKind.LOG
    assert (trace.identity.trace_id, trace.meta.task) == ("child", "the child's task")
