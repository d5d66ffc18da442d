"""What somebody does while the server is away waits on this machine, and is sent in its order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mast_tui.errors import ChangedMeanwhile, ServerAway
from mast_tui.labels import PassKind, Target
from mast_tui.session import Session
from mast_tui.workspace import Workspace, postgresql
from mast_tui.workspace.events.chain import edited_histories
from mast_tui.workspace.events.types import PassStarted, SpansRead
from tests.postgres import PostgresServer
from tests.workspace.build import MAST, MODES, TRACE, event, trace_of
from tests.workspace.test_server import somebody_writes

pytestmark = pytest.mark.slow


@dataclass
class Team:
    """A database with a workspace, and where this machine keeps what waits for it."""

    postgres: PostgresServer
    database: str
    folder: Path

    @property
    def url(self) -> str:
        return self.postgres.url(self.database)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody gets at the database, and who was at it has lost the connection."""
        self._let_in("false")
        self.postgres.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{self.database}'"
        )
        yield
        self._let_in("true")

    def _let_in(self, whether: str) -> None:
        self.postgres.run(f"ALTER DATABASE {self.database} ALLOW_CONNECTIONS {whether}")

    @contextmanager
    def window(self) -> Iterator[Workspace]:
        """The workspace as the app opens it."""
        with closing(Workspace.open(self.url)) as workspace:
            workspace.keep_waiting(self.folder, "alice")
            yield workspace


@pytest.fixture
def team(postgres: PostgresServer, tmp_path: Path) -> Iterator[Team]:
    name = postgres.take()
    yield Team(postgres, name, tmp_path / "outbox")
    postgres.give_back(name)


def session_on(workspace: Workspace, trace_id: str = TRACE) -> Session:
    trace = trace_of("one", "two", "three", trace_id=trace_id)
    return Session.open(workspace, trace, MAST, "alice", blind=False)


def put(session: Session, mode: int, key: str = "k0") -> None:
    session.toggle_label(MODES[mode], Target(key, key), suggestions_on_screen=False)


def modes(workspace: Workspace) -> list[str]:
    return [one.mode for one in workspace.labels(annotator="alice")]


def sound(workspace: Workspace) -> bool:
    with workspace._database.reading() as connection:
        edited = edited_histories(connection, ["alice"])
    seqs = [one.seq for one in workspace.events(annotator="alice")]
    return not edited and not workspace.differences() and seqs == list(range(1, len(seqs) + 1))


def test_what_is_done_without_the_server_waits_and_outlives_the_app(team: Team) -> None:
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
            assert workspace.waiting == 4  # keys; that something was read is noted beside them
            with pytest.raises(ServerAway):
                workspace.labels()
        assert modes(workspace) == [MODES[0]]
        # As when it is killed: nothing is closed or sent.
        with team.window() as again:
            assert again.waiting == 4
            assert {one.mode for one in session_on(again).labels} == {MODES[0], MODES[1], MODES[3]}
            assert again.send_waiting() == ()
            assert (again.waiting, sound(again)) == (0, True)
            assert sorted(modes(again)) == sorted([MODES[0], MODES[1], MODES[3]])
            before = again.event_count()
            # The window that was killed has not heard that they were sent.
            assert workspace.send_waiting() == ()
            assert (again.event_count(), sound(again)) == (before, True)
        put(session, 4)
        assert (len(modes(workspace)), workspace.waiting) == (4, 0)


def test_a_commit_of_which_nothing_is_known_is_not_made_twice(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team.window() as workspace:
        session = session_on(workspace)
        put(session, 0)
        commit = postgresql.Server._commit

        def lose_the_answer(server: postgresql.Server) -> None:
            commit(server)
            raise psycopg.OperationalError("the connection was lost")

        with monkeypatch.context() as patch:
            patch.setattr(postgresql.Server, "_commit", lose_the_answer)
            put(session, 1)
        assert workspace.waiting == 1
        assert len(session.labels) == 2
        assert workspace.send_waiting() == ()
        assert (modes(workspace), workspace.waiting) == ([MODES[0], MODES[1]], 0)
        put(session, 2)
        assert sound(workspace)


def test_what_another_window_has_done_meanwhile_stays(team: Team) -> None:
    with team.window() as workspace, closing(Workspace.open(team.url)) as elsewhere:
        session, finished = session_on(workspace), session_on(workspace, "run-2")
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
        assert [one.events[-1].fact.label.mode for one in refused] == [MODES[1], MODES[2]]  # type: ignore[union-attr]
        assert elsewhere.labels(trace_id="run-2") == frozen
        assert len(elsewhere.labels(trace_id=TRACE)) == 3
        assert (workspace.waiting, sound(elsewhere)) == (0, True)
        assert workspace.outbox is not None
        lines = workspace.outbox.refused_path.read_text().splitlines()
        assert [json.loads(line)["trace_id"] for line in lines] == ["run-2", "run-2"]
        session.catch_up()
        assert len(session.labels) == 3
        assert MODES[3] in {one.mode for one in session.labels}


async def test_a_server_that_does_not_answer_holds_nobody_up(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team.window() as workspace:
        session = session_on(workspace)
        put(session, 0)
        with psycopg.connect(team.url) as connection, monkeypatch.context() as patch:
            connection.execute("LOCK TABLE labels, events IN ACCESS EXCLUSIVE MODE")
            patch.setattr(workspace._database, "_answers_within", 0.2)
            with pytest.raises(ServerAway):
                workspace.labels()
            put(session, 1)
            assert workspace.waiting == 1
            # On the screen's thread nothing is asked until it is known to be back.
            patch.setattr(psycopg, "connect", None)
            with pytest.raises(ServerAway):
                workspace.labels()
        workspace.changed_elsewhere()
        assert workspace.send_waiting() == ()
        with somebody_writes(team.url), monkeypatch.context() as patch:
            patch.setattr(workspace._database, "_answers_within", 0.2)
            put(session, 2)
            assert workspace.waiting == 1
        assert workspace.send_waiting() == ()
        assert len(workspace.labels()) == 3


def test_only_what_follows_on_known_events_waits(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team.window() as workspace, team.away():
        monkeypatch.setattr("mast_tui.writes.PATIENCE", 0.0)
        with pytest.raises(ServerAway):
            workspace.append([event(PassStarted(PassKind.ASSISTED))])
        assert workspace.outbox is not None
        assert workspace.outbox.waiting == ()


def test_a_label_takes_one_round_trip(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[str] = []
    for part, name in ((postgresql.Server, "_send"), (postgresql._Together, "send")):
        plain = getattr(part, name)

        def count(*args: Any, plain: Any = plain, name: str = part.__name__) -> None:
            trips.append(name)
            plain(*args)

        monkeypatch.setattr(part, name, count)
    with closing(Workspace.open(team.url)) as workspace, team.window() as other:
        session, elsewhere = session_on(workspace), session_on(other)
        put(session, 0)
        trips.clear()
        put(session, 1)
        assert trips == ["_Together"]
        # What another program has added meanwhile is found out, and counted on from.
        with pytest.raises(ChangedMeanwhile):
            put(elsewhere, 2)
        put(elsewhere, 2)
        for one in (workspace, other, workspace, workspace):
            one.append([event(SpansRead(("k0",)))])
        with pytest.raises(ChangedMeanwhile):
            put(session, 3)
        assert len(modes(workspace)) == 3
        assert sound(workspace)
