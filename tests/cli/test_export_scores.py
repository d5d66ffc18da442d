"""Exports of labels as scores of the tools in which the traces were recorded."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.conftest import COLUMNS, Cli
from tests.traces import inspect_logs
from tests.traces.golden import golden_text

Label = Callable[..., str]

RUN: Final = "11111111-1111-4111-8111-11111111111"
"""The ids of calls of a run in Langfuse and LangSmith, but for the last digit."""

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
SPANS: Final = {f"00f067aa0ba902b{number}" for number in range(5)}
"""The ids of a run in OpenTelemetry."""


@pytest.fixture
def label(cli: Cli) -> Label:
    """A function that labels the trace of a file at every span and as a whole."""

    def label_trace(name: str, *more_rows: str) -> str:
        """Judge a trace by rules, import labels on it, and return its id."""
        (trace,) = cli.json("inspect", name, "--spans")["files"][0]["traces"]
        cli.ok("judge", name, "--judge", "rules")
        start = f"{trace['id']},alice,"
        keys = [span["key"] for span in trace["span_list"]]
        rows = [f"{start}1.3,present,{key},{key},at {number}" for number, key in enumerate(keys)]
        rows += [f"{start}3.1,present,,,stopped too early", f"{start}1.1,absent,,,"]
        rows += [f"{start}1.2,unsure,,,", f"{start},finished,,,", *more_rows]
        cli.label(*rows, columns=f"{COLUMNS},span_first,span_last,note")
        return str(trace["id"])

    return label_trace


def write_text(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def write_json(name: str, document: object) -> str:
    return write_text(name, json.dumps(document))


def keys_of(cli: Cli, name: str) -> list[str]:
    (trace,) = cli.json("inspect", name, "--spans")["files"][0]["traces"]
    return [span["key"] for span in trace["span_list"]]


def export_twice(cli: Cli, file_format: str) -> tuple[str, Any]:
    """Return the text of an export, which is the same the second time, and its report."""
    labels = ("--labels", "alice")
    report = cli.json("export", "--format", file_format, "-o", "scores.txt", *labels)
    text = Path("scores.txt").read_text("utf-8")
    assert cli.export(file_format, *labels) == text
    return text, report


def parse_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def check_fields(value: Mapping[str, Any], required: Mapping[str, type], **optional: type) -> None:
    """Check that an object has all required fields, and no others but the optional ones."""
    assert set(required) <= set(value) <= set(required) | set(optional)
    for name, kind in {**required, **optional}.items():
        assert name not in value or isinstance(value[name], kind), name


def test_langfuse_accepts_each_line_as_a_score(cli: Cli, label: Label) -> None:
    export: Any = json.loads(golden_text("langfuse", "004-one-run"))
    label(write_json("run.json", export))
    text, report = export_twice(cli, "langfuse")
    scores = parse_lines(text)
    required = {"id": str, "traceId": str, "name": str, "value": str, "dataType": str}
    for score in scores:
        check_fields(score, required, observationId=str, comment=str, metadata=dict)
        assert uuid.UUID(score["id"]).version == 5
        assert score["traceId"] == export["id"]
        assert (score["dataType"], score["metadata"]["annotator"]) == ("CATEGORICAL", "alice")
    assert len({score["id"] for score in scores}) == len(scores) == report["scores"]
    observations = {observation["id"] for observation in export["observations"]}
    placed = [score for score in scores if "observationId" in score]
    assert len(placed) == len(keys_of(cli, "run.json"))
    assert {score["observationId"] for score in placed} <= observations
    assert report["without_id"] == {"traces": [], "spans": []}
    verdicts = {score["name"]: score["value"] for score in scores if "observationId" not in score}
    assert verdicts == {
        "mast.disobey_task_specification": "absent",
        "mast.disobey_role_specification": "unsure",
        "mast.step_repetition": "present",
        "mast.premature_termination": "present",
    }
    (whole,) = [score for score in scores if score["name"] == "mast.premature_termination"]
    assert whole["comment"] == "stopped too early"
    # A call and its result have the ids of their own observations.
    by_key = {score["metadata"].get("span_first"): score.get("observationId") for score in scores}
    assert by_key["call_1:call"] == f"{RUN}2"
    assert by_key["call_1:result"] == f"{RUN}3"


def test_scores_of_gold_have_the_ids_of_one_annotators_scores(cli: Cli, label: Label) -> None:
    trace = label(write_text("run.json", golden_text("langfuse", "004-one-run")))
    first_ids = {score["id"] for score in parse_lines(cli.export("langfuse"))}
    cli.label(f"{trace},bob,2.1,absent", f"{trace},bob,,finished")
    scores = parse_lines(cli.export("langfuse"))
    assert first_ids < {score["id"] for score in scores}
    assert {score["metadata"]["annotator"] for score in scores} == {"gold"}


def test_langsmith_accepts_each_line_as_feedback(cli: Cli, label: Label) -> None:
    runs = json.loads(golden_text("langsmith", "timeline-langsmith-0"))
    trace_id = label(write_json("runs.json", runs), "elsewhere,alice,1.3,present,,,")
    text, report = export_twice(cli, "langsmith")
    required: dict[str, type] = {"id": str, "run_id": str, "trace_id": str, "key": str}
    required |= {"value": str, "feedback_source": dict, "session_id": str}
    for feedback in parse_lines(text):
        check_fields(feedback, required, created_at=str, score=int, comment=str)
        assert feedback["run_id"] in {run["id"] for run in runs}
        assert uuid.UUID(feedback["trace_id"]) == uuid.UUID(f"{RUN}1")
        assert feedback["session_id"] == runs[0]["session_id"]
        check_fields(feedback["feedback_source"], {"type": str, "metadata": dict})
        assert feedback["feedback_source"]["type"] == "api"
        number = {"present": 1, "absent": 0, "unsure": None}[feedback["value"]]
        assert feedback.get("score") == number
    # A trace of another tool is left out and named.
    assert report["without_id"] == {"traces": ["elsewhere"], "spans": []}
    export = ("export", "--labels", "alice", "-o", "scores.txt", "--force", "--format")
    err = cli.ok(*export, "langsmith").err
    assert "1 trace left out, as the id in langsmith is unknown" in err
    assert err.rstrip().endswith("elsewhere")
    left_out = cli.json(*export, "langfuse")["without_id"]["traces"]
    assert sorted(left_out) == sorted([trace_id, "elsewhere"])
    assert Path("scores.txt").read_text("utf-8") == ""
    Path("runs.json").unlink()
    assert len(cli.json(*export, "langsmith")["without_id"]["traces"]) == 2


@pytest.mark.parametrize("layout", ["otlp-lines", "sdk-lines", "console-list", "phoenix-nested"])
def test_phoenix_accepts_annotations_of_spans_and_traces(
    cli: Cli, tmp_path: Path, label: Label, layout: str
) -> None:
    family = {"otlp": "otlp", "phoenix": "phoenix"}.get(layout.partition("-")[0], "otel-spans")
    path = tmp_path / "spans.json"
    path.write_text(golden_text(family, f"openinference-{layout}"), "utf-8")
    label(path.name)
    text, report = export_twice(cli, "phoenix")
    bodies = json.loads(text)
    assert set(bodies) == {"span_annotations", "trace_annotations"}
    required: dict[str, type] = {"name": str, "annotator_kind": str, "identifier": str}
    required |= {"result": dict, "metadata": dict}
    for annotation in bodies["span_annotations"]["data"]:
        check_fields(annotation, required | {"span_id": str})
        assert annotation["span_id"] in SPANS
    for annotation in bodies["trace_annotations"]["data"]:
        check_fields(annotation, required | {"trace_id": str})
        assert annotation["trace_id"] == TRACE
        assert set(annotation["result"]) == {"label", "score", "explanation"}
        assert annotation["annotator_kind"] == "HUMAN"
    keys = keys_of(cli, path.name)
    assert len(bodies["span_annotations"]["data"]) == len(keys)
    assert report["without_id"] == {"traces": [], "spans": []}
    if layout != "otlp-lines":
        return
    # Langfuse uses the ids of OpenTelemetry too.
    scores = parse_lines(export_twice(cli, "langfuse")[0])
    assert {score["traceId"] for score in scores} == {TRACE}
    placed = {score["observationId"] for score in scores if "observationId" in score}
    assert placed <= SPANS
    # Without its file, a trace has no ids of calls and results.
    calls = [key for key in keys if key.endswith((":call", ":result"))]
    assert calls
    path.unlink()
    export = ("export", "--format", "phoenix", "-o", "scores.json", "--labels", "alice")
    left_out = cli.json(*export)["without_id"]["spans"]
    assert {span["trace_id"] for span in left_out} == {TRACE}
    assert sorted(span["key"] for span in left_out) == sorted(calls)
    assert f"{len(calls)} labelled spans left out" in cli(*export).err


@pytest.mark.parametrize("ending", ["json", "eval"])
def test_inspect_ai_gets_an_edit_for_each_sample_and_mode(
    cli: Cli, tmp_path: Path, label: Label, ending: str
) -> None:
    events = inspect_logs.model([inspect_logs.user("Find it.")], inspect_logs.assistant("Found."))
    first = inspect_logs.sample(events, id="task-7", epoch=2, uuid="sample-uuid")
    path = tmp_path / f"log.{ending}"
    if ending == "json":
        write_json(path.name, {**inspect_logs.HEADER, "samples": [first]})
    else:
        inspect_logs.write_eval(path, inspect_logs.members_of(first))
    label(path.name)
    text, _ = export_twice(cli, "inspect-scores")
    edits = {line["score_name"]: line for line in parse_lines(text)}
    required: dict[str, type] = {"log": str, "sample_id": str, "epoch": int, "sample_uuid": str}
    required |= {"score_name": str, "edit": dict}
    fields: dict[str, type] = {"value": int, "answer": str, "metadata": dict, "provenance": dict}
    fields["explanation"] = object
    for line in edits.values():
        check_fields(line, required)
        assert (line["log"], line["sample_id"], line["epoch"]) == (str(path), "task-7", 2)
        check_fields(line["edit"], fields)
        check_fields(line["edit"]["provenance"], {"author": str, "reason": str}, timestamp=str)
    assert {name: line["edit"]["value"] for name, line in edits.items()} == {
        "mast.disobey_task_specification (alice)": 0,
        "mast.step_repetition (alice)": 1,
        "mast.premature_termination (alice)": 1,
    }
    ended = edits["mast.premature_termination (alice)"]["edit"]
    assert ended["explanation"] == "stopped too early"
    repeated = edits["mast.step_repetition (alice)"]["edit"]
    keys = [label["span_first"] for label in repeated["metadata"]["labels"]]
    assert sorted(keys) == sorted(keys_of(cli, path.name))
    assert f"{keys[0]}: at " in repeated["explanation"]


def test_a_sample_without_a_uuid_has_its_own_id(cli: Cli, label: Label) -> None:
    events = inspect_logs.model([inspect_logs.user("Find it.")], inspect_logs.assistant("Found."))
    samples = [inspect_logs.sample(events, id=7)]
    label(write_json("log.json", {**inspect_logs.HEADER, "samples": samples}))
    scores = parse_lines(export_twice(cli, "inspect-scores")[0])
    assert {(line["sample_id"], line["sample_uuid"]) for line in scores} == {(7, None)}
