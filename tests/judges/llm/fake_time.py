"""A clock that advances only by sleeping, so that tests of waits take no time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mast_tui.judges.llm.client.rate_limiter import Timing
from tests import waiting


class FakeTime:
    """A clock that sleeping advances at once; every random number is ``chance``.

    Tasks that sleep at the same time sleep in parallel, until ``ready`` returns true.
    """

    def __init__(self, chance: float = 0.5) -> None:
        self.time = 100.0
        self.slept: list[float] = []
        self.chance = chance
        self.ready: Callable[[], bool] = lambda: True

    async def sleep(self, seconds: float) -> None:
        end = self.time + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        for _ in waiting.until(self.ready):
            await asyncio.sleep(0.001)
        self.time = max(self.time, end)

    @property
    def timing(self) -> Timing:
        return Timing(now=lambda: self.time, sleep=self.sleep, random=lambda: self.chance)
