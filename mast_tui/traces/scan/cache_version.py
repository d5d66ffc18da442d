"""By what caches know that what they hold was told by the same readers."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from mast_tui import __version__
from mast_tui.traces.readers.plugins import entry_files

_FORMAT: Final = 6
"""Goes up with what the caches hold, or what a reader tells of a file, between two releases."""


def cache_version() -> int:
    """A number below 2**31 that changes with our version and with the readers of others."""
    brought = [(entry.name, entry.stat().st_mtime_ns) for entry in entry_files()]
    return crc32(repr((__version__, _FORMAT, brought)).encode()) >> 1
