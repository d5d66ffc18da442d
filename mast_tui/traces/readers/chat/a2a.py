"""Tasks of the Agent2Agent protocol: a history of messages, artifacts and a state.

The artifacts are what the agent delivered, so they follow the history. Versions before 1.0 write
``kind``, ``agent`` and ``completed``; later ones ``ROLE_AGENT`` and ``TASK_STATE_COMPLETED``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, name_in, texts_in

_STATES: Final = {"completed": "succeeded", "failed": "failed", "rejected": "failed"}


def is_task(record: Fields) -> bool:
    """Tell whether a JSON object is a task with its state."""
    status = record.get("status")
    return (
        isinstance(status, Mapping)
        and isinstance(status.get("state"), str)
        and (record.get("kind") == "task" or "contextId" in record or "artifacts" in record)
        and any(isinstance(record.get(field), list) for field in ("history", "artifacts"))
    )


def task_messages(record: Fields, pointer: str) -> tuple[tuple[str, object], ...]:
    """Return the messages of a task under their pointers: history, last status, artifacts.

    Args:
        record: A task.
        pointer: Its JSON pointer.
    """
    messages: list[tuple[str, object]] = []
    seen: set[str] = set()
    for number, message in enumerate(items_of(record.get("history"))):
        fields = fields_of(message)
        if not fields:
            messages.append((f"{pointer}/history/{number}", message))
            continue
        if message_id := as_text(fields.get("messageId")):
            seen.add(message_id)
        messages.append((f"{pointer}/history/{number}", _with_plain_role(fields)))
    status = fields_of(record.get("status"))
    last = status.get("message")
    if isinstance(last, Mapping) and as_text(last.get("messageId")) not in seen:
        messages.append((f"{pointer}/status/message", _with_plain_role(last)))
    for number, artifact in enumerate(items_of(record.get("artifacts"))):
        fields = fields_of(artifact)
        heading = texts_in(fields, "name", "description")
        parts = [{"text": heading}] if heading else []
        parts.extend(items_of(fields.get("parts")))
        if parts:
            delivered = {"role": "agent", "parts": parts}
            messages.append((f"{pointer}/artifacts/{number}", delivered))
    return tuple(messages)


def task_outcome(record: Fields) -> str | None:
    """Return how a task ended, as ``succeeded`` or ``failed``; None while it is open."""
    state = name_in(fields_of(record.get("status")), "state") or ""
    return _STATES.get(state.lower().removeprefix("task_state_"))


def _with_plain_role(message: Fields) -> Fields:
    role = name_in(message, "role") or "agent"
    plain = {**message, "role": role.lower().removeprefix("role_")}
    if isinstance(message.get("content"), list) and "parts" not in message:
        plain["parts"] = plain.pop("content")  # as drafts of version 1.0 had it
    return plain
