"""What can go wrong with a workspace, in words for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mast_tui.errors import MastError

if TYPE_CHECKING:
    from mast_tui.workspace.records import PersonChanges


class WorkspaceError(MastError):
    """Something in or about a workspace is wrong; the message says what, where and what to do."""


class ChangedElsewhere(WorkspaceError):
    """The same annotator has changed the same trace through another window or command."""


class MergeRefused(WorkspaceError):
    """What comes from elsewhere would change what people have said here; nothing was written.

    ``people`` says whose work it is and how it would change.
    """

    def __init__(self, people: Sequence[PersonChanges]) -> None:
        self.people = tuple(people)
        names = ", ".join(change.annotator for change in self.people)
        super().__init__(
            f"what comes from elsewhere would change what was said here by {names}; "
            "nothing was written"
        )


class WorkspaceGone(WorkspaceError):
    """The file that is open is not the one at its path any more: deleted, moved or replaced."""
