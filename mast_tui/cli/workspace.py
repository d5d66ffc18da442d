"""The command ``workspace``: what can be done with all that is kept at once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import open_on_server, open_workspace, print_json, print_line
from mast_tui.counts import counted
from mast_tui.workspace import Workspace, is_url

WHOLE: Final = "it is about the whole workspace, whoever asks"
"""Why these commands take no option about who sees what."""

_NAMED: Final = "the workspaces are named without an option"


@click.group()
def workspace_command() -> None:
    """Copy and check the workspace, or make one on a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceBackupRequest:
    """The options of ``mast-tui workspace backup``."""

    output: Path = options.argument(type=click.Path(path_type=Path), metavar="OUT")
    common: CommonOptions = options.common(
        annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE
    )
    as_json: bool = options.as_json()


@workspace_command.command("backup")
@options.takes(WorkspaceBackupRequest)
def backup_command(request: WorkspaceBackupRequest) -> None:
    """Copy the workspace into one new file, OUT, whole and checked.

    Apps and commands that have it open go on; what they save meanwhile is in the copy or not. The
    copy is a workspace like any other: --workspace OUT opens it.
    """
    _tell_copied(
        str(request.output),
        _copied(open_workspace(request.common), request.output),
        request.as_json,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCopyRequest:
    """The options of ``mast-tui workspace copy``."""

    source: str = options.argument(metavar="FROM")
    target: str = options.argument(metavar="TO")
    common: CommonOptions = options.common(
        workspace=_NAMED, annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE
    )
    as_json: bool = options.as_json()


@workspace_command.command("copy")
@options.takes(WorkspaceCopyRequest)
def copy_command(request: WorkspaceCopyRequest) -> None:
    """Copy a workspace between a file and a server, or from one to another, with all it holds.

    TO is a new file, or postgresql://USER@HOST/DATABASE with no workspace yet or an empty one.
    FROM stays as it is.
    """
    original = open_workspace(CommonOptions(request.source))
    if not is_url(request.target):
        counts = _copied(original, Path(request.target))
    else:
        copy, _ = open_on_server(request.target, Workspace.create_on_server)
        with closing(copy):
            original.copy_into(copy)
            counts = _counts(copy)
    _tell_copied(request.target, counts, request.as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCreateRequest:
    """The options of ``mast-tui workspace create``."""

    url: str = options.argument(metavar="URL")
    common: CommonOptions = options.common(
        workspace=_NAMED, annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE
    )


@workspace_command.command("create")
@options.takes(WorkspaceCreateRequest)
def create_command(request: WorkspaceCreateRequest) -> None:
    """Make an empty workspace on a PostgreSQL server: postgresql://USER@HOST/DATABASE.

    The database is made too where the server has none of that name and lets you.
    """
    if not is_url(request.url):
        raise click.UsageError(
            f"{request.url}: a workspace in a file is made by the first label; a server is named "
            "as postgresql://USER@HOST/DATABASE"
        )
    workspace, _ = open_on_server(request.url, Workspace.create_on_server)
    workspace.close()
    print_line(f"{request.url}: there is a workspace now; open it with --workspace {request.url}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCheckRequest:
    """The options of ``mast-tui workspace check``."""

    mend: bool = options.option(
        "--mend", is_flag=True, help="Make what differs anew from the events."
    )
    common: CommonOptions = options.common(
        annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE
    )
    as_json: bool = options.as_json()


@workspace_command.command("check")
@options.takes(WorkspaceCheckRequest)
def check_command(request: WorkspaceCheckRequest) -> None:
    """Check that the workspace is whole: its file, everybody's history, and what follows from it.

    Exit code 1 where something is wrong.
    """
    place = open_workspace(request.common)
    place.check()
    differing, damaged = place.check_rows()
    edited = place.edited_histories()
    if request.mend and differing:
        place.rebuild({one.annotator for one in differing})
    counts = _counts(place)
    if request.as_json:
        print_json(
            {
                **counts,
                "differences": [one._asdict() for one in differing],
                "edited": [{"annotator": one.annotator, "seq": one.seq} for one in edited],
                "damaged": [row._asdict() for row in damaged],
                "mended": request.mend and bool(differing),
            }
        )
    else:
        print_line(f"{place.name}: {_told(counts)}")
        for one in differing:
            print_line(
                f"{one.table} of {one.annotator}: {counted(one.rows, 'row')} did not follow from "
                f"the events{'; made anew' if request.mend else ''}"
            )
        for event in edited:
            print_line(f"the history of {event.annotator} was edited, from event {event.seq} on")
        for row in damaged:
            print_line(f"damaged in {row.table}, and passed over: {row.name}: {row.problem}")
        if not differing and not edited and not damaged:
            click.echo("All of it is as it was recorded.")
    if edited or damaged or (differing and not request.mend):
        raise click.exceptions.Exit(1)


def _copied(source: Workspace, output: Path) -> dict[str, int]:
    source.copy_to(output)
    with closing(Workspace.open(output, create=False)) as copy:
        copy.check()
        return _counts(copy)


def _counts(workspace: Workspace) -> dict[str, int]:
    return {"traces": len(workspace.traces()), "events": workspace.event_count()}


def _told(counts: dict[str, int]) -> str:
    return f"{counted(counts['traces'], 'trace')}, {counted(counts['events'], 'event')}"


def _tell_copied(output: str, counts: dict[str, int], as_json: bool) -> None:
    if as_json:
        print_json({"output": output, **counts})
    else:
        print_line(f"{output}: {_told(counts)}")
