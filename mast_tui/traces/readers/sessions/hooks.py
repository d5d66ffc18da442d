"""Logs of the hooks of coding agents: the agent's events that a program receives.

Claude Code defined these events; Codex, Gemini CLI and others use them too. Many projects write
them to a file, either all to one, or each kind of event to a list of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Role, SpanStatus
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    Speaker,
    Turn,
    call_piece,
    log_piece,
    result_piece,
)
from mast_tui.traces.readers.claude_code import records as claude
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    name_in,
    name_set,
    snake_fields,
    text_in,
    without,
)
from mast_tui.traces.readers.sessions.engine import (
    SessionContext,
    SessionFormat,
    record_turn,
    user_prompt_piece,
)

_PROMPT_EVENTS: Final = ("UserPromptSubmit", "BeforeAgent")
_CALL_EVENTS: Final = ("PreToolUse", "BeforeTool")
_RESULT_EVENTS: Final = ("PostToolUse", "PostToolUseFailure", "AfterTool")
_END_EVENTS: Final = ("Stop", "SubagentStop", "AfterAgent")
_SILENT_EVENTS: Final = name_set("SessionStart SessionEnd Setup CwdChanged InstructionsLoaded")
_SYSTEM_BY_FOLDER: Final = {
    "codex": "codex",
    "cursor": "cursor",
    "factory": "factory-droid",
    "gemini": "gemini-cli",
    "qwen": "qwen-code",
}
"""The agents with transcripts in a folder such as ``~/.codex``."""
_SYSTEM_BY_EVENT: Final = {"BeforeAgent": "gemini-cli", "BeforeTool": "gemini-cli"}
_EVENT_FIELDS: Final = name_set("""
    hook_event_name session_id transcript_path cwd permission_mode timestamp
""")
"""The fields of every event."""


def _event_of(record: Fields) -> Fields:
    """Return the event that a record is or contains."""
    for value in (record, *record.values()):
        event = snake_fields(value)
        if isinstance(event.get("hook_event_name"), str):
            return event
    return {}


def _event_name(event: Fields) -> str:
    return name_in(event, "hook_event_name") or ""


def _any_hook_event(records: Sequence[Fields]) -> bool:
    """Return whether one record is an event of a session that is shown."""
    events = (_event_of(record) for record in records if _session_of(record))
    return any(map(_is_shown, events))


def _is_shown(event: Fields) -> bool:
    name = _event_name(event)
    if not name:
        return False
    return _last_text(event) is not None if name in _END_EVENTS else name not in _SILENT_EVENTS


def _last_text(event: Fields) -> str | None:
    return text_in(event, "last_assistant_message", "prompt_response")


def _system_of(event: Fields) -> str | None:
    """Return the agent of an event; None if it may be Claude Code."""
    if "cursor_version" in event:
        return "cursor"
    folders = PurePath(text_in(event, "transcript_path") or "").parts
    systems = (
        _SYSTEM_BY_FOLDER.get(folder.removeprefix(".")) for folder in folders if folder[0] == "."
    )
    return next(filter(None, systems), None) or _SYSTEM_BY_EVENT.get(_event_name(event))


class _HookTranslator:
    """Makes the turns of a session.

    Older events have no call ids. The id of such a call is a number, and its result has the same
    arguments.
    """

    def __init__(self, session: SessionContext) -> None:
        self._call_ids: set[str] = set()
        self._open_calls: dict[str, list[str]] = {}
        """The ids of open calls by tool and arguments, for events without ids."""
        self._calls_of_tool: dict[str, int] = {}
        event_names = {_event_name(_event_of(record)) for record in session.values}
        if len(event_names) > 1:  # A file for each kind of event has only a part of the session.
            session.id = next(filter(None, map(_session_of, session.values)), None)
        events = map(_event_of, session.values)
        session.system = next(filter(None, map(_system_of, events)), None)

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of an event that is shown."""
        event = _event_of(record)
        name = _event_name(event)
        agent = name_in(event, "agent_type", "agent_id") or ASSISTANT
        if name in _PROMPT_EVENTS:
            text = text_in(event, "prompt", "user_prompt", "prompt_text")
            return record_turn(record, user_prompt_piece(text)) if text else None
        if name in _CALL_EVENTS:
            return self._call_turn(record, event, agent)
        if name in _RESULT_EVENTS:
            return self._result_turn(record, event, agent)
        if name in _END_EVENTS:
            text = _last_text(event)
            return record_turn(record, Speaker(agent, Role.AGENT).piece(text)) if text else None
        if name in _SILENT_EVENTS:
            return None
        text = text_in(event, "message") or dump_text(without(event, _EVENT_FIELDS))
        return record_turn(record, log_piece(text, name or None, failed=name == "StopFailure"))

    def _call_turn(self, record: Fields, event: Fields, agent: str) -> Turn:
        call_id = name_in(event, "tool_use_id")
        if call_id is None:
            tool = name_in(event, "tool_name") or "tool"
            number = self._calls_of_tool.get(tool, 0) + 1
            self._calls_of_tool[tool] = number
            call_id = f"{tool}-{number}"
            self._open_calls.setdefault(_call_text(event), []).append(call_id)
        self._call_ids.add(call_id)
        call = {"id": call_id, "name": event.get("tool_name"), "arguments": event.get("tool_input")}
        return record_turn(record, call_piece(call, "", agent))

    def _result_turn(self, record: Fields, event: Fields, agent: str) -> Turn:
        """Return the turn of a result, after its call if no event announced this call."""
        call_id = name_in(event, "tool_use_id")
        if call_id is None:
            open_calls = self._open_calls.get(_call_text(event))
            call_id = open_calls.pop(0) if open_calls else None
        pieces: tuple[Piece, ...] = ()
        if call_id not in self._call_ids:
            call_turn = self._call_turn(record, event, agent)
            pieces = call_turn.pieces
            call_id = pieces[0].call_id
            self._open_calls.pop(_call_text(event), None)
        response = first_in(
            event, "tool_response", "tool_output", "tool_result", "error", "error_message"
        )
        failed = "Failure" in _event_name(event) or _has_failed(response)
        result = result_piece(
            {},
            _output_of(response),
            "",
            name=name_in(event, "tool_name"),
            call_id=call_id,
            status=SpanStatus.ERROR if failed else SpanStatus.UNKNOWN,
        )
        return record_turn(record, *pieces, result)


def _call_text(event: Fields) -> str:
    return dump_text([event.get("tool_name"), event.get("tool_input")])


def _has_failed(response: object) -> bool:
    fields = fields_of(response)
    return (
        fields.get("interrupted") is True
        or fields.get("success") is False
        or bool(as_text(fields.get("error")))
    )


def _output_of(response: object) -> object:
    """Return the part of a tool's response that the model saw."""
    if not isinstance(response, Mapping):
        return response
    file_content = fields_of(response.get("file")).get("content")
    if file_content is not None:
        return file_content
    if isinstance(response.get("content"), list):
        return response["content"]
    return without(response, ("originalFile",))


def _session_of(record: Fields) -> str | None:
    """Return the id of an event's session; Cursor calls it the conversation."""
    event = _event_of(record)
    return name_in(event, "session_id", "conversation_id")


HOOKS: Final = SessionFormat(
    name="claude-code-hooks",
    system=claude.CLAUDE_CODE,
    typical_bytes=(b'"hook_event_name"', b'"hookEventName"'),
    recognises=_any_hook_event,
    make_translator=_HookTranslator,
    list_paths=("events",),
    id_paths="",
    fact_paths={"model": "model"},
    session_of=_session_of,
)
