"""The agreement screen: how far people and judges agree, what it rests on, and the way there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.binding import BindingType

from mast_tui.safe_text import one_line
from mast_tui.ui.actions import Where, bindings_for
from mast_tui.ui.agreement_cells import PageRow, counted, joined
from mast_tui.ui.agreement_figures import Figures
from mast_tui.ui.screens.agreement_choices import Choices
from mast_tui.ui.screens.agreement_counting import (
    Page,
    hidden_words,
    nothing_of_judge,
    nothing_of_spans,
    nothing_to_count,
)
from mast_tui.ui.suggestion_words import judge_name
from mast_tui.ui.titles import plain_title
from mast_tui.ui.widgets.agreement_table import AgreementTable
from mast_tui.ui.widgets.column_table import Column, TableRow
from mast_tui.ui.widgets.page_bar import PageBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import Report
    from mast_tui.ui.agreement_behind import Cases

COUNTING: Final = "Counting verdicts …"


class AgreementScreen(Choices):
    """Figures over the traces that this annotator may know about, on pages."""

    CSS_PATH = ["room.tcss", "runs.tcss", "agreement.tcss"]
    AUTO_FOCUS = "#table"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.AGREEMENT, Where.EVERYWHERE)
    where = Where.AGREEMENT
    pages = tuple(page.value for page in Page)

    def __init__(self) -> None:
        super().__init__()
        self.pair: str | None = None
        self.rows: Sequence[PageRow] = ()
        self._stood: dict[tuple[Page, bool], str] = {}
        self._across = 2
        self._away = False

    def make_table(self) -> AgreementTable:
        """The figures."""
        return AgreementTable(id="table")

    def page_name(self) -> str:
        """The page that is open."""
        return self.page.value

    @property
    def main_list(self) -> AgreementTable:
        """The figures."""
        return self.query_one(AgreementTable)

    @property
    def report(self) -> Report | None:
        """The figures of people, where there are any."""
        return self.figures.report if self.figures is not None else None

    def on_mount(self) -> None:
        """Count as soon as the workspace is open."""
        self.mast.when_ready(self.start)

    def on_screen_resume(self) -> None:
        """Count again what may have changed while one was among the traces behind a figure."""
        if self._away and self.mast.desk is not None:
            self._away = False
            self.count_what_changes(self.mast.desk)

    # Showing

    def told(self, figures: Figures) -> None:
        """Say what is left out, or that copies may stand behind the figures."""
        from mast_tui.ui.agreement_words import blocks_in_short

        copied = "" if figures.report is None else blocks_in_short(figures.report)
        if figures.report is not None and figures.hidden:
            self.hints.say(hidden_words(len(figures.hidden)))
        elif copied:
            self.hints.say(copied)

    def show_title(self) -> None:
        """What is open, and who works."""
        parts = ["Agreement"]
        judge = self.judge.report if self.judge is not None else None
        report = self.report
        if self.page is Page.JUDGE:
            if judge is not None:
                from mast_tui.agreement.text_judge import against_words
                from mast_tui.figures.judge.input import GOLD

                against = one_line(against_words(judge))
                compared = counted(judge["traces"]["compared"], "trace")
                parts += [f"{judge_name(judge['judge'])} against {against}", compared]
                if judge["against"] != GOLD:
                    parts.append(f"{self.passes} pass")
        elif report is not None:
            parts.append(joined([one_line(name) for name in self._names(report)]))
            parts.append(f"{self.passes} pass")
            done = report["traces"]["finished_by_all"]
            parts.append(f"{counted(done, 'trace')} finished by all")
        self.title_bar.show(tuple(parts), self.who())

    def _names(self, report: Report) -> Sequence[str]:
        from mast_tui.ui.agreement_pairs import pair_names

        return report["annotators"] if self.pair is None else pair_names(report, self.pair)

    def show_page(self) -> None:
        """The open page, or why there is nothing on it."""
        self.query_one(PageBar).show(self.page.value)
        words = self._instead()
        if words:
            self.show_words(words)
            self.show_title()
            return
        self.remove_class("-empty")
        self.rows, shown, columns = self._contents()
        table = self.main_list
        self._across = table.across or self._across
        table.across = self._across if self._is_matrix else None
        stood = self._stood.get(self._place)
        table.show(shown, columns)
        table.move_to(next((i for i, row in enumerate(shown) if row.id == stood), table.cursor))
        if table.across is not None:
            table.choose_column(table.across)
        table.focus()
        self.show_title()
        self._show_detail()

    @property
    def _place(self) -> tuple[Page, bool]:
        return self.page, self.pair is not None

    @property
    def _is_matrix(self) -> bool:
        return self.page is Page.PAIRS and self.pair is None

    def _instead(self) -> str:
        """What to say in place of the page, or nothing."""
        if self.page is Page.JUDGE:
            return nothing_of_judge(self.judge) if self.judge and self._judge_known else COUNTING
        if self.figures is None:
            return COUNTING
        if self.figures.report is None:
            return nothing_to_count(self.figures)
        if self.page is Page.SPANS:
            return nothing_of_spans(self.spans)
        return ""

    @property
    def _judge_known(self) -> bool:
        """Whether it is known if there is anything to say of a judge."""
        judge = self.judge
        return judge is not None and (judge.report is not None or not judge.pending)

    def _contents(self) -> tuple[Sequence[PageRow], Sequence[TableRow], Sequence[Column]]:
        from mast_tui.ui import agreement_judge, agreement_pairs, agreement_rows, agreement_spans

        rows: Sequence[PageRow] = ()
        if self.page is Page.JUDGE:
            assert self.judge is not None
            assert self.judge.report is not None
            rows = agreement_judge.judge_rows(
                self.judge.report, pending=self.judge.pending, hidden=self.judge.hidden
            )
            return rows, [row.shown for row in rows], agreement_judge.COLUMNS
        if self.page is Page.SPANS:
            assert self.spans is not None
            assert self.spans.report is not None
            rows = agreement_spans.span_rows(self.spans.report, pending=self.spans.pending)
            return rows, [row.shown for row in rows], agreement_spans.COLUMNS
        report, pending = self._people()
        if self._is_matrix:
            return (), agreement_pairs.matrix_rows(report), agreement_pairs.matrix_columns(report)
        columns = agreement_rows.columns_of(report)
        if self.page is Page.CATEGORIES:
            rows = agreement_rows.category_rows(report, pending=pending)
        elif self.pair is not None:
            rows = agreement_rows.pair_rows(report, self.pair, pending=pending)
            columns = agreement_rows.columns_of(report, many=False)
        else:
            rows = agreement_rows.mode_rows(report, pending=pending)
        return rows, [row.shown for row in rows], columns

    def _people(self) -> tuple[Report, bool]:
        assert self.figures is not None
        assert self.figures.report is not None
        return self.figures.report, self.figures.pending

    def _row(self) -> PageRow | None:
        cursor = self.main_list.cursor
        return self.rows[cursor] if cursor < len(self.rows) else None

    def _chosen_pair(self) -> tuple[str, str] | None:
        """The two names of the cell under the cursor of the matrix."""
        row, across, report = self.main_list.row, self.main_list.across, self.report
        if row is None or across is None or report is None:
            return None
        return row.id, report["annotators"][across - 1]

    def _show_detail(self) -> None:
        pair = self._chosen_pair() if self._is_matrix else None
        row = self._row()
        if pair is not None:
            from mast_tui.ui.agreement_pairs import cell_words

            report, pending = self._people()
            title = " and ".join(dict.fromkeys(pair))
            words = cell_words(report, *pair, pending=pending)
            keys = ["Enter: per mode", "← → column"]
        elif row is not None:
            title, words = row.title, row.words
            keys = ["Enter: the traces behind"] if row.modes else []
        else:
            return
        if self.page is Page.JUDGE:
            keys += ["c against", "] judge"]
        self.detail.border_title = plain_title(one_line(title))
        self.detail.border_subtitle = plain_title(" · ".join([*keys, "d b scroll"]))
        if self.detail.text != words:
            self.detail.show_text(words)

    @on(VirtualLines.Moved, "#table")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        row = self.main_list.row
        if row is not None:
            self._stood[self._place] = row.id
        self._show_detail()
        self.hints.clear()

    # Pages

    def action_show_page(self, name: str) -> None:
        """One of the pages."""
        self.page, self.pair = Page(name), None
        self.hints.clear()
        self.mast.when_ready(self.count_for_page)
        self.show_page()

    def action_across(self, delta: int) -> None:
        """Another column of the matrix."""
        if self._is_matrix:
            self.main_list.move_across(delta)
        else:
            self.hints.say("Columns are chosen among pairs: 3 shows them")

    def action_back(self) -> None:
        """From two people to the matrix of all, else to where one came from."""
        if self.pair is None:
            super().action_back()
            return
        self.pair = None
        self.show_page()

    # What stands behind a figure

    def action_open(self) -> None:
        """The traces behind the row under the cursor, or the figures of the pair."""
        from mast_tui.ui.agreement_pairs import pair_of

        if self.has_class("-empty"):
            return
        pair, report = self._chosen_pair() if self._is_matrix else None, self.report
        if pair is not None and report is not None:
            found = pair_of(report, *pair)
            if found is None:
                self.hints.say("Choose another column: nobody is compared with themselves here")
                return
            self.pair = found
            self.show_page()
            return
        row = self._row()
        if row is None or not row.modes:
            self.hints.say("No list of traces stands behind this row: choose a mode or a total")
            return
        self._open_behind(row)

    def _open_behind(self, row: PageRow) -> None:
        from mast_tui.ui.screens.agreement_traces import AgreementTracesScreen

        self._away = True
        screen = AgreementTracesScreen(row.title, partial(self._behind, row.modes))
        self.app.push_screen(screen)

    def _behind(self, modes: Sequence[str]) -> Cases | None:
        """What stands behind the figures of some modes on the open page; for a worker."""
        from mast_tui.ui.agreement_behind import behind_judge, behind_people, behind_spans
        from mast_tui.ui.agreement_pairs import pair_names

        if self.page is Page.JUDGE:
            judge = self.judge
            if judge is None or judge.given is None or judge.found is None:
                return None
            return behind_judge(judge.given, judge.found, modes)
        if self.page is Page.SPANS:
            given = self.spans.given if self.spans is not None else None
            return None if given is None else behind_spans(given, modes)
        figures = self.figures
        if figures is None or figures.study is None or figures.report is None:
            return None
        pair = None if self.pair is None else pair_names(figures.report, self.pair)
        return behind_people(figures.study, modes, pair)

    def action_adjudicate(self) -> None:
        """Settle the disagreements on the mode under the cursor."""
        row = self._row()
        if row is None or len(row.modes) != 1 or self.has_class("-empty"):
            self.hints.say("Choose a mode: totals have no disagreements of their own")
            return
        from mast_tui.ui.screens.adjudicate import AdjudicateScreen

        self._away = True
        self.app.push_screen(AdjudicateScreen(mode=row.modes[0]))
