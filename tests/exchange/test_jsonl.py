"""Export and import of whole workspaces as jsonl."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, select

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.jsonl import VERSION, merge_content, read_jsonl, workspace_lines
from mast_tui.gold import Decision, Guideline
from mast_tui.labels import (
    AnnotatorKind,
    Evidence,
    Label,
    Match,
    Origin,
    PassKind,
    QuoteCounts,
    ReviewAnswer,
    Severity,
    Target,
    VerdictValue,
)
from mast_tui.output_files import write_output
from mast_tui.study import Study
from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import (
    Asked,
    NewEvent,
    RunSettings,
    RunTrace,
    TraceRecord,
    Usage,
    Workspace,
    schema,
)
from mast_tui.workspace.events import types
from mast_tui.workspace.records import SpanIndex
from mast_tui.workspace.registers.hold_out import held_out, set_aside
from tests.exchange.strategies import MAST

pytestmark = pytest.mark.slow

SEED = 1
NAMES = tuple(f"run-{number}" for number in range(40))


def label(trace: str, name: str, **fields: Any) -> Label:
    values: dict[str, Any] = {"mode": "step_repetition", "target": Target("k1", "k2")} | fields
    return Label(f"{name}-1", name, trace, MAST.ref, **values)


def full_workspace(path: Path) -> Workspace:
    """Make a workspace with one record of every kind."""
    workspace = Workspace.open(path)
    workspace.add_taxonomy(MAST)
    identity = TraceIdentity("t", "ab" * 32, 10, "codex", 1, True)
    trace_path = Path("/somewhere/private/run.jsonl")
    metadata = ("do ⟂ \u202e it", "crew", "m", "bench", Outcome.FAILED, 0.25)
    first = workspace.register_trace(TraceRecord("t", identity, trace_path, None, 7, *metadata))
    second_identity = TraceIdentity("t", "cd" * 32, 10, "codex", 1, True)
    second = workspace.register_trace(TraceRecord("t", second_identity))
    workspace.register_trace(TraceRecord("only labels", system="crew"))
    assert (first, second) == ("t", "t~2")
    workspace.keep_span_indices(
        {"t": {"k": SpanIndex(3), "l": SpanIndex(0, 12)}, "t~2": {"k": SpanIndex(1, 5)}}
    )
    workspace.add_annotator("alice", AnnotatorKind.HUMAN)
    workspace.add_annotator("set", AnnotatorKind.IMPORTED)
    run = workspace.start_run("judge:rules@1", MAST.ref, note="a run")
    workspace.note_run_trace(run, RunTrace("t", 2))
    workspace.note_run_trace(run, RunTrace("t~2", 0, "no such file"))
    workspace.finish_run(run)
    settings = RunSettings("m", "0123abcd", "models.example", (("samples", "3"),), ("t~2",), 0.5, 2)
    asking = workspace.start_run("judge:m@0123abcd", MAST.ref, settings=settings)
    workspace.set_run_answer_form(asking, "json_object")
    workspace.record_asked(
        Asked(asking, "t", "key", "what the model said", "stop", "text", 100, 10, True)
    )
    workspace.note_run_trace(
        asking, RunTrace("t", 1, None, QuoteCounts(1, 0, 1, 0, 1, 2), 4, ("#5 was cut",))
    )
    workspace.finish_run(asking, ending="the allowance is spent")
    set_aside(workspace, 0.25, seed=SEED)
    own_label = label("t", "alice", note="=1+1\n\u2028", confidence=0.5, severity=Severity.FATAL)
    quote = label(
        "t~2",
        "judge:rules@1",
        target=Target("k", "k", "wörds", 0, 5),
        evidence=Evidence(
            key="k", quote="wörds", char_start=0, char_end=5, match=Match.ALTERED, wording="words"
        ),
        origin=Origin.ACCEPTED,
    )
    unplaced = label(
        "t",
        "judge:m@0123abcd",
        evidence=Evidence(key=None, quote="elsewhere", misnamed_spans=("k1", "k9")),
        decisive=False,
    )
    mode = "step_repetition"
    decision = Decision(mode, mode, VerdictValue.ABSENT, (), ("alice",), (), "alice", "now")
    rejection = types.ReviewGiven(ReviewAnswer.REJECT, None, "no")
    facts: list[tuple[str, str, types.Fact]] = [
        ("alice", "t", types.PassStarted(PassKind.ASSISTED)),
        ("alice", "t", types.SuggestionsSeen()),
        ("alice", "t", types.SpansRead(("k1", "k2"))),
        ("alice", "t", types.LabelAdded(own_label)),
        ("alice", "t", types.LabelChanged(own_label, label("t", "alice", note="better"))),
        ("alice", "t", types.VerdictSet("conversation_reset", None, VerdictValue.UNSURE)),
        ("alice", "t", types.SpanNoteSet("k1", "", "odd")),
        ("alice", "t", types.ReviewSet(quote.id, None, rejection)),
        ("alice", "t", types.PassFinished(read=2, spans=7)),
        ("alice", "t", types.Revealed("labels")),
        ("alice", "t", types.Decided("step_repetition", None, decision)),
        ("alice", "t~2", types.PassStarted(PassKind.BLIND)),
        ("alice", "t~2", types.LabelAdded(label("t~2", "alice"))),
        ("alice", "t~2", types.LabelRemoved(label("t~2", "alice"))),
        ("judge:rules@1", "t~2", types.LabelAdded(quote)),
        ("judge:rules@1", "t~2", types.Judged(("step_repetition", "x", "y"), ("x",), run, ("y",))),
        ("judge:m@0123abcd", "t", types.PassStarted(PassKind.BLIND)),
        ("judge:m@0123abcd", "t", types.LabelAdded(unplaced)),
    ]
    for name, trace, fact in facts:
        workspace.append([NewEvent(name, trace, MAST.ref, 1, fact)])
    workspace.append([NewEvent("alice", None, None, None, types.BlindWorkSet(None, True))])
    study = Study(MAST.ref, ("alice", "bob"), batches=(("t",),), seed=3)
    guideline = Guideline(
        "g", MAST.modes[0].slug, "only with a reason", "alice", "2026-05-04T10:20:30Z"
    )
    protocol = (types.StudySet(None, study), types.GuidelineSet("g", None, guideline))
    workspace.append([NewEvent("alice", None, MAST.ref, None, fact) for fact in protocol])
    return workspace


def exported(workspace: Workspace) -> str:
    return "".join(workspace_lines(workspace))


def imported(text: str, path: Path, folder: Path) -> Workspace:
    file = folder / "export.jsonl"
    write_output(file, text)
    workspace = Workspace.open(path)
    merge_content(read_jsonl(file), workspace)
    return workspace


LOCAL_COLUMNS = {
    ("traces", "path"),
    *(("runs", name) for name in ("told_requests", "told_in", "told_out", "told_cached")),
    *(("asked", column.name) for column in schema.asked.columns),
}
"""Columns that a copy does not have: paths of traces, and the requests of a machine."""


def tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows that are the same on every machine."""
    rows = {}
    with create_engine(f"sqlite:///{path}").connect() as connection:
        for table in schema.metadata.sorted_tables:
            columns = [c for c in table.columns if (table.name, c.name) not in LOCAL_COLUMNS]
            if not columns:
                continue
            rows[table.name] = sorted(
                (tuple(row) for row in connection.execute(select(*columns))), key=repr
            )
    return rows


