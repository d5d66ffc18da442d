"""Codex's telemetry as ITBench's runner keeps it: OTLP log requests, one a line.

A line wraps what was sent to ``/v1/logs``, decoded: ``{"path", "data": {"resource_logs": [...]}}``.
Its records are events, tied to each other by ``conversation.id``; each conversation is a trace.
Telemetry has the prompts, the calls with their results, and the tokens of each model call. What
the model says is not in it, but for the final answer where that was asked for. Keys are ``<call
id>:call`` and ``<call id>:result``, an answer's item id, else the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Unpack

from mast_tui.traces.index.document import More, StepList
from mast_tui.traces.index.span_table import list_problem
from mast_tui.traces.io.json_values import (
    as_count,
    as_number,
    as_text,
    canonical_bytes,
    content_text,
    dump_text,
    tokens_of,
)
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers.base import record_on
from mast_tui.traces.readers.codex.records import AGENT, status_of_flag
from mast_tui.traces.readers.document_traces import report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, name_set, names
from mast_tui.traces.times import unix_seconds

_FIRST_LINE: Final = re.compile(rb'\A\s*\{\s*"timestamp"\s*:\s*"[^"]*",\s*"path"\s*:\s*"/v1/')


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
        problems: list[Problem] = []
        events: list[LogEvent] = []
        for number, line in enumerate(source.data.split(b"\n"), 1):
            request = record_on(line, number, False, problems) if line.strip() else None
            if request is not None:
                events += _events_of(request, number, problems)
        if not events:
            reason = f"no log record in it: {problems[0].message if problems else 'no records'}"
            return FileReport(source.path, failed=reason, problems=tuple(problems))
        conversations = _conversations(events)
        alone = len(conversations) == 1  # then what could not be read is its own
        traces = [
            _trace(source, thread, said, None if alone else number, problems if alone else ())
            for number, (thread, said) in enumerate(conversations.items())
        ]
        return report_of(self, source, traces, () if alone else problems)


READER: Final = CodexOtelLogsReader()


def _is_request(record: Fields) -> bool:
    path, data = record.get("path"), record.get("data")
    if not isinstance(path, str) or not path.startswith("/v1/"):
        return False
    if isinstance(data, dict) and ("resource_logs" in data or "resourceLogs" in data):
        return True
    return "content_type" in record and any(
        name in record for name in ("data", "body", "body_hex", "body_hex_truncated")
    )


def _trace(
    source: Source,
    thread: str | None,
    events: list[LogEvent],
    record: int | None,
    problems: Sequence[Problem],
) -> Trace:
    told = _Telling(events)
    return trace_of_steps(
        READER,
        source.path,
        b"\n".join(canonical_bytes(event.values) for event in events),
        told.steps,
        meta=TraceMeta(task=told.task, system=AGENT, model=told.model),
        record=record,
        native=thread,
        problems=problems,
    )


def _conversations(events: list[LogEvent]) -> dict[str | None, list[LogEvent]]:
    """The events of each conversation; one that names none belongs to that before it."""
    current = next((event.conversation for event in events if event.conversation), None)
    found: dict[str | None, list[LogEvent]] = {}
    for event in events:
        current = event.conversation or current
        found.setdefault(current, []).append(event)
    return found


def _events_of(request: Fields, number: int, problems: list[Problem]) -> list[LogEvent]:
    """The log records in the request on line ``number``; why there are none is a problem."""
    field = "data" if "data" in request else "body"
    data = request.get(field)
    place = f"line {number} /{field}"
    for resources, scopes, records in (
        ("resource_logs", "scope_logs", "log_records"),
        ("resourceLogs", "scopeLogs", "logRecords"),
    ):
        if isinstance(data, dict) and isinstance(data.get(resources), list):
            return [
                _event(record, found)
                for resource, under in _members(data, resources, place)
                for scope, below in _members(resource, scopes, under)
                for record, found in _members(scope, records, below)
            ]
    list_problem(problems, number, _why_not(request, data))
    return []


def _why_not(request: Fields, data: object) -> str:
    """Why a request has no log records."""
    error = as_text(data.get("error")) if isinstance(data, Mapping) else None
    error = error or as_text(request.get("decode_error"))
    if error is not None:
        return f"not decoded when it was recorded: {error}"
    if any(name.startswith("body_") for name in request):
        return "not decoded when it was recorded"
    path = as_text(request.get("path"))
    return f"no log records but what was sent to {path}" if path else "no log records"


_COMMON: Final = name_set("""
    app.version auth_mode conversation.id event.name event.timestamp model originator slug
    terminal.type user.account_id user.email
