"""What a message is taken apart into: pieces, each of which becomes a span."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.io.json_values import dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.fields import (
    Fields,
    first_in,
    identifier_in,
    name_in,
)
from mast_tui.traces.readers.chat.text import output_text

ASSISTANT: Final = "assistant"
"""Who speaks for the model where a message does not name an agent."""

_ARGUMENTS: Final = ("arguments", "args", "input", "action", "parameters")
_CALL_IDS: Final = ("call_id", "id", "tool_call_id", "toolCallId")
_RESULT_IDS: Final = ("tool_call_id", "tool_use_id", "call_id", "toolCallId")
_TOOL_NAMES: Final = ("name", "toolName", "tool_name")
_OUTPUTS: Final = ("content", "output", "result", "response")

_EXIT_CODE: Final = re.compile(
    r"\s*(?:exitcode: (-?\d{1,9}) \(|<returncode>(-?\d{1,9})</returncode>)"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One span to be, before its key is known.

    ``at`` goes behind the message's own key to make the piece's. ``call_id`` ties a result to its
    call. ``start`` is the piece's own time where it differs from the message's. ``standing`` marks
    instructions that are sent with every request: they are shown when they change. ``problem``
    says what is wrong with it.
    """

    kind: SpanKind
    role: Role
    agent: str
    text: str
    at: str = ""
    name: str | None = None
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    start: float | None = None
    standing: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A message taken apart, with the time, the tokens and the model of the call behind it."""

    pieces: tuple[Piece, ...]
    start: float | None = None
    tokens: Tokens | None = None
    model: str | None = None


def said(
    role: Role, agent: str, text: str, at: str = "", *, kind: SpanKind = SpanKind.MESSAGE
) -> Piece:
    """Something that was said or thought."""
    return Piece(kind, role, agent, text, at, status=status_in_text(text))


def noted(value: object, at: str = "", *, name: str | None = None) -> Piece:
    """A value that is kept as it is, because no shape fits it."""
    return Piece(SpanKind.LOG, Role.LOG, "log", dump_text(value), at, name=name)


def call_piece(call: object, at: str, agent: str, *, name: str | None = None) -> Piece:
    """A tool call in any vendor's spelling; ``name`` goes for a call that has none itself."""
    if not isinstance(call, Mapping):
        return Piece(
            SpanKind.LOG,
            Role.LOG,
            "log",
            dump_text(call),
            at,
            problem="not a tool call but a bare value",
        )
    spelt = (call.get("function"), call.get("custom"))
    asked: Fields = next((inner for inner in spelt if isinstance(inner, Mapping)), call)
    return Piece(
        SpanKind.TOOL_CALL,
        Role.AGENT,
        agent,
        dump_text(first_in(asked, *_ARGUMENTS)),
        at,
        name=name_in(asked, *_TOOL_NAMES) or name or name_in(call, "type"),
        call_id=identifier_in(call, *_CALL_IDS),
    )


def result_piece(
    result: Fields,
    content: object,
    at: str,
    *,
    name: str | None = None,
    call_id: str | None = None,
    status: SpanStatus | None = None,
) -> Piece:
    """What a tool gave back: ``content``, in a message or block that names the call."""
    text = output_text(content)
    call_id = call_id or identifier_in(result, *_RESULT_IDS)
    if call_id is None and result.get("type") in ("tool_call_response", "local_shell_call_output"):
        call_id = identifier_in(result, "id")
    tool = name or name_in(result, *_TOOL_NAMES)
    return Piece(
        SpanKind.TOOL_RESULT,
        Role.TOOL,
        tool or "tool",
        text,
        at,
        name=tool,
        call_id=call_id,
        status=status or _result_status(result, content, text),
    )


def result_of_block(block: Fields, at: str) -> Piece:
    """What a tool gave back, in a block of its own within a message."""
    return result_piece(block, first_in(block, *_OUTPUTS), at)


def status_in_text(text: str) -> SpanStatus:
    """Whether a command went well, where its output begins with the exit code."""
    if match := _EXIT_CODE.match(text):
        return SpanStatus.OK if int(match[1] or match[2]) == 0 else SpanStatus.ERROR
    return SpanStatus.UNKNOWN


def status_of_code(code: object) -> SpanStatus:
    """Whether a command with this exit code went well."""
    if isinstance(code, int) and not isinstance(code, bool):
        return SpanStatus.ERROR if code else SpanStatus.OK
    return SpanStatus.UNKNOWN


def _result_status(result: Fields, content: object, text: str) -> SpanStatus:
    """Whether a tool result went well: only what its source says outright."""
    for field in ("is_error", "isError"):
        flag = result.get(field)
        if isinstance(flag, bool):
            return SpanStatus.ERROR if flag else SpanStatus.OK
    status = result.get("status")
    if status in ("error", "failed", "failure"):
        return SpanStatus.ERROR
    holders = (result, result.get("metadata"), result.get("extra"), content)
    for holder in holders:
        if isinstance(holder, Mapping):
            code = status_of_code(first_in(holder, "exit_code", "returncode", "return_code"))
            if code is not SpanStatus.UNKNOWN:
                return code
            kind = holder.get("type")
            if isinstance(kind, str) and kind.endswith(("_error", "error-text", "error-json")):
                return SpanStatus.ERROR
    if status in ("ok", "success"):
        return SpanStatus.OK
    return status_in_text(text)
