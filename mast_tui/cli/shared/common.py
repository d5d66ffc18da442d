"""The parts that commands share: opening the workspace and the taxonomy, and printing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.columns import Row, TableColumn, table_lines
from mast_tui.errors import PasswordNeeded
from mast_tui.output_files import is_stdout
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from mast_tui.taxonomy.model import Taxonomy, differences

if TYPE_CHECKING:
    from mast_tui.exchange.undo_import import Undone
    from mast_tui.workspace import Workspace

MAX_CELL_WIDTH: Final = 160
"""The most characters of a cell that a table shows."""

_MAX_LOCATIONS: Final = 3
"""The number of locations that are listed of a problem that occurs many times."""

_ANNOUNCED: Final = "mast_tui.cli.announced_workspace"
"""The key under which a command's context notes that it has reported its workspace."""


def open_workspace(
    common: CommonOptions, *, create: bool = False, announce: bool = True
) -> Workspace:
    """Open the workspace of ``--workspace``, or the nearest one, until the command ends.

    Args:
        common: The common options, which may name the workspace.
        create: Create the workspace if it is missing; otherwise that is an error.
        announce: Report on stderr a workspace that was found in a parent folder.

    Raises:
        click.ClickException: The workspace is missing, or another user may have prepared it.
        WorkspaceError: The workspace cannot be opened.
    """
    # Commands that look at no labels do without SQLAlchemy.
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
    if location is None and announce:
        _announce_parent(path)
    return workspace


def _samples_hint(location: str | None, samples: Path) -> str:
    """Return a hint on the workspace of the sample traces.

    The hint is empty if the user has named a workspace, or has no labels of the sample traces.

    Args:
        location: The workspace that the user has named; None for none.
        samples: The workspace of the sample traces, which may not exist.
    """
    if location is not None or not samples.exists():
        return ""
    option = f"--workspace {shlex.quote(str(samples))}"
    return f"; the labels of the sample traces are in {samples}: {option}"


def _announce_parent(path: Path) -> None:
    """Report once per command if the workspace was found in a parent folder."""
    # A workspace is the file .mast-tui/NAME of its folder.
    if path.parent.parent == Path.cwd():
        return
    context = click.get_current_context(silent=True)
    meta: dict[str, Any] = {} if context is None else context.meta
    if _ANNOUNCED not in meta:
        meta[_ANNOUNCED] = True
        say(f"workspace: {os.path.relpath(path)} (found in a parent folder)")


def open_on_server(url: str, open_url: Callable[..., Workspace]) -> tuple[Workspace, str | None]:
    """Open a workspace on a server, and ask for the password if the server needs one.

    Args:
        url: The workspace's URL.
        open_url: The function that opens or creates the workspace from a URL and a ``password``.

    Returns:
        The workspace, and the password that the user typed; None if none was needed.

    Raises:
        WorkspaceError: The workspace cannot be opened, or needs a password without a terminal.
    """
    try:
        return open_url(url), None
    except PasswordNeeded:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
    password = click.prompt("Password", hide_input=True, err=True)
    return open_url(url, password=password), password


def _close_at_the_end(workspace: Workspace) -> Workspace:
    """Return the workspace, which is closed when the running command ends."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(workspace.close)
    return workspace


def open_with_taxonomy(
    common: CommonOptions, *, create: bool = False
) -> tuple[Workspace, Taxonomy]:
    """Open the workspace as ``open_workspace`` does, and return the taxonomy of its labels too.

    Args:
        common: The common options of the command.
        create: Create the workspace if it is missing.

    Raises:
        click.ClickException: As ``open_workspace`` and ``workspace_taxonomy``.
    """
    workspace = open_workspace(common, create=create)
    return workspace, workspace_taxonomy(workspace, common.taxonomy)


def load_taxonomy_or_mast(path: Path | None) -> Taxonomy:
    """Load the taxonomy of ``--taxonomy FILE``; MAST if the option is not given."""
    return load_mast() if path is None else load_taxonomy(path)


def workspace_taxonomy(workspace: Workspace, requested: Path | None) -> Taxonomy:
    """Return the taxonomy under which the labels of a workspace are read.

    Without ``requested`` this is MAST if it has labels, or if no taxonomy has. Otherwise it is the
    only taxonomy that has labels and was not migrated to another taxonomy.

    Args:
        workspace: The workspace.
        requested: A taxonomy file, or the name ``id@version`` of a taxonomy in the workspace.

    Raises:
        click.ClickException: Several taxonomies have labels, or the file has other modes than the
            taxonomy of the same name in the workspace.
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
    """Return the taxonomy of ``--taxonomy FILE``; else MAST as it is worded in the workspace.

    Args:
        workspace: The workspace.
        requested: The taxonomy file, if the option was given.
    """
    loaded = load_taxonomy_or_mast(requested)
    return loaded if requested is not None else workspace.as_worded(loaded)


def print_json(document: object) -> None:
    """Print one JSON document on stdout.

    Everything outside ASCII is escaped, so that no control character from a trace reaches the
    terminal and any output encoding works.

    Raises:
        ValueError: The document contains NaN or an infinity.
    """
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def summary_of(output: Path) -> AbstractContextManager[object]:
    """Return a context in which text for stdout goes to stderr if the output itself is stdout."""
    return redirect_stdout(sys.stderr) if is_stdout(output) else nullcontext()


def say(message: str) -> None:
    """Print one line on stderr: progress, a warning, or another message beside the output."""
    sys.stderr.write(one_line(message) + "\n")


def problem_lines(
    problems: Iterable[tuple[str, str, str]],
    *,
    located: Callable[[str, str], str] = "{}: {}".format,
) -> list[str]:
    """Return a line for each problem; equal problems of a file share one line.

    Args:
        problems: The file, the location in it and the reason of each problem.
        located: The function that joins a file and a location in it.
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
    """Print the result of undoing an import.

    Args:
        result: The result.
        values: The first fields of the JSON document.
        command: The name of the command, with which its messages begin.
        operation: The operation to undo, such as "the import of labels.csv".
        success: The message when it was undone.
        as_json: Print one JSON document.

    Returns:
        The exit code: 1 if later work depends on the import, so that it stays.
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
    """Print one line on stdout, with control characters made visible."""
    click.echo(one_line(text))


def print_table(columns: Sequence[TableColumn[Row]], rows: Iterable[Row]) -> None:
    """Print the headings and the rows of a table on stdout.

    Long cells are cut, so that one of them does not widen all rows. On a terminal the table fits
    its width.

    Args:
        columns: The columns.
        rows: The rows; they are printed in batches as they arrive, and columns only grow wider.
    """
    line_cells = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in table_lines(columns, rows, lambda text: one_line(text, MAX_CELL_WIDTH), line_cells):
        click.echo(line)