""")
"""What every record says of itself and of who ran it."""

_TRAFFIC: Final = name_set("""
    codex.api_request codex.sse_event codex.startup_phase codex.turn_ttft codex.turn_ttfm
    codex.websocket_connect codex.websocket_event codex.websocket_request codex.websocket.connect
    codex.websocket.event codex.websocket.request
""")
"""Events of the wire and the clock, which say nothing of the run unless something failed."""

_COUNTED: Final = ("input_token_count", "output_token_count")
_VALUE_KINDS: Final = names(
    "stringValue intValue doubleValue boolValue string_value int_value double_value bool_value"
)


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One log record: its flat attributes, its time in Unix seconds, where it stands."""

    name: str
    values: Fields
    body: object
    time: float | None
    place: str
    conversation: str | None


def _members(holder: Fields, field: str, place: str) -> Iterator[tuple[Fields, str]]:
    for number, member in enumerate(items_of(holder.get(field))):
        if isinstance(member, dict):
            yield member, f"{place}/{field}/{number}"


def _event(record: Fields, place: str) -> LogEvent:
    values = _flat(record.get("attributes"))
    time = unix_seconds(values.get("event.timestamp"))
    for field in ("time_unix_nano", "timeUnixNano", "observed_time_unix_nano"):
        if time is None and (nanoseconds := as_count(_number(record.get(field)))):
            time = nanoseconds / 1e9
    name = as_text(values.get("event.name")) or ""
    body = record.get("body")
    return LogEvent(name, values, body, time, place, as_text(values.get("conversation.id")))


def _number(value: object) -> object:
    """Nanoseconds have more digits than a count may have; they come as text or as a number."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        return int(value)
    return value


def _flat(attributes: object) -> Fields:
    """Attributes by name, from an object or from OTLP's list of keys and values."""
    if isinstance(attributes, dict):
        return attributes
    return {
        key: _value(pair.get("value"))
        for pair in map(fields_of, items_of(attributes))
        if isinstance(key := pair.get("key"), str)
    }


def _value(value: object) -> object:
    told = fields_of(value)
    return next((told[kind] for kind in _VALUE_KINDS if kind in told), value)


