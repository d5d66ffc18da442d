"""The undo of an import, by events that reverse its events.

No event is ever erased. Traces, taxonomies and annotators stay.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from mast_tui.counts import counted
from mast_tui.exchange.batches import EVENTS_AT_ONCE, batched, let_others_write
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import undone_id
from mast_tui.labels import PassKind
from mast_tui.workspace import Event, NewEvent, Workspace
from mast_tui.workspace.events.model import IMPORT_PREFIX
from mast_tui.workspace.events.types import (
    BlindWorkSet,
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
    SpanNoteSet,
    SpansRead,
    StudySet,
    SuggestionsSeen,
    VerdictSet,
    inverse,
    swapped,
)
from mast_tui.workspace.registers.imports import ImportRecord, ImportState, Work

_NOTICED: Final = SpansRead | SuggestionsSeen | Revealed
"""Facts that only record what an annotator has seen. No work depends on them, and they cannot be
undone."""

_IN_WORDS: Final[Mapping[type, str]] = {
    LabelAdded: "labels added",
    LabelChanged: "labels changed",
    LabelRemoved: "labels removed",
    VerdictSet: "verdicts set",
    PassStarted: "the trace begun",
    PassFinished: "the trace finished",
    PassUnfinished: "the trace reopened",
    ReviewSet: "suggestions reviewed",
    SpanNoteSet: "notes written",
    Decided: "decisions made",
    GuidelineSet: "guidelines written",
    StudySet: "a study set up",
    Judged: "a judge's run",
}


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of undoing an import.

    ``events`` is the number of undone events. ``built_on`` describes later work that depends on the
    import. If there is any, nothing was undone.
    """

    record: ImportRecord
    events: int
    built_on: tuple[str, ...] = ()


def continues_import(workspace: Workspace, request_key: str) -> bool:
    """Check for an interrupted import with this request key.

    Args:
        workspace: The workspace.
        request_key: The text by which a repeated import continues this one.
    """
    return any(
        record.asked == request_key and record.state is ImportState.UNFINISHED
        for record in workspace.imports()
    )


def find_import(
    workspace: Workspace, import_id: str, *, import_format: str | None = None
) -> ImportRecord:
    """Find an import that was not undone.

    Args:
        workspace: The workspace that holds the import.
        import_id: The id, or a unique end of it; empty for the latest import.
        import_format: The format of the import; None for any.

    Raises:
        ExchangeError: No import or several imports match, or the import was already undone.
    """
    imports = [record for record in workspace.imports() if import_format in (None, record.format)]
    if not import_id:
        not_undone = [record for record in imports if record.state is not ImportState.UNDONE]
        if not not_undone:
            raise ExchangeError("this workspace has no import to undo")
        return not_undone[-1]
    matches = [record for record in imports if record.id == import_id] or [
        record for record in imports if record.id.endswith(import_id)
    ]
    if len(matches) != 1:
        reason = "several imports match" if matches else "there is no such import"
        raise ExchangeError(f"{import_id}: {reason}; see 'mast-tui import --list'")
    if matches[0].state is ImportState.UNDONE:
        raise ExchangeError(f"import {matches[0].id} was already undone on {matches[0].undone_at}")
    return matches[0]


def undo_import(workspace: Workspace, record: ImportRecord, undone_by: str | None) -> Undone:
    """Undo an import, unless later work depends on it.

    All work is checked before the first event is undone. The events of an annotator on a trace stay
    in one batch. An interrupted undo is continued by the same request.

    Args:
        workspace: The workspace.
        record: The record of the import.
        undone_by: The name of the user; None if unknown.

    Returns:
        The number of undone events, or the later work that prevents the undo.

    Raises:
        ExchangeError: Later work has appeared during the undo.
        WorkspaceError: The workspace cannot be written; earlier batches stay.
    """
    works = workspace.import_works(record)
    batches = [
        [work for work, _ in batch]
        for batch in batched(works, lambda work_with_size: work_with_size[1], EVENTS_AT_ONCE)
    ]
    undoing = _ImportUndo(workspace, record)
    later_work = [sentence for batch in batches for sentence in undoing.later_work_on(batch)]
    if later_work:
        return Undone(record, 0, tuple(later_work))
    workspace.begin_undo(record)
    event_count = 0
    for batch in batches:
        with workspace.transaction():
            # Others may have written since the check.
            later_change = next(undoing.later_work_on(batch), None)
            if later_change is not None:
                raise ExchangeError(
                    f"{later_change}; the rest of the import stays. Undo that change, then run the "
                    "command again"
                )
            event_count += undoing.append_inverses(batch)
        let_others_write()
    workspace.finish_undo(record, undone_by)
    return Undone(record, event_count)


