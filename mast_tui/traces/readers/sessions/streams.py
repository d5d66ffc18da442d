"""The streams that Gemini CLI and Cursor print with ``--output-format stream-json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text
from mast_tui.traces.model import Problem, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Turn,
    call_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.json_fields import Fields, fields_of, first_in, kind_of, texts_in
from mast_tui.traces.readers.sessions.engine import (
    USER,
    SessionContext,
    SessionFormat,
    SessionRecord,
    Translator,
    any_record_with,
    log_turn,
    message_turn,
    record_turn,
    stateless,
    unknown_record_turn,
)


def _with_whole_messages(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> list[SessionRecord]:
    """Return the records, with adjacent parts of a message or a thought joined to one record."""
    whole_records: list[SessionRecord] = []
    for text_field, group in groupby(records, lambda record: _streamed_field(record.value)):
        if text_field is None:
            whole_records += group
            continue
        parts = list(group)
        text = "".join(content_text(part.value.get(text_field)) for part in parts)
        whole_records.append(replace(parts[0], value={**parts[0].value, text_field: text}))
    return whole_records


def _streamed_field(record: Fields) -> str | None:
    """Return the field with the text that a record adds to a message or a thought, else None."""
    if kind_of(record) == "message" and record.get("delta") is True:
        return "content"
    return "text" if kind_of(record) == "thinking" else None


def _gemini_translator(session: SessionContext) -> Translator:
    """Return the function that makes turns; at the end of the session, it sets its tokens."""

    def translate(record: Fields) -> Turn | None:
        """Return the turn of an event; None for the beginning, and for an end without an error."""
        match kind_of(record):
            case "init":
                return None
            case "message":
                speaker = USER if record.get("role") == "user" else THE_MODEL
                return record_turn(record, speaker.piece(content_text(record.get("content"))))
            case "tool_use":
                call = {"id": record.get("tool_id"), "name": record.get("tool_name")}
                arguments = {"arguments": record.get("parameters")}
                return record_turn(record, call_piece({**call, **arguments}, "", ASSISTANT))
            case "tool_result":
                output = first_in(record, "output") or fields_of(record.get("error")).get("message")
                call_id = as_text(record.get("tool_id"))
                return record_turn(record, result_piece(record, output, "", call_id=call_id))
            case "error":
                return log_turn(record, "message", failed=record.get("severity") != "warning")
            case "result":
                stats = record.get("stats")
                session.tokens = usage_tokens(stats, "input_tokens", "output_tokens")
                failed = record.get("status") == "error"
                return log_turn(record, "message", failed=True) if failed else None
        return unknown_record_turn(record)

    return translate


GEMINI_STREAM: Final = SessionFormat(
    name="gemini-cli-stream",
    system="gemini-cli",
    typical_bytes=(b'"tool_id"', b'"init"'),
    recognises=any_record_with({"tool_use": {"tool_id"}, "init": {"session_id", "model"}}),
    make_translator=_gemini_translator,
    select_records=_with_whole_messages,
    id_paths="",
    fact_paths={"id": "session_id", "model": "model"},
)


def _cursor_event_turn(record: Fields) -> Turn | None:
    """Return the turn of an event; None for the beginning, and for an end without an error."""
    match kind_of(record):
        case "user" | "assistant":
            return message_turn(record, record.get("message"))
        case "thinking":
            thought = content_text(record.get("text"))
            return record_turn(record, THE_MODEL.piece(thought, kind=SpanKind.REASONING))
        case "tool_call":
            return _cursor_call_turn(record)
        case "result" if record.get("is_error") is True:
            return log_turn(record, "result", "error", failed=True)
        case "result" | "system":
            return None
    return unknown_record_turn(record)


def _cursor_call_turn(record: Fields) -> Turn:
    """Return the turn of a call that started, or of the result of a completed call."""
    # The object has one field, which names the tool, such as ``readToolCall``.
    tool_field, value = next(iter(fields_of(record.get("tool_call")).items()), ("tool", None))
    call = fields_of(value)
    call_id = as_text(record.get("call_id"))
    name = as_text(call.get("name")) or tool_field.removesuffix("ToolCall")
    if record.get("subtype") != "completed":
        arguments = first_in(call, "args", "arguments")
        piece = call_piece({"id": call_id, "name": name, "arguments": arguments}, "", ASSISTANT)
        return record_turn(record, piece)
    # The result too has one field, which says how the call ended, such as ``success``.
    ending, outcome = next(iter(fields_of(call.get("result")).items()), ("", None))
    text = texts_in(fields_of(outcome), "content", "output", "stdout", "stderr", "error", "message")
    status = SpanStatus.OK if ending == "success" else SpanStatus.ERROR
    return record_turn(
        record,
        result_piece({}, text or outcome, "", name=name, call_id=call_id, status=status),
    )


CURSOR_STREAM: Final = SessionFormat(
    name="cursor-stream",
    system="cursor",
    typical_bytes=(b'"tool_call"',),
    recognises=any_record_with({"tool_call": {"tool_call"}}),
    make_translator=stateless(_cursor_event_turn),
    select_records=_with_whole_messages,
    id_paths="",
    fact_paths={"id": "session_id", "model": "model"},
)
