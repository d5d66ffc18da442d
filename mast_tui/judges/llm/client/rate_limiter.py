"""A limit of concurrent requests that falls while a server is busy."""

from __future__ import annotations

import asyncio
import random as randomness
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

SPREAD: Final = 0.25
"""The longest random delay after a common wait, as a share of that wait."""

LEAST_SPREAD: Final = 0.5
MOST_SPREAD: Final = 5.0
"""The bounds of the longest random delay, in seconds."""

BACK_OFF: Final = 1.0
"""The most seconds before the second try. They double with each further try."""

MOST_BACK_OFF: Final = 30.0

FIRST: Final = 1
"""The concurrent requests before the first usable answer, so that few are wasted if all fail."""

RAMP: Final = 0.05
"""The seconds between the first requests of a run.

Requests that begin together are answered together. The server would then be idle while all answers
are processed.
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """A monotonic clock in seconds, a function that waits, and random numbers in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = randomness.random


def back_off(tries: int, chance: float) -> float:
    """Return the seconds to wait before the next try.

    Args:
        tries: The number of failed tries, at least 1.
        chance: A random share, in [0, 1), of the longest wait.
    """
    return chance * min(MOST_BACK_OFF, BACK_OFF * 2.0 ** min(tries - 1, 10))


class RateLimiter:
    """A limit of concurrent requests, for the tasks of one event loop.

    A busy server halves the limit. Answers raise it again, by one after as many answers as the
    limit.

    Args:
        most: The highest limit.
        timing: The clock.
        ramp: The seconds between the starts of the first ``most`` requests.
        first: The limit until ``open`` is called; None for ``most``.

    Raises:
        ValueError: ``most`` is less than 1.
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
        """The limit for a healthy server."""
        self.timing = timing or Timing()
        self.opened = first is None
        """True after a call of ``open``, or without a first limit."""
        self.allowed = most if first is None else min(first, most)
        self.running_count = 0
        self._success_count = 0
        """The number of answers since the last change of the limit."""
        self._wait_until = 0.0
        """The time until which the server asked all requests to wait."""
        self._spread = 0.0
        """The longest random delay after ``_wait_until``, so that requests do not start
        together."""
        self._slow_down_count = 0
        """The number of times that the limit was lowered."""
        self._ramp = ramp
        self._ramp_ends: float | None = None
        """The end of the ramp, the phase in which requests start one by one; None before it
        begins."""
        self._next_start = 0.0
        """The time of the next start during the ramp."""
        self._slot_freed = asyncio.Event()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """Wait for a slot for a request, and hold it during the context.

        Yields:
            The number of times that the limit was lowered so far, for ``slow_down``.
        """
        await self._wait_for_ramp()
        await self._wait_for_server()
        while self.running_count >= self.allowed:
            # The event wakes all waiting tasks in their order, so the first of them get the slots.
            self._slot_freed.clear()
            await self._slot_freed.wait()
            # The server may have asked for a wait in the meantime.
            await self._wait_for_server()
        self.running_count += 1
        try:
            yield self._slow_down_count
        finally:
            self.running_count -= 1
            self._slot_freed.set()

    def open(self) -> None:
        """End the first limit of a run: allow ``most`` requests, unless the server was busy."""
        if self.opened:
            return
        self.opened = True
        if not self._slow_down_count:
            self.allowed = self.most
        self._slot_freed.set()  # wake the tasks that wait for a slot

    def request_succeeded(self) -> None:
        """Count an answered request; after as many answers as the limit, raise the limit by 1."""
        if self.allowed == self.most or not self.opened:
            return
        self._success_count += 1
        if self._success_count >= self.allowed:
            self.allowed += 1
            self._success_count = 0
            self._slot_freed.set()

    def slow_down(self, slow_downs_before: int, wait: float | None) -> bool:
        """Lower the limit after a busy server refused a request, and make all requests wait.

        Args:
            slow_downs_before: The number that ``turn`` yielded for the request.
            wait: The seconds that the server asked to wait, or None.

        Returns:
            True if the common wait is now at least a second longer than before.
        """
        # Of concurrent requests that are refused, only the first lowers the limit.
        if slow_downs_before == self._slow_down_count:
            self._slow_down_count += 1
            self.allowed = max(1, self.allowed // 2)
            self._success_count = 0
        until = self.timing.now() + (wait or 0.0)
        if not wait or until <= self._wait_until:
            return False
        is_longer = until > self._wait_until + 1.0
        self._wait_until = until
        self._spread = min(MOST_SPREAD, max(LEAST_SPREAD, wait * SPREAD))
        return is_longer

    async def _wait_for_ramp(self) -> None:
        """Wait for the next start while the ramp at the beginning of a run lasts."""
        now = self.timing.now()
        if self._ramp_ends is None:
            # In this time, ``most`` requests start.
            self._ramp_ends = now + self._ramp * self.most
            self._next_start = now
        if now < self._ramp_ends:
            wait = self._next_start - now
            self._next_start = max(now, self._next_start) + self._ramp
            if wait > 0:
                await self.timing.sleep(wait)

    async def _wait_for_server(self) -> None:
        """Wait as long as the server asked, plus a random delay."""
        remaining = self._wait_until - self.timing.now()
        while remaining > 0:
            await self.timing.sleep(remaining + self.timing.random() * self._spread)
            remaining = self._wait_until - self.timing.now()
