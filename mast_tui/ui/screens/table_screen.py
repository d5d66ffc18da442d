"""A room with one table, what is under its cursor in words, or words in place of both."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mast_tui.ui.actions.registry import Where
from mast_tui.ui.screens.base_screen import BaseScreen
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.column_table import ColumnTable
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.title_bar import TitleBar


class TableScreen(BaseScreen):
    """Subclasses make the table, and fill it once the workspace is open."""

    where: Where

    def make_table(self) -> ColumnTable:
        """The table, not yet mounted; one without columns where a screen makes none of its own."""
        return ColumnTable(())

    def show_title(self) -> None:
        """What is open, and who works."""
        self.title_bar.show((), self.who())

    def compose(self) -> ComposeResult:
        """The table, and the row under its cursor in words."""
        yield TitleBar()
        yield from self.compose_pages()
        with Vertical(classes="filled"):
            yield from self.compose_about()
            yield Static(id="heading", classes="heading", markup=False)
            yield self.make_table()
            yield SpanView(id="detail", classes="detail")
        with Vertical(classes="words"):
            yield Static(id="words", markup=False)
        yield HintBar(self.where)

    def compose_pages(self) -> ComposeResult:
        """What chooses among several tables; nothing where there is one."""
        yield from ()

    def compose_about(self) -> ComposeResult:
        """What stands over the table's heading, mostly nothing."""
        yield from ()

    @property
    def detail(self) -> SpanView:
        """The row under the cursor in words."""
        return self.query_one("#detail", SpanView)

    def on_mount(self) -> None:
        """Say what is awaited."""
        self.detail.can_focus = False
        self.show_words("Opening the workspace …")
        self.show_title()

    def show_words(self, words: str) -> None:
        """Say something in place of the table."""
        self.add_class("-empty")
        self.query_one("#words", Static).update(Content(words))

    @on(ColumnTable.Fitted)
    def _show_heading(self, event: ColumnTable.Fitted) -> None:
        event.stop()
        self.query_one("#heading", Static).update(Content(event.table.heading()))
