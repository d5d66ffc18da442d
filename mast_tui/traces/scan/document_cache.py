"""The folder in which big documents are kept as files of spans, so that they are read only once.

Everything in it can be made again: it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from mast_tui import __version__
from mast_tui.traces.index.store import BROKEN, FORMAT, CachedDocument, facts_at_end, open_cached
from mast_tui.traces.io.opened_file import OpenedFile, Stamp
from mast_tui.traces.io.private_files import make_private
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.readers.plugins import entry_files

_READING_VERSION: Final = 15
"""A number to raise when the caches' content or a reader's result changes between releases."""


def cache_version() -> int:
    """Return a number below 2**31 that changes with our version and with the readers of others."""
    brought = [(entry.name, entry.stat().st_mtime_ns) for entry in entry_files()]
    return crc32(repr((__version__, _READING_VERSION, brought)).encode()) >> 1


MOST_BYTES: Final = 2 << 30
"""The most bytes of all documents; the least recently used go first."""

MOST_FILES: Final = 500
"""The most documents that are kept."""

SUFFIX: Final = ".spans"
_PART: Final = ".part"
_FORSAKEN_SECONDS: Final = 600
"""The age of the last write to a part after which the part is abandoned."""


class CachedLines(NamedTuple):
    """An index file of lines, the end of its blocks, and the byte up to which they index."""

    file: FileIO
    end: int
    read_to: int


class DocumentCache:
    """The documents kept in ``folder``, each good while its size and time of change are the same
    and the version that has read it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_the_user(cls) -> DocumentCache:
        """Return the cache in the user's cache folder."""
        from platformdirs import user_cache_path

        return cls(user_cache_path("mast-tui", appauthor=False) / "documents")

    @classmethod
    def in_folder(cls, folder: Path | None) -> DocumentCache:
        """Return the cache in ``folder``; None for the user's own."""
        return cls.of_the_user() if folder is None else cls(folder)

    def path_of(self, path: Path) -> Path:
        """Return the path under which the document at ``path`` is kept in its current state.

        Raises:
            OSError: from the file system.
        """
        stat = path.stat()
        return self._path_with(path, f"{stat.st_size} {stat.st_mtime_ns} ")

    def path_of_lines(self, path: Path) -> Path:
        """Return the path under which the index of a file of lines is kept, which may grow."""
        return self._path_with(path, "lines ")

    def _path_with(self, path: Path, stamp: str) -> Path:
        stamp += f"{FORMAT} {cache_version()}"
        name = hashlib.sha256(os.fsencode(path.absolute()) + b"\0" + stamp.encode()).hexdigest()
        return self.folder / f"{name[:32]}{SUFFIX}"

    def open_lines(self, path: Path, opened: OpenedFile) -> CachedLines | None:
        """Open the index of a file of lines that has not changed since, or has only grown.

        Args:
            path: The file.
            opened: The file as it was opened.

        Returns:
            None if there is no such index.
        """
        try:
            file = open_regular(self.path_of_lines(path))
        except OSError:
            return None
        try:
            facts = facts_at_end(file)
            if facts is not None:
                stamp = Stamp(*facts[0]["stamp"])
                if opened.matches_stamp(stamp):
                    return CachedLines(file, facts[1], stamp.read_to)
        except (OSError, *BROKEN):
            pass  # it is made again, which reports an error
        file.close()
        return None

    def open(self, path: Path) -> CachedDocument | None:
        """Return a document that was read before; None if it is not kept.

        A damaged file is removed.
        """
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
            with suppress(OSError):  # used just now; a folder that may only be read is no matter
                os.utime(cache_path)
        return document

    def why_not(self) -> str | None:
        """Return why no document can be kept in the folder; None if it can."""
        try:
            make_private(self.folder)
        except OSError as error:
            return error.strerror or str(error)
        return None if os.access(self.folder, os.W_OK | os.X_OK) else "it may not be written to"

    def make_room(self, size: int, most: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        """Remove the least recently used documents until there is room for another one.

        Args:
            size: The size of the other one in bytes.
            most: The most bytes of all together.
            most_files: The most files.
        """
        entries = sorted(self._entries(), reverse=True)
        room = most - size
        for number, (_used, length, cache_path) in enumerate(entries, 1):
            room -= length
            if room < 0 or number >= most_files:
                with suppress(OSError):
                    cache_path.unlink()

    def clear_away(self) -> None:
        """Remove parts of files whose writers have stopped early."""
        try:
            for part in self.folder.glob(f"*{_PART}"):
                if time.time() - part.stat().st_mtime > _FORSAKEN_SECONDS:
                    part.unlink()
        except OSError:
            return  # another process was quicker, or may do more here

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """Yield the time of last use, the size and the path of each document."""
        for cache_path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):
                stat = cache_path.stat()
                yield stat.st_mtime_ns, stat.st_size, cache_path
