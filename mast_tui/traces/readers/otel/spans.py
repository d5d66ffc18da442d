"""One OpenTelemetry span, whichever exporter wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.otel.values import (
    Attributes,
    any_value,
    attributes_of,
    dotted,
    duration,
    json_in,
    moment,
    span_id,
    trace_id,
)
from mast_tui.traces.readers.span_tree.builder import Row, RowKind

_KINDS: Final = frozenset(
    {
        "LLM",
        "TOOL",
        "AGENT",
        "CHAIN",
        "RETRIEVER",
        "EMBEDDING",
        "RERANKER",
        "GUARDRAIL",
        "EVALUATOR",
        "PROMPT",
    }
)
_TRACE: Final = ("traceId", "trace_id", "context.trace_id", "traceID")
_SPAN: Final = ("spanId", "span_id", "context.span_id", "spanID")
_PARENT: Final = ("parentSpanId", "parent_span_id", "parent_id", "parentId", "parentSpanID")
_NAME: Final = ("name", "span_name")
_START: Final = (
    "startTimeUnixNano",
    "start_time_unix_nano",
    "start_time",
    "startTime",
    "start_timestamp",
    "timestamp",
)
_END: Final = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime", "end_timestamp")
_ATTRIBUTES: Final = ("attributes", "span_attributes")
_COLUMN: Final = "attributes."
_CONTENT: Final = "gen_ai.event.content"
_UNKNOWN_SERVICE: Final = "unknown_service"


@dataclass(slots=True)
class Event:
    """Something that happened within a span."""

    name: str
    attributes: Attributes


@dataclass(slots=True)
class OtelSpan:
    """A span: ids in hex, times in Unix seconds, attributes by dotted name."""

    trace: str | None
    id: str | None
    parent: str | None
    name: str
    place: str
    start: float | None
    end: float | None
    status: SpanStatus
    message: str | None
    attributes: Attributes
    events: list[Event] = field(default_factory=list)
    service: str | None = None
    scope: str | None = None

    def text(self, *names: str) -> str | None:
        """The first of these attributes that is a text."""
        return next((text for name in names if (text := as_text(self.attributes.get(name)))), None)

    def value(self, *names: str) -> object:
        """The first of these attributes that is there."""
        found = (self.attributes.get(name) for name in names)
        return next((value for value in found if value is not None), None)

    def row(self, row_id: str, kind: RowKind) -> Row:
        """The row of a span of this kind, with what every span tells."""
        return Row(
            row_id,
            self.parent,
            kind,
            self.name,
            self.place,
            self.start,
            self.end,
            self.status,
            self.error,
        )

    @property
    def error(self) -> str | None:
        """What went wrong: the exception, else the status message, else the error's type."""
        if self.status is SpanStatus.OK:
            return None
        for event in self.events:
            if event.name == "exception":
                kind = as_text(event.attributes.get("exception.type"))
                said = as_text(event.attributes.get("exception.message"))
                if kind or said:
                    return ": ".join(part for part in (kind, said) if part)
        if self.status is SpanStatus.ERROR and self.message:
            return self.message
        return self.text("error.type", "exception.message", "error.message")


def looks_like_span(value: object) -> bool:
    """Whether a JSON value is a span of an SDK or of Phoenix, in a list or by itself."""
    if not isinstance(value, Mapping):
        return False
    if "child_spans" in value or _is_mlflow(value):
        return False
    context = _context(value)
    known = any(name in context for name in _SPAN) or "context.span_id" in value
    if not known:
        known = any(name in value for name in _SPAN) and any(name in value for name in _TRACE)
    described = any(name in value for name in _ATTRIBUTES) or any(
        isinstance(name, str) and name.startswith(_COLUMN) for name in value
    )
    return known and described and any(name in value for name in _START)


def is_of_phoenix(value: object) -> bool:
    """Whether a span has Phoenix's own fields beside those that every SDK writes."""
    if not isinstance(value, Mapping):
        return False
    kind = value.get("span_kind")
    return "context.span_id" in value or (
        "status_code" in value and isinstance(kind, str) and kind.upper() in {*_KINDS, "UNKNOWN"}
    )


