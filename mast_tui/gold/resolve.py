"""The gold of one trace, from the answers of its annotators and the decisions of adjudicators.

Sides are the annotators with an answer. Verdicts and places are resolved separately.

**Verdicts.** Each mode has one verdict. Equal verdicts of the sides are ``unanimous``, and the
verdict of one side is ``single``. Different verdicts are a conflict and stay ``unresolved`` until a
decision makes them ``adjudicated``. On request, more than half of the verdicts settle the conflict
as ``majority``, to present or absent, never to unsure. A decision outweighs everything else.

**Places.** Only a present mode has places, from the labels of the sides that say present.
Overlapping targets are one item (``items_of_mode``). An item is compared between all sides that
marked any place of the mode:

- If only one side marked places, they are ``single``.
- If all sides marked the item, it is ``unanimous``. Its target is the common one, or one that
  covers all targets (``merged``). With ``boundaries``, different targets are a conflict instead.
- If one side marked separate places that only another side's wider place connects, they are a
  conflict: it is open if they are one failure or several.
- If some sides did not mark the item, it is a conflict, settled by ``majority`` on request.

A label on the whole trace is no place. It does not merge with a span or contradict one, and a side
without other labels has no answer on places. A decision on the verdict brings its own places. A
decision on a place holds for its item, or adds a new place.

The gold labels are settled; conflicts are in ``GoldTrace.conflicts``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from mast_tui.gold.model import (
    Conflict,
    ConflictKind,
    Decision,
    GoldLabel,
    GoldTrace,
    GoldVerdict,
    Resolution,
    SideAnswer,
)
from mast_tui.gold.overlaps import (
    Item,
    Order,
    in_reading_order,
    items_of_mode,
    joins_separate_places,
    no_order,
    overlap,
)
from mast_tui.labels import Label, Target, TraceWork, VerdictValue


def gold_of_trace(
    sides: Sequence[TraceWork],
    decisions: Sequence[Decision],
    modes: Sequence[str],
    order: Order = no_order,
    *,
    majority: bool = False,
    boundaries: bool = False,
) -> GoldTrace:
    """Return the gold of one trace under one taxonomy.

    Args:
        sides: The work of the annotators who finished the trace, each annotator once.
        decisions: The decisions in force, oldest first; the last decision on an item counts.
        modes: The slugs of the taxonomy in its order. Answers on other modes are left out.
        order: Returns the index of a span by its key; None if unknown. Without indices, only equal
            targets and targets in the same span are one item.
        majority: True if a majority resolves a conflict.
        boundaries: True if overlapping places with different ends are a conflict.

    Raises:
        ValueError: An annotator is among the sides twice.
    """
    names = [side.annotator for side in sides]
    if len(set(names)) < len(names):
        raise ValueError(f"an annotator has two sides: {', '.join(names)}")
    rules = _Rules(order, majority, boundaries)
    gold_by_mode = [_gold_of_mode(mode, sides, _in_force(mode, decisions), rules) for mode in modes]
    conflicts = [conflict for gold in gold_by_mode for conflict in gold.conflicts]
    return GoldTrace(
        verdicts=tuple(verdict for gold in gold_by_mode for verdict in gold.verdicts),
        labels=tuple(label for gold in gold_by_mode for label in gold.labels),
        # Conflicts over verdicts come first.
        conflicts=tuple(sorted(conflicts, key=lambda c: c.kind is ConflictKind.PLACE)),
    )


def answers_on(mode: str, sides: Sequence[TraceWork]) -> tuple[SideAnswer, ...]:
    """Return the answers of all sides with a verdict on a mode.

    Args:
        mode: The mode's slug.
        sides: The work of the annotators who finished the trace.
    """
    return tuple(
        SideAnswer(side.annotator, value, _targets_of_labels(_labels_of_mode(mode, [side])))
        for side in sides
        if (value := side.verdict(mode)) is not None
    )


def answers_at(
    mode: str, target: Target, sides: Sequence[TraceWork], order: Order = no_order
) -> tuple[SideAnswer, ...]:
    """Return the answers of the annotators with labels of a mode at a target.

    A label is at the target if the target overlaps the item of the label.

    Args:
        mode: The mode's slug.
        target: The target.
        sides: The work of the annotators who finished the trace.
        order: Returns the index of a span by its key; None if unknown.
    """
    overlapping_labels = [
        label
        for item in items_of_mode(_labels_of_mode(mode, sides), order)
        if overlap(item.target, target, order)
        for label in item.labels
    ]
    names = dict.fromkeys(label.annotator for label in overlapping_labels)
    return tuple(
        SideAnswer(
            name,
            VerdictValue.PRESENT,
            _targets_of_labels(label for label in overlapping_labels if label.annotator == name),
        )
        for name in names
    )


class _Rules(Struct, frozen=True):
    """The rules for resolving the answers of sides."""

    order: Order
    majority: bool
    different_ends_conflict: bool


def _in_force(mode: str, decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Return the newest decision on each item of a mode, in order."""
    last_by_item: dict[str, Decision] = {}
    for decision in decisions:
        if decision.mode == mode:
            # A key that is set again keeps its place in a dictionary, so remove it first.
            last_by_item.pop(decision.item, None)
            last_by_item[decision.item] = decision
    return tuple(last_by_item.values())


