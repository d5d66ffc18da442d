"""The order in which the app reads and writes a workspace, and the thread in which it does so.

Ownership: screens, sessions and everything else that is shown belong to the event loop. What may
wait for the disk, another program or a server is a step: a plain function that gets all it needs
when it is made, and returns its result. ``Writes.run`` carries it out in the one writer thread. The
loop goes on meanwhile, and applies the result afterwards, so that nothing changes while it is drawn
and nothing is shown before it is on disk.

A piece of work is a coroutine of such steps and of updates of the screen between them.
``Writes.do`` carries out one piece after the other.

In a thread of its own, or in a program without an event loop, a step simply waits.
"""

from __future__ import annotations

import asyncio
from asyncio import Future, create_task, get_running_loop
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial, wraps
from time import monotonic, sleep
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from mast_tui.counts import counted
from mast_tui.errors import WorkspaceGone

Result = TypeVar("Result")
Answer = TypeVar("Answer")
P = ParamSpec("P")

PATIENCE: Final = 30.0
"""Seconds after which a write that waits for another program fails."""

REPORTED_AFTER: Final = 0.3
"""Seconds after which the last line of the screen shows the reason for a wait."""

FRAME: Final = 0.02
"""Seconds for which drawing and the event loop wait for work, about one frame on the screen."""


@dataclass(slots=True)
class WriteStatus:
    """The state of a piece of work that the app carries out: its deadline and what it waits for."""

    deadline: float = field(default_factory=lambda: monotonic() + PATIENCE)
    waits_for_others: bool = False
    """True while it waits for another program that writes, and not for the disk."""
    on_server: bool = False
    """True if everything that it waits for is the server's."""


_STATUS: Final = ContextVar[WriteStatus | None]("write_status", default=None)


def write_status() -> WriteStatus | None:
    """Return the status of the app's piece of work that the calling thread carries out, if any."""
    return _STATUS.get()


def deadline() -> float:
    """Return the time (``time.monotonic``) until which the caller waits for another writer.

    All steps of a piece of work share one deadline. Other callers wait ``PATIENCE`` from now.
    """
    status = write_status()
    return monotonic() + PATIENCE if status is None else status.deadline


def pause(seconds: float) -> None:
    """Sleep until another program or thread may have written; the status shows the wait."""
    status = write_status()
    if status is not None:
        status.waits_for_others = True
    try:
        sleep(seconds)
    finally:
        if status is not None:
            status.waits_for_others = False


class HeldKeys(IntEnum):
    """The keys that wait until a piece of work is done."""

    NOTHING = 0
    """No keys, since the user has not asked for the work and does not wait for it."""
    MOST = 1
    """All keys but moves and the digits of labels, whose targets the work does not change."""
    ALL = 2
    """All keys, since the work may change the cursor, the screen or the target of a key."""


@dataclass(frozen=True, slots=True)
class _WorkPiece:
    """A piece of work, the keys that wait for it, and the context of its caller."""

    work: Callable[[], Coroutine[Any, Any, object]]
    holds: HeldKeys
    context: Context


