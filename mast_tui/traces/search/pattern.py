"""Regular expressions: what Python would find, by RE2, which no pattern can hold up.

RE2 reads a text once whatever the pattern is, where Python's own engine can take longer than
anyone lives, and it lets other threads run meanwhile. What it writes otherwise than Python is put
into its words here, so that ``\\w``, ``\\d`` and ``\\s`` mean the same letters, digits and spaces.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Final

from mast_tui.errors import MastError
from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.model import shortened
from mast_tui.traces.search.text_search import MOST_MATCHES

if TYPE_CHECKING:
    import re2

SECONDS: Final = 1.0
"""After so long no more matches are looked for in one text: each of them is found in one go, but
may need a look at all of the text behind it."""

_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


class InvalidPattern(MastError):
    """An error for a text that is no regular expression; the message has the reason."""


class Pattern:
    """A regular expression: case counts where it has a capital, or is ``exact``; ``^`` and ``$``
    mean lines. What is empty stands nowhere.

    Raises ``InvalidPattern``. It may be used from any thread.
    """

    def __init__(self, text: str, *, exact: bool = False) -> None:
        plain = _ESCAPED.sub("", text)
        self.exact = exact or plain != plain.lower()
        self._compiled = compile_pattern(text, "m" if self.exact else "im")
        needs = needs_of(text, exact=self.exact)
        self._prefilter = None if needs is None else Prefilter.for_any(*needs)

    @property
    def prefilter(self) -> Prefilter | None:
        """The filter by literal text in the pattern, which finds early that a text cannot match."""
        return self._prefilter

    def count(self, text: str, row_lines: Callable[[], tuple[str, ...]], /) -> int:
        """Count the matches in a text; 1 where only the row matches.

        Args:
            text: The text.
            row_lines: Returns the lines of the row.
        """
        return len(self.places(text)) or int(bool(self.places("\n".join(row_lines()))))

    def places(self, text: str, /) -> Sequence[tuple[int, int]]:
        """Return the ranges of matches that do not overlap."""
        ranges: list[tuple[int, int]] = []
        until = monotonic() + SECONDS
        for match in self._compiled.finditer(encodable_text(text)):
            if match.start() < match.end():
                ranges.append(match.span())
            if len(ranges) == MOST_MATCHES or monotonic() > until:
                break
        return ranges


_ONE_CHARACTER: Final = re.compile(
    r"\\(?:[xpP]\{[^}]*\}|x..|[pP].|u.{4}|U.{8}|[0-9]+|.)"
    r"|\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\]",
    re.DOTALL,
)
_GROUP: Final = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))([^()]*)\)")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_ -]+(?![*?{])")
_PLAIN_IN_ANY_CASE: Final = re.compile(r"[A-HJL-RT-Za-hjl-rt-z0-9_ -]+(?![*?{])")
"""Literal text that every match has; i, k and s have a third case beyond ASCII."""


def needs_of(pattern: str, *, exact: bool) -> tuple[str, ...] | None:
    """Return literal texts that a valid pattern cannot match without.

    Args:
        pattern: As RE2 takes it.
        exact: Whether case counts.

    Returns:
        Texts of which every match holds one, in any case where case does not count; None
        where none are known.
    """
    simplified = re.sub(r"\{\d*,?\d*\}", "{", _ONE_CHARACTER.sub(".", pattern))
    outside = simplified
    while (without := _GROUP.sub(".", outside)) != outside:
        outside = without
    if "(" in outside:  # flags of its own
        return None
    parts = [outside]
    if "|" not in outside:  # a group that cannot be missing
        parts += [
            group[1]
            for group in _GROUP.finditer(simplified)
            if simplified.count("(", 0, group.start()) == simplified.count(")", 0, group.start())
            and simplified[group.end() : group.end() + 1] not in ("*", "?", "{")
        ]
    plain = _PLAIN if exact else _PLAIN_IN_ANY_CASE
    for part in parts:
        needs = [max(plain.findall(branch), key=len, default="") for branch in part.split("|")]
        if all(needs):
            return tuple(needs)
    return None


def compile_pattern(pattern: str, flags: str) -> re2._Regexp:
    """Make a regular expression that RE2 looks for.

    Args:
        pattern: As Python takes it.
        flags: Letters of RE2: ``m`` for lines, ``i`` where case does not count.

    Returns:
        What finds it in texts that are ``encodable_text``.

    Raises:
        InvalidPattern: It is none, or one that RE2 does not take.
    """
    reason = _different_meaning(pattern)
    if reason is not None:
        raise InvalidPattern(reason)
    import re2  # start-up: the screens know patterns, and few are asked for

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?{flags}){in_re2(pattern)}", options)
    except re2.error as error:
        raise InvalidPattern(
            _refusal_reason(error.args[0].decode("utf-8", "replace"), pattern)
        ) from None


def encodable_text(text: str) -> str:
    """Put a sign for what is unknown in the place of each half of a character in a text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def _refusal_reason(error: str, pattern: str) -> str:
    """Return why RE2 refuses a pattern, in plain words."""
    part = error.rpartition(": ")[2]
    if part == "(?P" and "(?P=" in pattern:
        part = "(?P="
    if part.startswith(("(?=", "(?!", "(?<=", "(?<!")):
        return f"“{part}” looks around, and the time for that has no bound"
    if part == "(?P=" or re.fullmatch(r"\\[1-9]", part):
        return f"“{part}” refers back to a group, and the time for that has no bound"
    return shortened(" ".join(error.split()), 200)


