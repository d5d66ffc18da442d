"""OpenTelemetry traces: every layout and every convention tell the same run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.model import Trace
from mast_tui.traces.readers.otel.reader import READER
from tests.traces.checks import read_file
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
from tests.traces.otel_layouts import LAYOUTS


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
def test_each_layout_and_convention_gives_the_same_run(
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
