"""The version of the system that ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.library import read_file
from tests.traces.checks import write_json, write_json_lines
from tests.traces.claude_sessions import user
from tests.traces.rollouts import message, meta

ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "a", "version": "4.2"},
    "steps": [{"step_id": 1, "source": "user", "message": "go"}],
}
STREAM = [
    {"type": "system", "subtype": "init", "session_id": "s", "claude_code_version": "2.2.0"},
    {"type": "user", "session_id": "s", "message": {"role": "user", "content": "go"}},
]
INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "t", "model": "m", "packages": {"inspect_ai": "0.3.210"}},
    "samples": [
        {"id": 1, "epoch": 1, "input": "go", "messages": [{"role": "user", "content": "go"}]}
    ],
}
OTEL = {
    "name": "chat",
    "context": {"trace_id": "1" * 32, "span_id": "1" * 16},
    "start_time": "2026-03-01T09:00:00Z",
    "attributes": {"gen_ai.prompt": "go", "gen_ai.operation.name": "chat"},
}
RESOURCE = {"service.name": "desk", "service.version": "7.1.0"}
OTLP_SPAN = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "chat", "startTimeUnixNano": "1"}
OTLP = {
    "resourceSpans": [
        {
            "resource": {
                "attributes": [{"key": "service.version", "value": {"stringValue": "7.1.0"}}]
            },
            "scopeSpans": [{"spans": [OTLP_SPAN]}],
        }
    ]
}
LANGFUSE = {
    "id": "o",
    "traceId": "t",
    "type": "GENERATION",
    "startTime": "2026-03-01T09:00:00Z",
    "input": "go",
    "metadata": {"resourceAttributes": RESOURCE},
}


@pytest.mark.parametrize(
    ("records", "version"),
    [
        pytest.param([meta(cli_version="0.151.0"), message("user", "go")], "0.151.0", id="codex"),
        pytest.param([user("u1", None, "go")], "2.1.207", id="claude-code"),
        pytest.param(STREAM, "2.2.0", id="claude-code-stream"),
        pytest.param(ATIF, "4.2", id="atif"),
        pytest.param({**ATIF, "agent": {"name": "a", "version": "unknown"}}, None, id="unknown"),
        pytest.param(INSPECT, "0.3.210", id="inspect"),
        pytest.param(OTLP, "7.1.0", id="otlp"),
        pytest.param({**OTEL, "resource": {"attributes": RESOURCE}}, "7.1.0", id="otel-spans"),
        pytest.param(OTEL, None, id="otel-without-version"),
        pytest.param({"data": [LANGFUSE]}, "7.1.0", id="langfuse"),
    ],
)
def test_the_version_of_the_system_is_read(
    records: object, version: str | None, tmp_path: Path
) -> None:
    """`report --by version` groups by it."""
    if isinstance(records, list):
        path = write_json_lines(tmp_path / "run.jsonl", *records)
    else:
        path = write_json(tmp_path / "run.json", records)
    (trace,) = read_file(path, named=True).traces
    assert trace.meta.version == version
