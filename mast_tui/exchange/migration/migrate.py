"""The migration of all work from one codebook to the next, as an import that can be undone.

The work under the old codebook stays. The ids of carried events are derived from the old events, so
the same migration on two machines makes the same events.

Events are carried in order. Each old event is applied, and the changes under the new codebook
become events with its time. So passes and times stay the same.

The verdict on a new mode follows from the old modes that become it. It is present if one of them
has a label. It is open if a present one was split, since its part is unknown. It is unsure if one
of them is unsure, and absent if all of them are absent.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from msgspec.structs import replace

from mast_tui.exchange.batches import EVENTS_AT_ONCE, batched, let_others_write
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import joined_label, lasting_id
from mast_tui.exchange.migration.mapping import CodebookMap, ModeChange
from mast_tui.gold.model import Decision, Guideline, SideAnswer
from mast_tui.labels import (
    Label,
    PassKind,
    ReviewAnswer,
    Target,
    VerdictValue,
    is_judge,
)
from mast_tui.study.model import Study
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Event, NewEvent, Workspace
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
    set_or_remove,
)
from mast_tui.workspace.registers.imports import MIGRATION, ImportRecord, ImportState

_Value = TypeVar("_Value")

_READ_NOTHING: Final = SpansRead(())


@dataclass(slots=True)
class _PassContent:
    """The content of a pass.

    Attributes:
        labels: The labels by id.
        noted: The labels from notes on spans, by span key.
        verdicts: The verdicts by mode.
        reviews: The reviews by suggestion.
    """

    labels: dict[str, Label] = field(default_factory=dict)
    noted: dict[str, Label] = field(default_factory=dict)
    verdicts: dict[str, VerdictValue] = field(default_factory=dict)
    reviews: dict[str, ReviewGiven] = field(default_factory=dict)

    def apply(self, fact: Fact) -> None:
        """Apply a change of labels, verdicts or reviews."""
        # Only other parts of a pass have times.
        for part, name, value in changes_in_pass(fact, time=""):
            set_or_remove(getattr(self, part), name, value)


@dataclass(slots=True)
class _CarriedPass:
    """A pass with its content under the old and the new codebook so far."""

    old: _PassContent = field(default_factory=_PassContent)
    new: _PassContent = field(default_factory=_PassContent)
    kind: PassKind = PassKind.BLIND
    finish: PassFinished | None = None
    withdrawn: bool = False

    def note_state(self, fact: Fact) -> None:
        """Note the start, withdrawal or end of the pass."""
        match fact:
            case PassStarted(kind):
                self.kind = kind
                self.withdrawn = False
            case PassWithdrawn():
                self.withdrawn = True
            case PassFinished():
                self.finish = fact
            case PassUnfinished():
                self.finish = None


class NewIds:
    """The ids of carried objects, the same on every machine.

    ``suggestions`` are the new ids of judges' labels by old id. Judges are carried first, so that
    these ids are known for people's work.
    """

    def __init__(self, ref: str, attempt: int) -> None:
        self._migration_key = (ref, attempt)
        self.suggestions: dict[str, str] = {}

    def id_for(self, kind: str, *parts: object) -> str:
        """Return the id of an object of this kind."""
        return lasting_id("migrated", kind, *self._migration_key, *parts)


class CarriedWork:
    """An annotator's work on a trace while it is carried.

    ``new_label_ids`` are the ids of new labels by old id. ``look_again`` are the new modes to check
    again after a split.
    """

    def __init__(
        self,
        mapping: CodebookMap,
        new_ids: NewIds,
        labelled_modes: Collection[tuple[str | None, str]] = frozenset(),
    ) -> None:
        """Start without events.

        ``labelled_modes`` are pairs of a trace and an old mode with labels.
        """
        self._map = mapping
        self._new_ids = new_ids
        self._labelled_modes = labelled_modes
        self._passes: dict[int, _CarriedPass] = {}
        self._old_decisions: dict[str, Decision] = {}
        """The valid decisions under the old codebook by item."""
        self._new_decisions: dict[str, Decision] = {}
        """The decisions under the new codebook by item."""
        self.new_label_ids: dict[str, str] = {}
        self.look_again: tuple[str, ...] = ()

    def carried(self, events: Sequence[Event]) -> Iterator[NewEvent]:
        """Yield the events of the work under the new codebook, in order.

        Work with modes to check again is reopened at the end.

        Args:
            events: All events of the annotator on the trace under the old codebook, in order.
        """
        for event in events:
            facts = list(self._carried_facts(event))
            for number, fact in enumerate(facts):
                yield self._new_event(event, fact, number)
        yield from self._reopening_events(events[-1])

    def _new_event(self, event: Event, fact: Fact, number: int) -> NewEvent:
        """Return the event of a fact.

        ``number`` counts the facts of the old event.
        """
        return NewEvent(
            event.annotator,
            event.trace_id,
            self._map.new.ref,
            event.pass_number,
            fact,
            id=self._new_ids.id_for("event", event.id, number),
            at=event.at,
        )

    def _carried_facts(self, event: Event) -> Iterator[Fact]:
        """Apply an old event, and yield its facts under the new codebook."""
        fact = event.fact
        if isinstance(fact, Decided):
            yield from self._after_decision(fact, event.trace_id)
            return
        carried_pass = self._passes.setdefault(event.pass_number or 0, _CarriedPass())
        match fact:
            case Judged():
                yield self._carried_judgement(carried_pass, fact)
            case LookAgainSet(_, modes):
                # These modes are still to check from an earlier migration. ``_reopening_events``
                # yields their fact.
                self.look_again = tuple(
                    slug for mode in modes for slug in self._map.targets.get(mode, ())
                )
            case LabelAdded() | LabelRemoved() | LabelChanged() | VerdictSet() | ReviewSet():
                carried_pass.old.apply(fact)
                changes = list(self._carried_changes(carried_pass))
                # Working time is computed from events, so each old event needs a new one.
                yield from changes or [_READ_NOTHING]
            case SpanNoteSet(key, _, text):
                yield fact
                mode = self._map.slug_for_note(event.annotator, event.trace_id or "", key)
                if mode is not None:
                    carried_pass.old.noted.pop(key, None)
                    if text:  # an empty text removes the note
                        label = self._label_of_note(event, key, text, mode)
                        carried_pass.old.noted[key] = label
                    yield from self._carried_changes(carried_pass)
            case _:
                carried_pass.note_state(fact)
                yield fact

    def _label_of_note(self, event: Event, key: str, text: str, mode: str) -> Label:
        """Return the label that replaces a note on a span."""
        trace_id = event.trace_id or ""
        number = event.pass_number or 0
        return Label(
            id=self._new_ids.id_for("noted", event.annotator, trace_id, number, key),
            annotator=event.annotator,
            trace_id=trace_id,
            taxonomy=self._map.old.ref,
            mode=mode,
            target=Target(key, key),
            note=text,
            pass_number=number,
            created_at=event.at,
        )

    def _carried_changes(self, carried_pass: _CarriedPass) -> Iterator[Fact]:
        """Update a pass under the new codebook, and yield the changes as facts."""
        earlier = carried_pass.new
        labels_with_modes = [
            *(
                (label, self._map.slug_for_label(label))
                for label in carried_pass.old.labels.values()
            ),
            # These labels already have new modes.
            *((label, label.mode) for label in carried_pass.old.noted.values()),
        ]
        labels = self._carried_labels(labels_with_modes)
        verdicts = self._carried_verdicts(carried_pass, labels.values())
        after = _PassContent(
            labels, verdicts=verdicts, reviews=self._carried_reviews(carried_pass.old.reviews)
        )
        carried_pass.new = after
        for _, old_label, new_label in _differences(earlier.labels, labels):
            if new_label is None:
                assert old_label is not None
                yield LabelRemoved(old_label)
            elif old_label is None:
                yield LabelAdded(new_label)
            else:
                yield LabelChanged(old_label, new_label)
        for mode in self._map.sources:
            old_value = earlier.verdicts.get(mode)
            new_value = verdicts.get(mode)
            if old_value is not new_value:
                yield VerdictSet(mode, old_value, new_value)
        for name, old_review, new_review in _differences(earlier.reviews, after.reviews):
            yield ReviewSet(name, old_review, new_review)

    def _carried_labels(
        self, labels_with_modes: Iterable[tuple[Label, str | None]]
    ) -> dict[str, Label]:
        """Return the labels under the new codebook by id.

        Labels with the same new mode and target are joined with their notes. ``new_label_ids`` is
        updated.

        Args:
            labels_with_modes: The old labels with their new modes; None for a label to leave out.
        """
        labels_by_target: dict[tuple[str, Target], Label] = {}
        for label, mode in labels_with_modes:
            if mode is None:
                self.new_label_ids.pop(label.id, None)
                continue
            earlier = labels_by_target.get((mode, label.target))
            new_label = (
                self._carried_label(label, mode)
                if earlier is None
                else joined_label(earlier, label)
            )
            labels_by_target[mode, label.target] = new_label
            self.new_label_ids[label.id] = new_label.id
            # A judge's labels are suggestions. Other labels refer to their ids.
            if is_judge(label.annotator):
                self._new_ids.suggestions[label.id] = new_label.id
        return {label.id: label for label in labels_by_target.values()}

    def _carried_label(self, label: Label, mode: str) -> Label:
        suggestion = label.suggestion
        if suggestion is not None:
            suggestion = self._new_ids.suggestions.get(suggestion, suggestion)
        return replace(
            label,
            id=self._new_ids.id_for("label", label.id),
            taxonomy=self._map.new.ref,
            mode=mode,
            suggestion=suggestion,
        )

    def _carried_verdicts(
        self, carried_pass: _CarriedPass, labels: Iterable[Label]
    ) -> dict[str, VerdictValue]:
        """Return the absent and unsure verdicts on new modes without a label."""
        labelled_modes = {label.mode for label in labels}
        values = {
            mode: self._value_from_old_modes(old_modes, carried_pass)
            for mode, old_modes in self._map.sources.items()
            if mode not in labelled_modes
        }
        # A new mode that is present without a label comes from a split mode, so it is open.
        return {
            mode: value
            for mode, value in values.items()
            if value is not None and value is not VerdictValue.PRESENT
        }

    def _value_from_old_modes(
        self, old_modes: Sequence[str], carried_pass: _CarriedPass
    ) -> VerdictValue | None:
        """Return the verdict on a new mode from its old modes; None if it is open."""
        labelled_modes = {label.mode for label in carried_pass.old.labels.values()}
        if labelled_modes.intersection(old_modes):
            return VerdictValue.PRESENT
        old_values = [carried_pass.old.verdicts.get(mode) for mode in old_modes]
        if VerdictValue.UNSURE in old_values:
            return VerdictValue.UNSURE
        if old_values and all(value is VerdictValue.ABSENT for value in old_values):
            return VerdictValue.ABSENT
        return None

    def _carried_reviews(self, old: Mapping[str, ReviewGiven]) -> dict[str, ReviewGiven]:
        """Return the reviews of carried suggestions by their new ids."""
        reviews: dict[str, ReviewGiven] = {}
        for suggestion, review in old.items():
            new_suggestion = self._new_ids.suggestions.get(suggestion)
            if new_suggestion is None:
                continue
            label = None if review.label is None else self.new_label_ids.get(review.label)
            # A review that accepted a label needs this label.
            if label is not None or review.answer is ReviewAnswer.REJECT:
                reviews[new_suggestion] = replace(review, label=label)
        return reviews

    def _carried_judgement(self, carried_pass: _CarriedPass, fact: Judged) -> Judged:
        """Return a judge's result under the new codebook, and set the verdicts of the pass.

        The new result has the modes with a label or a verdict.
        """
        # ``_carried_verdicts`` reads the old verdicts from the pass.
        carried_pass.old.verdicts = dict.fromkeys(fact.absent, VerdictValue.ABSENT)
        carried_pass.old.verdicts |= dict.fromkeys(fact.unsure, VerdictValue.UNSURE)
        labels = carried_pass.new.labels
        verdicts = self._carried_verdicts(carried_pass, labels.values())
        carried_pass.new.verdicts = verdicts
        present = {label.mode for label in labels.values()}
        # This keeps the order of the new modes.
        judged = tuple(mode for mode in self._map.sources if mode in present or mode in verdicts)
        absent = tuple(mode for mode in judged if verdicts.get(mode) is VerdictValue.ABSENT)
        unsure = tuple(mode for mode in judged if verdicts.get(mode) is VerdictValue.UNSURE)
        return Judged(judged, absent, fact.run, unsure, fact.judged_at)

    def _reopening_events(self, last: Event) -> Iterator[NewEvent]:
        """Yield the events that ask for a check of modes in the last labelling pass.

        The modes are stored in ``look_again``. Judges are not asked. ``last`` is the last event of
        the work.
        """
        # Number 0 stands for events without a pass.
        valid_passes = {
            number: carried_pass
            for number, carried_pass in self._passes.items()
            if not carried_pass.withdrawn and number
        }
        labelling_numbers = [
            number
            for number, carried_pass in valid_passes.items()
            if carried_pass.kind.is_labelling
        ]
        if not labelling_numbers or is_judge(last.annotator):
            return
        number = max(labelling_numbers)
        carried_pass = valid_passes[number]
        self.look_again = self._modes_to_look_at(carried_pass)
        if not self.look_again:
            return
        pass_key = (last.annotator, last.trace_id, self._map.new.ref, number)
        look_again_id = self._new_ids.id_for("look again", last.id)
        yield NewEvent(*pass_key, LookAgainSet((), self.look_again), id=look_again_id)
        # The pass stays finished if a later one follows, such as a retest.
        if carried_pass.finish is not None and number == max(valid_passes):
            open_id = self._new_ids.id_for("open", last.id)
            yield NewEvent(*pass_key, PassUnfinished(carried_pass.finish), id=open_id)

    def _modes_to_look_at(self, carried_pass: _CarriedPass) -> tuple[str, ...]:
        """Return the new modes that a split of this or an earlier migration leaves open."""
        labelled_modes = {label.mode for label in carried_pass.new.labels.values()}
        answered_modes = labelled_modes | carried_pass.new.verdicts.keys()
        return tuple(
            mode
            for mode, old_modes in self._map.sources.items()
            if mode not in answered_modes
            and (
                mode in self.look_again
                # A present old mode without a new label was split.
                or self._value_from_old_modes(old_modes, carried_pass) is VerdictValue.PRESENT
            )
        )

    def _after_decision(self, fact: Decided, trace_id: str | None) -> Iterator[Fact]:
        """Apply a decision under the old codebook, and yield the changes under the new one."""
        if fact.after is None:
            self._old_decisions.pop(fact.item, None)
        else:
            self._old_decisions[fact.item] = fact.after
        earlier = self._new_decisions
        self._new_decisions = self._carried_decisions(trace_id)
        for item, old_decision, new_decision in _differences(earlier, self._new_decisions):
            yield Decided(item, old_decision, new_decision)

    def _carried_decisions(self, trace_id: str | None) -> dict[str, Decision]:
        """Return the decisions under the new codebook by item.

        The item of a decision on a verdict is the mode. The item of a decision on spans begins with
        the mode.
        """
        decisions: dict[str, Decision] = {}
        for mode, sources in self._map.sources.items():
            old_decisions = [
                self._old_decisions[source] for source in sources if source in self._old_decisions
            ]
            value = self._decided_value(sources, old_decisions, trace_id)
            if value is not None:
                decisions[mode] = self._joined_decision(mode, value, old_decisions)
        for decision in self._old_decisions.values():
            new_mode = self._map.single_target(decision.mode)
            if not decision.is_verdict and new_mode is not None:
                item = new_mode + decision.item.removeprefix(decision.mode)
                decisions[item] = replace(
                    decision, mode=new_mode, item=item, answers=self._joined_answers([decision])
                )
        return decisions

    def _decided_value(
        self, sources: Sequence[str], decisions: Sequence[Decision], trace_id: str | None
    ) -> VerdictValue | None:
        """Return the decided value of a new mode; None if it stays undecided.

        ``sources`` are its old modes. Present needs a present old mode that was not split. Absent
        needs the other old modes to be without labels.
        """
        values = {decision.value for decision in decisions}
        if VerdictValue.PRESENT in values:
            has_present_unsplit_mode = any(
                decision.value is VerdictValue.PRESENT
                and self._map.single_target(decision.mode) is not None
                for decision in decisions
            )
            return VerdictValue.PRESENT if has_present_unsplit_mode else None
        if VerdictValue.UNSURE in values:
            return VerdictValue.UNSURE
        undecided = [slug for slug in sources if slug not in self._old_decisions]
        if not values or any((trace_id, slug) in self._labelled_modes for slug in undecided):
            return None
        return VerdictValue.ABSENT

    def _joined_decision(
        self, mode: str, value: VerdictValue, decisions: Sequence[Decision]
    ) -> Decision:
        """Return the decision on a new mode, joined from the decisions on its old modes."""
        last_decision = max(decisions, key=lambda decision: decision.decided_at)
        matching = [decision for decision in decisions if decision.value is value]
        return replace(
            last_decision,
            mode=mode,
            item=mode,
            value=value,
            targets=_without_duplicates(
                target for decision in matching for target in decision.targets
            ),
            sides=_without_duplicates(side for decision in matching for side in decision.sides),
            answers=self._joined_answers(decisions),
            judge_seen=any(decision.judge_seen for decision in decisions),
            reason="\n".join(
                _without_duplicates(decision.reason for decision in decisions if decision.reason)
            ),
        )

    def _joined_answers(self, decisions: Sequence[Decision]) -> tuple[SideAnswer, ...]:
        """Return the answers of the annotators, joined over several decisions."""
        values: dict[str, list[VerdictValue | None]] = {}
        targets: dict[str, list[Target]] = {}
        for decision in decisions:
            is_split = self._map.single_target(decision.mode) is None
            for answer in decision.answers:
                # It is unknown which part of a present split mode is present.
                is_open = is_split and answer.value is VerdictValue.PRESENT
                values.setdefault(answer.annotator, []).append(None if is_open else answer.value)
                targets.setdefault(answer.annotator, []).extend(() if is_open else answer.targets)
        return tuple(
            SideAnswer(name, _strongest_value(own_values), _without_duplicates(targets[name]))
            for name, own_values in values.items()
        )


def carried_study_event(mapping: CodebookMap, new_ids: NewIds, event: Event) -> NewEvent | None:
    """Return a study or guideline event under the new codebook.

    The result is None for other events, and for a guideline on a split or dropped mode.

    Args:
        mapping: The translation of modes.
        new_ids: The ids of the migration.
        event: The event under the old codebook.
    """
    match event.fact:
        case StudySet(before, after):
            fact: Fact = StudySet(
                _study_under_map(before, mapping), _study_under_map(after, mapping)
            )
        case GuidelineSet(name, before, after):
            guidelines = [
                _guideline_under_map(guideline, mapping, new_ids) for guideline in (before, after)
            ]
            if guidelines == [None, None]:
                return None
            fact = GuidelineSet(new_ids.id_for("guideline", name), *guidelines)
        case _:
            return None
    return NewEvent(
        event.annotator,
        None,
        mapping.new.ref,
        None,
        fact,
        id=new_ids.id_for("event", event.id),
        at=event.at,
    )


def _study_under_map(study: Study | None, mapping: CodebookMap) -> Study | None:
    return None if study is None else replace(study, taxonomy=mapping.new.ref)


def _guideline_under_map(
    guideline: Guideline | None, mapping: CodebookMap, new_ids: NewIds
) -> Guideline | None:
    """Return a guideline under the new codebook; None if its mode was split or dropped."""
    mode = None if guideline is None else mapping.single_target(guideline.mode)
    if guideline is None or mode is None:
        return None
    # The item of a decision begins with its mode.
    item = None if guideline.item is None else mode + guideline.item.removeprefix(guideline.mode)
    return replace(guideline, id=new_ids.id_for("guideline", guideline.id), mode=mode, item=item)


def _differences(
    earlier: Mapping[str, _Value], later: Mapping[str, _Value]
) -> Iterator[tuple[str, _Value | None, _Value | None]]:
    """Yield the name, the earlier and the later value of changed entries."""
    for name in dict.fromkeys([*earlier, *later]):
        if earlier.get(name) != later.get(name):
            yield name, earlier.get(name), later.get(name)


def _without_duplicates(items: Iterable[_Value]) -> tuple[_Value, ...]:
    return tuple(dict.fromkeys(items))


def _strongest_value(values: Collection[VerdictValue | None]) -> VerdictValue | None:
    order = (VerdictValue.PRESENT, VerdictValue.UNSURE, VerdictValue.ABSENT)
    return next((value for value in order if value in values), None)


Work = tuple[str, str]
"""An annotator's name and a trace id."""