def _gold_of_mode(
    mode: str, sides: Sequence[TraceWork], decisions: tuple[Decision, ...], rules: _Rules
) -> GoldTrace:
    """Return the gold of one mode."""
    verdict_decision = next((decision for decision in decisions if decision.is_verdict), None)
    verdict = _gold_verdict(mode, sides, verdict_decision, rules)
    if verdict.value is VerdictValue.PRESENT and verdict_decision is not None:
        labels = _labels_of_decided_verdict(verdict_decision, decisions, sides, rules.order)
        return GoldTrace((verdict,), labels, ())
    if verdict.value is VerdictValue.PRESENT:
        labels, place_conflicts = _labels_and_conflicts(mode, sides, decisions, rules)
        return GoldTrace((verdict,), labels, place_conflicts)
    answers = answers_on(mode, sides)
    if verdict.source is not Resolution.UNRESOLVED or not answers:
        return GoldTrace((verdict,), (), ())
    items = items_of_mode(_labels_of_mode(mode, sides), rules.order)
    conflict = Conflict(
        id=mode,
        kind=ConflictKind.VERDICT,
        mode=mode,
        answers=answers,
        labels=tuple(label for item in items for label in item.labels),
        first_place=items[0].target if items else None,
    )
    return GoldTrace((verdict,), (), (conflict,))


def _gold_verdict(
    mode: str, sides: Sequence[TraceWork], decided: Decision | None, rules: _Rules
) -> GoldVerdict:
    """Return the verdict of the gold on a mode; ``decided`` is a decision on it, if any."""
    answers = answers_on(mode, sides)
    values = [answer.value for answer in answers if answer.value is not None]
    value_by_side = {side.annotator: side.verdict(mode) for side in sides}
    # True if an annotator gave a verdict with suggestions on screen.
    judge_seen = any(
        side.saw_judge(mode) for side in sides if value_by_side[side.annotator] is not None
    )
    if decided is not None:
        return GoldVerdict(
            mode,
            decided.value,
            Resolution.ADJUDICATED,
            value_by_side,
            judge_seen=judge_seen or decided.judge_seen,
            decided_by=decided.decided_by,
            decided_at=decided.decided_at,
            reason=decided.reason,
            # True if the annotators' answers have changed since the decision.
            changed=comparable_verdicts(decided.answers) != comparable_verdicts(answers),
        )
    value, source = _value_and_source(values, rules.majority)
    return GoldVerdict(mode, value, source, value_by_side, judge_seen=judge_seen)


def _value_and_source(
    values: Sequence[VerdictValue], majority: bool
) -> tuple[VerdictValue | None, Resolution]:
    """Return the value that follows from the annotators' verdicts, and its source.

    The value is None for different verdicts without a majority.
    """
    if len(values) == 1:
        return values[0], Resolution.SINGLE
    if values and all(value is values[0] for value in values):
        return values[0], Resolution.UNANIMOUS
    # A majority of unsure verdicts resolves nothing.
    for value in (VerdictValue.PRESENT, VerdictValue.ABSENT):
        if majority and 2 * values.count(value) > len(values):
            return value, Resolution.MAJORITY
    return None, Resolution.UNRESOLVED


def _labels_of_decided_verdict(
    verdict_decision: Decision,
    decisions: Sequence[Decision],
    sides: Sequence[TraceWork],
    order: Order,
) -> tuple[GoldLabel, ...]:
    """Return the gold labels of a mode that an adjudicator decided to be present.

    The places come from the decision on the verdict. Decisions on items replace or add some.
    """
    side_labels = _labels_of_mode(verdict_decision.mode, sides)
    items = [
        Item(
            verdict_decision.mode,
            tuple(label for label in side_labels if overlap(label.target, target, order)),
            target,
        )
        for target in verdict_decision.targets
    ]
    item_decisions = _item_decisions_beside(verdict_decision, decisions, order)
    split_items = _split_by_decision(items, item_decisions, order)
    labels = _labels_from_decisions(split_items.decided, sides, order)
    for item in split_items.undecided:
        agreeing = [label for label in item.labels if label.annotator in verdict_decision.sides]
        labels.append(_decided_label(verdict_decision, item.target, agreeing, sides))
    return tuple(in_reading_order(labels, lambda label: label.target, order))


