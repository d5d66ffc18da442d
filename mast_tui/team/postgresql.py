"""A workspace in a PostgreSQL database, for many programs on many machines at once.

Before it writes, a program takes a turn: it locks a row of the table ``turns``. The row without a
name is for registers (the tables of the objects that events refer to). Each other row is for the
events of one annotator. Only users who may write in a name can lock its row.

A member of a team writes by calling functions. Calls that add events are held until something is
read or the transaction ends, and are then sent as one statement. So a label takes one round trip.
The function refuses an event with an unexpected predecessor.

Text on a server cannot contain NUL, which is stored as two other characters (``_ESCAPES``).
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from socket import SHUT_RDWR, socket
from threading import get_ident
from typing import Any, Final, TypeVar

import psycopg
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap, Buffer, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import IntLoader
from psycopg.types.string import StrDumperUnknown
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from mast_tui.errors import PasswordNeeded, ServerAway, WorkspaceError
from mast_tui.team import rights
from mast_tui.workspace.database import (
    BUSY,
    CALLS_STORED_FUNCTIONS,
    LOOK_FOR_SERVER,
    NOT_LATEST,
    OWN_ONLY,
    READS_REGISTERS,
    Database,
    HeldCalls,
    NotLatest,
    ServerCall,
    Values,
    driver_of,
    sees_own_only,
)
from mast_tui.workspace.maintenance import copy_rows
from mast_tui.workspace.migration import migrate
from mast_tui.workspace.outbox import Outbox
from mast_tui.workspace.paths import check_version
from mast_tui.workspace.presence import Presence
from mast_tui.workspace.records import Member, TeamRole
from mast_tui.workspace.schema import APPLICATION_ID, SCHEMA_VERSION, metadata
from mast_tui.workspace.sqlite_file import SqliteFile, new_file
from mast_tui.writes import deadline, pause, write_status

Result = TypeVar("Result")

_MIN_SERVER_VERSION: Final = 13
"""The oldest supported version of the server."""

_CONNECT_SECONDS: Final = 10
_ANSWER_SECONDS: Final = 4.0
"""The seconds that a session with an outbox waits for an answer."""

_LOCK_SECONDS: Final = 30
"""The seconds that the server waits for another writer."""

_NOTIFY_SECONDS: Final = 0.5
"""The fewest seconds between two notifications of other programs about writes."""

_CHANNEL: Final = "mast_tui"
_PRESENCE_CHANNEL: Final = "mast_tui_presence"
_NOTIFY: Final = f"NOTIFY {_CHANNEL}"
_NOTIFY_CALL: Final = ServerCall("pg_notify(%s, '')", (_CHANNEL,))
_MAINTENANCE_DATABASE: Final = "postgres"
"""The database to connect to for creating others."""

_CONNECT_STATEMENT: Final = "SET jit = off; SET search_path = public"
"""The first statement of each connection. The default search path begins with the schema that is
named like the user. For a user ``team``, this would be the schema of the team's tables."""

_TURNS: Final = """
CREATE TABLE IF NOT EXISTS public.turns (name TEXT COLLATE "C" PRIMARY KEY);
CREATE OR REPLACE FUNCTION public.take_turns(names text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.turns SELECT n FROM unnest(names) n ORDER BY n ON CONFLICT DO NOTHING;
  PERFORM FROM public.turns t WHERE t.name = ANY(names) ORDER BY t.name FOR UPDATE;
END $$;
REVOKE EXECUTE ON FUNCTION public.take_turns(text[]) FROM PUBLIC;
"""
"""The table and function by which writers take turns. A team has its own function, which checks the
caller."""


