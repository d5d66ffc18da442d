"""Starting the app."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from mast_tui.cli.command_line import COMMANDS, CommonOptions
from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.io.named_paths import paths_of
from mast_tui.traces.samples import samples_folder
from mast_tui.ui.options import AppOptions

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace


def start(paths: Sequence[str], common: CommonOptions) -> int:
    """Open the app on ``paths``, or on the sample traces where there are none.

    Args:
        paths: As they were typed.
        common: How it is opened.

    Returns:
        The exit code; a path that does not exist is told on stderr before any screen opens.
    """
    try:
        options = _app_options(paths, common)
    except MastError as error:
        return complain("mast-tui", str(error))
    except OSError as error:
        return complain("mast-tui", words_of(error))
    # Commands, and whoever has mistyped a path, do without Textual.
    from mast_tui.ui.app import run_app

    return run_app(options)


def _app_options(paths: Sequence[str], common: CommonOptions) -> AppOptions:
    named = tuple(path for typed in paths for path in paths_of(typed))
    for path in named:
        if not path.exists():
            raise MastError(f"{path}: {_no_such(str(path))}")
    if common.taxonomy is not None and not common.taxonomy.is_file():
        raise MastError(f"{common.taxonomy}: no such taxonomy file; --taxonomy wants a TOML file")
    password = None
    if common.workspace is not None and "://" in common.workspace:
        # Who works with a file waits for none of this.
        asking = import_module("mast_tui.cli.shared.asking")
        password = asking.typed_password(common.workspace)
    return AppOptions(
        paths=named or (samples_folder(),),
        samples=not paths,
        **common._asdict(),
        fill_new_workspace=None if paths else _fill_samples,
        password=password,
    )


def _fill_samples(workspace: Workspace) -> None:
    # Start-up: only who has no traces of their own needs it, once the workspace is open.
    from mast_tui.exchange.importers.sample_content import fill_samples_workspace

    fill_samples_workspace(workspace)


def _no_such(path: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(path, COMMANDS, n=1)
    if near:
        return f"no such file or folder, and no command; did you mean 'mast-tui {near[0]}'?"
    return "no such file or folder; name a trace, a folder of traces or a command"


def words_of(error: OSError) -> str:
    """What went wrong, after the name of the file if there is one."""
    if error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}"
    return str(error)


def complain(name: str, message: str, code: int = 1) -> int:
    """Say on stderr what went wrong, in one line.

    Args:
        name: The command.
        message: What went wrong.
        code: The exit code.

    Returns:
        The exit code.
    """
    sys.stderr.write(f"{name}: {one_line(message)}\n")
    return code
