"""Screens from which a trace is opened at its evidence, and to which one comes back."""

from __future__ import annotations

from textual import work

from mast_tui.traces.model import Trace
from mast_tui.ui.context import ShowTrace, TraceLocation
from mast_tui.ui.screens.base_screen import BaseScreen
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.workspace import WorkspaceError


class OpensTraces(BaseScreen):
    """The trace opens above the screen, so that leaving it leads back to the same place."""

    def open_at(self, at: TraceLocation) -> None:
        """Open a trace of the workspace, whether it is listed in the library or not."""
        self.hints.say("Opening the trace …")
        self._read_to_open(at, list(self.mast.catalog.traces.values()))

    @work(thread=True, group="open", exclusive=True)
    def _read_to_open(self, at: TraceLocation, known: list[Trace]) -> None:
        opened = self.mast.opened
        if opened is None:
            return
        try:
            trace = TraceLoader(opened.workspace, known).read(at.trace_id)
        except (WorkspaceError, OSError) as error:
            self.call_later(self._show_read, at, None, str(error))
            return
        missing = f"The file of {at.trace_id} is not on this machine"
        self.call_later(self._show_read, at, trace, missing)

    def _show_read(self, at: TraceLocation, trace: Trace | None, missing: str) -> None:
        """Show the trace at its evidence; ``missing`` is why there is none."""
        if trace is None:
            self.say_error(missing)
        elif self.app.screen is self:
            self.hints.clear()
            self.mast.go(ShowTrace(trace, at))
