"""What the code that reads traces is known by, for those that keep what it has found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mast_tui.traces.readers.plugins import entry_files


def code_version() -> int:
    """A number that changes with the code that reads traces: ours, and packages with readers."""
    folder = Path(__file__).parent.parent
    newest = max((entry.stat().st_mtime_ns for entry in _sources(folder)), default=0)
    brought = sum(entry.stat().st_mtime_ns for entry in entry_files())
    return (newest + brought) // 1_000_000


def _sources(folder: Path) -> Iterable[os.DirEntry[str]]:
    for entry in os.scandir(folder):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(Path(entry.path))
        elif entry.name.endswith(".py"):
            yield entry
