"""The work of a process that reads one document and writes it as a file of spans.

Parsing holds the interpreter lock and needs much memory, so it happens in a process of its own.
Each work is a generator of messages, which ``document_process`` receives. The process is killed at
``DONE``, because freeing everything that was read would take longer.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Final

from mast_tui.parallel import LocalProcesses, cores
from mast_tui.traces.index.blocks import Block, blocks_in, write_block
from mast_tui.traces.index.line_ranges import DigestFeed
from mast_tui.traces.index.lines import LineSpans
from mast_tui.traces.index.store import path_of_part, write_cached, write_end
from mast_tui.traces.io.opened_file import OpenedFile
from mast_tui.traces.io.private_files import open_private
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.source import Source
from mast_tui.traces.scan.document_cache import CachedLines, DocumentCache
from mast_tui.traces.scan.document_process import (
    BLOCK,
    DONE,
    FAILED,
    PARSING,
    READING,
    WRITING,
    WRITTEN,
    Message,
)
from mast_tui.traces.scan.file_reader import read_known, read_one

_READ_BYTES: Final = 4 << 20
_WRITE_BYTES: Final = 1 << 20
_LEAST_SHARED_BYTES: Final = 64 << 20
"""The size of a file above which several processes digest its lines, since each takes time to
start."""

_NICE: Final = 5
"""The niceness of a process that parses a document, so that the app stays quick. A process that
indexes lines keeps its priority, because the user waits for the lines."""


Task = tuple[Path, DocumentCache, Path]
"""The path of a document, the cache, and the path to write in the cache."""


def cache_document(tasks: Sequence[Task]) -> Iterator[Message]:
    """Read a document and write its file of spans; yield the progress and errors.

    Args:
        tasks: A single task, in a list as for all work of a process.
    """
    ((path, documents, cache_path),) = tasks
    os.nice(_NICE)
    gc.disable()
    source = Source(path)
    yield from _read_content(source)
    yield (PARSING,)
    report = read_known(source)  # None if no reader knows the file, which is stored, too
    if report is not None:
        if report.failed is not None:
            yield FAILED, report.failed
            return
        for trace in report.traces:
            while trace.advance():  # reads further spans
                pass
    try:
        with _cache_file(documents, cache_path) as file:
            for percent in write_cached(file, report):
                yield WRITING, percent
    except OSError as error:
        reason = error.strerror or str(error)
        yield FAILED, f"its content cannot be stored in {documents.folder}: {reason}"
        return
    yield (DONE,)


def _read_content(source: Source) -> Iterator[Message]:
    """Read the content of a source piece by piece, and yield the number of bytes read so far.

    Compressed and unreadable files are left to the readers, which report errors.
    """
    with suppress(OSError):
        if source.packing is not None:
            return
        pieces = BytesIO()  # which returns its content without a copy
        with open_regular(source.path) as file:
            while piece := file.read(_READ_BYTES):
                pieces.write(piece)
                yield READING, pieces.tell()
        source.data = pieces.getvalue()


def index_lines(tasks: Sequence[Task]) -> Iterator[Message]:
    """Yield the blocks of the index of a file of lines, then write them to the cache; yield errors.

    An index in the cache is continued if the file has only grown.

    Args:
        tasks: A single task, in a list as for all work of a process.
    """
    ((path, documents, cache_path),) = tasks
    gc.disable()  # parsed values have hardly any garbage, and a collection would take long
    report = read_one(path, named=True)
    (trace,) = report.traces
    spans = trace.spans
    opened = trace.opened
    assert isinstance(spans, LineSpans)
    assert isinstance(opened, OpenedFile)
    cached = documents.open_lines(path, opened)
    try:
        with LocalProcesses(cores(), low_priority=True) as workers:
            cached_blocks = () if cached is None else _cached_blocks(spans, cached)
            # For a long file, other processes parse the lines.
            later_feed = DigestFeed(workers) if opened.size > _LEAST_SHARED_BYTES else None
            for block in chain(cached_blocks, spans.blocks(later_feed)):
                yield BLOCK, block
        yield (WRITTEN,)
        with _cache_file(documents, cache_path) as file:
            end = sum(write_block(file, block) for block in spans.whole())
            write_end(file, end, {"stamp": opened.stamp(spans.read_to)})
    except OSError as error:
        yield FAILED, error.strerror or str(error)
        return
    yield (DONE,)


@contextmanager
def _cache_file(documents: DocumentCache, cache_path: Path) -> Iterator[IO[bytes]]:
    """Open a new file in the cache, which gets its final name once it is complete."""
    part = path_of_part(cache_path, os.getpid())
    try:
        with open(open_private(part, empty=True), "wb", buffering=_WRITE_BYTES) as file:  # noqa: PTH123
            yield file
        documents.make_room()
        part.replace(cache_path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _cached_blocks(spans: LineSpans, cached: CachedLines) -> Iterator[Block]:
    """Append the blocks of a stored index to the spans, and yield each of them.

    Stop at a block that is incomplete or does not fit.
    """
    for block in blocks_in(cached.file.fileno(), cached.end):
        if not spans.append_block(block):
            return
        yield block
