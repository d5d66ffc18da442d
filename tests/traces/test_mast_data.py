from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Outcome, Role, SpanKind
from mast_tui.traces.readers.mast_data import READER
from tests.traces.checks import (
    CORPUS,
    SAMPLES,
    needs_corpus,
    read_file,
    read_one,
    write_json,
    write_json_lines,
)
from tests.traces.test_frameworks import AG2, APPWORLD, HYPERAGENT, LOGS, MAGENTIC


def record(log: object, **fields: object) -> dict[str, object]:
    return {
        "mas_name": "Some",
        "llm_name": "opal-2",
        "benchmark_name": "Shop",
        "trace_id": 7,
        "trace": {"key": "k", "index": 0, "trajectory": log},
        "mast_annotation": {"1.1": 1},
        **fields,
    }


def spans_of(report: FileReport) -> list[list[tuple[str, str]]]:
    return [
        [(trace.span(index).key, trace.text(index)) for index in range(len(trace))]
        for trace in report.traces
    ]


@pytest.mark.parametrize("name", LOGS)
def test_the_log_of_a_record_reads_like_the_log_by_itself(name: str, tmp_path: Path) -> None:
    from mast_tui.traces.readers import recognise

    log = tmp_path / "run.log"
    log.write_text(LOGS[name], encoding="utf-8")
    reader = recognise(Source(log))
    assert reader is not None
    alone = read_file(reader, log)
    inside = read_file(READER, write_json(tmp_path / "run.json", record(LOGS[name])))
    assert spans_of(inside) == spans_of(alone)
    assert inside.traces[0].meta.system == alone.traces[0].meta.system


@pytest.mark.parametrize("log", [AG2, HYPERAGENT])
def test_a_log_that_is_json_may_be_nested_in_place(log: str, tmp_path: Path) -> None:
    as_text = read_file(READER, write_json(tmp_path / "a.json", record(log)))
    in_place = read_file(READER, write_json(tmp_path / "a.json", record(json.loads(log))))
    assert spans_of(as_text) == spans_of(in_place) != [[]]


@pytest.mark.parametrize("as_lines", [True, False])
def test_nested_values_may_be_json_texts(tmp_path: Path, as_lines: bool) -> None:
    values = [record(MAGENTIC), record(AG2), record(json.loads(AG2)["trajectory"])]
    written = [
        {**value, **{name: json.dumps(value[name]) for name in ("trace", "mast_annotation")}}
        for value in values
    ]
    write, name = (write_json_lines, "a.jsonl") if as_lines else (write_json_list, "a.json")
    plain = read_file(READER, write(tmp_path / name, *values))
    as_text = read_file(READER, write(tmp_path / name, *written))
    assert spans_of(as_text) == spans_of(plain)
    assert all(spans_of(plain))
    places = [trace.span(0).place for trace in plain.traces]
    assert [trace.span(0).place for trace in as_text.traces] == places
    assert dict(as_text.traces[0].meta.hidden)["mast_annotation"] == '{"1.1": 1}'


def test_a_log_that_is_json_is_not_taken_for_what_stands_around_one(tmp_path: Path) -> None:
    """AG2's logs have a trajectory too: the record may hold such a log without an object."""
    value = {**record(""), "trace": AG2}
    trace = read_one(READER, write_json(tmp_path / "a.json", value))
    assert trace.meta.system == "AG2"
    assert trace.span(0).key == "/trajectory/0"


def write_json_list(path: Path, *values: object) -> Path:
    return write_json(path, list(values))


def test_one_record_a_list_of_them_and_one_a_line(tmp_path: Path) -> None:
    records = [record(MAGENTIC), record(APPWORLD)]
    one = read_file(READER, write_json(tmp_path / "one.json", records[0]))
    listed = read_file(READER, write_json(tmp_path / "runs.json", records))
    on_lines = read_file(READER, write_json_lines(tmp_path / "runs.jsonl", *records))
    assert spans_of(listed) == spans_of(on_lines)
    assert spans_of(one) == spans_of(listed)[:1]
    assert [trace.record for trace in (*one.traces, *listed.traces)] == [None, 0, 1]
    assert [trace.identity for trace in listed.traces] == [t.identity for t in on_lines.traces]
    assert one.traces[0].span(0).place == "/trace/trajectory line 1"
    assert listed.traces[1].span(0).place == "/1/trace/trajectory line 2"
    assert on_lines.traces[1].span(0).place == "line 2 /trace/trajectory line 2"


