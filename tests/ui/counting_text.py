"""A text that counts how much of it was read."""

from __future__ import annotations

from typing import SupportsIndex


class CountingText(str):
    """A text that counts the code points that are read or searched."""

    looked = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self.looked += len(part)
        return part

    def find(
        self, sub: str, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /
    ) -> int:
        found = super().find(sub, start, end)
        first, stop, _ = slice(start, end).indices(len(self))
        self.looked += (found if found >= 0 else stop) - first
        return found

    def rfind(
        self, sub: str, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /
    ) -> int:
        found = super().rfind(sub, start, end)
        first, stop, _ = slice(start, end).indices(len(self))
        self.looked += stop - (found if found >= 0 else first)
        return found
