"""The outbox: changes that wait on this machine while the server is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mast_tui.adjudication import Adjudication, GuidelineBook, take_on
from mast_tui.adjudication.conflicts import ABSENT_CHOICE, UNSURE
from mast_tui.errors import ChangedMeanwhile, ServerAway
from mast_tui.labels import PassKind, Target, VerdictValue
from mast_tui.session import Session
from mast_tui.team import postgresql
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.events.chain import edited_histories
from mast_tui.workspace.events.types import PassStarted, SpansRead
from mast_tui.workspace.records import TeamRole
from tests.postgres import PostgresServer
from tests.workspace.build import MAST, MODES, TRACE, event, trace_of
from tests.workspace.test_waiting import another_writer

pytestmark = pytest.mark.slow


@dataclass
class ServerWorkspace:
    """A database with a workspace, and the folder of the outbox."""

    postgres: PostgresServer
    database: str
    folder: Path

    @property
    def url(self) -> str:
        return self.postgres.url(self.database)

    def away(self) -> AbstractContextManager[None]:
        """Cut all connections to the database, and refuse new ones."""
        return self.postgres.keeping_out(self.database)

    @contextmanager
    def window(self) -> Iterator[Workspace]:
        """Open the workspace like the app."""
        with closing(Workspace.open(self.url)) as workspace:
            workspace.open_outbox(self.folder, "alice")
            yield workspace


@pytest.fixture
def team(postgres: PostgresServer, tmp_path: Path) -> Iterator[ServerWorkspace]:
    name = postgres.take()
    yield ServerWorkspace(postgres, name, tmp_path / "outbox")
    postgres.give_back(name)


def session_on(workspace: Workspace, trace_id: str = TRACE, annotator: str = "alice") -> Session:
    trace = trace_of("one", "two", "three", trace_id=trace_id)
    return Session.open(workspace, trace, MAST, annotator, blind=False)


def put(session: Session, mode: int, key: str = "k0") -> None:
    session.toggle_label(MODES[mode], Target(key, key), suggestions_on_screen=False)


def modes(workspace: Workspace) -> list[str]:
    return [label.mode for label in workspace.labels(annotator="alice")]


def is_sound(workspace: Workspace) -> bool:
    with workspace._database.reading() as connection:
        edited = edited_histories(connection, ["alice"])
    seqs = [row.seq for row in workspace.events(annotator="alice")]
    return not edited and not workspace.differences() and seqs == list(range(1, len(seqs) + 1))


def test_changes_without_the_server_wait_and_survive_the_app(team: ServerWorkspace) -> None:
    with team.window() as workspace:
        session = session_on(workspace)
        put(session, 0)
        with team.away():
            put(session, 1)
            put(session, 2)
            session.undo()
            put(session, 3, "k1")
            session.mark_read(["k0"])
            assert len(session.labels) == 3
            assert workspace.waiting == 4  # without the read spans
            with pytest.raises(ServerAway):
                workspace.labels()
        assert modes(workspace) == [MODES[0]]
        # A second window, as after a kill: nothing is closed or sent.
        with team.window() as second:
            assert second.waiting == 4
            assert {row.mode for row in session_on(second).labels} == {*MODES[:2], MODES[3]}
            assert second.send_waiting() == ()
            assert (second.waiting, is_sound(second)) == (0, True)
            assert sorted(modes(second)) == sorted([MODES[0], MODES[1], MODES[3]])
            count = second.event_count()
            # The first window sends nothing a second time.
            assert workspace.send_waiting() == ()
            assert (second.event_count(), is_sound(second)) == (count, True)
        put(session, 4)
        assert (len(modes(workspace)), workspace.waiting) == (4, 0)


def test_commit_with_a_lost_answer_is_not_made_twice(
    team: ServerWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team.window() as workspace:
        session = session_on(workspace)
        put(session, 0)
        commit = postgresql.PostgresServer._commit

        def lose_the_answer(server: postgresql.PostgresServer) -> None:
            commit(server)
            raise psycopg.OperationalError("the connection was lost")

        with monkeypatch.context() as patch:
            patch.setattr(postgresql.PostgresServer, "_commit", lose_the_answer)
            put(session, 1)
        assert workspace.waiting == 1
        assert len(session.labels) == 2
        assert workspace.send_waiting() == ()
        assert (modes(workspace), workspace.waiting) == ([MODES[0], MODES[1]], 0)
        put(session, 2)
        assert is_sound(workspace)


def test_changes_of_another_window_meanwhile_stay(team: ServerWorkspace) -> None:
    with team.window() as workspace, closing(Workspace.open(team.url)) as elsewhere:
        session = session_on(workspace)
        finished = session_on(workspace, "run-2")
        put(session, 0)
        put(finished, 0)
        with team.away():
            put(session, 1)
            put(finished, 1)
            put(finished, 2)
        put(session_on(elsewhere), 3)
        session_on(elsewhere, "run-2").finish(open_modes="leave")
        frozen = elsewhere.labels(trace_id="run-2")
        refused = workspace.send_waiting()
        assert [change.events[-1].fact.label.mode for change in refused] == [MODES[1], MODES[2]]  # type: ignore[union-attr]
        assert elsewhere.labels(trace_id="run-2") == frozen
        assert len(elsewhere.labels(trace_id=TRACE)) == 3
        assert (workspace.waiting, is_sound(elsewhere)) == (0, True)
        assert workspace.outbox is not None
        lines = workspace.outbox.refused_path.read_text().splitlines()
        assert [json.loads(line)["trace_id"] for line in lines] == ["run-2", "run-2"]
        session.show_state(session.read_state())
        assert len(session.labels) == 3
        assert MODES[3] in {label.mode for label in session.labels}


async def test_silent_server_does_not_block_the_app(
    team: ServerWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team.window() as workspace:
        session = session_on(workspace)
        put(session, 0)
        with psycopg.connect(team.url) as connection, monkeypatch.context() as patch:
            connection.execute("LOCK TABLE labels, events IN ACCESS EXCLUSIVE MODE")
            patch.setattr(workspace._database, "_answer_seconds", 0.2)
            with pytest.raises(ServerAway):
                workspace.labels()
            put(session, 1)
            assert workspace.waiting == 1
            # On the screen's thread nothing is asked until the server is known to be back.
            patch.setattr(psycopg.Connection, "connect", None)
            with pytest.raises(ServerAway):
                workspace.labels()
        workspace.changed_elsewhere()
        assert workspace.send_waiting() == ()
        with another_writer(team.url), monkeypatch.context() as patch:
            patch.setattr(workspace._database, "_answer_seconds", 0.2)
            put(session, 2)
            assert workspace.waiting == 1
        assert workspace.send_waiting() == ()
        assert len(workspace.labels()) == 3


def test_only_own_changes_wait(team: ServerWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with team.window() as workspace, team.away():
        monkeypatch.setattr("mast_tui.writes.PATIENCE", 0.0)
        with pytest.raises(ServerAway):
            workspace.append([event(PassStarted(PassKind.ASSISTED), annotator="bob")])
        assert workspace.outbox is not None
        assert workspace.outbox.waiting == ()


async def test_other_traces_can_be_labelled_without_the_server(team: ServerWorkspace) -> None:
    with closing(Workspace.open(team.url)) as elsewhere:
        put(session_on(elsewhere, "run-2", "bob"), 5)
        with team.window() as workspace:
            put(session_on(workspace, "run-2"), 0)
            workspace.read_ahead()
            put(session_on(workspace, "run-3"), 1)
            with team.away():
                cached, recent, new = (session_on(workspace, f"run-{n}") for n in (2, 3, 4))
                put(cached, 2, "k1")
                assert {row.mode for row in cached.labels} == {MODES[0], MODES[2]}
                assert [row.mode for row in recent.labels] == [MODES[1]]
                put(new, 3)
                new.finish(open_modes="leave")
                reopened = session_on(workspace, "run-4")
                assert (reopened.finished, len(reopened.labels)) == (True, 1)
                assert workspace.finished_traces("alice", MAST.ref) == {"run-4"}
                assert {row.annotator for row in workspace.labels()} == {"alice"}
            # Another annotator has registered another trace of that name first.
            elsewhere.register_trace(TraceRecord.from_trace(trace_of("other", trace_id="run-4")))
            with team.window() as second:  # the first one was killed
                assert second.send_waiting() == ()
                assert second.passes(taxonomy=MAST.ref)[-1].trace_id == "run-4~2"
                assert is_sound(second)
                assert len(second.labels(annotator="alice")) == 4
                assert (second.waiting, second.outbox and second.outbox.traces) == (0, {})


async def test_adjudication_continues_without_the_server(team: ServerWorkspace) -> None:
    with closing(Workspace.open(team.url)) as elsewhere, team.window() as workspace:
        for annotator, mode in (("bob", 0), ("carol", 1)):
            session = session_on(elsewhere, annotator=annotator)
            put(session, mode)
            session.finish(open_modes="absent")
        take_on(workspace, MAST, "alice", [TRACE])
        take_on(elsewhere, MAST, "dana", [TRACE])
        workspace.read_ahead(everybody=True)
        work = Adjudication(workspace, MAST, TRACE, "alice")
        first, second = work.gold.conflicts
        with team.away():
            work.decide(first, UNSURE)
            work.decide(second, ABSENT_CHOICE)
            assert work.undo() == (second.id,)
            work.explain([first.id], "no word of it")
            GuidelineBook(workspace, MAST, "alice").write(MODES[0], "only where it costs")
            reopened = Adjudication(workspace, MAST, TRACE, "alice")
            assert [(row.item, row.reason) for row in reopened.decisions] == [
                (first.id, "no word of it")
            ]
            assert [row.id for row in reopened.gold.conflicts] == [second.id]
            assert workspace.waiting == 5
        other = Adjudication(elsewhere, MAST, TRACE, "dana")
        assert other.decisions == ()
        other.decide(first, ABSENT_CHOICE)
        assert workspace.outbox is not None
        sent = workspace.outbox.waiting
        workspace.changed_elsewhere()
        assert workspace.send_waiting() == ()
        assert (workspace.waiting, is_sound(workspace)) == (0, True)
        assert [row.text for row in elsewhere.guidelines(MAST.ref)] == ["only where it costs"]
        (decision,) = elsewhere.decisions(TRACE, MAST.ref)
        assert (decision.decided_by, decision.value) == ("dana", VerdictValue.ABSENT)
        assert len(elsewhere.decisions(TRACE, MAST.ref, annotator="alice")) == 1
        assert [row.annotator for row in workspace.decided_meanwhile(sent)] == ["dana"]
        work.refresh()
        assert work.decisions == (decision,)


def test_label_of_a_member_is_one_statement(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = postgres.new_database()
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        owner.add_member("alice", TeamRole.ANNOTATOR)
    url = postgres.url(database, user="alice")
    statements: list[str] = []
    execute = psycopg.Cursor.execute

    def count(cursor: Any, statement: Any, *args: Any, **options: Any) -> Any:
        statements.append(statement)
        return execute(cursor, statement, *args, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", count)
    with closing(Workspace.open(url)) as workspace, closing(Workspace.open(url)) as other:
        workspace.open_outbox(tmp_path, "alice")
        session = session_on(workspace)
        elsewhere = session_on(other)
        put(session, 0)
        statements.clear()
        put(session, 1)
        assert len(statements) == 1
        # Events of another program are noticed, and counted on from.
        with pytest.raises(ChangedMeanwhile):
            put(elsewhere, 2)
        put(elsewhere, 2)
        for writer in (workspace, other, workspace, workspace):
            writer.append([event(SpansRead(("k0",)))])
        with pytest.raises(ChangedMeanwhile):
            put(session, 3)
        assert len(modes(workspace)) == 3
    with closing(Workspace.open(postgres.url(database))) as owner:
        assert is_sound(owner)
