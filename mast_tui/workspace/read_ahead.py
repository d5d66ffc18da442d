"""What one person may go on with while the server is away: read ahead, and kept in memory.

It comes through the connection that reads everything else, so it is never more than the server
shows to them. What they write is taken in as it is written, whether it is sent or waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from sqlalchemy import Connection, select

from mast_tui.labels import JUDGE_PREFIX
from mast_tui.workspace import schema
from mast_tui.workspace.database import Insertion
from mast_tui.workspace.events.append import follow, insert, known_rows
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.sqlite_file import SqliteFile

_AT_ONCE: Final = 5000
_SHARED: Final = (
    *(schema.taxonomies, schema.taxonomy_revisions, schema.traces, schema.annotators),
    *(schema.settings, schema.studies, schema.guidelines, schema.span_indices),
)
_OF_PEOPLE: Final = (
    *(schema.labels, schema.verdicts, schema.passes, schema.decisions),
    *(schema.reviews, schema.span_notes, schema.sights, schema.events),
)
_OWN_ONLY: Final = (schema.reviews, schema.span_notes, schema.events)
"""What nobody needs of others to adjudicate."""


class ReadAhead:
    """A copy of one person's part of a workspace, without what judges say; used from any thread."""

    def __init__(self, annotator: str) -> None:
        self._annotator = annotator
        self.everybody = False
        """Whether it has what other people say as well."""
        self._copy: SqliteFile | None = None
        self._new: list[Event] = []
        """What was written since, and is not in the copy yet."""
        self._lock = Lock()

    @property
    def ready(self) -> bool:
        """Whether there is a copy."""
        return self._copy is not None

    def read(self, source: Connection, *, everybody: bool) -> None:
        """Make the copy, or make it anew.

        Args:
            source: A connection that sees one state throughout.
            everybody: Whether to read what other people say as well, from now on.
        """
        self.everybody |= everybody
        copy = SqliteFile(None, create=True)
        with copy.writing(whole=True) as target:
            for table in (*_SHARED, *_OF_PEOPLE):
                wanted = select(table)
                if self.everybody and table in _OF_PEOPLE and table not in _OWN_ONLY:
                    wanted = wanted.where(~table.c.annotator.startswith(JUDGE_PREFIX))
                elif table in _OF_PEOPLE:
                    wanted = wanted.where(table.c.annotator == self._annotator)
                for rows in source.execute(wanted).partitions(_AT_ONCE):
                    Insertion(table).write(target, [tuple(row) for row in rows])
        with self._lock:
            self._copy = copy

    def saw(self, events: Iterable[Event]) -> None:
        """Take in what was written; what is known already, by its id, is left out."""
        with self._lock:
            self._new += events

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to what is known, to be read only."""
        with self._up_to_date().reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection by which something else than events is added."""
        with self._up_to_date().writing() as connection:
            yield connection

    def _up_to_date(self) -> SqliteFile:
        with self._lock:
            copy = self._copy
            assert copy is not None, "nothing was read ahead"
            if self._new:
                with copy.writing(whole=True) as connection:
                    known = known_rows(connection, [event.id for event in self._new])
                    new = {event.id: event for event in self._new if event.id not in known}
                    insert(connection, list(new.values()))
                    follow(connection, new.values())
                self._new.clear()
            return copy
