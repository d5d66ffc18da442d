"""Deciding conflicts by key, moving boundaries, and taking decisions back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from textual import on

from mast_tui.errors import MastError
from mast_tui.gold import Conflict, ConflictKind
from mast_tui.gold.choice import NOBODY, UNSURE, Choice, elsewhere, take_all, take_side
from mast_tui.labels import Target, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.action import MOVE
from mast_tui.ui.adjudicate.cases import letters_of
from mast_tui.ui.adjudicate.items import TraceItems
from mast_tui.ui.adjudicate.names import Names
from mast_tui.ui.adjudicate.queue import Queue
from mast_tui.ui.adjudicate.rows import ItemView, judge_views, mode_words
from mast_tui.ui.place_words import place_words
from mast_tui.ui.services.workspace_writer import writes
from mast_tui.ui.widgets.sides_panel import SidesPanel
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.adjudication import Adjudication

Result = TypeVar("Result")

BOUNDARY_PROMPT = "boundary: move its end · e the other end · v begin here · Enter decides · Esc"

MOVING: Final = frozenset(
    f"adjudicate.{name}"
    for name in (
        *(name for name, *_ in MOVE),
        *("boundary", "agreed", "enter", "text_down", "text_up", "pane", "names"),
    )
) | {"everywhere.back", "everywhere.goto"}
"""Actions of keys that are known while a boundary is moved."""


class Deciding(Queue):
    """Every decision is on disk before the screen shows it and goes on to the next conflict."""

    def __init__(self, mode: str | None = None) -> None:
        super().__init__(mode)
        self._adjudications: dict[str, Adjudication] = {}
        self._decided_in: list[str] = []
        self._undone_in: list[str] = []
        self.last: tuple[str, tuple[str, ...]] | None = None
        """The trace and the items that were decided last."""

    # The core

    def adjudication(self, trace_id: str) -> Adjudication | None:
        """The adjudicator's work on a trace; None, with the reason on screen, where it is barred
        or the trace is still being read."""
        from mast_tui.adjudication import Adjudication

        known = self._adjudications.get(trace_id)
        opened = self.mast.opened
        at_hand = self.cases.at_hand if self.cases is not None else None
        if known is not None or opened is None or at_hand is None:
            return known
        if not at_hand.is_known(trace_id):
            self.hints.say("The trace is still being read; press the key again in a moment")
            return None
        adjudication = self.attempt(
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

    def attempt(self, step: Callable[[], Result]) -> Result | None:
        """Do ``step``; what cannot be done is said in words."""

        try:
            return self.mast.kept(step)
        except MastError as error:
            self.hints.say(one_line(str(error)), error=True)
            return None

    @property
    def _judge_first(self) -> bool:
        return self.study is not None and self.study.judge_first

    def records_sight(self, items: TraceItems, item: str) -> bool:
        """Whether showing an item can show a judge's word, which is written down first."""
        is_open = isinstance(items.find(item), Conflict)
        return not self.is_reading and (self._judge_first or not is_open)

    def view_of(self, items: TraceItems, item: str) -> ItemView | None:
        """The sides of an item, and the judge's word where it was asked for, or comes first."""
        view = items.view(item)
        conflict = items.conflict(item)
        if view is None or conflict is None or not self.records_sight(items, item):
            return view
        work = self.adjudication(items.trace_id)
        if work is None or not (self._judge_first or work.judge_shown(conflict.mode)):
            return view
        words = self.attempt(lambda: work.judge_words(conflict.mode))
        return replace(view, sides=(*view.sides, *judge_views(words or (), items.order)))

    def took(self, work: Adjudication) -> None:
        """Show what a trace has become."""
        before = self.items.get(work.trace_id)
        if before is not None:
            self.items[work.trace_id] = replace(
                before,
                sides=work.words.sides,
                gold=work.gold,
                decisions=work.decisions,
                letters=letters_of(work.words, self.study),
            )
        self.show_rows()

    # Deciding

    def here(self) -> tuple[Adjudication, Conflict] | None:
        row = self.row
        items = self.items.get(row.trace_id) if row is not None else None
        if row is None or items is None:
            if row is not None:
                self.action_enter()
            return None
        if row.item is None:
            self.hints.say("Choose a conflict of this trace: ↓, or ] for the next one")
            return None
        conflict = items.conflict(row.item)
        work = self.adjudication(row.trace_id)
        return None if work is None or conflict is None else (work, conflict)

    @writes
    def decide(
        self, choose: Callable[[Conflict], Choice | str], *, overrules: bool = False
    ) -> None:
        """Decide the conflict under the cursor and go on; a string says why it cannot be.

        What was agreed stays so unless it is overruled.
        """
        here = self.here()
        if here is None:
            return
        work, conflict = here
        choice = choose(conflict)
        if isinstance(choice, str):
            self.hints.say(choice, error=True)
            return
        agreed = self.items[work.trace_id].agreed(conflict.id)
        if agreed is not None and not overrules:
            self.hints.say("The sides agree here: x overrules them, e names another place")
            return
        if self.attempt(lambda: work.decide(conflict, choice)) is not None:
            words = self._words(conflict, choice)
            self.decided(work, (conflict.id,), words, looking=agreed is not None)

    def decided(
        self, work: Adjudication, items: tuple[str, ...], words: str, *, looking: bool = False
    ) -> None:
        """Show what was decided, ask why where a study wants to know, and go on.

        ``looking`` through what was agreed goes on to the next row, else to the next conflict.
        """
        self._decided_in.append(work.trace_id)
        self._undone_in.clear()
        self.last = (work.trace_id, items)
        self.range_from = None
        self.took(work)
        self.main_list.focus()
        self.hints.clear()
        if self.study is not None and self.study.reasons:
            self.ask_reason(work, items, lambda: self._go_on(words, looking))
        else:
            self._go_on(words, looking)

    def _go_on(self, words: str, looking: bool) -> None:
        if looking:
            self.main_list.move_by(1)
            self.tell(words)
            return
        more = self.go_to_open()
        if not more:
            self.show_row()
        self.tell(f"{words} · {self._to_go()}" if more else f"{words} · nothing left to decide")

    def _to_go(self) -> str:
        left = self.left()
        if left:
            return f"{left} to go"
        return f"{self.done()[1]} to look at again: a side has changed since"

    def ask_reason(
        self, work: Adjudication, items: tuple[str, ...], then: Callable[[], None]
    ) -> None:
        """Ask why it was decided so, then go on."""
        raise NotImplementedError

    def _words(self, conflict: Conflict, choice: Choice) -> str:
        code, name = mode_words(self.mast.taxonomy, conflict.mode)
        if conflict.kind is ConflictKind.PLACE:
            taken = choice.value is VerdictValue.PRESENT
            what = "place taken" if taken else "place dropped"
        else:
            what = choice.value.value
        places = [place_words(target, self.index_of, quoted=False) for target in choice.targets]
        more = " …" if len(places) > 3 else ""
        at = "in" if any(target.is_whole for target in choice.targets[:1]) else "at"
        where = f" {at} {', '.join(places[:3])}{more}" if places else ""
        row = self.row
        names = self.items[row.trace_id].names if row is not None else Names()
        by = f", as {', '.join(names.joined(choice.sides))}" if choice.sides else ""
        return f"{code} {name}: {what}{where}{by}"

    def action_side(self, number: int) -> None:
        """Take the side with this number."""

        def choose(conflict: Conflict) -> Choice | str:
            row = self.row
            items = self.items.get(row.trace_id) if row is not None else None
            side = items.side(conflict, number) if items is not None else None
            if side is None:
                return f"There is no side {number}: there are {len(conflict.said)}"
            return take_side(conflict, side)

        self.decide(choose)

    def action_sides(self) -> None:
        """To the sides, where a click on a number takes one."""
        self.sides.focus()
        self.hints.say("The number of a side takes it; ↑ ↓ look at its places")

    @on(VirtualLines.Chosen, "#queue")
    def _row_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_enter()

    @on(SidesPanel.Chosen, "#sides")
    def _side_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        side = self.sides.side
        if side is not None and side.number is not None:
            self.action_side(side.number)

    def action_both(self) -> None:
        """Keep everything that was marked."""
        self.decide(
            lambda conflict: (
                take_all(conflict, self.index_of)
                or "No side says present, so there is nothing to keep: a side, 0 or _"
            )
        )

    def action_nobody(self) -> None:
        """The mode is absent, or the place is none."""
        self.decide(lambda _: NOBODY)

    def action_unsure(self) -> None:
        """It stays unsure."""
        self.decide(
            lambda conflict: (
                "A place is taken or not: a side, b both, 0 none, e moves it"
                if conflict.kind is ConflictKind.PLACE
                else UNSURE
            )
        )

    def action_other_mode(self) -> None:
        """It is another mode, at the same place."""
        here = self.here()
        if here is None:
            return
        from mast_tui.ui.dialogs.finder import ModeFinder

        work, conflict = here

        def found(slug: str | None) -> None:
            if slug is not None:
                self._decide_other_mode(work, conflict, slug)

        self.app.push_screen(ModeFinder(self.mast.taxonomy), found)

    @writes
    def _decide_other_mode(self, work: Adjudication, conflict: Conflict, slug: str) -> None:
        made = self.attempt(lambda: work.another_mode(conflict, slug))
        if made is not None:
            code, name = mode_words(self.mast.taxonomy, slug)
            self.decided(work, tuple(d.item for d in made), f"It is {code} {name}")

    # Boundaries

    @property
    def asks(self) -> bool:
        """Whether a boundary is being moved."""
        return self.range_from is not None

    def take_key(self, key: str, action: str | None) -> bool:
        """Let a key do nothing that is not known while a boundary is moved."""
        if action in MOVING:
            return False
        self.hints.prompt(BOUNDARY_PROMPT)
        return True

    def action_boundary(self) -> None:
        """Begin to move the boundary; again goes to its other end."""
        if self.range_from is not None:
            other, self.range_from = self.range_from, self.timeline.index
            self.timeline.go_to(other)
            self._show_boundary()
            return
        if self.here() is None:
            return
        if not self.has_spans:
            self.hints.say("A boundary needs the trace's file, which is not here", error=True)
            return
        marked = self.timeline.range
        first, last = marked if marked is not None else (self.timeline.index,) * 2
        self.range_from = first
        self.timeline.go_to(last)
        self.timeline.focus()
        self._show_boundary()

    def _show_boundary(self) -> None:
        self.timeline.show_range(self.marked_range())
        self.show_span()
        self.hints.prompt(BOUNDARY_PROMPT)

    def action_agreed(self) -> None:
        """Look through agreed items; while a boundary is moved, begin it at the cursor."""
        if self.range_from is None:
            super().action_agreed()
            return
        self.range_from = self.timeline.index
        self._show_boundary()

    def action_enter(self) -> None:
        """Decide for the boundary; else go to the evidence, or take a trace on."""
        marked, trace, row = self.marked_range(), self.trace, self.row
        if marked is not None and trace is not None:
            target = Target(trace.span(marked[0]).key, trace.span(marked[1]).key)
            self.decide(lambda conflict: elsewhere(conflict, target, self.index_of), overrules=True)
        elif row is not None and row.trace_id not in self.items:
            self.take_on(row.trace_id)
        elif self.has_spans:
            self.timeline.focus()

    def take_on(self, trace_id: str) -> None:
        """Ask whether to see what others said about a trace that one has not labelled."""
        raise NotImplementedError

    def action_back(self) -> None:
        """Leave the boundary, then the pane, then the screen."""
        if self.range_from is not None:
            self.range_from = None
            self.hints.clear()
            self.main_list.focus()
            self.show_row()
        elif self.focused is not None and self.focused is not self.main_list:
            self.main_list.focus()
        else:
            super().action_back()

    # Taking back

    def action_undo(self) -> None:
        """Take back the last decision of this sitting, else the last one on this trace."""
        self._step(self._decided_in, self._undone_in, back=True)

    def action_redo(self) -> None:
        """Decide again what was taken back."""
        self._step(self._undone_in, self._decided_in, back=False)

    @writes
    def _step(self, from_: list[str], to: list[str], *, back: bool) -> None:
        row = self.row
        here = [row.trace_id] if row is not None and row.trace_id in self.items else []
        for trace_id in [from_[-1]] if from_ else here:
            work = self.adjudication(trace_id)
            items = self.attempt(work.undo if back else work.redo) if work is not None else None
            if work is None or items is None:
                return
            if from_:
                from_.pop()
            if items:
                to.append(trace_id)
                self._stepped(work, items, back=back)
                return
        self.hints.say("Nothing to take back on this trace" if back else "Nothing to decide again")

    def _stepped(self, work: Adjudication, changed: tuple[str, ...], *, back: bool) -> None:
        self.range_from = None
        self.took(work)
        place = self.main_list.place_of(work.trace_id, changed[0])
        if place is not None:
            self.main_list.move_to(place)
        self.show_row()
        self.tell("Taken back: decide it anew, or U does it again" if back else "Done again")
