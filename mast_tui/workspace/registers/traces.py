"""Traces, recognised by their content, wherever the file is and though it grows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, RowMapping, bindparam, or_, select

from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import schema
from mast_tui.workspace.database import (
    Insertion,
    Values,
    call_function,
    put_rows,
    reads_registers,
    traces_folder_of,
    writes_by_calls,
)
from mast_tui.workspace.events.rows import Row
from mast_tui.workspace.paths import found_trace_path, stored_trace_path
from mast_tui.workspace.records import TraceRecord

_HEAD_BYTES: Final = 64 * 1024
"""The id of a line-based trace rests on so many bytes at most, so only these can have grown."""

_MADE_UP_ID: Final = re.compile(r"(?P<stem>.*)-[0-9a-f]{8}", re.DOTALL)

_FACTS: Final = (
    *("task", "system", "model", "benchmark", "version", "started"),
    *("score", "spans", "path", "record", "task_id", "trial"),
)

_OUTCOMES: Final = frozenset(Outcome)
_TABLE: Final = schema.traces
_NAMED: Final = (
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
_AT_ONCE: Final = 500


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
        _add(connection, [tuple(to_row(record, trace_id, folder).values())])
        return trace_id
    if reads_registers(connection):
        return known_record.trace_id
    updated = updated_record(known_record, record, folder)
    if updated != known_record:
        values = to_row(updated, known_record.trace_id, folder)
        of_trace = select(_TABLE.c.base_id).where(_TABLE.c.id == known_record.trace_id)
        values["base_id"] = connection.execute(of_trace).scalar_one()
        put_rows(connection, _TABLE, [values])
    return known_record.trace_id


def _add(connection: Connection, rows: Sequence[Values]) -> None:
    if writes_by_calls(connection):
        call_function(connection, "register_trace", _TABLE, rows)
    else:
        _INSERT.write(connection, rows)


def register_unknown(
    connection: Connection, records: Sequence[TraceRecord]
) -> tuple[TraceRecord, ...]:
    """Store the traces whose ids are new to the workspace.

    Args:
        connection: An open transaction.
        records: The records of traces.

    Returns:
        The records that were not stored, since they may be of known traces.
    """
    unseen = {record.trace_id: record for record in reversed(records) if record.identity is None}
    names = list(unseen)
    for start in range(0, len(names), _AT_ONCE):
        batch = names[start : start + _AT_ONCE]
        for column in (_TABLE.c.id, _TABLE.c.base_id):
            for known_id in connection.execute(select(column).where(column.in_(batch))).scalars():
                unseen.pop(known_id, None)
    fresh = [record for record in records if unseen.get(record.trace_id) is record]
    if fresh:
        folder = traces_folder_of(connection)
        rows = [tuple(to_row(record, record.trace_id, folder).values()) for record in fresh]
        _add(connection, rows)
    return tuple(record for record in records if unseen.get(record.trace_id) is not record)


def find(connection: Connection, record: TraceRecord) -> TraceRecord | None:
    """Return the stored record of a trace, or None.

    Args:
        connection: An open connection.
        record: The trace as it was read.
    """
    rows = connection.execute(_NAMED, {"name": record.trace_id}).mappings()
    folder = traces_folder_of(connection)
    records = [of_row(row, folder) for row in rows]
    if record.identity is None:  # only labels are known: there is no content to compare
        return next((r for r in records if r.trace_id == record.trace_id), None)
    for candidate in records:
        if candidate.identity and candidate.identity.content_hash == record.identity.content_hash:
            return candidate
    candidates = [*records, *_shorter_ones(connection, record.identity)]
    grown = next((candidate for candidate in candidates if _has_grown(candidate, record)), None)
    if grown is not None:
        return grown
    # The trace of which only labels are known gets the file.
    return next((r for r in records if r.identity is None), None)


def unreadable(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return the ids of traces with an invalid outcome, each with a description of the problem."""
    rows = connection.execute(select(_TABLE.c.id, _TABLE.c.outcome).order_by(_TABLE.c.id))
    return tuple(
        (trace_id, f"{outcome!r} is no outcome; it is read as {Outcome.UNKNOWN.value!r}")
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


def _shorter_ones(connection: Connection, identity: TraceIdentity) -> list[TraceRecord]:
    """Return the stored traces whose made-up id has the same stem and whose file was shorter."""
    named = _MADE_UP_ID.fullmatch(identity.trace_id)
    if identity.native or named is None:
        return []
    # The ids from 'stem-' to 'stem.' begin with 'stem-', as '.' follows '-'; an index finds them.
    rows = connection.execute(
        _OF_STEM,
        {
            "stem_from": f"{named['stem']}-",
            "stem_to": f"{named['stem']}.",
            "by_reader": identity.reader,
            "bytes_below": min(identity.content_bytes, _HEAD_BYTES),
        },
    ).mappings()
    known_records = [of_row(row, traces_folder_of(connection)) for row in rows]
    # 'run-a-1234abcd' also begins with 'run-', but its stem is 'run-a'.
    return [
        r
        for r in known_records
        if r.identity
        and (stem := _MADE_UP_ID.fullmatch(r.identity.trace_id))
        and stem["stem"] == named["stem"]
    ]


def _has_grown(earlier: TraceRecord, record: TraceRecord) -> bool:
    """Check whether a file begins with the whole content of an earlier one."""
    old = earlier.identity
    new = record.identity
    if old is None or new is None or record.path is None or record.record is not None:
        return False
    if old.content_bytes > min(new.content_bytes, _HEAD_BYTES) or not old.content_bytes:
        return False
    return _head_hash(record.path, old.content_bytes) == old.content_hash


def _head_hash(path: Path, size: int) -> str | None:
    """Return the hash of the first ``size`` bytes; None for a shorter or unreadable file."""
    try:
        with path.open("rb") as file:
            head = file.read(size)
    except OSError:
        return None
    return hashlib.sha256(head).hexdigest() if len(head) == size else None


def _free_id(connection: Connection, preferred: str) -> str:
    """Return an unused id: the preferred one, if possible, or else with ``~2`` or higher."""
    number = 1
    trace_id = preferred
    while connection.execute(_ID_EXISTS, {"trace_id": trace_id}).first():
        number += 1
        trace_id = f"{preferred}~{number}"
    return trace_id


def updated_record(earlier: TraceRecord, new: TraceRecord, folder: Path | None) -> TraceRecord:
    """Return the stored record of a trace, updated by a new one.

    Args:
        earlier: The stored record.
        new: The record of the trace as it was read now.
        folder: The workspace's folder, see ``paths.traces_folder``.
    """
    changes = {name: getattr(new, name) for name in _FACTS if getattr(new, name) is not None}
    if new.path is not None:
        # As it would be read from the workspace, so that an unchanged path compares equal.
        changes["path"] = found_trace_path(stored_trace_path(new.path, folder), folder)
        changes["record"] = new.record
    if new.outcome is not Outcome.UNKNOWN:
        changes["outcome"] = new.outcome
    if earlier.identity is None and new.identity is not None:
        changes["identity"] = new.identity._replace(trace_id=earlier.trace_id)
    return replace(earlier, **changes)


def to_row(record: TraceRecord, trace_id: str, folder: Path | None) -> Row:
    """Return the row of a trace.

    Args:
        record: The record of the trace.
        trace_id: The id of the trace in the workspace.
        folder: The workspace's folder, see ``paths.traces_folder``.
    """
    identity = record.identity
    return {
        "id": trace_id,
        "base_id": record.trace_id,
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
    """Return the record of a trace from its row.

    Args:
        row: A row of the table.
        folder: The workspace's folder, see ``paths.traces_folder``.
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
