"""Search for a quote in a text: exactly, then by the same words, then by a similar text.

Models change the texts that they quote: they wrap, escape and shorten them. All offsets are code
points in the text as read.
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
"""The similarity (0 to 100) from which a text is compared with a quote word by word."""

LONGEST_COMPARED: Final = 200_000
"""The most characters of a text that are compared. Of a longer text, only the two ends are."""

WORDS_OF_A_PART: Final = 4
"""The fewest words of a long part. Shorter parts may occur by chance."""

_SEPARATOR: Final = "\0" * 150
"""The separator of joined texts, too long for a similar text to extend across it."""

_SHORTEST_FUZZY: Final = 12
"""The fewest characters of a quote that is searched by similarity. Shorter quotes fit anywhere."""

_LONGEST_FUZZY: Final = 300
"""The most characters of a quote that are aligned with a text at once, which bounds the cost. A
longer quote is searched by its two ends."""

_SURE_WITHOUT_BLANKS: Final = 24
"""The fewest letters of a quote for which differences in word boundaries do not count."""

_MOST_HITS: Final = 20
"""The most occurrences of the quote's letters that are compared word by word."""

_SEARCH_REACH: Final = 24
"""The most characters beyond a range that are searched for punctuation or the end of a word."""

_SLACK: Final = 40
"""The characters on each side of a range that are compared too. The ends of a range may be shifted
if the quote lacks words."""

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
    """A range of a text that matches a quote; ``end`` is exclusive."""

    start: int
    end: int
    match: Match


def readings(quote: str, is_agent: Callable[[str], bool] = lambda _name: False) -> tuple[str, ...]:
    """Return the texts that a quote may stand for, the most likely first.

    Each text is cleaned more than the one before it:

    1. White space around the quote is removed.
    2. Quotation marks, backticks and a span's number or header are removed.
    3. The name of a speaker before the quote is removed.
    4. HTML entities are decoded.
    5. JSON escapes are decoded.

    Args:
        quote: The words that a judge wrote.
        is_agent: Checks whether the trace has an agent of a name.

    Returns:
        The distinct texts, none of them empty.
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
    """Split a quote at ellipses, marks of left-out text, and header lines of spans.

    Parts without a letter or digit are dropped.
    """
    # The pattern is slow, and nearly all quotes have nothing to split at. A header line has " #".
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
    """Return the letters of a text, followed by its letters without markup if it has any."""
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
        match_kind: ``EXACT``; ``SPACING`` for the same words; ``REWORDED`` for a similar text,
            whose match may also turn out as ``SPACING`` or ``ALTERED``.
        start: The offset from which to search.
        text_layers: ``layers(text)``, if the caller has computed them.

    Returns:
        The first matching range, or None.
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
    """Find a part of a quote by the closest kind of match that succeeds.

    Args:
        text: The text to search.
        part: The part, without ellipses.
        loosest: The loosest kind of match to try.
        start: The offset from which to search.

    Returns:
        The first matching range, or None.
    """
    for match_kind in (Match.EXACT, Match.SPACING, Match.REWORDED):
        match_range = find_part(text, part, match_kind, start=start)
        if match_range is not None or match_kind is loosest:
            return match_range
    return None


def find_within(text: str, part: str, start: int, reach: int) -> QuoteMatch | None:
    """Find a part of a quote that begins soon after an offset.

    Args:
        text: The text to search.
        part: The part, without ellipses.
        start: The offset from which to search.
        reach: The most characters between ``start`` and the part.

    Returns:
        The range of the same words, or None.
    """
    search_end = start + reach + len(part)
    match_range = closest(text[start:search_end], part, Match.SPACING)
    if match_range is None:
        return None
    first, end = _whole_words(text, start + match_range.start, start + match_range.end)
    return QuoteMatch(first, end, match_range.match) if same_words(part, text[first:end]) else None


class _JoinedPiece(NamedTuple):
    """A piece of a joined text: the index of its span, the offset in that span, and the length."""

    span_index: int
    offset: int
    length: int


class JoinedTexts:
    """The texts of several spans, joined because one long search is faster than many short ones.

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
            The index of the span in which the range begins; that of the same or the next span, in
            which it ends; and the range in the first span. None if the range covers only
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
    """Return pairs of an offset and a piece: the whole text, or the two ends of a long text."""
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

    A range counts if its letters and its words equal those of the quote. If the letters do not
    occur, the text is searched without its markup.
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
        # ``without_markup`` puts blanks in place of the markup, so offsets stay valid.
        layer_text = with_plain_signs(without_markup(text)) if is_without_markup else plain_text
        for _ in range(_MOST_HITS):
            letter_range = _letter_range(layer_text, offset, offset + len(quote_letters))
            start, end = _with_outer_signs(plain_text, letter_range, with_plain_signs(quote))
            hit = text[start:end]
            if len(quote_letters) >= _SURE_WITHOUT_BLANKS or is_without_markup:
                # Differences in word boundaries do not count.
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
    """Find a quote without letters or digits; any white space matches white space in the quote."""
    pattern = r"\s+".join(map(re.escape, quote.split()))
    match = re.search(pattern, text) if pattern else None
    return None if match is None else QuoteMatch(match.start(), match.end(), Match.SPACING)


