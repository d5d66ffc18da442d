"""Which of somebody's decisions, or guidelines, can be undone and done again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.types import Decided, GuidelineSet

_IMPORTED = "import:"


FactType = TypeVar("FactType", Decided, GuidelineSet)


@dataclass(frozen=True, slots=True)
class Together(Generic[FactType]):
    """What one key press has changed; ``action`` is its id."""

    action: str
    facts: tuple[FactType, ...]


@dataclass(frozen=True, slots=True)
class History(Generic[FactType]):
    """Key presses that can be undone and done again, the latest last."""

    done: tuple[Together[FactType], ...]
    undone: tuple[Together[FactType], ...]


def history_of(events: Iterable[Event], kind: type[FactType]) -> History[FactType]:
    """The history of one kind of facts that the events of one person tell, in their order.

    What came with an import is no key press. A new change ends what could be done again.
    """
    groups: dict[str, list[tuple[Event, FactType]]] = {}
    for event in events:
        if isinstance(event.fact, kind) and not event.action.startswith(_IMPORTED):
            groups.setdefault(event.action, []).append((event, event.fact))
    done: dict[str, Together[FactType]] = {}
    undone: dict[str, Together[FactType]] = {}
    for action, group in groups.items():
        first = group[0][0]
        if first.undoes is not None:
            if first.undoes in done:
                undone[first.undoes] = done.pop(first.undoes)
        elif first.redoes is not None:
            if first.redoes in undone:
                done[first.redoes] = undone.pop(first.redoes)
        else:
            done[action] = Together(action, tuple(fact for _, fact in group))
            undone.clear()
    return History(tuple(done.values()), tuple(undone.values()))
