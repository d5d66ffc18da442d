"""What one record of a Codex rollout shows, looked at by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.json_values import InvalidJSON, as_text, content_text, dump_text, load_json
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.times import unix_seconds

AGENT: Final = "codex"

RECORD_TYPES: Final = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
    }
)

_BOOKKEEPING: Final = frozenset(
    {
        "token_count",
        "session_configured",
        "turn_diff",
        "agent_message_delta",
        "agent_reasoning_delta",
        "agent_reasoning_section_break",
        "context_compacted",
        "web_search_begin",
        "web_search_end",
        "exec_command_begin",
        "exec_command_end",
        "exec_command_output_delta",
        "patch_apply_begin",
        "patch_apply_end",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
    }
)
"""Events that say nothing which a response item or a ``compacted`` record does not say too."""

_TURN_BOUNDARIES: Final = frozenset(
    {"task_started", "task_complete", "turn_started", "turn_complete"}
)
_ERROR_EVENTS: Final = frozenset({"turn_aborted", "error", "stream_error"})
_ITEM_TWINS: Final = frozenset(
    {"CommandExecution", "FileChange", "McpToolCall", "WebSearch", "ImageView", "ImageGeneration"}
)
_HARNESS_OPENINGS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<skill>",
    "<INSTRUCTIONS>",
    "# AGENTS.md",
)
_EXIT_CODE: Final = re.compile(
    r"""\A(?:
        Exit\ code:\ (-?\d{1,9})\b
      | (?:[^\n]*\n){0,6}?Process\ exited\ with\ code\ (-?\d{1,9})\b
      | failed\b[^\n]{0,400}?\bexit\ code:\ (-?\d{1,9})\b
    )""",
    re.VERBOSE,
)
_HEADER_CHARS: Final = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """A step that a record tells of.

    ``event`` marks what a response item usually says too, ``parts`` are the texts by which the
    two are told to be the same. ``closes_turn`` marks the end or the beginning of a turn, before
    which no event may be left waiting; its text is empty where it says nothing by itself.
    """

    kind: SpanKind
    role: Role
    text: str
    key: str | None = None
    name: str | None = None
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    parts: tuple[str, ...] = ()
    event: bool = False
    closes_turn: bool = False


def payload_of(record: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """A record's type and payload; a naked response item of the first era is wrapped."""
    kind, payload = record.get("type"), record.get("payload")
    if isinstance(kind, str) and isinstance(payload, Mapping):
        return kind, payload
    if kind is None and "instructions" in record and "id" in record:
        return "session_meta", record
    if record.get("record_type") is not None:
        return "turn_context", record
    return "response_item", record


def time_of(record: Mapping[str, object]) -> float | None:
    """When the record was written, in Unix seconds."""
    return unix_seconds(record.get("timestamp"))


def entry_of(record: Mapping[str, object]) -> Entry | None:
    """The step that the record tells of; None for mere bookkeeping."""
    kind, payload = payload_of(record)
    match kind:
        case "response_item":
            return _item(payload)
        case "event_msg":
            return _event(payload)
        case "session_meta":
            text = instructions_of(payload)
            return Entry(SpanKind.MESSAGE, Role.SYSTEM, text) if text.strip() else None
        case "turn_context" | "inter_agent_communication_metadata":
            return None
        case "compacted":
            message = as_text(payload.get("message")) or "the history was compacted"
            return _log(message, "compacted", closes_turn=True)
        case _:
            return _log(dump_text(payload), kind)


def instructions_of(meta: Mapping[str, object]) -> str:
    """The system prompt in a ``session_meta``; empty where there is none."""
    base = meta.get("base_instructions")
    if isinstance(base, Mapping):
        base = base.get("text")
    return as_text(base) or as_text(meta.get("instructions")) or ""


def _item(payload: Mapping[str, object]) -> Entry | None:
    kind = payload.get("type")
    if not isinstance(kind, str):
        return _log(dump_text(payload), None)
    if kind == "message":
        return _message(payload)
    if kind == "reasoning":
        return _reasoning(
            payload.get("summary"), payload.get("content"), as_text(payload.get("id"))
        )
    if kind in ("compaction", "ghost_snapshot"):
        return None
    call_id = as_text(payload.get("call_id"))
    if kind.endswith("_call"):
        call_id = call_id or as_text(payload.get("id"))
        return Entry(
            SpanKind.TOOL_CALL,
            Role.AGENT,
            _arguments(payload),
            key=f"{call_id}:call" if call_id else None,
            name=as_text(payload.get("name")) or kind.removesuffix("_call"),
            call_id=call_id,
        )
    if kind.endswith("_output"):
        text, status = _output(payload.get("output", payload.get("tools")))
        return Entry(
            SpanKind.TOOL_RESULT,
            Role.TOOL,
            text,
            key=f"{call_id}:result" if call_id else None,
            call_id=call_id,
            status=status,
        )
    return _log(dump_text(payload), kind)


