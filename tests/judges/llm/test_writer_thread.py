"""The thread that writes to the workspace."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from mast_tui.judges.llm.run.writer_thread import WriterThread


async def test_an_error_after_cancellation_is_not_printed() -> None:
    printed: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: printed.append(context))
    writer, failing = WriterThread(), threading.Event()

    def fail() -> None:
        failing.wait(10)
        raise ValueError("no room")

    task = asyncio.create_task(writer.do(fail))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    failing.set()
    await writer.close()
    await asyncio.sleep(0)
    gc.collect()
    assert printed == []


class Kept:
    """Numbers added in blocks, all or nothing."""

    def __init__(self) -> None:
        self.blocks: list[list[int]] = []
        self._open: list[int] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        self._open = []
        try:
            yield
            self.blocks.append(self._open)
        finally:
            self._open = None

    def add(self, number: int) -> int:
        if number < 0:
            raise ValueError("no room")
        if self._open is None:
            self.blocks.append([number])
        else:
            self._open.append(number)
        return number


async def added_while_busy(kept: Kept, *numbers: int) -> list[int | BaseException]:
    """Return the results of additions that were requested while the thread was busy."""
    writer, busy = WriterThread(), threading.Event()
    writer.together = kept.together
    first = asyncio.create_task(writer.do(partial(busy.wait, 10)))
    await asyncio.sleep(0)
    tasks = [asyncio.create_task(writer.do(partial(kept.add, number))) for number in numbers]
    await asyncio.sleep(0)
    busy.set()
    await first
    came = await asyncio.gather(*tasks, return_exceptions=True)
    await writer.close()
    return came


async def test_waiting_work_is_done_together_and_fails_separately() -> None:
    kept = Kept()
    assert await added_while_busy(kept, 1, 2, 3) == [1, 2, 3]
    assert kept.blocks == [[1, 2, 3]]
    kept = Kept()
    one, two, three = await added_while_busy(kept, 1, -2, 3)
    assert [one, three] == [1, 3]
    assert isinstance(two, ValueError)
    assert kept.blocks == [[1], [3]]


async def test_handed_over_work_is_done_in_order() -> None:
    kept = Kept()
    writer, busy = WriterThread(), threading.Event()
    writer.together = kept.together
    writer.hand_over(partial(busy.wait, 10))
    first = asyncio.create_task(writer.do(partial(kept.add, 1)))
    await asyncio.sleep(0)
    writer.hand_over(partial(kept.add, 2))
    last = asyncio.create_task(writer.do(partial(kept.add, 3)))
    await asyncio.sleep(0)
    busy.set()
    assert [await first, await last] == [1, 3]
    writer.hand_over(partial(kept.add, 4))
    await writer.close()
    assert kept.blocks == [[1], [2], [3], [4]]
