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
    """The request is longer than the model reads: ask with smaller windows.

    ``room`` is what an answer might take if only that was too long, and ``limit`` what the server
    reads as far as it tells, both in tokens. ``cut`` is what the answer of a server took that
    read only a part of the request and did not say so.
    """

    def __init__(
        self,
        message: str,
        *,
        room: int | None = None,
        limit: int | None = None,
        cut: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.room = room
        self.limit = limit
        self.cut = cut


class Deferred(AskError):
    """The answer comes with another command: nothing is wrong with the question."""


class RunStops(AskError):
    """No question will be answered: a wrong key, an unknown model, no server."""


class AllowanceSpent(RunStops):
    """The tokens or the money that were allowed are used up."""
