"""The annotate screen: the trace as a timeline on one side, the taxonomy on the other.

The screen places the panes, draws them from ``AnnotateState``, and passes each key to a part. The
parts in this file are ``Panes`` (the division of the window), ``SessionCommands`` (commands of the
session in order) and ``Arrival`` (the span at which a trace opens). The other parts have their own
files. Parts ask the screen for other parts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from inspect import isawaitable
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input

from mast_tui.counts import counted, duration
from mast_tui.errors import ChangedElsewhere, ChangedMeanwhile, MastError
from mast_tui.labels import Label, Target
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.file_places import distinct_name
from mast_tui.traces.library import LOOK_EVERY
from mast_tui.traces.model import Outcome, Span, SpanKind, Trace
from mast_tui.traces.pictures import is_picture_note
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.annotate.copying import Copying
from mast_tui.ui.annotate.filter import Filter
from mast_tui.ui.annotate.finish import DrawnSpans, Finish
from mast_tui.ui.annotate.following import Following
from mast_tui.ui.annotate.labelling import Labelling
from mast_tui.ui.annotate.my_labels import MyLabels
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.annotate.pictures import Pictures
from mast_tui.ui.annotate.search import Search
from mast_tui.ui.annotate.state import AnnotateState, Entry, Marking, NotedSpan
from mast_tui.ui.annotate.suggestions import Suggestions
from mast_tui.ui.base_screen import BaseScreen, MainScreen
from mast_tui.ui.context import (
    JudgeProgress,
    RunsToWrite,
    ShowGuidelines,
    ShowLibrary,
    ShowTrace,
    TraceLocation,
)
from mast_tui.ui.services.view_settings import (
    DEFAULT_SHARE,
    MAX_SHARE,
    MIN_SHARE,
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
from mast_tui.ui.trace_view.span_view import SpanText, SpanView, preview_start, text_format
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.bars import visibility_text
from mast_tui.ui.widgets.taxonomy_panel import ModeState, TaxonomyPanel, definition_of
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import origin_title, plain_title, span_title_parts, trace_title
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Change, Session
    from mast_tui.ui.annotate.text_screen import Subject


SPLIT_STEP: Final = 10
"""The percentage of the height by which a key moves the border above the text."""

SPLIT_SHARES: Final = (DEFAULT_SHARE, 60, MAX_SHARE, MIN_SHARE)
"""The percentages of the height for the text that a key goes through."""

REPORTS_BETWEEN_MARKS: Final = 4
"""The number of index reports between two attempts to place missing marks."""

SPAN_WAIT: Final = 0.05
"""Seconds without a move of the cursor after which the text is shown."""

SAVE_POSITION_EVERY: Final = 2.0
"""Seconds between two writes of the cursor position."""

READ_EVERY: Final = 0.4
"""Seconds between two writes of the read spans. One transaction covers many moves."""

ANSWER_ACTIONS: Final = frozenset({"accept", "reject"})
"""The actions without hints while no suggestion is under the cursor."""

MARK_CELLS: Final = 8
"""The cells for the text of a mark in the gutter."""


class Panes:
    """The division of the screen, remembered for the next start.

    In reading mode, the text of a span and its suggestion fill the window. Keys still act on the
    span under the cursor of the timeline.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._settings = ViewSettings()

    def restore(self) -> None:
        """Divide the screen as at the last start."""
        self._settings = remembered_settings()
        self.divide()
        self._screen.timeline.show_bar(self._settings.time_bar)

    @property
    def is_reading(self) -> bool:
        """True if the text of a span fills the window."""
        return self._screen.has_class("-reading")

    def fill_window(self) -> None:
        """Let the text of the span fill the window."""
        self._screen.add_class("-reading")
        self._screen.set_focus(self._screen.span_view)
        self._screen.show_span()

    def return_to_timeline(self) -> bool:
        """Return from the text to the timeline; return False if the timeline is visible."""
        if not self.is_reading:
            return False
        self._screen.remove_class("-reading")
        # The timeline takes the focus once it is drawn. A key before that must not go to the text.
        self._screen.set_focus(None)
        self._screen.call_after_refresh(self._focus_timeline, self._screen.timeline)
        return True

    def _focus_timeline(self, timeline: Timeline) -> None:
        """Show the cursor of the timeline, and focus it unless a key has moved the focus.

        Do nothing if the timeline was removed, or the text fills the window again.
        """
        if timeline.is_attached and not self.is_reading:
            if self._screen.focused is None:
                self._screen.set_focus(timeline)
            timeline.show_row(timeline.cursor, in_upper_third=True)
            self._screen.show_span()

    def move_split(self, step: int) -> None:
        """Make the text one step higher, or lower for a negative step.

        The new share is a multiple of the step.
        """
        share = self._text_share + step * SPLIT_STEP
        round_to_step = math.floor if step > 0 else math.ceil
        self._set_text_share(round_to_step(share / SPLIT_STEP) * SPLIT_STEP)

    def next_split(self) -> None:
        """Make the text higher. After the largest share choose the smallest one."""
        larger_shares = [share for share in SPLIT_SHARES if share > self._text_share]
        self._set_text_share(min(larger_shares, default=MIN_SHARE))

    def drag_split(self, y: int) -> None:
        """Move the border above the text to line ``y`` of the screen."""
        top = self._screen.timeline.region.y
        bottom = self._screen.span_view.region.bottom
        if bottom > top:
            self._set_text_share(round(100 * (bottom - y) / (bottom - top)))

    def _set_text_share(self, share: int) -> None:
        """Set the percentage of the height for the text, within its limits, and remember it.

        While the text fills the window, only show a hint.
        """
        if self.is_reading:
            key = self._screen.mast.key_of("annotate.read")
            self._screen.hints.say(f"The text fills the window; {key} goes back")
            return
        share = max(MIN_SHARE, min(share, MAX_SHARE))
        if share != self._settings.text_share:
            self._settings = self._settings._replace(text_share=share)
            self._settings.remember()
            self.divide()
        self._screen.hints.say(f"{share} % of the height for the text")

    @property
    def _text_share(self) -> int:
        return self._settings.share(self._screen.app.size.height)

    def divide(self) -> None:
        """Divide the height of the screen between the timeline and the text."""
        share = self._text_share
        self._screen.timeline.styles.height = f"{100 - share}fr"
        self._screen.span_view.styles.height = f"{share}fr"

    def toggle_bar(self) -> None:
        """Show or hide the time bar."""
        visible = not self._settings.time_bar
        self._settings = self._settings._replace(time_bar=visible)
        self._settings.remember()
        self._screen.timeline.show_bar(visible)
        state = "shown where the timeline is wide and the trace has times" if visible else "hidden"
        self._screen.hints.say(f"The time bar is {state}")


Result = TypeVar("Result")


