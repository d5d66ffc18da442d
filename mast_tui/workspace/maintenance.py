"""The check of a workspace against its events, and the copy of all its rows into another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, RowMapping, Table, func, select, type_coerce
from sqlalchemy.types import NullType

from mast_tui.errors import WorkspaceError
from mast_tui.labels import kind_fits_name
from mast_tui.workspace import schema
from mast_tui.workspace.database import (
    Database,
    Insertion,
    Values,
    driver_of,
    is_on_server,
    traces_folder_of,
)
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.rows import event_of
from mast_tui.workspace.events.state import update_state
from mast_tui.workspace.paths import found_trace_path, stored_trace_path
from mast_tui.workspace.queries import rows_of
from mast_tui.workspace.registers import taxonomies, traces
from mast_tui.workspace.sqlite_file import SqliteFile

_EVENTS_PER_BATCH: Final = 6000
_JSON_COLUMNS: Final = ("document", "looks_at", "evidence_named")
"""Columns with JSON, which a team's server formats otherwise than Python."""


class StateDifference(NamedTuple):
    """The number of rows in a state table that do not follow from an annotator's events."""

    annotator: str
    table: str
    rows: int


class DamagedRow(NamedTuple):
    """A row that cannot be read or was changed by hand."""

    table: str
    name: str
    problem: str


class CheckResult(NamedTuple):
    """The result of a check; both parts are empty for an undamaged workspace."""

    differences: tuple[StateDifference, ...]
    damaged: tuple[DamagedRow, ...]


def check_rows(database: Database) -> CheckResult:
    """Compare the state tables with tables rebuilt from the events, and find damaged rows.

    Args:
        database: The workspace.

    Returns:
        The rows that differ, and the damaged rows of the events and registers.
    """
    with (
        database.reading() as stored,
        # Errors of reading the workspace pass through this context too, and must name it.
        closing(SqliteFile(None, create=True, memory_name=database.name)) as scratch,
        scratch.writing(without_savepoints=True) as rebuilt,
    ):
        damaged_rows = list[DamagedRow]()
        differences = tuple(_state_differences(stored, rebuilt, damaged_rows))
        damaged_rows += _damaged_registers(stored)
        damaged_rows += _undecodable_rows(stored)
        return CheckResult(differences, tuple(damaged_rows))


def damaged_events(connection: Connection) -> tuple[DamagedRow, ...]:
    """Return the rows of events that cannot be read."""
    damaged_rows = list[DamagedRow]()
    statement = select(schema.events).order_by(schema.events.c.annotator, schema.events.c.seq)
    rows = connection.execute(statement.execution_options(stream_results=True)).mappings()
    for batch in rows.partitions(_EVENTS_PER_BATCH):
        for row in batch:
            _read_event(row, damaged_rows)
    return tuple(damaged_rows)


def _read_event(row: RowMapping, damaged_rows: list[DamagedRow]) -> Event | None:
    """Return the event in a row, or add the row to ``damaged_rows`` and return None."""
    try:
        return event_of(row)
    except ValueError as error:
        name = f"{row['annotator']}, step {row['seq']}, {row['id']}"
        damaged_rows.append(DamagedRow("events", name, f"{error}; the event is ignored"))
        return None


def _damaged_registers(stored: Connection) -> Iterator[DamagedRow]:
    """Yield the damaged rows of taxonomies, traces and annotators."""
    for ref, problem in taxonomies.unreadable(stored):
        yield DamagedRow("taxonomies", ref, problem)
    for trace_id, problem in traces.unreadable(stored):
        yield DamagedRow("traces", trace_id, problem)
    table = schema.annotators
    for name, kind in stored.execute(select(table.c.name, table.c.kind).order_by(table.c.name)):
        if not kind_fits_name(kind, name):
            yield DamagedRow("annotators", name, f"the kind {kind!r} does not fit the name")


