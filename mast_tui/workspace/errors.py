"""What can go wrong with a workspace, in words for people."""

from __future__ import annotations


class WorkspaceError(Exception):
    """Something in or about a workspace is wrong; the message says what, where and what to do."""


class ChangedElsewhere(WorkspaceError):
    """The same annotator has changed the same trace through another window or command."""


class WorkspaceGone(WorkspaceError):
    """The file that is open is not the one at its path any more: deleted, moved or replaced."""
