"""Span keys that are unique in a trace."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.io.source import content_hash
from mast_tui.traces.model import TraceIdentity


def identity_by_content(
    path: Path, record: int | None, content: bytes, *, reader: str, key_scheme: int
) -> TraceIdentity:
    """The identity ``<stem>[:<record>]-<8 hex>`` of a record with this content.

    ``record`` is the record's number in its file, or None where the file is one trace.
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
        self._taken: dict[str, int] = {}
        self._repeats: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """``wanted`` itself where it is free, else the first free ``wanted~N``."""
        if wanted not in self._taken:
            self._taken[wanted] = len(self._taken)
            return wanted
        number = self._repeats.get(wanted, 1) + 1
        while (key := f"{wanted}~{number}") in self._taken:
            number += 1
        self._repeats[wanted] = number
        self._taken[key] = len(self._taken)
        return key

    def number(self, key: str) -> int:
        """How many were handed out before this one."""
        return self._taken[key]

    def renumber(self, key: str, number: int) -> None:
        """Give a key another number, because what it names was moved.

        Args:
            key: A key that was handed out.
            number: Its new number.
        """
        self._taken[key] = number

    def find(self, key: str) -> int | None:
        """The same of a key that may never have been handed out."""
        return self._taken.get(key)
