"""The order of keys, mouse events and pastes.

Textual sends each event straight to the message queue of a widget: a key to the widget with the
focus, a click to the widget under the pointer. Fast input could therefore overtake itself: after
``/``, the keys ``1 3`` would still set a label, or arrive as ``3 1``. So each event is delivered
only after the one before it was handled.
"""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop
from collections import deque
from time import monotonic
from typing import Final, TypeAlias

from textual import events
from textual.binding import ActiveBinding
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from mast_tui.ui.actions.registry import key_text
from mast_tui.ui.base_screen import MainScreen
from mast_tui.ui.context import context_of
from mast_tui.ui.textual_internals import TextualApp, active_binding
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.writes import HeldKeys

KEYS_FOLLOW: Final = 0.3
"""Seconds after an event in which another one is expected."""

InputEvent: TypeAlias = events.Key | events.MouseEvent | events.Paste

SCROLLING: Final = (
    events.MouseScrollDown,
    events.MouseScrollLeft,
    events.MouseScrollRight,
    events.MouseScrollUp,
)

WRITER_TURN: Final = 0.001
"""Seconds that the thread that writes to the terminal gets before the next event."""

ALLOWED_WHILE_SAVING: Final = ("move", "digit")
"""Prefixes of the actions that may run while a label is being saved. They do not depend on that
label.
"""

DRAWING_TIME: Final = 0.05
"""Seconds to wait for the screen to be drawn.

A screen that the event has closed is never drawn again.
"""

CHECK_INTERVAL: Final = 0.5
"""Seconds between two checks that the widget that handles an event still exists."""


class QueuedInputApp(TextualApp):
    """An app that handles keys, mouse events and pastes one after another."""

    def __init__(self) -> None:
        super().__init__()
        self.input_queue = InputQueue(self)

    async def on_event(self, event: events.Event) -> None:
        """Put keys, mouse events and pastes into the queue; handle other events at once."""
        if isinstance(event, InputEvent) and not event.is_forwarded:
            await self.input_queue.put(event)
        else:
            await self.deliver(event)

    async def deliver(self, event: events.Event) -> None:
        """Handle an event as Textual does."""
        await super().on_event(event)


