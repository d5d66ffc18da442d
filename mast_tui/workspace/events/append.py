"""The recording of events and of the state that follows, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from sqlalchemy import Connection, Executable, bindparam, delete, func, null, select, text

from mast_tui.errors import ChangedElsewhere, ServerAway
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
    lock_annotators,
    sees_own_only,
)
from mast_tui.workspace.events import chain
from mast_tui.workspace.events.model import Event, NewChange, NewEvent, now, payload_text
from mast_tui.workspace.events.rows import event_of, event_to_row, readable_events
from mast_tui.workspace.events.state import keep_span_indices, rebuild, update_state
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    StudySet,
)
from mast_tui.workspace.records import SpanIndex
from mast_tui.workspace.registers.settings import note_annotator
from mast_tui.workspace.registers.traces import register
from mast_tui.writes import deadline, pause

if TYPE_CHECKING:
    from mast_tui.workspace.outbox import Outbox, WaitingChange
    from mast_tui.workspace.store import Workspace

_ROWS_PER_CALL: Final = 500
_INSERT: Final = Insertion(
    schema.events, varying=("id", "seq", "kind", "trace_id", "payload", "chain")
)
_LABEL_FACTS: Final = (LabelAdded, LabelRemoved, LabelChanged)
_LAST: Final = select(func.max(schema.events.c.seq)).where(
    schema.events.c.annotator == bindparam("annotator")
)
_OWN_BY_ID: Final = text("SELECT * FROM seen.own_events(:ids)")
_KNOWN_IDS: Final = Among(select(schema.events.c.id), schema.events.c.id)
_EVENTS_BY_ID: Final = Among(select(schema.events), schema.events.c.id)
_DELETE_BY_ID: Final = Among(delete(schema.events), schema.events.c.id)
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
_END_AND_WORK: Final = _LAST.add_columns(chain.LAST_HASH, _LAST_SEQ_OF_WORK.scalar_subquery())
"""The query for an annotator's last sequence number, last hash, and last number on one trace.

