"""OpenTelemetry traces: OTLP as JSON, spans as an SDK prints them, and Phoenix's exports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import (
    as_text,
    canonical_bytes,
    dump_text,
    without_surrogates,
)
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, FileReport, Problem, SpanStatus, Trace, TraceMeta
from mast_tui.traces.readers.base import FormatReader
from mast_tui.traces.readers.document_traces import RunOrigin, records_by_line, report_of
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    json_in,
    names,
    text_in,
)
from mast_tui.traces.readers.otel.conventions import (
    CALL_ID_ATTRIBUTES,
    flattened_messages,
    row_of,
)
from mast_tui.traces.readers.otel.dialects import claude_event_name, row_of_claude_event
from mast_tui.traces.readers.otel.spans import (
    Attributes,
    OtelSpan,
    SpanEvent,
    attributes_of,
    call_attributes_of,
    event_of,
    gen_ai_events_of,
    is_phoenix_span,
    looks_like_log_record,
    looks_like_span,
    seconds_of_time,
    span_id,
    span_of,
    trace_id,
)
from mast_tui.traces.readers.run_facts import AnswerKeyDraft
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow
from mast_tui.traces.readers.span_tree.steps import trace_of_rows

_MARKS: Final = tuple(
    f'"{name}"'.encode()
    for name in names("""
        resourceSpans resource_spans resourceLogs resource_logs scopeSpans spanId span_id
        context.span_id
    """)
)
_MARK_IN_TEXT: Final = b'\\"spanId\\"'
"""The field of a span in the text of a log event."""
_OTLP_RESOURCE_SPANS: Final = ("resourceSpans", "resource_spans")
_RESOURCE_SPANS: Final = (*_OTLP_RESOURCE_SPANS, "batches")
_SCOPE_SPANS: Final = names(
    "scopeSpans scope_spans instrumentationLibrarySpans instrumentation_library_spans"
)
_MOST_DIGITS_OF_SECONDS: Final = 11
_RESOURCE_LOGS: Final = ("resourceLogs", "resource_logs")


class _OtlpLayout(NamedTuple):
    """The names of OTLP's lists of resources, of scopes, and of records within scopes."""

    resources: tuple[str, ...]
    scopes: tuple[str, ...]
    records: tuple[str, ...]
    is_log: bool


_SPAN_LAYOUT: Final = _OtlpLayout(_RESOURCE_SPANS, _SCOPE_SPANS, ("spans",), is_log=False)
_LOG_LAYOUT: Final = _OtlpLayout(
    _RESOURCE_LOGS,
    ("scopeLogs", "scope_logs", "instrumentationLibraryLogs"),
    ("logRecords", "log_records", "logs"),
    is_log=True,
)
_OTHER_SIGNALS: Final = frozenset({"resourceMetrics", "resource_metrics"})
_COMPARED_ITEMS: Final = 20
_MAX_SKIPS: Final = 50

_NEXT_OBJECT: Final = re.compile(rb"\n\}[ \t\r]*\n\s*\{")
"""The end of an indented object and the beginning of the next object."""

