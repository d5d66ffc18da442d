"""Messages made of parts, from their published layouts: Google's, and OpenTelemetry's."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.model import SpanStatus, Tokens
from mast_tui.traces.readers.chat.reader import READER
from tests.traces.checks import read_one, write_json
from tests.traces.test_messages_openai_anthropic import parents, rows, statuses, tokens


def adk_event(
    author: str, *parts: object, camel: bool = False, **fields: object
) -> dict[str, object]:
    """Return an event of Google's ADK with these parts."""
    role = "user" if author == "user" else "model"
    return {
        "id": "e",
        "invocationId" if camel else "invocation_id": "i1",
        "author": author,
        "content": {"role": role, "parts": list(parts)},
        **fields,
    }


@pytest.mark.parametrize("camel", [False, True])
@pytest.mark.parametrize("session", [False, True])
def test_google_adk_events(tmp_path: Path, camel: bool, session: bool) -> None:
    """The published layout of an event, in both spellings, by themselves and in a session."""
    call, response = (
        ("functionCall", "functionResponse") if camel else ("function_call", "function_response")
    )
    usage = (
        {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}
        if camel
        else {"prompt_token_count": 9, "candidates_token_count": 2, "thoughts_token_count": 3}
    )
    events = [
        adk_event("user", {"text": "weather?"}, camel=camel, timestamp=1_767_225_600.5),
        adk_event("looker", {"text": "I l"}, camel=camel, partial=True),
        adk_event(
            "looker",
            {"text": "hm", "thought": True},
            {"text": "I look"},
            {call: {"id": "g1", "name": "rain", "args": {"q": 1}}},
            {call: {"id": "g2", "name": "sun", "args": {}}},
            camel=camel,
            timestamp=1_767_225_601.0,
            **{"usageMetadata" if camel else "usage_metadata": usage},
        ),
        adk_event(
            "looker",
            {response: {"id": "g1", "name": "rain", "response": {"result": "wet"}}},
            {response: {"id": "g2", "name": "sun", "response": {"error": "dark"}}},
            camel=camel,
            timestamp=1_767_225_602.0,
        ),
        {"author": "looker", "invocation_id": "i1", "actions": {"state_delta": {"k": 1}}},
        {
            "author": "looker",
            "invocation_id": "i1",
            "timestamp": 1_767_225_603.0,
            "errorCode" if camel else "error_code": "SAFETY",
            "errorMessage" if camel else "error_message": "blocked",
        },
        adk_event("looker", {"inline_data": {"mime_type": "image/png", "data": "iVBO"}}),
    ]
    record = {"id": "s1", "appName": "weather", "userId": "u", "events": events}
    trace = read_one(READER, write_json(tmp_path / "x.json", record if session else events))
    at = "/events" if session else ""
    found = rows(trace)
    assert found[:7] == [
        (f"{at}/0", "message", "user", None, "weather?"),
        (f"{at}/2/content/parts/0", "reasoning", "looker", None, "hm"),
        (f"{at}/2/content/parts/1", "message", "looker", None, "I look"),
        ("g1:call", "tool_call", "looker", "rain", '{\n  "q": 1\n}'),
        ("g2:call", "tool_call", "looker", "sun", "{}"),
        ("g1:result", "tool_result", "looker", "rain", "wet"),
        ("g2:result", "tool_result", "looker", "sun", "dark"),
    ]
    assert (found[7][1], '"k": 1' in found[7][-1]) == ("log", True)
    assert found[8][1:] == ("log", "looker", None, "SAFETY: blocked")
    assert found[9][1:] == ("message", "looker", None, "[file image/png]")
    assert statuses(trace) == {"g2:result": SpanStatus.ERROR, found[8][0]: SpanStatus.ERROR}
    assert tokens(trace) == {"g2:call": Tokens(9, 5)}
    assert (trace.span(3).start, trace.span(3).end) == (1_767_225_601, 1_767_225_602)


def test_gemini_request_and_response(tmp_path: Path) -> None:
    """The published layout of ``generateContent``."""
    request = {
        "systemInstruction": {"parts": [{"text": "rules"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "one"}, {"text": "two"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "rain", "args": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "rain", "response": {"x": 1}}}],
            },
        ],
    }
    response = {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
                        {"text": "It rains."},
                    ],
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2},
        "modelVersion": "opal-2",
    }
    trace = read_one(
        READER, write_json(tmp_path / "x.json", {"request": request, "response": response})
    )
    last = "/response/candidates/0/content/parts"
    assert rows(trace) == [
        ("/request/systemInstruction", "message", "system", None, "rules"),
        ("/request/contents/0", "message", "user", None, "one\ntwo"),
        ("/request/contents/1/parts/0", "tool_call", "assistant", "rain", "{}"),
        ("/request/contents/2/parts/0", "tool_result", "assistant", "rain", '{\n  "x": 1\n}'),
        (f"{last}/0", "tool_call", "assistant", "code_execution", "print(1)"),
        (f"{last}/1", "tool_result", "assistant", "code_execution", "1\n"),
        (f"{last}/2", "message", "assistant", None, "It rains."),
    ]
    assert tokens(trace) == {f"{last}/2": Tokens(9, 2)}
    assert trace.meta.model == "opal-2"
    assert set(parents(trace).values()) == {"/request/contents/1/parts/0", f"{last}/0"}


def test_parts_as_opentelemetry_has_them(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": "weather?"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "tool_call", "id": "o1", "name": "rain", "arguments": {"q": 1}},
            ],
            "finish_reason": "tool_call",
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "o1", "response": "wet"}]},
    ]
    trace = read_one(READER, write_json(tmp_path / "x.json", messages))
    assert rows(trace) == [
        ("/0", "message", "user", None, "weather?"),
        ("/1/parts/0", "reasoning", "assistant", None, "hm"),
        ("o1:call", "tool_call", "assistant", "rain", '{\n  "q": 1\n}'),
        ("o1:result", "tool_result", "assistant", "rain", "wet"),
    ]


def test_the_log_of_requests_in_a_google_adk_session_tells_the_prompts(tmp_path: Path) -> None:
    def request(event: str, prompt: object) -> dict[str, object]:
        return {"event_id": event, "model_request": {"config": {"system_instruction": prompt}}}

    session = {
        "id": "s",
        "events": [
            adk_event("user", {"text": "hello"}, id="e1"),
            adk_event("looker", {"text": "hi"}, id="e2"),
            adk_event("writer", {"text": "done"}, id="e3"),
            adk_event("looker", {"text": "bye"}, id="e4"),
        ],
        "event_logs": [
            request("e2", "You look."),
            request("e3", {"parts": [{"text": "You write."}]}),
            request("e4", "You look."),
            {"event_id": "e5", "model_request": None},
        ],
    }
    trace = read_one(READER, write_json(tmp_path / "x.session.json", session))
    assert [(trace.span(index).role.value, trace.text(index)) for index in range(len(trace))] == [
        ("system", "You look."),
        ("user", "hello"),
        ("agent", "hi"),
        ("system", "You write."),
        ("agent", "done"),
        ("agent", "bye"),
    ]
    assert trace.span(1).key == "/events/0"