OWN_WORK: Final = "own_work"
"""The reason to leave work: its annotator has worked under the new codebook."""

GONE_ON: Final = "gone_on"
"""The reason to leave work: it continued after an earlier migration."""


@dataclass(frozen=True, slots=True)
class Left:
    """Work on a trace that was not carried over. ``why`` is ``OWN_WORK`` or ``GONE_ON``."""

    annotator: str
    trace_id: str
    why: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    """A trace with ``modes`` that an annotator has to check again.

    ``places`` are the annotator's labels of the split modes.
    """

    annotator: str
    trace_id: str
    modes: tuple[str, ...]
    places: tuple[Label, ...]


@dataclass(slots=True)
class Migrated:
    """The result of a migration.

    Attributes:
        record: The import of the migration.
        events: The number of added events.
        works: The carried work.
        carried: The carried labels of all passes by old id.
        joined: The old ids of labels that joined another one.
        look_again: The traces to check again.
        dropped: The labels of dropped modes in last passes.
        left: The work that was not carried, except unchanged work from an earlier migration.
        lost: The labels that are missing because of a defect.
    """

    record: ImportRecord | None = None
    events: int = 0
    works: list[Work] = field(default_factory=list)
    carried: dict[str, Label] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    look_again: list[LookAgain] = field(default_factory=list)
    dropped: list[Label] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    lost: list[Label] = field(default_factory=list)