_BIG_ID: Final = re.compile(r'("trace_id"\s*:\s*)(\d{19,})')
"""A trace id as a number with more digits than most JSON parsers keep."""


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A span or a log record of the file, with the attributes of its resource and its scope."""

    value: object
    location: str
    resource: Attributes = field(default_factory=dict)
    scope: str | None = None
    is_log: bool = False


def layout_of(source: Source) -> str | None:
    """Return ``otlp``, ``otel-spans`` or ``phoenix``; None for a file of another format."""
    head = as_utf8(source.head)
    if head.lstrip()[:1] not in (b"{", b"[") or not any(
        mark in head for mark in (*_MARKS, _MARK_IN_TEXT)
    ):
        return None
    if values := source.json_lines:
        return next(filter(None, map(_layout_of_value, values)), None)
    if _is_concatenated(source):
        _line, first_value = next(_concatenated_values(source, []), (0, None))
        return _layout_of_value(first_value)
    return _layout_of_value(_whole_document(source))


def raw_spans(source: Source, problems: list[Problem]) -> Iterator[RawRecord]:
    """Yield every span and log record in the order of the file.

    Args:
        source: The file.
        problems: The list to which a problem is added for each omitted value.
    """
    for location, value in _json_values(source, problems):
        yield from _raw_spans_of_value(value, location, problems)


def _json_values(source: Source, problems: list[Problem]) -> Iterator[tuple[str, object]]:
    """Yield the location and the value of each JSON value in a file.

    The location of the only value of a file is empty.
    """
    lines = source.json_lines
    if lines and not _has_big_ids(source):
        for record in records_by_line(source, problems):
            yield record.location, record.value
    elif lines or _is_concatenated(source):
        # This keeps all digits of big ids, so lines with big ids are read in this way too.
        source.damage = ()  # the objects after the first are no damage
        for line, value in _concatenated_values(source, problems):
            yield f"line {line}", value
    else:
        yield "", _whole_document(source)


def _is_concatenated(source: Source) -> bool:
    """Return whether indented objects follow each other with nothing between them."""
    return source.head.lstrip()[:1] == b"{" and _NEXT_OBJECT.search(source.data) is not None


def _has_big_ids(source: Source) -> bool:
    return _BIG_ID.search(source.head.decode("utf-8", "replace")) is not None


def _whole_document(source: Source) -> object | None:
    """Return the one JSON value of a file, with all digits of big trace ids."""
    if _has_big_ids(source):
        with suppress(ValueError, RecursionError):
            return without_surrogates(json.loads(source.utf8))
    return source.json


def _concatenated_values(source: Source, problems: list[Problem]) -> Iterator[tuple[int, object]]:
    """Yield consecutive JSON values with their first lines.

    Any other text is a problem, and is skipped up to the next line that begins with a brace.
    """
    text = as_utf8(source.data).decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    position = 0
    line = 1
    skip_count = 0
    while True:
        begin = position
        while begin < len(text) and text[begin] in " \t\r\n,":
            begin += 1
        line += text.count("\n", position, begin)
        if begin == len(text):
            return

        position = begin
        reason = "not JSON"
        is_read = False
        if text[begin] in "{[":
            try:
                # ``load_json`` does not report the end of the value.
                value, position = decoder.raw_decode(text, begin)
                yield line, without_surrogates(value)
                is_read = True
            except RecursionError:
                reason = "nested too deeply"
            except ValueError as error:
                reason = f"not JSON: {error}"

        if not is_read:
            skip_count += 1
            next_object = text.find("\n{", begin)
            stops_here = next_object < 0 or skip_count == _MAX_SKIPS
            consequence = "the rest is left out" if stops_here else "read on at the next object"
            problems.append(Problem(f"line {line}", f"{reason}; {consequence}"))
            if stops_here:
                return
            position = next_object
        line += text.count("\n", begin, position)


def _layout_of_value(value: object) -> str | None:
    """Return the layout of a JSON value with spans or log records."""
    if isinstance(value, Mapping):
        if _first_list(value, _RESOURCE_SPANS) and _is_otlp_request(value):
            return "otlp"
        if any(isinstance(value.get(name), list) for name in _RESOURCE_LOGS):
            return "otlp"
        if isinstance(value.get("context.span_id"), Mapping):
            return "phoenix"  # a table, whose columns are objects
    elif isinstance(value, list) and value and _is_otlp_request(value[0]):
        return "otlp"
    first_items = [
        item for items in _span_lists(value).values() for item in items[:_COMPARED_ITEMS]
    ]
    spans = list(filter(_is_record, map(_logged_value, first_items)))
    if not spans:
        return None
    return "phoenix" if any(map(is_phoenix_span, spans)) else "otel-spans"


def _is_otlp_request(value: object) -> bool:
    """Return whether a value has spans grouped by resource and scope, like a request of OTLP."""
    fields = fields_of(value)
    if any(isinstance(fields.get(name), list) for name in _OTLP_RESOURCE_SPANS):
        return True
    # Other formats have the field ``batches`` too.
    resources = _first_list(fields, _RESOURCE_SPANS)
    return bool(resources) and all(_first_list(fields_of(item), _SCOPE_SPANS) for item in resources)


def _span_lists(value: object) -> dict[str, list[object]]:
    """Return the lists of spans in a value, by their JSON pointers.

    - A list is the only list.
    - A table has an object of values for each column. Its rows are the only list.
    - Any other object has a list in each field with a span among its first items. Without such a
      field, the object itself is the only span.
    """
    if isinstance(value, list):
        return {"": value}
    if not isinstance(value, Mapping):
        return {}
    columns = value.get("context.span_id")
    if isinstance(columns, Mapping):
        rows: list[object] = [
            {name: column.get(row) for name, column in value.items() if isinstance(column, Mapping)}
            for row in columns
        ]
        return {"": rows}
    if "info" in value:  # a trace of MLflow's
        return {"": [value]}
    lists: dict[str, list[object]] = {
        f"/{name}": items
        for name, items in value.items()
        if isinstance(items, list)
        and any(map(_is_record, map(_logged_value, items[:_COMPARED_ITEMS])))
    }
    return lists or {"": [value]}


def _logged_value(value: object) -> object:
    """Return the span or log record in an event of Amazon CloudWatch; any other value unchanged."""
    record = json_in(first_in(fields_of(value), "raw_otel_json", "@message", "message"))
    return record if _is_record(record) else value


def _is_record(value: object) -> bool:
    return looks_like_span(value) or looks_like_log_record(value)


def _raw_spans_of_value(value: object, prefix: str, problems: list[Problem]) -> Iterator[RawRecord]:
    """Yield the spans and log records of a value; ``prefix`` is its location.

    The location is empty, a line, or a JSON pointer. An item that is no span is a problem, except
    metrics, another signal of OpenTelemetry.
    """
    separator = " " if prefix and "/" not in prefix else ""  # after ``line 3``
    if isinstance(value, list) and any(map(_is_otlp_request, value[:_COMPARED_ITEMS])):
        for item_index, item in enumerate(value):
            yield from _raw_spans_of_value(item, f"{prefix}{separator}/{item_index}", problems)
        return
    if isinstance(value, Mapping) and _layout_of_value(value) == "otlp":
        # A JSON pointer is continued directly, a line after a space.
        yield from otlp_records(value, prefix + separator)
        return
    for pointer, items in _span_lists(value).items():
        is_whole_value = len(items) == 1 and items[0] is value
        for item_index, item in enumerate(items):
            location = f"{prefix}{separator}{pointer}/{item_index}"
            if is_whole_value:
                location = prefix or "/"
            item = _logged_value(item)
            if looks_like_log_record(item):
                yield RawRecord(item, location, is_log=True)
            elif looks_like_span(item) or (len(items) > 1 and "name" in fields_of(item)):
                yield RawRecord(item, location)
            elif _OTHER_SIGNALS.isdisjoint(fields_of(item)):
                problems.append(Problem(location, "no span, left out"))


def otlp_records(value: Fields, prefix: str) -> Iterator[RawRecord]:
    """Yield the spans and log records of an OTLP request.

    Args:
        value: The request.
        prefix: The location of the request, to which JSON pointers are appended.
    """
    for layout in (_SPAN_LAYOUT, _LOG_LAYOUT):
        for group_location, group in _items_with_locations(value, layout.resources, prefix):
            resource = fields_of(group.get("resource"))
            attributes = attributes_of(resource.get("attributes"))
            scope_groups = _items_with_locations(group, layout.scopes, group_location)
            for scope_location, scope_group in scope_groups:
                scopes = (
                    fields_of(scope_group.get(name))
                    for name in ("scope", "instrumentationLibrary", "instrumentation_library")
                )
                scope_name = as_text(next(filter(None, scopes), {}).get("name"))
                list_names = (
                    name for name in layout.records if isinstance(scope_group.get(name), list)
                )
                list_name = next(list_names, "")
                for record_index, record in enumerate(items_of(scope_group.get(list_name))):
                    location = f"{scope_location}/{list_name}/{record_index}"
                    yield RawRecord(record, location, attributes, scope_name, layout.is_log)


def _items_with_locations(
    value: Fields, names: tuple[str, ...], prefix: str
) -> Iterator[tuple[str, Fields]]:
    """Yield the objects in the lists with these names, and their locations."""
    for name in names:
        for item_index, item in enumerate(items_of(value.get(name))):
            if isinstance(item, Mapping):
                yield f"{prefix}/{name}/{item_index}", item


def _first_list(value: Fields, names: tuple[str, ...]) -> list[object]:
    """Return the first list in a field with one of these names, else an empty list."""
    return next((items for name in names if isinstance(items := value.get(name), list)), [])


_SYSTEM_BY_MARK: Final = (
    ("langgraph", "LangGraph"),
    ("langchain", "LangChain"),
    ("smolagents", "smolagents"),
    ("crewai", "CrewAI"),
    ("openai_agents", "OpenAI Agents SDK"),
    ("openai-agents", "OpenAI Agents SDK"),
    ("llama_index", "LlamaIndex"),
    ("llamaindex", "LlamaIndex"),
    ("autogen", "AutoGen"),
    ("agno", "Agno"),
    ("google_adk", "Google ADK"),
    ("gcp.vertex.agent", "Google ADK"),
    ("pydantic-ai", "Pydantic AI"),
    ("pydantic_ai", "Pydantic AI"),
    ("haystack", "Haystack"),
    ("dspy", "DSPy"),
    ("strands", "Strands Agents"),
    ("semantic_kernel", "Semantic Kernel"),
    ("mcp_agent", "mcp-agent"),
    ("any_agent", "any-agent"),
)
_EVALUATION: Final = "gen_ai.evaluation.result"
_ANNOTATION_PREFIXES: Final = ("eval.", "annotations")
"""The prefixes of Phoenix's columns with annotations of spans."""


