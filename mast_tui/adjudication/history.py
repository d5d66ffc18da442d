"""Which of somebody's decisions on a trace can be undone and done again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mast_tui.workspace.events import Event
from mast_tui.workspace.facts import Decided

_IMPORTED = "import:"


@dataclass(frozen=True, slots=True)
class DecidedTogether:
    """The decisions of one key press; ``action`` is its id."""

    action: str
    facts: tuple[Decided, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Key presses that can be undone and done again, the latest last."""

    done: tuple[DecidedTogether, ...]
    undone: tuple[DecidedTogether, ...]


def history_of(events: Iterable[Event]) -> History:
    """The history that the events of one adjudicator on one trace tell, in their order.

    What came with an import is no key press. A new decision ends what could be done again.
    """

    groups: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(event.fact, Decided) and not event.action.startswith(_IMPORTED):
            groups.setdefault(event.action, []).append(event)
    done: dict[str, DecidedTogether] = {}
    undone: dict[str, DecidedTogether] = {}
    for action, group in groups.items():
        first = group[0]
        if first.undoes is not None:
            if first.undoes in done:
                undone[first.undoes] = done.pop(first.undoes)
        elif first.redoes is not None:
            if first.redoes in undone:
                done[first.redoes] = undone.pop(first.redoes)
        else:
            facts = tuple(event.fact for event in group if isinstance(event.fact, Decided))
            done[action] = DecidedTogether(action, facts)
            undone.clear()
    return History(tuple(done.values()), tuple(undone.values()))