class InputQueue:
    """The keys, mouse events and pastes that are not handled yet."""

    def __init__(self, app: QueuedInputApp) -> None:
        """Begin with an empty queue that delivers nothing before ``open`` is called."""
        self.delivered_count = 0
        """The number of keys, clicks and pastes delivered so far."""
        self.blocked = False
        """Whether the next event waits until something is saved or read."""
        self._app = context_of(app)
        self._waiting: deque[InputEvent] = deque()
        self._busy = True
        """Whether an event is being handled, or the queue is not open yet."""
        self._step_number = 0
        """A number that changes when an event is delivered, and when it is handled."""
        self._path_of_last_event: list[DOMNode] = []
        """The widgets with the message queues of the last event; empty once the queue waits for
        them.
        """
        self._known_screen: Screen[object] | None = None
        """The last screen that is known to be mounted."""
        self._unread_screen: Screen[object] | None = None
        """The screen with the content that the next event waits for."""
        self._check_timer: TimerHandle | None = None
        self._last_event_time = -KEYS_FOLLOW  # no event has come yet, so ``keys_come`` is False

    @property
    def keys_come(self) -> bool:
        """True if an event has come just now, so that another may follow."""
        return monotonic() - self._last_event_time < KEYS_FOLLOW

    @property
    def idle(self) -> bool:
        """True if every event that has arrived is handled."""
        return not self._busy and not self._waiting

    def open(self) -> None:
        """Deliver the events that have arrived before the first screen, and all later ones."""
        self._deliver_next_after(self._step_number, [])

    async def put(self, event: InputEvent) -> None:
        """Deliver an event, or keep it until the events before it are handled.

        A move of the mouse is not kept, unless another event is being handled. Events that wait for
        the content of a screen are dropped when an event comes that does not need the content.
        """
        is_before_start = self._known_screen is None
        if is_before_start and isinstance(event, events.Key) and event.key == "ctrl+j":
            # Before the program set up the terminal, the terminal has turned Enter into this key.
            event = events.Key("enter", "\r")
        if isinstance(event, events.MouseMove) and (self.idle or self.blocked):
            await self._app.deliver(event)
            return
        if self._unread_screen is not None and not self._awaits_same_content(event):
            # The user or a dialog has gone on, so no event waits for the content now.
            self._waiting.clear()
            self._unread_screen = None
            self.blocked = False
            self._busy = False
        self._waiting.append(event)
        self._last_event_time = monotonic()
        if not self._busy:
            await self._deliver_next()
        else:
            self._wait_for_last_event()

    def put_back(self, event: events.Key) -> None:
        """Put a key at the front of the queue, for the screen below the one that received it."""
        self._waiting.appendleft(events.Key(event.key, event.character))

    def resume(self) -> None:
        """Deliver the waiting event, after something was saved or read.

        If a dialog has opened over the awaited content, all waiting events are dropped.
        """
        if not self.blocked:
            return
        self.blocked = False
        if self._is_interrupted():
            self._waiting.clear()
        self._unread_screen = None
        # Saving or reading may have opened a dialog. The dialog receives the next key.
        self._app.call_later(self._deliver_next_after, self._step_number, [])

    def _awaits_content(self, event: InputEvent, screen: Screen[object]) -> bool:
        """Check if an event needs content that the screen has not read yet."""
        if not isinstance(screen, MainScreen) or screen.has_all_content:
            return False
        if not isinstance(event, events.Key):
            return screen.awaits_content(action=None)
        active = active_binding(screen, event.key)
        if active is None:
            return screen.awaits_content(action=None)
        # Keys with priority, such as the one that quits, act on the app.
        if active.binding.priority:
            return False
        # While the user types into a line, letters run no actions.
        is_typed = isinstance(screen.focused, Input)
        return screen.awaits_content(None if is_typed else active.binding.id)

    def _awaits_same_content(self, event: InputEvent) -> bool:
        """Check if an event waits for the same content as the waiting events."""
        screen = self._app.screen
        return screen is self._unread_screen and self._awaits_content(event, screen)

    def _is_interrupted(self) -> bool:
        """Check if a dialog has opened while the next event still waits for content.

        A dialog that opens after the content was read is a result of the content, and receives the
        event.
        """
        unread_screen = self._unread_screen
        if unread_screen is None or self._app.screen is unread_screen:
            return False
        return self._awaits_content(self._waiting[0], unread_screen)

    def _must_wait(self, event: InputEvent) -> bool:
        """Check if an event must wait for content, or until earlier changes are saved."""
        if self._awaits_content(event, self._app.screen):
            return True
        held_keys = self._app.writes.holds
        if held_keys is HeldKeys.NOTHING:
            return False
        if isinstance(event, events.Key):
            if held_keys is HeldKeys.ALL:
                return True
            # With ``HeldKeys.MOST``, only actions run that do not depend on the work in progress.
            screen = self._app.screen
            active = None if screen.is_modal else active_binding(screen, event.key)
            return active is None or not active.binding.action.startswith(ALLOWED_WHILE_SAVING)
        return not isinstance(event, SCROLLING)

    async def _deliver_next(self) -> None:
        """Deliver the next event and the mouse moves before it, unless the event must wait."""
        while self._waiting and isinstance(self._waiting[0], events.MouseMove):
            await self._app.deliver(self._waiting.popleft())
        self._busy = bool(self._waiting)
        if not self._waiting:
            return
        if self._must_wait(self._waiting[0]):
            self.blocked = True
            if self._awaits_content(self._waiting[0], self._app.screen):
                self._unread_screen = self._app.screen
            return
        target = await self._deliver(self._waiting.popleft())
        # The path is passed twice, see ``_deliver_next_after``.
        self._path_of_last_event = [*target.ancestors_with_self] * 2
        if self._waiting:
            self._wait_for_last_event()
        else:
            self._wait_for_drawing()

    async def _deliver(self, event: InputEvent) -> DOMNode:
        """Deliver an event, and return the widget that receives it."""
        self._step_number += 1
        if not isinstance(event, SCROLLING):
            self.delivered_count += 1
        target = self._target_of(event)
        if isinstance(event, events.Key):
            screen = self._app.screen
            if isinstance(screen, MainScreen):
                screen.hints.forget_message()
            await self._deliver_key(event, target)
        else:
            await self._app.deliver(event)
        return target

    def _target_of(self, event: InputEvent) -> DOMNode:
        """Return the widget to which Textual sends an event."""
        if not isinstance(event, events.MouseEvent):
            return self._app.focused or self._app.screen
        if self._app.mouse_captured is not None:
            return self._app.mouse_captured
        try:
            widget, _ = self._app.screen.get_widget_at(event.x, event.y)
        except NoWidget:
            return self._app.screen
        return widget

    async def _deliver_key(self, event: events.Key, target: DOMNode) -> None:
        """Give a key to the question in the last line, or else to its action or its widget."""
        screen = self._app.screen
        # A line to type on handles its keys itself.
        active = None if isinstance(target, Input) else active_binding(screen, event.key)
        if self._offer_as_answer(_key_name(event), active, target):
            return
        if not isinstance(target, VirtualLines) or isinstance(screen, ModalScreen):
            await self._app.deliver(event)
            return
        # Outside dialogs, lists and their containers handle no keys themselves. Running the action
        # here avoids their message queues.
        is_done = active is not None and await self._app.run_action(
            active.binding.action, active.node
        )
        if not is_done:
            self._nothing_bound(event)

    def _nothing_bound(self, event: events.Key) -> None:
        """Say in the last line that a key does nothing here."""
        self._app.answer(
            f"{key_text(_key_name(event))} does nothing here · "
            f"{self._app.key_of('everywhere.help')} shows the keys"
        )

    def _offer_as_answer(self, key: str, active: ActiveBinding | None, target: DOMNode) -> bool:
        """Offer a key to the screen as the answer to its question; return whether it is an answer.

        ``active`` is the binding of the key, if any.
        """
        screen = self._app.screen
        if not isinstance(screen, MainScreen) or not screen.asks or isinstance(target, Input):
            return False
        if active is None:
            return screen.take_key(key, action=None)
        # A key with priority, such as that of help, keeps its effect.
        return not active.binding.priority and screen.take_key(key, active.binding.id)

    def _wait_for_drawing(self) -> None:
        """Let the screen draw the effect of the last event, unless another event comes before."""
        self._app.screen.call_after_refresh(self._wait_for_last_event_after_drawing)
        self._check_timer = get_running_loop().call_later(DRAWING_TIME, self._wait_for_last_event)

    def _wait_for_last_event_after_drawing(self) -> None:
        get_running_loop().call_later(WRITER_TURN, self._app.call_later, self._wait_for_last_event)

    def _wait_for_last_event(self) -> None:
        """Wait until the last event is handled, unless the queue already waits for it."""
        path = self._path_of_last_event
        self._path_of_last_event = []
        if path:
            self._deliver_next_after(self._step_number, path)

    def _deliver_next_after(self, number: int, path: list[DOMNode]) -> None:
        """Wait until an event is handled, then deliver the next event.

        A callback passes through the same message queues as the event. Each queue calls it after
        the messages before it, so after the event. It passes the queues a second time, because
        handling the event may post messages such as ``Input.Submitted``.

        Args:
            number: The number of the step that is awaited. If it is no longer the present step,
                this call does nothing.
            path: The widgets with the queues that are still to be passed.
        """
        if number != self._step_number:
            return
        if self._check_timer is not None:
            self._check_timer.cancel()
            self._check_timer = None
        screen = self._app.screen
        if screen is not self._known_screen:
            # Until a screen is mounted, it has no rows to act on.
            self._known_screen = screen
            path.append(screen)
        while path:
            node = path.pop(0)
            if node.call_later(self._deliver_next_after, number, path):
                self._wait_for(node, number, path)
                return
        self._step_number += 1
        self._app.call_later(self._deliver_next)

    def _wait_for(self, node: DOMNode, number: int, path: list[DOMNode]) -> None:
        """Continue with the next widget if this one is removed and never calls back."""

        def check() -> None:
            if node.is_running or node.is_attached:
                self._wait_for(node, number, path)
            else:
                self._deliver_next_after(number, path)

        self._check_timer = get_running_loop().call_later(CHECK_INTERVAL, check)


def _key_name(event: events.Key) -> str:
    """Return the character of a key, or the key's name if it has no visible character."""
    character = (event.character or "").strip()
    return character if character and event.is_printable else event.key
