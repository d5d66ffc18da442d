"""Sessions whose messages form a tree: Pi and OpenClaw, Factory's Droid, Qwen Code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.base import is_gemini_shaped
from mast_tui.traces.readers.chat.pieces import ASSISTANT, Turn, call_piece, log_piece, result_piece
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, kind_of, name_set
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
    SessionContext,
    SessionFormat,
    SessionRecord,
    Translator,
    along_last_branch,
    as_system,
    log_turn,
    message_turn,
    record_turn,
    stateless,
    text_at,
    unknown_record_turn,
    user_prompt_piece,
)
from mast_tui.traces.result_status import status_of_code, status_of_word

_PI_SETTING_TYPES: Final = name_set("""
    session model_change thinking_level_change label custom session_info leaf mode_change
""")
_SUB_AGENT_FIELD: Final = "subAgent"
"""The name of a sub-agent, in a record made of one of its messages."""

_PI_ROLES: Final = name_set("toolResult bashExecution branchSummary compactionSummary")
_PI_STREAM_TYPES: Final = name_set("""
    agent_start agent_end turn_start turn_end message_start message_update queue_update response
    tool_execution_start tool_execution_update tool_execution_end
""")
"""Events of ``pi --mode json`` that repeat the texts of whole messages."""


def _any_pi_record(records: Sequence[Fields]) -> bool:
    """Return whether one record begins a session of Pi, or is a message that only Pi writes."""
    for record in records:
        if kind_of(record) == "session":
            is_of_pi = "createdAt" not in record  # a field of DeepSeek Harness
            return is_of_pi and "id" in record and bool({"cwd", "version"} & record.keys())
        message = fields_of(record.get("message"))
        if kind_of(record) == "message_end" and "role" in message:
            return True
        part_types = map(kind_of, items_of(message.get("content")))
        has_shape_of_pi = as_text(message.get("role")) in _PI_ROLES or "toolCall" in part_types
        if kind_of(record) == "message" and has_shape_of_pi:
            return True
    return False


def pi_tokens(message: Fields) -> Tokens | None:
    """Return the tokens of the model call in a message of Pi."""
    return usage_tokens(message.get("usage"), "input cacheRead cacheWrite", "output")


def pi_turn(record: Fields) -> Turn | None:
    """Return the turn of a record of Pi; None for changed settings."""
    kind = kind_of(record)
    match kind:
        case kind if kind in _PI_SETTING_TYPES:
            return None
        case "message":
            turn = _pi_message(record, fields_of(record.get("message")))
            sub_agent = as_text(record.get(_SUB_AGENT_FIELD))
            return turn if sub_agent is None else _turn_of_sub_agent(turn, sub_agent)
        case "custom_message":
            piece = SYSTEM.piece(content_text(record.get("content")))
            return record_turn(record, replace(piece, name=as_text(record.get("customType"))))
        case "compaction" | "branch_summary" | "compact":
            return log_turn(record, "summary", "note")
    return unknown_record_turn(record)


def _turn_of_sub_agent(turn: Turn, name: str) -> Turn:
    """Return a turn with a sub-agent as its agent, and the main agent as its user."""
    agent_by_role = {Role.AGENT: name, Role.USER: ASSISTANT}
    pieces = (
        replace(piece, agent=agent_by_role.get(piece.role, piece.agent)) for piece in turn.pieces
    )
    return replace(turn, pieces=tuple(pieces))


def _with_sub_agents(
    records: Sequence[SessionRecord], problems: list[Problem]
) -> list[SessionRecord]:
    """Return the records of the last branch, with the messages of sub-agents before their result.

    The extension for sub-agents stores these messages in the details of a result.
    """
    shown_records: list[SessionRecord] = []
    for record in along_last_branch("id", "parentId")(records, problems):
        message = fields_of(record.value.get("message"))
        runs = items_of(fields_of(message.get("details")).get("results"))
        for run_number, run in enumerate(map(fields_of, runs)):
            key = f"{record.value.get('id') or record.location}/details/results/{run_number}"
            for number, own_message in enumerate(items_of(run.get("messages"))):
                value = {
                    "type": "message",
                    "id": f"{key}/messages/{number}",
                    "message": own_message,
                    _SUB_AGENT_FIELD: as_text(run.get("agent")) or "sub-agent",
                }
                shown_records.append(SessionRecord(value, record.location))
        shown_records.append(record)
    return shown_records


def _pi_message(record: Fields, message: Fields) -> Turn:
    """Return the turn of a message of Pi, with its error."""
    role = as_text(message.get("role"))
    match role:
        case "bashExecution":
            # A prompt that begins with "!" is a command of the user.
            call = call_piece({"arguments": message.get("command")}, "", "user", name="bash")
            status = status_of_code(message.get("exitCode"))
            if message.get("cancelled") is True:
                status = SpanStatus.ERROR
            result = result_piece({}, message.get("output"), "/output", name="bash", status=status)
            return record_turn(record, replace(call, role=Role.USER), result)
        case "branchSummary" | "compactionSummary":
            return record_turn(record, log_piece(content_text(message.get("summary")), role))
        case "custom" | "hookMessage":
            return record_turn(record, SYSTEM.piece(content_text(message.get("content"))))
    turn = message_turn(record, message, tokens=pi_tokens(message))
    error = as_text(message.get("errorMessage"))
    if error is None:
        return turn
    return replace(turn, pieces=(*turn.pieces, log_piece(error, "error", failed=True)))


def _pi_translator(session: SessionContext) -> Translator:
    """Return the function that makes turns of a session file, or of Pi's printed events.

    An event of a tool is shown only if no message has the same call or result.
    """
    messages = [fields_of(record.get("message")) for record in session.values]
    parts = (fields_of(part) for message in messages for part in items_of(message.get("content")))
    called_ids = {as_text(part.get("id")) for part in parts}
    answered_ids = {as_text(message.get("toolCallId")) for message in messages}

    def translate(record: Fields) -> Turn | None:
        call_id = as_text(record.get("toolCallId"))
        match kind_of(record):
            case "message_end":
                return _pi_message(record, fields_of(record.get("message")))
            case "tool_execution_start" if call_id not in called_ids:
                return record_turn(record, call_piece(record, "", ASSISTANT))
            case "tool_execution_end" if call_id not in answered_ids:
                output = fields_of(record.get("result")).get("content")
                return record_turn(record, result_piece(record, output, ""))
            case kind if kind in _PI_STREAM_TYPES:
                return None
            case kind if kind.startswith(("auto_compaction_", "auto_retry_", "compaction_")):
                fields = {**record, **fields_of(record.get("result"))}
                return log_turn(fields, "summary", "errorMessage", "finalError")
        return pi_turn(record)

    return translate


PI: Final = SessionFormat(
    name="pi",
    system="pi",
    typical_bytes=(b'"session"', b'"message"', b'"message_end"'),
    recognises=_any_pi_record,
    make_translator=_pi_translator,
    select_records=_with_sub_agents,
    list_paths=("entries",),
    session_of=lambda record: text_at(record, "session:id"),
    fact_paths={"id": "session:id", "model": "model_change:modelId message.model"},
)


def _any_droid_record(records: Sequence[Fields]) -> bool:
    """Return whether the records are of a session of Droid; its messages resemble those of Pi."""
    if _any_pi_record(records):
        return False
    for record in records:
        kind = kind_of(record)
        if kind == "session_start":
            return "id" in record
        message = fields_of(record.get("message"))
        has_id = "id" in record or "parentId" in record
        if kind == "message" and has_id and isinstance(message.get("role"), str):
            return True
    return False


def _droid_turn(record: Fields) -> Turn | None:
    """Return the turn of a record of Droid, except the record that begins the session."""
    kind = kind_of(record)
    if kind == "session_start":
        return None
    if kind == "todo_state":
        return log_turn({**record, **fields_of(record.get("todos"))}, "todos")
    if kind != "message":
        return unknown_record_turn(record)
    message = fields_of(record.get("message"))
    turn = message_turn(record, message)
    if message.get("role") != "user":
        return turn
    content = message.get("content")
    if not isinstance(content, list) or any(kind_of(part) != "text" for part in content):
        return turn
    # Some text parts of a user's message are the program's, so each part is a piece.
    pieces = []
    for number, part in enumerate(content):
        key_suffix = f"/content/{number}" if number else ""  # The first part has the message's key.
        pieces.append(replace(user_prompt_piece(content_text([part])), key_suffix=key_suffix))
    return replace(turn, pieces=tuple(pieces))


DROID: Final = SessionFormat(
    name="factory-droid",
    system="factory-droid",
    typical_bytes=(b'"session_start"', b'"message"'),
    recognises=_any_droid_record,
    make_translator=stateless(_droid_turn),
    select_records=along_last_branch("id", "parentId"),
    session_of=lambda record: text_at(record, "session_start:id"),
    fact_paths={"id": "session_start:id", "model": "model message.model", "version": "version"},
)


_QWEN_SETTING_TYPES: Final = name_set("custom_title file_history_snapshot attribution_snapshot")
_HOOK_TAG: Final = "<qwen:"


def _qwen_turn(record: Fields) -> Turn | None:
    """Return the turn of a record of Qwen Code; texts of hooks become system messages."""
    if kind_of(record) == "system":
        return _qwen_event(record)
    tokens = usage_tokens(
        record.get("usageMetadata"), "promptTokenCount", "candidatesTokenCount thoughtsTokenCount"
    )
    message = fields_of(record.get("message"))
    parts = items_of(message.get("parts"))
    hook_parts = [part for part in parts if _is_hook_text(part)]
    own_parts = [part for part in parts if not _is_hook_text(part)]
    own_message = message and {**message, "parts": own_parts}
    turn = message_turn(record, own_message, tokens=tokens, model=as_text(record.get("model")))
    pieces = turn.pieces
    if record.get("subtype") == "notification":
        pieces = as_system(pieces)
    tool_outcome = fields_of(record.get("toolCallResult"))
    result_status = status_of_word(tool_outcome.get("status"))
    if result_status is not SpanStatus.UNKNOWN:
        pieces = tuple(
            replace(piece, status=result_status) if piece.kind is SpanKind.TOOL_RESULT else piece
            for piece in pieces
        )
    hook_pieces = tuple(SYSTEM.piece(content_text(part)) for part in hook_parts)
    return replace(turn, pieces=(*pieces, *hook_pieces))


def _is_hook_text(part: object) -> bool:
    """Return whether a hook added a part to a user's message."""
    return content_text(fields_of(part).get("text")).lstrip().startswith(_HOOK_TAG)


