"""LangSmith, Langfuse, MLflow, Weave, Braintrust: one run, told in five ways, is one timeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, SpanStatus, Tokens, Trace
from mast_tui.traces.readers import readers
from mast_tui.traces.readers.vendors.reader import READER
from tests.traces import vendor_layouts as layouts
from tests.traces.checks import (
    read_file,
    read_one,
    write_json,
    write_json_lines,
)

Layout = tuple[str, Callable[[], object]]

LAYOUTS: list[Layout] = [
    ("langsmith", layouts.langsmith),
    ("langsmith", lambda: layouts.langsmith(chain=False)),
    ("langsmith", lambda: {"runs": layouts.langsmith(), "cursors": {}}),
    ("langsmith", layouts.langsmith_nested),
    ("langsmith", layouts.langsmith_as_texts),
    ("langfuse", layouts.langfuse),
    ("langfuse", lambda: [layouts.langfuse()]),
    ("langfuse", lambda: layouts.langfuse()["observations"]),
    ("langfuse", lambda: {"data": layouts.langfuse()["observations"], "meta": {"page": 1}}),
    ("langfuse", layouts.langfuse_as_shown),
    ("langfuse", layouts.langfuse_in_storage),
    ("mlflow", layouts.mlflow),
    ("mlflow", lambda: layouts.mlflow(version=2)),
    ("mlflow", lambda: [{"trace_id": "tr-1", "trace": json.dumps(layouts.mlflow())}]),
    ("weave", layouts.weave),
    ("braintrust", layouts.braintrust),
    ("braintrust", lambda: layouts.braintrust()["events"]),
]
IDS = [f"{name}-{number}" for number, (name, _layout) in enumerate(LAYOUTS)]

each_layout = pytest.mark.parametrize(("name", "layout"), LAYOUTS, ids=IDS)


def one_line(text: str) -> str:
    return " ".join(text.split())


def timeline(trace: Trace) -> list[tuple[str, str | None, str]]:
    return [
        (span.kind.value, span.name, one_line(trace.text(span.index)))
        for span in map(trace.span, range(len(trace)))
    ]


EXPECTED = [
    ("message", None, layouts.SYSTEM),
    ("message", None, layouts.TASK),
    ("tool_call", "temperature", '{"city": "Rome"}'),
    ("tool_call", "temperature", '{"city": "Oslo"}'),
    ("tool_result", "temperature", layouts.FOUND),
    ("tool_result", "temperature", layouts.FAILURE),
    ("message", None, layouts.ANSWER),
]


def with_plain_braces(rows: list[tuple[str, str | None, str]]) -> list[tuple[str, str | None, str]]:
    return [(kind, name, text.replace("{ ", "{").replace(" }", "}")) for kind, name, text in rows]


@each_layout
def test_one_run_is_one_timeline(name: str, layout: Callable[[], object], tmp_path: Path) -> None:
    report = read_file(READER, write_json(tmp_path / "run.json", layout()))
    assert report.format == name
    assert report.problems == ()
    [trace] = report.traces
    assert with_plain_braces(timeline(trace)) == EXPECTED
    spans = [trace.span(index) for index in range(len(trace))]
    assert [span.parent for span in spans] == [None] * 4 + [spans[2].key, spans[3].key, None]
    assert [spans[2].key, spans[3].key] == ["call_1:call", "call_2:call"]
    assert spans[5].status is SpanStatus.ERROR
    assert SpanStatus.ERROR not in [spans[index].status for index in (0, 1, 2, 3, 4, 6)]
    tokens = [(s.index, s.tokens.input, s.tokens.output) for s in spans if s.tokens is not None]
    assert tokens == [(3, 50, 20), (6, 90, 12)]
    assert [span.start for span in spans[2:]] == [layouts.START + s for s in (1, 1, 3, 5, 7)]
    assert [span.end for span in spans[2:]] == [layouts.START + s for s in (4, 6, 4, 6, 8)]
    assert trace.meta.task == layouts.TASK
    assert trace.meta.system == "weather"
    assert trace.meta.model == "small-1"
    assert trace.record is None
    assert trace.identity.native


@each_layout
def test_nothing_that_judges_the_run_is_shown(
    name: str, layout: Callable[[], object], tmp_path: Path
) -> None:
    trace = read_one(READER, write_json(tmp_path / "run.json", layout()))
    assert not any("SECRET" in text or "score" in text for _k, _n, text in timeline(trace))


@pytest.mark.parametrize(
    ("layout", "names"),
    [
        (layouts.langsmith, ["feedback_stats correctness n", "feedback_stats correctness avg"]),
        (layouts.langfuse, ["correct", "correct comment", "correct"]),
        (layouts.mlflow, ["correct", "correct rationale"]),
        (layouts.braintrust, ["expected", "correct", "correct why"]),
    ],
)
def test_scores_are_hidden(layout: Callable[[], object], names: list[str], tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "run.json", layout()))
    assert [name for name, _text in trace.meta.hidden] == names


@each_layout
def test_no_other_reader_takes_it(name: str, layout: Callable[[], object], tmp_path: Path) -> None:
    source = Source(write_json(tmp_path / "run.json", layout()))
    others = [one.name for one in readers() if one is not READER and one.recognises(source)]
    assert others == []


@pytest.mark.parametrize(
    "document",
    [
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "a", "spanId": "b"}]}]}]},
        [
            {
                "name": "x",
                "context": {"trace_id": "a", "span_id": "b"},
                "attributes": {"mlflow.x": 1},
            }
        ],
        {"trace_id": "a", "spans": [{"span_id": "b", "span_attributes": {}, "child_spans": []}]},
        [{"role": "user", "content": "what is a run_type, a dotted_order?"}],
        {"messages": [{"role": "user", "content": "hi"}], "run_type": "llm", "id": "1"},
        {"object": "trace.span", "id": "s", "trace_id": "t", "started_at": "2026-01-01", "type": 1},
        {"observations": [{"type": "SPAN", "id": "1"}]},
        {"run_type": ["llm"], "op_name": None, "span_id": 1},
        [],
        {},
        "run_type",
    ],
)
def test_other_files_are_not_taken(document: object, tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", document)
    assert not READER.recognises(Source(path))
    lines = write_json_lines(tmp_path / "a.jsonl", document, document)
    assert not READER.recognises(Source(lines))


def two_runs(records: object) -> object:
    """The records twice, the second time under other ids."""
    text = json.dumps(records)
    for old, new in (
        (layouts.RUN[:-1], "22222222-2222-4222-8222-22222222222"),
        ("f" * 32, "e" * 32),
    ):
        text = text.replace(old, new)
    return json.loads(text.replace("tr-1", "tr-2").replace(layouts.ANSWER, "OTHER"))


def check_two(report: FileReport, ids: list[str], answers: tuple[str, str]) -> None:
    assert [trace.identity.trace_id for trace in report.traces] == ids
    assert [trace.record for trace in report.traces] == [0, 1]
    for trace, answer in zip(report.traces, answers, strict=True):
        assert len(trace) == len(EXPECTED)
        assert trace.text(len(trace) - 1) == answer


def test_runs_mixed_in_one_file_are_parted(tmp_path: Path) -> None:
    runs = layouts.langsmith()
    others = two_runs(runs)
    assert isinstance(others, list)
    mixed = [run for pair in zip(others, runs, strict=True) for run in pair]
    ids = ["22222222-2222-4222-8222-222222222221", layouts.RUN]
    answers = ("OTHER", layouts.ANSWER)
    check_two(read_file(READER, write_json(tmp_path / "a.json", mixed)), ids, answers)
    check_two(read_file(READER, write_json_lines(tmp_path / "a.jsonl", *mixed)), ids, answers)


def test_lines_hold_a_trace_each(tmp_path: Path) -> None:
    trace = layouts.langfuse()
    path = write_json_lines(tmp_path / "a.jsonl", trace, two_runs(trace))
    report = read_file(READER, path)
    check_two(report, ["f" * 32, "e" * 32], (layouts.ANSWER, "OTHER"))
    assert report.traces[1].span(0).place == "line 2 /observations/1"


def test_a_broken_line_costs_nothing_but_itself(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "a.jsonl", *layouts.langsmith(), "no run", {"no": "id"})
    path.write_text(path.read_text() + '{"cut', encoding="utf-8")
    report = read_file(READER, path)
    assert [problem.place for problem in report.problems] == ["line 6", "line 7", "line 8"]
    assert len(report.traces[0]) == len(EXPECTED)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_keys_stay_when_records_are_appended(count: int, tmp_path: Path) -> None:
    root, *others = layouts.langsmith()[::-1]
    runs = [root | {"outputs": None}, *others]
    early = read_one(READER, write_json_lines(tmp_path / "a.jsonl", *runs[:count]))
    late = read_one(READER, write_json_lines(tmp_path / "a.jsonl", *runs))
    keys = [early.span(index).key for index in range(len(early))]
    assert len(keys) >= count
    assert keys == [late.span(index).key for index in range(len(keys))]
    assert early.identity.trace_id == late.identity.trace_id
    assert early.identity.content_hash != late.identity.content_hash


def test_a_run_told_in_two_halves_is_one(tmp_path: Path) -> None:
    halves = []
    for run in layouts.langsmith()[::-1]:
        halves.append(run | {"outputs": None, "end_time": None})
        halves.append({name: run[name] for name in ("id", "trace_id", "outputs", "end_time")})
    trace = read_one(READER, write_json(tmp_path / "a.json", halves))
    assert with_plain_braces(timeline(trace)) == EXPECTED


def test_a_trace_without_its_observations_shows_what_went_in_and_out(tmp_path: Path) -> None:
    trace = layouts.langfuse() | {"observations": ["o-1", "o-2"], "htmlPath": "/project/p"}
    path = write_json(tmp_path / "a.json", {"data": [trace], "meta": {"totalItems": 1}})
    report = read_file(READER, path)
    assert report.problems == ()
    shown = " ".join(text for _kind, _name, text in timeline(report.traces[0]))
    assert layouts.TASK in shown
    assert layouts.ANSWER in shown
    assert "SECRET" not in shown


def test_runs_within_a_score_are_hidden_with_it(tmp_path: Path) -> None:
    events = layouts.braintrust()["events"]
    assert isinstance(events, list)
    judge = events[1] | {
        "span_id": "judge",
        "span_parents": [layouts.run_id(6)],
        "input": [{"role": "user", "content": "SECRET-judge"}],
    }
    trace = read_one(READER, write_json(tmp_path / "a.json", [*events, judge]))
    assert with_plain_braces(timeline(trace)) == EXPECTED


def test_runs_whose_parents_go_round_are_all_read(tmp_path: Path) -> None:
    runs = [
        {"id": one, "parent_run_id": other, "run_type": "llm", "outputs": {"output": f"said {one}"}}
        for one, other in (("a", "b"), ("b", "a"), ("c", "c"))
    ]
    report = read_file(READER, write_json(tmp_path / "a.json", runs))
    said = [text for trace in report.traces for _k, _n, text in timeline(trace)]
    assert sorted(said)[-1] == "said c"
    assert any("said a" in text or "said b" in text for text in said)


def test_deep_nesting_is_read(tmp_path: Path) -> None:
    run: dict[str, object] = {"id": "0", "run_type": "llm", "outputs": {"output": "deepest"}}
    for depth in range(1, 300):
        run = {"id": str(depth), "run_type": "chain", "inputs": {}, "child_runs": [run]}
    trace = read_one(READER, write_json(tmp_path / "a.json", run))
    assert timeline(trace)[-1] == ("message", None, "deepest")
    assert trace.identity.trace_id == "299"


RUN = "4f0c2a9e-6a52-4d1c-9b1e-1f6f7f9a2b10"
CHILD = "5a1d3b0f-7b63-4e2d-8c2f-2a7a8a0b3c21"
ORDER = f"20260301T090000000001Z{RUN}"


def _batches() -> tuple[dict[str, object], dict[str, object]]:
    """A run whose start and end LangSmith's client sent apart; the end has no id of its own."""
    post = {
        "id": CHILD,
        "trace_id": RUN,
        "dotted_order": f"{ORDER}.20260301T090001000002Z{CHILD}",
        "name": "ChatTest",
        "run_type": "llm",
        "start_time": 1_772_355_601_000,
        "inputs": {"messages": [{"role": "user", "content": layouts.TASK}]},
        "outputs": {},
    }
    patch = {
        "trace_id": RUN,
        "dotted_order": post["dotted_order"],
        "end_time": 1_772_355_603_000,
        "outputs": {
            "choices": [{"message": {"role": "assistant", "content": layouts.ANSWER}}],
            "usage_metadata": {"input_tokens": 11, "output_tokens": 4},
        },
    }
    root: dict[str, object] = {
        "id": RUN,
        "trace_id": RUN,
        "dotted_order": ORDER,
        "name": "agent",
        "run_type": "chain",
    }
    root |= {"start_time": 1_772_355_600_000, "inputs": {"question": layouts.TASK}}
    return {"post": [root, post]}, {"patch": [patch]}


