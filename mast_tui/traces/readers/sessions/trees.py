"""Sessions whose messages form a tree: Pi and OpenClaw, Factory's Droid, Qwen Code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text
from mast_tui.traces.model import Role, SpanStatus
from mast_tui.traces.readers.chat.pieces import Turn, call_piece, log_piece, result_piece
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.claude_code.records import is_gemini_shaped
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    items_of,
    kind_of,
    name_set,
)
from mast_tui.traces.readers.sessions.engine import (
    SessionFormat,
    along_last_branch,
    stateless,
)
from mast_tui.traces.readers.sessions.pieces import (
    GEMINI_STATUS,
    SYSTEM,
    message_turn,
    note_of,
    record_turn,
    spoken_by,
    unknown_record,
    user_prompt_piece,
    with_status,
)
from mast_tui.traces.result_status import status_of_code

_PI_SETTINGS: Final = name_set("""
    session model_change thinking_level_change label custom session_info leaf mode_change
""")
_PI_MARKS: Final = name_set("toolResult bashExecution branchSummary compactionSummary")


def _is_pi(records: Sequence[Fields]) -> bool:
    for record in records:
        if kind_of(record) == "session":
            return "id" in record and bool({"cwd", "version"} & record.keys())
        message = fields_of(record.get("message"))
        parts = map(kind_of, items_of(message.get("content")))
        if kind_of(record) == "message" and (
            as_text(message.get("role")) in _PI_MARKS or "toolCall" in parts
        ):
            return True
    return False


def pi_turn(record: Fields) -> Turn | None:
    """Take a record of Pi apart; None for changed settings."""
    kind = kind_of(record)
    if kind in _PI_SETTINGS:
        return None
    if kind == "message":
        return _pi_message(record, fields_of(record.get("message")))
    if kind == "custom_message":
        text = content_text(record.get("content"))
        return record_turn(
            record, replace(SYSTEM.piece(text), name=as_text(record.get("customType")))
        )
    if kind in ("compaction", "branch_summary", "compact"):
        return note_of(record, "summary", "note")
    return unknown_record(record)


def _pi_message(record: Fields, message: Fields) -> Turn | None:
    role = as_text(message.get("role"))
    if role == "bashExecution":
        # The user ran a command with "!" in the prompt.
        call = call_piece({"arguments": message.get("command")}, "", "user", name="bash")
        status = status_of_code(message.get("exitCode"))
        if message.get("cancelled") is True:
            status = SpanStatus.ERROR
        result = result_piece({}, message.get("output"), "/output", name="bash", status=status)
        return record_turn(record, replace(call, role=Role.USER), result)
    if role in ("branchSummary", "compactionSummary"):
        return record_turn(record, log_piece(content_text(message.get("summary")), role))
    if role in ("custom", "hookMessage"):
        return record_turn(record, SYSTEM.piece(content_text(message.get("content"))))
    tokens = usage_tokens(message.get("usage"), "input cacheRead cacheWrite", "output")
    spoken = message_turn(record, message, tokens=tokens)
    error = as_text(message.get("errorMessage"))
    if spoken is None or error is None:
        return spoken
    return replace(spoken, pieces=(*spoken.pieces, log_piece(error, "error", failed=True)))


PI: Final = SessionFormat(
    name="pi",
    system="pi",
    marks=(b'"session"', b'"message"'),
    recognises=_is_pi,
    translator=stateless(pi_turn),
    order=along_last_branch("id", "parentId"),
    lists=("entries",),
    facts={"id": "session:id", "model": "model_change:modelId message.model"},
)


def _is_droid(records: Sequence[Fields]) -> bool:
    if _is_pi(records):
        return False
    for record in records:
        kind = kind_of(record)
        if kind == "session_start":
            return "id" in record
        message = fields_of(record.get("message"))
        named = "id" in record or "parentId" in record
        if kind == "message" and named and isinstance(message.get("role"), str):
            return True
    return False


def _droid_turn(record: Fields) -> Turn | None:
    kind = kind_of(record)
    if kind == "session_start":
        return None
    if kind != "message":
        return unknown_record(record)
    message = fields_of(record.get("message"))
    spoken = message_turn(record, message)
    if spoken is None or message.get("role") != "user":
        return spoken
    content = message.get("content")
    if not isinstance(content, list) or any(kind_of(part) != "text" for part in content):
        return spoken
    pieces = (
        replace(
            user_prompt_piece(content_text([part])),
            key_suffix=f"/content/{number}" if number else "",
        )
        for number, part in enumerate(content)
    )
    return replace(spoken, pieces=tuple(pieces))


DROID: Final = SessionFormat(
    name="factory-droid",
    system="factory-droid",
    marks=(b'"session_start"', b'"message"'),
    recognises=_is_droid,
    translator=stateless(_droid_turn),
    order=along_last_branch("id", "parentId"),
    facts={"id": "session_start:id", "model": "model message.model", "version": "version"},
)


_QWEN_SETTINGS: Final = name_set("custom_title file_history_snapshot")
_PROGRAM_TAG: Final = "<qwen:"


def _is_qwen_record(record: Fields) -> bool:
    """Return whether a record has an id, a session and a message in Gemini's shape."""
    return "uuid" in record and "sessionId" in record and is_gemini_shaped(record)


