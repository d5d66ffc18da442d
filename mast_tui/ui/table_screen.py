"""A screen with a list and what is under its cursor in words, or words in place of both."""

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
from mast_tui.ui.widgets.column_table import ColumnTable
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.workspace import WorkspaceError


class OpensTraces(BaseScreen):
    """The trace opens above the screen, so that leaving it leads back to the same place."""

    def open_at(self, at: TraceLocation) -> None:
        """Open a trace of the workspace, whether it is listed in the library or not."""
        self.hints.say("Opening the trace …")
        self._load_and_show(at, list(self.mast.catalog.traces.values()))

    @work(thread=True, group="open", exclusive=True)
    def _load_and_show(self, at: TraceLocation, known: list[Trace]) -> None:
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


class DetailScreen(BaseScreen):
    """Puts the row under the cursor of its main list into words, beside it in ``#detail``."""

    @property
    def detail(self) -> SpanView:
        """The row under the cursor in words."""
        return self.query_one("#detail", SpanView)

    def on_mount(self) -> None:
        """Keys move the cursor of the list, wherever one clicks."""
        self.detail.can_focus = False

    @on(VirtualLines.Moved)
    def _moved(self, event: VirtualLines.Moved) -> None:
        if event.lines is self.main_list:
            event.stop()
            self.row_moved()

    def row_moved(self) -> None:
        """The cursor stands on another row."""
        self.show_detail()
        self.hints.clear()

    def show_detail(self) -> None:
        """Put the row under the cursor into words, where these are about the row."""

    @on(VirtualLines.Chosen)
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        if event.lines is self.main_list:
            event.stop()
            self.action_open()

    def action_open(self) -> None:
        """Open what is under the cursor, where it opens."""

    def action_text(self, delta: int) -> None:
        """Scroll the words by a screen."""
        self.detail.move_page(delta)


class TableScreen(DetailScreen, Generic[Row]):
    """A table of records, filled by a subclass once the workspace is open."""

    AUTO_FOCUS = "ColumnTable"
    table_id: ClassVar[str]
    row_key: ClassVar[attrgetter[object]]
    """Returns what a row is known by when the table is filled anew."""

    @abstractmethod
    def show_title(self) -> None:
        """What is open, and who works."""

    def compose_panes(self) -> ComposeResult:
        """The table, and the row under its cursor in words."""
        yield Static(id="heading", classes="heading", markup=False)
        yield ColumnTable[Row](self.row_key, id=self.table_id)
        yield SpanView(id="detail", classes="detail")

    @property
    def main_list(self) -> ColumnTable[Row]:
        """The table."""
        return self.query_one(ColumnTable)

    def on_mount(self) -> None:
        """Say what is awaited."""
        self.show_words("Opening the workspace …")
        self.show_title()

    @on(ColumnTable.ColumnsFitted)
    def _show_heading(self, event: ColumnTable.ColumnsFitted) -> None:
        event.stop()
        self.query_one("#heading", Static).update(Content(event.table.heading()))