def test_the_native_number_is_no_identity(tmp_path: Path) -> None:
    path = write_json(tmp_path / "runs.json", [record(MAGENTIC), record(APPWORLD)])
    ids = [trace.identity.trace_id for trace in read_file(READER, path).traces]
    assert len(set(ids)) == 2
    assert not any(trace.identity.native for trace in read_file(READER, path).traces)


def test_the_framework_is_told_from_the_log_and_swapped_fields_are_put_right(
    tmp_path: Path,
) -> None:
    swapped = record(MAGENTIC, mas_name="GAIA", benchmark_name="Magentic")
    trace = read_one(READER, write_json(tmp_path / "run.json", swapped))
    assert (trace.meta.system, trace.meta.benchmark) == ("Magentic-One", "GAIA")
    straight = record(MAGENTIC, mas_name="Magentic", benchmark_name="GAIA")
    trace = read_one(READER, write_json(tmp_path / "run.json", straight))
    assert (trace.meta.system, trace.meta.benchmark) == ("Magentic-One", "GAIA")
    assert trace.meta.model == "opal-2"


def test_labels_and_answers_are_hidden_and_in_no_span(tmp_path: Path) -> None:
    value = record(APPWORLD, human_labels={"1.1": "SECRET"})
    trace = read_one(READER, write_json(tmp_path / "run.json", value))
    hidden = dict(trace.meta.hidden)
    assert {"mast_annotation", "human_labels", "success", "failed"} <= hidden.keys()
    assert trace.meta.outcome is Outcome.FAILED
    for index in range(len(trace)):
        assert "SECRET" not in trace.text(index)


def test_the_log_under_its_other_name(tmp_path: Path) -> None:
    value = {"index": 3, "mas_name": "x", "trace_text": MAGENTIC, "human_labels": {}}
    trace = read_one(READER, write_json(tmp_path / "runs.json", [value]))
    assert trace.span(0).place == "/0/trace_text line 1"


def test_a_log_of_no_known_framework_is_read_by_paragraph(tmp_path: Path) -> None:
    log = "\nfirst\nstill first\n  \n\nsecond\n"
    trace = read_one(READER, write_json(tmp_path / "run.json", record(log)))
    assert [(trace.span(i).key, trace.text(i)) for i in range(len(trace))] == [
        ("line 2", "first\nstill first"),
        ("line 6", "second"),
    ]
    assert trace.meta.system == "Some"


def test_a_log_that_is_a_list_of_messages(tmp_path: Path) -> None:
    log = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    trace = read_one(READER, write_json(tmp_path / "run.json", record(log)))
    assert [trace.span(index).key for index in range(2)] == ["/0", "/1"]


def test_a_broken_line_keeps_its_record_number(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "runs.jsonl", record(MAGENTIC), 0, record(APPWORLD))
    mended = [t.identity.trace_id for t in read_file(READER, path).traces]
    path.write_text(path.read_text(encoding="utf-8").replace("\n0\n", "\n{\n"), encoding="utf-8")
    assert [t.identity.trace_id for t in read_file(READER, path).traces] == mended


def test_records_without_a_log_and_broken_lines_are_named(tmp_path: Path) -> None:
    path = write_json(tmp_path / "runs.json", [record(MAGENTIC), {"mas_name": "x"}, 3])
    report = read_file(READER, path)
    assert len(report.traces) == 1
    assert [problem.place for problem in report.problems] == ["/1", "/2"]
    path = write_json_lines(tmp_path / "runs.jsonl", record(MAGENTIC))
    path.write_text(path.read_text(encoding="utf-8") + '{"a":\n[]\n{"tr', encoding="utf-8")
    report = read_file(READER, path)
    assert [problem.place for problem in report.problems] == ["line 2", "line 3", "line 4"]


