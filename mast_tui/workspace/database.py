"""The tables of a workspace, in a file or on a server: transactions, and writing of many rows.

``sqlite_file`` holds the tables in one file, ``postgresql`` on a server.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, lru_cache
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from sqlalchemy import (
    ARRAY,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    CursorResult,
    Delete,
    Float,
    Integer,
    Select,
    Table,
    Text,
    any_,
    bindparam,
    func,
    select,
)
from sqlalchemy.exc import DBAPIError, ResourceClosedError

from mast_tui.errors import ServerAway, WorkspaceError
from mast_tui.workspace.records import Member
from mast_tui.writes import deadline, pause

if TYPE_CHECKING:
    from mast_tui.workspace.outbox import Outbox
    from mast_tui.workspace.presence import Presence

WRITER_POLL_SECONDS: Final = 0.01
"""Seconds between two checks whether another program or thread is still writing."""

LOOK_FOR_SERVER: Final = 0.25
"""Seconds between two attempts to reach a server that does not answer."""

BUSY: Final = (
    "another program has been writing to this workspace for too long; "
    "nothing was written. Close it, or try again"
)

_PARAMETERS: Final = 900
"""The most parameters of one call; not every SQLite accepts more than 999."""

_SERVER_ROWS: Final = 5000
"""Rows that go to a server in one call."""

Values = tuple[Any, ...]
"""The values of some columns of one row."""


class Database(ABC):
    """The tables of a workspace with their transactions, for use from any thread.

    Readers have their own read-only connections and never wait. Writers take turns on one
    connection. Errors of the driver become ``WorkspaceError``, also inside the blocks of
    ``reading`` and ``writing``.
    """

    driver_error: ClassVar[type[Exception]]
    """The type of the driver's errors."""
    _writer: Connection

    def __init__(self, path: Path | None) -> None:
        self.path = path
        """The file; None on a server and in memory."""
        self.traces_folder: Path | None = None
        """The folder to which the paths of traces are relative; None on a server and in memory."""
        self.presence: Presence | None = None
        """The open traces of other members; None for a file."""
        self.last_write = time.monotonic()
        """The time at which the last transaction of this program ended."""
        self.member: Member | None = None
        """The connected member of a team; None for a file, and for the owner of a server."""
        self.latest: LatestEvent | None = None
        """The last event that this program wrote on a server, so that it need not be read."""
        self.cached_readers: set[int] = set()
        """The threads that read the local copy while the server does not answer."""
        self._write_lock = Lock()
        self._writing_thread: int | None = None
        """The thread in a transaction; None if there is none."""
        self._without_savepoints = False
        """True if the whole transaction must end once a block inside it raises."""
        self._nested_block_failed = False
        """True if a block inside a transaction without savepoints has raised."""
        self._closed = False
        self._closing = False
        """True once ``close`` was called, so that waiting writers give up."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the workspace in messages."""

    @abstractmethod
    def close(self) -> None:
        """Close the workspace; later uses raise. Committed data is safe without this."""

    @property
    def within(self) -> bool:
        """True if the caller is within a transaction."""
        return self._writing_thread == get_ident()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a read-only connection that sees one state of the workspace throughout.

        Inside a transaction, this is the connection of the transaction.
        """
        with self._readable_errors():
            self._check_open()
            if self.within:
                yield self._writer
            else:
                with self._open_reader() as connection:
                    yield connection

    @contextmanager
    def writing(
        self, *, without_savepoints: bool = False, annotators: Collection[str] = ()
    ) -> Iterator[Connection]:
        """Yield a connection in a transaction, which is rolled back if the block raises.

        Inside a transaction, the block becomes a savepoint: if it raises, only its own changes are
        rolled back. Waits for other writers until ``writes.deadline``.

        Args:
            without_savepoints: True for a transaction without savepoints, which is much faster with
                SQLite. It must end if a nested block raises.
            annotators: The annotators whose events are added, if nothing else is written. Other
                annotators can then write to a server at the same time.

        Raises:
            WorkspaceGone: The open file is no longer at its path.
        """
        with self._readable_errors():
            self._check_open()
            if self.within:
                nested = self._note_failure() if self._without_savepoints else self._savepoint()
                with nested:
                    yield self._writer
                return
            self.check_exists()
            with self._taking_turn():
                self._check_open()  # again, as another thread may have closed it during the wait
                self._begin_transaction(annotators)
                self._without_savepoints = without_savepoints
                try:
                    yield self._writer
                    if self._nested_block_failed:
                        raise AssertionError("a failed part has to end the transaction")
                    self._commit()
                    self._end_transaction()
                except BaseException:
                    self._roll_back()
                    raise
                finally:
                    self._without_savepoints = False
                    self._nested_block_failed = False
                    self.last_write = time.monotonic()

    @contextmanager
    def _taking_turn(self) -> Iterator[None]:
        """Wait until no other thread of this program writes, and keep others waiting."""
        give_up_at = deadline()
        while not self._write_lock.acquire(blocking=False):
            if time.monotonic() > give_up_at:
                raise WorkspaceError(f"{self.name}: {BUSY}")
            pause(WRITER_POLL_SECONDS)
            self._check_not_closing()
            if self._waits_for_silent_server:
                raise ServerAway(f"{self.name}: does not answer; nothing was written")
        self._writing_thread = get_ident()
        try:
            yield
        finally:
            self._writing_thread = None
            self._write_lock.release()

    @property
    def _waits_for_silent_server(self) -> bool:
        """True if the writing thread waits for a server that does not answer."""
        return False

    @contextmanager
    def _note_failure(self) -> Iterator[None]:
        """Record that the block has raised, so that the transaction cannot be committed."""
        try:
            yield
        except BaseException:
            self._nested_block_failed = True
            raise

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        """Roll back only the changes of the block if it raises.

        A transaction has many such blocks, so the statements bypass SQLAlchemy.
        """
        self._run_statement("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._in_transaction():  # a full disk ends the whole transaction at once
                self._run_statement("ROLLBACK TO part")
                self._run_statement("RELEASE part")
            raise
        self._run_statement("RELEASE part")

    @abstractmethod
    def _open_reader(self) -> AbstractContextManager[Connection]:
        """Open a connection for one read."""

    @abstractmethod
    def _begin_transaction(self, annotators: Collection[str]) -> None:
        """Begin a transaction in which no other writer can change what was read."""

    def _roll_back(self) -> None:
        transaction = self._writer.get_transaction()
        if transaction is not None:
            transaction.rollback()

    def _end_transaction(self) -> None:
        """End SQLAlchemy's transaction after the driver has committed it."""
        transaction = self._writer.get_transaction()
        if transaction is not None:
            transaction.commit()

    @abstractmethod
    def _commit(self) -> None:
        """Commit the transaction."""

    @abstractmethod
    def _run_statement(self, statement: str) -> object:
        """Run a statement without values in the transaction."""

    @abstractmethod
    def _in_transaction(self) -> bool:
        """Return whether the transaction is still open."""

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Convert errors of the database's driver in the block to ``WorkspaceError``."""
        try:
            yield
        except DBAPIError as error:
            raise self._workspace_error(error.orig or error) from error
        except self.driver_error as error:
            raise self._workspace_error(error) from error
        except ResourceClosedError as error:
            raise WorkspaceError(f"{self.name}: the workspace is closed") from error
        except UnicodeEncodeError as error:
            surrogate = f"U+{ord(error.object[error.start]):X}"
            raise WorkspaceError(
                f"{self.name}: a text contains half a character ({surrogate}) and cannot be saved; "
                "nothing was written"
            ) from error

    @abstractmethod
    def _workspace_error(self, error: BaseException) -> WorkspaceError:
        """Convert an error of the driver to one with a message for users."""

    def _check_open(self) -> None:
        if self._closed:
            raise WorkspaceError(f"{self.name}: the workspace is closed")

    def _check_not_closing(self) -> None:
        if self._closing:
            raise WorkspaceError(f"{self.name}: the workspace is closed")

    @property
    def away(self) -> bool:
        """True if the server does not answer, so that reads use the local copy."""
        return False

    def outbox(self, folder: Path, annotator: str, last_seq: int) -> Outbox | None:
        """Return the outbox for changes while the server does not answer.

        Args:
            folder: The folder of the outbox's file.
            annotator: The annotator whose changes it keeps.
            last_seq: The sequence number of the annotator's last event.

        Returns:
            The outbox; None for a file, which needs none.
        """
        return None  # the class for servers returns an outbox

    @abstractmethod
    def check_exists(self) -> None:
        """Raise ``WorkspaceGone`` if the open files are no longer at their paths."""

    @abstractmethod
    def changed_elsewhere(self) -> bool:
        """Return whether another program has written since the last call.

        While this program writes, the result is False, and a later call reports the change.
        """

    @abstractmethod
    def checkpoint(self) -> None:
        """Move all committed data into the main file, so that a copy of this file is complete."""

    @abstractmethod
    def check(self) -> None:
        """Raise ``WorkspaceError`` if the tables are damaged."""

    @abstractmethod
    def copy_to(self, target: Path) -> None:
        """Copy all committed data into a new file that other users cannot read.

        Args:
            target: The path of the new file.

        Raises:
            WorkspaceError: The copy cannot be written; no file is left at ``target``.
        """

    @abstractmethod
    def move_to(self, target: Path) -> None:
        """Copy everything into a new file after the open file was deleted, and continue with it."""

    def check_nothing_hidden(self) -> None:
        """Raise ``WorkspaceError`` if a server hides other people's work from this member."""
        if self.member is not None and not self.member.sees_all:
            raise WorkspaceError(
                f"{self.name}: the server shows annotators only their own work, but this needs "
                "everyone's; ask the lead"
            )

    def team(self) -> tuple[Member, ...]:
        """Return the members of the team by name.

        Raises:
            WorkspaceError: The workspace is a file.
        """
        raise self._no_team()

    def check_may_change_team(self) -> None:
        """Raise ``WorkspaceError`` if the connected user may not change the team."""
        raise self._no_team()

    def add_member(self, new: Member) -> str | None:
        """Add a member; see ``Workspace.add_member``."""
        raise self._no_team()

    def remove_member(self, name: str) -> bool:
        """Remove a member; see ``Workspace.remove_member``."""
        raise self._no_team()

    def shows_who_is_connected(self) -> bool:
        """Return whether members can see which other members are connected to the server."""
        raise self._no_team()

    def _no_team(self) -> WorkspaceError:
        return WorkspaceError(
            f"{self.name}: is a file, which cannot have a team; copy it to a server: mast-tui "
            "workspace copy FILE postgresql://USER@HOST/DATABASE"
        )


