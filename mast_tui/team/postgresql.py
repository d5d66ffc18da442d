"""A workspace in a PostgreSQL database, for many programs on many machines at once.

Beside the tables of every workspace it has ``workspace_version``, one row that says what it is.
Whoever writes takes a turn first, which is a row of the table ``turns``: the one without a name for
registers, or, to add events of an annotator, the one of that annotator, as all that follows from
them is theirs alone. A row can be locked by those only who may write in its name.

A member of a team writes by calling functions. To add events, the calls are held until something is
read or the transaction ends, and then go to the server as one statement: a label takes one round
trip. What an event comes after is mostly known from the time before, and the function refuses an
event that is not the next one.

A text on a server can hold no NUL, so one is kept as two other characters (``_KEPT``).
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
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
from mast_tui.workspace.copying import copy_rows
from mast_tui.workspace.database import (
    BUSY,
    LOOK_FOR_SERVER,
    NOT_LATEST,
    OWN_ONLY,
    READS_REGISTERS,
    WRITES_BY_CALLS,
    Database,
    Held,
    NotLatest,
    ServerCall,
    Values,
    driver_of,
    sees_own_only,
)
from mast_tui.workspace.migration import migrate
from mast_tui.workspace.opening import check_version
from mast_tui.workspace.outbox import Outbox
from mast_tui.workspace.presence import Presence
from mast_tui.workspace.records import Member, Role
from mast_tui.workspace.schema import APPLICATION_ID, SCHEMA_VERSION, metadata
from mast_tui.workspace.sqlite_file import SqliteFile, new_file
from mast_tui.writes import deadline, pause, write_status

Result = TypeVar("Result")

_OLDEST: Final = 13
"""The first version of the server that is known to do."""

_CONNECT_SECONDS: Final = 10
_ANSWERS_WITHIN: Final = 4.0
"""Seconds for which who has an outbox waits for an answer."""

_LOCK_SECONDS: Final = 30
"""How long the server waits for whoever writes."""

_TELL_EVERY: Final = 0.5
"""Seconds between two words to other programs that something was written, where much is."""

_CHANNEL: Final = "mast_tui"
_WHEREABOUTS: Final = "mast_tui_presence"
_TELL: Final = f"NOTIFY {_CHANNEL}"
_TELL_CALL: Final = ServerCall("pg_notify(%s, '')", (_CHANNEL,))
_MAINTENANCE: Final = "postgres"
"""The database from which others are made."""

_AT_CONNECT: Final = "SET jit = off; SET search_path = public"
"""What each connection begins with. The server's own search path begins with the schema that is
named like the user: for the user ``team`` that is the one of the team's tables."""

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
"""The turns of those who write. A team has a function of its own, which checks whose turn it is."""


