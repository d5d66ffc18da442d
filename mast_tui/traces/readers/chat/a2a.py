"""Tasks of the Agent2Agent protocol (A2A): a history of messages, artifacts and a state.

The artifacts are the products of the agent, so they follow the history. Versions before 1.0 write
``kind``, ``agent`` and ``completed``; later versions write ``ROLE_AGENT`` and
``TASK_STATE_COMPLETED``.
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

_KIND_BY_EVENT_FIELD: Final = {
    "task": "task",
    "message": "message",
    "statusUpdate": "status-update",
    "artifactUpdate": "artifact-update",
}
"""The fields that hold the events of a stream in version 1.0."""

_OUTCOME_BY_STATE: Final = {"completed": "succeeded", "failed": "failed", "rejected": "failed"}


def is_task(record: Fields) -> bool:
    """Return whether a JSON object is a task of the Agent2Agent protocol."""
    status = record.get("status")
    return (
        isinstance(status, Mapping)
        and isinstance(status.get("state"), str)
        and (record.get("kind") == "task" or "contextId" in record or "artifacts" in record)
        and any(isinstance(record.get(name), list) for name in ("history", "artifacts"))
    )


def task_messages(record: Fields, pointer: str) -> tuple[tuple[str, object], ...]:
    """Return the messages of a task, as pairs of JSON pointer and message.

    They are the history, the message of the last status, and the artifacts.

    Args:
        record: The task.
        pointer: The JSON pointer of the task.
    """
    messages: list[tuple[str, object]] = []
    history_ids: set[str] = set()
    for number, message in enumerate(items_of(record.get("history"))):
        fields = fields_of(message)
        if message_id := as_text(fields.get("messageId")):
            history_ids.add(message_id)
        plain_message = _with_plain_role(fields) if fields else message
        messages.append((f"{pointer}/history/{number}", plain_message))

    status = fields_of(record.get("status"))
    status_message = status.get("message")
    if isinstance(status_message, Mapping):
        is_in_history = as_text(status_message.get("messageId")) in history_ids
        if not is_in_history:
            messages.append((f"{pointer}/status/message", _with_plain_role(status_message)))

    for number, artifact in enumerate(items_of(record.get("artifacts"))):
        fields = fields_of(artifact)
        heading = texts_in(fields, "name", "description")
        parts: list[object] = [{"text": heading}] if heading else []
        parts.extend(items_of(fields.get("parts")))
        if parts:
            artifact_message = {"role": "agent", "parts": parts}
            messages.append((f"{pointer}/artifacts/{number}", artifact_message))
    return tuple(messages)


def task_outcome(record: Fields) -> str | None:
    """Return the outcome of a task, ``succeeded`` or ``failed``; None while the task is open."""
    state = name_in(fields_of(record.get("status")), "state") or ""
    return _OUTCOME_BY_STATE.get(state.lower().removeprefix("task_state_"))


def is_stream_update(value: object) -> bool:
    """Return whether a value is an event of a task's stream, also inside a JSON-RPC answer."""
    kind, _event, _pointer = _stream_event(value)
    return kind in ("status-update", "artifact-update")


def streamed_tasks(records: Iterable[tuple[str, object]]) -> list[StreamedTask]:
    """Return the tasks in a stream, with their messages in the order of the stream.

    An event without a task id belongs to the task that began last.

    Args:
        records: The records of the stream, as pairs of location and record.
    """
    tasks: dict[str | None, StreamedTask] = {}
    for location, value in records:
        kind, event, pointer = _stream_event(value)
        task_id = text_in(event, "id" if kind == "task" else "taskId")
        task_id = task_id or next(reversed(tasks), None)
        task = tasks.setdefault(task_id, StreamedTask())
        if event:
            task.add(kind, event, location + pointer)
        else:  # the record is no JSON object
            task.messages.append((location, value))
    return [task for task in tasks.values() if task.messages]


