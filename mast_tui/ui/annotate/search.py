"""Finding text in the spans of a trace, as one types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from textual import on, work
from textual.message import Message
from textual.widgets import Input
from textual.worker import get_current_worker

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.ui.annotate.base import AnnotateBase
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_view.overview import Overview
from mast_tui.ui.trace_view.searching import Hits, matcher_for, pattern_in
from mast_tui.ui.widgets.text_line import TextLine

if TYPE_CHECKING:
    from mast_tui.traces.text_search import TextSearch

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


class SearchInput(TextLine):
    """The line in which one types what to find."""


class Searching(AnnotateBase):
    """Search over rows and whole texts, in the background; ``n`` and ``N`` go by matches."""

    @dataclass
    class Progress(Message):
        """What a search has found since it was told last, and which share it has looked at."""

        search: TextSearch
        found: Hits
        share: float
        over: bool

    @dataclass
    class Placed(Message):
        """Where a regular expression, or a word in a long text, stands in the text of a span."""

        search: TextSearch
        index: int
        places: Places

    _search: TextSearch | None = None
    _regex = False
    _done = True
    _share = 0.0
    _stood = 0
    _origin: int | None = None
    _begins_short = False
    """Whether the text that one stood on when the search line was opened is no long one."""
    _jumped = False
    _awaited = 0
    _said = ""
    _at: tuple[int, int] = (-1, 0)
    _places: tuple[int, Places] = (-1, ())

    # The line

    def action_search(self) -> None:
        """Open the search line."""
        line = self.query_one(SearchInput)
        if not line.display:
            self._origin = self.index if self.has_spans else 0
            self._begins_short = self.has_spans and len(self.text_here()) <= LONG_CHARS
        line.display = True
        self.set_focus(line)

    def action_search_regex(self) -> None:
        """Take what is typed for a regular expression, or for plain text again."""
        self._regex = not self._regex
        line = self.query_one(SearchInput)
        self.action_search()
        if line.value:
            self.start_search(line.value)
        else:
            kind = "a regular expression" if self._regex else "plain text"
            self.hints.prompt(f"What you type is {kind} · ^t changes that · Esc leaves")

    @on(Input.Changed, "SearchInput")
    def _search_typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.needle:
            self.start_search(event.value)

    @on(Input.Submitted, "SearchInput")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.close_search()
        self._say_search()

    def close_search(self) -> None:
        """Hide the search line; matches stay until the next search or Escape."""
        line = self.query_one(SearchInput)
        line.display = False
        self._origin = None
        self.set_focus(self.timeline)

    def forget_search(self) -> bool:
        """Forget matches; False where there were none."""
        had = bool(self.needle) or self.query_one(SearchInput).display
        self._regex = False
        self.query_one(SearchInput).value = ""
        self.close_search()
        self.start_search("")
        return had

    # Looking

    def drop_search(self) -> None:
        """Look no further, and forget what was found."""
        self.workers.cancel_group(self, "search")
        search, self._search = self._search, None
        if search is not None:
            search.matcher.close()
        self.needle, self._done, self._awaited = "", True, 0
        self._at, self._places = (-1, 0), (-1, ())
        self.matches = Hits()
        self._show_total()

    def _show_total(self) -> None:
        """How much was found, once that is known: it stands under the timeline until another text
        is looked for, as what is said in the last line goes with the next key."""
        if self.is_mounted:
            words = self._total_words() if self._done and self.needle else ""
            self.timeline.border_subtitle = plain_title(words)

    def _total_words(self) -> str:
        total = self.matches.total
        return f"{self._what(24)} · {total:,} match{'' if total == 1 else 'es'}"

    def start_search(self, needle: str) -> None:
        """Look for another text, from where one was when the search line was opened."""
        had = self.matches
        self.drop_search()
        self.needle = needle
        if needle:
            self.set_last = "search"
        self._stood = self.index if self.has_spans else 0
        start = self._stood if self._origin is None else self._origin
        self.matches = Hits(start)
        problem = self._begin(start) if needle and self.trace is not None else None
        if had:
            self._show_matches(had)
        self.show_span()
        if problem is not None:
            self.hints.say(problem, error=True)
        elif not needle:
            self.hints.clear()
            self.search_changed()
        elif self._search is not None:
            self._look_near(self._search)

    def _begin(self, start: int) -> str | None:
        """Begin to look; what is wrong with what was typed, in words."""
        assert self.trace is not None
        try:
            matcher = matcher_for(self.needle, self._regex)
        except MastError as error:
            return f"Not a regular expression yet: {one_line(str(error), 80)}"
        from mast_tui.traces.text_search import TextSearch

        self._search = TextSearch(self.trace, matcher, start)
        self._done = self._jumped = False
        self._share = 0.0
        return None

    def _look_near(self, search: TextSearch) -> None:
        from mast_tui.traces.text_search import Needle

        # A regular expression may take its time even on a short text.
        if self._begins_short and isinstance(search.matcher, Needle):
            found = search.step(max_bytes=NEAR_BYTES)
            if found is not None:
                hits = Hits(search.start)
                hits.add(found.hits)
                self.on_searching_progress(self.Progress(search, hits, found.share, False))
        else:
            self._say_search()
        self._look(search)

    @work(thread=True, group="search", exclusive=True, exit_on_error=True)
    def _look(self, search: TextSearch) -> None:
        worker, courtesy = get_current_worker(), self.courtesy
        some, told, first = Hits(search.start), 0.0, True
        while not worker.is_cancelled:
            courtesy.wait()
            found = search.step(courtesy.wait)
            if worker.is_cancelled:
                return
            if found is None:
                self.post_message(self.Progress(search, some, 1.0, True))
                return
            some.add(found.hits)
            # The first hits are told at once, what comes then some at a time.
            at_once = bool(some) and (first or found.waits)
            if at_once or (not found.waits and monotonic() - told > TOLD_EVERY):
                self.post_message(self.Progress(search, some, found.share, False))
                first = first and not some
                some, told = Hits(search.start), monotonic()
            # Where the index is still growing it is waited for; else others have their turn.
            sleep(GROWING if found.waits else 0)

    def on_searching_progress(self, message: Progress) -> None:
        """Take in matches; the first from where the search began gets the cursor."""
        if message.search is not self._search:
            return
        self._share = message.share
        if message.found:
            self._take(message.found)
        if message.over:
            self._done = True
            self._show_total()
            self._go_on_awaited()
            self.search_changed()
        # What was said of something else meanwhile is not talked over.
        free = ("", self._said) if self._done else (self._said,)
        if self.query_one(SearchInput).display or self.hints.message in free:
            self._say_search()

    def _take(self, found: Hits) -> None:
        first = not self.matches
        self.matches.extend(found)
        self._show_matches(found)
        # Whoever has gone on meanwhile, or is about to label, is not torn away.
        self._jumped |= self.index != self._stood or self.entry.begun
        if self._awaited > 0:
            self._jumped = True
            self._go_on_awaited()
        elif first and not self._jumped:
            self._jumped = True
            self._go_to_match(found.first, 0)
        elif self.index in found:
            self.show_highlights()

    def _show_matches(self, changed: Hits) -> None:
        """Show what has come to the matches, or is one no longer."""
        timeline = self.timeline
        timeline.matches = self.matches
        timeline.redraw_where(lambda row: timeline.rows.index_at(row) in changed)
        self.query_one(Overview).show_matches(self.matches)

    # Going to matches

    def action_match(self, step: int) -> None:
        """Go to the next or previous match: in this span, then in the next that has one."""
        if not self.needle:
            self.action_search()
            return
        if not self.matches:
            self._awaited = 0 if self._done else step
            self._say_search()
            return
        here = self.index
        times = self.matches.times(here)
        nth = (self._at[1] if self._at[0] == here else 0) + step
        if times and 0 <= nth < times:
            self._go_to_match(here, nth)
        else:
            there = self.matches.next_to(here, step)
            self._go_to_match(there, 0 if step > 0 else self.matches.times(there) - 1)
        self._say_search()

    def _go_on_awaited(self) -> None:
        """Go where a key has asked to go before anything was found."""
        step, self._awaited = self._awaited, 0
        if step and self.matches:
            self.action_match(step)

    def _go_to_match(self, index: int, nth: int) -> None:
        self._at = (index, nth)
        if self.index != index:
            if not self.timeline.rows.shows(index):
                self.timeline.grown()  # it is told some times a second, and the search is quicker
            self.timeline.go_to(index)
        self.show_span()
        self._reveal_match()

    def _reveal_match(self) -> None:
        index, nth = self._at
        places = self.places_here()
        if index == self.index and nth < len(places):
            self.span_view.reveal(*places[nth])

    def places_here(self) -> Places:
        """Where matches stand in the text under the cursor, as far as that is known now."""
        search, index = self._search, self.index
        if search is None or index not in self.matches:
            return ()
        if self._places[0] != index:
            from mast_tui.traces.text_search import Needle

            text = self.text_here()
            if isinstance(search.matcher, Needle) and len(text) <= LONG_CHARS:
                self._places = (index, search.matcher.places(text))
            else:
                self._places = (index, ())
                self._place(search, index, text)
        return self._places[1]

    def matches_shown(self) -> Places:
        """Where matches are to be marked in the text under the cursor."""
        places = self.places_here()
        nth = self._at[1] if self._at[0] == self.index else 0
        return places[max(0, nth - MOST_SHOWN) : nth + MOST_SHOWN]

    @work(thread=True, group="search-places", exclusive=True)
    def _place(self, search: TextSearch, index: int, text: str) -> None:
        from mast_tui.traces.text_search import TooSlow

        try:
            places = search.matcher.places(text)
        except TooSlow:
            return
        self.post_message(self.Placed(search, index, places))

    def on_searching_placed(self, message: Placed) -> None:
        """Mark matches in the text that is shown."""
        if message.search is self._search and message.index == self.index:
            self._places = (message.index, message.places)
            self.show_highlights()
            self._reveal_match()

    # Words

    def _say_search(self) -> None:
        """How far the search is, and at which match one stands."""
        if self.needle and self._search is not None:
            self._say(self._search)
            self._said = self.hints.message

    def _say(self, search: TextSearch) -> None:
        typing = self.query_one(SearchInput).display
        what = self._what(40)
        slow = self._slow_words(search)
        if not self.matches and self._done:
            self.hints.say(f"No span holds {what}{slow}", error=True)
            return
        if not self.matches:
            words = f"Looking for {what} … {self._share:.0%}"
        else:
            total = f"{self.matches.total:,}" + ("" if self._done else "+ …")
            index, nth = self._at
            here = self.matches.times(self.index)
            if here:
                nth = nth if index == self.index else 0
                total = f"{self.matches.rank(self.index, nth):,} of {total}"
            words = f"{what}: {total}{slow}"
        if typing:
            self.hints.prompt(f"{words} · Enter keeps, Esc forgets")
        else:
            self.hints.say(f"{words} · n next · N previous")

    def _what(self, most: int) -> str:
        """What is looked for, in so many characters at most."""
        pattern = pattern_in(self.needle, self._regex)
        if pattern is not None:
            return f"/{one_line(pattern, most)}/"
        return f"“{one_line(self.needle, most)}”"

    def _slow_words(self, search: TextSearch) -> str:
        if not search.too_slow:
            return ""
        from mast_tui.traces.text_search import MOST_SLOW

        named = ", ".join(f"#{index + 1}" for index in search.too_slow[:MOST_SLOW])
        if search.given_up:
            return f" · given up: the pattern takes too long on {named}"
        return f" · the pattern takes too long on {named}"
