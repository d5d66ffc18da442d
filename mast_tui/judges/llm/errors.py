"""Errors of requests to a model; every message is one sentence for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_tui.errors import MastError

if TYPE_CHECKING:
    from mast_tui.workspace import Usage


class AskError(MastError):
    """A request without a usable answer."""


class TraceFails(AskError):
    """A request that cannot be answered; the run continues with other traces."""


class Unanswered(TraceFails):
    """A server without a usable answer, which may be so for other traces too."""


class ContextOverflow(TraceFails):
    """A request that is too long for the model; smaller windows may fit.

    Attributes:
        answer_room: The most tokens of an answer, if only the answer was too long.
        context_limit: The tokens of the server's context, if they are known.
        truncated_usage: The usage of an answer to a request that the server truncated without an
            error.
    """

    def __init__(
        self,
        message: str,
        *,
        answer_room: int | None = None,
        context_limit: int | None = None,
        truncated_usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.answer_room = answer_room
        self.context_limit = context_limit
        self.truncated_usage = truncated_usage


class Deferred(AskError):
    """A request whose answer comes with another command."""


class RunStops(AskError):
    """A failure of all requests: a wrong key, an unknown model, no server."""


class AllowanceSpent(RunStops):
    """An allowance of tokens or money that is used up."""
