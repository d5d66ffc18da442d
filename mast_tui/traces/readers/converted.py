"""The project's own trace format, as ``mast-tui convert`` writes it: its writer and its reader.

A file has JSON lines, one trace a line, with nothing left to look up.
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

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeVar

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import (
    as_number,
    as_text,
    canonical_bytes,
    dump_line,
    dump_text,
    tokens_of,
)
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Outcome,
    Problem,
    Role,
    Span,
    SpanKind,
    SpanStatus,
    Trace,
    TraceIdentity,
    TraceMeta,
)
from mast_tui.traces.preview import call_preview, preview
from mast_tui.traces.readers.base import FormatReader, identity_of
from mast_tui.traces.readers.document_traces import records_by_line, records_in, report_of
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, located_items
from mast_tui.traces.readers.run_facts import (
    answer_key_from_json,
    as_json,
    clamp_score,
    sorted_into_sections,
    task_id_of,
    trial_of,
)

FORMAT: Final = "mast-tui trace"
VERSION: Final = 1
OPENING: Final = b'{"format":"mast-tui trace",'
"""The beginning of every line of the format."""


def line_of(trace: Trace, *, hides_outcomes: bool = False) -> bytes:
    """Return a trace as one line of the project's own format, with its line feed.

    Args:
        trace: The trace; its index must be complete.
        hides_outcomes: Whether to leave out the facts that are hidden from a blind annotator.
    """
    identity = trace.identity
    meta = trace.meta
    hidden = dict(reversed(meta.hidden))  # the first text under each name
    record = {
        "format": FORMAT,
        "version": VERSION,
        "id": identity.trace_id,
        "source": {
            "file": trace.path.name if trace.masks is None else trace.masks.text(trace.path.name),
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
        "outcome": Outcome.UNKNOWN.value if hides_outcomes else meta.outcome.value,
        "score": None if hides_outcomes else meta.score,
        "hidden": {} if hides_outcomes else hidden,
        "answer_key": {} if hides_outcomes else as_json(meta.answer_key),
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
        "preview": _preview_unlike_text(span, text),
        "text": text,
    }


def _preview_unlike_text(span: Span, text: str) -> str | None:
    """Return the preview of a span, unless the text alone gives the same preview."""
    usual_preview = call_preview(text) if span.kind is SpanKind.TOOL_CALL else preview(text)
    return None if usual_preview == (span.preview, span.preview_is_complete) else span.preview


_HASH_CHARS: Final = 64
_FORMAT_MARK: Final = FORMAT.encode()

Choice = TypeVar("Choice", bound=Enum)


def _is_by_line(source: Source) -> bool:
    """Return whether a line of the head begins like a trace of this program."""
    head = as_utf8(source.head)
    return head.startswith(OPENING) or b"\n" + OPENING in head


def _recognises(source: Source) -> bool:
    """Return whether a record names the format, in any order and spacing of its JSON."""
    return _is_by_line(source) or (
        _FORMAT_MARK in source.utf8
        and any(
            fields_of(record.value).get("format") == FORMAT for record in records_in(source, [])
        )
    )


def _read(source: Source) -> FileReport:
    """Return the report on a file, with a trace for each record."""
    problems: list[Problem] = []
    traces: list[Trace] = []
    read_records = records_by_line if _is_by_line(source) else records_in
    records = list(read_records(source, problems))
    for record_index, record in enumerate(records):
        location = record.location
        value = fields_of(record.value)
        if value.get("format") != FORMAT:
            problems.append(Problem(location, "no trace in this format, left out"))
        elif value.get("version") != VERSION:
            message = f"version {dump_text(value.get('version'))} of the format is not known"
            problems.append(Problem(location, f"{message}; left out: use a newer mast-tui"))
        else:
            number = record_index if len(records) > 1 else None
            traces.append(_trace_of_record(source, value, number, location))
    return report_of(READER, source, traces, problems)


def _trace_of_record(source: Source, value: Fields, number: int | None, location: str) -> Trace:
    """Return the trace of a record; its number is None for the only record of a file."""
    steps = StepList()
    problems = [
        _problem_of(problem, f"{location} /problems/{problem_index}")
        for problem_index, problem in enumerate(items_of(value.get("problems")))
    ]
    for span_location, span in located_items(value.get("spans"), f"{location} /spans"):
        if isinstance(span, Mapping):
            _add_span(steps, span, span_location)
        else:
            problems.append(Problem(span_location, "no span, left out"))
    return Trace(
        _original_identity(source, value, number),
        source.path,
        StepSpans(steps.steps),
        record=number,
        meta=_meta_of_record(value),
        problems=problems,
    )


def _original_identity(source: Source, value: Fields, number: int | None) -> TraceIdentity:
    """Return the identity of the trace in its original file, so that labels fit both files.

    If a part of it is missing, the identity is made of the record's content.
    """
    content_identity = identity_of(READER, source.path, canonical_bytes(value), record=number)
    trace_id = as_text(value.get("id"))
    source_fields = fields_of(value.get("source"))
    digest = as_text(source_fields.get("content_hash"))
    size = source_fields.get("content_bytes")
    reader = as_text(source_fields.get("reader"))
    scheme = source_fields.get("key_scheme")
    if not trace_id or not reader or not digest or len(digest) != _HASH_CHARS:
        return content_identity
    if not isinstance(size, int) or not isinstance(scheme, int):
        return content_identity
    return TraceIdentity(
        trace_id, digest, size, reader, scheme, source_fields.get("native") is True
    )


READER: Final = FormatReader("mast-tui", _recognises, _read)
"""Reads the project's own format; ids and span keys remain those of the original file."""