The queries below have the same columns.
"""
_END: Final = _LAST.add_columns(chain.LAST_HASH, null())
_END_WITHOUT_HASH: Final = _LAST.add_columns(null(), null())
_OWN_END: Final = text("SELECT * FROM seen.last_event(:trace_id, :taxonomy)")


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
    """Record events and update the state tables, in one transaction.

    The events get the next sequence numbers of their annotators; events with a stored id are left
    out. Without a server's answer, the events go to their annotator's outbox, or the call waits if
    there is none. A study never goes to an outbox, because a late study would replace a newer one.

    Args:
        workspace: The workspace.
        events: The events, in order.
        action: The action that groups the events; None for a new one. A key cannot undo an action
            that begins with ``import:``.
        undoes: The action that the events undo.
        redoes: The action that the events redo.
        known_seq: The sequence number of the last event that the caller knows of the first event's
            annotator, trace and taxonomy; 0 for none. A later event is an error. None to skip this
            check.
        indices: The indices of the spans in the events, by trace and key, which are stored too
            unless the events go to the outbox.

    Returns:
        The recorded events.

    Raises:
        ChangedElsewhere: There are events after ``known_seq``.
        WorkspaceError: The events cannot be written.
    """
    database = workspace._database
    change = NewChange(events, action or workspace.new_id(), undoes, redoes, known_seq)
    is_inside_transaction = database.within
    outbox = None if is_inside_transaction else _outbox_for(workspace, change)
    if outbox is not None and (outbox.waiting or database.away):
        return outbox.put(change, workspace.new_id)
    recording = _Recording(workspace, change, indices or {})
    give_up_at = deadline()
    while True:
        try:
            recorded = recording.attempt()
        except NotLatest:  # another program has added an event, which the next try looks up
            continue
        except ServerAway:
            if outbox is not None:
                return recording.wait_in(outbox)
            if is_inside_transaction or monotonic() > give_up_at:
                raise
            pause(LOOK_FOR_SERVER)
            continue
        if outbox is not None:
            outbox.note_seen(recorded)
        return recorded


class _Recording:
    """The recording of a change, which is repeated while a server does not answer."""

    def __init__(
        self,
        workspace: Workspace,
        change: NewChange,
        indices: Mapping[str, Mapping[str, SpanIndex]],
    ) -> None:
        self._workspace = workspace
        self._database = workspace._database
        self._change = change
        self._indices = indices
        self._is_inside_transaction = self._database.within
        self._tried: tuple[Event, ...] = ()
        """The events of the last attempt, which the server may have committed."""
        # If the annotator's last event is known, the first attempt need not ask the server for it.
        self._latest = self._database.latest
        self._database.latest = None  # set again after the commit; after a failure it is unknown
        if self._is_inside_transaction or not _can_follow(change, self._latest):
            self._latest = None

    def attempt(self) -> tuple[Event, ...]:
        """Record the change in one transaction, and return its events.

        Raises:
            ServerAway: The server does not answer.
            NotLatest: The annotator has another last event.
        """
        latest = self._latest
        self._latest = None
        annotators = dict.fromkeys(event.annotator for event in self._change.events)
        try:
            with self._database.writing(annotators=annotators) as connection:
                if self._is_inside_transaction:
                    lock_annotators(connection, annotators)
                self._tried = _stored_events(connection, self._tried) or _record_change(
                    connection, self._change, self._workspace.new_id, latest
                )
                if self._indices:
                    keep_span_indices(connection, self._indices)
        except NotLatest:
            self._tried = ()
            raise
        if calls_stored_functions(connection) and not self._is_inside_transaction:
            self._database.latest = _latest_event_of(self._tried)
        return self._tried

    def wait_in(self, outbox: Outbox) -> tuple[Event, ...]:
        """Put the change into the outbox, and return its events."""
        if not self._tried:
            return outbox.put(self._change, self._workspace.new_id)
        # The server may have committed the events, so they keep their ids and numbers.
        outbox.keep(self._tried, self._change.known_seq)
        return self._tried


def _can_follow(change: NewChange, latest: LatestEvent | None) -> bool:
    """Return whether a change can be recorded after ``latest`` without asking the server.

    ``latest`` is the last event that this program has written, if known.
    """
    if latest is None or not change.events or chain.is_import(change.action):
        return False
    # Only imported events have ids before they are recorded.
    if any(event.annotator != latest.annotator or event.id is not None for event in change.events):
        return False
    if change.known_seq is None:
        return True
    first = change.events[0]
    is_same_work = (first.trace_id, first.taxonomy) == (latest.trace_id, latest.taxonomy)
    return is_same_work and change.known_seq == latest.seq


def _latest_event_of(recorded: Sequence[Event]) -> LatestEvent | None:
    """Return the event after which the annotator's next event can be recorded.

    Return None if there are several annotators, or if the last event is not linked in a chain, like
    imported events: the next event does not depend on it.
    """
    if len({event.annotator for event in recorded}) != 1:
        return None
    last = recorded[-1]
    if last.chain_hash is None or not chain.is_linked(last):
        return None
    return LatestEvent(last.annotator, last.trace_id, last.taxonomy, last.seq, last.chain_hash)


def _outbox_for(workspace: Workspace, change: NewChange) -> Outbox | None:
    """Return the outbox if a change may wait in it, or None.

    Imports, changes of the study and other annotators' events may not wait.
    """
    outbox = workspace.outbox
    if outbox is None or chain.is_import(change.action):
        return None
    may_wait = all(
        event.annotator == outbox.annotator and not isinstance(event.fact, StudySet)
        for event in change.events
    )
    return outbox if may_wait else None


def send_waiting(workspace: Workspace) -> tuple[WaitingChange, ...]:
    """Send the changes in the outbox in order, until the server does not answer.

    Returns:
        The changes that were refused, because the annotator has finished the pass elsewhere.

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
                # An earlier attempt may have stored the change before the connection was lost.
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
    """Register the outbox's traces on the server; return False if it does not answer."""
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

    Nothing is recorded if the annotator has finished the pass elsewhere with other changes.
    """
    if _was_changed_elsewhere(connection, change) and _is_finished(connection, change.events[0]):
        return ()
    return _record_change(connection, change.to_send(), new_id)


def _was_changed_elsewhere(connection: Connection, change: WaitingChange) -> bool:
    """Return whether the annotator has other events on the trace since the change was made.

    The last event must be the one that the change knew: by its sequence number, or, after another
    waiting change, by its id, because the server gives that change new sequence numbers.
    """
    if change.known_seq is None:
        return False
    first = change.events[0]
    work = {"annotator": first.annotator, "trace_id": first.trace_id, "taxonomy": first.taxonomy}
    last_id, last_seq = connection.execute(_LAST_OF_WORK, work).one_or_none() or (None, 0)
    if change.follows is None:
        return bool(last_seq != change.known_seq)
    return bool(last_id != change.follows)


def _is_finished(connection: Connection, event: Event) -> bool:
    """Return whether the pass of an event is finished in the workspace."""
    statement = select(schema.passes.c.finished_at).filter_by(
        annotator=event.annotator,
        trace_id=event.trace_id,
        taxonomy=event.taxonomy,
        number=event.pass_number,
        withdrawn=False,
    )
    return connection.execute(statement).scalar() is not None


def _stored_events(connection: Connection, events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the stored ones of the events, as they are stored."""
    rows = known_rows(connection, [event.id for event in events])
    return tuple(map(event_of, rows.values()))


