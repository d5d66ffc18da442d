"""What somebody said under an old codebook, said under the new one, event by event.

Each event is taken in as it happened; what it changes under the new codebook is said at the same
time. So passes, reading and times cross as they are, and what follows from two modes that become
one follows at each moment.

A mode of the new codebook is present in a pass where a label of any mode that becomes it is. Where
a mode that was split is present instead, nobody knows which of its parts shows: they are open, and
to be looked at again. Else it is unsure where any is, and absent where all are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from mast_tui.exchange.import_batch import lasting_id
from mast_tui.exchange.migration.mapping import CodebookMap
from mast_tui.gold.model import Decision, Guideline, Said
from mast_tui.labels import (
    AnnotatorKind,
    Answer,
    Label,
    PassKind,
    Target,
    VerdictValue,
    annotator_kind,
)
from mast_tui.study.model import Study
from mast_tui.workspace import Event, NewEvent
from mast_tui.workspace.events.types import (
    Decided,
    Fact,
    GuidelineSet,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    LookAgainSet,
    PassFinished,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    ReviewGiven,
    ReviewSet,
    SpanNoteSet,
    SpansRead,
    StudySet,
    VerdictSet,
    changes_in_pass,
)

_Value = TypeVar("_Value")

_READ_NOTHING: Final = SpansRead(())


@dataclass(slots=True)
class _Said:
    """What stands in a pass; reviews by suggestion, labels by id.

    ``noted`` holds, by span, the labels that come of notes there.
    """

    labels: dict[str, Label] = field(default_factory=dict)
    noted: dict[str, Label] = field(default_factory=dict)
    verdicts: dict[str, VerdictValue] = field(default_factory=dict)
    reviews: dict[str, ReviewGiven] = field(default_factory=dict)


@dataclass(slots=True)
class _Pass:
    """A pass while it is being carried: what stood under the old codebook, and stands now."""

    old: _Said = field(default_factory=_Said)
    new: _Said = field(default_factory=_Said)
    kind: PassKind = PassKind.BLIND
    finish: PassFinished | None = None
    withdrawn: bool = False


class Names:
    """The ids of what is carried: the same on every machine that carries the same.

    ``suggestions`` holds what became of judges' labels; judges come before people.
    """

    def __init__(self, ref: str, attempt: int) -> None:
        self._about = (ref, attempt)
        self.suggestions: dict[str, str] = {}

    def of(self, kind: str, *parts: object) -> str:
        """The id of something of this kind."""
        return lasting_id("migrated", kind, *self._about, *parts)

    def label(self, old: str) -> str:
        """The id of the label that an old one becomes."""
        return self.of("label", old)


class CarriedWork:
    """One annotator's work on one trace.

    After the last event ``owners`` holds for each old label that is carried, by its id, the label
    that it became, and ``look_again`` the modes that are open where a mode was split.
    """

    def __init__(
        self,
        mapping: CodebookMap,
        names: Names,
        labelled: Collection[tuple[str | None, str]] = frozenset(),
    ) -> None:
        """``labelled`` are the traces and old modes of which any person has a label."""
        self._map = mapping
        self._names = names
        self._labelled = labelled
        self._passes: dict[int, _Pass] = {}
        self._decided: dict[str, Decision] = {}
        self._decisions: dict[str, Decision] = {}
        self.owners: dict[str, str] = {}
        self.look_again: tuple[str, ...] = ()

    def carried(self, events: Sequence[Event]) -> Iterator[NewEvent]:
        """What is said under the new codebook, in order.

        Args:
            events: All that the annotator did on the trace under the old one, in order.
        """
        for event in events:
            facts = list(self._facts(event))
            for place, fact in enumerate(facts):
                yield self._new(event, fact, place)
        yield from self._open_again(events[-1])

    def _new(self, event: Event, fact: Fact, place: int) -> NewEvent:
        return NewEvent(
            event.annotator,
            event.trace_id,
            self._map.new.ref,
            event.pass_number,
            fact,
            id=self._names.of("event", event.id, place),
            at=event.at,
        )

    def _facts(self, event: Event) -> Iterator[Fact]:
        fact = event.fact
        if isinstance(fact, Decided):
            yield from self._after_decision(fact, event.trace_id)
            return
        number = event.pass_number or 0
        one = self._passes.setdefault(number, _Pass())
        match fact:
            case PassStarted(kind):
                one.kind, one.withdrawn = kind, False
                yield fact
            case PassWithdrawn():
                one.withdrawn = True
                yield fact
            case PassFinished():
                one.finish = fact
                yield fact
            case PassUnfinished():
                one.finish = None
                yield fact
            case Judged():
                yield self._judged(one, fact)
            case LookAgainSet(_, modes):
                # What was open after an earlier change is open still, under its names of now.
                self.look_again = tuple(
                    t for mode in modes for t in self._map.targets.get(mode, ())
                )
            case SpanNoteSet(key, _, text) if self._noted(one.old, event, key, text):
                yield fact
                yield from self._changes(one)
            case _ if _take(one.old, fact):
                changes = list(self._changes(one))
                # The time stands even where nothing of it is left: work is told by its times.
                yield from changes or [_READ_NOTHING]
            case _:
                yield fact

    def _noted(self, old: _Said, event: Event, key: str, text: str) -> bool:
        """Take in a note of which a label comes; False for all others."""
        who, trace_id, number = event.annotator, event.trace_id or "", event.pass_number or 0
        mode = self._map.of_note(who, trace_id, key)
        if mode is None:
            return False
        old.noted.pop(key, None)
        if text:
            name = self._names.of("noted", who, trace_id, number, key)
            old.noted[key] = Label(
                *(name, who, trace_id, self._map.old.ref, mode, Target(key, key), text),
                pass_number=number,
                created_at=event.at,
            )
        return True

    # A pass

    def _changes(self, one: _Pass) -> Iterator[Fact]:
        """What differs now from what was said before of a pass."""
        before = one.new
        old = [(label, self._map.of_label(label)) for label in one.old.labels.values()]
        labels = self._labels([*old, *((label, label.mode) for label in one.old.noted.values())])
        verdicts = self._verdicts(one, labels.values())
        after = _Said(labels, verdicts=verdicts, reviews=self._reviews(one.old.reviews))
        one.new = after
        for name in [*before.labels, *(name for name in labels if name not in before.labels)]:
            was, now = before.labels.get(name), labels.get(name)
            if was is None and now is not None:
                yield LabelAdded(now)
            elif was is not None and now is None:
                yield LabelRemoved(was)
            elif was is not None and now is not None and was != now:
                yield LabelChanged(was, now)
        for mode in self._map.sources:
            said, says = before.verdicts.get(mode), verdicts.get(mode)
            if said is not says:
                yield VerdictSet(mode, said, says)
        for name in dict.fromkeys([*before.reviews, *after.reviews]):
            given, gives = before.reviews.get(name), after.reviews.get(name)
            if given != gives:
                yield ReviewSet(name, given, gives)

    def _labels(self, old: Iterable[tuple[Label, str | None]]) -> dict[str, Label]:
        """The labels as they are now, each given with what its mode becomes.

        Of two of one mode at one place there is one, with both notes.
        """
        found: dict[tuple[str, Target], Label] = {}
        for label, mode in old:
            if mode is None:
                self.owners.pop(label.id, None)
                continue
            known = found.get((mode, label.target))
            if known is None:
                known = self._renamed(label, mode)
            elif label.note and label.note not in known.note:
                note = f"{known.note}\n{label.note}".strip()
                known = replace(known, note=note, severity=known.severity or label.severity)
            else:
                known = replace(known, severity=known.severity or label.severity)
            found[mode, label.target] = known
            self.owners[label.id] = known.id
            if annotator_kind(label.annotator) is AnnotatorKind.JUDGE:
                self._names.suggestions[label.id] = known.id
        return {label.id: label for label in found.values()}

    def _renamed(self, label: Label, mode: str) -> Label:
        suggestion = label.suggestion
        if suggestion is not None:
            suggestion = self._names.suggestions.get(suggestion, suggestion)
        return replace(
            label,
            id=self._names.label(label.id),
            taxonomy=self._map.new.ref,
            mode=mode,
            suggestion=suggestion,
        )

    def _verdicts(self, one: _Pass, labels: Iterable[Label]) -> dict[str, VerdictValue]:
        """Absent and unsure; modes with labels are present by themselves."""
        present = {label.mode for label in labels}
        values = {
            mode: self._value(sources, one)
            for mode, sources in self._map.sources.items()
            if mode not in present
        }
        return {
            mode: value
            for mode, value in values.items()
            if value is not None and value is not VerdictValue.PRESENT
        }

    def _value(self, sources: Sequence[str], one: _Pass) -> VerdictValue | None:
        """The verdict that follows from modes without labels that count; present: of a split."""
        shown = {label.mode for label in one.old.labels.values()}
        if shown.intersection(sources):
            return VerdictValue.PRESENT
        said = [one.old.verdicts.get(source) for source in sources]
        if VerdictValue.UNSURE in said:
            return VerdictValue.UNSURE
        if said and all(value is VerdictValue.ABSENT for value in said):
            return VerdictValue.ABSENT
        return None

    def _reviews(self, old: Mapping[str, ReviewGiven]) -> dict[str, ReviewGiven]:
        """The answers to those suggestions that are here under the new codebook too."""
        found: dict[str, ReviewGiven] = {}
        for suggestion, review in old.items():
            name = self._names.suggestions.get(suggestion)
            label = None if review.label is None else self.owners.get(review.label)
            # What was accepted for a mode that is split stands with its label: in the old one.
            if name is not None and (label is not None or review.answer is Answer.REJECT):
                found[name] = replace(review, label=label)
        return found

    def _judged(self, one: _Pass, fact: Judged) -> Judged:
        one.old.verdicts = dict.fromkeys(fact.absent, VerdictValue.ABSENT)
        one.old.verdicts |= dict.fromkeys(fact.unsure, VerdictValue.UNSURE)
        labels = one.new.labels
        verdicts = one.new.verdicts = self._verdicts(one, labels.values())
        present = {label.mode for label in labels.values()}
        looks_at = tuple(m for m in self._map.sources if m in present or m in verdicts)
        absent = tuple(m for m in looks_at if verdicts.get(m) is VerdictValue.ABSENT)
        unsure = tuple(m for m in looks_at if verdicts.get(m) is VerdictValue.UNSURE)
        return Judged(looks_at, absent, fact.run, unsure)

    # What is to be looked at again

    def _open_again(self, last: Event) -> Iterator[NewEvent]:
        """Open the last reading where a mode was split that shows in it, and say which."""
        if annotator_kind(last.annotator) is AnnotatorKind.JUDGE:
            return
        standing = {n: one for n, one in self._passes.items() if not one.withdrawn and n}
        readings = [number for number, one in standing.items() if one.kind.is_reading]
        if not readings:
            return
        number = max(readings)
        one = standing[number]
        present = {label.mode for label in one.new.labels.values()}
        again = tuple(
            mode
            for mode, sources in self._map.sources.items()
            if mode not in present
            and (mode in self.look_again or self._value(sources, one) is VerdictValue.PRESENT)
            and mode not in one.new.verdicts
        )
        self.look_again = again
        if not again:
            return
        about = (last.annotator, last.trace_id, self._map.new.ref, number)
        name = self._names.of("look again", last.id)
        yield NewEvent(*about, LookAgainSet((), again), id=name)
        # A repeat that came after it is the last pass, and nothing before that is gone on with.
        if one.finish is not None and number == max(standing):
            yield NewEvent(*about, PassUnfinished(one.finish), id=self._names.of("open", last.id))

    # Decisions

    def _after_decision(self, fact: Decided, trace_id: str | None) -> Iterator[Fact]:
        if fact.after is None:
            self._decided.pop(fact.item, None)
        else:
            self._decided[fact.item] = fact.after
        before, self._decisions = self._decisions, self._decisions_now(trace_id)
        for item in dict.fromkeys([*before, *self._decisions]):
            was, now = before.get(item), self._decisions.get(item)
            if was != now:
                yield Decided(item, was, now)

    def _decisions_now(self, trace_id: str | None) -> dict[str, Decision]:
        found: dict[str, Decision] = {}
        for mode, sources in self._map.sources.items():
            decided = [d for d in map(self._decided.get, sources) if d is not None]
            value = self._decided_value(sources, decided, trace_id)
            if value is not None:
                found[mode] = self._joined(mode, value, decided)
        for decision in self._decided.values():
            place = self._map.one(decision.mode)
            if not decision.is_verdict and place is not None:
                item = place + decision.item.removeprefix(decision.mode)
                found[item] = replace(decision, mode=place, item=item, said=self._said([decision]))
        return found

    def _decided_value(
        self, sources: Sequence[str], decided: Sequence[Decision], trace_id: str | None
    ) -> VerdictValue | None:
        """What was decided of a mode; None where it was not, or only of what was split."""
        values = {decision.value for decision in decided}
        if VerdictValue.PRESENT in values:
            one = any(
                d.value is VerdictValue.PRESENT and self._map.one(d.mode) is not None
                for d in decided
            )
            return VerdictValue.PRESENT if one else None
        if VerdictValue.UNSURE in values:
            return VerdictValue.UNSURE
        undecided = [slug for slug in sources if slug not in self._decided]
        if not values or any((trace_id, slug) in self._labelled for slug in undecided):
            return None
        return VerdictValue.ABSENT

    def _joined(self, mode: str, value: VerdictValue, decided: Sequence[Decision]) -> Decision:
        """One decision for those on the modes that became this one."""
        last = max(decided, key=lambda decision: decision.decided_at)
        counted = [d for d in decided if d.value is value]
        return replace(
            last,
            mode=mode,
            item=mode,
            value=value,
            targets=_once(target for d in counted for target in d.targets),
            sides=_once(side for d in counted for side in d.sides),
            said=self._said(decided),
            judge_seen=any(d.judge_seen for d in decided),
            reason="\n".join(_once(d.reason for d in decided if d.reason)),
        )

    def _said(self, decided: Sequence[Decision]) -> tuple[Said, ...]:
        """What each side had said by then, of all that were decided together."""
        values: dict[str, list[VerdictValue | None]] = {}
        targets: dict[str, list[Target]] = {}
        for decision in decided:
            is_split = self._map.one(decision.mode) is None
            for said in decision.said:
                is_open = is_split and said.value is VerdictValue.PRESENT
                values.setdefault(said.annotator, []).append(None if is_open else said.value)
                targets.setdefault(said.annotator, []).extend(() if is_open else said.targets)
        return tuple(
            Said(name, _strongest(found), _once(targets[name])) for name, found in values.items()
        )


def carried_of_study(mapping: CodebookMap, names: Names, event: Event) -> NewEvent | None:
    """A study or a guideline under the new codebook; None for one that does not cross."""
    match event.fact:
        case StudySet(before, after):
            fact: Fact = StudySet(_study(before, mapping), _study(after, mapping))
        case GuidelineSet(name, before, after):
            words = [_guideline(one, mapping, names) for one in (before, after)]
            if words == [None, None]:
                return None
            fact = GuidelineSet(names.of("guideline", name), *words)
        case _:
            return None
    return NewEvent(
        event.annotator,
        None,
        mapping.new.ref,
        None,
        fact,
        id=names.of("event", event.id),
        at=event.at,
    )


def _study(study: Study | None, mapping: CodebookMap) -> Study | None:
    return None if study is None else replace(study, taxonomy=mapping.new.ref)


def _guideline(words: Guideline | None, mapping: CodebookMap, names: Names) -> Guideline | None:
    mode = None if words is None else mapping.one(words.mode)
    if words is None or mode is None:
        return None
    item = None if words.item is None else mode + words.item.removeprefix(words.mode)
    return replace(words, id=names.of("guideline", words.id), mode=mode, item=item)


def _take(said: _Said, fact: Fact) -> bool:
    """Take in what a fact changes of what is said of modes; False where it is about none."""
    taken = False
    parts: dict[str, dict[str, Any]] = {
        "labels": said.labels,
        "verdicts": said.verdicts,
        "reviews": said.reviews,
    }
    for part, name, value in changes_in_pass(fact, time=""):
        if part in parts:
            _put(parts[part], name, value)
            taken = True
    return taken


def _put(found: dict[str, Any], name: str, value: object) -> None:
    if value is None:
        found.pop(name, None)
    else:
        found[name] = value


def _once(items: Iterable[_Value]) -> tuple[_Value, ...]:
    return tuple(dict.fromkeys(items))


def _strongest(values: Collection[VerdictValue | None]) -> VerdictValue | None:
    order = (VerdictValue.PRESENT, VerdictValue.UNSURE, VerdictValue.ABSENT)
    return next((value for value in order if value in values), None)
