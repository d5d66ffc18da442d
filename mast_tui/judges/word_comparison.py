"""A quote beside the words that it was found in: the same, reworded, or altered.

Similar characters do not make a quote true: another number, a ``not`` more or another name changes
few of them. So the words of both are aligned one by one. Case, punctuation, markup and escapes do
not count; a word that differs does, unless it is another form of its counterpart or a small word
that says little by itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from html import unescape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rapidfuzz.distance import Opcode

ALIKE: Final = 0.9
"""From this similarity on (optimal string alignment, of 1) a word is a counterpart mistyped."""

_SHORTEST_FORM: Final = 4
"""Words with fewer letters have no other forms: *do* and *to* are close, and not alike."""

_SURELY_TURNED: Final = 6
"""In words with so many letters two neighbours that are turned are a slip, not another word."""

_FILLER: Final = re.compile(
    "an?|the|th(?:is|at|ese|ose)|i[st]|are|was|were|be(?:en|ing)?|am|ha[sd]|have|d(?:o|oes|id)"
    "|of|to|in|on|at|for|and|but|(?:al)?though|however|yet|so|then|also|just|its|as|s"
)
"""Words that may be there or not, and stand for each other, without changing what is said."""

_PRONOUN: Final = re.compile(
    "i|me|my|we|us|our|you|your|he|him|his|she|her|its?|the(?:y|m|ir)|th(?:is|at|ese|ose)|s|m|[rv]e"
)
"""What a note in square brackets may stand for, as in ``[the agent] restarted it``."""

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
"""An HTML entity that stands for a sign and not for a letter, however often it was escaped."""

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
    r"|^[ \t]*(?:>|\d{1,6}(?:[.)|→\t]|:(?!\d)))"  # a citation's mark, the number of a line
    r"|^[ \t]*`{3}\w*",
    re.MULTILINE,
)
_ELLIPSIS: Final = re.compile(r"…|\.{3,}")
_BRACKETED: Final = re.compile(r"\[[^\[\]\n]{1,80}\]")
_SENTENCE_END: Final = frozenset(".!?:;\n|*#>-•\"'([{")
_OF_NAMES: Final = frozenset("/\\@$=_")


class Likeness(IntEnum):
    """How the words of a quote are to those that it was found in."""

    ALTERED = 0
    REWORDED = 1
    SAME = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """Words that differ: their places in the quote and in the text, either of which may be empty.

    ``altering`` is whether they say something else.
    """

    quoted: tuple[int, int]
    standing: tuple[int, int]
    altering: bool


@dataclass(frozen=True, slots=True)
class WordComparison:
    """A quote beside a text.

    ``start`` and ``end`` bound the words of the text that it is about. ``loose``: the first or last
    word of the quote has no equal in it, as if the text had been cut too short.
    """

    likeness: Likeness
    differences: tuple[Difference, ...]
    start: int
    end: int
    loose: bool = False

    @property
    def altered_words(self) -> int:
        """How far apart they are: the characters of the words that say something else."""
        ends = (end for d in self.differences if d.altering for end in (d.quoted, d.standing))
        return sum(end - start for start, end in ends)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word that has no equal in its place.

    Attributes:
        text: The word in the form in which words are compared.
        exact: It is a name, a number or a sign, which has no other forms.
        aside: It may be present or absent, as it is markup or a note in square brackets.
    """

    text: str
    exact: bool
    aside: bool


