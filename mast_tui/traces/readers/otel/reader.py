"""OpenTelemetry traces: OTLP as JSON, spans as an SDK prints them, and Phoenix's exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from mast_tui.traces.io.json_values import as_text, canonical_bytes, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, FileReport, Problem, Trace, TraceMeta
from mast_tui.traces.readers.document_traces import report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import Fields, fields_of, text_in
from mast_tui.traces.readers.otel.conventions import row_of
from mast_tui.traces.readers.otel.documents import RawRecord, layout_of, raw_spans
from mast_tui.traces.readers.otel.spans import (
    Attributes,
    OtelSpan,
    SpanEvent,
    event_of,
    seconds_of_time,
    span_id,
    span_of,
    trace_id,
)
from mast_tui.traces.readers.run_facts import AnswerKeyDraft, task_of
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow
from mast_tui.traces.readers.span_tree.steps import observed_steps

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
_SYSTEM_ATTRIBUTES: Final = ("any_agent.", "gcp.vertex.agent.")
_EVALUATION: Final = "gen_ai.evaluation.result"
_ANNOTATION_PREFIXES: Final = ("eval.", "annotations")
"""The prefixes of Phoenix's columns with annotations of spans."""


@dataclass(frozen=True, slots=True)
class _LogRecord:
    """A log record, and the id of the span within which it was written."""

    raw: RawRecord
    span_id: str | None
    event: SpanEvent


@dataclass(slots=True)
class _Run:
    """The spans and log records of one trace; ``contents`` has the JSON objects of both."""

    trace_id: str | None
    spans: list[OtelSpan] = field(default_factory=list)
    logs: list[_LogRecord] = field(default_factory=list)
    contents: list[Fields] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OtelReader:
    """Reads spans; span keys are span ids followed by the part of the span.

    The keys of tool calls and results are their call ids, those of log records their locations.
    """

    name: ClassVar[str] = "otel"
    key_scheme: ClassVar[int] = 1

    def recognises(self, source: Source) -> bool:
        """Return whether the file, or its first lines, hold spans or log records."""
        return layout_of(source) is not None

    def read(self, source: Source) -> FileReport:
        """Return a trace for each trace id; all spans without a trace id are one trace."""
        problems: list[Problem] = []
        runs = _runs_by_trace(raw_spans(source, problems), problems)
        traces = [
            self._trace_of_run(source, run, None if len(runs) == 1 else run_index)
            for run_index, run in enumerate(runs)
        ]
        return report_of(self, source, traces, problems, layout_of(source))

    def _trace_of_run(self, source: Source, run: _Run, record: int | None) -> Trace:
        """Return the trace of a run; ``record`` is its number, None for the only run of a file."""
        content = source.data if record is None else canonical_bytes(run.contents)
        rows = rows_of(run.spans) + [_log_row(log) for log in run.logs]
        service = next((span.service for span in run.spans if span.service), None)
        problems: list[Problem] = []
        steps = observed_steps(rows, service=service, problems=problems)
        meta = TraceMeta(
            task=task_of(steps=steps.steps),
            system=system_of(run.spans),
            model=next((row.model for row in rows if row.model), None),
            answer_key=_answer_key(run),
            version=next((span.version for span in run.spans if span.version), None),
        )
        return trace_of_steps(
            self,
            source.path,
            content,
            steps,
            meta=meta,
            record=record,
            native=run.trace_id,
            problems=problems,
        )


READER: Final = OtelReader()


def rows_of(spans: Sequence[OtelSpan]) -> list[SpanRow]:
    """Return the rows of the spans of one trace.

    If no span follows a known convention, the output of each row is the span's attributes.
    """
    rows = [row_of(span, span.id or span.location) for span in spans]
    if any(row is not None for row in rows):
        return [row or _row_without_convention(span) for row, span in zip(rows, spans, strict=True)]
    return [
        replace(_row_without_convention(span), output=_span_description(span)) for span in spans
    ]


def _row_without_convention(span: OtelSpan) -> SpanRow:
    return span.row(span.id or span.location, RowKind.OTHER)


def system_of(spans: Sequence[OtelSpan]) -> str | None:
    """Return the framework whose mark is in a name of a span, else the service; None without."""
    for span in spans:
        attribute_names = (name for name in span.attributes if name.startswith(_SYSTEM_ATTRIBUTES))
        for name in (span.scope, span.service, *attribute_names):
            lower_name = (name or "").lower()
            for mark, system in _SYSTEM_BY_MARK:
                if mark in lower_name:
                    return system
    return next((span.service for span in spans if span.service), None)


def _answer_key(run: _Run) -> AnswerKey:
    """Return the scores and explanations of evaluation events, and the annotations in the file."""
    draft = AnswerKeyDraft()
    for span in run.spans:
        for event in span.events:
            if event.name == _EVALUATION:
                attributes = dict(event.attributes)
                name = as_text(attributes.pop("gen_ai.evaluation.name", None)) or "evaluation"
                explanation = attributes.pop("gen_ai.evaluation.explanation", None)
                draft.add("explanations", f"{name} explanation", explanation)
                draft.add("scores", name, _attribute_lines(attributes))
    for content in run.contents:
        for name, value in content.items():
            if name.startswith(_ANNOTATION_PREFIXES):
                draft.add_score(name, value)
    return draft.key()


def _span_description(span: OtelSpan) -> str:
    """Return a span's attributes and its events as text, one attribute a line."""
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
    for run in runs.values():
        run.logs = [log for log in run.logs if not _move_to_span(log, run, spans_by_ids)]
    return list(runs.values())


def _move_to_span(
    log: _LogRecord, run: _Run, spans_by_ids: dict[tuple[str | None, str], OtelSpan]
) -> bool:
    """Add a log record of the ``gen_ai`` conventions to its span; return whether it was added.

    If the file lacks the span, the record creates one; an evaluation is added to the first span.
    """
    if log.span_id is None or not log.event.name.startswith("gen_ai."):
        return False
    span = spans_by_ids.get((run.trace_id, log.span_id))
    if span is None and log.event.name == _EVALUATION:
        span = run.spans[0] if run.spans else None
    if span is None:
        attributes = {"gen_ai.operation.name": "chat"}
        value = {"spanId": log.span_id, "name": "chat", "attributes": attributes}
        raw = log.raw
        span = span_of(value, raw.location, resource=raw.resource, scope=raw.scope)
        span.start = _time_of_log(raw)
        spans_by_ids[run.trace_id, log.span_id] = span
        run.spans.append(span)
    span.events.append(log.event)
    return True


def _log_row(log: _LogRecord) -> SpanRow:
    """Return the row of a log record; its output is its content and its attributes."""
    severity = text_in(fields_of(log.raw.value), "severityText", "severity_text")
    attributes = dict(log.event.attributes)
    content = dump_text(attributes.pop("content", None))
    name = log.event.name or severity or "log"
    return SpanRow(
        id=log.raw.location,
        parent=log.span_id,
        kind=RowKind.OTHER,
        name=name,
        location=log.raw.location,
        start=_time_of_log(log.raw),
        output="\n".join(filter(None, (content, _attribute_lines(attributes)))) or log.event.name,
        has_readable_output=True,
    )


def _time_of_log(raw: RawRecord) -> float | None:
    names = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano")
    times = map(seconds_of_time, map(fields_of(raw.value).get, names))
    return next((time for time in times if time is not None), None)
