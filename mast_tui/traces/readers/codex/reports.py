"""Reports on calls in a Codex rollout: turn items and the events at the end of a call.

Most repeat what the response items of the call say. Calls made from inside another tool, as by
Codex's own scripts, have no items of their own and are known from these reports only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.json_values import as_number, as_text, content_text, dump_text
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.codex.entry import Entry, log, reported_call

Values = Mapping[str, object]

REPORT_EVENTS: Final = frozenset({"mcp_tool_call_end", "exec_command_end", "patch_apply_end"})
REPORT_ITEMS: Final = frozenset(
    {
        "CommandExecution",
        "FileChange",
        "McpToolCall",
        "DynamicToolCall",
        "CollabAgentToolCall",
        "Extension",
    }
)
_HEADING: Final = frozenset({"type", "id", "kind", "status"})
_ANSWERS: Final = ("results", "result", "output")
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def report_of_event(kind: str, payload: Values) -> Entry:
    """The call that an event at its end reports on."""
    call_id = as_text(payload.get("call_id"))
    lasted = seconds_of(payload.get("duration"))
    if kind == "exec_command_end":
        return _command(call_id, payload, lasted)
    if kind == "patch_apply_end":
        return _patch(call_id, payload, lasted)
    invocation = payload.get("invocation")
    asked: Values = invocation if isinstance(invocation, Mapping) else {}
    result = payload.get("result")
    if isinstance(result, Mapping) and "Err" in result:
        text, status = content_text(result["Err"]), SpanStatus.ERROR
    else:
        inner = result.get("Ok", result) if isinstance(result, Mapping) else result
        text, status = answer_of_mcp(inner)
    return reported_call(
        call_id, tool_of_mcp(asked), dump_text(asked.get("arguments")), text, status, lasted=lasted
    )


def report_of_item(kind: str, item: Values) -> Entry:
    """The call that a completed turn item reports on."""
    call_id = as_text(item.get("id"))
    lasted = seconds_of(item.get("duration"))
    if kind == "CommandExecution":
        return _command(call_id, item, lasted)
    if kind == "FileChange":
        return _patch(call_id, item, lasted)
    if kind == "CollabAgentToolCall":
        return _collaboration(call_id, item)
    if kind == "McpToolCall":
        name = tool_of_mcp(item)
        text, status = answer_of_mcp(item.get("result"))
    elif kind == "DynamicToolCall":
        name = as_text(item.get("tool")) or "tool"
        text, status = content_text(item.get("content_items")), status_of_flag(item.get("success"))
    else:
        return _extension(call_id, item)
    arguments = dump_text(item.get("arguments"))
    return _with_error(item, call_id, name, arguments, text, status, lasted)


def _with_error(
    item: Values,
    call_id: str | None,
    name: str,
    arguments: str,
    text: str,
    status: SpanStatus,
    lasted: float | None,
) -> Entry:
    error = item.get("error")
    if error is not None:
        message = error.get("message") if isinstance(error, Mapping) else error
        text = "\n".join(part for part in (text, content_text(message)) if part)
        status = SpanStatus.ERROR
    if status is SpanStatus.UNKNOWN:
        status = status_of_word(item.get("status"))
    return reported_call(call_id, name, arguments, text, status, lasted=lasted)


def _command(call_id: str | None, values: Values, lasted: float | None) -> Entry:
    text = as_text(values.get("aggregated_output")) or _streams(values)
    status = status_of_code(values.get("exit_code"))
    if status is SpanStatus.UNKNOWN:
        status = status_of_word(values.get("status"))
    asked = dump_text({"command": values.get("command")})
    return reported_call(call_id, "shell", asked, text, status, lasted=lasted)


def _patch(call_id: str | None, values: Values, lasted: float | None) -> Entry:
    status = status_of_flag(values.get("success"))
    if status is SpanStatus.UNKNOWN:
        status = status_of_word(values.get("status"))
    asked = dump_text(values.get("changes"))
    return reported_call(call_id, "apply_patch", asked, _streams(values), status, lasted=lasted)


def _collaboration(call_id: str | None, item: Values) -> Entry:
    tool = _CAPITAL.sub("_", as_text(item.get("tool")) or "agent").lower()
    threads = item.get("receiver_thread_ids")
    names = tuple(filter(None, map(as_text, threads))) if isinstance(threads, list) else ()
    fields = ("prompt", "receiver_thread_ids", "model")
    return reported_call(
        call_id,
        tool,
        dump_text({name: item[name] for name in fields if item.get(name)}),
        dump_text(item.get("agents_states")),
        status_of_word(item.get("status")),
        spawned=names if tool == "spawn_agent" else (),
    )


def _extension(call_id: str | None, item: Values) -> Entry:
    answer = next((item[name] for name in _ANSWERS if item.get(name) is not None), None)
    asked = {
        name: value
        for name, value in item.items()
        if name not in _HEADING and name not in _ANSWERS and value is not None
    }
    name = as_text(item.get("kind")) or "extension"
    status = status_of_word(item.get("status"))
    return reported_call(call_id, name, dump_text(asked), content_text(answer), status)


def activity(values: Values, call_id: str | None) -> Entry:
    """What the parent's rollout notes of a sub-agent's life, in one line."""
    thread = as_text(values.get("agent_thread_id"))
    name = as_text(values.get("agent_path")) or thread or "without a name"
    kind = as_text(values.get("kind")) or "active"
    entry = log(f"sub-agent {name}: {kind}", "sub_agent_activity")
    if thread is None or kind != "started":
        return entry
    return Entry(
        entry.kind,
        entry.role,
        entry.text,
        name=entry.name,
        call_id=call_id,
        spawned=(thread,),
    )


def tool_of_mcp(asked: Values) -> str:
    """The name of an MCP server's tool: ``server.tool``."""
    names = (as_text(asked.get("server")), as_text(asked.get("tool")))
    return ".".join(name for name in names if name) or "mcp"