def test_an_import_into_an_empty_workspace_is_a_copy(tmp_path: Path) -> None:
    original = full_workspace(tmp_path / "a.db")
    text = exported(original)
    copy = imported(text, tmp_path / "b.db", tmp_path)
    assert exported(copy) == text
    assert copy.runs() == original.runs()
    assert [held_out(copy, name) for name in NAMES] == [held_out(original, name) for name in NAMES]
    assert len({held_out(copy, name) for name in NAMES}) == 2
    original.close()
    copy.close()
    rows_by_table = tables(tmp_path / "a.db")
    assert tables(tmp_path / "b.db") == rows_by_table
    empty = {name for name, rows in rows_by_table.items() if not rows}
    # The register of imports belongs to one workspace.
    local = {"imports", "imported_events"}
    assert empty == local, "the workspace of this test holds one of everything else"


def test_lines_are_records_without_private_folders_and_are_imported_once(tmp_path: Path) -> None:
    text = exported(full_workspace(tmp_path / "a.db"))
    kinds = [json.loads(line)["record"] for line in text.split("\n") if line]
    order = ["workspace", "taxonomy", "trace", "set_aside", "annotator", "run", "event"]
    assert list(dict.fromkeys(kinds)) == order
    assert kinds == sorted(kinds, key=order.index)
    assert "private" not in text
    assert "what the model said" not in text
    assert "run.jsonl" in text
    # A second import changes nothing.
    workspace = imported(text, tmp_path / "b.db", tmp_path)
    report = merge_content(read_jsonl(tmp_path / "export.jsonl"), workspace)
    assert (report.added, report.altered, report.conflicts) == (0, (), ())
    assert exported(workspace) == text


TIME = "2026-05-04T10:20:30Z"
LINES_OF_VERSION_1: list[dict[str, Any]] = [
    {"record": "run", "id": "r", "judge": "judge:rules@1", "taxonomy": MAST.ref, "started_at": TIME,
     "traces": [{"id": "t", "findings": 1, "quotes": 2, "verified": 1}]},
    {
        "record": "event",
        "id": "e",
        "annotator": "judge:rules@1",
        "seq": 1,
        "at": TIME,
        "kind": "label_added",
        "trace_id": "t",
        "taxonomy": MAST.ref,
        "pass": 1,
        "action": "a",
        "payload": {
            "label": {
                "id": "x",
                "mode": "step_repetition",
                "target": {"first": "k1"},
                "evidence": {"key": "k1", "quote": "word", "start": 0, "end": 4},
            }
        },
    },
    {
        "record": "event",
        "id": "f",
        "annotator": "judge:rules@1",
        "seq": 2,
        "at": TIME,
        "kind": "judged",
        "trace_id": "t",
        "taxonomy": MAST.ref,
        "pass": 1,
        "action": "a",
        "payload": {"looks_at": ["step_repetition", "x"], "absent": ["x"], "run": "r"},
    },
]  # fmt: skip


