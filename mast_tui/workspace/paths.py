"""The paths of workspaces and of their traces, and checks of a file before SQLite opens it."""

from __future__ import annotations

import getpass
import os
import sqlite3
import stat
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from mast_tui.errors import WorkspaceError
from mast_tui.labels import checked_person
from mast_tui.safe_text import one_line
from mast_tui.traces.io.remote import trace_path
from mast_tui.workspace.schema import APPLICATION_ID, SCHEMA_VERSION

FILE: Final = "workspace.db"

BEFORE_FOLDERS: Final = "./"
"""The beginning of a relative path that versions before schema 9 have stored."""


def default_workspace_path(cwd: Path) -> Path:
    """Return ``.mast-tui/workspace.db`` in the nearest folder from ``cwd`` upwards that has one.

    Without one, return its path in ``cwd``.
    """
    for folder in (cwd, *cwd.absolute().parents):
        path = folder / FOLDER / FILE
        if path.is_file():
            return path
    return cwd / FOLDER / FILE


def is_url(location: Path | str) -> bool:
    """Return whether the location of a workspace is a URL."""
    return "://" in str(location)


def url_with_user(url: str, user: str) -> str:
    """Return the URL of a workspace with another user.

    Args:
        url: The URL, which may name another user before the host or as an option.
        user: The user.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    options = [
        option for option in parts.query.split("&") if unquote(option.partition("=")[0]) != "user"
    ]
    netloc = f"{quote(user, safe='')}@{host}"
    return urlunsplit(parts._replace(netloc=netloc, query="&".join(options)))


def find_workspace(location: str | None) -> Path:
    """Return the named workspace, or the nearest one from the working folder."""
    return default_workspace_path(Path.cwd()) if location is None else Path(location).expanduser()


def traces_folder(workspace: Path) -> Path:
    """Return the folder to which the paths of a workspace's traces are relative.

    This is the folder of the file, or the parent of a folder ``.mast-tui``.
    """
    folder = workspace.absolute().parent
    return folder.parent if folder.name == FOLDER else folder


def absolute_path(path: Path) -> Path:
    """Return an absolute path without ``..``, whose parents are the folders above it."""
    path = path.absolute()
    return path.resolve() if ".." in path.parts else path


def stored_trace_path(path: Path, folder: Path | None) -> str:
    """Return the text by which a workspace stores the path of a trace.

    A path inside the folder becomes relative to it, so that folder and workspace can be moved
    together. Any other path becomes absolute, except a relative path without a file.

    Args:
        path: The path or URL that the program has opened.
        folder: The workspace's ``traces_folder``; None on a server and in memory.
    """
    outer, separator, local = _split_chained_path(str(path))
    if not separator and is_url(local):
        return local
    file = Path(local)
    if not file.is_absolute() and not file.exists():
        return str(path)
    file = absolute_path(file)
    if folder is not None:
        file = _relative_path(folder, file)
    return f"{outer}{separator}{file}"


def found_trace_path(stored: str, folder: Path | None) -> Path:
    """Return the path of a trace from its stored text.

    A relative path belongs to the folder. A path stored by an early version (``BEFORE_FOLDERS``)
    may also belong to the current directory.

    Args:
        stored: The text, as ``stored_trace_path`` returned it.
        folder: The workspace's ``traces_folder``; None on a server and in memory.
    """
    outer, separator, local = _split_chained_path(stored)
    file = Path(local)
    if folder is None or file.is_absolute() or (not separator and is_url(local)):
        return trace_path(stored)
    candidate = folder / file
    if stored.startswith(BEFORE_FOLDERS) and not candidate.exists() and file.exists():
        candidate = file.absolute()
    return trace_path(f"{outer}{separator}{candidate}")


def _split_chained_path(text: str) -> tuple[str, str, str]:
    """Split a chained URL such as ``zip://run.json::runs.zip`` before its local file.

    For other paths the first two texts are empty.
    """
    outer, separator, local = text.rpartition("::")
    if not separator or not is_url(outer) or is_url(local):
        return "", "", text
    return outer, separator, local


def _relative_path(folder: Path, file: Path) -> Path:
    """Return a path relative to a folder, or unchanged if it is outside the folder."""
    # Symbolic links may lead to the same folder, so resolved paths are compared too.
    for base, target in ((folder, file), (folder.resolve(), file.resolve())):
        if target.is_relative_to(base):
            return target.relative_to(base)
    return file


def samples_workspace_path() -> Path:
    """Return the workspace of the sample traces, in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("mast-tui", appauthor=False) / "samples.db"


def suggested_name(config_name: str | None) -> str:
    """Suggest a name to a new annotator; empty if there is none.

    The first valid one of these: the configured name, git's user.name, the login.
    """
    for name in (config_name, _git_name(), _login_name()):
        valid_name = "" if name is None else _valid_name_or_empty(name)
        if valid_name:
            return valid_name
    return ""


def login_setting() -> str:
    """Return the name of the setting with the annotator's name for this login."""
    return f"person:{_login_name() or ''}"


def _valid_name_or_empty(name: str) -> str:
    try:
        return checked_person(name)
    except ValueError:
        return ""


