"""The process that reads one big document, as seen by the process that starts it."""

from __future__ import annotations

import os
import signal
from collections import deque
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from subprocess import TimeoutExpired
from time import monotonic
from typing import Final, NamedTuple
from weakref import finalize

from mast_tui.parallel import WorkerProcess, WorkerTask
from mast_tui.traces.index.blocks import Block, blocks_in
from mast_tui.traces.index.lines import BackgroundReader
from mast_tui.traces.index.store import CachedDocument, path_of_part
from mast_tui.traces.io.opened_file import OpenedFile
from mast_tui.traces.model import FileReport
from mast_tui.traces.scan.document_cache import CachedLines, DocumentCache

READING: Final = "reading"
PARSING: Final = "parsing"
WRITING: Final = "writing"
BLOCK: Final = "block"
FAILED: Final = "failed"
WRITTEN: Final = "written"
DONE: Final = "done"
"""The messages of the process.

``READING`` has the number of bytes read, ``WRITING`` the percentage written, ``BLOCK`` the next
part of an index, ``FAILED`` the reason. ``WRITTEN``: no more blocks follow. ``DONE``: the file in
the cache is complete. ``FAILED`` and ``DONE`` are the last message.
"""

Message = tuple[str | int | Block, ...]
"""A message of the process, with its details."""

STOPPED: Final = "reading it was stopped"
"""The reason for a document whose reading the user has stopped."""

_WORKER: Final = "mast_tui.traces.scan.document_worker"
"""The module of the work, imported only by this name because it imports this module."""

_ENDING_SECONDS: Final = 10.0
"""The longest wait for the end of a process that has closed its pipe, in seconds."""

_BLOCK_WAIT_SECONDS: Final = 0.1
"""The longest wait for the next block of an index, in seconds."""

_INDEX_END_SECONDS: Final = 1.0
"""The longest wait for the end of a process that has sent all blocks, in seconds."""

READ_HERE_AT_MOST: Final = 64 << 20
"""The largest document, in bytes, that this process reads itself if the cache is unusable."""


class ReadingProgress(NamedTuple):
    """The progress of reading a document in bytes, with a description for the user."""

    done: int
    total: int
    description: str


class DocumentProcess:
    """A process that reads a document and stores its spans in the cache.

    One thread calls ``wait`` or ``listen`` until the process has ended. ``stop`` ends it early; so
    does the garbage collection of this object, and the end of this process.
    """

    def __init__(self, path: Path, documents: DocumentCache, *, lines: bool = False) -> None:
        """Start the process.

        Args:
            path: The document.
            documents: The cache.
            lines: True for a file of lines, of which only the index is stored; else the whole
                document.

        Raises:
            OSError: The document is missing, or no process can start.
        """
        self.path = path
        self.blocks: deque[Block] = deque()
        """The blocks of an index that have arrived and are still to be taken."""
        self.written = False
        """True once all blocks of an index have arrived."""
        self.failed: str | None = None
        """The reason why the document could not be stored; None for success."""
        size = path.stat().st_size
        self._progress = ReadingProgress(0, size, "reading …")
        self._parsing_since: float | None = None
        self.index_path = documents.path_of_lines(path) if lines else documents.path_of(path)
        worker = import_module(_WORKER)
        self._process = WorkerProcess(low_priority=False)
        self._end_process = finalize(self, _end_process, self._process, self.index_path)
        """The function that ends the process; ``alive`` until it has been called."""
        work = worker.index_lines if lines else worker.cache_document
        self._process.submit(work, WorkerTask([(path, documents, self.index_path)]))

    @property
    def progress(self) -> ReadingProgress:
        """The progress of reading, parsing and writing the document."""
        since = self._parsing_since
        if since is None:
            return self._progress
        # Parsing is one call without progress, so its duration is shown.
        size = self._progress.total
        seconds = monotonic() - since
        return ReadingProgress(size, size, f"parsing {size / 1e6:,.0f} MB, {seconds:.0f} s")

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.popen.pid

    def wait(self, seconds: float | None = None) -> bool:
        """Handle the messages of the process until it has ended; return whether it has ended.

        Args:
            seconds: The longest time to wait; None for no limit.
        """
        if seconds is None:
            while not self.listen():
                pass
            return True
        deadline = monotonic() + seconds
        while not self.listen(max(0.0, deadline - monotonic())):
            if monotonic() >= deadline:
                return False
        return True

    def listen(self, seconds: float | None = None) -> bool:
        """Wait for a message of the process, and handle all messages that have arrived.

        Args:
            seconds: The longest time to wait; None for no limit.

        Returns:
            True if the process has ended.
        """
        while self._end_process.alive and self._process.connection.poll(seconds):
            seconds = 0  # only the first message is waited for
            try:
                answer, error = self._process.connection.recv()
            except (EOFError, OSError):
                self._end(self._early_end_reason())
                continue
            if error is None:
                (message,) = answer.results
                self._handle_message(*message)
            elif isinstance(error, MemoryError):
                self._end("there is not enough memory to read it")
            else:
                self._end(f"the process that read it failed: {type(error).__name__}: {error}")
        return not self._end_process.alive

    def stop(self) -> None:
        """End the process; safe in any thread. A waiting thread then continues."""
        self.failed = STOPPED
        self._process.popen.kill()

    def _handle_message(self, kind: str, detail: int | str | Block = 0) -> None:
        """Update the progress and the state by a message.

        ``detail`` is the bytes read, the percentage written, a block, or the reason of a failure.
        """
        size = self._progress.total
        if kind == FAILED:
            self._end(str(detail))
        elif kind == READING and isinstance(detail, int):
            read_bytes = min(detail, size)  # the file may grow
            description = f"reading {read_bytes / max(1, size):.0%} of {size / 1e6:,.0f} MB"
            self._progress = ReadingProgress(read_bytes, size, description)
        elif kind == PARSING:
            self._parsing_since = monotonic()
        elif kind == WRITING:
            self._parsing_since = None
            self._progress = ReadingProgress(size, size, f"preparing its spans, {detail} %")
        elif isinstance(detail, Block):
            self.blocks.append(detail)
        elif kind == WRITTEN:
            self.written = True
        elif kind == DONE:
            self._end(None)

    def _end(self, reason: str | None) -> None:
        """End the process after its last message; the reason is None for success."""
        self._end_process()
        self.failed = self.failed or reason

    def _early_end_reason(self) -> str:
        """Return why the process has ended before its work was done."""
        with suppress(TimeoutExpired):
            self._process.popen.wait(_ENDING_SECONDS)
        code = self._process.popen.returncode
        if code is not None and code < 0:  # the number of a signal
            with suppress(ValueError):
                name = signal.Signals(-code).name
                hint = ", perhaps as memory ran out" if name == "SIGKILL" else ""
                return f"the process that read it was killed ({name}{hint}); try again"
        return f"the process that read it failed: exit code {code}"


