"""Recording of events, which updates the state tables in the same transaction.

The state of an annotator follows from that annotator's events alone, in the order of their
counters, or of their ids if two copies of a workspace have given the same counter. So writing them
one by one, rebuilding the state and merging in any order have the same result.
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
    Latest,
    NotLatest,
    Values,
    call_function,
    change_rows,
    sees_own_only,
    take_turns,
    upsert,
    writes_by_calls,
)
from mast_tui.workspace.events import chain
from mast_tui.workspace.events.codec import study_to_values, to_values
from mast_tui.workspace.events.model import Event, NewEvent, payload_text
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
    StudySet,
    changes_in_pass,
)
from mast_tui.workspace.ids import now
from mast_tui.workspace.registers.settings import note_annotator
from mast_tui.workspace.registers.span_indices import Indices, keep_span_indices
from mast_tui.workspace.registers.traces import register
from mast_tui.writes import deadline, pause

if TYPE_CHECKING:
    from mast_tui.workspace.outbox import Outbox, WaitingChange
    from mast_tui.workspace.store import Workspace

UNCHECKED: Final = -1
"""The counter of a waiting change that is valid after any other events on its trace."""

_AT_ONCE: Final = 500
_FOLLOWED_AT_ONCE: Final = 6000
"""The most events whose changes are collected before they are written."""

_INSERT: Final = Insertion(
    schema.events, varying=("id", "seq", "kind", "trace_id", "payload", "chain")
)
_LABELLING: Final = (LabelAdded, LabelRemoved, LabelChanged)
_LAST: Final = select(func.max(schema.events.c.seq)).where(
    schema.events.c.annotator == bindparam("annotator")
)
_LAST_AND_LINK: Final = _LAST.add_columns(chain.LAST_LINK)
_OWN_LAST: Final = text("SELECT * FROM seen.last_event(:trace_id, :taxonomy)")
_OWN_BY_ID: Final = text("SELECT * FROM seen.own_events(:ids)")
_AMONG: Final = Among(schema.events.c.id)
"""The query for the stored ids among some ids."""
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
    indices: Mapping[str, Indices] | None = None,
) -> tuple[Event, ...]:
    """Record events and update the state tables, in one transaction; a method of ``Workspace``.

    The events get the next counters of their annotators; an event whose id is stored already is
    left out. If the server is out of reach, the events of an annotator with an outbox wait there,
    after those that wait already. Other events, and studies, wait for the server, since a delayed
    study would replace a later one.

    Args:
        workspace: The workspace.
        events: The events, in order.
        action: The action that groups the events; None for a new one. An action that begins with
            ``import:`` cannot be undone by a key.
        undoes: The action that the events undo.
        redoes: The action that the events redo.
        known_seq: The counter of the last known event with the annotator, trace and taxonomy of the
            first event, 0 for none; None to skip the check.
        indices: The indices of the spans to which the events refer, by trace and key, which are
            stored too. For waiting events they are stored when the trace is read again.

    Returns:
        The recorded events.

    Raises:
        ChangedElsewhere: There are later events than the last known one.
        WorkspaceError: The events cannot be written.
    """
    database = workspace._database
    until = deadline()
    annotators = dict.fromkeys(event.annotator for event in events)
    action = action or workspace.new_id()
    recorded: tuple[Event, ...] = ()
    within = database.within
    outbox = None if within or not chain.links(action) else workspace.outbox
    if outbox is not None and not _may_wait(events, outbox.annotator):
        outbox = None
    after = UNCHECKED if known_seq is None else known_seq
    if outbox is not None and (outbox.waiting or database.away):
        return outbox.put(events, workspace.new_id, action, undoes, redoes, after)
    latest = database.latest
    database.latest = None
    if latest is not None and (within or not _is_known(latest, events, action, known_seq)):
        latest = None
    while True:
        try:
            with database.writing(annotators=annotators) as connection:
                if within:
                    take_turns(connection, annotators)
                # After a lost connection it is unknown whether the events were committed.
                recorded = _stored_again(connection, recorded) or _record(
                    connection, events, workspace.new_id, action, undoes, redoes, known_seq, latest
                )
                if indices:
                    keep_span_indices(connection, indices)
            if outbox is not None:
                outbox.note_seen(recorded)
            if writes_by_calls(connection) and not within:
                database.latest = _latest(recorded)
            return recorded
        except NotLatest:
            recorded = ()
            latest = None
            continue
        except ServerAway:
            latest = None
            if outbox is not None:
                if not recorded:
                    return outbox.put(events, workspace.new_id, action, undoes, redoes, after)
                outbox.keep(recorded, after)
                return recorded
            if within or monotonic() > until:
                raise
        pause(LOOK_FOR_SERVER)


def _is_known(
    latest: Latest, events: Sequence[NewEvent], action: str, known_seq: int | None
) -> bool:
    """Check whether events can be added after the last one written here, without a query.

    Args:
        latest: The last event that was written here.
        events: The events to add.
        action: The action that groups them.
        known_seq: The counter of the last known event of the first event's work.
    """
    if not events or not chain.links(action):
        return False
    of_work = (latest.annotator, latest.trace_id, latest.taxonomy, latest.seq)
    return all(event.annotator == latest.annotator and event.id is None for event in events) and (
        known_seq is None or (*events[0][:3], known_seq) == of_work
    )


def _latest(recorded: Sequence[Event]) -> Latest | None:
    """Return the event that the annotator's next one follows; None if it is unknown."""
    if len({event.annotator for event in recorded}) != 1:
        return None
    last = recorded[-1]
    if last.chain is None or not chain.is_linked(last):
        return None
    return Latest(last.annotator, last.trace_id, last.taxonomy, last.seq, last.chain)


