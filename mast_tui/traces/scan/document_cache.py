"""The cache of big documents, so that each is read only once.

All its files can be made again, so its folder may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from mast_tui import __version__
from mast_tui.traces.index.store import BROKEN, FORMAT, CachedDocument, facts_at_end, open_cached
from mast_tui.traces.io.opened_file import OpenedFile, Stamp
from mast_tui.traces.io.private_files import make_private, remove_least_used
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.readers.plugins import reader_metadata_folders

_READING_VERSION: Final = 27
"""A number to raise when a cache's content or a reader's result changes between releases."""


def cache_version() -> int:
    """Return a number below 2**31 that changes with this program's version and with plug-ins."""
    plugins = [(entry.name, entry.stat().st_mtime_ns) for entry in reader_metadata_folders()]
    return crc32(repr((__version__, _READING_VERSION, plugins)).encode()) >> 1


MOST_BYTES: Final = 2 << 30
"""The most bytes of all documents; the least recently used are removed."""

SUFFIX: Final = ".spans"


class CachedLines(NamedTuple):
    """A stored index of a file of lines.

    Attributes:
        file: The open index file.
        end: The offset after its last block.
        read_to: The offset in the file of lines up to which the index reaches.
    """

    file: FileIO
    end: int
    read_to: int


class DocumentCache:
    """The cached documents in ``folder``, by default a folder in the user's cache.

    A cached document is valid while its size, its time of change and the version of the readers
    stay the same.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            from platformdirs import user_cache_path  # start-up: few files are that big

            folder = user_cache_path("mast-tui", appauthor=False) / "documents"
        self.folder = folder

    def path_of(self, path: Path) -> Path:
        """Return the path in the cache for the document at ``path`` in its current state.

        Raises:
            OSError: There is no such document.
        """
        stat = path.stat()
        return self._cache_path(path, f"{stat.st_size} {stat.st_mtime_ns}")

    def path_of_lines(self, path: Path) -> Path:
        """Return the path in the cache for the index of a file of lines, which may grow."""
        return self._cache_path(path, "lines")

    def _cache_path(self, path: Path, stamp: str) -> Path:
        stamp += f" {FORMAT} {cache_version()}"
        name = hashlib.sha256(os.fsencode(path.absolute()) + b"\0" + stamp.encode()).hexdigest()
        return self.folder / f"{name[:32]}{SUFFIX}"

    def open_lines(self, path: Path, opened: OpenedFile) -> CachedLines | None:
        """Open the stored index of a file of lines.

        Return None if it is missing, or the file has changed in another way than to grow.

        Args:
            path: The file.
            opened: The state of the file when it was opened.
        """
        try:
            file = open_regular(self.path_of_lines(path))
        except OSError:
            return None
        try:
            end_facts = facts_at_end(file)
            if end_facts is not None:
                facts, end = end_facts
                stamp = Stamp(*facts["stamp"])
                if opened.matches_stamp(stamp):
                    return CachedLines(file, end, stamp.read_to)
        except (OSError, *BROKEN):
            pass  # the caller makes the index again, and reports an error of the file
        file.close()
        return None

    def open(self, path: Path) -> CachedDocument | None:
        """Return a document from the cache, if it is there; delete a damaged file."""
        try:
            cache_path = self.path_of(path)
            document = open_cached(cache_path, path)
        except OSError:
            return None
        except BROKEN:
            with suppress(OSError):
                cache_path.unlink()
            return None
        if document is not None:
            with suppress(OSError):  # record the use, unless the folder is read-only
                os.utime(cache_path)
        return document

    def unusable_reason(self) -> str | None:
        """Return why no document can be stored in the folder; None if documents can be stored."""
        try:
            make_private(self.folder)
        except OSError as error:
            return error.strerror or str(error)
        return None if os.access(self.folder, os.W_OK | os.X_OK) else "it may not be written to"

    def make_room(self) -> None:
        """Remove the least recently used documents until all files, also unfinished ones, fit."""
        remove_least_used(self.folder.glob("*"), MOST_BYTES)
