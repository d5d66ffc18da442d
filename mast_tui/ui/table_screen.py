"""A screen with a list, and a text about the row under its cursor."""

from __future__ import annotations

from abc import abstractmethod
from operator import attrgetter
from typing import ClassVar, Generic

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from mast_tui.columns import Row
from mast_tui.traces.model import Trace
from mast_tui.ui.base_screen import BaseScreen
from mast_tui.ui.context import ShowTrace, TraceLocation
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.virtual_lines import ColumnTable, VirtualLines
from mast_tui.workspace import WorkspaceError


class OpensTraces(BaseScreen):
    """A screen that opens traces above itself, so that the user returns to the same row."""

    def open_at(self, location: TraceLocation) -> None:
        """Open a trace of the workspace, even if the library does not list it."""
        self.hints.say("Opening the trace …")
        self._load_and_show(location, list(self.mast.catalog.traces.values()))

    @work(thread=True, group="open", exclusive=True)
    def _load_and_show(self, location: TraceLocation, open_traces: list[Trace]) -> None:
        """Read a trace in a worker thread, then show it or an error."""
        opened = self.mast.opened
        if opened is None:
            return
        try:
            trace = TraceLoader(opened.workspace, open_traces, opened.masks).read(location.trace_id)
        except (WorkspaceError, OSError) as error:
            self.call_later(self._show_loaded, location, None, str(error))
            return
        error_text = f"The file of {location.trace_id} is not on this machine"
        self.call_later(self._show_loaded, location, trace, error_text)

    def _show_loaded(self, location: TraceLocation, trace: Trace | None, error_text: str) -> None:
        """Show a trace at a location, or an error if it could not be read.

        If the user has left this screen meanwhile, show nothing.
        """
        if trace is None:
            self.say_error(error_text)
        elif self.app.screen is self:
            self.hints.clear()
            self.mast.go(ShowTrace(trace, location))


class DetailScreen(BaseScreen):
    """A screen with a text about the row under the cursor, in ``#detail`` beside the main list."""

    @property
    def detail(self) -> SpanView:
        """The text about the row."""
        return self.query_one("#detail", SpanView)

    def on_mount(self) -> None:
        """Keep the focus on the list, even if the text is clicked."""
        self.detail.can_focus = False

    @on(VirtualLines.Moved)
    def _moved(self, event: VirtualLines.Moved) -> None:
        if event.lines is self.main_list:
            event.stop()
            self.row_moved()

    def row_moved(self) -> None:
        """Show the text about another row."""
        self.show_detail()
        self.hints.clear()

    def show_detail(self) -> None:
        """Show the text about the row under the cursor."""

    @on(VirtualLines.Chosen)
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        if event.lines is self.main_list:
            event.stop()
            self.action_open()

    def action_open(self) -> None:
        """Open the row under the cursor, if it can be opened."""

    def action_text(self, delta: int) -> None:
        """Scroll the text by a screen."""
        self.detail.move_page(delta)


class TableScreen(DetailScreen, Generic[Row]):
    """A table of records, which a subclass fills once the workspace is open."""

    AUTO_FOCUS = "ColumnTable"
    table_id: ClassVar[str]
    row_key: ClassVar[attrgetter[object]]
    """Returns the identity of a row, by which the cursor finds it in other rows."""

    @abstractmethod
    def show_title(self) -> None:
        """Show what is open, and who works."""

    def compose_panes(self) -> ComposeResult:
        """Yield the table, and the text about the row under its cursor."""
        yield Static(id="heading", classes="heading", markup=False)
        yield ColumnTable[Row](self.row_key, id=self.table_id)
        yield SpanView(id="detail", classes="detail")

    @property
    def main_list(self) -> ColumnTable[Row]:
        """The table."""
        return self.query_one(ColumnTable)

    def on_mount(self) -> None:
        """Show a message until the workspace is open."""
        self.show_message_only("Opening the workspace …")
        self.show_title()

    @on(ColumnTable.ColumnsFitted)
    def _show_heading(self, event: ColumnTable.ColumnsFitted) -> None:
        event.stop()
        self.query_one("#heading", Static).update(Content(event.table.heading()))
