"""The opening of the workspace and its taxonomy, and the printing, for all commands."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.columns import Row, TableColumn, table_lines, wrapped_lines
from mast_tui.errors import PasswordNeeded
from mast_tui.output_files import is_stdout
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from mast_tui.taxonomy.model import Taxonomy, differences

if TYPE_CHECKING:
    from mast_tui.exchange.undo_import import Undone
    from mast_tui.workspace import Workspace

MAX_CELL_WIDTH: Final = 160
"""The most characters in a cell of a printed table."""

_MAX_LOCATIONS: Final = 3
"""The most listed locations of a repeated problem."""

_ANNOUNCED: Final = "mast_tui.cli.announced_workspace"
"""The key in the context of a command that has reported its workspace."""


def open_workspace(
    common: CommonOptions, *, create: bool = False, announce: bool = True
) -> Workspace:
    """Open the workspace of ``--workspace``, or the nearest one, until the command ends.

    Args:
        common: The common options.
        create: Create a missing workspace.
        announce: Report a workspace in a parent folder on stderr.

    Raises:
        click.ClickException: The workspace is missing, or another user may have prepared it.
        WorkspaceError: The workspace cannot be opened.
    """
    # SQLAlchemy is slow to import, and not every command needs it.
    from mast_tui.workspace import (
        Workspace,
        find_workspace,
        is_url,
        samples_workspace_path,
        why_not_trusted,
    )

    location = common.workspace
    if location is not None and is_url(location):
        return _close_at_the_end(open_on_server(location, Workspace.open)[0])
    path = find_workspace(location)
    if not create and not path.exists():
        raise click.ClickException(
            f"{path}: there is no workspace; label or import something first, or give "
            f"--workspace PATH{_samples_hint(location, samples_workspace_path())}"
        )
    distrust = why_not_trusted(path) if location is None else None
    if distrust is not None:
        raise click.ClickException(
            f"{path}: {distrust}, so another user may have prepared it; give --workspace PATH "
            "if you trust its content"
        )
    workspace = _close_at_the_end(Workspace.open(path, create=create))
    if location is None and announce and is_in_parent_folder(path):
        _announce_parent(path)
    return workspace


def is_in_parent_folder(path: Path) -> bool:
    """Check whether the workspace of a command belongs to a parent of the working folder.

    Args:
        path: The workspace, which is the file ``.mast-tui/NAME`` of its folder.
    """
    return path.parent.parent != Path.cwd()


def _samples_hint(location: str | None, samples: Path) -> str:
    """Return a hint on the workspace of the sample traces, if it may be the wanted one.

    ``location`` is the workspace that the user has named.
    """
    if location is not None or not samples.exists():
        return ""
    option = f"--workspace {shlex.quote(str(samples))}"
    return f"; the labels of the sample traces are in {samples}: {option}"


def _announce_parent(path: Path) -> None:
    """Report a workspace in a parent folder, once per command."""
    context = click.get_current_context(silent=True)
    meta: dict[str, Any] = {} if context is None else context.meta
    if _ANNOUNCED not in meta:
        meta[_ANNOUNCED] = True
        say(f"workspace: {os.path.relpath(path)} (found in a parent folder)")


def open_on_server(url: str, open_url: Callable[..., Workspace]) -> tuple[Workspace, str | None]:
    """Open a workspace on a server, and ask for its password if needed.

    Args:
        url: The workspace's URL.
        open_url: A function that opens or creates a workspace, with the arguments URL and
            ``password``.

    Returns:
        The workspace, and the typed password; None if none was typed.

    Raises:
        WorkspaceError: The workspace cannot be opened, or there is no terminal to ask for the
            password.
    """
    try:
        return open_url(url), None
    except PasswordNeeded:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
    password = click.prompt("Password", hide_input=True, err=True)
    return open_url(url, password=password), password


def _close_at_the_end(workspace: Workspace) -> Workspace:
    """Close the workspace when the running command ends, and return it."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(workspace.close)
    return workspace


def open_with_taxonomy(
    common: CommonOptions, *, create: bool = False
) -> tuple[Workspace, Taxonomy]:
    """Open the workspace, and return it with the taxonomy of its labels.

    Args:
        common: The common options of the command.
        create: Create a missing workspace.

    Raises:
        click.ClickException: As ``open_workspace`` and ``workspace_taxonomy``.
    """
    workspace = open_workspace(common, create=create)
    return workspace, workspace_taxonomy(workspace, common.taxonomy)


def load_taxonomy_or_mast(path: Path | None) -> Taxonomy:
    """Load a taxonomy file; MAST for None."""
    return load_mast() if path is None else load_taxonomy(path)


