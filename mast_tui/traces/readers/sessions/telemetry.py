"""Logs of OpenClaw's telemetry plugin: beginnings and ends of agents and tools, and messages.

``agent.start`` and ``agent.end`` repeat all messages of the session, so each message is read only
once. OpenClaw's own record of a session (``.trajectory.jsonl``) is read in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, canonical_bytes, content_text
from mast_tui.traces.model import Problem, Role, SpanKind
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Turn,
    call_piece,
    result_piece,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    add_new,
    fields_of,
    items_of,
    kind_of,
    name_in,
)
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
    SessionContext,
    SessionFormat,
    SessionRecord,
    Translator,
    any_record_with,
    log_turn,
    record_turn,
    text_at,
    user_prompt_piece,
)
from mast_tui.traces.readers.sessions.trees import pi_tokens, pi_turn
from mast_tui.traces.result_status import status_of_flag

_SUB_AGENT_KEY_PART: Final = ":subagent:"
_MAIN_SESSION: Final = "main"
_TRAJECTORY: Final = "openclaw-trajectory"


def _session_of(record: Fields) -> str:
    """Return the key of a sub-agent's session, or one name for all keys of the main agent."""
    key = text_at(record, "sessionKey") or ""
    return key if _SUB_AGENT_KEY_PART in key else _MAIN_SESSION


def _as_event(record: SessionRecord) -> SessionRecord:
    """Return a record of OpenClaw's trajectory as the plugin's event; others unchanged."""
    value = record.value
    if value.get("traceSchema") != _TRAJECTORY:
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


class _MessageContents:
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
                self.calls[_call_identity(fields.get("name"), fields.get("arguments"))] += 1
        text_parts = [part for part in items_of(content) if kind_of(part) == "text"]
        self.texts.add(content_text(text_parts or content).strip())


def _call_identity(name: object, arguments: object) -> tuple[str | None, bytes]:
    """Return the name of a tool and its arguments as bytes, for the comparison of calls."""
    return as_text(name), canonical_bytes(arguments)


def _select_new_records(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return each message and each file once, and the events that no message repeats.

    The messages and files in the lists of events become separate records.
    """
    records = [_as_event(record) for record in records]
    contents = _MessageContents(records)
    seen_values: set[bytes] = set()
    shown_records = []
    for record in _without_repeated_calls(records, contents.calls):
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


def _without_repeated_calls(
    records: Iterable[SessionRecord], calls_in_messages: Counter[tuple[str | None, bytes]]
) -> Iterator[SessionRecord]:
    """Yield the records without each ``tool.start`` and ``tool.end`` of a call in a message."""
    skipped_start_counts: Counter[str | None] = Counter()
    for record in records:
        kind = kind_of(record.value)
        tool_name = name_in(record.value, "toolName")
        if kind == "tool.start":
            call = _call_identity(record.value.get("toolName"), record.value.get("params"))
            if calls_in_messages[call]:
                calls_in_messages[call] -= 1
                skipped_start_counts[tool_name] += 1
                continue
        elif kind == "tool.end" and skipped_start_counts[tool_name]:
            skipped_start_counts[tool_name] -= 1
            continue
        yield record


def _translator_of_session(session: SessionContext) -> Translator:
    """Return the function that makes turns; set the id of a sub-agent's session."""
    keys = (text_at(record, "sessionKey") or "" for record in session.values)
    session.id = next((key for key in keys if _SUB_AGENT_KEY_PART in key), session.id)
    return _turn_of_record


def _turn_of_record(record: Fields) -> Turn | None:
    """Return the turn of a record."""
    kind = kind_of(record)
    match kind:
        case "message":
            return pi_turn(record)
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
            return replace(turn, tokens=pi_tokens(record))
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


_BEGINS_OR_ENDS: Final = any_record_with(
    {kind: {"sessionKey"} for kind in ("agent.start", "agent.end", "tool.start", "tool.end")}
)


OPENCLAW_TELEMETRY: Final = SessionFormat(
    name="openclaw-telemetry",
    system="openclaw",
    typical_bytes=(b'"sessionKey"', b'"openclaw-trajectory"'),
    recognises=lambda records: (
        _BEGINS_OR_ENDS(records)
        or any(record.get("traceSchema") == _TRAJECTORY for record in records)
    ),
    make_translator=_translator_of_session,
    select_records=_select_new_records,
    id_paths="",
    fact_paths={"id": "trajectoryOf", "model": "modelId"},
    session_of=_session_of,
)