def _message(payload: Mapping[str, object]) -> Entry | None:
    content = payload.get("content")
    text = content_text(content)
    if not text.strip():
        return None
    parts = _texts(content)
    role = payload.get("role")
    key = as_text(payload.get("id"))
    if role == "assistant":
        return Entry(SpanKind.MESSAGE, Role.AGENT, text, key=key, parts=parts)
    if role == "user" and not _is_harness(text):
        return Entry(SpanKind.MESSAGE, Role.USER, text, key=key, parts=parts)
    return Entry(SpanKind.MESSAGE, Role.SYSTEM, text, key=key, parts=parts)


def _is_harness(text: str) -> bool:
    """Whether a message in the user's name was written by the harness."""
    return text.lstrip().startswith(_HARNESS_OPENINGS)


def _reasoning(
    summary: object, content: object, key: str | None, *, event: bool = False
) -> Entry | None:
    """Readable reasoning; what is only there encrypted shows nothing."""
    parts = (*_texts(summary), *_texts(content))
    if not parts:
        return None
    text = "\n\n".join(parts)
    return Entry(SpanKind.REASONING, Role.AGENT, text, key=key, parts=parts, event=event)


def _texts(content: object) -> tuple[str, ...]:
    pieces = content if isinstance(content, list) else [content]
    return tuple(text for piece in pieces if (text := content_text(piece)).strip())


def _arguments(payload: Mapping[str, object]) -> str:
    for field in ("arguments", "input", "action"):
        if payload.get(field) is not None:
            return dump_text(payload[field])
    known = ("type", "id", "call_id", "name", "status", "result")
    rest = {name: value for name, value in payload.items() if name not in known}
    return dump_text(rest) if rest else ""


def _output(output: object) -> tuple[str, SpanStatus]:
    """The text of a tool's output without its JSON wrapping, and whether the tool went well."""
    if isinstance(output, str) and output.startswith('{"'):
        try:
            inner = load_json(output)
        except InvalidJSON:
            inner = None
        if isinstance(inner, Mapping) and isinstance(inner.get("metadata"), Mapping):
            output = inner
    if isinstance(output, Mapping):
        said = output.get("output", output.get("content", output.get("content_items")))
        if said is not None:
            return content_text(said), _status_of_fields(output)
    text = content_text(output)
    return text, _status_of_text(text)


def _status_of_fields(output: Mapping[str, object]) -> SpanStatus:
    metadata = output.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, Mapping) else None
    if isinstance(code, int) and not isinstance(code, bool):
        return SpanStatus.OK if code == 0 else SpanStatus.ERROR
    success = output.get("success")
    if isinstance(success, bool):
        return SpanStatus.OK if success else SpanStatus.ERROR
    return SpanStatus.UNKNOWN


def _status_of_text(text: str) -> SpanStatus:
    found = _EXIT_CODE.match(text[:_HEADER_CHARS])
    if found is None:
        return SpanStatus.UNKNOWN
    code = next(group for group in found.groups() if group is not None)
    return SpanStatus.OK if int(code) == 0 else SpanStatus.ERROR


def _event(payload: Mapping[str, object]) -> Entry | None:
    kind = payload.get("type")
    if not isinstance(kind, str):
        return _log(dump_text(payload), None)
    if kind in _BOOKKEEPING:
        return None
    if kind in ("agent_reasoning", "agent_reasoning_raw_content"):
        return _said(SpanKind.REASONING, Role.AGENT, payload.get("text"))
    if kind == "agent_message":
        return _said(SpanKind.MESSAGE, Role.AGENT, payload.get("message"))
    if kind == "user_message":
        return _said(SpanKind.MESSAGE, Role.USER, payload.get("message"))
    if kind == "item_completed":
        return _completed_item(payload.get("item"))
    if kind in _TURN_BOUNDARIES:
        last = as_text(payload.get("last_agent_message")) or ""
        return Entry(SpanKind.MESSAGE, Role.AGENT, last, closes_turn=True)
    if kind == "turn_aborted":
        reason = as_text(payload.get("reason")) or "no reason given"
        return _log(f"turn aborted: {reason}", kind, closes_turn=True)
    return _log(as_text(payload.get("message")) or dump_text(payload), kind)


def _completed_item(item: object) -> Entry | None:
    """A turn item, as newer builds write it in place of the message events."""
    if not isinstance(item, Mapping):
        return None
    kind = item.get("type")
    if kind == "Reasoning":
        return _reasoning(item.get("summary_text"), item.get("raw_content"), None, event=True)
    text = item.get("text") if kind == "Plan" else content_text(item.get("content"))
    if kind == "UserMessage":
        return _said(SpanKind.MESSAGE, Role.USER, text)
    if kind in ("AgentMessage", "Plan"):
        return _said(SpanKind.MESSAGE, Role.AGENT, text)
    if isinstance(kind, str) and kind in _ITEM_TWINS:
        return None
    return _log(dump_text(item), as_text(kind))


def _said(kind: SpanKind, role: Role, text: object) -> Entry | None:
    if not isinstance(text, str) or not text.strip():
        return None
    if role is Role.USER and _is_harness(text):
        role = Role.SYSTEM
    return Entry(kind, role, text, event=True)


def _log(text: str, name: str | None, *, closes_turn: bool = False) -> Entry:
    status = SpanStatus.ERROR if name in _ERROR_EVENTS else SpanStatus.UNKNOWN
    return Entry(SpanKind.LOG, Role.LOG, text, name=name, status=status, closes_turn=closes_turn)
