"""What a model's call took in and gave out, in the shapes in which clients are traced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.traces.model import SpanStatus, Trace
from mast_tui.traces.readers.vendors.reader import READER
from tests.traces.checks import read_one, write_json
from tests.traces.vendor_layouts import constructor

Json = dict[str, object]

ASKED = "Which way?"
SAID = "That way."


def run(number: int, kind: str, asked: object, answered: object, **fields: object) -> Json:
    """A run of LangSmith in the published layout, the root's child unless it is the first."""
    return {
        "id": f"run-{number}",
        "trace_id": "run-1",
        "parent_run_id": None if number == 1 else "run-1",
        "name": fields.pop("name", kind),
        "run_type": kind,
        "inputs": asked,
        "outputs": answered,
        "start_time": f"2026-03-04T10:00:{number:02}",
    } | fields


def read_runs(tmp_path: Path, *runs: Mapping[str, object]) -> Trace:
    return read_one(READER, write_json(tmp_path / "runs.json", list(runs)))


def said(trace: Trace) -> list[tuple[str, str, str]]:
    return [
        (span.kind.value, span.role.value, trace.text(span.index))
        for span in map(trace.span, range(len(trace)))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"messages": [{"role": "user", "content": ASKED}], "temperature": 0},
        {"messages": [[constructor("Human", content=ASKED, type="human")]]},
        {"messages": [{"type": "human", "data": {"content": ASKED, "type": "human"}}]},
        {"messages": [["human", ASKED]]},
        {"prompts": [ASKED]},
        {"prompt": ASKED},
        {"input": ASKED},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": ASKED}]}]},
        {"contents": [{"role": "user", "parts": [{"text": ASKED}]}]},
        {"request": json.dumps({"messages": [{"role": "user", "content": ASKED}]})},
        json.dumps({"messages": [{"role": "user", "content": ASKED}]}),
        ASKED,
    ],
)
@pytest.mark.parametrize(
    "answered",
    [
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": SAID}}]},
        {"choices": [{"index": 0, "text": SAID}]},
        {"generations": [[{"text": SAID, "message": constructor("AI", content=SAID, type="ai")}]]},
        {"generations": [[{"text": SAID, "generation_info": {}}]], "llm_output": None},
        {"role": "assistant", "type": "message", "content": [{"type": "text", "text": SAID}]},
        {
            "object": "response",
            "output": [
                {"type": "message", "content": [{"type": "output_text", "text": SAID}]},
            ],
        },
        {"output": SAID},
        {"content": SAID, "type": "ai", "tool_calls": []},
        SAID,
    ],
)
def test_a_chat_is_found_in_what_wraps_it(asked: object, answered: object, tmp_path: Path) -> None:
    trace = read_runs(tmp_path, run(1, "llm", asked, answered))
    assert said(trace) == [("message", "user", ASKED), ("message", "agent", SAID)]


def test_a_system_prompt_beside_the_messages_comes_first(tmp_path: Path) -> None:
    asked = {"system": "Be brief.", "messages": [{"role": "user", "content": ASKED}]}
    trace = read_runs(tmp_path, run(1, "llm", asked, {"output": SAID}))
    assert said(trace)[0] == ("message", "system", "Be brief.")
    assert len(trace) == 3


def test_an_answer_that_is_no_text_is_shown_as_json(tmp_path: Path) -> None:
    trace = read_runs(tmp_path, run(1, "llm", {"input": ASKED}, {"way": "left", "sure": True}))
    assert json.loads(trace.text(1)) == {"way": "left", "sure": True}


def test_calls_that_a_message_holds_twice_are_shown_once(tmp_path: Path) -> None:
    call = {"id": "c-1", "name": "look", "args": {"at": "map"}, "type": "tool_call"}
    block = {"type": "tool_use", "id": "c-1", "name": "look", "input": {"at": "map"}}
    answer = constructor(
        "AI", content=[{"type": "text", "text": SAID}, block], type="ai", tool_calls=[call]
    )
    trace = read_runs(tmp_path, run(1, "llm", {"input": ASKED}, {"output": answer}))
    assert [trace.span(index).kind.value for index in range(len(trace))] == [
        "message",
        "message",
        "tool_call",
    ]


