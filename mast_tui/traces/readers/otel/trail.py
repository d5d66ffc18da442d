"""TRAIL's traces: OpenInference spans as a tree, each with its children in it.

Every span of such a file has a span under its bare id: TRAIL's labels name them. The labels lie in
a file of their own as a rule; those carried in the trace's file are hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.index.document import StepSpans
from mast_tui.traces.io.json_values import as_text, canonical_bytes
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.answer_keys import answer_key_of
from mast_tui.traces.readers.json_documents import read_lines
from mast_tui.traces.readers.json_fields import Fields
from mast_tui.traces.readers.otel.reader import rows_of, system_of
from mast_tui.traces.readers.otel.spans import OtelSpan, span_of, trace_id
from mast_tui.traces.readers.run_facts import task_of
from mast_tui.traces.readers.span_tree.steps import observed_steps

_MARKS: Final = (b'"child_spans"', b'"span_attributes"', b'"parent_span_id"', b'"span_name"')
_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True)
class TrailReader:
    """Reads trees of spans; span keys begin with the span's id."""

    name: ClassVar[str] = "trail"
    key_scheme: ClassVar[int] = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file, or the first of its lines, is a trace with spans in each other."""
        if not any(mark in source.head for mark in _MARKS):
            return False
        if head := source.json_lines:
            return any(map(_is_trace, head))
        document = source.json
        if isinstance(document, list):
            return any(map(_is_trace, document[:_LOOKED_AT]))
        return _is_trace(document)

    def read(self, source: Source) -> FileReport:
        """One trace per record; elements that are none are listed as problems."""
        problems: list[Problem] = []
        traces = []
        for value, record, place in _records(source, problems):
            if isinstance(value, Mapping) and _is_trace(value):
                traces.append(self._trace(source, value, record, place))
            else:
                problems.append(Problem(place.strip() or "/", "no trace of spans, left out"))
        return FileReport(
            source.path, format=self.name, traces=tuple(traces), problems=tuple(problems)
        )

    def _trace(self, source: Source, value: Fields, record: int | None, place: str) -> Trace:
        problems: list[Problem] = []
        spans = list(_spans(value.get("spans"), f"{place}/spans", problems))
        rows = rows_of(spans)
        observed = observed_steps(rows, every_row=True)
        content = source.data if record is None else canonical_bytes(value)
        identity = identity_by_content(
            source.path, record, content, reader=self.name, key_scheme=self.key_scheme
        )
        if native := trace_id(value.get("trace_id")):
            identity = replace(identity, trace_id=native, native=True)
        meta = TraceMeta(
            task=task_of(value.get("task"), steps=observed.steps.steps),
            system=system_of(spans),
            model=next((row.model for row in rows if row.model), None),
            benchmark=as_text(value.get("benchmark")),
            answer_key=answer_key_of(value, {"errors": "failures"}),
        )
        return Trace(
            identity,
            source.path,
            StepSpans(observed.steps.steps),
            record=record,
            meta=meta,
            problems=problems,
        )


READER: Final = TrailReader()


def _is_trace(value: object) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("spans"), list):
        return False
    return any(
        isinstance(span, Mapping)
        and "span_id" in span
        and ("child_spans" in span or ("span_attributes" in span and "span_name" in span))
        for span in value["spans"][:_LOOKED_AT]
    )


def _records(source: Source, problems: list[Problem]) -> Iterator[tuple[object, int | None, str]]:
    """The records of a file, each with its number and its place; a sole one has no number."""
    if source.json_lines:
        for line in read_lines(source, problems):
            yield line.value, line.record, f"line {line.number} "
        return
    document = source.json
    if isinstance(document, list):
        for record, value in enumerate(document):
            yield value, record, f"/{record}"
    else:
        yield document, None, ""


def _spans(value: object, place: str, problems: list[Problem]) -> Iterator[OtelSpan]:
    """The spans of a tree, parents first; a child belongs to the span that it stands in."""
    waiting: list[tuple[object, str, str | None]] = [(value, place, None)]
    while waiting:
        spans, within, parent = waiting.pop()
        if not isinstance(spans, list):
            if spans is not None:
                problems.append(Problem(within, "not a list of spans, left out"))
            continue
        for number, one in enumerate(spans):
            at = f"{within}/{number}"
            if not isinstance(one, Mapping):
                problems.append(Problem(at, "not a span but a bare value, left out"))
                continue
            span = span_of(one, at)
            span.parent = parent or span.parent
            if span.id is None:
                problems.append(Problem(at, "a span without an id"))
            yield span
            waiting.append((one.get("child_spans"), f"{at}/child_spans", span.id or at))
