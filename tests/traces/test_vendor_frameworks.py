"""How frameworks fill the fields of a tracing vendor: each call, result and prompt once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.traces.model import SpanKind, Trace
from mast_tui.traces.readers.vendors.reader import READER
from tests.traces.checks import read_one, write_json
from tests.traces.text_coverage import text_coverage

Json = dict[str, object]

SYSTEM = "Look every lighthouse up before you name its height, and keep to metres."
QUESTION = "How high is the lighthouse of the northern harbour, in whole metres?"
ANSWER = "The lighthouse of the northern harbour is 31 metres high, lantern included."
RESULT = "northern harbour: built 1887, 31 metres with the lantern, 29 without"
ARGUMENTS = {"place": "northern harbour"}
FUNCTION = {"name": "height", "arguments": json.dumps(ARGUMENTS)}
CALL = {"function": FUNCTION, "type": "function"}
CALL_WITH_ID = {**CALL, "id": "call_7"}
USER = {"role": "user", "content": QUESTION}
PROMPT = {"role": "system", "content": SYSTEM}
SAID = {"role": "assistant", "content": ANSWER}
MADE = {"role": "assistant", "content": "", "tool_calls": [CALL_WITH_ID]}
DEFINITION = {
    "type": "function",
    "function": {"name": "height", "description": "Look a height up.", "parameters": {}},
}


def observation(
    number: int,
    kind: str,
    name: str,
    given: object = None,
    answer: object = None,
    *,
    parent: int | None = None,
    attributes: Mapping[str, object] | None = None,
) -> Json:
    """Make an observation of Langfuse; attributes are those of the span that it was made of."""
    return {
        "id": f"o{number}",
        "traceId": "t1",
        "parentObservationId": None if parent is None else f"o{parent}",
        "type": kind,
        "name": name,
        "startTime": f"2026-06-01T08:00:{number:02}.000Z",
        "endTime": f"2026-06-01T08:00:{number + 1:02}.000Z",
        "input": given,
        "output": answer,
        "metadata": {} if attributes is None else {"attributes": dict(attributes)},
        "level": "DEFAULT",
        "usageDetails": {},
    }


def read(tmp_path: Path, *observations: Json) -> tuple[Path, Trace]:
    trace = {"id": "t1", "projectId": "p", "timestamp": "2026-06-01T08:00:00.000Z", "name": "run"}
    path = write_json(tmp_path / "trace.json", {"trace": trace, "observations": list(observations)})
    return path, read_one(READER, path)


def lines(trace: Trace) -> list[str]:
    """Return each span as its kind, role and name with its text; white space does not count."""
    return [
        f"{span.kind} {span.role} {span.name or '-'}: {''.join(trace.text(span.index).split())}"
        for span in map(trace.span, range(len(trace)))
    ]


def line(head: str, text: str) -> str:
    return f"{head}: {''.join(text.split())}"


EXPECTED = [
    line("message system -", SYSTEM),
    line("message user -", QUESTION),
    line("tool_call agent height", json.dumps(ARGUMENTS)),
    line("tool_result tool height", RESULT),
    line("message agent -", ANSWER),
]

TOOL_ROW = observation(2, "TOOL", "height", json.dumps(ARGUMENTS), RESULT, parent=0)
HISTORY = [PROMPT, USER, MADE, {"role": "tool", "tool_call_id": "call_7", "content": RESULT}]


def _google(first: object, *later: object) -> Json:
    config = {"system_instruction": first, "tools": [{"function_declarations": []}]}
    asked = {"role": "user", "parts": [{"text": QUESTION}]}
    return {"model": "m", "config": config, "contents": [asked, *later]}


GOOGLE_CALL = {"role": "model", "parts": [{"function_call": {"name": "height", "args": ARGUMENTS}}]}
GOOGLE_RESULT = {
    "role": "user",
    "parts": [{"function_response": {"name": "height", "response": {"result": RESULT}}}],
}
GOOGLE_ANSWER = {"candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}}]}

FRAMEWORKS: dict[str, list[Json]] = {
    "Google ADK": [
        observation(0, "AGENT", "agent_run [keeper]"),
        observation(
            1, "GENERATION", "call_llm", _google(SYSTEM), {"content": GOOGLE_CALL}, parent=0
        ),
        observation(
            2,
            "TOOL",
            "execute_tool height",
            ARGUMENTS,
            {},
            parent=1,
            attributes={
                "openinference.span.kind": "TOOL",
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "height",
                "gen_ai.tool.call.id": "adk-1",
                "tool.name": "height",
                "output.value": json.dumps({"id": "adk-1", "name": "height", "response": RESULT}),
            },
        ),
        observation(
            3,
            "GENERATION",
            "call_llm",
            json.dumps(_google(SYSTEM, GOOGLE_CALL, GOOGLE_RESULT)),
            {"content": {"role": "model", "parts": [{"text": ANSWER}]}},
            parent=0,
        ),
    ],
    "google-genai": [
        observation(1, "GENERATION", "generate", _google({"parts": [{"text": SYSTEM}]}), MADE),
        TOOL_ROW,
        observation(3, "GENERATION", "generate", HISTORY, json.dumps(GOOGLE_ANSWER)),
    ],
    "Koog": [
        observation(0, "AGENT", "run.1"),
        observation(
            1,
            "GENERATION",
            "llm.chat",
            [PROMPT, USER],
            [{"role": "assistant", "content": json.dumps([CALL_WITH_ID])}],
            parent=0,
        ),
        observation(2, "SPAN", "tool.height", ARGUMENTS, RESULT, parent=0),
        observation(
            3,
            "GENERATION",
            "llm.chat",
            [
                PROMPT,
                USER,
                {"role": "tool", "content": json.dumps([CALL_WITH_ID])},
                {"role": "tool", "content": RESULT},
            ],
            [SAID],
            parent=0,
        ),
    ],
    "LangChain": [
        observation(
            1, "GENERATION", "Chat", [PROMPT, USER, {"role": "tool", "content": DEFINITION}], MADE
        ),
        TOOL_ROW,
        observation(
            3,
            "GENERATION",
            "Chat",
            [*HISTORY, {"role": "tool", "content": json.dumps(DEFINITION)}],
            SAID,
        ),
    ],
    "LangGraph JS": [
        observation(1, "GENERATION", "Chat", [PROMPT, USER], MADE),
        TOOL_ROW,
        observation(
            3,
            "GENERATION",
            "Chat",
            [PROMPT, USER, MADE, {"role": "height", "content": RESULT}],
            SAID,
        ),
    ],
    "OpenAI Agents": [
        observation(
            1,
            "GENERATION",
            "response",
            [USER],
            {
                "object": "response",
                "instructions": SYSTEM,
                "output": [{"type": "function_call", "call_id": "call_7", **FUNCTION}],
            },
        ),
        TOOL_ROW,
        observation(
            3,
            "GENERATION",
            "response",
            HISTORY[1:],
            {
                "object": "response",
                "instructions": SYSTEM,
                "output": [{"type": "message", "content": [{"text": ANSWER}], "role": "assistant"}],
            },
        ),
    ],
    "Agent Framework": [
        observation(
            0,
            "AGENT",
            "invoke_agent keeper",
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
            },
        ),
        observation(1, "GENERATION", "chat", [USER], MADE, parent=0),
        TOOL_ROW,
        observation(3, "GENERATION", "chat", HISTORY[1:], SAID, parent=0),
    ],
    "AI SDK": [
        observation(
            1,
            "GENERATION",
            "ai.generateText.doGenerate",
            [PROMPT, USER],
            json.dumps([{"toolCallId": "call_7", "toolName": "height", "input": ARGUMENTS}]),
        ),
        observation(
            2,
            "TOOL",
            "ai.toolCall",
            ARGUMENTS,
            RESULT,
            attributes={"ai.toolCall.name": "height", "ai.toolCall.id": "call_7"},
        ),
        observation(3, "GENERATION", "ai.generateText.doGenerate", HISTORY, {"text": ANSWER}),
    ],
    "Claude Agent SDK": [
        observation(0, "SPAN", "claude.conversation", {"prompt": QUESTION, "system": SYSTEM}),
        observation(1, "GENERATION", "claude.assistant.turn", USER, MADE, parent=0),
        observation(
            2,
            "TOOL",
            "height",
            {"input": ARGUMENTS},
            json.dumps({"content": [{"type": "text", "text": RESULT}]}),
            parent=0,
        ),
        observation(3, "GENERATION", "claude.assistant.turn", {"content": "role"}, SAID, parent=0),
    ],
    "Agno": [
        observation(
            1,
            "GENERATION",
            "OpenAIChat.invoke",
            {
                "messages": [
                    f"role='system' content={SYSTEM!r}",
                    f"role='user' content={QUESTION!r}",
                ]
            },
            MADE,
            attributes={
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "system",
                "llm.input_messages.0.message.content": SYSTEM,
                "llm.input_messages.1.message.role": "user",
                "llm.input_messages.1.message.content": QUESTION,
            },
        ),
        observation(
            2, "GENERATION", "chat", f"developer: {SYSTEM}\nuser: {QUESTION}", "None", parent=1
        ),
        observation(
            3,
            "SPAN",
            "height",
            json.dumps(ARGUMENTS),
            RESULT,
            attributes={"openinference.span.kind": "TOOL", "tool.name": "height"},
        ),
        observation(4, "GENERATION", "OpenAIChat.invoke", HISTORY, SAID),
    ],
    "BeeAI": [
        observation(1, "GENERATION", "backend.chat.start-1", [PROMPT, USER]),
        observation(
            2, "GENERATION", "backend.chat.success-1", None, [{**MADE, "content": ""}], parent=1
        ),
        observation(3, "GENERATION", "backend.chat.finish-1", parent=1),
        observation(
            4,
            "SPAN",
            "tool.height.start-2",
            attributes={
                "openinference.span.kind": "TOOL",
                "tool.parameters": json.dumps(ARGUMENTS),
            },
        ),
        observation(
            5,
            "SPAN",
            "tool.height.success-2",
            None,
            RESULT,
            attributes={"openinference.span.kind": "TOOL"},
        ),
        observation(6, "GENERATION", "backend.chat.start-3", HISTORY),
        observation(
            7,
            "GENERATION",
            "backend.chat.success-3",
            attributes={
                "openinference.span.kind": "LLM",
                **{
                    f"llm.output_messages.{number}.message.{field}": value
                    for number, word in enumerate(ANSWER.split(" "))
                    for field, value in (
                        ("role", "assistant"),
                        ("content", word if number == 0 else f" {word}"),
                    )
                },
            },
        ),
    ],
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_framework_tells_the_same_run(framework: str, tmp_path: Path) -> None:
    """The prompt, the call tied to its result, and the answer are there, each once."""
    path, trace = read(tmp_path, *FRAMEWORKS[framework])
    shown = [line for line in lines(trace) if "begins" not in line]
    assert shown == EXPECTED
    keys = [trace.span(index).key for index in range(len(trace))]
    assert trace.span(len(trace) - 2).parent == keys[-3]
    if framework in ("Google ADK", "Agent Framework"):
        assert trace.span(len(trace) - 1).agent == "keeper"
    covered = text_coverage(path, [trace], ("attributes",))
    assert not covered.doubled
    # Agno's client repeats its messages as texts.
    assert all(SYSTEM in text or QUESTION in text for text in covered.lost)
    assert not trace.problems


@pytest.mark.parametrize(
    "arguments", [{"args": [QUESTION]}, {"args": [], "kwargs": {"prompt": QUESTION}}]
)
def test_arguments_of_a_traced_function_are_the_question(arguments: Json, tmp_path: Path) -> None:
    """LlamaIndex traces what the client's function was called with."""
    _path, trace = read(
        tmp_path, observation(1, "GENERATION", "OpenAI.complete", arguments, ANSWER)
    )
    assert lines(trace) == [EXPECTED[1], EXPECTED[4]]
    assert trace.meta.task == QUESTION


