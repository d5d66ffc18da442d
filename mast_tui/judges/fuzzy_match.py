"""Search for a quote in a text: exactly, then by the same words, then by a similar text.

Models change what they quote: they wrap, escape and shorten it, and copy text around it.
``readings`` lists the texts that a quote may stand for, ``parts`` splits it at its ellipses, and
``find_part`` searches for one part in one text. All offsets are code points in the text as read.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Final, NamedTuple

from mast_tui.judges.word_comparison import (
    SIGN_ENTITY,
    WordLikeness,
    compare,
    same_words,
    with_plain_signs,
    without_markup,
)
from mast_tui.labels import Match

CUTOFF: Final = 80.0
"""The similarity, of 100, from which a text is compared with a quote word by word."""

LONGEST_COMPARED: Final = 200_000
"""The characters of a text that are compared: of a longer one its two ends, all that is sent."""

WORDS_OF_A_PART: Final = 4
"""The fewest words of a part that does not occur by chance."""

_SEPARATOR: Final = "\0" * 150
"""The separator of joined texts, so long that no similar text extends across it."""

_SHORTEST_FUZZY: Final = 12
"""The fewest characters of a quote for which a similar text counts: short ones fit anywhere."""

_LONGEST_FUZZY: Final = 300
"""The most characters of a quote that are aligned with a whole text; of a longer one the two ends
are, which bounds the cost, and what is between them is compared afterwards."""

_SURE_WITHOUT_BLANKS: Final = 24
"""The fewest letters for which words that are joined or split differently count as the same."""

_MOST_HITS: Final = 20
"""The number of occurrences of the same letters whose words are compared."""

_SEARCH_REACH: Final = 24
"""The most characters beyond a range that are searched for a sign or for the end of a word."""

_SLACK: Final = 40
"""The characters on each side of a range that are compared too, since words that a quote lacks
shift its ends."""

_CHUNK: Final = 4_096

_LEFT_OUT: Final = re.compile(
    r"\[?… ?\d[^…\[\]\n]{0,60}?left out(?: ?…)?\]?"  # the mark of a text that was shortened
    r"|\[?…\]?|\[?\.{3,}\]?"
    r"|(?:^|\n)[ \t]*\[[0-9a-f]{6,64} #\d{1,9}\][^\n]*"  # the header line of a span
)
_HEADER_BEFORE: Final = re.compile(r"\s*\[?(?:[0-9a-f]{6,64} )?#\d{1,9}\][^\n]*\n")
_NUMBER_BEFORE: Final = re.compile(
    r"\s*\[?(?:[0-9a-f]{6,64} |spans? )?#\d{1,9}\s?[\]:.,)–—-]{1,2}\s*", re.IGNORECASE
)
_SPEAKER_BEFORE: Final = re.compile(
    r"[*_\[]{0,2}(?P<name>[^\s:()*\[\]][^\n:()*\[\]]{0,59}?) ?(?:[(\[][^()\[\]\n]{1,40}[)\]])?"
    r"[*_\]]{0,2}:[*_]{0,2}\s+"
)
_SPEAKER: Final = re.compile(
    r"(?:the )?(?:assistant|agent|user|human|system|tool|model|ai)"
    r"(?: (?:agent|message|result|call|output|response))?",
    re.IGNORECASE,
)
_JUDGES_NOTE: Final = re.compile(
    r" ?\[(?:[Tt]he|[Aa]n?|[Tt]his|[Tt]hat|[Ii]ts|[Tt]heir) [A-Za-z' ]{1,60}\]"
)
"""A note of the judge in square brackets, as in ``[the agent] restarted it``."""

_WRAPS: Final = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "‘": "’", "«": "»", "「": "」"}
_ESCAPE: Final = re.compile(r'\\(u[0-9a-fA-F]{4}|[nrt"\\/])')
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}

_UPPER: Final = bytes(range(65, 91))
_LOWER: Final = bytes.maketrans(_UPPER, _UPPER.lower())
_NO_LETTERS: Final = bytes(n for n in range(128) if not chr(n).isalnum())
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """The range of a quote in a text, with the kind of the match; ``end`` is exclusive."""

    start: int
    end: int
    match: Match


def readings(quote: str, is_agent: Callable[[str], bool] = lambda _name: False) -> tuple[str, ...]:
    """Return the texts that a quote may stand for, the likeliest first.

    Each text is cleaned more than the one before it:

    1. White space around the quote is removed.
    2. Quotation marks and backticks around it are removed, and a span's number or header before it.
    3. The name of a speaker before it is removed.
    4. HTML entities are decoded.
    5. The escapes of JSON are decoded.

    Args:
        quote: The words that a judge wrote.
        is_agent: Checks whether the trace has an agent with a name. Words such as *Assistant* are
            speakers in every trace.

    Returns:
        The distinct readings, none of them empty.
    """
    reading = _without_wrapping(_without_number(_without_wrapping(quote.strip())))
    distinct_readings = {quote.strip(): None, reading: None}
    speaker = _SPEAKER_BEFORE.match(reading)
    if speaker and (_SPEAKER.fullmatch(speaker["name"]) or is_agent(speaker["name"])):
        reading = _without_wrapping(reading[speaker.end() :].strip())
        distinct_readings[reading] = None
    if "&" in reading:
        reading = unescape(unescape(reading))  # twice, for ``&amp;lt;``
        distinct_readings[reading.strip()] = None
    reading = _without_wrapping(_ESCAPE.sub(_escaped_character, reading).strip())
    distinct_readings[reading] = None
    distinct_readings.pop("", None)
    return tuple(distinct_readings)


def parts(quote: str) -> tuple[str, ...]:
    """Split a quote at ellipses, marks of text that was left out, and header lines of spans.

    Parts without a letter or digit are left out.
    """
    # Nearly all quotes have nothing to split at, and the pattern is slow. A header line has " #".
    if "…" not in quote and "..." not in quote and " #" not in quote:
        return (quote,)
    pieces = (piece.strip() for piece in _LEFT_OUT.split(quote))
    return tuple(piece for piece in pieces if any(map(str.isalnum, piece)))


def letters(text: str) -> str:
    """Return the letters and digits of a text in lower case.

    The letters of escapes and HTML entities are left out, as in ``\\n`` and ``&amp;``.
    """
    if "\\" in text:
        for escape in ("\\n", "\\r", "\\t"):
            text = text.replace(escape, "")
    if "&" in text:
        text = SIGN_ENTITY.sub("", text)
    data = text.encode("utf-8", "surrogatepass").translate(_LOWER, _NO_LETTERS)
    lowered = data.decode("utf-8", "surrogatepass")
    if lowered.isascii():
        return lowered
    return _BEYOND_ASCII.sub(
        lambda match: "".join(filter(str.isalnum, match[0].casefold())), lowered
    )


def layers(text: str) -> tuple[str, ...]:
    """Return the letters of a text for a search, and those without markup if it has markup."""
    visible_text = without_markup(text)
    if visible_text is text:
        return (letters(text),)
    return letters(text), letters(visible_text)


def find_part(
    text: str,
    part: str,
    match_kind: Match,
    *,
    start: int = 0,
    text_layers: Sequence[str] | None = None,
) -> QuoteMatch | None:
    """Find a part of a quote by one kind of match.

    Args:
        text: The text to search.
        part: The part, without ellipses.
        match_kind: ``EXACT``; ``SPACING`` for the same words; ``REWORDED`` for a similar text. The
            words that differ then decide which kind of match is returned, such as ``ALTERED``.
        start: The offset from which to search.
        text_layers: ``layers(text)``, if the caller has them.

    Returns:
        The first range that matches, or None.
    """
    if start:
        text = text[start:]
        text_layers = None
    if match_kind is Match.EXACT:
        offset = text.find(part)
        match_range = None if offset < 0 else QuoteMatch(offset, offset + len(part), Match.EXACT)
    elif match_kind is Match.SPACING:
        match_range = _same_letters_match(text, part, text_layers)
    else:
        match_range = _similar_match(text, part)
    if match_range is None:
        return None
    return QuoteMatch(start + match_range.start, start + match_range.end, match_range.match)


def closest(text: str, part: str, loosest: Match, *, start: int = 0) -> QuoteMatch | None:
    """Return the closest match of a part of a quote, no looser than a kind of match.

    Args:
        text: The text to search.
        part: The part, without ellipses.
        loosest: The loosest kind of match.
        start: The offset from which to search.

    Returns:
        The first range with the closest kind of match that occurs, or None.
    """
    for match_kind in (Match.EXACT, Match.SPACING, Match.REWORDED):
        match_range = find_part(text, part, match_kind, start=start)
        if match_range is not None or match_kind is loosest:
            return match_range
    return None


def find_within(text: str, part: str, start: int, reach: int) -> QuoteMatch | None:
    """Find a part of a quote that begins soon after an offset in a text.

    Args:
        text: The text to search.
        part: The part. White space and punctuation between its words may differ in the text.
        start: The offset from which to search.
        reach: The number of characters after ``start`` within which the words must begin.

    Returns:
        The range of the words in the text, or None.
    """
    search_end = start + reach + len(part)
    match_range = closest(text[start:search_end], part, Match.SPACING)
    if match_range is None:
        return None
    first, end = _whole_words(text, start + match_range.start, start + match_range.end)
    return QuoteMatch(first, end, match_range.match) if same_words(part, text[first:end]) else None


class _JoinedPiece(NamedTuple):
    """A piece of a joined text: the index of its span, its offset in the span, and its length."""

    span_index: int
    offset: int
    length: int


class JoinedTexts:
    """The texts of spans joined to one text, which is searched faster than each by itself.

    Args:
        texts: Pairs of a span's index and its text, in any order.
    """

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        self._starts: list[int] = []
        """The offset of each piece in the joined text."""
        self._pieces: list[_JoinedPiece] = []
        joined_texts: list[str] = []
        start = 0
        for index, text in sorted(texts):
            for offset, piece in _pieces_to_compare(text):
                self._starts.append(start)
                self._pieces.append(_JoinedPiece(index, offset, len(piece)))
                joined_texts += (piece, _SEPARATOR)
                start += len(piece) + len(_SEPARATOR)
        self.text = "".join(joined_texts)

    def locate(self, match_range: QuoteMatch) -> tuple[int, int, QuoteMatch] | None:
        """Convert a range of the joined text into a range of a span.

        Returns:
            The index of the span in which the range begins, the index of the span in which it ends
            (the same span or the next), and the range in the first span. None for a range of
            separators.
        """
        piece_number = bisect_right(self._starts, match_range.start) - 1
        begins_in_separator = (
            match_range.start >= self._starts[piece_number] + self._pieces[piece_number].length
        )
        if begins_in_separator:
            piece_number += 1
        last_piece_number = bisect_left(self._starts, match_range.end) - 1
        if piece_number > last_piece_number:
            return None
        piece = self._pieces[piece_number]
        piece_start = self._starts[piece_number]
        start = max(match_range.start - piece_start, 0)
        end = min(match_range.end - piece_start, piece.length)
        range_in_span = QuoteMatch(piece.offset + start, piece.offset + end, match_range.match)
        index = piece.span_index
        ends_in_next = self._pieces[last_piece_number].span_index == index + 1
        last_index = index + 1 if ends_in_next else index
        return index, last_index, range_in_span


def clipped(text: str) -> str:
    """Return a text, or its beginning if it is too long to be compared at once."""
    return text if len(text) <= LONGEST_COMPARED else text[: LONGEST_COMPARED // 2]


def _pieces_to_compare(text: str) -> tuple[tuple[int, str], ...]:
    """Return pairs of an offset and a piece of a text: the text itself, or the ends of a long text.

    An empty text has no pieces.
    """
    if len(text) <= LONGEST_COMPARED:
        return ((0, text),) if text else ()
    tail_start = len(text) - LONGEST_COMPARED // 2
    return (0, clipped(text)), (tail_start, text[tail_start:])


def _without_wrapping(quote: str) -> str:
    """Remove up to three layers of code fences, backticks and quotation marks around a quote."""
    for _ in range(3):
        has_fence = quote.startswith("```") and quote.endswith("```") and len(quote) > 6
        if has_fence:
            quote = re.sub(r"^\w*\n", "", quote[3:-3]).strip()
        elif len(quote) > 2 and _WRAPS.get(quote[0]) == quote[-1]:
            quote = quote[1:-1].strip()
        else:
            break
    return quote


def _without_number(quote: str) -> str:
    """Remove a header line or the number of a span before a quote."""
    if quote[:1] not in "[#sS":  # as in ``[#12]``, ``#12`` and ``span #12``
        return quote
    prefix = _HEADER_BEFORE.match(quote) or _NUMBER_BEFORE.match(quote)
    return quote[prefix.end() :].strip() if prefix else quote


def _escaped_character(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign[1:], 16)) if sign[0] == "u" else _ESCAPED[sign]


def _same_letters_match(
    text: str, quote: str, text_layers: Sequence[str] | None
) -> QuoteMatch | None:
    """Find the same words, with any punctuation and blanks between them.

    The letters of the quote are searched in the layers of the text: its letters, then its letters
    without markup. A hit counts if its range has the same words as the quote.
    """
    quote_letters = letters(quote)
    if not quote_letters:
        return _same_signs_match(text, quote)
    for layer_number, layer in enumerate(layers(text) if text_layers is None else text_layers):
        is_without_markup = layer_number > 0
        offset = layer.find(quote_letters)
        if offset < 0:
            continue
        plain_text = with_plain_signs(text)
        # Blanks replace the markup, so offsets in this text are offsets in the plain text.
        layer_text = with_plain_signs(without_markup(text)) if is_without_markup else plain_text
        for _ in range(_MOST_HITS):
            letter_range = _letter_range(layer_text, offset, offset + len(quote_letters))
            start, end = _with_outer_signs(plain_text, letter_range, with_plain_signs(quote))
            hit = text[start:end]
            if len(quote_letters) >= _SURE_WITHOUT_BLANKS or is_without_markup:
                # Words that are joined or split differently count as the same.
                is_same = compare(quote, hit).likeness is WordLikeness.SAME
            else:
                is_same = same_words(quote, hit)
            if is_same:
                return QuoteMatch(start, end, Match.SPACING)
            offset = layer.find(quote_letters, offset + 1)
            if offset < 0:
                break
    return None


def _same_signs_match(text: str, quote: str) -> QuoteMatch | None:
    """Find a quote without letters or digits, with any white space in it."""
    pattern = r"\s+".join(map(re.escape, quote.split()))
    match = re.search(pattern, text) if pattern else None
    return None if match is None else QuoteMatch(match.start(), match.end(), Match.SPACING)


def _letter_range(plain_text: str, first: int, end: int) -> tuple[int, int]:
    """Return the range in a text of its letters from number ``first`` to ``end``, exclusive."""
    return _offset_of_letter(plain_text, first), _offset_of_letter(plain_text, end - 1) + 1


def _offset_of_letter(plain_text: str, number: int) -> int:
    """Return the offset in a text of its letter or digit with a number, counted from 0."""
    # Skip the letters before it in steps that are halved when they would go too far.
    offset = 0
    step = _CHUNK
    while step:
        count = len(letters(plain_text[offset : offset + step]))
        if offset + step <= len(plain_text) and count <= number:
            number -= count
            offset += step
        else:
            step //= 2
    return offset


def _with_outer_signs(plain_text: str, match_range: tuple[int, int], quote: str) -> tuple[int, int]:
    """Extend a range by the punctuation around it that the quote has too.

    The signs before the first and after the last letter of the quote are searched one by one, from
    the range outwards. ``plain_text`` and the quote are results of ``with_plain_signs``.
    """
    start, end = match_range
    letters_start = next(i for i, char in enumerate(quote) if letters(char))
    letters_end = next(i for i in range(len(quote), 0, -1) if letters(quote[i - 1]))
    for sign in reversed("".join(quote[:letters_start].split())):
        search_start = max(0, start - _SEARCH_REACH)
        preceding = plain_text[search_start:start].rstrip()
        if not preceding.endswith(sign):
            break
        start = search_start + len(preceding) - 1
    for sign in "".join(quote[letters_end:].split()):
        following = plain_text[end : end + _SEARCH_REACH]
        if not following.lstrip().startswith(sign):
            break
        end += len(following) - len(following.lstrip()) + 1
    return start, end


def _similar_match(text: str, quote: str) -> QuoteMatch | None:
    """Return the match of a quote with the most similar part of a text; None if none is similar."""
    if len(quote) < _SHORTEST_FUZZY or not text:
        return None
    if len(quote) > _LONGEST_FUZZY:
        return _long_quote_match(text, quote)
    text_range = _aligned_range(text, quote)
    return None if text_range is None else _compared_match(text, quote, *text_range)


def _aligned_range(text: str, quote: str) -> tuple[int, int] | None:
    """Return the range of a text that is most similar to a quote; None if none is similar."""
    from rapidfuzz import fuzz

    quote_without_notes = _JUDGES_NOTE.sub("", quote).strip()
    folded_quote = _case_folded(quote_without_notes or quote)
    folded_text = _case_folded(text)  # as long as the text, so its positions are those of the text
    # For a longer quote, the alignment would search the text in the quote.
    if len(folded_quote) > len(folded_text):
        similarity = fuzz.ratio(folded_quote, folded_text, score_cutoff=CUTOFF)
        return (0, len(text)) if similarity > 0 else None
    alignment = fuzz.partial_ratio_alignment(folded_quote, folded_text, score_cutoff=CUTOFF)
    if alignment is None:
        return None
    start, end = _whole_words(text, alignment.dest_start, alignment.dest_end)
    return (start, end) if start < end else None


def _long_quote_match(text: str, quote: str) -> QuoteMatch | None:
    """Find a long quote by its two ends; return None if the text between them differs."""
    from rapidfuzz import fuzz

    end_chars = _LONGEST_FUZZY // 2
    head_range = _end_range(text, quote[:end_chars].strip())
    if head_range is None:
        return None
    start, head_end = head_range
    # The match may be half to twice as long as the quote.
    tail_range = _end_range(text[head_end : start + 2 * len(quote)], quote[-end_chars:].strip())
    if tail_range is None:
        return None
    _, tail_end = tail_range
    end = head_end + tail_end
    if 2 * (end - start) < len(quote):
        return None
    if not fuzz.ratio(_case_folded(quote), _case_folded(text[start:end]), score_cutoff=CUTOFF):
        return None
    return _compared_match(text, quote, start, end)


def _end_range(text: str, quote_end: str) -> tuple[int, int] | None:
    """Return the range of a text that equals the head or tail of a long quote.

    If no range is equal but for white space, return the most similar one, None if none is similar.
    """
    match_range = closest(text, quote_end, Match.SPACING)
    if match_range is not None:
        return match_range.start, match_range.end
    return _aligned_range(text, quote_end) if text else None


def _compared_match(text: str, quote: str, start: int, end: int) -> QuoteMatch:
    """Return the match of a quote with a range of the text, trimmed to the words in common.

    If words are altered and the range may be too narrow, a wider range is compared too. It counts
    if fewer characters are altered there.
    """
    comparison = compare(quote, text[start:end])
    if comparison.text_may_be_cut and comparison.likeness is WordLikeness.ALTERED:
        wide_start, wide_end = _whole_words(
            text, max(0, start - _SLACK), min(len(text), end + _SLACK)
        )
        # Joined texts are separated by NUL: what is beyond it belongs to another text.
        separator_before = text.rfind("\0", wide_start, start)
        if separator_before >= 0:
            wide_start = separator_before + 1
        separator_after = text.find("\0", end, wide_end)
        wide_text = text[wide_start : wide_end if separator_after < 0 else separator_after]
        wide_comparison = compare(quote, wide_text)
        if wide_comparison.altered_char_count < comparison.altered_char_count:
            comparison = wide_comparison
            start = wide_start
    match = _MATCHES[comparison.likeness]
    return QuoteMatch(
        *_trimmed_range(text, start + comparison.start, start + comparison.end), match
    )


_MATCHES: Final = {
    WordLikeness.SAME: Match.SPACING,
    WordLikeness.REWORDED: Match.REWORDED,
    WordLikeness.ALTERED: Match.ALTERED,
}


def _case_folded(text: str) -> str:
    """Return the text with plain signs in lower case, unless that changes its length."""
    plain_text = with_plain_signs(text)
    lower = plain_text.lower()
    return lower if len(lower) == len(plain_text) else plain_text


def _trimmed_range(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a range without the white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Trim white space from a range, and extend it to whole words within reach of its ends."""
    start, end = _trimmed_range(text, start, end)
    for _ in range(_SEARCH_REACH):
        if start > 0 and text[start - 1].isalnum() and text[start].isalnum():
            start -= 1
        if end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
            end += 1
    return start, end
