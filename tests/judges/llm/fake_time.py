"""Time that passes only where something sleeps, so that tests of patience need none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mast_tui.judges.llm.client.rate_limiter import Timing
from tests import waiting


class FakeTime:
    """A clock that sleeping puts forward at once; ``chance`` is all the luck there is.

    Those who sleep at the same time sleep side by side. ``ready`` keeps all of them asleep until
    it is true.
    """

    def __init__(self, chance: float = 0.5) -> None:
        self.time = 100.0
        self.slept: list[float] = []
        self.chance = chance
        self.ready: Callable[[], bool] = lambda: True

    async def sleep(self, seconds: float) -> None:
        """Let others run, that many seconds later."""
        end = self.time + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        for _ in waiting.until(self.ready):
            await asyncio.sleep(0.001)
        self.time = max(self.time, end)

    @property
    def timing(self) -> Timing:
        """What is handed to a rate limiter or a client."""
        return Timing(now=lambda: self.time, sleep=self.sleep, random=lambda: self.chance)