class _Escaped(StrDumperUnknown):
    """Texts on their way to the server."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_escaped(obj))


class _Restored(Loader):
    """Texts as they come from the server."""

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        if _SIGN in text:
            text = text.replace(_KEPT["\0"], "\0").replace(_KEPT[_SIGN], _SIGN)
        return text


_SIGN: Final = "\x1a"
_KEPT: Final[Mapping[str, str]] = {_SIGN: _SIGN + "S", "\0": _SIGN + "0"}
"""How a text is kept in which such a character stands."""


def _escaped(said: str) -> str:
    if "\0" in said or _SIGN in said:
        said = said.replace(_SIGN, _KEPT[_SIGN]).replace("\0", _KEPT["\0"])
    return said


@compiles(sqlite.dml.OnConflictDoNothing, "postgresql")
def _do_nothing(clause: sqlite.dml.OnConflictDoNothing, compiler: SQLCompiler, **rest: Any) -> str:
    """SQLite's words for an upsert, of which its dialect has taken over the server's."""
    same = postgresql.dml.OnConflictDoNothing(index_elements=clause.inferred_target_elements)
    return compiler.process(same, **rest)


@compiles(sqlite.dml.OnConflictDoUpdate, "postgresql")
def _do_update(clause: sqlite.dml.OnConflictDoUpdate, compiler: SQLCompiler, **rest: Any) -> str:
    same = postgresql.dml.OnConflictDoUpdate(
        index_elements=clause.inferred_target_elements, set_=clause.update_values_to_set
    )
    return compiler.process(same, **rest)


class Server(Database):
    """A workspace in a database of a server."""

    driver_error = psycopg.Error

    def __init__(self, url: str, *, create: bool = False, password: str | None = None) -> None:
        """Connect to it.

        Args:
            url: ``postgresql://USER@HOST/DATABASE``, as libpq reads it, without a password.
            create: Make the tables where there are none, and the database.
            password: What the person has typed; else libpq looks for one where it always does.

        Raises:
            PasswordNeeded: The server wants a password, and none was found.
            WorkspaceError: It cannot be reached or used, in words.
        """
        super().__init__(None)
        self._url = url
        self._parameters = parameters_of(url)
        self._password = password
        self._heard = self._untold = False
        self._held = Held()
        self._told = 0.0
        self._answers_within: float | None = None
        """Seconds after which a server that does not answer counts as away, None for any."""
        self._keeps_for: str | None = None
        """The annotator whose changes wait in an outbox."""
        self._can_wait = False
        """Whether all that is written now is theirs."""
        self._away = False
        self._outbox: Outbox | None = None
        self.presence = self._presence = Presence()
        self._readers = self._engine(reads_only=True)
        self._writers = self._engine(reads_only=False)
        self._writers.update_execution_options(held=self._held)
        with self._in_words():
            if create:
                self._make_database()
            self._writer = self._writers.connect()
            try:
                self._prepare(create=create)
                self.member = rights.member(self._writer)
                self._set_up_member()
            except BaseException:
                self._writer.close()
                self._writers.dispose()
                raise

    def _set_up_member(self) -> None:
        member = self.member
        if member is None:
            return
        options = dict(WRITES_BY_CALLS)
        if member.role is not Role.LEAD:
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
        if self._closed:
            return
        self._closing = True
        mine = self._turn.acquire(timeout=_CONNECT_SECONDS)
        try:
            self._closed = True
            if mine:
                with suppress(psycopg.Error, DBAPIError):
                    if self._untold and not self._writer.invalidated:
                        self._ask_server()
                    self._writer.close()
                self._writers.dispose()
            self._readers.dispose()
        finally:
            if mine:
                self._turn.release()

    def outbox(self, folder: Path, annotator: str, last_seq: int) -> Outbox:
        """From here on nobody at a screen waits long for a server that does not answer."""
        found = Outbox(folder, self._url, annotator, last_seq)
        self._answers_within, self._keeps_for = _ANSWERS_WITHIN, annotator
        self._outbox = found
        return found

    @property
    def away(self) -> bool:
        """So it is until all that waits is sent; whoever reckons with all of it is refused."""
        outbox = self._outbox
        if outbox is None or not outbox.known.ready or not (self._away or outbox.waiting):
            return False
        at_screen = write_status() is not None or _blocks_event_loop()
        return at_screen or get_ident() in self.content

    # Transactions

    @property
    def _waits_in_vain(self) -> bool:
        return self._away and self.away

    def _reader(self) -> AbstractContextManager[Connection]:
        """A connection to the server, or to what was read ahead while it is away."""
        tried = False
        while not self.away:
            try:
                return self._reading_connection()
            except DBAPIError as error:
                if tried or not _is_lost(error.orig):
                    raise
                tried = True  # the one that was kept has gone meanwhile
            except ServerAway:
                if not self.away:
                    raise
        assert self._outbox is not None
        return self._outbox.known.reading()

    def _reading_connection(self) -> Connection:
        if self._away and self._answers_within is not None and _blocks_event_loop():
            # Whoever watches tells when it is back.
            raise ServerAway(f"{self.name}: no connection to the server: it does not answer now")
        connection = self._readers.connect()
        try:
            connection.begin()
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, whose: Collection[str]) -> None:
        if whose:  # who adds events tries again by themselves
            self._begin_at_once(whose)
            return
        until = deadline()
        while True:
            try:
                self._begin_at_once(whose)
                return
            except (DBAPIError, ServerAway) as error:
                lost = isinstance(error, ServerAway) or _is_lost(error.orig)
                # Who watches whether it is back need not wait here, with keys waiting behind.
                if not lost or time.monotonic() > until or self._answers_within is not None:
                    raise
            pause(LOOK_FOR_SERVER)
            self._check_not_closing()

    def _begin_at_once(self, whose: Collection[str]) -> None:
        self._connect_again()
        self._can_wait = list(whose) == [self._keeps_for]
        try:
            self._limit_waiting()
            if whose and self.member is not None:
                self._held.calls = []
                return
            beginning = ["BEGIN"]
            if not sees_own_only(self._writer):  # annotators never take the registers' turn
                beginning.append(_turns(whose))
            with _waiting_for_others():
                self._run("; ".join(beginning))
        except BaseException:
            self._take_back()
            raise

    def _limit_waiting(self) -> None:
        """Have the server wait for locks as long as this transaction may."""
        seconds: float = _LOCK_SECONDS
        if self._can_wait and self._answers_within is not None:
            # Sooner than this side gives up, so that no lock is waited for in vain.
            seconds = self._answers_within / 2
        if self._writer.info.get("lock_seconds") != seconds:
            self._run(f"SET lock_timeout = '{seconds}s'")
            self._writer.info["lock_seconds"] = seconds

    def _connect_again(self) -> None:
        """Have a connection that writes, where the last one was lost."""
        if not self._writer.invalidated:
            return
        again = self._writers.connect()
        self._writer.close()
        self._writer = again
        self._heard = True  # whatever was said meanwhile

    def _take_back(self) -> None:
        self._held.calls = None
        with suppress(DBAPIError):  # a lost connection has taken it back
            super()._take_back()

    def _commit(self) -> None:
        tell = time.monotonic() - self._told > _TELL_EVERY
        self._untold = True
        calls, self._held.calls = self._held.calls, None
        if calls is None:
            self._run("; ".join(["COMMIT", *([_TELL] if tell else [])]))
        elif calls:
            self._call_held([*calls, *([_TELL_CALL] if tell else [])])
        if tell:
            self._told, self._untold = time.monotonic(), False

    def _run(self, statement: str) -> object:
        return self._writer.exec_driver_sql(statement)

    def _in_transaction(self) -> bool:
        if self._writer.invalidated:
            return False
        status = driver_of(self._writer).info.transaction_status
        return bool(status != psycopg.pq.TransactionStatus.IDLE)

    # The whole of it

    def check_there(self) -> None:
        """A server that is away is waited for, and whatever is waited for is a server's affair."""
        status = write_status()
        if status is not None:
            status.on_server = True

    def changed_elsewhere(self) -> bool:
        if self._closed or not self._turn.acquire(blocking=False):
            return False
        try:
            with self._in_words():
                self._connect_again()
                try:
                    self._ask_server()
                except psycopg.Error:
                    self._writer.invalidate()
                    self._connect_again()
            self._heard, self._away = self._heard or self._away, False
        finally:
            self._turn.release()
        heard, self._heard = self._heard, False
        return heard

    def _ask_server(self) -> None:
        """Tell what was not told yet, and take what others have told."""
        statement = _TELL if self._untold else "SELECT 1"
        driver, said = driver_of(self._writer), self._presence.to_say()
        with self._answering(driver, self._answers_within):
            if said is not None:
                driver.execute("SELECT pg_notify(%s, %s)", [_WHEREABOUTS, said])
            driver.execute(statement, prepare=False)
        self._untold = False

    @property
    def _patience(self) -> float | None:
        """Seconds for which the caller waits for an answer, None for as long as it takes.

        Whoever looks through very much does that beside the screen, and it may take long.
        """
        seconds = self._answers_within
        if seconds is None or _blocks_event_loop() or (self._can_wait and self.within):
            return seconds
        return None if write_status() is None else 2 * seconds

    def checkpoint(self) -> None:
        """There is no file."""

    def check(self) -> None:
        """The server looks after its own files; whether it answers is all there is to see."""
        with self.reading() as connection:
            connection.exec_driver_sql("SELECT 1")

    def copy_to(self, target: Path) -> None:
        self.check_sees_all()
        with (
            new_file(target) as draft,
            closing(SqliteFile(draft, create=True)) as copy,
            self.reading() as source,
            copy.writing(whole=True) as connection,
        ):
            copy_rows(source, connection)

    def move_to(self, target: Path) -> None:
        raise WorkspaceError(f"{self.name}: stays on its server; copy it with: workspace backup")

    # Connections

    def _engine(self, *, reads_only: bool) -> Engine:
        engine = create_engine(
            "postgresql+psycopg://",
            creator=lambda: self._connect(reads_only=reads_only),
            # Servers have some hundred connections for everybody.
            pool_size=1,
            max_overflow=8,
            use_native_hstore=False,
        )
        if reads_only:
            event.listen(engine, "begin", _begin_reading)
        else:
            event.listen(engine, "do_execute", self._send_first)
            event.listen(engine, "do_executemany", self._send_first)
        event.listen(engine, "do_execute", self._execute)
        event.listen(engine, "do_executemany", self._execute_many)
        return engine

    def _send_first(self, *_: Any) -> None:
        """Begin the transaction, and make the calls that were held, before something is read."""
        if self._held.calls is None:
            return
        calls, self._held.calls = self._held.calls, None
        self._writer.exec_driver_sql("BEGIN")
        if calls:
            self._writer.exec_driver_sql(*_joined(calls))

    def _call_held(self, calls: Sequence[ServerCall]) -> None:
        """Make the calls that were held, in one statement that is a transaction by itself."""
        driver, seconds = driver_of(self._writer), self._patience
        statement, values = _joined(calls)

        with _waiting_for_others():
            try:
                with self._answering(driver, seconds):
                    driver.execute(statement, values, prepare=True)
            except psycopg.Error:
                if driver.closed:
                    self._writer.invalidate()
                raise

    def _send(self, cursor: Any, step: Callable[[], object]) -> None:
        """Carry out a step that the server answers, for as long as the caller waits."""
        with self._answering(cursor.connection, self._patience):
            step()

    @contextmanager
    def _answering(self, connection: _WatchedConnection, seconds: float | None) -> Iterator[None]:
        """Hang up where the server has not answered by then: what waits for it is told at once."""
        if seconds is None:
            yield
            return

        connection.answers_until = time.monotonic() + seconds
        try:
            yield
        finally:
            connection.answers_until = None

    def _note_hung_up(self) -> None:
        self._away = True

    def _execute(self, cursor: Any, statement: str, values: Any, _: Any) -> bool | None:
        if isinstance(cursor, psycopg.ServerCursor):
            return None  # as it is
        # What has no values may be several statements, which cannot be prepared.
        prepare = None if values else False
        self._send(cursor, lambda: cursor.execute(statement, values, prepare=prepare))
        return True

    def _execute_many(self, cursor: Any, statement: str, values: Any, _: Any) -> bool:
        self._send(cursor, lambda: cursor.executemany(statement, values))
        return True

    def _connect(self, *, reads_only: bool) -> _WatchedConnection:
        seconds = self._answers_within
        bound = {} if seconds is None else {"connect_timeout": ceil(seconds)}
        try:
            connection = _connect(self._parameters | bound, self._password)
        except psycopg.OperationalError as error:
            self._away = True
            raise self._not_connected(error) from error
        connection.when_hung_up = self._note_hung_up
        try:
            version = connection.info.server_version // 10_000
            if version < _OLDEST:
                raise WorkspaceError(
                    f"{self.name}: is PostgreSQL {version}; {_OLDEST} or newer is needed"
                )
            connection.execute(_AT_CONNECT, prepare=False)
            if self.member is not None and not self.member.sees_all:
                connection.execute(rights.AT_CONNECT, prepare=False)
            if not reads_only:
                own = connection.info.backend_pid

                def hear(notify: psycopg.Notify) -> None:
                    if notify.pid == own:
                        return
                    if notify.channel == _WHEREABOUTS:
                        self._presence.hear(notify.pid, notify.payload)
                    else:
                        self._heard = True

                connection.add_notify_handler(hear)
                connection.execute(f"LISTEN {_CHANNEL}; LISTEN {_WHEREABOUTS}", prepare=False)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_database(self) -> None:
        """Make the database where the server has none of this name."""
        try:
            _connect(self._parameters, self._password).close()
        except psycopg.OperationalError as error:
            name = self._parameters.get("dbname")
            if name is None:
                raise self._not_connected(error) from error
            elsewhere = {**self._parameters, "dbname": _MAINTENANCE}
            try:
                maintenance = _connect(elsewhere, self._password)
            except psycopg.OperationalError:
                raise self._not_connected(error) from error
            with closing(maintenance) as connection:
                known = connection.execute(
                    "SELECT 1 FROM pg_database WHERE datname = %s", [name]
                ).fetchone()
                if known is not None:
                    raise self._not_connected(error) from error
                connection.execute(
                    sql.SQL(
                        "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' "
                        "LC_COLLATE 'C' LC_CTYPE 'C'"
                    ).format(sql.Identifier(name))
                )

    # The tables

    def _prepare(self, *, create: bool) -> None:
        if self._versions() is None:
            if not create:
                raise WorkspaceError(
                    f"{self.name}: there is no workspace in this database; make one with: "
                    f"mast-tui workspace create {self._url}"
                )
            self._create_tables()
        version = self._checked_version()
        if version < SCHEMA_VERSION:
            self._check_owner()
            with self._preparing():
                there = rights.lift(self._writer)
                # Another program may have been quicker while this one waited for its turn.
                migrate(self._writer, self._checked_version())
                self._writer.exec_driver_sql(_TURNS)
                if there:
                    rights.keep(self._writer)
                self._writer.exec_driver_sql(
                    f"UPDATE public.workspace_version SET schema_version = {SCHEMA_VERSION}"
                )

    def _check_owner(self) -> None:
        """Raise ``WorkspaceError`` for a user who may not change the tables of an old workspace."""
        owns = (
            "SELECT pg_has_role(session_user, relowner, 'USAGE') FROM pg_class "
            "WHERE oid = 'public.workspace_version'::regclass"
        )
        if not driver_of(self._writer).execute(owns).fetchone()[0]:
            raise WorkspaceError(
                f"{self.name}: the workspace is of an earlier version of mast-tui; whoever made it "
                "brings it up to date with: mast-tui team list --workspace URL"
            )

    def _versions(self) -> tuple[int, int] | None:
        driver = driver_of(self._writer)
        if driver.execute("SELECT to_regclass('public.workspace_version')").fetchone()[0] is None:
            return None
        row = driver.execute("SELECT * FROM public.workspace_version").fetchone()
        return row or (0, 0)

    def _checked_version(self) -> int:
        application_id, version = self._versions() or (0, 0)
        check_version(self.name, application_id=application_id, version=version)
        return version

    @contextmanager
    def _preparing(self) -> Iterator[None]:
        self._make_turns()
        self._begin_at_once(())
        try:
            yield
            self._commit()
            self._end_transaction()
        except BaseException:
            self._take_back()
            raise

    def _make_turns(self) -> None:
        """Make the table of turns, by which programs that prepare tables wait for each other."""
        driver = driver_of(self._writer)
        if driver.execute("SELECT to_regclass('public.turns')").fetchone()[0] is None:
            driver.execute(_TURNS, prepare=False)

    def _create_tables(self) -> None:
        with self._preparing():
            if self._versions() is not None:
                return
            tables = (
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' "
                "AND tablename <> 'turns'"
            )
            if self._writer.exec_driver_sql(tables).scalar_one():
                check_version(self.name, application_id=0, version=0)
            metadata.create_all(self._writer, checkfirst=False)
            self._writer.exec_driver_sql(
                "CREATE TABLE public.workspace_version "
                "(application_id BIGINT NOT NULL, schema_version BIGINT NOT NULL)"
            )
            self._writer.exec_driver_sql(
                f"INSERT INTO public.workspace_version VALUES ({APPLICATION_ID}, {SCHEMA_VERSION})"
            )

    # The team

    def team(self) -> tuple[Member, ...]:
        with self.reading() as connection:
            return rights.members(connection)

    def check_team_is_theirs(self) -> None:
        if self.member is not None:
            raise WorkspaceError(f"{self.name}: the team is up to who made the workspace")

    def add_member(self, new: Member) -> str | None:
        with self.writing(whole=True) as connection:
            return rights.add(connection, new)

    def remove_member(self, name: str) -> bool:
        with self.writing(whole=True) as connection:
            return rights.remove(connection, name)

    def shows_who_is_connected(self) -> bool:
        with self.reading() as connection:
            return rights.shows_who_is_connected(connection)

    # In words

    def _error(self, error: BaseException) -> WorkspaceError:
        assert isinstance(error, psycopg.Error)
        if _is_lost(error):
            return ServerAway(
                f"{self.name}: the connection to the server was lost; look whether your last "
                "change is there before you make it again"
            )
        state = error.sqlstate or ""
        if NOT_LATEST in str(error):
            return NotLatest(f"{self.name}: {BUSY}")
        if state == _LOCKED and self._can_wait:
            return ServerAway(f"{self.name}: {BUSY}")
        for beginning, advice in _ADVICE:
            if state.startswith(beginning):
                return WorkspaceError(f"{self.name}: {advice}")
        said = error.diag.message_primary or str(error)
        return WorkspaceError(f"{self.name}: the server says: {said}; nothing was written")

    def _not_connected(self, error: psycopg.Error) -> WorkspaceError:
        said = " ".join(str(error).split())
        if "no password supplied" in said:
            return PasswordNeeded(
                f"{self.name}: the server wants a password; put it into ~/.pgpass (or the file "
                "that PGPASSFILE names) or PGPASSWORD"
            )
        for part, advice in _REFUSED:
            if part in said:
                return WorkspaceError(f"{self.name}: {advice}")
        advice = next((advice for part, advice in _AWAY if part in said), said)
        return ServerAway(f"{self.name}: no connection to the server: {advice}")