def traces_folder_of(connection: Connection) -> Path | None:
    """Return the folder of the relative paths of traces; None on a server and in memory."""
    folder: Path | None = connection.get_execution_options().get("traces_folder")
    return folder


def is_on_server(connection: Connection) -> bool:
    """Return whether the tables are on a server."""
    return connection.dialect.name == "postgresql"


class ServerCall(NamedTuple):
    """A call of a function of the server: an SQL expression and the values of its parameters."""

    expression: str
    values: Values


class HeldCalls:
    """The calls of a member's transaction that are sent in one statement when it ends."""

    calls: list[ServerCall] | None = None
    """The calls so far; None if each call is sent at once."""


class LatestEvent(NamedTuple):
    """The last chained event of an annotator that this program has written."""

    annotator: str
    trace_id: str | None
    taxonomy: str | None
    seq: int
    chain_hash: str


class NotLatest(WorkspaceError):
    """Another program has added an event of the same annotator meanwhile."""


NOT_LATEST: Final = "another program was first"
"""A part of the server's error message if another program was first to add an event."""


OWN_ONLY: Final[Mapping[str, bool]] = {"own_only": True}
"""The option of an annotator's connections, in which the tables are views (``team.rights``)."""

READS_REGISTERS: Final[Mapping[str, bool]] = {"reads_registers": True}
"""The option of members other than leads, who cannot change stored traces and taxonomies."""