class _HistoryEnd(Struct):
    """The end of one annotator's history, which new events continue.

    Attributes:
        seq: The sequence number of the last event; 0 if there is none.
        chain_hash: The hash that the next event continues; None for judges, whose events have none.
    """

    seq: int
    chain_hash: str | None

    def add(self, event: Event, payload: str) -> Event:
        """Make an event the end of the history, and return it with its hash.

        Args:
            event: The event.
            payload: The ``payload_text`` of its fact.
        """
        self.seq = event.seq
        if self.chain_hash is not None:
            event = chain.with_chain_hash(event, self.chain_hash, payload)
            self.chain_hash = chain.hash_to_continue(event, self.chain_hash)
        return event


def _record_change(
    connection: Connection,
    change: NewChange,
    new_id: Callable[[], str],
    latest: LatestEvent | None = None,
) -> tuple[Event, ...]:
    """Record events after the last ones of their annotators, and update the state tables.

    ``latest`` is the last event of the only annotator, if known, which saves a query.
    """
    is_member_of_team = calls_stored_functions(connection)
    known_ids = _known_ids(connection, change)
    time = now()
    ends: dict[str, _HistoryEnd] = {}
    if latest is not None:
        ends[latest.annotator] = _HistoryEnd(latest.seq, latest.chain_hash)
    recorded = list[Event]()
    rows = list[Values]()
    for event in change.events:
        if event.id in known_ids:
            continue
        if isinstance(event.fact, _LABEL_FACTS):
            _check_label(event)
        if event.annotator not in ends:
            # ``known_seq`` belongs to the trace and taxonomy of the first event.
            known_seq = None if ends else change.known_seq
            ends[event.annotator] = _history_end(connection, event, change.action, known_seq)
        payload = payload_text(event.fact)
        if is_member_of_team:
            _check_text(payload)
        end = ends[event.annotator]
        recorded_event = end.add(change.recorded(event, end.seq + 1, new_id, time), payload)
        recorded.append(recorded_event)
        rows.append(tuple(event_to_row(recorded_event, payload).values()))
    if is_member_of_team:  # the server's function updates the state tables too
        call_function(connection, "append_event", schema.events, rows)
    else:
        _INSERT.write(connection, rows)
        update_state(connection, recorded)
    return tuple(recorded)


def _known_ids(connection: Connection, change: NewChange) -> Collection[str]:
    """Return the ids of the events in a change that are stored already."""
    ids = [event.id for event in change.events if event.id is not None]
    if not ids:
        return ()
    if sees_own_only(connection):  # the tables are views, so a function of the server is asked
        return known_rows(connection, ids)
    return set(_KNOWN_IDS.execute(connection, ids).scalars())


