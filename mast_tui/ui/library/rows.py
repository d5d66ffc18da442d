"""The rows of the library: what is known of each trace, filtered and sorted into a queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mast_tui.traces.model import Outcome, Trace
from mast_tui.ui.wording import natural

if TYPE_CHECKING:
    from mast_tui.session import LibraryEntry


class WorkState(StrEnum):
    """How far the annotator has come with a trace."""

    OPEN = "open"
    UNTOUCHED = "untouched"
    FINISHED = "finished"


GLYPHS: Final = {WorkState.OPEN: "◐", WorkState.UNTOUCHED: "○", WorkState.FINISHED: "●"}


@dataclass(frozen=True, kw_only=True)
class LibraryRow:
    """One trace as the library shows it; what its annotator may not see is empty here.

    What sorting and filtering look at is made when it is first asked for, and once.
    """

    trace_id: str
    name: str
    system: str = ""
    model: str = ""
    benchmark: str = ""
    outcome: str = ""
    spans: int = 0
    complete: bool = True
    state: WorkState = WorkState.UNTOUCHED
    finished_by: tuple[str, ...] = ()
    waiting: int = 0
    labels: int = 0
    task_id: str = ""
    trial: str = ""
    same_as: tuple[str, ...] = ()
    """The names of traces that are the same run."""

    @cached_property
    def natural(self) -> str:
        """The name as a sorting key by which ``2.json`` comes before ``10.json``."""
        return natural(self.name)

    @cached_property
    def by_task(self) -> tuple[bool, str, int]:
        """A sorting key by the task, then by the trial; those without a task come last."""
        task = natural(self.task_id) if self.task_id else ""
        return not self.task_id, task, int(self.trial or 0)

    @cached_property
    def haystack(self) -> str:
        """What a filter looks at."""
        parts = [self.name, self.system, self.model, self.benchmark, self.outcome, self.state]
        parts += [self.task_id, f"trial {self.trial}"] if self.trial else [self.task_id]
        parts += [word for word, holds in self._conditions if holds]
        return " ".join([*parts, *self.finished_by]).casefold()

    @property
    def _conditions(self) -> tuple[tuple[str, bool], ...]:
        """Words that a filter may ask for, and whether they hold."""
        return (
            ("unread", self.state is WorkState.UNTOUCHED),
            ("with suggestions", self.waiting > 0),
            ("labelled", self.labels > 0),
            ("same run", bool(self.same_as)),
        )


class Sort(StrEnum):
    """Orders of the library; the first is the queue."""

    QUEUE = "queue"
    NAME = "name"
    TASK = "task"
    MODEL = "model"
    OUTCOME = "outcome"
    SPANS = "spans"
    WAITING = "suggestions"

    def following(self) -> Sort:
        """The next order."""
        every = list(Sort)
        return every[(every.index(self) + 1) % len(every)]


_STATES: Final = {state: place for place, state in enumerate(WorkState)}


def _in_order(rows: Iterable[LibraryRow], sort: Sort) -> list[LibraryRow]:
    """The rows sorted; those that are alike by the sort stand by their names."""
    by_name = sorted(rows, key=attrgetter("natural"))
    if sort is Sort.QUEUE:
        by_name.sort(key=lambda row: _STATES[row.state])
    elif sort is Sort.TASK:
        by_name.sort(key=attrgetter("by_task"))
    elif sort is Sort.MODEL:
        by_name.sort(key=lambda row: (row.model.casefold(), row.system.casefold()))
    elif sort is Sort.OUTCOME:
        by_name.sort(key=lambda row: row.outcome or "~")
    elif sort is Sort.SPANS:
        by_name.sort(key=lambda row: -row.spans)
    elif sort is Sort.WAITING:
        by_name.sort(key=lambda row: -row.waiting)
    return by_name


def _spells(text: str, word: str) -> bool:
    """Whether a text holds the letters of a word in their order."""
    at = 0
    for letter in word:
        at = text.find(letter, at) + 1
        if not at:
            return False
    return True


@dataclass(frozen=True, slots=True)
class _Arranged:
    """What was listed for a needle; ``spelled`` where only letters in order were found."""

    needle: str
    sort: Sort
    rows: list[LibraryRow]
    spelled: bool = False


class TraceListing:
    """All rows by trace id; what was sorted and filtered last is kept for the next key press."""

    def __init__(self) -> None:
        self._rows: dict[str, LibraryRow] = {}
        self._all: _Arranged | None = None
        self._last: _Arranged | None = None
        self._among: tuple[str, ...] | None = None
        self._in_order = False
        self.similar_only = False
        """Whether no row listed holds the needle as it stands."""
        self.matches_elsewhere = 0
        """How many rows hold the needle as it stands, all of them outside of the queue."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[LibraryRow]:
        return iter(self._rows.values())

    def put(self, rows: Iterable[LibraryRow]) -> None:
        """Add rows, or put them in the place of others of the same traces."""
        self._rows.update((row.trace_id, row) for row in rows)
        self._forget()

    def drop(self, trace_ids: Iterable[str]) -> None:
        """Take out the rows of these traces."""
        for trace_id in trace_ids:
            self._rows.pop(trace_id, None)
        self._forget()

    def narrow(self, trace_ids: Sequence[str] | None, *, in_order: bool) -> None:
        """Arrange only these traces, or all for None; ``in_order``: as they stand here, where
        nothing else is sorted by."""
        among = None if trace_ids is None else tuple(trace_ids)
        if (among, in_order) != (self._among, self._in_order):
            self._among, self._in_order = among, in_order
            self._forget()

    def _ordered(self, sort: Sort) -> list[LibraryRow]:
        if self._among is None:
            return _in_order(self, sort)
        rows = [self._rows[one] for one in self._among if one in self._rows]
        return rows if self._in_order and sort is Sort.QUEUE else _in_order(rows, sort)

    def _forget(self) -> None:
        self._all = self._last = None

    def arranged(self, needle: str, sort: Sort) -> list[LibraryRow]:
        """Return the rows that match every word of ``needle``, sorted.

        Where no row holds all words as they stand, neither in the queue nor outside, rows that hold
        their letters in order are taken: ``similar_only`` says so. A needle that has grown is
        looked for in what it matched.

        Args:
            needle: What the user has typed.
            sort: The order of the rows.
        """
        self.similar_only = False
        self.matches_elsewhere = 0
        if self._all is None or self._all.sort is not sort:
            self._all = _Arranged("", sort, self._ordered(sort))
        needle = needle.casefold().lstrip()
        words = needle.split()
        if not words:
            return self._all.rows
        last, among = self._last, self._all
        if last is not None and last.sort is sort and needle.startswith(last.needle):
            among = last
        found = [] if among.spelled else among.rows
        for word in words:
            found = [row for row in found if word in row.haystack]
        if not found:
            self.matches_elsewhere = self._count_outside_queue(words)
        spelled = not found and not self.matches_elsewhere
        if spelled:
            # Rows that hold a shorter needle as it stands are not all that spell this one.
            rows = among.rows if among.spelled else self._all.rows
            found = [row for row in rows if all(_spells(row.haystack, word) for word in words)]
        self.similar_only = spelled and bool(found)
        self._last = _Arranged(needle, sort, found, spelled)
        return found

    def _count_outside_queue(self, words: Sequence[str]) -> int:
        """Return how many rows that the queue leaves out hold all words as they stand."""
        if self._among is None:
            return 0
        return sum(all(word in row.haystack for word in words) for row in self)


def row_of(
    trace: Trace,
    name: str,
    entry: LibraryEntry | None,
    *,
    hidden_visible: bool,
    same_as: tuple[str, ...] = (),
) -> LibraryRow:
    """A trace as its annotator may see it."""
    facts = trace.summary
    visible = entry.hidden_visible if entry is not None else hidden_visible
    outcome = facts.outcome if visible and facts.outcome != Outcome.UNKNOWN else ""
    return LibraryRow(
        trace_id=facts.trace_id,
        name=name,
        system=facts.system or "",
        model=facts.model or "",
        benchmark=facts.benchmark or "",
        outcome=outcome,
        spans=facts.spans,
        complete=facts.all_spans,
        state=WorkState(entry.state) if entry is not None else WorkState.UNTOUCHED,
        finished_by=entry.finished_by if entry is not None else (),
        waiting=entry.waiting if entry is not None else 0,
        labels=entry.own_labels if entry is not None else 0,
        task_id=facts.task_id or "",
        trial="" if facts.trial is None else str(facts.trial),
        same_as=same_as,
    )


def tells_outcome(trace: Trace) -> bool:
    """Whether the row of a trace differs by whether its annotator may see the outcome."""
    return trace.summary.outcome != Outcome.UNKNOWN
