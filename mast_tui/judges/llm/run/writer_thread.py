"""A thread that writes to the workspace, so that commits do not delay requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

Together = Callable[[], AbstractContextManager[object]]
"""A context in which all writes are one transaction."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A piece of work with the future for its result; ``alone`` if it needs its own transaction."""

    work: Callable[[], Any]
    done: asyncio.Future[Any]
    alone: bool


_Outcome = tuple[Any, BaseException | None]
"""The result of work, and the exception that it raised."""


class WriterThread:
    """A thread that does work in the order of its arrival, for the tasks of one event loop.

    - All work is done, also if the waiting task is cancelled, so that an answer that was paid is
      stored.
    - With ``together``, the work that has arrived while the thread was busy is done in one
      transaction. If that fails, each piece is done again alone, so that one failure does not
      affect other work.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="workspace")
        self.together: Together | None = None
        """Returns a context in which all writes are one transaction; None to do all work alone."""
        self._queued_tasks: deque[_Task] = deque()

    async def do(self, work: Callable[[], T]) -> T:
        """Do work, and return its result once it is stored; its exceptions are raised."""
        result: T = await self._queue_work(work, alone=self.together is None)
        return result

    def hand_over(self, work: Callable[[], object]) -> None:
        """Queue work with its own transaction; its exceptions are ignored."""
        self._queue_work(work, alone=True)

    async def close(self) -> None:
        """Wait until all work is done."""
        await asyncio.to_thread(self._thread.shutdown)

    def _queue_work(self, work: Callable[[], object], *, alone: bool) -> asyncio.Future[Any]:
        """Queue work for the writer thread, and return the future of its result.

        ``alone`` keeps the work out of a transaction with other work.
        """
        loop = asyncio.get_running_loop()
        task = _Task(work, loop.create_future(), alone)
        self._queued_tasks.append(task)
        self._thread.submit(self._do_queued, loop)
        return task.done

    def _do_queued(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do the waiting work up to a piece that needs its own transaction."""
        tasks = self._take_tasks()
        if not tasks:
            return  # an earlier call has done it
        outcomes = self._do_together(tasks) if len(tasks) > 1 else None
        if outcomes is None:
            outcomes = [_do_alone(task) for task in tasks]
        loop.call_soon_threadsafe(_set_results, tasks, outcomes)

    def _take_tasks(self) -> list[_Task]:
        """Remove the next task from the queue, with the tasks that may share its transaction."""
        tasks: list[_Task] = []
        while self._queued_tasks:
            if tasks and (self._queued_tasks[0].alone or tasks[0].alone):
                break
            tasks.append(self._queued_tasks.popleft())
        return tasks

    def _do_together(self, tasks: Sequence[_Task]) -> list[_Outcome] | None:
        """Do tasks in one transaction; None if that fails."""
        assert self.together is not None
        with suppress(BaseException), self.together():
            return [(task.work(), None) for task in tasks]
        return None


def _do_alone(task: _Task) -> _Outcome:
    try:
        return task.work(), None
    except BaseException as error:  # noqa: BLE001 - raised again in the waiting task
        return None, error


def _set_results(tasks: Sequence[_Task], outcomes: Sequence[_Outcome]) -> None:
    """Set the results of tasks in the event loop, unless the waiting tasks were cancelled."""
    for task, (result, error) in zip(tasks, outcomes, strict=True):
        if task.done.cancelled():
            continue
        if error is None:
            task.done.set_result(result)
        else:
            task.done.set_exception(error)
            # A waiting task that is cancelled would leave the exception unread, which is logged.
            task.done.exception()
