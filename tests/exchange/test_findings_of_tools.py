"""Imports of Pisama and AgentDebugX, whose findings return to the spans of the trace."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from mast_tui.cli.convert import agentdebugx_line
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.importers.findings_of_tools import read_agentdebugx, read_pisama
from mast_tui.labels import AnnotatorKind, Severity
from mast_tui.traces.atif_format import atif_line
from tests.judges.memory_trace import MemoryTrace


def trace() -> MemoryTrace:
    made = MemoryTrace("run-7").user("Mend the shop.").think("First a look.")
    made.say("I look at the pods.").run("kubectl get pods", "none").run("kubectl get pods", "none")
    return made.say("Done.")


def written(path: Path, data: bytes | object) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def span_id(atif: dict[str, Any], step: int, child: int) -> str:
    """Return the span id of Pisama 0.7: a hash of trace, document, agent, step and tool."""
    run = hashlib.sha256(atif["session_id"].encode()).hexdigest()[:32]
    named = [run, [atif["trajectory_id"]], [atif["agent"]["name"]], step, child]
    return hashlib.sha256(json.dumps(named, separators=(",", ":")).encode()).hexdigest()[:16]


def issue(kind: str, *spans: list[str]) -> dict[str, Any]:
    return {
        "type": kind,
        "summary": f"{kind} seen",
        "severity": 80,
        "confidence": 0.7,
        "evidence": [{"description": "", "span_ids": list(one), "data": {}} for one in spans],
        "recommendation": None,
    }


@pytest.fixture
def atif(tmp_path: Path) -> dict[str, Any]:
    file = written(tmp_path / "atif.json", atif_line(trace()))
    document: dict[str, Any] = json.loads(file.read_bytes())
    return document


def pisama_answer(tmp_path: Path, atif: dict[str, Any], *issues: dict[str, Any]) -> Path:
    run = hashlib.sha256(atif["session_id"].encode()).hexdigest()[:32]
    return written(tmp_path / "said.json", {"issues": issues, "trace_id": run})


def test_pisama_spans_are_found_and_repeated_evidence_joined(
    tmp_path: Path, atif: dict[str, Any]
) -> None:
    turn = next(step["step_id"] for step in atif["steps"] if step.get("tool_calls"))
    last = atif["steps"][-1]["step_id"]
    calls = [span_id(atif, turn, 1), span_id(atif, turn + 1, 1)]
    answer = pisama_answer(
        tmp_path,
        atif,
        issue("loop", calls, calls),
        issue("derailment"),
        issue("brand_new", [span_id(atif, last, 0)]),
    )
    incoming = read_pisama([answer, tmp_path / "atif.json"])
    assert incoming.problems == ()
    (work,) = incoming.work
    assert (work.annotator, work.author_kind) == ("judge:pisama", AnnotatorKind.JUDGE)
    assert work.trace_id == "run-7"
    made = trace()
    keys = [made.span(index).key for index in range(len(made))]
    found = [(one.mode, one.target.first, one.target.last) for one in work.labels.values()]
    assert found == [
        ("loop", "call_1:call", "call_2:call"),
        ("derailment", None, None),
        ("other", keys[-1], keys[-1]),
    ]
    assert {"call_1:call", "call_2:call"} <= set(keys)
    assert next(iter(work.labels.values())).note == "loop seen\nSeverity 80 of 100"
    assert [*work.labels.values()][2].note.startswith("brand_new\n")
    assert next(iter(work.labels.values())).confidence == 0.7


def test_unknown_spans_and_files_are_problems_of_pisama(
    tmp_path: Path, atif: dict[str, Any]
) -> None:
    answer = pisama_answer(tmp_path, atif, issue("loop"))
    (problem,) = read_pisama([answer]).problems
    assert "convert --to atif" in problem.reason
    other = pisama_answer(tmp_path, atif, issue("loop", ["0123456789abcdef"]))
    (unknown,) = read_pisama([other, tmp_path / "atif.json"]).problems
    assert "0123456789abcdef" in unknown.reason
    with pytest.raises(ExchangeError, match="no answer of Pisama"):
        read_pisama([written(tmp_path / "x.json", {"a": 1})])


def test_pisama_s_answer_and_trajectory_may_be_one_file(tmp_path: Path) -> None:
    incoming = read_pisama([pisama_file(tmp_path / "both.json")])
    assert incoming.problems == ()
    assert [one.mode for one in incoming.work[0].labels.values()] == ["derailment", "other"]


def pisama_file(path: Path) -> Path:
    """Write an answer of Pisama and its trajectory as two lines of one file."""
    atif = json.loads(atif_line(trace()))
    run = hashlib.sha256(atif["session_id"].encode()).hexdigest()[:32]
    last = atif["steps"][-1]["step_id"]
    issues = [issue("derailment"), issue("brand_new", [span_id(atif, last, 0)])]
    lines = [{"issues": issues, "trace_id": run}, atif]
    return written(path, "\n".join(map(json.dumps, lines)).encode())


def agentdebugx_report() -> dict[str, Any]:
    trajectory = json.loads(agentdebugx_line(trace()))
    events = [event["event_id"] for event in trajectory["events"]]
    finding = {
        "failure_mode": {"mode_id": "planning.inefficient_plan", "name": "Inefficient plan"},
        "event_id": events[3],
        "evidence": ["the same again"],
        "suggestion": None,
        "confidence": None,
    }
    return {
        "trace_id": trajectory["trace_id"],
        "findings": [finding, {**finding, "event_id": events[5]}],
        "root_cause_event_id": events[3],
        "attribution": None,
        "summary": "It loops.",
    }


def report_file(tmp_path: Path, **fields: object) -> Path:
    return written(tmp_path / "report.json", agentdebugx_report() | fields)


def test_agentdebugx_events_are_spans_and_root_causes_fatal(tmp_path: Path) -> None:
    (work,) = read_agentdebugx([report_file(tmp_path)]).work
    assert work.trace_id == "run-7"
    made = trace()
    labels = {one.target.first: one for one in work.labels.values()}
    assert set(labels) == {made.span(3).key, made.span(5).key}
    assert labels[made.span(3).key].severity is Severity.FATAL
    assert labels[made.span(5).key].severity is None
    assert labels[made.span(3).key].note == "Inefficient plan\nthe same again"


def test_an_attribution_goes_before_the_root_cause(tmp_path: Path) -> None:
    key = trace().span(6).key
    blamed = {"hypotheses": [{"span_id": key, "step_index": 6}]}
    (work,) = read_agentdebugx([report_file(tmp_path, attribution=blamed)]).work
    fatal = [one for one in work.labels.values() if one.severity is Severity.FATAL]
    assert [(one.mode, one.target.first) for one in fatal] == [("other", key)]


def test_unknown_events_are_a_problem(tmp_path: Path) -> None:
    report = report_file(tmp_path, root_cause_event_id=f"evt_{'0' * 32}")
    (problem,) = read_agentdebugx([report]).problems
    assert "convert --to agentdebugx" in problem.reason


def test_a_trajectory_has_every_span_and_no_outcome() -> None:
    made = trace()
    trajectory = json.loads(agentdebugx_line(made))
    assert [event["event_id"] for event in trajectory["events"]] == [
        made.span(index).key for index in range(len(made))
    ]
    kinds = [event["event_type"] for event in trajectory["events"]]
    assert kinds[:4] == ["observation", "reflection", "agent.step", "tool.call"]
    assert trajectory["events"][3]["input"]["args"] == made.text(3)
    assert "outcome" not in trajectory
