"""The search in the spans of a trace, which runs while the user types."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, NamedTuple

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.search.pattern import Pattern
from mast_tui.traces.search.text_search import Matcher, Needle, TextSearch, pattern_in
from mast_tui.ui.actions.registry import hint_while_typing
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.base_screen import Stopped
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.wording import counted, plain_title

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen


class Hits:
    """The spans that match a search in reading order, with the number of matches in each.

    The search goes from the span ``start`` to the end, and then from the beginning to ``start``.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.total = 0
        """The number of matches in all spans."""
        self.indices = array("Q")
        self._counts = array("Q")
        self._before_start = 0
        """The number of hits before ``start``."""

    def add(self, hits: Iterable[tuple[int, int]]) -> None:
        """Add spans with their numbers of matches, in the order of the search."""
        for index, count in hits:
            position = len(self)
            # After the last span, the search continues at the first.
            if index < self.start:
                position = self._before_start
                self._before_start += 1
            self.indices.insert(position, index)
            self._counts.insert(position, count)
            self.total += count

    def extend(self, later_hits: Hits) -> None:
        """Add later hits of the same search.

        Each list has two parts in reading order: spans before ``start``, and spans from ``start``
        on. Later hits are added at the end of each part.
        """
        position = self._before_start
        added = later_hits._before_start
        self.indices[position:position] = later_hits.indices[:added]
        self._counts[position:position] = later_hits._counts[:added]
        self.indices += later_hits.indices[added:]
        self._counts += later_hits._counts[added:]
        self._before_start += added
        self.total += later_hits.total

    @property
    def first(self) -> int:
        """The first span that was found. There must be a hit."""
        return self.indices[self._before_start % len(self)]

    def __len__(self) -> int:
        return len(self.indices)

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.match_count(index) > 0

    def match_count(self, index: int) -> int:
        """Return the number of matches in a span."""
        position = bisect_left(self.indices, index)
        is_hit = position < len(self) and self.indices[position] == index
        return self._counts[position] if is_hit else 0

    def within(self, first: int, end: int) -> Sequence[int]:
        """Return the hits in a range of spans.

        Args:
            first: The first span.
            end: The span after the last one.
        """
        return self.indices[bisect_left(self.indices, first) : bisect_left(self.indices, end)]

    def rank(self, index: int, nth: int) -> int:
        """Return the number of a match among all matches in reading order, from 1.

        Args:
            index: The span of the match.
            nth: The number of the match in the span, from 0.
        """
        return sum(self._counts[: bisect_left(self.indices, index)]) + nth + 1

    def next_to(self, index: int, step: int) -> int:
        """Return the next or previous span with a hit. The first follows the last.

        Args:
            index: The span to begin from. It does not count itself.
            step: 1 for the next span, -1 for the previous one.
        """
        indices = self.indices
        position = bisect_right(indices, index) if step > 0 else bisect_left(indices, index) - 1
        return indices[position % len(self)]


GROWING_INDEX_PAUSE: Final = 0.05
"""Seconds between two checks of a growing index."""

REPORT_EVERY: Final = 0.1
"""Seconds between two reports of hits. The first hit is reported at once."""

LONG_CHARS: Final = 1 << 18
"""The longest text that is searched in the event loop."""

NEAR_BYTES: Final = 16 * 1024
"""The bytes after the cursor that are searched at once, in less than a millisecond.

A match near the cursor is thus found before the next key.
"""

MAX_HIGHLIGHTED: Final = 400
"""The most matches that are highlighted on each side of the current one."""

MatchRanges = Sequence[tuple[int, int]]
"""Start and end of each match in a text."""


def matcher_for(typed_text: str, regex: bool) -> Matcher:
    """Return a matcher for a search text.

    Args:
        typed_text: The text on the search line.
        regex: True for a regular expression even without slashes.

    Raises:
        InvalidPattern: The regular expression is not valid.
    """
    pattern = pattern_in(typed_text, regex)
    return Needle(typed_text) if pattern is None else Pattern(pattern)


