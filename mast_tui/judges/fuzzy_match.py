"""From a quote to its place in a text: exact, then the same words, then nearly the same text.

Models do not quote as a machine copies: they wrap, escape, shorten, and copy along what stood
around. ``readings`` says what a quote may mean, ``parts`` what it joins, ``find_part`` looks for
one part in one text. All offsets are code points into the text as read.
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
    Likeness,
    compare,
    loosened,
    same_words,
    without_markup,
)
from mast_tui.labels import Match

CUTOFF: Final = 80.0
"""Similarity, of 100, from which on a text is compared with a quote word by word."""

LONGEST_COMPARED: Final = 200_000
"""Of a text with more characters its beginning and its end are compared, as more is never sent."""

WORDS_OF_A_PART: Final = 4
"""A part of a quote with fewer words stands anywhere by chance."""

_BETWEEN: Final = "\0" * 150
"""Between texts that are compared in one go: so much that nothing similar reaches across."""

_SHORTEST_FUZZY: Final = 12
"""Quotes with fewer characters are found word for word or not at all: short ones fit anywhere."""

_LONGEST_FUZZY: Final = 300
"""Of longer quotes only the two ends are aligned with all of a text, which bounds the cost; what
lies between them is then compared as a whole."""

_SURE_WITHOUT_BLANKS: Final = 24
"""From so many letters on, words that are joined or split differently are the same words."""

_MOST_HITS: Final = 20
"""Of so many places with the same letters it is tried whether the words are the same too."""

_WORD_EDGE: Final = 24

_SLACK: Final = 40
"""So many characters on each side of a place are looked at too, as words that a quote lacks shift
the place of its ends."""

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
class Place:
    """Where a quote stands in a text, end exclusive, and how closely."""

    start: int
    end: int
    match: Match


def readings(quote: str, is_agent: Callable[[str], bool] = lambda _name: False) -> tuple[str, ...]:
    """Return what a quote may mean, the likeliest first, each with less around it.

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
    """The pieces between the places at which something was left out, those without a word not."""
    if "…" not in quote and "..." not in quote and " #" not in quote:
        return (quote,)
    return tuple(
        part for piece in _LEFT_OUT.split(quote) if any(map(str.isalnum, part := piece.strip()))
    )


def letters(text: str) -> str:
    """Return the letters and digits of a text in lower case, without those of escapes."""
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
    """The letters of a text, and where there is markup those without it too."""
    bare = without_markup(text)
    return (letters(text),) if bare is text else (letters(text), letters(bare))


def find_part(
    text: str, part: str, how: Match, *, start: int = 0, known: Sequence[str] | None = None
) -> Place | None:
    """The place of a piece without gaps from ``start`` on, found in this way and in no other.

    Args:
        text: where it is looked for.
        part: the piece.
        how: ``EXACT``, ``SPACING`` for the same words, ``REWORDED`` for a similar text, whose place
            then says in ``match`` what its words are to those of the piece.
        start: where to begin.
        known: ``layers(text)`` where the caller has them.
    """
    if start:
        text, known = text[start:], None
    if how is Match.EXACT:
        offset = text.find(part)
        place = None if offset < 0 else Place(offset, offset + len(part), Match.EXACT)
    elif how is Match.SPACING:
        place = _of_letters(text, part, known)
    else:
        place = _similar(text, part)
    return place if place is None else Place(start + place.start, start + place.end, place.match)


def closest(text: str, part: str, how: Match, *, start: int = 0) -> Place | None:
    """The place of a piece without gaps, found in this way or in a closer one."""
    for each in (Match.EXACT, Match.SPACING, Match.REWORDED):
        place = find_part(text, part, each, start=start)
        if place is not None or each is how:
            return place
    return None


def find_within(text: str, part: str, start: int, reach: int) -> Place | None:
    """Return the place of the same words near a place, None where they do not stand there.

    Args:
        text: The text in which they are looked for.
        part: The words.
        start: The place from which they are looked for.
        reach: The number of characters after ``start`` in which they must begin.
    """
    end = start + reach + len(part)
    place = closest(text[start:end], part, Match.SPACING)
    if place is None:
        return None
    place = Place(*_whole_words(text, start + place.start, start + place.end), place.match)
    return place if same_words(part, text[place.start : place.end]) else None


class Joined:
    """Texts in reading order as one, to be compared in one go; much faster than one by one.

    Each text comes with the index of its span.
    """

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        self._starts: list[int] = []
        self._pieces: list[tuple[int, int, int]] = []
        joined: list[str] = []
        at = 0
        for index, text in sorted(texts):
            for offset, piece in _ends(text):
                self._starts.append(at)
                self._pieces.append((index, offset, len(piece)))
                joined += (piece, _BETWEEN)
                at += len(piece) + len(_BETWEEN)
        self.text = "".join(joined)

    def found(self, place: Place) -> tuple[int, int, Place] | None:
        """Of a place in the joined text the span, the span that it reaches to, and where it is.

        A place that reaches on into the next span ends with its first one.
        """
        at = bisect_right(self._starts, place.start) - 1
        if place.start >= self._starts[at] + self._pieces[at][2]:
            at += 1
        end_at = bisect_left(self._starts, place.end) - 1
        if at > end_at:
            return None
        index, offset, length = self._pieces[at]
        start = max(place.start - self._starts[at], 0)
        end = min(place.end - self._starts[at], length)
        last = self._pieces[end_at][0]
        inside = Place(offset + start, offset + end, place.match)
        return index, last if last == index + 1 else index, inside