@pytest.mark.parametrize("in_lines", [False, True])
def test_batches_of_langsmiths_client_are_joined(in_lines: bool, tmp_path: Path) -> None:
    first, second = _batches()
    if in_lines:
        path = write_json_lines(tmp_path / "batches.jsonl", first, second)
    else:
        path = write_json(tmp_path / "batch.json", {**first, **second})
    report = read_file(READER, path)
    assert report.format == "langsmith"
    assert not report.problems
    (trace,) = report.traces
    assert timeline(trace) == [("message", None, layouts.TASK), ("message", None, layouts.ANSWER)]
    answer = trace.span(1)
    assert trace.identity.trace_id == RUN
    assert (answer.key, answer.start, answer.end) == (
        f"{CHILD}/answered/0",
        1_772_355_601,
        1_772_355_603,
    )
    assert answer.tokens == Tokens(11, 4)


AGENTS_TRACE = {"object": "trace", "id": "trace_1", "workflow_name": "Rail desk", "metadata": None}


def _agents_span(number: int, parent: int | None, **more: object) -> dict[str, object]:
    error = more.pop("error", None)
    return {
        "object": "trace.span",
        "id": f"span_{number}",
        "trace_id": "trace_1",
        "parent_id": None if parent is None else f"span_{parent}",
        "started_at": f"2026-03-01T09:00:{number:02}.000000+00:00",
        "ended_at": f"2026-03-01T09:00:{number + 1:02}.000000+00:00",
        "span_data": more,
        "error": error,
    }


