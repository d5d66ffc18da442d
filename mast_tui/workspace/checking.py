"""The check of a workspace: its state tables against its events, and rows that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, RowMapping, Table, select, type_coerce
from sqlalchemy.types import NullType

from mast_tui.labels import kind_fits_name
from mast_tui.workspace import schema
from mast_tui.workspace.database import Database
from mast_tui.workspace.events.append import follow
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.rows import event_of
from mast_tui.workspace.registers import taxonomies, traces
from mast_tui.workspace.sqlite_file import SqliteFile

_AT_ONCE: Final = 6000
_JSON_COLUMNS: Final = ("document", "looks_at", "evidence_named")
"""Columns with JSON, which a team's server writes in another layout than Python."""


class StateDifference(NamedTuple):
    """The number of rows of a state table that do not follow from an annotator's events."""

    annotator: str
    table: str
    rows: int


class DamagedRow(NamedTuple):
    """A row that cannot be read, or was changed; all other commands leave it out."""

    table: str
    name: str
    problem: str


class CheckResult(NamedTuple):
    """The result of a check: both are empty where the workspace is whole."""

    differences: tuple[StateDifference, ...]
    damaged: tuple[DamagedRow, ...]


def check_rows(database: Database) -> CheckResult:
    """Compare the stored state tables with rebuilt ones, and read all registers.

    Args:
        database: The workspace, which is only read.

    Returns:
        The rows that differ, and the events and register rows that are damaged.
    """
    with (
        database.reading() as stored,
        closing(SqliteFile(None, create=True)) as scratch,
        scratch.writing(whole=True) as rebuilt,
    ):
        damaged = list[DamagedRow]()
        differences = tuple(_differences(stored, rebuilt, damaged))
        damaged += _damaged_registers(stored)
        return CheckResult(differences, tuple(damaged))


def damaged_events(connection: Connection) -> tuple[DamagedRow, ...]:
    """Return the events that cannot be read."""
    damaged = list[DamagedRow]()
    statement = select(schema.events).order_by(schema.events.c.annotator, schema.events.c.seq)
    rows = connection.execute(statement.execution_options(stream_results=True)).mappings()
    for batch in rows.partitions(_AT_ONCE):
        for row in batch:
            _read_event(row, damaged)
    return tuple(damaged)


def _read_event(row: RowMapping, damaged: list[DamagedRow]) -> Event | None:
    try:
        return event_of(row)
    except ValueError as error:
        name = f"{row['annotator']}, step {row['seq']}, {row['id']}"
        damaged.append(DamagedRow("events", name, str(error)))
        return None


def _damaged_registers(stored: Connection) -> Iterator[DamagedRow]:
    for ref, problem in taxonomies.unreadable(stored):
        yield DamagedRow("taxonomies", ref, problem)
    for trace_id, problem in traces.unreadable(stored):
        yield DamagedRow("traces", trace_id, problem)
    table = schema.annotators
    for name, kind in stored.execute(select(table.c.name, table.c.kind).order_by(table.c.name)):
        if not kind_fits_name(kind, name):
            yield DamagedRow("annotators", name, f"{kind!r} is not the kind of this name")


def _differences(
    stored: Connection, rebuilt: Connection, damaged: list[DamagedRow]
) -> Iterator[StateDifference]:
    events = schema.events
    annotators = {
        name
        for table in (events, *schema.STATE_TABLES)
        for name in stored.execute(select(table.c.annotator).distinct()).scalars()
    }
    for annotator in sorted(annotators):
        events_of_annotator = (
            select(events)
            .where(events.c.annotator == annotator)
            .order_by(events.c.seq, events.c.id)
            .execution_options(stream_results=True)
        )
        for batch in stored.execute(events_of_annotator).mappings().partitions(_AT_ONCE):
            read = (_read_event(row, damaged) for row in batch)
            follow(rebuilt, (event for event in read if event is not None))
        for table in schema.STATE_TABLES:
            differing = _raw_rows(stored, table, annotator) ^ _raw_rows(rebuilt, table, annotator)
            keys = {row[: len(table.primary_key)] for row in differing}
            if keys:
                yield StateDifference(annotator, table.name, len(keys))


def _raw_rows(connection: Connection, table: Table, annotator: str) -> set[tuple[object, ...]]:
    """Return an annotator's rows in a table, with unconverted values."""
    # Converted to a Boolean, a damaged flag such as 7 would be True, and seem intact.
    columns = [type_coerce(column, NullType()) for column in table.columns]
    rows = connection.execute(select(*columns).where(table.c.annotator == annotator))
    json_columns = [
        index for index, column in enumerate(table.columns) if column.name in _JSON_COLUMNS
    ]
    return {_comparable(row, json_columns) for row in rows}


def _comparable(row: Sequence[Any], json_columns: Sequence[int]) -> tuple[object, ...]:
    """Return a row in which equal JSON documents are equal texts."""
    values = list(row)
    for index in json_columns:
        with suppress(TypeError, ValueError):  # null, or damaged: compared as it is
            values[index] = json.dumps(json.loads(values[index]), sort_keys=True)
    return tuple(values)