def _qwen_turn(record: Fields) -> Turn | None:
    kind = kind_of(record)
    if kind == "system":
        return _qwen_event(record)
    tokens = usage_tokens(
        record.get("usageMetadata"), "promptTokenCount", "candidatesTokenCount thoughtsTokenCount"
    )
    message = fields_of(record.get("message"))
    parts = items_of(message.get("parts"))
    of_program = [part for part in parts if _is_of_program(part)]
    own_parts = {**message, "parts": [part for part in parts if not _is_of_program(part)]}
    spoken = message_turn(record, own_parts, tokens=tokens, model=as_text(record.get("model")))
    if spoken is None:
        return unknown_record(record)
    pieces = spoken.pieces
    if record.get("subtype") == "notification":
        pieces = spoken_by(pieces, Role.SYSTEM, "system")
    outcome = fields_of(record.get("toolCallResult"))
    pieces = with_status(pieces, GEMINI_STATUS.get(as_text(outcome.get("status"))))
    notes = tuple(SYSTEM.piece(content_text(part)) for part in of_program)
    return replace(spoken, pieces=(*pieces, *notes))


def _is_of_program(part: object) -> bool:
    """Return whether a part of a user's message was added by a hook."""
    return content_text(fields_of(part).get("text")).lstrip().startswith(_PROGRAM_TAG)


def _qwen_event(record: Fields) -> Turn | None:
    """Return the log of a system record; None for titles, and for telemetry of what went well."""
    subtype = as_text(record.get("subtype")) or "system"
    payload = fields_of(record.get("systemPayload"))
    if subtype == "ui_telemetry":
        event = fields_of(payload.get("uiEvent"))
        message = as_text(event.get("error_message"))
        return (
            None
            if message is None
            else record_turn(record, log_piece(message, "api_error", failed=True))
        )
    if subtype in _QWEN_SETTINGS:
        return None
    message_parts = items_of(fields_of(record.get("message")).get("parts"))
    if not payload and not message_parts:
        return None
    if message_parts:
        return record_turn(record, SYSTEM.piece(content_text(message_parts)))
    return note_of({**payload, "timestamp": record.get("timestamp")}, name=subtype)


QWEN: Final = SessionFormat(
    name="qwen-code",
    system="qwen-code",
    marks=(b'"sessionId"',),
    recognises=lambda records: any(map(_is_qwen_record, records)),
    translator=stateless(_qwen_turn),
    order=along_last_branch("uuid", "parentUuid"),
    keys="uuid",
    facts={"id": "sessionId", "model": "model", "version": "version"},
)
