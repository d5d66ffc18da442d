"""The project's own trace format: JSON lines, one trace a line, nothing left to look up.

A line is an object with these fields, in this order::

    format     "mast-tui trace"
    version    1
    id         the trace id
    source     {"file", "record", "reader", "key_scheme", "native", "content_hash",
               "content_bytes"}: where the trace was read from, and by what it is known again
    task, system, model, benchmark    texts or null
    task_id    what the benchmark calls the task, or null
    trial      which of several runs of the task it is, a number from 0, or null
    system_version, started    the version of the system, and when the run began in Unix seconds
               where its spans do not say it; or null
    outcome    "failed", "succeeded" or "unknown"
    score      a number in [0, 1] or null
    hidden     {name: text}: the answer key by names alone, the first of each name
    answer_key {section: [{"name", "text"}]}: what someone working blind must not see: rewards,
               expected actions, ground truth, labels carried in the file; see docs/formats.md
    spans      [{"key", "kind", "role", "agent", "name", "parent", "start", "end", "status",
               "tokens", "place", "preview", "text"}] in reading order
    problems   [{"place", "message"}]: what of the source could not be read

``kind`` is message, reasoning, tool_call, tool_result or log; ``role`` is system, user, agent,
tool or log; ``status`` is ok, error or unknown; ``start`` and ``end`` are Unix seconds or null;
``tokens`` is {"input", "output"}, each a number or null, or null. ``preview`` is the line that
stands for a span whose text begins with what others repeat; null where it is the text's beginning.
"""

from __future__ import annotations

from typing import Final

from mast_tui.traces.io.json_values import dump_line
from mast_tui.traces.model import Outcome, Span, SpanKind, Trace
from mast_tui.traces.preview import call_preview, preview
from mast_tui.traces.readers.answer_keys import as_json

FORMAT: Final = "mast-tui trace"
VERSION: Final = 1
OPENING: Final = b'{"format":"mast-tui trace",'
"""The beginning of every line of the format."""


def line_of(trace: Trace, *, veiled: bool = False) -> bytes:
    """Write the trace as one line of the format, with its line feed.

    Args:
        trace: The trace; its index must be complete.
        veiled: Leave out everything that an annotator working blind must not see.
    """
    identity = trace.identity
    meta = trace.meta
    record = {
        "format": FORMAT,
        "version": VERSION,
        "id": identity.trace_id,
        "source": {
            "file": trace.path.name,
            "record": trace.record,
            "reader": identity.reader,
            "key_scheme": identity.key_scheme,
            "native": identity.native,
            "content_hash": identity.content_hash,
            "content_bytes": identity.content_bytes,
        },
        "task": meta.task,
        "system": meta.system,
        "model": meta.model,
        "benchmark": meta.benchmark,
        "task_id": meta.task_id,
        "trial": meta.trial,
        "system_version": meta.version,
        "started": meta.started,
        "outcome": Outcome.UNKNOWN.value if veiled else meta.outcome.value,
        "score": None if veiled else meta.score,
        "hidden": {} if veiled else dict(reversed(meta.hidden)),
        "answer_key": {} if veiled else as_json(meta.answer_key),
        "spans": [
            _span_fields(trace.span(index), trace.text(index)) for index in range(len(trace))
        ],
        "problems": [
            {"place": problem.place, "message": problem.message} for problem in trace.problems
        ],
    }
    return dump_line(record)


def _span_fields(span: Span, text: str) -> dict[str, object]:
    """Return a span as the fields of the format."""
    return {
        "key": span.key,
        "kind": span.kind.value,
        "role": span.role.value,
        "agent": span.agent,
        "name": span.name,
        "parent": span.parent,
        "start": span.start,
        "end": span.end,
        "status": span.status.value,
        "tokens": None
        if span.tokens is None
        else {"input": span.tokens.input, "output": span.tokens.output},
        "place": span.place,
        "preview": _unusual_preview(span, text),
        "text": text,
    }


def _unusual_preview(span: Span, text: str) -> str | None:
    """Return the preview of a span; None if the text alone gives the same preview."""
    usual_preview = call_preview(text) if span.kind is SpanKind.TOOL_CALL else preview(text)
    return None if usual_preview == (span.preview, span.preview_is_complete) else span.preview
