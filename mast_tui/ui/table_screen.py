"""A screen with a list and a text about the row under the cursor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import ClassVar, Final, Generic

from textual.app import ComposeResult

from mast_tui.columns import Row, TableColumn
from mast_tui.labels import Target
from mast_tui.traces.model import Trace
from mast_tui.ui.base_screen import BaseScreen, Stopped
from mast_tui.ui.context import ShowTrace, TraceLocation
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.virtual_lines import ColumnTable
from mast_tui.ui.wording import plain_title

MOST_READ: Final = 60
"""The most traces of one list that are read for the numbers of their spans."""


class OpensTraces(BaseScreen):
    """A screen that opens traces above itself. The user returns to the same row."""

    def open_at(self, location: TraceLocation) -> None:
        """Open a trace of the workspace, even if it is not in the library."""
        self.hints.say("Opening the trace …")
        opened = self.mast.opened
        if opened is not None:
            listed_traces = list(self.mast.catalog.traces.values())
            self.work.run(
                "open",
                lambda: TraceLoader(opened.workspace, listed_traces, opened.masks).read(
                    location.trace_id
                ),
                partial(self._show_loaded, location),
            )

    def _show_loaded(self, location: TraceLocation, trace: Trace | None) -> None:
        """Show a trace at a location, unless the user has left this screen.

        For None show the error that the file is missing.
        """
        if trace is None:
            self.say_error(f"The file of {location.trace_id} is not on this machine")
        elif self.app.screen is self:
            self.hints.clear()
            self.mast.go(ShowTrace(trace, location))

    def read_orders(
        self,
        loader: TraceLoader,
        places: Iterable[tuple[str, Sequence[Target]]],
        refresh: Callable[[], object],
    ) -> None:
        """Read traces with unknown order of spans in a worker, then show span numbers.

        Args:
            loader: Reads the traces.
            places: The id of each trace, with its shown targets.
            refresh: Shows the targets again, after a trace was read.
        """

        def read_traces(stopped: Stopped) -> Iterator[None]:
            unread_ids = (
                trace_id for trace_id, targets in places if loader.lacks_order(trace_id, targets)
            )
            if loader.read_more(unread_ids, MOST_READ, stopped):
                yield

        self.work.run_stages("orders", read_traces, lambda _: refresh())


class DetailScreen(BaseScreen):
    """A screen with a text about the row under the cursor (``#detail``), beside the main list."""

    @property
    def detail(self) -> SpanView:
        """The text about the row."""
        return self.query_one("#detail", SpanView)

    def on_mount(self) -> None:
        """Keep the focus on the list, even after a click on the text."""
        self.detail.can_focus = False

    def row_moved(self) -> None:
        """Show the text about another row."""
        self.show_detail()
        self.hints.clear()

    def show_detail(self) -> None:
        """Show the text about the row under the cursor."""

    def describe(self, title: str, text: str, keys: str = "") -> None:
        """Show a text about the row under the cursor.

        Args:
            title: The title of the text.
            text: The text.
            keys: The keys for the row, shown below the text.
        """
        self.detail.show_titles(plain_title(title), plain_title(keys))
        self.detail.show_text(text)

    def action_text(self, delta: int) -> None:
        """Scroll the text by a screen."""
        self.detail.move_page(delta)


class TableScreen(DetailScreen, Generic[Row]):
    """A table of records. A subclass fills it once the workspace is open."""

    AUTO_FOCUS = "ColumnTable"
    table_id: ClassVar[str]
    row_key: ClassVar[attrgetter[object]]
    """Returns the identity of a row, by which the cursor finds the row again."""

    @abstractmethod
    def show_title(self) -> None:
        """Show what is open, and who works."""

    @abstractmethod
    def read_rows(self, opened: OpenWorkspace) -> None:
        """Read the rows in a worker, then show them."""

    def show_detail(self) -> None:
        """Show the text about the row under the cursor; no text without a row."""
        row = self.main_list.row
        if row is None:
            self.describe("", "")
        else:
            self.describe_row(row)

    def describe_row(self, row: Row) -> None:
        """Show the text about a row."""

    def compose_panes(self) -> ComposeResult:
        """Yield the table, and the text about the row under its cursor."""
        table = ColumnTable[Row](self.row_key, id=self.table_id)
        yield table.heading_line
        yield table
        yield SpanView(id="detail", classes="detail")

    @property
    def main_list(self) -> ColumnTable[Row]:
        """The table."""
        return self.query_one(ColumnTable)

    def on_mount(self) -> None:
        """Show a message until the workspace is open."""
        self.show_message_only("Opening the workspace …")
        self.show_title()

    def on_screen_resume(self) -> None:
        """Read the rows again, because another screen may have changed them."""
        self.mast.workspace.when_ready(self.read_rows)

    def show_rows(self, columns: Sequence[TableColumn[Row]], rows: Sequence[Row]) -> None:
        """Show rows in place of the message, and the text about the row under the cursor.

        Args:
            columns: The columns.
            rows: The rows.
        """
        self.remove_class("-empty")
        self.main_list.columns = columns
        self.main_list.show(rows)
        self.show_detail()
        self.main_list.focus()
