"""The cache of facts about files, so that an unchanged folder opens at once.

The cache is one SQLite file, which may be deleted at any time, because all facts can be read again.
Each fact has a checksum, so that its values need no further checks.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from sys import intern
from typing import Any, Final, Self
from zlib import crc32

import orjson

from mast_tui.traces.io.private_files import make_private, open_private
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.library import read_again
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
_CHECKSUM_BYTES: Final = 4
_TRANSACTION_FACTS: Final = 200
"""The number of new facts that one transaction writes."""

FIRST_PART: Final = 64
"""The number of traces in the first part, enough for one screen."""

NEXT_PARTS: Final = 500
"""The number of traces in each later part."""

_INTERNED_FIELDS: Final = tuple(
    map(TraceSummary._fields.index, ("reader", "system", "model", "benchmark", "outcome", "task"))
)
"""The positions of fields with values that many traces share, so that memory holds each value
once."""

_PROBLEMS: Final = TraceSummary._fields.index("problems")

ScannedTrace = tuple[Trace, Sequence[str]]
"""A trace, and the paths of the files of its sub-agents."""


def library_cache_path() -> Path:
    """Return the path of the cache in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("mast-tui", appauthor=False) / "library.db"


class LibraryCache:
    """The reports on files by path, each valid while the size and time of change are the same.

    Only one thread may use it. After an error of the database everything is read again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = _open_database(path)
        self._cached: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        """The stamp and value of each loaded fact, by path and name of the fact."""
        self._queued_facts: list[tuple[str, str, bytes, bytes]] = []
        """The path, name, stamp and value of each fact that is not written yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def load_folder(self, folder: Path) -> None:
        """Load all facts that the database has about the files under ``folder``."""
        if self._database is None:
            return
        begin = f"{folder.absolute()}{os.sep}"
        end = begin[:-1] + chr(ord(begin[-1]) + 1)  # the first text after all paths in the folder
        try:
            rows = self._database.execute(
                "SELECT path, fact, stamp, value FROM files WHERE path >= ? AND path < ?",
                (begin, end),
            )
            self._cached.update(((path, fact), (stamp, value)) for path, fact, stamp, value in rows)
        except sqlite3.Error:
            self._give_up()

    def cached_traces(self, paths: Sequence[Path]) -> Iterator[tuple[Trace, ...]]:
        """Yield the traces of the last walk over these paths, in groups and in order.

        Their files may have changed since.
        """
        if self._database is None:
            return
        try:
            for (data,) in self._database.execute(
                "SELECT traces FROM looks WHERE paths = ? ORDER BY part", (_walk_key(paths),)
            ):
                entries = _checked_value(data)
                if entries is None:
                    return
                yield tuple(_traces_of_entries(entries))
        except sqlite3.Error:
            self._give_up()

    def keep_traces(self, paths: Sequence[Path], traces: Sequence[ScannedTrace]) -> None:
        """Store the traces of a walk for ``cached_traces``, unless a text is no Unicode.

        Args:
            paths: The files and folders of the walk.
            traces: The traces, with the files of their sub-agents.
        """
        if self._database is None:
            return
        walk_key = _walk_key(paths)
        # The first part has ``FIRST_PART`` traces, each further one ``NEXT_PARTS``.
        ends = [0, *range(FIRST_PART, len(traces), NEXT_PARTS), len(traces)]
        parts = [traces[begin:end] for begin, end in pairwise(ends) if begin < end]
        try:
            rows = [
                (walk_key, number, _with_checksum(_trace_entries(part)))
                for number, part in enumerate(parts)
            ]
            with self._database:
                self._database.execute("DELETE FROM looks WHERE paths = ?", (walk_key,))
                self._database.executemany("INSERT INTO looks VALUES (?, ?, ?)", rows)
        except (TypeError, ValueError):
            return  # a name or a text is no Unicode
        except sqlite3.Error:
            self._give_up()

    def report(
        self,
        path: Path,
        members: Sequence[Path],
        read: Callable[[], FileReport],
        file: FileToRead,
    ) -> FileReport:
        """Return the report on a file and its members, from the cache if all are unchanged.

        Args:
            path: The file.
            members: The files of its sub-agents.
            read: Reads the file and its members.
            file: Reads the file later, when a trace of a cached report is opened.
        """
        stamp = _stamp_of_files((path, *members))
        values = self._cached_fact(path, _REPORT, stamp)
        if values is not None:
            return _report_of_values(path, values, file)
        report = read()
        if report.failed is None:
            self._queue_fact(path, _REPORT, stamp, partial(_report_values, report))
        return report

    def thread_of(self, path: Path) -> Thread | None:
        """Return the thread (one agent's part of a run) in a file, from the cache if possible."""
        stamp = _stamp_of_files((path,))
        values = self._cached_fact(path, _THREAD, stamp)
        if values is not None:
            return Thread(*values) if values else None
        thread = thread_of(path)
        self._queue_fact(path, _THREAD, stamp, lambda: () if thread is None else tuple(thread))
        return thread

    def _cached_fact(self, path: Path, fact: str, stamp: bytes | None) -> Any:
        """Return a cached fact of an unchanged file, if there is one."""
        cached_stamp, value = self._cached.get((str(path.absolute()), fact), (None, b""))
        if cached_stamp is None or cached_stamp != stamp:
            return None
        return _checked_value(value)

    def _queue_fact(
        self, path: Path, fact: str, stamp: bytes | None, make_value: Callable[[], object]
    ) -> None:
        """Queue a fact of a file for the next transaction; write the queue if it is long."""
        if stamp is None or self._database is None:
            return
        try:
            value = _with_checksum(make_value())
        except TypeError:
            return  # a text is no Unicode, or a number is too big
        self._queued_facts.append((str(path.absolute()), fact, stamp, value))
        if len(self._queued_facts) >= _TRANSACTION_FACTS:
            self.flush()

    def flush(self) -> None:
        """Write the queued facts."""
        if self._database is not None and self._queued_facts:
            try:
                with self._database:
                    self._database.executemany(
                        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", self._queued_facts
                    )
            except (sqlite3.Error, UnicodeEncodeError):
                self._give_up()
        self._queued_facts = []

    def close(self) -> None:
        """Write the queued facts and close the database."""
        self.flush()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _give_up(self) -> None:
        """Close and delete the database, so that nothing more is cached."""
        if self._database is not None:
            self._database.close()
            self._database = None
            _remove_file(self._path)


