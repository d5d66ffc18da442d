"""Damaged rows: they are named and skipped, and nothing else fails."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from mast_tui.labels import AnnotatorKind
from mast_tui.session import Session
from mast_tui.workspace import Workspace, WorkspaceError
from tests.workspace.build import MAST, TRACE, label, start_pass, state, trace_of
from tests.workspace.test_server import command

EVENT: Final = (
    "INSERT INTO events (id, annotator, seq, at, kind, trace_id, taxonomy, pass_number, payload, "
    "replaces, action) VALUES ('{id}', 'alice', {seq}, '2026-11-28T00:00:00Z', '{kind}', 'run-1', "
    "'mast@3', 1, '{payload}', '{replaces}', 'a')"
)
VALID: Final[dict[str, object]] = {
    "id": "x",
    "seq": 9,
    "kind": "spans_read",
    "payload": "{}",
    "replaces": "[]",
}
DAMAGED_EVENTS: Final[dict[str, dict[str, object]]] = {
    "payload": {"payload": "not json"},
    "list": {"payload": "[]"},
    "kind": {"kind": "nonsense"},
    "label": {"kind": "label_added", "payload": json.dumps({"label": 5})},
    "replaces": {"replaces": "x"},
    "replaces a number": {"replaces": "5"},
    "below": {"seq": -1},
    "above": {"seq": 9223372036854775807},
}
DAMAGED_REGISTERS: Final = {
    "UPDATE taxonomies SET document = '{'": ("taxonomies", MAST.ref),
    "UPDATE taxonomies SET document = replace(document, 'a req', 'NO req')": (
        ("taxonomies", MAST.ref)
    ),
    "UPDATE taxonomies SET content_hash = 'x'": ("taxonomies", MAST.ref),
    "UPDATE taxonomy_revisions SET document = '5'": ("taxonomies", MAST.ref),
    "INSERT INTO taxonomies VALUES ('zz@1', 'h', '{}')": ("taxonomies", "zz@1"),
    "UPDATE annotators SET kind = 'judge' WHERE name = 'alice'": ("annotators", "alice"),
    "UPDATE traces SET outcome = 'nonsense'": ("traces", TRACE),
}


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A workspace with work of alice in it."""
    is_file = request.param == "file"
    location = str(tmp_path / "w.db" if is_file else request.getfixturevalue("url"))
    fill(location)
    return location


def fill(location: str) -> None:
    with closing(Workspace.open(location)) as workspace:
        workspace.add_taxonomy(MAST)
        Session.open(workspace, trace_of("one"), MAST, "alice", blind=True)
        workspace.add_annotator("alice", AnnotatorKind.HUMAN)
        start_pass(workspace, label(workspace))


def run_sql(location: str, statement: str) -> None:
    with closing(Workspace.open(location)) as opened, opened._database.writing() as connection:
        connection.execute(text(statement.replace(":", "\\:")))