def _qwen_event(record: Fields) -> Turn | None:
    """Return the turn of a system record of Qwen Code that is shown."""
    subtype = as_text(record.get("subtype")) or "system"
    payload = fields_of(record.get("systemPayload"))
    if subtype == "ui_telemetry":
        event = fields_of(payload.get("uiEvent"))
        error = as_text(event.get("error_message"))
        if error is None:
            return None
        return record_turn(record, log_piece(error, "api_error", failed=True))
    if subtype in _QWEN_SETTING_TYPES:
        return None
    message_parts = items_of(fields_of(record.get("message")).get("parts"))
    if not payload and not message_parts:
        return None
    if message_parts:
        return record_turn(record, SYSTEM.piece(content_text(message_parts)))
    return log_turn({**payload, "timestamp": record.get("timestamp")}, name=subtype)


QWEN: Final = SessionFormat(
    name="qwen-code",
    system="qwen-code",
    typical_bytes=(b'"sessionId"',),
    recognises=lambda records: any(
        {"uuid", "sessionId"} <= record.keys() and is_gemini_shaped(record) for record in records
    ),
    make_translator=stateless(_qwen_turn),
    select_records=along_last_branch("uuid", "parentUuid"),
    id_paths="uuid",
    session_of=lambda record: text_at(record, "sessionId"),
    fact_paths={"id": "sessionId", "model": "model", "version": "version"},
)
