"""One item of ``codex exec --json``, whatever stage of it an event tells of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.codex.reports import (
    answer_of_mcp,
    status_of_code,
    status_of_word,
    tool_of_mcp,
)

TEXTS: Final = frozenset({"agent_message", "plan", "reasoning"})
CALLS: Final = frozenset(
    {
        "collab_tool_call",
        "command_execution",
        "file_change",
        "mcp_tool_call",
        "todo_list",
        "web_search",
    }
)
_OLD_NAMES: Final[Mapping[str, str]] = {"assistant_message": "agent_message"}
_NO_ARGUMENTS: Final = frozenset({"id", "type", "item_type", "status"})


@dataclass(frozen=True, slots=True)
class ExecItem:
    """An item: ``text`` is what it says or asks, ``output`` what came of it.

    ``output`` is None where there is nothing to tell. ``waits`` marks one that tells what it is
    about only when it is completed. ``spawned`` are the threads of sub-agents that it began.
    """

    kind: str
    id: str | None
    text: str
    name: str | None = None
    output: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    waits: bool = False
    spawned: tuple[str, ...] = ()


def exec_item(item: Mapping[str, object]) -> ExecItem:
    """The item in an event of any stage."""
    said = as_text(item.get("type")) or as_text(item.get("item_type")) or "item"
    kind, key = _OLD_NAMES.get(said, said), as_text(item.get("id"))
    if kind in TEXTS:
        return ExecItem(kind, key, content_text(item.get("text")))
    if kind == "error":
        return ExecItem(kind, key, content_text(item.get("message")) or dump_text(item))
    if kind == "todo_list":
        return ExecItem(kind, key, _checklist(item.get("items")), kind)
    if kind == "command_execution":
        return _command(item, key)
    if kind == "mcp_tool_call":
        return _mcp(item, key)
    if kind == "collab_tool_call":
        return _collaboration(item, key)
    if kind == "file_change":
        asked = dump_text({"changes": item.get("changes")})
        return ExecItem(kind, key, asked, kind, _note(item), status_of_word(item.get("status")))
    asked = dump_text({name: value for name, value in item.items() if name not in _NO_ARGUMENTS})
    empty = kind != "web_search" or as_text(item.get("query")) is None
    return ExecItem(kind, key, asked, kind, waits=empty)


def _command(item: Mapping[str, object], key: str | None) -> ExecItem:
    status = status_of_code(item.get("exit_code"))
    if status is SpanStatus.UNKNOWN:
        status = status_of_word(item.get("status"))
    return ExecItem(
        "command_execution",
        key,
        dump_text({"command": item.get("command")}),
        "shell",
        content_text(item.get("aggregated_output")),
        status,
    )


def _mcp(item: Mapping[str, object], key: str | None) -> ExecItem:
    text, status = answer_of_mcp(item.get("result"))
    error = item.get("error")
    if error is not None:
        message = error.get("message") if isinstance(error, Mapping) else error
        text = "\n".join(part for part in (text, content_text(message)) if part)
        status = SpanStatus.ERROR
    elif status is SpanStatus.UNKNOWN:
        status = status_of_word(item.get("status"))
    asked = dump_text(item.get("arguments"))
    return ExecItem("mcp_tool_call", key, asked, tool_of_mcp(item), text, status)


def _collaboration(item: Mapping[str, object], key: str | None) -> ExecItem:
    threads = item.get("receiver_thread_ids")
    names = tuple(filter(None, map(as_text, threads))) if isinstance(threads, list) else ()
    tool = as_text(item.get("tool")) or "agent"
    spawns = tool == "spawn_agent"
    asked: dict[str, object] = {"prompt": item["prompt"]} if item.get("prompt") else {}
    if names and not spawns:
        asked["receiver_thread_ids"] = list(names)
    told = {"receiver_thread_ids": list(names)} if names and spawns else {}
    return ExecItem(
        "collab_tool_call",
        key,
        dump_text(asked),
        tool,
        dump_text({**told, "agents_states": item.get("agents_states")}),
        status_of_word(item.get("status")),
        spawned=names if spawns else (),
    )


def _checklist(items: object) -> str:
    """The agent's plan, a line a step."""
    if not isinstance(items, list):
        return dump_text(items)
    lines = []
    for step in items:
        if isinstance(step, Mapping):
            mark = "x" if step.get("completed") is True else " "
            lines.append(f"[{mark}] {content_text(step.get('text'))}")
        else:
            lines.append(dump_text(step))
    return "\n".join(lines)


def _note(item: Mapping[str, object]) -> str:
    """What a change of files came to, in the words of its status."""
    return as_text(item.get("status")) or ""
