"""The thread that writes to the workspace."""

from __future__ import annotations

import asyncio
import gc
import threading
from functools import partial
from typing import Any

import pytest

from mast_tui.judges.llm.writer import Writer


async def test_what_fails_after_its_task_was_cancelled_is_not_printed() -> None:
    printed: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: printed.append(context))
    writer, failing = Writer(), threading.Event()

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


async def test_what_was_handed_over_is_done_before_it_closes() -> None:
    done: list[int] = []
    writer = Writer()
    for number in range(5):
        writer.hand_over(partial(done.append, number))
    with pytest.raises(ZeroDivisionError):
        await writer.do(lambda: 1 // 0)
    await writer.close()
    assert done == [0, 1, 2, 3, 4]
