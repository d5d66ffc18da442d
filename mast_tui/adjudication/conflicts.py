"""The conflicts of a trace, the possible choices, and the decided cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from mast_tui.gold import (
    Conflict,
    ConflictKind,
    Decision,
    GoldVerdict,
    Order,
    SideAnswer,
    answers_on,
    no_order,
)
from mast_tui.gold.overlaps import in_reading_order, items_of_mode, overlap
from mast_tui.gold.resolve import comparable_places, comparable_verdicts
from mast_tui.grouping import values_by_key
from mast_tui.labels import WHOLE_TRACE, Label, Target, TraceWork, VerdictValue


def _outcome_words(value: VerdictValue, *, is_verdict: bool) -> str:
    """Return a decided value in words, for a verdict or a place."""
    if is_verdict:
        return value.value
    return "place taken" if value is VerdictValue.PRESENT else "present, place dropped"


def decided_words(decisions: Sequence[Decision]) -> str:
    """Describe the result of decisions made in one step, such as ``2 of 3 places taken``."""
    if len(decisions) == 1:
        return _outcome_words(decisions[0].value, is_verdict=decisions[0].is_verdict)
    accepted = sum(decision.value is VerdictValue.PRESENT for decision in decisions)
    if not accepted:
        return f"present, {len(decisions)} places dropped"
    return f"{accepted} of {len(decisions)} places taken"


def targets_taken(decisions: Iterable[Decision]) -> list[Target]:
    """Return the places of the decisions with the value present."""
    accepted = (decision for decision in decisions if decision.value is VerdictValue.PRESENT)
    return [target for decision in accepted for target in decision.targets]


def resolves_conflict(decision: Decision) -> bool:
    """Return whether the sides (annotators) had different answers when the decision was made."""
    if decision.is_verdict:
        return len({answer.value for answer in decision.answers}) > 1
    return len({frozenset(answer.targets) for answer in decision.answers}) > 1


def current_answers(
    decision: Decision, sides: Sequence[TraceWork], order: Order = no_order
) -> tuple[SideAnswer, ...]:
    """Return the current answers of the sides (annotators) on the mode or place of a decision.

    For a place these are the sides of the decision, even after they have removed their labels
    there, and the sides with new labels there.

    Args:
        decision: The decision.
        sides: The work of the annotators who finished the trace.
        order: Returns the index of a span by its key; None if unknown.
    """
    if decision.is_verdict:
        return answers_on(decision.mode, sides)
    labels = [label for side in sides for label in side.labels_of(decision.mode)]
    items = items_of_mode(labels, order)  # an item is a place with all labels that overlap there
    answer_targets = [target for answer in decision.answers for target in answer.targets]
    targets = [*decision.targets, *answer_targets]
    current_items = [item for item in items if item.id == decision.item]
    if not current_items:  # labels have moved since
        current_items = [
            item for item in items if any(overlap(item.target, target, order) for target in targets)
        ]
    labels_there = [label for item in current_items for label in item.labels]
    targets_by_name: dict[str, list[Target]] = {answer.annotator: [] for answer in decision.answers}
    for label in labels_there:
        targets_by_name.setdefault(label.annotator, []).append(label.target)
    return tuple(
        SideAnswer(name, VerdictValue.PRESENT, tuple(dict.fromkeys(side_targets)))
        for name, side_targets in targets_by_name.items()
    )


def has_changed(decision: Decision, sides: Sequence[TraceWork], order: Order = no_order) -> bool:
    """Return whether a side has changed its answer since the decision.

    Args:
        decision: The decision.
        sides: The work of the annotators who finished the trace.
        order: Returns the index of a span by its key; None if unknown.
    """
    answers = current_answers(decision, sides, order)
    if decision.is_verdict:
        return comparable_verdicts(decision.answers) != comparable_verdicts(answers)
    return comparable_places(decision.answers) != comparable_places(answers)


@dataclass(frozen=True, slots=True)
class Choice:
    """An adjudicator's answer: the value, its places, and the sides with this answer."""

    value: VerdictValue
    targets: tuple[Target, ...] = ()
    sides: tuple[str, ...] = ()


ABSENT_CHOICE = Choice(VerdictValue.ABSENT)
UNSURE = Choice(VerdictValue.UNSURE)


