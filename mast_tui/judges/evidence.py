"""From a quote to its place in a text: exact, then up to white space, then nearly the same words.

Models do not quote as a machine copies: they wrap, escape, shorten, and copy along what stood
around. ``readings`` says what a quote may mean, ``parts`` what it joins, ``find_part`` looks for
one part in one text. All offsets are code points into the text as read.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mast_tui.labels import Match

CUTOFF: Final = 80.0
"""Similarity from which another wording still counts as the same quote, of 100."""

LONGEST_GAP: Final = 2_000
"""Parts of a quote that stand further apart, in characters, are not shown as one piece."""

LONGEST_COMPARED: Final = 200_000
"""Of a text with more characters its beginning and its end are compared, as more is never sent."""

_BETWEEN: Final = "\0" * 150
"""Between texts that are compared in one go: so much that nothing similar reaches across."""

_SHORTEST_FUZZY: Final = 12
"""Quotes with fewer characters are found word for word or not at all: short ones fit anywhere."""

_LONGEST_FUZZY: Final = 300
"""Of longer quotes only the two ends are aligned, which bounds the cost of an alignment."""

_SURE_WITHOUT_BLANKS: Final = 24
"""From so many characters on, words that are joined or split differently are the same words."""

_MOST_HITS: Final = 20
"""Of so many places that agree but for white space it is tried whether the words agree too."""

_WORD_EDGE: Final = 24

_LEFT_OUT: Final = re.compile(
    r"\[?… ?\d[^…\[\]\n]{0,60}?left out(?: ?…)?\]?"  # the mark of a text that was shortened
    r"|\[?…\]?|\[?\.{3,}\]?"
    r"|(?:^|\n)[ \t]*\[[0-9a-f]{6,64} #\d{1,9}\][^\n]*"  # the header line of a span
)
_HEADER_BEFORE: Final = re.compile(r"\s*\[?(?:[0-9a-f]{6,64} )?#\d{1,9}\][^\n]*\n")
_NUMBER_BEFORE: Final = re.compile(
    r"\s*\[?(?:[0-9a-f]{6,64} |spans? )?#\d{1,9}\s?[\]:.,)–—-]{1,2}\s*", re.IGNORECASE
)
_WRAPS: Final = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "‘": "’", "«": "»", "「": "」"}
_ESCAPE: Final = re.compile(r'\\(u[0-9a-fA-F]{4}|[nrt"\\/])')
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}

_STRAIGHT: Final = {
    **dict.fromkeys("“”„‟«»〝〞＂", '"'),
    **dict.fromkeys("‘’‚‛´′＇", "'"),
    **dict.fromkeys("‐‑‒–—―−", "-"),
}
_TYPOGRAPHIC: Final = re.compile(f"[{''.join(_STRAIGHT)}]")
_BACKSLASHES: Final = re.compile(r"\\+[nrt]?")
_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a quote stands in a text, end exclusive, and how closely (``score`` of 100).

    ``SPACING`` are the same words with other white space, or with other forms of the same
    quotation marks, dashes and escapes.
    """

    start: int
    end: int
    match: Match
    score: float = 100.0


def readings(quote: str) -> tuple[str, ...]:
    """What the quote may mean, the likeliest first: as given, then with less and less around it.

    Taken off are white space, quotation marks and backticks that wrap it, a number or a span's
    header before it, and the escapes of JSON. None of them is empty.
    """
    found = {quote.strip(): None}
    bare = _unwrapped(_without_number(_unwrapped(quote.strip())))
    found[bare] = None
    if "\\" in bare:
        found[_unwrapped(_ESCAPE.sub(_unescaped, bare).strip())] = None
    found.pop("", None)
    return tuple(found)


def parts(quote: str) -> tuple[str, ...]:
    """The pieces between the places at which something was left out, those without a word not."""
    if "…" not in quote and "..." not in quote and " #" not in quote:
        return (quote,)
    return tuple(
        part for piece in _LEFT_OUT.split(quote) if any(map(str.isalnum, part := piece.strip()))
    )


def loosened(text: str) -> str:
    """The text, code point by code point, with straight quotes and dashes and blanks for escapes.

    Every backslash is a blank, with an ``n``, ``r`` or ``t`` after it, however often a text was
    escaped.
    """
    if not text.isascii():
        text = _TYPOGRAPHIC.sub(lambda match: _STRAIGHT[match[0]], text)
    if "\\" in text:
        text = _BACKSLASHES.sub(lambda match: " " * len(match[0]), text)
    return text


def squeezed(text: str) -> str:
    """The loosened text without its white space."""
    return "".join(loosened(text).split())


def find_quote(
    text: str, quote: str, *, near: int | None = None, cutoff: float = CUTOFF
) -> Place | None:
    """The place of ``quote`` in ``text``, or None where nothing is similar enough.

    Of several exact places the one that begins closest to ``near`` is taken, else the first. A
    quote with parts left out (``…`` or ``...``) is found part by part, in order, and its place
    reaches from the first part to the last, or is the first where the others are far away.
    """
    meant = readings(quote)
    for how in (Match.EXACT, Match.SPACING, Match.FUZZY):
        for reading in meant:
            pieces = parts(reading)
            place = find_part(text, reading, how, near=near, cutoff=cutoff)
            if place is None and pieces != (reading,):
                place = _in_order(text, pieces, how, cutoff)
            if place is not None:
                return place
    return None


