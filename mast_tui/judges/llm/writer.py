"""A thread of its own for the workspace, so that no commit holds up the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Writer:
    """Does work in one thread, in the order in which it came.

    What was handed over is done, whatever becomes of who waits for it: an answer that was paid is
    kept also where the run is broken off meanwhile.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="workspace")

    async def do(self, work: Callable[[], T]) -> T:
        """The result of ``work``; what it raises is raised."""
        done = asyncio.wrap_future(self._thread.submit(work))
        done.add_done_callback(_heard)
        return await asyncio.shield(done)

    def hand_over(self, work: Callable[[], object]) -> None:
        """Have work done before all that comes later; for what it raises nobody waits."""
        self._thread.submit(work)

    async def close(self) -> None:
        """Wait until everything that was handed over is done."""
        await asyncio.to_thread(self._thread.shutdown)


def _heard(done: asyncio.Future[T]) -> None:
    """Take note of what went wrong: whoever waited may have been cancelled and never asks for it,
    and the loop would print it with all its lines."""
    if not done.cancelled():
        done.exception()
