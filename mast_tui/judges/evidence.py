"""From a quote to its place in a text: exact, then up to white space, then nearly the same words.

All offsets are code points into the text as read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mast_tui.labels import Match

CUTOFF: Final = 80.0
"""Similarity from which another wording still counts as the same quote, of 100."""

_SHORTEST_FUZZY: Final = 12
"""Quotes with fewer characters are found word for word or not at all: short ones fit anywhere."""

_LONGEST_FUZZY: Final = 600
"""Of longer quotes only the two ends are aligned, which bounds the cost of an alignment."""

_LEFT_OUT: Final = re.compile(r"\s*(?:\[?…\]?|\[?\.{3,}\]?)\s*")
_WORD_EDGE: Final = 24


@dataclass(frozen=True, slots=True)
class Place:
    """Where a quote stands in a text, end exclusive, and how closely (``score`` of 100)."""

    start: int
    end: int
    match: Match
    score: float = 100.0


def find_quote(
    text: str, quote: str, *, near: int | None = None, cutoff: float = CUTOFF
) -> Place | None:
    """The place of ``quote`` in ``text``, or None where nothing is similar enough.

    Of several exact places the one that begins closest to ``near`` is taken, else the first. A
    quote with parts left out (``…`` or ``...``) is found part by part, in order, and its place
    reaches from the first part to the last.
    """
    quote = quote.strip()
    if not quote:
        return None
    exact = _exact(text, quote, near) or _spaced(text, quote)
    if exact is not None:
        return exact
    parts = [part for part in _LEFT_OUT.split(quote) if part]
    if len(parts) > 1:
        return _in_order(text, parts, cutoff)
    return _fuzzy(text, quote, cutoff)


def _exact(text: str, quote: str, near: int | None) -> Place | None:
    start = text.find(quote)
    if start < 0:
        return None
    if near is not None and start < near:
        before = text.rfind(quote, 0, near + len(quote))
        after = text.find(quote, near)
        start = min((s for s in (before, after) if s >= 0), key=lambda s: abs(s - near))
    return Place(start, start + len(quote), Match.EXACT)


def _spaced(text: str, quote: str) -> Place | None:
    found = re.search(r"\s+".join(map(re.escape, quote.split())), text)
    return found and Place(found.start(), found.end(), Match.SPACING)


def _in_order(text: str, parts: list[str], cutoff: float) -> Place | None:
    places: list[Place] = []
    at = 0
    for part in parts:
        rest = text[at:]
        place = _exact(rest, part, None) or _spaced(rest, part) or _fuzzy(rest, part, cutoff)
        if place is None:
            return None
        places.append(Place(at + place.start, at + place.end, place.match, place.score))
        at += place.end
    worst = min(places, key=lambda place: place.score)
    match = Match.FUZZY if worst.match is Match.FUZZY else Match.SPACING
    return Place(places[0].start, places[-1].end, match, worst.score)


def _fuzzy(text: str, quote: str, cutoff: float) -> Place | None:
    if len(quote) < _SHORTEST_FUZZY or not text:
        return None
    if len(quote) > _LONGEST_FUZZY:
        half = _LONGEST_FUZZY // 2
        return _in_order(text, [quote[:half].strip(), quote[-half:].strip()], cutoff)
    from rapidfuzz import fuzz

    if len(quote) > len(text):
        score = fuzz.ratio(quote, text, score_cutoff=cutoff)
        return Place(0, len(text), Match.FUZZY, score) if score else None
    found = fuzz.partial_ratio_alignment(quote, text, score_cutoff=cutoff)
    if found is None:
        return None
    start, end = _whole_words(text, found.dest_start, found.dest_end)
    return Place(start, end, Match.FUZZY, found.score)


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
