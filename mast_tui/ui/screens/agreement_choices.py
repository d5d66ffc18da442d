"""What the agreement screen is asked to count: which pass, whose traces, which judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mast_tui.ui.agreement_figures import JudgeChoice
from mast_tui.ui.screens.agreement_counting import Counting, Page
from mast_tui.ui.services.writes import writes

if TYPE_CHECKING:
    from mast_tui.ui.desk import Desk


class Choices(Counting):
    """The keys that count something else."""

    def start(self, desk: Desk) -> None:
        """Count, or count anew."""
        if self.figures is None:
            self.show_words("Counting verdicts …")
        self.count_anew(desk)

    def action_passes(self) -> None:
        """Count first passes, or last ones."""
        self.passes = "first" if self.passes == "last" else "last"
        self.mast.when_ready(self.start)

    def action_judge(self, step: int) -> None:
        """Another judge."""
        judge = self.judge
        if self.page is not Page.JUDGE or judge is None:
            self.hints.say("Judges have a page of their own: 5 shows it")
        elif len(judge.judges) < 2:
            self.hints.say("There is no other judge here")
        else:
            here = self.choice.judge or judge.judges[0]
            place = judge.judges.index(here) if here in judge.judges else 0
            chosen = judge.judges[(place + step) % len(judge.judges)]
            self._choose(replace(self.choice, judge=chosen))

    def action_against(self) -> None:
        """Hold the judge against gold, then against each person in turn."""
        judge = self.judge
        if self.page is not Page.JUDGE or judge is None:
            self.hints.say("Judges have a page of their own: 5 shows it")
        elif len(judge.references) < 2:
            self.hints.say("Nobody has finished a trace yet: there is nobody to hold it against")
        else:
            here = self.choice.against or judge.references[0]
            place = judge.references.index(here) if here in judge.references else 0
            chosen = judge.references[(place + 1) % len(judge.references)]
            self._choose(replace(self.choice, against=chosen))

    def action_seen(self) -> None:
        """Count also verdicts that came about with a judge on screen, or leave them out again."""
        if self.page is not Page.JUDGE:
            self.hints.say("Judges have a page of their own: 5 shows it")
            return
        self._choose(replace(self.choice, with_seen=not self.choice.with_seen))

    def _choose(self, choice: JudgeChoice) -> None:
        self.hints.prompt("Holding the judge against what people say …")
        self.mast.when_ready(lambda desk: self.choose(desk, choice))

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
                f"{count} trace{'' if count == 1 else 's'} that you may not look into yet",
                "As their adjudicator you will see what others said, and can no longer label "
                "them, or label them once more, without sight of it. This is recorded.",
                (("a", "see them as adjudicator"), ("n", "leave them out")),
                default="n",
            ),
            answered,
        )

    @writes
    def _look(self, desk: Desk) -> None:
        from mast_tui.adjudication import take_on

        hidden = self.figures.hidden if self.figures is not None else ()
        taken = self.mast.guarded(
            lambda: take_on(desk.workspace, desk.taxonomy, desk.annotator, hidden)
        )
        if taken is None:
            return
        self.start(desk)
        left = len(hidden) - len(taken)
        if left:
            self.notify(
                f"{left} trace{' is' if left == 1 else 's are'} left out: you have begun to label "
                f"{'it' if left == 1 else 'them'}; finish first",
                markup=False,
            )
