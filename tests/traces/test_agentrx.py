"""AgentRx's intermediate form, and the telemetry of recorded runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Outcome, SpanKind, SpanStatus
from mast_tui.traces.readers.agentrx import READER
from tests.traces.checks import CORPUS, check_sound, needs_corpus, read_one, write_json

RECORDED = CORPUS / "agentrx-recorded"


def substep(role: str, content: str) -> dict[str, object]:
    return {"sub_index": 1, "role": role, "content": content}


def intermediate(*substeps: dict[str, object]) -> dict[str, object]:
    steps: list[object] = [{"index": n, "substeps": [one]} for n, one in enumerate(substeps, 1)]
    return {"trajectory_id": "q", "instruction": "Find it.", "steps": steps}


def recorded() -> dict[str, Any]:
    def span(number: int, **fields: Any) -> dict[str, Any]:
        code = fields.pop("code", "OK")
        return {
            "span_id": f"s{number}",
            "start_time_unix_ns": number * 10**9,
            "end_time_unix_ns": number * 10**9 + 5 * 10**8,
            "status": {"status_code": code},
            "attributes": fields,
            "events": [],
        }

    asks = span(
        1,
        **{
            "gen_ai.agent.name": "Researcher",
            "experiment.operation_type": "agent_llm",
            "gen_ai.request.model": "m-1",
            "tool.name": "Search",
            "tool.args_json": '{"of": "kettle"}',
            "gen_ai.usage.input_tokens": 7,
            "agent.output_message": "I search.",
            "task.expected_result": "SECRET",
        },
    )
    fails = span(
        2,
        code="ERROR",
        **{
            "gen_ai.agent.name": "Search",
            "experiment.operation_type": "tool_call",
            "tool.name": "Search",
            "tool.result_json": '{"ok": false}',
        },
    )
    fails["events"] = [{"name": "fault.injected", "attributes": {"category": "SECRET"}}]
    around = span(0, **{"gen_ai.agent.framework": "langgraph"})
    return {
        "schema": "otel-json-local-v0",
        "task": "Which kettle?",
        "task_metadata": {"expected_answer": {"id": "SECRET"}, "injection_node": "SECRET"},
        "status": "FAILED",
        "spans": [fails, asks, around],
    }


def test_substeps_are_spans_and_whoever_was_called_is_a_tool(tmp_path: Path) -> None:
    document = intermediate(
        substep("Coordinator", "Agent: Coordinator\nRole: orchestration\nStatus: OK\nOutput: go"),
        substep("Search", "Role: dependency\nStatus: ERROR\nTool: Search\nStatus: OK"),
        substep("Search", json.dumps({"role": "dependency", "status": "OK", "tool_name": "S"})),
        substep("user", "Thanks."),
    )
    trace = read_one(READER, write_json(tmp_path / "trajectory_ir.json", document))
    check_sound(trace)
    spans = [trace.span(index) for index in range(len(trace))]
    assert [(span.key, span.kind, span.agent, span.name, span.status) for span in spans] == [
        ("/steps/0/substeps/0", SpanKind.MESSAGE, "Coordinator", None, SpanStatus.OK),
        ("/steps/1/substeps/0", SpanKind.TOOL_RESULT, "Search", "Search", SpanStatus.ERROR),
        ("/steps/2/substeps/0", SpanKind.TOOL_RESULT, "Search", "S", SpanStatus.OK),
        ("/steps/3/substeps/0", SpanKind.MESSAGE, "user", None, SpanStatus.UNKNOWN),
    ]
    assert trace.meta.task == "Find it."


def test_recorded_spans_in_their_order_with_what_was_planted_kept_apart(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "run.json", recorded()))
    check_sound(trace)
    spans = [trace.span(index) for index in range(len(trace))]
    assert [(span.key, span.kind.value, span.agent, span.name) for span in spans] == [
        ("/task", "message", "user", None),
        ("s1", "message", "Researcher", None),
        ("s1:call", "tool_call", "Researcher", "Search"),
        ("s2", "tool_result", "Search", "Search"),
    ]
    assert (spans[3].parent, spans[3].status, spans[3].start) == ("s1:call", SpanStatus.ERROR, 2.0)
    assert spans[1].tokens is not None
    assert (trace.meta.system, trace.meta.model) == ("langgraph", "m-1")
    assert trace.meta.outcome is Outcome.FAILED
    key = trace.meta.answer_key
    assert [name for name, _found in key.sections()] == [
        *("reference", "scores", "step_scores", "failures"),
    ]
    assert key.step_scores[0][0] == "s2"
    assert not any("SECRET" in trace.text(index) for index in range(len(trace)))


def test_broken_parts_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    document = intermediate(substep("A", "x"))
    steps = document["steps"]
    assert isinstance(steps, list)
    steps += [5, {"substeps": [None]}]
    trace = read_one(READER, write_json(tmp_path / "a.json", document))
    assert [problem.place for problem in trace.problems] == ["/steps/1"]
    assert len(trace) == 2
    broken = {**recorded(), "spans": [5, *recorded()["spans"]]}
    trace = read_one(READER, write_json(tmp_path / "b.json", broken))
    assert [problem.place for problem in trace.problems] == ["/spans/0"]
    assert len(trace) == 4


@pytest.mark.parametrize("document", [{"steps": [{"substeps": 5}]}, {"schema": "other"}, []])
def test_what_is_neither(tmp_path: Path, document: object) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "a.json", document)))


@needs_corpus
def test_real_files_are_read_without_problems() -> None:
    forms = {form: sorted(RECORDED.glob(form)) for form in ("otel/*", "runs/*/*/*/trajectory_ir*")}
    for paths in forms.values():
        assert len(paths) >= 15
        for path in paths:
            report = read_file(path, named=True)
            assert (report.format, report.problems) == ("agentrx", ())
            (trace,) = report.traces
            assert len(trace) in (5, 7)
            assert trace.problems == ()
            check_sound(trace)
    for path in forms["otel/*"]:
        trace = read_file(path, named=True).traces[0]
        broke = any(trace.span(i).status is SpanStatus.ERROR for i in range(len(trace)))
        assert broke == (trace.meta.outcome is Outcome.FAILED)
        assert dict(trace.meta.answer_key.reference).keys() >= {"expected_result"}
