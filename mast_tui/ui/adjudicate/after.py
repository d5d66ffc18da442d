"""What can be done about a decision: a reason, the judge's word, confirming it; and overruling."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mast_tui.gold import Conflict
from mast_tui.gold.choice import NOBODY, Choice
from mast_tui.labels import JUDGE_PREFIX, WHOLE_TRACE, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.ui.adjudicate.deciding import Deciding
from mast_tui.ui.adjudicate.rows import mode_words
from mast_tui.ui.context import ShowGuidelines
from mast_tui.ui.services.workspace_writer import writes

if TYPE_CHECKING:
    from mast_tui.adjudication import Adjudication, Case


class After(Deciding):
    """Keys that need a decision, or what was agreed."""

    # Reasons

    @writes
    def action_reason(self) -> None:
        """Write why the item under the cursor was decided so, else why the last one was."""
        row = self.row
        items = self.items.get(row.trace_id) if row is not None else None
        if row is not None and row.item is not None and items and items.decision(row.item):
            about: tuple[str, tuple[str, ...]] = row.trace_id, (row.item,)
        elif self.last is not None:
            about = self.last
        else:
            self.hints.say("A reason belongs to a decision: decide first, then m says why")
            return
        trace_id, decided = about
        work = self.adjudication(trace_id)
        if work is None:
            return
        if not self._standing(work, decided):
            self.hints.say("A reason belongs to a decision, and the last one was taken back")
            return

        def shown() -> None:
            self.hints.clear()
            self.show_row()

        self.ask_reason(work, decided, shown)

    def ask_reason(
        self, work: Adjudication, items: tuple[str, ...], then: Callable[[], None]
    ) -> None:
        """Ask on a line of its own; Escape leaves the decision as it is. ``then`` goes on."""
        from mast_tui.ui.dialogs.note import NoteScreen

        found = self._standing(work, items)
        if not found:
            then()
            return

        def written(text: str | None) -> None:
            if text is not None:
                self._explain(work, found, text, then)
            else:
                then()

        decision = next(one for one in work.decisions if one.item == found[0])
        code, name = mode_words(self.mast.taxonomy, decision.mode)
        self.app.push_screen(
            NoteScreen(
                f"Why? {code} {name}: {decision.value.value}",
                decision.reason,
                hint="Enter keeps it · Esc leaves the decision without a word",
            ),
            written,
        )

    @writes
    def _explain(
        self, work: Adjudication, items: list[str], text: str, then: Callable[[], None]
    ) -> None:
        self.attempt(partial(work.explain, items, text))
        self.took(work)
        then()

    @staticmethod
    def _standing(work: Adjudication, items: tuple[str, ...]) -> list[str]:
        """Those of the items on which a decision stands."""
        standing = {decision.item for decision in work.decisions}
        return [item for item in items if item in standing]

    # Confirming

    @writes
    def action_confirm(self) -> None:
        """Decide again as it stands where a side has changed since."""
        here = self.here()
        if here is None:
            return
        work, conflict = here
        items = self.items[work.trace_id]
        decision = items.decision(conflict.id)
        if decision is None:
            self.hints.say("Nothing is decided here yet: there is nothing to confirm")
        elif not items.has_changed(decision):
            self.hints.say("No side has changed since: the decision stands as it is")
        elif self.attempt(lambda: work.confirm(conflict.id)) is not None:
            code, name = mode_words(self.mast.taxonomy, conflict.mode)
            self.decided(work, (conflict.id,), f"{code} {name}: confirmed")

    # The judge

    @writes
    def action_judge(self) -> None:
        """The judge's word on the mode under the cursor, else on the one decided last."""
        row = self.row
        items = self.items.get(row.trace_id) if row is not None else None
        if row is None or items is None:
            return
        open_here = row.item is None or isinstance(items.find(row.item), Conflict)
        first = self.study is not None and self.study.judge_first
        if open_here and not first:
            if not self._go_to_last():
                self.hints.say("The judge's word comes after the decision")
                return
            row = self.row
        if row is None or row.item is None:
            return
        here = self.here()
        if here is None:
            return
        work, conflict = here
        if any(one.mode == conflict.mode for one in work.gold.conflicts) and not first:
            self.hints.say("Something is open about this mode: the judge's word comes after it")
            return
        words = self.attempt(lambda: work.judge_words(conflict.mode))
        if words is None:
            return
        self.show_row()
        names = ", ".join(one_line(one.judge.removeprefix(JUDGE_PREFIX), 24) for one in words)
        self.tell(
            f"{names}: what is decided about this mode from now on was decided in its sight"
            if words
            else "No judge has looked at this mode here"
        )

    def _go_to_last(self) -> bool:
        """Put the cursor on what was decided last; False where that is not listed."""
        if self.last is None:
            return False
        trace_id, items = self.last
        place = self.main_list.place_of(trace_id, items[0])
        known = self.items.get(trace_id)
        if place is None or known is None or known.decision(items[0]) is None:
            return False
        self.main_list.move_to(place)
        self.show_row()
        return True

    # What was agreed

    def action_overrule(self) -> None:
        """What was agreed to be present is absent; else it shows in the whole trace."""
        row = self.row
        items = self.items.get(row.trace_id) if row is not None else None
        agreed = items.agreed(row.item) if items and row and row.item is not None else None
        if agreed is None:
            self.hints.say("x overrules what was agreed: v lists that")
            return
        present = agreed.value is VerdictValue.PRESENT
        choice = NOBODY if present else Choice(VerdictValue.PRESENT, (WHOLE_TRACE,))
        self.decide(lambda _: choice, overrules=True)

    # Guidelines

    def action_guidelines(self) -> None:
        """The page of the mode under the cursor: what was agreed about it, and decided cases."""
        row = self.row
        items = self.items.get(row.trace_id) if row is not None else None
        found = items.find(row.item) if items and row and row.item is not None else None
        mode = found.mode if found is not None else self.mode or self.mast.taxonomy.modes[0].slug
        occasion = None
        if items and row and row.item is not None and items.decision(row.item) is not None:
            occasion = row.trace_id, row.item
        self.mast.go(ShowGuidelines(mode, may_write=True, occasion=occasion, go=self._go_to_case))

    def _go_to_case(self, case: Case) -> bool:
        """Put the cursor on a decided case; False where it is not listed here."""
        place = self.main_list.place_of(case.trace_id, case.decision.item)
        if place is None:
            return False
        self.main_list.move_to(place)
        self.main_list.focus()
        self.show_row()
        return True
