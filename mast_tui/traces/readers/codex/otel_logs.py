"""Codex's telemetry: OTLP log requests, one a line, as ITBench's runner or a collector keeps them.

A line has a decoded request to ``/v1/logs``: ``{"path", "data": {"resource_logs": [...]}}``, or the
request alone. Its records are events; the events with one ``conversation.id`` are a trace. They
have the prompts, the calls with their results, and the tokens, but of the model's texts at most the
final answer. Keys are ``<call id>:call`` and ``<call id>:result``, an answer's item id, else the
location.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

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
from mast_tui.traces.model import FileReport, Problem, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.pieces import Piece, Turn, call_piece, log_piece, result_piece
from mast_tui.traces.readers.codex.records import CODEX
from mast_tui.traces.readers.document_traces import report_of
from mast_tui.traces.readers.json_fields import Fields, add_new, fields_of, name_set
from mast_tui.traces.readers.otel.dialects import start_of_event
from mast_tui.traces.readers.otel.reader import RawRecord, otlp_records, time_of_log
from mast_tui.traces.readers.otel.spans import attributes_of, unrecorded_prompt
from mast_tui.traces.readers.sessions.engine import (
    SessionContext,
    SessionFormat,
    SessionReader,
    SessionRecord,
    Translator,
    records_on_lines,
)
from mast_tui.traces.result_status import status_of_flag
from mast_tui.traces.times import unix_seconds

_BODY_FIELDS: Final = ("data", "body", "body_hex", "body_hex_truncated")
_LIST_FIELDS: Final = ("resource_logs", "resourceLogs")
_EVENT_NAME: Final = b'"codex.'


class CodexOtelLogsReader(SessionReader):
    """Reads the requests that a Codex run has sent to a collector of telemetry."""

    def recognises(self, source: Source) -> bool:
        """Return whether the first records are recorded requests."""
        return self._format.recognises(source.head_records) or (
            _EVENT_NAME in source.head and any(map(_has_log_records, source.head_records))
        )

    def read(self, source: Source) -> FileReport:
        """Return a trace for each conversation, in the order of the conversations' first events."""
        problems: list[Problem] = []
        requests = records_on_lines(source, problems)
        events = [event for request in requests for event in _events_of(request, problems)]
        if not events:
            reason = f"no log record in it: {problems[0].message if problems else 'no records'}"
            return FileReport(source.path, failed=reason, problems=tuple(problems))
        conversations = self._records_by_session(events)
        is_only = len(conversations) == 1  # The problems of the file are then those of the trace.
        traces = [
            self.trace(
                source.path,
                b"\n".join(canonical_bytes(_attributes(event.value)) for event in conversation),
                conversation,
                header={},
                number=None if is_only else number,
                problems=problems if is_only else (),
            )
            for number, conversation in enumerate(conversations)
        ]
        return report_of(self, source, traces, () if is_only else problems)


def _is_recorded_request(record: Fields) -> bool:
    """Return whether a record is a recorded OTLP request, with a decoded body or not."""
    path = as_text(record.get("path")) or ""
    is_decoded = any(name in fields_of(record.get("data")) for name in _LIST_FIELDS)
    has_body = "content_type" in record and any(name in record for name in _BODY_FIELDS)
    return path.startswith("/v1/") and (is_decoded or has_body)


def _has_log_records(request: Fields) -> bool:
    return any(isinstance(request.get(name), list) for name in _LIST_FIELDS)


def _events_of(request: SessionRecord, problems: list[Problem]) -> list[SessionRecord]:
    """Return the log records in a request as events; add a problem if it has no list of records."""
    body_field = "data" if "data" in request.value else "body"
    body = fields_of(request.value.get(body_field))
    if _has_log_records(request.value):
        records = otlp_records(request.value, f"{request.location} ")
    elif _has_log_records(body):
        records = otlp_records(body, f"{request.location} /{body_field}")
    else:
        problems.append(Problem(request.location, _reason_without_records(request.value, body)))
        return []
    return [
        _event_of_record(record)
        for record in records
        if record.is_log and isinstance(record.value, dict)
    ]


