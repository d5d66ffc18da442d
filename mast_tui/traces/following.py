"""How often files that may grow are looked at, in a window and by ``mast-tui watch``."""

from __future__ import annotations

from typing import Final

LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the file."""

REST: Final = 5
"""How many times as long as it takes to look, and to take in what has come, passes before the next
look."""

MOST_REST: Final = 30.0
"""Seconds that pass at most."""


def rest_after(seconds: float) -> float:
    """How many seconds to rest after a look that took so many."""
    return min(MOST_REST, REST * seconds)