def _labels_and_conflicts(
    mode: str, sides: Sequence[TraceWork], item_decisions: Sequence[Decision], rules: _Rules
) -> tuple[tuple[GoldLabel, ...], tuple[Conflict, ...]]:
    """Return the gold labels and conflicts of a mode that the sides agree to be present."""
    side_labels = _labels_of_mode(mode, sides)
    items = items_of_mode(side_labels, rules.order)
    split_items = _split_by_decision(items, item_decisions, rules.order)
    labels = _labels_from_decisions(split_items.decided, sides, rules.order)
    conflicts: list[Conflict] = []
    placing_sides = {label.annotator for label in side_labels if not label.target.is_whole}
    for item in split_items.undecided:
        # A side without any place has no answer on a place.
        answering_sides = set(item.annotators) if item.target.is_whole else placing_sides
        source = _place_source(item, answering_sides, rules)
        if source is Resolution.UNRESOLVED:
            conflicts.append(_place_conflict(item, sides, answering_sides))
        elif source is not None:
            labels += _accepted_labels(item, source, sides)
    in_order = in_reading_order(labels, lambda label: label.target, rules.order)
    return tuple(in_order), tuple(conflicts)


def _item_decisions_beside(
    verdict_decision: Decision, decisions: Sequence[Decision], order: Order
) -> tuple[Decision, ...]:
    """Return the decisions on items that stay valid beside a decision on their mode's verdict.

    These are later decisions, and earlier ones with places that overlap none of the verdict's.
    """
    verdict_index = decisions.index(verdict_decision)
    earlier = [
        decision
        for decision in decisions[:verdict_index]
        if decision.value is VerdictValue.PRESENT
        and not _any_overlap(decision.targets, verdict_decision.targets, order)
    ]
    return (*earlier, *decisions[verdict_index + 1 :])


def _any_overlap(targets: Iterable[Target], other_targets: Sequence[Target], order: Order) -> bool:
    return any(overlap(target, other, order) for target in targets for other in other_targets)


class _SplitItems(Struct, frozen=True):
    """Decisions with the items that they are about, and the items without a decision."""

    decided: Sequence[tuple[Decision, Sequence[Item]]]
    undecided: Sequence[Item]


def _split_by_decision(
    items: Sequence[Item], decisions: Sequence[Decision], order: Order
) -> _SplitItems:
    """Assign the items of a mode to the decisions on them.

    A decision belongs to the item with its id. If labels were moved since, it belongs to all free
    items that overlap its targets or those of the answers then. Later decisions choose first.
    """
    free_items = {item.id: item for item in items}
    items_by_id: dict[str, list[Item]] = {}
    for decision in decisions:
        item = free_items.pop(decision.item, None)
        items_by_id[decision.item] = [] if item is None else [item]
    for decision in reversed(decisions):
        if items_by_id[decision.item]:
            continue
        answer_targets = [target for answer in decision.answers for target in answer.targets]
        targets = [*decision.targets, *answer_targets]
        moved_items = [
            item for item in free_items.values() if _any_overlap(targets, [item.target], order)
        ]
        items_by_id[decision.item] = moved_items
        for item in moved_items:
            del free_items[item.id]
    decided_items = [(decision, items_by_id[decision.item]) for decision in decisions]
    return _SplitItems(decided_items, list(free_items.values()))


def _labels_from_decisions(
    decided_items: Sequence[tuple[Decision, Sequence[Item]]],
    sides: Sequence[TraceWork],
    order: Order,
) -> list[GoldLabel]:
    """Return the gold labels that follow from decisions on items."""
    return [
        label
        for decision, items in decided_items
        if decision.value is VerdictValue.PRESENT  # else the items do not count
        for label in _labels_of_present_decision(decision, items, sides, order)
    ]


def _labels_of_present_decision(
    decision: Decision, items: Sequence[Item], sides: Sequence[TraceWork], order: Order
) -> list[GoldLabel]:
    """Return the gold labels that follow from the decision that items are present."""
    item_labels = [label for item in items for label in item.labels]
    current_places = {
        (name, frozenset(label.target for label in item_labels if label.annotator == name))
        for name in {label.annotator for label in item_labels}
    }
    # True if the annotators' places have changed since the decision.
    changed = comparable_places(decision.answers) != current_places
    # An adjudicator's own place may overlap other items, so all labels of the mode count.
    chosen_labels = [
        label
        for label in _labels_of_mode(decision.mode, sides)
        if label.annotator in decision.sides
    ]
    return [
        _decided_label(
            decision,
            target,
            [label for label in chosen_labels if overlap(label.target, target, order)],
            sides,
            changed=changed,
        )
        for target in decision.targets
    ]


