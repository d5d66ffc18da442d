"""Labels on their way back to the tools in which the traces were recorded."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.traces import inspect_logs, vendor_layouts
from tests.traces.otel_conventions import CONVENTIONS, TRACE, spans_of
from tests.traces.otel_layouts import LAYOUTS

HEADER = "trace_id,annotator,mode,value,span_first,span_last,quote,char_start,char_end,note\n"
Label = Callable[..., str]


@pytest.fixture
def label(cli: Cli, tmp_path: Path) -> Label:
    """Label the one trace of a file at every span, and as a whole; its id."""

    def made(name: str, *, more: str = "") -> str:
        """Judge a trace by rules, import labels on it, and return its id."""
        (trace,) = cli.json("inspect", name, "--spans")["files"][0]["traces"]
        cli.ok("judge", name, "--judge", "rules")
        start = f"{trace['id']},alice,"
        keys = [span["key"] for span in trace["span_list"]]
        rows = [f"{start}1.3,present,{key},{key},,,,at {n}" for n, key in enumerate(keys)]
        rows += [f"{start}3.1,present,,,,,,stopped too early", f"{start}1.1,absent,,,,,,"]
        rows += [f"{start}1.2,unsure,,,,,,", f"{start},finished,,,,,,"]
        text = HEADER + "\n".join(rows) + "\n" + more
        (tmp_path / "labels.csv").write_text(text, encoding="utf-8")
        cli.ok("import", "labels.csv", "--format", "csv-long", "--allow-new")
        return str(trace["id"])

    return made


def keys_of(cli: Cli, name: str) -> list[str]:
    (trace,) = cli.json("inspect", name, "--spans")["files"][0]["traces"]
    return [span["key"] for span in trace["span_list"]]


def exported(cli: Cli, file_format: str, *args: str) -> tuple[str, Any]:
    """The export's text and what the command says of it; the second time it is the same."""
    out = ("export", "--format", file_format, "-o", "scores.txt", "--labels", "alice", *args)
    done = cli.ok(*out, "--json")
    text = Path("scores.txt").read_text("utf-8")
    cli.ok(*out)
    assert Path("scores.txt").read_text("utf-8") == text
    return text, done.json


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def has_fields(value: Mapping[str, Any], needed: Mapping[str, type], **may: type) -> None:
    """What a schema of an API says of an object: what must be there, what may, and nothing else."""
    assert set(needed) <= set(value) <= set(needed) | set(may)
    for name, kind in {**needed, **may}.items():
        assert name not in value or isinstance(value[name], kind), name


def test_langfuse_takes_each_line_as_a_score(cli: Cli, tmp_path: Path, label: Label) -> None:
    export: Any = vendor_layouts.langfuse()
    (tmp_path / "run.json").write_text(json.dumps(export), encoding="utf-8")
    label("run.json")
    text, said = exported(cli, "langfuse")
    scores = lines(text)
    needed = {"id": str, "traceId": str, "name": str, "value": str, "dataType": str}
    for score in scores:
        has_fields(score, needed, observationId=str, comment=str, metadata=dict)
        assert uuid.UUID(score["id"]).version == 5
        assert score["traceId"] == export["id"]
        assert (score["dataType"], score["metadata"]["annotator"]) == ("CATEGORICAL", "alice")
    assert len({score["id"] for score in scores}) == len(scores) == said["scores"]
    observations = {observation["id"] for observation in export["observations"]}
    placed = [score for score in scores if "observationId" in score]
    assert len(placed) == len(keys_of(cli, "run.json"))
    assert {score["observationId"] for score in placed} <= observations
    assert said["without_id"] == {"traces": [], "spans": []}
    verdicts = {s["name"]: s["value"] for s in scores if "observationId" not in s}
    assert verdicts == {
        "mast.disobey_task_specification": "absent",
        "mast.disobey_role_specification": "unsure",
        "mast.step_repetition": "present",
        "mast.premature_termination": "present",
    }
    (whole,) = [s for s in scores if s["name"] == "mast.premature_termination"]
    assert whole["comment"] == "stopped too early"


def test_a_call_goes_to_the_observation_that_it_was_read_from(
    cli: Cli, tmp_path: Path, label: Label
) -> None:
    (tmp_path / "run.json").write_text(json.dumps(vendor_layouts.langfuse()), encoding="utf-8")
    label("run.json")
    text, _ = exported(cli, "langfuse")
    by_key = {s["metadata"].get("span_first"): s.get("observationId") for s in lines(text)}
    assert by_key["call_1:call"] == vendor_layouts.run_id(2)
    assert by_key["call_1:result"] == vendor_layouts.run_id(3)


