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
        position = super().find(sub, start, end)
        first, stop, _ = slice(start, end).indices(len(self))
        self.looked += (position if position >= 0 else stop) - first
        return position

    def rfind(
        self, sub: str, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /
    ) -> int:
        position = super().rfind(sub, start, end)
        first, stop, _ = slice(start, end).indices(len(self))
        self.looked += stop - (position if position >= 0 else first)
        return position
