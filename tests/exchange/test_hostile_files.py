"""Imports of files with any content: they are read, or refused with a message."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.csv_labels import COLUMNS, read_csv_long, read_csv_wide
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.formats import ImportRequest
from mast_tui.exchange.import_batch import Incoming
from mast_tui.exchange.jsonl import merge_content, read_jsonl, workspace_lines
from mast_tui.exchange.label_studio import label_studio_tasks
from mast_tui.exchange.registry import IMPORT_FORMATS
from mast_tui.exchange.trace_files import TextSpan
from mast_tui.labels import WHOLE_TRACE, Label, Target, TraceWork, VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Workspace, WorkspaceError

MAST = load_mast()
FEW_EXAMPLES = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

FIELDS = (
    *("history", "role", "content", "mistake_step", "mistake_agent", "mistake_reason"),
    *("trajectory_id", "failures", "step_number", "failure_category", "failure_id", "root_cause"),
    *("hf_annotations", "trace_id", "iaa_round", "mas_name", "hf_label_scheme", "instance_id"),
    *("failure_modes", "code", "confidence", "none_apply", "diagnoses", "taxonomy", "codes"),
    *("mast_annotation", "annotator", "data", "meta", "mast_tui", "by", "annotations", "result"),
    *("spans", "key", "text", "value", "start", "end", "from_name", "predictions", "labels"),
    *("trace_text", "human_labels", "human_label_summary", "index", "round", "failed_agent"),
)
LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "0", "hf_0", "1.1 A mode", "3.3 Weak Verification", "System Failure"])
    | st.text(max_size=4)
)
KEYS = st.sampled_from([*FIELDS, "annotator_1", "1.1 A mode", "3.2", "judge:x", ""])
DOCUMENT = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


@pytest.fixture(scope="module")
def empty() -> Workspace:
    """An empty workspace, which importers only read."""
    return Workspace.open(":memory:")


def read(name: str, file: Path, empty: Workspace) -> Incoming:
    importer = IMPORT_FORMATS[name].reads
    assert importer is not None
    return importer(ImportRequest([file], empty, MAST))


def apply_or_refuse(incoming: Incoming | None, name: str) -> None:
    """Apply an import to a new workspace, or fail with a message."""
    if incoming is None:
        return
    assert all(problem.reason for problem in incoming.problems)
    if incoming.work:
        workspace = Workspace.open(":memory:")
        result_or_none(lambda: apply_incoming(incoming, workspace, source=name, skip_errors=True))


READ_INTO_WORK: Final = [name for name, row in IMPORT_FORMATS.items() if row.reads is not None]
"""The formats whose files become work; ``jsonl`` is merged event by event."""

Result = TypeVar("Result")


def result_or_none(call: Callable[[], Result]) -> Result | None:
    """Return the result of a call, or None if it refuses with a message."""
    try:
        return call()
    except (ExchangeError, WorkspaceError):
        return None


@pytest.mark.parametrize("name", READ_INTO_WORK)
@settings(FEW_EXAMPLES, max_examples=5)
@given(document=DOCUMENT | st.lists(st.dictionaries(KEYS, DOCUMENT, min_size=3), min_size=1))
def test_any_json_is_read_or_refused(
    name: str, document: Any, tmp_path: Path, empty: Workspace
) -> None:
    file = tmp_path / "labels.json"
    file.write_text(json.dumps(document))
    apply_or_refuse(result_or_none(lambda: read(name, file, empty)), name)


CELL = st.sampled_from(
    ["", "t", "alice", "judge:x", "1.3", "present", "absent", "finished", "1", "0", "?", "0.5"]
) | st.text(max_size=3)


@pytest.mark.parametrize("wide", [False, True])
@FEW_EXAMPLES
@given(
    heading=st.lists(st.sampled_from([*COLUMNS, "1.1", "outcome", "?"]), max_size=18),
    rows=st.lists(st.lists(CELL, max_size=18), max_size=4),
    tail=st.binary(max_size=4),
)
def test_any_table_is_read_or_refused(
    wide: bool, heading: list[str], rows: list[list[str]], tail: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "labels.csv"
    lines = [",".join(cells) for cells in [heading, *rows]]
    file.write_bytes("\n".join(lines).encode("utf-8", "replace") + tail)
    incoming = result_or_none(
        lambda: (
            read_csv_wide([file], taxonomy=MAST)
            if wide
            else read_csv_long([file], taxonomy=MAST, find_taxonomy=lambda _: None)
        )
    )
    if incoming is None:
        return
    workspace = Workspace.open(":memory:")
    first = apply_incoming(incoming, workspace, source="test", skip_errors=True)
    second = apply_incoming(incoming, workspace, source="test", skip_errors=True)
    assert second.new == 0
    assert second.known >= first.new


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An export with every kind of record that a table can add."""
    table = tmp_path_factory.mktemp("export") / "source.csv"
    table.write_text("trace_id,annotator,outcome,1.1,1.2\nt,alice,failed,1,0\nu,judge:x@1,,0,?\n")
    workspace = Workspace.open(":memory:")
    apply_incoming(read_csv_wide([table], taxonomy=MAST), workspace, source="test")
    workspace.finish_run(workspace.start_run("judge:x@1", MAST.ref))
    return "".join(workspace_lines(workspace))


@FEW_EXAMPLES
@given(data=st.data())
def test_any_change_to_an_export_is_read_or_refused(
    data: st.DataObject, export: str, tmp_path: Path
) -> None:
    lines = [json.loads(line) for line in export.splitlines()]
    node: Any = lines[data.draw(st.integers(0, len(lines) - 1))]
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else [0]))
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.booleans()):
            break
        node = node[key]
    node[key] = data.draw(LEAF | DOCUMENT)
    file = tmp_path / "export.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    workspace = Workspace.open(":memory:")
    if result_or_none(lambda: merge_content(read_jsonl(file), workspace)) is None:
        assert not any([*workspace.traces(), *workspace.annotators(), *workspace.runs()])


def valid_documents() -> dict[str, Any]:
    """Return a readable document of each format, for attacks."""
    target = Target("k", "k", "🚀", 0, 1)
    labels = [
        Label("x", "alice", "t", MAST.ref, "step_repetition", target, note="why"),
        Label("y", "alice", "t", MAST.ref, "task_derailment", WHOLE_TRACE),
    ]
    verdicts = {"conversation_reset": VerdictValue.ABSENT}
    by_id = {label.id: label for label in labels}
    time = "2026-05-04T10:20:30Z"
    work = TraceWork("alice", "t", MAST.ref, labels=by_id, verdicts=verdicts, finished_at=time)
    spans = (TextSpan("k", "🚀 go", "#1 agent"),)
    mode = {"code": "A.1", "name": "n", "evidence": "e", "confidence": "high"}
    taxonomy = {"codes": [{"id": "A.1", "name": "n", "category": "A"}]}
    diagnosis = {"trace_id": "t", "failure_modes": [mode], "none_apply": False}
    return {
        "label-studio": label_studio_tasks([work], MAST, {}, {}, lambda _: spans),
        "adamast": {"judge": {"model": "m"}, "taxonomy": "x.json", "diagnoses": [diagnosis]},
        "adamast taxonomy": taxonomy,
        "agentdash": {"t": {"failure_modes": {"1.1": 1, "1.2": 0}, "raw_response": "1.1 yes"}},
        "mast-data": [{"trace_id": "t", "annotator": "a", "mast_annotation": {"1.1": 1}}],
    }