def answer_of_mcp(result: object) -> tuple[str, SpanStatus]:
    """The text of an MCP tool's answer, and whether the tool went well."""
    if not isinstance(result, Mapping):
        return content_text(result), SpanStatus.UNKNOWN
    text = content_text(result.get("content"))
    for field in ("structured_content", "structuredContent"):
        if not text and result.get(field) is not None:
            text = dump_text(result[field])
    failed = result.get("isError", result.get("is_error"))
    if isinstance(failed, bool):
        return text, SpanStatus.ERROR if failed else SpanStatus.OK
    return text, SpanStatus.UNKNOWN


def status_of_code(code: object) -> SpanStatus:
    """Whether a command went well by its exit code."""
    if isinstance(code, int) and not isinstance(code, bool):
        return SpanStatus.OK if code == 0 else SpanStatus.ERROR
    return SpanStatus.UNKNOWN


def status_of_flag(flag: object) -> SpanStatus:
    """Whether a call went well by a flag that is a boolean or its name."""
    if flag in (True, "true"):
        return SpanStatus.OK
    return SpanStatus.ERROR if flag in (False, "false") else SpanStatus.UNKNOWN


def status_of_word(word: object) -> SpanStatus:
    """Whether a call went well by what its ``status`` says."""
    if word == "completed":
        return SpanStatus.OK
    return SpanStatus.ERROR if word in ("failed", "declined", "errored") else SpanStatus.UNKNOWN


def seconds_of(duration: object) -> float | None:
    """Seconds of ``{"secs": 1, "nanos": 500000000}``."""
    if not isinstance(duration, Mapping):
        return None
    whole, rest = as_number(duration.get("secs")), as_number(duration.get("nanos"))
    return None if whole is None or whole < 0 else whole + (rest or 0.0) / 1e9


def _streams(values: Values) -> str:
    streams = (as_text(values.get("stdout")), as_text(values.get("stderr")))
    return "\n".join(text for text in streams if text)
