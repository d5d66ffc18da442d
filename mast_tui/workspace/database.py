"""The tables of a workspace, in a file or on a server: transactions, and rows put in.

``sqlite_file`` has them in one file, ``postgresql`` on a server. What the two say differently
beside that stands here: how very many rows are put in or changed by one call.
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
    Float,
    Integer,
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

LOOK_AGAIN: Final = 0.01
"""Seconds between two looks at whether another program or thread is still writing."""

LOOK_FOR_SERVER: Final = 0.25
"""Seconds between two tries to reach a server that is away."""

BUSY: Final = (
    "another program has been writing to this workspace for too long; "
    "nothing was written. Close it, or try again"
)

_PARAMETERS: Final = 900
"""In one call at most; not every SQLite takes more than 999."""

_SERVER_ROWS: Final = 5000
"""Rows that go to a server in one call."""

Values = tuple[Any, ...]
"""Those of some columns of one row."""


class Database(ABC):
    """The tables of a workspace with their transactions, for use from any thread.

    Readers have connections that cannot write and never wait. Writers share one connection, which
    each uses for one transaction at a time; see ``writes``. Errors of the driver become
    ``WorkspaceError``, also inside the blocks of ``reading`` and ``writing``.
    """

    driver_error: ClassVar[type[Exception]]
    """What the driver raises."""
    _writer: Connection

    def __init__(self, path: Path | None) -> None:
        self.path = path
        """The file, None where it is none."""
        self.traces_folder: Path | None = None
        """From where the files of traces are named; None on a server and in memory."""
        self.presence: Presence | None = None
        """Who is where just now, where programs can tell each other."""
        self.last_write = time.monotonic()
        self.member: Member | None = None
        """Whose connection this is in a team on a server; None for a file, and for an owner."""
        self.latest: Latest | None = None
        """What was written last on a server, so that it need not be asked for."""
        self.content: set[int] = set()
        """The threads beside the screen that are content with what was read ahead; see ``away``."""
        self._turn = Lock()
        self._owner: int | None = None
        """The thread that is within a transaction."""
        self._whole = False
        self._spoilt = False
        """Whether a part of a transaction that is ``whole`` has failed."""
        self._closed = False
        self._closing = False
        """Whether it is about to be closed, so that no one waits to write any more."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the workspace in messages."""

    @abstractmethod
    def close(self) -> None:
        """Close it; every later use raises."""

    # Transactions

    @property
    def within(self) -> bool:
        """True if the caller is within a transaction."""
        return self._owner == get_ident()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a read-only connection that sees one state of the workspace throughout.

        Inside a transaction it is that transaction's connection, which sees its changes.
        """
        with self._in_words():
            self._check_open()
            if self.within:
                yield self._writer
            else:
                with self._reader() as connection:
                    yield connection

    @contextmanager
    def writing(
        self, *, whole: bool = False, annotators: Collection[str] = ()
    ) -> Iterator[Connection]:
        """Yield a connection in a transaction, which is rolled back if the block raises.

        A transaction inside another one is a part of it that can be rolled back alone, unless the
        outer one is ``whole``: then an exception of a part must end the outer transaction too,
        which spares SQLite a copy of each page that a part changes. It waits for other programs
        and threads that write until ``writes.deadline``.

        Args:
            whole: Whether no part of the transaction may be rolled back alone.
            annotators: The annotators whose events are added, if nothing else is written: on a
                server others may add theirs at the same time.

        Raises:
            WorkspaceGone: The file at the path is no longer the one that is open.
        """
        with self._in_words():
            self._check_open()
            if self.within:
                with self._no_part_of_its_own() if self._whole else self._savepoint():
                    yield self._writer
                return
            self.check_there()
            with self._taking_turn():
                self._check_open()
                self._begin(annotators)
                self._whole = whole
                try:
                    yield self._writer
                    if self._spoilt:
                        raise AssertionError("what failed in a part has to end the transaction")
                    self._commit()
                    self._end_transaction()
                except BaseException:
                    self._take_back()
                    raise
                finally:
                    self._whole = self._spoilt = False
                    self.last_write = time.monotonic()

    @contextmanager
    def _taking_turn(self) -> Iterator[None]:
        """Wait until no other thread of this program writes."""
        until = deadline()
        while not self._turn.acquire(blocking=False):
            if time.monotonic() > until:
                raise WorkspaceError(f"{self.name}: {BUSY}")
            pause(LOOK_AGAIN)
            self._check_not_closing()
            if self._waits_in_vain:
                raise ServerAway(f"{self.name}: does not answer now; nothing was written")
        self._owner = get_ident()
        try:
            yield
        finally:
            self._owner = None
            self._turn.release()

    @property
    def _waits_in_vain(self) -> bool:
        """True if the thread in turn waits for a server that does not answer."""
        return False

    @contextmanager
    def _no_part_of_its_own(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._spoilt = True
            raise

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        """Nest a part in the running transaction; roll it back if the block raises.

        The statements go to the driver directly, since a transaction has many such parts.
        """
        self._run("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._in_transaction():  # a full disk ends the whole transaction at once
                self._run("ROLLBACK TO part")
                self._run("RELEASE part")
            raise
        self._run("RELEASE part")

    @abstractmethod
    def _reader(self) -> AbstractContextManager[Connection]:
        """Open a connection for one reading."""

    @abstractmethod
    def _begin(self, annotators: Collection[str]) -> None:
        """Begin as the one who writes, so that nothing that is read can become old."""

    def _take_back(self) -> None:
        transaction = self._writer.get_transaction()
        if transaction is not None:
            transaction.rollback()

    def _end_transaction(self) -> None:
        """Tell SQLAlchemy that all is kept; nothing is left to be written."""
        transaction = self._writer.get_transaction()
        if transaction is not None:
            transaction.commit()

    @abstractmethod
    def _commit(self) -> None:
        """Commit the transaction."""

    @abstractmethod
    def _run(self, statement: str) -> object:
        """Run a statement without values in the transaction."""

    @abstractmethod
    def _in_transaction(self) -> bool:
        """Check whether the transaction is still there."""

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._error(error.orig or error) from error
        except self.driver_error as error:
            raise self._error(error) from error
        except ResourceClosedError as error:
            raise WorkspaceError(f"{self.name}: the workspace is closed") from error
        except UnicodeEncodeError as error:
            half = f"U+{ord(error.object[error.start]):X}"
            raise WorkspaceError(
                f"{self.name}: a text holds half a character ({half}) and cannot be kept; "
                "nothing was written"
            ) from error

    @abstractmethod
    def _error(self, error: BaseException) -> WorkspaceError:
        """Convert an error of the driver to one with a message for the user."""

    def _check_open(self) -> None:
        if self._closed:
            raise WorkspaceError(f"{self.name}: the workspace is closed")

    def _check_not_closing(self) -> None:
        if self._closing:
            raise WorkspaceError(f"{self.name}: the workspace is closed")

    @property
    def away(self) -> bool:
        """True if the tables are out of reach, and reads return what was read ahead."""
        return False

    def outbox(self, folder: Path, annotator: str, last_seq: int) -> Outbox | None:
        """Return the outbox that keeps changes while the tables cannot be reached; see ``Outbox``.

        Args:
            folder: The folder of the outbox's file.
            annotator: The annotator whose changes it keeps.
            last_seq: The counter of the annotator's last event.

        Returns:
            The outbox; None if these tables can always be reached.
        """
        return None

    # The whole of it

    @abstractmethod
    def check_there(self) -> None:
        """Raise ``WorkspaceGone`` where the open files are not the ones at their paths any more."""

    @abstractmethod
    def changed_elsewhere(self) -> bool:
        """Check whether another program has written since the last call.

        While this program writes, the answer is no, and comes later.
        """

    @abstractmethod
    def checkpoint(self) -> None:
        """Move all committed data into the main file, if the workspace is a file."""

    @abstractmethod
    def check(self) -> None:
        """Raise ``WorkspaceError`` where it is found to be damaged."""

    @abstractmethod
    def copy_to(self, target: Path) -> None:
        """Copy everything that is committed into a new file, which other programs cannot read.

        Args:
            target: Where there is nothing yet.

        Raises:
            WorkspaceError: Where it cannot be written; then there is nothing at ``target``.
        """

    @abstractmethod
    def move_to(self, target: Path) -> None:
        """Copy everything to ``target``, and go on there; see ``copy_to``."""

    def check_sees_all(self) -> None:
        """Raise ``WorkspaceError`` where a server hides a part of it."""
        if self.member is not None and not self.member.sees_all:
            raise WorkspaceError(
                f"{self.name}: the server shows an annotator no more than their own work, and this "
                "is about all of it; ask the lead"
            )

    # The team

    def team(self) -> tuple[Member, ...]:
        """Return the members by name; raises ``WorkspaceError`` for a file."""
        raise self._no_team()

    def check_team_is_theirs(self) -> None:
        """Raise ``WorkspaceError`` unless who is connected may change the team."""
        raise self._no_team()

    def add_member(self, new: Member) -> str | None:
        """Take somebody in; see ``Workspace.add_member``."""
        raise self._no_team()

    def remove_member(self, name: str) -> bool:
        """Take somebody out; see ``Workspace.remove_member``."""
        raise self._no_team()

    def shows_who_is_connected(self) -> bool:
        """See ``Workspace.shows_who_is_connected``."""
        raise self._no_team()

    def _no_team(self) -> WorkspaceError:
        return WorkspaceError(
            f"{self.name}: is a file, and whoever reads it reads all of it; a team has its "
            "workspace on a server: mast-tui workspace copy FILE postgresql://USER@HOST/DATABASE"
        )


def traces_folder_of(connection: Connection) -> Path | None:
    """Return the folder from which the workspace names the files of its traces.

    See ``paths.traces_folder``; None on a server and in memory.
    """
    folder: Path | None = connection.get_execution_options().get("traces_folder")
    return folder


def is_on_server(connection: Connection) -> bool:
    """Check whether the tables are on a server."""
    return connection.dialect.name == "postgresql"


class ServerCall(NamedTuple):
    """A call of a function of a server, as an expression with the values of its parameters."""

    expression: str
    values: Values


class Held:
    """The calls that a member's transaction will make, in one statement, when it ends."""

    calls: list[ServerCall] | None = None
    """None where nothing is held: what is called is called at once."""


