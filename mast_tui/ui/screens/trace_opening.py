"""Screens from which a trace is opened at its evidence, and to which one comes back."""

from __future__ import annotations

from dataclasses import dataclass

from textual import work
from textual.message import Message

from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.context import ShowTrace, TraceLocation
from mast_tui.ui.screens.base_screen import BaseScreen
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.workspace import WorkspaceError


class OpensTraces(BaseScreen):
    """The trace opens above the screen, so that leaving it leads back to the same place."""

    @dataclass
    class TraceRead(Message):
        """The trace to open has been read; None where its file is not here, or why not."""

        at: TraceLocation
        trace: Trace | None
        problem: str | None = None

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
            self.post_message(self.TraceRead(at, None, str(error)))
            return
        self.post_message(self.TraceRead(at, trace))

    def on_opens_traces_trace_read(self, message: TraceRead) -> None:
        """Show the trace, at its evidence."""
        trace, at = message.trace, message.at
        if message.problem is not None:
            self.hints.say(one_line(message.problem), error=True)
            return
        if trace is None:
            self.hints.say(
                f"The file of {one_line(at.trace_id)} is not on this machine", error=True
            )
            return
        if self.app.screen is not self:
            return
        self.hints.clear()
        self.mast.go(ShowTrace(trace, at))
