"""Files that only their owner may read, such as caches with the texts of traces.

A cache must not show a trace to users who may not read the trace.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from errno import EINVAL
from pathlib import Path
from typing import Final

_GROUP_AND_WORLD: Final = stat.S_IRWXG | stat.S_IRWXO
_FOLDER_MODE: Final = stat.S_IRWXU
_FILE_MODE: Final = stat.S_IRUSR | stat.S_IWUSR

PART: Final = ".part"
"""The suffix of an incomplete file in a cache."""

_ABANDONED_SECONDS: Final = 600
"""The seconds since the last write after which an incomplete file counts as abandoned."""


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, for the owner alone.

    In an existing folder, remove the rights of other users. A folder of another user stays
    unchanged.

    Raises:
        OSError: The folder cannot be created.
    """
    missing_folders = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for missing_folder in reversed(missing_folders):
        missing_folder.mkdir(_FOLDER_MODE, exist_ok=True)
    with suppress(PermissionError):
        _make_contents_private(folder)


def open_private(path: Path, *, empty: bool = False) -> int:
    """Open a file for reading and writing, for its owner alone; create it if it is missing.

    Args:
        path: The file, in an existing folder.
        empty: True to delete the previous content.

    Returns:
        The descriptor of the file.

    Raises:
        OSError: The file cannot be opened, or is no regular file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_TRUNC if empty else 0)
    file = os.open(path, flags, _FILE_MODE)
    try:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(EINVAL, "not a regular file", os.fspath(path))
        if mode & _GROUP_AND_WORLD:
            with suppress(PermissionError):
                os.fchmod(file, _FILE_MODE)
    except BaseException:
        os.close(file)
        raise
    return file


def remove_least_used(paths: Iterable[Path], most: int) -> None:
    """Remove the least recently used files of a cache, and abandoned incomplete files.

    Args:
        paths: All files in the cache.
        most: The most bytes of the files that stay, with incomplete files (``PART``).
    """
    bytes_left = most
    complete_files = []
    for path in paths:
        with suppress(OSError):  # another process has deleted it
            status = path.stat()
            if path.suffix != PART:
                complete_files.append((status.st_atime_ns, status.st_size, path))
            elif time.time() - status.st_mtime > _ABANDONED_SECONDS:
                path.unlink()
            else:
                bytes_left -= status.st_size
    for _used, size, path in sorted(complete_files, reverse=True):  # the most recent first
        bytes_left -= size
        if bytes_left < 0:
            with suppress(OSError):
                path.unlink()


def _make_contents_private(folder: Path) -> None:
    """Remove the rights of other users on a folder and its contents.

    A folder without such rights was treated before.
    """
    if not folder.stat().st_mode & _GROUP_AND_WORLD:
        return
    folder.chmod(_FOLDER_MODE)
    with os.scandir(folder) as members:
        for member in members:
            if member.is_dir(follow_symlinks=False):
                _make_contents_private(folder / member.name)
            elif member.is_file(follow_symlinks=False):
                (folder / member.name).chmod(_FILE_MODE)
