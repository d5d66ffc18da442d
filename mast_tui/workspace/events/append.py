"""Recording of events, with the state tables that follow from them in the same transaction.

The state of an annotator follows from that annotator's events alone, in the order of their sequence
numbers and, for equal sequence numbers from two copies of a workspace, of their ids. So recording
events one by one, rebuilding the state, and merging in any order all have the same result.

The index of each span that an event refers to is stored too. A span's key identifies it, and its
index is its position in the trace. The stored index is a cache: it is written when a program that
has the trace records an event, and whenever the trace is read. So overlaps can be found on a
machine without the file of the trace.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Table, bindparam, delete, func, select, text

from mast_tui.errors import ChangedElsewhere, ServerAway
from mast_tui.labels import AnnotatorKind, PassKind, VerdictValue, annotator_kind
from mast_tui.workspace import schema
from mast_tui.workspace.database import (
    LOOK_FOR_SERVER,
    Among,
    Insertion,
    LatestEvent,
    NotLatest,
    Values,
    call_function,
    calls_stored_functions,
    change_rows,
    lock_annotators,
    sees_own_only,
    upsert,
)
from mast_tui.workspace.events import chain
from mast_tui.workspace.events.codec import study_to_values, to_values
from mast_tui.workspace.events.model import Event, NewEvent, now, payload_text
from mast_tui.workspace.events.rows import event_of, event_to_row, label_values, readable_events
from mast_tui.workspace.events.types import (
    KIND_OF,
    Decided,
    Fact,
    GuidelineSet,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassStarted,
    PassWithdrawn,
    SightSet,
    SpanNoteSet,
    SpansRead,
    StudySet,
    changes_in_pass,
    span_keys,
)
from mast_tui.workspace.queries import rows_of
from mast_tui.workspace.records import SpanIndex
from mast_tui.workspace.registers.settings import note_annotator
from mast_tui.workspace.registers.traces import register
from mast_tui.writes import deadline, pause

if TYPE_CHECKING:
    from mast_tui.workspace.outbox import Outbox, WaitingChange
    from mast_tui.workspace.store import Workspace

UNCHECKED: Final = -1
"""A value in place of a sequence number: the change is valid after any other event on its trace."""

_ROWS_PER_QUERY: Final = 500
_EVENTS_PER_BATCH: Final = 6000
"""The most events whose state changes are collected before they are written."""

_INSERT: Final = Insertion(
    schema.events, varying=("id", "seq", "kind", "trace_id", "payload", "chain")
)
_LABEL_FACTS: Final = (LabelAdded, LabelRemoved, LabelChanged)
_LAST: Final = select(func.max(schema.events.c.seq)).where(
    schema.events.c.annotator == bindparam("annotator")
)
_LAST_AND_LINK: Final = _LAST.add_columns(chain.LAST_LINK)
_OWN_LAST: Final = text("SELECT * FROM seen.last_event(:trace_id, :taxonomy)")
_OWN_BY_ID: Final = text("SELECT * FROM seen.own_events(:ids)")
_KNOWN_IDS: Final = Among(schema.events.c.id)
"""The query for those of some ids that stored events have."""
_OF_WORK: Final = (
    schema.events.c.annotator == bindparam("annotator"),
    schema.events.c.trace_id == bindparam("trace_id"),
    schema.events.c.taxonomy == bindparam("taxonomy"),
)
_LAST_SEQ_OF_WORK: Final = select(func.max(schema.events.c.seq)).where(*_OF_WORK)
_LAST_OF_WORK: Final = (
    select(schema.events.c.id, schema.events.c.seq)
    .where(*_OF_WORK)
    .order_by(schema.events.c.seq.desc(), schema.events.c.id.desc())
    .limit(1)
)
_LAST_OF_BOTH: Final = _LAST_AND_LINK.add_columns(_LAST_SEQ_OF_WORK.scalar_subquery())
_ANNOTATORS: Final = select(schema.events.c.annotator).distinct()
_READ_ALL: Final = select(schema.events).order_by(
    schema.events.c.annotator, schema.events.c.seq, schema.events.c.id
)


def append(
    workspace: Workspace,
    events: Sequence[NewEvent],
    *,
    action: str | None = None,
    undoes: str | None = None,
    redoes: str | None = None,
    known_seq: int | None = None,
    indices: Mapping[str, Mapping[str, SpanIndex]] | None = None,
) -> tuple[Event, ...]:
    """Record events and update the state tables, in one transaction; a method of ``Workspace``.

    The events get the next sequence numbers of their annotators; an event whose id is stored
    already is left out. If the server is out of reach, the events are put into their annotator's
    outbox. If there is no outbox for them, the call waits until the server is back. Studies never
    go into an outbox: a study that is sent late would replace a later one.

    Args:
        workspace: The workspace.
        events: The events, in order.
        action: The action that groups them, a new one by default; an action that begins with
            ``import:`` cannot be undone by a key.
        undoes: The action that they undo.
        redoes: The action that they redo.
        known_seq: The sequence number of the last event that the caller knows of the first
            event's annotator, trace and taxonomy; 0 if it knows none. A later event is an error.
            None to skip this check.
        indices: The indices of the spans that the events refer to, by trace and key, to be stored
            too. The outbox does not keep them; reading the trace again stores them.

    Returns:
        The recorded events.

    Raises:
        ChangedElsewhere: There are later events than the one with ``known_seq``.
        WorkspaceError: The events cannot be written.
    """
    database = workspace._database
    give_up_at = deadline()
    annotators = dict.fromkeys(event.annotator for event in events)
    action = action or workspace.new_id()
    recorded: tuple[Event, ...] = ()
    is_inside_transaction = database.within
    outbox = None if is_inside_transaction else _outbox_for(workspace, events, action)
    last_known_seq = UNCHECKED if known_seq is None else known_seq
    if outbox is not None and (outbox.waiting or database.away):
        return outbox.put(events, workspace.new_id, action, undoes, redoes, last_known_seq)
    # If the annotator's last event is known, a server need not be asked for it.
    latest = database.latest
    database.latest = None  # set again after the commit; after a failure it is unknown
    if latest is not None and (
        is_inside_transaction or not _can_follow_latest(latest, events, action, known_seq)
    ):
        latest = None
    while True:
        try:
            with database.writing(annotators=annotators) as connection:
                if is_inside_transaction:
                    lock_annotators(connection, annotators)
                # If the connection was lost, the last try may have committed the events.
                recorded = _stored_events(connection, recorded) or _record_events(
                    connection, events, workspace.new_id, action, undoes, redoes, known_seq, latest
                )
                if indices:
                    keep_span_indices(connection, indices)
            if outbox is not None:
                outbox.note_seen(recorded)
            if calls_stored_functions(connection) and not is_inside_transaction:
                database.latest = _latest_event_of(recorded)
            return recorded
        except NotLatest:  # another program has added an event, which the next try looks up
            recorded = ()
            latest = None
            continue
        except ServerAway:
            latest = None
            if outbox is not None:
                if not recorded:
                    return outbox.put(
                        events, workspace.new_id, action, undoes, redoes, last_known_seq
                    )
                # The server may have committed the events, so they keep their ids and numbers.
                outbox.keep(recorded, last_known_seq)
                return recorded
            if is_inside_transaction or monotonic() > give_up_at:
                raise
        pause(LOOK_FOR_SERVER)


def _can_follow_latest(
    latest: LatestEvent, events: Sequence[NewEvent], action: str, known_seq: int | None
) -> bool:
    """Return whether events can be added after ``latest`` without looking it up on the server.

    Args:
        latest: The last event that this program has written.
        events: The events to add.
        action: The action that groups them.
        known_seq: The sequence number of the last event that the caller knows, as for ``append``.
    """
    if not events or chain.is_import(action):
        return False
    # Only imported events have ids before they are recorded.
    if any(event.annotator != latest.annotator or event.id is not None for event in events):
        return False
    first = events[0]
    latest_work = (latest.annotator, latest.trace_id, latest.taxonomy)
    is_same_work = (first.annotator, first.trace_id, first.taxonomy) == latest_work
    return known_seq is None or (is_same_work and known_seq == latest.seq)


def _latest_event_of(recorded: Sequence[Event]) -> LatestEvent | None:
    """Return the last of these events, whose hash goes into that of the annotator's next event.

    Return None if the events are by several annotators, or if the last one was imported: no later
    hash depends on it.
    """
    if len({event.annotator for event in recorded}) != 1:
        return None
    last = recorded[-1]
    if last.chain is None or not chain.is_linked(last):
        return None
    return LatestEvent(last.annotator, last.trace_id, last.taxonomy, last.seq, last.chain)


def _outbox_for(workspace: Workspace, events: Sequence[NewEvent], action: str) -> Outbox | None:
    """Return the outbox if the events may wait in it, otherwise None.

    Only its own annotator's events may wait, except an import and a change of the study.
    """
    outbox = workspace.outbox
    if outbox is None or chain.is_import(action):
        return None
    may_wait = all(
        event.annotator == outbox.annotator and not isinstance(event.fact, StudySet)
        for event in events
    )
    return outbox if may_wait else None


def send_waiting(workspace: Workspace) -> tuple[WaitingChange, ...]:
    """Send the changes in the outbox in order, until all are sent or the server is out of reach.

    Returns:
        The changes that were not recorded, since the annotator has finished the pass elsewhere.

    Raises:
        WorkspaceError: A change cannot be written; it stays in the outbox.
    """
    outbox = workspace.outbox
    refused: list[WaitingChange] = []
    if outbox is None or not _register_waiting_traces(workspace, outbox):
        return ()
    for change in outbox.waiting:
        try:
            with workspace._database.writing(annotators=[outbox.annotator]) as connection:
                # An earlier try may have stored the change before the connection was lost.
                recorded = _stored_events(connection, change.events) or _record_waiting_change(
                    connection, change, workspace.new_id
                )
        except ServerAway:
            break
        if recorded:
            outbox.note_seen(recorded)
            outbox.remove(change)
        else:
            refused.append(change)
            outbox.move_refused(change)
    return tuple(refused)


def _register_waiting_traces(workspace: Workspace, outbox: Outbox) -> bool:
    """Register the outbox's traces on the server; return False if the server is out of reach."""
    for trace_id, record in outbox.traces.items():
        try:
            with workspace._database.writing() as connection:
                server_id = register(connection, record)
        except ServerAway:
            return False
        outbox.replace_trace_id(trace_id, server_id)
    return True


