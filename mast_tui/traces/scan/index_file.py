"""The index of a big file of lines: from a file that was written before, or while it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, Final
from weakref import finalize

from mast_tui.traces.index.blocks import Block, blocks_in
from mast_tui.traces.index.store import path_of_part
from mast_tui.traces.io.regular_files import open_regular

if TYPE_CHECKING:
    from mast_tui.traces.scan.document_process import DocumentProcess

_PATIENCE: Final = 0.1
"""Seconds for which the process is waited for at a time."""

_ENDING: Final = 1.0
"""Seconds for which it is waited for once it has told everything."""


class IndexFile:
    """The blocks of an index file in their order, some of them yet to be written by a process."""

    def __init__(self, file: FileIO, end: int) -> None:
        """Begin with the first block.

        Args:
            file: An index file that is whole.
            end: Where its last block ends.
        """
        self.over = False
        self._process: DocumentProcess | None = None
        self._blocks: Iterator[Block | None] = blocks_in(file.fileno(), end)
        self._file: FileIO | None = file
        finalize(self, file.close)

    @classmethod
    def being_written(cls, process: DocumentProcess) -> IndexFile:
        """The one that the process writes."""
        found = cls.__new__(cls)
        found.over, found._process, found._blocks, found._file = False, process, iter(()), None
        return found

    def next(self, *, wait: bool) -> Block | None:
        """What follows; None where it has not come, if asked for after a moment, or nothing
        does."""
        block, process = next(self._blocks, None), self._process
        if block is None and process is not None:
            ended = process.listen(_PATIENCE if wait else 0) or process.written
            if self._file is None and process.writing:
                self._open(process)
            block = next(self._blocks, None)
            self.over = ended and block is None
        elif block is None:
            self.over = True
        return block

    def stop(self, *, complete: bool) -> None:
        """No more is wanted: a process that has not told everything is ended."""
        process, self._process = self._process, None
        self.over = True
        if process is not None and not process.wait(_ENDING if complete or process.written else 0):
            process.stop()
            process.wait()

    def _open(self, process: DocumentProcess) -> None:
        for place in (path_of_part(process.place, process.pid), process.place):
            with suppress(OSError):
                file = open_regular(place)
                finalize(self, file.close)
                self._blocks, self._file = blocks_in(file.fileno()), file
                return
