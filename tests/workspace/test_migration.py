"""A file of an earlier version opens with all that it holds, and as one of today."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from mast_tui.labels import Evidence, Finding, ReviewAnswer
from mast_tui.workspace import (
    RunSettings,
    RunTrace,
    TraceRecord,
    Usage,
    Workspace,
    WorkspaceError,
    migration,
    store_judgement,
)
from mast_tui.workspace.events.types import ReviewGiven, ReviewSet
from mast_tui.workspace.records import SpanIndex
from mast_tui.workspace.sqlite_file import SqliteFile
from tests.workspace.build import MAST, MODES, TRACE, event, label, started, state, trace_of
from tests.workspace.version_one import (
    WITHOUT_TASKS,
    columns,
    everything,
    without_remedies,
    write_version_one,
)

ROOT = Path(__file__).parents[2]
JUDGE = "judge:rules@1"


def judge(workspace: Workspace, run: str, *findings: Finding) -> None:
    store_judgement(
        workspace,
        judge=JUDGE,
        taxonomy=MAST.ref,
        trace_id=TRACE,
        looks_at=MODES[:3],
        findings=findings,
        run_id=run,
        trace=RunTrace(TRACE, 0),
    )


@pytest.fixture
def held(tmp_path: Path) -> dict[str, Any]:
    """What the file ``old.db`` of version 1 holds: labels, a run, and an answer to it."""
    with closing(Workspace.open(tmp_path / "today.db")) as workspace:
        workspace.add_taxonomy(MAST)
        workspace.register_trace(TraceRecord.from_trace(trace_of("look", "at", "it")))
        run = workspace.start_run(JUDGE, MAST.ref, note="a run")
        judge(
            workspace,
            run,
            Finding(
                MODES[0],
                "k0",
                "k0",
                "why",
                0.5,
                evidence=Evidence(key="k0", quote="look", char_start=0, char_end=4),
            ),
        )
        workspace.finish_run(run)
        started(workspace, label(workspace, note="mine"))
        (suggestion,) = workspace.labels(annotator=JUDGE)
        workspace.append([event(ReviewSet(suggestion.id, None, ReviewGiven(ReviewAnswer.REJECT)))])
        workspace.set_setting("a", "b")
        found = content(workspace)
    write_version_one(tmp_path / "old.db", tmp_path / "today.db")
    assert everything(tmp_path / "old.db")["version"] == 1
    return found


@pytest.fixture
def old(tmp_path: Path, held: dict[str, Any]) -> Path:
    return tmp_path / "old.db"


def content(workspace: Workspace) -> dict[str, Any]:
    return {
        **state(workspace),
        "events": list(workspace.events()),
        "runs": workspace.runs(),
        "traces": workspace.traces(),
        "taxonomies": workspace.taxonomies(),
        "setting": workspace.get_setting("a"),
    }


def shape(path: Path) -> dict[str, Any]:
    """What SQLite knows of the tables and indexes of a file, but for how it was written down."""
    with closing(sqlite3.connect(path)) as connection:
        found: dict[str, Any] = {}
        for table in columns(connection):
            found[table] = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
            for row in connection.execute(f"PRAGMA index_list({table})").fetchall():
                keys = connection.execute(f"PRAGMA index_xinfo({row[1]})").fetchall()
                found[row[1]] = (row[2:], keys)
        written = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        found["indexes"] = {
            name: " ".join(sql.replace('"', "").split())
            for name, sql in connection.execute(written)
        }
        found["kinds"] = sorted(
            row[1:] for row in connection.execute("PRAGMA table_list") if row[1] != "sqlite_schema"
        )
        return found


def test_everything_is_there_and_new_things_can_be_kept(old: Path, held: dict[str, Any]) -> None:
    with closing(Workspace.open(old)) as workspace:
        assert content(workspace) == held
        workspace.rebuild()
        assert content(workspace) == held
        assert workspace.unfinished_run(JUDGE, MAST.ref) is None
        settings = RunSettings("m-1", "0123abcd", "models.example")
        run = workspace.start_run(JUDGE, MAST.ref, settings=settings)
        judge(
            workspace,
            run,
            Finding(
                MODES[1],
                "k0",
                "k0",
                "why",
                0.5,
                decisive=True,
                evidence=Evidence(key=None, quote="lost"),
            ),
        )
        assert workspace.runs()[1].settings == settings
        assert workspace.runs()[0].usage == Usage()
        (added,) = (one for one in workspace.labels(annotator=JUDGE) if one.mode == MODES[1])
        assert added.decisive
    with closing(Workspace.open(old, create=False)) as workspace:
        assert len(workspace.runs()) == 2


def test_the_events_of_people_are_chained(old: Path) -> None:
    with closing(Workspace.open(old)) as workspace:
        chains = {one.annotator: one.chain for one in workspace.events()}
        assert {name: chain is None for name, chain in chains.items()} == {
            "alice": False,
            JUDGE: True,
        }
        assert workspace.edited_histories() == ()


@pytest.mark.parametrize("version", [2, 3])
def test_files_of_the_versions_between_hold_the_same(
    old: Path, tmp_path: Path, held: dict[str, Any], version: int
) -> None:
    with closing(sqlite3.connect(old)) as raw, raw:
        for step in range(1, version):
            for statement in migration._STEPS[step]:
                raw.execute(statement)
        raw.execute(f"PRAGMA user_version = {version}")
    with closing(Workspace.open(old)) as workspace:
        assert content(workspace) == held
        workspace.rebuild()
        assert content(workspace) == held
        assert workspace.edited_histories() == ()
    Workspace.open(tmp_path / "new.db").close()
    assert shape(old) == shape(tmp_path / "new.db")


WITHOUT_VERSIONS_OF_TRACES: Final = (
    *WITHOUT_TASKS,
    "DROP TABLE taxonomy_revisions",
    "ALTER TABLE traces DROP COLUMN version",
    "ALTER TABLE traces DROP COLUMN started",
)


@pytest.mark.parametrize(
    ("version", "statements"),
    [
        (4, (*WITHOUT_VERSIONS_OF_TRACES, "DROP TABLE imports", "DROP TABLE imported_events")),
        (5, WITHOUT_VERSIONS_OF_TRACES),
        (8, (*WITHOUT_TASKS, "DROP TABLE span_indices")),
        (11, WITHOUT_TASKS),
    ],
)
def test_a_file_of_a_later_version_becomes_one_as_it_is_made_today(
    tmp_path: Path, version: int, statements: tuple[str, ...]
) -> None:
    file = tmp_path / "old.db"
    with closing(Workspace.open(file)) as workspace:
        workspace.register_trace(TraceRecord("t", model="m"))
    today = shape(file)
    with closing(sqlite3.connect(file)) as raw, raw:
        if version < 8:
            without_remedies(raw)
        for statement in statements:
            raw.execute(statement)
        raw.execute(f"PRAGMA user_version = {version}")
    kept = {"t": {"k0": SpanIndex(0), "k1": SpanIndex(1, 12), "gone": SpanIndex(None)}}
    with closing(Workspace.open(file)) as workspace:
        assert workspace.traces() == (TraceRecord("t", model="m"),)
        assert (workspace.imports(), workspace.span_indices()) == ((), {})
        workspace.keep_span_indices(kept)
        of_task: dict[str, Any] = {"version": "1.2", "started": 3.5, "task_id": "T1", "trial": 2}
        workspace.register_trace(TraceRecord("t", **of_task))
        assert workspace.span_indices() == kept
        assert workspace.traces() == (TraceRecord("t", model="m", **of_task),)
    assert shape(file) == today


def test_an_event_that_cannot_be_read_keeps_nobody_out(old: Path) -> None:
    with closing(sqlite3.connect(old)) as raw, raw:
        raw.execute("UPDATE events SET payload = '{' WHERE annotator = 'alice' AND seq = 1")
    with closing(Workspace.open(old)) as workspace:
        assert [one.annotator for one in workspace.labels(annotator="alice")] == ["alice"]


def test_the_file_becomes_one_as_it_is_made_today(old: Path, tmp_path: Path) -> None:
    Workspace.open(old).close()
    Workspace.open(tmp_path / "new.db").close()
    assert shape(old) == shape(tmp_path / "new.db")


def test_a_step_that_fails_leaves_the_file_as_it_was(
    old: Path, held: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(old)
    steps = {1: (*migration._STEPS[1], "CREATE TABLE asked (x)")}
    with monkeypatch.context() as patched:
        patched.setattr(migration, "_STEPS", steps)
        with pytest.raises(WorkspaceError, match=str(old)):
            Workspace.open(old)
    assert everything(old) == before
    with closing(Workspace.open(old)) as workspace:
        assert content(workspace) == held


KILLED = """
import os, signal, sys
from mast_tui.workspace import Workspace, migration, sqlite_file

