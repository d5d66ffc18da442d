"""From events to the state tables: what one event changes, and all of it made anew.

The state of an annotator follows from that annotator's events alone, taken in the order of their
counters (and of their ids where two copies of a workspace counted alike). So writing them one by
one, rebuilding, and merging in any order come to the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, case, delete, select
from sqlalchemy import update as sql_update
from sqlalchemy.dialects.sqlite import insert

from mast_tui.labels import Label, PassKind, VerdictValue
from mast_tui.workspace import schema
from mast_tui.workspace.events import Event
from mast_tui.workspace.facts import (
    Decided,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    PassKindSet,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    Revealed,
    ReviewSet,
    SightSet,
    SpanNoteSet,
    SpansRead,
    SuggestionsSeen,
    VerdictSet,
)
from mast_tui.workspace.rows import Row, event_of, label_to_row
from mast_tui.workspace.values import decision_to_dict


def _upsert(table: Table) -> Any:
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


def _row_is(table: Table, *names: str) -> ColumnElement[bool]:
    return and_(*(table.c[name] == bindparam(f"is_{name}") for name in names))


def _by_key(table: Table) -> ColumnElement[bool]:
    return _row_is(table, *(column.name for column in table.primary_key))


_UPSERTS: Final = {
    table: _upsert(table) for table in schema.STATE_TABLES if table is not schema.passes
}
_DELETES: Final = {table: delete(table).where(_by_key(table)) for table in schema.STATE_TABLES}
_DROP_VERDICTS: Final = delete(schema.verdicts).where(
    _row_is(schema.verdicts, "annotator", "trace_id", "taxonomy", "pass_number")
)


def _start_pass() -> Any:
    """Insert a pass; one that is there already stays as it began, unless it was withdrawn."""
    table = schema.passes
    statement = insert(table)
    return statement.on_conflict_do_update(
        index_elements=[column.name for column in table.primary_key],
        set_={
            "kind": case((table.c.withdrawn, statement.excluded.kind), else_=table.c.kind),
            "started_at": case(
                (table.c.withdrawn, statement.excluded.started_at), else_=table.c.started_at
            ),
            "withdrawn": False,
        },
    )


_START_PASS: Final = _start_pass()


def _change_pass(*names: str) -> Any:
    return (
        sql_update(schema.passes)
        .where(_by_key(schema.passes))
        .values({name: bindparam(f"new_{name}") for name in names})
    )


_CHANGE_PASS: Final[dict[tuple[str, ...], Any]] = {
    names: _change_pass(*names)
    for names in (
        ("withdrawn",),
        ("kind",),
        ("judge_seen",),
        ("revealed_at",),
        ("finished_at", "spans_read", "spans"),
    )
}


def apply(connection: Connection, event: Event) -> None:
    """Change the state tables by one event, which comes after all others of its annotator."""
    match event.fact:
        case LabelAdded(label) | LabelChanged(_, label):
            connection.execute(_UPSERTS[schema.labels], label_to_row(label))
        case LabelRemoved(label):
            _drop_label(connection, label)
        case VerdictSet(mode, _, value):
            _put(
                connection,
                schema.verdicts,
                _in_pass(event) | {"mode": mode},
                None if value is None else {"value": value.value},
            )
        case ReviewSet(suggestion, _, review):
            _put(
                connection,
                schema.reviews,
                _in_pass(event) | {"suggestion": suggestion},
                None
                if review is None
                else {
                    "answer": review.answer.value,
                    "label": review.label,
                    "reason": review.reason,
                },
            )
        case SpanNoteSet(key, _, text):
            _put(
                connection,
                schema.span_notes,
                _in_pass(event) | {"span_key": key},
                {"text": text} if text else None,
            )
        case Decided(item, _, decision):
            _put(
                connection,
                schema.decisions,
                _of_trace(event) | {"item": item},
                None
                if decision is None
                else {
                    "decided_at": decision.decided_at,
                    "document": json.dumps(decision_to_dict(decision)),
                },
            )
        case SightSet(_, blind):
            _put(connection, schema.sights, {"annotator": event.annotator}, {"blind": blind})
        case Judged():
            _judged(connection, event, event.fact)
        case SpansRead():
            pass  # Which spans were read stands in the events alone.
        case _:
            _apply_to_pass(connection, event)


def _apply_to_pass(connection: Connection, event: Event) -> None:
    match event.fact:
        case PassStarted(kind):
            _start(connection, event, kind)
        case PassWithdrawn():
            _change(connection, event, withdrawn=True)
        case PassKindSet(_, kind):
            _change(connection, event, kind=kind.value)
        case PassFinished(_, read, spans, at):
            finished_at = event.at if at is None else at
            _change(connection, event, finished_at=finished_at, spans_read=read, spans=spans)
        case PassUnfinished():
            _change(connection, event, finished_at=None, spans_read=None, spans=None)
        case SuggestionsSeen():
            _change(connection, event, judge_seen=True)
        case Revealed():
            _change(connection, event, revealed_at=event.at)
        case _:
            raise AssertionError(f"no state follows from {event.kind}")


def _of_trace(event: Event) -> Row:
    return {
        "annotator": event.annotator,
        "trace_id": event.trace_id,
        "taxonomy": event.taxonomy,
    }


def _in_pass(event: Event) -> Row:
    return _of_trace(event) | {"pass_number": event.pass_number}


def _put(connection: Connection, table: Table, key: Row, values: Row | None) -> None:
    """Write the row with this key, or remove it where there are no values."""
    if values is None:
        connection.execute(_DELETES[table], {f"is_{name}": key[name] for name in key})
    else:
        connection.execute(_UPSERTS[table], key | values)


def _drop_label(connection: Connection, label: Label) -> None:
    connection.execute(
        _DELETES[schema.labels], {"is_annotator": label.annotator, "is_id": label.id}
    )


def _start(connection: Connection, event: Event, kind: PassKind) -> None:
    connection.execute(
        _START_PASS,
        _of_trace(event)
        | {
            "number": event.pass_number,
            "kind": kind.value,
            "started_at": event.at,
            "judge_seen": False,
            "withdrawn": False,
        },
    )


def _change(connection: Connection, event: Event, **values: object) -> None:
    key = _of_trace(event) | {"number": event.pass_number}
    connection.execute(
        _CHANGE_PASS[tuple(values)],
        {f"is_{name}": key[name] for name in key}
        | {f"new_{name}": value for name, value in values.items()},
    )


def _judged(connection: Connection, event: Event, fact: Judged) -> None:
    """A judge is through with a trace at once: its pass is finished, its verdicts are these."""
    _start(connection, event, PassKind.BLIND)
    _change(connection, event, finished_at=event.at, spans_read=None, spans=None)
    where = _in_pass(event)
    connection.execute(_DROP_VERDICTS, {f"is_{name}": where[name] for name in where})
    absent = [
        where | {"mode": mode, "value": VerdictValue.ABSENT.value}
        for mode in dict.fromkeys(fact.absent)
    ]
    if absent:
        connection.execute(_UPSERTS[schema.verdicts], absent)
    connection.execute(
        _UPSERTS[schema.judgements],
        _of_trace(event)
        | {"looks_at": json.dumps(list(fact.looks_at)), "run": fact.run, "at": event.at},
    )


_READ_ALL: Final = select(schema.events).order_by(
    schema.events.c.annotator, schema.events.c.seq, schema.events.c.id
)


def rebuild(connection: Connection, annotators: Iterable[str] | None = None) -> None:
    """Make the state tables anew from the events: those of some annotators, or all."""
    if annotators is None:
        for table in schema.STATE_TABLES:
            connection.execute(delete(table))
        _replay(connection, None)
        return
    for annotator in sorted(set(annotators)):
        for table in schema.STATE_TABLES:
            connection.execute(delete(table).where(table.c.annotator == annotator))
        _replay(connection, annotator)


def _replay(connection: Connection, annotator: str | None) -> None:
    statement = _READ_ALL
    if annotator is not None:
        statement = statement.where(schema.events.c.annotator == annotator)
    for row in connection.execute(statement).mappings():
        apply(connection, event_of(row))
