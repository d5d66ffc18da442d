"""The person who runs a command, and the parts of a workspace that this person may see."""

from __future__ import annotations

import os
from collections.abc import Sized
from contextlib import closing
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared.common import open_on_server, open_workspace, say
from mast_tui.counts import counted
from mast_tui.errors import SessionError
from mast_tui.session import Viewer, hidden_traces_text, viewer_of, why_blind
from mast_tui.workspace import Workspace, WorkspaceError, find_workspace

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy

PASSWORD_PIPE: Final = "MAST_TUI_PASSWORD_PIPE"
"""The environment variable with the number of the pipe for an app's password."""


def existing_workspace(common: CommonOptions) -> Workspace | None:
    """Open the workspace of the option, or the nearest one; None if there is none."""
    exists = common.workspace is not None or find_workspace(None).exists()
    return open_workspace(common, announce=False) if exists else None


def why_judges_hidden(common: CommonOptions, taxonomy: Taxonomy) -> str | None:
    """Return why judges' findings are hidden from the user of a command; None if they are not.

    Args:
        common: The common options of the command.
        taxonomy: The taxonomy of the user's work.
    """
    if common.blind:
        return "--blind hides them"
    workspace = existing_workspace(common)
    if workspace is None:
        return None
    with closing(workspace):
        viewer = command_viewer(workspace, taxonomy.ref, common)
        if viewer.blind:
            return why_blind(workspace, common.annotator, ends_blind=False)
        if viewer.judges_hidden:
            return f"the study in {workspace.name} hides suggestions on traces of {viewer.name}"
    return None


def check_may_see_judges(common: CommonOptions, taxonomy: Taxonomy) -> None:
    """Raise an error if judges' findings are hidden from the user of a command.

    Args:
        common: The common options of the command.
        taxonomy: The taxonomy of the user's work.

    Raises:
        SessionError: The user works blind, or has traces without suggestions.
    """
    reason = why_judges_hidden(common, taxonomy)
    if reason is not None:
        raise SessionError(
            f"judges' findings are hidden, as {reason}; run this outside that folder, or "
            "with --assisted"
        )


def command_viewer(
    workspace: Workspace, taxonomy: str, common: CommonOptions, *, allow_unknown: bool = False
) -> Viewer:
    """Return the viewer of a command: the user, and the traces that the user may see.

    Args:
        workspace: The workspace to read.
        taxonomy: The taxonomy of the labels, as ``id@version``.
        common: The common options of the command.
        allow_unknown: Accept ``--blind`` without a known name.

    Raises:
        click.UsageError: ``--blind`` is given and no person is known.
        SessionError: The name is not a valid name of a person.
    """
    viewer = viewer_of(
        workspace,
        taxonomy,
        annotator=common.annotator,
        blind=common.blind,
        ends_blind=common.assisted,
    )
    if common.blind and viewer.name is None and not allow_unknown:
        raise click.UsageError(
            "--blind hides traces that you have not finished; give your name with --annotator NAME"
        )
    if viewer.overridden_name is not None:
        say(
            f"You are signed in as {viewer.name} and see what {viewer.name} may see; --annotator "
            f"{viewer.overridden_name} does not change that."
        )
    return viewer


def report_hidden_traces(viewer: Viewer, hidden: Sized) -> None:
    """Report the number of hidden traces on stderr.

    Args:
        viewer: The viewer.
        hidden: The hidden traces.
    """
    if viewer.name is not None and hidden:
        say(hidden_traces_text(viewer.name, len(hidden)))


def report_hidden_outcomes(viewer: Viewer, hidden_count: int) -> None:
    """Report the number of hidden outcomes on stderr.

    Args:
        viewer: The viewer.
        hidden_count: The number of traces with a hidden outcome.
    """
    if hidden_count:
        say(
            f"outcomes are hidden from {viewer.name}, who works blind, on "
            f"{counted(hidden_count, 'trace')}"
        )


def hides_outcomes(common: CommonOptions) -> bool:
    """Check whether a command must hide outcomes, and report the reason."""
    reason = _reason_to_hide_outcomes(common)
    if reason is not None:
        say(reason)
    return reason is not None


def _reason_to_hide_outcomes(common: CommonOptions) -> str | None:
    """Return the reason to hide outcomes from the user; None if they may be shown."""
    if common.blind:
        return "outcomes, scores and everything else that --blind hides are left out"
    try:
        workspace = existing_workspace(common)
    except WorkspaceError as error:
        # A user who may work blind must not see outcomes.
        return f"outcomes and scores are left out, as it is unknown who works blind: {error}"
    if workspace is None:
        return None
    with closing(workspace):
        reason = why_blind(workspace, common.annotator, ends_blind=common.assisted)
    if reason is None:
        return None
    return f"outcomes and scores are left out, as {reason}; --assisted shows them"


def typed_password(url: str) -> str | None:
    """Ask for the password of a workspace on a server.

    The web server passes the password through a pipe, since other programs of the same user can
    read arguments and environments.

    Args:
        url: The workspace's URL.

    Returns:
        The password; None if none is needed, or libpq has found it.

    Raises:
        WorkspaceError: The workspace cannot be opened.
    """
    pipe = os.environ.pop(PASSWORD_PIPE, None)
    if pipe is not None:
        with os.fdopen(int(pipe), encoding="utf-8") as file:
            piped_password = file.read()
        # Opening fails with a wrong password.
        Workspace.open(url, password=piped_password).close()
        return piped_password
    workspace, password = open_on_server(url, Workspace.open)
    workspace.close()
    return password
