"""TRAIL's traces: OpenInference spans as a tree, with the children inside their parents.

Every span has its bare id as a key, because TRAIL's labels name these ids. Labels in the trace's
file are hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.document_traces import Record, RunOrigin, records_in, report_of
from mast_tui.traces.readers.json_fields import fields_of, items_of, located_items
from mast_tui.traces.readers.otel.reader import rows_of, system_of
from mast_tui.traces.readers.otel.spans import OtelSpan, span_of, trace_id
from mast_tui.traces.readers.run_facts import answer_key_of
from mast_tui.traces.readers.span_tree.steps import trace_of_rows

_MARKS: Final = (b'"child_spans"', b'"span_attributes"', b'"parent_span_id"', b'"span_name"')
_COMPARED_ITEMS: Final = 20


def _recognises(source: Source) -> bool:
    """Return whether the file, or one of its first lines, is a trace with nested spans."""
    if not any(mark in as_utf8(source.head) for mark in _MARKS):
        return False
    records = (record.value for record in islice(records_in(source, []), _COMPARED_ITEMS))
    return any(map(_is_span_tree, source.json_lines or records))


def _read(source: Source) -> FileReport:
    """Return a trace for each record that is one; other records are problems."""
    problems: list[Problem] = []
    traces = []
    for record in records_in(source, problems):
        if _is_span_tree(record.value):
            traces.append(_trace_of_record(source, record))
        else:
            problems.append(Problem(record.location, "no trace of spans, left out"))
    return report_of(READER, source, traces, problems)


def _trace_of_record(source: Source, record: Record) -> Trace:
    value = fields_of(record.value)
    problems: list[Problem] = []
    spans = list(_spans_of_tree(value.get("spans"), f"{record.prefix}/spans", problems))
    meta = TraceMeta(
        task=as_text(value.get("task")),
        system=system_of(spans),
        benchmark=as_text(value.get("benchmark")),
        answer_key=answer_key_of(value, {"errors": "failures"}),
    )
    native_id = trace_id(value.get("trace_id"))
    origin = RunOrigin(READER, source.path, record.content(source), record.number, native_id)
    return trace_of_rows(origin, rows_of(spans), meta, every_row=True, problems=problems)


READER: Final = FormatReader("trail", _recognises, _read)
"""Reads trees of spans; span keys begin with the span's id."""


def _is_span_tree(value: object) -> bool:
    """Return whether one of the first ``spans`` of an object has fields of TRAIL's spans."""
    first_spans = items_of(fields_of(value).get("spans"))[:_COMPARED_ITEMS]
    return any(
        "span_id" in span
        and ("child_spans" in span or {"span_attributes", "span_name"} <= span.keys())
        for span in map(fields_of, first_spans)
    )


def _spans_of_tree(spans: object, location: str, problems: list[Problem]) -> Iterator[OtelSpan]:
    """Yield the spans of a tree, parents first.

    ``location`` is the location of the list ``spans``. A value that is no span is a problem.
    """
    lists_to_read: list[tuple[object, str, str | None]] = [(spans, location, None)]
    while lists_to_read:
        siblings, list_location, parent_id = lists_to_read.pop()
        if not isinstance(siblings, list):
            if siblings is not None:
                problems.append(Problem(list_location, "not a list of spans, left out"))
            continue
        for pointer, value in located_items(siblings, list_location):
            if not isinstance(value, Mapping):
                problems.append(Problem(pointer, "not a span but a bare value, left out"))
                continue
            span = span_of(value, pointer)
            span.parent = parent_id or span.parent
            if span.id is None:
                problems.append(Problem(pointer, "a span without an id"))
            yield span
            children = value.get("child_spans")
            lists_to_read.append((children, f"{pointer}/child_spans", span.id or pointer))
