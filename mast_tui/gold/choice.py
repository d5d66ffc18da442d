"""An adjudicator's possible answers to a conflict: one side, all, nobody, unsure, elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from mast_tui.gold.model import Conflict, ConflictKind
from mast_tui.gold.overlaps import Order, items_of_mode, no_order, overlap
from mast_tui.labels import Target, VerdictValue


@dataclass(frozen=True, slots=True)
class Choice:
    """An adjudicator's answer: the value, its places, and the sides whose answer was taken."""

    value: VerdictValue
    targets: tuple[Target, ...] = ()
    sides: tuple[str, ...] = ()


NOBODY = Choice(VerdictValue.ABSENT)
UNSURE = Choice(VerdictValue.UNSURE)


def take_side(conflict: Conflict, annotator: str) -> Choice:
    """Return the choice of one side's answer: its verdict with its places, or its marked place.

    In a conflict over a place, the choice of a side without a mark is absent.

    Args:
        conflict: The conflict.
        annotator: The annotator's name.

    Raises:
        KeyError: The annotator is no side of the conflict.
    """
    side_answer = {answer.annotator: answer for answer in conflict.said}[annotator]
    if conflict.kind is ConflictKind.PLACE and not side_answer.targets:
        return Choice(VerdictValue.ABSENT, (), (annotator,))
    return Choice(side_answer.value or VerdictValue.UNSURE, side_answer.targets, (annotator,))


def take_all(conflict: Conflict, order: Order = no_order) -> Choice | None:
    """Return the choice of all marked places, with one covering place for overlapping ones.

    Returns None if no side says present.

    Args:
        conflict: The conflict.
        order: Returns the index of a span by its key, None if it is not known.
    """
    present_sides = tuple(
        answer.annotator for answer in conflict.said if answer.value is VerdictValue.PRESENT
    )
    if not present_sides:
        return None
    targets = tuple(item.target for item in items_of_mode(conflict.labels, order))
    marking_sides = tuple(answer.annotator for answer in conflict.said if answer.targets)
    return Choice(VerdictValue.PRESENT, targets, marking_sides or present_sides)


def elsewhere(conflict: Conflict, target: Target, order: Order = no_order) -> Choice:
    """Return the choice of a place of the adjudicator's own, at which the mode shows.

    Its ``sides`` are those with a mark that overlaps the place.

    Args:
        conflict: The conflict.
        target: The place of the adjudicator's own.
        order: Returns the index of a span by its key, None if it is not known.
    """
    agreeing = tuple(
        answer.annotator
        for answer in conflict.said
        if any(overlap(marked, target, order) for marked in answer.targets)
    )
    return Choice(VerdictValue.PRESENT, (target,), agreeing)
