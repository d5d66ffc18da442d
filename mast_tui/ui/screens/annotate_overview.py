"""The whole run beside the timeline: keeping it right, and going by it."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final

from textual import on

from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.screens.annotate_base import AnnotateBase
from mast_tui.ui.widgets.overview import Overview

LOOKED_FOR: Final = 200
"""Keys of labels that are looked for in one go among the spans that are known by now."""


class Overseeing(AnnotateBase):
    """The overview shows the run as a whole, whatever the timeline filters or folds."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        super().__init__(taxonomy)
        # Keys that labels and suggestions point to, of spans that are not known yet.
        self._unplaced: deque[str] = deque()

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

    def await_places(self) -> None:
        """Marks were placed: know which of them have no place yet, as the trace is still read."""
        trace, session = self.trace, self.session
        self._unplaced = deque()
        if trace is None or session is None or trace.loaded.complete:
            return
        targets = [label.target for label in session.labels]
        targets += [suggestion.target for suggestion in session.pending]
        if session.others_shown:
            targets += [label.target for label in session.others]
        keys = {key for target in targets for key in (target.first, target.last)}
        keys.update(session.span_notes)
        self._unplaced.extend(k for k in keys if k is not None and trace.index_of(k) is None)

    def place_marks(self) -> None:
        """More spans are known: place the marks anew where one of them was waited for."""
        trace, unplaced = self.trace, self._unplaced
        if not unplaced or trace is None:
            return
        looked_for = list(islice(unplaced, LOOKED_FOR))
        unplaced.rotate(-len(looked_for))
        if trace.loaded.complete or any(trace.index_of(key) is not None for key in looked_for):
            self.show_state()

    @on(Overview.Chosen)
    def _place_chosen(self, event: Overview.Chosen) -> None:
        event.stop()
        self.timeline.go_to(event.index)
        self.show_span()

    def action_error(self, step: int) -> None:
        """Go to the next step that failed, or to the previous one."""
        if not self.has_spans:
            return
        overview = self.overview
        index = overview.counts.error_from(self.index, step)
        if index is not None:
            self.timeline.go_to(index)
            self.show_span()
            return
        so_far = "" if overview.complete else " so far"
        if not overview.counts.errors:
            self.hints.say(f"No step of this trace is known to have failed{so_far}")
        else:
            where = f"further on{so_far}" if step > 0 else "before this one"
            self.hints.say(f"No step that failed {where}")
