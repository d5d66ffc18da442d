"""The agreement screen: how far annotators agree on each mode, and what the figures say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from mast_tui.ui.actions import Where, bindings_for
from mast_tui.ui.screens.room import Room
from mast_tui.ui.widgets.agreement_table import AgreementTable
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.span_view import SpanView
from mast_tui.ui.widgets.title_bar import TitleBar

if TYPE_CHECKING:
    from mast_tui.agreement.study import Report
    from mast_tui.ui.desk import Desk

PassChoice = Literal["first", "last"]


class AgreementScreen(Room):
    """Figures over the traces that this annotator may know about."""

    CSS_PATH: ClassVar[list[str]] = ["room.tcss", "agreement.tcss"]
    AUTO_FOCUS = "#table"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.AGREEMENT, Where.EVERYWHERE)
    where = Where.AGREEMENT

    @dataclass
    class Computed(Message):
        """The figures, or why there are none; ``hidden`` traces are others' alone."""

        report: Report | None
        hidden: int
        passes: PassChoice
        problem: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.passes: PassChoice = "last"
        self.report: Report | None = None
        self.hidden = 0

    def compose(self) -> ComposeResult:
        """The table, and the row under the cursor in words."""
        yield TitleBar()
        with Vertical(classes="filled"):
            yield Static(id="heading", classes="heading", markup=False)
            yield AgreementTable(id="table")
            yield SpanView(id="detail")
        with Vertical(classes="words"):
            yield Static(id="words", markup=False)
        yield HintBar(self.where)

    @property
    def main_list(self) -> AgreementTable:
        """The modes."""
        return self.query_one(AgreementTable)

    @property
    def detail(self) -> SpanView:
        """The row under the cursor in words."""
        return self.query_one("#detail", SpanView)

    def on_mount(self) -> None:
        """Count as soon as the workspace is open."""
        self.detail.can_focus = False
        self._show_words("Opening the workspace …")
        self._show_title()
        self.mast.when_ready(self._start)

    def on_screen_resume(self) -> None:
        """Verdicts may have changed while another screen was open."""
        if self.report is not None and self.mast.desk is not None:
            self._start(self.mast.desk)

    def on_resize(self) -> None:
        """Titles follow the columns."""
        self.call_after_refresh(self._show_heading)

    # Counting

    def _start(self, desk: Desk) -> None:
        if self.report is None:
            self._show_words("Counting verdicts …")
        self.hints.prompt("Counting verdicts …")
        self._count(desk, self.passes)

    @work(thread=True, group="agreement", exclusive=True)
    def _count(self, desk: Desk, passes: PassChoice) -> None:
        from mast_tui.ui.agreement_figures import count

        self.post_message(count(desk, passes))
