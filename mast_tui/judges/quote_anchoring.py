"""The location of a finding's quote in a trace: first in the named spans, then in others.

Judges name spans by number and miscount, so the location of the quote counts more than the number.
Evidence keeps the judge's spans and words if they were wrong. A quote that is not found keeps the
judge's words, without offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise, zip_longest
from typing import Final, Protocol

from msgspec.structs import replace

from mast_tui.judges.fuzzy_match import (
    LONGEST_COMPARED,
    WORDS_OF_A_PART,
    JoinedTexts,
    QuoteMatch,
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
from mast_tui.traces.index.lines import LruCache
from mast_tui.traces.model import Trace

SEARCH_VERSION: Final = "3"
"""The version of the search, which each run records. Raise it with every change of the results."""

NEAR: Final = 20
"""The number of spans before and after the named ones that are searched for a similar text."""

MOST_SEARCHED: Final = 2_000_000
"""The most characters that are searched for a quote."""

MOST_COMPARED: Final = 500_000
"""The most characters that are searched for a similar text."""

LONGEST_GAP: Final = 2_000
"""The most characters between parts of a quote that are shown as one range."""

SHORT_GAP: Final = 300
"""The most characters between a short part and the part before it. Further away, the same words may
occur by chance."""

_FIRST_PARTS_TRIED: Final = 20
"""The most occurrences of the first part from which the other parts are searched."""

_SPAN_COST: Final = 200
"""The cost of reading a text, in characters, which bounds a search of many short spans."""

_LONG_BYTES: Final = 24
"""The fewest bytes of a quote for which a similar text outside the named spans counts."""

_SHORT_BYTES: Final = 8
"""The fewest bytes of a quote that counts outside the named spans at all."""


class SentTexts(Protocol):
    """The texts of a trace as a judge was sent them, and the conversion of their offsets."""

    def __len__(self) -> int: ...
    def text(self, index: int, /) -> str: ...
    def agents(self) -> Collection[str]:
        """Return the names of the agents in the texts."""

    def to_original(self, index: int, start: int, end: int, /) -> tuple[int, int]:
        """Convert a range of a sent text to a range of the trace's own text.

        Args:
            index: The index of the span.
            start: The first character of the range in the sent text.
            end: The character after the range.
        """


@dataclass(frozen=True, slots=True)
class QuoteLocation:
    """The location of a quote in the sent texts.

    Attributes:
        index: The index of the span in which the quote begins.
        match_range: The range of the quote in that span.
        last: The index of the span in which the quote ends.
    """

    index: int
    match_range: QuoteMatch
    last: int

    @property
    def altered(self) -> bool:
        """True if the words at the location have another meaning than the quote."""
        return self.match_range.match is Match.ALTERED


class Locator:
    """A search for quotes in the texts of one trace, for use by one thread."""

    def __init__(self, texts: SentTexts) -> None:
        self._sent_texts = texts
        self._span_count = len(texts)
        self._layers_by_span = LruCache[tuple[str, ...]](
            MOST_SEARCHED, lambda text_layers: sum(map(len, text_layers))
        )
        """The letters of a span's text, with and without markup, by the index of the span."""
        self._has_unsearched_spans = False
        """True if the search for the current quote skipped spans because of its size."""
        self.partly_searched_quote_count = 0
        """The number of quotes that were not found in an incomplete search."""

    def locate(
        self,
        quote: str,
        named: tuple[int, int] | None = None,
        around: tuple[int, int] | None = None,
    ) -> QuoteLocation | None:
        """Find the nearest location of a quote.

        The search tries in this order:

        1. The exact quote, then the same words, in the named spans.
        2. The same in all other spans, the nearest first, unless the quote is short.
        3. A similar text in the named spans, then in spans near them if the quote is long.

        A text with altered words counts only if no other text is similar.

        Args:
            quote: The quote as the judge wrote it.
            named: The first and last index of the spans that the judge named.
            around: The first and last index of the spans that the judge was sent.

        Returns:
            The location, or None.
        """
        parsed_quote = _Quote.from_text(quote, self._is_agent)
        if not parsed_quote.whole:
            return None
        self._has_unsearched_spans = False
        named_spans: Sequence[int] = () if named is None else range(named[0], named[1] + 1)
        outward = partial(_spans_outward, self._span_count, named, around)
        location = self._identical_location(parsed_quote, named_spans, outward)
        if location is not None:
            return location
        location = self._most_similar_location(parsed_quote, named_spans)
        if parsed_quote.long and (location is None or location.altered):
            location = _better_location(
                location, self._most_similar_location(parsed_quote, outward(NEAR))
            )
        if location is None and self._has_unsearched_spans:
            self.partly_searched_quote_count += 1
        return location

    def _identical_location(
        self,
        parsed_quote: _Quote,
        named_spans: Sequence[int],
        outward: Callable[[int], Iterator[int]],
    ) -> QuoteLocation | None:
        """Return the nearest location of the exact quote or of the same words, or None.

        ``outward`` yields the indices of the spans up to a distance from the named spans, the
        nearest first.
        """
        # Search the whole quote, then its parts between ellipses. A reading is a text that the
        # quote may stand for, such as the quote without its quotation marks.
        for possible_readings in filter(None, (parsed_quote.whole, parsed_quote.pieced)):
            # A short quote may occur by chance, so it counts in the named spans only.
            for is_named in (True,) if parsed_quote.short else (True, False):
                for match_kind in (Match.EXACT, Match.SPACING):
                    area = named_spans if is_named else outward(self._span_count)
                    location = self._nearest_location(possible_readings, match_kind, area)
                    if location is not None:
                        return location
        return None

    def _is_agent(self, name: str) -> bool:
        return name.casefold() in self._agents

    @cached_property
    def _agents(self) -> frozenset[str]:
        return frozenset(agent.casefold() for agent in self._sent_texts.agents())

    def _nearest_location(
        self, possible_readings: tuple[_Reading, ...], match_kind: Match, area: Iterable[int]
    ) -> QuoteLocation | None:
        """Return the location of the first possible reading in an area, or None.

        Spans without the text of a first piece, or without its letters for an inexact match, are
        skipped.
        """
        exact = match_kind is Match.EXACT
        for index, text in self._bounded_texts(area, MOST_SEARCHED):
            searched_layers = (text,) if exact else self._text_layers(index, text)
            for pieces, first_letters in possible_readings:
                needle = pieces[0] if exact else first_letters
                if not any(needle in layer for layer in searched_layers):
                    continue
                if len(pieces) > 1:
                    location = self._location_of_pieces(index, text, pieces, match_kind)
                else:
                    match_range = find_part(
                        text, pieces[0], match_kind, text_layers=searched_layers
                    )
                    location = QuoteLocation(index, match_range, index) if match_range else None
                if location is not None:
                    return location
        return None

    def _most_similar_location(
        self, parsed_quote: _Quote, area: Iterable[int]
    ) -> QuoteLocation | None:
        """Return the location of the most similar text in an area, or None.

        A text with altered words counts only if no other text is similar.
        """
        texts = JoinedTexts(self._bounded_texts(area, MOST_COMPARED, LONGEST_COMPARED))
        best: QuoteLocation | None = None
        for pieces in parsed_quote.compared:
            best = _better_location(best, self._similar_location(texts, pieces))
            if best is not None and not best.altered:
                return best
        if best is None and parsed_quote.long_pieces:
            # Short pieces may occur by chance, so they are left out. A match without them counts as
            # altered.
            best = self._similar_location(texts, parsed_quote.long_pieces)
            if best is not None:
                match_range = QuoteMatch(
                    best.match_range.start, best.match_range.end, Match.ALTERED
                )
                best = QuoteLocation(best.index, match_range, best.last)
        return best

    def _similar_location(
        self, texts: JoinedTexts, pieces: tuple[str, ...]
    ) -> QuoteLocation | None:
        """Return the location of a text like the first piece, with the other pieces after it."""
        # ``closest`` tries closer kinds of match first. A quote of one piece was searched by these
        # before.
        find = closest if len(pieces) > 1 else find_part
        match_range = find(texts.text, pieces[0], Match.REWORDED)
        span_range = None if match_range is None else texts.locate(match_range)
        if span_range is None:
            return None
        index, last, range_in_span = span_range
        if len(pieces) == 1:
            return QuoteLocation(index, range_in_span, last)
        text = self._sent_texts.text(index)
        return self._location_of_pieces(index, clipped(text), pieces, Match.REWORDED)

    def _location_of_pieces(
        self, index: int, text: str, pieces: tuple[str, ...], match_kind: Match
    ) -> QuoteLocation | None:
        """Return the location of pieces that follow each other in a span, or in it and the next.

        Short pieces may occur by chance. If any piece is short, several occurrences of the first
        piece are tried. A short first piece must have the same words.
        """
        if all(map(_is_long, pieces)):
            return self._location_from(0, index, text, pieces, match_kind)
        if match_kind is Match.REWORDED and not _is_long(pieces[0]):
            return None
        start = 0
        for _ in range(_FIRST_PARTS_TRIED):
            match_range = closest(text, pieces[0], match_kind, start=start)
            if match_range is None:
                return None
            location = self._location_from(match_range.start, index, text, pieces, match_kind)
            if location is not None:
                return location
            start = match_range.start + 1
        return None

    def _location_from(
        self, start: int, index: int, text: str, pieces: tuple[str, ...], match_kind: Match
    ) -> QuoteLocation | None:
        """Return the location of pieces in their order, searched from an offset in a span, or None.

        - A short piece, or a piece after a short one, must follow soon in the same span.
        - A long piece may be in the next span; the pieces after it are then searched there.
        - The returned range is in the first span. A long gap between pieces ends it after the
          first.
        """
        ranges: list[QuoteMatch] = []
        match = Match.IN_PARTS
        offset = start
        last_index = index
        for number, piece in enumerate(pieces):
            may_be_far = number == 0 or (_is_long(piece) and _is_long(pieces[number - 1]))
            if not may_be_far:
                nearby_range = find_within(text, piece, offset, SHORT_GAP)
                if nearby_range is None or last_index != index:
                    return None
                ranges.append(nearby_range)
                offset = nearby_range.end
                continue
            match_range = closest(text, piece, match_kind, start=offset)
            has_next_span = last_index == index and index + 1 < self._span_count
            if match_range is None and ranges and has_next_span:
                last_index = index + 1
                text = self._sent_texts.text(last_index)
                text = clipped(text) if match_kind is Match.REWORDED else text
                match_range = closest(text, piece, match_kind)
            if match_range is None:
                return None
            if match_range.match is Match.ALTERED:
                match = Match.ALTERED
            offset = match_range.end
            if last_index == index:
                ranges.append(match_range)
        has_long_gap = any(
            later.start - earlier.end > LONGEST_GAP for earlier, later in pairwise(ranges)
        )
        end = ranges[0].end if has_long_gap else ranges[-1].end
        return QuoteLocation(index, QuoteMatch(ranges[0].start, end, match), last_index)

    def _bounded_texts(
        self, area: Iterable[int], most: int, longest: int | None = None
    ) -> Iterator[tuple[int, str]]:
        """Yield the index and text of each span until ``most`` characters are reached.

        One text counts for at most ``longest`` characters.
        """
        remaining = most
        for index in area:
            if remaining <= 0:
                self._has_unsearched_spans = True
                return
            text = self._sent_texts.text(index)
            remaining -= min(len(text), longest or len(text)) + _SPAN_COST
            yield index, text

    def _text_layers(self, index: int, text: str) -> tuple[str, ...]:
        """Return the ``layers`` of a span's text from the cache."""
        text_layers = self._layers_by_span.get(index)
        if text_layers is None:
            text_layers = layers(text)
            self._layers_by_span.add(index, text_layers)
        return text_layers


