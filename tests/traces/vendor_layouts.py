"""One short run in the export layouts of tracing vendors."""

from __future__ import annotations

import json
from typing import Final

Json = dict[str, object]

SYSTEM: Final = "You answer questions about the weather."
TASK: Final = "Is it warmer in Rome than in Oslo?"
ARGUMENTS: Final = {"city": "Rome"}
OTHER_ARGUMENTS: Final = {"city": "Oslo"}
FOUND: Final = "21 degrees"
FAILURE: Final = "TimeoutError: no answer from the station in Oslo"
ANSWER: Final = "Rome has 21 degrees; Oslo's station did not answer."

RUN: Final = "11111111-1111-4111-8111-111111111111"
"""The id of the run and of its root; the others end in 2, 3 and so on."""

DAY: Final = "2026-03-04"

OPENAI_CALLS: Final = [
    {
        "id": call_id,
        "type": "function",
        "function": {"name": "temperature", "arguments": json.dumps(arguments)},
    }
    for call_id, arguments in (("call_1", ARGUMENTS), ("call_2", OTHER_ARGUMENTS))
]
OPENAI: Final[list[Json]] = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": TASK},
    {"role": "assistant", "content": None, "tool_calls": OPENAI_CALLS},
    {"role": "tool", "tool_call_id": "call_1", "content": FOUND},
    {"role": "tool", "tool_call_id": "call_2", "content": FAILURE},
    {"role": "assistant", "content": ANSWER},
]


def run_id(number: int) -> str:
    """The id of the call with this number; 1 is the root."""
    return RUN[:-1] + str(number)


def clock(second: int) -> str:
    """A time of day within the run, without a zone."""
    return f"{DAY}T10:00:{second:02}.000000"


def constructor(kind: str, **fields: object) -> Json:
    """A message as LangChain serialises it."""
    path = ["langchain", "schema", "messages", f"{kind}Message"]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


def chain_messages() -> list[Json]:
    """The run's messages in LangChain's constructor form."""
    calls = [
        {"name": "temperature", "args": arguments, "id": call_id, "type": "tool_call"}
        for call_id, arguments in (("call_1", ARGUMENTS), ("call_2", OTHER_ARGUMENTS))
    ]
    return [
        constructor("System", content=SYSTEM, type="system"),
        constructor("Human", content=TASK, type="human"),
        constructor(
            "AI",
            content="",
            type="ai",
            tool_calls=calls,
            additional_kwargs={"tool_calls": OPENAI_CALLS},
            usage_metadata={"input_tokens": 50, "output_tokens": 20},
        ),
        constructor("Tool", content=FOUND, type="tool", name="temperature", tool_call_id="call_1"),
        constructor(
            "Tool",
            content=FAILURE,
            type="tool",
            name="temperature",
            tool_call_id="call_2",
            status="error",
        ),
        constructor("AI", content=ANSWER, type="ai", tool_calls=[]),
    ]


def langsmith(chain: bool = True) -> list[Json]:
    """Runs as ``list_runs`` gives them, the last one first; ``chain`` for LangChain's messages."""

    def run(
        number: int, name: str, kind: str, seconds: tuple[int, int], inputs: Json, outputs: Json
    ) -> Json:
        stamps = f"20260304T1000{seconds[0]:02}000000Z"
        order = f"20260304T100000000000Z{RUN}"
        return {
            "id": run_id(number),
            "trace_id": RUN,
            "parent_run_id": None if number == 1 else RUN,
            "dotted_order": order if number == 1 else f"{order}.{stamps}{run_id(number)}",
            "name": name,
            "run_type": kind,
            "inputs": inputs,
            "outputs": outputs,
            "error": None,
            "start_time": clock(seconds[0]),
            "end_time": clock(seconds[1]),
            "status": "success",
            "extra": {"metadata": {"ls_model_name": "small-1"} if kind == "llm" else {}},
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "session_id": "aaaaaaaa-0000-4000-8000-000000000000",
            "child_run_ids": None,
            "feedback_stats": {"correctness": {"n": 1, "avg": 0.0}} if number == 1 else None,
        }

    first: tuple[Json, Json]
    second: tuple[Json, Json]
    if chain:
        messages = chain_messages()
        first = {"messages": [messages[:2]]}, _generation(messages[2])
        second = {"messages": [messages[:5]]}, _generation(messages[5])
        result: Json = {"output": messages[3]}
    else:
        first = {"messages": OPENAI[:2], "model": "small-1"}, _choices(OPENAI[2])
        second = {"messages": OPENAI[:5], "model": "small-1"}, _choices(OPENAI[5])
        result = {"output": FOUND}
    runs = [
        run(1, "weather", "chain", (0, 9), {"input": TASK}, {"output": ANSWER}),
        run(2, "ChatModel", "llm", (1, 2), *first) | {"prompt_tokens": 50, "completion_tokens": 20},
        run(3, "temperature", "tool", (3, 4), {"input": json.dumps(ARGUMENTS)}, result),
        run(4, "temperature", "tool", (5, 6), {"input": json.dumps(OTHER_ARGUMENTS)}, {})
        | {"outputs": None, "error": FAILURE, "status": "error"},
        run(5, "ChatModel", "llm", (7, 8), *second)
        | {"prompt_tokens": 90, "completion_tokens": 12},
    ]
    return runs[::-1]


