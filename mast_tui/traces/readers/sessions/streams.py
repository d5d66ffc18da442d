"""The streams of events of Gemini CLI, Cursor, Claude's Managed Agents and the AG-UI protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    log_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    kind_of,
    name_set,
    snake_fields,
    text_in,
    texts_in,
)
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
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
    """Return the field with the text that a record adds to a message or a thought."""
    if kind_of(record) == "message" and record.get("delta") is True:
        return "content"
    return "text" if kind_of(record) == "thinking" else None


def _gemini_translator(session: SessionContext) -> Translator:
    """Return the function that makes turns; it sets the tokens at the end of the session."""

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


def _with_whole_answers(
    records: Sequence[SessionRecord], problems: list[Problem]
) -> list[SessionRecord]:
    """Return the records of Cursor, with each answer once.

    With ``--stream-partial-output``, an answer with a time but without a model call is a part, and
    the whole answer follows its parts.
    """
    whole_records: list[SessionRecord] = []
    last_text = ""
    can_continue = False
    for record in _with_whole_messages(records, problems):
        message = fields_of(record.value.get("message"))
        is_answer = kind_of(record.value) == "assistant"
        text = content_text(message.get("content")) if is_answer else ""
        is_part = (
            is_answer and "timestamp_ms" in record.value and "model_call_id" not in record.value
        )
        if is_part and can_continue:
            last_text += text
            first = whole_records[-1]
            message = {**fields_of(first.value.get("message")), "content": last_text}
            whole_records[-1] = replace(first, value={**first.value, "message": message})
        # A whole answer has the text of its parts, but for white space.
        elif is_part or not text or text.split() != last_text.split():
            whole_records.append(record)
            last_text = text
        can_continue = is_part
    return whole_records


def _cursor_event_turn(record: Fields) -> Turn | None:
    """Return the turn of an event, except the beginning and an end without an error."""
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
    # The name of the only field is the tool, such as ``readToolCall``.
    tool_field, value = next(iter(fields_of(record.get("tool_call")).items()), ("tool", None))
    call = fields_of(value)
    call_id = as_text(record.get("call_id"))
    name = as_text(call.get("name")) or tool_field.removesuffix("ToolCall")
    if record.get("subtype") != "completed":
        arguments = first_in(call, "args", "arguments")
        piece = call_piece({"id": call_id, "name": name, "arguments": arguments}, "", ASSISTANT)
        return record_turn(record, piece)
    # The name of the only field is the ending of the call, such as ``success``.
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
    select_records=_with_whole_answers,
    id_paths="",
    fact_paths={"id": "session_id", "model": "model"},
)


_MANAGED_SILENT_TYPES: Final = name_set("""
    session.status_idle session.status_running session.status_terminated session.thread_status_idle
    session.thread_status_running session.usage span.model_request_end span.model_request_start
    span.outcome_evaluation_ongoing span.outcome_evaluation_start
""")
_MANAGED_INPUT_COUNTS: Final = "input_tokens cache_read_input_tokens cache_creation_input_tokens"
_MANAGED_CALL_FIELDS: Final = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")


def _managed_event(record: Fields) -> Fields:
    """Return the event that a record is or contains, with the record's time."""
    for event in (record, fields_of(record.get("raw"))):
        if "processed_at" in event and "." in kind_of(event):
            return {"time": event["processed_at"], **event}
    return {}


def _managed_translator(session: SessionContext) -> Translator:
    """Return the function that makes turns; the tokens of a model call are on its last event."""
    usage_by_event: dict[str, Fields] = {}
    last_id = ""
    for event in map(_managed_event, session.values):
        if kind_of(event).startswith("agent.") and "result" not in kind_of(event):
            last_id = text_in(event, "id") or ""
        elif usage := fields_of(event.get("model_usage")):
            usage_by_event[last_id] = usage

    def translate(record: Fields) -> Turn | None:
        event = _managed_event(record)
        usage = usage_by_event.get(text_in(event, "id") or "")
        turn = _managed_turn(event)
        if turn is None or usage is None:
            return turn
        return replace(turn, tokens=usage_tokens(usage, _MANAGED_INPUT_COUNTS, "output_tokens"))

    return translate


def _managed_turn(event: Fields) -> Turn | None:
    """Return the turn of an event, except a change of state or an empty thought."""
    kind = kind_of(event)
    domain, _dot, action = kind.partition(".")
    if kind in _MANAGED_SILENT_TYPES:
        return None
    if action in ("message", "define_outcome"):
        speaker = {"user": USER, "system": SYSTEM}.get(domain, THE_MODEL)
        rubric = fields_of(event.get("rubric")).get("content")
        texts = (first_in(event, "content", "description"), rubric)
        text = "\n\n".join(filter(None, map(content_text, texts)))
        return record_turn(event, speaker.piece(text))
    if action == "thinking":
        thought = content_text(first_in(event, "content", "thinking"))
        return (
            record_turn(event, THE_MODEL.piece(thought, kind=SpanKind.REASONING))
            if thought
            else None
        )
    if action.endswith("tool_use"):
        return record_turn(event, call_piece(event, "", ASSISTANT))
    if action.endswith("tool_result"):
        call_id = text_in(event, *_MANAGED_CALL_FIELDS)
        return record_turn(event, result_piece(event, event.get("content"), "", call_id=call_id))
    text = content_text(first_in(event, "content", "explanation", "deny_message"))
    failure = text_in(fields_of(event.get("error")), "message")
    if failure or text:
        return record_turn(event, log_piece(failure or text, kind, failed=failure is not None))
    return unknown_record_turn(event)


