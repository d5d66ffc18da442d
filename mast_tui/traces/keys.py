"""Span keys that are unique in a trace."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.io.source import content_hash
from mast_tui.traces.model import TraceIdentity


def identity_by_content(
    path: Path, record: int | None, content: bytes, *, reader: str, key_scheme: int
) -> TraceIdentity:
    """Return the identity of a record, with an id such as ``<stem>:<record>-<8 hex>``.

    Args:
        path: The file of the record.
        record: The number of the record in its file; None if the file is one trace.
        content: The content of the record.
        reader: The name of the reader.
        key_scheme: The number of the scheme by which the reader makes span keys.
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
    """The keys of the spans of a trace; a repeated key gets ``~2``, ``~3`` and so on."""

    def __init__(self) -> None:
        self._number_by_key: dict[str, int] = {}
        self._last_suffixes: dict[str, int] = {}

    def take(self, preferred: str) -> str:
        """Return ``preferred`` if it is free, else ``preferred~N``, and record the key."""
        if preferred not in self._number_by_key:
            self._number_by_key[preferred] = len(self._number_by_key)
            return preferred
        suffix = self._last_suffixes.get(preferred, 1) + 1
        while (key := f"{preferred}~{suffix}") in self._number_by_key:
            suffix += 1
        self._last_suffixes[preferred] = suffix
        self._number_by_key[key] = len(self._number_by_key)
        return key

    def number(self, key: str) -> int:
        """Return the number of a key: its position from 0, or the number set by ``renumber``."""
        return self._number_by_key[key]

    def renumber(self, key: str, number: int) -> None:
        """Set the number of a key whose span was moved.

        Args:
            key: A key that was taken.
            number: Its new number.
        """
        self._number_by_key[key] = number