def _add_span(steps: StepList, span: Fields, location: str) -> None:
    """Add a span with its fields in the record; a missing kind or role is that of a log."""
    tokens = fields_of(span.get("tokens"))
    steps.add(
        as_text(span.get("key")) or location,
        _member_or_default(SpanKind, span.get("kind"), SpanKind.LOG),
        _member_or_default(Role, span.get("role"), Role.LOG),
        as_text(span.get("agent")) or "log",
        dump_text(span.get("text")),
        place=as_text(span.get("place")) or location,
        name=as_text(span.get("name")),
        parent=as_text(span.get("parent")),
        start=as_number(span.get("start")),
        end=as_number(span.get("end")),
        status=_member_or_default(SpanStatus, span.get("status"), SpanStatus.UNKNOWN),
        tokens=tokens_of(tokens.get("input"), tokens.get("output")),
        shown=as_text(span.get("preview")),
    )


def _problem_of(value: object, location: str) -> Problem:
    """Return a recorded problem; a value without a message is itself a problem."""
    fields = fields_of(value)
    message = dump_text(fields.get("message"))
    if not message.strip():
        return Problem(location, "no message of a problem, left out")
    return Problem(dump_text(fields.get("place")), message)


def _meta_of_record(value: Fields) -> TraceMeta:
    """Return the facts of the run in a record, without facts of a wrong form."""
    if "answer_key" in value:
        answer_key = answer_key_from_json(value["answer_key"])
    else:  # a file by an older version
        entries = fields_of(value.get("hidden")).items()
        answer_key = sorted_into_sections((name, dump_text(text)) for name, text in entries)
    return TraceMeta(
        task=as_text(value.get("task")),
        system=as_text(value.get("system")),
        model=as_text(value.get("model")),
        benchmark=as_text(value.get("benchmark")),
        outcome=_member_or_default(Outcome, value.get("outcome"), Outcome.UNKNOWN),
        score=clamp_score(value.get("score")),
        answer_key=answer_key,
        task_id=task_id_of(value.get("task_id")),
        trial=trial_of(value.get("trial")),
        version=as_text(value.get("system_version")),
        started=as_number(value.get("started")),
    )


def _member_or_default(members: type[Choice], value: object, default: Choice) -> Choice:
    return next((member for member in members if member.value == value), default)