def _record_waiting_change(
    connection: Connection, change: WaitingChange, new_id: Callable[[], str]
) -> tuple[Event, ...]:
    """Record a change that has waited, and return its events.

    Records and returns nothing if the annotator has changed the work on the trace elsewhere and
    finished the pass.
    """
    first = change.events[0]
    work = {"annotator": first.annotator, "trace_id": first.trace_id, "taxonomy": first.taxonomy}
    # A change follows an earlier change in the outbox, or else the event on the server that was the
    # last one when the change was made (``known_seq``).
    last_id, last_seq = connection.execute(_LAST_OF_WORK, work).one_or_none() or (None, 0)
    if change.follows is None:
        has_other_predecessor = last_seq != change.known_seq
    else:
        has_other_predecessor = last_id != change.follows
    # An unchecked change is valid after any other event.
    if has_other_predecessor and change.known_seq != UNCHECKED:
        table = schema.passes
        pass_filters = {**work, "number": first.pass_number}
        finished_at = select(table.c.finished_at).filter_by(**pass_filters, withdrawn=False)
        if connection.execute(finished_at).scalar() is not None:
            return ()
    events = [
        NewEvent(
            event.annotator,
            event.trace_id,
            event.taxonomy,
            event.pass_number,
            event.fact,
            event.replaces,
            event.id,
            event.at,
        )
        for event in change.events
    ]
    return _record_events(
        connection, events, new_id, first.action, first.undoes, first.redoes, None
    )


