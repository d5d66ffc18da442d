"""Workspaces on a server: opening, transactions, lost connections, copies, and checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import select, text

from mast_tui import writes
from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.errors import PasswordNeeded
from mast_tui.labels import Target
from mast_tui.team import postgresql
from mast_tui.workspace import Workspace, WorkspaceError, migration, presence, schema
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.workspace.records import Asked
from tests import waiting
from tests.postgres import ASKED, PostgresServer, running_server
from tests.workspace.build import MAST, MODES, event, label, start_pass, state

pytestmark = pytest.mark.slow

FOREIGN = "a\0b \x1a \x1aS \x1a0 � \U0001f600 'quoted' %s :x"
"""A text of traces that is stored unchanged."""


@pytest.fixture
def workspace(url: str) -> Iterator[Workspace]:
    with closing(Workspace.open(url)) as opened:
        start_pass(opened, label(opened))
        yield opened


def add(workspace: Workspace, **options: Any) -> None:
    workspace.append([event(LabelAdded(label(workspace, **options)))])


def test_workspace_is_created_with_its_database_and_opened_again(postgres: PostgresServer) -> None:
    url = postgres.url("brand%20new")
    with closing(Workspace.create_on_server(url)) as workspace:
        start_pass(workspace, label(workspace))
    with closing(Workspace.create_on_server(url)) as workspace:
        assert len(workspace.labels()) == 1
        assert workspace.path is None
        assert workspace.name == url


def test_refused_addresses_are_explained(postgres: PostgresServer) -> None:
    new = postgres.new_database()
    foreign = postgres.new_database()
    postgres.run("CREATE TABLE theirs (id int)", database=foreign)
    for url, message in (
        (postgres.url(new), "no workspace in this database.*workspace create"),
        (postgres.url("nowhere"), "no such database"),
        (postgres.url(new, host="localhost") + "?sslmode=require", "no encrypted connection"),
        ("postgresql://[::1/x", "not the address of a PostgreSQL database"),
        (f"postgresql://postgres@/{new}?host=/nowhere", "no server answers there"),
        ("postgresql://a:secret@localhost/x", "a password in an address"),
        ("mysql://localhost/x", "postgresql://"),
    ):
        with pytest.raises(WorkspaceError, match=message) as error:
            Workspace.open(url)
        assert "secret" not in str(error.value)
    with pytest.raises(WorkspaceError, match="another program"):
        Workspace.create_on_server(postgres.url(foreign))


def test_missing_or_wrong_password_is_refused(
    url: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    mine = url.replace("postgres@", f"{ASKED}@")
    with pytest.raises(PasswordNeeded, match="PGPASSWORD"):
        Workspace.open(mine)
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(WorkspaceError, match="refuses the user or the password"):
        Workspace.open(mine)
    monkeypatch.setenv("PGPASSWORD", "secret")
    with pytest.raises(WorkspaceError, match="does not allow this user to do that"):
        Workspace.open(mine)


ENCRYPTION: dict[str, str | None] = {
    "postgresql://a@db.example.org/x": "require",
    "postgresql://a@10.0.0.7/x": "require",
    "postgresql://a@localhost,db.example.org/x": "require",
    "postgresql://a@/x?service=team": "require",
    "postgresql://a@db.example.org/x?sslmode=disable": "disable",
    "postgresql://a@db.example.org/x?sslmode=verify-full": "verify-full",
    "postgresql://a@localhost/x": None,
    "postgresql://a@127.0.0.1/x": None,
    "postgresql://a@[::1]/x": None,
    "postgresql:///x?host=/run/postgresql": None,
    "postgresql:///x": None,
}


def test_connection_to_another_machine_is_encrypted_unless_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)
    modes = {url: postgresql.parameters_of(url).get("sslmode") for url in ENCRYPTION}
    assert modes == ENCRYPTION


def output_of(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_server_driver_is_optional_and_not_imported_for_files() -> None:
    without_driver = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from mast_tui.workspace import Workspace, WorkspaceError\n"
        "try: Workspace.open('postgresql://localhost/x')\n"
        "except WorkspaceError as error: print(error)\n"
    )
    assert "pip install 'mast-tui[team]'" in output_of(without_driver)
    with_file = (
        "import sys\n"
        "from mast_tui.workspace import Workspace\n"
        "Workspace.open(':memory:').close()\n"
        "print([name for name in sys.modules if 'postgresql' in name or 'psycopg' in name])\n"
    )
    assert output_of(with_file) == "[]\n"


def test_older_schema_is_updated_and_newer_one_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Workspace.open(url)) as workspace:
        start_pass(workspace, label(workspace))
        state_before = state(workspace)
    version = schema.SCHEMA_VERSION + 1
    step = ("ALTER TABLE settings ADD COLUMN later TEXT",)
    with monkeypatch.context() as patch:
        patch.setitem(migration._STEPS, schema.SCHEMA_VERSION, step)
        for module in (migration, postgresql):
            patch.setattr(module, "SCHEMA_VERSION", version)
        patch.setattr("mast_tui.workspace.paths.SCHEMA_VERSION", version)
        with closing(Workspace.open(url)) as workspace:
            assert state(workspace) == state_before
    with pytest.raises(WorkspaceError, match=f"newer mast-tui.*schema {version}"):
        Workspace.open(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE settings DROP COLUMN later")
        connection.execute("UPDATE workspace_version SET schema_version = schema_version - 1")


def test_odd_texts_and_great_numbers_are_stored_unchanged(workspace: Workspace) -> None:
    target = Target("k0", "k0", FOREIGN, 1 << 40, (1 << 40) + 1)
    add(workspace, target=target, note=FOREIGN)
    stored = workspace.labels()[-1]
    assert (stored.target, stored.note) == (target, FOREIGN)
    assert workspace.differences() == ()
    with pytest.raises(WorkspaceError, match="half a character"):
        add(workspace, note="\ud800")
    assert len(workspace.labels()) == 2


def test_people_at_one_place_see_each_other(
    workspace: Workspace, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Workspace.open(url)) as other:
        presence_of_alice = workspace.presence
        presence_of_carol = other.presence
        assert presence_of_alice is not None
        assert presence_of_carol is not None

        def wait_for(expected: tuple[str, ...]) -> None:
            other.changed_elsewhere()
            for _ in waiting.until(lambda: presence_of_alice.annotators_here() == expected):
                assert not workspace.changed_elsewhere()  # nothing was written

        presence_of_alice.go_to("alice", "here")
        presence_of_carol.go_to("carol", "here")
        wait_for(("carol",))
        presence_of_carol.go_to("carol", "elsewhere")
        wait_for(())
        presence_of_carol.go_to("carol", "here")
        wait_for(("carol",))
        monkeypatch.setattr(presence, "GONE_AFTER", 0.0)
        assert presence_of_alice.annotators_here() == ()


def cut_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_lost_connection_is_reopened_and_rolls_back(workspace: Workspace, url: str) -> None:
    cut_connections(url)
    add(workspace)
    assert len(workspace.labels()) == 2
    cut_connections(url)
    assert len(workspace.labels()) == 2
    assert workspace.changed_elsewhere()  # it may have missed something

    def lose_connection_midway() -> None:
        with workspace.transaction():
            add(workspace)
            cut_connections(url)
            add(workspace)

    with pytest.raises(WorkspaceError, match="connection to the server was lost"):
        lose_connection_midway()
    assert len(workspace.labels()) == 2
    add(workspace)
    assert len(workspace.labels()) == 3


def test_writes_wait_for_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server() as server:
        url = server.url("labels")
        with closing(Workspace.create_on_server(url)) as workspace:
            start_pass(workspace, label(workspace))
            with server.away():
                monkeypatch.setattr(writes, "PATIENCE", 0.1)
                with pytest.raises(WorkspaceError, match="no server answers there"):
                    add(workspace)
                with pytest.raises(WorkspaceError):
                    workspace.labels()
                monkeypatch.undo()
            add(workspace)
            assert len(workspace.labels()) == 2


def fill(workspace: Workspace) -> None:
    """Write rows into every kind of table."""
    workspace.add_taxonomy(MAST)
    start_pass(workspace, label(workspace, note=FOREIGN), label(workspace, MODES[1]))
    start_pass(workspace, label(workspace, annotator="bob"), annotator="bob")
    run_id = workspace.start_run("judge:m@1", MAST.ref)
    workspace.record_asked(Asked(run_id, "run-1", "key", FOREIGN, "stop", "text", 3, 4, True))
    workspace.set_setting("a", "b")


def rows(workspace: Workspace) -> dict[str, list[tuple[Any, ...]]]:
    with workspace._database.reading() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in schema.metadata.sorted_tables
        }


def command(*arguments: str) -> int:
    return run(split_command(list(arguments)))


def test_copies_and_backups_of_a_server_hold_every_row(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = tmp_path / "w.db"
    copied = tmp_path / "back.db"
    with closing(Workspace.open(original)) as workspace:
        fill(workspace)
        expected = rows(workspace)
    assert command("workspace", "copy", str(original), url) == 0
    assert command("workspace", "copy", url, str(copied), "--json") == 0
    assert json.loads(capsys.readouterr().out.partition("\n")[2])["events"] == 5
    with closing(Workspace.open(copied, create=False)) as workspace:
        assert rows(workspace) == expected
    backup = tmp_path / "backup.db"
    assert command("workspace", "backup", str(backup), "--workspace", url) == 0
    assert "5 events" in capsys.readouterr().out
    with closing(Workspace.open(url)) as workspace:
        with closing(Workspace.open(backup, create=False)) as copy:
            assert rows(copy) == rows(workspace) == expected
        fill(workspace)  # later rows get new numbers
    assert command("workspace", "copy", str(original), url) == 1
    assert "the target workspace is not empty" in capsys.readouterr().err
    assert command("workspace", "copy", url, str(copied)) == 1


@pytest.mark.parametrize("on_server", [False, True])
def test_check_finds_and_mends_tables_that_differ_from_the_events(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], on_server: bool
) -> None:
    address = url if on_server else str(tmp_path / "w.db")
    check = ("workspace", "check", "--workspace", address)
    with closing(Workspace.open(address)) as workspace:
        fill(workspace)
        expected = state(workspace)
        assert command(*check) == 0
        with workspace._database.writing() as connection:
            connection.execute(text("UPDATE labels SET note = 'forged' WHERE annotator = 'bob'"))
            connection.execute(text("DELETE FROM passes WHERE annotator = 'alice'"))
        capsys.readouterr()
        assert command(*check, "--json") == 1
        assert json.loads(capsys.readouterr().out)["differences"] == [
            {"annotator": "alice", "table": "passes", "rows": 1},
            {"annotator": "bob", "table": "labels", "rows": 1},
        ]
        assert command(*check, "--mend") == 0
        assert state(workspace) == expected
        assert command(*check) == 0
