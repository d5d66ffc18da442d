"""Sessions with a chat message a record: Strands, Goose, Cursor, Grok, Claude Code on the web."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text
from mast_tui.traces.model import Role, SpanKind, Tokens
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    Turn,
    call_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.turns import turn_of
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.claude_code import records as claude
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, kind_of, name_in
from mast_tui.traces.readers.sessions.engine import (
    SessionContext,
    SessionFormat,
    Translate,
    stateless,
    text_at,
)
from mast_tui.traces.readers.sessions.pieces import (
    message_turn,
    note_of,
    record_time,
    record_turn,
    spoken_by,
    spoken_turn,
    unknown_record,
)


def _is_strands(records: Sequence[Fields]) -> bool:
    return any(
        "message_id" in record and isinstance(fields_of(record.get("message")).get("role"), str)
        for record in records
    )


def _strands_turn(record: Fields) -> Turn | None:
    message = record.get("redact_message") or record.get("message")
    if not isinstance(message, Mapping):
        return unknown_record(record) if kind_of(record) else None
    usage = fields_of(message.get("metadata")).get("usage")
    tokens = usage_tokens(usage, "inputTokens cacheReadInputTokens", "outputTokens")
    spoken = message_turn(record, message, tokens=tokens)
    agent = name_in(record, "agent")
    if spoken is None or agent is None:
        return spoken
    return replace(spoken, pieces=tuple(_by_agent(piece, agent) for piece in spoken.pieces))


def _by_agent(piece: Piece, agent: str) -> Piece:
    return replace(piece, agent=agent) if piece.role is Role.AGENT else piece


STRANDS: Final = SessionFormat(
    name="strands",
    system="strands",
    marks=(b'"message_id"',),
    recognises=_is_strands,
    translator=stateless(_strands_turn),
    lists=("messages",),
    keys="",
    facts={"id": "session_id"},
)


_GOOSE_PARTS: Final = ("toolRequest", "toolResponse")


def _is_goose(records: Sequence[Fields]) -> bool:
    has_header = any("working_dir" in record and "role" not in record for record in records)
    for record in records:
        if has_header and isinstance(record.get("role"), str) and "content" in record:
            return True
        streamed = fields_of(record.get("message"))
        if kind_of(record) == "message" and "created" in streamed and "id" not in record:
            return True
        parts = map(kind_of, items_of((streamed or record).get("content")))
        if any(part in _GOOSE_PARTS for part in parts):
            return "created" in record or kind_of(record) == "message"
    return False


def _goose_translator(session: SessionContext) -> Translate:
    """Return the translator, which joins what a stream brings of a message bit by bit."""
    bits: dict[str, list[str]] = {}
    for record in session.values:
        name = _streamed(record)
        if name is not None:
            text = content_text(fields_of(record.get("message")).get("content"))
            bits.setdefault(name, []).append(text)

    def translate(record: Fields) -> Turn | None:
        name = _streamed(record)
        if name is not None:
            texts = bits.pop(name, None)
            if texts is None:
                return None
            return message_turn(
                record, {**fields_of(record.get("message")), "content": "".join(texts)}
            )
        kind = kind_of(record)
        if kind == "complete" or "working_dir" in record:
            session.tokens = _goose_tokens(record) or session.tokens
            return None
        if kind in ("error", "notification"):
            return note_of(record, "error", "message", failed=kind == "error")
        inner = record.get("message")
        return message_turn(record, inner if isinstance(inner, Mapping) else record)

    session.id = text_at(session.header, "id")
    session.tokens = next(filter(None, map(_goose_tokens, (session.header, *session.values))), None)
    return translate


def _streamed(record: Fields) -> str | None:
    """Return the id of the message of which a record brings nothing but text."""
    message = fields_of(record.get("message"))
    content = items_of(message.get("content"))
    if kind_of(record) != "message" or [kind_of(part) for part in content] != ["text"]:
        return None
    return as_text(message.get("id"))


def _goose_tokens(record: Fields) -> Tokens | None:
    if "role" in record:
        return None
    return usage_tokens(record, "accumulated_input_tokens", "accumulated_output_tokens") or (
        usage_tokens(record, "input_tokens", "output_tokens")
    )


GOOSE: Final = SessionFormat(
    name="goose",
    system="goose",
    marks=(b'"working_dir"', b'"toolRequest"', b'"toolResponse"', b'"created"'),
    recognises=_is_goose,
    translator=_goose_translator,
    lists=("conversation", "messages"),
    facts={"model": "model_config.model_name model"},
)


def _is_cursor(records: Sequence[Fields]) -> bool:
    return any(
        isinstance(record.get("role"), str)
        and "content" in fields_of(record.get("message"))
        and "type" not in record
        for record in records
    )


def _cursor_translator(_session: SessionContext) -> Translate:
    """Return the translator, which lets a result whose call is not named answer the open one."""
    call_ids: set[str | None] = set()

    def translate(record: Fields) -> Turn | None:
        if "message" not in record:
            ended_well = record.get("status") in ("success", "completed", None)
            return None if ended_well else note_of(record, "error", "message", failed=True)
        message = {"role": record.get("role"), **fields_of(record.get("message"))}
        spoken = message_turn(record, message, model=as_text(record.get("model")))
        if spoken is None:
            return unknown_record(record)
        pieces = []
        for piece in spoken.pieces:
            if piece.kind is SpanKind.TOOL_CALL:
                call_ids.add(piece.call_id)
            elif piece.kind is SpanKind.TOOL_RESULT and piece.call_id not in call_ids:
                piece = replace(piece, call_id=None)
            pieces.append(piece)
        return replace(spoken, pieces=tuple(pieces))

    return translate


CURSOR: Final = SessionFormat(
    name="cursor",
    system="cursor",
    marks=(b'"message"',),
    recognises=_is_cursor,
    translator=_cursor_translator,
    facts={"id": "sessionId session_id chatId", "model": "model"},
)


_GROK_TYPES: Final = ("system", "user", "assistant", "tool_result")


def _is_grok(records: Sequence[Fields]) -> bool:
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


def _grok_turn(record: Fields) -> Turn | None:
    kind = kind_of(record)
    if kind == "backend_tool_call":
        return _grok_search(record)
    if kind == "tool_result":
        return record_turn(record, result_piece(record, record.get("content"), ""))
    if kind == "reasoning":
        return spoken_turn(record, turn_of(record).pieces)
    if kind not in _GROK_TYPES:
        return unknown_record(record)
    message = {name: value for name, value in record.items() if name != "type"}
    spoken = message_turn(record, {**message, "role": kind}, model=as_text(record.get("model_id")))
    if spoken is not None and as_text(record.get("synthetic_reason")):
        return replace(spoken, pieces=spoken_by(spoken.pieces, Role.SYSTEM, "system"))
    return spoken


def _grok_search(record: Fields) -> Turn:
    """Return the call of a tool that runs at the vendor; its result is not recorded."""
    tool = fields_of(record.get("kind"))
    arguments = fields_of(tool.get("action")) or tool
    call = {"arguments": arguments, "name": tool.get("tool_type"), "id": tool.get("id")}
    return record_turn(record, call_piece(call, "", ASSISTANT))


GROK: Final = SessionFormat(
    name="grok-cli",
    system="grok-cli",
    marks=(b'"model_id"', b'"prompt_index"', b'"synthetic_reason"', b'"tool_call_id"'),
    recognises=_is_grok,
    translator=stateless(_grok_turn),
    lists=("messages",),
    facts={"model": "model_id", "id": "session_id sessionId"},
)


def _is_claude_web(records: Sequence[Fields]) -> bool:
    messages = [record for record in records if "message" in record]
    return any(map(_is_claude_line, messages)) and not any(
        "sessionId" in record or "session_id" in record or claude.is_gemini_shaped(record)
        for record in messages
    )


def _is_claude_line(record: Fields) -> bool:
    message = fields_of(record.get("message"))
    return (
        kind_of(record) in ("user", "assistant")
        and message.get("role") == kind_of(record)
        and "content" in message
        and "role" not in record
    )


def _claude_turn(record: Fields) -> Turn | None:
    pieces = tuple(map(_with_pointer, claude.pieces_of(record)))
    message = fields_of(record.get("message"))
    tokens = claude.tokens_of_message(message) if pieces else None
    return Turn(pieces, record_time(record), tokens, claude.model_of(message))


def _with_pointer(piece: Piece) -> Piece:
    """Return the piece of a message's second block with the pointer to it."""
    return (
        replace(piece, key_suffix=f"/content/{int(piece.key_suffix[1:]) - 1}")
        if piece.key_suffix
        else piece
    )


CLAUDE_WEB: Final = SessionFormat(
    name="claude-code-web",
    system=claude.AGENT,
    marks=(b'"message"',),
    recognises=_is_claude_web,
    translator=stateless(_claude_turn),
    lists=("loglines", "messages"),
    keys="uuid",
    facts={"id": "session_id id", "version": "version"},
)

CLAUDE_LIST: Final = replace(
    CLAUDE_WEB,
    recognises=lambda records: any(
        _is_claude_line(record) and "sessionId" in record for record in records
    ),
    documents_only=True,
    facts={"id": "sessionId", "version": "version"},
)
"""The records of a session as one document, without the tree that the lines of a session form."""
