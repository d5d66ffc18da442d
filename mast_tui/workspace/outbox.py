"""Changes that wait on this machine for a server that does not answer.

A change has the events of one key press with their final ids. It is on this machine's disk before
the app reports it as saved, and is removed once the server has committed it. If the commit is
uncertain, the change is sent again, and the server leaves out known events. New traces wait too.

Meanwhile the annotator works on a copy of the part of the workspace that the server shows to them.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from os import close, fdopen
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from mast_tui.errors import WorkspaceError
from mast_tui.labels import JUDGE_PREFIX
from mast_tui.traces.io.private_files import make_private, open_private
from mast_tui.workspace import schema
from mast_tui.workspace.database import Insertion
from mast_tui.workspace.events.append import insert, known_rows
from mast_tui.workspace.events.model import (
    Event,
    NewChange,
    NewEvent,
    event_from_dict,
    event_on_trace,
    event_to_dict,
    now,
)
from mast_tui.workspace.events.state import update_state
from mast_tui.workspace.events.types import PassStarted, SpansRead, SuggestionsSeen
from mast_tui.workspace.records import TraceRecord
from mast_tui.workspace.registers import traces as trace_register
from mast_tui.workspace.sqlite_file import SqliteFile

_AT_ONCE: Final = 5000
_COMMON_TABLES: Final = (
    *(schema.taxonomies, schema.taxonomy_revisions, schema.traces, schema.annotators),
    *(schema.settings, schema.studies, schema.guidelines, schema.span_indices),
)
_ANNOTATOR_TABLES: Final = (
    *(schema.labels, schema.verdicts, schema.passes, schema.decisions),
    *(schema.reviews, schema.span_notes, schema.sights, schema.events),
)
_OWN_TABLES: Final = (schema.reviews, schema.span_notes, schema.events)
"""The tables from which an adjudicator needs only the own rows."""


class LocalCopy:
    """A copy of an annotator's part of a workspace, without suggestions; used from any thread."""

    def __init__(self, annotator: str) -> None:
        self._annotator = annotator
        self.everybody = False
        """True if the copy has the work of other people too."""
        self._copy: SqliteFile | None = None
        self._pending_events: list[Event] = []
        """Recorded events that are not in the copy yet."""
        self._lock = Lock()

    @property
    def ready(self) -> bool:
        """True if there is a copy."""
        return self._copy is not None

    def refresh(self, source: Connection, *, everybody: bool) -> None:
        """Copy the tables, and replace the earlier copy.

        Args:
            source: A connection that sees one state throughout.
            everybody: True if this copy and all later ones include the work of other people.
        """
        self.everybody = self.everybody or everybody
        copy = SqliteFile(None, create=True)
        with copy.writing(without_savepoints=True) as target:
            for table in (*_COMMON_TABLES, *_ANNOTATOR_TABLES):
                statement = select(table)
                if table in _ANNOTATOR_TABLES:
                    is_own = table.c.annotator == self._annotator
                    is_of_people = ~table.c.annotator.startswith(JUDGE_PREFIX)
                    copies_others = self.everybody and table not in _OWN_TABLES
                    statement = statement.where(is_of_people if copies_others else is_own)
                for rows in source.execute(statement).partitions(_AT_ONCE):
                    Insertion(table).write(target, [tuple(row) for row in rows])
        with self._lock:
            self._copy = copy

    def note_seen(self, events: Iterable[Event]) -> None:
        """Add events to the copy before it is next used; known events are left out."""
        with self._lock:
            self._pending_events += events

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a read-only connection to the copy."""
        with self._updated_copy().reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection for rows other than events."""
        with self._updated_copy().writing() as connection:
            yield connection

    def _updated_copy(self) -> SqliteFile:
        """Add pending events to the copy, and return it."""
        with self._lock:
            copy = self._copy
            assert copy is not None, "no copy was made"
            if self._pending_events:
                # Nested writes are faster without savepoints.
                with copy.writing(without_savepoints=True) as connection:
                    known_ids = known_rows(connection, [event.id for event in self._pending_events])
                    # By id, since an event is pending twice after it has waited and was sent.
                    new_events = {
                        event.id: event
                        for event in self._pending_events
                        if event.id not in known_ids
                    }
                    insert(connection, list(new_events.values()))
                    update_state(connection, new_events.values())
                self._pending_events.clear()
            return copy