class _EscapingDumper(StrDumperUnknown):
    """The escaping of text on the way to the server."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_escaped_text(obj))


class _UnescapingLoader(Loader):
    """The unescaping of text from the server."""

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        if _ESCAPE in text:
            text = text.replace(_ESCAPES["\0"], "\0").replace(_ESCAPES[_ESCAPE], _ESCAPE)
        return text


_ESCAPE: Final = "\x1a"
_ESCAPES: Final[Mapping[str, str]] = {_ESCAPE: _ESCAPE + "S", "\0": _ESCAPE + "0"}
"""The stored form of escaped characters."""


def _escaped_text(text: str) -> str:
    """Escape the characters in a text that a server cannot store."""
    if "\0" in text or _ESCAPE in text:
        text = text.replace(_ESCAPE, _ESCAPES[_ESCAPE]).replace("\0", _ESCAPES["\0"])
    return text


@compiles(sqlite.dml.OnConflictDoNothing, "postgresql")
def _compile_do_nothing(
    clause: sqlite.dml.OnConflictDoNothing, compiler: SQLCompiler, **options: Any
) -> str:
    """Compile the clause that skips an existing row for PostgreSQL, which has the same syntax."""
    translated = postgresql.dml.OnConflictDoNothing(index_elements=clause.inferred_target_elements)
    return compiler.process(translated, **options)


@compiles(sqlite.dml.OnConflictDoUpdate, "postgresql")
def _compile_do_update(
    clause: sqlite.dml.OnConflictDoUpdate, compiler: SQLCompiler, **options: Any
) -> str:
    """Compile the clause that updates an existing row for PostgreSQL."""
    translated = postgresql.dml.OnConflictDoUpdate(
        index_elements=clause.inferred_target_elements, set_=clause.update_values_to_set
    )
    return compiler.process(translated, **options)


class PostgresServer(Database):
    """A workspace in a database of a server."""

    driver_error = psycopg.Error

    def __init__(self, url: str, *, create: bool = False, password: str | None = None) -> None:
        """Connect to the server.

        Args:
            url: ``postgresql://USER@HOST/DATABASE``, as libpq reads it, without a password.
            create: True to create the database and the tables if they are missing.
            password: The password that the user typed; None if libpq looks for one.

        Raises:
            PasswordNeeded: The server needs a password, and none was found.
            WorkspaceError: The server cannot be reached or used.
        """
        super().__init__(None)
        self._url = url
        self._parameters = parameters_of(url)
        self._password = password
        self._was_notified = False
        """True if others may have written since the last check."""
        self._must_notify = False
        """True if others have not been notified of the last writes."""
        self._held_calls = HeldCalls()
        self._last_notify = 0.0
        self._answer_seconds: float | None = None
        """The seconds after which a silent server counts as away; None to wait without limit."""
        self._may_queue = False
        """True if all changes of the current write can go into the outbox."""
        self._away = False
        self._outbox: Outbox | None = None
        self.presence = Presence()
        self._presence = self.presence  # the same object, typed without None
        self._readers = self._make_engine(reads_only=True)
        self._writers = self._make_engine(reads_only=False)
        self._writers.update_execution_options(held=self._held_calls)
        with self._readable_errors():
            if create:
                self._create_database()
            self._writer = self._writers.connect()
            try:
                self._prepare_tables(create=create)
                self.member = rights.member(self._writer)
                self._set_up_member()
            except BaseException:
                self._writer.close()
                self._writers.dispose()
                raise

    def _set_up_member(self) -> None:
        """Limit the connections to the rights of the member, if the user is one."""
        member = self.member
        if member is None:
            return
        options = dict(CALLS_STORED_FUNCTIONS)
        if member.role is not TeamRole.LEAD:
            options |= READS_REGISTERS
        if not member.sees_all:
            options |= OWN_ONLY
            driver_of(self._writer).execute(rights.AT_CONNECT, prepare=False)
        self._readers.update_execution_options(**options)
        self._writers.update_execution_options(**options)
        self._writer.execution_options(**options)

    @property
    def name(self) -> str:
        return self._url

    def close(self) -> None:
        """Close the connections; a write that takes too long is abandoned."""
        if self._closed:
            return
        self._closing = True
        has_turn = self._write_lock.acquire(timeout=_CONNECT_SECONDS)
        try:
            self._closed = True
            if has_turn:
                with suppress(psycopg.Error, DBAPIError):
                    # The last writes may not have notified other programs yet.
                    if self._must_notify and not self._writer.invalidated:
                        self._exchange_notifications()
                    self._writer.close()
                self._writers.dispose()
            self._readers.dispose()
        finally:
            if has_turn:
                self._write_lock.release()

    def outbox(self, folder: Path, annotator: str, last_seq: int) -> Outbox:
        """Create the outbox, which holds changes while the server is away.

        From now on, screens wait only a few seconds for the server.

        Args:
            folder: The folder for the outbox.
            annotator: The annotator whose changes it holds.
            last_seq: The number of the last known event.
        """
        outbox = Outbox(folder, self._url, annotator, last_seq)
        self._answer_seconds = _ANSWER_SECONDS
        self._outbox = outbox
        return outbox

    @property
    def away(self) -> bool:
        """True if the caller must read the local copy.

        Screens and cached readers must read it while the server is away or changes are queued.
        """
        outbox = self._outbox
        if outbox is None or not outbox.local_copy.ready or not (self._away or outbox.waiting):
            return False
        # A thread with a write status carries out work of the app.
        at_screen = write_status() is not None or _blocks_event_loop()
        return at_screen or get_ident() in self.cached_readers

    @property
    def _waits_for_silent_server(self) -> bool:
        return self._away and self.away

    def _open_reader(self) -> AbstractContextManager[Connection]:
        """Return a connection to the server or, while it is away, to the local copy."""
        has_retried = False
        while not self.away:
            try:
                return self._reading_connection()
            except DBAPIError as error:
                if has_retried or not _is_lost(error.orig):
                    raise
                has_retried = True  # the pooled connection was lost meanwhile
            except ServerAway:
                # If the local copy has become readable, the loop ends.
                if not self.away:
                    raise
        assert self._outbox is not None
        return self._outbox.local_copy.reading()

    def _reading_connection(self) -> Connection:
        """Return a connection in a transaction.

        Raises:
            ServerAway: The server does not answer, and a wait would block key presses.
        """
        if self._away and self._answer_seconds is not None and _blocks_event_loop():
            # Another thread reports when the server is back.
            raise ServerAway(f"{self.name}: no connection to the server: it does not answer")
        connection = self._readers.connect()
        try:
            connection.begin()
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin_transaction(self, annotators: Collection[str]) -> None:
        """Begin a transaction in which no other program adds events of the annotators.

        Without annotators, wait for a server that is away unless that would block key presses.
        """
        if annotators:  # callers that add events retry themselves
            self._begin_without_retry(annotators)
            return
        give_up_at = deadline()
        while True:
            try:
                self._begin_without_retry(annotators)
                return
            except (DBAPIError, ServerAway) as error:
                is_lost = isinstance(error, ServerAway) or _is_lost(error.orig)
                # The limit is set together with the outbox. With an outbox, another thread waits
                # for the server.
                has_outbox = self._answer_seconds is not None
                if not is_lost or has_outbox or time.monotonic() > give_up_at:
                    raise
            pause(LOOK_FOR_SERVER)
            self._check_not_closing()

    def _begin_without_retry(self, annotators: Collection[str]) -> None:
        """Begin a transaction in which no other program adds events of the annotators.

        For a member who adds events, nothing is sent yet: the calls are held until the end.
        """
        self._reconnect_if_lost()
        outbox = self._outbox
        self._may_queue = outbox is not None and list(annotators) == [outbox.annotator]
        try:
            self._limit_waiting()
            if annotators and self.member is not None:
                self._held_calls.calls = []
                return
            statements = ["BEGIN"]
            # An annotator of a team writes no registers, so needs no turn for them.
            if not sees_own_only(self._writer):
                statements.append(_turns_statement(annotators))
            with _reported_wait():
                self._run_statement("; ".join(statements))
        except BaseException:
            self._roll_back()
            raise

    def _limit_waiting(self) -> None:
        """Set the time that the server waits for locks in this transaction."""
        seconds: float = _LOCK_SECONDS
        if self._may_queue and self._answer_seconds is not None:
            # A refused change goes into the outbox. The server must give up before the client does.
            seconds = self._answer_seconds / 2
        if self._writer.info.get("lock_seconds") != seconds:
            self._run_statement(f"SET lock_timeout = '{seconds}s'")
            self._writer.info["lock_seconds"] = seconds

    def _reconnect_if_lost(self) -> None:
        """Replace the connection for writing if it was lost."""
        if not self._writer.invalidated:
            return
        connection = self._writers.connect()
        self._writer.close()
        self._writer = connection
        self._was_notified = True  # notifications may have been missed

    def _roll_back(self) -> None:
        self._held_calls.calls = None
        with suppress(DBAPIError):  # a lost connection has rolled it back
            super()._roll_back()

    def _commit(self) -> None:
        """Commit, or send the held calls of a member's transaction, and notify other programs.

        Soon after another notification, ``_exchange_notifications`` notifies them later.
        """
        calls = self._held_calls.calls
        self._held_calls.calls = None
        if calls == []:  # the transaction has written nothing
            return
        notifies_now = time.monotonic() - self._last_notify > _NOTIFY_SECONDS
        self._must_notify = True
        if calls is None:  # the transaction holds no calls
            self._run_statement(f"COMMIT; {_NOTIFY}" if notifies_now else "COMMIT")
        else:
            self._send_held_calls([*calls, _NOTIFY_CALL] if notifies_now else calls)
        if notifies_now:
            self._last_notify = time.monotonic()
            self._must_notify = False

    def _run_statement(self, statement: str) -> object:
        return self._writer.exec_driver_sql(statement)

    def _in_transaction(self) -> bool:
        if self._writer.invalidated:
            return False
        status = driver_of(self._writer).info.transaction_status
        return bool(status != psycopg.pq.TransactionStatus.IDLE)

    def check_exists(self) -> None:
        """Mark the current write as a write on a server, so that its wait is explained."""
        status = write_status()
        if status is not None:
            status.on_server = True

    def changed_elsewhere(self) -> bool:
        """Check whether others have written or the connection was lost since the last call.

        Return False while another thread writes.
        """
        if self._closed or not self._write_lock.acquire(blocking=False):
            return False
        try:
            with self._readable_errors():
                self._reconnect_if_lost()
                try:
                    self._exchange_notifications()
                except psycopg.Error:
                    self._writer.invalidate()
                    self._reconnect_if_lost()
            # Notifications may have been missed while the server was away.
            self._was_notified = self._was_notified or self._away
            self._away = False
        finally:
            self._write_lock.release()
        was_notified = self._was_notified
        self._was_notified = False
        return was_notified

    def _exchange_notifications(self) -> None:
        """Send pending notifications, and receive those of others."""
        # Any statement fetches the notifications of others.
        statement = _NOTIFY if self._must_notify else "SELECT 1"
        driver = driver_of(self._writer)
        presence = self._presence.due_message()
        with self._answer_within(driver, self._answer_seconds):
            if presence is not None:
                driver.execute("SELECT pg_notify(%s, %s)", [_PRESENCE_CHANNEL, presence])
            driver.execute(statement, prepare=False)
        self._must_notify = False

    @property
    def _answer_timeout(self) -> float | None:
        """The seconds that the caller waits for an answer; None without limit.

        Reads outside the event loop have no limit, because they may take long.
        """
        seconds = self._answer_seconds
        # The event loop must not be blocked for long, and a queued change need not wait longer.
        if seconds is None or _blocks_event_loop() or (self._may_queue and self.within):
            return seconds
        # A write outside the event loop blocks no key presses, so it may wait longer.
        return None if write_status() is None else 2 * seconds

    def checkpoint(self) -> None:
        """Do nothing, because there is no file."""

    def check(self) -> None:
        """Check that the server answers. The server checks its own files."""
        with self.reading() as connection:
            connection.exec_driver_sql("SELECT 1")

    def copy_to(self, target: Path) -> None:
        """Copy the whole workspace into a new SQLite file."""
        self.check_nothing_hidden()
        with (
            new_file(target) as draft,
            closing(SqliteFile(draft, create=True)) as copy,
            self.reading() as source,
            copy.writing(without_savepoints=True) as connection,
        ):
            copy_rows(source, connection)

    def move_to(self, target: Path) -> None:
        raise WorkspaceError(f"{self.name}: stays on its server; copy it with: workspace backup")

    def _make_engine(self, *, reads_only: bool) -> Engine:
        """Make SQLAlchemy's engine for reading or for writing."""
        engine = create_engine(
            "postgresql+psycopg://",
            creator=lambda: self._new_connection(reads_only=reads_only),
            # A server has only some hundred connections for all programs.
            pool_size=1,
            max_overflow=8,
            use_native_hstore=False,
        )
        if reads_only:
            event.listen(engine, "begin", _begin_reading)
        else:
            # A reading statement in a writing transaction must see the effect of the held calls.
            event.listen(engine, "do_execute", self._send_before_reading)
            event.listen(engine, "do_executemany", self._send_before_reading)
        event.listen(engine, "do_execute", self._execute_statement)
        event.listen(engine, "do_executemany", self._execute_many)
        return engine

    def _send_before_reading(self, *_: Any) -> None:
        """Begin the transaction and send the held calls, before a statement reads."""
        if self._held_calls.calls is None:  # the transaction holds no calls
            return
        calls = self._held_calls.calls
        self._held_calls.calls = None
        self._writer.exec_driver_sql("BEGIN")
        if calls:
            self._writer.exec_driver_sql(*_joined_calls(calls))

    def _send_held_calls(self, calls: Sequence[ServerCall]) -> None:
        """Send the held calls of a member as one statement, which is a transaction by itself."""
        driver = driver_of(self._writer)
        seconds = self._answer_timeout
        statement, values = _joined_calls(calls)
        with _reported_wait():
            try:
                with self._answer_within(driver, seconds):
                    driver.execute(statement, values, prepare=True)
            except psycopg.Error:
                if driver.closed:
                    self._writer.invalidate()
                raise

    @contextmanager
    def _answer_within(
        self, connection: _WatchedConnection, seconds: float | None
    ) -> Iterator[None]:
        """Close a connection that gets no answer in time, so that its calls fail."""
        if seconds is None:
            yield
            return

        connection.answers_until = time.monotonic() + seconds
        try:
            yield
        finally:
            connection.answers_until = None

    def _mark_away(self) -> None:
        self._away = True

    def _execute_statement(self, cursor: Any, statement: str, values: Any, _: Any) -> bool | None:
        """Execute a statement for SQLAlchemy, within the time that the caller waits."""
        if isinstance(cursor, psycopg.ServerCursor):
            return None  # SQLAlchemy executes it
        # A text without values may be several statements, which cannot be prepared.
        prepare = None if values else False
        with self._answer_within(cursor.connection, self._answer_timeout):
            cursor.execute(statement, values, prepare=prepare)
        return True  # SQLAlchemy must not execute it again

    def _execute_many(self, cursor: Any, statement: str, values: Any, _: Any) -> bool:
        with self._answer_within(cursor.connection, self._answer_timeout):
            cursor.executemany(statement, values)
        return True

    def _new_connection(self, *, reads_only: bool) -> _WatchedConnection:
        """Connect to the server and check its version; writers also listen to notifications."""
        seconds = self._answer_seconds
        timeout = {} if seconds is None else {"connect_timeout": ceil(seconds)}
        try:
            connection = _open_connection(self._parameters | timeout, self._password)
        except psycopg.OperationalError as error:
            self._away = True
            raise self._not_connected(error) from error
        connection.on_hang_up = self._mark_away
        try:
            self._prepare_connection(connection)
            if not reads_only:
                connection.add_notify_handler(
                    partial(self._receive_notification, connection.info.backend_pid)
                )
                connection.execute(f"LISTEN {_CHANNEL}; LISTEN {_PRESENCE_CHANNEL}", prepare=False)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare_connection(self, connection: _WatchedConnection) -> None:
        """Set the schemas of table names, and refuse a server that is too old."""
        version = connection.info.server_version // 10_000
        if version < _MIN_SERVER_VERSION:
            raise WorkspaceError(
                f"{self.name}: is PostgreSQL {version}; {_MIN_SERVER_VERSION} or newer is needed"
            )
        connection.execute(_CONNECT_STATEMENT, prepare=False)
        if self.member is not None and not self.member.sees_all:
            # Table names then stand for views, without the rows that the member may not see.
            connection.execute(rights.AT_CONNECT, prepare=False)

    def _receive_notification(self, own_pid: int, notify: psycopg.Notify) -> None:
        """Note a write or the presence of another program; ``own_pid`` is this connection's."""
        if notify.pid == own_pid:
            return
        if notify.channel == _PRESENCE_CHANNEL:
            self._presence.receive(notify.pid, notify.payload)
        else:
            self._was_notified = True

    def _create_database(self) -> None:
        """Create the database if the server has none of this name.

        Raises:
            WorkspaceError: The server cannot be reached, or refuses the connection.
        """
        try:
            _open_connection(self._parameters, self._password).close()
        except psycopg.OperationalError as error:
            # An existing database was refused for another reason.
            if not self._created_missing_database():
                raise self._not_connected(error) from error

    def _created_missing_database(self) -> bool:
        """Create the database; return False if it exists, or if this is unknown."""
        name = self._parameters.get("dbname")
        if name is None:
            return False
        parameters = {**self._parameters, "dbname": _MAINTENANCE_DATABASE}
        try:
            maintenance = _open_connection(parameters, self._password)
        except psycopg.OperationalError:
            return False
        with closing(maintenance) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, [name]).fetchone() is not None:
                return False
            statement = sql.SQL(
                "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
            )
            connection.execute(statement.format(sql.Identifier(name)))
        return True

    def _prepare_tables(self, *, create: bool) -> None:
        """Create missing tables if ``create`` is true, and migrate tables of an earlier version."""
        if self._stored_versions() is None:
            if not create:
                raise WorkspaceError(
                    f"{self.name}: there is no workspace in this database; make one with: "
                    f"mast-tui workspace create {self._url}"
                )
            self._create_tables()
        version = self._checked_version()
        if version < SCHEMA_VERSION:
            self._check_owner()
            with self._preparing_transaction():
                # PostgreSQL refuses to change tables that views depend on.
                had_team = rights.remove_rules(self._writer)
                # Another program may have migrated the tables while this one waited.
                migrate(self._writer, self._checked_version())
                self._writer.exec_driver_sql(_TURNS)
                if had_team:
                    rights.install_rules(self._writer)
                self._writer.exec_driver_sql(
                    f"UPDATE public.workspace_version SET schema_version = {SCHEMA_VERSION}"
                )

    def _check_owner(self) -> None:
        """Check that the user may migrate the tables of an old workspace."""
        query = (
            "SELECT pg_has_role(session_user, relowner, 'USAGE') FROM pg_class "
            "WHERE oid = 'public.workspace_version'::regclass"
        )
        if not driver_of(self._writer).execute(query).fetchone()[0]:
            raise WorkspaceError(
                f"{self.name}: the workspace has the format of an earlier version of mast-tui; the "
                "user who created it updates it with: mast-tui team list --workspace URL"
            )

    def _stored_versions(self) -> tuple[int, int] | None:
        """Return the application id and the version of the tables.

        Return None if the database has no workspace, zeros if the versions are not stored yet.
        """
        driver = driver_of(self._writer)
        if driver.execute("SELECT to_regclass('public.workspace_version')").fetchone()[0] is None:
            return None
        row = driver.execute("SELECT * FROM public.workspace_version").fetchone()
        return row or (0, 0)

    def _checked_version(self) -> int:
        application_id, version = self._stored_versions() or (0, 0)
        check_version(self.name, application_id=application_id, version=version)
        return version

    @contextmanager
    def _preparing_transaction(self) -> Iterator[None]:
        """Run the block in a transaction, while other programs that prepare tables wait."""
        self._create_turns()
        self._begin_without_retry(())  # takes the turn of the registers
        try:
            yield
            self._commit()
            self._end_transaction()
        except BaseException:
            self._roll_back()
            raise

    def _create_turns(self) -> None:
        """Create the table of turns, whose rows programs lock before they write."""
        driver = driver_of(self._writer)
        if driver.execute("SELECT to_regclass('public.turns')").fetchone()[0] is None:
            driver.execute(_TURNS, prepare=False)

    def _create_tables(self) -> None:
        """Create the tables of a workspace, unless another program created them meanwhile.

        Raises:
            WorkspaceError: The database has tables of something else.
        """
        with self._preparing_transaction():
            if self._stored_versions() is not None:
                return
            # The table of turns was created before this transaction.
            count_other_tables = (
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' "
                "AND tablename <> 'turns'"
            )
            if self._writer.exec_driver_sql(count_other_tables).scalar_one():
                # raises the error for a database that is not a workspace
                check_version(self.name, application_id=0, version=0)
            metadata.create_all(self._writer, checkfirst=False)
            self._writer.exec_driver_sql(
                "CREATE TABLE public.workspace_version "
                "(application_id BIGINT NOT NULL, schema_version BIGINT NOT NULL)"
            )
            self._writer.exec_driver_sql(
                f"INSERT INTO public.workspace_version VALUES ({APPLICATION_ID}, {SCHEMA_VERSION})"
            )

    def team(self) -> tuple[Member, ...]:
        with self.reading() as connection:
            return rights.members(connection)

    def check_may_change_team(self) -> None:
        if self.member is not None:
            raise WorkspaceError(
                f"{self.name}: only the user who created the workspace can change the team"
            )

    def add_member(self, new: Member) -> str | None:
        with self.writing(without_savepoints=True) as connection:
            return rights.add(connection, new)

    def remove_member(self, name: str) -> bool:
        with self.writing(without_savepoints=True) as connection:
            return rights.remove(connection, name)

    def shows_who_is_connected(self) -> bool:
        with self.reading() as connection:
            return rights.shows_who_is_connected(connection)

    def _workspace_error(self, error: BaseException) -> WorkspaceError:
        """Convert an error of the driver to an error with a message for the user."""
        assert isinstance(error, psycopg.Error)
        if _is_lost(error):
            return ServerAway(
                f"{self.name}: the connection to the server was lost; check whether your last "
                "change was saved before you repeat it"
            )
        state = error.sqlstate or ""
        if NOT_LATEST in str(error):
            return NotLatest(f"{self.name}: {BUSY}")
        # A change that may go into the outbox waits there, as if the server were away.
        if state == _LOCKED and self._may_queue:
            return ServerAway(f"{self.name}: {BUSY}")
        for beginning, advice in _ERROR_ADVICE:
            if state.startswith(beginning):
                return WorkspaceError(f"{self.name}: {advice}")
        message = error.diag.message_primary or str(error)
        return WorkspaceError(f"{self.name}: the server says: {message}; nothing was written")

    def _not_connected(self, error: psycopg.Error) -> WorkspaceError:
        """Return the error for a failed connection: the reason, and a remedy if one is known."""
        message = " ".join(str(error).split())
        if "no password supplied" in message:
            return PasswordNeeded(
                f"{self.name}: the server needs a password; put it into ~/.pgpass (or the file "
                "that PGPASSFILE names) or PGPASSWORD"
            )
        for part, advice in _REFUSAL_ADVICE:
            if part in message:
                return WorkspaceError(f"{self.name}: {advice}")
        advice = next((advice for part, advice in _AWAY_ADVICE if part in message), message)
        return ServerAway(f"{self.name}: no connection to the server: {advice}")


