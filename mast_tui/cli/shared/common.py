"""What the commands share: common options, opening what they name, printing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.columns import Row, TableColumn, table_lines
from mast_tui.errors import PasswordNeeded
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from mast_tui.taxonomy.model import differences

if TYPE_CHECKING:
    from mast_tui.exchange.undo_import import Undone
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

WIDEST_CELL: Final = 160
"""So many characters of a cell are shown in a table."""

_PLACES_SHOWN: Final = 3
"""Of a problem that comes many times so many places are named."""

_ANNOUNCED: Final = "mast_tui.cli.announced_workspace"
"""The key under which a command's context notes that it has reported its workspace."""


def open_workspace(
    common: CommonOptions, *, create: bool = False, announce: bool = True
) -> Workspace:
    """Open the workspace that is named, or the nearest one.

    Args:
        common: The common options, which may name it.
        create: Create it if it is missing. Otherwise that is an error, as a command that only reads
            makes no files.
        announce: Report on stderr a workspace that was found in a parent folder.

    Raises:
        click.ClickException: It is missing, or somebody else may have prepared it.
        WorkspaceError: It cannot be opened.
    """
    # Commands that look at no labels do without SQLAlchemy.
    from mast_tui.workspace import Workspace, find_workspace, is_url, why_not_trusted

    place = common.workspace
    if place is not None and is_url(place):
        return _close_at_the_end(open_on_server(place, Workspace.open)[0])
    path = find_workspace(place)
    if not create and not path.exists():
        raise click.ClickException(
            f"{path}: there is no workspace; label or import something first, or name one "
            "with --workspace PATH"
        )
    doubts = why_not_trusted(path) if place is None else None
    if doubts is not None:
        raise click.ClickException(
            f"{path}: {doubts}, so somebody else may have prepared it; name it with --workspace "
            "PATH if you trust what is in it"
        )
    workspace = _close_at_the_end(Workspace.open(path, create=create))
    if place is None and announce:
        _announce_parent(path)
    return workspace


def _announce_parent(path: Path) -> None:
    """Report once per command that the workspace was found in a parent folder."""
    if path.parent.parent == Path.cwd():
        return
    context = click.get_current_context(silent=True)
    meta: dict[str, Any] = {} if context is None else context.meta
    if _ANNOUNCED not in meta:
        meta[_ANNOUNCED] = True
        say(f"workspace: {os.path.relpath(path)} (found in a parent folder)")


def open_on_server(url: str, opened: Callable[..., Workspace]) -> tuple[Workspace, str | None]:
    """Open a workspace on a server; where it wants a password and none is found, ask for it.

    Args:
        url: Where it is.
        opened: Opens or makes it, given the address and a ``password``.

    Returns:
        It, and the password that was typed.

    Raises:
        WorkspaceError: It cannot be opened, or wants a password and nobody can be asked.
    """
    try:
        return opened(url), None
    except PasswordNeeded:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
    password = click.prompt("Password", hide_input=True, err=True)
    return opened(url, password=password), password


def _close_at_the_end(workspace: Workspace) -> Workspace:
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(workspace.close)
    return workspace


def opened(common: CommonOptions, *, create: bool = False) -> tuple[Workspace, Taxonomy]:
    """Open the workspace, with the taxonomy under which it is read; as ``open_workspace``."""
    place = open_workspace(common, create=create)
    return place, kept_taxonomy(place, common.taxonomy)


def load_chosen_taxonomy(path: Path | None) -> Taxonomy:
    """The taxonomy of ``--taxonomy FILE``, or MAST."""
    return load_mast() if path is None else load_taxonomy(path)


