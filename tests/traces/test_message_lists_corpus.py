"""Message lists of the corpus, held to their raw files."""

from __future__ import annotations

import json

from mast_tui.traces.model import Outcome
from mast_tui.traces.readers.chat.reader import READER
from tests.traces.checks import CORPUS, needs_corpus, read_file, read_one


@needs_corpus
def test_the_retail_runs_of_tau_bench() -> None:
    path = CORPUS / "tau-bench" / "retail.json"
    report = read_file(READER, path)
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert report.format == "tau-bench"
    assert not report.problems
    assert len(report.traces) == len(raw)
    for trace, record in zip(report.traces, raw, strict=True):
        assert (trace.meta.outcome is Outcome.FAILED) == (record["reward"] < 1)
        spans = [trace.span(index) for index in range(len(trace))]
        calls = [call for m in record["traj"] for call in m.get("tool_calls") or ()]
        assert [span.key for span in spans if span.kind == "tool_call"] == [
            f"{call['id']}:call" for call in calls
        ]
        for span in spans:
            if span.kind == "tool_result":
                assert span.parent == span.key.replace(":result", ":call")
                assert trace.index_of(span.parent) is not None
        for number, message in enumerate(record["traj"]):
            if message["content"] and message["role"] != "tool":
                index = trace.index_of(f"/traj/{number}")
                assert index is not None
                assert trace.text(index) == message["content"]


@needs_corpus
def test_mistaken_agents_of_who_and_when_are_those_of_the_spans() -> None:
    paths = sorted((CORPUS / "who-and-when").glob("*/*.json"))
    hits = 0
    for path in paths:
        trace = read_one(READER, path)
        raw = json.loads(path.read_text(encoding="utf-8"))
        assert len(trace) == len(raw["history"])
        index = trace.index_of(f"/history/{raw['mistake_step']}")
        assert index is not None
        hits += trace.span(index).agent == raw["mistake_agent"]
        spoken = "\n".join(trace.text(number) for number in range(len(trace)))
        assert raw["mistake_reason"] not in spoken
    assert hits >= 0.9 * len(paths) > 0


@needs_corpus
def test_failed_agents_of_agentrx_are_those_of_the_spans() -> None:
    labels = json.loads(
        (CORPUS / "agentrx" / "magentic_one_ground_truth.json").read_text(encoding="utf-8")
    )
    hits = total = 0
    for record in labels:
        path = CORPUS / "agentrx" / "magentic-one" / f"{record['trajectory_id']}.json"
        raw = json.loads(path.read_text(encoding="utf-8"))
        trace = read_one(READER, path)
        assert trace.meta.system == "Magentic-One"
        for failure in record["failures"]:
            number = failure["step_number"] - 1
            index = trace.index_of(f"/{number}")
            assert index is not None
            assert trace.text(index) == raw[number]["content"]
            # Some labels name whom the orchestrator addresses in that step.
            addressed = raw[number]["role"].partition("-> ")[2].rstrip(")")
            concerned = {trace.span(index).agent.lower(), addressed.lower()}
            total += 1
            hits += failure["failed_agent"].lower() in concerned
    assert hits >= 0.98 * total > 0
