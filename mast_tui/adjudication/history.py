"""Which of somebody's decisions, or guidelines, can be undone and done again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from mast_tui.workspace.events.model import IMPORT_PREFIX, Event
from mast_tui.workspace.events.types import Decided, GuidelineSet

FactType = TypeVar("FactType", Decided, GuidelineSet)


def history_of(
    events: Iterable[Event], kind: type[FactType]
) -> tuple[dict[str, list[FactType]], dict[str, list[FactType]]]:
    """Which key presses of one person can be undone, and which can be done again.

    What came with an import is no key press. A new change ends what could be done again.

    Args:
        events: What the person did, in order.
        kind: The kind of facts that are meant.

    Returns:
        For both what each key press has changed, by its action, the latest last.
    """
    groups: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(event.fact, kind) and not event.action.startswith(IMPORT_PREFIX):
            groups.setdefault(event.action, []).append(event)
    done: dict[str, list[FactType]] = {}
    undone: dict[str, list[FactType]] = {}
    for action, group in groups.items():
        first = group[0]
        if first.undoes is not None:
            if first.undoes in done:
                undone[first.undoes] = done.pop(first.undoes)
        elif first.redoes is not None:
            if first.redoes in undone:
                done[first.redoes] = undone.pop(first.redoes)
        else:
            done[action] = [one.fact for one in group if isinstance(one.fact, kind)]
            undone.clear()
    return done, undone