def _place_source(item: Item, answering_sides: set[str], rules: _Rules) -> Resolution | None:
    """Return the source of an item's resolution; None if a majority has not marked the item.

    ``answering_sides`` are the annotators with an answer on the item, whether they marked it or
    not.
    """
    marking_count = len(item.annotators)
    if len(answering_sides) == 1:
        return Resolution.SINGLE
    if rules.different_ends_conflict and marking_count > 1 and len(item.targets) > 1:
        return Resolution.UNRESOLVED
    if joins_separate_places(item, rules.order):
        return Resolution.UNRESOLVED
    if marking_count == len(answering_sides):
        return Resolution.UNANIMOUS
    if rules.majority and 2 * marking_count != len(answering_sides):
        return Resolution.MAJORITY if 2 * marking_count > len(answering_sides) else None
    return Resolution.UNRESOLVED


def _accepted_labels(item: Item, source: Resolution, sides: Sequence[TraceWork]) -> list[GoldLabel]:
    """Return the gold labels of an item.

    Different targets of one annotator stay separate. Those of several annotators become one label,
    which is then ``merged``.
    """
    if len(item.annotators) == 1:
        return [
            _gold_label(
                item.mode,
                target,
                [label for label in item.labels if label.target == target],
                sides,
                source,
            )
            for target in item.targets
        ]
    label = _gold_label(item.mode, item.target, item.labels, sides, source)
    return [structs.replace(label, merged=len(item.targets) > 1)]


def _place_conflict(item: Item, sides: Sequence[TraceWork], answering_sides: set[str]) -> Conflict:
    """Return the conflict over an item, with the places that each side marked in it."""
    answers = tuple(
        SideAnswer(
            side.annotator,
            VerdictValue.PRESENT,
            _targets_of_labels(label for label in item.labels if label.annotator == side.annotator),
        )
        for side in sides
        if side.annotator in answering_sides
    )
    return Conflict(item.id, ConflictKind.PLACE, item.mode, answers, item.labels, item.target)


def _decided_label(
    decision: Decision,
    target: Target,
    labels: Sequence[Label],
    sides: Sequence[TraceWork],
    *,
    changed: bool = False,
) -> GoldLabel:
    """Return a gold label at a place that an adjudicator chose."""
    label = _gold_label(decision.mode, target, labels, sides, Resolution.ADJUDICATED)
    return structs.replace(
        label,
        judge_seen=label.judge_seen or decision.judge_seen,
        decided_by=decision.decided_by,
        decided_at=decision.decided_at,
        reason=decision.reason,
        changed=changed,
    )


def _gold_label(
    mode: str,
    target: Target,
    labels: Sequence[Label],
    sides: Sequence[TraceWork],
    source: Resolution,
) -> GoldLabel:
    """Return a gold label; ``labels`` give its notes, severity and annotators."""
    names = tuple(dict.fromkeys(label.annotator for label in labels))
    severity_by_annotator = {
        label.annotator: label.severity for label in labels if label.severity is not None
    }
    severity = None
    severity_source = None
    if len(set(severity_by_annotator.values())) == 1:
        severity = next(iter(severity_by_annotator.values()))
        severity_source = _severity_source(len(severity_by_annotator), len(names))
    return GoldLabel(
        mode,
        target,
        source,
        labels=tuple(label.id for label in labels),
        annotators=names,
        notes=tuple((label.annotator, label.note) for label in labels if label.note),
        severity=severity,
        severity_source=severity_source,
        judge_seen=any(side.saw_judge(mode) for side in sides if side.annotator in names),
    )


def _severity_source(giving_count: int, annotator_count: int) -> Resolution:
    """Return the source of a severity that some of the annotators gave."""
    if giving_count == 1:
        return Resolution.SINGLE
    return Resolution.UNANIMOUS if giving_count == annotator_count else Resolution.MAJORITY


def _labels_of_mode(mode: str, sides: Sequence[TraceWork]) -> list[Label]:
    return [label for side in sides for label in side.labels_of(mode)]


def _targets_of_labels(labels: Iterable[Label]) -> tuple[Target, ...]:
    return tuple(dict.fromkeys(label.target for label in labels))


def comparable_verdicts(
    answers: Iterable[SideAnswer],
) -> set[tuple[str, VerdictValue | None, frozenset[Target]]]:
    """Return answers on a mode in a form for comparisons."""
    return {(s.annotator, s.value, frozenset(s.targets)) for s in answers}


def comparable_places(answers: Iterable[SideAnswer]) -> set[tuple[str, frozenset[Target]]]:
    """Return answers on a place in a form for comparisons."""
    return {(s.annotator, frozenset(s.targets)) for s in answers if s.targets}
