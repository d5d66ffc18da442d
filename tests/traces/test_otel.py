"""OpenTelemetry traces: every layout and every convention tell the same run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.otel.reader import READER
from tests.traces.checks import read_file, read_one, write_json, write_json_lines
from tests.traces.otel_conventions import (
    AGENT,
    BEGIN,
    CONVENTIONS,
    EXPECTED,
    MODEL,
    QUESTION,
    TRACE,
    spans_of,
)
from tests.traces.otel_layouts import LAYOUTS, any_value, key_values, otlp_document


def timeline(trace: Trace) -> list[tuple[object, ...]]:
    spans = [trace.span(index) for index in range(len(trace))]
    return [
        (
            span.kind.value,
            span.role.value,
            span.name,
            trace.text(span.index),
            None if span.tokens is None else (span.tokens.input, span.tokens.output),
        )
        for span in spans
    ]


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_each_layout_and_convention_tells_the_same_run(
    tmp_path: Path, convention: str, layout: str
) -> None:
    format_name, write = LAYOUTS[layout]
    path = write(tmp_path / "trace.json", spans_of(CONVENTIONS[convention]))
    report = read_file(READER, path)
    assert report.format == format_name
    assert not report.problems
    (trace,) = report.traces
    assert timeline(trace) == EXPECTED
    assert trace.identity.trace_id == TRACE
    assert trace.identity.native
    assert trace.meta.task == QUESTION
    assert trace.meta.model == MODEL
    spans = [trace.span(index) for index in range(len(trace))]
    assert [span.agent for span in spans] == [AGENT, "system", "user", *[AGENT] * 6]
    calls, results = spans[4:6], spans[6:8]
    assert [span.parent for span in results] == [span.key for span in calls]
    assert [span.status.value for span in results] == ["unknown", "error"]
    assert [span.start for span in calls] == [BEGIN + 1, BEGIN + 1]
    assert [span.end for span in calls] == [BEGIN + 4, BEGIN + 5]
    assert [(span.start, span.end) for span in results] == [
        (BEGIN + 3, BEGIN + 4),
        (BEGIN + 3.5, BEGIN + 5),
    ]
    assert {span.parent for span in spans[1:6]} == {spans[0].key} == {"00f067aa0ba902b0"}


def chat(
    number: int, asked: str, answered: str, trace: str = TRACE, **more: object
) -> dict[str, object]:
    """A call of a model as a console exporter prints it."""
    return {
        "name": "chat",
        "context": {"trace_id": trace, "span_id": f"{number:016x}"},
        "parent_id": None,
        "start_time": f"2025-10-09T08:53:{number:02d}Z",
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps([{"role": "user", "content": asked}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": answered}]),
        },
        **more,
    }


def texts(trace: Trace) -> list[str]:
    return [trace.text(index) for index in range(len(trace))]


def test_each_trace_id_is_a_trace(tmp_path: Path) -> None:
    other = TRACE[::-1]
    path = write_json_lines(
        tmp_path / "spans.jsonl",
        chat(1, "a", "b"),
        chat(2, "c", "d", other),
        chat(3, "e", "f"),
        chat(4, "g", "h", trace=""),
    )
    report = read_file(READER, path)
    assert [(trace.record, trace.identity.trace_id) for trace in report.traces[:2]] == [
        (0, TRACE),
        (1, other),
    ]
    assert [texts(trace) for trace in report.traces] == [
        ["a", "b", "e", "f"],
        ["c", "d"],
        ["g", "h"],
    ]
    without = report.traces[2].identity
    assert not without.native
    assert without.trace_id.startswith("spans:2-")


def test_keys_stay_when_spans_are_appended(tmp_path: Path) -> None:
    spans = [chat(n, f"question {n}", f"answer {n}") for n in range(1, 5)]
    before = read_one(READER, write_json_lines(tmp_path / "a.jsonl", *spans[:2]))
    after = read_one(READER, write_json_lines(tmp_path / "b.jsonl", *spans))
    keys = [after.span(index).key for index in range(len(after))]
    assert keys[: len(before)] == [before.span(index).key for index in range(len(before))]
    assert before.identity.trace_id == after.identity.trace_id


def test_spans_of_other_software_are_shown_with_their_attributes(tmp_path: Path) -> None:
    def plain(number: int, parent: str | None, **attributes: object) -> dict[str, object]:
        told = {"code": 2, "message": "timed out"} if number == 3 else {}
        return {
            "traceId": TRACE,
            "spanId": f"{number:016x}",
            "parentSpanId": parent or "",
            "name": f"call {number}",
            "startTimeUnixNano": str(number * 10**18),
            "attributes": key_values(attributes),
            "status": told,
        }

    spans = [
        plain(2, f"{1:016x}", **{"http.method": "GET", "http.status_code": 200}),
        plain(3, f"{2:016x}"),
        plain(1, None, tags=["a", "b"], nested={"x": 1.5}),
    ]
    trace = read_one(READER, write_json(tmp_path / "trace.json", otlp_document(spans)))
    shown = [trace.span(index) for index in range(len(trace))]
    assert [(span.key, span.parent) for span in shown] == [
        (f"{1:016x}", None),
        (f"{2:016x}", f"{1:016x}"),
        (f"{3:016x}", f"{2:016x}"),
    ]
    assert [span.name for span in shown] == ["call 1", "call 2", "call 3"]
    assert [span.status.value for span in shown] == ["unknown", "unknown", "error"]
    assert trace.text(1) == "http.method: GET\nhttp.status_code: 200"
    assert trace.text(2) == "timed out"
    assert "nested.x: 1.5" in trace.text(0)


def test_log_records_belong_to_their_spans_or_are_logs(tmp_path: Path) -> None:
    def record(name: str, span: str, body: object) -> dict[str, object]:
        return {
            "timeUnixNano": "1760000001000000000",
            "traceId": TRACE,
            "spanId": span,
            "eventName": name,
            "body": any_value(body),
            "attributes": key_values({"gen_ai.system": "openai"}),
        }

    span: dict[str, object] = {
        "traceId": TRACE,
        "spanId": "00f067aa0ba902b7",
        "name": "chat",
        "attributes": key_values({"gen_ai.operation.name": "chat"}),
    }
    own, other = "00f067aa0ba902b7", "00f067aa0ba902b8"
    records = [
        record("gen_ai.user.message", own, {"content": "Why?"}),
        record("gen_ai.choice", own, {"index": 0, "message": {"content": "Because."}}),
        record("gen_ai.user.message", other, {"content": "Who?"}),
        record("gen_ai.choice", other, {"message": {"content": "Me."}}),
        record("app.note", own, "saved the file"),
    ]
    path = write_json_lines(
        tmp_path / "signals.jsonl",
        otlp_document([span]),
        {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]},
        {"resourceMetrics": []},
    )
    report = read_file(READER, path)
    assert not report.problems
    (trace,) = report.traces
    said = "saved the file\ngen_ai.system: openai"
    assert sorted(texts(trace)) == ["Because.", "Me.", "Who?", "Why?", said]
    note = texts(trace).index(said)
    assert trace.span(note).key == "line 2 /resourceLogs/0/scopeLogs/0/logRecords/4"
    assert trace.span(note).kind.value == "log"
    assert trace.span(note).name == "app.note"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param(
            {
                "ai.operationId": "ai.generateText.doGenerate",
                "gen_ai.usage.output_tokens": 3,
                "ai.prompt.messages": json.dumps(
                    [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]
                ),
                "ai.response.text": "Because.",
            },
            ["Why?", "Because."],
            id="vercel",
        ),
        pytest.param(
            {
                "gcp.vertex.agent.llm_request": json.dumps(
                    {
                        "config": {"system_instruction": "Be brief."},
                        "contents": [{"role": "user", "parts": [{"text": "Why?"}]}],
                    }
                ),
                "gcp.vertex.agent.llm_response": json.dumps(
                    {"content": {"role": "model", "parts": [{"text": "Because."}]}}
                ),
            },
            ["Be brief.", "Why?", "Because."],
            id="adk",
        ),
        pytest.param(
            {
                "gen_ai.operation.name": "chat",
                "events": json.dumps(
                    [
                        {"event.name": "gen_ai.system.message", "content": "Be brief."},
                        {"event.name": "gen_ai.user.message", "content": "Why?"},
                        {
                            "event.name": "gen_ai.choice",
                            "message": {"role": "assistant", "content": "Because."},
                        },
                    ]
                ),
            },
            ["Be brief.", "Why?", "Because."],
            id="logfire",
        ),
        pytest.param(
            {
                "openinference.span.kind": "LLM",
                "input.value": "Why?",
                "output.value": json.dumps(
                    {"choices": [{"message": {"role": "assistant", "content": "Because."}}]}
                ),
            },
            ["Why?", "Because."],
            id="openinference-values",
        ),
        pytest.param(
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.contents.0.message_content.type": "text",
                "llm.input_messages.0.message.contents.0.message_content.text": "Why?",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "Because.",
            },
            ["Why?", "Because."],
            id="openinference-contents",
        ),
        pytest.param(
            {
                "openinference.span.kind": "RETRIEVER",
                "input.value": "rain",
                "retrieval.documents.0.document.content": "It rains.",
                "retrieval.documents.1.document.content": "It pours.",
            },
            ["rain\n\nIt rains.\n\nIt pours."],
            id="openinference-documents",
        ),
        pytest.param(
            {
                "openinference.span.kind": "LLM",
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": {"stringValue": "Why?"},
                "gen_ai.output.messages": {"stringValue": "Because."},
            },
            ["Why?", "Because."],
            id="both-conventions",
        ),
        pytest.param(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.output.messages": json.dumps(
                    [
                        {
                            "role": "assistant",
                            "parts": [
                                {"type": "reasoning", "content": "Hm."},
                                {"type": "text", "content": "Because."},
                            ],
                        }
                    ]
                ),
            },
            ["Hm.", "Because."],
            id="genai-reasoning",
        ),
    ],
)
def test_variants_of_the_conventions(
    tmp_path: Path, attributes: dict[str, object], expected: list[str]
) -> None:
    span = {**chat(1, "", ""), "attributes": attributes}
    trace = read_one(READER, write_json(tmp_path / "trace.json", [span]))
    assert texts(trace) == expected


def test_verdicts_on_a_run_are_hidden(tmp_path: Path) -> None:
    verdict = {
        "name": "gen_ai.evaluation.result",
        "attributes": {"gen_ai.evaluation.name": "Relevance", "gen_ai.evaluation.score.value": 0.1},
    }
    span = chat(1, "a", "b", events=[verdict], **{"eval.Toxicity.label": "toxic"})
    trace = read_one(READER, write_json(tmp_path / "trace.json", [span]))
    assert texts(trace) == ["a", "b"]
    assert [name for name, _text in trace.meta.hidden] == ["Relevance", "eval.Toxicity.label"]
    assert "0.1" in trace.meta.hidden[0][1]


def test_a_failed_call_without_content_tells_its_error(tmp_path: Path) -> None:
    span = chat(1, "", "", status={"status_code": "ERROR", "description": "rate limit"})
    span["attributes"] = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
    trace = read_one(READER, write_json(tmp_path / "trace.json", [span]))
    assert texts(trace) == ["rate limit"]
    assert trace.span(0).status.value == "error"
    assert trace.span(0).key == f"{1:016x}"
    assert trace.span(0).tokens is not None


def test_broken_lines_and_spans_are_problems_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    lines = [
        json.dumps(chat(1, "a", "b")),
        '{"name": "cha',
        json.dumps({**chat(3, "e", "f"), "context": {}, "spanId": None, "traceId": TRACE}),
        json.dumps([1]),
        json.dumps({**chat(4, "g", "h"), "attributes": 5, "events": "x", "status": [], "name": {}}),
        json.dumps(chat(5, "i", "j")),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    report = read_file(READER, path)
    assert "line 2" in [problem.place for problem in report.problems]
    shown = [text for trace in report.traces for text in texts(trace)]
    assert shown[:2] == ["a", "b"]
    assert shown[-2:] == ["i", "j"]


def test_printed_spans_between_other_lines_and_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "stdout.json"
    first, second = (json.dumps(chat(n, f"q{n}", f"a{n}"), indent=4) for n in (1, 2))
    path.write_text(f"{first}\nsomething printed\n{second}\n{first[:200]}", encoding="utf-8")
    report = read_file(READER, path)
    (trace,) = report.traces
    assert texts(trace) == ["q1", "a1", "q2", "a2"]
    begin = first.count("\n") + 1
    assert report.problems[0].place == f"line {begin + 1}"
    assert len(report.problems) == 2
    assert trace.span(2).place == f"line {begin + 2}"


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"info": {}, "data": {"spans": [chat(1, "a", "b")]}}, id="mlflow"),
        pytest.param(
            [{**chat(1, "a", "b"), "attributes": {"mlflow.spanType": "LLM"}}], id="mlflow-list"
        ),
        pytest.param({"spans": [{"span_id": "1", "child_spans": []}]}, id="tree"),
        pytest.param([{"id": "1", "span_id": "1", "root_span_id": "1"}], id="braintrust"),
        pytest.param({"messages": [{"role": "user", "content": '"spanId"'}]}, id="messages"),
        pytest.param({"resourceMetrics": [{"spanId": 1}]}, id="metrics"),
        pytest.param({"spans": [1, None]}, id="numbers"),
    ],
)
def test_what_others_write_is_left_to_them(tmp_path: Path, document: object) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "file.json", document)))


def test_a_call_that_was_recorded_without_arguments_has_those_of_the_tool_that_ran(
    tmp_path: Path,
) -> None:
    part = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {}}
    asked = chat(1, "find it", "")
    attributes = asked["attributes"]
    assert isinstance(attributes, dict)
    attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": [part]}])
    ran = chat(2, "", "")
    ran["attributes"] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"of": "kettle"}',
        "gen_ai.tool.call.result": "none found",
    }
    trace = read_one(READER, write_json(tmp_path / "trace.json", [asked, ran]))
    assert [(trace.span(i).key, trace.text(i)) for i in range(len(trace))][1:] == [
        ("c1:call", '{"of": "kettle"}'),
        ("c1:result", "none found"),
    ]
    assert trace.span(1).preview == "of=kettle"


def test_named_groups_of_spans_are_a_trace_each(tmp_path: Path) -> None:
    """Phoenix's fixtures keep the spans of several traces under names."""

    def group(number: int) -> list[dict[str, object]]:
        return [
            {
                "name": "chat",
                "context": {"trace_id": f"{number:032x}", "span_id": f"{number:016x}"},
                "span_kind": "LLM",
                "status_code": "OK",
                "start_time": "2026-03-01T09:00:00Z",
                "attributes": {"input.value": f"question {number}", "output.value": "yes"},
            }
        ]

    document = {"first_case": group(1), "note": "made", "second_case": group(2), "empty": []}
    report = read_file(READER, write_json(tmp_path / "groups.json", document))
    assert report.format == "phoenix"
    assert not report.problems
    assert [trace.text(0) for trace in report.traces] == ["question 1", "question 2"]
    assert [trace.span(0).place for trace in report.traces] == ["/first_case/0", "/second_case/0"]
