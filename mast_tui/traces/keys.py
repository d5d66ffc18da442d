"""Span keys that are unique in a trace."""

from __future__ import annotations


class UniqueKeys:
    """Hands out keys; where one repeats, the later ones get ``~2``, ``~3`` and so on."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._repeats: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """``wanted`` itself where it is free, else the first free ``wanted~N``."""
        if wanted not in self._taken:
            self._taken[wanted] = len(self._taken)
            return wanted
        number = self._repeats.get(wanted, 1) + 1
        while (key := f"{wanted}~{number}") in self._taken:
            number += 1
        self._repeats[wanted] = number
        self._taken[key] = len(self._taken)
        return key

    def number(self, key: str) -> int:
        """How many were handed out before this one."""
        return self._taken[key]

    def find(self, key: str) -> int | None:
        """The same of a key that may never have been handed out."""
        return self._taken.get(key)
