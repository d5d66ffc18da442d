"""How many requests are under way at once: as many as allowed, fewer while a server is busy."""

from __future__ import annotations

import asyncio
import random as randomness
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

SPREAD: Final = 0.25
"""Of a wait that many share, the share by which each may come later than it ends."""

LEAST_SPREAD: Final = 0.5
MOST_SPREAD: Final = 5.0
"""In seconds: the bounds of that."""

BACK_OFF: Final = 1.0
"""Seconds before the second try, at most; doubled for each further one."""

MOST_BACK_OFF: Final = 30.0

FIRST: Final = 1
"""Requests that are under way until an answer could be used: where all would fail, few are sent in
vain."""

RAMP: Final = 0.05
"""Seconds between the first requests of a run. Those that begin at one moment are answered at one
moment too, time after time, and then their places stand empty while all answers are dealt with."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The clock (seconds, monotonic), a way to wait and a source of chance in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = randomness.random


def back_off(tries: int, chance: float) -> float:
    """Seconds to wait after so many failed tries (from 1): anything up to a doubling limit."""
    return chance * min(MOST_BACK_OFF, BACK_OFF * 2.0 ** min(tries - 1, 10))


class RateLimiter:
    """Lets at most ``most`` requests be under way; for the tasks of one event loop.

    ``slow_down`` halves what is allowed, once for all requests that were sent before it, and
    makes everybody wait where the server asked for that; ``went_well`` lets it grow by one for
    as many answers as are allowed at once. The first ``most`` requests begin ``ramp`` seconds
    apart. With ``first`` no more than so many are under way until ``open`` is called.
    """

    def __init__(
        self,
        most: int = 4,
        *,
        timing: Timing | None = None,
        ramp: float = 0.0,
        first: int | None = None,
    ) -> None:
        if most < 1:
            raise ValueError("at least one request must be allowed at once")
        self.most = most
        """How many requests may be under way with a healthy server."""
        self.timing = timing or Timing()
        self.opened = first is None
        """Whether ``open`` was called, or need not be."""
        self.allowed = most if first is None else min(first, most)
        """How many may be under way now."""
        self.under_way = 0
        """How many are."""
        self._well = 0
        self._until = 0.0
        self._spread = 0.0
        self._slowed = 0
        self._ramp = ramp
        self._ramp_ends: float | None = None
        self._next_begins = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """Wait for one's turn and hold it; what it gives goes to ``slow_down``."""
        await self._begin_apart()
        while True:
            await self._wait_out()
            await self._take()
            if self.timing.now() >= self._until:
                break
            self._give_back()
        try:
            yield self._slowed
        finally:
            self._give_back()

    def open(self) -> None:
        """Let as many requests be under way as are allowed, once."""
        if self.opened:
            return
        self.opened = True
        if not self._slowed:
            self.allowed = self.most
        self._wake()

    def went_well(self) -> None:
        """A request was answered."""
        if self.allowed == self.most or not self.opened:
            return
        self._well += 1
        if self._well >= self.allowed:
            self.allowed += 1
            self._well = 0
            self._wake()

    def slow_down(self, turn: int, wait: float | None) -> bool:
        """The server was busy in a turn, and asked to wait so many seconds (None: it did not).

        Whether that is news: everybody now waits for longer than was known.
        """
        if turn == self._slowed:
            self._slowed += 1
            self.allowed = max(1, self.allowed // 2)
            self._well = 0
        until = self.timing.now() + (wait or 0.0)
        if not wait or until <= self._until:
            return False
        news = until > self._until + 1.0
        self._until = until
        self._spread = min(MOST_SPREAD, max(LEAST_SPREAD, wait * SPREAD))
        return news

    async def _begin_apart(self) -> None:
        """While a run begins: until it is so many seconds since the one before."""
        now = self.timing.now()
        if self._ramp_ends is None:
            self._ramp_ends = now + self._ramp * self.most
            self._next_begins = now
        if now < self._ramp_ends:
            wait = self._next_begins - now
            self._next_begins = max(now, self._next_begins) + self._ramp
            if wait > 0:
                await self.timing.sleep(wait)

    async def _wait_out(self) -> None:
        """Until the time that the server asked for is over, not all at the same moment."""
        while (left := self._until - self.timing.now()) > 0:
            await self.timing.sleep(left + self.timing.random() * self._spread)

    async def _take(self) -> None:
        if self.under_way < self.allowed and not self._waiting:
            self.under_way += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place  # whoever wakes it has counted it as under way
        except asyncio.CancelledError:
            if not place.cancelled():
                self._give_back()
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def _give_back(self) -> None:
        self.under_way -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.under_way < self.allowed:
            place = self._waiting.popleft()
            if not place.cancelled():
                self.under_way += 1
                place.set_result(None)
