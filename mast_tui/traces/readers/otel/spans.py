"""One OpenTelemetry span of any exporter: its ids, times, typed values and dotted names."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_number, as_text, dump_text
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    name_set,
    names,
    text_in,
    value_in,
)
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow
from mast_tui.traces.result_status import status_of_word
from mast_tui.traces.times import unix_seconds

_OPENINFERENCE_KINDS: Final = name_set(
    "LLM TOOL AGENT CHAIN RETRIEVER EMBEDDING RERANKER GUARDRAIL EVALUATOR PROMPT"
)
_TRACE_ID_FIELDS: Final = ("traceId", "trace_id", "context.trace_id", "traceID")
_SPAN_ID_FIELDS: Final = ("spanId", "span_id", "context.span_id", "spanID")
_PARENT_ID_FIELDS: Final = (
    "parentSpanId",
    "parent_span_id",
    "parent_id",
    "parentId",
    "parentSpanID",
)
_LOG_RECORD_FIELDS: Final = ("timeUnixNano", "traceId", "spanId")
_NAME_FIELDS: Final = ("name", "span_name")
_START_FIELDS: Final = names(
    "startTimeUnixNano start_time_unix_nano start_time startTime start_timestamp timestamp"
)
_END_FIELDS: Final = (
    "endTimeUnixNano",
    "end_time_unix_nano",
    "end_time",
    "endTime",
    "end_timestamp",
)
_ATTRIBUTE_FIELDS: Final = ("attributes", "span_attributes")
_COLUMN_PREFIX: Final = "attributes."
_CONTENT_ATTRIBUTE: Final = "gen_ai.event.content"
_MAX_NAME_CHARS: Final = 400
_UNKNOWN_SERVICE: Final = "unknown_service"
_STATUS_NAMES: Final = {"1": "OK", "2": "ERROR"}


@dataclass(slots=True)
class SpanEvent:
    """An event of a span, or a log record."""

    name: str
    attributes: Attributes


@dataclass(slots=True)
class OtelSpan:
    """A span: ids in hex, times in Unix seconds, attributes by dotted name.

    ``message`` belongs to the status, ``scope`` is the name of the instrumentation. ``service`` and
    ``version`` belong to the program.
    """

    trace: str | None
    id: str | None
    parent: str | None
    name: str
    location: str
    start: float | None
    end: float | None
    status: SpanStatus
    message: str | None
    attributes: Attributes
    events: list[SpanEvent] = field(default_factory=list)
    service: str | None = None
    version: str | None = None
    scope: str | None = None

    def text(self, *names: str) -> str | None:
        """Return the first of some attributes that is a text."""
        return text_in(self.attributes, *names)

    def value(self, *names: str) -> object:
        """Return the first of some attributes that is present."""
        return first_in(self.attributes, *names)

    def row(self, row_id: str, kind: RowKind) -> SpanRow:
        """Return a row with the fields that every span has.

        Args:
            row_id: The id of the row.
            kind: The kind of the row.
        """
        return SpanRow(
            row_id,
            self.parent,
            kind,
            self.name,
            self.location,
            start=self.start,
            end=self.end,
            status=self.status,
            error=self.error,
        )

    @property
    def error(self) -> str | None:
        """The error message of an exception, the status or an attribute, if any has one."""
        if self.status is SpanStatus.OK:
            return None
        for event in self.events:
            if event.name == "exception":
                kind = as_text(event.attributes.get("exception.type"))
                message = as_text(event.attributes.get("exception.message"))
                if kind or message:
                    return ": ".join(filter(None, (kind, message)))
        if self.status is SpanStatus.ERROR and self.message:
            return self.message
        return self.text("error.type", "exception.message", "error.message")


def looks_like_span(value: object) -> bool:
    """Return whether a JSON value is a span as an OpenTelemetry SDK or Phoenix exports it."""
    fields = fields_of(value)
    attributes = fields_of(fields.get("attributes"))
    # TRAIL's spans, with ``child_spans``, and MLflow's have readers of their own.
    if "child_spans" in fields or any(str(name).startswith("mlflow.") for name in attributes):
        return False
    context = _context_of_span(fields)
    has_context = _has_any_field(context, _SPAN_ID_FIELDS) or "context.span_id" in fields
    has_ids = has_context or (
        _has_any_field(fields, _SPAN_ID_FIELDS) and _has_any_field(fields, _TRACE_ID_FIELDS)
    )
    has_columns = any(isinstance(name, str) and name.startswith(_COLUMN_PREFIX) for name in fields)
    return (
        has_ids
        and _has_any_field(fields, _START_FIELDS)
        and (has_columns or _has_any_field(fields, _ATTRIBUTE_FIELDS))
    )


def looks_like_log_record(value: object) -> bool:
    """Return whether a JSON value is a log record of a span, as Amazon CloudWatch stores it."""
    fields = fields_of(value)
    return "body" in fields and all(name in fields for name in _LOG_RECORD_FIELDS)


def _has_any_field(value: Fields, names: tuple[str, ...]) -> bool:
    return any(name in value for name in names)


def is_phoenix_span(value: object) -> bool:
    """Return whether a span has fields of Phoenix beside those of every OpenTelemetry SDK."""
    fields = fields_of(value)
    kind = (as_text(fields.get("span_kind")) or "").upper()
    has_kind = kind in _OPENINFERENCE_KINDS or kind == "UNKNOWN"
    return "context.span_id" in fields or ("status_code" in fields and has_kind)


def span_of(
    value: Fields, location: str, *, resource: Attributes | None = None, scope: str | None = None
) -> OtelSpan:
    """Return the span in a JSON object; a missing or malformed field is None or empty.

    Args:
        value: The object.
        location: The location of the object in the file.
        resource: The attributes of the resource outside of the object.
        scope: The name of the scope outside of the object.
    """
    with_context = {**_context_of_span(value), **value}
    attributes = _attributes_of_span(value)
    if (kind := as_text(value.get("span_kind"))) and kind.upper() in _OPENINFERENCE_KINDS:
        attributes.setdefault("openinference.span.kind", kind.upper())

    possible_resources = _possible_resources(value, attributes, resource)
    services = map(service_of, possible_resources)
    versions = (text_in(candidate, "service.version") for candidate in possible_resources)
    events = [
        event_of(event)
        for name in ("events", "span_events")
        for event in items_of(json_in(value.get(name)))
        if isinstance(event, Mapping)
    ]
    for event in events:  # the span's own attributes come first
        attributes = {**call_attributes_of(event), **attributes}

    status, message = _status_of_span(value)
    start = seconds_of_time(_first_field(with_context, _START_FIELDS))
    name = (as_text(_first_field(value, _NAME_FIELDS)) or "span")[:_MAX_NAME_CHARS]
    return OtelSpan(
        trace=trace_id(_first_field(with_context, _TRACE_ID_FIELDS)),
        id=span_id(_first_field(with_context, _SPAN_ID_FIELDS)),
        parent=_parent_id(value),
        name=" ".join(name.split()),
        location=location,
        start=start,
        end=_end_of_span(with_context, start),
        status=status,
        message=message,
        attributes=attributes,
        events=events,
        service=next(filter(None, services), None) or as_text(value.get("service_name")),
        version=next(filter(None, versions), None),
        scope=_scope_name(value) or scope,
    )


def _end_of_span(value: Fields, start: float | None) -> float | None:
    """Return the end time of a span, or its start plus its duration."""
    end = seconds_of_time(_first_field(value, _END_FIELDS))
    seconds = seconds_of_duration(value.get("duration"))
    if end is None and start is not None and seconds is not None:
        return start + seconds
    return end


def event_of(value: Fields) -> SpanEvent:
    """Return the event in a JSON object: an event of a span, or a log record.

    The fields of a body that is an object become attributes. Any other body becomes the attribute
    ``content``.
    """
    attributes = dotted_attributes(attributes_of(value.get("attributes")))
    name = as_text(_first_field(value, ("eventName", "event_name", "name")))
    body = any_value(value.get("body"))
    if body is None:
        body = attributes.pop(_CONTENT_ATTRIBUTE, None)
    body = value_in(body)
    if isinstance(body, Mapping):
        attributes = {**attributes, **{str(key): any_value(item) for key, item in body.items()}}
    elif body is not None:
        attributes.setdefault("content", body)
    return SpanEvent(name or as_text(attributes.get("event.name")) or "", attributes)


def call_attributes_of(event: SpanEvent) -> dict[str, object]:
    """Return OpenInference's attributes of a call that an event of Amazon CloudWatch describes."""
    attributes: dict[str, object] = {}
    for direction in ("input", "output"):
        messages = _cloudwatch_messages(event, direction)
        if messages:
            attributes[f"{direction}.value"] = messages[-1].get("content")
    output = fields_of(json_in(attributes.get("output.value")))
    if "generations" in output:
        attributes["openinference.span.kind"] = "LLM"
    elif output.get("type") == "tool":
        attributes["openinference.span.kind"] = "TOOL"
        attributes["tool.name"] = output.get("name")
    elif attributes:
        attributes["openinference.span.kind"] = "CHAIN"
    return attributes