def _end_process(process: WorkerProcess, cache_path: Path) -> None:
    """Kill a process, and delete the incomplete file that it has written."""
    process.kill()
    with suppress(OSError):
        path_of_part(cache_path, process.popen.pid).unlink()


class StoredIndex:
    """A reader of the blocks of an index in the cache."""

    def __init__(self, cached: CachedLines) -> None:
        self.over = False
        self._blocks = blocks_in(cached.file.fileno(), cached.end)
        finalize(self, cached.file.close)

    def next(self, *, wait: bool) -> Block | None:
        """Return the next block; None if nothing follows."""
        block = next(self._blocks, None)
        self.over = block is None
        return block

    def stop(self, *, complete: bool) -> None:
        """Stop reading."""
        self.over = True


class IndexInProgress:
    """A reader of the blocks of an index that another process makes."""

    def __init__(self, process: DocumentProcess) -> None:
        self.over = False
        self._process = process

    def next(self, *, wait: bool) -> Block | None:
        """Return the next block; None if none has arrived. ``over`` tells if none will follow.

        Args:
            wait: True to wait a moment for the block.
        """
        process = self._process
        seconds = _BLOCK_WAIT_SECONDS if wait and not process.blocks else 0
        has_ended = process.listen(seconds)
        sends_no_more = has_ended or process.written
        if process.blocks:
            return process.blocks.popleft()
        self.over = sends_no_more
        return None

    def stop(self, *, complete: bool) -> None:
        """Stop reading, and end the process.

        Args:
            complete: True if all blocks were read; the process then gets time to end itself.
        """
        self.over = True
        process = self._process
        seconds = _INDEX_END_SECONDS if complete or process.written else 0
        if not process.wait(seconds):
            process.stop()
            process.wait()


class DocumentReading:
    """The reading of big documents: once in another process, then from a cache."""

    def __init__(self, folder: Path | None) -> None:
        """Use the cache in a folder.

        Args:
            folder: The folder of the cache; None for the user's own folder.
        """
        self._cache = DocumentCache(folder)

    def read(self, path: Path) -> CachedDocument | None:
        """Return a document from the cache; if it is missing, wait until a process has read it.

        Return None if the cache is unusable and the document is small enough for this process.
        """
        document = self._cache.open(path)
        if document is not None:
            return document
        unusable_reason = self._cache.unusable_reason()
        if unusable_reason is not None:
            if path.stat().st_size <= READ_HERE_AT_MOST:
                return None
            failure = f"it is too big to read without storing it in {self._cache.folder}"
            return CachedDocument(FileReport(path, failed=f"{failure}: {unusable_reason}"))
        process = DocumentProcess(path, self._cache)
        process.wait()
        document = self._cache.open(path)
        if document is None:
            failure = process.failed or "its stored content is gone"
            return CachedDocument(FileReport(path, failed=failure))
        return document

    def begin(self, path: Path) -> DocumentProcess | None:
        """Start a process that reads a document into the cache.

        Return None if the document is cached already, or the cache cannot be used.

        Raises:
            OSError: The document is missing, or no process can start.
        """
        if self._cache.path_of(path).exists() or self._cache.unusable_reason() is not None:
            return None
        return DocumentProcess(path, self._cache)

    def read_in_background(
        self, path: Path, opened: OpenedFile, most_unread_bytes: int, *, may_start: bool
    ) -> BackgroundReader | None:
        """Return the index of a file of lines, from the cache or from a process that makes it.

        Return None if there is no index and no process can or may start.

        Args:
            path: The file.
            opened: The state of the file when its first lines were read.
            most_unread_bytes: The most bytes at the end of the file that a cached index may lack.
            may_start: True if a process may be started.
        """
        cached = self._cache.open_lines(path, opened)
        if cached is not None and opened.size - cached.read_to <= most_unread_bytes:
            with suppress(OSError):  # record the use
                os.utime(cached.file.name)
            return StoredIndex(cached)
        if not may_start:
            return None
        if self._cache.unusable_reason() is not None:
            return None if cached is None else StoredIndex(cached)
        try:
            return IndexInProgress(DocumentProcess(path, self._cache, lines=True))
        except OSError:
            return None
