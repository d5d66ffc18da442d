"""Sessions of chat messages: Strands, Goose, Cursor, Grok, Kiro, Claude Code on the web, bots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Problem, Role, SpanKind, Tokens
from mast_tui.traces.readers.base import is_gemini_shaped
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Turn,
    call_piece,
    log_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.turns import turn_of
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.claude_code import records as claude
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    kind_of,
    name_in,
    texts_in,
    value_in,
    without,
)
from mast_tui.traces.readers.sessions.engine import (
    USER,
    SessionContext,
    SessionFormat,
    SessionRecord,
    Translator,
    as_system,
    log_turn,
    message_turn,
    record_time,
    record_turn,
    stateless,
    text_at,
    turn_without_empty_pieces,
    unknown_record_turn,
)
from mast_tui.traces.result_status import status_of_word
from mast_tui.traces.times import unix_seconds


def _strands_turn(record: Fields) -> Turn | None:
    """Return the turn of a message of Strands, or of an unknown record."""
    # A message that a guardrail redacted is stored beside the original.
    message = record.get("redact_message") or record.get("message")
    if not isinstance(message, Mapping):
        return unknown_record_turn(record) if kind_of(record) else None
    usage = fields_of(message.get("metadata")).get("usage")
    tokens = usage_tokens(usage, "inputTokens cacheReadInputTokens", "outputTokens")
    turn = message_turn(record, message, tokens=tokens)
    agent = name_in(record, "agent")
    if agent is None:
        return turn
    pieces = (
        replace(piece, agent=agent) if piece.role is Role.AGENT else piece for piece in turn.pieces
    )
    return replace(turn, pieces=tuple(pieces))


STRANDS: Final = SessionFormat(
    name="strands",
    system="strands",
    typical_bytes=(b'"message_id"',),
    recognises=lambda records: any(
        "message_id" in record and "role" in fields_of(record.get("message")) for record in records
    ),
    make_translator=stateless(_strands_turn),
    list_paths=("messages",),
    id_paths="",
    fact_paths={"id": "session_id"},
)


_GOOSE_PART_TYPES: Final = frozenset({"toolRequest", "toolResponse"})


def _goose_message(record: Fields) -> Fields:
    """Return a message of Goose; a row of its database has the content as JSON text."""
    if "content_json" not in record:
        return record
    content = value_in(record["content_json"])
    return {**record, "content": content, "created": record.get("created_timestamp")}


def _any_goose_record(records: Sequence[Fields]) -> bool:
    """Return whether one record has the shape of Goose's messages, or is under Goose's header."""
    has_header = any("working_dir" in record and "role" not in record for record in records)
    return any(
        _is_goose_message(record)
        or (has_header and isinstance(record.get("role"), str) and "content" in record)
        for record in map(_goose_message, records)
    )


def _is_goose_message(record: Fields) -> bool:
    """Return whether a record has the time of Goose's messages, or one of their parts."""
    nested_message = fields_of(record.get("message"))
    is_wrapped = kind_of(record) == "message"
    part_types = map(kind_of, items_of((nested_message or record).get("content")))
    has_part_of_goose = not _GOOSE_PART_TYPES.isdisjoint(part_types)
    has_time_of_goose = is_wrapped and "created" in nested_message and "id" not in record
    return has_time_of_goose or (has_part_of_goose and (is_wrapped or "created" in record))