class Latest(NamedTuple):
    """The last event of an annotator that is chained, as this program has written it."""

    annotator: str
    trace_id: str | None
    taxonomy: str | None
    seq: int
    chain: str


class NotLatest(WorkspaceError):
    """Another program has added an event of the same annotator meanwhile."""


NOT_LATEST: Final = "another program was first"
"""What the function that adds an event says then."""


OWN_ONLY: Final[Mapping[str, bool]] = {"own_only": True}
"""The option of an annotator's connections: the tables are views (``team.rights``)."""

READS_REGISTERS: Final[Mapping[str, bool]] = {"reads_registers": True}
"""The option of connections of members who are no lead: traces and taxonomies that are there stay
as they are."""

WRITES_BY_CALLS: Final[Mapping[str, bool]] = {"writes_by_calls": True}
"""The option of connections of all members: they write by the functions of ``team.rights``."""


def sees_own_only(connection: Connection) -> bool:
    """Check whether the server shows only what an annotator may see."""
    return "own_only" in connection.get_execution_options()


def reads_registers(connection: Connection) -> bool:
    """Return whether the server keeps the registers of traces and taxonomies from being changed."""
    return "reads_registers" in connection.get_execution_options()


def writes_by_calls(connection: Connection) -> bool:
    """Return whether the connection is a member's, who writes by calling functions."""
    return "writes_by_calls" in connection.get_execution_options()