def _reason_without_records(request: Fields, body: Fields) -> str:
    """Return the reason why a request with this body has no log records."""
    error = as_text(body.get("error")) or as_text(request.get("decode_error"))
    if error is not None:
        return f"not decoded when it was recorded: {error}"
    if any(name.startswith("body_") for name in request):  # an undecoded body, as ``body_hex``
        return "not decoded when it was recorded"
    path = as_text(request.get("path"))
    return f"no log records but what was sent to {path}" if path else "no log records"


_FIRST_ERROR_CODE: Final = 400
"""The lowest HTTP status code of a failed request."""


def _event_of_record(raw: RawRecord) -> SessionRecord:
    """Return a log record as an event, with its name, attributes, body and time."""
    record = fields_of(raw.value)
    attributes = attributes_of(record.get("attributes"))
    time = unix_seconds(attributes.get("event.timestamp"))
    name = as_text(attributes.get("event.name")) or ""
    event = {
        "name": name,
        "attributes": attributes,
        "body": record.get("body"),
        "time": time_of_log(raw) if time is None else time,
        "id": attributes.get("item.id") if name == "codex.agent_response" else None,
    }
    return SessionRecord(event, raw.location)


def _attributes(event: Fields) -> Fields:
    return fields_of(event["attributes"])


def _attribute_text(event: Fields, name: str) -> str | None:
    return as_text(_attributes(event).get(name))


def _translator_of_conversation(session: SessionContext) -> Translator:
    """Set the conversation's id and model; return the function that makes a turn of an event."""
    events = session.values
    session.id = next(filter(None, (_attribute_text(e, "conversation.id") for e in events)), None)
    session.model = next(filter(None, (_attribute_text(e, "model") for e in events)), None)
    results = (event for event in events if event["name"] == "codex.tool_result")
    # The event of a result shows the call too.
    shown_call_ids = {_attribute_text(event, "call_id") for event in results}
    return partial(_turn_of_event, shown_call_ids)


def _turn_of_event(shown_call_ids: set[str | None], event: Fields) -> Turn:
    """Return the turn of an event; a decision repeats no call of ``shown_call_ids``."""
    pieces = tuple(_pieces_of_event(event, shown_call_ids))
    return Turn(pieces, as_number(event["time"]), _tokens_of_call(event))


_COMMON_ATTRIBUTES: Final = name_set("""
    app.version auth_mode conversation.id event.name event.timestamp model originator slug
    terminal.type user.account_id user.email
""")
"""The attributes of every record that describe the record and the user."""

_TRAFFIC_EVENTS: Final = name_set("""
    codex.api_request codex.sse_event codex.startup_phase codex.turn_ttft codex.turn_ttfm
    codex.websocket_connect codex.websocket_event codex.websocket_request codex.websocket.connect
    codex.websocket.event codex.websocket.request
""")
"""Events about connections and timing, which are shown only after a failure."""

_CALL_COUNTS: Final = ("input_token_count", "output_token_count")
_TITLE_BY_COUNT: Final[Mapping[str, str]] = {
    "input_token_count": "tokens in",
    "cached_token_count": "of them cached",
    "output_token_count": "out",
    "reasoning_token_count": "of them reasoning",
}
"""The counts of a model call's tokens, as they are shown."""


def _event_log_piece(
    event: Fields, text: str, *, failed: bool = False, name: str | None = None
) -> Piece:
    """Return a log piece of an event; its name is the event's name by default."""
    return replace(log_piece(text, name or as_text(event["name"]), failed=failed), agent=CODEX)


def _pieces_of_event(event: Fields, shown_call_ids: set[str | None]) -> Iterator[Piece]:
    """Yield the pieces of an event; a decision repeats no call of ``shown_call_ids``."""
    attributes = _attributes(event)
    match event["name"]:
        case "codex.user_prompt":
            yield Piece(SpanKind.MESSAGE, Role.USER, agent="user", text=_prompt_text(attributes))
        case "codex.agent_response":
            text = content_text(attributes.get("response"))
            yield Piece(SpanKind.MESSAGE, Role.AGENT, agent=CODEX, text=text)
        case "codex.tool_decision":
            yield from _decision_pieces(event, shown_call_ids)
        case "codex.tool_result":
            yield from _result_pieces(event)
        case "codex.sse_event" if not attributes.keys().isdisjoint(_CALL_COUNTS):
            yield _model_call_piece(event)
        case name:
            failed = _has_failed(event)
            if failed or name not in _TRAFFIC_EVENTS:
                yield _event_log_piece(event, _text_of(event), failed=failed)


