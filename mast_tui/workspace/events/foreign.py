"""Merging of foreign events into those of a workspace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from mast_tui.errors import ChangedElsewhere, WorkspaceError
from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.workspace import schema
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

_ROWS_PER_QUERY: Final = 500
_COUNT: Final = select(func.count(), func.max(schema.events.c.seq)).where(
    schema.events.c.annotator == bindparam("annotator")
)


def merge(
    connection: Connection,
    foreign: chain.Foreign,
    *,
    replacing: Collection[str] = (),
    in_force: InForce | None = None,
) -> MergeReport:
    """Add the foreign events that the workspace lacks, and update the state tables.

    The result and the errors are those of ``Workspace.merge_events``.

    Args:
        connection: A connection in a transaction, which the caller rolls back if this raises.
        foreign: The events, as ``chain.examined`` returns them.
        replacing: The people and judges whose work may be replaced.
        in_force: The entries that need consent to be replaced; None for those in force now.
    """
    stored_by_id = _stored_by_id(connection, foreign.events)
    if in_force is None:
        in_force = entries_in_force(connection)
    added_count = 0
    known_count = 0
    altered: list[str] = []
    added_seqs: set[tuple[str, int]] = set()
    people: list[PersonChanges] = []
    for name, annotator_events in groupby(foreign.events, key=lambda event: event.annotator):
        annotator_merge = _AnnotatorMerge(
            connection, name, tuple(annotator_events), stored_by_id, foreign.broken.get(name)
        )
        added_count += len(annotator_merge.new_events)
        known_count += len(annotator_merge.events) - len(annotator_merge.new_events)
        altered += [event.id for event in annotator_merge.edited_events]
        added_seqs.update((name, event.seq) for event in annotator_merge.new_events)
        person_changes = annotator_merge.write(in_force, replacing)
        if person_changes is not None:
            people.append(person_changes)
    refused = [change for change in people if change.refused]
    if refused:
        raise MergeRefused(refused)
    changed_annotators = {name for name, _ in added_seqs}
    new_conflicts = tuple(
        conflict
        for conflict in conflicts(connection, changed_annotators)
        if (conflict.annotator, conflict.seq) in added_seqs
    )
    return MergeReport(
        added_count, known_count + foreign.repeats, tuple(altered), new_conflicts, tuple(people)
    )


@dataclass(frozen=True, slots=True)
class ForeignGrowth:
    """The new events of one annotator among foreign ones.

    Attributes:
        count: The number of stored events.
        last: The sequence number of the last stored event, 0 if there is none.
        new_events: The new events.
        is_plain: Whether the new events only continue the stored history and overrule no other
            annotator. Such events can be written in several transactions; all others are checked
            and written in one.
    """

    annotator: str
    count: int
    last: int
    new_events: Sequence[Event]
    is_plain: bool


def growth_of(connection: Connection, events: Sequence[Event], *, is_broken: bool) -> ForeignGrowth:
    """Return an annotator's new events, and whether they only continue the stored history.

    Args:
        connection: An open connection.
        events: The annotator's foreign events, as ``chain.examined`` returns them.
        is_broken: Whether one of these events does not fit its chain.
    """
    name = events[0].annotator
    annotator_merge = _AnnotatorMerge(
        connection, name, events, _stored_by_id(connection, events), broken_event=None
    )
    count, last = connection.execute(_COUNT, {"annotator": name}).one()
    history = annotator_merge.history(count, last)
    is_plain = (
        not (is_broken or annotator_merge.edited_events or annotator_merge.chains_differ)
        and history in (HistoryRelation.NEW, HistoryRelation.LONGER)
        and not _may_overrule(connection, annotator_merge.new_events)
    )
    return ForeignGrowth(name, count, last or 0, annotator_merge.new_events, is_plain)


def _may_overrule(connection: Connection, events: Sequence[Event]) -> bool:
    """Return whether an annotator's events may replace others' decisions, guidelines or study."""
    if not any(isinstance(event.fact, (Decided, GuidelineSet, StudySet)) for event in events):
        return False
    entries = entries_in_force(connection).values()
    return any(entry.annotator != events[0].annotator for entry in entries)


def grow(connection: Connection, growth: ForeignGrowth, events: Sequence[Event]) -> ForeignGrowth:
    """Add some of an annotator's new events, and return the growth that remains.

    Args:
        connection: An open transaction.
        growth: The new events, which only continue the stored history (``is_plain``).
        events: The events to add, the first of ``growth.new_events``.

    Raises:
        ChangedElsewhere: The annotator has recorded other events since the growth was computed.
    """
    name = growth.annotator
    count, last = connection.execute(_COUNT, {"annotator": name}).one()
    if (count, last or 0) != (growth.count, growth.last):
        raise ChangedElsewhere(f"{name} has recorded other work in this workspace meanwhile")
    insert(connection, events)
    update_state(connection, events)
    remaining = growth.new_events[len(events) :]
    return replace(growth, count=count + len(events), last=events[-1].seq, new_events=remaining)


class _AnnotatorMerge:
    """The merge of one annotator's foreign events.

    Attributes:
        events: All foreign events of the annotator.
        new_events: The events that the workspace lacks.
        edited_events: The events that the workspace has with other content.
        chains_differ: Whether events with the same content have different chains.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        events: Sequence[Event],
        stored_by_id: Mapping[str, StoredEvent],
        broken_event: Event | None,
    ) -> None:
        """Compare the foreign events with the stored ones.

        Args:
            connection: An open connection.
            name: The annotator's name.
            events: The annotator's foreign events, sorted by sequence number.
            stored_by_id: The author and chain of the stored events with the same ids.
            broken_event: The first event that does not fit its chain; None if there is none.
        """
        self._connection = connection
        self._name = name
        self._broken_event = broken_event
        self._is_person = chain.has_chain(name)
        self.events = events
        self.new_events = [event for event in events if event.id not in stored_by_id]
        known_events = [event for event in events if event.id in stored_by_id]
        # A chain is a hash of an event's content. Unless a foreign event does not fit its chain,
        # events with the same chain have the same content and need no comparison.
        to_compare = [
            event
            for event in known_events
            if broken_event or event.chain is None or stored_by_id[event.id].chain != event.chain
        ]
        stored_rows = known_rows(connection, [event.id for event in to_compare])
        same_by_id = {
            event.id: _has_same_content(stored_rows[event.id], event) for event in to_compare
        }
        self.edited_events = [event for event in to_compare if not same_by_id[event.id]]
        """The events whose content differs from that of the stored event with the same id."""
        self.chains_differ = any(
            same_by_id[event.id] and event.chain != stored_by_id[event.id].chain
            for event in to_compare
        )
        """Whether an event has the same content as the stored one, but another chain."""
        ids_of_others = {
            event.id for event in to_compare if stored_by_id[event.id].annotator != name
        }
        self._own_ids = {event.id for event in known_events} - ids_of_others
        """The ids of the events that are stored as events of this annotator."""

        seqs = [0, *(event.seq for event in events)]
        self._has_no_gaps = all(later - earlier <= 1 for earlier, later in pairwise(seqs))

    def write(self, in_force: InForce, replacing: Collection[str]) -> PersonChanges | None:
        """Write the new events, update the annotator's rows in the state tables, and compare them.

        Args:
            in_force: The decisions, guidelines and studies in force before the merge.
            replacing: The names given with ``--replace``.

        Returns:
            The changes to the annotator's work; None if there are none.
        """
        counts = self._connection.execute(_COUNT, {"annotator": self._name}).one()
        history = self.history(*counts)
        is_edited = self._is_person and bool(self.edited_events or self._broken_event)
        if not self.new_events and not is_edited:
            if self.chains_differ:
                chain.rebuild_chain(self._connection, self._name)
            return None
        is_new = history is HistoryRelation.NEW
        old = changes.NOTHING if is_new else changes.read_state(self._connection, self._name)
        if self.new_events:
            insert(self._connection, self.new_events)
        if is_edited and self._name in replacing:
            self._replace_edited_events()
        elif self.chains_differ:
            chain.rebuild_chain(self._connection, self._name)
        # If all new events are later than the stored ones, the state tables need not be rebuilt.
        if history in (HistoryRelation.NEW, HistoryRelation.LONGER) and not is_edited:
            update_state(self._connection, self.new_events)
        else:
            rebuild(self._connection, [self._name])
        new = changes.read_state(self._connection, self._name)
        person_changes, needs_consent = changes.compare(
            self._name, history, old, new, events=len(self.new_events)
        )
        replaces_own_work = needs_consent or is_edited
        if history is HistoryRelation.APART and self._is_person:
            replaces_own_work = replaces_own_work or not changes.only_adds(
                self.new_events, has_no_gaps=self._has_no_gaps
            )
        entries = changes.replaced_entries(self._name, in_force, old, new)
        overruled = changes.count_by_author(entries, in_force)
        taxonomies = changes.replaced_taxonomies(old, new, entries)
        if replaces_own_work and not taxonomies:
            # No row differs now, but edited or unrelated events may replace work in a later merge.
            foreign_events = (*self.new_events, *self.edited_events)
            taxonomies = {event.taxonomy for event in foreign_events if event.taxonomy is not None}
        # ``--replace`` has to name each author whose earlier work is replaced.
        replaced_authors = sorted({*overruled, self._name} if replaces_own_work else overruled)
        refused = any(name not in replacing for name in replaced_authors)
        decision_counts = [count.get(schema.decisions.name, 0) for count in overruled.values()]
        return replace(
            person_changes,
            decisions_overruled=sum(decision_counts),
            overruled=overruled,
            edited=len(self.edited_events) if self._is_person else 0,
            broken=None if self._broken_event is None else self._broken_event.seq,
            needs=tuple(replaced_authors),
            refused=refused,
            replaced=bool(replaced_authors) and not refused,
            replaced_under=tuple(sorted(taxonomies)) if replaced_authors else (),
        )

    def history(self, count: int, last: int | None) -> HistoryRelation:
        """Compare the foreign events with the stored ones of the annotator.

        ``_own_ids`` has the ids that both share. ``_has_no_gaps`` means that no sequence number
        is missing among the foreign events.

        Args:
            count: The number of stored events.
            last: The sequence number of the last of them, None if there are none.
        """
        if not count:
            return HistoryRelation.NEW
        if not self.new_events:
            return HistoryRelation.SAME
        if not self._own_ids or not self._has_no_gaps:
            return HistoryRelation.APART
        has_all_stored_events = len(self._own_ids) == count
        new_ones_are_later = all(event.seq > (last or 0) for event in self.new_events)
        if has_all_stored_events and new_ones_are_later:
            return HistoryRelation.LONGER
        return HistoryRelation.FORKED

    def _replace_edited_events(self) -> None:
        """Overwrite stored events with their edited foreign versions; rebuild the hash chain."""
        # An event that is stored as the event of another annotator stays unchanged.
        chain.replace_events(
            self._connection, [event for event in self.edited_events if event.id in self._own_ids]
        )
        chain.rebuild_chain(self._connection, self._name)


