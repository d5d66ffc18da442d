"""Trace ids for formats that bring none of their own."""

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
