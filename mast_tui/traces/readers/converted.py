"""Traces in the project's own format, as ``mast-tui convert`` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeVar

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.json_values import as_number, as_text, canonical_bytes, dump_text, tokens_of
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Outcome,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    Trace,
    TraceIdentity,
    TraceMeta,
)
from mast_tui.traces.native_format import FORMAT, OPENING, VERSION
from mast_tui.traces.readers.answer_keys import from_json, sorted_by_name
from mast_tui.traces.readers.base import identity_of
from mast_tui.traces.readers.document_traces import records_by_line, records_in, report_of
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of
from mast_tui.traces.readers.run_facts import clamp_score, task_id_of, trial_of

_HASH_CHARS: Final = 64
_MARK: Final = FORMAT.encode()

Choice = TypeVar("Choice", bound=Enum)


class ConvertedReader:
    """Reads the project's own format; ids and span keys stay those of the first reading."""

    name: Final = "mast-tui"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether a record names the format, however its JSON is spaced or sorted."""
        if source.head.startswith(OPENING) or b"\n" + OPENING in source.head:
            return True
        if _MARK not in source.data:
            return False
        return any(
            fields_of(record.value).get("format") == FORMAT for record in records_in(source, [])
        )

    def read(self, source: Source) -> FileReport:
        """Return a trace for each record."""
        problems: list[Problem] = []
        traces: list[Trace] = []
        by_line = source.head.startswith(OPENING) or b"\n" + OPENING in source.head
        find = records_by_line if by_line else records_in
        lines = list(find(source, problems))
        for record, line in enumerate(lines):
            location = line.location
            value = fields_of(line.value)
            if value.get("format") != FORMAT:
                problems.append(Problem(location, "no trace in this format, left out"))
            elif value.get("version") != VERSION:
                message = f"version {dump_text(value.get('version'))} of the format is not known"
                problems.append(Problem(location, f"{message}; left out: use a newer mast-tui"))
            else:
                number = record if len(lines) > 1 else None
                traces.append(self._trace(source, value, number, location))
        return report_of(self, source, traces, problems)

    def _trace(self, source: Source, value: Fields, record: int | None, location: str) -> Trace:
        steps = StepList()
        problems = [
            Problem(dump_text(problem.get("place")), dump_text(problem.get("message")))
            for problem in items_of(value.get("problems"))
            if isinstance(problem, Mapping)
        ]
        for number, span in enumerate(items_of(value.get("spans"))):
            if isinstance(span, Mapping):
                _add_span(steps, span, f"{location} /spans/{number}")
            else:
                problems.append(Problem(f"{location} /spans/{number}", "no span, left out"))
        return Trace(
            self._identity(source, value, record),
            source.path,
            StepSpans(steps.steps),
            record=record,
            meta=_meta(value),
            problems=problems,
        )

    def _identity(self, source: Source, value: Fields, record: int | None) -> TraceIdentity:
        """Return the identity of the first reading, so that labels of either find the other."""
        content_identity = identity_of(self, source.path, canonical_bytes(value), record=record)
        trace_id = as_text(value.get("id"))
        source_fields = fields_of(value.get("source"))
        digest = as_text(source_fields.get("content_hash"))
        size = source_fields.get("content_bytes")
        reader = as_text(source_fields.get("reader"))
        scheme = source_fields.get("key_scheme")
        if not trace_id or not digest or len(digest) != _HASH_CHARS or not reader:
            return content_identity
        if not isinstance(size, int) or not isinstance(scheme, int):
            return content_identity
        return TraceIdentity(
            trace_id, digest, size, reader, scheme, source_fields.get("native") is True
        )


READER: Final = ConvertedReader()


def _add_span(steps: StepList, span: Fields, location: str) -> None:
    tokens = fields_of(span.get("tokens"))
    steps.add(
        as_text(span.get("key")) or location,
        _choice(SpanKind, span.get("kind"), SpanKind.LOG),
        _choice(Role, span.get("role"), Role.LOG),
        as_text(span.get("agent")) or "log",
        dump_text(span.get("text")),
        place=as_text(span.get("place")) or location,
        name=as_text(span.get("name")),
        parent=as_text(span.get("parent")),
        start=as_number(span.get("start")),
        end=as_number(span.get("end")),
        status=_choice(SpanStatus, span.get("status"), SpanStatus.UNKNOWN),
        tokens=tokens_of(tokens.get("input"), tokens.get("output")),
        shown=as_text(span.get("preview")),
    )


def _meta(value: Fields) -> TraceMeta:
    hidden = fields_of(value.get("hidden"))  # of a file by an older version
    older = sorted_by_name((name, dump_text(text)) for name, text in hidden.items())
    return TraceMeta(
        task=as_text(value.get("task")),
        system=as_text(value.get("system")),
        model=as_text(value.get("model")),
        benchmark=as_text(value.get("benchmark")),
        outcome=_choice(Outcome, value.get("outcome"), Outcome.UNKNOWN),
        score=clamp_score(value.get("score")),
        answer_key=from_json(value["answer_key"]) if "answer_key" in value else older,
        task_id=task_id_of(value.get("task_id")),
        trial=trial_of(value.get("trial")),
        version=as_text(value.get("system_version")),
        started=as_number(value.get("started")),
    )


def _choice(choices: type[Choice], value: object, default: Choice) -> Choice:
    return next((choice for choice in choices if choice.value == value), default)