def _goose_translator(session: SessionContext) -> Translator:
    """Return the function that makes turns; set the id and the tokens of the session.

    A stream has the text of a message in several records. The first record gets the joined text.
    """
    texts_by_message: dict[str, list[str]] = {}
    for record in session.values:
        message_id = _streamed_message_id(record)
        if message_id is not None:
            text = content_text(fields_of(record.get("message")).get("content"))
            texts_by_message.setdefault(message_id, []).append(text)

    def translate(record: Fields) -> Turn | None:
        """Return the turn of a record that is shown."""
        message_id = _streamed_message_id(record)
        if message_id is not None:
            texts = texts_by_message.pop(message_id, None)
            if texts is None:  # The message's first record has the joined text.
                return None
            message = {**fields_of(record.get("message")), "content": "".join(texts)}
            return message_turn(record, message)
        kind = kind_of(record)
        is_header = "working_dir" in record
        if kind == "complete" or is_header:
            session.tokens = _goose_tokens(record) or session.tokens
            return None
        if kind in ("error", "notification"):
            return log_turn(record, "error", "message", failed=kind == "error")
        nested_message = record.get("message")
        has_message = isinstance(nested_message, Mapping)
        return message_turn(record, nested_message if has_message else _goose_message(record))

    session.id = text_at(session.header, "id") or session.id
    session.tokens = next(filter(None, map(_goose_tokens, (session.header, *session.values))), None)
    return translate


def _streamed_message_id(record: Fields) -> str | None:
    """Return the id of the message to which a record adds text."""
    message = fields_of(record.get("message"))
    part_types = [kind_of(part) for part in items_of(message.get("content"))]
    if kind_of(record) != "message" or part_types != ["text"]:
        return None
    return as_text(message.get("id"))


def _goose_tokens(record: Fields) -> Tokens | None:
    """Return the tokens of a whole session."""
    if "role" in record:
        return None
    return usage_tokens(record, "accumulated_input_tokens", "accumulated_output_tokens") or (
        usage_tokens(record, "input_tokens", "output_tokens")
    )


GOOSE: Final = SessionFormat(
    name="goose",
    system="goose",
    typical_bytes=(b'"working_dir"', b"toolRequest", b"toolResponse", b'"created"'),
    recognises=_any_goose_record,
    make_translator=_goose_translator,
    list_paths=("conversation", "messages"),
    session_of=lambda record: text_at(record, "session_id"),
    fact_paths={"model": "model_config.model_name model", "id": "session_id"},
)


def _cursor_translator(_session: SessionContext) -> Translator:
    """Return the function that makes turns."""
    # A result without a known call id is assigned to the oldest open call.
    call_ids: set[str | None] = set()

    def translate(record: Fields) -> Turn | None:
        """Return the turn of a message, or of the end of a failed session."""
        if "message" not in record:
            ended_well = record.get("status") in ("success", "completed", None)
            return None if ended_well else log_turn(record, "error", "message", failed=True)
        content = {"content": record["message"]}  # for a message that is a text
        message = {"role": record.get("role"), **(fields_of(record["message"]) or content)}
        turn = message_turn(record, message, model=as_text(record.get("model")))
        pieces = []
        for piece in turn.pieces:
            if piece.kind is SpanKind.TOOL_CALL:
                call_ids.add(piece.call_id)
            elif piece.kind is SpanKind.TOOL_RESULT and piece.call_id not in call_ids:
                piece = replace(piece, call_id=None)
            pieces.append(piece)
        return replace(turn, pieces=tuple(pieces))

    return translate


CURSOR: Final = SessionFormat(
    name="cursor",
    system="cursor",
    typical_bytes=(b'"message"',),
    recognises=lambda records: any(
        isinstance(record.get("role"), str)
        and "content" in fields_of(record.get("message"))
        and "type" not in record
        for record in records
    ),
    make_translator=_cursor_translator,
    fact_paths={"id": "sessionId session_id chatId", "model": "model"},
)


def _any_grok_record(records: Sequence[Fields]) -> bool:
    """Return whether one record is of Grok, after no record with a ``role`` or ``message``."""
    for record in records:
        kind = kind_of(record)
        if "role" in record or "message" in record:
            return False
        if kind == "assistant" and "content" in record and "model_id" in record:
            return True
        if kind == "user" and ("prompt_index" in record or "synthetic_reason" in record):
            return True
        if kind == "tool_result" and "tool_call_id" in record and "content" in record:
            return True
    return False


