"""A fast search in the bytes of a file for lines that may hold a text and need parsing."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re2

_WORD_SEQUENCE: Final = re.compile(r"[A-Za-z0-9_]+(?:[ .-][A-Za-z0-9_]+)*")
_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_NUMBER: Final = re.compile(r"[0-9]*\.?[0-9]*(e[+-]?[0-9]*)?")
_DIGITS_TO_ZEROS: Final = bytes.maketrans(b"123456789.", b"0000000000")
_GAP: Final = rb"(?:[^0-9A-Za-z_]|\\+[bfnrt]|\\+u[0-9a-f]{4})+"
"""The separators of two words in a file, which a reader may show as one space."""
_EXPONENT_MARKS: Final = (b"0e0", b"0e+", b"0e-")
_WITH_EXPONENT: Final = re.compile(rb"(?:[^0-9a-z_.-]|\\[nrt]|^)-?[0-9.]+e[+-]?[0-9]")
_EXACT_DIGITS: Final = 16
_CONTEXT_BYTES: Final = 40
_NULL: Final = "null"
_ESCAPE_BYTES: Final = 6
_LAST_CASED: Final = 0x1E943

_STAND_INS: Final = (("\u212a", "\ufdd0"), ("\u0130", "\ufdd1"))
"""The Kelvin sign and the dotted I, whose small letters are in ASCII, with replacements."""


def folded(text: str) -> str:
    """Return a text in small letters, with the same number of code points.

    Unlike with ``lower``, no other letter becomes an ASCII letter. The final sigma becomes the
    usual small sigma.
    """
    if text.isascii():
        return text.lower()
    # The replacements protect the letters that lower() would turn into ASCII letters.
    for letter, stand_in in _STAND_INS:
        text = text.replace(letter, stand_in)
    text = text.lower().replace("ς", "σ")
    for letter, stand_in in _STAND_INS:
        text = text.replace(stand_in, letter)
    return text


class Prefilter:
    """A filter for bytes of a file that may become a text with a searched text (needle).

    It looks for the longest word of each needle. A JSON file can write a word only plainly, or
    letter by letter as ``\\u0061``. The filter relies on these facts:

    - Text that a reader adds is within the preview, or set off by line feeds or punctuation.
    - A reader may write numbers in another form. If a needle is a number, the filter finds every
      line with a number whose digits may change.
    """

    def __init__(self, *parts: str) -> None:
        """Create a filter for the parts of needles that ``_searched_part`` returns."""
        self._parts = parts
        # Readers show these words exactly as the file has them.
        self._needle_words = tuple(dict.fromkeys(map(_longest_literal_word, parts)))
        self._has_numeric_needle = any(map(_NUMBER.fullmatch, self._needle_words))
        self.overlap = max(_CONTEXT_BYTES, *map(len, self._needle_words)) + 2
        """The bytes that two pieces of one line must share so that no match is lost."""

    @classmethod
    def for_any(cls, *needles: str) -> Prefilter | None:
        """Return a prefilter that finds texts with any of the needles.

        Return None if a needle has no part that bytes of a file always show.
        """
        parts = [_searched_part(needle) for needle in needles]
        distinct_parts = tuple(dict.fromkeys(part for part in parts if part is not None))
        return cls(*distinct_parts) if distinct_parts and None not in parts else None

    def may_match(self, block: bytes) -> bool:
        """Return whether a span made from these bytes may hold a needle."""
        # Search for all words of a needle together, because nearly every block of a large file has
        # the longest word alone.
        if any(expression.search(block) for expression in self._part_expressions):
            return True
        # A reader may show another number of the file as the needle.
        return self._has_numeric_needle and any(True for _ in _rewritten_numbers(block.lower()))

    def hits(self, block: bytes) -> list[int]:
        """Return the sorted offsets of possible matches, at least one on each line with a match."""
        offsets: set[int] = set()
        for expression in self._word_expressions:
            match = expression.search(block)
            while match is not None:
                offsets.add(match.start())
                line_end = block.find(b"\n", match.start())
                match = expression.search(block, line_end) if line_end >= 0 else None
        if self._has_numeric_needle:  # the needle may be the displayed form of another number
            offsets.update(_rewritten_numbers(block.lower()))
        return sorted(offsets)

    @cached_property
    def _part_expressions(self) -> tuple[re2._Regexp, ...]:
        return _compiled_expressions(self._parts)

    @cached_property
    def _word_expressions(self) -> tuple[re2._Regexp, ...]:
        return _compiled_expressions(self._needle_words)

    def may_be_in(self, text: str) -> bool:
        """Return whether a displayed text holds the searched word of one of the needles."""
        line = folded(text)
        return any(word in line for word in self._needle_words)


def _compiled_expressions(parts: Iterable[str]) -> tuple[re2._Regexp, ...]:
    """Return expressions that find each part of a needle in every spelling that a file may have."""
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
            for letter in _cases_of(part):
                patterns += [b"(?i)" + re.escape(form) for form in _forms_of(letter)]
    if letters:  # JSON may write a letter as \u0061, whose first characters have only one case
        codes = "|".join(f"{ord(letter):02x}" for letter in sorted(letters))
        patterns.append(rb"\\u00(?i:%b)" % codes.encode())
    return tuple(re2.compile(pattern, options) for pattern in dict.fromkeys(patterns))


def _searched_part(needle: str) -> str | None:
    """Return the part of a needle to search for in a file, or None.

    It is the longest sequence of ASCII words, else the first letter beyond ASCII. Parts that a
    reader may show in place of other bytes, such as ``null`` for ``1e400``, are left out.
    """
    text = folded(needle)
    sequences: list[str] = [
        sequence for sequence in _WORD_SEQUENCE.findall(text) if _literal_words(sequence)
    ]
    if sequences:
        return max(sequences, key=len)
    return next((letter for letter in text if _is_literal(letter)), None)


def _literal_words(words: str) -> list[str]:
    """Return the single words of a text; leave out those that a reader may have changed."""
    if _is_rewritten(words):
        return []
    return [word for word in _WORD.findall(words) if not _is_rewritten(word)]


def _longest_literal_word(part: str) -> str:
    return max(_literal_words(part), key=len) if part.isascii() else part


def _is_rewritten(word: str) -> bool:
    """Return whether a reader may show this word in place of a number: null for ``1e400``."""
    number = _NUMBER.fullmatch(word)
    return word in _NULL or (number is not None and number[1] is not None)


def _rewritten_numbers(lowered: bytes) -> Iterator[int]:
    """Yield the offsets of numbers whose digits a reader may change, in text of small letters.

    ``1e2`` becomes 100.0, 0.00001 becomes 1e-05, and a number of too many digits is rounded.
    """
    yield from _first_on_each_line(lowered, b"0.0000")
    with_zeros = lowered.translate(_DIGITS_TO_ZEROS)
    yield from _first_on_each_line(with_zeros, b"0" * _EXACT_DIGITS)
    for mark in _EXPONENT_MARKS:
        offset = with_zeros.find(mark)
        while offset >= 0:
            # Most of these marks are in ids, not in numbers.
            context = lowered[max(0, offset - _CONTEXT_BYTES) : offset + len(mark) + 1]
            if _WITH_EXPONENT.search(context):
                yield offset
            offset = with_zeros.find(mark, offset + 1)


def _first_on_each_line(block: bytes, mark: bytes) -> Iterator[int]:
    """Yield the offset of the first mark on each line."""
    offset = block.find(mark)
    while offset >= 0:
        yield offset
        line_end = block.find(b"\n", offset)
        offset = block.find(mark, line_end) if line_end >= 0 else -1


def _is_literal(letter: str) -> bool:
    """Return whether a letter is beyond ASCII, and readers neither replace nor insert it.

    Readers replace lone surrogates, and write U+FFFD for invalid bytes.
    """
    code = ord(letter)
    return code > 0x7F and code != 0xFFFD and not 0xD800 <= code <= 0xDFFF


def _cases_of(letter: str) -> list[str]:
    """Return all letters whose folded form is ``letter``, a letter beyond ASCII."""
    if ord(letter) > _LAST_CASED:  # beyond it no letter has two cases
        return [letter]
    candidates = map(chr, range(0x80, min(_LAST_CASED, sys.maxunicode) + 1))
    return [candidate for candidate in candidates if folded(candidate) == letter]


def _forms_of(letter: str) -> tuple[bytes, bytes]:
    """Return a letter in UTF-8, and its escape in JSON.

    Of an escape with two surrogates only the second is returned, because several backslashes may
    separate the two in nested JSON.
    """
    escaped = json.dumps(letter)[1:-1][-_ESCAPE_BYTES:]
    return letter.encode("utf-8", "surrogatepass").lower(), escaped.lower().encode()