_LOCKED: Final = "55P03"
_ERROR_ADVICE: Final = (
    ("25006", "is read-only; nothing was written"),
    ("42501", "the server does not allow this user to do that; nothing was written"),
    ("53100", "the server's disk is full; nothing was written. Make room and try again"),
    ("53300", "the server has no connection left; close one, or raise max_connections"),
    ("55000", "annotators may not do that on a server; nothing was written. Ask the lead"),
    (_LOCKED, BUSY),
)
"""Error messages, by the beginning of the error code (SQLSTATE)."""

_REFUSAL_ADVICE: Final = (
    ("password authentication failed", "the server refuses the user or the password"),
    ('FATAL: role "', "the server has no such user; the workspace's owner adds one with team add"),
    (
        "does not exist",
        "the server has no such database; create it with mast-tui workspace create",
    ),
    ("no pg_hba.conf entry", "the server does not accept this user from this machine"),
    (
        "does not support SSL",
        "the server accepts no encrypted connection, and an unencrypted one to "
        "another machine needs an address that ends in ?sslmode=disable",
    ),
    (
        "certificate",
        "the server's certificate is not trusted; set its certificate authority with "
        "sslrootcert in the address",
    ),
)
"""Error messages for errors that a retry does not solve, by a part of libpq's message."""

