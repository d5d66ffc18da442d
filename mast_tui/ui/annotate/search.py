"""Finding text in the spans of a trace, as one types."""

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
    """Hits that were found in reading order, with how many matches there are up to each."""

    def __init__(self) -> None:
        self.indices = array("Q")
        self.upto = array("Q")

    @property
    def total(self) -> int:
        return self.upto[-1] if self.upto else 0

    def add(self, index: int, times: int) -> None:
        self.upto.append(self.total + times)
        self.indices.append(index)

    def extend(self, more: _HitPart) -> None:
        """Add what stands behind all of these."""
        total = self.total
        self.upto.extend(map(total.__add__, more.upto))
        self.indices.extend(more.indices)

    def within(self, first: int, end: int) -> array[int]:
        """The spans from ``first`` up to ``end`` (exclusive)."""
        low = bisect_left(self.indices, first)
        return self.indices[low : bisect_left(self.indices, end, low)]

    def before(self, place: int) -> int:
        """The number of matches in the hits before the one at ``place``."""
        return self.upto[place - 1] if place else 0


class Hits(Sequence[int]):
    """The spans that hold what is looked for, in reading order, and how often each does.

    They are found from ``start`` on and then from the beginning; what is added is never moved.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self._ahead = _HitPart()
        self._behind = _HitPart()

    def add(self, hits: Iterable[tuple[int, int]]) -> None:
        """Take in more spans, each with its number of matches."""
        for index, times in hits:
            (self._ahead if index >= self.start else self._behind).add(index, times)

    def extend(self, more: Hits) -> None:
        """Take in what was found after these, from the same start on."""
        self._ahead.extend(more._ahead)
        self._behind.extend(more._behind)

    @property
    def first(self) -> int:
        """The span that was found first; there must be one."""
        return (self._ahead.indices or self._behind.indices)[0]

    @property
    def total(self) -> int:
        """The number of matches."""
        return self._behind.total + self._ahead.total

    def __len__(self) -> int:
        return len(self._behind.indices) + len(self._ahead.indices)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"no hit {place} of {len(self)}")
        place %= len(self)
        behind = len(self._behind.indices)
        return (
            self._behind.indices[place] if place < behind else self._ahead.indices[place - behind]
        )

    def __iter__(self) -> Iterator[int]:
        yield from self._behind.indices
        yield from self._ahead.indices

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.times(index) > 0

    def _part_and_place(self, index: int) -> tuple[_HitPart, int]:
        part = self._ahead if index >= self.start else self._behind
        return part, bisect_left(part.indices, index)

    def times(self, index: int) -> int:
        """How many matches there are in the span at ``index``."""
        part, place = self._part_and_place(index)
        if place == len(part.indices) or part.indices[place] != index:
            return 0
        return part.upto[place] - part.before(place)

    def within(self, first: int, end: int) -> Sequence[int]:
        """The hits from span ``first`` up to ``end`` (exclusive)."""
        return self._behind.within(first, end) + self._ahead.within(first, end)

    def rank(self, index: int, nth: int) -> int:
        """Of all matches known, in reading order and from 1, which one the ``nth`` (from 0) of the
        span at ``index`` is."""
        part, place = self._part_and_place(index)
        others = 0 if part is self._behind else self._behind.total
        return others + part.before(place) + nth + 1

    def next_to(self, index: int, step: int) -> int:
        """The next hit behind span ``index`` (``step`` above 0) or before it, round the ends."""
        place = bisect_right(self, index) if step > 0 else bisect_left(self, index) - 1
        return self[place % len(self)]


GROWING: Final = 0.05
"""Seconds between looks at an index that is still growing."""

TOLD_EVERY: Final = 0.1
"""Seconds between reports of what was found; the first hit is told at once."""

LONG_CHARS: Final = 1 << 18
"""Longer texts are only looked at in the background."""

NEAR_BYTES: Final = 16 * 1024
"""How much of the source, from the cursor on, is looked at before anything else is done: a
fraction of a millisecond's worth. What is near is found before the next key does its work."""

