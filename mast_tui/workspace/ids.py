"""Identifiers and times of events."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from datetime import UTC, datetime
from typing import Final

_RANDOM_BITS: Final = 74
_STEP_BITS: Final = 32
_VARIANTS: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""The digit that tells a UUID's variant, by the one that the hash has in its place."""


def uuid7(milliseconds: int, low: int) -> str:
    """Return a UUID of version 7 (RFC 9562).

    Args:
        milliseconds: A Unix time in milliseconds.
        low: The 74 bits after the time.
    """
    value = (milliseconds & ((1 << 48) - 1)) << 80
    value |= 0x7 << 76 | (low >> 62) << 64 | 0b10 << 62 | low & ((1 << 62) - 1)
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuid5(namespace: bytes, name: str) -> str:
    """Return the UUID of version 5 of a name, faster than ``uuid.uuid5``.

    Args:
        namespace: The bytes of the namespace's UUID.
        name: The name.
    """
    data = namespace + name.encode()
    digits = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    variant = _VARIANTS[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


class IdSource:
    """Makes UUIDs version 7 that only ever grow, even within a millisecond or when a clock is set
    back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = (0, 0)
        """The milliseconds and the low bits of the last id."""

    def new(self) -> str:
        """Return the next id."""
        with self._lock:
            now = time.time_ns() // 1_000_000
            milliseconds, low = self._last
            if now > milliseconds:
                # The top bit stays free, so that a burst within this millisecond has room.
                self._last = (now, secrets.randbits(_RANDOM_BITS - 1))
            else:
                low += 1 + secrets.randbits(_STEP_BITS)
                if low >> _RANDOM_BITS:  # no higher id is left in this millisecond
                    milliseconds = milliseconds + 1
                    low = secrets.randbits(_RANDOM_BITS - 1)
                self._last = (milliseconds, low)
            return uuid7(*self._last)


def now() -> str:
    """Return the current time as ISO 8601 in UTC with microseconds, always of the same length."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
