"""What the agreement screen counts, and when: a page's figures when it is first looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from textual import work
from textual.message import Message
from textual.worker import get_current_worker

from mast_tui.safe_text import one_line
from mast_tui.ui.agreement_figures import (
    Figures,
    JudgeChoice,
    JudgeFigures,
    LeftError,
    PassChoice,
    SpanFigures,
    count_figures,
    count_judge,
    count_spans,
)
from mast_tui.ui.screens.opening import OpensTraces
from mast_tui.ui.screens.paged_room import PagedRoom

if TYPE_CHECKING:
    from mast_tui.ui.desk import Desk


class Page(StrEnum):
    """What the screen can show."""

    MODES = "modes"
    CATEGORIES = "categories"
    PAIRS = "pairs"
    SPANS = "spans"
    JUDGE = "judge"


OF_PEOPLE = (Page.MODES, Page.CATEGORIES, Page.PAIRS)


class Counting(PagedRoom, OpensTraces):
    """Keeps the figures that were counted; what comes from a counting that was begun anew since
    is passed over."""

    @dataclass
    class Counted(Message):
        """Figures of people, of places or of a judge, and the counting that they come from."""

        turn: int
        figures: Figures | SpanFigures | JudgeFigures

    def __init__(self) -> None:
        super().__init__()
        self.page = Page.MODES
        self.passes: PassChoice = "first"
        self.choice = JudgeChoice()
        self.figures: Figures | None = None
        self.spans: SpanFigures | None = None
        self.judge: JudgeFigures | None = None
        self._turn = 0
        self._spans_turn = 0
        self._judge_turn = 0

    def show_page(self) -> None:
        """Show what is known of the open page."""
        raise NotImplementedError

    def told(self, figures: Figures) -> None:
        """The first figures are there."""
        raise NotImplementedError

    def count_anew(self, desk: Desk) -> None:
        """Count everything again, the open page first."""
        self._turn += 1
        self.spans = None
        self._judge_turn += 1
        self.judge = None
        self.hints.prompt("Counting verdicts …")
        self._count(desk, self._turn, self.passes)
        if self.page is Page.JUDGE:
            self.count_for_page(desk)

    def count_for_page(self, desk: Desk) -> None:
        """Count what the open page needs and what is not under way already."""
        if self.page is Page.SPANS and self.figures is not None and self.spans is None:
            self.spans = SpanFigures(pending=True)
            self._spans_turn = self._turn
            self._count_spans(desk, self._turn, self.figures, self.passes)
        elif self.page is Page.JUDGE and self.judge is None:
            self.judge = JudgeFigures(pending=True)
            self._count_judge(desk, self._judge_turn, self.choice, self.passes)

    def count_what_changes(self, desk: Desk) -> None:
        """Count again what new decisions and second looks change; first passes stay as they are."""
        if self.passes == "last":
            self.count_anew(desk)
            return
        self._judge_turn += 1
        if self.page is Page.JUDGE:
            self._count_judge(desk, self._judge_turn, self.choice, self.passes)
        else:
            self.judge = None

    def choose(self, desk: Desk, choice: JudgeChoice) -> None:
        """Hold another judge against something, or the same against something else."""
        self.choice = choice
        self._judge_turn += 1
        known = self.judge
        self.judge = JudgeFigures(pending=True)
        if known is not None:
            # Who there is stays known, so that keys pressed meanwhile choose among them.
            self.judge = replace(self.judge, judges=known.judges, references=known.references)
        self._count_judge(desk, self._judge_turn, choice, self.passes)

    @work(thread=True, group="people", exclusive=True)
    def _count(self, desk: Desk, turn: int, passes: PassChoice) -> None:
        worker = get_current_worker()
        for figures in count_figures(desk, passes):
            if worker.is_cancelled:
                return
            self.post_message(self.Counted(turn, figures))

    @work(thread=True, group="spans", exclusive=True)
    def _count_spans(self, desk: Desk, turn: int, known: Figures, passes: PassChoice) -> None:
        worker = get_current_worker()
        try:
            for figures in count_spans(desk, known, passes, lambda: worker.is_cancelled):
                if worker.is_cancelled:
                    return
                self.post_message(self.Counted(turn, figures))
        except LeftError:
            return

    @work(thread=True, group="judge", exclusive=True)
    def _count_judge(self, desk: Desk, turn: int, choice: JudgeChoice, passes: PassChoice) -> None:
        worker = get_current_worker()
        try:
            for figures in count_judge(desk, choice, passes, lambda: worker.is_cancelled):
                if worker.is_cancelled:
                    return
                self.post_message(self.Counted(turn, figures))
        except LeftError:
            return

    def on_counting_counted(self, message: Counted) -> None:
        """Take in the figures, and show them where their page is open."""
        found = message.figures
        if isinstance(found, Figures):
            if message.turn == self._turn:
                self._take_in(found)
        elif isinstance(found, SpanFigures):
            if message.turn == self._turn:
                self.spans = found
                if self.page is Page.SPANS:
                    self.show_page()
        elif message.turn == self._judge_turn:
            self.judge = found
            if self.page is Page.JUDGE:
                self.hints.clear()
                self.show_page()

    def _take_in(self, figures: Figures) -> None:
        self.figures = figures
        self.hints.clear()
        if self.page in OF_PEOPLE:
            self.show_page()
        elif self.page is Page.SPANS and self.mast.desk is not None:
            self.count_for_page(self.mast.desk)
        self.told(figures)


def hidden_words(count: int) -> str:
    """That traces are left out, and how they can be counted.

    Some may be finished by their annotator and come back to be labelled once more, so it is not
    said that they are not.
    """
    if count == 1:
        return "1 trace left out that you may not look into yet · o counts it as adjudicator"
    return f"{count} traces left out that you may not look into yet · o counts them as adjudicator"


def nothing_to_count(figures: Figures) -> str:
    """Why there are no figures of people, and what to do."""
    if figures.problem is not None:
        return one_line(figures.problem)
    if figures.hidden:
        lines = ["No trace that somebody else has finished is yours to look into yet."]
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
        lines.append(f"{hidden_words(len(figures.hidden))}.")
    else:
        lines.append("Others label in this workspace with: mast-tui --annotator NAME")
    return "\n".join(lines)


def nothing_of_spans(spans: SpanFigures | None) -> str:
    """Why there are no figures on places, and what to do; empty where there are some."""
    if spans is not None and spans.problem is not None:
        return one_line(spans.problem)
    if spans is None or spans.report is None:
        return "Reading the traces and counting places …"
    traces = spans.report["traces"]
    if traces["compared"]:
        return ""
    count = traces["not_at_hand"]
    return (
        f"No places can be compared: of {count} trace{'' if count == 1 else 's'} that two people "
        "have finished no file is where it was last seen.\n\nOpen the folder that holds them with "
        "mast-tui FOLDER, and come back here."
    )


def nothing_of_judge(judge: JudgeFigures) -> str:
    """Why there is nothing to say of a judge, and what to do; empty where there is something."""
    if judge.problem is not None:
        return one_line(judge.problem)
    if not judge.judges:
        return (
            "No judge has looked at a trace here.\n\nJ in the library runs one on the traces that "
            "are listed; mast-tui judge runs it without the app."
        )
    report = judge.report
    if report is None:
        return "Holding the judge against what people say …"
    held = report["withheld"]
    withheld = 0 if held is None else sum(held["passes"].values())
    if report["pooled"]["n"] or report["answers"]["n"] or withheld:
        return ""
    against = one_line(report["against"])
    seen = report["left_out"]["judge_seen"]
    lines = [f"{one_line(report['judge'])} cannot be held against {against} yet.", ""]
    if seen and not report["judge_seen_counted"]:
        lines.append(
            f"{seen} verdicts came about with a judge on screen, and are left out: s counts them "
            "all the same."
        )
    else:
        lines.append(
            "That needs traces that it has judged and that you have finished or adjudicated, "
            f"with a verdict of {against}."
        )
    lines += ["", "c holds it against somebody else · ] takes another judge"]
    return "\n".join(lines)
