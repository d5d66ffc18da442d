"""The register of traces, which recognises traces after their files were moved or have grown."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from sqlalchemy import Connection, RowMapping, bindparam, or_, select

from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import schema
from mast_tui.workspace.database import (
    Insertion,
    Values,
    call_function,
    calls_stored_functions,
    put_rows,
    reads_registers,
    traces_folder_of,
)
from mast_tui.workspace.events.rows import Row
from mast_tui.workspace.paths import found_trace_path, stored_trace_path
from mast_tui.workspace.records import TraceRecord

_HEAD_BYTES: Final = 64 * 1024
"""The most bytes that determine the id of a line-based trace.

A larger file keeps its id when it grows.
"""

_MADE_UP_ID: Final = re.compile(r"(?P<stem>.*)-[0-9a-f]{8}", re.DOTALL)

_FACTS: Final = (
    *("task", "system", "model", "benchmark", "version", "started"),
    *("score", "spans", "path", "record", "task_id", "trial"),
)

_OUTCOMES: Final = frozenset(Outcome)
_TABLE: Final = schema.traces
_BY_NAME: Final = (
    select(_TABLE)
    .where(or_(_TABLE.c.base_id == bindparam("name"), _TABLE.c.id == bindparam("name")))
    .order_by(_TABLE.c.base_id, _TABLE.c.id)
)
_OF_STEM: Final = select(_TABLE).where(
    _TABLE.c.base_id >= bindparam("stem_from"),
    _TABLE.c.base_id < bindparam("stem_to"),
    _TABLE.c.reader == bindparam("by_reader"),
    _TABLE.c.content_bytes < bindparam("bytes_below"),
)
_ID_EXISTS: Final = select(_TABLE.c.id).where(_TABLE.c.id == bindparam("trace_id"))
_INSERT: Final = Insertion(_TABLE, varying=("id", "base_id"))
_IDS_PER_QUERY: Final = 500


def register(connection: Connection, record: TraceRecord) -> str:
    """Store a trace, or update the stored one, and return its id in the workspace.

    Args:
        connection: An open transaction.
        record: The trace.
    """
    known_record = find(connection, record)
    folder = traces_folder_of(connection)
    if known_record is None:
        trace_id = _free_id(connection, record.trace_id)
        _insert_traces(connection, [tuple(to_row(record, trace_id, folder).values())])
        return trace_id
    if reads_registers(connection):  # a member of a team may not change a stored trace
        return known_record.trace_id
    updated_record = with_updates(known_record, record, folder)
    if updated_record != known_record:
        values = to_row(updated_record, known_record.trace_id, folder)
        # The id without a suffix such as ``~2`` stays.
        base_id = select(_TABLE.c.base_id).where(_TABLE.c.id == known_record.trace_id)
        values["base_id"] = connection.execute(base_id).scalar_one()
        put_rows(connection, _TABLE, [values])
    return known_record.trace_id


def _insert_traces(connection: Connection, rows: Sequence[Values]) -> None:
    if calls_stored_functions(connection):
        call_function(connection, "register_trace", _TABLE, rows)
    else:
        _INSERT.write(connection, rows)


def register_unknown(
    connection: Connection, records: Sequence[TraceRecord]
) -> tuple[TraceRecord, ...]:
    """Store traces with a new id of which only the id is known.

    Args:
        connection: An open transaction.
        records: The records of any traces.

    Returns:
        The records that were not stored and must be passed to ``register``.
    """
    # A trace with an identity may be stored under another id. The order is reversed so that the
    # first of several records with the same id stays.
    new_by_id = {record.trace_id: record for record in reversed(records) if record.identity is None}
    trace_ids = list(new_by_id)
    for start in range(0, len(trace_ids), _IDS_PER_QUERY):
        batch = trace_ids[start : start + _IDS_PER_QUERY]
        for column in (_TABLE.c.id, _TABLE.c.base_id):
            for known_id in connection.execute(select(column).where(column.in_(batch))).scalars():
                new_by_id.pop(known_id, None)
    new_records = [record for record in records if new_by_id.get(record.trace_id) is record]
    if new_records:
        folder = traces_folder_of(connection)
        rows = [tuple(to_row(record, record.trace_id, folder).values()) for record in new_records]
        _insert_traces(connection, rows)
    return tuple(record for record in records if new_by_id.get(record.trace_id) is not record)


def find(connection: Connection, record: TraceRecord) -> TraceRecord | None:
    """Return the stored record of a trace, or None.

    Without an identity, this is the record with the same id. Otherwise it is the first of these,
    where ``id~2`` counts as the same id as ``id``:

    - a record with the same id and content
    - a record of the same file before the file grew
    - a record with the same id of which only labels are known

    Args:
        connection: An open connection.
        record: The trace as it was read now.
    """
    rows = connection.execute(_BY_NAME, {"name": record.trace_id}).mappings()
    folder = traces_folder_of(connection)
    same_id = [of_row(row, folder) for row in rows]
    if record.identity is None:
        return next((stored for stored in same_id if stored.trace_id == record.trace_id), None)
    for stored in same_id:
        if stored.identity and stored.identity.content_hash == record.identity.content_hash:
            return stored
    for stored in (*same_id, *_shorter_files_of_stem(connection, record.identity)):
        if _is_grown_file(stored, record):
            return stored
    return next((stored for stored in same_id if stored.identity is None), None)


def unreadable(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return the ids of traces with an invalid stored outcome, and the problem."""
    rows = connection.execute(select(_TABLE.c.id, _TABLE.c.outcome).order_by(_TABLE.c.id))
    return tuple(
        (trace_id, f"{outcome!r} is not an outcome; it is read as {Outcome.UNKNOWN.value!r}")
        for trace_id, outcome in rows
        if outcome not in _OUTCOMES
    )


