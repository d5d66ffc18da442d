"""The choice of files that another process reads, because their readers need the whole file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mast_tui.traces.index.lines import BackgroundReader, LineSpans
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_lines import is_no_json
from mast_tui.traces.io.packed import beginning
from mast_tui.traces.io.regular_files import is_regular
from mast_tui.traces.io.source import Source
from mast_tui.traces.readers import reads_by_line, recognise

if TYPE_CHECKING:
    from mast_tui.traces.index.store import CachedDocument
    from mast_tui.traces.model import Trace
    from mast_tui.traces.scan.document_process import DocumentProcess, DocumentReading

BIG_BYTES: Final = 8 << 20
"""The unpacked size above which another process reads a document, in bytes."""

BIG_LINE_FILE_BYTES: Final = 16 << 20
"""The size above which another process indexes a file of lines, in bytes."""

_MOST_PACKING: Final = 100
"""The assumed greatest ratio of compression; a file that is small even so is not unpacked."""


class BigDocuments(NamedTuple):
    """The limits above which another process reads files, and the folder of its cache.

    Attributes:
        big: The greatest size of a document that this process reads, in bytes.
        folder: The folder of the cache; None for the user's own folder.
        line_file_bytes: The greatest size of a file of lines that this process reads alone. Of a
            bigger file it reads the first lines, and another process indexes the rest on demand.
    """

    big: int = BIG_BYTES
    folder: Path | None = None
    line_file_bytes: int = BIG_LINE_FILE_BYTES

    def offer(self, trace: Trace, source: Source) -> None:
        """Allow a trace to start another process that reads the rest of a long file of lines.

        Args:
            trace: The trace.
            source: The file of the trace.
        """
        spans = trace.spans
        if not isinstance(spans, LineSpans) or not spans.in_file:
            return
        if source.opened.size > self.line_file_bytes:
            spans.begin_background_read = partial(self._read_in_background, source)

    def _read_in_background(self, source: Source, may_start: bool) -> BackgroundReader | None:
        """Return the index of a file of lines, as ``DocumentReading.read_in_background`` does."""
        return self._document_reading().read_in_background(
            source.path, source.opened, self.line_file_bytes, may_start=may_start
        )

    def read(self, source: Source) -> CachedDocument | None:
        """Return a big document, once another process has read it; None if the file is not big."""
        return self._document_reading().read(source.path) if self._is_big(source) else None

    def begin(self, path: Path) -> DocumentProcess | None:
        """Start a process that reads a big file; None if the file is not big or cannot be read."""
        try:
            source = Source(path)
            if not is_regular(path) or not self._is_big(source):
                return None
            return self._document_reading().begin(path)
        except OSError:
            return None

    def _is_big(self, source: Source) -> bool:
        """Return whether the content of a file is big, and its reader needs the whole content."""
        size = source.path.stat().st_size
        if size <= self.big:  # only a compressed file may still have big content
            may_be_big = source.packing is not None and size * _MOST_PACKING > self.big
            if not may_be_big or len(beginning(source.path, self.big + 1)) <= self.big:
                return False
        if source.is_binary:
            return recognise(source) is not None
        if reads_by_line(source):
            return False
        # JSON is read as a whole, other files only if a reader recognises them. A log may also
        # begin with a bracket.
        begins_with_bracket = as_utf8(source.head).lstrip()[:1] in (b"{", b"[")
        is_json = begins_with_bracket and not is_no_json(source.head)
        return is_json or recognise(source) is not None

    def _document_reading(self) -> DocumentReading:
        # A local import for a fast start of the app, because few files are that big.
        from mast_tui.traces.scan.document_process import DocumentReading

        return DocumentReading(self.folder)


BIG_DOCUMENTS: Final = BigDocuments()
"""The default limits."""
