"""LangChain's messages in the ways they are saved: flat, under ``data``, or by constructor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.model import Role
from mast_tui.traces.readers.chat.fields import Fields, kind_of, name_in
from mast_tui.traces.readers.chat.pieces import ASSISTANT
from mast_tui.traces.readers.chat.speakers import Speaker, role_of_name

_TYPES: Final[Mapping[str, Speaker]] = {
    "human": Speaker("user", Role.USER),
    "ai": Speaker(ASSISTANT, Role.AGENT),
    "system": Speaker("system", Role.SYSTEM),
    "developer": Speaker("developer", Role.SYSTEM),
    "tool": Speaker("tool", Role.TOOL),
    "function": Speaker("function", Role.TOOL),
    "chat": Speaker("chat", Role.AGENT),
}
_LOOKED_FOR: Final = ("content", "tool_calls")


def unwrap(message: Fields) -> tuple[Speaker, Fields, str] | None:
    """Who speaks, the object that holds the message's fields, and the pointer to that object.

    None for anything that is no message of LangChain's.
    """
    kind, fields, inner = kind_of(message), message, ""
    if message.get("lc") is not None and isinstance(message.get("kwargs"), Mapping):
        path = message.get("id")
        kind = str(path[-1]) if isinstance(path, list) and path else ""
        fields, inner = _mapping(message, "kwargs"), "/kwargs"
    elif isinstance(message.get("data"), Mapping) and "content" not in message:
        fields, inner = _mapping(message, "data"), "/data"
    speaker = _TYPES.get(_short(kind))
    if speaker is None or (isinstance(fields.get("role"), str) and not inner):
        return None
    if not any(field in fields for field in _LOOKED_FOR):
        return None
    return _named(speaker, fields), fields, inner


def _named(speaker: Speaker, fields: Fields) -> Speaker:
    """The speaker under the name that the message gives; a tool's name is no speaker's."""
    name = name_in(fields, "name")
    if speaker.agent == "chat":
        name = name_in(fields, "name", "role")
    if name is None or speaker.role in (Role.TOOL, Role.SYSTEM):
        return speaker
    if speaker.role is Role.USER:
        return Speaker(name, Role.USER)
    return Speaker(name, role_of_name(name) if speaker.agent == "chat" else Role.AGENT)


def _mapping(message: Fields, field: str) -> Fields:
    value = message.get(field)
    return value if isinstance(value, Mapping) else {}


def _short(kind: str) -> str:
    """``ai`` for ``AIMessageChunk``."""
    return kind.removesuffix("Chunk").removesuffix("Message").lower()