_AWAY_ADVICE: Final = (
    ("too many", "the server has none left; close one, or raise max_connections"),
    ("refused", "no server answers there; is it running, and is the address right?"),
    ("No such file", "no server answers there; is it running, and is the address right?"),
    ("timeout", "no server answers there; is the address right, and is it reachable?"),
    ("resolve host", "this host name is unknown; is the address right?"),
    ("translate host name", "this host name is unknown; is the address right?"),
    ("starting up", "it is starting; try again in a moment"),
)


def parameters_of(url: str) -> dict[str, Any]:
    """Return the connection parameters in a URL.

    Raises:
        WorkspaceError: The text is not the URL of a database, or contains a password.
    """
    parameters = _libpq_parameters(url)
    if any(name in parameters for name in ("password", "sslpassword")):
        raise WorkspaceError(
            "a password in an address is visible to everyone who lists processes; leave it "
            "out: it is read from ~/.pgpass (or the file that PGPASSFILE names) or "
            "PGPASSWORD, or asked for"
        )
    if _is_elsewhere(parameters) and "sslmode" not in parameters and "PGSSLMODE" not in os.environ:
        parameters["sslmode"] = "require"
    defaults = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "mast-tui",
        "client_encoding": "UTF8",
        # A silently lost connection is noticed within half a minute.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 25_000,
    }
    return defaults | parameters


