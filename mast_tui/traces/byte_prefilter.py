"""Which lines of a file may hold a text, told by their bytes, so that most need no parsing."""

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
"""What parts two words of a text in a file: a reader may make one space of it."""
_EXPONENTS: Final = (b"0e0", b"0e+", b"0e-")
_WITH_EXPONENT: Final = re.compile(rb"(?:[^0-9a-z_.-]|\\[nrt]|^)-?[0-9.]+e[+-]?[0-9]")
_EXACT_DIGITS: Final = 16
_LOOKED_BACK: Final = 40
_NULL: Final = "null"
_ESCAPE_BYTES: Final = 6
_LAST_CASED: Final = 0x1E943

_KEPT: Final = (("\u212a", "\ufdd0"), ("\u0130", "\ufdd1"))
"""The Kelvin sign and the dotted I, which would become ASCII letters, and what stands in."""


def folded(text: str) -> str:
    """``text`` with capitals made small, each code point in its place.

    No ASCII letter comes of any other letter, and both small sigmas are one.
    """
    if text.isascii():
        return text.lower()
    for letter, stand_in in _KEPT:
        text = text.replace(letter, stand_in)
    text = text.lower().replace("ς", "σ")
    for letter, stand_in in _KEPT:
        text = text.replace(stand_in, letter)
    return text


class Sieve:
    """Lets through whatever may become a text that holds one of some needles, and little else.

    It looks for a part of each needle that a JSON file can only write as it is or letter by letter
    as ``\\u0061``. It rests on this: what a reader adds to a text of its own stands within the
    preview, or is set off by line feeds or punctuation; numbers may be written anew. For digits it
    lets through every line with a number that would come out otherwise.
    """

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        self._numeric = any(map(_NUMBER.fullmatch, parts))
        marks: list[bytes] = []
        letters: set[str] = set()
        for part in parts:
            if part.isascii():
                letters |= {*part.lower(), *part.upper()}
                marks.append(part.encode())
            else:
                marks += [form for letter in _cases_of(part) for form in _forms_of(letter)]
        self._marks = tuple(dict.fromkeys(marks))
        codes = "|".join(f"{ord(letter):02x}" for letter in sorted(letters))
        self._escape = re.compile(rb"\\u00(?:%b)" % codes.encode()) if letters else None
        self.overlap = max(_ESCAPE_BYTES, _LOOKED_BACK, *map(len, self._marks)) + 2
        """How many bytes two pieces of one line must share for nothing to be lost between them."""

    @classmethod
    def for_needle(cls, needle: str) -> Sieve | None:
        """The sieve for this needle; None where any line might hold it."""
        return cls.for_any([needle])

    @classmethod
    def for_any(cls, needles: Iterable[str]) -> Sieve | None:
        """The sieve for whatever holds one of these; None where any line might."""
        parts = [_part_of(needle) for needle in needles]
        found = tuple(dict.fromkeys(part for part in parts if part is not None))
        return cls(*found) if found and None not in parts else None

    def by_word(self) -> Sieve | None:
        """One that lets through whatever may become a row, too; None where any line might.

        In a row one space stands for whatever parts two words, so it looks for one word alone.
        """
        return self._by_word

    @cached_property
    def _by_word(self) -> Sieve | None:
        words = [_word_of(part) for part in self._parts]
        found = tuple(word for word in words if word is not None)
        if None in words:
            return None
        return self if found == self._parts else Sieve(*found)

    def any_in(self, block: bytes) -> bool:
        """Whether a part of a file may become a text, or a row, that holds the needle.

        It looks at whole files at the speed of a disk, and so it asks for no more than this.
        """
        found = any(expression.search(block) for expression in self._expressions)
        return found or (self._numeric and any(True for _ in _odd_numbers(block.lower())))

    @cached_property
    def _expressions(self) -> tuple[re2._Regexp, ...]:
        import re2  # few sift whole files, and only in processes of their own

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.log_errors = False
        words = [map(re.escape, _WORD.findall(part)) for part in self._parts if part.isascii()]
        parts = [b"(?i)" + _GAP.join(word.encode() for word in of_part) for of_part in words]
        marks = [mark for mark in self._marks if b"\\" in mark or not mark.isascii()]
        parts += [b"(?i)" + re.escape(mark) for mark in marks]
        if self._escape is not None:  # its first letters are found quickest as they are
            parts.append(self._escape.pattern.replace(b"(?:", b"(?i:"))
        return tuple(re2.compile(part, options) for part in parts)

    def may_be_in(self, shown: str) -> bool:
        """Whether a line that is shown to people holds that part of one of the needles."""
        line = folded(shown)
        return any(part in line for part in self._parts)

    def hits(self, block: bytes) -> list[int]:
        """For each line of the block that may hold the needle an offset on it, in order."""
        lowered = block.lower()
        found: set[int] = set()
        for mark in self._marks:
            found.update(_each_line(lowered, mark))
        if self._escape is not None:
            escape = self._escape.search(lowered)
            while escape is not None:
                found.add(escape.start())
                feed = lowered.find(b"\n", escape.start())
                escape = self._escape.search(lowered, feed) if feed >= 0 else None
        if self._numeric:
            found.update(_odd_numbers(lowered))
        return sorted(found)


