"""What is written to a workspace: one piece of work after the other, and how each may wait.

Whatever changes a workspace is plain code, top to bottom. In a thread, or in a program without an
event loop, it waits where it stands: for the disk, or for another program that writes. In the app
``Writes`` runs it as a ``Command``: on the event loop's own thread, so that nothing it touches
changes under it, and where it would wait it is set aside (a greenlet) until what it waits for is
there. Meanwhile the screen goes on drawing.
"""

from __future__ import annotations

import asyncio
from asyncio import Future, TimerHandle, get_running_loop
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, wait
from contextvars import copy_context
from enum import IntEnum
from functools import partial, wraps
from time import monotonic, sleep
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from greenlet import getcurrent, greenlet

Result = TypeVar("Result")
Answer = TypeVar("Answer")
P = ParamSpec("P")

PATIENCE: Final = 30.0
"""Seconds after which whoever waits for another program that writes is told that it was in vain."""

SAID_AFTER: Final = 0.3
"""Seconds after which it is said that something waits to be written."""

UNNOTICED: Final = 0.02
"""Seconds for which the event loop may be held up, about one picture on the screen."""


class Command(greenlet):  # type: ignore[misc]  # greenlet comes without types
    """A piece of work on the event loop's thread that may wait without holding it up.

    ``waits_for_others``: it waits for another program that writes, not for the disk. ``on_server``:
    whatever it waits for is a server's affair.
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
        self.on_server = False
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


def current_caller() -> object:
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


def blocks_event_loop() -> bool:
    """Whether nothing is drawn and no key taken while the caller waits."""
    if Command.running() is not None:
        return False
    try:
        get_running_loop()
    except RuntimeError:
        return False
    return True


def run_blocking(thread: Executor, step: Callable[[], Result]) -> Result:
    """Do what blocks: in a command on ``thread``, else where the caller is; its outcome."""
    command = Command.running()
    if command is None:
        return step()
    future = thread.submit(step)
    # What comes of it is mostly there at once, and is then drawn together with what the key did.
    done, _ = wait([future], UNNOTICED)
    return future.result() if done else command.wait(asyncio.wrap_future(future))


class HeldKeys(IntEnum):
    """Which keys wait until something is written."""

    NOTHING = 0
    """None: it was not asked for by a key, and nobody waits for it."""
    MOST = 1
    """All but moves and the digits of labels: what it shows changes none of what those act on."""
    ALL = 2
    """All: the cursor, the screen or what a key acts on may be another one afterwards."""


class _Write:
    def __init__(self, work: Callable[[], object], holds: HeldKeys) -> None:
        self.work, self.holds = work, holds
        self.command: Command | None = None


class Writes:
    """Work that writes to the workspace, in the order in which it was asked for.

    A piece of work is plain code on the event loop's thread. Where it waits, for the disk or for
    another program that writes, the loop goes on; the next piece begins when it is done. Where
    nothing has to wait it is done at once.
    """

    def __init__(
        self, changed: Callable[[], object], failed: Callable[[BaseException], object]
    ) -> None:
        """Begin with nothing to write.

        Args:
            changed: Called when keys may be let through that were not, or ``words`` are others.
            failed: Called with what a piece of work raised, which is a bug.
        """
        self._changed = changed
        self._failed = failed
        self._queue: deque[_Write] = deque()
        self._running: _Write | None = None
        self._soon: TimerHandle | None = None
        self._slow = False
        self._asking = False

    @property
    def idle(self) -> bool:
        """Whether everything that was asked for is done."""
        return self._running is None and not self._queue

    @property
    def holds(self) -> HeldKeys:
        """Which keys have to wait now."""
        if self._asking:
            return HeldKeys.NOTHING
        writes = (self._running, *self._queue) if self._running else self._queue
        return max((one.holds for one in writes if one is not None), default=HeldKeys.NOTHING)

    @property
    def asked_for(self) -> bool:
        """Whether a key waits for the piece of work at hand; else nobody has asked for it."""
        return self._running is not None and self._running.holds > HeldKeys.NOTHING

    @property
    def words(self) -> str:
        """What is waited for, where that takes long; for the last line of the screen."""
        if not self._slow or self._running is None or self._asking:
            return ""
        command = self._running.command
        others = command is not None and command.waits_for_others
        what = "another program that writes" if others else "the disk"
        if command is not None and command.on_server:
            what = "the server"
        more = sum(one.holds > HeldKeys.NOTHING for one in (self._running, *self._queue))
        count = f" · {more} change{'' if more == 1 else 's'} not saved" if more else ""
        return f"Waiting for {what}{count}"

    @property
    def running(self) -> Command | None:
        """The piece of work that the caller is a part of, if any."""
        return Command.running()

    def do(self, work: Callable[[], object], holds: HeldKeys = HeldKeys.ALL) -> None:
        """Do ``work`` when all that was asked for before is done; at once if it is a part of that.

        Args:
            work: What to do. It says itself what came of it, also where it cannot be done.
            holds: Which keys wait for it.
        """
        if self.running is not None:
            work()
            return
        self._queue.append(_Write(work, holds))
        if self._running is None:
            self._next()

    def ask(self, question: Callable[[Callable[[Answer], None]], None]) -> Answer:
        """Ask the person something in the middle of a piece of work; keys go to the question.

        Args:
            question: Asks, and gives the answer to what it is called with, once.

        Returns:
            The answer, when it has come.
        """
        command = self.running
        assert command is not None, "only a piece of work can wait for an answer"
        answered: Future[Answer] = get_running_loop().create_future()
        self._asking = True
        self._changed()
        try:
            question(answered.set_result)
            return command.wait(answered)
        finally:
            self._asking = False

    def _next(self) -> None:
        while self._queue and self._running is None:
            write = self._running = self._queue.popleft()
            write.command = Command(write.work, self._over)
            write.command.start()
        if self._running is not None and self._soon is None:
            self._soon = get_running_loop().call_later(SAID_AFTER, self._say_so)

    def _over(self, error: BaseException | None) -> None:
        self._running = None
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self._slow = False
        if error is not None:
            self._failed(error)
        if self._queue:
            # What has waited for this one has waited long enough to be told of at once.
            get_running_loop().call_soon(self._next)
        self._changed()

    def _say_so(self) -> None:
        self._soon = None
        if self._running is not None:
            self._slow = True
            self._changed()
            self._soon = get_running_loop().call_later(SAID_AFTER, self._say_so)


class _HasWrites(Protocol):
    @property
    def writes(self) -> Writes: ...


Writer = TypeVar("Writer", bound=_HasWrites)


def writes(
    method: Callable[Concatenate[Writer, P], None],
) -> Callable[Concatenate[Writer, P], None]:
    """Have a method done as a piece of work that writes, with all keys waiting for it."""

    @wraps(method)
    def in_turn(self: Writer, /, *args: P.args, **kwargs: P.kwargs) -> None:
        self.writes.do(partial(method, self, *args, **kwargs))

    return in_turn