@pytest.mark.parametrize(
    "value",
    [
        [{"trace_id": "hf_1", "mas_name": "x", "hf_annotations": {}}],
        {"messages": [{"role": "user", "content": "x"}]},
        {"trace": "run.json", "mode": "1.3"},
        [],
        3,
    ],
)
def test_other_json_is_left_to_others(tmp_path: Path, value: object) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "x.json", value)))


JUNK = st.none() | st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    fields=st.dictionaries(
        st.sampled_from(["mas_name", "llm_name", "benchmark_name", "mast_annotation", "outcome"]),
        JUNK,
    ),
    log=st.sampled_from(sorted(LOGS.values())) | st.text() | JUNK,
    trace=st.none() | JUNK,
)
def test_no_record_raises(
    fields: dict[str, object], log: object, trace: object, tmp_path: Path
) -> None:
    value = record(log, **fields)
    if trace is not None:
        value["trace"] = trace
    source = Source(write_json(tmp_path / "runs.json", [record(MAGENTIC), value]))
    assert READER.recognises(source)
    read_file(READER, source.path)


@pytest.mark.slow
@needs_corpus
def test_the_human_labelled_runs_of_the_study() -> None:
    path = CORPUS / "mast-human" / "iaa_rounds_1_2.json"
    report = read_file(READER, path)
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert not report.problems
    assert [trace.record for trace in report.traces] == list(range(len(raw)))
    for trace, value in zip(report.traces, raw, strict=True):
        assert trace.meta.system == value["mas_name"]
        assert trace.meta.benchmark == value["benchmark_name"]
        assert "human_labels" in dict(trace.meta.hidden)
        for index in range(len(trace)):
            span, text = trace.span(index), trace.text(index)
            if span.key.startswith("line ") and value["trace_text"][:1] != "{":
                number = int(span.key.removeprefix("line "))
                rest = "\n".join(value["trace_text"].split("\n")[number - 1 :])
                assert text in rest


@needs_corpus
def test_spans_of_the_studys_frameworks() -> None:
    report = read_file(READER, CORPUS / "mast-human" / "iaa_rounds_1_2.json")
    by_system = {trace.meta.system: trace for trace in report.traces}
    turns = [
        (span.agent, span.role)
        for span in map(by_system["ChatDev"].span, range(len(by_system["ChatDev"])))
        if span.kind is SpanKind.MESSAGE and span.role is Role.AGENT
    ]
    assert 14 <= len(turns) <= 16
    assert ("Code Reviewer", Role.AGENT) in turns
    agents = {
        by_system["HyperAgent"].span(index).agent for index in range(len(by_system["HyperAgent"]))
    }
    assert {"Planner", "Navigator", "Editor", "Inner-Editor-Assistant"} <= agents
    appworld = report.traces[0]
    assert appworld.meta.outcome is Outcome.FAILED
    spotify = [
        appworld.span(index)
        for index in range(len(appworld))
        if appworld.span(index).agent == "Spotify"
    ]
    code = {span.key for span in spotify if span.kind is SpanKind.TOOL_CALL}
    results = [span for span in spotify if span.kind is SpanKind.TOOL_RESULT]
    assert len(results) == 3
    assert all(span.parent in code for span in results)


@pytest.mark.slow
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are absent")
def test_every_plant_in_the_samples_stands_where_it_says() -> None:
    from mast_tui.traces.readers import recognise

    for name in ("planted.jsonl", "clean.jsonl"):
        for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines():
            plant = json.loads(line)
            path = SAMPLES / plant["trace"]
            if path.suffix == ".jsonl":
                continue
            reader = recognise(Source(path))
            assert reader is not None
            report = read_file(reader, path)
            (trace,) = (t for t in report.traces if t.record == plant["record"])
            first, last = trace.index_of(plant["first"]), trace.index_of(plant["last"])
            assert first is not None, plant
            assert last is not None, plant
            assert first <= last, plant
            if plant["quote"] is not None:
                index = trace.index_of(plant["quote_span"])
                assert index is not None, plant
                assert plant["quote"] in trace.text(index), plant
