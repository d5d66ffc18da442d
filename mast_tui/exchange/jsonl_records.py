"""Traces and runs of judges as plain values of a ``jsonl`` line, and back.

What is not known is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import Run, RunTrace, TraceRecord
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.events.run_values import (
    kinds_from,
    kinds_to_dict,
    settings_from,
    settings_to_dict,
    usage_from,
    usage_to_dict,
)

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
        version=trace.version,
        started=trace.started,
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
        version=fields.text_or_none("version"),
        started=fields.number_or_none("started"),
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
        **_known(
            finished_at=run.finished_at,
            note=run.note or None,
            ending=run.ending,
            settings=run.settings and settings_to_dict(run.settings),
            form=run.settings and run.settings.form,
            usage=usage_to_dict(run.usage) or None,
        ),
        "traces": [_run_trace_values(trace) for trace in run.traces],
    }


def _run_trace_values(trace: RunTrace) -> Values:
    return {
        "id": trace.trace_id,
        "findings": trace.findings,
        **_known(
            problem=trace.problem,
            quotes=trace.quotes.all or None,
            verified=trace.quotes.found or None,
            quote_kinds=kinds_to_dict(trace.quotes) or None,
            windows=trace.windows or None,
            remarks=list(trace.remarks) or None,
        ),
    }


def run_from(fields: Fields) -> Run:
    """The run; raises ``ValueError`` where something is missing or cannot be."""
    settings = fields.child_or_none("settings")
    form = fields.text_or_none("form")
    return Run(
        id=fields.text("id"),
        judge=fields.text("judge"),
        taxonomy=fields.text("taxonomy"),
        started_at=fields.text("started_at"),
        finished_at=fields.text_or_none("finished_at"),
        note=fields.text("note", ""),
        traces=tuple(map(_run_trace_from, fields.children("traces"))),
        settings=None if settings is None else settings_from(settings, form=form),
        usage=usage_from(fields.child_or_none("usage")),
        ending=fields.text_or_none("ending"),
    )


def _run_trace_from(fields: Fields) -> RunTrace:
    return RunTrace(
        fields.text("id"),
        fields.whole("findings"),
        fields.text_or_none("problem"),
        kinds_from(
            fields.child_or_none("quote_kinds"),
            quotes=fields.whole_or_none("quotes") or 0,
            found=fields.whole_or_none("verified") or 0,
        ),
        fields.whole_or_none("windows") or 0,
        fields.texts("remarks"),
    )


def share_from(fields: Fields) -> tuple[int, float]:
    """A share of traces that is set aside, with its seed; raises ``ValueError`` for no share."""
    share = fields.number_or_none("share")
    if share is None or not 0 < share < 1:
        raise ValueError(f"a share of traces lies between 0 and 1, not at {share}")
    return fields.whole("seed"), share


def _known(**values: object) -> Values:
    return {name: value for name, value in values.items() if value is not None}