def traces(connection: Connection, trace_id: str | None = None) -> tuple[TraceRecord, ...]:
    """Return the stored traces, sorted by id.

    Args:
        connection: An open connection.
        trace_id: Only this trace; None for all.
    """
    statement = select(schema.traces).order_by(schema.traces.c.id)
    if trace_id is not None:
        statement = statement.where(schema.traces.c.id == trace_id)
    folder = traces_folder_of(connection)
    return tuple(of_row(row, folder) for row in connection.execute(statement).mappings())


def earlier_contents(connection: Connection, trace_id: str, annotator: str) -> tuple[str, ...]:
    """Return the traces that an annotator has labelled in the same file when it had other content.

    Args:
        connection: An open connection.
        trace_id: The id of the present trace.
        annotator: The annotator.
    """
    present = _TABLE.alias("present")
    statement = (
        select(_TABLE.c.id)
        .join(present, present.c.path == _TABLE.c.path)
        .where(
            present.c.id == trace_id,
            _TABLE.c.id != trace_id,
            _TABLE.c.record.is_not_distinct_from(present.c.record),
            _TABLE.c.id.in_(
                select(schema.passes.c.trace_id).where(schema.passes.c.annotator == annotator)
            ),
        )
        .order_by(_TABLE.c.id)
    )
    return tuple(connection.execute(statement).scalars())


def _shorter_files_of_stem(connection: Connection, identity: TraceIdentity) -> list[TraceRecord]:
    """Return the stored traces of shorter files with the same stem in their ids.

    The program makes an id from the stem, which is the name of the file, and a hash of the content,
    which changes when the file grows.
    """
    stem = _stem_of(identity)
    if identity.native or stem is None:  # the id is not made by this program
        return []
    # A range can use an index. All texts from 'stem-' up to 'stem.' begin with 'stem-', because '.'
    # follows '-' in ASCII.
    rows = connection.execute(
        _OF_STEM,
        {
            "stem_from": f"{stem}-",
            "stem_to": f"{stem}.",
            "by_reader": identity.reader,
            # A file that was longer than the head has kept its id.
            "bytes_below": min(identity.content_bytes, _HEAD_BYTES),
        },
    ).mappings()
    stored_records = [of_row(row, traces_folder_of(connection)) for row in rows]
    # The range also contains ids with a longer stem, such as 'run-a-1234abcd' for 'run'.
    return [
        stored for stored in stored_records if stored.identity and _stem_of(stored.identity) == stem
    ]


def _stem_of(identity: TraceIdentity) -> str | None:
    match = _MADE_UP_ID.fullmatch(identity.trace_id)
    return None if match is None else match["stem"]


