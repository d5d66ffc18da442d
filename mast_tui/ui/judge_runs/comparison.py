"""Two runs of judges side by side, or one beside the gold: per mode, and trace by trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from mast_tui.gold.places import in_reading_order
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.judge_runs.run_comparison import Compared, compare_runs, compare_with_gold
from mast_tui.ui.screens.trace_opening import OpensTraces
from mast_tui.ui.styles import BASE_SCREEN, RUNS
from mast_tui.ui.suggestion_words import judge_name
from mast_tui.ui.titles import plain_title
from mast_tui.ui.widgets.column_table import ColumnTable
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.title_bar import TitleBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.gold import Order
    from mast_tui.judges.comparing import Case
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.workspace import Run

MOST_READ: Final = 60
"""Traces of one list that are read so that their places have numbers."""


class ComparisonScreen(OpensTraces):
    """Counts above, the traces behind the row under the cursor below."""

    CSS_PATH = [BASE_SCREEN, RUNS]
    AUTO_FOCUS = "#counts"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.COMPARISON, Where.EVERYWHERE)
    where = Where.COMPARISON

    @dataclass
    class Done(Message):
        """What came of comparing."""

        found: Compared

    @dataclass
    class PlacesKnown(Message):
        """Traces of the list have been read."""

        mode: str

    def __init__(self, first: Run, second: Run | None) -> None:
        """Without a ``second`` run it is the gold."""
        super().__init__()
        self._first = first
        self._second = second
        self._with_seen = False
        self._found: Compared | None = None

    @property
    def _gold(self) -> bool:
        return self._second is None

    def compose(self) -> ComposeResult:
        """The counts, and the traces behind them."""
        from mast_tui.ui.judge_runs import comparison_rows as rows

        columns = rows.GOLD_COLUMNS if self._gold else rows.RUN_COLUMNS
        case_columns = rows.GOLD_CASE_COLUMNS if self._gold else rows.CASE_COLUMNS
        yield TitleBar()
        with Vertical(classes="filled"):
            yield Static(id="about", markup=False)
            yield Static(id="counts-heading", classes="heading", markup=False)
            yield ColumnTable(columns, id="counts")
            yield Static(id="cases-heading", classes="heading", markup=False)
            yield ColumnTable(case_columns, id="cases")
        with Vertical(classes="words"):
            yield Static(id="words", markup=False)
        yield HintBar(self.where)

    @property
    def main_list(self) -> ColumnTable:
        """The counts."""
        return self.query_one("#counts", ColumnTable)

    @property
    def cases(self) -> ColumnTable:
        """The traces behind the row under the cursor."""
        return self.query_one("#cases", ColumnTable)

    def on_mount(self) -> None:
        """Compare as soon as the workspace is open."""
        self._show_words("Comparing …")
        self.show_title()
        self.mast.when_ready(self._start)

    def show_title(self) -> None:
        """What is compared, and who works."""
        first = judge_name(self._first.judge)
        second = "gold" if self._second is None else f"B {judge_name(self._second.judge)}"
        left = (first if self._gold else f"A {first}", f"beside {second}")
        self.title_bar.show(left, self.who())

    def _show_words(self, words: str) -> None:
        self.add_class("-empty")
        self.query_one("#words", Static).update(Content(words))

    # Comparing

    def _start(self, opened: OpenWorkspace) -> None:
        self._compare(opened, list(self.mast.catalog.traces.values()), self._with_seen)

    @work(thread=True, group="comparison", exclusive=True)
    def _compare(self, opened: OpenWorkspace, known: Sequence[Trace], with_seen: bool) -> None:
        if self._second is None:
            found = compare_with_gold(opened, self._first, known, with_seen=with_seen)
        else:
            found = compare_runs(opened, self._first, self._second, known)
        self.post_message(self.Done(found))

    def on_comparison_screen_done(self, message: Done) -> None:
        """Show what was found."""
        from mast_tui.ui.judge_runs.comparison_rows import about_words, count_rows, nothing_words

        found = self._found = message.found
        comparison = found.comparison
        nothing = comparison is None or not (found.traces and comparison.total.compared)
        if comparison is None or (nothing and not found.judge_seen):
            self._show_words(nothing_words(found, gold=self._gold))
            return
        self.remove_class("-empty")
        self.query_one("#about", Static).update(Content(about_words(found, gold=self._gold)))
        self.main_list.show(count_rows(comparison, self.mast.taxonomy))
        if self.focused is None:
            self.main_list.focus()
        self._show_cases()

    # Showing

    @property
    def _mode(self) -> str:
        """The mode of the row under the cursor, empty for all of them."""
        row = self.main_list.row
        return "" if row is None else row.id

    def _cases_here(self) -> list[Case]:
        comparison = self._found.comparison if self._found is not None else None
        if comparison is None:
            return []
        if self._mode:
            return list(comparison.cases.get(self._mode, ()))
        every = [case for cases in comparison.cases.values() for case in cases]
        return sorted(every, key=lambda case: not case.differs)

    def _show_cases(self, *, read: bool = True) -> None:
        from mast_tui.ui.judge_runs.comparison_rows import case_rows

        found = self._found
        if found is None or found.at_hand is None:
            return
        cases = self._cases_here()
        self.cases.show(
            case_rows(
                cases,
                self.mast.taxonomy,
                found.at_hand.name_of,
                found.at_hand.known_order,
                gold=self._gold,
                with_mode=not self._mode,
            )
        )
        row = self.main_list.row
        name = "" if row is None else f"{row.cells['code']} {row.cells['mode']}".strip()
        self.cases.border_title = plain_title(f"{name}: {len(cases)}" if cases else f"{name}: none")
        if read and cases:
            self._read_places(self._mode, [case.trace_id for case in cases[:MOST_READ]])

    @work(thread=True, group="places", exclusive=True)
    def _read_places(self, mode: str, trace_ids: list[str]) -> None:
        from textual.worker import get_current_worker

        from mast_tui.workspace import WorkspaceError

        worker, at_hand = get_current_worker(), self._found.at_hand if self._found else None
        wanted = [one for one in dict.fromkeys(trace_ids) if at_hand and not at_hand.is_known(one)]
        for trace_id in wanted:
            if worker.is_cancelled or at_hand is None:
                return
            try:
                at_hand.read(trace_id)
            except (WorkspaceError, OSError):
                return  # the places keep the names of their spans
        if wanted:
            self.post_message(self.PlacesKnown(mode))

    def on_comparison_screen_places_known(self, message: PlacesKnown) -> None:
        """Name the places by their numbers."""
        if message.mode == self._mode:
            self._show_cases(read=False)

    @on(ColumnTable.Fitted)
    def _fitted(self, event: ColumnTable.Fitted) -> None:
        event.stop()
        heading = self.query_one(f"#{event.table.id}-heading", Static)
        heading.update(Content(event.table.heading()))

    @on(VirtualLines.Moved, "#counts")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.hints.clear()
        self.cases.move_to(0)
        self._show_cases()

    @on(VirtualLines.Chosen)
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open()

    # Keys

    def action_open(self) -> None:
        """From the counts to the traces behind them, from there into the trace."""
        if self.pane is not self.cases:
            if self.cases.rows:
                self.cases.focus()
            else:
                self.hints.say("Neither has found this mode in any trace")
            return
        cases, found = self._cases_here(), self._found
        if cases and found is not None and found.at_hand is not None:
            case = cases[self.cases.cursor]
            self.open_at(evidence_of(case, found.at_hand.known_order(case.trace_id)))

    def action_pane(self) -> None:
        """The other list."""
        if self.pane is self.cases or not self.cases.rows:
            self.main_list.focus()
        else:
            self.cases.focus()

    def action_back(self) -> None:
        """From the traces to the counts, then to the runs."""
        if self.focused is self.cases:
            self.main_list.focus()
        else:
            super().action_back()

    def action_seen(self) -> None:
        """Count also what was settled with a judge on screen, or leave it out again."""
        if not self._gold:
            self.hints.say("Here judges are compared, not people")
        elif self._found is not None and not self._found.judge_seen:
            self.hints.say("No verdict was settled with a judge on screen")
        else:
            self._with_seen = not self._with_seen
            self.mast.when_ready(self._start)


def evidence_of(case: Case, order: Order) -> TraceLocation:
    """Where to look: at what the first says, else at what only the second does."""
    marks = in_reading_order(case.first or case.second, lambda mark: mark.target, order)
    if not marks:
        return TraceLocation(case.trace_id)
    return TraceLocation(case.trace_id, suggestion=marks[0].label, key=marks[0].target.first)
