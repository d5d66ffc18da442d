"""The annotate screen: the trace as a timeline on one side, the taxonomy on the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer

from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.annotate.base import Waiting
from mast_tui.ui.annotate.finish import Finishing
from mast_tui.ui.annotate.judging import JudgingHere
from mast_tui.ui.annotate.mode_code_entry import DigitEntry
from mast_tui.ui.annotate.moves import Moving
from mast_tui.ui.annotate.overview import Overseeing
from mast_tui.ui.annotate.panels import Panels
from mast_tui.ui.annotate.search import SearchInput
from mast_tui.ui.annotate.selection import PLAIN, Selection
from mast_tui.ui.context import AppContext, ShowLibrary, ShowTrace, context_of
from mast_tui.ui.screens.base_screen import BaseScreen
from mast_tui.ui.services.workspace_writer import Holds
from mast_tui.ui.sizes import WIDE
from mast_tui.ui.styles import ANNOTATE
from mast_tui.ui.text.word_motions import QuoteCursor, word_at
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_view.folding import Run
from mast_tui.ui.trace_view.overview import Overview
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.render_cache import KnownLooks
from mast_tui.ui.widgets.title_bar import sight_words
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.session import Session

Result = TypeVar("Result")

PLACED_EVERY = 4
"""Reports of what was read after which marks are placed anew, if any waits for its span."""

READ_EVERY = 0.4
"""Seconds between writes of what was read: one transaction for many moves."""


class Beside(Horizontal, KnownLooks):
    """Panes beside each other."""


class Below(Vertical, KnownLooks):
    """Panes below each other."""


class AnnotateScreen(Moving, Overseeing, Finishing, JudgingHere, Panels):
    """One trace, one annotator. Panes post where their cursor is; the screen holds the state."""

    CSS_PATH = ANNOTATE
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    AUTO_FOCUS = "#timeline"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.ANNOTATE, Where.EVERYWHERE)
    where = Where.ANNOTATE

    _ready = False
    _reports = 0
    _away = False
    _seen = -1
    _followed = (-1, -1)
    """The timeline's row, and the span there, that the other panes show."""
    _fold_counted: Run | None = None
    _runs_shown: tuple[range, ...] = ()
    _reading: Timer | None = None

    def compose(self) -> ComposeResult:
        """The panes."""
        # Known before there are panes, whose styles would else all be worked out twice.
        self.set_class(self.app.size.width >= WIDE, "-wide")
        self.set_class(self.app.size.width < WIDE, "-narrow")
        below, beside = self.suggestion_panels
        yield self.title_bar
        with Beside(id="panes"):
            with Below(id="left"):
                yield self.timeline
                yield self.span_view
                yield below
            yield Overview(id="overview")
            with Below(id="side"):
                yield self.modes
                yield self.definition
                yield beside
        yield SearchInput(placeholder="find in all spans; Enter keeps, Esc leaves", id="search")
        yield self.hints

    def on_mount(self) -> None:
        """Name the panes and say what is awaited."""
        self.show_filter()
        self.modes.border_title = plain_title(self.taxonomy.name)
        self.modes.show_taxonomy(self.taxonomy)
        self.call_after_refresh(self.show_definition)
        self.query_one(SearchInput).display = False
        self.follow_timeline()
        self._reading = self.set_interval(READ_EVERY, self.write_read)
        self._ready = True
        if self.trace is not None:
            self._fill(self.trace)
            if self.session is not None:
                self.attach(self.session)
        else:
            self.title_bar.show(("Reading …",), ())

    # The trace and the session

    def show_trace(self, trace: Trace) -> None:
        """Show another trace; its session follows with ``attach``."""
        self.write_read()
        self.trace, self.session = trace, None
        self._shown = set()
        self.selection, self.suggestion_id = PLAIN, None
        self.entry, self._editing = DigitEntry(), None
        self._choice, self._choosing = None, False
        self.drop_search()
        self.drop_filter()
        self.span_text.forget()
        self._in_view = self._seen = -1
        self._followed = (-1, -1)
        self._fold_counted, self._runs_shown = None, ()
        if self._ready:
            self._fill(trace)

    def _fill(self, trace: Trace) -> None:
        self.timeline.show_trace(trace, reads=True)
        self.show_filter()
        self.overview.show_trace(trace, self.timeline.background)
        self.modes.show_states({})
        self.show_title()
        self.show_span()

    def on_timeline_looked_on(self, event: Timeline.LookedOn) -> None:
        """Take in what was read and found in the background; the timeline has done so."""
        event.stop()
        if event.trace is self.trace and self.timeline.trace is self.trace:
            self.overview.grown()
            self.filter_grown()
            self.show_title()
            self._reports += 1
            if event.done or not self._reports % PLACED_EVERY:
                self._place_marks(event.trace)
            if self._in_view < 0:
                self.show_span()

    def _place_marks(self, trace: Trace) -> None:
        """More spans are known: place the marks that have waited for them."""
        session = self.session
        if session is None or self._keeper is None or not self._keeper[1].waits:
            return
        marks = self._marks_of(session, trace)
        if marks is not self.timeline.marks:
            self.timeline.show_marks(marks)
            self.overview.show_marks(marks)

    def attach(self, session: Session) -> None:
        """The workspace is open: show the labels, and do what keys have asked for meanwhile."""
        if session.trace is not self.trace or self not in self.app.screen_stack:
            self._serve_unseen(session)
            return
        self.session = session
        if not self._ready:
            return
        self.show_state()
        self.show_span()
        self.hints.clear()
        self.timeline.look_for_repeats()
        for step in self._waiting_on(session.trace):
            self.writes.do(partial(step.work, session))

    def _waiting_on(self, trace: Trace) -> list[Waiting]:
        """What keys have asked for on a trace; it waits no longer."""
        found = [step for step in self._waiting if step.trace is trace]
        self._waiting = [step for step in self._waiting if step.trace is not trace]
        return found

    def _serve_unseen(self, session: Session) -> None:
        """Do what keys have asked for on a trace that was left before the workspace was open."""
        undone = 0
        for step in self._waiting_on(session.trace):
            if step.here:
                undone += 1
                continue
            self.writes.do(partial(self._serve, session, step))
        if undone:
            keys = "1 key" if undone == 1 else f"{undone} keys"
            self.mast.complain(
                f"{session.trace.path.name} was left before the workspace was open: "
                f"{keys} pressed there did nothing"
            )

    def _serve(self, session: Session, step: Waiting) -> None:
        self._serving = session
        try:
            self.mast.guarded(partial(step.work, session))
        finally:
            self._serving = None

    def leave_for_a_while(self) -> None:
        """Another room is opened, where this annotator may change things about this trace."""
        self.write_read()
        self._away = True

    def on_screen_resume(self) -> None:
        """Back from another room: take in what was changed there."""
        session = self.session
        if self._away and session is not None:
            self.writes.do(partial(self._attempt, self._come_back, session), Holds.NOTHING)
        self._away = False

    def _come_back(self, session: Session) -> None:
        session.reload()
        session.take_news()  # it was done here, on another screen
        if session is self.session:
            self.show_state()
            self.show_span()

    @on(VirtualLines.Moved, "#timeline")
    def _cursor_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.follow_cursor()

    def follow_cursor(self) -> None:
        """Let everything on screen follow the timeline's cursor, where it has moved."""
        place = (self.timeline.cursor, self.index)
        if place == self._followed:
            return
        self._followed = place
        self.drop_choice()
        if self.selection.quote is not None:
            self.set_selection(PLAIN)
        elif self.selection.range_from is not None:
            self.show_range()
        self.show_place()
        self.show_span_soon()

    @on(VirtualLines.Moved, "#modes")
    def _mode_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.show_definition()

    @on(VirtualLines.Chosen, "#modes")
    def _mode_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        mode = self.modes.mode
        if mode is not None and self.has_spans:
            self.label_with(mode)

    @on(SpanView.Quoted, "#span")
    def _quoted(self, event: SpanView.Quoted) -> None:
        if self._in_view != self.index:
            return
        first = word_at(self.text_here(), event.start)
        last = word_at(self.text_here(), event.end - 1)
        if first is not None and last is not None:
            self.set_selection(Selection(quote=QuoteCursor(first, last, True)))

    # What others write

    def kept(self, step: Callable[[], Result]) -> Result:
        """Do ``step``; where the workspace has gone, ask where to go on, and do it there."""
        return self.mast.kept(step)

    def written_elsewhere(self) -> None:
        """Another window or program has written to the workspace: show what it changes here."""
        session = self.session
        if session is not None and self.timeline.is_attached:
            catch_up = partial(self._attempt, self._catch_up, session)
            self.writes.do(catch_up, Holds.NOTHING)

    def _catch_up(self, session: Session) -> None:
        session.catch_up()
        if session is self.session:
            self._show_news(session)

    def _show_news(self, session: Session) -> None:
        """Show what has come from elsewhere, and say what became of one's own labels."""
        news = session.take_news()
        self.show_state()
        self.show_span()
        if news and not self.entry.begun and self.selection.is_plain:
            self.hints.say(f"In another window: {news}")

    # The queue

    @property
    def mast(self) -> AppContext:
        """The app, with what it shares."""
        return context_of(self)

    @property
    def workspace_refused(self) -> bool:
        """Whether there is no workspace to wait for."""
        return self.mast.refused is not None

    def workspace_failed(self) -> None:
        """There will be no session: what keys have asked for cannot be done."""
        self._waiting = []
        self.hints.clear()
        self.timeline.look_for_repeats()
        self.show_title()
        self.show_suggestion_panel()

    def who(self) -> tuple[str, ...]:
        """Who works, how, and how far the queue is done."""
        session, opened = self.session, self.mast.opened
        if session is None or opened is None:
            return (self.mast.waiting_words(),)
        sight = sight_words(blind=session.blind)
        words = [one_line(session.annotator), sight]
        if session.finished:
            words[1] += " ✓"
        if len(self.mast.catalog.traces) > 1:
            words.append(self.mast.finished_words())
        return tuple(words)

    def leave(self) -> None:
        """Back to where the trace was opened: a room, or the library."""
        if self._leave_to_room():
            return
        if self.trace is None:  # the one file that was named: nobody waits for it any more
            self.mast.stop_reading()
        self.mast.go(ShowLibrary())

    def other_trace(self, step: int) -> None:
        """Open the next or previous trace of the queue."""
        trace = self.mast.neighbour(self.trace, step)
        if trace is None:
            self.hints.say("This is the only trace in the queue")
            return
        self.mast.go(ShowTrace(trace))

    def finished_one(self) -> None:
        """The queue is one shorter."""
        self.mast.count_finished()
        self.mast.queue_changed()
        self.show_title()

    def run_judge(self) -> None:
        """Have a judge look at this trace; ask to cancel one that is at work."""
        if self.trace is not None:
            self.mast.judge_traces([self.trace])

    def _leave_to_room(self) -> bool:
        """Back to the room from which this trace was opened; False where there is none."""
        stack = self.app.screen_stack
        place = stack.index(self)
        if self.app.screen is not self or not isinstance(stack[place - 1], BaseScreen):
            return False
        self.write_read()
        self.app.pop_screen()
        return True

    def show_state(self) -> None:
        """Marks, modes, suggestions: after a change of the session."""
        super().show_state()
        self.overview.show_marks(self.timeline.marks)

    def show_filter(self) -> None:
        """Tell what is shown, and mark in the overview what of the run is on screen now."""
        super().show_filter()
        if self.timeline.filtered:
            self.call_after_refresh(self.show_place)

    # What was read

    def show_span(self) -> None:
        """Show the text of the span under the cursor; once it is drawn it counts as read."""
        super().show_span()
        if self.trace is not None and self.has_spans:
            self.call_after_refresh(self._drawn, self.trace, self._in_view)
        self.notice_filter()

    def _drawn(self, trace: Trace, index: int) -> None:
        # A screen that is being left loses its panes before it stops hearing what it asked for.
        if trace is self.trace and index == self._in_view and self.timeline.is_attached:
            self._seen = index
            self._shown |= self._keys_on_screen()

    def _keys_on_screen(self) -> set[str]:
        """The spans whose text was drawn: in the span view, or whole in their rows.

        One member counts for a fold of equal steps, which may be long: it is kept as a run. What
        rushes by while the end of a trace is followed counts for nothing.
        """
        trace = self.trace
        assert trace is not None
        if self.timeline.follows_end:
            return set()
        keys = set(self.timeline.fully_shown())
        if self._seen < 0:
            return keys
        keys.add(trace.span(self._seen).key)
        fold = self.timeline.rows.folded_at(self._seen)
        if isinstance(fold, Run) and not fold.near and fold != self._fold_counted:
            self._fold_counted = fold
            self._runs_shown = (*self._runs_shown, range(fold.first, fold.end))
        return keys

    def write_read(self) -> None:
        """Write what has been on screen since the last time, in one transaction."""
        session, trace = self.session, self.trace
        if session is None or trace is None or not len(trace) or self.app.screen is not self:
            return
        shown, self._shown = self._shown | self._keys_on_screen(), set[str]()
        runs, self._runs_shown = self._runs_shown, ()
        new = [key for key in shown if key not in session.read]
        if new or runs:
            self.writes.do(partial(self._write_read, session, new, runs), Holds.NOTHING)

    def _write_read(self, session: Session, keys: Sequence[str], runs: tuple[range, ...]) -> None:
        def write(session: Session) -> bool:
            session.mark_read(keys, runs)
            return True

        written = self._attempt(write, session)
        if session is not self.session:
            return
        if written:
            self.timeline.show_read(session.read)
            if session.has_news:
                self._show_news(session)
        else:  # it goes with what is read next
            self._shown.update(keys)
            self._runs_shown = (*runs, *self._runs_shown)