def _generation(message: Json) -> Json:
    text = message["kwargs"]["content"] if isinstance(message["kwargs"], dict) else ""
    generation = {"text": text, "message": message, "type": "ChatGeneration"}
    return {"generations": [[generation]], "llm_output": {"model_name": "small-1"}}


def _choices(message: Json) -> Json:
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}


def langfuse() -> Json:
    """A trace as ``GET /api/public/traces/<id>`` gives it."""
    common: Json = {"level": "DEFAULT", "statusMessage": None, "metadata": {}, "usageDetails": {}}
    shapes: list[Json] = [
        {"type": "CHAIN", "name": "weather", "input": {"input": TASK}, "output": ANSWER},
        {
            "type": "GENERATION",
            "name": "ChatModel",
            "model": "small-1",
            "input": OPENAI[:2],
            "output": OPENAI[2],
            "usageDetails": {"input": 50, "output": 20, "total": 70},
        },
        {
            "type": "TOOL",
            "name": "temperature",
            "input": ARGUMENTS,
            "output": FOUND,
            "metadata": {"tool_call_id": "call_1"},
        },
        {
            "type": "TOOL",
            "name": "temperature",
            "input": OTHER_ARGUMENTS,
            "output": None,
            "level": "ERROR",
            "statusMessage": FAILURE,
            "metadata": {"tool_call_id": "call_2"},
        },
        {
            "type": "GENERATION",
            "name": "ChatModel",
            "model": "small-1",
            "input": {"messages": OPENAI[:5], "tools": []},
            "output": OPENAI[5],
            "usageDetails": {"input": 90, "output": 12, "total": 102},
        },
    ]
    observations: list[Json] = [
        common
        | {
            "id": run_id(number),
            "traceId": "f" * 32,
            "parentObservationId": None if number == 1 else RUN,
            "startTime": clock(start) + "Z",
            "endTime": clock(end) + "Z",
        }
        | shape
        for number, (shape, (start, end)) in enumerate(
            zip(shapes, ((0, 9), (1, 2), (3, 4), (5, 6), (7, 8)), strict=True), 1
        )
    ]
    return {
        "id": "f" * 32,
        "projectId": "p-1",
        "name": "weather",
        "timestamp": clock(0) + "Z",
        "input": {"input": TASK},
        "output": ANSWER,
        "metadata": {},
        "scores": [{"id": "s-1", "name": "correct", "value": 0, "comment": "SECRET-8"}],
        "observations": observations,
    }


def weave() -> list[Json]:
    """Calls as the trace server gives them; no kind is told, as for plain ops."""
    shapes: list[tuple[str, object, object]] = [
        ("weather", {"self": "weave:///team/p/object/W:1", "input": TASK}, ANSWER),
        ("openai.chat.completions.create", {"messages": OPENAI[:2]}, _choices(OPENAI[2])),
        ("temperature", ARGUMENTS, FOUND),
        ("temperature", OTHER_ARGUMENTS, None),
        ("openai.chat.completions.create", {"messages": OPENAI[:5]}, _choices(OPENAI[5])),
    ]
    usage = {2: (50, 20), 5: (90, 12)}
    calls: list[Json] = []
    for number, ((name, asked, answered), (start, end)) in enumerate(
        zip(shapes, ((0, 9), (1, 2), (3, 4), (5, 6), (7, 8)), strict=True), 1
    ):
        counts = {1: (140, 32)} | usage
        summary: Json = {"weave": {"status": "error" if number == 4 else "success"}}
        if number in counts:
            taken, given = counts[number]
            summary["usage"] = {"small-1": {"prompt_tokens": taken, "completion_tokens": given}}
        if isinstance(answered, dict):
            answered = answered | {"model": "small-1"}
        calls.append(
            {
                "id": run_id(number),
                "project_id": "team/p",
                "op_name": f"weave:///team/p/op/{name}:abc123",
                "display_name": None,
                "trace_id": RUN,
                "parent_id": None if number == 1 else RUN,
                "started_at": clock(start) + "Z",
                "ended_at": clock(end) + "Z",
                "attributes": {"weave": {"client_version": "0.51"}},
                "inputs": asked,
                "output": answered,
                "exception": FAILURE if number == 4 else None,
                "summary": summary,
            }
        )
    return calls