class _ImportUndo:
    """The undo of one import."""

    def __init__(self, workspace: Workspace, record: ImportRecord) -> None:
        self._workspace = workspace
        self._record = record
        self._imported_event_ids = workspace.imported_event_ids(record)
        self._undo_action = f"{IMPORT_PREFIX}undo:{record.id}"
        self._works: dict[Work, Sequence[Event]] = {}
        """The events of each work, as they were last read."""
        self._read_event_count = -1
        """The number of events in the workspace when they were last read; -1 before that."""

    def _read(self, works: Sequence[Work]) -> None:
        """Read the events of works, and all reviews and decisions."""
        event_count = self._workspace.event_count()
        if event_count == self._read_event_count and self._works.keys() == set(works):
            return
        self._read_event_count = event_count
        self._read_reviews_and_decisions()
        self._works = {}
        trace_ids_by_author = defaultdict[tuple[str, str], list[str]](list)
        for annotator, trace_id, taxonomy in works:
            # Only events with a trace and a taxonomy can be read together.
            if trace_id is None or taxonomy is None:
                work = (annotator, trace_id, taxonomy)
                self._works[work] = self._read_work(work)
            else:
                trace_ids_by_author[annotator, taxonomy].append(trace_id)
        for (annotator, taxonomy), trace_ids in trace_ids_by_author.items():
            events_by_trace = self._workspace.events_on_traces(annotator, taxonomy, trace_ids)
            self._works |= {
                (annotator, trace_id, taxonomy): events
                for trace_id, events in events_by_trace.items()
            }

    def _read_reviews_and_decisions(self) -> None:
        """Read the reviewers by suggestion, and the deciders by trace."""
        self._reviewers = defaultdict[str, list[str]](list)
        for review in self._workspace.reviews(pass_number=None):
            self._reviewers[review.suggestion].append(review.annotator)
        self._deciders = defaultdict[tuple[str, str], list[tuple[str, tuple[str, ...]]]](list)
        for taxonomy in self._workspace.used_taxonomies():
            for trace_id, decisions in self._workspace.all_decisions(taxonomy).items():
                # The adjudicator with the annotators of the conflicting answers.
                self._deciders[trace_id, taxonomy] += [
                    (decision.decided_by, tuple(answer.annotator for answer in decision.answers))
                    for decision in decisions
                ]

    def later_work_on(self, works: Sequence[Work]) -> Iterator[str]:
        """Yield texts on later work that depends on imported events."""
        self._read(works)
        for work in works:
            yield from self._later_work_on(work)

    def _later_work_on(self, work: Work) -> Iterator[str]:
        annotator, trace_id, taxonomy = work
        subject = annotator if trace_id is None else f"{annotator} on {trace_id}"
        events = self._events_of(work)
        imported = [event for event in events if self._is_imported(event)]
        later = [
            event
            for event in _effective_events(events)
            if event.seq >= imported[0].seq and not self._is_imported(event)
        ]
        for sentence in _changes_in_words(later):
            yield f"{subject}: {sentence}"
        for name, count in self._later_reviews(work, imported):
            yield f"{subject}: {name} has reviewed {counted(count, 'suggestion')}"
        if trace_id is not None and taxonomy is not None:
            for name in self._later_deciders(annotator, trace_id, taxonomy):
                yield f"{subject}: {name} has decided conflicts on this trace"

    def _later_reviews(self, work: Work, imported: Sequence[Event]) -> Iterator[tuple[str, int]]:
        """Yield the reviewers of imported suggestions with their number of reviews."""
        # A review refers to the id of the judge's label.
        label_ids = {
            event.fact.label.id for event in imported if isinstance(event.fact, LabelAdded)
        }
        review_counts = Counter(
            name for label_id in label_ids for name in self._reviewers.get(label_id, ())
        )
        for name, count in sorted(review_counts.items()):
            if not self._came_with_import(name, work, ReviewSet):
                yield name, count

    def _later_deciders(self, annotator: str, trace_id: str, taxonomy: str) -> Iterator[str]:
        """Yield the adjudicators who decided about an annotator's work on a trace."""
        deciders = {
            adjudicator
            for adjudicator, annotators in self._deciders[trace_id, taxonomy]
            if annotator in annotators
        }
        for name in sorted(deciders):
            if not self._came_with_import(name, (annotator, trace_id, taxonomy), Decided):
                yield name

    def append_inverses(self, works: Sequence[Work]) -> int:
        """Append events that undo the imported events, and return their number.

        ``later_work_on`` must have read the works.
        """
        count = 0
        inverses = (inverse for work in works for inverse in self._inverse_events(work))
        # ``append`` records one undone action, so the events of an action are appended together.
        for action, inverses_of_action in groupby(inverses, key=itemgetter(0)):
            new_events = [event for _, event in inverses_of_action]
            recorded = self._workspace.append(new_events, action=self._undo_action, undoes=action)
            count += len(recorded)
        return count

    def _inverse_events(self, work: Work) -> Iterator[tuple[str, NewEvent]]:
        """Yield the events that undo imported events, each after the action of the imported one."""
        events = self._events_of(work)
        for event in reversed(events):
            if not self._is_imported(event):
                continue
            fact = _inverse_of(event, events)
            if fact is not None:
                inverse_event = NewEvent(*work, event.pass_number, fact, id=undone_id(event.id))
                yield event.action, inverse_event

    def _events_of(self, work: Work) -> Sequence[Event]:
        read = self._works.get(work)
        return self._read_work(work) if read is None else read

    def _read_work(self, work: Work) -> Sequence[Event]:
        """Return all events of a work.

        It may have no trace or taxonomy.
        """
        annotator, trace_id, taxonomy = work
        own_events = self._workspace.events(
            annotator=annotator, trace_id=trace_id, taxonomy=taxonomy
        )
        # As a filter, None selects all traces or taxonomies.
        return [
            event
            for event in own_events
            if (event.trace_id, event.taxonomy) == (trace_id, taxonomy)
        ]

    def _is_imported(self, event: Event) -> bool:
        if self._record.keeps_actions:
            return event.id in self._imported_event_ids
        return event.action == self._record.action

    def _came_with_import(self, name: str, work: Work, kind: type[Fact]) -> bool:
        """Check that the import or this undo made all events of a kind by ``name`` on the trace."""
        _, trace_id, taxonomy = work
        events = [
            event
            for event in self._events_of((name, trace_id, taxonomy))
            if isinstance(event.fact, kind)
        ]
        # An undo that was interrupted has made events before.
        return all(
            self._is_imported(event) or event.action == self._undo_action for event in events
        )


