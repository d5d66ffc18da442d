"""Choosing what the signatures screen counts: whose labels, by which field, which group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import TYPE_CHECKING

from textual import work
from textual.message import Message
from textual.worker import get_current_worker

from mast_tui.safe_text import one_line
from mast_tui.ui.screens.finder import Choice as Listed
from mast_tui.ui.screens.paged_room import PagedRoom
from mast_tui.ui.screens.signature_opening import OpensFailing
from mast_tui.ui.services.writes import writes
from mast_tui.ui.signature_figures import (
    FIELDS,
    Choice,
    KnownPlaces,
    LeftError,
    Signatures,
    count_signatures,
)
from mast_tui.ui.signature_words import counted, hidden_words, whose_words

if TYPE_CHECKING:
    from mast_tui.ui.desk import Desk


class Choosing(OpensFailing, PagedRoom):
    """Counts what is chosen in a worker; subclasses show what comes of it."""

    @dataclass
    class Counted(Message):
        """Figures, for the choice that stands in them."""

        found: Signatures

    def __init__(self) -> None:
        super().__init__()
        self.choice = Choice()
        self.found: Signatures | None = None
        self.group = ""
        self._places = KnownPlaces()

    def show_page(self) -> None:
        """Show what is known of the open page."""
        raise NotImplementedError

    # Counting

    def count(self, desk: Desk) -> None:
        """Count what is chosen."""
        if self.found is None:
            self.show_words("Counting verdicts …")
        self.hints.prompt("Counting verdicts …")
        self._count(desk, self.choice)

    @work(thread=True, group="signatures", exclusive=True)
    def _count(self, desk: Desk, choice: Choice) -> None:
        worker = get_current_worker()
        try:
            for found in count_signatures(desk, choice, self._places, lambda: worker.is_cancelled):
                if worker.is_cancelled:
                    return
                self.post_message(self.Counted(found))
        except LeftError:
            return

    def on_choosing_counted(self, message: Counted) -> None:
        """Show the figures."""
        found = message.found
        known = self.found
        if found.choice != self.choice:
            return
        if (
            found.pending
            and known is not None
            and (known.choice, known.pending)
            == (
                found.choice,
                False,
            )
        ):
            # Counted again: until all of it is there, what stands there is nearer to the truth.
            return
        self.found = found
        if self.group not in found.groups:
            self.group = self._first_group(found)
        if found.pending:
            self.hints.prompt("Finding the places of labels, and resampling …")
        else:
            self.hints.clear()
            if found.hidden and found.groups:
                self.hints.say(self._left_out(found))
        self.show_page()

    def _first_group(self, found: Signatures) -> str:
        """The group with most traces that have failed."""
        if found.report is None or not found.groups:
            return ""
        groups = found.report["groups"]
        return max(groups, key=lambda name: (groups[name]["failed"], groups[name]["traces"]))

    def _left_out(self, found: Signatures) -> str:
        if found.choice.of_judge:
            return f"{counted(len(found.hidden), 'trace')} left out, hidden from you for now"
        return hidden_words(len(found.hidden))

    def _choose(self, choice: Choice) -> None:
        if choice != self.choice:
            self.choice = choice
            self.mast.when_ready(self.count)

    # Keys

    def action_group(self, step: int) -> None:
        """The next group, around the end."""
        groups = self.found.groups if self.found is not None else ()
        if not groups:
            self.hints.say("There is no group to choose")
            return
        if len(groups) < 2:
            self.hints.say("There is one group only; v groups by something else")
            return
        self.group = groups[(groups.index(self.group) + step) % len(groups)]
        self.hints.clear()
        self.show_page()

    def action_choose_group(self) -> None:
        """A group by its name."""
        found = self.found
        if found is None or found.report is None or not found.groups:
            self.hints.say("There is no group to choose")
            return
        tables = found.report["groups"]
        choices = [
            Listed(
                name,
                "",
                name,
                f"{counted(table['traces'], 'trace')}, {table['failed']:,} failed, "
                f"{table['succeeded']:,} succeeded",
            )
            for name, table in tables.items()
        ]

        def chosen(name: str) -> None:
            self.group = name
            self.show_page()

        self._ask(f"Signatures by {self.choice.by}", choices, "name", chosen)

    def _ask(
        self, title: str, choices: Sequence[Listed], hint: str, chosen: object, free: bool = False
    ) -> None:
        from mast_tui.ui.screens.finder import Finder

        def answered(value: str | None) -> None:
            if value is not None and callable(chosen):
                chosen(value)

        self.app.push_screen(Finder(title, choices, placeholder=hint, free=free), answered)

    def action_by(self) -> None:
        """Another field that tells groups apart."""
        place = FIELDS.index(self.choice.by)
        self._choose(replace(self.choice, by=FIELDS[(place + 1) % len(FIELDS)]))

    def action_labels(self) -> None:
        """Whose labels are counted."""
        if self.found is None:
            self.hints.prompt("Still counting; then w chooses")
            return
        choices = [Listed(name, "", name, whose_words(name)) for name in self.found.sources]
        self._ask(
            "Whose labels",
            choices,
            "gold, or a name",
            lambda name: self._choose(replace(self.choice, labels=name)),
        )

    def action_outcome(self) -> None:
        """Which score means failed, or none."""
        known = ("0.25", "0.5", "0.75", "1")
        choices = [
            Listed("", "", "as recorded", "the outcome that the traces carry"),
            *(
                Listed(value, "", f"below {value}", "has failed, any other score not")
                for value in known
            ),
        ]
        self._ask("Outcome", choices, "a score, or nothing", self._score, free=True)

    def _score(self, value: str) -> None:
        try:
            below = float(value) if value else None
        except ValueError:
            below = nan
        if below is not None and not isfinite(below):
            self.hints.say(f"{one_line(value, 20)} is no score: give a number", error=True)
            return
        self._choose(replace(self.choice, failed_below=below))

    def action_look(self) -> None:
        """Count also traces that only others have finished, as their adjudicator."""
        hidden = self.found.hidden if self.found is not None else ()
        if not hidden:
            self.hints.say("No trace is left out")
            return
        if self.choice.of_judge:
            self.hints.say("What a judge says of them is hidden from you for now")
            return
        from mast_tui.ui.screens.ask import Ask

        def answered(answer: str | None) -> None:
            if answer == "a":
                self.mast.when_ready(self._take_on)

        self.app.push_screen(
            Ask(
                f"{counted(len(hidden), 'trace')} that you have not labelled",
                "As their adjudicator you will see what others said, and can no longer label "
                "them independently. This is recorded.",
                (("a", "see them as adjudicator"), ("n", "leave them out")),
                default="n",
            ),
            answered,
        )

    @writes
    def _take_on(self, desk: Desk) -> None:
        from mast_tui.adjudication import take_on

        hidden = self.found.hidden if self.found is not None else ()
        taken = self.mast.guarded(
            lambda: take_on(desk.workspace, desk.taxonomy, desk.annotator, hidden)
        )
        if taken is None:
            return
        self.count(desk)
        left = len(hidden) - len(taken)
        if left:
            self.notify(
                f"{counted(left, 'trace')} left out: you have begun to label; finish first",
                markup=False,
            )
