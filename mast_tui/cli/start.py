"""The start of the app from the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.cli.command_line import COMMANDS, CommonOptions
from mast_tui.cli.shared.terminal import NO_TERMINAL, has_terminal
from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.io.named_paths import paths_of
from mast_tui.traces.io.url_secrets import ADDRESSES
from mast_tui.traces.library import samples_folder
from mast_tui.ui.options import AppOptions

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace

WRONG_USAGE: Final = 2
"""The exit code for wrong usage of the command line."""


def start(paths: Sequence[str], common: CommonOptions) -> int:
    """Open the app on paths, or on the sample traces if there are none.

    Args:
        paths: The paths as the user typed them.
        common: The common options.

    Returns:
        The exit code. A missing path or terminal is reported on stderr before a screen opens.
    """
    try:
        checked_paths = _checked_paths(paths, common)
        if not has_terminal():
            return complain("mast-tui", NO_TERMINAL, WRONG_USAGE)
        options = _app_options(checked_paths, common)
    except MastError as error:
        return complain("mast-tui", str(error))
    except OSError as error:
        return complain("mast-tui", words_of(error))
    # Commands and error messages must not wait for the import of Textual.
    from mast_tui.ui.app import run_app

    return run_app(options)


def _checked_paths(typed: Sequence[str], common: CommonOptions) -> tuple[Path, ...]:
    """Return the paths to open, all of which exist; none if none were typed.

    Raises:
        MastError: A path or the taxonomy file does not exist.
    """
    paths = tuple(paths_of(*typed))
    for path in paths:
        if not path.exists():
            raise MastError(f"{path}: {_missing_path_text(str(path))}")
    if common.taxonomy is not None and not common.taxonomy.is_file():
        raise MastError(f"{common.taxonomy}: no such taxonomy file; --taxonomy needs a TOML file")
    return paths


def _app_options(paths: tuple[Path, ...], common: CommonOptions) -> AppOptions:
    """Return the options of the app; ask for the password of a workspace on a server first."""
    password = None
    if common.workspace is not None and "://" in common.workspace:
        # Start-up: a workspace in a file needs no password.
        asking = import_module("mast_tui.cli.shared.asking")
        password = asking.typed_password(common.workspace)
    return AppOptions(
        paths=paths or (samples_folder(),),
        samples=not paths,
        **common._asdict(),
        fill_new_workspace=None if paths else _fill_samples,
        password=password,
    )


def _fill_samples(workspace: Workspace) -> None:
    # Start-up: only the sample traces need it, once the workspace is open.
    from mast_tui.exchange.importers.sample_content import fill_samples_workspace

    fill_samples_workspace(workspace)


def _missing_path_text(path: str) -> str:
    """Return the error for a missing path, with the command that it resembles."""
    from difflib import get_close_matches

    matches = get_close_matches(path, COMMANDS, n=1)
    if matches:
        return f"no such file or folder, and no command; did you mean 'mast-tui {matches[0]}'?"
    return "no such file or folder; name a trace, a folder of traces or a command"


def words_of(error: OSError) -> str:
    """Return the message of an error, after the name of its file if it has one."""
    if error.strerror:
        prefix = f"{error.filename}: " if error.filename else ""
        return f"{prefix}{error.strerror}"
    return str(error)


def complain(name: str, message: str, code: int = 1) -> int:
    """Report an error on stderr in one line.

    Args:
        name: The command.
        message: The message.
        code: The exit code.

    Returns:
        The exit code.
    """
    if sys.stderr is not None:  # it may have been closed before the start
        sys.stderr.write(f"{name}: {one_line(ADDRESSES.without_secrets(message))}\n")
    return code
