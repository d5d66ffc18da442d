"""The texts of a workspace's traces, for formats that carry what was labelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord, Workspace


@dataclass(frozen=True, slots=True)
class SpanText:
    """One span: its key, who speaks in it and as what, and its whole text as read."""

    key: str
    author: str
    text: str


TextsOf = Callable[[str], tuple[SpanText, ...] | None]
"""The spans of a trace, by its id; None where its file is not at hand."""


def texts_of(trace: Trace) -> tuple[SpanText, ...]:
    """The spans of a trace that has been read to its end."""
    found = []
    for index in range(len(trace)):
        span = trace.span(index)
        words = (f"#{index + 1}", span.agent, span.kind.value, span.name or "")
        found.append(SpanText(span.key, " ".join(filter(None, words)), trace.text(index)))
    return tuple(found)


def texts_from_files(workspace: Workspace) -> TextsOf:
    """The texts of the workspace's traces, read from their files when asked for.

    A trace whose file has gone, cannot be read or holds something else now is not at hand.
    """
    records = {record.trace_id: record for record in workspace.traces()}

    def texts(trace_id: str) -> tuple[SpanText, ...] | None:
        record = records.get(trace_id)
        if record is None or record.path is None or not record.path.exists():
            return None
        for trace in read_file(record.path, named=True).traces:
            here = workspace.find_trace(TraceRecord.of(trace))
            if here is not None and here.trace_id == trace_id:
                read_fully(trace)
                return texts_of(trace)
        return None

    return texts
