"""Search for a quote in a text: exactly, then by the same words, then by a similar text.

Models change what they quote: they wrap, escape and shorten it, and copy text around it.
``readings`` lists the possible meanings of a quote, ``parts`` splits it at its ellipses, and
``find_part`` searches for one part in one text. All offsets are code points in the text as read.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Final

from mast_tui.judges.word_comparison import (
    SIGN_ENTITY,
    WordLikeness,
    compare,
    loosened,
    same_words,
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

_WORD_EDGE: Final = 24

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
_NOTE: Final = re.compile(
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
    """The range of a quote in a text, end exclusive, with the kind of the match."""

    start: int
    end: int
    match: Match


def readings(quote: str, is_agent: Callable[[str], bool] = lambda _name: False) -> tuple[str, ...]:
    """Return the possible meanings of a quote, the likeliest first, each with less around it.

    White space, quotation marks and backticks around the quote are removed, then a number, a
    span's header or a speaker before it, then HTML entities and the escapes of JSON.

    Args:
        quote: The words that a judge wrote.
        is_agent: Tells whether the trace has an agent of a name. Words such as *Assistant* are
            speakers in every trace.

    Returns:
        The readings, none of them empty.
    """
    bare = _unwrapped(_without_number(_unwrapped(quote.strip())))
    ordered = {quote.strip(): None, bare: None}
    spoken = _SPEAKER_BEFORE.match(bare)
    if spoken and (_SPEAKER.fullmatch(spoken["name"]) or is_agent(spoken["name"])):
        bare = _unwrapped(bare[spoken.end() :].strip())
        ordered[bare] = None
    if "&" in bare:
        bare = unescape(unescape(bare))
        ordered[bare.strip()] = None
    ordered[_unwrapped(_ESCAPE.sub(_unescaped, bare).strip())] = None
    ordered.pop("", None)
    return tuple(ordered)


def parts(quote: str) -> tuple[str, ...]:
    """Split a quote at its ellipses, and return the pieces that have a letter or digit."""
    if "…" not in quote and "..." not in quote and " #" not in quote:
        return (quote,)
    return tuple(
        part for piece in _LEFT_OUT.split(quote) if any(map(str.isalnum, part := piece.strip()))
    )


def letters(text: str) -> str:
    """Return the letters and digits of a text in lower case, without those of its escapes."""
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
    """Return the letters of a text, and its letters without markup if it has markup."""
    bare = without_markup(text)
    return (letters(text),) if bare is text else (letters(text), letters(bare))


def find_part(
    text: str, part: str, how: Match, *, start: int = 0, text_layers: Sequence[str] | None = None
) -> QuoteMatch | None:
    """Find a piece of a quote by one kind of match.

    Args:
        text: The text to search.
        part: The piece, without ellipses.
        how: ``EXACT``; ``SPACING`` for the same words; ``REWORDED`` for a similar text, whose
            ``match`` then results from the comparison of the words.
        start: The offset from which to search.
        text_layers: ``layers(text)``, if the caller has them.

    Returns:
        The first range that matches, or None.
    """
    if start:
        text = text[start:]
        text_layers = None
    if how is Match.EXACT:
        offset = text.find(part)
        match_range = None if offset < 0 else QuoteMatch(offset, offset + len(part), Match.EXACT)
    elif how is Match.SPACING:
        match_range = _of_letters(text, part, text_layers)
    else:
        match_range = _similar(text, part)
    return (
        match_range
        if match_range is None
        else QuoteMatch(start + match_range.start, start + match_range.end, match_range.match)
    )


def closest(text: str, part: str, how: Match, *, start: int = 0) -> QuoteMatch | None:
    """Find a piece of a quote by this kind of match or a closer one.

    Args:
        text: The text to search.
        part: The piece, without ellipses.
        how: The loosest kind of match.
        start: The offset from which to search.

    Returns:
        The first range with the closest match, or None.
    """
    for each in (Match.EXACT, Match.SPACING, Match.REWORDED):
        match_range = find_part(text, part, each, start=start)
        if match_range is not None or each is how:
            return match_range
    return None


def find_within(text: str, part: str, start: int, reach: int) -> QuoteMatch | None:
    """Find the same words near an offset.

    Args:
        text: The text to search.
        part: The words.
        start: The offset from which to search.
        reach: The number of characters after ``start`` within which the words must begin.

    Returns:
        The range of the words, or None.
    """
    end = start + reach + len(part)
    match_range = closest(text[start:end], part, Match.SPACING)
    if match_range is None:
        return None
    match_range = QuoteMatch(
        *_whole_words(text, start + match_range.start, start + match_range.end), match_range.match
    )
    return match_range if same_words(part, text[match_range.start : match_range.end]) else None


class JoinedTexts:
    """Texts in reading order joined to one, which is searched much faster than each by itself."""

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        self._starts: list[int] = []
        self._pieces: list[tuple[int, int, int]] = []
        joined: list[str] = []
        start = 0
        for index, text in sorted(texts):
            for offset, piece in _ends(text):
                self._starts.append(start)
                self._pieces.append((index, offset, len(piece)))
                joined += (piece, _SEPARATOR)
                start += len(piece) + len(_SEPARATOR)
        self.text = "".join(joined)

    def locate(self, match_range: QuoteMatch) -> tuple[int, int, QuoteMatch] | None:
        """Convert a range of the joined text.

        Returns:
            The index of the span in which it begins, that of the span in which it ends (the same
            or the next one), and the range in the first of them. None for a range of separators.
        """
        number = bisect_right(self._starts, match_range.start) - 1
        if match_range.start >= self._starts[number] + self._pieces[number][2]:
            number += 1
        last_number = bisect_left(self._starts, match_range.end) - 1
        if number > last_number:
            return None
        index, offset, length = self._pieces[number]
        start = max(match_range.start - self._starts[number], 0)
        end = min(match_range.end - self._starts[number], length)
        last = self._pieces[last_number][0]
        inside = QuoteMatch(offset + start, offset + end, match_range.match)
        return index, last if last == index + 1 else index, inside


def clipped(text: str) -> str:
    """Return a text, or the beginning of one that is too long to be compared at once."""
    return text if len(text) <= LONGEST_COMPARED else text[: LONGEST_COMPARED // 2]


def _ends(text: str) -> tuple[tuple[int, str], ...]:
    """Return a text, or the two ends of a long one, with their offsets."""
    if len(text) <= LONGEST_COMPARED:
        return ((0, text),) if text else ()
    tail = max(len(text) - LONGEST_COMPARED // 2, LONGEST_COMPARED // 2)
    return (0, clipped(text)), (tail, text[tail:])


def _unwrapped(quote: str) -> str:
    """Remove code fences, backticks and quotation marks around a quote."""
    for _ in range(3):
        fence = quote.startswith("```") and quote.endswith("```") and len(quote) > 6
        if fence:
            quote = re.sub(r"^\w*\n", "", quote[3:-3]).strip()
        elif len(quote) > 2 and _WRAPS.get(quote[0]) == quote[-1]:
            quote = quote[1:-1].strip()
        else:
            break
    return quote


def _without_number(quote: str) -> str:
    """Remove a header line or the number of a span before a quote."""
    if quote[:1] not in "[#sS":
        return quote
    prefix = _HEADER_BEFORE.match(quote) or _NUMBER_BEFORE.match(quote)
    return quote[prefix.end() :].strip() if prefix else quote


def _unescaped(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign[1:], 16)) if sign[0] == "u" else _ESCAPED[sign]


def _of_letters(text: str, quote: str, text_layers: Sequence[str] | None) -> QuoteMatch | None:
    """Find the same words, with any punctuation and blanks between them."""
    needle = letters(quote)
    if not needle:
        return _of_signs(text, quote)
    for number, layer in enumerate(layers(text) if text_layers is None else text_layers):
        offset = layer.find(needle)
        if offset < 0:
            continue
        loose = loosened(text)
        visible = loosened(without_markup(text)) if number else loose
        for _ in range(_MOST_HITS):
            start, end = _with_edges(
                loose, _spread(visible, offset, offset + len(needle)), loosened(quote)
            )
            stretch = text[start:end]
            if len(needle) >= _SURE_WITHOUT_BLANKS or number:
                same = compare(quote, stretch).likeness is WordLikeness.SAME
            else:
                same = same_words(quote, stretch)
            if same:
                return QuoteMatch(start, end, Match.SPACING)
            offset = layer.find(needle, offset + 1)
            if offset < 0:
                break
    return None


def _of_signs(text: str, quote: str) -> QuoteMatch | None:
    """Find a quote without letters or digits, with any white space in it."""
    pattern = r"\s+".join(map(re.escape, quote.split()))
    match = re.search(pattern, text) if pattern else None
    return match and QuoteMatch(match.start(), match.end(), Match.SPACING)


def _spread(loose: str, first: int, end: int) -> tuple[int, int]:
    """Return the range in a text of its letters from number ``first`` to before ``end``."""
    return _offset_of_letter(loose, first), _offset_of_letter(loose, end - 1) + 1


def _offset_of_letter(loose: str, number: int) -> int:
    offset = 0
    step = _CHUNK
    while step:
        count = len(letters(loose[offset : offset + step]))
        if offset + step <= len(loose) and count <= number:
            number -= count
            offset += step
        else:
            step //= 2
    return offset


def _with_edges(loose: str, match_range: tuple[int, int], quote: str) -> tuple[int, int]:
    """Extend a range by the punctuation around it that the quote has too."""
    start, end = match_range
    first = next(i for i, char in enumerate(quote) if letters(char))
    last = next(i for i in range(len(quote), 0, -1) if letters(quote[i - 1]))
    for sign in reversed("".join(quote[:first].split())):
        base = max(0, start - _WORD_EDGE)
        preceding = loose[base:start].rstrip()
        if not preceding.endswith(sign):
            break
        start = base + len(preceding) - 1
    for sign in "".join(quote[last:].split()):
        following = loose[end : end + _WORD_EDGE]
        if not following.lstrip().startswith(sign):
            break
        end += len(following) - len(following.lstrip()) + 1
    return start, end


def _similar(text: str, quote: str) -> QuoteMatch | None:
    """Find a similar text, and compare its words with those of the quote."""
    if len(quote) < _SHORTEST_FUZZY or not text:
        return None
    if len(quote) > _LONGEST_FUZZY:
        return _by_its_ends(text, quote)
    aligned = _aligned(text, quote)
    return None if aligned is None else _compared(text, quote, *aligned)


def _aligned(text: str, quote: str) -> tuple[int, int] | None:
    from rapidfuzz import fuzz

    loose = _folded(text)
    needle = _folded(_NOTE.sub("", quote).strip() or quote)
    if len(needle) > len(loose):
        return (0, len(text)) if fuzz.ratio(needle, loose, score_cutoff=CUTOFF) else None
    alignment = fuzz.partial_ratio_alignment(needle, loose, score_cutoff=CUTOFF)
    if alignment is None:
        return None
    start, end = _whole_words(text, alignment.dest_start, alignment.dest_end)
    return (start, end) if start < end else None


def _by_its_ends(text: str, quote: str) -> QuoteMatch | None:
    """Find a long quote by its beginning and end, about as far apart as in the quote."""
    from rapidfuzz import fuzz

    half = _LONGEST_FUZZY // 2
    head = _find_end(text, quote[:half].strip())
    if head is None:
        return None
    start = head[0]
    tail = _find_end(text[head[1] : start + 2 * len(quote)], quote[-half:].strip())
    if tail is None:
        return None
    end = head[1] + tail[1]
    if 2 * (end - start) < len(quote):
        return None
    if not fuzz.ratio(_folded(quote), _folded(text[start:end]), score_cutoff=CUTOFF):
        return None
    return _compared(text, quote, start, end)


def _find_end(text: str, quote: str) -> tuple[int, int] | None:
    """Find the first or last part of a long quote, also by a similar text."""
    for how in (Match.EXACT, Match.SPACING):
        match_range = find_part(text, quote, how)
        if match_range is not None:
            return match_range.start, match_range.end
    return _aligned(text, quote) if text else None


def _compared(text: str, quote: str, start: int, end: int) -> QuoteMatch:
    """Compare the words of a range with those of the quote, and trim the range to them."""
    comparison = compare(quote, text[start:end])
    if comparison.loose and comparison.likeness is WordLikeness.ALTERED:
        wide = _whole_words(text, max(0, start - _SLACK), min(len(text), end + _SLACK))
        # Joined texts are separated by NUL: what is beyond it belongs to another text.
        wider = text[wide[0] : wide[1]]
        cut = wider.rfind("\0", 0, start - wide[0]) + 1
        wide_end = wider.find("\0", end - wide[0])
        wider = wider[cut : wide_end if wide_end >= 0 else None]
        other = compare(quote, wider)
        if other.altered_words < comparison.altered_words:
            comparison = other
            start = wide[0] + cut
    match = _MATCHES[comparison.likeness]
    return QuoteMatch(*_trimmed(text, start + comparison.start, start + comparison.end), match)


_MATCHES: Final = {
    WordLikeness.SAME: Match.SPACING,
    WordLikeness.REWORDED: Match.REWORDED,
    WordLikeness.ALTERED: Match.ALTERED,
}


def _folded(text: str) -> str:
    """Return the loosened text in lower case, unless that changes its length."""
    loose = loosened(text)
    lower = loose.lower()
    return lower if len(lower) == len(loose) else loose


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Trim white space from a range, and extend it to whole words."""
    start, end = _trimmed(text, start, end)
    for _ in range(_WORD_EDGE):
        if start > 0 and text[start - 1].isalnum() and text[start].isalnum():
            start -= 1
        if end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
            end += 1
    return start, end
