"""The layouts of files with spans and log records of OpenTelemetry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import InvalidJSON, as_text, load_json
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Problem
from mast_tui.traces.readers.document_traces import records_by_line
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, names
from mast_tui.traces.readers.otel.spans import (
    BIG_INT,
    Attributes,
    attributes_of,
    is_of_phoenix,
    looks_like_span,
)

_MARKS: Final = tuple(
    f'"{name}"'.encode()
    for name in names("""
        resourceSpans resource_spans resourceLogs resource_logs scopeSpans spanId span_id
        context.span_id
    """)
)
_RESOURCE_SPANS: Final = ("resourceSpans", "resource_spans", "batches")
_SCOPE_SPANS: Final = names(
    "scopeSpans scope_spans instrumentationLibrarySpans instrumentation_library_spans"
)
_RESOURCE_LOGS: Final = ("resourceLogs", "resource_logs")
_SCOPE_LOGS: Final = ("scopeLogs", "scope_logs", "instrumentationLibraryLogs")
_LOG_RECORDS: Final = ("logRecords", "log_records", "logs")
_SCOPES: Final = ("scope", "instrumentationLibrary", "instrumentation_library")
_OTHER_SIGNALS: Final = frozenset({"resourceMetrics", "resource_metrics"})
_LOOKED_AT: Final = 20
_MOST_BREAKS: Final = 50

_FOLLOWED: Final = re.compile(rb"\n\}[ \t\r]*\n\s*\{")
"""The end of an indented object after which another one begins."""

_BIG_ID: Final = re.compile(r'("trace_id"\s*:\s*)(\d{19,})')
"""A trace id as a number: more than most parsers of JSON keep."""


@dataclass(frozen=True, slots=True)
class Raw:
    """A span or a log record of the file, with the attributes of its resource and its scope."""

    value: object
    location: str
    resource: Attributes = field(default_factory=dict)
    scope: str | None = None
    is_log: bool = False


def layout_of(source: Source) -> str | None:
    """Return ``otlp``, ``otel-spans`` or ``phoenix``; None for a file of another format."""
    head = as_utf8(source.head)
    if head.lstrip()[:1] not in (b"{", b"[") or not any(mark in head for mark in _MARKS):
        return None
    if values := source.json_lines:
        return next(filter(None, map(_layout, values)), None)
    if _is_concatenated(source):
        first = next(_concatenated(source, []), None)
        return None if first is None else _layout(first[1])
    return _layout(_document(source))


def raw_spans(source: Source, problems: list[Problem]) -> Iterator[Raw]:
    """Yield every span and log record in the order of the file.

    Args:
        source: The file.
        problems: The list to which left out values are added.
    """
    for prefix, value in _values(source, problems):
        yield from _in_value(value, prefix, problems)


def _values(source: Source, problems: list[Problem]) -> Iterator[tuple[str, object]]:
    lines = source.json_lines
    if lines and not _has_big_ids(source):
        for record in records_by_line(source, problems):
            yield record.location, record.value
    elif lines or _is_concatenated(source):
        source.damage = ()  # text after the first object is no damage here
        for number, value in _concatenated(source, problems):
            yield f"line {number}", value
    else:
        yield "", _document(source)


def _is_concatenated(source: Source) -> bool:
    """Return whether indented objects follow each other with nothing between them."""
    return source.head.lstrip()[:1] == b"{" and _FOLLOWED.search(source.data) is not None


def _has_big_ids(source: Source) -> bool:
    return _BIG_ID.search(source.head.decode("utf-8", "replace")) is not None


def _document(source: Source) -> object | None:
    if not _has_big_ids(source):
        return source.json
    try:
        return load_json(_keep_big_ids(as_utf8(source.data).decode("utf-8", "replace")))
    except InvalidJSON:
        return source.json


def _keep_big_ids(text: str) -> str:
    return _BIG_ID.sub(rf'\1"{BIG_INT}\2"', text)


def _concatenated(source: Source, problems: list[Problem]) -> Iterator[tuple[int, object]]:
    """Yield JSON values that follow each other, each with the line that it begins on.

    Text between them is skipped up to the next line that begins with a bracket.
    """
    text = as_utf8(source.data).decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    position = 0
    line = 1
    breaks = 0
    while True:
        begin = position
        while begin < len(text) and text[begin] in " \t\r\n,":
            begin += 1
        line += text.count("\n", position, begin)
        if begin == len(text):
            return
        position = begin
        reason = "not JSON"
        if text[begin] in "{[":
            try:
                _value, position = decoder.raw_decode(text, begin)
                yield line, load_json(_keep_big_ids(text[begin:position]))
            except RecursionError:
                reason = "nested too deeply"
            except (InvalidJSON, ValueError) as error:
                reason = f"not JSON: {error}"
        if position == begin:
            breaks += 1
            following = text.find("\n{", begin)
            ends = following < 0 or breaks == _MOST_BREAKS
            going_on = "the rest is left out" if ends else "read on at the next object"
            problems.append(Problem(f"line {line}", f"{reason}; {going_on}"))
            if ends:
                return
            position = following
        line += text.count("\n", begin, position)


def _layout(value: object) -> str | None:
    if isinstance(value, Mapping):
        if _listed(value, _RESOURCE_SPANS) and _is_otlp(value):
            return "otlp"
        if any(isinstance(value.get(name), list) for name in _RESOURCE_LOGS):
            return "otlp"
        if isinstance(value.get("context.span_id"), Mapping):
            return "phoenix"
    elif isinstance(value, list) and value and _is_otlp(value[0]):
        return "otlp"
    lists = _span_lists(value).values()
    spans = [item for spans in lists for item in spans[:_LOOKED_AT] if looks_like_span(item)]
    if not spans:
        return None
    return "phoenix" if any(map(is_of_phoenix, spans)) else "otel-spans"


def _is_otlp(value: object) -> bool:
    fields = fields_of(value)
    if any(isinstance(fields.get(name), list) for name in _RESOURCE_SPANS[:2]):
        return True
    resources = _listed(fields, _RESOURCE_SPANS)
    return bool(resources) and all(_listed(fields_of(item), _SCOPE_SPANS) for item in resources)


def _span_lists(value: object) -> dict[str, list[object]]:
    """Return lists of spans under their pointers: of a list, an object, a table, or one span.

    An object has its spans under ``spans`` or ``data``, or groups of them under names.
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
        f"/{name}": inner
        for name, inner in value.items()
        if isinstance(inner, list) and any(map(looks_like_span, inner[:_LOOKED_AT]))
    }
    return lists or {"": [value]}


