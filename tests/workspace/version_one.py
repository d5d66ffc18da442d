"""Workspace files with the first version of the schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from mast_tui.workspace.schema import APPLICATION_ID

SCHEMA: Final = """
CREATE TABLE events (id TEXT NOT NULL, annotator TEXT NOT NULL, seq INTEGER NOT NULL, at TEXT
    NOT NULL, kind TEXT NOT NULL, trace_id TEXT, taxonomy TEXT, pass_number INTEGER, payload TEXT
    NOT NULL, replaces TEXT NOT NULL, action TEXT NOT NULL, undoes TEXT, redoes TEXT, PRIMARY KEY
    (id));
CREATE INDEX events_of_work ON events (annotator, trace_id, taxonomy, seq);
CREATE INDEX events_in_order ON events (annotator, seq, id);
CREATE TABLE labels (annotator TEXT NOT NULL, id TEXT NOT NULL, trace_id TEXT NOT NULL,
    taxonomy TEXT NOT NULL, pass_number INTEGER NOT NULL, mode TEXT NOT NULL, first_key TEXT,
    last_key TEXT, quote TEXT, char_start INTEGER, char_end INTEGER, note TEXT NOT NULL,
    confidence FLOAT, severity TEXT, origin TEXT NOT NULL, suggestion TEXT, saw_suggestions
    BOOLEAN NOT NULL, created_at TEXT NOT NULL, evidence_key TEXT, evidence_quote TEXT,
    evidence_start INTEGER, evidence_end INTEGER, PRIMARY KEY (annotator, id));
CREATE INDEX labels_of_trace ON labels (trace_id, taxonomy, annotator, pass_number);
CREATE TABLE verdicts (annotator TEXT NOT NULL, trace_id TEXT NOT NULL, taxonomy TEXT NOT
    NULL, pass_number INTEGER NOT NULL, mode TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY
    (annotator, trace_id, taxonomy, pass_number, mode)) WITHOUT ROWID;
CREATE TABLE reviews (annotator TEXT NOT NULL, trace_id TEXT NOT NULL, taxonomy TEXT NOT NULL,
    pass_number INTEGER NOT NULL, suggestion TEXT NOT NULL, answer TEXT NOT NULL, label TEXT,
    reason TEXT NOT NULL, PRIMARY KEY (annotator, trace_id, taxonomy, pass_number, suggestion))
    WITHOUT ROWID;
CREATE TABLE span_notes (annotator TEXT NOT NULL, trace_id TEXT NOT NULL, taxonomy TEXT NOT
    NULL, pass_number INTEGER NOT NULL, span_key TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY
    (annotator, trace_id, taxonomy, pass_number, span_key)) WITHOUT ROWID;
CREATE TABLE passes (annotator TEXT NOT NULL, trace_id TEXT NOT NULL, taxonomy TEXT NOT NULL,
    number INTEGER NOT NULL, kind TEXT NOT NULL, started_at TEXT NOT NULL, finished_at TEXT,
    judge_seen BOOLEAN NOT NULL, spans_read INTEGER, spans INTEGER, revealed_at TEXT, withdrawn
    BOOLEAN NOT NULL, PRIMARY KEY (annotator, trace_id, taxonomy, number)) WITHOUT ROWID;
CREATE TABLE decisions (annotator TEXT NOT NULL, trace_id TEXT NOT NULL, taxonomy TEXT NOT
    NULL, item TEXT NOT NULL, decided_at TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY
    (annotator, trace_id, taxonomy, item)) WITHOUT ROWID;
CREATE TABLE judgements (annotator TEXT NOT NULL, trace_id TEXT NOT NULL, taxonomy TEXT NOT
    NULL, looks_at TEXT NOT NULL, run TEXT, at TEXT NOT NULL, PRIMARY KEY (annotator, trace_id,
    taxonomy)) WITHOUT ROWID;
CREATE TABLE sights (annotator TEXT NOT NULL, blind BOOLEAN NOT NULL, PRIMARY KEY (annotator))
    WITHOUT ROWID;
CREATE TABLE taxonomies (ref TEXT NOT NULL, content_hash TEXT NOT NULL, document TEXT NOT
    NULL, PRIMARY KEY (ref));
CREATE TABLE traces (id TEXT NOT NULL, base_id TEXT NOT NULL, content_hash TEXT, content_bytes
    INTEGER, reader TEXT, key_scheme INTEGER, native BOOLEAN NOT NULL, path TEXT, record INTEGER,
    task TEXT, system TEXT, model TEXT, benchmark TEXT, outcome TEXT NOT NULL, score FLOAT, spans
    INTEGER, PRIMARY KEY (id));
CREATE INDEX traces_by_base ON traces (base_id);
CREATE TABLE annotators (name TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (name));
CREATE TABLE settings ("key" TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY ("key"));
CREATE TABLE runs (id TEXT NOT NULL, judge TEXT NOT NULL, taxonomy TEXT NOT NULL, started_at
    TEXT NOT NULL, finished_at TEXT, note TEXT NOT NULL, PRIMARY KEY (id));
CREATE TABLE run_traces (run TEXT NOT NULL, trace_id TEXT NOT NULL, findings INTEGER NOT NULL,
    problem TEXT, PRIMARY KEY (run, trace_id)) WITHOUT ROWID;
"""


def columns(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {
        name: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({name})"))
        for (name,) in names.fetchall()
    }


def write_version_one(path: Path, source: Path) -> None:
    """Write a file of version 1 with the content of a current file that version 1 could hold."""
    with closing(sqlite3.connect(path)) as new, closing(sqlite3.connect(source)) as current:
        new.executescript(SCHEMA)
        for table, names in columns(new).items():
            column_list = ", ".join(f'"{name}"' for name in names)
            rows = current.execute(f"SELECT {column_list} FROM {table}").fetchall()
            placeholders = ", ".join("?" * len(names))
            new.executemany(f"INSERT INTO {table} ({column_list}) VALUES ({placeholders})", rows)
        new.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        new.execute("PRAGMA user_version = 1")
        new.commit()
        new.execute("PRAGMA journal_mode = wal")


def raw_content(path: Path) -> dict[str, Any]:
    """Return the version, tables and rows of a file, read by SQLite alone."""
    with closing(sqlite3.connect(path)) as connection:
        content: dict[str, Any] = {
            name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for name in columns(connection)
        }
        content["columns"] = columns(connection)
        content["version"] = connection.execute("PRAGMA user_version").fetchone()[0]
        return content


WITHOUT_TASKS: Final = (
    "ALTER TABLE traces DROP COLUMN task_id",
    "ALTER TABLE traces DROP COLUMN trial",
)


def without_remedies(raw: sqlite3.Connection) -> None:
    """Remove the additions of versions 8 and 9: remedies, cached tokens, span indices."""
    raw.execute("DROP TABLE span_indices")
    raw.execute("ALTER TABLE labels DROP COLUMN remedy")
    raw.execute("DROP INDEX asked_of_run")
    raw.execute("CREATE INDEX asked_of_run ON asked (run, tokens_in, tokens_out)")
    raw.execute("ALTER TABLE asked DROP COLUMN tokens_cached")
    raw.execute("ALTER TABLE runs DROP COLUMN told_cached")
