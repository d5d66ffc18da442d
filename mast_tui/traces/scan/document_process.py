"""The process in which one big document is read, as it is seen from outside."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from time import monotonic
from typing import Final, NamedTuple
from weakref import finalize

from mast_tui.traces.index.blocks import Block, blocks_in
from mast_tui.traces.index.store import CachedDocument, path_of_part
from mast_tui.traces.io.opened_file import OpenedFile
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.url_secrets import ADDRESSES, ENVIRONMENT
from mast_tui.traces.model import FileReport
from mast_tui.traces.scan.document_cache import DocumentCache

READING: Final = "reading"
PARSING: Final = "parsing"
WRITING: Final = "writing"
FAILED: Final = "failed"
WRITTEN: Final = "written"
DONE: Final = "done"
"""The messages of the process.

``READING`` and ``WRITING`` have the progress. ``WRITTEN``: all spans are in the file. ``DONE``: the
file is whole.
"""

STOPPED: Final = "reading it was stopped"
"""The reason for a document whose reading the user has stopped."""

_BEGIN: Final = """import sys
sys.path[:] = sys.argv[1].split(sys.argv[2])
from mast_tui.traces.scan.document_worker import main
main(*sys.argv[3:])
"""
_ASKED_AT_ONCE: Final = 64 * 1024
_MOST_STDERR: Final = 4096
_ENDING_SECONDS: Final = 10.0
"""The time in which a process must end that has closed its standard output."""

_INDEX_PATIENCE: Final = 0.1
"""Seconds for which the process that writes an index is waited for at a time."""

_INDEX_ENDING: Final = 1.0
"""The seconds of waiting for the process once it has sent everything."""

READ_HERE_AT_MOST: Final = 64 << 20
"""The largest document that is read here where nothing can be kept."""


class ReadingProgress(NamedTuple):
    """The progress of reading a document in bytes, and ``description`` to show."""

    done: int
    total: int
    description: str


class DocumentProcess:
    """Reads the document at ``path`` in a process of its own, so that it is kept.

    It is asked by one thread, again and again, with ``wait``. The process ends with ``stop``, when
    nobody holds this any more, and whenever this process does, whatever ends it.
    """

    def __init__(self, path: Path, documents: DocumentCache, *, lines: bool = False) -> None:
        """Begin the process.

        Args:
            path: The document.
            documents: The cache.
            lines: Whether it is a file of lines, of which only an index is kept.

        Raises:
            OSError: from the file system, or there can be no process.
        """
        self.path = path
        self.writing = False
        """True once there are spans in the file."""
        self.written = False
        """True once all spans are in the file."""
        self.failed: str | None = None
        """The reason why the document is not kept, at the end; None for success."""
        size = path.stat().st_size
        self._progress = ReadingProgress(0, size, "reading …")
        self._parsing_since: float | None = None
        cache_path = documents.path_of_lines(path) if lines else documents.path_of(path)
        self.index_path = cache_path
        paths = map(
            os.fspath, (path.absolute(), documents.folder.absolute(), cache_path.absolute())
        )
        self._process = Popen(
            [
                sys.executable,
                *("-I", "-W", "ignore", "-c", _BEGIN),
                *(os.pathsep.join(sys.path), os.pathsep),
                *paths,
                *(("lines",) if lines else ()),
            ],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**os.environ, ENVIRONMENT: ADDRESSES.whole(os.fspath(path))},
            process_group=0,  # what a terminal sends to the app is not meant for this one
        )
        self._end_process = finalize(self, _end_process, self._process, cache_path)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._out = self._process.stdout.fileno()
        self._err = self._process.stderr.fileno()
        self._pipes = select.poll()
        for pipe in (self._out, self._err):
            os.set_blocking(pipe, False)
            self._pipes.register(pipe, select.POLLIN)
        self._heard = b""
        self._complained = b""
        self._done = False

    @property
    def progress(self) -> ReadingProgress:
        """The progress: by bytes first, then by spans."""
        since = self._parsing_since
        if since is None:
            return self._progress
        # Parsing is one call without progress, so its duration is shown.
        size = self._progress.total
        seconds = monotonic() - since
        return ReadingProgress(size, size, f"making sense of {size / 1e6:,.0f} MB, {seconds:.0f} s")

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the process has ended; return whether it has.

        Args:
            seconds: The longest time to wait; None for any time.
        """
        due = None if seconds is None else monotonic() + seconds
        while not self.listen(None if due is None else max(0.0, due - monotonic())):
            if due is not None and monotonic() >= due:
                return False
        return True

    def listen(self, seconds: float | None = None) -> bool:
        """Read messages of the process for ``seconds`` at the most; return whether it has ended."""
        if not self._end_process.alive:
            return True
        left = None if seconds is None else round(seconds * 1000)
        ready = [pipe for pipe, _event in self._pipes.poll(left)]
        if self._err in ready and not self._hear_complaints():  # it waits where that is full
            self._pipes.unregister(self._err)
        if self._out in ready:
            heard = os.read(self._out, _ASKED_AT_ONCE)
            if heard:
                self._receive(heard)
            else:
                self._finish()
        return not self._end_process.alive

    def stop(self) -> None:
        """End the process, from any thread; a waiting thread then continues."""
        self.failed = STOPPED
        self._process.kill()

    def _receive(self, received: bytes) -> None:
        *lines, self._heard = (self._heard + received).split(b"\n")
        for line in lines:
            event, *numbers = json.loads(line)
            self._handle_message(event, *numbers)

    def _handle_message(self, event: str, done: int | str = 0, total: int = 0) -> None:
        size = self._progress.total
        of_size = f"{size / 1e6:,.0f} MB"
        if event == FAILED:
            self.failed = str(done)
        elif event == READING and isinstance(done, int):
            read = size * done // max(1, total)
            self._progress = ReadingProgress(
                read, size, f"reading {done / max(1, total):.0%} of {of_size}"
            )
        elif event == PARSING:
            self._parsing_since = monotonic()
        elif event == WRITING:
            self.writing = True
            self._parsing_since = None
            self._progress = ReadingProgress(size, size, f"setting out its spans, {done} %")
        elif event == WRITTEN:
            self.written = True
        elif event == DONE:
            self._done = True

    def _hear_complaints(self) -> bool:
        """Read its standard error, and keep the end of it; return whether there was any."""
        heard = b""
        with suppress(BlockingIOError):
            heard = os.read(self._err, _ASKED_AT_ONCE)
        self._complained = (self._complained + heard)[-_MOST_STDERR:]
        return bool(heard)

    def _finish(self) -> None:
        """Record why the process has ended."""
        try:
            code = self._process.wait(_ENDING_SECONDS)
        except TimeoutExpired:  # it has closed its output, but does not end
            self._process.kill()
            code = self._process.wait()
        self._hear_complaints()  # no more than a pipe holds is left
        stderr = self._complained.decode("utf-8", "replace").strip()
        self._end_process()
        if self.failed is None and not (self._done and code == 0):
            self.failed = _failure_reason(code, stderr)


