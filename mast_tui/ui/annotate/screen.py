"""The annotate screen: the trace as a timeline on one side, the taxonomy on the other.

The screen places the panes, draws them from what is open (``AnnotateState``), and passes each key
to the part that implements it. In this file are ``Panes`` (how the window is divided),
``SessionCommands`` (commands of the session, in their turn) and ``Arrival`` (the span at which a
trace opens). The other parts have files of their own: ``Labelling``, ``Marking``, ``Suggestions``,
``Search``, ``Filter``, ``DrawnSpans``, ``Finish``, ``Following``, ``Copying``, ``MyLabels``. The
screen owns the parts and calls them; a part asks the screen for what else it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input

from mast_tui.errors import ChangedElsewhere, ChangedMeanwhile, MastError
from mast_tui.labels import Label, Target
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.library import LOOK_EVERY
from mast_tui.traces.model import Outcome, Span, SpanKind, Trace
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.annotate.copying import Copying
from mast_tui.ui.annotate.filter import Filter
from mast_tui.ui.annotate.finish import DrawnSpans, Finish
from mast_tui.ui.annotate.following import Following
from mast_tui.ui.annotate.labelling import Chooses, Labelling
from mast_tui.ui.annotate.marking import Marking
from mast_tui.ui.annotate.my_labels import MyLabels
from mast_tui.ui.annotate.search import Search
from mast_tui.ui.annotate.state import AnnotateState, Entry, NotedSpan
from mast_tui.ui.annotate.suggestions import Suggestions
from mast_tui.ui.base_screen import BaseScreen
from mast_tui.ui.context import (
    JudgeProgress,
    ShowGuidelines,
    ShowLibrary,
    ShowTrace,
    TraceLocation,
    context_of,
)
from mast_tui.ui.services.view_settings import (
    LEAST_SHARE,
    MOST_SHARE,
    SHARE,
    ViewSettings,
    remembered_settings,
)
from mast_tui.ui.styles import ANNOTATE, HIGH, WIDE, WIDEST
from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.textual_internals import RenderCache
from mast_tui.ui.trace_view.folding import Fold, FoldedRun
from mast_tui.ui.trace_view.gutter import (
    GutterMark,
    GutterMarks,
    MarkKeeper,
    MarkKind,
    Noted,
    Pointing,
)
from mast_tui.ui.trace_view.overview import Overview
from mast_tui.ui.trace_view.span_view import SpanText, SpanView, opens_at, written_as
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.taxonomy_panel import ModeState, TaxonomyPanel, definition_of
from mast_tui.ui.widgets.title_bar import TitleBar, sight_words
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import distinct_names, duration, origin_title, plain_title, trace_title
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Change, Session
    from mast_tui.ui.context import MastApp
    from mast_tui.ui.services.open_workspace import OpenWorkspace


SPLIT_STEP: Final = 10
"""Percent of the height by which one key moves the border above the text."""

SPLIT_SHARES: Final = (SHARE, 60, MOST_SHARE, LEAST_SHARE)
"""Percents of the height for the text, through which one key cycles."""

REPORTS_BETWEEN_MARKS: Final = 4
"""Reports of spans that were indexed after which marks are placed again, if any has no span yet."""

SPAN_WAIT: Final = 0.05
"""Seconds for which the cursor must rest until the text of its span follows a burst of moves."""

SAVE_POSITION_EVERY: Final = 2.0
"""Seconds between writes of the span at which the annotator is."""

READ_EVERY: Final = 0.4
"""Seconds between writes of what was read: one transaction for many moves."""

SUGGESTING: Final = frozenset({"next_suggestion", "accept", "reject"})
"""Actions that the last line leaves out while no suggestion waits."""


class Panes:
    """Divides the screen, and remembers how for the next start.

    While one reads, the text of a span has the window, with the suggestion under it where there
    is one; all keys go on to work on the span under the timeline's cursor.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._settings = ViewSettings()

    def restore(self) -> None:
        """Divide the screen as it was at the end of the last start."""
        self._settings = remembered_settings()
        self._divide()
        self._screen.timeline.show_bar(self._settings.time_bar)

    # The text alone

    @property
    def reading(self) -> bool:
        """Whether the text of a span has the window."""
        return self._screen.has_class("-reading")

    def read(self) -> None:
        """Give the window to the text."""
        self._screen.add_class("-reading")
        self._screen.set_focus(self._screen.span_view)
        self._screen.show_span()
        key_of = self._screen.context.key_of
        self._screen.hints.say(
            f"{key_of('annotate.down')} {key_of('annotate.up')} scroll · "
            f"{key_of('annotate.next_span')} {key_of('annotate.previous_span')} other spans · "
            f"{key_of('annotate.read')} goes back"
        )

    def leave(self) -> bool:
        """Go back to the timeline, which stands where it stood; False where one is there."""
        if not self.reading:
            return False
        self._screen.remove_class("-reading")
        timeline = self._screen.timeline
        self._screen.call_after_refresh(self._back, timeline)
        return True

    def _back(self, timeline: Timeline) -> None:
        if timeline.is_attached and not self.reading:
            self._screen.set_focus(timeline)
            timeline.show_row(timeline.cursor, centre=True)
            self._screen.show_span()

    # Timeline and text: how the height is divided

    def move_split(self, step: int) -> None:
        """Give the text more of the height, or less."""
        share = self._settings.text_share + step * SPLIT_STEP
        self._set_share(
            share // SPLIT_STEP * SPLIT_STEP if step > 0 else -(-share // SPLIT_STEP) * SPLIT_STEP
        )

    def next_split(self) -> None:
        """Give the text more of the height; after most of it, little."""
        share = self._settings.text_share
        larger = [one for one in SPLIT_SHARES if one > share]
        self._set_share(min(larger) if larger else LEAST_SHARE)

    def drag_split(self, y: int) -> None:
        """Put the border above the text on this line of the screen."""
        top, bottom = self._screen.timeline.region.y, self._screen.span_view.region.bottom
        if bottom > top:
            self._set_share(round(100 * (bottom - y) / (bottom - top)))

    def _set_share(self, share: int) -> None:
        if self.reading:
            key = self._screen.context.key_of("annotate.read")
            self._screen.hints.say(f"The text has the window; {key} goes back")
            return
        share = max(LEAST_SHARE, min(share, MOST_SHARE))
        if share != self._settings.text_share:
            self._settings = self._settings._replace(text_share=share)
            self._settings.remember()
            self._divide()
        self._screen.hints.say(f"{share} % of the height for the text")

    def _divide(self) -> None:
        share = self._settings.text_share
        self._screen.timeline.styles.height = f"{100 - share}fr"
        self._screen.span_view.styles.height = f"{share}fr"

    # The time bar

    def toggle_bar(self) -> None:
        """Show in each row when the step was, or leave its columns to the text."""
        shown = not self._settings.time_bar
        self._settings = self._settings._replace(time_bar=shown)
        self._settings.remember()
        self._screen.timeline.show_bar(shown)
        where = "shown where the timeline is wide and the trace has times" if shown else "hidden"
        self._screen.hints.say(f"The bar of when each step was is {where}")


