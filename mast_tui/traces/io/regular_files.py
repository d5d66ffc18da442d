"""The opening of files of traces and of files beside them.

A foreign folder may have a pipe, a device or a link to one under any name. This module never waits
for them, and never reads them without end.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG, EINVAL
from io import FileIO
from pathlib import Path
from typing import Final

from mast_tui.traces.io.remote import RemotePath

BESIDE_BYTES: Final = 16 << 20
"""The most bytes of a file with further facts beside a trace."""

_LEAST_PIECE_BYTES: Final = 1 << 16
FOLDER_NOT_FILE: Final = "a folder, not a file; give a file in it"
NOT_REGULAR: Final = "not a regular file"


class UnreadableFile(OSError):
    """An error for a file that is not read; ``strerror`` is the reason without the file's name."""

    def __init__(self, path: Path, reason: str, number: int = EINVAL) -> None:
        super().__init__(number, reason, os.fspath(path))

    def __str__(self) -> str:
        return f"{Path(self.filename).name}: {self.strerror}"


def open_regular(path: Path) -> FileIO:
    """Open a regular file, or a copy of a remote file, for reading, without waiting for a pipe.

    Raises:
        UnreadableFile: The path is a folder, a pipe, a socket or a device, or a link to one.
        OSError: The file cannot be opened.
    """
    if isinstance(path, RemotePath):
        path = path.fetched()
    _check_regular(path, path.stat())  # a device may act as soon as it is opened
    file = FileIO(
        path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)
    )
    try:
        _check_regular(path, os.fstat(file.fileno()))  # another file may be there by now
    except BaseException:
        file.close()
        raise
    return file


def is_regular(path: Path) -> bool:
    """Return whether the path is a regular file; False if that is unknown."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Return whether the path is a folder; False if that is unknown."""
    try:
        return path.is_dir()
    except OSError:
        return False


def read_beside(path: Path, most: int = BESIDE_BYTES) -> bytes | None:
    """Read a whole file beside a trace; return None if there is no such file.

    Args:
        path: The file.
        most: The most bytes of the file.

    Raises:
        UnreadableFile: The file cannot be read, is no regular file or is too big.
    """
    try:
        with open_regular(path) as file:
            return _content_of(path, file, most)
    except FileNotFoundError:
        return None
    except UnreadableFile:  # it has a reason already
        raise
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise UnreadableFile(path, reason, error.errno or EINVAL) from error


def _content_of(path: Path, file: FileIO, most: int) -> bytes:
    """Read a whole file of at most ``most`` bytes, to its end even if it is growing.

    Raises:
        UnreadableFile: The file is too big.
    """
    pieces = []
    bytes_left = most + 1  # the byte over the limit shows that the file is too big
    expected_bytes = os.fstat(file.fileno()).st_size + 1  # one more, to see the end at once
    if expected_bytes <= bytes_left:
        piece_bytes = max(expected_bytes, _LEAST_PIECE_BYTES)
        while bytes_left > 0 and (piece := file.read(min(bytes_left, piece_bytes))):
            pieces.append(piece)
            bytes_left -= len(piece)
        if bytes_left > 0:
            return b"".join(pieces)
    limit = f"{most >> 20} MB" if most >= 1 << 20 else f"{most >> 10} kB"
    raise UnreadableFile(path, f"contains more than {limit}", EFBIG)


def _check_regular(path: Path, stat_result: os.stat_result) -> None:
    if not stat.S_ISREG(stat_result.st_mode):
        raise UnreadableFile(path, NOT_REGULAR)