def _effective_events(events: Sequence[Event]) -> Iterator[Event]:
    """Yield the events that change an annotator's work and were not undone."""
    undone_actions = set[str]()
    for event in events:
        if event.undoes is not None:
            undone_actions.add(event.undoes)
        if event.redoes is not None:
            undone_actions.discard(event.redoes)
    for event in events:
        is_undo_or_redo = event.undoes is not None or event.redoes is not None
        if is_undo_or_redo or isinstance(event.fact, _NOTICED):
            continue
        if event.action not in undone_actions:
            yield event


def _changes_in_words(events: Sequence[Event]) -> Iterator[str]:
    """Yield texts on later imports and on changes by hand."""
    import_actions = {event.action for event in events if event.action.startswith(IMPORT_PREFIX)}
    for action in sorted(import_actions):
        yield f"import {action.rsplit(':', 1)[-1]} has added to this work"
    descriptions = dict.fromkeys(
        _IN_WORDS.get(type(event.fact), "changed")
        for event in events
        if event.action not in import_actions
    )
    if descriptions:
        yield f"{', '.join(descriptions)} since"


def _inverse_of(event: Event, events: Sequence[Event]) -> Fact | None:
    """Return the fact that undoes an imported event; None if nothing is to undo."""
    earlier = events[: events.index(event)]
    match event.fact:
        case PassStarted(kind, copy_of):
            was_started_before = any(
                isinstance(earlier_event.fact, PassStarted)
                and earlier_event.pass_number == event.pass_number
                for earlier_event in _effective_events(earlier)
            )
            return None if was_started_before else PassWithdrawn(kind, copy_of)
        case Judged():
            # The earlier judgement of the trace is valid again.
            judgements = [
                earlier_event.fact
                for earlier_event in _effective_events(earlier)
                if isinstance(earlier_event.fact, Judged)
            ]
            return judgements[-1] if judgements else PassWithdrawn(PassKind.BLIND)
        case PassKindSet() | StudySet():
            return swapped(event.fact)
        case BlindWorkSet(old_blind, new_blind):
            return BlindWorkSet(new_blind, bool(old_blind))
        case fact:
            return inverse(fact)
