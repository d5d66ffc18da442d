"""Messages whose contents are parts in a vendor's own spelling, and logs that repeat a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mast_tui.traces.model import Outcome, Tokens
from mast_tui.traces.readers.chat.reader import READER
from tests.traces.checks import read_file, read_one, span_lines, write_json, write_json_lines
from tests.traces.text_coverage import text_coverage

LONG = "The harbour office closes at noon on the first Monday of a month."

BEDROCK = [
    {"role": "user", "content": [{"text": "When does it close?"}, {"cachePoint": {"type": "x"}}]},
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "I should look.", "signature": "s"}}},
            {"toolUse": {"toolUseId": "u1", "name": "hours", "input": {"day": "Mon"}}},
            {"toolUse": {"toolUseId": "u2", "name": "map", "input": {}}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "u2", "status": "error", "content": [{"text": "no map"}]}},
            {
                "toolResult": {
                    "toolUseId": "u1",
                    "status": "success",
                    "content": [{"json": {"close": 12}}, {"image": {"format": "png"}}],
                }
            },
        ],
    },
    {"role": "assistant", "content": [{"text": LONG}]},
]
BEDROCK_SPANS = [
    "message user: When does it close?",
    "reasoning assistant: I should look.",
    'tool_call assistant hours: { "day": "Mon" }',
    "tool_call assistant map: {}",
    "tool_result assistant map error: no map",
    'tool_result assistant hours ok: { "close": 12 } [image png]',
    f"message assistant: {LONG}",
]

GOOSE = [
    {"role": "user", "created": 5, "content": [{"type": "text", "text": "Count the boats"}]},
    {
        "role": "assistant",
        "created": 6,
        "content": [
            {"type": "thinking", "thinking": "A listing will do.", "signature": ""},
            {
                "type": "toolRequest",
                "id": "g1",
                "toolCall": {"status": "success", "value": {"name": "sh", "arguments": {"c": "l"}}},
            },
            {
                "type": "toolRequest",
                "id": "g2",
                "toolCall": {"status": "error", "error": "no such tool: shh"},
            },
        ],
    },
    {
        "role": "user",
        "created": 7,
        "content": [
            {
                "type": "toolResponse",
                "id": "g1",
                "toolResult": {
                    "status": "success",
                    "value": {"content": [{"type": "text", "text": "3 boats"}], "isError": False},
                },
            },
        ],
    },
]
GOOSE_SPANS = [
    "message user: Count the boats",
    "reasoning assistant: A listing will do.",
    'tool_call assistant sh: { "c": "l" }',
    "tool_call assistant error: no such tool: shh",
    "tool_result assistant sh ok: 3 boats",
]

AI_SDK = [
    {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Which boats?"}]},
    {
        "id": "2",
        "role": "assistant",
        "content": "Two of them.",
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "Ask the register."},
            {
                "type": "tool-register",
                "toolCallId": "t1",
                "state": "output-available",
                "input": {"port": "A"},
                "output": {"boats": 2},
            },
            {
                "type": "dynamic-tool",
                "toolName": "tides",
                "toolCallId": "t2",
                "state": "output-error",
                "input": {},
                "errorText": "the tide table is missing",
            },
            {"type": "tool-lamp", "toolCallId": "t3", "state": "input-available", "input": {}},
            {
                "type": "tool-invocation",
                "toolInvocation": {
                    "state": "result",
                    "toolCallId": "t4",
                    "toolName": "clock",
                    "args": {},
                    "result": "noon",
                },
            },
            {"type": "source-url", "sourceId": "s", "url": "https://e.test/x", "title": "Register"},
            {"type": "text", "text": "Two of them."},
        ],
    },
]
AI_SDK_SPANS = [
    "message user: Which boats?",
    "reasoning assistant: Ask the register.",
    'tool_call assistant register: { "port": "A" }',
    'tool_result assistant register: { "boats": 2 }',
    "tool_call assistant tides: {}",
    "tool_result assistant tides error: the tide table is missing",
    "tool_call assistant lamp: {}",
    "tool_call assistant clock: {}",
    "tool_result assistant clock: noon",
    "message assistant: [source Register] Two of them.",
]

A2A_TASK = {
    "id": "t",
    "contextId": "c",
    "status": {
        "state": "TASK_STATE_FAILED",
        "message": {"messageId": "m2", "role": "ROLE_AGENT", "parts": [{"text": "No key."}]},
    },
    "history": [
        {
            "messageId": "m1",
            "role": "ROLE_USER",
            "parts": [
                {"text": "Draw the harbour"},
                {"data": {"zoom": 3}},
                {"kind": "file", "file": {"name": "sea.png", "mimeType": "image/png"}},
            ],
        }
    ],
    "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": LONG}]}],
}
A2A_SPANS = [
    'message user: Draw the harbour { "zoom": 3 } [file sea.png]',
    "message agent: No key.",
    f"message agent: {LONG}",
]

THREAD = [
    {
        "object": "thread.message",
        "role": "user",
        "content": [{"type": "text", "text": {"value": LONG, "annotations": []}}],
    },
    {"object": "thread.message", "role": "assistant", "content": []},
]
THREAD_SPANS = [f"message user: {LONG}", "message assistant: "]


BEDROCK_SNAKE = {
    "request": {
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [{"guardContent": {"text": {"text": LONG}}}]},
            {
                "role": "assistant",
                "content": [{"tool_use": {"tool_use_id": "u", "name": "hours", "input": {}}}],
            },
            {
                "role": "user",
                "content": [{"tool_result": {"tool_use_id": "u", "content": [{"text": "noon"}]}}],
            },
        ],
    },
    "response": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"citationsContent": {"content": [{"text": "At noon, says the sign."}]}}
                ],
            }
        },
        "usage": {"inputTokens": 5, "outputTokens": 2},
    },
}
BEDROCK_SNAKE_SPANS = [
    "message system: Be brief.",
    f"message user: {LONG}",
    "tool_call assistant hours: {}",
    "tool_result assistant hours: noon",
    "message assistant: At noon, says the sign.",
]

GEMINI = {
    "contents": [
        {"parts": [{"text": LONG}]},
        {"role": "model", "parts": {"text": "Which month?"}},
        {"role": "user", "parts": "The first one."},
        {"role": "model", "parts": [{"functionCall": {"name": "hours", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "r", "name": "hours", "response": {"a": 12}}}],
        },
    ],
    "response": {"candidates": [{"content": {"parts": [{"text": "At noon."}]}}]},
}
GEMINI_SPANS = [
    f"message user: {LONG}",
    "message assistant: Which month?",
    "message user: The first one.",
    "tool_call assistant hours: {}",
    'tool_result assistant hours: { "a": 12 }',
    "message assistant: At noon.",
]
GEMINI_TEXT = {"contents": LONG, "response": GEMINI["response"]}

AI_SDK_OLD = [
    {
        "role": "assistant",
        "content": "",
        "toolInvocations": [
            {"state": "result", "toolCallId": "t", "toolName": "hours", "args": {}, "result": LONG}
        ],
    },
    {
        "role": "assistant",
        "content": [{"type": "tool-approval-request", "approvalId": "a", "toolCallId": "x"}],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "t",
                "output": {"type": "content", "value": [{"type": "text", "text": "noon"}]},
            }
        ],
    },
    {"role": "user", "parts": '[{"type": "text", "text": "Which map?"}]'},
    {
        "role": "assistant",
        "parts": [
            {
                "type": "tool-map",
                "toolCallId": "m",
                "state": "output-denied",
                "input": {},
                "approval": {"approved": False, "reason": "no maps"},
            }
        ],
    },
]
AI_SDK_OLD_SPANS = [
    "tool_call assistant hours: {}",
    f"tool_result assistant hours: {LONG}",
    'log log tool-approval-request: { "type": "tool-approval-request", "approvalId": "a", '
    '"toolCallId": "x" }',
    "tool_result assistant hours: noon",
    "message user: Which map?",
    "tool_call assistant map: {}",
    "tool_result assistant map error: no maps",
]

A2A_DRAFT = {
    "task": {
        "id": "t",
        "contextId": "c",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "history": [{"messageId": {}, "role": "ROLE_USER", "content": [{"text": LONG}]}],
        "artifacts": [
            {
                "name": "Chart",
                "description": "The whole harbour as it was drawn in spring.",
                "parts": [{"url": "u", "mediaType": "image/png", "filename": "sea.png"}],
            }
        ],
    }
}
A2A_DRAFT_SPANS = [
    f"message user: {LONG}",
    "message agent: Chart The whole harbour as it was drawn in spring. [file sea.png]",
]

BEDROCK_LOG = {
    "operation": "Converse",
    "modelId": "boat-2",
    "input": {"inputBodyJson": BEDROCK_SNAKE["request"]},
    "output": {"outputBodyJson": BEDROCK_SNAKE["response"]},
}

BARE_ANSWER = {"messages": [{"role": "user", "content": "When?"}], "response": LONG}
BARE_ANSWER_SPANS = ["message user: When?", f"message assistant: {LONG}"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(BEDROCK, BEDROCK_SPANS, id="bedrock"),
        pytest.param(BEDROCK_SNAKE, BEDROCK_SNAKE_SPANS, id="bedrock-snake"),
        pytest.param(BEDROCK_LOG, BEDROCK_SNAKE_SPANS, id="bedrock-log"),
        pytest.param(GEMINI, GEMINI_SPANS, id="gemini"),
        pytest.param(GEMINI_TEXT, [GEMINI_SPANS[0], GEMINI_SPANS[-1]], id="gemini-text"),
        pytest.param(AI_SDK_OLD, AI_SDK_OLD_SPANS, id="ai-sdk-old"),
        pytest.param(A2A_DRAFT, A2A_DRAFT_SPANS, id="a2a-draft"),
        pytest.param({"intermediate_steps": THREAD}, THREAD_SPANS, id="intermediate-steps"),
        pytest.param(
            {"system_prompt": "Be brief.", "messages": THREAD},
            ["message system: Be brief.", *THREAD_SPANS],
            id="system-prompt",
        ),
        pytest.param(
            {"systemPrompt": LONG, "messages": [{"role": "system", "content": LONG}, *THREAD[1:]]},
            [f"message system: {LONG}", THREAD_SPANS[1]],
            id="system-prompt-again",
        ),
        pytest.param(BARE_ANSWER, BARE_ANSWER_SPANS, id="bare-answer"),
        pytest.param(
            {**BARE_ANSWER, "messages": [{"role": "assistant", "content": LONG}]},
            [BARE_ANSWER_SPANS[1]],
            id="bare-answer-again",
        ),
        pytest.param(GOOSE, GOOSE_SPANS, id="goose"),
        pytest.param(AI_SDK, AI_SDK_SPANS, id="ai-sdk"),
        pytest.param(A2A_TASK, A2A_SPANS, id="a2a"),
        pytest.param({"jsonrpc": "2.0", "result": A2A_TASK}, A2A_SPANS, id="a2a-json-rpc"),
        pytest.param(THREAD, THREAD_SPANS, id="openai-thread"),
    ],
)
def test_parts_become_spans(document: object, expected: list[str], tmp_path: Path) -> None:
    """Calls, results, thoughts and texts are spans of their kinds, each once, results tied."""
    path = write_json(tmp_path / "run.json", document)
    trace = read_one(READER, path)
    assert span_lines(trace) == expected
    assert not trace.problems
    coverage = text_coverage(path, [trace])
    assert not coverage.lost
    assert not coverage.doubled
    keys = {trace.span(index).key for index in range(len(trace))}
    for index in range(len(trace)):
        span = trace.span(index)
        if span.kind.value == "tool_result":
            assert span.parent in keys


def test_an_unknown_part_is_named_and_kept(tmp_path: Path) -> None:
    """A part of an unknown type is a log with a problem; the text beside it stays a message."""
    parts = [{"text": "Before."}, {"hologram": {"beams": 3}}, {"type": "smell", "of": "tar"}]
    path = write_json(tmp_path / "run.json", [{"role": "assistant", "content": parts}])
    trace = read_one(READER, path)
    assert span_lines(trace) == [
        "message assistant: Before.",
        'log log hologram: { "hologram": { "beams": 3 } }',
        'log log smell: { "type": "smell", "of": "tar" }',
    ]
    assert [problem.message for problem in trace.problems] == [
        "unknown part type `hologram`",
        "unknown part type `smell`",
    ]


A2A_STREAM: list[Any] = [
    {
        "kind": "task",
        "id": "t",
        "contextId": "c",
        "status": {"state": "submitted"},
        "history": [{"messageId": "u", "role": "user", "parts": [{"kind": "text", "text": LONG}]}],
    },
    {
        "kind": "status-update",
        "taskId": "t",
        "status": {
            "state": "working",
            "message": {"role": "agent", "parts": [{"kind": "text", "text": "I draw."}]},
        },
    },
    {
        "kind": "artifact-update",
        "taskId": "t",
        "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "The har"}]},
    },
    {
        "kind": "artifact-update",
        "taskId": "t",
        "append": True,
        "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "bour."}]},
    },
    {"message": {"taskId": "t", "role": "ROLE_AGENT", "parts": [{"text": "Done."}]}},
    7,
    {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}},
]


@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "json-rpc"])
def test_the_stream_of_a_task_is_one_trace(wrapped: bool, tmp_path: Path) -> None:
    """Updates follow the task; a text that was sent in pieces is one message."""
    events = [{"jsonrpc": "2.0", "result": event} for event in A2A_STREAM]
    path = write_json_lines(tmp_path / "t.jsonl", *(events if wrapped else A2A_STREAM))
    trace = read_one(READER, path)
    lines = span_lines(trace)
    assert [line for line in lines if not line.startswith("log")] == [
        f"message user: {LONG}",
        "message agent: I draw.",
        "message agent: The harbour.",
        "message agent: Done.",
    ]
    assert len(lines) == 5
    assert trace.meta.outcome is Outcome.SUCCEEDED


def test_the_tasks_of_a_stream_are_a_trace_each(tmp_path: Path) -> None:
    """Updates go to the task that they name."""
    update = {**A2A_STREAM[1], "taskId": "other"}
    path = write_json(tmp_path / "tasks.json", [*A2A_STREAM, update])
    first, second = read_file(READER, path).traces
    assert span_lines(first)[-1] == "log log: 7"
    assert span_lines(second) == ["message agent: I draw."]


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("completed", Outcome.SUCCEEDED),
        ("TASK_STATE_COMPLETED", Outcome.SUCCEEDED),
        ("rejected", Outcome.FAILED),
        ("working", Outcome.UNKNOWN),
    ],
)
def test_the_state_of_a_task_is_its_outcome(state: str, outcome: Outcome, tmp_path: Path) -> None:
    """A completed task succeeded; one that is at work has no outcome yet."""
    path = write_json(tmp_path / "task.json", {**A2A_TASK, "status": {"state": state}})
    assert read_one(READER, path).meta.outcome is outcome


def logged_call(history: list[tuple[str, str]], answer: str) -> dict[str, object]:
    """A request with its whole history, and the response."""
    messages = [{"role": role, "content": text} for role, text in history]
    message = {"role": "assistant", "content": answer, "refusal": None}
    usage = {"prompt_tokens": 10 * len(history), "completion_tokens": 2}
    return {
        "input": {"model": "boat-1", "messages": messages},
        "output": {"model": "boat-1", "choices": [{"message": message}], "usage": usage},
    }


def test_requests_that_repeat_a_history_are_one_trace(tmp_path: Path) -> None:
    """Each request shows what is new; requests of another history are another trace."""
    first = [("system", "You sail."), ("user", LONG)]
    second = [*first, ("assistant", "Hoist."), ("user", "Output: torn sail")]
    path = write_json_lines(
        tmp_path / "lm_calls.jsonl",
        logged_call(first, "Hoist."),
        logged_call([("user", "Another run altogether")], "Yes."),
        logged_call(second, "Mend it."),
    )
    run, other = read_file(READER, path).traces
    assert span_lines(run) == [
        "message system: You sail.",
        f"message user: {LONG}",
        "message assistant: Hoist.",
        "message user: Output: torn sail",
        "message assistant: Mend it.",
    ]
    assert [run.span(index).tokens for index in (2, 4)] == [Tokens(20, 2), Tokens(40, 2)]
    assert run.meta.model == "boat-1"
    assert span_lines(other) == ["message user: Another run altogether", "message assistant: Yes."]


def test_an_error_instead_of_a_response_is_shown(tmp_path: Path) -> None:
    """A request that failed says why, by itself and where it was made again."""
    asked = [{"role": "user", "content": LONG}]
    request = {"model": "boat-3", "messages": asked}
    failed = {"request": request, "response": {"error": {"message": "too many requests"}}}
    alone = read_one(READER, write_json(tmp_path / "one.json", failed))
    torn = {"request": request, "response": None, "error": "the line is dead"}
    assert span_lines(alone) == [f"message user: {LONG}", "log error error: too many requests"]
    assert alone.meta.model == "boat-3"
    again = {"request": {"messages": [*asked, *asked]}, "response": "At noon."}
    path = write_json_lines(tmp_path / "log.jsonl", torn, again)
    assert span_lines(read_one(READER, path)) == [
        f"message user: {LONG}",
        "log assistant model error: the line is dead",
        f"message user: {LONG}",
        "message assistant: At noon.",
    ]


def test_agents_of_autogen_with_one_key_are_one_trace(tmp_path: Path) -> None:
    """The log of AutoGen's core: agents of one run share a key; tools have lines of their own."""
    call = {"id": "k", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = [{"role": "user", "content": "Go"}]
    path = write_json_lines(
        tmp_path / "events.jsonl",
        {
            "type": "LLMCall",
            "messages": asked,
            "response": {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]},
            "prompt_tokens": 4,
            "completion_tokens": 1,
            "agent_id": "scout/run1",
        },
        {
            "type": "ToolCall",
            "tool_name": "look",
            "arguments": {},
            "result": "fog",
            "agent_id": "scout/run1",
        },
        {
            "type": "LLMCall",
            "messages": [{"role": "user", "content": "Is it fog?"}],
            "response": {"choices": [{"message": {"role": "assistant", "content": "Fog."}}]},
            "agent_id": "mate/run1",
        },
    )
    trace = read_one(READER, path)
    assert span_lines(trace) == [
        "message user: Go",
        "tool_call scout look: {}",
        "tool_result scout look: fog",
        "message user: Is it fog?",
        "message mate: Fog.",
    ]
    assert trace.span(1).tokens == Tokens(4, 1)
    assert trace.span(2).parent == trace.span(1).key


def test_keys_of_messages_that_were_one_span_find_the_first_of_their_parts(tmp_path: Path) -> None:
    """Labels of earlier versions, which showed such a message as one text, stay where they were."""
    trace = read_one(READER, write_json(tmp_path / "run.json", BEDROCK))
    assert [trace.index_of(key) for key in ("/0", "/1", "/2", "/3")] == [0, 1, 4, 6]
    assert trace.index_of("/4") is None
    lines = read_one(READER, write_json_lines(tmp_path / "run.jsonl", *GOOSE))
    assert [lines.index_of(f"line {number}") for number in (1, 2, 3, 4)] == [0, 1, 4, None]
