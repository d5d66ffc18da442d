"""What a session shows of its state, kept up with each change instead of being made anew."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from mast_tui.errors import ServerAway
from mast_tui.labels import (
    AnnotatorKind,
    Evidence,
    Label,
    QuoteDoubt,
    Target,
    VerdictValue,
    annotator_kind,
)
from mast_tui.session.pass_state import PassState
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from mast_tui.workspace.registers.look_here import spans_to_look_at

NOWHERE: Final = 1 << 60
"""Sorts what points to a span that is not here (yet) to the end."""

Place = tuple[int, int, int, str, str]
"""First span, place in its text, last span, mode, id: the order in which labels are shown."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A judge's label, for a person to answer.

    ``judge`` is the judge's name as an annotator, ``mode`` a slug, ``rationale`` the judge's
    reason; ``confidence`` lies in [0, 1] and is None where the judge gave none. ``decisive`` is
    whether it holds that the failure decided the outcome, None where it said nothing; ``remedy`` is
    what should have been done where it calls this the decisive step of the run, else empty.
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
        """The suggestion that a judge's label is."""
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
        """Whether the words that it rests on, if any, may be made up."""
        return QuoteDoubt.NONE if self.evidence is None else self.evidence.doubt

    @property
    def evidence_key(self) -> str | None:
        """The span to look at first: where the quoted words stand, else the first of the range.

        Where they were not found it is the span in which the judge saw them, if there is such.
        """
        key = None if self.evidence is None else self.evidence.key
        return self.target.first if key is None else key

    @property
    def quote_offsets(self) -> tuple[int, int] | None:
        """Where in the text of that span the quoted words stand (code points, end exclusive)."""
        evidence = self.evidence
        if evidence is None or evidence.char_start is None or evidence.char_end is None:
            return None
        return evidence.char_start, evidence.char_end


class OwnLabels:
    """One's own labels by place, by the spans that they end on, and by mode.

    ``place_of`` says where a label stands now; those that stand nowhere are asked for again when
    the trace has grown. A change of one label costs no sorting, however many there are.
    """

    def __init__(self, place_of: Callable[[Label], Place]) -> None:
        self.by_mode: Counter[str] = Counter()
        self._place_of = place_of
        self._labels: dict[str, Label] = {}
        self._places: dict[str, Place] = {}
        self._order: list[Place] = []
        self._ending_on: dict[str, set[str]] = {}
        self._ranges: set[str] = set()
        self._nowhere: set[str] = set()
        self._in_order: tuple[Label, ...] | None = ()
        self._spans = 0

    def follow(self, labels: Mapping[str, Label], spans: int) -> None:
        """Take over the labels (by id) as they are now, in a trace of so many spans."""
        known = self._labels
        for label_id in [i for i, label in known.items() if labels.get(i) is not label]:
            self._drop(known[label_id])
        for label in [label for i, label in labels.items() if i not in known]:
            self._add(label)
        self.grown(spans)

    def grown(self, spans: int) -> None:
        """The trace has so many spans by now: look again for what stood nowhere."""
        if spans != self._spans:
            self._spans = spans
            for label in [self._labels[label_id] for label_id in self._nowhere]:
                self._drop(label)
                self._add(label)

    def in_order(self) -> tuple[Label, ...]:
        """All labels, those on the whole trace first, then in span order."""
        if self._in_order is None:
            self._in_order = tuple(self._labels[place[-1]] for place in self._order)
        return self._in_order

    def at(self, key: str, index: int | None) -> tuple[Label, ...]:
        """The labels that cover a span, in order; those on the whole trace cover none."""
        covering = set(self._ending_on.get(key, ()))
        if index is not None:
            for label_id in self._ranges:
                first, _, last, *_ = self._places[label_id]
                if first < index < last < NOWHERE:
                    covering.add(label_id)
        places = sorted(self._places[label_id] for label_id in covering)
        return tuple(self._labels[place[-1]] for place in places)

    def _add(self, label: Label) -> None:
        place = self._place_of(label)
        self._labels[label.id], self._places[label.id] = label, place
        insort(self._order, place)
        self.by_mode[label.mode] += 1
        first, last = label.target.first, label.target.last
        for key in (first, last):
            if key is not None:
                self._ending_on.setdefault(key, set()).add(label.id)
        if first != last:
            self._ranges.add(label.id)
        if NOWHERE in (place[0], place[2]):
            self._nowhere.add(label.id)
        self._in_order = None

    def _drop(self, label: Label) -> None:
        del self._labels[label.id]
        place = self._places.pop(label.id)
        del self._order[bisect_left(self._order, place)]
        self.by_mode[label.mode] -= 1
        if not self.by_mode[label.mode]:
            del self.by_mode[label.mode]
        for key in (label.target.first, label.target.last):
            if key is not None and key in self._ending_on:
                self._ending_on[key].discard(label.id)
                if not self._ending_on[key]:
                    del self._ending_on[key]
        self._ranges.discard(label.id)
        self._nowhere.discard(label.id)
        self._in_order = None


