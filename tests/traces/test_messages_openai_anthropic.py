"""Messages as OpenAI's and Anthropic's interfaces have them, from their published layouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.traces.model import SpanStatus, Tokens, Trace
from mast_tui.traces.readers.chat.reader import READER
from tests.traces.checks import read_file, read_one, write_json, write_json_lines

PNG = "data:image/png;base64,iVBORw0KGgo="

PUBLISHED_LAYOUT_CHAT: list[dict[str, object]] = [
    {"role": "developer", "content": "be brief"},
    {
        "role": "user",
        "name": "ada",
        "content": [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": PNG}},
            {"type": "file", "file": {"filename": "notes.pdf", "file_data": PNG}},
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "two look-ups",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"a":1}'}},
            {"id": "c2", "type": "function", "function": {"name": "put", "arguments": "{}"}},
            {"id": "c3", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
        ],
        "usage": {"prompt_tokens": 31, "completion_tokens": 9},
    },
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "stored"}]},
    {"role": "tool", "tool_call_id": "c3", "content": "1"},
    {"role": "tool", "tool_call_id": "c1", "content": "7"},
    {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
    {"role": "function", "name": "old", "content": "fine"},
    {"role": "assistant", "content": None, "refusal": "I will not"},
    {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "spoken words"}},
    {"role": "assistant", "content": None, "audio": {"id": "a2"}},
]


def rows(trace: Trace) -> list[tuple[str, str, str, str | None, str]]:
    """Return key, kind, agent, name and text of each span."""
    return [
        (span.key, span.kind.value, span.agent, span.name, trace.text(span.index))
        for span in map(trace.span, range(len(trace)))
    ]


def tokens(trace: Trace) -> dict[str, Tokens]:
    """Return the tokens of each span that has some, by key."""
    spans = map(trace.span, range(len(trace)))
    return {span.key: span.tokens for span in spans if span.tokens is not None}


def statuses(trace: Trace) -> dict[str, SpanStatus]:
    """Return the known status of each span, by key."""
    spans = map(trace.span, range(len(trace)))
    return {span.key: span.status for span in spans if span.status is not SpanStatus.UNKNOWN}


def parents(trace: Trace) -> dict[str, str | None]:
    """Return the parent of each tool result, by key."""
    spans = map(trace.span, range(len(trace)))
    return {span.key: span.parent for span in spans if span.kind == "tool_result"}


def test_openai_chat(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "x.json", PUBLISHED_LAYOUT_CHAT))
    seen = "what is this?\n[image_url]\n[file notes.pdf]\n[input_audio]"
    assert rows(trace) == [
        ("/0", "message", "developer", None, "be brief"),
        ("/1", "message", "ada", None, seen),
        ("/2/reasoning_content", "reasoning", "assistant", None, "two look-ups"),
        ("c1:call", "tool_call", "assistant", "get", '{"a":1}'),
        ("c2:call", "tool_call", "assistant", "put", "{}"),
        ("c3:call", "tool_call", "assistant", "sql", "select 1"),
        ("c2:result", "tool_result", "assistant", "put", "stored"),
        ("c3:result", "tool_result", "assistant", "sql", "1"),
        ("c1:result", "tool_result", "assistant", "get", "7"),
        ("/6/function_call", "tool_call", "assistant", "old", "{}"),
        ("/7", "tool_result", "assistant", "old", "fine"),
        ("/8", "message", "assistant", None, "I will not"),
        ("/9", "message", "assistant", None, "spoken words"),
        ("/10", "message", "assistant", None, "[audio]"),
    ]
    assert tokens(trace) == {"c3:call": Tokens(31, 9)}
    assert parents(trace)["/7"] == "/6/function_call"


@pytest.mark.parametrize(
    "field",
    [
        {"reasoning": "hm"},
        {"thinking": "hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "x"}]},
        {"reasoning_content": "hm", "thinking_blocks": [{"type": "thinking", "thinking": "hm"}]},
        {"reasoning": "hm", "content": [{"type": "thinking", "thinking": "hm"}, "fine"]},
    ],
)
def test_thoughts_in_any_field_are_shown_once(tmp_path: Path, field: Mapping[str, object]) -> None:
    message = {"role": "assistant", "content": "fine", **field}
    trace = read_one(READER, write_json(tmp_path / "x.json", [message]))
    assert [row[1::3] for row in rows(trace)] == [("reasoning", "hm"), ("message", "fine")]


PUBLISHED_LAYOUT_RESPONSE: dict[str, object] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_790_000_000,
    "status": "completed",
    "error": None,
    "model": "opal-2",
    "instructions": "be brief",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "k1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "k2", "name": "patch", "input": "*** Begin"},
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "weather"},
        },
        {"type": "computer_call", "call_id": "k3", "action": {"type": "click", "x": 1}},
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "name": "roll",
            "server_label": "dice",
            "arguments": '{"n":2}',
            "output": "7",
            "error": None,
        },
        {"type": "mcp_call", "id": "mcp_2", "name": "roll", "arguments": "{}", "error": "gone"},
        {
            "type": "local_shell_call",
            "id": "sh_1",
            "call_id": "k4",
            "action": {"type": "exec", "command": ["ls", "-a"]},
        },
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "print(1)",
            "outputs": [{"type": "logs", "logs": "1"}],
        },
        {"type": "image_generation_call", "id": "ig_1", "result": "iVBORw0KGgo="},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "it rains", "annotations": []}],
        },
    ],
    "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
}
PUBLISHED_LAYOUT_OUTPUTS: list[dict[str, object]] = [
    {"type": "function_call_output", "call_id": "k1", "output": "7"},
    {"type": "custom_tool_call_output", "call_id": "k2", "output": "done"},
    {
        "type": "computer_call_output",
        "call_id": "k3",
        "output": {"type": "computer_screenshot", "image_url": PNG},
    },
    {"type": "local_shell_call_output", "id": "k4", "output": ".\n.."},
    {"type": "shell_call", "call_id": "k5", "action": {"commands": ["ls", "false"]}},
    {
        "type": "shell_call_output",
        "call_id": "k5",
        "output": [
            {"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            {"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 1}},
        ],
    },
]


def test_a_whole_response_of_openai(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "x.json", PUBLISHED_LAYOUT_RESPONSE))
    assert [(key, kind, name, text) for key, kind, _agent, name, text in rows(trace)] == [
        ("/instructions", "message", None, "be brief"),
        ("/output/0", "reasoning", None, "hm"),
        ("/output/1", "reasoning", None, "[encrypted reasoning]"),
        ("k1:call", "tool_call", "f", "{}"),
        ("k2:call", "tool_call", "patch", "*** Begin"),
        ("ws_1:call", "tool_call", "web_search", '{\n  "type": "search",\n  "query": "weather"\n}'),
        ("k3:call", "tool_call", "computer", '{\n  "type": "click",\n  "x": 1\n}'),
        ("mcp_1:call", "tool_call", "roll", '{"n":2}'),
        ("mcp_1:result", "tool_result", "roll", "7"),
        ("mcp_2:call", "tool_call", "roll", "{}"),
        ("mcp_2:result", "tool_result", "roll", "gone"),
        (
            "k4:call",
            "tool_call",
            "local_shell",
            '{\n  "type": "exec",\n  "command": [\n    "ls",\n    "-a"\n  ]\n}',
        ),
        ("ci_1:call", "tool_call", "code_interpreter", '{\n  "code": "print(1)"\n}'),
        ("ci_1:result", "tool_result", "code_interpreter", "1"),
        ("ig_1:call", "tool_call", "image_generation", ""),
        ("ig_1:result", "tool_result", "image_generation", "[image]"),
        ("/output/11", "message", None, "it rains"),
    ]
    assert statuses(trace) == {"mcp_2:result": SpanStatus.ERROR}
    assert parents(trace)["mcp_1:result"] == "mcp_1:call"
    assert trace.meta.model == "opal-2"
    assert tokens(trace) == {"/output/11": Tokens(100, 20)}


def test_request_and_response_with_outputs_of_tools(tmp_path: Path) -> None:
    calls = PUBLISHED_LAYOUT_RESPONSE["output"]
    assert isinstance(calls, list)
    said = {"role": "user", "content": "go"}
    record = {"input": [said, *calls, *PUBLISHED_LAYOUT_OUTPUTS], "output": calls[-1:]}
    trace = read_one(READER, write_json(tmp_path / "x.json", record))
    assert rows(trace)[-7:] == [
        ("k1:result", "tool_result", "assistant", "f", "7"),
        ("k2:result", "tool_result", "assistant", "patch", "done"),
        ("k3:result", "tool_result", "assistant", "computer", "[computer_screenshot]"),
        ("k4:result", "tool_result", "assistant", "local_shell", ".\n.."),
        (
            "k5:call",
            "tool_call",
            "assistant",
            "shell",
            '{\n  "commands": [\n    "ls",\n    "false"\n  ]\n}',
        ),
        ("k5:result", "tool_result", "assistant", "shell", "a\n\nno"),
        ("/output/0", "message", "assistant", None, "it rains"),
    ]
    assert statuses(trace)["k5:result"] is SpanStatus.ERROR
    assert trace.meta.task == "go"


def test_an_input_that_is_a_text(tmp_path: Path) -> None:
    record = {**PUBLISHED_LAYOUT_RESPONSE, "input": "what weather?", "instructions": None}
    trace = read_one(READER, write_json(tmp_path / "x.json", record))
    assert rows(trace)[0] == ("/input", "message", "user", None, "what weather?")
    assert trace.meta.task == "what weather?"
    assert rows(trace)[-1][0] == "/output/11"


PUBLISHED_LAYOUT_ANTHROPIC_RESPONSE: dict[str, object] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "onyx-1",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "Eqs"},
        {"type": "redacted_thinking", "data": "EmwK"},
        {"type": "text", "text": "I look it up"},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "w"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv_1",
            "content": [
                {
                    "type": "web_search_result",
                    "title": "Weather",
                    "url": "https://example.org",
                    "encrypted_content": "Eo8D",
                }
            ],
        },
        {"type": "server_tool_use", "id": "srv_2", "name": "web_search", "input": {}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv_2",
            "content": {"type": "web_search_tool_result_error", "error_code": "too_many"},
        },
        {"type": "text", "text": "It rains."},
        {"type": "tool_use", "id": "tu_1", "name": "bash", "input": {"command": "ls"}},
    ],
    "stop_reason": "tool_use",
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 5,
        "cache_read_input_tokens": 100,
        "output_tokens": 8,
    },
}
PUBLISHED_LAYOUT_ANTHROPIC_RESULT: dict[str, object] = {
    "role": "user",
    "content": [
        {
            "type": "tool_result",
            "tool_use_id": "tu_1",
            "is_error": True,
            "content": [
                {"type": "text", "text": "no such file"},
                {"type": "image", "source": {"type": "base64", "data": "iVBO"}},
            ],
        },
        {"type": "text", "text": "try again"},
    ],
}


def test_a_whole_response_of_anthropic(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "x.json", PUBLISHED_LAYOUT_ANTHROPIC_RESPONSE))
    found = [(key, kind, name, text) for key, kind, _agent, name, text in rows(trace)]
    assert found[:5] == [
        ("/content/0", "reasoning", None, "hm"),
        ("/content/1", "reasoning", None, "[redacted thinking]"),
        ("/content/2", "message", None, "I look it up"),
        ("srv_1:call", "tool_call", "web_search", '{\n  "query": "w"\n}'),
        ("srv_1:result", "tool_result", "web_search", "Weather\nhttps://example.org"),
    ]
    assert found[7:] == [
        ("/content/7", "message", None, "It rains."),
        ("tu_1:call", "tool_call", "bash", '{\n  "command": "ls"\n}'),
    ]
    assert statuses(trace) == {"srv_2:result": SpanStatus.ERROR}
    assert tokens(trace) == {"tu_1:call": Tokens(115, 8)}
    assert trace.meta.model == "onyx-1"


@pytest.mark.parametrize(
    "system", ["rules", [{"type": "text", "text": "rules", "cache_control": {"type": "x"}}]]
)
def test_an_anthropic_request(tmp_path: Path, system: object) -> None:
    request = {
        "model": "onyx-1",
        "system": system,
        "messages": [
            {"role": "user", "content": "go"},
            PUBLISHED_LAYOUT_ANTHROPIC_RESPONSE,
            PUBLISHED_LAYOUT_ANTHROPIC_RESULT,
        ],
    }
    trace = read_one(READER, write_json(tmp_path / "x.json", request))
    assert rows(trace)[0] == ("/system", "message", "system", None, "rules")
    assert rows(trace)[-2:] == [
        ("tu_1:result", "tool_result", "assistant", "bash", "no such file\n[image]"),
        ("/messages/2/content/1", "message", "user", None, "try again"),
    ]
    assert statuses(trace)["tu_1:result"] is SpanStatus.ERROR


def test_a_request_and_its_response_in_one_record(tmp_path: Path) -> None:
    record = {
        "request": {
            "model": "onyx-1",
            "system": "rules",
            "messages": [{"role": "user", "content": "go"}],
        },
        "response": PUBLISHED_LAYOUT_ANTHROPIC_RESPONSE,
    }
    trace = read_one(READER, write_json(tmp_path / "x.json", record))
    keys = [row[0] for row in rows(trace)]
    assert keys[:3] == ["/request/system", "/request/messages/0", "/response/content/0"]
    assert tokens(trace) == {"tu_1:call": Tokens(115, 8)}
    assert trace.meta.model == "onyx-1"


@pytest.mark.parametrize("nested", [True, False])
def test_a_log_of_chat_completions_that_repeats_its_history_is_one_run(
    tmp_path: Path, nested: bool
) -> None:
    asked: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    lines = []
    for number in range(2):
        answer: dict[str, object] = {"role": "assistant", "content": f"answer {number}"}
        response = {
            "object": "chat.completion",
            "model": "opal-2",
            "choices": [{"index": 0, "finish_reason": "stop", "message": answer}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        }
        request = {"model": "opal", "messages": list(asked)}
        lines.append(
            {"request": request, "response": response} if nested else {**request, **response}
        )
        asked += [answer, {"role": "user", "content": "more"}]
    report = read_file(READER, write_json_lines(tmp_path / "log.jsonl", *lines))
    (trace,) = report.traces
    assert [row[-1] for row in rows(trace)] == ["go", "answer 0", "more", "answer 1"]
    assert [trace.span(index).place for index in range(4)] == [
        "line 1",
        "line 1",
        "line 2",
        "line 2",
    ]
    answered = {f"line {line}/answered/0": Tokens(5, 2) for line in (1, 2)}
    assert tokens(trace) == answered
    assert trace.meta.model == "opal-2"


def test_an_answer_that_the_request_already_holds_is_shown_once(tmp_path: Path) -> None:
    answer = {"role": "assistant", "content": "done"}
    record = {
        "messages": [{"role": "user", "content": "go"}, answer],
        "response": {"choices": [{"message": answer}], "usage": {"completion_tokens": 2}},
    }
    trace = read_one(READER, write_json(tmp_path / "x.json", record))
    assert [row[-1] for row in rows(trace)] == ["go", "done"]
    assert tokens(trace) == {"/messages/1": Tokens(None, 2)}


def test_the_end_of_a_call_is_when_its_result_came(tmp_path: Path) -> None:
    messages = [
        {**PUBLISHED_LAYOUT_CHAT[2], "timestamp": "2026-01-01T00:00:00Z"},
        {"role": "tool", "tool_call_id": "c1", "content": "7", "timestamp": 1_767_225_602.5},
    ]
    trace = read_one(READER, write_json(tmp_path / "x.json", messages))
    index = trace.index_of("c1:call")
    assert index is not None
    call = trace.span(index)
    assert (call.start, call.end) == (1_767_225_600, 1_767_225_602.5)


def test_a_result_that_comes_before_its_call_belongs_to_it(tmp_path: Path) -> None:
    call = {"id": "c9", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "add"},
        {"role": "tool", "tool_call_id": "c9", "content": "7"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "add", "content": "8"},
    ]
    trace = read_one(READER, write_json(tmp_path / "x.json", messages))
    assert [(trace.span(index).key, trace.span(index).parent) for index in range(1, 4)] == [
        ("c9:call", None),
        ("c9:result", "c9:call"),
        ("/3", None),
    ]
