"""The queue of an adjudicator: its rows, their order, and the progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mast_tui.adjudication import Access, Adjudication, QueueEntry, trace_disagreement
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import KeyOf
from mast_tui.ui.adjudicate.items import QueueContents, RowSubject, TraceItems, letters_of
from mast_tui.ui.adjudicate.lists import ConflictList, QueueRow, RowState
from mast_tui.ui.wording import counted, joined

HIDDEN = "hidden"
FINISH_FIRST = "finish it first"


class Queue:
    """The traces of an adjudicator with their items.

    Attributes:
        lines: The list on screen. A trace that the adjudicator may not see yet has only one row.
        mode: The slug of the only mode to list; None for all.
        contents: The queue as it was read from the workspace.
        items: The items of each visible trace, by trace id.
        lists_agreed: Whether undisputed modes are listed too.
        names_hidden: Whether letters replace the names of the sides.
    """

    def __init__(
        self, mode: str | None, is_busy: Callable[[str], bool], *, lists_agreed: bool
    ) -> None:
        """Make an empty queue.

        Args:
            mode: The slug of the only mode to list; None for all.
            is_busy: Tells whether another adjudicator is at an item, by its presence key.
            lists_agreed: Whether to list undisputed modes too.
        """
        self._is_busy = is_busy
        self.lines = ConflictList(id="queue")
        self.mode = mode
        self.contents = QueueContents()
        self.items: dict[str, TraceItems] = {}
        self.lists_agreed = lists_agreed
        self.names_hidden = False
        self._ordered_entries: list[QueueEntry] = []
        """The entries of ``contents`` in the order of the list."""

    # What is under the cursor

    @property
    def row(self) -> QueueRow | None:
        """The row under the cursor."""
        return self.lines.row

    @property
    def current_items(self) -> TraceItems | None:
        """The items of the trace under the cursor, or None if they are hidden."""
        return self.items.get(self.row.trace_id) if self.row is not None else None

    @property
    def current_subject(self) -> RowSubject | None:
        """The dispute or agreed verdict of the row under the cursor, or None."""
        row = self.row
        items = self.current_items
        return items.find(row.item) if items and row and row.item is not None else None

    @property
    def is_reading(self) -> bool:
        """True if the trace under the cursor is still being read."""
        row = self.row
        loader = self.contents.loader
        return row is not None and loader is not None and not loader.was_read(row.trace_id)

    def is_at_cursor(self, trace_id: str, item: str | None) -> bool:
        """Return whether the cursor is on an item.

        Args:
            trace_id: The id of the trace.
            item: The id of the item; None for the row of the trace.
        """
        row = self.row
        return row is not None and (row.trace_id, row.item) == (trace_id, item)

    def go_to_item(self, trace_id: str, item: str) -> bool:
        """Move the cursor to the row of a decided item; return False if it is not listed.

        Args:
            trace_id: The id of the trace.
            item: The id of the item.
        """
        items = self.items.get(trace_id)
        # The row of a dispute can stand for several items, and then has another id.
        row_item = item if items is None else items.subject_id_of(item)
        position = self.lines.position_of(trace_id, row_item)
        if position is not None:
            self.lines.move_to(position)
        return position is not None

    def next_open(self, start: int, step: int = 1) -> int | None:
        """Return the position of the next open item, or None if all are decided.

        Items that another adjudicator is deciding come last.

        Args:
            start: The position after which the search begins.
            step: 1 for the next item, -1 for the previous one.
        """

        def is_busy(row: QueueRow) -> bool:
            items = self.items.get(row.trace_id)
            return items is not None and self._is_busy(items.presence_key(row.item or ""))

        return self.lines.next_open(start, step, postpone=is_busy)

    # What is listed

    @property
    def was_read(self) -> bool:
        """True once the queue has been read."""
        return self.contents.loader is not None

    def is_showing(self, contents: QueueContents) -> bool:
        """Return whether the queue shows these contents already."""
        return (
            _entry_keys(self.contents) == _entry_keys(contents)
            and self.contents.study == contents.study
            and all(
                self.items[trace_id].has_same_answers(items)
                for trace_id, items in contents.items.items()
            )
        )

    def update(self, contents: QueueContents, begin_at: str | None = None) -> None:
        """List other contents and keep the cursor; the first time, move it to an open item.

        Args:
            contents: The contents of the queue.
            begin_at: The id of the trace to begin with.
        """
        is_first = not self.was_read
        self.contents = contents
        study_hides_names = contents.study is not None and contents.study.names_hidden
        if is_first:  # later the adjudicator may have shown or hidden them
            self.names_hidden = study_hides_names
        self.items = {
            trace_id: replace(
                items,
                names_hidden=self.names_hidden,
                keeps_letter_order=study_hides_names,
                only_mode=self.mode,
            )
            for trace_id, items in contents.items.items()
        }
        self._ordered_entries = list(contents.entries)
        if self.mode is not None:
            self._ordered_entries.sort(key=self._negative_disagreement)
        self.show()
        if is_first:
            self._go_to_start(begin_at)
        elif self.current_items is not None and self.row is not None and self.row.item is None:
            # The trace was just taken on: move from its heading to its first item.
            self.lines.move_to(self.lines.first_in_trace(self.lines.cursor))

    def _negative_disagreement(self, entry: QueueEntry) -> float:
        """Return a sort key that puts the trace with the most disagreement on the mode first."""
        items = self.items.get(entry.trace_id)
        conflicts = items.gold.conflicts if items is not None else ()
        return -trace_disagreement(conflict for conflict in conflicts if conflict.mode == self.mode)

    def _go_to_start(self, begin_at: str | None) -> None:
        """Move to the first item of a trace; without a trace, to the first open item of all.

        Args:
            begin_at: The id of the trace. If it has only agreed items, these are listed too.
        """
        start = self.next_open(-1)  # -1 is before the first row
        if begin_at is not None:
            if self.lines.position_of(begin_at, item=None) is None and not self.lists_agreed:
                # The trace has been resolved since, so it is listed only with agreed items.
                self.lists_agreed = True
                self.show()
            position = self.lines.position_of(begin_at, item=None)
            start = start if position is None else self.lines.first_in_trace(position)
        if start is not None:
            self.lines.move_to(start)

    def show(self) -> None:
        """List all rows again."""
        rows: list[QueueRow] = []
        for entry in self._ordered_entries:
            items = self.items.get(entry.trace_id)
            if items is not None:
                rows += self._rows_of_trace(items)
        self.lines.show([*rows, *self._locked_rows()])

    def _rows_of_trace(self, items: TraceItems) -> list[QueueRow]:
        """Return the row of a trace and the rows of its items; empty if no item is listed."""
        item_rows = [
            row for row in items.rows if self.lists_agreed or row.state is not RowState.AGREED
        ]
        if not item_rows:
            return []
        open_count = items.open_count
        finished_text = "nothing left" if self.lists_agreed else "✓"
        summary = f"{open_count} left" if open_count else finished_text
        name = self.name_of(items.trace_id)
        return [
            QueueRow(
                trace_id=items.trace_id,
                item=None,
                state=RowState.TRACE,
                code="",
                name=name,
                summary=summary,
            ),
            *item_rows,
        ]

    def _locked_rows(self) -> list[QueueRow]:
        """Return the rows of the traces that the adjudicator may not see yet."""
        return [
            QueueRow(
                trace_id=entry.trace_id,
                item=None,
                state=RowState.LOCKED,
                code="",
                name=self.name_of(entry.trace_id),
                summary=FINISH_FIRST if entry.access is Access.UNFINISHED else HIDDEN,
            )
            for entry in self._ordered_entries
            if entry.access is not Access.OPEN
        ]

    def name_of(self, trace_id: str) -> str:
        """Return the name of a trace, or its id before the queue was read."""
        loader = self.contents.loader
        return trace_id if loader is None else loader.name_of(trace_id)

    def set_names_hidden(self, names_hidden: bool) -> None:
        """Show letters for the sides if their names are hidden, else their names."""
        self.names_hidden = names_hidden
        self.items = {
            trace_id: replace(items, names_hidden=names_hidden)
            for trace_id, items in self.items.items()
        }
        self.show()

    def update_trace(self, work: Adjudication) -> None:
        """Update the items of a trace after a decision."""
        previous_items = self.items.get(work.trace_id)
        if previous_items is not None:
            self.items[work.trace_id] = replace(
                previous_items,
                sides=work.trace_sides.sides,
                gold=work.gold,
                decisions=work.decisions,
                letters=letters_of(work.trace_sides, self.contents.study),
            )
        self.show()

    # Progress

    def open_count(self) -> int:
        """Return the number of open conflicts in all traces."""
        return sum(items.open_count for items in self.items.values())

    def changed_count(self) -> int:
        """Return the number of decided conflicts of which a side has changed its answer since."""
        return sum(items.changed_count for items in self.items.values())

    def progress(self) -> list[str]:
        """Return the progress in parts for the title: decided, to confirm, open, hidden."""
        if not self.was_read:
            return []
        locked_count = len(self._locked_rows())
        # Where all conflicts are hidden, "nothing left" would be wrong.
        parts = self._conflict_counts() if self.items or not locked_count else []
        if locked_count:
            parts.append(f"{counted(locked_count, 'trace')} hidden")
        return parts

    def _conflict_counts(self) -> list[str]:
        """Return the numbers of decided and open conflicts as texts.

        Decisions whose answers have changed since are to be confirmed.
        """
        open_count = self.open_count()
        trace_count = sum(items.open_count > 0 for items in self.items.values())
        decided_count = sum(items.decided_count for items in self.items.values())
        changed_count = self.changed_count()
        total = decided_count + open_count
        parts = [f"{decided_count} of {total} decided"] if total else []
        if changed_count and parts:
            parts[0] += f" ({changed_count} to confirm)"
        elif changed_count:
            parts.append(f"{changed_count} to confirm")
        if open_count:
            parts.append(f"{open_count} left in {counted(trace_count, 'trace')}")
        return parts if open_count or changed_count else [*parts, "nothing left"]

    def locked_text(self, trace_id: str, key_of: KeyOf) -> str:
        """Return why the labels of a trace are hidden, and the key that opens them.

        The text is empty if the queue does not have the trace.

        Args:
            trace_id: The id of the trace.
            key_of: Returns how the key of an action is shown.
        """
        entry = next((e for e in self.contents.entries if e.trace_id == trace_id), None)
        if entry is None:
            return ""
        other_annotators = [
            one_line(name) for name in entry.sides if name != self.contents.annotator
        ]
        names = joined(other_annotators)
        if self.names_hidden:
            names = counted(len(other_annotators), "person", "people")
        verb = "has" if len(other_annotators) == 1 else "have"
        if entry.access is Access.UNFINISHED:
            return (
                f"{names} {verb} finished this trace. You have begun it: their labels stay "
                "hidden until you have finished it too."
            )
        enter = key_of("adjudicate.enter")
        if self.contents.may_retest:  # the text must not reveal which traces are retests
            return (
                f"{names} {verb} finished this trace: their labels are hidden from you for now. "
                f"{enter} opens them to you as adjudicator."
            )
        return (
            f"{names} {verb} finished this trace, you have not: their labels are hidden from you. "
            f"{enter} opens them to you as adjudicator."
        )

    def hidden_traces(self) -> list[str]:
        """Return the ids of the traces that the adjudicator has neither labelled nor taken on."""
        return [entry.trace_id for entry in self.contents.entries if entry.access is Access.HIDDEN]


def _entry_keys(contents: QueueContents) -> set[tuple[str, tuple[str, ...], Access]]:
    return {(entry.trace_id, entry.sides, entry.access) for entry in contents.entries}
