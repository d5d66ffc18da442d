"""How many tokens a text takes, told from its characters alone: no tokenizer, no network.

Each byte of the text's UTF-8 has a weight by its kind, and the weights are added up. They are set
so that the sum lies rather above than below what the tokenizers of large models count.
"""

from __future__ import annotations

from typing import Final

# Tokens for each character of a kind. A letter of a word costs a fourth, a capital more, since
# many of them make identifiers, base64 and the like, which fall into short pieces. Digits go in
# twos at best, signs alone or in pairs. A space mostly belongs to the word behind it.
_LOWER: Final = 0
_UPPER: Final = 1
_DIGIT: Final = 2
_SIGN: Final = 3
_SPACE: Final = 4
_BREAK: Final = 5
_TWO_BYTES: Final = 6  # Latin with accents, Greek, Cyrillic, Hebrew, Arabic
_THREE_BYTES: Final = 7  # Chinese, Japanese, Korean, Indic scripts, symbols
_FOUR_BYTES: Final = 8  # emoji, rare signs
_REST: Final = 9  # what follows the first byte of a character

_WEIGHTS: Final = (0.27, 0.5, 0.6, 0.6, 0.05, 0.5, 0.7, 1.2, 3.0)


def _kind(byte: int) -> int:
    char = chr(byte)
    if byte >= 0x80:
        return (
            _REST
            if byte < 0xC0
            else _TWO_BYTES
            if byte < 0xE0
            else _THREE_BYTES
            if byte < 0xF0
            else _FOUR_BYTES
        )
    if char.islower():
        return _LOWER
    if char.isupper():
        return _UPPER
    if char.isdigit():
        return _DIGIT
    if char in " \t":
        return _SPACE
    return _BREAK if char in "\n\r" else _SIGN


_KINDS: Final = bytes(_kind(byte) for byte in range(256))


def estimate(text: str) -> int:
    """About how many tokens ``text`` takes; 0 for an empty one, else at least 1."""
    return estimate_bytes(text.encode("utf-8", "surrogatepass"))


def estimate_bytes(data: bytes) -> int:
    """The same for a text that is UTF-8 already."""
    if not data:
        return 0
    kinds = data.translate(_KINDS)
    return 1 + int(sum(kinds.count(kind) * weight for kind, weight in enumerate(_WEIGHTS)))
