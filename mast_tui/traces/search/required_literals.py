"""What a regular expression cannot match without: literal text, told from the pattern alone."""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_ .-")
"""Characters that a sieve can look for; whatever else a pattern asks for is left out of account."""

_MORE_THAN_TWO_CASES: Final = frozenset("iksIKS")
"""Where case does not count each of these also stands for a letter beyond ASCII."""

_COUNT: Final = re.compile(r"\{[0-9]*,?[0-9]*\}")
_GROUP: Final = re.compile(r"\?(?::|P<\w+>)")
_ESCAPE: Final = re.compile(
    r"\\(?:[xpP]\{[^}]*\}|x..|[pP].|u.{4}|U.{8}|[0-9]+|.)",
    re.DOTALL,
)

Needs = tuple[str, ...]
"""Texts of which every match holds at least one."""


class _Unclear(Exception):
    """The pattern holds what is not looked into, such as flags of its own."""


def needs_of(pattern: str, *, exact: bool) -> Needs | None:
    """Texts of which every match of a valid pattern holds one; None where none can be told.

    Where not ``exact`` case does not count, neither in the pattern nor in what is told.
    """
    reader = _Reader(pattern, exact)
    try:
        return reader.alternatives()
    except _Unclear:
        return None


class _Reader:
    """Reads a pattern from left to right; what it does not know it takes for anything at all."""

    def __init__(self, pattern: str, exact: bool) -> None:
        self._text = pattern
        self._at = 0
        self._letters = _PLAIN if exact else _PLAIN - _MORE_THAN_TWO_CASES

    def alternatives(self) -> Needs | None:
        """What one of the alternatives needs, up to the end of the group."""
        needs = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            needs.append(self._sequence())
        found = [need for need in needs if need is not None]
        return tuple(text for need in found for text in need) if len(found) == len(needs) else None

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _sequence(self) -> Needs | None:
        best: Needs | None = None
        run = ""
        while (char := self._next()) not in ("", "|", ")"):
            if char == "(":
                need = self._group()
                best = _better(_better(best, (run,)), None if self._optional() else need)
                run = ""
                continue
            literal = self._literal()
            once = self._at
            if self._optional() or literal not in self._letters:
                best, run = _better(best, (run,)), ""
            elif self._at > once:  # it comes again, so that what follows may stand further on
                best, run = _better(best, (run + literal,)), ""
            else:
                run += literal
        return _better(best, (run,))

    def _group(self) -> Needs | None:
        self._at += 1
        if self._next() == "?":
            kind = _GROUP.match(self._text, self._at)
            if kind is None:
                raise _Unclear
            self._at = kind.end()
        need = self.alternatives()
        self._at += 1
        return need

    def _literal(self) -> str:
        """Pass over one item; the character that it stands for, or empty."""
        char = self._next()
        if char == "[":
            self._pass_class()
            return ""
        if char == "\\":
            found = _ESCAPE.match(self._text, self._at)
            if found is None:
                raise _Unclear
            self._at = found.end()
            return found[0][1] if len(found[0]) == 2 and not found[0][1].isalnum() else ""
        self._at += 1
        return "" if char in ".^$*+?{" else char

    def _pass_class(self) -> None:
        self._at += 1
        if self._next() == "^":
            self._at += 1
        first = True
        while first or self._next() != "]":
            if not self._next():
                raise _Unclear
            self._at += 2 if self._next() == "\\" else 1
            first = False
        self._at += 1

    def _optional(self) -> bool:
        """Pass over what says how often an item comes; whether it may be missing."""
        char = self._next()
        count = _COUNT.match(self._text, self._at) if char == "{" else None
        if char not in ("*", "+", "?") and count is None:
            return False
        self._at = count.end() if count is not None else self._at + 1
        if self._next() == "?":
            self._at += 1
        return char != "+"


def _better(one: Needs | None, other: Needs | None) -> Needs | None:
    """The one whose shortest text is the longer, as it lets less through."""
    if other is None or not all(other):
        return one
    if one is None:
        return other
    return max(one, other, key=lambda needs: min(map(len, needs)))
