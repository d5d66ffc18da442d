"""The outcome of a decision, later changes of its sides, and undo and redo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from mast_tui.gold import Decision, Order, Said, no_order, words_on
from mast_tui.gold.overlaps import items_of_mode, overlap
from mast_tui.gold.resolve import comparable_places, comparable_verdicts
from mast_tui.labels import Target, TraceWork, VerdictValue
from mast_tui.workspace.events.model import IMPORT_PREFIX, Event
from mast_tui.workspace.events.types import Decided, GuidelineSet

FactType = TypeVar("FactType", Decided, GuidelineSet)


def history_of(
    events: Iterable[Event], kind: type[FactType]
) -> tuple[dict[str, list[FactType]], dict[str, list[FactType]]]:
    """Return the actions of one person that can be undone, and those that can be redone.

    Imports are left out. After a new action, earlier undone actions cannot be redone.

    Args:
        events: The events of the person, in order.
        kind: The type of the facts that count.

    Returns:
        Two mappings from an action to its facts, the latest action last.
    """
    events_by_action: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(event.fact, kind) and not event.action.startswith(IMPORT_PREFIX):
            events_by_action.setdefault(event.action, []).append(event)
    done: dict[str, list[FactType]] = {}
    undone: dict[str, list[FactType]] = {}
    for action, action_events in events_by_action.items():
        first_event = action_events[0]
        if first_event.undoes is not None:
            if first_event.undoes in done:
                undone[first_event.undoes] = done.pop(first_event.undoes)
        elif first_event.redoes is not None:
            if first_event.redoes in undone:
                done[first_event.redoes] = undone.pop(first_event.redoes)
        else:
            done[action] = [event.fact for event in action_events if isinstance(event.fact, kind)]
            undone.clear()
    return done, undone


def outcome_words(value: VerdictValue, *, is_verdict: bool) -> str:
    """Return a decided value in words: the verdict, or whether the place was accepted.

    Args:
        value: The decided value.
        is_verdict: True if a mode's verdict was decided, and not a place.
    """
    if is_verdict:
        return value.value
    return "place taken" if value is VerdictValue.PRESENT else "place dropped"


def decided_words(decisions: Sequence[Decision]) -> str:
    """Return the outcome of decisions of one step in words, such as ``2 of 3 places taken``."""
    if len(decisions) == 1:
        return outcome_words(decisions[0].value, is_verdict=decisions[0].is_verdict)
    accepted = sum(decision.value is VerdictValue.PRESENT for decision in decisions)
    return f"{accepted} of {len(decisions)} places taken" if accepted else "no place taken"


def targets_taken(decisions: Iterable[Decision]) -> list[Target]:
    """Return the places of all decisions with the value present."""
    accepted = (decision for decision in decisions if decision.value is VerdictValue.PRESENT)
    return [target for decision in accepted for target in decision.targets]


def resolves_conflict(decision: Decision) -> bool:
    """Check whether the sides differed when it was decided.

    Otherwise the decision changes an agreed answer.
    """
    if decision.is_verdict:
        return len({answer.value for answer in decision.said}) > 1
    return len({frozenset(answer.targets) for answer in decision.said}) > 1


def current_answers(
    decision: Decision, sides: Sequence[TraceWork], order: Order = no_order
) -> tuple[Said, ...]:
    """Return the current answers of the sides on the mode or place of a decision.

    For a mode these are all sides with a verdict. For a place these are the sides in the decision,
    which may have removed their marks, and the sides that have marked it since.

    Args:
        decision: The decision.
        sides: The work of the annotators who finished the trace.
        order: Returns the index of a span by its key, None if it is not known.
    """
    if decision.is_verdict:
        return words_on(decision.mode, sides)
    labels = [label for side in sides for label in side.labels_of(decision.mode)]
    items = items_of_mode(labels, order)
    answer_targets = [target for answer in decision.said for target in answer.targets]
    targets = [*decision.targets, *answer_targets]
    current_items = [item for item in items if item.id == decision.item] or [
        item for item in items if any(overlap(item.target, target, order) for target in targets)
    ]
    marking_labels = [label for item in current_items for label in item.labels]
    names = [
        *(answer.annotator for answer in decision.said),
        *(label.annotator for label in marking_labels),
    ]
    return tuple(
        Said(
            name,
            VerdictValue.PRESENT,
            tuple(
                dict.fromkeys(label.target for label in marking_labels if label.annotator == name)
            ),
        )
        for name in dict.fromkeys(names)
    )


def has_changed(decision: Decision, sides: Sequence[TraceWork], order: Order = no_order) -> bool:
    """Check whether a side has changed its answer since the decision.

    Args:
        decision: The decision.
        sides: The work of the annotators who finished the trace.
        order: Returns the index of a span by its key, None if it is not known.
    """
    now = current_answers(decision, sides, order)
    if decision.is_verdict:
        return comparable_verdicts(decision.said) != comparable_verdicts(now)
    return comparable_places(decision.said) != comparable_places(now)
