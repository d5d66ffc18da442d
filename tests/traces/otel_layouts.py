"""The spans of a conversation in every published layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.traces.checks import write_json, write_json_lines
from tests.traces.otel_conventions import BEGIN, TRACE, TRACE_NUMBER, Call, Events, Values


def any_value(value: object) -> Values:
    """A value as OTLP's JSON has it; integers as text."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(one) for one in value]}}
        case dict():
            return {"kvlistValue": {"values": key_values(value)}}
    return {"stringValue": value}


def key_values(values: Values) -> list[Values]:
    return [{"key": name, "value": any_value(value)} for name, value in values.items()]


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1000) * 1_000_000


def _iso(seconds: float) -> str:
    return f"2025-10-09T08:53:{20 + seconds - BEGIN:09.6f}Z"


def _all_events(span: Call) -> Events:
    if not span.failed:
        return span.events
    failure: Values = {"exception.type": "TimeoutError", "exception.message": "no answer"}
    return [*span.events, ("exception", failure)]


def otlp_span(span: Call) -> Values:
    record: Values = {
        "traceId": TRACE,
        "spanId": span.id,
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(_nanoseconds(span.start)),
        "endTimeUnixNano": _nanoseconds(span.end),
        "attributes": key_values(span.attributes),
        "status": {"code": "STATUS_CODE_ERROR"} if span.failed else {},
        "events": [
            {"timeUnixNano": "1", "name": name, "attributes": key_values(values)}
            for name, values in _all_events(span)
        ],
    }
    if span.parent:
        record["parentSpanId"] = span.parent
    return record


def otlp_document(spans: list[Values], **names: str) -> Values:
    scope = {names.get("scope", "scope"): {"name": "my.library"}, "spans": spans}
    resource = {"attributes": key_values({"service.name": "trips"})}
    within = {"resource": resource, names.get("scopes", "scopeSpans"): [scope]}
    return {names.get("resources", "resourceSpans"): [within]}


def snake(value: object) -> object:
    """OTLP's JSON with the field names of its protobuf."""
    if isinstance(value, list):
        return [snake(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in name): snake(inner)
        for name, inner in value.items()
    }


def sdk_span(span: Call) -> Values:
    """As a library dumps the SDK's objects: ids and times are numbers."""
    nobody = {"trace_id": None, "span_id": None, "is_remote": False}
    return {
        "name": span.name,
        "kind": "internal",
        "parent": {**nobody, "trace_id": TRACE_NUMBER, "span_id": int(span.parent, 16)}
        if span.parent
        else nobody,
        "start_time": _nanoseconds(span.start),
        "end_time": _nanoseconds(span.end),
        "status": {"status_code": "error" if span.failed else "unset", "description": None},
        "context": {"trace_id": TRACE_NUMBER, "span_id": int(span.id, 16)},
        "attributes": span.attributes,
        "events": [
            {"name": name, "timestamp": 1, "attributes": values}
            for name, values in _all_events(span)
        ],
        "resource": {"attributes": {"service.name": "unknown_service"}},
    }


def console_span(span: Call) -> Values:
    """As the console exporter prints it."""
    return {
        "name": span.name,
        "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{span.id}", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": f"0x{span.parent}" if span.parent else None,
        "start_time": _iso(span.start),
        "end_time": _iso(span.end),
        "status": {"status_code": "ERROR" if span.failed else "UNSET"},
        "attributes": span.attributes,
        "events": [
            {"name": name, "timestamp": _iso(span.start), "attributes": values}
            for name, values in _all_events(span)
        ],
        "links": [],
        "resource": {"attributes": {"service.name": "trips"}, "schema_url": ""},
    }


def phoenix_span(span: Call) -> Values:
    kind = span.attributes.get("openinference.span.kind", "UNKNOWN")
    return {
        "id": f"U3Bhbjo{span.id}",
        "name": span.name,
        "context": {"trace_id": TRACE, "span_id": span.id},
        "span_kind": kind,
        "parent_id": span.parent,
        "start_time": _iso(span.start),
        "end_time": _iso(span.end),
        "status_code": "ERROR" if span.failed else "UNSET",
        "status_message": "",
        "attributes": span.attributes,
        "events": [
            {"name": name, "timestamp": _iso(span.start), "attributes": values}
            for name, values in _all_events(span)
        ],
    }


