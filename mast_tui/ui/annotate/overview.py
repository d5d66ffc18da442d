"""The whole run beside the timeline: keeping it right, and going by it."""

from __future__ import annotations

from textual import on

from mast_tui.ui.annotate.base import AnnotateBase
from mast_tui.ui.trace_view.overview import Overview
from mast_tui.ui.trace_view.timeline import Timeline


class Overseeing(AnnotateBase):
    """The overview shows the run as a whole, whatever the timeline filters or folds."""

    @property
    def overview(self) -> Overview:
        """The whole run in a column."""
        return self.query_one(Overview)

    def follow_timeline(self) -> None:
        """From here on the overview shows where the timeline is."""
        self.watch(self.timeline, "scroll_y", self.show_place, init=False)

    def show_place(self) -> None:
        """Mark in the overview the cursor and what the timeline has on screen."""
        # A screen that is being left loses its panes before it stops hearing what it asked for.
        if not self.has_spans or not self.timeline.is_attached:
            return
        timeline = self.timeline
        rows = timeline.rows_on_screen()
        first = timeline.rows.index_at(rows[0]) if rows else self.index
        last = timeline.rows.index_at(rows[-1]) if rows else self.index
        self.overview.show_place(self.index, first, last)

    @on(Timeline.Resized)
    def _timeline_resized(self, event: Timeline.Resized) -> None:
        event.stop()
        self.show_place()

    @on(Overview.Chosen)
    def _place_chosen(self, event: Overview.Chosen) -> None:
        event.stop()
        self._go_to(event.index)

    def _go_to(self, index: int) -> None:
        self.forget_message()
        self.timeline.go_to(index)
        self.show_span()

    def action_error(self, step: int) -> None:
        """Go to the next step that failed, or to the previous one."""
        if not self.has_spans:
            return
        overview = self.overview
        index = overview.counts.error_from(self.index, step)
        if index is not None:
            self._go_to(index)
            return
        so_far = "" if overview.complete else " so far"
        if not overview.counts.errors:
            self.hints.say(f"No step of this trace is known to have failed{so_far}")
        else:
            where = f"further on{so_far}" if step > 0 else "before this one"
            self.hints.say(f"No step that failed {where}")
