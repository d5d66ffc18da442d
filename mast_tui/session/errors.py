"""What an annotator cannot do, in words."""

from __future__ import annotations

from mast_tui.errors import MastError
from mast_tui.labels import Label


class SessionError(MastError):
    """A command was refused and has changed nothing; the message says why."""


class ChangedMeanwhile(SessionError):
    """The same annotator has changed the trace elsewhere; the session shows it as it is now."""


class LabelsStand(SessionError):
    """A mode cannot be called absent or unsure while ``labels`` say that it shows."""

    def __init__(self, message: str, labels: tuple[Label, ...]) -> None:
        super().__init__(message)
        self.labels = labels
