"""Narrowing the timeline to some spans of the trace."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING, Final

from textual import work
from textual.message import Message
from textual.worker import get_current_worker

from mast_tui.safe_text import one_line
from mast_tui.ui.annotate.base import AnnotateBase
from mast_tui.ui.annotate.search import SearchInput
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_view.filtering import (
    EVERYTHING,
    Marked,
    Narrowing,
    SpanFilter,
    Stretches,
    ranges_of,
)

if TYPE_CHECKING:
    from mast_tui.ui.annotate.filter_choice import FilterChoice

SLICE: Final = 5000
"""Spans looked at in one step."""

NOTHING: Final = "no span is left"


class Filtering(AnnotateBase):
    """Shows only some spans. Labels and suggestions count as they were when they were chosen."""

    @dataclass
    class Narrowed(Message):
        """More spans that are shown, of the first ``seen`` ones."""

        narrowing: Narrowing
        indices: Sequence[int]
        seen: int

    span_filter: SpanFilter = EVERYTHING
    _narrowing: Narrowing | None = None
    _narrows = False
    _applied = False
    _filter_said = ""
    _shown_only: array[int] | None = None
    _filter_choice: FilterChoice | None = None

    def action_filter(self) -> None:
        """Choose which spans are shown."""
        if self.trace is None or not len(self.trace):
            return
        from mast_tui.ui.annotate.filter_choice import FilterChoice, offers

        came_from = self.index
        session = self.session
        rows = offers(
            self.timeline.facts.agents,
            labelled=session is not None,
            # Whoever works blind is offered nothing that would tell of suggestions.
            suggested=session is not None and session.hidden_visible and bool(session.suggestions),
            matches=bool(self.needle),
        )
        choice = FilterChoice(rows, self.span_filter, self.show_only)
        self._filter_choice = choice

        def answered(kept: bool | None) -> None:
            self._filter_choice = None
            if kept:
                self.set_last = "filter"
                self._settle_filter()
            else:
                self.show_only(EVERYTHING)
                self.timeline.go_to(came_from)
                self.hints.say("All spans are shown")
            self.show_span()

        self.app.push_screen(choice, answered)
        choice.say(self._remaining())

    def show_only(self, chosen: SpanFilter) -> None:
        """Show what is chosen, as soon as all spans have been looked at."""
        self.workers.cancel_group(self, "filter")
        trace = self.trace
        self.span_filter = chosen
        self._narrowing, self._narrows, self._applied = None, False, False
        if chosen.shows_all or trace is None:
            self._shown_only = None
            if self.timeline.filtered:
                self.timeline.show_only(None)
            self.show_filter()
            self.catch_up()
            return
        self._shown_only = array("Q")
        self._narrowing = Narrowing(trace, chosen, self._marked())
        self._narrow_on()
        self.show_filter()

    def drop_filter(self) -> None:
        """Another trace is opened, of which everything is shown."""
        self.workers.cancel_group(self, "filter")
        self.span_filter, self._narrowing, self._shown_only = EVERYTHING, None, None
        self._narrows = self._applied = False

    def _marked(self) -> Marked:
        trace, session = self.trace, self.session
        assert trace is not None
        if session is None:
            return Marked(matches=self.matches)
        labelled = ranges_of((label.target for label in session.labels), trace.index_of)
        suggested = list(ranges_of((s.target for s in session.pending), trace.index_of))
        for suggestion in session.pending:
            key = suggestion.evidence_key
            at = None if key is None else trace.index_of(key)
            if at is not None:
                suggested.append((at, at))
        return Marked(Stretches(labelled), Stretches(suggested), self.matches)

    def filter_grown(self) -> None:
        """The index has come further: look at what is new."""
        if self._narrowing is not None and not self._narrows:
            self._narrow_on()

    def search_changed(self) -> None:
        """What is looked for, or where it was found, has changed."""
        if not self.span_filter.matches:
            return
        if self.needle:
            self.show_only(self.span_filter)
        else:
            self._leave_filter("nothing is looked for any more")

    def _narrow_on(self) -> None:
        assert self._narrowing is not None
        self._narrows = True
        self._narrow(self._narrowing)

    @work(thread=True, group="filter", exclusive=True)
    def _narrow(self, narrowing: Narrowing) -> None:
        worker, courtesy = get_current_worker(), self.courtesy
        indices = array("Q")
        over = False
        while not over and not worker.is_cancelled:
            courtesy.wait()
            indices += narrowing.step(SLICE)
            over = narrowing.seen >= len(narrowing.trace)
            sleep(0)  # others have their turn
        if not worker.is_cancelled:
            self.post_message(self.Narrowed(narrowing, indices, narrowing.seen))

    def on_filtering_narrowed(self, message: Narrowed) -> None:
        """Show these spans, once all have been looked at: so the cursor finds the one next to
        it."""
        if message.narrowing is not self._narrowing or self._shown_only is None:
            return
        self._shown_only.extend(message.indices)
        first, self._applied, self._narrows = not self._applied, True, False
        self.timeline.show_only(self._shown_only)
        self.show_filter()
        self.catch_up()
        if first and self._filter_choice is None:
            self._settle_filter()
        if message.seen < len(message.narrowing.trace):
            self.filter_grown()

    def show_filter(self) -> None:
        """Tell in the timeline's title what is shown, and how much that is."""
        words = self._remaining() if not self.span_filter.shows_all else ""
        title = f"Timeline · {words}" if words else "Timeline"
        self.timeline.border_title = plain_title(title)
        if self._filter_choice is not None:
            self._filter_choice.say(self._remaining())

    def _remaining(self) -> str:
        known = 0 if self.trace is None else len(self.trace)
        if self.span_filter.shows_all or self._shown_only is None:
            return f"all {known:,} spans"
        count = f"{len(self._shown_only):,}"
        return f"{one_line(self.span_filter.words, 60)} · {count} of {known:,}"

    def _settle_filter(self) -> None:
        """The choice is made: say what is shown, once that is known; never show nothing."""
        if self.span_filter.shows_all:
            self.hints.say("All spans are shown")
        elif self._applied and not self._shown_only:
            self._leave_filter(NOTHING)
        elif self._applied and not self.query_one(SearchInput).display:
            self.hints.say(f"Shown: {self._remaining()} · F changes that · Esc shows all")
            self._filter_said = self.hints.message

    def forget_filter(self) -> bool:
        """Show everything again; False where that is so already."""
        if self.span_filter.shows_all:
            return False
        self.show_only(EVERYTHING)
        self.show_span()
        return True

    def notice_filter(self) -> None:
        """Whoever goes to a span that is not shown leaves the filter, and is told so."""
        if self._applied and not self.timeline.filtered:
            self._leave_filter(f"#{self.index + 1} is not in it")

    def _leave_filter(self, why: str) -> None:
        self.show_only(EVERYTHING)
        self.call_later(self._say_left, f"Filter left: {why}")

    def _say_left(self, words: str) -> None:
        """Said before whatever was said of the place that was gone to."""
        said = self.hints.message
        self.hints.say(f"{words} · {said}" if said not in ("", self._filter_said) else words)
