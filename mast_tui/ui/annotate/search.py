"""The search in the spans of a trace, which runs while the user types."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, overload

from textual.worker import get_current_worker

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.search.pattern import Pattern
from mast_tui.traces.search.text_search import Matcher, Needle, TextSearch, pattern_in
from mast_tui.ui.actions.registry import key_while_typing
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.wording import counted, plain_title

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen


class _HitPart:
    """Hits in reading order, with the number of matches up to each."""

    def __init__(self) -> None:
        self.indices = array("Q")
        self.cumulative = array("Q")

    @property
    def total(self) -> int:
        return self.cumulative[-1] if self.cumulative else 0

    def add(self, index: int, count: int) -> None:
        self.cumulative.append(self.total + count)
        self.indices.append(index)

    def extend(self, following: _HitPart) -> None:
        """Add hits that come after all of these."""
        total = self.total
        self.cumulative.extend(map(total.__add__, following.cumulative))
        self.indices.extend(following.indices)

    def within(self, first: int, end: int) -> array[int]:
        """Return the spans from ``first`` up to ``end`` (exclusive)."""
        low = bisect_left(self.indices, first)
        return self.indices[low : bisect_left(self.indices, end, low)]

    def matches_before(self, position: int) -> int:
        """Return the number of matches in the hits before a position."""
        return self.cumulative[position - 1] if position else 0


class Hits(Sequence[int]):
    """The spans that match a search, in reading order, with the number of matches in each.

    The search goes from ``start`` to the end and then from the beginning. Hits never move when more
    are added.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self._after_start = _HitPart()
        self._before_start = _HitPart()

    def add(self, hits: Iterable[tuple[int, int]]) -> None:
        """Add spans, each with its number of matches."""
        for index, count in hits:
            (self._after_start if index >= self.start else self._before_start).add(index, count)

    def extend(self, following: Hits) -> None:
        """Add hits that the same search found after these."""
        self._after_start.extend(following._after_start)
        self._before_start.extend(following._before_start)

    @property
    def first(self) -> int:
        """The span that was found first; there must be one."""
        return (self._after_start.indices or self._before_start.indices)[0]

    @property
    def total(self) -> int:
        """The number of matches."""
        return self._before_start.total + self._after_start.total

    def __len__(self) -> int:
        return len(self._before_start.indices) + len(self._after_start.indices)

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[int]: ...
    def __getitem__(self, position: int | slice) -> int | Sequence[int]:
        if isinstance(position, slice):
            return [self[number] for number in range(*position.indices(len(self)))]
        if not -len(self) <= position < len(self):
            raise IndexError(f"no hit {position} of {len(self)}")
        position %= len(self)
        count_before = len(self._before_start.indices)
        if position < count_before:
            return self._before_start.indices[position]
        return self._after_start.indices[position - count_before]

    def __iter__(self) -> Iterator[int]:
        yield from self._before_start.indices
        yield from self._after_start.indices

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.match_count(index) > 0

    def _position_of(self, index: int) -> tuple[_HitPart, int]:
        part = self._after_start if index >= self.start else self._before_start
        return part, bisect_left(part.indices, index)

    def match_count(self, index: int) -> int:
        """Return the number of matches in a span."""
        part, position = self._position_of(index)
        if position == len(part.indices) or part.indices[position] != index:
            return 0
        return part.cumulative[position] - part.matches_before(position)

    def within(self, first: int, end: int) -> Sequence[int]:
        """Return the hits in a range of spans.

        Args:
            first: The first span.
            end: The span after the last one.
        """
        return self._before_start.within(first, end) + self._after_start.within(first, end)

    def rank(self, index: int, nth: int) -> int:
        """Return the number of a match among all matches in reading order, from 1.

        Args:
            index: The span of the match.
            nth: Its number in the span, from 0.
        """
        part, position = self._position_of(index)
        earlier = 0 if part is self._before_start else self._before_start.total
        return earlier + part.matches_before(position) + nth + 1

    def next_to(self, index: int, step: int) -> int:
        """Return the next hit after a span, or the previous one; the last is followed by the first.

        Args:
            index: The span.
            step: Above 0 for the next hit, below 0 for the previous one.
        """
        position = bisect_right(self, index) if step > 0 else bisect_left(self, index) - 1
        return self[position % len(self)]


GROWING: Final = 0.05
"""Seconds between two checks of an index that is still growing."""

REPORT_EVERY: Final = 0.1
"""Seconds between two reports of hits; the first hit is reported at once."""

LONG_CHARS: Final = 1 << 18
"""The length up to which a text is searched in the event loop."""

