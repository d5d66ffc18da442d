"""Whether the state tables say what follows from the events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from sqlalchemy import Connection, Table, select

from mast_tui.workspace import schema
from mast_tui.workspace.database import Database
from mast_tui.workspace.events.append import follow
from mast_tui.workspace.events.rows import event_of
from mast_tui.workspace.sqlite_file import SqliteFile

_AT_ONCE = 6000


class Difference(NamedTuple):
    """Rows of a state table that are not what follows from an annotator's events."""

    annotator: str
    table: str
    rows: int


def differences(database: Database) -> tuple[Difference, ...]:
    """Make the state tables anew, in memory, and hold them against those that are kept."""
    with (
        database.reading() as kept,
        closing(SqliteFile(None, create=True)) as scratch,
        scratch.writing(whole=True) as anew,
    ):
        return tuple(_differences(kept, anew))


def _differences(kept: Connection, anew: Connection) -> Iterator[Difference]:
    events = schema.events
    everybody = {
        name
        for table in (events, *schema.STATE_TABLES)
        for name in kept.execute(select(table.c.annotator).distinct()).scalars()
    }
    for annotator in sorted(everybody):
        own = (
            select(events)
            .where(events.c.annotator == annotator)
            .order_by(events.c.seq, events.c.id)
            .execution_options(stream_results=True)
        )
        for batch in kept.execute(own).mappings().partitions(_AT_ONCE):
            follow(anew, map(event_of, batch))
        for table in schema.STATE_TABLES:
            differing = _rows(kept, table, annotator) ^ _rows(anew, table, annotator)
            keys = {row[: len(table.primary_key)] for row in differing}
            if keys:
                yield Difference(annotator, table.name, len(keys))


def _rows(connection: Connection, table: Table, annotator: str) -> set[tuple[object, ...]]:
    rows = connection.execute(select(table).where(table.c.annotator == annotator))
    return {tuple(row) for row in rows}
