"""The traces that an annotator goes through: which comes next, and how many are finished."""

from __future__ import annotations

from collections.abc import Set

from mast_tui.traces.model import Trace
from mast_tui.ui.services.traces import TraceService
from mast_tui.ui.services.workspace import WorkspaceService


class TraceQueue:
    """Goes on from trace to trace, as the library lists them and as a study has it."""

    def __init__(self, traces: TraceService, workspace: WorkspaceService) -> None:
        self.ids: list[str] = []
        """Ids of the traces that one goes through, as the library lists them."""
        self._traces = traces
        self._workspace = workspace
        self._finished: Set[str] = frozenset()
        self._own: Set[str] | None = None

    def neighbour(self, trace: Trace | None, step: int) -> Trace | None:
        """The trace ``step`` places on in the queue, or None where there is no other."""
        if trace is None:
            return None
        here, known = trace.identity.trace_id, self._traces.catalog.traces
        queue = self.ids if here in self.ids else list(known)
        if here not in queue or len(queue) < 2:
            return None
        return known[queue[(queue.index(here) + step) % len(queue)]]

    def count_finished(self) -> None:
        """Count anew how many of their traces the annotator has finished."""
        opened = self._workspace.opened
        if opened is None:
            return
        found = self._workspace.guarded(lambda: (opened.finished(), opened.own_traces()))
        if found is not None:
            self._finished, self._own = found

    def finished_words(self) -> str:
        """How many of the traces here, or under a study of one's own, are finished."""
        known = self._traces.catalog.traces
        wanted = known.keys() if self._own is None else self._own
        return f"{len(wanted & self._finished)} of {len(wanted)} finished"
