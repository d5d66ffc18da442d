"""Events in: new ones get their counter, foreign ones are merged; the state follows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, func, insert, select

from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.workspace import projection, schema
from mast_tui.workspace.errors import ChangedElsewhere, WorkspaceError
from mast_tui.workspace.events import Event, NewEvent, payload_text
from mast_tui.workspace.facts import LabelAdded, LabelChanged, LabelRemoved
from mast_tui.workspace.ids import now
from mast_tui.workspace.records import EventConflict, MergeReport
from mast_tui.workspace.register import note_annotator
from mast_tui.workspace.rows import event_of, event_to_row

_AT_ONCE: Final = 500

_INSERT: Final = insert(schema.events)
_LAST_SEQ: Final = select(func.max(schema.events.c.seq)).where(
    schema.events.c.annotator == bindparam("annotator")
)
_LAST_SEQ_OF_WORK: Final = select(func.max(schema.events.c.seq)).where(
    schema.events.c.annotator == bindparam("annotator"),
    schema.events.c.trace_id == bindparam("trace_id"),
    schema.events.c.taxonomy == bindparam("taxonomy"),
)


def append(
    connection: Connection,
    new: Sequence[NewEvent],
    new_id: Callable[[], str],
    *,
    action: str | None,
    undoes: str | None,
    redoes: str | None,
    known_seq: int | None,
) -> tuple[Event, ...]:
    """Record events and what follows from them; those whose id is here already are left out."""
    if known_seq is not None and new:
        _check_nothing_came_between(connection, new[0], known_seq)
    action = action or new_id()
    at = now()
    recorded = []
    counters: dict[str, int] = {}
    known = _known_rows(connection, [event.id for event in new if event.id is not None])
    for event in new:
        if event.id in known:
            continue
        _check_label(event)
        name = event.annotator
        if name not in counters:
            last = connection.execute(_LAST_SEQ, {"annotator": name}).scalar_one()
            if last is None:
                note_annotator(connection, name)
            counters[name] = last or 0
        counters[name] += 1
        recorded.append(
            Event(
                id=event.id or new_id(),
                annotator=name,
                seq=counters[name],
                at=at,
                trace_id=event.trace_id,
                taxonomy=event.taxonomy,
                pass_number=event.pass_number,
                fact=event.fact,
                action=action,
                undoes=undoes,
                redoes=redoes,
                replaces=event.replaces,
            )
        )
    if recorded:
        connection.execute(_INSERT, [event_to_row(event) for event in recorded])
    projection.apply(connection, recorded)
    return tuple(recorded)


def merge(connection: Connection, foreign: Iterable[Event]) -> MergeReport:
    """Add the events that are not here, and make their annotators' state anew."""
    added = known = 0
    altered: list[str] = []
    touched: set[str] = set()
    counted: set[tuple[str, int]] = set()
    for batch in _in_batches(foreign):
        # Of events that stand twice in what is merged, the first one counts.
        unique: dict[str, Event] = {}
        for event in batch:
            if unique.setdefault(event.id, event) is event:
                continue
            known += 1
            if _content(event_to_row(unique[event.id])) != _content(event_to_row(event)):
                altered.append(event.id)
        here = _known_rows(connection, list(unique))
        fresh = []
        for event in unique.values():
            if event.id not in here:
                fresh.append(event)
                continue
            known += 1
            if _content(here[event.id]) != _content(event_to_row(event)):
                altered.append(event.id)
        if fresh:
            connection.execute(_INSERT, [event_to_row(event) for event in fresh])
        added += len(fresh)
        touched.update(event.annotator for event in fresh)
        counted.update((event.annotator, event.seq) for event in fresh)
    for annotator in sorted(touched):
        note_annotator(connection, annotator)
    projection.rebuild(connection, touched)
    found = tuple(c for c in conflicts(connection, touched) if (c.annotator, c.seq) in counted)
    return MergeReport(added, known, tuple(altered), found)


def conflicts(
    connection: Connection, annotators: Iterable[str] | None = None
) -> tuple[EventConflict, ...]:
    """Events of people that are counted alike and say different things.

    A judge's counters say nothing: it looks at traces in any order and finds the same.
    """
    table = schema.events
    doubled = (
        select(table.c.annotator, table.c.seq)
        .group_by(table.c.annotator, table.c.seq)
        .having(func.count() > 1)
        .subquery()
    )
    statement = (
        select(table)
        .join(
            doubled,
            (doubled.c.annotator == table.c.annotator) & (doubled.c.seq == table.c.seq),
        )
        .order_by(table.c.annotator, table.c.seq, table.c.id)
    )
    if annotators is not None:
        statement = statement.where(table.c.annotator.in_(sorted(annotators)))
    groups: dict[tuple[str, int], list[Any]] = {}
    for row in connection.execute(statement).mappings():
        if annotator_kind(row["annotator"]) is not AnnotatorKind.JUDGE:
            groups.setdefault((row["annotator"], row["seq"]), []).append(row)
    return tuple(
        EventConflict(annotator, seq, tuple(row["id"] for row in rows))
        for (annotator, seq), rows in groups.items()
        if len({_said(event_of(row)) for row in rows}) > 1
    )


def last_seq(
    connection: Connection, annotator: str, trace_id: str | None, taxonomy: str | None
) -> int:
    """The counter of an annotator's last event on a trace under a taxonomy, 0 for none."""
    work = {"annotator": annotator, "trace_id": trace_id, "taxonomy": taxonomy}
    return connection.execute(_LAST_SEQ_OF_WORK, work).scalar_one() or 0


def _check_nothing_came_between(connection: Connection, event: NewEvent, known_seq: int) -> None:
    if last_seq(connection, event.annotator, event.trace_id, event.taxonomy) != known_seq:
        raise ChangedElsewhere(
            f"{event.annotator} has changed {event.trace_id} through another window meanwhile"
        )


def _check_label(event: NewEvent) -> None:
    """A label says whose it is; that must be what its event says."""
    match event.fact:
        case LabelAdded(label) | LabelRemoved(label) | LabelChanged(_, label):
            said = (label.annotator, label.trace_id, label.taxonomy, label.pass_number)
            if said != (event.annotator, event.trace_id, event.taxonomy, event.pass_number):
                raise ValueError(f"label {label.id} belongs to other work than its event: {said}")


def _known_rows(connection: Connection, ids: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for start in range(0, len(ids), _AT_ONCE):
        statement = select(schema.events).where(
            schema.events.c.id.in_(ids[start : start + _AT_ONCE])
        )
        found.update((row["id"], row) for row in connection.execute(statement).mappings())
    return found


def _content(row: Any) -> tuple[object, ...]:
    return tuple(row[column.name] for column in schema.events.columns)


def _said(event: Event) -> tuple[object, ...]:
    """What an event says, without its name and its hour."""
    return (event.kind, event.trace_id, event.taxonomy, event.pass_number, _timeless(event))


def _timeless(event: Event) -> str:
    return payload_text(event.fact)


def _in_batches(events: Iterable[Event]) -> Iterable[list[Event]]:
    batch: list[Event] = []
    for event in events:
        if not event.id or event.seq < 1:
            raise WorkspaceError(f"event {event.id!r}: has no id or no counter from 1")
        batch.append(event)
        if len(batch) == _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
