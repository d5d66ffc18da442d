"""Span keys that are unique in a trace."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.io.source import content_hash
from mast_tui.traces.model import TraceIdentity


def identity_by_content(
    path: Path, record: int | None, content: bytes, *, reader: str, key_scheme: int
) -> TraceIdentity:
    """Return the identity ``<stem>[:<record>]-<8 hex>`` of a record.

    Args:
        path: The file of the record.
        record: The number of the record in its file; None if the file is one trace.
        content: The content of the record.
        reader: The name of the reader.
        key_scheme: The number of the way in which the reader makes span keys.
    """
    digest = content_hash(content)
    stem = path.stem if record is None else f"{path.stem}:{record}"
    return TraceIdentity(
        trace_id=f"{stem}-{digest[:8]}",
        content_hash=digest,
        content_bytes=len(content),
        reader=reader,
        key_scheme=key_scheme,
        native=False,
    )


class UniqueKeys:
    """Hands out keys; where one repeats, the later ones get ``~2``, ``~3`` and so on."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._repeats: dict[str, int] = {}

    def take(self, preferred: str) -> str:
        """Return ``preferred`` where it is free, else the first free ``preferred~N``."""
        if preferred not in self._used:
            self._used[preferred] = len(self._used)
            return preferred
        number = self._repeats.get(preferred, 1) + 1
        while (key := f"{preferred}~{number}") in self._used:
            number += 1
        self._repeats[preferred] = number
        self._used[key] = len(self._used)
        return key

    def number(self, key: str) -> int:
        """Return the number of keys that were taken before this one."""
        return self._used[key]

    def renumber(self, key: str, number: int) -> None:
        """Give a key another number, because what it names was moved.

        Args:
            key: A key that was taken.
            number: Its new number.
        """
        self._used[key] = number

    def find(self, key: str) -> int | None:
        """Return the number of a key as ``number`` does; None for one that was never taken."""
        return self._used.get(key)