Result = TypeVar("Result")


class SessionCommands:
    """Carries out what keys ask of the session, and shows it once it is on disk.

    ``queue_…`` puts a piece of work into the queue of writes, where it waits for its turn; the
    coroutines are for use within one.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._waiting: list[Callable[[Session], object]] = []

    @property
    def waiting(self) -> bool:
        """Whether something that a key has asked for waits for the workspace."""
        return bool(self._waiting)

    def when_session_opens(self, work: Callable[[Session], object]) -> None:
        """Queue ``work`` with the session, now or as soon as the workspace is open.

        All input that follows waits with it.

        Args:
            work: A function or coroutine function.
        """
        state = self._state
        if state.trace is None:
            return
        if state.session is None and self._screen.context.refused is not None:
            self._hints.say("No workspace is open, so nothing can be labelled", error=True)
        elif state.session is None:
            self._waiting.append(work)
            self._hints.say("Opening the workspace; keys wait their turn")
        else:
            self._queue(work, state.session, HeldKeys.ALL)

    def queue_change(
        self, command: Callable[[Session], Change | None], holds: HeldKeys = HeldKeys.ALL
    ) -> None:
        """Queue one command of the session, and show what it did.

        Args:
            command: Calls one method of the session.
            holds: Which keys wait for it.
        """
        self._screen.context.writes.do(partial(self.change, command), holds)

    def queue_unshown(self, work: Callable[[Session], object], session: Session) -> None:
        """Queue work that no key has asked for, and for which no key waits.

        Args:
            work: A function or coroutine function.
            session: What to call it with.
        """
        self._queue(work, session, HeldKeys.NOTHING)

    def _queue(self, work: Callable[[Session], object], session: Session, holds: HeldKeys) -> None:
        async def piece() -> None:
            try:
                outcome = work(session)
                if isawaitable(outcome):
                    await outcome
            except MastError as error:
                self.show_refusal(error, session)

        self._screen.context.writes.do(piece, holds)

    async def change(
        self,
        command: Callable[[Session], Change | None],
        before_drawing: Callable[[], object] | None = None,
    ) -> Change | None:
        """Carry out one command of the session and show what it did, or why it was refused.

        Only called when there is a session.

        Args:
            command: Calls one method of the session.
            before_drawing: Called once the change is on disk, before it is shown.

        Returns:
            What it did, or None where it was refused or did nothing.
        """
        session = self._state.session
        assert session is not None
        finished = session.finished
        try:
            change = await self._carry_out(command, session)
        except ChangedElsewhere:
            self.show_refusal(session.changed_meanwhile(), session)
            return None
        except MastError as error:
            self.show_refusal(error, session)
            return None
        if session.finished is not finished:
            await self._screen.finish_changed()
        if change is not None and session is self._state.session:
            if before_drawing is not None:
                before_drawing()
            self._screen.session_changed()
            if not self._screen.typing:
                self._hints.say(one_line(change.message))
        return change

    async def note(self, command: Callable[[Session], object], session: Session) -> None:
        """Write what is only noted, also where the trace was changed in another window.

        Args:
            command: Calls one method of the session.
            session: The session.

        Raises:
            MastError: It cannot be written.
        """
        try:
            await self._carry_out(command, session)
        except ChangedElsewhere:
            if session is self._state.session:
                self._screen.show_news(session)
            await self._carry_out(command, session)

    async def _carry_out(self, command: Callable[[Session], Result], session: Session) -> Result:
        """Carry out a command; where it is too late, read the session anew and raise."""
        run = self._screen.context.writes.run
        outcome, write = session.planned(command)
        if write is None:
            return outcome
        try:
            recorded = await run(write.record)
        except ChangedElsewhere:
            session.show_state(await run(partial(session.read_state, passes=True)))
            raise
        session.take_in(write, recorded)
        if session.needs_others:
            session.show_state(await run(partial(session.read_state, passes=False)))
        return outcome

    def show_refusal(self, error: MastError, session: Session) -> None:
        """Show in the last line what the session or the workspace refuses.

        Args:
            error: Says why.
            session: What it was asked of.
        """
        if isinstance(error, ChangedMeanwhile) and session is self._state.session:
            self._screen.session_changed()
        self._hints.say(one_line(str(error)), error=True)

    def session_ready(self, session: Session) -> bool:
        """Do what keys have asked for before there was a session.

        Returns:
            Whether there was anything.
        """
        waiting = self._waiting
        self._waiting = []
        for work in waiting:
            self._queue(work, session, HeldKeys.ALL)
        return bool(waiting)

    def forget(self) -> None:
        """Leave undone what keys have asked for: there will be no session."""
        self._waiting = []


class Arrival:
    """Goes to a span as soon as it is known, unless somebody has moved on by themselves meanwhile.

    Where one stands in each trace is kept in the workspace for each annotator.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._wanted: TraceLocation | None = None
        self._kept = 0
        """The span that is kept in the workspace, or the first."""

    def begin(self) -> None:
        """Begin with another trace."""
        self._wanted, self._kept = None, 0

    def go_to(self, wanted: TraceLocation) -> None:
        """Go to a place with what is looked for there."""
        self._wanted = wanted
        self.grown()

    async def opened(self, workspace: OpenWorkspace) -> None:
        """Go where one was, now that this is known; where one was sent to comes before that."""
        trace = self._state.trace
        if trace is None or self._wanted is not None or self._state.index:
            return
        name = _setting(workspace, trace.identity.trace_id)
        read = partial(workspace.workspace.get_setting, name)
        key = await self._screen.context.workspace.carry_out(read)
        if key is not None and self._wanted is None and self._state.trace is trace:
            self.go_to(TraceLocation(trace.identity.trace_id, key=key))

    def grown(self) -> None:
        """More spans are known."""
        wanted, trace = self._wanted, self._state.trace
        if wanted is None or trace is None or not self._state.has_spans:
            return
        index = None if wanted.key is None else trace.index_of(wanted.key)
        if index is None and wanted.position is not None and wanted.position < len(trace):
            index = wanted.position
        if self._moved_on:
            self._wanted = None
        elif index is not None:
            self._wanted, self._kept = None, index
            self._screen.timeline.go_to(index)
            self._screen.show_span()
            if wanted.find is not None:
                self._screen.search.look_for(wanted.find)

    @property
    def _moved_on(self) -> bool:
        if self._wanted is not None and self._wanted.find is not None:
            return False  # whoever chose it is on the way there
        return self._state.index != self._kept or self._screen.typing or self._screen.search.is_open

    def keep(self) -> None:
        """Keep in the workspace where one stands."""
        trace, opened = self._state.trace, self._screen.context.opened
        if trace is None or opened is None or not self._state.has_spans or self._wanted:
            return
        index = self._state.index
        if index == self._kept:
            return
        self._kept = index
        if opened.workspace.away:
            return  # it is not worth waiting for
        name = _setting(opened, trace.identity.trace_id)
        write = partial(opened.workspace.set_setting, name, trace.span(index).key)
        self._screen.context.writes.do(
            partial(self._screen.context.workspace.carry_out, write), HeldKeys.NOTHING
        )


