"""Traces and runs of judges as plain values of a ``jsonl`` line, and back.

What is not known is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import Run, RunTrace, TraceRecord
from mast_tui.workspace.fields import Fields

Values = dict[str, Any]


def trace_values(trace: TraceRecord) -> Values:
    """A trace as plain values; of its path only the file's name."""
    identity = trace.identity
    values: Values = {"id": trace.trace_id}
    if identity is not None:
        values["identity"] = {
            "id": identity.trace_id,
            "content_hash": identity.content_hash,
            "content_bytes": identity.content_bytes,
            "reader": identity.reader,
            "key_scheme": identity.key_scheme,
            "native": identity.native,
        }
    return values | _known(
        file=None if trace.path is None else trace.path.name,
        number=trace.record,
        spans=trace.spans,
        task=trace.task,
        system=trace.system,
        model=trace.model,
        benchmark=trace.benchmark,
        outcome=None if trace.outcome is Outcome.UNKNOWN else trace.outcome.value,
        score=trace.score,
    )


def trace_from(fields: Fields) -> TraceRecord:
    """The trace; raises ``ValueError`` where something is missing or cannot be."""
    file = fields.text_or_none("file")
    return TraceRecord(
        trace_id=fields.text("id"),
        identity=_identity_from(fields.child_or_none("identity")),
        path=None if file is None else Path(Path(file).name),
        record=fields.whole_or_none("number"),
        spans=fields.whole_or_none("spans"),
        task=fields.text_or_none("task"),
        system=fields.text_or_none("system"),
        model=fields.text_or_none("model"),
        benchmark=fields.text_or_none("benchmark"),
        outcome=fields.word("outcome", Outcome, Outcome.UNKNOWN),
        score=fields.number_or_none("score"),
    )


def _identity_from(fields: Fields | None) -> TraceIdentity | None:
    if fields is None:
        return None
    return TraceIdentity(
        trace_id=fields.text("id"),
        content_hash=fields.text("content_hash"),
        content_bytes=fields.whole("content_bytes"),
        reader=fields.text("reader"),
        key_scheme=fields.whole("key_scheme"),
        native=fields.flag("native", False),
    )


def run_values(run: Run) -> Values:
    """A run of a judge as plain values."""
    return {
        "id": run.id,
        "judge": run.judge,
        "taxonomy": run.taxonomy,
        "started_at": run.started_at,
        **_known(finished_at=run.finished_at, note=run.note or None),
        "traces": [
            {
                "id": trace.trace_id,
                "findings": trace.findings,
                **_known(problem=trace.problem),
            }
            for trace in run.traces
        ],
    }


def run_from(fields: Fields) -> Run:
    """The run; raises ``ValueError`` where something is missing or cannot be."""
    return Run(
        id=fields.text("id"),
        judge=fields.text("judge"),
        taxonomy=fields.text("taxonomy"),
        started_at=fields.text("started_at"),
        finished_at=fields.text_or_none("finished_at"),
        note=fields.text("note", ""),
        traces=tuple(
            RunTrace(trace.text("id"), trace.whole("findings"), trace.text_or_none("problem"))
            for trace in fields.children("traces")
        ),
    )


def _known(**values: object) -> Values:
    return {name: value for name, value in values.items() if value is not None}