def gen_ai_events_of(event: SpanEvent) -> list[SpanEvent]:
    """Return the ``gen_ai`` events that Amazon CloudWatch joined to one event."""
    messages = [
        message
        for direction in ("input", "output")
        for message in _cloudwatch_messages(event, direction)
    ]
    if not any(isinstance(message.get("content"), Mapping) for message in messages):
        return []
    events: list[SpanEvent] = []
    for message in messages:
        attributes = fields_of(message.get("content")) or {"content": message.get("content")}
        name = "choice" if "message" in attributes else f"{message.get('role')}.message"
        events.append(SpanEvent(f"gen_ai.{name}", attributes))
    return events


def _cloudwatch_messages(event: SpanEvent, direction: str) -> list[Fields]:
    fields = fields_of(event.attributes.get(direction))
    return list(map(fields_of, items_of(fields.get("messages"))))


def service_of(attributes: Attributes) -> str | None:
    """Return the name of the service, unless it is the SDK's default."""
    name = as_text(attributes.get("service.name"))
    return None if name is None or name.startswith(_UNKNOWN_SERVICE) else name


def _attributes_of_span(value: Fields) -> dict[str, object]:
    """Return the attributes of a span, from one field or from separate columns."""
    attributes = attributes_of(_first_field(value, _ATTRIBUTE_FIELDS))
    for name, column in value.items():
        if isinstance(name, str) and name.startswith(_COLUMN_PREFIX) and column is not None:
            attributes[name.removeprefix(_COLUMN_PREFIX)] = column
    return dotted_attributes(attributes)


