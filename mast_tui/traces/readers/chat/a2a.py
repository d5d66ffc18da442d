"""Tasks of the Agent2Agent protocol: a history of messages, artifacts and a state.

The artifacts are what the agent delivered, so they follow the history. Versions before 1.0 write
``kind``, ``agent`` and ``completed``; later ones ``ROLE_AGENT`` and ``TASK_STATE_COMPLETED``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    items_of,
    name_in,
    text_in,
    texts_in,
)

_EVENTS: Final = {
    "task": "task",
    "message": "message",
    "statusUpdate": "status-update",
    "artifactUpdate": "artifact-update",
}
"""The fields that hold the events of a stream in version 1.0."""

_STATES: Final = {"completed": "succeeded", "failed": "failed", "rejected": "failed"}


def is_task(record: Fields) -> bool:
    """Return whether a JSON object is a task with its state."""
    status = record.get("status")
    return (
        isinstance(status, Mapping)
        and isinstance(status.get("state"), str)
        and (record.get("kind") == "task" or "contextId" in record or "artifacts" in record)
        and any(isinstance(record.get(name), list) for name in ("history", "artifacts"))
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
        parts: list[object] = [{"text": heading}] if heading else []
        parts.extend(items_of(fields.get("parts")))
        if parts:
            delivered = {"role": "agent", "parts": parts}
            messages.append((f"{pointer}/artifacts/{number}", delivered))
    return tuple(messages)


def task_outcome(record: Fields) -> str | None:
    """Return how a task ended, as ``succeeded`` or ``failed``; None while it is open."""
    state = name_in(fields_of(record.get("status")), "state") or ""
    return _STATES.get(state.lower().removeprefix("task_state_"))


def is_event(value: object) -> bool:
    """Tell an update of a task's stream, bare or in an answer of JSON-RPC."""
    kind = _event(value)[0]
    return kind in ("status-update", "artifact-update")


def streamed_tasks(records: Iterable[tuple[str, object]]) -> list[StreamedTask]:
    """Return the tasks of a stream of updates, with their messages in the order of the stream.

    Args:
        records: The records of a stream under their places.
    """
    tasks: dict[str | None, StreamedTask] = {}
    for location, value in records:
        kind, event, pointer = _event(value)
        task_id = text_in(event, "id" if kind == "task" else "taskId")
        task_id = task_id or next(reversed(tasks), None)
        task = tasks.setdefault(task_id, StreamedTask())
        if event:
            task.add(kind, event, location + pointer)
        else:
            task.messages.append((location, value))
    return [task for task in tasks.values() if task.messages]


@dataclass(slots=True)
class StreamedTask:
    """The messages of a task under their locations, and its outcome as far as updates state it."""

    messages: list[tuple[str, object]] = field(default_factory=list)
    outcome: str | None = None
    _seen: set[str] = field(default_factory=set)
    _artifact: str | None = None

    def add(self, kind: str, event: Fields, location: str) -> None:
        """Add the messages of an event.

        Args:
            kind: The kind of the event; one of an unknown kind is a log.
            event: The task, message or update.
            location: Its location in the file.
        """
        if kind == "task":
            self._add_new(task_messages(event, location))
        elif kind == "message":
            self._add_new([(location, _with_plain_role(event))])
        elif kind == "status-update":
            message = fields_of(event.get("status")).get("message")
            if isinstance(message, Mapping):
                self._add_new([(f"{location}/status/message", _with_plain_role(message))])
        elif kind == "artifact-update":
            self._add_artifact(event, location)
        else:
            self.messages.append((location, event))
        if kind in ("task", "status-update"):
            self.outcome = task_outcome(event) or self.outcome

    def _add_new(self, messages: Iterable[tuple[str, object]]) -> None:
        for location, message in messages:
            message_id = text_in(fields_of(message), "messageId")
            if message_id is None or message_id not in self._seen:
                self.messages.append((location, message))
            if message_id is not None:
                self._seen.add(message_id)

    def _add_artifact(self, event: Fields, location: str) -> None:
        artifact = fields_of(event.get("artifact"))
        parts = list(items_of(artifact.get("parts")))
        artifact_id = text_in(artifact, "artifactId")
        if event.get("append") is True and artifact_id == self._artifact and self.messages:
            last_place, last = self.messages[-1]
            joined = _joined_parts([*items_of(fields_of(last).get("parts")), *parts])
            self.messages[-1] = (last_place, {"role": "agent", "parts": joined})
        elif parts:
            self.messages.append((f"{location}/artifact", {"role": "agent", "parts": parts}))
        self._artifact = artifact_id


def _joined_parts(parts: Iterable[object]) -> list[object]:
    """Return the parts of a streamed artifact with texts next to each other as one text."""
    joined: list[object] = []
    for part in parts:
        text = fields_of(part).get("text")
        last_text = fields_of(joined[-1]).get("text") if joined else None
        if isinstance(text, str) and isinstance(last_text, str):
            joined[-1] = {"text": last_text + text}
        else:
            joined.append(part)
    return joined


def _event(value: object) -> tuple[str, Fields, str]:
    """Return the kind of an event of a stream, the event and the pointer to it."""
    event = fields_of(value)
    pointer = ""
    if isinstance(event.get("result"), Mapping):
        event = fields_of(event["result"])
        pointer = "/result"
    for name, kind in _EVENTS.items():
        if isinstance(event.get(name), Mapping):
            return kind, fields_of(event[name]), f"{pointer}/{name}"
    if is_task(event):
        return "task", event, pointer
    return name_in(event, "kind") or "", event, pointer


def _with_plain_role(message: Fields) -> Fields:
    role = name_in(message, "role") or "agent"
    plain = {**message, "role": role.lower().removeprefix("role_")}
    if isinstance(message.get("content"), list) and "parts" not in message:
        plain["parts"] = plain.pop("content")  # as drafts of version 1.0 had it
    return plain
