"""Taking an import back: what it brought is undone by events of its own, for nothing is erased.

The registers (traces, taxonomies, annotators) stay as the import left them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from mast_tui.exchange.batches import EVENTS_AT_ONCE, batched, let_others_write
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import undone_id
from mast_tui.labels import PassKind
from mast_tui.workspace import Event, NewEvent, Workspace
from mast_tui.workspace.events.model import IMPORT_PREFIX
from mast_tui.workspace.events.types import (
    Decided,
    Fact,
    GuidelineSet,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    PassKindSet,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    Revealed,
    ReviewSet,
    SightSet,
    SpanNoteSet,
    SpansRead,
    StudySet,
    SuggestionsSeen,
    VerdictSet,
    inverse,
)
from mast_tui.workspace.registers.imports import ImportRecord, ImportState

_NOTICED: Final = SpansRead | SuggestionsSeen | Revealed
"""What only notes that somebody has looked: nothing is built on it, and it cannot be undone."""

_IN_WORDS: Final[tuple[tuple[type, str], ...]] = (
    (LabelAdded, "labels added"),
    (LabelChanged, "labels changed"),
    (LabelRemoved, "labels taken off"),
    (VerdictSet, "verdicts set"),
    (PassStarted, "a pass begun"),
    (PassFinished, "a pass finished"),
    (PassUnfinished, "a pass reopened"),
    (ReviewSet, "suggestions reviewed"),
    (SpanNoteSet, "notes written"),
    (Decided, "decisions made"),
    (GuidelineSet, "guidelines written"),
    (StudySet, "a study set up"),
    (Judged, "a judge's run"),
)

_Work = tuple[str, str | None, str | None]
"""Annotator, trace id and taxonomy."""


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of taking an import back: the number of undone events, or the reasons against it.

    Where something was, nothing has changed.
    """

    record: ImportRecord
    events: int
    built_on: tuple[str, ...] = ()


def goes_on(workspace: Workspace, asked: str) -> bool:
    """Return whether this import completes one that was broken off.

    Args:
        workspace: The workspace.
        asked: The request of the import.
    """
    return any(
        record.asked == asked and record.state is ImportState.UNFINISHED
        for record in workspace.imports()
    )


def find_import(workspace: Workspace, import_id: str, *, only: str | None = None) -> ImportRecord:
    """Return an import that was not taken back.

    Args:
        workspace: The workspace into which it was made.
        import_id: Its id, an end of its id that no other has, or empty for the last import.
        only: Its format, None for any.

    Raises:
        ExchangeError: There is no such import, or it was taken back already.
    """
    every = [record for record in workspace.imports() if only in (None, record.format)]
    if not import_id:
        standing = [record for record in every if record.state is not ImportState.UNDONE]
        if not standing:
            raise ExchangeError("there is no import here that could be taken back")
        return standing[-1]
    matches = [record for record in every if record.id == import_id] or [
        record for record in every if record.id.endswith(import_id)
    ]
    if len(matches) != 1:
        reason = "several imports end so" if matches else "there is no such import here"
        raise ExchangeError(f"{import_id}: {reason}; 'mast-tui import --list' names them")
    if matches[0].state is ImportState.UNDONE:
        raise ExchangeError(
            f"import {matches[0].id} was taken back on {matches[0].undone_at} already"
        )
    return matches[0]