def kept_taxonomy(workspace: Workspace, wanted: Path | None) -> Taxonomy:
    """The taxonomy under which a workspace is read.

    ``wanted`` is a file, or the name ``id@version`` of one that the workspace keeps. Without it
    this is MAST, or where nobody has labelled with MAST the only one that was labelled with and
    not carried over to another.
    """
    kept = {taxonomy.ref: taxonomy for taxonomy in workspace.taxonomies()}
    if wanted is not None and str(wanted) in kept and not wanted.exists():
        return kept[str(wanted)]
    chosen = load_chosen_taxonomy(wanted)
    if wanted is None:
        used = workspace.current_taxonomies()
        if used and chosen.ref not in used:
            if len(used) > 1:
                raise click.ClickException(
                    f"labels are kept under {', '.join(used)}; name one with --taxonomy"
                )
            return workspace.taxonomy(used[0])
        return kept.get(chosen.ref, chosen)
    told = differences(kept[chosen.ref], chosen) if chosen.ref in kept else ()
    if told:
        raise click.ClickException(
            f"{wanted}: {chosen.ref} is in this workspace with other modes ({told[0]}); raise the "
            "version"
        )
    return chosen


def working_taxonomy(workspace: Workspace, wanted: Path | None) -> Taxonomy:
    """The taxonomy of ``--taxonomy FILE``, or MAST as it is worded in the workspace."""
    chosen = load_chosen_taxonomy(wanted)
    return chosen if wanted is not None else workspace.as_worded(chosen)


def print_json(document: object) -> None:
    """Print one JSON document on stdout.

    Everything outside ASCII is escaped, so that no foreign control character reaches a terminal
    and any output encoding will do. NaN and infinities raise ``ValueError``: no figure may be one.
    """
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def say(message: str) -> None:
    """One line on stderr: progress, warnings, what a command has to say beside its output."""
    sys.stderr.write(one_line(message) + "\n")


def problem_lines(
    problems: Iterable[tuple[str, str, str]],
    *,
    located: Callable[[str, str], str] = "{}: {}".format,
) -> list[str]:
    """Describe problems in a line each, equal ones of a file in one line with their number.

    Args:
        problems: The file, the place in it and the reason of each.
        located: Joins a file and a place in it.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for file, place, reason in problems:
        places.setdefault((file, reason), []).append(place)
    lines = []
    for (file, reason), own in places.items():
        if len(own) == 1:
            lines.append(f"{located(file, own[0])}: {reason}")
            continue
        shown = ", ".join(own[:_PLACES_SHOWN])
        left = len(own) - _PLACES_SHOWN
        more = f" and {left} more" if left > 0 else ""
        lines.append(f"{file}: {reason} ({len(own)} times: {shown}{more})")
    return lines


def print_undone(
    undone: Undone,
    values: Mapping[str, object],
    *,
    command: str,
    what: str,
    done: str,
    as_json: bool,
) -> int:
    """Tell what came of taking an import back; the exit code.

    Args:
        undone: What came of it.
        values: What JSON tells first.
        command: Who tells what stands in the way.
        what: What was to be taken back, in words.
        done: That it was, in words.
        as_json: Whether one JSON document is printed.
    """
    if undone.built_on:
        for told in undone.built_on:
            say(f"{command}: {told}")
        say(f"{command}: {what} stays, as something was built on it since; take that back first")
    if as_json:
        print_json(
            {
                **values,
                "undone": not undone.built_on,
                "events": undone.events,
                "built_on": list(undone.built_on),
            }
        )
    elif not undone.built_on:
        print_line(done)
    return 1 if undone.built_on else 0


def print_line(text: str) -> None:
    """One line on stdout, whatever the text holds."""
    click.echo(one_line(text))


def print_table(columns: Sequence[TableColumn[Row]], rows: Iterable[Row]) -> None:
    """Print the headings and the rows of a table on stdout.

    Cells are made fit for display and cut where they are very long: one of them must not widen
    all rows to its own size.

    Args:
        columns: The columns.
        rows: They are printed as they come, many at a time; columns only grow wider.
    """
    for line in table_lines(columns, rows, lambda text: one_line(text, WIDEST_CELL)):
        click.echo(line)