def _stored_events(connection: Connection, events: Sequence[Event]) -> tuple[Event, ...]:
    """Return those of the events that are stored, as they are stored."""
    rows = known_rows(connection, [event.id for event in events])
    return tuple(map(event_of, rows.values()))


def _record_events(
    connection: Connection,
    events: Sequence[NewEvent],
    new_id: Callable[[], str],
    action: str,
    undoes: str | None,
    redoes: str | None,
    known_seq: int | None,
    latest: LatestEvent | None = None,
) -> tuple[Event, ...]:
    """Record new events after the last ones of their annotators, and update the state tables.

    Events whose id is stored already are left out. If all events are by one annotator, ``latest``
    can be the last event of that annotator, which saves a query. For the other arguments see
    ``append``. An event's chain is a hash over the event and the chain before it; see ``chain``.
    That of an imported event is a hash over that event alone, since its sequence number and time
    differ from workspace to workspace.
    """
    recorded_at = now()
    is_linked = not chain.is_import(action)
    is_member_of_team = calls_stored_functions(connection)
    recorded = list[Event]()
    rows = list[Values]()
    last_seqs: dict[str, int] = {}
    last_chains: dict[str, str] = {}
    imported_ids = [event.id for event in events if event.id is not None]
    if sees_own_only(connection):  # the tables are views, so a function of the server is asked
        known_ids: Collection[str] = known_rows(connection, imported_ids)
    else:
        known_ids = _KNOWN_IDS(connection, imported_ids)
    for event in events:
        if event.id in known_ids:
            continue
        if isinstance(event.fact, _LABEL_FACTS):
            _check_label(event)

        # The sequence number and the chain that the event follows.
        name = event.annotator
        if name not in last_seqs and latest is not None:
            last_seqs[name] = latest.seq
            last_chains[name] = latest.chain
        elif name not in last_seqs:
            # ``known_seq`` is about the work of the first event only.
            annotators_last_seq, last_chain = _last_seq_and_chain(
                connection, event, is_linked, known_seq if not last_seqs else None
            )
            if annotators_last_seq is None:
                note_annotator(connection, name)
            last_seqs[name] = annotators_last_seq or 0
            if chain.has_chain(name):
                last_chains[name] = last_chain
        last_seqs[name] += 1

        seq = last_seqs[name]
        time = event.at or recorded_at
        event_id = event.id or new_id()
        payload = payload_text(event.fact)
        if is_member_of_team:
            _check_text(payload)
        event_chain: str | None = None
        if name in last_chains:
            placement = (seq, time, action, undoes, redoes) if is_linked else None
            event_digest = chain.digest_of(event, event_id, placement, payload)
            event_chain = chain.link(last_chains[name], event_digest)
            if is_linked:
                last_chains[name] = event_chain
        recorded_event = Event(
            id=event_id,
            annotator=name,
            seq=seq,
            at=time,
            trace_id=event.trace_id,
            taxonomy=event.taxonomy,
            pass_number=event.pass_number,
            fact=event.fact,
            action=action,
            undoes=undoes,
            redoes=redoes,
            replaces=event.replaces,
            chain=event_chain,
        )
        recorded.append(recorded_event)
        rows.append(tuple(event_to_row(recorded_event, payload).values()))
    if is_member_of_team:  # the server's function updates the state tables too
        call_function(connection, "append_event", schema.events, rows)
    else:
        _INSERT.write(connection, rows)
        update_state(connection, recorded)
    return tuple(recorded)