@dataclass(slots=True)
class StreamedTask:
    """The messages of a task, as pairs of location and message, and its last outcome."""

    messages: list[tuple[str, object]] = field(default_factory=list)
    outcome: str | None = None
    _message_ids: set[str] = field(default_factory=set)
    _last_artifact_id: str | None = None

    def add(self, kind: str, event: Fields, location: str) -> None:
        """Add the messages of an event in the stream, and update the outcome.

        Args:
            kind: The kind of the event.
            event: The task, message or update.
            location: The location of the event in the file.
        """
        match kind:
            case "task":
                self._add_new_messages(task_messages(event, location))
            case "message":
                self._add_new_messages([(location, _with_plain_role(event))])
            case "status-update":
                message = fields_of(event.get("status")).get("message")
                if isinstance(message, Mapping):
                    self._add_new_messages(
                        [(f"{location}/status/message", _with_plain_role(message))]
                    )
            case "artifact-update":
                self._add_artifact(event, location)
            case _:
                self.messages.append((location, event))
        if kind in ("task", "status-update"):
            self.outcome = task_outcome(event) or self.outcome

    def _add_new_messages(self, messages: Iterable[tuple[str, object]]) -> None:
        """Add the messages that the task does not have yet."""
        for location, message in messages:
            message_id = text_in(fields_of(message), "messageId")
            if message_id is None or message_id not in self._message_ids:
                self.messages.append((location, message))
            if message_id is not None:
                self._message_ids.add(message_id)

    def _add_artifact(self, event: Fields, location: str) -> None:
        """Add the parts of an artifact as a message, or to the last message that they continue."""
        artifact = fields_of(event.get("artifact"))
        parts = list(items_of(artifact.get("parts")))
        artifact_id = text_in(artifact, "artifactId")
        is_append = event.get("append") is True
        if is_append and artifact_id == self._last_artifact_id and self.messages:
            last_location, last_message = self.messages[-1]
            all_parts = [*items_of(fields_of(last_message).get("parts")), *parts]
            artifact_message = {"role": "agent", "parts": _joined_parts(all_parts)}
            self.messages[-1] = (last_location, artifact_message)
        elif parts:
            self.messages.append((f"{location}/artifact", {"role": "agent", "parts": parts}))
        self._last_artifact_id = artifact_id


def _joined_parts(parts: Iterable[object]) -> list[object]:
    """Return the parts of a streamed artifact with adjacent texts joined."""
    joined_parts: list[object] = []
    for part in parts:
        text = fields_of(part).get("text")
        last_text = fields_of(joined_parts[-1]).get("text") if joined_parts else None
        if isinstance(text, str) and isinstance(last_text, str):
            joined_parts[-1] = {"text": last_text + text}
        else:
            joined_parts.append(part)
    return joined_parts


def _stream_event(value: object) -> tuple[str, Fields, str]:
    """Return the kind of a stream event, the event, and its JSON pointer in the record.

    The kind may be empty.
    """
    event = fields_of(value)
    pointer = ""
    if isinstance(event.get("result"), Mapping):  # an answer of JSON-RPC
        event = fields_of(event["result"])
        pointer = "/result"
    for name, kind in _KIND_BY_EVENT_FIELD.items():
        if isinstance(event.get(name), Mapping):
            return kind, fields_of(event[name]), f"{pointer}/{name}"
    if is_task(event):
        return "task", event, pointer
    return name_in(event, "kind") or "", event, pointer


def _with_plain_role(message: Fields) -> Fields:
    """Return a message with a role as before version 1.0, and with ``parts``."""
    role = name_in(message, "role") or "agent"
    plain_message = {**message, "role": role.lower().removeprefix("role_")}
    if isinstance(message.get("content"), list) and "parts" not in message:
        plain_message["parts"] = plain_message.pop("content")  # a field of drafts of version 1.0
    return plain_message