MOST_SHOWN: Final = 400
"""Matches that are marked in a text on each side of the one that was gone to."""

Places = Sequence[tuple[int, int]]


def matcher_for(typed: str, regex: bool) -> Matcher:
    """Return what to look for.

    Args:
        typed: What stands on the search line.
        regex: Whether that is a regular expression without slashes, too.

    Raises:
        InvalidPattern: It is no regular expression.
    """
    pattern = pattern_in(typed, regex)
    if pattern is None:
        return Needle(typed)
    return Pattern(pattern)


class Search:
    """Search over rows and whole texts, in the background; ``n`` and ``N`` go by matches."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self.line = TextLine(placeholder="find in all spans", id="search")
        """What one types on; the screen places it."""
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._hints = screen.hints
        self._search: TextSearch | None = None
        self._regex = False
        self._plain = True
        """Whether words are looked for, and no regular expression."""
        self._done = True
        self._share = 0.0
        self._stood = 0
        self._origin: int | None = None
        self._begins_short = False
        """Whether the text that one stood on when the search line was opened is no long one."""
        self._jumped = False
        self._awaited = 0
        self._said = ""
        self._at: tuple[int, int] = (-1, 0)
        self._places: tuple[int, Places] = (-1, ())

    # The line

    @property
    def is_open(self) -> bool:
        """Whether the search line is on screen."""
        return self.line.display

    def open(self) -> None:
        """Open the search line."""
        line = self.line
        if not line.display:
            self._origin = self._state.index if self._state.has_spans else 0
            self._begins_short = (
                self._state.has_spans and len(self._state.text_here()) <= LONG_CHARS
            )
        line.display = True
        self._screen.set_focus(line)

    def toggle_regex(self) -> None:
        """Take what is typed for a regular expression, or for plain text again."""
        self._regex = not self._regex
        line = self.line
        self.open()
        if line.value:
            self.start(line.value)
        else:
            kind = "a regular expression" if self._regex else "plain text"
            key = self._screen.context.key_of("annotate.search_regex")
            self._hints.prompt(f"What you type is {kind} · {key} changes that{self._leaving}")

    def typed(self, words: str) -> None:
        """Look for what stands on the line now."""
        if words != self._state.needle:
            self.start(words)

    def look_for(self, words: str) -> None:
        """Look for what was found here in another way, as if it had been typed and kept."""
        self.line.value = words
        self.start(words)

    def submit(self) -> None:
        """Keep what was found."""
        if self._origin is not None and self._state.has_spans:
            self._timeline.trail.record_jump(self._origin, self._state.index)
        self.close()
        self._say_search()

    def close(self) -> None:
        """Hide the search line; matches stay until the next search or Escape."""
        self.line.display = False
        self._origin = None
        self._screen.set_focus(self._timeline)

    def forget(self) -> bool:
        """Forget matches; False where there were none."""
        had = bool(self._state.needle) or self.line.display
        self._regex = False
        self.line.value = ""
        self.close()
        self.start("")
        return had

    # Looking

    def drop(self) -> None:
        """Look no further, and forget what was found."""
        self._screen.stop_background("search")
        self._search = None
        self._state.needle, self._done, self._awaited = "", True, 0
        self._at, self._places = (-1, 0), (-1, ())
        self._state.hits = Hits()
        self._show_total()

    def grown(self) -> None:
        """Look at what has come since all was looked at."""
        search = self._search
        if search is not None and self._done:
            self._done = False
            self._screen.in_background(partial(self._look, search), "search")

    def again(self, needle: str) -> None:
        """Look for the same in another trace, without going to what is found."""
        self.start(needle)
        self._jumped = True

    def _show_total(self) -> None:
        """How much was found, once that is known: it stands under the timeline until another text
        is looked for, as what is said in the last line goes with the next key."""
        if self._timeline.is_mounted:
            words = self._total_words() if self._done and self._state.needle else ""
            self._timeline.border_subtitle = plain_title(words)

    def _total_words(self) -> str:
        total = self._state.hits.total
        return f"{self._what(24)} · {counted(total, 'match', 'matches')}"

    def start(self, needle: str) -> None:
        """Look for another text, from where one was when the search line was opened."""
        had = self._state.hits
        self.drop()
        self._state.needle = needle
        if needle:
            self._state.set_last = "search"
        self._stood = self._state.index if self._state.has_spans else 0
        start = self._stood if self._origin is None else self._origin
        self._state.hits = Hits(start)
        problem = self._begin(start) if needle and self._state.trace is not None else None
        if had:
            self._show_matches(had)
        self._screen.show_span()
        if problem is not None:
            self._hints.say(problem, error=True)
        elif not needle:
            self._hints.clear()
            self._screen.filter.search_changed()
        elif self._search is not None:
            self._look_near(self._search)

    def _begin(self, start: int) -> str | None:
        """Begin to look; what is wrong with what was typed, in words."""
        assert self._state.trace is not None
        try:
            matcher = matcher_for(self._state.needle, self._regex)
        except MastError as error:
            return f"Not a regular expression yet: {one_line(str(error), 80)}"
        self._plain = pattern_in(self._state.needle, self._regex) is None
        self._search = TextSearch(self._state.trace, matcher, start)
        self._done = self._jumped = False
        self._share = 0.0
        return None

    def _look_near(self, search: TextSearch) -> None:
        # A regular expression may take its time even on a short text.
        if self._begins_short and self._plain:
            found = search.step(max_bytes=NEAR_BYTES)
            if found is not None:
                hits = Hits(search.start)
                hits.add(found.hits)
                self._take_progress(search, hits, found.share)
        else:
            self._say_search()
        self._screen.in_background(partial(self._look, search), "search")

    def _look(self, search: TextSearch) -> None:
        worker = get_current_worker()
        some, told, first = Hits(search.start), 0.0, True
        while not worker.is_cancelled:
            found = search.step()
            if worker.is_cancelled:
                return
            if found is None:
                self._screen.call_later(self._take_progress, search, some, 1.0, over=True)
                return
            some.add(found.hits)
            # The first hits are told at once, what comes then some at a time.
            at_once = bool(some) and (first or found.waits)
            if at_once or (not found.waits and monotonic() - told > TOLD_EVERY):
                self._screen.call_later(self._take_progress, search, some, found.share)
                first = first and not some
                some, told = Hits(search.start), monotonic()
            # Where the index is still growing it is waited for; else others have their turn.
            sleep(GROWING if found.waits else 0)

    def _take_progress(
        self, search: TextSearch, found: Hits, share: float, *, over: bool = False
    ) -> None:
        """Take in matches; the first from where the search began gets the cursor.

        Args:
            search: What has looked for them.
            found: What it has found since it was told last.
            share: Which share it has looked at.
            over: Whether that is all.
        """
        if search is not self._search:
            return
        self._share = share
        if found:
            self._take(found)
        if over:
            self._done = True
            self._show_total()
            self._go_on_awaited()
            self._screen.filter.search_changed()
        # What was said of something else meanwhile is not talked over.
        free = ("", self._said) if self._done else (self._said,)
        if self.line.display or self._hints.message in free:
            self._say_search()

    def _take(self, found: Hits) -> None:
        first = not self._state.hits
        self._state.hits.extend(found)
        self._show_matches(found)
        # Whoever has gone on meanwhile, or is about to label, is not torn away.
        self._jumped |= self._state.index != self._stood or self._screen.typing
        if self._awaited > 0:
            self._jumped = True
            self._go_on_awaited()
        elif first and not self._jumped:
            self._jumped = True
            self._go_to_match(found.first, 0)
        elif self._state.index in found:
            self._screen.show_highlights()

    def _show_matches(self, changed: Hits) -> None:
        """Show what has come to the matches, or is one no longer."""
        timeline = self._timeline
        timeline.matches = self._state.hits
        timeline.redraw_where(lambda row: timeline.rows.index_at(row) in changed)
        self._screen.overview.show_matches(self._state.hits)

    # Going to matches

    def go(self, step: int) -> None:
        """Go to the next or previous match: in this span, then in the next that has one."""
        if not self._state.needle:
            self.open()
            return
        if not self._state.hits:
            self._awaited = 0 if self._done else step
            self._say_search()
            return
        here = self._state.index
        times = self._state.hits.times(here)
        nth = (self._at[1] if self._at[0] == here else 0) + step
        if times and 0 <= nth < times:
            self._go_to_match(here, nth)
        else:
            there = self._state.hits.next_to(here, step)
            self._go_to_match(there, 0 if step > 0 else self._state.hits.times(there) - 1)
        self._say_search()

    def _go_on_awaited(self) -> None:
        """Go where a key has asked to go before anything was found."""
        step, self._awaited = self._awaited, 0
        if step and self._state.hits:
            self.go(step)

    def _go_to_match(self, index: int, nth: int) -> None:
        self._at = (index, nth)
        if self._state.index != index:
            if not self._timeline.rows.shows(index):
                self._timeline.grown()  # it is told some times a second, and the search is quicker
            # While one types it goes to and fro; where one came from is told once, at the end.
            go = self._timeline.bring if self.line.display else self._timeline.go_to
            go(index)
        self._screen.show_span()
        self._reveal_match()

    def _reveal_match(self) -> None:
        index, nth = self._at
        places = self._places_here()
        if index == self._state.index and nth < len(places):
            self._screen.span_view.reveal(*places[nth])

    def _places_here(self) -> Places:
        """Where matches stand in the text under the cursor, as far as that is known now."""
        search, index = self._search, self._state.index
        if search is None or index not in self._state.hits:
            return ()
        if self._places[0] != index:
            text = self._state.text_here()
            if self._plain and len(text) <= LONG_CHARS:
                self._places = (index, search.matcher.places(text))
            else:
                self._places = (index, ())
                place = partial(self._place, search, index, text)
                self._screen.in_background(place, "search-places")
        return self._places[1]

    def places_shown(self) -> Places:
        """Where matches are to be marked in the text under the cursor."""
        places = self._places_here()
        nth = self._at[1] if self._at[0] == self._state.index else 0
        return places[max(0, nth - MOST_SHOWN) : nth + MOST_SHOWN]

    def _place(self, search: TextSearch, index: int, text: str) -> None:
        places = search.matcher.places(text)
        self._screen.call_later(self._take_places, search, index, places)

    def _take_places(self, search: TextSearch, index: int, places: Places) -> None:
        """Mark matches in the text that is shown."""
        if search is self._search and index == self._state.index:
            self._places = (index, places)
            self._screen.show_highlights()
            self._reveal_match()

    # Words

    def _say_search(self) -> None:
        """How far the search is, and at which match one stands."""
        if self._state.needle and self._search is not None:
            self._say()
            self._said = self._hints.message

    def _say(self) -> None:
        typing = self.line.display
        what = self._what(40)
        if not self._state.hits and self._done:
            self._hints.say(f"No span holds {what}", error=True)
            return
        if not self._state.hits:
            words = f"Looking for {what} … {self._share:.0%}"
        else:
            total = f"{self._state.hits.total:,}" + ("" if self._done else "+ …")
            index, nth = self._at
            here = self._state.hits.times(self._state.index)
            if here:
                nth = nth if index == self._state.index else 0
                total = f"{self._state.hits.rank(self._state.index, nth):,} of {total}"
            words = f"{what}: {total}"
        if typing:
            self._hints.prompt(f"{words} · Enter keeps{self._leaving}")
        else:
            key_of = self._screen.context.key_of
            self._hints.say(
                f"{words} · {key_of('annotate.search_next')} next · "
                f"{key_of('annotate.search_previous')} previous"
            )

    @property
    def _leaving(self) -> str:
        """The key that leaves the line of the search, for the end of a message."""
        key = key_while_typing("everywhere.back", self._screen.context.keys_set)
        return f" · {key} leaves" if key else ""

    def _what(self, most: int) -> str:
        """What is looked for, in so many characters at most."""
        pattern = pattern_in(self._state.needle, self._regex)
        if pattern is not None:
            return f"/{one_line(pattern, most)}/"
        return f"“{one_line(self._state.needle, most)}”"
