"""The visible state of a session, updated with each change instead of recomputed."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct, structs

from mast_tui.errors import ServerAway
from mast_tui.labels import (
    Evidence,
    Label,
    QuoteDoubt,
    Target,
    VerdictValue,
    is_judge,
)
from mast_tui.redaction.filled_masks import masked_quote
from mast_tui.session.pass_state import PassState
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from mast_tui.workspace.registers.look_here import spans_to_look_at

NOWHERE: Final = 1 << 60
"""The index of a span that is not loaded, which sorts after all others."""


class LabelPosition(NamedTuple):
    """The sort key of a label: index of the first span, offset in its text, last span, mode, id."""

    first: int
    offset: int
    last: int
    mode: str
    label_id: str


class SuggestionPosition(NamedTuple):
    """The sort key of a suggestion: index of the span with its evidence, offset, mode, id."""

    span: int
    offset: int
    mode: str
    suggestion_id: str


class Suggestion(Struct, frozen=True):
    """A judge's label, which waits for a person's answer.

    Attributes:
        id: The id of the judge's label.
        judge: The judge's name as an annotator.
        mode: The slug of the mode.
        target: The span range.
        rationale: The judge's reason.
        confidence: A number in [0, 1]; None if the judge gave none.
        evidence: The quote, if the judge gave one.
        decisive: True if the failure decided the outcome; None if the judge did not say.
        remedy: The correction, if this is the decisive step of the run; else empty.
    """

    id: str
    judge: str
    mode: str
    target: Target
    rationale: str
    confidence: float | None
    evidence: Evidence | None = None
    decisive: bool | None = None
    remedy: str = ""

    @classmethod
    def of(cls, label: Label) -> Suggestion:
        """Create the suggestion from a judge's label."""
        return cls(
            label.id,
            label.annotator,
            label.mode,
            label.target,
            label.note,
            label.confidence,
            label.evidence,
            label.decisive,
            label.remedy,
        )

    @property
    def doubt(self) -> QuoteDoubt:
        """The doubt about the quote; none without a quote."""
        return QuoteDoubt.NONE if self.evidence is None else self.evidence.doubt

    @property
    def evidence_key(self) -> str | None:
        """The key of the span with the evidence, or else of the first span."""
        key = None if self.evidence is None else self.evidence.key
        return self.target.first if key is None else key

    @property
    def quote_offsets(self) -> tuple[int, int] | None:
        """The start and end of the quote in the text of its span (code points, end exclusive).

        None if the quote was not found.
        """
        evidence = self.evidence
        if evidence is None or evidence.char_start is None or evidence.char_end is None:
            return None
        return evidence.char_start, evidence.char_end