CALLS_STORED_FUNCTIONS: Final[Mapping[str, bool]] = {"calls_stored_functions": True}
"""The option of all members, who write only through stored functions (``team.rights``)."""


def sees_own_only(connection: Connection) -> bool:
    """Return whether the server shows only the visible part of an annotator."""
    return "own_only" in connection.get_execution_options()


def reads_registers(connection: Connection) -> bool:
    """Return whether the connection may only read the registers of traces and taxonomies."""
    return "reads_registers" in connection.get_execution_options()


def calls_stored_functions(connection: Connection) -> bool:
    """Return whether a member of a team writes through the server's stored functions."""
    return "calls_stored_functions" in connection.get_execution_options()


def call_function(
    connection: Connection, function: str, table: Table, rows: Sequence[Values]
) -> None:
    """Call a function of a team's server for each row.

    Some transactions collect their calls and send them together at their end, since each statement
    costs a round trip.

    Args:
        connection: An open transaction.
        function: The name of the function in the schema ``seen``.
        table: The table of the rows.
        rows: The values of each row, in the order of the table's columns.
    """
    if not rows:
        return
    if len(rows) == 1:
        call = ServerCall(_single_call(function, table), rows[0])
    else:
        column_values = tuple(list(values) for values in zip(*rows, strict=True))
        call = ServerCall(_calls_for_rows(function, table), column_values)
    held_calls: HeldCalls = connection.get_execution_options()["held"]
    if held_calls.calls is None:  # this transaction sends each call at once
        connection.exec_driver_sql(f"SELECT {call.expression}", call.values)
    else:
        held_calls.calls.append(call)