_LOCKED: Final = "55P03"
_ADVICE: Final = (
    ("25006", "may not be written; nothing was kept"),
    ("42501", "the server lets this user not do that; nothing was written"),
    ("53100", "the server's disk is full; nothing was written. Make room and try again"),
    ("53300", "the server has no connection left; close one, or raise max_connections"),
    ("55000", "that is not an annotator's to do on a server; nothing was written. Ask the lead"),
    (_LOCKED, BUSY),
)
"""What to say of an error, by how its code begins (SQLSTATE)."""

_REFUSED: Final = (
    ("password authentication failed", "the server refuses the user or the password"),
    (
        "does not exist",
        "the server has no such database or user; mast-tui workspace create makes a database",
    ),
    ("no pg_hba.conf entry", "the server lets this user not in from here"),
    (
        "does not support SSL",
        "the server takes no encrypted connection, and a plain one to another "
        "machine is made only where the address ends in ?sslmode=disable",
    ),
    (
        "certificate",
        "the server's certificate is not one to trust; sslrootcert in the address names "
        "who vouches for it",
    ),
)
"""What to say where another try would end the same, by what libpq says."""

_AWAY: Final = (
    ("too many", "it has none left; close one, or raise max_connections"),
    ("refused", "no server answers there; is it running, and is the address right?"),
    ("No such file", "no server answers there; is it running, and is the address right?"),
    ("timeout", "no server answers there; is the address right, and is there a way to it?"),
    ("resolve host", "nothing has this name; is the address right?"),
    ("translate host name", "nothing has this name; is the address right?"),
    ("starting up", "it is starting; try again in a moment"),
)


