"""Waiting with a limit, after which the test fails and shows its condition."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

PATIENCE: Final = 120.0
"""Seconds; below the limit of a test, and far longer than any condition takes."""


def until(done: Callable[[], object], seconds: float = PATIENCE) -> Iterator[None]:
    """Repeat the body of a loop until a condition holds.

        for _ in waiting.until(lambda: table.row_count):
            await pilot.pause()

    Args:
        done: The condition, which is checked before each round.
        seconds: The time limit.

    Raises:
        pytest.fail.Exception: The condition did not hold in time; the message shows it.
    """
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            condition = inspect.getsource(done).strip() if inspect.isroutine(done) else repr(done)
            pytest.fail(f"waited {seconds:g} s in vain for: {condition}")
        yield