def _is_grown_file(stored: TraceRecord, current: TraceRecord) -> bool:
    """Return whether a file begins with the complete content of a stored trace."""
    old = stored.identity
    new = current.identity
    # A trace with a number is only a part of its file.
    if old is None or new is None or current.path is None or current.record is not None:
        return False
    # A file larger than the head is found by its id, which it keeps when it grows.
    if not 0 < old.content_bytes <= min(new.content_bytes, _HEAD_BYTES):
        return False
    return _head_hash(current.path, old.content_bytes) == old.content_hash


def _head_hash(path: Path, size: int) -> str | None:
    """Return the hash of the first bytes of a file; None if it is too short or unreadable."""
    try:
        with path.open("rb") as file:
            head = file.read(size)
    except OSError:
        return None
    return hashlib.sha256(head).hexdigest() if len(head) == size else None


def _free_id(connection: Connection, preferred: str) -> str:
    """Return an id that no trace has: the preferred one, or with a number such as ``id~2``."""
    number = 1
    trace_id = preferred
    while connection.execute(_ID_EXISTS, {"trace_id": trace_id}).first():
        number += 1
        trace_id = f"{preferred}~{number}"
    return trace_id


def with_updates(stored: TraceRecord, new: TraceRecord, folder: Path | None) -> TraceRecord:
    """Update the stored record of a trace by a new record.

    Args:
        stored: The stored record.
        new: The trace as it was read now.
        folder: The workspace's ``traces_folder``.
    """
    changes = {name: getattr(new, name) for name in _FACTS if getattr(new, name) is not None}
    if new.path is not None:
        # The result is compared with the stored record, so the path has its stored form.
        changes["path"] = found_trace_path(stored_trace_path(new.path, folder), folder)
        changes["record"] = new.record
    if new.outcome is not Outcome.UNKNOWN:
        changes["outcome"] = new.outcome
    if stored.identity is None and new.identity is not None:
        changes["identity"] = new.identity._replace(trace_id=stored.trace_id)
    return replace(stored, **changes)


def to_row(record: TraceRecord, trace_id: str, folder: Path | None) -> Row:
    """Return the row of a trace.

    Args:
        record: The known facts of the trace.
        trace_id: The id of the trace in the workspace.
        folder: The workspace's ``traces_folder``.
    """
    identity = record.identity
    return {
        "id": trace_id,
        "base_id": record.trace_id,  # without the suffix of an id such as "id~2"
        "content_hash": identity and identity.content_hash,
        "content_bytes": identity and identity.content_bytes,
        "reader": identity and identity.reader,
        "key_scheme": identity and identity.key_scheme,
        "native": identity is not None and identity.native,
        "path": None if record.path is None else stored_trace_path(record.path, folder),
        "record": record.record,
        "task": record.task,
        "system": record.system,
        "model": record.model,
        "benchmark": record.benchmark,
        "outcome": record.outcome.value,
        "score": record.score,
        "spans": record.spans,
        "version": record.version,
        "started": record.started,
        "task_id": record.task_id,
        "trial": record.trial,
    }


def of_row(row: RowMapping | Row, folder: Path | None) -> TraceRecord:
    """Return the trace in a row.

    Args:
        row: A row of the table.
        folder: The workspace's ``traces_folder``.
    """
    identity = None
    if row["content_hash"] is not None:
        identity = TraceIdentity(
            trace_id=row["base_id"],
            content_hash=row["content_hash"],
            content_bytes=row["content_bytes"],
            reader=row["reader"],
            key_scheme=row["key_scheme"],
            native=row["native"],
        )
    return TraceRecord(
        trace_id=row["id"],
        identity=identity,
        path=None if row["path"] is None else found_trace_path(row["path"], folder),
        record=row["record"],
        spans=row["spans"],
        task=row["task"],
        system=row["system"],
        model=row["model"],
        benchmark=row["benchmark"],
        outcome=Outcome(row["outcome"]) if row["outcome"] in _OUTCOMES else Outcome.UNKNOWN,
        score=row["score"],
        version=row["version"],
        started=row["started"],
        task_id=row["task_id"],
        trial=row["trial"],
    )