def clipped(text: str) -> str:
    """The beginning of a text that is too long to be compared with a quote in one go."""
    return text if len(text) <= LONGEST_COMPARED else text[: LONGEST_COMPARED // 2]


def _ends(text: str) -> tuple[tuple[int, str], ...]:
    """A text, of a long one the beginning and the end, each with its offset."""
    if len(text) <= LONGEST_COMPARED:
        return ((0, text),) if text else ()
    tail = max(len(text) - LONGEST_COMPARED // 2, LONGEST_COMPARED // 2)
    return (0, clipped(text)), (tail, text[tail:])


def _unwrapped(quote: str) -> str:
    """Without code fences, backticks and quotation marks around it."""
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
    """Without a header line, or a span's number, before it."""
    if quote[:1] not in "[#sS":
        return quote
    prefix = _HEADER_BEFORE.match(quote) or _NUMBER_BEFORE.match(quote)
    return quote[prefix.end() :].strip() if prefix else quote


def _unescaped(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign[1:], 16)) if sign[0] == "u" else _ESCAPED[sign]


def _of_letters(text: str, quote: str, text_layers: Sequence[str] | None) -> Place | None:
    """The place where the same words stand, whatever stands between them."""
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
                same = compare(quote, stretch).likeness is Likeness.SAME
            else:
                same = same_words(quote, stretch)
            if same:
                return Place(start, end, Match.SPACING)
            offset = layer.find(needle, offset + 1)
            if offset < 0:
                break
    return None


def _of_signs(text: str, quote: str) -> Place | None:
    """The place of a quote without letters, up to white space."""
    pattern = r"\s+".join(map(re.escape, quote.split()))
    match = re.search(pattern, text) if pattern else None
    return match and Place(match.start(), match.end(), Match.SPACING)


def _spread(loose: str, first: int, end: int) -> tuple[int, int]:
    """Where the letters from ``first`` to ``end`` stand in the text that they were taken of."""
    return _letter(loose, first), _letter(loose, end - 1) + 1


def _letter(loose: str, number: int) -> int:
    """Where the letter with this number stands."""
    at = 0
    step = _CHUNK
    while step:
        here = len(letters(loose[at : at + step]))
        if at + step <= len(loose) and here <= number:
            number -= here
            at += step
        else:
            step //= 2
    return at


def _with_edges(loose: str, place: tuple[int, int], quote: str) -> tuple[int, int]:
    """A place with the punctuation around it that the quote has too."""
    start, end = place
    first = next(i for i, char in enumerate(quote) if letters(char))
    last = next(i for i in range(len(quote), 0, -1) if letters(quote[i - 1]))
    for sign in reversed("".join(quote[:first].split())):
        base = max(0, start - _WORD_EDGE)
        before = loose[base:start].rstrip()
        if not before.endswith(sign):
            break
        start = base + len(before) - 1
    for sign in "".join(quote[last:].split()):
        after = loose[end : end + _WORD_EDGE]
        if not after.lstrip().startswith(sign):
            break
        end += len(after) - len(after.lstrip()) + 1
    return start, end


def _similar(text: str, quote: str) -> Place | None:
    """The place of a similar text, with what its words are to those of the quote."""
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


def _by_its_ends(text: str, quote: str) -> Place | None:
    """The place of a long quote whose beginning and end stand about as far apart as in it."""
    from rapidfuzz import fuzz

    half = _LONGEST_FUZZY // 2
    head = _placed(text, quote[:half].strip())
    if head is None:
        return None
    rest = text[head[1] : head[0] + 2 * len(quote)]
    tail = _placed(rest, quote[-half:].strip())
    if tail is None or 2 * (tail[1] + head[1] - head[0]) < len(quote):
        return None
    start, end = head[0], head[1] + tail[1]
    if not fuzz.ratio(_folded(quote), _folded(text[start:end]), score_cutoff=CUTOFF):
        return None
    return _compared(text, quote, start, end)


def _placed(text: str, quote: str) -> tuple[int, int] | None:
    """Where one end of a long quote stands, whatever its words are to those there."""
    for how in (Match.EXACT, Match.SPACING):
        place = find_part(text, quote, how)
        if place is not None:
            return place.start, place.end
    return _aligned(text, quote) if text else None


def _compared(text: str, quote: str, start: int, end: int) -> Place:
    """A place with what its words are to those of the quote, and just as long as it must be."""
    comparison = compare(quote, text[start:end])
    if comparison.loose and comparison.likeness is Likeness.ALTERED:
        wide = _whole_words(text, max(0, start - _SLACK), min(len(text), end + _SLACK))
        # Another text of those compared in one go is no neighbour.
        wider = text[wide[0] : wide[1]]
        cut = wider.rfind("\0", 0, start - wide[0]) + 1
        wide_end = wider.find("\0", end - wide[0])
        wider = wider[cut : wide_end if wide_end >= 0 else None]
        other = compare(quote, wider)
        if other.altered_words < comparison.altered_words:
            comparison, start = other, wide[0] + cut
    match = _MATCHES[comparison.likeness]
    return Place(*_trimmed(text, start + comparison.start, start + comparison.end), match)


_MATCHES: Final = {
    Likeness.SAME: Match.SPACING,
    Likeness.REWORDED: Match.REWORDED,
    Likeness.ALTERED: Match.ALTERED,
}


def _folded(text: str) -> str:
    """The loosened text in lower case, where that changes no offset."""
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
    """The range without white space at its edges and without cut words."""
    start, end = _trimmed(text, start, end)
    for _ in range(_WORD_EDGE):
        if start > 0 and text[start - 1].isalnum() and text[start].isalnum():
            start -= 1
        if end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
            end += 1
    return start, end
