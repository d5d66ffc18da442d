"""The search of many files by several processes; ``file_search`` searches one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mast_tui.parallel import LocalProcesses, LostItem, Workers, cores
from mast_tui.traces.model import TraceMasks
from mast_tui.traces.search.file_search import (
    FileToSearch,
    Findings,
    Hit,
    NotSearched,
    Query,
    files_to_search,
    search_file,
)

_MOST_FILES_AT_ONCE: Final = 8
_BYTES_AT_ONCE: Final = 8 << 20
"""The most bytes of all files in a batch. A bigger file is a batch of its own, whose hits are
reported while its search continues."""

_LEAST_BATCHES: Final = 8
"""The least number of batches for each process, so that hits are reported soon."""

_MOST_BATCHES_AHEAD: Final = 16
"""The batches for each process that may be searched before their turn, so that no process waits
for a big file."""


@dataclass(frozen=True, slots=True)
class SearchFiles:
    """A function that searches files; it can be sent to other processes."""

    query: Query
    masks: TraceMasks | None = None

    def __call__(self, files: Sequence[FileToSearch]) -> Iterator[Findings]:
        """Yield the findings of each file in groups, and an empty group after each file."""
        matcher = self.query.matcher()
        for file in files:
            yield from search_file(file, self.query, matcher, self.masks)
            yield []


def list_files(paths: Sequence[Sequence[Path]]) -> list[list[FileToSearch | NotSearched]]:
    """Return the files under each of several sets of paths."""
    return [[*files_to_search(path_set)] for path_set in paths]


class ManyFilesSearch:
    """A search through all files under paths, by several processes.

    One thread iterates over ``results``; it may call ``close`` at any time.

    Attributes:
        searched_count: The number of files whose results were all yielded.
        total: The number of files; 0 until they are listed.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        query: Query,
        workers: Workers | int | None = None,
        masks: TraceMasks | None = None,
    ) -> None:
        """Prepare the search, which ``results`` starts.

        Args:
            paths: Files and folders.
            query: The query.
            workers: The workers, or their number; by default one for each core.
            masks: Masks over the texts; masked text does not match.

        Raises:
            InvalidPattern: The text of the query is no regular expression.
        """
        query.matcher()  # raises an error of the pattern before the search begins
        self.searched_count = 0
        self.total = 0
        self._query = query
        self._masks = masks
        self._paths = tuple(paths)
        if not isinstance(workers, Workers):
            workers = LocalProcesses(workers or cores())
        self._workers = workers
        self._closed = False

    def close(self) -> None:
        """End the search and its processes."""
        self._closed = True
        self._workers.close()

    def results(self, patience: float | None = None) -> Iterator[Hit | NotSearched | None]:
        """Yield the hits as they are found, file by file in the order of a scan.

        Args:
            patience: The seconds without a hit after which None is yielded.

        Raises:
            NoWorkers: All workers are gone.
        """
        try:
            yield from self._ordered_results(patience)
        finally:
            self.close()

    def _ordered_results(self, patience: float | None) -> Iterator[Hit | NotSearched | None]:
        """Yield the hits of all files in order; None if nothing came in time."""
        files: list[FileToSearch | NotSearched] = []
        for file_list in self._workers.map(list_files, [[self._paths]], patience):
            if file_list is None:
                yield None
            elif isinstance(file_list, LostItem):
                yield NotSearched(", ".join(map(str, self._paths)), file_list.reason)
            else:
                files = file_list
        self.total = len(files)
        searched_files = [file for file in files if isinstance(file, FileToSearch)]
        work = SearchFiles(self._query, self._masks)
        findings = self._workers.map(
            work, self._file_batches(searched_files), patience, _MOST_BATCHES_AHEAD
        )
        for file in files:
            results = [file] if isinstance(file, NotSearched) else _results_of(file, findings)
            for result in results:
                yield result
                if self._closed:
                    return
            self.searched_count += 1

    def _file_batches(self, files: Sequence[FileToSearch]) -> Iterator[list[FileToSearch]]:
        """Yield the files in batches with limits of their number and size."""
        fair_count = len(files) // (_LEAST_BATCHES * self._workers.count)
        most_files = max(1, min(_MOST_FILES_AT_ONCE, fair_count))
        batch: list[FileToSearch] = []
        for file in files:
            batch_bytes = sum(batched.size for batched in batch)
            if batch and (len(batch) == most_files or batch_bytes + file.size > _BYTES_AT_ONCE):
                yield batch
                batch = []
            batch.append(file)
        if batch:
            yield batch


def _results_of(
    file: FileToSearch, findings: Iterator[Findings | LostItem | None]
) -> Iterator[Hit | NotSearched | None]:
    """Yield the results of the next file, up to its empty group of findings."""
    while (group := next(findings)) != []:
        if isinstance(group, LostItem):
            yield NotSearched(file.path, group.reason)
            return
        yield from [None] if group is None else group
