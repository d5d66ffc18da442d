"""The queue of the app's work on a workspace, and the thread that reads and writes it.

Screens and sessions belong to the event loop. A step is a plain function that may wait for the
disk, another program or a server. ``Writes.run`` executes a step in the one writer thread. The
event loop goes on meanwhile and shows the result afterwards.

A piece of work is a coroutine of steps, with updates of the screen between them. ``Writes.do``
executes the pieces one after the other.
"""

from __future__ import annotations

import asyncio
from asyncio import Future, create_task, get_running_loop
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from contextvars import Context, ContextVar, copy_context
from enum import IntEnum
from functools import partial, wraps
from time import monotonic, sleep
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from msgspec import Struct, field

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
"""Seconds for which drawing and the event loop wait for work: about one frame."""


class WriteStatus(Struct):
    """The deadline of a running piece of work, and the things that it waits for."""

    deadline: float = field(default_factory=lambda: monotonic() + PATIENCE)
    waits_for_others: bool = False
    """True while it waits for another program that writes."""
    on_server: bool = False
    """True if the workspace is on a server."""


_STATUS: Final = ContextVar[WriteStatus | None]("write_status", default=None)


def write_status() -> WriteStatus | None:
    """Return the status of the piece of work in the calling thread; None outside of the app."""
    return _STATUS.get()


def deadline() -> float:
    """Return the time (``time.monotonic``) until which the caller waits for another writer.

    All steps of a piece of work share one deadline.
    """
    status = write_status()
    return monotonic() + PATIENCE if status is None else status.deadline


def pause(seconds: float) -> None:
    """Sleep while another program or thread writes; the status shows the wait."""
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
    """No keys, since the user has not asked for the work."""
    MOST = 1
    """All keys except moves and the digits of labels, which the work does not affect."""
    ALL = 2
    """All keys, since the work may change the cursor, the screen or the effect of a key."""


class _WorkPiece(Struct, frozen=True):
    """A piece of work, the keys that wait for it, and the context of its caller."""

    work: Callable[[], Coroutine[Any, Any, object]]
    holds: HeldKeys
    context: Context


class Writes:
    """The queue of pieces of work, and the writer thread.

    ``when_file_gone`` is called if the file of the workspace is gone. It returns True if another
    file replaces it, so that the step can be repeated.
    """

    def __init__(
        self,
        changed: Callable[[], object],
        failed: Callable[[BaseException], object],
        hold_drawing: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Begin with an empty queue.

        Args:
            changed: Called when ``holds`` or ``report`` may have changed.
            failed: Called with an unexpected exception of a piece of work.
            hold_drawing: Returns a context in which nothing is drawn until its end.
        """
        self.when_file_gone: Callable[[], Awaitable[bool]] | None = None
        self._changed = changed
        self._failed = failed
        self._hold_drawing = hold_drawing
        self._held_drawing = ExitStack()
        """The hold of drawing that began with the first piece in an empty queue."""
        self._thread = ThreadPoolExecutor(1, "workspace-writer")
        self._queue: deque[_WorkPiece] = deque()
        self._running: _WorkPiece | None = None
        self._status = WriteStatus()
        """The status of the running piece."""
        self._loop_task: asyncio.Task[None] | None = None
        """The task that executes the pieces, which asyncio itself does not keep."""
        self._is_slow = False
        """True once the running piece has taken longer than ``REPORTED_AFTER``."""
        self._is_asking = False
        """True while the annotator is asked a question and may press any key."""

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
        """True if a key has requested the running piece of work."""
        return self._running is not None and self._running.holds > HeldKeys.NOTHING

    @property
    def report(self) -> str:
        """A text about a long wait for the bottom line of the screen; empty if there is none."""
        if not self._is_slow or self._running is None or self._is_asking:
            return ""
        status = self._status
        reason = "another program is writing" if status.waits_for_others else "the disk is slow"
        if status.on_server:
            reason = "the server is slow"
        asked_count = sum(piece.holds > HeldKeys.NOTHING for piece in self._unfinished_pieces)
        asked_text = f" · {counted(asked_count, 'action')} not done yet" if asked_count else ""
        return f"Saving …: {reason}{asked_text}"

    @property
    def _unfinished_pieces(self) -> tuple[_WorkPiece, ...]:
        """The running piece and the queued pieces."""
        running = () if self._running is None else (self._running,)
        return (*running, *self._queue)

    def do(
        self, work: Callable[[], Coroutine[Any, Any, object]], holds: HeldKeys = HeldKeys.ALL
    ) -> None:
        """Queue a piece of work.

        Args:
            work: The piece; it shows its result and its failure itself.
            holds: The keys that wait until the piece is done.
        """
        self._queue.append(_WorkPiece(work, holds, copy_context()))
        # ``changed`` and ``failed`` may call this after the last piece, while the task still runs.
        if self._loop_task is None or self._loop_task.done():
            if holds > HeldKeys.NOTHING:
                # Most pieces end at once. Drawing waits for them, so that one frame shows both the
                # key and the result. With two frames, a label took 56 ms instead of 20.
                self._held_drawing.enter_context(self._hold_drawing())
            self._loop_task = create_task(self._carry_out_all())

    async def run(self, step: Callable[[], Result]) -> Result:
        """Execute a step of the running piece of work in the writer thread.

        Args:
            step: Reads or writes the workspace. If the file of the workspace is gone, it must fail
                before it changes anything, so that it can be repeated.

        Returns:
            The result of the step.

        Raises:
            Exception: The step raised it.
        """
        assert self._running is not None, "only a piece of work uses the writer thread"
        while True:
            future = self._thread.submit(copy_context().run, _run_with_status, self._status, step)
            # The event loop waits for a short step, so that a change that is queued while the app
            # quits still reaches the disk.
            done_futures, _ = wait([future], FRAME)
            try:
                return future.result() if done_futures else await asyncio.wrap_future(future)
            except WorkspaceGone:
                if self.when_file_gone is None or not await self.when_file_gone():
                    raise

    async def ask(self, question: Callable[[Callable[[Answer], None]], None]) -> Answer:
        """Ask the annotator a question within a piece of work, and wait for the answer.

        Meanwhile no keys are held back.

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
        """Execute all queued pieces; report an unexpected exception and go on."""
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

    Args:
        method: A coroutine method of an object that has ``writes``.

    Returns:
        The method that queues the work.
    """

    @wraps(method)
    def in_turn(self: Writer, /, *args: P.args, **kwargs: P.kwargs) -> None:
        self.writes.do(partial(method, self, *args, **kwargs))

    return in_turn