@dataclass(frozen=True, slots=True)
class _LogRecord:
    """A log record, and the id of the span within which it was written.

    ``step`` is the name of Claude Code's event, if no span has the step.
    """

    raw: RawRecord
    span_id: str | None
    event: SpanEvent
    step: str | None = None


@dataclass(slots=True)
class _Run:
    """The spans and log records of one trace; ``contents`` has the JSON objects of both."""

    trace_id: str | None
    spans: list[OtelSpan] = field(default_factory=list)
    logs: list[_LogRecord] = field(default_factory=list)
    contents: list[Fields] = field(default_factory=list)


def _read(source: Source) -> FileReport:
    """Return a trace for each trace id; all spans without a trace id are one trace."""
    problems: list[Problem] = []
    runs = _runs_by_trace(raw_spans(source, problems), problems)
    traces = [
        _trace_of_run(source, run, None if len(runs) == 1 else run_index)
        for run_index, run in enumerate(runs)
    ]
    return report_of(READER, source, traces, problems, layout_of(source))


def _trace_of_run(source: Source, run: _Run, record: int | None) -> Trace:
    """Return the trace of a run; ``record`` is its number, or None for the only run of a file."""
    content = source.data if record is None else canonical_bytes(run.contents)
    rows = [*rows_of(run.spans), *filter(None, map(_log_row, run.logs))]
    service = next((span.service for span in run.spans if span.service), None)
    first_agent = next((row.agent for row in rows if row.agent), None)
    meta = TraceMeta(
        system=system_of(run.spans) if run.spans else first_agent,
        answer_key=_answer_key(run),
        version=next((span.version for span in run.spans if span.version), None),
    )
    origin = RunOrigin(READER, source.path, content, record, run.trace_id)
    return trace_of_rows(origin, rows, meta, service=service)


