"""The comparison of a quote with the text where it was found: the same words, reworded, or altered.

A similarity of characters does not show a change of meaning: another number, another name or an
added ``not`` changes few characters. So the words are aligned one by one. Case, punctuation, markup
and escapes do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from html import unescape
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rapidfuzz.distance import Opcode

MISSPELLING_SIMILARITY: Final = 0.9
"""The similarity (optimal string alignment, 0 to 1) from which a word is a misspelling of
another."""

_SHORTEST_FORM: Final = 4
"""The fewest letters of a word with other forms. Shorter words such as *do* and *to* look alike."""

_SHORTEST_TRANSPOSED: Final = 6
"""The fewest letters of a word in which two exchanged neighbours count as a misspelling."""

_FILLER: Final = re.compile(
    "an?|the|th(?:is|at|ese|ose)|i[st]|are|was|were|be(?:en|ing)?|am|ha[sd]|have|d(?:o|oes|id)"
    "|of|to|in|on|at|for|and|but|(?:al)?though|however|yet|so|then|also|just|its|as|s"
)
"""Words that may be added, left out or exchanged without a change of meaning."""

_PRONOUN: Final = re.compile(
    "i|me|my|we|us|our|you|your|he|him|his|she|her|its?|the(?:y|m|ir)|th(?:is|at|ese|ose)|s|m|[rv]e"
)
"""Words that a note in square brackets may replace, as in ``[the agent] restarted it``."""

_NEGATION: Final = re.compile(
    "no(?:t|ne|r|thing|body|where)?|never|neither|without|cannot|hardly|!=?"
)

_SUFFIXES: Final = {"ies": "y", "ied": "y"} | dict.fromkeys(("ing", "es", "ed", "s", "d", "e"), "")

_STRAIGHT: Final = {
    **dict.fromkeys("“”„‟«»〝〞＂", '"'),
    **dict.fromkeys("‘’‚‛´′＇", "'"),
    **dict.fromkeys("‐‑‒–—―−", "-"),
}
_TYPOGRAPHIC: Final = re.compile(f"[{''.join(_STRAIGHT)}]")
_ESCAPES: Final = ("\\n", "\\r", "\\t", "\\")
SIGN_ENTITY: Final = re.compile(
    r"&(?:amp;){0,3}(?:amp|lt|gt|quot|apos|nbsp|#0?3[49]|#x2[27]);", re.IGNORECASE
)
"""An HTML entity of a sign (no letter), escaped once or several times."""

_CODED: Final = re.compile(r"\\+u([0-9a-fA-F]{4})|&(?:[a-zA-Z]{2,6}|#x?[0-9a-fA-F]{1,6});")

_SINGLE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
_TOKEN: Final = re.compile(
    rf"[{_SINGLE}]"
    r"|(?P<number>(?:(?<![\w.)\]\"'])[-+])?[$€£¥]?(?<![^\W_])\d+(?:[.,:]\d+)+(?![^\W\d_]))"
    rf"|(?:(?<![\w.)\]\"'])[-+](?=\d)|[$€£¥](?=\d))?[^\W_](?:(?![{_SINGLE}])[\w\0\u0300-\u036f]|'(?=[^\W\d_]))*"
    r"|(?<=\d)%|(?<=\d\ )%"
    r"|[=!<>]=|(?<=[\s\0])[<>](?=[\s\0])|!(?=\w)"
    r"|[\u2190-\u21ff\u2600-\u27bf\U0001f300-\U0001faff]"
)
_BLANK: Final = re.compile(r" (?!\d)|(?<!\d) ")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NOT: Final = re.compile(r"(?P<verb>ca(?=n't)|wo(?=n't)|sha(?=n't)|[a-z]+?)n't|cannot")
_WHOLE_VERBS: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_ADDRESS: Final = re.compile(r"\]\([^()\s]{1,500}\)")
_MARKUP: Final = re.compile(
    rf"{_TAG.pattern}|{_ADDRESS.pattern}"
    r"|^[ \t]*(?:>|\d{1,6}(?:[.)|→\t]|:(?!\d)))"  # the mark of a citation, the number of a line
    r"|^[ \t]*`{3}\w*",
    re.MULTILINE,
)
_ELLIPSIS: Final = re.compile(r"…|\.{3,}")
_BRACKETED: Final = re.compile(r"\[[^\[\]\n]{1,80}\]")
_SENTENCE_END: Final = frozenset(".!?:;\n|*#>-•\"'([{")
_NAME_SIGNS: Final = frozenset("/\\@$=_")


class WordLikeness(IntEnum):
    """The relation of a quote's words to the words of the text where it was found."""

    ALTERED = 0
    REWORDED = 1
    SAME = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """Words that differ, as ranges of characters in the quote and in the text.

    One range may be empty. ``alters_meaning`` is true if the words change the meaning.
    """

    quote_range: tuple[int, int]
    text_range: tuple[int, int]
    alters_meaning: bool


