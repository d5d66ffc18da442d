"""Who speaks in a chat message, and on whose side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.chat.fields import Fields, name_in
from mast_tui.traces.readers.chat.pieces import ASSISTANT

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
