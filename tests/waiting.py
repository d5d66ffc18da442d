"""Waiting with an end: what never comes fails the test, and says what was waited for."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

PATIENCE: Final = 120.0
"""Seconds; less than a test may take at most, and far more than anything takes that comes."""


def until(done: Callable[[], object], seconds: float = PATIENCE) -> Iterator[None]:
    """Go round a loop until something is so; what is done meanwhile is its body.

        for _ in waiting.until(lambda: table.row_count):
            await pilot.pause()

    Args:
        done: Whether it is so; asked before each round.
        seconds: How long that may take.

    Raises:
        pytest.fail.Exception: It was not so in time; the message holds the line of ``done``.
    """
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            what = inspect.getsource(done).strip() if inspect.isroutine(done) else repr(done)
            pytest.fail(f"waited {seconds:g} s in vain for: {what}")
        yield
