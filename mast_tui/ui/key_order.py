"""Keys one after the other: none is handed out before the one before it has done its work.

Textual hands a key to the widget that has the focus at that moment, and several may be on their
way at once. In a burst (a fast typist, a slow line, a paste) ``/`` and ``1 3`` would then go to the
same widget: the search line would open, and a label be set.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Final

from textual import events
from textual.app import App
from textual.dom import DOMNode

PATIENCE: Final = 0.5
"""Seconds after which a key whose widget has gone away no longer holds up the next."""


class KeysInOrder(App[None]):
    """Forwards a key only when the one before it has passed through every widget above its own."""

    def __init__(self) -> None:
        super().__init__()
        self._held: deque[events.Key] = deque()
        self._busy = True
        self._number = 0

    @property
    def keys_on_their_way(self) -> bool:
        """Whether a key has not done its work yet."""
        return self._busy or bool(self._held)

    def let_keys_in(self) -> None:
        """Hand out the keys that were pressed before the first screen was open, and all others."""
        self.call_later(self._hand_out)

    async def on_event(self, event: events.Event) -> None:
        """Hold a key back while another is on its way."""
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
            return
        self._held.append(event)
        if not self._busy:
            await self._hand_out()

    async def _hand_out(self) -> None:
        self._busy = bool(self._held)
        if not self._held:
            return
        self._number += 1
        target = self.focused or self.screen
        await super().on_event(self._held.popleft())
        self.set_timer(PATIENCE, partial(self._passed, self._number))
        self._follow(self._number, [*target.ancestors_with_self] * 2)

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
