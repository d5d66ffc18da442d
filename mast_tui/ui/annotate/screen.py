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

from mast_tui.counts import duration
from mast_tui.errors import ChangedElsewhere, ChangedMeanwhile, MastError
from mast_tui.labels import Label, Target
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.library import LOOK_EVERY
from mast_tui.traces.model import Outcome, Span, SpanKind, Trace
from mast_tui.traces.pictures import is_picture_note
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.annotate.copying import Copying
from mast_tui.ui.annotate.filter import Filter
from mast_tui.ui.annotate.finish import DrawnSpans, Finish
from mast_tui.ui.annotate.following import Following
from mast_tui.ui.annotate.labelling import LabelAction, Labelling
from mast_tui.ui.annotate.marking import Marking
from mast_tui.ui.annotate.my_labels import MyLabels
from mast_tui.ui.annotate.pictures import Pictures
from mast_tui.ui.annotate.search import Search
from mast_tui.ui.annotate.state import AnnotateState, Entry, NotedSpan
from mast_tui.ui.annotate.suggestions import Suggestions
from mast_tui.ui.base_screen import BaseScreen
from mast_tui.ui.context import (
    JudgeProgress,
    RunToWrite,
    ShowGuidelines,
    ShowLibrary,
    ShowTrace,
    TraceLocation,
    context_of,
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
from mast_tui.ui.trace_view.span_view import SpanText, SpanView, opens_at, text_format
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.taxonomy_panel import ModeState, TaxonomyPanel, definition_of
from mast_tui.ui.widgets.title_bar import TitleBar, sight_words
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import distinct_names, origin_title, plain_title, trace_title
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Change, Session
    from mast_tui.ui.annotate.text_screen import Subject
    from mast_tui.ui.context import MastApp
    from mast_tui.ui.services.open_workspace import OpenWorkspace


SPLIT_STEP: Final = 10
"""The percentage of the height by which a key moves the border above the text."""

SPLIT_SHARES: Final = (DEFAULT_SHARE, 60, MAX_SHARE, MIN_SHARE)
"""The percentages of the height for the text that a key cycles through."""

REPORTS_BETWEEN_MARKS: Final = 4
"""The number of index reports between two attempts to place marks whose span was missing."""

SPAN_WAIT: Final = 0.05
"""Seconds without a move of the cursor after which the text of its span is shown."""

SAVE_POSITION_EVERY: Final = 2.0
"""Seconds between two writes of the cursor position."""

READ_EVERY: Final = 0.4
"""Seconds between two writes of the read spans: one transaction for many moves."""

SUGGESTING: Final = frozenset({"next_suggestion", "accept", "reject"})
"""The actions that the last line leaves out while no suggestion waits."""


class Panes:
    """The division of the screen, remembered for the next start.

    While the user reads, the text of a span fills the window, with its suggestion below. All keys
    still act on the span under the cursor of the timeline.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._settings = ViewSettings()

    def restore(self) -> None:
        """Divide the screen as it was at the end of the last start."""
        self._settings = remembered_settings()
        self.divide()
        self._screen.timeline.show_bar(self._settings.time_bar)

    # The text alone

    @property
    def reading(self) -> bool:
        """True if the text of a span fills the window."""
        return self._screen.has_class("-reading")

    def read(self) -> None:
        """Let the text fill the window."""
        self._screen.add_class("-reading")
        self._screen.set_focus(self._screen.span_view)
        self._screen.show_span()
        key_of = self._screen.context.key_of
        trace = self._screen.trace
        has_pictures = trace is not None and bool(
            self._screen.pictures.of_span(trace, self._screen.index)
        )
        self._screen.hints.say(
            f"{key_of('annotate.down')} {key_of('annotate.up')} scroll · "
            f"{key_of('annotate.next_span')} {key_of('annotate.previous_span')} other spans · "
            f"{key_of('annotate.read')} {'shows the pictures' if has_pictures else 'goes back'}"
        )

    def leave(self) -> bool:
        """Return to the timeline, scrolled as before; return False if it is visible already."""
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

    # The heights of timeline and text

    def move_split(self, step: int) -> None:
        """Make the text one step higher (``step`` above 0) or lower."""
        share = self._share + step * SPLIT_STEP
        # A share between two steps moves to the nearer of them.
        steps = share // SPLIT_STEP if step > 0 else -(-share // SPLIT_STEP)
        self._set_share(steps * SPLIT_STEP)

    def next_split(self) -> None:
        """Make the text higher; after the largest share, choose the smallest."""
        larger = [candidate for candidate in SPLIT_SHARES if candidate > self._share]
        self._set_share(min(larger) if larger else MIN_SHARE)

    def drag_split(self, y: int) -> None:
        """Move the border above the text to a line of the screen."""
        top = self._screen.timeline.region.y
        bottom = self._screen.span_view.region.bottom
        if bottom > top:
            self._set_share(round(100 * (bottom - y) / (bottom - top)))

    def _set_share(self, share: int) -> None:
        """Set the share of the text in the height, within its limits, and remember it."""
        if self.reading:
            key = self._screen.context.key_of("annotate.read")
            self._screen.hints.say(f"The text fills the window; {key} goes back")
            return
        share = max(MIN_SHARE, min(share, MAX_SHARE))
        if share != self._settings.text_share:
            self._settings = self._settings._replace(text_share=share)
            self._settings.remember()
            self.divide()
        self._screen.hints.say(f"{share} % of the height for the text")

    @property
    def _share(self) -> int:
        return self._settings.share(self._screen.app.size.height)

    def divide(self) -> None:
        """Divide the height of the screen between the timeline and the text."""
        share = self._share
        self._screen.timeline.styles.height = f"{100 - share}fr"
        self._screen.span_view.styles.height = f"{share}fr"

    # The time bar

    def toggle_bar(self) -> None:
        """Show the time bar, or leave its cells to the text."""
        visible = not self._settings.time_bar
        self._settings = self._settings._replace(time_bar=visible)
        self._settings.remember()
        self._screen.timeline.show_bar(visible)
        state = "shown where the timeline is wide and the trace has times" if visible else "hidden"
        self._screen.hints.say(f"The time bar is {state}")


Result = TypeVar("Result")


class SessionCommands:
    """The commands of the session: they run one after another, and show what is on disk.

    The ``queue_…`` methods add work to the queue of writes; the coroutines run within such work.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._waiting: list[Callable[[Session], object]] = []

    @property
    def waiting(self) -> bool:
        """True if a key waits for the workspace to open."""
        return bool(self._waiting)

    def when_session_opens(self, work: Callable[[Session], object]) -> None:
        """Call a function with the session in the queue, now or once the workspace is open.

        All later input waits for it.

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
            self._hints.say("Opening the workspace; keys wait for it")
        else:
            self._queue(work, state.session, HeldKeys.ALL)

    def queue_change(
        self, command: Callable[[Session], Change | None], blocks: HeldKeys = HeldKeys.ALL
    ) -> None:
        """Queue one command of the session and show its result.

        Args:
            command: Calls one method of the session.
            blocks: The keys that wait for it.
        """
        self._screen.context.writes.do(partial(self.change, command), blocks)

    def queue_unshown(self, work: Callable[[Session], object], session: Session) -> None:
        """Queue work that no key has requested, and for which no key waits.

        Args:
            work: A function or coroutine function.
            session: The session to call it with.
        """
        self._queue(work, session, HeldKeys.NOTHING)

    def _queue(self, work: Callable[[Session], object], session: Session, blocks: HeldKeys) -> None:
        """Queue work with a session; a refusal is shown."""

        async def piece() -> None:
            try:
                outcome = work(session)
                if isawaitable(outcome):
                    await outcome
            except MastError as error:
                self.show_refusal(error, session)

        self._screen.context.writes.do(piece, blocks)

    async def change(
        self,
        command: Callable[[Session], Change | None],
        before_drawing: Callable[[], object] | None = None,
    ) -> Change | None:
        """Run one command of the open session, and show its result or the reason for a refusal.

        Args:
            command: Calls one method of the session.
            before_drawing: Called once the change is on disk, before it is shown.

        Returns:
            The change, or None if the command was refused or changed nothing.
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
        """Write a record that no key has requested, even if another window changed the trace.

        Args:
            command: Calls one method of the session.
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
        """Run a command and write its change.

        If another window has changed the trace, read the session again and raise
        ``ChangedElsewhere``.
        """
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
        """Show why the session or the workspace has refused a command.

        Args:
            error: The reason.
            session: The session of the command.
        """
        if isinstance(error, ChangedMeanwhile) and session is self._state.session:
            self._screen.session_changed()
        self._hints.say(one_line(str(error)), error=True)

    def session_ready(self, session: Session) -> bool:
        """Queue the work that waited for the session.

        Args:
            session: The session, which is open now.

        Returns:
            Whether any work waited.
        """
        waiting = self._waiting
        self._waiting = []
        for work in waiting:
            self._queue(work, session, HeldKeys.ALL)
        return bool(waiting)

    def forget(self) -> None:
        """Discard the work that waits: there will be no session."""
        self._waiting = []


class Arrival:
    """The span at which a trace opens: a requested one, or the last one in the workspace.

    The cursor goes there as soon as the span is read, unless the user has moved it meanwhile.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state
        self._target: TraceLocation | None = None
        self._saved = 0
        """The span that is saved in the workspace, or the first."""

    def begin(self) -> None:
        """Begin with another trace."""
        self._target = None
        self._saved = 0

    def go_to(self, target: TraceLocation) -> None:
        """Go to a location, and start its search if it has one."""
        self._target = target
        self.grown()

    async def opened(self, workspace: OpenWorkspace) -> None:
        """Go to the last position in the workspace, unless another location was requested."""
        trace = self._state.trace
        if trace is None or self._target is not None or self._state.index:
            return
        name = _setting(workspace, trace.identity.trace_id)
        read = partial(workspace.workspace.get_setting, name)
        key = await self._screen.context.workspace.carry_out(read)
        if key is not None and self._target is None and self._state.trace is trace:
            self.go_to(TraceLocation(trace.identity.trace_id, key=key))

    def grown(self) -> None:
        """Go to the location if its span has been read by now."""
        target = self._target
        trace = self._state.trace
        if target is None or trace is None or not self._state.has_spans:
            return
        index = None if target.key is None else trace.index_of(target.key)
        if index is None and target.position is not None and target.position < len(trace):
            index = target.position
        if self._moved_on:
            self._target = None
        elif index is not None:
            self._target = None
            self._saved = index
            self._screen.timeline.go_to(index)
            self._screen.show_span()
            if target.find is not None:
                self._screen.search.set_text(target.find)

    @property
    def _moved_on(self) -> bool:
        if self._target is not None and self._target.find is not None:
            return False  # the user has chosen the location and waits for it
        return (
            self._state.index != self._saved or self._screen.typing or self._screen.search.is_open
        )

    def save(self) -> None:
        """Save the position of the cursor in the workspace."""
        trace = self._state.trace
        opened = self._screen.context.opened
        if trace is None or opened is None or not self._state.has_spans or self._target:
            return
        index = self._state.index
        if index == self._saved:
            return
        self._saved = index
        if opened.workspace.away:
            return  # the position is not worth waiting for a server
        name = _setting(opened, trace.identity.trace_id)
        write = partial(opened.workspace.set_setting, name, trace.span(index).key)
        self._screen.context.writes.do(
            partial(self._screen.context.workspace.carry_out, write), HeldKeys.NOTHING
        )


def _setting(opened: OpenWorkspace, trace_id: str) -> str:
    return f"place of {opened.annotator} in {trace_id}"


class PaneRow(Horizontal, RenderCache):
    """Panes side by side."""


class PaneColumn(Vertical, RenderCache):
    """Panes below each other."""


class AnnotateScreen(Screen[None], RenderCache):
    """The screen for one trace and one annotator."""

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
        """The whole run in a column, regardless of filters and folds."""
        self.modes = TaxonomyPanel(id="modes")
        """The taxonomy."""
        self.definition = SpanView(id="definition")
        """The definition of the mode under the cursor."""
        self.my_labels: MyLabels | None = None
        """The list of the annotator's labels, once it was opened."""
        self.hints = HintBar(Where.ANNOTATE, left_out=SUGGESTING | {"edit"})
        """The last line."""
        self.state = AnnotateState(taxonomy, self.timeline, SpanText(self))
        """The state that the parts share."""
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
        self.pictures = Pictures(self)
        self.finish = Finish(self, self.reading)
        self.following = Following(self)
        self._ready = False
        """Whether the panes are mounted."""
        self._other_screen_open = False
        self._reports = 0
        self._text_index = -1
        """The span whose text the span view shows."""
        self._drawn_position = (-1, -1)
        """The row of the timeline, and its span, that the other panes show."""
        self._move_timer: Timer | None = None
        """Runs while the cursor moves, and for a moment after."""
        self._mark_keeper: tuple[Session, MarkKeeper] | None = None
        self._cached_name: tuple[Trace, int, str] | None = None
        self._offers_next = False
        """Whether this trace is finished and another is in the queue."""

    def on_resize(self) -> None:
        """Divide the new height."""
        self.panes.divide()

    def compose(self) -> ComposeResult:
        """Place the panes."""
        # Set before the panes exist; otherwise all their styles would be computed twice.
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
        self.set_interval(READ_EVERY, self.reading.write_between_keys)
        self.set_interval(SAVE_POSITION_EVERY, self.arrival.save)
        self.set_interval(LOOK_EVERY, self.following.check)
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
        """The open trace, or None."""
        return self.state.trace

    @property
    def session(self) -> Session | None:
        """The annotator's session on it; None until the workspace is open."""
        return self.state.session

    def report_to_write(self) -> RunToWrite | None:
        """Return the run on screen; None until it has been opened."""
        return None if self.trace is None else RunToWrite(self.trace)

    def awaits_content(self, action: str | None) -> bool:
        """Check if input has to wait for the trace, or for work that an earlier key has requested.

        Before the workspace is open a key may request a dialog or another location, so all later
        keys wait.
        """
        if self.commands.waiting:
            return True
        of_this_screen = action is not None and action.startswith(f"{self.where}.")
        return of_this_screen and self.trace is None

    def show_trace(self, trace: Trace) -> None:
        """Show another trace; its session follows with ``attach``."""
        self.reading.write()
        self.arrival.save()
        self.state.show(trace)
        for part in (self.reading, self.suggestions, self.labelling, self.arrival):
            part.begin()
        self.search.clear()
        self.filter.reset()
        self._text_index = -1
        self._drawn_position = (-1, -1)
        if self._ready:
            self.hints.clear()
            self._fill(trace)

    def _fill(self, trace: Trace) -> None:
        """Show a trace in all panes, without labels."""
        self.timeline.show_trace(trace, reads=True)
        self.filter.show_titles()
        self.overview.show_trace(trace, self.timeline.background)
        self.modes.show_states({})
        if self.my_labels is not None:
            self.my_labels.show(None)
        self.show_title()
        self.show_span()

    def on_timeline_index_grown(self, event: Timeline.IndexGrown) -> None:
        """Update the panes that depend on the background index."""
        event.stop()
        if event.trace is self.trace and self.timeline.trace is self.trace:
            self.overview.grown()
            self.filter.grown()
            self.show_title()
            self._reports += 1
            self.following.grown(done=event.done)
            if event.done or not self._reports % REPORTS_BETWEEN_MARKS:
                self._place_missing_marks(event.trace)
            if self._text_index < 0:
                self.show_span()
            self.arrival.grown()

    def spans_added(self) -> None:
        """Search and filter the spans that the file has gained."""
        self.search.grown()
        self.filter.grown()

    def show_reread_trace(self, trace: Trace) -> None:
        """Show the trace as its file is now, with the cursor, search and filter as before."""
        old = self.trace
        assert old is not None
        key = old.span(self.index).key if self.state.has_spans else ""
        chosen = self.filter.chosen
        needle = self.state.needle
        self.context.catalog.renew(old, trace)
        self.context.go(ShowTrace(trace))
        index = trace.index_of(key)
        if index is not None:
            self.timeline.go_to(index)
        if needle:
            self.search.repeat(needle)
        self.filter.apply(chosen)
        self.show_span()

    def attach(self, session: Session) -> None:
        """Show the labels of the trace, and run the work that waited for the session."""
        if session.trace is not self.trace or self not in self.app.screen_stack:
            return
        self.state.session = session
        if not self._ready:
            return
        if session.taxonomy != self.state.taxonomy:
            self.state.taxonomy = session.taxonomy  # the workspace may have another wording
            self._show_taxonomy()
        self.session_changed()
        self.show_span()
        if self.commands.waiting:
            self.hints.clear()
        self.timeline.look_for_repeats()
        self.suggestions.repeat_answers()
        if not self.commands.session_ready(session) and self.context.opened is not None:
            self.context.writes.do(partial(self.arrival.opened, self.context.opened))

    def workspace_failed(self) -> None:
        """Discard the work that waits for a session: there will be none."""
        self.commands.forget()
        self.hints.clear()
        self.timeline.look_for_repeats()
        self.show_title()
        self._show_answerable()

    def leave_for_a_while(self) -> None:
        """Write what is pending before another screen opens, which may change this trace."""
        self.reading.write()
        self.arrival.save()
        self._other_screen_open = True

    def on_screen_resume(self) -> None:
        """Show the changes that were made on another screen."""
        if self._other_screen_open and self.session is not None:
            self.commands.queue_unshown(self._read_again, self.session)
        self._other_screen_open = False

    async def _read_again(self, session: Session) -> None:
        """Read the labels that were changed on another screen, and show them."""
        read = partial(session.read_state, passes=True)
        session.show_state(await self.context.writes.run(read))
        session.pop_news()  # no news: the user has made these changes
        if session is self.session:
            self.session_changed()
            self.show_span()

    def written_elsewhere(self) -> None:
        """Show the changes that another window or program has made in the workspace."""
        if self.session is not None and self.timeline.is_attached:
            self.commands.queue_unshown(self._read_others_changes, self.session)

    async def _read_others_changes(self, session: Session) -> None:
        session.show_state(await self.context.writes.run(session.read_state))
        if session is self.session:
            self.show_news(session)

    def show_news(self, session: Session) -> None:
        """Show changes from elsewhere, and report those of the annotator's own labels."""
        news = session.pop_news()
        self.session_changed()
        self.show_span()
        if news and not self.typing and self.state.selection.is_plain:
            self.hints.say(f"In another window: {news}")

    def judged(self, message: JudgeProgress) -> None:
        """Show the suggestions of a judge on this trace, and report its end."""
        session = self.session
        about_this_trace = session is not None and message.trace_id in (None, session.trace_id)
        if session is not None and about_this_trace and session.suggestions_visible:
            session.refresh_suggestions()
            self.session_changed()
            self.show_span()
        if message.done:
            next_step = ""
            if session is not None and not message.problem and not self.labelling.is_waiting:
                next_step = self.suggestions.next_step_text(session)
            message.tell(self.hints, next_step)

    def look_at(self, location: TraceLocation) -> None:
        """Go to a location: to a search hit at once, else when the workspace is open."""
        if location.find is not None:
            self.arrival.go_to(location)
        else:
            self.suggestions.look_at(location)

    def go_to_place(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; return False if there is none."""
        exists = self.timeline.go_to_named(text)
        if exists:
            self.show_span()
        return exists

    # The app

    @property
    def context(self) -> MastApp:
        """The app, with the services that screens share."""
        return context_of(self)

    # Services for the parts

    @property
    def typing(self) -> bool:
        """True if a mode is being typed."""
        return self.labelling.entry.begun

    def in_background(self, work: Callable[[], None], group: str) -> None:
        """Run a function in a thread; an earlier one of the same group is cancelled.

        Args:
            work: The function. It reports its result with ``call_later``.
            group: The name of the group.
        """
        self.run_worker(work, group=group, exclusive=True, thread=True)

    def stop_background(self, group: str) -> None:
        """Cancel the background work of a group."""
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
        """Show the trace and the annotator in the first line."""
        trace = self.trace
        if trace is None:
            return
        visible = self.session is not None and self.session.hidden_visible
        outcome = trace.meta.outcome if visible else Outcome.UNKNOWN
        left = trace_title(trace, outcome, trace.spans.waiting, self._trace_name(trace))
        if lasted := self.timeline.facts.total:
            left.append(duration(lasted))
        if problems := len(trace.problems):
            left.append(f"{problems} problem{'' if problems == 1 else 's'} in the file")
        self.title_bar.show(tuple(left), self._status())

    def _trace_name(self, trace: Trace) -> str:
        """Return a name that distinguishes the trace from the others in the list."""
        catalog = self.context.catalog
        cached = self._cached_name
        changes = len(catalog.changes)
        if cached is None or cached[0] is not trace or cached[1] != changes:
            name = distinct_names(trace, catalog.traces.values())
            self._cached_name = cached = (trace, changes, name)
        return cached[2]

    def _status(self) -> tuple[str, ...]:
        """Return the annotator, the condition, and the progress in the queue."""
        session = self.session
        if session is None or self.context.opened is None:
            return (self.context.workspace.waiting_words(),)
        visibility = sight_words(blind=session.blind)
        if session.finished:
            visibility += " ✓"
        parts = [*self.context.workspace.unsent_words(), one_line(session.annotator), visibility]
        if len(self.context.catalog.traces) > 1:
            parts.append(self.context.trace_queue.finished_words())
        return tuple(parts)

    def still_reading(self, progress: str) -> None:
        """Show how much of the document was read, while nothing of it can be shown."""
        if self.trace is None:
            self.title_bar.show((progress,), ())

    # Drawing: parts that depend on labels

    async def finish_changed(self) -> None:
        """Count the finished traces again, and show the title."""
        await self.context.trace_queue.count_finished()
        self.context.queue_changed()
        self.show_title()

    def session_changed(self) -> None:
        """Show the present marks, modes and suggestions of the session."""
        session = self.session
        trace = self.trace
        if session is None or trace is None:
            return
        following = self.context.trace_queue.neighbour(trace, 1) if session.finished else None
        self._offers_next = following is not None
        self.set_class(session.blind, "-blind")
        if session.suggestions:
            note = partial(self.commands.note, lambda s: s.note_suggestions_on_screen())
            self.commands.queue_unshown(note, session)
        marks = self._current_marks(session, trace)
        self.timeline.show_marks(marks)
        label_counts = session.labels_of_modes
        pending = Counter(s.mode for s in self.suggestions.pending)
        self.modes.show_states(
            {
                mode.slug: ModeState(
                    label_counts.get(mode.slug, 0), session.verdict(mode.slug), pending[mode.slug]
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
        self._show_look_here(session, trace)
        if self.panes.reading and self._text_index == self.index:
            self._name_span(trace, trace.span(self.index))

    def _show_look_here(self, session: Session, trace: Trace) -> None:
        """Mark the spans that probably contain the decisive step, as far as they are read."""
        found = map(trace.index_of, session.look_here)
        indices = sorted(index for index in found if index is not None)
        self.timeline.show_look_here(indices)
        self.overview.show_look_here(indices)
        if indices:
            note = partial(self.commands.note, lambda s: s.note_suggestions_on_screen())
            self.commands.queue_unshown(note, session)

    def _current_marks(self, session: Session, trace: Trace) -> GutterMarks:
        """Return the marks of own labels, suggestions, others' labels and notes."""
        if self._mark_keeper is None or self._mark_keeper[0] is not session:
            self._mark_keeper = (session, MarkKeeper(self._mark, trace.index_of))
        items: dict[MarkKind, Mapping[str, Pointing]] = {
            MarkKind.OWN: session.labels_by_id,
            MarkKind.SUGGESTION: self.suggestions.pending_by_id,
            MarkKind.OTHER: {label.id: label for label in session.others},
            MarkKind.NOTE: {key: Noted(Target(key, key)) for key in session.span_notes},
        }
        return self._mark_keeper[1].update(items, len(trace))

    def _mark(self, slug: str, kind: MarkKind) -> GutterMark:
        if kind is MarkKind.NOTE:
            return GutterMark("", kind)
        return GutterMark(self._code(slug), kind, self.state.rank_of_mode(slug))

    def _code(self, slug: str) -> str:
        mode = next((m for m in self.state.taxonomy.all_modes if m.slug == slug), None)
        if mode is None:
            return one_line(slug, 8)
        return mode.code if len(mode.code) <= 8 else mode.code[:7] + "…"

    def _place_missing_marks(self, trace: Trace) -> None:
        """Place the marks whose spans were not read before."""
        session = self.session
        if session is not None and len(self.timeline.look_here) < len(session.look_here):
            self._show_look_here(session, trace)
        if session is None or self._mark_keeper is None or not self._mark_keeper[1].incomplete:
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

    def _follow_cursor(self) -> None:
        """Update the screen if the cursor of the timeline has moved.

        Keys call this themselves, so that their whole effect is drawn at once; the message of the
        move comes too late for that.
        """
        position = (self.timeline.cursor, self.index)
        if position == self._drawn_position:
            return
        self._drawn_position = position
        self.labelling.drop_choice()
        self.marking.follow_cursor()
        self.show_position()
        self._show_span_soon()

    @on(VirtualLines.Moved, "#timeline")
    def _cursor_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._follow_cursor()

    def _show_span_soon(self) -> None:
        """Show the span under the cursor at once, or after a burst of moves.

        The suggestion that a key would answer follows at once; only the text waits.
        """
        trace = self.trace
        if (
            self._move_timer is None
            or self._text_index == self.index
            or trace is None
            or not len(trace)
        ):
            self.show_span()
        else:
            self.suggestions.select_at(trace.span(self.index))
            self._show_answerable()
        if self._move_timer is not None:
            self._move_timer.stop()
        self._move_timer = self.set_timer(SPAN_WAIT, self._moves_over)

    def _show_answerable(self) -> None:
        """Show the suggestion under the cursor, and the keys that can act on something."""
        self.suggestions.show_panel()
        self._show_hints()

    def _show_hints(self) -> None:
        """Show the hints of the keys that have something to act on."""
        left_out = set() if self.suggestions.pending else set(SUGGESTING)
        if not self._can_edit:
            left_out.add("edit")
        if self._offers_next:
            self.hints.leave_out(left_out | {"digit_1"}, first="next_trace")
        else:
            self.hints.leave_out(left_out)

    def on_descendant_focus(self) -> None:
        """Show the keys for the pane that has the focus now."""
        self._show_hints()

    def _moves_over(self) -> None:
        self._move_timer = None
        self.catch_up()

    @property
    def text_waits(self) -> bool:
        """True if the span view still shows another span than the one under the cursor."""
        return (
            self._move_timer is not None and self.state.has_spans and self._text_index != self.index
        )

    def catch_up(self) -> None:
        """Show the span under the cursor now if the span view shows another one."""
        if self.state.has_spans and self._text_index != self.index:
            self.show_span()

    def show_span(self) -> None:
        """Show the text of the span under the cursor; it counts as read once it is drawn."""
        trace = self.trace
        if trace is not None and len(trace):
            self._show_text(trace, trace.span(self.index))
            self._show_answerable()
            self.call_after_refresh(self._span_drawn, trace, self._text_index)
        elif trace is not None:
            self.span_view.show_titles(None)
            self.span_view.show_text("", empty="This trace has no spans.")
        self.filter.remove_if_left()

    def _show_text(self, trace: Trace, span: Span) -> None:
        """Show the text of a span, or only its highlights if the text is shown already."""
        self._name_span(trace, span)
        self.suggestions.select_at(span)
        if self._text_index == span.index:
            # The same text keeps its scroll position.
            self.span_view.show_highlights(self._highlights(span))
        else:
            self._text_index = span.index
            text = self.state.text_at_cursor()
            self.pictures.find(trace, span.index, text)
            self.span_view.show_text(
                text,
                self._highlights(span),
                empty=self.state.texts.empty_text,
                text_format=text_format(span),
                opens_at=opens_at(span, text),
            )

    def _name_span(self, trace: Trace, span: Span) -> None:
        """Show the title of the span above its text; while reading also its marks."""
        title = _span_title(trace, span)
        if self.panes.reading:
            marks = self.timeline.marks.marks_on(span.index)
            title = " · ".join([title, *(mark.text for mark in marks)])
        pictures = self.pictures.summary(trace, span.index)
        self.span_view.show_titles(plain_title(title), origin_title(span, pictures))

    def name_span(self) -> None:
        """Show the titles of the span under the cursor again."""
        trace = self.trace
        if trace is not None and len(trace):
            self._name_span(trace, trace.span(self.index))

    def _span_drawn(self, trace: Trace, index: int) -> None:
        # A screen that is closed loses its panes before its last callbacks run.
        if trace is self.trace and index == self._text_index and self.timeline.is_attached:
            self.reading.record(index)

    def show_highlights(self) -> None:
        """Highlight evidence, labels, matches and the marked quote in the text."""
        trace = self.trace
        quote = self.state.selection.quote
        if trace is None or not len(trace) or (self.text_waits and quote is None):
            return
        self.catch_up()
        self.span_view.show_highlights(self._highlights(trace.span(self.index)))
        if quote is not None:
            self.span_view.reveal(quote.head[0], quote.head[1])

    def _highlights(self, span: Span) -> list[TextPart]:
        """Return the parts of a text to highlight; later ones are drawn over earlier ones."""
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

    def show_position(self) -> None:
        """Show the cursor and the visible part of the timeline in the overview."""
        # A screen that is closed loses its panes before its last callbacks run.
        if not self.state.has_spans or not self.timeline.is_attached:
            return
        timeline = self.timeline
        rows = timeline.rows_on_screen()
        first = timeline.rows.index_at(rows[0]) if rows else self.index
        last = timeline.rows.index_at(rows[-1]) if rows else self.index
        self.overview.show_position(self.index, first, last)

    @on(VirtualLines.Resized)
    def _timeline_resized(self, event: VirtualLines.Resized) -> None:
        event.stop()
        self.show_position()

    def show_definition(self) -> None:
        """Show the definition of the mode under the cursor of the taxonomy."""
        mode = self.modes.mode
        if mode is not None:
            self.definition.border_title = plain_title(f"{mode.code} {mode.name}")
            self.definition.show_text(definition_of(mode, self.state.taxonomy))

    @on(VirtualLines.Moved, "#modes")
    def _mode_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.show_definition()

    # Keys while the last line asks for something

    @property
    def asks(self) -> bool:
        """True if the last line asks for something."""
        return self.labelling.is_asking

    def take_key(self, key: str, action: str | None) -> bool:
        """Handle a key while the last line asks for something.

        Args:
            key: The name of the key.
            action: The id of the action that is bound to it here, or None.

        Returns:
            False if the key's own action must run.
        """
        return self.labelling.take_key(key, action)

    # Keys: moving

    @property
    def pane(self) -> VirtualLines:
        """The pane that has the focus, or else the timeline."""
        focused = self.focused
        return focused if isinstance(focused, VirtualLines) else self.timeline

    def _forget_message(self) -> None:
        """Clear the message before the cursor moves, unless another key is expected."""
        if not self.labelling.is_waiting:
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
            self.timeline.trail.record_jump(self.index, 0)
        self.pane.move_to(0)
        self._follow_cursor()

    def action_move_to_end(self) -> None:
        """Go to the last row; while a trace is read, follow its new spans."""
        self._forget_message()
        if self.pane is self.timeline and self.trace is not None:
            self.timeline.trail.record_jump(self.index, len(self.trace) - 1)
        self.pane.move_to_end()
        self._follow_cursor()

    def action_trail(self, step: int) -> None:
        """Go back to the position before a jump, or forward again."""
        if not self.state.has_spans:
            return
        trail = self.timeline.trail
        index = trail.back(self.index) if step < 0 else trail.forward(self.index)
        if index is None:
            self.hints.say("No earlier position" if step < 0 else "No later position")
            return
        self._forget_message()
        self.timeline.move_to_span(index)
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
            direction = f"after this one{so_far}" if step > 0 else "before this one"
            self.hints.say(f"No failed step {direction}")

    def action_look_here(self) -> None:
        """Go to the next place that probably contains the decisive step; after the last, the
        first.
        """
        indices = self.timeline.look_here
        trace = self.trace
        if trace is None or not indices:
            session = self.session
            hidden = session is not None and not session.suggestions_visible
            self.hints.say(
                "Places to look at are hidden while you do not see suggestions"
                if hidden
                else "No places to look at are known: mast-tui exam --coverage --keep finds them"
            )
            return
        marked = set(indices)
        starts = [index for index in indices if index - 1 not in marked]
        following = next((index for index in starts if index > self.index), starts[0])
        self._go_to(following)
        self.hints.say(
            f"Place {starts.index(following) + 1} of {len(starts)}: {len(indices)} of "
            f"{len(trace)} spans contain the decisive step with 90 % probability"
        )

    @on(Overview.CellChosen)
    def _place_chosen(self, event: Overview.CellChosen) -> None:
        event.stop()
        self._go_to(event.index)

    def _go_to(self, index: int) -> None:
        self._forget_message()
        self.timeline.go_to(index)
        self.show_span()

    def action_fold(self) -> None:
        """Fold or unfold the steps or the category under the cursor."""
        if self.pane is self.modes:
            self.modes.toggle_fold()
            return
        if not self.state.has_spans:
            return
        if self.timeline.filtered:
            self.hints.say("Steps cannot be folded while only some spans are shown")
            return
        index = self.index
        fold = self.timeline.toggle_fold()
        if fold is None:
            self.hints.say(f"#{index + 1} has no equal steps beside it and no steps below it")
        elif self.timeline.rows.folded_at(fold.first) is not None:
            self.hints.say(_fold_message(fold))
        self.show_span()

    def action_pane(self) -> None:
        """Go to the next pane, or to the next label while the last line asks which."""
        if self.labelling.next_choice():
            return
        order: list[VirtualLines] = [self.timeline, self.span_view, self.modes]
        if self.my_labels is not None:
            order.append(self.my_labels)
        order += [panel for panel in self.suggestions.panels if panel.overflows]
        panes = [pane for pane in order if pane.is_on_screen and pane.display]
        position = panes.index(self.pane) if self.pane in panes else 0
        self.set_focus(panes[(position + 1) % len(panes)])

    async def action_my_labels(self) -> None:
        """Show and focus the list of labels; hide it if it has the focus."""
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
        if label := self.labelling.newest_label:
            mine.go_to_label(label.id)
        self.set_focus(mine)

    def _hide_my_labels(self) -> None:
        self.set_class(False, "-mine")
        self.set_focus(self.timeline)

    @property
    def picked(self) -> Entry | None:
        """The entry of the list of labels that keys act on, if the list has the focus."""
        mine = self.my_labels
        return mine.entry if mine is not None and self.focused is mine else None

    @property
    def _can_edit(self) -> bool:
        """True if a suggestion or a label is under the cursor."""
        if self.picked is not None:
            return isinstance(self.picked, Label)
        return self.suggestions.current() is not None or bool(self.state.labels_at_cursor())

    @on(VirtualLines.Moved, "#mine")
    def _entry_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._show_hints()

    @on(VirtualLines.Chosen, "#mine")
    def _entry_chosen(self, event: VirtualLines.Chosen) -> None:
        """Go to the span and the mode of the chosen entry."""
        event.stop()
        entry = self.picked
        trace = self.trace
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
        """Show or hide the drawer of the taxonomy."""
        self.set_class(False, "-mine")
        self.toggle_class("-drawer")
        main_pane = self.span_view if self.panes.reading else self.timeline
        self.set_focus(self.modes if self.has_class("-drawer") else main_pane)

    def action_trace(self, step: int) -> None:
        """Open the next or previous trace of the queue."""
        trace = self.context.trace_queue.neighbour(self.trace, step)
        if trace is None:
            key = self.context.key_of("library.queue")
            self.hints.say(f"No other trace is in the queue; {key} in the library chooses one")
            return
        self.context.go(ShowTrace(trace))

    def action_back(self) -> None:
        """Leave one thing at a time, and then the trace.

        Of a search and a filter the newer one goes first.
        """
        if self.focused is self.search.line:
            self.search.forget()
            return
        in_timeline = self.focused is None or self.focused is self.timeline
        steps = [self.search.forget, self.filter.forget]
        if self.state.newest_filter == "filter":
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
        """Return to the screen that opened the trace, or to the library."""
        stack = self.app.screen_stack
        position = stack.index(self)
        if self.app.screen is self and isinstance(stack[position - 1], BaseScreen):
            self.reading.write()
            self.arrival.save()
            self.app.pop_screen()
            return
        if self.trace is None:  # the only file is still being read, and no longer needed
            self.context.traces.prefetch.stop()
        self.context.go(ShowLibrary())

    # Keys: the division of the window

    def action_read(self) -> None:
        """Let the text fill the window, then show its pictures, or return to the timeline.

        A span that is nothing but a picture is shown as one at once.
        """
        if self.panes.reading:
            self.panes.leave()
            self._forget_message()
            self.pictures.show(lambda: None)
        elif self.state.has_spans:
            self.catch_up()
            if is_picture_note(self.state.text_at_cursor()):
                self.pictures.show(self.panes.read)
            else:
                self.panes.read()

    def action_span(self, step: int) -> None:
        """Go to the next or previous row of the timeline, whatever has the focus."""
        if self.state.has_spans:
            self._forget_message()
            self.timeline.move_by(step)
            self._follow_cursor()

    def action_split(self, step: int) -> None:
        """Make the text higher or lower."""
        self.panes.move_split(step)

    def action_next_split(self) -> None:
        """Make the text higher; after the largest share, choose the smallest."""
        self.panes.next_split()

    def action_time_bar(self) -> None:
        """Show or hide the time bar."""
        self.panes.toggle_bar()

    @on(SpanView.EdgeDragged, "#span")
    def _edge_dragged(self, event: SpanView.EdgeDragged) -> None:
        event.stop()
        self.panes.drag_split(event.y)

    # Keys: the text of a span

    def action_text(self, delta: int) -> None:
        """Scroll the text by a screen; while a quote is marked, move it by a word."""
        if self.state.selection.quote is not None:
            self.action_word(delta)
        else:
            self.catch_up()
            self.span_view.move_page(delta)

    def action_word(self, step: int) -> None:
        """Move the marked quote by a word, or else scroll sideways."""
        quote = self.state.selection.quote
        if quote is not None:
            self.marking.move_word(quote, step)
        elif self.pane is self.span_view and not self.span_view.move_sideways(step):
            key = self.context.key_of("annotate.wrap")
            self.hints.say(f"Long lines are wrapped; {key} unwraps them")

    def action_raw(self) -> None:
        """Switch between texts with and without their format."""
        self.catch_up()
        self.span_view.toggle_raw()
        if self.span_view.raw:
            key = self.context.key_of("annotate.raw")
            self.hints.say(f"Texts are shown as they are · {key} formats them")
        else:
            self.hints.say("JSON, Markdown, code and diffs are formatted")

    def action_wrap(self) -> None:
        """Wrap long lines, or let them extend beyond the right side."""
        self.span_view.toggle_wrap()
        if self.span_view.wrapped:
            self.hints.say("Long lines are wrapped")
        else:
            key_of = self.context.key_of
            self.hints.say(
                f"Long lines are not wrapped: {key_of('annotate.word_left')} "
                f"{key_of('annotate.word_right')} scroll while the text has the focus "
                f"({key_of('annotate.pane')})"
            )

    def action_copy(self) -> None:
        """Copy the text of the span, or the marked quote."""
        self.copying.copy()

    def action_copy_what(self) -> None:
        """Ask what to copy: a text, a place, the whole trace."""
        self.copying.choose()

    def action_compare(self) -> None:
        """Show the differences between the step under the cursor and the one it repeats."""
        self._show_beside("repeat")

    def action_answer_key(self) -> None:
        """Show the answer key of the trace, unless it is hidden."""
        self._show_beside("answer key")

    def action_artefacts(self) -> None:
        """Offer the files as of the span under the cursor, and the results of the run."""
        self._show_beside("artefacts")

    def action_usage(self) -> None:
        """Show the sums of time, tokens and money by agent and by tool."""
        self._show_beside("usage")

    def _show_beside(self, subject: Subject) -> None:
        # Start-up: rarely used, and it imports the formatting of JSON.
        from mast_tui.ui.annotate.text_screen import show_beside

        show_beside(self, subject)

    # Keys: the target of the next label

    def action_range(self) -> None:
        """Begin a range at the cursor, or end it."""
        if self.state.selection.quote is None:
            self.set_focus(self.timeline)  # its cursor moves the end
        self.marking.range()

    def action_extend(self, delta: int) -> None:
        """Extend the range by a row; without a range, begin one."""
        if not self.state.has_spans:
            return
        if self.state.selection.is_plain:
            self.action_range()
        self.action_move(delta)

    def action_other_end(self) -> None:
        """Go to the other end of the range that is being marked."""
        self.marking.other_end()

    def action_quote(self) -> None:
        """Begin to mark words in the text; if a quote is marked, go to its next word."""
        self.marking.quote()

    @on(SpanView.Quoted, "#span")
    def _quoted(self, event: SpanView.Quoted) -> None:
        if self._text_index == self.index:
            self.marking.quote_between(event.start, event.end)

    def action_whole(self) -> None:
        """Mark the whole trace as the target of the next label."""
        self.marking.whole()

    # Keys: labels

    def action_digit(self, digit: str) -> None:
        """Add one digit of the code of a mode."""
        self.labelling.digit(digit)

    def action_verdict(self, value: str) -> None:
        """Let the next two digits name a mode that is absent or unsure."""
        self.labelling.verdict(value)

    def action_find_mode(self) -> None:
        """Choose a mode by a part of its name."""
        self.labelling.find_mode()

    @on(VirtualLines.Chosen, "#modes")
    def _mode_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        mode = self.modes.mode
        if mode is None:
            self.modes.toggle_fold()
        elif self.state.has_spans:
            self.labelling.label_with(mode)

    def action_label(self, action: LabelAction) -> None:
        """Change or remove the label under the cursor."""
        self.labelling.act_on_label(action)

    def action_undo(self) -> None:
        """Undo the last change on this trace."""
        self.labelling.undo_or_redo(back=True)

    def action_redo(self) -> None:
        """Redo the change that was undone last."""
        self.labelling.undo_or_redo(back=False)

    # Keys: suggestions

    def action_suggestion(self, step: int) -> None:
        """Go to the next or previous suggestion that waits, at its evidence."""
        self.suggestions.go_to_next(step)

    def action_guidelines(self) -> None:
        """Show the guidelines for the mode under the cursor of the taxonomy."""
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
        """Change mode or target of the suggestion, or else the label, under the cursor."""
        if self.picked is None and (
            self.suggestions.current() or not self.state.labels_at_cursor()
        ):
            self.suggestions.edit(self.labelling.show_editing)
        else:
            self.labelling.act_on_label("edit")

    def action_judge(self) -> None:
        """Run a judge on this trace, or ask to cancel the one at work."""
        trace = self.trace
        if trace is None or not len(trace):
            return
        if not trace.loaded.complete:
            self.hints.say("Still reading this trace: run the judge when all spans are there")
            return
        self.commands.when_session_opens(lambda _: self.context.judge_traces([trace]))

    # Keys: finding and filtering

    def action_search(self) -> None:
        """Open the search line."""
        self.search.open()

    def action_search_regex(self) -> None:
        """Switch the search between plain text and regular expressions."""
        self.search.toggle_regex()

    def action_match(self, step: int) -> None:
        """Go to the next or previous match, in this span or another one."""
        self.search.go_to_next(step)

    def action_filter(self) -> None:
        """Ask which spans to show."""
        self.filter.choose()

    # Keys: the end of a pass

    def action_follow(self) -> None:
        """Show the new spans of the file; read it again if it was replaced."""
        self.following.check_now()

    def action_finish(self) -> None:
        """Finish the trace; ask once if spans were not read or modes are open."""
        self.finish.end_pass()

    def action_reveal(self) -> None:
        """Show others' labels, the outcome, and what else was hidden; only after finishing."""
        self.finish.reveal()


def _span_title(trace: Trace, span: Span) -> str:
    """Return number, kind, agent, tool, call, duration and status of a span."""
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


def _fold_message(fold: Fold) -> str:
    """Return the message after steps were folded."""
    numbers = f"#{fold.first + 1}"
    if fold.end > fold.first + 1:
        numbers += f" to #{fold.end}"
    if isinstance(fold, FoldedRun):
        return f"Folded ×{fold.times} {'nearly ' if fold.near else ''}equal steps, {numbers}"
    if fold.head is not None:
        return f"Folded {numbers} under #{fold.head + 1}"
    return f"Folded the steps of {one_line(fold.agent, 40)}, {numbers}"