def test_langsmith_takes_each_line_as_feedback(cli: Cli, tmp_path: Path, label: Label) -> None:
    runs = vendor_layouts.langsmith()
    (tmp_path / "runs.json").write_text(json.dumps(runs), encoding="utf-8")
    label("runs.json")
    text, said = exported(cli, "langsmith")
    needed: dict[str, type] = {"id": str, "run_id": str, "trace_id": str, "key": str}
    needed |= {"value": str, "feedback_source": dict, "session_id": str}
    for feedback in lines(text):
        has_fields(feedback, needed, created_at=str, score=int, comment=str)
        assert feedback["run_id"] in {run["id"] for run in runs}
        assert uuid.UUID(feedback["trace_id"]) == uuid.UUID(vendor_layouts.RUN)
        assert feedback["session_id"] == runs[0]["session_id"]
        has_fields(feedback["feedback_source"], {"type": str, "metadata": dict})
        assert feedback["feedback_source"]["type"] == "api"
        number = {"present": 1, "absent": 0, "unsure": None}[feedback["value"]]
        assert feedback.get("score") == number
    assert said["without_id"] == {"traces": [], "spans": []}


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_phoenix_takes_both_bodies(cli: Cli, tmp_path: Path, label: Label, layout: str) -> None:
    spans = spans_of(CONVENTIONS["openinference"])
    path = LAYOUTS[layout][1](tmp_path / "spans.json", spans)
    label(path.name)
    text, said = exported(cli, "phoenix")
    bodies = json.loads(text)
    assert set(bodies) == {"span_annotations", "trace_annotations"}
    needed: dict[str, type] = {"name": str, "annotator_kind": str, "identifier": str}
    needed |= {"result": dict, "metadata": dict}
    for one in bodies["span_annotations"]["data"]:
        has_fields(one, needed | {"span_id": str})
        assert one["span_id"] in {span.id for span in spans}
    for one in bodies["trace_annotations"]["data"]:
        has_fields(one, needed | {"trace_id": str})
        assert one["trace_id"] == TRACE
        assert set(one["result"]) == {"label", "score", "explanation"}
        assert one["annotator_kind"] == "HUMAN"
    assert len(bodies["span_annotations"]["data"]) == len(keys_of(cli, path.name))
    assert said["without_id"] == {"traces": [], "spans": []}


def test_the_ids_of_opentelemetry_are_langfuses_too(cli: Cli, tmp_path: Path, label: Label) -> None:
    spans = spans_of(CONVENTIONS["openinference"])
    label(LAYOUTS["otlp"][1](tmp_path / "spans.json", spans).name)
    text, _ = exported(cli, "langfuse")
    assert {score["traceId"] for score in lines(text)} == {TRACE}
    placed = {s["observationId"] for s in lines(text) if "observationId" in s}
    assert placed <= {span.id for span in spans}


@pytest.mark.parametrize("ending", ["json", "eval"])
def test_inspect_gets_an_edit_per_sample_and_mode(
    cli: Cli, tmp_path: Path, label: Label, ending: str
) -> None:
    first = inspect_logs.sample(
        inspect_logs.model([inspect_logs.user("Find it.")], inspect_logs.says("Found.")),
        id="task-7",
        epoch=2,
        uuid="sample-uuid",
    )
    path = tmp_path / f"log.{ending}"
    if ending == "json":
        document = {**inspect_logs.HEADER, "samples": [first]}
        path.write_text(json.dumps(document), encoding="utf-8")
    else:
        inspect_logs.write_eval(path, inspect_logs.members_of(first))
    label(path.name)
    text, _ = exported(cli, "inspect-scores")
    edits = {line["score_name"]: line for line in lines(text)}
    needed: dict[str, type] = {"log": str, "sample_id": str, "epoch": int, "sample_uuid": str}
    needed |= {"score_name": str, "edit": dict}
    of_edit: dict[str, type] = {"value": int, "answer": str, "metadata": dict, "provenance": dict}
    of_edit["explanation"] = object
    for one in edits.values():
        has_fields(one, needed)
        assert (one["log"], one["sample_id"], one["epoch"]) == (str(path), "task-7", 2)
        has_fields(one["edit"], of_edit)
        has_fields(one["edit"]["provenance"], {"author": str, "reason": str}, timestamp=str)
    said = {name: one["edit"]["value"] for name, one in edits.items()}
    assert said == {
        "mast.disobey_task_specification (alice)": 0,
        "mast.step_repetition (alice)": 1,
        "mast.premature_termination (alice)": 1,
    }
    ended = edits["mast.premature_termination (alice)"]["edit"]
    assert ended["explanation"] == "stopped too early"
    repeated = edits["mast.step_repetition (alice)"]["edit"]
    places = [one["span_first"] for one in repeated["metadata"]["labels"]]
    assert sorted(places) == sorted(keys_of(cli, path.name))
    assert f"{places[0]}: at " in repeated["explanation"]


