"""The paths that arguments of a command name: files, URLs, patterns, tables, lists of these."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.traces.io.regular_files import read_beside
from mast_tui.traces.io.remote import RemotePath, table_of, trace_path
from mast_tui.traces.io.url_secrets import ADDRESSES, object_parameters
from mast_tui.traces.model import FileReport

_LIST_BYTES: Final = 4 << 30

_ONE_SLASH: Final = re.compile(r"https?:/(?!/)", re.IGNORECASE)

_MOST_LISTS: Final = 1000
"""The most lists that one command may read."""

_DEEPEST_LIST: Final = 20
"""The deepest nesting of lists."""


class RecordPath(type(Path())):  # type: ignore[misc] # the path of this system, as 3.11 wants it
    """The path of one trace of a file.

    Attributes:
        record: The number of the trace in the file, from 0; None for a path derived from this one,
            such as its folder.
    """

    record: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _record_path, (str(self), self.record)

    def absolute(self) -> RecordPath:
        """Return the absolute path of the same trace."""
        return _record_path(str(super().absolute()), self.record)


def _record_path(file: str, record: int | None) -> RecordPath:
    path = RecordPath(file)
    path.record = record
    return path


def file_or_record(text: str) -> Path:
    """Return the path that an argument names; ``FILE#2`` is trace 2, counted from 0, of FILE.

    Args:
        text: A path of this machine. An existing file with the name ``FILE#2`` comes first.
    """
    path = Path(text)
    name, sign, number = text.rpartition("#")
    if not sign or not number.isdecimal() or path.exists() or not Path(name).is_file():
        return path
    return _record_path(name, int(number))


def only_records(report: FileReport, numbers: Collection[int]) -> FileReport:
    """Return the report on a file with only some traces, or a failure if one is missing.

    Args:
        report: The report on the whole file.
        numbers: The numbers of the traces, from 0.
    """
    if not report.traces:
        return report
    traces = report.traces
    missing_number = next((number for number in sorted(numbers) if number >= len(traces)), None)
    if missing_number is not None:
        count_text = counted(len(traces), "trace")
        return FileReport(report.path, failed=f"contains {count_text}, but no #{missing_number}")
    return report._replace(traces=tuple(traces[number] for number in sorted(numbers)))


def paths_of(*arguments: str) -> Iterator[Path]:
    """Yield the paths of the files and folders that arguments of a command name.

    Args:
        arguments: The arguments. Each is

            - a path or URL; a Parquet table of traces is the folder of its rows,
            - ``FILE#2``: one trace of a file,
            - a URL with ``*``: all files that match,
            - ``@FILE``: a list with one such argument a line; ``@-`` is stdin.

    Raises:
        MastError: A list cannot be read or names itself, nothing matches a pattern, or two URLs
            differ only in a query, which is no part of a path.
    """
    parser = _ArgumentParser()
    for argument in arguments:
        yield from parser.paths_of(argument, ())


class _ArgumentParser:
    """A parser of the arguments of one command line, which records its URLs and lists."""

    def __init__(self) -> None:
        self._queries: dict[Path, str] = {}
        self._list_count = 0

    def paths_of(self, argument: str, lists: tuple[str, ...]) -> Iterator[Path]:
        """Yield the paths that one argument, or one line of a list, names.

        An argument ``@LIST`` names a list of further arguments. A table of traces (Parquet) is a
        folder of files.

        Args:
            argument: The argument, or the line.
            lists: The lists that contain the line, outermost first.

        Raises:
            MastError: The argument cannot be followed; see the function ``paths_of``.
        """
        if argument.startswith("@") and not os.path.exists(argument):  # noqa: PTH110 # long names raise
            yield from self._paths_in_list(argument[1:], lists)
            return
        if _ONE_SLASH.match(argument):
            scheme = argument.partition(":")[0]
            raise MastError(f"{scheme}:/…: a URL begins with {scheme}://")

        path = trace_path(argument)
        try:
            if isinstance(path, RemotePath):
                yield from self._remote_paths(path)
            else:
                yield table_of(path) or file_or_record(argument)
        except OSError as error:
            raise MastError(f"{path}: {error.strerror or error}") from None

    def _remote_paths(self, path: RemotePath) -> list[RemotePath]:
        """Return the files of a URL or pattern; none for a second URL of the same file.

        Raises:
            MastError: Nothing matches the pattern.
            OSError: A folder cannot be listed.
        """
        if not self._needs_reading(path):
            return []
        matches = path.matches() if "*" in str(path) else [path]
        if not matches:
            raise MastError(f"{path}: nothing matches")
        return [table_of(match) or match for match in matches]

    def _needs_reading(self, path: RemotePath) -> bool:
        """Return whether a path must be read: False for a second signed URL of the same file.

        Raises:
            MastError: Two URLs of this path have queries that may name different files.
        """
        query = ADDRESSES.query_of(str(path))
        earlier_query = self._queries.get(path)
        self._queries[path] = query
        if earlier_query is None:
            return True
        if object_parameters(earlier_query) != object_parameters(query):
            raise MastError(
                f"{path}: two URLs with different queries (?…); the query is not kept, so that "
                "their traces would have one path; give one of them to each command, or download "
                "the files"
            )
        # A second query with other signatures names the same file. A URL without a query is read as
        # often as it is named, like a path of this machine.
        return not query

    def _paths_in_list(self, name: str, lists: tuple[str, ...]) -> Iterator[Path]:
        """Yield the paths that the lines of a list name.

        Raises:
            MastError: The list cannot be read, names itself, or lists are nested too deeply.
        """
        path = trace_path(name)
        list_id = _list_id(name, path)
        if list_id in lists:
            circle = (*lists[lists.index(list_id) :], list_id)
            circle_text = " -> ".join(f"@{outer_list}" for outer_list in circle)
            raise MastError(
                f"@{path}: the list names itself ({circle_text}); remove the line with @ from it"
            )
        self._list_count += 1
        if len(lists) == _DEEPEST_LIST or self._list_count > _MOST_LISTS:
            raise MastError(
                f"@{path}: lists may name lists up to {_DEEPEST_LIST} deep, {_MOST_LISTS} in "
                "all; list the files themselves"
            )
        for line in _text_of_list(name, path).splitlines():
            argument = line.strip()
            if argument and not argument.startswith("#"):
                yield from self.paths_of(argument, (*lists, list_id))


def _list_id(name: str, path: Path) -> str:
    """Return an id of a list, equal for all its names; ``-`` is stdin."""
    if isinstance(path, RemotePath):
        return str(path)
    return name if name == "-" else os.path.realpath(name)


def _text_of_list(name: str, path: Path) -> str:
    """Read a list, or stdin if the name of the list is ``-``.

    Raises:
        MastError: The list cannot be read.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else read_beside(path, _LIST_BYTES)
    except OSError as error:
        raise MastError(f"@{path}: {error.strerror or error}") from None
    if data is None:
        raise MastError(
            f"@{path}: no such file; after @, give a file with a path or URL on each line"
        )
    return data.decode("utf-8-sig", "surrogateescape")