def _model_call_piece(event: Fields) -> Piece:
    """Return a log with the token counts of a model call, else the log of the event."""
    if _tokens_of_call(event) is None:
        return _event_log_piece(event, _text_of(event))
    attributes = _attributes(event)
    counts = ((as_count(attributes.get(name)), title) for name, title in _TITLE_BY_COUNT.items())
    text = ", ".join(f"{count:,} {title}" for count, title in counts if count is not None)
    return _event_log_piece(event, f"model call: {text}", name="model call")


def _tokens_of_call(event: Fields) -> Tokens | None:
    if event["name"] != "codex.sse_event":
        return None
    return tokens_of(*map(_attributes(event).get, _CALL_COUNTS))


def _prompt_text(attributes: Fields) -> str:
    """Return the text of a prompt, or a sentence with the length of an unrecorded prompt."""
    text = content_text(attributes.get("prompt"))
    return text if text.strip() else unrecorded_prompt(attributes)


def _decision_pieces(event: Fields, shown_call_ids: set[str | None]) -> Iterator[Piece]:
    """Yield the call and the log of a decision on a tool call.

    A call in ``shown_call_ids`` is not shown again; any other call is added there.
    """
    call_id = _attribute_text(event, "call_id")
    name = _attribute_text(event, "tool_name") or "tool"
    if call_id is not None and add_new(shown_call_ids, call_id):
        yield call_piece({"id": call_id, "name": name}, "", CODEX)
    decision = _attribute_text(event, "decision") or "decided"
    source = _attribute_text(event, "source")
    is_automatic = (source or "").lower() == "config"
    # An approval by the configuration is no decision of a person.
    if not (is_automatic and decision.lower().startswith("approved")):
        suffix = f" ({source})" if source else ""
        yield _event_log_piece(event, f"{name}: {decision}{suffix}")


def _result_pieces(event: Fields) -> Iterator[Piece]:
    """Yield a call and its result from an event that reports both."""
    attributes = _attributes(event)
    name = _attribute_text(event, "tool_name") or "tool"
    start = start_of_event(attributes, as_number(event["time"]))
    yield replace(call_piece(attributes, "", CODEX, name=name), start=start)
    status = status_of_flag(attributes.get("success"))
    result = result_piece(attributes, attributes.get("output"), "", name=name, status=status)
    yield replace(result, agent=CODEX)  # A result names the agent that made the call.


def _has_failed(event: Fields) -> bool:
    """Return whether an event has an error, an HTTP status of failure or a failed call."""
    attributes = _attributes(event)
    code = as_count(attributes.get("http.response.status_code"))
    return (
        _attribute_text(event, "error.message") is not None
        or (code is not None and code >= _FIRST_ERROR_CODE)
        or status_of_flag(attributes.get("success")) is SpanStatus.ERROR
    )


def _text_of(event: Fields) -> str:
    """Return an event's error with its details, else its attributes, body or name."""
    error = _attribute_text(event, "error.message")
    if error is not None:
        code = as_count(_attributes(event).get("http.response.status_code"))
        parts = (_attribute_text(event, "event.kind"), code)
        details = [str(part) for part in parts if part is not None]
        return f"{error} ({', '.join(details)})" if details else error
    attributes = {
        name: value
        for name, value in _attributes(event).items()
        if name not in _COMMON_ATTRIBUTES and not name.startswith("auth.") and value is not None
    }
    if attributes:
        return dump_text(attributes)
    return as_text(event["body"]) or as_text(event["name"]) or dump_text(event["body"])


READER: Final = CodexOtelLogsReader(
    SessionFormat(
        name="codex-otel-logs",
        system=CODEX,
        typical_bytes=(),
        recognises=lambda records: any(map(_is_recorded_request, records)),
        make_translator=_translator_of_conversation,
        session_of=lambda event: _attribute_text(event, "conversation.id"),
    )
)