_ESCAPE: Final = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\."
_OUTSIDE: Final = re.compile(rf"{_ESCAPE}|\{{,\d*\}}|\[\^?\]?|.", re.DOTALL)
_WITHIN: Final = re.compile(rf"{_ESCAPE}|\[:\^?[a-z]+:\]|.", re.DOTALL)
"""The parts of a pattern, and of a set of characters within it."""


def in_re2(pattern: str) -> str:
    """Translate a pattern of Python's to the syntax of RE2, as far as the two differ.

    Args:
        pattern: The pattern as Python takes it.

    Returns:
        The same for RE2. What neither accepts stays as it is.
    """
    parts: list[str] = []
    position = 0
    within = False
    while match := (_WITHIN if within else _OUTSIDE).match(pattern, position):
        position = match.end()
        part = match[0]
        if part in (r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"):
            parts.append(_set_of(part) if within else f"[{_set_of(part)}]")
        elif part[0] == "\\":
            parts.append(_escape(part))
        elif part.startswith("{,"):
            parts.append("*" if part == "{,}" else f"{{0{part[1:]}")
        else:
            parts.append(part)
            within = part != "]" if within else part[0] == "["
    return "".join(parts)


def _escape(part: str) -> str:
    if part[1:2] in ("u", "U") and len(part) > 2:
        return f"\\x{{{part[2:]}}}"
    if part == r"\Z":
        return r"\z"
    return part if part.isascii() else part[1]


@cache
def _set_of(escape: str) -> str:
    """Return the characters that an escape means in Python, as ranges."""
    all_chars = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    runs = (match[0] for match in re.finditer(f"{escape}+", all_chars))
    return "".join(f"\\x{{{ord(run[0]):x}}}-\\x{{{ord(run[-1]):x}}}" for run in runs)


def _different_meaning(pattern: str) -> str | None:
    """Return the part of a pattern that RE2 takes in another meaning than Python."""
    escapes = re.findall(r"\\(.)", pattern, re.DOTALL)
    if "C" in escapes or "Q" in escapes:
        return "“\\C” and “\\Q” are no part of it"
    if not pattern.isascii() and ("b" in escapes or "B" in escapes):
        return "“\\b” and “\\B” know the letters a to z only; say what may stand around instead"
    return None