AGENTS_SPANS = [
    _agents_span(1, None, type="agent", name="Clerk", handoffs=["Driver"], tools=["temperature"]),
    _agents_span(
        2,
        1,
        type="generation",
        model="gpt-test",
        input=layouts.OPENAI[:2],
        output=[layouts.OPENAI[2]],
        usage={"input_tokens": 20, "output_tokens": 5},
    ),
    _agents_span(
        3, 1, type="function", name="temperature", input='{"city": "Rome"}', output=layouts.FOUND
    ),
    _agents_span(
        4,
        1,
        type="function",
        name="temperature",
        input='{"city": "Oslo"}',
        error={"message": layouts.FAILURE, "data": {}},
    ),
    _agents_span(8, 1, type="custom", name="turn", data={"sdk_span_type": "turn", "turn": 1}),
    _agents_span(5, 1, type="handoff", from_agent="Clerk", to_agent="Driver"),
    _agents_span(
        6,
        1,
        type="guardrail",
        name="polite",
        triggered=True,
        error={"message": "tripwire", "data": None},
    ),
    _agents_span(
        7,
        1,
        type="response",
        response_id="resp_1",
        input=layouts.OPENAI[:5],
        response={
            "object": "response",
            "model": "gpt-test",
            "output": [{"type": "message", "role": "assistant", "content": layouts.ANSWER}],
        },
    ),
]


