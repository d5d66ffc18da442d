"""What traces are called on screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_tui.workspace import TraceRecord


def trace_names(records: Iterable[TraceRecord]) -> dict[str, str]:
    """What traces go by, by their ids: the file each was last seen in, and its place there."""
    return {
        record.trace_id: record.path.name
        if record.record is None
        else f"{record.path.name}#{record.record}"
        for record in records
        if record.path is not None
    }