_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS changes (number INTEGER PRIMARY KEY AUTOINCREMENT, "
    "known_seq INTEGER NOT NULL, follows TEXT, events TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS traces (id TEXT PRIMARY KEY, record TEXT NOT NULL)",
)
_READ: Final = "SELECT number, known_seq, follows, events FROM changes ORDER BY number"
_ADD: Final = "INSERT INTO changes (known_seq, follows, events) VALUES (?, ?, ?)"
_CHANGE: Final = "UPDATE changes SET events = ? WHERE number = ?"
_READ_TRACES: Final = "SELECT id, record FROM traces ORDER BY rowid"
_ADD_TRACE: Final = "INSERT OR REPLACE INTO traces VALUES (?, ?)"
_UNCHECKED: Final = -1
"""The stored value of ``known_seq`` if it is None."""
_AUTOMATIC_FACTS: Final = (PassStarted, SpansRead, SuggestionsSeen)
"""The facts that the app records without a key press."""


class WaitingChange(NamedTuple):
    """The events of one action on one trace that wait for the server.

    Their sequence numbers are provisional, since the server assigns the final ones.

    Attributes:
        number: The position in the outbox.
        known_seq: The sequence number of the last event on the trace that was known when the change
            was made; None if the change is valid after any event.
        follows: The id of the last event of the previous waiting change on the same trace, which is
            used instead of ``known_seq``; None if there is no such change.
    """

    number: int
    known_seq: int | None
    follows: str | None
    events: tuple[Event, ...]

    @property
    def is_note(self) -> bool:
        """True if the app has recorded the change without a key press."""
        return all(isinstance(event.fact, _AUTOMATIC_FACTS) for event in self.events)

    def to_send(self) -> NewChange:
        """Return the change in the form in which it is sent."""
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
            for event in self.events
        ]
        first = self.events[0]
        return NewChange(events, first.action, first.undoes, first.redoes)