def _better_location(
    first: QuoteLocation | None, second: QuoteLocation | None
) -> QuoteLocation | None:
    """Return the better of two locations: an unaltered one, then an altered one, then None."""
    if first is None or (first.altered and second is not None and not second.altered):
        return second
    return first


_Reading = tuple[tuple[str, ...], str]
"""The pieces of a quote, and the letters of the first piece."""


@dataclass(frozen=True, slots=True)
class _Quote:
    """The readings of a quote (the texts that it may stand for), and the limits of its search.

    Attributes:
        whole: The readings that are searched in one piece.
        pieced: The readings that are split at their ellipses.
        compared: The pieces of each reading that is searched by similarity.
        long_pieces: The long pieces of the last reading, if it has short pieces too.
        short: True if the quote counts in the named spans only.
        long: True if a similar text counts outside the named spans too.
    """

    whole: tuple[_Reading, ...]
    pieced: tuple[_Reading, ...]
    compared: tuple[tuple[str, ...], ...]
    long_pieces: tuple[str, ...]
    short: bool
    long: bool

    @classmethod
    def from_text(cls, quote: str, is_agent: Callable[[str], bool]) -> _Quote:
        """Parse a quote.

        Args:
            quote: The quote.
            is_agent: Checks whether a name before the quote is the name of an agent.
        """
        # Dictionaries keep the order of the readings and drop repetitions.
        whole_readings: dict[tuple[str, ...], None] = {}
        pieced_readings: dict[tuple[str, ...], None] = {}
        pieces: tuple[str, ...] = ()
        for reading in readings(quote, is_agent):
            whole_readings[(reading,)] = None
            pieces = parts(reading)
            if len(pieces) == 1:
                whole_readings[pieces] = None
            elif sum(map(word_count, pieces)) >= WORDS_OF_A_PART:
                pieced_readings[pieces] = None
        # The last reading has the least text around the quoted words, so it decides the limits.
        long_pieces = tuple(filter(_is_long, pieces))
        if len(pieces) == 1 or long_pieces == pieces:
            long_pieces = ()  # a search without short pieces would be the same
        byte_count = max(
            (len(piece.encode("utf-8", "surrogatepass")) for piece in pieces), default=0
        )
        last_pieced_reading = list(pieced_readings)[-1:]
        last_whole_reading = list(whole_readings)[-1:]
        return cls(
            whole=tuple(map(_make_reading, whole_readings)),
            pieced=tuple(map(_make_reading, pieced_readings)),
            compared=(*last_pieced_reading, *last_whole_reading),
            long_pieces=long_pieces,
            short=byte_count < _SHORT_BYTES,
            long=byte_count >= _LONG_BYTES,
        )


