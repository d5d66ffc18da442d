"""The file of a trace as it was when it was opened, from which texts are read later."""

from __future__ import annotations

import hashlib
import os
from errno import ESTALE
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple

from mast_tui.traces.io.regular_files import UnreadableFile, open_regular

_HEAD_BYTES: Final = 64 * 1024
_TAIL_BYTES: Final = 4096


class SourceChanged(UnreadableFile):
    """The file of a trace is no longer the one that was read, or holds something else."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason, ESTALE)


class Stamp(NamedTuple):
    """By which the beginning of a file is known again, up to the byte ``read_to``.

    ``size`` and ``changed`` are those of the whole file: its length, and its time of change in
    nanoseconds. ``ends`` is a digest of the first and the last bytes of the beginning.
    """

    read_to: int
    size: int
    changed: int
    ends: str


class OpenedFile:
    """A file that is open as ``file`` now and is to be read from again later.

    It is the same as long as it is in its place, a regular file with the same device and inode,
    size and time of change.
    """

    def __init__(self, path: Path, file: FileIO) -> None:
        stat = os.fstat(file.fileno())
        self.path = path
        self.local_path = Path(os.fsdecode(file.name))
        """The path at which it is read: of a remote file that of its copy."""
        self.size = stat.st_size
        """Its length when it was opened, in bytes."""
        self._file = (stat.st_dev, stat.st_ino)
        self._state = (stat.st_size, stat.st_mtime_ns)
        self._ends: bytes | None = None

    def let_grow(self) -> None:
        """Accept that the file becomes longer, as the log of a run does that continues.

        Its first and last known bytes then show that nothing else was written. ``OSError`` comes
        through.
        """
        with self.open() as file:
            self._ends = _ends_of(file, self.size)

    def open(self) -> FileIO:
        """Open the file again.

        Raises:
            SourceChanged: it has changed; the message has the reason.
            OSError: from the file system.
        """
        try:
            file = open_regular(self.local_path)
        except FileNotFoundError:
            raise SourceChanged(self.path, "the file has gone") from None
        except UnreadableFile as error:
            raise SourceChanged(self.path, f"it is {error.strerror} any more") from None
        try:
            self._check(file)
        except BaseException:
            file.close()
            raise
        return file

    def read(self, offset: int, length: int, /) -> bytes:
        """Read a part of the file; raises as ``open`` does.

        Args:
            offset: The first byte.
            length: The most bytes to read.
        """
        with self.open() as file:
            file.seek(offset)
            return file.read(length) or b""

    def changed(self) -> str | None:
        """Say why the file is not what it was; None if it is, or just has grown."""
        try:
            self.open().close()
        except OSError as error:
            return error.strerror or str(error)
        return None

    def length(self) -> int:
        """Return the length of the file by now: more than ``size`` where it has grown.

        Raises as ``open`` does.
        """
        with self.open() as file:
            return os.fstat(file.fileno()).st_size

    def accept_growth(self, size: int) -> None:
        """Take the file, which has grown, for known up to ``size``; raises as ``open`` does."""
        with self.open() as file:
            self._ends = _ends_of(file, size)
        self.size = size

    def stamp(self, read_to: int) -> Stamp:
        """Return the stamp by which the file up to ``read_to`` is known again."""
        with self.open() as file:
            return Stamp(read_to, *self._state, _ends_of(file, read_to).hex())

    def matches_stamp(self, stamp: Stamp) -> bool:
        """Return whether it is the file with this stamp, perhaps with more at its end.

        Raises as ``open`` does.
        """
        size, changed = self._state
        if size < stamp.size or (size == stamp.size and changed != stamp.changed):
            return False
        return self.stamp(stamp.read_to) == stamp._replace(size=size, changed=changed)

    def _check(self, file: FileIO) -> None:
        """Raise ``SourceChanged`` unless the file is unchanged, or has only grown where it may."""
        stat = os.fstat(file.fileno())
        if (stat.st_dev, stat.st_ino) != self._file:
            raise SourceChanged(self.path, "another file is in its place")
        state = (stat.st_size, stat.st_mtime_ns)
        if state == self._state:
            return
        if stat.st_size < self.size:
            raise SourceChanged(self.path, "the file has been cut")
        grown = self._ends is not None and stat.st_size > self.size
        if not grown or _ends_of(file, self.size) != self._ends:
            raise SourceChanged(self.path, "the file has changed")
        self._state = state


def _ends_of(file: FileIO, size: int) -> bytes:
    """Return a digest of the first bytes of a file, and of the last ones before ``size``."""
    number = file.fileno()
    digest = hashlib.blake2b(os.pread(number, min(size, _HEAD_BYTES), 0), digest_size=16)
    if size > _HEAD_BYTES:
        digest.update(os.pread(number, _TAIL_BYTES, size - _TAIL_BYTES))
    return digest.digest()
