"""The ids that the tool which recorded a trace gives to it and its spans."""

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
    """A trace as the tool knows it that recorded it.

    ``span`` gives the tool's id of a span by its key, None where it has none; Inspect scores whole
    samples, so there it is the key. ``projects`` are the projects of LangSmith's runs by the ids
    of these, as far as the export tells them.
    """

    tool: Tool
    id: str
    span: Callable[[str], str | None]
    projects: Mapping[str, str] = field(default_factory=dict)
    sample: Sample | None = None


NativeOf = Callable[[str], NativeTrace | None]
"""A trace by its id in the workspace; None where no tool's own id of it is known."""


def native_from_files(workspace: Workspace) -> NativeOf:
    """Return a function that finds the native ids of a trace, in its file if necessary.

    OpenTelemetry's ids stand in the workspace. Of the other tools the file is needed, as nothing
    else tells whose export it was; a trace whose file is not at hand has no native id then.
    """
    return _Natives(workspace).trace


@dataclass(frozen=True, slots=True)
class _File:
    """The ids in one file: of spans by their places, of their projects by the spans' ids."""

    tool: str
    ids: Mapping[str, str]
    projects: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[int, Sample] = field(default_factory=dict)


class _Natives:
    """The file that was asked for last is kept, as a file may hold many traces."""

    def __init__(self, workspace: Workspace) -> None:
        self._records = {record.trace_id: record for record in workspace.traces()}
        self._trace_of: TraceOf = traces_from_files(workspace)
        self._last: tuple[Path, _File | None] | None = None

    def trace(self, trace_id: str) -> NativeTrace | None:
        record = self._records.get(trace_id, TraceRecord(trace_id))
        identity = record.identity
        # Inspect's samples have names of their own, which make no trace's id where logs are old.
        if identity is None or not (identity.native or identity.reader == inspect.READER.name):
            return None
        if identity.reader in _READERS_OF_OTEL:
            return self._of_otel(trace_id, identity)
        trace = self._trace_of(trace_id)
        file = None if trace is None else self._file(trace.path)
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

    def _of_otel(self, trace_id: str, identity: TraceIdentity) -> NativeTrace | None:
        if not _TRACE_ID.fullmatch(identity.trace_id):
            return None

        def span(key: str) -> str | None:
            if match := _KEY.fullmatch(key):
                return match[1]
            trace = self._trace_of(trace_id)
            file = None if trace is None else self._file(trace.path)
            if trace is None or file is None:
                return None
            span_id = _SpansByPlace(trace, file).id_of(key)
            return span_id if span_id is not None and _SPAN_ID.fullmatch(span_id) else None

        return NativeTrace("otel", identity.trace_id, span)

    def _file(self, path: Path) -> _File | None:
        if self._last is None or self._last[0] != path:
            self._last = path, _read(Source(path))
        return self._last[1]


@dataclass(frozen=True, slots=True)
class _SpansByPlace:
    """A trace with the ids at the places in its file."""

    trace: Trace
    file: _File

    def id_of(self, key: str) -> str | None:
        index = self.trace.index_of(key)
        return None if index is None else self.file.ids.get(self.trace.span(index).place)


def _read(source: Source) -> _File | None:
    """Return the ids in a file of one of the tools; None for any other."""
    if inspect.READER.recognises(source):
        return _of_inspect(source, inspect.samples_in(source))
    if source.is_binary:
        return None
    if (vendor := vendor_of(source)) is not None:
        spans = [
            span for records in traces_in(source, vendor, []) for span in records.by_id.values()
        ]
        ids = {span.location: span.id for span in spans if span.id != span.location}
        projects = {span.id: text_at(span.value, ("session_id",)) for span in spans}
        return _File(vendor.name, ids, {run: name for run, name in projects.items() if name})
    if layout_of(source) is not None:
        return _File("otel", _ids_of_otel(source))
    return None


def _of_inspect(source: Source, samples: Iterable[tuple[int, Mapping[str, object]]]) -> _File:
    named = {}
    for record, sample in samples:
        name = sample.get("id")
        epoch = as_count(sample.get("epoch"))
        if isinstance(name, str | int) and not isinstance(name, bool) and epoch is not None:
            named[record] = Sample(source.path, name, epoch, as_text(sample.get("uuid")))
    return _File("inspect", {}, samples=named)


def _ids_of_otel(source: Source) -> dict[str, str]:
    """Return the ids of spans by their places; a log record goes by the span that it belongs to."""
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
