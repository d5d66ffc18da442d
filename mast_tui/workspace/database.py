"""One SQLite file: one connection that writes, others that read what was committed last."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.exc import DBAPIError, ResourceClosedError
from sqlalchemy.pool import QueuePool, StaticPool

from mast_tui.errors import WorkspaceError, WorkspaceGone
from mast_tui.workspace.file_systems import is_on_network
from mast_tui.workspace.migration import migrate
from mast_tui.workspace.opening import (
    Found,
    check_schema,
    check_version,
    examine,
    keep_private,
)
from mast_tui.workspace.schema import APPLICATION_ID, SCHEMA_VERSION, metadata
from mast_tui.writes import Command, beside_the_loop, deadline, pause, whoever_runs

BUSY_SECONDS: Final = 5.0
"""How long SQLite waits by itself: for a reader in the way of a commit, or at the opening."""

_CACHE_KILOBYTES: Final = 32_000
"""What the writer keeps of the file at most. The ids of imported events lie all over their index,
which in a big workspace is more than the 2 MB that SQLite keeps by itself."""

_LOOK_AGAIN: Final = 0.01
"""Seconds between two looks at whether another program or thread is still writing."""

_PARAMETERS: Final = 900
"""In one call at most; not every SQLite takes more than 999."""

Values = tuple[Any, ...]
"""Those of some columns of one row."""

_Identity = tuple[int, int]
"""Device and inode of a file."""


class Database:
    """A workspace's file with its transactions; used from any thread.

    Whoever reads has a connection that cannot write and waits for nobody; whoever writes has the
    one connection that can, for one transaction, and waits for its turn (``writes`` says how).
    ``path`` None keeps everything in memory. Raises ``WorkspaceError`` in words, also from the
    bodies of ``reading`` and ``writing``.
    """

    def __init__(self, path: Path | None, *, create: bool) -> None:
        self.path = path
        self.when_gone: Callable[[], bool] = lambda: False
        """Called by a command that finds the file gone: whether it can go on in another one."""
        self._turn = Lock()
        self._whose: object = None
        self._whole = False
        self._spoilt = False
        """Whether a part of a transaction that is ``whole`` has failed."""
        self._closed = False
        self._gone = False
        self._left: list[Connection] = []
        self._version = 0
        self._has_log = False
        self._files: tuple[_Identity | None, _Identity | None] = (None, None)
        found = Found.NOTHING if path is None else examine(path)
        if found is Found.NOTHING and path is not None:
            if not create:
                raise WorkspaceError(f"{path}: there is no workspace here")
            _make_file(path)
        self._open()

    def _open(self) -> None:
        self._thread = ThreadPoolExecutor(1, "workspace-writer")
        self._readers = None if self.path is None else self._engine(reads_only=True)
        self.last_write = time.monotonic()
        with self._in_words():
            self._writer = self._engine(reads_only=False).connect()
            try:
                self._prepare()
            except BaseException:
                self._writer.close()
                raise

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the workspace in memory" if self.path is None else str(self.path)

    @property
    def journal_mode(self) -> str:
        """How SQLite keeps commits safe: ``wal``, ``delete`` or, in memory, ``memory``."""
        with self.reading() as connection:
            return str(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one())

    def close(self) -> None:
        """Bring everything into the one file and close it; every later use raises.

        Another program that has it open keeps its write-ahead log, as does a writer that is still
        at work after ``BUSY_SECONDS``.
        """
        if self._closed:
            return
        mine = self._turn.acquire(timeout=BUSY_SECONDS)
        try:
            self._closed = True
            self._thread.shutdown(wait=False)
            if self._readers is not None:
                self._readers.dispose()
            if not mine or self._gone:
                return  # closing would write into a file that is another one by now
            with suppress(sqlite3.Error):
                self._driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._writer.close()
            self._writer.engine.dispose()
        finally:
            if mine:
                self._turn.release()

    # Transactions

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the workspace throughout and cannot change it.

        Within a transaction it is that one's, and sees what it has written.
        """
        with self._in_words():
            self._check_open()
            if self._whose is whoever_runs():
                yield self._writer
            elif self._readers is not None:
                with self._readers.connect() as connection:
                    yield connection
            else:
                with self._taking_turn(), self._writer.begin() as transaction:
                    self._pragma("query_only=ON")
                    try:
                        yield self._writer
                    finally:
                        self._pragma("query_only=OFF")
                        transaction.rollback()

    @contextmanager
    def writing(self, *, whole: bool = False) -> Iterator[Connection]:
        """One transaction: on disk when the block ends, or nothing of it where it raises.

        Inside another one it is a part of that, which can still fail by itself, unless the other is
        ``whole``: then what a part raises has to end it all. That spares SQLite a copy of each page
        that a part changes. Waits for other programs and threads that write, until
        ``writes.deadline``; raises ``WorkspaceGone`` where the file at the path is no longer the
        one that is open.
        """
        with self._in_words():
            self._check_open()
            if self._whose is whoever_runs():
                with self._no_part_of_its_own() if self._whole else self._savepoint():
                    yield self._writer
                return
            self.check_there()
            with self._taking_turn():
                self._check_open()
                self._check_same_files()
                transaction = self._writer.begin()
                self._whole = whole
                try:
                    yield self._writer
                    if self._spoilt:
                        raise AssertionError("what failed in a part has to end the transaction")
                    self._commit()
                    transaction.commit()  # tells SQLAlchemy; nothing is left to be written
                except BaseException:
                    transaction.rollback()
                    raise
                finally:
                    self._whole = self._spoilt = False
                    self.last_write = time.monotonic()

    @contextmanager
    def _taking_turn(self) -> Iterator[None]:
        """Wait until no other thread or command of this program writes."""
        until = deadline()
        while not self._turn.acquire(blocking=False):
            if time.monotonic() > until:
                raise WorkspaceError(f"{self.name}: {_BUSY}")
            pause(_LOOK_AGAIN)
        self._whose = whoever_runs()
        try:
            yield
        finally:
            self._whose = None
            self._turn.release()

    @contextmanager
    def _no_part_of_its_own(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._spoilt = True
            raise

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        """A part of a transaction; said to SQLite itself, as a transaction has many of them."""
        driver = self._driver
        driver.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if driver.in_transaction:  # a full disk ends the whole transaction at once
                driver.execute("ROLLBACK TO part")
                driver.execute("RELEASE part")
            raise
        driver.execute("RELEASE part")

    def _begin_writing(self, connection: Connection) -> None:
        """Begin as the one who writes, so that nothing that is read can become old."""
        driver = _driver_of(connection)
        until = deadline()
        with self._impatience(driver):
            while True:
                try:
                    driver.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if not _is_busy(error) or time.monotonic() > until:
                        raise
                pause(_LOOK_AGAIN)

    @contextmanager
    def _impatience(self, driver: sqlite3.Connection) -> Iterator[None]:
        """Let SQLite not wait by itself, as that would hold up the event loop.

        With a write-ahead log a transaction that has begun never waits, so there it holds always;
        without, a commit waits for readers.
        """
        if self._has_log:
            yield
            return
        driver.execute("PRAGMA busy_timeout=0")
        try:
            yield
        finally:
            driver.execute(f"PRAGMA busy_timeout={round(BUSY_SECONDS * 1000)}")

    def _commit(self) -> None:
        driver = self._driver
        if self.path is None:
            driver.execute("COMMIT")
        else:
            beside_the_loop(self._thread, lambda: driver.execute("COMMIT"))

    # The file

    def check_there(self) -> None:
        """Raise ``WorkspaceGone`` where the open files are not the ones at their paths any more.

        A command asks ``when_gone`` first, which may see to it that there are others.
        """
        try:
            self._check_same_files()
        except WorkspaceGone:
            if Command.running() is None or not self.when_gone():
                raise

    def _check_same_files(self) -> None:
        if self.path is not None and (self._gone or not self._same_files()):
            self._gone = True
            raise WorkspaceGone(
                f"{self.path}: was deleted, moved or replaced while it was open; nothing more can "
                "be kept there, and what this program has open can still be written elsewhere"
            )

    def _same_files(self) -> bool:
        """Whether the database and its write-ahead log, if it has one, are those that are open."""
        assert self.path is not None
        found = _identity(self.path), _identity(_log_of(self.path)) if self._has_log else None
        known = self._files
        # SQLite makes the log when it is first used.
        self._files = known = (known[0], known[1] or found[1])
        return found == known

    def changed_elsewhere(self) -> bool:
        """Whether another program has written since the last time this was asked.

        Raises ``WorkspaceGone`` like ``writing``. While this program writes, the answer is no, and
        comes later.
        """
        if self._closed or not self._turn.acquire(blocking=False):
            return False
        try:
            with self._in_words():
                self._check_same_files()
                before, self._version = self._version, int(self._pragma("data_version"))
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
            return False
        finally:
            self._turn.release()
        return before != self._version

    def checkpoint(self) -> None:
        """Bring what the write-ahead log holds into the one file, where nobody is in the way.

        From then on a copy of that file is whole, until the next write.
        """
        if self.path is None or self._closed or self._gone or not self._has_log:
            return
        with suppress(sqlite3.Error):
            connection = self._connect(reads_only=False)
            try:
                connection.execute("PRAGMA busy_timeout=0")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()

    def check(self) -> None:
        """Raise ``WorkspaceError`` where SQLite finds that the file is damaged."""
        with self.reading() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        if found != "ok":
            raise WorkspaceError(f"{self.name}: the file is damaged: {found}; put back a copy")

    def copy_to(self, target: Path) -> None:
        """Copy everything that is committed into a new file, which other programs cannot read.

        Also what can only be reached through this program, since the file was deleted meanwhile.

        Args:
            target: Where there is nothing yet.

        Raises:
            WorkspaceError: Where it cannot be written; then there is nothing at ``target``.
        """
        _make_file(target, new=True)
        try:
            with self._in_words(), self._taking_turn():
                copy = sqlite3.connect(target)
                try:
                    self._driver.backup(copy)
                    copy.execute("PRAGMA journal_mode=DELETE")
                finally:
                    copy.close()
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def move_to(self, target: Path) -> None:
        """Copy everything to ``target``, and go on there; see ``copy_to``."""
        if target == self.path:
            self._take_log_away()
        self.copy_to(target)
        with self._taking_turn():
            self._take_log_away()
            # Closed, the old connection would write into whatever lies in its place now.
            self._left.append(self._writer)
            self._thread.shutdown(wait=False)
            if self._readers is not None:
                self._readers.dispose()
            self.path, self._gone = target, False
            self._open()

    def _take_log_away(self) -> None:
        """Remove the log of the database that is gone: SQLite would take it for that of whatever
        lies in its place."""
        assert self.path is not None
        log = _log_of(self.path)
        database, known = self._files
        if known is not None and _identity(log) == known and _identity(self.path) != database:
            log.unlink(missing_ok=True)
            self.path.with_name(self.path.name + "-shm").unlink(missing_ok=True)

    # Connections

    def _engine(self, *, reads_only: bool) -> Engine:
        def connect() -> sqlite3.Connection:
            return self._connect(reads_only=reads_only)

        if not reads_only:
            engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
            event.listen(engine, "begin", self._begin_writing)
            return engine
        engine = create_engine(
            "sqlite://", creator=connect, poolclass=QueuePool, pool_size=2, max_overflow=-1
        )
        event.listen(engine, "begin", _begin_reading)
        return engine

    def _connect(self, *, reads_only: bool) -> sqlite3.Connection:
        # Transactions are begun by hand (above), so that writers queue up before they read.
        connection = sqlite3.connect(
            ":memory:" if self.path is None else str(self.path),
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        # What the file's own tables call for is not to be trusted: it may come from anybody.
        connection.execute("PRAGMA trusted_schema=OFF")
        if reads_only:
            connection.execute("PRAGMA query_only=ON")
        return connection

    @property
    def _driver(self) -> sqlite3.Connection:
        return _driver_of(self._writer)

    def _pragma(self, assignment: str) -> Any:
        """Read or set a pragma outside of transactions."""
        row = self._driver.execute(f"PRAGMA {assignment}").fetchone()
        return None if row is None else row[0]

    def _prepare(self) -> None:
        if self._versions() == (0, 0):
            self._create_tables()
        application_id, version = self._versions()
        check_version(self.name, application_id=application_id, version=version)
        check_schema(self.name, self._driver)
        if version < SCHEMA_VERSION:
            self._migrate()
        if self.path is not None:
            self._set_journal_mode("delete" if is_on_network(self.path) else "wal")
        self._pragma("synchronous=FULL")
        self._pragma(f"cache_size=-{_CACHE_KILOBYTES}")
        self._has_log = self._pragma("journal_mode") == "wal"
        if self.path is not None:
            keep_private(self.path)
            self._files = _identity(self.path), None
        if self._has_log:
            self._pragma("busy_timeout=0")
        self._version = int(self._pragma("data_version"))

    def _versions(self) -> tuple[int, int]:
        return int(self._pragma("application_id")), int(self._pragma("user_version"))

    @contextmanager
    def _preparing(self) -> Iterator[Connection]:
        """A transaction before anything else uses the file."""
        with self._writer.begin():
            yield self._writer

    def _create_tables(self) -> None:
        with self._preparing() as connection:
            # Another program may have been quicker while this one waited for its turn.
            if self._versions() != (0, 0):
                return
            tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
            if tables:
                check_version(self.name, application_id=0, version=0)
            metadata.create_all(connection)
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _migrate(self) -> None:
        """Bring a file of an earlier version up to date: all of it, or nothing."""
        with self._preparing() as connection:
            # Another program may have been quicker while this one waited for its turn.
            application_id, version = self._versions()
            check_version(self.name, application_id=application_id, version=version)
            migrate(connection, version)

    def _set_journal_mode(self, mode: str) -> None:
        """Change the mode where it is another; SQLite does not wait for others here by itself."""
        until = time.monotonic() + BUSY_SECONDS
        while self._pragma("journal_mode") != mode:
            try:
                if self._pragma(f"journal_mode={mode}") == mode or mode == "wal":
                    return  # where shared memory is lacking, WAL is refused and the old mode holds
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
            if time.monotonic() > until:
                return  # another window keeps it in its mode, which holds for both
            pause(0.02)

    # In words

    def _check_open(self) -> None:
        if self._closed:
            raise WorkspaceError(f"{self.name}: the workspace is closed")

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._error(error.orig or error) from error
        except sqlite3.Error as error:
            raise self._error(error) from error
        except ResourceClosedError as error:
            raise WorkspaceError(f"{self.name}: the workspace is closed") from error
        except UnicodeEncodeError as error:
            half = f"U+{ord(error.object[error.start]):X}"
            raise WorkspaceError(
                f"{self.name}: a text holds half a character ({half}) and cannot be kept; "
                "nothing was written"
            ) from error

    def _error(self, error: BaseException) -> WorkspaceError:
        said = str(error)
        for part, advice in _ADVICE:
            if part in said:
                return WorkspaceError(f"{self.name}: {advice}")
        return WorkspaceError(f"{self.name}: the database says: {said}; nothing was written")


_BUSY: Final = (
    "another program has been writing to this workspace for too long; "
    "nothing was written. Close it, or try again"
)

_ADVICE: Final = (
    ("locked", _BUSY),
    (
        "attempt to write a readonly",
        "may not be written; nothing was kept. Change the rights of file and folder",
    ),
    ("disk is full", "the disk is full; nothing was written. Make room and try again"),
    ("disk I/O error", "the disk reports an error; nothing was written"),
    ("not a database", "this is no workspace of mast-tui (not an SQLite database)"),
    (
        "malformed",
        "the file is damaged; stop using it and put back a copy. What can still be read comes "
        "out with: mast-tui export --format jsonl",
    ),
    ("unable to open", "cannot be opened; check that the folder exists and may be written"),
)


def _driver_of(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _begin_reading(connection: Connection) -> None:
    _driver_of(connection).execute("BEGIN")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _identity(path: Path) -> _Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _make_file(path: Path, *, new: bool = False) -> None:
    """Make an empty file that nobody else can read, with its folder where there is none.

    With ``new`` nothing may lie there yet, not even a link.
    """
    how = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    try:
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, how, 0o600))
    except OSError as error:
        raise WorkspaceError(
            f"{path}: the workspace cannot be made there: {error.strerror or error}"
        ) from error


class Insertion:
    """An insert of rows of a table, for very many of them.

    SQLAlchemy takes longer over the parameters of a row than SQLite takes to write it, and Python's
    driver as long over each call. So rows go to the driver as plain tuples, many in one call, and
    in each call the values that they share only once.
    """

    def __init__(self, table: Table, *, own: Collection[str] = (), where_known: str = "") -> None:
        """Prepare it.

        Args:
            table: Where the rows go.
            own: Columns, two or more, in which rows that follow each other differ; in all others
                many of them are alike. None where rows are few.
            where_known: What SQLite is to do where there is a row with this key (``ON CONFLICT``).
        """
        self._table = table.name
        self._names = [column.name for column in table.columns]
        self._own = [place for place, name in enumerate(self._names) if name in own]
        self._shared = [place for place, name in enumerate(self._names) if name not in own]
        self._where_known = where_known

    def write(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Insert rows in their order.

        Args:
            connection: An open transaction, which has to be taken back where this raises.
            rows: The values of each, in the order of the table's columns.
        """
        driver = _driver_of(connection)
        few = list[Values]()
        if len(rows) < self._at_once or not self._own:
            driver.executemany(self._one, rows)
            return
        shared, own = itemgetter(*self._shared), itemgetter(*self._own)
        for common, alike in groupby(rows, key=shared):
            left = list(alike)
            whole = len(left) - len(left) % self._at_once
            if whole and few:
                driver.executemany(self._one, few)
                few = []
            for start in range(0, whole, self._at_once):
                together = chain.from_iterable(map(own, left[start : start + self._at_once]))
                driver.execute(self._many, (*common, *together))
            few += left[whole:]
        driver.executemany(self._one, few)

    @cached_property
    def _at_once(self) -> int:
        return (_PARAMETERS - len(self._shared)) // max(len(self._own), 1)

    @cached_property
    def _one(self) -> str:
        return self._text(", ".join("?" * len(self._names)))

    @cached_property
    def _many(self) -> str:
        numbers = {place: number for number, place in enumerate(self._shared, 1)}
        listed = list[str]()
        for row in range(self._at_once):
            first = len(self._shared) + row * len(self._own) + 1
            numbers |= {place: number for number, place in enumerate(self._own, first)}
            listed.append(", ".join(f"?{numbers[place]}" for place in range(len(self._names))))
        return self._text("), (".join(listed))

    def _text(self, values: str) -> str:
        # The transaction is taken back anyhow where a row is refused, so the rows before it may
        # stay till then: else SQLite copies every page that many rows in one call will change.
        names = ", ".join(f'"{name}"' for name in self._names)
        return f"INSERT OR FAIL INTO {self._table} ({names}) VALUES ({values}) {self._where_known}"


def change_rows(connection: Connection, statement: str, keys: Sequence[Values]) -> None:
    """Run a statement that changes or deletes a row, for very many of them.

    Args:
        connection: An open transaction.
        statement: It in SQL.
        keys: Its parameters for each row.
    """
    if keys:
        _driver_of(connection).executemany(statement, keys)
