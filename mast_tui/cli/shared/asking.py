"""Who asks, as a command heeds it: whose sight it keeps to, and how it tells what that hides."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from mast_tui.cli.shared.common import open_on_server, open_workspace, say
from mast_tui.errors import SessionError
from mast_tui.session import hidden_words, viewer_of, works_blind
from mast_tui.workspace import Workspace, WorkspaceError, find_workspace

if TYPE_CHECKING:
    from mast_tui.session import Viewer
    from mast_tui.taxonomy.model import Taxonomy


@dataclass(frozen=True, slots=True)
class Asker:
    """What the command line says of the one who asks, before a workspace is open."""

    annotator: str | None
    blind: bool
    assisted: bool

    def hides_judges(self, place: Workspace, taxonomy: Taxonomy) -> bool:
        """Whether what judges find must not be told to the one who asks."""
        viewer = asked_by(
            place, taxonomy.ref, self.annotator, self.blind, self.assisted, anybody=True
        )
        return viewer.judges_hidden


def judges_hidden(asker: Asker, taxonomy: Taxonomy, workspace: str | None = None) -> bool:
    """Whether what a judge finds must not be told: somebody works blind here.

    Where there is no workspace there is nobody to keep it from, and none is made.

    Args:
        asker: Who asks.
        taxonomy: Under which taxonomy.
        workspace: The value of ``--workspace``.
    """
    if workspace is None and not find_workspace(None).exists():
        return asker.blind
    place = open_workspace(workspace, create=False)
    try:
        return asker.hides_judges(place, taxonomy)
    finally:
        place.close()


def check_may_see_judges(asker: Asker, taxonomy: Taxonomy, workspace: str | None) -> None:
    """Refuse to tell findings to somebody who labels here without them; as ``judges_hidden``.

    Raises:
        SessionError: They work blind, or have traces without suggestions.
    """
    if judges_hidden(asker, taxonomy, workspace):
        raise SessionError(
            "what judges find is hidden from you, as you work blind here or have traces without "
            "suggestions; work outside of this folder, or leave blind with --assisted"
        )


def asked_by(
    place: Workspace,
    taxonomy: str,
    annotator: str | None,
    blind: bool,
    assisted: bool,
    *,
    anybody: bool = False,
) -> Viewer:
    """Find out who asks, and say where that is not whom the command line names.

    Args:
        place: The workspace that is asked.
        taxonomy: Under which taxonomy, as ``id@version``.
        annotator: The value of ``--annotator``.
        blind: Whether ``--blind`` is given.
        assisted: Whether ``--assisted`` is given.
        anybody: Whether ``--blind`` has a meaning where nobody is known.

    Raises:
        click.UsageError: Nobody is known whose sight ``--blind`` could be.
        SessionError: The name cannot be one.
    """
    viewer = viewer_of(place, taxonomy, annotator=annotator, blind=blind, assisted=assisted)
    if blind and viewer.name is None and not anybody:
        raise click.UsageError(
            "--blind hides what somebody has not finished; say who asks with --annotator NAME"
        )
    if viewer.named is not None:
        say(
            f"this login works here as {viewer.name}: what is shown keeps to what {viewer.name} "
            f"may see, and is recorded for {viewer.name}, not for {viewer.named}"
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


def hides_outcomes(
    workspace: str | None, annotator: str | None, blind: bool, assisted: bool
) -> str | None:
    """Say why a command that reads traces alone must leave out what these carry; None: nothing.

    Args:
        workspace: The value of ``--workspace``.
        annotator: The value of ``--annotator``.
        blind: Whether ``--blind`` is given.
        assisted: Whether ``--assisted`` is given.
    """
    if blind:
        return "outcomes, scores and what else --blind hides are left out"
    if workspace is None and not find_workspace(None).exists():
        return None
    try:
        place = open_workspace(workspace, create=False)
    except WorkspaceError as error:
        # Better too little than what somebody blind must not see.
        return f"outcomes and scores are left out, as nobody can tell who works blind: {error}"
    try:
        name = works_blind(place, annotator, assisted=assisted)
    finally:
        place.close()
    if name is None:
        return None
    return f"outcomes and scores are left out, as {name} works blind; --assisted leaves that"


def typed_password(url: str) -> str | None:
    """Ask for the password of a workspace's server, before a screen takes the terminal.

    Args:
        url: Where it is.

    Returns:
        What was typed; None where the server wants none, or one was found.

    Raises:
        WorkspaceError: The workspace cannot be opened.
    """
    workspace, password = open_on_server(url, Workspace.open)
    workspace.close()
    return password
