"""The formats, each in a folder or a module of its own, and those that other packages bring.

A reader is added by its file and its line in ``_MODULES``, or in ``_BINARY`` where its files are no
text; each is imported when its turn has come. Those of other packages have theirs where none of
ours knows a file by marks of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from typing import Final

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role
from mast_tui.traces.readers.base import Reader
from mast_tui.traces.readers.json_fields import names
from mast_tui.traces.readers.plugins import PluginReader, plugins

_MODULES: Final = names("""
    codex.reader codex.exec codex.otel_logs claude_code.reader claude_code.stream converted
    inspect.reader mast_data swe_agent mini_swe_agent agentrx
    atif vendors.reader openhands.reader otel.reader otel.trail
""")
"""Readers of text that know their format by marks of its own, in the order they are tried in."""

_BINARY: Final = ("inspect.reader", "mast_data_parquet")
"""Readers of files that are no text."""

_BY_LINE: Final = ("codex.reader", "codex.exec")
"""Readers that never need the whole of a file."""

_FALLBACK: Final = "chat.reader"
"""The reader of lists of chat messages, which is asked where no other reader knows the file."""

_SPANS_LOOKED_AT: Final = 100

_TEXT: Final = "logs"
"""The reader of plain text, which is asked last, for named files and for logs."""


def readers(binary: bool = False) -> Iterator[Reader]:
    """Yield every reader that knows its format by its own marks, imported on demand."""
    for module in _BINARY if binary else _MODULES:
        yield _reader(module)
    if not binary:
        yield from import_module(f"{__name__}.sessions").FORMATS
        yield from import_module(f"{__name__}.exports").FORMATS
        yield from import_module(f"{__name__}.frameworks").FRAMEWORKS


def claims(source: Source) -> Iterator[Reader]:
    """Yield the readers that recognise this file, the most specific first.

    Other packages' and the fallback are asked only where none of those is the file's that know
    their format by its marks.
    """
    claimed = False
    for reader in readers(source.is_binary):
        if reader.recognises(source):
            claimed = True
            yield reader
    if claimed:
        return
    yield from _claims_without_marks(source)


def _claims_without_marks(source: Source) -> Iterator[Reader]:
    """Yield the readers of other packages and the fallback, where they recognise the file."""
    yield from (plugin for plugin in plugins() if plugin.recognises(source))
    if not source.is_binary:
        fallback = _reader(_FALLBACK)
        if fallback.recognises(source):
            yield fallback


def recognise(source: Source) -> Reader | None:
    """Return the reader for this file, or None where its content is of no known format."""
    return next(claims(source), None)


def read_recognised(source: Source) -> FileReport | None:
    """Return the report of the first reader that understands a file; None if no reader claims it.

    A reader that recognises a file and understands none of its records gives way to the next one.
    Where no reader understands it, the report of the first counts.
    """
    first: FileReport | None = None
    asked: list[Reader] = []
    for reader in chain(claims(source), _claims_without_marks(source)):
        if reader in asked:
            continue
        asked.append(reader)
        report = reader.read(source)
        if report.format is None and isinstance(reader, PluginReader):
            continue
        if _is_understood(report):
            return report
        first = first or report
    return first


def _is_understood(report: FileReport) -> bool:
    """Return whether anything was read beside logs, which keep records of unknown kinds."""
    return any(
        trace.span(index).role is not Role.LOG
        for trace in report.traces
        for index in range(min(len(trace), _SPANS_LOOKED_AT))
    )


def reads_by_line(source: Source) -> bool:
    """Return whether the file is of a format that is read line by line, whatever its size."""
    return any(_reader(module).recognises(source) for module in _BY_LINE)


def read_text(source: Source) -> FileReport:
    """Read a file as plain text, which every text file can be read as."""
    return _reader(_TEXT).read(source)


def _reader(module: str) -> Reader:
    reader: Reader = import_module(f"{__name__}.{module}").READER
    return reader