def _git_name() -> str | None:
    """Return the user's name in git's configuration; None without one."""
    try:
        process = subprocess.run(
            ["git", "config", "user.name"],
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=2,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None


def _login_name() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


FOLDER: Final = ".mast-tui"
"""The folder of a workspace with a default path."""

SIDE_FILES: Final = ("-wal", "-shm", "-journal")
"""The ends of the names of the files that SQLite makes beside a database."""

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_USER_VERSION_AT: Final = 60
_APPLICATION_ID_AT: Final = 68


def is_workspace(path: Path) -> bool:
    """Return whether there is a workspace at ``path``; False for no file or an empty file.

    Raises:
        WorkspaceError: Another kind of file is there, the schema is newer, or the user may not read
            and write the file.
    """
    header = _read_header(path)
    if not header:
        return False
    journal = path.with_name(path.name + "-journal")
    if journal.exists() and journal.stat().st_size:
        return True  # after a crash the header is unreliable until SQLite has repaired the file
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise WorkspaceError(
            f"{path}: is not a mast-tui workspace (not an SQLite database); give another file"
        )
    check_version(
        path,
        application_id=struct.unpack_from(">I", header, _APPLICATION_ID_AT)[0],
        version=struct.unpack_from(">I", header, _USER_VERSION_AT)[0],
    )
    read_only = [
        str(needed)
        for needed in (*workspace_files(path), path.parent)
        if needed.exists() and not os.access(needed, os.W_OK)
    ]
    if read_only:
        raise WorkspaceError(
            f"{path}: is read-only, so labels could not be saved. Change the permissions of "
            f"{' and '.join(read_only)}, or work on a copy"
        )
    return True


def workspace_files(path: Path) -> tuple[Path, ...]:
    """Return the paths of a workspace and of the files that SQLite may make beside it."""
    return tuple(path.with_name(path.name + end) for end in ("", *SIDE_FILES))


def _read_header(path: Path) -> bytes:
    """Return the first bytes of a file; empty if there is no file.

    Raises:
        WorkspaceError: The path is a folder or a pipe, or cannot be read.
    """
    try:
        if path.is_dir():
            raise WorkspaceError(f"{path}: is a folder; give a file in it")
        if not path.exists():
            return b""
        if not path.is_file():  # opening a pipe would block
            raise WorkspaceError(f"{path}: is not a regular file; give another one")
        with path.open("rb") as file:
            return file.read(_HEADER_BYTES)
    except OSError as error:
        raise WorkspaceError(f"{path}: cannot be read: {error.strerror or error}") from error


def check_version(path: Path | str, *, application_id: int, version: int) -> None:
    """Check the program and version of an SQLite file.

    Args:
        path: The file, for messages.
        application_id: The number of the program that made the file.
        version: The version of its tables.

    Raises:
        WorkspaceError: The file is no workspace, is damaged, or has a newer version.
    """
    if application_id != APPLICATION_ID:
        raise WorkspaceError(
            f"{path}: is the database of another program, not a mast-tui workspace; give "
            "another file"
        )
    if version < 1:
        raise WorkspaceError(
            f"{path}: is damaged: the workspace has no schema version; restore a backup"
        )
    if version > SCHEMA_VERSION:
        raise WorkspaceError(
            f"{path}: made by a newer mast-tui (schema {version}; this one supports "
            f"{SCHEMA_VERSION}); upgrade mast-tui. Nothing in it was changed"
        )


def check_schema(path: Path | str, connection: sqlite3.Connection) -> None:
    """Check that a file has no triggers or views, which could change labels unnoticed.

    Args:
        path: The file, for messages.
        connection: A connection to the file.

    Raises:
        WorkspaceError: The file has a trigger or a view.
    """
    unknown_part = connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"
    ).fetchone()
    if unknown_part is not None:
        kind, name = unknown_part
        raise WorkspaceError(
            f"{path}: contains a {kind} ({one_line(name, 40)}), which mast-tui never creates "
            "and which could change labels unnoticed; do not use this file"
        )


def why_not_trusted(path: Path) -> str | None:
    """Return the reason not to trust a workspace that the user has not named, or None.

    Another user who may write to the file could put names, settings and labels into it. The target
    of a symbolic link is checked.
    """
    for checked_path in (path, path.parent):
        try:
            status = checked_path.stat()
        except OSError:
            continue
        if status.st_uid != os.geteuid():
            return f"{checked_path} belongs to another user"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others can write to {checked_path}"
    return None


def keep_private(path: Path) -> None:
    """Remove the rights of other users on a workspace, its journals and its folder ``.mast-tui``.

    A file or folder that other users may write to is shared on purpose and stays unchanged.
    """
    paths = [*workspace_files(path)]
    if path.parent.name == FOLDER:
        paths.append(path.parent)
    for private_path in paths:
        with suppress(OSError):
            status = private_path.stat()
            others_rights = status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if status.st_uid == os.geteuid() and others_rights and not is_shared:
                private_path.chmod(stat.S_IMODE(status.st_mode) & stat.S_IRWXU)
