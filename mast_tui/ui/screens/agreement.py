"""The agreement screen: how far annotators agree on each mode, and what the figures say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.message import Message

from mast_tui.safe_text import one_line
from mast_tui.ui.actions import Where, bindings_for
from mast_tui.ui.agreement_figures import Figures, PassChoice, count_figures
from mast_tui.ui.agreement_rows import RowKind, explained, joined
from mast_tui.ui.screens.table_room import TableRoom
from mast_tui.ui.titles import plain_title
from mast_tui.ui.widgets.agreement_table import AgreementTable
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.ui.desk import Desk


class AgreementScreen(TableRoom):
    """Figures over the traces that this annotator may know about."""

    CSS_PATH = ["room.tcss", "agreement.tcss"]
    AUTO_FOCUS = "#table"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.AGREEMENT, Where.EVERYWHERE)
    where = Where.AGREEMENT

    @dataclass
    class Counted(Message):
        """The figures, and from which passes."""

        figures: Figures
        passes: PassChoice

    def __init__(self) -> None:
        super().__init__()
        self.passes: PassChoice = "first"
        self.figures: Figures | None = None

    def make_table(self) -> AgreementTable:
        """The modes."""
        return AgreementTable(id="table")

    @property
    def main_list(self) -> AgreementTable:
        """The modes."""
        return self.query_one(AgreementTable)

    def on_mount(self) -> None:
        """Count as soon as the workspace is open."""
        super().on_mount()
        self.mast.when_ready(self._start)

    # Counting

    def _start(self, desk: Desk) -> None:
        if self.figures is None:
            self.show_words("Counting verdicts …")
        self.hints.prompt("Counting verdicts …")
        self._count(desk, self.passes)

    @work(thread=True, group="agreement", exclusive=True)
    def _count(self, desk: Desk, passes: PassChoice) -> None:
        figures = count_figures(desk.workspace, desk.taxonomy, desk.annotator, passes)
        self.post_message(self.Counted(figures, passes))

    def on_agreement_screen_counted(self, message: Counted) -> None:
        """Show the figures."""
        if message.passes != self.passes:
            return
        self.figures = message.figures
        self.hints.clear()
        report = message.figures.report
        self.set_class(report is None, "-empty")
        if report is None:
            self.show_words(nothing_to_count(message.figures))
        else:
            self.main_list.show(report)
            self.main_list.focus()
            self._show_detail()
            if message.figures.hidden:
                self.hints.say(hidden_words(message.figures.hidden))
        self.show_title()

    # Showing

    def show_title(self) -> None:
        """What is open, and who works."""
        left = ["Agreement"]
        report = self.figures.report if self.figures is not None else None
        if report is not None:
            left.append(joined([one_line(name) for name in report["annotators"]]))
            left.append(f"{self.passes} pass")
            done = report["traces"]["finished_by_all"]
            left.append(f"{done} trace{'' if done == 1 else 's'} finished by all")
        self.title_bar.show(tuple(left), self.who())

    def _show_detail(self) -> None:
        row = self.main_list.row
        report = self.figures.report if self.figures is not None else None
        if row is None or report is None:
            return
        self.detail.border_title = plain_title(f"{row.code} {row.name}".strip())
        enter = row.kind is RowKind.MODE
        self.detail.border_subtitle = plain_title("Enter: its disagreements") if enter else None
        self.detail.show_text(explained(report, row))

    @on(VirtualLines.Moved, "#table")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._show_detail()
        self.hints.clear()

    @on(VirtualLines.Chosen, "#table")
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open()

    # Keys

    def action_open(self) -> None:
        """The disagreements on the mode under the cursor."""
        row = self.main_list.row
        if row is None or row.slug is None:
            self.hints.say("Totals have no disagreements of their own: choose a mode")
            return
        from mast_tui.ui.screens.adjudicate import AdjudicateScreen

        self.app.push_screen(AdjudicateScreen(mode=row.slug))

    def action_passes(self) -> None:
        """Count first passes, or last ones."""
        self.passes = "first" if self.passes == "last" else "last"
        self.mast.when_ready(self._start)

    def action_look(self) -> None:
        """Count also traces that only others have finished, as their adjudicator."""
        figures = self.figures
        if figures is None:
            return
        if not figures.hidden:
            self.hints.say("All traces that two people have finished are counted already")
            return
        from mast_tui.ui.screens.ask import Ask

        def answered(answer: str | None) -> None:
            if answer == "a":
                self.mast.when_ready(self._look)

        count = len(figures.hidden)
        self.app.push_screen(
            Ask(
                f"{count} trace{'' if count == 1 else 's'} that you have not labelled",
                "As their adjudicator you will see what others said, and can no longer label "
                "them independently. This is recorded.",
                (("a", "see them as adjudicator"), ("n", "leave them out")),
                default="n",
            ),
            answered,
        )

    def _look(self, desk: Desk) -> None:
        from mast_tui.adjudication import take_on

        hidden = self.figures.hidden if self.figures is not None else ()
        taken = self.mast.guarded(
            lambda: take_on(desk.workspace, desk.taxonomy, desk.annotator, hidden)
        )
        if taken is None:
            return
        self._start(desk)
        left = len(hidden) - len(taken)
        if left:
            self.notify(
                f"{left} trace{' is' if left == 1 else 's are'} left out: you have begun to label "
                f"{'it' if left == 1 else 'them'}; finish first",
                markup=False,
            )


def hidden_words(hidden: Sequence[str]) -> str:
    """That traces are left out, and how they can be counted."""
    count = len(hidden)
    if count == 1:
        return "1 trace left out, finished by others only · o counts it as adjudicator"
    return f"{count} traces left out, finished by others only · o counts them as adjudicator"


def nothing_to_count(figures: Figures) -> str:
    """Why there are no figures, and what to do."""
    if figures.problem is not None:
        return one_line(figures.problem)
    if figures.hidden:
        lines = ["You have finished no trace that somebody else has finished too."]
    else:
        lines = ["Agreement needs two people who have finished the same trace."]
    lines.append("")
    if figures.finished:
        lines += [
            f"{one_line(name)} has finished {count} trace{'' if count == 1 else 's'}."
            for name, count in figures.finished.items()
        ]
    else:
        lines.append("Nobody has finished a trace yet: D finishes the one that is open.")
    lines.append("")
    if figures.hidden:
        lines.append(f"{hidden_words(figures.hidden)}.")
        lines.append("mast-tui agree prints the figures of everybody.")
    else:
        lines.append("Others label in this workspace with: mast-tui --annotator NAME")
    return "\n".join(lines)
