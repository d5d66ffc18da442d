"""Codex rollouts of newer builds: turn items, tools within tools, compressed files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Role, SpanStatus
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.checks import spans_of, texts_of
from tests.traces.rollouts import (
    SESSION,
    Record,
    event,
    message,
    meta,
    record,
    tokens,
    trace_of,
    turn_item,
    write,
)


def item(kind: str, /, second: float = 0, **fields: object) -> Record:
    return record("response_item", {**fields, "type": kind}, second)


def text_part(text: str) -> list[object]:
    return [{"type": "text", "text": text}]


PUBLISHED_LAYOUT_PAGINATED = [
    meta(history_mode="paginated", cli_version="0.150.0"),
    event("task_started", turn_id="t"),
    message("developer", "Sandboxed.", id="m1"),
    record("turn_context", {"turn_id": "t", "model": "gpt-oss"}),
    message(
        "user",
        "where we are",
        id="m2",
        internal_chat_message_metadata_passthrough={
            "content_item_kinds": ["environments.environment_context"]
        },
    ),
    message(
        "user",
        "run the tests",
        1,
        id="m3",
        internal_chat_message_metadata_passthrough={"content_item_kinds": ["user.text"]},
    ),
    turn_item("UserMessage", 1, id="u1", content=text_part("run the tests")),
    item("function_call", 3, id="f", name="exec", arguments='{"cmd": "make"}', call_id="c1"),
    item("function_call_output", 6, call_id="c1", output="1 failing"),
    turn_item("CommandExecution", 6, id="c1", command=["make"], exit_code=1, status="failed"),
    turn_item("Reasoning", 7, id="r1", summary_text=["one fails"], raw_content=[]),
    item("reasoning", 7, id="r1", summary=[{"type": "summary_text", "text": "one fails"}]),
    turn_item("AgentMessage", 8, id="m4", content=[{"type": "Text", "text": "One test fails."}]),
    message("assistant", "One test fails.", 8, id="m4"),
    tokens(900, 40, 940, 8),
    record("token_usage_record", {"usage": {"input_tokens": 900, "output_tokens": 40}}, 8),
    event("task_complete", 8, last_agent_message="One test fails."),
]


def test_a_paginated_rollout_says_everything_once(tmp_path: Path) -> None:
    records = [{**one, "ordinal": at} for at, one in enumerate(PUBLISHED_LAYOUT_PAGINATED)]
    trace = trace_of(write(tmp_path, *records))
    assert [(span.key, span.role.value) for span in spans_of(trace)] == [
        ("m1", "system"),
        ("m2", "system"),
        ("m3", "user"),
        ("c1:call", "agent"),
        ("c1:result", "tool"),
        ("r1", "agent"),
        ("m4", "agent"),
    ]
    assert trace.span(4).status is SpanStatus.ERROR
    assert trace.meta.task == "run the tests"
    assert trace.identity.trace_id == SESSION


def mcp_end(result: object, call_id: str = "m") -> Record:
    return event(
        "mcp_tool_call_end",
        10,
        call_id=call_id,
        invocation={"server": "sre", "tool": "logs", "arguments": {"pod": "cart"}},
        duration={"secs": 2, "nanos": 500_000_000},
        result=result,
    )


@pytest.mark.parametrize(
    ("result", "text", "status"),
    [
        ({"Ok": {"content": text_part("3 lines"), "isError": False}}, "3 lines", SpanStatus.OK),
        ({"Ok": {"content": text_part("no pod"), "isError": True}}, "no pod", SpanStatus.ERROR),
        ({"Ok": {"content": text_part("3 lines")}}, "3 lines", SpanStatus.UNKNOWN),
        ({"Err": "timed out"}, "timed out", SpanStatus.ERROR),
        (None, "", SpanStatus.UNKNOWN),
    ],
)
def test_an_mcp_call_without_an_item_is_known_from_its_end(
    tmp_path: Path, result: object, text: str, status: SpanStatus
) -> None:
    trace = trace_of(write(tmp_path, meta(), mcp_end(result), message("assistant", "ok", 11)))
    asked, answered = spans_of(trace)[:2]
    assert (asked.key, answered.key, answered.parent) == ("m:call", "m:result", "m:call")
    assert (asked.name, answered.name) == ("sre.logs", "sre.logs")
    assert json.loads(trace.text(0)) == {"pod": "cart"}
    assert texts_of(trace)[1:] == [text, "ok"]
    assert (asked.status, answered.status) == (SpanStatus.UNKNOWN, status)
    assert None not in (asked.start, asked.end)
    assert (asked.end or 0) - (asked.start or 0) == 2.5
    assert asked.place == answered.place == "line 2"


NESTED = [
    (
        turn_item("CommandExecution", id="n", command=["ls"], aggregated_output="a", exit_code=0),
        ("shell", '{\n  "command": [\n    "ls"\n  ]\n}', "a", SpanStatus.OK),
    ),
    (
        turn_item("FileChange", id="n", changes={"/a": {}}, stderr="bad patch", status="failed"),
        ("apply_patch", '{\n  "/a": {}\n}', "bad patch", SpanStatus.ERROR),
    ),
    (
        turn_item("McpToolCall", id="n", server="s", tool="t", error={"message": "no"}),
        ("s.t", "", "no", SpanStatus.ERROR),
    ),
    (
        turn_item("DynamicToolCall", id="n", tool="t", arguments={"a": 1}, success=True),
        ("t", '{\n  "a": 1\n}', "", SpanStatus.OK),
    ),
    (
        turn_item("Extension", id="n", kind="web.search", query="q", results=["found"]),
        ("web.search", '{\n  "query": "q"\n}', '"found"', SpanStatus.UNKNOWN),
    ),
    (
        event("exec_command_end", call_id="n", command=["ls"], stdout="a", exit_code=2),
        ("shell", '{\n  "command": [\n    "ls"\n  ]\n}', "a", SpanStatus.ERROR),
    ),
    (
        event("patch_apply_end", call_id="n", changes={"/a": {}}, stdout="Done", success=True),
        ("apply_patch", '{\n  "/a": {}\n}', "Done", SpanStatus.OK),
    ),
]


@pytest.mark.parametrize(("told", "seen"), NESTED)
def test_calls_from_inside_another_tool_have_no_items_of_their_own(
    tmp_path: Path, told: Record, seen: tuple[str, str, str, SpanStatus]
) -> None:
    script = item("custom_tool_call", call_id="x", name="exec", input="await tools.run()")
    done = item("custom_tool_call_output", call_id="x", output="finished")
    trace = trace_of(write(tmp_path, meta(), script, told, done))
    spans = spans_of(trace)
    assert [span.key for span in spans] == ["x:call", "n:call", "n:result", "x:result"]
    assert (spans[1].name, trace.text(1), trace.text(2).strip('"'), spans[2].status) == (
        *seen[:2],
        seen[2].strip('"'),
        seen[3],
    )


@pytest.mark.parametrize(
    "opening", ["<subagent_notification>", "# AGENTS.md instructions", "<environment_context>"]
)
def test_texts_of_the_harness_in_the_users_name_have_the_system_role(
    tmp_path: Path, opening: str
) -> None:
    trace = trace_of(write(tmp_path, meta(), message("user", f"{opening} x"), message("user", "q")))
    assert [span.role for span in spans_of(trace)] == [Role.SYSTEM, Role.USER]
    assert trace.meta.task == "q"


def test_a_text_of_a_changed_shared_line_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), mcp_end({"Err": "no"}))
    trace = READER.read(Source(path)).traces[0]
    path.write_bytes(b"#" * path.stat().st_size)
    for index in range(2):
        with pytest.raises(OSError, match="the file has changed"):
            trace.text(index)
