"""The errors that are shown to users: their base class and the common ones."""

from __future__ import annotations

from typing import ClassVar


class MastError(Exception):
    """An error in the data or the request, not in the program.

    The message says in one or two sentences what is wrong, where, and what to do. A command prints
    it and ends with ``exit_code``; a screen shows it. Any other exception is a bug.
    """

    exit_code: ClassVar[int] = 1


class WorkspaceError(MastError):
    """An error in a workspace or in its use."""


class ChangedElsewhere(WorkspaceError):
    """A change by the same annotator to the same trace, through another window or command."""


class PasswordNeeded(WorkspaceError):
    """A missing password for the server with a workspace."""


class ServerAway(WorkspaceError):
    """A server with a workspace that does not answer; a later attempt may succeed."""


class WorkspaceGone(WorkspaceError):
    """The open file is no longer at its path: it was deleted, moved or replaced."""


class AdjudicationError(MastError):
    """A request for an adjudication that is not possible."""


class SessionError(MastError):
    """A refused command, which has changed nothing."""


class ChangedMeanwhile(SessionError):
    """A change of the trace elsewhere; the session has loaded it."""