def begin_and_die(connection, version):
    migration.migrate(connection, version)
    print("all was written", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

sqlite_file.migrate = begin_and_die
Workspace.open(sys.argv[1])
"""


@pytest.mark.slow
def test_a_program_that_is_killed_in_the_midst_leaves_the_file_as_it_was(
    old: Path, held: dict[str, Any]
) -> None:
    before = everything(old)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(old)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "all was written\n", done.stderr
    assert done.returncode < 0
    assert everything(old) == before
    with closing(Workspace.open(old)) as workspace:
        assert content(workspace) == held


def test_whoever_comes_second_finds_it_done(
    old: Path, held: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, quicker = SqliteFile._migrate_tables, list[Workspace]()

    def when_another_was_quicker(self: SqliteFile) -> None:
        monkeypatch.setattr(SqliteFile, "_migrate_tables", begin)
        quicker.append(Workspace.open(old))
        begin(self)

    monkeypatch.setattr(SqliteFile, "_migrate_tables", when_another_was_quicker)
    with closing(Workspace.open(old)) as workspace, closing(quicker[0]) as other:
        assert content(workspace) == content(other) == held


@pytest.mark.slow
def test_several_may_open_it_at_once(old: Path, held: dict[str, Any]) -> None:
    together, found = threading.Barrier(4), list[dict[str, Any]]()

    def work() -> None:
        together.wait()
        with closing(Workspace.open(old)) as workspace:
            found.append(content(workspace))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [held] * 4


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
def test_a_file_that_may_not_be_written_is_refused_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    old.chmod(0o400)
    with pytest.raises(WorkspaceError, match="may be read but not written"):
        Workspace.open(old)
    assert old.read_bytes() == before


def test_a_workspace_without_a_version_is_damaged(old: Path) -> None:
    with closing(sqlite3.connect(old)) as raw:
        raw.execute("PRAGMA user_version = 0")
    with pytest.raises(WorkspaceError, match="damaged"):
        Workspace.open(old)
