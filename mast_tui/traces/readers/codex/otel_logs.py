"""Codex's telemetry as ITBench's runner keeps it: OTLP log requests, one a line.

A line wraps what was sent to ``/v1/logs``, decoded: ``{"path", "data": {"resource_logs": [...]}}``.
Its records are events, tied to each other by ``conversation.id``; each conversation is a trace.
Keys are ``<call id>:call`` and ``<call id>:result``, an answer's item id, else the place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.index.document import DocumentTrace
from mast_tui.traces.io.json_values import InvalidJSON, as_text, canonical_bytes, load_json
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, TraceIdentity
from mast_tui.traces.readers.codex.otel_events import LogEvent, events_of, steps_of

_FIRST_LINE: Final = re.compile(rb'\A\s*\{\s*"timestamp"\s*:\s*"[^"]*",\s*"path"\s*:\s*"/v1/')
_LISTED_PROBLEMS: Final = 200


class CodexOtelLogsReader:
    """Reads the requests that a Codex run has sent to ITBench's collector of telemetry."""

    name: Final = "codex-otel-logs"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether the head has wrapped requests; one may be longer than the head."""
        if not source.head_lines:
            return _FIRST_LINE.match(source.head) is not None and b'"resource_logs"' in source.head
        return any(map(_is_request, source.head_records))

    def read(self, source: Source) -> FileReport:
        """A trace for each conversation, in the order in which they begin."""
        requests = _Requests()
        for number, line in enumerate(source.data.split(b"\n"), 1):
            if line.strip():
                requests.take(number, line)
        found = requests.conversations()
        problems = tuple(requests.problems)
        if not found:
            reason = problems[0].message if problems else "no records"
            return FileReport(
                source.path, failed=f"no log record in it: {reason}", problems=problems
            )
        if len(found) == 1:
            ((thread, events),) = found.items()
            trace = self._trace(source, thread, events, None, problems)
            return FileReport(source.path, format=self.name, traces=(trace,))
        traces = tuple(
            self._trace(source, thread, events, number)
            for number, (thread, events) in enumerate(found.items())
        )
        return FileReport(source.path, format=self.name, traces=traces, problems=problems)

    def _trace(
        self,
        source: Source,
        thread: str | None,
        events: list[LogEvent],
        record: int | None,
        problems: tuple[Problem, ...] = (),
    ) -> DocumentTrace:
        content = b"\n".join(canonical_bytes(event.values) for event in events)
        identity = identity_by_content(
            source.path, record, content, reader=self.name, key_scheme=self.key_scheme
        )
        if thread is not None:
            identity = _named(identity, thread)
        steps, meta = steps_of(events)
        return DocumentTrace(
            identity, source.path, steps, record=record, meta=meta, problems=problems
        )


READER: Final = CodexOtelLogsReader()


def _named(identity: TraceIdentity, thread: str) -> TraceIdentity:
    return TraceIdentity(
        thread,
        identity.content_hash,
        identity.content_bytes,
        identity.reader,
        identity.key_scheme,
        native=True,
    )


def _is_request(record: Mapping[str, object]) -> bool:
    path, data = record.get("path"), record.get("data")
    if not isinstance(path, str) or not path.startswith("/v1/"):
        return False
    if isinstance(data, dict) and ("resource_logs" in data or "resourceLogs" in data):
        return True
    return "content_type" in record and any(
        name in record for name in ("data", "body", "body_hex", "body_hex_truncated")
    )


class _Requests:
    """The events in all requests, and what of them could not be read."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._events: list[LogEvent] = []

    def take(self, number: int, line: bytes) -> None:
        """Take the request on line ``number``."""
        try:
            request = load_json(line)
        except InvalidJSON as error:
            self._complain(number, f"not JSON, left out: {error}")
            return
        if not isinstance(request, dict):
            self._complain(number, "not a JSON object, left out")
            return
        field = "data" if "data" in request else "body"
        data = request.get(field)
        events = events_of(data, f"line {number} /{field}") if isinstance(data, dict) else None
        if events is None:
            self._complain(number, _why_not(request, data))
        else:
            self._events += events

    def conversations(self) -> dict[str | None, list[LogEvent]]:
        """The events of each conversation; one that names none belongs to that before it."""
        first = next((event.conversation for event in self._events if event.conversation), None)
        found: dict[str | None, list[LogEvent]] = {}
        current = first
        for event in self._events:
            current = event.conversation or current
            found.setdefault(current, []).append(event)
        return found

    def _complain(self, number: int, message: str) -> None:
        if len(self.problems) < _LISTED_PROBLEMS:
            self.problems.append(Problem(f"line {number}", message))
        elif len(self.problems) == _LISTED_PROBLEMS:
            last = "from here on problems are not listed"
            self.problems.append(Problem(f"line {number}", last))


def _why_not(request: Mapping[str, object], data: object) -> str:
    """Why a request has no log records."""
    error = as_text(data.get("error")) if isinstance(data, Mapping) else None
    error = error or as_text(request.get("decode_error"))
    if error is not None:
        return f"not decoded when it was recorded: {error}"
    if any(name.startswith("body_") for name in request):
        return "not decoded when it was recorded"
    path = as_text(request.get("path"))
    return f"no log records but what was sent to {path}" if path else "no log records"