NEAR_BYTES: Final = 16 * 1024
"""The bytes from the cursor on that are searched at once, in a fraction of a millisecond.

So a match near the cursor is found before the next key is handled.
"""

MAX_HIGHLIGHTED: Final = 400
"""The number of matches that are highlighted on each side of the current one."""

MatchRanges = Sequence[tuple[int, int]]
"""Start and end of each match in a text."""


def matcher_for(typed: str, regex: bool) -> Matcher:
    """Return a matcher for a search text.

    Args:
        typed: The text on the search line.
        regex: Whether it is a regular expression even without slashes.

    Raises:
        InvalidPattern: The regular expression is not valid.
    """
    pattern = pattern_in(typed, regex)
    if pattern is None:
        return Needle(typed)
    return Pattern(pattern)


class Search:
    """The search in rows and texts, in the background, with its line and its current match."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self.line = TextLine(placeholder="find in all spans", id="search")
        """The line to type on; the screen mounts it."""
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._hints = screen.hints
        self._search: TextSearch | None = None
        self._regex = False
        self._is_plain = True
        """Whether the search is for plain text."""
        self._done = True
        self._progress = 0.0
        self._start_index = 0
        self._origin: int | None = None
        self._starts_in_short_text = False
        """Whether the text under the cursor was short when the search line was opened."""
        self._cursor_settled = False
        self._requested_step = 0
        self._last_message = ""
        self._current: tuple[int, int] = (-1, 0)
        self._match_ranges: tuple[int, MatchRanges] = (-1, ())

    # The line

    @property
    def is_open(self) -> bool:
        """True if the search line is on screen."""
        return self.line.display

    def open(self) -> None:
        """Open the search line."""
        line = self.line
        if not line.display:
            self._origin = self._state.index if self._state.has_spans else 0
            self._starts_in_short_text = (
                self._state.has_spans and len(self._state.text_at_cursor()) <= LONG_CHARS
            )
        line.display = True
        self._screen.set_focus(line)

    def toggle_regex(self) -> None:
        """Switch between plain text and regular expressions."""
        self._regex = not self._regex
        line = self.line
        self.open()
        if line.value:
            self.start(line.value)
        else:
            kind = "a regular expression" if self._regex else "plain text"
            key = self._screen.context.key_of("annotate.search_regex")
            self._hints.prompt(f"What you type is {kind} · {key} changes that{self._closing_hint}")

    def typed(self, text: str) -> None:
        """Search for the text that is on the line now."""
        if text != self._state.needle:
            self.start(text)

    def set_text(self, text: str) -> None:
        """Search for a text as if the user had typed it."""
        self.line.value = text
        self.start(text)

    def submit(self) -> None:
        """Close the line and keep the matches."""
        if self._origin is not None and self._state.has_spans:
            self._timeline.trail.record_jump(self._origin, self._state.index)
        self.close()
        self._show_status()

    def close(self) -> None:
        """Hide the search line; the matches stay until the next search or Escape."""
        self.line.display = False
        self._origin = None
        self._screen.set_focus(self._timeline)

    def forget(self) -> bool:
        """Remove the matches and close the line; return False if there was neither."""
        active = bool(self._state.needle) or self.line.display
        self._regex = False
        self.line.value = ""
        self.close()
        self.start("")
        return active

    # Searching

    def clear(self) -> None:
        """Stop the search and remove its matches."""
        self._screen.stop_background("search")
        self._search = None
        self._state.needle = ""
        self._done = True
        self._requested_step = 0
        self._current = (-1, 0)
        self._match_ranges = (-1, ())
        self._state.hits = Hits()
        self._show_total()

    def grown(self) -> None:
        """Search the spans that have arrived since the search was complete."""
        search = self._search
        if search is not None and self._done:
            self._done = False
            self._screen.in_background(partial(self._search_in_background, search), "search")

    def repeat(self, needle: str) -> None:
        """Search another trace for the same text, without moving the cursor."""
        self.start(needle)
        self._cursor_settled = True

    def _show_total(self) -> None:
        """Show the number of matches under the timeline once it is known.

        It stays there until the next search, while a message in the last line ends with the next
        key.
        """
        if self._timeline.is_mounted:
            text = self._total_text() if self._done and self._state.needle else ""
            self._timeline.border_subtitle = plain_title(text)

    def _total_text(self) -> str:
        total = self._state.hits.total
        return f"{self._description(24)} · {counted(total, 'match', 'matches')}"

    def start(self, needle: str) -> None:
        """Search for another text, from the cursor position when the line was opened."""
        previous_hits = self._state.hits
        self.clear()
        self._state.needle = needle
        if needle:
            self._state.newest_filter = "search"
        self._start_index = self._state.index if self._state.has_spans else 0
        start = self._start_index if self._origin is None else self._origin
        self._state.hits = Hits(start)
        problem = self._create_search(start) if needle and self._state.trace is not None else None
        if previous_hits:
            self._redraw_matches(previous_hits)
        self._screen.show_span()
        if problem is not None:
            self._hints.say(problem, error=True)
        elif not needle:
            self._hints.clear()
            self._screen.filter.search_changed()
        elif self._search is not None:
            self._search_near(self._search)

    def _create_search(self, start: int) -> str | None:
        """Create the search; return what is wrong with the typed text, or None."""
        assert self._state.trace is not None
        try:
            matcher = matcher_for(self._state.needle, self._regex)
        except MastError as error:
            return f"Not a regular expression yet: {one_line(str(error), 80)}"
        self._is_plain = pattern_in(self._state.needle, self._regex) is None
        self._search = TextSearch(self._state.trace, matcher, start)
        self._done = self._cursor_settled = False
        self._progress = 0.0
        return None

    def _search_near(self, search: TextSearch) -> None:
        """Search near the cursor at once, if that is fast, and the rest in the background."""
        # A regular expression may be slow even on a short text.
        if self._starts_in_short_text and self._is_plain:
            progress = search.step(max_bytes=NEAR_BYTES)
            if progress is not None:
                hits = Hits(search.start)
                hits.add(progress.hits)
                self._report(search, hits, progress.share)
        else:
            self._show_status()
        self._screen.in_background(partial(self._search_in_background, search), "search")

    def _search_in_background(self, search: TextSearch) -> None:
        """Search the trace in a worker thread, and report hits in groups."""
        worker = get_current_worker()
        unreported = Hits(search.start)
        reported = 0.0
        none_reported = True
        while not worker.is_cancelled:
            progress = search.step()
            if worker.is_cancelled:
                return
            if progress is None:
                self._screen.call_later(self._report, search, unreported, 1.0, over=True)
                return
            unreported.add(progress.hits)
            # The first hits are reported at once, later ones in groups.
            at_once = bool(unreported) and (none_reported or progress.waits)
            if at_once or (not progress.waits and monotonic() - reported > REPORT_EVERY):
                self._screen.call_later(self._report, search, unreported, progress.share)
                none_reported = none_reported and not unreported
                unreported = Hits(search.start)
                reported = monotonic()
            # Wait for an index that is still growing; otherwise let other threads run.
            sleep(GROWING if progress.waits else 0)

    def _report(self, search: TextSearch, hits: Hits, share: float, *, over: bool = False) -> None:
        """Add the hits of the background search, and report its progress.

        Args:
            search: The search that reports.
            hits: The hits since its last report.
            share: The part of the trace that it has searched.
            over: Whether it is complete.
        """
        if search is not self._search:
            return
        self._progress = share
        if hits:
            self._add_hits(hits)
        if over:
            self._done = True
            self._show_total()
            self._take_requested_step()
            self._screen.filter.search_changed()
        # Other messages are not replaced.
        replaceable = ("", self._last_message) if self._done else (self._last_message,)
        if self.line.display or self._hints.message in replaceable:
            self._show_status()

    def _add_hits(self, hits: Hits) -> None:
        """Add hits, and put the cursor on the first one unless the user has moved it."""
        first = not self._state.hits
        self._state.hits.extend(hits)
        self._redraw_matches(hits)
        # The cursor stays if the user has moved it, or is about to label.
        self._cursor_settled |= self._state.index != self._start_index or self._screen.typing
        if self._requested_step > 0:
            self._cursor_settled = True
            self._take_requested_step()
        elif first and not self._cursor_settled:
            self._cursor_settled = True
            self._go_to_match(hits.first, 0)
        elif self._state.index in hits:
            self._screen.show_highlights()

    def _redraw_matches(self, changed: Hits) -> None:
        """Draw the rows that match now, or no longer."""
        timeline = self._timeline
        timeline.matches = self._state.hits
        timeline.redraw_where(lambda row: timeline.rows.index_at(row) in changed)
        self._screen.overview.show_matches(self._state.hits)

    # Going to matches

    def go_to_next(self, step: int) -> None:
        """Go to the next or previous match, in this span or in another one.

        If the search has found nothing yet, go there as soon as it does.

        Args:
            step: 1 for the next match, -1 for the previous one.
        """
        if not self._state.needle:
            self.open()
            return
        if not self._state.hits:
            self._requested_step = 0 if self._done else step
            self._show_status()
            return
        index = self._state.index
        count = self._state.hits.match_count(index)
        nth = (self._current[1] if self._current[0] == index else 0) + step
        if count and 0 <= nth < count:
            self._go_to_match(index, nth)
        else:
            target = self._state.hits.next_to(index, step)
            self._go_to_match(target, 0 if step > 0 else self._state.hits.match_count(target) - 1)
        self._show_status()

    def _take_requested_step(self) -> None:
        """Go to the match that a key requested before any was found."""
        step = self._requested_step
        self._requested_step = 0
        if step and self._state.hits:
            self.go_to_next(step)

    def _go_to_match(self, index: int, nth: int) -> None:
        """Put the cursor on a match of a span, counted from 0."""
        self._current = (index, nth)
        if self._state.index != index:
            if not self._timeline.rows.shows(index):
                # The timeline learns of new spans a few times a second, the search earlier.
                self._timeline.grown()
            # While the user types, the cursor moves often; the jump is recorded once, at the end.
            move = self._timeline.move_to_span if self.line.display else self._timeline.go_to
            move(index)
        self._screen.show_span()
        self._reveal_match()

    def _reveal_match(self) -> None:
        index, nth = self._current
        ranges = self._current_match_ranges()
        if index == self._state.index and nth < len(ranges):
            self._screen.span_view.reveal(*ranges[nth])

    def _current_match_ranges(self) -> MatchRanges:
        """Return the matches in the text under the cursor, as far as they are known."""
        search = self._search
        index = self._state.index
        if search is None or index not in self._state.hits:
            return ()
        if self._match_ranges[0] != index:
            text = self._state.text_at_cursor()
            if self._is_plain and len(text) <= LONG_CHARS:
                self._match_ranges = (index, search.matcher.places(text))
            else:
                self._match_ranges = (index, ())
                find = partial(self._find_match_ranges, search, index, text)
                self._screen.in_background(find, "search-places")
        return self._match_ranges[1]

    def highlighted_ranges(self) -> MatchRanges:
        """Return the matches to highlight in the text under the cursor."""
        ranges = self._current_match_ranges()
        nth = self._current[1] if self._current[0] == self._state.index else 0
        return ranges[max(0, nth - MAX_HIGHLIGHTED) : nth + MAX_HIGHLIGHTED]

    def _find_match_ranges(self, search: TextSearch, index: int, text: str) -> None:
        ranges = search.matcher.places(text)
        self._screen.call_later(self._show_match_ranges, search, index, ranges)

    def _show_match_ranges(self, search: TextSearch, index: int, ranges: MatchRanges) -> None:
        """Highlight the matches that were found in the background."""
        if search is self._search and index == self._state.index:
            self._match_ranges = (index, ranges)
            self._screen.show_highlights()
            self._reveal_match()

    # Messages

    def _show_status(self) -> None:
        """Show the progress of the search and the number of the current match."""
        if self._state.needle and self._search is not None:
            self._show_progress()
            self._last_message = self._hints.message

    def _show_progress(self) -> None:
        """Show how many matches there are, and which one is the current one."""
        typing = self.line.display
        description = self._description(40)
        if not self._state.hits and self._done:
            self._hints.say(f"No span holds {description}", error=True)
            return
        if not self._state.hits:
            status = f"Looking for {description} … {self._progress:.0%}"
        else:
            total = f"{self._state.hits.total:,}" + ("" if self._done else "+ …")
            index, nth = self._current
            count = self._state.hits.match_count(self._state.index)
            if count:
                nth = nth if index == self._state.index else 0
                total = f"{self._state.hits.rank(self._state.index, nth):,} of {total}"
            status = f"{description}: {total}"
        if typing:
            self._hints.prompt(f"{status} · Enter keeps{self._closing_hint}")
        else:
            key_of = self._screen.context.key_of
            self._hints.say(
                f"{status} · {key_of('annotate.search_next')} next · "
                f"{key_of('annotate.search_previous')} previous"
            )

    @property
    def _closing_hint(self) -> str:
        """The key that closes the search line, for the end of a message."""
        key = key_while_typing("everywhere.back", self._screen.context.keys_set)
        return f" · {key} leaves" if key else ""

    def _description(self, cells: int) -> str:
        """Return the text or pattern of the search, shortened."""
        pattern = pattern_in(self._state.needle, self._regex)
        if pattern is not None:
            return f"/{one_line(pattern, cells)}/"
        return f"“{one_line(self._state.needle, cells)}”"