def _libpq_parameters(url: str) -> dict[str, Any]:
    """Return the connection parameters in a URL, as libpq reads it."""
    try:
        return conninfo_to_dict(url)
    except psycopg.Error as error:
        # libpq quotes the unreadable part, which may be a piece of a password.
        has_password = re.search(r"//[^/]*:[^/]*@|password", url, re.IGNORECASE)
        reason = "" if has_password else f" ({' '.join(str(error).split())})"
        raise WorkspaceError(
            f"not the address of a PostgreSQL database{reason}; write "
            "postgresql://USER@HOST/DATABASE, without a password"
        ) from None


def _is_elsewhere(parameters: Mapping[str, Any]) -> bool:
    """Check whether the server may be on another machine."""
    if "service" in parameters or "PGSERVICE" in os.environ:
        return True
    for name, variable in (("hostaddr", "PGHOSTADDR"), ("host", "PGHOST")):
        hosts = parameters.get(name) or os.environ.get(variable)
        if hosts:
            return not all(map(_is_local, str(hosts).split(",")))
    return False


def _is_local(host: str) -> bool:
    """Check whether a host is a socket or a name of this machine."""
    if not host or host[0] in "/@" or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _WatchedConnection(psycopg.Connection[Any]):
    """A connection that is closed if the server does not answer in time."""

    answers_until: float | None = None
    """The time to close it (``time.monotonic``), or None."""
    on_hang_up: Callable[[], None] | None = None
    """Called before the connection is closed for this reason."""

    def wait(self, gen: PQGen[Result], *args: Any, **kwargs: Any) -> Result:
        if self.answers_until is not None:
            gen = self._watch_steps(gen, self.answers_until)
        return super().wait(gen, *args, **kwargs)

    def _watch_steps(self, steps: PQGen[Result], until: float) -> PQGen[Result]:
        """Run the steps of the driver, and close the connection after the time ``until``.

        The driver yields the event that it waits for. It is sent the event that is ready, or 0
        after a short wait without an event.
        """
        try:
            awaited_event = next(steps)
            while True:
                ready_event = yield awaited_event
                if not ready_event and time.monotonic() > until:
                    self._hang_up()
                awaited_event = steps.send(ready_event)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _hang_up(self) -> None:
        """Shut down the socket, so that the waiting driver fails."""
        if self.on_hang_up is not None:
            self.on_hang_up()
        # The driver keeps its own descriptor, so only a copy may be closed.
        with (
            suppress(OSError, psycopg.Error),
            socket(fileno=os.dup(self.fileno())) as connection_socket,
        ):
            connection_socket.shutdown(SHUT_RDWR)


