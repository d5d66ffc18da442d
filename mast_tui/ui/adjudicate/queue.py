"""The queue of an adjudicator: what is listed, in which order, and how far it is settled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mast_tui.adjudication import Access, Adjudication, QueueEntry, trace_disagreement
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import KeyOf
from mast_tui.ui.adjudicate.conflict_list import ConflictList, QueueRow, RowState
from mast_tui.ui.adjudicate.items import QueueContents, RowSubject, TraceItems, letters_of
from mast_tui.ui.wording import joined

HIDDEN = "hidden"
FINISH_FIRST = "finish it first"


class Queue:
    """Traces with their items in ``lines``; one that one may not see yet is a row without a count.

    ``items`` are by trace, as they are known now; ``agreed`` is whether also what nobody differs on
    is listed, and ``names_hidden`` whether letters stand for the sides.
    """

    def __init__(self, mode: str | None, is_taken: Callable[[str], bool], *, agreed: bool) -> None:
        """Begin with nothing, until something is taken in.

        Args:
            mode: The slug of the mode that alone is listed; None for all.
            is_taken: Whether somebody else is at a place now.
            agreed: Whether to list what was agreed as well.
        """
        self._is_taken = is_taken
        self.lines = ConflictList(id="queue")
        self.mode = mode
        self.cases = QueueContents()
        self.items: dict[str, TraceItems] = {}
        self.agreed = agreed
        self.names_hidden = False
        self._order: list[QueueEntry] = []
        self._counted: dict[str, tuple[TraceItems, int, int]] = {}
        self._made: dict[str, tuple[TraceItems, bool, list[QueueRow]]] = {}

    # What is under the cursor

    @property
    def row(self) -> QueueRow | None:
        """The row under the cursor."""
        return self.lines.row

    @property
    def items_here(self) -> TraceItems | None:
        """The items of the trace under the cursor; None where they are hidden, or nothing is."""
        return self.items.get(self.row.trace_id) if self.row is not None else None

    @property
    def subject_here(self) -> RowSubject | None:
        """What the row under the cursor is about, as it stands."""
        row, items = self.row, self.items_here
        return items.find(row.item) if items and row and row.item is not None else None

    @property
    def is_reading(self) -> bool:
        """Whether the trace under the cursor is still being looked for."""
        row, at_hand = self.row, self.cases.at_hand
        return row is not None and at_hand is not None and not at_hand.is_known(row.trace_id)

    def is_here(self, trace_id: str, item: str | None) -> bool:
        """Whether the cursor stands on an item."""
        row = self.row
        return row is not None and (row.trace_id, row.item) == (trace_id, item)

    def go_to(self, trace_id: str, item: str | None) -> bool:
        """Put the cursor on an item, or a trace; False where it is not listed."""
        place = self.lines.place_of(trace_id, item)
        if place is not None:
            self.lines.move_to(place)
        return place is not None

    def go_to_item(self, trace_id: str, item: str) -> bool:
        """Put the cursor on the row in which the decision on an item stands, or stood."""
        items = self.items.get(trace_id)
        return self.go_to(trace_id, item if items is None else items.row_of(item))

    def next_open(self, start: int, step: int = 1) -> int | None:
        """The row of the next conflict that is left, one that nobody else decides just now before
        the others; None where all are decided."""

        def taken(row: QueueRow) -> bool:
            items = self.items.get(row.trace_id)
            return items is not None and self._is_taken(items.place(row.item or ""))

        return self.lines.next_open(start, step, but=taken)

    # What is listed

    @property
    def was_read(self) -> bool:
        """Whether there is something to list, or known to be nothing."""
        return self.cases.at_hand is not None

    def shows(self, cases: QueueContents) -> bool:
        """Whether all that was read is listed already."""
        known, new = self.items, cases.items
        before, after = (
            {(one.trace_id, one.sides, one.access) for one in read.entries}
            for read in (self.cases, cases)
        )
        return (
            before == after
            and self.cases.study == cases.study
            and all(known[name].says_what(items) for name, items in new.items())
        )

    def take_in(self, cases: QueueContents, begin_at: str | None = None) -> None:
        """List what was read, with the cursor where it was, at first on what is open.

        Args:
            cases: What was read.
            begin_at: The id of the trace to begin with.
        """
        first = not self.was_read
        self.cases = cases
        if first:
            self.names_hidden = cases.study is not None and cases.study.names_hidden
        self.items = {
            trace_id: replace(items, hidden=self.names_hidden)
            for trace_id, items in cases.items.items()
        }
        self._order = list(cases.entries)
        if self.mode is not None:
            self._order.sort(key=self._rank_in_mode)
        self.show()
        if first:
            self._go_to_start(begin_at)
        elif self.items_here is not None and self.row is not None and self.row.item is None:
            # A trace that was just taken on: what is to be decided there, not its heading.
            self.lines.move_to(self.lines.first_in_trace(self.lines.cursor))

    def _rank_in_mode(self, entry: QueueEntry) -> float:
        """Most disagreement on the mode first."""
        items = self.items.get(entry.trace_id)
        left = items.gold.conflicts if items is not None else ()
        return -trace_disagreement(c for c in left if c.mode == self.mode)

    def _go_to_start(self, begin_at: str | None) -> None:
        start = self.next_open(-1)
        if begin_at is not None:
            if self.lines.place_of(begin_at, None) is None and not self.agreed:
                # Settled otherwise since: it stands among what was agreed.
                self.agreed = True
                self.show()
            place = self.lines.place_of(begin_at, None)
            start = start if place is None else self.lines.first_in_trace(place)
        if start is not None:
            self.lines.move_to(start)

    def show(self) -> None:
        """List all items anew."""
        rows: list[QueueRow] = []
        for entry in self._order:
            items = self.items.get(entry.trace_id)
            if items is not None:
                rows += self._rows_of(items)
        self.lines.show([*rows, *self._locked_rows()])

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
        return [
            QueueRow(
                trace_id=items.trace_id,
                item=None,
                state=RowState.TRACE,
                code="",
                name=name,
                what=words,
            ),
            *below,
        ]

    def _locked_rows(self) -> list[QueueRow]:
        return [
            QueueRow(
                trace_id=entry.trace_id,
                item=None,
                state=RowState.LOCKED,
                code="",
                name=self.name_of(entry.trace_id),
                what=FINISH_FIRST if entry.access is Access.UNFINISHED else HIDDEN,
            )
            for entry in self._order
            if entry.access is not Access.OPEN
        ]

    def name_of(self, trace_id: str) -> str:
        """What a trace goes by here."""
        at_hand = self.cases.at_hand
        return trace_id if at_hand is None else at_hand.name_of(trace_id)

    def hide_names(self, hidden: bool) -> None:
        """Have letters stand for the sides, or their names again."""
        self.names_hidden = hidden
        self.items = {name: replace(items, hidden=hidden) for name, items in self.items.items()}
        self.show()

    def take_over(self, work: Adjudication) -> None:
        """List what a trace has become."""
        before = self.items.get(work.trace_id)
        if before is not None:
            self.items[work.trace_id] = replace(
                before,
                sides=work.words.sides,
                gold=work.gold,
                decisions=work.decisions,
                letters=letters_of(work.words, self.cases.study),
            )
        self.show()

    # How far it is settled

    def left(self) -> int:
        """How many conflicts are left in all that is listed."""
        return sum(items.left(self.mode) for items in self.items.values())

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

    def progress(self) -> list[str]:
        """How much is decided, what is left, and what was not taken on; for the title."""
        if not self.was_read:
            return []
        locked = len(self._locked_rows())
        parts = self._progress() if self.items or not locked else []
        if locked:
            parts.append(f"{locked} trace{'' if locked == 1 else 's'} not taken on")
        return parts

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

    def locked_words(self, trace_id: str, key_of: KeyOf) -> str:
        """Return why what others say of a trace is hidden, and what shows it.

        Args:
            trace_id: The id of the trace.
            key_of: Returns how the key of an action is shown.
        """
        entry = next((one for one in self.cases.entries if one.trace_id == trace_id), None)
        if entry is None:
            return ""
        others = [one_line(name) for name in entry.sides if name != self.cases.annotator]
        names, have = joined(others), "has" if len(others) == 1 else "have"
        if self.names_hidden:
            names = f"{len(others)} {'person' if len(others) == 1 else 'people'}"
        if entry.access is Access.UNFINISHED:
            return (
                f"{names} {have} finished this trace. You have begun it: what they say stays "
                "hidden until you have finished it too."
            )
        enter = key_of("adjudicate.enter")
        if self.cases.may_come_back:
            return (
                f"{names} {have} finished this trace: what they say is hidden from you for now. "
                f"{enter} takes it on as adjudicator."
            )
        return (
            f"{names} {have} finished this trace, you have not: what they say is hidden from you. "
            f"{enter} takes it on as adjudicator."
        )

    def hidden_traces(self) -> list[str]:
        """Ids of the traces that one has not labelled and not taken on."""
        return [one.trace_id for one in self.cases.entries if one.access is Access.HIDDEN]
