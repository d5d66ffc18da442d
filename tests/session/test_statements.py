"""The SQL statements of a session, which do not grow with the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mast_tui.session import Session
from mast_tui.ui.services.open_workspace import OpenWorkspace as Sitting
from mast_tui.workspace import Workspace, schema
from tests.session.build import Desk, finding, put, span, spans
from tests.workspace.build import MAST, MODES, trace_of
from tests.workspace.statement_log import StatementLog

ONE, TWO, THREE = MODES[:3]

SMALL = {
    table.name
    for table in (
        schema.annotators,
        schema.sights,
        schema.studies,
        schema.taxonomies,
        schema.settings,
        schema.runs,
    )
}
"""Tables with a row for each person, taxonomy, study or run; all others grow with the traces."""


class ListeningDesk(StatementLog):
    """A desk whose workspace is heard."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.desk = Desk(Workspace.open(path), trace_of(*"abcde"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "w.db"


@pytest.fixture
def listening(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ListeningDesk]:
    """A workspace where a judge and somebody else have looked at the trace."""
    one = ListeningDesk(place, monkeypatch)
    one.desk.judge(finding(ONE, 1), finding(TWO, 2))
    other = one.desk.open("bob")
    put(other, TWO, span(3))
    other.finish(open_modes="absent")
    yield one
    one.desk.workspace.close()


def all_that_a_person_does(desk: Desk) -> Session:
    """Open a trace and do everything that keys can do on it."""
    session = desk.open()
    session.note_suggestions_on_screen()
    first, second = session.pending
    put(session, THREE, span(0))
    session.mark_read(["k0", "k1"], [range(2, 5)])
    session.accept(first.id)
    session.reject(second.id, "no")
    session.note_span("k1", "look here")
    label = put(session, TWO, spans(1, 3))
    session.edit_label(label, note="why", confidence=0.5)
    session.remove_label(label)
    session.undo()
    session.redo()
    session.set_verdict(MODES[5], None)
    session.finish(open_modes="absent")
    Sitting(desk.workspace, MAST, "alice", False).finished()
    session.undo()
    session.finish(open_modes="leave")
    session.reveal()
    assert [label.annotator for label in session.others] == ["bob"]
    put(session, ONE, span(4))
    session.reload()
    assert session.suggestions
    return session


def test_no_statement_scans_a_large_table(listening: ListeningDesk, place: Path) -> None:
    with listening.during():
        all_that_a_person_does(listening.desk)
    plans = listening.plans(place)
    assert {"labels", "events", "passes", "traces"} <= {
        word for step, _ in plans for word in step.split() if word in schema.metadata.tables
    }
    scanned = [
        (step, statement)
        for step, statement in plans
        if step.startswith("SCAN ") and step.split()[1] not in SMALL
    ]
    assert scanned == []
