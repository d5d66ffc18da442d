"""One conversation in every convention of attributes, as published.

An agent asks two tools at once; one of them fails; then it answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACE_NUMBER = int(TRACE, 16)
BEGIN = 1_760_000_000
AGENT = "Travel Agent"
MODEL = "gpt-test"
SYSTEM = "You plan trips."
QUESTION = "Where is it warmer, in Bern or in Basel?"
THOUGHT = "Let me look."
BERN, BASEL = '{"city":"Bern"}', '{"city":"Basel"}'
WEATHER, FAILURE = "sunny, 21 degrees", "TimeoutError: no answer"
ANSWER = "Bern has 21 degrees; of Basel I could not learn anything."
TOKENS = ((20, 9), (57, 12))

EXPECTED = [
    ("log", "agent", AGENT, f"agent {AGENT} begins", None),
    ("message", "system", None, SYSTEM, None),
    ("message", "user", None, QUESTION, None),
    ("message", "agent", None, THOUGHT, None),
    ("tool_call", "agent", "weather", BERN, None),
    ("tool_call", "agent", "weather", BASEL, TOKENS[0]),
    ("tool_result", "tool", "weather", WEATHER, None),
    ("tool_result", "tool", "weather", FAILURE, None),
    ("message", "agent", None, ANSWER, TOKENS[1]),
]
"""Kind, role, name, text and tokens of each span of the conversation."""

Values = dict[str, object]
Events = list[tuple[str, Values]]


@dataclass
class Call:
    """A span, before it is put in a layout; ``part`` says which of the run's it is."""

    part: str
    id: str
    parent: str | None
    name: str
    start: float
    end: float
    attributes: Values = field(default_factory=dict)
    events: Events = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.part == "basel"


Convention = Callable[[str], tuple[Values, Events]]


def spans_of(convention: Convention) -> list[Call]:
    """The run's spans in the order in which they ended, as exporters write them."""
    spans = [
        Call("first", "00f067aa0ba902b1", "00f067aa0ba902b0", "chat", BEGIN + 1, BEGIN + 2),
        Call("bern", "00f067aa0ba902b2", "00f067aa0ba902b0", "weather", BEGIN + 3, BEGIN + 4),
        Call("basel", "00f067aa0ba902b3", "00f067aa0ba902b0", "weather", BEGIN + 3.5, BEGIN + 5),
        Call("second", "00f067aa0ba902b4", "00f067aa0ba902b0", "chat", BEGIN + 6, BEGIN + 7),
        Call("agent", "00f067aa0ba902b0", None, AGENT, BEGIN, BEGIN + 8),
    ]
    for span in spans:
        span.attributes, span.events = convention(span.part)
    return spans


def _calls() -> list[dict[str, Any]]:
    return [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": BERN}},
        {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": BASEL}},
    ]


def asked(part: str) -> list[Values]:
    """The history that the call repeats, as chat messages."""
    first: list[Values] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
    ]
    if part == "first":
        return first
    return [
        *first,
        *answered("first"),
        {"role": "tool", "tool_call_id": "call_1", "content": WEATHER},
        {"role": "tool", "tool_call_id": "call_2", "content": FAILURE},
    ]


def answered(part: str) -> list[Values]:
    if part == "first":
        return [{"role": "assistant", "content": THOUGHT, "tool_calls": _calls()}]
    return [{"role": "assistant", "content": ANSWER}]


def _tokens(part: str) -> tuple[int, int]:
    return TOKENS[part == "second"]


def _flat(prefix: str, value: object) -> Values:
    if isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return {prefix: value}
    return {
        path: v for name, inner in items for path, v in _flat(f"{prefix}.{name}", inner).items()
    }


def _openinference_messages(messages: list[Values]) -> list[Values]:
    actual: list[Values] = []
    for message in messages:
        attributes = dict(message)
        if "tool_calls" in attributes:
            attributes["tool_calls"] = [
                {"tool_call": {"id": call["id"], "function": call["function"]}} for call in _calls()
            ]
        actual.append({"message": attributes})
    return actual


def openinference(part: str) -> tuple[Values, Events]:
    if part == "agent":
        return {
            "openinference.span.kind": "AGENT",
            "agent.name": AGENT,
            "input.value": QUESTION,
        }, []
    if part in ("bern", "basel"):
        attributes: Values = {"openinference.span.kind": "TOOL", "tool.name": "weather"}
        attributes["input.value"] = BERN if part == "bern" else BASEL
        attributes["input.mime_type"] = "application/json"
        if part == "bern":
            attributes["output.value"] = WEATHER
        return attributes, []
    taken, given = _tokens(part)
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": MODEL,
        "llm.token_count.prompt": taken,
        "llm.token_count.completion": given,
        "output.value": "{}",
        **_flat("llm.input_messages", _openinference_messages(asked(part))),
        **_flat("llm.output_messages", _openinference_messages(answered(part))),
    }, []