def undo_import(workspace: Workspace, record: ImportRecord, undone_by: str | None) -> Undone:
    """Take back what an import brought, unless something was built on it.

    Everything is looked at before the first event is written. They are written in batches, each
    person's work on a trace whole; one that is broken off goes on when it is asked for again.

    Args:
        workspace: where it was made.
        record: the import.
        undone_by: who takes it back, None where nobody is known.

    Returns:
        What was taken back, or what stands in the way.

    Raises:
        WorkspaceError: it cannot be written; the batches before that stay.
    """
    works = workspace.import_works(record)
    batches = [
        [work for work, _ in batch]
        for batch in batched(works, lambda work_with_size: work_with_size[1], EVENTS_AT_ONCE)
    ]
    undoing = _Undoing(workspace, record)
    built_on: list[str] = []
    for batch in batches:
        undoing.read(batch)
        built_on += [reason for work in batch for reason in undoing.built_on(work)]
    if built_on:
        return Undone(record, 0, tuple(built_on))
    workspace.begin_undo(record)
    events = 0
    for batch in batches:
        with workspace.transaction():
            undoing.read(batch)
            for work in batch:
                for reason in undoing.built_on(work):
                    raise ExchangeError(
                        f"{reason}, since this began; the rest of the import stays. Take that "
                        "back and ask again"
                    )
            events += undoing.take_back(batch)
        let_others_write()
    workspace.finish_undo(record, undone_by)
    return Undone(record, events)


class _Undoing:
    """One import being taken back."""

    def __init__(self, workspace: Workspace, record: ImportRecord) -> None:
        self._workspace = workspace
        self._record = record
        self._noted = workspace.noted_events(record)
        self._undoing = f"{IMPORT_PREFIX}undo:{record.id}"
        self._works: dict[_Work, Sequence[Event]] = {}
        self._events_then = -1

    def read(self, works: Sequence[_Work]) -> None:
        """Read all events of some works, and what others have said of the labels in them.

        Nothing is read again while the workspace has as many events as then: none is ever erased.
        """
        events_now = self._workspace.event_count()
        if events_now == self._events_then and self._works.keys() == set(works):
            return
        self._events_then = events_now
        self._read_answers()
        self._works = {}
        traces = defaultdict[tuple[str, str], list[str]](list)
        for annotator, trace_id, taxonomy in works:
            if trace_id is None or taxonomy is None:
                work = (annotator, trace_id, taxonomy)
                self._works[work] = self._read_one(work)
            else:
                traces[annotator, taxonomy].append(trace_id)
        for (annotator, taxonomy), trace_ids in traces.items():
            by_trace = self._workspace.events_on_traces(annotator, taxonomy, trace_ids)
            self._works |= {
                (annotator, trace_id, taxonomy): events for trace_id, events in by_trace.items()
            }

    def _read_answers(self) -> None:
        """Read reviews by suggestion, and decisions by trace and taxonomy."""
        self._reviews = defaultdict[str, list[str]](list)
        for review in self._workspace.reviews(pass_number=None):
            self._reviews[review.suggestion].append(review.annotator)
        self._decided = defaultdict[tuple[str, str], list[tuple[str, tuple[str, ...]]]](list)
        for taxonomy in self._workspace.used_taxonomies():
            for trace_id, decisions in self._workspace.all_decisions(taxonomy).items():
                self._decided[trace_id, taxonomy] += [
                    (decision.decided_by, tuple(answer.annotator for answer in decision.said))
                    for decision in decisions
                ]

    def built_on(self, work: _Work) -> Iterator[str]:
        """Return later work that rests on what the import brought to a work, in words."""
        events = self._events(work)
        ours = [event for event in events if self._is_ours(event)]
        where = work[0] if work[1] is None else f"{work[0]} on {work[1]}"
        later = [event for event in _effective(events) if event.seq >= ours[0].seq]
        later = [event for event in later if not self._is_ours(event)]
        imports = sorted({e.action for e in later if e.action.startswith(IMPORT_PREFIX)})
        for action in imports:
            yield f"{where}: import {action.rsplit(':', 1)[-1]} has added to it"
        counts = Counter(_fact_text(e.fact) for e in later if e.action not in imports)
        if counts:
            sentence = ", ".join(counts)
            yield f"{where}: {sentence} since"
        labels = {event.fact.label.id for event in ours if isinstance(event.fact, LabelAdded)}
        answered = Counter(name for label in labels for name in self._reviews.get(label, ()))
        for name, count in sorted(answered.items()):
            if not self._came_along(name, work, ReviewSet):
                yield f"{where}: {name} has reviewed suggestions of it ({count})"
        if work[1] is None or work[2] is None:
            return
        deciders = {
            adjudicator
            for adjudicator, sides in self._decided[work[1], work[2]]
            if work[0] in sides
        }
        for name in sorted(deciders):
            if not self._came_along(name, work, Decided):
                yield f"{where}: {name} has decided conflicts about it"

    def take_back(self, works: Sequence[_Work]) -> int:
        """Append what undoes the events of works, the last of each first; return how many."""
        count = 0
        inverses = (inverse for work in works for inverse in self._inverses(work))
        for undoes, together in groupby(inverses, key=itemgetter(0)):
            new = [event for _, event in together]
            count += len(self._workspace.append(new, action=self._undoing, undoes=undoes))
        return count

    def _inverses(self, work: _Work) -> Iterator[tuple[str, NewEvent]]:
        """Yield what undoes each event of a work, with the action that is undone."""
        events = self._events(work)
        for event in reversed(events):
            if self._is_ours(event) and (fact := _inverse_of(event, events)) is not None:
                new = NewEvent(*work, event.pass_number, fact, id=undone_id(event.id))
                yield event.action, new

    def _events(self, work: _Work) -> Sequence[Event]:
        read = self._works.get(work)
        return self._read_one(work) if read is None else read

    def _read_one(self, work: _Work) -> Sequence[Event]:
        annotator, trace_id, taxonomy = work
        own_events = self._workspace.events(
            annotator=annotator, trace_id=trace_id, taxonomy=taxonomy
        )
        return [event for event in own_events if (event.trace_id, event.taxonomy) == work[1:]]

    def _is_ours(self, event: Event) -> bool:
        if self._record.keeps_actions:
            return event.id in self._noted
        return event.action == self._record.action

    def _came_along(self, name: str, work: _Work, kind: type[Fact]) -> bool:
        """Return whether all events of a kind on a trace came with the same import."""
        own_events = [e for e in self._events((name, *work[1:])) if isinstance(e.fact, kind)]
        # What was taken back of it a moment ago is nothing that somebody said since.
        return all(self._is_ours(e) or e.action == self._undoing for e in own_events)


