"""Who is where just now, as programs on one server tell each other; nothing of it is kept.

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
    """Where one is, and where others are."""

    def __init__(self) -> None:
        self._who = ""
        self._place: str | None = None
        self._said_at: float | None = None
        self._others: dict[int, tuple[str, str, float]] = {}

    def go_to(self, who: str, place: str | None) -> None:
        """Be at a place from now on, or nowhere."""
        if (who, place) != (self._who, self._place):
            self._who, self._place, self._said_at = who, place, 0.0

    def to_say(self) -> str | None:
        """What is to be said to others now, or None."""
        if self._said_at is None or monotonic() - self._said_at < SAY_EVERY:
            return None
        self._said_at = None if self._place is None else monotonic()
        return json.dumps([self._who, self._place])

    def hear(self, program: int, said: str) -> None:
        """Take in what another program says; what makes no sense is nobody's."""
        self._others.pop(program, None)
        with suppress(ValueError):
            match json.loads(said):
                case [str(who), str(place)]:
                    self._others[program] = who, place, monotonic()

    def company(self) -> tuple[str, ...]:
        """The names of those who are at one's place now."""
        return () if self._place is None else self.at(self._place)

    def at(self, where: str) -> tuple[str, ...]:
        """The names of others who are at a place now."""
        lately = monotonic() - GONE_AFTER
        names = {
            who
            for who, place, heard_at in list(self._others.values())
            if place == where and heard_at > lately and who != self._who
        }
        return tuple(sorted(names))
