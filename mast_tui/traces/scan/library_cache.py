"""What is known of files from an earlier look, so that an unchanged folder opens at once.

The cache is one SQLite file of facts that can all be read again: it may be deleted at any time,
and one that is broken or from another version is begun anew.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import orjson

from mast_tui.traces.io.private_files import make_private, open_private
from mast_tui.traces.model import FileReport, Thread, Trace
from mast_tui.traces.scan.code_version import code_version
from mast_tui.traces.scan.scan_diff import Looked, ReadAgain, look_from_bytes, look_to_bytes
from mast_tui.traces.scan.sub_agents import thread_of
from mast_tui.traces.scan.unread import FileToRead, report_from_bytes, report_to_bytes

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS files (
    path TEXT PRIMARY KEY,
    stamp BLOB NOT NULL,
    report BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS threads (
    path TEXT PRIMARY KEY,
    stamp BLOB NOT NULL,
    id TEXT,
    parent TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS looks (
    paths TEXT NOT NULL,
    part INTEGER NOT NULL,
    traces BLOB NOT NULL,
    PRIMARY KEY (paths, part)
);
"""
_TABLES: Final = ("files", "threads", "looks")
_FORMAT: Final = 2
_KEPT_BACK: Final = 200
"""How many new facts wait for one transaction."""

FIRST_PART: Final = 64
"""How many traces of the last look come first: those of one screen."""

NEXT_PARTS: Final = 500
"""How many come together after them."""


def library_cache_path() -> Path:
    """Where the cache lies: in the user's folder for what may be deleted."""
    from platformdirs import user_cache_path

    return user_cache_path("mast-tui", appauthor=False) / "library.db"