class _Words:
    """The words of a text as they are compared, with their places in it.

    What only words without an equal are asked for is found out when they are. ``standing``: the
    text is that of a trace, and not what somebody has written of it.
    """

    def __init__(self, text: str, *, standing: bool = False) -> None:
        flat = straightened(text)
        if "&" in flat or "\\" in flat:
            flat = loosened(_CODED.sub(_decoded, flat))
        self._plain = flat
        self._standing = standing
        self._asides: list[tuple[int, int]] | None = None
        self.texts: list[str] = []
        self.places: list[tuple[int, int]] = []
        for match in _TOKEN.finditer(flat):
            word = match[0]
            if word.isascii() and word.isalnum():
                self.texts.append(word.lower())
                self.places.append(match.span())
                continue
            for each in _normal(word, number=match["number"] is not None):
                self.texts.append(each)
                self.places.append(match.span())

    def __len__(self) -> int:
        return len(self.texts)

    def words(self, first: int, end: int) -> list[_Word]:
        """Those from ``first`` to before ``end``."""
        return [self._word(index) for index in range(first, end)]

    def span(self, first: int, end: int) -> tuple[int, int]:
        """The place of some words; of none the place before the word that follows."""
        if first < end:
            return self.places[first][0], self.places[end - 1][1]
        offset = self.places[first][0] if first < len(self) else self.places[-1][1] if self else 0
        return offset, offset

    def has_gap(self, first: int, end: int) -> bool:
        """Whether something was left out before one of these words, or behind them."""
        start = self.places[first - 1][1] if first else 0
        stop = self.places[end][0] if end < len(self) else len(self._plain)
        return _ELLIPSIS.search(self._plain, start, stop) is not None

    def _word(self, index: int) -> _Word:
        start, end = self.places[index]
        if self._asides is None:
            pattern = _MARKUP if self._standing else _BRACKETED
            self._asides = [match.span() for match in pattern.finditer(self._plain)]
        # In a trace a sign such as a tick is markup too: quotes often leave it out.
        sign = not any(map(str.isalnum, self.texts[index])) and not self._plain[start].isascii()
        aside = (self._standing and sign) or any(a <= start < b for a, b in self._asides)
        exact = _is_name(self._plain, start, end)
        return _Word(self.texts[index], exact, aside)


def straightened(text: str) -> str:
    """The text with straight quotes and dashes; its length stays the same."""
    if text.isascii():
        return text
    return _TYPOGRAPHIC.sub(lambda match: _STRAIGHT[match[0]], text)


def loosened(text: str) -> str:
    """Return the text with straight quotes and dashes and with blanks for escapes.

    Every backslash becomes a blank, with an ``n``, ``r`` or ``t`` after it, however often a text
    was escaped. So does every character of an HTML entity for a sign. The length stays the same.
    """
    text = straightened(text)
    if "&" in text:
        text = SIGN_ENTITY.sub(_blanks, text)
    if "\\" in text:
        for escape in _ESCAPES:
            text = text.replace(escape, " " * len(escape))
    return text


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])


def without_markup(text: str) -> str:
    """The text with blanks for tags and for the addresses of links; its length stays the same."""
    if "<" in text:
        text = _TAG.sub(_blanks, text)
    return _ADDRESS.sub(_blanks, text) if "](" in text else text


def word_count(text: str) -> int:
    """How many words a text has; in scripts without blanks each sign is one."""
    return len(_Words(text))


def same_words(quote: str, text: str) -> bool:
    """Whether both are the same words, each parted from the next as in the other."""
    return _Words(quote).texts == _Words(text).texts


def compare(quote: str, text: str, *, in_parts: bool = False) -> WordComparison:
    """Compare a quote with the stretch of text that it was found in, word by word.

    Args:
        quote: the words that are said to stand there.
        text: the stretch; words at its ends that the quote does not have do not count.
        in_parts: nor do those that stand where the quote has a ``…``.
    """
    from rapidfuzz.distance import Levenshtein

    ours, theirs = _Words(quote), _Words(text, standing=True)
    if not ours:
        same = "".join(loosened(quote).split()) == "".join(loosened(text).split())
        return WordComparison(Likeness.SAME if same else Likeness.ALTERED, (), 0, len(text))
    if ours.texts == theirs.texts:
        return WordComparison(Likeness.SAME, (), 0, len(text))
    blocks = list(_blocks(Levenshtein.opcodes(ours.texts, theirs.texts)))
    first, last = 0, len(theirs)
    if blocks and blocks[0][0] == blocks[0][1] == 0:
        first = blocks.pop(0)[3]
    if blocks and blocks[-1][0] == blocks[-1][1] == len(ours):
        last = blocks.pop()[2]
    differences = []
    likeness = Likeness.SAME
    for a, b, c, d in blocks:
        gap = in_parts and ours.has_gap(a, b)
        edge = a == 0 or b == len(ours)
        block_likeness = _judged(ours.words(a, b), theirs.words(c, d), gap, edge=edge)
        if block_likeness is not Likeness.SAME:
            altering = block_likeness is Likeness.ALTERED
            differences.append(Difference(ours.span(a, b), theirs.span(c, d), altering))
        likeness = min(likeness, block_likeness)
    start = theirs.places[first][0] if 0 < first < len(theirs) else 0
    end = theirs.places[last - 1][1] if first < last < len(theirs) else len(text)
    loose = any(a == 0 or b == len(ours) for a, b, _, _ in blocks)
    return WordComparison(likeness, tuple(differences), start, end, loose)