def _check_text(payload: str) -> None:
    """Raise ``UnicodeEncodeError`` for half of a surrogate pair, which no server can store."""
    if "\\ud" in payload:
        json.dumps(json.loads(payload), ensure_ascii=False).encode()


def insert(connection: Connection, events: Sequence[Event]) -> None:
    """Add events of another workspace unchanged, and their annotators if they are unknown.

    The caller updates the state tables.

    Args:
        connection: An open transaction.
        events: The events.
    """
    lock_annotators(connection, (event.annotator for event in events))
    for start in range(0, len(events), _ROWS_PER_QUERY):
        batch = events[start : start + _ROWS_PER_QUERY]
        rows = [tuple(event_to_row(event, payload_text(event.fact)).values()) for event in batch]
        if calls_stored_functions(connection):
            call_function(connection, "insert_event", schema.events, rows)
        else:
            _INSERT.write(connection, rows)
    for name in dict.fromkeys(event.annotator for event in events):
        note_annotator(connection, name)


def forget(connection: Connection, ids: Iterable[str]) -> None:
    """Delete events and rebuild the state tables without them; meant for a temporary copy.

    Args:
        connection: An open transaction.
        ids: The ids of the events; unknown ones are ignored.
    """
    event_ids = list(ids)
    annotators = {row["annotator"] for row in known_rows(connection, event_ids).values()}
    for start in range(0, len(event_ids), _ROWS_PER_QUERY):
        batch = event_ids[start : start + _ROWS_PER_QUERY]
        connection.execute(delete(schema.events).where(schema.events.c.id.in_(batch)))
    rebuild(connection, annotators)


# Reading events


def last_seq_of_annotator(connection: Connection, annotator: str) -> int:
    """Return the sequence number of an annotator's last event on any trace, 0 if there is none.

    Args:
        connection: An open connection.
        annotator: The annotator.
    """
    if sees_own_only(connection):
        # The function also needs a trace, to return the last event on it, which is not used here.
        row = connection.execute(_OWN_LAST, {"trace_id": "", "taxonomy": ""}).one()
        return row.seq or 0
    return connection.execute(_LAST, {"annotator": annotator}).scalar_one() or 0


def last_seq_on_trace(
    connection: Connection, annotator: str, trace_id: str | None, taxonomy: str | None
) -> int:
    """Return the sequence number of an annotator's last event on a trace, 0 if there is none.

    Args:
        connection: An open connection.
        annotator: The annotator.
        trace_id: The trace; None for events that belong to no trace.
        taxonomy: The taxonomy; None for events that belong to none.
    """
    work = {"annotator": annotator, "trace_id": trace_id, "taxonomy": taxonomy}
    return connection.execute(_LAST_SEQ_OF_WORK, work).scalar_one() or 0


