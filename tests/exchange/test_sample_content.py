"""The workspace of the samples."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from mast_tui.adjudication import SpanOrders, read_work_by_trace
from mast_tui.exchange.csv_labels import write_csv_long
from mast_tui.exchange.exporters.files import doccano_lines
from mast_tui.exchange.exporters.gold_document import gold_document
from mast_tui.exchange.exporters.scores import NativeTrace, score_text, scores_of
from mast_tui.exchange.jsonl import fill_samples_workspace, workspace_lines
from mast_tui.exchange.label_studio import label_studio_tasks
from mast_tui.exchange.selection import gold_entries, gold_work, pseudonymous
from mast_tui.exchange.trace_files import TextSpan
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.labels import AnnotatorKind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_fully, samples_folder, scan
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of
from scripts import make_sample_workspace
from tests.figures.agreement.tables import agreement_document

pytestmark = pytest.mark.slow

MAST = load_mast()
REMAKE = "the samples or the rules have changed: run scripts/make_sample_workspace.py"
FIELDS_OF_A_RUN = {
    "id", "action", "run", "chain", "at", "since",
    *(f"{event}_at" for event in ("created", "decided", "started", "finished")),
}  # fmt: skip


@pytest.fixture(scope="module")
def filled() -> Workspace:
    workspace = Workspace.open(":memory:")
    fill_samples_workspace(workspace)
    return workspace


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    by_id = {
        trace.identity.trace_id: trace
        for report in scan([samples_folder()])
        for trace in report.traces
    }
    for trace in by_id.values():
        read_fully(trace)
    return by_id


def test_traces_are_those_of_the_folder_and_labels_are_on_their_spans(
    filled: Workspace, traces: dict[str, Trace]
) -> None:
    records = {record.trace_id: record for record in filled.traces()}
    assert records.keys() == traces.keys(), REMAKE
    for trace_id, trace in traces.items():
        record = records[trace_id]
        assert record.identity == trace.identity, REMAKE
        assert record.path == trace.path
        assert record.outcome is trace.meta.outcome, REMAKE
    labels = filled.labels(pass_number=None)
    assert labels
    for label in labels:
        trace = traces[label.trace_id]
        target = label.target
        assert MAST.mode(label.mode)
        if target.is_whole:
            continue
        first = trace.index_of(target.first or "")
        last = trace.index_of(target.last or "")
        assert first is not None, REMAKE
        assert last is not None, REMAKE
        assert first <= last
        if target.quote is not None:
            text = trace.text(first)
            assert text[target.char_start : target.char_end] == target.quote, REMAKE


def test_the_script_makes_the_stored_content(tmp_path: Path) -> None:
    make_sample_workspace.make(tmp_path / "made.jsonl")
    made = without_times(tmp_path / "made.jsonl")
    assert made == without_times(samples_folder() / "workspace.jsonl"), REMAKE


def without_times(path: Path) -> list[object]:
    """Read the records of an export without ids and times."""
    return [
        json.loads(
            line, object_hook=lambda record: {k: record[k] for k in record.keys() - FIELDS_OF_A_RUN}
        )
        for line in path.read_text("utf-8").splitlines()
    ]


def test_two_annotators_agree_differ_and_leave_conflicts(filled: Workspace) -> None:
    people = [info.name for info in filled.annotators() if info.kind is AnnotatorKind.HUMAN]
    assert len(people) == 2
    report = agreement_document(study_from_workspace(filled, MAST))
    assert report["annotators"] == people
    kappa = report["pooled"]["cohen_kappa"]["value"]
    assert kappa is not None
    assert 0.4 < kappa < 0.9
    works = read_work_by_trace(filled, MAST)
    assert any(len(work.sides) == 1 for work in works.values())
    assert any(work.decisions for work in works.values())
    order_of = SpanOrders(filled)
    left = [
        conflict
        for trace_id, work in works.items()
        if len(work.sides) > 1
        for conflict in work.gold(MAST, order_of(trace_id)).conflicts
    ]
    assert 3 <= len(left) <= 4


def test_a_workspace_in_use_is_left_alone(filled: Workspace) -> None:
    previous = list(workspace_lines(filled))
    fill_samples_workspace(filled)
    assert list(workspace_lines(filled)) == previous
    used = Workspace.open(":memory:")
    used.add_annotator("alice", AnnotatorKind.HUMAN)
    fill_samples_workspace(used)
    assert [info.name for info in used.annotators()] == ["alice"]
    assert used.traces() == ()


def test_gold_names_deciders_and_span_indices(filled: Workspace, traces: dict[str, Trace]) -> None:
    gold = gold_document(filled, MAST, {}, gold_entries(filled, MAST))
    verdicts = [v for trace in gold["traces"] for v in trace["verdicts"].values()]
    assert {"unanimous", "adjudicated", "single", "unresolved"} <= {v["source"] for v in verdicts}
    for v in verdicts:
        assert (v["decided_by"] is not None) is (v["source"] == "adjudicated")
        assert (v["decided_at"] is not None) is (v["source"] == "adjudicated")
    for trace in gold["traces"]:
        source = traces[trace["trace_id"]]
        for label in trace["labels"]:
            target = label["target"]
            if not target["whole_trace"]:
                assert source.span(target["first_index"]).key == target["first"]
                assert source.span(target["last_index"]).key == target["last"]
    assert any(label["merged"] for trace in gold["traces"] for label in trace["labels"])
    assert any(v["judge_seen"] for v in verdicts)
    assert not all(v["judge_seen"] for v in verdicts)
    json.dumps(gold, allow_nan=False)


def test_exports_mark_merged_labels(filled: Workspace, traces: dict[str, Trace]) -> None:
    entries = gold_entries(filled, MAST)
    merged = sum(label.merged for entry in entries for label in entry.gold.labels)
    assert merged > 0

    def texts(trace_id: str) -> tuple[TextSpan, ...]:
        trace = traces[trace_id]
        keys = [trace.span(index).key for index in range(len(trace))]
        return tuple(TextSpan(key, trace.text(i), key) for i, key in enumerate(keys))

    def native_trace(trace_id: str) -> NativeTrace:
        return NativeTrace("langfuse", trace_id, lambda key: key)

    work = gold_work(entries, MAST)
    for exported in (work, pseudonymous(work, pseudonyms_of(filled))):
        rows = list(csv.DictReader(io.StringIO(write_csv_long(exported, MAST))))
        assert sum(row["merged"] == "true" for row in rows) == merged
        assert {row["merged"] for row in rows} == {"true", ""}
        lines, _ = doccano_lines(exported, MAST, {}, texts)
        marked = [json.loads(line) for line in lines]
        assert sum(len(line.get("merged", ())) for line in marked) == merged
        assert all(place in line["label"] for line in marked for place in line.get("merged", ()))
        tasks = json.dumps(label_studio_tasks(exported, MAST, {}, {}, texts))
        assert tasks.count('"merged": true') == merged
        scores, _ = scores_of(exported, MAST, native_trace, {}, {"langfuse"})
        assert score_text(scores, "langfuse").count('"merged": true') == merged
