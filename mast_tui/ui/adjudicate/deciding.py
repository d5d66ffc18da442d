"""Deciding conflicts, and what goes with a decision: a reason, the judge's word, taking it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from textual.app import App

from mast_tui.adjudication import Adjudication
from mast_tui.gold import Conflict, ConflictKind, Decision
from mast_tui.gold.choice import NOBODY, UNSURE, Choice, elsewhere, take_all, take_side
from mast_tui.labels import JUDGE_PREFIX, WHOLE_TRACE, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.ui.adjudicate.evidence import Evidence
from mast_tui.ui.adjudicate.items import Cases, ItemView, Names, TraceItems, judge_views, mode_words
from mast_tui.ui.adjudicate.queue import Queue
from mast_tui.ui.context import AppContext
from mast_tui.ui.dialogs.finder import ModeFinder
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.wording import place_words
from mast_tui.writes import Writes
from mast_tui.writes import writes as in_turn

Result = TypeVar("Result")


class Host(Protocol):
    """The screen on which one decides."""

    @property
    def app(self) -> App[object]:
        """Where dialogs open."""

    @property
    def mast(self) -> AppContext:
        """The app, with what it shares."""

    @property
    def hints(self) -> HintBar:
        """The last line."""

    def attempt(self, step: Callable[[], Result]) -> Result | None:
        """Do ``step``; what cannot be done is said in words."""

    def tell(self, words: str) -> None:
        """Say what was done; it stays although the cursor goes on."""

    def show_title(self) -> None:
        """Show how much is left."""

    def show_row(self) -> None:
        """Show what is under the queue's cursor."""

    def go_to_open(self) -> bool:
        """Put the cursor on the next conflict that is left; False where there is none."""

    def take_on(self, trace_id: str) -> None:
        """Ask whether to see what others say of a trace."""