class LibraryCache:
    """Reports on files by path, each good only while size and time of change are the same.

    It belongs to the thread that made it. Whatever goes wrong with the file behind it costs time,
    never a trace: then everything is read anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = _open(path)
        self._files: dict[str, tuple[bytes, bytes]] = {}
        self._threads: dict[str, tuple[bytes, str | None, str | None]] = {}
        self._new_files: list[tuple[str, bytes, bytes]] = []
        self._new_threads: list[tuple[str, bytes, str | None, str | None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def open_folder(self, folder: Path) -> None:
        """Take what is known of everything under ``folder`` from the cache."""
        if self._database is None:
            return
        begin = f"{folder.absolute()}{os.sep}"
        end = begin[:-1] + chr(ord(begin[-1]) + 1)
        between = "WHERE path >= ? AND path < ?"
        try:
            rows = self._database.execute(
                f"SELECT path, stamp, report FROM files {between}", (begin, end)
            )
            self._files.update((path, (stamp, report)) for path, stamp, report in rows)
            rows = self._database.execute(
                f"SELECT path, stamp, id, parent FROM threads {between}", (begin, end)
            )
            for path, stamp, own, parent in rows:
                if _may_be_thread(own, parent):
                    self._threads[path] = (stamp, own, parent)
        except (sqlite3.Error, ValueError):
            self._give_up()

    def last_look(self, paths: Sequence[Path], read: ReadAgain) -> Iterator[tuple[Trace, ...]]:
        """Tell the traces that the last walk over these paths has found, as they were kept.

        Nothing is known of what has become of their files since.

        Args:
            paths: The files and folders that were walked over.
            read: Reads the file of a trace, when it is opened.

        Yields:
            Some of the traces, in their order.
        """
        if self._database is None:
            return
        try:
            for (data,) in self._database.execute(
                "SELECT traces FROM looks WHERE paths = ? ORDER BY part", (_name_of(paths),)
            ):
                traces = look_from_bytes(data, read)
                if traces is None:
                    return
                yield traces
        except (sqlite3.Error, ValueError):
            self._give_up()

    def keep_look(self, paths: Sequence[Path], traces: Sequence[Looked]) -> None:
        """Keep what a walk over these paths has found, for ``last_look`` to tell in this order."""
        if self._database is None:
            return
        name = _name_of(paths)
        ends = [0, *range(FIRST_PART, len(traces), NEXT_PARTS), len(traces)]
        parts = [traces[begin:end] for begin, end in pairwise(ends) if begin < end]
        try:
            rows = [(name, number, look_to_bytes(part)) for number, part in enumerate(parts)]
            with self._database:
                self._database.execute("DELETE FROM looks WHERE paths = ?", (name,))
                self._database.executemany("INSERT INTO looks VALUES (?, ?, ?)", rows)
        except (TypeError, ValueError):
            return  # A name or a text that is no Unicode: then there is no last look.
        except sqlite3.Error:
            self._give_up()

    def report(
        self,
        path: Path,
        members: Sequence[Path],
        read: Callable[[], FileReport],
        file: FileToRead,
    ) -> FileReport:
        """The report on a file and its members: from the cache where none has changed.

        ``file`` is read by the traces that come from the cache.
        """
        name = str(path.absolute())
        stamp = _stamp((path, *members))
        known = self._files.get(name)
        if stamp is not None and known is not None and known[0] == stamp:
            report = report_from_bytes(path, known[1], file)
            if report is not None:
                return report
        report = read()
        if stamp is not None and report.failed is None:
            self._keep(name, stamp, report)
        return report

    def thread_of(self, path: Path) -> Thread | None:
        """Which thread a file holds, without looking into one that has not changed."""
        name = str(path.absolute())
        stamp = _stamp((path,))
        known = self._threads.get(name)
        if stamp is not None and known is not None and known[0] == stamp:
            return None if known[1] is None else Thread(known[1], known[2])
        thread = thread_of(path)
        if stamp is not None:
            row = (thread.id, thread.parent) if thread is not None else (None, None)
            self._new_threads.append((name, stamp, *row))
        return thread

    def flush(self) -> None:
        """Write what is new."""
        if self._database is not None and (self._new_files or self._new_threads):
            try:
                with self._database:
                    self._database.executemany(
                        "INSERT OR REPLACE INTO files VALUES (?, ?, ?)", self._new_files
                    )
                    self._database.executemany(
                        "INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?)", self._new_threads
                    )
            except (sqlite3.Error, UnicodeEncodeError):
                self._give_up()
        self._new_files, self._new_threads = [], []

    def close(self) -> None:
        """Write what is new and let go of the file."""
        self.flush()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _keep(self, name: str, stamp: bytes, report: FileReport) -> None:
        try:
            data = report_to_bytes(report)
        except TypeError:
            return  # A text that is no Unicode, or a number that is too big.
        self._new_files.append((name, stamp, data))
        if len(self._new_files) >= _KEPT_BACK:
            self.flush()

    def _give_up(self) -> None:
        """Do without the cache from here on, and let the next start begin a new one."""
        if self._database is not None:
            self._database.close()
            self._database = None
            _remove(self._path)


def _open(path: Path) -> sqlite3.Connection | None:
    """The database at ``path``, begun anew where it is broken; None where there can be none."""
    for _attempt in range(2):
        try:
            make_private(path.parent)
            os.close(open_private(path))  # what SQLite lays beside it is as private as this
            database = sqlite3.connect(path, timeout=1.0, isolation_level="DEFERRED")
        except (OSError, sqlite3.Error):
            return None
        try:
            database.execute("PRAGMA trusted_schema=OFF")
            database.execute("PRAGMA synchronous=OFF")
            (found,) = database.execute("PRAGMA user_version").fetchone()
            version = _version()
            if found != version:
                for table in _TABLES:
                    database.execute(f"DROP TABLE IF EXISTS {table}")
                database.executescript(_SCHEMA)
                database.execute(f"PRAGMA user_version={version}")
        except sqlite3.Error:
            database.close()
            if not _remove(path):
                return None
        else:
            return database
    return None


def _version() -> int:
    """A number that changes with the format and with every reader's code."""
    return (_FORMAT * 1_000_003 + code_version()) % (1 << 31)


def _may_be_thread(own: object, parent: object) -> bool:
    """Whether a row tells of a thread, or that there is none; a damaged one does neither."""
    if own is None:
        return parent is None
    return isinstance(own, str) and isinstance(parent, str | None)


def _name_of(paths: Sequence[Path]) -> str:
    """Under which name the look at some paths is kept: as they were given, and from where."""
    return "\0".join((str(Path.cwd()), *map(os.fspath, paths)))


def _remove(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _stamp(paths: Sequence[Path]) -> bytes | None:
    """Names, sizes and times of change of files; None where one is not there."""
    try:
        found = [(os.fspath(path), path.stat()) for path in paths]
        return orjson.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in found])
    except (OSError, TypeError):
        return None
