"""The command ``workspace``: what can be done with all that is kept at once."""

from __future__ import annotations

from contextlib import closing
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


@workspace_command.command("backup")
@click.argument("output", type=click.Path(path_type=Path), metavar="OUT")
@options.common(annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE)
@options.as_json
def backup_command(output: Path, common: CommonOptions, as_json: bool) -> None:
    """Copy the workspace into one new file, OUT, whole and checked.

    Apps and commands that have it open go on; what they save meanwhile is in the copy or not. The
    copy is a workspace like any other: --workspace OUT opens it.
    """
    _tell_copied(str(output), _copied(open_workspace(common), output), as_json)


@workspace_command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@options.common(workspace=_NAMED, annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE)
@options.as_json
def copy_command(source: str, target: str, as_json: bool) -> None:
    """Copy a workspace between a file and a server, or from one to another, with all it holds.

    TO is a new file, or postgresql://USER@HOST/DATABASE with no workspace yet or an empty one.
    FROM stays as it is.
    """
    original = open_workspace(CommonOptions(source))
    if not is_url(target):
        counts = _copied(original, Path(target))
    else:
        copy, _ = open_on_server(target, Workspace.create_on_server)
        with closing(copy):
            original.copy_into(copy)
            counts = _counts(copy)
    _tell_copied(target, counts, as_json)


@workspace_command.command("create")
@click.argument("url", metavar="URL")
@options.common(workspace=_NAMED, annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE)
def create_command(url: str) -> None:
    """Make an empty workspace on a PostgreSQL server: postgresql://USER@HOST/DATABASE.

    The database is made too where the server has none of that name and lets you.
    """
    if not is_url(url):
        raise click.UsageError(
            f"{url}: a workspace in a file is made by the first label; a server is named as "
            "postgresql://USER@HOST/DATABASE"
        )
    workspace, _ = open_on_server(url, Workspace.create_on_server)
    workspace.close()
    print_line(f"{url}: there is a workspace now; open it with --workspace {url}")


@workspace_command.command("check")
@click.option("--mend", is_flag=True, help="Make what differs anew from the events.")
@options.common(annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE)
@options.as_json
def check_command(mend: bool, common: CommonOptions, as_json: bool) -> None:
    """Check that the workspace is whole: its file, everybody's history, and what follows from it.

    Exit code 1 where something is wrong.
    """
    place = open_workspace(common)
    place.check()
    differing, damaged = place.check_rows()
    edited = place.edited_histories()
    if mend and differing:
        place.rebuild({one.annotator for one in differing})
    counts = _counts(place)
    if as_json:
        print_json(
            {
                **counts,
                "differences": [one._asdict() for one in differing],
                "edited": [{"annotator": one.annotator, "seq": one.seq} for one in edited],
                "damaged": [row._asdict() for row in damaged],
                "mended": mend and bool(differing),
            }
        )
    else:
        print_line(f"{place.name}: {_told(counts)}")
        for one in differing:
            print_line(
                f"{one.table} of {one.annotator}: {counted(one.rows, 'row')} did not follow from "
                f"the events{'; made anew' if mend else ''}"
            )
        for event in edited:
            print_line(f"the history of {event.annotator} was edited, from event {event.seq} on")
        for row in damaged:
            print_line(f"damaged in {row.table}, and passed over: {row.name}: {row.problem}")
        if not differing and not edited and not damaged:
            click.echo("All of it is as it was recorded.")
    if edited or damaged or (differing and not mend):
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
