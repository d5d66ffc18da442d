"""The readers of all formats, each in its own folder or module, and the readers of plug-ins.

To add a reader, add its module to ``_TEXT_READERS``, or to ``_BINARY_READERS`` if its files are no
text. A reader is imported at its first use.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role
from mast_tui.traces.readers.base import Reader
from mast_tui.traces.readers.json_fields import names
from mast_tui.traces.readers.plugins import PluginReader, plugins

_TEXT_READERS: Final = names("""
    codex.reader codex.exec codex.otel_logs claude_code.reader claude_code.stream converted
    inspect.reader mast_data swe_agent mini_swe_agent agentrx
    atif vendors.reader openhands otel.reader otel.trail
""")
"""Readers of text that recognise their format by its marks, in the order of recognition."""

_BINARY_READERS: Final = ("inspect.reader", "mast_data_parquet")
"""Readers of files that are no text."""

_LINE_READERS: Final = ("codex.reader", "codex.exec")
"""Readers that never need a whole file at once."""

_FALLBACK_READER: Final = "chat.reader"
"""The reader of lists of chat messages, for files that no other reader recognises."""

_COMPARED_SPANS: Final = 100

_PLAIN_TEXT_READER: Final = "logs"
"""The reader of plain text, only for logs and files that the user named."""


def readers(binary: bool = False) -> Iterator[Reader]:
    """Yield every reader that recognises a format by its marks, and import it just before."""
    for module in _BINARY_READERS if binary else _TEXT_READERS:
        yield _import_reader(module)
    if not binary:
        yield from import_module(f"{__name__}.sessions").FORMATS
        yield from import_module(f"{__name__}.exports").FORMATS
        yield from import_module(f"{__name__}.frameworks").FRAMEWORKS


def recognising_readers(source: Source, *, with_fallback: bool = False) -> Iterator[Reader]:
    """Yield the readers that recognise this file, the most specific first.

    Args:
        source: The file.
        with_fallback: Also yield plug-ins and the fallback, which need no mark of a format, if a
            reader recognises a mark of its format.
    """
    is_recognised = False
    for reader in readers(source.is_binary):
        if reader.recognises(source):
            is_recognised = True
            yield reader
    if is_recognised and not with_fallback:
        return
    yield from (plugin for plugin in plugins() if plugin.recognises(source))
    if not source.is_binary:
        fallback = _import_reader(_FALLBACK_READER)
        if fallback.recognises(source):
            yield fallback


def recognise(source: Source) -> Reader | None:
    """Return the reader for this file; None for an unknown format."""
    return next(recognising_readers(source), None)


def read_recognised(source: Source) -> FileReport | None:
    """Return the report of the first reader that recognises and understands a file.

    An understood trace begins with more than log entries. If no reader understands the file, the
    first report is returned; if none recognises it, None.
    """
    first_report: FileReport | None = None
    for reader in recognising_readers(source, with_fallback=True):
        report = reader.read(source)
        if report.format is None and isinstance(reader, PluginReader):  # it has failed
            continue
        if _has_understood_spans(report):
            return report
        first_report = first_report or report
    return first_report


def _has_understood_spans(report: FileReport) -> bool:
    """Return whether a trace has more than logs at its beginning; unknown records become logs."""
    return any(
        trace.span(index).role is not Role.LOG
        for trace in report.traces
        for index in range(min(len(trace), _COMPARED_SPANS))
    )


def reads_by_line(source: Source) -> bool:
    """Return whether the file is of a format that is read line by line."""
    return any(_import_reader(module).recognises(source) for module in _LINE_READERS)


def read_text(source: Source) -> FileReport:
    """Read any text file as plain text."""
    return _import_reader(_PLAIN_TEXT_READER).read(source)


def _import_reader(module: str) -> Reader:
    """Return the reader of a module in this folder."""
    reader: Reader = import_module(f"{__name__}.{module}").READER
    return reader
