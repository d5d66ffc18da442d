"""A limit on how fast passwords and tokens can be guessed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv6Address, ip_address
from typing import Final

_WAIT_SECONDS: Final = 1.0
"""Seconds that a wrong password or token keeps its place in the line."""

_CHECKS_AT_ONCE: Final = 4
"""The most sign-ins that are checked at once, from all addresses together."""

_WAITING: Final = 20
"""The most sign-ins of one address that wait; a team behind one proxy may come all at once."""

_IPV6_HOST_BITS: Final = 64
"""The bits of an IPv6 address that its owner can choose."""


class WrongSecret(Exception):
    """A password or token that is wrong."""


class TooManySignIns(Exception):
    """More sign-ins of one address than may wait."""


class GuessLimit:
    """The line in which sign-ins wait for their check.

    Sign-ins of one address are checked one after another, those of all addresses at most
    ``_CHECKS_AT_ONCE`` together. A wrong one keeps its place for a second. So guesses that are
    sent side by side are no faster than guesses that follow each other.

    Args:
        wait: Waits while a wrong sign-in keeps its place.
    """

    def __init__(self, wait: Callable[[], Awaitable[object]] | None = None) -> None:
        self._wait = wait or _wait_after_wrong
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for the turn of an address; the block checks the sign-in.

        Args:
            address: The client's address.

        Raises:
            TooManySignIns: Too many sign-ins of the address wait already.
            WrongSecret: The block raised it; it is raised again after the wait.
        """
        network = _network(address)
        if self._waiting[network] >= _WAITING:
            raise TooManySignIns
        self._waiting[network] += 1
        try:
            async with self._locks.setdefault(network, asyncio.Lock()), self._checks:
                try:
                    yield
                except WrongSecret:
                    await self._wait()
                    raise
        finally:
            self._waiting[network] -= 1
            if not self._waiting[network]:
                del self._waiting[network]
                self._locks.pop(network, None)


async def _wait_after_wrong() -> None:
    await asyncio.sleep(_WAIT_SECONDS)


def _network(address: str) -> str:
    """Return what one client cannot change of its address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address) or parsed.ipv4_mapped is not None:
        return str(getattr(parsed, "ipv4_mapped", None) or parsed)
    return f"{int(parsed) >> _IPV6_HOST_BITS:x}::"
