"""Where workspaces lie, and the name to suggest to whoever works in one."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path
from typing import Final

from mast_tui.labels import checked_person
from mast_tui.workspace.opening import FOLDER

FILE: Final = "workspace.db"


def default_workspace_path(cwd: Path) -> Path:
    """``.mast-tui/workspace.db`` in the nearest folder from ``cwd`` upwards, else in ``cwd``.

    The file need not exist.
    """
    for folder in (cwd, *cwd.absolute().parents):
        path = folder / FOLDER / FILE
        if path.is_file():
            return path
    return cwd / FOLDER / FILE


def is_url(place: Path | str) -> bool:
    """Whether a workspace is on a server."""
    return "://" in str(place)


def find_workspace(place: str | None) -> Path:
    """The workspace that a command names, or the nearest one from the working folder."""
    return default_workspace_path(Path.cwd()) if place is None else Path(place).expanduser()


def samples_workspace_path() -> Path:
    """The workspace of the sample traces, in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("mast-tui", appauthor=False) / "samples.db"


def suggested_name(config_name: str | None) -> str:
    """The name to fill in where nobody is known: as configured, git's user.name, or the login.

    Empty where none of them can be an annotator's name.
    """
    for name in (config_name, _git_name(), _login()):
        if name is not None and (checked := _person(name)):
            return checked
    return ""


def login_setting() -> str:
    """Name the setting that holds who works in a workspace under this login."""
    return f"person:{_login() or ''}"


def _person(name: str) -> str:
    try:
        return checked_person(name)
    except ValueError:
        return ""


def _git_name() -> str | None:
    try:
        done = subprocess.run(
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
    return done.stdout if done.returncode == 0 else None


def _login() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None