@pytest.mark.parametrize(
    ("location", "names"),
    [("file", DAMAGED_EVENTS), ("server", ("payload", "above"))],
    ids=["file", "server"],
    indirect=["location"],
)
def test_unreadable_events_are_named_and_skipped(
    location: str, names: Iterable[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = []
    for number, name in enumerate(names):
        ids.append(f"x{number}")
        statement = EVENT
        for field, value in (VALID | DAMAGED_EVENTS[name] | {"id": ids[-1]}).items():
            statement = statement.replace(f"{{{field}}}", str(value))
        run_sql(location, statement)
    for option in ([], ["--mend"]):
        assert command("workspace", "check", "--json", "--workspace", location, *option) == 1
        damaged = json.loads(capsys.readouterr().out)["damaged"]
        assert {row["table"] for row in damaged} == {"events"}
        assert sorted(row["name"].rpartition(", ")[2] for row in damaged) == ids
    out = tmp_path / "all.jsonl"
    assert command("export", "--format", "jsonl", "-o", str(out), "--workspace", location) == 0
    warnings = capsys.readouterr().err
    assert warnings.count("an event cannot be read and was left out: alice") == len(ids)
    assert not [event_id for event_id in ids if f'"{event_id}"' in out.read_text()]
    copy = str(tmp_path / "copy.db")
    assert command("import", str(out), "--format", "jsonl", "--workspace", copy) == 0
    with closing(Workspace.open(location)) as workspace, closing(Workspace.open(copy)) as other:
        assert len(workspace.labels()) == len(other.labels()) == 1
        assert len(list(workspace.events())) == len(list(other.events())) == 2


@pytest.mark.parametrize(
    ("location", "statement"),
    [
        *(("file", statement) for statement in DAMAGED_REGISTERS),
        ("server", "UPDATE traces SET outcome = 'nonsense'"),
    ],
    indirect=["location"],
)
def test_changed_register_row_is_named(
    location: str, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_sql(location, statement)
    assert command("workspace", "check", "--json", "--workspace", location) == 1
    damaged = json.loads(capsys.readouterr().out)["damaged"]
    assert [(row["table"], row["name"]) for row in damaged] == [DAMAGED_REGISTERS[statement]]
    assert command("workspace", "check", "--workspace", location) == 1
    assert "damaged in " in capsys.readouterr().out


def test_unreadable_taxonomy_does_not_hide_the_others(location: str) -> None:
    run_sql(location, "INSERT INTO taxonomies VALUES ('zz@1', 'h', '{}')")
    run_sql(location, "INSERT INTO taxonomy_revisions VALUES ('zz@1', '', 'h', '[')")
    with closing(Workspace.open(location)) as workspace:
        assert [row.ref for row in workspace.taxonomies()] == [MAST.ref]
        assert {row.taxonomy.ref for row in workspace.revisions()} == {MAST.ref}
        with pytest.raises(WorkspaceError, match="cannot be read"):
            workspace.taxonomy("zz@1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with one label."""
    path = tmp_path / "w.db"
    with closing(Workspace.open(path)) as workspace:
        workspace.add_annotator("alice", AnnotatorKind.HUMAN)
        start_pass(workspace, replace(label(workspace), saw_suggestions=True))
        assert workspace.check_rows().differences == ()
    return path


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("UPDATE labels SET char_start = 5", "labels"),
        ("UPDATE labels SET origin = 'nonsense'", "labels"),
        ("UPDATE passes SET kind = 'nonsense'", "passes"),
    ],
)
def test_damaged_state_row_is_named_and_rebuilt(path: Path, statement: str, table: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)
    with closing(Workspace.open(path)) as workspace:
        with pytest.raises(WorkspaceError, match=f"a row of {table}"):
            state(workspace)
        workspace.rebuild()
        assert len(workspace.labels(pass_number=None)) == 1


def test_flag_that_is_neither_0_nor_1_is_a_difference_and_rebuilt(path: Path) -> None:
    for value in ("'x'", "-1", "2"):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"UPDATE labels SET saw_suggestions = {value}")
        with closing(Workspace.open(path)) as workspace:
            assert [row.table for row in workspace.check_rows().differences] == ["labels"]
            workspace.rebuild()
            assert workspace.check_rows().differences == ()
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT saw_suggestions FROM labels").fetchone() == (1,)


@pytest.mark.parametrize("change", ["seq = 'x'", "at = CAST(x'61FF' AS TEXT)"])
def test_damaged_texts_are_read_and_named(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE events SET {change} WHERE kind = 'label_added'")
        database.execute("UPDATE labels SET note = CAST(x'61FF' AS TEXT)")
    with closing(Workspace.open(path)) as workspace:
        assert [label.note for label in workspace.labels(pass_number=None)] == ["a\ufffd"]
        assert [row.table for row in workspace.check_rows().damaged] == ["events"]
