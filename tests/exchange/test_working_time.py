"""Working time from the times of events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mast_tui.exchange.exporters.datasheet import datasheet
from mast_tui.exchange.exporters.gold_document import gold_document, with_set_facts
from mast_tui.exchange.selection import gold_entries
from mast_tui.figures.agreement.report import StudyInput, agreement_figures, agreement_json
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.time_study import minutes_worked
from mast_tui.labels import AnnotatorKind, PassKind, VerdictValue
from mast_tui.workspace import Event, TraceRecord, Workspace
from mast_tui.workspace.events.types import Fact, PassFinished, PassStarted, SpansRead, VerdictSet
from tests.exchange.strategies import MAST, SLUGS
from tests.figures.agreement.tables import verdict_table

BEGIN = datetime(2026, 5, 4, 10, tzinfo=UTC)
NO_ANNOTATORS = StudyInput(MAST.ref, (), (), "1", verdict_table((), {}, {}), {})
AGREEMENT = agreement_figures(NO_ANNOTATORS, Resampling(0))
EMPTY_REPORT = agreement_json(AGREEMENT)


@pytest.fixture
def workspace() -> Workspace:
    database = Workspace.open(":memory:")
    database.add_taxonomy(MAST)
    for name in ("alice", "bob"):
        database.add_annotator(name, AnnotatorKind.HUMAN)
    for trace in ("t", "u"):
        database.register_trace(TraceRecord(trace))
    return database


def add_events(
    workspace: Workspace, name: str, trace: str, *facts: tuple[float, Fact], action: str = "a"
) -> None:
    """Add facts as events, each with its minutes after ten o'clock."""
    previous = sum(1 for _ in workspace.events(annotator=name))
    workspace.merge_events(
        Event(
            id=f"00000000-0000-7000-8000-{event_number(name, trace, number):012x}",
            annotator=name,
            seq=previous + number,
            at=(BEGIN + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z"),
            trace_id=trace,
            taxonomy=MAST.ref,
            pass_number=1,
            fact=fact,
            action=f"{action}-{name}-{trace}-{number}",
        )
        for number, (minutes, fact) in enumerate(facts, 1)
    )


def event_number(name: str, trace: str, number: int) -> int:
    return int.from_bytes(f"{name[0]}{trace}{number}".encode())


ABSENT = VerdictSet(SLUGS[0], None, VerdictValue.ABSENT)


def test_long_pauses_are_left_out(workspace: Workspace) -> None:
    work = ((0.0, PassStarted(PassKind.BLIND)), (4.5, SpansRead(("k",))), (64.5, ABSENT))
    add_events(workspace, "alice", "t", *work, (69.5, PassFinished()))
    assert minutes_worked(workspace, MAST) == {("alice", "t", 1): 9.5}


def test_open_and_imported_passes_are_not_counted(workspace: Workspace) -> None:
    add_events(workspace, "alice", "t", (0.0, PassStarted(PassKind.BLIND)), (1.0, ABSENT))
    work = (0.0, PassStarted(PassKind.BLIND)), (1.0, ABSENT), (2.0, PassFinished())
    add_events(workspace, "bob", "t", *work, action="import:csv-long")
    assert minutes_worked(workspace, MAST) == {}
    gold = gold_document(workspace, MAST, EMPTY_REPORT, gold_entries(workspace, MAST))
    assert gold["minutes_per_trace"]["annotators"] == {}
    assert "Median minutes per trace" not in datasheet(with_set_facts(gold, None, "0"), AGREEMENT)


def test_gold_and_datasheet_have_the_median_by_annotator(workspace: Workspace) -> None:
    for trace, end in (("t", 2.0), ("u", 3.0)):
        work = (0.0, PassStarted(PassKind.BLIND)), (1.0, ABSENT), (end, PassFinished())
        add_events(workspace, "alice", trace, *work)
    gold = gold_document(workspace, MAST, EMPTY_REPORT, gold_entries(workspace, MAST))
    assert gold["minutes_per_trace"] == {
        "longest_pause": 5,
        "annotators": {"alice": {"n": 2, "median": 2.5}},
    }
    assert [trace["annotators"][0]["minutes"] for trace in gold["traces"]] == [2.0, 3.0]
    sheet = datasheet(with_set_facts(gold, None, "0"), AGREEMENT)
    assert "Median minutes per trace: alice 2.5 (2 traces)." in sheet
    assert "without pauses of more than 5 minutes" in sheet
