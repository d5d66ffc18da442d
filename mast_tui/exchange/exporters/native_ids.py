"""The ids of traces and spans in the tool that has recorded them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from mast_tui.adjudication.trace_files import TraceOf, traces_from_files
from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Trace, TraceIdentity
from mast_tui.traces.readers.inspect import reader as inspect
from mast_tui.traces.readers.otel.documents import layout_of, raw_spans
from mast_tui.traces.readers.otel.spans import span_id, span_of
from mast_tui.traces.readers.vendors.records import text_at, traces_in, vendor_of
from mast_tui.workspace import TraceRecord, Workspace

Tool = Literal["otel", "langfuse", "langsmith", "inspect"]

_READERS_OF_OTEL: Final = ("otel", "trail")
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_SPAN_ID: Final = re.compile(r"[0-9a-f]{16}")
_KEY: Final = re.compile(r"([0-9a-f]{16})(?:[/~].*)?", re.DOTALL)
"""A key that begins with the id of its span; those of calls begin with the call's."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample as an Inspect log names it: by its id, a text or a number, and its epoch.

    ``uuid`` is None in logs that have none.
    """

    log: Path
    id: str | int
    epoch: int
    uuid: str | None


@dataclass(frozen=True, slots=True)
class NativeTrace:
    """A trace under the ids of the tool that has recorded it.

    Attributes:
        span: Returns the tool's id of a span by its key, None if there is none. For Inspect, which
            scores whole samples, it returns the key.
        projects: The known projects of LangSmith's runs by the runs' ids.
        sample: The sample of Inspect, None for other tools.
    """

    tool: Tool
    id: str
    span: Callable[[str], str | None]
    projects: Mapping[str, str] = field(default_factory=dict)
    sample: Sample | None = None


NativeOf = Callable[[str], NativeTrace | None]
"""Returns a trace by its id in the workspace, None if no tool's id of it is known."""


def native_from_files(workspace: Workspace) -> NativeOf:
    """Return a function that finds the ids of a trace in the tool that has recorded it.

    The workspace holds the ids of OpenTelemetry. For other tools the file of the trace is read,
    since only the file shows which tool has written it.
    """
    return _NativeTraceFinder(workspace).trace


@dataclass(frozen=True, slots=True)
class _NativeIds:
    """The ids in one file.

    ``ids`` are those of spans by place, ``projects`` those of projects by the ids of runs.
    ``samples`` are by the index of their record.
    """

    tool: str
    ids: Mapping[str, str]
    projects: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[int, Sample] = field(default_factory=dict)


class _NativeTraceFinder:
    """Finds native traces; the ids of the last file are kept, as a file may hold many traces."""

    def __init__(self, workspace: Workspace) -> None:
        self._records = {record.trace_id: record for record in workspace.traces()}
        self._trace_of: TraceOf = traces_from_files(workspace)
        self._last_path: Path | None = None
        self._last_ids: _NativeIds | None = None

    def trace(self, trace_id: str) -> NativeTrace | None:
        """Return the ids of a trace in the tool that recorded it; None if they are not known."""
        record = self._records.get(trace_id, TraceRecord(trace_id))
        identity = record.identity
        # Samples in old logs of Inspect have names, but no ids from which a trace id follows.
        if identity is None or not (identity.native or identity.reader == inspect.READER.name):
            return None
        if identity.reader in _READERS_OF_OTEL:
            return self._otel_trace(trace_id, identity)
        trace = self._trace_of(trace_id)
        file = None if trace is None else self._ids_of_last_file(trace.path)
        if trace is None or file is None:
            return None
        spans = _SpansByPlace(trace, file)
        match file.tool:
            case "langfuse":
                return NativeTrace("langfuse", identity.trace_id, spans.id_of)
            case "langsmith":
                return NativeTrace("langsmith", identity.trace_id, spans.id_of, file.projects)
            case "inspect" if trace.record is not None and trace.record in file.samples:
                sample = file.samples[trace.record]
                return NativeTrace("inspect", identity.trace_id, str, sample=sample)
        return None

    def _otel_trace(self, trace_id: str, identity: TraceIdentity) -> NativeTrace | None:
        """Return the ids of an OpenTelemetry trace; None if its id has another form."""
        if not _TRACE_ID.fullmatch(identity.trace_id):
            return None

        def span(key: str) -> str | None:
            """Return the OpenTelemetry id of the span with a key; None if it is not known."""
            if match := _KEY.fullmatch(key):
                return match[1]
            trace = self._trace_of(trace_id)
            file = None if trace is None else self._ids_of_last_file(trace.path)
            if trace is None or file is None:
                return None
            span_id = _SpansByPlace(trace, file).id_of(key)
            return span_id if span_id is not None and _SPAN_ID.fullmatch(span_id) else None

        return NativeTrace("otel", identity.trace_id, span)

    def _ids_of_last_file(self, path: Path) -> _NativeIds | None:
        if self._last_path != path:
            self._last_ids = _ids_in_file(Source(path))
            self._last_path = path
        return self._last_ids


@dataclass(frozen=True, slots=True)
class _SpansByPlace:
    """A trace with the ids at the places in its file."""

    trace: Trace
    file: _NativeIds

    def id_of(self, key: str) -> str | None:
        index = self.trace.index_of(key)
        return None if index is None else self.file.ids.get(self.trace.span(index).place)


def _ids_in_file(source: Source) -> _NativeIds | None:
    """Return the ids in a file of one of the tools; None for any other file."""
    if inspect.READER.recognises(source):
        return _ids_of_inspect(source, inspect.samples_in(source))
    if source.is_binary:
        return None
    if (vendor := vendor_of(source)) is not None:
        spans = [
            span for records in traces_in(source, vendor, []) for span in records.by_id.values()
        ]
        ids = {span.location: span.id for span in spans if span.id != span.location}
        projects = {span.id: text_at(span.value, ("session_id",)) for span in spans}
        return _NativeIds(vendor.name, ids, {run: name for run, name in projects.items() if name})
    if layout_of(source) is not None:
        return _NativeIds("otel", _ids_of_otel(source))
    return None


def _ids_of_inspect(
    source: Source, samples: Iterable[tuple[int, Mapping[str, object]]]
) -> _NativeIds:
    """Return the samples in a log of Inspect that have an id and an epoch."""
    samples_by_record = {}
    for record, sample in samples:
        name = sample.get("id")
        epoch = as_count(sample.get("epoch"))
        if isinstance(name, str | int) and not isinstance(name, bool) and epoch is not None:
            samples_by_record[record] = Sample(
                source.path, name, epoch, as_text(sample.get("uuid"))
            )
    return _NativeIds("inspect", {}, samples=samples_by_record)


def _ids_of_otel(source: Source) -> dict[str, str]:
    """Return the ids of spans by their places; a log record has the id of its span."""
    ids = {}
    for raw in raw_spans(source, []):
        if not isinstance(raw.value, Mapping):
            continue
        if raw.is_log:
            native_id = span_id(raw.value.get("spanId", raw.value.get("span_id")))
        else:
            native_id = span_of(raw.value, raw.location).id
        if native_id is not None:
            ids[raw.location] = native_id
    return ids