def _in_value(value: object, prefix: str, problems: list[Problem]) -> Iterator[Raw]:
    separator = " " if prefix else ""
    if isinstance(value, list) and any(map(_is_otlp, value[:_LOOKED_AT])):
        for number, item in enumerate(value):
            yield from _in_value(item, f"{prefix}{separator}/{number}", problems)
        return
    if isinstance(value, Mapping) and _layout(value) == "otlp":
        yield from _otlp(value, prefix if prefix.startswith("/") else prefix + separator)
        return
    for pointer, spans in _span_lists(value).items():
        alone = len(spans) == 1 and spans[0] is value
        for number, item in enumerate(spans):
            location = (prefix or "/") if alone else f"{prefix}{separator}{pointer}/{number}"
            if looks_like_span(item) or (isinstance(item, Mapping) and len(spans) > 1):
                yield Raw(item, location)
            elif _OTHER_SIGNALS.isdisjoint(fields_of(item)):
                problems.append(Problem(location, "no span, left out"))


def _otlp(value: Fields, prefix: str) -> Iterator[Raw]:
    for is_log, resources, scopes, items in (
        (False, _RESOURCE_SPANS, _SCOPE_SPANS, ("spans",)),
        (True, _RESOURCE_LOGS, _SCOPE_LOGS, _LOG_RECORDS),
    ):
        for at_resource, resource in _each(value, resources, prefix):
            described = fields_of(resource.get("resource"))
            attributes = attributes_of(described.get("attributes"))
            for at_scope, scoped in _each(resource, scopes, at_resource):
                scope = next(filter(None, (fields_of(scoped.get(name)) for name in _SCOPES)), {})
                name = next((name for name in items if isinstance(scoped.get(name), list)), "")
                for number, item in enumerate(items_of(scoped.get(name))):
                    location = f"{at_scope}/{name}/{number}"
                    yield Raw(item, location, attributes, as_text(scope.get("name")), is_log)


def _each(value: Fields, names: tuple[str, ...], prefix: str) -> Iterator[tuple[str, Fields]]:
    for name in names:
        for number, item in enumerate(items_of(value.get(name))):
            if isinstance(item, Mapping):
                yield f"{prefix}/{name}/{number}", item


def _listed(value: Fields, names: tuple[str, ...]) -> list[object]:
    return next((inner for name in names if isinstance(inner := value.get(name), list)), [])