def parameters_of(url: str) -> dict[str, Any]:
    """Return what libpq is told; raises ``WorkspaceError`` for an address that cannot be one."""
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error as error:
        # libpq quotes the part that it cannot read, which may be a piece of a password.
        has_password = re.search(r"//[^/]*:[^/]*@|password", url, re.IGNORECASE)
        reason = "" if has_password else f" ({' '.join(str(error).split())})"
        raise WorkspaceError(
            f"this is no address of a PostgreSQL database{reason}; write "
            "postgresql://USER@HOST/DATABASE, without a password"
        ) from None
    if any(name in found for name in ("password", "sslpassword")):
        raise WorkspaceError(
            "a password in an address is shown to everybody who lists processes; leave it out: "
            "it is taken from ~/.pgpass (or the file that PGPASSFILE names) or PGPASSWORD, or "
            "asked for"
        )
    if _is_elsewhere(found) and "sslmode" not in found and "PGSSLMODE" not in os.environ:
        found["sslmode"] = "require"
    defaults = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "mast-tui",
        "client_encoding": "UTF8",
        # A connection that is silently gone is noticed within half a minute.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 25_000,
    }
    return defaults | found


def _is_elsewhere(parameters: Mapping[str, Any]) -> bool:
    """Whether the server may be on another machine."""
    if "service" in parameters or "PGSERVICE" in os.environ:
        return True
    for name, variable in (("hostaddr", "PGHOSTADDR"), ("host", "PGHOST")):
        hosts = parameters.get(name) or os.environ.get(variable)
        if hosts:
            return not all(map(_is_here, str(hosts).split(",")))
    return False


