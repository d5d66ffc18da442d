"""The open traces of all programs on a server, which tell each other; nothing is kept.

Everybody says every few seconds where they are, and who is not heard any more is gone: so nothing
is left of a program that was killed. A place is a digest that only those can know who see what is
there, as everybody who is let into the database can listen.
"""

from __future__ import annotations

import json
from contextlib import suppress
from time import monotonic
from typing import Final

SAY_EVERY: Final = 2.0
"""Seconds between two words of who stays where they are."""

GONE_AFTER: Final = 7.0
"""Seconds after which who was not heard is gone."""


class Presence:
    """The location of this annotator, and those of other programs."""

    def __init__(self) -> None:
        self._annotator = ""
        self._location: str | None = None
        self._sent_at: float | None = None
        self._other_programs: dict[int, tuple[str, str, float]] = {}

    def go_to(self, annotator: str, location: str | None) -> None:
        """Be at a place from now on, or nowhere."""
        if (annotator, location) != (self._annotator, self._location):
            self._annotator = annotator
            self._location = location
            self._sent_at = 0.0

    def to_say(self) -> str | None:
        """Return the message to the others that is due, or None."""
        if self._sent_at is None or monotonic() - self._sent_at < SAY_EVERY:
            return None
        self._sent_at = None if self._location is None else monotonic()
        return json.dumps([self._annotator, self._location])

    def hear(self, program: int, message: str) -> None:
        """Take in what another program says; what makes no sense is nobody's."""
        self._other_programs.pop(program, None)
        with suppress(ValueError):
            match json.loads(message):
                case [str(who), str(place)]:
                    self._other_programs[program] = who, place, monotonic()

    def company(self) -> tuple[str, ...]:
        """The names of those who are at one's place now."""
        return () if self._location is None else self.at(self._location)

    def at(self, where: str) -> tuple[str, ...]:
        """The names of others who are at a place now."""
        lately = monotonic() - GONE_AFTER
        names = {
            annotator
            for annotator, location, heard_at in list(self._other_programs.values())
            if location == where and heard_at > lately and annotator != self._annotator
        }
        return tuple(sorted(names))