class Writes:
    """The queue of pieces of work, and the writer thread.

    ``when_file_gone`` is called if the workspace's file is gone. It returns True if there is
    another file now, in which the step is repeated.
    """

    def __init__(
        self,
        changed: Callable[[], object],
        failed: Callable[[BaseException], object],
        hold_drawing: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Begin with nothing to write.

        Args:
            changed: Called when ``holds`` or ``report`` may have changed.
            failed: Called with the exception of a piece of work, which is a bug.
            hold_drawing: Returns a context in which nothing is drawn. All changes within it are
                drawn at its end, in one frame.
        """
        self.when_file_gone: Callable[[], Awaitable[bool]] | None = None
        self._changed = changed
        self._failed = failed
        self._hold_drawing = hold_drawing
        self._held_drawing = ExitStack()
        """Ends the hold that began with the first piece in an empty queue."""
        self._thread = ThreadPoolExecutor(1, "workspace-writer")
        self._queue: deque[_WorkPiece] = deque()
        self._running: _WorkPiece | None = None
        self._status = WriteStatus()
        """The status of the running piece."""
        self._loop_task: asyncio.Task[None] | None = None
        self._is_slow = False
        """True once the running piece has taken so long that ``report`` describes it."""
        self._is_asking = False
        """True while the annotator is asked a question, for whose answer no key is held."""

    @property
    def idle(self) -> bool:
        """True if no piece of work runs or waits."""
        return self._running is None and not self._queue

    @property
    def holds(self) -> HeldKeys:
        """The keys that have to wait now."""
        if self._is_asking:
            return HeldKeys.NOTHING
        return max((piece.holds for piece in self._unfinished_pieces), default=HeldKeys.NOTHING)

    @property
    def asked_for(self) -> bool:
        """True if a key has requested the piece of work that is carried out now."""
        return self._running is not None and self._running.holds > HeldKeys.NOTHING

    @property
    def report(self) -> str:
        """A text for the bottom line on what the app waits for; empty unless it takes long."""
        if not self._is_slow or self._running is None or self._is_asking:
            return ""
        status = self._status
        reason = "another program that is writing" if status.waits_for_others else "the disk"
        if status.on_server:
            reason = "the server"
        unsaved_count = sum(piece.holds > HeldKeys.NOTHING for piece in self._unfinished_pieces)
        unsaved_text = f" · {counted(unsaved_count, 'change')} not saved" if unsaved_count else ""
        return f"Waiting for {reason}{unsaved_text}"

    @property
    def _unfinished_pieces(self) -> tuple[_WorkPiece, ...]:
        """The piece that is carried out, and the queued pieces."""
        running = () if self._running is None else (self._running,)
        return (*running, *self._queue)

    def do(
        self, work: Callable[[], Coroutine[Any, Any, object]], holds: HeldKeys = HeldKeys.ALL
    ) -> None:
        """Queue a piece of work, which is carried out after all earlier pieces.

        Args:
            work: The piece; it shows its result itself, and also its failure.
            holds: The keys that wait until the piece is done.
        """
        self._queue.append(_WorkPiece(work, holds, copy_context()))
        if self._loop_task is None:
            if holds > HeldKeys.NOTHING:
                # Most pieces end at once. Drawing waits for them, so that one frame shows the key
                # and the result. In two frames, a label took 56 ms instead of 20.
                self._held_drawing.enter_context(self._hold_drawing())
            self._loop_task = create_task(self._carry_out_all())

    async def run(self, step: Callable[[], Result]) -> Result:
        """Carry out a step in the writer thread, as a part of a piece of work.

        Args:
            step: Reads or writes the workspace. If the workspace's file is gone, the step has
                changed nothing, and is repeated if ``when_file_gone`` returns True.

        Returns:
            The result of the step.

        Raises:
            Exception: The step raised it.
        """
        assert self._running is not None, "only a piece of work uses the writer thread"
        while True:
            future = self._thread.submit(copy_context().run, _run_with_status, self._status, step)
            # Most steps end within a frame. The event loop waits for these, so that a change that
            # is queued while the app quits is on disk.
            done_futures, _ = wait([future], FRAME)
            try:
                return future.result() if done_futures else await asyncio.wrap_future(future)
            except WorkspaceGone:
                if self.when_file_gone is None or not await self.when_file_gone():
                    raise

    async def ask(self, question: Callable[[Callable[[Answer], None]], None]) -> Answer:
        """Ask the annotator a question within a piece of work, and wait for the answer.

        Meanwhile no key is held back for the piece of work, so that the annotator can answer.

        Args:
            question: Shows the question, and calls its argument once with the answer.

        Returns:
            The answer.
        """
        answered: Future[Answer] = get_running_loop().create_future()
        self._is_asking = True
        self._changed()
        try:
            question(answered.set_result)
            return await answered
        finally:
            self._is_asking = False

    async def _carry_out_all(self) -> None:
        """Carry out all queued pieces; report an exception of a piece, and go on with the next."""
        while self._queue:
            piece = self._running = self._queue.popleft()
            self._status = WriteStatus()
            task = create_task(piece.work(), context=piece.context)
            # Drawing is held for at most one frame, so that a quick piece is drawn with its key.
            with self._held_drawing:
                await asyncio.wait({task}, timeout=FRAME)
            while not (await asyncio.wait({task}, timeout=REPORTED_AFTER))[0]:
                self._is_slow = True
                self._changed()
            self._running = None
            self._is_slow = False
            if not self._queue:
                self._loop_task = None
            if not task.cancelled() and (error := task.exception()) is not None:
                self._failed(error)
            self._changed()


def _run_with_status(status: WriteStatus, step: Callable[[], Result]) -> Result:
    _STATUS.set(status)
    return step()


class _HasWrites(Protocol):
    @property
    def writes(self) -> Writes: ...


Writer = TypeVar("Writer", bound=_HasWrites)


def piece_of_work(
    method: Callable[Concatenate[Writer, P], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[Writer, P], None]:
    """Turn a coroutine method into a method that queues its work and returns at once.

    The keys that the user presses meanwhile are handled when the work is done.

    Args:
        method: A coroutine method of an object that has ``writes``.

    Returns:
        The method; pieces of work are carried out in the order of its calls.
    """

    @wraps(method)
    def in_turn(self: Writer, /, *args: P.args, **kwargs: P.kwargs) -> None:
        self.writes.do(partial(method, self, *args, **kwargs))

    return in_turn