def _is_long(piece: str) -> bool:
    return word_count(piece) >= WORDS_OF_A_PART


def _make_reading(pieces: tuple[str, ...]) -> _Reading:
    return pieces, letters(pieces[0])


def _spans_outward(
    span_count: int,
    named: tuple[int, int] | None,
    around: tuple[int, int] | None,
    reach: int,
) -> Iterator[int]:
    """Yield the indices of the spans up to a distance from the named ones, the nearest first.

    Without named spans, begin with ``around``, the spans that the judge was sent. Without these,
    yield all spans in their order.
    """
    centre = named or around
    if centre is None:
        yield from range(span_count)
        return
    first, last = centre
    if named is None:
        yield from range(first, last + 1)
    following = range(last + 1, min(last + 1 + reach, span_count))
    preceding = range(first - 1, max(first - 1 - reach, -1), -1)
    for pair in zip_longest(following, preceding):
        yield from (index for index in pair if index is not None)


def anchored(
    finding: Finding,
    trace: Trace,
    texts: SentTexts,
    locate: Callable[[str, tuple[int, int] | None], QuoteLocation | None],
) -> Finding:
    """Return a finding with the location of its quote in the trace.

    A quote that is found is replaced by the words of the trace. If it is outside the named range,
    the range becomes the spans of the quote. A quote that is not found stays.

    Args:
        finding: A finding with a quote without offsets.
        trace: The trace, with a complete index.
        texts: The texts of the trace as they were sent to the judge.
        locate: Finds a quote by its text and the first and last index of the named range.

    Raises:
        OSError: The trace's source could not be read.
    """
    named_range = _finding_range(finding, trace)
    named_keys = None if named_range is None else _range_keys(trace, named_range)
    first, last = named_keys or (None, None)
    quote = "" if finding.evidence is None else finding.evidence.quote
    if not quote.strip():
        return replace(finding, first=first, last=last, evidence=None)
    location = locate(quote, named_range)
    start = 0
    end = 0
    if location is not None:
        start, end = texts.to_original(
            location.index, location.match_range.start, location.match_range.end
        )
    if location is None or start >= end:
        return replace(finding, first=first, last=last, evidence=Evidence(key=first, quote=quote))
    span_range = _corrected_range(named_range, location)
    match = location.match_range.match
    evidence = Evidence(
        key=trace.span(location.index).key,
        quote=trace.text(location.index)[start:end],
        char_start=start,
        char_end=end,
        match=match,
        misnamed_spans=None if span_range == named_range else named_keys,
        wording=None if match is Match.EXACT else quote.strip(),
    )
    first, last = _range_keys(trace, span_range)
    return replace(finding, first=first, last=last, evidence=evidence)


def _range_keys(trace: Trace, spans: tuple[int, int]) -> tuple[str, str]:
    first, last = spans
    return trace.span(first).key, trace.span(last).key


def _finding_range(finding: Finding, trace: Trace) -> tuple[int, int] | None:
    """Return the first and last index of a finding's spans; None if they do not exist."""
    keys = [key for key in (finding.first, finding.last) if key is not None]
    ends = [index for index in map(trace.index_of, keys) if index is not None]
    return (min(ends), max(ends)) if ends else None


def _corrected_range(
    named_range: tuple[int, int] | None, location: QuoteLocation
) -> tuple[int, int]:
    """Return the named range if the quote begins in it, extended to the quote's end.

    Otherwise return the range of the quote.
    """
    if named_range is None:
        return location.index, location.last
    first, last = named_range
    if not first <= location.index <= last:
        return location.index, location.last
    return first, max(last, location.last)