def _grok_turn(record: Fields) -> Turn:
    """Return the turn of a record of Grok; the program's own messages are the system's."""
    kind = kind_of(record)
    match kind:
        case "backend_tool_call":
            return _grok_backend_call(record)
        case "tool_result":
            return record_turn(record, result_piece(record, record.get("content"), ""))
        case "reasoning":
            return turn_without_empty_pieces(record, turn_of(record).pieces)
    if kind not in ("system", "user", "assistant", "tool_result"):
        return unknown_record_turn(record)
    message = {**without(record, ("type",)), "role": kind}
    turn = message_turn(record, message, model=as_text(record.get("model_id")))
    is_by_program = as_text(record.get("synthetic_reason")) is not None
    return replace(turn, pieces=as_system(turn.pieces)) if is_by_program else turn


def _grok_backend_call(record: Fields) -> Turn:
    """Return the turn of a call on the vendor's server; its result is not recorded."""
    tool = fields_of(record.get("kind"))
    arguments = fields_of(tool.get("action")) or tool
    call = {"arguments": arguments, "name": tool.get("tool_type"), "id": tool.get("id")}
    return record_turn(record, call_piece(call, "", ASSISTANT))


GROK: Final = SessionFormat(
    name="grok-cli",
    system="grok-cli",
    typical_bytes=(b'"model_id"', b'"prompt_index"', b'"synthetic_reason"', b'"tool_call_id"'),
    recognises=_any_grok_record,
    make_translator=stateless(_grok_turn),
    list_paths=("messages",),
    fact_paths={"model": "model_id", "id": "session_id sessionId"},
)


_KIRO_ROLES: Final = {"Prompt": "user", "AssistantMessage": "assistant", "ToolResults": "user"}


def _kiro_turn(record: Fields) -> Turn:
    """Return the turn of a message in a session file, or of an exchange in a saved conversation."""
    if "kind" not in record:
        return _kiro_exchange(record)
    kind = content_text(record.get("kind"))
    role = _KIRO_ROLES.get(kind)
    if role is None:
        return log_turn(record, name=kind)
    data = fields_of(record.get("data"))
    content = [_kiro_part(part) for part in items_of(data.get("content"))]
    record_with_time = fields_of(data.get("meta"))
    return message_turn(record_with_time, {"role": role, "content": content})


def _kiro_exchange(record: Fields) -> Turn:
    """Return the turn of an exchange: the user's prompt or results, and the model's answer."""
    user = fields_of(record.get("user"))
    # The request and the answer are each in an object with one field, named after their type.
    request = fields_of(next(iter(fields_of(user.get("content")).values()), None))
    answer = fields_of(next(iter(fields_of(record.get("assistant")).values()), None))
    results = map(fields_of, items_of(request.get("tool_use_results")))
    calls = [
        {"toolUse": {**call, "toolUseId": call.get("id"), "input": call.get("args")}}
        for call in map(fields_of, items_of(answer.get("tool_uses")))
    ]
    content_by_role = {
        "user": [{"text": request.get("prompt") or ""}, *map(_kiro_result, results)],
        "assistant": [{"text": answer.get("content") or ""}, *calls],
    }
    pieces = [
        replace(piece, key_suffix=f"/{role}{piece.key_suffix}")
        for role, content in content_by_role.items()
        for piece in turn_of({"role": role, "content": content}).pieces
    ]

    metadata = fields_of(record.get("request_metadata"))
    time = unix_seconds(user.get("timestamp") or metadata.get("request_start_timestamp_ms"))
    turn = turn_without_empty_pieces(record, pieces)
    return replace(turn, start=time, model=name_in(metadata, "model_id"))


def _kiro_part(part: object) -> dict[str, object]:
    """Return a part of Kiro's message in the form of Anthropic (thoughts) or Bedrock."""
    kind = content_text(fields_of(part).get("kind"))
    data = fields_of(part).get("data")
    if kind == "thinking":
        return {"type": "thinking", "thinking": fields_of(data).get("text")}
    return _kiro_result(fields_of(data)) if kind == "toolResult" else {kind: data}


