"""The merge of foreign events into a workspace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from msgspec import Struct, structs
from sqlalchemy import Connection, bindparam, func, select

from mast_tui.errors import ChangedElsewhere, WorkspaceError
from mast_tui.grouping import values_by_key
from mast_tui.labels import is_judge
from mast_tui.workspace import schema
from mast_tui.workspace.database import Among
from mast_tui.workspace.events import chain, changes
from mast_tui.workspace.events.append import insert, known_rows
from mast_tui.workspace.events.changes import InForce, entries_in_force
from mast_tui.workspace.events.model import Event, payload_text
from mast_tui.workspace.events.rows import event_of, event_to_row, readable_events
from mast_tui.workspace.events.state import rebuild, update_state
from mast_tui.workspace.events.types import Decided, GuidelineSet, StudySet
from mast_tui.workspace.records import (
    EventConflict,
    HistoryRelation,
    MergeRefused,
    MergeReport,
    PersonChanges,
)

_STORED: Final = Among(
    select(schema.events.c.id, schema.events.c.annotator, schema.events.c.chain),
    schema.events.c.id,
)
_COUNT: Final = select(func.count(), func.max(schema.events.c.seq)).where(
    schema.events.c.annotator == bindparam("annotator")
)


def merge(
    connection: Connection,
    foreign: chain.ForeignEvents,
    *,
    replacing: Collection[str] = (),
    in_force: InForce | None = None,
) -> MergeReport:
    """Add the foreign events that the workspace lacks, and update the state tables.

    See ``Workspace.merge_events``.

    Args:
        connection: A connection in a transaction, which the caller rolls back after an error.
        foreign: The events, as ``chain.with_checked_chains`` returns them.
        replacing: The people and judges whose work may be replaced.
        in_force: The entries that need consent to be replaced; None for the current ones.
    """
    if in_force is None:
        in_force = entries_in_force(connection)
    stored_by_id = _stored_by_id(connection, foreign.events)
    comparisons = [
        _compare(connection, tuple(events), stored_by_id, foreign.first_broken.get(name))
        for name, events in groupby(foreign.events, key=lambda event: event.annotator)
    ]
    merged = [
        _merge_annotator(connection, comparison, in_force, replacing) for comparison in comparisons
    ]
    people = [changes for changes in merged if changes is not None]
    refused = [changes for changes in people if changes.refused]
    if refused:
        raise MergeRefused(refused)
    added_seqs = {
        (event.annotator, event.seq)
        for comparison in comparisons
        for event in comparison.new_events
    }
    added_count = sum(len(comparison.new_events) for comparison in comparisons)
    new_conflicts = tuple(
        conflict
        for conflict in conflicts(connection, {name for name, _ in added_seqs})
        if (conflict.annotator, conflict.seq) in added_seqs
    )
    return MergeReport(
        added=added_count,
        known=len(foreign.events) - added_count + foreign.repeat_count,
        altered=tuple(event.id for comparison in comparisons for event in comparison.edited_events),
        conflicts=new_conflicts,
        people=tuple(people),
    )


class ForeignGrowth(Struct, frozen=True):
    """One annotator's new events among foreign events.

    Attributes:
        count: The number of stored events.
        last: The sequence number of the last stored event; 0 if there is none.
        new_events: The new events.
        is_plain: True if the new events may be written in several transactions: they only continue
            an unedited history and overrule no other annotator.
    """

    annotator: str
    count: int
    last: int
    new_events: Sequence[Event]
    is_plain: bool


def growth_of(connection: Connection, events: Sequence[Event], *, is_broken: bool) -> ForeignGrowth:
    """Return an annotator's new events.

    Args:
        connection: An open connection.
        events: The annotator's foreign events, as ``chain.with_checked_chains`` returns them.
        is_broken: True if one of the events does not fit its chain.
    """
    comparison = _compare(connection, events, _stored_by_id(connection, events), None)
    is_plain = (
        not (is_broken or comparison.edited_events or comparison.chains_differ)
        and comparison.only_continues
        and not _may_overrule(connection, comparison.new_events)
    )
    return ForeignGrowth(
        comparison.annotator,
        comparison.stored_count,
        comparison.last_seq,
        comparison.new_events,
        is_plain,
    )


def _may_overrule(connection: Connection, events: Sequence[Event]) -> bool:
    """Return whether an annotator's events may replace others' decisions, guidelines or study."""
    if not any(isinstance(event.fact, (Decided, GuidelineSet, StudySet)) for event in events):
        return False
    entries = entries_in_force(connection).values()
    return any(entry.annotator != events[0].annotator for entry in entries)


def grow(connection: Connection, growth: ForeignGrowth, events: Sequence[Event]) -> ForeignGrowth:
    """Add some of an annotator's new events, and return the remaining ones.

    Args:
        connection: An open transaction.
        growth: The new events, which must be plain.
        events: The first of ``growth.new_events``.

    Raises:
        ChangedElsewhere: The annotator has recorded other events meanwhile.
    """
    name = growth.annotator
    count, last = connection.execute(_COUNT, {"annotator": name}).one()
    if (count, last or 0) != (growth.count, growth.last):
        raise ChangedElsewhere(f"{name} has recorded other work in this workspace meanwhile")
    insert(connection, events)
    update_state(connection, events)
    remaining = growth.new_events[len(events) :]
    return structs.replace(
        growth, count=count + len(events), last=events[-1].seq, new_events=remaining
    )


class _Comparison(Struct, frozen=True):
    """One annotator's foreign events, compared with the stored ones.

    Attributes:
        new_events: The events that the workspace lacks.
        edited_events: The events that differ in content from the stored event with the same id.
        own_ids: The ids of the foreign events that are stored under this annotator.
        chains_differ: True if an event has the same content as the stored one, but another chain.
        broken_event: The first event that does not fit its chain; None if there is none.
        has_no_gaps: True if no sequence number is missing among the foreign events.
        stored_count: The number of the annotator's stored events.
        last_seq: The sequence number of the last stored event; 0 if there is none.
    """

    annotator: str
    new_events: Sequence[Event]
    edited_events: Sequence[Event]
    own_ids: Collection[str]
    chains_differ: bool
    broken_event: Event | None
    has_no_gaps: bool
    stored_count: int
    last_seq: int

    @property
    def is_edited(self) -> bool:
        """True if this is a person with an edited history."""
        was_edited = bool(self.edited_events or self.broken_event)
        return was_edited and chain.has_chain(self.annotator)

    @property
    def history(self) -> HistoryRelation:
        """The relation of the foreign events to the stored events."""
        if not self.stored_count:
            return HistoryRelation.NEW
        if not self.new_events:
            return HistoryRelation.SAME
        if not self.own_ids or not self.has_no_gaps:
            return HistoryRelation.APART
        has_all_stored_events = len(self.own_ids) == self.stored_count
        if has_all_stored_events and all(event.seq > self.last_seq for event in self.new_events):
            return HistoryRelation.LONGER
        return HistoryRelation.FORKED

    @property
    def only_continues(self) -> bool:
        """True if all new events are later than the stored events."""
        return self.history in (HistoryRelation.NEW, HistoryRelation.LONGER)

    @property
    def may_remove_work(self) -> bool:
        """True if a person's events without a shared history may remove work."""
        return (
            self.history is HistoryRelation.APART
            and chain.has_chain(self.annotator)
            and not changes.only_adds(self.new_events, has_no_gaps=self.has_no_gaps)
        )