class Deciding:
    """Every decision is on disk before the screen shows it and goes on to the next conflict.

    ``last`` are the trace and the items that were decided last.
    """

    def __init__(self, host: Host, queue: Queue, evidence: Evidence) -> None:
        """Begin with nothing decided.

        Args:
            host: The screen.
            queue: Where what is decided is listed.
            evidence: Where boundaries are moved.
        """
        self.last: tuple[str, tuple[str, ...]] | None = None
        self.count = 0
        """How often something was decided or taken back."""
        self._host = host
        self._queue = queue
        self._evidence = evidence
        self._adjudications: dict[str, Adjudication] = {}
        self._decided_in: list[str] = []
        self._undone_in: list[str] = []

    @property
    def writes(self) -> Writes:
        """What is written to the workspace, in order."""
        return self._host.mast.writes

    def read_anew(self) -> None:
        """Work on what the workspace says now."""
        self._adjudications.clear()

    def _adjudication(self, trace_id: str) -> Adjudication | None:
        """The adjudicator's work on a trace; None, with the reason on screen, where it is barred
        or the trace is still being read."""
        known = self._adjudications.get(trace_id)
        opened, at_hand = self._host.mast.opened, self._queue.cases.at_hand
        if known is not None or opened is None or at_hand is None:
            return known
        if not at_hand.is_known(trace_id):
            self._host.hints.say("The trace is still being read; press the key again in a moment")
            return None
        adjudication = self._host.attempt(
            lambda: Adjudication(
                opened.workspace,
                opened.taxonomy,
                trace_id,
                opened.annotator,
                order=at_hand.known_order(trace_id),
            )
        )
        if adjudication is not None:
            self._adjudications[trace_id] = adjudication
        return adjudication

    def _here(self) -> tuple[Adjudication, Conflict] | None:
        """What a key decides about; None, with the reason on screen, where there is nothing."""
        row, items = self._queue.row, self._queue.items_here
        if row is None:
            return None
        if items is None:
            self._host.take_on(row.trace_id)
            return None
        if row.item is None:
            self._host.hints.say("Choose a conflict of this trace: ↓, or ] for the next one")
            return None
        conflict = items.conflict(row.item)
        work = self._adjudication(row.trace_id)
        return None if work is None or conflict is None else (work, conflict)

    def can_decide(self) -> bool:
        """Whether there is something to decide under the cursor; why not is said on screen."""
        return self._here() is not None

    def _mode_words(self, slug: str) -> str:
        return " ".join(mode_words(self._host.mast.taxonomy, slug))

    def news_in(self, cases: Cases) -> str:
        """What others have decided since the last look, in words; most of all where one has decided
        otherwise."""
        opened = self._host.mast.opened
        me = None if opened is None else opened.annotator
        news, differing = list[str](), list[str]()
        for trace_id, items in cases.items.items():
            known = self._queue.items.get(trace_id)
            before = {} if known is None else {one.item: one for one in known.decisions}
            for one in items.decisions if known is not None else ():
                was = before.get(one.item)
                if one == was or one.decided_by == me:
                    continue
                words = f"{one_line(one.decided_by)} has decided {self._mode_words(one.mode)}"
                here = "" if self._queue.is_here(trace_id, one.item) else self._name_of(trace_id)
                words = f"{words}{here}: {one.value.value}"
                mine = was if was is not None and was.decided_by == me else one
                if (mine.value, mine.targets) != (one.value, one.targets):
                    differing.append(f"{words}, otherwise than you, and that stands")
                else:
                    news.append(words)
        more = len(news) + len(differing) - 1
        first = next(iter((*differing, *news)), "")
        return f"{first} · {more} more" if more > 0 else first

    def _name_of(self, trace_id: str) -> str:
        return f" on {one_line(self._queue.name_of(trace_id), 40)}"

    def _show(self, work: Adjudication) -> None:
        """Show what a trace has become."""
        self.count += 1
        self._queue.take_over(work)
        self._host.show_title()

    # Deciding

    def take_side(self, number: int) -> None:
        """Take the side with this number."""

        def choose(conflict: Conflict) -> Choice | str:
            items = self._queue.items_here
            side = items.side(conflict, number) if items is not None else None
            if side is None:
                return f"There is no side {number}: there are {len(conflict.said)}"
            return take_side(conflict, side)

        self._decide(choose)

    def take_both(self) -> None:
        """Keep everything that was marked."""
        self._decide(
            lambda conflict: (
                take_all(conflict, self._evidence.index_of)
                or "No side says present, so there is nothing to keep: a side, 0 or _"
            )
        )

    def take_nobody(self) -> None:
        """The mode is absent, or the place is none."""
        self._decide(lambda _: NOBODY)

    def leave_unsure(self) -> None:
        """It stays unsure."""
        self._decide(
            lambda conflict: (
                "A place is taken or not: a side, b both, 0 none, e moves it"
                if conflict.kind is ConflictKind.PLACE
                else UNSURE
            )
        )

    def take_boundary(self) -> None:
        """It shows within the boundary that is moved."""
        target, index_of = self._evidence.boundary(), self._evidence.index_of
        if target is not None:
            self._decide(lambda conflict: elsewhere(conflict, target, index_of), overrules=True)

    def overrule(self) -> None:
        """What was agreed to be present is absent; else it shows in the whole trace."""
        row, items = self._queue.row, self._queue.items_here
        agreed = items.agreed(row.item) if items and row and row.item is not None else None
        if agreed is None:
            self._host.hints.say("x overrules what was agreed: v lists that")
            return
        present = agreed.value is VerdictValue.PRESENT
        choice = NOBODY if present else Choice(VerdictValue.PRESENT, (WHOLE_TRACE,))
        self._decide(lambda _: choice, overrules=True)

    @in_turn
    def _decide(
        self, choose: Callable[[Conflict], Choice | str], *, overrules: bool = False
    ) -> None:
        """Decide the conflict under the cursor and go on; a string says why it cannot be.

        What was agreed stays so unless it is overruled.
        """
        here = self._here()
        if here is None:
            return
        work, conflict = here
        choice = choose(conflict)
        if isinstance(choice, str):
            self._host.hints.say(choice, error=True)
            return
        agreed = self._queue.items[work.trace_id].agreed(conflict.id)
        if agreed is not None and not overrules:
            self._host.hints.say("The sides agree here: x overrules them, e names another place")
            return
        if self._host.attempt(lambda: work.decide(conflict, choice)) is not None:
            words = self._words(conflict, choice)
            self._decided(work, (conflict.id,), words, looking=agreed is not None)

    def choose_other_mode(self) -> None:
        """It is another mode, at the same place."""
        here = self._here()
        if here is None:
            return
        work, conflict = here

        def found(slug: str | None) -> None:
            if slug is not None:
                self._decide_other_mode(work, conflict, slug)

        self._host.app.push_screen(ModeFinder(self._host.mast.taxonomy), found)

    @in_turn
    def _decide_other_mode(self, work: Adjudication, conflict: Conflict, slug: str) -> None:
        made = self._host.attempt(lambda: work.another_mode(conflict, slug))
        if made is not None:
            self._decided(work, tuple(d.item for d in made), f"It is {self._mode_words(slug)}")

    @in_turn
    def confirm(self) -> None:
        """Decide again as it stands where a side has changed since."""
        here = self._here()
        if here is None:
            return
        work, conflict = here
        items = self._queue.items[work.trace_id]
        decision = items.decision(conflict.id)
        if decision is None:
            self._host.hints.say("Nothing is decided here yet: there is nothing to confirm")
        elif not items.has_changed(decision):
            self._host.hints.say("No side has changed since: the decision stands as it is")
        elif self._host.attempt(lambda: work.confirm(conflict.id)) is not None:
            words = f"{self._mode_words(conflict.mode)}: confirmed"
            self._decided(work, (conflict.id,), words)

    def _decided(
        self, work: Adjudication, items: tuple[str, ...], words: str, *, looking: bool = False
    ) -> None:
        """Show what was decided, ask why where a study wants to know, and go on.

        ``looking`` through what was agreed goes on to the next row, else to the next conflict.
        """
        self._decided_in.append(work.trace_id)
        self._undone_in.clear()
        self.last = (work.trace_id, items)
        self._evidence.range_from = None
        self._show(work)
        self._queue.lines.focus()
        self._host.hints.clear()
        study = self._queue.cases.study
        if study is not None and study.reasons:
            self._ask_reason(work, items, lambda: self._go_on(words, looking))
        else:
            self._go_on(words, looking)

    def _go_on(self, words: str, looking: bool) -> None:
        if looking:
            self._queue.lines.move_by(1)
            self._host.tell(words)
            return
        more = self._host.go_to_open()
        if not more:
            self._host.show_row()
        to_go = self._to_go() if more else "nothing left to decide"
        self._host.tell(f"{words} · {to_go}")

    def _to_go(self) -> str:
        left = self._queue.left()
        if left:
            return f"{left} to go"
        return f"{self._queue.done()[1]} to look at again: a side has changed since"

    def _words(self, conflict: Conflict, choice: Choice) -> str:
        if conflict.kind is ConflictKind.PLACE:
            taken = choice.value is VerdictValue.PRESENT
            what = "place taken" if taken else "place dropped"
        else:
            what = choice.value.value
        index_of = self._evidence.index_of
        places = [place_words(target, index_of, quoted=False) for target in choice.targets]
        more = " …" if len(places) > 3 else ""
        at = "in" if any(target.is_whole for target in choice.targets[:1]) else "at"
        where = f" {at} {', '.join(places[:3])}{more}" if places else ""
        items = self._queue.items_here
        names = items.names if items is not None else Names()
        by = f", as {', '.join(names.joined(choice.sides))}" if choice.sides else ""
        return f"{self._mode_words(conflict.mode)}: {what}{where}{by}"

    # Reasons

    @in_turn
    def say_why(self) -> None:
        """Write why the item under the cursor was decided so, else why the last one was."""
        row, thing = self._queue.row, self._queue.item_here
        if row is not None and isinstance(thing, Decision):
            about: tuple[str, tuple[str, ...]] = row.trace_id, (thing.item,)
        elif self.last is not None:
            about = self.last
        else:
            self._host.hints.say("A reason belongs to a decision: decide first, then m says why")
            return
        trace_id, decided = about
        work = self._adjudication(trace_id)
        if work is None:
            return
        if not _standing(work, decided):
            self._host.hints.say("A reason belongs to a decision, and the last one was taken back")
            return

        def shown() -> None:
            self._host.hints.clear()
            self._host.show_row()

        self._ask_reason(work, decided, shown)

    def _ask_reason(
        self, work: Adjudication, items: tuple[str, ...], then: Callable[[], None]
    ) -> None:
        """Ask on a line of its own; Escape leaves the decision as it is. ``then`` goes on."""
        found = _standing(work, items)
        if not found:
            then()
            return

        def written(text: str | None) -> None:
            if text is not None:
                self._explain(work, found, text, then)
            else:
                then()

        decision = next(one for one in work.decisions if one.item == found[0])
        self._host.app.push_screen(
            NoteScreen(
                f"Why? {self._mode_words(decision.mode)}: {decision.value.value}",
                decision.reason,
                hint="Enter keeps it · Esc leaves the decision without a word",
            ),
            written,
        )

    @in_turn
    def _explain(
        self, work: Adjudication, items: list[str], text: str, then: Callable[[], None]
    ) -> None:
        self._host.attempt(partial(work.explain, items, text))
        self._show(work)
        then()

    # The judge

    @property
    def _judge_first(self) -> bool:
        study = self._queue.cases.study
        return study is not None and study.judge_first

    def records_sight(self, items: TraceItems, item: str) -> bool:
        """Whether showing an item can show a judge's word, which is written down first."""
        is_open = isinstance(items.find(item), Conflict)
        return not self._queue.is_reading and (self._judge_first or not is_open)

    def view_of(self, items: TraceItems, item: str) -> ItemView | None:
        """The sides of an item, and the judge's word where it was asked for, or comes first."""
        view = items.view(item)
        conflict = items.conflict(item)
        if view is None or conflict is None or not self.records_sight(items, item):
            return view
        work = self._adjudication(items.trace_id)
        if work is None or not (self._judge_first or work.judge_shown(conflict.mode)):
            return view
        words = self._host.attempt(lambda: work.judge_words(conflict.mode))
        return replace(view, sides=(*view.sides, *judge_views(words or (), items.order)))

    @in_turn
    def ask_judge(self) -> None:
        """The judge's word on the mode under the cursor, else on the one decided last."""
        row, items = self._queue.row, self._queue.items_here
        if row is None or items is None:
            return
        open_here = row.item is None or isinstance(items.find(row.item), Conflict)
        first = self._judge_first
        if open_here and not first and not self._go_to_last():
            self._host.hints.say("The judge's word comes after the decision")
            return
        if self._queue.row is None or self._queue.row.item is None:
            return
        here = self._here()
        if here is None:
            return
        work, conflict = here
        if any(one.mode == conflict.mode for one in work.gold.conflicts) and not first:
            self._host.hints.say(
                "Something is open about this mode: the judge's word comes after it"
            )
            return
        words = self._host.attempt(lambda: work.judge_words(conflict.mode))
        if words is None:
            return
        if work.workspace.away:
            self._host.hints.say("What judges say is on the server, which is away", error=True)
            return
        self._host.show_row()
        names = ", ".join(one_line(one.judge.removeprefix(JUDGE_PREFIX), 24) for one in words)
        self._host.tell(
            f"{names}: what is decided about this mode from now on was decided in its sight"
            if words
            else "No judge has looked at this mode here"
        )

    def _go_to_last(self) -> bool:
        """Put the cursor on what was decided last; False where that is not listed."""
        if self.last is None:
            return False
        trace_id, decided = self.last
        items = self._queue.items.get(trace_id)
        if items is None or items.decision(decided[0]) is None:
            return False
        if not self._queue.go_to(trace_id, decided[0]):
            return False
        self._host.show_row()
        return True

    # Taking back

    def undo(self) -> None:
        """Take back the last decision of this sitting, else the last one on this trace."""
        self._step(self._decided_in, self._undone_in, back=True)

    def redo(self) -> None:
        """Decide again what was taken back."""
        self._step(self._undone_in, self._decided_in, back=False)

    @in_turn
    def _step(self, from_: list[str], to: list[str], *, back: bool) -> None:
        here = self._queue.items_here
        for trace_id in from_[-1:] or ([here.trace_id] if here is not None else []):
            work = self._adjudication(trace_id)
            step = None if work is None else work.undo if back else work.redo
            changed = self._host.attempt(step) if step is not None else None
            if work is None or changed is None:
                return
            if from_:
                from_.pop()
            if changed:
                to.append(trace_id)
                self._stepped(work, changed, back=back)
                return
        self._host.hints.say(
            "Nothing to take back on this trace" if back else "Nothing to decide again"
        )

    def _stepped(self, work: Adjudication, changed: tuple[str, ...], *, back: bool) -> None:
        self._evidence.range_from = None
        self._show(work)
        self._queue.go_to(work.trace_id, changed[0])
        self._host.show_row()
        self._host.tell("Taken back: decide it anew, or U does it again" if back else "Done again")


def _standing(work: Adjudication, items: tuple[str, ...]) -> list[str]:
    """Those of the items on which a decision stands."""
    standing = {decision.item for decision in work.decisions}
    return [item for item in items if item in standing]