def _open_database(path: Path) -> sqlite3.Connection | None:
    """Open the database; create it again if it is broken or of another version.

    Return None if that is impossible.
    """
    for _attempt in range(2):
        try:
            make_private(path.parent)
            os.close(open_private(path))  # SQLite gives its other files the same rights
            database = sqlite3.connect(path, timeout=1.0, isolation_level="DEFERRED")
        except (OSError, sqlite3.Error):
            return None
        try:
            database.execute("PRAGMA trusted_schema=OFF")
            database.execute("PRAGMA synchronous=OFF")
            (stored_version,) = database.execute("PRAGMA user_version").fetchone()
            # The number changes with the results of reading and the fields of a summary.
            version = crc32(repr((cache_version(), TraceSummary._fields)).encode()) >> 1
            if stored_version != version:
                database.executescript(f"{_SCHEMA} PRAGMA user_version={version};")
        except sqlite3.Error:
            database.close()
            if not _remove_file(path):
                return None
        else:
            return database
    return None


def _with_checksum(value: object) -> bytes:
    """Return a value as JSON, with a checksum before it.

    Raises:
        TypeError: The value is no JSON value.
    """
    data = orjson.dumps(value)
    return crc32(data).to_bytes(_CHECKSUM_BYTES) + data


def _checked_value(data: object) -> Any:
    """Return the value of bytes that ``_with_checksum`` made; None if they are damaged."""
    if not isinstance(data, bytes):
        return None
    checksum = data[:_CHECKSUM_BYTES]
    value_json = data[_CHECKSUM_BYTES:]
    if not value_json or crc32(value_json).to_bytes(_CHECKSUM_BYTES) != checksum:
        return None
    return orjson.loads(value_json)


def _report_values(report: FileReport) -> object:
    """Return a report as a JSON value, with the summaries of its traces."""
    thread = report.thread
    return (
        report.format,
        report.skipped,
        [(problem.place, problem.message) for problem in report.problems],
        None if thread is None else tuple(thread),
        [(trace.record, tuple(trace.summary)) for trace in report.traces],
    )


def _report_of_values(path: Path, values: Sequence[Any], file: FileToRead) -> FileReport:
    """Return the report from the values of ``_report_values``, with unread traces."""
    format_name, skipped, problems, thread, traces = values
    return FileReport(
        path,
        format=format_name,
        skipped=skipped,
        problems=tuple(Problem(location, message) for location, message in problems),
        thread=None if thread is None else Thread(*thread),
        traces=tuple(
            unread_trace(file, record, _summary_of_values(summary)) for record, summary in traces
        ),
    )


def _trace_entries(traces: Sequence[ScannedTrace]) -> object:
    return [
        (trace.file, trace.record, members, trace.is_amended, tuple(trace.summary))
        for trace, members in traces
    ]


def _traces_of_entries(entries: Sequence[Sequence[Any]]) -> Iterator[Trace]:
    """Yield unread traces from the values of ``_trace_entries``.

    Traces of one file share a ``FileToRead``, so that the file is read once.
    """
    file: FileToRead | None = None
    for path, record, members, is_amended, values in entries:
        if file is None or path != file.path:
            read_file = partial(read_again, trace_path(path), tuple(map(trace_path, members)))
            file = FileToRead(path, read_file)
        summary = _summary_of_values(values)
        trace = unread_trace(file, record, summary)
        if is_amended:  # the id or some facts are from other files, which are not read again
            # The summary may have cut the task, so the task is read from the trace's own file.
            other_facts = summary.meta._replace(task=None)
            trace = trace.with_id(summary.trace_id).with_facts(other_facts)
        yield trace


def _summary_of_values(values: list[Any]) -> TraceSummary:
    """Return the summary with these values, which are in the order of its fields.

    Positions are used for speed: 10,000 summaries take 11 ms, by field names 45 ms.
    """
    for index in _INTERNED_FIELDS:
        if values[index] is not None:
            values[index] = intern(values[index])
    values[_PROBLEMS] = tuple(map(tuple, values[_PROBLEMS]))
    return TraceSummary._make(values)


def _walk_key(paths: Sequence[Path]) -> str:
    """Return the key of a walk: the current folder and the paths, unchanged."""
    return "\0".join((str(Path.cwd()), *map(os.fspath, paths)))


def _remove_file(path: Path) -> bool:
    """Delete a file if it exists; return False if that is impossible."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _stamp_of_files(paths: Sequence[Path]) -> bytes | None:
    """Return the names, sizes and times of change of files.

    Return None if a file is missing, or its name is no Unicode.
    """
    try:
        stats = [(os.fspath(path), path.stat()) for path in paths]
        return orjson.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    except (OSError, TypeError):
        return None
