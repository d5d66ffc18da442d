"""The register of imports."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, structs
from sqlalchemy import Connection, Row, Select, delete, func, select

from mast_tui.workspace import schema
from mast_tui.workspace.database import call_function, calls_stored_functions, put_rows
from mast_tui.workspace.events.model import IMPORT_PREFIX, now

_TABLE: Final = schema.imports
_IMPORTED_EVENTS: Final = schema.imported_events
_EVENTS: Final = schema.events
Work = tuple[str, str | None, str | None]
"""The annotator, the trace id and the taxonomy; both may be None."""

MIGRATION: Final = "migration"
"""The format of migrations between codebooks.

Migrated events keep the times of the originals. The files of the import are the names of the two
taxonomies.
"""


class ImportState(StrEnum):
    """The progress of an import."""

    UNFINISHED = "not finished"
    FINISHED = "finished"
    UNDOING = "being taken back"
    UNDONE = "taken back"


class ImportRecord(Struct, frozen=True):
    """One import, with times in ISO 8601 in UTC.

    ``asked`` is the command as a text; the same text continues an unfinished import. ``who`` is the
    user, None if unknown.
    """

    id: str
    at: str
    who: str | None
    format: str
    files: tuple[str, ...]
    asked: str
    finished_at: str | None = None
    undo_begun_at: str | None = None
    undone_at: str | None = None
    undone_by: str | None = None

    @property
    def state(self) -> ImportState:
        """The progress of the import."""
        if self.undone_at is not None:
            return ImportState.UNDONE
        if self.undo_begun_at is not None:
            return ImportState.UNDOING
        return ImportState.UNFINISHED if self.finished_at is None else ImportState.FINISHED

    @property
    def action(self) -> str:
        """The action of the events that the import makes."""
        return f"{IMPORT_PREFIX}{self.format}:{self.id}"

    @property
    def keeps_actions(self) -> bool:
        """True if the events keep their original actions, and so are recorded by id."""
        return self.format == "jsonl"


class ImportCounts(Struct, frozen=True):
    """The number of events and traces of an import, and the annotators."""

    events: int = 0
    traces: int = 0
    annotators: tuple[str, ...] = ()


def add(connection: Connection, record: ImportRecord) -> None:
    """Store a new import.

    Args:
        connection: An open transaction.
        record: The import.
    """
    put_rows(connection, _TABLE, [_to_row(record)])


def _to_row(record: ImportRecord) -> dict[str, Any]:
    return structs.asdict(record) | {"files": json.dumps(record.files)}


def record_imported_events(
    connection: Connection, record: ImportRecord, events: Iterable[str]
) -> None:
    """Record the events that an import has added.

    This is needed only if the ``action`` of the events does not name the import.

    Args:
        connection: An open transaction.
        record: The import.
        events: The ids of the events.
    """
    rows = [{"import": record.id, "event": event} for event in events]
    put_rows(connection, _IMPORTED_EVENTS, rows)


def imported_event_ids(connection: Connection, record: ImportRecord) -> frozenset[str]:
    """Return the ids that ``record_imported_events`` has stored for an import.

    Args:
        connection: An open connection.
        record: The import.
    """
    statement = select(_IMPORTED_EVENTS.c.event).where(_IMPORTED_EVENTS.c["import"] == record.id)
    return frozenset(connection.execute(statement).scalars())


def finish(connection: Connection, record: ImportRecord) -> None:
    """Mark an import as finished, or delete its record if it has no events.

    Args:
        connection: An open transaction.
        record: The import.
    """
    if connection.execute(_events_of(record).limit(1)).first() is None:
        _delete_record(connection, record)
    else:
        _change_record(connection, record, finished_at=now())


def begin_undo(connection: Connection, record: ImportRecord) -> None:
    """Record the time at which the undo of an import began.

    Args:
        connection: An open transaction.
        record: The import.
    """
    _change_record(connection, record, undo_begun_at=now())


def finish_undo(connection: Connection, record: ImportRecord, annotator: str | None) -> None:
    """Record the time at which an import was undone, and the annotator.

    Args:
        connection: An open transaction.
        record: The import.
        annotator: The annotator who has undone the import; None if unknown.
    """
    _change_record(connection, record, undone_at=now(), undone_by=annotator)


def _change_record(connection: Connection, record: ImportRecord, **changes: str | None) -> None:
    stored = connection.execute(select(_TABLE).where(_TABLE.c.id == record.id)).mappings().one()
    put_rows(connection, _TABLE, [{**stored, **changes}])


def _delete_record(connection: Connection, record: ImportRecord) -> None:
    """Delete an import from the register."""
    if calls_stored_functions(connection):
        values = tuple(_to_row(record)[column.name] for column in _TABLE.columns)
        call_function(connection, "drop_import", _TABLE, [values])
    else:
        connection.execute(delete(_TABLE).where(_TABLE.c.id == record.id))


def imports(connection: Connection) -> tuple[ImportRecord, ...]:
    """Return all imports that added events or are unfinished, the earliest first."""
    rows = connection.execute(select(_TABLE).order_by(_TABLE.c.at, _TABLE.c.id))
    return tuple(_record_of_row(row) for row in rows)


def counts(connection: Connection, record: ImportRecord) -> ImportCounts:
    """Count the events, traces and annotators of an import.

    Args:
        connection: An open connection.
        record: The import.
    """
    events_by_annotator: dict[str, int] = defaultdict(int)
    traces = set[str]()
    for (annotator, trace_id, _taxonomy), event_count in works(connection, record):
        events_by_annotator[annotator] += event_count
        if trace_id is not None:
            traces.add(trace_id)
    return ImportCounts(
        sum(events_by_annotator.values()), len(traces), tuple(sorted(events_by_annotator))
    )


def works(connection: Connection, record: ImportRecord) -> tuple[tuple[Work, int], ...]:
    """Count the events of an import by annotator, trace and taxonomy, in sorted order.

    Args:
        connection: An open connection.
        record: The import.
    """
    keys = (_EVENTS.c.annotator, _EVENTS.c.trace_id, _EVENTS.c.taxonomy)
    statement = (
        _events_of(record).with_only_columns(*keys, func.count()).group_by(*keys).order_by(*keys)
    )
    return tuple(
        ((annotator, trace_id, taxonomy), count)
        for annotator, trace_id, taxonomy, count in connection.execute(statement)
    )


def _events_of(record: ImportRecord) -> Select[Any]:
    if record.keeps_actions:
        noted = select(_IMPORTED_EVENTS.c.event).where(_IMPORTED_EVENTS.c["import"] == record.id)
        return select(_EVENTS.c.id).where(_EVENTS.c.id.in_(noted))
    return select(_EVENTS.c.id).where(_EVENTS.c.action == record.action, _EVENTS.c.undoes.is_(None))


def _record_of_row(row: Row[Any]) -> ImportRecord:
    values = dict(row._mapping)
    return ImportRecord(**values | {"files": tuple(json.loads(values["files"]))})