class Outbox:
    """One annotator's changes that wait for one server, in order; used from any thread."""

    def __init__(self, folder: Path, url: str, annotator: str, last_seq: int) -> None:
        """Open the outbox and read the changes of earlier programs.

        Args:
            folder: The folder of all outboxes.
            url: The server's address.
            annotator: The annotator of the changes.
            last_seq: The sequence number of the annotator's last event on the server.

        Raises:
            WorkspaceError: The waiting changes cannot be read.
        """
        digest = hashlib.sha256(f"{url}\0{annotator}".encode("utf-8", "replace")).hexdigest()
        self.annotator = annotator
        self._path = folder / f"{digest[:16]}.db"
        self._lock = Lock()
        self._waiting: list[WaitingChange] = []
        self._traces: dict[str, TraceRecord] = {}
        self.last_seq = last_seq
        """The sequence number of the annotator's last event, on the server or in the outbox."""
        self.local_copy = LocalCopy(annotator)
        """The copy of the tables for work while the server does not answer."""
        if self._path.exists():
            with self._open_file() as file:
                for number, stored_seq, follows, text in file.execute(_READ):
                    events = tuple(map(event_from_dict, json.loads(text)))
                    known_seq = None if stored_seq == _UNCHECKED else stored_seq
                    self._waiting.append(WaitingChange(number, known_seq, follows, events))
                    self.note_seen(events)
                for trace_id, row in file.execute(_READ_TRACES):
                    self._traces[trace_id] = trace_register.of_row(json.loads(row), None)

    @property
    def refused_path(self) -> Path:
        """The file of refused changes, with one line of JSON for each event."""
        return self._path.with_suffix(".refused.jsonl")

    @property
    def waiting(self) -> tuple[WaitingChange, ...]:
        """The waiting changes in order."""
        return tuple(self._waiting)

    @property
    def count(self) -> int:
        """The number of waiting changes from key presses."""
        return sum(not change.is_note for change in self.waiting)

    def events(self, trace_id: str | None, taxonomy: str | None) -> tuple[Event, ...]:
        """Return the waiting events.

        Args:
            trace_id: Only events on this trace; None for all.
            taxonomy: Only events under this taxonomy; None for all.
        """
        return tuple(
            event
            for change in self.waiting
            for event in change.events
            if trace_id in (None, event.trace_id) and taxonomy in (None, event.taxonomy)
        )

    def note_seen(self, events: Iterable[Event]) -> None:
        """Add the annotator's recorded events to the copy, and count on after them."""
        own_events = [event for event in events if event.annotator == self.annotator]
        self.last_seq = max(self.last_seq, *(event.seq for event in own_events), 0)
        self.local_copy.note_seen(own_events)

    @property
    def traces(self) -> Mapping[str, TraceRecord]:
        """The traces that the server does not know yet, by their provisional ids."""
        return dict(self._traces)

    def register_trace(self, record: TraceRecord) -> str:
        """Store a new trace, and return its provisional id."""
        with self.local_copy.writing() as connection:
            trace_id = trace_register.register(connection, record)
        with self._lock, self._open_file() as file:
            row = trace_register.to_row(record, record.trace_id, None)
            file.execute(_ADD_TRACE, (trace_id, json.dumps(row)))
            file.commit()
            self._traces[trace_id] = record
        return trace_id

    def replace_trace_id(self, provisional_id: str, server_id: str) -> None:
        """Remove a trace that was sent, and use the server's id in waiting events.

        Args:
            provisional_id: The id that the waiting events use.
            server_id: The id on the server, which may be the same.
        """
        with self._lock, self._open_file() as file:
            if server_id != provisional_id:
                for index, change in enumerate(self._waiting):
                    # All events of a change are on one trace.
                    if change.events[0].trace_id == provisional_id:
                        events = tuple(event_on_trace(event, server_id) for event in change.events)
                        self._waiting[index] = change._replace(events=events)
                        file.execute(_CHANGE, (_events_as_json(events), change.number))
            file.execute("DELETE FROM traces WHERE id = ?", (provisional_id,))
            file.commit()
            del self._traces[provisional_id]

    def put(self, change: NewChange, new_id: Callable[[], str]) -> tuple[Event, ...]:
        """Store a change until it is sent.

        Args:
            change: The change; all its events are of one annotator on one trace.
            new_id: Returns a new id for events without one.

        Returns:
            The events, with provisional sequence numbers.

        Raises:
            WorkspaceError: The change cannot be written.
        """
        time = now()
        next_seq = max(self.last_seq, change.known_seq or 0) + 1
        waiting = tuple(
            change.recorded(event, seq, new_id, time)
            for seq, event in enumerate(change.events, next_seq)
        )
        self.keep(waiting, change.known_seq)
        return waiting

    def keep(self, events: tuple[Event, ...], known_seq: int | None) -> None:
        """Store a change with events that have their ids and sequence numbers already.

        Args:
            events: The events of the change.
            known_seq: The sequence number of the annotator's last known event on the trace; None
                if the change is valid after any event.
        """
        stored_seq = _UNCHECKED if known_seq is None else known_seq
        text = _events_as_json(events)
        with self._lock, self._open_file() as file:
            # This change follows the last waiting event on the same trace and taxonomy.
            earlier_events = self.events(events[0].trace_id, events[0].taxonomy)
            follows = earlier_events[-1].id if earlier_events else None
            number = file.execute(_ADD, (stored_seq, follows, text)).lastrowid
            file.commit()
            assert number is not None
            self._waiting.append(WaitingChange(number, known_seq, follows, events))
            self.note_seen(events)

    def remove(self, change: WaitingChange) -> None:
        """Remove a change that was sent or moved."""
        with self._lock, self._open_file() as file:
            file.execute("DELETE FROM changes WHERE number = ?", (change.number,))
            file.commit()
            self._waiting.remove(change)

    def move_refused(self, change: WaitingChange) -> None:
        """Move a refused change to a file that people can read."""
        lines = "".join(json.dumps(event_to_dict(event)) + "\n" for event in change.events)
        with self._readable_errors(), fdopen(open_private(self.refused_path), "a") as file:
            file.write(lines)
        self.remove(change)

    @contextmanager
    def _open_file(self) -> Iterator[sqlite3.Connection]:
        """Open the file of the outbox, and create its tables if necessary."""
        with self._readable_errors():
            make_private(self._path.parent)
            close(open_private(self._path))  # makes the file, which other users cannot read
            with closing(sqlite3.connect(self._path, timeout=30)) as file:
                file.execute("PRAGMA synchronous=FULL")
                for table in _TABLES:
                    file.execute(table)
                yield file

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Convert errors of the outbox's file in the block to ``WorkspaceError``."""
        try:
            yield
        except (OSError, sqlite3.Error, ValueError) as error:
            raise WorkspaceError(
                f"{self._path}: changes that wait for the server cannot be saved here: {error}"
            ) from error


def _events_as_json(events: Iterable[Event]) -> str:
    return json.dumps([event_to_dict(event) for event in events])
