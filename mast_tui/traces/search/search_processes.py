"""Searching many files at once, by processes of their own: as many as cores, or other workers.

What they do is in ``file_search``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from mast_tui.parallel import LocalProcesses, Lost, Workers, cores
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.search.file_search import files_to_search, search_file
from mast_tui.traces.search.query import FileToSearch, Hit, NotSearched, Query

_MOST_AT_ONCE: Final = 8
_ROUNDS: Final = 8
"""Each process gets at least so many batches of files, so that what is found comes soon."""


@dataclass(frozen=True, slots=True)
class SearchFiles:
    """Searches files; it can be sent to other processes."""

    query: Query

    def __call__(self, files: Sequence[FileToSearch]) -> list[list[Hit | NotSearched]]:
        """What is found in each file."""
        matcher = self.query.matcher()
        return [[*search_file(file, self.query, matcher)] for file in files]


def list_files(paths: Sequence[Sequence[str]]) -> list[list[FileToSearch | NotSearched]]:
    """The files under each of several sets of paths."""
    return [[*files_to_search(map(trace_path, some))] for some in paths]


class ManyFilesSearch:
    """A search through all files under paths, by several processes.

    ``looked_at`` of ``total`` files have been searched. One thread takes the results; with
    ``close`` it ends the search at any time.
    """

    def __init__(
        self, paths: Iterable[Path], query: Query, workers: Workers | int | None = None
    ) -> None:
        """Make ready; ``results`` begins.

        Args:
            paths: Files and folders.
            query: What is looked for.
            workers: Who searches, or how many processes do; as many as there are cores.

        Raises:
            InvalidPattern: The text of the query is no regular expression.
        """
        query.matcher()  # what is wrong with it is said before anything begins
        self.looked_at = 0
        self.total = 0
        self._query = query
        self._paths = tuple(map(os.fspath, paths))
        if not isinstance(workers, Workers):
            workers = LocalProcesses(workers or cores())
        self._workers = workers
        self._closed = False

    def close(self) -> None:
        """End it; what was found until then was found."""
        self._closed = True
        self._workers.close()

    def results(self, patience: float | None = None) -> Iterator[Hit | NotSearched | None]:
        """What is found, file by file in the order of a scan, when the file is through.

        Args:
            patience: After so many seconds in which nothing is found None is given.

        Raises:
            NoWorkers: There is nobody left who searches.
        """
        try:
            yield from self._results(patience)
        finally:
            self.close()

    def _results(self, patience: float | None) -> Iterator[Hit | NotSearched | None]:
        files: list[FileToSearch | NotSearched] = []
        for listed in self._workers.map(list_files, [[self._paths]], patience):
            if listed is None:
                yield None
            elif isinstance(listed, Lost):
                yield NotSearched(", ".join(self._paths), listed.reason)
            else:
                files = listed
        self.total = len(files)
        wanted = [file for file in files if isinstance(file, FileToSearch)]
        found = self._workers.map(SearchFiles(self._query), self._batches(wanted), patience)
        for file in files:
            if isinstance(file, FileToSearch):
                told = next(found)
                while told is None:
                    yield None
                    told = next(found)
                if isinstance(told, Lost):
                    yield NotSearched(file.path, told.reason)
                else:
                    yield from told
            else:
                yield file
            if self._closed:
                return
            self.looked_at += 1

    def _batches(self, files: Sequence[FileToSearch]) -> Iterator[list[FileToSearch]]:
        size = max(1, min(_MOST_AT_ONCE, len(files) // (_ROUNDS * self._workers.count)))
        left = iter(files)
        while batch := list(islice(left, size)):
            yield batch
