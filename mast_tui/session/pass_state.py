"""One annotator's work on one trace in memory, folded from the events.

The same as the workspace's tables say, pass by pass, with what can be taken back.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from mast_tui.labels import Label, Pass, PassKind, VerdictValue
from mast_tui.session.history import Action, History
from mast_tui.session.reading import ReadSpans
from mast_tui.workspace.events import Event
from mast_tui.workspace.facts import (
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    PassKindSet,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    Revealed,
    ReviewGiven,
    ReviewSet,
    SpanNoteSet,
    SpansRead,
    SuggestionsSeen,
    VerdictSet,
)

Value = TypeVar("Value")


@dataclass(slots=True)
class PassWork:
    """What stands in one pass. ``withdrawn``: the change that opened it was undone."""

    number: int
    kind: PassKind
    started_at: str
    finished_at: str | None = None
    read: int | None = None
    spans: int | None = None
    judge_seen: bool = False
    revealed_at: str | None = None
    withheld: bool = False
    withdrawn: bool = False
    labels: dict[str, Label] = field(default_factory=dict)
    verdicts: dict[str, VerdictValue] = field(default_factory=dict)
    reviews: dict[str, ReviewGiven] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


class Work:
    """All passes of one annotator over one trace under one taxonomy.

    ``in_retest`` says which work is meant: one's word on the trace, or a retest of it, which begins
    with nothing and shows nothing of the other. What was read is taken in by ``read``, anew in a
    retest.
    """

    def __init__(
        self,
        annotator: str,
        trace_id: str,
        taxonomy: str,
        new_read: Callable[[], ReadSpans],
        events: Iterable[Event] = (),
    ) -> None:
        self.annotator = annotator
        self.trace_id = trace_id
        self.taxonomy = taxonomy
        self.history = History()
        self.in_retest = False
        self.last_seq = 0
        self._read = new_read()
        self._read_again = new_read()
        self._passes: dict[int, PassWork] = {}
        for event in events:
            self.take(event)

    @property
    def passes(self) -> list[PassWork]:
        """The passes that were not withdrawn, by number."""
        return [one for _, one in sorted(self._passes.items()) if not one.withdrawn]

    @property
    def read(self) -> ReadSpans:
        """What was read in whatever pass, or in the retest."""
        return self._read_again if self.in_retest else self._read

    @property
    def retest_open(self) -> bool:
        """Whether a retest was begun and not finished; what comes after it ends it."""
        passes = self.passes
        last = passes[-1] if passes else None
        return last is not None and last.kind is PassKind.RETEST and last.finished_at is None

    @property
    def current(self) -> PassWork | None:
        """The last pass of one's own, or the retest.

        Adjudication is about everybody's labels, so not here.
        """
        own = self._own
        return own[-1] if own else None

    @property
    def _own(self) -> list[PassWork]:
        """The passes that show one's word on the trace; in a retest only this."""
        if self.in_retest:
            return [one for one in self.passes if one.kind is PassKind.RETEST]
        return [one for one in self.passes if one.kind.is_reading]

    @property
    def frozen(self) -> bool:
        """Whether the current pass can no longer change, so that an edit opens the next one.

        An adjudication after it shows what others said, which ends it as finishing does.
        """
        current = self.current
        return current is not None and (
            current.finished_at is not None
            or any(one.number > current.number for one in self.passes)
        )

    @property
    def adjudicated(self) -> bool:
        """Whether this annotator has taken the trace on as an adjudicator."""
        return any(one.kind is PassKind.ADJUDICATION for one in self.passes)

    @property
    def revealed(self) -> bool:
        """Whether what was hidden has been shown; a retest hides it once more."""
        passes = self._own if self.in_retest else self.passes
        return self.adjudicated or any(
            one.finished_at is not None and one.revealed_at is not None for one in passes
        )

    @property
    def next_number(self) -> int:
        """The number of the pass that would be opened next."""
        return max((one.number for one in self.passes), default=0) + 1

    @property
    def reviews(self) -> Mapping[str, ReviewGiven]:
        """Every answer given in any pass, but for retests, or in the retest; later ones hold."""
        return ChainMap(*(one.reviews for one in reversed(self.answering)))

    @property
    def answering(self) -> list[PassWork]:
        """The passes whose answers to suggestions are shown, by number."""
        if self.in_retest:
            return self._own
        return [one for one in self.passes if one.kind is not PassKind.RETEST]

    @property
    def last_done(self) -> Action | None:
        """The action that undo takes back: the last one, where it is of the current pass.

        Of a frozen pass only the finish can be taken back, and not once the trace was adjudicated.
        """
        current = self.current
        if current is None or not self.history.done:
            return None
        action = self.history.done[-1]
        if action.pass_number != current.number:
            return None
        if self.frozen and (
            current.finished_at is None
            or current.number + 1 < self.next_number
            or not isinstance(action.facts[-1], PassFinished)
        ):
            return None
        return action

    @property
    def last_undone(self) -> Action | None:
        """The action that redo does again: of the current pass, or the one that opens the next."""
        current = self.current
        if current is None or not self.history.undone:
            return None
        action = self.history.undone[-1]
        if action.opens_pass:
            fits = self.frozen and action.pass_number == self.next_number
        else:
            fits = not self.frozen and action.pass_number == current.number
        return action if fits else None

    def as_pass(self, work: PassWork) -> Pass:
        """A pass as others see it."""
        return Pass(
            annotator=self.annotator,
            trace_id=self.trace_id,
            taxonomy=self.taxonomy,
            number=work.number,
            kind=work.kind,
            started_at=work.started_at,
            finished_at=work.finished_at,
            judge_seen=work.judge_seen,
            read=work.read,
            spans=work.spans,
            revealed_at=work.revealed_at,
            withheld=work.withheld,
        )

    def take(self, event: Event) -> None:
        """Take in the next event of this annotator, trace and taxonomy."""
        self.last_seq = max(self.last_seq, event.seq)
        self.history.take(event)
        number = event.pass_number
        if number is None:
            return
        match event.fact:
            case SpansRead():
                self._take_read(number, event.fact)
                return
            case PassStarted():
                self._start(number, event.fact, event.at)
                return
        work = self._passes.get(number)
        if work is None:
            # Only a foreign file can bring this; the labels stand in no pass that was begun.
            return
        self._take_in_pass(work, event)

    def _take_read(self, number: int, read: SpansRead) -> None:
        work = self._passes.get(number)
        in_retest = work is not None and work.kind is PassKind.RETEST
        (self._read_again if in_retest else self._read).take(read)

    def _start(self, number: int, started: PassStarted, at: str) -> None:
        work = self._passes.get(number)
        if work is None:
            self._passes[number] = PassWork(number, started.kind, at, withheld=started.withheld)
        elif work.withdrawn:
            work.kind, work.started_at, work.withdrawn = started.kind, at, False
            work.withheld = started.withheld

    def _take_in_pass(self, work: PassWork, event: Event) -> None:
        match event.fact:
            case LabelAdded(label) | LabelChanged(_, label):
                work.labels[label.id] = label
            case LabelRemoved(label):
                work.labels.pop(label.id, None)
            case VerdictSet(mode, _, value):
                _put(work.verdicts, mode, value)
            case ReviewSet(suggestion, _, review):
                _put(work.reviews, suggestion, review)
            case SpanNoteSet(key, _, text):
                _put(work.notes, key, text or None)
            case PassWithdrawn():
                work.withdrawn = True
            case PassKindSet(_, kind):
                work.kind = kind
            case PassFinished(_, read, spans, at):
                work.finished_at = event.at if at is None else at
                work.read, work.spans = read, spans
            case PassUnfinished():
                work.finished_at = work.read = work.spans = None
            case SuggestionsSeen():
                work.judge_seen = True
            case Revealed():
                work.revealed_at = event.at
            case _:
                pass  # decisions and the like are no part of one's own reading


def _put(values: dict[str, Value], key: str, value: Value | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