def _context_of_span(value: Fields) -> Fields:
    return fields_of(_first_field(value, ("context", "spanContext", "span_context")))


def _parent_id(value: Fields) -> str | None:
    parent = _first_field(value, (*_PARENT_ID_FIELDS, "parent"))
    if isinstance(parent, Mapping):
        parent = _first_field(parent, _SPAN_ID_FIELDS)
    return span_id(parent)


def _status_of_span(value: Fields) -> tuple[SpanStatus, str | None]:
    """Return the status of a span and its message."""
    status = value.get("status")
    status_fields = fields_of(status)
    code = status
    if isinstance(status, Mapping):
        code = _first_field(status_fields, ("code", "status_code", "statusCode"))
    message = _first_field(status_fields, ("message", "description"))
    code = value.get("status_code") if code is None else code
    message = value.get("status_message") if message is None else message
    code_name = str(code).upper().removeprefix("STATUS_CODE_").removeprefix("STATUSCODE.")
    return status_of_word(_STATUS_NAMES.get(code_name, code_name)), as_text(message)


def _possible_resources(
    value: Fields, attributes: Attributes, outer_resource: Attributes | None
) -> tuple[Attributes, ...]:
    """Return the attributes that may name the service: the span's own, then those of resources."""
    resource = attributes_of(fields_of(value.get("resource")).get("attributes"))
    flat_resource = attributes_of(value.get("resource_attributes"))
    return attributes, resource, flat_resource, outer_resource or {}


