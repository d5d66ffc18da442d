"""Sessions of Pi and OpenClaw, Factory's Droid and Qwen Code, whose messages form a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, canonical_bytes, content_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Tokens
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
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    add_new,
    fields_of,
    items_of,
    kind_of,
    name_in,
    name_set,
)
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
    SessionContext,
    SessionFormat,
    SessionRecord,
    Translator,
    along_last_branch,
    any_record_with,
    as_system,
    log_turn,
    message_turn,
    record_turn,
    stateless,
    text_at,
    unknown_record_turn,
    user_prompt_piece,
)
from mast_tui.traces.result_status import status_of_code, status_of_flag, status_of_word

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


def _pi_tokens(message: Fields) -> Tokens | None:
    """Return the tokens of the model call in a message of Pi."""
    return usage_tokens(message.get("usage"), "input cacheRead cacheWrite", "output")


def _pi_turn(record: Fields) -> Turn | None:
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
    turn = message_turn(record, message, tokens=_pi_tokens(message))
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
        return _pi_turn(record)

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


# OpenClaw's telemetry plugin: beginnings and ends of agents and tools, and messages.
# ``agent.start`` and ``agent.end`` repeat all messages of the session, so each message is read only
# once. OpenClaw's own record of a session (``.trajectory.jsonl``) is read in the same way.


_OPENCLAW_SUB_AGENT: Final = ":subagent:"
_OPENCLAW_MAIN_SESSION: Final = "main"
_OPENCLAW_TRAJECTORY: Final = "openclaw-trajectory"


def _openclaw_session_of(record: Fields) -> str:
    """Return the key of a sub-agent's session, or one name for all keys of the main agent."""
    key = text_at(record, "sessionKey") or ""
    return key if _OPENCLAW_SUB_AGENT in key else _OPENCLAW_MAIN_SESSION


def _as_openclaw_event(record: SessionRecord) -> SessionRecord:
    """Return a record of OpenClaw's trajectory as the plugin's event; others unchanged."""
    value = record.value
    if value.get("traceSchema") != _OPENCLAW_TRAJECTORY:
        return record
    data = fields_of(value.get("data"))
    event: dict[str, object] = {
        name: value[name] for name in ("ts", "sessionKey", "modelId") if name in value
    }
    event["trajectoryOf"] = value.get("sessionId")
    match kind_of(value):
        case "context.compiled":
            event |= {"type": "system.prompt", "content": data.get("systemPrompt")}
        case "prompt.submitted":
            event |= {"type": "agent.start", "prompt": data.get("prompt")}
        case "model.completed" if "messagesSnapshot" in data:
            event |= {"type": "agent.end", "messages": data["messagesSnapshot"]}
        case "model.completed":
            texts = map(content_text, items_of(data.get("assistantTexts")))
            event |= {
                "type": "message.out",
                "content": "\n".join(texts),
                "usage": data.get("usage"),
            }
        case "session.ended" if error := text_at(data, "promptError terminalError"):
            event |= {"type": "agent.end", "success": False, "error": error}
    return replace(record, value=event)


class _OpenClawMessages:
    """The contents of a session's messages, for comparison with the events that repeat them.

    Attributes:
        calls: The number of calls in the messages, by tool and arguments.
        texts: The texts of the messages.
    """

    def __init__(self, records: Sequence[SessionRecord]) -> None:
        self.calls: Counter[tuple[str | None, bytes]] = Counter()
        self.texts: set[str] = set()
        seen_messages: set[bytes] = set()
        for record in records:
            for message in items_of(record.value.get("messages")):
                if add_new(seen_messages, canonical_bytes(message)):
                    self._add_message(fields_of(message))

    def _add_message(self, message: Fields) -> None:
        """Add the calls and the text of a message."""
        content = message.get("content")
        for part in items_of(content):
            if kind_of(part) == "toolCall":
                fields = fields_of(part)
                self.calls[_openclaw_call(fields.get("name"), fields.get("arguments"))] += 1
        text_parts = [part for part in items_of(content) if kind_of(part) == "text"]
        self.texts.add(content_text(text_parts or content).strip())


def _openclaw_call(name: object, arguments: object) -> tuple[str | None, bytes]:
    """Return the name of a tool and its arguments as bytes, for the comparison of calls."""
    return as_text(name), canonical_bytes(arguments)


