"""One annotator's work on one trace, computed from its events.

``changes_in_pass`` defines the effect of each fact on a pass.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final

from msgspec import field, structs

from mast_tui.labels import Label, Pass, PassKind, Target, TraceWork
from mast_tui.session.undo_history import Action, UndoHistory
from mast_tui.traces.model import Trace
from mast_tui.workspace.events.model import IMPORT_PREFIX, Event
from mast_tui.workspace.events.types import (
    Decided,
    Fact,
    LabelAdded,
    LabelChanged,
    PassFinished,
    PassStarted,
    ReviewGiven,
    SpansRead,
    changes_in_pass,
    inverse,
    set_or_remove,
)

SHORT_RANGE: Final = 16
"""The length of the longest range that is written as single keys."""


class ReadSpans(Set[str]):
    """The keys of the spans that were read: single keys, and long ranges by their two ends.

    A range may stand for a million spans, so it is stored by its ends. Keys that are not in the
    loaded part of the trace are kept too. ``len`` and iteration go through the ranges.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._keys: set[str] = set()
        self._ranges: dict[tuple[str, str], range | None] = {}
        """The indices of each range, by its first and last key; None until they are loaded."""

    def add(self, read: SpansRead) -> None:
        """Add the spans of an event."""
        self._keys.update(read.keys)
        for key_range in read.ranges:
            self._ranges.setdefault((key_range.first, key_range.last), None)

    def __contains__(self, key: object) -> bool:
        if key in self._keys:
            return True
        if not self._ranges or not isinstance(key, str):
            return False
        index = self._trace.index_of(key)
        return index is not None and any(index in indices for indices in self._loaded_ranges())

    def has_range(self, first: int, end: int) -> bool:
        """Return whether one read range contains all spans from ``first`` up to ``end``.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return any(
            indices.start <= first and end <= indices.stop for indices in self._loaded_ranges()
        )

    def __iter__(self) -> Iterator[str]:
        yield from self._keys
        # A range with an end that is not loaded has unknown keys. Ranges may overlap.
        for indices in _merged_ranges(self._loaded_ranges()):
            for index in indices:
                key = self._trace.span(index).key
                if key not in self._keys:
                    yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def read_ranges(self) -> list[range]:
        """Return the read ranges of the loaded trace, in order."""
        key_indices = (self._trace.index_of(key) for key in self._keys)
        single_spans = [range(index, index + 1) for index in key_indices if index is not None]
        return _merged_ranges([*single_spans, *self._loaded_ranges()])

    def unread(self) -> tuple[range, ...]:
        """Return the unread ranges of the loaded trace, in order."""
        unread_ranges = []
        end = 0
        for read_range in self.read_ranges():
            if read_range.start > end:
                unread_ranges.append(range(end, read_range.start))
            end = read_range.stop
        if end < len(self._trace):
            unread_ranges.append(range(end, len(self._trace)))
        return tuple(unread_ranges)

    def _loaded_ranges(self) -> list[range]:
        """Return the indices of the read ranges with loaded ends."""
        for (first, last), indices in self._ranges.items():
            if indices is None:
                first_index = self._trace.index_of(first)
                last_index = self._trace.index_of(last)
                if first_index is not None and last_index is not None:
                    self._ranges[first, last] = range(
                        min(first_index, last_index), max(first_index, last_index) + 1
                    )
        return [indices for indices in self._ranges.values() if indices is not None]


def _merged_ranges(ranges: list[range]) -> list[range]:
    """Sort ranges, and join those that overlap or are adjacent."""
    merged: list[range] = []
    for indices in sorted(ranges, key=lambda indices: indices.start):
        if merged and indices.start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, indices.stop))
        else:
            merged.append(indices)
    return merged


class PassState(TraceWork, kw_only=True):
    """The state of one pass: the annotator's work, and the facts of the pass.

    ``reviews`` are the answers to suggestions by the suggestion's id. ``withdrawn`` is True if the
    change that opened the pass was undone.
    """

    number: int
    kind: PassKind
    started_at: str
    spans_read: int | None = None
    spans: int | None = None
    revealed_at: str | None = None
    withheld: bool = False
    withdrawn: bool = False
    reviews: dict[str, ReviewGiven] = field(default_factory=dict)

    def copy(self) -> PassState:
        """Return an independent copy."""
        return structs.replace(
            self,
            labels=dict(self.labels),
            verdicts=dict(self.verdicts),
            reviews=dict(self.reviews),
            notes=dict(self.notes),
        )

    def apply(self, fact: Fact, time: str) -> None:
        """Apply the next fact of this pass.

        Args:
            fact: The fact.
            time: The time when it was recorded, ISO 8601 in UTC.
        """
        # A start of a pass that has begun already counts only after a withdrawal.
        if isinstance(fact, PassStarted) and self.withdrawn:
            self.kind = fact.kind
            self.started_at = time
            self.withdrawn = False
            self.withheld = fact.withheld
        # A change sets an attribute of the pass, or an entry of one of its dictionaries.
        for part, name, value in changes_in_pass(fact, time):
            if part == "pass":
                setattr(self, name, value)
            else:
                set_or_remove(getattr(self, part), name, value)

    def find(self, mode: str, target: Target) -> Label | None:
        """Return the label with exactly this mode and target."""
        return next((label for label in self.labels_of(mode) if label.target == target), None)

    def as_pass(self) -> Pass:
        """Return the pass without its labels, verdicts, answers and notes."""
        return Pass(
            annotator=self.annotator,
            trace_id=self.trace_id,
            taxonomy=self.taxonomy,
            number=self.number,
            kind=self.kind,
            started_at=self.started_at,
            finished_at=self.finished_at,
            judge_seen=self.judge_seen,
            read=self.spans_read,
            spans=self.spans,
            revealed_at=self.revealed_at,
            withheld=self.withheld,
        )


class Passes:
    """The passes of one annotator over one trace under one taxonomy, and the undo history.

    Attributes:
        in_retest: True to show only the retest, without the annotator's earlier work.
        last_seq: The sequence number of the last event.
    """

    def __init__(
        self,
        annotator: str,
        trace_id: str,
        taxonomy: str,
        trace: Trace,
        events: Iterable[Event],
    ) -> None:
        """Apply the annotator's events on the trace, in order."""
        self.annotator = annotator
        self.trace_id = trace_id
        self.taxonomy = taxonomy
        self.in_retest = False
        self.last_seq = 0
        self._history = UndoHistory()
        self._spans_read = ReadSpans(trace)
        self._spans_read_in_retest = ReadSpans(trace)
        self._by_number: dict[int, PassState] = {}
        self._event_of_label: dict[str, str] = {}
        """The event that gave each label its current values."""
        for event in events:
            self.apply_event(event)

    def apply_event(self, event: Event) -> None:
        """Apply the next event of this annotator, trace and taxonomy."""
        self.last_seq = max(self.last_seq, event.seq)
        if event.undoes is not None or event.redoes is not None or _can_be_undone(event):
            self._history.add(event)
        number = event.pass_number
        fact = event.fact
        if isinstance(fact, LabelAdded):
            self._event_of_label[fact.label.id] = event.id
        elif isinstance(fact, LabelChanged):
            self._event_of_label[fact.after.id] = event.id
        if number is None:
            return
        state = self._by_number.get(number)
        if isinstance(fact, SpansRead):
            in_retest = state is not None and state.kind is PassKind.RETEST
            read_spans = self._spans_read_in_retest if in_retest else self._spans_read
            read_spans.add(fact)
        elif state is not None:
            state.apply(fact, event.at)
        elif isinstance(fact, PassStarted):
            self._by_number[number] = self.new_pass(number, fact, event.at)
        # Only imported files have other events. Their labels belong to no pass.

    def new_pass(self, number: int, start: PassStarted, time: str) -> PassState:
        """Return an empty pass without adding it to this object.

        Args:
            number: The number of the pass.
            start: The fact that starts it.
            time: The time of its start, ISO 8601 in UTC.
        """
        return PassState(
            self.annotator,
            self.trace_id,
            self.taxonomy,
            number=number,
            kind=start.kind,
            started_at=time,
            withheld=start.withheld,
        )

    def replaced_by(self, fact: Fact) -> tuple[str, ...]:
        """Return the ids of the events that a new fact replaces.

        Only a change of a label replaces an event: the one that set the label's present values.
        """
        if not isinstance(fact, LabelChanged):
            return ()
        event_id = self._event_of_label.get(fact.before.id)
        return () if event_id is None else (event_id,)

    @property
    def _valid_passes(self) -> list[PassState]:
        """The passes that were not withdrawn, by number."""
        return [state for _, state in sorted(self._by_number.items()) if not state.withdrawn]

    @property
    def read(self) -> ReadSpans:
        """The spans that were read in any pass, or in the retest."""
        return self._spans_read_in_retest if self.in_retest else self._spans_read

    @property
    def retest_open(self) -> bool:
        """True if the last pass is an unfinished retest."""
        passes = self._valid_passes
        return (
            bool(passes) and passes[-1].kind is PassKind.RETEST and passes[-1].finished_at is None
        )

    @property
    def current(self) -> PassState | None:
        """The annotator's last pass with own labels; None before the first.

        In a retest it is the pass of the retest, or None until that has begun.
        """
        passes = self._own_passes
        return passes[-1] if passes else None

    @property
    def _own_passes(self) -> list[PassState]:
        """The passes with the annotator's own labels; in a retest only the retest."""
        if self.in_retest:
            return [state for state in self._valid_passes if state.kind is PassKind.RETEST]
        return [state for state in self._valid_passes if state.kind.is_labelling]

    @property
    def frozen(self) -> bool:
        """True if the current pass can no longer change: it is finished or a later pass exists."""
        current = self.current
        return current is not None and (
            current.finished_at is not None
            or any(state.number > current.number for state in self._valid_passes)
        )

    @property
    def adjudicated(self) -> bool:
        """True if this annotator has adjudicated the trace."""
        return any(state.kind is PassKind.ADJUDICATION for state in self._valid_passes)

    @property
    def revealed(self) -> bool:
        """True if others' labels and the outcome have been shown to the annotator.

        An adjudicator has seen them. In a retest an earlier reveal does not count.
        """
        passes = self._own_passes if self.in_retest else self._valid_passes
        return self.adjudicated or any(
            state.finished_at is not None and state.revealed_at is not None for state in passes
        )

    @property
    def shown_since_finish(self) -> bool:
        """True if others' labels were shown since the current pass was finished."""
        current = self.current
        if current is None or current.finished_at is None:
            return False
        return current.revealed_at is not None or any(
            state.kind is PassKind.ADJUDICATION and state.number > current.number
            for state in self._valid_passes
        )

    @property
    def next_number(self) -> int:
        """The number of the next pass."""
        return max((state.number for state in self._valid_passes), default=0) + 1

    @property
    def reviews(self) -> Mapping[str, ReviewGiven]:
        """The valid answers to suggestions: those of the retest, or of all other passes."""
        return ChainMap(*(state.reviews for state in reversed(self.answering)))

    @property
    def answering(self) -> list[PassState]:
        """The passes with valid answers to suggestions, by number."""
        if self.in_retest:
            return self._own_passes
        return [state for state in self._valid_passes if state.kind is not PassKind.RETEST]

    @property
    def last_done(self) -> Action | None:
        """The action that undo reverts; None if there is none.

        It belongs to the current pass. In a frozen pass only the finish can be undone, and only
        before an adjudication or a retest.
        """
        current = self.current
        action = self._history.last_done
        if current is None or action is None or action.pass_number != current.number:
            return None
        # An adjudication and a retest are passes too, so they take the next number.
        was_followed = current.number + 1 < self.next_number
        if self.frozen and (
            current.finished_at is None
            or was_followed
            or not isinstance(action.facts[-1], PassFinished)
        ):
            return None
        return action

    @property
    def last_undone(self) -> Action | None:
        """The action that redo repeats; None if there is none.

        It belongs to the current pass. If that pass is frozen, it must open the next pass.
        """
        current = self.current
        action = self._history.last_undone
        if current is None or action is None:
            return None
        if action.opens_pass:
            is_valid = self.frozen and action.pass_number == self.next_number
        else:
            is_valid = not self.frozen and action.pass_number == current.number
        return action if is_valid else None


def _can_be_undone(event: Event) -> bool:
    """Return whether undo can revert an event."""
    # Decisions are undone in adjudication.
    return (
        not event.action.startswith(IMPORT_PREFIX)
        and not isinstance(event.fact, Decided)
        and inverse(event.fact) is not None
    )
