"""Messages made of ``parts``: Google's (Gemini, ADK), OpenTelemetry's and Pydantic AI's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.chat import block_piece
from mast_tui.traces.readers.chat.fields import Fields, fields_of, first_in, kind_of, name_in
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    call_piece,
    noted,
    result_piece,
    said,
)
from mast_tui.traces.readers.chat.speakers import Speaker, role_of, role_of_name
from mast_tui.traces.readers.chat.text import said_text
from mast_tui.traces.times import unix_seconds

_EVENT_MARKS: Final = ("invocation_id", "invocationId", "actions", "partial", "timestamp")
_CODE_TOOL: Final = "code_execution"


def is_parts_message(message: Fields) -> bool:
    """Whether a JSON object is ``{role, parts}``, or Pydantic AI's ``{kind, parts}``."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return False
    if message.get("kind") in ("request", "response"):
        return all(isinstance(part, Mapping) and "part_kind" in part for part in parts)
    return isinstance(message.get("role"), str) and message.get("content") is None


def is_event(message: Fields) -> bool:
    """Whether a JSON object is an event of Google's ADK."""
    if name_in(message, "author") is None or "role" in message:
        return False
    content = message.get("content")
    if isinstance(content, Mapping):
        return isinstance(content.get("parts"), list)
    return content is None and sum(mark in message for mark in _EVENT_MARKS) > 1


def event_pieces(event: Fields) -> Iterator[Piece]:
    """The pieces of an ADK event; none for a fragment of what a later event says in full."""
    if event.get("partial") is True:
        return
    author = name_in(event, "author") or ASSISTANT
    content = fields_of(event.get("content"))
    speaker = Speaker(author, role_of_name(author))
    count = 0
    for piece in _parts(content.get("parts"), speaker, "/content/parts"):
        count += 1
        yield piece
    texts = (
        first_in(event, "error_code", "errorCode"),
        first_in(event, "error_message", "errorMessage"),
    )
    if error := ": ".join(content_text(text) for text in texts if text is not None):
        yield Piece(
            SpanKind.LOG,
            Role.LOG,
            author,
            error,
            "/error" if count else "",
            status=SpanStatus.ERROR,
        )
    elif not count and not content:
        rest = {name: value for name, value in event.items() if value not in (None, {}, [])}
        yield noted(rest)
    elif not count:
        yield said(speaker.role, speaker.agent, "")


def parts_pieces(message: Fields) -> Iterator[Piece]:
    """The pieces of a message with ``role`` and ``parts``."""
    role = name_in(message, "role") or ASSISTANT
    name = name_in(message, "name")
    if role == "model":
        speaker = Speaker(name or ASSISTANT, Role.AGENT)
    else:
        speaker = Speaker(name or role, role_of(role) or Role.AGENT)
    count = 0
    for piece in _parts(message.get("parts"), speaker, "/parts"):
        count += 1
        yield piece
    if not count:
        yield said(speaker.role, speaker.agent, "")


def _parts(parts: object, speaker: Speaker, at: str) -> Iterator[Piece]:
    """Calls, results and thoughts are pieces by themselves; texts between them are joined."""
    found = parts if isinstance(parts, list) else []
    texts: list[object] = []
    text_at = ""
    for number, part in enumerate([*found, None]):
        fields = fields_of(part)
        piece = _special(fields, f"{at}/{number}", speaker)
        if piece is None and number < len(found):
            if not texts:
                text_at = f"{at}/{number}" if number else ""
            texts.append(part)
            continue
        if text := said_text(texts):
            yield said(speaker.role, speaker.agent, text, text_at)
        texts = []
        if piece is not None:
            yield piece


def _special(part: Fields, at: str, speaker: Speaker) -> Piece | None:
    call = first_in(part, "function_call", "functionCall")
    if isinstance(call, Mapping):
        return call_piece(call, at, speaker.agent)
    response = first_in(part, "function_response", "functionResponse")
    if isinstance(response, Mapping):
        call_id = as_text(response.get("id"))
        content = response.get("response")
        failed = isinstance(content, Mapping) and set(content) == {"error"}
        status = SpanStatus.ERROR if failed else None
        return result_piece(response, content, at, call_id=call_id, status=status)
    code = first_in(part, "executable_code", "executableCode")
    if isinstance(code, Mapping):
        return call_piece({"arguments": first_in(code, "code")}, at, speaker.agent, name=_CODE_TOOL)
    ran = first_in(part, "code_execution_result", "codeExecutionResult")
    if isinstance(ran, Mapping):
        outcome = as_text(ran.get("outcome")) or ""
        status = SpanStatus.OK if outcome == "OUTCOME_OK" else SpanStatus.ERROR
        return result_piece(ran, ran.get("output") or "", at, name=_CODE_TOOL, status=status)
    if part.get("thought") is True:
        return said(
            speaker.role, speaker.agent, content_text(part.get("text")), at, kind=SpanKind.REASONING
        )
    return block_piece(part, at, speaker.agent, speaker.role) if kind_of(part) else None


def pydantic_pieces(message: Fields) -> Iterator[Piece]:
    """The pieces of a request or a response of Pydantic AI."""
    if instructions := as_text(message.get("instructions")):
        yield Piece(
            SpanKind.MESSAGE, Role.SYSTEM, "system", instructions, "/instructions", standing=True
        )
    parts = message.get("parts")
    for number, part in enumerate(parts if isinstance(parts, list) else []):
        piece = _pydantic_part(fields_of(part), "" if number == 0 else f"/parts/{number}")
        yield piece


def _pydantic_part(part: Fields, at: str) -> Piece:
    kind = part.get("part_kind")
    content = part.get("content")
    match kind:
        case "system-prompt":
            piece = said(Role.SYSTEM, "system", said_text(content), at)
        case "user-prompt":
            piece = said(Role.USER, "user", said_text(content), at)
        case "text":
            piece = said(Role.AGENT, ASSISTANT, said_text(content), at)
        case "thinking":
            piece = said(Role.AGENT, ASSISTANT, _thought(part), at, kind=SpanKind.REASONING)
        case "tool-call" | "builtin-tool-call":
            piece = call_piece(part, at, ASSISTANT)
        case "tool-return" | "builtin-tool-return":
            failed = part.get("outcome") in ("failed", "denied")
            piece = result_piece(part, content, at, status=SpanStatus.ERROR if failed else None)
        case "retry-prompt" if as_text(part.get("tool_name")):
            piece = result_piece(part, _complaint(content), at, status=SpanStatus.ERROR)
        case "retry-prompt":
            text = _complaint(content)
            piece = Piece(SpanKind.MESSAGE, Role.USER, "user", text, at, status=SpanStatus.ERROR)
        case "file":
            piece = said(Role.AGENT, ASSISTANT, said_text(content), at)
        case _:
            piece = noted(part, at)
    start = unix_seconds(part.get("timestamp"))
    return piece if start is None else replace(piece, start=start)


def _thought(part: Fields) -> str:
    text = content_text(part.get("content"))
    return text or ("[encrypted reasoning]" if as_text(part.get("signature")) else "")


def _complaint(content: object) -> str:
    """What was wrong with a model's answer: a text, or a list of errors by field."""
    return content if isinstance(content, str) else dump_text(content)
