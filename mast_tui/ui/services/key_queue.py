"""Keys one after the other: none is handed out before the one before it has done its work.

Textual hands a key to the widget that has the focus at that moment, and several may be on their
way at once. In a burst (a fast typist, a slow line, a paste) ``/`` and ``1 3`` would then go to the
same widget: the search line would open, and a label be set.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol, runtime_checkable

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widgets import Input

from mast_tui.ui.input_priority import InputPriority
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.writes import HeldKeys, Writes

WRITING: Final = 0.001
"""Seconds in which what was drawn reaches the terminal."""

GO_ON: Final = ("move", "digit")
"""Beginnings of the actions that go on while labels are being saved: what they act on is on screen
already, and no label that is saved meanwhile changes it."""

PATIENCE: Final = 0.5
"""Seconds after which a key whose widget has gone away no longer holds up the next."""


@runtime_checkable
class AsksInLastLine(Protocol):
    """A screen that may wait for an answer in its last line, and then hears of keys first."""

    @property
    def asks(self) -> bool:
        """Whether an answer is waited for."""
        ...

    def take_key(self, key: str, action: str | None) -> bool:
        """Take a key as an answer, or as none; False where it does what it does elsewhere.

        Args:
            key: The key's name.
            action: The id of the action that is bound to it here, if any.
        """
        ...


class KeyQueue:
    """Hands out a key only when the one before it has passed through every widget above its own."""

    def __init__(
        self,
        app: App[None],
        writes: Writes,
        send: Callable[[events.Key], Awaitable[None]],
        nothing_bound: Callable[[events.Key], None],
    ) -> None:
        """Begin with no key; the first is handed out after ``let_in``.

        Args:
            app: What keys are handed to.
            writes: What some keys wait for.
            send: Sends a key on its way through the widgets.
            nothing_bound: Says that a key does nothing here.
        """
        self.input_priority = InputPriority()
        """By which threads know when to stand back."""
        self.taken = 0
        """How many keys have been handed out."""
        self.waits_for_writes = False
        """Whether the next key waits until something is written."""
        self._app = app
        self._writes = writes
        self._send = send
        self._nothing_bound = nothing_bound
        self._held: deque[events.Key] = deque()
        self._busy = True
        self._number = 0
        self._round: list[DOMNode] = []

    @property
    def idle(self) -> bool:
        """Whether every key has done its work."""
        return not self._busy and not self._held

    def let_in(self) -> None:
        """Hand out the keys that were pressed before the first screen was open, and all others."""
        self._app.call_later(self._hand_out)

    async def take(self, event: events.Key) -> None:
        """Hand out a key, or hold it back while another is on its way."""
        self._held.append(event)
        self.input_priority.begin()
        if not self._busy:
            await self._hand_out()
        else:
            self._go_round()

    def hand_back(self, event: events.Key) -> None:
        """Take back a key that was meant for what is under the screen that had it; it is next."""
        self._held.appendleft(events.Key(event.key, event.character))

    def writes_changed(self) -> None:
        """Something was written: let the keys in that waited for it."""
        if self.waits_for_writes:
            self.waits_for_writes = False
            self._app.call_later(self._hand_out)

    def _must_wait(self, key: str) -> bool:
        """Whether a key waits until what was asked for before it is saved."""
        holds = self._writes.holds
        if holds is not HeldKeys.MOST:
            return holds is HeldKeys.ALL
        screen = self._app.screen
        bound = None if screen.is_modal else screen.active_bindings.get(key)
        return bound is None or not bound.binding.action.startswith(GO_ON)

    async def _hand_out(self) -> None:
        self._busy = bool(self._held)
        if not self._held:
            self.input_priority.end()
            return
        if self._must_wait(self._held[0].key):
            self.waits_for_writes = True
            self.input_priority.end()
            return
        self._number += 1
        self.taken += 1
        screen = self._app.screen
        event, target = self._held.popleft(), self._app.focused or screen
        if self._is_answer(event.key, target):
            pass
        elif isinstance(target, VirtualLines) and not isinstance(screen, ModalScreen):
            # A list takes no key for itself, nor does anything that it stands in: what is bound to
            # the key is done here, where it would be done after a turn in the queue of each.
            if not await self._do_bound(event.key):
                self._nothing_bound(event)
        else:
            await self._send(event)
        self._app.set_timer(PATIENCE, partial(self._passed, self._number))
        self._round = [*target.ancestors_with_self] * 2
        if self._held:
            self._go_round()
        else:
            # What the key has changed is drawn first, unless another key comes meanwhile.
            self._app.screen.call_after_refresh(self._let_it_be_written)

    async def _do_bound(self, key: str) -> bool:
        """Do what is bound to a key; False where nothing is."""
        bound = self._app.screen.active_bindings.get(key)
        if bound is None or not bound.enabled:
            return False
        return await self._app.run_action(bound.binding.action, bound.node)

    def _is_answer(self, key: str, target: DOMNode) -> bool:
        """Whether a question in the last line has taken the key, if only to let it do nothing."""
        screen = self._app.screen
        if not isinstance(screen, AsksInLastLine) or not screen.asks or isinstance(target, Input):
            return False
        bound = screen.active_bindings.get(key)
        if bound is None:
            return screen.take_key(key, None)
        return not bound.binding.priority and screen.take_key(key, bound.binding.id)

    def _let_it_be_written(self) -> None:
        # The thread that writes to the terminal only has its turn once this one waits.
        loop = get_running_loop()
        loop.call_later(WRITING, self._app.call_later, self._go_round)

    def _go_round(self) -> None:
        """Follow the key that was handed out last, where that is not being done yet."""
        path, self._round = self._round, []
        if path:
            self._follow(self._number, path)

    def _follow(self, number: int, path: list[DOMNode]) -> None:
        # A message behind the key, in each queue that the key bubbles through, arrives after it;
        # going round again, it comes after what a widget has posted for the key, such as the
        # Submitted with which Enter leaves a text field.
        while path:
            node = path.pop(0)
            if node.call_later(self._follow, number, path):
                return
        self._passed(number)

    def _passed(self, number: int) -> None:
        if self._busy and number == self._number:
            self._number += 1
            self._app.call_later(self._hand_out)
