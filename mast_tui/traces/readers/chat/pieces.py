"""The pieces that a message is taken apart into, and who says them. Each piece becomes a span."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.values import (
    output_text,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    first_in,
    flag_in,
    identifier_in,
    name_in,
)
from mast_tui.traces.result_status import status_of_code, status_of_message

ASSISTANT: Final = "assistant"
"""Who speaks for the model where a message does not name an agent."""

_ARGUMENTS: Final = ("arguments", "args", "input", "action", "parameters")
_CALL_IDS: Final = ("call_id", "id", "tool_call_id", "toolCallId")
_RESULT_IDS: Final = ("tool_call_id", "tool_use_id", "call_id", "toolCallId")
_TOOL_NAMES: Final = ("name", "toolName", "tool_name")


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


def noted(value: object, at: str = "", *, name: str | None = None) -> Piece:
    """A value that is kept as it is, because no shape fits it."""
    return Piece(SpanKind.LOG, Role.LOG, "log", dump_text(value), at, name=name)


def call_piece(call: object, at: str, agent: str, *, name: str | None = None) -> Piece:
    """A tool call in any vendor's spelling; ``name`` goes for a call that has none itself."""
    if not isinstance(call, Mapping):
        return replace(noted(call, at), problem="not a tool call but a bare value")
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
    status: SpanStatus = SpanStatus.UNKNOWN,
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
        status=_result_status(result, content) if status is SpanStatus.UNKNOWN else status,
    )


def _result_status(result: Fields, content: object) -> SpanStatus:
    """Whether a tool result went well: only what its source says outright."""
    if (flag := flag_in(result, "is_error", "isError", "error")) is not None:
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
    return SpanStatus.UNKNOWN  # its text is asked where it becomes a span


_ROLES: Final[Mapping[str, Role]] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "tool_result": Role.TOOL,
    "toolresult": Role.TOOL,
    "tool-response": Role.TOOL,
    "function_response": Role.TOOL,
    "observation": Role.TOOL,
    "ipython": Role.TOOL,
}
_MODEL_NAMES: Final = frozenset({"gpt", "ai", "model", "chatgpt", "bard", "bing", "bot"})
"""What vendors call the model itself where they mean the assistant."""
_USER_NAMES: Final = frozenset({"user", "human", "user_proxy", "userproxy", "customer"})
_ACTOR: Final = re.compile(r"(?P<actor>.*\S)\s*\((?P<aside>[^()]*)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who says something; ``thinks`` when it is said to oneself."""

    agent: str
    role: Role
    thinks: bool = False

    @property
    def kind(self) -> SpanKind:
        """What it is when this speaker says something."""
        return SpanKind.REASONING if self.thinks else SpanKind.MESSAGE

    def says(self, text: str, at: str = "", *, kind: SpanKind = SpanKind.MESSAGE) -> Piece:
        """Make the piece that this speaker says or thinks."""
        status = status_of_message(self.agent, text)
        return Piece(kind, self.role, self.agent, text, at, status=status)


THE_MODEL: Final = Speaker(ASSISTANT, Role.AGENT)


def speaks_by_name(messages: Sequence[object]) -> bool:
    """Whether ``name`` says who speaks, and ``role`` only how one agent sees the other.

    So it is in AG2's transcripts: every message has a name, and there are at least two.
    """
    names: set[str] = set()
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") in ("system", "developer"):
            continue
        name = as_text(message.get("name"))
        if name is None or message.get("role") in ("tool", "function"):
            return False
        names.add(name)
    return len(names) > 1


def speaker_of(message: Fields, by_name: bool = False) -> Speaker | None:
    """Who speaks in a chat message; None where neither a role nor a name tells."""
    name = name_in(message, "name", "source")
    said = name_in(message, "role", "from")
    if said is None:
        if name is None or "content" not in message:
            return None
        return Speaker(name, role_of_name(name))
    role = role_of(said)
    if role is Role.TOOL:
        return Speaker(name or said, role)
    if role is None and name is None:
        return _actor(said)
    if name is not None and by_name and role is not Role.SYSTEM:
        return Speaker(name, role_of_name(name))
    return Speaker(name or said, role or Role.AGENT)


def role_of(said: str) -> Role | None:
    """The side that a role's name stands for; None where it is the name of an agent."""
    return _ROLES.get(said.lower())


def role_of_name(name: str) -> Role:
    """The side of a speaker who is known by name only."""
    return Role.USER if name.lower() in _USER_NAMES else Role.AGENT


def _actor(said: str) -> Speaker:
    """The speaker of a role such as ``Orchestrator (-> WebSurfer)`` or ``Orchestrator (thought)``.

    Magentic-One writes who acts, and what for, into ``role``.
    """
    if said.lower() in _MODEL_NAMES:
        return THE_MODEL
    if match := _ACTOR.fullmatch(said):
        return Speaker(match["actor"], Role.AGENT, thinks=match["aside"].strip() == "thought")
    return Speaker(said, Role.AGENT)