def openinference_nested(part: str) -> tuple[Values, Events]:
    flat, events = openinference(part)
    if part in ("first", "second"):
        flat = {name: value for name, value in flat.items() if "_messages" not in name}
        flat["llm.input_messages"] = _openinference_messages(asked(part))
        flat["llm.output_messages"] = [
            _flat("message", message["message"])
            for message in _openinference_messages(answered(part))
        ]
    return flat, events


def _genai(part: str) -> Values:
    if part == "agent":
        return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENT}
    if part in ("bern", "basel"):
        attributes: Values = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "weather",
        }
        attributes["gen_ai.tool.call.id"] = "call_1" if part == "bern" else "call_2"
        attributes["gen_ai.tool.call.arguments"] = BERN if part == "bern" else BASEL
        if part == "bern":
            attributes["gen_ai.tool.call.result"] = WEATHER
        return attributes
    taken, given = _tokens(part)
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": MODEL,
        "gen_ai.usage.input_tokens": taken,
        "gen_ai.usage.output_tokens": given,
    }


def numbered(part: str) -> tuple[Values, Events]:
    if part not in ("first", "second"):
        attributes = _genai(part)
        if part != "agent":
            entity = {"inputs": json.loads(BERN if part == "bern" else BASEL)}
            attributes = {
                "traceloop.span.kind": "tool",
                "traceloop.entity.name": "weather",
                "traceloop.entity.input": json.dumps(entity),
            }
            if part == "bern":
                attributes["traceloop.entity.output"] = json.dumps({"outputs": WEATHER})
        else:
            attributes = {"traceloop.span.kind": "agent", "traceloop.entity.name": AGENT}
        return attributes, []
    taken, given = _tokens(part)

    def flat(messages: list[Values]) -> list[Values]:
        return [
            {
                **message,
                **(
                    {"tool_calls": [{"id": call["id"], **call["function"]} for call in _calls()]}
                    if "tool_calls" in message
                    else {}
                ),
            }
            for message in messages
        ]

    return {
        "llm.request.type": "chat",
        "gen_ai.request.model": MODEL,
        "gen_ai.usage.prompt_tokens": taken,
        "gen_ai.usage.completion_tokens": given,
        **_flat("gen_ai.prompt", flat(asked(part))),
        **_flat(
            "gen_ai.completion", [{**one, "finish_reason": "stop"} for one in flat(answered(part))]
        ),
    }, []


def events(part: str) -> tuple[Values, Events]:
    attributes = _genai(part)
    if part not in ("first", "second"):
        return attributes, []
    happened: Events = []
    for message in asked(part):
        body = {name: value for name, value in message.items() if name != "role"}
        if "tool_call_id" in body:
            body["id"] = body.pop("tool_call_id")
        if "tool_calls" in body:
            body["tool_calls"] = json.dumps(body["tool_calls"])
        happened.append((f"gen_ai.{message['role']}.message", body))
    (answer,) = answered(part)
    happened.append(
        ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps(answer)})
    )
    return attributes, happened


def _parts(messages: list[Values]) -> list[Values]:
    actual = []
    for message in messages:
        parts: list[Values] = []
        if message["role"] == "tool":
            parts.append(
                {
                    "type": "tool_call_response",
                    "id": message["tool_call_id"],
                    "response": message["content"],
                }
            )
        else:
            parts.append({"type": "text", "content": message["content"]})
        for call in _calls() if "tool_calls" in message else ():
            function = call["function"]
            parts.append({"type": "tool_call", "id": call["id"], **function})
        actual.append({"role": message["role"], "parts": parts})
    return actual


def parts_as_values(part: str) -> tuple[Values, Events]:
    attributes = _genai(part)
    if part in ("first", "second"):
        attributes["gen_ai.system_instructions"] = [{"type": "text", "content": SYSTEM}]
        attributes["gen_ai.input.messages"] = _parts(asked(part)[1:])
        attributes["gen_ai.output.messages"] = [
            {**one, "finish_reason": "stop"} for one in _parts(answered(part))
        ]
    return attributes, []


def parts_as_text(part: str) -> tuple[Values, Events]:
    attributes, happened = parts_as_values(part)
    return {
        name: json.dumps(value) if isinstance(value, list) else value
        for name, value in attributes.items()
    }, happened


CONVENTIONS: dict[str, Convention] = {
    "openinference": openinference,
    "openinference-nested": openinference_nested,
    "genai-numbered": numbered,
    "genai-events": events,
    "genai-parts": parts_as_values,
    "genai-parts-text": parts_as_text,
}