@lru_cache
def _single_call(function: str, table: Table) -> str:
    values = ", ".join(f"%s::{_server_type(column)}" for column in table.columns)
    return f"seen.{function}(ROW({values})::public.{table.name})"


@lru_cache
def _calls_for_rows(function: str, table: Table) -> str:
    """Return an SQL expression that calls a function for each row; values are lists by column."""
    names = ", ".join(f"c{number}" for number, _ in enumerate(table.columns))
    lists = ", ".join(f"%s::{_server_type(column)}[]" for column in table.columns)
    # OFFSET 0 keeps the server from optimizing the calls away.
    return (
        f"(SELECT count(*) FROM (SELECT seen.{function}(ROW({names})::public.{table.name}) FROM "
        f"(SELECT * FROM unnest({lists}) WITH ORDINALITY AS u({names}, place) ORDER BY place) "
        "ordered OFFSET 0) called)"
    )


def lock_annotators(connection: Connection, annotators: Iterable[str]) -> None:
    """Keep other programs from adding events of annotators until the transaction ends.

    Does nothing for a file, which only one program writes at a time.

    Args:
        connection: An open transaction.
        annotators: The annotators whose events will change.
    """
    if is_on_server(connection):
        names = sorted(set(annotators))
        connection.exec_driver_sql("SELECT public.take_turns(%s::text[])", (names,))


