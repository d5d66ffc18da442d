"""Registered traces: identity by content, growth, versions and dates."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from mast_tui.exchange.csv_labels import read_csv_wide, write_csv_wide
from mast_tui.exchange.jsonl import TraceLine
from mast_tui.labels import TraceWork
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import TraceRecord, Workspace, WorkspaceError
from mast_tui.workspace.events.codec import read
from mast_tui.workspace.registers.outcome_files import update_outcomes
from tests.workspace.build import MAST, TRACE, trace_of

MARCH = 1_772_323_200.0
"""2026-03-01 at midnight, UTC."""


def write_log(
    path: Path, content: bytes, *, native: bool = False, head_size: int = 64 * 1024
) -> TraceRecord:
    """Write a line-based file; return its record, whose id is made of the head."""
    path.write_bytes(content)
    head = content[:head_size]
    digest = hashlib.sha256(head).hexdigest()
    identity = TraceIdentity(
        trace_id="session-9" if native else f"{path.stem}-{digest[:8]}",
        content_hash=digest,
        content_bytes=len(head),
        reader="text",
        key_scheme=1,
        native=native,
    )
    return TraceRecord(identity.trace_id, identity, path, spans=content.count(b"\n"))


def test_registered_trace_keeps_all_that_was_ever_known(workspace: Workspace) -> None:
    record = TraceRecord.from_trace(trace_of("one", "two"))
    assert (record.spans, record.model, record.outcome) == (2, "m-1", Outcome.FAILED)
    # Labels can name a trace before its file is there.
    assert workspace.register_trace(TraceRecord(TRACE, model="m-0")) == TRACE
    for partial in (record, TraceRecord(TRACE), TraceRecord(TRACE, record.identity)):
        assert workspace.register_trace(partial) == TRACE
        assert workspace.traces() == (record,)
    assert workspace.trace(TRACE) == record
    with pytest.raises(WorkspaceError, match="'other'"):
        workspace.trace("other")
    moved = replace(record, path=Path("elsewhere.json"), task="fix it")
    assert workspace.register_trace(moved) == TRACE
    assert workspace.traces() == (moved,)


def test_other_content_under_the_same_id_is_another_trace(workspace: Workspace) -> None:
    records = [TraceRecord.from_trace(trace_of(text)) for text in ("one", "two", "three")]
    assert workspace.find_trace(records[0]) is None
    assert workspace.traces() == ()
    for _ in range(2):
        ids = [workspace.register_trace(record) for record in records]
        assert ids == [TRACE, f"{TRACE}~2", f"{TRACE}~3"]
    assert workspace.find_trace(records[0]) == records[0]
    assert len(workspace.traces()) == 3


@pytest.mark.parametrize("native", [True, False])
def test_grown_file_is_the_same_trace(workspace: Workspace, tmp_path: Path, native: bool) -> None:
    path = tmp_path / "run-a.log"
    first = write_log(path, b"one\n", native=native)
    name = workspace.register_trace(first)
    for content in (b"one\ntwo\n", b"one\ntwo\nthree\n"):
        grown = write_log(path, content, native=native)
        match = workspace.find_trace(grown)
        assert match is not None
        assert match.trace_id == name
        assert workspace.register_trace(grown) == name
    (stored,) = workspace.traces()
    assert (stored.identity, stored.spans) == (first.identity, 3)


def test_growth_is_recognised_by_name_and_head(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "run-a.log"
    name = workspace.register_trace(write_log(path, b"one\n", native=True))
    assert workspace.register_trace(write_log(path, b"ONE\ntwo\n", native=True)) == f"{name}~2"
    first = write_log(tmp_path / "run.log", b"one\n")
    renamed = write_log(tmp_path / "run-b.log", b"one\ntwo\n")
    assert workspace.register_trace(first) != workspace.register_trace(renamed)
    # Beyond the head, content is not compared.
    long = write_log(path, b"line\n" * 20_000)
    longer = write_log(path, b"line\n" * 20_000 + b"more\n")
    assert workspace.register_trace(long) == workspace.register_trace(longer)


def test_many_traces_are_registered_like_single_ones(workspace: Workspace, tmp_path: Path) -> None:
    earlier = write_log(tmp_path / "run.txt", b"one\n")
    workspace.register_trace(TraceRecord("known"))
    workspace.register_trace(earlier)
    unchanged = TraceRecord("known", outcome=Outcome.FAILED)
    later = TraceRecord(earlier.trace_id, system="s")
    whole = write_log(tmp_path / "other.txt", b"two\n")
    new = TraceRecord("new", model="m")
    new_again = TraceRecord("new", system="s")
    plain = [TraceRecord(f"t{number}") for number in range(1200)]
    remaining = workspace.register_unknown_traces([unchanged, new, new_again, later, whole, *plain])
    assert remaining == (unchanged, new_again, later, whole)
    ids = {trace.trace_id for trace in workspace.traces()}
    assert ids == {"known", "new", earlier.trace_id, *(trace.trace_id for trace in plain)}
    assert workspace.trace("new") == new


def record_of(path: Path) -> TraceRecord:
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    return TraceRecord.from_trace(trace)


def chat(path: Path, *times: str | None) -> TraceRecord:
    """Write a chat whose messages have these times."""
    messages = [
        {"role": "user", "content": f"say {number}"} | ({"timestamp": time} if time else {})
        for number, time in enumerate(times)
    ]
    path.write_text(json.dumps({"messages": messages}), "utf-8")
    return record_of(path)


def test_run_starts_with_its_first_dated_span_or_the_date_in_a_file_of_outcomes(
    workspace: Workspace, tmp_path: Path
) -> None:
    dated = chat(tmp_path / "b.json", None, "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")
    assert dated.started == MARCH
    undated = chat(tmp_path / "a.json", None)
    assert undated.started is None
    workspace.register_trace(undated)
    rows = tmp_path / "outcomes.csv"
    rows.write_text("trace,version,date\na.json,1.10,2026-03-01\n")
    record = record_of(tmp_path / "a.json")
    assert (record.version, record.started) == ("1.10", MARCH)
    assert update_outcomes(workspace) == []
    assert [(trace.version, trace.started) for trace in workspace.traces()] == [("1.10", MARCH)]
    rows.write_text("trace,version,date\na.json,1.11,on Monday\n")
    (problem,) = update_outcomes(workspace)
    assert "line 2: date is 'on Monday'; expected a date such as 2026-03-31" in problem
    assert [(trace.version, trace.started) for trace in workspace.traces()] == [("1.11", MARCH)]


def test_versions_and_dates_come_with_labels(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(
        "trace_id,annotator,1.1,version,date\n"
        "t1,ann,1,1.9,2026-03-01\nt1,bob,1,,\nt2,ann,0,1.9,soon\nt1,cat,1,2.0,\n"
    )
    incoming = read_csv_wide([file], taxonomy=MAST)
    trace = TraceRecord("t1", version="1.9", started=MARCH)
    assert incoming.traces == (trace,)
    assert [problem.reason for problem in incoming.problems] == [
        "date is 'soon'; expected a date such as 2026-03-31",
        "version is '1.9' in one row and '2.0' in another",
    ]
    header, row = write_csv_wide([TraceWork("ann", "t1", MAST.ref)], {"t1": trace}, MAST).split()
    assert header.endswith(",version,date")
    assert row.endswith(",1.9,2026-03-01T00:00:00+00:00")
    for record in (TraceRecord("t", version="1.2", started=3.5), TraceRecord("t", started=MARCH)):
        values = json.loads(json.dumps(to_builtins(TraceLine.of(record, {}))))
        assert read(values, TraceLine, "trace").trace_record() == record
