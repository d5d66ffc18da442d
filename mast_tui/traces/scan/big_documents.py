"""The choice of files that are read in a process of their own, because they are read whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mast_tui.traces.index.lines import BackgroundReader, LineSpans
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.packed import holds_more_than
from mast_tui.traces.io.regular_files import is_regular
from mast_tui.traces.io.source import Source, is_no_json
from mast_tui.traces.readers import reads_by_line, recognise

if TYPE_CHECKING:
    from mast_tui.traces.index.store import CachedDocument
    from mast_tui.traces.model import Trace
    from mast_tui.traces.scan.document_process import DocumentProcess, DocumentReading

BIG_BYTES: Final = 8 << 20
"""Above what size, unpacked, a document is read in a process of its own."""

BIG_LINES: Final = 16 << 20
"""Above what size a file that is read line by line has its index made in a process of its own."""

_LEAST_PACKING: Final = 100
"""The ratio of compression up to which a compressed file is not looked into."""


class BigDocuments(NamedTuple):
    """The limits above which files are read in another process, and the folder that keeps them.

    Files of more than ``big`` bytes are kept in ``folder``; None is the user's own folder. Files
    that are read line by line are not kept: where they have more than ``lines`` bytes, their first
    lines are read here and the rest by a process, on demand.
    """

    big: int = BIG_BYTES
    folder: Path | None = None
    lines: int = BIG_LINES

    def offer(self, trace: Trace, source: Source) -> None:
        """Prepare the background read of a long trace of lines by another process.

        Args:
            trace: The trace.
            source: Its file.
        """
        spans = trace.spans
        if isinstance(spans, LineSpans) and spans.in_file and source.opened.size > self.lines:
            spans.begin_background_read = partial(self._read_in_background, source)

    def _read_in_background(self, source: Source, begins: bool) -> BackgroundReader | None:
        return self._reading().read_in_background(
            source.path, source.opened, self.lines, begins=begins
        )

    def read(self, source: Source) -> CachedDocument | None:
        """Return a big document, read now or before; None for any other file.

        The caller waits until it is read.
        """
        return self._reading().read(source.path) if self._is_big(source) else None

    def begin(self, path: Path) -> DocumentProcess | None:
        """Start a process that reads the file at ``path``.

        Returns None if the file is read at once, or cannot be read at all.
        """
        try:
            source = Source(path)
            if not is_regular(path) or not self._is_big(source):
                return None
            return self._reading().begin(path)
        except OSError:
            return None

    def _is_big(self, source: Source) -> bool:
        """Return whether a file is big, and its reader needs the whole of it."""
        size = source.path.stat().st_size
        if size <= self.big:
            if size * _LEAST_PACKING <= self.big or source.packing is None:
                return False
            if not holds_more_than(source.path, self.big):
                return False
        if source.is_binary:
            return recognise(source) is not None
        if reads_by_line(source):
            return False
        begins_as_json = as_utf8(source.head).lstrip()[:1] in (b"{", b"[")
        if not begins_as_json or is_no_json(source.head):
            return recognise(source) is not None
        return True

    def _reading(self) -> DocumentReading:
        # Start-up: few files are that big.
        from mast_tui.traces.scan.document_process import DocumentReading

        return DocumentReading(self.folder)


BIG_DOCUMENTS: Final = BigDocuments()
"""The default limits."""