def migrate(workspace: Workspace, mapping: CodebookMap, author: str | None) -> Migrated:
    """Copy all work under an old codebook to the new one.

    Existing work under the new codebook stays.

    Args:
        workspace: The workspace, or a trial copy.
        mapping: The codebooks and the translation of modes.
        author: The name of the user; None if unknown.

    Raises:
        ExchangeError: There is no work under the old codebook.
        WorkspaceError: The workspace cannot be written, or has a taxonomy of this reference with
            other modes.
    """
    works, study_events = _events_by_work(workspace, mapping.old.ref)
    if not works and not study_events:
        raise ExchangeError(f"there are no labels under {mapping.old.ref} in this workspace")
    workspace.add_taxonomy(mapping.new)
    record = workspace.begin_import(
        MIGRATION,
        [mapping.old.ref, mapping.new.ref],
        request_key=_request_key(mapping),
        annotator=author,
    )
    migration = _Migration(workspace, mapping, record)
    migration.carry_study(study_events)
    for batch in batched(
        migration.carried_events(works),
        lambda work_with_events: len(work_with_events[1]),
        EVENTS_AT_ONCE,
    ):
        with workspace.transaction():
            for _, events in batch:
                migration.append(events)
        let_others_write()
    workspace.finish_import(record)
    return migration.finish(works)


