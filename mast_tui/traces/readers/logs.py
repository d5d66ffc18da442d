"""Any other text as paragraphs between blank lines; keys are the numbers of their first lines."""

from __future__ import annotations

from typing import Final

from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role, SpanKind, TraceMeta
from mast_tui.traces.readers.base import FormatReader, trace_of_lines

PARAGRAPH_LINES: Final = 100
"""The maximum number of lines of a paragraph, for logs without blank lines."""

_AGENT: Final = "text"
_NOT_UTF8: Final = "not valid UTF-8; what could not be read is shown as \ufffd"


def _read(source: Source) -> FileReport:
    """Return one trace with its first slice; the rest is read on demand."""
    trace = trace_of_lines(READER, source, TextParser())
    return FileReport(source.path, format=READER.name, traces=(trace,))


READER: Final = FormatReader("text", lambda source: not source.is_binary, _read)
"""Reads any text, slice by slice."""


class TextParser:
    """Makes a span of each paragraph."""

    def __init__(self) -> None:
        self.table = SpanTable()
        self.meta = TraceMeta()
        self._first_line = 0
        """The number of the first line of the open paragraph; 0 if no paragraph is open."""
        self._last_line = 0
        """The number of the last line of the open paragraph."""

    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Read a line, which may begin, continue or close a paragraph.

        Args:
            number: The number of the line, from 1 on.
            line: The line.
            cut_off: Unused.
        """
        if not line.strip():
            self.finish()
            return
        if not line.isascii():
            try:
                line.decode()
            except UnicodeDecodeError:
                self.table.add_problem(number, _NOT_UTF8)
        self._first_line = self._first_line or number
        self._last_line = number
        line_count = number - self._first_line + 1
        if line_count == PARAGRAPH_LINES:  # a longer paragraph becomes several spans
            self.finish()

    def finish(self) -> None:
        """Add the span of the open paragraph and close it."""
        if self._first_line:
            self.table.add(
                self._first_line, self._last_line, (SpanKind.LOG, Role.LOG, _AGENT, None)
            )
            self._first_line = 0

    def text(self, data: bytes, _kind: SpanKind, _index: int, /) -> str:
        """Return the text of a paragraph without carriage returns at the ends of lines.

        Args:
            data: The content of the paragraph's lines.
            _kind: Unused.
            _index: Unused.
        """
        text = as_utf8(data).decode("utf-8", "replace")
        return text.replace("\r\n", "\n").removesuffix("\r")
