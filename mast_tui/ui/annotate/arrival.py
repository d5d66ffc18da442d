"""Where one stands in a trace that was opened: where one was before, or at what was found in it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mast_tui.ui.context import TraceLocation
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen
    from mast_tui.ui.services.open_workspace import OpenWorkspace


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

    def at(self, wanted: TraceLocation) -> None:
        """Go to a place with what is looked for there."""
        self._wanted = wanted
        self.grown()

    def opened(self, workspace: OpenWorkspace) -> None:
        """Go where one was, now that this is known; where one was sent to comes before that."""
        trace = self._state.trace
        if trace is None or self._wanted is not None or self._state.index:
            return
        name = _setting(workspace, trace.identity.trace_id)
        key = self._screen.context.guarded(partial(workspace.workspace.get_setting, name))
        if key is not None:
            self.at(TraceLocation(trace.identity.trace_id, key=key))

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
            partial(self._screen.context.guarded, write), HeldKeys.NOTHING
        )


def _setting(opened: OpenWorkspace, trace_id: str) -> str:
    return f"place of {opened.annotator} in {trace_id}"
