"""What one record of a Codex rollout shows, looked at by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.json_values import (
    as_count,
    as_text,
    content_text,
    dump_text,
)
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.codex.entry import Entry, log
from mast_tui.traces.readers.codex.items import (
    between_agents,
    is_harness_text,
    item_entry,
    reasoning,
)
from mast_tui.traces.readers.codex.reports import (
    REPORT_EVENTS,
    REPORT_ITEMS,
    activity,
    report_of_event,
    report_of_item,
)
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
        "token_usage_record",
    }
)
_SILENT: Final = frozenset(
    {"turn_context", "inter_agent_communication_metadata", "token_usage_record"}
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
        "exec_command_output_delta",
        "image_generation_begin",
        "image_generation_end",
        "patch_apply_begin",
        "mcp_tool_call_begin",
        "view_image_tool_call",
    }
)
"""Events that say nothing which a response item or a ``compacted`` record does not say too."""

_TURN_BOUNDARIES: Final = frozenset(
    {"task_started", "task_complete", "turn_started", "turn_complete"}
)
_ERROR_EVENTS: Final = frozenset({"turn_aborted", "error", "stream_error"})
_ITEM_TWINS: Final = frozenset(
    {"ContextCompaction", "HookPrompt", "ImageGeneration", "ImageView", "WebSearch"}
)
"""Turn items of which there always is a response item or a ``compacted`` record too."""


def payload_of(record: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """A record's type and payload; a naked response item of the first era is wrapped."""
    kind, payload = record.get("type"), record.get("payload")
    if isinstance(payload, dict) and isinstance(kind, str):  # dict: this is asked of every record
        return kind, payload
    if kind is None and "instructions" in record and "id" in record:
        return "session_meta", record
    if record.get("record_type") is not None:
        return "turn_context", record
    return "response_item", record


def time_of(record: Mapping[str, object]) -> float | None:
    """When the record was written, in Unix seconds."""
    return unix_seconds(record.get("timestamp"))


def entry_of(kind: str, payload: Mapping[str, object]) -> Entry | None:
    """The step that a record of this type tells of; None for mere bookkeeping."""
    if kind == "response_item":
        return item_entry(payload)
    if kind == "event_msg":
        return _event(payload)
    if kind in _SILENT:
        return None
    if kind == "session_meta":
        text = instructions_of(payload)
        return Entry(SpanKind.MESSAGE, Role.SYSTEM, text) if text.strip() else None
    if kind == "inter_agent_communication":
        return between_agents(payload, event=True)
    if kind == "compacted":
        message = as_text(payload.get("message")) or "the history was compacted"
        return _boundary(message, kind)
    return log(dump_text(payload), kind)


def instructions_of(meta: Mapping[str, object]) -> str:
    """The system prompt in a ``session_meta``; empty where there is none."""
    base = meta.get("base_instructions")
    if isinstance(base, Mapping):
        base = base.get("text")
    return as_text(base) or as_text(meta.get("instructions")) or ""


def _event(payload: Mapping[str, object]) -> Entry | None:
    kind = payload.get("type")
    if not isinstance(kind, str):
        return log(dump_text(payload), None)
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
        return _boundary(f"turn aborted: {_reason(payload)}", kind, SpanStatus.ERROR)
    if kind in REPORT_EVENTS:
        return report_of_event(kind, payload)
    return _note(kind, payload)


def _note(kind: str, payload: Mapping[str, object]) -> Entry:
    """An event that no response item repeats."""
    if kind == "thread_rolled_back":
        return _boundary(_rolled_back(payload), kind)
    if kind == "sub_agent_activity":
        return activity(payload, as_text(payload.get("event_id")))
    if kind == "collab_agent_spawn_end":
        thread = as_text(payload.get("new_thread_id"))
        return Entry(
            SpanKind.LOG,
            Role.LOG,
            f"sub-agent {_name_of_new(payload)}: started" if thread else "no sub-agent was started",
            name=kind,
            call_id=as_text(payload.get("call_id")),
            twin=True,
            spawned=(thread,) if thread else (),
        )
    status = SpanStatus.ERROR if kind in _ERROR_EVENTS else SpanStatus.UNKNOWN
    return log(as_text(payload.get("message")) or dump_text(payload), kind, status)


def _reason(payload: Mapping[str, object]) -> str:
    """Why a turn was aborted; newer builds add the error's own words."""
    reason = as_text(payload.get("reason")) or "no reason given"
    error = payload.get("error")
    if isinstance(error, Mapping):
        error = error.get("message")
    return f"{reason}: {error}" if as_text(error) else reason


def _rolled_back(payload: Mapping[str, object]) -> str:
    turns = as_count(payload.get("num_turns"))
    if turns is None:
        return "rolled back: turns before this were taken out of the history"
    if turns == 1:
        return "rolled back: the last turn before this was taken out of the history"
    return f"rolled back: the last {turns} turns before this were taken out of the history"


def _name_of_new(payload: Mapping[str, object]) -> str:
    fields = ("new_agent_nickname", "new_agent_role", "new_thread_id")
    return next((name for field in fields if (name := as_text(payload.get(field)))), "")


def _completed_item(item: object) -> Entry | None:
    """A turn item, as newer builds write it in place of the message events."""
    if not isinstance(item, Mapping):
        return None
    kind = item.get("type")
    if not isinstance(kind, str):
        return log(dump_text(item), None)
    if kind == "Reasoning":
        return reasoning(item.get("summary_text"), item.get("raw_content"), None, event=True)
    text = item.get("text") if kind == "Plan" else content_text(item.get("content"))
    if kind == "UserMessage":
        return _said(SpanKind.MESSAGE, Role.USER, text)
    if kind in ("AgentMessage", "Plan"):
        return _said(SpanKind.MESSAGE, Role.AGENT, text)
    if kind in _ITEM_TWINS:
        return None
    if kind in REPORT_ITEMS:
        return report_of_item(kind, item)
    if kind == "SubAgentActivity":
        return activity(item, as_text(item.get("id")))
    return log(dump_text(item), kind)


def _said(kind: SpanKind, role: Role, text: object) -> Entry | None:
    if not isinstance(text, str) or not text.strip():
        return None
    if role is Role.USER and is_harness_text(text):
        role = Role.SYSTEM
    return Entry(kind, role, text, event=True)


def _boundary(text: str, name: str, status: SpanStatus = SpanStatus.UNKNOWN) -> Entry:
    """A line of the log before which no event may be left waiting."""
    return Entry(SpanKind.LOG, Role.LOG, text, name=name, status=status, closes_turn=True)