def nest(values: Values) -> Values:
    """Dotted names as nested objects; numbered ones stay as they are."""
    root: Values = {}
    for path, value in values.items():
        steps = path.split(".")
        cut = next((n for n, step in enumerate(steps) if step.isdigit()), len(steps))
        steps = [*steps[: cut - 1], ".".join(steps[cut - 1 :])]
        node = root
        for step in steps[:-1]:
            inner = node.setdefault(step, {})
            assert isinstance(inner, dict)
            node = inner
        node[steps[-1]] = value
    return root


def row_of_dataframe(span: Call) -> Values:
    record = phoenix_span(span)
    del record["context"], record["attributes"]
    record["context.trace_id"], record["context.span_id"] = TRACE, span.id
    record |= {f"attributes.{name}": value for name, value in span.attributes.items()}
    return record


def _write_text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


LAYOUTS: dict[str, tuple[str, Callable[[Path, list[Call]], Path]]] = {
    "otlp": ("otlp", lambda p, s: write_json(p, otlp_document([otlp_span(one) for one in s]))),
    "otlp-lines": (
        "otlp",
        lambda p, s: write_json_lines(p, *(otlp_document([otlp_span(one)]) for one in s)),
    ),
    "otlp-one-line": (
        "otlp",
        lambda p, s: write_json_lines(p, otlp_document([otlp_span(one) for one in s])),
    ),
    "otlp-list": (
        "otlp",
        lambda p, s: write_json(p, [otlp_document([otlp_span(one)]) for one in s]),
    ),
    "otlp-indented": (
        "otlp",
        lambda p, s: _write_text(
            p, "\n".join(json.dumps(otlp_document([otlp_span(one)]), indent=1) for one in s)
        ),
    ),
    "otlp-snake": (
        "otlp",
        lambda p, s: write_json(p, snake(otlp_document([otlp_span(one) for one in s]))),
    ),
    "otlp-old": (
        "otlp",
        lambda p, s: write_json(
            p,
            otlp_document(
                [otlp_span(one) for one in s],
                scopes="instrumentationLibrarySpans",
                scope="instrumentationLibrary",
            ),
        ),
    ),
    "sdk": ("otel-spans", lambda p, s: write_json(p, {"spans": [sdk_span(one) for one in s]})),
    "sdk-lines": ("otel-spans", lambda p, s: write_json_lines(p, *map(sdk_span, s))),
    "console": (
        "otel-spans",
        lambda p, s: _write_text(
            p, "\n".join(json.dumps(console_span(one), indent=4) for one in s) + "\n"
        ),
    ),
    "console-lines": ("otel-spans", lambda p, s: write_json_lines(p, *map(console_span, s))),
    "console-list": ("otel-spans", lambda p, s: write_json(p, [console_span(one) for one in s])),
    "phoenix": ("phoenix", lambda p, s: write_json(p, [phoenix_span(one) for one in s])),
    "phoenix-lines": ("phoenix", lambda p, s: write_json_lines(p, *map(phoenix_span, s))),
    "phoenix-nested": (
        "phoenix",
        lambda p, s: write_json(
            p,
            {"data": [{**phoenix_span(one), "attributes": nest(one.attributes)} for one in s]},
        ),
    ),
    "phoenix-dataframe": (
        "phoenix",
        lambda p, s: write_json(p, [row_of_dataframe(one) for one in s]),
    ),
    "phoenix-columns": (
        "phoenix",
        lambda p, s: write_json(
            p,
            {
                name: {one.id: row_of_dataframe(one).get(name) for one in s}
                for name in dict.fromkeys(name for one in s for name in row_of_dataframe(one))
            },
        ),
    ),
}
"""By name the format that the reader calls it, and how it is written."""