def _request_key(mapping: CodebookMap) -> str:
    """Return the text by which the same request continues an interrupted migration."""
    mapped_open_codes = [
        [
            name,
            trace_id,
            target.first,
            target.last,
            target.quote,
            target.char_start,
            target.char_end,
            is_label,  # False for a note
            new_mode,
        ]
        for (name, trace_id, target, is_label), new_mode in mapping.places.items()
    ]
    refs = [mapping.old.ref, mapping.new.ref]
    return json.dumps([MIGRATION, *refs, mapping.targets, *sorted(mapped_open_codes, key=str)])


def check_may_migrate(workspace: Workspace) -> None:
    """Check that the server lets the user write the labels of all members.

    Raises:
        ExchangeError: The user is a member, who writes only in their own name.
    """
    if workspace.member is not None:
        raise ExchangeError(
            "on a server only the workspace's owner may write the labels of all members; ask the "
            "owner to run this command with --annotator NAME, the name of the study's lead"
        )


def check_lead(workspace: Workspace, old: Taxonomy, author: str | None) -> None:
    """Check that the user may migrate, and leads the study of a taxonomy, if it has one.

    Args:
        workspace: The workspace.
        old: The old taxonomy.
        author: The name of the user; None if unknown.

    Raises:
        ExchangeError: Another person leads the study, or the user is a member of a server.
    """
    check_may_migrate(workspace)
    lead = workspace.study_leads().get(old.ref)
    if lead is not None and author != lead:
        raise ExchangeError(
            f"only {lead}, who set up the study under {old.ref}, may migrate it; "
            + (f"your name here is {author}" if author else f"give your name: --annotator {lead}")
        )


