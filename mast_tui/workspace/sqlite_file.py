"""A workspace in one SQLite file, with one connection that writes and others that read.

SQLite's write-ahead log is not reliable on network file systems, which are detected here.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import QueuePool, StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable

from mast_tui.errors import WorkspaceError, WorkspaceGone
from mast_tui.workspace.database import BUSY, WRITER_POLL_SECONDS, Database, driver_of
from mast_tui.workspace.migration import migrate
from mast_tui.workspace.mounts import is_on_network
from mast_tui.workspace.paths import (
    check_schema,
    check_version,
    found_trace_path,
    is_workspace,
    keep_private,
    stored_trace_path,
    traces_folder,
    workspace_files,
)
from mast_tui.workspace.schema import APPLICATION_ID, SCHEMA_VERSION, metadata
from mast_tui.writes import deadline, pause

BUSY_SECONDS: Final = 5.0
"""Seconds that SQLite itself waits, for a reader at a commit or while another program opens."""

_CACHE_KILOBYTES: Final = 32_000
"""The size of the writer's cache.

In a large workspace, the ids of imported events are spread over an index that exceeds SQLite's own
2 MB.
"""

_Identity = tuple[int, int]
"""The device and inode of a file."""


class SqliteFile(Database):
    """A workspace in a file, or in memory if ``path`` is None."""

    driver_error = sqlite3.Error

    def __init__(
        self, path: Path | None, *, create: bool, memory_name: str = "the workspace in memory"
    ) -> None:
        super().__init__(path)
        self._memory_name = memory_name
        self._is_gone = False
        """True if the open file is no longer at its path."""
        self._abandoned_connections: list[Connection] = []
        """Connections to moved or deleted files, which must stay open."""
        self._data_version = 0
        """SQLite's counter of writes by other programs."""
        self._has_log = False
        """True if SQLite uses a write-ahead log."""
        self._file_identities: tuple[_Identity | None, _Identity | None] = (None, None)
        """The identities of the open database and its write-ahead log."""
        if path is not None and not is_workspace(path):
            if not create:
                raise WorkspaceError(f"{path}: there is no workspace here")
            make_file(path)
        self._open_connections()

    def _open_connections(self) -> None:
        """Open the connections for reading and writing, and prepare the tables."""
        self.traces_folder = None if self.path is None else traces_folder(self.path)
        self._readers = None if self.path is None else self._make_engine(reads_only=True)
        self.last_write = time.monotonic()  # preparing the tables may write
        with self._readable_errors():
            self._writer = self._make_engine(reads_only=False).connect()
            try:
                self._prepare_file()
            except BaseException:
                self._writer.close()
                raise

    @property
    def name(self) -> str:
        return self._memory_name if self.path is None else str(self.path)

    def close(self) -> None:
        """Move the content of the write-ahead log into the file, and close the file.

        The log stays if another program uses the file, or if a writer of this program is still at
        work after ``BUSY_SECONDS``.
        """
        if self._closed:
            return
        self._closing = True
        has_lock = self._write_lock.acquire(timeout=BUSY_SECONDS)
        try:
            self._closed = True
            if self._readers is not None:
                self._readers.dispose()
            if not has_lock:
                return  # a writer still uses the connection
            if self._is_gone:
                return  # closing would write into the file that has replaced this one
            with suppress(sqlite3.Error):
                self._writer_driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._writer.close()
            self._writer.engine.dispose()
        finally:
            if has_lock:
                self._write_lock.release()

    @contextmanager
    def _open_reader(self) -> Iterator[Connection]:
        """Open a connection for one read; in memory there is only one connection."""
        if self._readers is not None:
            with self._readers.connect() as connection:
                yield connection
            return
        with self._taking_turn(), self._writer.begin() as transaction:
            self._run_pragma("query_only=ON")
            try:
                yield self._writer
            finally:
                self._run_pragma("query_only=OFF")
                transaction.rollback()

    def _begin_transaction(self, annotators: Collection[str]) -> None:
        self.check_exists()
        self._writer.begin()

    def _run_statement(self, statement: str) -> object:
        return self._writer_driver.execute(statement)

    def _in_transaction(self) -> bool:
        return self._writer_driver.in_transaction

    def _begin_writing(self, connection: Connection) -> None:
        """Begin a transaction in which no other writer can change what was read."""
        driver = _sqlite_driver(connection)
        give_up_at = deadline()
        with self._without_waiting(driver):
            while True:
                try:
                    driver.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if not _is_busy(error) or time.monotonic() > give_up_at:
                        raise
                pause(WRITER_POLL_SECONDS)
                self._check_not_closing()

    @contextmanager
    def _without_waiting(self, driver: sqlite3.Connection) -> Iterator[None]:
        """Prevent SQLite from waiting for other writers in the block, so that the caller can wait.

        With a write-ahead log SQLite never waits by itself. Without a log it must wait again after
        the block, because a commit waits for readers.
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
        self._writer_driver.execute("COMMIT")

    def check_exists(self) -> None:
        """Raise ``WorkspaceGone`` if the open files are no longer at their paths."""
        if self.path is not None and (self._is_gone or not self._has_same_files()):
            self._is_gone = True
            raise WorkspaceGone(
                f"{self.path}: was deleted, moved or replaced while it was open; nothing more "
                "can be saved there, but you can still export the open work to another file"
            )

    def _has_same_files(self) -> bool:
        """Return whether the open database and log are still at their paths."""
        assert self.path is not None
        database = _file_identity(self.path, least_size=1)
        log = _file_identity(_log_of(self.path)) if self._has_log else None
        opened_database, opened_log = self._file_identities
        # SQLite makes the log at its first use. The first log found is the open one.
        self._file_identities = (opened_database, opened_log or log)
        return (database, log) == self._file_identities

    def changed_elsewhere(self) -> bool:
        """Return whether another program has written to the file since the last call.

        While another thread or program writes, the result is False, and the next call reports the
        change.

        Raises:
            WorkspaceGone: The open file is no longer at its path.
        """
        if self._closed or not self._write_lock.acquire(blocking=False):
            return False
        try:
            with self._readable_errors():
                self.check_exists()
                earlier_version = self._data_version
                self._data_version = int(self._run_pragma("data_version"))
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
            return False
        finally:
            self._write_lock.release()
        return earlier_version != self._data_version

    def checkpoint(self) -> None:
        """Move the content of the write-ahead log into the file, unless others use the file.

        Until the next write, a copy of the file alone is then complete.
        """
        if self.path is None or self._closed or self._is_gone or not self._has_log:
            return
        with suppress(sqlite3.Error):
            connection = self._new_connection(reads_only=False)
            try:
                connection.execute("PRAGMA busy_timeout=0")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()

    def check(self) -> None:
        with self.reading() as connection:
            report = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        if report != "ok":
            raise WorkspaceError(f"{self.name}: the file is damaged: {report}; restore a backup")

    def copy_to(self, target: Path) -> None:
        """Copy everything, even from a file that was deleted while it is open."""
        with new_file(target) as draft, self._readable_errors(), self._taking_turn():
            copy = sqlite3.connect(draft)
            copy.text_factory = _decode_tolerantly
            try:
                self._writer_driver.backup(copy)
                _adapt_trace_paths(copy, self.traces_folder, traces_folder(target))
                # The copy has the journal mode of this file, which would need a log beside it.
                copy.execute("PRAGMA journal_mode=DELETE")
            finally:
                copy.close()

    def move_to(self, target: Path) -> None:
        """Copy everything to a new file after the open file was deleted, and continue with it."""
        if target == self.path:
            self._delete_stale_log()  # before the copy has the path to which the log belongs
        self.copy_to(target)
        with self._taking_turn():
            # If the target is another path, the log of the deleted file is still there.
            self._delete_stale_log()
            # Closing the old connection would write into a file that is now at the old path.
            self._abandoned_connections.append(self._writer)
            if self._readers is not None:
                self._readers.dispose()
            self.path = target
            self._is_gone = False
            self._open_connections()

    def _delete_stale_log(self) -> None:
        """Delete the log of a deleted database, which SQLite would apply to a new file."""
        assert self.path is not None
        log = _log_of(self.path)
        database, log_identity = self._file_identities
        if (
            log_identity is not None
            and _file_identity(log) == log_identity
            and _file_identity(self.path) != database
        ):
            log.unlink(missing_ok=True)
            self.path.with_name(self.path.name + "-shm").unlink(missing_ok=True)

    def _make_engine(self, *, reads_only: bool) -> Engine:
        """Return an engine of SQLAlchemy for reading, or for the writing connection."""

        def connect() -> sqlite3.Connection:
            return self._new_connection(reads_only=reads_only)

        options = {"traces_folder": self.traces_folder}
        if not reads_only:
            engine = create_engine(
                "sqlite://", creator=connect, poolclass=StaticPool, execution_options=options
            )
            event.listen(engine, "begin", self._begin_writing)
            return engine
        engine = create_engine(
            "sqlite://",
            creator=connect,
            poolclass=QueuePool,
            pool_size=2,
            max_overflow=-1,
            execution_options=options,
        )
        event.listen(engine, "begin", _begin_reading)
        return engine

    def _new_connection(self, *, reads_only: bool) -> sqlite3.Connection:
        """Open the file, or a database in memory."""
        # Transactions are begun in ``_begin_writing``, so that writers queue before they read.
        connection = sqlite3.connect(
            ":memory:" if self.path is None else str(self.path),
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=_Connection,
        )
        # Anyone may have made the file, so functions in its schema are not trusted.
        connection.execute("PRAGMA trusted_schema=OFF")
        if reads_only:
            connection.execute("PRAGMA query_only=ON")
        return connection

    @property
    def _writer_driver(self) -> sqlite3.Connection:
        return _sqlite_driver(self._writer)

    def _run_pragma(self, assignment: str) -> Any:
        """Read or set a pragma outside of transactions."""
        row = self._writer_driver.execute(f"PRAGMA {assignment}").fetchone()
        return None if row is None else row[0]

    def _prepare_file(self) -> None:
        """Create or migrate the tables, and set the options of the connection."""
        if self._stored_versions() == (0, 0):  # a new file
            self._create_tables()
        application_id, version = self._stored_versions()
        check_version(self.name, application_id=application_id, version=version)
        check_schema(self.name, self._writer_driver)
        if version < SCHEMA_VERSION:
            self._migrate_tables()
        if self.path is not None:
            self._set_journal_mode("delete" if is_on_network(self.path) else "wal")
        self._run_pragma("synchronous=FULL")
        self._run_pragma(f"cache_size=-{_CACHE_KILOBYTES}")
        self._has_log = self._run_pragma("journal_mode") == "wal"
        if self.path is not None:
            keep_private(self.path)
            # SQLite makes its write-ahead log later.
            self._file_identities = _file_identity(self.path), None
        if self._has_log:
            self._run_pragma("busy_timeout=0")  # see ``_without_waiting``
        self._data_version = int(self._run_pragma("data_version"))

    def _stored_versions(self) -> tuple[int, int]:
        return int(self._run_pragma("application_id")), int(self._run_pragma("user_version"))

    def _create_tables(self) -> None:
        """Create the tables of a new file."""
        connection = self._writer
        with connection.begin():
            # Another program may have created them while this one waited.
            if self._stored_versions() != (0, 0):
                return
            count = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
            if count:  # The tables are another program's; the check raises the error.
                check_version(self.name, application_id=0, version=0)
            for statement in _creating_statements():
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _migrate_tables(self) -> None:
        """Migrate a file of an earlier version in one transaction."""
        with self._writer.begin():
            # Another program may have migrated them while this one waited.
            application_id, version = self._stored_versions()
            check_version(self.name, application_id=application_id, version=version)
            migrate(self._writer, version)
            self._writer.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _set_journal_mode(self, mode: str) -> None:
        """Change the journal mode, and try again while another program has the file open.

        SQLite does not wait here. The old mode stays if the other program keeps the file open for
        ``BUSY_SECONDS``, or if SQLite refuses a write-ahead log.
        """
        give_up_at = time.monotonic() + BUSY_SECONDS
        while self._run_pragma("journal_mode") != mode:
            try:
                new_mode = self._run_pragma(f"journal_mode={mode}")
                if new_mode == mode or mode == "wal":  # a refusal of WAL is final
                    return
            except sqlite3.OperationalError:
                if time.monotonic() > give_up_at:
                    raise
            if time.monotonic() > give_up_at:
                return
            pause(0.02)

    def _workspace_error(self, error: BaseException) -> WorkspaceError:
        message = str(error)
        for part, advice in _ADVICE:
            if part in message:
                return WorkspaceError(f"{self.name}: {advice}")
        return WorkspaceError(f"{self.name}: the database says: {message}; nothing was written")


_DAMAGED: Final = (
    "the file is damaged; stop using it and restore a backup. Without one, save what can still be "
    "read: mast-tui export --format jsonl"
)
_ADVICE: Final = (
    ("locked", BUSY),
    (
        "attempt to write a readonly",
        "is read-only; nothing was written. Change the permissions of the file and its folder",
    ),
    ("disk is full", "the disk is full; nothing was written. Make room and try again"),
    (
        "disk I/O error",
        "the disk is full or reports an error; nothing was written. Make room or check the disk, "
        "and try again",
    ),
    ("not a database", "is not a mast-tui workspace (not an SQLite database)"),
    ("malformed", _DAMAGED),
    ("no such table", _DAMAGED),
    ("no such column", _DAMAGED),
    ("duplicate column", _DAMAGED),
    ("unable to open", "cannot be opened; check that the folder exists and may be written"),
)


@cache
def _creating_statements() -> tuple[str, ...]:
    """Return the statements that create the tables and indexes of a new file."""
    dialect = sqlite.dialect()
    statements: list[str] = []
    for table in metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes]
    return tuple(statements)


def _decode_tolerantly(text: bytes) -> str:
    return text.decode("utf-8", "replace")


class _Cursor(sqlite3.Cursor):
    """A cursor that reads texts that are not valid UTF-8 with U+FFFD for each invalid byte.

    Only rows with such texts are decoded in Python, which takes twice as long.
    """

    def fetchone(self) -> Any:
        try:
            return super().fetchone()
        except sqlite3.OperationalError as error:
            return self._row_decoded_tolerantly(error)

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        return self._fetch(size)

    def fetchall(self) -> list[Any]:
        return self._fetch(None)

    def _fetch(self, size: int | None) -> list[Any]:
        """Return the next rows, or all that remain if ``size`` is None."""
        rows = list[Any]()
        while True:
            try:
                rows.extend(islice(self, None if size is None else size - len(rows)))
                return rows
            except sqlite3.OperationalError as error:
                rows.append(self._row_decoded_tolerantly(error))

    def _row_decoded_tolerantly(self, error: sqlite3.OperationalError) -> Any:
        """Return the row at which decoding has failed; raise any other error again."""
        if "Could not decode" not in str(error):
            raise error
        self.connection.text_factory = _decode_tolerantly
        try:
            return super().fetchone()  # the cursor is still at the row
        finally:
            self.connection.text_factory = str


class _Connection(sqlite3.Connection):
    """A connection whose cursors read texts that are not valid UTF-8."""

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


def _sqlite_driver(connection: Connection) -> sqlite3.Connection:
    driver = driver_of(connection)
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _begin_reading(connection: Connection) -> None:
    _sqlite_driver(connection).execute("BEGIN")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _file_identity(path: Path, least_size: int = 0) -> _Identity | None:
    """Return the device and inode of a file; None without a file of so many bytes."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_size >= least_size else None


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def make_file(path: Path, *, new: bool = False) -> None:
    """Make an empty file that other users cannot read, and its folder if it is missing.

    Args:
        path: The file.
        new: True to fail if a file or link exists at the path.

    Raises:
        WorkspaceError: The file cannot be made.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    try:
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, flags, 0o600))
    except OSError as error:
        if isinstance(error, FileExistsError) and os.path.lexists(path):
            raise WorkspaceError(f"{path} exists already") from error
        raise WorkspaceError(
            f"{path}: the workspace cannot be created there: {error.strerror or error}"
        ) from error


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Yield an empty draft beside ``target``, which becomes ``target`` at the end of the block.

    If the program is killed in the block, an incomplete draft stays.

    Raises:
        WorkspaceError: A file exists at ``target``, or none can be made.
    """
    # Make the file on trial, so that errors are raised before the work.
    make_file(target, new=True)
    target.unlink()
    draft = target.with_name(f".mast-tui-{secrets.token_hex(8)}.part")
    try:
        make_file(draft, new=True)
        yield draft
        make_file(target, new=True)  # raises if another program has made a file meanwhile
        draft.replace(target)
    finally:
        for path in workspace_files(draft):
            path.unlink(missing_ok=True)


def _adapt_trace_paths(
    copy: sqlite3.Connection, old_folder: Path | None, new_folder: Path | None
) -> None:
    """Make the paths of traces in a copy relative to its own folder."""
    if old_folder == new_folder:
        return
    rows = copy.execute("SELECT id, path FROM traces WHERE path IS NOT NULL").fetchall()
    paths_and_ids = (
        (stored_trace_path(found_trace_path(path, old_folder), new_folder), trace_id)
        for trace_id, path in rows
    )
    copy.executemany("UPDATE traces SET path = ? WHERE id = ?", paths_and_ids)
    copy.commit()