class _Telling:
    """The steps that one conversation's events tell of, and what they tell of it as a whole."""

    def __init__(self, events: Sequence[LogEvent]) -> None:
        self.steps = StepList()
        self.task: str | None = None
        self.model: str | None = None
        self._shown = {
            call for event in events if event.name == "codex.tool_result" and (call := _call(event))
        }
        for event in events:
            self._take(event)

    def _take(self, event: LogEvent) -> None:
        values = event.values
        if self.model is None:
            self.model = as_text(values.get("model"))
        match event.name:
            case "codex.user_prompt":
                self._prompt(event)
            case "codex.agent_response":
                text, key = content_text(values.get("response")), as_text(values.get("item.id"))
                self._add(event, SpanKind.MESSAGE, Role.AGENT, text, key=key)
            case "codex.tool_decision":
                self._decision(event)
            case "codex.tool_result":
                self._result(event)
            case "codex.sse_event" if not values.keys().isdisjoint(_COUNTED):
                self._usage(event)
            case name:
                failed = _failed(event)
                if failed or name not in _TRAFFIC:
                    status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
                    self._log(event, _words(event), status=status)

    def _prompt(self, event: LogEvent) -> None:
        text = content_text(event.values.get("prompt"))
        if not text.strip():
            length = as_count(event.values.get("prompt_length"))
            text = f"[a prompt of {length} characters that was not recorded]"
        if self.task is None:
            self.task = task_of_text(text)
        self._add(event, SpanKind.MESSAGE, Role.USER, text, agent="user")

    def _decision(self, event: LogEvent) -> None:
        """Show who let a call pass or not; one that is answered nowhere is shown here too."""
        call, name = _call(event), as_text(event.values.get("tool_name")) or "tool"
        if call is not None and call not in self._shown:
            self._shown.add(call)
            self._add(event, SpanKind.TOOL_CALL, Role.AGENT, "", key=f"{call}:call", name=name)
        decision = as_text(event.values.get("decision")) or "decided"
        source = as_text(event.values.get("source"))
        if decision.lower().startswith("approved") and (source or "").lower() == "config":
            return
        by = f" ({source})" if source else ""
        self._log(event, f"{name}: {decision}{by}")

    def _result(self, event: LogEvent) -> None:
        values, call, time = event.values, _call(event), event.time
        name = as_text(values.get("tool_name")) or "tool"
        start = None if time is None else time - _milliseconds(values.get("duration_ms")) / 1e3
        key, asked = f"{call}:call" if call else None, dump_text(values.get("arguments"))
        more = More(name=name, start=start, end=time)
        more["parent"] = self._add(event, SpanKind.TOOL_CALL, Role.AGENT, asked, key=key, **more)
        more["start"], more["end"] = time, None
        more["status"] = status_of_flag(values.get("success"))
        key, given = f"{call}:result" if call else None, content_text(values.get("output"))
        self._add(event, SpanKind.TOOL_RESULT, Role.TOOL, given, key=key, **more)

    def _usage(self, event: LogEvent) -> None:
        values = event.values
        tokens = tokens_of(*map(values.get, _COUNTED))
        if tokens is None:
            self._log(event, _words(event))
            return
        said = ", ".join(
            f"{count:,} {name}"
            for name, field in (
                ("tokens in", "input_token_count"),
                ("of them cached", "cached_token_count"),
                ("out", "output_token_count"),
                ("of them reasoning", "reasoning_token_count"),
            )
            if (count := as_count(values.get(field))) is not None
        )
        self._log(event, f"model call: {said}", name="model call", tokens=tokens)

    def _log(self, event: LogEvent, text: str, **more: Unpack[More]) -> None:
        more.setdefault("name", event.name or None)
        self._add(event, SpanKind.LOG, Role.LOG, text, **more)

    def _add(
        self,
        event: LogEvent,
        kind: SpanKind,
        role: Role,
        text: str,
        *,
        agent: str = AGENT,
        key: str | None = None,
        **more: Unpack[More],
    ) -> str:
        more.setdefault("start", event.time)
        more["place"] = event.place
        return self.steps.add(key or event.place, kind, role, agent, text, **more)


def _call(event: LogEvent) -> str | None:
    return as_text(event.values.get("call_id"))


def _milliseconds(value: object) -> float:
    """A length of time, which Codex writes as text."""
    number = as_number(value)
    if number is None:
        number = as_count(value)
    return number if number is not None and number > 0 else 0.0


def _failed(event: LogEvent) -> bool:
    code = as_count(event.values.get("http.response.status_code"))
    return (
        as_text(event.values.get("error.message")) is not None
        or (code is not None and code >= 400)
        or status_of_flag(event.values.get("success")) is SpanStatus.ERROR
    )


def _words(event: LogEvent) -> str:
    """What an event says beside what all of them say: an error's own words first."""
    error = as_text(event.values.get("error.message"))
    told = {
        name: value
        for name, value in event.values.items()
        if name not in _COMMON and not name.startswith("auth.") and value is not None
    }
    if error is not None:
        code = as_count(event.values.get("http.response.status_code"))
        kind = as_text(event.values.get("event.kind"))
        where = ", ".join(str(part) for part in (kind, code) if part is not None)
        return f"{error} ({where})" if where else error
    body = as_text(event.body)
    if told:
        return dump_text(told)
    return body or event.name or dump_text(event.body)
