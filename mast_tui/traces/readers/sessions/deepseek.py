"""Sessions of DeepSeek Harness (``dsh``): logs of its durable events, or the events it prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.counts import counted
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Problem, SpanStatus
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    Turn,
    call_piece,
    log_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.values import output_text, usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    kind_of,
    name_in,
    name_set,
    text_in,
)
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
    SessionContext,
    SessionFormat,
    SessionRecord,
    as_system,
    message_turn,
    record_turn,
    text_at,
)
from mast_tui.traces.result_status import status_of_error_flag

_SHOWN_TYPES: Final = name_set("user/message assistant/message tool/call tool/result")
_SILENT_TYPES: Final = name_set("""
    session/title session/title-llm-request session/end-seed turn/start step/start step/end
    assistant/chunk text-chunks reasoning-chunks tool-call-chunks agent/inbox/spliced
    request/context approval/asked approval/policy sandbox/mode permission/preset todo/write
    compaction/start compaction/end llm/retry-started hook/invoked session
""")
"""The types of settings, and of records that repeat the text of another record."""
_EVENT_TYPES: Final = _SHOWN_TYPES | _SILENT_TYPES
_PRINTED_METHODS: Final = (None, "session.event")
"""The methods of shown notifications; a record that is no notification has none."""
_USER_SOURCES: Final = (None, "user", "human", "coordinator")
"""The sources of a user's messages; the coordinator is the agent that started a sub-agent."""
_GOOD_OUTCOMES: Final = ("completed", "approved", "allow", None)


def _event_of(record: Fields) -> Fields:
    """Return the event that a record is, or that it prints as stream-json or as a notification."""
    return fields_of(first_in(fields_of(record.get("params")) or record, "event")) or record


def _shown_records(
    records: Sequence[SessionRecord], problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return the events after those that a fork copied from its parent's session."""
    records = [
        replace(record, value=_event_of(record.value))
        for record in records
        if kind_of(record.value) != "result" and record.value.get("method") in _PRINTED_METHODS
    ]
    kinds = [kind_of(record.value) for record in records]
    if "session/end-seed" not in kinds:
        return records
    seed_length = kinds.index("session/end-seed")
    message_count = sum(kind in _SHOWN_TYPES for kind in kinds[:seed_length])
    if message_count:
        message = counted(message_count, "record copied", "records copied")
        problems.append(Problem(records[0].location, f"{message} from the parent's session"))
    return [record for record in records[:1] if kinds[0] == "session"] + list(records[seed_length:])


class _HarnessTranslator:
    """Makes the turns of a session.

    A call is in the model's message, and again in the event that starts it.
    """

    def __init__(self, _session: SessionContext) -> None:
        self._system_prompt: str | None = None

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of an event that is shown."""
        kind = kind_of(record)
        data = fields_of(record.get("data"))
        match kind:
            case "user/message":
                turn = message_turn(record, {**data, "role": "user"})
                source = fields_of(data.get("source")).get("kind")
                if source in _USER_SOURCES:
                    return turn
                return replace(turn, pieces=as_system(turn.pieces))
            case "assistant/message":
                return _model_turn(record, data)
            case "tool/call" | "tool/code-dispatch-start":
                return record_turn(record, _call_piece(data))
            case "tool/code-dispatch":  # a call by code that the model wrote, with its result
                status = status_of_error_flag(data.get("isError") is True)
                result = result_piece(
                    data, data.get("content"), "", call_id=_call_id(data), status=status
                )
                return record_turn(record, _call_piece(data), result)
            case "tool/result":
                return _result_turn(record, data)
            case "assistant/chunk" if failure := _chunk_failure(data):
                return record_turn(record, log_piece(failure, kind, failed=True))
            case "request/header":
                prompt = as_text(fields_of(data.get("header")).get("system"))
                if prompt is None or prompt == self._system_prompt:
                    return None
                self._system_prompt = prompt
                return record_turn(record, SYSTEM.piece(prompt))
        return None if kind in _SILENT_TYPES else _log_turn(record, kind, data)


def _model_turn(record: Fields, data: Fields) -> Turn:
    """Return the turn of the model's message; older logs have no object around its content."""
    message = fields_of(data.get("message")) or data
    input_fields = "inputTokens cacheReadTokens cacheWriteTokens"
    tokens = usage_tokens(data.get("usage"), input_fields, "outputTokens")
    model = name_in(fields_of(message.get("source")), "model")
    return message_turn(record, {**message, "role": "assistant"}, tokens=tokens, model=model)


def _chunk_failure(data: Fields) -> str | None:
    """Return the message of the failure that ends the parts of a model's message."""
    return text_in(fields_at(data, "chunk", "reason", "failure"), "message")


def _call_piece(data: Fields) -> Piece:
    call = {"id": _call_id(data), "name": data.get("name"), "arguments": data.get("arguments")}
    return call_piece(call, "", ASSISTANT)


def _call_id(data: Fields) -> str | None:
    return identifier_in(data, "subCallId", "callId")


def _result_turn(record: Fields, data: Fields) -> Turn:
    """Return the turn of a result, which is in a part of the type ``tool-result``."""
    message = fields_of(data.get("message")) or data
    turn = message_turn(record, {**message, "role": "user"})
    if not any(kind_of(part) == "tool-result" for part in items_of(message.get("content"))):
        result = result_piece(data, output_text(message.get("content")), "", call_id=_call_id(data))
        turn = record_turn(record, result)
    if "error" not in data:
        return turn
    failed_pieces = (replace(piece, status=SpanStatus.ERROR) for piece in turn.pieces)
    return replace(turn, pieces=tuple(failed_pieces))


def _log_turn(record: Fields, kind: str, data: Fields) -> Turn | None:
    """Return a log of an event outside of the conversation, unless it ended well."""
    reason = fields_of(data.get("reason"))
    outcome = as_text(reason.get("kind")) or as_text(data.get("outcome"))
    if (
        kind in ("turn/end", "approval/decided")
        and outcome in _GOOD_OUTCOMES
        and "error" not in data
    ):
        return None
    failed = kind in ("turn/end", "llm/retry") or data.get("kind") == "error"
    error = fields_of(reason.get("error")) or fields_of(data.get("failure"))
    text = as_text(error.get("message")) or as_text(data.get("text"))
    text = text or output_text(data.get("summary")) or outcome or dump_text(data)
    return record_turn(record, log_piece(text, kind, failed=failed))


DEEPSEEK_HARNESS: Final = SessionFormat(
    name="deepseek-harness",
    system="deepseek-harness",
    typical_bytes=(b'"tool/', b'/message"', b'"turn/start"', b'"createdAt"'),
    recognises=lambda records: any(
        "createdAt" in record
        if kind_of(record) == "session"
        else kind_of(record) in _EVENT_TYPES and isinstance(record.get("data"), Mapping)
        for record in map(_event_of, records)
    ),
    make_translator=_HarnessTranslator,
    repeats_calls=True,
    select_records=_shown_records,
    list_paths=("events",),
    id_paths="seq",
    fact_paths={
        "id": "session:id",
        "model": "data.message.source.model data.header.config.model",
    },
    session_of=lambda record: text_at(record, "sessionId params.sessionId"),
)
