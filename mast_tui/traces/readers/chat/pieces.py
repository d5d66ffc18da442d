"""The pieces that a message is taken apart into, and their speakers. Each piece becomes a span."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.values import output_text
from mast_tui.traces.readers.json_fields import (
    Fields,
    first_in,
    flag_in,
    identifier_in,
    name_in,
)
from mast_tui.traces.result_status import status_of_code, status_of_message

ASSISTANT: Final = "assistant"
"""The agent of a model's message that does not name one."""

_ARGUMENT_FIELDS: Final = ("arguments", "args", "input", "action", "parameters")
_CALL_ID_FIELDS: Final = ("call_id", "id", "tool_call_id", "toolCallId")
_RESULT_ID_FIELDS: Final = ("tool_call_id", "tool_use_id", "call_id", "toolCallId")
_TOOL_NAME_FIELDS: Final = ("name", "toolName", "tool_name")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message that becomes one span, before its key is known.

    Attributes:
        key_suffix: The end of the span's key, after the key of the message.
        call_id: The id of a call, by which its result is found.
        start: The time of the piece, if it differs from the message's time.
        standing: Whether the text is instructions that every request repeats. Such instructions
            are shown only when they change.
        problem: The description of a defect of the piece.
    """

    kind: SpanKind
    role: Role
    agent: str
    text: str
    key_suffix: str = ""
    name: str | None = None
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    start: float | None = None
    standing: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The pieces of a message, with the time, the tokens and the model of the call that made it."""

    pieces: tuple[Piece, ...]
    start: float | None = None
    tokens: Tokens | None = None
    model: str | None = None


def json_log_piece(value: object, key_suffix: str = "", *, name: str | None = None) -> Piece:
    """Return a log piece with a value as JSON, for a value of an unknown shape.

    Args:
        value: The value.
        key_suffix: The end of the span's key, after the key of the message.
        name: The name of the log.
    """
    return Piece(SpanKind.LOG, Role.LOG, "log", dump_text(value), key_suffix, name=name)


def log_piece(text: str, name: str | None = None, *, failed: bool = False) -> Piece:
    """Return the piece of an event that is no message.

    Args:
        text: The text of the event.
        name: The name of its kind.
        failed: Whether the event is an error.
    """
    status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
    return Piece(SpanKind.LOG, Role.LOG, "log", text, name=name, status=status)


def call_piece(call: object, key_suffix: str, agent: str, *, name: str | None = None) -> Piece:
    """Return the piece of a tool call in any vendor's spelling.

    Args:
        call: The call.
        key_suffix: The end of the span's key, after the key of the message.
        agent: The agent that calls.
        name: The name of the tool, for a call that has none itself.
    """
    if not isinstance(call, Mapping):
        return replace(json_log_piece(call, key_suffix), problem="not a tool call but a bare value")
    nested_calls = (call.get("function"), call.get("custom"))
    function: Fields = next(
        (nested_call for nested_call in nested_calls if isinstance(nested_call, Mapping)), call
    )
    return Piece(
        SpanKind.TOOL_CALL,
        Role.AGENT,
        agent,
        dump_text(first_in(function, *_ARGUMENT_FIELDS)),
        key_suffix,
        name=name_in(function, *_TOOL_NAME_FIELDS) or name or name_in(call, "type"),
        call_id=identifier_in(call, *_CALL_ID_FIELDS),
    )


def result_piece(
    result: Fields,
    content: object,
    key_suffix: str,
    *,
    name: str | None = None,
    call_id: str | None = None,
    status: SpanStatus = SpanStatus.UNKNOWN,
) -> Piece:
    """Return the piece of a tool's result.

    Args:
        result: The message or block of the result, which may name the call.
        content: The output of the tool.
        key_suffix: The end of the span's key, after the key of the message.
        name: The name of the tool; by default the one in ``result``.
        call_id: The id of the call; by default the one in ``result``.
        status: The status of the call; by default the one in ``result``.
    """
    text = output_text(content)
    call_id = call_id or identifier_in(result, *_RESULT_ID_FIELDS)
    if call_id is None and result.get("type") in ("tool_call_response", "local_shell_call_output"):
        call_id = identifier_in(result, "id")
    tool_name = name or name_in(result, *_TOOL_NAME_FIELDS)
    return Piece(
        SpanKind.TOOL_RESULT,
        Role.TOOL,
        tool_name or "tool",
        text,
        key_suffix,
        name=tool_name,
        call_id=call_id,
        status=_stated_status(result, content) if status is SpanStatus.UNKNOWN else status,
    )