def _compare(
    connection: Connection,
    events: Sequence[Event],
    stored_by_id: Mapping[str, StoredEvent],
    broken_event: Event | None,
) -> _Comparison:
    """Compare one annotator's foreign events, sorted by sequence number, with the stored events."""
    name = events[0].annotator
    known_events = [event for event in events if event.id in stored_by_id]
    # A chain is a hash of the content. If the foreign chains are correct, events with the same
    # chain have the same content.
    to_compare = [
        event
        for event in known_events
        if broken_event
        or event.chain_hash is None
        or stored_by_id[event.id].chain_hash != event.chain_hash
    ]
    stored_rows = known_rows(connection, [event.id for event in to_compare])
    same_ids = {event.id for event in to_compare if _has_same_content(stored_rows[event.id], event)}
    stored_count, last_seq = connection.execute(_COUNT, {"annotator": name}).one()
    return _Comparison(
        annotator=name,
        new_events=[event for event in events if event.id not in stored_by_id],
        edited_events=[event for event in to_compare if event.id not in same_ids],
        own_ids={event.id for event in known_events if stored_by_id[event.id].annotator == name},
        chains_differ=any(
            event.id in same_ids and event.chain_hash != stored_by_id[event.id].chain_hash
            for event in to_compare
        ),
        broken_event=broken_event,
        has_no_gaps=all(
            later - earlier <= 1
            for earlier, later in pairwise([0, *(event.seq for event in events)])
        ),
        stored_count=stored_count,
        last_seq=last_seq or 0,
    )


def _merge_annotator(
    connection: Connection, comparison: _Comparison, in_force: InForce, replacing: Collection[str]
) -> PersonChanges | None:
    """Write one annotator's new events, and return the changes; None without changes."""
    name = comparison.annotator
    if not comparison.new_events and not comparison.is_edited:
        if comparison.chains_differ:
            chain.rebuild_chain(connection, name)
        return None
    is_new = comparison.history is HistoryRelation.NEW
    old = changes.NOTHING if is_new else changes.read_state(connection, name)
    _write_events(connection, comparison, replaces_edited=name in replacing)
    work = changes.WorkChange(name, old, changes.read_state(connection, name))
    return _person_changes(comparison, work, in_force, replacing)