def _effective(events: Sequence[Event]) -> Iterator[Event]:
    """Yield the events that say something and were not taken back since."""
    undone = set[str]()
    for event in events:
        if event.undoes is not None:
            undone.add(event.undoes)
        if event.redoes is not None:
            undone.discard(event.redoes)
    for event in events:
        stands = event.undoes is None and event.redoes is None and event.action not in undone
        if stands and not isinstance(event.fact, _NOTICED):
            yield event


def _fact_text(fact: Fact) -> str:
    return next((text for kind, text in _IN_WORDS if isinstance(fact, kind)), "changed")


def _inverse_of(event: Event, events: Sequence[Event]) -> Fact | None:
    """Return the fact that takes back an event of an import; None if it only noted something."""
    earlier = events[: events.index(event)]
    match event.fact:
        case PassStarted(kind, copy_of):
            begun = any(
                isinstance(effective.fact, PassStarted)
                and effective.pass_number == event.pass_number
                for effective in _effective(earlier)
            )
            return None if begun else PassWithdrawn(kind, copy_of)
        case Judged():
            judged = [
                effective.fact
                for effective in _effective(earlier)
                if isinstance(effective.fact, Judged)
            ]
            return judged[-1] if judged else PassWithdrawn(PassKind.BLIND)
        case PassKindSet(before=first, after=then):
            return PassKindSet(then, first)
        case SightSet(was, blind):
            return SightSet(blind, bool(was))
        case StudySet(old, new):
            return StudySet(new, old)
        case fact:
            return inverse(fact)