def _stated_status(result: Fields, content: object) -> SpanStatus:
    """Return the status that the fields of a tool's result state; UNKNOWN if they state none."""
    if (flag := flag_in(result, "is_error", "isError", "error")) is not None:
        return SpanStatus.ERROR if flag else SpanStatus.OK
    status = result.get("status")
    if status in ("error", "failed", "failure"):
        return SpanStatus.ERROR
    objects = (result, result.get("metadata"), result.get("extra"), content)
    for object_with_code in objects:
        if isinstance(object_with_code, Mapping):
            status_of_exit = status_of_code(
                first_in(object_with_code, "exit_code", "returncode", "return_code")
            )
            if status_of_exit is not SpanStatus.UNKNOWN:
                return status_of_exit
            kind = object_with_code.get("type")
            if isinstance(kind, str) and kind.endswith(("_error", "error-text", "error-json")):
                return SpanStatus.ERROR
    if status in ("ok", "success"):
        return SpanStatus.OK
    return SpanStatus.UNKNOWN


_ROLE_BY_NAME: Final[Mapping[str, Role]] = {
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
"""The names of vendors for the model as a role, which is the assistant's."""
_USER_NAMES: Final = frozenset({"user", "human", "user_proxy", "userproxy", "customer"})
_ACTOR_ROLE_NAME: Final = re.compile(r"(?P<actor>.*\S)\s*\((?P<purpose>[^()]*)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Speaker:
    """The agent and the role of a message; ``thinks`` is true if the message is a thought."""

    agent: str
    role: Role
    thinks: bool = False

    @property
    def kind(self) -> SpanKind:
        """The kind of the span of a text of this speaker."""
        return SpanKind.REASONING if self.thinks else SpanKind.MESSAGE

    def piece(self, text: str, key_suffix: str = "", *, kind: SpanKind = SpanKind.MESSAGE) -> Piece:
        """Return the piece of a text of this speaker.

        Args:
            text: The text.
            key_suffix: The end of the span's key, after the key of the message.
            kind: The kind of span that it becomes.
        """
        status = status_of_message(self.agent, text)
        return Piece(kind, self.role, self.agent, text, key_suffix, status=status)


THE_MODEL: Final = Speaker(ASSISTANT, Role.AGENT)


def speaks_by_name(messages: Sequence[object]) -> bool:
    """Return whether ``name`` is the speaker of each message, and ``role`` only one agent's view.

    In such transcripts, which AG2 writes, every message has a name, and there are several names.
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
    """Return the speaker of a chat message; None if it has neither role nor name.

    Args:
        message: The message.
        by_name: Whether ``name`` and not ``role`` is the speaker; see ``speaks_by_name``.
    """
    name = name_in(message, "name", "source")
    role_name = name_in(message, "role", "from")
    if role_name is None:
        if name is None or "content" not in message:
            return None
        return Speaker(name, role_of_name(name))
    role = role_of(role_name)
    if role is Role.TOOL:
        return Speaker(name or role_name, role)
    if role is None and name is None:
        return _speaker_of_role_name(role_name)
    if name is not None and by_name and role is not Role.SYSTEM:
        return Speaker(name, role_of_name(name))
    return Speaker(name or role_name, role or Role.AGENT)


def role_of(role_name: str) -> Role | None:
    """Return the role that a vendor's role name means; None for any other name, as of an agent."""
    return _ROLE_BY_NAME.get(role_name.lower())


def role_of_name(name: str) -> Role:
    """Return the role of a speaker whose message states only a name."""
    return Role.USER if name.lower() in _USER_NAMES else Role.AGENT


def _speaker_of_role_name(role_name: str) -> Speaker:
    """Return the speaker of a role such as ``Orchestrator (-> WebSurfer)``.

    Magentic-One writes the acting agent, and the purpose in parentheses, into ``role``.
    """
    if role_name.lower() in _MODEL_NAMES:
        return THE_MODEL
    if match := _ACTOR_ROLE_NAME.fullmatch(role_name):
        return Speaker(match["actor"], Role.AGENT, thinks=match["purpose"].strip() == "thought")
    return Speaker(role_name, Role.AGENT)
