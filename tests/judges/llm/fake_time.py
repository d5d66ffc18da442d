"""Time that passes only where something sleeps, so that tests of patience need none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mast_tui.judges.llm.client.rate_limiter import Timing
from tests import waiting


class FakeTime:
    """A clock that sleeping advances at once; ``chance`` is every random number.

    Those who sleep at the same time sleep side by side. ``ready`` keeps all of them asleep until
    it is true.
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
