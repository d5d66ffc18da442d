"""The cache of facts about files, so that an unchanged folder opens at once.

The cache is one SQLite file of facts that can all be read again: it may be deleted at any time,
and one that is broken or from another version is begun anew. Each fact carries a checksum, so that
what is there is what was written, and need not be doubted value by value.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from sys import intern
from types import TracebackType
from typing import Any, Final, Self
from zlib import crc32

import orjson

from mast_tui.traces.io.private_files import make_private, open_private
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.model import FileReport, Problem, Thread, Trace, TraceSummary
from mast_tui.traces.scan.document_cache import cache_version
from mast_tui.traces.scan.sub_agents import thread_of
from mast_tui.traces.scan.unread import FileToRead, unread_trace

_SCHEMA: Final = """
DROP TABLE IF EXISTS files;
DROP TABLE IF EXISTS threads;
DROP TABLE IF EXISTS looks;
CREATE TABLE files (
    path TEXT NOT NULL,
    fact TEXT NOT NULL,
    stamp BLOB NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (path, fact)
) WITHOUT ROWID;
CREATE TABLE looks (
    paths TEXT NOT NULL,
    part INTEGER NOT NULL,
    traces BLOB NOT NULL,
    PRIMARY KEY (paths, part)
);
"""
_REPORT: Final = "report"
_THREAD: Final = "thread"
_TRANSACTION_FACTS: Final = 200
"""The number of new facts that one transaction writes."""

FIRST_PART: Final = 64
"""The number of cached traces that come first: those of one screen."""

NEXT_PARTS: Final = 500
"""The number of traces in each later part."""

_SHARED: Final = tuple(
    map(TraceSummary._fields.index, ("reader", "system", "model", "benchmark", "outcome", "task"))
)
"""The fields that many traces have in common, which are kept in memory once."""

_PROBLEMS: Final = TraceSummary._fields.index("problems")

Looked = tuple[Trace, Sequence[str]]
"""A trace that was found, with the files of its sub-agents."""

ReadAgain = Callable[[Path, Sequence[Path]], FileReport]
"""Reads a file, or the folder of one run, and the files of its sub-agents."""


def library_cache_path() -> Path:
    """Return the path of the cache in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("mast-tui", appauthor=False) / "library.db"


class LibraryCache:
    """Reports on files by path, each good only while size and time of change are the same.

    It belongs to the thread that made it. An error of its file costs time,
    never a trace: then everything is read again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = _open(path)
        self._cached: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self._new: list[tuple[str, str, bytes, bytes]] = []

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
        try:
            rows = self._database.execute(
                "SELECT path, fact, stamp, value FROM files WHERE path >= ? AND path < ?",
                (begin, end),
            )
            self._cached.update(((path, fact), (stamp, value)) for path, fact, stamp, value in rows)
        except sqlite3.Error:
            self._give_up()

    def cached_traces(self, paths: Sequence[Path], read: ReadAgain) -> Iterator[tuple[Trace, ...]]:
        """Yield the traces that the last walk over these paths found.

        Their files may have changed since.

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
                entries = _checked_value(data)
                if entries is None:
                    return
                yield tuple(_looked_at(entries, read))
        except sqlite3.Error:
            self._give_up()

    def keep_traces(self, paths: Sequence[Path], traces: Sequence[Looked]) -> None:
        """Keep the traces of a walk for ``cached_traces``.

        Args:
            paths: The files and folders that were walked over.
            traces: The traces, with the files of their sub-agents.
        """
        if self._database is None:
            return
        name = _name_of(paths)
        ends = [0, *range(FIRST_PART, len(traces), NEXT_PARTS), len(traces)]
        parts = [traces[begin:end] for begin, end in pairwise(ends) if begin < end]
        try:
            rows = [
                (name, number, _with_checksum(_serialized_traces(part)))
                for number, part in enumerate(parts)
            ]
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
        """Return the report on a file and its members: from the cache where none has changed.

        Args:
            path: The file.
            members: The files of its sub-agents.
            read: Reads the file and its members.
            file: The file as the traces from the cache read it.
        """
        stamp = _stamp((path, *members))
        if (values := self._fact(path, _REPORT, stamp)) is not None:
            return _report_of(path, values, file)
        report = read()
        if report.failed is None:
            self._keep(path, _REPORT, stamp, partial(_values_of, report))
        return report

    def thread_of(self, path: Path) -> Thread | None:
        """Return the thread that a file holds, without opening one that has not changed."""
        stamp = _stamp((path,))
        if (values := self._fact(path, _THREAD, stamp)) is not None:
            return Thread(*values) if values else None
        thread = thread_of(path)
        values_to_keep = () if thread is None else tuple(thread)
        self._keep(path, _THREAD, stamp, lambda: values_to_keep)
        return thread

    def _fact(self, path: Path, fact: str, stamp: bytes | None) -> Any:
        """Return a cached fact of a file that has not changed; None if there is none."""
        entry = self._cached.get((str(path.absolute()), fact))
        return _checked_value(entry[1]) if entry is not None and entry[0] == stamp else None

    def _keep(
        self, path: Path, fact: str, stamp: bytes | None, value: Callable[[], object]
    ) -> None:
        """Queue a fact of a file for the next transaction."""
        if stamp is None or self._database is None:
            return
        try:
            self._new.append((str(path.absolute()), fact, stamp, _with_checksum(value())))
        except TypeError:
            return  # A text that is no Unicode, or a number that is too big.
        if len(self._new) >= _TRANSACTION_FACTS:
            self.flush()

    def flush(self) -> None:
        """Write what is new."""
        if self._database is not None and self._new:
            try:
                with self._database:
                    self._database.executemany(
                        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", self._new
                    )
            except (sqlite3.Error, UnicodeEncodeError):
                self._give_up()
        self._new = []

    def close(self) -> None:
        """Write what is new and close the file."""
        self.flush()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _give_up(self) -> None:
        """Do without the cache from here on, and let the next start begin a new one."""
        if self._database is not None:
            self._database.close()
            self._database = None
            _remove(self._path)


