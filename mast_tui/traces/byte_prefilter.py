"""A search by bytes for the lines of a file that may hold a text, so that most need no parsing."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re2

_RUN: Final = re.compile(r"[A-Za-z0-9_]+(?:[ .-][A-Za-z0-9_]+)*")
_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_NUMBER: Final = re.compile(r"[0-9]*\.?[0-9]*(e[+-]?[0-9]*)?")
_ANY_DIGIT: Final = bytes.maketrans(b"123456789.", b"0000000000")
_GAP: Final = rb"(?:[^0-9A-Za-z_]|\\+[bfnrt]|\\+u[0-9a-f]{4})+"
"""The separators of two words in a file; a reader may make one space of them."""
_EXPONENTS: Final = (b"0e0", b"0e+", b"0e-")
_WITH_EXPONENT: Final = re.compile(rb"(?:[^0-9a-z_.-]|\\[nrt]|^)-?[0-9.]+e[+-]?[0-9]")
_EXACT_DIGITS: Final = 16
_LOOKED_BACK: Final = 40
_NULL: Final = "null"
_ESCAPE_BYTES: Final = 6
_LAST_CASED: Final = 0x1E943

_STAND_INS: Final = (("\u212a", "\ufdd0"), ("\u0130", "\ufdd1"))
"""The Kelvin sign and the dotted I, which would become ASCII letters, with replacements."""


def folded(text: str) -> str:
    """Return ``text`` with capitals made small, each code point in its place.

    No other letter becomes an ASCII letter, and both small sigmas are one.
    """
    if text.isascii():
        return text.lower()
    for letter, stand_in in _STAND_INS:
        text = text.replace(letter, stand_in)
    text = text.lower().replace("ς", "σ")
    for letter, stand_in in _STAND_INS:
        text = text.replace(stand_in, letter)
    return text


class Prefilter:
    """A filter that passes bytes which may become a text with one of some needles, and little else.

    It looks for the longest word of each, which a JSON file can only write as it is or letter by
    letter as ``\\u0061``. It rests on this: what a reader adds to a text of its own stands within
    the preview, or is set off by line feeds or punctuation; numbers may be written anew. For digits
    it lets through every line with a number that would come out otherwise.
    """

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        self._needle_words = tuple(dict.fromkeys(map(_word_of, parts)))
        self._numeric = any(map(_NUMBER.fullmatch, self._needle_words))
        self.overlap = max(_LOOKED_BACK, *map(len, self._needle_words)) + 2
        """The bytes that two pieces of one line must share so that no match is lost."""

    @classmethod
    def for_any(cls, *needles: str) -> Prefilter | None:
        """Return the prefilter for texts that hold one of the needles; None if any line might."""
        parts = [_part_of(needle) for needle in needles]
        searched = tuple(dict.fromkeys(part for part in parts if part is not None))
        return cls(*searched) if searched and None not in parts else None

    def any_in(self, block: bytes) -> bool:
        """Return whether a part of a file may become a text, or a row, that holds the needle.

        It looks at whole files at the speed of a disk: for all words of a needle, not only one.
        """
        matched = any(expression.search(block) for expression in self._whole)
        return matched or (self._numeric and any(True for _ in _odd_numbers(block.lower())))

    def hits(self, block: bytes) -> list[int]:
        """Return an offset on each line of the block that may hold the needle, in order."""
        offsets: set[int] = set()
        for expression in self._single:
            match = expression.search(block)
            while match is not None:
                offsets.add(match.start())
                feed = block.find(b"\n", match.start())
                match = expression.search(block, feed) if feed >= 0 else None
        if self._numeric:
            offsets.update(_odd_numbers(block.lower()))
        return sorted(offsets)

    @cached_property
    def _whole(self) -> tuple[re2._Regexp, ...]:
        return _expressions(self._parts)

    @cached_property
    def _single(self) -> tuple[re2._Regexp, ...]:
        return _expressions(self._needle_words)

    def may_be_in(self, text: str) -> bool:
        """Return whether a text that users see holds the searched part of one of the needles."""
        line = folded(text)
        return any(word in line for word in self._needle_words)


def _expressions(parts: Iterable[str]) -> tuple[re2._Regexp, ...]:
    """Return the expressions that find the parts in every spelling."""
    import re2  # start-up: few search, and it takes a while

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    patterns: list[bytes] = []
    letters: set[str] = set()
    for part in parts:
        if part.isascii():
            letters |= {*part.lower(), *part.upper()}
            patterns.append(b"(?i)" + _GAP.join(word.encode() for word in _WORD.findall(part)))
        else:
            marks = (form for letter in _cases_of(part) for form in _forms_of(letter))
            patterns += [b"(?i)" + re.escape(mark) for mark in marks]
    if letters:  # the first letters of these are found quickest as they are
        codes = "|".join(f"{ord(letter):02x}" for letter in sorted(letters))
        patterns.append(rb"\\u00(?i:%b)" % codes.encode())
    return tuple(re2.compile(pattern, options) for pattern in dict.fromkeys(patterns))


def _part_of(needle: str) -> str | None:
    """Return the part of a needle to search for; None if any line might hold it."""
    runs: list[str] = [run for run in _RUN.findall(folded(needle)) if _words_of(run)]
    if runs:
        return max(runs, key=len)
    return next((letter for letter in folded(needle) if _is_lasting(letter)), None)


def _words_of(run: str) -> list[str]:
    """Return the words of a text that readers leave as they are, if all of it is such words."""
    if _is_rewritten(run):
        return []
    return [word for word in _WORD.findall(run) if not _is_rewritten(word)]


def _word_of(part: str) -> str:
    return max(_words_of(part), key=len) if part.isascii() else part


def _is_rewritten(run: str) -> bool:
    """Return whether a reader may write it for numbers of another spelling: ``1e400`` is null."""
    number = _NUMBER.fullmatch(run)
    return run in _NULL or (number is not None and number[1] is not None)


def _odd_numbers(lowered: bytes) -> Iterator[int]:
    """Yield the offsets of numbers whose digits a reader may change.

    ``1e2`` becomes 100.0, and a number of too many digits is rounded.
    """
    yield from _each_line(lowered, b"0.0000")
    digits = lowered.translate(_ANY_DIGIT)
    yield from _each_line(digits, b"0" * _EXACT_DIGITS)
    for mark in _EXPONENTS:
        offset = digits.find(mark)
        while offset >= 0:
            # Most of these are no numbers but parts of ids.
            window = lowered[max(0, offset - _LOOKED_BACK) : offset + len(mark) + 1]
            if _WITH_EXPONENT.search(window):
                yield offset
            offset = digits.find(mark, offset + 1)


def _each_line(block: bytes, mark: bytes) -> Iterator[int]:
    """Yield the first offset of the mark on each line that holds it."""
    offset = block.find(mark)
    while offset >= 0:
        yield offset
        feed = block.find(b"\n", offset)
        offset = block.find(mark, feed) if feed >= 0 else -1


def _is_lasting(letter: str) -> bool:
    """Return whether a letter beyond ASCII is never put in place of another."""
    code = ord(letter)
    return code > 0x7F and code != 0xFFFD and not 0xD800 <= code <= 0xDFFF


def _cases_of(letter: str) -> list[str]:
    """Return every code point that is ``letter`` once it is folded."""
    if ord(letter) > _LAST_CASED:
        return [letter]
    cased = map(chr, range(0x80, min(_LAST_CASED, sys.maxunicode) + 1))
    return [char for char in cased if folded(char) == letter]


def _forms_of(letter: str) -> tuple[bytes, bytes]:
    """Return the bytes of a letter as UTF-8, and the ends of its escapes.

    One of two surrogates may be escaped over again, with more backslashes between them.
    """
    escaped = json.dumps(letter)[1:-1][-_ESCAPE_BYTES:]
    return letter.encode("utf-8", "surrogatepass").lower(), escaped.lower().encode()
