"""Files that only their owner may read: what is kept of traces holds their texts.

A trace may be readable by nobody else, so what is kept of it never is.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import EINVAL
from pathlib import Path
from typing import Final

_GROUP_AND_WORLD: Final = stat.S_IRWXG | stat.S_IRWXO
_FOLDER: Final = stat.S_IRWXU
_FILE: Final = stat.S_IRUSR | stat.S_IWUSR


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for its owner alone.

    One that is there already and open to others is closed to them, with all that lies in it.

    Raises:
        OSError: from the file system, but not where the folder belongs to somebody else.
    """
    missing = [directory for directory in (folder, *folder.parents) if not directory.exists()]
    for directory in reversed(missing):
        directory.mkdir(_FOLDER, exist_ok=True)
    with suppress(PermissionError):
        _close_to_others(folder)


def open_private(path: Path, *, empty: bool = False) -> int:
    """Open a file for reading and writing, made for its owner alone where it is not there.

    Args:
        path: The file, in a folder that is there.
        empty: Whether what was in it goes.

    Returns:
        Its descriptor.

    Raises:
        OSError: from the file system, or it is no regular file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_TRUNC if empty else 0)
    file = os.open(path, flags, _FILE)
    try:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(EINVAL, "not a regular file", os.fspath(path))
        if mode & _GROUP_AND_WORLD:
            with suppress(PermissionError):
                os.fchmod(file, _FILE)
    except BaseException:
        os.close(file)
        raise
    return file


def _close_to_others(folder: Path) -> None:
    if not folder.stat().st_mode & _GROUP_AND_WORLD:
        return
    folder.chmod(_FOLDER)
    with os.scandir(folder) as members:
        for member in members:
            if member.is_dir(follow_symlinks=False):
                _close_to_others(folder / member.name)
            elif member.is_file(follow_symlinks=False):
                (folder / member.name).chmod(_FILE)
