"""Which thread of a run a Codex rollout holds, and which threads it has begun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, as_text, load_json
from mast_tui.traces.model import Thread

_ID_FIELDS: Final = ("agent_id", "thread_id", "new_thread_id", "agent_thread_id")
_LONGEST_ANSWER: Final = 10_000
_SHORT_ID: Final = 8


def thread_of(meta: Mapping[str, object]) -> Thread | None:
    """The thread that a ``session_meta`` begins; one begun by the user has no parent."""
    own = as_text(meta.get("id")) or as_text(meta.get("session_id"))
    if own is None:
        return None
    parent = as_text(meta.get("parent_thread_id")) or as_text(
        _spawn_source(meta).get("parent_thread_id")
    )
    return Thread(own, None if parent == own else parent)


def agent_of(meta: Mapping[str, object], thread: Thread) -> str:
    """What a sub-agent is called: its nickname or role, else the end of its path, else its id."""
    source = _spawn_source(meta)
    for field in ("agent_nickname", "agent_role", "agent_type"):
        if name := as_text(meta.get(field)) or as_text(source.get(field)):
            return " ".join(name.split())
    path = path_of(meta)
    end = path.rstrip("/").rpartition("/")[2].strip() if path else ""
    return end or f"codex {thread.id[:_SHORT_ID]}"


def path_of(meta: Mapping[str, object]) -> str | None:
    """The path by which other agents address this one, from the first agent down."""
    return as_text(meta.get("agent_path")) or as_text(_spawn_source(meta).get("agent_path"))


def thread_in_answer(output: str) -> str | None:
    """The thread that the answer to a spawn call names."""
    if len(output) > _LONGEST_ANSWER or not output.lstrip().startswith("{"):
        return None
    try:
        answer = load_json(output)
    except InvalidJSON:
        return None
    if not isinstance(answer, Mapping):
        return None
    return next((name for field in _ID_FIELDS if (name := as_text(answer.get(field)))), None)


def _spawn_source(meta: Mapping[str, object]) -> Mapping[str, object]:
    """What the ``source`` of a sub-agent's thread says of its beginning."""
    found: object = meta.get("source")
    for field in ("subagent", "thread_spawn"):
        found = found.get(field) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