def test_responses_items_are_calls_and_results(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "c-1", "name": "look", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c-1", "output": "a map"}
    question = {"role": "user", "content": ASKED}
    trace = read_runs(
        tmp_path,
        run(1, "chain", None, None),
        run(2, "llm", {"input": [question]}, {"object": "response", "output": [call]}),
        run(3, "llm", {"input": [question, call, result]}, {"output": SAID}),
    )
    assert [trace.span(index).key for index in range(len(trace))] == [
        "run-2/asked/0",
        "c-1:call",
        "c-1:result",
        "run-3/answered/0",
    ]


def test_a_tool_says_what_its_message_says(tmp_path: Path) -> None:
    message = constructor(
        "Tool", content="no map", type="tool", tool_call_id="c-1", status="error", name="look"
    )
    trace = read_runs(tmp_path, run(1, "tool", {"input": "map"}, {"output": message}, name="look"))
    assert [(s.key, s.name, s.status) for s in map(trace.span, range(2))] == [
        ("c-1:call", "look", SpanStatus.UNKNOWN),
        ("c-1:result", "look", SpanStatus.ERROR),
    ]
    assert [trace.text(index) for index in range(2)] == ["map", "no map"]


@pytest.mark.parametrize(
    ("metadata", "agent"),
    [
        ({"langgraph_node": "planner"}, "planner"),
        ({"langgraph_node": "model", "langgraph_checkpoint_ns": "scout:1a|model:2b"}, "scout"),
        ({"langgraph_checkpoint_ns": "planner:1a", "langgraph_node": "planner"}, "planner"),
        ({"lc_agent_name": "guide", "langgraph_node": "model"}, "guide"),
        ({"langgraph_node": ["no", "text"]}, "agent"),
    ],
)
def test_the_acting_agent_is_told_by_frameworks(metadata: Json, agent: str, tmp_path: Path) -> None:
    extra = {"extra": {"metadata": metadata}}
    trace = read_runs(tmp_path, run(1, "llm", {"input": ASKED}, {"output": SAID}, **extra))
    assert trace.span(1).agent == agent


def test_a_plain_function_with_the_name_of_a_called_tool_is_the_tool(tmp_path: Path) -> None:
    calls = [{"id": "c-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    answer = {"role": "assistant", "content": None, "tool_calls": calls}
    trace = read_runs(
        tmp_path,
        run(1, "llm", {"input": ASKED}, {"output": answer}),
        run(2, "chain", {}, {"output": "a map"}, name="look"),
        run(3, "chain", {}, {"output": "not shown"}, name="format"),
    )
    assert [text for _kind, _role, text in said(trace)] == [ASKED, "{}", "a map"]
    assert trace.span(2).parent == "c-1:call"


@pytest.mark.parametrize(
    "asked", [{"input": "{'at': 'map', 'n': None}"}, "{'at': 'map', 'n': None}"]
)
def test_arguments_written_as_python_belong_to_the_call(asked: object, tmp_path: Path) -> None:
    arguments = json.dumps({"at": "map", "n": None})
    calls = [{"type": "function", "function": {"name": "look", "arguments": arguments}}]
    trace = read_runs(
        tmp_path,
        run(1, "chain", None, None),
        run(2, "llm", {"input": ASKED}, {"output": {"role": "assistant", "tool_calls": calls}}),
        run(3, "tool", asked, {"output": "a map"}, name="look"),
    )
    assert [text for _kind, _role, text in said(trace)] == [ASKED, arguments, "a map"]
    assert trace.span(2).parent == trace.span(1).key


@pytest.mark.parametrize(
    "asked",
    [
        "{'a': open('x')}",
        "{1, 2}",
        "{" * 5000 + "}",
        "{'a': b'x'}",
        r"{'a': '\d'}",
        "{" + "-" * 9000 + "1}",
    ],
)
def test_other_texts_in_braces_stay_texts(asked: str, tmp_path: Path) -> None:
    trace = read_runs(tmp_path, run(1, "tool", {"input": asked}, {"output": "done"}, name="look"))
    assert trace.text(0) == asked


def test_agents_begin_and_what_is_under_them_is_theirs(tmp_path: Path) -> None:
    shapes: list[Json] = [
        {"id": "o-1", "type": "AGENT", "name": "guide", "parentObservationId": None},
        {"id": "o-2", "type": "AGENT", "name": "scout", "parentObservationId": "o-1"},
        {
            "id": "o-3",
            "type": "GENERATION",
            "name": "chat",
            "parentObservationId": "o-2",
            "input": [{"role": "user", "content": ASKED}],
            "output": {"role": "assistant", "content": SAID},
            "level": "WARNING",
            "statusMessage": "slow",
        },
        {
            "id": "o-4",
            "type": "GUARDRAIL",
            "name": "polite",
            "parentObservationId": "o-1",
            "output": {"passed": True},
        },
    ]
    observations = [
        {"traceId": "t", "startTime": f"2026-03-04T10:00:0{place}Z"} | shape
        for place, shape in enumerate(shapes)
    ]
    trace = read_one(READER, write_json(tmp_path / "observations.json", observations))
    spans = [trace.span(index) for index in range(len(trace))]
    assert [(span.key, span.agent) for span in spans] == [
        ("o-1", "guide"),
        ("o-2", "scout"),
        ("o-3/asked/0", "user"),
        ("o-3/answered/0", "scout"),
        ("o-4", "guide"),
    ]
    assert [span.parent for span in spans] == [None, "o-1", "o-2", "o-2", "o-1"]
    assert "passed" in trace.text(4)
    assert SpanStatus.ERROR not in [span.status for span in spans]
    assert not any("slow" in trace.text(span.index) for span in spans)


def test_of_clients_within_each_other_one_call_is_shown(tmp_path: Path) -> None:
    calls = [
        {
            "id": name,
            "trace_id": "t",
            "parent_id": above,
            "op_name": f"weave:///team/p/op/{name}:abc",
            "started_at": f"2026-03-04T10:00:0{place}Z",
            "inputs": {"messages": [{"role": "user", "content": ASKED}]},
            "output": {"choices": [{"message": {"role": "assistant", "content": SAID}}]},
            "summary": {"usage": {"m": {"input_tokens": 5, "output_tokens": 2}}},
        }
        for place, (name, above) in enumerate(
            (("litellm.completion", None), ("openai.chat.completions.create", "litellm.completion"))
        )
    ]
    trace = read_one(READER, write_json(tmp_path / "calls.json", calls))
    assert said(trace) == [("message", "user", ASKED), ("message", "agent", SAID)]
    assert trace.meta.system == "litellm.completion"
    tokens = [trace.span(index).tokens for index in range(2)]
    assert tokens[0] is None
    assert tokens[1] is not None
    assert (tokens[1].input, tokens[1].output) == (5, 2)


@pytest.mark.parametrize(
    "place",
    [
        {"prompt_tokens": 7, "completion_tokens": 3},
        {"extra": {"metadata": {"usage_metadata": {"input_tokens": 7, "output_tokens": 3}}}},
        {
            "outputs": {
                "generations": [[{"text": SAID}]],
                "llm_output": {"token_usage": {"prompt_tokens": 7, "completion_tokens": 3}},
            }
        },
        {"outputs": {"output": SAID, "usage": {"prompt_tokens": 7, "completion_tokens": 3}}},
    ],
)
def test_tokens_are_found_where_clients_leave_them(place: Json, tmp_path: Path) -> None:
    counted = run(2, "llm", {"input": ASKED}, {"output": SAID}) | place
    # What the root counts is the sum of those under it.
    root = run(1, "chain", {"input": ASKED}, {"output": SAID}) | {"prompt_tokens": 7}
    trace = read_runs(tmp_path, root, counted)
    spans = [trace.span(index) for index in range(len(trace))]
    found = [span.tokens for span in spans if span.tokens is not None]
    assert [(tokens.input, tokens.output) for tokens in found] == [(7, 3)]