def span_of(
    value: Mapping[str, object],
    place: str,
    *,
    service: str | None = None,
    scope: str | None = None,
) -> OtelSpan:
    """The span in a JSON object; what of it is missing or of another type is left open.

    ``service`` and ``scope`` count where the object itself does not tell them.
    """
    context = _context(value)
    both = {**context, **value}
    attributes = _attributes(value)
    if (kind := as_text(value.get("span_kind"))) and kind.upper() in _KINDS:
        attributes.setdefault("openinference.span.kind", kind.upper())
    start = moment(_first(both, _START))
    end = moment(_first(both, _END))
    lasted = duration(value.get("duration"))
    if end is None and start is not None and lasted is not None:
        end = start + lasted
    status, message = _status(value)
    return OtelSpan(
        trace_id(_first(both, _TRACE)),
        span_id(_first(both, _SPAN)),
        _parent(value),
        " ".join((as_text(_first(value, _NAME)) or "span")[:400].split()),
        place,
        start,
        end,
        status,
        message,
        attributes,
        _events(value.get("events")),
        _service(value, attributes) or service,
        _scope(value) or scope,
    )


def event_of(value: Mapping[str, object]) -> Event:
    """An event of a span, or a log record that is one."""
    attributes = dotted(attributes_of(value.get("attributes")))
    name = as_text(_first(value, ("eventName", "event_name", "name")))
    body = any_value(value.get("body"))
    if body is None:
        body = attributes.pop(_CONTENT, None)
    if isinstance(body, str):
        parsed = json_in(body)
        body = body if parsed is None else parsed
    if isinstance(body, Mapping):
        attributes = {**attributes, **{str(key): any_value(one) for key, one in body.items()}}
    elif body is not None:
        attributes.setdefault("content", body)
    return Event(name or as_text(attributes.get("event.name")) or "", attributes)


def service_of(attributes: Attributes) -> str | None:
    """The name of the service, where it is more than the SDK's stopgap."""
    name = as_text(attributes.get("service.name"))
    return None if name is None or name.startswith(_UNKNOWN_SERVICE) else name


def _attributes(value: Mapping[str, object]) -> dict[str, object]:
    found = attributes_of(_first(value, _ATTRIBUTES))
    for name, column in value.items():
        if isinstance(name, str) and name.startswith(_COLUMN) and column is not None:
            found[name.removeprefix(_COLUMN)] = column
    return dotted(found)


def _context(value: Mapping[str, object]) -> Mapping[str, object]:
    context = _first(value, ("context", "spanContext", "span_context"))
    return context if isinstance(context, Mapping) else {}


def _parent(value: Mapping[str, object]) -> str | None:
    parent = _first(value, (*_PARENT, "parent"))
    if isinstance(parent, Mapping):
        parent = _first(parent, _SPAN)
    return span_id(parent)


def _status(value: Mapping[str, object]) -> tuple[SpanStatus, str | None]:
    status = value.get("status")
    code: object = status
    message: object = None
    if isinstance(status, Mapping):
        code = _first(status, ("code", "status_code", "statusCode"))
        message = _first(status, ("message", "description"))
    if code is None:
        code = value.get("status_code")
    if message is None:
        message = value.get("status_message")
    said = str(code).upper().removeprefix("STATUS_CODE_").removeprefix("STATUSCODE.")
    found = {
        "1": SpanStatus.OK,
        "OK": SpanStatus.OK,
        "2": SpanStatus.ERROR,
        "ERROR": SpanStatus.ERROR,
    }.get(said, SpanStatus.UNKNOWN)
    return found, as_text(message)


def _events(value: object) -> list[Event]:
    if isinstance(value, str):
        value = json_in(value)
    return (
        [event_of(item) for item in value if isinstance(item, Mapping)]
        if isinstance(value, list)
        else []
    )


def _service(value: Mapping[str, object], attributes: Attributes) -> str | None:
    resource = value.get("resource")
    inner = resource.get("attributes") if isinstance(resource, Mapping) else None
    for candidate in (
        attributes,
        attributes_of(inner),
        attributes_of(value.get("resource_attributes")),
    ):
        if name := service_of(candidate):
            return name
    return as_text(value.get("service_name"))


def _scope(value: Mapping[str, object]) -> str | None:
    for name in ("instrumentation_scope", "instrumentationScope", "scope", "instrumentation_info"):
        scope = value.get(name)
        if isinstance(scope, Mapping) and (text := as_text(scope.get("name"))):
            return text
    return as_text(value.get("scope_name"))


def _is_mlflow(value: Mapping[str, object]) -> bool:
    attributes = value.get("attributes")
    return isinstance(attributes, Mapping) and any(
        isinstance(name, str) and name.startswith("mlflow.") for name in attributes
    )


def _first(value: Mapping[str, object], names: tuple[str, ...]) -> object:
    return next((value[name] for name in names if value.get(name) not in (None, "")), None)
