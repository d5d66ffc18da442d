"""Telemetry of Codex as ITBench's runner collects it: requests of OTLP log records."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, SpanKind, SpanStatus, Trace
from mast_tui.traces.readers.codex.otel_logs import READER
from tests.traces.checks import read_file, spans_of, write_json_lines

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


def report_of(folder: Path, *requests: object) -> FileReport:
    return read_file(READER, write_json_lines(folder / "traces.jsonl", *requests))


def trace_of(folder: Path, *records: Values) -> Trace:
    (trace,) = report_of(folder, request(*records)).traces
    return trace


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
