"""The open traces of the programs on one server; nothing is stored.

Each program sends its location every few seconds. A program that has sent nothing for a while
counts as gone, for example if it was killed. All members can listen, so a location is a digest that
only people who may see the trace can compute.
"""

from __future__ import annotations

import json
from contextlib import suppress
from time import monotonic
from typing import Final

MESSAGE_SECONDS: Final = 2.0
"""Seconds between two messages of a program at one location."""

GONE_AFTER: Final = 7.0
"""Seconds without a message after which a program counts as gone."""


class Presence:
    """The location of this annotator, and the locations of other programs."""

    def __init__(self) -> None:
        self._annotator = ""
        self._location: str | None = None
        self._sent_at: float | None = None
        """The time of the last message of this program; None if it need not send one."""
        self._other_programs: dict[int, tuple[str, str, float]] = {}
        """The annotator, location and time of the last message, by the number of a program."""

    def go_to(self, annotator: str, location: str | None) -> None:
        """Set the annotator's location.

        Args:
            annotator: The annotator.
            location: The location; None if the annotator has left.
        """
        if (annotator, location) != (self._annotator, self._location):
            self._annotator = annotator
            self._location = location
            self._sent_at = 0.0  # so that a message is due now

    def due_message(self) -> str | None:
        """Return a message with the location if one is due, otherwise None."""
        if self._sent_at is None or monotonic() - self._sent_at < MESSAGE_SECONDS:
            return None
        # None as the location says that the annotator has left; no more messages follow.
        self._sent_at = None if self._location is None else monotonic()
        return json.dumps([self._annotator, self._location])

    def receive(self, program: int, message: str) -> None:
        """Store the location in another program's message.

        After an invalid message, or one without a location, the program is forgotten.

        Args:
            program: The number of the program.
            message: The message, a JSON list of annotator and location.
        """
        self._other_programs.pop(program, None)
        with suppress(ValueError):
            match json.loads(message):
                case [str(annotator), str(location)]:
                    self._other_programs[program] = annotator, location, monotonic()

    def annotators_here(self) -> tuple[str, ...]:
        """Return the names of the other annotators at this annotator's location."""
        return () if self._location is None else self.annotators_at(self._location)

    def annotators_at(self, location: str) -> tuple[str, ...]:
        """Return the names of the other annotators at a location."""
        oldest = monotonic() - GONE_AFTER
        names = {
            annotator
            for annotator, last_location, heard_at in list(self._other_programs.values())
            if last_location == location and heard_at > oldest and annotator != self._annotator
        }
        return tuple(sorted(names))
