"""The trace as a timeline: one row a span, with its time, who acted, and the labels on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Final

from textual import events, work
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from mast_tui.traces.model import Trace
from mast_tui.ui.context import HasKeys
from mast_tui.ui.input_priority import Courtesy
from mast_tui.ui.trace_view.background_index import Survey, look_on
from mast_tui.ui.trace_view.folding import Fold, run_at, step_signature
from mast_tui.ui.trace_view.gutter import NO_MARKS
from mast_tui.ui.trace_view.sub_agents import steps_of_sub_agent, steps_under
from mast_tui.ui.trace_view.timeline_lines import TimelineLines
from mast_tui.ui.trace_view.trace_facts import TraceFacts

AT_ONCE: Final = 256
"""Spans that are looked at before the first paint: as many as a screen may hold."""

TOLD_EVERY: Final = 0.25
TOLD_TO_KEYS: Final = 1.0
"""Seconds between two reports of what was read and found in the background; while keys come they
are rarer, as a key that comes with one waits until it is drawn."""


class Timeline(TimelineLines):
    """Rows of spans. ``index`` is the span under the cursor, whatever is folded.

    One thread reads the trace on, where that is asked for, and looks at its spans; the timeline
    takes in what came of it a few times a second, and tells of that by ``LookedOn``.
    """

    @dataclass
    class LookedOn(Message):
        """More of the trace was read or looked at in the background; ``done`` when nothing is left
        to do."""

        trace: Trace
        facts: TraceFacts
        done: bool

    class Resized(Message):
        """There is room for more rows now, or for fewer."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._reads = False
        self._looking = False
        self._at_work = Lock()
        self._here = 0
        self._only: Sequence[int] | None = None
        self._followed_since: int | None = None

    def on_resize(self, event: events.Resize) -> None:
        """Tell those that follow what is on screen."""
        self.post_message(self.Resized())

    @property
    def index(self) -> int:
        """The span under the cursor; for a fold the first span that it hides."""
        return self.rows.index_at(self.cursor) if len(self.rows) else self._here

    @property
    def fold_here(self) -> Fold | None:
        """The fold whose line the cursor stands on."""
        return self.rows.at(self.cursor)[1]

    @property
    def filtered(self) -> bool:
        """Whether only some spans are shown."""
        return self.rows.filtered

    def show_only(self, indices: Sequence[int] | None) -> None:
        """Show only these spans (sorted); None shows all again.

        The cursor stays on its span where that is shown, else it goes to the nearest one; that
        is posted as ``Moved``. The sequence is held, not copied: when more is found, it may be
        added to its end and given again, or another one given. What is folded comes back with
        the other spans. Where nothing is shown, ``index`` is the span that the cursor was on.
        """
        here, line = self.index, self.cursor - round(self.scroll_y)
        self._here = here
        rows = len(self.rows)
        more = self.filtered and indices is self._only and rows > 0
        self._only = indices
        self.rows.show_only(indices)
        if more:
            self.rows_grown(rows)
            return
        self._keep_place(here, line)
        if self.index != here:
            self.post_message(self.Moved(self, self.cursor))

    def _keep_place(self, index: int, line: int) -> None:
        """After rows have come or gone: the cursor on this span, on this line of the screen."""
        self.cursor = max(0, min(self.rows.row_of(index), len(self.rows) - 1))
        self.rows_changed()
        self.scroll_to(y=max(0, self.cursor - line), animate=False, force=True)
        self.show_row(self.cursor)

    def show_trace(self, trace: Trace, *, reads: bool = False) -> None:
        """Show another trace, from its first span; with ``reads`` it is read to its end."""
        self.workers.cancel_group(self, "look")
        self.trace, self._reads = trace, reads
        self.rows.clear()
        self.marks, self.read, self.range = NO_MARKS, frozenset(), None
        self.matches = frozenset()
        self.facts, self.survey, self._looking = TraceFacts(), Survey(), False
        self._only = self._followed_since = None
        self.cursor = self._here = 0
        self.scroll_to(y=0, animate=False, force=True)
        if len(trace):
            self.survey.step(trace, AT_ONCE)
            if trace.loaded.complete:
                self.survey.peek(trace)
        self.grown()
        self.rows_changed()

    def grown(self) -> None:
        """Take in that the trace has gained spans; they are looked at in the background."""
        self._take_in(self.survey.facts)

    def look_for_repeats(self) -> None:
        """From here on runs of repeated steps are looked for, in the background."""
        self.survey.wanted = True
        self._look_further()

    def on_timeline_looked_on(self, message: LookedOn) -> None:
        """Show what was read and found where it changes what is on screen."""
        if message.trace is not self.trace:
            message.stop()
            return
        self._looking = self._looking and not message.done
        if self.app.screen is not self.screen and not message.done:
            # Under a dialog every change has the whole screen drawn anew; this one can wait.
            message.stop()
            return
        self._take_in(message.facts)
        self.show_found()

    def _take_in(self, facts: TraceFacts) -> None:
        trace = self.trace
        if trace is None:
            return
        columns, rows = self._columns(), len(self.rows)
        self.rows.grow(len(trace))
        self.facts = facts
        if columns != self._columns():
            self.rows_changed()
        elif rows != len(self.rows):
            self.rows_grown(rows)
        self._follow_end(trace)
        self._look_further()

    def rows_grown(self, old: int) -> None:
        """Rows have come behind the first ``old`` ones, which show what they did."""
        if not self.show_vertical_scrollbar:
            super().rows_grown(old)
            return
        # A size that is set in the usual way has the whole screen laid out anew; here nothing but
        # the scroll bar depends on it.
        self.set_reactive(Widget.virtual_size, Size(self.virtual_size.width, self.row_count))
        self.vertical_scrollbar.window_virtual_size = self.row_count
        for row in self.rows_on_screen():
            if row >= old:
                self.redraw_row(row)

    # Behind the screen

    def _look_further(self) -> None:
        """Begin to look at what was not looked at, unless that is being done."""
        trace = self.trace
        if trace is None or self._looking:
            return
        unread = self._reads and not trace.loaded.complete
        if unread or not self.survey.complete(trace):
            self._looking = True
            # Two threads that compute share one interpreter: the screen is drawn first.
            self.call_after_refresh(self._begin, trace)

    def _begin(self, trace: Trace) -> None:
        if trace is self.trace and self.is_attached:
            app = self.app
            courtesy = app.courtesy if isinstance(app, HasKeys) else Courtesy()
            self._look_on(trace, self.survey, courtesy)

    @work(thread=True, group="look", exclusive=True)
    def _look_on(self, trace: Trace, survey: Survey, courtesy: Courtesy) -> None:
        worker = get_current_worker()
        told = monotonic()
        with self._at_work:  # only one thread may read a trace on, and the last may not be over yet
            for worth_showing in look_on(trace, survey, reads=self._reads):
                courtesy.wait()
                if worker.is_cancelled:
                    return
                now = monotonic()
                if worth_showing or now - told > (
                    TOLD_TO_KEYS if courtesy.keys_come else TOLD_EVERY
                ):
                    told = now
                    self.post_message(self.LookedOn(trace, survey.facts, False))
        self.post_message(self.LookedOn(trace, survey.facts, True))

    # The end of a trace that is still being read

    @property
    def follows_end(self) -> bool:
        """Whether the cursor stays on the last span that is known as more of them come."""
        return self._followed_since is not None

    def move_to_end(self) -> None:
        """Go to the last span; while the trace is read, to each that comes, until a key is
        pressed or something else is looked at."""
        self.move_to(self.row_count - 1)
        trace = self.trace
        if trace is not None and not trace.loaded.complete and not self.filtered:
            self._followed_since = self._keys_taken()

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on ``row`` (clamped) and bring it on screen."""
        self._followed_since = None
        super().move_to(row, centre=centre)

    def _follow_end(self, trace: Trace) -> None:
        since = self._followed_since
        if since is None:
            return
        stays = self._keys_taken() == since and self.cursor in self.rows_on_screen()
        self._followed_since = None
        if stays and not self.filtered:
            self.move_to(self.row_count - 1)
            if not trace.loaded.complete:
                self._followed_since = since

    def _keys_taken(self) -> int:
        app = self.app
        return app.keys_taken if isinstance(app, HasKeys) else 0

    @property
    def duration(self) -> float | None:
        """Seconds from the first to the last known time, or None where no span has a time."""
        return self.facts.duration

    def go_to(self, index: int, *, centre: bool = True) -> None:
        """Put the cursor on a span; a fold that hides it is opened, and what is not shown comes
        back with all others."""
        hiding = self.rows.hiding(index)
        if self.rows.filtered and not self.rows.shows(index):
            self.rows.show_only(None)
            hiding = self.rows.hiding(index)
            self.rows_changed()
        if hiding is not None and index != self.rows.index_at(self.rows.row_of(index)):
            self.rows.unfold(hiding)
            self.rows_changed()
        self.move_to(self.rows.row_of(index), centre=centre)

    def toggle_fold(self) -> Fold | None:
        """Fold what the step under the cursor is a part of, or unfold it; None for nothing.

        A sub-agent's first step folds all of its steps, one in a run of equal steps the run, any
        other what belongs under it.
        """
        trace = self.trace
        if trace is None or not len(trace) or self.filtered:
            return None
        index, line = self.index, self.cursor - round(self.scroll_y)
        fold = self.rows.folded_at(index)
        if fold is not None:
            self.rows.unfold(fold)
        else:
            fold = self._foldable(trace, index)
            if fold is None:
                return None
            self.rows.fold(fold)
        self._keep_place(index, line)
        return fold

    def _foldable(self, trace: Trace, index: int) -> Fold | None:
        steps = self.survey.sub_agents.beginning_at(index)
        if steps is not None and steps[1] - steps[0] > 1:
            return steps_of_sub_agent(trace, *steps)
        return (
            self.survey.repeats.run_at(index)
            or run_at(index, len(trace), lambda i: step_signature(trace.span(i)))
            or steps_under(trace, index, self.survey.sub_agents)
        )
