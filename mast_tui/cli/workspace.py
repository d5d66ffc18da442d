"""``mast-tui workspace``: copy, create and check a whole workspace."""

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
from mast_tui.errors import WorkspaceError
from mast_tui.workspace import Workspace, is_url

WHOLE_REFUSAL: Final = "it concerns the whole workspace, and is the same for every user"
"""The reason of these commands to refuse options about visibility."""

_LOCATION_REFUSAL: Final = "the workspaces are given without an option"


@click.group()
def workspace_command() -> None:
    """Copy and check the workspace, or make one on a server.

    Example: mast-tui workspace backup before.db
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceBackupRequest:
    """The options of ``mast-tui workspace backup``."""

    output: Path = options.argument(type=click.Path(path_type=Path), metavar="OUT")
    common: CommonOptions = options.common(
        annotator=WHOLE_REFUSAL, taxonomy=WHOLE_REFUSAL, blind=WHOLE_REFUSAL, assisted=WHOLE_REFUSAL
    )
    as_json: bool = options.as_json()


@workspace_command.command("backup")
@options.takes(WorkspaceBackupRequest)
def backup_command(request: WorkspaceBackupRequest) -> None:
    """Copy the workspace into one new file, OUT, and check the copy.

    Apps and commands that use the workspace continue; changes that they save meanwhile may be
    missing in the copy. The copy is a normal workspace: --workspace OUT opens it.

    Example: mast-tui workspace backup before.db
    """
    _print_copy(
        str(request.output),
        _copy_to_file(open_workspace(request.common), request.output),
        request.as_json,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCopyRequest:
    """The options of ``mast-tui workspace copy``."""

    source: str = options.argument(metavar="FROM")
    target: str = options.argument(metavar="TO")
    common: CommonOptions = options.common(
        workspace=_LOCATION_REFUSAL,
        annotator=WHOLE_REFUSAL,
        taxonomy=WHOLE_REFUSAL,
        blind=WHOLE_REFUSAL,
        assisted=WHOLE_REFUSAL,
    )
    as_json: bool = options.as_json()


@workspace_command.command("copy")
@options.takes(WorkspaceCopyRequest)
def copy_command(request: WorkspaceCopyRequest) -> None:
    """Copy a whole workspace between files and servers.

    TO is a new file, or postgresql://USER@HOST/DATABASE without a workspace or with an empty one.
    FROM stays unchanged.

    Example: mast-tui workspace copy my.db postgresql://olga@server/labels
    """
    original = open_workspace(CommonOptions(request.source))
    if not is_url(request.target):
        counts = _copy_to_file(original, Path(request.target))
    else:
        copy, _ = open_on_server(request.target, Workspace.create_on_server)
        with closing(copy):
            original.copy_into(copy)
            counts = _workspace_counts(copy)
    _print_copy(request.target, counts, request.as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCreateRequest:
    """The options of ``mast-tui workspace create``."""

    url: str = options.argument(metavar="URL")
    common: CommonOptions = options.common(
        workspace=_LOCATION_REFUSAL,
        annotator=WHOLE_REFUSAL,
        taxonomy=WHOLE_REFUSAL,
        blind=WHOLE_REFUSAL,
        assisted=WHOLE_REFUSAL,
    )


@workspace_command.command("create")
@options.takes(WorkspaceCreateRequest)
def create_command(request: WorkspaceCreateRequest) -> None:
    """Create an empty workspace on a PostgreSQL server.

    URL is postgresql://USER@HOST/DATABASE. If the server has no such database, it is created too,
    if the server allows it.

    Example: mast-tui workspace create postgresql://olga@server/labels
    """
    if not is_url(request.url):
        raise click.UsageError(
            f"{request.url}: the first label creates a workspace in a file; for a server give "
            "postgresql://USER@HOST/DATABASE"
        )
    workspace, _ = open_on_server(request.url, Workspace.create_on_server)
    workspace.close()
    print_line(f"{request.url}: workspace created; open it with --workspace {request.url}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCheckRequest:
    """The options of ``mast-tui workspace check``."""

    mend: bool = options.option(
        "--mend", is_flag=True, help="Rebuild differing rows from the events."
    )
    common: CommonOptions = options.common(
        annotator=WHOLE_REFUSAL, taxonomy=WHOLE_REFUSAL, blind=WHOLE_REFUSAL, assisted=WHOLE_REFUSAL
    )
    as_json: bool = options.as_json()


@workspace_command.command("check")
@options.takes(WorkspaceCheckRequest)
def check_command(request: WorkspaceCheckRequest) -> None:
    """Check the workspace for damage.

    Checks its file, everyone's history, and the rows computed from it. Exit code 1 if something is
    wrong.

    Example: mast-tui workspace check
    """
    workspace = open_workspace(request.common)
    workspace.check()
    differing, damaged = workspace.check_rows()
    edited = workspace.edited_histories()
    if request.mend and differing:
        workspace.rebuild({difference.annotator for difference in differing})
    counts = _workspace_counts(workspace)
    if request.as_json:
        print_json(
            {
                **counts,
                "differences": [difference._asdict() for difference in differing],
                "edited": [{"annotator": event.annotator, "seq": event.seq} for event in edited],
                "damaged": [row._asdict() for row in damaged],
                "mended": request.mend and bool(differing),
            }
        )
    else:
        print_line(f"{workspace.name}: {_counts_text(counts)}")
        for difference in differing:
            print_line(
                f"{difference.table} of {difference.annotator}: "
                f"{counted(difference.rows, 'row')} differed from the events"
                f"{'; rebuilt' if request.mend else ''}"
            )
        for event in edited:
            print_line(f"the history of {event.annotator} was edited, from event {event.seq} on")
        for row in damaged:
            print_line(f"damaged in {row.table}: {row.name}: {row.problem}")
        if not differing and not edited and not damaged:
            click.echo("The workspace is intact.")
    if edited or damaged or (differing and not request.mend):
        raise click.exceptions.Exit(1)


def _copy_to_file(source: Workspace, output: Path) -> dict[str, int]:
    """Copy a workspace into a file, check the copy, and return its counts."""
    source.copy_to(output)
    try:
        with closing(Workspace.open(output, create=False)) as copy:
            copy.check()
            return _workspace_counts(copy)
    except WorkspaceError:
        source.check()  # names the original if the copy is damaged because of it
        raise


def _workspace_counts(workspace: Workspace) -> dict[str, int]:
    return {"traces": len(workspace.traces()), "events": workspace.event_count()}


def _counts_text(counts: dict[str, int]) -> str:
    return f"{counted(counts['traces'], 'trace')}, {counted(counts['events'], 'event')}"


def _print_copy(output: str, counts: dict[str, int], as_json: bool) -> None:
    if as_json:
        print_json({"output": output, **counts})
    else:
        print_line(f"{output}: {_counts_text(counts)}")
