"""One OpenTelemetry span of any exporter: its ids, times, typed values and dotted names."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.io.json_values import as_number, as_text, dump_text
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
from mast_tui.traces.times import unix_seconds

_KINDS: Final = name_set(
    "LLM TOOL AGENT CHAIN RETRIEVER EMBEDDING RERANKER GUARDRAIL EVALUATOR PROMPT"
)
_TRACE: Final = ("traceId", "trace_id", "context.trace_id", "traceID")
_SPAN: Final = ("spanId", "span_id", "context.span_id", "spanID")
_PARENT: Final = ("parentSpanId", "parent_span_id", "parent_id", "parentId", "parentSpanID")
_NAME: Final = ("name", "span_name")
_START: Final = names(
    "startTimeUnixNano start_time_unix_nano start_time startTime start_timestamp timestamp"
)
_END: Final = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime", "end_timestamp")
_ATTRIBUTES: Final = ("attributes", "span_attributes")
_COLUMN: Final = "attributes."
_CONTENT: Final = "gen_ai.event.content"
_UNKNOWN_SERVICE: Final = "unknown_service"
_OK: Final = SpanStatus.OK
_ERROR: Final = SpanStatus.ERROR
_STATUS: Final = {"1": _OK, "OK": _OK, "2": _ERROR, "ERROR": _ERROR}


@dataclass(slots=True)
class SpanEvent:
    """An event of a span, or a log record."""

    name: str
    attributes: Attributes


@dataclass(slots=True)
class OtelSpan:
    """A span: ids in hex, times in Unix seconds, attributes by dotted name."""

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
        """Return the first of the attributes that is a text."""
        return text_in(self.attributes, *names)

    def value(self, *names: str) -> object:
        """Return the first of the attributes that is present."""
        return first_in(self.attributes, *names)

    def row(self, row_id: str, kind: RowKind) -> SpanRow:
        """Return a row with the fields that every span has.

        Args:
            row_id: The id of the row.
            kind: The kind of the call.
        """
        outcome = (self.start, self.end, self.status, self.error)
        return SpanRow(row_id, self.parent, kind, self.name, self.location, *outcome)

    @property
    def error(self) -> str | None:
        """The exception, else the message of the status, else the type of the error."""
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
    """Return whether a JSON value is a span of an SDK or of Phoenix."""
    if not isinstance(value, Mapping):
        return False
    attributes = fields_of(value.get("attributes"))
    if "child_spans" in value or any(str(name).startswith("mlflow.") for name in attributes):
        return False
    has_ids = _has(_context(value), _SPAN) or "context.span_id" in value
    has_ids = has_ids or (_has(value, _SPAN) and _has(value, _TRACE))
    has_columns = any(isinstance(name, str) and name.startswith(_COLUMN) for name in value)
    return has_ids and _has(value, _START) and (has_columns or _has(value, _ATTRIBUTES))


def _has(value: Fields, names: tuple[str, ...]) -> bool:
    return any(name in value for name in names)


def is_of_phoenix(value: object) -> bool:
    """Return whether a span has Phoenix's own fields beside those that every SDK writes."""
    if not isinstance(value, Mapping):
        return False
    kind = value.get("span_kind")
    return "context.span_id" in value or (
        "status_code" in value and isinstance(kind, str) and kind.upper() in {*_KINDS, "UNKNOWN"}
    )


def span_of(
    value: Fields, location: str, *, resource: Attributes | None = None, scope: str | None = None
) -> OtelSpan:
    """Return the span in a JSON object; what of it is missing or of another type is left open.

    Args:
        value: The object.
        location: Its location in the file.
        resource: The attributes of its resource where those are around it.
        scope: The name of its scope, likewise.
    """
    context = _context(value)
    both = {**context, **value}
    attributes = _attributes(value)
    if (kind := as_text(value.get("span_kind"))) and kind.upper() in _KINDS:
        attributes.setdefault("openinference.span.kind", kind.upper())
    start = moment(_first(both, _START))
    end = moment(_first(both, _END))
    seconds = duration(value.get("duration"))
    if end is None and start is not None and seconds is not None:
        end = start + seconds
    status, message = _status(value)
    resources = _resources(value, attributes, resource)
    events = json_in(value.get("events"))
    return OtelSpan(
        trace_id(_first(both, _TRACE)),
        span_id(_first(both, _SPAN)),
        _parent(value),
        " ".join((as_text(_first(value, _NAME)) or "span")[:400].split()),
        location,
        start,
        end,
        status,
        message,
        attributes,
        [event_of(event) for event in items_of(events) if isinstance(event, Mapping)],
        next(filter(None, map(service_of, resources)), None) or as_text(value.get("service_name")),
        next(filter(None, (text_in(resource, "service.version") for resource in resources)), None),
        _scope(value) or scope,
    )