def test_a_sample_without_a_uuid_goes_by_its_own_id(cli: Cli, tmp_path: Path, label: Label) -> None:
    events = inspect_logs.model([inspect_logs.user("Find it.")], inspect_logs.says("Found."))
    sample = inspect_logs.sample(events, id=7)
    document = {**inspect_logs.HEADER, "samples": [sample]}
    (tmp_path / "log.json").write_text(json.dumps(document), encoding="utf-8")
    label("log.json")
    text, _ = exported(cli, "inspect-scores")
    assert {(line["sample_id"], line["sample_uuid"]) for line in lines(text)} == {(7, None)}


def test_what_has_no_id_there_is_named(cli: Cli, tmp_path: Path, label: Label) -> None:
    runs = vendor_layouts.langsmith()
    (tmp_path / "runs.json").write_text(json.dumps(runs), encoding="utf-8")
    known = label("runs.json", more="elsewhere,alice,1.3,present,,,,,,\n")
    out = ("export", "--format", "langsmith", "-o", "scores.jsonl", "--labels", "alice")
    assert cli.json(*out)["without_id"]["traces"] == ["elsewhere"]
    done = cli(*out)
    assert "1 trace left out, whose id in langsmith is not known" in done.err
    assert done.err.rstrip().endswith("elsewhere")
    other = ("export", "--format", "langfuse", "-o", "other.jsonl", "--labels", "alice", "--json")
    assert sorted(cli(*other).json["without_id"]["traces"]) == sorted([known, "elsewhere"])
    assert (tmp_path / "other.jsonl").read_text("utf-8") == ""
    (tmp_path / "runs.json").unlink()
    assert len(cli.json(*out)["without_id"]["traces"]) == 2


def test_a_span_without_an_id_is_named(cli: Cli, tmp_path: Path, label: Label) -> None:
    spans = spans_of(CONVENTIONS["openinference"])
    label(LAYOUTS["otlp"][1](tmp_path / "spans.json", spans).name)
    keys = keys_of(cli, "spans.json")
    calls = [key for key in keys if key.endswith((":call", ":result"))]
    assert calls
    (tmp_path / "spans.json").unlink()
    out = ("export", "--format", "phoenix", "-o", "scores.json", "--labels", "alice")
    without = cli.json(*out)["without_id"]
    assert {span["trace_id"] for span in without["spans"]} == {TRACE}
    assert sorted(span["key"] for span in without["spans"]) == sorted(calls)
    assert f"{len(calls)} labelled spans left out" in cli(*out).err


def test_gold_keeps_the_ids_of_its_scores(cli: Cli, tmp_path: Path, label: Label) -> None:
    (tmp_path / "run.json").write_text(json.dumps(vendor_layouts.langfuse()), encoding="utf-8")
    trace = label("run.json")
    out = ("export", "--format", "langfuse", "-o", "gold.jsonl")
    cli.ok(*out)
    before = {s["id"] for s in lines((tmp_path / "gold.jsonl").read_text("utf-8"))}
    rows = f"{trace},bob,2.1,absent,,,,,,\n{trace},bob,,finished,,,,,,\n"
    (tmp_path / "bob.csv").write_text(HEADER + rows, encoding="utf-8")
    cli.ok("import", "bob.csv", "--format", "csv-long", "--allow-new")
    cli.ok(*out)
    after = lines((tmp_path / "gold.jsonl").read_text("utf-8"))
    assert before < {s["id"] for s in after}
    assert {s["metadata"]["annotator"] for s in after} == {"gold"}
