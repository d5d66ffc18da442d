"""What can be taken back and done again, told from the events alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from mast_tui.workspace.events import IMPORT_PREFIX, Event
from mast_tui.workspace.facts import Decided, Fact, PassStarted, inverse


@dataclass(slots=True)
class Action:
    """What one key press did, without what it only noted."""

    id: str
    pass_number: int
    events: list[Event] = field(default_factory=list)

    @property
    def facts(self) -> list[Fact]:
        """What happened, in order."""
        return [event.fact for event in self.events]

    @property
    def opens_pass(self) -> bool:
        """Whether it began the pass that it belongs to."""
        return any(isinstance(event.fact, PassStarted) for event in self.events)

    def taken_back(self) -> list[Fact]:
        """The facts that undo it, in order."""
        inverted = [inverse(event.fact) for event in reversed(self.events)]
        return [fact for fact in inverted if fact is not None]


class History:
    """The actions on one trace, those that stand and those taken back, each latest last."""

    def __init__(self) -> None:
        self.done: list[Action] = []
        self.undone: list[Action] = []

    def take(self, event: Event) -> None:
        """Take in the next event; events must come in the order of their counters."""
        if event.undoes is not None:
            _move(event.undoes, self.done, self.undone)
        elif event.redoes is not None:
            _move(event.redoes, self.undone, self.done)
        elif _can_be_undone(event):
            if not self.done or self.done[-1].id != event.action:
                self.done.append(Action(event.action, event.pass_number or 0))
                self.undone.clear()
            self.done[-1].events.append(event)


def _can_be_undone(event: Event) -> bool:
    # Decisions are taken back where they are made: in adjudication.
    return (
        not event.action.startswith(IMPORT_PREFIX)
        and not isinstance(event.fact, Decided)
        and inverse(event.fact) is not None
    )


def _move(action_id: str, source: list[Action], target: list[Action]) -> None:
    """Move an action; the later events of one undo find it moved already."""
    for place in range(len(source) - 1, -1, -1):
        if source[place].id == action_id:
            target.append(source.pop(place))
            return
