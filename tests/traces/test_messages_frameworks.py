"""Messages as agent frameworks save them, from their published layouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.reader import READER
from tests.traces.checks import read_one, write_json, write_json_lines
from tests.traces.test_messages_openai_anthropic import parents, rows, statuses, tokens

USAGE = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}

PUBLISHED_LAYOUT_LANGCHAIN: list[dict[str, object]] = [
    {"type": "system", "content": "rules", "additional_kwargs": {}, "id": None},
    {"type": "human", "content": "weather?", "name": None, "example": False},
    {
        "type": "ai",
        "content": [
            {"type": "text", "text": "I look"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"q": "rain"}},
        ],
        "additional_kwargs": {
            "tool_calls": [{"id": "t1", "function": {"name": "look", "arguments": '{"q":"rain"}'}}]
        },
        "response_metadata": {"model_name": "opal-2", "finish_reason": "tool_calls"},
        "id": "run-1",
        "tool_calls": [
            {"name": "look", "args": {"q": "rain"}, "id": "t1", "type": "tool_call"},
            {"name": "ask", "args": {}, "id": "t2", "type": "tool_call"},
        ],
        "invalid_tool_calls": [],
        "usage_metadata": USAGE,
    },
    {"type": "tool", "content": "wet", "name": "look", "tool_call_id": "t1", "status": "success"},
    {"type": "tool", "content": "gone", "name": "ask", "tool_call_id": "t2", "status": "error"},
    {"type": "ai", "content": "It rains.", "name": "forecaster", "tool_calls": []},
]
CLASSES = {
    "system": "SystemMessage",
    "human": "HumanMessage",
    "ai": "AIMessage",
    "tool": "ToolMessage",
}


def constructed(message: Mapping[str, object]) -> dict[str, object]:
    name = CLASSES[str(message["type"])]
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": dict(message)}


def as_data(message: Mapping[str, object]) -> dict[str, object]:
    return {"type": message["type"], "data": dict(message)}


def as_chunk(message: Mapping[str, object]) -> dict[str, object]:
    return {**message, "type": CLASSES[str(message["type"])] + "Chunk"}


@pytest.mark.parametrize("wrap", [dict, constructed, as_data, as_chunk])
@pytest.mark.parametrize("state", [False, True])
def test_langchain_in_all_its_forms(
    tmp_path: Path, wrap: type[dict[str, object]], state: bool
) -> None:
    messages = [wrap(message) for message in PUBLISHED_LAYOUT_LANGCHAIN]
    record = {"values": {"messages": messages}, "next": []} if state else messages
    trace = read_one(READER, write_json(tmp_path / "x.json", record))
    at = "/values/messages" if state else ""
    assert rows(trace) == [
        (f"{at}/0", "message", "system", None, "rules"),
        (f"{at}/1", "message", "user", None, "weather?"),
        (f"{at}/2", "message", "assistant", None, "I look"),
        ("t1:call", "tool_call", "assistant", "look", '{\n  "q": "rain"\n}'),
        ("t2:call", "tool_call", "assistant", "ask", "{}"),
        ("t1:result", "tool_result", "assistant", "look", "wet"),
        ("t2:result", "tool_result", "assistant", "ask", "gone"),
        (f"{at}/5", "message", "forecaster", None, "It rains."),
    ]
    assert statuses(trace) == {"t1:result": SpanStatus.OK, "t2:result": SpanStatus.ERROR}
    assert tokens(trace) == {"t2:call": Tokens(12, 3)}
    assert trace.meta.model == "opal-2"
    assert trace.span(1).role is Role.USER


def test_calls_of_langchain_that_are_only_in_the_vendors_spelling(tmp_path: Path) -> None:
    extras = {"function_call": {"name": "f", "arguments": "{}"}, "reasoning_content": "hm"}
    message = {"type": "ai", "content": "", "additional_kwargs": extras, "tool_calls": []}
    broken = {
        "type": "ai",
        "content": "",
        "invalid_tool_calls": [{"name": "g", "args": "{", "id": "b"}],
    }
    trace = read_one(READER, write_json(tmp_path / "x.json", [message, constructed(broken)]))
    assert rows(trace) == [
        ("/0/additional_kwargs/reasoning_content", "reasoning", "assistant", None, "hm"),
        ("/0/additional_kwargs/function_call", "tool_call", "assistant", "f", "{}"),
        ("b:call", "tool_call", "assistant", "g", "{"),
    ]
    assert trace.span(2).place == "/1/kwargs/invalid_tool_calls/0"
    assert statuses(trace) == {"b:call": SpanStatus.ERROR}


PUBLISHED_LAYOUT_PYDANTIC_AI: list[dict[str, object]] = [
    {
        "kind": "request",
        "instructions": "be brief",
        "parts": [
            {"part_kind": "system-prompt", "content": "rules"},
            {
                "part_kind": "user-prompt",
                "timestamp": "2026-01-01T00:00:00Z",
                "content": ["weather?", {"kind": "image-url", "url": "https://example.org/x.png"}],
            },
        ],
    },
    {
        "kind": "response",
        "timestamp": "2026-01-01T00:00:02Z",
        "model_name": "opal-2",
        "usage": {"request_tokens": 20, "response_tokens": 4},
        "parts": [
            {"part_kind": "thinking", "content": "hm", "signature": "x"},
            {"part_kind": "text", "content": "I look"},
            {
                "part_kind": "tool-call",
                "tool_name": "look",
                "args": '{"q":1}',
                "tool_call_id": "p1",
            },
            {"part_kind": "tool-call", "tool_name": "look", "args": {"q": 2}, "tool_call_id": "p2"},
        ],
    },
    {
        "kind": "request",
        "instructions": "be brief",
        "parts": [
            {
                "part_kind": "tool-return",
                "tool_name": "look",
                "tool_call_id": "p1",
                "content": {"rain": True},
                "timestamp": "2026-01-01T00:00:05Z",
            },
            {
                "part_kind": "retry-prompt",
                "tool_name": "look",
                "tool_call_id": "p2",
                "content": [{"type": "missing", "loc": ["q"], "msg": "Field required"}],
            },
            {
                "part_kind": "retry-prompt",
                "tool_name": None,
                "content": "Plain text is not allowed",
            },
        ],
    },
    {
        "kind": "response",
        "model_name": "opal-3",
        "usage": {"input_tokens": 30, "output_tokens": 2},
        "parts": [{"part_kind": "text", "content": "It rains."}, {"part_kind": "odd", "x": 1}],
    },
]


def test_pydantic_ai(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "x.json", PUBLISHED_LAYOUT_PYDANTIC_AI))
    found = rows(trace)
    assert [row[:4] for row in found] == [
        ("/0/instructions", "message", "system", None),
        ("/0", "message", "system", None),
        ("/0/parts/1", "message", "user", None),
        ("/1", "reasoning", "assistant", None),
        ("/1/parts/1", "message", "assistant", None),
        ("p1:call", "tool_call", "assistant", "look"),
        ("p2:call", "tool_call", "assistant", "look"),
        ("p1:result", "tool_result", "assistant", "look"),
        ("p2:result", "tool_result", "assistant", "look"),
        ("/2/parts/2", "message", "user", None),
        ("/3", "message", "assistant", None),
        ("/3/parts/1", "log", "log", None),
    ]
    assert found[2][-1] == "weather?\n[image-url]"
    assert [row[-1] for row in found[5:8]] == ['{"q":1}', '{\n  "q": 2\n}', '{\n  "rain": true\n}']
    assert "Field required" in found[8][-1]
    assert statuses(trace) == {"p2:result": SpanStatus.ERROR, "/2/parts/2": SpanStatus.ERROR}
    assert tokens(trace) == {"p2:call": Tokens(20, 4), "/3/parts/1": Tokens(30, 2)}
    assert trace.meta.model == "opal-2"
    call = trace.span(5)
    assert (call.start, call.end) == (1_767_225_602, 1_767_225_605)
    assert trace.span(2).start == 1_767_225_600


PUBLISHED_LAYOUT_AUTOGEN: list[dict[str, object]] = [
    {"source": "user", "models_usage": None, "content": "weather?", "type": "TextMessage"},
    {"source": "look", "content": "hm", "type": "ThoughtEvent", "metadata": {}},
    {
        "source": "look",
        "models_usage": {"prompt_tokens": 40, "completion_tokens": 5},
        "content": [
            {"id": "a1", "arguments": '{"q":1}', "name": "rain"},
            {"id": "a2", "arguments": "{}", "name": "sun"},
        ],
        "type": "ToolCallRequestEvent",
        "created_at": "2026-01-01T00:00:00Z",
    },
    {
        "source": "look",
        "content": [
            {"content": "wet", "name": "rain", "call_id": "a1", "is_error": False},
            {"content": "dark", "name": "sun", "call_id": "a2", "is_error": True},
        ],
        "type": "ToolCallExecutionEvent",
        "created_at": "2026-01-01T00:00:03Z",
    },
    {"source": "look", "content": "wet\ndark", "type": "ToolCallSummaryMessage"},
    {
        "source": "look",
        "content": ["see", {"url": "x", "type": "image"}],
        "type": "MultiModalMessage",
    },
    {"source": "look", "target": "boss", "content": "to boss", "type": "HandoffMessage"},
    {"source": "manager", "content": ["look", "boss"], "type": "SelectSpeakerEvent"},
    {
        "source": "coder",
        "type": "CodeExecutionEvent",
        "retry_attempt": 0,
        "result": {"exit_code": 1, "output": "boom"},
    },
    {"source": "boss", "content": "enough", "type": "StopMessage"},
]


@pytest.mark.parametrize("as_lines", [False, True])
def test_autogen(tmp_path: Path, as_lines: bool) -> None:
    if as_lines:
        path = write_json_lines(tmp_path / "x.jsonl", *PUBLISHED_LAYOUT_AUTOGEN)
    else:
        result = {"messages": PUBLISHED_LAYOUT_AUTOGEN, "stop_reason": "Stop message received"}
        path = write_json(tmp_path / "x.json", result)
    trace = read_one(READER, path)
    assert [row[1:] for row in rows(trace)] == [
        ("message", "user", None, "weather?"),
        ("reasoning", "look", None, "hm"),
        ("tool_call", "look", "rain", '{"q":1}'),
        ("tool_call", "look", "sun", "{}"),
        ("tool_result", "look", "rain", "wet"),
        ("tool_result", "look", "sun", "dark"),
        ("message", "look", None, "wet\ndark"),
        ("message", "look", None, "see\n[image]"),
        ("message", "look", None, "to boss"),
        ("log", "log", "SelectSpeakerEvent", '[\n  "look",\n  "boss"\n]'),
        ("tool_result", "code", "code", "boom"),
        ("message", "boss", None, "enough"),
    ]
    assert parents(trace)["a2:result"] == "a2:call"
    assert statuses(trace)["a2:result"] is SpanStatus.ERROR
    assert tokens(trace) == {"a2:call": Tokens(40, 5)}
    assert trace.span(0).role is Role.USER
    assert trace.span(2).end == 1_767_225_603


def test_autogen_events_without_source_and_results_without_id(tmp_path: Path) -> None:
    inner = [
        {"type": "ToolCallRequestEvent", "content": [{"name": "rain", "arguments": "{}"}]},
        {"type": "ToolCallExecutionEvent", "content": [{"name": "rain", "content": "wet"}]},
    ]
    trace = read_one(READER, write_json(tmp_path / "x.json", {"messages": inner}))
    assert [row[1:] for row in rows(trace)] == [
        ("tool_call", "assistant", "rain", "{}"),
        ("tool_result", "assistant", "rain", "wet"),
    ]
    assert trace.span(1).parent == trace.span(0).key


def test_the_context_that_autogen_agents_save(tmp_path: Path) -> None:
    context = [
        {"content": "rules", "type": "SystemMessage"},
        {"content": "go", "source": "user", "type": "UserMessage"},
        {
            "content": [{"id": "a1", "arguments": "{}", "name": "rain"}],
            "thought": "hm",
            "source": "look",
            "type": "AssistantMessage",
        },
        {
            "content": [{"content": "wet", "name": "rain", "call_id": "a1", "is_error": False}],
            "type": "FunctionExecutionResultMessage",
        },
    ]
    trace = read_one(READER, write_json(tmp_path / "x.json", {"messages": context}))
    assert [row[1:] for row in rows(trace)] == [
        ("message", "system", None, "rules"),
        ("message", "user", None, "go"),
        ("reasoning", "look", None, "hm"),
        ("tool_call", "look", "rain", "{}"),
        ("tool_result", "look", "rain", "wet"),
    ]
    assert trace.span(0).role is Role.SYSTEM


def test_sharegpt(tmp_path: Path) -> None:
    """The published layout of ShareGPT's conversations, with tools as fine-tuning sets add them."""
    turns = [
        {"from": "system", "value": "rules"},
        {"from": "human", "value": "weather?"},
        {"from": "function_call", "value": '{"name": "rain", "arguments": {"q": 1}}'},
        {"from": "observation", "value": "wet"},
        {"from": "gpt", "value": "It rains."},
        {"from": "function_call", "value": "no JSON"},
        {"from": "tool", "value": "what?"},
    ]
    record = {"id": "x", "conversations": turns, "system": "be brief"}
    trace = read_one(READER, write_json(tmp_path / "x.json", [record]))
    assert rows(trace) == [
        ("/system", "message", "system", None, "be brief"),
        ("/conversations/0", "message", "system", None, "rules"),
        ("/conversations/1", "message", "human", None, "weather?"),
        ("/conversations/2", "tool_call", "assistant", "rain", '{\n  "q": 1\n}'),
        ("/conversations/3", "tool_result", "assistant", "rain", "wet"),
        ("/conversations/4", "message", "assistant", None, "It rains."),
        ("/conversations/5", "tool_call", "assistant", None, "no JSON"),
        ("/conversations/6", "tool_result", "assistant", None, "what?"),
    ]
    assert trace.span(2).role is Role.USER
    assert all(trace.span(index).kind is not SpanKind.LOG for index in range(len(trace)))