class Among:
    """A statement restricted to rows with one of many values in a column.

    The values are one parameter, because SQLite limits the number of parameters and SQLAlchemy is
    slow with thousands of them.
    """

    def __init__(self, statement: Select[Any] | Delete, column: ColumnElement[str]) -> None:
        """Prepare the statement.

        Args:
            statement: The statement without this condition.
            column: The column.
        """
        value_rows = func.json_each(bindparam("values")).table_valued("value")
        self._file_statement = statement.where(column.in_(select(value_rows.c.value)))
        self._server_statement = statement.where(
            column == any_(bindparam("values", type_=ARRAY(Text)))
        )

    def execute(self, connection: Connection, values: Iterable[str]) -> CursorResult[Any]:
        """Execute the statement for a list of values.

        Args:
            connection: An open connection.
            values: The values.
        """
        if is_on_server(connection):
            return connection.execute(self._server_statement, {"values": list(values)})
        return connection.execute(self._file_statement, {"values": json.dumps(list(values))})


class Insertion:
    """An insertion of very many rows into a table.

    SQLAlchemy, and each call of the driver, take longer than SQLite needs to write a row. So many
    rows go to the driver in one call, and values that these rows share are sent once.
    """

    def __init__(
        self, table: Table, *, varying: Collection[str] = (), on_conflict: str = ""
    ) -> None:
        """Prepare insertions into a table.

        Args:
            table: The table.
            varying: At least two columns with values that differ between consecutive rows. The
                values of the other columns are sent once for many rows. Empty to send whole rows.
            on_conflict: The ``ON CONFLICT`` clause for rows with a stored key.
        """
        self._table = table.name
        self._server_types = [_server_type(column) for column in table.columns]
        self._names = [column.name for column in table.columns]
        self._varying_indices = [index for index, name in enumerate(self._names) if name in varying]
        self._shared_indices = [
            index for index, name in enumerate(self._names) if name not in varying
        ]
        self._on_conflict = on_conflict

    def write(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Insert rows in order.

        Args:
            connection: An open transaction, which must be rolled back if this raises.
            rows: The values of each row, in the order of the table's columns.
        """
        if is_on_server(connection):
            self._write_to_server(connection, rows)
            return
        driver = driver_of(connection)
        if len(rows) < self._rows_per_call or not self._varying_indices:
            driver.executemany(self._file_row_statement, rows)
            return
        # A group of consecutive rows with the same shared values is written in statements of
        # ``_rows_per_call`` rows. The rest of a group is collected in ``single_rows``, which are
        # written before the next such statement, so that the order stays.
        single_rows = list[Values]()
        shared_values_of = itemgetter(*self._shared_indices)
        varying_values_of = itemgetter(*self._varying_indices)  # tuples, for at least two columns
        for shared_values, group in groupby(rows, key=shared_values_of):
            group_rows = list(group)
            batched_count = len(group_rows) - len(group_rows) % self._rows_per_call
            if batched_count and single_rows:
                driver.executemany(self._file_row_statement, single_rows)
                single_rows = []
            for start in range(0, batched_count, self._rows_per_call):
                batch = group_rows[start : start + self._rows_per_call]
                varying_values = chain.from_iterable(map(varying_values_of, batch))
                driver.execute(self._many_rows_statement, (*shared_values, *varying_values))
            single_rows += group_rows[batched_count:]
        driver.executemany(self._file_row_statement, single_rows)

    def _write_to_server(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Insert rows on a server; the values are sent as a list for each column."""
        if len(rows) == 1:
            connection.exec_driver_sql(self._row_statement, tuple(rows[0]))
            return
        for start in range(0, len(rows), _SERVER_ROWS):
            columns = zip(*rows[start : start + _SERVER_ROWS], strict=True)
            lists = list[list[Any]]()
            for kind, column in zip(self._server_types, columns, strict=True):
                if kind == "float8":
                    # The driver refuses a list that mixes floats and whole numbers.
                    lists.append([None if value is None else float(value) for value in column])
                else:
                    lists.append(list(column))
            connection.exec_driver_sql(self._lists_statement, tuple(lists))

    @cached_property
    def _row_statement(self) -> str:
        return self._insert_statement(f"VALUES ({', '.join(['%s'] * len(self._names))})")

    @cached_property
    def _lists_statement(self) -> str:
        """The statement for many rows, with a list for each column, which is the fastest form."""
        lists = ", ".join(f"%s::{kind}[]" for kind in self._server_types)
        return self._insert_statement(f"SELECT * FROM unnest({lists})")

    @cached_property
    def _rows_per_call(self) -> int:
        return (_PARAMETERS - len(self._shared_indices)) // max(len(self._varying_indices), 1)

    @cached_property
    def _file_row_statement(self) -> str:
        return self._insert_statement(f"VALUES ({', '.join('?' * len(self._names))})", " OR FAIL")

    @cached_property
    def _many_rows_statement(self) -> str:
        """The statement for ``_rows_per_call`` rows with the same shared values.

        Its numbered parameters are the shared values, followed by the varying values of each row.
        """
        shared = {index: f"?{number}" for number, index in enumerate(self._shared_indices, 1)}
        row_texts = list[str]()
        for row in range(self._rows_per_call):
            first = len(shared) + row * len(self._varying_indices) + 1
            varying = {
                index: f"?{number}" for number, index in enumerate(self._varying_indices, first)
            }
            parameters = shared | varying
            row_texts.append(", ".join(parameters[index] for index in range(len(self._names))))
        return self._insert_statement(f"VALUES ({'), ('.join(row_texts)})", " OR FAIL")

    def _insert_statement(self, rows_clause: str, on_failure: str = "") -> str:
        """Return the statement that inserts the rows of a ``VALUES`` or ``SELECT`` clause.

        With ``on_failure`` equal to ``" OR FAIL"``, SQLite need not copy changed pages. The caller
        must then roll back the transaction after an error, since earlier rows are in the table.
        """
        names = ", ".join(f'"{name}"' for name in self._names)
        return f"INSERT{on_failure} INTO {self._table} ({names}) {rows_clause} {self._on_conflict}"


@lru_cache
def upsert(table: Table, varying: Collection[str] = ()) -> Insertion:
    """Return an insertion that replaces stored rows with the same primary keys.

    Args:
        table: The table.
        varying: The columns with values that differ between consecutive rows, as in ``Insertion``.
    """
    keys = ", ".join(f'"{column.name}"' for column in table.primary_key)
    assignments = ", ".join(
        f'"{column.name}" = excluded."{column.name}"'
        for column in table.columns
        if not column.primary_key
    )
    update = f"UPDATE SET {assignments}" if assignments else "NOTHING"
    return Insertion(table, varying=varying, on_conflict=f"ON CONFLICT ({keys}) DO {update}")


def put_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows into a register, and replace stored rows with the same primary keys.

    Args:
        connection: An open transaction.
        table: The register.
        rows: The values by column name; missing values are null.
    """
    values = [tuple(row.get(column.name) for column in table.columns) for row in rows]
    if calls_stored_functions(connection):
        call_function(connection, f"put_{table.name}", table, values)
    elif values:
        upsert(table).write(connection, values)


def _server_type(column: Column[Any]) -> str:
    """Return the type of a column on a server."""
    match column.type:
        case Boolean():
            return "boolean"
        case Float():
            return "float8"
        case Integer():
            return "bigint"
        case _:
            return "text"


def change_rows(connection: Connection, statement: str, parameters: Sequence[Values]) -> None:
    """Execute a statement that changes or deletes one row, many times.

    Args:
        connection: An open transaction.
        statement: The SQL statement.
        parameters: The parameters of each execution.
    """
    if not parameters:
        return
    if is_on_server(connection):
        connection.exec_driver_sql(statement.replace("?", "%s"), list(map(tuple, parameters)))
    else:
        driver_of(connection).executemany(statement, parameters)


def driver_of(connection: Connection) -> Any:
    """Return the driver's own connection."""
    return connection.connection.driver_connection