@pytest.mark.parametrize("layout", ["lines", "list", "spans", "batch"])
def test_traces_of_openais_agents_sdk(layout: str, tmp_path: Path) -> None:
    records = [AGENTS_TRACE, *AGENTS_SPANS]
    documents: dict[str, object] = {
        "list": records,
        "spans": {**AGENTS_TRACE, "spans": AGENTS_SPANS},
        "batch": {"data": records},
    }
    path = tmp_path / "trace.json"
    if layout == "lines":
        write_json_lines(path, *records)
    else:
        write_json(path, documents[layout])
    report = read_file(READER, path)
    assert report.format == "openai-agents"
    assert not report.problems
    (trace,) = report.traces
    assert with_plain_braces(timeline(trace)) == [
        ("log", "Clerk", "agent Clerk begins"),
        *EXPECTED[:6],
        ("log", "handoff", "from_agent: Clerk to_agent: Driver"),
        ("log", "polite", "name: polite triggered: true tripwire"),
        EXPECTED[6],
    ]
    spans = [trace.span(index) for index in range(len(trace))]
    assert [span.key for span in spans if span.status is SpanStatus.ERROR] == ["span_4", "span_6"]
    assert (trace.meta.system, trace.meta.model) == ("Rail desk", "gpt-test")
    assert trace.identity.trace_id == "trace_1"


