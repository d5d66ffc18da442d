"""The queue of an adjudicator: its rows, their order, and the progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mast_tui.adjudication import (
    Access,
    Adjudication,
    AdjudicationCase,
    QueueEntry,
    trace_disagreement,
)
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import KeyOf
from mast_tui.ui.adjudicate.cases import QueueContents, TraceCases, is_by_one_side, letters_of
from mast_tui.ui.adjudicate.lists import ConflictList, QueueRow, RowState
from mast_tui.ui.wording import counted, joined_names

HIDDEN = "hidden"
FINISH_FIRST = "finish it first"


class Queue:
    """The traces of an adjudicator with their cases.

    Attributes:
        lines: The list on screen. A hidden trace has a single row.
        mode: The slug of the only mode to list, or None.
        contents: The queue as read from the workspace.
        cases: The cases of each visible trace, by trace id.
        lists_agreed: Whether to list undisputed modes.
        names_hidden: Whether letters replace the names of the sides.
    """

    def __init__(
        self, mode: str | None, is_busy: Callable[[str], bool], *, lists_agreed: bool
    ) -> None:
        """Make an empty queue.

        Args:
            mode: The slug of the only mode to list, or None.
            is_busy: Tells whether another adjudicator is at a case, by its presence key.
            lists_agreed: Whether to list undisputed modes.
        """
        self._is_busy = is_busy
        self.lines = ConflictList(id="queue")
        self.mode = mode
        self.contents = QueueContents()
        self.cases: dict[str, TraceCases] = {}
        self.lists_agreed = lists_agreed
        self.names_hidden = False
        self._ordered_entries: list[QueueEntry] = []
        """The entries of ``contents`` in the order of the list."""

    @property
    def row(self) -> QueueRow | None:
        """The row under the cursor."""
        return self.lines.row

    @property
    def current_cases(self) -> TraceCases | None:
        """The cases of the trace under the cursor, or None if they are hidden."""
        return None if self.row is None else self.cases.get(self.row.trace_id)

    @property
    def current_case(self) -> AdjudicationCase | None:
        """The case under the cursor; None for a trace."""
        cases = self.current_cases
        return None if cases is None or self.row is None else cases.find(self.row.case_id)

    @property
    def is_reading(self) -> bool:
        """True if the trace under the cursor is still being read."""
        row = self.row
        loader = self.contents.loader
        return row is not None and loader is not None and not loader.was_read(row.trace_id)

    def is_at_cursor(self, trace_id: str, case_id: str | None) -> bool:
        """Return whether the cursor is on a case.

        Args:
            trace_id: The id of the trace.
            case_id: The id of the case; None for the row of the trace.
        """
        row = self.row
        return row is not None and (row.trace_id, row.case_id) == (trace_id, case_id)

    def go_to_item(self, trace_id: str, item: str) -> bool:
        """Move the cursor to the case of a decided item; return False if it is not listed.

        Args:
            trace_id: The id of the trace.
            item: The id of a verdict or span range.
        """
        cases = self.cases.get(trace_id)
        case_id = item if cases is None else cases.case_id_of(item)
        position = self.lines.position_of(trace_id, case_id)
        if position is not None:
            self.lines.move_to(position)
        return position is not None

    def next_open(self, start: int, step: int = 1) -> int | None:
        """Return the position of the next open case, or None.

        Cases that another adjudicator is at come last.

        Args:
            start: The position before the first row to look at.
            step: 1 for the next case, -1 for the previous one.
        """

        def is_busy(row: QueueRow) -> bool:
            cases = self.cases.get(row.trace_id)
            return cases is not None and self._is_busy(cases.presence_key(row.case_id or ""))

        return self.lines.next_open(start, step, postpone=is_busy)

    @property
    def was_read(self) -> bool:
        """True once the queue has been read."""
        return self.contents.loader is not None

    def is_showing(self, contents: QueueContents) -> bool:
        """Return whether the queue already shows these contents."""
        return (
            _entry_keys(self.contents) == _entry_keys(contents)
            and self.contents.study == contents.study
            and all(
                self.cases[trace_id].has_same_answers(cases)
                for trace_id, cases in contents.cases.items()
            )
        )

    def update(self, contents: QueueContents, begin_at: str | None = None) -> None:
        """List other contents and keep the cursor. The first time, move it to an open case.

        Args:
            contents: The contents of the queue.
            begin_at: The id of the trace to begin with, or None.
        """
        is_first = not self.was_read
        was_hidden = self.row is not None and self.current_cases is None
        self.contents = contents
        study_hides_names = contents.study is not None and contents.study.names_hidden
        if is_first:  # later the adjudicator may have shown or hidden them
            self.names_hidden = study_hides_names
        self.cases = {
            trace_id: replace(
                cases,
                names_hidden=self.names_hidden,
                keeps_letter_order=study_hides_names,
                only_mode=self.mode,
            )
            for trace_id, cases in contents.cases.items()
        }
        self._ordered_entries = list(contents.entries)
        if self.mode is not None:
            self._ordered_entries.sort(key=self._negative_disagreement)
        self.show()
        if is_first:
            self._go_to_start(begin_at)
        elif was_hidden and self.current_cases is not None and self.row is not None:
            # Traces were just taken on. Without conflicts, the trace itself is not listed any more.
            first = self.next_open(self.lines.cursor if self.row.case_id is None else -1)
            if first is None:
                first = self.lines.first_in_trace(self.lines.cursor)
            self.lines.move_to(first)

    def _negative_disagreement(self, entry: QueueEntry) -> float:
        """Return a sort key that puts the trace with the most disagreement on the mode first."""
        cases = self.cases.get(entry.trace_id)
        conflicts = () if cases is None else cases.gold.conflicts
        return -trace_disagreement(conflict for conflict in conflicts if conflict.mode == self.mode)

    def _go_to_start(self, begin_at: str | None) -> None:
        """Move to the first case of a trace, or to the first open case.

        If the trace has only agreed cases, list agreed cases too.
        """
        start = self.next_open(-1)  # -1 is before the first row
        if begin_at is not None:
            if self.lines.position_of(begin_at, case_id=None) is None and not self.lists_agreed:
                # The trace was resolved meanwhile, so it is listed only with agreed cases.
                self.lists_agreed = True
                self.show()
            position = self.lines.position_of(begin_at, case_id=None)
            start = start if position is None else self.lines.first_in_trace(position)
        if start is not None:
            self.lines.move_to(start)

    def show(self) -> None:
        """List all rows again."""
        rows: list[QueueRow] = []
        for entry in self._ordered_entries:
            cases = self.cases.get(entry.trace_id)
            if cases is not None:
                rows += self._rows_of_trace(cases)
        self.lines.show([*rows, *self._locked_rows()])

    def _rows_of_trace(self, cases: TraceCases) -> list[QueueRow]:
        """Return the row of a trace and the rows of its listed cases; empty without any."""
        case_rows = [
            row for row in cases.rows if self.lists_agreed or row.state is not RowState.AGREED
        ]
        if not case_rows:
            return []
        summary = f"{cases.open_count} left" if cases.open_count else "✓"
        return [self._trace_row(cases.trace_id, RowState.TRACE, summary), *case_rows]

    def _locked_rows(self) -> list[QueueRow]:
        """Return a row for each trace that the adjudicator may not see yet."""
        return [
            self._trace_row(
                entry.trace_id,
                RowState.LOCKED,
                FINISH_FIRST if entry.access is Access.UNFINISHED else HIDDEN,
            )
            for entry in self._ordered_entries
            if entry.access is not Access.OPEN
        ]

    def _trace_row(self, trace_id: str, state: RowState, summary: str) -> QueueRow:
        name = self.name_of(trace_id)
        return QueueRow(
            trace_id=trace_id, case_id=None, state=state, code="", name=name, summary=summary
        )

    def name_of(self, trace_id: str) -> str:
        """Return the name of a trace, or its id before the queue is read."""
        loader = self.contents.loader
        return trace_id if loader is None else loader.name_of(trace_id)

    def set_names_hidden(self, names_hidden: bool) -> None:
        """Show letters or names for the sides."""
        self.names_hidden = names_hidden
        self.cases = {
            trace_id: replace(cases, names_hidden=names_hidden)
            for trace_id, cases in self.cases.items()
        }
        self.show()

    def update_trace(self, work: Adjudication) -> None:
        """Update the cases of a trace after a decision."""
        previous = self.cases.get(work.trace_id)
        if previous is not None:
            self.cases[work.trace_id] = replace(
                previous,
                sides=work.trace_sides.sides,
                gold=work.gold,
                decisions=work.decisions,
                letters=letters_of(work.trace_sides, self.contents.study),
            )
        self.show()

    def undisputed_counts(self) -> tuple[int, int]:
        """Return the number of verdicts on which people agree, and of verdicts by one person."""
        verdicts = [
            verdict
            for cases in self.cases.values()
            for verdict in cases.gold.verdicts
            if verdict.value is not None and self.mode in (None, verdict.mode)
        ]
        single_count = sum(map(is_by_one_side, verdicts))
        return len(verdicts) - single_count, single_count

    def open_count(self) -> int:
        """Return the number of open conflicts in all traces."""
        return sum(cases.open_count for cases in self.cases.values())

    def open_in_other_modes(self) -> int:
        """Return the number of open conflicts in modes that are not listed."""
        return (
            sum(replace(cases, only_mode=None).open_count for cases in self.cases.values())
            - self.open_count()
        )

    def changed_count(self) -> int:
        """Return the number of decided conflicts with a changed answer."""
        return sum(cases.changed_count for cases in self.cases.values())

    def progress(self) -> list[str]:
        """Return the parts of the title about the progress: open, hidden, decided, to confirm."""
        if not self.was_read:
            return []
        locked_count = len(self._locked_rows())
        # Without a trace to decide on, "nothing left" would be wrong.
        parts = self._conflict_counts() if self.cases else []
        # The number of planned retests among the other hidden traces must not be visible.
        begun_count = sum(entry.access is Access.UNFINISHED for entry in self.contents.entries)
        if locked_count > begun_count:
            parts.insert(1, f"{counted(locked_count - begun_count, 'trace')} hidden")
        if begun_count:
            parts.append(f"{counted(begun_count, 'trace')} to finish first")
        return parts

    def _conflict_counts(self) -> list[str]:
        """Return texts with the numbers of open and decided conflicts.

        Decisions with changed answers are to be confirmed.
        """
        open_count = self.open_count()
        trace_count = sum(cases.open_count > 0 for cases in self.cases.values())
        decided_count = sum(cases.decided_count for cases in self.cases.values())
        changed_count = self.changed_count()
        total = decided_count + open_count
        parts = [f"{decided_count} of {total} decided"] if total else []
        if changed_count and parts:
            parts[0] += f" ({changed_count} to confirm)"
        elif changed_count:
            parts.append(f"{changed_count} to confirm")
        if open_count:
            return [f"{open_count} left in {counted(trace_count, 'trace')}", *parts]
        return parts if changed_count else ["nothing left", *parts]

    def locked_text(self, trace_id: str, key_of: KeyOf) -> str:
        """Return why the labels of a trace are hidden, and the key that shows them.

        The text is empty for an unknown trace.

        Args:
            trace_id: The id of the trace.
            key_of: Returns how the key of an action is shown.
        """
        entry = next((e for e in self.contents.entries if e.trace_id == trace_id), None)
        if entry is None:
            return ""
        names = [one_line(name) for name in entry.sides if name != self.contents.annotator]
        people = (
            counted(len(names), "person", "people") if self.names_hidden else joined_names(names)
        )
        subject = f"{people} {'has' if len(names) == 1 else 'have'} finished this trace"
        if entry.access is Access.UNFINISHED:
            return (
                f"{subject}. You have begun to label it: their labels stay hidden until you have "
                "finished it too."
            )
        effect = f"{key_of('adjudicate.enter')} opens them to you as adjudicator."
        if self.contents.may_retest:  # the text must not reveal which traces are retests
            return f"{subject}: their labels are hidden from you for now. {effect}"
        return f"{subject}, you have not: their labels are hidden from you. {effect}"

    def must_be_finished(self, trace_id: str) -> bool:
        """Return whether the adjudicator must first finish the own labels of a trace."""
        return any(
            entry.trace_id == trace_id and entry.access is Access.UNFINISHED
            for entry in self.contents.entries
        )

    def hidden_traces(self) -> list[str]:
        """Return the ids of the traces that the adjudicator has neither labelled nor taken on."""
        return [entry.trace_id for entry in self.contents.entries if entry.access is Access.HIDDEN]


def _entry_keys(contents: QueueContents) -> set[tuple[str, tuple[str, ...], Access]]:
    return {(entry.trace_id, entry.sides, entry.access) for entry in contents.entries}