class OwnLabels:
    """The annotator's labels by position, by the spans at their ends, and by mode.

    A change of one label needs no sorting. Labels on spans that are not loaded get their position
    when the trace has grown.
    """

    def __init__(self, position_of: Callable[[Label], LabelPosition]) -> None:
        self.by_mode: Counter[str] = Counter()
        self._position_of = position_of
        self._labels: dict[str, Label] = {}
        self._positions: dict[str, LabelPosition] = {}
        self._sorted_positions: list[LabelPosition] = []
        self._ids_by_end: dict[str, set[str]] = {}
        """The ids of the labels that begin or end at a span, by its key."""
        self._range_ids: set[str] = set()
        """The ids of the labels on more than one span."""
        self._unplaced_ids: set[str] = set()
        """The ids of the labels without a loaded span at both ends."""
        self._in_order: tuple[Label, ...] | None = ()
        """The labels by position; None after a change."""
        self._span_count = 0

    def update(self, labels: Mapping[str, Label], spans: int) -> None:
        """Replace all labels.

        Args:
            labels: The current labels by id.
            spans: The number of spans of the trace.
        """
        outdated_labels = [
            label for label_id, label in self._labels.items() if labels.get(label_id) is not label
        ]
        for label in outdated_labels:
            self._remove_label(label)
        for label_id, label in labels.items():
            if label_id not in self._labels:
                self._add_label(label)
        self.update_positions(spans)

    def update_positions(self, spans: int) -> None:
        """Place labels on spans that were not loaded before."""
        if spans != self._span_count:
            self._span_count = spans
            for label in [self._labels[label_id] for label_id in self._unplaced_ids]:
                self._remove_label(label)
                self._add_label(label)

    def in_order(self) -> tuple[Label, ...]:
        """Return all labels in span order, after the labels on the whole trace."""
        if self._in_order is None:
            self._in_order = tuple(
                self._labels[position.label_id] for position in self._sorted_positions
            )
        return self._in_order

    def at(self, key: str, index: int | None) -> tuple[Label, ...]:
        """Return the labels that cover a span, in the order of positions.

        Args:
            key: The key of the span.
            index: The index of the span; None if it is not loaded.
        """
        covering = set(self._ids_by_end.get(key, ()))
        if index is not None:
            for label_id in self._range_ids:
                position = self._positions[label_id]
                # Labels that begin or end here were found by their keys. ``NOWHERE`` is unknown.
                if position.first < index < position.last < NOWHERE:
                    covering.add(label_id)
        positions = sorted(self._positions[label_id] for label_id in covering)
        return tuple(self._labels[position.label_id] for position in positions)

    def _add_label(self, label: Label) -> None:
        """Add a label to all tables."""
        position = self._position_of(label)
        self._labels[label.id] = label
        self._positions[label.id] = position
        insort(self._sorted_positions, position)
        self.by_mode[label.mode] += 1
        first = label.target.first
        last = label.target.last
        for key in (first, last):
            if key is not None:
                self._ids_by_end.setdefault(key, set()).add(label.id)
        if first != last:
            self._range_ids.add(label.id)
        if NOWHERE in (position.first, position.last):
            self._unplaced_ids.add(label.id)
        self._in_order = None

    def _remove_label(self, label: Label) -> None:
        """Remove a label from all tables."""
        del self._labels[label.id]
        position = self._positions.pop(label.id)
        del self._sorted_positions[bisect_left(self._sorted_positions, position)]
        self.by_mode[label.mode] -= 1
        if not self.by_mode[label.mode]:
            del self.by_mode[label.mode]
        for key in (label.target.first, label.target.last):
            if key is not None and key in self._ids_by_end:
                self._ids_by_end[key].discard(label.id)
                if not self._ids_by_end[key]:
                    del self._ids_by_end[key]
        self._range_ids.discard(label.id)
        self._unplaced_ids.discard(label.id)
        self._in_order = None


class SuggestionList:
    """Judges' suggestions in reading order, and the suggestions without an answer.

    Suggestions with an altered quote come later, those with a quote that was not found last.
    """

    def __init__(
        self,
        suggestions: Iterable[Suggestion],
        position_of: Callable[[Suggestion], SuggestionPosition],
    ) -> None:
        self.by_id = {suggestion.id: suggestion for suggestion in suggestions}
        self.pending_by_id: dict[str, Suggestion] = {}
        self._position_of = position_of
        self._span_count = -1
        """The number of spans at the last sort; -1 before the first one."""
        self._has_unplaced = True
        """True if a suggestion has no position yet, because its span is not loaded."""
        self._in_order: tuple[Suggestion, ...] = ()
        self._pending: tuple[Suggestion, ...] = ()
        self._answered: Set[str] | None = None
        """The answered ids for which ``_pending`` was made; None if it must be made again."""

    def in_order(self, spans: int) -> tuple[Suggestion, ...]:
        """Return all suggestions by the position of their evidence, doubtful quotes last.

        Args:
            spans: The number of spans of the trace.
        """
        if self._has_unplaced and spans != self._span_count:
            self._span_count = spans
            positions = {
                key: self._position_of(suggestion) for key, suggestion in self.by_id.items()
            }
            self._has_unplaced = any(position.span == NOWHERE for position in positions.values())
            self._in_order = tuple(
                sorted(
                    self.by_id.values(),
                    key=lambda suggestion: (suggestion.doubt, positions[suggestion.id]),
                )
            )
            self._answered = None
        return self._in_order

    def pending(self, spans: int, answered: Set[str]) -> tuple[Suggestion, ...]:
        """Return the suggestions without an answer, in order.

        Args:
            spans: The number of spans of the trace.
            answered: The ids of answered suggestions.
        """
        suggestions = self.in_order(spans)
        if answered is not self._answered:
            # For an equal set the result stays the same object.
            if answered != self._answered:
                self._pending = tuple(
                    suggestion for suggestion in suggestions if suggestion.id not in answered
                )
                self.pending_by_id = {suggestion.id: suggestion for suggestion in self._pending}
            self._answered = answered
        return self._pending