ROOT = {"id": RUN, "trace_id": RUN, "dotted_order": ORDER, "name": "agent", "run_type": "chain"}
MODEL_RUN = {
    "id": CHILD,
    "parent_run_id": RUN,
    "trace_id": RUN,
    "name": "ChatTest",
    "run_type": "llm",
    "inputs": {"messages": [{"role": "user", "content": layouts.TASK}]},
    "outputs": {"choices": [{"message": {"role": "assistant", "content": "a draft"}}]},
}


@pytest.mark.parametrize(
    ("outputs", "shown"),
    [
        ({"output": layouts.ANSWER}, layouts.ANSWER),
        (
            {
                "messages": [
                    {"type": "human", "content": layouts.TASK},
                    {"type": "ai", "content": layouts.ANSWER},
                ]
            },
            layouts.ANSWER,
        ),
        ({"verdict": "open", "place": "Rome"}, '{ "verdict": "open", "place": "Rome" }'),
        ({"verdict": "a draft", "state": {"question": layouts.TASK}}, None),
        ({"messages": [{"type": "ai", "content": "a draft"}]}, None),
    ],
)
def test_what_came_out_of_a_root_is_shown_where_no_call_tells_it(
    outputs: object, shown: str | None, tmp_path: Path
) -> None:
    runs = [{**ROOT, "inputs": {}, "outputs": outputs}, MODEL_RUN]
    trace = read_one(READER, write_json(tmp_path / "runs.json", runs))
    assert [text for _kind, _name, text in timeline(trace)][2:] == ([shown] if shown else [])


@pytest.mark.parametrize(("told", "status"), [("success", "ok"), ("error", "error")])
def test_the_status_of_a_tools_message_counts(told: str, status: str, tmp_path: Path) -> None:
    message = {"type": "tool", "content": "Error rates: 0", "tool_call_id": "c", "status": told}
    tool = {**ROOT, "run_type": "tool", "inputs": {"input": "x"}, "outputs": {"output": message}}
    trace = read_one(READER, write_json(tmp_path / "runs.json", [tool]))
    assert trace.span(1).status.value == status


def test_mlflow_tells_the_exception_and_the_message_of_the_status(tmp_path: Path) -> None:
    span = {
        "span_id": "a1",
        "name": "tool",
        "start_time_unix_nano": 1_772_355_600_000_000_000,
        "status": {"code": "STATUS_CODE_ERROR", "message": "ToolError"},
        "attributes": {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": "{}"},
        "events": [
            {"name": "exception", "attributes": {"exception.message": "the station is closed"}}
        ],
    }
    path = write_json(
        tmp_path / "m.json", {"info": {"trace_id": "tr-1"}, "data": {"spans": [span]}}
    )
    trace = read_one(READER, path)
    assert trace.text(1) == "the station is closed\nToolError"
