"""``mast-data``: records with a yes or no per mode, in the shape of MAST-Data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mast_tui.exchange.csv_wide import WideRow
from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.model import Taxonomy

# Unsure and open are no 'no': a missing answer that counts as 0 hides what nobody looked at.
_NUMBERS: Final[Mapping[VerdictValue | None, int]] = {
    VerdictValue.PRESENT: 1,
    VerdictValue.ABSENT: 0,
}


def mast_data_records(rows: Iterable[WideRow], taxonomy: Taxonomy) -> list[dict[str, Any]]:
    """The records in the order of trace and annotator.

    1 is present, 0 absent, None unsure, unresolved or not judged.
    """
    ordered = sorted(rows, key=lambda row: (row.trace.trace_id, row.annotator))
    return [_record(row, taxonomy) for row in ordered]


def _record(row: WideRow, taxonomy: Taxonomy) -> dict[str, Any]:
    trace, said = row.trace, row.verdicts
    return {
        "mas_name": trace.system,
        "llm_name": trace.model,
        "benchmark_name": trace.benchmark,
        "trace_id": trace.trace_id,
        "annotator": row.annotator,
        "taxonomy": taxonomy.ref,
        "mast_annotation": {m.code: _NUMBERS.get(said.get(m.slug)) for m in taxonomy.modes},
    }