class OthersWork(NamedTuple):
    """The labels of all annotators and judges on a trace.

    Attributes:
        labels: The labels, including those of the session's annotator.
        judges: The judges with labels; without any, all judges that have judged the trace.
        look_here: The keys of the spans that probably contain the decisive step.
    """

    labels: tuple[Label, ...]
    judges: tuple[str, ...]
    look_here: tuple[str, ...] = ()


class ReadModel:
    """The visible state of a session: a pass, and others' labels on the trace, in reading order.

    The caller reads others' labels while ``must_read`` returns True.
    """

    def __init__(
        self, workspace: Workspace, trace: Trace, trace_id: str, taxonomy: str, annotator: str
    ) -> None:
        """Begin without labels.

        Args:
            workspace: The workspace.
            trace: The trace, whose spans determine the order of labels; it may grow.
            trace_id: The id of the trace in the workspace.
            taxonomy: The taxonomy, as ``id@version``.
            annotator: The annotator who labels the trace.
        """
        self._workspace = workspace
        self._trace = trace
        self._annotator = annotator
        self._trace_id = trace_id
        self._taxonomy = taxonomy
        self.others_work = OthersWork((), ())
        """All labels on the trace at the last reading, including hidden ones."""
        self._must_read_judges = True
        self._must_read_people = True
        self._own = OwnLabels(self._label_position)
        self._answered: frozenset[str] = frozenset()
        self._suggestions = SuggestionList((), self._suggestion_position)
        self.others: tuple[Label, ...] = ()
        """The labels of other people; empty while they are hidden."""
        self.verdicts: Mapping[str, VerdictValue] = MappingProxyType({})

    def update(self, current: PassState | None, answered: Iterable[str]) -> None:
        """Show the labels, answers and verdicts of the current pass.

        Args:
            current: The pass; None before there is any.
            answered: The ids of answered suggestions.
        """
        self._own.update({} if current is None else current.labels, len(self._trace))
        self._answered = frozenset(answered)
        present = dict.fromkeys(self._own.by_mode, VerdictValue.PRESENT)
        absent_or_unsure = {} if current is None else current.verdicts
        self.verdicts = MappingProxyType(absent_or_unsure | present)

    def must_read(self, *, people: bool) -> bool:
        """Return whether others' labels must be read before they can be shown.

        Args:
            people: True if people's labels are shown too, not only judges'.
        """
        return self._must_read_judges or (people and self._must_read_people)

    def read_others(self) -> OthersWork:
        """Read all labels on the trace from the workspace; may run in any thread.

        This object does not change. Without the server, the labels of the last reading are
        returned.
        """
        workspace = self._workspace
        with suppress(ServerAway):
            labels = workspace.labels(trace_id=self._trace_id, taxonomy=self._taxonomy)
            if self._trace.masks is not None:
                labels = tuple(_masked_label(label, self._trace) for label in labels)
            judges = [label.annotator for label in labels if is_judge(label.annotator)]
            if not judges:  # with labels the table of judgements is not needed
                judgements = workspace.judgements(trace_id=self._trace_id, taxonomy=self._taxonomy)
                judges = [judgement.judge for judgement in judgements]
            look_here = spans_to_look_at(workspace, self._taxonomy, self._trace_id)
            if not workspace.away:
                return OthersWork(labels, tuple(dict.fromkeys(judges)), look_here)
        return self.others_work

    def show_others(self, work: OthersWork, *, people: bool) -> None:
        """Show labels that were read from the workspace.

        Args:
            work: The result of ``read_others``.
            people: True to show the labels of people too.
        """
        by_judges = [label for label in work.labels if is_judge(label.annotator)]
        by_people = [
            label
            for label in work.labels
            if people and label.annotator != self._annotator and not is_judge(label.annotator)
        ]
        self.others_work = work
        self._must_read_judges = False
        self._must_read_people = not people
        self._suggestions = SuggestionList(map(Suggestion.of, by_judges), self._suggestion_position)
        self.others = tuple(sorted(by_people, key=self._label_position))

    def forget_others(self) -> None:
        """Mark others' labels to be read again."""
        self._must_read_judges = True
        self._must_read_people = True

    @property
    def own(self) -> OwnLabels:
        """The annotator's labels."""
        self._own.update_positions(len(self._trace))
        return self._own

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """The judges' suggestions."""
        return self._suggestions.in_order(len(self._trace))

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """The suggestions without an answer."""
        return self._suggestions.pending(len(self._trace), self._answered)

    @property
    def pending_by_id(self) -> Mapping[str, Suggestion]:
        """The suggestions without an answer, by their ids."""
        return self._suggestions.pending_by_id if self.pending else {}

    def suggestion(self, suggestion_id: str) -> Suggestion | None:
        """Return a judge's suggestion; None if there is none with this id."""
        return self._suggestions.by_id.get(suggestion_id)

    def _span_index(self, key: str) -> int:
        """Return the index of a span, or ``NOWHERE`` if it is not loaded."""
        index = self._trace.index_of(key)
        return NOWHERE if index is None else index

    def _label_position(self, label: Label) -> LabelPosition:
        """Return the sort key of a label; labels on the whole trace come first."""
        target = label.target
        if target.first is None or target.last is None:
            return LabelPosition(-1, 0, 0, label.mode, label.id)
        return LabelPosition(
            self._span_index(target.first),
            target.char_start or 0,
            self._span_index(target.last),
            label.mode,
            label.id,
        )

    def _suggestion_position(self, suggestion: Suggestion) -> SuggestionPosition:
        """Return the sort key of a suggestion; suggestions without a span come first."""
        key = suggestion.evidence_key
        offsets = suggestion.quote_offsets
        index = -1 if key is None else self._span_index(key)
        offset = offsets[0] if offsets else 0
        return SuggestionPosition(index, offset, suggestion.mode, suggestion.id)


def _masked_label(label: Label, trace: Trace) -> Label:
    """Mask the quotes and the remedy of a label, and the note of a judge's label."""
    masks = trace.masks
    assert masks is not None
    target = label.target
    if target.quote is not None:
        quote = masked_quote(
            masks, trace, target.quote, target.first, target.char_start, target.char_end
        )
        target = Target(target.first, target.last, quote, target.char_start, target.char_end)
    evidence = label.evidence
    if evidence is not None:
        quote = masked_quote(
            masks, trace, evidence.quote, evidence.key, evidence.char_start, evidence.char_end
        )
        wording = None if evidence.wording is None else masks.text(evidence.wording)
        evidence = structs.replace(evidence, quote=quote, wording=wording)
    return structs.replace(
        label,
        target=target,
        evidence=evidence,
        note=masks.text(label.note) if is_judge(label.annotator) else label.note,
        remedy=masks.text(label.remedy),
    )