def known_facts(connection: Connection, ids: Sequence[str]) -> dict[str, Fact]:
    """Return the facts of stored events by id.

    Args:
        connection: An open connection.
        ids: The ids of the events; those that are not stored are left out.
    """
    rows = known_rows(connection, ids)
    return {event.id: event.fact for event in readable_events(rows.values())}


def known_rows(connection: Connection, ids: Sequence[str]) -> dict[str, Any]:
    """Return the rows of stored events by id.

    Args:
        connection: An open connection.
        ids: The ids of the events; those that are not stored are left out.
    """
    if ids and sees_own_only(connection):
        # This function of the server reads the annotator's own events, in one query.
        rows = connection.execute(_OWN_BY_ID, {"ids": list(ids)}).mappings()
        return {row["id"]: row for row in rows}
    rows_by_id: dict[str, Any] = {}
    for start in range(0, len(ids), _ROWS_PER_QUERY):
        statement = select(schema.events).where(
            schema.events.c.id.in_(ids[start : start + _ROWS_PER_QUERY])
        )
        rows_by_id.update((row["id"], row) for row in connection.execute(statement).mappings())
    return rows_by_id


def _last_seq_and_chain(
    connection: Connection, event: NewEvent, is_linked: bool, known_seq: int | None
) -> tuple[int | None, str]:
    """Return the sequence number and the chain of the event that a new event follows.

    The chain is that of the annotator's last event that was not imported. The search for it passes
    over imported events, of which there may be many, so it is made only for a linked event.

    Args:
        connection: An open transaction.
        event: The new event.
        is_linked: Whether its chain depends on that of its predecessor; False for an import.
        known_seq: The sequence number of the last event that the caller knows on its trace and
            taxonomy; None to skip the check for later ones.

    Returns:
        The sequence number, None if there is no event; and the chain, ``chain.START`` if there is
        none or it is not needed.

    Raises:
        ChangedElsewhere: There are later events than the one with ``known_seq``.
    """
    values: dict[str, str | None] = {"annotator": event.annotator}
    work = {"trace_id": event.trace_id, "taxonomy": event.taxonomy}
    if sees_own_only(connection):
        last_seq, previous_chain, last_seq_of_work = connection.execute(_OWN_LAST, work).one()
    elif not is_linked:
        return connection.execute(_LAST, values).scalar_one(), chain.START
    elif known_seq is None:
        last_seq, previous_chain = connection.execute(_LAST_AND_LINK, values).one()
        return last_seq, previous_chain or chain.START
    else:
        last_seq, previous_chain, last_seq_of_work = connection.execute(
            _LAST_OF_BOTH, values | work
        ).one()
    if known_seq is not None and (last_seq_of_work or 0) != known_seq:
        raise ChangedElsewhere(
            f"{event.annotator} has changed {event.trace_id} in another window meanwhile"
        )
    return last_seq, previous_chain or chain.START


def _check_label(event: NewEvent) -> None:
    """Raise ``ValueError`` if a label differs from its event in annotator, trace or pass."""
    fact = event.fact
    assert isinstance(fact, _LABEL_FACTS)
    label = fact.after if isinstance(fact, LabelChanged) else fact.label
    label_context = (label.annotator, label.trace_id, label.taxonomy, label.pass_number)
    if label_context != (event.annotator, event.trace_id, event.taxonomy, event.pass_number):
        raise ValueError(f"label {label.id} belongs to other work than its event: {label_context}")


# State tables


def update_state(connection: Connection, events: Iterable[Event]) -> None:
    """Apply events to the state tables, which already contain all earlier events.

    Args:
        connection: An open transaction.
        events: The events, in the order of their sequence numbers.
    """
    if calls_stored_functions(connection):
        return  # the server's function has updated them when it added the events
    remaining = iter(events)
    while batch := list(islice(remaining, _EVENTS_PER_BATCH)):
        state = _StateChanges(connection)
        for event in batch:
            state.add(event)
        state.write()


