"""The answers that an adjudicator has for a conflict: one side, all, nobody, unsure, elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from mast_tui.gold.model import Conflict, ConflictKind
from mast_tui.gold.overlaps import Order, items_of_mode, no_order, overlap
from mast_tui.labels import Target, VerdictValue


@dataclass(frozen=True, slots=True)
class Choice:
    """What is decided: the value, the places that go with it, and whose word was taken."""

    value: VerdictValue
    targets: tuple[Target, ...] = ()
    sides: tuple[str, ...] = ()


NOBODY = Choice(VerdictValue.ABSENT)
UNSURE = Choice(VerdictValue.UNSURE)


def take_side(conflict: Conflict, annotator: str) -> Choice:
    """That annotator's word: the verdict with its places, or the place as marked there.

    Who did not mark a place says that it is none. Raises ``KeyError`` for somebody who is no side
    of the conflict.
    """
    said = {one.annotator: one for one in conflict.said}[annotator]
    if conflict.kind is ConflictKind.PLACE and not said.targets:
        return Choice(VerdictValue.ABSENT, (), (annotator,))
    return Choice(said.value or VerdictValue.UNSURE, said.targets, (annotator,))


def take_all(conflict: Conflict, order: Order = no_order) -> Choice | None:
    """Everything that was marked, overlapping places as the one that covers them.

    None where no side says present, so that there is nothing to put together.
    """
    finders = tuple(s.annotator for s in conflict.said if s.value is VerdictValue.PRESENT)
    if not finders:
        return None
    targets = tuple(item.target for item in items_of_mode(conflict.labels, order))
    behind = tuple(s.annotator for s in conflict.said if s.targets)
    return Choice(VerdictValue.PRESENT, targets, behind or finders)


def elsewhere(conflict: Conflict, target: Target, order: Order = no_order) -> Choice:
    """The mode shows, at a place of the adjudicator's own; sides whose marks it touches agree."""
    agreeing = tuple(
        said.annotator
        for said in conflict.said
        if any(overlap(marked, target, order) for marked in said.targets)
    )
    return Choice(VerdictValue.PRESENT, (target,), agreeing)