def _select_new_openclaw_records(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return each message and each file once, and the events that no message repeats.

    The messages and files in the lists of events become separate records.
    """
    records = [_as_openclaw_event(record) for record in records]
    contents = _OpenClawMessages(records)
    seen_values: set[bytes] = set()
    shown_records = []
    for record in _without_repeated_openclaw_calls(records, contents.calls):
        value = record.value
        shown_records += [
            SessionRecord({"type": "markdown", **fields_of(file)}, record.location)
            for file in items_of(value.get("markdown"))
            if add_new(seen_values, canonical_bytes(file))
        ]
        is_shown = kind_of(value).startswith(("tool.", "agent.end"))
        if not is_shown:
            text = content_text(value.get("prompt", value.get("content"))).strip()
            is_repeated = text in contents.texts
            is_shown = (
                text != "" and not is_repeated and add_new(seen_values, canonical_bytes(text))
            )
        if is_shown:
            shown_records.append(record)
        shown_records += [
            SessionRecord({"type": "message", "message": message}, record.location)
            for message in items_of(value.get("messages"))
            if add_new(seen_values, canonical_bytes(message))
        ]
    return shown_records


def _without_repeated_openclaw_calls(
    records: Iterable[SessionRecord], calls_in_messages: Counter[tuple[str | None, bytes]]
) -> Iterator[SessionRecord]:
    """Yield the records without each ``tool.start`` and ``tool.end`` of a call in a message."""
    skipped_start_counts: Counter[str | None] = Counter()
    for record in records:
        kind = kind_of(record.value)
        tool_name = name_in(record.value, "toolName")
        if kind == "tool.start":
            call = _openclaw_call(record.value.get("toolName"), record.value.get("params"))
            if calls_in_messages[call]:
                calls_in_messages[call] -= 1
                skipped_start_counts[tool_name] += 1
                continue
        elif kind == "tool.end" and skipped_start_counts[tool_name]:
            skipped_start_counts[tool_name] -= 1
            continue
        yield record


def _openclaw_translator(session: SessionContext) -> Translator:
    """Return the function that makes turns; set the id of a sub-agent's session."""
    keys = (text_at(record, "sessionKey") or "" for record in session.values)
    session.id = next((key for key in keys if _OPENCLAW_SUB_AGENT in key), session.id)
    return _openclaw_turn


def _openclaw_turn(record: Fields) -> Turn | None:
    """Return the turn of a record."""
    kind = kind_of(record)
    match kind:
        case "message":
            return _pi_turn(record)
        case "markdown":
            text = content_text(record.get("content"))
            name = name_in(record, "filename")
            return record_turn(record, Piece(SpanKind.LOG, Role.SYSTEM, "system", text, name=name))
        case "system.prompt":
            return record_turn(record, SYSTEM.piece(content_text(record.get("content"))))
        case "agent.start":
            return record_turn(record, user_prompt_piece(content_text(record.get("prompt"))))
        case "message.in":
            return record_turn(record, user_prompt_piece(content_text(record.get("content"))))
        case "message.sending" | "message.out":
            turn = record_turn(record, THE_MODEL.piece(content_text(record.get("content"))))
            return replace(turn, tokens=_pi_tokens(record))
        case "tool.start":
            call = {"name": record.get("toolName"), "arguments": record.get("params")}
            return record_turn(record, call_piece(call, "", ASSISTANT))
        case "tool.end":
            # A result has a status, and may have no output.
            output = record.get("result", record.get("error"))
            status = status_of_flag(record.get("success"))
            result = result_piece({}, output, "", name=name_in(record, "toolName"), status=status)
            return record_turn(record, result)
        case "agent.end":
            failed = record.get("success") is False
            return log_turn(record, "error", failed=True) if failed else None
    return log_turn(record)


_OPENCLAW_EVENTS: Final = any_record_with(
    {kind: {"sessionKey"} for kind in ("agent.start", "agent.end", "tool.start", "tool.end")}
)


OPENCLAW_TELEMETRY: Final = SessionFormat(
    name="openclaw-telemetry",
    system="openclaw",
    typical_bytes=(b'"sessionKey"', b'"openclaw-trajectory"'),
    recognises=lambda records: (
        _OPENCLAW_EVENTS(records)
        or any(record.get("traceSchema") == _OPENCLAW_TRAJECTORY for record in records)
    ),
    make_translator=_openclaw_translator,
    select_records=_select_new_openclaw_records,
    id_paths="",
    fact_paths={"id": "trajectoryOf", "model": "modelId"},
    session_of=_openclaw_session_of,
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