def workspace_taxonomy(workspace: Workspace, requested: Path | None) -> Taxonomy:
    """Return the requested taxonomy, or choose the one of the workspace's labels.

    MAST is preferred. Otherwise only one taxonomy may have labels.

    Args:
        workspace: The workspace.
        requested: A taxonomy file, or ``id@version`` of a taxonomy in the workspace.

    Raises:
        click.ClickException: The choice is not unique, or the workspace has a taxonomy of this name
            with other modes.
    """
    stored_by_ref = {taxonomy.ref: taxonomy for taxonomy in workspace.taxonomies()}
    if requested is None:
        mast = load_taxonomy_or_mast(None)
        refs_in_use = workspace.current_taxonomies()
        if not refs_in_use or mast.ref in refs_in_use:
            return stored_by_ref.get(mast.ref, mast)
        if len(refs_in_use) > 1:
            raise click.ClickException(
                f"labels are kept under {', '.join(refs_in_use)}; give one with --taxonomy"
            )
        return workspace.taxonomy(refs_in_use[0])

    if str(requested) in stored_by_ref and not requested.exists():
        return stored_by_ref[str(requested)]
    loaded_taxonomy = load_taxonomy_or_mast(requested)
    stored_taxonomy = stored_by_ref.get(loaded_taxonomy.ref)
    changes = () if stored_taxonomy is None else differences(stored_taxonomy, loaded_taxonomy)
    if changes:
        raise click.ClickException(
            f"{requested}: {loaded_taxonomy.ref} is in this workspace with other modes "
            f"({changes[0]}); raise the version"
        )
    return loaded_taxonomy


def working_taxonomy(workspace: Workspace, requested: Path | None) -> Taxonomy:
    """Return the taxonomy of a file; MAST with the workspace's wording without one.

    Args:
        workspace: The workspace.
        requested: The taxonomy file; None for MAST.
    """
    loaded = load_taxonomy_or_mast(requested)
    return loaded if requested is not None else workspace.as_worded(loaded)


def print_json(document: object) -> None:
    """Print one JSON document on stdout.

    It is ASCII, so that control characters are escaped and every encoding of stdout works.

    Raises:
        ValueError: The document contains NaN or an infinity.
    """
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def summary_of(output: Path) -> AbstractContextManager[object]:
    """Return a context that redirects stdout to stderr if the output is stdout."""
    return redirect_stdout(sys.stderr) if is_stdout(output) else nullcontext()


def say(message: str) -> None:
    """Print one line on stderr. On a terminal, a long line is broken at spaces."""
    cells = _line_cells(sys.stderr)
    sys.stderr.write("\n".join(wrapped_lines(one_line(message), cells)) + "\n")


def problem_lines(
    problems: Iterable[tuple[str, str, str]],
    *,
    located: Callable[[str, str], str] = "{}: {}".format,
) -> list[str]:
    """Return a line for each problem.

    Problems of a file with the same reason share one line.

    Args:
        problems: The file, the location in it and the reason of each problem.
        located: Joins a file and a location.
    """
    locations_by_reason: dict[tuple[str, str], list[str]] = {}
    for file, location, reason in problems:
        locations_by_reason.setdefault((file, reason), []).append(location)
    lines = []
    for (file, reason), locations in locations_by_reason.items():
        if len(locations) == 1:
            lines.append(f"{located(file, locations[0])}: {reason}")
            continue
        locations_text = ", ".join(locations[:_MAX_LOCATIONS])
        unlisted_count = len(locations) - _MAX_LOCATIONS
        unlisted_text = f" and {unlisted_count} more" if unlisted_count > 0 else ""
        lines.append(f"{file}: {reason} ({len(locations)} times: {locations_text}{unlisted_text})")
    return lines


def print_undo_result(
    result: Undone,
    values: Mapping[str, object],
    *,
    command: str,
    operation: str,
    success: str,
    as_json: bool,
) -> int:
    """Print the result of undoing an import, and return the exit code.

    The import stays if later work depends on it.

    Args:
        result: The result.
        values: The first fields of the JSON document.
        command: The name of the command, for its messages.
        operation: The operation to undo, as words.
        success: The message of a success.
        as_json: Print one JSON document.

    Returns:
        The exit code: 0 if the import was undone, else 1.
    """
    if result.built_on:
        for event in result.built_on:
            say(f"{command}: {event}")
        say(f"{command}: {operation} stays, as later work depends on it; undo that first")
    if as_json:
        print_json(
            {
                **values,
                "undone": not result.built_on,
                "events": result.events,
                "built_on": list(result.built_on),
            }
        )
    elif not result.built_on:
        print_line(success)
    return 1 if result.built_on else 0


def print_line(text: str) -> None:
    """Print one line on stdout, with visible control characters.

    On a terminal, a long line is broken at spaces.
    """
    click.echo("\n".join(wrapped_lines(one_line(text), _line_cells(sys.stdout))))


def _line_cells(stream: TextIO) -> int | None:
    """Return the width of the terminal, or None if a stream is no terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def print_table(columns: Sequence[TableColumn[Row]], rows: Iterable[Row]) -> None:
    """Print a table on stdout, at the width of the terminal.

    Long cells are cut. Rows are printed in batches as they arrive, and the columns grow with them.

    Args:
        columns: The columns.
        rows: The rows.
    """
    display = partial(one_line, limit=MAX_CELL_WIDTH)
    for line in table_lines(columns, rows, display, _line_cells(sys.stdout)):
        click.echo(line)
