"""The index of each span that an event refers to.

A span's key identifies it, and its index is its position in the trace. The stored index is a cache:
it is written when a program that has the trace records an event, and whenever the trace is read. So
overlaps can be found on a machine without the file of the trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, bindparam, select

from mast_tui.workspace import schema
from mast_tui.workspace.database import Insertion, call_function, writes_by_calls
from mast_tui.workspace.events.columns import rows_of
from mast_tui.workspace.events.rows import readable_events
from mast_tui.workspace.events.types import KIND_OF, Decided, SpanNoteSet, SpansRead, span_keys
from mast_tui.workspace.records import SpanIndex

Indices = Mapping[str, SpanIndex]
"""Spans of one trace, by key."""

_TABLE: Final = schema.span_indices
_UPSERT: Final = Insertion(
    _TABLE,
    where_known="ON CONFLICT (trace_id, span_key) DO UPDATE SET span_index = excluded.span_index, "
    "text_chars = coalesce(excluded.text_chars, span_indices.text_chars)",
)
_ALL: Final = select(_TABLE)
_OF_TRACE: Final = _ALL.where(_TABLE.c.trace_id == bindparam("trace_id"))
_LABELS: Final = schema.labels.c
_LABELS_OF_TRACE: Final = select(_LABELS.first_key, _LABELS.last_key, _LABELS.quote).where(
    _LABELS.trace_id == bindparam("trace_id"), _LABELS.first_key.is_not(None)
)
_OTHER_KINDS: Final = tuple(KIND_OF[fact] for fact in (SpanNoteSet, SpansRead, Decided))
_EVENTS_OF_TRACE: Final = select(schema.events).where(
    # An index of the events begins with the annotator.
    schema.events.c.annotator.in_(select(schema.annotators.c.name)),
    schema.events.c.trace_id == bindparam("trace_id"),
    schema.events.c.kind.in_(_OTHER_KINDS),
)


def span_indices(
    connection: Connection, trace_id: str | None = None
) -> dict[str, dict[str, SpanIndex]]:
    """Return the stored indices of spans by trace and key.

    Args:
        connection: An open connection.
        trace_id: Only those of this trace; None for all.
    """
    statement = _ALL if trace_id is None else _OF_TRACE.params(trace_id=trace_id)
    indices: dict[str, dict[str, SpanIndex]] = defaultdict(dict)
    for trace, key, index, text_chars in rows_of(connection, statement):
        indices[trace][key] = SpanIndex(index, text_chars)
    return dict(indices)


def keep_span_indices(connection: Connection, indices: Mapping[str, Indices]) -> None:
    """Store the indices of spans, and replace those stored before.

    Args:
        connection: An open transaction.
        indices: The indices by trace and key.
    """
    # Sorted, so that two programs that write the same rows on a server do not block each other.
    rows = [
        (trace_id, key, index.index, index.text_chars)
        for trace_id, of_trace in sorted(indices.items())
        for key, index in sorted(of_trace.items())
    ]
    if writes_by_calls(connection):
        call_function(connection, "keep_span_index", _TABLE, rows)
    elif rows:
        _UPSERT.write(connection, rows)


def referred_spans(connection: Connection, trace_id: str) -> dict[str, bool]:
    """Return the keys that labels, notes, decisions and readings of a trace refer to.

    Args:
        connection: An open connection.
        trace_id: The trace.

    Returns:
        For each key, True if a quote is in the span.
    """
    keys: dict[str, bool] = {}
    for first, last, quote in rows_of(connection, _LABELS_OF_TRACE.params(trace_id=trace_id)):
        keys.setdefault(last, False)
        keys[first] = keys.get(first, False) or quote is not None
    rows = connection.execute(_EVENTS_OF_TRACE, {"trace_id": trace_id}).mappings()
    for event in readable_events(rows):
        for key, has_quote in span_keys(event.fact).items():
            keys[key] = keys.get(key, False) or has_quote
    return keys