def rebuild(connection: Connection, annotators: Iterable[str] | None = None) -> None:
    """Rebuild the state tables (labels, verdicts, passes and so on) from the events.

    Args:
        connection: An open transaction.
        annotators: The annotators whose rows are rebuilt; None for all.
    """
    if annotators is None:
        lock_annotators(connection, connection.execute(_ANNOTATORS).scalars())
        for table in schema.STATE_TABLES:
            connection.execute(delete(table))
        _replay_events(connection, None)
        return
    names = sorted(set(annotators))
    lock_annotators(connection, names)
    if calls_stored_functions(connection):
        rows = [(annotator, annotator_kind(annotator).value) for annotator in names]
        call_function(connection, "rebuild_state", schema.annotators, rows)
        return
    for annotator in names:
        for table in schema.STATE_TABLES:
            connection.execute(delete(table).where(table.c.annotator == annotator))
        _replay_events(connection, annotator)


def _replay_events(connection: Connection, annotator: str | None) -> None:
    """Update the state tables by all events of an annotator, or of all if it is None."""
    statement = _READ_ALL
    if annotator is not None:
        statement = statement.where(schema.events.c.annotator == annotator)
    for batch in connection.execute(statement).mappings().partitions(_EVENTS_PER_BATCH):
        update_state(connection, readable_events(batch))


_VARYING_COLUMNS: Final = {
    schema.verdicts: ("trace_id", "mode", "value"),
    schema.labels: ("id", "trace_id", "mode"),
    schema.passes: ("trace_id", "number"),
}
"""The columns in which the many rows of an import differ; they mostly share all others."""


def _key_names(table: Table) -> list[str]:
    return [column.name for column in table.primary_key]


def _delete_statement(table: Table, *names: str) -> str:
    return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in names)}"


_UPSERTS: Final = {
    table: upsert(table, _VARYING_COLUMNS.get(table, ()))
    for table in schema.STATE_TABLES
    if table is not schema.passes
}
_DELETES: Final = {table: _delete_statement(table, *_key_names(table)) for table in _UPSERTS}
_DROP_VERDICTS: Final = _delete_statement(schema.verdicts, *_key_names(schema.verdicts)[:-1])
_PASS_COLUMNS: Final = [column.name for column in schema.passes.columns]
_PASS_KEY: Final = _key_names(schema.passes)


@lru_cache
def _insertion_of_passes(changed_columns: tuple[str, ...]) -> Insertion:
    """Return an insertion of passes that only updates ``changed_columns`` of a stored pass.

    If the stored pass was withdrawn, the columns of its start are updated too.
    """
    new_values = {
        name: f"CASE WHEN passes.withdrawn THEN excluded.{name} ELSE passes.{name} END"
        for name in ("kind", "started_at", "withheld")
    }
    new_values["withdrawn"] = "FALSE"
    new_values |= {name: f"excluded.{name}" for name in changed_columns}
    assignments = ", ".join(f"{name} = {value}" for name, value in new_values.items())
    on_conflict = f"ON CONFLICT ({', '.join(_PASS_KEY)}) DO UPDATE SET {assignments}"
    return Insertion(
        schema.passes, varying=_VARYING_COLUMNS[schema.passes], on_conflict=on_conflict
    )


@lru_cache
def _update_of_passes(changed: tuple[str, ...]) -> str:
    """Return the SQL statement that changes these columns of a stored pass."""
    sets = ", ".join(f"{name} = ?" for name in changed)
    where = " AND ".join(f"{name} = ?" for name in _PASS_KEY)
    return f"UPDATE passes SET {sets} WHERE {where}"


