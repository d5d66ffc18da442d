"""OpenTelemetry dumps of the corpus, held to their raw files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mast_tui.traces.model import Trace
from mast_tui.traces.readers.otel.reader import READER
from tests.traces.checks import CORPUS, needs_corpus, read_one

GENAI = ("AGNO", "LANGCHAIN", "OPENAI", "SMOLAGENTS")
DUMPS = [
    *(f"otel-genai/{name}_trace.json" for name in GENAI),
    "otel-openinference/LANGCHAIN_trace.json",
    "otel-openinference/SMOLAGENTS_trace.json",
]


def raw_spans(path: Path) -> list[dict[str, Any]]:
    spans: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["spans"]
    return sorted(spans, key=lambda span: span["start_time"])


def texts(trace: Trace, *kinds: str) -> list[str]:
    return [
        trace.text(index) for index in range(len(trace)) if trace.span(index).kind.value in kinds
    ]


def tokens(trace: Trace) -> Counter[tuple[int | None, int | None]]:
    spans = (trace.span(index) for index in range(len(trace)))
    return Counter((s.tokens.input, s.tokens.output) for s in spans if s.tokens is not None)


@needs_corpus
@pytest.mark.parametrize("name", DUMPS)
def test_ids_and_places_are_those_of_the_file(name: str) -> None:
    trace = read_one(READER, CORPUS / name)
    raw = json.loads((CORPUS / name).read_text("utf-8"))
    assert trace.identity.trace_id == f"{raw['spans'][0]['context']['trace_id']:032x}"
    ids = {f"{span['context']['span_id']:016x}" for span in raw["spans"]}
    for index in range(len(trace)):
        span = trace.span(index)
        assert span.key.split("/")[0] in ids or span.key.endswith((":call", ":result"))
        *_within, number = span.place.split("/")
        assert span.start is not None
        source = raw["spans"][int(number)]
        assert span.start == pytest.approx(source["start_time"] / 1e9)


@needs_corpus
@pytest.mark.parametrize("name", GENAI)
def test_any_agents_calls_and_answers(name: str) -> None:
    path = CORPUS / "otel-genai" / f"{name}_trace.json"
    trace = read_one(READER, path)
    asked: list[str] = []
    calls, results, said = [], [], []
    counted: Counter[tuple[int, int]] = Counter()
    for span in raw_spans(path):
        told = span["attributes"]
        match told["gen_ai.operation.name"]:
            case "call_llm":
                for message in json.loads(told.get("gen_ai.input.messages", "[]")):
                    asked.append(message["content"])
                output = told["gen_ai.output"]
                if output.startswith("["):
                    for call in json.loads(output):
                        arguments = call["tool.args"]
                        if isinstance(arguments, str):
                            arguments = json.loads(arguments)
                        calls.append((call["tool.name"], arguments))
                else:
                    said.append(output)
                usage = told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]
                counted[usage] += 1
            case "execute_tool":
                results.append(told["gen_ai.output"])
    spans = [trace.span(index) for index in range(len(trace))]
    shown = [
        (span.name, json.loads(trace.text(span.index)))
        for span in spans
        if span.kind.value == "tool_call"
    ]
    assert shown == calls
    assert texts(trace, "tool_result") == results
    assert texts(trace, "message") == asked + said
    assert tokens(trace) == counted
    assert len(trace) == 1 + len(asked) + len(calls) + len(results) + len(said)
    assert [span.agent for span in spans if span.role.value == "agent"] == ["any_agent"] * (
        1 + len(calls) + len(said)
    )
    call_keys = {span.key for span in spans if span.kind.value == "tool_call"}
    assert {span.parent for span in spans if span.kind.value == "tool_result"} == call_keys
    assert trace.meta.model == "mistral/mistral-small-latest"


@needs_corpus
def test_langchains_calls_stand_in_its_raw_outputs_only() -> None:
    path = CORPUS / "otel-openinference" / "LANGCHAIN_trace.json"
    trace = read_one(READER, path)
    calls, counted = [], Counter[tuple[int, int]]()
    for span in raw_spans(path):
        told = span["attributes"]
        if told.get("openinference.span.kind") == "LLM":
            answer = json.loads(told["output.value"])["generations"][0][0]["message"]["kwargs"]
            calls += [(call["id"], call["name"], call["args"]) for call in answer["tool_calls"]]
            final = answer["content"]
            counted[told["llm.token_count.prompt"], told["llm.token_count.completion"]] += 1
    spans = [trace.span(index) for index in range(len(trace))]
    assert [
        (span.key.removesuffix(":call"), span.name, json.loads(trace.text(span.index)))
        for span in spans
        if span.kind.value == "tool_call"
    ] == calls
    results = [span for span in spans if span.kind.value == "tool_result"]
    assert [span.key.removesuffix(":result") for span in results] == [call[0] for call in calls]
    assert json.loads(trace.text(results[0].index))["timezone"] == "America/New_York"
    assert texts(trace, "message")[-1] == final
    assert len(texts(trace, "message")) == 3
    assert tokens(trace) == counted
    assert trace.meta.system == "LangChain"


@needs_corpus
def test_smolagents_calls_that_were_recorded_three_times_count_once() -> None:
    path = CORPUS / "otel-openinference" / "SMOLAGENTS_trace.json"
    trace = read_one(READER, path)
    calls: dict[str, tuple[str, object]] = {}
    counted: dict[str, tuple[int, int]] = {}
    for span in raw_spans(path):
        told = span["attributes"]
        if told.get("openinference.span.kind") == "LLM":
            for call in json.loads(told["output.value"])["tool_calls"]:
                function = call["function"]
                calls[call["id"]] = function["name"], json.loads(function["arguments"])
                usage = told["llm.token_count.prompt"], told["llm.token_count.completion"]
                counted[call["id"]] = usage
    spans = [trace.span(index) for index in range(len(trace))]
    shown = {
        span.key.removesuffix(":call"): (span.name, json.loads(trace.text(span.index)))
        for span in spans
        if span.kind.value == "tool_call"
    }
    assert len(shown) == 3
    assert shown == calls
    assert tokens(trace) == Counter(counted.values())
    assert len(texts(trace, "message")) == 2
    assert [span.agent for span in spans if span.role.value == "agent"] == ["ToolCallingAgent"] * 4


@needs_corpus
def test_the_example_of_the_specification() -> None:
    trace = read_one(READER, CORPUS / "otlp-json" / "trace.json")
    assert trace.identity.trace_id == "5b8efff798038103d269b633813fc60c"
    (span,) = (trace.span(index) for index in range(len(trace)))
    assert (span.key, span.kind.value, span.name) == (
        "eee19b7ec3c1b174",
        "log",
        "I'm a server span",
    )
    assert (span.start, span.end) == (1544712660, 1544712661)
    assert trace.text(0) == "my.span.attr: some value"
    assert trace.meta.system == "my.service"