def event_of(value: Fields) -> SpanEvent:
    """Return the event that a JSON object of a span's events is, or a log record."""
    attributes = dotted_attributes(attributes_of(value.get("attributes")))
    name = as_text(_first(value, ("eventName", "event_name", "name")))
    body = any_value(value.get("body"))
    if body is None:
        body = attributes.pop(_CONTENT, None)
    body = value_in(body)
    if isinstance(body, Mapping):
        attributes = {**attributes, **{str(key): any_value(item) for key, item in body.items()}}
    elif body is not None:
        attributes.setdefault("content", body)
    return SpanEvent(name or as_text(attributes.get("event.name")) or "", attributes)


def service_of(attributes: Attributes) -> str | None:
    """Return the name of the service, unless it is the SDK's default."""
    name = as_text(attributes.get("service.name"))
    return None if name is None or name.startswith(_UNKNOWN_SERVICE) else name


def _attributes(value: Fields) -> dict[str, object]:
    attributes = attributes_of(_first(value, _ATTRIBUTES))
    for name, column in value.items():
        if isinstance(name, str) and name.startswith(_COLUMN) and column is not None:
            attributes[name.removeprefix(_COLUMN)] = column
    return dotted_attributes(attributes)


def _context(value: Fields) -> Fields:
    return fields_of(_first(value, ("context", "spanContext", "span_context")))


def _parent(value: Fields) -> str | None:
    parent = _first(value, (*_PARENT, "parent"))
    if isinstance(parent, Mapping):
        parent = _first(parent, _SPAN)
    return span_id(parent)


def _status(value: Fields) -> tuple[SpanStatus, str | None]:
    status = value.get("status")
    code = _first(fields_of(status), ("code", "status_code", "statusCode"))
    code = code if isinstance(status, Mapping) else status
    message = _first(fields_of(status), ("message", "description"))
    code = value.get("status_code") if code is None else code
    message = value.get("status_message") if message is None else message
    word = str(code).upper().removeprefix("STATUS_CODE_").removeprefix("STATUSCODE.")
    return _STATUS.get(word, SpanStatus.UNKNOWN), as_text(message)


def _resources(
    value: Fields, attributes: Attributes, around: Attributes | None
) -> tuple[Attributes, ...]:
    """Return the attributes that may name the service: the span's, its resource's, those around."""
    resource = attributes_of(fields_of(value.get("resource")).get("attributes"))
    flat = attributes_of(value.get("resource_attributes"))
    return attributes, resource, flat, around or {}


def _scope(value: Fields) -> str | None:
    scopes = ("instrumentation_scope", "instrumentationScope", "scope", "instrumentation_info")
    scope_names = (as_text(fields_of(value.get(name)).get("name")) for name in scopes)
    return next(filter(None, scope_names), None) or as_text(value.get("scope_name"))


def _first(value: Fields, names: tuple[str, ...]) -> object:
    for name in names:
        if (field_value := value.get(name)) is not None and field_value != "":
            return field_value
    return None


Attributes = Fields
"""Attributes by their dotted names."""

_DEEPEST: Final = 32
_LONGEST_ID: Final = 200
_DIGITS: Final = re.compile(r"\d{1,30}")
_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_WHOLE: Final = name_set("""
    gen_ai.input.messages gen_ai.output.messages gen_ai.system_instructions
    gen_ai.tool.call.arguments gen_ai.tool.call.result gen_ai.tool.definitions input.value
    output.value llm.invocation_parameters metadata tool.parameters tool_call.function.arguments
""")
"""Attributes whose value is an object of its own, not a level of dotted names."""