def _is_here(host: str) -> bool:
    if not host or host[0] in "/@" or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _WatchedConnection(psycopg.Connection[Any]):
    """A connection that hangs up where the server has not answered in time."""

    answers_until: float | None = None
    """When to hang up (``time.monotonic``), None for never."""
    when_hung_up: Callable[[], None] | None = None

    def wait(self, gen: PQGen[Result], *args: Any, **kwargs: Any) -> Result:
        if self.answers_until is not None:
            gen = self._watched(gen, self.answers_until)
        return super().wait(gen, *args, **kwargs)

    def _watched(self, steps: PQGen[Result], until: float) -> PQGen[Result]:
        try:
            awaited = next(steps)
            while True:
                ready = yield awaited
                if not ready and time.monotonic() > until:
                    self._hang_up()
                awaited = steps.send(ready)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _hang_up(self) -> None:
        if self.when_hung_up is not None:
            self.when_hung_up()
        with suppress(OSError, psycopg.Error), socket(fileno=os.dup(self.fileno())) as way:
            way.shutdown(SHUT_RDWR)


def _connect(parameters: Mapping[str, Any], password: str | None) -> _WatchedConnection:
    """A connection on which transactions are begun by hand."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, _Escaped)
    adapters.register_loader("text", _Restored)
    adapters.register_loader("varchar", _Restored)
    # Sums of whole numbers are whole here, and have more bits there.
    adapters.register_loader("numeric", IntLoader)
    secret: dict[str, Any] = {} if password is None else {"password": password}
    return _WatchedConnection.connect(
        autocommit=True, context=_Context(adapters), **parameters, **secret
    )


class _Context:
    """What values become on their way to a server and back."""

    connection = None

    def __init__(self, adapters: AdaptersMap) -> None:
        self.adapters = adapters


@contextmanager
def _waiting_for_others() -> Iterator[None]:
    status = write_status()
    if status is not None:
        status.waits_for_others = True
    try:
        yield
    finally:
        if status is not None:
            status.waits_for_others = False


def _blocks_event_loop() -> bool:
    """Return whether nothing is drawn and no key handled while the caller waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _begin_reading(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _joined(calls: Sequence[ServerCall]) -> tuple[str, Values]:
    """Return the one statement that makes these calls, in their order, with its values."""
    statement = ", ".join(call.expression for call in calls)
    return f"SELECT {statement}", tuple(value for call in calls for value in call.values)


def _turns(whose: Collection[str]) -> str:
    """Return a statement that takes the turns of these annotators, or that of the registers."""
    # In hexadecimal digits, as the statement is prepared, where some characters mean a parameter.
    names = [name.encode("utf-8", "surrogatepass").hex() for name in sorted(whose or ("",))]
    listed = ", ".join(f"convert_from(decode('{name}', 'hex'), 'UTF8')" for name in names)
    return f"SELECT public.take_turns(ARRAY[{listed}])"


def _is_lost(error: BaseException | None) -> bool:
    """Whether an error says that the connection is gone."""
    state = getattr(error, "sqlstate", None)
    is_it = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return is_it and (state is None or state.startswith(("08", "57P")))