def _kiro_result(result: Fields) -> dict[str, object]:
    """Return a tool's result in the form of Bedrock; a nonzero exit status is an error."""
    status = content_text(result.get("status")).lower()
    content: list[dict[str, object]] = []
    for part in map(fields_of, items_of(result.get("content"))):
        if "kind" in part:
            kind = content_text(part["kind"])
            value = part.get("data")
        else:  # The name of the only field is the kind.
            kind, value = next(iter(part.items()), ("text", ""))
        exit_status = as_text(fields_of(value).get("exit_status"))  # such as "exit status: 1"
        if exit_status is None:
            content.append({kind.lower(): value})
        else:
            content.append({"text": texts_in(fields_of(value), "stdout", "stderr")})
            status = status if exit_status.endswith(" 0") else "error"
    call_id = first_in(result, "toolUseId", "tool_use_id")
    return {"toolResult": {"toolUseId": call_id, "status": status, "content": content}}


KIRO: Final = SessionFormat(
    name="kiro",
    system="kiro",
    typical_bytes=(b'"Prompt"', b'"AssistantMessage"', b'"tool_use_results"'),
    recognises=lambda records: any(
        (record.get("kind") in _KIRO_ROLES and "content" in fields_of(record.get("data")))
        or ("assistant" in record and isinstance(fields_at(record, "user").get("content"), Mapping))
        for record in records
    ),
    make_translator=stateless(_kiro_turn),
    list_paths=("history",),
    fact_paths={"id": "conversation_id", "model": "model_info.model_id model"},
)


def _any_claude_web_record(records: Sequence[Fields]) -> bool:
    """Return whether the records are an export of Claude Code on the web."""
    messages = [record for record in records if "message" in record]
    # Claude Code's session files have ``uuid`` and ``sessionId``, its streams ``session_id``.
    return any(map(_is_claude_message, messages)) and not any(
        {"sessionId", "uuid"} <= record.keys() or "session_id" in record or is_gemini_shaped(record)
        for record in messages
    )


def _is_claude_message(record: Fields) -> bool:
    """Return whether a record is a user's or an assistant's message of Claude Code."""
    message = fields_of(record.get("message"))
    return (
        kind_of(record) in ("user", "assistant")
        and message.get("role", kind_of(record)) == kind_of(record)
        and "content" in message
        and "role" not in record  # a field of chat messages
    )


def _claude_turn(record: Fields) -> Turn | None:
    """Return the turn of a record of Claude Code."""
    pieces = tuple(map(_with_pointer, claude.pieces_of(record)))
    message = fields_of(record.get("message"))
    tokens = claude.tokens_of_message(message) if pieces else None
    return Turn(pieces, record_time(record), tokens, claude.model_of(message))


def _with_pointer(piece: Piece) -> Piece:
    """Return a piece with a JSON pointer as key suffix: ``/content/1`` in place of ``/2``."""
    if not piece.key_suffix:
        return piece
    block_number = int(piece.key_suffix.removeprefix("/"))  # from 1
    return replace(piece, key_suffix=f"/content/{block_number - 1}")


CLAUDE_WEB: Final = SessionFormat(
    name="claude-code-web",
    system=claude.CLAUDE_CODE,
    typical_bytes=(b'"message"',),
    recognises=_any_claude_web_record,
    make_translator=stateless(_claude_turn),
    list_paths=("loglines", "messages"),
    id_paths="uuid",
    fact_paths={"id": "session_id id sessionId", "version": "version"},
)