def call_function(
    connection: Connection, function: str, table: Table, rows: Sequence[Values]
) -> None:
    """Call a function of a team's server for each of these rows of a table.

    Args:
        connection: An open transaction.
        function: Its name in the schema ``seen``.
        table: The table whose rows it takes.
        rows: The values of each, in the order of the table's columns.
    """
    if not rows:
        return
    held: Held = connection.get_execution_options()["held"]
    if len(rows) == 1:
        call = ServerCall(_call_of_row(function, table), rows[0])
    else:
        call = ServerCall(_call_of_rows(function, table), tuple(map(list, zip(*rows, strict=True))))
    if held.calls is None:
        connection.exec_driver_sql(f"SELECT {call.expression}", call.values)
    else:
        held.calls.append(call)


@lru_cache
def _call_of_row(function: str, table: Table) -> str:
    values = ", ".join(f"%s::{_kind_on_server(column)}" for column in table.columns)
    return f"seen.{function}(ROW({values})::public.{table.name})"


@lru_cache
def _call_of_rows(function: str, table: Table) -> str:
    """Return the call for many rows, of which each column comes as a list."""
    names = ", ".join(f"c{number}" for number, _ in enumerate(table.columns))
    lists = ", ".join(f"%s::{_kind_on_server(column)}[]" for column in table.columns)
    return (
        f"(SELECT count(*) FROM (SELECT seen.{function}(ROW({names})::public.{table.name}) FROM "
        f"(SELECT * FROM unnest({lists}) WITH ORDINALITY AS u({names}, place) ORDER BY place) "
        "ordered OFFSET 0) called)"
    )


