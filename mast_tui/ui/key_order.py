"""Keys one after the other: none is handed out before the one before it has done its work.

Textual hands a key to the widget that has the focus at that moment, and several may be on their
way at once. In a burst (a fast typist, a slow line, a paste) ``/`` and ``1 3`` would then go to the
same widget: the search line would open, and a label be set.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections import deque
from collections.abc import Coroutine
from functools import partial
from typing import Final, Protocol, runtime_checkable

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input

from mast_tui.ui.input_priority import Courtesy
from mast_tui.ui.services.workspace_writer import Holds, Writes
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines

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


class KeysInOrder(App[None]):
    """Forwards a key only when the one before it has passed through every widget above its own."""

    def __init__(self) -> None:
        super().__init__()
        self.courtesy = Courtesy()
        """By which threads know when to stand back."""
        self.writes = Writes(self._writes_changed, partial(self.call_later, _raise))
        """What the screens write to the workspace, in order."""
        self.keys_taken = 0
        """How many keys have been handed out."""
        self._held: deque[events.Key] = deque()
        self._busy = True
        self._number = 0
        self._round: list[DOMNode] = []
        self._waits_for_writes = False
        self._said = ""

    @property
    def keys_on_their_way(self) -> bool:
        """Whether a key has not done its work yet, or something is still being written."""
        return self._busy or bool(self._held) or not self.writes.idle

    def let_keys_in(self) -> None:
        """Hand out the keys that were pressed before the first screen was open, and all others."""
        self.call_later(self._hand_out)

    def _post_message(self, message: Message) -> Coroutine[object, object, bool]:
        # The driver's thread hands over what was typed: no sooner can one know of a key.
        if isinstance(message, events.Key):
            self.courtesy.begin()
        return super()._post_message(message)

    async def on_event(self, event: events.Event) -> None:
        """Hold a key back while another is on its way."""
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
            return
        self._held.append(event)
        self.courtesy.begin()
        if not self._busy:
            await self._hand_out()
        else:
            self._go_round()

    def hand_back(self, event: events.Key) -> None:
        """Take back a key that was meant for what is under the screen that had it; it is next."""
        self._held.appendleft(events.Key(event.key, event.character))

    def _writes_changed(self) -> None:
        """Something was written, or takes long: say so, and let the keys in that waited for it."""
        if self.writes.words != self._said:
            self._said = self.writes.words
            for screen in self.screen_stack:
                for bar in screen.query(HintBar):
                    bar.refresh()
        if self._waits_for_writes:
            self._waits_for_writes = False
            self.call_later(self._hand_out)

    def _must_wait(self, key: str) -> bool:
        """Whether a key waits until what was asked for before it is saved."""
        holds = self.writes.holds
        if holds is not Holds.MOST:
            return holds is Holds.ALL
        bound = None if self.screen.is_modal else self.screen.active_bindings.get(key)
        return bound is None or not bound.binding.action.startswith(GO_ON)

    async def _hand_out(self) -> None:
        self._busy = bool(self._held)
        if not self._held:
            self.courtesy.end()
            return
        if self._must_wait(self._held[0].key):
            self._waits_for_writes = True
            self.courtesy.end()
            return
        self._number += 1
        self.keys_taken += 1
        event, target = self._held.popleft(), self.focused or self.screen
        if self._is_answer(event.key, target):
            pass
        elif isinstance(target, VirtualLines) and not isinstance(self.screen, ModalScreen):
            # A list takes no key for itself, nor does anything that it stands in: what is bound to
            # the key is done here, where it would be done after a turn in the queue of each.
            if not await self._check_bindings(event.key, priority=True):
                await self._check_bindings(event.key)
        else:
            await super().on_event(event)
        self.set_timer(PATIENCE, partial(self._passed, self._number))
        self._round = [*target.ancestors_with_self] * 2
        if self._held:
            self._go_round()
        else:
            # What the key has changed is drawn first, unless another key comes meanwhile.
            self.screen.call_after_refresh(self._let_it_be_written)

    def _is_answer(self, key: str, target: DOMNode) -> bool:
        """Whether a question in the last line has taken the key, if only to let it do nothing."""
        screen = self.screen
        if not isinstance(screen, AsksInLastLine) or not screen.asks or isinstance(target, Input):
            return False
        bound = screen.active_bindings.get(key)
        if bound is None:
            return screen.take_key(key, None)
        return not bound.binding.priority and screen.take_key(key, bound.binding.id)

    def _let_it_be_written(self) -> None:
        # The thread that writes to the terminal only has its turn once this one waits.
        loop = get_running_loop()
        loop.call_later(WRITING, self.call_later, self._go_round)

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
            self.call_later(self._hand_out)


def _raise(error: BaseException) -> None:
    """Where the app deals with bugs."""
    raise error