def _after_their_parents(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return the records in file order, but each after the record that it follows."""
    ids = {identifier_in(record.value, "uuid") for record in records}
    records_by_late_parent: dict[str | None, list[SessionRecord]] = {}
    ordered: dict[str | None, SessionRecord] = {}
    for record in records:
        parent = identifier_in(record.value, "parentUuid")
        if parent in ids and parent not in ordered:
            records_by_late_parent.setdefault(parent, []).append(record)
            continue
        records_to_add = [record]
        while records_to_add:
            current = records_to_add.pop(0)
            key = identifier_in(current.value, "uuid") or current.location
            ordered.setdefault(key, current)
            records_to_add[:0] = records_by_late_parent.pop(key, [])
    # The parents of the remaining records form a circle.
    return [*ordered.values(), *chain.from_iterable(records_by_late_parent.values())]


CLAUDE_LIST: Final = replace(
    CLAUDE_WEB,
    recognises=lambda records: any(
        _is_claude_message(record) and "sessionId" in record for record in records
    ),
    select_records=_after_their_parents,
    documents_only=True,
    fact_paths={"id": "sessionId", "version": "version"},
)
"""The records of a session as one document, with all branches."""


_ACTIVITY_TYPES: Final = frozenset({"message", "event", "invoke", "trace"})


def _sender_of(activity: Fields) -> Fields:
    return fields_of(first_in(activity, "from", "from_property"))


def _activity_translator(session: SessionContext) -> Translator:
    """Return the function that makes turns; a step's arguments are in a later activity."""
    arguments_by_step: dict[str | None, object] = {}
    for record in session.values:
        value = fields_of(record.get("value"))
        if "arguments" in value and "stepId" in value:
            arguments_by_step[identifier_in(value, "stepId")] = value["arguments"]

    def translate(record: Fields) -> Turn | None:
        """Return the turn of an activity with a text or a value."""
        text = content_text(record.get("text"))
        value = fields_of(record.get("value"))
        step_id = identifier_in(value, "call_id", "stepId")
        kind = kind_of(record)
        event = name_in(record, "valueType", "name") or kind
        if kind == "message":
            is_from_user = identifier_in(_sender_of(record), "role") in ("user", "1")
            speaker = USER if is_from_user else THE_MODEL
            cards = dump_text(record.get("attachments") or value or None)
            content = "\n".join(filter(None, (text, cards)))
            return turn_without_empty_pieces(record, [speaker.piece(content)])
        if event == "DynamicPlanStepBindUpdate":
            return None
        if kind == "invoke" or event == "DynamicPlanStepTriggered":
            arguments = arguments_by_step.get(step_id, value.get("arguments"))
            name = name_in(value, "name", "taskDialogId") or event
            call = call_piece({"id": step_id, "name": name, "arguments": arguments}, "", ASSISTANT)
            thought = content_text(value.get("thought"))
            reasoning = THE_MODEL.piece(thought, "/value/thought", kind=SpanKind.REASONING)
            return turn_without_empty_pieces(record, [reasoning, call])
        if not {"output", "observation"}.isdisjoint(value):
            output = first_in(value, "output", "observation")
            status = status_of_word(value.get("state"))
            return record_turn(
                record, result_piece(value, output, "", call_id=step_id, status=status)
            )
        if summary := content_text(value.get("summary")):
            return record_turn(record, THE_MODEL.piece(summary, kind=SpanKind.REASONING))
        log = text or dump_text(value or None)
        return record_turn(record, log_piece(log, event)) if log else None

    return translate


BOT_FRAMEWORK: Final = SessionFormat(
    name="bot-framework",
    system=None,
    typical_bytes=(b'"from"', b'"from_property"'),
    recognises=lambda records: any(
        kind_of(record) in _ACTIVITY_TYPES
        and not {"id", "role"}.isdisjoint(_sender_of(record))
        and not {"conversation", "channelId", "channel_id", "valueType"}.isdisjoint(record)
        for record in records
    ),
    make_translator=_activity_translator,
    list_paths=("activities",),
    session_of=lambda record: text_at(record, "conversation.id"),
    fact_paths={"id": "conversation.id"},
)