def _failure_reason(code: int, stderr: str) -> str:
    """Return why a process has ended before its work was done."""
    if code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
            return f"the process that was reading it was ended ({name}{hint}); try it again"
    last = stderr.rpartition("\n")[2]
    return f"the process that was reading it has failed: {last or f'exit code {code}'}"


def _end_process(process: Popen[bytes], cache_path: Path) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    with suppress(OSError):
        for part in cache_path.parent.glob(f"*{path_of_part(cache_path, process.pid).name}"):
            part.unlink()


class IndexFile:
    """The blocks of an index file in their order, some of them yet to be written by a process."""

    def __init__(self, file: FileIO, end: int) -> None:
        """Begin with the first block.

        Args:
            file: An index file that is whole.
            end: The offset after its last block.
        """
        self.over = False
        self._process: DocumentProcess | None = None
        self._blocks: Iterator[Block | None] = blocks_in(file.fileno(), end)
        self._file: FileIO | None = file
        finalize(self, file.close)

    @classmethod
    def being_written(cls, process: DocumentProcess) -> IndexFile:
        """Return the index that a process writes."""
        index = cls.__new__(cls)
        index.over = False
        index._process = process
        index._blocks = iter(())
        index._file = None
        return index

    def next(self, *, wait: bool) -> Block | None:
        """Return the next block; None if it is not there yet or nothing follows.

        With ``wait`` it is waited for, but only for a moment.
        """
        block = next(self._blocks, None)
        process = self._process
        if block is None and process is not None:
            ended = process.listen(_INDEX_PATIENCE if wait else 0) or process.written
            if self._file is None and process.writing:
                self._open(process)
            block = next(self._blocks, None)
            self.over = ended and block is None
        elif block is None:
            self.over = True
        return block

    def stop(self, *, complete: bool) -> None:
        """Stop reading; a process that has not written everything is ended."""
        process = self._process
        self._process = None
        self.over = True
        if process is not None and not process.wait(
            _INDEX_ENDING if complete or process.written else 0
        ):
            process.stop()
            process.wait()

    def _open(self, process: DocumentProcess) -> None:
        for index_path in (path_of_part(process.index_path, process.pid), process.index_path):
            with suppress(OSError):
                file = open_regular(index_path)
                finalize(self, file.close)
                self._blocks = blocks_in(file.fileno())
                self._file = file
                return