MANAGED_AGENTS: Final = SessionFormat(
    name="claude-managed-agents",
    system="claude-managed-agents",
    typical_bytes=(b'"processed_at"',),
    recognises=lambda records: any(map(_managed_event, records)),
    make_translator=_managed_translator,
    list_paths=("data", "events"),
    id_paths="id raw.id",
    fact_paths={"id": "session_id", "model": "agent.model.id agent.model"},
)


_AG_UI_PART: Final = re.compile(r"(TEXT|THINKING_TEXT|REASONING|TOOL)_(?:MESSAGE|CALL)_[A-Z]+")


def _ag_ui_part_of(record: Fields) -> str | None:
    """Return the kind of message or call that a record belongs to, such as ``TEXT``."""
    match = _AG_UI_PART.fullmatch(kind_of(record))
    return None if match is None or kind_of(record) == "TOOL_CALL_RESULT" else match[1]


def _joined_parts(records: Sequence[SessionRecord]) -> list[SessionRecord]:
    """Join the parts of each message and call at the place of the first part."""
    record_by_key: dict[tuple[str, str | None], SessionRecord] = {}
    last_ids: dict[str, str | None] = {}
    for record in records:
        value = snake_fields(record.value)
        kind = _ag_ui_part_of(value)
        if kind is None:
            record_by_key["", record.location] = replace(record, value=value)
            continue
        # A part without an id continues the last message of its kind.
        last_ids[kind] = text_in(value, "message_id", "tool_call_id") or last_ids.get(kind)
        key = kind, last_ids[kind]
        first = record_by_key.setdefault(key, replace(record, value={"type": kind, "delta": ""}))
        delta = f"{first.value['delta']}{value.get('delta') or ''}"
        record_by_key[key] = replace(first, value={**value, **first.value, "delta": delta})
    return list(record_by_key.values())


def _with_snapshot_messages(records: Iterable[SessionRecord]) -> list[SessionRecord]:
    """Replace snapshots by those of their messages that were not streamed.

    Such messages come before the next message of the snapshot that was streamed.
    """
    ordered: list[SessionRecord] = []
    read_keys: set[tuple[str, str]] = set()
    for record in records:
        snapshot = fields_of(record.value.get("input")) or record.value
        pending: list[SessionRecord] = []
        for number, message in enumerate(items_of(snapshot.get("messages"))):
            value = {**snake_fields(message), "type": "MESSAGE"}
            keys = _ag_ui_keys(value)
            if keys.isdisjoint(read_keys):
                pending.append(SessionRecord(value, f"{record.location} /messages/{number}"))
                read_keys |= keys
            elif pending:
                position = _position_of(keys, ordered)
                ordered[position:position] = pending
                pending = []
        read_keys |= _ag_ui_keys(record.value)
        ordered += pending or [record]
    return ordered


def _position_of(keys: set[tuple[str, str]], records: Sequence[SessionRecord]) -> int:
    """Return the position of the first record with one of these keys, or the end."""
    positions = (i for i, record in enumerate(records) if keys & _ag_ui_keys(record.value))
    return next(positions, len(records))


def _ag_ui_keys(record: Fields) -> set[tuple[str, str]]:
    """Return the ids of the message, the calls and the result in a record, with their kinds."""
    calls = [text_in(fields_of(call), "id") for call in items_of(record.get("tool_calls"))]
    if kind_of(record) == "TOOL":
        calls.append(text_in(record, "tool_call_id"))
    is_result = kind_of(record) == "TOOL_CALL_RESULT" or record.get("role") == "tool"
    results = [text_in(record, "tool_call_id")] if is_result else []
    messages = [text_in(record, name) for name in ("id", "message_id", "parent_message_id")]
    # Some servers give the messages of each snapshot new ids.
    has_new_ids = kind_of(record) == "TEXT" or record.get("role") in ("assistant", "system")
    texts = [text_in(record, "delta", "content")] if has_new_ids else []
    ids = {"message": messages, "call": calls, "result": results, "text": texts}
    return {(kind, key) for kind, keys in ids.items() for key in keys if key}


def _ag_ui_turn(record: Fields) -> Turn | None:
    """Return the turn of an event, or of the joined events of a message or a call."""
    text = content_text(record.get("delta"))
    match kind_of(record):
        case "TEXT" if text:
            speaker = {"user": USER, "system": SYSTEM}.get(str(record.get("role")), THE_MODEL)
            return record_turn(record, speaker.piece(text))
        case "THINKING_TEXT" | "REASONING" if text:
            return record_turn(record, THE_MODEL.piece(text, kind=SpanKind.REASONING))
        case "TOOL":
            call = {"id": record.get("tool_call_id"), "name": record.get("tool_call_name")}
            return record_turn(record, call_piece({**call, "arguments": text}, "", ASSISTANT))
        case "TOOL_CALL_RESULT":
            return record_turn(record, result_piece(record, record.get("content"), ""))
        case "MESSAGE":
            return message_turn(record, record)
        case "RUN_ERROR" | "CUSTOM" as kind:
            return log_turn(record, "message", failed=kind == "RUN_ERROR")
    return None


AG_UI: Final = SessionFormat(
    name="ag-ui",
    system=None,
    typical_bytes=(b'"RUN_STARTED"', b'"TEXT_MESSAGE_', b'"TOOL_CALL_'),
    recognises=lambda records: any(
        _ag_ui_part_of(record) or kind_of(record) == "RUN_STARTED" for record in records
    ),
    make_translator=stateless(_ag_ui_turn),
    select_records=lambda records, _problems: _with_snapshot_messages(_joined_parts(records)),
    list_paths=("events",),
    id_paths="message_id id",
    fact_paths={"id": "run_id"},
)
