"""The history of one person's actions for undo and redo."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from mast_tui.workspace.events.model import IMPORT_PREFIX, Event
from mast_tui.workspace.events.types import Fact, PassStarted, inverse


class Action(Struct):
    """The events of one action, which undo reverts together."""

    id: str
    pass_number: int
    events: list[Event]

    @property
    def facts(self) -> list[Fact]:
        """The facts of the events, in order."""
        return [event.fact for event in self.events]

    @property
    def opens_pass(self) -> bool:
        """True if the action began its pass."""
        return any(isinstance(event.fact, PassStarted) for event in self.events)

    def undoing_facts(self) -> list[Fact]:
        """Return the facts that undo this action, in order."""
        inverted = [inverse(event.fact) for event in reversed(self.events)]
        return [fact for fact in inverted if fact is not None]


class UndoHistory:
    """Two stacks of actions: one for undo and one for redo."""

    def __init__(self) -> None:
        self._done: list[Action] = []
        self._undone: list[Action] = []

    @classmethod
    def of_facts(cls, events: Iterable[Event], kind: type[Fact]) -> UndoHistory:
        """Build the history of the facts of one kind, without imports.

        Args:
            events: The events of one person, in order.
            kind: The type of the facts.
        """
        history = cls()
        for event in events:
            if isinstance(event.fact, kind) and not event.action.startswith(IMPORT_PREFIX):
                history.add(event)
        return history

    @property
    def last_done(self) -> Action | None:
        """The action that undo reverts; None if there is none."""
        return self._done[-1] if self._done else None

    @property
    def last_undone(self) -> Action | None:
        """The action that redo repeats; None if there is none."""
        return self._undone[-1] if self._undone else None

    def add(self, event: Event) -> None:
        """Add the next event of the person.

        An undo or redo moves its action to the other stack. A new action clears the redo stack.
        """
        if event.undoes is not None:
            _move_action(event.undoes, self._done, self._undone)
        elif event.redoes is not None:
            _move_action(event.redoes, self._undone, self._done)
        elif self._done and self._done[-1].id == event.action:
            self._done[-1].events.append(event)
        else:
            self._done.append(Action(event.action, event.pass_number or 0, [event]))
            self._undone.clear()


def _move_action(action_id: str, source: list[Action], target: list[Action]) -> None:
    """Move an action from one list to another; do nothing if the source does not have it.

    All events of an undo name the same action, so only the first of them moves it.
    """
    for index in reversed(range(len(source))):
        if source[index].id == action_id:
            target.append(source.pop(index))
            return