class _Report(NamedTuple):
    """A report of a search.

    Attributes:
        hits: The hits since the last report.
        progress: The share of the trace searched so far.
        is_last: True if the search is complete.
    """

    hits: Hits
    progress: float
    is_last: bool = False


def _reports(search: TextSearch, stopped: Stopped) -> Iterator[_Report]:
    """Search a trace. Yield the first hits at once, and later ones at short intervals."""
    unreported_hits = Hits(search.start)
    report_time = 0.0
    has_reported_hits = False
    while not stopped():
        progress = search.step()
        if progress is None:
            yield _Report(unreported_hits, 1.0, is_last=True)
            return
        unreported_hits.add(progress.hits)
        # While the search waits for the index, its progress does not change.
        if progress.waits:
            is_report_due = bool(unreported_hits)
        else:
            is_first_hit = bool(unreported_hits) and not has_reported_hits
            is_report_due = is_first_hit or monotonic() - report_time > REPORT_EVERY
        if is_report_due:
            yield _Report(unreported_hits, progress.share)
            has_reported_hits = has_reported_hits or bool(unreported_hits)
            unreported_hits = Hits(search.start)
            report_time = monotonic()
        # Wait for a growing index, or just let other threads run.
        sleep(GROWING_INDEX_PAUSE if progress.waits else 0)


class _CurrentMatch(NamedTuple):
    """The match that the user has gone to.

    Attributes:
        span_index: The index of the span; -1 without a match.
        nth: The number of the match in the text of the span, from 0.
    """

    span_index: int
    nth: int


NO_MATCH: Final = _CurrentMatch(-1, 0)


