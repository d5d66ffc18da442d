"""The tokens of texts, estimated from their characters, and the share of each text in a request.

The estimate needs no tokenizer: each kind of character has a weight. A digit after a letter has an
additional weight, because tokenizers split hashes, ids and base64 into many tokens. The weights
were fitted to the larger count of two tokenizers (cl100k, o200k) on recorded runs, code and text in
a dozen scripts. They were then raised by about a tenth, because a request that is too long must be
sent again. On recorded runs, the estimate of 98 of 100 texts is between 0.8 and 1.35 times the
count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mast_tui.judges.llm.prompt import prompt_text

BOUNDARY_TOKENS: Final = 6
"""The approximate tokens of a boundary."""

_LOWER: Final = 0
_UPPER: Final = 1
_DIGIT: Final = 2
_SIGN: Final = 3
_SPACE: Final = 4
_BREAK: Final = 5
_TWO_BYTES: Final = 6  # Latin with accents, Greek, Cyrillic, Hebrew, Arabic
_THREE_BYTES: Final = 7  # Chinese, Japanese, Korean, Indic scripts, symbols
_FOUR_BYTES: Final = 8  # emoji, rare signs
_CONTINUATION: Final = 9  # the bytes after the first byte of a character

_WEIGHTS: Final = ((_UPPER, 0.35), (_DIGIT, 0.52), (_SIGN, 0.7), (_SPACE, 0.17), (_BREAK, 0.3))
_LOWER_WEIGHT: Final = 0.225
_WIDE_WEIGHTS: Final = ((_TWO_BYTES, 0.65), (_THREE_BYTES, 1.2), (_FOUR_BYTES, 3.2))
_PAIR_WEIGHTS: Final = (
    (bytes((_LOWER, _DIGIT)), 1.0),
    (bytes((_UPPER, _DIGIT)), 2.9),
)
_KINDS_BY_FIRST_BYTE: Final = (
    (0xF0, _FOUR_BYTES),
    (0xE0, _THREE_BYTES),
    (0xC0, _TWO_BYTES),
    (0x80, _CONTINUATION),
)


def _kind_of_byte(byte: int) -> int:
    """Return the kind of a UTF-8 byte: the length of its character, or the kind of ASCII."""
    for first_byte, kind in _KINDS_BY_FIRST_BYTE:
        if byte >= first_byte:
            return kind
    char = chr(byte)
    if char.isalpha():
        return _LOWER if char.islower() else _UPPER
    if char.isdigit():
        return _DIGIT
    if char in " \t":
        return _SPACE
    return _BREAK if char in "\n\r" else _SIGN


_KINDS: Final = bytes(map(_kind_of_byte, range(256)))
_LOWER_KIND: Final = bytes((_LOWER,))


def estimate(text: str) -> int:
    """Estimate the tokens of a text; a text that is not empty has at least one."""
    if not text:
        return 0
    kinds = text.encode("utf-8", "surrogatepass").translate(_KINDS)
    other_kinds = kinds.translate(None, _LOWER_KIND)  # without the most frequent kind
    total = (len(kinds) - len(other_kinds)) * _LOWER_WEIGHT
    weights = _WEIGHTS if text.isascii() else _WEIGHTS + _WIDE_WEIGHTS
    # Plain loops are fastest, because most texts of a trace are short.
    for kind, weight in weights:
        total += other_kinds.count(kind) * weight
    if _DIGIT in other_kinds:
        for adjacent_kinds, weight in _PAIR_WEIGHTS:  # a digit after a letter begins a token
            total += kinds.count(adjacent_kinds) * weight
    return 1 + int(total)


HEADER_TOKENS: Final = 24
"""The approximate tokens of a span's header."""

FRAME_TOKENS: Final = 200
"""The approximate tokens of the lines around the spans, such as the question."""

_UNITS: Final = 40
"""The number of units that a budget is divided into."""

_TAIL_SPANS: Final = 4
_TAIL_WEIGHT: Final = 8
"""The weight, in units, of each of the last spans of a run."""

_WEIGHT: Final = 5
"""The weight, in units, of each other span."""

_HEAD_SHARE: Final = 0.6
"""The share of a shortened text that comes from its beginning."""

_SNAP_CHARS: Final = 200
"""The most characters that a cut moves to reach a line break."""


def task_room(budget: int) -> int:
    """Return the token limit of the task."""
    return budget // 6


def story_room(budget: int) -> int:
    """Return the token limit of the story of the run."""
    return min(900, budget // 6)


def artefacts_room(budget: int) -> int:
    """Return the token limit of the final patch and the test results."""
    return budget // 5


def weight(index: int, spans: int) -> int:
    """Return the weight of a span's text; the last spans of a run weigh more.

    Args:
        index: The index of the span.
        spans: The number of spans of the run.
    """
    return _TAIL_WEIGHT if index >= spans - _TAIL_SPANS else _WEIGHT


def unit(budget: int) -> int:
    """Return the tokens of one unit of the budget."""
    return max(1, budget // _UNITS)


def allotted(tokens: Sequence[int], weights: Sequence[int], room: int) -> list[int]:
    """Distribute tokens among texts by weight.

    Short texts keep all their tokens, and long texts share the rest.

    Args:
        tokens: The tokens of each text.
        weights: The weight of each text.
        room: The token limit of all texts together.

    Returns:
        The token limit of each text.
    """
    if sum(tokens) <= room:
        return list(tokens)

    def shares_of(unit_tokens: int) -> list[int]:
        limits = (unit_tokens * text_weight for text_weight in weights)
        return [min(length, limit) for length, limit in zip(tokens, limits, strict=True)]

    # Search for the most tokens per unit of weight with which all texts fit.
    fitting = 0
    too_many = max(tokens) + 1
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if sum(shares_of(middle)) <= room:
            fitting = middle
        else:
            too_many = middle
    return shares_of(fitting)


def left_out(count: int) -> str:
    """Return the mark that replaces a number of characters."""
    return prompt_text.LEFT_OUT.format(count=count)


def shortened(text: str, tokens: int, most_tokens: int) -> tuple[str, int]:
    """Shorten a text to its head and tail.

    Args:
        text: The text.
        tokens: The tokens of the text.
        most_tokens: The approximate token limit of the result.

    Returns:
        The shortened text, and the number of cut characters.
    """
    chars = len(text) * most_tokens // max(1, tokens)
    while True:
        head_end, tail_start = _cut_offsets(text, chars)
        used_tokens = estimate(text[:head_end]) + estimate(text[tail_start:])
        if used_tokens <= most_tokens or chars < 2:
            break
        chars = min(chars - 1, chars * most_tokens // used_tokens)
    cut_chars = tail_start - head_end
    if cut_chars <= 0:
        return text, 0
    return f"{text[:head_end]}\n{left_out(cut_chars)}\n{text[tail_start:]}", cut_chars


def _cut_offsets(text: str, chars: int) -> tuple[int, int]:
    """Return the end of the head and the start of the tail, near line breaks if possible.

    ``chars`` is the most characters of head and tail together.
    """
    head_end = int(chars * _HEAD_SHARE)
    tail_start = len(text) - (chars - head_end)
    snap_chars = min(_SNAP_CHARS, chars // 8)
    head_break = text.rfind("\n", head_end - snap_chars, head_end)
    if head_break > 0:
        head_end = head_break
    tail_break = text.find("\n", tail_start, tail_start + snap_chars)
    if tail_break >= 0:
        tail_start = tail_break + 1
    return head_end, tail_start
