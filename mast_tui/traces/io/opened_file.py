"""The file of a trace in its state at the time of opening, from which texts are read later."""

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
    """An error for the file of a trace that is no longer the file that was read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason, ESTALE)


class Stamp(NamedTuple):
    """The facts by which the first ``read_to`` bytes of a file are recognised later.

    Attributes:
        read_to: The number of these bytes.
        size: The length of the whole file.
        changed: The time of change of the file in nanoseconds.
        ends: A digest of the first and last of these bytes.
    """

    read_to: int
    size: int
    changed: int
    ends: str


class OpenedFile:
    """A file of a trace in its state at the time of opening, to be read again later.

    The file is unchanged while a regular file with the same device, inode, size and time of change
    is at its path. After ``let_grow`` it may become longer.

    Args:
        path: The path of the file.
        file: The open file.
    """

    def __init__(self, path: Path, file: FileIO) -> None:
        stat = os.fstat(file.fileno())
        self.path = path
        self.local_path = Path(os.fsdecode(file.name))
        """The path at which the file is read; for a remote file the path of its copy."""
        self.size = stat.st_size
        """The length of the file in bytes when it was opened, or when its growth was accepted."""
        self._file_id = (stat.st_dev, stat.st_ino)
        self._size_and_time = (stat.st_size, stat.st_mtime_ns)
        self._ends_digest: bytes | None = None
        """The digest of the first and last bytes up to ``size``; None if the file may not grow."""

    def let_grow(self) -> None:
        """Allow the file to become longer, as the log of a running agent does.

        From now on a digest of the first and last bytes read so far shows any other change.

        Raises:
            OSError: The file has changed, or cannot be read.
        """
        with self.open() as file:
            self._ends_digest = _digest_of_ends(file, self.size)

    def open(self) -> FileIO:
        """Open the file again.

        Raises:
            SourceChanged: The file has changed; the message has the reason.
            OSError: The file cannot be opened.
        """
        try:
            file = open_regular(self.local_path)
        except FileNotFoundError:
            raise SourceChanged(self.path, "the file is gone") from None
        except UnreadableFile as error:  # "not a regular file"
            raise SourceChanged(self.path, f"it is {error.strerror} any more") from None
        try:
            self._check_unchanged(file)
        except BaseException:
            file.close()
            raise
        return file

    def read(self, offset: int, length: int, /) -> bytes:
        """Read a part of the file.

        Args:
            offset: The first byte.
            length: The most bytes to read.

        Raises:
            SourceChanged: The file has changed.
            OSError: The file cannot be read.
        """
        with self.open() as file:
            file.seek(offset)
            return file.read(length) or b""

    def change_reason(self) -> str | None:
        """Return why the file has changed; None if it is unchanged or has grown as allowed."""
        try:
            self.open().close()  # ``open`` compares the file with its earlier state
        except OSError as error:
            return error.strerror or str(error)
        return None

    def length(self) -> int:
        """Return the current length of the file, more than ``size`` if it has grown.

        Raises:
            SourceChanged: The file has changed in another way than by allowed growth.
            OSError: The file cannot be opened.
        """
        with self.open() as file:
            return os.fstat(file.fileno()).st_size

    def accept_growth(self, size: int) -> None:
        """Set the known length of the file, which has grown, to ``size``.

        Raises:
            SourceChanged: The file has changed in another way than by allowed growth.
            OSError: The file cannot be opened.
        """
        with self.open() as file:
            self._ends_digest = _digest_of_ends(file, size)
        self.size = size

    def stamp(self, read_to: int) -> Stamp:
        """Return the stamp of the first ``read_to`` bytes of the file."""
        with self.open() as file:
            return Stamp(read_to, *self._size_and_time, _digest_of_ends(file, read_to).hex())

    def matches_stamp(self, stamp: Stamp) -> bool:
        """Return whether the file begins with the bytes of a stamp, a record of its earlier state.

        Raises:
            SourceChanged: The file has changed since it was opened.
            OSError: The file cannot be opened.
        """
        size, change_time = self._size_and_time
        is_rewritten = size == stamp.size and change_time != stamp.changed
        if size < stamp.size or is_rewritten:
            return False
        # A file that has grown has another size and time, but the same first bytes.
        stamp_after_growth = stamp._replace(size=size, changed=change_time)
        return self.stamp(stamp.read_to) == stamp_after_growth

    def _check_unchanged(self, file: FileIO) -> None:
        """Raise ``SourceChanged`` if the file has changed, except for allowed growth."""
        stat = os.fstat(file.fileno())
        if (stat.st_dev, stat.st_ino) != self._file_id:
            raise SourceChanged(self.path, "another file is in its place")
        size_and_time = (stat.st_size, stat.st_mtime_ns)
        if size_and_time == self._size_and_time:
            return
        if stat.st_size < self.size:
            raise SourceChanged(self.path, "the file has been cut")
        is_allowed_growth = self._ends_digest is not None and stat.st_size > self.size
        if not is_allowed_growth or _digest_of_ends(file, self.size) != self._ends_digest:
            raise SourceChanged(self.path, "the file has changed")
        self._size_and_time = size_and_time


def _digest_of_ends(file: FileIO, size: int) -> bytes:
    """Return a digest of the first bytes of a file, and of the last bytes before ``size``."""
    descriptor = file.fileno()
    digest = hashlib.blake2b(os.pread(descriptor, min(size, _HEAD_BYTES), 0), digest_size=16)
    if size > _HEAD_BYTES:
        digest.update(os.pread(descriptor, _TAIL_BYTES, size - _TAIL_BYTES))
    return digest.digest()
