"""Telemetry of Codex as ITBench's runner collects it: requests of OTLP log records."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, SpanKind, SpanStatus, Tokens, Trace
from mast_tui.traces.readers.codex.otel_logs import READER
from tests.traces.checks import read_file, spans_of, texts_of, write_json_lines

Values = dict[str, object]
ONE = "01a2b3c4-0000-7000-8000-0000000000e1"


def log_record(
    name: str, /, second: float = 0, thread: str | None = ONE, **values: object
) -> Values:
    """Return a log record as Codex writes it; ``__`` in a field's name stands for a dot."""
    minutes, seconds = divmod(second, 60)
    attributes: Values = {
        "event.name": f"codex.{name}",
        "event.timestamp": f"2026-09-21T14:{13 + int(minutes):02d}:{seconds:06.3f}Z",
        "app.version": "0.98.0",
        "user.email": "someone@example.org",
        "model": "gpt-oss-120b",
        **{field.replace("__", "."): value for field, value in values.items()},
    }
    if thread is not None:
        attributes["conversation.id"] = thread
    return {
        "time_unix_nano": "0",
        "severity_text": "INFO",
        "body": None,
        "attributes": attributes,
        "trace_id": None,
    }


def request(*records: Values, path: str = "/v1/logs") -> Values:
    """Return the collector's record of a request with these log records."""
    scope = {"scope": {"name": "codex_otel"}, "log_records": list(records)}
    logs = {"resource": {"attributes": {"service.name": "codex_exec"}}, "scope_logs": [scope]}
    return {
        "timestamp": "2026-09-21T14:13:20.000000Z",
        "path": path,
        "content_type": "application/x-protobuf",
        "content_length": 100,
        "data": {"resource_logs": [logs]},
    }


def result(call_id: str, second: float = 5, **values: object) -> Values:
    """Return the event of a tool's result."""
    result_values: Values = {
        "tool_name": "shell",
        "call_id": call_id,
        "arguments": '{"command":["ls"]}',
        "duration_ms": "1500",
        "success": "true",
        "output": "a  b",
        **values,
    }
    return log_record("tool_result", second, ONE, **result_values)


def usage(input_count: object = "900", output_count: object = "40", second: float = 3) -> Values:
    """Return the event of a model call with these token counts."""
    return log_record(
        "sse_event",
        second,
        event__kind="response.completed",
        input_token_count=input_count,
        output_token_count=output_count,
        cached_token_count=512,
        reasoning_token_count=None,
        tool_token_count="940",
    )


def report_of(folder: Path, *requests: object) -> FileReport:
    return read_file(READER, write_json_lines(folder / "traces.jsonl", *requests))


def trace_of(folder: Path, *records: Values) -> Trace:
    (trace,) = report_of(folder, request(*records)).traces
    return trace


def test_a_run_from_its_prompt_to_its_answer(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        log_record("user_prompt", 1, prompt="Why is checkout slow?", prompt_length="21"),
        log_record("api_request", 2, http__response__status_code=200, duration_ms="80"),
        log_record("sse_event", 2, event__kind="response.output_item.done", duration_ms="9"),
        usage(),
        log_record("tool_decision", 3.1, tool_name="shell", call_id="c", decision="approved"),
        result("c"),
        log_record("agent_response", 9, response="It is the cache.", item__id="msg_1"),
    )
    place = "line 1 /data/resource_logs/0/scope_logs/0/log_records"
    assert [(span.key, span.kind.value, span.role.value) for span in spans_of(trace)] == [
        (f"{place}/0", "message", "user"),
        (f"{place}/3", "log", "log"),
        (f"{place}/4", "log", "log"),
        ("c:call", "tool_call", "agent"),
        ("c:result", "tool_result", "tool"),
        ("msg_1", "message", "agent"),
    ]
    assert texts_of(trace)[3:] == ['{"command":["ls"]}', "a  b", "It is the cache."]
    call, answer = spans_of(trace)[3:5]
    assert (call.name, answer.name, answer.parent) == ("shell", "shell", "c:call")
    assert (answer.start or 0) - (call.start or 0) == 1.5
    assert call.end == answer.start
    assert answer.status is SpanStatus.OK
    assert [span.tokens for span in spans_of(trace) if span.tokens] == [Tokens(900, 40)]
    assert trace.meta.task == "Why is checkout slow?"
    assert (trace.meta.system, trace.meta.model) == ("codex", "gpt-oss-120b")
    assert (trace.identity.trace_id, trace.identity.native, trace.record) == (ONE, True, None)