def _write_events(
    connection: Connection, comparison: _Comparison, *, replaces_edited: bool
) -> None:
    """Write one annotator's new events, and update the chain and the state tables.

    With ``replaces_edited``, edited foreign events replace the stored ones.
    """
    if comparison.new_events:
        insert(connection, comparison.new_events)
    replaces_edited = replaces_edited and comparison.is_edited
    if replaces_edited:
        # An event stored under another annotator stays unchanged.
        own_events = [event for event in comparison.edited_events if event.id in comparison.own_ids]
        chain.replace_events(connection, own_events)
    if replaces_edited or comparison.chains_differ:
        chain.rebuild_chain(connection, comparison.annotator)
    if comparison.only_continues and not comparison.is_edited:
        update_state(connection, comparison.new_events)
    else:
        rebuild(connection, [comparison.annotator])


def _person_changes(
    comparison: _Comparison,
    work: changes.WorkChange,
    in_force: InForce,
    replacing: Collection[str],
) -> PersonChanges:
    """Count the changes to an annotator's work, and decide whether they are allowed."""
    counts = work.counts(comparison.history, events=len(comparison.new_events))
    replaces_own_work = (
        comparison.is_edited or comparison.may_remove_work or work.needs_consent(counts)
    )
    entries = work.replaced_entries(in_force)
    overruled = changes.count_by_author(entries, in_force)
    # ``--replace`` must name each author of replaced work.
    authors = sorted({*overruled, comparison.annotator} if replaces_own_work else overruled)
    refused = any(name not in replacing for name in authors)
    taxonomies = work.replaced_taxonomies(entries) if authors else set()
    if replaces_own_work and not taxonomies:
        # No row differs now, but the events may replace work in a later merge.
        foreign_events = (*comparison.new_events, *comparison.edited_events)
        taxonomies = {event.taxonomy for event in foreign_events if event.taxonomy is not None}
    is_person = chain.has_chain(comparison.annotator)
    broken_event = comparison.broken_event
    return structs.replace(
        counts,
        decisions_overruled=sum(
            count.get(schema.decisions.name, 0) for count in overruled.values()
        ),
        overruled=overruled,
        edited=len(comparison.edited_events) if is_person else 0,
        broken=None if broken_event is None else broken_event.seq,
        needs=tuple(authors),
        refused=refused,
        replaced=bool(authors) and not refused,
        replaced_under=tuple(sorted(taxonomies)),
    )


def conflicts(
    connection: Connection, annotators: Iterable[str] | None = None
) -> tuple[EventConflict, ...]:
    """Return groups of a person's events with the same sequence number but different content.

    Judges are left out, because the order of their events has no meaning.

    Args:
        connection: An open connection.
        annotators: The annotators to check; None for all.
    """
    table = schema.events
    seqs = select(table.c.annotator, table.c.seq).group_by(table.c.annotator, table.c.seq)
    if annotators is not None:
        seqs = seqs.where(table.c.annotator.in_(sorted(annotators)))
    shared = seqs.having(func.count() > 1).subquery()
    has_shared_seq = (shared.c.annotator == table.c.annotator) & (shared.c.seq == table.c.seq)
    statement = (
        select(table)
        .join(shared, has_shared_seq)
        .order_by(table.c.annotator, table.c.seq, table.c.id)
    )
    groups = values_by_key(
        ((row["annotator"], row["seq"]), row)
        for row in connection.execute(statement).mappings()
        if not is_judge(row["annotator"])
    )
    return tuple(
        EventConflict(annotator, seq, tuple(row["id"] for row in rows))
        for (annotator, seq), rows in groups.items()
        if len({_conflict_content(event) for event in readable_events(rows)}) > 1
    )


class StoredEvent(NamedTuple):
    """The author and chain of a stored event."""

    annotator: str
    chain_hash: str | None


def _stored_by_id(connection: Connection, events: Sequence[Event]) -> dict[str, StoredEvent]:
    """Return the author and chain of each stored event among the events, by id.

    Raises:
        WorkspaceError: An event has no id or no valid sequence number.
    """
    for event in events:
        if not event.id or event.seq < 1:
            raise WorkspaceError(f"event {event.id!r}: has no id or no counter from 1")
    rows = _STORED.execute(connection, [event.id for event in events])
    return {row.id: StoredEvent(row.annotator, row.chain) for row in rows}


def _has_same_content(stored_row: Any, event: Event) -> bool:
    """Return whether a stored event and a foreign event have the same content.

    Equal imported events may have different times, so their digests, which leave out the time, are
    compared too.
    """
    foreign_row = event_to_row(event, payload_text(event.fact))
    if all(stored_row[name] == value for name, value in foreign_row.items() if name != "chain"):
        return True
    try:
        return chain.digest(event_of(stored_row)) == chain.digest(event)
    except ValueError:
        return False


def _conflict_content(event: Event) -> tuple[object, ...]:
    """Return the content of an event without its id and time."""
    work = event.trace_id, event.taxonomy, event.pass_number
    return (event.kind, *work, payload_text(event.fact))