@dataclass(frozen=True, slots=True)
class WordComparison:
    """The result of comparing a quote with a text.

    ``start`` and ``end`` bound the words of the text that correspond to the quote.
    ``text_may_be_cut`` is true if the first or last word of the quote differs.
    """

    likeness: WordLikeness
    differences: tuple[Difference, ...]
    start: int
    end: int
    text_may_be_cut: bool = False

    @property
    def altered_char_count(self) -> int:
        """The number of characters in words that change the meaning, in quote and text together."""
        ranges: list[tuple[int, int]] = []
        for difference in self.differences:
            if difference.alters_meaning:
                ranges += (difference.quote_range, difference.text_range)
        return sum(end - start for start, end in ranges)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word that differs between quote and text.

    Attributes:
        text: The word as it is compared.
        has_one_form: True for a name, a number or a sign; other words have inflected forms.
        optional: True for markup and notes in square brackets, which may be left out.
    """

    text: str
    has_one_form: bool
    optional: bool


class _WordSequence:
    """The words of a text in the form in which they are compared.

    Attributes:
        texts: The words.
        ranges: The range of characters of each word in the text.
    """

    def __init__(self, text: str, *, is_trace: bool = False) -> None:
        """Split a text into words; a contraction becomes two words with one range."""
        plain_text = with_straight_quotes(text)
        if "&" in plain_text or "\\" in plain_text:
            plain_text = with_plain_signs(_CODED.sub(_decoded_escape, plain_text))
        self._plain_text = plain_text
        self._is_trace = is_trace
        self._optional_ranges: list[tuple[int, int]] | None = None
        self.texts: list[str] = []
        self.ranges: list[tuple[int, int]] = []
        for match in _TOKEN.finditer(plain_text):
            word = match[0]
            if word.isascii() and word.isalnum():
                self.texts.append(word.lower())
                self.ranges.append(match.span())
                continue
            for form in _comparable_words(word, number=match["number"] is not None):
                self.texts.append(form)
                self.ranges.append(match.span())

    def __len__(self) -> int:
        return len(self.texts)

    def slice(self, first: int, end: int) -> list[_Word]:
        """Return the words of a range with their properties.

        Args:
            first: The index of the first word.
            end: The index after the last word.
        """
        return [self._word_at(index) for index in range(first, end)]

    def span(self, first: int, end: int) -> tuple[int, int]:
        """Return the range of characters of a range of words.

        An empty range of words has an empty range of characters before the next word.

        Args:
            first: The index of the first word.
            end: The index after the last word.
        """
        if first < end:
            return self.ranges[first][0], self.ranges[end - 1][1]
        if first < len(self):
            offset = self.ranges[first][0]
        else:
            offset = self.ranges[-1][1] if self.ranges else 0
        return offset, offset

    def has_gap(self, first: int, end: int) -> bool:
        """Check whether an ellipsis is in a range of words, or right before or after it.

        Args:
            first: The index of the first word.
            end: The index after the last word.
        """
        start = self.ranges[first - 1][1] if first else 0
        stop = self.ranges[end][0] if end < len(self) else len(self._plain_text)
        return _ELLIPSIS.search(self._plain_text, start, stop) is not None

    def _word_at(self, index: int) -> _Word:
        """Return a word with its properties, which are costly to compute.

        Markup of a trace and brackets of a quote are optional: the other text may leave them out.
        """
        start, end = self.ranges[index]
        if self._optional_ranges is None:
            pattern = _MARKUP if self._is_trace else _BRACKETED
            self._optional_ranges = [match.span() for match in pattern.finditer(self._plain_text)]
        is_in_optional_range = any(
            range_start <= start < range_end for range_start, range_end in self._optional_ranges
        )
        # Quotes often leave out signs too, such as a tick.
        has_letters = any(map(str.isalnum, self.texts[index]))
        is_sign = not has_letters and not self._plain_text[start].isascii()
        is_optional = is_in_optional_range or (self._is_trace and is_sign)
        return _Word(self.texts[index], _is_name(self._plain_text, start, end), is_optional)


def with_straight_quotes(text: str) -> str:
    """Replace typographic quotes and dashes by plain ones; the length stays the same."""
    if text.isascii():
        return text
    return _TYPOGRAPHIC.sub(lambda match: _STRAIGHT[match[0]], text)


def with_plain_signs(text: str) -> str:
    """Replace typographic quotes and dashes by plain ones, and escapes by blanks.

    Escapes are ``\\n``, ``\\r``, ``\\t``, backslashes, and HTML entities of signs. The length stays
    the same.
    """
    text = with_straight_quotes(text)
    if "&" in text:
        text = SIGN_ENTITY.sub(_equal_blanks, text)
    if "\\" in text:
        for escape in _ESCAPES:
            text = text.replace(escape, " " * len(escape))
    return text


def _equal_blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])


def without_markup(text: str) -> str:
    """Replace tags and the addresses of links by blanks; the length stays the same."""
    if "<" in text:
        text = _TAG.sub(_equal_blanks, text)
    return _ADDRESS.sub(_equal_blanks, text) if "](" in text else text


def word_count(text: str) -> int:
    """Count the words of a text; in scripts without blanks, each character is a word."""
    return len(_WordSequence(text))


def same_words(quote: str, text: str) -> bool:
    """Check whether two texts have the same words and word boundaries.

    Args:
        quote: One text.
        text: The other text.
    """
    return _WordSequence(quote).texts == _WordSequence(text).texts


def compare(quote: str, text: str, *, in_parts: bool = False) -> WordComparison:
    """Compare a quote with the range of text where it was found, word by word.

    Args:
        quote: The quote.
        text: The range of text. Further words at its ends do not count.
        in_parts: True if words that the quote replaces by an ellipsis do not count either.
    """
    from rapidfuzz.distance import Levenshtein

    quote_words = _WordSequence(quote)
    text_words = _WordSequence(text, is_trace=True)
    if not quote_words:
        is_same = "".join(with_plain_signs(quote).split()) == "".join(
            with_plain_signs(text).split()
        )
        likeness = WordLikeness.SAME if is_same else WordLikeness.ALTERED
        return WordComparison(likeness, (), 0, len(text))
    if quote_words.texts == text_words.texts:
        return WordComparison(WordLikeness.SAME, (), 0, len(text))
    blocks = list(_differing_blocks(Levenshtein.opcodes(quote_words.texts, text_words.texts)))
    # Words of the text before or after the quoted words do not count.
    first_word = 0
    end_word = len(text_words)
    if blocks and blocks[0].quote_end == 0:
        first_word = blocks.pop(0).text_end
    if blocks and blocks[-1].quote_start == len(quote_words):
        end_word = blocks.pop().text_start
    likenesses = [_likeness_of(block, quote_words, text_words, in_parts) for block in blocks]
    differences = tuple(
        Difference(
            quote_words.span(block.quote_start, block.quote_end),
            text_words.span(block.text_start, block.text_end),
            alters_meaning=likeness is WordLikeness.ALTERED,
        )
        for block, likeness in zip(blocks, likenesses, strict=True)
        if likeness is not WordLikeness.SAME
    )
    # The result includes signs at an end of the text unless words are left out there.
    return WordComparison(
        min(likenesses, default=WordLikeness.SAME),
        differences,
        start=text_words.ranges[first_word][0] if first_word > 0 else 0,
        end=text_words.ranges[end_word - 1][1] if end_word < len(text_words) else len(text),
        text_may_be_cut=any(block.is_at_edge_of(quote_words) for block in blocks),
    )


class _Block(NamedTuple):
    """The indices of words that differ in a quote and a text; the ends are exclusive."""

    quote_start: int
    quote_end: int
    text_start: int
    text_end: int

    def is_at_edge_of(self, quote_words: _WordSequence) -> bool:
        """Check whether the block is at the beginning or end of the quote."""
        return self.quote_start == 0 or self.quote_end == len(quote_words)


def _likeness_of(
    block: _Block, quote_words: _WordSequence, text_words: _WordSequence, in_parts: bool
) -> WordLikeness:
    return _block_likeness(
        quote_words.slice(block.quote_start, block.quote_end),
        text_words.slice(block.text_start, block.text_end),
        has_gap=in_parts and quote_words.has_gap(block.quote_start, block.quote_end),
        at_edge=block.is_at_edge_of(quote_words),
    )


def _differing_blocks(codes: Iterable[Opcode]) -> Iterator[_Block]:
    """Yield the blocks of words that differ; neighbouring edits form one block."""
    block: _Block | None = None
    for code in codes:
        if code.tag == "equal":
            if block is not None:
                yield block
            block = None
        elif block is None:
            block = _Block(code.src_start, code.src_end, code.dest_start, code.dest_end)
        else:
            block = block._replace(quote_end=code.src_end, text_end=code.dest_end)
    if block is not None:
        yield block


def _block_likeness(
    quoted: Sequence[_Word], original: Sequence[_Word], *, has_gap: bool, at_edge: bool
) -> WordLikeness:
    """Compare words of a quote with the words of the text that they differ from.

    Args:
        quoted: The words of the quote.
        original: The words of the text.
        has_gap: True if an ellipsis of the quote may replace words of the text.
        at_edge: True if the words begin or end the quote. An added filler counts as an alteration
            there, because the range of the text may be too narrow.
    """
    if _join_words(quoted) == _join_words(original):
        return WordLikeness.SAME
    likeness = WordLikeness.SAME
    added: list[_Word] = []
    omitted: list[_Word] = []
    start = 0
    for word in quoted:
        indices = range(start, len(original))
        matching_index = next((i for i in indices if _is_form_of(word, original[i])), None)
        if matching_index is None:
            added.append(word)
        else:
            omitted += original[start:matching_index]
            start = matching_index + 1
            likeness = WordLikeness.REWORDED
    omitted += original[start:]
    has_note = any(word.optional for word in added)
    for word in added:
        is_filler = not at_edge and _FILLER.fullmatch(word.text)
        is_harmless_note = word.optional and not _changes_meaning(word)
        if not is_filler and not is_harmless_note:
            return WordLikeness.ALTERED
        likeness = WordLikeness.REWORDED
    for word in omitted:
        if word.optional or has_gap:
            continue
        # As in "[the agent] said" for "it said".
        is_replaced_pronoun = has_note and _PRONOUN.fullmatch(word.text)
        if not _FILLER.fullmatch(word.text) and not is_replaced_pronoun:
            return WordLikeness.ALTERED
        likeness = WordLikeness.REWORDED
    return likeness


def _join_words(words: Sequence[_Word]) -> str:
    """Join words without blanks, but keep blanks between digits, which may stand for a point."""
    joined = " ".join(word.text for word in words).replace("'", "")
    return _BLANK.sub("", joined)


def _changes_meaning(word: _Word) -> bool:
    """Check whether a word is a negation or a number."""
    return _NEGATION.fullmatch(word.text) is not None or any(map(str.isdigit, word.text))


def _is_form_of(word: _Word, other: _Word) -> bool:
    """Check whether two words are the same, forms of one word, or a word and its misspelling."""
    text = word.text
    other_text = other.text
    if text == other_text:
        return True
    # Names, numbers and signs have no other forms.
    if word.has_one_form or other.has_one_form:
        return False
    if min(len(text), len(other_text)) < _SHORTEST_FORM or text[0] != other_text[0]:
        return False
    if _word_stem(text) == _word_stem(other_text):
        return True
    from rapidfuzz.distance import OSA

    has_same_letters = len(text) >= _SHORTEST_TRANSPOSED and sorted(text) == sorted(other_text)
    if has_same_letters and OSA.distance(text, other_text) == 1:
        return True
    return OSA.normalized_similarity(text, other_text) >= MISSPELLING_SIMILARITY


def _word_stem(word: str) -> str:
    """Return an English word without its inflectional ending and without a doubled last letter."""
    for suffix, replacement in _SUFFIXES.items():
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix) + replacement
            break
    return word[:-1] if word[-1] == word[-2] else word


def _comparable_words(word: str, *, number: bool) -> tuple[str, ...]:
    """Return the words to compare for a word: two for a contraction, such as ``can`` and ``not``.

    Numbers lose their separators of thousands.
    """
    word = word.replace("\0", "").rstrip("_")  # NUL characters pad decoded escapes
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word)
    word = word.casefold()
    if number:
        return (_THOUSANDS.sub("", word),)
    if "n't" in word or word == "cannot":
        contraction = _NOT.fullmatch(word)
        if contraction is not None:
            verb = contraction["verb"] or "can"
            return (_WHOLE_VERBS.get(verb, verb), "not")
    return (word,)


def _decoded_escape(match: re.Match[str]) -> str:
    """Return the character of an escape, padded with NUL to keep offsets valid.

    An escape without a single valid character is returned unchanged.
    """
    char = chr(int(match[1], 16)) if match[1] else unescape(match[0])
    if len(char) != 1 or "\ud800" <= char <= "\udfff":
        return match[0]
    return with_straight_quotes(char) + "\0" * (len(match[0]) - 1)


def _is_name(text: str, start: int, end: int) -> bool:
    """Check whether a word may be a name; names have no similar forms."""
    word = text[start:end].replace("\0", "")  # NUL pads a decoded escape
    if not word.isalpha() and not word.replace("'", "").isalpha():
        return True  # with a digit or an underscore
    if text[start - 1 : start] in _NAME_SIGNS or text[end : end + 1] in _NAME_SIGNS:
        return True
    # Part of a file name, a call or a compound, as in ``config.py``, ``run(1)``, ``pre-2``.
    if text[end : end + 1] in (".", "(", "-") and text[end + 1 : end + 2].isalnum():
        return True
    if start and text[start - 1] in ".-" and text[start - 2 : start - 1].isalnum():
        return True
    if word.islower():
        return False
    if not word[1:].islower():
        return True
    # A capital letter shows a name unless it begins a sentence.
    preceding = text[:start].rstrip(" \t")[-1:]
    return bool(preceding) and preceding not in _SENTENCE_END