class SessionCommands(ScreenPart):
    """The commands of the session, which run in order and show what is on disk.

    The ``queue_…`` methods add work to the queue of writes. The coroutines run within queued work.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        super().__init__(screen)
        self._waiting_work: list[Callable[[Session], object]] = []

    @property
    def has_waiting_work(self) -> bool:
        """True if a key waits for the workspace to open."""
        return bool(self._waiting_work)

    def when_session_opens(self, work: Callable[[Session], object]) -> None:
        """Queue a function that needs the session, now or once the workspace is open.

        Later input waits for the function. If no workspace will be open, show an error instead.

        Args:
            work: A function or coroutine function with the session as argument.
        """
        state = self._state
        if state.trace is None:
            return
        if state.session is None and self._screen.mast.workspace.no_workspace_reason is not None:
            self._hints.say("No workspace is open, so nothing can be labelled", error=True)
        elif state.session is None:
            if self._screen.mast.opened is not None and not self._waiting_work:
                # The session could not be opened before.
                self._screen.mast.attach_session(self._screen)
            self._waiting_work.append(work)
            self._hints.say("Opening the workspace; then your keys take effect")
        else:
            self.queue_work(work, state.session, HeldKeys.ALL)

    def queue_change(
        self,
        command: Callable[[Session], Change | None],
        blocks: HeldKeys = HeldKeys.ALL,
        refused: Callable[[], object] | None = None,
    ) -> None:
        """Queue one command of the session and show its result.

        Args:
            command: Calls one method of the session.
            blocks: The keys that wait for it.
            refused: Called after a refusal.
        """
        work = partial(self.run_command, command, refused=refused)
        self._screen.mast.writes.do(work, blocks)

    def queue_work(
        self,
        work: Callable[[Session], object],
        session: Session,
        blocks: HeldKeys = HeldKeys.NOTHING,
    ) -> None:
        """Queue a function that needs the session. If it is refused, show the reason.

        Args:
            work: A function or coroutine function with the session as argument.
            session: The session.
            blocks: The keys that wait for it.
        """

        async def run_work() -> None:
            try:
                outcome = work(session)
                if isawaitable(outcome):
                    await outcome
            except MastError as error:
                self.show_refusal(error, session)

        self._screen.mast.writes.do(run_work, blocks)

    async def run_command(
        self,
        command: Callable[[Session], Change | None],
        before_drawing: Callable[[], object] | None = None,
        refused: Callable[[], object] | None = None,
    ) -> Change | None:
        """Run one command of the open session, and show its result or the reason for a refusal.

        Args:
            command: Calls one method of the session.
            before_drawing: Called after the change is on disk, before it is shown.
            refused: Called after a refusal.

        Returns:
            The change, or None if the command was refused or changed nothing.
        """
        session = self._state.session
        assert session is not None
        finished_before = session.finished
        begins_pass = session.current is None
        try:
            change = await self._carry_out(command, session)
        except MastError as error:
            was_changed = isinstance(error, ChangedElsewhere)
            self.show_refusal(session.changed_meanwhile() if was_changed else error, session)
            if refused is not None:
                refused()
            return None
        if begins_pass and session.current is not None and not session.finished:
            # Not before the change: what another window has written meanwhile must refuse it.
            await self._screen.drawn_spans.write_now()
        if session.finished is not finished_before:
            await self._screen.finish_changed()
        if change is not None and session is self._state.session:
            if before_drawing is not None:
                before_drawing()
            self._screen.session_changed()
            # A dialog above the screen shows the change itself, and its keys are in the last line.
            if not self._screen.typing and self._screen.is_current:
                self._hints.say(one_line(change.message))
        return change

    async def write_record(self, command: Callable[[Session], object], session: Session) -> None:
        """Write a record that no key has requested.

        If another window has changed the trace, show its changes, and write the record again.

        Args:
            command: Calls one method of the session that writes a record.
            session: The session.

        Raises:
            MastError: The workspace cannot be written.
        """
        try:
            await self._carry_out(command, session)
        except ChangedElsewhere:
            if session is self._state.session:
                self._screen.show_news(session)
            await self._carry_out(command, session)

    async def _carry_out(self, command: Callable[[Session], Result], session: Session) -> Result:
        """Run a command, write its change to the workspace, and return the result."""
        run = self._screen.mast.writes.run
        outcome, write = session.plan(command)
        if write is None:
            return outcome
        try:
            recorded = await run(write.record)
        except ChangedElsewhere:
            session.show_state(await run(partial(session.read_state, with_own_work=True)))
            raise
        session.apply_write(write, recorded)
        if session.needs_others:  # the change has made others' labels visible
            session.show_state(await run(partial(session.read_state, with_own_work=False)))
        return outcome

    def show_refusal(self, error: MastError, session: Session) -> None:
        """Show why the session or the workspace has refused a command.

        If another window has changed the trace, draw its changes too.

        Args:
            error: The reason.
            session: The session of the command.
        """
        if isinstance(error, ChangedMeanwhile) and session is self._state.session:
            self._screen.session_changed()
        self._hints.say(one_line(str(error)), error=True)

    def queue_waiting_work(self, session: Session) -> bool:
        """Queue the work that waited for the session, and return if there was any."""
        waiting = self._waiting_work
        self._waiting_work = []
        for work in waiting:
            self.queue_work(work, session, HeldKeys.ALL)
        return bool(waiting)

    def discard_waiting_work(self) -> None:
        """Discard the waiting work, because no session could be opened."""
        self._waiting_work = []


class Arrival(ScreenPart):
    """The span at which a trace opens: a requested one, or the one saved in the workspace.

    The cursor goes there once the span is read, unless the user has moved it.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        """Begin without a location."""
        super().__init__(screen)
        self.begin_trace()

    def begin_trace(self) -> None:
        """Begin with another trace."""
        self._target: TraceLocation | None = None
        self.index = 0
        """The index of the span at which the trace opens."""
        self._saved_index = 0
        """The index of the span saved in the workspace; 0 if none is saved."""

    def go_to(self, target: TraceLocation) -> None:
        """Go to a location, and start its search if it has one."""
        self._target = target
        self.try_to_arrive()

    async def go_to_saved_position(self, session: Session) -> None:
        """Go to the last position in the workspace.

        Stay if another location was requested, or the cursor has left the first span.
        """
        if self._target is not None or self._state.index:
            return
        get_setting = partial(session.workspace.get_setting, _position_setting(session))
        span_key = await self._screen.mast.workspace.carry_out(get_setting)
        if span_key is not None and self._target is None and self._state.session is session:
            self.go_to(TraceLocation(session.trace_id, key=span_key))

    def try_to_arrive(self) -> None:
        """Go to the location if its span was read. Forget it if the user has moved."""
        target = self._target
        trace = self._state.trace
        if target is None or trace is None or not self._state.has_spans:
            return
        index = None if target.key is None else trace.index_of(target.key)
        # Locations of reports have a position, but no key.
        if index is None and target.position is not None and target.position < len(trace):
            index = target.position
        if self._has_user_moved:
            self._target = None
        elif index is not None:
            self._target = None
            self.index = index
            self._saved_index = index  # so ``save_position`` need not write it
            self._screen.go_to(index)
            if target.find is not None:
                self._screen.search.set_text(target.find)

    @property
    def _has_user_moved(self) -> bool:
        """True if the user has left the saved span, types a mode, or has opened the search.

        It is False for a location with a search text, because the user has asked for that.
        """
        if self._target is not None and self._target.find is not None:
            return False
        return (
            self._state.index != self._saved_index
            or self._screen.typing
            or self._screen.search.is_open
        )

    def save_position(self) -> None:
        """Queue a write of the cursor position to the workspace, if it has changed.

        Nothing is written while the cursor waits for its location, or the server is away.
        """
        session = self._state.session
        if session is None or not self._state.has_spans or self._target:
            return
        index = self._state.index
        if index == self._saved_index:
            return
        self._saved_index = index
        if session.workspace.away:
            return  # the position is not worth waiting for a server
        span_key = session.trace.span(index).key
        set_setting = partial(session.workspace.set_setting, _position_setting(session), span_key)
        self._screen.mast.writes.do(
            partial(self._screen.mast.workspace.carry_out, set_setting), HeldKeys.NOTHING
        )


