"""Logs of OpenClaw's telemetry plugin: agents and tools that begin and end, and chat messages.

``agent.start`` and ``agent.end`` repeat all messages of the session. So each message is read where
it comes first, and an event is left out where a message has the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
    fields_of,
    items_of,
    kind_of,
    name_in,
)
from mast_tui.traces.readers.sessions.engine import (
    SessionContext,
    SessionFormat,
    SessionRecord,
    Translate,
    text_at,
)
from mast_tui.traces.readers.sessions.pieces import note_of, record_turn, user_prompt_piece
from mast_tui.traces.readers.sessions.trees import pi_turn
from mast_tui.traces.result_status import status_of_flag

_SUB_AGENT: Final = ":subagent:"
_MAIN: Final = "main"


def _is_telemetry(records: Sequence[Fields]) -> bool:
    return any(
        kind_of(record) in ("agent.start", "agent.end", "tool.start", "tool.end")
        and "sessionKey" in record
        for record in records
    )


def _session_of(record: Fields) -> str:
    """Return the key of a sub-agent; the agent that talks to the user has several."""
    key = text_at(record, "sessionKey") or ""
    return key if _SUB_AGENT in key else _MAIN


class _SpokenWords:
    """The calls and texts of a session's messages, which events repeat."""

    def __init__(self, records: Sequence[SessionRecord]) -> None:
        self.calls: Counter[tuple[str | None, bytes]] = Counter()
        self.texts: set[str] = set()
        seen: set[bytes] = set()
        for record in records:
            for message in items_of(record.value.get("messages")):
                mark = canonical_bytes(message)
                if mark not in seen:
                    seen.add(mark)
                    self._take(fields_of(message))

    def _take(self, message: Fields) -> None:
        content = message.get("content")
        for part in items_of(content):
            if kind_of(part) == "toolCall":
                fields = fields_of(part)
                self.calls[_call_mark(fields.get("name"), fields.get("arguments"))] += 1
        parts = [part for part in items_of(content) if kind_of(part) == "text"]
        self.texts.add(content_text(parts or content).strip())


def _call_mark(name: object, arguments: object) -> tuple[str | None, bytes]:
    return as_text(name), canonical_bytes(arguments)


def _order(records: Sequence[SessionRecord], _problems: list[Problem]) -> Sequence[SessionRecord]:
    """Return a record for each message, and the events that no message repeats."""
    spoken = _SpokenWords(records)
    ended: Counter[str | None] = Counter()
    seen: set[bytes] = set()
    selected = []
    for record in records:
        value = record.value
        kind = kind_of(value)
        if kind == "tool.start":
            mark = _call_mark(value.get("toolName"), value.get("params"))
            if spoken.calls[mark]:
                spoken.calls[mark] -= 1
                ended[name_in(value, "toolName")] += 1
                continue
        elif kind == "tool.end" and ended[name_in(value, "toolName")]:
            ended[name_in(value, "toolName")] -= 1
            continue
        selected += [
            SessionRecord({"type": "markdown", **fields_of(file)}, record.location)
            for file in items_of(value.get("markdown"))
            if _is_new(file, seen)
        ]
        text = content_text(value.get("prompt", value.get("content"))).strip()
        if kind.startswith(("tool.", "agent.end")) or (
            text and text not in spoken.texts and _is_new(text, seen)
        ):
            selected.append(record)
        selected += [
            SessionRecord({"type": "message", "message": message}, record.location)
            for message in items_of(value.get("messages"))
            if _is_new(message, seen)
        ]
    return selected


def _is_new(value: object, seen: set[bytes]) -> bool:
    mark = canonical_bytes(value)
    if mark in seen:
        return False
    seen.add(mark)
    return True


def _translator(session: SessionContext) -> Translate:
    keys = (text_at(record, "sessionKey") or "" for record in session.values)
    session.id = next((key for key in keys if _SUB_AGENT in key), None)
    return _turn


def _turn(record: Fields) -> Turn | None:
    kind = kind_of(record)
    match kind:
        case "message":
            return pi_turn(record)
        case "markdown":
            text = content_text(record.get("content"))
            name = name_in(record, "filename")
            return record_turn(record, Piece(SpanKind.LOG, Role.SYSTEM, "system", text, name=name))
        case "agent.start":
            return record_turn(record, user_prompt_piece(content_text(record.get("prompt"))))
        case "message.in":
            return record_turn(record, user_prompt_piece(content_text(record.get("content"))))
        case "message.sending" | "message.out":
            return record_turn(record, THE_MODEL.piece(content_text(record.get("content"))))
        case "tool.start":
            call = {"name": record.get("toolName"), "arguments": record.get("params")}
            return record_turn(record, call_piece(call, "", ASSISTANT))
        case "tool.end":
            return record_turn(record, _result(record))
        case "agent.end":
            failed = record.get("success") is False
            return note_of(record, "error", failed=True) if failed else None
    return note_of(record)


def _result(record: Fields) -> Piece:
    """Return the end of a tool, which has a status and not always an output."""
    return result_piece(
        {},
        record.get("result", record.get("error")),
        "",
        name=name_in(record, "toolName"),
        status=status_of_flag(record.get("success")),
    )


OPENCLAW_TELEMETRY: Final = SessionFormat(
    name="openclaw-telemetry",
    system="openclaw",
    marks=(b'"sessionKey"',),
    recognises=_is_telemetry,
    translator=_translator,
    order=_order,
    keys="",
    session_of=_session_of,
)
