"""The search in a trace, slice by slice, from any span on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from mast_tui.traces.byte_prefilter import Prefilter, folded
from mast_tui.traces.model import Trace

SLICE_BYTES: Final = 256 * 1024
"""The bytes that one step searches, about a millisecond without a match. No other thread runs
meanwhile."""

PIECE_CHARS: Final = 1 << 18
"""The code points of each piece of a long text, so that other threads run between pieces."""

MOST_MATCHES: Final = 10_000
"""The most matches in one span that are counted and can be visited."""


class Matcher(Protocol):
    """A search condition for texts."""

    @property
    def prefilter(self) -> Prefilter | None:
        """A filter that rules out most texts without a match; None if there is none."""

    def count(self, text: str, row_lines: Callable[[], tuple[str, ...]], /) -> int:
        """Return the number of matches in a text; 1 if only its row in the list matches.

        Args:
            text: The text.
            row_lines: Returns the texts of the row: the preview and the tool's name.
        """

    def match_ranges(self, text: str, /) -> Sequence[tuple[int, int]]:
        """Return the ranges of matches in ``text``, in code points."""


def pattern_in(typed: str, regex: bool = False) -> str | None:
    """Return the regular expression that the user has typed; None for plain text.

    Args:
        typed: The text of the search line.
        regex: True if a text without slashes around it is an expression, too.
    """
    if len(typed) > 2 and typed.startswith("/") and typed.endswith("/"):
        return typed[1:-1]
    return typed if regex else None


class Needle:
    """A matcher for a plain text; case counts if the text has a capital, or with ``exact``."""

    def __init__(self, text: str, *, exact: bool = False) -> None:
        self.exact = exact or text != text.lower()
        """True if case counts."""
        self._needle = text if self.exact else folded(text)
        self.prefilter: Final = Prefilter.for_any(text)
        """A filter that rules out most texts without a match; None if there is none."""

    def _comparable_text(self, text: str) -> str:
        return text if self.exact else folded(text)

    def count(self, text: str, row_lines: Callable[[], tuple[str, ...]], /) -> int:
        """Return the number of matches in a text; 1 if only its row in the list matches.

        Args:
            text: The text.
            row_lines: Returns the texts of the row: the preview and the tool's name.
        """
        if len(text) <= PIECE_CHARS:
            match_count = min(self._comparable_text(text).count(self._needle), MOST_MATCHES)
        else:  # in pieces, so that other threads run between them
            match_count = len(self.match_ranges(text))
        if match_count:
            return match_count
        row_matches = any(self._needle in self._comparable_text(line) for line in row_lines())
        return 1 if row_matches else 0

    def match_ranges(self, text: str, /) -> Sequence[tuple[int, int]]:
        """Return the ranges of matches that do not overlap, up to ``MOST_MATCHES``."""
        needle = self._needle
        length = len(needle)
        ranges: list[tuple[int, int]] = []
        begin = 0
        while begin < len(text) and len(ranges) < MOST_MATCHES:
            # A piece reaches into the next one, so that a match across the border is found.
            piece = self._comparable_text(text[begin : begin + PIECE_CHARS + length - 1])
            match_end = 0
            position = piece.find(needle)
            while position >= 0 and len(ranges) < MOST_MATCHES:
                match_end = position + length
                ranges.append((begin + position, begin + match_end))
                position = piece.find(needle, match_end)
            # If the last match ends in the next piece, that piece begins after it.
            begin += max(PIECE_CHARS, match_end)
        return ranges


class SearchStep(Struct, frozen=True):
    """The result of one step of a search.

    Attributes:
        hits: The index and the number of matches of each matching span, in reading order.
        share: The approximate part of the source that was searched, from 0 to 1.
        waits: True if the search has reached the end of the part of the trace that was read.
    """

    hits: tuple[tuple[int, int], ...]
    share: float
    waits: bool


class TextSearch:
    """A search in all spans, from ``start`` to the end and then from the beginning to ``start``."""

    def __init__(self, trace: Trace, matcher: Matcher, start: int) -> None:
        self.trace = trace
        self.matcher = matcher
        self.start = start
        self._next_index = start
        """The next span of the first part, from ``start`` on."""
        self._wrapped_count = 0
        """The number of spans of the second part, from the beginning, that were searched."""

    def step(self, max_bytes: int = SLICE_BYTES) -> SearchStep | None:
        """Search the next slice of spans; return None if all spans were searched.

        Args:
            max_bytes: The approximate number of bytes to read.
        """
        loaded = self.trace.loaded  # read before the number of spans, which may grow meanwhile
        known_spans = len(self.trace)
        hits: list[tuple[int, int]] = []
        search_slice = partial(self._search_slice, max_bytes)
        waits = False
        wrapped_limit = min(self.start, known_spans)
        if self._next_index < known_spans:
            self._next_index, hits = search_slice(self._next_index, known_spans)
        elif self._wrapped_count < wrapped_limit:
            self._wrapped_count, hits = search_slice(self._wrapped_count, wrapped_limit)
        elif loaded.complete:
            return None
        else:
            waits = True
        loaded_share = 1.0 if loaded.complete else loaded.done / max(1, loaded.total)
        searched_count = self._next_index - self.start + self._wrapped_count
        share = loaded_share * searched_count / max(1, known_spans)
        return SearchStep(tuple(hits), share, waits)

    def _search_slice(
        self, max_bytes: int, begin: int, limit: int
    ) -> tuple[int, list[tuple[int, int]]]:
        """Search a slice of the spans from ``begin`` on, and return its end and the hits."""
        end, texts = self.trace.candidates(self.matcher.prefilter, begin, limit, max_bytes)
        hits: list[tuple[int, int]] = []
        for index, text in texts:
            match_count = self.matcher.count(text, partial(self._row_lines, index))
            if match_count:
                hits.append((index, match_count))
        return end, hits

    def _row_lines(self, index: int) -> tuple[str, ...]:
        """Return the preview of a span, and the name of its tool if it has one."""
        span = self.trace.span(index)
        return (span.preview, span.name) if span.name else (span.preview,)