READER: Final = FormatReader("otel", lambda source: layout_of(source) is not None, _read)
"""Reads spans; span keys are span ids followed by the part of the span.

The keys of tool calls and results are their call ids, those of log records their locations.
"""


def rows_of(spans: Sequence[OtelSpan]) -> list[SpanRow]:
    """Return the rows of the spans of one trace, and of messages that only agents' spans have."""
    known_rows = [row_of(span, span.id or span.location) for span in spans]
    if not any(known_rows):
        # Without a known convention, the output of each row describes its span.
        return [
            replace(_row_without_convention(span), output=_span_description(span)) for span in spans
        ]
    rows = [
        row or _row_without_convention(span) for row, span in zip(known_rows, spans, strict=True)
    ]
    if any(row.kind is RowKind.MODEL for row in rows):
        return rows
    return [*_agents_messages(spans), *rows]


def _agents_messages(spans: Sequence[OtelSpan]) -> Iterator[SpanRow]:
    """Yield a model's row for each output message of an agent, except the last message.

    Claude's Agent SDK has only spans of agents and tools, which show the calls and the last
    message. Each other message comes right before its next call.
    """
    start_by_call = {span.text("tool.id", *CALL_ID_ATTRIBUTES): span.start for span in spans}
    for span in spans:
        messages = flattened_messages(span, "llm.output_messages", "assistant")
        last_index = len(messages) - 1
        rows: list[SpanRow] = []
        start = span.end
        # The messages are read backwards; ``start`` is the start of the next call.
        for index, message in reversed(list(enumerate(messages))):
            for call in map(fields_of, items_of(message.get("tool_calls"))):
                start = start_by_call.get(identifier_in(call, "id")) or start
            if message.get("content") and index != last_index:
                row = span.row(f"{span.id}/message/{index}", RowKind.MODEL)
                answer = {**message, "tool_calls": None}
                rows.append(
                    replace(
                        row,
                        parent=span.id,
                        start=start,
                        end=start,
                        status=SpanStatus.UNKNOWN,
                        error=None,
                        answer=(answer,),
                    )
                )
        yield from reversed(rows)


