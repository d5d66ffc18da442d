"""The command ``workspace``: what can be done with the file that labels are kept in."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from mast_tui.cli.shared.common import common_options, json_option, open_workspace, print_json
from mast_tui.safe_text import one_line
from mast_tui.workspace import Workspace

WHOLE: Final = "a copy holds the whole workspace, whoever makes it"
"""Why a backup takes no option about who sees what."""


@click.group()
def workspace_command() -> None:
    """Copy the workspace, also while it is open elsewhere."""


@workspace_command.command("backup")
@click.argument("output", type=click.Path(path_type=Path), metavar="OUT")
@common_options(annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=WHOLE)
@json_option
def backup_command(output: Path, workspace: str | None, as_json: bool) -> None:
    """Copy the workspace into one new file, OUT, whole and checked.

    Apps and commands that have it open go on; what they save meanwhile is in the copy or not. The
    copy is a workspace like any other: --workspace OUT opens it.
    """
    source = open_workspace(workspace, create=False)
    source.copy_to(output)
    copy = Workspace.open(output, create=False)
    try:
        copy.check()
        counts = {"traces": len(copy.traces()), "events": copy.event_count()}
    finally:
        copy.close()
    if as_json:
        print_json({"output": str(output), **counts})
    else:
        click.echo(one_line(f"{output}: {counts['traces']} traces, {counts['events']} events"))