class Search(ScreenPart):
    """The search in rows and texts, with its line and its current match."""

    def __init__(self, screen: AnnotateScreen) -> None:
        """Begin without a search."""
        super().__init__(screen)
        self.line = TextLine(placeholder="find in all spans", id="search")
        """The line to type on; the screen mounts it."""
        self._forget_search()
        self._regex = False
        self._is_plain_text = True
        """True if the search is for plain text."""
        self._progress = 0.0
        """The share of the trace that has been searched."""
        self._index_at_start = 0
        """The span under the cursor at the start of the search."""
        self._index_at_opening: int | None = None
        """The span under the cursor when the line was opened; None while it is closed."""
        self._starts_in_short_text = False
        """True if the text under the cursor was short when the line was opened."""
        self._keeps_cursor = False
        """True if the cursor must not go to the first hit."""
        self._last_message = ""
        """The last status that the search has shown."""

    def _forget_search(self) -> None:
        self._search: TextSearch | None = None
        self._is_done = True
        """True if all spans read so far were searched."""
        self._requested_step = 0
        """The step of a waiting key: 1 to go to the first hit, -1 to the last; 0 without such a
        key.
        """
        self._current = NO_MATCH
        self._match_ranges: MatchRanges = ()
        """The matches in the text of the span ``_match_ranges_index``."""
        self._match_ranges_index = -1

    @property
    def is_open(self) -> bool:
        """True if the search line is on screen."""
        return self.line.display

    def open(self) -> None:
        """Open the search line."""
        line = self.line
        if not line.display:
            self._index_at_opening = self._state.index if self._state.has_spans else 0
            # In a short text, hits can be looked for at once; see ``_search_near``.
            self._starts_in_short_text = (
                self._state.has_spans and len(self._state.text_at_cursor()) <= LONG_CHARS
            )
        line.display = True
        self._screen.set_focus(line)
        if not line.value:
            self._prompt_for_text()

    def _prompt_for_text(self) -> None:
        """Say what the empty line accepts, in place of the keys that do nothing meanwhile."""
        kind = "a regular expression" if self._regex else "plain text"
        key = self._key_of("annotate.search_regex")
        self._hints.prompt(f"What you type is {kind} · {key} changes that{self._closing_hint}")

    def toggle_regex(self) -> None:
        """Switch between plain text and regular expressions, and open the search line.

        Search for the text on the line again.
        """
        self._regex = not self._regex
        line = self.line
        self.open()
        if line.value:
            self.start(line.value)

    def search_for(self, text: str) -> None:
        """Search for a text, unless it is the text of the present search."""
        if text != self._state.needle:
            self.start(text)

    def set_text(self, text: str) -> None:
        """Search for a text as if the user had typed it."""
        self.line.value = text
        self.start(text)

    def submit(self) -> None:
        """Close the line, keep the matches, and record the jump to the current match."""
        if self._index_at_opening is not None and self._state.has_spans:
            self._timeline.trail.record_jump(self._index_at_opening, self._state.index)
        self.close()
        self._show_status()

    def close(self) -> None:
        """Hide the search line. The matches stay."""
        self.line.display = False
        self._index_at_opening = None
        self._hints.clear()
        self._screen.set_focus(self._timeline)

    def end(self) -> bool:
        """Remove the matches and close the line; return False if there was neither.

        From the line, the cursor returns to the span where the line was opened.
        """
        was_active = bool(self._state.needle) or self.line.display
        opening = self._index_at_opening if self.line.has_focus else None
        self._regex = False
        self.line.value = ""
        self.close()
        self.start(needle="")
        if opening is not None and self._state.has_spans and opening != self._state.index:
            self._timeline.move_to_span(opening)
        return was_active

    def clear(self) -> None:
        """Stop the search and remove its matches."""
        self._screen.work.stop("search")
        self._forget_search()
        self._state.needle = ""
        self._state.hits = Hits()
        self._show_total()

    def search_new_spans(self) -> None:
        """Search the spans that have arrived since the search was complete."""
        search = self._search
        if search is not None and self._is_done:
            self._is_done = False
            self._search_rest(search)

    def repeat(self, needle: str) -> None:
        """Search another trace for the same text, without moving the cursor."""
        self.start(needle)
        self._keeps_cursor = True

    def _show_total(self) -> None:
        """Show the number of matches of a complete search under the timeline.

        It stays until the next search, unlike a message in the last line.
        """
        if not self._timeline.is_mounted:
            return
        text = ""
        if self._is_done and self._state.needle:
            match_count = counted(self._state.hits.total, "match", "matches")
            text = f"{self._needle_text(24)} · {match_count}"
        self._timeline.border_subtitle = plain_title(text)

    def start(self, needle: str) -> None:
        """Search for another text. An empty text removes the matches.

        The search begins where the line was opened, because it moves the cursor while the user
        types. If the line is closed, it begins at the cursor. An invalid text shows an error.
        """
        previous_hits = self._state.hits
        self.clear()
        self._state.needle = needle
        if needle:
            self._state.newest_filter = "search"
        self._index_at_start = self._state.index if self._state.has_spans else 0
        first_index = self._index_at_start
        if self._index_at_opening is not None:
            first_index = self._index_at_opening
        self._state.hits = Hits(first_index)
        problem = None
        if needle and self._state.trace is not None:
            problem = self._create_search(first_index)
        if previous_hits:
            self._redraw_matches(previous_hits)
        self._screen.show_span()
        if problem is not None:
            self._say_problem(problem)
        elif not needle:
            self._hints.clear()
            self._screen.filter.search_changed()
        elif self._search is not None:
            self._search_near(self._search)

    def _create_search(self, first_index: int) -> str | None:
        """Create the search from a span on. Return what is wrong with the typed text, or None."""
        try:
            matcher = matcher_for(self._state.needle, self._regex)
        except MastError as error:
            return f"Not a regular expression yet: {one_line(str(error), 80)}"
        self._is_plain_text = pattern_in(self._state.needle, self._regex) is None
        self._search = TextSearch(self._state.open_trace, matcher, first_index)
        self._is_done = False
        self._keeps_cursor = False
        self._progress = 0.0
        return None

    def _search_near(self, search: TextSearch) -> None:
        """Search near the cursor at once if that is fast, and then the rest in the background."""
        # A regular expression may be slow even on a short text.
        if self._starts_in_short_text and self._is_plain_text:
            progress = search.step(max_bytes=NEAR_BYTES)
            if progress is not None:
                hits = Hits(search.start)
                hits.add(progress.hits)
                self._receive_report(_Report(hits, progress.share))
        else:
            self._show_status()
        self._search_rest(search)

    def _search_rest(self, search: TextSearch) -> None:
        self._screen.work.run_stages("search", partial(_reports, search), self._receive_report)

    def _receive_report(self, report: _Report) -> None:
        """Add the hits of a report, and show the progress unless there is another message."""
        self._progress = report.progress
        if report.hits:
            self._add_hits(report.hits)
        if report.is_last:
            self._is_done = True
            self._show_total()
            self._go_to_requested_match()
            self._screen.filter.search_changed()
        message = self._hints.message
        is_own_message = message == self._last_message
        # After a key has cleared the progress, only the result is shown.
        is_free_for_result = self._is_done and not message
        if self.line.display or is_own_message or is_free_for_result:
            self._show_status()

    def _add_hits(self, hits: Hits) -> None:
        """Add hits, and go to the hit that a key has requested, or to the first hit.

        If the user has moved the cursor or types a mode, it stays.
        """
        are_first_hits = not self._state.hits
        self._state.hits.extend(hits)
        self._redraw_matches(hits)
        is_user_busy = self._state.index != self._index_at_start or self._screen.typing
        if self._requested_step > 0:  # the previous hit is known only at the end of the search
            self._go_to_requested_match()
        elif are_first_hits and not self._keeps_cursor and not is_user_busy:
            self._go_to_match(hits.first, 0)
        elif self._state.index in hits:
            self._screen.show_highlights()

    def _redraw_matches(self, changed_hits: Hits) -> None:
        """Draw the spans of hits that were added or removed."""
        timeline = self._timeline
        timeline.matches = self._state.hits
        timeline.redraw_where(lambda row: timeline.rows.index_at(row) in changed_hits)
        self._screen.overview.show_matches(self._state.hits.indices)

    def go_to_next(self, step: int) -> None:
        """Go to the next or previous match, in this span or in another one.

        Without a search, open its line. Before the first hit, wait for a hit.

        Args:
            step: 1 for the next match, -1 for the previous match.
        """
        if not self._state.needle:
            self.open()
            return
        hits = self._state.hits
        index = self._state.index
        nth = self._nth_at_cursor + step
        if not hits:
            self._requested_step = 0 if self._is_done else step
        elif 0 <= nth < hits.match_count(index):
            self._go_to_match(index, nth)
        else:
            other_index = hits.next_to(index, step)
            self._go_to_match(other_index, 0 if step > 0 else hits.match_count(other_index) - 1)
        self._show_status()

    @property
    def _nth_at_cursor(self) -> int:
        """The number of the current match in its text, or 0 if the cursor is elsewhere."""
        return self._current.nth if self._current.span_index == self._state.index else 0

    def _go_to_requested_match(self) -> None:
        """Go to the match that a key has requested before any was found."""
        step = self._requested_step
        self._requested_step = 0
        if step and self._state.hits:
            self.go_to_next(step)

    def _go_to_match(self, index: int, nth: int) -> None:
        """Put the cursor on a span, and scroll its text to the match ``nth`` (from 0)."""
        self._current = _CurrentMatch(index, nth)
        if self._state.index != index:
            if not self._timeline.rows.shows(index):
                # The search may know a new span before the timeline does.
                self._timeline.show_new_spans()
            if self.line.display:
                # While the user types, the cursor moves often. ``submit`` records a single jump.
                self._timeline.move_to_span(index)
            else:
                self._timeline.go_to(index)
        self._screen.show_span()
        self._reveal_match()

    def _reveal_match(self) -> None:
        """Scroll the text to the current match, if its range is known."""
        ranges = self._ranges_at_cursor()
        if self._current.span_index == self._state.index and self._current.nth < len(ranges):
            self._screen.span_view.reveal(*ranges[self._current.nth])

    def _ranges_at_cursor(self) -> MatchRanges:
        """Return the matches in the text under the cursor.

        If finding them may take long, it starts in the background, and no matches are returned yet.
        """
        search = self._search
        index = self._state.index
        if search is None or index not in self._state.hits:
            return ()
        if self._match_ranges_index != index:
            self._match_ranges_index = index
            text = self._state.text_at_cursor()
            # A regular expression may be slow even on a short text.
            if self._is_plain_text and len(text) <= LONG_CHARS:
                self._match_ranges = search.matcher.match_ranges(text)
            else:
                self._match_ranges = ()
                self._screen.work.run(
                    "search-places",
                    lambda: search.matcher.match_ranges(text),
                    partial(self._show_match_ranges, search, index),
                )
        return self._match_ranges

    def highlighted_ranges(self) -> MatchRanges:
        """Return the matches near the current match in the text under the cursor."""
        ranges = self._ranges_at_cursor()
        nth = self._nth_at_cursor
        return ranges[max(0, nth - MAX_HIGHLIGHTED) : nth + MAX_HIGHLIGHTED]

    def _show_match_ranges(self, search: TextSearch, index: int, ranges: MatchRanges) -> None:
        """Highlight matches found in the background, unless the cursor has left the span."""
        if search is self._search and index == self._state.index:
            self._match_ranges = ranges
            self._match_ranges_index = index
            self._screen.show_highlights()
            self._reveal_match()

    def _show_status(self) -> None:
        """Show the progress or the number of the current match in the last line."""
        if not self._state.needle or self._search is None:
            return
        if not self._state.hits and self._is_done:
            self._say_problem(f"No span contains {self._needle_text(40)}")
        elif self.line.display:
            self._hints.prompt(f"{self._status_text()} · Enter keeps{self._closing_hint}")
        else:
            self._hints.say(
                f"{self._status_text()} · {self._key_of('annotate.search_next')} next · "
                f"{self._key_of('annotate.search_previous')} previous"
            )
        self._last_message = self._hints.message

    def _say_problem(self, problem: str) -> None:
        """Show why nothing is found. While the line is open, its keys replace the usual ones."""
        if self.line.display:
            self._hints.prompt(f"{problem}{self._closing_hint}")
        else:
            self._hints.say(problem, error=True)

    def _status_text(self) -> str:
        """Return the number of the current match and of all matches.

        Before the first match, return the progress.
        """
        needle = self._needle_text(cells=40)
        hits = self._state.hits
        if not hits:
            return f"Looking for {needle} … {self._progress:.0%}"
        count_text = f"{hits.total:,}" + ("" if self._is_done else "+ …")
        index = self._state.index
        if index in hits:
            count_text = f"{hits.rank(index, self._nth_at_cursor):,} of {count_text}"
        return f"{needle}: {count_text}"

    @property
    def _closing_hint(self) -> str:
        """The end of a message with the key that closes the line; empty without such a key."""
        return hint_while_typing("everywhere.back", "leaves", self._screen.mast.keys_set)

    def _needle_text(self, cells: int) -> str:
        """Return the searched text in quotes, or the pattern in slashes, shortened."""
        pattern = pattern_in(self._state.needle, self._regex)
        if pattern is not None:
            return f"/{one_line(pattern, cells)}/"
        return f"“{one_line(self._state.needle, cells)}”"
