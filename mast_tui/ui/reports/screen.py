"""The screen that shows any report: pages of tables, a row in words, and the traces behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.screen import ModalScreen
from textual.worker import get_current_worker

from mast_tui.reports.model import Row, Table
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.dialogs.question import Ask
from mast_tui.ui.phrases import counted
from mast_tui.ui.reports.agreement_source import AgreementSource
from mast_tui.ui.reports.base import TablesScreen
from mast_tui.ui.reports.detail import notes_words, row_title, row_words
from mast_tui.ui.reports.fitting import choosable
from mast_tui.ui.reports.signatures_source import SignaturesSource
from mast_tui.ui.reports.source import Counting, LeftError, Page, Source
from mast_tui.ui.reports.traces import (
    AgreementTracesScreen,
    SignatureTracesScreen,
    TracesScreen,
)
from mast_tui.ui.services.workspace_writer import writes
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_view.span_view import TITLE_FRAME
from mast_tui.ui.widgets.page_bar import PageBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace


class ReportScreen(TablesScreen):
    """Shows the report that its source counts; subclasses say which keys there are."""

    traces: ClassVar[type[TracesScreen]]

    @dataclass
    class Counted(Message):
        """What a stage of counting has found, and the counting that it comes from."""

        group: str
        turn: int
        found: Any

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.page = next(iter(source.pages))
        self._shown = Page()
        self._stood: dict[str, tuple[str, str]] = {}
        self._turns: dict[str, int] = {}
        self._away = False
        source.attach(self)

    def compose_pages(self) -> ComposeResult:
        """The names of the pages."""
        yield PageBar(tuple(self.source.pages.values()))

    @property
    def row(self) -> Row | None:
        """The row under the cursor, None where there are no figures."""
        return None if self._shown.section is None else self.main_list.row

    def on_mount(self) -> None:
        """Count as soon as the workspace is open."""
        super().on_mount()
        self.show_words("Opening the workspace …")
        self.show_title()
        self.mast.when_ready(self.source.start)

    def on_screen_suspend(self) -> None:
        """Elsewhere, but for a question asked here, labels may change."""
        self._away = self._away or not isinstance(self.app.screen, ModalScreen)

    def on_screen_resume(self) -> None:
        """Count again what may have changed while one was elsewhere."""
        if self._away:
            self._away = False
            self.mast.when_ready(self.source.come_back)

    # Counting

    def count(self, group: str, counting: Counting) -> None:
        """Count in a worker, in place of what is counted for this group now."""
        self.forget(group)
        turn = self._turns[group]

        def work() -> None:
            worker = get_current_worker()
            try:
                for found in counting(lambda: worker.is_cancelled):
                    if worker.is_cancelled:
                        return
                    self.post_message(self.Counted(group, turn, found))
            except LeftError:
                return

        self.run_worker(work, group=group, thread=True)

    def forget(self, group: str) -> None:
        """Stop the group's counting that is under way, and pass over what it has posted."""
        self._turns[group] = self._turns.get(group, 0) + 1
        self.workers.cancel_group(self, group)

    def on_report_screen_counted(self, message: Counted) -> None:
        """Take in what was counted last."""
        if message.turn == self._turns[message.group]:
            self.source.take_in(message.group, message.found)

    def offer_adjudication(self, hidden: Sequence[str]) -> None:
        """Ask whether to count traces as their adjudicator, and count them anew if so."""

        def answered(answer: str | None) -> None:
            if answer == "a":
                self.mast.when_ready(lambda opened: self._take_on(opened, hidden))

        self.app.push_screen(
            Ask(
                f"{counted(len(hidden), 'trace')} that you may not look into yet",
                "As their adjudicator you will see what others said, and can no longer label "
                "them, or label them once more, without sight of it. This is recorded.",
                (("a", "see them as adjudicator"), ("n", "leave them out")),
                default="n",
            ),
            answered,
        )

    @writes
    def _take_on(self, opened: OpenWorkspace, hidden: Sequence[str]) -> None:
        from mast_tui.adjudication import take_on

        taken = self.mast.guarded(
            lambda: take_on(opened.workspace, opened.taxonomy, opened.annotator, hidden)
        )
        if taken is None:
            return
        self.source.start(opened)
        left = len(hidden) - len(taken)
        if left:
            self.notify(
                f"{counted(left, 'trace')} left out: you have begun to label; finish first",
                markup=False,
            )

    # Showing

    def show_title(self) -> None:
        """What is open, and who works."""
        self.title_bar.show(self.source.title(), self.who())

    def show(self) -> None:
        """The open page, or why there is nothing on it."""
        self.query_one(PageBar).show(self.source.pages[self.page])
        self.show_title()
        shown = self._shown = self.source.shown()
        section = shown.section
        if section is None:
            self.show_words(shown.words)
            return
        self.remove_class("-empty")
        self.show_about(shown.about)
        self.main_list.show(
            section.parts, pending=shown.pending, place=self._stood.get(self._place)
        )
        self.main_list.focus()
        self._show_detail()

    @property
    def _place(self) -> str:
        """What the cursor's row is remembered by: the section, as a page may show several."""
        section = self._shown.section
        return self.page if section is None else section.id

    def _show_detail(self) -> None:
        table, row, folds = self.main_list.table, self.main_list.row, self.main_list.folds
        shown = self._shown
        notes = (*(shown.section.notes if shown.section else ()), *shown.notes)
        if table is not None and row is not None:
            title = row_title(table, row)
            words = row_words(
                table, row, chosen=self.main_list.chosen, pending=shown.pending, notes=notes
            )
        elif folds is not None:
            title = folds.title
            words = "\n".join(notes_words(folds, notes=notes)) if isinstance(folds, Table) else ""
        else:
            return
        self.detail.border_title = plain_title(title)
        self.detail.border_subtitle = plain_title(" · ".join(self._keys_here()))
        if self.detail.text != words:
            self.detail.show_text(words)

    def _keys_here(self) -> Sequence[str]:
        """What keys do on the row under the cursor, as much of it as there is room for."""
        lines, keys = self.main_list, []
        if lines.folds is not None:
            keys.append("Enter: fold, unfold")
        elif lines.behind is not None:
            keys.append("Enter: the traces behind")
        elif lines.row is not None and self.source.opening(lines.row.id) is not None:
            keys.append("Enter: open it")
        if lines.table is not None and len(choosable(lines.table)) > 1:
            keys.append("← → column")
        keys += [*self._shown.keys, "d b scroll"]
        while len(" · ".join(keys)) > self.size.width - 2 * TITLE_FRAME:
            keys.pop()
        return keys

    @on(VirtualLines.Moved, "#table")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        place = self.main_list.place
        if place is not None:
            self._stood[self._place] = place
        self._show_detail()
        if not self._shown.pending:
            self.hints.clear()

    @on(VirtualLines.Chosen, "#table")
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open()

    @on(PageBar.Chosen)
    def _page_chosen(self, event: PageBar.Chosen) -> None:
        event.stop()
        titles = list(self.source.pages.values())
        self.action_show_page(list(self.source.pages)[titles.index(event.page)])

    # Keys

    def action_show_page(self, page: str) -> None:
        """One of the pages."""
        self.page = page
        if not self._shown.pending:
            self.hints.clear()
        self.mast.when_ready(self.source.page_opened)
        self.show()

    def action_page(self, step: int) -> None:
        """The next page, around the end."""
        pages = list(self.source.pages)
        self.action_show_page(pages[(pages.index(self.page) + step) % len(pages)])

    def action_across(self, delta: int) -> None:
        """Another cell of the row."""
        if not self.main_list.move_across(delta):
            self.hints.say("There is no other cell to choose in this row")

    def action_text(self, delta: int) -> None:
        """Scroll what the figures rest on."""
        self.detail.move_page(delta)

    def action_choose(self, name: str, *given: Any) -> None:
        """Count something else, by a key that the source knows."""
        self.source.choices[name](*given)

    def action_open(self) -> None:
        """The traces behind the row or cell under the cursor, or the trace that it is."""
        if self._shown.section is not None and self.main_list.unfold():
            self._show_detail()
            return
        row = self.row
        if row is None:
            self.hints.say("No trace stands here to be opened")
            return
        opening = self.source.opening(row.id)
        if opening is not None:
            self.open_at(opening)
            return
        behind = self.main_list.behind
        if behind is None:
            self.hints.say("No trace stands behind this: choose another row or cell")
            return
        self.app.push_screen(self.traces(one_line(behind.title), self.source.list_behind(behind)))


class AgreementScreen(ReportScreen):
    """How far people and judges agree."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.AGREEMENT, Where.EVERYWHERE)
    where = Where.AGREEMENT
    traces = AgreementTracesScreen

    def __init__(self) -> None:
        super().__init__(AgreementSource())


class SignaturesScreen(ReportScreen):
    """How and why runs fail."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.SIGNATURES, Where.EVERYWHERE)
    where = Where.SIGNATURES
    traces = SignatureTracesScreen

    def __init__(self) -> None:
        super().__init__(SignaturesSource())
