"""Traces and runs of judges as plain values of a ``jsonl`` line, and back.

What is not known is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace import Run, RunTrace, TraceRecord, Usage
from mast_tui.workspace.events.codec import (
    SETTINGS,
    USAGE,
    quote_kinds_from,
    quote_kinds_to_dict,
)
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.events.layout import Kind, Layout, Values, always, known


def _file_from(fields: Fields, name: str) -> Path | None:
    file = fields.text_or_none(name)
    return None if file is None else Path(Path(file).name)


_NUMBER: Final = Kind(None, Fields.number_or_none)

_IDENTITY: Final = Layout(
    TraceIdentity,
    always("id:trace_id", "content_hash", "content_bytes", "reader", "key_scheme", "native"),
    kinds={
        "native": Kind(None, lambda fields, name: fields.flag(name, False)),
    },
)
TRACE: Final = Layout(
    TraceRecord,
    always("id:trace_id"),
    known("identity", "file:path", "number:record", "spans", "task", "system", "model"),
    known("benchmark", "outcome", "score", "version", "started"),
    kinds={
        "file": Kind(lambda path: path.name, _file_from),
        "outcome": Kind(
            lambda outcome: None if outcome is Outcome.UNKNOWN else outcome.value,
            lambda fields, name: fields.word(name, Outcome, Outcome.UNKNOWN),
        ),
        "score": _NUMBER,
        "started": _NUMBER,
    },
    parts=(_IDENTITY,),
)
"""A trace; of its path only the file's name, and a number as it is."""


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
            settings=run.settings and SETTINGS.write(run.settings),
            form=run.settings and run.settings.form,
            usage=USAGE.write(run.usage) or None,
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
            quote_kinds=quote_kinds_to_dict(trace.quotes) or None,
            windows=trace.windows or None,
            remarks=list(trace.remarks) or None,
        ),
    }


def run_from(fields: Fields) -> Run:
    """The run; raises ``ValueError`` where something is missing or cannot be."""
    settings = fields.child_or_none("settings")
    form, usage = fields.text_or_none("form"), fields.child_or_none("usage")
    return Run(
        id=fields.text("id"),
        judge=fields.text("judge"),
        taxonomy=fields.text("taxonomy"),
        started_at=fields.text("started_at"),
        finished_at=fields.text_or_none("finished_at"),
        note=fields.text("note", ""),
        traces=tuple(map(_run_trace_from, fields.children("traces"))),
        settings=None if settings is None else SETTINGS.read(settings, {"form": form}),
        usage=Usage() if usage is None else USAGE.read(usage),
        ending=fields.text_or_none("ending"),
    )


def _run_trace_from(fields: Fields) -> RunTrace:
    return RunTrace(
        fields.text("id"),
        fields.whole("findings"),
        fields.text_or_none("problem"),
        quote_kinds_from(
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
