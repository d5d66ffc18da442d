"""``mast-data``: records with a yes or no per mode, in the shape of MAST-Data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace.records import TraceRecord

# Unsure and open are no 'no': a missing answer that counts as 0 hides what nobody looked at.
_NUMBERS: Final = {VerdictValue.PRESENT: 1, VerdictValue.ABSENT: 0}


def mast_data_record(
    trace: TraceRecord,
    annotator: str,
    verdicts: Mapping[str, VerdictValue | None],
    taxonomy: Taxonomy,
) -> dict[str, Any]:
    """One record: 1 is present, 0 absent, None unsure, unresolved or not judged."""
    numbers: dict[str, int | None] = {}
    for mode in taxonomy.modes:
        value = verdicts.get(mode.slug)
        numbers[mode.code] = None if value is None else _NUMBERS.get(value)
    return {
        "mas_name": trace.system,
        "llm_name": trace.model,
        "benchmark_name": trace.benchmark,
        "trace_id": trace.trace_id,
        "annotator": annotator,
        "taxonomy": taxonomy.ref,
        "mast_annotation": numbers,
    }


def mast_data_records(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records in the order of trace and annotator."""
    return sorted(records, key=lambda record: (record["trace_id"], record["annotator"]))