def find_part(
    text: str,
    part: str,
    how: Match,
    *,
    start: int = 0,
    near: int | None = None,
    squeeze: str | None = None,
    cutoff: float = CUTOFF,
) -> Place | None:
    """The place of a piece without gaps from ``start`` on, found in this way and in no other.

    ``squeeze`` is ``squeezed(text)`` where the caller has it. Fuzzy looks at the whole text after
    ``start`` and costs some 5 ms per million characters.
    """
    if start:
        text, near, squeeze = text[start:], None, None
    if how is Match.EXACT:
        place = _exact(text, part, near)
    elif how is Match.SPACING:
        place = _spaced(text, part, squeeze)
    else:
        place = _fuzzy(text, part, cutoff)
    if place is None or not start:
        return place
    return Place(start + place.start, start + place.end, place.match, place.score)


def joined(places: list[Place]) -> Place:
    """One place for the parts of a quote in one text: all of it, or the first where it is long."""
    if len(places) == 1:
        return places[0]
    worst = min(places, key=lambda place: place.score)
    match = Match.FUZZY if any(p.match is Match.FUZZY for p in places) else Match.SPACING
    gaps = itertools.pairwise(places)
    near = all(after.start - before.end <= LONGEST_GAP for before, after in gaps)
    return Place(places[0].start, places[-1 if near else 0].end, match, worst.score)


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
        inside = Place(offset + start, offset + end, place.match, place.score)
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
    found = _HEADER_BEFORE.match(quote) or _NUMBER_BEFORE.match(quote)
    return quote[found.end() :].strip() if found else quote


def _unescaped(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign[1:], 16)) if sign[0] == "u" else _ESCAPED[sign]


def _exact(text: str, quote: str, near: int | None) -> Place | None:
    start = text.find(quote)
    if start < 0:
        return None
    if near is not None and start < near:
        before = text.rfind(quote, 0, near + len(quote))
        after = text.find(quote, near)
        start = min((s for s in (before, after) if s >= 0), key=lambda s: abs(s - near))
    return Place(start, start + len(quote), Match.EXACT)


def _spaced(text: str, quote: str, squeeze: str | None) -> Place | None:
    words = loosened(quote).split()
    wanted = "".join(words)
    if not wanted:
        return None
    if squeeze is None:
        squeeze = squeezed(text)
    at = squeeze.find(wanted)
    if at < 0:
        return None
    loose = loosened(text)
    for _ in range(_MOST_HITS):
        start, end = _unsqueezed(loose, at, at + len(wanted))
        if len(wanted) >= _SURE_WITHOUT_BLANKS or loose[start:end].split() == words:
            return Place(start, end, Match.SPACING)
        at = squeeze.find(wanted, at + 1)
        if at < 0:
            break
    return None


def _unsqueezed(loose: str, first: int, end: int) -> tuple[int, int]:
    """Where the stretch of a squeezed text stands in the text that it was made of."""
    start = -1
    seen = 0
    for word in _WORD.finditer(loose):
        length = word.end() - word.start()
        if start < 0 and first < seen + length:
            start = word.start() + first - seen
        if end <= seen + length:
            return start, word.start() + end - seen
        seen += length
    raise ValueError(f"a stretch up to {end} of a text with {seen} characters")


def _in_order(text: str, pieces: tuple[str, ...], how: Match, cutoff: float) -> Place | None:
    places: list[Place] = []
    at = 0
    for piece in pieces:
        place = closest(text, piece, how, start=at, cutoff=cutoff)
        if place is None:
            return None
        places.append(place)
        at = place.end
    return joined(places) if places else None


def closest(
    text: str, part: str, how: Match, *, start: int = 0, cutoff: float = CUTOFF
) -> Place | None:
    """The place of a piece without gaps, found in this way or in a closer one."""
    for each in (Match.EXACT, Match.SPACING, Match.FUZZY):
        place = find_part(text, part, each, start=start, cutoff=cutoff)
        if place is not None or each is how:
            return place
    return None


def _fuzzy(text: str, quote: str, cutoff: float) -> Place | None:
    if len(quote) < _SHORTEST_FUZZY or not text:
        return None
    if len(quote) > _LONGEST_FUZZY:
        return _by_its_ends(text, quote, cutoff)
    from rapidfuzz import fuzz

    loose, wanted = loosened(text), loosened(quote)
    if len(wanted) > len(loose):
        score = fuzz.ratio(wanted, loose, score_cutoff=cutoff)
        return Place(0, len(text), Match.FUZZY, score) if score else None
    found = fuzz.partial_ratio_alignment(wanted, loose, score_cutoff=cutoff)
    if found is None:
        return None
    start, end = _whole_words(text, found.dest_start, found.dest_end)
    return Place(start, end, Match.FUZZY, found.score) if start < end else None


def _by_its_ends(text: str, quote: str, cutoff: float) -> Place | None:
    """The place of a long quote whose beginning and end stand about as far apart as in it."""
    half = _LONGEST_FUZZY // 2
    head = closest(text, quote[:half].strip(), Match.FUZZY, cutoff=cutoff)
    if head is None:
        return None
    rest = text[head.end : head.start + 2 * len(quote)]
    tail = closest(rest, quote[-half:].strip(), Match.FUZZY, cutoff=cutoff)
    if tail is None or 2 * (tail.end + head.end - head.start) < len(quote):
        return None
    return Place(head.start, head.end + tail.end, Match.FUZZY, min(head.score, tail.score))


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without white space at its edges and without cut words."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    for _ in range(_WORD_EDGE):
        if start > 0 and text[start - 1].isalnum() and text[start].isalnum():
            start -= 1
        if end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
            end += 1
    return start, end
