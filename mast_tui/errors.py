"""The errors that are shown to users, not fixed by programmers: their base, and the common ones."""

from __future__ import annotations

from typing import ClassVar


class MastError(Exception):
    """Something is wrong in the data or the request, and nothing is wrong with the program.

    The message says what, where and what to do, in one or two sentences. A command prints it and
    ends with ``exit_code``; a screen shows it. Any other exception is a bug.
    """

    exit_code: ClassVar[int] = 1


class WorkspaceError(MastError):
    """Something in or about a workspace is wrong; the message says what, where and what to do."""


class ChangedElsewhere(WorkspaceError):
    """The same annotator has changed the same trace through another window or command."""


class PasswordNeeded(WorkspaceError):
    """A server with a workspace wants a password, and none was found."""


class ServerAway(WorkspaceError):
    """A server with a workspace does not answer, and may do so in a moment."""


class WorkspaceGone(WorkspaceError):
    """The file that is open is not the one at its path any more: deleted, moved or replaced."""


class AdjudicationError(MastError):
    """Something cannot be adjudicated; the message says what and what to do."""


class SessionError(MastError):
    """A command was refused and has changed nothing; the message says why."""


class ChangedMeanwhile(SessionError):
    """The same annotator has changed the trace elsewhere; the session shows it as it is now."""
