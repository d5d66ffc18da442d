"""Regular expressions in Python's syntax, matched by RE2.

RE2 reads a text once for any pattern; Python's own engine can take practically unlimited time. RE2
also lets other threads run meanwhile. This module translates the syntax, so that ``\\w``, ``\\d``
and ``\\s`` mean the same letters, digits and spaces.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
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
"""The time limit for matches in one text, since each match may need a pass over the rest of the
text."""

_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


class InvalidPattern(MastError):
    """An error for an invalid regular expression; the message has the reason."""


class Pattern:
    """A matcher for a regular expression, safe in any thread.

    Case counts if the pattern has a capital letter, or with ``exact``. ``^`` and ``$`` match at the
    ends of lines. Empty matches do not count.

    Raises:
        InvalidPattern: The text is no regular expression, or RE2 does not support it.
    """

    def __init__(self, text: str, *, exact: bool = False) -> None:
        text_without_escapes = _ESCAPED.sub("", text)  # the letter in ``\W`` is no capital
        has_capital = text_without_escapes != text_without_escapes.lower()
        self.exact = exact or has_capital
        """True if case counts."""
        self._compiled = compile_pattern(text, "m" if self.exact else "im")
        literals = literals_of(text, exact=self.exact)
        self._prefilter = None if literals is None else Prefilter.for_any(*literals)

    @property
    def prefilter(self) -> Prefilter | None:
        """The filter by literal text in the pattern; None without such text."""
        return self._prefilter

    def count(self, text: str, row_lines: Callable[[], tuple[str, ...]], /) -> int:
        """Return the number of matches in a text; 1 if only its row in the list matches.

        Args:
            text: The text.
            row_lines: Returns the texts of the row: the preview and the tool's name.
        """
        match_count = len(self.match_ranges(text))
        if match_count:
            return match_count
        return 1 if self.match_ranges("\n".join(row_lines())) else 0

    def match_ranges(self, text: str, /) -> Sequence[tuple[int, int]]:
        """Return the ranges of matches that do not overlap, limited in number and time."""
        ranges: list[tuple[int, int]] = []
        deadline = monotonic() + SECONDS
        for match in self._compiled.finditer(encodable_text(text)):
            if match.start() < match.end():
                ranges.append(match.span())
            if len(ranges) == MOST_MATCHES or monotonic() > deadline:
                break
        return ranges


_CHARACTER_CLASS: Final = re.compile(
    r"\\(?:[xpP]\{[^}]*\}|x..|[pP].|u.{4}|U.{8}|[0-9]+|.)"
    r"|\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\]",
    re.DOTALL,
)
_GROUP: Final = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))([^()]*)\)")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_ -]+(?![*?{])")
_PLAIN_IN_ANY_CASE: Final = re.compile(r"[A-HJL-RT-Za-hjl-rt-z0-9_ -]+(?![*?{])")
"""Literal text in any case, without i, k and s, which have a third case beyond ASCII."""


def literals_of(pattern: str, *, exact: bool) -> tuple[str, ...] | None:
    """Return literal texts, at least one of which is in each match; None if none are known.

    Args:
        pattern: A valid pattern in the syntax of RE2.
        exact: True if case counts.
    """
    # Counted repetitions become a brace, because their digits are no literal text.
    simplified = re.sub(r"\{\d*,?\d*\}", "{", _CHARACTER_CLASS.sub(".", pattern))
    without_groups = simplified
    while _GROUP.search(without_groups):  # from the innermost groups outwards
        without_groups = _GROUP.sub(".", without_groups)
    if "(" in without_groups:  # the pattern sets flags
        return None
    parts = [without_groups]
    if "|" not in without_groups:  # no alternative avoids the groups
        parts += _required_groups(simplified)
    literal = _PLAIN if exact else _PLAIN_IN_ANY_CASE
    for part in parts:
        longest_literals = [
            max(literal.findall(branch), key=len, default="") for branch in part.split("|")
        ]
        if all(longest_literals):
            return tuple(longest_literals)
    return None


def _required_groups(pattern: str) -> Iterator[str]:
    """Yield the contents of the outermost groups that are not optional."""
    for group in _GROUP.finditer(pattern):
        text_before = pattern[: group.start()]
        is_outermost = text_before.count("(") == text_before.count(")")
        is_optional = pattern[group.end() : group.end() + 1] in ("*", "?", "{")
        if is_outermost and not is_optional:
            yield group[1]


def compile_pattern(pattern: str, flags: str) -> re2._Regexp:
    """Compile a regular expression for texts from ``encodable_text``.

    Args:
        pattern: The pattern in Python's syntax.
        flags: Letters of RE2: ``m`` lets ``^`` and ``$`` match at line ends, ``i`` ignores case.

    Raises:
        InvalidPattern: The pattern is invalid, or RE2 does not support it.
    """
    reason = _reason_of_other_meaning(pattern)
    if reason is not None:
        raise InvalidPattern(reason)
    import re2  # start-up: the screens import this module, and few searches have a pattern

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?{flags}){in_re2(pattern)}", options)
    except re2.error as error:
        raise InvalidPattern(
            _refusal_reason(error.args[0].decode("utf-8", "replace"), pattern)
        ) from None


def encodable_text(text: str) -> str:
    """Return a text with U+FFFD in place of each lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def _refusal_reason(error: str, pattern: str) -> str:
    """Return why RE2 refuses a pattern, in plain words."""
    part = error.rpartition(": ")[2]
    # RE2 names only the beginning of a back-reference to a group with a name.
    if part == "(?P" and "(?P=" in pattern:
        part = "(?P="
    if part.startswith(("(?=", "(?!", "(?<=", "(?<!")):
        return f"“{part}” is a look-around, which is not supported, as it could take too long"
    if part == "(?P=" or re.fullmatch(r"\\[1-9]", part):
        return f"“{part}” is a back-reference, which is not supported, as it could take too long"
    return shortened(" ".join(error.split()), 200)


