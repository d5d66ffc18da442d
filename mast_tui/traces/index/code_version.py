"""What the code that reads traces is known by, for those that keep what it has found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def newest_change() -> int:
    """When a file of the code that reads traces was changed last, in milliseconds since 1970."""
    folder = Path(__file__).parent.parent
    return max((entry.stat().st_mtime_ns for entry in _sources(folder)), default=0) // 1_000_000


def _sources(folder: Path) -> Iterable[os.DirEntry[str]]:
    for entry in os.scandir(folder):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(Path(entry.path))
        elif entry.name.endswith(".py"):
            yield entry
