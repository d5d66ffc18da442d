"""The queue of an adjudicator: what is listed, where the cursor stands, and what is open there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual import on

from mast_tui.safe_text import one_line
from mast_tui.ui.adjudicate.cases import Cases
from mast_tui.ui.adjudicate.conflict_list import QueueRow, RowState
from mast_tui.ui.adjudicate.evidence import Evidence
from mast_tui.ui.adjudicate.items import TraceItems
from mast_tui.ui.adjudicate.rows import ItemView, mode_words
from mast_tui.ui.phrases import joined
from mast_tui.ui.services.workspace_writer import Holds
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.adjudication import QueueEntry
    from mast_tui.study.model import Study

HIDDEN = "hidden"
FINISH_FIRST = "finish it first"


class Queue(Evidence):
    """Traces with their items; a trace that one may not see yet is one row without a count."""

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode
        self.cases: Cases | None = None
        self.items: dict[str, TraceItems] = {}
        self.agreed = False
        self.names_hidden = False
        self._order: list[QueueEntry] = []
        self._shown_trace: str | None = None
        self._told_at: int | None = None
        self._counted: dict[str, tuple[TraceItems, int, int]] = {}
        self._made: dict[str, tuple[TraceItems, bool, list[QueueRow]]] = {}

    @property
    def row(self) -> QueueRow | None:
        """The row under the queue's cursor."""
        return self.main_list.row

    def entry(self, trace_id: str) -> QueueEntry | None:
        """What the queue knows of a trace."""
        entries = self.cases.entries if self.cases is not None else ()
        return next((entry for entry in entries if entry.trace_id == trace_id), None)

    def left(self) -> int:
        """How many conflicts are left in all that is listed."""
        return sum(items.left(self.mode) for items in self.items.values())

    @property
    def study(self) -> Study | None:
        """The protocol that is kept, if any."""
        return self.cases.study if self.cases is not None else None

    @property
    def may_come_back(self) -> bool:
        """Whether finished traces may come back to this person to be labelled once more.

        Then all that is hidden is told in the same words, lest they give away which these are.
        """
        study, opened = self.study, self.mast.opened
        if study is None or opened is None:
            return False
        return study.retests > 0 and opened.annotator in study.annotators

    def done(self) -> tuple[int, int]:
        """How many conflicts are decided, and how many decisions have sides that changed since.

        Counted anew only where a trace is not what it was.
        """
        for trace_id, items in self.items.items():
            known = self._counted.get(trace_id)
            if known is None or known[0] is not items:
                counts = items.decided(self.mode), items.changed(self.mode)
                self._counted[trace_id] = items, *counts
        counted = [self._counted[trace_id] for trace_id in self.items]
        return sum(one[1] for one in counted), sum(one[2] for one in counted)

    def in_order(self) -> list[QueueEntry]:
        """The queue's traces, most disagreement first; they stay in place while one decides."""
        return self._order

    def _in_order_of_mode(self, entries: Sequence[QueueEntry]) -> list[QueueEntry]:
        """The same where only one mode is listed."""
        from mast_tui.adjudication import trace_disagreement

        def rank(entry: QueueEntry) -> float:
            items = self.items.get(entry.trace_id)
            left = items.gold.conflicts if items is not None else ()
            return -trace_disagreement(c for c in left if c.mode == self.mode)

        return sorted(entries, key=rank)

    def take_in(self, cases: Cases) -> None:
        """List what was read, with the cursor where it was, or on the first open conflict."""
        first = self.cases is None
        self.cases = cases
        if first:
            self.names_hidden = cases.study is not None and cases.study.names_hidden
        self.items = {
            trace_id: replace(items, hidden=self.names_hidden)
            for trace_id, items in cases.items.items()
        }
        entries = list(cases.entries)
        self._order = entries if self.mode is None else self._in_order_of_mode(entries)
        self.show_rows()
        if first:
            start = self.main_list.next_open(-1)
            if start is not None:
                self.main_list.move_to(start)
        elif self.row is not None and self.row.item is None and self.row.trace_id in self.items:
            # A trace that was just taken on: what is to be decided there, not its heading.
            self.main_list.move_to(self.main_list.first_in_trace(self.main_list.cursor))
        self._shown_trace = None
        self.show_row()

    def show_rows(self) -> None:
        """List all items anew, and say how many are left."""
        rows: list[QueueRow] = []
        for entry in self.in_order():
            items = self.items.get(entry.trace_id)
            if items is not None:
                rows += self._rows_of(items)
        rows += self._locked_rows()
        self.main_list.show(rows)
        self.show_title()

    def _rows_of(self, items: TraceItems) -> list[QueueRow]:
        """A trace with its items, made once for what is known of it now."""
        made = self._made.get(items.trace_id)
        if made is None or made[0] is not items or made[1] != self.agreed:
            made = (items, self.agreed, self._make_rows(items))
            self._made[items.trace_id] = made
        return made[2]

    def _make_rows(self, items: TraceItems) -> list[QueueRow]:
        """A trace with its items; none where it has nothing to look at."""
        below = items.rows(agreed=self.agreed, mode=self.mode)
        if not below:
            return []
        left = items.left(self.mode)
        words = f"{left} left" if left else "✓" if not self.agreed else "nothing left"
        name = self.name_of(items.trace_id)
        return [QueueRow(items.trace_id, None, RowState.TRACE, "", name, words), *below]

    def name_of(self, trace_id: str) -> str:
        """What a trace goes by here."""
        at_hand = self.cases.at_hand if self.cases is not None else None
        return trace_id if at_hand is None else at_hand.name_of(trace_id)

    def _locked_rows(self) -> list[QueueRow]:
        from mast_tui.adjudication import Access

        return [
            QueueRow(
                entry.trace_id,
                None,
                RowState.LOCKED,
                "",
                self.name_of(entry.trace_id),
                FINISH_FIRST if entry.access is Access.UNFINISHED else HIDDEN,
            )
            for entry in self.in_order()
            if entry.access is not Access.OPEN
        ]

    def show_title(self) -> None:
        """How much is left, and who decides."""
        parts = ["Adjudicate"]
        if self.mode is not None:
            parts.append(" ".join(mode_words(self.mast.taxonomy, self.mode)))
        if self.cases is not None:
            locked = len(self._locked_rows())
            if self.items or not locked:
                parts += self._progress()
            if locked:
                parts.append(f"{locked} trace{'' if locked == 1 else 's'} not taken on")
        self.title_bar.show(tuple(parts), self.who())

    def _progress(self) -> list[str]:
        """How much is decided, in how many traces something is left, and what has changed."""
        left, traces = self.left(), sum(items.left(self.mode) > 0 for items in self.items.values())
        decided, changed = self.done()
        parts = [f"{decided} of {decided + left} decided"] if decided + left else []
        if changed:
            parts.append(f"{changed} changed since")
        if left:
            parts.append(f"{left} left in {traces} trace{'' if traces == 1 else 's'}")
        return parts if left else [*parts, "nothing left"]

    def who(self) -> tuple[str, ...]:
        """Who decides, and whether the sides' names are hidden."""
        opened = self.mast.opened
        if opened is None:
            return ("opening the workspace …",)
        words = (one_line(opened.annotator), "adjudicator")
        return (*words, "names hidden") if self.names_hidden else words

    # What is open under the cursor

    @on(VirtualLines.Moved, "#queue")
    def _queue_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.range_from = None
        if event.row != self._told_at:
            self.hints.clear()
        self._told_at = None
        self.show_row()

    def tell(self, words: str) -> None:
        """Say what was done; it stays although the cursor goes on."""
        self._told_at = self.main_list.cursor
        self.hints.say(words)

    def show_row(self) -> None:
        """Show the sides and the evidence of what is under the cursor."""
        row = self.row
        if row is None:
            self.show_item(None)
            return
        items = self.items.get(row.trace_id)
        if items is None:
            self._shown_trace = None
            self.show_trace(None)
            self.show_item(None, empty=self._locked_words(row.trace_id))
            return
        self._open_trace(row.trace_id)
        if row.item is None:
            names = joined(items.names.joined(side.annotator for side in items.sides))
            self.show_item(None, empty=f"{names} have finished this trace.")
            return
        if self.records_sight(items, row.item):
            self.writes.do(partial(self._show_view, items, row.item), Holds.NOTHING)
        else:
            self._show_view(items, row.item)

    def _show_view(self, items: TraceItems, item: str) -> None:
        view = self.view_of(items, item)
        row = self.row
        if row is not None and (row.trace_id, row.item) == (items.trace_id, item):
            self.show_item(view)

    def records_sight(self, items: TraceItems, item: str) -> bool:
        """Whether showing an item can show a judge's word, which is written down first."""
        raise NotImplementedError

    def view_of(self, items: TraceItems, item: str) -> ItemView | None:
        """What the panes show of an item."""
        raise NotImplementedError

    def _locked_words(self, trace_id: str) -> str:
        from mast_tui.adjudication import Access

        entry = self.entry(trace_id)
        if entry is None:
            return ""
        me = self.mast.opened.annotator if self.mast.opened is not None else ""
        others = [one_line(name) for name in entry.sides if name != me]
        names, have = joined(others), "has" if len(others) == 1 else "have"
        if self.names_hidden:
            names = f"{len(others)} {'person' if len(others) == 1 else 'people'}"
        if entry.access is Access.UNFINISHED:
            return (
                f"{names} {have} finished this trace. You have begun it: what they say stays "
                "hidden until you have finished it too."
            )
        if self.may_come_back:
            return (
                f"{names} {have} finished this trace: what they say is hidden from you for now. "
                "Enter takes it on as adjudicator."
            )
        return (
            f"{names} {have} finished this trace, you have not: what they say is hidden from you. "
            "Enter takes it on as adjudicator."
        )

    def _open_trace(self, trace_id: str) -> None:
        if trace_id == self._shown_trace:
            return
        self._shown_trace = trace_id
        at_hand = self.cases.at_hand if self.cases is not None else None
        if at_hand is not None and at_hand.is_known(trace_id):
            self.show_trace(at_hand.known(trace_id))
        else:
            self.show_trace(None)
            self.read_trace(trace_id)

    def read_trace(self, trace_id: str) -> None:
        """Read a trace in the background; ``trace_read`` follows."""
        raise NotImplementedError

    def trace_read(self, trace_id: str) -> None:
        """A trace has been looked for: show it where it is still wanted."""
        row = self.row
        if row is not None and row.trace_id == trace_id:
            self._shown_trace = None
            self.show_row()

    @property
    def is_reading(self) -> bool:
        """Whether the trace under the cursor is still being looked for."""
        row = self.row
        at_hand = self.cases.at_hand if self.cases is not None else None
        return row is not None and at_hand is not None and not at_hand.is_known(row.trace_id)

    def missing_words(self) -> str:
        """Why there is no text beside the sides."""
        return "Reading the trace …" if self.is_reading else super().missing_words()

    # Moving

    def action_conflict(self, step: int) -> None:
        """The next or previous conflict that is left."""
        if not self.go_to_open(step):
            self.hints.say("Nothing is left to decide")

    def go_to_open(self, step: int = 1) -> bool:
        """Put the cursor on the next conflict that is left; False where there is none."""
        place = self.main_list.next_open(self.main_list.cursor, step)
        if place is None:
            return False
        if place == self.main_list.cursor:
            self.show_row()
        else:
            self.main_list.move_to(place)
        return True

    def action_trace(self, step: int) -> None:
        """The next or previous trace: its first conflict that is left, else its first row."""
        place = self.main_list.next_trace(self.main_list.cursor, step)
        if place is None:
            self.hints.say("This is the last trace" if step > 0 else "This is the first trace")
            return
        self.main_list.move_to(self.main_list.first_in_trace(place))

    def action_names(self) -> None:
        """Show the sides by letters, or by name."""
        self.names_hidden = not self.names_hidden
        self.items = {
            trace_id: replace(items, hidden=self.names_hidden)
            for trace_id, items in self.items.items()
        }
        self.show_rows()
        self.show_row()
        self.hints.say(
            "Names are hidden: letters stand for other people on every trace · h shows the names"
            if self.names_hidden
            else "The sides are shown by name · h hides the names"
        )

    def action_agreed(self) -> None:
        """List what was agreed as well, or only what was not."""
        self.agreed = not self.agreed
        self.show_rows()
        self._shown_trace = None
        self.show_row()
        self.hints.say(
            "Agreed items (=) are listed, taken over without a key · x overrules one · v hides them"
            if self.agreed
            else "Only what the sides differ on is listed"
        )
