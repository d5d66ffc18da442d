"""Searching many files at once, by processes of their own: as many as cores, or other workers.

What they do is in ``file_search``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mast_tui.parallel import LocalProcesses, LostItem, Workers, cores
from mast_tui.traces.search.file_search import (
    FileToSearch,
    Findings,
    Hit,
    NotSearched,
    Query,
    files_to_search,
    search_file,
)

_MOST_AT_ONCE: Final = 8
_BYTES_AT_ONCE: Final = 8 << 20
"""The bytes of the files of a batch together. A bigger file is a batch alone, whose hits are
reported while the search continues."""

_ROUNDS: Final = 8
"""The fewest batches of files for each process, so that hits are reported soon."""

_AHEAD: Final = 16
"""So many batches for each process are searched before their turn: a big file keeps no other
process waiting."""


@dataclass(frozen=True, slots=True)
class SearchFiles:
    """Searches files; it can be sent to other processes."""

    query: Query

    def __call__(self, files: Sequence[FileToSearch]) -> Iterator[Findings]:
        """Yield the findings of each file in batches, and an empty one after the last."""
        matcher = self.query.matcher()
        for file in files:
            yield from search_file(file, self.query, matcher)
            yield []


def list_files(paths: Sequence[Sequence[Path]]) -> list[list[FileToSearch | NotSearched]]:
    """Return the files under each of several sets of paths."""
    return [[*files_to_search(some)] for some in paths]


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
            query: The query.
            workers: The workers, or their number; by default one for each core.

        Raises:
            InvalidPattern: The text of the query is no regular expression.
        """
        query.matcher()  # an error in it is raised before the search begins
        self.looked_at = 0
        self.total = 0
        self._query = query
        self._paths = tuple(paths)
        if not isinstance(workers, Workers):
            workers = LocalProcesses(workers or cores())
        self._workers = workers
        self._closed = False

    def close(self) -> None:
        """End it; what was found until then was found."""
        self._closed = True
        self._workers.close()

    def results(self, patience: float | None = None) -> Iterator[Hit | NotSearched | None]:
        """Yield the hits as they are found, file by file in the order of a scan.

        Args:
            patience: The seconds without a hit after which None is yielded.

        Raises:
            NoWorkers: No process is left that searches.
        """
        try:
            yield from self._results(patience)
        finally:
            self.close()

    def _results(self, patience: float | None) -> Iterator[Hit | NotSearched | None]:
        """Yield the hits of all files in order; None if nothing came in time."""
        files: list[FileToSearch | NotSearched] = []
        for listed in self._workers.map(list_files, [[self._paths]], patience):
            if listed is None:
                yield None
            elif isinstance(listed, LostItem):
                yield NotSearched(", ".join(map(str, self._paths)), listed.reason)
            else:
                files = listed
        self.total = len(files)
        searched_files = [file for file in files if isinstance(file, FileToSearch)]
        work = SearchFiles(self._query)
        findings = self._workers.map(work, self._batches(searched_files), patience, _AHEAD)
        for file in files:
            for result in [file] if isinstance(file, NotSearched) else _results_of(file, findings):
                yield result
                if self._closed:
                    return
            self.looked_at += 1

    def _batches(self, files: Sequence[FileToSearch]) -> Iterator[list[FileToSearch]]:
        """Yield the files in batches by number and size."""
        most = max(1, min(_MOST_AT_ONCE, len(files) // (_ROUNDS * self._workers.count)))
        batch: list[FileToSearch] = []
        for file in files:
            size = sum(batched.size for batched in batch)
            if batch and (len(batch) == most or size + file.size > _BYTES_AT_ONCE):
                yield batch
                batch = []
            batch.append(file)
        if batch:
            yield batch


def _results_of(
    file: FileToSearch, findings: Iterator[Findings | LostItem | None]
) -> Iterator[Hit | NotSearched | None]:
    """Yield the results of the next file."""
    while (batch := next(findings)) != []:
        if isinstance(batch, LostItem):
            yield NotSearched(file.path, batch.reason)
            return
        yield from [None] if batch is None else batch