def choice_of_side(conflict: Conflict, annotator: str) -> Choice:
    """Return the choice that follows one side: its verdict with its places.

    In a conflict over a place, a side without a label there chooses absent.

    Args:
        conflict: The conflict.
        annotator: The annotator's name.

    Raises:
        KeyError: The annotator is no side of the conflict.
    """
    side_answer = {answer.annotator: answer for answer in conflict.answers}[annotator]
    if conflict.kind is ConflictKind.PLACE and not side_answer.targets:
        return Choice(VerdictValue.ABSENT, (), (annotator,))
    assert side_answer.value is not None, "only annotators with a verdict are sides"
    return Choice(side_answer.value, side_answer.targets, (annotator,))


def choice_of_all_places(conflict: Conflict, order: Order = no_order) -> Choice | None:
    """Return the choice that accepts all labelled places; None if no side says present.

    Overlapping places become one place.

    Args:
        conflict: The conflict.
        order: Returns the index of a span by its key; None if unknown.
    """
    present_sides = tuple(
        answer.annotator for answer in conflict.answers if answer.value is VerdictValue.PRESENT
    )
    if not present_sides:
        return None
    targets = tuple(item.target for item in items_of_mode(conflict.labels, order))
    # The choice names the sides that labelled places, or else all sides that say present.
    labelling_sides = tuple(answer.annotator for answer in conflict.answers if answer.targets)
    return Choice(VerdictValue.PRESENT, targets, labelling_sides or present_sides)


def choice_of_own_place(conflict: Conflict, target: Target, order: Order = no_order) -> Choice:
    """Return the choice of a place that the adjudicator names.

    Its ``sides`` are those with an overlapping label.

    Args:
        conflict: The conflict.
        target: The adjudicator's place.
        order: Returns the index of a span by its key; None if unknown.
    """
    agreeing = tuple(
        answer.annotator
        for answer in conflict.answers
        if any(overlap(labelled, target, order) for labelled in answer.targets)
    )
    return Choice(VerdictValue.PRESENT, (target,), agreeing)


Choices = tuple[tuple[Conflict, Choice], ...]
"""The conflicts of a group with the choices that decide them."""