def _row_without_convention(span: OtelSpan) -> SpanRow:
    return span.row(span.id or span.location, RowKind.OTHER)


def system_of(spans: Sequence[OtelSpan]) -> str | None:
    """Return the framework with a mark in the name of a span, else the service."""
    for span in spans:
        attribute_names = (
            name for name in span.attributes if name.startswith(("any_agent.", "gcp.vertex.agent."))
        )
        for name in (span.scope, span.service, *attribute_names):
            lower_name = (name or "").lower()
            for mark, system in _SYSTEM_BY_MARK:
                if mark in lower_name:
                    return system
    return next((span.service for span in spans if span.service), None)


def _answer_key(run: _Run) -> AnswerKey:
    """Return the scores of evaluations and annotations."""
    draft = AnswerKeyDraft()
    for span in run.spans:
        for event in span.events:
            if event.name == _EVALUATION:
                other_attributes = dict(event.attributes)
                name = as_text(other_attributes.pop("gen_ai.evaluation.name", None)) or "evaluation"
                explanation = other_attributes.pop("gen_ai.evaluation.explanation", None)
                draft.add("explanations", f"{name} explanation", explanation)
                draft.add("scores", name, _attribute_lines(other_attributes))
    for content in run.contents:
        for name, value in content.items():
            if name.startswith(_ANNOTATION_PREFIXES):
                draft.add_score(name, value)
    return draft.key()


def _span_description(span: OtelSpan) -> str:
    events = (f"event {event.name}\n{_attribute_lines(event.attributes)}" for event in span.events)
    blocks = [_attribute_lines(span.attributes), *events]
    return "\n".join(block.strip() for block in blocks if block)


def _attribute_lines(attributes: Attributes) -> str:
    return "\n".join(f"{name}: {dump_text(value)}" for name, value in attributes.items())


def _runs_by_trace(raws: Iterable[RawRecord], problems: list[Problem]) -> list[_Run]:
    """Return a run with spans and log records for each trace.

    Log records of the ``gen_ai`` conventions become events of the spans that they name.
    """
    runs: dict[str | None, _Run] = {}
    spans_by_ids: dict[tuple[str | None, str], OtelSpan] = {}
    for raw in raws:
        if not isinstance(raw.value, Mapping):
            problems.append(Problem(raw.location, "not a span but a bare value, left out"))
            continue
        if raw.is_log:
            trace = trace_id(raw.value.get("traceId", raw.value.get("trace_id")))
            run = runs.setdefault(trace, _Run(trace))
            log_span_id = span_id(raw.value.get("spanId", raw.value.get("span_id")))
            run.logs.append(_LogRecord(raw, log_span_id, event_of(raw.value)))
        else:
            span = span_of(raw.value, raw.location, resource=raw.resource, scope=raw.scope)
            run = runs.setdefault(span.trace, _Run(span.trace))
            if span.id is None:
                problems.append(Problem(raw.location, "a span without an id"))
            else:
                spans_by_ids.setdefault((span.trace, span.id), span)
            run.spans.append(span)
        run.contents.append(raw.value)
    if not any(run.spans for run in runs.values()):
        runs = _runs_by_session(runs)
    for run in runs.values():
        # Amazon CloudWatch lists the newest record first.
        run.logs.sort(key=lambda log: time_of_log(log.raw) or 0.0)
        run.logs = [log for log in run.logs if not _move_to_span(log, run, spans_by_ids)]
    return list(runs.values())