def _scope_name(value: Fields) -> str | None:
    """Return the name of the instrumentation that wrote a span."""
    scopes = ("instrumentation_scope", "instrumentationScope", "scope", "instrumentation_info")
    scope_names = (as_text(fields_of(value.get(name)).get("name")) for name in scopes)
    return next(filter(None, scope_names), None) or as_text(value.get("scope_name"))


def _first_field(value: Fields, names: tuple[str, ...]) -> object:
    """Return the first field with one of these names that is not empty."""
    for name in names:
        if (field_value := value.get(name)) is not None and field_value != "":
            return field_value
    return None


Attributes = Fields
"""Attributes by their dotted names."""

_MAX_DEPTH: Final = 32
_MAX_ID_CHARS: Final = 200
_DIGITS: Final = re.compile(r"\d{1,30}")
_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_OBJECT_ATTRIBUTES: Final = name_set("""
    gen_ai.input.messages gen_ai.output.messages gen_ai.system_instructions
    gen_ai.tool.call.arguments gen_ai.tool.call.result gen_ai.tool.definitions input.value
    output.value llm.invocation_parameters metadata tool.parameters tool_call.function.arguments
""")
"""Attributes with an object as one value, not as a level of dotted names."""


def any_value(value: object, depth: int = 0) -> object:
    """Return the JSON value of an OTLP ``AnyValue``, such as ``{"stringValue": "Hello"}``.

    Any other value is returned unchanged.

    Args:
        value: The value.
        depth: The number of values around it.
    """
    if value == {}:
        return None  # an ``AnyValue`` without a value
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, content),) = value.items()
    match str(kind).replace("_", "").lower():
        case "stringvalue" | "boolvalue" | "doublevalue" | "bytesvalue":
            return content
        case "intvalue":
            is_digits = isinstance(content, str) and _DIGITS.fullmatch(content.removeprefix("-"))
            return int(str(content)) if is_digits else content
        case "arrayvalue":
            items = fields_of(content).get("values")
            if depth > _MAX_DEPTH or not isinstance(items, list):
                return [] if items is None else dump_text(items)
            return [any_value(item, depth + 1) for item in items]
        case "kvlistvalue":
            items = fields_of(content).get("values")
            return dump_text(items) if depth > _MAX_DEPTH else attributes_of(items, depth + 1)
    return value


def attributes_of(value: object, depth: int = 0) -> dict[str, object]:
    """Return attributes by name, from OTLP's list of keys and values or from an object.

    Args:
        value: The list or object, or its JSON text.
        depth: The number of values around it.
    """
    value = json_in(value)
    if isinstance(value, Mapping):
        return {str(name): any_value(attribute, depth) for name, attribute in value.items()}
    items = map(fields_of, items_of(value))
    return {
        key: any_value(item.get("value"), depth)
        for item in items
        if isinstance(key := item.get("key"), str)
    }


def dotted_attributes(attributes: Attributes) -> dict[str, object]:
    """Return nested attributes under dotted names.

    Lists, and the objects of ``_OBJECT_ATTRIBUTES``, remain one value.
    """
    return dict(_dotted_items(attributes, "", 0))


