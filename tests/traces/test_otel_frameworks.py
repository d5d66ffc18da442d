"""What frameworks leave out of their spans, or tell in words of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import SpanStatus, Trace
from mast_tui.traces.readers.otel.reader import READER
from tests.traces.checks import read_one, write_json

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def span(number: int, attributes: Mapping[str, object], **more: Any) -> dict[str, object]:
    return {
        "name": "span",
        "context": {"trace_id": TRACE, "span_id": f"{number:016x}"},
        "parent_id": None,
        "start_time": f"2025-10-09T08:53:{number:02d}Z",
        "attributes": attributes,
        **more,
    }


def shown(trace: Trace) -> list[tuple[str, str | None, str]]:
    return [
        (trace.span(index).kind.value, trace.span(index).name, trace.text(index))
        for index in range(len(trace))
    ]


def test_langchain_tells_its_calls_in_the_raw_output_only(tmp_path: Path) -> None:
    made = [{"name": "weather", "args": {"city": "Bern"}, "id": "call_1", "type": "tool_call"}]
    path = ["langchain", "schema", "messages"]

    def constructed(name: str, **fields: object) -> dict[str, object]:
        return {"lc": 1, "type": "constructor", "id": [*path, name], "kwargs": fields}

    answer = constructed("AIMessage", content="", tool_calls=made, type="ai")
    history = [
        constructed("HumanMessage", content="Is it raining?", type="human"),
        answer,
        constructed("ToolMessage", content="it's dry", tool_call_id="call_1", type="tool"),
    ]
    first = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Is it raining?",
        "llm.output_messages.0.message.role": "assistant",
        "output.value": json.dumps({"generations": [[{"text": "", "message": answer}]]}),
    }
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "input.value": "{'city': 'Bern'}",
        "output.value": json.dumps(
            {"output": "content=\"it's dry\" name='weather' tool_call_id='call_1'"}
        ),
    }
    second = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Is it raining?",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": "it's dry",
        "input.value": json.dumps({"messages": [history]}),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "No.",
    }
    spans = [span(n, attributes) for n, attributes in enumerate((first, tool, second), 1)]
    trace = read_one(READER, write_json(tmp_path / "trace.json", spans))
    assert shown(trace) == [
        ("message", None, "Is it raining?"),
        ("tool_call", "weather", '{\n  "city": "Bern"\n}'),
        ("tool_result", "weather", "it's dry"),
        ("message", None, "No."),
    ]
    assert [trace.span(index).key for index in (1, 2)] == ["call_1:call", "call_1:result"]


def test_smolagents_tells_its_calls_as_text(tmp_path: Path) -> None:
    calls = [{"id": "call_7", "function": {"name": "weather", "arguments": {"city": "Bern"}}}]
    answer = {"role": "assistant", "content": None, "tool_calls": calls}
    question = {"role": "MessageRole.USER", "content": "Is it raining?"}
    history = [
        question,
        {"role": "assistant", "content": "Called Tool: 'weather' with arguments: {'city': 'Bern'}"},
        {"role": "tool-call", "content": f"Calling tools:\n{calls!r}"},
        {"role": "tool-response", "content": "Observation:\ndry"},
    ]

    def model(asked: Sequence[object], answered: object) -> dict[str, object]:
        return {
            "openinference.span.kind": "LLM",
            "input.value": json.dumps({"args": [asked], "kwargs": {}}),
            "output.value": json.dumps(answered),
        }

    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "input.value": json.dumps(
            {"args": [], "sanitize_inputs_outputs": True, "kwargs": {"city": "Bern"}}
        ),
        "output.value": "dry",
    }
    spans = [
        span(1, model([question], answer)),
        span(2, tool),
        span(3, model(history, {"role": "assistant", "content": "No."})),
    ]
    trace = read_one(READER, write_json(tmp_path / "trace.json", spans))
    assert shown(trace) == [
        ("message", None, "Is it raining?"),
        ("tool_call", "weather", '{\n  "city": "Bern"\n}'),
        ("tool_result", "weather", "dry"),
        ("message", None, "No."),
    ]
    assert trace.span(0).role.value == "user"
    assert trace.span(2).parent == "call_7:call"


def test_any_agent_has_names_of_its_own(tmp_path: Path) -> None:
    call = {"tool.name": "weather", "tool.args": '{"city": "Bern"}'}
    spans = [
        span(
            1,
            {
                "gen_ai.operation.name": "call_llm",
                "gen_ai.input.messages": json.dumps([{"role": "user", "content": "Rain?"}]),
                "gen_ai.output": json.dumps([call]),
            },
        ),
        span(
            2,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "weather",
                "gen_ai.tool.args": '{"city": "Bern"}',
                "gen_ai.output": "dry",
            },
        ),
        span(3, {"gen_ai.operation.name": "call_llm", "gen_ai.output": "No."}),
    ]
    trace = read_one(READER, write_json(tmp_path / "trace.json", spans))
    assert shown(trace) == [
        ("message", None, "Rain?"),
        ("tool_call", "weather", '{"city": "Bern"}'),
        ("tool_result", "weather", "dry"),
        ("message", None, "No."),
    ]


def test_ids_that_are_no_hex_are_kept_and_base64_is_decoded(tmp_path: Path) -> None:
    attributes: dict[str, object] = {"gen_ai.operation.name": "chat", "gen_ai.output": "Hi."}
    named = span(1, attributes, context={"trace_id": "trace-101", "span_id": "span-1"})
    trace = read_one(READER, write_json(tmp_path / "named.json", [named]))
    assert trace.identity.trace_id == "trace-101"
    assert trace.span(0).key == "span-1/answered/0"
    context = {"trace_id": "S/kvNXezTaajzpKdDg5HNg==", "span_id": "APBnqgupArc="}
    packed = span(1, attributes, context=context)
    trace = read_one(READER, write_json(tmp_path / "packed.json", [packed]))
    assert trace.identity.trace_id == TRACE
    assert trace.span(0).key == "00f067aa0ba902b7/answered/0"


def test_objects_behind_each_other_are_no_damage(tmp_path: Path) -> None:
    spans = [span(n, {"gen_ai.operation.name": "chat", "gen_ai.output": f"{n}"}) for n in (1, 2)]
    path = tmp_path / "printed.json"
    path.write_text("\n".join(json.dumps(one, indent=2) for one in spans), encoding="utf-8")
    source = Source(path)
    assert source.json is not None
    assert source.damage
    report = READER.read(source)
    assert not source.damage
    assert not report.problems
    assert [len(trace) for trace in report.traces] == [2]


QUESTION = "Which tram goes to the harbour on a Sunday morning?"
PROMPT = "Answer in one sentence and name your source."
FOUND = "line 7, every 20 minutes from 8 o'clock on"
ANSWER = "Line 7 goes to the harbour, by the timetable."
STRANDS_USER: list[object] = [{"text": QUESTION}]
STRANDS_CALL = {"toolUseId": "u1", "name": "timetable", "input": {"stop": "harbour"}}
STRANDS_RESULT = {"toolUseId": "u1", "status": "error", "content": [{"text": FOUND}]}


def _event(name: str, **attributes: object) -> dict[str, object]:
    values = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in attributes.items()
    }
    return {"name": name, "attributes": values}


def _strands_events() -> list[list[dict[str, object]]]:
    """The events of an agent's, a model's, a tool's and a second model's span."""
    user = _event("gen_ai.user.message", content=STRANDS_USER)
    call = [{"text": "I look it up."}, {"toolUse": STRANDS_CALL}]
    history = [
        _event("gen_ai.system.message", content=[{"text": PROMPT}]),
        user,
        _event("gen_ai.assistant.message", content=call),
        _event("gen_ai.tool.message", content=[{"toolResult": STRANDS_RESULT}]),
    ]
    return [
        [user, _event("gen_ai.choice", message=ANSWER)],
        [*history[:2], _event("gen_ai.choice", message=call, finish_reason="tool_use")],
        [
            _event("gen_ai.tool.message", role="tool", content=STRANDS_CALL["input"], id="u1"),
            _event("gen_ai.choice", message=STRANDS_RESULT["content"], id="u1"),
        ],
        [*history, _event("gen_ai.choice", message=[{"text": ANSWER}])],
    ]


def _strands_details() -> list[list[dict[str, object]]]:
    """The same in the form of one event with messages made of parts."""
    name = "gen_ai.client.inference.operation.details"

    def details(kind: str, *messages: object) -> dict[str, object]:
        return {"name": name, "attributes": {f"gen_ai.{kind}": json.dumps(list(messages))}}

    user = {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    call = {
        "type": "tool_call",
        "id": "u1",
        "name": "timetable",
        "arguments": STRANDS_CALL["input"],
    }
    made = {
        "role": "assistant",
        "parts": [{"type": "text", "content": "I look it up."}, call],
    }
    response = {"type": "tool_call_response", "id": "u1", "response": STRANDS_RESULT["content"]}
    answer = {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}
    system = details("system_instructions", {"type": "text", "content": PROMPT})
    result = {"role": "user", "parts": [response]}
    return [
        [details("input.messages", user), details("output.messages", answer)],
        [system, details("input.messages", user), details("output.messages", made)],
        [
            details("input.messages", {"role": "tool", "parts": [call]}),
            details("output.messages", {"role": "tool", "parts": [response]}),
        ],
        [system, details("input.messages", user, made, result), details("output.messages", answer)],
    ]


@pytest.mark.parametrize("events", [_strands_events, _strands_details])
@pytest.mark.parametrize("told_in_history_only", [False, True])
def test_strands_tells_messages_in_events(
    events: Callable[[], list[list[dict[str, object]]]],
    told_in_history_only: bool,
    tmp_path: Path,
) -> None:
    agent, first, tool, second = events()
    named = {"gen_ai.tool.name": "timetable", "gen_ai.tool.call.id": "u1"}
    cycle = {"gen_ai.operation.name": "execute_event_loop_cycle", "event_loop.cycle_id": "1"}
    result = _event(
        "gen_ai.choice", message="x", **{"tool.result": [{"toolResult": STRANDS_RESULT}]}
    )
    spans = [
        span(
            1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"}, events=agent
        ),
        span(2, cycle, events=[agent[0], result], parent_id=f"{1:016x}"),
        span(3, {"gen_ai.operation.name": "chat"}, events=first, parent_id=f"{2:016x}"),
        span(
            4,
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.status": "error", **named},
            events=tool,
            parent_id=f"{2:016x}",
        ),
        span(5, {"gen_ai.operation.name": "chat"}, events=second, parent_id=f"{1:016x}"),
    ]
    if told_in_history_only:
        del spans[3]
    trace = read_one(READER, write_json(tmp_path / "spans.json", spans))
    assert shown(trace) == [
        ("log", "guide", "agent guide begins"),
        ("message", None, PROMPT),
        ("message", None, QUESTION),
        ("message", None, "I look it up."),
        ("tool_call", "timetable", '{\n  "stop": "harbour"\n}'),
        ("tool_result", "timetable", FOUND),
        ("message", None, ANSWER),
    ]
    spans_shown = [trace.span(index) for index in range(len(trace))]
    assert spans_shown[5].parent == spans_shown[4].key
    if events is _strands_events or not told_in_history_only:
        assert spans_shown[5].status is SpanStatus.ERROR


CALL_TEXT = json.dumps(
    [{"id": "c1", "type": "function", "function": {"name": "greet", "arguments": '{"who": "Bo"}'}}]
)
GREETING = {"role": "user", "parts": [{"type": "text", "content": "Greet Bo."}]}
GOOGLE_USER = {"role": "user", "parts": [{"text": "Greet Bo."}]}
GOOGLE_CALL = {
    "role": "model",
    "parts": [{"function_call": {"name": "greet", "args": {"who": "Bo"}}}],
}


def _prompts(*messages: tuple[str, str]) -> dict[str, object]:
    return {
        f"gen_ai.prompt.{number}.{field}": value
        for number, message in enumerate(messages)
        for field, value in zip(("role", "content"), message, strict=True)
    }


def _adk(config: object, contents: Sequence[object], content: object) -> dict[str, object]:
    request = {"model": "g", "config": config, "contents": contents}
    return {
        "gcp.vertex.agent.llm_request": json.dumps(request),
        "gcp.vertex.agent.llm_response": json.dumps({"content": content}),
    }


FRAMEWORKS: dict[str, list[dict[str, object]]] = {
    "LlamaIndex": [
        span(
            1,
            {
                "openinference.span.kind": "LLM",
                "input.value": json.dumps({"args": ["Greet Bo."]}),
                "output.value": "Done.",
            },
        )
    ],
    "Koog": [
        span(
            1,
            {
                "gen_ai.operation.name": "chat",
                **_prompts(("user", "Greet Bo.")),
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": CALL_TEXT,
            },
        ),
        span(
            2,
            {"gen_ai.tool.name": "greet", "gen_ai.tool.call.id": "c1", "output.value": "Hello Bo!"},
        ),
        span(
            3,
            {
                "gen_ai.operation.name": "chat",
                **_prompts(("user", "Greet Bo."), ("tool", CALL_TEXT), ("tool", "Hello Bo!")),
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "Done.",
            },
        ),
    ],
    "Agent Framework": [
        span(
            1,
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be kind."}]),
            },
        ),
        span(
            2,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": json.dumps([GREETING]),
                "gen_ai.output.messages": json.dumps(
                    [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
                ),
            },
            parent_id=f"{1:016x}",
        ),
    ],
    "Google ADK": [
        span(1, _adk({"system_instruction": "Be kind."}, [GOOGLE_USER], GOOGLE_CALL)),
        span(
            2,
            {
                "openinference.span.kind": "TOOL",
                "tool.name": "greet",
                "gen_ai.tool.call.id": "adk-1",
                "input.value": '{"who": "Bo"}',
                "output.value": json.dumps(
                    {"id": "adk-1", "name": "greet", "response": "Hello Bo!"}
                ),
            },
        ),
        span(
            3,
            _adk(
                {"system_instruction": {"parts": [{"text": "Be kind."}]}},
                [GOOGLE_USER, GOOGLE_CALL],
                {"role": "model", "parts": [{"text": "Done."}]},
            ),
        ),
    ],
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_framework_tells_calls_results_and_prompts_once(
    framework: str, tmp_path: Path
) -> None:
    trace = read_one(READER, write_json(tmp_path / "spans.json", FRAMEWORKS[framework]))
    expected = [
        ("message", None, "Be kind."),
        ("message", None, "Greet Bo."),
        ("tool_call", "greet", '{"who":"Bo"}'),
        ("tool_result", "greet", "Hello Bo!"),
        ("message", None, "Done."),
    ]
    if framework in ("LlamaIndex", "Koog"):
        del expected[0]
    if framework in ("LlamaIndex", "Agent Framework"):
        expected = [row for row in expected if row[0] == "message"]
    told = [row for row in shown(trace) if row[0] != "log"]
    assert [
        (kind, name, "".join(text.split()) if kind == "tool_call" else text)
        for kind, name, text in told
    ] == expected
