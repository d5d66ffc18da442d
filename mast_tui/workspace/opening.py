"""What lies where a workspace should be, told from the file's header before SQLite touches it."""

from __future__ import annotations

import os
import struct
from enum import Enum
from pathlib import Path
from typing import Final

from mast_tui.workspace.errors import WorkspaceError
from mast_tui.workspace.schema import APPLICATION_ID, SCHEMA_VERSION

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_USER_VERSION_AT: Final = 60
_APPLICATION_ID_AT: Final = 68


class Found(Enum):
    """What lies at a path."""

    NOTHING = "nothing"
    WORKSPACE = "workspace"


def examine(path: Path) -> Found:
    """Whether there is a workspace at ``path``, or nothing yet.

    Only reads, and leaves nothing behind. Raises ``WorkspaceError`` for anything else: a folder,
    another kind of file, a workspace with a newer schema, or no right to read and write it.
    """
    try:
        if path.is_dir():
            raise WorkspaceError(f"{path}: this is a folder; name a file for the workspace in it")
        if not path.exists():
            return Found.NOTHING
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise WorkspaceError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not header:
        return Found.NOTHING
    journal = path.with_name(path.name + "-journal")
    if journal.exists() and journal.stat().st_size:
        return Found.WORKSPACE  # a crash left it half-written: SQLite has to mend it first
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
    return Found.WORKSPACE


def check_version(path: Path | str, *, application_id: int, version: int) -> None:
    """Raise ``WorkspaceError`` unless these are the numbers of a workspace that we can read."""
    if application_id != APPLICATION_ID:
        raise WorkspaceError(
            f"{path}: this is the database of another program, not a workspace of mast-tui; "
            "name another file"
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
