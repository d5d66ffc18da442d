"""Walking over the words of a text, for marking a quote by keys."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_WORD: Final = re.compile(r"\w+|[^\w\s]+")
_REACH: Final = 1 << 16
"""How far a neighbouring word is looked for, in code points."""


def word_at(text: str, offset: int) -> tuple[int, int] | None:
    """Start and end of the word at ``offset``, or of the next one, or None at the text's end."""
    start = max(0, min(offset, len(text)))
    low = max(0, start - 256)
    for match in _WORD.finditer(text, low, min(len(text), start + _REACH)):
        if match.end() > start:
            return match.span()
    return None


def next_word(text: str, end: int) -> tuple[int, int] | None:
    """The word after ``end``, or None."""
    match = _WORD.search(text, end, min(len(text), end + _REACH))
    return match.span() if match else None


def previous_word(text: str, start: int) -> tuple[int, int] | None:
    """The word before ``start``, or None."""
    window = 256
    while True:
        low = max(0, start - window)
        found = None
        for match in _WORD.finditer(text, low, start):
            if match.start() > low or low == 0:
                found = match.span()
        if found is not None or low == 0 or window > _REACH:
            return found
        window *= 4


@dataclass(frozen=True, slots=True)
class QuoteCursor:
    """A word under the cursor, and the word where the quote was begun.

    Before ``fixed`` a motion moves the one-word quote; afterwards it stretches it.
    """

    anchor: tuple[int, int]
    head: tuple[int, int]
    fixed: bool = False

    @property
    def start(self) -> int:
        """First code point of the quote."""
        return min(self.anchor[0], self.head[0])

    @property
    def end(self) -> int:
        """Code point after the quote's last."""
        return max(self.anchor[1], self.head[1])

    def at(self, word: tuple[int, int] | None) -> QuoteCursor:
        """The quote after the cursor has gone to ``word``."""
        if word is None:
            return self
        return QuoteCursor(self.anchor if self.fixed else word, word, self.fixed)

    def fix(self) -> QuoteCursor:
        """The quote begins where the cursor is."""
        return QuoteCursor(self.head, self.head, True)