def test_a_file_of_version_1_is_read(tmp_path: Path) -> None:
    lines = [json.dumps(line) + "\n" for line in LINES_OF_VERSION_1]
    workspace = imported("".join([HEAD, *lines]), tmp_path / "w.db", tmp_path)
    (imported_label,) = workspace.labels()
    assert imported_label.evidence == Evidence(key="k1", quote="word", char_start=0, char_end=4)
    assert imported_label.decisive is None
    values = {verdict.mode: verdict.value for verdict in workspace.verdicts()}
    assert values == {"step_repetition": VerdictValue.PRESENT, "x": VerdictValue.ABSENT}
    (run,) = workspace.runs()
    assert (run.settings, run.ending, run.usage) == (None, None, Usage())
    assert run.traces == (RunTrace("t", 1, quotes=QuoteCounts(not_found=1, unsorted=1)),)


HEAD = '{"record":"workspace","format":"mast-tui-workspace","version":1}\n'
TRACE_WITH = '{"record":"trace","id":"t","span_indices":%s}\n'


def test_a_bad_file_is_refused_with_its_line(tmp_path: Path) -> None:
    for text, message in [
        ("", "empty"),
        ('{"record":"event"}\n', "line 1: expected the record"),
        (HEAD + HEAD, "line 2: expected the record"),
        (HEAD.replace(":1}", f":{VERSION + 1}}}"), "line 1: written by a newer version"),
        (HEAD.replace("mast-tui-workspace", "other"), "line 1: the format"),
        (HEAD + "{\n", "line 2"),
        (HEAD + "[1]\n", "line 2: expected one JSON object per line"),
        (HEAD + '\n{"record":"cake"}\n', "line 3: unknown record 'cake'"),
        (HEAD + '{"record":"event","id":"x"}\n', "line 2: event.kind: "),
        (HEAD + '{"record":"taxonomy","taxonomy":{}}\n', "line 2: taxonomy"),
        (HEAD + '{"record":"set_aside","seed":0,"share":2}\n', "line 2: set_aside.share: "),
        (HEAD + '{"record":"run","id":"r"}\n', "line 2: run: 'judge' is missing"),
        (HEAD + TRACE_WITH % '{"k": 3}', "line 2: trace.span_indices: "),
        (HEAD + TRACE_WITH % '[{"key":"k"}]', "line 2: trace.span_indices.*'index' is missing"),
        (HEAD + TRACE_WITH % '[{"key":"k","index":-1}]', "line 2: trace.span_indices.*index: "),
        (HEAD + TRACE_WITH % '[{"index":1}]', "line 2: trace.span_indices.*'key' is missing"),
    ]:
        file = tmp_path / "x.jsonl"
        file.write_text(text)
        with pytest.raises(ExchangeError, match=message):
            read_jsonl(file)


def test_span_indices_are_imported_if_keys_are_of_one_scheme(tmp_path: Path) -> None:
    text = exported(full_workspace(tmp_path / "a.db"))
    lines = [json.loads(line) for line in text.split("\n") if line]
    (trace,) = (record for record in lines if record["record"] == "trace" and record["id"] == "t")
    assert trace["span_indices"] == [
        {"key": "k", "index": 3},
        {"key": "l", "index": 0, "text_chars": 12},
    ]
    identity = TraceIdentity("t", "ab" * 32, 10, "codex", 1, True)
    with closing(Workspace.open(tmp_path / "b.db")) as workspace:
        workspace.register_trace(TraceRecord("t", identity))
        workspace.keep_span_indices({"t": {"k": SpanIndex(4), "l": SpanIndex(None)}})
        (tmp_path / "export.jsonl").write_text(text)
        merge_content(read_jsonl(tmp_path / "export.jsonl"), workspace)
        assert workspace.span_indices("t") == {"t": {"k": SpanIndex(4), "l": SpanIndex(0, 12)}}
    # Indices by another scheme of keys are left out.
    identity = TraceIdentity("t", "ab" * 32, 10, "codex", 2, True)
    with closing(Workspace.open(tmp_path / "c.db")) as workspace:
        workspace.register_trace(TraceRecord("t", identity))
        (tmp_path / "export.jsonl").write_text(text)
        merge_content(read_jsonl(tmp_path / "export.jsonl"), workspace)
        assert "t" not in workspace.span_indices()
