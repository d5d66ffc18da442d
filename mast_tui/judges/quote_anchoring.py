"""Anchoring a finding: its quote is looked for where it was named, then elsewhere.

A judge names spans by number and miscounts, so a quote is believed before a number: where the
words stand outside the named spans the place is mended, and what was named is kept beside it.
Words that are found nowhere stay as the judge gave them, without offsets; beside those that are
altered, or not to the letter what stands there, stands what the judge wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Final, Protocol

from mast_tui.judges.fuzzy_match import (
    LONGEST_COMPARED,
    WORDS_OF_A_PART,
    Joined,
    Place,
    clipped,
    closest,
    find_part,
    find_within,
    layers,
    letters,
    parts,
    readings,
)
from mast_tui.judges.word_comparison import word_count
from mast_tui.labels import Evidence, Finding, Match
from mast_tui.traces.model import Trace

CHECKING: Final = "3"
"""Raise it where quotes are found, placed or told apart otherwise than before: then the answers
that are kept are read and checked anew."""

NEAR: Final = 20
"""So many spans before and after those named are looked through before all others."""

MOST_SEARCHED: Final = 2_000_000
"""In an area at most so many characters are searched for a quote, those nearest first."""

MOST_COMPARED: Final = 500_000
"""At most so many characters are compared with a quote that stands nowhere word for word."""

LONGEST_GAP: Final = 2_000
"""Parts of a quote that stand further apart, in characters, are not shown as one piece."""

SHORT_GAP: Final = 300
"""A part of few words counts only so near to the part before it, in characters, and only in the
same words: elsewhere it stands by chance."""

_FIRST_PARTS_TRIED: Final = 20
"""The number of places of a short first part from which the other parts are looked for."""

_SPAN_COST: Final = 200
"""What fetching a text counts, in characters, so that a million short spans end as well."""

_LONG_BYTES: Final = 24
"""One of fewer bytes is like something in most texts: other words count where it was named only."""

_SHORT_BYTES: Final = 8
"""A quote of fewer bytes stands anywhere by chance, so only where it was named does it count."""


class SentTexts(Protocol):
    """The texts of a trace as a judge was shown them, and the way back to its own."""

    def __len__(self) -> int: ...
    def text(self, index: int, /) -> str: ...
    def agents(self) -> Collection[str]:
        """Return the names of the agents as the judge was shown them."""

    def to_original(self, index: int, start: int, end: int, /) -> tuple[int, int]:
        """Convert a range of a sent text to the range of ``trace.text(index)``.

        Args:
            index: The index of the span.
            start: The first character of the range in the sent text.
            end: The character after the range.

        Returns:
            The start and end of the range in the trace's text.
        """


@dataclass(frozen=True, slots=True)
class Found:
    """Where a quote stands: the span ``index``, and the place in its text as sent.

    ``last`` is the span in which its last part stands, ``index`` itself for most.
    """

    index: int
    place: Place
    last: int

    @property
    def altered(self) -> bool:
        """Whether its words say something else than the quote."""
        return self.place.match is Match.ALTERED


class Locator:
    """Looks for quotes in the texts of one trace.

    ``limited`` counts the quotes that were found nowhere while not everything was searched.
    Not for several threads at once.
    """

    def __init__(self, texts: SentTexts) -> None:
        self._sent = texts
        self._count = len(texts)
        self._known_layers: dict[int, tuple[str, ...]] = {}
        self._kept = 0
        self._cut = False
        self._agents: frozenset[str] | None = None
        self.limited = 0

    def locate(
        self,
        quote: str,
        named: tuple[int, int] | None = None,
        around: tuple[int, int] | None = None,
    ) -> Found | None:
        """Find the place of a quote, or return None.

        To the letter, or in the same words, in the named spans; then to the letter in those near
        and anywhere, then in the same words; last of all a similar text, in the named spans and
        those near, of which an altered one only counts where there is no other. The nearest place
        counts.

        Args:
            quote: What a judge wrote.
            named: The first and last index that the judge named.
            around: Those that it was shown.
        """
        parsed_quote = _Quote.of(quote, self._is_agent)
        if not parsed_quote.whole:
            return None
        self._cut = False
        areas = _Areas(self._count, named, around)
        for meanings in (parsed_quote.whole, parsed_quote.pieced):
            for area in (areas.named,) if parsed_quote.short else (areas.named, areas.others):
                for how in (Match.EXACT, Match.SPACING):
                    location = self._first(meanings, how, area()) if meanings else None
                    if location is not None:
                        return location
        location = self._most_alike(parsed_quote, areas.named())
        if parsed_quote.long and (location is None or location.altered):
            location = _better(location, self._most_alike(parsed_quote, areas.near()))
        if location is None and self._cut:
            self.limited += 1
        return location

    def _is_agent(self, name: str) -> bool:
        if self._agents is None:
            self._agents = frozenset(agent.casefold() for agent in self._sent.agents())
        return name.casefold() in self._agents

    def _first(
        self, meanings: tuple[_Reading, ...], how: Match, area: Iterable[int]
    ) -> Found | None:
        exact = how is Match.EXACT
        for index, text in self._walk(area, MOST_SEARCHED):
            searched_layers = (text,) if exact else self._layers(index, text)
            for pieces, needle_letters in meanings:
                needle = pieces[0] if exact else needle_letters
                if not any(needle in layer for layer in searched_layers):
                    continue
                if len(pieces) > 1:
                    location = self._in_order(index, text, pieces, how)
                else:
                    place = find_part(text, pieces[0], how, known=searched_layers)
                    location = Found(index, place, index) if place else None
                if location is not None:
                    return location
        return None

    def _most_alike(self, parsed_quote: _Quote, area: Iterable[int]) -> Found | None:
        texts = Joined(self._walk(area, MOST_COMPARED, LONGEST_COMPARED))
        best: Found | None = None
        for pieces in parsed_quote.compared:
            best = _better(best, self._alike(texts, pieces))
            if best is not None and not best.altered:
                return best
        if best is None and parsed_quote.long_parts:
            # The other parts are too short to be told from chance, so nobody vouches for them.
            best = self._alike(texts, parsed_quote.long_parts)
            if best is not None:
                place = Place(best.place.start, best.place.end, Match.ALTERED)
                best = Found(best.index, place, best.last)
        return best

    def _alike(self, texts: Joined, pieces: tuple[str, ...]) -> Found | None:
        find = closest if len(pieces) > 1 else find_part
        place = find(texts.text, pieces[0], Match.REWORDED)
        at = None if place is None else texts.found(place)
        first = None if at is None else Found(at[0], at[2], at[1])
        if first is None or len(pieces) == 1:
            return first
        text = self._sent.text(first.index)
        return self._in_order(first.index, clipped(text), pieces, Match.REWORDED)

    def _in_order(self, index: int, text: str, pieces: tuple[str, ...], how: Match) -> Found | None:
        """Return the place of pieces that follow each other in a span, or in it and the next."""
        if all(map(_is_long, pieces)):
            return self._in_order_from(0, index, text, pieces, how)
        if how is Match.REWORDED and not _is_long(pieces[0]):
            return None
        start = 0
        for _ in range(_FIRST_PARTS_TRIED):
            place = closest(text, pieces[0], how, start=start)
            if place is None:
                return None
            location = self._in_order_from(place.start, index, text, pieces, how)
            if location is not None:
                return location
            start = place.start + 1
        return None

    def _in_order_from(
        self, start: int, index: int, text: str, pieces: tuple[str, ...], how: Match
    ) -> Found | None:
        places: list[Place] = []
        match = Match.IN_PARTS
        offset = start
        span = index
        for number, piece in enumerate(pieces):
            if number and not (_is_long(piece) and _is_long(pieces[number - 1])):
                nearby = find_within(text, piece, offset, SHORT_GAP)
                if nearby is None or span != index:
                    return None
                places.append(nearby)
                offset = nearby.end
                continue
            place = closest(text, piece, how, start=offset)
            if place is None and places and span == index and index + 1 < self._count:
                span, text = index + 1, self._sent.text(index + 1)
                text = clipped(text) if how is Match.REWORDED else text
                place = closest(text, piece, how)
            if place is None:
                return None
            if place.match is Match.ALTERED:
                match = Match.ALTERED
            offset = place.end
            if span == index:
                places.append(place)
        near = all(b.start - a.end <= LONGEST_GAP for a, b in pairwise(places))
        whole = Place(places[0].start, places[-1 if near else 0].end, match)
        return Found(index, whole, span)

    def _walk(
        self, area: Iterable[int], most: int, longest: int | None = None
    ) -> Iterator[tuple[int, str]]:
        """Spans and their texts; in all about ``most`` characters, ``longest`` of one text."""
        left = most
        for index in area:
            if left <= 0:
                self._cut = True
                return
            text = self._sent.text(index)
            left -= min(len(text), longest or len(text)) + _SPAN_COST
            yield index, text

    def _layers(self, index: int, text: str) -> tuple[str, ...]:
        cached = self._known_layers.get(index)
        if cached is None:
            cached = self._known_layers[index] = layers(text)
            self._kept += sum(map(len, cached))
            while self._kept > MOST_SEARCHED and len(self._known_layers) > 1:
                oldest = self._known_layers.pop(next(iter(self._known_layers)))
                self._kept -= sum(map(len, oldest))
        return cached


def _better(first: Found | None, second: Found | None) -> Found | None:
    """The first of two that is not altered, else the first."""
    if first is None or (first.altered and second is not None and not second.altered):
        return second
    return first


_Reading = tuple[tuple[str, ...], str]
"""The pieces of a quote, and the letters of the first."""


@dataclass(frozen=True, slots=True)
class _Quote:
    """What a quote may mean, and how far it may be looked for.

    ``whole`` are its readings, ``pieced`` those with something left out. ``compared`` are the
    pieces for which a similar text may stand, ``long_parts`` those that are long enough where
    others are not. A ``short`` quote is not looked for where nobody named it, one that is not
    ``long`` in the same words only.
    """

    whole: tuple[_Reading, ...]
    pieced: tuple[_Reading, ...]
    compared: tuple[tuple[str, ...], ...]
    long_parts: tuple[str, ...]
    short: bool
    long: bool

    @classmethod
    def of(cls, quote: str, is_agent: Callable[[str], bool]) -> _Quote:
        whole: dict[tuple[str, ...], None] = {}
        pieced: dict[tuple[str, ...], None] = {}
        pieces: tuple[str, ...] = ()
        long_parts: tuple[str, ...] = ()
        for reading in readings(quote, is_agent):
            whole[(reading,)] = None
            pieces = parts(reading)
            if len(pieces) == 1:
                whole[pieces] = None
                continue
            long_parts = tuple(p for p in pieces if word_count(p) >= WORDS_OF_A_PART)
            if sum(map(word_count, pieces)) >= WORDS_OF_A_PART:
                pieced[pieces] = None
        if len(pieces) == 1 or pieces == long_parts:
            long_parts = ()
        longest = max((len(_bytes(piece)) for piece in pieces), default=0)
        return cls(
            tuple(map(_reading, whole)),
            tuple(map(_reading, pieced)),
            (*list(pieced)[-1:], *list(whole)[-1:]),
            long_parts,
            longest < _SHORT_BYTES,
            longest >= _LONG_BYTES,
        )


def _is_long(piece: str) -> bool:
    return word_count(piece) >= WORDS_OF_A_PART


def _reading(pieces: tuple[str, ...]) -> _Reading:
    return pieces, letters(pieces[0])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class _Areas:
    """The spans in which a quote may stand, from the likeliest outward."""

    def __init__(
        self, count: int, named: tuple[int, int] | None, around: tuple[int, int] | None
    ) -> None:
        self._count = count
        self._named = named
        self._shown = named or around

    def named(self) -> Iterable[int]:
        """Those that the judge named, in order."""
        return range(self._named[0], self._named[1] + 1) if self._named else ()

    def near(self) -> Iterable[int]:
        """Those just before and after, the nearest first; else all that were shown."""
        return self._unnamed(NEAR)

    def others(self) -> Iterable[int]:
        """All that were not named, the nearest first."""
        return self._unnamed(self._count)

    def _unnamed(self, reach: int) -> Iterator[int]:
        if self._shown is None:
            yield from range(self._count)
            return
        first, last = self._shown
        if self._named is None:
            yield from range(first, last + 1)
        following = range(last + 1, min(last + 1 + reach, self._count))
        preceding = range(first - 1, max(first - 1 - reach, -1), -1)
        for pair in zip_longest(following, preceding):
            yield from (index for index in pair if index is not None)


def anchored(
    finding: Finding,
    trace: Trace,
    texts: SentTexts,
    locate: Callable[[str, tuple[int, int] | None], Found | None],
) -> Finding:
    """Give a finding's quote its place in the trace.

    One that is found becomes the trace's own words, and where they lie outside the range that was
    named the range is the span they stand in. One that is not stays as the judge gave it.

    Args:
        finding: As it was read from an answer: its range, and a quote without a place.
        trace: The trace, its index complete.
        texts: The trace's texts as the judge was shown them.
        locate: Where a quote stands, given the first and last index of the range that was named.

    Raises:
        OSError: The trace's source could not be read.
    """
    named = _range_of(finding, trace)
    first, last = _keys(trace, named) or (None, None)
    quote = "" if finding.evidence is None else finding.evidence.quote
    if not quote.strip():
        return replace(finding, first=first, last=last, evidence=None)
    location = locate(quote, named)
    start = end = 0
    if location is not None:
        start, end = texts.to_original(location.index, location.place.start, location.place.end)
    if location is None or start >= end:
        return replace(finding, first=first, last=last, evidence=Evidence(key=first, quote=quote))
    spans = _mended(named, location)
    match = location.place.match
    evidence = Evidence(
        key=trace.span(location.index).key,
        quote=trace.text(location.index)[start:end],
        char_start=start,
        char_end=end,
        match=match,
        named=None if spans == named else _keys(trace, named),
        wording=None if match is Match.EXACT else quote.strip(),
    )
    first, last = trace.span(spans[0]).key, trace.span(spans[1]).key
    return replace(finding, first=first, last=last, evidence=evidence)


def _keys(trace: Trace, spans: tuple[int, int] | None) -> tuple[str, str] | None:
    return None if spans is None else (trace.span(spans[0]).key, trace.span(spans[1]).key)


def _range_of(finding: Finding, trace: Trace) -> tuple[int, int] | None:
    """The finding's range as far as it exists, in order."""
    keys = [key for key in (finding.first, finding.last) if key is not None]
    ends = [index for index in map(trace.index_of, keys) if index is not None]
    return (min(ends), max(ends)) if ends else None


def _mended(named: tuple[int, int] | None, location: Found) -> tuple[int, int]:
    """The range that holds the quote: the named one where it does."""
    if named is None or not named[0] <= location.index <= named[1]:
        return location.index, location.last
    return named[0], max(named[1], location.last)