def any_value(value: object, depth: int = 0) -> object:
    """Return the JSON value of an OTLP ``AnyValue``; any other value as it is.

    Args:
        value: The value.
        depth: The number of values around it.
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        return None if value == {} else value
    ((kind, inner),) = value.items()
    match str(kind).replace("_", "").lower():
        case "stringvalue" | "boolvalue" | "doublevalue" | "bytesvalue":
            return inner
        case "intvalue":
            number = isinstance(inner, str) and _DIGITS.fullmatch(inner.removeprefix("-"))
            return int(str(inner)) if number else inner
        case "arrayvalue":
            items = fields_of(inner).get("values")
            if depth > _DEEPEST or not isinstance(items, list):
                return [] if items is None else dump_text(items)
            return [any_value(item, depth + 1) for item in items]
        case "kvlistvalue":
            items = fields_of(inner).get("values")
            return dump_text(items) if depth > _DEEPEST else attributes_of(items, depth + 1)
    return value


def attributes_of(value: object, depth: int = 0) -> dict[str, object]:
    """Return attributes by name, from OTLP's list of keys and values or from an object.

    Args:
        value: The list or object, or the JSON text of one.
        depth: The number of values around it.
    """
    value = json_in(value)
    if isinstance(value, Mapping):
        return {str(name): any_value(inner, depth) for name, inner in value.items()}
    return {
        key: any_value(item.get("value"), depth)
        for item in map(fields_of, items_of(value))
        if isinstance(key := item.get("key"), str)
    }


def dotted_attributes(attributes: Attributes) -> dict[str, object]:
    """Return nested attributes under dotted names; lists, and objects in ``_WHOLE``, stay whole."""
    return dict(_dotted(attributes, "", 0))


def _dotted(values: Attributes, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and value and path not in _WHOLE and depth < _DEEPEST:
            yield from _dotted(value, f"{path}.", depth + 1)
        else:
            yield path, value


def value_under(attributes: Attributes, name: str) -> object:
    """Return the value under a dotted name, or the object or list that the names below it make.

    ``a.0.b`` and ``a.1.b`` make a list of objects; a JSON text becomes its value.

    Args:
        attributes: Attributes by their dotted names.
        name: A dotted name.
    """
    value = attributes.get(name)
    if value is not None:
        return value_in(value)
    prefix = f"{name}."
    start = len(prefix)
    below = {path[start:]: inner for path, inner in attributes.items() if path.startswith(prefix)}
    return nested_object(below) if below else None


def nested_object(values: Attributes) -> object:
    """Return dotted names as nested objects, and as a list where all names are numbers."""
    root: dict[str, object] = {}
    for path, value in values.items():
        steps = path.split(".", _DEEPEST)
        node = root
        for step in steps[:-1]:
            below = node.get(step)
            if not isinstance(below, _Node):
                below = node[step] = _Node({} if below is None else {"": below})
            node = below
        last = node.get(steps[-1])
        if isinstance(last, _Node):
            last[""] = value
        else:
            node[steps[-1]] = value
    return _settled(root)


class _Node(dict[str, object]):
    """A level of dotted names, as opposed to an object that is a value."""


def _settled(node: dict[str, object]) -> object:
    settled = {
        name: _settled(value) if isinstance(value, _Node) else value for name, value in node.items()
    }
    if settled and all(name.isascii() and name.isdigit() for name in settled):
        return [settled[name] for name in sorted(settled, key=lambda name: (len(name), name))]
    return settled


def span_id(value: object) -> str | None:
    """Return an id as lowercase hex of 16 digits; None where it is absent or all zeros."""
    return _identifier(value, 16)


def trace_id(value: object) -> str | None:
    """Return an id as lowercase hex of 32 digits; None where it is absent or all zeros."""
    return _identifier(value, 32)


def _identifier(value: object, digits: int) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:0{digits}x}" if 0 < value < 16**digits else None
    text = as_text(value)
    if text is None:
        return None
    text = text.strip()[:_LONGEST_ID]
    if text.startswith(BIG_INT):
        number = text.removeprefix(BIG_INT)
        return _identifier(int(number), digits) if _DIGITS.fullmatch(number[:30]) else None
    plain = text.lower().removeprefix("0x")
    if plain.strip("0123456789abcdef"):
        return _from_base64(text, digits) or text
    return plain if plain.strip("0") else None


def _from_base64(text: str, digits: int) -> str | None:
    """Return the hex digits of an id in base64, as protobuf's own JSON has it."""
    if len(text) != -(-digits // 6) * 4:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data.hex() if len(data) * 2 == digits else None


BIG_INT: Final = "int:"
"""The mark before the digits of an id that is too big for a JSON parser."""


def moment(value: object) -> float | None:
    """Return Unix seconds of ISO text, a number, digits, or seconds and nanoseconds in a list."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return unix_seconds(int(value))
    if isinstance(value, list) and len(value) == 2:
        seconds = as_number(value[0])
        nanoseconds = as_number(value[1])
        if seconds is not None and nanoseconds is not None:
            return unix_seconds(seconds + nanoseconds / 1e9)
    return unix_seconds(value)


def duration(value: object) -> float | None:
    """Return the seconds of an ISO 8601 duration such as ``PT1M2.5S``, or of a number."""
    if not isinstance(value, str):
        return as_number(value)
    match = _DURATION.fullmatch(value.strip()[:_LONGEST_ID])
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
