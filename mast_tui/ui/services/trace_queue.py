"""The traces that an annotator goes through: which comes next, and how many are finished."""

from __future__ import annotations

from collections.abc import Set
from functools import partial
from typing import TYPE_CHECKING

from mast_tui.traces.model import Trace
from mast_tui.ui.services.workspace_writer import Holds
from mast_tui.ui.startup import FirstScreen

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen
    from mast_tui.ui.services.open_workspace import OpenWorkspace


class TraceQueue(FirstScreen):
    """Goes on from trace to trace, as the library lists them and as a study has it."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: list[str] = []
        self._finished: Set[str] = frozenset()
        self._own: Set[str] | None = None

    def attach_session(self, screen: AnnotateScreen) -> None:
        """Give an annotate screen its session, as soon as the workspace is open."""
        raise NotImplementedError

    def neighbour(self, trace: Trace | None, step: int) -> Trace | None:
        """The trace ``step`` places on in the queue, or None where there is no other."""
        if trace is None:
            return None
        here = trace.identity.trace_id
        queue = self.queue if here in self.queue else list(self.catalog.traces)
        if here not in queue or len(queue) < 2:
            return None
        return self.catalog.traces[queue[(queue.index(here) + step) % len(queue)]]

    def study_changed(self) -> None:
        """A study was set up or changed: work as it says from now on, on the open trace too."""
        opened = self.opened
        if opened is None:
            return
        self.writes.do(partial(self._follow_study, opened), Holds.NOTHING)

    def _follow_study(self, opened: OpenWorkspace) -> None:
        from mast_tui.ui.annotate.screen import AnnotateScreen
        from mast_tui.ui.library.screen import LibraryScreen
        from mast_tui.ui.services.open_workspace import follow_study

        self.guarded(lambda: follow_study(opened))
        self.count_finished()
        for screen in self.screen_stack:
            if isinstance(screen, AnnotateScreen):
                self.attach_session(screen)
            elif isinstance(screen, LibraryScreen):
                screen.queue.begin_anew()

    def queue_changed(self) -> None:
        """What is to do has changed: let the library read its queue anew."""
        from mast_tui.ui.library.screen import LibraryScreen

        for screen in self.screen_stack:
            if isinstance(screen, LibraryScreen):
                screen.queue.changed()

    def count_finished(self) -> None:
        """Count anew how many of their traces the annotator has finished."""
        opened = self.opened
        if opened is None:
            return
        found = self.guarded(lambda: (opened.finished(), opened.own_traces()))
        if found is not None:
            self._finished, self._own = found

    def finished_words(self) -> str:
        """How many of the traces here, or under a study of one's own, are finished."""
        wanted = self.catalog.traces.keys() if self._own is None else self._own
        return f"{len(wanted & self._finished)} of {len(wanted)} finished"

    @property
    def open_trace_id(self) -> str | None:
        """The id of the trace that is open on an annotate screen, if any."""
        from mast_tui.ui.annotate.screen import AnnotateScreen

        found = (s.trace for s in self.screen_stack if isinstance(s, AnnotateScreen))
        trace = next(found, None)
        return None if trace is None else trace.identity.trace_id