def _may_wait(events: Sequence[NewEvent], annotator: str) -> bool:
    return all(
        event.annotator == annotator and not isinstance(event.fact, StudySet) for event in events
    )


def send_waiting(workspace: Workspace) -> tuple[WaitingChange, ...]:
    """Send the changes in the outbox in order, until the server cannot be reached.

    Returns:
        The changes that were refused, since the annotator has finished their pass elsewhere.

    Raises:
        WorkspaceError: A change cannot be written; it stays in the outbox.
    """
    outbox = workspace.outbox
    refused: list[WaitingChange] = []
    if outbox is None or not _send_traces(workspace, outbox):
        return ()
    for change in outbox.waiting:
        try:
            with workspace._database.writing(annotators=[outbox.annotator]) as connection:
                # An earlier try may have stored them before the connection was lost.
                stored = _stored_again(connection, change.events) or _send(
                    connection, change, workspace.new_id
                )
        except ServerAway:
            break
        if stored:
            outbox.note_seen(stored)
            outbox.sent(change)
        else:
            refused.append(change)
            outbox.refused(change)
    return tuple(refused)


def _send_traces(workspace: Workspace, outbox: Outbox) -> bool:
    """Register the traces in the outbox on the server; return False if it cannot be reached."""
    for trace_id, record in outbox.traces.items():
        try:
            with workspace._database.writing() as connection:
                known_id = register(connection, record)
        except ServerAway:
            return False
        outbox.met(trace_id, known_id)
    return True


def _send(
    connection: Connection, change: WaitingChange, new_id: Callable[[], str]
) -> tuple[Event, ...]:
    """Record a change from the outbox; return nothing if its pass was finished meanwhile."""
    first = change.events[0]
    work = {"annotator": first.annotator, "trace_id": first.trace_id, "taxonomy": first.taxonomy}
    last = connection.execute(_LAST_OF_WORK, work).one_or_none()
    last_known = change.known_seq if change.follows is None else change.follows
    if change.known_seq != UNCHECKED and last_known not in (last or (0,)):
        table = schema.passes
        of_pass = {**work, "number": first.pass_number}
        finished = select(table.c.finished_at).filter_by(**of_pass, withdrawn=False)
        if connection.execute(finished).scalar() is not None:
            return ()
    new = [
        NewEvent(
            *(event.annotator, event.trace_id, event.taxonomy, event.pass_number, event.fact),
            *(event.replaces, event.id, event.at),
        )
        for event in change.events
    ]
    return _record(connection, new, new_id, first.action, first.undoes, first.redoes, None)


