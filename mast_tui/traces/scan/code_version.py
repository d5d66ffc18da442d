"""What the code that reads traces is known by, for those that keep what it has found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from mast_tui.traces.readers.plugins import entry_files


def code_version() -> int:
    """A number that changes with the code that reads traces: what our files hold, and which
    packages with readers were installed when."""
    brought = sum(entry.stat().st_mtime_ns for entry in entry_files())
    return (_own_version() + brought) % (1 << 63)


@cache
def _own_version() -> int:
    folder = os.fspath(Path(__file__).parent.parent)
    digest = blake2b(digest_size=8)
    for path in sorted(_sources(folder)):
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - many small files, at the start
            digest.update(path[len(folder) :].encode("utf-8", "surrogateescape") + file.readall())
    return int.from_bytes(digest.digest())


def _sources(folder: str) -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _sources(entry.path)
