"""LangSmith, Langfuse, MLflow, Weave, Braintrust: one run, told in five ways, is one timeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, SpanStatus, Trace
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
