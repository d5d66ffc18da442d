"""What is kept of each record while a Claude Code file is read: no texts, only what spans need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.model import Role, SpanKind, Tokens
from mast_tui.traces.preview import call_preview, preview
from mast_tui.traces.readers.claude_code.records import (
    SYNTHETIC_MODEL,
    Part,
    is_command,
    is_interruption,
    is_of_harness,
    message_field,
    type_of,
    usage_of,
)
from mast_tui.traces.times import unix_seconds

_AGENT_MARK: Final = "agentId: "
_AGENT_ID: Final = re.compile(r"agentId: ([\w-]{1,100})")


class Place(Enum):
    """What a record is in the course of a session."""

    PROMPT = "prompt"
    """The user asks for something, which begins a turn."""
    TURN = "turn"
    """The agent's own: what it says, what its tools give back."""
    BETWEEN = "between"
    """Anything that the harness writes in between."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A part whose text was looked at once and let go: its preview, and whether that is all."""

    part: Part
    preview: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """One record, on the lines ``first`` to ``last`` of its file.

    ``links`` says that other records may name it as their parent. ``root`` says that it names
    none itself, ``parent`` is the one that it names or that it follows after a compaction.
    ``said`` stands for the text of a sub-agent's prompt, ``response`` names the model call that
    the record is part of, and ``worker`` the sub-agent whose result it brings.
    """

    first: int
    last: int
    type: str
    seen: tuple[Seen, ...]
    place: Place = Place.BETWEEN
    uuid: str | None = None
    parent: str | None = None
    root: bool = False
    sidechain: bool = False
    agent_id: str | None = None
    session: str | None = None
    time: float | None = None
    said: int | None = None
    response: str | None = None
    tokens: Tokens | None = None
    model: str | None = None
    worker: str | None = None
    worker_in_text: str | None = None


def facts_of(record: Mapping[str, object], line: int, parts: Sequence[Part]) -> Facts:
    """The facts of a session file's record."""
    kind = type_of(record)
    parent = as_text(record.get("parentUuid"))
    model = message_field(record, "model") if kind == "assistant" else None
    sidechain = record.get("isSidechain") is True
    outcome = record.get("toolUseResult", record.get("tool_use_result"))
    return Facts(
        first=line,
        last=line,
        type=kind,
        seen=tuple(seen(part) for part in parts),
        place=_place(record, kind, parts),
        uuid=as_text(record.get("uuid")),
        parent=parent or as_text(record.get("logicalParentUuid")),
        root=parent is None,
        sidechain=sidechain,
        agent_id=as_text(record.get("agentId")),
        session=as_text(record.get("sessionId")),
        time=unix_seconds(record.get("timestamp")),
        said=_said(parts) if sidechain and kind == "user" else None,
        response=message_field(record, "id") if kind == "assistant" else None,
        tokens=usage_of(record) if kind == "assistant" else None,
        model=None if model == SYNTHETIC_MODEL else model,
        worker=as_text(outcome.get("agentId")) if isinstance(outcome, Mapping) else None,
        worker_in_text=_worker_in_text(parts),
    )


def seen(part: Part) -> Seen:
    """The part without its text."""
    look = call_preview if part.kind is SpanKind.TOOL_CALL else preview
    line, whole = look(part.text)
    prompt = None if part.prompt is None else str(mark_of(part.prompt))
    return Seen(replace(part, text="", prompt=prompt), line, whole)


def mark_of(text: str) -> int:
    """A number by which two prompts are told to be the same."""
    return hash(text.strip())


def _said(parts: Sequence[Part]) -> int | None:
    texts = [part.text for part in parts if part.kind is SpanKind.MESSAGE]
    return mark_of("\n".join(texts)) if texts else None


def _place(record: Mapping[str, object], kind: str, parts: Sequence[Part]) -> Place:
    if kind == "assistant":
        return Place.TURN
    if kind != "user" or is_of_harness(record):
        return Place.BETWEEN
    if any(part.kind is SpanKind.TOOL_RESULT or part.speaker is not None for part in parts):
        return Place.TURN
    for part in parts:
        if is_command(part.text) or (part.role is Role.USER and not is_interruption(part.text)):
            return Place.PROMPT
    return Place.BETWEEN


def _worker_in_text(parts: Sequence[Part]) -> str | None:
    """The sub-agent that a result names, as newer builds write it at its end."""
    for part in parts:
        if part.kind is SpanKind.TOOL_RESULT:
            begin = part.text.rfind(_AGENT_MARK)
            found = _AGENT_ID.match(part.text, begin) if begin >= 0 else None
            if found is not None:
                return found[1]
    return None
