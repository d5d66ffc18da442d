"""Files of earlier versions opened by this one."""

from __future__ import annotations

import os
import sqlite3
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
from tests.workspace.build import MAST, MODES, TRACE, event, label, start_pass, state, trace_of
from tests.workspace.version_one import (
    WITHOUT_TASKS,
    columns,
    raw_content,
    without_remedies,
    write_version_one,
)

JUDGE = "judge:rules@1"


QUOTE = Evidence(key="k0", quote="look", char_start=0, char_end=4)


def judge(workspace: Workspace, run: str, finding: Finding) -> None:
    store_judgement(
        workspace,
        judge=JUDGE,
        taxonomy=MAST.ref,
        trace_id=TRACE,
        looks_at=MODES[:3],
        findings=[finding],
        run_id=run,
        trace=RunTrace(TRACE, 0),
    )


def content(workspace: Workspace) -> dict[str, Any]:
    return {
        **state(workspace),
        "events": list(workspace.events()),
        "runs": workspace.runs(),
        "traces": workspace.traces(),
        "taxonomies": workspace.taxonomies(),
        "setting": workspace.get_setting("a"),
    }


def content_of(path: Path) -> dict[str, Any]:
    with closing(Workspace.open(path)) as workspace:
        return content(workspace)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of version 1 with labels, a run, and an answer to a suggestion."""
    with closing(Workspace.open(tmp_path / "today.db")) as workspace:
        workspace.add_taxonomy(MAST)
        workspace.register_trace(TraceRecord.from_trace(trace_of("look", "at", "it")))
        run = workspace.start_run(JUDGE, MAST.ref, note="a run")
        judge(workspace, run, Finding(MODES[0], "k0", "k0", "why", 0.5, evidence=QUOTE))
        workspace.finish_run(run)
        start_pass(workspace, label(workspace, note="mine"))
        (suggestion,) = workspace.labels(annotator=JUDGE)
        workspace.append([event(ReviewSet(suggestion.id, None, ReviewGiven(ReviewAnswer.REJECT)))])
        workspace.set_setting("a", "b")
    write_version_one(tmp_path / "old.db", tmp_path / "today.db")
    assert raw_content(tmp_path / "old.db")["version"] == 1
    return tmp_path / "old.db"


@pytest.fixture
def expected(old: Path) -> dict[str, Any]:
    """The content of the file before it was written as version 1."""
    return content_of(old.with_name("today.db"))


def shape(path: Path) -> dict[str, Any]:
    """Return the tables and indexes as SQLite parses them, independent of their SQL text."""
    with closing(sqlite3.connect(path)) as connection:
        tables: dict[str, Any] = {}
        for table in columns(connection):
            tables[table] = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
            for row in connection.execute(f"PRAGMA index_list({table})").fetchall():
                keys = connection.execute(f"PRAGMA index_xinfo({row[1]})").fetchall()
                tables[row[1]] = (row[2:], keys)
        indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        tables["indexes"] = {
            name: " ".join(sql.replace('"', "").split())
            for name, sql in connection.execute(indexes)
        }
        tables["kinds"] = sorted(
            row[1:] for row in connection.execute("PRAGMA table_list") if row[1] != "sqlite_schema"
        )
        return tables


@pytest.mark.parametrize("version", [1, 2, 3])
def test_file_of_an_early_version_keeps_its_content_and_gets_todays_tables(
    old: Path, tmp_path: Path, expected: dict[str, Any], version: int
) -> None:
    with closing(sqlite3.connect(old)) as raw, raw:
        for step in range(1, version):
            for statement in migration._STEPS[step]:
                raw.execute(statement)
        raw.execute(f"PRAGMA user_version = {version}")
    with closing(Workspace.open(old)) as workspace:
        assert content(workspace) == expected
        workspace.rebuild()
        assert content(workspace) == expected
        assert workspace.edited_histories() == ()
        chained = {row.annotator: row.chain_hash is not None for row in workspace.events()}
        assert chained == {"alice": True, JUDGE: False}
        assert workspace.unfinished_run(JUDGE, MAST.ref) is None
    assert shape(old) == shape(tmp_path / "today.db")
    with closing(Workspace.open(old, create=False)) as workspace:
        settings = RunSettings("m-1", "0123abcd", "models.example")
        run = workspace.start_run(JUDGE, MAST.ref, settings=settings)
        lost = Evidence(key=None, quote="lost")
        judge(
            workspace, run, Finding(MODES[1], "k0", "k0", "why", 0.5, decisive=True, evidence=lost)
        )
        assert workspace.runs()[1].settings == settings
        assert workspace.runs()[0].usage == Usage()
        (added,) = (row for row in workspace.labels(annotator=JUDGE) if row.mode == MODES[1])
        assert added.decisive


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
def test_file_of_a_later_version_gets_todays_tables(
    tmp_path: Path, version: int, statements: tuple[str, ...]
) -> None:
    file = tmp_path / "old.db"
    with closing(Workspace.open(file)) as workspace:
        workspace.register_trace(TraceRecord("t", model="m"))
    current = shape(file)
    with closing(sqlite3.connect(file)) as raw, raw:
        if version < 8:
            without_remedies(raw)
        for statement in statements:
            raw.execute(statement)
        raw.execute(f"PRAGMA user_version = {version}")
    indices = {"t": {"k0": SpanIndex(0), "k1": SpanIndex(1, 12), "gone": SpanIndex(None)}}
    with closing(Workspace.open(file)) as workspace:
        assert workspace.traces() == (TraceRecord("t", model="m"),)
        assert (workspace.imports(), workspace.span_indices()) == ((), {})
        workspace.keep_span_indices(indices)
        fields: dict[str, Any] = {"version": "1.2", "started": 3.5, "task_id": "T1", "trial": 2}
        workspace.register_trace(TraceRecord("t", **fields))
        assert workspace.span_indices() == indices
        assert workspace.traces() == (TraceRecord("t", model="m", **fields),)
    assert shape(file) == current


def test_unreadable_event_does_not_prevent_migration(old: Path) -> None:
    with closing(sqlite3.connect(old)) as raw, raw:
        raw.execute("UPDATE events SET payload = '{' WHERE annotator = 'alice' AND seq = 1")
    with closing(Workspace.open(old)) as workspace:
        assert [row.annotator for row in workspace.labels(annotator="alice")] == ["alice"]


def test_failing_last_step_leaves_the_file_unchanged(
    old: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    content_before = raw_content(old)
    last = max(migration._STEPS)
    steps = migration._STEPS | {last: (*migration._STEPS[last], "CREATE TABLE asked (x)")}
    with monkeypatch.context() as patched:
        patched.setattr(migration, "_STEPS", steps)
        with pytest.raises(WorkspaceError, match=str(old)):
            Workspace.open(old)
    assert raw_content(old) == content_before
    assert content_of(old) == expected


def test_migration_by_another_program_meanwhile_is_used(
    old: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate_tables = SqliteFile._migrate_tables
    opened_first: list[Workspace] = []

    def open_elsewhere_first(self: SqliteFile) -> None:
        monkeypatch.setattr(SqliteFile, "_migrate_tables", migrate_tables)
        opened_first.append(Workspace.open(old))
        migrate_tables(self)

    monkeypatch.setattr(SqliteFile, "_migrate_tables", open_elsewhere_first)
    with closing(Workspace.open(old)) as workspace, closing(opened_first[0]) as other:
        assert content(workspace) == content(other) == expected


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
def test_read_only_file_is_refused_and_unchanged(old: Path) -> None:
    content_before = old.read_bytes()
    old.chmod(0o400)
    with pytest.raises(WorkspaceError, match="is read-only"):
        Workspace.open(old)
    assert old.read_bytes() == content_before


def test_version_zero_is_refused_as_damaged(old: Path) -> None:
    with closing(sqlite3.connect(old)) as raw:
        raw.execute("PRAGMA user_version = 0")
    with pytest.raises(WorkspaceError, match="damaged"):
        Workspace.open(old)