def _blocks(codes: Iterable[Opcode]) -> Iterator[tuple[int, int, int, int]]:
    """The stretches that differ in both, neighbours joined."""
    block: tuple[int, int, int, int] | None = None
    for code in codes:
        if code.tag == "equal":
            if block is not None:
                yield block
            block = None
        elif block is None:
            block = (code.src_start, code.src_end, code.dest_start, code.dest_end)
        else:
            block = (block[0], code.src_end, block[2], code.dest_end)
    if block is not None:
        yield block


def _judged(ours: Sequence[_Word], theirs: Sequence[_Word], gap: bool, *, edge: bool) -> Likeness:
    """How words of a quote are to those in their place.

    Args:
        ours: words of the quote.
        theirs: those of the text in their place.
        gap: some of these were left out on purpose.
        edge: they begin or end the quote, so that a word too much may stand further out.
    """
    if _together(ours) == _together(theirs):
        return Likeness.SAME
    likeness = Likeness.SAME
    added: list[_Word] = []
    left: list[_Word] = []
    start = 0
    for word in ours:
        position = next((i for i in range(start, len(theirs)) if _alike(word, theirs[i])), None)
        if position is None:
            added.append(word)
        else:
            left += theirs[start:position]
            start = position + 1
            likeness = Likeness.REWORDED
    left += theirs[start:]
    notes = any(word.aside for word in added)
    for word in added:
        filler = not edge and _FILLER.fullmatch(word.text)
        if not (filler or (word.aside and not _weighty(word))):
            return Likeness.ALTERED
        likeness = Likeness.REWORDED
    for word in left:
        if word.aside or gap:
            continue
        if not (_FILLER.fullmatch(word.text) or (notes and _PRONOUN.fullmatch(word.text))):
            return Likeness.ALTERED
        likeness = Likeness.REWORDED
    return likeness


def _together(words: Sequence[_Word]) -> str:
    """Words as one; the digits of two numbers stay apart, as there was a point between them."""
    joined = " ".join(word.text for word in words).replace("'", "")
    return _BLANK.sub("", joined)


def _weighty(word: _Word) -> bool:
    """Whether a word changes what is said wherever it stands."""
    return _NEGATION.fullmatch(word.text) is not None or any(map(str.isdigit, word.text))


def _alike(one: _Word, other: _Word) -> bool:
    """Whether a word is another form of its counterpart, or mistyped."""
    a, b = one.text, other.text
    if a == b:
        return True
    if one.exact or other.exact or min(len(a), len(b)) < _SHORTEST_FORM or a[0] != b[0]:
        return False
    if _stem(a) == _stem(b):
        return True
    from rapidfuzz.distance import OSA

    if len(a) >= _SURELY_TURNED and sorted(a) == sorted(b) and OSA.distance(a, b) == 1:
        return True
    return OSA.normalized_similarity(a, b) >= ALIKE


def _stem(word: str) -> str:
    """An English word without the ending that its other forms lack."""
    for suffix, instead in _SUFFIXES.items():
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix) + instead
            break
    return word[:-1] if word[-1] == word[-2] else word


def _normal(word: str, *, number: bool) -> tuple[str, ...]:
    """A word as it is compared; a contraction with ``not`` is two."""
    word = word.replace("\0", "").rstrip("_")
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


def _decoded(match: re.Match[str]) -> str:
    """The character that an escape stands for, as long as the escape is."""
    char = chr(int(match[1], 16)) if match[1] else unescape(match[0])
    if len(char) != 1 or "\ud800" <= char <= "\udfff":
        return match[0]
    return straightened(char) + "\0" * (len(match[0]) - 1)


def _is_name(text: str, start: int, end: int) -> bool:
    """Whether a word can be a name, so that another one like it is another thing."""
    word = text[start:end].replace("\0", "")
    if not word.isalpha() and not word.replace("'", "").isalpha():
        return True
    if text[start - 1 : start] in _OF_NAMES and start:
        return True
    if text[end : end + 1] in _OF_NAMES and end < len(text):
        return True
    if text[end : end + 1] in (".", "(", "-") and text[end + 1 : end + 2].isalnum():
        return True
    if start and text[start - 1] in ".-" and text[start - 2 : start - 1].isalnum():
        return True
    if word.islower():
        return False
    if not word[1:].islower():
        return True
    ahead = text[:start].rstrip(" \t")[-1:]
    return bool(ahead) and ahead not in _SENTENCE_END
