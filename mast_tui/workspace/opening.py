"""Checks of the file where a workspace should be, before SQLite touches it."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from mast_tui.errors import WorkspaceError
from mast_tui.safe_text import one_line
from mast_tui.workspace.schema import APPLICATION_ID, SCHEMA_VERSION

FOLDER: Final = ".mast-tui"
"""The folder for a workspace whose path the user did not give."""

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_USER_VERSION_AT: Final = 60
_APPLICATION_ID_AT: Final = 68


def is_workspace(path: Path) -> bool:
    """Return whether there is a workspace at ``path``; False if there is no file or an empty one.

    Raises:
        WorkspaceError: There is a folder, a pipe, another kind of file, or a workspace with a newer
            schema; or the user may not read and write it.
    """
    try:
        if path.is_dir():
            raise WorkspaceError(f"{path}: this is a folder; name a file for the workspace in it")
        if not path.exists():
            return False
        if not path.is_file():  # opening a pipe would block
            raise WorkspaceError(f"{path}: this is no regular file; name one for the workspace")
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise WorkspaceError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not header:
        return False
    journal = path.with_name(path.name + "-journal")
    if journal.exists() and journal.stat().st_size:
        return True  # a crash left it half-written, so SQLite has to repair it first
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise WorkspaceError(
            f"{path}: this is no workspace of mast-tui (not an SQLite database); name another file"
        )
    check_version(
        path,
        application_id=struct.unpack_from(">I", header, _APPLICATION_ID_AT)[0],
        version=struct.unpack_from(">I", header, _USER_VERSION_AT)[0],
    )
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise WorkspaceError(
            f"{path}: may be read but not written; labels could not be kept. "
            "Change the rights of the file and its folder, or work on a copy of it"
        )
    return True


def check_version(path: Path | str, *, application_id: int, version: int) -> None:
    """Check the numbers at the head of an SQLite file.

    Args:
        path: The file, for messages.
        application_id: The application id of the file.
        version: The version of its tables.

    Raises:
        WorkspaceError: It is no workspace, or one that this program cannot read.
    """
    if application_id != APPLICATION_ID:
        raise WorkspaceError(
            f"{path}: this is the database of another program, not a workspace of mast-tui; "
            "name another"
        )
    if version < 1:
        raise WorkspaceError(
            f"{path}: damaged: a workspace without a schema version; put back a copy of it"
        )
    if version > SCHEMA_VERSION:
        raise WorkspaceError(
            f"{path}: made by a newer mast-tui (schema {version}; this one knows "
            f"{SCHEMA_VERSION}); upgrade mast-tui. Nothing in it was changed"
        )


def check_schema(path: Path | str, connection: sqlite3.Connection) -> None:
    """Check that a file has no triggers or views, which would act on their own.

    Args:
        path: The file, for messages.
        connection: A connection to it.

    Raises:
        WorkspaceError: The file has such a part.
    """
    unknown_part = connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"
    ).fetchone()
    if unknown_part is not None:
        kind, name = unknown_part
        raise WorkspaceError(
            f"{path}: holds a {kind} ({one_line(name, 40)}), which no "
            "workspace of mast-tui has and which could change labels unseen; do not use this file"
        )


def why_not_trusted(path: Path) -> str | None:
    """Return a reason not to use a workspace that the user did not name, or None.

    Another user who may write to the file could put a name, settings and labels into it. For a
    symbolic link its target is checked.
    """
    for checked_path in (path, path.parent):
        try:
            status = checked_path.stat()
        except OSError:
            continue
        if status.st_uid != os.geteuid():
            return f"{checked_path} belongs to another user"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others may write to {checked_path}"
    return None


def keep_private(path: Path) -> None:
    """Remove the rights of other users on a workspace, its journals and a new folder of it.

    If other users have the right to write, the file is shared on purpose and stays so.
    """
    own_folder = [path.parent] if path.parent.name == FOLDER else []
    journals = [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]
    for private_path in (*own_folder, path, *journals):
        with suppress(OSError):
            status = private_path.stat()
            is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if status.st_uid == os.geteuid() and not is_shared and status.st_mode & 0o077:
                private_path.chmod(stat.S_IMODE(status.st_mode) & 0o700)
