"""The way that one came by over the spans of a trace, to go back and forth on."""

from __future__ import annotations

from typing import Final

KEPT: Final = 200
"""Places that are remembered."""


class Trail:
    """Places from which one has gone far; beside them one step is none."""

    def __init__(self) -> None:
        """Begin with no place."""
        self._places: list[int] = []
        self._at = 0
        """Which of the places one is at; behind the last where one has not gone back."""

    def left(self, here: int, there: int) -> None:
        """Take in that one goes from one span to another, further than to the next."""
        if abs(here - there) < 2:
            return
        del self._places[self._at :]
        self._add(here)

    def back(self, here: int) -> int | None:
        """The place that one came from, None for the first; ``here`` is gone forward to."""
        if self._at == len(self._places):
            self._add(here)
            self._at -= 1
        return self._step(here, -1)

    def forward(self, here: int) -> int | None:
        """The place that one has gone back from, None for the last."""
        return self._step(here, 1)

    def _add(self, place: int) -> None:
        if self._places[-1:] != [place]:
            self._places.append(place)
        del self._places[:-KEPT]
        self._at = len(self._places)

    def _step(self, here: int, step: int) -> int | None:
        at = self._at + step
        while 0 <= at < len(self._places):
            if self._places[at] != here:
                self._at = at
                return self._places[at]
            at += step
        return None