def _dotted_items(values: Attributes, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield values with dotted names that begin with ``prefix``."""
    for name, value in values.items():
        path = f"{prefix}{name}"
        if (
            isinstance(value, Mapping)
            and value
            and path not in _OBJECT_ATTRIBUTES
            and depth < _MAX_DEPTH
        ):
            yield from _dotted_items(value, f"{path}.", depth + 1)
        else:
            yield path, value


def value_under(attributes: Attributes, name: str) -> object:
    """Return the value of an attribute, also from the attributes of its parts.

    The attributes ``a.0.b`` and ``a.1.b`` are together ``a``, a list of two objects. A JSON text is
    parsed.

    Args:
        attributes: Attributes by their dotted names.
        name: The dotted name of the attribute.
    """
    value = attributes.get(name)
    if value is not None:
        return value_in(value)
    prefix = f"{name}."
    values_by_suffix = {
        path.removeprefix(prefix): path_value
        for path, path_value in attributes.items()
        if path.startswith(prefix)
    }
    return nested_object(values_by_suffix) if values_by_suffix else None


def nested_object(values: Attributes, depth: int = 0) -> object:
    """Return values under dotted names as nested objects, or as lists if all names are numbers.

    If ``a`` has a value beside ``a.b``, that value is the field "" of the object ``a``.

    Args:
        values: The values by their dotted names.
        depth: The number of objects around them.
    """
    inner_values_by_name: dict[str, dict[str, object]] = {}
    for path, value in values.items():
        # At the greatest depth, the rest of the path is one name.
        name, _dot, inner_path = path.partition(".") if depth < _MAX_DEPTH else (path, "", "")
        inner_values_by_name.setdefault(name, {})[inner_path] = value
    fields = {
        name: inner_values[""]
        if inner_values.keys() == {""}
        else nested_object(inner_values, depth + 1)
        for name, inner_values in inner_values_by_name.items()
    }
    if fields and all(name.isascii() and name.isdigit() for name in fields):
        # The key sorts by length first, so that 10 follows 9.
        return [fields[name] for name in sorted(fields, key=lambda name: (len(name), name))]
    return fields


def span_id(value: object) -> str | None:
    """Return an id as lowercase hex of 16 digits; None if it is absent or all zeros."""
    return _hex_id(value, 16)


def trace_id(value: object) -> str | None:
    """Return an id as lowercase hex of 32 digits; None if it is absent or all zeros."""
    return _hex_id(value, 32)


def _hex_id(value: object, digit_count: int) -> str | None:
    """Return the hex digits of an id in any form: a number, hex digits or Base64.

    A text of another form is unchanged. An id of zeros is None.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:0{digit_count}x}" if 0 < value < 16**digit_count else None
    text = as_text(value)
    if text is None:
        return None
    text = text.strip()[:_MAX_ID_CHARS]
    hex_digits = text.lower().removeprefix("0x")
    if hex_digits.strip("0123456789abcdef"):
        return _hex_of_base64(text, digit_count) or text
    return hex_digits if hex_digits.strip("0") else None


def _hex_of_base64(text: str, digit_count: int) -> str | None:
    """Return the hex digits of an id in Base64, as protobuf's JSON writes it."""
    # Base64 writes each three bytes, or six hex digits, as four characters.
    if len(text) != -(-digit_count // 6) * 4:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data.hex() if len(data) * 2 == digit_count else None


def unrecorded_prompt(attributes: Attributes) -> str:
    """Return a sentence in place of an unrecorded prompt, with the prompt's length if known."""
    length = as_count(attributes.get("prompt_length"))
    size = "" if length is None else f" of {length} characters"
    return f"[a prompt{size} that was not recorded]"


def seconds_of_time(value: object) -> float | None:
    """Return a time in Unix seconds; None for a value that is no time.

    A time is an ISO text, a list of seconds and nanoseconds, or a number in a unit that its size
    shows.
    """
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return unix_seconds(int(value))
    if isinstance(value, list) and len(value) == 2:
        seconds, nanoseconds = map(as_number, value)
        if seconds is not None and nanoseconds is not None:
            return unix_seconds(seconds + nanoseconds / 1e9)
    return unix_seconds(value)


def seconds_of_duration(value: object) -> float | None:
    """Return the seconds of a number or of an ISO 8601 duration such as ``PT1M2.5S``."""
    if not isinstance(value, str):
        return as_number(value)
    # A trace may have texts of any length here.
    match = _DURATION.fullmatch(value.strip()[:_MAX_ID_CHARS])
    if match is None or not any(match.groups()):  # A "P" or "PT" alone is no duration.
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
