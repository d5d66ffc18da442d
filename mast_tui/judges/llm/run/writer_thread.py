"""A thread of its own for the workspace, so that no commit holds up the requests."""

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
"""All that is done within is kept at the end, or nothing of it."""


@dataclass(frozen=True, slots=True)
class _Task:
    """Work, who hears what came of it, and whether nothing else may be done with it."""

    work: Callable[[], Any]
    done: asyncio.Future[Any]
    alone: bool


_Outcome = tuple[Any, BaseException | None]
"""What work gave, and what it raised."""


class WriterThread:
    """Does work in one thread, in the order in which it came; for the tasks of one event loop.

    What was handed over is done, whatever becomes of who waits for it: an answer that was paid is
    kept also where the run is broken off meanwhile. With ``together``, what has come while the
    thread was busy is done within one such block. Where that fails each is done once more by
    itself, so that what is wrong with one harms no other.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="workspace")
        self.together: Together | None = None
        self._waiting: deque[_Task] = deque()

    async def do(self, work: Callable[[], T]) -> T:
        """The result of ``work``, once it is kept; what it raises is raised."""
        result: T = await self._put(work, alone=self.together is None)
        return result

    def hand_over(self, work: Callable[[], object]) -> None:
        """Have work done, by itself, before all that comes later; for what it raises nobody
        waits."""
        self._put(work, alone=True)

    async def close(self) -> None:
        """Wait until everything that was handed over is done."""
        await asyncio.to_thread(self._thread.shutdown)

    def _put(self, work: Callable[[], object], *, alone: bool) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        task = _Task(work, loop.create_future(), alone)
        self._waiting.append(task)
        self._thread.submit(self._do_some, loop)
        return task.done

    def _do_some(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do what waits, as far as it may be done together."""
        tasks = self._take()
        if not tasks:
            return  # it was done with what came before it
        outcomes = self._at_once(tasks) if len(tasks) > 1 else None
        if outcomes is None:
            outcomes = [_by_itself(task) for task in tasks]
        loop.call_soon_threadsafe(_tell, tasks, outcomes)

    def _take(self) -> list[_Task]:
        tasks: list[_Task] = []
        while self._waiting and not (tasks and (self._waiting[0].alone or tasks[0].alone)):
            tasks.append(self._waiting.popleft())
        return tasks

    def _at_once(self, tasks: Sequence[_Task]) -> list[_Outcome] | None:
        """What came of tasks that were done together; None where nothing did."""
        assert self.together is not None
        with suppress(BaseException), self.together():
            return [(task.work(), None) for task in tasks]
        return None


def _by_itself(task: _Task) -> _Outcome:
    try:
        return task.work(), None
    except BaseException as error:  # noqa: BLE001 - it is raised where the work is waited for
        return None, error


def _tell(tasks: Sequence[_Task], outcomes: Sequence[_Outcome]) -> None:
    for task, (result, error) in zip(tasks, outcomes, strict=True):
        if task.done.cancelled():
            continue
        if error is None:
            task.done.set_result(result)
        else:
            task.done.set_exception(error)
            # Whoever waited may be cancelled before it looks; then the loop would print it all.
            task.done.exception()