class _StateChanges:
    """Changes to the state tables, collected so that many rows are written at once.

    A later change of a key replaces an earlier one.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows = defaultdict[Table, dict[Values, Values | None]](dict)
        """The changed rows of all tables but verdicts and passes, by key; None removes a row."""
        self._verdicts = defaultdict[Values, dict[str, VerdictValue | None]](dict)
        """The changed verdicts of each pass; None removes a verdict."""
        self._cleared_passes = set[Values]()
        """The passes whose stored verdicts are deleted first."""
        self._new_passes: dict[Values, dict[str, Any]] = {}
        """The columns of passes that begin."""
        self._changed_passes = defaultdict[Values, dict[str, Any]](dict)
        """The changed columns of passes."""

    def add(self, event: Event) -> None:
        """Collect the changes that the next event makes to the rows of the state tables."""
        fact = event.fact
        annotator = event.annotator
        work = (annotator, event.trace_id, event.taxonomy)
        pass_key = (*work, event.pass_number)
        for part, name, value in changes_in_pass(fact, event.at):  # the value is None if removed
            match part:
                case "verdicts":
                    self._verdicts[pass_key][name] = value
                case "labels":
                    self._rows[schema.labels][annotator, name] = value and label_values(value)
                case "reviews":
                    review_row = value and (value.answer.value, value.label, value.reason)
                    self._rows[schema.reviews][*pass_key, name] = review_row
                case "notes":
                    self._rows[schema.span_notes][*pass_key, name] = value and (value,)
                case "pass":
                    self._changed_passes[pass_key][name] = value
        match fact:
            case PassStarted(kind, _, withheld):
                self._begin_pass(pass_key, kind, event.at, withheld=withheld)
            case Judged():
                self._add_judgement(event, fact, pass_key)
            case PassWithdrawn() if annotator_kind(annotator) is AnnotatorKind.JUDGE:
                # Once its pass is withdrawn, the judge counts as not having looked at the trace.
                self._clear_verdicts(pass_key)
                self._rows[schema.judgements][work] = None
            case Decided(item, _, decision):
                decision_row: Values | None = None
                if decision is not None:
                    decision_row = decision.decided_at, json.dumps(to_values(decision))
                self._rows[schema.decisions][*work, item] = decision_row
            case SightSet(_, blind):
                self._rows[schema.sights][annotator,] = (blind,)
            case StudySet(_, study):
                study_row: Values | None = None
                if study is not None:
                    study_row = event.at, json.dumps(study_to_values(study))
                self._rows[schema.studies][annotator, event.taxonomy] = study_row
            case GuidelineSet(name, _, guideline):
                guideline_row: Values | None = None
                if guideline is not None:
                    document = json.dumps(to_values(guideline))
                    guideline_row = event.taxonomy, guideline.written_at, document
                self._rows[schema.guidelines][annotator, name] = guideline_row

    def _begin_pass(self, key: Values, kind: PassKind, started_at: str, *, withheld: bool) -> None:
        """Add a pass that begins; a pass that has begun already keeps its values."""
        # ``write`` applies collected changes of a pass after its start. Changes that came before
        # this start must not apply to the new pass, so they are written now. They came before it if
        # the pass is not among the new ones yet, or was withdrawn since and begins again.
        has_earlier_changes = key in self._changed_passes and (
            key not in self._new_passes or "withdrawn" in self._changed_passes[key]
        )
        if has_earlier_changes:
            self.write()
        values = {
            "kind": kind.value,
            "started_at": started_at,
            "judge_seen": False,
            "withdrawn": False,
        }
        self._new_passes.setdefault(key, values | {"withheld": withheld})

    def _add_judgement(self, event: Event, fact: Judged, key: Values) -> None:
        """Finish the judge's pass on a trace and replace all its verdicts.

        ``key`` is the key of the pass: annotator, trace, taxonomy and pass number.
        """
        self._begin_pass(key, PassKind.BLIND, event.at, withheld=False)
        # The spans that were read are counted for people only.
        self._changed_passes[key] |= {"finished_at": event.at, "spans_read": None, "spans": None}
        self._clear_verdicts(key)
        self._verdicts[key] = dict.fromkeys(fact.absent, VerdictValue.ABSENT)
        self._verdicts[key] |= dict.fromkeys(fact.unsure, VerdictValue.UNSURE)
        work = (event.annotator, event.trace_id, event.taxonomy)
        judgement_row = (json.dumps(list(fact.looks_at)), fact.run, event.at)
        self._rows[schema.judgements][work] = judgement_row

    def _clear_verdicts(self, key: Values) -> None:
        self._cleared_passes.add(key)
        self._verdicts.pop(key, None)

    def write(self) -> None:
        """Write all collected changes."""
        self._write_verdicts()
        for table, rows in self._rows.items():
            removed_keys = [key for key, values in rows.items() if values is None]
            new_rows = [(*key, *values) for key, values in rows.items() if values is not None]
            change_rows(self._connection, _DELETES[table], removed_keys)
            _UPSERTS[table].write(self._connection, new_rows)
        self._rows.clear()
        self._write_passes()

    def _write_verdicts(self) -> None:
        """Delete the verdicts of cleared passes, then write the changed verdicts."""
        removed_keys = list[Values]()
        new_rows = list[Values]()
        for key, values in self._verdicts.items():
            for mode, value in values.items():
                if value is None:
                    removed_keys.append((*key, mode))
                else:
                    new_rows.append((*key, mode, str(value)))
        change_rows(self._connection, _DROP_VERDICTS, list(self._cleared_passes))
        change_rows(self._connection, _DELETES[schema.verdicts], removed_keys)
        _UPSERTS[schema.verdicts].write(self._connection, new_rows)
        self._verdicts.clear()
        self._cleared_passes.clear()

    def _write_passes(self) -> None:
        """Write new and changed passes, with one statement for those that set the same columns.

        If a new pass is stored already, and was not withdrawn, only the columns that were changed
        after its start are updated.
        """
        new_rows = defaultdict[tuple[str, ...], list[Values]](list)
        changed_rows = defaultdict[tuple[str, ...], list[Values]](list)
        for key, values in self._new_passes.items():
            later_changes = self._changed_passes.pop(key, {})
            last_values = values | later_changes
            columns_after_key = _PASS_COLUMNS[len(_PASS_KEY) :]
            row = (last_values.get(name) for name in columns_after_key)
            new_rows[tuple(later_changes)].append((*key, *row))
        for key, values in self._changed_passes.items():
            changed_rows[tuple(values)].append((*values.values(), *key))
        for names, rows in new_rows.items():
            _insertion_of_passes(names).write(self._connection, rows)
        for names, rows in changed_rows.items():
            change_rows(self._connection, _update_of_passes(names), rows)
        self._new_passes.clear()
        self._changed_passes.clear()


# The indices of spans

_INDEX_TABLE: Final = schema.span_indices
_UPSERT_INDICES: Final = Insertion(
    _INDEX_TABLE,
    on_conflict="ON CONFLICT (trace_id, span_key) DO UPDATE SET span_index = excluded.span_index, "
    "text_chars = coalesce(excluded.text_chars, span_indices.text_chars)",
)
_ALL_INDICES: Final = select(_INDEX_TABLE)
_INDICES_OF_TRACE: Final = _ALL_INDICES.where(_INDEX_TABLE.c.trace_id == bindparam("trace_id"))
_LABELS: Final = schema.labels.c
_LABELS_OF_TRACE: Final = select(_LABELS.first_key, _LABELS.last_key, _LABELS.quote).where(
    _LABELS.trace_id == bindparam("trace_id"), _LABELS.first_key.is_not(None)
)
_OTHER_KINDS: Final = tuple(KIND_OF[fact] for fact in (SpanNoteSet, SpansRead, Decided))
_EVENTS_OF_TRACE: Final = select(schema.events).where(
    # An index of the events begins with the annotator.
    schema.events.c.annotator.in_(select(schema.annotators.c.name)),
    schema.events.c.trace_id == bindparam("trace_id"),
    schema.events.c.kind.in_(_OTHER_KINDS),
)


def span_indices(
    connection: Connection, trace_id: str | None = None
) -> dict[str, dict[str, SpanIndex]]:
    """Return the stored indices of spans by trace and key.

    Args:
        connection: An open connection.
        trace_id: Only those of this trace; None for all.
    """
    statement = _ALL_INDICES if trace_id is None else _INDICES_OF_TRACE.params(trace_id=trace_id)
    indices: dict[str, dict[str, SpanIndex]] = defaultdict(dict)
    for trace, key, index, text_chars in rows_of(connection, statement):
        indices[trace][key] = SpanIndex(index, text_chars)
    return dict(indices)


def keep_span_indices(
    connection: Connection, indices: Mapping[str, Mapping[str, SpanIndex]]
) -> None:
    """Store the indices of spans, and replace those stored before.

    Args:
        connection: An open transaction.
        indices: The indices by trace and key.
    """
    # Sorted, so that two programs that write the same rows on a server do not block each other.
    rows = [
        (trace_id, key, index.index, index.text_chars)
        for trace_id, indices_by_key in sorted(indices.items())
        for key, index in sorted(indices_by_key.items())
    ]
    if calls_stored_functions(connection):
        call_function(connection, "keep_span_index", _INDEX_TABLE, rows)
    elif rows:
        _UPSERT_INDICES.write(connection, rows)


def referred_spans(connection: Connection, trace_id: str) -> dict[str, bool]:
    """Return the keys of a trace's spans that are stored in labels, notes and other work.

    Other work is the decisions on gold and the records of read spans.

    Args:
        connection: An open connection.
        trace_id: The trace.

    Returns:
        For each key, True if a label or decision quotes from the span.
    """
    has_quote: dict[str, bool] = {}
    for first, last, quote in rows_of(connection, _LABELS_OF_TRACE.params(trace_id=trace_id)):
        has_quote.setdefault(last, False)
        # A label with a quote is on a single span.
        has_quote[first] = has_quote.get(first, False) or quote is not None
    rows = connection.execute(_EVENTS_OF_TRACE, {"trace_id": trace_id}).mappings()
    for event in readable_events(rows):
        for key, quoted in span_keys(event.fact).items():
            has_quote[key] = has_quote.get(key, False) or quoted
    return has_quote