def _setting(opened: OpenWorkspace, trace_id: str) -> str:
    return f"place of {opened.annotator} in {trace_id}"


class PaneRow(Horizontal, RenderCache):
    """Panes beside each other."""


class PaneColumn(Vertical, RenderCache):
    """Panes below each other."""


class AnnotateScreen(Screen[None], RenderCache):
    """One trace, one annotator."""

    CSS_PATH = ANNOTATE
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide"), (WIDEST, "-widest")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (HIGH, "-high")]
    AUTO_FOCUS = "#timeline"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.ANNOTATE, Where.EVERYWHERE)
    where = Where.ANNOTATE

    def __init__(self, taxonomy: Taxonomy) -> None:
        super().__init__()
        self.title_bar = TitleBar()
        """The first line."""
        self.timeline = Timeline(id="timeline")
        """The spans."""
        self.span_view = SpanView(id="span", tells_place=True)
        """The text of the span under the cursor."""
        self.overview = Overview(id="overview")
        """The whole run in a column, whatever the timeline filters or folds."""
        self.modes = TaxonomyPanel(id="modes")
        """The taxonomy."""
        self.definition = SpanView(id="definition")
        """The definition of the mode under the cursor."""
        self.my_labels: MyLabels | None = None
        """What was said of the trace, once it was asked for."""
        self.hints = HintBar(Where.ANNOTATE, left_out=SUGGESTING | {"edit"})
        """The last line."""
        self.state = AnnotateState(taxonomy, self.timeline, SpanText(self))
        """What is open."""
        self.panes = Panes(self)
        self.commands = SessionCommands(self)
        self.reading = DrawnSpans(self)
        self.marking = Marking(self)
        self.suggestions = Suggestions(self, self.marking)
        self.labelling = Labelling(self, self.marking, self.suggestions)
        self.search = Search(self)
        self.arrival = Arrival(self)
        self.filter = Filter(self)
        self.copying = Copying(self)
        self.finish = Finish(self, self.reading)
        self.following = Following(self)
        self._ready = False
        """Whether the panes are there."""
        self._away = False
        self._reports = 0
        self._in_view = -1
        """The span whose text the span view shows."""
        self._followed = (-1, -1)
        """The timeline's row, and the span there, that the other panes show."""
        self._moves: Timer | None = None
        """Runs while the cursor moves, and for a moment after."""
        self._keeper: tuple[Session, MarkKeeper] | None = None
        self._named: tuple[Trace, int, str] | None = None
        self._offers_next = False
        """Whether this trace is finished and another is in the queue."""

    def compose(self) -> ComposeResult:
        """Place the panes."""
        # Known before there are panes, whose styles would else all be worked out twice.
        width = self.app.size.width
        self.set_class(WIDE <= width < WIDEST, "-wide")
        self.set_class(width >= WIDEST, "-widest")
        self.set_class(width < WIDE, "-narrow")
        self.set_class(self.app.size.height < HIGH, "-short")
        below, beside = self.suggestions.panels
        yield self.title_bar
        with PaneRow(id="panes"):
            with PaneColumn(id="left"):
                yield self.timeline
                yield self.span_view
                yield below
            yield self.overview
            with PaneColumn(id="side"):
                yield self.modes
                yield self.definition
                yield beside
        yield self.search.line
        yield self.hints

    def on_mount(self) -> None:
        """Name the panes and say what is awaited."""
        self.filter.show()
        self._show_taxonomy()
        self.search.line.display = False
        self.panes.restore()
        self.watch(self.timeline, "scroll_y", self.show_place, init=False)
        self.set_interval(READ_EVERY, self.reading.write_between_keys)
        self.set_interval(SAVE_POSITION_EVERY, self.arrival.keep)
        self.set_interval(LOOK_EVERY, self.following.look)
        self._ready = True
        if self.trace is not None:
            self._fill(self.trace)
            if self.session is not None:
                self.attach(self.session)
        else:
            self.title_bar.show(("Reading …",), ())

    def _show_taxonomy(self) -> None:
        self.modes.border_title = plain_title(self.state.taxonomy.name)
        self.modes.show_taxonomy(self.state.taxonomy)
        self.call_after_refresh(self.show_definition)

    # The trace and the session

    @property
    def trace(self) -> Trace | None:
        """The trace that is open."""
        return self.state.trace

    @property
    def session(self) -> Session | None:
        """The annotator's session on it; None until the workspace is open."""
        return self.state.session

    def awaits_content(self, action: str | None) -> bool:
        """Check if input has to wait for the trace, or for what a key before it has asked for.

        Before the workspace is open a key can ask for a note, a dialog or another place, so all
        that follows waits with it.
        """
        if self.commands.waiting:
            return True
        of_this_screen = action is not None and action.startswith(f"{self.where}.")
        return of_this_screen and self.trace is None

    def show_trace(self, trace: Trace) -> None:
        """Show another trace; its session follows with ``attach``."""
        self.reading.write()
        self.arrival.keep()
        self.state.show(trace)
        for part in (self.reading, self.suggestions, self.labelling, self.arrival):
            part.begin()
        self.search.drop()
        self.filter.drop()
        self._in_view = -1
        self._followed = (-1, -1)
        if self._ready:
            self.hints.clear()
            self._fill(trace)

    def _fill(self, trace: Trace) -> None:
        self.timeline.show_trace(trace, reads=True)
        self.filter.show()
        self.overview.show_trace(trace, self.timeline.background)
        self.modes.show_states({})
        if self.my_labels is not None:
            self.my_labels.show(None)
        self.show_title()
        self.show_span()

    def on_timeline_index_grown(self, event: Timeline.IndexGrown) -> None:
        """Take in what was read and found in the background; the timeline has done so."""
        event.stop()
        if event.trace is self.trace and self.timeline.trace is self.trace:
            self.overview.grown()
            self.filter.grown()
            self.show_title()
            self._reports += 1
            self.following.grown(done=event.done)
            if event.done or not self._reports % REPORTS_BETWEEN_MARKS:
                self._place_marks(event.trace)
            if self._in_view < 0:
                self.show_span()
            self.arrival.grown()

    def spans_added(self) -> None:
        """Take in that the file of the trace has grown."""
        self.search.grown()
        self.filter.grown()

    def show_anew(self, trace: Trace) -> None:
        """Show what the file of the trace holds now, from the span that one was on."""
        old = self.trace
        assert old is not None
        key = old.span(self.index).key if self.state.has_spans else ""
        chosen, needle = self.filter.chosen, self.state.needle
        self.context.catalog.renew(old, trace)
        self.context.go(ShowTrace(trace))
        index = trace.index_of(key)
        if index is not None:
            self.timeline.go_to(index)
        if needle:
            self.search.again(needle)
        self.filter.show_only(chosen)
        self.show_span()

    def attach(self, session: Session) -> None:
        """Show the labels of the trace, and do what keys have asked for meanwhile."""
        if session.trace is not self.trace or self not in self.app.screen_stack:
            return
        self.state.session = session
        if not self._ready:
            return
        if session.taxonomy != self.state.taxonomy:
            self.state.taxonomy = session.taxonomy  # as it is worded in the workspace
            self._show_taxonomy()
        self.session_changed()
        self.show_span()
        if self.commands.waiting:
            self.hints.clear()
        self.timeline.look_for_repeats()
        self.suggestions.answer_as_asked()
        if not self.commands.session_ready(session) and self.context.opened is not None:
            self.context.writes.do(partial(self.arrival.opened, self.context.opened))

    def workspace_failed(self) -> None:
        """Leave undone what keys have asked for: there will be no session."""
        self.commands.forget()
        self.hints.clear()
        self.timeline.look_for_repeats()
        self.show_title()
        self._show_answerable()

    def leave_for_a_while(self) -> None:
        """Make ready for another room, where this annotator may change things about this trace."""
        self.reading.write()
        self.arrival.keep()
        self._away = True

    def on_screen_resume(self) -> None:
        """Take in what was changed in another room, on the way back from it."""
        if self._away and self.session is not None:
            self.commands.queue_unshown(self._come_back, self.session)
        self._away = False

    async def _come_back(self, session: Session) -> None:
        read = partial(session.read_state, passes=True)
        session.show_state(await self.context.writes.run(read))
        session.pop_news()  # it was done here, on another screen
        if session is self.session:
            self.session_changed()
            self.show_span()

    def written_elsewhere(self) -> None:
        """Show what another window or program has written to the workspace."""
        if self.session is not None and self.timeline.is_attached:
            self.commands.queue_unshown(self._catch_up_with_others, self.session)

    async def _catch_up_with_others(self, session: Session) -> None:
        session.show_state(await self.context.writes.run(session.read_state))
        if session is self.session:
            self.show_news(session)

    def show_news(self, session: Session) -> None:
        """Show what has come from elsewhere, and say what became of one's own labels."""
        news = session.pop_news()
        self.session_changed()
        self.show_span()
        if news and not self.typing and self.state.selection.is_plain:
            self.hints.say(f"In another window: {news}")

    def judged(self, message: JudgeProgress) -> None:
        """Take in what a judge has found on this trace, and say how it ended."""
        session = self.session
        here = session is not None and message.trace_id in (None, session.trace_id)
        if session is not None and here and session.suggestions_visible:
            session.refresh_suggestions()
            self.session_changed()
            self.show_span()
        if message.done:
            told = not message.problem and session is not None and not self.labelling.waits
            then = self.suggestions.what_next(session) if told and session is not None else ""
            message.tell(self.hints, then)

    def look_at(self, at: TraceLocation) -> None:
        """Go to the evidence, as soon as the workspace is open; to what was found at once."""
        if at.find is not None:
            self.arrival.go_to(at)
        else:
            self.suggestions.look_at(at)

    def go_to_place(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; False where there is none."""
        found = self.timeline.go_to_named(text)
        if found:
            self.show_span()
        return found

    # The app

    @property
    def context(self) -> MastApp:
        """The app, with what it shares."""
        return context_of(self)

    # What else the parts ask for

    @property
    def typing(self) -> bool:
        """Whether a mode is being typed."""
        return self.labelling.entry.begun

    def in_background(self, work: Callable[[], None], group: str) -> None:
        """Do ``work`` in a thread, in place of what is done for the same ``group``.

        What it finds it hands on by ``call_later``, which sends a message as a thread may.
        """
        self.run_worker(work, group=group, exclusive=True, thread=True)

    def stop_background(self, group: str) -> None:
        """Tell what is done for this group to stop."""
        self.workers.cancel_group(self, group)

    @on(Input.Changed, "#search")
    def _search_typed(self, event: Input.Changed) -> None:
        event.stop()
        self.search.typed(event.value)

    @on(Input.Submitted, "#search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.search.submit()

    # Drawing: the title

    def show_title(self) -> None:
        """Show what is open, and who works."""
        trace = self.trace
        if trace is None:
            return
        told = self.session is not None and self.session.hidden_visible
        outcome = trace.meta.outcome if told else Outcome.UNKNOWN
        left = trace_title(trace, outcome, trace.spans.waiting, self._trace_name(trace))
        if lasted := self.timeline.facts.total:
            left.append(duration(lasted))
        if problems := len(trace.problems):
            left.append(f"{problems} problem{'' if problems == 1 else 's'} in the file")
        self.title_bar.show(tuple(left), self._who())

    def _trace_name(self, trace: Trace) -> str:
        """What the trace goes by among those that are listed, worked out anew where these are."""
        catalog = self.context.catalog
        known, changes = self._named, len(catalog.changes)
        if known is None or known[0] is not trace or known[1] != changes:
            name = distinct_names(trace, catalog.traces.values())
            self._named = known = (trace, changes, name)
        return known[2]

    def _who(self) -> tuple[str, ...]:
        """Who works, how, and how far the queue is done."""
        session = self.session
        if session is None or self.context.opened is None:
            return (self.context.workspace.waiting_words(),)
        sight = sight_words(blind=session.blind)
        if session.finished:
            sight += " ✓"
        words = [*self.context.workspace.unsent_words(), one_line(session.annotator), sight]
        if len(self.context.catalog.traces) > 1:
            words.append(self.context.trace_queue.finished_words())
        return tuple(words)

    def still_reading(self, words: str) -> None:
        """Tell how far the reading of the one big document that was named has come."""
        if self.trace is None:
            self.title_bar.show((words,), ())

    # Drawing: what depends on labels

    async def finish_changed(self) -> None:
        """Count the finished traces again, and show the title."""
        await self.context.trace_queue.count_finished()
        self.context.queue_changed()
        self.show_title()

    def session_changed(self) -> None:
        """Show marks, modes and suggestions as the session has them now."""
        session, trace = self.session, self.trace
        if session is None or trace is None:
            return
        following = self.context.trace_queue.neighbour(trace, 1) if session.finished else None
        self._offers_next = following is not None
        if session.suggestions:
            note = partial(self.commands.note, lambda s: s.note_suggestions_on_screen())
            self.commands.queue_unshown(note, session)
        marks = self._marks_of(session, trace)
        self.timeline.show_marks(marks)
        own = session.labels_of_modes
        pending = Counter(s.mode for s in self.suggestions.pending)
        self.modes.show_states(
            {
                mode.slug: ModeState(
                    own.get(mode.slug, 0), session.verdict(mode.slug), pending[mode.slug]
                )
                for mode in self.state.taxonomy.all_modes
            }
        )
        self.timeline.show_read(session.read)
        if self.my_labels is not None:
            self.my_labels.show(session)
        self.show_title()
        self._show_answerable()
        self.show_highlights()
        self.overview.show_marks(marks)
        if self.panes.reading and self._in_view == self.index:
            self._name_span(trace, trace.span(self.index))

    def _marks_of(self, session: Session, trace: Trace) -> GutterMarks:
        """Own labels, suggestions, others' labels and notes, where they stand by now."""
        if self._keeper is None or self._keeper[0] is not session:
            self._keeper = (session, MarkKeeper(self._mark, trace.index_of))
        shown: dict[MarkKind, Mapping[str, Pointing]] = {
            MarkKind.OWN: session.labels_by_id,
            MarkKind.SUGGESTION: self.suggestions.pending_by_id,
            MarkKind.OTHER: {label.id: label for label in session.others},
            MarkKind.NOTE: {key: Noted(Target(key, key)) for key in session.span_notes},
        }
        return self._keeper[1].follow(shown, len(trace))

    def _mark(self, slug: str, kind: MarkKind) -> GutterMark:
        if kind is MarkKind.NOTE:
            return GutterMark("", kind)
        return GutterMark(self._code(slug), kind, self.state.place_of_mode(slug))

    def _code(self, slug: str) -> str:
        mode = next((m for m in self.state.taxonomy.all_modes if m.slug == slug), None)
        if mode is None:
            return one_line(slug, 8)
        return mode.code if len(mode.code) <= 8 else mode.code[:7] + "…"

    def _place_marks(self, trace: Trace) -> None:
        """More spans are known: place the marks that have waited for them."""
        session = self.session
        if session is None or self._keeper is None or not self._keeper[1].waits:
            return
        marks = self._marks_of(session, trace)
        if marks is not self.timeline.marks:
            self.timeline.show_marks(marks)
            self.overview.show_marks(marks)

    # Drawing: what depends on the cursor

    @property
    def index(self) -> int:
        """The span under the cursor."""
        return self.timeline.index

    def _follow_cursor(self) -> None:
        """Let everything on screen follow the timeline's cursor, where it has moved.

        A key does so itself, so that all it changes is drawn at once; the message that the cursor
        has moved comes too late for that.
        """
        place = (self.timeline.cursor, self.index)
        if place == self._followed:
            return
        self._followed = place
        self.labelling.drop_choice()
        self.marking.follow_cursor()
        self.show_place()
        self._show_span_soon()

    @on(VirtualLines.Moved, "#timeline")
    def _cursor_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._follow_cursor()

    def _show_span_soon(self) -> None:
        """After a move of the cursor: its span at once, or when a burst of moves is over.

        What a key would answer follows the cursor at once; only the text waits.
        """
        trace = self.trace
        if self._moves is None or self._in_view == self.index or trace is None or not len(trace):
            self.show_span()
        else:
            self.suggestions.pick(trace.span(self.index))
            self._show_answerable()
        if self._moves is not None:
            self._moves.stop()
        self._moves = self.set_timer(SPAN_WAIT, self._moves_over)

    def _show_answerable(self) -> None:
        """Show the suggestion under the cursor, and tell of keys that have something to act on."""
        self.suggestions.show_panel()
        self._show_hints()

    def _show_hints(self) -> None:
        left_out = set() if self.suggestions.pending else set(SUGGESTING)
        if not self._can_edit:
            left_out.add("edit")
        if self._offers_next:
            self.hints.leave_out(left_out | {"digit_1"}, first="next_trace")
        else:
            self.hints.leave_out(left_out)

    def on_descendant_focus(self) -> None:
        """Keys about labels are meant for the list of them while that has the focus."""
        self._show_hints()

    def _moves_over(self) -> None:
        self._moves = None
        self.catch_up()

    @property
    def text_waits(self) -> bool:
        """Whether the span view still shows another span than the one under the cursor."""
        return self._moves is not None and self.state.has_spans and self._in_view != self.index

    def catch_up(self) -> None:
        """Show the span under the cursor now, where the span view shows another one."""
        if self.state.has_spans and self._in_view != self.index:
            self.show_span()

    def show_span(self) -> None:
        """Show the text of the span under the cursor; once it is drawn it counts as read."""
        trace = self.trace
        if trace is not None and len(trace):
            self._show_text(trace, trace.span(self.index))
            self._show_answerable()
            self.call_after_refresh(self._span_drawn, trace, self._in_view)
        elif trace is not None:
            self.span_view.show_titles(None)
            self.span_view.show_text("", empty="This trace has no spans.")
        self.filter.notice()

    def _show_text(self, trace: Trace, span: Span) -> None:
        self._name_span(trace, span)
        self.suggestions.pick(span)
        if self._in_view == span.index:
            # Who reads on in a long text stays there, whatever else has changed.
            self.span_view.show_highlights(self._highlights(span))
        else:
            self._in_view = span.index
            text = self.state.text_here()
            self.span_view.show_text(
                text,
                self._highlights(span),
                empty=self.state.texts.words_on_nothing,
                written=written_as(span),
                opens_at=opens_at(span, text),
            )

    def _name_span(self, trace: Trace, span: Span) -> None:
        """Say above the text which span it is of; while one reads also what is said of it."""
        title = _span_title(trace, span)
        if self.panes.reading:
            marks = self.timeline.marks.at(span.index)
            title = " · ".join([title, *(mark.shown for mark in marks)])
        self.span_view.show_titles(plain_title(title), origin_title(span))

    def _span_drawn(self, trace: Trace, index: int) -> None:
        # A screen that is being left loses its panes before it stops hearing what it asked for.
        if trace is self.trace and index == self._in_view and self.timeline.is_attached:
            self.reading.drawn(index)

    def show_highlights(self) -> None:
        """Show in the text what is quoted, found or marked, without moving."""
        trace, quote = self.trace, self.state.selection.quote
        if trace is None or not len(trace) or (self.text_waits and quote is None):
            return
        self.catch_up()
        self.span_view.show_highlights(self._highlights(trace.span(self.index)))
        if quote is not None:
            self.span_view.reveal(quote.head[0], quote.head[1])

    def _highlights(self, span: Span) -> list[TextPart]:
        found: list[TextPart] = []
        suggestion = self.suggestions.here()
        if (
            suggestion is not None
            and suggestion.evidence_key == span.key
            and suggestion.quote_offsets
        ):
            start, end = suggestion.quote_offsets
            found.append(TextPart(start, end, "evidence"))
        for label in self.state.labels_here():
            target = label.target
            if target.first == span.key and target.char_start is not None:
                found.append(TextPart(target.char_start, target.char_end or 0, "own"))
        found += [TextPart(start, end, "match") for start, end in self.search.places_shown()]
        quote = self.state.selection.quote
        if quote is not None:
            found.append(TextPart(quote.start, quote.end, "selection"))
        return found

    def show_place(self) -> None:
        """Mark in the overview the cursor and what the timeline has on screen."""
        # A screen that is being left loses its panes before it stops hearing what it asked for.
        if not self.state.has_spans or not self.timeline.is_attached:
            return
        timeline = self.timeline
        rows = timeline.rows_on_screen()
        first = timeline.rows.index_at(rows[0]) if rows else self.index
        last = timeline.rows.index_at(rows[-1]) if rows else self.index
        self.overview.show_place(self.index, first, last)

    @on(VirtualLines.Resized)
    def _timeline_resized(self, event: VirtualLines.Resized) -> None:
        event.stop()
        self.show_place()

    def show_definition(self) -> None:
        """Show what the taxonomy says of the mode under its cursor."""
        mode = self.modes.mode
        if mode is not None:
            self.definition.border_title = plain_title(f"{mode.code} {mode.name}")
            self.definition.show_text(definition_of(mode, self.state.taxonomy))

    @on(VirtualLines.Moved, "#modes")
    def _mode_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.show_definition()

    # Keys: while the last line asks for something they are an answer first

    @property
    def asks(self) -> bool:
        """Whether the last line asks for something."""
        return self.labelling.asks

    def take_key(self, key: str, action: str | None) -> bool:
        """Take a key while something is asked; what is not known there does nothing.

        Args:
            key: Its name.
            action: The id of the action that is bound to it here, if any.
        """
        return self.labelling.take_key(key, action)

    # Keys: moving

    @property
    def pane(self) -> VirtualLines:
        """The pane that has the focus; the timeline where none has."""
        focused = self.focused
        return focused if isinstance(focused, VirtualLines) else self.timeline

    def _forget_message(self) -> None:
        """What was said belongs to where one was; what is waited for stays on screen."""
        if not self.labelling.waits:
            self.hints.clear()

    def action_move(self, delta: int) -> None:
        """Go one row up or down; a line of the text while a quote is being marked."""
        quote = self.state.selection.quote
        if quote is not None:
            self.marking.move_line(quote, delta)
        else:
            self._forget_message()
            self.pane.move_by(delta)
            self._follow_cursor()

    def action_move_page(self, delta: int) -> None:
        """Go one screen up or down."""
        self._forget_message()
        self.pane.move_page(delta)
        self._follow_cursor()

    def action_move_half(self, delta: int) -> None:
        """Go half a screen up or down."""
        self._forget_message()
        self.pane.move_half(delta)
        self._follow_cursor()

    def action_move_to_start(self) -> None:
        """Go to the first row."""
        self._forget_message()
        if self.pane is self.timeline:
            self.timeline.trail.left(self.index, 0)
        self.pane.move_to(0)
        self._follow_cursor()

    def action_move_to_end(self) -> None:
        """Go to the last row; while a trace is read to the last span that is known, and on with
        it."""
        self._forget_message()
        if self.pane is self.timeline and self.trace is not None:
            self.timeline.trail.left(self.index, len(self.trace) - 1)
        self.pane.move_to_end()
        self._follow_cursor()

    def action_trail(self, step: int) -> None:
        """Go back to where one was before a jump, or forth again."""
        if not self.state.has_spans:
            return
        trail = self.timeline.trail
        index = trail.back(self.index) if step < 0 else trail.forward(self.index)
        if index is None:
            self.hints.say("Nowhere to go back to" if step < 0 else "Nowhere to go forth to")
            return
        self._forget_message()
        self.timeline.bring(index)
        self._follow_cursor()

    def action_error(self, step: int) -> None:
        """Go to the next step that failed, or to the previous one."""
        if not self.state.has_spans:
            return
        overview = self.overview
        index = overview.totals.error_from(self.index, step)
        if index is not None:
            self._go_to(index)
            return
        so_far = "" if overview.complete else " so far"
        if not overview.totals.errors:
            self.hints.say(f"No step of this trace is known to have failed{so_far}")
        else:
            where = f"further on{so_far}" if step > 0 else "before this one"
            self.hints.say(f"No step that failed {where}")

    @on(Overview.CellChosen)
    def _place_chosen(self, event: Overview.CellChosen) -> None:
        event.stop()
        self._go_to(event.index)

    def _go_to(self, index: int) -> None:
        self._forget_message()
        self.timeline.go_to(index)
        self.show_span()

    def action_fold(self) -> None:
        """Fold or unfold what the step or mode under the cursor is a part of."""
        if self.pane is self.modes:
            self.modes.toggle_fold()
            return
        if not self.state.has_spans:
            return
        if self.timeline.filtered:
            self.hints.say("Nothing is folded while only some spans are shown")
            return
        index = self.index
        fold = self.timeline.toggle_fold()
        if fold is None:
            self.hints.say(
                f"#{index + 1} stands in no run of equal steps, and nothing belongs under it"
            )
        elif self.timeline.rows.folded_at(fold.first) is not None:
            self.hints.say(_folded_words(fold))
        self.show_span()

    def action_pane(self) -> None:
        """Go to the next pane; or to the next of several labels where one is being chosen."""
        if self.labelling.next_choice():
            return
        order: list[VirtualLines] = [self.timeline, self.span_view, self.modes]
        if self.my_labels is not None:
            order.append(self.my_labels)
        order += [panel for panel in self.suggestions.panels if panel.overflows]
        panes = [pane for pane in order if pane.is_on_screen and pane.display]
        place = panes.index(self.pane) if self.pane in panes else 0
        self.set_focus(panes[(place + 1) % len(panes)])

    async def action_my_labels(self) -> None:
        """Show what one has said of the trace, and go there; from there, hide it."""
        mine = self.my_labels
        if mine is not None and self.has_class("-mine") and self.focused is mine:
            self._hide_my_labels()
            return
        self.set_class(True, "-mine")
        self.set_class(False, "-drawer")
        if mine is None:
            mine = self.my_labels = MyLabels(self.state.taxonomy, id="mine")
            await self.query_one("#side").mount(mine, after=self.definition)
        mine.show(self.session)
        if label := self.labelling.newest_here:
            mine.go_to_label(label.id)
        self.set_focus(mine)

    def _hide_my_labels(self) -> None:
        self.set_class(False, "-mine")
        self.set_focus(self.timeline)

    @property
    def picked(self) -> Entry | None:
        """What a key about a label is meant for while the list of them has the focus."""
        mine = self.my_labels
        return mine.entry if mine is not None and self.focused is mine else None

    @property
    def _can_edit(self) -> bool:
        """Whether a suggestion or a label of one's own is under the cursor."""
        if self.picked is not None:
            return isinstance(self.picked, Label)
        return self.suggestions.here() is not None or bool(self.state.labels_here())

    @on(VirtualLines.Moved, "#mine")
    def _entry_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._show_hints()

    @on(VirtualLines.Chosen, "#mine")
    def _entry_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        entry, trace = self.picked, self.trace
        if entry is None or trace is None:
            return
        if not isinstance(entry, NotedSpan):
            self.modes.go_to(entry.mode)
        key = None
        if isinstance(entry, Label):
            key = entry.target.first
        elif isinstance(entry, NotedSpan):
            key = entry.key
        if self.has_class("-narrow"):
            self._hide_my_labels()
        self.set_focus(self.timeline)
        index = None if key is None else trace.index_of(key)
        if index is not None:
            self._go_to(index)
        if isinstance(entry, Label) and entry.target.char_start is not None:
            self.span_view.reveal(entry.target.char_start, entry.target.char_end or 0)

    def action_drawer(self) -> None:
        """Show or hide the taxonomy where it is a drawer."""
        self.set_class(False, "-mine")
        self.toggle_class("-drawer")
        rest = self.span_view if self.panes.reading else self.timeline
        self.set_focus(self.modes if self.has_class("-drawer") else rest)

    def action_trace(self, step: int) -> None:
        """Open the next or previous trace of the queue."""
        trace = self.context.trace_queue.neighbour(self.trace, step)
        if trace is None:
            key = self.context.key_of("library.queue")
            self.hints.say(f"No other trace is in the queue; {key} in the library chooses one")
            return
        self.context.go(ShowTrace(trace))

    def action_back(self) -> None:
        """Leave what is open, one thing at a time; then the trace.

        Of a search and a filter the one that was set last goes first.
        """
        if self.focused is self.search.line:
            self.search.forget()
            return
        in_timeline = self.focused is None or self.focused is self.timeline
        steps = [self.search.forget, self.filter.forget]
        if self.state.set_last == "filter":
            steps.reverse()
        if self.labelling.forget() or self.panes.leave() or any(step() for step in steps):
            self.hints.clear()
            return
        if self.has_class("-drawer"):
            self.action_drawer()
            return
        if self.has_class("-mine") and self.has_class("-narrow"):
            self._hide_my_labels()
            return
        if in_timeline:
            self._leave()
        else:
            self.set_focus(self.timeline)

    def action_close(self) -> None:
        """Leave what is open, as Esc does."""
        self.action_back()

    def _leave(self) -> None:
        """Go back to where the trace was opened: a room, or the library."""
        stack = self.app.screen_stack
        place = stack.index(self)
        if self.app.screen is self and isinstance(stack[place - 1], BaseScreen):
            self.reading.write()
            self.arrival.keep()
            self.app.pop_screen()
            return
        if self.trace is None:  # the one file that was named: nobody waits for it any more
            self.context.traces.prefetch.stop()
        self.context.go(ShowLibrary())

    # Keys: how the window is divided

    def action_read(self) -> None:
        """Give the window to the text of the span, or go back."""
        if self.panes.reading:
            self.panes.leave()
            self._forget_message()
        elif self.state.has_spans:
            self.panes.read()

    def action_span(self, step: int) -> None:
        """Go to the next or previous row of the timeline, wherever the focus is."""
        if self.state.has_spans:
            self._forget_message()
            self.timeline.move_by(step)
            self._follow_cursor()

    def action_split(self, step: int) -> None:
        """Give the text more of the height, or less."""
        self.panes.move_split(step)

    def action_next_split(self) -> None:
        """Give the text more of the height; after most of it, little."""
        self.panes.next_split()

    def action_time_bar(self) -> None:
        """Show when each step was, or leave the columns to the text."""
        self.panes.toggle_bar()

    @on(SpanView.EdgeDragged, "#span")
    def _edge_dragged(self, event: SpanView.EdgeDragged) -> None:
        event.stop()
        self.panes.drag_split(event.y)

    # Keys: the text of a span

    def action_text(self, delta: int) -> None:
        """Scroll the span's text by a screen; while a quote is being marked, ``b`` goes back."""
        if self.state.selection.quote is not None:
            self.action_word(delta)
        else:
            self.catch_up()
            self.span_view.move_page(delta)

    def action_word(self, step: int) -> None:
        """Go to the next or previous word, while a quote is being marked; else to the side in a
        text whose lines run on."""
        quote = self.state.selection.quote
        if quote is not None:
            self.marking.move_word(quote, step)
        elif self.pane is self.span_view and not self.span_view.move_sideways(step):
            key = self.context.key_of("annotate.wrap")
            self.hints.say(f"Long lines are wrapped; {key} lets them run on")

    def action_raw(self) -> None:
        """Show texts as they are, or as they are meant."""
        self.catch_up()
        self.span_view.toggle_raw()
        if self.span_view.raw:
            key = self.context.key_of("annotate.raw")
            self.hints.say(f"Texts are shown as they are · {key} shows them as they are meant")
        else:
            self.hints.say("JSON is set out; Markdown, code and diffs are drawn as such")

    def action_wrap(self) -> None:
        """Break long lines of the text, or let them run on to the side."""
        self.span_view.toggle_wrap()
        if self.span_view.wrapped:
            self.hints.say("Long lines are wrapped")
        else:
            key_of = self.context.key_of
            self.hints.say(
                f"Long lines run on: {key_of('annotate.word_left')} "
                f"{key_of('annotate.word_right')} scroll while the text has the focus "
                f"({key_of('annotate.pane')})"
            )

    def action_copy(self) -> None:
        """Copy the span's text, or the marked quote."""
        self.copying.copy()

    def action_copy_what(self) -> None:
        """Ask what to copy: a text, a place, the whole trace."""
        self.copying.choose()

    def action_compare(self) -> None:
        """Show what differs between the step under the cursor and the one that it repeats."""
        # Start-up: few compare steps, and it brings what sets out JSON.
        from mast_tui.ui.annotate.compare import compare_step

        compare_step(self)

    def action_answer_key(self) -> None:
        """Show how the run should have gone and how it was scored, to whoever may see it."""
        # Start-up: it is not looked at on most traces.
        from mast_tui.ui.annotate.answer_key import show_answer_key

        show_answer_key(self)

    # Keys: what the next label points at

    def action_range(self) -> None:
        """Begin a range at the cursor, or end it."""
        if self.state.selection.quote is None:
            self.set_focus(self.timeline)  # what moves its end
        self.marking.range()

    def action_extend(self, delta: int) -> None:
        """Stretch the range by a row, or begin one at the cursor with it."""
        if not self.state.has_spans:
            return
        if self.state.selection.is_plain:
            self.action_range()
        self.action_move(delta)

    def action_other_end(self) -> None:
        """Go to the other end of the range that is being marked."""
        self.marking.other_end()

    def action_quote(self) -> None:
        """Begin to mark words in the span's text; again goes to the next word."""
        self.marking.quote()

    @on(SpanView.Quoted, "#span")
    def _quoted(self, event: SpanView.Quoted) -> None:
        if self._in_view == self.index:
            self.marking.quote_between(event.start, event.end)

    def action_whole(self) -> None:
        """Have the next label be on the whole trace."""
        self.marking.whole()

    # Keys: labels

    def action_digit(self, digit: str) -> None:
        """Take one digit of a mode's code."""
        self.labelling.digit(digit)

    def action_verdict(self, value: str) -> None:
        """Have the next two digits say that a mode is absent, or that one is unsure."""
        self.labelling.verdict(value)

    def action_find_mode(self) -> None:
        """Choose a mode by typing a part of its name."""
        self.labelling.find_mode()

    @on(VirtualLines.Chosen, "#modes")
    def _mode_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        mode = self.modes.mode
        if mode is None:
            self.modes.toggle_fold()
        elif self.state.has_spans:
            self.labelling.label_with(mode)

    def action_label(self, what: Chooses) -> None:
        """Change the label under the cursor, such as its note, or take it off."""
        self.labelling.act(what)

    def action_undo(self) -> None:
        """Take back the last change on this trace."""
        self.labelling.step(back=True)

    def action_redo(self) -> None:
        """Do again what was taken back."""
        self.labelling.step(back=False)

    # Keys: suggestions

    def action_suggestion(self, step: int) -> None:
        """Go to the next or previous suggestion that waits, at its evidence."""
        self.suggestions.go(step)

    def action_guidelines(self) -> None:
        """Show what was agreed about the mode under the cursor of the taxonomy."""
        mode = self.modes.mode or self.state.taxonomy.modes[0]
        self.context.go(ShowGuidelines(mode.slug))

    def action_accept(self) -> None:
        """Accept the suggestion under the cursor and go on to the next."""
        self.suggestions.answer(accept=True)

    def action_reject(self) -> None:
        """Reject the suggestion under the cursor and go on to the next."""
        self.suggestions.answer(accept=False)

    def action_answer_many(self) -> None:
        """Reject, accept or hide all suggestions of a rule, a mode or a judge."""
        self.suggestions.answer_many()

    def action_edit(self) -> None:
        """Give the suggestion, or else the label under the cursor, another mode or place."""
        if self.picked is None and (self.suggestions.here() or not self.state.labels_here()):
            self.suggestions.edit(self.labelling.show_editing)
        else:
            self.labelling.act("edit")

    def action_judge(self) -> None:
        """Have a judge look at this trace; ask to cancel one that is at work."""
        trace = self.trace
        if trace is None or not len(trace):
            return
        if not trace.loaded.complete:
            self.hints.say("Still reading this trace; run the judge when it is all there")
            return
        self.commands.when_session_opens(lambda _: self.context.judge_traces([trace]))

    # Keys: finding and filtering

    def action_search(self) -> None:
        """Open the search line."""
        self.search.open()

    def action_search_regex(self) -> None:
        """Take what is typed for a regular expression, or for plain text again."""
        self.search.toggle_regex()

    def action_match(self, step: int) -> None:
        """Go to the next or previous match: in this span, then in the next that has one."""
        self.search.go(step)

    def action_filter(self) -> None:
        """Choose which spans are shown."""
        self.filter.choose()

    # Keys: the end of a pass

    def action_follow(self) -> None:
        """Take in what has come to the file; read it anew where it is another one."""
        self.following.ask()

    def action_finish(self) -> None:
        """Finish the trace; asks once where spans were not read."""
        self.finish.end_pass()

    def action_reveal(self) -> None:
        """After finishing: show others' labels, the outcome, and what else was hidden."""
        self.finish.reveal()


def _span_title(trace: Trace, span: Span) -> str:
    parts = [f"#{span.index + 1} {span.kind.replace('_', ' ')}", span.agent]
    if span.name:
        parts.append(span.name)
    if span.parent is not None and span.kind is SpanKind.TOOL_RESULT:
        call = trace.index_of(span.parent)
        if call is not None:
            parts.append(f"of #{call + 1}")
    if span.start is not None and span.end is not None and span.end > span.start:
        parts.append(duration(span.end - span.start))
    if span.status == "error":
        parts.append("error")
    return " · ".join(parts)


def _folded_words(fold: Fold) -> str:
    places = (
        f"#{fold.first + 1}" if fold.end == fold.first + 1 else f"#{fold.first + 1} to #{fold.end}"
    )
    if isinstance(fold, FoldedRun):
        return f"Folded ×{fold.times} {'nearly ' if fold.near else ''}equal steps, {places}"
    if fold.head is not None:
        return f"Folded {places} under #{fold.head + 1}"
    return f"Folded the steps of {one_line(fold.agent, 40)}, {places}"