def take_turns(connection: Connection, annotators: Iterable[str]) -> None:
    """Keep other programs from adding events of these annotators until the transaction ends.

    A file is written by one program at a time anyhow.

    Args:
        connection: An open transaction.
        annotators: Whose events and state are about to be changed.
    """
    if is_on_server(connection):
        names = sorted(set(annotators))
        connection.exec_driver_sql("SELECT public.take_turns(%s::text[])", (names,))


class Among:
    """A query for the values of a long list that are in a column.

    The list is one parameter, since SQLAlchemy needs longer for thousands of parameters than the
    database needs for the query.
    """

    def __init__(self, column: ColumnElement[str]) -> None:
        listed = func.json_each(bindparam("values")).table_valued("value")
        self._of_file = select(column).where(column.in_(select(listed.c.value)))
        self._of_server = select(column).where(
            column == any_(bindparam("values", type_=ARRAY(Text)))
        )

    def __call__(self, connection: Connection, values: Sequence[str]) -> Collection[str]:
        """Return those of the values that are in the column."""
        if not values:
            return ()
        if is_on_server(connection):
            rows = connection.execute(self._of_server, {"values": list(values)})
        else:
            rows = connection.execute(self._of_file, {"values": json.dumps(values)})
        return set(rows.scalars())


class Insertion:
    """An insertion of very many rows into a table.

    SQLAlchemy needs longer for the parameters of a row than SQLite needs to write it, and so does
    each call of Python's driver. So rows go to the driver as plain tuples, many in one call, and
    values that rows share are sent once in each call.
    """

    def __init__(
        self, table: Table, *, varying: Collection[str] = (), where_known: str = ""
    ) -> None:
        """Prepare insertions into a table.

        Args:
            table: The table.
            varying: Two or more columns in which consecutive rows differ, while they share the
                values of all others; empty if there are few rows.
            where_known: The ``ON CONFLICT`` clause for rows whose key is in the table already.
        """
        self._table = table.name
        self._kinds = [_kind_on_server(column) for column in table.columns]
        self._names = [column.name for column in table.columns]
        self._varying = [index for index, name in enumerate(self._names) if name in varying]
        self._shared = [index for index, name in enumerate(self._names) if name not in varying]
        self._where_known = where_known

    def write(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Insert rows in their order.

        Args:
            connection: An open transaction, which has to be taken back where this raises.
            rows: The values of each, in the order of the table's columns.
        """
        if is_on_server(connection):
            self._write_to_server(connection, rows)
            return
        driver = driver_of(connection)
        few = list[Values]()
        if len(rows) < self._at_once or not self._varying:
            driver.executemany(self._row_placeholder, rows)
            return
        shared = itemgetter(*self._shared)
        own_values = itemgetter(*self._varying)
        for common, alike in groupby(rows, key=shared):
            left = list(alike)
            whole = len(left) - len(left) % self._at_once
            if whole and few:
                driver.executemany(self._row_placeholder, few)
                few = []
            for start in range(0, whole, self._at_once):
                together = chain.from_iterable(map(own_values, left[start : start + self._at_once]))
                driver.execute(self._many, (*common, *together))
            few += left[whole:]
        driver.executemany(self._row_placeholder, few)

    def _write_to_server(self, connection: Connection, rows: Sequence[Values]) -> None:
        if len(rows) == 1:
            connection.exec_driver_sql(self._single, tuple(rows[0]))
            return
        for start in range(0, len(rows), _SERVER_ROWS):
            columns = zip(*rows[start : start + _SERVER_ROWS], strict=True)
            lists = (
                # A list holds numbers of one kind only.
                [None if value is None else float(value) for value in column]
                if index in self._floats
                else list(column)
                for index, column in enumerate(columns)
            )
            connection.exec_driver_sql(self._lists, tuple(lists))

    @cached_property
    def _floats(self) -> Collection[int]:
        return {index for index, kind in enumerate(self._kinds) if kind == "float8"}

    @cached_property
    def _single(self) -> str:
        return self._text(f"VALUES ({', '.join(['%s'] * len(self._names))})")

    @cached_property
    def _lists(self) -> str:
        """A list for each column: a server takes that soonest."""
        lists = ", ".join(f"%s::{kind}[]" for kind in self._kinds)
        return self._text(f"SELECT * FROM unnest({lists})")

    @cached_property
    def _at_once(self) -> int:
        return (_PARAMETERS - len(self._shared)) // max(len(self._varying), 1)

    @cached_property
    def _row_placeholder(self) -> str:
        return self._text(f"VALUES ({', '.join('?' * len(self._names))})", " OR FAIL")

    @cached_property
    def _many(self) -> str:
        numbers = {index: number for number, index in enumerate(self._shared, 1)}
        listed = list[str]()
        for row in range(self._at_once):
            first = len(self._shared) + row * len(self._varying) + 1
            numbers |= {index: number for number, index in enumerate(self._varying, first)}
            listed.append(", ".join(f"?{numbers[index]}" for index in range(len(self._names))))
        return self._text(f"VALUES ({'), ('.join(listed)})", " OR FAIL")

    def _text(self, rows: str, otherwise: str = "") -> str:
        # The transaction is taken back anyhow where a row is refused, so the rows before it may
        # stay till then: else SQLite copies every page that many rows in one call will change.
        names = ", ".join(f'"{name}"' for name in self._names)
        return f"INSERT{otherwise} INTO {self._table} ({names}) {rows} {self._where_known}"


@lru_cache
def upsert(table: Table, varying: Collection[str] = ()) -> Insertion:
    """Return the insertion that puts rows in the place of those with the same keys.

    Args:
        table: Where the rows go.
        varying: See ``Insertion``.
    """
    keys = ", ".join(f'"{column.name}"' for column in table.primary_key)
    sets = ", ".join(
        f'"{c.name}" = excluded."{c.name}"' for c in table.columns if not c.primary_key
    )
    on_conflict = f"ON CONFLICT ({keys}) DO {f'UPDATE SET {sets}' if sets else 'NOTHING'}"
    return Insertion(table, varying=varying, where_known=on_conflict)


def put_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows of a register, and replace those with the same keys.

    Args:
        connection: An open transaction.
        table: The register.
        rows: The values by column name; missing ones are null.
    """
    values = [tuple(row.get(column.name) for column in table.columns) for row in rows]
    if writes_by_calls(connection):
        call_function(connection, f"put_{table.name}", table, values)
    elif values:
        upsert(table).write(connection, values)


def _kind_on_server(column: Column[Any]) -> str:
    match column.type:
        case Boolean():
            return "boolean"
        case Float():
            return "float8"
        case Integer():
            return "bigint"
        case _:
            return "text"


def change_rows(connection: Connection, statement: str, keys: Sequence[Values]) -> None:
    """Run a statement that changes or deletes a row, for very many of them.

    Args:
        connection: An open transaction.
        statement: It in SQL.
        keys: Its parameters for each row.
    """
    if not keys:
        return
    if is_on_server(connection):
        connection.exec_driver_sql(statement.replace("?", "%s"), [tuple(key) for key in keys])
    else:
        driver_of(connection).executemany(statement, keys)


def driver_of(connection: Connection) -> Any:
    """Return the driver's own connection."""
    return connection.connection.driver_connection
