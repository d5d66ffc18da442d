"""Search of a trace of any size, slice by slice, from any span on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from mast_tui.traces.byte_prefilter import Prefilter, folded
from mast_tui.traces.model import Trace

SLICE_BYTES: Final = 256 * 1024
"""The bytes of the source that one step searches: about a millisecond's worth where
nothing matches, as a search of bytes lets nothing else run meanwhile."""

PIECE_CHARS: Final = 1 << 18
"""The code points of a piece of a long text, which is searched in pieces for the same reason."""

MOST_MATCHES: Final = 10_000
"""Matches beyond this many in one span are neither counted nor gone to."""


class Matcher(Protocol):
    """A search condition for texts."""

    @property
    def prefilter(self) -> Prefilter | None:
        """The filter that finds early that a text cannot match; None if there is none."""

    def count(self, text: str, row_lines: Callable[[], tuple[str, ...]], /) -> int:
        """Count the matches in a text; 1 where only the row matches.

        Args:
            text: The text.
            row_lines: Returns the lines of the row.
        """

    def places(self, text: str, /) -> Sequence[tuple[int, int]]:
        """Return the ranges of matches in ``text``, in code points."""


def pattern_in(typed: str, regex: bool = False) -> str | None:
    """Return the regular expression that the user has typed, or None for plain text.

    Args:
        typed: The text of the search line.
        regex: Whether all of it is an expression; else the part between two slashes is.
    """
    if len(typed) > 2 and typed.startswith("/") and typed.endswith("/"):
        return typed[1:-1]
    return typed if regex else None


class Needle:
    """Plain text: small letters find capitals too; with a capital in it, or ``exact``, case
    counts."""

    def __init__(self, text: str, *, exact: bool = False) -> None:
        self.exact = exact or text != text.lower()
        self._needle = text if self.exact else folded(text)
        self._prefilter = Prefilter.for_any(text)

    @property
    def prefilter(self) -> Prefilter | None:
        """The filter that finds early that a text cannot match."""
        return self._prefilter

    def _prepared(self, text: str) -> str:
        return text if self.exact else folded(text)

    def count(self, text: str, row_lines: Callable[[], tuple[str, ...]], /) -> int:
        """Count the matches in a text; 1 where only the row matches.

        Args:
            text: The text.
            row_lines: Returns the lines of the row.
        """
        if len(text) <= PIECE_CHARS:
            times = min(self._prepared(text).count(self._needle), MOST_MATCHES)
        else:
            times = len(self.places(text))
        return times or int(any(self._needle in self._prepared(line) for line in row_lines()))

    def places(self, text: str, /) -> Sequence[tuple[int, int]]:
        """Return the ranges of matches that do not overlap."""
        needle = self._needle
        length = len(needle)
        ranges: list[tuple[int, int]] = []
        begin = 0
        while begin < len(text) and len(ranges) < MOST_MATCHES:
            piece = self._prepared(text[begin : begin + PIECE_CHARS + length - 1])
            match_end = 0
            position = piece.find(needle)
            while position >= 0 and len(ranges) < MOST_MATCHES:
                match_end = position + length
                ranges.append((begin + position, begin + match_end))
                position = piece.find(needle, match_end)
            begin += max(PIECE_CHARS, match_end)
        return ranges


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The matches of one step: spans with the number of matches in each, in reading order.

    ``seen`` of ``known`` spans have been looked at, which is about this ``share`` of the source,
    from 0 to 1. ``waits`` says that nothing is left to look at before the index has grown.
    """

    hits: tuple[tuple[int, int], ...]
    seen: int
    known: int
    share: float = 0.0
    waits: bool = False


class TextSearch:
    """Looks for something in all spans: from ``start`` on to the end, then from the beginning."""

    def __init__(self, trace: Trace, matcher: Matcher, start: int) -> None:
        self.trace = trace
        self.matcher = matcher
        self.start = start
        self._ahead = start
        self._wrapped = 0

    def step(self, max_bytes: int = SLICE_BYTES) -> SearchStep | None:
        """Look at the next spans.

        Args:
            max_bytes: About how much of the source to read.

        Returns:
            The matches; None when all spans have been looked at.
        """
        loaded = self.trace.loaded  # asked first: what comes meanwhile is looked at as well
        known_spans = len(self.trace)
        hits: list[tuple[int, int]] = []
        slice_of = partial(self._search_slice, max_bytes)
        waits = False
        if self._ahead < known_spans:
            self._ahead, hits = slice_of(self._ahead, known_spans)
        elif self._wrapped < min(self.start, known_spans):
            self._wrapped, hits = slice_of(self._wrapped, min(self.start, known_spans))
        elif loaded.complete:
            return None
        else:
            waits = True
        read = 1.0 if loaded.complete else loaded.done / max(1, loaded.total)
        return SearchStep(
            tuple(hits), self._seen, known_spans, read * self._seen / max(1, known_spans), waits
        )

    @property
    def _seen(self) -> int:
        return self._ahead - self.start + self._wrapped

    def _search_slice(
        self, max_bytes: int, begin: int, limit: int
    ) -> tuple[int, list[tuple[int, int]]]:
        """Search a slice of the spans; return its end and the matches."""
        end, texts, rows_too = self.trace.candidates(
            self.matcher.prefilter, begin, limit, max_bytes
        )
        if not rows_too:
            texts = self._with_rows(begin, end, texts)
        hits: list[tuple[int, int]] = []
        for index, text in texts:
            times = self.matcher.count(text, partial(self._row_lines, index))
            if times:
                hits.append((index, times))
        return end, hits

    def _with_rows(
        self, begin: int, end: int, texts: Iterable[tuple[int, str]]
    ) -> Iterator[tuple[int, str]]:
        """Yield these texts and those of the other spans whose rows may match, in order."""
        prefilter = self.matcher.prefilter
        made = dict(texts)
        for index in range(begin, end):
            text = made.get(index)
            if text is None:
                if prefilter is None or not prefilter.may_be_in("\n".join(self._row_lines(index))):
                    continue
                try:
                    text = self.trace.text(index)
                except OSError:
                    continue  # it cannot be read any more
            yield index, text

    def _row_lines(self, index: int) -> tuple[str, ...]:
        """Return the lines of a span's row."""
        span = self.trace.span(index)
        return (span.preview, span.name) if span.name else (span.preview,)
