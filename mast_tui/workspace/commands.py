"""How a command waits for the disk, or for another program: a thread sleeps, an event loop goes on.

Whatever changes a workspace is written as plain code, top to bottom. In a thread, or in a program
without an event loop, it waits where it stands. In the app it runs as a ``Command``: on the event
loop's own thread, so that nothing it touches changes under it, and where it would wait it is set
aside (a greenlet) until what it waits for is there. Meanwhile the screen goes on drawing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, wait
from contextvars import copy_context
from time import monotonic, sleep
from typing import Final, TypeVar, cast

from greenlet import getcurrent, greenlet

Result = TypeVar("Result")

PATIENCE: Final = 30.0
"""Seconds after which whoever waits for another program that writes is told that it was in vain."""


UNNOTICED: Final = 0.02
"""Seconds for which the event loop may be held up, about one picture on the screen."""


class Command(greenlet):  # type: ignore[misc]  # greenlet comes without types
    """A piece of work on the event loop's thread that may wait without holding it up.

    ``waits_for_others``: it waits for another program that writes, not for the disk.
    """

    def __init__(self, work: Callable[[], object], over: Callable[[BaseException | None], None]):
        """Prepare ``work``; ``start`` begins it.

        Args:
            work: What to do; its outcome is its own affair.
            over: Called once it is done, with what it raised or None.
        """
        super().__init__(work)
        self.gr_context = copy_context()
        self.waits_for_others = False
        self.deadline = monotonic() + PATIENCE
        self._over = over

    @staticmethod
    def running() -> Command | None:
        """The command that the caller is a part of, if any."""
        here = getcurrent()
        return here if isinstance(here, Command) else None

    def start(self) -> None:
        """Run up to where it first waits, or to its end."""
        self._go_on(None)

    def _go_on(self, awaited: asyncio.Future[object] | None) -> None:
        try:
            if awaited is None:
                following = self.switch()
            elif awaited.cancelled():
                following = self.throw(asyncio.CancelledError())
            elif (error := awaited.exception()) is not None:
                following = self.throw(error)
            else:
                following = self.switch(awaited.result())
        except BaseException as error:
            self._over(error)
            if not isinstance(error, Exception):
                raise
            return
        if self.dead:
            self._over(None)
        else:
            following.add_done_callback(self._go_on)

    def wait(self, future: asyncio.Future[Result]) -> Result:
        """Called from within: give the loop back until ``future`` is done; its outcome."""
        return cast(Result, self.parent.switch(future))


def whoever_runs() -> object:
    """What tells one caller from another: a command, or else a thread."""
    return getcurrent()


def deadline() -> float:
    """Until when (``time.monotonic``) the caller waits for another program that writes.

    A command that had to wait for others before it has waited since it was asked for.
    """
    command = Command.running()
    return monotonic() + PATIENCE if command is None else command.deadline


def pause(seconds: float) -> None:
    """Wait a moment for another program or thread that writes."""
    command = Command.running()
    if command is None:
        sleep(seconds)
        return
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(seconds, _end_pause, over)
    command.waits_for_others = True
    try:
        command.wait(over)
    finally:
        command.waits_for_others = False


def _end_pause(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


def beside_the_loop(thread: Executor, step: Callable[[], Result]) -> Result:
    """Do what blocks: in a command on ``thread``, else where the caller is; its outcome."""
    command = Command.running()
    if command is None:
        return step()
    future = thread.submit(step)
    # What comes of it is mostly there at once, and is then drawn together with what the key did.
    done, _ = wait([future], UNNOTICED)
    return future.result() if done else command.wait(asyncio.wrap_future(future))