def _stored_again(connection: Connection, events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the stored events with the ids of these events; none if they were not stored."""
    rows = known_rows(connection, [event.id for event in events])
    return tuple(map(event_of, rows.values()))


def _record(
    connection: Connection,
    new: Sequence[NewEvent],
    new_id: Callable[[], str],
    action: str,
    undoes: str | None,
    redoes: str | None,
    known_seq: int | None,
    latest: Latest | None = None,
) -> tuple[Event, ...]:
    """Write events with the next counters and chains of their annotators; see ``append``.

    Leave out events whose ids are stored. ``latest`` is the last event of the annotator, if it is
    known; else it is read.
    """
    recorded_at = now()
    is_linked = chain.links(action)
    by_calls = writes_by_calls(connection)
    recorded = list[Event]()
    rows = list[Values]()
    counters: dict[str, int] = {}
    links: dict[str, str] = {}
    given_ids = [event.id for event in new if event.id is not None]
    if sees_own_only(connection):
        known_ids: Collection[str] = known_rows(connection, given_ids)
    else:
        known_ids = _AMONG(connection, given_ids)
    for event in new:
        name, trace_id, taxonomy, pass_number, fact, replaces, given_id, given_time = event
        if given_id in known_ids:
            continue
        if isinstance(fact, _LABELLING):
            _check_label(event)
        if name not in counters and latest is not None:
            counters[name] = latest.seq
            links[name] = latest.chain
        elif name not in counters:
            last, previous_link = _last(
                connection, event, is_linked, known_seq if not counters else None
            )
            if last is None:
                note_annotator(connection, name)
            counters[name] = last or 0
            if chain.has_chain(name):
                links[name] = previous_link
        time = given_time or recorded_at
        seq = counters[name] = counters[name] + 1
        event_id = given_id or new_id()
        payload = payload_text(fact)
        if by_calls:
            _check_text(payload)
        chained: str | None = None
        if name in links:
            placed = (seq, time, action, undoes, redoes) if is_linked else None
            event_digest = chain.digest_of(event, event_id, placed, payload)
            chained = chain.link(links[name], event_digest)
            if is_linked:
                links[name] = chained
        recorded.append(
            Event(
                id=event_id,
                annotator=name,
                seq=seq,
                at=time,
                trace_id=trace_id,
                taxonomy=taxonomy,
                pass_number=pass_number,
                fact=fact,
                action=action,
                undoes=undoes,
                redoes=redoes,
                replaces=replaces,
                chain=chained,
            )
        )
        work = (trace_id, taxonomy, pass_number)
        replaced_ids = json.dumps(replaces) if replaces else "[]"
        first_columns = (event_id, name, seq, time, KIND_OF[type(fact)], *work, payload)
        rows.append((*first_columns, replaced_ids, action, undoes, redoes, chained))
    if by_calls:
        call_function(connection, "append_event", schema.events, rows)
    else:
        _INSERT.write(connection, rows)
        follow(connection, recorded)
    return tuple(recorded)


def _check_text(payload: str) -> None:
    """Raise ``UnicodeEncodeError`` for half a character, which a server cannot store."""
    if "\\ud" in payload:
        json.dumps(json.loads(payload), ensure_ascii=False).encode()


def insert(connection: Connection, events: Sequence[Event]) -> None:
    """Add events of another workspace unchanged; do not update the state tables.

    Annotators that the workspace does not know are added.

    Args:
        connection: An open transaction.
        events: The events.
    """
    take_turns(connection, (event.annotator for event in events))
    for start in range(0, len(events), _AT_ONCE):
        batch = events[start : start + _AT_ONCE]
        rows = [tuple(event_to_row(event).values()) for event in batch]
        if writes_by_calls(connection):
            call_function(connection, "insert_event", schema.events, rows)
        else:
            _INSERT.write(connection, rows)
    for name in dict.fromkeys(event.annotator for event in events):
        note_annotator(connection, name)


def forget(connection: Connection, ids: Iterable[str]) -> None:
    """Delete events and rebuild the state of their annotators; meant for a temporary copy.

    Args:
        connection: An open transaction.
        ids: The ids of the events; unknown ones are ignored.
    """
    sorted_ids = sorted(ids)
    touched = {row["annotator"] for row in known_rows(connection, sorted_ids).values()}
    for start in range(0, len(sorted_ids), _AT_ONCE):
        batch = sorted_ids[start : start + _AT_ONCE]
        connection.execute(delete(schema.events).where(schema.events.c.id.in_(batch)))
    rebuild(connection, touched)


# Stored events


def last_counter(connection: Connection, annotator: str) -> int:
    """Return the counter of an annotator's last event, 0 if there is none.

    Args:
        connection: An open connection.
        annotator: The annotator.
    """
    if sees_own_only(connection):
        return connection.execute(_OWN_LAST, {"trace_id": "", "taxonomy": ""}).one()[0] or 0
    return connection.execute(_LAST, {"annotator": annotator}).scalar_one() or 0


def last_seq(
    connection: Connection, annotator: str, trace_id: str | None, taxonomy: str | None
) -> int:
    """Return the counter of an annotator's last event on a trace under a taxonomy, 0 if none.

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
    rows_by_id: dict[str, Any] = {}
    if ids and sees_own_only(connection):
        rows = connection.execute(_OWN_BY_ID, {"ids": list(ids)}).mappings()
        return {row["id"]: row for row in rows}
    for start in range(0, len(ids), _AT_ONCE):
        statement = select(schema.events).where(
            schema.events.c.id.in_(ids[start : start + _AT_ONCE])
        )
        rows_by_id.update((row["id"], row) for row in connection.execute(statement).mappings())
    return rows_by_id


def _last(
    connection: Connection, event: NewEvent, is_linked: bool, known_seq: int | None
) -> tuple[int | None, str]:
    """Return the counter of an annotator's last event, and the link that the next one follows.

    After a long import, finding the link reads each event, so it is looked up only if needed.

    Args:
        connection: An open transaction.
        event: The next event.
        is_linked: True if the event is linked to the one before it.
        known_seq: The counter of the last known event of the work; None to skip the check.

    Returns:
        The counter, None if there is no event; and the link.

    Raises:
        ChangedElsewhere: There are later events of that work than the last known one.
    """
    values: dict[str, str | None] = {"annotator": event.annotator}
    work = {"trace_id": event.trace_id, "taxonomy": event.taxonomy}
    if sees_own_only(connection):
        last, previous_link, last_of_work = connection.execute(_OWN_LAST, work).one()
    elif not is_linked:
        return connection.execute(_LAST, values).scalar_one(), chain.START
    elif known_seq is None:
        last, previous_link = connection.execute(_LAST_AND_LINK, values).one()
        return last, previous_link or chain.START
    else:
        last, previous_link, last_of_work = connection.execute(_LAST_OF_BOTH, values | work).one()
    if known_seq is not None and (last_of_work or 0) != known_seq:
        raise ChangedElsewhere(
            f"{event.annotator} has changed {event.trace_id} through another window meanwhile"
        )
    return last, previous_link or chain.START


def _check_label(event: NewEvent) -> None:
    """Raise ``ValueError`` if a label and its event have different annotators or works."""
    fact = event.fact
    assert isinstance(fact, _LABELLING)
    label = fact.after if isinstance(fact, LabelChanged) else fact.label
    label_context = (label.annotator, label.trace_id, label.taxonomy, label.pass_number)
    if label_context != (event.annotator, event.trace_id, event.taxonomy, event.pass_number):
        raise ValueError(f"label {label.id} belongs to other work than its event: {label_context}")


# State tables


def follow(connection: Connection, events: Iterable[Event]) -> None:
    """Update the state tables by events that follow all other events of their annotators.

    Args:
        connection: An open transaction.
        events: The events, in the order of their counters.
    """
    if writes_by_calls(connection):
        return  # the server updated them when the events were added
    remaining = iter(events)
    while batch := list(islice(remaining, _FOLLOWED_AT_ONCE)):
        state = _State(connection)
        for event in batch:
            state.take(event)
        state.write()


def rebuild(connection: Connection, annotators: Iterable[str] | None = None) -> None:
    """Rebuild the state tables from the events.

    Args:
        connection: An open transaction.
        annotators: The annotators whose state is rebuilt; None for all.
    """
    if annotators is None:
        take_turns(connection, connection.execute(_ANNOTATORS).scalars())
        for table in schema.STATE_TABLES:
            connection.execute(delete(table))
        _replay(connection, None)
        return
    names = sorted(set(annotators))
    take_turns(connection, names)
    if writes_by_calls(connection):
        rows = [(annotator, annotator_kind(annotator).value) for annotator in names]
        call_function(connection, "rebuild_state", schema.annotators, rows)
        return
    for annotator in names:
        for table in schema.STATE_TABLES:
            connection.execute(delete(table).where(table.c.annotator == annotator))
        _replay(connection, annotator)


def _replay(connection: Connection, annotator: str | None) -> None:
    """Update the empty state tables by all stored events of an annotator; None for all."""
    statement = _READ_ALL
    if annotator is not None:
        statement = statement.where(schema.events.c.annotator == annotator)
    for batch in connection.execute(statement).mappings().partitions(_FOLLOWED_AT_ONCE):
        follow(connection, readable_events(batch))


_VARYING: Final = {
    schema.verdicts: ("trace_id", "mode", "value"),
    schema.labels: ("id", "trace_id", "mode"),
    schema.passes: ("trace_id", "number"),
}
"""The columns that differ in the many rows of an import; the others are mostly equal."""


def _keys(table: Table) -> list[str]:
    return [column.name for column in table.primary_key]


def _delete(table: Table, *names: str) -> str:
    return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in names)}"