def _runs_by_session(runs: Mapping[str | None, _Run]) -> dict[str | None, _Run]:
    """Return the log records of files without spans, grouped to runs.

    Each prompt of Claude Code may have its own trace id, so its records are grouped by session.
    """
    runs_by_id: dict[str | None, _Run] = {}
    for run in runs.values():
        for log, content in zip(run.logs, run.contents, strict=True):
            run_id = run.trace_id
            step = claude_event_name(log.event)
            if step is not None:
                attributes = {**log.raw.resource, **log.event.attributes}
                run_id = text_in(attributes, "session.id") or run_id
                log = replace(log, span_id=None, step=step)
            new_run = runs_by_id.setdefault(run_id, _Run(run_id))
            new_run.logs.append(log)
            new_run.contents.append(content)
    return runs_by_id


def _move_to_span(
    log: _LogRecord, run: _Run, spans_by_ids: dict[tuple[str | None, str], OtelSpan]
) -> bool:
    """Add a log record about a call to the call's span, which is made if there is none.

    Return False if the record is about no call, so that it stays in the log.
    """
    events = gen_ai_events_of(log.event)
    attributes = {} if events else call_attributes_of(log.event)
    is_call = events or attributes or log.event.name.startswith("gen_ai.")
    if log.span_id is None or not is_call:
        return False
    span = spans_by_ids.get((run.trace_id, log.span_id))
    if span is None and log.event.name == _EVALUATION and run.spans:
        span = run.spans[0]
    if span is None:
        operation = _operation_of(events)
        if operation is None or attributes.get("openinference.span.kind") == "CHAIN":
            return True  # the record of a chain or a loop repeats the records within it
        span = _span_of_log(log, run, attributes or operation, operation["gen_ai.operation.name"])
        spans_by_ids[run.trace_id, log.span_id] = span
        run.spans.append(span)
    span.attributes = {**attributes, **span.attributes}
    span.events.extend(events or [log.event])
    return True


def _span_of_log(log: _LogRecord, run: _Run, attributes: Attributes, name: object) -> OtelSpan:
    """Return a span with the id, the attributes and the time of a log record."""
    raw = log.raw
    value = {"spanId": log.span_id, "name": name, "attributes": attributes}
    span = span_of(value, raw.location, resource=raw.resource, scope=raw.scope)
    # The record of an agent is written at its end.
    span.start = time_of_log(run.logs[0].raw if name == "invoke_agent" else raw)
    return span


def _operation_of(events: Sequence[SpanEvent]) -> Attributes | None:
    """Return the attributes of the call of a model, tool or agent with these events."""
    if events and events[0].name == "gen_ai.tool.message":
        call_id = events[0].attributes.get("id")
        return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": call_id}
    if any(event.name == "gen_ai.system.message" for event in events):
        return {"gen_ai.operation.name": "invoke_agent"}
    # The events of an agent's loop repeat those of the calls within it.
    if events and not any("finish_reason" in event.attributes for event in events):
        return None
    return {"gen_ai.operation.name": "chat"}


def _log_row(log: _LogRecord) -> SpanRow | None:
    """Return the row of a log record; None for the accepted permission of a call."""
    severity = text_in(fields_of(log.raw.value), "severityText", "severity_text")
    attributes = dict(log.event.attributes)
    content = dump_text(attributes.pop("content", None))
    name = log.event.name or severity or "log"
    row = SpanRow(
        id=log.raw.location,
        parent=log.span_id,
        kind=RowKind.OTHER,
        name=name,
        location=log.raw.location,
        start=time_of_log(log.raw),
        output="\n".join(filter(None, (content, _attribute_lines(attributes)))) or log.event.name,
        has_readable_output=True,
    )
    if log.step is None:
        return row
    return row_of_claude_event(log.step, log.event.attributes, row)


def time_of_log(raw: RawRecord) -> float | None:
    """Return the time of a log record in Unix seconds.

    The size of a number shows its unit, as some programs write milliseconds here. But a number in
    the size of seconds is one of nanoseconds, as the name of the field says.
    """
    names = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano")
    for value in map(fields_of(raw.value).get, names):
        time = seconds_of_time(value)
        if time is not None:
            digits = str(value).strip()
            has_size_of_seconds = digits.isdecimal() and len(digits) <= _MOST_DIGITS_OF_SECONDS
            return time / 1e9 if has_size_of_seconds else time
    return None
