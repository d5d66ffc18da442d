"""TRAIL's trees of spans: every span can be found by the id that labels name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mast_tui.traces.io.source import Source
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.otel.trail import READER
from tests.traces.checks import read_file, read_one, write_json, write_json_lines

TRACE = "a1b2c3d4" * 4
SYSTEM = "You solve tasks with code."
TASK = "How many albums did they publish?"
THOUGHT = "I search.\n```py\nweb_search(query='albums')\n```"
ANSWER = "I am done.\n```py\nfinal_answer('3')\n```"
OBSERVED = "Execution logs:\n3 albums"


def span(
    number: int, name: str, second: float, children: tuple[Any, ...] = (), **attributes: Any
) -> dict[str, Any]:
    """A span as TRAIL publishes it: ISO times, a duration, children within."""
    return {
        "timestamp": f"2025-03-19T16:35:{second:05.2f}Z",
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_span_id": None,
        "span_name": name,
        "span_kind": "Internal",
        "service_name": "app",
        "resource_attributes": {"service.name": "app"},
        "scope_name": "openinference.instrumentation.smolagents",
        "span_attributes": {path.replace("__", "."): v for path, v in attributes.items()},
        "duration": "PT2.5S",
        "status_code": "Ok",
        "status_message": "",
        "events": [],
        "links": [],
        "logs": [],
        "child_spans": list(children),
    }


def model_call(
    number: int, second: float, asked: list[tuple[str, str]], answer: str
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "test-model",
        "llm.token_count.prompt": "10",
        "llm.token_count.completion": "5",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    for place, (role, content) in enumerate(asked):
        told[f"llm.input_messages.{place}.message.role"] = role
        told[f"llm.input_messages.{place}.message.content"] = content
    return span(number, "LiteLLMModel.__call__", second, **told)


def tool_call(number: int, second: float, name: str, arguments: dict[str, str], output: str) -> Any:
    taken = {"args": [], "sanitize_inputs_outputs": False, "kwargs": arguments}
    return span(
        number,
        "SimpleTool",
        second,
        openinference__span__kind="TOOL",
        tool__name=name,
        input__value=json.dumps(taken),
        output__value=output,
    )


def published_layout() -> dict[str, Any]:
    calls = [{"id": "call_2", "function": {"name": "python_interpreter", "arguments": "code"}}]
    asked = [("system", SYSTEM), ("user", f"New task:\n{TASK}")]
    later = [
        *asked,
        ("assistant", THOUGHT),
        ("tool-call", f"Calling tools:\n{calls!r}"),
        ("tool-response", f"Call id: call_2\nObservation:\n{OBSERVED}"),
    ]
    first = span(
        3,
        "Step 1",
        3,
        (
            tool_call(5, 7, "web_search", {"query": "albums"}, "3 albums"),
            model_call(4, 4, asked, THOUGHT),
        ),
        openinference__span__kind="CHAIN",
        output__value=OBSERVED,
    )
    second = span(
        6, "Step 2", 10, (model_call(7, 11, later, ANSWER),), openinference__span__kind="CHAIN"
    )
    agent = span(
        2,
        "CodeAgent.run",
        2,
        (first, second),
        openinference__span__kind="AGENT",
        input__value=json.dumps({"task": TASK, "stream": False}),
        output__value="3",
    )
    return {"trace_id": TRACE, "spans": [span(1, "main", 1, (agent,))]}


def test_a_tree_of_spans_is_a_timeline_with_a_span_under_each_id(tmp_path: Path) -> None:
    path = write_json(tmp_path / "trace.json", published_layout())
    assert [reader.name for reader in recognising_readers(Source(path))] == ["trail"]
    trace = read_one(READER, path)
    spans = [trace.span(index) for index in range(len(trace))]
    assert [(one.kind.value, one.agent, trace.text(one.index)) for one in spans] == [
        ("log", "agent", "main"),
        ("log", "CodeAgent", "agent CodeAgent begins"),
        ("log", "CodeAgent", "Step 1"),
        ("message", "system", SYSTEM),
        ("message", "user", f"New task:\n{TASK}"),
        ("message", "CodeAgent", THOUGHT),
        ("tool_call", "CodeAgent", '{\n  "query": "albums"\n}'),
        ("tool_result", "CodeAgent", "3 albums"),
        ("log", "CodeAgent", "Step 2"),
        ("tool_call", "CodeAgent", "code"),
        ("tool_result", "CodeAgent", OBSERVED),
        ("message", "CodeAgent", ANSWER),
    ]
    assert {f"{number:016x}" for number in range(1, 8)} <= {one.key for one in spans}
    assert all(len(one.key.split("/")[0]) == 16 for one in spans)
    assert trace.text(trace.index_of(f"{4:016x}") or 0) == THOUGHT
    assert trace.text(trace.index_of(f"{5:016x}") or 0) == "3 albums"
    assert trace.identity.trace_id == TRACE
    assert trace.identity.native
    assert (trace.meta.system, trace.meta.model) == ("smolagents", "test-model")
    assert trace.meta.task == f"New task:\n{TASK}"
    assert [one.tokens.output for one in spans if one.tokens is not None] == [5, 5]
    lasted = spans[5]
    assert lasted.start is not None
    assert lasted.end is not None
    assert lasted.end - lasted.start == 2.5


def test_labels_beside_the_spans_are_hidden_and_alone_are_no_trace(tmp_path: Path) -> None:
    errors = [
        {"category": "Tool-related", "location": f"{5:016x}", "evidence": "3", "impact": "LOW"}
    ]
    both = {**published_layout(), "errors": errors, "scores": [{"overall": 3}]}
    trace = read_one(READER, write_json(tmp_path / "both.json", both))
    assert [name for name, _text in trace.meta.hidden] == ["scores overall", "errors"]
    assert "Tool-related" in trace.meta.hidden[1][1]
    shown = "".join(trace.text(index) for index in range(len(trace)))
    assert "Tool-related" not in shown
    alone = {"trace_id": TRACE, "errors": errors, "scores": []}
    assert not READER.recognises(Source(write_json(tmp_path / "alone.json", alone)))


def test_several_traces_in_a_file_and_what_is_none(tmp_path: Path) -> None:
    other = {**published_layout(), "trace_id": "0" * 31 + "1"}
    path = write_json_lines(tmp_path / "traces.jsonl", published_layout(), {"no": "trace"}, other)
    report = read_file(READER, path)
    assert [trace.record for trace in report.traces] == [0, 2]
    assert [trace.identity.trace_id for trace in report.traces] == [TRACE, "0" * 31 + "1"]
    assert [problem.place for problem in report.problems] == ["line 2"]
    assert report.traces[0].span(0).place == "line 1 /spans/0"


def test_broken_spans_are_told_and_the_others_read(tmp_path: Path) -> None:
    broken = published_layout()
    broken["spans"][0]["child_spans"] += ["text", {"span_name": "nameless", "child_spans": 7}]
    trace = read_one(READER, write_json(tmp_path / "trace.json", broken))
    assert [problem.place for problem in trace.problems] == [
        "/spans/0/child_spans/1",
        "/spans/0/child_spans/2",
        "/spans/0/child_spans/2/child_spans",
    ]
    assert trace.index_of(f"{7:016x}") is not None
    assert trace.index_of("/spans/0/child_spans/2") is not None
