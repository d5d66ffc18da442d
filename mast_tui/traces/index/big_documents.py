"""Which files are read in a process of their own, as their readers need the whole of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.packed import holds_more_than
from mast_tui.traces.io.regular_files import is_regular
from mast_tui.traces.io.source import Source, is_no_json
from mast_tui.traces.model import FileReport

if TYPE_CHECKING:
    from mast_tui.traces.index.document_cache import KeptDocuments
    from mast_tui.traces.index.document_process import DocumentProcess
    from mast_tui.traces.index.document_trace import Kept

BIG_BYTES: Final = 8 << 20
"""Above what size, unpacked, a document is read in a process of its own."""

READ_HERE_AT_MOST: Final = 64 << 20
"""How big it may be to be read here all the same, where nothing can be kept."""

_LEAST_PACKING: Final = 100
"""How many times its size a compressed file is taken to hold at most without being looked into."""


@dataclass(frozen=True, slots=True)
class BigDocuments:
    """How files are read that are more than ``big`` bytes; they are kept in ``folder``.

    Without a folder it is the user's own. Files that are read line by line are none of them.
    """

    big: int = BIG_BYTES
    folder: Path | None = None

    def read(self, source: Source) -> Kept | None:
        """What came of a big document, read now or before; None for any other file.

        Whoever asks waits until it is read.
        """
        if not self._takes(source):
            return None
        from mast_tui.traces.index.document_trace import Kept

        kept = self._documents().open(source.path)
        if kept is None:
            process = self._process(source.path)
            if process is None:
                return None
            if isinstance(process, str):
                return Kept(FileReport(source.path, failed=process))
            process.wait()
            kept = self._documents().open(source.path)
            if kept is None:
                reason = process.failed or "what was read of it is there no more"
                return Kept(FileReport(source.path, failed=reason))
        return kept

    def begin(self, path: Path) -> DocumentProcess | None:
        """A process that reads the file at ``path`` first; None where that is read at once, or
        cannot be read at all."""
        try:
            source = Source(path)
            if not is_regular(path) or not self._takes(source):
                return None
            if self._documents().place_of(path).exists():
                return None
            process = self._process(path)
        except OSError:
            return None
        return None if isinstance(process, str) else process

    def _takes(self, source: Source) -> bool:
        """Whether a file is big, and its reader needs the whole of it."""
        size = source.path.stat().st_size
        if size <= self.big:
            if size * _LEAST_PACKING <= self.big or source.packing is None:
                return False
            if not holds_more_than(source.path, self.big):
                return False
        from mast_tui.traces.readers.codex import reader as codex

        if codex.READER.recognises(source):
            return False
        from mast_tui.traces.readers import recognise
        from mast_tui.traces.readers.codex import exec as codex_exec

        if source.is_binary:
            return recognise(source) is not None
        begins_as_json = as_utf8(source.head).lstrip()[:1] in (b"{", b"[")
        if not begins_as_json or is_no_json(source.head):
            return recognise(source) is not None
        return not codex_exec.READER.recognises(source)

    def _documents(self) -> KeptDocuments:
        from mast_tui.traces.index.document_cache import KeptDocuments

        return KeptDocuments.of_the_user() if self.folder is None else KeptDocuments(self.folder)

    def _process(self, path: Path) -> DocumentProcess | str | None:
        """The process, or why there can be none; None where the file can be read here as well."""
        from mast_tui.traces.index.document_process import DocumentProcess

        documents = self._documents()
        reason = documents.why_not()
        if reason is None:
            return DocumentProcess(path, documents)
        if path.stat().st_size <= READ_HERE_AT_MOST:
            return None
        return f"it is too big to be read without keeping it in {documents.folder}: {reason}"


BIG_DOCUMENTS: Final = BigDocuments()
"""How files are read unless somebody asks for something else."""
