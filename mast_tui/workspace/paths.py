"""Paths of workspaces and of their traces, and the name to suggest to an annotator."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path
from typing import Final

from mast_tui.labels import checked_person
from mast_tui.traces.io.remote import trace_path
from mast_tui.workspace.opening import FOLDER

FILE: Final = "workspace.db"

BEFORE_FOLDERS: Final = "./"
"""The beginning of a relative path that a version before schema 9 stored; see ``migration``."""


def default_workspace_path(cwd: Path) -> Path:
    """Return ``.mast-tui/workspace.db`` in the nearest folder from ``cwd`` upwards that has one.

    If no folder has one, return that path in ``cwd``, without a file.
    """
    for folder in (cwd, *cwd.absolute().parents):
        path = folder / FOLDER / FILE
        if path.is_file():
            return path
    return cwd / FOLDER / FILE


def is_url(location: Path | str) -> bool:
    """Check whether a workspace is on a server."""
    return "://" in str(location)


def find_workspace(location: str | None) -> Path:
    """Return the workspace that a command names, or the nearest one from the working folder."""
    return default_workspace_path(Path.cwd()) if location is None else Path(location).expanduser()


def traces_folder(workspace: Path) -> Path:
    """Return the folder to which a workspace's paths of traces are relative.

    This is the folder that holds the workspace's own folder ``.mast-tui``, or else its file.
    """
    folder = workspace.absolute().parent
    return folder.parent if folder.name == FOLDER else folder


def stored_trace_path(path: Path, folder: Path | None) -> str:
    """Return the text by which a workspace stores the path of a trace.

    Inside the folder it is the relative path, so that folder and workspace can be moved together;
    elsewhere it is the absolute path. A relative path without a file in the current directory is
    stored unchanged.

    Args:
        path: The file as the program has opened it, or a URL.
        folder: The workspace's ``traces_folder``; None for a server, and in memory.
    """
    outer, chained, local = _parts(str(path))
    if not chained and is_url(local):
        return local
    file = Path(local)
    if not file.is_absolute() and not file.exists():
        return str(path)
    file = file.absolute()
    if ".." in file.parts:
        file = file.resolve()
    return f"{outer}{chained}{file if folder is None else _relative_path(folder, file)}"


def found_trace_path(stored: str, folder: Path | None) -> Path:
    """Return the path of a trace from its stored text.

    A text that begins with ``BEFORE_FOLDERS`` comes from a version that did not store the folder:
    the file is looked for in the workspace's folder, then in the current directory.

    Args:
        stored: The text, as ``stored_trace_path`` returned it.
        folder: The workspace's ``traces_folder``; None for a server, and in memory.
    """
    outer, chained, local = _parts(stored)
    file = Path(local)
    if folder is None or file.is_absolute() or (not chained and is_url(local)):
        return trace_path(stored)
    candidate = folder / file
    if stored.startswith(BEFORE_FOLDERS) and not candidate.exists() and file.exists():
        candidate = file.absolute()
    return trace_path(f"{outer}{chained}{candidate}")


def _parts(text: str) -> tuple[str, str, str]:
    """Split off the local file at the end of a chained URL, as in ``zip://run.json::runs.zip``.

    The first two parts are empty for any other text.
    """
    outer, chained, local = text.rpartition("::")
    if not chained or not is_url(outer) or is_url(local):
        return "", "", text
    return outer, chained, local


def _relative_path(folder: Path, file: Path) -> Path:
    """Return the path of a file relative to a folder, unchanged if the file is elsewhere."""
    for base, target in ((folder, file), (folder.resolve(), file.resolve())):
        if target.is_relative_to(base):
            return target.relative_to(base)
    return file


def samples_workspace_path() -> Path:
    """Return the workspace of the sample traces, in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("mast-tui", appauthor=False) / "samples.db"


def suggested_name(config_name: str | None) -> str:
    """Return a name to suggest to a new annotator, empty if there is none.

    It is the configured name, git's user.name or the login, whichever first is a valid name.
    """
    for name in (config_name, _git_name(), _login()):
        if name is not None and (checked := _person(name)):
            return checked
    return ""


def login_setting() -> str:
    """Return the key of the setting with the annotator's name for this login."""
    return f"person:{_login() or ''}"


def _person(name: str) -> str:
    """Return a name in its valid form, empty if it is invalid."""
    try:
        return checked_person(name)
    except ValueError:
        return ""


def _git_name() -> str | None:
    """Return git's user.name; None if git is missing or has no name."""
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


def _login() -> str | None:
    """Return the user's login; None if the system does not know it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None
