"""Files with labels of traces, recognised by their content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.source import Source

_MOST_EXAMINED: Final = 5

_SHAPES: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("AgentRx labels; 'mast-tui import' reads them", frozenset({"trajectory_id", "failures"})),
    ("labels of the MAST study; 'mast-tui import' reads them", frozenset({"hf_annotations"})),
    (
        "a list of planted failures in other traces",
        frozenset({"trace", "mode", "first", "last", "why"}),
    ),
)
"""The description of each kind of label file, and the fields of its records."""

_TRAIL_DESCRIPTION: Final = "TRAIL labels; 'mast-tui import' reads them"
_TRAIL_FIELDS: Final = frozenset({"trace_id", "errors", "scores"})


def label_file_kind(source: Source) -> str | None:
    """Describe a file of labels, recognised by its first records; None for other files."""
    records = source.json_lines
    if not records:
        document = source.json
        records = document if isinstance(document, list) else [document]
    first_records = records[:_MOST_EXAMINED]
    if not first_records:
        return None
    for description, fields in _SHAPES:
        if all(isinstance(record, Mapping) and fields <= record.keys() for record in first_records):
            return description
    return _TRAIL_DESCRIPTION if all(map(_is_trail_label, first_records)) else None


def _is_trail_label(record: object) -> bool:
    """Return whether a record is a label of the TRAIL data set.

    Other formats have the same field names, so no other field is allowed, and errors need
    categories.
    """
    errors = record.get("errors") if isinstance(record, Mapping) else None
    return (
        isinstance(record, Mapping)
        and record.keys() <= _TRAIL_FIELDS
        and isinstance(errors, list)
        and all(isinstance(error, Mapping) and "category" in error for error in errors)
    )