def standing_migrations(workspace: Workspace) -> tuple[ImportRecord, ...]:
    """Return the migrations that were not undone, the earliest first."""
    return tuple(
        record
        for record in workspace.imports()
        if record.format == MIGRATION and record.state is not ImportState.UNDONE
    )


def _events_by_work(
    workspace: Workspace, ref: str
) -> tuple[Mapping[Work, Sequence[Event]], Sequence[Event]]:
    """Return the events on traces by annotator and trace, judges first, and the other events.

    ``ref`` is the taxonomy of the events.
    """
    works: dict[Work, list[Event]] = defaultdict(list)
    study_events = []
    for event in workspace.events(taxonomy=ref):
        if event.trace_id is None:
            study_events.append(event)
        else:
            works[event.annotator, event.trace_id].append(event)
    judges_first = sorted(works, key=lambda work: (not is_judge(work[0]), *work))
    return {work: works[work] for work in judges_first}, study_events


class _Migration:
    """A migration with its results so far."""

    def __init__(self, workspace: Workspace, mapping: CodebookMap, record: ImportRecord) -> None:
        self._workspace = workspace
        self._map = mapping
        self._record = record
        # The ids of an undone migration cannot be used again. The ``files`` of a migration are its
        # two codebooks.
        attempt = sum(
            earlier.format == MIGRATION
            and earlier.files == record.files
            and earlier.state is ImportState.UNDONE
            for earlier in workspace.imports()
        )
        self._new_ids = NewIds(mapping.new.ref, attempt)
        # An interrupted run of this migration has written this work.
        migrated_works = {(work[0], work[1]) for work, _ in workspace.import_works(record)}
        self._other_works = {
            (trace_pass.annotator, trace_pass.trace_id)
            for trace_pass in workspace.passes(taxonomy=mapping.new.ref)
        } - migrated_works
        """The other work under the new codebook, by annotator and trace. It stays unchanged."""
        self._old_labels = workspace.labels(taxonomy=mapping.old.ref, pass_number=None)
        self._labelled_modes = {
            (label.trace_id, label.mode)
            for label in self._old_labels
            if not is_judge(label.annotator)
        }
        self._new_label_ids: dict[str, str] = {}
        self._modes_to_check: dict[Work, tuple[str, ...]] = {}
        self._result = Migrated(record)

    def carry_study(self, events: Iterable[Event]) -> None:
        """Copy the guidelines, and the study if the new codebook has none."""
        if self._workspace.study(self._map.new.ref) is not None:
            events = [event for event in events if not isinstance(event.fact, StudySet)]
        carried = (carried_study_event(self._map, self._new_ids, event) for event in events)
        self.append([event for event in carried if event is not None])

    def carried_events(
        self, works: Mapping[Work, Sequence[Event]]
    ) -> Iterator[tuple[Work, Sequence[NewEvent]]]:
        """Yield the work to write, with its events under the new codebook.

        Existing work of the annotator on the trace prevents this.
        """
        for work, events in works.items():
            carried_work = CarriedWork(self._map, self._new_ids, self._labelled_modes)
            new_events = list(carried_work.carried(events))
            if work in self._other_works:
                self._record_not_carried(work, new_events)
                continue
            self._new_label_ids |= carried_work.new_label_ids
            if carried_work.look_again:
                self._modes_to_check[work] = carried_work.look_again
            self._result.works.append(work)
            yield work, new_events

    def _record_not_carried(self, work: Work, events: Sequence[NewEvent]) -> None:
        """Record the reason why work is not carried.

        Work that an earlier migration has carried completely needs no record.
        """
        known_facts = self._workspace.known_facts(
            [event.id for event in events if event.id is not None]
        )
        if len(known_facts) < len(events):
            # Work with some known events was carried earlier and has continued.
            reason = GONE_ON if known_facts else OWN_WORK
            self._result.left.append(Left(*work, reason))

    def append(self, events: Sequence[NewEvent]) -> None:
        """Record carried events."""
        recorded = self._workspace.append(events, action=self._record.action)
        self._result.events += len(recorded)

    def finish(self, works: Mapping[Work, Sequence[Event]]) -> Migrated:
        """Compare the new labels with the old ones, and return the result."""
        result = self._result
        carried_works = set(result.works)
        self._compare_labels(carried_works)
        last_pass_labels = self._workspace.labels(taxonomy=self._map.old.ref)
        split_labels: dict[Work, list[Label]] = defaultdict(list)
        for label in last_pass_labels:
            change = self._map.change(label.mode)
            work = (label.annotator, label.trace_id)
            if change is ModeChange.SPLIT:
                split_labels[work].append(label)
            elif change is ModeChange.DROPPED and work in carried_works:
                result.dropped.append(label)
        result.look_again = [
            LookAgain(*work, self._modes_to_check[work], tuple(split_labels[work]))
            for work in works
            if work in self._modes_to_check
        ]
        return result

    def _compare_labels(self, carried_works: Collection[Work]) -> None:
        """Add the carried, joined and lost labels to the result."""
        result = self._result
        # ``None`` selects all passes.
        new_labels = self._workspace.labels(taxonomy=self._map.new.ref, pass_number=None)
        new_ids = {label.id for label in new_labels}
        ids_of_earlier_labels = set[str]()
        for label in self._old_labels:
            is_carried = (label.annotator, label.trace_id) in carried_works
            if not is_carried or self._map.slug_for_label(label) is None:
                continue
            new_id = self._new_label_ids.get(label.id)
            if new_id is None or new_id not in new_ids:
                result.lost.append(label)
                continue
            result.carried[label.id] = label
            if new_id in ids_of_earlier_labels:
                result.joined.add(label.id)
            ids_of_earlier_labels.add(new_id)