def _position_setting(session: Session) -> str:
    # A retest must not open where the first labels are.
    name = f"place of {session.annotator} in {session.trace_id}"
    return f"{name}, retest" if session.in_retest else name


class PaneRow(Horizontal, RenderCache):
    """Panes side by side."""


class PaneColumn(Vertical, RenderCache):
    """Panes below each other."""


class AnnotateScreen(MainScreen, RenderCache):
    """The screen of one trace for one annotator."""

    CSS_PATH = ANNOTATE
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide"), (WIDEST, "-widest")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (HIGH, "-high")]
    AUTO_FOCUS = "#timeline"
    where = Where.ANNOTATE
    keys_left_out = ANSWER_ACTIONS | {"next_suggestion", "edit", "back"}

    def __init__(self, taxonomy: Taxonomy) -> None:
        """Create the panes and parts of the screen, without a trace."""
        super().__init__()
        self.timeline = Timeline(id="timeline")
        """The spans."""
        self.span_view = SpanView(id="span", shows_visible_rows=True)
        """The text of the span under the cursor."""
        self.overview = Overview(id="overview")
        """The whole run in a column, without filters and folds."""
        self.modes = TaxonomyPanel(id="modes")
        """The taxonomy."""
        self.definition = SpanView(id="definition")
        """The definition of the mode under the cursor."""
        self.my_labels: MyLabels | None = None
        """The list of the annotator's labels; None until it is opened."""
        self.state = AnnotateState(taxonomy, self.timeline, SpanText(self))
        """The state that the parts share."""
        self.panes = Panes(self)
        self.commands = SessionCommands(self)
        self.drawn_spans = DrawnSpans(self)
        self.marking = Marking(self)
        self.suggestions = Suggestions(self, self.marking)
        self.labelling = Labelling(self, self.marking, self.suggestions)
        self.search = Search(self)
        self.arrival = Arrival(self)
        self.filter = Filter(self)
        self.copying = Copying(self)
        self.pictures = Pictures(self)
        self.finish = Finish(self, self.drawn_spans)
        self.following = Following(self)
        self._panes_mounted = False
        self._other_screen_open = False
        self._index_reports = 0
        """The number of reports of the background index so far."""
        self._text_index = -1
        """The index of the span in the span view."""
        self._drawn_position = (-1, -1)
        """The row of the timeline and the span that the other panes show."""
        self._move_timer: Timer | None = None
        """A timer that runs while the cursor moves, and for a moment after."""
        self._mark_keeper: MarkKeeper | None = None
        """The marks of the trace's labels; None until labels are read."""
        self._marked_session: Session | None = None
        """The session with these labels."""
        self._cached_name = lru_cache(maxsize=1)(self._name_in_catalog)
        self._offers_next = False
        """True if this trace is finished and the queue has another."""

    def on_resize(self) -> None:
        """Divide the new height."""
        self.panes.divide()

    def compose(self) -> ComposeResult:
        """Place the panes."""
        # The classes are set before the panes exist, so that styles are computed only once.
        width = self.app.size.width
        self.set_class(WIDE <= width < WIDEST, "-wide")
        self.set_class(width >= WIDEST, "-widest")
        self.set_class(width < WIDE, "-narrow")
        self.set_class(self.app.size.height < HIGH, "-short")
        below, side = self.suggestions.panels
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
                yield side
        yield self.search.line
        yield self.hints

    def on_unmount(self) -> None:
        """Remove the files of pictures that were opened."""
        self.pictures.remove_files()

    def on_mount(self) -> None:
        """Fill the panes, and start the timers."""
        self.filter.show_titles()
        self._show_taxonomy()
        self.search.line.display = False
        self.panes.restore()
        self.watch(self.timeline, "scroll_y", self.show_position, init=False)
        self.set_interval(READ_EVERY, self.drawn_spans.write_between_keys)
        self.set_interval(SAVE_POSITION_EVERY, self.arrival.save_position)
        self.set_interval(LOOK_EVERY, self.following.check)
        self._panes_mounted = True
        if self.trace is not None:
            self._fill_panes(self.trace)
            if self.session is not None:
                self.attach(self.session)
        else:
            self.title_bar.show(("Reading …",), ())

    def _show_taxonomy(self) -> None:
        self.modes.border_title = plain_title(self.state.taxonomy.name)
        self.modes.show_taxonomy(self.state.taxonomy)
        self.call_after_refresh(self.show_definition)

    @property
    def trace(self) -> Trace | None:
        """The open trace, or None."""
        return self.state.trace

    @property
    def session(self) -> Session | None:
        """The annotator's session on the trace; None until the workspace is open."""
        return self.state.session

    def report_to_write(self) -> RunsToWrite | None:
        """Return the run on screen, or None."""
        return None if self.trace is None else RunsToWrite(self.trace)

    @property
    def has_all_content(self) -> bool:
        """True if no key has to wait."""
        return self.trace is not None and not self.commands.has_waiting_work

    def awaits_content(self, action: str | None) -> bool:
        """Check if a key must wait.

        A key of this screen waits until there is a trace. All keys wait for work that an earlier
        key has requested, because the work may open a dialog or move the cursor.

        Args:
            action: The id of the key's action, or None.
        """
        if self.commands.has_waiting_work:
            return True
        is_for_this_screen = action is not None and action.startswith(f"{self.where}.")
        return is_for_this_screen and self.trace is None

    def show_trace(self, trace: Trace) -> None:
        """Show another trace. ``attach`` adds its session later."""
        self.drawn_spans.write()
        self.arrival.save_position()
        self.state.show(trace)
        for part in (self.drawn_spans, self.suggestions, self.labelling, self.arrival):
            part.begin_trace()
        self.search.clear()
        self.filter.reset()
        self._text_index = -1
        self._drawn_position = (-1, -1)
        if self._panes_mounted:
            self.hints.clear()
            self._fill_panes(trace)

    def _fill_panes(self, trace: Trace) -> None:
        self.timeline.show_trace(trace, reads_to_end=True)
        self.filter.show_titles()
        self.overview.show_trace(trace, self.timeline.background_index)
        self.modes.show_states({})
        if self.my_labels is not None:
            self.my_labels.show(None)
        self.show_title()
        self.show_span()

    def on_timeline_index_grown(self, event: Timeline.IndexGrown) -> None:
        """Update the panes that use the background index, and go to an awaited span."""
        if event.trace is self.trace and self.timeline.trace is self.trace:
            self.overview.update_cells()
            self.filter.check_new_spans()
            self.show_title()
            self._index_reports += 1
            self.following.note_progress(done=event.done)
            if event.done or self._index_reports % REPORTS_BETWEEN_MARKS == 0:
                self._place_missing_marks(event.trace)
            if self._text_index < 0:  # no text is on screen yet
                self.show_span()
            self.arrival.try_to_arrive()

    def spans_added(self) -> None:
        """Apply the search and the filter to the spans that the file has gained."""
        self.search.search_new_spans()
        self.filter.check_new_spans()

    def show_reread_trace(self, trace: Trace) -> None:
        """Show the trace as read again, with the same cursor, search and filter."""
        previous_trace = self.trace
        assert previous_trace is not None
        cursor_key = previous_trace.span(self.index).key if self.state.has_spans else ""
        chosen_filter = self.filter.present_filter
        needle = self.state.needle
        self.mast.catalog.renew(previous_trace, trace)
        self.mast.go(ShowTrace(trace))
        index = trace.index_of(cursor_key)
        if index is not None:
            self.timeline.go_to(index)
        if needle:
            self.search.repeat(needle)
        self.filter.apply(chosen_filter)
        self.show_span()

    def attach(self, session: Session) -> None:
        """Show the labels of the trace, and run the work that waited for the session.

        If there was none, go to the saved position. Also repeat answers that the user gave for
        later traces. If the trace is no longer on this screen, do nothing.
        """
        if session.trace is not self.trace or self not in self.app.screen_stack:
            return
        self.state.session = session
        if not self._panes_mounted:
            return
        if session.taxonomy != self.state.taxonomy:
            self.state.taxonomy = session.taxonomy  # the workspace may have another wording
            self._show_taxonomy()
        self.session_changed()
        self.show_span()
        if self.commands.has_waiting_work:
            self.hints.clear()
        self.timeline.look_for_repeats()
        self.suggestions.repeat_answers()
        if not self.commands.queue_waiting_work(session):
            self.mast.writes.do(partial(self.arrival.go_to_saved_position, session))

    def workspace_failed(self) -> None:
        """Discard the waiting work, because no session could be opened."""
        self.commands.discard_waiting_work()
        self.hints.clear()
        # This was delayed until the session opened.
        self.timeline.look_for_repeats()
        self.show_title()
        self._show_suggestion_and_hints()

    def leave_for_a_while(self) -> None:
        """Write pending changes before another screen opens."""
        self.drawn_spans.write()
        self.arrival.save_position()
        self._other_screen_open = True

    def on_screen_resume(self) -> None:
        """Show changes made on another screen."""
        if self._other_screen_open and self.session is not None:
            self.commands.queue_work(partial(self._read_changes, by_user=True), self.session)
        self._other_screen_open = False

    async def _read_changes(self, session: Session, *, by_user: bool = False) -> None:
        """Read labels that were changed elsewhere, and show them.

        ``by_user`` says that the user has changed them, so they are no news.
        """
        # With None, own work is read only if another window has changed it.
        read_state = partial(session.read_state, with_own_work=by_user or None)
        session.show_state(await self.mast.writes.run(read_state))
        if by_user:
            session.pop_news()
        if session is self.session:
            self.show_news(session)

    def show_changes_of_others(self) -> None:
        """Show changes that another window or program has made in the workspace."""
        if self.session is not None and self.timeline.is_attached:
            self.commands.queue_work(self._read_changes, self.session)

    def show_news(self, session: Session) -> None:
        """Show changes from other windows, and report changes of the annotator's own labels."""
        news = session.pop_news()
        self.session_changed()
        self.show_span()
        # Hints for typing or for a marked target stay.
        if news and not self.typing and self.state.selection.is_plain:
            self.hints.say(f"In another window: {news}")

    def show_judge_progress(self, message: JudgeProgress) -> None:
        """Show the suggestions of a judge on this trace, and report its end."""
        session = self.session
        is_for_this_trace = session is not None and message.trace_id in (None, session.trace_id)
        if session is not None and is_for_this_trace and session.suggestions_visible:
            session.refresh_suggestions()
            self.session_changed()
            self.show_span()
        message.show_in(self.hints)

    def look_at(self, location: TraceLocation) -> None:
        """Go to a location.

        A location with a search is shown at once, any other once the workspace is open.
        """
        if location.find is not None:
            self.arrival.go_to(location)
        else:
            self.commands.when_session_opens(
                lambda session: self.suggestions.go_to_location(session, location)
            )

    def go_to_place(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; return False if there is none."""
        span_exists = self.timeline.go_to_named(text)
        if span_exists:
            self.show_span()
        return span_exists

    @property
    def typing(self) -> bool:
        """True if a mode is being typed."""
        return self.labelling.entry.has_begun

    @on(Input.Changed, "#search")
    def _search_typed(self, event: Input.Changed) -> None:
        self.search.search_for(event.value)

    @on(Input.Submitted, "#search")
    def _search_submitted(self) -> None:
        self.search.submit()

    # Drawing: the title

    def show_title(self) -> None:
        """Show the trace, its state and the annotator in the first line."""
        trace = self.trace
        if trace is None:
            return
        visible = self.session is not None and self.session.outcome_visible
        outcome = trace.meta.outcome if visible else Outcome.UNKNOWN
        name = self._cached_name(trace, len(self.mast.catalog.changes))
        if self.session is not None and self.session.in_retest:
            name = f"retest: {name}"
        if self.session is not None and self.session.finished:
            name = f"✓ {name}"
        title_parts = trace_title(trace, outcome, trace.spans.waiting, name)
        total_time = self.timeline.facts.total
        if total_time:
            title_parts.append(duration(total_time))
        problem_count = len(trace.problems)
        if problem_count:
            title_parts.append(f"{counted(problem_count, 'problem')} in the file")
        self.title_bar.show(tuple(title_parts), self._status_parts())

    def _name_in_catalog(self, trace: Trace, _change_count: int) -> str:
        """Return a name that distinguishes the trace from others in the catalog.

        The number of changes is part of the cache's key, so a change of the catalog renews the
        name.
        """
        return distinct_name(trace, self.mast.catalog.traces.values())

    def _status_parts(self) -> tuple[str, ...]:
        """Return the parts at the right of the first line.

        These are unsent changes, the annotator, the visibility, and the progress in a queue of
        several traces. Until the workspace is open, a single part says what the app waits for.
        """
        session = self.session
        if session is None or self.mast.opened is None:
            return (self.mast.workspace.waiting_text(),)
        parts = [
            *self.mast.workspace.unsent_text(),
            one_line(session.annotator),
            visibility_text(blind=session.blind),
        ]
        if len(self.mast.catalog.traces) > 1:
            parts += self.mast.trace_queue.finished_parts()
        return tuple(parts)

    def still_reading(self, progress: str) -> None:
        """Show the progress of reading, while no trace is open."""
        if self.trace is None:
            self.title_bar.show((progress,), ())

    # Drawing: parts that depend on labels

    async def finish_changed(self) -> None:
        """Count the finished traces again, and show the title."""
        await self.mast.trace_queue.count_finished()
        self.mast.queue_changed()
        self.show_title()

    def session_changed(self) -> None:
        """Show the marks, modes and suggestions of the session."""
        session = self.session
        trace = self.trace
        if session is None or trace is None:
            return
        next_trace = self.mast.trace_queue.neighbour(trace, 1) if session.finished else None
        self._offers_next = next_trace is not None
        self.set_class(session.blind, "-blind")
        if session.suggestions:
            self._record_suggestions_seen(session)
        marks = self._current_marks(session, trace)
        self.timeline.show_marks(marks)
        self.modes.show_states(self._states_by_mode(session))
        self.timeline.show_read(session.read)
        if self.my_labels is not None:
            self.my_labels.show(session)
        self.show_title()
        self.filter.show_titles()
        self._show_suggestion_and_hints()
        self.show_highlights()
        self.overview.show_marks(marks)
        self._show_look_here(session, trace)
        # The title includes marks, which may have changed. A new text shows its own title later.
        if self.panes.is_reading and self._text_index == self.index:
            self._name_span(trace, trace.span(self.index))

    def _record_suggestions_seen(self, session: Session) -> None:
        """Queue a record that the annotator has seen suggestions."""
        write_record = partial(self.commands.write_record, lambda s: s.note_suggestions_on_screen())
        self.commands.queue_work(write_record, session)

    def _states_by_mode(self, session: Session) -> dict[str, ModeState]:
        """Return the labels, the verdict and the pending suggestions of each mode, by slug."""
        label_counts = session.labels_of_modes
        pending_counts = Counter(s.mode for s in self.suggestions.pending)
        return {
            mode.slug: ModeState(
                label_counts.get(mode.slug, 0),
                session.verdict(mode.slug),
                pending_counts[mode.slug],
            )
            for mode in self.state.taxonomy.all_modes
        }

    def _show_look_here(self, session: Session, trace: Trace) -> None:
        """Mark the read spans that probably contain the decisive step.

        If there are any, record that the annotator has seen suggestions.
        """
        found_indices = [trace.index_of(key) for key in session.look_here]
        indices = sorted(index for index in found_indices if index is not None)
        self.timeline.show_look_here(indices)
        self.overview.show_look_here(indices)
        if indices:
            self._record_suggestions_seen(session)

    def _current_marks(self, session: Session, trace: Trace) -> GutterMarks:
        """Return the marks of own labels, suggestions, labels of others, and notes."""
        if self._mark_keeper is None or self._marked_session is not session:
            self._mark_keeper = MarkKeeper(self._gutter_mark, trace.index_of)
            self._marked_session = session
        label_spans = (label.target.first for label in session.labels if label.note)
        noted_spans = {*session.span_notes, *filter(None, label_spans)}
        items: dict[MarkKind, Mapping[str, Pointing]] = {
            MarkKind.OWN: session.labels_by_id,
            MarkKind.SUGGESTION: self.suggestions.pending_by_id,
            MarkKind.OTHER: {label.id: label for label in session.others},
            MarkKind.NOTE: {key: Noted(Target(key, key)) for key in noted_spans},
        }
        return self._mark_keeper.update(items, len(trace))

    def _gutter_mark(self, slug: str, kind: MarkKind) -> GutterMark:
        if kind is MarkKind.NOTE:
            return GutterMark("", kind)
        return GutterMark(self._mark_text(slug), kind, self.state.rank_of_mode(slug))

    def _mark_text(self, slug: str) -> str:
        """Return the code of a mode, cut to ``MARK_CELLS``; else its slug."""
        codes = (mode.code for mode in self.state.taxonomy.all_modes if mode.slug == slug)
        return one_line(next(codes, slug), MARK_CELLS)

    def _place_missing_marks(self, trace: Trace) -> None:
        """Place marks and "look here" hints on spans that were read meanwhile."""
        session = self.session
        if session is not None and len(self.timeline.look_here) < len(session.look_here):
            self._show_look_here(session, trace)
        if session is None or self._mark_keeper is None or not self._mark_keeper.incomplete:
            return
        marks = self._current_marks(session, trace)
        if marks is not self.timeline.marks:
            self.timeline.show_marks(marks)
            self.overview.show_marks(marks)

    # Drawing: parts that depend on the cursor

    @property
    def index(self) -> int:
        """The span under the cursor."""
        return self.timeline.index

    @on(VirtualLines.Moved, "#timeline")
    def lines_moved(self) -> None:
        """Update the screen if the cursor of the timeline has moved.

        Each key that moves the cursor calls this, because the message ``Moved`` comes too late to
        draw everything at once.
        """
        position = (self.timeline.cursor, self.index)
        if position == self._drawn_position:
            return
        self._drawn_position = position
        self.labelling.drop_choice()
        self.marking.follow_cursor()
        self.show_position()
        self._show_span_soon()

    def _show_span_soon(self) -> None:
        """Show the span under the cursor, with a delay during many moves.

        The suggestion at the cursor is selected at once, because a key can answer it.
        """
        trace = self.trace
        if trace is not None and self.text_waits:
            self.suggestions.select_at(trace.span(self.index))
            self._show_suggestion_and_hints()
        else:
            self.show_span()
        if self._move_timer is not None:
            self._move_timer.stop()
        self._move_timer = self.set_timer(SPAN_WAIT, self._moves_over)

    def _show_suggestion_and_hints(self) -> None:
        """Show the suggestion under the cursor, and the keys that can act."""
        self.suggestions.show_panel()
        self._show_hints()

    @on(VirtualLines.Moved, "#mine")
    def _show_hints(self) -> None:
        """Show the hints of the keys that can act."""
        left_out = {"back"}
        if not self.suggestions.pending:
            left_out.add("next_suggestion")
        if self.suggestions.current() is None:
            left_out |= ANSWER_ACTIONS
        if not self._can_edit:
            left_out.add("edit")
        if self.session is not None and self.session.finished:
            left_out.add("finish")
        first_hints: dict[str, str] = {}
        if self.panes.is_reading:
            first_hints = {"fold": "page down", "next_span": "next span", "read": "back"}
            if self.trace is not None and self.pictures.of_span(self.trace, self.index):
                first_hints["read"] = "pictures"
        elif self._offers_next:
            left_out.add("digit_1")  # a finished trace needs no hint how to label
            first_hints = {"next_trace": "next trace"}
        elif self.session is not None and self.session.can_undo:
            first_hints = {"digit_1": "label", "undo": "undo"}
        self.hints.leave_out(left_out, first=first_hints)

    def on_descendant_focus(self) -> None:
        """Show the keys for the pane with the focus."""
        fold_key = self.mast.key_of("annotate.fold")
        mode_keys = f"Enter labels  {fold_key} folds" if self.modes.has_focus else ""
        self.modes.border_subtitle = plain_title(mode_keys)
        self._show_hints()

    @property
    def text_waits(self) -> bool:
        """True if the span view does not show the span under the cursor yet."""
        return (
            self._move_timer is not None and self.state.has_spans and self._text_index != self.index
        )

    def _moves_over(self) -> None:
        self._move_timer = None
        self.catch_up()

    def catch_up(self) -> None:
        """Show the span under the cursor in the span view now."""
        if self.state.has_spans and self._text_index != self.index:
            self.show_span()

    def show_span(self) -> None:
        """Show the text of the span under the cursor. Once it is drawn, the span counts as read."""
        trace = self.trace
        if trace is not None and len(trace):
            self._show_text(trace, trace.span(self.index))
            self._show_suggestion_and_hints()
            self.call_after_refresh(self._span_drawn, trace, self._text_index)
        elif trace is not None:
            self.span_view.show_titles(None)
            self.span_view.show_text("", empty="This trace has no spans.")
        self.filter.remove_if_cursor_excluded()

    def _show_text(self, trace: Trace, span: Span) -> None:
        """Show the text of a span, or only its highlights if it is shown already."""
        self._name_span(trace, span)
        self.suggestions.select_at(span)
        if self._text_index == span.index:
            # An unchanged text keeps its scroll position.
            self.span_view.show_highlights(self._highlight_parts(span))
        else:
            self._text_index = span.index
            text = self.state.text_at_cursor()
            self.pictures.find(trace, span.index, text)
            self.span_view.show_text(
                text,
                self._highlight_parts(span),
                empty=self.state.texts.empty_text,
                text_format=text_format(span),
                opens_at=preview_start(span, text),
            )

    def _name_span(self, trace: Trace, span: Span) -> None:
        """Show the title of a span above its text; in reading mode with its marks."""
        title = _span_title(trace, span)
        if self.panes.is_reading:
            marks = self.timeline.marks.marks_on(span.index)
            title = " · ".join([title, *(mark.text for mark in marks)])
        pictures = self.pictures.summary(trace, span.index)
        self.span_view.show_titles(plain_title(title), origin_title(span, pictures))

    def name_span(self) -> None:
        """Show the titles of the span under the cursor again, with the keys for its pictures."""
        trace = self.trace
        if trace is not None and len(trace):
            self._name_span(trace, trace.span(self.index))
            self._show_hints()

    def _span_drawn(self, trace: Trace, index: int) -> None:
        # A closed screen loses its panes before its last callbacks.
        if trace is self.trace and index == self._text_index and self.timeline.is_attached:
            self.drawn_spans.record(index)

    def show_highlights(self) -> None:
        """Highlight evidence, labels, matches and the marked quote in the text of the span.

        While the text is delayed, only a marked quote is highlighted.
        """
        trace = self.trace
        quote = self.state.selection.quote
        if trace is None or not len(trace) or (self.text_waits and quote is None):
            return
        self.catch_up()
        self.span_view.show_highlights(self._highlight_parts(trace.span(self.index)))
        if quote is not None:
            head_start, head_end = quote.head
            self.span_view.reveal(head_start, head_end)

    def _highlight_parts(self, span: Span) -> list[TextPart]:
        """Return the parts of a text to highlight. Later parts are drawn over earlier parts."""
        highlights: list[TextPart] = []
        suggestion = self.suggestions.current()
        if (
            suggestion is not None
            and suggestion.evidence_key == span.key
            and suggestion.quote_offsets
        ):
            start, end = suggestion.quote_offsets
            highlights.append(TextPart(start, end, "evidence"))
        for label in self.state.labels_at_cursor():
            target = label.target
            if target.first == span.key and target.char_start is not None:
                highlights.append(TextPart(target.char_start, target.char_end or 0, "own"))
        highlights += [
            TextPart(start, end, "match") for start, end in self.search.highlighted_ranges()
        ]
        quote = self.state.selection.quote
        if quote is not None:
            highlights.append(TextPart(quote.start, quote.end, "selection"))
        return highlights

    @on(VirtualLines.Resized)
    def show_position(self) -> None:
        """Show the cursor and the visible part of the timeline in the overview."""
        # A closed screen loses its panes before its last callbacks.
        if not self.state.has_spans or not self.timeline.is_attached:
            return
        timeline = self.timeline
        rows = timeline.rows_on_screen()
        first_index = timeline.rows.index_at(rows[0]) if rows else self.index
        last_index = timeline.rows.index_at(rows[-1]) if rows else self.index
        self.overview.show_position(self.index, first_index, last_index)

    @on(VirtualLines.Moved, "#modes")
    def show_definition(self) -> None:
        """Show the definition of the mode under the cursor of the taxonomy."""
        mode = self.modes.mode
        if mode is not None:
            self.definition.border_title = plain_title(f"{mode.code} {mode.name}")
            self.definition.show_text(definition_of(mode, self.state.taxonomy))

    # Keys while the last line asks for something

    @property
    def asks(self) -> bool:
        """True if the last line asks for something."""
        return self.labelling.is_asking

    def take_key(self, key: str, action: str | None) -> bool:
        """Handle a key while the last line asks for something.

        Args:
            key: The name of the key.
            action: The id of the key's action, or None.

        Returns:
            False if the key's own action must run.
        """
        return self.labelling.take_key(key, action)

    # Keys: moving

    @property
    def pane(self) -> VirtualLines:
        """The pane with the focus, or else the timeline."""
        focused = self.focused
        return focused if isinstance(focused, VirtualLines) else self.timeline

    def action_move(self, delta: int) -> None:
        """Move the cursor of the pane by rows, or the marked quote by lines."""
        quote = self.state.selection.quote
        if quote is not None:
            self.marking.move_line(quote, delta)
            return
        self._move_in(self.pane, self.pane.move_by, delta)

    def action_move_page(self, delta: int) -> None:
        """Move the cursor of the pane by screens."""
        self._move_in(self.pane, self.pane.move_page, delta)

    def action_move_half(self, delta: int) -> None:
        """Move the cursor of the pane by half screens."""
        self._move_in(self.pane, self.pane.move_half, delta)

    def _move_in(self, pane: VirtualLines, move: Callable[[int], None], delta: int) -> None:
        """Move in a pane. At an end of the text, show the key that continues."""
        offset_before = self.span_view.first_offset_on_screen
        move(delta)
        self.lines_moved()
        if pane is self.span_view and self.span_view.first_offset_on_screen == offset_before:
            key_of = self.mast.key_of
            self.hints.say(
                f"The text ends here · {key_of('annotate.next_span')} next span"
                if delta > 0
                else f"The text begins here · {key_of('annotate.previous_span')} previous span"
            )

    def action_move_to_start(self) -> None:
        """Go to the first row."""
        if self.pane is self.timeline:
            self.timeline.trail.record_jump(self.index, 0)
        super().action_move_to_start()

    def action_move_to_end(self) -> None:
        """Go to the last row. While a trace is read, follow its new spans."""
        if self.pane is self.timeline and self.trace is not None:
            self.timeline.trail.record_jump(self.index, len(self.trace) - 1)
        super().action_move_to_end()

    def action_trail(self, step: int) -> None:
        """Go back to the position before a jump, or forward again."""
        if not self.state.has_spans:
            return
        trail = self.timeline.trail
        index = trail.back(self.index) if step < 0 else trail.forward(self.index)
        if index is None:
            self.hints.say("No earlier position" if step < 0 else "No later position")
            return
        self.timeline.move_to_span(index)
        self.lines_moved()

    def action_error(self, step: int) -> None:
        """Go to the next or previous error."""
        if not self.state.has_spans:
            return
        overview = self.overview
        error_index = overview.totals.error_from(self.index, step)
        if error_index is not None:
            self.go_to(error_index)
            return
        so_far = "" if overview.complete else " so far"
        if not overview.totals.errors:
            self.hints.say(f"No step of this trace is known to have failed{so_far}")
        else:
            direction = f"after this step{so_far}" if step > 0 else "before this step"
            self.hints.say(f"No error {direction}")

    def action_look_here(self) -> None:
        """Go to the next place that probably contains the decisive step.

        A place is a run of neighbouring spans. The first place follows the last one.
        """
        indices = self.timeline.look_here
        trace = self.trace
        if trace is None or not indices:
            are_hidden = self.session is not None and not self.session.suggestions_visible
            self.hints.say(
                "Places to look at are hidden, as suggestions are"
                if are_hidden
                else "No places to look at are known: mast-tui exam --coverage --keep finds them"
            )
            return
        marked_indices = set(indices)
        place_starts = [index for index in indices if index - 1 not in marked_indices]
        next_start = next((start for start in place_starts if start > self.index), place_starts[0])
        self.go_to(next_start)
        self.hints.say(
            f"Place {place_starts.index(next_start) + 1} of {len(place_starts)} · with 90 % "
            f"probability, the decisive step is in {counted(len(indices), 'marked span')} "
            f"of {len(trace):,}"
        )

    @on(Overview.CellChosen)
    def _place_chosen(self, event: Overview.CellChosen) -> None:
        self.go_to(event.index)

    def go_to(self, index: int) -> None:
        """Move the cursor to a span, and show its text."""
        self.timeline.go_to(index)
        self.show_span()

    def action_fold(self) -> None:
        """Fold or unfold the steps or the category under the cursor.

        While a text fills the window, scroll it down a page, as pagers do.
        """
        if self.panes.is_reading:
            self.action_move_page(1)
            return
        if self.pane is self.modes:
            self.modes.toggle_fold()
            return
        if not self.state.has_spans:
            return
        if self.timeline.is_filtered:
            self.hints.say("Steps cannot be folded while only some spans are shown")
            return
        index = self.index
        fold = self.timeline.toggle_fold()
        if fold is None:
            self.hints.say(f"Nothing to fold at #{index + 1}: no repeated steps, no sub-steps")
        elif self.timeline.rows.folded_at(fold.first) is not None:
            self.hints.say(_fold_message(fold))
        self.show_span()

    def action_pane(self) -> None:
        """Go to the next pane, or to the next label during a question."""
        if self.labelling.next_choice():
            return
        all_panes: list[VirtualLines] = [self.timeline, self.span_view, self.modes]
        if self.my_labels is not None:
            all_panes.append(self.my_labels)
        all_panes += [panel for panel in self.suggestions.panels if panel.overflows]
        self.set_focus(self.pane_after_current(all_panes))

    async def action_my_labels(self) -> None:
        """Show and focus the list of the annotator's labels, or hide it if it has the focus."""
        list_pane = self.my_labels
        if list_pane is not None and self.has_class("-mine") and self.focused is list_pane:
            self._hide_my_labels()
            return
        self.panes.return_to_timeline()  # a text that fills the window would cover the list
        self.set_class(True, "-mine")
        self.set_class(False, "-drawer")
        if list_pane is None:
            list_pane = self.my_labels = MyLabels(self.state.taxonomy, id="mine")
            await self.query_one("#side").mount(list_pane, after=self.definition)
        list_pane.show(self.session)
        newest_label = self.labelling.newest_label
        if newest_label is not None:
            list_pane.go_to_label(newest_label.id)
        self.set_focus(list_pane)

    def _hide_my_labels(self) -> None:
        self.set_class(False, "-mine")
        self.set_focus(self.timeline)

    @property
    def picked_entry(self) -> Entry | None:
        """The entry under the cursor of the list of labels, if the list has the focus."""
        list_pane = self.my_labels
        return None if list_pane is None or self.focused is not list_pane else list_pane.item

    @property
    def _can_edit(self) -> bool:
        """True if keys can edit a suggestion or a label now."""
        if self.picked_entry is not None:
            return isinstance(self.picked_entry, Label)
        return self.suggestions.current() is not None or bool(self.state.labels_at_cursor())

    @on(VirtualLines.Chosen, "#mine")
    def _entry_chosen(self) -> None:
        """Go to the span, the mode and the quote of the chosen entry."""
        entry = self.picked_entry
        trace = self.trace
        if entry is None or trace is None:
            return
        if isinstance(entry, NotedSpan):
            span_key: str | None = entry.key
        else:
            self.modes.go_to(entry.mode)
            span_key = entry.target.first if isinstance(entry, Label) else None
        if self.has_class("-narrow"):
            self._hide_my_labels()
        self.set_focus(self.timeline)
        index = None if span_key is None else trace.index_of(span_key)
        if index is not None:
            self.go_to(index)
        if isinstance(entry, Label) and entry.target.char_start is not None:
            self.span_view.reveal(entry.target.char_start, entry.target.char_end or 0)

    def action_drawer(self) -> None:
        """Show or hide the drawer of the taxonomy."""
        self.set_class(False, "-mine")  # the drawer replaces the list of the annotator's labels
        self.toggle_class("-drawer")
        main_pane = self.span_view if self.panes.is_reading else self.timeline
        self.set_focus(self.modes if self.has_class("-drawer") else main_pane)

    def action_trace(self, step: int) -> None:
        """Open the next or previous trace of the queue."""
        trace = self.mast.trace_queue.neighbour(self.trace, step)
        if trace is None:
            self.hints.say(self.mast.trace_queue.end_text())
        else:
            self.mast.go(ShowTrace(trace))

    def action_back(self) -> None:
        """Close the first open one of these.

        - the search line, if it has the focus
        - a key sequence, the full-window text, the search or the filter (the newer one first)
        - the drawer of the taxonomy
        - the list of labels
        - any other pane than the timeline
        - the trace
        """
        focused = self.focused
        if focused is self.search.line:
            self.search.end()
            return
        closers = [self.search.end, self.filter.remove]
        if self.state.newest_filter == "filter":
            closers.reverse()
        closers = [self.labelling.cancel, self.panes.return_to_timeline, *closers]
        if any(close() for close in closers):
            self.hints.clear()
        elif self.has_class("-drawer"):
            self.action_drawer()
        elif self.has_class("-mine"):
            self._hide_my_labels()
        elif focused is None or focused is self.timeline:
            self._leave_trace()
        else:
            self.set_focus(self.timeline)

    def _leave_trace(self) -> None:
        """Return to the screen that opened the trace, or to the library."""
        stack = self.app.screen_stack
        opener = stack[stack.index(self) - 1]
        if self.app.screen is self and isinstance(opener, BaseScreen):
            # In the other case, ``go`` writes them.
            self.drawn_spans.write()
            self.arrival.save_position()
            self.app.pop_screen()
            return
        if self.trace is None:  # the only file is still being read, and no longer needed
            self.mast.traces.prefetch.stop()
        self.mast.go(ShowLibrary())

    # Keys: the division of the window

    def action_part(self, method: str, *arguments: object) -> None:
        """Call a method of a part of the screen.

        Args:
            method: The part and the method, such as ``search.open``.
            arguments: The arguments of the method.
        """
        attrgetter(method)(self)(*arguments)

    def action_read(self) -> None:
        """Let the text fill the window. The second time, return and show its pictures.

        If the text only notes a picture, show the picture at once.
        """
        if self.panes.is_reading:
            self.panes.return_to_timeline()
            self.pictures.show(lambda: None)
        elif self.state.has_spans:
            self.catch_up()
            if is_picture_note(self.state.text_at_cursor()):
                self.pictures.show(self.panes.fill_window)
            else:
                self.panes.fill_window()

    def action_span(self, step: int) -> None:
        """Go to the next or previous row of the timeline, regardless of the focus."""
        if self.state.has_spans:
            self.timeline.move_by(step)
            self.lines_moved()

    @on(SpanView.EdgeDragged, "#span")
    def _edge_dragged(self, event: SpanView.EdgeDragged) -> None:
        self.panes.drag_split(event.y)

    # Keys: the text of a span

    def action_text(self, delta: int) -> None:
        """Scroll the text by screens, or move the marked quote by words."""
        if self.state.selection.quote is not None:
            self.action_word(delta)
        else:
            self.catch_up()
            self._move_in(self.span_view, self.span_view.move_page, delta)

    def action_word(self, step: int) -> None:
        """Move the marked quote by words, or scroll the text sideways."""
        quote = self.state.selection.quote
        if quote is not None:
            self.marking.move_word(quote, step)
        elif self.pane is self.span_view and not self.span_view.move_sideways(step):
            key = self.mast.key_of("annotate.wrap")
            self.hints.say(f"Long lines are wrapped; {key} unwraps them")

    def action_raw(self) -> None:
        """Switch between formatted and unchanged text."""
        self.catch_up()
        self.span_view.toggle_raw()
        if self.span_view.raw:
            key = self.mast.key_of("annotate.raw")
            self.hints.say(f"Texts are shown as they are · {key} formats them")
        else:
            self.hints.say("JSON, Markdown, code and diffs are formatted")

    def action_wrap(self) -> None:
        """Switch between wrapped lines and lines that extend beyond the right side."""
        self.span_view.toggle_wrap()
        if self.span_view.wrapped:
            self.hints.say("Long lines are wrapped")
        else:
            key_of = self.mast.key_of
            self.hints.say(
                f"Long lines are not wrapped: {key_of('annotate.word_left')} "
                f"{key_of('annotate.word_right')} scroll while the text has the focus "
                f"({key_of('annotate.pane')})"
            )

    def action_beside(self, subject: Subject) -> None:
        """Open the text on a subject beside the trace."""
        # The import of JSON formatting would delay the start, and is rarely needed.
        from mast_tui.ui.annotate.text_screen import show_beside

        show_beside(self, subject)

    # Keys: the target of the next label

    def action_range(self) -> None:
        """Begin a range at the cursor, or end it."""
        if self.state.selection.quote is None:
            self.set_focus(self.timeline)  # its cursor moves the end
        self.marking.toggle_range()

    def action_extend(self, delta: int) -> None:
        """Extend the range by a row, or begin one."""
        if not self.state.has_spans:
            return
        if self.state.selection.is_plain:
            self.action_range()
        self.action_move(delta)

    @on(SpanView.Quoted, "#span")
    def _mark_dragged_quote(self, event: SpanView.Quoted) -> None:
        if self._text_index == self.index:
            self.marking.quote_between(event.start, event.end)

    # Keys: labels

    def action_digit(self, digit: str) -> None:
        """Add one digit of the code of a mode."""
        self.labelling.add_digit(digit)

    @on(VirtualLines.Chosen, "#modes")
    def _mode_chosen(self) -> None:
        """Label with the chosen mode, or fold and unfold a category."""
        mode = self.modes.mode
        if mode is None:
            self.modes.toggle_fold()
        elif self.state.has_spans:
            self.labelling.label_with(mode)

    def action_undo(self) -> None:
        """Undo the last change on this trace."""
        self.labelling.undo_or_redo(undoes=True)

    def action_redo(self) -> None:
        """Redo the last undone change."""
        self.labelling.undo_or_redo(undoes=False)

    # Keys: suggestions

    def action_guidelines(self) -> None:
        """Show the guidelines for the mode under the cursor.

        In the taxonomy this is the mode of its row. Elsewhere it is the mode of the suggestion, or
        of the newest label, if the cursor is on one.
        """
        slug = (self.modes.mode or self.state.taxonomy.modes[0]).slug
        item = self.suggestions.current() or self.labelling.newest_label
        if item is not None and not self.modes.has_focus:
            slug = item.mode
        self.mast.go(ShowGuidelines(slug))

    def action_edit(self) -> None:
        """Change mode or target of a label or suggestion.

        This is the picked label in the list, else the suggestion under the cursor, else the label
        there. Without any, go to the next suggestion.
        """
        self.labelling.edited_from = self.index
        if self.picked_entry is None and (
            self.suggestions.current() or not self.state.labels_at_cursor()
        ):
            self.suggestions.edit(self.labelling.show_editing)
        else:
            self.labelling.act_on_label("edit")

    def action_judge(self) -> None:
        """Run a judge on this trace, or ask to cancel the judge at work."""
        trace = self.trace
        if trace is None or not len(trace):
            return
        if trace.loaded.complete:
            self.commands.when_session_opens(lambda _: self.mast.judge_traces([trace]))
        else:
            self.hints.say("Still reading this trace: run the judge when all spans are there")


def _span_title(trace: Trace, span: Span) -> str:
    """Return number, kind, agent, tool, call, duration and status of a span."""
    parts = span_title_parts(span)
    if span.parent is not None and span.kind is SpanKind.TOOL_RESULT:
        call_index = trace.index_of(span.parent)
        if call_index is not None:
            parts.append(f"answers #{call_index + 1}")
    if span.start is not None and span.end is not None and span.end > span.start:
        parts.append(duration(span.end - span.start))
    if span.status == "error":
        parts.append("error")
    return " · ".join(parts)


def _fold_message(fold: Fold) -> str:
    span_numbers = f"#{fold.first + 1}"
    if fold.end > fold.first + 1:
        span_numbers += f" to #{fold.end}"
    if isinstance(fold, FoldedRun):
        nearly = "nearly " if fold.nearly_equal else ""
        return f"Folded {span_numbers}: {nearly}equal steps, {fold.times}×"
    if fold.head is not None:
        return f"Folded {span_numbers} under #{fold.head + 1}"
    return f"Folded the steps of {one_line(fold.agent, 40)}, {span_numbers}"
