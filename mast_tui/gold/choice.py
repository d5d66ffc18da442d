"""The answers that an adjudicator has for a conflict: one side, all, nobody, unsure, elsewhere."""

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
    """Return an annotator's answer: the verdict with its places, or the place as they marked it.

    Who did not mark a place says that it is none. Raises ``KeyError`` for somebody who is no side
    of the conflict.

    Args:
        conflict: The conflict.
        annotator: The annotator's name.
    """
    side_answer = {answer.annotator: answer for answer in conflict.said}[annotator]
    if conflict.kind is ConflictKind.PLACE and not side_answer.targets:
        return Choice(VerdictValue.ABSENT, (), (annotator,))
    return Choice(side_answer.value or VerdictValue.UNSURE, side_answer.targets, (annotator,))


def take_all(conflict: Conflict, order: Order = no_order) -> Choice | None:
    """Return everything that was marked, with one covering place for those that overlap.

    None where no side says present, so that there is nothing to put together.

    Args:
        conflict: The conflict.
        order: Returns the index of a span by its key, None if it is not known.
    """
    finders = tuple(s.annotator for s in conflict.said if s.value is VerdictValue.PRESENT)
    if not finders:
        return None
    targets = tuple(item.target for item in items_of_mode(conflict.labels, order))
    markers = tuple(s.annotator for s in conflict.said if s.targets)
    return Choice(VerdictValue.PRESENT, targets, markers or finders)


def elsewhere(conflict: Conflict, target: Target, order: Order = no_order) -> Choice:
    """Return that the mode shows at a place of the adjudicator's own.

    The sides whose marks it touches agree with it.

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