def test_thoughts_in_events_of_an_agent_are_shown_once(tmp_path: Path) -> None:
    """BeeAI tells a thought with every part of an answer, and again in the next request."""
    thoughts = ["I look the lighthouse up.", "I know the height now."]
    updates = [
        observation(
            number,
            "SPAN",
            f"agent.react.update-{number}",
            attributes={"openinference.span.kind": "AGENT", "thought": thoughts[number // 4]},
        )
        for number in (2, 3, 5, 6)
    ]
    history = {"role": "assistant", "content": f"Thought: {thoughts[0]}"}
    _path, trace = read(
        tmp_path,
        observation(1, "GENERATION", "backend.chat.start-1", [PROMPT, USER]),
        *updates[:2],
        observation(4, "GENERATION", "backend.chat.start-2", [PROMPT, USER, history]),
        *updates[2:],
    )
    texts = [trace.text(index) for index in range(len(trace))]
    assert [sum(thought in text for text in texts) for thought in thoughts] == [1, 1]
    assert trace.span(len(trace) - 1).kind is SpanKind.REASONING


def test_none_may_be_an_answer(tmp_path: Path) -> None:
    """Only an integration that writes messages as text writes Python's None for no text."""
    structured = observation(1, "GENERATION", "chat", [USER], "None")
    plain = observation(2, "GENERATION", "chat", "user: which one?", "None")
    _path, trace = read(tmp_path, structured, plain)
    assert lines(trace) == [
        EXPECTED[1],
        "message agent -: None",
        line("message user -", "user: which one?"),
        line("log log chat", "the answer was not recorded"),
    ]


def test_an_argument_named_input_stays(tmp_path: Path) -> None:
    """Only what is wrapped around a model's arguments is taken off."""
    made = {
        "id": "c",
        "function": {"name": "height", "arguments": json.dumps({"input": ARGUMENTS})},
    }
    answer = {"role": "assistant", "content": "", "tool_calls": [made]}
    _path, trace = read(
        tmp_path,
        observation(1, "GENERATION", "chat", [USER], answer),
        observation(2, "TOOL", "height", {"input": ARGUMENTS}, RESULT),
    )
    assert [span.kind for span in map(trace.span, range(len(trace)))] == [
        "message",
        "tool_call",
        "tool_result",
    ]


def test_unknown_parts_are_problems(tmp_path: Path) -> None:
    """A part of a type that no format has is named, once."""
    part = {"type": "hologram", "beams": [1, 2]}
    asked = {"role": "user", "content": [{"type": "text", "text": QUESTION}, part]}
    _path, trace = read(
        tmp_path,
        observation(1, "GENERATION", "chat", [asked], MADE),
        observation(2, "GENERATION", "chat", [asked, MADE], SAID),
    )
    assert [problem.message for problem in trace.problems] == ["unknown part type `hologram`"]
