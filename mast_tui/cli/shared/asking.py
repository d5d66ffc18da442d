"""Who asks, as a command heeds it: whose sight it keeps to, and how it tells what that hides."""

from __future__ import annotations

import os
from collections.abc import Sized
from contextlib import closing
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared.common import open_on_server, open_workspace, say
from mast_tui.errors import SessionError
from mast_tui.session import hidden_words, viewer_of, works_blind
from mast_tui.workspace import Workspace, WorkspaceError, find_workspace

if TYPE_CHECKING:
    from mast_tui.session import Viewer
    from mast_tui.taxonomy.model import Taxonomy

PASSWORD_PIPE: Final = "MAST_TUI_PASSWORD_PIPE"
"""The variable with the number of the pipe from which an app reads its password."""


def workspace_there(common: CommonOptions) -> Workspace | None:
    """Open the workspace that is named, or the nearest one, to see who asks; None if there is
    none."""
    there = common.workspace is not None or find_workspace(None).exists()
    return open_workspace(common, announce=False) if there else None


def judges_hidden(common: CommonOptions, taxonomy: Taxonomy) -> bool:
    """Whether what a judge finds must not be told: somebody works blind here.

    Where there is no workspace there is nobody to keep it from, and none is made.

    Args:
        common: Who asks, and in which workspace.
        taxonomy: Under which taxonomy.
    """
    place = workspace_there(common)
    if place is None:
        return common.blind
    with closing(place):
        return asked_by(place, taxonomy.ref, common, anybody=True).judges_hidden


def check_may_see_judges(common: CommonOptions, taxonomy: Taxonomy) -> None:
    """Refuse to tell findings to somebody who labels here without them; as ``judges_hidden``.

    Raises:
        SessionError: They work blind, or have traces without suggestions.
    """
    if judges_hidden(common, taxonomy):
        raise SessionError(
            "what judges find is hidden from you, as you work blind here or have traces without "
            "suggestions; work outside of this folder, or leave blind with --assisted"
        )


def asked_by(
    place: Workspace, taxonomy: str, common: CommonOptions, *, anybody: bool = False
) -> Viewer:
    """Return who asks, and report a name on the command line that is not theirs.

    Args:
        place: The workspace that is asked.
        taxonomy: Under which taxonomy, as ``id@version``.
        common: What the command line says of who asks.
        anybody: Whether ``--blind`` has a meaning where nobody is known.

    Raises:
        click.UsageError: Nobody is known whose sight ``--blind`` could be.
        SessionError: The name cannot be one.
    """
    viewer = viewer_of(
        place,
        taxonomy,
        annotator=common.annotator,
        blind=common.blind,
        assisted=common.assisted,
    )
    if common.blind and viewer.name is None and not anybody:
        raise click.UsageError(
            "--blind hides what somebody has not finished; say who asks with --annotator NAME"
        )
    if viewer.named is not None:
        say(
            f"You are signed in as {viewer.name} and see what {viewer.name} may see; --annotator "
            f"{viewer.named} does not change that."
        )
    return viewer


def say_left_out(viewer: Viewer, left_out: Sized) -> None:
    """Say on stderr how many traces are left out, for whom, why, and what to do.

    Args:
        viewer: Who asks.
        left_out: The traces that are left out.
    """
    if viewer.name is not None and left_out:
        say(hidden_words(viewer.name, len(left_out)))


def hides_outcomes(common: CommonOptions) -> bool:
    """Whether a command that reads traces alone must leave out what these carry; it says why."""
    why = _why_no_outcomes(common)
    if why is not None:
        say(why)
    return why is not None


def _why_no_outcomes(common: CommonOptions) -> str | None:
    if common.blind:
        return "outcomes, scores and what else --blind hides are left out"
    try:
        place = workspace_there(common)
    except WorkspaceError as error:
        # Better too little than what somebody blind must not see.
        return f"outcomes and scores are left out, as nobody can tell who works blind: {error}"
    if place is None:
        return None
    with closing(place):
        name = works_blind(place, common.annotator, assisted=common.assisted)
    if name is None:
        return None
    return f"outcomes and scores are left out, as {name} works blind; --assisted leaves that"


def typed_password(url: str) -> str | None:
    """Ask for the password of a workspace's server, before a screen takes the terminal.

    The web server hands over what its visitor has typed through a pipe, whose number is in
    ``PASSWORD_PIPE``: other programs of this user can read arguments and environments.

    Args:
        url: The workspace's URL.

    Returns:
        The typed password; None if the server wants none, or libpq has found one.

    Raises:
        WorkspaceError: The workspace cannot be opened.
    """
    pipe = os.environ.pop(PASSWORD_PIPE, None)
    if pipe is not None:
        with os.fdopen(int(pipe), encoding="utf-8") as file:
            from_pipe = file.read()
        Workspace.open(url, password=from_pipe).close()
        return from_pipe
    workspace, password = open_on_server(url, Workspace.open)
    workspace.close()
    return password