class Suggested:
    """Judges' suggestions in reading order, and which of them wait for an answer.

    Those whose quote was altered come after all others, and those whose quote was not found after
    these, in reading order as well.
    """

    def __init__(
        self,
        suggestions: Iterable[Suggestion],
        place_of: Callable[[Suggestion], tuple[int, int, str, str]],
    ) -> None:
        self.by_id = {suggestion.id: suggestion for suggestion in suggestions}
        self.pending_by_id: dict[str, Suggestion] = {}
        self._place_of = place_of
        self._spans = -1
        self._nowhere = True
        self._in_order: tuple[Suggestion, ...] = ()
        self._pending: tuple[Suggestion, ...] = ()
        self._answered: Set[str] | None = None

    def in_order(self, spans: int) -> tuple[Suggestion, ...]:
        """All of them, by the place of their evidence in a trace of so many spans."""
        if self._nowhere and spans != self._spans:
            self._spans = spans
            places = {key: self._place_of(one) for key, one in self.by_id.items()}
            self._nowhere = any(place[0] == NOWHERE for place in places.values())
            self._in_order = tuple(
                sorted(self.by_id.values(), key=lambda one: (one.doubt, places[one.id]))
            )
            self._answered = None
        return self._in_order

    def pending(self, spans: int, answered: Set[str]) -> tuple[Suggestion, ...]:
        """Those that are not among the ``answered``."""
        suggestions = self.in_order(spans)
        if answered is not self._answered:
            if answered != self._answered:
                self._pending = tuple(s for s in suggestions if s.id not in answered)
                self.pending_by_id = {s.id: s for s in self._pending}
            self._answered = answered
        return self._pending


class OthersWork(NamedTuple):
    """The labels on a trace by anybody, and the judges; see ``ReadModel.judges``.

    ``look_here`` has the keys of the spans that probably contain the decisive step.
    """

    labels: tuple[Label, ...]
    judges: tuple[str, ...]
    look_here: tuple[str, ...] = ()