def _undecodable_rows(stored: Connection) -> Iterator[DamagedRow]:
    """Yield the rows of a file, outside of the state tables, with texts that are not valid UTF-8.

    A server refuses such texts.
    """
    if is_on_server(stored):
        return
    driver = driver_of(stored)
    driver.text_factory = bytes
    try:
        for table in schema.metadata.sorted_tables:
            if table in schema.STATE_TABLES:
                continue
            for row in rows_of(stored, select(table)):
                try:
                    b" ".join(value for value in row if isinstance(value, bytes)).decode()
                except UnicodeDecodeError:
                    key = ", ".join(
                        value.decode(errors="replace") if isinstance(value, bytes) else str(value)
                        for column, value in zip(table.columns, row, strict=True)
                        if column.primary_key
                    )
                    problem = "a text is not valid UTF-8; what could not be read is shown as \ufffd"
                    yield DamagedRow(table.name, key, problem)
    finally:
        driver.text_factory = str


def _state_differences(
    stored: Connection, rebuilt: Connection, damaged_rows: list[DamagedRow]
) -> Iterator[StateDifference]:
    """Rebuild each annotator's state from the events, and yield the differing state tables.

    Unreadable events are added to ``damaged_rows``.
    """
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
        for batch in stored.execute(events_of_annotator).mappings().partitions(_EVENTS_PER_BATCH):
            events_of_batch = (_read_event(row, damaged_rows) for row in batch)
            update_state(rebuilt, (event for event in events_of_batch if event is not None))
        for table in schema.STATE_TABLES:
            differing = _raw_rows(stored, table, annotator) ^ _raw_rows(rebuilt, table, annotator)
            # Both versions of a changed row are here, so their key is counted once.
            keys = {row[: len(table.primary_key)] for row in differing}
            if keys:
                yield StateDifference(annotator, table.name, len(keys))


def _raw_rows(connection: Connection, table: Table, annotator: str) -> set[tuple[object, ...]]:
    """Return an annotator's rows in a state table, to compare them with rebuilt rows.

    Values are not converted to Python types: a damaged Boolean such as 7 would read as true.
    """
    columns = [type_coerce(column, NullType()) for column in table.columns]
    rows = connection.execute(select(*columns).where(table.c.annotator == annotator))
    json_columns = [
        index for index, column in enumerate(table.columns) if column.name in _JSON_COLUMNS
    ]
    return {_comparable_row(row, json_columns) for row in rows}


def _comparable_row(row: Sequence[Any], json_columns: Sequence[int]) -> tuple[object, ...]:
    """Return a row with normalized JSON, so that equal values have equal texts."""
    values = list(row)
    for index in json_columns:
        with suppress(TypeError, ValueError):  # null or damaged JSON is compared as it is
            values[index] = json.dumps(json.loads(values[index]), sort_keys=True)
    return tuple(values)


_ROWS_PER_BATCH: Final = 5000
_PATH_INDEX: Final = list(schema.traces.c.keys()).index("path")


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy all rows of a workspace into an empty one.

    Args:
        source: A connection that sees one state throughout.
        target: An open transaction in an empty workspace.

    Raises:
        WorkspaceError: The target is not empty.
    """
    for table in schema.metadata.sorted_tables:
        if target.execute(select(table).limit(1)).first() is not None:
            raise WorkspaceError(
                f"the target workspace is not empty (table {table.name}); nothing was copied. "
                "Give a new one, or merge them with export and import"
            )
        insertion = Insertion(table)
        rows = source.execution_options(stream_results=True).execute(select(table))
        for batch in rows.partitions(_ROWS_PER_BATCH):
            values = [tuple(row) for row in batch]
            if table is schema.traces:
                values = [_row_for_target(source, target, row) for row in values]
            insertion.write(target, values)
    last_answer_id = target.execute(select(func.max(schema.asked.c.id))).scalar()
    if is_on_server(target) and last_answer_id is not None:
        # The server numbers further answers of models after the copied ones.
        sequence = func.pg_get_serial_sequence("asked", "id")
        target.execute(select(func.setval(sequence, last_answer_id)))


def _row_for_target(source: Connection, target: Connection, row: Values) -> Values:
    """Return a row of ``traces`` with its path relative to the target's folder of traces."""
    path = row[_PATH_INDEX]
    if path is not None:
        trace_path = found_trace_path(path, traces_folder_of(source))
        path = stored_trace_path(trace_path, traces_folder_of(target))
    return (*row[:_PATH_INDEX], path, *row[_PATH_INDEX + 1 :])
