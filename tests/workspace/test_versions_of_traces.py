"""Of which version a system was that ran, and when, as files beside traces and spans tell it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import to_builtins

from mast_tui.exchange.csv_labels import read_csv_wide, write_csv_wide
from mast_tui.exchange.jsonl import TraceLine
from mast_tui.labels import TraceWork
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.events.codec import read
from mast_tui.workspace.registers.outcome_files import take_outcomes

MARCH = 1_772_323_200.0
"""2026-03-01 at midnight, UTC."""


def chat(path: Path, *times: str | None) -> TraceRecord:
    """A chat whose messages have these times."""
    messages = [
        {"role": "user", "content": f"say {i}"} | ({"timestamp": time} if time else {})
        for i, time in enumerate(times)
    ]
    path.write_text(json.dumps({"messages": messages}), "utf-8")
    return record(path)


def record(path: Path) -> TraceRecord:
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    return TraceRecord.from_trace(trace)


def test_a_run_began_with_its_first_span_that_has_a_time(tmp_path: Path) -> None:
    timed = chat(tmp_path / "a.json", None, "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")
    assert timed.started == MARCH
    assert chat(tmp_path / "b.json", None).started is None


def test_a_file_of_outcomes_tells_versions_and_dates_also_later(tmp_path: Path) -> None:
    workspace = Workspace.open(":memory:")
    workspace.register_trace(chat(tmp_path / "a.json", None))
    rows = tmp_path / "outcomes.csv"
    rows.write_text("trace,version,date\na.json,1.10,2026-03-01\n")
    assert (record(tmp_path / "a.json").version, record(tmp_path / "a.json").started) == (
        "1.10",
        MARCH,
    )
    assert take_outcomes(workspace) == []
    (known,) = workspace.traces()
    assert (known.version, known.started) == ("1.10", MARCH)
    rows.write_text("trace,version,date\na.json,1.11,on Monday\n")
    (said,) = take_outcomes(workspace)
    assert "line 2: date is 'on Monday'; it must be as in 2026-03-31" in said
    (known,) = workspace.traces()
    assert (known.version, known.started) == ("1.11", MARCH)


def test_versions_and_dates_come_with_labels(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(
        "trace_id,annotator,1.1,version,date\n"
        "t1,ann,1,1.9,2026-03-01\nt1,bob,1,,\nt2,ann,0,1.9,soon\nt1,cat,1,2.0,\n"
    )
    found = read_csv_wide([file], taxonomy=load_mast())
    assert found.traces == (TraceRecord("t1", version="1.9", started=MARCH),)
    assert [one.reason for one in found.problems] == [
        "date is 'soon'; it must be as in 2026-03-31",
        "version is '1.9' in one row and '2.0' in another",
    ]
    (trace,) = found.traces
    mast = load_mast()
    work = TraceWork("ann", trace.trace_id, mast.ref)
    written = write_csv_wide([work], {trace.trace_id: trace}, mast)
    assert written.splitlines()[0].endswith(",version")
    assert written.splitlines()[1].endswith(",1.9")


@pytest.mark.parametrize(
    "trace", [TraceRecord("t", version="1.2", started=3.5), TraceRecord("t", started=MARCH)]
)
def test_jsonl_keeps_both(trace: TraceRecord) -> None:
    values = json.loads(json.dumps(to_builtins(TraceLine.of(trace, {}))))
    assert read(values, TraceLine, "trace").trace_record() == trace
