"""Imports of agentdash, AdaMAST, Pisama and AgentDebugX."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from mast_tui.cli.convert import agentdebugx_line
from mast_tui.exchange.crosswalk import find_crosswalk, read_crosswalk, translated
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.importers.tool_judges import (
    read_adamast,
    read_agentdash,
    read_agentdebugx,
    read_pisama,
)
from mast_tui.labels import AnnotatorKind, Severity, VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.atif_format import atif_line
from tests.judges.memory_trace import MemoryTrace
from tests.traces.checks import write_json

MAST = load_mast()
CODES = [mode.code for mode in MAST.modes]


def dash_answer(*present: str, **fields: object) -> dict[str, Any]:
    modes = {code: int(code in present) for code in CODES}
    counts = {"task_completion": False, "total_failures": len(present)}
    return {"failure_modes": modes, "summary": "it stopped early", **counts, **fields}


@pytest.mark.parametrize(
    ("document", "name", "trace_id"),
    [
        (dash_answer("3.2"), "run 7.json", "run 7"),
        (dash_answer("3.2", trace_id="t"), "x.json", "t"),
        ([dash_answer("3.2", id=4)], "x.json", "4"),
        ({"t": dash_answer("3.2")}, "x.json", "t"),
        ([{"trace_id": "t", "annotation": dash_answer("3.2")}], "x.json", "t"),
    ],
)
def test_agentdash_answers_are_read_in_all_layouts(
    tmp_path: Path, document: object, name: str, trace_id: str
) -> None:
    incoming = read_agentdash([write_json(tmp_path / name, document)])
    assert incoming.problems == ()
    (work,) = incoming.work
    assert (work.annotator, work.author_kind, work.trace_id) == (
        "judge:agentdash",
        AnnotatorKind.JUDGE,
        trace_id,
    )
    assert [(label.mode, label.note, label.target.is_whole) for label in work.labels.values()] == [
        ("no_or_incomplete_verification", "it stopped early", True)
    ]
    assert len(work.verdicts) == 13
    assert "'No or Incorrect Verification'" in incoming.notes[0]


def test_a_zero_that_the_model_did_not_write_is_no_verdict(tmp_path: Path) -> None:
    response = "A. Bad.\nB. no\nC.\n1.1 no\n3.2: yes\n"
    file = write_json(tmp_path / "t.json", dash_answer("3.2", raw_response=response))
    incoming = read_agentdash([file], "bob")
    (work,) = incoming.work
    assert work.author_kind is AnnotatorKind.IMPORTED
    assert work.verdicts == {"disobey_task_specification": VerdictValue.ABSENT}
    assert "12 zeros" in incoming.notes[1]


def test_bad_answers_are_named(tmp_path: Path) -> None:
    for document, message in [
        (["x"], "file: record 1: has no 'failure_modes'"),
        ([dash_answer()], "file: record 1: has no 'trace_id'"),
        ([], ""),
        (3, "file: contains no agentdash answer"),
        ([dash_answer(trace_id="t")] * 2, "record 2: trace 't' appears twice"),
        ({"t": {"failure_modes": {"9.9": 1}}}, "'t': mode '9.9' is not in MAST"),
        ({"t": {"failure_modes": {"1.1": "yes"}}}, "'t': mode 1.1 is 'yes', not 1 or 0"),
    ]:
        incoming = read_agentdash([write_json(tmp_path / "x.json", document)])
        assert [message in str(problem) for problem in incoming.problems] == [True] * bool(message)


ADAMAST_TAXONOMY = {
    "display_name": "Research agents",
    "codes": [
        {
            "id": "A.1",
            "name": "Lost evidence",
            "description": "Sources are gone.",
            "category": "A",
            "when_to_use": "no passage is kept",
        },
        {"id": "A.2", "name": "Cut tool answer", "category": "A", "severity": "high"},
        {"id": "B.1", "name": "Weak checker", "category": "B"},
    ],
}


def mode_of(code: str, **fields: object) -> dict[str, object]:
    return {"code": code, "name": code, "evidence": "a quote", "confidence": "high"} | fields


def adamast_file(**fields: object) -> dict[str, Any]:
    judge = {"provider": "openai", "model": "m-1"}
    head = {"schema_version": 2, "mode": "default", "taxonomy": "/elsewhere/taxonomy.json"}
    return {**head, "judge": judge} | fields


def test_adamast_brings_its_own_taxonomy(tmp_path: Path) -> None:
    write_json(tmp_path / "taxonomy.json", ADAMAST_TAXONOMY)
    diagnoses = [
        {"trace_id": "t1", "failure_modes": [mode_of("A.2", severity="major")]},
        {"trace_id": "t2", "failure_modes": [], "none_apply": True},
        {"trace_id": "t3", "failure_modes": [], "none_apply": False},
    ]
    file = write_json(tmp_path / "out.json", adamast_file(diagnoses=diagnoses))
    incoming = read_adamast([file])
    assert incoming.problems == ()
    (taxonomy,) = incoming.taxonomies
    assert taxonomy.id == "adamast"
    assert [mode.code for mode in taxonomy.modes] == ["A.1", "A.2", "B.1"]
    assert taxonomy.modes[0].applies == ("no passage is kept",)
    first, second, third = incoming.work
    assert (first.annotator, first.author_kind) == ("judge:m-1@adamast", AnnotatorKind.JUDGE)
    (label,) = first.labels.values()
    verdicts = first.verdicts
    assert (label.mode, label.note) == ("code-a-2", "confidence: high\nseverity: major")
    assert label.evidence is not None
    assert label.evidence.quote == "a quote"
    assert set(verdicts.values()) == {VerdictValue.ABSENT}
    assert len(verdicts) == 2
    assert len(second.verdicts) == 3
    assert (third.labels, third.verdicts) == ({}, {})
    assert "from taxonomy.json" in incoming.notes[0]
    assert "1 diagnosis names no code" in incoming.notes[1]


def test_other_codes_stay_open_without_their_taxonomy_or_list(tmp_path: Path) -> None:
    modes = [mode_of("C.9", name="Odd")]
    diagnosis = {"trace_id": "t", "failure_modes": modes, "none_apply": False}
    incoming = read_adamast([write_json(tmp_path / "x.json", [diagnosis])], "judge:ada")
    (work,) = incoming.work
    assert (work.annotator, work.verdicts) == ("judge:ada", {})
    assert [mode.name for mode in incoming.taxonomies[0].modes] == ["Odd"]
    # Neither does a single diagnosis.
    taxonomy = write_json(tmp_path / "tax.json", ADAMAST_TAXONOMY)
    single: dict[str, object] = {"trace_id": "t", "code": "B.1", "label": "Weak checker"}
    single |= {"evidence": "so it said", "confidence": 0.75, "recovery_hint": "ask again"}
    file = write_json(tmp_path / "x.json", [single])
    (work,) = read_adamast([file, taxonomy]).work
    (label,) = work.labels.values()
    verdicts = work.verdicts
    assert (label.confidence, label.note, verdicts) == (0.75, "recovery hint: ask again", {})


def test_adamast_s_list_of_mast_is_translated(tmp_path: Path) -> None:
    diagnosis = {"trace_id": "t", "failure_modes": [mode_of("MAST-13"), mode_of("MAST-3")]}
    incoming = read_adamast([write_json(tmp_path / "x.json", adamast_file(diagnoses=[diagnosis]))])
    assert incoming.taxonomies[0].ref == "adamast-mast@1"
    path = find_crosswalk(Path("adamast-to-mast"))
    result = translated(incoming, read_crosswalk(path), MAST, path)
    (work,) = result.work
    assert {MAST.mode(label.mode).code for label in work.labels.values()} == {"3.3", "1.3"}
    assert {MAST.mode(slug).code for slug in work.verdicts} == set(CODES) - {"1.3", "3.3", "2.6"}


def test_a_bad_diagnosis_is_named(tmp_path: Path) -> None:
    for diagnosis, message in [
        ({"trace_id": "t"}, "diagnosis 1: has neither 'failure_modes' nor 'code'"),
        ({"failure_modes": [mode_of("A.1")]}, "diagnosis 1: has no 'trace_id'"),
        ({"trace_id": "t", "failure_modes": 3}, "diagnosis 1: 'failure_modes' is not a list"),
        ({"trace_id": "t", "failure_modes": [{}]}, "diagnosis 1: a failure mode has no 'code'"),
        ({"trace_id": "t", "failure_modes": [mode_of("Z.1")]},
         "diagnosis 1: code 'Z.1' is not in adamast@"),
        ({"trace_id": "t", "failure_modes": [mode_of("A.1", confidence=7)]},
         "diagnosis 1: confidence is 7"),
    ]:  # fmt: skip
        taxonomy = write_json(tmp_path / "tax.json", ADAMAST_TAXONOMY)
        incoming = read_adamast([write_json(tmp_path / "x.json", [diagnosis]), taxonomy])
        assert [message in str(problem) for problem in incoming.problems] == [True]


# Pisama and AgentDebugX


def memory_trace() -> MemoryTrace:
    trace = MemoryTrace("run-7").user("Mend the shop.").think("First a look.")
    trace.say("I look at the pods.").run("kubectl get pods", "none").run("kubectl get pods", "none")
    return trace.say("Done.")


def write_file(path: Path, data: bytes | object) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def span_id(atif: dict[str, Any], step: int, child: int) -> str:
    """Return the span id of Pisama 0.7: a hash of trace, document, agent, step and tool."""
    run = hashlib.sha256(atif["session_id"].encode()).hexdigest()[:32]
    identity = [run, [atif["trajectory_id"]], [atif["agent"]["name"]], step, child]
    return hashlib.sha256(json.dumps(identity, separators=(",", ":")).encode()).hexdigest()[:16]


def issue(kind: str, *spans: list[str]) -> dict[str, Any]:
    return {
        "type": kind,
        "summary": f"{kind} seen",
        "severity": 80,
        "confidence": 0.7,
        "evidence": [{"description": "", "span_ids": list(ids), "data": {}} for ids in spans],
        "recommendation": None,
    }


@pytest.fixture
def atif(tmp_path: Path) -> dict[str, Any]:
    file = write_file(tmp_path / "atif.json", atif_line(memory_trace()))
    document: dict[str, Any] = json.loads(file.read_bytes())
    return document


def pisama_answer(tmp_path: Path, atif: dict[str, Any], *issues: dict[str, Any]) -> Path:
    run = hashlib.sha256(atif["session_id"].encode()).hexdigest()[:32]
    return write_file(tmp_path / "answer.json", {"issues": issues, "trace_id": run})


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
    trace = memory_trace()
    keys = [trace.span(index).key for index in range(len(trace))]
    places = [(label.mode, label.target.first, label.target.last) for label in work.labels.values()]
    assert places == [
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
    with pytest.raises(ExchangeError, match="no Pisama answer"):
        read_pisama([write_file(tmp_path / "x.json", {"a": 1})])


def test_pisama_s_answer_and_trajectory_may_be_one_file(tmp_path: Path) -> None:
    incoming = read_pisama([pisama_file(tmp_path / "both.json")])
    assert incoming.problems == ()
    assert [label.mode for label in incoming.work[0].labels.values()] == ["derailment", "other"]


def pisama_file(path: Path) -> Path:
    """Write an answer of Pisama and its trajectory as two lines of one file."""
    atif = json.loads(atif_line(memory_trace()))
    run = hashlib.sha256(atif["session_id"].encode()).hexdigest()[:32]
    last = atif["steps"][-1]["step_id"]
    issues = [issue("derailment"), issue("brand_new", [span_id(atif, last, 0)])]
    lines = [{"issues": issues, "trace_id": run}, atif]
    return write_file(path, "\n".join(map(json.dumps, lines)).encode())


def agentdebugx_report() -> dict[str, Any]:
    trajectory = json.loads(agentdebugx_line(memory_trace()))
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
    return write_file(tmp_path / "report.json", agentdebugx_report() | fields)


def test_agentdebugx_events_are_spans_and_root_causes_fatal(tmp_path: Path) -> None:
    (work,) = read_agentdebugx([report_file(tmp_path)]).work
    assert work.trace_id == "run-7"
    trace = memory_trace()
    labels = {label.target.first: label for label in work.labels.values()}
    assert set(labels) == {trace.span(3).key, trace.span(5).key}
    assert labels[trace.span(3).key].severity is Severity.FATAL
    assert labels[trace.span(5).key].severity is None
    assert labels[trace.span(3).key].note == "Inefficient plan\nthe same again"


def test_an_attribution_goes_before_the_root_cause(tmp_path: Path) -> None:
    key = memory_trace().span(6).key
    blamed = {"hypotheses": [{"span_id": key, "step_index": 6}]}
    (work,) = read_agentdebugx([report_file(tmp_path, attribution=blamed)]).work
    fatal = [label for label in work.labels.values() if label.severity is Severity.FATAL]
    assert [(label.mode, label.target.first) for label in fatal] == [("other", key)]


def test_unknown_events_are_a_problem(tmp_path: Path) -> None:
    report = report_file(tmp_path, root_cause_event_id=f"evt_{'0' * 32}")
    (problem,) = read_agentdebugx([report]).problems
    assert "convert --to agentdebugx" in problem.reason


def test_a_trajectory_has_every_span_and_no_outcome() -> None:
    trace = memory_trace()
    trajectory = json.loads(agentdebugx_line(trace))
    assert [event["event_id"] for event in trajectory["events"]] == [
        trace.span(index).key for index in range(len(trace))
    ]
    kinds = [event["event_type"] for event in trajectory["events"]]
    assert kinds[:4] == ["observation", "reflection", "agent.step", "tool.call"]
    assert trajectory["events"][3]["input"]["args"] == trace.text(3)
    assert "outcome" not in trajectory