def _open(path: Path) -> sqlite3.Connection | None:
    """Return the database at ``path``, recreated where it is broken; None if it cannot exist."""
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
            (stored_version,) = database.execute("PRAGMA user_version").fetchone()
            version = _version()
            if stored_version != version:
                database.executescript(f"{_SCHEMA} PRAGMA user_version={version};")
        except sqlite3.Error:
            database.close()
            if not _remove(path):
                return None
        else:
            return database
    return None


def _version() -> int:
    """Return a number that changes with what is read of files, and with a summary's fields."""
    return crc32(repr((cache_version(), TraceSummary._fields)).encode()) >> 1


def _with_checksum(value: object) -> bytes:
    """Return a value as bytes with a checksum.

    Raises:
        TypeError: It is not a JSON value.
    """
    data = orjson.dumps(value)
    return crc32(data).to_bytes(4) + data


def _checked_value(sealed: object) -> Any:
    """Return the value that was sealed; None if the bytes have changed."""
    if not isinstance(sealed, bytes) or crc32(sealed[4:]).to_bytes(4) != sealed[:4]:
        return None
    return orjson.loads(sealed[4:]) if sealed[4:] else None


def _values_of(report: FileReport) -> object:
    thread = report.thread
    return (
        report.format,
        report.skipped,
        [(problem.place, problem.message) for problem in report.problems],
        None if thread is None else tuple(thread),
        [(trace.record, tuple(trace.summary)) for trace in report.traces],
    )


def _report_of(path: Path, values: Sequence[Any], file: FileToRead) -> FileReport:
    format_name, skipped, problems, thread, traces = values
    return FileReport(
        path,
        format=format_name,
        skipped=skipped,
        problems=tuple(Problem(location, message) for location, message in problems),
        thread=None if thread is None else Thread(*thread),
        traces=tuple(unread_trace(file, record, _summary(summary)) for record, summary in traces),
    )


def _serialized_traces(traces: Sequence[Looked]) -> object:
    return [
        (trace.file, trace.record, members, trace.is_amended, tuple(trace.summary))
        for trace, members in traces
    ]


def _looked_at(entries: Sequence[Sequence[Any]], read: ReadAgain) -> Iterator[Trace]:
    file: FileToRead | None = None
    for path, record, members, amended, values in entries:
        if file is None or path != file.path:
            read_file = partial(read, trace_path(path), tuple(map(trace_path, members)))
            file = FileToRead(path, members, read_file)
        summary = _summary(values)
        trace = unread_trace(file, record, summary)
        if amended:  # a settled id, and facts that other files have told
            trace = trace.with_id(summary.trace_id).with_facts(summary.meta._replace(task=None))
        yield trace


def _summary(values: list[Any]) -> TraceSummary:
    """Return a summary of the values that the cache keeps, in the order of its fields.

    ``_version`` vouches for the order. With names, 10,000 traces take 45 ms instead of 11.
    """
    for index in _SHARED:
        if values[index] is not None:
            values[index] = intern(values[index])
    values[_PROBLEMS] = tuple(map(tuple, values[_PROBLEMS]))
    return TraceSummary._make(values)


def _name_of(paths: Sequence[Path]) -> str:
    """Return the key of a walk over some paths: as they were named, and the current folder."""
    return "\0".join((str(Path.cwd()), *map(os.fspath, paths)))


def _remove(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _stamp(paths: Sequence[Path]) -> bytes | None:
    """Return names, sizes and times of change of files; None if one is not there."""
    try:
        stats = [(os.fspath(path), path.stat()) for path in paths]
        return orjson.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    except (OSError, TypeError):
        return None