def _history_end(
    connection: Connection, event: NewEvent, action: str, known_seq: int | None
) -> _HistoryEnd:
    """Return the end of an annotator's history; register the annotator if there is none.

    Raises:
        ChangedElsewhere: The annotator has events after ``known_seq`` on the trace and taxonomy of
            ``event``.
    """
    if sees_own_only(connection):
        statement: Executable = _OWN_END
    elif known_seq is not None:
        statement = _END_AND_WORK
    elif chain.is_import(action):
        # An imported event does not need the last hash, and finding it may be slow.
        statement = _END_WITHOUT_HASH
    else:
        statement = _END
    last_seq, last_hash, last_seq_of_work = connection.execute(
        statement,
        {"annotator": event.annotator, "trace_id": event.trace_id, "taxonomy": event.taxonomy},
    ).one()
    if known_seq is not None and (last_seq_of_work or 0) != known_seq:
        raise ChangedElsewhere(
            f"{event.annotator} has changed {event.trace_id} in another window meanwhile"
        )
    if last_seq is None:
        note_annotator(connection, event.annotator)
    if not chain.has_chain(event.annotator):
        return _HistoryEnd(last_seq or 0, None)
    return _HistoryEnd(last_seq or 0, last_hash or chain.START)


def _check_label(event: NewEvent) -> None:
    """Raise ``ValueError`` if a label does not belong to the work of its event."""
    fact = event.fact
    assert isinstance(fact, _LABEL_FACTS)
    label = fact.after if isinstance(fact, LabelChanged) else fact.label
    label_context = (label.annotator, label.trace_id, label.taxonomy, label.pass_number)
    if label_context != (event.annotator, event.trace_id, event.taxonomy, event.pass_number):
        raise ValueError(f"label {label.id} belongs to other work than its event: {label_context}")


def _check_text(payload: str) -> None:
    """Raise ``UnicodeEncodeError`` for a lone surrogate, which no server can store."""
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
    for start in range(0, len(events), _ROWS_PER_CALL):
        batch = events[start : start + _ROWS_PER_CALL]
        rows = [tuple(event_to_row(event, payload_text(event.fact)).values()) for event in batch]
        if calls_stored_functions(connection):
            call_function(connection, "insert_event", schema.events, rows)
        else:
            _INSERT.write(connection, rows)
    for name in dict.fromkeys(event.annotator for event in events):
        note_annotator(connection, name)


def forget(connection: Connection, ids: Iterable[str]) -> None:
    """Delete events, and rebuild the state tables; only for a temporary copy.

    Args:
        connection: An open transaction.
        ids: The ids of the events; unknown ones are ignored.
    """
    event_ids = list(ids)
    annotators = {row["annotator"] for row in known_rows(connection, event_ids).values()}
    _DELETE_BY_ID.execute(connection, event_ids)
    rebuild(connection, annotators)


def last_seq_of_annotator(connection: Connection, annotator: str) -> int:
    """Return the sequence number of an annotator's last event; 0 if there is none.

    Args:
        connection: An open connection.
        annotator: The annotator.
    """
    if sees_own_only(connection):
        # The function also returns the last event on a trace, which is not needed here.
        row = connection.execute(_OWN_END, {"trace_id": "", "taxonomy": ""}).one()
        return row.seq or 0
    return connection.execute(_LAST, {"annotator": annotator}).scalar_one() or 0


def last_seq_on_trace(
    connection: Connection, annotator: str, trace_id: str | None, taxonomy: str | None
) -> int:
    """Return the sequence number of an annotator's last event on a trace; 0 if there is none.

    Args:
        connection: An open connection.
        annotator: The annotator.
        trace_id: The trace; None for events without a trace.
        taxonomy: The taxonomy; None for events without a taxonomy.
    """
    work = {"annotator": annotator, "trace_id": trace_id, "taxonomy": taxonomy}
    return connection.execute(_LAST_SEQ_OF_WORK, work).scalar_one() or 0


def known_facts(connection: Connection, ids: Sequence[str]) -> dict[str, Fact]:
    """Return the facts of stored events by id.

    Args:
        connection: An open connection.
        ids: The ids of the events; ids that are not stored are left out.
    """
    rows = known_rows(connection, ids)
    return {event.id: event.fact for event in readable_events(rows.values())}


def known_rows(connection: Connection, ids: Sequence[str]) -> dict[str, Any]:
    """Return the rows of stored events by id.

    Args:
        connection: An open connection.
        ids: The ids of the events; ids that are not stored are left out.
    """
    if not ids:
        return {}
    if sees_own_only(connection):
        # The server's function reads the annotator's own events.
        result = connection.execute(_OWN_BY_ID, {"ids": list(ids)})
    else:
        result = _EVENTS_BY_ID.execute(connection, ids)
    return {row["id"]: row for row in result.mappings()}