class DocumentReading:
    """Reading of big documents: each once, in a process of its own, and kept from then on."""

    def __init__(self, folder: Path | None) -> None:
        """Start without any document.

        Args:
            folder: The folder that keeps them; None for the user's own folder.
        """
        self._cache = DocumentCache.in_folder(folder)

    def read(self, path: Path) -> CachedDocument | None:
        """Return a document, read now or before; the caller waits until it is read.

        Returns None if nothing can be kept and it is small enough to be read here.
        """
        document = self._cache.open(path)
        if document is not None:
            return document
        process = self._process(path)
        if process is None:
            return None
        if isinstance(process, str):
            return CachedDocument(FileReport(path, failed=process))
        process.wait()
        document = self._cache.open(path)
        if document is None:
            reason = process.failed or "what was read of it is there no more"
            return CachedDocument(FileReport(path, failed=reason))
        return document

    def begin(self, path: Path) -> DocumentProcess | None:
        """Start a process that reads a document; None if none is needed, or none can start.

        Raises:
            OSError: from the file system.
        """
        process = None if self._cache.path_of(path).exists() else self._process(path)
        return None if isinstance(process, str) else process

    def read_in_background(
        self, path: Path, opened: OpenedFile, big: int, *, begins: bool
    ) -> IndexFile | None:
        """Return the index of a file of lines that was opened; None if it is best made here.

        Args:
            path: The file.
            opened: The file as it was when its first lines were read.
            big: The number of bytes not yet read above which a process is worth its start.
            begins: Whether a process may be started; else only a kept index is returned.
        """
        documents = self._cache
        cached = documents.open_lines(path, opened)
        if cached is not None and opened.size - cached.read_to <= big:
            with suppress(OSError):  # used just now
                os.utime(cached.file.name)
            return IndexFile(cached.file, cached.end)
        if not begins:
            return None
        if documents.why_not() is not None:
            return None if cached is None else IndexFile(cached.file, cached.end)
        try:
            return IndexFile.being_written(DocumentProcess(path, documents, lines=True))
        except OSError:
            return None

    def _process(self, path: Path) -> DocumentProcess | str | None:
        """Return the process, or why none can start; None if the file can be read here."""
        reason = self._cache.why_not()
        if reason is None:
            return DocumentProcess(path, self._cache)
        if path.stat().st_size <= READ_HERE_AT_MOST:
            return None
        return f"it is too big to be read without keeping it in {self._cache.folder}: {reason}"
