"""Migration of workspaces of earlier versions in place."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from mast_tui.workspace.database import is_on_server
from mast_tui.workspace.events import chain
from mast_tui.workspace.schema import SCHEMA_VERSION

_STEPS: Final[dict[int, tuple[str, ...]]] = {
    1: (
        "ALTER TABLE labels ADD COLUMN evidence_match TEXT",
        "ALTER TABLE labels ADD COLUMN evidence_named TEXT",
        "ALTER TABLE labels ADD COLUMN decisive BOOLEAN",
        "ALTER TABLE runs ADD COLUMN settings TEXT",
        "ALTER TABLE runs ADD COLUMN form TEXT",
        "ALTER TABLE runs ADD COLUMN ending TEXT",
        "ALTER TABLE runs ADD COLUMN told_requests INTEGER",
        "ALTER TABLE runs ADD COLUMN told_in INTEGER",
        "ALTER TABLE runs ADD COLUMN told_out INTEGER",
        "ALTER TABLE run_traces ADD COLUMN quotes INTEGER DEFAULT 0 NOT NULL",
        "ALTER TABLE run_traces ADD COLUMN verified INTEGER DEFAULT 0 NOT NULL",
        "ALTER TABLE run_traces ADD COLUMN windows INTEGER DEFAULT 0 NOT NULL",
        "ALTER TABLE run_traces ADD COLUMN remarks TEXT DEFAULT '[]' NOT NULL",
        "CREATE TABLE asked (id INTEGER NOT NULL, run TEXT NOT NULL, trace_id TEXT NOT NULL, "
        '"key" TEXT NOT NULL, finish TEXT NOT NULL, form TEXT NOT NULL, '
        "tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, usable BOOLEAN NOT NULL, "
        "counted BOOLEAN NOT NULL, at TEXT NOT NULL, answer TEXT NOT NULL, PRIMARY KEY (id))",
        'CREATE INDEX asked_usable ON asked ("key") WHERE usable = 1',
        "CREATE INDEX asked_of_run ON asked (run, tokens_in, tokens_out)",
    ),
    2: (
        "ALTER TABLE passes ADD COLUMN withheld BOOLEAN DEFAULT 0 NOT NULL",
        "CREATE TABLE studies (annotator TEXT NOT NULL, taxonomy TEXT NOT NULL, "
        "set_at TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY (annotator, taxonomy)) "
        "WITHOUT ROWID",
        "CREATE TABLE guidelines (annotator TEXT NOT NULL, id TEXT NOT NULL, "
        "taxonomy TEXT NOT NULL, written_at TEXT NOT NULL, document TEXT NOT NULL, "
        "PRIMARY KEY (annotator, id)) WITHOUT ROWID",
    ),
    3: (
        "ALTER TABLE events ADD COLUMN chain TEXT",
        "ALTER TABLE labels ADD COLUMN evidence_wording TEXT",
        "ALTER TABLE run_traces ADD COLUMN quote_kinds TEXT",
    ),
    4: (
        'CREATE TABLE imports (id TEXT NOT NULL, "at" TEXT NOT NULL, who TEXT, '
        "format TEXT NOT NULL, files TEXT NOT NULL, asked TEXT NOT NULL, finished_at TEXT, "
        "undo_begun_at TEXT, undone_at TEXT, undone_by TEXT, PRIMARY KEY (id))",
        'CREATE TABLE imported_events ("import" TEXT NOT NULL, event TEXT NOT NULL, '
        'PRIMARY KEY ("import", event)) WITHOUT ROWID',
    ),
    5: (
        "ALTER TABLE traces ADD COLUMN version TEXT",
        "ALTER TABLE traces ADD COLUMN started FLOAT",
    ),
    6: (
        "CREATE TABLE taxonomy_revisions (ref TEXT NOT NULL, since TEXT NOT NULL, "
        "content_hash TEXT NOT NULL, document TEXT NOT NULL, "
        "PRIMARY KEY (ref, since, content_hash))",
        # Until then a text could not change, so it held from the first event on.
        'INSERT INTO taxonomy_revisions SELECT ref, coalesce((SELECT min(events."at") FROM events '
        "WHERE events.taxonomy = taxonomies.ref), ''), content_hash, document FROM taxonomies",
    ),
    7: (
        "ALTER TABLE labels ADD COLUMN remedy TEXT",
        "ALTER TABLE asked ADD COLUMN tokens_cached INTEGER DEFAULT 0 NOT NULL",
        "ALTER TABLE runs ADD COLUMN told_cached INTEGER",
        "DROP INDEX asked_of_run",
        "CREATE INDEX asked_of_run ON asked (run, tokens_in, tokens_out, tokens_cached)",
    ),
    8: (
        "CREATE TABLE span_indices (trace_id {text} NOT NULL, span_key {text} NOT NULL, "
        "span_index {whole}, text_chars {whole}, PRIMARY KEY (trace_id, span_key)){without_rowid}",
        # Relative paths were those from the directory in which the program was started.
        "UPDATE traces SET path = './' || path WHERE substr(path, 1, 1) <> '/' "
        "AND replace(path, '://', '') = path",
    ),
    # These versions changed only the functions and rights of servers.
    9: (),
    10: (),
    11: (
        "ALTER TABLE traces ADD COLUMN task_id {text}",
        "ALTER TABLE traces ADD COLUMN trial {whole}",
    ),
}
"""The statements that migrate a workspace from each version to the next.

They do not use ``schema``, which describes the present tables only. Servers have workspaces since
version 8, so later statements have placeholders for types.
"""

_FIRST_ON_SERVER: Final = 8
_IN_FILE: Final = {"text": "TEXT", "whole": "INTEGER", "without_rowid": " WITHOUT ROWID"}
_ON_SERVER: Final = {"text": 'TEXT COLLATE "C"', "whole": "BIGINT", "without_rowid": ""}

_CHAINED: Final = 4
"""The first version with a chain of hashes over each annotator's events."""


def migrate(connection: Connection, version: int) -> None:
    """Migrate the tables of an earlier version.

    New columns are empty, except ``chain``, which is computed.

    Args:
        connection: An open transaction.
        version: The version of the tables.
    """
    types = _ON_SERVER if is_on_server(connection) else _IN_FILE
    for step in range(version, SCHEMA_VERSION):
        for statement in _STEPS[step]:
            if step >= _FIRST_ON_SERVER:  # earlier statements are for files only
                statement = statement.format(**types)
            connection.exec_driver_sql(statement)
    if version < _CHAINED:
        names = connection.exec_driver_sql("SELECT DISTINCT annotator FROM events").scalars().all()
        for annotator in sorted(names):
            chain.rebuild_chain(connection, annotator)