def _part_of(needle: str) -> str | None:
    """What of a needle is looked for; None where any line might hold it."""
    runs: list[str] = [run for run in _RUN.findall(folded(needle)) if not _is_rewritten(run)]
    if runs:
        return max(runs, key=len)
    return next((letter for letter in folded(needle) if _is_lasting(letter)), None)


def _word_of(part: str) -> str | None:
    """The longest word of a part; None where it has none that lasts."""
    if not part.isascii():
        return part
    words: list[str] = [word for word in _WORD.findall(part) if not _is_rewritten(word)]
    return max(words, key=len, default=None)


def _is_rewritten(run: str) -> bool:
    """Whether a reader may write it for numbers of any look: ``1e400`` is null."""
    number = _NUMBER.fullmatch(run)
    return run in _NULL or (number is not None and number[1] is not None)


def _odd_numbers(lowered: bytes) -> Iterator[int]:
    """Where numbers stand whose digits a reader may change: ``1e2`` is 100.0, and a number of too
    many digits is rounded."""
    yield from _each_line(lowered, b"0.0000")
    digits = lowered.translate(_ANY_DIGIT)
    yield from _each_line(digits, b"0" * _EXACT_DIGITS)
    for mark in _EXPONENTS:
        at = digits.find(mark)
        while at >= 0:
            # Most of these are no numbers but parts of ids.
            window = lowered[max(0, at - _LOOKED_BACK) : at + len(mark) + 1]
            if _WITH_EXPONENT.search(window):
                yield at
            at = digits.find(mark, at + 1)


def _each_line(block: bytes, mark: bytes) -> Iterator[int]:
    """For each line that holds the mark where it first does."""
    at = block.find(mark)
    while at >= 0:
        yield at
        feed = block.find(b"\n", at)
        at = block.find(mark, feed) if feed >= 0 else -1


def _is_lasting(letter: str) -> bool:
    """Whether a letter beyond ASCII is never put in place of another."""
    code = ord(letter)
    return code > 0x7F and code != 0xFFFD and not 0xD800 <= code <= 0xDFFF


def _cases_of(letter: str) -> list[str]:
    """Every code point that is ``letter`` once it is folded."""
    if ord(letter) > _LAST_CASED:
        return [letter]
    cased = map(chr, range(0x80, min(_LAST_CASED, sys.maxunicode) + 1))
    return [one for one in cased if folded(one) == letter]


def _forms_of(letter: str) -> tuple[bytes, bytes]:
    """As UTF-8, and how an escape of it ends; one of two halves may be escaped over again, with
    more backslashes between them."""
    escaped = json.dumps(letter)[1:-1][-_ESCAPE_BYTES:]
    return letter.encode("utf-8", "surrogatepass").lower(), escaped.lower().encode()
