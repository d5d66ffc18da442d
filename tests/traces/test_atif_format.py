"""ATIF trajectories: traces written and read again, and sub-agents."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.atif_format import COPY_SUFFIX, atif_line
from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.model import (
    AnswerKey,
    Outcome,
    Role,
    SpanKind,
    SpanStatus,
    Tokens,
    Trace,
    TraceIdentity,
    TraceMeta,
)
from tests.traces.checks import SAMPLES, check_sound, corpus_files, spans_of, write_json

names = st.text("abc XYZ_-é", min_size=1, max_size=8).filter(
    lambda name: name == " ".join(name.split())
)
message_texts = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
objects = st.dictionaries(st.text(max_size=4), st.integers(-9, 9) | st.text(max_size=6), max_size=3)


def trace_of(steps: StepList, **meta: Any) -> Trace:
    identity = TraceIdentity("run-1", "0" * 64, 1, "test", 1, native=True)
    return Trace(identity, Path("x.json"), StepSpans(steps.steps), meta=TraceMeta(**meta))


def write_and_read(folder: Path, trace: Trace) -> tuple[dict[str, Any], Trace]:
    """Write a trace; return the trajectory and the trace that is read from it."""
    path = folder / "out.json"
    path.write_bytes(atif_line(trace))
    report = read_file(path, named=False)
    assert report.format == "atif"
    [actual] = report.traces
    check_sound(actual)
    return json.loads(path.read_bytes()), actual


def span_rows(trace: Trace) -> list[tuple[object, ...]]:
    """Return the fields of each span that ATIF stores, with arguments of calls as JSON."""
    rows: list[tuple[object, ...]] = []
    for index in range(len(trace)):
        span = trace.span(index)
        text = trace.text(index)
        if span.kind is SpanKind.TOOL_CALL:
            try:
                value = load_json(text) if text.strip() else {}
            except InvalidJSON:
                value = text
            text = json.dumps(value if isinstance(value, dict) else {"input": value})
        rows.append((span.kind, span.role, span.agent, span.name, text))
    return rows


def calls_by_result(trace: Trace) -> Counter[tuple[str, str | None]]:
    """Count the pairs of the text of a result and the arguments of its call."""
    spans = spans_of(trace)
    spans_with_call = ((span, trace.index_of(span.parent or "")) for span in spans)
    return Counter(
        (trace.text(span.index), None if call is None else json.dumps(load_json(trace.text(call))))
        for span, call in spans_with_call
        if span.kind is SpanKind.TOOL_RESULT
    )


def check_standard(record: dict[str, Any]) -> None:
    """Fail unless the steps, calls and results of a trajectory obey the standard."""
    assert [step["step_id"] for step in record["steps"]] == list(range(1, len(record["steps"]) + 1))
    assert record["agent"]["name"]
    assert record["agent"]["version"]
    earlier_ids: set[str] = set()
    for step in record["steps"]:
        assert step["source"] in ("system", "user", "agent")
        assert isinstance(step["message"], str)
        calls = step.get("tool_calls", [])
        if step["source"] != "agent":
            assert not {"reasoning_content", "tool_calls", "metrics"} & step.keys()
        ids = {call["tool_call_id"] for call in calls}
        assert len(ids) == len(calls)
        assert not ids & earlier_ids
        earlier_ids |= ids
        assert all(isinstance(call["arguments"], dict) for call in calls)
        for result in step.get("observation", {"results": []})["results"]:
            assert result.get("source_call_id", next(iter(ids), None)) in ids | {None}


@st.composite
def runs(draw: st.DrawFn, *, in_order: bool) -> StepList:
    """Draw turns of agents and messages of others; results follow their calls at once or later."""
    steps = StepList()
    pending: list[tuple[str, str, str]] = []

    def add_result(call: tuple[str, str, str]) -> None:
        key, agent, tool = call
        status = draw(st.sampled_from((SpanStatus.OK, SpanStatus.ERROR)))
        steps.add(
            f"{key}:result", SpanKind.TOOL_RESULT, Role.TOOL, agent, draw(message_texts),
            place="p", name=tool, parent=key, status=status,
        )  # fmt: skip

    for turn in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(("user", "system", "agent", "agent", "log")))
        if kind == "log":
            steps.add(f"{turn}", SpanKind.LOG, Role.LOG, "log", draw(message_texts), place="p")
        elif kind != "agent":
            steps.add(f"{turn}", SpanKind.MESSAGE, Role(kind), kind, draw(message_texts), place="p")
        else:
            agent = draw(names)
            start = draw(st.none() | st.integers(1, 2_000_000_000))
            if draw(st.booleans()):
                steps.add(
                    f"{turn}t", SpanKind.REASONING, Role.AGENT, agent, draw(message_texts),
                    place="p", start=start,
                )  # fmt: skip
            if draw(st.booleans()):
                steps.add(
                    f"{turn}m", SpanKind.MESSAGE, Role.AGENT, agent, draw(message_texts),
                    place="p", start=start,
                )  # fmt: skip
            calls = []
            for number in range(draw(st.integers(0, 3))):
                tool = draw(names)
                text = json.dumps(draw(objects))
                key = steps.add(
                    f"{turn}c{number}", SpanKind.TOOL_CALL, Role.AGENT, agent, text,
                    place="p", name=tool, start=start,
                )  # fmt: skip
                calls.append((key, agent, tool))
            pending += draw(st.permutations(calls))
        while pending and (in_order or draw(st.booleans())):
            add_result(pending.pop(0))
    return steps


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs(in_order=True), st.none() | names)
def test_written_spans_are_read_again(tmp_path: Path, steps: StepList, system: str | None) -> None:
    trace = trace_of(steps, system=system)
    record, actual = write_and_read(tmp_path, trace)
    check_standard(record)
    assert span_rows(actual) == span_rows(trace)
    assert calls_by_result(actual) == calls_by_result(trace)
    for index in range(len(trace)):
        if trace.span(index).kind is SpanKind.TOOL_RESULT:
            assert actual.span(index).status is trace.span(index).status
        elif trace.span(index).role is Role.AGENT:
            assert actual.span(index).start == trace.span(index).start


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs(in_order=False))
def test_late_results_are_read_at_their_calls(tmp_path: Path, steps: StepList) -> None:
    trace = trace_of(steps)
    record, actual = write_and_read(tmp_path, trace)
    check_standard(record)
    assert Counter(span_rows(actual)) == Counter(span_rows(trace))
    assert calls_by_result(actual) == calls_by_result(trace)


@st.composite
def spans_of_any_kind(draw: st.DrawFn) -> StepList:
    steps = StepList()
    for number in range(draw(st.integers(1, 6))):
        earlier = [step.key for step in steps.steps]
        steps.add(
            f"k{number}",
            draw(st.sampled_from(SpanKind)),
            draw(st.sampled_from(Role)),
            draw(names),
            draw(st.text()),
            place="p",
            name=draw(st.none() | names),
            parent=draw(st.sampled_from([None, *earlier])),
            start=draw(st.none() | st.floats(allow_nan=False)),
            tokens=draw(st.none() | st.builds(Tokens, st.integers(0, 9), st.none())),
        )
    return steps


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spans_of_any_kind())
def test_no_text_of_any_span_is_lost(tmp_path: Path, steps: StepList) -> None:
    record, actual = write_and_read(tmp_path, trace_of(steps))
    check_standard(record)
    texts = Counter(actual.text(index) for index in range(len(actual)))
    expected = Counter(
        step.text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        for step in steps.steps
        if step.kind is not SpanKind.TOOL_CALL and step.text.strip()
    )
    assert not Counter({t: n for t, n in expected.items() if "\ufffd" not in t}) - texts
    keys = [key for step in record["steps"] for key in step["extra"]["spans"]]
    keys += [
        result["extra"]["span"]
        for step in record["steps"]
        for result in step.get("observation", {"results": []})["results"]
    ]
    assert set(keys) == {step.key for step in steps.steps}


def test_the_outcome_of_a_run_is_left_out(tmp_path: Path) -> None:
    steps = StepList()
    steps.add("a", SpanKind.MESSAGE, Role.USER, "user", "go", place="p")
    steps.add("b", SpanKind.MESSAGE, Role.AGENT, "bot", "done", place="p", tokens=Tokens(7, 2))
    trace = trace_of(
        steps,
        task="Find the kettle.",
        model="m-1",
        task_id="t7",
        outcome=Outcome.FAILED,
        score=0.25,
        answer_key=AnswerKey(reference=(("answer", "on the shelf"),)),
    )
    record, actual = write_and_read(tmp_path, trace)
    assert "shelf" not in json.dumps(record)
    assert (actual.meta.outcome, actual.meta.score, actual.meta.hidden) == (
        Outcome.UNKNOWN,
        None,
        (),
    )
    meta = actual.meta
    assert (meta.task, meta.model, meta.task_id) == ("Find the kettle.", "m-1", "t7")
    assert actual.identity.trace_id == "run-1" + COPY_SUFFIX
    assert record["steps"][1]["metrics"] == {"prompt_tokens": 7, "completion_tokens": 2}
    assert actual.span(1).tokens == Tokens(7, 2)


def test_sub_agents_below_the_depth_limit_are_runs_of_their_own(tmp_path: Path) -> None:
    references = [{"subagent_trajectory_ref": {"trajectory_id": str(n + 1)}} for n in range(40)]
    chain = [
        {
            "schema_version": "ATIF-v1.8",
            "session_id": "session-1",
            "trajectory_id": str(number),
            "agent": {"name": f"a-{number}"},
            "steps": [
                {
                    "step_id": 1,
                    "source": "agent",
                    "message": f"of {number}",
                    "observation": {"results": [reference]},
                }
            ],
        }
        for number, reference in enumerate(references)
    ]
    report = read_file(write_json(tmp_path / "t.json", chain), named=False)
    messages = []
    for trace in report.traces:
        check_sound(trace)
        messages += [row[-1] for row in span_rows(trace) if row[0] is SpanKind.MESSAGE]
    assert sorted(map(str, messages)) == sorted(f"of {number}" for number in range(40))
    assert 1 < len(report.traces) < 40


@pytest.mark.slow
def test_written_real_traces_are_read_without_loss(tmp_path: Path) -> None:
    for report in scan([SAMPLES, *corpus_files(4)]):
        for trace in report.traces:
            read_fully(trace)
            if len(trace):
                record, actual = write_and_read(tmp_path, trace)
                check_standard(record)
                expected = [(row[0], *row[2:]) for row in span_rows(trace)]
                assert Counter((row[0], *row[2:]) for row in span_rows(actual)) == Counter(expected)
