"""Searching many files at once, by processes of their own: one file each, as many as cores.

What they do is in ``file_search``. A process ends when nobody gives it anything any more, and so
with whoever has started it.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from subprocess import PIPE, Popen
from threading import Thread
from typing import Final

from mast_tui.traces.search.query import FileToSearch, Hit, NotSearched, Query

_BEGIN: Final = """import sys
sys.path[:] = sys.argv[1].split(sys.argv[2])
from mast_tui.traces.search.file_search import serve
serve(sys.argv[3], sys.stdin, sys.stdout)
"""
_AHEAD: Final = 256
"""So many files are looked at before the first of them is done; their hits are kept meanwhile."""


_CLASSES: Final = {one.__name__: one for one in (FileToSearch, Hit, NotSearched)}


def _told(line: str) -> FileToSearch | Hit | NotSearched | None:
    """What a process has found; None where all is done that it was asked for."""
    told = json.loads(line)
    return None if told is None else _CLASSES[told[0]](*told[1])


class _Searcher:
    """A process that searches one file at a time; what it says comes through ``said``."""

    def __init__(self, query: Query, said: SimpleQueue[tuple[_Searcher, str]]) -> None:
        self.place = -1
        """The place of the file that it searches among all; -1 for none."""
        self._process = Popen(
            [
                sys.executable,
                *("-I", "-W", "ignore", "-c", _BEGIN),
                *(os.pathsep.join(sys.path), os.pathsep, json.dumps(asdict(query))),
            ],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            text=True,
            encoding="ascii",
            errors="replace",
            process_group=0,  # whoever stops the search ends it
        )
        Thread(target=self._listen, args=(said,), name="search", daemon=True).start()

    def _listen(self, said: SimpleQueue[tuple[_Searcher, str]]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for line in answers:
                said.put((self, line))
        said.put((self, ""))

    def ask(self, wanted: Sequence[object], place: int = -1) -> None:
        """Have it look for the files under paths, or search one: the file at this place."""
        self.place = place
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # that it has ended is heard at the other end
            self._process.stdin.write(f"{json.dumps(wanted)}\n")
            self._process.stdin.flush()

    def end(self) -> str:
        """Leave off, whatever it is at; what it complained of before."""
        self._process.kill()
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        with self._process.stderr as complaints:
            said = complaints.read()
        self._process.wait()
        return said


class ManyFilesSearch:
    """A search through all files under paths, by several processes.

    ``looked_at`` of ``total`` files have been searched. One thread takes the results; with
    ``close`` it ends the search at any time.
    """

    def __init__(self, paths: Iterable[Path], query: Query, processes: int | None = None) -> None:
        """Make ready; ``results`` begins.

        Args:
            paths: Files and folders.
            query: What is looked for.
            processes: How many at most; as many as there are cores.

        Raises:
            InvalidPattern: The text of the query is no regular expression.
        """
        query.matcher()  # what is wrong with it is said before anything begins
        self.looked_at = 0
        self.total = 0
        self._query = query
        self._paths = tuple(paths)
        self._most = processes or os.cpu_count() or 1
        self._said: SimpleQueue[tuple[_Searcher, str]] = SimpleQueue()
        self._searchers: list[_Searcher] = []
        self._closed = False

    def close(self) -> None:
        """End it; what was found until then was found."""
        self._closed = True
        while self._searchers:
            self._searchers.pop().end()

    def results(self, patience: float | None = None) -> Iterator[Hit | NotSearched | None]:
        """What is found, file by file in the order of a scan, as it is found.

        Args:
            patience: After so many seconds in which nothing is found None is given.

        Raises:
            RuntimeError: There is a bug; it says where.
        """
        try:
            yield from self._results(patience)
        finally:
            self.close()

    def _results(self, patience: float | None) -> Iterator[Hit | NotSearched | None]:
        free = deque(self._more_searchers(self._most))
        files = self._files(free[0])
        self.total = len(files)
        kept: list[list[Hit | NotSearched]] = [[] for _ in files]
        done = [False for _ in files]
        given = first = 0
        while not self._closed:
            while free and given < min(len(files), first + _AHEAD):
                file = files[given]
                if isinstance(file, NotSearched):
                    kept[given].append(file)
                    done[given] = True
                    self.looked_at += 1
                else:
                    free.popleft().ask(file, given)
                given += 1
            while first < given:
                found, kept[first] = kept[first], []
                yield from found
                if not done[first]:
                    break
                first += 1
            if first == len(files):
                return
            if first == given:
                continue
            try:
                searcher, line = self._said.get(timeout=patience)
            except Empty:
                yield None
                continue
            place = searcher.place
            if line:
                found_one = _told(line)
                if found_one is None:
                    done[place] = True
                    self.looked_at += 1
                    free.append(searcher)
                elif not isinstance(found_one, FileToSearch):
                    kept[place].append(found_one)
            elif not self._closed:
                self._gone(searcher)
                if place >= 0 and not done[place]:
                    # The system has ended it, most likely for a lack of memory.
                    reason = "the process that searched it was ended; is there enough memory?"
                    kept[place].append(NotSearched(files[place].path, reason))
                    done[place] = True
                    self.looked_at += 1
                free.extend(self._more_searchers(1))

    def _files(self, searcher: _Searcher) -> list[FileToSearch | NotSearched]:
        """The files under the paths, as one of the processes finds them."""
        searcher.ask([*map(os.fspath, self._paths)])
        files: list[FileToSearch | NotSearched] = []
        while not self._closed:
            teller, line = self._said.get()
            if not line:
                self._gone(teller)
                raise RuntimeError("a process that searches files was ended before it began")
            found = _told(line)
            if found is None:
                break
            assert not isinstance(found, Hit)
            files.append(found)
        return files

    def _gone(self, searcher: _Searcher) -> None:
        self._searchers.remove(searcher)
        complaints = searcher.end()
        if complaints:
            raise RuntimeError(f"a process that searches files broke:\n{complaints}")

    def _more_searchers(self, count: int) -> list[_Searcher]:
        more = [_Searcher(self._query, self._said) for _ in range(count)]
        self._searchers += more
        return more