@dataclass(frozen=True, slots=True)
class ConflictGroup:
    """The conflicts over one mode of a trace that are decided together, in reading order.

    A conflict over a verdict is a group of its own. All conflicts over places of a mode are one
    group, because annotators who marked different places still agree that the mode is present.
    """

    conflicts: tuple[Conflict, ...]

    @property
    def kind(self) -> ConflictKind:
        """The common kind of the conflicts."""
        return self.conflicts[0].kind

    @property
    def mode(self) -> str:
        """The slug of the mode."""
        return self.conflicts[0].mode

    @property
    def id(self) -> str:
        """The name of the group, which is never stored."""
        return self.mode if self.kind is ConflictKind.VERDICT else places_id(self.mode)

    @property
    def answers(self) -> tuple[SideAnswer, ...]:
        """The sides with their verdicts, or with all their places in the group."""
        return merged_sides(self.conflicts)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of all conflicts."""
        return tuple(label for conflict in self.conflicts for label in conflict.labels)

    @property
    def first_place(self) -> Target | None:
        """The place to look at first."""
        return self.conflicts[0].first_place

    def at_place(self, target: Target) -> ConflictGroup | None:
        """Return the conflicts in which a side labelled this place, as a group, if any."""
        # A conflict over a verdict is about all places.
        if self.kind is ConflictKind.VERDICT:
            return self
        conflicts = [
            conflict
            for conflict in self.conflicts
            if any(target in answer.targets for answer in conflict.answers)
        ]
        return ConflictGroup(tuple(conflicts)) if conflicts else None

    def take_side(self, annotator: str) -> Choices:
        """Return the choices that follow one side.

        Raises:
            KeyError: The annotator is no side of the group.
        """
        if all(answer.annotator != annotator for answer in self.answers):
            raise KeyError(annotator)
        return self._each_place_once(
            (conflict, choice_of_side(_with_side(conflict, annotator), annotator))
            for conflict in self.conflicts
        )

    def take_all(self, order: Order = no_order) -> Choices | None:
        """Return the choices that accept all labelled places.

        None if no side of a conflict says present.
        """
        choices: list[tuple[Conflict, Choice]] = []
        for conflict in self.conflicts:
            choice = choice_of_all_places(conflict, order)
            if choice is None:
                return None
            choices.append((conflict, choice))
        return self._each_place_once(choices)

    def take_same(self, choice: Choice) -> Choices:
        """Return the same choice for every conflict."""
        return tuple((conflict, choice) for conflict in self.conflicts)

    def take_own_place(self, target: Target, order: Order = no_order) -> Choices:
        """Return the choices for a place that the adjudicator names.

        Args:
            target: The adjudicator's place.
            order: Returns the index of a span by its key; None if unknown.

        Returns:
            The place for the first conflict with an overlapping label, or else for the first
            conflict, and absent for the others.
        """
        overlapping = [
            conflict
            for conflict in self.conflicts
            if any(
                overlap(labelled, target, order)
                for answer in conflict.answers
                for labelled in answer.targets
            )
        ]
        place_conflict = overlapping[0] if overlapping else self.conflicts[0]
        conflict_of_all_sides = structs.replace(place_conflict, answers=self.answers)
        choice = choice_of_own_place(conflict_of_all_sides, target, order)
        no_place = Choice(VerdictValue.ABSENT, (), choice.sides)
        return tuple(
            (conflict, choice if conflict is place_conflict else no_place)
            for conflict in self.conflicts
        )

    def _each_place_once(self, choices: Iterable[tuple[Conflict, Choice]]) -> Choices:
        """Keep each place only in the first choice that has it.

        After changes of labels, two conflicts can be about the same labels.
        """
        if self.kind is ConflictKind.VERDICT:
            return tuple(choices)
        used_targets = set[Target]()
        distinct = list[tuple[Conflict, Choice]]()
        for conflict, choice in choices:
            targets = tuple(target for target in choice.targets if target not in used_targets)
            used_targets.update(targets)
            if targets != choice.targets:
                value = choice.value if targets else VerdictValue.ABSENT
                choice = replace(choice, value=value, targets=targets)
            distinct.append((conflict, choice))
        return tuple(distinct)


def places_id(mode: str) -> str:
    """Return the id of the case with all disputed places of a mode."""
    return f"{mode}@"


def conflict_groups(conflicts: Iterable[Conflict]) -> tuple[ConflictGroup, ...]:
    """Group the conflicts of one trace by mode and kind."""
    groups = values_by_key(((conflict.mode, conflict.kind), conflict) for conflict in conflicts)
    return tuple(ConflictGroup(tuple(group)) for group in groups.values())


@dataclass(frozen=True, slots=True)
class AdjudicationCase:
    """One row of an adjudicator's queue: the verdict on a mode of a trace, or its places.

    A case about places has all disputed places of the mode, or one place that an adjudicator added.

    Attributes:
        id: The id of the row.
        mode: The slug of the mode.
        is_verdict: True if the case is about the verdict, False if it is about places.
        conflicts: The open conflicts.
        decisions: The decisions in force; beside open conflicts they are about other places.
        agreed: The verdict on which all sides agree; None for an open or decided case.
    """

    id: str
    mode: str
    is_verdict: bool
    conflicts: tuple[Conflict, ...] = ()
    decisions: tuple[Decision, ...] = ()
    agreed: GoldVerdict | None = None

    @property
    def is_open(self) -> bool:
        """True if a conflict of the case is open."""
        return bool(self.conflicts)

    @property
    def resolves_conflict(self) -> bool:
        """True if the sides had different answers when the case was decided."""
        return any(resolves_conflict(decision) for decision in self.decisions)

    def has_changed(self, sides: Sequence[TraceWork], order: Order = no_order) -> bool:
        """Return whether the case is decided and a side has changed its answer since.

        Args:
            sides: The current work of the sides.
            order: Returns the index of a span by its key; None if unknown.
        """
        return not self.is_open and bool(self.outdated_decisions(sides, order))

    def outdated_decisions(
        self, sides: Sequence[TraceWork], order: Order = no_order
    ) -> tuple[Decision, ...]:
        """Return the decisions since which a side has changed its answer.

        Args:
            sides: The work of the annotators who finished the trace.
            order: Returns the index of a span by its key; None if unknown.
        """
        return tuple(decision for decision in self.decisions if has_changed(decision, sides, order))

    def in_question(self, sides: Sequence[TraceWork], order: Order = no_order) -> ConflictGroup:
        """Return the conflicts that the next decision on the case is about.

        These are the open conflicts, and decided ones with an answer that has changed since. In a
        decided case all conflicts are included.

        Args:
            sides: The current work of the sides.
            order: Returns the index of a span by its key; None if unknown.
        """
        if self.agreed is not None:
            return ConflictGroup((verdict_conflict(self.mode, sides),))
        reopened = self.outdated_decisions(sides, order) if self.is_open else self.decisions
        reopened_conflicts = [_as_conflict(decision, sides, order) for decision in reopened]
        conflicts = (*self.conflicts, *reopened_conflicts)
        in_order = in_reading_order(
            conflicts, lambda conflict: conflict.first_place or WHOLE_TRACE, order
        )
        return ConflictGroup(tuple(in_order))


def cases_of(
    conflicts: Iterable[Conflict], decisions: Iterable[Decision]
) -> tuple[AdjudicationCase, ...]:
    """Return the open and decided cases of a trace.

    Args:
        conflicts: The open conflicts.
        decisions: The decisions in force.
    """
    cases_by_id: dict[str, AdjudicationCase] = {}
    for group in conflict_groups(conflicts):
        is_verdict = group.kind is ConflictKind.VERDICT
        cases_by_id[group.id] = AdjudicationCase(group.id, group.mode, is_verdict, group.conflicts)
    for decision in decisions:
        id = case_id(decision)
        case = cases_by_id.get(id, AdjudicationCase(id, decision.mode, decision.is_verdict))
        cases_by_id[id] = replace(case, decisions=(*case.decisions, decision))
    return tuple(cases_by_id.values())


def case_id(decision: Decision) -> str:
    """Return the id of the case to which a decision belongs.

    Decisions on disputed places of a mode belong to one case. Any other decision is a case.
    """
    if decision.is_verdict or not resolves_conflict(decision):
        return decision.item
    return places_id(decision.mode)


def _with_side(conflict: Conflict, annotator: str) -> Conflict:
    """Return a conflict over a place with the annotator as a side, also without a label there."""
    if any(answer.annotator == annotator for answer in conflict.answers):
        return conflict
    # All sides of a conflict over a place agree that the mode is present.
    answer = SideAnswer(annotator, VerdictValue.PRESENT)
    return structs.replace(conflict, answers=(*conflict.answers, answer))


def _as_conflict(decision: Decision, sides: Sequence[TraceWork], order: Order) -> Conflict:
    """Return the conflict that a decision was about, with the current answers."""
    if decision.is_verdict:
        return verdict_conflict(decision.mode, sides)
    answers = current_answers(decision, sides, order)
    places = {(answer.annotator, target) for answer in answers for target in answer.targets}
    labels = tuple(
        label
        for side in sides
        for label in side.labels_of(decision.mode)
        if (label.annotator, label.target) in places
    )
    kind = ConflictKind.PLACE
    return Conflict(decision.item, kind, decision.mode, answers, labels, first_place(decision))


def verdict_conflict(mode: str, sides: Sequence[TraceWork]) -> Conflict:
    """Return the sides' verdicts on a mode as a conflict, even if they agree.

    Args:
        mode: The slug of the mode.
        sides: The current work of the sides.
    """
    answers = answers_on(mode, sides)
    labels = tuple(label for side in sides for label in side.labels_of(mode))
    first_target = next((target for answer in answers for target in answer.targets), None)
    return Conflict(mode, ConflictKind.VERDICT, mode, answers, labels, first_target)


def first_place(decision: Decision) -> Target | None:
    """Return the first chosen place, or else the first place of a side, if any."""
    targets = (target for answer in decision.answers for target in answer.targets)
    return next(iter((*decision.targets, *targets)), None)


def merged_sides(parts: Iterable[Conflict | Decision]) -> tuple[SideAnswer, ...]:
    """Join the answers of conflicts or decisions: one answer with all places per annotator."""
    sides: dict[str, SideAnswer] = {}
    for part in parts:
        for answer in part.answers:
            known_answer = sides.get(answer.annotator, answer)
            targets = tuple(dict.fromkeys((*known_answer.targets, *answer.targets)))
            sides[answer.annotator] = structs.replace(known_answer, targets=targets)
    return tuple(sides.values())
