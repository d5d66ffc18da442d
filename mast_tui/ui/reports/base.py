"""What the report and the traces behind it share: a title, tables, the row in words, and hints."""

from __future__ import annotations

from pathlib import PurePath
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mast_tui.ui.actions.registry import Where
from mast_tui.ui.reports.lines import ReportLines
from mast_tui.ui.screens.trace_opening import OpensTraces
from mast_tui.ui.styles import BASE_SCREEN, REPORTS
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.title_bar import TitleBar


class TablesScreen(OpensTraces):
    """Tables, the row under their cursor in words, or words in place of both."""

    CSS_PATH: ClassVar[list[str | PurePath]] = [
        BASE_SCREEN,
        REPORTS,
    ]
    AUTO_FOCUS = "#table"
    where: ClassVar[Where]

    def compose(self) -> ComposeResult:
        """The tables, and the row under the cursor in words."""
        yield TitleBar()
        yield from self.compose_pages()
        with Vertical(classes="filled"):
            yield Static(id="about", markup=False)
            yield ReportLines(id="table")
            yield SpanView(id="detail", classes="detail")
        with Vertical(classes="words"):
            yield Static(id="words", markup=False)
        yield HintBar(self.where)

    def compose_pages(self) -> ComposeResult:
        """What chooses among several pages; nothing where there is one."""
        yield from ()

    def on_mount(self) -> None:
        """Keys move the cursor of the tables, wherever one clicks."""
        self.detail.can_focus = False
        self.show_about("")

    @property
    def main_list(self) -> ReportLines:
        """The tables."""
        return self.query_one(ReportLines)

    @property
    def detail(self) -> SpanView:
        """The row under the cursor in words."""
        return self.query_one("#detail", SpanView)

    def show_words(self, words: str) -> None:
        """Say something in place of the tables."""
        self.add_class("-empty")
        self.query_one("#words", Static).update(Content(words))

    def show_about(self, words: str) -> None:
        """Say one line over the tables, or nothing."""
        about = self.query_one("#about", Static)
        about.display = bool(words)
        about.update(Content(words))