class ReadModel:
    """What a session shows: a pass, and what others say of the trace, in reading order.

    What others say is read where it is lacking (``lacks``), and again after ``forget_others``.

    Args:
        workspace: Where others have spoken.
        trace: Its spans give the order; those that come later change it.
        trace_id: Its id in the workspace.
        taxonomy: Under which taxonomy, as ``id@version``.
        annotator: Whose pass it is.
    """

    def __init__(
        self, workspace: Workspace, trace: Trace, trace_id: str, taxonomy: str, annotator: str
    ) -> None:
        self._workspace = workspace
        self._trace = trace
        self._annotator = annotator
        self._trace_id = trace_id
        self._taxonomy = taxonomy
        self._others_work = OthersWork((), ())
        self._lacks_judges = True
        self._lacks_people = True
        self._own = OwnLabels(self._place_of_label)
        self._answered: frozenset[str] = frozenset()
        self._suggested = Suggested((), self._place_of_suggestion)
        self.others: tuple[Label, ...] = ()
        """The labels of other people, where they may be shown."""
        self.verdicts: Mapping[str, VerdictValue] = MappingProxyType({})

    def follow(self, current: PassState | None, answered: Iterable[str]) -> None:
        """Take over a pass as it is now, and the ids of the suggestions that were answered."""
        self._own.follow({} if current is None else current.labels, len(self._trace))
        self._answered = frozenset(answered)
        present = dict.fromkeys(self._own.by_mode, VerdictValue.PRESENT)
        absent_or_unsure = {} if current is None else current.verdicts
        self.verdicts = MappingProxyType(absent_or_unsure | present)

    def lacks(self, *, people: bool) -> bool:
        """Check if something has to be read before it is shown: of judges, or of ``people`` too."""
        return self._lacks_judges or (people and self._lacks_people)

    def read_others(self) -> OthersWork:
        """Read what judges and others say, and change nothing here; may run in any thread.

        While the server is away it is what was read before.
        """
        workspace = self._workspace
        with suppress(ServerAway):
            labels = workspace.labels(trace_id=self._trace_id, taxonomy=self._taxonomy)
            judges = [x.annotator for x in labels if _is_judge(x.annotator)]
            if not judges:  # else the table of judgements need not be gone through
                judgements = workspace.judgements(trace_id=self._trace_id, taxonomy=self._taxonomy)
                judges = [judgement.judge for judgement in judgements]
            look_here = spans_to_look_at(workspace, self._taxonomy, self._trace_id)
            if not workspace.away:
                return OthersWork(labels, tuple(dict.fromkeys(judges)), look_here)
        return self._others_work

    def take_others(self, work: OthersWork, *, people: bool) -> None:
        """Show what was read.

        Args:
            work: The result of ``read_others``.
            people: Whether the labels of people may be shown too.
        """
        others = [label for label in work.labels if label.annotator != self._annotator]
        by_judges = [label for label in others if _is_judge(label.annotator)]
        by_people = [label for label in others if not _is_judge(label.annotator)] if people else []
        self._others_work = work
        self._lacks_judges = False
        self._lacks_people = not people
        self._suggested = Suggested(map(Suggestion.of, by_judges), self._place_of_suggestion)
        self.others = tuple(sorted(by_people, key=self._place_of_label))

    def forget_others(self) -> None:
        """Have what judges and others say read again."""
        self._lacks_judges = True
        self._lacks_people = True

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges that suggest something; without any those that have looked at the trace."""
        return self._others_work.judges

    @property
    def own(self) -> OwnLabels:
        """One's own labels."""
        self._own.grown(len(self._trace))
        return self._own

    @property
    def look_here(self) -> tuple[str, ...]:
        """The keys of the spans that probably contain the decisive step."""
        return self._others_work.look_here

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Judges' suggestions."""
        return self._suggested.in_order(len(self._trace))

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Those that wait for an answer."""
        return self._suggested.pending(len(self._trace), self._answered)

    @property
    def pending_by_id(self) -> Mapping[str, Suggestion]:
        """The same by their ids."""
        return self._suggested.pending_by_id if self.pending else {}

    def suggestion(self, suggestion_id: str) -> Suggestion | None:
        """A judge's suggestion, None where there is no such."""
        return self._suggested.by_id.get(suggestion_id)

    def _index(self, key: str) -> int:
        index = self._trace.index_of(key)
        return NOWHERE if index is None else index

    def _place_of_label(self, label: Label) -> Place:
        target = label.target
        if target.first is None or target.last is None:
            return (-1, 0, 0, label.mode, label.id)
        return (
            self._index(target.first),
            target.char_start or 0,
            self._index(target.last),
            label.mode,
            label.id,
        )

    def _place_of_suggestion(self, suggestion: Suggestion) -> tuple[int, int, str, str]:
        key, offsets = suggestion.evidence_key, suggestion.quote_offsets
        index = -1 if key is None else self._index(key)
        return (index, offsets[0] if offsets else 0, suggestion.mode, suggestion.id)


def _is_judge(annotator: str) -> bool:
    return annotator_kind(annotator) is AnnotatorKind.JUDGE