_UPSERTS: Final = {
    table: upsert(table, _VARYING.get(table, ()))
    for table in schema.STATE_TABLES
    if table is not schema.passes
}
_DELETES: Final = {table: _delete(table, *_keys(table)) for table in _UPSERTS}
_DROP_VERDICTS: Final = _delete(schema.verdicts, *_keys(schema.verdicts)[:-1])
_PASS: Final = [column.name for column in schema.passes.columns]
_PASS_KEY: Final = _keys(schema.passes)


@lru_cache
def _begin_passes(changed: tuple[str, ...]) -> Insertion:
    """Return the statement that inserts passes with changes in some columns.

    A stored pass keeps its first columns, unless it was withdrawn.
    """
    sets = {
        name: f"CASE WHEN passes.withdrawn THEN excluded.{name} ELSE passes.{name} END"
        for name in ("kind", "started_at", "withheld")
    }
    sets["withdrawn"] = "FALSE"
    sets |= {name: f"excluded.{name}" for name in changed}
    assignments = ", ".join(f"{name} = {value}" for name, value in sets.items())
    on_conflict = f"ON CONFLICT ({', '.join(_PASS_KEY)}) DO UPDATE SET {assignments}"
    return Insertion(schema.passes, varying=_VARYING[schema.passes], where_known=on_conflict)