def _open_connection(parameters: Mapping[str, Any], password: str | None) -> _WatchedConnection:
    """Open a connection without automatic transactions."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, _EscapingDumper)
    adapters.register_loader("text", _UnescapingLoader)
    adapters.register_loader("varchar", _UnescapingLoader)
    # The server returns sums of integers as numeric; they are integers too.
    adapters.register_loader("numeric", IntLoader)
    password_parameter: dict[str, Any] = {} if password is None else {"password": password}
    return _WatchedConnection.connect(
        autocommit=True, context=_Context(adapters), **parameters, **password_parameter
    )


class _Context:
    """The conversion of values to and from the server."""

    connection = None

    def __init__(self, adapters: AdaptersMap) -> None:
        self.adapters = adapters


@contextmanager
def _reported_wait() -> Iterator[None]:
    """Show in the status of the current write that the block waits for other writers."""
    status = write_status()
    if status is not None:
        status.waits_for_others = True
    try:
        yield
    finally:
        if status is not None:
            status.waits_for_others = False


def _blocks_event_loop() -> bool:
    """Check whether the caller is in an event loop, where a wait blocks drawing and key presses."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _begin_reading(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _joined_calls(calls: Sequence[ServerCall]) -> tuple[str, Values]:
    """Join calls to one statement, in their order, and return its values too."""
    statement = ", ".join(call.expression for call in calls)
    return f"SELECT {statement}", tuple(value for call in calls for value in call.values)


def _turns_statement(annotators: Collection[str]) -> str:
    """Return a statement that lets no other program write for these annotators.

    Without annotators, it locks the row without a name, which is for the registers.
    """
    # Names are written in hexadecimal, because some characters mean a parameter in a prepared
    # statement.
    names = [name.encode("utf-8", "surrogatepass").hex() for name in sorted(annotators or ("",))]
    name_expressions = [f"convert_from(decode('{name}', 'hex'), 'UTF8')" for name in names]
    return f"SELECT public.take_turns(ARRAY[{', '.join(name_expressions)}])"


def _is_lost(error: BaseException | None) -> bool:
    """Check whether an error means that the connection is lost."""
    state = getattr(error, "sqlstate", None)
    is_connection_error = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return is_connection_error and (state is None or state.startswith(("08", "57P")))