def conflicts(
    connection: Connection, annotators: Iterable[str] | None = None
) -> tuple[EventConflict, ...]:
    """Return groups of a person's events with the same sequence number but different content.

    Judges are left out, since the order of their events means nothing.

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
    groups: dict[tuple[str, int], list[Any]] = {}
    for row in connection.execute(statement).mappings():
        if annotator_kind(row["annotator"]) is not AnnotatorKind.JUDGE:
            groups.setdefault((row["annotator"], row["seq"]), []).append(row)
    return tuple(
        EventConflict(annotator, seq, tuple(row["id"] for row in rows))
        for (annotator, seq), rows in groups.items()
        if len({_conflict_content(event) for event in readable_events(rows)}) > 1
    )


class StoredEvent(NamedTuple):
    """The author and chain of a stored event, to compare with an event of the same id."""

    annotator: str
    chain: str | None


def _stored_by_id(connection: Connection, events: Sequence[Event]) -> dict[str, StoredEvent]:
    """Return the author and chain of those of the events that are stored, by id.

    Raises ``WorkspaceError`` if an event has no id or no valid sequence number.
    """
    table = schema.events
    stored: dict[str, StoredEvent] = {}
    for start in range(0, len(events), _ROWS_PER_QUERY):
        batch = events[start : start + _ROWS_PER_QUERY]
        for event in batch:
            if not event.id or event.seq < 1:
                raise WorkspaceError(f"event {event.id!r}: has no id or no counter from 1")
        rows = connection.execute(
            select(table.c.id, table.c.annotator, table.c.chain).where(
                table.c.id.in_([event.id for event in batch])
            )
        )
        stored.update((row[0], StoredEvent(row[1], row[2])) for row in rows)
    return stored


def _has_same_content(stored_row: Any, event: Event) -> bool:
    """Return whether a stored event and a foreign one have the same content, apart from the chain.

    The same imported event may have another time here, so the digests, which leave out the time of
    imported events, are compared too.
    """
    foreign_row = event_to_row(event, payload_text(event.fact))
    if all(stored_row[name] == value for name, value in foreign_row.items() if name != "chain"):
        return True
    try:
        return chain.digest(event_of(stored_row)) == chain.digest(event)
    except ValueError:
        return False


def _conflict_content(event: Event) -> tuple[object, ...]:
    """Return the content of an event, without its id and its time."""
    work = event.trace_id, event.taxonomy, event.pass_number
    return (event.kind, *work, payload_text(event.fact))
