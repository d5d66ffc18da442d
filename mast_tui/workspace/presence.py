"""The traces that programs on one server have open; nothing of it is stored.

Each program sends its location every few seconds, and one that is not heard any more counts as
gone, so that nothing is left of a program that was killed. A location is a digest that only those
who may see the trace can compute, since every member of the database can listen.
"""

from __future__ import annotations

import json
from contextlib import suppress
from time import monotonic
from typing import Final

MESSAGE_SECONDS: Final = 2.0
"""The seconds between two messages of a program that stays at its location."""

GONE_AFTER: Final = 7.0
"""The seconds after which a program that was not heard counts as gone."""


class Presence:
    """The location of this annotator, and those of other programs."""

    def __init__(self) -> None:
        self._annotator = ""
        self._location: str | None = None
        self._sent_at: float | None = None
        """The time at which this program last sent its location; None if it need not send it."""
        self._other_programs: dict[int, tuple[str, str, float]] = {}
        """The annotator, the location and the time of the last message, by program number."""

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
        """Return a message with the location if it is time to send one, otherwise None."""
        if self._sent_at is None or monotonic() - self._sent_at < MESSAGE_SECONDS:
            return None
        # After the annotator has left, the location is None, and this is the last message.
        self._sent_at = None if self._location is None else monotonic()
        return json.dumps([self._annotator, self._location])

    def receive(self, program: int, message: str) -> None:
        """Store the location in another program's message.

        If the message is invalid, or says that the annotator has left, forgets the program.

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
        """Return the names of others who are at the annotator's location now."""
        return () if self._location is None else self.annotators_at(self._location)

    def annotators_at(self, location: str) -> tuple[str, ...]:
        """Return the names of the other annotators who are at a location now."""
        oldest = monotonic() - GONE_AFTER
        names = {
            annotator
            for annotator, last_location, heard_at in list(self._other_programs.values())
            if last_location == location and heard_at > oldest and annotator != self._annotator
        }
        return tuple(sorted(names))