@pytest.mark.parametrize(
    ("success", "status"), [("false", "error"), (True, "ok"), (None, "unknown")]
)
def test_the_status_of_a_call(tmp_path: Path, success: object, status: str) -> None:
    trace = trace_of(tmp_path, result("c", success=success))
    assert trace.span(1).status.value == status


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("api_request", {"http__response__status_code": 503, "error__message": "overloaded"}),
        ("api_request", {"http__response__status_code": 429}),
        ("sse_event", {"event__kind": "response.failed", "error__message": "overloaded"}),
        ("websocket_request", {"success": "false"}),
        ("hologram", {"error__message": "overloaded"}),
    ],
)
def test_failures_are_errors_in_the_log(
    tmp_path: Path, name: str, values: dict[str, object]
) -> None:
    trace = trace_of(tmp_path, log_record(name, 0, ONE, **values), result("c"))
    assert (trace.span(0).kind, trace.span(0).status) == (SpanKind.LOG, SpanStatus.ERROR)
    if "error__message" in values:
        assert trace.text(0).startswith("overloaded")


def test_requests_that_were_not_decoded_are_problems(tmp_path: Path) -> None:
    failed = request() | {"data": {"error": "no protobuf here"}, "body_hex": "0a"}
    spans = request() | {"path": "/v1/traces", "data": {"resource_spans": []}}
    path = write_json_lines(
        tmp_path / "traces.jsonl", request(result("a")), failed, spans, request(result("b"))
    )
    with path.open("ab") as file:
        file.write(b'[1]\n{"path": "/v1/lo')
    (trace,) = read_file(READER, path).traces
    assert [span.key for span in spans_of(trace)] == ["a:call", "a:result", "b:call", "b:result"]
    assert [problem.place for problem in trace.problems] == [
        "line 2",
        "line 3",
        "line 5",
        "line 6",
    ]
    assert "no protobuf here" in trace.problems[0].message
    assert "/v1/traces" in trace.problems[1].message


def test_a_file_without_a_decoded_request_has_failed(tmp_path: Path) -> None:
    lost = request() | {"data": {"error": "no protobuf here"}}
    report = report_of(tmp_path, lost)
    assert report.failed is not None
    assert "no protobuf here" in report.failed


def test_requests_in_json_are_read(tmp_path: Path) -> None:
    pairs = [
        {"key": "event.name", "value": {"stringValue": "codex.user_prompt"}},
        {"key": "conversation.id", "value": {"stringValue": ONE}},
        {"key": "prompt", "value": {"stringValue": "go"}},
    ]
    sent = {"timeUnixNano": "1790000000500000000", "attributes": pairs}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [sent]}]}]}
    for field in ("data", "body"):
        one = {key: value for key, value in request().items() if key != "data"} | {field: logs}
        (trace,) = report_of(tmp_path, one).traces
        assert texts_of(trace) == ["go"]
        assert trace.span(0).start == 1_790_000_000.5
        assert trace.span(0).place == f"line 1 /{field}/resourceLogs/0/scopeLogs/0/logRecords/0"


@pytest.mark.parametrize(
    "record",
    [
        {"resource_logs": []},
        {"path": "/v1/logs", "text": "x"},
        {"path": "/srv", "content_type": "x", "data": {"resource_logs": []}},
        {"path": 3, "data": {"resource_logs": []}, "content_type": ""},
    ],
)
def test_other_json_is_not_recognised(tmp_path: Path, record: object) -> None:
    assert not READER.recognises(Source(write_json_lines(tmp_path / "a.jsonl", record)))