@lru_cache
def _change_passes(changed: tuple[str, ...]) -> str:
    """Return the statement that changes some columns of passes."""
    sets = ", ".join(f"{name} = ?" for name in changed)
    where = " AND ".join(f"{name} = ?" for name in _PASS_KEY)
    return f"UPDATE passes SET {sets} WHERE {where}"


class _State:
    """Changes to the state tables, collected so that many rows are written at once.

    A later change of a key replaces an earlier one.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows = defaultdict[Table, dict[Values, Values | None]](dict)
        """The changed rows of each other table, by key; None deletes a row."""
        self._verdicts = defaultdict[Values, dict[str, VerdictValue | None]](dict)
        """The changed verdicts of each pass; None removes a verdict."""
        self._emptied = set[Values]()
        """The passes whose stored verdicts are deleted first."""
        self._begun: dict[Values, dict[str, Any]] = {}
        """The first columns of each pass that has begun."""
        self._changed = defaultdict[Values, dict[str, Any]](dict)
        """The later changes of each pass, by column."""

    def take(self, event: Event) -> None:
        """Collect the changes that the next event makes."""
        fact = event.fact
        annotator = event.annotator
        work = (annotator, event.trace_id, event.taxonomy)
        pass_key = (*work, event.pass_number)
        for part, name, value in changes_in_pass(fact, event.at):
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
                    self._changed[pass_key][name] = value
        match fact:
            case PassStarted(kind, _, withheld):
                self._begin(pass_key, kind, event.at, withheld=withheld)
            case Judged():
                self._finish_judgement(event, fact, pass_key)
            case PassWithdrawn() if annotator_kind(annotator) is AnnotatorKind.JUDGE:
                # Without its pass the judge has not judged the trace.
                self._delete_verdicts(pass_key)
                self._rows[schema.judgements][work] = None
            case Decided(item, _, decision):
                decision_row: Values | None = None
                if decision is not None:
                    decision_row = decision.decided_at, json.dumps(to_values(decision))
                self._rows[schema.decisions][*work, item] = decision_row
            case SightSet(_, blind):
                self._rows[schema.sights][annotator,] = (blind,)
            case StudySet(_, study):
                plan = None if study is None else (event.at, json.dumps(study_to_values(study)))
                self._rows[schema.studies][annotator, event.taxonomy] = plan
            case GuidelineSet(name, _, words):
                page: Values | None = None
                if words is not None:
                    page = event.taxonomy, words.written_at, json.dumps(to_values(words))
                self._rows[schema.guidelines][annotator, name] = page

    def _begin(self, key: Values, kind: PassKind, started_at: str, *, withheld: bool) -> None:
        if key in self._changed and (key not in self._begun or "withdrawn" in self._changed[key]):
            self.write()
        values = {
            "kind": kind.value,
            "started_at": started_at,
            "judge_seen": False,
            "withdrawn": False,
        }
        self._begun.setdefault(key, values | {"withheld": withheld})

    def _finish_judgement(self, event: Event, fact: Judged, key: Values) -> None:
        """Finish the judge's pass on a trace and replace all its verdicts."""
        self._begin(key, PassKind.BLIND, event.at, withheld=False)
        for name, value in (("finished_at", event.at), ("spans_read", None), ("spans", None)):
            self._changed[key][name] = value
        self._delete_verdicts(key)
        self._verdicts[key] = dict.fromkeys(fact.absent, VerdictValue.ABSENT)
        self._verdicts[key] |= dict.fromkeys(fact.unsure, VerdictValue.UNSURE)
        judgement = (json.dumps(list(fact.looks_at)), fact.run, event.at)
        self._rows[schema.judgements][key[:-1]] = judgement  # without the number of the pass

    def _delete_verdicts(self, key: Values) -> None:
        """Delete the stored and the collected verdicts of a pass."""
        self._emptied.add(key)
        self._verdicts.pop(key, None)

    def write(self) -> None:
        """Write the collected changes."""
        self._write_verdicts()
        for table, rows in self._rows.items():
            gone = [key for key, values in rows.items() if values is None]
            put = [(*key, *values) for key, values in rows.items() if values is not None]
            change_rows(self._connection, _DELETES[table], gone)
            _UPSERTS[table].write(self._connection, put)
        self._rows.clear()
        self._write_passes()

    def _write_verdicts(self) -> None:
        gone = list[Values]()
        put = list[Values]()
        for key, values in self._verdicts.items():
            for mode, value in values.items():
                if value is None:
                    gone.append((*key, mode))
                else:
                    put.append((*key, mode, str(value)))
        change_rows(self._connection, _DROP_VERDICTS, list(self._emptied))
        change_rows(self._connection, _DELETES[schema.verdicts], gone)
        _UPSERTS[schema.verdicts].write(self._connection, put)
        self._verdicts.clear()
        self._emptied.clear()

    def _write_passes(self) -> None:
        begun = defaultdict[tuple[str, ...], list[Values]](list)
        changed = defaultdict[tuple[str, ...], list[Values]](list)
        for key, values in self._begun.items():
            later = self._changed.pop(key, {})
            row = map((values | later).get, _PASS[len(_PASS_KEY) :])
            begun[tuple(later)].append((*key, *row))
        for key, values in self._changed.items():
            changed[tuple(values)].append((*values.values(), *key))
        for names, rows in begun.items():
            _begin_passes(names).write(self._connection, rows)
        for names, rows in changed.items():
            change_rows(self._connection, _change_passes(names), rows)
        self._begun.clear()
        self._changed.clear()
