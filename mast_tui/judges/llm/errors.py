"""What can go wrong when a model is asked; every message is one sentence for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_tui.errors import MastError

if TYPE_CHECKING:
    from mast_tui.workspace import Usage


class AskError(MastError):
    """A question got no answer that can be used."""


class TraceFails(AskError):
    """This question cannot be answered; the run goes on with other traces."""


class Unanswered(TraceFails):
    """The server gave no answer that can be used; it may fail for other traces alike."""


class ContextOverflow(TraceFails):
    """A request that is longer than the model reads; smaller windows may fit.

    Attributes:
        answer_room: The tokens that an answer may take, where only the answer was too long.
        context_limit: The tokens that the server reads, as far as they are known.
        truncated_usage: The cost of an answer to a request that the server truncated without
            saying so.
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
    """The answer comes with another command: nothing is wrong with the question."""


class RunStops(AskError):
    """No question will be answered: a wrong key, an unknown model, no server."""


class AllowanceSpent(RunStops):
    """The tokens or the money that were allowed are used up."""