_ESCAPE: Final = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\."
_PATTERN_PART: Final = re.compile(rf"{_ESCAPE}|\{{,\d*\}}|\[\^?\]?|.", re.DOTALL)
_SET_PART: Final = re.compile(rf"{_ESCAPE}|\[:\^?[a-z]+:\]|.", re.DOTALL)
"""The parts of a set of characters such as ``[a-z]``."""


def in_re2(pattern: str) -> str:
    """Return a pattern of Python in the syntax of RE2; invalid parts stay unchanged."""
    parts: list[str] = []
    position = 0
    is_in_set = False
    while match := (_SET_PART if is_in_set else _PATTERN_PART).match(pattern, position):
        position = match.end()
        part = match[0]
        if part in (r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"):
            ranges = _character_ranges(part)
            parts.append(ranges if is_in_set else f"[{ranges}]")
        elif part[0] == "\\":
            parts.append(_re2_escape(part))
        elif part.startswith("{,"):  # RE2 requires the first number
            parts.append("*" if part == "{,}" else f"{{0{part[1:]}")
        else:
            parts.append(part)
            if is_in_set:
                is_in_set = part != "]"
            else:
                is_in_set = part.startswith("[")
    return "".join(parts)


def _re2_escape(part: str) -> str:
    """Return an escape of Python, such as ``\\Z``, in the syntax of RE2."""
    if part[1:2] in ("u", "U") and len(part) > 2:
        return f"\\x{{{part[2:]}}}"
    if part == r"\Z":
        return r"\z"
    return part if part.isascii() else part[1]  # RE2 escapes only ASCII characters


@cache
def _character_ranges(escape: str) -> str:
    """Return the characters of a Python escape such as ``\\d`` as ranges for RE2."""
    all_chars = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    runs = (match[0] for match in re.finditer(f"{escape}+", all_chars))
    return "".join(f"\\x{{{ord(run[0]):x}}}-\\x{{{ord(run[-1]):x}}}" for run in runs)


def _reason_of_other_meaning(pattern: str) -> str | None:
    """Return why a pattern would mean something else in RE2 than in Python, or None."""
    escapes = re.findall(r"\\(.)", pattern, re.DOTALL)
    if "C" in escapes or "Q" in escapes:
        return "“\\C” and “\\Q” are not supported"
    if not pattern.isascii() and ("b" in escapes or "B" in escapes):
        return (
            "“\\b” and “\\B” work only with the letters a to z; write the characters around the "
            "word instead"
        )
    return None
