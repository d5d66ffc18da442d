"""Work in threads stands back while a key is answered.

Only one thread of an interpreter runs at a time. A thread that reads a big file would otherwise
have every second turn while the screen is drawn, and a key would take twice as long.
"""

from __future__ import annotations

import sys
from threading import Event
from time import monotonic
from typing import Final

LONGEST: Final = 0.1
"""Seconds after which work goes on whatever is being done: keys that never end must not stop it."""


LATELY: Final = 0.3
"""Seconds after a key within which the next one is looked for."""

TURN: Final = 0.0005
"""Seconds for which a thread computes before another that waits has its turn; Python's own are ten
times as long, and a key waits for several turns on its way to the screen."""


def switch_threads_often() -> None:
    """From here on, threads of this process change places more often."""
    sys.setswitchinterval(TURN)


class InputPriority:
    """Knows whether a key is being answered; ``begin`` and ``end`` are called by the app."""

    def __init__(self) -> None:
        self._free = Event()
        self._free.set()
        self._last_key = -LATELY

    @property
    def keys_come(self) -> bool:
        """Whether a key has come a moment ago, so that another may follow."""
        return monotonic() - self._last_key < LATELY

    def begin(self) -> None:
        """A key has come."""
        self._last_key = monotonic()
        self._free.clear()

    def end(self) -> None:
        """What came of the keys so far is on screen."""
        self._free.set()

    def wait(self) -> None:
        """Called by a thread between small steps: returns at once while no key is being answered,
        else when that is over."""
        if not self._free.is_set():
            self._free.wait(LONGEST)