def _letter_range(plain_text: str, first: int, end: int) -> tuple[int, int]:
    """Return the range of text from letter number ``first`` to letter number ``end``, exclusive."""
    return _offset_of_letter(plain_text, first), _offset_of_letter(plain_text, end - 1) + 1


def _offset_of_letter(plain_text: str, number: int) -> int:
    """Return the offset of a letter or digit by its number, counted from 0."""
    # Skip letters in steps. A step that would go too far is halved.
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

    The arguments are results of ``with_plain_signs``.
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
    """Return the most similar range of a text; None if no range is similar."""
    if len(quote) < _SHORTEST_FUZZY or not text:
        return None
    if len(quote) > _LONGEST_FUZZY:
        return _long_quote_match(text, quote)
    text_range = _aligned_range(text, quote)
    return None if text_range is None else _compared_match(text, quote, *text_range)


def _aligned_range(text: str, quote: str) -> tuple[int, int] | None:
    """Return the range of a text that is most similar to a quote; None if no range is similar."""
    from rapidfuzz import fuzz

    quote_without_notes = _JUDGES_NOTE.sub("", quote).strip()
    folded_quote = _case_folded(quote_without_notes or quote)
    folded_text = _case_folded(text)  # as long as ``text``, so offsets are valid in both
    # The alignment would search the shorter text in the longer quote.
    if len(folded_quote) > len(folded_text):
        similarity = fuzz.ratio(folded_quote, folded_text, score_cutoff=CUTOFF)
        return (0, len(text)) if similarity > 0 else None
    alignment = fuzz.partial_ratio_alignment(folded_quote, folded_text, score_cutoff=CUTOFF)
    if alignment is None:
        return None
    start, end = _whole_words(text, alignment.dest_start, alignment.dest_end)
    return (start, end) if start < end else None


def _long_quote_match(text: str, quote: str) -> QuoteMatch | None:
    """Find a long quote by its two ends; return None if the text between them is not similar."""
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
    """Return the range of a text with the same words as an end of a quote, or with similar text."""
    match_range = closest(text, quote_end, Match.SPACING)
    if match_range is not None:
        return match_range.start, match_range.end
    return _aligned_range(text, quote_end) if text else None


def _compared_match(text: str, quote: str, start: int, end: int) -> QuoteMatch:
    """Compare a quote with a range word by word, and trim the range to the words in common.

    The range may be too narrow. Then a wider range replaces it if fewer characters are altered
    there.
    """
    comparison = compare(quote, text[start:end])
    if comparison.text_may_be_cut and comparison.likeness is WordLikeness.ALTERED:
        wide_start, wide_end = _whole_words(
            text, max(0, start - _SLACK), min(len(text), end + _SLACK)
        )
        # A NUL separates joined texts. Text beyond it belongs to another span.
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
    """Return the text in lower case with plain signs; keep the case if its length would change."""
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
    """Trim white space from a range, then extend it to whole words."""
    start, end = _trimmed_range(text, start, end)
    for _ in range(_SEARCH_REACH):
        if start > 0 and text[start - 1].isalnum() and text[start].isalnum():
            start -= 1
        if end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
            end += 1
    return start, end
